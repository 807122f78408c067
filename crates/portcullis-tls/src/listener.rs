//! TLS of a listener.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use portcullis_config::{ClientAuth, ListenerTls as Settings};
use portcullis_fetch::{Authorities, pem};
use portcullis_metrics::{EnumCounters, Registry};
use rustls::ServerConfig;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::ticketer::TicketRotator;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::Watch;
use crate::certificate::{self, Certificate, CertificateStatus};
use crate::clear_text;
use crate::handshakes::Handshakes;
use crate::resolver::BySni;
use crate::{StartError, acme};
use crate::{provider, versions};

/// TLS of a listener, as its files are at present.
pub struct ListenerTls {
    settings: Settings,
    /// HTTP/2 is offered.
    http2: bool,
    resolver: Arc<BySni>,
    current: ArcSwap<ServerConfig>,
    /// The files of `client_auth`.
    clients: Option<Watch>,
    handshakes: Handshakes,
    reloads: EnumCounters,
}

impl ListenerTls {
    /// Reads all files. `old` is the same listener before a reload; `acme` says where the certificates are
    /// that come by themselves.
    pub fn build(
        settings: &Settings,
        listener: &str,
        http2: bool,
        acme: Option<&acme::Settings>,
        registry: &Arc<Registry>,
        old: Option<&ListenerTls>,
    ) -> Result<Self, StartError> {
        let certificates = settings.certificates.iter().map(|files| Certificate::open(files, registry));
        let mut certificates = certificates.collect::<Result<Vec<_>, _>>()?;
        let awaited = acme.into_iter().flat_map(|acme| settings.acme.iter().map(|name| acme.file(name)));
        certificates.extend(awaited.map(|path| Certificate::awaited(&path, registry)));
        let resolver = Arc::new(BySni::new(certificates));
        let watched = |auth: &ClientAuth| std::iter::once(&auth.ca).chain(&auth.crl).cloned().collect();
        let clients = settings.client_auth.as_ref().map(|auth| Watch::new(watched(auth)));
        // A client that resumes a session is not asked for a certificate again, so tickets do not outlive
        // what is asked of clients; without that a reload leaves them valid.
        let kept = old.filter(|old| {
            let (old, new) = (&old.settings, settings);
            old.client_auth.is_none()
                && new.client_auth.is_none()
                && (old.min_version, old.ticket_key_life) == (new.min_version, new.ticket_key_life)
        });
        let ticketer = match kept {
            Some(old) => Arc::clone(&old.current.load().ticketer),
            None => ticketer(settings)?,
        };
        Ok(ListenerTls {
            current: ArcSwap::new(config(settings, http2, &resolver, ticketer)?),
            http2,
            settings: settings.clone(),
            resolver,
            clients,
            handshakes: Handshakes::new(registry, listener),
            reloads: certificate::reloads(registry),
        })
    }

    /// The mistakes of its files: each certificate, and those by which clients are verified.
    pub fn check(settings: &Settings, registry: &Arc<Registry>) -> Vec<StartError> {
        let certificates = settings.certificates.iter().map(|files| Certificate::open(files, registry).err());
        let clients = settings.client_auth.as_ref().map(|auth| verifier(auth).err());
        certificates.chain(clients).flatten().collect()
    }

    /// Takes changed files into use. If they have any error, the previous ones stay in use.
    pub fn refresh(&self, say: &(dyn Fn(&str) + Send + Sync)) {
        self.resolver.refresh(say);
        let Some(watch) = &self.clients else { return };
        let read = || config(&self.settings, self.http2, &self.resolver, ticketer(&self.settings)?);
        match watch.refresh(read) {
            Some(Ok(config)) => {
                self.current.store(config);
                self.reloads.inc(0);
                say("the authorities and revocation lists of clients were read again");
            }
            Some(Err(error)) => {
                self.reloads.inc(1);
                say(&format!("{error}; keeping the previous authorities and revocation lists of clients"));
            }
            None => {}
        }
    }

    /// Its certificates as they are now.
    pub fn certificates(&self) -> Vec<CertificateStatus> {
        self.resolver.status()
    }

    /// True if the certificate that a client gets which asks for `sni` bears the name `host`, too. Browsers
    /// then ask for both on one connection (RFC 9113, section 9.1.1).
    pub fn covers(&self, sni: &str, host: &str) -> bool {
        self.resolver.covers(sni, host)
    }

