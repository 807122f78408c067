//! What one HTTP/2 connection may ask of us: each limit is reached, counted under its name, and harms nobody
//! else.

use std::time::Duration;

use crate::common::http2::*;
use crate::common::*;

const ENHANCE_YOUR_CALM: u32 = 11;
const REFUSED_STREAM: u32 = 7;

fn front(backend: &Backend, http2: &str, timeouts: &str) -> Front {
    let listener = format!("http2 = {{ cleartext = true, {http2} }}");
    Front::start(&document(backend.address, timeouts, &listener, RULES, ""))
}

fn limit(front: &Front, name: &str) -> f64 {
    front.metric(&format!("portcullis_http2_limits_total{{limit=\"{name}\"}}"))
}

/// The limit was counted once, and another client is served.
fn check(front: &Front, name: &str) {
    until(|| limit(front, name) >= 1.0);
    assert_eq!(Peer::connect(front.address()).get("http://a/").status, 200);
}

#[test]
fn streams_at_one_time() {
    let backend = Backend::start(|request| match request.line().contains("slow") {
        true => Reply::Silence,
        false => ok("ok"),
    });
    let front = front(&backend, "streams = 3", "");
    let mut rude = Rude::connect(front.address(), &[]);
    let slow = [GET[0], GET[1], (&b":path"[..], &b"/slow"[..]), GET[3]];
    for stream in [1, 3, 5, 7] {
        rude.head(stream, &slow);
    }
    assert_eq!(rude.end_of(7), Some(REFUSED_STREAM));
    check(&front, "streams");
}

#[test]
fn rapid_reset() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "resets = 20", "");
    let mut rude = Rude::connect(front.address(), &[]);
    for stream in (1..200).step_by(2) {
        rude.head(stream, &GET);
        rude.frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    }
    assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM);
    check(&front, "resets");
    assert!(backend.seen().len() <= 22, "{}", backend.seen().len());
}

#[test]
fn continuation_flood() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "continuations = 4", "");
    let mut rude = Rude::connect(front.address(), &[]);
    rude.frame(HEADERS, END_STREAM, 1, &block(&GET));
    for _ in 0..5 {
        rude.frame(CONTINUATION, 0, 1, b"");
    }
    assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM);
    check(&front, "continuations");
    assert_eq!(backend.seen().len(), 1, "only what was asked for after that");
}

#[test]
fn frames_without_content() {
    let backend = Backend::start(|_| ok("ok"));
    for (kind, stream, payload) in
        [(PING, 0, &[0; 8][..]), (SETTINGS, 0, &[]), (2, 1, &[0, 0, 0, 0, 9]), (77, 0, b"what?")]
    {
        let front = front(&backend, "control_frames = 20", "");
        let mut rude = Rude::connect(front.address(), &[]);
        for _ in 0..21 {
            rude.frame(kind, 0, stream, payload);
        }
        assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM, "kind {kind}");
        check(&front, "control_frames");
    }
    let front = front(&backend, "control_frames = 20", "");
    let mut rude = Rude::connect(front.address(), &[]);
    rude.frame(HEADERS, END_HEADERS, 1, &block(&[(b":method", b"POST"), GET[1], GET[2], GET[3]]));
    for _ in 0..21 {
        rude.frame(DATA, 0, 1, b"");
    }
    assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM, "empty DATA");
    check(&front, "control_frames");
}

#[test]
fn windows_that_open_for_nothing() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "control_frames = 20", "");
    for stream in [0, 1] {
        let mut rude = Rude::connect(front.address(), &[]);
        rude.frame(HEADERS, END_HEADERS, 1, &block(&[(b":method", b"POST"), GET[1], GET[2], GET[3]]));
        for _ in 0..21 {
            rude.frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1]);
        }
        assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM, "stream {stream}");
        check(&front, "control_frames");
    }
    // DATA that is nothing but padding.
    let mut rude = Rude::connect(front.address(), &[]);
    rude.frame(HEADERS, END_HEADERS, 1, &block(&[(b":method", b"POST"), GET[1], GET[2], GET[3]]));
    for _ in 0..21 {
        rude.frame(DATA, 8, 1, &[2, 0, 0]);
    }
    assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM, "padding");
    check(&front, "control_frames");
}

#[test]
fn windows_that_open_for_what_was_sent() {
    let backend = Backend::start(|_| {
        let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + 2_000_000, b'x');
        Reply::Bytes(bytes)
    });
    let front = front(&backend, "control_frames = 20", "");
    // Two for each of the frames that come, which are more than twenty.
    let mut rude = Rude::connect(front.address(), &[]);
    rude.head(1, &GET);
    let mut came = 0;
    while came < 1_900_000 {
        let frame = rude.until(DATA);
        came += frame.payload.len();
        let more = (frame.payload.len() as u32).to_be_bytes();
        rude.frame(WINDOW_UPDATE, 0, 0, &more);
        rude.frame(WINDOW_UPDATE, 0, 1, &more);
    }
    assert_eq!(limit(&front, "control_frames"), 0.0);
}

