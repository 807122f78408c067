//! `serve check` behind the real Traefik with ForwardAuth, which sends bodies.

use super::*;

/// Traefik as `make traefik-test` builds it; none where it has not run.
fn program() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.portcullis/traefik");
    if !built.is_file() {
        eprintln!("left out: Traefik is not built; `make traefik-test` builds it");
        return None;
    }
    built.canonicalize().ok()
}

/// Traefik by the shipped configuration.
fn traefik(serve: &Serve, application: SocketAddr) -> Option<Front> {
    let program = program()?;
    let (address, folder) = (free_address(), serve.folder.path());
    let addresses = [("127.0.0.1:8081", application), ("127.0.0.1:9002", serve.address)];
    let file = folder.join("dynamic.yaml");
    std::fs::write(&file, example("traefik-dynamic.yaml", &addresses)).unwrap();
    let arguments = [
        format!("--entryPoints.web.address={address}"),
        format!("--providers.file.filename={}", file.display()),
        "--global.checkNewVersion=false".into(),
        "--global.sendAnonymousUsage=false".into(),
    ];
    let front = Front::start(&program, &arguments.map(OsString::from), address, folder);
    // It listens before it has read the routes.
    portcullis_testkit::wait::becomes(200, || get(front.address, "/").status());
    Some(front)
}

#[test]
fn traefik_asks_before_it_forwards() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = traefik(&serve, application.address()) else { return };
    let answer = get(front.address, "/a?b=c");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello /a?b=c 0"), "{}", answer.text());
    // Our page and any status go to the client.
    let answer = get(front.address, "/a?b=attack");
    assert_eq!(answer.status(), 403, "{}", answer.text());
    assert!(answer.body().contains("This request was blocked"), "{}", answer.text());
    let redirect = get(front.address, "/?b=elsewhere");
    assert_eq!(
        (redirect.status(), redirect.header("location").as_deref()),
        (302, Some("https://a.example/"))
    );
    let events = serve.events(2);
    let event = &events[0];
    assert_eq!(answer.header("x-request-id").as_deref(), event["request_id"].as_str());
    assert_eq!(event["request"]["target"], "/a?b=attack");
    assert_eq!(event["server"]["host"], "a.example");
    assert_eq!(event["client"]["addr"], "127.0.0.1");
    assert_eq!(event["integration"]["kind"], "forward_auth");
    serve.stop();
    assert_eq!(get(front.address, "/a").status(), 500, "it fails closed");
}

#[test]
fn bodies_that_traefik_sends_are_inspected() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = traefik(&serve, application.address()) else { return };
    let answer = post(front.address, "a=b");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello /form 3"), "{}", answer.text());
    assert_eq!(post(front.address, "a=attack").status(), 403);
    let event = &serve.events(1)[0];
    assert_eq!((&event["request"]["method"], &event["request"]["target"]), (&"POST".into(), &"/form".into()));
    // In chunks, too.
    let head = "POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\na=at\r\n4\r\ntack\r\n0\r\n\r\n"
    );
    assert_eq!(exchange(front.address, chunked).status(), 403);
    // Longer than what Traefik may send: refused by it, with a status that its versions differ in.
    let long = post(front.address, &format!("a={}", "b".repeat(1 << 20)));
    assert!(matches!(long.status(), 401 | 413), "{}", long.text());
    // Longer than what the rules take: refused by us.
    assert_eq!(post(front.address, &format!("a={}", "b".repeat(300_000))).status(), 413);
}

/// Clients cannot choose what is inspected by the headers that Traefik sets.
#[test]
fn clients_of_traefik_cannot_choose_what_is_inspected() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = traefik(&serve, application.address()) else { return };
    for fields in [
        "X-Forwarded-Uri: /\r\nX-Forwarded-Method: OPTIONS\r\n",
        "X-Forwarded-Uri: /\r\nX-Forwarded-Uri: /b\r\n",
        "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Host: b\r\nX-Forwarded-Proto: https\r\n",
        "X-Original-URI: /\r\nX-Original-Method: GET\r\n",
        "Connection: X-Forwarded-Uri, X-Forwarded-Method\r\n",
    ] {
        let head = format!("GET /?b=attack HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
        assert_eq!(exchange(front.address, head).status(), 403, "{fields}");
    }
    for event in serve.events(5) {
        let (address, method) = (&event["client"]["addr"], &event["request"]["method"]);
        assert_eq!((address, method), (&"127.0.0.1".into(), &"GET".into()));
        assert_eq!(event["request"]["target"], "/?b=attack");
    }
}
