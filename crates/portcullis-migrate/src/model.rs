//! What every configuration comes to: listeners, sites, routes, upstreams and rules. Readers of the different
//! syntaxes fill it, `write` makes a document of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::Entry;

/// A configuration.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub listeners: Vec<Listener>,
    pub sites: Vec<Site>,
    pub upstreams: Vec<Upstream>,
    /// Networks of proxies in front.
    pub trusted_proxies: Vec<String>,
    /// Where these say who the client is: `x-forwarded-for` or `forwarded`.
    pub client_header: Option<&'static str>,
    /// DNS servers.
    pub resolvers: Vec<String>,
    /// The account for certificates that are ordered.
    pub acme: Option<Acme>,
    upstream_names: BTreeMap<String, usize>,
    site_names: BTreeSet<String>,
}

/// Sites, routes of each, upstreams and listeners of one document.
pub(crate) const SITES_MAX: usize = 5000;

/// The account for certificates that are ordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acme {
    pub contact: Option<String>,
    pub directory: Option<String>,
}

/// An address to serve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listener {
    pub name: String,
    /// With the port.
    pub address: String,
    pub tls: Option<Tls>,
    pub proxy_protocol: bool,
}

/// TLS of a listener.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    pub certificates: Vec<Certificate>,
    /// Certificates are ordered.
    pub acme: bool,
    /// TLS 1.2 is not spoken.
    pub only_13: bool,
    pub client_auth: Option<ClientAuth>,
}

/// Files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub cert: String,
    pub key: String,
}

/// Certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientAuth {
    pub ca: String,
    pub optional: bool,
}

/// The host names of one application, and what happens to requests for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    pub name: String,
    pub hosts: Vec<String>,
    /// Names of listeners.
    pub listeners: Vec<String>,
    /// Where requests go that no route takes.
    pub upstream: Option<String>,
    pub routes: Vec<Route>,
    pub settings: Settings,
    /// Clear text is redirected.
    pub redirect_to_tls: bool,
    /// `Strict-Transport-Security`.
    pub hsts: Option<Hsts>,
    pub rules: RuleSet,
    /// Directives that said where requests go, and could not be taken over.
    pub lost: Vec<Entry>,
}

/// `Strict-Transport-Security`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hsts {
    pub seconds: u64,
    pub subdomains: bool,
    pub preload: bool,
}

/// What happens to requests for some paths.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub path: PathMatch,
    pub conditions: Conditions,
    pub action: Action,
    pub settings: Settings,
}

/// What else a request has to have for a route.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    /// One of these methods; none: any.
    pub methods: Vec<String>,
    /// Header fields with these values, `*` for any.
    pub headers: BTreeMap<String, String>,
    /// The directives that said so. The same conditions are equal, whatever directive they come from.
    pub entries: Vec<Entry>,
}

impl PartialEq for Conditions {
    fn eq(&self, other: &Conditions) -> bool {
        self.methods == other.methods && self.headers == other.headers
    }
}

impl Route {
    /// A route for all requests with these paths.
    pub fn new(path: PathMatch, action: Action, settings: Settings) -> Route {
        Route { path, conditions: Conditions::default(), action, settings }
    }

    /// True if the paths alone decide.
    pub fn is_unconditional(&self) -> bool {
        self.conditions == Conditions::default()
    }

    /// True if requests go to an upstream.
    pub fn forwards(&self) -> bool {
        matches!(self.action, Action::Forward { .. })
    }

    /// True if both take the same requests.
    pub fn is_like(&self, other: &Route) -> bool {
        self.path == other.path && self.conditions == other.conditions
    }
}

/// Which paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathMatch {
    Prefix(String),
    Exact(String),
    /// A regular expression.
    Pattern(String),
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It goes to an upstream, where the path becomes `rewrite`.
    Forward {
        upstream: String,
        rewrite: Option<String>,
    },
    Redirect {
        to: String,
        status: u16,
    },
    Respond {
        status: u16,
        body: Option<String>,
    },
}

