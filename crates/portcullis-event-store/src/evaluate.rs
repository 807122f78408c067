//! A filter over a block: the rows that pass.

use std::net::IpAddr;

use portcullis_query::{Comparison, Field, Filter, Kind, Operator, Read, Value, location};

use crate::block::{Column, payloads};
use crate::column::NONE;
use crate::fields::{Shape, shape};
use crate::marks::{PLACES, TRIALS, json_piece};
use crate::rows::Rows;
use crate::segment::{BlockHead, Segment, SegmentError};

/// The rows of a block that pass. A conjunction stops as soon as no row is left, so that texts are looked for
/// where all else fits.
pub(crate) fn rows(segment: &Segment, block: &BlockHead, filter: &Filter) -> Result<Rows, SegmentError> {
    match filter {
        Filter::Is(comparison) => compare(segment, block, comparison, None),
        Filter::Not(inner) => Ok(rows(segment, block, inner)?.inverted()),
        Filter::Any(parts) => {
            let mut any = Rows::none(block.count);
            for part in parts {
                any.add(&rows(segment, block, part)?);
            }
            Ok(any)
        }
        Filter::All(parts) => {
            let mut all = Rows::all(block.count);
            let in_json = |part: &&Filter| match part {
                Filter::Is(comparison) => shape(comparison.field) == Shape::Nowhere,
                Filter::All(_) | Filter::Any(_) | Filter::Not(_) => false,
            };
            for part in parts.iter().filter(|part| !in_json(part)) {
                all.retain(&rows(segment, block, part)?);
                if all.is_empty() {
                    return Ok(all);
                }
            }
            for part in parts.iter().filter(in_json) {
                if let Filter::Is(comparison) = part {
                    let found = compare(segment, block, comparison, Some(&all))?;
                    all.retain(&found);
                }
                if all.is_empty() {
                    return Ok(all);
                }
            }
            Ok(all)
        }
    }
}

fn compare(
    segment: &Segment,
    block: &BlockHead,
    comparison: &Comparison,
    among: Option<&Rows>,
) -> Result<Rows, SegmentError> {
    match (shape(comparison.field), comparison.field.read()) {
        (Shape::Nowhere, Read::List(_)) => {
            let found = members(segment, block, comparison, among)?;
            return Ok(signed(found, comparison));
        }
        (Shape::Nowhere, _) => return texts(segment, block, comparison, among),
        (Shape::Numbers | Shape::Words | Shape::Lists, _) => {}
    }
    let column = segment.column(block, comparison.field)?;
    let found = match &column {
        Column::Numbers(numbers) => {
            Rows::of(block.count, |row| numbers.0[row] != NONE && number(comparison, numbers.0[row]))
        }
        Column::Words(words) => {
            let test = word_test(comparison);
            words.rows(test)
        }
        Column::Lists(lists) if comparison.field.kind() == Kind::Number => {
            lists.rows(|text| text.parse().is_ok_and(|id| number(comparison, id)))
        }
        Column::Lists(lists) => lists.rows(word_test(comparison)),
    };
    Ok(signed(found, comparison))
}

/// `!=` is answered as `=`, and turned around here.
fn signed(found: Rows, comparison: &Comparison) -> Rows {
    match comparison.operator == Operator::NotEqual {
        true => found.inverted(),
        false => found,
    }
}

fn number(comparison: &Comparison, number: u64) -> bool {
    comparison.values.iter().any(|value| {
        let value = match value {
            Value::Number(number) => *number,
            Value::Time(time) => time.epoch_millis(),
            Value::Text(_) | Value::Network(_) => return false,
        };
        match comparison.operator {
            Operator::Equal | Operator::NotEqual | Operator::In => number == value,
            Operator::Less => number < value,
            Operator::LessOrEqual => number <= value,
            Operator::Greater => number > value,
            Operator::GreaterOrEqual => number >= value,
            Operator::Prefix | Operator::Contains => false,
        }
    })
}

fn word_test(comparison: &Comparison) -> impl FnMut(&str) -> bool + '_ {
    let exact = comparison.is_exact();
    let fold = move |text: &str| if exact { text.to_owned() } else { text.to_ascii_lowercase() };
    let wanted: Vec<String> = comparison
        .values
        .iter()
        .filter_map(|value| match value {
            Value::Text(text) => Some(fold(text)),
            Value::Number(_) | Value::Time(_) | Value::Network(_) => None,
        })
        .collect();
    let networks: Vec<_> = comparison
        .values
        .iter()
        .filter_map(|value| match value {
            Value::Network(network) => Some(*network),
            Value::Number(_) | Value::Time(_) | Value::Text(_) => None,
        })
        .collect();
    move |text| {
        if !networks.is_empty() {
            let address = text.parse::<IpAddr>();
            return address.is_ok_and(|address| networks.iter().any(|network| network.contains(address)));
        }
        let text = fold(text);
        wanted.iter().any(|wanted| match comparison.operator {
            Operator::Prefix => text.starts_with(wanted.as_str()),
            Operator::Contains => text.contains(wanted.as_str()),
            Operator::Equal
            | Operator::NotEqual
            | Operator::In
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => text == *wanted,
        })
    }
}

/// Events whose JSON contains a text, without regard to case.
fn texts(
    segment: &Segment,
    block: &BlockHead,
    comparison: &Comparison,
    among: Option<&Rows>,
) -> Result<Rows, SegmentError> {
    let [Value::Text(text)] = &*comparison.values else { return Ok(Rows::none(block.count)) };
    let piece = json_piece(text);
    let finder = memchr::memmem::Finder::new(&piece);
    by_json(segment, block, among, |json| finder.find(&json.to_ascii_lowercase()).is_some())
}

/// Events with a trial or a location that passes.
fn members(
    segment: &Segment,
    block: &BlockHead,
    comparison: &Comparison,
    among: Option<&Rows>,
) -> Result<Rows, SegmentError> {
    let is_of_trials = comparison.field == Field::Trial;
    let finder = memchr::memmem::Finder::new(if is_of_trials { TRIALS } else { PLACES });
    let mut test = word_test(comparison);
    by_json(segment, block, among, |json| {
        if finder.find(json).is_none() {
            return false;
        }
        let event: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
        if is_of_trials {
            return listed(&event["trials"]).filter_map(|id| id.as_str()).any(&mut test);
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let mut values = listed(&event["findings"]).chain(listed(&event["scores"]["semantic"]));
        values.any(|value| test(&location(&text(&value["place"]), &text(&value["name"]))))
    })
}

fn listed(list: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    list.as_array().into_iter().flatten()
}

/// Events whose JSON passes, of those that are asked for.
fn by_json(
    segment: &Segment,
    block: &BlockHead,
    among: Option<&Rows>,
    mut test: impl FnMut(&[u8]) -> bool,
) -> Result<Rows, SegmentError> {
    let mut found = Rows::none(block.count);
    for (first, chunk) in segment.chunks(block)? {
        let row = (first - block.first) as usize;
        let mut hits = Vec::new();
        payloads(&chunk, |index, json| {
            let is_candidate = among.is_none_or(|among| among.contains(row + index));
            if is_candidate && test(json) {
                hits.push(row + index);
            }
        })?;
        hits.into_iter().for_each(|row| found.insert(row));
    }
    Ok(found)
}
