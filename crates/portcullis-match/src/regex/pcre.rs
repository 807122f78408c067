use std::borrow::Cow;
use std::sync::OnceLock;

use portcullis_types::{ByteSet, Span};

use super::after_start::AfterStart;
use super::backtrack::{Backtracker, Budget, Exhausted};
use super::lazy::Lazy;
use crate::gate::GatesCell;
use crate::{Facts, Gate, Gates};

use super::{Captures, Regex, RegexError, RegexFlags, SMALL_NFA_BYTES_MAX, linear, parser};

/// A pattern on the engine that it needs: automata where they can run it, or else a backtracking machine
/// under a [`Budget`].
///
/// ```
/// use portcullis_match::{Budget, Pcre, RegexFlags};
///
/// let pattern = Pcre::new(br"(?<!un)safe=(\w+);\1", RegexFlags::default()).unwrap();
/// assert!(pattern.backtracks());
/// let mut groups = [None; 10];
/// assert_eq!(pattern.search(b"unsafe=a;a safe=b;b", 0, &mut Budget::default(), &mut groups), Ok(true));
/// assert_eq!(groups[1].unwrap().range(), 16..17);
/// ```
pub struct Pcre {
    engine: Engine,
    pattern: Box<[u8]>,
    flags: RegexFlags,
    gates: GatesCell,
    shape: Shape,
    /// Worked out when it is first asked for.
    pub(super) after_start: OnceLock<Option<Box<AfterStart>>>,
}

enum Engine {
    Linear(Lazy),
    Backtracking(Box<Backtracker>),
}

/// Patterns so plain that no automaton is asked.
#[derive(Clone, Copy)]
enum Shape {
    /// `^word`: texts that begin with it.
    Prefix,
    /// `^.*$`: any text, all of it.
    Whole,
    Other,
}

impl Shape {
    fn of(pattern: &[u8], flags: RegexFlags) -> Shape {
        let is_literal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match pattern.strip_prefix(b"^") {
            Some(b".*$") if flags.dot_all && !flags.multi_line => Shape::Whole,
            Some(word) if !flags.multi_line && word.iter().all(is_literal) => Shape::Prefix,
            _ => Shape::Other,
        }
    }
}

impl Pcre {
    /// Reads `pattern`. Its automaton is built when it is first asked, or by [`Pcre::prepare`].
    pub fn new(pattern: &[u8], flags: RegexFlags) -> Result<Pcre, RegexError> {
        let parsed = parser::parse(pattern, flags)?;
        let engine = match linear::lower_exactly(&parsed) {
            Some(hir) => match Lazy::new(pattern, hir) {
                Ok(lazy) => Engine::Linear(lazy),
                // Counted repetitions inside counted repetitions: the program of the other machine may be
                // small.
                Err(too_large) => match Backtracker::new(&parsed) {
                    Ok(machine) => Engine::Backtracking(Box::new(machine)),
                    Err(_) => return Err(too_large),
                },
            },
            None => Engine::Backtracking(Box::new(Backtracker::new(&parsed)?)),
        };
        Ok(Pcre::with_engine(engine, pattern, flags, GatesCell::default()))
    }

    /// As [`Pcre::new`], for patterns that are made while a request waits: with a smaller limit of what they
    /// compile to.
    pub fn small(pattern: &[u8], flags: RegexFlags) -> Result<Pcre, RegexError> {
        let parsed = parser::parse(pattern, flags)?;
        let engine = match linear::lower_exactly(&parsed) {
            Some(hir) => Engine::Linear(Lazy::built(Regex::from_hir(pattern, &hir, SMALL_NFA_BYTES_MAX)?)),
            None => Engine::Backtracking(Box::new(Backtracker::small(&parsed)?)),
        };
        Ok(Pcre::with_engine(engine, pattern, flags, GatesCell::default()))
    }

    fn with_engine(engine: Engine, pattern: &[u8], flags: RegexFlags, gates: GatesCell) -> Pcre {
        let shape = Shape::of(pattern, flags);
        Pcre { engine, pattern: pattern.into(), flags, gates, shape, after_start: OnceLock::new() }
    }

    /// A pattern of which [`Pcre::facts`] were kept, without reading it. They must be those of this pattern
    /// and these flags, derived by the code of the same [`FACTS_VERSION`](crate::FACTS_VERSION).
    pub fn with_facts(pattern: &[u8], flags: RegexFlags, facts: Facts) -> Pcre {
        let engine = Engine::Linear(Lazy::known(usize::from(facts.group_count)));
        Pcre::with_engine(engine, pattern, flags, GatesCell::new(facts.gates))
    }

