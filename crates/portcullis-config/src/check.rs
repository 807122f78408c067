//! Raw document to [`Config`]: every mistake is reported, not only the first.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::access;
use crate::access_log;
use crate::acme;
use crate::agents::{self, Agent};
use crate::checked::*;
use crate::compression::{self, Compression};
use crate::convert::{engine, host_pattern, level, request_body, response_body, site_mode, timeouts};
use crate::hint;
use crate::https;
use crate::raw;
use crate::route;
use crate::semantic;
use crate::spanned::Spanned;
use crate::store;
use crate::tls;
use crate::tracing;
use crate::upstream::{self, Upstream};

/// Collects mistakes while the parts of a document are turned into checked settings.
pub(crate) struct Checker<'a> {
    /// Folder that relative paths start from.
    pub base: &'a Path,
    pub mistakes: Vec<(Range<usize>, String, Option<String>)>,
    /// Where each listener is named.
    listener_spans: Vec<Range<usize>>,
    /// By listener: where it asks for certificates by ACME, if it does, and whether it names them.
    acme_spans: Vec<Option<(Range<usize>, bool)>>,
    upstreams: Vec<Upstream>,
    pub(crate) agents: Vec<Agent>,
    policies: Vec<Policy>,
    /// At sites that do not say it themselves.
    pub(crate) access: Option<access::Access>,
    pub(crate) ban: Option<access::Ban>,
    pub(crate) has_limit_store: bool,
    /// Databases of places.
    pub(crate) geo: Vec<PathBuf>,
    pub(crate) compression: Option<Compression>,
    access_log: Option<AccessLog>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(base: &'a Path) -> Self {
        let listener_spans = Vec::new();
        Checker {
            base,
            mistakes: Vec::new(),
            listener_spans,
            acme_spans: Vec::new(),
            upstreams: Vec::new(),
            agents: Vec::new(),
            policies: Vec::new(),
            access: None,
            ban: None,
            has_limit_store: false,
            geo: Vec::new(),
            compression: None,
            access_log: None,
        }
    }

    /// The checked settings; meaningless when there are mistakes.
    pub(crate) fn config(&mut self, document: raw::Document) -> Config {
        let admin = document.admin.and_then(|admin| self.address(&admin.listen));
        self.upstreams = upstream::check(self, document.upstreams);
        self.agents = agents::check(self, document.agents);
        let client_address = self.client_address(document.client_address);
        self.access_log = access_log::check(self, document.access_log.as_ref(), None);
        let limit_store = access::limit_store(self, document.limit_store);
        self.has_limit_store = limit_store.is_some();
        self.geo = document.geo.files.iter().map(|file| self.path(file)).collect();
        self.access = document.access.as_ref().map(|raw| access::access(self, raw));
        self.ban = access::ban::check(self, document.ban.as_ref(), "all", None);
        self.compression = compression::check(self, document.compression.as_ref(), None);
        let mut listeners = self.listeners(document.listeners, &client_address);
        let sites = self.sites(document.sites, &mut listeners);
        let acme = acme::account(self, document.acme);
        let asked = std::mem::take(&mut self.acme_spans);
        acme::names(self, &mut listeners, &sites, asked, acme.is_some());
        for (listener, span) in listeners.iter().zip(std::mem::take(&mut self.listener_spans)) {
            if listener.sites.is_empty() && !sites.is_empty() {
                self.wrong(span, format!("the listener `{}` serves no site", listener.name));
            }
        }
        let default = Limits::default();
        Config {
            workers: match document.workers {
                Some(workers) if (1..=1024).contains(&*workers) => workers.value as usize,
                Some(workers) => {
                    self.wrong(workers.span, "workers must be 1 to 1024".to_string());
                    1
                }
                None => cores(),
            },
            admin,
            reload_on_change: document.reload_on_change,
            listeners,
            sites,
            upstreams: std::mem::take(&mut self.upstreams),
            acme,
            agents: std::mem::take(&mut self.agents),
            policies: std::mem::take(&mut self.policies),
            client_address,
            timeouts: timeouts(&document.timeouts),
            limits: Limits {
                connections_max: match document.limits.connections {
                    Some(number) if *number == 0 => {
                        self.wrong(number.span, "connections must be at least 1".to_string());
                        1
                    }
                    Some(number) => number.value as usize,
                    None => default.connections_max,
                },
                held_body_bytes_max: document
                    .limits
                    .held_bodies
                    .map_or(default.held_body_bytes_max, |size| size.0),
                pause_max: document.limits.pause.map_or(default.pause_max, |time| time.0),
                pauses_max: document.limits.pauses.map_or(default.pauses_max, |number| number as usize),
            },
            store: store::check(self, document.store),
            lookups: self.lookups(document.lookups),
            events: document.events.map(|events| Events {
                file: self.path(&events.file),
                rotate_at_bytes: events.rotate_at.map_or(ROTATE_AT_BYTES, |size| size.0),
            }),
            access_log: self.access_log.take(),
            tracing: tracing::check(self, document.tracing),
            error_log: document.error_log.map(|log| self.path(&log.file)),
            audit_log: self.audit_log(&document.audit_log),
            upload_folder_bytes_max: document
                .uploads
                .folder_limit
                .map_or(UPLOAD_FOLDER_BYTES_MAX, |size| size.0),
            plan_cache: document.plan_cache.map(|file| self.path(&file)),
            geo_files: std::mem::take(&mut self.geo),
            limit_store,
            ban_file: document.ban_file.map(|file| self.path(&file)),
            redact_names: document.redact.names,
            block_page: document.block_page.file.map(|file| self.path(&file)),
        }
    }

    fn audit_log(&mut self, raw: &raw::AuditLog) -> AuditLogLimits {
        let default = AuditLogLimits::default();
        if let Some(number) = raw.files.as_ref().filter(|number| number.value == 0) {
            self.wrong(number.span.clone(), "files must be at least 1".to_string());
        }
        AuditLogLimits {
            rotate_at_bytes: raw.rotate_at.map_or(default.rotate_at_bytes, |size| size.0),
            files_max: raw.files.as_ref().map_or(default.files_max, |number| number.value.into()),
            stored_bytes_max: raw.stored.map_or(default.stored_bytes_max, |size| size.0),
            queue_bytes_max: raw.queue.map_or(default.queue_bytes_max, |size| size.0),
        }
    }

    fn lookups(&mut self, raw: raw::Lookups) -> Lookups {
        let default = Lookups::default();
        let mut resolvers = Vec::new();
        for text in raw.resolvers {
            let with_port = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53));
            match text.parse::<SocketAddr>().or_else(|_| with_port()) {
                Ok(address) => resolvers.push(address),
                Err(_) => {
                    let message = format!("`{}` is not the address of a DNS server", text.value);
                    self.wrong_with_hint(
                        text.span,
                        message,
                        "write `192.0.2.53` or `192.0.2.53:53`".to_string(),
                    );
                }
            }
        }
        let entries = match raw.dns_cache {
            Some(number) if *number > 10_000_000 => {
                self.wrong(number.span, "dns_cache must be 10000000 at most".to_string());
                0
            }
            Some(number) => number.value as usize,
            None => default.dns_cache_entries_max,
        };
        Lookups {
            resolvers,
            dns_timeout: raw.dns_timeout.map_or(default.dns_timeout, |time| time.0),
            dns_cache_entries_max: entries,
            scan_timeout: raw.scan_timeout.map_or(default.scan_timeout, |time| time.0),
        }
    }

    pub(crate) fn wrong(&mut self, span: Range<usize>, message: String) {
        self.mistakes.push((span, message, None));
    }

    pub(crate) fn wrong_with_hint(&mut self, span: Range<usize>, message: String, hint: String) {
        self.mistakes.push((span, message, Some(hint)));
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    fn address(&mut self, text: &Spanned<String>) -> Option<SocketAddr> {
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => {
                let hint = if text.starts_with(':') {
                    format!("to serve every address write `0.0.0.0{}`", text.value)
                } else {
                    "write `127.0.0.1:8080` or `[::1]:8080`".to_string()
                };
                self.wrong_with_hint(
                    text.span.clone(),
                    format!("`{}` is not an address with a port", text.value),
                    hint,
                );
                None
            }
        }
    }

    fn client_address(&mut self, raw: raw::ClientAddress) -> ClientAddress {
        let mut trusted_proxies = Vec::new();
        for text in &raw.trusted_proxies {
            match text.parse() {
                Ok(network) => trusted_proxies.push(network),
                Err(message) => self.wrong(text.span.clone(), message),
            }
        }
        if let (Some(header), true) = (&raw.header, raw.trusted_proxies.is_empty()) {
            self.wrong_with_hint(
                header.span.clone(),
                "a client address header without trusted proxies is never read".to_string(),
                "name the proxies in front in `trusted_proxies`".to_string(),
            );
        }
        let header = raw.header.map(|header| match header.value {
            raw::AddressHeader::XForwardedFor => AddressHeader::XForwardedFor,
            raw::AddressHeader::Forwarded => AddressHeader::Forwarded,
        });
        ClientAddress { trusted_proxies, header }
    }

    fn listeners(&mut self, raw: Vec<raw::Listener>, client_address: &ClientAddress) -> Vec<Listener> {
        if raw.is_empty() {
            self.wrong_with_hint(
                0..0,
                "there is no listener".to_string(),
                "add `[[listeners]]` with `address = \"127.0.0.1:8080\"`".to_string(),
            );
        }
        let mut listeners: Vec<Listener> = Vec::new();
        for listener in raw {
            let span = listener.name.as_ref().unwrap_or(&listener.address).span.clone();
            let name = listener.name.as_ref().unwrap_or(&listener.address).value.clone();
            self.listener_spans.push(span.clone());
            // After a mistake the listener stays, so that sites which name it are not reported as well.
            let address = self.address(&listener.address).unwrap_or(([0, 0, 0, 0], 0).into());
            if listeners.iter().any(|other| other.name == name) {
                self.wrong(span, format!("there are two listeners `{name}`"));
            } else if address.port() != 0 && listeners.iter().any(|other| other.address == address) {
                self.wrong(listener.address.span.clone(), format!("there are two listeners on {address}"));
            }
            let proxy_protocol = listener.proxy_protocol.as_ref().is_some_and(|on| on.value);
            if let (Some(on), true, true) =
                (&listener.proxy_protocol, proxy_protocol, client_address.trusted_proxies.is_empty())
            {
                self.wrong_with_hint(
                    on.span.clone(),
                    "the PROXY protocol is read from trusted proxies only, and there are none".to_string(),
                    "name them in `client_address.trusted_proxies`".to_string(),
                );
            }
            let asked = listener.tls.as_ref().and_then(|tls| tls.acme.as_ref());
            self.acme_spans.push(asked.map(|asked| (asked.span.clone(), asked.domains.is_some())));
            let tls = listener.tls.map(|tls| tls::listener(self, tls, &listener.address.span));
            let compat = match listener.http.compat {
                Some(raw::Compat::Apache) => Compat::Apache,
                _ => Compat::Strict,
            };
            let http2 = crate::http2::check(self, &listener.http2, tls.is_some());
            let http3 = self.http3(listener.http3.as_ref(), tls.is_some());
            let half_close = listener.http.half_close.unwrap_or_default();
            let sites = Vec::new();
            listeners.push(Listener {
                name,
                address,
                tls,
                proxy_protocol,
                half_close,
                compat,
                http2,
                http3,
                sites,
            });
        }
        listeners
    }

    /// `tls`: the listener has TLS.
    fn http3(&mut self, raw: Option<&Spanned<bool>>, tls: bool) -> bool {
        let Some(on) = raw.filter(|on| on.value) else { return false };
        if !tls {
            self.wrong_with_hint(
                on.span.clone(),
                "HTTP/3 is always encrypted, and this listener has no TLS".to_string(),
                "give it `tls`".to_string(),
            );
        } else if !cfg!(feature = "http3") {
            self.wrong_with_hint(
                on.span.clone(),
                "this program was built without HTTP/3".to_string(),
                "build it with `cargo build --release --features http3`".to_string(),
            );
        }
        true
    }

    fn sites(&mut self, raw: Vec<raw::Site>, listeners: &mut [Listener]) -> Vec<Site> {
        if raw.is_empty() {
            self.wrong_with_hint(
                0..0,
                "there is no site".to_string(),
                "add `[[sites]]` with a name, hosts and an upstream".to_string(),
            );
        }
        let mut sites: Vec<Site> = Vec::new();
        let mut seen: HashMap<(usize, HostPattern), usize> = HashMap::new();
        for (index, mut site) in raw.into_iter().enumerate() {
            if sites.iter().any(|other| other.name == site.name.value) {
                self.wrong(site.name.span.clone(), format!("there are two sites `{}`", site.name.value));
            }
            let on = self.listeners_of(&site, listeners);
            let mut hosts = Vec::new();
            if site.hosts.is_empty() {
                self.wrong_with_hint(
                    site.hosts.span.clone(),
                    format!("the site `{}` has no host", site.name.value),
                    "`*` takes every host that no other site names".to_string(),
                );
            }
            for text in std::mem::take(&mut site.hosts.value) {
                let Some(host) = host_pattern(&text) else {
                    self.wrong_with_hint(
                        text.span.clone(),
                        format!("`{}` is not a host name", text.value),
                        "write `shop.example`, `*.shop.example` or `*`, without scheme and port".to_string(),
                    );
                    continue;
                };
                for listener in &on {
                    if let Some(first) = seen.insert((*listener, host.clone()), index)
                        && let Some(other) = sites.get(first).map(|site: &Site| site.name.clone())
                    {
                        self.wrong(
                            text.span.clone(),
                            format!("the host `{}` also belongs to the site `{other}`", text.value),
                        );
                        break;
                    }
                }
                hosts.push(host);
            }
            for listener in on {
                listeners[listener].sites.push(index);
            }
            let mut limit_names = Vec::new();
            let rate_limits = access::rate_limits(self, &site.rate_limits, &mut limit_names);
            let routes = route::check(self, &site, &mut limit_names);
            let log = self.access_log.clone();
            let access_log = access_log::check(self, site.access_log.as_ref(), log.as_ref());
            let https = https::check(self, &site.https);
            sites.push(Site { name: site.name.value, hosts, https, routes, rate_limits, access_log });
        }
        sites
    }

    fn listeners_of(&mut self, site: &raw::Site, listeners: &[Listener]) -> Vec<usize> {
        let Some(names) = &site.listeners else { return (0..listeners.len()).collect() };
        let mut found = Vec::new();
        for name in names {
            match listeners.iter().position(|listener| listener.name == name.value) {
                Some(index) => found.push(index),
                None => {
                    let known: Vec<&str> = listeners.iter().map(|listener| listener.name.as_str()).collect();
                    self.wrong_with_hint(
                        name.span.clone(),
                        format!("there is no listener `{}`", name.value),
                        hint::suggest(name, &known),
                    );
                }
            }
        }
        found
    }

    pub(crate) fn upstream(&mut self, name: &Spanned<String>) -> usize {
        match self.upstreams.iter().position(|upstream| upstream.name == name.value) {
            Some(index) => index,
            None => {
                let known: Vec<String> = self.upstreams.iter().map(|known| known.name.clone()).collect();
                self.wrong_with_hint(
                    name.span.clone(),
                    format!("there is no upstream `{}`", name.value),
                    hint::suggest(name, &known),
                );
                0
            }
        }
    }

    /// What the site's settings say, whatever its mode uses of them.
    pub(crate) fn policy(&mut self, site: &raw::Site) -> Policy {
        self.check_modes(site);
        let mut policy = Policy {
            level: site.level.as_ref().map(|given| level(given.value)).unwrap_or_default(),
            semantic: site.semantic.as_ref().map(|raw| semantic::check(self, raw)).unwrap_or_default(),
            engine: site.engine.map(engine),
            request_body: request_body(&site.request_body),
            response_body: response_body(&site.response_body),
            ..Policy::default()
        };
        if let Some(rules) = &site.rules {
            policy.setup = rules.setup.iter().map(|file| self.path(file)).collect();
            policy.crs = rules.crs.as_ref().map(|folder| self.path(folder));
            policy.include = rules.include.iter().map(|file| self.path(file)).collect();
            policy.directives = rules.directives.clone();
            policy.modsecurity3 = rules.compat == Some(raw::RulesCompat::ModSecurity3);
            if let Some(level) = &rules.paranoia {
                if !(1..=4).contains(&level.value) {
                    self.wrong(level.span.clone(), "the paranoia level is 1 to 4".to_string());
                } else if rules.crs.is_none() {
                    self.wrong(level.span.clone(), "a paranoia level needs `crs`".to_string());
                }
                policy.paranoia = Some(level.value);
            }
        }
        policy
    }

    /// Settings that the modes of the site and its routes leave without effect.
    fn check_modes(&mut self, site: &raw::Site) {
        let own = site_mode(site);
        let modes = || std::iter::once(own).chain(site.routes.iter().filter_map(|route| route.mode));
        let has_rules = |mode| matches!(mode, raw::Mode::Crs | raw::Mode::Both);
        let has_semantic = |mode| matches!(mode, raw::Mode::Semantic | raw::Mode::Both);
        let wants_rules = modes().find(|mode| has_rules(*mode));
        match (&site.rules, wants_rules) {
            (None, Some(mode)) => {
                let mode = if mode == raw::Mode::Crs { "crs" } else { "both" };
                self.wrong_with_hint(
                    site.name.span.clone(),
                    format!("the site `{}` has the mode `{mode}`, but no rules", site.name.value),
                    "add `rules = { crs = \"FOLDER\" }`".to_string(),
                )
            }
            (Some(rules), None) if own == raw::Mode::Semantic => self.wrong_with_hint(
                rules.span.clone(),
                "the mode `semantic` does not read rules".to_string(),
                "write `mode = \"both\"` to have them run beside the semantic detector, or drop them"
                    .to_string(),
            ),
            _ => {}
        }
        let hint = || "write `mode = \"semantic\"` or `mode = \"both\"`, or drop it".to_string();
        let mut useless = |level: &Option<Spanned<raw::Level>>, semantic: &Option<Spanned<raw::Semantic>>| {
            let level = level.as_ref().map(|level| ("level", level.span.clone()));
            let semantic = semantic.as_ref().map(|semantic| ("semantic", semantic.span.clone()));
            for (key, span) in [level, semantic].into_iter().flatten() {
                let message =
                    format!("`{key}` is for the semantic detector, which does not run in this mode");
                self.wrong_with_hint(span, message, hint());
            }
        };
        if !modes().any(has_semantic) {
            useless(&site.level, &site.semantic);
        }
        for route in site.routes.iter().filter(|route| !has_semantic(route.mode.unwrap_or(own))) {
            useless(&route.level, &route.semantic);
        }
    }

    pub(crate) fn intern(&mut self, policy: Option<Policy>) -> Option<usize> {
        let policy = policy?;
        Some(self.policies.iter().position(|known| *known == policy).unwrap_or_else(|| {
            self.policies.push(policy);
            self.policies.len() - 1
        }))
    }
}

/// A folder of kept uploads grows to this size unless told otherwise.
pub(crate) const UPLOAD_FOLDER_BYTES_MAX: u64 = 1 << 30;
/// The event file is rotated at this size unless told otherwise.
pub(crate) const ROTATE_AT_BYTES: u64 = 1 << 30;

/// Cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
