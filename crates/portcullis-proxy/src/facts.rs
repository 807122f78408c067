//! Facts of a request that are known before it is inspected. Routes, templates and redirects decide by these
//! alone.

use std::net::{IpAddr, SocketAddr};

use portcullis_access::Whereabouts;
use portcullis_config::ClientAddress;
use portcullis_http::message::{RequestHead, TargetForm};

use portcullis_tls::ClientCertificate;

/// A request, and who sent it.
pub(crate) struct Facts<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) request_id: &'a str,
    /// The client, as trusted proxies have it.
    pub(crate) client: SocketAddr,
    pub(crate) place: &'a Whereabouts,
    /// That which the client was known by, if it has one.
    pub(crate) certificate: Option<&'a ClientCertificate>,
}

/// The host that the request is for: the target's own, where it has one.
pub(crate) fn host(head: &RequestHead) -> &[u8] {
    if let TargetForm::Absolute | TargetForm::Authority = head.target_form() {
        head.target_authority().unwrap_or_default()
    } else {
        head.host()
    }
}

/// A host without its port.
pub(crate) fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if !host[colon..].contains(&b']') => &host[..colon],
        _ => host,
    }
}

/// The client came by TLS: to us, as `tls` says, or to `peer`, a trusted proxy that says so.
pub(crate) fn is_secure(tls: bool, peer: IpAddr, settings: &ClientAddress, head: &RequestHead) -> bool {
    let by_proxy = || {
        let mut said = head.header("x-forwarded-proto");
        said.next().is_some_and(|proto| proto.eq_ignore_ascii_case(b"https")) && settings.trusts(peer)
    };
    tls || by_proxy()
}
