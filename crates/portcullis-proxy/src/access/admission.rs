//! What came of looking at a client before its request is inspected.

use std::net::IpAddr;

use portcullis_access::Whereabouts;
use portcullis_event::Control;

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
