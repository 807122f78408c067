//! `@rx`: PCRE patterns.
//!
//! [`Regex`] matches in linear time and refuses what cannot be matched so; [`Pcre`] takes every pattern that
//! is not recursive and gives those a machine that counts its steps.
//!
//! A pattern is read by a parser of our own, because SecLang rules are written for PCRE and the engine's own
//! syntax differs from it in ways that change verdicts: `[a&&b]` is a set intersection there and four plain
//! bytes in PCRE. The engine is [`regex_automata`], on bytes, without any notion of characters.
//!
//! | construct | here |
//! |---|---|
//! | `.` | any byte, newline too (ModSecurity sets `DOTALL`); `(?-s)` excludes the newline |
//! | `$` | only the very end (ModSecurity sets `DOLLAR_ENDONLY`); see below |
//! | `^`, `\A`, `\G` | the start of the value; a rule always searches from its first byte |
//! | `\Z` | the end, or before a newline that is last; only at the end of the pattern, and a group or match that it ends includes the newline |
//! | `(?m)` | `^` and `$` at every newline. PCRE's `^` does not match behind a newline that ends the value; ours does |
//! | `(?i)` | ASCII letters only, as PCRE in the C locale |
//! | `\xhh`, `\x{hh}`, `\o{ooo}`, `\ddd` | one byte; above 255 is an error, as in PCRE without UTF mode |
//! | `\d \s \w \h \v` | ASCII (`\h` has `A0`, `\v` has `85`); `\s` has the vertical tab |
//! | `\R` | `\r\n` or one of `\v`; unlike in PCRE not atomic, so `\R\n` matches `\r\n` |
//! | `[...]` | PCRE's reading: `[`, `&&`, `--`, `~~` are literal; `[[:alpha:]]`, `[[:<:]]` |
//! | `{,n}`, `{` | literal |
//! | `(?<n>..)`, `(?P<n>..)`, `(?'n'..)`, <code>(?&#124;..)</code>, `(?#..)`, `\Q..\E`, `(?imsxnU-..)` | as in PCRE |
//! | lookaround, back references, atomic groups, possessive quantifiers, conditions, `\K` | [`Pcre`] only |
//! | recursion, calls of groups, `\X`, `\p`, `(*VERB)`, callouts | [`RegexError`] that says the pattern is valid PCRE |
//!
//! # `$` and newlines
//!
//! PCRE's `$` by default also matches before a newline that ends the text, so `^[a-z]+$` accepts `abc\n`.
//! ModSecurity compiles with `DOLLAR_ENDONLY`, and so do we: `abc\n` is not accepted. A rule that means a
//! line uses `(?m)`.

mod after_start;
mod backtrack;
mod class;
mod cursor;
mod escape;
mod lazy;
mod linear;
mod node;
mod parser;
mod pcre;

pub use backtrack::{Budget, Exhausted};
pub use cursor::RegexError;
pub use pcre::Pcre;

use portcullis_types::Span;
use regex_automata::meta;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::{Extractor, Literal};

/// A pattern may compile to this many bytes of automaton; a larger one is refused. The largest of the CRS
/// needs half a megabyte.
const NFA_BYTES_MAX: usize = 32 << 20;
/// The same for a pattern that is made while a request waits.
const SMALL_NFA_BYTES_MAX: usize = 1 << 20;
/// Bytes a lazily built automaton may keep in a [`RegexCache`] before it starts over. It grows by what it
/// meets: after 1,900 attack and benign values the 291 patterns of the CRS held 19 MB together, the largest
/// 1.5 MB.
const LAZY_DFA_BYTES_MAX: usize = 2 << 20;

/// The flags under which a pattern is read, before any inline `(?...)` changes them. The default is what
/// ModSecurity's `@rx` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegexFlags {
    /// ASCII letters match both cases.
    pub case_insensitive: bool,
    /// `^` and `$` match at newlines too.
    pub multi_line: bool,
    /// `.` matches a newline.
    pub dot_all: bool,
}

impl Default for RegexFlags {
    fn default() -> Self {
        RegexFlags { case_insensitive: false, multi_line: false, dot_all: true }
    }
}

/// A compiled pattern. Immutable; threads may share it.
///
/// [`Regex::is_match`] and [`Regex::captures`] borrow scratch memory from a pool inside, which costs a few
/// atomic operations; the `_with` twins take a [`RegexCache`] of the caller's and touch nothing shared.
///
/// ```
/// use portcullis_match::{Regex, RegexFlags};
///
/// let regex = Regex::new(br"(?i)union\s+(all\s+)?select", RegexFlags::default()).unwrap();
/// assert!(regex.is_match(b"1 UNION  select 2"));
///
/// let error = Regex::new(b"a(?=b)", RegexFlags::default()).unwrap_err();
/// assert_eq!(error.offset, 1);
/// ```
pub struct Regex {
    engine: meta::Regex,
    pattern: Box<[u8]>,
}

