//! Events and filters with texts that try to end what they stand in.

use std::sync::Arc;

use portcullis_event::{
    Action, Control, ControlKind, DetectionMode, EngineMode, Event, Header, RuleEffect, RuleInfo, RuleMatch,
    Timestamp,
};
use portcullis_query::{Comparison, Field, Filter, Kind, Network, Operator, Value};
use portcullis_types::{Class, Phase, RuleId};
use proptest::prelude::*;
use proptest::sample::select;

/// 2026-11-26T00:00:00Z.
pub const NOW: u64 = 1_795_651_200_000;

const PIECES: &[&str] = &[
    "'",
    "\"",
    "\\",
    "\\'",
    "\0",
    "\n",
    "\r",
    "\t",
    "\u{1}",
    "\u{7f}",
    "%",
    "_",
    "*",
    ";--",
    "/*",
    "*/",
    "a",
    "B",
    "k",
    "K",
    "\u{212a}",
    "é",
    "É",
    "ß",
    "日",
    "𝔘",
    " ",
    ")",
    "') OR 1=1 --",
    "${x}",
    "{p:String}",
    "\\x27",
    "\\u0027",
    "union",
    "SELECT",
    "/",
    "?",
    ":",
    "://",
    "#",
    "`",
];

const TRIALS: [&str; 2] = ["0123456789abcdef", "fedcba9876543210"];
const NUMBERS: &[u64] = &[0, 1, 942_100, u32::MAX as u64, u64::MAX];

/// A short text.
pub fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(select(PIECES), 0..4).prop_map(|pieces| pieces.concat())
}

/// A short text, or one that many events have.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![2 => text(), 1 => select(&["shop", "Shop", "blog", ""][..]).prop_map(str::to_owned)]
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0u8..4, 0u8..8).prop_map(|(a, b)| format!("192.0.{a}.{b}")),
        2 => (0u16..4, 0u16..4).prop_map(|(a, b)| format!("2001:db8:{a:x}::{b:x}")),
        1 => (0u8..4).prop_map(|a| format!("::ffff:192.0.2.{a}")),
        1 => (0u16..4).prop_map(|a| format!("::{a:x}")),
        1 => text(),
    ]
}

fn rule(id: u32) -> RuleMatch {
    let info = RuleInfo {
        rule_id: RuleId(id),
        phase: Phase::RequestBody,
        severity: None,
        operator: "rx".into(),
        argument: "".into(),
        transformations: Box::default(),
        tags: Box::default(),
        ver: None,
        rev: None,
        maturity: None,
        accuracy: None,
        file: "rules.conf".into(),
        line: 1,
    };
    RuleMatch {
        rule: Arc::new(info),
        message: String::new(),
        data: String::new(),
        target: "ARGS:q".into(),
        value: String::new(),
        span: None,
        points: 5,
        effect: RuleEffect::None,
    }
}

/// An event with this number in its id and time; no two have the same of both.
pub fn event(number: u64) -> impl Strategy<Value = Event> {
    let who = (address(), prop::option::of(word()), prop::option::of(1u32..4), word(), word(), word());
    let what = (word(), word(), word(), word(), prop::option::of(select(&[200u16, 403, 500][..])));
    let verdict = (
        select(Action::ALL),
        prop::option::of(select(Class::ALL)),
        prop::collection::vec(select(&[1u32, 942_100, 942_190, u32::MAX][..]), 0..3),
        prop::option::of(word()),
        prop::option::of(word()),
        prop::collection::vec(select(&["sqli", "lfi", "rce", "none"][..]), 0..3),
    );
    let trial = prop_oneof![text(), select(&TRIALS[..]).prop_map(str::to_owned)];
    let trials = prop::collection::vec(trial, 0..3);
    let rest =
        (select(DetectionMode::ALL), select(EngineMode::ALL), 0u64..5, 1u64..4, word(), text(), trials);
    (who, what, verdict, rest).prop_map(move |(who, what, verdict, rest)| {
        let mut event =
            Event::new(format!("r{number}{}", rest.5), Timestamp::from_epoch_millis(NOW + number * 400));
        (event.client.addr, event.client.country, event.client.asn) = (who.0, who.1, who.2);
        (event.site, event.route, event.server.host) = (who.3.into(), who.4.into(), who.5);
        (event.request.method, event.request.target) = (what.0, what.1);
        event.request.headers = vec![Header { name: "user-Agent".into(), value: what.2 }];
        (event.upstream, event.response.status) = (Some(what.3), what.4);
        (event.verdict.action, event.verdict.class) = (verdict.0, verdict.1);
        event.matches = verdict.2.into_iter().map(rule).collect();
        event.refusal = verdict.3.map(Into::into);
        let by = ControlKind::ALL[number as usize % ControlKind::ALL.len()];
        event.verdict.control = verdict.4.map(|name| Control { by, name: name.into() });
        event.scores.by_class = verdict.5.into_iter().map(|name| (name.into(), 5)).collect();
        (event.mode, event.engine, event.duration_us, event.count) = (rest.0, rest.1, rest.2, rest.3);
        (event.verdict.reason, event.trials) = (rest.4, rest.6);
        event
    })
}

