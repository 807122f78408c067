//! `--pad`: how many attacks are still detected with ordinary text beside them, or with marks of a quotation
//! around them, where they survive it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use portcullis_semantic::{Class, Place};

use crate::padding::{Kind, Position, Wrapper, pad};
use crate::sample::{Label, Sample};
use crate::survival::{Purpose, survives, survives_in};
use crate::{Content, Engine, Outcome};

/// The fields: place, name, what they are for.
const FIELDS: &[(Place, &str, Purpose)] = &[
    (Place::Query, "q", Purpose::Neutral),
    (Place::Form, "name", Purpose::Neutral),
    (Place::Form, "comment", Purpose::Text),
];

/// Fields whose names stand for something, beside one that stands for nothing.
const PURPOSES: &[(Place, &str, Purpose)] = &[
    (Place::Query, "q", Purpose::Neutral),
    (Place::Form, "name", Purpose::Neutral),
    (Place::Form, "comment", Purpose::Text),
    (Place::Form, "content", Purpose::Text),
    (Place::Form, "html", Purpose::Text),
    (Place::Form, "code", Purpose::Text),
    (Place::Form, "script", Purpose::Text),
    (Place::Form, "source", Purpose::Text),
    (Place::Form, "template", Purpose::Text),
    (Place::Form, "config", Purpose::Text),
    (Place::Form, "sql", Purpose::Text),
    (Place::Form, "title", Purpose::Text),
    (Place::Form, "password", Purpose::Text),
];

type Key = (&'static str, &'static str, &'static str, &'static str);

#[derive(Default)]
struct Row {
    /// Entries that survive, and those of them that are detected without text.
    entries: usize,
    plain: usize,
    /// Entries detected, by size of the text.
    padded: Vec<usize>,
}

/// Counts padded attacks.
pub(crate) struct Padded {
    bytes: Vec<usize>,
    rows: BTreeMap<Key, Row>,
    /// By class, field and marks: entries that are detected in `q` without marks, and of them with them.
    wrapped: BTreeMap<(&'static str, &'static str, &'static str), (usize, usize)>,
    /// Detected without text and missed with it, for `--missed` and `--show`.
    lost: Vec<String>,
    number: usize,
}

impl Padded {
    pub fn new(bytes: &[usize]) -> Padded {
        Padded {
            bytes: bytes.to_vec(),
            rows: BTreeMap::new(),
            wrapped: BTreeMap::new(),
            lost: Vec::new(),
            number: 0,
        }
    }

    /// Runs `sample` with all texts in all fields; what came of each goes to `note`, for training.
    pub fn run(
        &mut self,
        set: &str,
        sample: &Sample,
        class: Option<Class>,
        engine: &mut dyn Engine,
        note: &mut dyn FnMut(&Content, &Outcome),
    ) {
        let Content::Value { bytes: payload, .. } = &sample.content else { return };
        if sample.label != Label::Attack {
            return;
        }
        self.number += 1;
        self.wrap(set, payload, class, engine);
        for &(place, name, purpose) in FIELDS {
            let at = |bytes: Vec<u8>| Content::Value { place, name, bytes };
            let plain = engine.run(&at(payload.clone()), class);
            let Some(class_of) = class_of(set).or(plain.class.filter(|_| plain.blocked)) else { continue };
            for position in Position::ALL {
                for kind in Kind::ALL {
                    if !survives(class_of, payload, position, kind, purpose) {
                        continue;
                    }
                    let key = (class_of.name(), name, position.name(), kind.name());
                    let row = self.rows.entry(key).or_default();
                    row.entries += 1;
                    row.plain += usize::from(plain.stopped());
                    row.padded.resize(self.bytes.len(), 0);
                    for (column, &bytes) in self.bytes.iter().enumerate() {
                        let content = at(pad(payload, position, kind, bytes, self.number));
                        let outcome = engine.run(&content, class);
                        row.padded[column] += usize::from(outcome.stopped());
                        if plain.stopped() && !outcome.stopped() {
                            let terms: Vec<String> = outcome
                                .terms
                                .iter()
                                .map(|(name, weight)| format!("{name} {weight:+.1}"))
                                .collect();
                            self.lost.push(format!(
                                "{} {name} {} {} {bytes}: {} [{}]",
                                class_of.name(),
                                position.name(),
                                kind.name(),
                                payload.escape_ascii(),
                                terms.join(", ")
                            ));
                        }
                        note(&content, &outcome);
                    }
                }
            }
        }
    }

