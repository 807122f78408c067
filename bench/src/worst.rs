//! A search for the message that costs most per byte: see docs/performance.md, "Worst case".
//!
//! A message is a short unit, made of pieces of the rules' own patterns, word lists and of what decoders look
//! for, said again and again in one place of a request, as one value or as many. First each rule gives units
//! from its own pieces; the most expensive of these are then changed at random as long as the time lasts; at
//! last the most expensive are made longer, which shows cost that grows faster than their length.

use std::io::Write as _;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use flate2::{Compression, Crc, write::DeflateEncoder};
use portcullis_engine::{Operator, Pattern, Plan};

use crate::cases::{Message, get, post};
use crate::exchange::{Engine, Prepared};
use crate::random::Random;

/// Bytes of text of the messages that show how the cost grows, up to the usual limit of a body without files.
const SIZES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 128 << 10];
/// Bytes that may come of a body in a content coding: so many for each that came, above the first, and no
/// more than this.
const DECODED_RATIO: usize = 20;
const DECODED_FREE: usize = 64 << 10;
const DECODED_MAX: usize = 12 << 20;
/// Units tried of each rule.
const OF_RULE: usize = 12;
/// Units that are changed further.
const KEPT: usize = 24;
/// Rows printed of each table.
const SHOWN: usize = 12;

/// What decoders, parsers and patterns look for, whatever the rules.
const MARKS: [&str; 36] = [
    " ", "\n", "'", "\"", "`", ";", "=", "(", ")", "{", "[", "<", ">", "|", "&", "$", "$(", "\\", "/", "../",
    "/*", "*/", "--", "#", "%25", "%u0061", "\\u0061", "\\x61", "&#x61;", "+", "0x61", "c2VsZWN0", "\u{e9}",
    "1", "a", ".",
];

/// Where the text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Query,
    Form,
    FormFields,
    Json,
    JsonValues,
    JsonNames,
    JsonDeep,
    Multipart,
    Xml,
    XmlNodes,
    Cookie,
    Header,
    QueryFields,
    Cookies,
    Headers,
    GzipForm,
    GzipMultipart,
    GzipFormFields,
    GzipJson,
    GzipJsonValues,
    GzipXmlNodes,
}

const PLACES: [Place; 21] = [
    Place::Form,
    Place::Json,
    Place::FormFields,
    Place::JsonValues,
    Place::JsonNames,
    Place::Multipart,
    Place::Xml,
    Place::XmlNodes,
    Place::JsonDeep,
    Place::Query,
    Place::Cookie,
    Place::Header,
    Place::QueryFields,
    Place::Cookies,
    Place::Headers,
    Place::GzipForm,
    Place::GzipMultipart,
    Place::GzipFormFields,
    Place::GzipJson,
    Place::GzipJsonValues,
    Place::GzipXmlNodes,
];

impl Place {
    /// Heads have a limit of their own.
    fn bytes_max(self) -> usize {
        if let Place::Query | Place::QueryFields | Place::Cookie | Place::Header = self {
            12 << 10
        } else if let Place::Cookies | Place::Headers = self {
            48 << 10
        } else {
            usize::MAX
        }
    }

