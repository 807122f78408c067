//! Events of a table.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_config::EventDatabase;
use portcullis_event_store::{
    After, EventSource, FacetRequest, Facets, Histogram, HistogramRequest, OldestRequest, Page, PageRequest,
    QueryError, StoredEvent,
};
use portcullis_metrics::Registry;
use portcullis_query::{Comparison, Field, Filter, Operator, Value};
use serde::Deserialize;

use crate::answer::{bytes, is_event, number, rows};
use crate::condition::{condition, literal};
use crate::cursor::{ID_BYTES_MAX, Key, Side, seconds};
use crate::link::{Deadline, Link};
use crate::windows::windows;

/// Events of a page, at most.
const LIMIT_MAX: usize = 1000;
/// Events that are fetched at once: an answer is bounded in bytes.
const FETCH_MAX: usize = 100;
/// Bytes of an event; no sink writes a longer one. A hundred of them, escaped, fit into an answer.
const EVENT_BYTES_MAX: usize = 256 << 10;
/// Age of rows that have arrived, unless their node was disconnected.
const WRITTEN_MS: u64 = 60_000;
/// Bytes of the events of a page; then it ends early and says so.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// A table of events. It connects when it is asked.
#[derive(Debug)]
pub struct Database {
    pub(crate) link: Link,
    table: String,
    /// Longest time of a question.
    timeout: Duration,
}

/// A row of the first look, which reads the columns of the filter only.
#[derive(Deserialize)]
struct KeyRow {
    #[serde(deserialize_with = "number")]
    t: u64,
    #[serde(deserialize_with = "bytes")]
    i: Vec<u8>,
}

/// A row with its event.
#[derive(Deserialize)]
struct EventRow {
    #[serde(deserialize_with = "number")]
    t: u64,
    #[serde(deserialize_with = "bytes")]
    i: Vec<u8>,
    #[serde(deserialize_with = "number")]
    n: u64,
    h: String,
    e: String,
}

/// Keys of a page.
#[derive(Default)]
struct Keys {
    keys: Vec<Key>,
    /// The time did not suffice to look for further ones.
    is_late: bool,
}

/// Events that were fetched for keys.
#[derive(Default)]
struct Fetched {
    events: Vec<StoredEvent>,
    skipped: Vec<String>,
    /// Number of the first keys for which they were fetched.
    keys: usize,
    bytes: usize,
}

impl Database {
    /// The table of these settings. Errors: authorities or a password that cannot be read.
    pub fn new(settings: &EventDatabase, registry: &Registry) -> io::Result<Database> {
        let link = Link::new(settings, registry)?;
        // Names are letters, digits and `_`.
        let table = format!("{}.{}", settings.database, settings.table);
        Ok(Database { link, table, timeout: settings.timeout })
    }

