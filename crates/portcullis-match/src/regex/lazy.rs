//! An automaton that is built when it is first asked.
//!
//! Building is most of what loading rules costs, and many rules never see a value that passes their
//! [`Gate`](crate::Gate). Whatever could be wrong with a pattern is found before, while it can still be
//! reported.

use std::sync::{Mutex, OnceLock, PoisonError};

use regex_syntax::hir::{Class, Hir, HirKind};

use super::{NFA_BYTES_MAX, Regex, RegexError, RegexFlags, linear, parser};

pub(super) struct Lazy {
    regex: OnceLock<Box<Regex>>,
    /// The pattern that it is built from, until then; without it the pattern is read again.
    hir: Mutex<Option<Hir>>,
    group_count: usize,
    /// It is within the limits.
    is_sure: bool,
}

impl Lazy {
    /// For a pattern that was read. One that might become too large is built now, and refused if it does.
    pub(super) fn new(pattern: &[u8], hir: Hir) -> Result<Lazy, RegexError> {
        let mut lazy = Lazy::known(hir.properties().explicit_captures_len());
        lazy.is_sure = automaton_bytes_at_most(&hir) <= NFA_BYTES_MAX;
        if !lazy.is_sure {
            let _ = lazy.regex.set(Box::new(Regex::from_hir(pattern, &hir, NFA_BYTES_MAX)?));
        } else {
            *lazy.hir() = Some(hir);
        }
        Ok(lazy)
    }

    /// Built within a limit of its own.
    pub(super) fn built(regex: Regex) -> Lazy {
        let lazy = Lazy { is_sure: false, ..Lazy::known(regex.group_count()) };
        let _ = lazy.regex.set(Box::new(regex));
        lazy
    }

    /// For a pattern of which is known that [`Lazy::new`] took it.
    pub(super) fn known(group_count: usize) -> Lazy {
        Lazy { regex: OnceLock::new(), hir: Mutex::new(None), group_count, is_sure: true }
    }

    /// True if [`Lazy::known`] would do.
    pub(super) fn is_sure(&self) -> bool {
        self.is_sure
    }

    pub(super) fn group_count(&self) -> usize {
        self.group_count
    }

    #[inline]
    pub(super) fn regex(&self, pattern: &[u8], flags: RegexFlags) -> &Regex {
        match self.regex.get() {
            Some(regex) => regex,
            None => self.build(pattern, flags),
        }
    }

    /// `None` before it is built.
    pub(super) fn regex_if_built(&self) -> Option<&Regex> {
        self.regex.get().map(|regex| &**regex)
    }

    /// # Panics
    ///
    /// Never, unless [`automaton_bytes_at_most`] is wrong.
    #[cold]
    fn build(&self, pattern: &[u8], flags: RegexFlags) -> &Regex {
        self.regex.get_or_init(|| {
            let hir = self.hir().take().or_else(|| read(pattern, flags));
            let built = hir.map(|hir| Regex::from_hir(pattern, &hir, NFA_BYTES_MAX));
            match built {
                Some(Ok(regex)) => Box::new(regex),
                _ => unreachable!("what was read at load time can be built: {}", pattern.escape_ascii()),
            }
        })
    }

    /// The pattern in the form that it is built from.
    pub(super) fn with_hir<T>(
        &self,
        pattern: &[u8],
        flags: RegexFlags,
        ask: impl FnOnce(&Hir) -> T,
    ) -> Option<T> {
        match &*self.hir() {
            Some(hir) => Some(ask(hir)),
            None => read(pattern, flags).as_ref().map(ask),
        }
    }

