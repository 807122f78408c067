//! Events over time, counted by the database.

use portcullis_event_store::{Histogram, HistogramRequest, QueryError, Steps};
use portcullis_query::Field;
use serde::Deserialize;

use crate::answer::{number, rows};
use crate::condition::column;
use crate::source::Database;

/// The times of the events that pass.
#[derive(Deserialize)]
struct Edges {
    #[serde(deserialize_with = "number")]
    first: u64,
    #[serde(deserialize_with = "number")]
    last: u64,
    #[serde(deserialize_with = "number")]
    events: u64,
}

/// Requests of a step with an outcome.
#[derive(Deserialize)]
struct Counted {
    #[serde(deserialize_with = "number")]
    t: u64,
    o: String,
    #[serde(deserialize_with = "number")]
    n: u64,
}

impl Database {
    /// The steps of one question, in two statements: where the events are, and how many are in each step.
    /// Rows that are the same count once (`FINAL`).
    pub(crate) fn over_time(&self, request: &HistogramRequest<'_>) -> Result<Histogram, QueryError> {
        let deadline = self.link.deadline(request.patience);
        let time = column(Field::Time);
        let statement = format!(
            "SELECT toString(min({time})) AS first, toString(max({time})) AS last, toString(count()) AS events {}",
            self.rows_of(request.filter, false, None)
        );
        let found: Vec<Edges> = rows(&self.link.ask(&statement, "", deadline)?)?;
        let mut steps = Steps::new(request);
        let Some(edges) = found.first().filter(|edges| edges.events > 0) else {
            return Ok(steps.finish(true, Vec::new()));
        };
        steps.reach(edges.first);
        steps.reach(edges.last);
        let length = steps.length_ms();
        // Rows that are inserted between the statements may be beyond the edges: the next question has them.
        let within = format!("{time} >= {} AND {time} <= {}", edges.first, edges.last);
        let statement = format!(
            "SELECT toString(intDiv({time}, {length}) * {length}) AS t, {} AS o, \
             toString(sum(count)) AS n {} GROUP BY t, o",
            column(Field::Outcome),
            self.rows_of(request.filter, true, Some(within))
        );
        let counted: Vec<Counted> = rows(&self.link.ask(&statement, "", deadline)?)?;
        counted.iter().for_each(|step| steps.add(step.t, &step.o, step.n));
        Ok(steps.finish(true, Vec::new()))
    }
}
