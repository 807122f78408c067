/// The sizes a head may have. Every limit is checked before the bytes behind it are looked at, so the outcome
/// does not depend on how the input was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Request line or status line with its line end, in bytes. Beyond it: 414. Default 16,384.
    pub request_line_bytes_max: usize,
    /// One header line with its line end, in bytes. Beyond it: 431. Default 16,384.
    pub header_bytes_max: usize,
    /// The whole head with its empty line, in bytes. Beyond it: 431. Default 65,536.
    pub head_bytes_max: usize,
    /// Number of header lines. Beyond it: 431. Default 128.
    pub header_count_max: usize,
    /// Empty lines before the request line. Beyond it: 400. Default 2.
    pub empty_lines_max: usize,
    /// `Content-Length`. Beyond it: 413. Default 2^63 - 1, the most that common servers can hold.
    pub content_length_max: u64,
    /// One chunk-size line with its extensions and line end, in bytes. Beyond it the body is refused. Default
    /// 1,024.
    pub chunk_line_bytes_max: usize,
    /// Extensions of all chunks of a body, in bytes. Beyond it the body is refused. Default 16,384.
    pub chunk_extension_bytes_max: usize,
    /// The trailer section, in bytes. Beyond it the body is refused. Default 8,192.
    pub trailer_bytes_max: usize,
    /// Number of trailer fields. Beyond it the body is refused. Default 32.
    pub trailer_count_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line_bytes_max: 16 * 1024,
            header_bytes_max: 16 * 1024,
            head_bytes_max: 64 * 1024,
            header_count_max: 128,
            empty_lines_max: 2,
            content_length_max: i64::MAX as u64,
            chunk_line_bytes_max: 1024,
            chunk_extension_bytes_max: 16 * 1024,
            trailer_bytes_max: 8 * 1024,
            trailer_count_max: 32,
        }
    }
}
