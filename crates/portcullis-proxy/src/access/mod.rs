//! Whether a client may ask at all: looked at before anything is inspected, with the address and the head of the request.

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

use std::net::IpAddr;
use std::sync::Arc;

use portcullis_access::Whereabouts;
use portcullis_event::Control;
use portcullis_http::message::RequestHead;
use portcullis_inspect::Charge;

use gate::Listed;

pub use ban::{BanList, Banned};
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

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    pub(crate) address: IpAddr,
    pub(crate) place: Whereabouts,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Admission {
    /// What that means for the inspection.
    pub(crate) entry: Entry,
    /// What an event is to say.
    pub(crate) noted: Option<Noted>,
    /// The request is refused.
    pub(crate) denial: Option<Denial>,
}

/// Whether a request is inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is, if its route has it inspected.
    #[default]
    Inspected,
    /// It is not: the client is trusted.
    Bypassed,
    /// It is not: the client is refused.
    Refused,
}

/// A control that refused a request, or would have.
pub(crate) struct Noted {
    pub(crate) control: Control,
    pub(crate) reason: String,
    /// There is to be an event. Of a flood only the beginning makes events; all of it is counted.
    pub(crate) tell: bool,
}

/// How a request is refused.
#[derive(Debug)]
pub(crate) struct Denial {
    pub(crate) status: u16,
    /// None: the block page.
    pub(crate) text: Option<&'static str>,
    pub(crate) fields: Vec<(&'static str, String)>,
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

impl Admission {
    /// A control refuses the request, or would have.
    pub(crate) fn note(&mut self, noted: Noted, denial: Option<Denial>) {
        if denial.is_some() {
            self.entry = Entry::Refused;
        }
        self.noted = Some(noted);
        self.denial = denial;
    }
}
