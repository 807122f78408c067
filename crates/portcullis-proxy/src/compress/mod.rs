//! Compression of responses: which ones, in which coding, and what their heads say then.
//!
//! What a client can choose and what it must not know never share a compressed body unless the operator says
//! so: lengths would tell the one by the other (BREACH, CVE-2013-3587).

mod encoder;
mod negotiate;
mod stream;

use std::io;

use portcullis_config::{Coding, Compression as Settings};
use portcullis_http::message::{BodyFraming, RequestHead, ResponseHead, Version};
use portcullis_metrics::{Counter, EnumCounters, Registry, catalogue};

use crate::budget;
use crate::header_changes::Changed;
use encoder::Encoder;
pub(crate) use stream::stream;

/// The compression of a site or route, ready to use.
pub(crate) struct Compression {
    settings: Settings,
    /// By reason.
    skipped: EnumCounters,
    /// By coding.
    counters: [Counters; 3],
}

#[derive(Clone)]
struct Counters {
    responses: Counter,
    bytes_in: Counter,
    bytes_out: Counter,
}

/// Label values of `portcullis_compression_skipped_total`.
const REASONS: [&str; 9] = [
    "media_type",
    "coded",
    "range",
    "no_transform",
    "set_cookie",
    "small",
    "credentials",
    "client",
    "memory",
];

#[derive(Clone, Copy)]
enum Reason {
    MediaType,
    Coded,
    Range,
    NoTransform,
    SetCookie,
    Small,
    Credentials,
    Client,
    Memory,
}

/// Media types that are never compressed: parts of them are awaited one by one.
const NEVER: [&str; 3] = ["text/event-stream", "multipart/x-mixed-replace", "application/grpc"];

/// Fields about the bytes of a body that goes out as others.
const STALE: [&str; 6] = ["etag", "accept-ranges", "content-md5", "digest", "content-digest", "repr-digest"];

/// The changes of a response's head.
#[derive(Default)]
pub(crate) struct Recoded {
    coding: Option<Coding>,
    etag: Option<Vec<u8>>,
    vary: bool,
}

/// A body on its way into a coding.
pub(crate) struct Coder {
    encoder: Encoder,
    counters: Counters,
    _share: budget::Held,
}

impl Compression {
    pub(crate) fn new(registry: &Registry, site: &str, settings: &Settings) -> Compression {
        let of = |coding: Coding| Counters {
            responses: registry.counter(&catalogue::COMPRESSED_RESPONSES, &[site, coding.name()]),
            bytes_in: registry.counter(&catalogue::COMPRESSION_BYTES_IN, &[site, coding.name()]),
            bytes_out: registry.counter(&catalogue::COMPRESSION_BYTES_OUT, &[site, coding.name()]),
        };
        Compression {
            settings: settings.clone(),
            skipped: registry.enum_counters(&catalogue::COMPRESSION_SKIPPED, &[site], &REASONS),
            counters: Coding::ALL.map(of),
        }
    }

    /// Decides about a response with a body that is framed as `framing`; `length` where all of it is known.
    pub(crate) fn begin(
        &self,
        request: &RequestHead,
        head: &ResponseHead,
        changed: Option<&Changed>,
        length: Option<u64>,
        mut share: budget::Held,
    ) -> (Recoded, Option<Coder>) {
        let recoded = match self.recoded(request, head, changed, length) {
            Ok(recoded) => recoded,
            Err(reason) => {
                self.skipped.inc(reason as usize);
                return (Recoded::default(), None);
            }
        };
        let plain = Recoded { vary: recoded.vary, ..Recoded::default() };
        let Some(coding) = recoded.coding else {
            self.skipped.inc(Reason::Client as usize);
            return (plain, None);
        };
        let encoder = match share.grow(encoder::memory(coding, self.settings.level)) {
            true => Encoder::new(coding, self.settings.level).ok(),
            false => None,
        };
        let Some(encoder) = encoder else {
            self.skipped.inc(Reason::Memory as usize);
            return (plain, None);
        };
        let counters = self.counters[coding as usize].clone();
        counters.responses.inc();
        (recoded, Some(Coder { encoder, counters, _share: share }))
    }

