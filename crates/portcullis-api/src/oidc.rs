//! Logins at a provider that have begun: bounded in number and time, each bound to a browser.

use std::collections::HashMap;
use std::net::IpAddr;

use portcullis_identity::{Role, Sites, is_same};
use portcullis_oidc::{Pending, Provider};

/// Seconds that a login at the provider may take.
pub(crate) const PENDING_S: u64 = 600;
/// Logins that have begun, in all; beyond them one of the network with the most is forgotten.
const PENDING_MAX: usize = 1024;
/// The same of one network.
const PENDING_OF_NETWORK_MAX: usize = 64;

/// Stands for all sites in [`OidcLogin::sites`].
const EVERY_SITE: &str = "*";

/// Login at an OpenID Connect provider.
pub struct OidcLogin {
    /// The provider.
    pub provider: Provider,
    /// Its name, for a button.
    pub name: String,
    /// The URL of the console as browsers see it, without a path; none: by the request's `Host`.
    pub redirect: Option<String>,
    /// Groups at the provider that have a role.
    pub roles: Vec<(Role, Vec<String>)>,
    /// Groups at the provider by the site that they are limited to, `*` for all; none: no group is limited.
    pub sites: Option<Vec<(String, Vec<String>)>>,
}

impl OidcLogin {
    /// The highest role that one of the groups gives, and the sites of all of them. The error is what none of
    /// them has.
    pub(crate) fn grant(&self, groups: &[String]) -> Result<(Role, Option<Sites>), &'static str> {
        let fits = |named: &[String]| named.iter().any(|group| groups.contains(group));
        let role = self.roles.iter().filter(|(_, named)| fits(named)).map(|(role, _)| *role).max();
        let role = role.ok_or("role")?;
        let Some(by_site) = &self.sites else { return Ok((role, None)) };
        let named = by_site.iter().filter(|(_, named)| fits(named)).map(|(site, _)| site.clone());
        let named: Vec<String> = named.collect();
        if role == Role::Admin || named.iter().any(|site| site == EVERY_SITE) {
            return Ok((role, Some(Sites::All)));
        }
        Sites::named(named).map(|sites| (role, Some(sites))).map_err(|_| "site")
    }
}

/// Logins that have begun, by their `state`.
#[derive(Default)]
pub(crate) struct PendingLogins(HashMap<String, Begun>);

struct Begun {
    pending: Pending,
    /// Digest of the browser's cookie.
    browser: [u8; 32],
    network: IpAddr,
    at: u64,
    /// Later ones have higher numbers; many begin in one second.
    number: u64,
}

impl PendingLogins {
    pub(crate) fn add(&mut self, pending: Pending, browser: [u8; 32], network: IpAddr, now: u64) {
        self.0.retain(|_, begun| begun.is_open(now));
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.0.values().for_each(|begun| *counts.entry(begun.network).or_default() += 1);
        if counts.get(&network).is_some_and(|count| *count >= PENDING_OF_NETWORK_MAX) {
            self.forget_oldest_of(network);
        } else if self.0.len() >= PENDING_MAX
            && let Some((most, _)) = counts.into_iter().max_by_key(|(_, count)| *count)
        {
            self.forget_oldest_of(most);
        }
        let number = self.0.values().map(|begun| begun.number + 1).max().unwrap_or_default();
        self.0.insert(pending.state().to_owned(), Begun { pending, browser, network, at: now, number });
    }

    fn forget_oldest_of(&mut self, network: IpAddr) {
        let of_network = self.0.iter().filter(|(_, begun)| begun.network == network);
        if let Some(state) = of_network.min_by_key(|(_, begun)| begun.number).map(|(state, _)| state.clone())
        {
            self.0.remove(&state);
        }
    }

    /// The login of this state, if this browser began it; once.
    pub(crate) fn take(&mut self, state: &str, browser: &[u8; 32], now: u64) -> Option<Pending> {
        let begun = self.0.get(state)?;
        if !is_same(&begun.browser, browser) {
            return None;
        }
        self.0.remove(state).filter(|begun| begun.is_open(now)).map(|begun| begun.pending)
    }
}

impl Begun {
    fn is_open(&self, now: u64) -> bool {
        now.checked_sub(self.at).is_some_and(|age| age < PENDING_S)
    }
}
