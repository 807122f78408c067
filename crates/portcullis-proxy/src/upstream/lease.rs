//! A request's hold on an endpoint: it is counted there while it lasts, and its end is reported once.

use std::sync::Arc;
use std::time::Instant;

use portcullis_balance::{Grant, Permit};
use portcullis_event::UpstreamError;

use super::Group;
use super::report::Sent;

/// An endpoint that a request was sent to, or is about to be.
pub(crate) struct Lease<'g> {
    group: &'g Arc<Group>,
    pub(crate) endpoint: usize,
    /// None once the outcome was reported.
    permit: Option<Permit>,
    answered: bool,
}

impl<'g> Lease<'g> {
    pub(crate) fn new(group: &'g Arc<Group>, grant: Grant) -> Self {
        if let Some(state) = grant.breaker {
            group.report.breaker(grant.endpoint, state, "its time is up, probing");
        }
        Lease { group, endpoint: grant.endpoint, permit: Some(grant.permit), answered: false }
    }

    /// The head of an answer has come. Success is reported when all of it has, but for a breaker that waits
    /// for it: the answer may be a stream without end.
    pub(crate) fn answered(&mut self, status: u16) {
        // Not 500: a request can provoke that in a healthy application, and an attacker could turn endpoints
        // off.
        if matches!(status, 502..=504) {
            return self.report_failure(format_args!("answered {status}"));
        }
        self.answered = true;
        if self.permit.is_some_and(Permit::is_probe) {
            self.report_success();
        }
    }

    /// The endpoint let the request down.
    pub(crate) fn failed(&mut self, error: UpstreamError) {
        let words = || self.group.report.why_not_connected(self.endpoint);
        match (error == UpstreamError::Tls).then(words).flatten() {
            Some(words) => self.report_failure(format!("{}: {words}", error.name())),
            None => self.report_failure(error.name()),
        }
    }

    fn report_success(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        self.group.report.sent(self.endpoint, Sent::Answered);
        let changes = self.group.endpoints.succeeded(self.endpoint, permit);
        self.group.report.changes(self.endpoint, changes, "probes succeeded");
    }

    fn report_failure(&mut self, why: impl std::fmt::Display) {
        let Some(permit) = self.permit.take() else { return };
        self.group.report.sent(self.endpoint, Sent::Failed);
        let now = self.group.moment(Instant::now());
        let changes = self.group.endpoints.failed(self.endpoint, permit, now);
        self.group.report.failed(self.endpoint, &why);
        self.group.report.changes(self.endpoint, changes, why);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if self.answered {
            self.report_success();
        }
        if self.permit.is_some() {
            self.group.report.sent(self.endpoint, Sent::Abandoned);
        }
        self.group.endpoints.release(self.endpoint, self.permit.take());
        self.group.queue.freed();
    }
}
