//! Ways to write the framing of a request, of which only the plain ones may get through. Used by the tests of
//! the codec and of the proxy.

/// One way.
pub struct Form {
    /// The part that is varied: `te-value`, `te-name`, `cl` or `chunk-body`.
    pub place: &'static str,
    pub name: &'static str,
    /// The field line, without its end.
    pub line: &'static [u8],
    /// The body on the wire.
    pub body: &'static [u8],
    /// Every server reads it the same way.
    pub plain: bool,
}

const CHUNKS: &[u8] = b"5\r\nhello\r\n0\r\n\r\n";

const fn te(place: &'static str, name: &'static str, line: &'static [u8], plain: bool) -> Form {
    Form { place, name, line, body: CHUNKS, plain }
}

const fn cl(name: &'static str, line: &'static [u8], plain: bool) -> Form {
    Form { place: "cl", name, line, body: b"hello", plain }
}

const fn chunks(name: &'static str, body: &'static [u8], plain: bool) -> Form {
    Form { place: "chunk-body", name, line: b"Transfer-Encoding: chunked", body, plain }
}

pub const FORMS: &[Form] = &[
    te("te-value", "control", b"Transfer-Encoding: chunked", true),
    te("te-value", "no-blank", b"Transfer-Encoding:chunked", true),
    te("te-value", "capitals", b"Transfer-Encoding: CHUNKED", true),
    te("te-value", "tab-before", b"Transfer-Encoding:\tchunked", true),
    te("te-value", "blanks-behind", b"Transfer-Encoding: chunked \t", true),
    te("te-value", "letter-before", b"Transfer-Encoding: xchunked", false),
    te("te-value", "letter-behind", b"Transfer-Encoding: chunkedx", false),
    te("te-value", "blank-within", b"Transfer-Encoding: chun ked", false),
    te("te-value", "quoted", b"Transfer-Encoding: \"chunked\"", false),
    te("te-value", "parameter", b"Transfer-Encoding: chunked;q=1", false),
    te("te-value", "identity", b"Transfer-Encoding: identity", false),
    te("te-value", "identity-behind", b"Transfer-Encoding: chunked, identity", false),
    te("te-value", "not-last", b"Transfer-Encoding: chunked, gzip", false),
    te("te-value", "twice", b"Transfer-Encoding: chunked, chunked", false),
    te("te-value", "empty", b"Transfer-Encoding: ", false),
    te("te-value", "vertical-tab", b"Transfer-Encoding: chunked\x0b", false),
    te("te-value", "form-feed-before", b"Transfer-Encoding: \x0cchunked", false),
    te("te-value", "nul", b"Transfer-Encoding: chunked\0", false),
    te("te-value", "no-break-space", b"Transfer-Encoding: \xc2\xa0chunked", false),
    te("te-value", "folded", b"Transfer-Encoding:\r\n chunked", false),
    te("te-value", "bare-cr", b"Transfer-Encoding: chunked\rX: y", false),
    te("te-value", "with-length", b"Transfer-Encoding: chunked\r\nContent-Length: 5", false),
    te("te-value", "behind-length", b"Content-Length: 5\r\nTransfer-Encoding: chunked", false),
    te("te-name", "small-letters", b"transfer-encoding: chunked", true),
    te("te-name", "blank-behind", b"Transfer-Encoding : chunked", false),
    te("te-name", "tab-behind", b"Transfer-Encoding\t: chunked", false),
    te("te-name", "folded-to-the-line-before", b" Transfer-Encoding: chunked", false),
    te("te-name", "nul", b"Transfer-Encoding\0: chunked", false),
    te("te-name", "no-colon", b"Transfer-Encoding chunked", false),
    cl("control", b"Content-Length: 5", true),
    cl("leading-zero", b"Content-Length: 05", true),
    cl("plus", b"Content-Length: +5", false),
    cl("minus", b"Content-Length: -5", false),
    cl("hexadecimal", b"Content-Length: 0x5", false),
    cl("fraction", b"Content-Length: 5.0", false),
    cl("exponent", b"Content-Length: 5e0", false),
    cl("underscore", b"Content-Length: 0_5", false),
    cl("blank-within", b"Content-Length: 5 5", false),
    cl("empty", b"Content-Length: ", false),
    cl("two-numbers", b"Content-Length: 5, 6", false),
    cl("two-fields", b"Content-Length: 5\r\nContent-Length: 6", false),
    cl("too-large", b"Content-Length: 18446744073709551621", false),
    cl("blank-behind-name", b"Content-Length : 5", false),
    cl("arabic-digit", b"Content-Length: \xd9\xa5", false),
    chunks("control", CHUNKS, true),
    chunks("leading-zeros", b"0005\r\nhello\r\n0\r\n\r\n", true),
    chunks("extension", b"5;a=b\r\nhello\r\n0\r\n\r\n", true),
    chunks("upper-hex", b"A\r\nhellohello\r\n0\r\n\r\n", true),
    chunks("trailer", b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", true),
    chunks("prefix", b"0x5\r\nhello\r\n0\r\n\r\n", false),
    chunks("plus", b"+5\r\nhello\r\n0\r\n\r\n", false),
    chunks("minus", b"-5\r\nhello\r\n0\r\n\r\n", false),
    chunks("blank-before", b" 5\r\nhello\r\n0\r\n\r\n", false),
    chunks("underscore", b"0_5\r\nhello\r\n0\r\n\r\n", false),
    chunks("no-number", b"\r\nhello\r\n0\r\n\r\n", false),
    chunks("not-hexadecimal", b"g\r\nhello\r\n0\r\n\r\n", false),
    chunks("too-large", b"10000000000000005\r\nhello\r\n0\r\n\r\n", false),
    chunks("bare-lf", b"5\nhello\n0\n\n", false),
    chunks("bare-lf-in-extension", b"5;a\nb\r\nhello\r\n0\r\n\r\n", false),
    chunks("bare-cr", b"5\rhello\r\n0\r\n\r\n", false),
    chunks("longer-than-said", b"5\r\nhello!\r\n0\r\n\r\n", false),
    chunks("two-bytes-for-line-end", b"5\r\nhelloXX0\r\n\r\n", false),
];
