//! Raw sinks to checked ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use portcullis_query::{Field, Filter};

use super::*;
use crate::mistakes::Mistakes;
use crate::raw::{self, Sink, SinkKind, SyslogFraming};
use crate::spanned::Spanned;
use crate::values::{is_token, number};

const QUEUE_EVENTS: u32 = 8192;
const QUEUE_BYTES: u64 = 32 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(300);
const BATCH: u32 = 1000;
const BATCH_TIME: Duration = Duration::from_secs(1);
const PER_MINUTE: u32 = 30;
/// Bytes of a message that every receiver should take (RFC 5424, section 6.1; RFC 5426, section 3.2), and
/// that rsyslog takes unless told otherwise.
const DATAGRAM_BYTES: u64 = 2048;
const MESSAGE_BYTES: u64 = 8192;
/// What a datagram over IPv4 holds.
const MESSAGE_BYTES_MAX: u64 = 65_507;
const SINKS_MAX: usize = 32;

const FACILITIES: [&str; 20] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// Checks the sinks of the document.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Vec<Spanned<Sink>>) -> Vec<EventSink> {
    if let Some(one_more) = raw.get(SINKS_MAX) {
        mistakes.wrong(one_more.span.clone(), format!("more than {SINKS_MAX} sinks are not allowed"));
    }
    let mut sinks: Vec<EventSink> = Vec::new();
    for Spanned { value: raw, .. } in raw {
        let name = name(mistakes, &raw, &sinks);
        sinks.extend(sink(mistakes, name, raw));
    }
    sinks
}

fn sink(mistakes: &mut Mistakes<'_>, name: String, raw: Sink) -> Option<EventSink> {
    misplaced(mistakes, &raw);
    let filter = raw.filter.as_ref().and_then(|text| filter(mistakes, text));
    let to = match raw.kind.value {
        SinkKind::Syslog => syslog(mistakes, &raw).map(SinkTarget::Syslog),
        SinkKind::Otlp => otlp(mistakes, &raw).map(SinkTarget::Otlp),
        SinkKind::ClickHouse => clickhouse(mistakes, &raw).map(SinkTarget::ClickHouse),
        SinkKind::Webhook => webhook(mistakes, &raw).map(SinkTarget::Webhook),
    };
    let queue_bytes = raw.queue_memory.map(|size| Spanned { value: size.value.0, span: size.span });
    Some(EventSink {
        name,
        filter,
        queue_events_max: number(mistakes, raw.queue, 1..=1_000_000, "queue", QUEUE_EVENTS) as usize,
        queue_bytes_max: number(mistakes, queue_bytes, 64 << 10..=4 << 30, "queue_memory", QUEUE_BYTES),
        timeout: raw.timeout.map_or(TIMEOUT, |time| time.0),
        retry: raw.retry.map_or(RETRY, |time| time.0),
        to: to?,
    })
}

/// Its name, or its kind with a number that makes it different from others.
fn name(mistakes: &mut Mistakes<'_>, raw: &Sink, others: &[EventSink]) -> String {
    let is_taken = |name: &str| others.iter().any(|other| other.name == name);
    let Some(name) = &raw.name else {
        let kind = word(raw.kind.value);
        let numbered = (2..).map(|number| format!("{kind}-{number}"));
        return std::iter::once(kind.to_string())
            .chain(numbered)
            .find(|name| !is_taken(name))
            .unwrap_or_default();
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(fits) {
        let message = format!("`{}` is not a name: 1 to 64 letters, digits, `-`, `_`, `.`", name.value);
        mistakes.wrong(name.span.clone(), message);
    } else if is_taken(name) {
        mistakes.wrong(name.span.clone(), format!("another sink is called `{}`", name.value));
    }
    name.value.clone()
}

fn word(kind: SinkKind) -> &'static str {
    match kind {
        SinkKind::Syslog => "syslog",
        SinkKind::Otlp => "otlp",
        SinkKind::ClickHouse => "clickhouse",
        SinkKind::Webhook => "webhook",
    }
}

