//! Clients that hold, flood and cut.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use portcullis_api::{Limits, self_signed};
use portcullis_identity::Role;

use crate::client::{connect, raw};
use crate::server::{NOW_MS, Server};

fn quick() -> Limits {
    Limits {
        connections_max: 8,
        client_connections_max: 6,
        head_time_max: Duration::from_millis(400),
        body_time_max: Duration::from_millis(400),
        write_time_max: Duration::from_millis(400),
        ..Limits::default()
    }
}

/// The time until the server closes, after these bytes; one more each 50 ms.
fn closed_after(server: &Server, begin: &str) -> Duration {
    let mut stream = connect(server.address);
    stream.write_all(begin.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        match stream.read(&mut [0; 512]) {
            Ok(0) => return began.elapsed(),
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return began.elapsed(),
            _ => drop(stream.write_all(b"a")),
        }
    }
    began.elapsed()
}

#[test]
fn slow_clients_are_left() {
    let server = Server::with(quick());
    for begin in [
        "",
        "G",
        "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: ",
        "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
    ] {
        let time = closed_after(&server, begin);
        assert!(time < Duration::from_secs(4), "{begin:?}: {time:?}");
    }
}

/// Connections that only hold their place make room, and no client has all of them.
#[test]
fn a_flood_of_connections_keeps_nobody_out() {
    let server = Server::with(Limits { head_time_max: Duration::from_secs(60), ..quick() });
    let token = server.token(Role::Viewer);
    let held: Vec<_> = (0..6).map(|_| connect(server.address)).collect();
    std::thread::sleep(Duration::from_millis(100));
    // A seventh of the same client takes the place of its oldest.
    let health = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(raw(server.address, health).unwrap().status, 200);
    let mut oldest = &held[0];
    assert_eq!(oldest.read(&mut [0]).unwrap_or(0), 0);
    drop(held);
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let text = format!(
            "GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        if raw(server.address, text.as_bytes()).is_some_and(|answer| answer.status == 200) {
            break;
        }
        assert!(Instant::now() < until);
    }
    // Where one client may have all, the oldest silent one gives way.
    let server = Server::with(Limits {
        client_connections_max: 100,
        head_time_max: Duration::from_secs(60),
        ..quick()
    });
    let _held: Vec<_> = (0..50).map(|_| connect(server.address)).collect();
    for _ in 0..5 {
        let answer = raw(
            server.address,
            b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(answer.unwrap().status, 200);
    }
}

/// A request has one reading: hyper refuses what servers are known to read differently.
#[test]
fn smuggled_requests_are_refused() {
    let server = Server::start();
    let token = server.token(Role::Admin);
    let head =
        format!("POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Content-Length: +5\r\n\r\nhello",
        "Content-Length: 5, 6\r\n\r\nhello",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "X: a\r\n Y: b\r\n\r\n",
        "X : a\r\n\r\n",
        "X: a\0b\r\n\r\n",
    ] {
        let answer = raw(server.address, format!("{head}{framing}").as_bytes());
        assert!(answer.is_none_or(|answer| answer.status == 400), "{framing:?}");
    }
    // Of a body that no route reads nothing becomes a request of its own.
    let inner = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let text = format!(
        "GET /api/v1/nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{inner}GET /api/v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        inner.len()
    );
    let answer = raw(server.address, text.as_bytes()).unwrap();
    assert!(!answer.text().contains("\"ready\""), "{}", answer.text());
    // Nor of one that is longer than is allowed.
    let text = format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{}",
        inner.repeat(2000)
    );
    let answer = raw(server.address, text.as_bytes());
    assert!(answer.is_none_or(|answer| !answer.text().contains("\"ready\"")));
}

#[test]
fn heads_are_bounded() {
    let server = Server::start();
    for head in [
        format!("GET /api/v1/health?{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(100_000)),
        format!("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(100_000)),
        format!("GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: a\r\n".repeat(1000)),
        "\r\n".repeat(50_000),
        "\0".repeat(100_000),
    ] {
        let answer = raw(server.address, head.as_bytes());
        assert!(answer.is_none_or(|answer| (400..500).contains(&answer.status)), "{:.80}", head);
    }
    assert_eq!(server.ask("GET", "/health").send().status, 200);
}

/// Clear text at the TLS listener, and whoever says nothing.
#[test]
fn tls_with_a_certificate_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let address = "192.0.2.1".parse().unwrap();
    let (files, print) = self_signed(place.path(), address, NOW_MS).unwrap();
    // It stays the same.
    let (_, again) = self_signed(place.path(), address, NOW_MS + 1).unwrap();
    assert_eq!((print.len(), &print), (95, &again));
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(std::fs::metadata(&files.key).unwrap().mode() & 0o777, 0o600);
    let server = Server::with_tls(quick(), Some(files.clone()));
    assert!(raw(server.address, b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").is_none());
    assert!(closed_after(&server, "") < Duration::from_secs(4));
    let answer = over_tls(
        &server,
        &files.certificate,
        "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    // A page that came in clear text is another origin.
    let clear = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nConnection: close\r\n\r\n";
    assert!(over_tls(&server, &files.certificate, clear).starts_with("HTTP/1.1 403"));
    assert!(
        over_tls(&server, &files.certificate, &clear.replace("http:", "https:")).starts_with("HTTP/1.1 200")
    );
}

fn over_tls(server: &Server, certificate: &std::path::Path, text: &str) -> String {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let client = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(client, connect(server.address));
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
