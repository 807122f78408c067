//! `serve ext-authz` and `serve ext-proc` behind the real Envoy, and calls that no Envoy makes.

use super::*;

/// Envoy, of `PATH` or as `scripts/test-tools.sh` installs it.
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/envoy/envoy/_bin/envoy");
    if installed.is_file() { Some(installed) } else { tool("envoy") }
}

/// Envoy by a shipped configuration, edited.
fn envoy(
    serve: &Serve,
    application: SocketAddr,
    name: &str,
    port: u16,
    edit: impl Fn(String) -> String,
) -> Option<Front> {
    let program = program()?;
    let (address, folder) = (free_address(), serve.folder.path());
    let place = |address: SocketAddr| format!("address: {}, port_value: {} ", address.ip(), address.port());
    let mut text = example(name, &[]);
    for (port, address) in [(8080, address), (8081, application), (port, serve.address)] {
        let known = format!("address: 127.0.0.1, port_value: {port} ");
        assert!(text.contains(&known), "{known}");
        text = text.replace(&known, &place(address));
    }
    std::fs::write(folder.join("envoy.yaml"), edit(text)).unwrap();
    let config = folder.join("envoy.yaml").into_os_string();
    let mut arguments: Vec<OsString> = vec!["-c".into(), config];
    arguments
        .extend(["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning"].map(Into::into));
    Some(Front::start(&program, &arguments, address, folder))
}

fn chunked(address: SocketAddr, body: &str, trailers: &str) -> Answer {
    let head =
        "POST /form HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let body = format!("{:x}\r\n{body}\r\n0\r\n{trailers}\r\n", body.len());
    exchange(address, format!("{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{body}"))
}

#[test]
fn ext_authz_sees_the_request() {
    let (serve, application) = (Serve::start("ext-authz", &[]), site());
    let Some(front) = envoy(&serve, application.address(), "envoy-ext-authz.yaml", 9004, |text| text) else {
        return;
    };
    let answer = get(front.address, "/a?b=c");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello /a?b=c 0"), "{}", answer.text());
    assert_eq!(post(front.address, "a=honest").status(), 200);
    assert_eq!(chunked(front.address, "a=honest", "").status(), 200);
    let answer = get(front.address, "/a?b=attack");
    assert_eq!(answer.status(), 403);
    assert!(answer.body().contains("This request was blocked"), "{}", answer.text());
    assert_eq!(post(front.address, "a=attack").status(), 403);
    assert_eq!(chunked(front.address, "a=attack", "").status(), 403);
    let events = serve.events(3);
    assert_eq!(answer.header("x-request-id").as_deref(), events[0]["request_id"].as_str());
    assert_eq!(
        events[0]["integration"],
        serde_json::json!({"kind": "ext_authz", "blind_spots": ["response"]})
    );
    assert_eq!(events[0]["server"]["host"], "a.example");
    assert_eq!(
        (&events[0]["request"]["target"], &events[0]["request"]["protocol"]),
        (&"/a?b=attack".into(), &"HTTP/1.1".into())
    );
    let redirect = get(front.address, "/?b=elsewhere");
    assert_eq!(
        (redirect.status(), redirect.header("location").as_deref()),
        (302, Some("https://a.example/"))
    );
    serve.counts("portcullis_integration_exchanges_total{integration=\"ext_authz\",verdict=\"pass\"}", 3.0);
    serve.stop();
    assert_eq!(get(front.address, "/a").status(), 403, "it fails closed");
}

#[test]
fn ext_authz_tells_of_bodies_that_are_cut() {
    let (serve, application) = (Serve::start("ext-authz", &[]), site());
    let edit = |text: String| {
        text.replace("1048576", "10000")
            .replace("allow_partial_message: false", "allow_partial_message: true")
    };
    let Some(front) = envoy(&serve, application.address(), "envoy-ext-authz.yaml", 9004, edit) else {
        return;
    };
    let late = format!("a={}&b=attack", "x".repeat(20_000));
    assert_eq!(post(front.address, &late).status(), 200);
    assert_eq!(chunked(front.address, &late, "").status(), 200);
    for event in serve.events(2) {
        assert_eq!(event["integration"]["blind_spots"], serde_json::json!(["request_body_cut", "response"]));
        assert_eq!(event["exceptions"][0]["cause"], "request_body_over_limit");
    }
}

#[test]
fn ext_proc_sees_requests_and_responses() {
    let (serve, application) = (Serve::start("ext-proc", &[]), site());
    let Some(front) = envoy(&serve, application.address(), "envoy-ext-proc.yaml", 9005, |text| text) else {
        return;
    };
    let answer = get(front.address, "/a?b=c");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello /a?b=c 0"), "{}", answer.text());
    assert_eq!(post(front.address, "a=honest").status(), 200);
    assert_eq!(chunked(front.address, "a=honest", "").status(), 200);
    let answer = get(front.address, "/a?b=attack");
    assert_eq!(answer.status(), 403);
    assert!(answer.body().contains("This request was blocked"), "{}", answer.text());
    assert_eq!(post(front.address, "a=attack").status(), 403);
    assert_eq!(chunked(front.address, "a=attack", "").status(), 403);
    let events = serve.events(3);
    assert_eq!(answer.header("x-request-id").as_deref(), events[0]["request_id"].as_str());
    assert_eq!(events[0]["integration"]["kind"], "ext_proc");
    assert_eq!(events[0]["client"]["addr"], "127.0.0.1");
    let answer = get(front.address, "/leak");
    assert_eq!(answer.status(), 403, "the body of the response is inspected");
    assert!(!answer.text().contains("secret"), "{}", answer.text());
    let event = &serve.events(4)[3];
    assert_eq!((&event["verdict"]["rule_id"], &event["verdict"]["phase"]), (&4.into(), &4.into()));
    assert!(event["integration"]["blind_spots"].is_null(), "all of it was shown: {event}");
    serve.counts("portcullis_integration_exchanges_total{integration=\"ext_proc\",verdict=\"pass\"}", 3.0);
    serve.counts(
        "portcullis_requests_total{site=\"default\",route=\"/\",status=\"200\",verdict=\"pass\"}",
        3.0,
    );
    serve.stop();
    assert_eq!(get(front.address, "/a").status(), 500, "it fails closed");
}

