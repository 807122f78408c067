//! Bans: who is refused for what he did before, and what adds to that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use portcullis_access::{Ban, BanPolicy, Bans};
use portcullis_config::{Ban as Settings, Prefixes, RefuseAction};
use portcullis_event::{Action, Control, ControlKind};
use portcullis_match::IpSet;
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use super::gate::set_of;
use super::teller::Teller;
use super::{Denial, Noted};

/// The bans of all sites and routes, by their names.
pub(crate) type Jails = BTreeMap<Arc<str>, Arc<Cells>>;

/// The bans that sites and routes share, kept over reloads.
pub(crate) struct Cells {
    pub(crate) bans: Bans,
    clients_max: usize,
    prefixes: Prefixes,
    /// Lines for the operator.
    teller: Teller,
    begun: Counter,
    lifted: Counter,
    evicted: Counter,
    banned: Gauge,
}

/// What a route does about clients that attack.
pub(crate) struct Jail {
    settings: Settings,
    policy: BanPolicy,
    cells: Arc<Cells>,
    except: IpSet,
    control: Control,
    teller: Teller,
    requests: Counter,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

/// What came of a request, as far as a ban cares.
pub(crate) struct Deed {
    pub(crate) action: Action,
    /// The rules or the semantic detector decided, and not a limit or fault of ours.
    pub(crate) is_verdict: bool,
    /// What refused or noted the client before.
    pub(crate) control: Option<ControlKind>,
    /// The inbound anomaly score.
    pub(crate) anomaly: i64,
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
        let fits = |cells: &&Arc<Cells>| {
            cells.clients_max == settings.clients_max && cells.prefixes == settings.prefixes
        };
        let cells = known.entry(Arc::clone(&name)).or_insert_with(|| {
            let kept = old.and_then(|old| old.get(&name)).filter(fits);
            kept.map_or_else(|| Arc::new(Cells::new(registry, settings)), Arc::clone)
        });
        let action = match settings.action {
            RefuseAction::Block => "block",
            RefuseAction::Log => "log",
        };
        let Settings { score, window, duration, duration_max, memory, .. } = *settings;
        Jail {
            policy: BanPolicy::new(score, window, duration, duration_max, memory),
            cells: Arc::clone(cells),
            except: set_of(&settings.except),
            teller: Teller::new(registry),
            requests: registry.counter(&catalogue::BAN_REQUESTS, &[&name, action]),
            control: Control { by: ControlKind::Ban, name },
            say: Arc::clone(say),
            settings: settings.clone(),
        }
    }

    /// What is to be told of a request, and how it is answered, if its client is banned.
    pub(crate) fn look(&self, client: IpAddr, now: u64) -> Option<(Noted, Option<Denial>)> {
        let left = self.cells.bans.left(self.settings.prefixes.network(client), now)?;
        if self.except.contains(client) {
            return None;
        }
        self.requests.inc();
        let noted = Noted {
            control: self.control.clone(),
            reason: format!("The client is banned for another {} s", left.as_secs() + 1),
            tell: self.teller.tells(now),
        };
        let status = self.settings.status;
        let blocks = self.settings.action == RefuseAction::Block;
        Some((noted, blocks.then(|| Denial { status, text: None, fields: Vec::new() })))
    }

    /// Takes note of what a client did.
    pub(crate) fn judge(&self, client: IpAddr, deed: &Deed, now: u64) {
        let points = self.points(deed);
        if points == 0 || self.except.contains(client) {
            return;
        }
        let offence =
            self.cells.bans.offend(&self.policy, self.settings.prefixes.network(client), points, now);
        if offence.evicted {
            self.cells.evicted.inc();
        }
        let Some(time) = offence.banned else { return };
        self.cells.begun.inc();
        if self.cells.teller.tells(now) {
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

    fn points(&self, deed: &Deed) -> u32 {
        let points = &self.settings.points;
        let of_verdict = match (deed.control, deed.action) {
            // Who is refused already does not make it worse for himself.
            (Some(ControlKind::DenyList | ControlKind::Ban | ControlKind::Overload), _)
                if !deed.is_verdict =>
            {
                return 0;
            }
            (Some(ControlKind::RateLimit), _) if !deed.is_verdict => points.limited,
            (_, Action::Refuse) => points.refused,
            (_, Action::Deny | Action::Redirect | Action::Drop) if deed.is_verdict => points.blocked,
            (_, Action::Detect) => points.detected,
            _ => 0,
        };
        let anomaly = if points.anomaly { deed.anomaly.clamp(0, i64::from(u16::MAX)) as u32 } else { 0 };
        of_verdict.saturating_add(anomaly)
    }
}

impl Cells {
    fn new(registry: &Registry, settings: &Settings) -> Cells {
        let name = &settings.name;
        Cells {
            bans: Bans::new(settings.clients_max),
            clients_max: settings.clients_max,
            prefixes: settings.prefixes,
            teller: Teller::new(registry),
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
