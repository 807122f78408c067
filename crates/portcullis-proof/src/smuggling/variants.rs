//! Requests whose end can be read in more than one way, and plain ones among them.

use portcullis_testkit::{TestkitError, base64, corpora};

/// One connection's worth of bytes.
pub(super) struct Variant {
    pub(super) name: String,
    /// Everything that the client sends, for a host that is filled in for `HOST`.
    pub(super) bytes: Vec<u8>,
}

/// Rows of the corpus file. A runner that reads none of them must not pass.
const ROWS: usize = 94;

/// The request after each variant on its connection: the one that a smuggler would hide.
const SECOND: &[u8] = b"GET /second HTTP/1.1\r\nHost: HOST\r\n\r\n";

/// Those of the corpus, and `count` generated ones.
pub(super) fn all(count: usize, seed: u64) -> Result<Vec<Variant>, TestkitError> {
    let mut variants = corpus()?;
    let mut dice = Dice::new(seed);
    variants.extend((0..count).map(|number| generated(number, &mut dice)));
    Ok(variants)
}

fn corpus() -> Result<Vec<Variant>, TestkitError> {
    let rows: Vec<serde_json::Value> = corpora::records("robustness/http1-framing-variants.jsonl")?;
    if rows.len() != ROWS {
        return Err(TestkitError::Run(format!("{} rows of framing variants, not {ROWS}", rows.len())));
    }
    rows.iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            let name = format!("{}/{}", text("where"), text("name"));
            let bytes = |key: &str| match row[key].as_str().map(base64::decode) {
                Some(None) => Err(TestkitError::Run(format!("{name}: `{key}` is not Base64"))),
                Some(found) => Ok(found),
                None => Ok(None),
            };
            let line = bytes("header_line_b64")?;
            let line = line.unwrap_or_else(|| b"Transfer-Encoding: chunked".to_vec());
            let body = bytes("body_b64")?.unwrap_or_else(|| match name.starts_with("cl/") {
                true => b"hello".to_vec(),
                false => b"5\r\nhello\r\n0\r\n\r\n".to_vec(),
            });
            let head = b"POST /first HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\n";
            Ok(Variant { bytes: [&head[..], &line, b"\r\n\r\n", &body, SECOND].concat(), name })
        })
        .collect()
}

const METHODS: &[&str] = &["POST", "GET", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "post"];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/01.1", "HTTP/2.0"];
const TARGETS: &[&str] =
    &["/first", "/first?a=b", "http://HOST/first", "http://other/first", "/a b", "*", "//first", "/first#x"];
const ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\r\n", " \r\n", "\r\n ", "\x0b\r\n"];
const TE_NAMES: &[&str] = &[
    "Transfer-Encoding",
    "transfer-encoding",
    "TRANSFER-ENCODING",
    "Transfer_Encoding",
    "Transfer-Encoding ",
    " Transfer-Encoding",
    "\tTransfer-Encoding",
    "Transfer-Encoding\x00",
    "X\nTransfer-Encoding",
    "X\rTransfer-Encoding",
    "Transfer-\u{200b}Encoding",
    "Transfer Encoding",
    "TE",
];
const TE_VALUES: &[&str] = &[
    "chunked",
    "Chunked",
    " chunked",
    "\tchunked",
    "\x0bchunked",
    "chunked\x0c",
    "\"chunked\"",
    "chunked, identity",
    "identity, chunked",
    "identity",
    "gzip, chunked",
    "chunked, chunked",
    "chunked;q=1",
    "chunk",
    "xchunked",
    "chunked\x00",
    ",chunked",
    "chunked,",
    "\n chunked",
    "\r\n chunked",
    "",
    "c\u{200b}hunked",
];
const CL_NAMES: &[&str] = &[
    "Content-Length",
    "content-length",
    "Content_Length",
    "Content-Length ",
    " Content-Length",
    "Content-Length\t",
];
const CL_VALUES: &[&str] = &[
    "5",
    "15",
    "0",
    "005",
    "+5",
    "-5",
    "5 ",
    " 5",
    "\t5",
    "5,5",
    "5, 6",
    "0x5",
    "5.0",
    "5e0",
    "5;",
    "\"5\"",
    "",
    "a",
    "5 5",
    "99999999999999999999",
    "18446744073709551621",
    "4294967301",
    "\x0b5",
    "5\x00",
    "\u{ff15}",
];
const CHUNK_SIZES: &[&str] = &[
    "5",
    "05",
    "0005",
    "5;a=b",
    "5; a=\"b\"",
    "5;\n",
    "5 ",
    " 5",
    "\t5",
    "5\t",
    "0x5",
    "+5",
    "-5",
    "5\r",
    "5\x00",
    "5g",
    "00000000000000000005",
    "10000000000000005",
    "FFFFFFFFFFFFFFFFF5",
    "",
    "5;a\rb",
    "5 ;a",
    "5\x0b",
];
const CHUNK_ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\n\r\n", "", "x\r\n", "\n\n"];
const LAST: &[&str] = &[
    "0\r\n\r\n",
    "0\n\n",
    "0\r\n",
    "00\r\n\r\n",
    "0;x\r\n\r\n",
    "0\r\nX: y\r\n\r\n",
    "0\r\nContent-Length: 5\r\n\r\n",
    "0\r\n X\r\n\r\n",
    "-0\r\n\r\n",
    "0 \r\n\r\n",
    "\r\n0\r\n\r\n",
    "0\r\nTransfer-Encoding: chunked\r\n\r\n",
];
const OTHERS: &[&str] = &[
    "Connection: close",
    "Connection: keep-alive",
    "Connection: Content-Length",
    "Connection: Transfer-Encoding",
    "Connection: close, Transfer-Encoding",
    "Expect: 100-continue",
    "Expect: 100-Continue, x",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "Connection: Upgrade, HTTP2-Settings",
    "Host: other",
    "Content-Type: text/plain",
    "X-Folded: a\r\n b",
    "X: y\r\nContent-Length: 5",
    "X: y\nContent-Length: 5",
    "X: y\rContent-Length: 5",
    "No-Colon",
    ": empty name",
    "A\x00B: c",
    "Trailer: Content-Length",
    "Content-Encoding: chunked",
];

