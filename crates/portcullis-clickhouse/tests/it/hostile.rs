//! Databases that are down, slow, full of lies, or of others.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use portcullis_clickhouse::Database;
use portcullis_event::{Event, Timestamp};
use portcullis_event_store::{EventSource, FacetRequest, PageRequest, QueryError};
use portcullis_metrics::Registry;
use portcullis_query::{Field, Filter};

use crate::events::NOW;
use crate::server::{asked, config, read_from, start};

fn database(port: u16, registry: &Registry) -> Database {
    let config = config(&read_from(port, "timeout = \"2s\"\n"), std::path::Path::new("/"));
    Database::new(&config.event_database.unwrap(), registry).unwrap()
}

fn page(database: &Database) -> Result<Vec<String>, QueryError> {
    let filter = Filter::everything();
    let patience = Duration::from_secs(20);
    let page = database.page(&PageRequest { filter: &filter, before: None, limit: 1000, patience })?;
    Ok(page.events.into_iter().map(|event| event.json).chain(page.skipped).collect())
}

/// Reads a request to the end of its body: closing before that would reset the connection.
fn read_request(stream: &mut TcpStream) {
    let (mut request, mut buffer) = (Vec::new(), [0; 65536]);
    let is_whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        body.len() >= length.map_or(0, |digits| digits.trim().parse().unwrap())
    };
    while !is_whole(&request) {
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
}

/// A server that answers each request with these bytes, and says what it was asked.
fn liar(answer: impl Fn(&mut TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read_request(&mut stream);
            answer(&mut stream);
        }
    });
    port
}

fn says(status: &'static str, body: &'static [u8]) -> u16 {
    liar(move |stream| {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    })
}

#[test]
fn one_that_is_down_is_told() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let registry = Registry::new();
    let error = page(&database(port, &registry)).unwrap_err();
    assert!(matches!(error, QueryError::Unavailable(_)), "{error}");
    assert_eq!(asked(&registry, "unavailable"), 1);
}

#[test]
fn answers_that_are_none() {
    for (answer, expected) in [
        (says("200 OK", b"{\"t\":\"1\"}\n"), "its answer cannot be read"),
        (says("200 OK", b"{\"t\":1,\"i\":\"a\"}\n"), "its answer cannot be read"),
        (says("200 OK", b"<html>"), "its answer cannot be read"),
        (says("200 OK", b"{\"t\":\"99999999999999999999\",\"i\":\"a\"}"), "its answer cannot be read"),
        (says("302 Found\r\nLocation: http://127.0.0.1:1/", b""), "it answers 302"),
        (says("401 Unauthorized", b"Code: 516. DB::Exception: default: Authentication failed"), "Code: 516."),
        (says("500 Oops", b"Code: 60. DB::Exception: no table\x1b[2J"), "`create = true` makes the table"),
        (says("204 No Content", b""), "it answers 204"),
    ] {
        let registry = Registry::new();
        let QueryError::Unavailable(why) = page(&database(answer, &registry)).unwrap_err() else { panic!() };
        assert!(why.contains(expected) && !why.contains('\x1b'), "{why}");
        assert_eq!(
            (asked(&registry, "unavailable"), asked(&registry, "answered")).0,
            u64::from(!why.contains("cannot be read"))
        );
    }
    // No rows are none.
    assert_eq!(page(&database(says("200 OK", b""), &Registry::new())).unwrap(), Vec::<String>::new());
}

/// Neither a connection without an answer, nor one that drips, nor one without an end holds anybody up.
#[test]
fn answers_that_never_end() {
    let silent = liar(|stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let drips = liar(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    for port in [silent, drips] {
        let registry = Registry::new();
        let error = page(&database(port, &registry)).unwrap_err();
        assert!(matches!(error, QueryError::Late(_)), "{error}");
        assert_eq!(asked(&registry, "late"), 1);
    }
    let endless = liar(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[b'\n'; 65536]).is_ok() {}
    });
    let error = page(&database(endless, &Registry::new())).unwrap_err();
    assert!(matches!(error, QueryError::Late(_) | QueryError::Unavailable(_)), "{error}");
    let broken = liar(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"t\"");
    });
    let error = page(&database(broken, &Registry::new())).unwrap_err();
    assert!(matches!(error, QueryError::Unavailable(_)), "{error}");
}