fn values(field: Field, pool: Arc<Vec<Event>>) -> BoxedStrategy<Value> {
    let one = move || {
        (0..pool.len()).prop_map({
            let pool = Arc::clone(&pool);
            move |at| pool[at].clone()
        })
    };
    match field.kind() {
        Kind::Time => one().prop_map(|event| Value::Time(event.time)).boxed(),
        Kind::Number => prop_oneof![
            one().prop_map(move |event| Value::Number(field.number(&event).unwrap_or(942_100))),
            select(NUMBERS).prop_map(Value::Number),
        ]
        .boxed(),
        Kind::OneOf(words) => select(words).prop_map(|word| Value::Text(word.to_owned())).boxed(),
        Kind::Address => (address(), 0u8..=128)
            .prop_filter_map("an address", |(text, prefix)| {
                let address: std::net::IpAddr = text.parse().ok()?;
                Network::new(address, prefix)
                    .or_else(|| Network::new(address, prefix % 33))
                    .map(Value::Network)
            })
            .boxed(),
        Kind::Text => text().prop_filter("some text", |text| !text.is_empty()).prop_map(Value::Text).boxed(),
        Kind::Word => prop_oneof![
            text().prop_map(Value::Text),
            // A piece of what an event has, in another case.
            (one(), 0usize..6, any::<bool>()).prop_map(move |(event, end, is_upper)| {
                let word: String = field.word(&event).chars().take(end + 1).collect();
                Value::Text(if is_upper { word.to_ascii_uppercase() } else { word })
            }),
        ]
        .boxed(),
    }
}

fn operators(kind: Kind) -> &'static [Operator] {
    use Operator::*;
    match kind {
        Kind::Time => &[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual],
        Kind::Number => &[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In],
        Kind::Word => &[Equal, NotEqual, Prefix, Contains, In],
        Kind::OneOf(_) | Kind::Address => &[Equal, NotEqual, In],
        Kind::Text => &[Contains],
    }
}

fn comparison(pool: Arc<Vec<Event>>) -> impl Strategy<Value = Filter> {
    let of_field = move |field: Field| {
        let pool = Arc::clone(&pool);
        (Just(field), select(operators(field.kind()))).prop_flat_map(move |(field, operator)| {
            let most = if operator == Operator::In { 4 } else { 1 };
            let values = prop::collection::vec(values(field, Arc::clone(&pool)), 1..=most);
            values.prop_map(move |values| Filter::Is(Comparison { field, operator, values }))
        })
    };
    // 18.16, which the tests ask, cannot read them.
    let is_read = |field: &Field| !matches!(field, Field::Trial | Field::Location);
    let fields: Vec<Field> = Field::ALL.iter().copied().filter(is_read).collect();
    select(fields).prop_flat_map(of_field)
}

/// A filter about events like these.
pub fn filter(pool: Arc<Vec<Event>>) -> impl Strategy<Value = Filter> {
    comparison(pool).prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::All),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Any),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}
