//! # `removeComments`, `removeCommentsChar`, `replaceComments`
//!
//! `removeComments` drops `/* ... */` and `<!-- ... -->`, and everything from `--` or `#` on. As in
//! ModSecurity the two kinds close each other, the byte behind a comment is copied unseen (so a comment that
//! follows at once is not found; at the end of the input a NUL is written for it), and a comment that never
//! ends leaves a blank.
//!
//! `removeCommentsChar` drops the marks only: `/*`, `*/`, `<!--`, `-->`, `--`, `#`.
//!
//! `replaceComments` turns each `/* ... */` into a blank, also one that never ends. A `*/` alone stays.
//!
//! Result: at most as long as the input.
//! Example: `1/*!50000*/or 2--` becomes `1or 2`, `1!50000or 2`, or `1 or 2--`.

pub(crate) fn remove(input: &[u8], out: &mut Vec<u8>) {
    let mut rest = input;
    loop {
        // Outside a comment.
        let Some(at) = memchr::memchr3(b'/', b'-', b'#', rest) else {
            out.extend_from_slice(rest);
            return;
        };
        let (before, mark) = rest.split_at(at);
        let body = if let Some(body) = mark.strip_prefix(b"/*") {
            out.extend_from_slice(before);
            body
        } else if let Some(body) = mark.strip_prefix(b"--") {
            // The mark of SQL, or the end of `<!--`, which begins two bytes earlier.
            match before.strip_suffix(b"<!") {
                Some(before) => {
                    out.extend_from_slice(before);
                    body
                }
                None => {
                    out.extend_from_slice(before);
                    return;
                }
            }
        } else if mark[0] == b'#' {
            out.extend_from_slice(before);
            return;
        } else {
            out.extend_from_slice(before);
            out.push(mark[0]);
            rest = &mark[1..];
            continue;
        };
        // Inside.
        let Some(end) = end_of_comment(body) else {
            out.push(b' ');
            return;
        };
        out.push(body.get(end).copied().unwrap_or(0));
        rest = body.get(end + 1..).unwrap_or_default();
    }
}

/// Returns the start of the text behind `*/` or `-->`.
fn end_of_comment(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'*', b'-', &body[at..])?;
        if body[at..].starts_with(b"*/") {
            return Some(at + 2);
        }
        if body[at..].starts_with(b"-->") {
            return Some(at + 3);
        }
        at += 1;
    }
}

pub(crate) fn remove_char(input: &[u8], out: &mut Vec<u8>) {
    let mut rest = input;
    while let Some(at) = memchr::memchr3(b'/', b'-', b'#', rest) {
        let (before, mark) = rest.split_at(at);
        // A mark may begin before the byte that was found, and the one that begins first counts.
        let (kept, behind) = match mark {
            [b'/', behind @ ..] if before.ends_with(b"*") => (&before[..at - 1], behind),
            [b'/', b'*', behind @ ..] => (before, behind),
            [b'-', b'-', behind @ ..] if before.ends_with(b"<!") => (&before[..at - 2], behind),
            [b'-', b'-', b'>', behind @ ..] | [b'-', b'-', behind @ ..] | [b'#', behind @ ..] => {
                (before, behind)
            }
            _ => (&rest[..=at], &mark[1..]),
        };
        out.extend_from_slice(kept);
        rest = behind;
    }
    out.extend_from_slice(rest);
}

pub(crate) fn replace(input: &[u8], out: &mut Vec<u8>) {
    let mut rest = input;
    while let Some(start) = memchr::memmem::find(rest, b"/*") {
        out.extend_from_slice(&rest[..start]);
        out.push(b' ');
        let body = &rest[start + 2..];
        rest = match memchr::memmem::find(body, b"*/") {
            Some(end) => &body[end + 2..],
            None => &[],
        };
    }
    out.extend_from_slice(rest);
}
