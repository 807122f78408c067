//! Disruptive and flow actions in the real program: each ends, delays or diverts a request as ModSecurity 2
//! says.

use std::process::Command;
use std::time::Duration;

use crate::served::{self, Served, application, document, free_address, program, says, until};

/// A rule that looks for a word in the target.
fn on(word: &str, id: u32, actions: &str) -> String {
    format!("SecRule REQUEST_URI \"@contains {word}\" \"id:{id},{actions}\"\n")
}

#[test]
fn interruptions() {
    let app = application(|request| says(format!("app {}", request.target)));
    let rules = [
        "SecDefaultAction \"phase:2,log,deny,status:409\"\n".to_owned(),
        on("deny1", 1, "phase:1,deny"),
        on("deny2", 2, "phase:2,deny,status:418"),
        on("drop", 3, "phase:2,drop"),
        on("move1", 4, "phase:1,redirect:http://h/%{ARGS.to}?by=%{rule.id}"),
        on("move2", 5, "phase:2,redirect:http://h/,status:307"),
        on("move3", 6, "phase:2,redirect:http://h/,status:308"),
        on("block", 7, "phase:2,block"),
        on("own", 8, "phase:2,block,status:499"),
        on("pass", 9, "phase:2,pass,setvar:tx.passed=1"),
        "SecRule RESPONSE_STATUS \"@streq 200\" \"id:10,phase:3,deny,status:450,chain\"\n\
         SecRule REQUEST_URI \"@contains late\" \"\"\n"
            .to_owned(),
    ];
    let served = Served::start(&app, &rules.concat(), "");
    for (target, status, location) in [
        ("/deny1", 409, None),
        ("/deny2", 418, None),
        ("/move1?to=a", 302, Some("http://h/a?by=4")),
        ("/move2", 307, Some("http://h/")),
        ("/move3", 302, Some("http://h/")),
        ("/block", 409, None),
        ("/own", 499, None),
        ("/pass", 200, None),
        ("/late", 450, None),
        ("/other", 200, None),
    ] {
        let answer = served.get(target);
        assert_eq!((answer.status(), answer.header("location").as_deref()), (status, location), "{target}");
    }
    assert_eq!(served.get("/drop").bytes, b"", "not a byte");
    let events = served.events(10).join("\n");
    for action in ["deny", "redirect", "drop", "detect"] {
        assert!(events.contains(&format!("\"action\":\"{action}\"")), "{action}: {events}");
    }
}

/// The scopes of `allow`: its phase, the request, everything; never the rules before it.
#[test]
fn allowing() {
    let app = application(|_| says("app"));
    let rules = [
        on("phase", 1, "phase:1,allow:phase,nolog"),
        on("request", 2, "phase:1,allow:request,nolog"),
        on("all", 3, "phase:1,allow,nolog"),
        "SecAction \"id:10,phase:1,deny,status:401\"\n".to_owned(),
        on("two", 11, "phase:2,deny,status:402"),
        on("three", 12, "phase:3,deny,status:405"),
    ];
    let served = Served::start(&app, &rules.concat(), "");
    for (target, status) in [
        ("/", 401),
        ("/phase", 200),
        ("/phase/two", 402),
        ("/phase/three", 405),
        ("/request/two", 200),
        ("/request/three", 405),
        ("/all/two/three", 200),
    ] {
        assert_eq!(served.get(target).status(), status, "{target}");
    }
}

#[test]
fn skipping() {
    let app = application(|_| says("app"));
    let rules = [
        on("one", 1, "phase:1,pass,nolog,skip:1"),
        on("", 2, "phase:1,pass,nolog,setvar:tx.seen=+1"),
        on("after", 3, "phase:1,pass,nolog,skipAfter:END"),
        on("", 4, "phase:1,pass,nolog,setvar:tx.seen=+10"),
        "SecMarker END\n".to_owned(),
        "SecAction \"id:5,phase:1,redirect:http://h/%{tx.seen},nolog\"\n".to_owned(),
    ];
    let served = Served::start(&app, &rules.concat(), "");
    for (target, seen) in [("/", "11"), ("/one", "10"), ("/after", "1"), ("/one/after", "")] {
        let location = format!("http://h/{seen}");
        assert_eq!(served.get(target).header("location"), Some(location), "{target}");
    }
}

