//! Which events tell of agents that fail. One that is away fails every request, and must not push attacks out of the event queue.

use portcullis_event::{AgentOutcome, Event, ExceptionCause};

use super::Agent;

/// True if there is to be this event, of a request for which `failed`, if any, gave no decision.
pub(crate) fn is_told(failed: Option<&Agent>, event: &Event) -> bool {
    failed.is_none_or(|agent| !tells_of_failures_only(event) || agent.report.tells(agent.started.elapsed()))
}

fn tells_of_failures_only(event: &Event) -> bool {
    let is_failure = |outcome: AgentOutcome| match outcome {
        AgentOutcome::Allow | AgentOutcome::Block | AgentOutcome::Redirect => false,
        AgentOutcome::Failed | AgentOutcome::Timeout | AgentOutcome::CircuitOpen | AgentOutcome::Queue => {
            true
        }
    };
    event.matches.is_empty()
        && event.findings.is_empty()
        && event.refusal.is_none()
        && event.upstream_error.is_none()
        && event.exceptions.iter().all(|exception| exception.cause == ExceptionCause::AgentFailed)
        && event.agents.iter().all(|word| is_failure(word.outcome))
}
