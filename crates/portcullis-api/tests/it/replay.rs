//! `POST /replay`: which texts are compared on which requests, and errors.

use portcullis_event::{Event, KeptRequest, Timestamp};
use portcullis_event_store::{StoreSettings, Writer};
use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::server::{NOW_MS, Server};

fn ask(server: &Server, token: &str, body: &Value) -> (u16, Value) {
    let answer = server.ask("POST", "/replay").bearer(token).json(body).send();
    (answer.status, answer.json())
}

/// Stores events with these requests in a store below the folder of the server.
fn store(server: &Server, name: &str, requests: &[(&str, &str)]) {
    let mut writer = Writer::open(StoreSettings::new(server.folder.path().join(name)), false).unwrap();
    for (number, (id, request)) in requests.iter().enumerate() {
        let mut event = Event::new(*id, Timestamp::from_epoch_millis(NOW_MS + number as u64));
        (event.site, event.route) = ("shop".into(), "/".into());
        event.client.addr = "192.0.2.7".to_owned();
        let request = KeptRequest { bytes: request.as_bytes().to_vec(), omitted: number as u64 };
        writer.add(&event, Some(&request));
    }
    writer.commit(NOW_MS).unwrap();
}

#[test]
fn requests_of_the_order_are_tried_by_a_text_and_the_document() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let loose = server.text() + "# loose\n";
    let requests = json!([
        {"request": "GET /?attack HTTP/1.1\nHost: a\n\n", "client": "198.51.100.7"},
        {"id": "mine", "curl": "curl -d attack=1 http://a/", "site": "shop"},
        {"request_base64": "R0VUIC8gSFRUUC8xLjENCkhvc3Q6IGENCg0K"},
    ]);
    let (status, answer) = ask(&server, &admin, &json!({"text": loose, "requests": requests}));
    let expected = json!({
        "requests": 3, "stopped": 0, "lost": 2, "new": 0, "not_inspected": 0, "incomplete": 0, "untried": 0,
        "changes": [
            {"change": "lost", "id": "1", "site": null, "client": "198.51.100.7", "request": "GET /", "reason": "a reason"},
            {"change": "lost", "id": "mine", "site": "shop", "client": "192.0.2.1", "request": "GET /", "reason": "a reason"},
        ],
    });
    assert_eq!((status, &answer), (200, &expected));
    assert_eq!(server.actions().last().unwrap(), "replay");
    // The same by numbers of revisions.
    let change = json!({"text": loose});
    let changed = server.ask("PUT", "/config").bearer(&admin).header("If-Match", "*").json(&change).send();
    let number = changed.json()["revision"].as_u64().unwrap();
    let order = json!({"revision": number as f64, "against": number - 1, "requests": requests});
    assert_eq!(ask(&server, &admin, &order), (200, expected));
    let order = json!({"revision": number, "requests": requests});
    assert_eq!(ask(&server, &admin, &order).1["lost"], 0);
}

#[test]
fn stored_requests_are_those_of_events_and_of_the_sample() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let loose = server.text() + "# loose\n";
    let order = |filter: &str, limit: u32| json!({"text": loose, "filter": filter, "limit": limit});
    assert_eq!(ask(&server, &admin, &order("", 10)).1["requests"], 0);
    let attack = "GET /?attack HTTP/1.1\r\n\r\n";
    store(&server, "events", &[("e1", attack), ("e2", attack)]);
    store(&server, "sample", &[("s1", "GET /?plain HTTP/1.1\r\n\r\n")]);
    let answer = ask(&server, &admin, &order("", 10)).1;
    assert_eq!(
        (&answer["requests"], &answer["lost"], &answer["incomplete"]),
        (&3.into(), &2.into(), &1.into())
    );
    assert_eq!(
        (&answer["changes"][0]["id"], &answer["changes"][0]["client"]),
        (&"e2".into(), &"192.0.2.7".into())
    );
    // Events come first.
    assert_eq!(ask(&server, &admin, &order("", 2)).1["lost"], 2);
    assert_eq!(ask(&server, &admin, &order("id = s1", 10)).1["requests"], 1);
    // All together have a bound: what is left out is told.
    let long = format!("POST / HTTP/1.1\r\n\r\n{}", "x".repeat(6 << 20));
    store(&server, "sample", &[("l1", &long), ("l2", &long), ("l3", &long)]);
    let answer = ask(&server, &admin, &order("", 10)).1;
    assert_eq!((&answer["requests"], &answer["untried"]), (&5.into(), &1.into()));
}

#[test]
fn what_cannot_be_is_told() {
    let server = Server::start();
    let admin = server.token(Role::Admin);
    let text = server.text();
    let many = vec![json!({"request": "GET / HTTP/1.1\n\n"}); 1001];
    for (order, status, part) in [
        (json!({"requests": []}), 422, "give one of text and revision"),
        (json!({"text": text, "revision": 1, "requests": []}), 422, "give one of text and revision"),
        (json!({"text": text}), 422, "give one of requests and filter"),
        (json!({"text": text, "filter": "", "requests": []}), 422, "give one of requests and filter"),
        (json!({"text": text, "filter": "statsu = 1"}), 400, "did you mean `status`?"),
        (
            json!({"text": text, "filter": "", "limit": 1001}),
            422,
            "limit must be a whole number from 1 to 1000",
        ),
        (json!({"text": text, "requests": [{}]}), 422, "requests[0]: give one of"),
        (json!({"text": text, "requests": [{"request": "GET /", "curl": "curl a"}]}), 422, "requests[0]"),
        (
            json!({"text": text, "requests": [{"request": "GET /"}, {"request_base64": "!"}]}),
            422,
            "requests[1]",
        ),
        (json!({"text": text, "requests": many}), 422, "at most 1000"),
        (json!({"text": "mode = 1", "requests": []}), 422, "mode"),
        (json!({"text": text, "requests": [], "site": "nowhere"}), 422, "no site nowhere"),
        (json!({"revision": 99, "requests": []}), 404, ""),
        (json!({"revision": 9_007_199_254_740_993_u64, "requests": []}), 404, ""),
        (json!({"revision": 0, "requests": []}), 422, "revision must be"),
        (json!({"text": text, "requests": [{"request": "x".repeat((1 << 20) + 1)}]}), 413, "at most 1048576"),
    ] {
        let (got, problem) = ask(&server, &admin, &order);
        let shown: String = order.to_string().chars().take(100).collect();
        assert_eq!(got, status, "{shown}: {problem}");
        assert!(problem.to_string().contains(part), "{shown}: {problem}");
    }
    let wrong = json!({"text": "mode = 1", "requests": []});
    assert!(ask(&server, &admin, &wrong).1["diagnostics"][0]["line"].is_u64());
    // Whoever may have files read may ask.
    let order = json!({"text": text, "requests": []});
    assert_eq!(ask(&server, &server.token(Role::Analyst), &order).0, 403);
}
