//! Every limit of docs/limits.md with a payload behind it, in the real program: it is refused, or what was
//! not read is counted and told. A row of the page without a case here fails, and so does a case without a
//! row.

use std::io::Write as _;

use crate::served::{self, Served, application, says};
use portcullis_testkit::random::Random;

const SQLI: &str = "x' UNION SELECT user,password FROM users-- -";
const SHELL: &[u8] = b"<?php system($_GET['c']); ?>";
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data; boundary=B";
const BYTES: &str = "application/octet-stream";

/// The outcome of a payload behind a limit.
enum Comes {
    /// It is refused with one of these.
    Refused(&'static [u16]),
    /// It passes, and this reason is counted and told.
    Counted(&'static str),
    /// It is found all the same, and the event has this member.
    Told(&'static str),
}
use Comes::{Counted, Refused, Told};

/// The program that it is sent to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// The semantic detector, `request_body.limit` and `.upload_limit` small.
    Small,
    /// The semantic detector with its defaults.
    Semantic,
    /// ModSecurity's parsers and limits.
    Rules,
    /// Rules that take long.
    Work,
}

struct Case {
    /// The first cell of a row, or the heading of a section without one.
    row: &'static str,
    to: To,
    request: fn() -> Vec<u8>,
    comes: Comes,
}

fn get(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n").into_bytes()
}

fn post_with(media_type: &str, fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {media_type}\r\n{fields}Content-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn post(media_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    post_with(media_type, "", body)
}

/// A form with these parts, each its header lines and what it holds.
fn parts(parts: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (head, held) in parts {
        body.extend_from_slice(format!("--B\r\n{head}\r\n\r\n").as_bytes());
        body.extend_from_slice(held);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--B--\r\n");
    body
}

fn field(name: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{name}\"")
}

fn file(name: &str) -> String {
    format!("Content-Disposition: form-data; name=\"f\"; filename=\"{name}\"")
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

/// Random bytes, the same each time.
fn noise(length: usize) -> Vec<u8> {
    Random::new(1).bytes(length)
}

/// Words that differ, which pack to a third or so.
fn words(length: usize) -> Vec<u8> {
    let noise = noise(length / 5 + 1);
    noise.iter().flat_map(|byte| format!("w{byte:03} ").into_bytes()).take(length).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// A message of Protocol Buffers with one field of texts or of messages.
fn message(number: u8, held: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = held.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(held);
    out
}

/// In percent encoding, so many times.
fn encoded(text: &str, times: usize) -> String {
    (0..times).fold(text.to_owned(), |text, _| {
        text.bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    })
}

/// In one of four encodings.
fn layer(text: &str, kind: usize) -> String {
    let each = |byte: u8| match kind {
        0 => format!("%{byte:02X}"),
        1 => format!("&#{byte};"),
        2 => format!("\\u{byte:04x}"),
        _ => format!("\\x{byte:02x}"),
    };
    text.bytes().map(each).collect()
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Heads.
    Case { row: "request line; one field; all fields; their number", to: To::Semantic, comes: Refused(&[414]),
        request: || get(&format!("/?a={}&b={SQLI}", "x".repeat(17 << 10)).replace(' ', "+"), "") },
    Case { row: "request line; one field; all fields; their number", to: To::Semantic, comes: Refused(&[431]),
        request: || get("/", &format!("X-A: {}{SQLI}\r\n", "x".repeat(17 << 10))) },
    Case { row: "request line; one field; all fields; their number", to: To::Semantic, comes: Refused(&[431]),
        request: || get("/", &format!("{}X-B: {SQLI}\r\n", format!("X-A: {}\r\n", "x".repeat(8 << 10)).repeat(9))) },
    Case { row: "request line; one field; all fields; their number", to: To::Semantic, comes: Refused(&[431]),
        request: || get("/", &format!("{}X-B: {SQLI}\r\n", "X-A: x\r\n".repeat(130))) },
    Case { row: "`Content-Length`, `Transfer-Encoding` more than once or both", to: To::Semantic, comes: Refused(&[400]),
        request: || post_with(FORM, "Transfer-Encoding: chunked\r\n", format!("a={SQLI}")) },
    Case { row: "`Content-Length`, `Transfer-Encoding` more than once or both", to: To::Semantic, comes: Refused(&[400]),
        request: || post_with(FORM, "Content-Length: 3\r\n", format!("a={SQLI}")) },
    Case { row: "`Content-Type` more than once", to: To::Semantic, comes: Refused(&[400]),
        request: || post_with("text/plain", &format!("Content-Type: {FORM}\r\n"), format!("a={SQLI}")) },
    Case { row: "content codings in all `Content-Encoding` fields", to: To::Semantic, comes: Refused(&[400, 415]),
        request: || post_with(FORM, "Content-Encoding: gzip, gzip\r\nContent-Encoding: gzip\r\n",
            gzip(&gzip(&gzip(format!("a={SQLI}").as_bytes())))) },
    Case { row: "what else is unusual about a head", to: To::Semantic, comes: Told("/request/oddities"),
        request: || get(&format!("/?q={}", SQLI.replace(' ', "+")), "X-A: \u{e4}\r\n") },
    // Bodies.
    Case { row: "bytes held", to: To::Small, comes: Refused(&[413]),
        request: || post("application/json", format!("{{\"a\":\"{}\",\"b\":\"{SQLI}\"}}", "x".repeat(110_000))) },
    Case { row: "of that, what is not files", to: To::Small, comes: Refused(&[413]),
        request: || post(MULTIPART, parts(&[(file("a"), b"small".to_vec()),
            (field("a"), [&b"y".repeat(110_000), SQLI.as_bytes()].concat())])) },
    Case { row: "bytes of an upload", to: To::Small, comes: Refused(&[413]),
        request: || post(BYTES, [&noise(1_010_000)[..], SHELL].concat()) },
    Case { row: "arguments", to: To::Rules, comes: Refused(&[400]),
        request: || post(FORM, format!("{}b=attack", "a=1&".repeat(1_001))) },
    Case { row: "nesting of JSON; of XML; attributes of an element", to: To::Rules, comes: Refused(&[400]),
        request: || post("application/json", format!("{}\"attack\"{}", "[".repeat(600), "]".repeat(600))) },
    Case { row: "nesting of JSON; of XML; attributes of an element", to: To::Semantic, comes: Refused(&[403]),
        request: || post("application/json", format!("{}\"{SQLI}\"{}", "[".repeat(600), "]".repeat(600))) },
    Case { row: "nesting of JSON; of XML; attributes of an element", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || post("text/xml", format!("{}{SQLI}{}", "<a>".repeat(300), "</a>".repeat(300))) },
    Case { row: "nesting of JSON; of XML; attributes of an element", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || {
            let attributes: String = (0..300).map(|number| format!(" a{number}='1'")).collect();
            post("text/xml", format!("<a{attributes} b=\"{SQLI}\"/>"))
        } },
    Case { row: "bytes of a JSON path; of XML markup", to: To::Rules, comes: Refused(&[400]),
        request: || post("application/json", format!("{{\"{}\":\"attack\"}}", "k".repeat(17 << 10))) },
    Case { row: "bytes of a JSON path; of XML markup", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || post("application/json", format!("{{\"{}\":\"{SQLI}\"}}", "k".repeat(17 << 10))) },
    Case { row: "bytes of a JSON path; of XML markup", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || post("text/xml", format!("<a b='{}'>{SQLI}</a>", "x".repeat(1_100_000))) },
    Case { row: "bytes of names (paths in JSON) and values of arguments, as rules see them", to: To::Rules, comes: Refused(&[400]),
        request: || {
            let many: String = (0..300).map(|number| format!("\"a{number}\":1,")).collect();
            post("application/json", format!("{{\"{}\":{{{many}\"b\":\"attack\"}}}}", "k".repeat(15_000)))
        } },
    Case { row: "parts of a form; headers of a part; bytes of a line of them; of all", to: To::Semantic, comes: Refused(&[400]),
        request: || post(MULTIPART, parts(&vec![(field("a"), SQLI.as_bytes().to_vec()); 4_001])) },
    Case { row: "parts of a form; headers of a part; bytes of a line of them; of all", to: To::Semantic, comes: Refused(&[400]),
        request: || post(MULTIPART, parts(&[(format!("{}{}", "X-A: b\r\n".repeat(65), field("a")), SQLI.into())])) },
    Case { row: "parts of a form; headers of a part; bytes of a line of them; of all", to: To::Semantic, comes: Refused(&[400]),
        request: || post(MULTIPART, parts(&[(format!("X-A: {}\r\n{}", "b".repeat(5_000), field("a")), SQLI.into())])) },
    Case { row: "parts of a form; headers of a part; bytes of a line of them; of all", to: To::Semantic, comes: Refused(&[400]),
        request: || post(MULTIPART, parts(&[(format!("{}{}", format!("X-A: {}\r\n", "b".repeat(3_000)).repeat(6), field("a")), SQLI.into())])) },
    Case { row: "files of a form that rules read", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || {
            let mut all = vec![(file("a.txt"), b"hello".to_vec()); 101];
            all.push((file("a.png"), SHELL.to_vec()));
            post(MULTIPART, parts(&all))
        } },
    Case { row: "files of a form that rules read", to: To::Rules, comes: Refused(&[400, 403]),
        request: || post(MULTIPART, parts(&vec![(file("a.txt"), b"hello".to_vec()); 101])) },
    Case { row: "a body that is not the JSON its type says", to: To::Semantic, comes: Refused(&[403]),
        request: || post("application/json", format!("a=1&b={SQLI}")) },
    Case { row: "a body that is not the JSON its type says", to: To::Rules, comes: Refused(&[400]),
        request: || post("application/json", "a=1&b=attack") },
    Case { row: "decoded bytes of a content coding", to: To::Small, comes: Refused(&[413]),
        request: || post_with("application/json", "Content-Encoding: gzip\r\n",
            gzip(format!("{{\"a\":\"{}\",\"b\":\"{SQLI}\"}}", String::from_utf8(words(110_000)).unwrap()).as_bytes())) },
    Case { row: "decoded bytes of a content coding", to: To::Semantic, comes: Refused(&[413]),
        request: || post_with(FORM, "Content-Encoding: gzip\r\n", gzip(format!("a={}{SQLI}", "x".repeat(1_000_000)).as_bytes())) },
    Case { row: "decoded bytes of a body that is gzip without saying so", to: To::Semantic, comes: Counted("file_texts"),
        request: || post(BYTES, gzip(&[&words(9 << 20)[..], SHELL].concat())) },
    // Values.
    Case { row: "text of an XML element; an upload that is text", to: To::Semantic, comes: Refused(&[403]),
        request: || post("text/xml", format!("<a>{}{SQLI}</a>", "word and ".repeat(8_000))) },
    Case { row: "text of an XML element; an upload that is text", to: To::Semantic, comes: Refused(&[403]),
        request: || post("text/plain", format!("{}{SQLI}", "word and ".repeat(8_000))) },
    Case { row: "an uploaded text (part of a form)", to: To::Semantic, comes: Counted("file_rest"),
        request: || post(MULTIPART, parts(&[(file("a.txt"), format!("{}{SQLI}", "word and ".repeat(8_000)).into())])) },
    Case { row: "an uploaded text (part of a form)", to: To::Semantic, comes: Refused(&[403]),
        request: || post(MULTIPART, parts(&[(file("a.txt"), [&b"word and ".repeat(8_000), SHELL].concat())])) },
    Case { row: "a body or file that is no text", to: To::Semantic, comes: Refused(&[403]),
        request: || post(BYTES, [&noise(300_000)[..], SHELL].concat()) },
    Case { row: "a body that is a program, archive, database, font, PDF by a header that holds together; a packed text",
        to: To::Semantic, comes: Counted("file_texts"), request: || post(BYTES, gzip(&words(300_000))) },
    Case { row: "a body that is a program, archive, database, font, PDF by a header that holds together; a packed text",
        to: To::Semantic, comes: Refused(&[403]), request: || post(BYTES, gzip(&[&words(300_000)[..], SHELL].concat())) },
    Case { row: "values within a value (JSON, a URL's query)", to: To::Semantic, comes: Refused(&[403]),
        request: || {
            let query: String = (0..500).map(|number| format!("a{number}=b%26")).collect();
            post(FORM, format!("url=https://example.com/?{query}z={}", encoded(SQLI, 2)))
        } },
    Case { row: "other decoded forms of a value; their bytes, with the list of them", to: To::Semantic, comes: Refused(&[403]),
        request: || {
            let layers: Vec<String> = (0..64)
                .map(|at| [at / 16, at / 4 % 4, at % 4].iter().fold(format!("a{at}"), |text, kind| layer(&text, *kind)))
                .collect();
            post("application/json", serde_json::json!({ "a": layers.join(" ") }).to_string())
        } },
    Case { row: "decoding steps, one after the other", to: To::Semantic, comes: Refused(&[403]),
        request: || post(FORM, format!("a={}", encoded(SQLI, 9))) },
    Case { row: "bytes read for a message, by all detectors", to: To::Semantic, comes: Refused(&[403]),
        request: || {
            let dear = ":<%$(:<%%u00611\\\\u0061:<%&#x61;:w/*".repeat(200);
            post("application/json", format!("{{\"a\":\"{dear}\",\"b\":\"x\"}}"))
        } },
    Case { row: "fields kept that may continue another one that ends in a backslash", to: To::Semantic, comes: Refused(&[403]),
        request: || {
            let long: String = "or more words ".repeat(6_000);
            post(FORM, format!("x={long}-- -&user=%5C&pw=+or+1%3D1--+-"))
        } },
    Case { row: "findings kept", to: To::Semantic, comes: Told("/findings_omitted"),
        request: || {
            let cookies = "a=%2A%29%28uid%3D%2A; ".repeat(300);
            get(&format!("/?q={}", SQLI.replace(' ', "+")), &format!("Cookie: {cookies}b=c\r\n"))
        } },
    Case { row: "nesting of Protocol Buffers", to: To::Semantic, comes: Refused(&[403]),
        request: || post("application/x-protobuf", (0..17).fold(message(1, SQLI.as_bytes()), |held, _| message(2, &held))) },
    Case { row: "parts of what only looks like multipart", to: To::Semantic, comes: Refused(&[400, 403]),
        request: || {
            let mut all = vec![(field("a"), b"b".to_vec()); 4_100];
            all.push((field("z"), SQLI.into()));
            post("multipart/mixed; boundary=B", parts(&all))
        } },
    Case { row: "unpacked bytes of a packed value in Base64", to: To::Semantic, comes: Refused(&[403]),
        request: || post("application/json", format!("{{\"a\":\"{}\"}}", base64(&gzip(&[&b"x".repeat(2 << 20), SQLI.as_bytes()].concat())))) },
    Case { row: "cookies of a request of which some may be [known](semantic.md#cookies-that-the-site-has-issued)",
        to: To::Semantic, comes: Refused(&[403]),
        request: || get("/", &format!("Cookie: {}b={SQLI}\r\n", "a=1; ".repeat(300))) },
    // A section of its own.
    Case { row: "Work of the rules", to: To::Work, comes: Refused(&[403]),
        request: || post(FORM, format!("a={}attack", "abcdefgh01".repeat(20_000))) },
];

/// The first cells of the tables of the page, and the section without a table.
fn rows() -> Vec<String> {
    let page = include_str!("../../../../docs/limits.md");
    // Its last table is that of portcullis-proxy/tests/it/body_table.rs.
    let (page, _) = page.split_once("\n## Bodies over the limit\n").unwrap();
    // Behind these limits a message is inspected like any other; they are held by portcullis-learn/tests/it,
    // portcullis-discovery/tests/it and, those of known and signed cookies, by the tests of
    // portcullis-inspect/src/issued and portcullis-proxy/src/cookies.
    let (before, learned) = page.split_once("\n## Learned fields\n").unwrap();
    let (_, behind) = learned.split_once("\n## Work of the rules\n").unwrap();
    let cells =
        before.lines().chain(behind.lines()).filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let rows = cells.filter(|cell| *cell != "limit").map(str::to_owned);
    rows.chain(["Work of the rules".to_owned()]).collect()
}

#[test]
fn each_limit_of_the_page_has_a_case() {
    let (rows, cases) = (rows(), CASES.iter().map(|case| case.row).collect::<Vec<_>>());
    let missing: Vec<_> = rows.iter().filter(|row| !cases.contains(&row.as_str())).collect();
    let unknown: Vec<_> = cases.iter().filter(|case| !rows.iter().any(|row| row == *case)).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "without a case: {missing:#?}\nwithout a row: {unknown:#?}"
    );
}

#[test]
fn what_is_behind_a_limit_is_refused_or_counted() {
    let app = application(|_| says("hello"));
    let rules = "SecRuleEngine On\nSecRequestBodyAccess On\n\
        SecRule REQBODY_ERROR \"!@eq 0\" \"id:1,phase:2,deny,status:400\"\n\
        SecRule MULTIPART_FILE_LIMIT_EXCEEDED \"!@eq 0\" \"id:2,phase:2,deny,status:403\"\n\
        SecRule ARGS \"@contains attack\" \"id:3,phase:2,deny,status:409\"\n";
    let every_byte =
        |n: usize| format!("SecRule ARGS \"@rx [a-z]{{{}}}0$\" \"id:{n},phase:2,pass\"\n", n + 2);
    let work: String = (1..=300).map(every_byte).collect();
    let work = format!(
        "SecRuleEngine On\nSecRequestBodyAccess On\n{work}SecRule ARGS \"@endsWith attack\" \"id:900,phase:2,deny,status:409\"\n"
    );
    let mut wrong = Vec::new();
    for to in [To::Small, To::Semantic, To::Rules, To::Work] {
        let served = match to {
            To::Small => Served::start_site(
                &app,
                "mode = \"semantic\"\nrequest_body = { limit = 100000, upload_limit = 1000000 }",
                "",
            ),
            To::Semantic => Served::start_site(&app, "mode = \"semantic\"", ""),
            To::Rules => Served::start(&app, rules, ""),
            To::Work => Served::start(&app, &work, ""),
        };
        for Case { row, request, comes, .. } in CASES.iter().filter(|case| case.to == to) {
            let reason = if let Counted(reason) = comes { reason } else { "" };
            let counter = format!("portcullis_bytes_not_inspected_total{{reason=\"{reason}\"}}");
            let before = served.metric(&counter);
            let told = served.folder.path().join("events.jsonl");
            let events = || std::fs::read_to_string(&told).unwrap_or_default().lines().count();
            let events_before = events();
            let answer = served.raw(request());
            let status = answer.status();
            let event = |path: &str| -> bool {
                served::until(|| events() > events_before);
                let lines = served.events(events_before + 1);
                let event: serde_json::Value = serde_json::from_str(&lines[events_before]).unwrap();
                event.pointer(path).is_some_and(|found| !found.is_null())
            };
            let is_well = match comes {
                Refused(statuses) => statuses.contains(&status) && event("/verdict/action"),
                Told(member) => status == 403 && event(member),
                Counted(_) => {
                    served::until(|| served.metric("portcullis_requests_total") > 0.0);
                    status == 200 && {
                        served::until(|| served.metric(&counter) > before);
                        true
                    }
                }
            };
            if !is_well {
                wrong.push(format!("{row}: {status} {}", answer.text().lines().last().unwrap_or_default()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
