//! Whether a client may ask at all: looked at before anything is inspected, with the address and the head of the request.

mod admission;
mod ban;
mod ban_file;
mod controls;
mod echo;
mod gate;
mod geo;
mod keys;
mod limit;
mod list;
mod shared;
mod teller;
mod watched;

use std::sync::Arc;

use portcullis_http::message::RequestHead;
use portcullis_inspect::Charge;

use gate::Listed;

pub(crate) use admission::{Admission, Denial, Entry, Noted, Visitor};
pub(crate) use ban::{Deed, Jail, Jails};
pub(crate) use ban_file::BanFile;
pub(crate) use controls::{Controls, ControlsBuilder};
pub(crate) use echo::is_echo;
pub(crate) use gate::Gate;
pub(crate) use geo::Geo;
pub(crate) use limit::Limit;
pub(crate) use list::check_lists;
pub(crate) use list::{ListFiles, Lists};
pub(crate) use shared::LimitLink;
pub(crate) use teller::Teller;

/// What a route asks of its clients.
#[derive(Default)]
pub(crate) struct Access {
    /// Who is let in by address.
    pub(crate) gate: Option<Gate>,
    /// Who is refused for what he did before.
    pub(crate) jail: Option<Jail>,
    /// Those of the site, then its own.
    pub(crate) limits: Vec<Arc<Limit>>,
}

impl Access {
    /// Looks at a request that came at `now`, in nanoseconds of the process.
    pub(crate) fn admit(&self, client: Visitor, head: &RequestHead, now: u64) -> Admission {
        let mut admission = Admission::default();
        match self.gate.as_ref().map_or(Listed::Nowhere, |gate| gate.look(client, now)) {
            Listed::Bypass => return Admission { entry: Entry::Bypassed, ..admission },
            Listed::Denied(noted, denial) => admission.note(noted, denial),
            Listed::Allowed | Listed::Nowhere => {}
        }
        if admission.denial.is_some() {
            return admission;
        }
        if let Some((noted, denial)) = self.jail.as_ref().and_then(|jail| jail.look(client.address, now)) {
            admission.note(noted, denial);
            if admission.denial.is_some() {
                return admission;
            }
        }
        for limit in &self.limits {
            let Some((noted, denial)) = limit.check(client, head, None, now) else { continue };
            admission.note(noted, denial);
            if admission.denial.is_some() {
                break;
            }
        }
        admission
    }

    /// Counts what rules want to be counted (`ctl:rateLimit`). What an event is to say, and how the request is answered if it comes too
    /// early.
    pub(crate) fn charge(
        &self,
        client: Visitor,
        head: &RequestHead,
        charges: Vec<Charge>,
        now: u64,
    ) -> Option<(Noted, Option<Denial>)> {
        let (mut last, mut refused) = (None, None);
        for charge in charges {
            for limit in self.limits.iter().filter(|limit| *limit.name() == *charge.limit) {
                let Some((noted, denial)) = limit.check(client, head, Some(&charge.key), now) else {
                    continue;
                };
                last = Some(noted);
                refused = refused.or(denial);
            }
        }
        last.map(|noted| (noted, refused))
    }
}
