//! The table of events in ClickHouse: a column for each field of the filter language, and the event itself.

use std::net::IpAddr;

use portcullis_event::{Event, Lead};
use portcullis_query::{Field, Kind, Read};
use serde_json::{Map, Value, json};

use crate::form;

/// What a row is made of.
struct Source<'e> {
    event: &'e Event,
    lead: Lead<'e>,
    node: &'e str,
}

/// A column: its name, its type and its value in a row.
enum Column {
    /// Named and filled as the field.
    Of(Field, &'static str),
    Own(&'static str, &'static str, fn(&Source<'_>) -> Value),
}

use Column::{Of, Own};

/// All columns, in the order of the table. `portcullis-clickhouse` asks for fields by the names of columns,
/// and has conditions of its own for fields that have none.
const COLUMNS: &[Column] = &[
    Own("time", "DateTime('UTC')", |row| json!(row.event.time.epoch_millis() / 1000)),
    Own("time_ms", "UInt64", |row| of_field(Field::Time, row.event)),
    Of(Field::Id, "String"),
    Own("node", "String", |row| json!(row.node)),
    Of(Field::Site, "String"),
    Of(Field::Route, "String"),
    Of(Field::Verdict, "String"),
    Of(Field::Status, "UInt16"),
    Of(Field::Class, "Array(String)"),
    Of(Field::Rule, "Array(UInt32)"),
    Of(Field::Client, "String"),
    Own("client_hex", "String", |row| json!(hex(&row.event.client.addr))),
    Of(Field::Country, "String"),
    Of(Field::Asn, "UInt32"),
    Of(Field::Method, "String"),
    Of(Field::Host, "String"),
    Of(Field::Path, "String"),
    Of(Field::Agent, "String"),
    Of(Field::Upstream, "String"),
    Of(Field::Control, "String"),
    Of(Field::Refusal, "String"),
    Of(Field::Mode, "String"),
    Of(Field::Engine, "String"),
    Of(Field::Duration, "UInt64"),
    Of(Field::Count, "UInt64"),
    Own("finding", "String", |row| json!(finding(&row.lead))),
    Own("location", "String", |row| json!(row.lead.location)),
    Own("evidence", "String", |row| json!(row.lead.evidence)),
    Own("event", "String", |row| of_field(Field::Text, row.event)),
];

impl Column {
    fn name(&self) -> &'static str {
        match self {
            Of(field, _) => field.name(),
            Own(name, ..) => name,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Of(_, kind) | Own(_, kind, _) => kind,
        }
    }

    fn value(&self, row: &Source<'_>) -> Value {
        match self {
            Of(field, _) => of_field(*field, row.event),
            Own(.., value) => value(row),
        }
    }
}

/// The statement that makes the table. Servers from 18.16 on take it: no `DateTime64` (20.1), no `IPv6`
/// (19.4), no `LowCardinality` without a setting.
///
/// - `time_ms` is exact, `time` is what partitions and people use; UTC, both.
/// - `client_hex` is the address as IPv6 in 32 digits, so that a network is a range of texts.
/// - Absent numbers are 0, absent texts empty.
/// - `node` is the host that wrote the row. Tables created by earlier versions lack it; they take rows
///   without it.
/// - A batch that is sent twice, because its answer was lost, is the same rows again: this engine merges rows
///   of one time and id into one. Until then, or with `FINAL`, `uniqExact(id)` counts right.
pub fn table_definition(database: &str, table: &str) -> String {
    let columns: Vec<String> =
        COLUMNS.iter().map(|column| format!("    {} {}", column.name(), column.kind())).collect();
    format!(
        "CREATE TABLE IF NOT EXISTS {database}.{table} (\n{}\n) ENGINE = ReplacingMergeTree\n\
         PARTITION BY toYYYYMMDD(time)\n\
         ORDER BY (time, id)",
        columns.join(",\n")
    )
}

/// Appends the row of an event of this node as a JSON object (`JSONEachRow`), and a newline.
pub(super) fn write_row(event: &Event, node: &str, out: &mut Vec<u8>) {
    let row = Source { event, lead: event.lead(), node };
    let members = COLUMNS.iter().map(|column| (column.name().to_owned(), column.value(&row)));
    out.extend_from_slice(Value::Object(members.collect::<Map<_, _>>()).to_string().as_bytes());
    out.push(b'\n');
}

/// The value of a field: 0 or an empty text if the event has none, each text of a list once.
fn of_field(field: Field, event: &Event) -> Value {
    match field.read() {
        Read::Number(read) => json!(read(event).unwrap_or(0)),
        Read::Word(read) => json!(read(event)),
        Read::List(read) => {
            let mut list: Vec<Value> = Vec::new();
            read(event, &mut |text| {
                let value = match field.kind() == Kind::Number {
                    true => text.parse::<u32>().ok().map(Value::from),
                    false => Some(Value::from(text)),
                };
                list.extend(value.filter(|value| !list.contains(value)));
            });
            Value::Array(list)
        }
        Read::Json => json!(form::text(event, portcullis_config::EventForm::Json)),
    }
}

/// The rule or kind that an event is about, with its title.
fn finding(lead: &Lead<'_>) -> String {
    match (lead.rule, lead.kind) {
        (Some(rule), _) => format!("{rule} {}", lead.title),
        (None, "") => lead.title.to_string(),
        (None, kind) => format!("{kind} {}", lead.title),
    }
}

/// An address as IPv6, in digits.
fn hex(address: &str) -> String {
    let bits = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.to_ipv6_mapped().to_bits(),
        Ok(IpAddr::V6(address)) => address.to_bits(),
        Err(_) => return String::new(),
    };
    format!("{bits:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_ranges_of_texts() {
        assert_eq!(hex("192.0.2.7"), "00000000000000000000ffffc0000207");
        assert_eq!(hex("::ffff:192.0.2.7"), hex("192.0.2.7"));
        assert_eq!(hex("2001:db8::1"), "20010db8000000000000000000000001");
        assert_eq!(hex("nobody"), "");
    }

    /// A new field has a column, or stands here because `portcullis-clickhouse` has a condition for it.
    #[test]
    fn every_field_has_a_column_or_is_read_from_others() {
        const FROM_OTHERS: [Field; 5] =
            [Field::Time, Field::Outcome, Field::Trial, Field::Location, Field::Text];
        for field in Field::ALL {
            let has_column = COLUMNS.iter().any(|column| matches!(column, Of(of, _) if of == field));
            assert_eq!(has_column, !FROM_OTHERS.contains(field), "{}", field.name());
        }
        let mut names: Vec<&str> = COLUMNS.iter().map(Column::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len());
    }
}