    fn message(self, unit: &str, bytes: usize) -> Message {
        let bytes = bytes.min(self.bytes_max());
        if let Some(place) = self.coded() {
            // What may come of so many bytes.
            let decoded = (bytes * DECODED_RATIO).clamp(DECODED_FREE, DECODED_MAX);
            return gzip(place.message(unit, decoded * 15 / 16), bytes);
        }
        let text = |bytes: usize| unit.repeat(bytes.div_ceil(unit.len().max(1)));
        // Some hundred values, below the limits on their number.
        let many = |name: &dyn Fn(usize, &str) -> String, between: &str| {
            let count = (bytes / unit.len().max(8)).clamp(1, 900);
            let each = text(bytes / count);
            (0..count).map(|n| name(n, &each)).collect::<Vec<_>>().join(between)
        };
        let xml = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        match self {
            Place::Query => get(&format!("/?a={}", percent(&text(bytes / 2)))),
            Place::Form => post("application/x-www-form-urlencoded", format!("a={}", percent(&text(bytes)))),
            Place::FormFields => {
                let field = |n: usize, text: &str| format!("f{n}={}", percent(text));
                post("application/x-www-form-urlencoded", many(&field, "&"))
            }
            Place::Json => post("application/json", format!("{{\"a\":\"{}\"}}", json(&text(bytes)))),
            Place::JsonValues => {
                post("application/json", format!("[{}]", many(&|_, text| format!("\"{}\"", json(text)), ",")))
            }
            Place::JsonNames => {
                let member = |n: usize, text: &str| format!("\"{}{n}\":1", json(text));
                post("application/json", format!("{{{}}}", many(&member, ",")))
            }
            Place::JsonDeep => {
                let open = format!("{{\"{}\":", json(unit));
                let depth = (bytes / open.len()).clamp(1, 400);
                post("application/json", format!("{}1{}", open.repeat(depth), "}".repeat(depth)))
            }
            Place::Multipart => {
                let part = format!("Content-Disposition: form-data; name=\"a\"\r\n\r\n{}", text(bytes));
                post("multipart/form-data; boundary=x", format!("--x\r\n{part}\r\n--x--\r\n"))
            }
            Place::Xml => post("text/xml", format!("<a b=\"1\">{}</a>", xml(&text(bytes)))),
            Place::XmlNodes => {
                post("text/xml", format!("<a>{}</a>", many(&|_, text| format!("<b>{}</b>", xml(text)), "")))
            }
            Place::Cookie => with_header("Cookie", &format!("a={}", percent(&text(bytes / 2)))),
            Place::Header => with_header("Referer", &printable(&text(bytes))),
            Place::QueryFields => {
                let field = |n: usize, text: &str| format!("f{n}={}", percent(text));
                get(&format!("/?{}", within(many(&field, "&"), bytes)))
            }
            Place::Cookies => {
                // Several fields, each within its limit.
                let pair = |n: usize, text: &str| format!("c{n}={}", percent(text));
                let pairs = many(&pair, "; ");
                let fields: Vec<&str> = pairs.as_bytes().chunks(12 << 10).filter_map(ascii).collect();
                with_headers(fields.into_iter().map(|field| ("Cookie".to_owned(), field.to_owned())))
            }
            Place::Headers => {
                let each = printable(&text((bytes / 100).clamp(8, 8 << 10)));
                let count = (bytes / each.len().max(8)).clamp(1, 100);
                with_headers((0..count).map(|n| (format!("X-H{n}"), each.clone())))
            }
            Place::GzipForm
            | Place::GzipMultipart
            | Place::GzipFormFields
            | Place::GzipJson
            | Place::GzipJsonValues
            | Place::GzipXmlNodes => unreachable!("coded"),
        }
    }

    /// The place in a body that goes in a content coding.
    fn coded(self) -> Option<Place> {
        Some(match self {
            Place::GzipForm => Place::Form,
            Place::GzipMultipart => Place::Multipart,
            Place::GzipFormFields => Place::FormFields,
            Place::GzipJson => Place::Json,
            Place::GzipJsonValues => Place::JsonValues,
            Place::GzipXmlNodes => Place::XmlNodes,
            Place::Query
            | Place::Form
            | Place::FormFields
            | Place::Json
            | Place::JsonValues
            | Place::JsonNames
            | Place::JsonDeep
            | Place::Multipart
            | Place::Xml
            | Place::XmlNodes
            | Place::Cookie
            | Place::Header
            | Place::QueryFields
            | Place::Cookies
            | Place::Headers => return None,
        })
    }
}

fn with_header(name: &str, value: &str) -> Message {
    with_headers([(name.to_owned(), value.to_owned())].into_iter())
}

fn with_headers(fields: impl Iterator<Item = (String, String)>) -> Message {
    with(get("/"), fields)
}

fn with(mut message: Message, fields: impl Iterator<Item = (String, String)>) -> Message {
    message.head.truncate(message.head.len() - 2);
    fields.for_each(|(name, value)| {
        message.head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    });
    message.head.extend_from_slice(b"\r\n");
    message
}

fn ascii(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text).ok().map(str::trim)
}

fn within(mut text: String, bytes: usize) -> String {
    text.truncate(bytes);
    text
}

/// The message with its body packed, and with empty blocks that make it `bytes` long at least: as many as it
/// takes to be let so much grow.
pub(crate) fn gzip(message: Message, bytes: usize) -> Message {
    let mut packed = Vec::new();
    let mut encoder = DeflateEncoder::new(&mut packed, Compression::best());
    // Writing to memory does not fail.
    let _ = encoder.write_all(&message.body).and_then(|()| encoder.try_finish());
    drop(encoder);
    let mut crc = Crc::new();
    crc.update(&message.body);
    let needed = match message.body.len() > DECODED_FREE {
        true => bytes.max(message.body.len() / DECODED_RATIO + 1),
        false => 0,
    };
    let mut body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    let empty = b"\0\0\0\xff\xff";
    while body.len() + packed.len() + 8 < needed {
        body.extend_from_slice(empty);
    }
    body.extend_from_slice(&packed);
    body.extend_from_slice(&crc.sum().to_le_bytes());
    body.extend_from_slice(&crc.amount().to_le_bytes());
    let head = message.head.strip_suffix(b"\r\n\r\n").unwrap_or(&message.head);
    let lines = head.split(|b| *b == b'\n').filter(|line| !line.starts_with(b"Content-Length"));
    let mut head = lines.collect::<Vec<_>>().join(&b'\n').trim_ascii_end().to_vec();
    head.extend_from_slice(
        format!("\r\nContent-Length: {}\r\nContent-Encoding: gzip\r\n\r\n", body.len()).as_bytes(),
    );
    Message { head, body, ..message }
}

