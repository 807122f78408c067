//! HTTPS of a site: the redirect of requests in clear text, and `Strict-Transport-Security`.

use portcullis_config::{Https as Settings, Part, Template};
use portcullis_http::message::RequestHead;
use portcullis_metrics::{Counter, Registry, catalogue};

/// The HTTPS settings of a site.
pub(crate) struct Https {
    /// The target of requests in clear text, and their counter.
    pub(crate) redirect: Option<(Template, Counter)>,
    hsts: Option<String>,
}

impl Https {
    pub(crate) fn new(settings: &Settings, registry: &Registry, site: &str) -> Self {
        let to = |port| {
            let text = |text: &str| Part::Text(text.to_string());
            match port {
                443 => Template(vec![text("https://"), Part::Host, Part::Uri]),
                port => Template(vec![text("https://"), Part::Host, text(&format!(":{port}")), Part::Uri]),
            }
        };
        let counted = |port| (to(port), registry.counter(&catalogue::HTTPS_REDIRECTS, &[site]));
        Https { redirect: settings.redirect.map(counted), hsts: settings.hsts.clone() }
    }

    /// The field for answers over TLS.
    pub(crate) fn field(&self) -> Option<(&str, &[u8])> {
        self.hsts.as_ref().map(|value| ("Strict-Transport-Security", value.as_bytes()))
    }
}

/// `Alt-Svc` for a listener with HTTP/3 (RFC 9114, section 3.1.1). The port is the one that the client used,
/// whatever it is on our side.
pub(crate) fn alt_svc(head: &RequestHead) -> String {
    let host = String::from_utf8_lossy(head.host());
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()).unwrap_or(443);
    format!("h3=\":{port}\"; ma=86400")
}
