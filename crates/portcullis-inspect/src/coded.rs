//! A body in content codings on its way to the rules.

use portcullis_http::coding::{Coding, CodingDecoder, CodingError, CodingLimits, coding_names, codings};
use portcullis_http::message::RequestHead;

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
    /// The settings let bodies in one of its codings pass without inspection.
    passes: bool,
    /// Bytes in the frame of S3, by the head.
    framed_bytes: Option<u64>,
}

/// Settings of content codings.
#[derive(Debug)]
pub(crate) struct CodingPolicy {
    /// Bytes that may come out of a request body for each that goes in.
    pub(crate) ratio_max: u64,
    /// Names of codings, in lower case, in which bodies pass without inspection.
    pub(crate) uninspected: Vec<String>,
}

impl CodedBody {
    /// For the body of a request.
    pub(crate) fn request(head: &RequestHead, policy: &CodingPolicy) -> CodedBody {
        let plain =
            CodedBody { ratio_max: policy.ratio_max, free_bytes: REQUEST_FREE_BYTES, ..CodedBody::default() };
        // One look at each field, of which most requests have neither.
        let is_telling = |name: &[u8]| {
            name.eq_ignore_ascii_case(b"content-encoding")
                || name.eq_ignore_ascii_case(b"x-amz-content-sha256")
        };
        if !head.fields().any(|(name, _)| is_telling(name)) {
            return plain;
        }
        let fields = || head.header("content-encoding");
        let is_passed =
            |name: &[u8]| policy.uninspected.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        let body = match coding_names(fields()).any(is_passed) {
            true => CodedBody { passes: true, ..CodedBody::unreadable(CodingError::Unsupported) },
            false => CodedBody::new(fields()),
        };
        let CodedBody { ratio_max, free_bytes, .. } = plain;
        let mut body = CodedBody { ratio_max, free_bytes, ..body };
        // Some clients of S3 name the frame here only.
        let is_streaming = |value: &[u8]| value.len() > 10 && value[..10].eq_ignore_ascii_case(b"STREAMING-");
        let is_framed = body.codings.last() == Some(&Coding::AwsChunked);
        if body.error.is_none() && !is_framed && head.header("x-amz-content-sha256").any(is_streaming) {
            body.codings.push(Coding::AwsChunked);
        }
        if body.is_framed() {
            let number = |value: &[u8]| std::str::from_utf8(value).ok()?.trim().parse::<u64>().ok();
            let lengths = head.header("x-amz-decoded-content-length").map(number);
            // Of several that differ none can be right.
            body.framed_bytes = lengths
                .reduce(|one, other| if one == other { one } else { None })
                .map(|length| length.unwrap_or(u64::MAX));
        }
        body
    }

    /// For a response.
    pub(crate) fn response<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> CodedBody {
        CodedBody { ratio_max: RESPONSE_RATIO_MAX, free_bytes: RESPONSE_FREE_BYTES, ..CodedBody::new(fields) }
    }

    fn new<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> CodedBody {
        match codings(fields) {
            Ok(codings) => CodedBody { codings, ..CodedBody::default() },
            Err(error) => CodedBody::unreadable(error),
        }
    }

    fn unreadable(error: CodingError) -> CodedBody {
        CodedBody { error: Some(error), as_sent: true, ..CodedBody::default() }
    }

    /// Bodies in this coding pass without inspection.
    pub(crate) fn passes(&self) -> bool {
        self.passes
    }

    /// It is in the frame of S3, which an application that does not know it reads as a part of the body.
    pub(crate) fn is_framed(&self) -> bool {
        self.error.is_none() && self.codings.last() == Some(&Coding::AwsChunked)
    }

    /// It may be decoded piece by piece however long it is: nothing more comes out than goes in.
    pub(crate) fn streams(&self) -> bool {
        self.error.is_none() && matches!(*self.codings, [] | [Coding::AwsChunked])
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
        // Of a frame less comes out than goes in, which has its limit.
        let bytes_max = if self.streams() { u64::MAX } else { bytes_max };
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
        if self.streams() {
            return;
        }
        let Some(decoder) = self.decoder.take().filter(|_| self.error.is_none()) else { return };
        if decoder.bytes_out() == 0 {
            self.error = Some(CodingError::Truncated);
            take(&self.start);
        }
    }

