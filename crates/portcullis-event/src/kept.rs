//! The request that is kept with an event: its head, and its body up to a limit, without secrets.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use data_encoding::BASE64;
use portcullis_types::percent_decode;

use crate::mask::mask;
use crate::redact::{KNOWN_SECRET_BYTES_MIN, KNOWN_SECRETS_MAX, Redactor};
use crate::scrub::{Pairs, secret_spans};

/// A request as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptRequest {
    /// Head and body in the form of HTTP/1.1; the body without transfer and content codings, and the fields
    /// that frame it are those of what is kept.
    pub bytes: Vec<u8>,
    /// Bytes of the body that are not kept.
    pub omitted: u64,
}

/// A request of which secrets are to be taken out.
#[derive(Clone, Debug)]
pub struct RawRequest<'a> {
    /// The request line.
    pub line: &'a [u8],
    /// Its header fields, in their order.
    pub fields: Vec<(&'a [u8], &'a [u8])>,
    /// The beginning of its body, or all of it, without codings.
    pub body: &'a [u8],
    /// Bytes of the body behind that.
    pub omitted: u64,
}

/// Longer secrets are not looked for elsewhere: to do so would cost more than their length.
const KNOWN_SECRET_BYTES_MAX: usize = 256;

/// Secrets of one request among which those to be looked for elsewhere are chosen.
const KNOWN_CANDIDATES_MAX: usize = 1024;

/// Fields that tell how the body was sent, not how it is kept.
const FRAMING: [&[u8]; 3] = [b"content-length", b"transfer-encoding", b"content-encoding"];

impl KeptRequest {
    /// Puts a request together. Secrets, by the names of any of these redactors or among these values, are
    /// replaced by texts of the same shape.
    pub fn new(request: &RawRequest<'_>, redactors: &[&Redactor], secrets: &[&[u8]]) -> KeptRequest {
        let mut bytes = Vec::with_capacity(request.line.len() + request.body.len() + 512);
        let mut spans = Vec::new();
        let mut known: Vec<Vec<u8>> = secrets.iter().map(|secret| secret.to_vec()).collect();
        bytes.extend_from_slice(request.line);
        note(&mut spans, &bytes, 0, redactors, Pairs::Form);
        bytes.extend_from_slice(b"\r\n");
        for (name, value) in &request.fields {
            if FRAMING.iter().any(|framing| framing.eq_ignore_ascii_case(name)) {
                continue;
            }
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(b": ");
            let start = bytes.len();
            bytes.extend_from_slice(value);
            if redactors.iter().any(|redactor| redactor.is_secret_header(name)) {
                let scheme = scheme(value);
                spans.push(start + scheme..bytes.len());
                known.extend(basic_password(&value[..scheme], &value[scheme..]));
            } else {
                let is_cookie = name.eq_ignore_ascii_case(b"cookie");
                note(
                    &mut spans,
                    &bytes,
                    start,
                    redactors,
                    if is_cookie { Pairs::Cookie } else { Pairs::Form },
                );
            }
            bytes.extend_from_slice(b"\r\n");
        }
        if !request.body.is_empty() || request.omitted > 0 {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n", request.body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let body = bytes.len();
        bytes.extend_from_slice(request.body);
        note(&mut spans, &bytes, body, redactors, Pairs::Form);
        if request.omitted > 0 {
            spans.extend(cut_token(&bytes, body));
        }
        for span in &spans {
            let secret = &bytes[span.clone()];
            // An encoded byte takes three.
            if secret.len() <= 3 * KNOWN_SECRET_BYTES_MAX && known.len() < KNOWN_CANDIDATES_MAX {
                known.push(percent_decode(secret, true));
                known.push(secret.to_vec());
            }
        }
        spans.extend(Known::new(known).find(&bytes, request.omitted > 0));
        for span in spans {
            mask(&mut bytes[span]);
        }
        KeptRequest { bytes, omitted: request.omitted }
    }
}

/// Notes the secrets of the text from `start` to the end.
fn note(spans: &mut Vec<Range<usize>>, bytes: &[u8], start: usize, redactors: &[&Redactor], pairs: Pairs) {
    for redactor in redactors {
        let found = secret_spans(&bytes[start..], redactor, pairs);
        spans.extend(found.into_iter().map(|span| start + span.start..start + span.end));
    }
}

/// Length of the name of a scheme before credentials: `Bearer `.
fn scheme(value: &[u8]) -> usize {
    let name = value.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    let blanks = value[name..].iter().take_while(|byte| **byte == b' ').count();
    if name == 0 || blanks == 0 || name + blanks == value.len() { 0 } else { name + blanks }
}

/// The password of basic credentials (RFC 7617).
fn basic_password(scheme: &[u8], credentials: &[u8]) -> Option<Vec<u8>> {
    if !scheme.trim_ascii_end().eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let decoded = BASE64.decode(credentials.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

/// A signed token of which the end of the body cut something off.
fn cut_token(bytes: &[u8], body: usize) -> Option<Range<usize>> {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let length = bytes[body..].iter().rev().take_while(|byte| is_sign(byte)).count();
    let start = bytes.len() - length;
    memchr::memmem::find(&bytes[start..], b"eyJ").map(|at| start + at..bytes.len())
}

/// Secrets to be found wherever they stand.
struct Known {
    secrets: Vec<Vec<u8>>,
    search: Option<AhoCorasick>,
}

impl Known {
    fn new(mut secrets: Vec<Vec<u8>>) -> Known {
        let length = KNOWN_SECRET_BYTES_MIN..=KNOWN_SECRET_BYTES_MAX;
        secrets.retain(|secret| length.contains(&secret.len()));
        secrets.sort();
        secrets.dedup();
        // The longest: short ones are found by their names more often than by their values.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.truncate(KNOWN_SECRETS_MAX);
        let builder = |secrets: &[Vec<u8>]| {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(secrets)
                .ok()
        };
        let search = if secrets.is_empty() { None } else { builder(&secrets) };
        Known { secrets, search }
    }

    /// `is_cut`: the end of the text may have cut one off.
    fn find(&self, text: &[u8], is_cut: bool) -> Vec<Range<usize>> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut found: Vec<Range<usize>> = search.find_iter(text).map(|found| found.range()).collect();
        if is_cut {
            let cut = |secret: &Vec<u8>| {
                let longest = secret.len().saturating_sub(1).min(text.len());
                (KNOWN_SECRET_BYTES_MIN..=longest)
                    .rev()
                    .find(|length| text[text.len() - length..].eq_ignore_ascii_case(&secret[..*length]))
            };
            found.extend(self.secrets.iter().filter_map(cut).max().map(|n| text.len() - n..text.len()));
        }
        found
    }
}