fn json(text: &str) -> String {
    let each = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\0'..' ' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(each).collect()
}

fn percent(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*/()".contains(&byte);
    let each = |byte: u8| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    text.bytes().map(each).collect()
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c)).collect()
}

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Goal {
    /// Most time for each byte on the wire.
    Byte,
    /// Most time for each unit of work that was charged: what is priced too low.
    Unit,
    /// Most time for each byte of a text eight times as long, beside that for each byte of this one: what is
    /// not linear.
    Growth,
}

impl Goal {
    fn name(self) -> &'static str {
        match self {
            Goal::Byte => "us/KB",
            Goal::Unit => "ns/unit",
            Goal::Growth => "times for each byte",
        }
    }
}

/// A message to be, and what it cost.
#[derive(Clone)]
struct Found {
    place: Place,
    pieces: Vec<String>,
    /// The rule whose pieces it began with.
    rule: u64,
    /// What its [`Goal`] counts.
    cost: f64,
}

impl Found {
    fn unit(&self) -> String {
        self.pieces.concat()
    }
}

/// A message with so many bytes of text in `place`, if its head can be read.
pub(crate) fn message(place: Place, unit: &str, bytes: usize) -> Option<Prepared> {
    Prepared::try_new(place.message(unit, bytes))
}

/// What one message costs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// CPU time, the better of two.
    pub us: f64,
    pub bytes: usize,
    /// Of rules and of detectors.
    pub units: u64,
}

impl Cost {
    pub(crate) fn us_per_kb(self) -> f64 {
        self.us * 1024.0 / self.bytes.max(1) as f64
    }
}

impl Goal {
    /// What it counts of a message with so many bytes of text.
    fn cost(self, engine: &mut Engine, place: Place, unit: &str, bytes: usize) -> f64 {
        let one = cost(engine, place, unit, bytes);
        match self {
            Goal::Byte => one.us_per_kb(),
            Goal::Unit => one.us * 1e3 / one.units.max(1) as f64,
            Goal::Growth => {
                let long = cost(engine, place, unit, bytes * 8);
                // What is cheap however long it is may grow.
                (long.us_per_kb() - GROWTH_US_MIN).max(0.0) / one.us_per_kb().max(1.0)
            }
        }
    }
}

/// Microseconds for each KB that are no growth.
const GROWTH_US_MIN: f64 = 100.0;

/// What a message with so many bytes of text costs; nothing if it cannot be sent.
pub(crate) fn cost(engine: &mut Engine, place: Place, unit: &str, bytes: usize) -> Cost {
    let Some(message) = message(place, unit, bytes) else { return Cost::default() };
    let mut best = Duration::MAX;
    let mut units = 0;
    for _ in 0..2 {
        let started = ThreadTime::now();
        let verdict = engine.exchange(&message);
        if verdict.is_over_limit {
            return Cost::default();
        }
        best = best.min(started.elapsed());
        units = verdict.work.0 + verdict.detector_work.0;
    }
    Cost { us: best.as_secs_f64() * 1e6, bytes: message.bytes(), units }
}

/// Where and how long is searched.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// How long.
    pub time: Duration,
    /// Bytes of text of the messages.
    pub bytes: usize,
    /// Of the random choices.
    pub seed: u64,
    /// What for.
    pub goal: Goal,
    /// Only places whose names contain this.
    pub place: &'a str,
}

