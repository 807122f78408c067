//! TLS of virtual hosts.

use std::collections::BTreeSet;

use super::Context;
use super::syntax::Directive;
use super::vhost::Host;
use crate::model::{Certificate, ClientAuth};
use crate::sources::absolute;

impl Host<'_> {
    fn own_or_main(&self, name: &str) -> Vec<&Directive> {
        let own = self.items.iter().any(|item| item.name == name);
        let items = if own { self.items } else { self.main };
        items.iter().filter(|item| item.name == name).collect()
    }

    /// TLS of the addresses; false if there is none.
    pub fn tls(&self, cx: &mut Context<'_>) -> bool {
        let of = |name: &str| self.own_or_main(name);
        let engine = of("sslengine");
        let on = engine.iter().any(|item| item.arg(0).eq_ignore_ascii_case("on"));
        engine.iter().for_each(|item| cx.taken(item, if on { "tls of the listener" } else { "no TLS" }));
        let (certs, keys) = (of("sslcertificatefile"), of("sslcertificatekeyfile"));
        if !on {
            certs.iter().chain(&keys).for_each(|item| cx.left(item, "no address of this host has TLS"));
            return false;
        }
        for address in self.addresses {
            cx.model.listener(address).tls.get_or_insert_default();
        }
        for (index, cert) in certs.iter().enumerate() {
            // A file may have both.
            let key = keys.get(index).unwrap_or(cert);
            let pair = Certificate {
                cert: absolute(&cx.folder, cert.arg(0)),
                key: absolute(&cx.folder, key.arg(0)),
            };
            for address in self.addresses {
                let tls = cx.model.listener(address).tls.get_or_insert_default();
                if !tls.certificates.contains(&pair) {
                    tls.certificates.push(pair.clone());
                }
            }
            cx.taken(cert, "tls.certificates of the listener");
            cx.taken(key, "tls.certificates of the listener");
        }
        for item in of("sslcertificatechainfile") {
            cx.left(item, "the file of the certificate has its chain, too: append this one to it");
        }
        for item in of("sslprotocol") {
            self.protocols(item, cx);
        }
        self.client_auth(cx);
        true
    }

    fn protocols(&self, item: &Directive, cx: &mut Context<'_>) {
        let text = item.args.join(" ").to_ascii_lowercase();
        if text == "tlsv1.3" || text == "-all +tlsv1.3" {
            for address in self.addresses {
                cx.model.listener(address).tls.get_or_insert_default().only_13 = true;
            }
            return cx.taken(item, "tls.min_version = \"1.3\"");
        }
        match text.starts_with("all") && !text.contains("-tlsv1.1") {
            true => cx.changed(item, "TLS 1.2 is the oldest version that is spoken"),
            false => cx.taken(item, "TLS 1.2 and 1.3, the default"),
        }
    }

    fn client_auth(&self, cx: &mut Context<'_>) {
        let find = |name: &str| self.own_or_main(name).into_iter().next();
        let Some(verify) = find("sslverifyclient") else { return };
        let optional = match verify.arg(0).to_ascii_lowercase().as_str() {
            "none" => return cx.taken(verify, "no certificates of clients"),
            "require" => false,
            "optional" => true,
            _ => return cx.left(verify, "clients' certificates are verified against a file of authorities"),
        };
        let Some(ca) = find("sslcacertificatefile") else {
            return cx.left(
                verify,
                "clients' certificates are verified against a file of authorities, and none is named",
            );
        };
        for address in self.addresses {
            let auth = ClientAuth { ca: absolute(&cx.folder, ca.arg(0)), optional };
            cx.model.listener(address).tls.get_or_insert_default().client_auth.get_or_insert(auth);
        }
        for item in [verify, ca] {
            cx.changed(item, "tls.client_auth of the listener, for all sites that it serves");
        }
    }
}

/// An address with TLS and without a certificate cannot be served.
pub(crate) fn without_certificate(cx: &mut Context<'_>) {
    let is_empty = |tls: &crate::model::Tls| tls.certificates.is_empty();
    let gone: BTreeSet<String> = cx
        .model
        .listeners
        .iter()
        .filter(|listener| listener.tls.as_ref().is_some_and(is_empty))
        .map(|listener| listener.address.clone())
        .collect();
    cx.model.remove_listeners(&gone);
}
