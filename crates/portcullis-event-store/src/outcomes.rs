//! Outcomes of events that an earlier version stored without them.

use portcullis_event::{Action, Control, ControlKind, Event};
use portcullis_query::{Field, Outcome};

use crate::block::{Column, payloads};
use crate::codec::Damaged;
use crate::column::{Words, WordsBuilder};
use crate::segment::{BlockHead, Segment, SegmentError};

/// Those of a block: most are known from its other columns; what was only detected is looked up in the
/// events.
pub(crate) fn of_block(segment: &Segment, block: &BlockHead) -> Result<Words, SegmentError> {
    let columns = (segment.column(block, Field::Verdict)?, segment.column(block, Field::Control)?);
    let (Column::Words(verdicts), Column::Words(controls)) = columns else { return Err(Damaged.into()) };
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(block.count);
    let mut unknown = Vec::new();
    for row in 0..block.count {
        let action = Action::NAMES.iter().position(|name| *name == verdicts.get(row));
        let action = action.map_or(Action::Pass, |at| Action::ALL[at]);
        let outcome = Outcome::of_request(action, control(controls.get(row)).as_ref());
        if action == Action::Detect && outcome.is_none() {
            unknown.push(row);
        }
        outcomes.push(outcome);
    }
    if let (Some(first), Some(last)) = (unknown.first(), unknown.last()) {
        for (begin, chunk) in segment.chunks(block)? {
            let begin = begin.saturating_sub(block.first) as usize;
            // Chunks follow each other: one that begins behind the last has none of them.
            if begin > *last {
                break;
            }
            payloads(&chunk, |index, json| {
                let row = begin + index;
                if row >= *first && unknown.binary_search(&row).is_ok() {
                    let event: Option<Event> = serde_json::from_slice(json).ok();
                    outcomes[row] = event.and_then(|event| Outcome::of(&event));
                }
            })?;
        }
    }
    let mut words = WordsBuilder::default();
    outcomes.iter().for_each(|outcome| words.push(outcome.map_or("", Outcome::name)));
    let mut bytes = Vec::new();
    words.write(&mut bytes);
    Ok(Words::read(&bytes, block.count)?)
}

/// `ban:all`, as the column has it.
fn control(word: &str) -> Option<Control> {
    let (by, name) = word.split_once(':')?;
    let by = ControlKind::NAMES.iter().position(|known| *known == by)?;
    Some(Control { by: ControlKind::ALL[by], name: name.into() })
}