/// Scratch memory of one [`Regex`] for one thread: see [`Regex::cache`].
pub struct RegexCache(meta::Cache);

impl RegexCache {
    /// Heap bytes it holds now.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_usage()
    }
}

/// The captures that [`Regex::captures`] fills: the whole match, then groups 1 to 9; `TX:0` to `TX:9` of a
/// rule with `capture`.
pub type Captures = [Option<Span>; 10];

impl Regex {
    /// Compiles `pattern`.
    pub fn new(pattern: &[u8], flags: RegexFlags) -> Result<Regex, RegexError> {
        Regex::from_hir(pattern, &Regex::syntax(pattern, flags)?, NFA_BYTES_MAX)
    }

    /// The pattern in the intermediate form of `regex-syntax`, for deriving prefilters from it. It
    /// matches bytes, may match invalid UTF-8, and has capture groups 1 to 9 only.
    pub fn syntax(pattern: &[u8], flags: RegexFlags) -> Result<Hir, RegexError> {
        linear::lower(&parser::parse(pattern, flags)?)
    }

    fn from_hir(pattern: &[u8], hir: &Hir, nfa_bytes_max: usize) -> Result<Regex, RegexError> {
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(nfa_bytes_max))
            .auto_prefilter(!begins_anywhere(hir))
            .hybrid_cache_capacity(LAZY_DFA_BYTES_MAX);
        let engine = meta::Builder::new().configure(config).build_from_hir(hir).map_err(|error| {
            let message = match error.size_limit() {
                Some(limit) => format!("the pattern compiles to more than {limit} bytes"),
                None => format!("the pattern does not compile: {error}"),
            };
            RegexError { offset: 0, message, is_valid_pcre: true }
        })?;
        Ok(Regex { engine, pattern: pattern.into() })
    }

    /// True if the pattern matches somewhere in `hay`. Linear in its length.
    pub fn is_match(&self, hay: &[u8]) -> bool {
        self.engine.is_match(hay)
    }

    /// True if the pattern matches where `hay` begins.
    pub fn is_match_at_start(&self, hay: &[u8]) -> bool {
        self.engine.is_match(Input::new(hay).anchored(Anchored::Yes))
    }

    /// As [`Regex::is_match`], with scratch memory made by [`Regex::cache`] of this same regex.
    pub fn is_match_with(&self, cache: &mut RegexCache, hay: &[u8]) -> bool {
        self.engine.search_half_with(&mut cache.0, &Input::new(hay).earliest(true)).is_some()
    }

    /// Finds the leftmost match as Perl would and writes where it and its groups are; all of `out` is
    /// overwritten. Without a match returns false and clears `out`.
    pub fn captures(&self, hay: &[u8], out: &mut Captures) -> bool {
        let mut slots = [None; 20];
        let found = self.engine.search_slots(&Input::new(hay), &mut slots[..self.slot_count()]).is_some();
        fill(out, found, &slots)
    }

    /// As [`Regex::captures`], for the leftmost match that begins at `from` or behind it. Text before
    /// `from` still counts for `^` and `\b`.
    pub fn captures_from(&self, hay: &[u8], from: usize, out: &mut Captures) -> bool {
        let mut slots = [None; 20];
        let input = Input::new(hay).span(from.min(hay.len())..hay.len());
        let found = self.engine.search_slots(&input, &mut slots[..self.slot_count()]).is_some();
        fill(out, found, &slots)
    }

    /// As [`Regex::captures`], with scratch memory made by [`Regex::cache`] of this same regex.
    pub fn captures_with(&self, cache: &mut RegexCache, hay: &[u8], out: &mut Captures) -> bool {
        let mut slots = [None; 20];
        let slots_used = &mut slots[..self.slot_count()];
        let found = self.engine.search_slots_with(&mut cache.0, &Input::new(hay), slots_used).is_some();
        fill(out, found, &slots)
    }

    /// Slots that the pattern has. The engine must not be given more: its PikeVM then indexes beyond its
    /// table.
    fn slot_count(&self) -> usize {
        self.engine.group_info().slot_len().min(20)
    }

    /// New scratch memory for this regex.
    pub fn cache(&self) -> RegexCache {
        RegexCache(self.engine.create_cache())
    }

    /// The pattern as given.
    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// Returns the number of capture groups that [`Regex::captures`] can fill, 0 to 9.
    pub fn group_count(&self) -> usize {
        self.engine.captures_len() - 1
    }

    /// Heap bytes of the compiled pattern, without caches.
    pub fn memory_bytes(&self) -> usize {
        self.engine.memory_usage()
    }
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Regex({})", self.pattern.escape_ascii())
    }
}