/// Searches among messages that are made of pieces of the rules of `plan`.
pub fn search(engine: &mut Engine, plan: &Plan, search: Search<'_>) {
    let Search { time, bytes, seed, goal, place } = search;
    let mut random = Random::new(seed);
    let places = places(place);
    let rules = pieces_of_rules(plan);
    let all: Vec<&String> = rules.iter().flat_map(|(_, pieces)| pieces).collect();
    let started = Instant::now();
    let mut tried = 0;
    let mut of_rules: Vec<Found> = Vec::new();
    for (rule, pieces) in &rules {
        let mut dearest: Option<Found> = None;
        for n in 0..OF_RULE {
            let unit: Vec<String> = (0..1 + random.below(5)).map(|_| piece(&mut random, pieces)).collect();
            let number = if n < OF_RULE / 2 { n % 2 % places.len() } else { random.below(places.len()) };
            let place = places[number];
            let cost = goal.cost(engine, place, &unit.concat(), bytes);
            tried += 1;
            if dearest.as_ref().is_none_or(|known| known.cost < cost) {
                dearest = Some(Found { place, pieces: unit, rule: *rule, cost });
            }
        }
        of_rules.extend(dearest);
    }
    of_rules.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    println!("{} rules, dearest unit of their own pieces, {bytes} bytes, {}", of_rules.len(), goal.name());
    of_rules.iter().take(SHOWN).for_each(print);

    let mut kept: Vec<Found> = of_rules.into_iter().take(KEPT).collect();
    while started.elapsed() < time && !kept.is_empty() {
        let at = random.below(kept.len());
        let mut next = kept[at].clone();
        match random.below(6) {
            0 => next.place = places[random.below(places.len())],
            1 if next.pieces.len() > 1 => drop(next.pieces.pop()),
            2 if next.pieces.len() < 12 => {
                let place = random.below(next.pieces.len() + 1);
                next.pieces.insert(place, MARKS[random.below(MARKS.len())].to_owned());
            }
            3 => drop(next.pieces.swap_remove(0)),
            _ if next.pieces.len() < 12 => next.pieces.push(all[random.below(all.len())].clone()),
            _ => {}
        }
        if next.pieces.is_empty() {
            continue;
        }
        next.cost = goal.cost(engine, next.place, &next.unit(), bytes);
        tried += 1;
        if next.cost > kept[at].cost {
            // What another process did to the machine is not to be kept.
            next.cost = next.cost.min(goal.cost(engine, next.place, &next.unit(), bytes));
            if next.cost > kept[at].cost {
                kept[at] = next;
            }
        }
    }
    kept.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    println!("\nafter {tried} messages in {:.0} s, {}", started.elapsed().as_secs_f64(), goal.name());
    kept.iter().take(SHOWN).for_each(print);

    println!("\nby place, the dearest with {SIZES:?} bytes (heads: less), {}", goal.name());
    for place in places {
        let mut worst = [0.0f64; SIZES.len()];
        let mut dearest = (0.0, String::new());
        for found in &kept {
            for (worst, bytes) in worst.iter_mut().zip(SIZES) {
                *worst = worst.max(goal.cost(engine, place, &found.unit(), bytes));
            }
            if worst[1] > dearest.0 {
                dearest = (worst[1], found.unit());
            }
        }
        let numbers = worst.map(|us| format!("{us:>8.1}")).concat();
        println!("{:<14} {numbers}   {}", format!("{place:?}"), shown(&dearest.1));
    }
}

/// Those whose names contain `part`, in any case.
pub(crate) fn places(part: &str) -> Vec<Place> {
    let is_wanted = |place: &Place| format!("{place:?}").to_lowercase().contains(&part.to_lowercase());
    PLACES.into_iter().filter(is_wanted).collect()
}

fn print(found: &Found) {
    let place = format!("{:?}", found.place);
    println!("{:>9.1} {:<7} {place:<14} {}", found.cost, found.rule, shown(&found.unit()));
}

fn shown(unit: &str) -> String {
    unit.escape_debug().take(100).collect()
}

fn piece(random: &mut Random, own: &[String]) -> String {
    match random.below(3) {
        0 => MARKS[random.below(MARKS.len())].to_owned(),
        _ => own[random.below(own.len())].clone(),
    }
}

/// By rule: what its operators' arguments are made of, as far as that can be read off them.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other operator has one text or none")]
fn pieces_of_rules(plan: &Plan) -> Vec<(u64, Vec<String>)> {
    let rules = plan.rules.iter().map(|rule| {
        let arguments = plan.links_of(rule).iter().map(|link| match &link.operator {
            Operator::Rx(Pattern::Fixed(regex)) | Operator::RxGlobal(Pattern::Fixed(regex)) => {
                literals(regex.pattern())
            }
            Operator::Pm(words) => words.words().iter().take(200).map(|word| lossy(word)).collect(),
            operator => {
                let text = operator.argument().and_then(|argument| argument.as_literal()).map(lossy);
                text.into_iter().filter(|text| !text.is_empty()).collect()
            }
        });
        (u64::from(rule.id.0), arguments.flatten().collect::<Vec<String>>())
    });
    rules.filter(|(_, pieces)| !pieces.is_empty()).collect()
}

/// Runs of bytes of a pattern that stand for themselves: letters and digits, and marks that are escaped or
/// mean nothing.
fn literals(pattern: &[u8]) -> Vec<String> {
    let text = lossy(pattern);
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_<>=/:;@#!%&,\"'` ".contains(c));
    let mut runs: Vec<String> = runs.filter(|run| !run.is_empty()).map(str::to_owned).collect();
    runs.sort();
    runs.dedup();
    runs
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
