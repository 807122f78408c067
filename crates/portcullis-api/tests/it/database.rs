//! Events of a database in place of the store of the process.

use std::sync::{Arc, Mutex};

use portcullis_event::{Event, KeptRequest, Timestamp};
use portcullis_event_store::{
    After, EventSource, FacetRequest, Facets, Histogram, HistogramRequest, HistogramStep, OldestRequest,
    Page, PageRequest, QueryError, StoreSettings, StoredEvent, Writer,
};
use portcullis_identity::Role;

use crate::server::{NOW_MS, Server};

type Failing = fn() -> QueryError;

/// Answers with the event `far`, or not at all.
struct Far {
    fails: Mutex<Option<Failing>>,
}

impl Far {
    fn answer<T>(&self, good: T) -> Result<T, QueryError> {
        match *self.fails.lock().unwrap() {
            Some(error) => Err(error()),
            None => Ok(good),
        }
    }
}

fn far() -> StoredEvent {
    let json = r#"{"request_id":"far"}"#.to_owned();
    StoredEvent { cursor: "17-666172".to_owned(), count: 3, json, node: Some("n2".to_owned()), request: None }
}

impl EventSource for Far {
    fn page(&self, request: &PageRequest<'_>) -> Result<Page, QueryError> {
        match request.before {
            Some("17-666172") | None => {}
            Some(other) => return Err(QueryError::Cursor(other.to_owned())),
        }
        let next = Some("17-666172".to_owned());
        self.answer(Page { events: vec![far()], next, complete: true, skipped: Vec::new() })
    }

    fn event(&self, id: &str) -> Result<Option<StoredEvent>, QueryError> {
        self.answer((id == "far" || id == "both").then(far))
    }

    fn facets(&self, _: &FacetRequest<'_>) -> Result<Facets, QueryError> {
        self.answer(Facets { total: 3, complete: true, ..Facets::default() })
    }

    fn histogram(&self, _: &HistogramRequest<'_>) -> Result<Histogram, QueryError> {
        let steps = vec![HistogramStep { start_ms: 60_000, counts: [1, 2, 0, 0, 0, 0] }];
        self.answer(Histogram {
            to_ms: 120_000,
            step_ms: 60_000,
            steps,
            complete: true,
            ..Histogram::default()
        })
    }

    fn oldest(&self, _: &OldestRequest<'_>) -> Result<After, QueryError> {
        self.answer(After::default())
    }
}

fn server() -> (Server, Arc<Far>, Arc<Mutex<Vec<String>>>) {
    let (far, said) = (Arc::new(Far { fails: Mutex::new(None) }), Arc::default());
    let server = Server::with_database(Arc::clone(&far) as Arc<dyn EventSource>, Arc::clone(&said));
    (server, far, said)
}

#[test]
fn events_are_those_of_the_database() {
    let (server, ..) = server();
    let token = server.token(Role::Viewer);
    let page = server.get("/events?limit=1", &token).json();
    let item = &page["items"][0];
    assert_eq!((&item["count"], &item["node"]), (&3.into(), &"n2".into()));
    assert_eq!(page["next"], "17-666172");
    assert_eq!(server.get("/events?before=17-666172", &token).status, 200);
    // A cursor of a store.
    assert_eq!(server.get("/events?before=17-5", &token).status, 400);
    assert_eq!(server.get("/events/facets", &token).json()["total"], 3);
    let steps = server.get("/events/histogram", &token).json();
    assert_eq!(
        (&steps["total"], &steps["step"], &steps["items"][0]["would_block"]),
        (&3.into(), &60.into(), &2.into())
    );
    assert_eq!(server.get("/events/far", &token).json()["event"]["request_id"], "far");
    assert_eq!(server.get("/events/none", &token).status, 404);
    // Statistics and the stream are of this process.
    assert_eq!(server.get("/statistics", &token).json()["items"].as_array().unwrap().len(), 0);
}

/// What the process has itself is there before the database has it, and requests are there alone.
#[test]
fn events_and_requests_of_this_process_are_found_too() {
    let (server, ..) = server();
    let [viewer, analyst] = [Role::Viewer, Role::Analyst].map(|role| server.token(role));
    let mut writer = Writer::open(StoreSettings::new(server.folder.path().join("events")), false).unwrap();
    for id in ["both", "near"] {
        let request = KeptRequest { bytes: id.as_bytes().to_vec(), omitted: 0 };
        writer.add(&Event::new(id, Timestamp::from_epoch_millis(NOW_MS)), Some(&request));
    }
    writer.commit(NOW_MS).unwrap();
    assert_eq!(server.get("/events/near", &viewer).json()["count"], 1);
    let both = server.get("/events/both", &viewer).json();
    assert_eq!((&both["count"], &both["has_request"]), (&3.into(), &true.into()));
    assert_eq!(server.get("/events/both/request", &analyst).body, b"both");
    assert_eq!(server.get("/events/far/request", &analyst).status, 404);
}

/// The client is told that it fails, and not why; the operator why, once a minute.
#[test]
fn a_database_that_fails_is_told_apart_from_no_events() {
    let (server, far, said) = server();
    let token = server.token(Role::Viewer);
    let failures: [(Failing, u16, &str); 2] = [
        (|| QueryError::Unavailable("10.9.8.7 is away".to_owned()), 502, "events-unavailable"),
        (|| QueryError::Late("10.9.8.7 is slow".to_owned()), 504, "events-late"),
    ];
    for (error, status, kind) in failures {
        *far.fails.lock().unwrap() = Some(error);
        server.pass(61);
        for path in ["/events", "/events/far", "/events/facets", "/events/histogram"] {
            let answer = server.get(path, &token);
            let problem = answer.json();
            assert_eq!(answer.status, status, "{path}");
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
            assert_eq!(problem["type"], format!("urn:portcullis:problem:{kind}"), "{path}");
            assert!(!answer.text().contains("10.9.8.7"), "{}", answer.text());
        }
    }
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("10.9.8.7 is away") && said[1].contains("10.9.8.7 is slow"), "{said:?}");
    *far.fails.lock().unwrap() = None;
    assert_eq!(server.get("/events", &token).status, 200);
}
