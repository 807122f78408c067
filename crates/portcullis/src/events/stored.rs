//! Stored events: searched, exported, followed, copied. The instance need not run.

use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_event_store::{EventSource, OldestRequest, PageRequest, QueryError, Store, StoredEvent};
use portcullis_query::{Field, Filter, bare, parse};
use serde_json::Value;

use super::csv;
use super::source::{Stored, sample, store};
use crate::outcome::Failure;
use crate::{data_folder, event_text};

/// Events that are listed for a person, unless told otherwise.
const LISTED: usize = 100;
/// Events that are read at once.
const BATCH: usize = 1000;
/// Between two looks for new events.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A page of a command may take as long as it needs.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The format of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line for a person.
    Text,
    /// A JSON object a line.
    Json,
    /// Comma-separated values (RFC 4180).
    Csv,
}

/// What is asked of stored events.
pub struct Question<'q> {
    pub stored: &'q Stored,
    /// A filter, or the id of a request.
    pub query: &'q str,
    pub format: Format,
    /// The newest events at most; none: all of them, or a hundred for a person.
    pub limit: Option<usize>,
    /// Waits for new events, until it is stopped.
    pub follow: bool,
}

/// Prints the events that pass, oldest first.
pub fn print(question: &Question<'_>) -> Result<(), Failure> {
    let events = question.stored.events();
    let followed = question.stored.folder().filter(|_| question.follow);
    if question.follow && followed.is_none() {
        return Err(Failure::usage(
            "`--follow` shows what one node records: ask it with `--data DIR`; `events.read_from` has events of many nodes",
        ));
    }
    let mut printer = Printer { format: question.format, out: BufWriter::new(io::stdout().lock()) };
    let result = match id(question.query) {
        Some(id) => one(events, id, &mut printer),
        None => many(question, followed, &mut printer),
    };
    result.or_else(|failure| match failure {
        Stop::ReaderGone => Ok(()),
        Stop::Failed(failure) => Err(failure),
    })
}

/// The event of a request, as JSON.
pub fn event(stored: &Stored, id: &str) -> Result<String, Failure> {
    let found = stored.events().event(id).map_err(Failure::failed)?;
    found.map(|event| event.json).ok_or_else(|| no_event(id))
}

/// Prints the request that is kept with an event: byte for byte, unless a terminal would follow the control
/// characters that a client put there.
pub fn request(data: &Path, id: &str) -> Result<(), Failure> {
    let found = store(data)?.event(id).map_err(Failure::failed)?.ok_or_else(|| no_event(id))?;
    let kept = found.request.ok_or_else(|| {
        Failure::failed(format_args!(
            "no request is kept with the event {id}: `events.keep_request` is 0, the event is of a client that was refused \
             before inspection, or the store was too busy"
        ))
    })?;
    let mut out = io::stdout().lock();
    let written = match out.is_terminal() {
        true => out.write_all(printable(&kept.bytes).as_bytes()),
        false => out.write_all(&kept.bytes),
    };
    if kept.omitted > 0 {
        eprintln!("portcullis: {} more bytes of the body are not kept (`events.keep_request`)", kept.omitted);
    }
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(()),
    }
}

/// For a terminal: control characters other than line breaks and tabs are escaped.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    for sign in text.replace("\r\n", "\n").chars() {
        match sign {
            '\n' | '\t' => out.push(sign),
            sign if sign.is_control() => out.extend(sign.escape_default()),
            sign => out.push(sign),
        }
    }
    out
}

/// Copies the store into a folder while an instance may write to it.
pub fn backup(data: &Path, to: &Path) -> Result<String, Failure> {
    let copied = store(data)?.backup(&data_folder::events(to)).map_err(Failure::failed)?;
    let text = format!("{} segments, {} bytes\n", copied.segments, copied.bytes);
    match copied.skipped.is_empty() {
        true => Ok(text),
        false => Err(Failure::failed(format_args!("{text}not copied: {}", copied.skipped.join("; ")))),
    }
}

pub fn no_event(id: &str) -> Failure {
    Failure::failed(format_args!(
        "no event with the id {id} is stored: a request that passed without a finding makes none, and old ones are deleted \
         (`events.keep`, `events.keep_bytes`)"
    ))
}

/// The query, if it is a request id and no filter.
fn id(query: &str) -> Option<&str> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let is_other = bare(query).is_some_and(|filter| !filter.asks_for(Field::Id));
    (!query.is_empty() && query.bytes().all(is_word) && !is_other).then_some(query)
}

/// The reason why printing ends early.
enum Stop {
    Failed(Failure),
    /// A closed pipe is a reader who has seen enough.
    ReaderGone,
}

impl<E: std::fmt::Display> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Failed(Failure::failed(error))
    }
}

fn one(events: &dyn EventSource, id: &str, printer: &mut Printer<'_>) -> Result<(), Stop> {
    let event = events.event(id)?.ok_or_else(|| Stop::Failed(no_event(id)))?;
    match printer.format {
        Format::Text => {
            let value: Value = serde_json::from_str(&event.json)?;
            printer.write(event_text::whole(&value).as_bytes())?;
        }
        Format::Json | Format::Csv => printer.events(&[event])?,
    }
    printer.flush()
}

