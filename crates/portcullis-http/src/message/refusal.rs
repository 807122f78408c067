macro_rules! refusals {
    ($($variant:ident $name:literal $status:literal $text:literal,)*) => {
        /// The reason why a request head is refused: one variant for each fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Refusal { $(#[doc = $text] $variant,)* }

        impl Refusal {
            /// Every refusal.
            pub const ALL: &'static [Refusal] = &[$(Refusal::$variant,)*];

            /// The name used in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Refusal::$variant => $name,)* }
            }

            /// The status to answer with; the connection closes after it.
            pub fn status(self) -> u16 {
                match self { $(Refusal::$variant => $status,)* }
            }

            /// One sentence for a person. Never holds bytes of the request.
            pub fn explanation(self) -> &'static str {
                match self { $(Refusal::$variant => $text,)* }
            }
        }
    };
}

refusals! {
    NotHttp "not-http" 400 "The first byte cannot begin an HTTP request.",
    LeadingWhitespace "leading-whitespace" 400 "Blanks precede the method.",
    InvalidMethod "invalid-method" 400 "The method is not a token.",
    MalformedRequestLine "malformed-request-line" 400 "The request line is not method, space, target, space, version.",
    MissingVersion "missing-version" 400 "The request line has no version (an HTTP/0.9 request).",
    MalformedVersion "malformed-version" 400 "The version is not of the form HTTP/1.1.",
    UnsupportedVersion "unsupported-version" 505 "The version is well formed, but neither HTTP/1.0 nor HTTP/1.1.",
    SpaceInTarget "space-in-target" 400 "The target holds a raw space.",
    ControlInTarget "control-in-target" 400 "The request line holds a control byte.",
    FragmentInTarget "fragment-in-target" 400 "The target holds a raw number sign.",
    InvalidTarget "invalid-target" 400 "The target is not a path, a URI, or one the method allows.",
    InvalidScheme "invalid-scheme" 400 "`:scheme` is neither http nor https, or says http on a connection with TLS.",
    AmbiguousPath "ambiguous-path" 400 "Servers read the path in different ways, which lead to different routes of this site.",
    ParentSegment "parent-segment" 400 "The path has a segment that stands for its parent (`..`, `%2e%2e`).",
    InvalidAuthority "invalid-authority" 400 "The host named by the target is not a plain host and port.",
    ConnectNotSupported "connect-not-supported" 405 "CONNECT asks for a tunnel, which a reverse proxy does not open.",
    RequestLineTooLong "request-line-too-long" 414 "The request line exceeds request_line_bytes_max.",
    HeaderTooLong "header-too-long" 431 "One header exceeds header_bytes_max.",
    HeadTooLong "head-too-long" 431 "The head exceeds head_bytes_max.",
    TooManyHeaders "too-many-headers" 431 "The head has more headers than header_count_max.",
    TooManyEmptyLines "too-many-empty-lines" 400 "More empty lines than tolerated precede the request line.",
    MixedLineEnds "mixed-line-ends" 400 "Some lines end in CRLF and others in LF alone.",
    BareCarriageReturn "bare-carriage-return" 400 "A CR is not followed by LF.",
    FoldedHeader "obs-fold" 400 "A header value continues on a second line.",
    MissingColon "missing-colon" 400 "A header line has no colon.",
    EmptyHeaderName "empty-header-name" 400 "A header line begins with the colon.",
    SpaceBeforeColon "space-before-colon" 400 "A blank stands between a header's name and its colon.",
    InvalidHeaderName "invalid-header-name" 400 "A header name is not a token.",
    ControlInHeader "control-in-header" 400 "A header value holds a control byte.",
    MissingHost "missing-host" 400 "An HTTP/1.1 request has no Host header.",
    EmptyHost "empty-host" 400 "The Host header of an HTTP/1.1 request is empty.",
    DuplicateHost "duplicate-host" 400 "There is more than one Host header.",
    InvalidHost "invalid-host" 400 "The Host header is not a plain host and port.",
    HostMismatch "host-mismatch" 400 "The target names another host than the Host header.",
    InvalidContentLength "invalid-content-length" 400 "Content-Length is not a number.",
    DuplicateContentLength "duplicate-content-length" 400 "There is more than one Content-Length.",
    ContentLengthTooLarge "content-length-too-large" 413 "Content-Length exceeds content_length_max.",
    LengthAndTransferEncoding "length-and-transfer-encoding" 400 "Content-Length and Transfer-Encoding are both present.",
    InvalidTransferEncoding "invalid-transfer-encoding" 400 "Transfer-Encoding does not end in chunked, or names it twice.",
    UnsupportedTransferEncoding "unsupported-transfer-encoding" 501 "Transfer-Encoding names a coding other than chunked.",
    TransferEncodingInHttp10 "transfer-encoding-in-http-1.0" 400 "Transfer-Encoding came in a request older than HTTP/1.1.",
    DisguisedFraming "disguised-framing" 400 "A header name reads as Content-Length or Transfer-Encoding to some servers only.",
    ChunkedContentEncoding "chunked-content-encoding" 400 "Content-Encoding names chunked, which is no content coding.",
    UppercaseHeaderName "uppercase-header-name" 400 "A header name of an HTTP/2 request has a letter in upper case.",
    ConnectionHeader "connection-header" 400 "An HTTP/2 request has a header that belongs to one HTTP/1 connection.",
    Incomplete "incomplete" 400 "The connection ended within the head.",
}
