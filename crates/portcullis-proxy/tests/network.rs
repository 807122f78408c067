//! TLS on both sides, the PROXY protocol, and who the client is.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use common::*;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

/// An authority and what it signs.
struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Authority {
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Authority { issuer: rcgen::Issuer::new(params, key), certificate }
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn write(&self, folder: &Path, name: &str) {
        let (certificate, key) = self.sign(name);
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// One request over TLS; the answer and the certificate that was shown.
fn over_tls(config: Arc<ClientConfig>, stream: TcpStream, name: &str, request: &str) -> (String, Vec<u8>) {
    let name = ServerName::try_from(name.to_string()).unwrap();
    let mut tls = StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream);
    tls.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = tls.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
    }
    let shown = tls.conn.peer_certificates().unwrap()[0].to_vec();
    (String::from_utf8(answer).unwrap(), shown)
}

const CLOSING: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

#[test]
fn tls_selects_the_certificate_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    authority.write(folder.path(), "b.example");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let pair = |name: &str| {
        format!(
            "{{ cert = \"{}\", key = \"{}\" }}",
            path(&format!("{name}.pem")),
            path(&format!("{name}.key"))
        )
    };
    let listener = format!("tls = {{ certificates = [{}, {}] }}\n", pair("a.example"), pair("b.example"));
    let backend = Backend::start(|_| ok("through tls"));
    let front = Front::start(&document(backend.address, "", &listener, RULES, ""));
    let mut shown = Vec::new();
    for name in ["a.example", "b.example"] {
        let stream = TcpStream::connect(front.address()).unwrap();
        let (answer, certificate) = over_tls(authority.client(), stream, name, CLOSING);
        assert!(answer.ends_with("through tls"), "{answer}");
        shown.push(certificate);
    }
    assert_ne!(shown[0], shown[1]);
    assert_eq!(backend.seen()[0].header("x-forwarded-proto"), Some("https"));
    // Plain HTTP, and a name nobody has, do no harm.
    assert!(!front.once(CLOSING).starts_with("HTTP/1.1 200"));
    let (answer, _) =
        over_tls(authority.client(), TcpStream::connect(front.address()).unwrap(), "a.example", CLOSING);
    assert!(answer.ends_with("through tls"));
    // A reload brings other certificates, for new connections.
    let other =
        document(backend.address, "", &listener.replace(&format!("{}, ", pair("a.example")), ""), RULES, "");
    let other = parse(&other);
    front.proxy.reload(&other, &inspectors(&other)).unwrap();
    let (_, certificate) =
        over_tls(authority.client(), TcpStream::connect(front.address()).unwrap(), "b.example", CLOSING);
    assert_eq!(certificate, shown[1]);
    let stream = TcpStream::connect(front.address()).unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let mut refused = StreamOwned::new(ClientConnection::new(authority.client(), name).unwrap(), stream);
    assert!(refused.write_all(CLOSING.as_bytes()).is_err(), "the name is not served any more");
}

/// A backend that speaks TLS and answers each connection once.
fn tls_backend(authority: &Authority, name: &str) -> std::net::SocketAddr {
    let (certificate, key) = authority.sign(name);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
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

#[test]
fn tls_to_the_upstream_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let address = tls_backend(&authority, "app.internal");
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.certificate.pem()).unwrap();
    let other = folder.path().join("other.pem");
    std::fs::write(&other, Authority::new().certificate.pem()).unwrap();
    for (ca, name, expected) in
        [(&ca, "app.internal", 200), (&ca, "wrong.internal", 502), (&other, "app.internal", 502)]
    {
        let group = format!("tls = {{ ca = \"{}\", name = \"{name}\" }}\n", ca.display());
        let text = document(address, "", "", RULES, &group).replace("http://", "https://");
        let text = text.replace("https://elsewhere", "http://elsewhere");
        let front = Front::start(&text);
        let mut client = front.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(status(&client.response().0), expected, "{name}");
        }
        if expected == 502 {
            let error = front.events(1)[0].upstream_error;
            assert_eq!(error, Some(portcullis_event::UpstreamError::Tls));
        }
    }
}

#[test]
fn the_proxy_protocol_names_the_client() {
    let backend = Backend::start(|_| ok("ok"));
    let trust = "client_address = { trusted_proxies = [\"127.0.0.1\"] }";
    let front = Front::start(&document(backend.address, trust, "proxy_protocol = true\n", RULES, ""));
    let request = "GET /attack HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let v1 = format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 80\r\n{request}");
    assert_eq!(status(&front.once(v1)), 403);
    let mut v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    v2.extend([192, 0, 2, 8, 198, 51, 100, 1, 0x13, 0x88, 0, 80]);
    v2.extend(request.as_bytes());
    assert_eq!(status(&front.once(v2)), 403);
    let events = front.events(2);
    assert_eq!((events[0].client.addr.as_str(), events[1].client.addr.as_str()), ("192.0.2.7", "192.0.2.8"));
    assert_eq!(events[0].client.port, 5000);
    // Where it is expected it must be there.
    assert_eq!(front.once(request), "");
    assert_eq!(front.once("PROXY TCP4 junk\r\n"), "");
    // And from others it is no HTTP.
    let distrust = "client_address = { trusted_proxies = [\"10.0.0.0/8\"] }";
    let front = Front::start(&document(backend.address, distrust, "proxy_protocol = true\n", RULES, ""));
    assert_eq!(status(&front.once(format!("PROXY TCP4 192.0.2.7 198.51.100.1 5000 80\r\n{request}"))), 400);
}

#[test]
fn forwarding_headers_count_from_trusted_peers_only() {
    let backend = Backend::start(|_| ok("ok"));
    let request = "GET /attack HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.0.0.1\r\n\
                   Forwarded: for=192.0.2.9\r\nConnection: close\r\n\r\n";
    for (settings, expected) in [
        (
            "client_address = { trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"], header = \"x-forwarded-for\" }",
            "192.0.2.7",
        ),
        ("client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"forwarded\" }", "192.0.2.9"),
        (
            "client_address = { trusted_proxies = [\"10.0.0.0/8\"], header = \"x-forwarded-for\" }",
            "127.0.0.1",
        ),
        ("", "127.0.0.1"),
    ] {
        let front = Front::start(&document(backend.address, settings, "", RULES, ""));
        assert_eq!(status(&front.once(request)), 403);
        assert_eq!(front.events(1)[0].client.addr, expected, "{settings}");
    }
    let passed = request.replace("/attack", "/");
    let front = Front::plain(&backend);
    front.once(&passed);
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"), "what a stranger claims is not passed on");
    assert_eq!(seen.header("forwarded"), None);
    let trust = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";
    let front = Front::start(&document(backend.address, trust, "", RULES, ""));
    front.once(&passed);
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-forwarded-for"), Some("6.6.6.6, 192.0.2.7, 10.0.0.1, 127.0.0.1"));
}
