//! Transactions: phases as connectors call them, in order and out of it.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use modsecurity::{Cache, Intervention, RuleSet, Transaction};
use portcullis_event::{Event, ExceptionCause};
use portcullis_event_socket::{Listener, Settings};
use portcullis_metrics::Registry;

struct Fixture {
    cache: Cache,
    rules: RuleSet,
}

impl Fixture {
    fn new(text: &str) -> Fixture {
        let cache = Cache::default();
        let mut rules = RuleSet::default();
        rules.add_text(text.as_bytes(), &cache).unwrap();
        Fixture { cache, rules }
    }

    fn begin(&self, target: &str) -> Transaction {
        self.begin_with(target, "application/x-www-form-urlencoded")
    }

    fn begin_with(&self, target: &str, content_type: &str) -> Transaction {
        let mut transaction = Transaction::new(&self.rules, Some(b"the-id"), &self.cache).unwrap();
        transaction.connection(("192.0.2.7", 4711), ("127.0.0.1", 80));
        transaction.uri(target.as_bytes(), b"POST", b"1.1");
        transaction.add_request_header(b"Host", b"a.example");
        transaction.add_request_header(b"Content-Type", content_type.as_bytes());
        transaction
    }
}

const RULES: &str = "\
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecRequestBodyLimit 100
SecRule ARGS:q \"@contains head\" \"id:1,phase:1,deny,status:406,log,msg:'In the head'\"
SecRule ARGS:q \"@contains go\" \"id:2,phase:1,redirect:https://b.example/?%{ARGS.q},status:302\"
SecRule ARGS_POST \"@contains body\" \"id:3,phase:2,block,log,setvar:tx.n=1\"
SecRule ARGS_POST \"@contains deny\" \"id:4,phase:2,deny,log\"
SecRule RESPONSE_HEADERS:X \"@contains leak\" \"id:5,phase:3,deny,log\"
SecRule RESPONSE_BODY \"@contains leak\" \"id:6,phase:4,deny,log\"
SecRule REQUEST_URI \"@contains late\" \"id:7,phase:5,pass,log\"
";

fn asked(transaction: &mut Transaction) -> Intervention {
    let asked = transaction.take_intervention().expect("an intervention");
    assert_eq!(transaction.take_intervention(), None, "asked once, it is not told again");
    asked
}

#[test]
fn each_phase_can_interrupt() {
    let fixture = Fixture::new(RULES);
    let mut head = fixture.begin("/a%20b?q=head");
    head.request_headers();
    let found = asked(&mut head);
    assert_eq!((found.status, found.url), (406, None));
    assert!(
        found.log.starts_with(
            "[client 192.0.2.7] ModSecurity: Access denied with code 406 (phase 1). Matched \"Operator `Contains' with \
             parameter `head' against variable `ARGS:q' (Value: `head' ) [file \"<inline rules>\"] [line \"5\"] [id \"1\"]"
        ) && found.log.ends_with("[hostname \"127.0.0.1\"] [uri \"/a b\"] [unique_id \"the-id\"] [ref \"\"]"),
        "{}",
        found.log
    );
    assert!(head.take_lines().is_empty(), "the line of the rule that decided is the intervention's");

    let mut body = fixture.begin("/");
    body.request_headers();
    assert_eq!(body.take_intervention(), None);
    body.append_request_body(b"a=bo");
    body.append_request_body(b"dy&b=deny");
    body.request_body();
    assert_eq!(asked(&mut body).status, 403);
    assert_eq!(body.take_lines().len(), 1, "rule 3 warns");
    assert_eq!(body.request_body_length(), 13);

    let mut response = fixture.begin("/");
    response.add_response_header(b"X", b"a leak");
    response.response_headers(200, b"HTTP 1.1");
    assert!(asked(&mut response).log.contains("[id \"5\"]"));

    let mut response = fixture.begin("/");
    response.add_response_header(b"Content-Type", b"text/html");
    response.response_headers(200, b"HTTP 1.1");
    response.append_response_body(b"a le");
    response.append_response_body(b"ak");
    response.response_body();
    assert!(asked(&mut response).log.contains("(phase 4)"));
    assert_eq!(response.shown_response_body(), b"a leak\0");
}

#[test]
fn a_redirect_has_an_address_that_is_one_line() {
    let fixture = Fixture::new(RULES);
    let mut transaction = fixture.begin("/?q=go%0d%0aSet-Cookie:%20a");
    transaction.request_headers();
    let found = asked(&mut transaction);
    let url = String::from_utf8(found.url.unwrap()).unwrap();
    assert_eq!(found.status, 302);
    assert!(url.starts_with("https://b.example/?go") && !url.contains(['\r', '\n']), "{url}");
}

