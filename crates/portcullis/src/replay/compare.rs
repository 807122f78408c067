//! Two documents, or a document and what was recorded, on the same requests.

use std::time::Instant;

use super::requests::{Recorded, Request};
use super::side::{Side, Verdict};
use crate::outcome::Failure;

/// How a request would be decided otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was stopped and would pass.
    Lost,
    /// It passed and would be stopped.
    New,
    /// It would be stopped; there is nothing to compare with.
    Stopped,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::Lost => "lost",
            Change::New => "new",
            Change::Stopped => "stopped",
        }
    }
}

/// What became of the requests.
#[derive(Debug, Default)]
pub struct Counts {
    pub requests: usize,
    pub stopped: usize,
    pub lost: usize,
    pub new: usize,
    pub not_inspected: usize,
    pub incomplete: usize,
    /// Requests for which there was no time.
    pub untried: usize,
}

/// Tries each request until `deadline`, and tells those that change, with the reason why they were or would
/// be stopped. Without `before` it is what was recorded.
pub fn compare(
    requests: &[Request],
    after: &mut Side,
    mut before: Option<&mut Side>,
    deadline: Option<Instant>,
    tell: &mut dyn FnMut(Change, &Request, &str),
) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    for (at, request) in requests.iter().enumerate() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            counts.untried = requests.len() - at;
            break;
        }
        counts.requests += 1;
        counts.incomplete += usize::from(request.omitted > 0);
        let now = after.verdict(request)?;
        let then = match &mut before {
            Some(side) => Some(side.verdict(request)?),
            None => request.recorded.map(|recorded| match recorded {
                Recorded::Stopped => Verdict::Stopped("recorded".to_owned()),
                Recorded::Passed => Verdict::Passed,
            }),
        };
        counts.stopped += usize::from(now.is_stopped());
        counts.not_inspected += usize::from(matches!(now, Verdict::NotInspected));
        match (then.as_ref().map(Verdict::is_stopped), now.is_stopped()) {
            (Some(true), false) => {
                counts.lost += 1;
                tell(Change::Lost, request, then.as_ref().map_or("", Verdict::reason));
            }
            (Some(false), true) => {
                counts.new += 1;
                tell(Change::New, request, now.reason());
            }
            (None, true) => tell(Change::Stopped, request, now.reason()),
            _ => {}
        }
    }
    Ok(counts)
}
