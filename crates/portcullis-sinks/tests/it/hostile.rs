//! Values that a client chose, in every form: a reader of the form finds what was put in, and one event is
//! one record.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;

use portcullis_event::Event;
use portcullis_types::Place;
use serde_json::Value;

use crate::common::*;
use crate::faults::frames;

const PIECES: [&str; 26] = [
    "\n",
    "\r\n",
    "\r",
    "\0",
    "\u{1b}[2J",
    "\u{85}",
    "\u{2028}",
    "|",
    "\\|",
    "=",
    " cs1=",
    "\\",
    "\\n",
    "\"",
    "]",
    "\\]",
    "[x y=\"z\"]",
    "CEF:0|",
    "<134>1 - - - - - - ",
    "{\"a\":1}",
    "'",
    "7 <134>1",
    "é",
    "\u{1F600}",
    "a",
    " ",
];

/// Texts of hostile pieces, the same ones each time.
struct Texts(u64);

impl Texts {
    fn next(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.random() % 9 {
            text.push_str(PIECES[self.random() % PIECES.len()]);
        }
        text
    }

    fn random(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }
}

fn hostile(number: usize, texts: &mut Texts) -> Event {
    let mut event = event(&format!("r{number}"));
    let name = texts.next();
    event.scores.semantic[0].name.clone_from(&name);
    event.findings = vec![finding("sqli.union", Place::Query, &name, &texts.next())];
    event.matches = vec![rule(942_100, &texts.next(), &texts.next())];
    event.request.target = texts.next();
    event.request.method = texts.next();
    event.request.headers[0].value = texts.next();
    event.server.host = texts.next();
    event.verdict.reason = texts.next();
    event
}

/// Sends events through one sink of syslog; its messages.
fn through(form: &str, framing: &str, events: &[Event]) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let mut sinks = start(&format!(
        "[[events.sinks]]\nkind = \"syslog\"\naddress = \"tcp://{address}\"\nformat = \"{form}\"\nframing = \"{framing}\"\n"
    ));
    events.iter().for_each(|event| sinks.submit(event.clone()));
    assert_eq!(sinks.end(PATIENCE), 0);
    let bytes = receiver.join().unwrap();
    let messages = match framing {
        "newline" => String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect(),
        _ => {
            let (messages, left) = frames(&bytes);
            assert_eq!(left, 0);
            messages
        }
    };
    assert_eq!(messages.len(), events.len(), "{form}, {framing}");
    messages
}

/// Structured data and message of a message, read as RFC 5424 says.
fn parse(message: &str) -> (BTreeMap<String, String>, &str) {
    let mut rest = message.splitn(8, ' ').nth(7).unwrap();
    assert!(message.starts_with("<132>1 "), "{message}");
    let mut data = BTreeMap::new();
    let at = message.find("[portcullis@32473").unwrap();
    let mut chars = message[at + "[portcullis@32473".len()..].char_indices();
    loop {
        match chars.next().unwrap().1 {
            ']' => break,
            ' ' => {}
            other => panic!("{other} in {message}"),
        }
        let name: String = chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '=').collect();
        assert_eq!(chars.next().unwrap().1, '"');
        let mut value = String::new();
        loop {
            match chars.next().unwrap().1 {
                '"' => break,
                '\\' => value.push(chars.next().unwrap().1),
                ']' => panic!("a bracket in {message}"),
                c => value.push(c),
            }
        }
        data.insert(name, value);
    }
    rest = chars.as_str().strip_prefix(' ').unwrap_or(rest);
    (data, rest)
}

/// A text as structured data shows it.
fn shown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
            }
            c => out.push(c),
        }
    }
    out
}

/// The extension of a CEF line: a key follows a space and stands before a `=` that is not escaped.
fn cef(line: &str) -> BTreeMap<String, String> {
    let mut bars = 0;
    let mut escaped = false;
    let begin = line.char_indices().find(|(_, c)| {
        if !escaped && *c == '|' {
            bars += 1;
        }
        escaped = !escaped && *c == '\\';
        bars == 7
    });
    let extension: Vec<char> = line[begin.unwrap().0 + 1..].chars().collect();
    let mut fields = BTreeMap::new();
    let (mut key, mut value) = (String::new(), String::new());
    let mut at = 0;
    while at < extension.len() {
        match extension[at] {
            '\\' if extension.get(at + 1) == Some(&'x') => {
                value.push('\\');
                at += 1;
                value.push('x');
            }
            '\\' => {
                at += 1;
                value.push(match extension[at] {
                    'n' => '\n',
                    'r' => '\r',
                    c => {
                        assert!(matches!(c, '\\' | '='), "\\{c}");
                        c
                    }
                });
            }
            '=' => {
                let (before, next) = value.rsplit_once(' ').unwrap_or(("", &value));
                let (before, next) = (before.to_owned(), next.to_owned());
                if !key.is_empty() {
                    assert!(fields.insert(std::mem::take(&mut key), before).is_none());
                }
                (key, value) = (next, String::new());
            }
            c => value.push(c),
        }
        at += 1;
    }
    fields.insert(key, value);
    fields
}

/// A text as CEF shows it: line breaks have escapes of their own.
fn cef_shown(text: &str) -> String {
    text.split_inclusive(['\n', '\r'])
        .map(|line| match line.chars().last() {
            Some(end @ ('\n' | '\r')) => shown(&line[..line.len() - 1]) + &end.to_string(),
            _ => shown(line),
        })
        .collect()
}

#[test]
fn what_was_put_in_is_read_back_from_each_form() {
    let mut texts = Texts(0x9e37_79b9_7f4a_7c15);
    let events: Vec<Event> = (0..400).map(|number| hostile(number, &mut texts)).collect();
    for framing in ["octet_counting", "newline"] {
        for (message, event) in through("json", framing, &events).iter().zip(&events) {
            let (data, json) = parse(message);
            assert_eq!(data["request_id"], event.request_id);
            assert_eq!(data.get("evidence").map_or("", |text| text), shown(&event.findings[0].evidence));
            let name = &event.findings[0].name;
            let location =
                if name.is_empty() { "query".to_owned() } else { format!("query:{}", shown(name)) };
            assert_eq!(data["location"], location);
            assert_eq!(format!("{json}\n"), event.json_line());
        }
        for (message, event) in through("cef", framing, &events).iter().zip(&events) {
            let fields = cef(parse(message).1);
            let field = |name: &str| fields.get(name).map_or("", |text| text).to_owned();
            assert_eq!(field("externalId"), event.request_id);
            assert_eq!(field("cs2"), cef_shown(&event.findings[0].evidence), "{message}");
            assert_eq!(field("requestMethod"), cef_shown(&event.request.method));
            assert_eq!(field("request"), cef_shown(&event.request.target));
            assert_eq!(field("dhost"), cef_shown(&event.server.host));
            assert_eq!(field("cs4"), "shop");
        }
        for (message, event) in through("ocsf", framing, &events).iter().zip(&events) {
            let json: Value = serde_json::from_str(parse(message).1).unwrap();
            assert_eq!(json["metadata"]["uid"], event.request_id.as_str());
            let evidence = &json["evidences"][0]["data"]["evidence"];
            assert_eq!(evidence.as_str().unwrap_or_default(), event.findings[0].evidence);
        }
    }
}