#[test]
fn phases_that_a_server_leaves_out_are_run() {
    let fixture = Fixture::new(RULES);
    // nginx answers by itself ("return 200"): the body's phase is never called.
    let mut transaction = fixture.begin("/?q=head");
    transaction.response_headers(200, b"HTTP 1.1");
    assert_eq!(asked(&mut transaction).status, 406);
    // Only the end is called.
    let mut transaction = fixture.begin("/late");
    transaction.logging();
    assert!(transaction.take_lines()[0].contains("[id \"7\"]"));
    // Whatever comes after the end, or twice, changes nothing.
    transaction.logging();
    transaction.append_request_body(b"b=deny");
    transaction.request_body();
    transaction.append_response_body(b"leak");
    transaction.response_body();
    assert_eq!((transaction.take_intervention(), transaction.take_lines().len()), (None, 0));
    assert_eq!(transaction.shown_response_body(), b"\0");
}

#[test]
fn a_transaction_without_anything_is_one() {
    let fixture = Fixture::new(RULES);
    let mut transaction = Transaction::new(&fixture.rules, None, &fixture.cache).unwrap();
    transaction.connection(("unix:", 0), ("not an address", 70));
    transaction.request_headers();
    transaction.request_body();
    transaction.response_headers(0, b"");
    transaction.response_body();
    transaction.logging();
    assert_eq!(transaction.take_intervention(), None);
    drop(Transaction::new(&RuleSet::default(), None, &fixture.cache).unwrap());
}

#[test]
fn a_body_over_its_limit_is_refused_or_cut() {
    let fixture = Fixture::new(RULES);
    let mut transaction = fixture.begin("/");
    transaction.request_headers();
    transaction.append_request_body(&[b'a'; 100]);
    assert_eq!(transaction.take_intervention(), None);
    transaction.append_request_body(b"a");
    let found = asked(&mut transaction);
    assert_eq!(found.status, 403);
    assert!(found.log.contains("Request body limit is marked to reject the request"), "{}", found.log);
    transaction.append_request_body(&[b'a'; 1000]);
    transaction.request_body();
    assert_eq!(transaction.take_intervention(), None);

    let partial = Fixture::new(&format!("{RULES}SecRequestBodyLimitAction ProcessPartial\n"));
    let mut transaction = partial.begin("/");
    transaction.append_request_body(format!("a={}&b=deny", "x".repeat(200)).as_bytes());
    transaction.request_body();
    assert_eq!(transaction.take_intervention(), None, "what is beyond the limit is not seen");
    assert_eq!(transaction.take_lines().len(), 1, "and a line says so");
    assert_eq!(transaction.request_body_length(), 209);

    let detects = Fixture::new(&format!("{RULES}SecRuleEngine DetectionOnly\n"));
    let mut transaction = detects.begin("/");
    transaction.append_request_body(&[b'a'; 101]);
    assert_eq!(transaction.take_intervention(), None);
    assert!(transaction.take_lines()[0].starts_with("ModSecurity: Warning. Request body is longer"));
}

/// The connector of Apache calls phase 2 before it has the body.
#[test]
fn a_body_behind_its_phase_is_refused_where_bodies_are_inspected() {
    let fixture = Fixture::new(RULES);
    let mut late = fixture.begin("/");
    late.request_body();
    late.append_request_body(b"");
    assert_eq!(late.take_intervention(), None);
    late.append_request_body(b"a=de");
    let found = asked(&mut late);
    assert!(found.status == 500 && found.log.contains("came behind its phase"), "{found:?}");
    late.append_request_body(b"ny");
    assert_eq!((late.take_intervention(), late.take_lines().len()), (None, 0), "told once");
    late.logging();

    let detects = Fixture::new(&format!("{RULES}SecRuleEngine DetectionOnly\n"));
    let mut transaction = detects.begin("/");
    transaction.request_body();
    transaction.append_request_body(b"a=deny");
    assert_eq!((transaction.take_intervention(), transaction.take_lines().len()), (None, 1));

    let unread = Fixture::new(&format!("{RULES}SecRequestBodyAccess Off\n"));
    let mut transaction = unread.begin("/");
    transaction.request_body();
    transaction.append_request_body(b"a=deny");
    assert_eq!((transaction.take_intervention(), transaction.take_lines().len()), (None, 0));
}

