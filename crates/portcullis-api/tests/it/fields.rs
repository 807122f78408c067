//! What sites have learned of their fields, as a program with a few tells it.

use std::sync::Mutex;

use portcullis_api::fields::{
    CarriedType, DecidedProposal, DecidedSession, FieldOrder, FieldOrderError, FieldPlace, FieldProposal,
    FieldState, KindEffect, LearnedField, LearnedFields, LearningSite, OrderedField, ProposalDecision,
    ProposalState, SessionError, SessionOrder, Sighted, TaughtEffect, TaughtField, TaughtKind, Teacher,
    TeachingSession,
};
use portcullis_identity::Role;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::server::Server;

/// A name that a client has chosen.
pub const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}txt\u{1}";

/// Fields that are carried about as the last order says, and a session of the site `shop` as it was begun.
pub struct Known(Mutex<Vec<LearnedField>>, Mutex<Option<TeachingSession>>);

impl Default for Known {
    fn default() -> Known {
        let at = |site: &str, method: &str, path: &str, name: &str, state| LearnedField {
            site: site.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            place: "query",
            name: name.to_owned(),
            state,
            closed_as: (state == FieldState::Closed).then_some("whole"),
            closes_as: (name != "text").then_some("whole"),
            options: 32,
            closed_before: None,
            evidence: "whole numbers only: 400 values of 40 networks in 14 days".to_owned(),
            confidence: 1.0,
            missing: Sighted::default(),
            values: 400,
            networks: 40,
            sessions: 0,
            days: 14,
            last_day: "2026-11-29".to_owned(),
            bytes_min: 1,
            bytes_max: 5,
            types: vec![CarriedType { r#type: "whole", values: 400, networks: 40, days: 14 }],
        };
        let fields = vec![
            at("shop", "POST", "/users/{number}", "text", FieldState::Open),
            at("shop", "GET", "/users/{number}", HOSTILE, FieldState::Closed),
            at("shop", "GET", "/item", "id", FieldState::Closed),
            at("blog", "GET", "/item", "id", FieldState::Open),
        ];
        Known(Mutex::new(fields), Mutex::default())
    }
}

fn is(field: &LearnedField, at: &FieldPlace) -> bool {
    (&field.site, &field.method, &field.path, field.place, &field.name)
        == (&at.site, &at.method, &at.path, at.place.as_str(), &at.name)
}

impl LearnedFields for Known {
    fn sites(&self) -> Vec<LearningSite> {
        vec![LearningSite {
            site: "shop".to_owned(),
            unusual: "detect",
            fields: 3,
            closed: 2,
            kept_open: 0,
            reopened: 0,
            fields_max: 2_000,
            beyond_limit: 0,
            closes_after: Sighted { values: 200, networks: 30, sessions: 30, days: 7 },
        }]
    }

    fn fields(&self, site: Option<&str>) -> Vec<LearnedField> {
        let known = self.0.lock().unwrap();
        known.iter().filter(|field| site.is_none_or(|site| field.site == site)).cloned().collect()
    }

    fn find(&self, at: &FieldPlace) -> Option<LearnedField> {
        self.0.lock().unwrap().iter().find(|field| is(field, at)).cloned()
    }

    fn proposals(&self, site: Option<&str>) -> Vec<FieldProposal> {
        let of = |id: &str, name: &str, state| FieldProposal {
            id: id.to_owned(),
            site: "shop".to_owned(),
            method: "POST".to_owned(),
            path: "/reports".to_owned(),
            place: "form",
            name: name.to_owned(),
            kind: "sqli.statement".to_owned(),
            state,
            since: "2026-11-29".to_owned(),
            evidence: "120 requests of 40 networks in 9 days".to_owned(),
            requests: 120,
            networks: 40,
            sessions: 38,
            days: 9,
            passes: 0,
            lost: 0,
            stopped: 0,
        };
        let all = [
            of("c", "seen", ProposalState::Seen),
            of("b", "a-live", ProposalState::Live),
            of("a", HOSTILE, ProposalState::Proposed),
        ];
        all.into_iter().filter(|_| site.is_none_or(|site| site == "shop")).collect()
    }

    fn decide(&self, site: &str, id: &str, decision: ProposalDecision) -> Option<DecidedProposal> {
        let found = self.proposals(Some(site)).into_iter().find(|proposal| proposal.id == id);
        found.map(|proposal| DecidedProposal {
            proposal: FieldProposal {
                state: match decision {
                    ProposalDecision::Accept => ProposalState::Live,
                    ProposalDecision::Trial => ProposalState::Trial,
                    ProposalDecision::Dismiss => ProposalState::Dismissed,
                },
                ..proposal
            },
            not_kept: None,
        })
    }

    fn order(&self, at: &FieldPlace, order: FieldOrder) -> Result<OrderedField, FieldOrderError> {
        let mut known = self.0.lock().unwrap();
        let place = known.iter().position(|field| is(field, at)).ok_or(FieldOrderError::NoField)?;
        if order == FieldOrder::Forget {
            known.remove(place);
            return Ok(OrderedField { field: None, not_kept: Some("the disk is full".to_owned()) });
        }
        let field = &mut known[place];
        if order == FieldOrder::Close && field.closes_as.is_none() {
            return Err(FieldOrderError::NotPlain);
        }
        field.state = match order {
            FieldOrder::KeepOpen => FieldState::KeptOpen,
            FieldOrder::Close => FieldState::Closed,
            FieldOrder::Learn | FieldOrder::Forget => FieldState::Open,
        };
        Ok(OrderedField { field: Some(field.clone()), not_kept: None })
    }

    fn sessions(&self) -> Vec<TeachingSession> {
        self.1.lock().unwrap().iter().cloned().collect()
    }

    fn start_session(
        &self,
        site: &str,
        teacher: Teacher,
        seconds: u64,
        by: &str,
    ) -> Result<TeachingSession, SessionError> {
        let mut session = self.1.lock().unwrap();
        match (site, &*session, teacher) {
            ("shop", Some(_), _) => return Err(SessionError::Exists),
            ("shop", ..) => {}
            _ => return Err(SessionError::NoSite),
        }
        let Teacher::Network(address, prefix) = teacher else { return Err(SessionError::NoTrusted) };
        let begun = TeachingSession {
            site: site.to_owned(),
            by: by.to_owned(),
            network: Some(format!("{address}/{prefix}")),
            is_running: true,
            started: "2026-11-29T08:00:00.000Z".to_owned(),
            until: format!("{seconds}"),
            dropped: "2026-11-30T08:15:00.000Z".to_owned(),
            requests: 3,
            refused: 1,
            beyond_limit: 0,
            fields: vec![TaughtField {
                method: "POST".to_owned(),
                path: "/reports".to_owned(),
                place: "form",
                name: HOSTILE.to_owned(),
                values: 3,
                types: vec!["text"],
                effect: TaughtEffect::Opens,
                kinds: vec![TaughtKind { kind: "sqli.statement".to_owned(), effect: KindEffect::Opens }],
            }],
        };
        Ok(session.insert(begun).clone())
    }

    fn order_session(
        &self,
        _: &str,
        order: SessionOrder,
        requests: Option<u64>,
    ) -> Result<DecidedSession, SessionError> {
        let mut kept = self.1.lock().unwrap();
        let session = kept.as_mut().ok_or(SessionError::NoSession)?;
        session.is_running = false;
        let session = session.clone();
        if order == SessionOrder::Accept && requests != Some(session.requests) {
            return Err(SessionError::Changed);
        }
        if order != SessionOrder::Stop {
            *kept = None;
        }
        Ok(DecidedSession { session, not_kept: None })
    }
}

/// Only administrators say that their work is benign; for how long and whose it is has bounds, and the audit
/// trail has all of it.
#[test]
fn teaching_by_hand() {
    let server = Server::start();
    let (viewer, analyst, admin) =
        (server.token(Role::Viewer), server.token(Role::Analyst), server.token(Role::Admin));
    let post = |token: &str, order: &str, body: &Value| {
        server.ask("POST", &format!("/fields/sessions/{order}")).bearer(token).json(body).send()
    };
    let start = json!({"site": "shop", "network": "192.0.2.7", "reason": "the new editor"});
    for order in ["start", "stop", "accept", "dismiss"] {
        assert_eq!(post(&analyst, order, &start).status, 403, "{order}");
    }
    assert_eq!(server.get("/fields/sessions", &viewer).status, 403);
    let none = server.get("/fields/sessions", &analyst).json();
    assert_eq!((&none["items"], &none["address"]), (&json!([]), &json!("127.0.0.1")));
    for (wrong, status) in [
        (json!({"site": "shop"}), 422),
        (json!({"site": "shop", "network": "192.0.2.7", "trusted": true}), 422),
        (json!({"site": "shop", "network": "shop.example"}), 422),
        (json!({"site": "shop", "network": "10.0.0.0/15"}), 422),
        (json!({"site": "shop", "network": "0.0.0.0/0"}), 422),
        (json!({"site": "shop", "network": "2001:db8::/31"}), 422),
        (json!({"site": "shop", "network": "192.0.2.7", "minutes": 61}), 422),
        (json!({"site": "shop", "network": "192.0.2.7", "minutes": 0}), 422),
        (json!({"site": "shop", "trusted": true}), 409),
        (json!({"site": "blog", "network": "192.0.2.7"}), 404),
    ] {
        assert_eq!(post(&admin, "start", &wrong).status, status, "{wrong}");
    }
    let begun = post(&admin, "start", &start).json();
    assert_eq!((&begun["network"], &begun["until"]), (&json!("192.0.2.7/32"), &json!("900")));
    let last = |name: &str| server.get("/audit", &admin).json()["items"][0][name].clone();
    assert_eq!((last("action"), last("detail")), (json!("field.session.start"), json!("the new editor")));
    assert_eq!(last("object"), "site shop: 192.0.2.7, 15 minutes");
    assert_eq!(post(&admin, "start", &start).status, 409);
    let order =
        |order: &str, requests: Value| post(&admin, order, &json!({"site": "shop", "requests": requests}));
    assert_eq!(order("stop", Value::Null).json()["session"]["is_running"], false);
    for unseen in [Value::Null, json!(2), json!(4)] {
        assert_eq!(order("accept", unseen).status, 409);
    }
    assert_eq!(order("accept", json!(3)).json()["session"]["fields"][0]["effect"], "opens");
    assert_eq!(last("object"), "site shop: 3 requests, 1 fields");
    assert_eq!((order("accept", json!(3)).status, order("burn", Value::Null).status), (404, 404));
    let actions = server.get("/audit", &admin).json();
    let actions = actions["items"].as_array().unwrap().iter().filter_map(|entry| entry["action"].as_str());
    let actions: Vec<&str> = actions.filter(|action| action.starts_with("field.session")).collect();
    assert_eq!(actions, ["field.session.accept", "field.session.stop", "field.session.start"]);
}

fn names(page: &Value) -> Vec<(String, String)> {
    let of =
        |item: &Value| (item["path"].as_str().unwrap().to_owned(), item["name"].as_str().unwrap().to_owned());
    page["items"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn fields_come_in_pages() {
    let server = Server::start();
    let viewer = server.token(Role::Viewer);
    let all = server.get("/fields?site=shop", &viewer).json();
    assert_eq!((all["total"].clone(), all["next"].clone()), (json!(3), Value::Null));
    let order = [("/item", "id"), ("/users/{number}", HOSTILE), ("/users/{number}", "text")];
    let order = order.map(|(path, name)| (path.to_owned(), name.to_owned()));
    assert_eq!(names(&all), order);
    // One by one, whatever a client has put into a name that a cursor has.
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/fields?site=shop&limit=1{cursor}"), &viewer).json();
        seen.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={}", encoded(next));
    }
    assert_eq!(seen, order);
    for (query, total) in [
        ("", 4),
        ("?state=closed", 2),
        ("?state=open", 2),
        ("?state=reopened", 0),
        ("?site=blog", 1),
        ("?site=none", 0),
        ("?search=ITEM", 2),
        ("?search=%3Cscript", 1),
        ("?search=whole", 2),
        ("?path=/item&site=shop", 1),
        ("?path=/users/%7Bnumber%7D&method=GET", 1),
    ] {
        assert_eq!(server.get(&format!("/fields{query}"), &viewer).json()["total"], total, "{query}");
    }
    for query in ["?state=x", "?limit=0", "?limit=1001", "?x=1", &format!("?search={}", "x".repeat(201))] {
        assert_eq!(server.get(&format!("/fields{query}"), &viewer).status, 400, "{query}");
    }
    assert_eq!(server.get("/fields/sites", &viewer).json()["items"][0]["closes_after"]["networks"], 30);
    let found = server.get("/fields/find?site=shop&method=GET&path=/item&place=query&name=id", &viewer);
    assert_eq!(found.json()["closed_as"], "whole");
    let none = server.get("/fields/find?site=shop&method=GET&path=/item&place=cookie&name=id", &viewer);
    assert_eq!(none.status, 404);
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn order(server: &Server, token: &str, order: &str, path: &str, name: &str) -> Answer {
    let method = if name == "text" { "POST" } else { "GET" };
    let field = json!({"site": "shop", "method": method, "path": path, "place": "query", "name": name,
        "reason": "they may"});
    server.ask("POST", &format!("/fields/{order}")).bearer(token).json(&field).send()
}

/// What closes fields or forgets them is for administrators; what anybody decides is in the audit trail.
#[test]
fn decisions_by_role() {
    let server = Server::start();
    let [viewer, analyst, admin] = [Role::Viewer, Role::Analyst, Role::Admin].map(|role| server.token(role));
    for name in ["keep-open", "learn", "close", "forget"] {
        assert_eq!(order(&server, &viewer, name, "/item", "id").status, 403, "{name}");
    }
    for name in ["close", "forget"] {
        let answer = order(&server, &analyst, name, "/item", "id");
        assert_eq!(answer.status, 403);
        assert!(answer.text().contains("needs the role admin"), "{}", answer.text());
    }
    assert_eq!(server.get("/fields?site=shop&state=closed", &viewer).json()["total"], 2);
    let kept = order(&server, &analyst, "keep-open", "/item", "id");
    assert_eq!((kept.status, kept.json()["field"]["state"].clone()), (200, json!("kept_open")));
    assert_eq!(order(&server, &analyst, "learn", "/item", "id").json()["field"]["state"], "open");
    assert_eq!(order(&server, &admin, "close", "/item", "id").json()["field"]["state"], "closed");
    assert_eq!(order(&server, &admin, "close", "/users/{number}", "text").status, 409);
    assert_eq!(order(&server, &admin, "close", "/users/{number}", "none").status, 404);
    assert_eq!(order(&server, &admin, "burn", "/item", "id").status, 404);
    // A decision that is not on disk says so.
    let forgotten = order(&server, &admin, "forget", "/users/{number}", HOSTILE).json();
    assert_eq!((&forgotten["field"], &forgotten["message"]), (&Value::Null, &json!("the disk is full")));
    let audit = server.get("/audit", &admin).json();
    let told: Vec<_> = audit["items"].as_array().unwrap().iter().collect();
    let actions: Vec<&str> = told.iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(actions[..4], ["field.forget", "field.close", "field.learn", "field.keep-open"]);
    assert_eq!(told[0]["detail"], "they may; the disk is full");
    assert_eq!(told[1]["object"], "site shop: GET /item query:id");
}

/// Proposals that wait for a person stand first; analysts decide, as they do about exclusions.
#[test]
fn proposals() {
    let server = Server::start();
    let [viewer, analyst, admin] = [Role::Viewer, Role::Analyst, Role::Admin].map(|role| server.token(role));
    let ids = |query: &str| {
        let page = server.get(&format!("/fields/proposals{query}"), &viewer).json();
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["id"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (query, expected) in
        [("", "ab"), ("?state=seen", "c"), ("?site=blog", ""), ("?limit=1", "a"), ("?state=live", "b")]
    {
        assert_eq!(ids(query), expected, "{query}");
    }
    let next = server.get("/fields/proposals?limit=1", &viewer).json()["next"].as_str().unwrap().to_owned();
    assert_eq!(ids(&format!("?cursor={}", encoded(&next))), "b");
    let decide = |token: &str, decision: &str, id: &str| {
        let body = json!({"site": "shop", "id": id, "reason": "reports are statements"});
        server.ask("POST", &format!("/fields/proposals/{decision}")).bearer(token).json(&body).send()
    };
    assert_eq!(decide(&viewer, "accept", "a").status, 403);
    for (decision, state) in [("accept", "live"), ("trial", "trial"), ("dismiss", "dismissed")] {
        let decided = decide(&analyst, decision, "b").json();
        assert_eq!(decided["proposal"]["state"], state);
        let last = server.get("/audit", &admin).json()["items"][0].clone();
        assert_eq!(last["action"], format!("field.proposal.{decision}"));
        assert_eq!(last["object"], "site shop: sqli.statement in POST /reports form:a-live");
        assert_eq!(last["detail"], "reports are statements");
    }
    assert_eq!(decide(&analyst, "accept", "x").status, 404);
    assert_eq!(decide(&analyst, "burn", "a").status, 404);
}
