use super::Limits;
use super::chunked::Chunked;
use crate::message::{BodyFraming, Fields};

/// One step of [`BodyDecoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'b> {
    /// Decoded body bytes, a slice of the input; may be empty.
    pub data: &'b [u8],
    /// Number of input bytes that were used, framing included. The bytes behind it are not touched: with
    /// `done` they belong to the next message.
    pub consumed: usize,
    /// The body is complete.
    pub done: bool,
}

/// Finds the end of a body and takes its framing off. Push style and zero-copy.
///
/// ```
/// use portcullis_http::h1::{BodyDecoder, BodyFraming, Limits};
///
/// let mut decoder = BodyDecoder::request(BodyFraming::Chunked, &Limits::default());
/// let mut input = &b"5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n"[..];
/// let mut body = Vec::new();
/// loop {
///     let step = decoder.decode(input)?;
///     body.extend_from_slice(step.data);
///     input = &input[step.consumed..];
///     if step.done || step.consumed == 0 {
///         break; // complete, or more input is needed
///     }
/// }
/// assert_eq!(body, b"hello");
/// assert_eq!(input, b"GET / HTTP/1.1\r\n");
/// # Ok::<(), portcullis_http::h1::BodyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    /// A chunked body cannot be read on after an error.
    failed: Option<BodyError>,
    decoded: u64,
}

#[derive(Clone, Debug)]
enum State {
    Length(u64),
    UntilClose,
    Chunked(Box<Chunked>),
}

impl BodyDecoder {
    /// For the body of a request.
    pub fn request(framing: BodyFraming, limits: &Limits) -> Self {
        BodyDecoder::new(framing, limits, false)
    }

    /// For the body of a response. Tolerates blanks between a chunk's size and its line end, which some
    /// servers pad with.
    pub fn response(framing: BodyFraming, limits: &Limits) -> Self {
        BodyDecoder::new(framing, limits, true)
    }

    /// For a body whose framing another protocol has taken off: a length holds, and all else ends where that
    /// says so.
    pub fn unframed(framing: BodyFraming) -> Self {
        let framing = match framing {
            BodyFraming::Chunked => BodyFraming::UntilClose,
            framing @ (BodyFraming::None | BodyFraming::Length(_) | BodyFraming::UntilClose) => framing,
        };
        BodyDecoder::new(framing, &Limits::default(), false)
    }

    fn new(framing: BodyFraming, limits: &Limits, padding: bool) -> Self {
        let state = match framing {
            BodyFraming::None => State::Length(0),
            BodyFraming::Length(n) => State::Length(n),
            BodyFraming::UntilClose => State::UntilClose,
            BodyFraming::Chunked => State::Chunked(Box::new(Chunked::new(*limits, padding))),
        };
        BodyDecoder { state, failed: None, decoded: 0 }
    }

    /// Decodes from the start of `input` up to the end of the first piece of data. `consumed` is 0 only if
    /// the body is done or `input` is empty.
    ///
    /// After an error every call gives the same error.
    pub fn decode<'b>(&mut self, input: &'b [u8]) -> Result<Decoded<'b>, BodyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let step = match &mut self.state {
            State::Length(left) => {
                let n = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= n as u64;
                Decoded { data: &input[..n], consumed: n, done: *left == 0 }
            }
            State::UntilClose => Decoded { data: input, consumed: input.len(), done: false },
            State::Chunked(chunked) => match chunked.decode(input) {
                Ok(step) => step,
                Err(error) => {
                    self.failed = Some(error);
                    return Err(error);
                }
            },
        };
        self.decoded += step.data.len() as u64;
        Ok(step)
    }

    /// True once the whole body has been decoded.
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Length(left) => *left == 0,
            State::UntilClose => false,
            State::Chunked(chunked) => chunked.is_done(),
        }
    }

    /// As [`close`](BodyDecoder::close); the body is done then.
    pub fn end(&mut self) -> Result<(), BodyError> {
        self.close()?;
        if let State::UntilClose = self.state {
            self.state = State::Length(0);
        }
        Ok(())
    }

    /// The peer closed. An error unless that is how this body ends, or it was complete.
    pub fn close(&self) -> Result<(), BodyError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.is_done() || matches!(self.state, State::UntilClose) => Ok(()),
            None => Err(BodyError::Truncated),
        }
    }

    /// Body bytes decoded so far.
    pub fn decoded_len(&self) -> u64 {
        self.decoded
    }

    /// The trailer fields; complete once the body is done. They are evidence: the writer does not forward
    /// them.
    pub fn trailers(&self) -> Fields<'_> {
        match &self.state {
            State::Chunked(chunked) => chunked.trailers(),
            State::Length(_) | State::UntilClose => Fields::new(&[], &[]),
        }
    }

    /// True if a chunk carried extensions. They are not forwarded.
    pub fn saw_extensions(&self) -> bool {
        matches!(&self.state, State::Chunked(chunked) if chunked.saw_extensions())
    }
}

