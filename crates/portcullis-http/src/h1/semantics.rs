//! Interpretation of a request's header fields for framing, routing and the connection.

use super::{Compat, Limits};
use crate::message::{Authority, BodyFraming, Oddity, Refusal, RequestHead, TargetForm, Version, join, list};
use portcullis_types::Span;

/// Reads the fields of `head`, whose bytes are complete, and settles framing, host and connection. Returns
/// the first reason to refuse it.
pub fn settle(head: &mut RequestHead, limits: &Limits, compat: Compat) -> Option<Refusal> {
    let mut first: Option<Refusal> = None;
    let mut refuse = |why: Refusal| first = first.or(Some(why));
    let (mut host, mut host_count) = (Span::default(), 0usize);
    let (mut length, mut length_count) = (Span::default(), 0usize);
    let mut transfer: Option<Coding> = None;
    let mut content_type_count = 0usize;
    let mut upgrade = None;

    for i in 0..head.fields.len() {
        let field = head.fields[i];
        let (name, value) = (field.name.of(&head.bytes), field.value.of(&head.bytes));
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                (host, host_count) = (field.value, host_count + 1);
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                if value.eq_ignore_ascii_case(b"100-continue") {
                    head.expects_continue = head.version != Version::Http10;
                } else {
                    head.note(Oddity::UnknownExpectation);
                }
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => upgrade = Some(field.value),
            10 if name.eq_ignore_ascii_case(b"connection") => head.connection.read(value),
            12 if name.eq_ignore_ascii_case(b"content-type") => content_type_count += 1,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                (length, length_count) = (field.value, length_count + 1);
            }
            16 if name.eq_ignore_ascii_case(b"content-encoding")
                && list(value).any(|coding| coding.eq_ignore_ascii_case(b"chunked")) =>
            {
                refuse(Refusal::ChunkedContentEncoding);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                transfer = Some(Coding::of(transfer, value));
            }
            _ => {}
        }
        let name = field.name.of(&head.bytes);
        for framing in [&b"content-length"[..], b"transfer-encoding"] {
            if reads_as(name, framing) && !name.eq_ignore_ascii_case(framing) {
                refuse(Refusal::DisguisedFraming);
            }
        }
        if memchr::memchr(b'_', name).is_some() {
            head.note(Oddity::UnderscoreInName);
        }
    }

    match transfer {
        None => {}
        Some(_) if head.version == Version::Http10 => refuse(Refusal::TransferEncodingInHttp10),
        Some(Coding::Chunked) => head.framing = BodyFraming::Chunked,
        Some(Coding::Unsupported) => refuse(Refusal::UnsupportedTransferEncoding),
        Some(Coding::Invalid) => refuse(Refusal::InvalidTransferEncoding),
    }
    if length_count > 1 {
        refuse(Refusal::DuplicateContentLength);
    } else if length_count == 1 {
        match parse_length(length.of(&head.bytes)) {
            None => refuse(Refusal::InvalidContentLength),
            Some(_) if transfer.is_some() => {
                if compat == Compat::Apache {
                    head.reusable = false;
                    head.note(Oddity::LengthDropped);
                    let RequestHead { bytes, fields, .. } = head;
                    fields.retain(|field| !field.name.of(bytes).eq_ignore_ascii_case(b"content-length"));
                } else {
                    refuse(Refusal::LengthAndTransferEncoding);
                }
            }
            Some(n) if n > limits.content_length_max => refuse(Refusal::ContentLengthTooLarge),
            Some(n) => {
                head.framing = BodyFraming::Length(n);
                if length.len() > 1 && length.of(&head.bytes)[0] == b'0' {
                    head.note(Oddity::LeadingZeroLength);
                }
            }
        }
    }
    settle_host(head, host_count, host, &mut refuse);
    if content_type_count > 1 {
        head.note(Oddity::DuplicateContentType);
    }
    let body = !matches!(head.framing, BodyFraming::None | BodyFraming::Length(0));
    if body && matches!(head.method(), b"GET" | b"HEAD" | b"DELETE" | b"OPTIONS" | b"TRACE" | b"CONNECT") {
        head.note(Oddity::BodyWithoutMeaning);
    }
    head.upgrade = upgrade.filter(|value| {
        let h2c = list(value.of(&head.bytes)).any(|protocol| protocol.eq_ignore_ascii_case(b"h2c"));
        head.connection.upgrade && head.version == Version::Http11 && !body && !h2c
    });
    first
}

