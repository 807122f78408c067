//! Lists of clients that are allowed, denied or not inspected.

use std::sync::Arc;

use portcullis_access::Code;
use portcullis_config::{Access as Settings, Clients, RefuseAction};
use portcullis_event::{Control, ControlKind};
use portcullis_match::IpSet;
use portcullis_metrics::{EnumCounters, Registry, catalogue};

use super::event_limit::EventLimit;
use super::list::{ListFile, Lists};
use super::{ControlDecision, Denial, Visitor};
use crate::StartError;

/// The lists of a route.
pub(crate) struct Gate {
    bypass: ClientSet,
    allow: ClientSet,
    deny: ClientSet,
    /// The name of the refusal of clients that no list allows.
    others: Option<Arc<str>>,
    blocks: bool,
    status: u16,
    events: EventLimit,
    decisions: EnumCounters,
}

/// The result of looking a client up in the lists.
pub(crate) enum Listed {
    /// The client is let in without inspection.
    Bypass,
    /// The client is let in, whatever else says otherwise.
    Allowed,
    /// Nothing.
    Nowhere,
    /// The client is refused, or would be if this did not only log.
    Denied(ControlDecision, Option<Denial>),
}

/// Label values of `portcullis_access_decisions_total`.
const DECISIONS: [&str; 4] = ["bypassed", "allowed", "denied", "logged"];

pub(super) struct ClientSet {
    networks: Option<(Arc<str>, IpSet)>,
    files: Vec<(Arc<str>, Arc<ListFile>)>,
    countries: Vec<(Arc<str>, Code)>,
    continents: Vec<(Arc<str>, Code)>,
    asns: Vec<(Arc<str>, u32)>,
}

impl Gate {
    pub(crate) fn build(
        registry: &Registry,
        site: &str,
        settings: &Settings,
        lists: &mut Lists<'_>,
    ) -> Result<Gate, StartError> {
        Ok(Gate {
            bypass: ClientSet::build(&settings.bypass, lists)?,
            allow: ClientSet::build(&settings.allow, lists)?,
            deny: ClientSet::build(&settings.deny, lists)?,
            others: settings.deny_others.then(|| "others".into()),
            blocks: settings.action == RefuseAction::Block,
            status: settings.status,
            events: EventLimit::new(registry),
            decisions: registry.enum_counters(&catalogue::ACCESS_DECISIONS, &[site], &DECISIONS),
        })
    }

    /// Requests at its site that were bypassed, allowed, denied, or would have been.
    pub(crate) fn counts(&self) -> [u64; 4] {
        std::array::from_fn(|decision| self.decisions.value(decision))
    }

    pub(crate) fn look(&self, client: Visitor, now: u64) -> Listed {
        if self.bypass.find(client).is_some() {
            self.decisions.inc(0);
            return Listed::Bypass;
        }
        if self.allow.find(client).is_some() {
            self.decisions.inc(1);
            return Listed::Allowed;
        }
        let (name, reason) = match (self.deny.find(client), &self.others) {
            (Some(name), _) => (name, format!("The client is denied by `{name}`")),
            (None, Some(name)) => (name, "The client is not in a list of allowed ones".to_string()),
            (None, None) => return Listed::Nowhere,
        };
        self.decisions.inc(if self.blocks { 2 } else { 3 });
        let control = Control { by: ControlKind::DenyList, name: Arc::clone(name) };
        let decision = ControlDecision { control, reason, in_event: self.events.admits(now) };
        let denial = Denial { status: self.status, text: None, fields: Vec::new() };
        Listed::Denied(decision, self.blocks.then_some(denial))
    }
}

impl ClientSet {
    pub(super) fn build(settings: &Clients, lists: &mut Lists<'_>) -> Result<ClientSet, StartError> {
        let networks = set_of(&settings.networks);
        let mut files = Vec::with_capacity(settings.files.len() + settings.lists.len());
        for path in &settings.files {
            files.push((path.display().to_string().into(), lists.load(path)?));
        }
        for name in &settings.lists {
            files.push((name.as_str().into(), lists.load_kept(name)?));
        }
        Ok(ClientSet {
            networks: (!networks.is_empty()).then(|| ("networks".into(), networks)),
            files,
            countries: named(&settings.countries, "country"),
            continents: named(&settings.continents, "continent"),
            asns: named(&settings.asns, "AS"),
        })
    }

    /// The name of the list that has the client.
    pub(super) fn find(&self, Visitor { address, place }: Visitor) -> Option<&Arc<str>> {
        let networks = self.networks.iter().filter(|(_, set)| set.contains(address)).map(|(name, _)| name);
        let files = self.files.iter().filter(|(_, file)| file.contains(address)).map(|(name, _)| name);
        networks
            .chain(files)
            .next()
            .or_else(|| one_of(&self.countries, place.country))
            .or_else(|| one_of(&self.continents, place.continent))
            .or_else(|| one_of(&self.asns, place.asn))
    }
}

/// Names for events of countries and the like.
fn named<T: Copy + std::fmt::Display>(some: &[T], what: &str) -> Vec<(Arc<str>, T)> {
    some.iter().map(|one| (format!("{what} {one}").into(), *one)).collect()
}

fn one_of<T: PartialEq>(some: &[(Arc<str>, T)], wanted: Option<T>) -> Option<&Arc<str>> {
    let wanted = wanted?;
    some.iter().find(|(_, one)| *one == wanted).map(|(name, _)| name)
}

/// The networks of a document as a set.
pub(crate) fn set_of(networks: &[portcullis_config::Network]) -> IpSet {
    IpSet::of_networks(networks.iter().map(|network| (network.address(), network.prefix())))
}