macro_rules! body_errors {
    ($($variant:ident $name:literal $status:literal $text:literal,)*) => {
        /// The reason why a body cannot be decoded. The connection is of no further use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum BodyError { $(#[doc = $text] $variant,)* }

        impl BodyError {
            /// Every error.
            pub const ALL: &'static [BodyError] = &[$(BodyError::$variant,)*];

            /// The name used in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(BodyError::$variant => $name,)* }
            }

            /// The status to answer a request with. A response that fails so gives 502, or is cut off.
            pub fn status(self) -> u16 {
                match self { $(BodyError::$variant => $status,)* }
            }

            /// One sentence for a person.
            pub fn explanation(self) -> &'static str {
                match self { $(BodyError::$variant => $text,)* }
            }
        }
    };
}

body_errors! {
    Truncated "truncated" 400 "The connection ended within the body.",
    InvalidChunkSize "invalid-chunk-size" 400 "A chunk does not begin with its size in hexadecimal digits.",
    ChunkTooLarge "chunk-too-large" 413 "A chunk size has more than 16 digits or exceeds content_length_max.",
    InvalidChunkExtension "invalid-chunk-extension" 400 "A chunk extension holds a control byte or an open quote.",
    ChunkLineTooLong "chunk-line-too-long" 400 "A chunk-size line exceeds chunk_line_bytes_max.",
    ChunkExtensionsTooLong "chunk-extensions-too-long" 400 "The chunk extensions exceed chunk_extension_bytes_max.",
    InvalidChunkLineEnd "invalid-chunk-line-end" 400 "A chunk-size line does not end in CRLF.",
    InvalidChunkEnd "invalid-chunk-end" 400 "The data of a chunk is not followed by CRLF.",
    InvalidTrailer "invalid-trailer" 400 "A trailer line is not a header line ending in CRLF.",
    ForbiddenTrailer "forbidden-trailer" 400 "A trailer field would change framing or routing.",
    TrailersTooLong "trailers-too-long" 431 "The trailers exceed trailer_bytes_max or trailer_count_max.",
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.explanation())
    }
}

