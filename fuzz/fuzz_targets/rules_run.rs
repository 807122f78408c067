//! Rules with every word of the language, chosen by the first bytes, over a request made of the rest: loading
//! and running end, in bounded memory, as ModSecurity 2 and 3 read them.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portcullis_compile::compile;
use portcullis_engine::{Connection, NoCollections, Plan, RequestLine, Scratch, Transaction};
use portcullis_reference::anything::settings_and_rules;
use portcullis_seclang::{MemoryFiles, Root, parse};

/// Bytes that a transaction may hold: the limits on texts that rules make, of which that of `@rsub` is the
/// largest, twice over, since buffers double as they grow.
const HELD_BYTES_MAX: usize = 2 * (Transaction::REWRITTEN_BYTES_MAX + (32 << 20));

fuzz_target!(|input: &[u8]| {
    let (choices, message) = input.split_at(input.len() * 3 / 4);
    for modsecurity3 in [false, true] {
        let mut left = choices.iter();
        let mut choose = |count: usize| left.next().map_or(0, |&byte| usize::from(byte) % count);
        let (settings, rules) = settings_and_rules(modsecurity3, &mut choose);
        let mut text = settings;
        for rule in rules {
            let longer = format!("{text}{rule}");
            if load(&longer).is_some() {
                text = longer;
            }
        }
        if let Some(plan) = load(&text) {
            run(Arc::new(plan), message);
        }
    }
});

fn load(rules: &str) -> Option<Plan> {
    let mut files = MemoryFiles::default();
    files.0.insert("words.txt".into(), b"a\nab\n10.0.0.1\n".to_vec());
    let parsed = parse(&[Root::Text { name: "r.conf".into(), text: rules.as_bytes().to_vec() }], &files);
    let plan = compile(&parsed.document, &parsed.sources, &files).plan?;
    (!parsed.has_errors()).then_some(plan)
}

/// All phases of a request whose query and body are `message`.
fn run(plan: Arc<Plan>, message: &[u8]) {
    let local = "127.0.0.1:80".parse().expect("an address");
    let connection = Connection {
        client: local,
        server: local,
        unique_id: "fuzz".to_owned(),
        epoch_seconds: 1_700_000_000,
        utc_offset_seconds: 0,
    };
    let mut transaction = Transaction::new(plan, Arc::new(NoCollections), Scratch::default(), &connection);
    let target = [b"/a?a=", message].concat();
    let line = [b"POST ", target.as_slice(), b" HTTP/1.1"].concat();
    let line = RequestLine { line: &line, method: b"POST", target: &target, protocol: b"HTTP/1.1" };
    let headers: [(&[u8], &[u8]); 3] = [
        (b"Host", b"h"),
        (b"Content-Type", b"application/x-www-form-urlencoded"),
        (b"Cookie", b"a=b; b=a"),
    ];
    let mut progress = transaction.request_head(line, headers);
    if transaction.unanswered(progress).is_none() {
        transaction.request_body(message);
        progress = transaction.request_end(false);
        if transaction.unanswered(progress).is_none() {
            progress = transaction.response_head(b"HTTP/1.1", 200, [(&b"Content-Type"[..], &b"text/html"[..])]);
            if transaction.unanswered(progress).is_none() {
                transaction.response_body(message);
                progress = transaction.response_end(false);
                transaction.unanswered(progress);
            }
        }
    }
    transaction.finish();
    assert!(transaction.held_bytes() < HELD_BYTES_MAX);
}