    fn hir(&self) -> std::sync::MutexGuard<'_, Option<Hir>> {
        self.hir.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(pattern: &[u8], flags: RegexFlags) -> Option<Hir> {
    linear::lower_exactly(&parser::parse(pattern, flags).ok()?)
}

/// Bytes of a state, its transitions not counted.
const STATE_BYTES: usize = 48;
/// Bytes of a transition.
const TRANSITION_BYTES: usize = 8;

/// No Thompson automaton of `hir` takes more, forwards or backwards, with what stands before and behind it.
fn automaton_bytes_at_most(hir: &Hir) -> usize {
    nfa_bytes_at_most(hir).saturating_add(16 * STATE_BYTES)
}

/// The part of `hir`. Recursion follows the nesting of the pattern, which its parser bounds.
fn nfa_bytes_at_most(hir: &Hir) -> usize {
    let states = |count: usize| count.saturating_mul(STATE_BYTES);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => states(1),
        HirKind::Literal(text) => states(text.0.len()),
        HirKind::Class(Class::Bytes(class)) => states(1) + class.ranges().len() * 2 * TRANSITION_BYTES,
        // None comes from our parser; as text it is at most so many sequences of four ranges.
        HirKind::Class(Class::Unicode(class)) => states(32 * class.ranges().len() + 1),
        HirKind::Repetition(repetition) => {
            let rounds = repetition.max.unwrap_or(repetition.min).max(repetition.min).saturating_add(1);
            let round = nfa_bytes_at_most(&repetition.sub).saturating_add(states(3) + 4 * TRANSITION_BYTES);
            round.saturating_mul(rounds as usize).saturating_add(states(1))
        }
        HirKind::Capture(capture) => nfa_bytes_at_most(&capture.sub).saturating_add(states(2)),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let all = parts.iter().map(nfa_bytes_at_most).fold(0, usize::saturating_add);
            all.saturating_add(states(2) + parts.len() * (TRANSITION_BYTES + STATE_BYTES))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hir(pattern: &str) -> Hir {
        read(pattern.as_bytes(), RegexFlags::default()).unwrap_or_else(|| panic!("{pattern}"))
    }

    /// With the bound for a limit each of them builds, so none of them fails later than it is read.
    #[test]
    fn the_bound_on_the_size_holds() {
        let patterns = [
            "",
            "a",
            "abcdefgh",
            ".",
            "[acegikmoqsuwy]",
            "(?:)*",
            "(?:a?)*",
            "(a|b*)+",
            "a{0,1000}",
            "(?:[acegikm]{3,7}|b{2,}){5,90}",
            "(?:(?:(?:a{4}){4}){4}){4}",
            "(?i)(?:select|union|insert|delete|update|drop|alter|create)",
            "((((((((((a))))))))))",
            r"^\b(?:ab|cd$|\bx)*?\Z",
            r"\R{3,}x*?(?:y+?)?",
        ];
        for pattern in patterns {
            let hir = hir(pattern);
            let bound = automaton_bytes_at_most(&hir);
            assert!(Regex::from_hir(pattern.as_bytes(), &hir, bound).is_ok(), "{pattern:?} {bound}");
        }
    }

    #[test]
    fn what_is_too_large_is_found_when_it_is_read() {
        let pattern = b"(?:(?:[acegikmoq]{100}){100}){100}";
        let error = crate::Regex::new(pattern, RegexFlags::default()).unwrap_err();
        assert!(error.message.contains("compiles to more than"), "{error}");
        assert!(error.is_valid_pcre);
        // The other machine counts repetitions instead of writing them out.
        assert!(crate::Pcre::new(pattern, RegexFlags::default()).unwrap().backtracks());
        let one_too_large_for_both = [b"(?:a|bc)".repeat(300_000).as_slice(), pattern].concat();
        let error = crate::Pcre::new(&one_too_large_for_both, RegexFlags::default()).unwrap_err();
        assert!(error.message.contains("compiles to more than"), "{error}");
    }

    #[test]
    fn threads_that_ask_at_once_get_the_same() {
        let pattern = b"(?i)union\\s+(?:all\\s+)?select";
        let lazy = Lazy::new(pattern, hir(std::str::from_utf8(pattern).unwrap())).unwrap();
        assert!(lazy.regex_if_built().is_none());
        let ask = || std::ptr::from_ref(lazy.regex(pattern, RegexFlags::default())).addr();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            assert!(others.into_iter().all(|other| other.join().unwrap() == ask()));
        });
        assert!(lazy.regex(pattern, RegexFlags::default()).is_match(b"1 UNION select 2"));
        assert!(lazy.hir().is_none());
    }
}
