//! The differences that are understood: one predicate each, with its reason.

use portcullis_reference::Request;

use crate::rule_set::{Link, RuleSet};
use crate::seen::{Difference, Entry, Seen};

mod modsecurity2;
mod modsecurity3;

/// The peer of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The plain evaluator.
    Reference,
    /// libmodsecurity 3.
    ModSecurity3,
    /// Apache with ModSecurity 2.
    ModSecurity2,
}

/// The side that causes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The peer does not do what its own manual says, or what ModSecurity 2 does.
    Theirs,
    /// We chose to differ; the documents say so.
    Choice,
}

/// Not a class, since it is not guessed: of fields with one name Apache makes one, their values joined by
/// commas, before any rule sees them. We show each, as libmodsecurity and Coraza do. A pair counts for this
/// if nothing differs once they are joined.
pub const FIELDS_APART: &str = "fields-apart";

/// A kind of difference that is understood.
pub struct Class {
    /// Its name in tables.
    pub name: &'static str,
    /// The side that causes it.
    pub kind: Kind,
    /// The cause, and where it is documented.
    pub reason: &'static str,
    /// Returns true if a difference is one of these.
    pub holds: fn(&Case<'_>) -> bool,
}

/// A difference with everything about it.
pub struct Case<'c> {
    /// The rules.
    pub rules: &'c RuleSet,
    /// The request.
    pub request: &'c Request,
    /// The result of this engine.
    pub ours: &'c Seen,
    /// The result of the peer.
    pub theirs: &'c Seen,
    /// The first difference.
    pub difference: &'c Difference,
    /// Against ModSecurity 3: ModSecurity 2 saw just what we saw.
    pub outvoted: bool,
    /// Nothing can be taken from rules or request without losing the difference, so what is left has to do
    /// with it.
    pub minimal: bool,
}

/// The class of a difference.
pub fn classify(peer: Peer, case: &Case<'_>) -> Option<&'static Class> {
    classes(peer).iter().find(|class| (class.holds)(case))
}

/// All classes of a peer.
pub fn classes(peer: Peer) -> &'static [Class] {
    match peer {
        Peer::Reference => &[],
        Peer::ModSecurity3 => modsecurity3::CLASSES,
        Peer::ModSecurity2 => modsecurity2::CLASSES,
    }
}

impl Case<'_> {
    /// Our entry of the first difference.
    fn our_match(&self) -> Option<&Entry> {
        if let Difference::Match { ours, .. } = self.difference { ours.as_ref() } else { None }
    }

    /// Their entry of the first difference.
    fn their_match(&self) -> Option<&Entry> {
        if let Difference::Match { theirs, .. } = self.difference { theirs.as_ref() } else { None }
    }

    /// True if one of the two entries is of such a link.
    fn about(&self, is_such: impl Fn(&Link) -> bool) -> bool {
        [self.our_match(), self.their_match()].into_iter().any(|entry| self.link(entry).is_some_and(&is_such))
    }

    /// The first difference is about a variable without a key; in a minimal case it is enough that a rule
    /// reads it.
    fn mentions(&self, variable: &str) -> bool {
        let names = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.variable == variable);
        let reads = || self.rules.links().any(|link| link.targets.iter().any(|target| target == variable));
        names(self.our_match()) || names(self.their_match()) || (self.minimal && reads())
    }

    /// The phase that the first link of an entry's rule names.
    fn phase_of(&self, entry: &Entry) -> Option<u32> {
        let head = &self.rules.link((entry.link.0, 0))?.head;
        head.split("phase:").nth(1)?.chars().next()?.to_digit(10)
    }

    /// Nothing is refused for its length.
    fn detects_only(&self) -> bool {
        let by_ctl = || self.rules.links().any(|link| link.has("ctl:ruleEngine=DetectionOnly"));
        self.rules.lines().any(|line| line == "SecRuleEngine DetectionOnly") || by_ctl()
    }

    /// The link of an entry.
    fn link(&self, entry: Option<&Entry>) -> Option<&Link> {
        self.rules.link(entry?.link)
    }
}

/// The body is taken for JSON.
fn has_json_body(case: &Case<'_>) -> bool {
    let is_json = |value: &[u8]| value.to_ascii_lowercase().windows(4).any(|four| four == b"json");
    let forced = case.rules.lines().any(|line| line.contains("requestBodyProcessor=JSON"));
    let typed = case
        .request
        .headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case(b"Content-Type") && is_json(value));
    case.request.body.is_some()
        && forced
        && (typed || !case.rules.lines().any(|line| line.contains("id:902")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_in_the_documents() {
        let path = portcullis_testkit::workspace_root().join("docs/differential.md");
        let text = std::fs::read_to_string(path).unwrap();
        let of_classes = [Peer::ModSecurity2, Peer::ModSecurity3].into_iter().flat_map(classes);
        for name in of_classes.map(|class| class.name).chain([FIELDS_APART]) {
            assert!(text.contains(&format!("`{name}`")), "{name} is not in docs/differential.md");
        }
    }
}
