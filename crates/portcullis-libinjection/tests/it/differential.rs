//! The same answers as libinjection: over the corpora, and over random rows of SQL and HTML pieces.
//!
//! Two oracles. The digests below were made once from the answers of libinjection itself, built from C at
//! commit 85e252a, on x86-64, with a NUL after each input; they stand for every verdict and fingerprint. The
//! crate `libinjectionrs` answers beside us in each run; where it differs from us, it differs from the
//! original too, and how often is written down, so that a new difference is noticed either way. The kinds of
//! them are in `libinjectionrs_differs_here`.
//!
//! After a change of a corpus file its row must be made anew, from C: a failure prints the row that our own
//! answers would give.

use crate::support::{self, Answers, HTML_PIECES, Random, SQL_PIECES};

/// A source of inputs, the original's answers, and how many of libinjectionrs's are others.
struct Expected {
    name: &'static str,
    answers: Answers,
    oracle_differs: (usize, usize),
}

const fn row(
    name: &'static str,
    cases: usize,
    (sqli, xss): (usize, usize),
    digest: u64,
    oracle_differs: (usize, usize),
) -> Expected {
    Expected { name, answers: Answers { cases, sqli, xss, digest }, oracle_differs }
}

#[rustfmt::skip]
const CORPORA: [Expected; 40] = [
    row("attack/crlf", 23, (0, 2), 0xac8effdc24cf4527, (0, 0)),
    row("attack/cve-requests-vulhub", 204, (3, 3), 0x2f268f4b0d7f4fb6, (0, 0)),
    row("attack/deserialization", 70, (0, 2), 0x080f48b6300b8019, (0, 0)),
    row("attack/format-string", 67, (0, 0), 0x8b817845bc3f41bb, (0, 0)),
    row("attack/json-fuzz", 89, (2, 0), 0x06d2557ba2398a4c, (0, 0)),
    row("attack/ldap", 63, (3, 0), 0x363e8620c4f18818, (0, 0)),
    row("attack/lfi", 7952, (0, 0), 0xfd4f71a27114c617, (0, 0)),
    row("attack/log4shell", 112, (0, 0), 0xfd1dd523fab1e722, (0, 0)),
    row("attack/nosql", 48, (1, 0), 0xba3e045e5dd713b6, (0, 0)),
    row("attack/open-redirect", 234, (0, 0), 0xc8cce562bf92a604, (0, 0)),
    row("attack/patt-readme-snippets", 2428, (116, 151), 0xdade2d5187d45232, (0, 1)),
    row("attack/rce-own", 212, (3, 0), 0xe8d8fe379af343ec, (0, 0)),
    row("attack/rce", 333, (12, 5), 0xd920e674961c05ab, (0, 0)),
    row("attack/rfi", 2241, (0, 0), 0x7ff4105e6fc9b9d4, (0, 0)),
    row("attack/scanner-path", 51, (0, 0), 0xcd9ab7c0180ce945, (0, 0)),
    row("attack/sqli-sqlmap-rendered", 365, (233, 0), 0xc1fbdf6c9c64dd2c, (6, 0)),
    row("attack/sqli", 26463, (25005, 0), 0xf701ec3008ab2c53, (197, 0)),
    row("attack/ssi", 74, (2, 0), 0xc3f968b0d5a8b9ee, (0, 0)),
    row("attack/ssrf", 438, (0, 0), 0xc6cc4db1038de05a, (0, 0)),
    row("attack/ssti", 387, (3, 5), 0xee2c6d69e9149b3b, (0, 0)),
    row("attack/upload", 82, (0, 0), 0x92cdad5136fcb1fe, (0, 0)),
    row("attack/xpath", 13, (3, 0), 0xd59791b546c9b0e8, (0, 0)),
    row("attack/xss-dompurify-fixtures", 446, (5, 187), 0x701efe6391a0c8e0, (0, 0)),
    row("attack/xss", 3600, (120, 2943), 0xfdde28bb62275564, (0, 14)),
    row("attack/xxe", 283, (7, 167), 0xd13ca154621dbf4e, (0, 0)),
    row("benign/access-log-apache", 37775, (0, 0), 0xd2b7eeda507a48c9, (0, 0)),
    row("benign/crawler-user-agents", 2116, (0, 0), 0x26d7c4c25b9e15ec, (0, 0)),
    row("benign/english-text", 13348, (45, 0), 0x8a52bf50a98f8e88, (0, 0)),
    row("benign/http-headers-hpack", 5070, (0, 0), 0xafbe21fbde862abd, (0, 0)),
    row("benign/httpparams-values", 12870, (0, 0), 0x685dd03521f3134d, (0, 0)),
    row("benign/libinjection-false-positives", 421, (21, 0), 0x727abcac4437b10b, (0, 0)),
    row("benign/markdown-posts", 2350, (12, 17), 0xe3bc2c62a377abbc, (0, 0)),
    row("benign/synthetic-requests", 111765, (4, 300), 0x938bb4b431413d03, (0, 0)),
    row("benign/user-agents", 12000, (3, 0), 0xa9c1952248626552, (0, 0)),
    row("benign/wcp-legit-query", 3543, (0, 5), 0xa1de44cce8e1624b, (0, 0)),
    row("mixed/naughty-strings", 515, (6, 142), 0xc4d74b52fa01d5e3, (0, 0)),
    row("nemesida-half/payloads", 2095, (57, 560), 0xc97dbea0c2a71f59, (0, 6)),
    row("robustness/body-parsing-evasion", 7070, (76, 130), 0x43da5c3b827e25ce, (0, 0)),
    row("robustness/http1-framing-variants", 282, (0, 0), 0x271d4d73d91b87b8, (0, 0)),
    row("robustness/sqli-tampered", 2595, (1109, 0), 0xde1479e1eb8e5c54, (23, 0)),
];

