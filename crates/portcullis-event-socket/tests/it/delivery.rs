//! Events that arrive, and losses that both ends know of.

use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use portcullis_event::BlindSpot;
use portcullis_event_socket::OpenError;
use portcullis_metrics::Registry;

use crate::common::{Place, count, event, forward};

const LONG: Duration = Duration::from_secs(30);

#[test]
fn events_arrive_whole_and_in_order() {
    let place = Place::new();
    let listener = place.open();
    let (registry, senders) = (Registry::new(), 4);
    std::thread::scope(|scope| {
        for sender in 0..senders {
            let (registry, path) = (&registry, place.path());
            scope.spawn(move || {
                let forward = forward(&path, 8192, registry);
                for number in 0..2000 {
                    let mut event = event(&format!("{sender}-{number}"));
                    if let Some(integration) = &mut event.integration {
                        integration.blind_spots.push(BlindSpot::Response);
                    }
                    forward.sender().submit(event);
                }
                assert_eq!(forward.shutdown(LONG), 0);
            });
        }
    });
    drop(listener);
    let ids = place.ids();
    for sender in 0..senders {
        let own: Vec<_> = ids.iter().filter(|id| id.starts_with(&format!("{sender}-"))).collect();
        assert!(own.iter().map(|id| id[2..].parse::<u32>().unwrap()).eq(0..2000), "{}", own.len());
    }
    let first = &place.taken.lock().unwrap()[0];
    let sent = format!("\"{}\"", first.request_id);
    assert!(first.json_line().contains(&sent) && first.json_line().contains(r#""kind":"libmodsecurity""#));
    assert_eq!(place.count("portcullis_event_socket_events_total{integration=\"libmodsecurity\"}"), 8000);
    assert_eq!(count(&registry, "portcullis_event_forward_events_total"), 8000);
    assert_eq!(count(&registry, "portcullis_event_forward_connected"), 1);
    assert!(!place.path().exists(), "the socket goes with its listener");
}

#[test]
fn a_listener_that_comes_later_or_again_gets_what_waits_and_hears_of_what_is_lost() {
    let (place, registry) = (Place::new(), Registry::new());
    let forward = forward(&place.path(), 10, &registry);
    // Nobody listens: a batch is in hand, the queue is full, the rest is lost.
    (0..2000).for_each(|number| forward.sender().submit(event(&number.to_string())));
    let listener = place.open();
    place.wait("what waited is there", |place| {
        let known = count(&registry, "portcullis_event_forward_lost_total{reason=\"queue_full\"}");
        place.ids().len() as u64 + known == 2000 && known > 0
    });
    let lost = 2000 - place.ids().len() as u64;
    drop(listener);
    place.wait("it has noticed, or will by the next event", |place| !place.path().exists());
    forward.sender().submit(event("between"));
    let _listener = place.open();
    forward.sender().submit(event("after"));
    place.wait("they are there", |place| {
        place.ids().ends_with(&["between".to_owned(), "after".to_owned()])
            && place.count("portcullis_event_socket_lost_total{reason=\"queue_full\"}") == lost
    });
    assert_eq!(forward.shutdown(LONG), 0);
    assert_eq!(place.count("portcullis_event_socket_refused_total{reason=\"cut\"}"), 0);
}

#[test]
fn a_listener_that_hangs_up_unasked_costs_what_it_did_not_confirm() {
    let (place, registry) = (Place::new(), Registry::new());
    let silent = UnixListener::bind(place.path()).unwrap();
    let forward = forward(&place.path(), 100, &registry);
    forward.sender().submit(event("lost"));
    let (mut stream, _) = silent.accept().unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 16);
    drop((stream, silent));
    place.wait("it is counted", |_| {
        count(&registry, "portcullis_event_forward_lost_total{reason=\"unconfirmed\"}") == 1
    });
    // A file of a socket that nobody serves is replaced.
    let _listener = place.open();
    forward.sender().submit(event("next"));
    place.wait("the loss is told before the next event", |place| {
        place.ids() == ["next"]
            && place.count("portcullis_event_socket_lost_total{reason=\"unconfirmed\"}") == 1
    });
}

#[test]
fn a_listener_that_never_answers_holds_up_nobody() {
    let (place, registry) = (Place::new(), Registry::new());
    let _silent = UnixListener::bind(place.path()).unwrap();
    let forward = forward(&place.path(), 64, &registry);
    let sender = forward.sender();
    // Each is taken or dropped at once; the thread waits in the meantime.
    (0..200_000).for_each(|_| sender.submit(event("flood")));
    let lost = forward.shutdown(Duration::from_millis(1));
    let counted = |reason: &str| {
        count(&registry, &format!("portcullis_event_forward_lost_total{{reason=\"{reason}\"}}"))
    };
    assert!(lost > 0 && lost <= counted("shutdown"), "{}", registry.render());
    assert_eq!(counted("queue_full") + counted("shutdown") + counted("unconfirmed"), 200_000);
    assert_eq!(count(&registry, "portcullis_event_forward_queued"), 0);
}

#[test]
fn where_nobody_listens_the_end_comes_at_once_and_says_what_is_lost() {
    let (place, registry) = (Place::new(), Registry::new());
    let forward = forward(&place.path(), 100, &registry);
    (0..20).for_each(|_| forward.sender().submit(event("nobody")));
    assert_eq!(forward.shutdown(LONG), 20);
    assert_eq!(count(&registry, "portcullis_event_forward_lost_total{reason=\"shutdown\"}"), 20);
}

#[test]
fn an_upgrade_takes_the_socket_over_and_another_process_does_not() {
    let place = Place::new();
    let before = place.open();
    assert!(matches!(place.try_open(false, &[]).unwrap_err(), OpenError::InUse(_)));
    let after = place.try_open(true, &[]).unwrap();
    // The predecessor leaves the file of its successor alone.
    drop(before);
    assert!(place.path().exists());
    let forward = forward(&place.path(), 10, &Registry::new());
    forward.sender().submit(event("r"));
    place.wait("it is there", |place| place.ids() == ["r"]);
    drop(after);
    assert!(!place.path().exists());
    std::fs::write(place.path(), "a file of somebody").unwrap();
    assert!(matches!(place.try_open(true, &[]).unwrap_err(), OpenError::NoSocket(_)));
    assert_eq!(std::fs::read_to_string(place.path()).unwrap(), "a file of somebody");
}

#[test]
fn an_event_that_is_too_long_comes_without_its_long_parts() {
    let (place, registry) = (Place::new(), Registry::new());
    let _listener = place.open();
    let forward = forward(&place.path(), 10, &registry);
    let mut long = event("long");
    long.verdict.reason = "x".repeat(300 << 10);
    forward.sender().submit(long);
    place.wait("it is there", |place| place.ids() == ["long"]);
    assert!(place.taken.lock().unwrap()[0].verdict.reason.len() < 10_000);
}
