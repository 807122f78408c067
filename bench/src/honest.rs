//! Needs of benign messages: the largest part of an allowance that one takes, and the most time for each
//! byte.

use std::error::Error;
use std::path::{Path, PathBuf};

use cpu_time::ThreadTime;
use portcullis_evaluate::{Content, Outcome, PlaceArg};
use portcullis_semantic::Class;

use crate::cases::{Message, form, json_string, post};
use crate::exchange::{Engine, Prepared};
use crate::worst::gzip;

/// Shorter messages need the part that any message has.
const SHORT_BYTES_MAX: usize = 1_024;
/// What any message has, of rules and of detectors: the rest comes with its bytes.
const SPARE: [u64; 2] = [2_000_000, portcullis_semantic::limits::WORK_SPARE];
/// A text is sent in pieces of so many bytes, too.
const PIECES: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, usize::MAX];

/// One figure of a message and which it was.
#[derive(Debug, Default)]
struct Most {
    most: f64,
    which: String,
}

impl Most {
    fn see(&mut self, value: f64, which: impl FnOnce() -> String) {
        if value > self.most {
            *self = Most { most: value, which: which() };
        }
    }
}

/// What was seen of a file.
#[derive(Debug, Default)]
struct Needs {
    messages: usize,
    gzip: bool,
    rules: Most,
    detectors: Most,
    rule_units: Most,
    detector_units: Most,
    us_per_kb: Most,
    wire_units: [Most; 2],
    beyond_spare: [Most; 2],
    ns_per_unit: Most,
    us: f64,
    bytes: f64,
    units: (u64, u64),
    rules_spent: usize,
    detectors_spent: usize,
}

struct Measured<'a> {
    engine: &'a mut Engine,
    needs: Needs,
}

impl portcullis_evaluate::Engine for Measured<'_> {
    fn describe(&self) -> String {
        String::new()
    }

    fn run(&mut self, content: &Content, _: Option<Class>) -> Outcome {
        let bytes = content.to_wire();
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let (head, body) = bytes.split_at(at + 4);
            let message = Message { head: head.to_vec(), body: body.to_vec(), response: None };
            self.needs.send(self.engine, message);
        }
        Outcome::default()
    }
}

impl Needs {
    fn send(&mut self, engine: &mut Engine, message: Message) {
        let decoded = message.body.len();
        let message = match self.gzip && !message.body.is_empty() {
            true => gzip(message, 0),
            false => message,
        };
        let which = String::from_utf8_lossy(&[&message.head[..], &message.body].concat())
            .chars()
            .take(300)
            .collect::<String>();
        let Some(message) = Prepared::try_new(message) else { return };
        // The better of two: the first may build automata.
        let mut us = f64::MAX;
        let mut verdict = engine.exchange(&message);
        for _ in 0..2 {
            let started = ThreadTime::now();
            verdict = engine.exchange(&message);
            us = us.min(started.elapsed().as_secs_f64() * 1e6);
        }
        self.messages += 1;
        let which = || format!("{} B, {decoded} decoded: {}", message.bytes(), which.escape_debug());
        let part = |(done, allowed): (u64, u64)| done as f64 / allowed.max(1) as f64;
        self.rules.see(part(verdict.work), which);
        self.detectors.see(part(verdict.detector_work), which);
        self.rules_spent += usize::from(verdict.work.0 > verdict.work.1);
        self.detectors_spent += usize::from(verdict.detector_work.0 > verdict.detector_work.1);
        for ((most, spare), (done, _)) in
            self.beyond_spare.iter_mut().zip(SPARE).zip([verdict.work, verdict.detector_work])
        {
            most.see(done.saturating_sub(spare) as f64 / message.bytes() as f64, which);
        }
        if message.bytes() > SHORT_BYTES_MAX {
            let bytes = message.bytes().max(decoded) as f64;
            self.rule_units.see(verdict.work.0 as f64 / bytes, which);
            self.detector_units.see(verdict.detector_work.0 as f64 / bytes, which);
            self.us_per_kb.see(us * 1024.0 / message.bytes() as f64, which);
            for (most, (done, _)) in self.wire_units.iter_mut().zip([verdict.work, verdict.detector_work]) {
                most.see(done as f64 / message.bytes() as f64, which);
            }
            let units = verdict.work.0 + verdict.detector_work.0;
            self.ns_per_unit.see(us * 1e3 / units.max(1) as f64, which);
            self.us += us;
            self.bytes += message.bytes().max(decoded) as f64;
            self.units.0 += verdict.work.0;
            self.units.1 += verdict.detector_work.0;
        }
    }
}

/// Sends each file and prints what its messages need at most.
pub fn honest(engine: &mut Engine, paths: &[PathBuf], gzip: bool) -> Result<(), Box<dyn Error>> {
    for path in paths {
        let needs = match path.extension().is_some_and(|end| end == "jsonl") {
            true => of_requests(engine, path, gzip)?,
            false => of_text(engine, &std::fs::read(path)?, gzip),
        };
        println!(
            "{}: {} messages, {} beyond the allowance of rules, {} of detectors",
            path.display(),
            needs.messages,
            needs.rules_spent,
            needs.detectors_spent
        );
        for (name, most) in [
            ("part of the allowance of rules", &needs.rules),
            ("part of that of detectors", &needs.detectors),
            ("units of rules for each byte", &needs.rule_units),
            ("units of detectors for each byte", &needs.detector_units),
            ("units of rules for each on the wire", &needs.wire_units[0]),
            ("units of detectors for each on the wire", &needs.wire_units[1]),
            ("the same of all beyond the spare, rules", &needs.beyond_spare[0]),
            ("the same of all beyond the spare", &needs.beyond_spare[1]),
            ("us for each KB on the wire", &needs.us_per_kb),
            ("ns for each unit", &needs.ns_per_unit),
        ] {
            println!("  {:>9.3} {name:<39} {}", most.most, most.which);
        }
        println!(
            "  those over 1 KB: {:.1} ns, {:.1} units of rules and {:.1} of detectors for each byte",
            needs.us * 1e3 / needs.bytes,
            needs.units.0 as f64 / needs.bytes,
            needs.units.1 as f64 / needs.bytes
        );
    }
    Ok(())
}

fn of_requests(engine: &mut Engine, path: &Path, gzip: bool) -> Result<Needs, Box<dyn Error>> {
    let args = portcullis_evaluate::Args {
        paths: vec![path.to_owned()],
        label: Some(portcullis_evaluate::Label::Benign),
        class: None,
        show: 0,
        missed: None,
        by_source: false,
        place: PlaceArg::Form,
        weak: None,
        every: 1,
        pad: false,
        pad_bytes: Vec::new(),
        features: None,
    };
    let mut measured = Measured { engine, needs: Needs { gzip, ..Needs::default() } };
    portcullis_evaluate::run(&args, &mut measured)?;
    Ok(measured.needs)
}

/// The text as a body, as a string of JSON and as a field of a form, whole and in pieces.
fn of_text(engine: &mut Engine, text: &[u8], gzip: bool) -> Needs {
    let mut needs = Needs { gzip, ..Needs::default() };
    for bytes in PIECES {
        for piece in text.chunks(bytes.min(text.len().max(1))) {
            let text = String::from_utf8_lossy(piece);
            needs.send(engine, post("text/plain", piece));
            needs.send(engine, post("application/json", json_string("body", &text)));
            needs.send(engine, form(&[("body", text.into_owned())]));
        }
        if bytes > text.len() {
            break;
        }
    }
    needs
}
