//! A check of the files that a configuration names, as a start or a reload would read them, without using
//! them.

use std::sync::Arc;

use portcullis_config::{AgentAddress, Config, UpstreamProtocol};
use portcullis_exchange::BlockPage;
use portcullis_fetch::Authorities;
use portcullis_metrics::Registry;

use crate::access::check_lists;
use portcullis_tls::{Life, ListenerTls, UpstreamTls, life_of};

/// A certificate that is valid for less than this is warned of.
const EXPIRES_SOON: i64 = 14 * 86_400;

/// The mistakes of address lists, databases of places, certificates, keys, revocation lists and authorities,
/// as they are now, a line each.
pub fn check_files(config: &Config) -> Vec<String> {
    let mut mistakes = check_lists(config);
    // Nobody reads what is counted there.
    let registry = Arc::new(Registry::new());
    for listener in &config.listeners {
        let Some(tls) = &listener.tls else { continue };
        let found = ListenerTls::check(tls, &registry);
        mistakes.extend(found.iter().map(|error| format!("listener `{}`: {error}", listener.name)));
    }
    for upstream in &config.upstreams {
        let Some(tls) = &upstream.tls else { continue };
        if let Err(error) = UpstreamTls::build(tls, upstream.protocol, &registry) {
            mistakes.push(format!("upstream `{}`: {error}", upstream.name));
        }
    }
    for agent in &config.agents {
        let AgentAddress::Grpc(_, Some(tls)) = &agent.address else { continue };
        if let Err(error) = UpstreamTls::build(tls, UpstreamProtocol::Http2, &registry) {
            mistakes.push(format!("agent `{}`: {error}", agent.name));
        }
    }
    let orders =
        config.listeners.iter().any(|listener| listener.tls.as_ref().is_some_and(|tls| !tls.acme.is_empty()));
    if let Some(account) = config.acme.as_ref().filter(|_| orders) {
        mistakes.extend(Authorities::load(account.ca.as_deref(), "acme.ca").err());
    }
    mistakes.extend(BlockPage::load(config.block_page.as_deref()).err().map(|error| error.to_string()));
    mistakes
}

/// Certificates that a start accepts and clients do not, or soon will not: not valid at `now`, in seconds
/// since 1970. A line each.
pub fn check_certificates(config: &Config, now: i64) -> Vec<String> {
    let tls = config.listeners.iter().filter_map(|listener| Some((listener, listener.tls.as_ref()?)));
    let files = tls.flat_map(|(listener, tls)| tls.certificates.iter().map(move |files| (listener, files)));
    let mut warnings = Vec::new();
    for (listener, files) in files {
        let Ok(life) = life_of(&files.cert) else { continue };
        let days = |seconds: i64| seconds / 86_400;
        let why = match life {
            Life { until, .. } if until <= now => format!("expired {} days ago", days(now - until)),
            Life { from, .. } if from > now => {
                format!("is not valid for another {} days", days(from - now) + 1)
            }
            Life { until, .. } if until - now < EXPIRES_SOON => {
                format!("expires in {} days", days(until - now))
            }
            _ => continue,
        };
        let (name, file) = (&listener.name, files.cert.display());
        warnings.push(format!("listener `{name}`: {file}: the certificate {why}"));
    }
    warnings
}
