//! A listener that keeps what it takes, and waiting without a clock in assertions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use portcullis_event::{Event, Integration, IntegrationKind, Timestamp};
use portcullis_event_socket::{Forward, Listener, OpenError, Settings};
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;
use tempfile::TempDir;

/// Longest time for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Place {
    pub folder: TempDir,
    pub registry: Arc<Registry>,
    pub taken: Arc<Mutex<Vec<Event>>>,
    pub said: Arc<Mutex<Vec<String>>>,
    /// There is room for events.
    pub room: Arc<AtomicBool>,
    /// Times that it was asked for room.
    pub looks: Arc<AtomicUsize>,
}

impl Place {
    pub fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
            registry: Registry::new(),
            taken: Arc::default(),
            said: Arc::default(),
            room: Arc::new(AtomicBool::new(true)),
            looks: Arc::default(),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("events.sock")
    }

    pub fn open(&self) -> Listener {
        self.try_open(false, &[]).unwrap()
    }

    pub fn try_open(&self, takes_over: bool, users: &[&str]) -> Result<Listener, OpenError> {
        let settings =
            Settings { path: self.path(), users: users.iter().map(|user| (*user).to_owned()).collect() };
        let (taken, said) = (Arc::clone(&self.taken), Arc::clone(&self.said));
        let on_event = Arc::new(move |event| taken.lock().unwrap().push(event));
        let say = Arc::new(move |line: &str| said.lock().unwrap().push(line.to_owned()));
        let (room, looks) = (Arc::clone(&self.room), Arc::clone(&self.looks));
        let has_room = Arc::new(move || {
            looks.fetch_add(1, Ordering::Relaxed);
            room.load(Ordering::Relaxed)
        });
        Listener::open(&settings, takes_over, &self.registry, on_event, has_room, say)
    }

    pub fn ids(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|event| event.request_id.clone()).collect()
    }

    /// The value of a metric, by the beginning of its line.
    pub fn count(&self, series: &str) -> u64 {
        count(&self.registry, series)
    }

    #[track_caller]
    pub fn wait(&self, what: &str, is_so: impl Fn(&Place) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "{what}: not in time\n{}", self.registry.render());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

pub fn count(registry: &Registry, series: &str) -> u64 {
    let text = registry.render();
    let line = text.lines().find(|line| line.starts_with(series) && !line.starts_with('#'));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

/// An event of a server with our library.
pub fn event(id: &str) -> Event {
    let mut event = Event::new(id, Timestamp::from(SystemTime::now()));
    event.site = "shop".into();
    event.integration = Some(Integration { kind: IntegrationKind::Libmodsecurity, blind_spots: vec![] });
    event
}

pub fn forward(path: &Path, events_max: usize, registry: &Registry) -> Forward {
    let limits = QueueLimits { events_max, ..QueueLimits::default() };
    Forward::start(path.to_owned(), limits, registry, Arc::new(|_: &str| {})).unwrap()
}