    /// `FROM` and `WHERE` of the rows that pass.
    pub(crate) fn rows_of(&self, filter: &Filter, is_final: bool, more: Option<String>) -> String {
        // Other programs that write to the table could fill answers with ids.
        let ids = Some(format!("length(id) <= {ID_BYTES_MAX}"));
        let parts = [seconds(filter.time_range()), ids, more, Some(condition(filter))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let merged = if is_final { " FINAL" } else { "" };
        format!("FROM {}{merged} WHERE {}", self.table, parts.join(" AND "))
    }

    /// Keys, and the events of as many of them as a page may hold. Three quarters of the time are for the
    /// keys.
    fn look(
        &self,
        filter: &Filter,
        from: Option<&Key>,
        side: Side,
        limit: usize,
        patience: Duration,
    ) -> Result<(Keys, Fetched), QueryError> {
        let patience = patience.min(self.timeout);
        let end = self.link.deadline(patience);
        let found = self.keys(filter, from, side, limit, self.link.deadline(patience - patience / 4))?;
        // The database is waited for a moment longer, to say that it is late.
        let end = if found.is_late { self.link.deadline(patience / 4) } else { end };
        let fetched = self.fetch(&found.keys, end)?;
        Ok((found, fetched))
    }

    /// The keys of events that pass, on one side of a key, those next to it first, as many as are found in
    /// time. A batch that was sent twice is the same rows twice until the database has merged them: one for
    /// each key. Errors: as of the link; that it is late, if there are none by then.
    fn keys(
        &self,
        filter: &Filter,
        from: Option<&Key>,
        side: Side,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Keys, QueryError> {
        let order = match side {
            Side::Before => "DESC",
            Side::After => "ASC",
        };
        let mut found = Keys::default();
        for window in Self::windows(filter, from, side) {
            let more = from.map(|key| key.condition(side)).into_iter().chain([window]).collect::<Vec<_>>();
            let statement = format!(
                "SELECT toString(time_ms) AS t, hex(id) AS i {} \
                 ORDER BY time {order}, time_ms {order}, id {order} LIMIT 1 BY time_ms, id LIMIT {}",
                self.rows_of(filter, false, Some(more.join(" AND "))),
                limit - found.keys.len()
            );
            let answer = match self.link.ask(&statement, "", deadline) {
                Err(QueryError::Late(_)) if !found.keys.is_empty() => {
                    found.is_late = true;
                    break;
                }
                answer => answer?,
            };
            let rows: Vec<KeyRow> = rows(&answer)?;
            found.keys.extend(rows.into_iter().map(|row| Key { time_ms: row.t, id: row.i }));
            if found.keys.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// The windows in which [`keys`](Self::keys) are looked for.
    fn windows(filter: &Filter, from: Option<&Key>, side: Side) -> Vec<String> {
        let (first, last) = filter.time_range();
        if first > last {
            return Vec::new();
        }
        let (from, now) = (from.map(|key| key.time_ms), now_ms());
        let (edge, far) = match side {
            Side::Before => (last.min(from.unwrap_or(u64::MAX)).min(now), first),
            // Each window is a statement of its own. Of rows that are inserted between two statements the
            // second one would see the later rows only, and the earlier ones would be passed by.
            Side::After => (first.max(from.unwrap_or(0)), last.min(now.saturating_sub(WRITTEN_MS))),
        };
        // The oldest row may be of any time.
        let far = if edge == 0 { 0 } else { far };
        windows(edge / 1000, far / 1000, side).collect()
    }

    /// The events of keys, in their order: of all of them, or as many as a page may hold.
    fn fetch(&self, keys: &[Key], deadline: Deadline) -> Result<Fetched, QueryError> {
        let mut fetched = Fetched::default();
        for keys in keys.chunks(FETCH_MAX) {
            if fetched.bytes > PAGE_BYTES_MAX {
                break;
            }
            let mut found: Vec<EventRow> = rows(&self.link.ask(&self.fetching(keys), "", deadline)?)?;
            found.sort_by(|a, b| (a.t, &a.i).cmp(&(b.t, &b.i)));
            keys.iter().for_each(|key| fetched.add(key, &mut found));
            fetched.keys += keys.len();
        }
        Ok(fetched)
    }

    fn fetching(&self, keys: &[Key]) -> String {
        let times = keys.iter().map(|key| key.time_ms);
        let range = (times.clone().min().unwrap_or(0), times.max().unwrap_or(u64::MAX));
        let list: Vec<String> =
            keys.iter().map(|key| format!("({}, {})", key.time_ms, literal(&key.id))).collect();
        format!(
            "SELECT toString(time_ms) AS t, hex(id) AS i, toString(count) AS n, node AS h, \
             if(length(event) > {EVENT_BYTES_MAX}, '', event) AS e FROM {} \
             WHERE {} AND (time_ms, id) IN ({}) LIMIT 1 BY time_ms, id",
            self.table,
            seconds(range).unwrap_or_else(|| "1".to_owned()),
            list.join(", ")
        )
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Fetched {
    fn add(&mut self, key: &Key, found: &mut [EventRow]) {
        let place = found.binary_search_by(|row| (row.t, &row.i).cmp(&(key.time_ms, &key.id)));
        let Some(row) = place.ok().and_then(|place| found.get_mut(place)) else {
            self.skipped.push(format!("the row {key} was dropped meanwhile"));
            return;
        };
        let json = std::mem::take(&mut row.e);
        if !is_event(&json) {
            self.skipped.push(format!("the event of the row {key} is not one JSON object"));
            return;
        }
        self.bytes += json.len();
        let node = Some(std::mem::take(&mut row.h)).filter(|node| !node.is_empty());
        self.events.push(StoredEvent { cursor: key.to_string(), count: row.n, json, node, request: None });
    }
}

impl EventSource for Database {
    fn page(&self, request: &PageRequest<'_>) -> Result<Page, QueryError> {
        let before = request.before.map(Key::parse).transpose()?;
        let limit = request.limit.clamp(1, LIMIT_MAX);
        let (Keys { keys, is_late }, fetched) =
            self.look(request.filter, before.as_ref(), Side::Before, limit, request.patience)?;
        let Fetched { events, skipped, keys: fetched, .. } = fetched;
        let complete = fetched == keys.len() && !is_late;
        let last = keys[..fetched].last().filter(|_| keys.len() >= limit || !complete);
        Ok(Page { events, next: last.map(Key::to_string), complete, skipped })
    }

    fn event(&self, id: &str) -> Result<Option<StoredEvent>, QueryError> {
        let values = vec![Value::Text(id.to_owned())];
        let filter = Filter::Is(Comparison { field: Field::Id, operator: Operator::Equal, values });
        let request = PageRequest { filter: &filter, before: None, limit: 1, patience: self.timeout };
        Ok(self.page(&request)?.events.into_iter().next())
    }

    fn facets(&self, request: &FacetRequest<'_>) -> Result<Facets, QueryError> {
        self.count(request)
    }

    fn histogram(&self, request: &HistogramRequest<'_>) -> Result<Histogram, QueryError> {
        self.over_time(request)
    }

    fn oldest(&self, request: &OldestRequest<'_>) -> Result<After, QueryError> {
        let from = request.from.map(Key::parse).transpose()?;
        let limit = request.limit.clamp(1, LIMIT_MAX);
        let (Keys { keys, is_late }, fetched) =
            self.look(request.filter, from.as_ref(), Side::After, limit, request.patience)?;
        let Fetched { events, skipped, keys: fetched, .. } = fetched;
        let place = keys[..fetched].last().or(from.as_ref()).map(Key::to_string);
        Ok(After { events, place, at_end: keys.len() < limit && fetched == keys.len() && !is_late, skipped })
    }
}
