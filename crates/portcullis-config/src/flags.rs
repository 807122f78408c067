//! The settings of `portcullis run --listen ... --upstream ...`: one listener, one site, one upstream.

use std::net::SocketAddr;
use std::path::PathBuf;

use portcullis_types::Level;

use crate::check::{RECENT_EVENTS_BYTES, ROTATE_AT_BYTES, UPLOAD_FOLDER_BYTES_MAX, cores};
use crate::checked::*;
use crate::cookies::Cookies;
use crate::error::ConfigError;
use crate::hint;
use crate::host::HostPattern;
use crate::http2::Http2;
use crate::https::Https;
use crate::route::Route;
use crate::sinks::EventForm;
use crate::tls::UpstreamTls;
use crate::upstream::{self, Upstream};

/// The address that a proxy without a document listens on unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:8080";

/// The flags of the command line.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen`; [`LISTEN`] by default.
    pub listen: Option<String>,
    /// `--upstream`.
    pub upstream: String,
    /// Those that say what inspects.
    pub policy: PolicyFlags,
    /// `--http-compat`: `strict` or `apache`.
    pub http_compat: Option<String>,
    /// `--events`.
    pub events: Option<PathBuf>,
    /// `--error-log`.
    pub error_log: Option<PathBuf>,
    /// `--plan-cache`.
    pub plan_cache: Option<PathBuf>,
    /// `--workers`.
    pub workers: Option<u32>,
    /// `--worker-affinity`.
    pub worker_affinity: bool,
    /// `--admin`.
    pub admin: Option<String>,
}

impl Config {
    /// The settings the flags stand for, with the defaults of a document.
    pub fn from_flags(flags: Flags) -> Result<Config, ConfigError> {
        let wrong = |message: String, hint: Option<&str>| {
            Err(ConfigError::plain("command line", message, hint.map(str::to_string)))
        };
        let address = |flag: &str, text: &str| {
            text.parse::<SocketAddr>().map_err(|_| {
                let message = format!("{flag}: `{text}` is not an address with a port");
                ConfigError::plain("command line", message, Some("write `127.0.0.1:8080`".to_string()))
            })
        };
        let listen_text = flags.listen.unwrap_or_else(|| LISTEN.to_string());
        let listen = address("--listen", &listen_text)?;
        let admin = flags.admin.as_deref().map(|text| address("--admin", text)).transpose()?;
        let (endpoint, is_tls) = match upstream::parse_url(&flags.upstream) {
            Ok(parsed) => parsed,
            Err(message) => {
                return wrong(format!("--upstream: {message}"), Some("write `http://127.0.0.1:9000`"));
            }
        };
        let policy = flags.policy.policy()?;
        let compat = match flags.http_compat.as_deref() {
            None | Some("strict") => Compat::Strict,
            Some("apache") => Compat::Apache,
            Some(other) => {
                return wrong(
                    format!("--http-compat: unknown value `{other}`"),
                    Some("known here: `strict`, `apache`"),
                );
            }
        };
        if flags.workers.is_some_and(|workers| !(1..=1024).contains(&workers)) {
            return wrong("--workers must be 1 to 1024".to_string(), None);
        }
        let mut upstream = Upstream::new("default".to_string(), vec![endpoint]);
        upstream.tls = is_tls.then(UpstreamTls::default);
        let route = Route::root(0, policy.as_ref().map(|_| 0), Failure::default());
        let listener = Listener {
            name: listen_text,
            address: listen,
            tls: None,
            proxy_protocol: false,
            half_close: false,
            compat,
            http2: Http2 { enabled: false, ..Http2::default() },
            http3: false,
            sites: vec![0],
        };
        if let Some(admin) = admin.filter(|admin| listener.is_on(*admin)) {
            return wrong(
                format!("--admin {admin} takes the address of --listen"),
                Some("give it another port"),
            );
        }
        Ok(Config {
            workers: flags.workers.map_or_else(cores, |workers| workers as usize),
            worker_affinity: flags.worker_affinity,
            admin,
            console: None,
            admin_hosts: Vec::new(),
            oidc: None,
            read_only: false,
            reload_on_change: false,
            listeners: vec![listener],
            sites: vec![Site {
                name: "default".to_string(),
                hosts: vec![HostPattern::Any],
                https: Https::default(),
                cookies: Cookies::default(),
                routes: vec![route],
                rate_limits: Vec::new(),
                access_log: None,
                profiles: Vec::new(),
            }],
            upstreams: vec![upstream],
            acme: None,
            agents: Vec::new(),
            policies: policy.into_iter().collect(),
            client_address: ClientAddress::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            store: Store::default(),
            lookups: Lookups::default(),
            recent_events_bytes: RECENT_EVENTS_BYTES,
            data: None,
            lists: Vec::new(),
            event_store: EventStore::default(),
            events: flags.events.map(|file| Events {
                file,
                rotate_at_bytes: ROTATE_AT_BYTES,
                form: EventForm::Json,
            }),
            event_sinks: Vec::new(),
            event_socket: None,
            event_database: None,
            access_log: None,
            tracing: None,
            error_log: flags.error_log,
            audit_log: AuditLogLimits::default(),
            upload_folder_bytes_max: UPLOAD_FOLDER_BYTES_MAX,
            plan_cache: flags.plan_cache,
            geo_files: Vec::new(),
            limit_store: None,
            unserved: Unserved::default(),
            ban_file: None,
            redact_names: Vec::new(),
            block_page: None,
        })
    }
}

