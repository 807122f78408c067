//! HTTP/3 to clients, through the real program. Needs the feature `http3`.

mod served;

use std::time::Duration;

use http::Request;
use portcullis_testkit::http3::{Answer, Client};
use portcullis_testkit::process::{Signal, signal};
use rustls::pki_types::CertificateDer;
use served::*;

/// A program whose listener has TLS and HTTP/3, and what clients must know of it.
struct Front {
    served: Served,
    certificate: CertificateDer<'static>,
    _application: Server,
    _files: tempfile::TempDir,
}

impl Front {
    fn start(handler: impl Fn(&served::Request) -> Response + Send + Sync + 'static, site: &str) -> Front {
        let files = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(files.path().join("own.pem"), made.cert.pem()).unwrap();
        std::fs::write(files.path().join("own.key"), made.signing_key.serialize_pem()).unwrap();
        let place = files.path().display();
        let listener = format!(
            "tls = {{ certificates = [{{ cert = \"{place}/own.pem\", key = \"{place}/own.key\" }}] }}\nhttp3 = true\n"
        );
        let application = application(handler);
        let served = Served::start_listener(&application, &listener, site);
        let certificate = made.cert.der().clone();
        Front { served, certificate, _application: application, _files: files }
    }

    fn client(&self) -> Client {
        Client::connect(self.served.address, self.certificate.clone()).unwrap()
    }
}

fn request(method: &str, target: &str) -> http::request::Builder {
    Request::builder().method(method).uri(format!("https://localhost{target}"))
}

fn get(client: &mut Client, target: &str) -> Answer {
    client.exchange(request("GET", target).body(()).unwrap(), b"").unwrap()
}

#[test]
fn requests_are_inspected_as_any() {
    let front = Front::start(|request| says(format!("{} {}", request.method, request.target)), "");
    let mut client = front.client();
    let answer = get(&mut client, "/a?b=c");
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"GET /a?b=c"[..]));
    assert!(answer.headers.contains_key("x-request-id") && !answer.headers.contains_key("alt-svc"));
    let attack = get(&mut client, "/a?b=1%27%20OR%20%271%27%3D%271%27%20--%20");
    assert_eq!(attack.status.as_u16(), 403);
    let event: serde_json::Value = serde_json::from_str(&front.served.events(1)[0]).unwrap();
    assert_eq!(event["request"]["protocol"], "HTTP/3.0", "{event}");
    assert_eq!(event["verdict"]["class"], "sqli", "{event}");
    front.served.counts("portcullis_protocol_requests_total{protocol=\"h3\"}", 2.0);
    front.served.counts("portcullis_http2_connections_active", 1.0);
    front.served.counts("portcullis_tls_handshakes_total{listener=", 1.0);
}

#[test]
fn bodies_go_both_ways() {
    let large = "0123456789abcdef".repeat(200_000);
    let answer = large.clone();
    let echo = move |request: &served::Request| match request.target.as_str() {
        "/large" => says(answer.clone()),
        _ => {
            let said = request.header("content-length").unwrap_or(b"none");
            says(format!("{} {}", request.body.len(), String::from_utf8_lossy(said)))
        }
    };
    let front = Front::start(echo, "mode = \"off\"");
    let mut client = front.client();
    assert!(get(&mut client, "/large").body == large.as_bytes());
    let body = vec![b'x'; 300_000];
    let unsaid = client.exchange(request("POST", "/").body(()).unwrap(), &body).unwrap();
    assert_eq!(unsaid.body, b"300000 none");
    let said = request("POST", "/").header("content-length", "300000").body(()).unwrap();
    assert_eq!(client.exchange(said, &body).unwrap().body, b"300000 300000");
    let empty = client.exchange(request("POST", "/").body(()).unwrap(), b"").unwrap();
    assert_eq!(empty.body, b"0 none");
}

/// What is another length than said would become another request behind us.
#[test]
fn a_body_of_another_length_ends_the_stream() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let record = std::sync::Arc::clone(&seen);
    let handler = move |request: &served::Request| {
        record.lock().unwrap().push(request.target.clone());
        says("well")
    };
    let front = Front::start(handler, "mode = \"off\"");
    let mut client = front.client();
    for (said, body) in [("3", &b"12345GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"[..]), ("50", b"12345")] {
        let head = request("POST", "/short").header("content-length", said).body(()).unwrap();
        let answer = client.exchange(head, body);
        assert!(answer.as_ref().map_or(true, |answer| answer.status.as_u16() == 400), "{answer:?}");
    }
    assert_eq!(get(&mut client, "/after").status.as_u16(), 200, "the connection goes on");
    assert!(seen.lock().unwrap().iter().all(|target| target != "/smuggled"), "{seen:?}");
}

#[test]
fn answers_over_tcp_say_that_there_is_more() {
    let front = Front::start(|_| says("well"), "");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(front.certificate.clone()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    let mut session =
        rustls::ClientConnection::new(std::sync::Arc::new(tls), "localhost".try_into().unwrap()).unwrap();
    let mut tcp = std::net::TcpStream::connect(front.served.address).unwrap();
    let mut stream = rustls::Stream::new(&mut session, &mut tcp);
    std::io::Write::write_all(
        &mut stream,
        b"GET / HTTP/1.1\r\nHost: localhost:8443\r\nConnection: close\r\n\r\n",
    )
    .unwrap();
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut stream, &mut text);
    assert!(text.contains("\r\nAlt-Svc: h3=\":8443\"; ma=86400\r\n"), "{text}");
}

#[test]
fn what_is_in_flight_ends_before_the_program_does() {
    let slow = |request: &served::Request| {
        if request.target == "/slow" {
            std::thread::sleep(Duration::from_secs(1));
        }
        says("late")
    };
    let front = Front::start(slow, "mode = \"off\"");
    let mut client = front.client();
    assert_eq!(get(&mut client, "/").status.as_u16(), 200);
    let exchange = client.begin(request("GET", "/slow").body(()).unwrap()).unwrap();
    let waiting = std::thread::spawn(move || (client.end(exchange), client));
    while front.served.metric("portcullis_upstream_requests_active") < 1.0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(front.served.id(), Signal::TERM).unwrap();
    let (answer, client) = waiting.join().unwrap();
    assert_eq!(answer.unwrap().body, b"late");
    client.closed().unwrap();
    front.served.stop();
}