/// As in libmodsecurity 3.0.9: bodies are inspected, and rules log without interrupting.
#[test]
fn what_rules_leave_unsaid_is_as_in_the_original() {
    let rule = "SecRule ARGS \"@contains attack\" \"id:1,phase:2,deny,log\"\n";
    for (settings, is_denied, lines) in [
        ("SecRuleEngine On\n", true, 0),
        ("", false, 1),
        ("SecRuleEngine On\nSecRequestBodyAccess Off\n", false, 0),
        ("SecRuleEngine Off\n", false, 0),
    ] {
        let fixture = Fixture::new(&format!("{settings}{rule}"));
        let mut transaction = fixture.begin("/");
        transaction.request_headers();
        transaction.append_request_body(b"a=attack");
        transaction.request_body();
        let found = (transaction.take_intervention().is_some(), transaction.take_lines().len());
        assert_eq!(found, (is_denied, lines), "{settings:?}");
    }
}

/// Rules see the fields of a form without a rule that looks at `REQBODY_ERROR`, wherever the original does.
#[test]
fn a_form_is_inspected_whatever_stands_behind_its_boundary() {
    let fixture =
        Fixture::new("SecRuleEngine On\nSecRule ARGS:a \"@contains attack\" \"id:1,phase:2,deny\"\n");
    for boundary in ["X", "X; charset=utf-8", "X;charset=utf-8", "X ; a=\"b;c\"", "\"X\"; charset=utf-8"] {
        let mut transaction = fixture.begin_with("/", &format!("multipart/form-data; boundary={boundary}"));
        transaction.request_headers();
        transaction.append_request_body(
            b"--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nan attack\r\n--X--\r\n",
        );
        transaction.request_body();
        assert!(transaction.take_intervention().is_some(), "{boundary}");
    }
}

#[test]
fn a_body_in_a_file_is_read_and_one_that_cannot_be_read_is_refused() {
    let fixture = Fixture::new(RULES);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    fs::write(&file, "a=deny").unwrap();
    let mut transaction = fixture.begin("/");
    transaction.request_headers();
    assert!(transaction.request_body_from_file(&file));
    transaction.request_body();
    assert!(asked(&mut transaction).log.contains("[id \"4\"]"));
    for wrong in [folder.path().join("none"), folder.path().to_owned()] {
        let mut transaction = fixture.begin("/");
        transaction.request_headers();
        assert!(!transaction.request_body_from_file(&wrong));
        let found = asked(&mut transaction);
        assert_eq!(found.status, 500);
        assert!(found.log.contains("cannot be read"), "{}", found.log);
    }
}

#[test]
fn more_fields_than_there_is_room_for_are_refused() {
    let fixture = Fixture::new(RULES);
    let mut transaction = fixture.begin("/");
    for _ in 0..20_000 {
        transaction.add_request_header(b"a", b"b");
    }
    transaction.request_headers();
    assert_eq!(asked(&mut transaction).status, 431);
}

#[test]
fn an_error_of_ours_fails_closed_where_rules_block() {
    let fixture = Fixture::new(RULES);
    let mut transaction = fixture.begin("/");
    transaction.request_headers();
    transaction.fail();
    assert_eq!(asked(&mut transaction).status, 500);
    transaction.request_body();
    transaction.logging();
    assert_eq!(transaction.take_intervention(), None);
    let fixture = Fixture::new("SecRuleEngine DetectionOnly\n");
    let mut transaction = fixture.begin("/");
    transaction.fail();
    assert_eq!(transaction.take_intervention(), None);
    assert!(transaction.take_lines()[0].contains("The inspection failed"));
}

#[test]
fn an_error_of_ours_makes_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.sock");
    let taken: Arc<Mutex<Vec<Event>>> = Arc::default();
    let keep = Arc::clone(&taken);
    let (on_event, say) = (Arc::new(move |event| keep.lock().unwrap().push(event)), Arc::new(|_: &str| {}));
    let settings = Settings { path: path.clone(), users: Vec::new() };
    let _listener =
        Listener::open(&settings, false, &Registry::new(), on_event, Arc::new(|| true), say).unwrap();
    let fixture = Fixture::new(&format!("{RULES}SecEventSocket {}\n", path.display()));
    let mut transaction = fixture.begin("/a");
    transaction.request_headers();
    transaction.fail();
    transaction.logging();
    let deadline = Instant::now() + Duration::from_secs(20);
    while taken.lock().unwrap().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let taken = taken.lock().unwrap();
    let event = taken.first().expect("an event");
    assert_eq!((event.request.target.as_str(), event.verdict.status), ("/a", Some(500)));
    assert_eq!(
        event.exceptions.iter().map(|each| each.cause).collect::<Vec<_>>(),
        [ExceptionCause::EngineError]
    );
    assert!(event.verdict.reason.contains("failed by an error of its own"), "{}", event.verdict.reason);
}

