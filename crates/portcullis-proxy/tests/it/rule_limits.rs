//! Rate limits that rules count requests in: `ctl:rateLimit`.

use crate::common::*;
use portcullis_event::{Action, ControlKind};

const LIMITS: &str = "[[sites.rate_limits]]\nname = \"logins\"\nkey = [\"rule\"]\nrate = 2\nper = \"1h\"\n\
     [[sites.rate_limits]]\nname = \"watched\"\nkey = [\"client\", \"rule\"]\nrate = 1\nper = \"1h\"\naction = \"log\"\n";

fn front(backend: &Backend, rules: &str, site: &str) -> Front {
    let rules =
        format!("rules = {{ directives = '''\nSecRequestBodyAccess On\n{rules}''' }}\n{site}\n{LIMITS}");
    Front::start(&document(backend.address, "", "", &rules, ""))
}

fn login(client: &mut Client, user: &str) -> String {
    let body = format!("user={user}&password=x");
    let length = body.len();
    client.send(format!(
        "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
    client.response().0
}

fn limited(front: &Front, limit: &str) -> f64 {
    front.metric(&format!("portcullis_rate_limited_total{{site=\"site\",limit=\"{limit}\""))
}

#[test]
fn requests_are_counted_by_what_a_rule_says() {
    let backend = Backend::start(|_| ok("ok"));
    let rule = "SecRule REQUEST_URI \"@beginsWith /login\" \
                \"id:1,phase:2,pass,nolog,t:none,ctl:'rateLimit=logins;%{REQUEST_METHOD} %{ARGS.user}'\"\n\
                SecRule ARGS:nobody \"@rx .\" \"id:2,phase:2,pass,nolog,ctl:rateLimit=logins;%{ARGS.somebody}\"\n";
    let front = front(&backend, rule, "");
    let mut client = front.client();
    let statuses = ["ann", "ann", "bob", "ann", "bob", "bob"].map(|user| status(&login(&mut client, user)));
    assert_eq!(statuses, [200, 200, 200, 429, 200, 429]);
    let refused = login(&mut client, "ann");
    assert_eq!(header(&refused, "ratelimit-policy"), Some("\"logins\";q=2;w=3600"), "{refused}");
    assert!(header(&refused, "retry-after").is_some());
    until(|| limited(&front, "logins") == 3.0);
    let events = front.events(3);
    let control = events[0].verdict.control.as_ref().unwrap();
    assert_eq!((control.by, &*control.name), (ControlKind::RateLimit, "logins"));
    assert_eq!((events[0].verdict.action, events[0].verdict.status), (Action::Deny, Some(429)));
    // Other requests, and those that lack what the key is made of, are not counted.
    for _ in 0..5 {
        client.send("GET /?nobody=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(status(&client.response().0), 200);
    }
    assert_eq!(backend.seen().len(), 9);
}

#[test]
fn a_rule_that_blocks_comes_first_and_its_request_is_counted() {
    let backend = Backend::start(|_| ok("ok"));
    let rules = "SecAction \"id:1,phase:1,pass,nolog,ctl:rateLimit=logins;%{REQUEST_FILENAME}\"\n\
                 SecRule ARGS_GET:x \"@streq attack\" \"id:2,phase:1,deny,status:403,log\"\n";
    let front = front(&backend, rules, "");
    let mut client = front.client();
    let mut ask = |target: &str| {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        status(&client.response().0)
    };
    assert_eq!([ask("/a?x=attack"), ask("/a?x=attack"), ask("/a"), ask("/b")], [403, 403, 429, 200]);
}

#[test]
fn a_limit_that_logs_and_an_engine_that_detects_let_pass() {
    let backend = Backend::start(|_| ok("ok"));
    let rules = "SecAction \"id:1,phase:1,pass,nolog,ctl:rateLimit=watched;%{ARGS_GET.u}\"\n";
    let front_of = |site: &str, rules: &str| front(&backend, rules, site);
    let ask = |front: &Front| {
        let mut client = front.client();
        client.send("GET /?u=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        status(&client.response().0)
    };
    let watching = front_of("", rules);
    assert_eq!([ask(&watching), ask(&watching)], [200, 200]);
    until(|| limited(&watching, "watched") == 1.0);
    assert_eq!(watching.events(1)[0].verdict.action, Action::Detect);
    let detecting = front_of("engine = \"detection_only\"", &rules.replace("watched", "logins"));
    assert_eq!([ask(&detecting), ask(&detecting), ask(&detecting)], [200, 200, 200]);
    until(|| limited(&detecting, "logins") == 1.0);
}
