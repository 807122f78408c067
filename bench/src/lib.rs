//! Messages, and what inspecting them costs. Development only: see docs/performance.md.
//!
//! ```text
//! cases (seeded messages) --> exchange (our engine, through the facade of the proxy)
//!                         --> reference (the plainest evaluator: the zero line)
//!                         --> files, for the peers in bench/peers
//! ```

mod cases;
mod exchange;
mod growth;
mod honest;
mod random;
mod reference;
mod site;
mod worst;

pub use cases::{CASES, Case, Message, TEXTS};
pub use exchange::{Engine, Prepared, Verdict, policy};
pub use growth::growth;
pub use honest::honest;
pub use random::Random;
pub use reference::ZeroLine;
pub use site::Knows;
pub use worst::{Goal, Search, search};

use portcullis_event::Action;

/// What inspects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// The rules of the CRS.
    Crs,
    /// The detector.
    Semantic,
    /// Both, as one.
    Both,
}

impl Mode {
    /// Its cases: the CRS flags texts that speak of code.
    pub fn cases(self) -> impl Iterator<Item = &'static Case> {
        let texts = if self == Mode::Crs { &[] } else { TEXTS };
        CASES.iter().chain(texts)
    }
}

impl Case {
    /// Its messages, the same for the same seed.
    pub fn messages(&self, seed: u64) -> impl Iterator<Item = Message> {
        let mut random = Random::new(seed);
        (0..self.variants).map(move |_| (self.make)(&mut random))
    }

    /// # Panics
    ///
    /// If the verdict is not the one that the case claims.
    pub fn check(&self, mode: Mode, verdict: Verdict) {
        let right = match self.blocked {
            true => verdict.action == Action::Deny,
            // Beside the detector, rules may log what they do not like.
            false if mode == Mode::Both => verdict.action != Action::Deny,
            false => verdict.action == Action::Pass && verdict.rules.is_empty(),
        };
        assert!(right, "{}: {verdict:?}", self.name);
    }
}
