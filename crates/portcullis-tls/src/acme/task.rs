//! The task that orders certificates, one after the other, for as long as the proxy runs.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use instant_acme::Account;
use portcullis_metrics::{EnumCounters, Gauge, Registry, catalogue};

use super::client::RetryAfter;
use super::order::{self, Issued};
use super::schedule::{Moment, Schedule};
use super::{Challenges, Failure, Kind, Settings};
use crate::Life;

/// The time between two looks for something to do.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// For an order, whatever the authority does.
const ORDER_MAX: Duration = Duration::from_secs(300);

/// Label values of `portcullis_acme_orders_total`: success, then by [`Kind`].
const RESULTS: [&str; 6] = ["ok", "unreachable", "rate_limited", "challenge", "refused", "unusable"];

/// The services that the process provides to the orders.
pub struct Host {
    /// The registry of their series.
    pub registry: Arc<Registry>,
    /// The challenges from which authorities fetch the proofs.
    pub challenges: Arc<Challenges>,
    /// Takes a line for the operator.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// The settings that hold at present; none if nothing is ordered.
    pub settings: Box<dyn Fn() -> Option<Arc<Settings>>>,
}

/// Orders certificates until it is dropped.
pub async fn run(host: Host) {
    let host = Rc::new(host);
    let mut interval = tokio::time::interval(LOOK_EVERY);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut desk: Option<Desk> = None;
    loop {
        interval.tick().await;
        let Some(settings) = (host.settings)() else {
            desk = None;
            continue;
        };
        let kept = desk.take().filter(|desk| desk.settings.account == settings.account);
        let desk = desk.insert(kept.unwrap_or_else(|| Desk::new(&host, &settings)));
        if !Arc::ptr_eq(&desk.settings, &settings) {
            desk.follow(settings);
        }
        desk.work().await;
    }
}

/// The orders at one authority.
struct Desk {
    host: Rc<Host>,
    started: Instant,
    settings: Arc<Settings>,
    schedule: Schedule,
    account: Option<Account>,
    retry_after: RetryAfter,
    orders: EnumCounters,
    next: BTreeMap<String, Gauge>,
}

impl Desk {
    fn new(host: &Rc<Host>, settings: &Arc<Settings>) -> Self {
        let registry = &host.registry;
        let mut desk = Desk {
            host: Rc::clone(host),
            started: Instant::now(),
            settings: Arc::clone(settings),
            schedule: Schedule::default(),
            account: None,
            retry_after: RetryAfter::default(),
            orders: registry.enum_counters(&catalogue::ACME_ORDERS, &[], &RESULTS),
            next: BTreeMap::new(),
        };
        desk.follow(Arc::clone(settings));
        desk
    }

    /// Takes on names that are new.
    fn follow(&mut self, settings: Arc<Settings>) {
        let mut without = Vec::new();
        self.schedule.follow(&settings.names, |name| {
            let life = settings.folder.life(name);
            if life.is_none() {
                without.push(name.to_string());
            }
            life
        });
        if !without.is_empty() {
            let names = without.join(", ");
            self.say(&format!(
                "no certificate for {names} yet: until it is there, TLS clients get another one of the listener, \
                 or none"
            ));
        }
        if self.settings.authorities != settings.authorities {
            self.account = None;
        }
        self.settings = settings;
        self.measure();
    }

    fn measure(&mut self) {
        let registry = &self.host.registry;
        self.next.retain(|name, gauge| {
            let stays = self.settings.names.contains(name);
            if !stays {
                gauge.set(0);
            }
            stays
        });
        for (name, at) in self.schedule.next(self.now()) {
            let series = || registry.gauge(&catalogue::ACME_NEXT_ORDER, &[name]);
            self.next.entry(name.to_string()).or_insert_with(series).set(at);
        }
    }

    /// Orders the certificate that is due, if one is.
    async fn work(&mut self) {
        let Some(name) = self.schedule.due(self.now()).map(str::to_string) else { return };
        // Another process that shares the folder may have been first.
        let renewed = self.settings.folder.life(&name).inspect(|life| self.schedule.issued(&name, *life));
        if renewed.is_some() && self.schedule.due(self.now()) != Some(&name) {
            return;
        }
        let order = tokio::time::timeout(ORDER_MAX, self.order(&name));
        let late = |_| Err(Failure::new(Kind::Unreachable, "the authority takes too long"));
        let result = order.await.unwrap_or_else(late);
        match &result {
            Ok(life) => self.issued(&name, *life),
            Err(failure) => self.failed(&name, failure),
        }
        self.measure();
        // Counted last, so that readers of the count find the rest up to date.
        self.orders.inc(result.map_or_else(|failure| 1 + failure.kind as usize, |_| 0));
    }

    async fn order(&mut self, name: &str) -> Result<Life, Failure> {
        let account = match &self.account {
            Some(account) => account.clone(),
            None => {
                let account = order::account(&self.settings, &self.retry_after).await;
                // Without an account there is nothing for any name.
                let account = account.map_err(|failure| Failure { of_all: true, ..failure })?;
                self.account.insert(account).clone()
            }
        };
        let Issued { key, chain } = order::run(&account, name, &self.host.challenges).await?;
        let kept = self.settings.folder.keep_certificate(name, &key, &chain);
        kept.map_err(|error| Failure::new(Kind::Unusable, error))
    }

    fn issued(&mut self, name: &str, life: Life) {
        self.schedule.issued(name, life);
        let now = self.now();
        let renewal = self.schedule.next(now).find(|(known, _)| *known == name).map_or(0, |(_, at)| at);
        let (valid, renewal) = (shown(life.until - now.wall), shown(renewal - now.wall));
        self.say(&format!("{name} has a certificate for {valid}, to be renewed in {renewal}"));
    }

    fn failed(&mut self, name: &str, failure: &Failure) {
        let mut told = String::new();
        if failure.account_unknown {
            told = match self.settings.folder.retire_account() {
                Ok(()) => "; there will be a new account".to_string(),
                Err(error) => format!("; the account cannot be put aside: {error}"),
            };
        }
        if failure.of_all {
            // The directory may have other URLs when it is back.
            self.account = None;
        }
        let now = self.now();
        let chance = getrandom::u32().unwrap_or(u32::MAX / 2);
        self.schedule.failed(name, failure, now, self.retry_after.take(), chance);
        let next = self.schedule.next(now).find(|(known, _)| *known == name).map_or(0, |(_, at)| at);
        let (text, next) = (&failure.text, shown(next - now.wall));
        self.say(&format!("no certificate for {name}: {text}{told}; the next try is in {next}"));
    }

    fn now(&self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Moment { wall: i64::try_from(wall).unwrap_or(i64::MAX), running: Instant::now() - self.started }
    }

    fn say(&self, line: &str) {
        (self.host.say)(&format!("ACME: {line}"));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.next.values().for_each(|gauge| gauge.set(0));
    }
}

/// Seconds as a person says them.
fn shown(seconds: i64) -> String {
    match seconds {
        ..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
