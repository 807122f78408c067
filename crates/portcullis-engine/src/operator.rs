mod numbers;

use std::cmp::Ordering;

pub use numbers::NumberKind;
use portcullis_libinjection as libinjection;
use portcullis_match::{Budget, IpSet, Pcre, WordSet};
use portcullis_types::{ByteSet, Span};

use crate::Template;
use crate::patterns::Patterns;
use crate::tx::to_int;

/// A number known at load time, or a macro that gives one.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Number {
    Constant(i64),
    Computed(Template),
}

/// A regular expression.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Compiled at load time.
    Fixed(std::sync::Arc<Pcre>),
    /// With macros: compiled when they are replaced, see `crate::patterns`.
    Computed(Template),
}

/// An operator with its argument compiled. Semantics: ModSecurity 2.9 `re_operators.c`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Operator {
    Rx(Pattern),
    /// As `Rx`, for every match in the value.
    RxGlobal(Pattern),
    Verify(NumberKind, std::sync::Arc<Pcre>),
    Pm(std::sync::Arc<WordSet>),
    Contains(Template),
    ContainsWord(Template),
    Within(Template),
    /// Matches always, and changes the body (`Transaction::substitute`).
    Rsub(Box<crate::Substitution>),
    StrEq(Template),
    StrMatch(Template),
    BeginsWith(Template),
    EndsWith(Template),
    Eq(Number),
    Ge(Number),
    Gt(Number),
    Le(Number),
    Lt(Number),
    IpMatch(IpSet),
    DetectSqli,
    DetectXss,
    /// Matches a byte outside the set.
    ValidateByteRange(ByteSet),
    ValidateUrlEncoding,
    ValidateUtf8Encoding,
    UnconditionalMatch,
    NoMatch,
    GeoLookup(std::sync::Arc<crate::GeoDb>),
    /// Asks, see [`crate::Question`].
    Rbl(std::sync::Arc<crate::Rbl>),
    /// Asks. The bytes are those of the file, whatever the value.
    InspectFile(std::sync::Arc<crate::Scanner>),
}

/// The captures of an operator, for `capture` and for explanations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    /// Spans in the tested value, `TX:0` to `TX:9`.
    pub(crate) groups: portcullis_match::Captures,
    /// A capture that is not part of the value: a libinjection fingerprint, a word as the rule spells it.
    pub(crate) text: Option<Vec<u8>>,
    /// Spans for `TX:10` and on: the further matches of `@rxGlobal`.
    pub(crate) more: Vec<Span>,
    /// `TX:1` to `TX:9` keep what an earlier operator put there.
    pub(crate) keeps_others: bool,
}

impl Captures {
    fn whole(&mut self, span: Span) {
        self.groups = [None; 10];
        self.groups[0] = Some(span);
    }

    pub(crate) fn clear(&mut self) {
        *self = Captures::default();
    }
}

impl Operator {
    /// The template that must be expanded before `Operator::test`, if any.
    pub fn argument(&self) -> Option<&Template> {
        use Operator::*;
        match self {
            Contains(t) | ContainsWord(t) | Within(t) | StrEq(t) | StrMatch(t) | BeginsWith(t)
            | EndsWith(t) => Some(t),
            Rsub(substitution) => Some(&substitution.replacement),
            Rx(Pattern::Computed(t)) | RxGlobal(Pattern::Computed(t)) => Some(t),
            Eq(Number::Computed(t))
            | Ge(Number::Computed(t))
            | Gt(Number::Computed(t))
            | Le(Number::Computed(t))
            | Lt(Number::Computed(t)) => Some(t),
            Rx(Pattern::Fixed(_))
            | RxGlobal(Pattern::Fixed(_))
            | Eq(Number::Constant(_))
            | Ge(Number::Constant(_))
            | Gt(Number::Constant(_))
            | Le(Number::Constant(_))
            | Lt(Number::Constant(_))
            | Verify(..)
            | Pm(_)
            | IpMatch(_)
            | DetectSqli
            | DetectXss
            | ValidateByteRange(_)
            | ValidateUrlEncoding
            | ValidateUtf8Encoding
            | UnconditionalMatch
            | NoMatch
            | GeoLookup(_)
            | Rbl(_)
            | InspectFile(_) => None,
        }
    }

