//! Break-outs into query languages of graphs (Cypher, Gremlin), of metrics (PromQL, LogQL, Flux) and of
//! interfaces (OData): what ends a string and the brackets around it, and goes on in the language.

use portcullis_types::Span;

use crate::detectors::scan::{is_one_of, is_word, run, skip_space, string_end};

/// Longer values are no pieces of a query.
const QUERY_BYTES_MAX: usize = 1_024;
/// Bytes of a word that is looked up.
const WORD_BYTES_MAX: usize = 24;
/// Brackets that one string stands in.
const BRACKETS_MAX: usize = 8;

/// The part of `text` that leaves a query of another language than SQL, if it does.
pub(super) fn leaves_query(text: &[u8]) -> Option<Span> {
    if text.len() > QUERY_BYTES_MAX {
        return None;
    }
    let span = |from: usize| Some(Span::new(from, text.len()));
    if let Some(from) = ends_call(text) {
        return span(from);
    }
    // The first quote of a value ends a string that the application began.
    let quote = memchr::memchr2(b'\'', b'"', text)?;
    let mut at = skip_space(text, quote + 1);
    let (mut closed, mut braces) = (0, 0);
    while let Some(bracket @ (b'}' | b')' | b']')) = text.get(at).filter(|_| closed < BRACKETS_MAX) {
        closed += 1;
        braces += usize::from(*bracket == b'}');
        at = skip_space(text, at + 1);
    }
    let end = run(text, at, WORD_BYTES_MAX, is_word);
    let (word, rest) = (&text[at..end], skip_space(text, end));
    let goes_on = match word {
        b"" => closed > braces && is_pipe(text, at),
        _ if rest == end => false,
        _ if is_one_of(word, &[b"or", b"and"]) && compares(text, rest) => true,
        _ if braces > 0 && is_one_of(word, &[b"or", b"and", b"unless"]) => {
            let name = run(text, rest, WORD_BYTES_MAX, |b| is_word(b) || b == b':');
            text.get(name) == Some(&b'{')
        }
        _ => is_clause(word) && is_cut_off(&text[rest..]),
    };
    if goes_on { span(quote) } else { None }
}

/// `{!join from=id to=x}`, `{!func}`, `_query_:"{!xmlparser v='..'}"`: at the beginning of a query of Solr,
/// or of one in it, what has another parser read it. Merge fields of other products name an object:
/// `{!Contact.Name}`.
pub(super) fn local_parameters(text: &[u8]) -> Option<Span> {
    const PARSERS: &[&[u8]] = words!("nosql", "solr-parsers");
    memchr::memmem::find_iter(text, b"{!").find_map(|at| {
        let begins = match text[..at].trim_ascii_end().last() {
            None => true,
            Some(b) => {
                matches!(b, b'"' | b'\'' | b':' | b'(' | b'+' | b'-') || text[at - 1].is_ascii_whitespace()
            }
        };
        let name = skip_space(text, at + 2);
        let end = run(text, name, WORD_BYTES_MAX, is_word);
        let (name, end) = match text.get(end) {
            Some(b'=') if text[name..end] == *b"type" => {
                (end + 1, run(text, end + 1, WORD_BYTES_MAX, is_word))
            }
            _ => (name, end),
        };
        let is_ended = match text.get(end) {
            Some(b'}') => true,
            Some(b) if b.is_ascii_whitespace() => {
                let key = skip_space(text, end);
                // A name may be quoted, too.
                let key = key + usize::from(matches!(text.get(key), Some(b'\'' | b'"')));
                let key_end = run(text, key, WORD_BYTES_MAX, |b| is_word(b) || b == b'.');
                let behind = key_end + usize::from(matches!(text.get(key_end), Some(b'\'' | b'"')));
                key_end > key && text.get(behind) == Some(&b'=')
            }
            _ => false,
        };
        (begins && is_ended && PARSERS.contains(&&text[name..end])).then(|| Span::new(at, end + 1))
    })
}

/// Words that begin a clause of Cypher.
fn is_clause(word: &[u8]) -> bool {
    const CLAUSES: &[&[u8]] = words!("nosql", "cypher-clauses");
    is_one_of(word, CLAUSES)
}

/// `n//`: something, and a comment that hides what the application has behind it.
fn is_cut_off(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_end().strip_suffix(b"//");
    rest.is_some_and(|rest| !rest.trim_ascii().is_empty() && !rest.ends_with(b":"))
}

/// `|> yield(`
fn is_pipe(text: &[u8], at: usize) -> bool {
    let name = if text[at..].starts_with(b"|>") { skip_space(text, at + 2) } else { return false };
    let end = run(text, name, WORD_BYTES_MAX, |b| is_word(b) || b == b'.');
    end > name && text.get(end) == Some(&b'(')
}

/// `1 eq 1`, `'a' eq 'b`, `Name ne null`
fn compares(text: &[u8], at: usize) -> bool {
    let operand = match text.get(at) {
        Some(b'\'') => string_end(text, at).0,
        _ => run(text, at, 2 * WORD_BYTES_MAX, |b| is_word(b) || matches!(b, b'/' | b'.' | b'(' | b')')),
    };
    let sign = skip_space(text, operand);
    let end = run(text, sign, WORD_BYTES_MAX, is_word);
    let next = skip_space(text, end);
    operand > at
        && sign > operand
        && next > end
        && is_one_of(&text[sign..end], &[b"eq", b"ne", b"gt", b"ge", b"lt", b"le"])
        && text.get(next).is_some_and(|b| is_word(*b) || *b == b'\'')
}

/// `1).drop().V(`, `x').valueMap().by('`: a call that the value did not open ends, steps of Gremlin follow,
/// and one is left open for what the application has behind it.
fn ends_call(text: &[u8]) -> Option<usize> {
    const STEPS: &[&[u8]] = words!("nosql", "gremlin-steps");
    let close = memchr::memchr3(b'(', b')', b' ', text).filter(|at| text[*at] == b')')?;
    let is_open = text.ends_with(b"(") || text.ends_with(b"('") || text.ends_with(b"(\"");
    let mut at = close + 1;
    let mut is_step = false;
    while is_open && text.get(at) == Some(&b'.') {
        let end = run(text, at + 1, WORD_BYTES_MAX, is_word);
        is_step |= is_one_of(&text[at + 1..end], STEPS);
        if text.get(end) != Some(&b'(') {
            break;
        }
        at = match memchr::memchr(b')', &text[end..]) {
            Some(to) => end + to + 1,
            None => break,
        };
    }
    (is_step && at > close + 1).then_some(close)
}