    /// The head of an answer to HEAD: the same as to GET, whose length is not known before it is compressed
    /// (RFC 9110, sections 8.6 and 9.3.2).
    pub(crate) fn without_body(
        &self,
        request: &RequestHead,
        head: &ResponseHead,
        changed: Option<&Changed>,
    ) -> Recoded {
        if head.status() == 304 {
            return self.not_modified(request, head);
        }
        if request.method() != b"HEAD" {
            return Recoded::default();
        }
        let length = head.header("content-length").next();
        let length = length.and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
        self.recoded(request, head, changed, length).unwrap_or_default()
    }

    /// The head of a 304: as the 200 that the client has (RFC 9110, section 15.4.5). Which one that is the
    /// client tells by the tag that it has.
    fn not_modified(&self, request: &RequestHead, head: &ResponseHead) -> Recoded {
        let media_type = head.header("content-type").next().map(media_type);
        let fits = |known: &String| self.settings.types.iter().any(|own| takes(own, known));
        if media_type.is_some_and(|known| !fits(&known)) {
            return Recoded::default();
        }
        let own = head.header("etag").next();
        let weak = own.filter(|etag| etag.starts_with(b"\"")).map(|etag| [b"W/", etag].concat());
        let has = |tag: &[u8]| {
            let fields = request.header("if-none-match");
            fields.flat_map(|field| field.split(|byte| *byte == b',')).any(|item| item.trim_ascii() == tag)
        };
        let is_weak = weak.as_deref().is_some_and(has) && !own.is_some_and(has);
        let vary = !head.header("vary").any(names_accept_encoding);
        Recoded { coding: None, etag: weak.filter(|_| is_weak), vary }
    }

    /// The `If-Match` field that the upstream is to see: a tag that we made weak is as strong there as it was
    /// (RFC 9110, section 13.1.1, compares strongly, and a weak one would never match).
    pub(crate) fn if_match(request: &RequestHead) -> Option<Vec<u8>> {
        let fields: Vec<&[u8]> = request.header("if-match").collect();
        let weak = |field: &&[u8]| field.windows(3).any(|three| three == b"W/\"");
        if !fields.iter().any(weak) {
            return None;
        }
        let all = fields.join(&b", "[..]);
        let mut strong = Vec::with_capacity(all.len());
        let mut quoted = false;
        for (at, byte) in all.iter().enumerate() {
            quoted ^= *byte == b'"';
            let is_mark =
                !quoted && (all[at..].starts_with(b"W/\"") || at > 0 && all[at - 1..].starts_with(b"W/\""));
            if !is_mark {
                strong.push(*byte);
            }
        }
        Some(strong)
    }

    /// The changes of the head of a response that fits: for a client that knows no coding, at least that it
    /// varies.
    fn recoded(
        &self,
        request: &RequestHead,
        head: &ResponseHead,
        changed: Option<&Changed>,
        length: Option<u64>,
    ) -> Result<Recoded, Reason> {
        self.fits(request, head, changed, length)?;
        let chosen = negotiate::choose(&self.settings.codings, request.header("accept-encoding"));
        let coding = chosen.filter(|_| request.version() >= Version::Http11);
        let etag = coding.and_then(|_| weak_etag(head));
        Ok(Recoded { coding, etag, vary: !head.header("vary").any(names_accept_encoding) })
    }