/// True if a first look for how a match begins costs more than the pattern's own automaton does, which is
/// then run from nearly everywhere: it begins with one of many texts, or of texts of several lengths, of
/// which some are a single byte. Or if nothing is known of how it begins: then the engine looks for what
/// stands in its middle, and where that stands everywhere it ends with its slowest machine.
fn begins_anywhere(hir: &Hir) -> bool {
    /// So many bytes are looked for in vector code.
    const FEW: usize = 3;
    let mut prefixes = Extractor::new().extract(hir);
    prefixes.optimize_for_prefix_by_preference();
    let Some(texts) = prefixes.literals().filter(|texts| texts.iter().all(|text| !text.is_empty())) else {
        return true;
    };
    let is_single = |text: &Literal| text.len() == 1;
    let are_uneven = texts.len() > FEW || !texts.iter().all(is_single);
    !prefixes.is_exact() && are_uneven && texts.iter().any(is_single)
}

fn fill(out: &mut Captures, found: bool, slots: &[Option<NonMaxUsize>; 20]) -> bool {
    for (span, pair) in out.iter_mut().zip(slots.chunks_exact(2)) {
        *span = match (pair[0], pair[1]) {
            (Some(start), Some(end)) if found => Some(Span::new(start.get(), end.get())),
            _ => None,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pattern too large for the backtracker on a value too long for it falls to the PikeVM, which panicked
    /// when it was given more capture slots than the pattern has.
    #[test]
    fn captures_of_few_groups_on_long_values() {
        let words: Vec<String> = (0..400).map(|n| format!("w{n}[a-z]{{1,3}}x\\b")).collect();
        let pattern = format!("(?i)\\b(?:{})", words.join("|"));
        let regex = Regex::new(pattern.as_bytes(), RegexFlags::default()).unwrap();
        let hay = [" w1ab".repeat(20_000).as_bytes(), b" w399abx "].concat();
        let mut out = Captures::default();
        assert!(regex.captures(&hay, &mut out));
        assert_eq!(out[0].unwrap().of(&hay), b"w399abx");
        assert_eq!(out[1], None);
    }

    /// No text makes the engine leave its automaton for a machine that needs a hundred times as long.
    #[test]
    fn no_text_is_slow() {
        const NANOSECONDS_MAX: f64 = 150.0;
        for pattern in [
            r"(?i)\[?\$(?:a(?:bs|dd(?:ToSet)?)|cond|eq|gte?|in|l(?:te?|imit)|n(?:in|ot)|x?or|where)",
            r"(?i)[a-z]+=(?:[^:=]+:.+;)*?[^:=]+:url\(javascript",
        ] {
            let regex = Regex::new(pattern.as_bytes(), RegexFlags::default()).unwrap();
            for unit in ["d$", "$r", "[$", "W$.", "=s/<EMBED:le", "a=b:url(", "a=", ";:"] {
                let text = unit.repeat(60_000 / unit.len());
                let mut best = std::time::Duration::MAX;
                for _ in 0..4 {
                    let started = cpu_time::ThreadTime::now();
                    assert!(!regex.is_match(text.as_bytes()));
                    best = best.min(started.elapsed());
                }
                let each = best.as_nanos() as f64 / text.len() as f64;
                assert!(each < NANOSECONDS_MAX, "{pattern} takes {each:.0} ns for each byte of {unit}");
            }
        }
    }

    /// Without a first look for how a match may begin, the same is found.
    #[test]
    fn patterns_that_begin_anywhere() {
        let pattern = br"(?i)(?:[/\\;]|%(?:2f|5c))[^b](\.|%2e)[/\\]";
        let hir = Regex::syntax(pattern, RegexFlags::default()).unwrap();
        assert!(begins_anywhere(&hir));
        let plain = meta::Builder::new().build_from_hir(&hir).unwrap();
        let regex = Regex::new(pattern, RegexFlags::default()).unwrap();
        let pieces = ["/", "\\", ";", "%2F", "%5c", ".", "%2e", "a", "%"];
        for number in 0..pieces.len().pow(5) {
            let text: String =
                (0..5).map(|at| pieces[number / pieces.len().pow(at) % pieces.len()]).collect();
            let mut found = Captures::default();
            regex.captures(text.as_bytes(), &mut found);
            let place = found[0].map(|span| span.start as usize..span.end as usize);
            assert_eq!(place, plain.find(text.as_bytes()).map(|found| found.range()), "{text}");
            assert_eq!(regex.is_match(text.as_bytes()), place.is_some(), "{text}");
        }
        for others in [&br"(?i)select|union|insert|drop"[..], br"[abc]x", br"^(?:a|b|c|d)x"] {
            let hir = Regex::syntax(others, RegexFlags::default()).unwrap();
            assert!(!begins_anywhere(&hir), "{}", others.escape_ascii());
        }
    }
}
