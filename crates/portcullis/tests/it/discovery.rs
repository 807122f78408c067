//! Discovery in the real program: what it lists in each mode, exports, compares and keeps.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::served::{Request, Response, Served, Server, application, program, says};

fn command(arguments: &[&str]) -> Output {
    Command::new(program()).arg("api").args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn listed(data: &Path) -> Vec<Value> {
    let folder = data.display().to_string();
    let text = text(&command(&["list", "--json", "--data", &folder]));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(endpoints: &[Value]) -> Vec<String> {
    let line =
        |each: &Value| format!("{} {}", each["method"].as_str().unwrap(), each["path"].as_str().unwrap());
    endpoints.iter().map(line).collect()
}

/// A shop: users and orders in JSON, and nothing else.
fn shop() -> Server {
    application(|request: &Request| {
        let path = request.target.split('?').next().unwrap_or_default();
        if path.starts_with("/users/") || path == "/orders" {
            let body = r#"{"mail":"ada@shop.example","card":"4111 1111 1111 1111","apiKey":"k"}"#;
            return Response {
                headers: vec![("Content-Type".into(), "application/json".into())],
                ..says(body)
            };
        }
        Response { status: 404, ..says("nothing") }
    })
}

fn start(application: &Server, mode: &str, data: &Path) -> Served {
    let site = format!("{mode}\ndiscovery = true");
    Served::start_site(application, &site, &format!("[data]\nfolder = \"{}\"\n", data.display()))
}

fn visit(served: &Served) {
    for number in 0..6 {
        assert_eq!(served.get(&format!("/users/{number}?full=true&page={number}")).status(), 200);
        let order = format!("{{\"id\":{number},\"lines\":[{{\"sku\":\"a-1\"}}]}}");
        assert_eq!(served.post("/orders", "application/json", order).status(), 200);
    }
    let with = |fields: &str| {
        let request = format!("GET /users/me HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
        served.raw(request).status()
    };
    assert_eq!(with("Authorization: Bearer x\r\n"), 200);
    assert_eq!(with("Cookie: PHPSESSID=1\r\n"), 200);
    for path in ["/wp-login.php", "/.env", "/admin"] {
        served.get(path);
    }
}

/// The same is found whatever inspects.
#[test]
fn in_every_mode() {
    let shop = shop();
    let rules = "rules = { directives = '''\nSecRuleEngine On\nSecRequestBodyAccess On\n\
                 SecRule REQUEST_HEADERS:Content-Type \"^application/json\" \"id:1,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n\
                 SecRule ARGS \"@contains attack\" \"id:2,phase:2,deny\"\n''' }";
    for mode in [
        "mode = \"semantic\"".to_owned(),
        format!("mode = \"crs\"\n{rules}"),
        format!("mode = \"both\"\n{rules}"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let served = start(&shop, &mode, data.path());
        visit(&served);
        let attack = "/users/7?page=1'+union+select+password+from+users--+-attack";
        assert_eq!(served.get(attack).status(), 403, "{mode}");
        served.counts("portcullis_discovered_endpoints{site=\"site\"}", 3.0);
        served.stop();
        let found = listed(data.path());
        assert_eq!(lines(&found), ["POST /orders", "GET /users/me", "GET /users/{number}"], "{mode}");
        let (orders, me, user) = (&found[0], &found[1], &found[2]);
        assert_eq!(
            (&user["requests"], &user["refused"], &user["statuses"]["200"]),
            (&6.into(), &1.into(), &6.into())
        );
        assert_eq!(me["authentication"], serde_json::json!(["bearer", "session-cookie"]));
        let names = |endpoint: &Value| -> Vec<String> {
            let parameters = endpoint["parameters"].as_array().unwrap().iter();
            parameters.map(|own| format!("{} {} {}", own["place"], own["name"], own["types"][0])).collect()
        };
        let expected = ["\"query\" \"full\" \"boolean\"", "\"query\" \"page\" \"whole\""];
        assert_eq!(names(user), expected, "{mode}");
        let expected = ["\"json\" \"id\" \"whole\"", "\"json\" \"lines[].sku\" \"slug\""];
        assert_eq!(names(orders), expected, "{mode}");
        // Answers are looked at where they are inspected.
        let seen = if mode.contains("\"crs\"") {
            serde_json::json!([])
        } else {
            serde_json::json!(["card", "email", "secret"])
        };
        assert_eq!(user["sensitive"], seen, "{mode}");
    }
}

/// What was found outlives the process; an export is an OpenAPI document, and compared with one that is
/// declared it says what differs.
#[test]
fn kept_exported_and_compared() {
    let (shop, data) = (shop(), tempfile::tempdir().unwrap());
    for _ in 0..2 {
        let served = start(&shop, "mode = \"semantic\"", data.path());
        visit(&served);
        served.stop();
    }
    assert_eq!(listed(data.path())[2]["requests"], 12);
    let folder = data.path().display().to_string();
    let told = text(&command(&["list", "site", "--data", &folder]));
    assert!(
        told.starts_with(
            "site: 3 endpoints\n  POST   /orders  12 requests, 1 network, 200, none, (id, lines[].sku)"
        ),
        "{told}"
    );
    let document: Value =
        serde_json::from_str(&text(&command(&["export", "site", "--data", &folder]))).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    // A template and a name beside it are two paths, and the name wins.
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(paths, ["/orders", "/users/me", "/users/{number}"]);
    let yaml = data.path().join("found.yaml").display().to_string();
    text(&command(&["export", "site", "--data", &folder, "--output", &yaml]));
    assert!(text(&command(&["diff", &yaml, "--site", "site", "--data", &folder])).is_empty());
    let declared = data.path().join("declared.yaml");
    std::fs::write(
        &declared,
        "openapi: 3.0.0\npaths:\n  /users/{id}:\n    get:\n      parameters:\n        - {name: page, in: query, required: true, \
         schema: {type: integer}}\n      deprecated: true\n  /orders/{id}:\n    delete: { deprecated: true }\n",
    )
    .unwrap();
    let declared = declared.display().to_string();
    let output = command(&["diff", &declared, "--site", "site", "--data", &folder]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "+ POST /orders  shadow: answers, and is not declared\n~ GET /users/me  drifted\n    gone query:page: \
                    integer, required\n~ GET /users/{number}  drifted\n    new query:full: boolean, required\n\
                    - DELETE /orders/{id}  declared, and not seen to answer\n\
                    ! GET /users/{id}  zombie: deprecated, and still answers\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let output = command(&["diff", &declared, "--site", "site", "--data", &folder, "--json"]);
    let changes: Vec<String> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["change"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(changes, ["shadow", "drifted", "drifted", "unseen", "zombie"]);
    // Between two documents nothing was seen.
    let output = command(&["diff", &declared, &yaml]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("+ POST /orders\n~ GET /users/me\n"));
}

/// Endpoints that deviate from what a site declares are counted while it serves, each for the document of its
/// route; a reload that takes the document away ends that.
#[test]
fn deviations_are_counted_while_it_serves() {
    let (shop, data) = (shop(), tempfile::tempdir().unwrap());
    let write = |name: &str, paths: &str| {
        let path = data.path().join(name);
        std::fs::write(&path, format!("openapi: 3.0.0\npaths:\n{paths}")).unwrap();
        path.display().to_string()
    };
    let users = write(
        "users.yaml",
        "  /users/{id}:\n    get:\n      deprecated: true\n      parameters:\n        - {name: page, in: query, schema: \
         {type: boolean}}\n        - {name: full, in: query, schema: {type: boolean}}\n  /users/{id}/mails:\n    get: {}\n",
    );
    let orders = write("orders.yaml", "  /orders/{id}:\n    get: {}\n  /elsewhere:\n    get: {}\n");
    let site = format!(
        "mode = \"semantic\"\ndiscovery = true\nroutes = [{{ path = \"/users/\", upstream = \"app\", api = {{ schema = \
         \"{users}\" }} }}, {{ path = \"/orders\", upstream = \"app\", api = {{ schema = \"{orders}\" }} }}]"
    );
    let more = format!("[data]\nfolder = \"{}\"\n", data.path().display());
    let served = Served::start_site(&shop, &site, &more);
    visit(&served);
    for (kind, count) in [("shadow", 1.0), ("zombie", 1.0), ("unseen", 2.0), ("drifted", 1.0)] {
        served.counts(&format!("portcullis_deviating_endpoints{{site=\"site\",kind=\"{kind}\"}}"), count);
    }
    served.stop();
    // Where nothing is declared, nothing is counted.
    let served = Served::start_site(&shop, "mode = \"semantic\"\ndiscovery = true", &more);
    served.get("/orders");
    served.counts("portcullis_discovered_endpoints{site=\"site\"}", 4.0);
    assert!(!served.metrics().contains("portcullis_deviating_endpoints{"), "{}", served.metrics());
}

/// A site that is not asked is not discovered; a folder without a site says so.
#[test]
fn only_where_it_is_asked_for() {
    let (shop, data) = (shop(), tempfile::tempdir().unwrap());
    let folder = format!("[data]\nfolder = \"{}\"\n", data.path().display());
    let served = Served::start_site(&shop, "discovery = false", &folder);
    served.get("/users/1");
    assert!(!served.metrics().contains("portcullis_discovered_endpoints{"));
    served.stop();
    let output = command(&["list", "site", "--data", &data.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`discovery = true`"));
}

/// An endpoint that comes after the time of learning, and one that nobody asks any more, are told as events.
#[test]
fn new_and_gone_endpoints_are_events() {
    let (shop, data) = (shop(), tempfile::tempdir().unwrap());
    let known = portcullis_discovery::Site::default();
    let mut inventory = portcullis_discovery::Inventory::default();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for network in [1, 2] {
        let seen = portcullis_discovery::Observation {
            network,
            at_s: now - 60 * 86_400,
            method: b"GET",
            path: b"/old",
            status: 200,
            ..Default::default()
        };
        known.observe(&seen, None);
    }
    inventory.learn(&known.take());
    std::fs::create_dir(data.path().join("discovery")).unwrap();
    std::fs::write(data.path().join("discovery/site.json"), inventory.to_text()).unwrap();
    let more = format!(
        "[client_address]\ntrusted_proxies = [\"127.0.0.0/8\"]\nheader = \"x-forwarded-for\"\n\
         [data]\nfolder = \"{}\"\n",
        data.path().display()
    );
    let served = Served::start_site(&shop, "mode = \"semantic\"\ndiscovery = true", &more);
    for network in ["10.0.1.1", "10.0.2.1"] {
        let request = format!(
            "GET /orders HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {network}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(served.raw(request).status(), 200);
    }
    let folder = served.stop();
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let told: Vec<String> = text
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            format!(
                "{} {} {}",
                event["agents"][0]["tags"][0], event["verdict"]["action"], event["verdict"]["reason"]
            )
        })
        .collect();
    let expected = [
        "\"gone-endpoint\" \"pass\" \"nobody has asked for 30 days: GET /old\"",
        "\"new-endpoint\" \"pass\" \"a new endpoint: GET /orders\"",
    ];
    assert_eq!(told, expected);
}
