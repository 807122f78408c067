//! An oracle for changes that must change no verdict: prints every finding of every sample, suppressed ones
//! too, in the order of the samples. A bare value is also looked at in fields whose names stand for
//! something.
//!
//! `cargo run -p portcullis-evaluate --example findings -- PATH... > FILE`; `make semantic-same` compares.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufWriter, StdoutLock, Write as _, stdout};

use clap::Parser;
use portcullis_evaluate::{Args, Content, DetectorsAlone, Engine, EvaluateError, Outcome};
use portcullis_semantic::{Class, Level, Place};

/// Fields for a bare value, beside the one that its file says.
const FIELDS: &[(Place, &str)] = &[
    (Place::Form, "comment"),
    (Place::Json, "content"),
    (Place::Form, "code"),
    (Place::Json, "config"),
    (Place::Form, "sql"),
    (Place::Json, "webhook_url"),
];

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

struct Dump {
    detectors: DetectorsAlone,
    out: BufWriter<StdoutLock<'static>>,
    number: usize,
    hash: DefaultHasher,
}

impl Dump {
    fn look(&mut self, content: &Content) -> Outcome {
        let outcome = self.detectors.run(content, None);
        for finding in self.detectors.findings() {
            let line = format!("{} {finding}", self.number);
            line.hash(&mut self.hash);
            if let Err(error) = writeln!(self.out, "{line}") {
                eprintln!("findings: {error}");
                std::process::exit(1);
            }
        }
        outcome
    }
}

impl Engine for Dump {
    fn describe(&self) -> String {
        self.detectors.describe()
    }

    fn run(&mut self, content: &Content, _class: Option<Class>) -> Outcome {
        self.number += 1;
        if let Content::Value { bytes, .. } = content {
            for &(place, name) in FIELDS {
                self.look(&Content::Value { place, name, bytes: bytes.clone() });
            }
        }
        self.look(content)
    }
}

fn main() -> Result<(), EvaluateError> {
    let args = Cli::parse().args;
    let mut dump = Dump {
        detectors: DetectorsAlone::new(Level::Balanced),
        out: BufWriter::new(stdout().lock()),
        number: 0,
        hash: DefaultHasher::new(),
    };
    portcullis_evaluate::run(&args, &mut dump)?;
    eprintln!("{} samples, hash {:016x}", dump.number, dump.hash.finish());
    Ok(())
}
