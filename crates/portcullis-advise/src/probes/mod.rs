//! Attacks to try a policy with: what an exclusion would cost is what it lets through of these.
//!
//! ```text
//! seeds.tsv: kind, spot, text  --changes: case, spaces, codings, words around-->  probes
//! ```
//!
//! The texts are the shortest of the detectors' own tests that are blocked for each kind of finding, and
//! variants of their grammar. A change may make a harmless text of an attack; users of probes compare with a
//! policy that blocks them.
//!
//! ```
//! use portcullis_advise::probes::{Spot, probes};
//!
//! let union = probes(Spot::Value).find(|probe| probe.kind == "sqli.union-select").unwrap();
//! assert!(union.text.to_ascii_lowercase().windows(6).any(|word| word == b"select"));
//! ```

mod change;
mod seed;

use portcullis_types::Class;

use change::CHANGES;
use seed::SEEDS;

/// The sort of place that a text is an attack in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The value of a parameter, form field, cookie, JSON scalar or header field.
    Value,
    /// The last segments of a path.
    Path,
    /// The content of a file.
    File,
    /// The name of a file.
    FileName,
    /// A whole body.
    Body,
}

/// An attack.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Its class.
    pub class: Class,
    /// The kind of finding that it is for.
    pub kind: &'static str,
    /// The change that was made to the text; empty: none.
    pub change: &'static str,
    /// The text, not coded for the place that it is put in.
    pub text: Vec<u8>,
}

/// The probes for a spot, in the order of their kinds. Those for values stand for bodies, too.
pub fn probes(spot: Spot) -> impl Iterator<Item = Probe> {
    let is_for = move |own: Spot| own == spot || (own == Spot::Value && spot == Spot::Body);
    SEEDS.iter().filter(move |seed| is_for(seed.spot)).flat_map(|seed| {
        CHANGES.iter().filter_map(|change| {
            let text = (change.make)(&seed.text)?;
            Some(Probe { class: seed.class, kind: seed.kind, change: change.name, text })
        })
    })
}
