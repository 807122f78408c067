//! What a start or a reload would find wrong with the files that a configuration names, without taking them into use.

use std::sync::Arc;

use portcullis_config::{AgentAddress, Config, UpstreamProtocol};
use portcullis_metrics::Registry;
use portcullis_trust::Authorities;

use crate::access::check_lists;
use crate::tls::{ListenerTls, UpstreamTls};

/// The mistakes of address lists, databases of places, certificates, keys, revocation lists and authorities, as they are now, a
/// line each.
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
    mistakes
}
