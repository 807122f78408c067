//! `serve check`: nginx with `auth_request`, and subrequests as hostile clients of such servers would have
//! them.

use portcullis_testkit::process::Signal;

use super::*;

/// The real nginx by the shipped configuration.
fn nginx(serve: &Serve, application: SocketAddr) -> Option<Front> {
    let program = tool("nginx")?;
    let (address, folder) = (free_address(), serve.folder.path());
    let addresses =
        [("127.0.0.1:8080", address), ("127.0.0.1:8081", application), ("127.0.0.1:9002", serve.address)];
    let text = example("nginx.conf", &addresses).replace("worker_processes auto;", "worker_processes 1;");
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};\n", folder.join(name).display()))
        .concat();
    let text = text.replace("http {\n", &format!("http {{\naccess_log off;\n{temporary}"));
    let before = format!("daemon off;\npid {};\nerror_log stderr;\n", folder.join("nginx.pid").display());
    std::fs::write(folder.join("nginx.conf"), before + &text).unwrap();
    let config = folder.join("nginx.conf").into_os_string();
    let arguments = ["-p".into(), folder.as_os_str().to_owned(), "-c".into(), config];
    Some(Front::start(&program, &arguments, address, folder))
}

#[test]
fn nginx_asks_before_it_forwards() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-original"]), site());
    let Some(front) = nginx(&serve, application.address()) else { return };
    let answer = get(front.address, "/a?b=c");
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(answer.body(), "hello /a?b=c 0");
    let answer = get(front.address, "/a?b=attack");
    assert_eq!(answer.status(), 403, "{}", answer.text());
    let events = serve.events(1);
    let event = &events[0];
    assert_eq!(answer.header("x-request-id").as_deref(), event["request_id"].as_str());
    assert_eq!(event["verdict"]["action"], "deny");
    assert_eq!(event["verdict"]["rule_id"], 1);
    assert_eq!(event["request"]["target"], "/a?b=attack");
    assert_eq!(event["server"]["host"], "a.example");
    assert_eq!(event["integration"]["kind"], "forward_auth");
    assert_eq!(event["integration"]["blind_spots"], serde_json::json!(["response"]));
    serve
        .counts("portcullis_integration_exchanges_total{integration=\"forward_auth\",verdict=\"pass\"}", 1.0);
    serve
        .counts("portcullis_integration_exchanges_total{integration=\"forward_auth\",verdict=\"deny\"}", 1.0);
    // A redirect and a drop are refusals to nginx.
    assert_eq!(get(front.address, "/?b=elsewhere").status(), 403);
    assert_eq!(get(front.address, "/?b=gone").status(), 403);
    assert_eq!(serve.events(3)[1]["verdict"]["action"], "redirect");
    serve.stop();
    assert_eq!(get(front.address, "/a").status(), 500, "it fails closed");
}

/// nginx sends no body, so an attack in one passes. That is told in metrics, and in events of other causes.
#[test]
fn bodies_that_nginx_does_not_send_are_counted() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-original"]), site());
    let Some(front) = nginx(&serve, application.address()) else { return };
    assert_eq!(post(front.address, "a=attack").status(), 200);
    serve.counts(
        "portcullis_integration_blind_spots_total{integration=\"forward_auth\",blind_spot=\"request_body\"}",
        1.0,
    );
    serve.counts("portcullis_bytes_not_inspected_total{reason=\"not_sent\"}", 8.0);
    let chunked = "POST /?b=attack HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                   8\r\na=attack\r\n0\r\n\r\n";
    assert_eq!(exchange(front.address, chunked).status(), 403);
    let spots = &serve.events(1)[0]["integration"]["blind_spots"];
    assert_eq!(*spots, serde_json::json!(["request_body", "response"]));
}

