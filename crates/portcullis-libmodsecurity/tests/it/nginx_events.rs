//! Events of an unmodified nginx with our library, on their way to the process that stores them.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use portcullis_event::{BlindSpot, Event, IntegrationKind};
use portcullis_event_socket::{Listener, Settings};
use portcullis_metrics::Registry;

use crate::nginx::Nginx;

/// Rules beside those of [`Nginx`].
fn rules(folder: &Path) -> String {
    format!("SecEventSocket {}/events.sock\nSecWebAppId shop\n", folder.display())
}

/// What takes events in place of a Portcullis.
struct Receiver {
    taken: Arc<Mutex<Vec<Event>>>,
    registry: Arc<Registry>,
    _listener: Listener,
}

impl Receiver {
    fn open(nginx: &Nginx) -> Receiver {
        let (taken, registry) = (Arc::<Mutex<Vec<Event>>>::default(), Registry::new());
        let settings = Settings { path: nginx.folder.path().join("events.sock"), users: Vec::new() };
        let keep = Arc::clone(&taken);
        let on_event = Arc::new(move |event| keep.lock().unwrap().push(event));
        let say = Arc::new(|line: &str| eprintln!("{line}"));
        let listener = Listener::open(&settings, false, &registry, on_event, Arc::new(|| true), say).unwrap();
        Receiver { taken, registry, _listener: listener }
    }

    fn targets(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|event| event.request.target.clone()).collect()
    }

    fn has(&self, series: &str) -> bool {
        self.registry.render().lines().any(|line| line == series)
    }
}

#[test]
fn events_of_workers_arrive_over_reloads_and_to_the_last_one() {
    let Some(nginx) = Nginx::start_with("events of nginx with our libmodsecurity", rules) else { return };
    // Nobody listens yet: requests are answered all the same, and the event waits.
    assert_eq!((nginx.get("/?q=fine"), nginx.get("/?q=evil&n=0&password=hunter2")), (200, 403));
    let receiver = Receiver::open(&nginx);
    nginx.wait("the first is there", |_| receiver.targets().len() == 1);
    {
        let taken = receiver.taken.lock().unwrap();
        let event = &taken[0];
        assert_eq!(event.request.target, "/?q=evil&n=0&password=[redacted]");
        assert_eq!(
            (&*event.site, &*event.route, event.response.status),
            ("shop", "libmodsecurity", Some(403))
        );
        assert_eq!((event.matches[0].message.as_str(), event.verdict.status), ("Evil", Some(403)));
        let integration = event.integration.as_ref().unwrap();
        assert_eq!(
            (integration.kind, &integration.blind_spots[..]),
            (IntegrationKind::Libmodsecurity, &[][..])
        );
    }
    // What a server does not show is told.
    assert_eq!(nginx.status("GET /?n=1 HTTP/1.1\r\nX-Warn: yes", ""), 200);
    let form = "POST /own?n=2 HTTP/1.1\r\nX-Warn: yes\r\nContent-Type: application/x-www-form-urlencoded";
    assert_eq!(nginx.status(form, "a=evil"), 200);
    nginx.wait("they are there", |_| receiver.targets().len() == 3);
    // A request that passes makes an event if a rule logged; its spots are those of the phases left out.
    let spots: Vec<BlindSpot> = receiver.taken.lock().unwrap()[1..]
        .iter()
        .flat_map(|event| event.integration.clone().unwrap().blind_spots)
        .collect();
    assert!(spots.contains(&BlindSpot::RequestBody), "{spots:?}");

    // Each worker that a reload ends sends its last events.
    let before = receiver.targets().len();
    for reload in 0..10 {
        let workers = nginx.workers();
        assert_eq!(nginx.get(&format!("/?q=evil&reload={reload}")), 403);
        nginx.signal("HUP");
        nginx.wait("new workers", |nginx| {
            let now = nginx.workers();
            !now.is_empty() && now.iter().all(|worker| !workers.contains(worker))
        });
    }
    nginx.wait("one for each reload", |_| receiver.targets().len() == before + 10);
    assert!(!receiver.has("portcullis_event_socket_lost_total{reason=\"shutdown\"} 1"));
    // The master, which reads the rules, has no thread of ours; a worker that sends has one.
    let threads = |process: u32| fs::read_dir(format!("/proc/{process}/task")).unwrap().count();
    assert_eq!(threads(nginx.process.id()), 1);
    assert_eq!(nginx.get("/?q=evil&last"), 403);
    nginx.wait("the last is there", |_| receiver.targets().len() == before + 11);
    assert_eq!(nginx.workers().into_iter().map(threads).collect::<Vec<_>>(), [2]);
    // Signals reach the thread that waits for them: nginx ends at once when it is told to.
    nginx.signal("QUIT");
    nginx.wait("its workers are gone", |nginx| nginx.workers().is_empty());
}

#[test]
fn a_receiver_that_takes_nothing_holds_up_no_request() {
    let Some(nginx) = Nginx::start_with("nginx with a dead event socket", rules) else { return };
    let _silent = UnixListener::bind(nginx.folder.path().join("events.sock")).unwrap();
    // More than the socket and a batch hold; none waits for the time after which a receiver is given up.
    let long = "x".repeat(4000);
    for _ in 0..300 {
        assert_eq!(nginx.get(&format!("/?q=evil&{long}")), 403);
    }
    nginx.signal("QUIT");
    nginx.wait("its workers are gone", |nginx| nginx.workers().is_empty());
    nginx.wait("what is lost is told", |nginx| nginx.log().contains("could not be sent to"));
}
