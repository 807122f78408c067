//! A group of equal endpoints, as all workers share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_config::{Endpoint, Upstream};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::{StartError, tls};

/// Settings of a group. Two groups with one id are the same one, before and after a reload.
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) settings: Upstream,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// The `Host` of requests that bring none, as HTTP/1.0 allows: the first endpoint.
    pub(crate) host: String,
}

impl Group {
    /// Makes a group; `old` ones with the same settings are kept, so that their connections stay of use.
    pub(crate) fn build(
        settings: &Upstream,
        ids: &AtomicU64,
        old: &[Arc<Group>],
    ) -> Result<Arc<Group>, StartError> {
        // Behind the same path there may be other authorities now, so a group with TLS is always made anew.
        let same = |group: &&Arc<Group>| group.settings == *settings && group.tls.is_none();
        if let Some(group) = old.iter().find(same) {
            return Ok(Arc::clone(group));
        }
        let wrong = |error: StartError| StartError::new(format!("upstream `{}`: {error}", settings.name));
        let tls = settings.tls.as_ref().map(tls::client_config).transpose().map_err(wrong)?;
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let host = settings.endpoints.first().map_or(String::new(), |first| match first.host.contains(':') {
            true => format!("[{}]:{}", first.host, first.port),
            false => format!("{}:{}", first.host, first.port),
        });
        let group = Group { id, settings: settings.clone(), tls, host };
        if group.tls.is_some() {
            for endpoint in &settings.endpoints {
                group.server_name(endpoint).map_err(wrong)?;
            }
        }
        Ok(Arc::new(group))
    }

    /// The name to ask an endpoint for and to find in its certificate.
    pub(crate) fn server_name(&self, endpoint: &Endpoint) -> Result<ServerName<'static>, StartError> {
        let name = self.settings.tls.as_ref().and_then(|tls| tls.name.as_ref()).unwrap_or(&endpoint.host);
        ServerName::try_from(name.clone())
            .map_err(|_| StartError::new(format!("`{name}` is not a name a certificate can bear")))
    }
}
