//! The budget for matching patterns in a transaction, and the patterns that the transaction compiles itself.
//!
//! A pattern that backtracks may be made to need very long, and a pattern with macros is compiled while a
//! request waits. Both have a budget for the whole transaction; what goes beyond it does not match, and the
//! transaction says so: `TX:MSC_PCRE_LIMITS_EXCEEDED`, `MSC_PCRE_LIMITS_EXCEEDED`, `MSC_PCRE_ERROR`.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_match::{Budget, Captures, Exhausted, Pcre, RegexFlags};

use crate::Settings;
use crate::work::Work;

/// Steps of all patterns that backtrack, together: some tenths of a second.
const STEPS_MAX: u64 = 20_000_000;
/// Patterns that a transaction may build.
const BUILT_MAX: usize = 64;
/// Bytes of a pattern whose macros are replaced.
const PATTERN_BYTES_MAX: usize = 8 * 1024;

/// Characters that get a backslash in a pattern with macros, as in ModSecurity 2: not `*`, `|`, `^`, `$`,
/// `{` and `}`.
const ESCAPED: &[u8] = br#"+.?/:()[]\""#;

/// The patterns of one transaction.
#[derive(Debug)]
pub(crate) struct Patterns {
    budget: Budget,
    /// Of patterns with macros; the others have theirs.
    flags: RegexFlags,
    /// These are escaped.
    escapes: bool,
    /// Patterns with their macros replaced.
    built: Vec<Built>,
    /// Of all operators; see [`Work`].
    work: Work,
    /// Searches that were given up; one more if the work of the transaction is used up.
    pub(crate) exhausted: u64,
    /// Patterns with macros that could not be used.
    pub(crate) unusable: u64,
    /// Something went wrong since [`Patterns::take_error`].
    error: Option<PatternError>,
}

/// A pattern with its macros replaced.
#[derive(Debug)]
struct Built {
    text: Box<[u8]>,
    /// `None` if it does not compile.
    pattern: Option<Arc<Pcre>>,
}

/// The reason why a pattern gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// It took more steps than it may.
    Exhausted,
    /// It is none, or too long, or one too many.
    Unusable,
}

impl Default for Patterns {
    fn default() -> Self {
        Patterns {
            budget: Budget { steps: STEPS_MAX, ..Budget::default() },
            flags: RegexFlags::default(),
            escapes: false,
            built: Vec::new(),
            work: Work::default(),
            exhausted: 0,
            unusable: 0,
            error: None,
        }
    }
}

impl Patterns {
    pub(crate) fn new(settings: &Settings) -> Patterns {
        let mut patterns = Patterns::default();
        patterns.flags.multi_line = settings.modsecurity3;
        patterns.escapes = !settings.modsecurity3;
        if let Some(limit) = settings.pcre_match_limit {
            patterns.budget.choices_max = limit;
        }
        if let Some(depth) = settings.pcre_match_limit_recursion {
            patterns.budget.depth_max = depth.min(Budget::DEPTH_MAX);
        }
        patterns
    }

    /// The allowance of work.
    pub(crate) fn work(&mut self) -> &mut Work {
        &mut self.work
    }

    /// Charges the transaction; false if it may do no more, which is noted when it happens.
    #[inline]
    pub(crate) fn charge(&mut self, units: u64) -> bool {
        if self.is_spent() {
            return false;
        }
        self.work.charge(units);
        if self.work.is_spent() {
            self.exhausted += 1;
            self.error = Some(PatternError::Exhausted);
            return false;
        }
        true
    }

    /// True if the transaction may do no more work: the answers of operators are unknown from then on.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.work.is_spent()
    }

    /// Returns true if `pattern` matches in `value`; false if that exceeded the budget.
    pub(crate) fn is_match(&mut self, pattern: &Pcre, value: &[u8]) -> bool {
        let result = pattern.test(value, &mut self.budget);
        self.settle(result)
    }

    /// As [`Patterns::is_match`], with the groups.
    pub(crate) fn captures(&mut self, pattern: &Pcre, value: &[u8], groups: &mut Captures) -> bool {
        let result = pattern.search(value, 0, &mut self.budget, groups);
        self.settle(result)
    }

    /// The leftmost match from `from` on.
    pub(crate) fn search_from(
        &mut self,
        pattern: &Pcre,
        value: &[u8],
        from: usize,
        groups: &mut Captures,
    ) -> Result<bool, Exhausted> {
        pattern.search(value, from, &mut self.budget, groups)
    }

    /// Takes steps for work that is not the machine's.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Exhausted> {
        match self.budget.steps.checked_sub(steps) {
            Some(left) => {
                self.budget.steps = left;
                Ok(())
            }
            None => Err(Exhausted),
        }
    }

    /// The result, with an end of the budget noted and taken for no match.
    pub(crate) fn settle(&mut self, result: Result<bool, Exhausted>) -> bool {
        result.unwrap_or_else(|Exhausted| {
            self.exhausted += 1;
            self.error = Some(PatternError::Exhausted);
            false
        })
    }

    /// The pattern that the text of a rule became.
    pub(crate) fn build(&mut self, text: &[u8]) -> Option<Arc<Pcre>> {
        if let Some(known) = self.built.iter().find(|known| *known.text == *text) {
            let known = known.pattern.clone();
            if known.is_none() {
                self.refuse();
            }
            return known;
        }
        let pattern = (text.len() <= PATTERN_BYTES_MAX && self.built.len() < BUILT_MAX)
            .then(|| Pcre::small(&self.escaped(text), self.flags).ok().map(Arc::new))
            .flatten();
        if self.built.len() < BUILT_MAX {
            self.built.push(Built { text: text.into(), pattern: pattern.clone() });
        }
        if pattern.is_none() {
            self.refuse();
        }
        pattern
    }

    /// The pattern as it is compiled: in ModSecurity 2, all of it has the escapes of `log_escape_re`, not
    /// only what macros stand for.
    fn escaped<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let is_plain = |b: &u8| (0x20..0x7f).contains(b) && !ESCAPED.contains(b);
        if !self.escapes || text.iter().all(is_plain) {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(2 * text.len());
        for &byte in text {
            match byte {
                0x08 => out.extend_from_slice(br"\b"),
                b'\t' => out.extend_from_slice(br"\t"),
                b'\n' => out.extend_from_slice(br"\n"),
                0x0b => out.extend_from_slice(br"\v"),
                b'\r' => out.extend_from_slice(br"\r"),
                byte if is_plain(&byte) => out.push(byte),
                byte if ESCAPED.contains(&byte) => out.extend_from_slice(&[b'\\', byte]),
                byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
        Cow::Owned(out)
    }

    fn refuse(&mut self) {
        self.unusable += 1;
        self.error = Some(PatternError::Unusable);
    }

    /// Returns the error since the last call.
    pub(crate) fn take_error(&mut self) -> Option<PatternError> {
        self.error.take()
    }
}