/// What clients write into the headers that tell of the request is not believed.
#[test]
fn clients_of_nginx_cannot_choose_what_is_inspected() {
    let (serve, application) = (Serve::start("check", &["--headers", "x-original"]), site());
    let Some(front) = nginx(&serve, application.address()) else { return };
    let with = |fields: &str| {
        let head = format!("GET /?b=attack HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
        exchange(front.address, head).status()
    };
    for fields in [
        "X-Original-URI: /\r\nX-Original-Method: OPTIONS\r\n",
        "X-Forwarded-Uri: /\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: b\r\n",
        "X-Forwarded-For: 9.9.9.9\r\n",
    ] {
        assert_eq!(with(fields), 403, "{fields}");
    }
    for event in serve.events(3) {
        assert_eq!(
            (&event["client"]["addr"], &event["request"]["method"]),
            (&"127.0.0.1".into(), &"GET".into())
        );
    }
    // Two ways to name the target are one too many: the client may have added one.
    assert_eq!(with("X-Original-URL: http://a/\r\n"), 500);
}

fn ask(address: SocketAddr, fields: &str) -> Answer {
    exchange(address, format!("GET /check HTTP/1.1\r\nHost: a.example\r\n{fields}Connection: close\r\n\r\n"))
}

/// As Caddy and Traefik ask: any status, and our page, go to the client.
#[test]
fn subrequests_with_a_body_and_other_statuses() {
    let serve = Serve::start("check", &[]);
    let told = "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /a?x=y\r\nX-Forwarded-Host: b.example\r\n\
                X-Forwarded-For: 192.0.2.7, 198.51.100.4\r\nX-Forwarded-Proto: https\r\n";
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let answer = ask(serve.address, told);
    assert_eq!((answer.status(), answer.body().as_str()), (200, ""));
    let with_body = |body: &str| {
        let head =
            format!("POST /check HTTP/1.1\r\nHost: x\r\n{told}{form}Content-Length: {}\r\n", body.len());
        exchange(serve.address, format!("{head}Connection: close\r\n\r\n{body}"))
    };
    assert_eq!(with_body("a=honest").status(), 200);
    let answer = with_body("a=attack");
    assert_eq!(answer.status(), 403);
    assert!(answer.body().contains("This request was blocked"), "{}", answer.text());
    let event = &serve.events(1)[0];
    assert_eq!(
        (&event["client"]["addr"], &event["client"]["peer"]),
        (&"198.51.100.4".into(), &"127.0.0.1".into())
    );
    assert_eq!((&event["server"]["host"], &event["server"]["tls"]), (&"b.example".into(), &true.into()));
    assert_eq!(event["request"]["method"], "POST");
    let redirect = ask(serve.address, "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /?a=elsewhere\r\n");
    assert_eq!(
        (redirect.status(), redirect.header("location").as_deref()),
        (302, Some("https://a.example/"))
    );
    let large = with_body(&format!("a={}", "x".repeat(250_000)));
    assert_eq!(large.status(), 413);
    let event = &serve.events(3)[2];
    assert_eq!(event["exceptions"][0]["cause"], "request_body_over_limit");
    // A target that the proxy would refuse is refused.
    assert_eq!(ask(serve.address, "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /a#b\r\n").status(), 400);
}

/// Without a verdict there is never a 2xx.
#[test]
fn questions_that_cannot_be_read() {
    let serve = Serve::start("check", &[]);
    let original = "X-Original-Method: GET\r\nX-Original-URI: /\r\n";
    let forwarded = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\n";
    for fields in [
        "",
        "X-Original-Method: GET\r\n",
        "X-Original-URI: /\r\n",
        "X-Forwarded-Uri: /\r\n",
        "X-Original-Method: GET\r\nX-Original-URI:\r\n",
        &format!("{original}{forwarded}"),
        &format!("{original}X-Original-URI: /b\r\n"),
        &format!("{original}X-Original-URL: http://a/\r\n"),
        &format!("{forwarded}X-Forwarded-Method: POST\r\n"),
        &format!("{forwarded}X-Forwarded-Host: a\r\nX-Forwarded-Host: b\r\n"),
    ] {
        assert_eq!(ask(serve.address, fields).status(), 400, "{fields}");
    }
    serve.counts(
        "portcullis_integration_errors_total{integration=\"forward_auth\",reason=\"malformed\"}",
        10.0,
    );
    assert_eq!(get(serve.address, "/").status(), 404);
    assert_eq!(ask(serve.address, original).status(), 200);
    let host = "X-Original-Method: GET\r\nX-Original-URL: https://b.example/c?a=attack\r\n";
    assert_eq!(ask(serve.address, host).status(), 403);
    assert_eq!(serve.events(1)[0]["server"]["host"], "b.example");
}

#[test]
fn untrusted_peers_get_no_answer() {
    let serve = Serve::start("check", &["--trust", "192.0.2.0/24"]);
    let answer = ask(serve.address, "X-Original-Method: GET\r\nX-Original-URI: /\r\n");
    assert_ne!(answer.status(), 200);
    assert!(answer.header("x-request-id").is_none());
    serve.counts(
        "portcullis_integration_errors_total{integration=\"forward_auth\",reason=\"untrusted_peer\"}",
        1.0,
    );
}

#[test]
fn a_reload_takes_new_rules_or_leaves_the_old() {
    let serve = Serve::start("check", &[]);
    let bad = || ask(serve.address, "X-Original-Method: GET\r\nX-Original-URI: /?a=attack\r\n").status();
    assert_eq!(bad(), 403);
    let rules = |text: &str| std::fs::write(serve.folder.path().join("rules.conf"), text).unwrap();
    rules("SecNonsense\n");
    serve.signal(Signal::HUP);
    serve.counts("portcullis_reloads_total{result=\"failed\"}", 1.0);
    assert_eq!(bad(), 403);
    rules("SecRuleEngine On\nSecRule ARGS \"@streq attack\" \"id:9,phase:1,deny,status:406\"\n");
    serve.signal(Signal::HUP);
    serve.counts("portcullis_policy_generation", 2.0);
    assert_eq!(bad(), 403, "nginx knows no other status");
    let text = std::fs::read_to_string(serve.folder.path().join("output")).unwrap();
    assert!(text.contains("reloaded, generation 2"), "{text}");
    assert_eq!(serve.events(3)[2]["verdict"]["status"], 406);
    assert_eq!(serve.events(3)[2]["policy_generation"], 2);
}

#[test]
fn what_cannot_be_started_says_so() {
    let failed = |arguments: &[&str]| {
        let output = std::process::Command::new(program()).arg("serve").args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let wrong = [
        (&["check", "--listen", "nowhere"][..], "write `127.0.0.1:9002`"),
        (&["check", "--listen", "127.0.0.1:0", "--trust", "here"], "is not an address or a network"),
        (&["check", "--listen", "127.0.0.1:0", "--headers", "all"], "known here: `x-original`"),
        (&["check", "--listen", "127.0.0.1:0", "--mode", "off"], "nothing is inspected"),
    ];
    for (arguments, words) in wrong {
        let text = failed(arguments);
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}
