//! Statements that no text can end.

use std::sync::Arc;

use portcullis_clickhouse::condition;
use portcullis_event::{Event, Timestamp};
use portcullis_query::parse;
use proptest::prelude::*;

use crate::events::{NOW, filter};

/// A condition without its literals, which are printable ASCII. Panics at what is no literal.
fn outside(condition: &str) -> String {
    let mut outside = String::new();
    let mut parts = condition.split('\'');
    outside.push_str(parts.next().unwrap());
    loop {
        let Some(literal) = parts.next() else { return outside };
        assert!(literal.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{literal:?}");
        for rest in literal.split('\\').skip(1) {
            let digits = rest.strip_prefix('x').and_then(|rest| rest.get(..2)).expect("\\xHH");
            assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{literal:?}");
        }
        outside.push('L');
        outside.push_str(parts.next().expect("every literal has its end"));
    }
}

fn is_of_us(outside: &str) {
    const NAMES: &[&str] = &[
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "L",
        "r",
        "JSONExtract",
        "has",
        "lower",
        "position",
        "substring",
        "arrayExists",
        "multiIf",
        "startsWith",
        "match",
        "event",
        "client_hex",
        "time_ms",
    ];
    for word in
        outside.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_field = portcullis_query::Field::named(word).is_some();
        assert!(is_number || is_field || NAMES.contains(&word), "{word} in {outside}");
    }
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "_ (),=<>!->".contains(c);
    assert!(outside.chars().all(is_sign) && !outside.contains("--"), "{outside}");
    let depths = outside.chars().scan(0i32, |depth, c| {
        *depth += i32::from(c == '(') - i32::from(c == ')');
        Some(*depth)
    });
    assert!(depths.into_iter().all(|depth| depth >= 0), "{outside}");
    assert_eq!(outside.matches('(').count(), outside.matches(')').count(), "{outside}");
}

proptest! {
    #[test]
    fn no_text_ends_a_literal(
        text in any::<String>(),
        field in prop::sample::select(&["id", "site", "route", "country", "method", "host", "path", "user_agent", "upstream", "control", "refusal", "trial", "text"][..]),
        sign in prop::sample::select(&["=", "!=", "^=", "~", "in"][..]),
    ) {
        let quoted: String = text.chars().flat_map(|c| match c {
            '"' | '\\' => vec!['\\', c],
            c => vec![c],
        }).collect();
        if let Ok(filter) = parse(&format!("{field} {sign} \"{quoted}\" and {field} {sign} \"{quoted}\""), NOW) {
            is_of_us(&outside(&condition(&filter)));
        }
    }

    #[test]
    fn any_text_is_a_mistake_or_a_safe_condition(text in ".{0,200}") {
        if let Ok(filter) = parse(&text, NOW) {
            is_of_us(&outside(&condition(&filter)));
        }
    }

    #[test]
    fn any_tree_is_a_safe_condition(filter in filter(Arc::new(vec![Event::new("r'\\1", Timestamp::from_epoch_millis(NOW))]))) {
        is_of_us(&outside(&condition(&filter)));
    }
}

/// The longest filters fit into a statement (`max_query_size`, 256 KiB).
#[test]
fn conditions_are_bounded() {
    for (begin, byte) in [("\"", "\u{1}"), ("\"", "'"), ("id = \"", "é"), ("path ~ \"", "'")] {
        let text = byte.repeat((portcullis_query::TEXT_BYTES_MAX - 16) / byte.len());
        let filter = parse(&format!("{begin}{text}\""), NOW).unwrap();
        let length = condition(&filter).len();
        assert!(length < 200_000, "{begin}: {length}");
    }
    let many = format!("client in ({})", vec!["2001:db8::/32"; 256].join(","));
    assert!(condition(&parse(&many, NOW).unwrap()).len() < 100_000);
}
