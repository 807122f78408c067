//! HTTP/3 to clients, through the real program. Needs the feature `http3`.

#[path = "it/served/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests in `it` use the rest")]
mod served;

use std::time::Duration;

use http::Request;
use portcullis_testkit::http3::{Answer, Client, Ended};
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

    /// MiB that the program has in memory.
    fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.served.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() / 1024
    }
}

/// The stream ended with an answer that says this.
fn answers(ended: &Ended, text: &[u8]) -> bool {
    matches!(ended, Ended::Answered(answer) if answer.windows(text.len()).any(|part| part == text))
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

/// A body whose length is not the one announced would become another request to the application.
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

const MESSAGE_ERROR: u64 = 0x10e;
const EXCESSIVE_LOAD: u64 = 0x107;

/// A HEADERS frame. Each line is one of QPACK, and none is of the dynamic table.
fn head(lines: &[&[u8]]) -> Vec<u8> {
    let block = [&[0, 0][..], &lines.concat()].concat();
    let length = block.len() as u16 | 0x4000;
    [&[1][..], &length.to_be_bytes(), &block].concat()
}

const GET: &[u8] = &[0xd1];
const HTTPS: &[u8] = &[0xd7];
const ROOT: &[u8] = &[0xc1];
const HOST: &[u8] = b"\x50\x09localhost";
const FIELD: &[u8] = b"\x23x-a\x01b";

/// The library would accept these (RFC 9114, section 4.3): the later one of two, wherever it stands.
#[test]
fn pseudo_headers_stand_once_and_first() {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&seen);
    let front = Front::start(
        move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            says("well")
        },
        "",
    );
    let client = front.client();
    let good = head(&[GET, HTTPS, HOST, ROOT, FIELD]);
    assert!(matches!(client.raw(&good, true).unwrap(), Ended::Answered(answer) if !answer.is_empty()));
    let path = b"\x51\x08/private";
    let bad: [&[&[u8]]; 8] = [
        &[GET, HTTPS, HOST, ROOT, path],
        &[GET, GET, HTTPS, HOST, ROOT],
        &[GET, HTTPS, HOST, b"\x50\x01b", ROOT],
        &[GET, HTTPS, HOST, FIELD, ROOT],
        &[GET, HTTPS, HTTPS, HOST, ROOT],
        &[GET, HTTPS, HOST, ROOT, b"\x27\x03:nothing..\x01b"],
        // `:scheme http`, and an unknown one.
        &[GET, &[0xd6], HOST, ROOT],
        &[GET, b"\x5f\x07\x03ftp", HOST, ROOT],
    ];
    for lines in bad {
        assert_eq!(client.raw(&head(lines), true).unwrap(), Ended::Reset(MESSAGE_ERROR), "{lines:02x?}");
    }
    front.served.counts("portcullis_http2_malformed_total", bad.len() as f64);
    // The connection stays open, and none of these came through.
    assert!(matches!(client.raw(&good, true).unwrap(), Ended::Answered(answer) if !answer.is_empty()));
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 2);
    // Behind a body there are none either.
    let trailers = [&head(&[GET, HTTPS, HOST, ROOT])[..], b"\x00\x02hi", &head(&[FIELD, ROOT])].concat();
    let ended = client.raw(&trailers, true).unwrap();
    assert!(
        !matches!(&ended, Ended::Answered(answer) if answer.windows(4).any(|part| part == b"well")),
        "{ended:?}"
    );
}

