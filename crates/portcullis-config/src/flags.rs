//! The settings of `portcullis run --listen ... --upstream ...`: one listener, one site, one upstream.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::check::{ROTATE_AT_BYTES, UPLOAD_FOLDER_BYTES_MAX, cores};
use crate::checked::*;
use crate::error::ConfigError;
use crate::upstream;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--listen`.
    pub listen: String,
    /// `--upstream`.
    pub upstream: String,
    /// `--mode`: `crs` or `off`; by default `crs` if a CRS folder is given.
    pub mode: Option<String>,
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
    /// `--http-compat`: `strict` or `apache`.
    pub http_compat: Option<String>,
    /// `--events`.
    pub events: Option<PathBuf>,
    /// `--error-log`.
    pub error_log: Option<PathBuf>,
    /// `--workers`.
    pub workers: Option<u32>,
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
        let listen = address("--listen", &flags.listen)?;
        let admin = flags.admin.as_deref().map(|text| address("--admin", text)).transpose()?;
        let (endpoint, is_tls) = match upstream::parse_url(&flags.upstream) {
            Ok(parsed) => parsed,
            Err(message) => {
                return wrong(format!("--upstream: {message}"), Some("write `http://127.0.0.1:9000`"));
            }
        };
        let has_rules = flags.crs.is_some() || !flags.include.is_empty() || !flags.setup.is_empty();
        let inspects = match flags.mode.as_deref() {
            None => has_rules,
            Some("off") => false,
            Some("crs") if has_rules => true,
            Some("crs") => {
                return wrong(
                    "--mode crs needs --crs DIR".to_string(),
                    Some("`make crs` lays the CRS out in .portcullis/crs"),
                );
            }
            Some(mode) => {
                return wrong(format!("--mode: unknown value `{mode}`"), Some("known here: `crs`, `off`"));
            }
        };
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
        if flags.paranoia.is_some_and(|level| !(1..=4).contains(&level)) {
            return wrong("--paranoia is 1 to 4".to_string(), None);
        }
        if flags.workers.is_some_and(|workers| !(1..=1024).contains(&workers)) {
            return wrong("--workers must be 1 to 1024".to_string(), None);
        }
        let policies = match inspects {
            true => vec![Policy {
                setup: flags.setup,
                crs: flags.crs,
                paranoia: flags.paranoia,
                include: flags.include,
                engine: flags.detect_only.then_some(Engine::DetectionOnly),
                ..Policy::default()
            }],
            false => Vec::new(),
        };
        let mut upstream = Upstream::new("default".to_string(), vec![endpoint]);
        upstream.tls = is_tls.then(UpstreamTls::default);
        let route = Route {
            name: "/".to_string(),
            path: "/".to_string(),
            upstream: 0,
            policy: inspects.then_some(0),
            failure: Failure::default(),
        };
        Ok(Config {
            workers: flags.workers.map_or_else(cores, |workers| workers as usize),
            admin,
            listeners: vec![Listener {
                name: flags.listen,
                address: listen,
                tls: None,
                proxy_protocol: false,
                compat,
                sites: vec![0],
            }],
            sites: vec![Site {
                name: "default".to_string(),
                hosts: vec![HostPattern::Any],
                routes: vec![route],
            }],
            upstreams: vec![upstream],
            policies,
            client_address: ClientAddress::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            store: Store::default(),
            lookups: Lookups::default(),
            events: flags.events.map(|file| Events { file, rotate_at_bytes: ROTATE_AT_BYTES }),
            error_log: flags.error_log,
            audit_log: AuditLogLimits::default(),
            upload_folder_bytes_max: UPLOAD_FOLDER_BYTES_MAX,
            redact_names: Vec::new(),
            block_page: None,
        })
    }
}