/// Keys that another kind of sink has.
fn misplaced(mistakes: &mut Mistakes<'_>, raw: &Sink) {
    use SinkKind::{ClickHouse, Otlp, Syslog, Webhook};
    fn place<T>(value: Option<&Spanned<T>>) -> Option<Range<usize>> {
        value.map(|value| value.span.clone())
    }
    let headers = raw.headers.values().next().map(|value| value.span.clone());
    type Key<'k> = (&'k str, Option<Range<usize>>, &'k [SinkKind]);
    let keys: [Key<'_>; 17] = [
        ("address", place(raw.address.as_ref()), &[Syslog]),
        // Not at its own place: a mistake shows the line.
        ("url", raw.url.as_ref().map(|_| raw.kind.span.clone()), &[Otlp, ClickHouse, Webhook]),
        ("format", place(raw.format.as_ref()), &[Syslog, Otlp]),
        ("facility", place(raw.facility.as_ref()), &[Syslog]),
        ("framing", place(raw.framing.as_ref()), &[Syslog]),
        ("message_bytes", place(raw.message_bytes.as_ref()), &[Syslog]),
        ("service", place(raw.service.as_ref()), &[Otlp]),
        ("headers", headers.map(|_| raw.kind.span.clone()), &[Otlp, Webhook]),
        ("user", place(raw.user.as_ref()), &[ClickHouse]),
        ("password", raw.password.as_ref().map(|_| raw.kind.span.clone()), &[ClickHouse]),
        ("database", place(raw.database.as_ref()), &[ClickHouse]),
        ("table", place(raw.table.as_ref()), &[ClickHouse]),
        ("create", place(raw.create.as_ref()), &[ClickHouse]),
        ("batch", place(raw.batch.as_ref()), &[Otlp, ClickHouse]),
        ("batch_time", place(raw.batch_time.as_ref()), &[Otlp, ClickHouse]),
        ("template", place(raw.template.as_ref()), &[Webhook]),
        ("per_minute", place(raw.per_minute.as_ref()), &[Webhook]),
    ];
    for (key, span, kinds) in keys {
        if let Some(span) = span.filter(|_| !kinds.contains(&raw.kind.value)) {
            let kinds: Vec<&str> = kinds.iter().map(|kind| word(*kind)).collect();
            let message = format!("a sink of kind `{}` has no `{key}`", word(raw.kind.value));
            mistakes.wrong_with_hint(span, message, format!("`{key}` is for: {}", kinds.join(", ")));
        }
    }
}

/// Events are shown to it as they happen, so that `time` has no use in it.
fn filter(mistakes: &mut Mistakes<'_>, text: &Spanned<String>) -> Option<Filter> {
    match portcullis_query::parse(text, 0) {
        Ok(filter) if filter.asks_for(Field::Time) => {
            let message = "a sink gets events as they happen; its filter cannot ask for `time`".to_string();
            mistakes.wrong(text.span.clone(), message);
            None
        }
        Ok(filter) => Some(filter),
        Err(mistake) => {
            mistakes.wrong(text.span.clone(), format!("filter, {mistake}"));
            None
        }
    }
}