/// What holds for a site or a route. A route has all that holds for it, not only what differs from its site.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub waf: Waf,
    pub request_headers: HeaderChanges,
    pub response_headers: HeaderChanges,
    pub access: Option<Access>,
    pub rate_limits: Vec<RateLimit>,
    /// Bytes of a request body.
    pub body_limit: Option<u64>,
    /// Media types that are compressed; empty: the usual ones.
    pub compression: Option<Vec<String>>,
    /// Directives that let only some of these requests through, in a way that a document cannot say: none of
    /// them are forwarded.
    pub closed: Vec<Entry>,
    /// What holds for requests with some methods in place of all this. `site` makes routes of it.
    pub by_method: Vec<ByMethod>,
}

/// What holds for requests with some methods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ByMethod {
    pub methods: Vec<String>,
    /// It holds for all methods but these.
    pub except: bool,
    /// The requests are answered with this status.
    pub refused: Option<u16>,
    pub settings: Settings,
    pub entry: Entry,
}

/// Whether requests are inspected, and by what, in the order in which it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waf {
    pub on: bool,
    /// In place of what the rules say (`SecRuleEngine`).
    pub engine: Option<Engine>,
    pub rules: Vec<RuleSource>,
}

/// What a match of a disruptive rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Blocking,
    DetectionOnly,
}

/// Where rules come from, and the directive that said so. The same rules are equal, whatever directive they
/// come from.
#[derive(Clone, Debug)]
pub(crate) struct RuleSource {
    pub kind: RuleKind,
    pub entry: Entry,
}

impl PartialEq for RuleSource {
    fn eq(&self, other: &RuleSource) -> bool {
        self.kind == other.kind
    }
}

impl Eq for RuleSource {}

/// Where rules come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// A file, or a pattern of names.
    File { path: String, optional: bool },
    /// The CRS that was built into the program.
    Crs,
    /// The text itself.
    Inline(String),
}

/// The rules of a site as the document has them; made of those of site and routes by `rules`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleSet {
    /// Files before the CRS.
    pub setup: Vec<String>,
    /// Folder of the CRS.
    pub crs: Option<String>,
    pub paranoia: Option<u8>,
    /// Files.
    pub include: Vec<String>,
    /// Text.
    pub directives: String,
    /// They were written for ModSecurity 3.
    pub modsecurity3: bool,
}

impl RuleSet {
    /// True if there are rules.
    pub fn any(&self) -> bool {
        !self.setup.is_empty()
            || self.crs.is_some()
            || !self.include.is_empty()
            || !self.directives.is_empty()
    }
}

/// Changes of header fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderChanges {
    pub set: BTreeMap<String, String>,
    pub add: BTreeMap<String, String>,
    pub remove: Vec<String>,
}

impl HeaderChanges {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }
}

/// Which clients may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// Who is in no list is refused.
    pub others_denied: bool,
}

/// How often a client may ask.
#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    pub name: String,
    /// `client`, `header:NAME`, `cookie:NAME`; nothing: all requests together.
    pub key: Option<String>,
    pub rate: u32,
    pub per_minute: bool,
    pub burst: u32,
    pub status: Option<u16>,
    /// The directives that said so. The same limits are equal, whatever directive they come from.
    pub entries: Vec<Entry>,
}

impl PartialEq for RateLimit {
    fn eq(&self, other: &RateLimit) -> bool {
        (&self.name, &self.key, self.rate, self.per_minute, self.burst, self.status)
            == (&other.name, &other.key, other.rate, other.per_minute, other.burst, other.status)
    }
}

/// A group of equal endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Upstream {
    pub name: String,
    pub endpoints: Vec<Endpoint>,
    pub balance: Option<&'static str>,
    pub hash_by: Option<String>,
    pub sticky_cookie: Option<String>,
    /// `h2`, `h2c`.
    pub protocol: Option<&'static str>,
    pub health_path: Option<String>,
    pub health_interval: Option<String>,
    pub ejection_failures: Option<u16>,
    pub ejection_time: Option<String>,
    pub requests_max: Option<u32>,
    pub connect_timeout: Option<String>,
    pub read_timeout: Option<String>,
    pub write_timeout: Option<String>,
    pub idle_timeout: Option<String>,
    pub idle_connections: Option<u32>,
    pub slow_start: Option<String>,
    pub tls: UpstreamTls,
}

/// TLS towards endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpstreamTls {
    pub ca: Option<String>,
    pub name: Option<String>,
    pub cert: Option<String>,
    pub key: Option<String>,
}

/// An endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub url: String,
    pub weight: Option<u32>,
    pub backup: bool,
}

