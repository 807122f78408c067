//! A certificate authority, and clients and servers that trust it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An authority and what it signs.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub certificate: rcgen::Certificate,
}

/// A certificate and its key.
pub type Signed = (rcgen::Certificate, rcgen::KeyPair);

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { issuer: rcgen::Issuer::new(params, key), certificate }
    }

    pub fn sign(&self, name: &str) -> Signed {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A certificate that a server made itself; `is_authority`: as one of an authority, as `openssl req
    /// -x509` does.
    pub fn own(name: &str, is_authority: bool) -> Signed {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
        if is_authority {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        (params.self_signed(&key).unwrap(), key)
    }

    /// A certificate of a client.
    pub fn sign_client(&self, name: &str, serial: u64) -> Signed {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        let mut subject = rcgen::DistinguishedName::new();
        subject.push(rcgen::DnType::OrganizationName, "Shop");
        subject.push(rcgen::DnType::CommonName, name);
        params.distinguished_name = subject;
        params.serial_number = Some(serial.into());
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A revocation list with these serial numbers.
    pub fn revoke(&self, serials: &[u64]) -> String {
        let day = |day| rcgen::date_time_ymd(2026, 1, day);
        let revoked = serials.iter().map(|serial| rcgen::RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: day(1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = rcgen::CertificateRevocationListParams {
            this_update: day(1),
            next_update: rcgen::date_time_ymd(2099, 1, 1),
            crl_number: 1u64.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    pub fn write(&self, folder: &Path, name: &str) {
        self.write_as(folder, name, name);
    }

    /// A new certificate for `name` in files that are called otherwise.
    pub fn write_as(&self, folder: &Path, name: &str, files: &str) {
        let (certificate, key) = self.sign(name);
        std::fs::write(folder.join(format!("{files}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{files}.key")), key.serialize_pem()).unwrap();
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        roots
    }

    /// A client without a certificate; clones of it share sessions.
    pub fn client(&self) -> Arc<ClientConfig> {
        self.client_with(None, rustls::ALL_VERSIONS)
    }

    /// A client with a certificate that speaks these versions.
    pub fn client_with(
        &self,
        own: Option<&Signed>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.roots());
        let mut config = match own {
            Some((certificate, key)) => {
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.resumption = Resumption::in_memory_sessions(8);
        Arc::new(config)
    }

    /// A client that keeps what is stapled.
    pub fn stapled(&self, address: SocketAddr, name: &str) -> Vec<u8> {
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(self.roots()), provider());
        let keeper = Arc::new(Keeper { inner: inner.build().unwrap(), kept: Default::default() });
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&keeper) as _)
            .with_no_client_auth();
        shake(Arc::new(config), address, name).unwrap();
        keeper.kept.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct Keeper {
    inner: Arc<WebPkiServerVerifier>,
    kept: std::sync::Mutex<Vec<u8>>,
}

impl rustls::client::danger::ServerCertVerifier for Keeper {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        *self.kept.lock().unwrap() = ocsp_response.to_vec();
        self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }
    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A handshake and one request on a connection of its own; the answer.
pub fn shake(config: Arc<ClientConfig>, address: SocketAddr, name: &str) -> std::io::Result<String> {
    over_tls(config, TcpStream::connect(address)?, name, CLOSING).map(|(answer, _)| answer)
}

/// One request over TLS; the answer and the certificate that was shown.
pub fn over_tls(
    config: Arc<ClientConfig>,
    stream: TcpStream,
    name: &str,
    request: &str,
) -> std::io::Result<(String, Vec<u8>)> {
    let name = ServerName::try_from(name.to_string()).unwrap();
    stream.set_read_timeout(Some(portcullis_testkit::wait::PATIENCE))?;
    let mut tls = StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream);
    tls.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match tls.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(_) if !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    let shown = tls.conn.peer_certificates().unwrap()[0].to_vec();
    Ok((String::from_utf8(answer).unwrap(), shown))
}

pub const CLOSING: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

/// A backend that takes requests over HTTP/1.1 alone although it offers HTTP/2, as IIS does where it asks for
/// NTLM: each stream is reset with `HTTP_1_1_REQUIRED`, and each request of HTTP/1.1 is answered with
/// `answer`, which is told whether it is the first of its connection. Counts its connections of HTTP/2.
pub fn http1_only_backend(
    authority: &Authority,
    name: &str,
    answer: fn(bool, &str) -> String,
) -> (SocketAddr, Arc<std::sync::atomic::AtomicUsize>) {
    let (certificate, key) = authority.sign(name);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let sessions = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&sessions);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(tcp).await else { return };
                    if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
                        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        reset_streams(tls).await;
                    } else {
                        answer_http1(tls, answer).await;
                    }
                });
            }
        });
    });
    (address, sessions)
}

type Accepted = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;

async fn reset_streams(tls: Accepted) {
    let Ok(mut connection) = h2::server::handshake(tls).await else { return };
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        respond.send_reset(h2::Reason::HTTP_1_1_REQUIRED);
    }
}

async fn answer_http1(mut tls: Accepted, answer: fn(bool, &str) -> String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut head, mut is_first) = (Vec::new(), true);
    while let Ok(byte) = tls.read_u8().await {
        head.push(byte);
        if head.ends_with(b"\r\n\r\n") {
            let answer = answer(std::mem::take(&mut is_first), &String::from_utf8_lossy(&head));
            head.clear();
            if tls.write_all(answer.as_bytes()).await.is_err() || tls.flush().await.is_err() {
                return;
            }
        }
    }
}

/// A backend that speaks TLS and answers each request; `clients` may sign certificates that it asks for.
pub fn tls_backend(authority: &Authority, name: &str, clients: Option<&Authority>) -> SocketAddr {
    tls_server(&authority.sign(name), clients)
}

/// The same with this certificate.
pub fn tls_server((certificate, key): &Signed, clients: Option<&Authority>) -> SocketAddr {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        Some(clients) => {
            let roots = Arc::new(clients.roots());
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
        None => builder.with_no_client_auth(),
    };
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                let mut buffer = [0; 4096];
                while let Ok(1..) = tls.read(&mut buffer) {
                    let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure");
                }
            });
        }
    });
    address
}

pub fn sha256(bytes: &[u8]) -> Vec<u8> {
    rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .unwrap()
        .common
        .hash_provider
        .hash(bytes)
        .as_ref()
        .to_vec()
}
