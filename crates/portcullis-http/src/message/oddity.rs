/// The severity of an [`Oddity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OddityClass {
    /// Not what a well-made client sends, but every reader takes it the same way.
    Acceptable,
    /// Readers are known to differ; it is forwarded in a form that leaves one reading.
    Ambiguous,
    /// Hardly ever innocent.
    Severe,
}

macro_rules! oddities {
    ($($variant:ident $name:literal $class:ident $text:literal,)*) => {
        /// Something unusual in a head that was accepted all the same. Rules and the event log see it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Oddity { $(#[doc = $text] $variant,)* }

        impl Oddity {
            /// All anomalies.
            pub const ALL: &'static [Oddity] = &[$(Oddity::$variant,)*];

            /// The name used in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Oddity::$variant => $name,)* }
            }

            /// Its severity.
            pub fn class(self) -> OddityClass {
                match self { $(Oddity::$variant => OddityClass::$class,)* }
            }

            /// One sentence for a person.
            pub fn explanation(self) -> &'static str {
                match self { $(Oddity::$variant => $text,)* }
            }
        }
    };
}

oddities! {
    LeadingEmptyLine "leading-empty-line" Acceptable "Empty lines precede the request line.",
    BareLineFeed "bare-line-feed" Ambiguous "Lines end in LF without CR; forwarded with CRLF.",
    FoldedHeader "folded-header" Ambiguous "A header value continues on a second line; forwarded on one line.",
    RawByteInTarget "raw-byte-in-target" Acceptable "The target holds a byte that a URI must percent-encode.",
    HighByteInTarget "high-byte-in-target" Acceptable "The target holds a byte above 0x7f.",
    BackslashInTarget "backslash-in-target" Ambiguous "The target holds a backslash, which some servers read as a slash.",
    HighByteInValue "high-byte-in-value" Acceptable "A header value holds a byte above 0x7f.",
    EmptyHost "empty-host" Acceptable "The Host header is empty.",
    MissingHost "missing-host" Acceptable "An HTTP/1.0 request has no Host header.",
    UnderscoreInName "underscore-in-name" Ambiguous "A header name holds an underscore, which some gateways read as a hyphen.",
    LeadingZeroLength "leading-zero-length" Acceptable "Content-Length has leading zeros; forwarded without them.",
    LengthDropped "length-dropped" Severe "Content-Length came with Transfer-Encoding; the length was dropped.",
    MergedHeader "merged-header" Ambiguous "Headers of the same name were joined with a comma.",
    DuplicateContentType "duplicate-content-type" Severe "More than one Content-Type was sent.",
    AbsoluteTarget "absolute-target" Acceptable "The request line names a whole URI; the path is forwarded.",
    SimpleRequest "simple-request" Severe "An HTTP/0.9 request: no version, no headers.",
    UnknownVersion "unknown-version" Severe "The version is well formed but unknown; treated as HTTP/1.1.",
    LowercaseMethod "lowercase-method" Acceptable "The method is not in upper case.",
    BodyWithoutMeaning "body-without-meaning" Ambiguous "A GET, HEAD, DELETE, OPTIONS, TRACE or CONNECT request has a body.",
    UnknownExpectation "unknown-expectation" Acceptable "Expect names something other than 100-continue.",
}
