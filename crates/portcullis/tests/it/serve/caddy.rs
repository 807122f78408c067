//! `serve check` behind the real Caddy with `forward_auth`.

use super::*;

/// Caddy as `make caddy-test` builds it; none where it has not run.
fn program() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.portcullis/caddy");
    if !built.is_file() {
        eprintln!("left out: Caddy is not built; `make caddy-test` builds it");
        return None;
    }
    built.canonicalize().ok()
}

/// Caddy by the shipped configuration.
fn caddy(serve: &Serve, application: SocketAddr) -> Option<Front> {
    let program = program()?;
    let (address, folder) = (free_address(), serve.folder.path());
    let addresses =
        [("127.0.0.1:8080", address), ("127.0.0.1:8081", application), ("127.0.0.1:9002", serve.address)];
    std::fs::write(folder.join("Caddyfile"), example("Caddyfile", &addresses)).unwrap();
    let config = folder.join("Caddyfile").into_os_string();
    // It keeps files of its own below these folders.
    let home = ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"]
        .map(|name| OsString::from(format!("{name}={}", folder.join("home").display())));
    let mut arguments: Vec<OsString> = home.into();
    arguments.extend([program.as_os_str().to_owned(), "run".into(), "--config".into(), config]);
    arguments.extend(["--adapter", "caddyfile"].map(Into::into));
    Some(Front::start(Path::new("/usr/bin/env"), &arguments, address, folder))
}

#[test]
fn caddy_asks_before_it_forwards() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = caddy(&serve, application.address()) else { return };
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
    assert_eq!(get(front.address, "/a").status(), 502, "it fails closed");
}

/// Caddy sends no body, so an attack in one passes, and is counted.
#[test]
fn bodies_that_caddy_does_not_send_are_counted() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = caddy(&serve, application.address()) else { return };
    let answer = post(front.address, "a=attack");
    assert_eq!((answer.status(), answer.body().as_str()), (200, "hello /form 8"), "{}", answer.text());
    serve.counts(
        "portcullis_integration_blind_spots_total{integration=\"forward_auth\",blind_spot=\"request_body\"}",
        1.0,
    );
}

/// Clients cannot choose what is inspected by the headers that Caddy sets.
#[test]
fn clients_of_caddy_cannot_choose_what_is_inspected() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-forwarded"]), site());
    let Some(front) = caddy(&serve, application.address()) else { return };
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