fn settle_host(head: &mut RequestHead, count: usize, host: Span, refuse: &mut impl FnMut(Refusal)) {
    let lenient = head.version == Version::Http10;
    match count {
        0 if lenient => return head.note(Oddity::MissingHost),
        0 => return refuse(Refusal::MissingHost),
        1 => {}
        _ => return refuse(Refusal::DuplicateHost),
    }
    if host.is_empty() {
        return if lenient { head.note(Oddity::EmptyHost) } else { refuse(Refusal::EmptyHost) };
    }
    let Some(named) = Authority::parse(host.of(&head.bytes)) else {
        return refuse(Refusal::InvalidHost);
    };
    if head.target.form == TargetForm::Absolute {
        let default = if head.target.scheme.len() == 5 { 443 } else { 80 };
        if let Some(target) = Authority::parse(head.target.authority.of(&head.bytes)) {
            let same = target.host.eq_ignore_ascii_case(named.host)
                && target.port.unwrap_or(default) == named.port.unwrap_or(default);
            if !same {
                refuse(Refusal::HostMismatch);
            }
        }
    }
}

/// The combined transfer coding of all `Transfer-Encoding` fields so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Exactly `chunked`.
    Chunked,
    /// Well formed, `chunked` is last, but something precedes it; or only codings that are not ours.
    Unsupported,
    /// Anything else.
    Invalid,
}

impl Coding {
    /// Adds one field's value to what the fields before it amount to.
    pub fn of(before: Option<Coding>, value: &[u8]) -> Coding {
        if before.is_none() && value.eq_ignore_ascii_case(b"chunked") {
            return Coding::Chunked;
        }
        if matches!(before, Some(Coding::Chunked | Coding::Invalid)) {
            return Coding::Invalid; // something follows chunked
        }
        let mut elements = value.split(|&b| b == b',').map(<[u8]>::trim_ascii).peekable();
        while let Some(element) = elements.next() {
            let chunked = element.eq_ignore_ascii_case(b"chunked");
            if !super::bytes::is_token(element) || chunked && elements.peek().is_some() {
                return Coding::Invalid;
            }
        }
        Coding::Unsupported
    }
}

/// The number that a `Content-Length` value is: digits only, below 2^64.
pub fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |n, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// Joins the values of fields of the same name with a comma, in the place of the first, as Apache httpd does.
pub fn merge_same_names(head: &mut RequestHead) {
    let fields = std::mem::take(&mut head.fields);
    let mut merged: Vec<crate::message::Field> = Vec::with_capacity(fields.len());
    for field in fields {
        let name = field.name.of(&head.bytes);
        match merged.iter().position(|kept| kept.name.of(&head.bytes).eq_ignore_ascii_case(name)) {
            Some(at) => {
                merged[at].value = join(&mut head.bytes, head.received, merged[at].value, b", ", field.value);
                head.note(Oddity::MergedHeader);
            }
            None => merged.push(field),
        }
    }
    head.fields = merged;
}

/// True if both names of fields are one to a reader that gets fields in variables (CGI, RFC 3875, section
/// 4.1.18, and what took its naming from there: WSGI, Rack, PHP): upper case, and `_` for every byte that is
/// neither a letter nor a digit.
pub fn reads_as(name: &[u8], other: &[u8]) -> bool {
    name.len() == other.len() && name.iter().zip(other).all(|(&a, &b)| in_variable(a) == in_variable(b))
}

/// A byte of a field's name as the name of a variable has it, but in lower case.
fn in_variable(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'_' }
}

/// Fields that a reader might act upon although the head is over (RFC 9110, section 6.5.1).
pub fn forbidden_trailer(name: &[u8]) -> bool {
    const FORBIDDEN: [&[u8]; 12] = [
        b"authorization",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-range",
        b"content-type",
        b"cookie",
        b"expect",
        b"host",
        b"te",
        b"trailer",
        b"transfer-encoding",
    ];
    FORBIDDEN.iter().any(|forbidden| reads_as(name, forbidden))
}
