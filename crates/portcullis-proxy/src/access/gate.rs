//! Who is let in by address.

use std::net::IpAddr;
use std::sync::Arc;

use portcullis_config::{Access as Settings, Clients, RefuseAction};
use portcullis_event::{Control, ControlKind};
use portcullis_match::IpSet;
use portcullis_metrics::{EnumCounters, Registry, catalogue};

use super::list::{ListFile, Lists};
use super::teller::Teller;
use super::{Denial, Noted};
use crate::StartError;

/// The lists of a route.
pub(crate) struct Gate {
    bypass: ClientSet,
    allow: ClientSet,
    deny: ClientSet,
    /// Who is refused because no list allows him.
    others: Option<Arc<str>>,
    blocks: bool,
    status: u16,
    teller: Teller,
    decisions: EnumCounters,
}

/// What the lists say of a client.
pub(crate) enum Listed {
    /// He is let in without inspection.
    Bypass,
    /// He is let in whatever else says otherwise.
    Allowed,
    /// Nothing.
    Nowhere,
    /// He is refused, or would be if this did not only log.
    Denied(Noted, Option<Denial>),
}

/// Label values of `portcullis_access_decisions_total`.
const DECISIONS: [&str; 4] = ["bypassed", "allowed", "denied", "logged"];

struct ClientSet {
    networks: Option<(Arc<str>, IpSet)>,
    files: Vec<(Arc<str>, Arc<ListFile>)>,
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
            teller: Teller::new(registry),
            decisions: registry.enum_counters(&catalogue::ACCESS_DECISIONS, &[site], &DECISIONS),
        })
    }

    pub(crate) fn look(&self, client: IpAddr, now: u64) -> Listed {
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
        let noted = Noted { control, reason, tell: self.teller.tells(now) };
        let denial = Denial { status: self.status, text: None, fields: Vec::new() };
        Listed::Denied(noted, self.blocks.then_some(denial))
    }
}

impl ClientSet {
    fn build(settings: &Clients, lists: &mut Lists<'_>) -> Result<ClientSet, StartError> {
        let networks = set_of(&settings.networks);
        let file = |path: &std::path::PathBuf| Ok((path.display().to_string().into(), lists.load(path)?));
        Ok(ClientSet {
            networks: (!networks.is_empty()).then(|| ("networks".into(), networks)),
            files: settings.files.iter().map(file).collect::<Result<_, StartError>>()?,
        })
    }

    /// What has the client, by name.
    fn find(&self, client: IpAddr) -> Option<&Arc<str>> {
        let networks = self.networks.iter().filter(|(_, set)| set.contains(client)).map(|(name, _)| name);
        let files = self.files.iter().filter(|(_, file)| file.contains(client)).map(|(name, _)| name);
        networks.chain(files).next()
    }
}

/// The networks of a document as a set.
pub(crate) fn set_of(networks: &[portcullis_config::Network]) -> IpSet {
    IpSet::of_networks(networks.iter().map(|network| (network.address(), network.prefix())))
}
