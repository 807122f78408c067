//! `serve spop` behind the real HAProxy, and frames that no HAProxy sends.

use super::*;

/// HAProxy by the shipped configuration, edited.
fn haproxy(
    serve: &Serve,
    application: SocketAddr,
    edit: impl Fn(String) -> String,
    edit_spoe: impl Fn(String) -> String,
) -> Option<Front> {
    let program = tool("haproxy")?;
    let (address, folder) = (free_address(), serve.folder.path());
    let addresses =
        [("127.0.0.1:8080", address), ("127.0.0.1:8081", application), ("127.0.0.1:9003", serve.address)];
    let spoe = folder.join("portcullis-spoe.conf");
    std::fs::write(&spoe, edit_spoe(example("portcullis-spoe.conf", &[]))).unwrap();
    let text = example("haproxy.cfg", &addresses).replace("portcullis-spoe.conf", spoe.to_str().unwrap());
    std::fs::write(folder.join("haproxy.cfg"), edit(text)).unwrap();
    let arguments = ["-db".into(), "-f".into(), folder.join("haproxy.cfg").into_os_string()];
    Some(Front::start(&program, &arguments, address, folder))
}

const SPOTS: &str = "portcullis_integration_blind_spots_total{integration=\"spop\",blind_spot=";

#[test]
fn haproxy_asks_before_it_forwards() {
    let (serve, application) = (Serve::start("spop", &[]), site());
    let Some(front) = haproxy(&serve, application.address(), |text| text, |text| text) else { return };
    let answer = get(front.address, "/a?b=c");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.body(), "hello /a?b=c 0");
    assert_eq!(post(front.address, "a=honest").status(), 200);
    let answer = get(front.address, "/a?b=attack");
    assert_eq!(answer.status(), 403);
    assert_eq!(post(front.address, "a=attack").status(), 403);
    let events = serve.events(2);
    assert_eq!(answer.header("x-request-id").as_deref(), events[0]["request_id"].as_str());
    assert_eq!(events[0]["request"]["target"], "/a?b=attack");
    assert_eq!(events[0]["integration"]["kind"], "spop");
    assert_eq!(events[0]["integration"]["blind_spots"], serde_json::json!(["response"]));
    assert_eq!(
        (&events[1]["request"]["method"], &events[1]["request"]["body_bytes"]),
        (&"POST".into(), &8.into())
    );
    let answer = get(front.address, "/?b=elsewhere");
    assert_eq!((answer.status(), answer.header("location").as_deref()), (302, Some("https://a.example/")));
    // `silent-drop` does not even close the connection towards the client: nothing is waited for.
    let mut dropped = TcpStream::connect(front.address).unwrap();
    dropped.write_all(b"GET /?b=gone HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(serve.events(4)[3]["verdict"]["action"], "drop");
    serve.counts("portcullis_integration_exchanges_total{integration=\"spop\",verdict=\"pass\"}", 2.0);
    serve.stop();
    assert_eq!(get(front.address, "/a").status(), 503, "it fails closed");
}

/// What HAProxy does not send of a body is told: in an event, in metrics, and to the client if that is
/// wanted.
#[test]
fn bodies_that_are_cut() {
    for (refuse, expected) in [(&[][..], 200), (&["--refuse-cut-bodies"], 413)] {
        let (serve, application) = (Serve::start("spop", refuse), site());
        let Some(front) = haproxy(&serve, application.address(), |text| text, |text| text) else { return };
        // Whole, but longer than HAProxy's default buffer.
        assert_eq!(post(front.address, &format!("a={}", "x".repeat(30_000))).status(), 200);
        let late = format!("a={}&b=attack", "x".repeat(90_000));
        assert_eq!(post(front.address, &late).status(), expected);
        let event = &serve.events(1)[0];
        assert_eq!(event["integration"]["blind_spots"], serde_json::json!(["request_body_cut", "response"]));
        assert_eq!(event["exceptions"][0]["cause"], "request_body_over_limit");
        let shown = event["exceptions"][0]["limit_bytes"].as_u64().unwrap();
        assert_eq!(event["coverage"]["bytes_not_inspected"]["not_sent"], late.len() as u64 - shown);
        assert!((40_000..65_536).contains(&shown), "{shown}");
        serve.counts(&format!("{SPOTS}\"request_body_cut\"}}"), 1.0);
        // In the part that is sent it is found.
        assert_eq!(post(front.address, &format!("b=attack&a={}", "x".repeat(90_000))).status(), 403);
    }
}

