//! Honest messages stay far below the work that looking at a message may cost.

use std::path::PathBuf;

use crate::corpora_folder;
use portcullis_evaluate::{Args, Content, DetectorsAlone, Engine, Outcome, PlaceArg, run};
use portcullis_semantic::{Class, Level};

/// The detectors, and the largest part of its allowance that a sample used.
struct Measured {
    detectors: DetectorsAlone,
    seen: usize,
    worst: f64,
    done: u64,
    which: String,
}

impl Engine for Measured {
    fn describe(&self) -> String {
        self.detectors.describe()
    }

    fn run(&mut self, content: &Content, class: Option<Class>) -> Outcome {
        let outcome = self.detectors.run(content, class);
        self.seen += 1;
        let (done, allowed) = self.detectors.work();
        self.done = self.done.max(done);
        let part = done as f64 / allowed as f64;
        if part > self.worst {
            (self.worst, self.which) = (part, format!("{content:?}").chars().take(2_000).collect());
        }
        outcome
    }
}

fn measured(path: PathBuf, place: PlaceArg) -> Measured {
    let args = Args {
        paths: vec![path],
        label: None,
        class: None,
        show: 0,
        missed: None,
        by_source: false,
        place,
        weak: None,
        every: 1,
        pad: false,
        pad_bytes: Vec::new(),
        features: None,
    };
    let detectors = DetectorsAlone::new(Level::Balanced);
    let mut engine = Measured { detectors, seen: 0, worst: 0.0, done: 0, which: String::new() };
    run(&args, &mut engine).unwrap();
    engine
}

#[track_caller]
fn check(path: PathBuf, least: usize, share: f64) {
    let found = measured(path, PlaceArg::Form);
    println!("{} seen, at most {:.3} of the allowance, {} bytes read", found.seen, found.worst, found.done);
    assert!(found.seen >= least, "{} of {least}", found.seen);
    assert!(found.worst < share, "{:.2} of the allowance for {}", found.worst, found.which);
}

#[test]
fn honest_messages_need_a_small_part_of_their_allowance() {
    check(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/held-out/benign.jsonl"), 300, 0.6);
}

#[test]
fn and_so_do_those_of_the_corpora() {
    let Some(corpora) = corpora_folder::for_test() else { return };
    check(corpora.join("benign"), 50_000, 0.7);
}
