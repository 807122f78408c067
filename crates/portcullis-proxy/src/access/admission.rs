//! The outcome of the controls of clients for one request.

use std::net::IpAddr;

use portcullis_access::Whereabouts;
use portcullis_event::Control;

/// A client that sends a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visitor {
    pub(crate) address: IpAddr,
    pub(crate) place: Whereabouts,
}

/// The outcome of the controls of clients.
#[derive(Default)]
pub(crate) struct Admission {
    /// Its consequence for the inspection.
    pub(crate) entry: Entry,
    /// The decision, for an event.
    pub(crate) decision: Option<ControlDecision>,
    /// The request is refused.
    pub(crate) denial: Option<Denial>,
}

/// The consequence of the controls for the inspection.
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
pub(crate) struct ControlDecision {
    pub(crate) control: Control,
    pub(crate) reason: String,
    /// There is to be an event. Of a flood only the beginning makes events; all of it is counted.
    pub(crate) in_event: bool,
}

/// The refusal of a request.
#[derive(Debug)]
pub(crate) struct Denial {
    pub(crate) status: u16,
    /// None: the block page.
    pub(crate) text: Option<&'static str>,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Admission {
    /// A control refuses the request, or would have.
    pub(crate) fn note(&mut self, decision: ControlDecision, denial: Option<Denial>) {
        if denial.is_some() {
            self.entry = Entry::Refused;
        }
        self.decision = Some(decision);
        self.denial = denial;
    }
}