/// Rows of SQL pieces and of HTML pieces.
#[rustfmt::skip]
const SOUPS: [Expected; 2] = [
    row("sql", 100000, (9750, 10), 0xc3f4549bd065b4f7, (26, 0)),
    row("html", 100000, (306, 18942), 0xa3eb88808ad95d21, (0, 495)),
];

/// As many as are tried with `PORTCULLIS_FULL` set.
#[rustfmt::skip]
const MANY_SOUPS: [Expected; 2] = [
    row("sql", 3000000, (291911, 275), 0xea11577d7d431d78, (915, 0)),
    row("html", 3000000, (8788, 566961), 0x84503e3b1d02842e, (0, 14942)),
];

#[test]
fn corpora() {
    let Some(corpora) = support::corpora_folder::for_test() else { return };
    let strings = |name: &str| support::strings(&corpora, &format!("{name}.jsonl"));
    check(CORPORA.iter().map(|expected| (expected, strings(expected.name))));
}

#[test]
fn soups() {
    let rows = if std::env::var_os("PORTCULLIS_FULL").is_some() { &MANY_SOUPS } else { &SOUPS };
    check(rows.iter().zip([SQL_PIECES, HTML_PIECES]).map(|(expected, pieces)| {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        (expected, (0..expected.answers.cases).map(|_| support::soup(&mut random, pieces)).collect())
    }));
}

fn check<'e>(sources: impl Iterator<Item = (&'e Expected, Vec<Vec<u8>>)>) {
    let mut wrong = String::new();
    for (expected, inputs) in sources {
        let mut answers = Answers::NONE;
        let mut differs = (0, 0);
        let mut shown = String::new();
        for input in &inputs {
            let ours = (portcullis_libinjection::sqli(input), portcullis_libinjection::xss(input));
            let sqli = ours.0.as_ref().map(|found| found.as_str());
            answers.add(input, sqli, ours.1);
            let oracle = oracle(input);
            differs.0 += usize::from(sqli != oracle.0.as_deref());
            differs.1 += usize::from(ours.1 != oracle.1);
            if (sqli, ours.1) != (oracle.0.as_deref(), oracle.1) && shown.len() < 2000 {
                shown += &format!("  ours {ours:?}, oracle {oracle:?}: {}\n", input.escape_ascii());
            }
        }
        if (answers, differs) != (expected.answers, expected.oracle_differs) {
            let Answers { cases, sqli, xss, digest } = answers;
            let name = expected.name;
            wrong += &format!(
                "    row({name:?}, {cases}, ({sqli}, {xss}), {digest:#018x}, {differs:?}),\n{shown}"
            );
        }
    }
    assert!(wrong.is_empty(), "got, with differences to libinjectionrs:\n{wrong}");
}

fn oracle(input: &[u8]) -> (Option<String>, bool) {
    let found = libinjectionrs::detect_sqli(input);
    let fingerprint = found.fingerprint.as_ref().filter(|_| found.is_injection());
    (fingerprint.map(|found| found.as_str().to_owned()), libinjectionrs::detect_xss(input).is_injection())
}

/// Each as libinjection answers, and what libinjectionrs makes of it.
#[test]
fn libinjectionrs_differs_here() {
    for (input, original, oracle_says) in [
        // It does not put words together that only make a phrase with a third one.
        (&b"1' IN BOOLEAN MODE) AND 1=2#"[..], Some("sk)&1"), None),
        (b"1;create or replace function sleep(int)", Some("1;Tkf"), None),
        // It does not see INTO OUTFILE.
        (b"1 into outfile 'x", Some("1ks"), None),
        // It looks for sp_password in any case, and only in UTF-8.
        (b"SP_PASSWORD--", None, Some("nc")),
        (b"sp_password\xff--", Some("nc"), None),
        // It takes NUL for no hexadecimal digit.
        (b"select X'A\0')", Some("E1)"), None),
        // It takes no variable for a function.
        (b"@@current_user(1)||*/ goto", Some("f(1)&"), None),
    ] {
        let ours = portcullis_libinjection::sqli(input);
        assert_eq!(ours.as_ref().map(|found| found.as_str()), original, "{}", input.escape_ascii());
        assert_eq!(oracle(input).0.as_deref(), oracle_says, "{}", input.escape_ascii());
    }
    for input in [
        // It wants an event's whole name; to libinjection, anything may follow.
        &b"onclickx=1"[..],
        b"<a onloadstyle=1",
        b"<img onerror\\x20=1>",
        // It continues after a NUL in an attribute's name.
        b"<a b\0style=x",
    ] {
        assert!(portcullis_libinjection::xss(input), "{}", input.escape_ascii());
        assert!(!oracle(input).1, "{}", input.escape_ascii());
    }
}

/// Surprising behaviour of libinjection that this crate follows.
#[test]
fn habits_of_the_original() {
    let sqli = |input: &[u8]| portcullis_libinjection::sqli(input).map(|found| found.as_str().to_owned());
    // A number, then a byte that is negative as a signed character, then a comment.
    assert_eq!(sqli(b"1\xa0--").as_deref(), Some("1c"));
    assert_eq!(sqli(b"1_--"), None);
    // 0xff, also negative, ends a tag.
    assert!(portcullis_libinjection::xss(b"<a onclick=x"));
    assert!(!portcullis_libinjection::xss(b"<a \xff onclick=x"));
}