/// The flags that say what is inspected; `run`, `check`, `explain`, `rules` and `evaluate` share them.
#[derive(Clone, Debug, Default)]
pub struct PolicyFlags {
    /// `--mode`: `semantic`, `crs`, `both` or `off`; by default `crs` if rules are given, `semantic` if not.
    pub mode: Option<String>,
    /// `--level`: `balanced` or `strict`.
    pub level: Option<String>,
    /// `--crs`.
    pub crs: Option<PathBuf>,
    /// `--paranoia`.
    pub paranoia: Option<u8>,
    /// `--detect-only`.
    pub detect_only: bool,
    /// `--setup`: files to read before the CRS.
    pub setup: Vec<PathBuf>,
    /// `--rules`: files to read after the CRS.
    pub include: Vec<PathBuf>,
}

impl PolicyFlags {
    /// The policy they stand for; none in mode `off`.
    pub fn policy(self) -> Result<Option<Policy>, ConfigError> {
        let wrong =
            |message: String, hint: Option<String>| Err(ConfigError::plain("command line", message, hint));
        let has_rules = self.crs.is_some() || !self.include.is_empty() || !self.setup.is_empty();
        let mode = match self.mode.as_deref() {
            None if has_rules => Some(Mode::Crs),
            None | Some("semantic") => Some(Mode::Semantic),
            Some("crs") => Some(Mode::Crs),
            Some("both") => Some(Mode::Both),
            Some("off") => None,
            Some(other) => {
                let hint = hint::suggest(other, &["semantic", "crs", "both", "off"]);
                return wrong(format!("--mode: unknown value `{other}`"), Some(hint));
            }
        };
        let level = match self.level.as_deref().map(|name| (name, Level::from_name(name))) {
            None => Level::default(),
            Some((_, Some(level))) if mode.is_some_and(Mode::has_semantic) => level,
            Some((_, Some(_))) => {
                let hint = "add `--mode semantic` or `--mode both`".to_string();
                return wrong(
                    "--level is for the semantic detector, which does not run".to_string(),
                    Some(hint),
                );
            }
            Some((other, None)) => {
                let hint =
                    hint::suggest(other, &Level::ALL.iter().map(|level| level.name()).collect::<Vec<_>>());
                return wrong(format!("--level: unknown value `{other}`"), Some(hint));
            }
        };
        if self.paranoia.is_some_and(|level| !(1..=4).contains(&level)) {
            return wrong("--paranoia must be 1 to 4".to_string(), None);
        }
        match mode {
            Some(mode) if mode.has_rules() && !has_rules => {
                let mode = if mode == Mode::Crs { "crs" } else { "both" };
                let hint = "`portcullis crs install` brings the CRS and names its folder".to_string();
                return wrong(format!("--mode {mode} needs --crs DIR"), Some(hint));
            }
            Some(Mode::Semantic) if has_rules || self.paranoia.is_some() => {
                let hint = "use `--mode both` to have them run beside the semantic detector".to_string();
                return wrong("--mode semantic does not read rules".to_string(), Some(hint));
            }
            _ => {}
        }
        Ok(mode.map(|mode| Policy {
            mode,
            level,
            setup: self.setup,
            crs: self.crs,
            paranoia: self.paranoia,
            include: self.include,
            engine: self.detect_only.then_some(Engine::DetectionOnly),
            ..Policy::default()
        }))
    }
}
