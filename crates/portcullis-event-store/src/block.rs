//! A block: up to 1,024 events, column by column, with their index and their JSON.

use portcullis_event::Event;
use portcullis_query::Field;

use crate::codec::{Damaged, Packer, Reader, plain, put_bytes, unpack};
use crate::column::{Lists, ListsBuilder, Numbers, Words, WordsBuilder};
use crate::fields::{self, Shape, shape};
use crate::marks::{Marks, TERM_BITS, TEXT_BITS, Term, address_terms, path_terms};

/// Events of a block.
pub(crate) const EVENTS_MAX: usize = 1024;
/// Bytes of their JSON and requests, before compression.
pub(crate) const BYTES_MAX: usize = 4 << 20;
/// Events are packed together up to this; to show one, so much is unpacked.
const CHUNK_BYTES: usize = 48 << 10;

/// A column as it is built.
#[derive(Clone, Debug)]
enum Builder {
    Numbers(Numbers),
    Words(WordsBuilder),
    Lists(ListsBuilder),
}

/// Events that become a block.
pub(crate) struct BlockBuilder {
    columns: Vec<(Field, Builder)>,
    count: usize,
    /// Requests that the events stand for.
    requests: u64,
    bytes: usize,
    /// Payloads that are packed, and the row with which each begins.
    chunks: Vec<(usize, Vec<u8>)>,
    /// Payloads that are not, and the row with which they begin.
    open: Vec<u8>,
    open_row: usize,
    terms: Marks,
    text: Marks,
    json: Vec<u8>,
    lower: Vec<u8>,
}

/// A block as it is stored.
pub(crate) struct Encoded {
    pub(crate) count: usize,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) columns: Vec<(Field, Vec<u8>)>,
    pub(crate) terms: Vec<u8>,
    pub(crate) text: Vec<u8>,
    /// Row of the first event, packed payloads.
    pub(crate) chunks: Vec<(usize, Vec<u8>)>,
}

impl BlockBuilder {
    pub(crate) fn new() -> BlockBuilder {
        let mut builder = BlockBuilder {
            columns: Vec::new(),
            count: 0,
            requests: 0,
            bytes: 0,
            chunks: Vec::new(),
            open: Vec::with_capacity(2 * CHUNK_BYTES),
            open_row: 0,
            terms: Marks::new(TERM_BITS),
            text: Marks::new(TEXT_BITS),
            json: Vec::with_capacity(4096),
            lower: Vec::with_capacity(4096),
        };
        builder.clear();
        builder
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Requests that its events stand for.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes of JSON and requests.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= EVENTS_MAX || self.bytes >= BYTES_MAX
    }

    /// True if the events of another fit in as well.
    pub(crate) fn has_room_for(&self, other: &BlockBuilder) -> bool {
        self.count + other.count <= EVENTS_MAX && (self.is_empty() || self.bytes + other.bytes <= BYTES_MAX)
    }

    pub(crate) fn clear(&mut self) {
        let new = |&field: &Field| {
            let builder = match shape(field) {
                Shape::Numbers => Builder::Numbers(Numbers::default()),
                Shape::Words => Builder::Words(WordsBuilder::default()),
                Shape::Lists => Builder::Lists(ListsBuilder::default()),
                Shape::Nowhere => return None,
            };
            Some((field, builder))
        };
        self.columns.clear();
        self.columns.extend(Field::ALL.iter().filter_map(new));
        (self.count, self.requests, self.bytes, self.open_row) = (0, 0, 0, 0);
        self.chunks.clear();
        self.open.clear();
        self.terms.clear();
        self.text.clear();
    }

    /// Adds an event, with the request that is kept of it.
    pub(crate) fn push(&mut self, event: &Event, request: &[u8], packer: &mut Packer) {
        let terms = &mut self.terms;
        for (field, column) in &mut self.columns {
            match column {
                Builder::Numbers(numbers) => numbers.0.push(fields::number(event, *field)),
                Builder::Words(words) => {
                    let word = fields::word(event, *field);
                    words.push(&word);
                    if *field == Field::Client {
                        address_terms(&word, |term| terms.set_term(term));
                    } else if *field == Field::Path {
                        path_terms(&word, |term| terms.set_term(term));
                    } else if !word.is_empty() && !fields::is_late(*field) {
                        terms.set_term(Term::of(*field, &word));
                    }
                }
                Builder::Lists(lists) => {
                    fields::list(event, *field, |text| {
                        lists.add(text);
                        terms.set_term(Term::of(*field, text));
                    });
                    lists.close();
                }
            }
        }
        self.json.clear();
        event.write_json_line(&mut self.json);
        self.json.pop();
        self.text.set_text(&self.json, &mut self.lower);
        let json = std::mem::take(&mut self.json);
        self.push_payload(&json, request, packer);
        self.json = json;
        self.requests = self.requests.saturating_add(event.count);
        self.count += 1;
    }

