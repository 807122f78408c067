//! The table of events in ClickHouse: a column for each field of the filter language, and the event itself.

/// The statement that makes the table. Servers from 18.16 on take it: no `DateTime64` (20.1), no `IPv6`
/// (19.4), no `LowCardinality` without a setting.
///
/// - `time_ms` is exact, `time` is what partitions and people use; UTC, both.
/// - `client_hex` is the address as IPv6 in 32 digits, so that a network is a range of texts.
/// - Absent numbers are 0, absent texts empty.
/// - `node` is the host that wrote the row. Tables of before do not have it; they take rows without it.
/// - A batch that is sent twice, because its answer was lost, is the same rows again: this engine merges rows
///   of one time and id into one. Until then, or with `FINAL`, `uniqExact(id)` counts right.
pub fn table_definition(database: &str, table: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {database}.{table} (\n\
         \x20   time DateTime('UTC'),\n\
         \x20   time_ms UInt64,\n\
         \x20   id String,\n\
         \x20   node String,\n\
         \x20   site String,\n\
         \x20   route String,\n\
         \x20   verdict String,\n\
         \x20   status UInt16,\n\
         \x20   class Array(String),\n\
         \x20   rule Array(UInt32),\n\
         \x20   client String,\n\
         \x20   client_hex String,\n\
         \x20   country String,\n\
         \x20   asn UInt32,\n\
         \x20   method String,\n\
         \x20   host String,\n\
         \x20   path String,\n\
         \x20   user_agent String,\n\
         \x20   upstream String,\n\
         \x20   control String,\n\
         \x20   refusal String,\n\
         \x20   mode String,\n\
         \x20   engine String,\n\
         \x20   duration_us UInt64,\n\
         \x20   count UInt64,\n\
         \x20   finding String,\n\
         \x20   location String,\n\
         \x20   evidence String,\n\
         \x20   event String\n\
         ) ENGINE = ReplacingMergeTree\n\
         PARTITION BY toYYYYMMDD(time)\n\
         ORDER BY (time, id)"
    )
}
