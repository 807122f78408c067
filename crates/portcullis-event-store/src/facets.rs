//! Counts of each value of a field among the events that pass a filter.

use std::time::Duration;

use hashbrown::HashMap;
use portcullis_query::{Field, Filter};

use crate::block::Column;
use crate::column::NONE;
use crate::fields::{Shape, shape};
use crate::query::{Look, QueryError, Store};
use crate::segment::{Segment, SegmentError};

/// Values of one field that are counted apart; events with further ones are counted together.
const VALUES_MAX: usize = 100_000;

/// The question.
#[derive(Clone, Copy, Debug)]
pub struct FacetRequest<'a> {
    /// Filter that events have to pass.
    pub filter: &'a Filter,
    /// The fields; those that [have facets](Facets::has).
    pub fields: &'a [Field],
    /// Values of each field, at most: the most frequent.
    pub top: usize,
    /// Longest time of looking.
    pub patience: Duration,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// Requests that the events stand for.
    pub total: u64,
    /// For each field that was asked for.
    pub fields: Vec<Facet>,
    /// False if the time ran out: only the newest events are counted.
    pub complete: bool,
    /// Segments that could not be read, and why.
    pub skipped: Vec<String>,
}

/// The values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facet {
    /// The field.
    pub field: Field,
    /// The most frequent values with the requests that have them, the most frequent first.
    pub values: Vec<(String, u64)>,
    /// Requests with other values.
    pub others: u64,
    /// Requests without a value.
    pub without: u64,
}

impl Facets {
    /// True for a field that has a column of values few enough to be counted: not for times, ids, durations,
    /// trials, locations and texts.
    pub fn has(field: Field) -> bool {
        use Field::{Count, Duration, Id, Location, Text, Time, Trial};
        !matches!(field, Time | Id | Duration | Count | Trial | Location | Text)
    }
}

/// The counts of a field, as they are gathered.
struct Gathering {
    field: Field,
    counts: HashMap<String, u64>,
    others: u64,
    without: u64,
}

impl Gathering {
    fn add(&mut self, value: &str, count: u64) {
        if let Some(known) = self.counts.get_mut(value) {
            *known = known.saturating_add(count);
        } else if self.counts.len() < VALUES_MAX {
            self.counts.insert(value.to_owned(), count);
        } else {
            self.others = self.others.saturating_add(count);
        }
    }

    fn row(&mut self, column: &Column, row: usize, count: u64) {
        match column {
            Column::Numbers(numbers) => match numbers.0.get(row) {
                Some(&number) if number != NONE => self.add(&number.to_string(), count),
                _ => self.without += count,
            },
            Column::Words(words) => match words.get(row) {
                "" => self.without += count,
                word => self.add(word, count),
            },
            Column::Lists(lists) => {
                let mut is_empty = true;
                for value in lists.get(row) {
                    is_empty = false;
                    self.add(value, count);
                }
                if is_empty {
                    self.without += count;
                }
            }
        }
    }

    fn finish(self, top: usize) -> Facet {
        let mut values: Vec<(String, u64)> = self.counts.into_iter().collect();
        values.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let rest = values.split_off(top.min(values.len()));
        let others = rest.iter().fold(self.others, |sum, (_, count)| sum.saturating_add(*count));
        Facet { field: self.field, values, others, without: self.without }
    }
}

impl Store {
    /// Counts the values of fields among the events that pass a filter, the newest first. An event with
    /// several values of a field counts for each. What is damaged is left out and named.
    pub fn facets(&self, request: &FacetRequest<'_>) -> Result<Facets, QueryError> {
        let look = Look::new(request.filter, request.patience);
        let fields = request.fields.iter().copied().filter(|field| shape(*field) != Shape::Nowhere);
        let gathering = |field| Gathering { field, counts: HashMap::new(), others: 0, without: 0 };
        let mut gathered: Vec<Gathering> = fields.map(gathering).collect();
        let mut facets = Facets { complete: true, ..Facets::default() };
        let segments = self.folder_of_segments().segments().map_err(QueryError::Folder)?;
        for file in segments.iter().rev() {
            let counted = Segment::open(&file.path)
                .and_then(|segment| count(&segment, &look, &mut gathered, &mut facets));
            match counted {
                Ok(true) => {}
                Ok(false) => break,
                // Dropped since the folder was listed.
                Err(_) if !file.path.exists() => {}
                Err(error) => facets.skipped.push(format!("{}: {error}", file.path.display())),
            }
        }
        facets.fields = gathered.into_iter().map(|gathering| gathering.finish(request.top)).collect();
        Ok(facets)
    }
}

/// Counts the events of a segment. False if the time is over.
fn count(
    segment: &Segment,
    look: &Look<'_>,
    gathered: &mut [Gathering],
    facets: &mut Facets,
) -> Result<bool, SegmentError> {
    for head in segment.blocks(u64::MAX, look.times)? {
        if look.is_over() {
            facets.complete = false;
            return Ok(false);
        }
        let Some(rows) = look.rows(segment, &head)? else { continue };
        let counts = segment.column(&head, Field::Count)?;
        // All columns are read before anything is counted: a block that is damaged counts not at all.
        let columns = gathered.iter().map(|gathering| segment.column(&head, gathering.field));
        let columns = columns.collect::<Result<Vec<Column>, _>>()?;
        for row in rows.iter() {
            let count = counts.number(row);
            facets.total = facets.total.saturating_add(count);
            for (gathering, column) in gathered.iter_mut().zip(&columns) {
                gathering.row(column, row, count);
            }
        }
    }
    Ok(true)
}