#[test]
fn rules_of_phase_5_see_the_status_of_refusals() {
    let fixture = Fixture::new(&format!(
        "{RULES}SecRule RESPONSE_STATUS \"@streq 403\" \"id:8,phase:5,pass,log,msg:'Refused'\"\n"
    ));
    let mut transaction = fixture.begin("/");
    transaction.request_headers();
    transaction.append_request_body(&[b'a'; 101]);
    assert_eq!(asked(&mut transaction).status, 403);
    transaction.logging();
    let lines = transaction.take_lines();
    assert!(lines.iter().any(|line| line.contains("[id \"8\"]")), "{lines:?}");
}

#[test]
fn records_and_debug_lines_are_in_their_files_when_the_transaction_ends() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = format!(
        "{RULES}SecAuditEngine RelevantOnly\nSecAuditLogParts ABHZ\nSecAuditLogType Serial\nSecAuditLog {}\n\
         SecDebugLog {}\nSecDebugLogLevel 4\n",
        at("audit.log").display(),
        at("debug.log").display()
    );
    let fixture = Fixture::new(&text);
    let mut transaction = fixture.begin("/?q=head");
    transaction.request_headers();
    transaction.set_status(406);
    transaction.logging();
    let audit = fs::read_to_string(at("audit.log")).unwrap();
    assert!(audit.contains("-A--\n") && audit.contains("the-id") && audit.contains("[id \"1\"]"), "{audit}");
    assert!(audit.contains("POST /?q=head HTTP/1.1"), "{audit}");
    let debug = fs::read_to_string(at("debug.log")).unwrap();
    assert!(debug.contains("Interrupted by rule 1 in phase 1"), "{debug}");
    // Concurrent, in the JSON of version 3.
    let text = format!(
        "{RULES}SecAuditEngine On\nSecAuditLogParts ABHZ\nSecAuditLogType Concurrent\nSecAuditLogFormat JSON\n\
         SecAuditLog {}\nSecAuditLogStorageDir {}\n",
        at("index.log").display(),
        at("records").display()
    );
    let fixture = Fixture::new(&text);
    let mut transaction = fixture.begin("/");
    transaction.response_headers(200, b"HTTP 1.1");
    transaction.logging();
    let index = fs::read_to_string(at("index.log")).unwrap();
    let name = index.split(' ').find(|word| word.ends_with("-the-id")).expect(&index);
    let record = fs::read_to_string(at("records").join(name.trim_start_matches('/'))).unwrap();
    assert!(record.starts_with("{\"transaction\":{") && record.contains("\"the-id\""), "{record}");
}

#[test]
fn secrets_are_in_no_line() {
    let fixture = Fixture::new(
        "SecRuleEngine On\nSecRule ARGS \"@contains hunter2\" \"id:1,phase:1,deny,log,logdata:'%{MATCHED_VAR}'\"\n",
    );
    let mut transaction = fixture.begin("/?password=hunter2x");
    transaction.request_headers();
    let found = asked(&mut transaction);
    assert!(!found.log.contains("hunter2x") && found.log.contains("ARGS:password"), "{}", found.log);
}

#[test]
fn the_semantic_detector_is_switched_by_a_directive() {
    let attack = "/?q=1%27%20UNION%20SELECT%20password%20FROM%20users--%20-";
    let off = Fixture::new("SecRuleEngine On\n");
    let mut transaction = off.begin(attack);
    transaction.request_headers();
    transaction.request_body();
    assert_eq!(transaction.take_intervention(), None);
    let on = Fixture::new("SecRuleEngine On\nSecSemanticDetector Balanced\n");
    let mut transaction = on.begin(attack);
    transaction.request_headers();
    transaction.request_body();
    let found = asked(&mut transaction);
    assert_eq!(found.status, 403);
    assert!(found.log.contains("[id \"9000200\"]") && found.log.contains("`sqli'"), "{}", found.log);
    transaction.logging();
    assert!(transaction.take_lines().is_empty(), "told once");
    let detects = Fixture::new("SecRuleEngine DetectionOnly\nSecSemanticDetector Strict\n");
    let mut transaction = detects.begin(attack);
    transaction.logging();
    assert_eq!(transaction.take_intervention(), None);
    let lines = transaction.take_lines();
    assert!(
        lines[0].starts_with("ModSecurity: Warning.") && lines[0].contains("[id \"9000200\"]"),
        "{lines:?}"
    );
}
