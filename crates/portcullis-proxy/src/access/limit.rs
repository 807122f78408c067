//! Rate limits: which bucket a request belongs to, and what its answer says.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_access::{Key, Limiter, Rate};
use portcullis_config::{KeyPart, RateLimit, RefuseAction};
use portcullis_event::{Control, ControlKind};
use portcullis_http::cookie::{self, CookieFormat};
use portcullis_http::message::RequestHead;
use portcullis_match::IpSet;
use portcullis_metrics::{Counter, Registry, catalogue};

use super::gate::set_of;
use super::teller::Teller;
use super::{Denial, Noted};
use crate::site;

/// A rate limit, ready to count.
pub(crate) struct Limit {
    site: Arc<str>,
    settings: RateLimit,
    /// Kept over reloads that do not change what it counts.
    limiter: Arc<Limiter>,
    except: IpSet,
    control: Control,
    teller: Teller,
    limited: Counter,
    evicted: Counter,
}

impl Limit {
    /// Builds the limits of a site, or of one of its routes. Those of `old` go on with the buckets they have.
    pub(crate) fn build(
        registry: &Registry,
        site: &Arc<str>,
        limits: &[RateLimit],
        old: &[Arc<Limit>],
    ) -> Vec<Arc<Limit>> {
        let one = |settings: &RateLimit| {
            let known = old.iter().find(|old| old.site == *site && old.counts_as(settings));
            let limiter = known.map_or_else(|| Arc::new(limiter(settings)), |old| Arc::clone(&old.limiter));
            let action = match settings.action {
                RefuseAction::Block => "block",
                RefuseAction::Log => "log",
            };
            let name = &settings.name;
            Arc::new(Limit {
                site: Arc::clone(site),
                limiter,
                except: set_of(&settings.except),
                control: Control { by: ControlKind::RateLimit, name: name.as_str().into() },
                teller: Teller::new(registry),
                limited: registry.counter(&catalogue::RATE_LIMITED, &[site, name, action]),
                evicted: registry.counter(&catalogue::RATE_LIMIT_EVICTED, &[site, name]),
                settings: settings.clone(),
            })
        };
        limits.iter().map(one).collect()
    }

    /// A limit with these settings counts the same things in the same way.
    fn counts_as(&self, settings: &RateLimit) -> bool {
        let RateLimit { action, status, except, .. } = &self.settings;
        let (action, status, except) = (*action, *status, except.clone());
        self.settings == RateLimit { action, status, except, ..settings.clone() }
    }

    /// Counts a request. What is to be told of it, and how it is answered, if it comes too early.
    pub(crate) fn check(
        &self,
        client: IpAddr,
        head: &RequestHead,
        now: u64,
    ) -> Option<(Noted, Option<Denial>)> {
        let methods = &self.settings.methods;
        if !methods.is_empty() && !methods.iter().any(|method| method.as_bytes() == head.method()) {
            return None;
        }
        if self.except.contains(client) {
            return None;
        }
        let key = self.key(client, head)?;
        let checked = self.limiter.check(key, now);
        if checked.evicted {
            self.evicted.inc();
        }
        let wait = checked.wait?;
        self.limited.inc();
        let noted = Noted {
            control: self.control.clone(),
            reason: format!("The rate limit `{}` was exceeded", self.settings.name),
            tell: self.teller.tells(now),
        };
        let denial = (self.settings.action == RefuseAction::Block).then(|| self.denial(wait));
        Some((noted, denial))
    }

    /// The bucket of a request; none if it lacks what the key is made of.
    fn key(&self, client: IpAddr, head: &RequestHead) -> Option<Key> {
        let mut key = self.limiter.keying();
        for part in &self.settings.key {
            key = match part {
                KeyPart::Client => match self.settings.prefixes.network(client) {
                    IpAddr::V4(v4) => key.part(&v4.octets()),
                    IpAddr::V6(v6) => key.part(&v6.octets()),
                },
                KeyPart::Path => key.part(&site::as_servers_see(head.path())),
                KeyPart::Header(name) => key.part(head.header(name).next()?),
                KeyPart::Cookie(name) => key.part(&cookie(head, name.as_bytes())?),
            };
        }
        Some(key.key())
    }

    /// `Retry-After` (RFC 9110), and the fields of draft-ietf-httpapi-ratelimit-headers-10.
    fn denial(&self, wait: Duration) -> Denial {
        let RateLimit { name, rate, per, status, .. } = &self.settings;
        let (wait, per) = (whole_seconds(wait), whole_seconds(*per));
        Denial {
            status: *status,
            text: Some("There were too many requests. Please try again later."),
            fields: vec![
                ("Retry-After", wait.to_string()),
                ("RateLimit-Policy", format!("\"{name}\";q={rate};w={per}")),
                ("RateLimit", format!("\"{name}\";r=0;t={wait}")),
            ],
        }
    }
}

fn limiter(settings: &RateLimit) -> Limiter {
    let rate = Rate::new(settings.rate.into(), settings.per, settings.burst.into());
    Limiter::new(rate, settings.keys_max)
}

/// Rounded up, and at least 1: who is told to wait no time does not wait.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

fn cookie<'h>(head: &'h RequestHead, name: &[u8]) -> Option<Cow<'h, [u8]>> {
    head.header("cookie").find_map(|header| {
        let cookies = cookie::parse(header, CookieFormat::V0, Some(b';')).cookies;
        let found = cookies.iter().find(|cookie| cookie.full_name(header).as_ref() == name)?;
        Some(Cow::Borrowed(found.value(header)))
    })
}
