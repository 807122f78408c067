//! Selection of the certificate that a client gets, by SNI.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::{Certificate, CertificateStatus, Loaded};

/// Takes a certificate that bears the name the client asks for: one with the very name before one with a
/// wildcard, one whose key the client can verify before others, then by their order. For all other names the
/// first of all.
#[derive(Debug)]
pub(crate) struct BySni {
    /// At least one, of which some may not have been issued yet.
    certificates: Vec<Certificate>,
    table: ArcSwap<Table>,
}

#[derive(Debug, Default)]
struct Table {
    keys: Vec<Arc<CertifiedKey>>,
    /// Indices into `keys`. Wildcards are listed without their `*`.
    names: HashMap<String, Vec<usize>>,
}

impl BySni {
    pub(crate) fn new(certificates: Vec<Certificate>) -> Self {
        let table = ArcSwap::from_pointee(Table::new(&certificates));
        BySni { certificates, table }
    }

    /// There is no certificate for any name yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.load().keys.is_empty()
    }

    /// True if a certificate that `sni` selects bears `host`.
    pub(crate) fn covers(&self, sni: &str, host: &str) -> bool {
        let table = self.table.load();
        let selected = table.bearing(sni).unwrap_or(&[0]);
        table.bearing(host).is_some_and(|bearing| bearing.iter().any(|index| selected.contains(index)))
    }

    /// The certificates, those of files first.
    pub(crate) fn status(&self) -> Vec<CertificateStatus> {
        self.certificates.iter().map(Certificate::status).collect()
    }

    /// Takes changed files into use.
    pub(crate) fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        let changed = self.certificates.iter().filter(|certificate| certificate.refresh(say)).count();
        if changed > 0 {
            self.table.store(Arc::new(Table::new(&self.certificates)));
        }
    }
}

impl Table {
    fn new(certificates: &[Certificate]) -> Self {
        Table::of(certificates.iter().filter_map(Certificate::loaded))
    }

    fn of(all: impl Iterator<Item = Arc<Loaded>>) -> Self {
        let mut table = Table::default();
        for (index, loaded) in all.enumerate() {
            table.keys.push(Arc::clone(&loaded.key));
            for name in &loaded.names {
                let name = name.strip_prefix('*').unwrap_or(name);
                table.names.entry(name.to_string()).or_default().push(index);
            }
        }
        table
    }

    /// The certificates that bear a name.
    fn bearing(&self, name: &str) -> Option<&[usize]> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        // A wildcard stands for exactly one label (RFC 9525, 6.3).
        let wildcard = || self.names.get(&name[name.find('.')?..]);
        self.names.get(&name).or_else(wildcard).map(Vec::as_slice)
    }

    fn find(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<&Arc<CertifiedKey>> {
        let Some(candidates) = name.and_then(|name| self.bearing(name)) else { return self.keys.first() };
        let can_verify = |index: &&usize| self.keys[**index].key.choose_scheme(schemes).is_some();
        let chosen = candidates.iter().find(can_verify).or(candidates.first())?;
        self.keys.get(*chosen)
    }
}

impl ResolvesServerCert for BySni {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.table.load().find(hello.server_name(), hello.signature_schemes()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_certificate_nobody_gets_one() {
        let table = Table::default();
        for name in [Some("a.example"), None] {
            assert!(table.find(name, &[SignatureScheme::ECDSA_NISTP256_SHA256]).is_none());
        }
    }
}
