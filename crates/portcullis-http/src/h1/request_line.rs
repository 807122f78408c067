//! The request line: method, target, version.

use super::Compat;
use super::bytes::{
    BACKSLASH, CONTROL, HIGH, LOWER, NUMBER_SIGN, SPACE, UNSAFE, classes, is_blank, is_token,
};
use crate::message::{Authority, Oddity, Refusal, RequestHead, TargetForm, Version, split_target};
use portcullis_types::Span;

/// The parser's next step after the request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Header lines follow. With a refusal they are still read, as evidence.
    Fields(Option<Refusal>),
    /// The head ends here: an HTTP/0.9 request.
    Simple,
    /// Nothing that follows can be trusted to be a header line.
    Stop(Refusal),
}

/// Reads the request line at `start..end` of `buf` into `head`.
pub fn read(buf: &[u8], start: usize, end: usize, compat: Compat, head: &mut RequestHead) -> Outcome {
    head.line = Span::new(start, end);
    let mut refusal: Option<Refusal> = None;
    let mut first = start;
    if is_blank(buf[start]) {
        refusal = Some(Refusal::LeadingWhitespace);
        first += buf[start..end].iter().take_while(|&&b| is_blank(b)).count();
    }
    let method_end = memchr::memchr(b' ', &buf[first..end]).map_or(end, |at| first + at);
    head.method = Span::new(first, method_end);
    let method = &buf[first..method_end];
    if !is_token(method) {
        let control = classes(method) & CONTROL != 0;
        refusal = refusal.or(Some(if control { Refusal::ControlInTarget } else { Refusal::InvalidMethod }));
    } else if classes(method) & LOWER != 0 {
        head.note(Oddity::LowercaseMethod);
    }
    if method_end == end {
        return Outcome::Stop(refusal.unwrap_or(Refusal::MalformedRequestLine));
    }

    let rest = method_end + 1;
    let version_gap = memchr::memrchr(b' ', &buf[rest..end]).map(|at| rest + at);
    let target_end = version_gap.unwrap_or(end);
    head.version_text = Span::new(version_gap.map_or(end, |gap| gap + 1), end);
    read_target(buf, Span::new(rest, target_end), compat, head, &mut refusal);

    let version = head.version_text.of(buf);
    if version.is_empty() {
        head.version = Version::Http09;
        return match refusal {
            None if compat == Compat::Apache
                && head.target.form == TargetForm::Origin
                && method == b"GET" =>
            {
                head.note(Oddity::SimpleRequest);
                Outcome::Simple
            }
            _ => Outcome::Stop(refusal.unwrap_or(Refusal::MissingVersion)),
        };
    }
    head.version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => Version::Other,
    };
    if head.version == Version::Other {
        match version {
            [b'H', b'T', b'T', b'P', b'/', b'1'..=b'9', b'.', b'0'..=b'9'] if compat == Compat::Apache => {
                head.note(Oddity::UnknownVersion);
            }
            [b'H', b'T', b'T', b'P', b'/', b'1'..=b'9', b'.', b'0'..=b'9'] => {
                refusal = refusal.or(Some(Refusal::UnsupportedVersion));
            }
            _ => refusal = refusal.or(Some(Refusal::MalformedVersion)),
        }
    }
    Outcome::Fields(refusal)
}

/// Reads the target at `span` into `head`, whose method is known.
pub fn read_target(
    buf: &[u8],
    span: Span,
    compat: Compat,
    head: &mut RequestHead,
    refusal: &mut Option<Refusal>,
) {
    let mut refuse = |why: Refusal| *refusal = refusal.or(Some(why));
    let target = span.of(buf);
    let seen = classes(target);
    if seen & CONTROL != 0 {
        refuse(Refusal::ControlInTarget);
    }
    if seen & SPACE != 0 {
        let inside = !target.starts_with(b" ") && !target.ends_with(b" ");
        refuse(if inside { Refusal::SpaceInTarget } else { Refusal::MalformedRequestLine });
    }
    if seen & NUMBER_SIGN != 0 {
        refuse(Refusal::FragmentInTarget);
    }
    if seen & UNSAFE != 0 {
        head.note(Oddity::RawByteInTarget);
    }
    if seen & HIGH != 0 {
        head.note(Oddity::HighByteInTarget);
    }
    if seen & BACKSLASH != 0 {
        head.note(Oddity::BackslashInTarget);
    }
    let method = head.method.of(buf);
    let connect = method == b"CONNECT";
    head.target = split_target(buf, span, connect);
    match head.target.form {
        TargetForm::Origin if connect => refuse(Refusal::InvalidTarget),
        TargetForm::Origin => {}
        TargetForm::Asterisk if method == b"OPTIONS" => {}
        TargetForm::Asterisk | TargetForm::Invalid => refuse(Refusal::InvalidTarget),
        TargetForm::Absolute => {
            let scheme = head.target.scheme.of(buf);
            if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
                refuse(Refusal::InvalidTarget);
            } else if Authority::parse(head.target.authority.of(buf)).is_none() {
                refuse(Refusal::InvalidAuthority);
            }
            head.note(Oddity::AbsoluteTarget);
        }
        TargetForm::Authority => match Authority::parse(target) {
            Some(Authority { port: Some(_), .. }) if compat == Compat::Apache => {}
            Some(Authority { port: Some(_), .. }) => refuse(Refusal::ConnectNotSupported),
            _ => refuse(Refusal::InvalidAuthority),
        },
    }
}
