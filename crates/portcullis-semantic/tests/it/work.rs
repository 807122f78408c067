//! What looking at a message costs is bounded, counted in bytes that are read.

use std::sync::LazyLock;

use portcullis_semantic::{Analysis, Class, Detectors, Level, Location, Place};

static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

/// Units that a search found dear when said again and again: layers of encoding, openers without an end,
/// quotes, colons.
const DEAR: &[&str] = &[
    ":<%$(\u{e9}(:<%%u00611\\u0061:<%&#x61;:w/*",
    "http://025177524776/latest/%25\\u00619=",
    "/*{\\u0061%25dcarpevalutf",
    ":/:/:/:/\\daemonhttp://[::\u{2460}\u{2465}\u{2468}]\\u0061{gin",
    "%u0061&#x61;*/ac2VsZWN0$(<",
    "<><",
    "\\x61{%25:ch$(ero;xN",
    "a::\\%u0061sav:achesize0",
    "\\.\\u0061:v*/*/../&#x61;../[::",
    "' or 1=1 -- ",
    "';alert(1)//",
    "{{",
    "${x",
    "`id`$(id);",
    "%25`/*[x0b\"'&",
    "`<",
    "'-'",
    ".ksh_history*/<application/x&#x61;[|%25",
    ">$(",
    "{spaw&#x61;n#",
    "#{",
    "@(",
    ".java/&#x61;.sqlite_history=",
];

/// How much of a text a single reading takes that began before the allowance was used up: a decoder and what
/// it made, the gate, and a walk, in which a token of one byte counts as eight and a place where a command
/// may begin is read some bytes further.
const LAST_READING: u64 = 12;

#[test]
fn work_stays_within_the_allowance() {
    let mut analysis = Analysis::new();
    for unit in DEAR {
        for bytes in [256, 1 << 10, 4 << 10, 32 << 10, 128 << 10] {
            let text = unit.repeat(bytes / unit.len());
            analysis.clear();
            analysis.value(&DETECTORS, Location::new(Place::Json, b"a"), text.as_bytes());
            let (done, allowed) = analysis.work();
            assert!(
                done <= allowed + LAST_READING * text.len() as u64,
                "{unit} of {bytes}: {done} of {allowed}"
            );
            assert_eq!(analysis.bytes_cut() > 0, done > allowed, "{unit} of {bytes}");
        }
    }
}

#[test]
fn what_is_not_looked_at_blocks_and_is_counted() {
    let text = DEAR[0].repeat(400);
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Form, b"a"), text.as_bytes());
    for level in [Level::Balanced, Level::Strict] {
        let protocol = analysis.scores(&DETECTORS).find(|score| score.class == Class::Protocol).unwrap();
        assert!(protocol.blocks(level));
    }
    assert!(analysis.findings().iter().any(|finding| finding.kind.id == "protocol.work-limit"));
    assert_eq!(analysis.bytes_cut(), text.len() as u64);
    // The next value of the same message is not forgotten either.
    analysis.value(&DETECTORS, Location::new(Place::Form, b"b"), text.as_bytes());
    assert_eq!(analysis.bytes_cut(), 2 * text.len() as u64);
    // And the next message has an allowance of its own.
    analysis.clear();
    analysis.value(&DETECTORS, Location::new(Place::Form, b"a"), b"a plain text, and 1 more");
    assert_eq!(analysis.bytes_cut(), 0);
    assert!(analysis.findings().is_empty());
}

/// Many values share one allowance: each brings its bytes, none the part that any message has.
#[test]
fn many_values_share_an_allowance() {
    let value = DEAR[2].repeat(8).replace('\\', "\\\\");
    let body = format!("[{}]", vec![format!("\"{value}\""); 800].join(","));
    let mut analysis = Analysis::new();
    analysis.request_body(&DETECTORS, b"application/json", body.as_bytes());
    let (done, allowed) = analysis.work();
    assert!(done <= allowed + LAST_READING * body.len() as u64, "{done} of {allowed}");
}

/// A token costs what it costs however short it is: the same bytes in short tokens are more work.
#[test]
fn short_tokens_count_as_much_as_long_ones() {
    let done = |text: &str| {
        let mut analysis = Analysis::new();
        analysis.value(&DETECTORS, Location::new(Place::Json, b"a"), text.as_bytes());
        analysis.work().0
    };
    let (short, long) = ("1=1+", "1234567890123=1234567890123+");
    let of = |unit: &str| done(&format!("1 or {}1", unit.repeat(2_800 / unit.len())));
    assert!(of(short) > of(long) * 3 / 2, "{} {}", of(short), of(long));
}

