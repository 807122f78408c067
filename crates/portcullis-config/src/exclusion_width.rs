//! How much an exclusion takes out of inspection.
//!
//! An exclusion that answers a false positive names what was found (a class, a kind or a rule) and where (a
//! field or a path). One that does not is a decision about the protection of a site: administrators make it,
//! and
//! `portcullis check` warns of those that end blocking as a whole.

use std::fmt;

use portcullis_types::{Shape, Variable};

use crate::checked::Policy;
use crate::exclusion_id::ExclusionIdentity;

/// Rules of the CRS that initialize, evaluate or report anomaly scores: without one of them the matches of
/// all other rules lead to nothing. First and last id, and what the rules do.
///
/// Source: the files REQUEST-901-INITIALIZATION, REQUEST-949-BLOCKING-EVALUATION,
/// RESPONSE-959-BLOCKING-EVALUATION and RESPONSE-980-CORRELATION of the CRS, which reserves a range of a
/// thousand ids for each file.
const SCORE_RULES: [(u32, u32, &str); 4] = [
    (901_000, 901_999, "sets the points and thresholds of anomaly scores"),
    (949_000, 949_999, "adds up the inbound anomaly score and blocks by it"),
    (959_000, 959_999, "adds up the outbound anomaly score and blocks by it"),
    (980_000, 980_999, "reports anomaly scores"),
];

/// Letters that a name or path with `*` has to have, to be taken for a part of a site.
const LETTERS_MIN: usize = 3;

/// The reason why an exclusion is more than the answer to a false positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// All findings, in all values, on all paths.
    Everything,
    /// It is of this rule, which blocks for others; and what the rule does.
    Decision(u32, &'static str),
    /// All findings of some values or paths.
    AnyFinding,
    /// Some findings or rules, in all values on all paths.
    AnyPlace,
    /// It is a directive, which may be anything.
    Directive,
}

impl Width {
    /// True if the exclusion ends blocking as a whole, or most of it.
    pub fn ends_blocking(&self) -> bool {
        matches!(self, Width::Everything | Width::Decision(..))
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Width::Everything => f.write_str(
                "it excludes all findings in all values, which ends detection: name a class or a kind, and a field \
                 or a path",
            ),
            Width::Decision(rule, what) => write!(
                f,
                "rule {rule} {what}: without it the matches of other rules do not block; exclude the rules that \
                 matched wrongly"
            ),
            Width::AnyFinding => {
                f.write_str("it excludes every class of attacks: name a class, a kind or a rule")
            }
            Width::AnyPlace => f.write_str(
                "it applies to every field on every path: name a field (`form:comment`, `ARGS:comment`) or a path",
            ),
            Width::Directive => f.write_str("directives are not checked for what they exclude"),
        }
    }
}

/// What a rule of this id does for the anomaly score, if the CRS has one with this id.
pub fn score_rule(id: u32) -> Option<&'static str> {
    SCORE_RULES.iter().find(|(first, last, _)| (*first..=*last).contains(&id)).map(|(.., what)| *what)
}

/// The reason why an exclusion with these parts is more than the answer to a false positive; none if it names
/// what was found and where. `decides`: the rule of this id blocks by what other rules have found.
pub fn exclusion_width(parts: &ExclusionIdentity<'_>, decides: impl Fn(u32) -> bool) -> Option<Width> {
    match parts {
        ExclusionIdentity::Semantic([class, location, path, kind]) => {
            let names_finding = class.or(*kind).is_some();
            let names_place = location.is_some_and(is_field) || path.is_some_and(is_part);
            width(names_finding, names_place)
        }
        ExclusionIdentity::Rule(rules, [target, path]) => {
            let decision = rules.iter().find_map(|&id| {
                let other = || decides(id).then_some("blocks by what other rules have found");
                score_rule(id).or_else(other).map(|what| Width::Decision(id, what))
            });
            let names_place = target.is_some_and(is_target) || path.is_some_and(is_part);
            decision.or_else(|| width(!rules.is_empty(), names_place))
        }
        ExclusionIdentity::Directive(_) => Some(Width::Directive),
        // Profiles are part of the program.
        ExclusionIdentity::Profile(..) | ExclusionIdentity::ProfileRule(..) => None,
    }
}

/// True if an exclusion is of one field: the others of the same path are inspected as before.
pub fn is_of_field(parts: &ExclusionIdentity<'_>) -> bool {
    match parts {
        ExclusionIdentity::Semantic([_, location, ..]) => location.is_some_and(is_field),
        ExclusionIdentity::Rule(_, [target, _]) => target.is_some_and(is_target),
        ExclusionIdentity::Directive(_)
        | ExclusionIdentity::Profile(..)
        | ExclusionIdentity::ProfileRule(..) => false,
    }
}

impl Policy {
    /// The width of each of its exclusions, those from the semantic detector first.
    pub fn exclusion_widths(&self, decides: impl Fn(u32) -> bool) -> impl Iterator<Item = Option<Width>> {
        let semantic = self.semantic.exclude.iter().map(|each| {
            let path = each.terms.path.as_deref();
            let parts =
                [each.class.map(|class| class.name()), each.location.as_deref(), path, each.kind.as_deref()];
            let is_own = each.profile.is_none();
            is_own.then(|| exclusion_width(&ExclusionIdentity::Semantic(parts), |_| false)).flatten()
        });
        let rules = self.rule_exclude.iter().map(move |each| {
            let parts = [each.target_text.as_deref(), each.terms.path.as_deref()];
            let is_own = each.profile.is_none();
            is_own.then(|| exclusion_width(&ExclusionIdentity::Rule(&each.rules, parts), &decides)).flatten()
        });
        semantic.chain(rules)
    }
}

