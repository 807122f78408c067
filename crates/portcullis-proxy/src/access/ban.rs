//! Bans: clients that are refused for what they did before, and what adds points to that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis_access::{Ban, BanPolicy, Bans};
use portcullis_config::{Ban as Settings, Points, Prefixes, RefuseAction};
use portcullis_event::{Action, Control, ControlKind};
use portcullis_match::IpSet;
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use super::echo::{Address, Echoes, Sight};
use super::event_limit::EventLimit;
use super::gate::set_of;
use super::{ControlDecision, Denial};

/// The bans of all sites and routes, by their names.
pub(crate) type Jails = BTreeMap<Arc<str>, Arc<BanTable>>;

/// The bans that sites and routes share, kept over reloads.
pub(crate) struct BanTable {
    pub(crate) bans: Bans,
    clients_max: usize,
    prefixes: Prefixes,
    /// Clients that it never refuses; none if it refuses nobody, but logs.
    refuses_but: Mutex<Option<IpSet>>,
    echoes: Echoes,
    /// Lines for the operator.
    lines: EventLimit,
    begun: Counter,
    lifted: Counter,
    evicted: Counter,
    banned: Gauge,
}

/// Of bans by hand alone.
pub(crate) const NO_POINTS: Points =
    Points { blocked: 0, detected: 0, refused: 0, limited: 0, anomaly: false };

/// The bans of a route.
pub(crate) struct Jail {
    settings: Settings,
    policy: BanPolicy,
    table: Arc<BanTable>,
    except: IpSet,
    control: Control,
    events: EventLimit,
    requests: Counter,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// The outcome of a request, as far as it counts towards a ban.
pub(crate) struct Conduct<'r> {
    pub(crate) action: Action,
    /// The rules or the semantic detector decided, and not a limit or a fault in our code.
    pub(crate) is_verdict: bool,
    /// The control that refused the client, or would have.
    pub(crate) control: Option<ControlKind>,
    /// The inbound anomaly score.
    pub(crate) anomaly: i64,
    /// The place of an attack.
    pub(crate) sight: Option<Sight<'r>>,
}

