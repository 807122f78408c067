//! Reading: pages of events that pass a filter, newest first, and single events.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_event::KeptRequest;
use portcullis_query::{Comparison, Field, Filter, Operator, Value};

use crate::block;
use crate::evaluate;
use crate::folder::{Folder, SegmentFile};
use crate::marks::Needs;
use crate::recorded::decode;
use crate::rows::Rows;
use crate::segment::{BlockHead, Segment, SegmentError};

/// Events of a page, at most.
pub const LIMIT_MAX: usize = 1000;
/// Segments in a place: those that may still be written to are among the newest.
const EACH_MAX: usize = 16;

/// The events of a folder. Cheap to make: files are opened for each query.
#[derive(Clone, Debug)]
pub struct Store(Folder);

/// Contents of a page.
#[derive(Clone, Debug)]
pub struct PageRequest<'f> {
    /// Filter that events have to pass.
    pub filter: &'f Filter,
    /// Only events before this one, as [`Page::next`] of the page before; the newest if none.
    pub before: Option<&'f str>,
    /// Events at most.
    pub limit: usize,
    /// The time that looking may take; then the page ends early and says so.
    pub patience: Duration,
}

/// Events that pass a filter, newest first: in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The events.
    pub events: Vec<StoredEvent>,
    /// Start of the next page; none if there are no older events.
    pub next: Option<String>,
    /// False if the time ran out before the page was full: there may be more behind `next`.
    pub complete: bool,
    /// Segments that could not be read, and why.
    pub skipped: Vec<String>,
}

/// Events after a place.
#[derive(Clone, Debug, Default)]
pub struct After {
    /// The events, oldest first.
    pub events: Vec<StoredEvent>,
    /// The place behind the last event that was looked at, in each segment.
    pub place: Option<String>,
    /// True if there were no more events.
    pub at_end: bool,
    /// Segments that could not be read, and why.
    pub skipped: Vec<String>,
}

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place, for [`PageRequest::before`] and `after`.
    pub cursor: String,
    /// Requests that it stands for.
    pub count: u64,
    /// One JSON object.
    pub json: String,
    /// The node that recorded it, where events of several nodes are together.
    pub node: Option<String>,
    /// The request that was kept with it.
    pub request: Option<KeptRequest>,
}

/// Why a query has no answer.
#[derive(Debug)]
pub enum QueryError {
    /// The folder cannot be read.
    Folder(io::Error),
    /// The cursor is not one of this store.
    Cursor(String),
    /// The database of events cannot be asked, or refuses the question: the reason.
    Unavailable(String),
    /// The database of events has not answered in time: the reason.
    Late(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Folder(error) => write!(f, "the folder of events cannot be read: {error}"),
            QueryError::Cursor(text) => write!(f, "`{text}` is no cursor of a page of events"),
            QueryError::Unavailable(why) => write!(f, "the database of events cannot be asked: {why}"),
            QueryError::Late(why) => write!(f, "the database of events has not answered in time: {why}"),
        }
    }
}

impl std::error::Error for QueryError {}

/// A place between events: before the event with this number of this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    segment: u64,
    event: u64,
}

impl Cursor {
    fn parse(text: &str) -> Result<Cursor, QueryError> {
        let parts = text.split_once('-').and_then(|(segment, event)| {
            Some(Cursor { segment: segment.parse().ok()?, event: event.parse().ok()? })
        });
        parts.ok_or_else(|| QueryError::Cursor(text.to_owned()))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.segment, self.event)
    }
}

/// Position of a reader of new events. Two processes may write at once, and a clock may be set back, so that
/// the newest event is not always in the segment with the highest number.
enum Places {
    /// Behind all events up to this place.
    After(Cursor),
    /// In each of the newest segments; another one is new, or old if there are [`EACH_MAX`] newer ones.
    Each(Vec<Cursor>),
}