impl Model {
    /// The name of an upstream like this one: one that is there already, or this one under a name of its own.
    pub fn upstream(&mut self, mut upstream: Upstream) -> String {
        let wanted = name(if upstream.name.is_empty() { "app" } else { &upstream.name });
        // Where there are too many, the migration ends; see `is_too_large`.
        for number in 1..=SITES_MAX {
            upstream.name = if number == 1 { wanted.clone() } else { format!("{wanted}-{number}") };
            match self.upstream_names.get(&upstream.name).and_then(|at| self.upstreams.get(*at)) {
                Some(known) if *known == upstream => break,
                Some(_) => {}
                None => {
                    self.upstream_names.insert(upstream.name.clone(), self.upstreams.len());
                    self.upstreams.push(upstream.clone());
                    break;
                }
            }
        }
        upstream.name
    }

    /// The directives that rate limits and conditions of the document stand for.
    pub fn carried(&self) -> BTreeSet<Entry> {
        let routes = self.sites.iter().flat_map(|site| site.routes.iter().map(|route| &route.settings));
        let settings = self.sites.iter().map(|site| &site.settings).chain(routes);
        let limits = settings.flat_map(|settings| &settings.rate_limits).flat_map(|limit| &limit.entries);
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        limits.chain(routes.flat_map(|route| &route.conditions.entries)).copied().collect()
    }

    /// True if the document would be larger than anybody means.
    pub fn is_too_large(&self) -> bool {
        self.sites.iter().any(|site| site.routes.len() > SITES_MAX)
            || self.upstreams.len() > SITES_MAX
            || self.sites.len() > SITES_MAX
            || self.listeners.len() > SITES_MAX
    }

    /// The listener of an address, which is made if it is not there.
    pub fn listener(&mut self, address: &str) -> &mut Listener {
        let at = match self.listeners.iter().position(|listener| listener.address == address) {
            Some(at) => at,
            None => {
                let name = listener_name(address);
                self.listeners.push(Listener { name, address: address.to_owned(), ..Listener::default() });
                self.listeners.len() - 1
            }
        };
        &mut self.listeners[at]
    }

    /// Takes addresses away, and the sites that nobody can reach then.
    pub fn remove_listeners(&mut self, addresses: &BTreeSet<String>) {
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.listeners)
            .into_iter()
            .partition(|listener| addresses.contains(&listener.address));
        self.listeners = kept;
        for site in &mut self.sites {
            site.listeners.retain(|name| !gone.iter().any(|listener| listener.name == *name));
        }
        self.sites.retain(|site| !site.listeners.is_empty());
    }

    /// Adds a site, under a name that no other has.
    pub fn site(&mut self, mut site: Site) {
        let wanted = name(site.hosts.iter().find(|host| *host != "*").map_or("default", |host| host));
        // The site of the application has the plain name.
        let redirects =
            |route: &Route| matches!(route.action, Action::Redirect { .. } | Action::Respond { .. });
        let wanted = match site.upstream.is_none() && site.routes.iter().all(redirects) && wanted != "default"
        {
            true => wanted + "-redirect",
            false => wanted,
        };
        site.name = wanted.clone();
        // A name belongs to sites on different listeners; there are few of these.
        let mut number = 1_usize;
        while !self.site_names.insert(site.name.clone()) {
            number += 1;
            site.name = format!("{wanted}-{number}");
        }
        self.sites.push(site);
    }
}

/// What the upstream of a `host:port` is called: by its host, if that is a name.
pub(crate) fn upstream_name(authority: &str) -> String {
    let host = authority.split(':').next().unwrap_or_default();
    match host.parse::<std::net::Ipv4Addr>().is_ok() || host.starts_with('[') || host == "localhost" {
        true => "app".to_owned(),
        false => name(host),
    }
}

/// What a listener is called: by the usual port, or its address.
fn listener_name(address: &str) -> String {
    match address {
        "0.0.0.0:80" => "http",
        "0.0.0.0:443" => "https",
        "[::]:80" => "http-v6",
        "[::]:443" => "https-v6",
        other => other,
    }
    .to_owned()
}

/// A name of letters, digits, `-`, `_` and `.`.
pub(crate) fn name(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = text.trim_start_matches("*.").chars().map(kept).take(100).collect();
    match text.trim_matches('-') {
        "" => "site".to_owned(),
        text => text.to_owned(),
    }
}