/// A DATA frame without content is none that ends a body, and one of an unknown type is ignored, wherever
/// they are cut.
#[test]
fn bodies_are_whole_whatever_frames_they_come_in() {
    let front = Front::start(
        |request| says(format!("body={}.", String::from_utf8_lossy(&request.body))),
        "mode = \"semantic\"",
    );
    let client = front.client();
    let post: &[&[u8]] = &[&[0xd4], HTTPS, HOST, ROOT];
    let grease = b"\x21\x03abc";
    let bytes = [
        &grease[..],
        &head(post),
        b"\x00\x00\x00\x04q=on",
        grease,
        b"\x00\x40\x00\x00\x01e\x40\x00\x80\x00\x00\x00",
        &head(&[FIELD]),
        grease,
    ]
    .concat();
    let whole = |ended: &Ended| answers(ended, b"body=q=one.");
    let ended = client.raw(&bytes, true).unwrap();
    assert!(whole(&ended), "{ended:?}");
    let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
    let ended = client.raw_pieces(&pieces, Duration::from_millis(2), true).unwrap();
    assert!(whole(&ended), "{ended:?}");
    // Data behind such a frame is inspected like the rest.
    let attack = [&head(post)[..], b"\x00\x00\x00\x1aq=1%27+or+%271%27%3D%271--"].concat();
    let ended = client.raw(&attack, true).unwrap();
    assert!(!matches!(&ended, Ended::Answered(answer) if answer.windows(5).any(|part| part == b"body=")));
    let event: serde_json::Value = serde_json::from_str(&front.served.events(1)[0]).unwrap();
    assert_eq!(event["verdict"]["class"], "sqli", "{event}");
}

/// RFC 9114, section 7.1. A request that is cut off is incomplete.
#[test]
fn a_frame_that_is_cut_off_ends_nothing() {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&seen);
    let front = Front::start(
        move |_| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            says("well")
        },
        "mode = \"semantic\"",
    );
    let post = head(&[&[0xd4], HTTPS, HOST, ROOT]);
    for cut in [&b"\x00\x40\x64hello"[..], b"\x00\x40", b"\x00", b"\x01\x05\x00", b"\x21\x05a", b"\xc0\x00"] {
        for pause in [0, 100] {
            let client = front.client();
            let ended = client.raw_pieces(&[&post, cut], Duration::from_millis(pause), true);
            let is_well = ended.as_ref().is_ok_and(|ended| answers(ended, b"well"));
            assert!(!is_well, "{cut:02x?} {ended:?}");
        }
    }
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 0);
    let said = std::fs::read_to_string(front.served.folder.path().join("output")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(get(&mut front.client(), "/").status.as_u16(), 200);
}

/// Frames that would be collected whole, however long they say they are.
#[test]
fn a_frame_without_end_is_not_collected() {
    let front = Front::start(|_| says("well"), "");
    // Warm: what a first connection takes is not what this is about.
    get(&mut front.client(), "/");
    let before = front.memory();
    // HEADERS, SETTINGS on a stream of requests, and an unknown type, each of a gigabyte.
    for kind in [0x01, 0x04, 0x21] {
        for _ in 0..5 {
            let client = front.client();
            let long = [&[kind, 0xbf, 0xff, 0xff, 0xff][..], &vec![0; 10 << 20]].concat();
            assert_eq!(client.raw(&long, false).unwrap(), Ended::Closed(EXCESSIVE_LOAD), "{kind:#x}");
        }
    }
    front.served.counts("portcullis_http2_limits_total{limit=\"header_list\"}", 15.0);
    let after = front.memory();
    assert!(after < before + 40, "{before} MiB, then {after}");
    assert_eq!(get(&mut front.client(), "/").status.as_u16(), 200);
}

/// None of them is a request for the application, and the connection stays open.
#[test]
fn tunnels_and_streams_without_meaning_go_nowhere() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let record = std::sync::Arc::clone(&seen);
    let front = Front::start(
        move |request| {
            record.lock().unwrap().push(request.target.clone());
            says("well")
        },
        "mode = \"off\"",
    );
    get(&mut front.client(), "/");
    let before = front.memory();
    let mut client = front.client();
    const CONNECT: &[u8] = &[0xcf];
    let protocol = b"\x27\x02:protocol\x09websocket";
    for lines in [
        &[CONNECT, HOST][..],
        &[CONNECT, HTTPS, HOST, ROOT],
        &[CONNECT, HTTPS, HOST, ROOT, protocol],
        &[GET, HTTPS, HOST, ROOT, protocol],
        &[GET, HTTPS, ROOT],
        &[GET, HTTPS, HOST],
        &[HTTPS, HOST, ROOT],
    ] {
        let ended = client.raw(&head(lines), true).unwrap();
        println!("{lines:02x?} {ended:?}");
        let is_well =
            matches!(&ended, Ended::Answered(answer) if answer.windows(4).any(|part| part == b"well"));
        assert!(!is_well && !matches!(ended, Ended::Closed(_)), "{lines:02x?} {ended:?}");
    }
    // Of push, of WebTransport, reserved ones, with and without a whole type; more of them than there may be
    // at one time.
    for _ in 0..20 {
        for kind in [&b"\x01\x05"[..], b"\x40\x54\x00", b"\x21", b"\xc0\x00", b""] {
            client.one_way(kind).unwrap();
            client.one_way(&[kind, &[0x21; 100_000]].concat()).unwrap();
        }
    }
    assert_eq!(get(&mut client, "/after").status.as_u16(), 200);
    assert_eq!(*seen.lock().unwrap(), ["/", "/after"]);
    let after = front.memory();
    assert!(after < before + 10, "{before} MiB, then {after}");
    let said = std::fs::read_to_string(front.served.folder.path().join("output")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
}

