use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_790_000_000_000;

fn shown(text: &str) -> String {
    parse(text, NOW).map_or_else(|mistake| mistake.to_string(), |filter| filter.to_string())
}

#[test]
fn filters_are_read_as_they_are_written() {
    for (text, expected) in [
        ("", ""),
        ("verdict = deny", "verdict = \"deny\""),
        ("VERDICT = deny", "column 1: there is no field `VERDICT`; did you mean `verdict`?"),
        ("site=shop and status in (403,429)", "site = \"shop\" and status in (403, 429)"),
        (
            "not (site = a or site = b) and rule = 942100",
            "not (site = \"a\" or site = \"b\") and rule = 942100",
        ),
        ("site = a or site = b and site = c", "site = \"a\" or site = \"b\" and site = \"c\""),
        ("client in 192.0.2.77/24", "client in 192.0.2.0/24"),
        ("client = ::ffff:192.0.2.1", "client = 192.0.2.1/32"),
        ("client in (2001:db8::/32, 10.0.0.1)", "client in (2001:db8::/32, 10.0.0.1/32)"),
        ("path ^= /api/v1", "path ^= \"/api/v1\""),
        ("\"union select\" and 'it''s'", "column 24: `and` or `or` is missing here"),
        (r#""a \"b\" \\" "#, r#"text ~ "a \"b\" \\""#),
        ("time >= 2026-11-26", "time >= 2026-11-26T00:00:00.000Z"),
        ("time < 2026-11-26T10:00:00+02:00", "time < 2026-11-26T08:00:00.000Z"),
        ("time >= -1h", "time >= 2026-09-21T13:13:20.000Z"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn a_value_alone_is_understood_by_its_form() {
    for (text, expected) in [
        ("192.0.2.77", "client in 192.0.2.77/32"),
        ("192.0.2.77/24", "client in 192.0.2.0/24"),
        ("2001:db8::/32", "client in 2001:db8::/32"),
        ("01a2b3c4d5e6f708192a3b4c5d6e7f80", "id = \"01a2b3c4d5e6f708192a3b4c5d6e7f80\""),
        ("3f2a9c1e-0b1d-4a57-9c1e-8a7b6c5d4e3f", "id = \"3f2a9c1e-0b1d-4a57-9c1e-8a7b6c5d4e3f\""),
        ("942100", "rule = 942100"),
        ("403", "status = 403 or rule = 403"),
        ("/admin", "path = \"/admin\" or path ^= \"/admin/\""),
        ("/admin/", "path = \"/admin/\" or path ^= \"/admin/\""),
        ("/", "path = \"/\""),
        ("/search?q=1' or 1", "(path = \"/search\" or path ^= \"/search/\") or rule = 1"),
        ("/search?q=1'or", "path = \"/search\" or path ^= \"/search/\""),
        ("not 192.0.2.1 and 942100", "not client in 192.0.2.1/32 and rule = 942100"),
        ("(/a or 1) and status = 403", "((path = \"/a\" or path ^= \"/a/\") or rule = 1) and status = 403"),
        ("site = 192.0.2.1", "site = \"192.0.2.1\""),
        ("942100 = 1", "column 1: there is no field `942100`"),
        ("99999999999999999999999", "column 1: there is no field"),
        ("shop", "column 1: there is no field `shop`"),
    ] {
        assert!(shown(text).starts_with(expected), "{text}: {}", shown(text));
    }
}

#[test]
fn mistakes_say_where_they_are_and_what_would_be_right() {
    for (text, expected) in [
        (
            "verdict = blocked",
            "column 11: `verdict` is never `blocked`; it is one of pass, detect, deny, redirect, drop, proxy, refuse",
        ),
        ("verdict = dney", "column 11: `verdict` is never `dney`; did you mean `deny`?"),
        ("status ~ 4", "column 8: `status` is compared by =, !=, <, <=, >, >= or in (list)"),
        ("status = many", "column 10: `status` is a whole number, and `many` is none"),
        ("client = 192.0.2.0/24", "column 10: `192.0.2.0/24` is a network; ask with `in 192.0.2.0/24`"),
        ("client = shop", "column 10: `shop` is neither an address nor a network such as 192.0.2.0/24"),
        ("(site = a", "column 1: this `(` is not closed"),
        ("site = a)", "column 9: there is no `(` for this `)`"),
        (
            "site",
            "column 5: a comparison of `site` is expected here: =, !=, ^= (begins with), ~ (contains) or in (list)",
        ),
        ("site = ", "column 8: a value for `site` is expected here"),
        ("ä site", "column 1: there is no field `ä`; there are"),
        ("site = \"a", "column 8: the text that begins here has no closing quote"),
        ("site ! a", "column 6: `!` alone is no comparison"),
        ("path ~ ''", "column 8: every text contains the empty one"),
        ("time > yesterday", "column 8: `yesterday` is not a time"),
    ] {
        let got = shown(text);
        assert!(got.starts_with(expected), "{text}: {got}");
    }
}

#[test]
fn what_a_filter_may_cost_is_bounded() {
    let many = |count: usize| format!("rule in ({})", vec!["1"; count].join(","));
    assert!(parse(&many(TERMS_MAX), NOW).is_ok());
    assert!(shown(&many(TERMS_MAX + 1)).contains("more than 256 values"));
    assert!(shown(&"not ".repeat(1000)).contains("more than 32 levels"));
    assert!(shown(&"(".repeat(5000)).contains("more than 32 levels"));
    assert!(shown(&" ".repeat(TEXT_BYTES_MAX + 1)).contains("at most 8192 are allowed"));
}

#[test]
fn the_time_range_is_what_all_events_must_fit() {
    let range = |text: &str| parse(text, NOW).unwrap().time_range();
    assert_eq!(range("site = a"), (0, u64::MAX));
    assert_eq!(range("time >= -1h and time < -1s"), (NOW - 3_600_000, NOW - 1001));
    assert_eq!(range("time >= -1h or site = a"), (0, u64::MAX));
    assert_eq!(range("not time >= -1h"), (0, u64::MAX));
    assert_eq!(range("site = a and (time > -2h and time >= -1h)"), (NOW - 3_600_000, u64::MAX));
}

proptest! {
    /// Any text is parsed or refused with a place inside it, and what is shown means the same.
    #[test]
    fn any_text_is_parsed_or_refused(text in "(site|status|client|time|text|rule|and|or|not|in|[ =!<>~^(),\"'\\\\]|-1h|10.0.0.0/8|é|7|[a-z]{1,3}){0,24}") {
        match parse(&text, NOW) {
            Ok(filter) => prop_assert_eq!(parse(&filter.to_string(), NOW).unwrap(), filter),
            Err(mistake) => {
                prop_assert!(mistake.at <= text.len() && mistake.column <= text.chars().count() + 1);
            }
        }
    }
}

fn sample() -> portcullis_event::Event {
    use portcullis_event::{Action, Event, Header, Timestamp};
    let mut event = Event::new("R1", Timestamp::from_epoch_millis(NOW));
    event.site = "Shop".into();
    event.client.addr = "192.0.2.7".into();
    event.server.host = "Shop.Example".into();
    event.request.method = "GET".into();
    event.request.target = "/Api/v1?q=Union%20select\"x".into();
    event.request.headers = vec![Header { name: "user-agent".into(), value: "SqlMap/1.0".into() }];
    event.response.status = Some(403);
    event.verdict.action = Action::Deny;
    event.verdict.rule_id = Some(portcullis_types::RuleId(949110));
    event.verdict.class = Some(portcullis_types::Class::Sqli);
    event.trials = vec!["0123456789abcdef".into(), "fedcba9876543210".into()];
    event.findings = vec![finding(portcullis_types::Place::Query, "Id")];
    event.findings.push(finding(portcullis_types::Place::Form, ""));
    event
}

fn finding(place: portcullis_types::Place, name: &str) -> portcullis_event::Finding {
    portcullis_event::Finding {
        class: portcullis_types::Class::Sqli,
        kind: "sqli.union".into(),
        place,
        name: name.into(),
        decoded: Vec::new(),
        span: None,
        evidence: String::new(),
        count: 1,
        below: false,
        mentioned: false,
        suppressed_by: None,
        points: 1.0,
        reason: "".into(),
        reference: "".into(),
    }
}

#[test]
fn a_filter_is_evaluated_over_an_event() {
    let event = sample();
    for (text, expected) in [
        ("", true),
        ("verdict = deny and site = Shop", true),
        ("site = shop", false),
        ("id = r1 or id = R1", true),
        ("host = shop.example and method in (get, post)", true),
        ("status >= 400 and status < 500", true),
        ("status in (401, 403)", true),
        ("asn = 1", false),
        ("asn != 1", true),
        ("asn < 5", false),
        ("class = sqli and rule = 949110", true),
        ("class != sqli", false),
        ("trial = fedcba9876543210 and trial = 0123456789ABCDEF", true),
        ("trial ^= 0123 and trial ~ 3210 and trial in (a, fedcba9876543210)", true),
        ("trial = 0123", false),
        ("trial != 0123", true),
        ("trial != 0123456789abcdef", false),
        ("trial = ''", false),
        ("location = query:ID and location = form and location != json:id", true),
        ("location ^= query: and location in (x, query:id)", true),
        ("location = id or location = query or location = form:id", false),
        ("rule > 950000", false),
        ("client in 192.0.2.0/24 and not client in 192.0.2.8/29", true),
        ("client != 192.0.2.7", false),
        ("path ^= /Api and not path ^= /api", true),
        ("user_agent ^= sqlmap and user_agent ~ MAP/1", true),
        ("user_agent ^= sqlmap/1.0-and-more", false),
        ("country = DE", false),
        ("country != DE", true),
        ("\"union%20SELECT\"", true),
        ("text ~ 'select\"X'", true),
        ("text ~ nowhere", false),
        ("count = 1 and duration_us = 0 and time >= 2026-09-21", true),
    ] {
        let filter = parse(text, NOW).unwrap();
        assert_eq!(filter.matches(&event), expected, "{text}");
        assert_eq!(Filter::Not(Box::new(filter)).matches(&event), !expected, "not {text}");
    }
}

#[test]
fn a_prefix_may_end_within_a_character() {
    let mut event = sample();
    event.server.host = "é.example".into();
    let filter = parse("host ^= e", NOW).unwrap();
    assert!(!filter.matches(&event));
}

/// The console takes filters apart with a list of its own, so that it can complete them while they are typed.
#[test]
fn the_console_knows_every_field() {
    let source = include_str!("../../../console/src/query.ts");
    let (_, list) = source.split_once("FIELDS: Record<string, FieldKind> = {").unwrap();
    let (list, _) = list.split_once('}').unwrap();
    let mut known: Vec<(&str, &str)> = list
        .split(',')
        .filter_map(|entry| entry.split_once(':'))
        .map(|(name, kind)| (name.trim(), kind.trim().trim_matches('\'')))
        .collect();
    let kind = |field: &Field| match field.kind() {
        Kind::Time => "time",
        Kind::Number => "number",
        Kind::Word => "word",
        Kind::OneOf(_) => "choice",
        Kind::Address => "address",
        Kind::Text => "text",
    };
    let mut fields: Vec<(&str, &str)> = Field::ALL.iter().map(|field| (field.name(), kind(field))).collect();
    known.sort_unstable();
    fields.sort_unstable();
    assert_eq!(known, fields);
}
