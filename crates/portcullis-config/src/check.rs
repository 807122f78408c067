//! Raw document to [`Config`]: every mistake is reported, not only the first.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::access;
use crate::access_log::{self, AccessLog};
use crate::agents::{self, Agent};
use crate::checked::*;
use crate::compression::{self, Compression};
use crate::convert::timeouts;
use crate::database;
use crate::event_socket;
use crate::lists;
use crate::mistakes::{Found, Mistakes};
use crate::oidc;
use crate::raw;
use crate::sinks::{self, EventForm};
use crate::spanned::Spanned;
use crate::store;
use crate::tracing;
use crate::upstream::{self, Upstream};

mod acme;
mod limits;
mod listeners;
mod policy;
mod routes;
mod sites;

/// Turns the parts of a document into checked settings, and holds what later parts refer to.
pub(crate) struct Checker<'a> {
    mistakes: Mistakes<'a>,
    /// The place of each listener's name.
    listener_spans: Vec<Range<usize>>,
    /// By listener: where it asks for certificates by ACME, if it does, and whether it names them.
    acme_spans: Vec<Option<(Range<usize>, bool)>>,
    upstreams: Vec<Upstream>,
    agents: Vec<Agent>,
    policies: Vec<Policy>,
    /// At sites that do not say it themselves.
    access: Option<access::Access>,
    ban: Option<access::Ban>,
    available: access::Available,
    compression: Option<Compression>,
    access_log: Option<AccessLog>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(base: &'a Path) -> Self {
        Checker {
            mistakes: Mistakes::new(base),
            listener_spans: Vec::new(),
            acme_spans: Vec::new(),
            upstreams: Vec::new(),
            agents: Vec::new(),
            policies: Vec::new(),
            access: None,
            ban: None,
            available: access::Available::default(),
            compression: None,
            access_log: None,
        }
    }

    /// The checked settings; meaningless when there are mistakes.
    pub(crate) fn config(&mut self, document: raw::Document) -> Config {
        let span = |text: Option<&Spanned<String>>| text.map_or(0..0, |text| text.span.clone());
        let admin_span = span(document.admin.as_ref().and_then(|admin| admin.listen.as_ref()));
        let console_span = span(document.admin.as_ref().and_then(|admin| admin.console.as_ref()));
        let read_only = document.admin.as_ref().is_some_and(|admin| admin.read_only);
        let (admin, console, admin_hosts, oidc) = match document.admin {
            Some(admin) => {
                let hosts = self.admin_hosts(&admin.hosts);
                let oidc = oidc::check(&mut self.mistakes, admin.oidc, &hosts);
                let listen = admin.listen.and_then(|text| self.address(&text));
                (listen, admin.console.and_then(|text| self.address(&text)), hosts, oidc)
            }
            None => (None, None, Vec::new(), None),
        };
        self.upstreams = upstream::check::check(&mut self.mistakes, document.upstreams);
        self.agents = agents::check(&mut self.mistakes, document.agents);
        let client_address = self.client_address(document.client_address);
        self.access_log = access_log::check(&mut self.mistakes, document.access_log.as_ref(), None);
        let limit_store = access::limit_store(&mut self.mistakes, document.limit_store);
        let geo_files: Vec<PathBuf> =
            document.geo.files.iter().map(|file| self.mistakes.path(file)).collect();
        let lists = lists::check(&mut self.mistakes, document.lists);
        self.available = access::Available {
            geo: !geo_files.is_empty(),
            limit_store: limit_store.is_some(),
            lists: lists.iter().map(|list| list.name.clone()).collect(),
        };
        self.access =
            document.access.as_ref().map(|raw| access::access(&mut self.mistakes, raw, &self.available));
        self.ban = access::ban::check(&mut self.mistakes, document.ban.as_ref(), "all", None);
        self.compression = compression::check(&mut self.mistakes, document.compression.as_ref(), None);
        let mut listeners = self.listeners(document.listeners, &client_address);
        self.own_addresses(
            admin.map(|at| (at, admin_span)),
            console.map(|at| (at, console_span)),
            &listeners,
        );
        let sites = self.sites(document.sites, &mut listeners);
        let acme = crate::acme::account(&mut self.mistakes, document.acme);
        let asked = std::mem::take(&mut self.acme_spans);
        self::acme::names(&mut self.mistakes, &mut listeners, &sites, asked, acme.is_some());
        for (listener, span) in listeners.iter().zip(std::mem::take(&mut self.listener_spans)) {
            if listener.sites.is_empty() && !sites.is_empty() {
                self.mistakes.wrong(span, format!("the listener `{}` serves no site", listener.name));
            }
        }
        let event_store = self.event_store(document.events.as_ref());
        let event_socket = event_socket::check(&mut self.mistakes, document.events.as_ref());
        let mut raw_events = document.events;
        let read_from = raw_events.as_mut().and_then(|events| events.read_from.take());
        let (events, event_sinks) = self.events(raw_events);
        Config {
            workers: match document.workers {
                Some(workers) if (1..=1024).contains(&*workers) => workers.value as usize,
                Some(workers) => {
                    self.mistakes.wrong(workers.span, "workers must be 1 to 1024".to_string());
                    1
                }
                None => cores(),
            },
            worker_affinity: document.worker_affinity,
            admin,
            console,
            admin_hosts,
            oidc,
            read_only,
            reload_on_change: document.reload_on_change,
            listeners,
            sites,
            upstreams: std::mem::take(&mut self.upstreams),
            acme,
            agents: std::mem::take(&mut self.agents),
            policies: std::mem::take(&mut self.policies),
            client_address,
            timeouts: timeouts(&document.timeouts),
            limits: limits::check(&mut self.mistakes, document.limits),
            store: store::check(&mut self.mistakes, document.store),
            lookups: self.lookups(document.lookups),
            recent_events_bytes: document.recent_events.map_or(RECENT_EVENTS_BYTES, |size| size.0),
            data: document.data.map(|data| self.mistakes.path(&data.folder)),
            lists,
            event_store,
            event_socket,
            event_sinks: sinks::check::check(&mut self.mistakes, event_sinks),
            event_database: database::check(&mut self.mistakes, read_from),
            events,
            access_log: self.access_log.take(),
            tracing: tracing::check(&mut self.mistakes, document.tracing),
            error_log: document.error_log.map(|log| self.mistakes.path(&log.file)),
            audit_log: self.audit_log(&document.audit_log),
            upload_folder_bytes_max: document
                .uploads
                .folder_limit
                .map_or(UPLOAD_FOLDER_BYTES_MAX, |size| size.0),
            plan_cache: document.plan_cache.map(|file| self.mistakes.path(&file)),
            geo_files,
            limit_store,
            unserved: Unserved { access: self.access.take(), ban: self.ban.take() },
            ban_file: document.ban_file.map(|file| self.mistakes.path(&file)),
            redact_names: document.redact.names,
            block_page: document.block_page.file.map(|file| self.mistakes.path(&file)),
        }
    }

    /// The addresses of the admin listener and of the console, which need ones of their own.
    fn own_addresses(
        &mut self,
        admin: Option<(SocketAddr, Range<usize>)>,
        console: Option<(SocketAddr, Range<usize>)>,
        listeners: &[Listener],
    ) {
        for (what, own) in [("admin listener", &admin), ("console", &console)] {
            if let Some((address, span)) = own
                && let Some(other) = listeners.iter().find(|other| other.is_on(*address))
            {
                self.mistakes.wrong_with_hint(
                    span.clone(),
                    format!("the {what} {address} takes the address of the listener `{}`", other.name),
                    "give it another port".to_string(),
                );
            }
        }
        if let (Some((admin, _)), Some((console, span))) = (admin, console)
            && admin == console
        {
            self.mistakes.wrong_with_hint(
                span,
                "the console takes the address of the admin listener".to_string(),
                "give it another port".to_string(),
            );
        }
    }

    /// The event file, and the sinks beside it.
    fn events(&mut self, raw: Option<raw::Events>) -> (Option<Events>, Vec<Spanned<raw::Sink>>) {
        let Some(raw) = raw else { return (None, Vec::new()) };
        let Some(file) = &raw.file else {
            let spans = [raw.rotate_at.map(|size| size.span), raw.format.map(|form| form.span)];
            for span in spans.into_iter().flatten() {
                let hint = "add `file = \"events.jsonl\"`".to_string();
                self.mistakes.wrong_with_hint(span, "there is no event file".to_string(), hint);
            }
            return (None, raw.sinks);
        };
        let events = Events {
            file: self.mistakes.path(file),
            rotate_at_bytes: raw.rotate_at.map_or(ROTATE_AT_BYTES, |size| size.value.0),
            form: raw.format.map_or(EventForm::Json, |form| sinks::check::event_form(form.value)),
        };
        (Some(events), raw.sinks)
    }

    fn audit_log(&mut self, raw: &raw::AuditLog) -> AuditLogLimits {
        let default = AuditLogLimits::default();
        if let Some(number) = raw.files.as_ref().filter(|number| number.value == 0) {
            self.mistakes.wrong(number.span.clone(), "files must be at least 1".to_string());
        }
        AuditLogLimits {
            rotate_at_bytes: raw.rotate_at.map_or(default.rotate_at_bytes, |size| size.0),
            files_max: raw.files.as_ref().map_or(default.files_max, |number| number.value.into()),
            stored_bytes_max: raw.stored.map_or(default.stored_bytes_max, |size| size.0),
            queue_bytes_max: raw.queue.map_or(default.queue_bytes_max, |size| size.0),
            shows_secrets: raw.secrets == Some(raw::AuditSecrets::Shown),
        }
    }

    /// `keeps`: requests are kept.
    fn capture(&mut self, raw: &raw::Capture, keeps: bool) -> Capture {
        let (share, span) = (raw.share.value, raw.share.span.clone());
        if !(1e-9..=1.0).contains(&share) {
            self.mistakes.wrong(span, "share must be above 0 (at least 1e-9) and at most 1".to_string());
        } else if !keeps {
            self.mistakes.wrong_with_hint(
                span,
                "a sample keeps requests, and `keep_request` is 0".to_string(),
                "give `events.keep_request` a size, or remove `capture`".to_string(),
            );
        }
        if let Some(size) = raw.keep_bytes.as_ref().filter(|size| size.0 < EventStore::KEEP_BYTES_MIN) {
            self.mistakes.wrong(size.span.clone(), "keep_bytes must be at least 64MiB".to_string());
        }
        let keep_bytes = raw.keep_bytes.as_ref().map_or(Capture::KEEP_BYTES, |size| size.0);
        Capture { of_billion: (share * 1e9).round() as u32, keep_bytes }
    }

    fn event_store(&mut self, raw: Option<&raw::Events>) -> EventStore {
        let default = EventStore::default();
        let Some(raw) = raw else { return default };
        if let Some(size) = raw.keep_bytes.as_ref().filter(|size| size.0 < EventStore::KEEP_BYTES_MIN) {
            self.mistakes.wrong(size.span.clone(), "keep_bytes must be at least 64MiB".to_string());
        }
        if let Some(size) =
            raw.keep_request.as_ref().filter(|size| size.0 > EventStore::KEEP_REQUEST_BYTES_MAX)
        {
            self.mistakes.wrong(size.span.clone(), "keep_request must be at most 1MiB".to_string());
        }
        let keeps = raw.keep_request.as_ref().is_none_or(|size| size.0 > 0);
        EventStore {
            keep: raw.keep.as_ref().map_or(default.keep, |time| time.0),
            keep_bytes: raw.keep_bytes.as_ref().map_or(default.keep_bytes, |size| size.0),
            keep_rollups: raw.keep_rollups.as_ref().map_or(default.keep_rollups, |time| time.0),
            coalesce_above: raw.coalesce_above.unwrap_or(default.coalesce_above),
            keep_request_bytes: raw.keep_request.as_ref().map_or(default.keep_request_bytes, |size| {
                size.0.min(EventStore::KEEP_REQUEST_BYTES_MAX) as usize
            }),
            capture: raw.capture.as_ref().map(|capture| self.capture(capture, keeps)),
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
                    self.mistakes.wrong_with_hint(
                        text.span,
                        message,
                        "write `192.0.2.53` or `192.0.2.53:53`".to_string(),
                    );
                }
            }
        }
        let entries = match raw.dns_cache {
            Some(number) if *number > 10_000_000 => {
                self.mistakes.wrong(number.span, "dns_cache must be 10000000 at most".to_string());
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

    /// Names without ports, as they are compared.
    fn admin_hosts(&mut self, raw: &[Spanned<String>]) -> Vec<String> {
        let mut hosts = Vec::with_capacity(raw.len());
        for name in raw {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if name.is_empty() || !name.bytes().all(fits) {
                self.mistakes
                    .wrong(name.span.clone(), format!("`{}` is not a host name without a port", name.value));
            }
            hosts.push(name.to_ascii_lowercase());
        }
        hosts
    }

    /// Returns the mistakes that were found.
    pub(crate) fn into_mistakes(self) -> Vec<Found> {
        self.mistakes.into_found()
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
