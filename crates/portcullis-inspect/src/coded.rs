//! A body in content codings on its way to the rules.

use portcullis_http::coding::{Coding, CodingDecoder, CodingError, CodingLimits, codings};

/// Bytes that come out of a request body of any size.
const REQUEST_FREE_BYTES: u64 = 64 << 10;
/// For the bodies of responses, whose upstream is not the adversary: bytes of output for each byte of input,
/// above the first MiB.
const RESPONSE_RATIO_MAX: u64 = 100;
const RESPONSE_FREE_BYTES: u64 = 1 << 20;
/// Coded bytes kept until something came out of them, to be shown as they are if they turn out not to be
/// coded.
const START_BYTES_MAX: usize = 64 << 10;

/// One body: shown as it is, or decoded.
#[derive(Debug, Default)]
pub(crate) struct CodedBody {
    codings: Vec<Coding>,
    decoder: Option<CodingDecoder>,
    ratio_max: u64,
    free_bytes: u64,
    start: Vec<u8>,
    error: Option<CodingError>,
    /// Nothing was decoded before the error: rules see the bytes as they came.
    as_sent: bool,
}

impl CodedBody {
    /// For a request with these `Content-Encoding` fields, of which `ratio_max` bytes may come out for each
    /// that goes in.
    pub(crate) fn request<'a>(fields: impl IntoIterator<Item = &'a [u8]>, ratio_max: u64) -> CodedBody {
        CodedBody { ratio_max, free_bytes: REQUEST_FREE_BYTES, ..CodedBody::new(fields) }
    }

    /// For a response.
    pub(crate) fn response<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> CodedBody {
        CodedBody { ratio_max: RESPONSE_RATIO_MAX, free_bytes: RESPONSE_FREE_BYTES, ..CodedBody::new(fields) }
    }

    fn new<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> CodedBody {
        match codings(fields) {
            Ok(codings) => CodedBody { codings, ..CodedBody::default() },
            Err(error) => CodedBody { error: Some(error), as_sent: true, ..CodedBody::default() },
        }
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.start.capacity() + self.decoder.as_ref().map_or(0, CodingDecoder::held_bytes)
    }

    /// There is a coding, known or not.
    pub(crate) fn is_coded(&self) -> bool {
        self.error.is_some() || !self.codings.is_empty()
    }

    /// Returns the error for which the rules do not see the body's content, if there is one.
    pub(crate) fn error(&self) -> Option<CodingError> {
        self.error
    }

    /// The next bytes as they came. `bytes_max` is for what they decode to.
    pub(crate) fn feed(&mut self, chunk: &[u8], bytes_max: u64, take: &mut dyn FnMut(&[u8])) {
        if self.error.is_some() || self.codings.is_empty() {
            if self.as_sent || self.error.is_none() {
                take(chunk);
            }
            return;
        }
        let limits = CodingLimits { bytes_max, ratio_max: self.ratio_max, free_bytes: self.free_bytes };
        let decoder = self.decoder.get_or_insert_with(|| CodingDecoder::new(&self.codings, limits));
        if decoder.bytes_out() == 0 && self.start.len() <= START_BYTES_MAX {
            self.start.extend_from_slice(chunk);
        }
        let result = decoder.feed(chunk, take);
        let silent = decoder.bytes_out() == 0;
        if let Err(error) = result {
            self.error = Some(error);
            self.as_sent = silent && self.start.len() <= START_BYTES_MAX;
        }
        if self.as_sent {
            take(&self.start);
        }
        if !silent || self.as_sent {
            self.start = Vec::new();
        }
    }

    /// There is more of the body than was fed. If nothing has come out of the fed part, its bytes are
    /// shown as they are.
    pub(crate) fn cut(&mut self, take: &mut dyn FnMut(&[u8])) {
        let Some(decoder) = self.decoder.take().filter(|_| self.error.is_none()) else { return };
        if decoder.bytes_out() == 0 {
            self.error = Some(CodingError::Truncated);
            take(&self.start);
        }
    }

    /// The body is complete.
    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(&[u8])) {
        let Some(decoder) = self.decoder.take().filter(|_| self.error.is_none()) else { return };
        if let Err(error) = decoder.finish() {
            self.error = Some(error);
            take(&self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a=1` by gzip.
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03K\xb45\x04\0\x9d\x93\x1c\xb1\x03\0\0\0";

    #[track_caller]
    fn check(header: &str, body: &[u8], shown: &[u8], error: Option<CodingError>) {
        for size in [1, 3, body.len().max(1)] {
            let mut out = Vec::new();
            let mut coded = CodedBody::request([header.as_bytes()], 20);
            for chunk in body.chunks(size) {
                coded.feed(chunk, 1000, &mut |data| out.extend_from_slice(data));
            }
            coded.finish(&mut |data| out.extend_from_slice(data));
            assert_eq!((out.as_slice(), coded.error()), (shown, error), "{header}, {size}");
        }
    }

    #[test]
    fn decoded_where_it_can_be() {
        check("", b"a=1", b"a=1", None);
        check("gzip", GZIP, b"a=1", None);
        check("gzip", b"", b"", None);
    }

    #[test]
    fn shown_as_sent_where_it_cannot() {
        check("compress", b"a=1", b"a=1", Some(CodingError::Unsupported));
        check("gzip", b"a=1&b=2", b"a=1&b=2", Some(CodingError::Malformed));
        check("gzip", &GZIP[..5], &GZIP[..5], Some(CodingError::Truncated));
    }

    #[test]
    fn a_part_from_which_nothing_came() {
        for (part, shown, error) in
            [(&GZIP[..10], &GZIP[..10], Some(CodingError::Truncated)), (&GZIP[..15], b"a=1", None)]
        {
            let mut out = Vec::new();
            let mut coded = CodedBody::request([b"gzip".as_slice()], 20);
            coded.feed(part, 1000, &mut |data| out.extend_from_slice(data));
            coded.cut(&mut |data| out.extend_from_slice(data));
            assert_eq!((out.as_slice(), coded.error()), (shown, error));
        }
    }

    #[test]
    fn cut_off_where_it_goes_wrong() {
        let more = [GZIP, b"more"].concat();
        check("gzip", &more, b"a=1", Some(CodingError::Malformed));
    }
}