/// A long document with signs of all languages and of all encodings: what decoding leaves as it is is not
/// read again.
#[test]
fn a_long_document_is_not_read_again_in_each_form() {
    let prose = "* `let x = f(\"a\", 'b') || g[0];` calls `f`, see [it's here](../a.html), {x} & $y; or <b>this</b>\n".repeat(400);
    let text =
        format!("%41 &amp; \\u0041 \u{201c}a\u{201d}\n{prose}&#36;{{jndi:ldap://a.example/x}}\n{prose}");
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Json, b"body"), text.as_bytes());
    let (done, allowed) = analysis.work();
    assert_eq!(analysis.bytes_cut(), 0, "{done} of {allowed}");
    let worst = analysis.worst(&DETECTORS, Level::Balanced).unwrap();
    assert!(worst.class == Class::Log4j && worst.blocks(Level::Balanced), "{worst:?}");
}

/// Units that were read again and again from different places, or cost much that nobody was charged for.
const GROWING: &[&str] = &[
    "System(",
    "$(=",
    "!",
    "!!a",
    "!d:!",
    "/*{=da",
    "|a -b",
    "/* ",
    "$(x5ca -a ",
    "../",
    "; ",
    "{",
    "[[",
    "it's ",
    "a.b(",
    "<a ",
    "%24{",
    "&#",
    "\\u",
    "x='",
    "`a` ",
    "\"a\",",
    "../[config.pl",
    ")(",
    "''",
    "a=b&",
    "@(",
    "-- ",
    "<!--",
    "::",
];

/// Nanoseconds of CPU that looking at the text takes, the best of three, and the units it was charged.
fn cost(analysis: &mut Analysis, text: &str) -> (f64, u64) {
    let mut best = std::time::Duration::MAX;
    for _ in 0..3 {
        analysis.clear();
        let started = cpu_time::ThreadTime::now();
        analysis.value(&DETECTORS, Location::new(Place::MultipartField, b"a"), text.as_bytes());
        best = best.min(started.elapsed());
    }
    (best.as_nanos() as f64, analysis.work().0)
}

/// A unit is charged for what it costs, within a factor that no machine and no build goes beyond, and a text
/// of eight times the length costs no more for each byte.
#[test]
fn units_bound_the_time_and_the_time_is_linear() {
    const NANOSECONDS_MAX: f64 = 300.0;
    let mut analysis = Analysis::new();
    for unit in GROWING.iter().chain(DEAR) {
        let [short, long] = [16 << 10, 128 << 10].map(|bytes: usize| unit.repeat(bytes / unit.len()));
        let ((few, _), (many, units)) = (cost(&mut analysis, &short), cost(&mut analysis, &long));
        let each = many / units as f64;
        assert!(each < NANOSECONDS_MAX, "{unit}: {each:.0} ns for each of {units} units");
        let (few, many) = (few / short.len() as f64, many / long.len() as f64);
        assert!(many < 3.0 * few + 300.0, "{unit}: {few:.0} ns a byte, {many:.0} in a longer text");
    }
}

/// Units after whose quotes, words or braces the end of a comment or of a string is looked for, which may be
/// that of the text.
const FAR: &[&str] = &[
    "x5c`!#<$",
    "{spaw&#x61;n#",
    "'case\\\"",
    "'case `",
    "1 case\\\" ",
    "'!/*",
    ">$(",
    "/*{)",
    "{",
    "hr+'../--",
    "\"!#",
    "'case q",
    "[a](javascript:",
    "[a](javascript:alert(",
    "<img src=\"file:///etc/passwd",
    "![a](http://169.254.169.254/",
    "\\input[",
    "@{[",
    "{!join a=",
    "$expr\"$password\"",
];

/// What looks ahead finds far away is looked for once, or charged.
#[test]
fn far_ends_are_not_looked_for_again_and_again() {
    let mut analysis = Analysis::new();
    for unit in FAR {
        let [short, long] = [64 << 10, 1 << 20].map(|bytes: usize| unit.repeat(bytes / unit.len()));
        let ((few, _), (many, _)) = (cost(&mut analysis, &short), cost(&mut analysis, &long));
        let (few, many) = (few / short.len() as f64, many / long.len() as f64);
        assert!(many < 2.0 * few + 300.0, "{unit}: {few:.0} ns a byte, {many:.0} in a longer text");
    }
}

/// Rows of empty strings, as tables are exported, cost what it costs to compare them, and what stands behind
/// them is read.
#[test]
fn what_a_text_repeats_is_read_once() {
    let mut analysis = Analysis::new();
    for unit in ["'' ", "[\"\",\"\"],\n", "(''),", "[''],", "\"\",\n", "[1,'','2',''],"] {
        for count in [300, 2_000, 8_000] {
            let text = unit.repeat(count);
            analysis.clear();
            analysis.value(&DETECTORS, Location::new(Place::Json, b"data"), text.as_bytes());
            assert_eq!(analysis.bytes_cut(), 0, "{count} of {unit:?}");
            let attack = text + "x' union select user, password from users-- ";
            analysis.clear();
            analysis.value(&DETECTORS, Location::new(Place::Json, b"data"), attack.as_bytes());
            let score = analysis.scores(&DETECTORS).find(|score| score.class == Class::Sqli);
            assert!(score.is_some_and(|score| score.blocks(Level::Balanced)), "{count} of {unit:?}");
        }
    }
}
