//! The limit on events about agents that fail: one that is away fails every request, and must not push
//! attacks out of the event queue.

use portcullis_event::{AgentOutcome, Event, ExceptionCause};

use super::Agent;

/// True if this event is kept; `failed` is the agent, if any, that gave no decision.
pub(crate) fn is_kept(failed: Option<&Agent>, event: &Event) -> bool {
    failed.is_none_or(|agent| {
        !is_about_failures_only(event) || agent.report.admits_event(agent.started.elapsed())
    })
}

fn is_about_failures_only(event: &Event) -> bool {
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