/// A pause delays whatever else a rule does, for as long as asked but not longer than the limit, once for a
/// rule.
#[test]
fn pauses() {
    let app = application(|_| says("app"));
    let rules = [
        on("slow", 1, "phase:1,pass,nolog,pause:300"),
        on("deny", 2, "phase:1,deny,nolog,pause:300"),
        on("macro", 3, "phase:2,pass,nolog,pause:%{ARGS.ms}"),
        on("late", 4, "phase:4,pass,nolog,pause:300"),
        on("long", 5, "phase:1,pass,nolog,pause:3600000"),
        "SecRule ARGS \"@streq x\" \"id:6,phase:2,pass,nolog,pause:300\"\n".to_owned(),
    ];
    let served = Served::start(&app, &rules.concat(), "[limits]\npause = \"2s\"\npauses = 2");
    let (short, full) = (Duration::from_millis(295), Duration::from_millis(1995));
    for (target, status, least) in [
        ("/", 200, Duration::ZERO),
        ("/slow", 200, short),
        ("/deny", 403, short),
        ("/macro?ms=300", 200, short),
        ("/macro?ms=-5", 200, Duration::ZERO),
        ("/macro?ms=soon", 200, Duration::ZERO),
        ("/late", 200, short),
        ("/long", 200, full),
        ("/?a=x&b=x&c=x", 200, short),
    ] {
        let answer = served.get(target);
        assert_eq!(answer.status(), status, "{target}");
        assert!(answer.took >= least, "{target}: {:?}", answer.took);
    }
    served.counts("portcullis_pauses_total{result=\"full\"}", 5.0);
    served.counts("portcullis_pauses_total{result=\"shortened\"}", 1.0);
    // Two wait; the third passes at once.
    std::thread::scope(|scope| {
        let long: Vec<_> = (0..2).map(|_| scope.spawn(|| served.get("/long").took)).collect();
        served.counts("portcullis_pauses_total{result=\"shortened\"}", 3.0);
        assert_eq!(served.get("/long").status(), 200);
        served.counts("portcullis_pauses_total{result=\"skipped\"}", 1.0);
        assert!(long.into_iter().all(|waiting| waiting.join().unwrap() >= full));
    });
    served.counts("portcullis_pauses_total{result=\"shortened\"}", 3.0);
}

#[test]
fn a_pause_is_no_interruption_and_detection_only_does_not_wait() {
    let app = application(|_| says("app"));
    let rules = [
        on("x", 1, "phase:1,nolog,pause:300"),
        on("attack", 2, "phase:2,deny,nolog"),
        on("quiet", 3, "phase:1,pass,nolog,ctl:ruleEngine=DetectionOnly"),
        on("quiet", 4, "phase:1,deny,nolog,pause:300"),
    ];
    let served = Served::start(&app, &rules.concat(), "");
    assert_eq!(served.get("/x?attack").status(), 403, "the rules after it still run");
    served.counts("portcullis_pauses_total{result=\"full\"}", 1.0);
    assert_eq!(served.get("/quiet").status(), 200);
    served.counts("portcullis_pauses_total{result=\"full\"}", 1.0);
}

/// `proxy` sends the request, body and all, to another server; nothing of the answer is inspected.
#[test]
fn diverting() {
    let app = application(|_| says("app"));
    let decoy = application(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        says(format!("decoy {} {} {body} secret", request.method, request.target))
    });
    let address = decoy.address();
    let rules = [
        "SecResponseBodyAccess On\nSecRule RESPONSE_BODY \"@contains secret\" \"id:9,phase:4,deny\"\n"
            .to_owned(),
        on("early", 1, &format!("phase:1,proxy:http://{address}/pot,log")),
        on("whole", 2, &format!("phase:2,proxy:'http://{address}/%{{REQUEST_METHOD}} x?%{{ARGS.q}}',log")),
        "SecRule ARGS_POST \"@contains attack\" \"id:3,phase:2,deny\"\n".to_owned(),
    ];
    let more = format!("[upstreams.decoy]\nendpoints = [\"http://127.0.0.1:1\", \"http://{address}\"]");
    let served = Served::start(&app, &rules.concat(), &more);
    let form = "application/x-www-form-urlencoded";
    assert_eq!(served.get("/").body(), "app");
    assert_eq!(served.get("/early?a=b").body(), "decoy GET /pot?a=b  secret");
    assert_eq!(served.post("/early", form, "a=attack").body(), "decoy POST /pot a=attack secret");
    assert_eq!(
        served.post("/whole?q=1%0d%0aX", form, "a=b").body(),
        "decoy POST /POST%20x?1%0D%0AX a=b secret"
    );
    assert_eq!(served.post("/", form, "a=attack").status(), 403);
    let events = served.events(4);
    assert!(
        events[0].contains("\"action\":\"proxy\"") && events[0].contains("\"rule_id\":1"),
        "{}",
        events[0]
    );
    served
        .counts("portcullis_requests_total{site=\"site\",route=\"/\",status=\"200\",verdict=\"proxy\"}", 3.0);
}

