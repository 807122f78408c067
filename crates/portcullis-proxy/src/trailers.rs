//! Trailers: fields after a body.

use std::borrow::Cow;

use http::HeaderMap;
use portcullis_http::h1::{BodyDecoder, BodyError, LAST_CHUNK, Limits, Trailers as Assembled};

use crate::header_changes::Changed;
use crate::http2;
use crate::stream::Stream;

/// Those of a request whose body has been held. They go on as far as the route names them.
#[derive(Default)]
pub(crate) struct Trailers(Vec<(Vec<u8>, Vec<u8>)>);

impl Trailers {
    /// Those behind a body that `decoder` has read to its end, checked.
    pub(crate) fn of(stream: &Stream, decoder: &BodyDecoder) -> Result<Trailers, BodyError> {
        let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
        let Stream::Http2(pipe) = stream else {
            return Ok(Trailers(decoder.trailers().map(owned).collect()));
        };
        let Some(came) = pipe.trailers() else { return Ok(Trailers::default()) };
        let fields = came.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        Ok(Trailers(Assembled::assemble(fields, &Limits::default())?.fields().map(owned).collect()))
    }

    /// Names and values.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves those of these names, in lower case.
    pub(crate) fn keep(&mut self, names: &[String]) {
        self.0.retain(|(name, _)| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())));
    }

    /// Drops those that are removed or replaced as header fields.
    pub(crate) fn change(&mut self, changed: &Changed) {
        let set = changed.set.iter().map(|(name, _)| name);
        let names: Vec<&String> = changed.remove.iter().chain(set).collect();
        self.0.retain(|(name, _)| {
            !names.iter().any(|gone| portcullis_http::h1::reads_as(name, gone.as_bytes()))
        });
    }

    /// As HTTP/2 has them.
    pub(crate) fn map(&self) -> Option<HeaderMap> {
        http2::fields(self.fields())
    }
}

/// The end of a chunked body.
pub(crate) fn last_chunk<'f>(trailers: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Cow<'static, [u8]> {
    let mut trailers = trailers.peekable();
    if trailers.peek().is_none() {
        return Cow::Borrowed(LAST_CHUNK);
    }
    let mut out = b"0\r\n".to_vec();
    for (name, value) in trailers {
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    out.extend_from_slice(b"\r\n");
    Cow::Owned(out)
}