    /// Puts `text` in the place of the template, where that has macros that can only stand for it.
    pub fn set_argument(&mut self, text: &[u8]) {
        use Operator::*;
        match self {
            Contains(t) | ContainsWord(t) | Within(t) | StrEq(t) | StrMatch(t) | BeginsWith(t)
            | EndsWith(t) => *t = Template::literal(text),
            Eq(n) | Ge(n) | Gt(n) | Le(n) | Lt(n) => *n = Number::Constant(to_int(text)),
            // A pattern is compiled with what compiles patterns, and what `@rsub` puts in is looked at as it
            // runs.
            Rx(_) | RxGlobal(_) | Rsub(_) => {}
            // They have no template.
            Verify(..) | Pm(_) | IpMatch(_) | DetectSqli | DetectXss | ValidateByteRange(_)
            | ValidateUrlEncoding | ValidateUtf8Encoding | UnconditionalMatch | NoMatch | GeoLookup(_)
            | Rbl(_) | InspectFile(_) => {}
        }
    }

    /// True if the answer comes from outside, see [`crate::Question`].
    pub(crate) fn asks(&self) -> bool {
        matches!(self, Operator::Rbl(_) | Operator::InspectFile(_))
    }

    /// True if asking it changes nothing: no budget is spent, nothing is looked up or changed.
    pub(crate) fn answers_only(&self) -> bool {
        match self {
            Operator::Rx(Pattern::Fixed(regex)) | Operator::RxGlobal(Pattern::Fixed(regex)) => {
                // Those that backtrack have a budget, which is spent in the order of the rules.
                !regex.backtracks()
            }
            Operator::Rx(Pattern::Computed(_))
            | Operator::RxGlobal(Pattern::Computed(_))
            | Operator::Verify(..)
            | Operator::Rsub(_)
            | Operator::GeoLookup(_)
            | Operator::Rbl(_)
            | Operator::InspectFile(_) => false,
            Operator::Pm(_)
            | Operator::Contains(_)
            | Operator::ContainsWord(_)
            | Operator::Within(_)
            | Operator::StrEq(_)
            | Operator::StrMatch(_)
            | Operator::BeginsWith(_)
            | Operator::EndsWith(_)
            | Operator::Eq(_)
            | Operator::Ge(_)
            | Operator::Gt(_)
            | Operator::Le(_)
            | Operator::Lt(_)
            | Operator::IpMatch(_)
            | Operator::DetectSqli
            | Operator::DetectXss
            | Operator::ValidateByteRange(_)
            | Operator::ValidateUrlEncoding
            | Operator::ValidateUtf8Encoding
            | Operator::UnconditionalMatch
            | Operator::NoMatch => true,
        }
    }

    /// True if only the numeric value of the target counts.
    pub fn is_numeric(&self) -> bool {
        self.comparison().is_some()
    }

    /// The results of comparing the value with the number that match: 1 less, 2 equal, 4 greater, or a sum of
    /// them. `None` for operators on texts.
    #[inline]
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these five compare numbers")]
    pub(crate) fn comparison(&self) -> Option<(u8, &Number)> {
        Some(match self {
            Operator::Lt(number) => (1, number),
            Operator::Eq(number) => (2, number),
            Operator::Le(number) => (3, number),
            Operator::Gt(number) => (4, number),
            Operator::Ge(number) => (6, number),
            _ => return None,
        })
    }

    /// Compares a number; `argument` is the expanded template.
    pub fn test_number(&self, value: i64, argument: &[u8]) -> bool {
        let Some((wanted, number)) = self.comparison() else { return false };
        let number = match number {
            Number::Constant(number) => *number,
            Number::Computed(_) => to_int(argument),
        };
        let result = match value.cmp(&number) {
            Ordering::Less => 1,
            Ordering::Equal => 2,
            Ordering::Greater => 4,
        };
        wanted & result != 0
    }