impl Places {
    fn parse(text: &str) -> Result<Places, QueryError> {
        let wrong = |_| QueryError::Cursor(text.to_owned());
        let Some(each) = text.strip_prefix('.') else { return Cursor::parse(text).map(Places::After) };
        let each = each.split('.').filter(|one| !one.is_empty()).map(Cursor::parse);
        each.collect::<Result<_, _>>().map(Places::Each).map_err(wrong)
    }

    /// The first event of a segment that is new to the reader, `u64::MAX`: none of those that are there now;
    /// none if it is not looked at.
    fn in_segment(&self, number: u64) -> Option<u64> {
        match self {
            Places::After(place) if number < place.segment => Some(u64::MAX),
            Places::After(place) if number > place.segment => Some(0),
            Places::After(place) => Some(place.event),
            Places::Each(each) => match each.iter().find(|one| one.segment == number) {
                Some(one) => Some(one.event),
                None if each.len() >= EACH_MAX && each.iter().all(|one| number < one.segment) => None,
                None => Some(0),
            },
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Places::After(place) => place.fmt(f),
            Places::Each(each) if each.is_empty() => f.write_str("."),
            Places::Each(each) => each.iter().try_for_each(|one| write!(f, ".{one}")),
        }
    }
}

/// A look through segments.
pub(crate) struct Look<'f> {
    filter: &'f Filter,
    needs: Needs,
    pub(crate) times: (u64, u64),
    deadline: Instant,
}