impl std::error::Error for BodyError {}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = (Vec<u8>, usize, Result<bool, BodyError>);

    fn run(framing: BodyFraming, response: bool, pieces: &[&[u8]]) -> Outcome {
        let limits = Limits::default();
        let mut decoder = if response {
            BodyDecoder::response(framing, &limits)
        } else {
            BodyDecoder::request(framing, &limits)
        };
        let (mut body, mut consumed) = (Vec::new(), 0);
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() && !decoder.is_done() {
                match decoder.decode(rest) {
                    Ok(step) => {
                        body.extend_from_slice(step.data);
                        consumed += step.consumed;
                        rest = &rest[step.consumed..];
                        assert_eq!(step.done, decoder.is_done());
                    }
                    Err(error) => return (body, consumed, Err(error)),
                }
            }
        }
        (body, consumed, Ok(decoder.is_done()))
    }

    fn check(input: &str, expected: Result<(&str, usize), BodyError>) {
        let whole = run(BodyFraming::Chunked, false, &[input.as_bytes()]);
        match expected {
            Ok((body, rest)) => {
                assert_eq!(whole.2, Ok(true), "{input:?}");
                assert_eq!(whole.0, body.as_bytes(), "{input:?}");
                assert_eq!(whole.1, input.len() - rest, "{input:?}");
            }
            Err(error) => assert_eq!(whole.2, Err(error), "{input:?}"),
        }
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        let single = run(BodyFraming::Chunked, false, &bytes);
        assert_eq!((&single.0, &single.2), (&whole.0, &whole.2), "{input:?}");
    }

    #[test]
    fn chunked_bodies() {
        use BodyError as E;
        check("0\r\n\r\n", Ok(("", 0)));
        check("5\r\nhello\r\n0\r\n\r\nGET", Ok(("hello", 3)));
        check("5;a=b;c=\"d;\\\"\"\r\nhello\r\n000;x\r\n\r\n", Ok(("hello", 0)));
        check("5 ;a\r\nhello\r\n0\r\n\r\n", Err(E::InvalidChunkSize));
        check("A\r\n0123456789\r\n1\r\nx\r\n0\r\nX: y\r\n\r\n", Ok(("0123456789x", 0)));
        check("0000000000000001\r\nx\r\n0\r\n\r\n", Ok(("x", 0)));
        check("00000000000000001\r\nx\r\n0\r\n\r\n", Err(E::ChunkTooLarge));
        check("ffffffffffffffff\r\nx", Err(E::ChunkTooLarge));
        check("\r\n", Err(E::InvalidChunkSize));
        check("g\r\n", Err(E::InvalidChunkSize));
        check("0x5\r\nhello", Err(E::InvalidChunkSize));
        check("+5\r\nhello", Err(E::InvalidChunkSize));
        check(" 5\r\nhello", Err(E::InvalidChunkSize));
        check("5 \r\nhello", Err(E::InvalidChunkSize));
        check("5\nhello", Err(E::InvalidChunkLineEnd));
        check("5\rhello", Err(E::InvalidChunkLineEnd));
        check("5;a\nhello", Err(E::InvalidChunkLineEnd));
        check("5;a\rhello", Err(E::InvalidChunkLineEnd));
        check("5;a\0\r\nhello", Err(E::InvalidChunkExtension));
        check("5;a=\"\r\nhello", Err(E::InvalidChunkExtension));
        check("5\r\nhelloX\r\n", Err(E::InvalidChunkEnd));
        check("5\r\nhello\n0\r\n\r\n", Err(E::InvalidChunkEnd));
        check("5\r\nhello\r0\r\n\r\n", Err(E::InvalidChunkEnd));
        check("0\r\nA: b\n\r\n", Err(E::InvalidTrailer));
        check("0\r\n\n", Err(E::InvalidTrailer));
        check("0\r\nA : b\r\n\r\n", Err(E::InvalidTrailer));
        check("0\r\nA: b\r\n c\r\n\r\n", Err(E::InvalidTrailer));
        check("0\r\nContent-length: 5\r\n\r\n", Err(E::ForbiddenTrailer));
        check("0\r\ntransfer_encoding: x\r\n\r\n", Err(E::ForbiddenTrailer));
        check(&format!("5;{}\r\nhello", "x".repeat(1024)), Err(E::ChunkLineTooLong));
        check(&format!("0\r\nA: {}\r\n\r\n", "x".repeat(8192)), Err(E::TrailersTooLong));
        check(&format!("0\r\n{}\r\n", "a: b\r\n".repeat(33)), Err(E::TrailersTooLong));
        check(&format!("0\r\n{}\r\n", "a: b\r\n".repeat(32)), Ok(("", 0)));
        check(
            &format!("{}0\r\n\r\n", format!("1;{}\r\nx\r\n", "e".repeat(1000)).repeat(17)),
            Err(E::ChunkExtensionsTooLong),
        );
    }

    #[test]
    fn padded_sizes_in_responses() {
        let text = b"5  \r\nhello\r\n0 \r\n\r\n";
        assert_eq!(run(BodyFraming::Chunked, true, &[text]), (b"hello".to_vec(), text.len(), Ok(true)));
        assert_eq!(run(BodyFraming::Chunked, true, &[b"5 5\r\n"]).2, Err(BodyError::InvalidChunkSize));
    }

    #[test]
    fn other_framings() {
        assert_eq!(run(BodyFraming::Length(3), false, &[b"ab", b"cde"]), (b"abc".to_vec(), 3, Ok(true)));
        assert_eq!(run(BodyFraming::Length(3), false, &[b"ab"]), (b"ab".to_vec(), 2, Ok(false)));
        assert_eq!(run(BodyFraming::None, false, &[b"ab"]), (Vec::new(), 0, Ok(true)));
        assert_eq!(run(BodyFraming::UntilClose, true, &[b"ab", b"c"]), (b"abc".to_vec(), 3, Ok(false)));
        let limits = Limits::default();
        assert_eq!(BodyDecoder::response(BodyFraming::UntilClose, &limits).close(), Ok(()));
        assert_eq!(BodyDecoder::response(BodyFraming::Length(1), &limits).close(), Err(BodyError::Truncated));
        assert_eq!(BodyDecoder::request(BodyFraming::Chunked, &limits).close(), Err(BodyError::Truncated));
    }

    #[test]
    fn trailers_are_kept() {
        let mut decoder = BodyDecoder::request(BodyFraming::Chunked, &Limits::default());
        assert!(decoder.decode(b"0\r\nX-Sum:  7 \r\nY:\r\n\r\n").unwrap().done);
        assert_eq!(decoder.trailers().collect::<Vec<_>>(), [(&b"X-Sum"[..], &b"7"[..]), (b"Y", b"")]);
    }
}