/// A body in chunks has no length to compare with; one that fills the buffer is taken for cut.
#[test]
fn chunked_bodies_that_are_cut() {
    let (serve, application) = (Serve::start("spop", &[]), site());
    let Some(front) = haproxy(&serve, application.address(), |text| text, |text| text) else { return };
    let send = |length: usize| {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let chunk = format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length));
        exchange(front.address, format!("{head}{chunk}")).status()
    };
    assert_eq!((send(20_000), send(100_000)), (200, 200));
    assert_eq!(
        serve.events(1)[0]["integration"]["blind_spots"],
        serde_json::json!(["request_body_cut", "response"])
    );
    serve.counts(&format!("{SPOTS}\"request_body_cut\"}}"), 1.0);
}

/// A configuration written for coraza-spoa: its names, its message for responses.
#[test]
fn configurations_for_coraza_spoa() {
    let (serve, application) = (Serve::start("spop", &["--responses"]), site());
    let edit = |text: String| {
        let text = text
            .replace("txn.portcullis.", "txn.coraza.")
            .replace("spoe-group portcullis request", "spoe-group portcullis coraza-req");
        text.replace(
            "    default_backend",
            "    http-response deny deny_status 502 if { var(txn.coraza.action) -m str deny }\n    \
             http-response deny deny_status 503 if { var(txn.coraza.error) -m int gt 0 }\n    \
             http-response set-header X-Hits %[var(txn.coraza.rules_hit)]\n    default_backend",
        )
    };
    let edit_spoe = |_| {
        "[portcullis]
spoe-agent coraza-agent
    messages    coraza-res
    groups      coraza-req
    option      var-prefix      coraza
    option      set-on-error    error
    timeout     hello           2s
    timeout     idle            2m
    timeout     processing      2s
    use-backend portcullis

spoe-message coraza-req
    args app=str(sample_app) src-ip=src src-port=src_port dst-ip=dst dst-port=dst_port method=method path=path query=query version=req.ver headers=req.hdrs body=req.body exportRuleIDs=bool(false)

spoe-message coraza-res
    args app=str(sample_app) id=var(txn.coraza.id) version=res.ver status=status headers=res.hdrs body=res.body exportRuleIDs=bool(false)
    event on-http-response

spoe-group coraza-req
    messages coraza-req
"
        .to_owned()
    };
    let Some(front) = haproxy(&serve, application.address(), edit, edit_spoe) else { return };
    let answer = get(front.address, "/a?b=c");
    assert_eq!((answer.status(), answer.header("x-hits").as_deref()), (200, Some("0")), "{}", answer.text());
    assert_eq!(get(front.address, "/?b=attack").status(), 403);
    assert!(
        serve.events(1)[0]["integration"]["blind_spots"]
            .as_array()
            .unwrap()
            .iter()
            .any(|spot| spot == "response")
    );
    serve.counts("portcullis_integration_exchanges_total{integration=\"spop\",verdict=\"pass\"}", 1.0);
    serve.counts(
        "portcullis_requests_total{site=\"default\",route=\"/\",status=\"200\",verdict=\"pass\"}",
        1.0,
    );
    assert_eq!(get(front.address, "/leak").status(), 502, "the body of the response is inspected");
    let event = &serve.events(2)[1];
    assert_eq!((&event["verdict"]["rule_id"], &event["verdict"]["phase"]), (&4.into(), &4.into()));
}