    /// The body is complete.
    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(&[u8])) {
        let Some(decoder) = self.decoder.take().filter(|_| self.error.is_none()) else { return };
        let is_other_length = self
            .framed_bytes
            .is_some_and(|length| decoder.framed_bytes().is_some_and(|found| found != length));
        let ended = decoder.finish().and(if is_other_length { Err(CodingError::Malformed) } else { Ok(()) });
        if let Err(error) = ended {
            self.error = Some(error);
            take(&self.start);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser};

    use super::*;

    fn request(fields: &str, uninspected: &[&str]) -> CodedBody {
        let text = format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let parsed = RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes());
        let Parsed::Head(head) = parsed else { panic!("a head: {text}") };
        let uninspected = uninspected.iter().map(|name| (*name).to_owned()).collect();
        CodedBody::request(&head, &CodingPolicy { ratio_max: 20, uninspected })
    }

    /// `a=1` by gzip.
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03K\xb45\x04\0\x9d\x93\x1c\xb1\x03\0\0\0";

    #[track_caller]
    fn check(header: &str, body: &[u8], shown: &[u8], error: Option<CodingError>) {
        for size in [1, 3, body.len().max(1)] {
            let mut out = Vec::new();
            let mut coded = request(&format!("Content-Encoding: {header}\r\n"), &[]);
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
            let mut coded = request("Content-Encoding: gzip\r\n", &[]);
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

    fn finished(mut coded: CodedBody, body: &[u8]) -> (Vec<u8>, Option<CodingError>) {
        let mut out = Vec::new();
        coded.feed(body, 1000, &mut |data| out.extend_from_slice(data));
        coded.finish(&mut |data| out.extend_from_slice(data));
        (out, coded.error())
    }

    #[test]
    fn the_frame_of_s3_by_either_header() {
        let framed = b"3\r\na=1\r\n0\r\n\r\n";
        let sha = "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n";
        let length = |length: &str| format!("{sha}X-Amz-Decoded-Content-Length: {length}\r\n");
        for (fields, error) in [
            ("Content-Encoding: aws-chunked\r\n".to_owned(), None),
            (sha.to_owned(), None),
            (format!("{sha}Content-Encoding: aws-chunked\r\n"), None),
            (length("3"), None),
            (length("2"), Some(CodingError::Malformed)),
            (length("-3"), Some(CodingError::Malformed)),
            (format!("{}{}", length("3"), length("4")), Some(CodingError::Malformed)),
        ] {
            let coded = request(&fields, &[]);
            assert!(coded.is_framed() && coded.streams(), "{fields}");
            assert_eq!(finished(coded, framed), (b"a=1".to_vec(), error), "{fields}");
        }
        assert!(!request("x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n", &[]).is_coded());
        let body = format!("{sha}Content-Encoding: gzip\r\n");
        let framed = [b"17\r\n", GZIP, b"\r\n0\r\n\r\n"].concat();
        assert_eq!(finished(request(&body, &[]), &framed), (b"a=1".to_vec(), None));
    }

    #[test]
    fn codings_that_pass_as_they_are() {
        let passed = request("Content-Encoding: LZ4\r\n", &["lz4"]);
        assert!(passed.passes() && !passed.streams());
        assert_eq!(finished(passed, b"a=1"), (b"a=1".to_vec(), Some(CodingError::Unsupported)));
        for fields in
            ["Content-Encoding: gzip, lz4\r\n", "Content-Encoding: lz4\r\nContent-Encoding: gzip\r\n"]
        {
            assert!(request(fields, &["lz4"]).passes(), "{fields}");
        }
        assert!(!request("Content-Encoding: compress\r\n", &["lz4"]).passes());
        assert!(!request("Content-Encoding: gzip\r\n", &["lz4"]).passes());
    }
}