    /// True if nothing but the pattern itself is needed to build it.
    pub(crate) fn is_lazy(&self) -> bool {
        matches!(&self.engine, Engine::Linear(lazy) if lazy.is_sure())
    }

    pub(crate) fn gates_cell(&self) -> &GatesCell {
        &self.gates
    }

    /// Returns the flags under which it reads the pattern.
    pub fn flags(&self) -> RegexFlags {
        self.flags
    }

    /// Builds the automaton now.
    pub fn prepare(&self) {
        if let Engine::Linear(lazy) = &self.engine {
            lazy.regex(&self.pattern, self.flags);
        }
    }

    /// Returns the conditions on a text for the pattern to match in it: open for a pattern that backtracks.
    pub fn gates(&self, alphabet: &ByteSet) -> Cow<'_, Gates> {
        self.gates.get_or_derive(alphabet, || match &self.engine {
            Engine::Linear(lazy) => lazy
                .with_hir(&self.pattern, self.flags, |hir| Gates::of_hir(hir, alphabet))
                .unwrap_or_else(Gates::open),
            Engine::Backtracking(_) => Gates::open(),
        })
    }

    /// Returns the conditions on a text of these bytes for a match to begin behind its first byte; `None` if
    /// that cannot be, or is not known. Worked out anew each time.
    pub fn gate_behind_start(&self, alphabet: &ByteSet) -> Option<Gate> {
        let Engine::Linear(lazy) = &self.engine else { return None };
        lazy.with_hir(&self.pattern, self.flags, |hir| Gate::of_hir_behind_start(hir, alphabet)).flatten()
    }

    /// Returns true if a match begins with the first byte of `hay`; `None` for a pattern that backtracks.
    pub fn is_match_at_start(&self, hay: &[u8]) -> Option<bool> {
        let Engine::Linear(lazy) = &self.engine else { return None };
        Some(lazy.regex(&self.pattern, self.flags).is_match_at_start(hay))
    }

    /// True if matching may need more than linear time, and therefore may end with [`Exhausted`].
    pub fn backtracks(&self) -> bool {
        matches!(self.engine, Engine::Backtracking(_))
    }

    /// True if the pattern matches somewhere in `hay`; false, too, if the search had to be given up.
    pub fn is_match(&self, hay: &[u8]) -> bool {
        self.test(hay, &mut Budget::default()).unwrap_or(false)
    }

    /// Returns true if the pattern matches somewhere in `hay`.
    pub fn test(&self, hay: &[u8], budget: &mut Budget) -> Result<bool, Exhausted> {
        match self.shape {
            Shape::Prefix => return Ok(self.begins(hay)),
            Shape::Whole => return Ok(true),
            Shape::Other => {}
        }
        match &self.engine {
            Engine::Linear(lazy) => Ok(lazy.regex(&self.pattern, self.flags).is_match(hay)),
            Engine::Backtracking(engine) => engine.search(hay, 0, budget, &mut Captures::default()),
        }
    }

    /// Finds the leftmost match that begins at `from` or behind it, and writes where it and its groups are;
    /// all of `out` is overwritten. Text before `from` still counts for `^`, `\b` and lookbehinds.
    pub fn search(
        &self,
        hay: &[u8],
        from: usize,
        budget: &mut Budget,
        out: &mut Captures,
    ) -> Result<bool, Exhausted> {
        if let (Shape::Whole, 0) = (self.shape, from) {
            *out = Captures::default();
            out[0] = Some(Span::new(0, hay.len()));
            return Ok(true);
        }
        match &self.engine {
            Engine::Linear(lazy) => Ok(lazy.regex(&self.pattern, self.flags).captures_from(hay, from, out)),
            Engine::Backtracking(engine) => engine.search(hay, from.min(hay.len()), budget, out),
        }
    }

    /// For [`Shape::Prefix`].
    fn begins(&self, hay: &[u8]) -> bool {
        let word = &self.pattern[1..];
        match self.flags.case_insensitive {
            true => hay.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word)),
            false => hay.starts_with(word),
        }
    }

    /// The pattern as given.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// Returns the number of capture groups that [`Pcre::search`] can fill, 0 to 9.
    pub fn group_count(&self) -> usize {
        match &self.engine {
            Engine::Linear(lazy) => lazy.group_count(),
            Engine::Backtracking(engine) => engine.group_count(),
        }
    }

    /// Heap bytes of the compiled pattern, without caches; 0 before it is built.
    pub fn memory_bytes(&self) -> usize {
        match &self.engine {
            Engine::Linear(lazy) => lazy.regex_if_built().map_or(0, Regex::memory_bytes),
            Engine::Backtracking(engine) => engine.memory_bytes(),
        }
    }
}

impl std::fmt::Debug for Pcre {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pcre({})", self.pattern.escape_ascii())
    }
}