    /// An error if a client that knows a coding may not have it.
    fn fits(
        &self,
        request: &RequestHead,
        head: &ResponseHead,
        changed: Option<&Changed>,
        length: Option<u64>,
    ) -> Result<(), Reason> {
        let Some(media_type) = head.header("content-type").next().map(media_type) else {
            return Err(Reason::MediaType);
        };
        if !self.settings.types.iter().any(|own| takes(own, &media_type)) || is_stream(&media_type) {
            return Err(Reason::MediaType);
        }
        if head.header("content-encoding").any(|value| !value.trim_ascii().is_empty()) {
            return Err(Reason::Coded);
        }
        if head.status() == 206 || head.header("content-range").next().is_some() {
            return Err(Reason::Range);
        }
        let set = changed.and_then(|changed| changed.value("cache-control"));
        if head.header("cache-control").chain(set).any(forbids_transforms) {
            return Err(Reason::NoTransform);
        }
        if head.header("set-cookie").next().is_some() {
            return Err(Reason::SetCookie);
        }
        if length.is_some_and(|length| length < self.settings.min_bytes) {
            return Err(Reason::Small);
        }
        let has = |name: &str| request.header(name).next().is_some();
        let is_public = portcullis_config::PUBLIC_TYPES.contains(&media_type.as_str());
        if !is_public && !self.settings.with_credentials && (has("cookie") || has("authorization")) {
            return Err(Reason::Credentials);
        }
        Ok(())
    }
}

impl Recoded {
    /// The body is, or would be, other bytes than the upstream's.
    pub(crate) fn is_coded(&self) -> bool {
        self.coding.is_some()
    }

    /// Names of fields that go, and fields that come.
    pub(crate) fn change<'a>(&'a self, remove: &mut Vec<&'a str>, add: &mut Vec<(&'a str, &'a [u8])>) {
        if let Some(coding) = self.coding {
            remove.extend(STALE);
            add.push(("Content-Encoding", coding.name().as_bytes()));
        } else if self.etag.is_some() {
            remove.push("etag");
        }
        add.extend(self.etag.as_deref().map(|etag| ("ETag", etag)));
        if self.vary {
            add.push(("Vary", b"Accept-Encoding"));
        }
    }
}

impl Coder {
    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.counters.bytes_in.add(data.len() as u64);
        self.encoder.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }

    fn waiting(&mut self) -> usize {
        self.encoder.out().map_or(0, |out| out.len())
    }

    /// The coded bytes so far.
    fn take(&mut self) -> Vec<u8> {
        let out = self.encoder.out().map(std::mem::take).unwrap_or_default();
        self.counters.bytes_out.add(out.len() as u64);
        out
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        let rest = self.encoder.finish()?;
        self.counters.bytes_out.add(rest.len() as u64);
        Ok(rest)
    }
}

/// The length of a body, if that is known before it has come.
pub(crate) fn known_length(framing: BodyFraming, held: Option<usize>) -> Option<u64> {
    match (framing, held) {
        (_, Some(length)) => Some(length as u64),
        (BodyFraming::Length(length), None) => Some(length),
        _ => None,
    }
}

/// Without parameters, in lower case.
fn media_type(value: &[u8]) -> String {
    let bare = value.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(bare.trim_ascii()).to_ascii_lowercase()
}

/// `text/html`, or `text/*`.
fn takes(own: &str, media_type: &str) -> bool {
    match own.strip_suffix('*') {
        Some(start) => media_type.starts_with(start),
        None => own == media_type,
    }
}

fn is_stream(media_type: &str) -> bool {
    NEVER.iter().any(|never| media_type.starts_with(never))
}

fn forbids_transforms(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

fn names_accept_encoding(value: &[u8]) -> bool {
    let mut names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
}

/// The same content in other bytes is equal at most weakly (RFC 9110, section 8.8.1).
fn weak_etag(head: &ResponseHead) -> Option<Vec<u8>> {
    let etag = head.header("etag").next()?;
    let weak = etag.starts_with(b"W/") || !etag.starts_with(b"\"");
    Some(if weak { etag.to_vec() } else { [b"W/", etag].concat() })
}
