//! Controls of clients, applied before anything is inspected: address lists, bans, rate limits.

mod admission;
mod ban;
mod ban_file;
mod controls;
mod echo;
mod event_limit;
mod gate;
mod geo;
mod keys;
mod limit;
mod list;
mod shared;
mod watched;

use std::sync::Arc;

use portcullis_http::message::RequestHead;
use portcullis_inspect::Charge;

use gate::Listed;

pub(crate) use admission::{Admission, ControlDecision, Denial, Entry, Visitor};
pub(crate) use ban::{Conduct, Jail, Jails};
pub(crate) use ban_file::BanFile;
pub(crate) use controls::{Controls, ControlsBuilder};
pub(crate) use echo::{Address, Sight};
pub(crate) use event_limit::EventLimit;
pub(crate) use gate::Gate;
pub(crate) use geo::Geo;
pub(crate) use limit::Limit;
pub(crate) use list::check_lists;
pub(crate) use list::{ListFiles, Lists};
pub(crate) use shared::LimitLink;

/// The controls of a route.
pub(crate) struct Access {
    /// Address lists.
    pub(crate) gate: Option<Gate>,
    /// Bans.
    pub(crate) jail: Jail,
    /// Those of the site, then its own.
    pub(crate) limits: Vec<Arc<Limit>>,
}

impl Access {
    /// Looks at a request that came at `now`, in nanoseconds of the process.
    pub(crate) fn admit(&self, client: Visitor, head: &RequestHead, now: u64) -> Admission {
        let mut admission = Admission::default();
        match self.gate.as_ref().map_or(Listed::Nowhere, |gate| gate.look(client, now)) {
            Listed::Bypass => return Admission { entry: Entry::Bypassed, ..admission },
            Listed::Denied(decision, denial) => admission.note(decision, denial),
            Listed::Allowed | Listed::Nowhere => {}
        }
        if admission.denial.is_some() {
            return admission;
        }
        if let Some((decision, denial)) = self.jail.look(client.address, now) {
            admission.note(decision, denial);
            if admission.denial.is_some() {
                return admission;
            }
        }
        for limit in &self.limits {
            let Some((decision, denial)) = limit.check(client, head, None, now) else { continue };
            admission.note(decision, denial);
            if admission.denial.is_some() {
                break;
            }
        }
        admission
    }

    /// Counts what rules want to be counted (`ctl:rateLimit`). What an event is to say, and how the request
    /// is answered if it comes too early.
    pub(crate) fn charge(
        &self,
        client: Visitor,
        head: &RequestHead,
        charges: Vec<Charge>,
        now: u64,
    ) -> Option<(ControlDecision, Option<Denial>)> {
        let (mut last, mut refused) = (None, None);
        for charge in charges {
            for limit in self.limits.iter().filter(|limit| *limit.name() == *charge.limit) {
                let Some((decision, denial)) = limit.check(client, head, Some(&charge.key), now) else {
                    continue;
                };
                last = Some(decision);
                refused = refused.or(denial);
            }
        }
        last.map(|decision| (decision, refused))
    }
}