impl Jail {
    /// `known` has those of this generation so far, `old` those of the one before.
    pub(crate) fn build(
        registry: &Registry,
        settings: &Settings,
        known: &mut Jails,
        old: Option<&Jails>,
        say: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Jail {
        let name: Arc<str> = settings.name.as_str().into();
        let fits = |table: &&Arc<BanTable>| {
            table.clients_max == settings.clients_max && table.prefixes == settings.prefixes
        };
        let table = known.entry(Arc::clone(&name)).or_insert_with(|| {
            let kept = old.and_then(|old| old.get(&name)).filter(fits);
            kept.map_or_else(|| Arc::new(BanTable::new(registry, settings)), Arc::clone)
        });
        let except = set_of(&settings.except);
        let (action, refuses_but) = match settings.action {
            RefuseAction::Block => ("block", Some(except.clone())),
            RefuseAction::Log => ("log", None),
        };
        *table.refuses_but.lock().unwrap_or_else(PoisonError::into_inner) = refuses_but;
        let Settings { score, window, duration, duration_max, memory, .. } = *settings;
        Jail {
            policy: BanPolicy::new(score, window, duration, duration_max, memory),
            table: Arc::clone(table),
            except,
            events: EventLimit::new(registry),
            requests: registry.counter(&catalogue::BAN_REQUESTS, &[&name, action]),
            control: Control { by: ControlKind::Ban, name },
            say: Arc::clone(say),
            settings: settings.clone(),
        }
    }

    /// The decision, and the refusal of the request, if its client is banned.
    pub(crate) fn look(&self, client: IpAddr, now: u64) -> Option<(ControlDecision, Option<Denial>)> {
        let left = self.table.bans.left(self.settings.prefixes.network(client), now)?;
        if self.except.contains(client) {
            return None;
        }
        self.requests.inc();
        let decision = ControlDecision {
            control: self.control.clone(),
            reason: format!("The client is banned for another {} s", left.as_secs() + 1),
            in_event: self.events.admits(now),
        };
        let status = self.settings.status;
        let blocks = self.settings.action == RefuseAction::Block;
        Some((decision, blocks.then(|| Denial { status, text: None, fields: Vec::new() })))
    }

    /// True if what clients do may ban them.
    pub(crate) fn counts(&self) -> bool {
        self.settings.points != NO_POINTS
    }

    /// Something was found in a request for an address. What it comes to is known at its end only, but a
    /// browser asks for the parts of a page before all of it is there.
    pub(crate) fn note(&self, client: IpAddr, address: Address<'_>, now: u64) {
        self.table.echoes.page(self.settings.prefixes.network(client), address, 0, now);
    }

    /// Takes note of what a client did.
    pub(crate) fn judge(&self, client: IpAddr, conduct: &Conduct<'_>, now: u64) {
        let points = self.points(conduct);
        // Points of a control are not for what was found.
        let sight = conduct.sight.filter(|_| conduct.is_verdict || conduct.control.is_none());
        if points == 0 && sight.is_none() || self.except.contains(client) {
            return;
        }
        let client_network = self.settings.prefixes.network(client);
        let points = match sight {
            None => points,
            Some(Sight::Page(address)) => {
                self.table.echoes.page(client_network, address, points, now);
                points
            }
            Some(Sight::Echo(address)) => self.table.echoes.repeat(client_network, address, points, now),
        };
        let offence = self.table.bans.offend(&self.policy, client_network, points, now);
        if offence.evicted {
            self.table.evicted.inc();
        }
        let Some(time) = offence.banned else { return };
        self.table.begun.inc();
        if self.table.lines.admits(now) {
            let (name, seconds) = (&self.control.name, time.as_secs());
            let shown = self.settings.prefixes.show(client);
            let again = match offence.count {
                1 => String::new(),
                count => format!(", {count} times in a row"),
            };
            let logged = if self.settings.action == RefuseAction::Log { " (only logged)" } else { "" };
            (self.say)(&format!("ban `{name}`: {shown} for {seconds} s{again}{logged}"));
        }
    }

    fn points(&self, conduct: &Conduct<'_>) -> u32 {
        let points = &self.settings.points;
        let of_verdict = match (conduct.control, conduct.action) {
            // A client that is refused already gets no more points for it.
            (Some(ControlKind::DenyList | ControlKind::Ban | ControlKind::Overload), _)
                if !conduct.is_verdict =>
            {
                return 0;
            }
            (Some(ControlKind::RateLimit), _) if !conduct.is_verdict => points.limited,
            (_, Action::Refuse) => points.refused,
            (_, Action::Deny | Action::Redirect | Action::Drop) if conduct.is_verdict => points.blocked,
            (_, Action::Detect) => points.detected,
            _ => 0,
        };
        let anomaly = if points.anomaly { conduct.anomaly.clamp(0, i64::from(u16::MAX)) as u32 } else { 0 };
        of_verdict.saturating_add(anomaly)
    }
}

impl BanTable {
    fn new(registry: &Registry, settings: &Settings) -> BanTable {
        let name = &settings.name;
        BanTable {
            bans: Bans::new(settings.clients_max),
            clients_max: settings.clients_max,
            prefixes: settings.prefixes,
            refuses_but: Mutex::new(None),
            echoes: Echoes::new(settings.clients_max),
            lines: EventLimit::new(registry),
            begun: registry.counter(&catalogue::BANS, &[name]),
            lifted: registry.counter(&catalogue::BANS_LIFTED, &[name]),
            evicted: registry.counter(&catalogue::BAN_EVICTED, &[name]),
            banned: registry.gauge(&catalogue::BANNED_CLIENTS, &[name]),
        }
    }

    /// Brings the gauge up to date.
    pub(crate) fn measure(&self, now: u64) {
        let banned = self.list(now).len();
        self.banned.set(i64::try_from(banned).unwrap_or(i64::MAX));
    }

    /// Takes over a ban that a file has.
    pub(crate) fn restore(&self, ban: &Ban, now: u64) {
        self.bans.restore(&Ban { client: self.prefixes.network(ban.client), ..*ban }, now);
    }

    /// Those who are banned, as they are shown.
    pub(crate) fn list(&self, now: u64) -> Vec<(String, Ban)> {
        let banned = self.bans.list(now).into_iter().filter(|ban| !ban.left.is_zero());
        banned.map(|ban| (self.prefixes.show(ban.client), ban)).collect()
    }

    /// Bans a client by hand: what is banned with it, and for how long. None if it would not be refused.
    pub(crate) fn impose(&self, client: IpAddr, length: Duration, now: u64) -> Option<(String, Duration)> {
        let refuses_but = self.refuses_but.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        if refuses_but.contains(client) {
            return None;
        }
        let network = self.prefixes.network(client);
        if self.bans.impose(network, length, now) {
            self.evicted.inc();
        }
        self.begun.inc();
        self.measure(now);
        Some((self.prefixes.show(client), self.bans.left(network, now)?))
    }

    /// Lets a client in again; true if it was banned.
    pub(crate) fn lift(&self, client: IpAddr, now: u64) -> bool {
        let lifted = self.bans.lift(self.prefixes.network(client), now);
        if lifted {
            self.lifted.inc();
            self.measure(now);
        }
        lifted
    }
}
