//! URLs as lax clients read them, and the address that a host stands for.
//!
//! [`Url::read`] takes a URL apart as browsers do (WHATWG URL Standard: backslashes are slashes, any number
//! of them, the last `@` ends the user's name). If other readers stop elsewhere, [`Url::hosts`] gives
//! all hosts that one of them would connect to.

mod host;

#[cfg(test)]
mod tests;

use portcullis_types::Span;

pub use host::{Address, HOST_BYTES_MAX, Host};

/// Hosts that readers may see in one authority, at most.
const HOSTS_MAX: usize = 4;

/// A URL, taken apart. Offsets count in the text that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// From the scheme to the end.
    pub span: Span,
    /// The scheme without its colon; empty where the URL begins with slashes.
    pub scheme: Span,
    /// The text between the slashes and the path.
    pub authority: Span,
    /// From the first slash behind the authority.
    pub path: Span,
    /// There is an `@` in the authority.
    pub has_user: bool,
    /// The authority holds what readers disagree on: a backslash, `#`, `?` or white space before an `@`.
    pub is_confused: bool,
}

impl Url {
    /// Reads the URL whose scheme begins at `start` and whose colon stands at `colon`; it ends where `ends`
    /// says so. `None` if no authority follows.
    pub fn read(text: &[u8], start: usize, colon: usize, ends: fn(u8) -> bool) -> Option<Url> {
        let slash = |b: &u8| matches!(b, b'/' | b'\\');
        let skipped = text[colon + 1..].iter().take_while(|b| slash(b)).count();
        let from = colon + 1 + skipped;
        let end = text[from..].iter().position(|&b| ends(b)).map_or(text.len(), |at| from + at);
        if from == end {
            return None;
        }
        let rest = &text[from..end];
        // The authority as the first reader would end it, and as far as an `@` may still come.
        let stop = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#' | b'\\')).unwrap_or(rest.len());
        let mut authority = stop;
        let mut is_confused = false;
        if let Some(b'\\' | b'#' | b'?') = rest.get(stop) {
            let far = stop + rest[stop..].iter().take_while(|b| **b != b'/').count();
            let tail = &rest[stop..far];
            // `https://a.example/?q=me@b.example` is nothing; `https://a.example#@b.example/` is.
            if let Some(at) = memchr::memchr(b'@', tail)
                && at <= 3
                && tail.get(at + 1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'[')
            {
                authority = far;
                is_confused = true;
            }
        }
        let bytes = &rest[..authority];
        let has_user = memchr::memchr(b'@', bytes).is_some();
        is_confused |= has_user && bytes.iter().any(|b| b.is_ascii_whitespace());
        Some(Url {
            span: Span::new(start, end),
            scheme: Span::new(start, colon),
            authority: Span::new(from, from + authority),
            path: Span::new(from + authority, end),
            has_user,
            is_confused,
        })
    }

    /// The hosts that readers of the URL would see: what stands behind the last `@` first.
    pub fn hosts<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> + use<'t> {
        let mut rest = Some(self.authority.of(text));
        let mut given = 0;
        let has_user = self.has_user;
        std::iter::from_fn(move || {
            let bytes = rest?;
            if given == HOSTS_MAX {
                return None;
            }
            given += 1;
            let cut = bytes.iter().rposition(|b| matches!(b, b'@' | b'#' | b'\\' | b' ' | b'&') && has_user);
            rest = cut.map(|at| &bytes[..at]);
            Some(&bytes[cut.map_or(0, |at| at + 1)..])
        })
    }
}

/// The scheme that ends before the colon at `colon`, as the offset where it begins.
pub fn scheme_before(text: &[u8], colon: usize) -> usize {
    let is_scheme = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_');
    colon - text[..colon].iter().rev().take(24).take_while(is_scheme).count()
}