fn width(names_finding: bool, names_place: bool) -> Option<Width> {
    match (names_finding, names_place) {
        (true, true) => None,
        (false, false) => Some(Width::Everything),
        (false, true) => Some(Width::AnyFinding),
        (true, false) => Some(Width::AnyPlace),
    }
}

/// `PLACE:NAME` or `*:NAME` with a name that is not for all.
fn is_field(location: &str) -> bool {
    location.split_once(':').is_some_and(|(_, name)| is_name(name))
}

/// `VARIABLE:NAME` with a name that is not for all, or a variable that has one value.
fn is_target(target: &str) -> bool {
    match target.split_once(':') {
        Some((_, name)) => is_name(name),
        None => Variable::from_name(target).is_some_and(|variable| variable.shape() == Shape::Scalar),
    }
}

fn is_name(name: &str) -> bool {
    match name.contains('*') {
        true => letters(name) >= LETTERS_MIN,
        false => !name.is_empty(),
    }
}

/// A path that is not for the whole site.
fn is_part(path: &str) -> bool {
    let mut fixed = String::new();
    let mut depth = 0_usize;
    for sign in path.chars() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => fixed.push(sign),
            _ => {}
        }
    }
    match path.contains('*') {
        true => letters(&fixed) >= LETTERS_MIN,
        false => letters(&fixed) > 0,
    }
}

fn letters(text: &str) -> usize {
    text.chars().filter(|sign| sign.is_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_exclusions() {
        let check = |class, kind, location, path, expected: Option<Width>| {
            let parts = [class, location, path, kind];
            let found = exclusion_width(&ExclusionIdentity::Semantic(parts), |_| false);
            assert_eq!(found, expected, "{parts:?}");
        };
        let (sqli, union) = (Some("sqli"), Some("sqli.union"));
        check(sqli, None, Some("form:comment"), None, None);
        check(None, union, None, Some("/posts"), None);
        check(sqli, None, None, Some("/posts/{id}/*"), None);
        check(sqli, None, Some("*:q"), None, None);
        for location in ["*", "*:*", "form", "form:*", "form:**", "*:*e*", "form:", "*:"] {
            check(sqli, None, Some(location), None, Some(Width::AnyPlace));
            check(None, None, Some(location), None, Some(Width::Everything));
            check(sqli, None, Some(location), Some("/posts"), None);
        }
        for path in ["/", "*", "/*", "//", "/{id}", "/{id}/{name}", "/{id}*", "*/", "/*p*"] {
            check(None, union, None, Some(path), Some(Width::AnyPlace));
            check(None, None, None, Some(path), Some(Width::Everything));
        }
        check(None, None, Some("form:comment"), Some("/posts"), Some(Width::AnyFinding));
        check(None, None, None, None, Some(Width::Everything));
    }

    #[test]
    fn fields_and_paths() {
        let semantic =
            |location, path| is_of_field(&ExclusionIdentity::Semantic([None, location, path, None]));
        assert!(semantic(Some("form:comment"), None) && semantic(Some("*:q"), Some("/posts")));
        assert!(!semantic(Some("form"), Some("/posts")) && !semantic(None, Some("/posts")));
        let rule = |target, path| is_of_field(&ExclusionIdentity::Rule(&[942_100], [target, path]));
        assert!(rule(Some("ARGS:comment"), None) && rule(Some("REQUEST_URI"), Some("/posts")));
        assert!(!rule(Some("ARGS"), Some("/posts")) && !rule(None, Some("/posts")));
    }

    #[test]
    fn rule_exclusions() {
        let check = |rules: &[u32], target, path, expected: Option<Width>| {
            let parts = ExclusionIdentity::Rule(rules, [target, path]);
            assert_eq!(exclusion_width(&parts, |id| id == 7), expected, "{rules:?} {target:?} {path:?}");
        };
        check(&[942_100], Some("ARGS:comment"), None, None);
        check(&[942_100], Some("REQUEST_URI"), None, None);
        check(&[942_100, 942_200], None, Some("/posts"), None);
        for target in ["ARGS", "ARGS:*", "REQUEST_HEADERS", "TX", "REQUEST_COOKIES:*a*", "NOTHING"] {
            check(&[942_100], Some(target), None, Some(Width::AnyPlace));
        }
        check(&[942_100], None, Some("/"), Some(Width::AnyPlace));
        for rule in [949_110, 949_060, 959_100, 980_130, 901_140] {
            for rules in [vec![rule], vec![942_100, rule]] {
                let found =
                    exclusion_width(&ExclusionIdentity::Rule(&rules, [Some("ARGS:a"), Some("/a")]), |_| {
                        false
                    });
                assert!(found.is_some_and(|width| width.ends_blocking()), "{rule}");
            }
        }
        check(&[7], Some("ARGS:a"), None, Some(Width::Decision(7, "blocks by what other rules have found")));
    }
}