fn syslog(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Option<Syslog> {
    let address = place::address(mistakes, raw);
    let facility = match &raw.facility {
        None => "local0",
        Some(name) => match FACILITIES.iter().find(|known| **known == **name) {
            Some(known) => known,
            None => {
                let message = format!("`{}` is not a facility of syslog", name.value);
                mistakes.wrong_with_hint(name.span.clone(), message, crate::hint::suggest(name, &FACILITIES));
                "local0"
            }
        },
    };
    // 12 to 15 have no names in use.
    let number_of = FACILITIES.iter().position(|known| *known == facility).unwrap_or(0);
    let number_of = if number_of >= 12 { number_of + 4 } else { number_of };
    let is_stream = address
        .as_ref()
        .is_none_or(|address| !matches!(address, SyslogAddress::Udp(_) | SyslogAddress::Unix(_)));
    if let Some(framing) = raw.framing.as_ref().filter(|_| !is_stream) {
        let message = "each datagram is a message: `framing` is for streams".to_string();
        mistakes.wrong(framing.span.clone(), message);
    }
    let octet_counting = match raw.framing.as_ref().map(|framing| framing.value) {
        Some(framing) => framing == SyslogFraming::OctetCounting,
        None => !matches!(address, Some(SyslogAddress::UnixStream(_))),
    };
    let default = if matches!(address, Some(SyslogAddress::Udp(_))) { DATAGRAM_BYTES } else { MESSAGE_BYTES };
    let bytes =
        raw.message_bytes.as_ref().map(|size| Spanned { value: size.value.0, span: size.span.clone() });
    let bytes = number(mistakes, bytes, 1024..=MESSAGE_BYTES_MAX, "message_bytes", default);
    Some(Syslog {
        address: address?,
        form: form(raw),
        facility: u8::try_from(number_of).unwrap_or(16),
        octet_counting,
        message_bytes_max: usize::try_from(bytes).unwrap_or(usize::MAX),
    })
}

fn form(raw: &Sink) -> EventForm {
    raw.format.as_ref().map_or(EventForm::Json, |form| event_form(form.value))
}

pub(crate) fn event_form(raw: raw::EventForm) -> EventForm {
    match raw {
        raw::EventForm::Json => EventForm::Json,
        raw::EventForm::Cef => EventForm::Cef,
        raw::EventForm::Ocsf => EventForm::Ocsf,
    }
}

fn otlp(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Option<OtlpLogs> {
    let headers = headers(mistakes, raw);
    let batch = batch(mistakes, raw);
    let url = place::url(mistakes, raw, false)?;
    Some(OtlpLogs {
        url: format!("{}/v1/logs", url.origin()),
        ca: raw.ca.as_ref().map(|ca| mistakes.path(ca)),
        headers,
        service: raw.service.as_ref().map_or_else(|| "portcullis".to_string(), |name| name.value.clone()),
        form: form(raw),
        batch,
    })
}

fn batch(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Batch {
    let time = raw.batch_time.as_ref().map_or(BATCH_TIME, |time| time.value.0);
    Batch {
        events_max: number(mistakes, raw.batch.clone(), 1..=100_000, "batch", BATCH) as usize,
        time: time.min(Duration::from_secs(60)),
    }
}

fn headers(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Vec<(String, Secret)> {
    let headers: &BTreeMap<String, Spanned<String>> = &raw.headers;
    for (name, value) in headers {
        if !is_token(name) || value.bytes().any(|byte| byte.is_ascii_control()) || !value.is_ascii() {
            let message = format!("`{name}` is not a header that can be sent");
            mistakes.wrong(raw.kind.span.clone(), message);
        }
    }
    headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.value.clone()))).collect()
}

fn clickhouse(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Option<ClickHouse> {
    let database = identifier(mistakes, raw.database.as_ref(), "database", "default");
    let table = identifier(mistakes, raw.table.as_ref(), "table", "portcullis_events");
    let batch = batch(mistakes, raw);
    let login = match (&raw.user, &raw.password) {
        (Some(user), password) => {
            self::user(mistakes, user);
            let password = password.as_ref().map(|password| password.value.clone()).unwrap_or_default();
            Some((user.value.clone(), Secret::new(password)))
        }
        (None, Some(_)) => {
            let hint = "add `user`".to_string();
            mistakes.wrong_with_hint(raw.kind.span.clone(), "a `password` needs a `user`".to_string(), hint);
            None
        }
        (None, None) => None,
    };
    let url = place::url(mistakes, raw, false)?;
    Some(ClickHouse {
        url: url.origin(),
        ca: raw.ca.as_ref().map(|ca| mistakes.path(ca)),
        login,
        database,
        table,
        create: raw.create.as_ref().is_some_and(|create| create.value),
        batch,
    })
}

/// The name of a user (RFC 7617).
pub(crate) fn user(mistakes: &mut Mistakes<'_>, user: &Spanned<String>) {
    if user.is_empty() || user.bytes().any(|byte| byte == b':' || byte.is_ascii_control()) {
        mistakes.wrong(user.span.clone(), "the name of a user has no `:`, and is not empty".to_string());
    }
}

/// The name of a database or table; it stands in SQL.
pub(crate) fn identifier(
    mistakes: &mut Mistakes<'_>,
    raw: Option<&Spanned<String>>,
    key: &str,
    default: &str,
) -> String {
    let Some(name) = raw else { return default.to_string() };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if !begins || name.len() > 64 || !name.bytes().all(fits) {
        mistakes.wrong(
            name.span.clone(),
            format!("{key} must be 1 to 64 letters, digits and `_`, no digit first"),
        );
    }
    name.value.clone()
}

fn webhook(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Option<Webhook> {
    let template = match &raw.template {
        None => JsonTemplate::default_template(),
        Some(text) => match JsonTemplate::parse(text) {
            Ok(template) => template,
            Err((message, hint)) => {
                match hint {
                    Some(hint) => mistakes.wrong_with_hint(text.span.clone(), message, hint),
                    None => mistakes.wrong(text.span.clone(), message),
                }
                JsonTemplate::default_template()
            }
        },
    };
    let per_minute = number(mistakes, raw.per_minute.clone(), 1..=6000, "per_minute", PER_MINUTE);
    let headers = headers(mistakes, raw);
    let url = place::url(mistakes, raw, true)?;
    Some(Webhook {
        url: Secret::new(format!("{}{}", url.origin(), url.path())),
        ca: raw.ca.as_ref().map(|ca| mistakes.path(ca)),
        headers,
        template,
        per_minute,
    })
}