impl Store {
    /// The store of this folder.
    pub fn new(folder: &Path) -> Store {
        Store(Folder::new(folder))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn folder_of_segments(&self) -> &Folder {
        &self.0
    }

    /// A page of events. What is damaged is left out and named.
    pub fn page(&self, request: &PageRequest<'_>) -> Result<Page, QueryError> {
        let before = request.before.map(Cursor::parse).transpose()?;
        let look = Look::new(request.filter, request.patience);
        let limit = request.limit.clamp(1, LIMIT_MAX);
        let mut page = Page { complete: true, ..Page::default() };
        let segments = self.0.segments().map_err(QueryError::Folder)?;
        for file in segments.iter().rev() {
            let upto = match before {
                Some(cursor) if cursor.segment < file.number => continue,
                Some(cursor) if cursor.segment == file.number => cursor.event,
                _ => u64::MAX,
            };
            match look.segment(file, upto, limit, &mut page) {
                Ok(true) => {}
                Ok(false) => break,
                // Dropped since the folder was listed.
                Err(_) if !file.path.exists() => {}
                Err(error) => page.skipped.push(format!("{}: {error}", file.path.display())),
            }
        }
        Ok(page)
    }

    /// The event of a request.
    pub fn event(&self, id: &str) -> Result<Option<StoredEvent>, QueryError> {
        let values = vec![Value::Text(id.to_owned())];
        let filter = Filter::Is(Comparison { field: Field::Id, operator: Operator::Equal, values });
        let patience = Duration::from_secs(60);
        let page = self.page(&PageRequest { filter: &filter, before: None, limit: 1, patience })?;
        Ok(page.events.into_iter().next())
    }

    /// The place before the oldest event.
    pub fn beginning(&self) -> String {
        Cursor { segment: 0, event: 0 }.to_string()
    }

    /// Events that were recorded after a place and pass a filter, oldest first. Without a place: none, but
    /// the place behind the newest.
    pub fn after(&self, filter: &Filter, place: Option<&str>, limit: usize) -> Result<After, QueryError> {
        let from = place.map(Places::parse).transpose()?;
        let mut after = After { at_end: true, ..After::default() };
        let (mut reached, mut finished) = (Vec::new(), 0);
        for file in &self.0.segments().map_err(QueryError::Folder)? {
            let new = from.as_ref().map_or(Some(u64::MAX), |from| from.in_segment(file.number));
            let Some(mut event) = new else { continue };
            if !after.at_end && event == 0 {
                // It stays new.
                continue;
            }
            if after.at_end {
                let room = limit.clamp(1, LIMIT_MAX).saturating_sub(after.events.len());
                match new_events(file, filter, event, room) {
                    Ok((events, next, at_end)) => {
                        after.events.extend(events);
                        (event, after.at_end) = (next, at_end);
                    }
                    // Dropped since the folder was listed.
                    Err(_) if !file.path.exists() => continue,
                    Err(error) => after.skipped.push(format!("{}: {error}", file.path.display())),
                }
            }
            finished += usize::from(after.at_end);
            reached.push(Cursor { segment: file.number, event });
        }
        reached.drain(..finished.min(reached.len().saturating_sub(EACH_MAX)));
        after.place = Some(Places::Each(reached).to_string());
        Ok(after)
    }
}

impl<'f> Look<'f> {
    /// For events that pass a filter; it takes so long at most.
    pub(crate) fn new(filter: &'f Filter, patience: Duration) -> Look<'f> {
        let (needs, times) = (Needs::of(filter), filter.time_range());
        Look { filter, needs, times, deadline: Instant::now() + patience }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() > self.deadline
    }

    /// The rows of a block that pass; none if there are none, which its index often knows.
    pub(crate) fn rows(&self, segment: &Segment, head: &BlockHead) -> Result<Option<Rows>, SegmentError> {
        if !self.needs.terms.is_empty() && !self.needs.may_be_in(&segment.terms(head)?) {
            return Ok(None);
        }
        if !self.needs.texts.is_empty() {
            let text = segment.text(head)?;
            if !self.needs.texts.iter().all(|piece| text.may_contain(piece)) {
                return Ok(None);
            }
        }
        let rows = evaluate::rows(segment, head, self.filter)?;
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Looks through a segment. False if the page is at its end.
    fn segment(
        &self,
        file: &SegmentFile,
        upto: u64,
        limit: usize,
        page: &mut Page,
    ) -> Result<bool, SegmentError> {
        let segment = Segment::open(&file.path)?;
        for head in segment.blocks(upto, self.times)? {
            if self.is_over() {
                let place = Cursor { segment: file.number, event: upto.min(head.first + head.count as u64) };
                (page.complete, page.next) = (false, Some(place.to_string()));
                return Ok(false);
            }
            let Some(rows) = self.rows(&segment, &head)? else { continue };
            let counts = segment.column(&head, Field::Count)?;
            for row in rows.iter().rev() {
                let event = head.first + row as u64;
                if event >= upto {
                    continue;
                }
                page.events.push(stored(&segment, file, event, counts.number(row))?);
                if page.events.len() >= limit {
                    page.next = Some(Cursor { segment: file.number, event }.to_string());
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Events of a segment from one on that pass, oldest first; the first that was not looked at; true if that is
/// the end.
fn new_events(
    file: &SegmentFile,
    filter: &Filter,
    from: u64,
    room: usize,
) -> Result<(Vec<StoredEvent>, u64, bool), SegmentError> {
    let segment = Segment::open(&file.path)?;
    let next = segment.next_event()?;
    let mut events = Vec::new();
    if from >= next {
        return Ok((events, next, true));
    }
    for head in segment.blocks(next, (0, u64::MAX))?.iter().rev() {
        if head.first + head.count as u64 <= from {
            continue;
        }
        let counts = segment.column(head, Field::Count)?;
        for row in evaluate::rows(&segment, head, filter)?.iter() {
            let event = head.first + row as u64;
            if event < from {
                continue;
            }
            if events.len() >= room {
                return Ok((events, event, false));
            }
            events.push(stored(&segment, file, event, counts.number(row))?);
        }
    }
    Ok((events, next, true))
}

fn stored(
    segment: &Segment,
    file: &SegmentFile,
    event: u64,
    count: u64,
) -> Result<StoredEvent, SegmentError> {
    let (first, chunk) = segment.chunk(event)?;
    let (json, request) = block::payload(&chunk, (event - first) as usize)?;
    let json = String::from_utf8(json).map_err(|_| crate::codec::Damaged)?;
    let cursor = Cursor { segment: file.number, event }.to_string();
    Ok(StoredEvent { cursor, count, json, node: None, request: decode(&request)? })
}
