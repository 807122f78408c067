//! Certificates by ACME (RFC 8555): the account at the authority, and the names of each listener.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::host::HostPattern;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// Let's Encrypt.
const DIRECTORY: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// The longest DNS name (RFC 1035, 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// The account that certificates are ordered with by ACME (RFC 8555).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// URL of the authority's directory. Default: `https://acme-v02.api.letsencrypt.org/directory`, Let's
    /// Encrypt.
    pub directory: Option<Spanned<String>>,
    /// E-mail addresses that the authority may write to. Default: none.
    #[serde(default)]
    pub contact: Vec<Spanned<String>>,
    /// The authority's terms of service are agreed to; `true`, or there is no account.
    pub terms_agreed: Option<Spanned<bool>>,
    /// Folder for the key of the account and for certificates with their keys; nobody else may read it.
    pub state: String,
    /// PEM file with the only authorities to trust when the directory is asked. Default: those of the system.
    pub ca: Option<String>,
}

/// Which certificates a listener has by ACME.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawListener {
    /// Names, each with a certificate of its own. Default: the exact hosts of the listener's sites.
    pub domains: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The account that certificates are ordered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acme {
    /// URL of the authority's directory, `https`.
    pub directory: String,
    /// E-mail addresses.
    pub contact: Vec<String>,
    /// Folder for the account and certificates.
    pub state: PathBuf,
    /// PEM file of the only authorities to trust when the directory is asked.
    pub ca: Option<PathBuf>,
}

pub(crate) fn account(mistakes: &mut Mistakes<'_>, raw: Option<Spanned<Raw>>) -> Option<Acme> {
    let Spanned { value: raw, span } = raw?;
    if raw.terms_agreed.as_ref().is_none_or(|agreed| !agreed.value) {
        mistakes.wrong_with_hint(
            raw.terms_agreed.map_or(span, |agreed| agreed.span),
            "an account requires consent to the authority's terms of service".to_string(),
            "read them (the directory links to them), then write `terms_agreed = true`".to_string(),
        );
    }
    let directory = raw.directory.map_or_else(
        || DIRECTORY.to_string(),
        |directory| {
            let rest = directory.value.strip_prefix("https://").unwrap_or_default();
            if rest.is_empty() || rest.starts_with('/') || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
                mistakes.wrong_with_hint(
                    directory.span.clone(),
                    format!("`{}` is not the URL of a directory", directory.value),
                    format!("write an `https` URL, such as `{DIRECTORY}`"),
                );
            }
            directory.value
        },
    );
    for contact in &raw.contact {
        let is_address = |(user, host): (&str, &str)| !user.is_empty() && !host.is_empty();
        let plain = contact.bytes().all(|byte| byte.is_ascii_graphic() && !b",?:".contains(&byte));
        if !plain || !contact.split_once('@').is_some_and(is_address) {
            mistakes.wrong_with_hint(
                contact.span.clone(),
                format!("`{}` is not an e-mail address", contact.value),
                "write `ops@shop.example`, without `mailto:`".to_string(),
            );
        }
    }
    Some(Acme {
        directory,
        contact: raw.contact.into_iter().map(|contact| contact.value).collect(),
        state: mistakes.path(&raw.state),
        ca: raw.ca.map(|ca| mistakes.path(&ca)),
    })
}

/// The names that a listener spells out, to be completed once the sites are known.
pub(crate) fn domains(mistakes: &mut Mistakes<'_>, raw: &Spanned<RawListener>) -> Vec<String> {
    let Some(domains) = &raw.domains else { return Vec::new() };
    if domains.is_empty() {
        mistakes.wrong_with_hint(
            domains.span.clone(),
            "`domains` is empty".to_string(),
            "name hosts, or drop it to take the exact hosts of the listener's sites".to_string(),
        );
    }
    let mut names = Vec::new();
    for text in &domains.value {
        match HostPattern::parse(text) {
            Some(HostPattern::Exact(name)) if is_domain(&name) => {
                if names.contains(&name) {
                    mistakes.wrong(text.span.clone(), format!("`{name}` is named twice"));
                }
                names.push(name);
            }
            Some(HostPattern::Any | HostPattern::Under(_)) => mistakes.wrong_with_hint(
                text.span.clone(),
                format!("a certificate for `{}` cannot be ordered by HTTP-01", text.value),
                "name the hosts one by one, or order it elsewhere (DNS-01) and name its files in `certificates`"
                    .to_string(),
            ),
            _ => mistakes.wrong_with_hint(
                text.span.clone(),
                format!("`{}` is not a DNS name", text.value),
                "write `shop.example`, without scheme and port".to_string(),
            ),
        }
    }
    names
}

/// Returns true if a certificate can be ordered for it.
pub(crate) fn is_domain(name: &str) -> bool {
    let is_label = |label: &str| (1..=63).contains(&label.len()) && !label.contains('_');
    name.len() <= NAME_BYTES_MAX && name.parse::<IpAddr>().is_err() && name.split('.').all(is_label)
}
