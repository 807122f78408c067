//! The configuration document: raw text to checked settings.
//!
//! ```text
//! TOML or YAML text ──> tree of values with places ──> raw document ──> Config
//!                syntax errors            unknown keys, types    references, ranges
//!                        └────────────────────┴───────────────────────┴──> ConfigError: file:line:column, line, hint
//! ```
//!
//! [`Config`] is what the rest of the product sees: code that has one need not check again. All mistakes are
//! reported at once; only where whole tables cannot be understood are references not checked. The crate reads
//! one file, the document; it does not open the files the document names and knows nothing of sockets, rules
//! or requests. Every key has a behaviour, or it does not exist.
//!
//! ```
//! use portcullis_config::{Config, Format};
//!
//! let text = r#"
//!     [[listeners]]
//!     address = "127.0.0.1:8080"
//!     [[sites]]
//!     name = "shop"
//!     hosts = ["*"]
//!     upstream = "app"
//!     [upstreams.app]
//!     endpoints = ["http://127.0.0.1:9000"]
//! "#;
//! let config = Config::parse(text, Format::Toml, "portcullis.toml").unwrap();
//! assert_eq!(config.upstreams[0].endpoints[0].port, 9000);
//!
//! let error = Config::parse(&text.replace("hosts", "host"), Format::Toml, "portcullis.toml").unwrap_err();
//! assert!(error.to_string().starts_with("portcullis.toml:6:5: unknown key `host`"));
//! ```

#![warn(clippy::wildcard_enum_match_arm)]

use std::path::Path;

mod access;
mod access_log;
mod acme;
mod agents;
mod check;
mod checked;
mod choice;
mod compression;
mod convert;
mod cookies;
mod database;
mod de;
mod declared;
mod discovery;
mod error;
mod event_socket;
mod exclusion;
mod exclusion_id;
mod exclusion_width;
mod fields;
mod flags;
mod health;
mod hint;
mod host;
mod http2;
mod https;
mod learning;
mod lists;
mod mistakes;
mod node;
mod oidc;
mod policy;
mod profile;
mod protocol;
mod raw;
mod receiver;
mod route;
mod semantic;
mod sinks;
mod spanned;
mod store;
mod survey;
mod syntax;
mod template;
mod tls;
mod tracing;
mod units;
mod upstream;
mod values;

pub use access::{
    Access, Ban, Clients, KeyPart, LimitStore, Points, Prefixes, RateLimit, RefuseAction, Unavailable,
};
pub use access_log::{AccessLog, AccessLogFormat};
pub use acme::Acme;
pub use agents::{Agent, AgentAddress, AgentUse, ResponseShown};
pub use checked::*;
pub use choice::{InspectedRoute, NoRoute};
pub use compression::{Coding, Compression, CompressionLevel, PUBLIC_TYPES};
pub use cookies::{CookieFlags, Cookies};
pub use database::{EventDatabase, Password};
pub use declared::{DeclaredApi, GraphqlSettings};
pub use discovery::Discovery;
pub use error::{ConfigError, Mistake};
pub use event_socket::EventSocket;
pub use exclusion::exclusion_end;
pub use exclusion_id::{ExclusionIdentity, exclusion_id};
pub use exclusion_width::{Width, exclusion_width, is_of_field, score_rule};
pub use flags::{Flags, LISTEN, PolicyFlags};
pub use health::{Health, Probe};
pub use host::HostPattern;
pub use http2::Http2;
pub use https::Https;
pub use learning::{LearnedFields, OpenedKinds, Unusual};
pub use lists::{FetchedList, List, ListFormat, ListSource};
pub use oidc::{Oidc, OidcRoles};
pub use policy::RuleSource;
pub use portcullis_balance::{Balance, BreakerSettings, BudgetSettings, EjectionSettings, Thresholds};
pub use portcullis_types::{Class, Level, Place};
pub use profile::{
    Answer, Profile, ProfileChange, ProfileExclusion, ProfileField, ProfileRequest, Recognised, Release,
    Sign, SignKind, Version, profile, profiles, recognise,
};
pub use protocol::UpstreamProtocol;
pub use route::{HeaderChanges, PathMatch, Route, RouteTarget};
pub use sinks::{
    Batch, ClickHouse, EventForm, EventSink, JsonTemplate, OtlpLogs, Placeholder, Secret, SinkTarget, Syslog,
    SyslogAddress, TemplatePart, Webhook,
};
pub use survey::Survey;
pub use template::{ClientCertField, Part, Template};
pub use tls::{CertificateFiles, ClientAuth, ListenerTls, TlsVersion, UpstreamTls};
pub use tracing::{TraceParent, Tracing};
pub use upstream::{Endpoint, EndpointLimits, HashBy, Resolve, Retry, Upstream};

/// The syntax of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.toml`.
    Toml,
    /// `.yaml`, `.yml`.
    Yaml,
}

impl Format {
    /// The format an extension stands for.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "toml" => Some(Format::Toml),
            "yaml" | "yml" => Some(Format::Yaml),
            _ => None,
        }
    }
}

impl Config {
    /// Reads and checks the document at `path`; its extension says what it is.
    pub fn from_file(path: &Path) -> Result<Config, ConfigError> {
        Survey::of_file(path)?.into_config()
    }

    /// Checks a document. `name` is what errors call it; relative paths in it start from the folder of that
    /// name.
    pub fn parse(text: &str, format: Format, name: &str) -> Result<Config, ConfigError> {
        Survey::of_text(text.to_string(), format, name.to_string())?.into_config()
    }
}

/// What a document says, without a check of its keys: the members of its tables by name.
pub fn json_value(text: &str, format: Format, name: &str) -> Result<serde_json::Value, ConfigError> {
    let tree = syntax::parse(text, format).map_err(|error| error.in_text(text, name))?;
    Ok(tree.value.into_json())
}

/// Bytes of a document: many times what a person writes.
const DOCUMENT_BYTES_MAX: u64 = 32 << 20;

/// The text of a document, its syntax, and its name in errors.
#[derive(Clone, Debug)]
pub struct DocumentText {
    /// The text.
    pub text: String,
    format: Format,
    name: String,
}

impl DocumentText {
    /// Reads the document at `path`.
    pub fn read(path: &Path) -> Result<DocumentText, ConfigError> {
        let document = DocumentText::of_path(path, String::new())?;
        let text = portcullis_files::read_text(path, DOCUMENT_BYTES_MAX).map_err(|error| {
            let why = if error.kind() == std::io::ErrorKind::NotFound {
                "there is no such file".to_string()
            } else if error.kind() == std::io::ErrorKind::PermissionDenied {
                "the user that Portcullis runs as may not read it".to_string()
            } else {
                format!("cannot read it: {error}")
            };
            ConfigError::plain(&document.name, why, None)
        })?;
        Ok(DocumentText { text, ..document })
    }

    /// This text in place of that of the document at `path`.
    pub fn of_path(path: &Path, text: String) -> Result<DocumentText, ConfigError> {
        let name = path.display().to_string();
        let Some(format) = Format::of(path) else {
            let hint = "name it .toml, .yaml or .yml".to_string();
            return Err(ConfigError::plain(
                &name,
                "the name does not say whether the file is TOML or YAML".to_string(),
                Some(hint),
            ));
        };
        Ok(DocumentText { text, format, name })
    }

    /// Checks it.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::parse(&self.text, self.format, &self.name)
    }
}

/// The JSON schema of the document, pretty-printed, with a final line break.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(raw::Document);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