/// A server that the configuration does not name is refused when the rules are loaded. What ModSecurity 2
/// loads though it cannot work is a warning. Both have the place and a way out.
#[test]
fn what_cannot_be_is_told_at_load() {
    let unknown = ["not an endpoint of an upstream", "[upstreams.decoy]"];
    for (rule, loads, words) in [
        ("phase:1,proxy:http://127.0.0.1:9/", false, unknown),
        ("phase:1,pass,exec:/bin/true", true, ["may not start programs", "let a program read the events"]),
        ("phase:1,proxy:http://%{ARGS.h}/", true, ["a macro may not choose the server", "the host is fixed"]),
        ("phase:1,proxy:ftp://h/", true, ["http:// or https://", "write proxy:http://"]),
        ("phase:4,proxy:http://h/", true, ["works in phases 1 and 2", "use phase:2"]),
        ("phase:1,pause:soon", true, ["takes milliseconds", "pause:2000"]),
        ("phase:1,deny,status:999", true, ["status", "100 to 599"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let rules = format!("SecAction \"id:1,{rule}\"");
        let (address, admin) = (free_address(), free_address());
        let config = document(folder.path(), address, admin, free_address(), &served::rules(&rules), "");
        let refusing: &[&[&str]] =
            if loads { &[&["check", "--strict"]] } else { &[&["check"], &["run", "--config"]] };
        let loading: &[&[&str]] = if loads { &[&["check"]] } else { &[] };
        for (verb, code) in refusing.iter().map(|verb| (verb, 1)).chain(loading.iter().map(|verb| (verb, 0)))
        {
            let output = Command::new(program()).args(*verb).arg(&config).output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert_eq!(output.status.code(), Some(code), "{verb:?} {rule}: {text}");
            assert!(words.iter().all(|word| text.contains(word)), "{verb:?} {rule}: {text}");
            assert!(text.contains("<directives>:"), "{text}");
        }
    }
}

/// `SecServerSignature` names the server in every answer, the upstream's and our own; empty, it takes the
/// name away.
#[test]
fn the_server_has_the_name_that_the_rules_give() {
    let app = application(|_| {
        let mut answer = says("app");
        answer.headers.push(("Server".to_owned(), "app/1.0".to_owned()));
        answer
    });
    let deny = on("deny", 1, "phase:1,deny");
    for (directive, named, of_upstream) in [
        ("", None, Some("app/1.0")),
        ("SecServerSignature \"Apache/2.4\"\n", Some("Apache/2.4"), Some("Apache/2.4")),
        ("SecServerSignature \"\"\n", None, None),
    ] {
        let served = Served::start(&app, &format!("{directive}{deny}"), "");
        let (passed, denied) = (served.get("/"), served.get("/deny"));
        assert_eq!((passed.status(), denied.status()), (200, 403));
        assert_eq!(passed.header("server").as_deref(), of_upstream, "{directive}");
        if !directive.is_empty() {
            assert_eq!(denied.header("server").as_deref(), named, "{directive}");
        }
        assert!(!denied.text().contains("app/1.0"));
    }
}

/// A pattern that backtracks is given up at its limit, and the metric says so.
#[test]
fn patterns_that_are_given_up_are_counted() {
    let app = application(|_| says("app"));
    let rules = "SecPcreMatchLimit 100\n\
                 SecRule ARGS:a \"@rx ^(?:(\\w+)+)(?=!)\\1?\" \"id:1,phase:1,deny\"\n\
                 SecRule TX:MSC_PCRE_LIMITS_EXCEEDED \"@eq 1\" \"id:2,phase:2,deny,status:409\"";
    let served = Served::start(&app, rules, "");
    assert_eq!(served.get("/?a=x").status(), 200);
    served.counts("portcullis_pattern_errors_total{kind=\"limit\"}", 0.0);
    assert_eq!(served.get(&format!("/?a={}-!", "a".repeat(32))).status(), 409);
    served.counts("portcullis_pattern_errors_total{kind=\"limit\"}", 1.0);
}

/// Tools that follow ModSecurity's log find the same words in ours.
#[test]
fn the_error_log_says_what_was_allowed_redirected_unreadable_or_too_long() {
    let app = application(|_| says("app"));
    let rules = [
        "SecRequestBodyAccess On\nSecRequestBodyLimit 100\nSecRequestBodyLimitAction Reject\n\
         SecRuleRemoveById 9000100-9000199\n"
            .to_owned(),
        on("all", 1, "phase:1,log,allow"),
        on("asked", 2, "phase:1,log,allow:request"),
        on("move", 3, "phase:1,log,redirect:http://h/%{ARGS.to}"),
    ];
    let log = tempfile::NamedTempFile::new().unwrap();
    let more = format!("[error_log]\nfile = {:?}\n", log.path());
    let served = Served::start(&app, &rules.concat(), &more);
    served.get("/all");
    served.get("/asked");
    served.get("/move?to=a");
    let form = "multipart/form-data, boundary=x";
    assert_eq!(served.post("/", form, "--x--").status(), 200, "no rule looks at what could not be read");
    assert_eq!(served.post("/", form, "y".repeat(101)).status(), 413);
    for words in [
        "ModSecurity: Access allowed (phase 1). String match",
        "ModSecurity: Access to request allowed (phase 1). ",
        "ModSecurity: Access denied with redirection to http://h/a using status 302 (phase 1). ",
        "ModSecurity: Multipart parsing error: Invalid boundary in C-T (malformed) (at byte 0) [hostname",
        "ModSecurity: Request body is larger than the configured limit (100). Deny with code (413) [hostname",
    ] {
        until(|| std::fs::read_to_string(log.path()).unwrap().contains(words));
    }
}