    /// Runs `payload`, plain and in all marks, in a field of each purpose.
    fn wrap(&mut self, set: &str, payload: &[u8], class: Option<Class>, engine: &mut dyn Engine) {
        let (place, name, _) = PURPOSES[0];
        let plain = engine.run(&Content::Value { place, name, bytes: payload.to_vec() }, class);
        let Some(class_of) = class_of(set).or(plain.class).filter(|_| plain.stopped()) else { return };
        for &(place, name, purpose) in PURPOSES {
            let wrappers = Wrapper::ALL.iter().map(|wrapper| Some(*wrapper));
            for wrapper in [None].into_iter().chain(wrappers) {
                let survives = match wrapper {
                    Some(wrapper) => survives_in(class_of, payload, wrapper, purpose),
                    None => survives(class_of, payload, Position::Before, Kind::Letter, purpose),
                };
                if !survives {
                    continue;
                }
                let bytes = wrapper.map_or(payload.to_vec(), |wrapper| wrapper.around(payload));
                let outcome = engine.run(&Content::Value { place, name, bytes }, class);
                let mark = wrapper.map_or("plain", Wrapper::name);
                let row = self.wrapped.entry((class_of.name(), name, mark)).or_default();
                *row = (row.0 + 1, row.1 + usize::from(outcome.stopped()));
                if !outcome.stopped() {
                    let class = class_of.name();
                    self.lost.push(format!("{class} {name} {mark}: {}", payload.escape_ascii()));
                }
            }
        }
    }

    /// The attacks that were lost, one a line.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// The table: what is detected with text as a share of what is detected without.
    pub fn table(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "\npadded: detected, as a share of what is detected without text");
        let _ = write!(
            out,
            "{:<16} {:<8} {:<7} {:<7} {:>7} {:>8}",
            "class", "field", "text", "kind", "entries", "plain"
        );
        for bytes in &self.bytes {
            let _ = write!(out, " {bytes:>8}");
        }
        out.push('\n');
        let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for ((class, field, position, kind), row) in &self.rows {
            let share = |part: usize, of: usize| match of {
                0 => "-".to_owned(),
                _ => format!("{:.1} %", part as f64 * 100.0 / of as f64),
            };
            let plain = share(row.plain, row.entries);
            let _ =
                write!(out, "{class:<16} {field:<8} {position:<7} {kind:<7} {:>7} {plain:>8}", row.entries);
            for &padded in &row.padded {
                let _ = write!(out, " {:>8}", share(padded, row.plain));
                let sum = all.entry(class).or_default();
                *sum = (sum.0 + padded, sum.1 + row.plain);
            }
            out.push('\n');
        }
        for (class, (padded, plain)) in all {
            let share = padded as f64 * 100.0 / plain.max(1) as f64;
            let _ = writeln!(out, "{class:<16} all fields, texts and sizes: {share:.1} % of the plain rate");
        }
        let _ = writeln!(out, "\nwith marks of a quotation: detected, as a share of what is detected in q");
        for ((class, field, mark), (entries, found)) in &self.wrapped {
            let share = *found as f64 * 100.0 / *entries as f64;
            let _ = writeln!(out, "{class:<16} {field:<8} {mark:<14} {entries:>7} {share:>8.1} %");
        }
        out
    }
}

/// The class of a list, where its name tells; the others have attacks of several.
fn class_of(set: &str) -> Option<Class> {
    const NAMES: [(&str, Class); 13] = [
        ("sqli", Class::Sqli),
        ("xss", Class::Xss),
        ("lfi", Class::Path),
        ("rfi", Class::RemoteFile),
        ("ssti", Class::Template),
        ("ssrf", Class::Ssrf),
        ("log4", Class::Log4j),
        ("nosql", Class::NoSql),
        ("ldap", Class::Ldap),
        ("xpath", Class::Xpath),
        ("ssi", Class::Ssi),
        ("crlf", Class::Crlf),
        ("xxe", Class::Xxe),
    ];
    let set = set.to_ascii_lowercase();
    // `nosql` has `sql` in it, `ssi` is short: names begin the file's.
    NAMES.iter().find(|(name, _)| set.starts_with(name)).map(|(_, class)| *class)
}
