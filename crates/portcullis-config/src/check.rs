//! Raw document to [`Config`]: every mistake is reported, not only the first.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::access;
use crate::access_log;
use crate::acme;
use crate::agents::{self, Agent};
use crate::checked::*;
use crate::compression::{self, Compression};
use crate::convert::timeouts;
use crate::raw;
use crate::spanned::Spanned;
use crate::store;
use crate::tracing;
use crate::upstream::{self, Upstream};

mod limits;
mod listeners;
mod policy;
mod sites;

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
        let admin_span = document.admin.as_ref().map_or(0..0, |admin| admin.listen.span.clone());
        let (admin, admin_hosts) = match document.admin {
            Some(admin) => (self.address(&admin.listen), self.admin_hosts(&admin.hosts)),
            None => (None, Vec::new()),
        };
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
        if let Some(admin) = admin
            && let Some(other) = listeners.iter().find(|other| other.is_on(admin))
        {
            self.wrong_with_hint(
                admin_span,
                format!("the admin listener {admin} takes the address of the listener `{}`", other.name),
                "give it another port".to_string(),
            );
        }
        let sites = self.sites(document.sites, &mut listeners);
        let acme = acme::account(self, document.acme);
        let asked = std::mem::take(&mut self.acme_spans);
        acme::names(self, &mut listeners, &sites, asked, acme.is_some());
        for (listener, span) in listeners.iter().zip(std::mem::take(&mut self.listener_spans)) {
            if listener.sites.is_empty() && !sites.is_empty() {
                self.wrong(span, format!("the listener `{}` serves no site", listener.name));
            }
        }
        Config {
            workers: match document.workers {
                Some(workers) if (1..=1024).contains(&*workers) => workers.value as usize,
                Some(workers) => {
                    self.wrong(workers.span, "workers must be 1 to 1024".to_string());
                    1
                }
                None => cores(),
            },
            worker_affinity: document.worker_affinity,
            admin,
            admin_hosts,
            reload_on_change: document.reload_on_change,
            listeners,
            sites,
            upstreams: std::mem::take(&mut self.upstreams),
            acme,
            agents: std::mem::take(&mut self.agents),
            policies: std::mem::take(&mut self.policies),
            client_address,
            timeouts: timeouts(&document.timeouts),
            limits: limits::check(self, document.limits),
            store: store::check(self, document.store),
            lookups: self.lookups(document.lookups),
            recent_events_bytes: document.recent_events.map_or(RECENT_EVENTS_BYTES, |size| size.0),
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

    /// Names without ports, as they are compared.
    fn admin_hosts(&mut self, raw: &[Spanned<String>]) -> Vec<String> {
        let mut hosts = Vec::with_capacity(raw.len());
        for name in raw {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if name.is_empty() || !name.bytes().all(fits) {
                self.wrong(name.span.clone(), format!("`{}` is not a host name without a port", name.value));
            }
            hosts.push(name.to_ascii_lowercase());
        }
        hosts
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }
}

/// A folder of kept uploads grows to this size unless told otherwise.
pub(crate) const UPLOAD_FOLDER_BYTES_MAX: u64 = 1 << 30;
/// Bytes of the last events that are kept unless told otherwise.
pub(crate) const RECENT_EVENTS_BYTES: u64 = 4 << 20;
/// The event file is rotated at this size unless told otherwise.
pub(crate) const ROTATE_AT_BYTES: u64 = 1 << 30;

/// Cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
