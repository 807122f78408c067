//! `listeners` and `client_address`.

use std::net::SocketAddr;

use super::Checker;
use crate::checked::{AddressHeader, ClientAddress, Compat, Listener};
use crate::raw;
use crate::spanned::Spanned;
use crate::tls;

impl Checker<'_> {
    pub(super) fn listeners(
        &mut self,
        raw: Vec<raw::Listener>,
        client_address: &ClientAddress,
    ) -> Vec<Listener> {
        if raw.is_empty() {
            self.mistakes.wrong_with_hint(
                0..0,
                "there is no listener".to_string(),
                "add `[[listeners]]` with `address = \"127.0.0.1:8080\"`".to_string(),
            );
        }
        let mut listeners: Vec<Listener> = Vec::new();
        for listener in raw {
            let span = listener.name.as_ref().unwrap_or(&listener.address).span.clone();
            let name = listener.name.as_ref().unwrap_or(&listener.address).value.clone();
            self.listener_spans.push(span.clone());
            // After a mistake the listener stays, so that sites which name it are not reported as well.
            let address = self.address(&listener.address).unwrap_or(([0, 0, 0, 0], 0).into());
            if listeners.iter().any(|other| other.name == name) {
                self.mistakes.wrong(span, format!("there are two listeners `{name}`"));
            } else if address.port() != 0 && listeners.iter().any(|other| other.address == address) {
                self.mistakes
                    .wrong(listener.address.span.clone(), format!("there are two listeners on {address}"));
            }
            let proxy_protocol = listener.proxy_protocol.as_ref().is_some_and(|on| on.value);
            if let (Some(on), true, true) =
                (&listener.proxy_protocol, proxy_protocol, client_address.trusted_proxies.is_empty())
            {
                self.mistakes.wrong_with_hint(
                    on.span.clone(),
                    "the PROXY protocol is read from trusted proxies only, and there are none".to_string(),
                    "name them in `client_address.trusted_proxies`".to_string(),
                );
            }
            let asked = listener.tls.as_ref().and_then(|tls| tls.acme.as_ref());
            self.acme_spans.push(asked.map(|asked| (asked.span.clone(), asked.domains.is_some())));
            let tls = listener.tls.map(|tls| tls::listener(&mut self.mistakes, tls, &listener.address.span));
            let compat = match listener.http.compat {
                Some(raw::Compat::Apache) => Compat::Apache,
                _ => Compat::Strict,
            };
            let http2 = crate::http2::check(&mut self.mistakes, &listener.http2, tls.is_some());
            let http3 = self.http3(listener.http3.as_ref(), tls.is_some());
            let half_close = listener.http.half_close.unwrap_or_default();
            let sites = Vec::new();
            listeners.push(Listener {
                name,
                address,
                tls,
                proxy_protocol,
                half_close,
                compat,
                http2,
                http3,
                sites,
            });
        }
        listeners
    }

    /// `tls`: the listener has TLS.
    fn http3(&mut self, raw: Option<&Spanned<bool>>, tls: bool) -> bool {
        let Some(on) = raw.filter(|on| on.value) else { return false };
        if !tls {
            self.mistakes.wrong_with_hint(
                on.span.clone(),
                "HTTP/3 is always encrypted, and this listener has no TLS".to_string(),
                "give it `tls`".to_string(),
            );
        } else if !cfg!(feature = "http3") {
            self.mistakes.wrong_with_hint(
                on.span.clone(),
                "this program was built without HTTP/3".to_string(),
                "build it with `cargo build --release --features http3`".to_string(),
            );
        }
        true
    }

    pub(super) fn client_address(&mut self, raw: raw::ClientAddress) -> ClientAddress {
        let mut trusted_proxies = Vec::new();
        for text in &raw.trusted_proxies {
            match text.parse() {
                Ok(network) => trusted_proxies.push(network),
                Err(message) => self.mistakes.wrong(text.span.clone(), message),
            }
        }
        if let (Some(header), true) = (&raw.header, raw.trusted_proxies.is_empty()) {
            self.mistakes.wrong_with_hint(
                header.span.clone(),
                "a client address header without trusted proxies is never read".to_string(),
                "name the proxies in front in `trusted_proxies`".to_string(),
            );
        }
        let header = raw.header.map(|header| match header.value {
            raw::AddressHeader::XForwardedFor => AddressHeader::XForwardedFor,
            raw::AddressHeader::Forwarded => AddressHeader::Forwarded,
        });
        let passes_identity_headers = raw.identity_headers == Some(raw::IdentityHeaders::Pass);
        let keeps_request_ids =
            raw.request_id.as_ref().is_some_and(|id| id.value == raw::RequestIdSource::Trusted);
        if let (Some(id), true, true) = (&raw.request_id, keeps_request_ids, trusted_proxies.is_empty()) {
            self.mistakes.wrong_with_hint(
                id.span.clone(),
                "there are no trusted proxies whose request ids could be kept".to_string(),
                "name the proxies in front in `trusted_proxies`".to_string(),
            );
        }
        ClientAddress { trusted_proxies, header, passes_identity_headers, keeps_request_ids }
    }

    pub(super) fn address(&mut self, text: &Spanned<String>) -> Option<SocketAddr> {
        match text.parse() {
            Ok(address) => Some(address),
            Err(_) => {
                let hint = if text.starts_with(':') {
                    format!("to serve every address write `0.0.0.0{}`", text.value)
                } else {
                    "write `127.0.0.1:8080` or `[::1]:8080`".to_string()
                };
                self.mistakes.wrong_with_hint(
                    text.span.clone(),
                    format!("`{}` is not an address with a port", text.value),
                    hint,
                );
                None
            }
        }
    }
}
