//! The fields that filters ask for, as columns hold them.

use std::borrow::Cow;

use portcullis_event::Event;
use portcullis_query::{Field, Read};

use crate::column::NONE;

/// Storage of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One number for each event.
    Numbers,
    /// One text for each event.
    Words,
    /// Several texts for each event.
    Lists,
    /// In the event alone.
    Nowhere,
}

pub(crate) fn shape(field: Field) -> Shape {
    match field.read() {
        Read::Number(_) => Shape::Numbers,
        Read::Word(_) => Shape::Words,
        // They are seldom asked for; without a column of theirs, segments of earlier versions are asked, too.
        Read::List(_) if matches!(field, Field::Trial | Field::Location) => Shape::Nowhere,
        Read::List(_) => Shape::Lists,
        Read::Json => Shape::Nowhere,
    }
}

/// True for a field whose column segments of earlier versions do not have: no index speaks of it.
pub(crate) fn is_late(field: Field) -> bool {
    field == Field::Outcome
}

/// The number of an event; [`NONE`] if it has none.
pub(crate) fn number(event: &Event, field: Field) -> u64 {
    field.number(event).unwrap_or(NONE)
}

/// The text of an event; empty if it has none.
pub(crate) fn word(event: &Event, field: Field) -> Cow<'_, str> {
    field.word(event)
}

/// Calls `add` with each text of a field that has several.
pub(crate) fn list(event: &Event, field: Field, add: impl FnMut(&str)) {
    field.list(event, add);
}
