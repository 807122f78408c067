//! No part of a body is left out, whatever its type or its names say.

use portcullis_semantic::{Analysis, Detectors, Level};

fn class(detectors: &Detectors, content_type: &str, body: &[u8]) -> &'static str {
    let mut analysis = Analysis::new();
    analysis.request_body(detectors, content_type.as_bytes(), body);
    let worst = analysis.worst(detectors, Level::Balanced).filter(|worst| worst.blocks(Level::Balanced));
    worst.map_or("", |worst| worst.class.name())
}

const ATTACKS: [(&str, &str); 4] = [
    ("${jndi:ldap://a.example/x}", "log4j"),
    ("<script>alert(document.cookie)</script>", "xss"),
    ("1' UNION SELECT password FROM users-- -", "sqli"),
    ("../../../../etc/passwd", "path"),
];

/// A text may be a sound message of Protocol Buffers, since its letters are numbers of fields.
#[test]
fn a_type_of_messages_hides_no_text() {
    let detectors = Detectors::new();
    let forms = [
        (&b"A=1&x=%3C%3Fph%70%20system($_GET%5B1%5D);%3F%3E&M"[..], "code"),
        (b"my=1&x=1%27%20UNION%20SELECT%20password%20F%52OM%20users--%20-&Aa1myEamU", "sqli"),
    ];
    for (body, class_of) in forms {
        let content_type = "application/x-www-form-urlencoded; a=protobuf";
        assert_eq!(class(&detectors, content_type, body), class_of, "{}", body.escape_ascii());
    }
    let documents = [
        (
            &b"\t\r\n\t\r \r { \"id\":\"1'  uNion   seLecT password/*a*/From/*a*/users#050ae0a0\" }"[..],
            "sqli",
        ),
        (b"\r\t\r\t\r\t{\"x\":\";cat /etc/passwd\"\t\t\t }", "command"),
    ];
    for content_type in ["application/json; a=application/grpc", "application/x-protobuf"] {
        for (body, class_of) in documents {
            assert_eq!(class(&detectors, content_type, body), class_of, "{content_type}");
        }
    }
}

fn part(disposition: &str, headers: &str, content: &str) -> String {
    format!("--x\r\nContent-Disposition: form-data; {disposition}\r\n{headers}\r\n{content}\r\n--x--\r\n")
}

#[test]
fn names_and_headers_of_files_are_values() {
    let detectors = Detectors::new();
    let class = |body: String| class(&detectors, "multipart/form-data; boundary=x", body.as_bytes());
    for (attack, class_of) in ATTACKS {
        let name = attack.replace('"', "%22");
        assert_eq!(
            class(part(&format!("name=\"{name}\"; filename=\"a.png\""), "", "x")),
            class_of,
            "{attack}"
        );
        for header in ["Content-Type: image/png", "X-A: "] {
            let header = format!("{header}{attack}\r\n");
            assert_eq!(class(part("name=\"f\"; filename=\"a.png\"", &header, "x")), class_of, "{header}");
        }
    }
    for header in [
        "Content-Type: image/svg+xml; charset=utf-8",
        "Content-Type: text/x-c++",
        "Content-ID: <a@b.example>",
    ] {
        let honest = part("name=\"files[0][my file]\"; filename=\"it's.png\"", &format!("{header}\r\n"), "x");
        assert_eq!(class(honest), "", "{header}");
    }
}

/// Scripts send JSON as a `Blob`, however long it is.
#[test]
fn json_in_a_blob_is_values() {
    let detectors = Detectors::new();
    let class = |body: String| class(&detectors, "multipart/form-data; boundary=x", body.as_bytes());
    for (attack, class_of) in ATTACKS {
        for length in [0, 1100, 70_000, 300_000] {
            let padding = "c".repeat(length);
            for json in [
                format!("{{\"id\":\"{attack}\",\"p\":\"{padding}\"}}"),
                format!("{{\"p\":\"{padding}\",\"id\":\"{attack}\"}}"),
                format!("\n [\"{padding}\", [{{\"id\":\"{attack}\"}}]]"),
            ] {
                for filename in ["; filename=\"blob\"", ""] {
                    let disposition = format!("name=\"data\"{filename}");
                    let body = part(&disposition, "Content-Type: application/json\r\n", &json);
                    assert_eq!(class(body), class_of, "{filename} {length} {attack}");
                }
            }
        }
    }
    // A document that is uploaded as one may quote them.
    let notebook = format!("{{\"cells\":[\"{}\"],\"p\":\"{}\"}}", ATTACKS[2].0, "c".repeat(1100));
    let body =
        part("name=\"data\"; filename=\"notes.ipynb\"", "Content-Type: application/json\r\n", &notebook);
    assert_eq!(class(body), "");
}

/// An application that takes the entries of a list one by one leaves their keys to the client.
#[test]
fn keys_of_lists_excuse_nothing() {
    let detectors = Detectors::new();
    let class = |body: &str| class(&detectors, "application/x-www-form-urlencoded", body.as_bytes());
    for key in ["code", "source", "snippet", "script", "js", "func", "0"] {
        assert_eq!(class(&format!("hosts[{key}]=127.0.0.1;cat+/etc/passwd")), "command", "{key}");
        assert_eq!(class(&format!("target_ips[0][{key}]=127.0.0.1;cat+/etc/passwd")), "command", "{key}");
    }
    for key in ["filter", "rule", "condition", "x"] {
        assert_eq!(class(&format!("ids[{key}]=1+OR+1=1")), "sqli", "{key}");
    }
    // A snippet of an editor is what the field is for.
    assert_eq!(class("post[code]=cat+/etc/passwd;ls"), "");
    assert_eq!(class("search[filter]=1+OR+1=1"), "");
}