fn generated(number: usize, dice: &mut Dice) -> Variant {
    let mut names = vec![format!("generated/{number}")];
    let method = dice.mostly_first(METHODS);
    let mut head = format!("{method} {} {}", dice.mostly_first(TARGETS), dice.mostly_first(VERSIONS));
    let mut lines = vec!["Host: HOST".to_owned()];
    let (mut chunked, mut length) = (false, false);
    // Nothing, a length, chunks, or several of them.
    for _ in 0..dice.below(4) {
        if dice.below(2) == 0 {
            chunked = true;
            lines.push(format!(
                "{}:{}{}",
                dice.mostly_first(TE_NAMES),
                dice.mostly_first(&[" ", "", "\t"]),
                dice.mostly_first(TE_VALUES)
            ));
        } else {
            length = true;
            lines.push(format!(
                "{}:{}{}",
                dice.mostly_first(CL_NAMES),
                dice.mostly_first(&[" ", "", "\t"]),
                dice.mostly_first(CL_VALUES)
            ));
        }
    }
    for _ in 0..dice.below(3) {
        lines.push(dice.pick(OTHERS).to_owned());
    }
    // In any order.
    for at in (1..lines.len()).rev() {
        lines.swap(at, dice.below(at + 1));
    }
    names.push(
        lines.iter().filter(|line| !line.starts_with("Host: HOST")).cloned().collect::<Vec<_>>().join(" | "),
    );
    // Most heads have only plain line ends, or nothing else would ever be looked at.
    let odd = dice.below(4) == 0;
    for line in &lines {
        head.push_str(if odd { dice.mostly_first(ENDS) } else { "\r\n" });
        head.push_str(line);
    }
    head.push_str("\r\n\r\n");
    let mut bytes = head.into_bytes();
    if chunked {
        let body = format!(
            "{}\r\nhello{}{}",
            dice.mostly_first(CHUNK_SIZES),
            dice.mostly_first(CHUNK_ENDS),
            dice.mostly_first(LAST)
        );
        names.push(format!("{body:?}"));
        bytes.extend(body.bytes());
    } else if length {
        bytes.extend(b"hello");
    }
    bytes.extend(SECOND);
    Variant { name: names.join(" "), bytes }
}

/// xorshift64*: the same variants for the same seed.
/// Chance that a seed repeats.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(seed | 1)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit.max(1)
    }

    /// A variant with every anomaly is refused for the first one; one or two at a time say more.
    fn mostly_first<'a>(&mut self, from: &[&'a str]) -> &'a str {
        if self.below(4) == 0 { self.pick(from) } else { from[0] }
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