    fn push_payload(&mut self, json: &[u8], request: &[u8], packer: &mut Packer) {
        put_bytes(&mut self.open, json);
        put_bytes(&mut self.open, request);
        self.bytes += json.len() + request.len();
        if self.open.len() >= CHUNK_BYTES {
            self.close_chunk(self.count + 1, packer);
        }
    }

    fn close_chunk(&mut self, next_row: usize, packer: &mut Packer) {
        if !self.open.is_empty() {
            self.chunks.push((self.open_row, packer.pack(&self.open)));
            self.open.clear();
        }
        self.open_row = next_row;
    }

    /// Adds the events of another, behind its own.
    pub(crate) fn absorb(&mut self, other: &BlockBuilder, packer: &mut Packer) -> Result<(), Damaged> {
        for ((_, own), (_, theirs)) in self.columns.iter_mut().zip(&other.columns) {
            match (own, theirs) {
                (Builder::Numbers(own), Builder::Numbers(theirs)) => own.0.extend(&theirs.0),
                (Builder::Words(own), Builder::Words(theirs)) => own.extend(theirs),
                (Builder::Lists(own), Builder::Lists(theirs)) => own.extend(theirs),
                _ => {}
            }
        }
        self.terms.add(&other.terms);
        self.text.add(&other.text);
        let packed = other.chunks.iter().map(|(_, chunk)| unpack(chunk));
        for payloads in packed.chain([Ok(other.open.clone())]) {
            let payloads = payloads?;
            let mut reader = Reader(&payloads);
            while !reader.0.is_empty() {
                let (json, request) = (reader.bytes()?, reader.bytes()?);
                self.push_payload(json, request, packer);
                self.count += 1;
            }
        }
        Ok(())
    }

    /// The block as it is stored.
    pub(crate) fn encode(&mut self, packer: &mut Packer) -> Encoded {
        self.close_chunk(self.count, packer);
        let mut times = (u64::MAX, 0);
        let mut out = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (field, column) in &self.columns {
            out.clear();
            match column {
                Builder::Numbers(numbers) => {
                    if *field == Field::Time {
                        times = numbers.0.iter().fold(times, |(a, b), &time| (a.min(time), b.max(time)));
                    }
                    numbers.write(&mut out);
                }
                Builder::Words(words) => words.write(&mut out),
                Builder::Lists(lists) => lists.write(&mut out),
            }
            columns.push((*field, packer.pack(&out)));
        }
        Encoded {
            count: self.count,
            first_ms: times.0,
            last_ms: times.1,
            columns,
            terms: plain(&self.terms.write()),
            text: packer.pack(&self.text.write()),
            chunks: self.chunks.clone(),
        }
    }
}

/// A column as it is read.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Numbers(Numbers),
    Words(Words),
    Lists(Lists),
}

impl Column {
    /// The column of a field in a block of `count` events.
    pub(crate) fn read(field: Field, stored: &[u8], count: usize) -> Result<Column, Damaged> {
        let bytes = unpack(stored)?;
        match shape(field) {
            Shape::Numbers => Numbers::read(&bytes, count).map(Column::Numbers),
            Shape::Words => Words::read(&bytes, count).map(Column::Words),
            Shape::Lists => Lists::read(&bytes, count).map(Column::Lists),
            Shape::Nowhere => Err(Damaged),
        }
    }

    /// The number of a row; 0 in other columns.
    pub(crate) fn number(&self, row: usize) -> u64 {
        match self {
            Column::Numbers(numbers) => numbers.0.get(row).copied().unwrap_or(0),
            Column::Words(_) | Column::Lists(_) => 0,
        }
    }
}

/// JSON and request of the event at `index` of a chunk.
pub(crate) fn payload(chunk: &[u8], index: usize) -> Result<(Vec<u8>, Vec<u8>), Damaged> {
    let payloads = unpack(chunk)?;
    let mut reader = Reader(&payloads);
    for _ in 0..index {
        reader.bytes()?;
        reader.bytes()?;
    }
    Ok((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()))
}

/// Calls `visit` with the JSON of each event of a chunk.
pub(crate) fn payloads(chunk: &[u8], mut visit: impl FnMut(usize, &[u8])) -> Result<(), Damaged> {
    let payloads = unpack(chunk)?;
    let mut reader = Reader(&payloads);
    let mut index = 0;
    while !reader.0.is_empty() {
        visit(index, reader.bytes()?);
        reader.bytes()?;
        index += 1;
    }
    Ok(())
}
