//! The configuration document: raw text to checked settings.
//!
//! ```text
//! TOML or YAML text ──> tree of values with places ──> raw document ──> Config
//!                syntax errors            unknown keys, types    references, ranges
//!                        └────────────────────┴───────────────────────┴──> ConfigError: file:line:column, line, hint
//! ```
//!
//! [`Config`] is what the rest of the product sees: whoever holds one need not check again. Mistakes of the last step
//! are all reported at once. The crate reads one file, the document; it does not open the files the document names
//! and knows nothing of sockets, rules or requests. Every key has a behaviour, or it does not exist.
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

use std::path::Path;

use serde::Deserialize;

mod access;
mod access_log;
mod acme;
mod agents;
mod check;
mod checked;
mod compression;
mod convert;
mod de;
mod error;
mod fields;
mod flags;
mod health;
mod hint;
mod http2;
mod https;
mod node;
mod policy;
mod protocol;
mod raw;
mod route;
mod semantic;
mod spanned;
mod store;
mod syntax;
mod template;
mod tls;
mod tracing;
mod units;
mod upstream;

pub use access::{
    Access, Ban, Clients, KeyPart, LimitStore, Points, Prefixes, RateLimit, RefuseAction, Unavailable,
};
pub use acme::Acme;
pub use agents::{Agent, AgentAddress, AgentUse, ResponseShown};
pub use checked::*;
pub use compression::{Coding, Compression, CompressionLevel, PUBLIC_TYPES};
pub use error::{ConfigError, Mistake};
pub use flags::{Flags, LISTEN, PolicyFlags};
pub use health::{Health, Probe};
pub use http2::Http2;
pub use https::Https;
pub use policy::RuleSource;
pub use portcullis_balance::{Balance, BreakerSettings, BudgetSettings, EjectionSettings, Thresholds};
pub use portcullis_types::{Class, Level, Place};
pub use protocol::UpstreamProtocol;
pub use route::{HeaderChanges, PathMatch, Route, RouteTarget};
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
        let name = path.display().to_string();
        let Some(format) = Format::of(path) else {
            let hint = "name it .toml, .yaml or .yml".to_string();
            return Err(ConfigError::plain(
                &name,
                "neither TOML nor YAML by its name".to_string(),
                Some(hint),
            ));
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::plain(&name, format!("cannot read it: {error}"), None))?;
        Config::parse(&text, format, &name)
    }

    /// Checks a document. `name` is what errors call it; relative paths in it start from the folder of that name.
    pub fn parse(text: &str, format: Format, name: &str) -> Result<Config, ConfigError> {
        let tree = syntax::parse(text, format).map_err(|error| {
            let span = error.offset..error.offset + 1;
            ConfigError::new(vec![Mistake::at(name, text, span, error.message, None)])
        })?;
        let document = raw::Document::deserialize(&tree).map_err(|error| {
            let span = error.span.unwrap_or(0..0);
            ConfigError::new(vec![Mistake::at(name, text, span, error.message, error.hint)])
        })?;
        let base = Path::new(name).parent().unwrap_or(Path::new(""));
        let mut checker = check::Checker::new(base);
        let config = checker.config(document);
        if checker.mistakes.is_empty() {
            return Ok(config);
        }
        let mistakes = checker.mistakes.into_iter();
        let mistakes =
            mistakes.map(|(span, message, hint)| Mistake::at(name, text, span, message, hint)).collect();
        Err(ConfigError::new(mistakes))
    }
}

/// The JSON schema of the document, pretty-printed, with a final line break.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(raw::Document);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
