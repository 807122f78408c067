//! go-ftw test files, the form in which the CRS project ships its regression tests.
//!
//! ```text
//!   *.yaml > [read] > TestFile > Test > Stage { input, output }
//!                                         |       |
//!                        [wire] request bytes    [judge] evidence > reasons why it failed, or none
//! ```
//!
//! The meaning of each field follows go-ftw 2 (its README and behaviour), anomalies included, because the
//! tests were written against it: header fields are sent sorted by name, a form body with no `%` or `+` in it
//! is percent-encoded, line feeds of a multipart body become CRLF. Fields that go-ftw reads and then ignores
//! (`save_cookie`, `dest_addr` and `port` once the runner overrides them) are read and ignored here too. A
//! field that it would ignore silently because it does not know it (a mistyped one) is an error here.

mod judge;
mod read;
mod template;
mod wire;

pub use judge::{Evidence, LogLine};
pub use read::{Suite, parse, read_folder};

/// One file: the tests of one rule.
#[derive(Clone, Debug)]
pub struct TestFile {
    /// Folder of the file, such as `REQUEST-941-APPLICATION-ATTACK-XSS`.
    pub family: String,
    /// Rule under test.
    pub rule_id: u32,
    /// Tests in order.
    pub tests: Vec<Test>,
}

/// One test: stages that run in order; all must pass.
#[derive(Clone, Debug)]
pub struct Test {
    /// Rule under test.
    pub rule_id: u32,
    /// Number within the rule.
    pub test_id: u32,
    /// Its purpose, in its author's words.
    pub description: String,
    /// Requests with what is expected of them.
    pub stages: Vec<Stage>,
}

impl Test {
    /// `920100-4`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.rule_id, self.test_id)
    }
}

/// One request and what is expected of it.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The request.
    pub input: Input,
    /// The expectation.
    pub output: Output,
}

/// The request to send.
#[derive(Clone, Debug)]
pub struct Input {
    /// Request target, bytes as they are. Default `/`.
    pub uri: String,
    /// Method, bytes as they are. Default `GET`.
    pub method: String,
    /// Version, bytes as they are. Default `HTTP/1.1`.
    pub version: String,
    /// Header fields in sending order.
    pub headers: Vec<(String, String)>,
    /// Body after templates and Base64; `None` if there is none.
    pub data: Option<Vec<u8>>,
    /// The whole request, in place of all other fields.
    pub encoded_request: Option<Vec<u8>>,
    /// True if `Content-Type`, `Connection` and `Content-Length` are added where missing.
    pub autocomplete_headers: bool,
    /// True if target and `Host` come from the previous stage's redirect.
    pub follow_redirect: bool,
}

/// The expected output.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Status of the first response head; 0 is "any".
    pub status: u16,
    /// Pattern to be found in the response.
    pub response_contains: Option<String>,
    /// Rules that must have logged.
    pub expect_ids: Vec<u32>,
    /// Rules that must not have logged.
    pub no_expect_ids: Vec<u32>,
    /// Pattern to be found in a line of the log.
    pub match_regex: Option<String>,
    /// Pattern that no line of the log may have.
    pub no_match_regex: Option<String>,
    /// No valid response may come (closed connection, time-out, not HTTP). Nothing else is then judged.
    pub expect_error: bool,
    /// Exactly one rule may have logged.
    pub isolated: bool,
}
