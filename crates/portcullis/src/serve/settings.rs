//! Arguments of `portcullis serve`: which integration, what it inspects with, and what it leaves behind.

use std::net::SocketAddr;
use std::path::PathBuf;

use portcullis_config::{Config, Failure as FailurePolicy, Flags, Network};
use portcullis_exchange::IntegrationKind;
use portcullis_serve::{HeaderFamily, Protocol};

use crate::outcome::Failure;
use crate::policy_args::{RuleFlags, inspected_route};

/// Arguments of `portcullis serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The integration.
    #[command(subcommand)]
    pub integration: Integration,
}

/// The integrations.
#[derive(Debug, clap::Subcommand)]
pub enum Integration {
    /// Answer subrequests to /check: nginx auth_request, Caddy forward_auth, Traefik ForwardAuth. No response
    /// is seen, and a request body only if it is sent along
    Check {
        /// The headers that your server sets: x-original (nginx) or x-forwarded (Caddy, Traefik); by default
        /// those that are there, and requests with both are refused
        #[arg(long, value_name = "FAMILY")]
        headers: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Answer HAProxy over SPOP; configurations for coraza-spoa work as they are. Bodies are cut at HAProxy's
    /// tune.bufsize
    Spop {
        /// HAProxy sends responses, too: exchanges wait a minute for theirs
        #[arg(long)]
        responses: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Answer Envoy's external authorization over gRPC: the request, with the part of its body that Envoy
    /// buffers
    ExtAuthz {
        #[command(flatten)]
        common: Common,
    },
    /// Answer Envoy's external processing over gRPC: requests and responses
    ExtProc {
        #[command(flatten)]
        common: Common,
    },
}

impl Integration {
    /// The arguments that all of them have.
    pub fn common(&self) -> &Common {
        match self {
            Integration::Check { common, .. }
            | Integration::Spop { common, .. }
            | Integration::ExtAuthz { common }
            | Integration::ExtProc { common } => common,
        }
    }

    /// Its name in events and metrics.
    pub fn kind(&self) -> IntegrationKind {
        match self {
            Integration::Check { .. } => IntegrationKind::ForwardAuth,
            Integration::Spop { .. } => IntegrationKind::Spop,
            Integration::ExtAuthz { .. } => IntegrationKind::ExtAuthz,
            Integration::ExtProc { .. } => IntegrationKind::ExtProc,
        }
    }

    /// The protocol of its connections.
    pub fn protocol(&self) -> Result<Protocol, Failure> {
        match self {
            Integration::Check { headers, .. } => {
                let headers = match headers.as_deref() {
                    None => HeaderFamily::Either,
                    Some("x-original") => HeaderFamily::Original,
                    Some("x-forwarded") => HeaderFamily::Forwarded,
                    Some(other) => {
                        return Err(Failure::usage(format_args!(
                            "--headers: unknown value `{other}`; known here: `x-original`, `x-forwarded`"
                        )));
                    }
                };
                Ok(Protocol::Check { headers })
            }
            Integration::Spop { responses, .. } => Ok(Protocol::Spop { responses: *responses }),
            Integration::ExtAuthz { .. } => Ok(Protocol::ExtAuthz),
            Integration::ExtProc { .. } => Ok(Protocol::ExtProc),
        }
    }
}

/// Arguments of every integration.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// Address or network that may ask and whose word on clients is believed; may be given several times; by
    /// default this machine, and trusted_proxies of the document
    #[arg(long, value_name = "NETWORK")]
    trust: Vec<String>,
    /// Take a policy, and everything else, from this configuration document (.toml, .yaml); its listeners and
    /// upstreams are not used
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["mode", "level", "crs", "paranoia", "detect_only", "setup", "rules", "events",
            "error_log", "plan_cache", "workers", "admin"],
    )]
    config: Option<PathBuf>,
    /// The site whose policy it is; needed if the document has several policies
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,
    /// The route of that site; by default the first one with a policy
    #[arg(long, value_name = "NAME", requires = "site")]
    route: Option<String>,
    #[command(flatten)]
    rules: RuleFlags,
    /// Refuse a request (413) of whose body only a part was sent; by default the part is inspected, and an
    /// event tells of it
    #[arg(long)]
    pub refuse_cut_bodies: bool,
    /// Write events to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write each match to this file in the form of ModSecurity
    #[arg(long, value_name = "FILE")]
    error_log: Option<PathBuf>,
    /// Cache rule analysis in this file for faster restarts
    #[arg(long, value_name = "FILE")]
    plan_cache: Option<PathBuf>,
    /// Threads; by default one for each core
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    /// Address and port of /metrics, /readyz and /reload
    #[arg(long, value_name = "ADDR")]
    admin: Option<String>,
    /// Folder of the event store; takes the place of `data.folder`
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Send events to this socket of a `portcullis run` (events.listen of its document), which stores and
    /// shows them; no event store is opened here
    #[arg(long, value_name = "SOCKET", conflicts_with = "data")]
    pub events_socket: Option<PathBuf>,
    /// Folder of the socket for `portcullis events`; by default that of this user, or of the service
    #[arg(long, value_name = "DIR")]
    pub runtime_folder: Option<PathBuf>,
}

/// The settings that a start or a reload has read.
pub struct Chosen {
    pub config: Config,
    /// Index of the policy.
    pub policy: usize,
    pub site: String,
    pub route: String,
    pub failure: FailurePolicy,
}

impl Common {
    /// True if the settings come from a document.
    pub fn has_document(&self) -> bool {
        self.config.is_some()
    }

    /// The address to listen on.
    pub fn address(&self) -> Result<SocketAddr, Failure> {
        self.listen.parse().map_err(|_| {
            let text = &self.listen;
            Failure::usage(format_args!(
                "--listen: `{text}` is not an address with a port; write `127.0.0.1:9002`"
            ))
        })
    }

    /// The networks that are trusted.
    pub fn trusted(&self, config: &Config) -> Result<Vec<Network>, Failure> {
        let texts = match self.trust.is_empty() {
            true => vec!["127.0.0.0/8".to_owned(), "::1".to_owned()],
            false => self.trust.clone(),
        };
        let read = |text: &String| {
            text.parse::<Network>().map_err(|error| Failure::usage(format_args!("--trust: {error}")))
        };
        let mut networks = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        networks.extend(config.client_address.trusted_proxies.iter().copied());
        Ok(networks)
    }

    /// Reads the settings.
    pub fn read(&self) -> Result<Chosen, Failure> {
        let mut config = match &self.config {
            Some(path) => Config::from_file(path).map_err(Failure::failed)?,
            None => Config::from_flags(self.flags()).map_err(Failure::usage)?,
        };
        if let Some(data) = &self.data {
            config.data = Some(data.clone());
        }
        if self.events_socket.is_some() {
            // The store is that of the process behind the socket, which may have the same document.
            config.data = None;
        }
        let found = inspected_route(&config, self.site.as_deref(), self.route.as_deref())?;
        let (policy, failure) = (found.policy, found.failure);
        let (site, route) = (found.site.to_owned(), found.route.to_owned());
        Ok(Chosen { config, policy, site, route, failure })
    }

    fn flags(&self) -> Flags {
        Flags {
            listen: Some(self.listen.clone()),
            // Nothing is forwarded; settings have an upstream all the same.
            upstream: "http://127.0.0.1:9".to_owned(),
            policy: self.rules.policy(),
            events: self.events.clone(),
            error_log: self.error_log.clone(),
            plan_cache: self.plan_cache.clone(),
            workers: self.workers,
            admin: self.admin.clone(),
            ..Flags::default()
        }
    }
}