    /// Clients are asked for a certificate.
    pub fn asks_clients(&self) -> bool {
        self.clients.is_some()
    }

    /// The settings by which connections are accepted now.
    #[cfg(feature = "http3")]
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.load_full()
    }

    /// Counts a handshake that QUIC has done, or failed to do.
    #[cfg(feature = "http3")]
    pub fn quic_handshake(&self, error: Option<&quinn::ConnectionError>) {
        match error {
            None => self.handshakes.done(None),
            Some(error) => self.handshakes.quic_failed(error, self.resolver.is_empty()),
        }
    }

    /// True if the client begins with HTTP in clear text. Nothing is taken from the stream.
    pub async fn is_clear_text(&self, tcp: &TcpStream) -> bool {
        let is_clear_text = clear_text::is_http(tcp).await;
        if is_clear_text {
            self.handshakes.clear_text();
        }
        is_clear_text
    }

    /// The answer to a request in clear text, after which the connection is closed: a connection that is
    /// closed without a word looks like a fault of the server.
    pub fn clear_text_answer() -> String {
        clear_text::answer()
    }

    /// Does the handshake; none if it fails, which is counted.
    pub async fn accept(&self, tcp: TcpStream) -> Option<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.current.load_full());
        match acceptor.accept(tcp).await {
            Ok(stream) => {
                self.handshakes.done(stream.get_ref().1.handshake_kind());
                Some(stream)
            }
            Err(error) => {
                self.handshakes.failed(&error, self.resolver.is_empty());
                None
            }
        }
    }

    /// Counts a handshake that was given up: it took too long.
    pub fn late(&self) {
        self.handshakes.late();
    }
}

fn config(
    settings: &Settings,
    http2: bool,
    resolver: &Arc<BySni>,
    ticketer: Arc<dyn ProducesTickets>,
) -> Result<Arc<ServerConfig>, StartError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(versions(settings.min_version))
        .map_err(|error| StartError::new(format!("TLS: {error}")))?;
    let builder = match &settings.client_auth {
        Some(auth) => builder.with_client_cert_verifier(verifier(auth)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(resolver) as _);
    let protocols: &[&[u8]] = if http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config.ticketer = ticketer;
    // Ours is the order of strength; all of them are good, but scanners want a server to choose.
    config.ignore_client_order = true;
    Ok(Arc::new(config))
}

fn verifier(auth: &ClientAuth) -> Result<Arc<dyn ClientCertVerifier>, StartError> {
    let roots = Authorities::of_file(&auth.ca).map_err(StartError::new)?.store();
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    let builder = if auth.required { builder } else { builder.allow_unauthenticated() };
    let builder = match &auth.crl {
        Some(path) => {
            let text = pem(path).map_err(|error| StartError::file(path, error))?;
            let lists = CertificateRevocationListDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
            let lists = lists.map_err(|error| StartError::file(path, error))?;
            if lists.is_empty() {
                return Err(StartError::file(path, "it holds no revocation list"));
            }
            // Lists are those of the authorities that sign clients. An authority without one revokes no
            // certificate.
            builder.with_crls(lists).allow_unknown_revocation_status()
        }
        None => builder,
    };
    let file = auth.crl.as_ref().unwrap_or(&auth.ca);
    builder.build().map_err(|error| StartError::file(file, error))
}

/// Keys of session tickets, shared by all workers.
fn ticketer(settings: &Settings) -> Result<Arc<dyn ProducesTickets>, StartError> {
    let life = u32::try_from(settings.ticket_key_life.as_secs()).unwrap_or(u32::MAX);
    let rotator = TicketRotator::new(life, || {
        let key = rustls::crypto::ring::Ticketer::new().map_err(|_| rustls::crypto::GetRandomFailed)?;
        Ok(Box::new(OneKey(key)))
    });
    Ok(Arc::new(rotator.map_err(|error| StartError::new(format!("TLS: {error}")))?))
}

/// A key of the ring, which would rotate by itself after as long as keys may live here.
struct OneKey(Arc<dyn ProducesTickets>);

impl fmt::Debug for OneKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneKey")
    }
}

impl ProducesTickets for OneKey {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }
    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}