/// Events found before the time ran out are a page, which says that it is not all and goes on.
#[test]
fn one_that_is_late_with_older_rows() {
    let asked_before = std::sync::atomic::AtomicUsize::new(0);
    let key = format!("\"t\":\"{NOW}\",\"i\":\"6F\"");
    let port = liar(move |stream| {
        let body = match asked_before.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => format!("{{{key}}}\n"),
            // The second window, until the asker goes.
            1 => {
                let _ = stream.read_to_end(&mut Vec::new());
                return;
            }
            _ => format!("{{{key},\"n\":\"1\",\"h\":\"\",\"e\":\"{{}}\"}}\n"),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    });
    let registry = Registry::new();
    let (filter, patience) = (Filter::everything(), Duration::from_secs(20));
    let request = PageRequest { filter: &filter, before: None, limit: 50, patience };
    let page = database(port, &registry).page(&request).unwrap();
    assert_eq!(page.events.len(), 1);
    assert!(!page.complete && page.next.as_deref() == Some(page.events[0].cursor.as_str()));
    assert_eq!((asked(&registry, "late"), asked(&registry, "answered")), (1, 2));
}

/// Other programs write to the table, too: what they write ends no line and no answer, and the events of ours
/// are there.
#[test]
fn rows_of_others() {
    let Some(server) = start() else { return };
    server.write(&[Event::new("ours", Timestamp::from_epoch_millis(NOW))]);
    let insert = |columns: &str, values: &str| {
        let statement = format!(
            "INSERT INTO default.portcullis_events (time, time_ms, count, {columns}) VALUES ({}, {NOW}, 1, {values})",
            NOW / 1000
        );
        assert_eq!(server.ask(&statement).as_deref(), Some(""), "{statement}");
    };
    insert("id, event", "'a', '{\"a\":1}\\n{\"b\":2}'");
    insert("id, event", "'b', 'no JSON'");
    insert("id, event", "'c', unhex('FF')");
    insert("id, event", "unhex('2780FF0A00'), '{}'");
    insert("id", "'d'");
    let long = "x".repeat(100_000);
    insert("id, event", &format!("'{long}', '{{}}'"));
    insert("id, event", &format!("'e', '{{\"a\":\"{}\"}}'", long.repeat(3)));
    let found = page(&server.database(&Registry::new())).unwrap();
    assert!(found.iter().any(|text| text.contains("\"ours\"")), "{found:?}");
    assert_eq!(found.iter().filter(|text| text.contains("is not one JSON object")).count(), 5, "{found:?}");
    // Pages of one event each come to an end, whatever the bytes of ids.
    let (mut pages, mut before) = (0, None::<String>);
    loop {
        let filter = Filter::everything();
        let patience = Duration::from_secs(10);
        let request = PageRequest { filter: &filter, before: before.as_deref(), limit: 1, patience };
        before = server.database(&Registry::new()).page(&request).unwrap().next;
        pages += 1;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(pages, 8);
    assert!(found.iter().all(|text| !text.contains('\n')));
    let filter = Filter::everything();
    let request = FacetRequest {
        filter: &filter,
        fields: &[Field::Verdict, Field::Class],
        top: 5,
        patience: Duration::from_secs(10),
    };
    assert_eq!(server.database(&Registry::new()).facets(&request).unwrap().fields.len(), 2);
}

/// A table of a sink of before has no column for the node; the statement that adds it is told.
#[test]
fn a_table_without_the_node() {
    let Some(server) = start() else { return };
    let old =
        portcullis_sinks::table_definition("default", "portcullis_events").replace("    node String,\n", "");
    assert_eq!(server.ask(&old).as_deref(), Some(""));
    server.write(&[Event::new("r1", Timestamp::from_epoch_millis(NOW))]);
    let QueryError::Unavailable(why) = page(&server.database(&Registry::new())).unwrap_err() else {
        panic!()
    };
    assert!(why.contains("docs/sinks.md has the statement that adds it"), "{why}");
    let manual =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sinks.md")).unwrap();
    let statement = "ALTER TABLE default.portcullis_events ADD COLUMN node String AFTER id";
    assert!(manual.contains(statement));
    assert_eq!(server.ask(statement).as_deref(), Some(""));
    assert_eq!(page(&server.database(&Registry::new())).unwrap().len(), 1);
    server.write(&[Event::new("r2", Timestamp::from_epoch_millis(NOW))]);
    assert_eq!(page(&server.database(&Registry::new())).unwrap().len(), 2);
}

/// A server that stops answering in the middle, as one whose disk hangs, is late; the next one answers.
#[test]
fn a_server_that_hangs() {
    let Some(server) = start() else { return };
    server.write(&[Event::new("r1", Timestamp::from_epoch_millis(NOW))]);
    let registry = Registry::new();
    let database = database(server.port, &registry);
    assert_eq!(page(&database).unwrap().len(), 1);
    let signal = |name: &str| {
        let process = server.process().to_string();
        assert!(std::process::Command::new("kill").args([name, &process]).status().unwrap().success());
    };
    signal("-STOP");
    let error = page(&database);
    signal("-CONT");
    assert!(matches!(error, Err(QueryError::Late(_))), "{error:?}");
    assert_eq!(asked(&registry, "late"), 1);
    assert_eq!(page(&database).unwrap().len(), 1);
}