/// A frame: its length, type, flags, stream and number, and what is in it.
fn frame(kind: u8, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut body = vec![kind];
    body.extend_from_slice(&flags.to_be_bytes());
    body.extend_from_slice(&[1, 1]);
    body.extend_from_slice(payload);
    [&u32::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}

/// A string with its name before it.
fn text(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    [&[length(name)], name.as_bytes(), &[8, length(value)], value.as_bytes()].concat()
}

fn hello() -> Vec<u8> {
    let mut payload = text("supported-versions", "2.0");
    payload.extend_from_slice(&[14]);
    payload.extend_from_slice(b"max-frame-size");
    // 16380
    payload.extend_from_slice(&[3, 0xfc, 0xf0, 0x06]);
    payload.extend(text("capabilities", "pipelining"));
    frame(1, 1, &payload)
}

/// What a connection gets for these bytes, and then an end.
fn told(serve: &Serve, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(serve.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn hostile_frames_end_their_connection_only() {
    let serve = Serve::start("spop", &[]);
    let contains =
        |answer: &[u8], word: &str| answer.windows(word.len()).any(|window| window == word.as_bytes());
    assert!(contains(&told(&serve, &hello()), "pipelining"));
    let mut request = vec![1, b'm', 3];
    request.extend(text("method", "GET"));
    request.extend(text("path", "/a"));
    request.extend(text("headers", "host: a\r\n"));
    let notify = frame(3, 1, &request);
    let good = [hello(), notify.clone(), notify].concat();
    // Two in flight are answered.
    let answer = told(&serve, &good);
    assert_eq!(answer.windows(5).filter(|window| *window == [103, 0, 0, 0, 1]).count(), 2, "{answer:x?}");
    let broken: [(Vec<u8>, &str); 10] = [
        (frame(3, 1, &request), "cannot be read"),
        (frame(1, 1, &text("supported-versions", "1.0")), "version 2.0"),
        (frame(1, 1, &text("supported-versions", "2.0")), "max-frame-size"),
        (frame(1, 1, b""), "supported-versions"),
        (frame(1, 0, b""), "fragmented"),
        ([hello(), hello()].concat(), "cannot be read"),
        ([hello(), u32::MAX.to_be_bytes().to_vec()].concat(), "larger than max-frame-size"),
        ([hello(), frame(3, 1, &[1, b'm', 255])].concat(), "cannot be read"),
        ([hello(), frame(3, 1, &[0xff; 40])].concat(), "cannot be read"),
        (
            [hello(), frame(3, 1, &[1, b'm', 1, 4, b'p', b'a', b't', b'h', 8, 1, b'/'])].concat(),
            "cannot be read",
        ),
    ];
    for (bytes, word) in &broken {
        let answer = told(&serve, bytes);
        assert!(contains(&answer, word), "{bytes:x?}: {}", String::from_utf8_lossy(&answer));
    }
    serve.counts("portcullis_integration_errors_total{integration=\"spop\",reason=\"too_large\"}", 1.0);
    serve.counts("portcullis_integration_errors_total{integration=\"spop\",reason=\"malformed\"}", 9.0);
    // A response whose request is not known.
    let mut response = vec![1, b'm', 2];
    response.extend(text("id", "nobody"));
    response.extend_from_slice(&[6, b's', b't', b'a', b't', b'u', b's', 3, 200]);
    let answer = told(&serve, &[hello(), frame(3, 1, &response)].concat());
    assert!(contains(&answer, "error"), "{answer:x?}");
    serve.counts("portcullis_integration_errors_total{integration=\"spop\",reason=\"no_exchange\"}", 1.0);
    // A body without its end, and no frame at all.
    for bytes in [&b""[..], &[0, 0], &[0, 0, 1, 0, 3]] {
        told(&serve, bytes);
    }
    assert!(contains(&told(&serve, &good), "anomaly_score"), "others are served");
    serve.counts("portcullis_connections_active", 0.0);
    serve.stop();
}