    /// Tests `value`; `argument` is the expanded template. Fills `found` where `capture` is wanted. False,
    /// whatever the text, if the transaction may do no more work ([`Patterns::is_spent`]): the caller then
    /// takes it for no answer.
    pub(crate) fn test(
        &self,
        value: &[u8],
        argument: &[u8],
        capture: bool,
        found: &mut Captures,
        patterns: &mut Patterns,
    ) -> bool {
        if !patterns.charge(self.units(value.len())) && !self.is_numeric() {
            return false;
        }
        match self {
            Operator::Rx(pattern) => pattern.with(argument, patterns, |regex, patterns| {
                if capture {
                    patterns.captures(regex, value, &mut found.groups)
                } else {
                    patterns.is_match(regex, value)
                }
            }),
            Operator::RxGlobal(pattern) => pattern
                .with(argument, patterns, |regex, patterns| global(regex, value, capture, found, patterns)),
            Operator::Verify(kind, regex) => {
                let result = numbers::find(*kind, regex, value, patterns, &mut found.groups);
                patterns.settle(result)
            }
            Operator::Pm(words) => match words.find_word(value) {
                Some((span, word)) => {
                    found.whole(span);
                    found.text = capture.then(|| word.to_vec());
                    true
                }
                None => false,
            },
            Operator::Contains(_) | Operator::StrMatch(_) => {
                argument.is_empty() || memchr::memmem::find(value, argument).is_some()
            }
            Operator::ContainsWord(_) => contains_word(value, argument),
            Operator::Within(_) => value.is_empty() || memchr::memmem::find(argument, value).is_some(),
            Operator::StrEq(_) => value == argument,
            Operator::BeginsWith(_) => value.starts_with(argument),
            Operator::EndsWith(_) => value.ends_with(argument),
            Operator::Eq(_) | Operator::Ge(_) | Operator::Gt(_) | Operator::Le(_) | Operator::Lt(_) => {
                self.test_number(to_int(value), argument)
            }
            Operator::IpMatch(set) => std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .is_some_and(|ip| set.contains(ip)),
            Operator::DetectSqli => {
                let fingerprint = libinjection::sqli(value);
                found.text = fingerprint.map(|fingerprint| fingerprint.as_str().as_bytes().to_vec());
                found.keeps_others = true;
                fingerprint.is_some()
            }
            Operator::DetectXss => {
                let hit = libinjection::xss(value);
                if hit {
                    // libinjection is given a C string.
                    found.whole(Span::new(0, memchr::memchr(0, value).unwrap_or(value.len())));
                    found.keeps_others = true;
                }
                hit
            }
            Operator::ValidateByteRange(allowed) => value.iter().any(|&b| !allowed.contains(b)),
            Operator::ValidateUrlEncoding => portcullis_match::url_encoding_error(value).is_some(),
            Operator::ValidateUtf8Encoding => portcullis_match::utf8_error(value).is_some(),
            Operator::UnconditionalMatch | Operator::Rsub(_) => true,
            Operator::NoMatch => false,
            // Decided where there is more than the value: questions.rs, geo.rs.
            Operator::Rbl(_) | Operator::InspectFile(_) | Operator::GeoLookup(_) => false,
        }
    }
}

