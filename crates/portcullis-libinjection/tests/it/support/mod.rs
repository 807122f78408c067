//! Corpora, generated inputs, and a digest of a detector's answers.

use std::path::Path;

use serde_json::Value;

#[path = "../../../../portcullis-testkit/src/corpora_folder.rs"]
pub mod corpora_folder;

/// Every string in a file of JSON lines of the corpora, save those about the others.
pub fn strings(corpora: &Path, file: &str) -> Vec<Vec<u8>> {
    let path = corpora.join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = Vec::new();
    for line in text.lines() {
        collect(&serde_json::from_str(line).expect("a JSON line"), &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::String(text) => found.push(text.clone().into_bytes()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("src" | "lic" | "tier" | "family" | "class" | "pattern" | "tamper" | "mutator", _) => {}
                    ("b64" | "body_b64", Value::String(text)) => found.push(base64(text)),
                    _ => collect(value, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes().filter(|&byte| byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("not base64: {text}"),
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

/// The answers of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    pub cases: usize,
    pub sqli: usize,
    pub xss: usize,
    /// Of every input with its verdict and fingerprint, in any order.
    pub digest: u64,
}

impl Answers {
    pub const NONE: Answers = Answers { cases: 0, sqli: 0, xss: 0, digest: 0 };

    pub fn add(&mut self, input: &[u8], sqli: Option<&str>, xss: bool) {
        self.cases += 1;
        self.sqli += usize::from(sqli.is_some());
        self.xss += usize::from(xss);
        let verdict = if xss { b'\x01' } else { b'\x02' };
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for byte in input.iter().copied().chain(sqli.unwrap_or("-").bytes()).chain([verdict]) {
            // FNV-1a.
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest = self.digest.wrapping_add(hash);
    }
}

/// A small generator of random numbers (xorshift), so that all runs see the same inputs.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }
}

/// Up to 14 pieces in a row, some in upper case, some followed by a blank, some replaced by any byte.
pub fn soup(random: &mut Random, pieces: &[&[u8]]) -> Vec<u8> {
    let mut soup = Vec::new();
    for _ in 0..random.below(14) + 1 {
        if random.below(24) == 0 {
            soup.push(random.below(256) as u8);
        } else {
            let piece = pieces[random.below(pieces.len())];
            if random.below(4) == 0 {
                soup.extend(piece.to_ascii_uppercase());
            } else {
                soup.extend(piece);
            }
        }
        if random.below(3) == 0 {
            soup.push(b' ');
        }
    }
    soup
}

#[rustfmt::skip]
pub const SQL_PIECES: &[&[u8]] = &[
    b"'", b"\"", b"`", b"\\", b"\\N", b"--", b"-- ", b"#", b"/*", b"*/", b"/*!", b"/**/", b"(", b")", b"{", b"}", b"[",
    b"]", b",", b";", b":", b"::", b".", b"..", b"$", b"$$", b"$a$", b"$b", b"$1.50", b"$.", b"@", b"@@", b"@`", b"@'",
    b"?", b"!", b"!!", b"~", b"+", b"-", b"*", b"/", b"%", b"=", b"<", b"<=>", b">=", b"<>", b"||", b"&&", b"|", b"&",
    b"^", b" ", b"\t", b"\n", b"\0", b"\xa0", b"\x0b", b"\xff", b"1", b"0", b"2.5", b"1e5", b"1.e", b"1e+", b"0x",
    b"0xAF", b"0b", b"0b01", b"1f", b"1d", b"1fu", b"e'", b"n'", b"q'(", b")'", b"q'", b"nq'[", b"]'", b"u&'", b"b'01'",
    b"x'af'", b"b'", b"x'", b"x'a\0", b"union", b"all", b"select", b"distinct", b"from", b"where", b"and", b"or", b"xor",
    b"not", b"in", b"boolean", b"mode", b"like", b"between", b"is", b"null", b"if", b"exists", b"else", b"case", b"when",
    b"group", b"by", b"order", b"having", b"limit", b"into", b"outfile", b"dumpfile", b"drop", b"table", b"insert",
    b"delete", b"update", b"exec", b"declare", b"waitfor", b"delay", b"user", b"user_id", b"current_user", b"password",
    b"database", b"version", b"sleep", b"benchmark", b"char", b"collate", b"latin1_bin", b"utf8_bin", b"a_b", b"int",
    b"binary", b"varchar", b"_utf8", b"_latin1", b"foo", b"a.b", b"select.1", b"sp_password", b"div", b"mod", b"rlike",
    b"natural", b"left", b"outer", b"join", b"as", b"true", b"x", b"begin", b"create", b"replace", b"load_file", b"load",
    b"data", b"goto", b"dbms_pipe.receive_message", b"`if`", b"1'", b"'='", b"''", b"1,", b"(1)", b"-1", b"user(",
    b"{``", b"{a ",
];

#[rustfmt::skip]
pub const HTML_PIECES: &[&[u8]] = &[
    b"<", b"</", b">", b"/>", b"/", b"=", b"'", b"\"", b"`", b" ", b"\t", b"\n", b"\0", b"\x0c", b"\x0b", b"\xff", b"<!",
    b"<!--", b"-->", b"--!>", b"-\0->", b"--", b"-", b"!", b"<?", b"?>", b"<%", b"%>", b"%", b"<![CDATA[", b"]]>", b"]]",
    b"]", b"<!DOCTYPE", b"<!doctype ", b"script", b"svg", b"xsl", b"xml", b"style", b"href", b"src", b"onclick", b"on",
    b"onload", b"onerror", b"onfoo", b"xmlns", b"xlink:href", b"attributename", b"from", b"to", b"by", b"action", b"a",
    b"b", b"img", b"iframe", b"base", b"data:", b"java", b"javascript:", b"vbscript:", b"view-source:", b"&#", b"&#x",
    b"106", b"6a", b";", b"&", b"&#106;", b"&#x6a", b"&#0;", b"&#10;", b"&#32;", b"&#99999999", b"[if", b"import",
    b"entity", b"x", b"1", b"foo", b"<a ", b"<b x=", b"<img src=", b"style=", b"href=", b"onclick=", b"to='",
    b"attributename=", b"\xc3\xa9",
];
