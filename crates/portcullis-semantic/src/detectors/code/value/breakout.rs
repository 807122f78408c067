//! The statement between what ends a string or a call of a program and what takes the rest of it away.

/// `');unlink('x');//`, `'.getenv('X').'`, `"+process.env.X+"`: what stands between. `None` for a value that
/// ends nothing.
pub(super) fn inner(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    let (quote, rest) = match text.split_first()? {
        (quote @ (b'\'' | b'"' | b'`'), rest) => (Some(*quote), rest),
        (b')' | b']' | b'}', _) => (None, text),
        _ => return None,
    };
    let closes = |b: &&u8| matches!(b, b')' | b']' | b'}') || b.is_ascii_whitespace();
    let closed = rest.iter().take_while(closes).count();
    let rest = &rest[closed..];
    let joins =
        |b: &&u8| matches!(b, b';' | b'.' | b'+' | b',' | b'|' | b'&' | b'~') || b.is_ascii_whitespace();
    let joined = rest.iter().take_while(joins).count();
    let inner = &rest[joined..];
    if joined == 0 || inner.is_empty() {
        return None;
    }
    Some(without_end(inner, quote))
}

/// Without the comment or the reopened string at its end.
fn without_end(inner: &[u8], quote: Option<u8>) -> &[u8] {
    let is_joint = |b: &u8| {
        matches!(b, b';' | b'.' | b'+' | b',' | b'|' | b'&' | b'~' | b'(') || b.is_ascii_whitespace()
    };
    let without_joints = |text: &[u8]| text.iter().rposition(|b| !is_joint(b)).map_or(0, |last| last + 1);
    let inner = inner.trim_ascii_end();
    if let Some(before) = quote.and_then(|quote| inner.strip_suffix(&[quote]))
        && before.trim_ascii_end().last().is_some_and(is_joint)
    {
        return &before[..without_joints(before)];
    }
    const MARKS: &[&[u8]] = &[b"//", b"#", b"/*", b"--"];
    let ends = MARKS.iter().filter_map(|mark| memchr::memmem::rfind(inner, mark));
    let is_end = |at: &usize| {
        *at > 0
            && inner[..*at].trim_ascii_end().last().is_some_and(|b| matches!(b, b';' | b')' | b'`' | b'}'))
    };
    match ends.filter(is_end).min() {
        Some(at) => &inner[..at],
        None => inner,
    }
}