fn many(question: &Question<'_>, followed: Option<&Store>, printer: &mut Printer<'_>) -> Result<(), Stop> {
    let events = question.stored.events();
    let filter = parse(question.query, now()).map_err(|mistake| {
        Stop::Failed(Failure::usage(format_args!("filter `{}`: {mistake}", question.query.escape_debug())))
    })?;
    printer.head()?;
    let limit = question.limit.or((question.format == Format::Text).then_some(LISTED));
    // Before the newest are looked for: what comes meanwhile is followed, not lost.
    let end = followed.map(|store| store.after(&filter, None, 0)).transpose()?;
    match limit {
        Some(limit) => newest(events, &filter, limit, printer)?,
        None => all(events, &filter, printer)?,
    }
    printer.flush()?;
    if let (Some(store), Some(end)) = (followed, end) {
        follow(store, &filter, end.place, printer)?;
    }
    Ok(())
}

fn newest(
    events: &dyn EventSource,
    filter: &Filter,
    limit: usize,
    printer: &mut Printer<'_>,
) -> Result<(), Stop> {
    let (mut found, mut skipped) = read_newest(events, filter, limit)?;
    found.reverse();
    printer.events(&found)?;
    tell_skipped(&mut skipped);
    Ok(())
}

/// The newest events that pass, newest first, and what could not be read.
pub fn read_newest(
    events: &dyn EventSource,
    filter: &Filter,
    limit: usize,
) -> Result<(Vec<StoredEvent>, Vec<String>), QueryError> {
    let (mut found, mut before) = (Vec::new(), None);
    let mut skipped = Vec::new();
    while found.len() < limit {
        let limit = (limit - found.len()).min(BATCH);
        let page =
            events.page(&PageRequest { filter, before: before.as_deref(), limit, patience: PATIENCE })?;
        found.extend(page.events);
        skipped.extend(page.skipped);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    Ok((found, skipped))
}

/// The newest events with a request that is kept, of the event store and of the sample of requests that
/// passed, newest first.
pub fn kept_requests(data: &Path, filter: &Filter, limit: usize) -> Result<Vec<StoredEvent>, Failure> {
    let (mut found, mut skipped) = read_newest(&store(data)?, filter, limit).map_err(Failure::failed)?;
    if let Some(sample) = sample(data) {
        let (more, not_read) = read_newest(&sample, filter, limit).map_err(Failure::failed)?;
        found.extend(more);
        skipped.extend(not_read);
    }
    tell_skipped(&mut skipped);
    found.retain(|event| event.request.is_some());
    // Times are of one form, and sort as texts.
    found.sort_by_cached_key(|event| {
        let value: Option<Value> = serde_json::from_str(&event.json).ok();
        std::cmp::Reverse(value.map(|value| event_text::text(&value, "/time").to_owned()))
    });
    found.truncate(limit);
    Ok(found)
}

fn all(events: &dyn EventSource, filter: &Filter, printer: &mut Printer<'_>) -> Result<(), Stop> {
    let mut place: Option<String> = None;
    let mut skipped = Vec::new();
    loop {
        let request = OldestRequest { filter, from: place.as_deref(), limit: BATCH, patience: PATIENCE };
        let found = events.oldest(&request)?;
        printer.events(&found.events)?;
        skipped.extend(found.skipped);
        if found.at_end || found.place == place {
            break;
        }
        place = found.place;
    }
    tell_skipped(&mut skipped);
    Ok(())
}

fn follow(
    store: &Store,
    filter: &Filter,
    end: Option<String>,
    printer: &mut Printer<'_>,
) -> Result<(), Stop> {
    let mut place = end.unwrap_or_else(|| store.beginning());
    loop {
        let found = store.after(filter, Some(&place), BATCH)?;
        printer.events(&found.events)?;
        printer.flush()?;
        place = found.place.unwrap_or(place);
        if found.at_end {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

pub fn tell_skipped(skipped: &mut Vec<String>) {
    skipped.sort();
    skipped.dedup();
    for segment in skipped {
        eprintln!("warning: events of a segment are missing: {segment}");
    }
}

struct Printer<'o> {
    format: Format,
    out: BufWriter<StdoutLock<'o>>,
}

impl Printer<'_> {
    fn head(&mut self) -> Result<(), Stop> {
        match self.format {
            Format::Csv => self.write(csv::HEAD.as_bytes()),
            Format::Text | Format::Json => Ok(()),
        }
    }

    fn events(&mut self, events: &[StoredEvent]) -> Result<(), Stop> {
        for event in events {
            let line = match self.format {
                Format::Json => format!("{}\n", event.json),
                Format::Text => format!("{}\n", event_text::line(&serde_json::from_str(&event.json)?)),
                Format::Csv => csv::line(&serde_json::from_str(&event.json)?),
            };
            self.write(line.as_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        check(self.out.write_all(bytes))
    }

    fn flush(&mut self) -> Result<(), Stop> {
        check(self.out.flush())
    }
}

fn check(written: io::Result<()>) -> Result<(), Stop> {
    written.map_err(|error| {
        if let io::ErrorKind::BrokenPipe = error.kind() {
            Stop::ReaderGone
        } else {
            Stop::Failed(Failure::failed(format_args!("cannot write to standard output: {error}")))
        }
    })
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::id;

    #[test]
    fn a_word_is_an_id_and_a_comparison_a_filter() {
        assert_eq!(id("aQ3-x_9.@"), Some("aQ3-x_9.@"));
        for filter in ["", "verdict = deny", "status=403", "client in 192.0.2.0/24", "text ~ \"x\"", "not x"]
        {
            assert_eq!(id(filter), None, "{filter}");
        }
    }
}
