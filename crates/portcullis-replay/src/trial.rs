//! Verdicts on many requests by one policy.

use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_event::{Action, Event, Redactor, Verdict};
use portcullis_inspect::{Inspector, PolicyNames, Scratch};
use portcullis_store::Store;

use crate::run::{Run, connection, parse};

/// A policy that is asked about requests which nobody sent. Nothing that one request leaves behind is seen
/// by the next.
#[derive(Debug)]
pub struct Trial {
    policy: Arc<Inspector>,
    names: PolicyNames,
    scratch: Option<Scratch>,
}

/// The result of one request.
#[derive(Debug)]
pub struct Tried {
    /// It would not get to the application, if the policy is enforced.
    pub stopped: bool,
    /// The findings, if there are any.
    pub event: Option<Box<Event>>,
}

impl Trial {
    /// Of this policy.
    pub fn new(policy: Arc<Inspector>) -> Trial {
        let names = PolicyNames { site: "trial".into(), route: "/".into(), generation: 0 };
        Trial { policy, names, scratch: None }
    }

    /// The verdict on a request.
    pub fn ask(&mut self, request: &[u8], client: SocketAddr, epoch_millis: u64) -> Tried {
        let policy = self.policy.aside(Arc::new(Redactor::none()), Arc::new(Store::default()));
        let scratch = self.scratch.take().unwrap_or_default();
        let mut inspection =
            Arc::new(policy).begin(&self.names, connection(client, epoch_millis, 0), scratch);
        // Of a rule that is only reported, nothing says that it would have stopped the request.
        inspection.enforce();
        let mut run = Run::new(inspection, &[]);
        let (head, refusal) = parse(request);
        run.phases(&head, refusal, request.get(head.received_len()..).unwrap_or_default());
        let refused = refusal.is_some() || run.refuses_body;
        let is_enforced = run.inspection.is_blocking();
        let report = run.inspection.finish(&Default::default());
        self.scratch = Some(report.scratch);
        // Where a rule has switched that off, what the detector decided is reported all the same.
        let decided = |event: &Event| {
            let Verdict { action, rule_id, class, .. } = &event.verdict;
            *action == Action::Detect && (rule_id.is_some() || class.is_some())
        };
        let would = !is_enforced && report.event.as_deref().is_some_and(decided);
        let stops = matches!(report.action, Action::Deny | Action::Drop | Action::Redirect);
        Tried { stopped: refused || stops || would, event: report.event }
    }
}
