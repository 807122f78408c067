//! Attacks and honest requests that were written by hand before the author looked at what the detectors make
//! of them. The results at first sight are in `docs/semantic.md`; rates reached since
//! then stay.

use std::path::PathBuf;

use portcullis_evaluate::{Args, Content, DetectorsAlone, Engine, Outcome, PlaceArg, run};
use portcullis_semantic::{Class, Level};

/// The detectors, and how much of what they saw they blocked.
struct Counted {
    detectors: DetectorsAlone,
    seen: usize,
    blocked: usize,
}

impl Engine for Counted {
    fn describe(&self) -> String {
        self.detectors.describe()
    }

    fn run(&mut self, content: &Content, class: Option<Class>) -> Outcome {
        let outcome = self.detectors.run(content, class);
        self.seen += 1;
        self.blocked += usize::from(outcome.blocked);
        outcome
    }
}

/// Returns the number of blocked samples of a set, the number of all, and the report of the failures.
fn blocked(set: &str) -> (usize, usize, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/held-out").join(set);
    let args = Args {
        paths: vec![path],
        label: None,
        class: None,
        show: usize::MAX,
        missed: None,
        by_source: false,
        place: PlaceArg::Query,
        weak: None,
        every: 1,
        pad: false,
        pad_bytes: Vec::new(),
        features: None,
    };
    let mut engine = Counted { detectors: DetectorsAlone::new(Level::Balanced), seen: 0, blocked: 0 };
    let report = run(&args, &mut engine).unwrap();
    (engine.blocked, engine.seen, report)
}

#[test]
fn attacks_are_found() {
    let (blocked, seen, report) = blocked("attack.jsonl");
    assert!(seen >= 350 && blocked * 1_000 >= seen * 970, "{blocked} of {seen}\n{report}");
}

#[test]
fn honest_requests_pass() {
    let (blocked, seen, report) = blocked("benign.jsonl");
    assert!(seen >= 300 && blocked * 1_000 <= seen * 40, "{blocked} of {seen}\n{report}");
}