/// The library reads more whenever it is asked for a frame, however much it has.
#[test]
fn a_body_in_tiny_frames_is_not_read_ahead() {
    let front = Front::start(|request| says(format!("{} bytes", request.body.len())), "mode = \"off\"");
    get(&mut front.client(), "/");
    let before = front.memory();
    let client = front.client();
    let body = b"\x00\x01a".repeat(2 << 20);
    let most = std::thread::scope(|scope| {
        let sent =
            scope.spawn(|| client.raw(&[&head(&[&[0xd4], HTTPS, HOST, ROOT])[..], &body].concat(), true));
        let mut most = 0;
        while !sent.is_finished() {
            most = front.memory().max(most);
            std::thread::sleep(Duration::from_millis(20));
        }
        let ended = sent.join().unwrap().unwrap();
        let is_whole = answers(&ended, b"2097152 bytes");
        assert!(is_whole, "{ended:?}");
        most
    });
    // 6 MiB of frames; 2 MiB of body, which is held.
    assert!(most < before + 16, "{before} MiB, then {most}");
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
            std::thread::sleep(Duration::from_secs(4));
        }
        says("late")
    };
    let front = Front::start(slow, "mode = \"off\"");
    let mut client = front.client();
    assert_eq!(get(&mut client, "/").status.as_u16(), 200);
    let exchange = client.begin(request("GET", "/slow").body(()).unwrap()).unwrap();
    let waiting = std::thread::spawn(move || (client.end(exchange), client));
    until(|| front.served.metric("portcullis_upstream_requests_active") == 1.0);
    signal(front.served.id(), Signal::TERM).unwrap();
    let (answer, client) = waiting.join().unwrap();
    assert_eq!(answer.unwrap().body, b"late");
    client.closed().unwrap();
    front.served.stop();
}

/// With TLS known, and a field for each cookie.
#[test]
fn signed_cookies_come_back_to_the_upstream_alone() {
    let echo = |request: &served::Request| {
        let cookie = String::from_utf8_lossy(request.header("cookie").unwrap_or_default()).into_owned();
        let plain = says(format!("[{cookie}]"));
        let set = ("Set-Cookie".to_owned(), "__Host-id=7; Path=/".to_owned());
        Response { headers: [plain.headers, vec![set]].concat(), ..plain }
    };
    let front = Front::start(echo, "mode = \"off\"\ncookies = { sign = [\"__Host-id\"], secure = true }");
    let mut client = front.client();
    let set = get(&mut client, "/").headers["set-cookie"].to_str().unwrap().to_owned();
    let own = set.strip_suffix("; Path=/; Secure").unwrap();
    assert!(own.starts_with("__Host-id=7."), "{set}");
    let mut through = |cookies: &[&str]| {
        let head = cookies.iter().fold(request("GET", "/"), |head, cookie| head.header("cookie", *cookie));
        String::from_utf8(client.exchange(head.body(()).unwrap(), b"").unwrap().body).unwrap()
    };
    assert_eq!(through(&["a=1", own, "__host-id=8"]), "[a=1; __Host-id=7]");
    assert_eq!(through(&["a=1", "__Host-id=7"]), "[a=1]");
}