/// Trailers behind a body must not let it go on uninspected.
#[test]
fn ext_proc_with_trailers() {
    for mode in ["SKIP", "SEND"] {
        let (serve, application) = (Serve::start("ext-proc", &[]), site());
        let edit = |text: String| {
            let modes = format!("request_trailer_mode: {mode}\n                        request_body_mode:");
            let text = text.replace("request_body_mode:", &modes);
            text.replace(
                "use_remote_address: true",
                "use_remote_address: true\n                http_protocol_options: { enable_trailers: true }",
            )
        };
        let Some(front) = envoy(&serve, application.address(), "envoy-ext-proc.yaml", 9005, edit) else {
            return;
        };
        assert_eq!(chunked(front.address, "a=honest", "X-Note: b\r\n").status(), 200, "{mode}");
        assert_eq!(chunked(front.address, "a=attack", "X-Note: b\r\n").status(), 403, "{mode}");
    }
}

#[test]
fn ext_proc_modes_and_their_blind_spots() {
    let late = format!("a={}&b=attack", "x".repeat(20_000));
    for (mode, expected, spot) in [
        ("NONE", 200, "request_body"),
        ("STREAMED", 403, "request_body_streamed"),
        ("BUFFERED_PARTIAL", 200, "request_body_cut"),
    ] {
        let (serve, application) = (Serve::start("ext-proc", &[]), site());
        let edit = |text: String| {
            let text = text.replace("request_body_mode: BUFFERED", &format!("request_body_mode: {mode}"));
            // A small buffer, which a body can be larger than.
            text.replace(
                "  listeners:\n    - address",
                "  listeners:\n    - per_connection_buffer_limit_bytes: 8192\n      address",
            )
        };
        let Some(front) = envoy(&serve, application.address(), "envoy-ext-proc.yaml", 9005, edit) else {
            return;
        };
        let status = post(front.address, &late).status();
        let counted = format!(
            "portcullis_integration_blind_spots_total{{integration=\"ext_proc\",blind_spot=\"{spot}\"}}"
        );
        serve.counts(&counted, 1.0);
        assert_eq!(status, expected, "{mode}");
    }
    let (serve, application) = (Serve::start("ext-proc", &[]), site());
    let edit = |text: String| {
        let text = text.replace(
            "request_body_mode: BUFFERED",
            "request_body_mode: FULL_DUPLEX_STREAMED\n                        request_trailer_mode: SEND",
        );
        text.replace("response_body_mode: BUFFERED", "response_body_mode: NONE")
    };
    let Some(front) = envoy(&serve, application.address(), "envoy-ext-proc.yaml", 9005, edit) else { return };
    assert_eq!(post(front.address, "a=honest").status(), 500, "not done, and not passed");
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A call with these bytes as its messages, and then an end. What comes back is of no interest.
fn call(serve: &Serve, path: &str, messages: &[u8]) {
    let field = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let fields = [
        field(":method", "POST"),
        field(":scheme", "http"),
        field(":path", path),
        field(":authority", "a"),
        field("content-type", "application/grpc"),
        field("te", "trailers"),
    ];
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(4, 0, 0, b""),
        frame(1, 4, 1, &fields.concat()),
        frame(0, 1, 1, messages),
        // GOAWAY: no more calls come, so the connection ends with this one.
        frame(7, 0, 0, &[0; 8]),
    ];
    exchange(serve.address, bytes.concat());
}

#[test]
fn hostile_calls_end_by_themselves_only() {
    const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
    let serve = Serve::start("ext-proc", &[]);
    let error = |reason: &str| {
        format!("portcullis_integration_errors_total{{integration=\"ext_proc\",reason=\"{reason}\"}}")
    };
    // Not protobuf; compressed; a body before its head; nothing in it; another service.
    call(&serve, PROCESS, &[0, 0, 0, 0, 2, 0xff, 0xff]);
    call(&serve, PROCESS, &[1, 0, 0, 0, 0]);
    call(&serve, PROCESS, &[0, 0, 0, 0, 2, 0x22, 0x00]);
    call(&serve, PROCESS, &[0, 0, 0, 0, 0]);
    call(&serve, "/grpc.health.v1.Health/Check", &[0, 0, 0, 0, 0]);
    serve.counts(&error("malformed"), 5.0);
    call(&serve, PROCESS, &[0, 0xff, 0xff, 0xff, 0xff]);
    serve.counts(&error("too_large"), 1.0);
    // Something else than HTTP/2.
    exchange(serve.address, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    serve.counts(&error("malformed"), 6.0);
    // A head without anything is refused, and has an event.
    call(&serve, PROCESS, &[0, 0, 0, 0, 2, 0x12, 0x00]);
    assert_eq!(serve.events(1)[0]["verdict"]["action"], "refuse");
    serve.counts("portcullis_connections_active", 0.0);
    serve.stop();
}