#[test]
fn large_heads_and_header_bombs() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "header_list = \"8KiB\"", "");
    let mut rude = Rude::connect(front.address(), &[]);
    let value = vec![b'x'; 9000];
    rude.head(1, &[GET[0], GET[1], GET[2], GET[3], (b"x", &value)]);
    let frame = rude.until(HEADERS);
    assert_eq!((frame.stream, frame.flags & END_STREAM), (1, END_STREAM));
    check(&front, "header_list");
    // One entry of the table, named a thousand times.
    let mut rude = Rude::connect(front.address(), &[]);
    let mut bomb = block(&GET);
    bomb.extend([0x40, 1, b'x', 127, 0xa9, 0x1e]);
    bomb.extend([b'y'; 127 + 0x29 + (0x1e << 7)]);
    bomb.extend([0x80 | 62; 1000]);
    rude.frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb);
    assert_eq!(rude.until(GOAWAY).code(), ENHANCE_YOUR_CALM);
    until(|| limit(&front, "header_list") >= 2.0);
    assert_eq!(backend.seen().len(), 1);
}

#[test]
fn a_window_that_stays_shut() {
    let body = "x".repeat(1000);
    let backend = Backend::start(move |_| ok(&body));
    let front = front(&backend, "", "timeouts = { write = \"300ms\" }");
    // SETTINGS_INITIAL_WINDOW_SIZE
    let mut rude = Rude::connect(front.address(), &[(4, 0)]);
    rude.head(1, &GET);
    assert_eq!(rude.end_of(1), Some(ENHANCE_YOUR_CALM));
    check(&front, "send_rate");
    until(|| front.metric("portcullis_http2_streams_active") == 0.0);
}

#[test]
fn a_window_that_opens_a_crack() {
    let body = "x".repeat(1000);
    let backend = Backend::start(move |_| ok(&body));
    let front = front(&backend, "send_rate = 1000", "timeouts = { write = \"300ms\" }");
    let mut rude = Rude::connect(front.address(), &[(4, 1)]);
    rude.head(1, &GET);
    rude.patience(Duration::from_millis(100));
    let mut end = None;
    until(|| {
        // A byte each time, well within the timeout.
        rude.frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
        let frame = rude.next();
        end = frame.filter(|frame| frame.kind == RST_STREAM).map(|frame| frame.code());
        std::thread::sleep(Duration::from_millis(20));
        end.is_some()
    });
    assert_eq!(end, Some(ENHANCE_YOUR_CALM));
    check(&front, "send_rate");
}

#[test]
fn windows_are_as_wide_as_configured() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "stream_window = 100000, connection_window = 300000, streams = 9", "");
    let mut rude = Rude::connect(front.address(), &[]);
    let settings = rude.until(SETTINGS).payload;
    let setting = |key: u16| {
        let pair = settings.chunks(6).find(|pair| pair[..2] == key.to_be_bytes());
        pair.map(|pair| u32::from_be_bytes(pair[2..].try_into().unwrap()))
    };
    assert_eq!(
        (setting(4), setting(3), setting(6), setting(8)),
        (Some(100_000), Some(9), Some(65_536), Some(1))
    );
    rude.head(1, &GET);
    let update = rude.until(WINDOW_UPDATE);
    assert_eq!((update.stream, update.payload), (0, (300_000u32 - 65_535).to_be_bytes().to_vec()));
}

#[test]
fn connections_without_requests_end() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "", "timeouts = { idle = \"200ms\", header = \"200ms\" }");
    let mut rude = Rude::connect(front.address(), &[]);
    assert_eq!(rude.until(GOAWAY).code(), 0);
    until(|| front.metric("portcullis_connections_active") == 0.0);
    let mut silent = Client::connect(front.address());
    silent.send("PRI * HTTP/2.0\r\n\r\n");
    silent.rest();
    until(|| front.metric("portcullis_connections_active") == 0.0);
}

#[test]
fn garbage_ends_a_connection_and_nothing_else() {
    let backend = Backend::start(|_| ok("ok"));
    let front = front(&backend, "", "");
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for round in 0..200 {
        let mut rude = Rude::connect(front.address(), &[]);
        let payload: Vec<u8> = (0..random()).map(|_| random()).collect();
        let kind = if round % 2 == 0 { HEADERS } else { random() % 11 };
        rude.frame(kind, random(), u32::from(random() % 4), &payload);
        rude.frame(GOAWAY, 0, 0, &[0; 8]);
        let _ = rude.client.stream.shutdown(std::net::Shutdown::Write);
        rude.client.rest();
    }
    until(|| front.metric("portcullis_connections_active") == 0.0);
    until(|| front.metric("portcullis_http2_malformed_total") >= 50.0);
    assert_eq!(Peer::connect(front.address()).get("http://a/").status, 200);
}
