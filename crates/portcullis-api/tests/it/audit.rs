//! The audit trail: looked through, exported, and what it says of changes.

use portcullis_identity::{Actor, Role};
use serde_json::{Value, json};

use crate::server::Server;

fn record(server: &Server, actor: &str, action: &str, object: &str, detail: &str) {
    server.identities.record(&Actor::new(actor), action, object, detail, server.now()).unwrap();
}

#[test]
fn entries_are_looked_for() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    for number in 0..30 {
        record(&server, ["user:anna", "user:otto"][number % 2], "ban.add", &format!("client {number}"), "");
    }
    server.pass(100);
    record(&server, "user:anna", "user.change", "user otto", "role viewer to admin");
    let list = |query: &str| {
        let page = server.get(&format!("/audit?{query}"), &admin).json();
        assert_eq!(page["complete"], true, "{page}");
        let items = page["items"].as_array().unwrap().clone();
        (
            items.into_iter().map(|item| item["number"].as_i64().unwrap()).collect::<Vec<_>>(),
            page["next"].clone(),
        )
    };
    assert_eq!(list("actor=otto&limit=2").0, [31, 29]);
    let (_, next) = list("actor=otto&limit=2");
    assert_eq!(list(&format!("actor=otto&limit=2&cursor={}", next.as_str().unwrap())).0, [27, 25]);
    assert_eq!(list("action=user.&object=otto"), (vec![32], Value::Null));
    assert_eq!(list(&format!("from={}", server.now())).0, [32]);
    assert_eq!(list(&format!("to={}&actor=anna&limit=1", server.now())).0, [30]);
    assert_eq!(list("actor=nobody"), (vec![], Value::Null));
    let long = "a".repeat(501);
    for wrong in ["limit=0", "cursor=x", "from=-1", "to=x", "x=1", &format!("actor={long}")] {
        assert_eq!(server.get(&format!("/audit?{wrong}"), &admin).status, 400, "{wrong}");
    }
    // Others than administrators read none of it.
    let analyst = server.token(Role::Analyst);
    for path in ["/audit", "/audit/export?format=csv"] {
        assert_eq!(server.get(path, &analyst).status, 403, "{path}");
    }
}

/// An export has every entry once, whatever people put into their names and reasons.
#[test]
fn exports_have_all_and_compute_nothing() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    for detail in ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "a \"b\", c\r\nd", "plain"] {
        record(&server, "user:anna", "ban.add", "client 192.0.2.1", detail);
    }
    for _ in 0..1_200 {
        record(&server, "user:often", "login", "user often", "");
    }
    let csv = server.get("/audit/export?format=csv&actor=anna", &admin);
    assert_eq!((csv.status, csv.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    assert!(csv.header("content-disposition").unwrap().contains("audit.csv"));
    let text = csv.text();
    for cell in [
        "\"'=cmd|' /C calc'!A0\"",
        "\"'+1\"",
        "\"'-1\"",
        "\"'@SUM(A1)\"",
        "\"'\tx\"",
        "\"a \"\"b\"\", c\r\nd\"",
        "\"plain\"",
    ] {
        assert!(text.contains(cell), "{cell}: {text}");
    }
    let lines = server.get("/audit/export?format=jsonl&actor=often", &admin);
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let text = lines.text();
    let count = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|item| item["action"] == "login" && item["change"] == Value::Null);
    assert_eq!(count.count(), 1_200);
    assert_eq!(server.actions().iter().filter(|action| *action == "audit.export").count(), 2);
    for wrong in ["", "format=xml", "format=csv&limit=1", "format=csv&x=1"] {
        assert_eq!(server.get(&format!("/audit/export?{wrong}"), &admin).status, 400, "{wrong}");
    }
}

/// The trail says which lines a change of the configuration took away and added, and nothing of one that was
/// refused.
#[test]
fn a_change_of_the_configuration_is_told_as_a_difference() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let ask =
        |body: Value| server.ask("PATCH", "/config").bearer(&admin).header("If-Match", "*").json(body).send();
    let change =
        |value: &str| json!({"changes": [{"path": "/sites/0/mode", "value": value}], "reason": "slow"});
    assert_eq!(ask(change("off")).status, 200);
    assert_eq!(ask(change("nonsense")).status, 422);
    let items = server.get("/audit?action=config.change", &admin).json()["items"].clone();
    assert_eq!((&items[0]["object"], &items[0]["change"]), (&json!("refused"), &Value::Null));
    let told = items[1]["change"].as_str().unwrap();
    assert!(told.contains("+mode = \"off\""), "{told}");
    // Only the lines that change: the password in another line is none of them.
    assert!(server.text().contains("hunter2") && !told.contains("hunter2"), "{told}");
    assert_eq!(ask(change("semantic")).status, 200);
    let items = server.get("/audit?action=config.change&limit=1", &admin).json()["items"].clone();
    let told = items[0]["change"].as_str().unwrap();
    assert!(told.contains("-mode = \"off\"") && told.contains("+mode = \"semantic\""), "{told}");
}