impl Operator {
    /// Finds the part of a matching `value` that the operator matched, for explanations; `None` if there is
    /// no such part.
    pub(crate) fn locate(&self, value: &[u8], argument: &[u8]) -> Option<Span> {
        let whole = Span::new(0, value.len());
        match self {
            Operator::Rx(Pattern::Fixed(regex)) | Operator::RxGlobal(Pattern::Fixed(regex)) => {
                let mut groups = portcullis_match::Captures::default();
                let mut budget = Budget { steps: LOCATE_STEPS_MAX, ..Budget::default() };
                regex.search(value, 0, &mut budget, &mut groups).ok()?;
                groups[0]
            }
            Operator::Pm(words) => words.find(value),
            Operator::Contains(_) | Operator::ContainsWord(_) | Operator::StrMatch(_) => {
                memchr::memmem::find(value, argument).map(|at| Span::new(at, at + argument.len()))
            }
            Operator::BeginsWith(_) => Some(Span::new(0, argument.len())),
            Operator::EndsWith(_) => {
                Some(Span::new(value.len() - argument.len().min(value.len()), value.len()))
            }
            Operator::ValidateByteRange(allowed) => {
                portcullis_match::first_byte_outside(allowed, value).map(|at| Span::new(at, at + 1))
            }
            Operator::Within(_)
            | Operator::StrEq(_)
            | Operator::DetectSqli
            | Operator::DetectXss
            | Operator::Rbl(_)
            | Operator::InspectFile(_)
            | Operator::GeoLookup(_) => Some(whole),
            // No part of the value, or one that is found only with the transaction's budget.
            Operator::Rx(Pattern::Computed(_))
            | Operator::RxGlobal(Pattern::Computed(_))
            | Operator::Verify(..)
            | Operator::Rsub(_)
            | Operator::Eq(_)
            | Operator::Ge(_)
            | Operator::Gt(_)
            | Operator::Le(_)
            | Operator::Lt(_)
            | Operator::IpMatch(_)
            | Operator::ValidateUrlEncoding
            | Operator::ValidateUtf8Encoding
            | Operator::UnconditionalMatch
            | Operator::NoMatch => None,
        }
    }
}

/// Steps to find out where a pattern matched that has been found to match.
const LOCATE_STEPS_MAX: u64 = 100_000;
/// Captures of `@rxGlobal`, over all matches.
const GLOBAL_CAPTURES_MAX: usize = 100;

impl Pattern {
    /// Runs `test` with the compiled pattern; false if there is none.
    fn with(
        &self,
        argument: &[u8],
        patterns: &mut Patterns,
        test: impl FnOnce(&Pcre, &mut Patterns) -> bool,
    ) -> bool {
        match self {
            Pattern::Fixed(regex) => test(regex, patterns),
            Pattern::Computed(_) => patterns.build(argument).is_some_and(|regex| test(&regex, patterns)),
        }
    }
}

/// `@rxGlobal`: follows `Regex::searchGlobal` of ModSecurity 3. The groups of all matches are numbered on; an
/// empty match is followed by a search one byte further.
fn global(regex: &Pcre, value: &[u8], capture: bool, found: &mut Captures, patterns: &mut Patterns) -> bool {
    if !capture {
        return patterns.is_match(regex, value);
    }
    let mut all: Vec<Option<Span>> = Vec::new();
    let mut groups = portcullis_match::Captures::default();
    let mut from = 0;
    while from <= value.len() && all.len() < GLOBAL_CAPTURES_MAX {
        let result = patterns.search_from(regex, value, from, &mut groups);
        if !patterns.settle(result) {
            break;
        }
        let Some(whole) = groups[0] else { break };
        let last = groups.iter().rposition(Option::is_some).unwrap_or(0);
        all.extend_from_slice(&groups[..=last]);
        from = if whole.is_empty() { whole.end as usize + 1 } else { whole.end as usize };
    }
    all.truncate(GLOBAL_CAPTURES_MAX);
    for (place, span) in found.groups.iter_mut().zip(&all) {
        *place = *span;
    }
    found.more = all.iter().skip(10).map(|span| span.unwrap_or_default()).collect();
    !all.is_empty()
}

/// `@containsWord`: `word` stands in `value` with no letter or digit on either side.
fn contains_word(value: &[u8], word: &[u8]) -> bool {
    if word.is_empty() {
        return true;
    }
    let boundary = |b: Option<&u8>| b.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    memchr::memmem::find_iter(value, word).any(|at| {
        boundary(at.checked_sub(1).and_then(|before| value.get(before)))
            && boundary(value.get(at + word.len()))
    })
}
