//! Learning what the fields of sites carry: a thread that takes over what the workers have seen, tells them
//! what is known, and keeps it in the data folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portcullis_config::{LearnedFields, OpenedKinds, Unusual};
use portcullis_inspect::{Opens, SiteFields, TrustedSources, UnusualAction};
use portcullis_learn::{
    Beyond, Key, Knowledge, Limits, OpeningState, Order, OrderError, Site, Store, Thresholds,
};
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use crate::learned_files as files;
use crate::run::fields::Desk;

/// Between two looks at what the workers have seen.
const TICK: Duration = Duration::from_secs(2);
/// Between two times that what was learned is written.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Between two reports of the same trouble.
const TELL_EVERY: Duration = Duration::from_secs(3_600);

/// All sites that learn. Kept over reloads.
pub struct Learning {
    data: Option<PathBuf>,
    registry: Arc<Registry>,
    sites: Arc<Mutex<BTreeMap<String, Learner>>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Learning {
    /// None learns yet.
    pub fn new(data: Option<PathBuf>, registry: Arc<Registry>) -> Learning {
        Learning { data, registry, sites: Arc::default(), thread: None }
    }

    /// What is learned, for the admin API.
    pub fn desk(&self) -> Desk {
        Desk(Arc::clone(&self.sites))
    }

    /// The fields of a site that learns, with what was kept of them.
    pub fn fields_of(&mut self, settings: &LearnedFields) -> SiteFields {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let learner = sites.entry(settings.site.clone()).or_insert_with(|| {
            Learner::open(&settings.site, self.data.clone(), limits(settings), &self.registry)
        });
        learner.store.set_limits(limits(settings));
        learner.unusual_values = settings.unusual;
        let site = Arc::clone(&learner.site);
        drop(sites);
        if self.thread.is_none() {
            let (stop, stopped) = channel();
            let sites = Arc::clone(&self.sites);
            let thread =
                std::thread::Builder::new().name("learn".to_owned()).spawn(move || work(&sites, &stopped));
            match thread {
                Ok(thread) => self.thread = Some((stop, thread)),
                Err(error) => {
                    eprintln!("portcullis: fields are not learned: no thread could be started: {error}")
                }
            }
        }
        SiteFields {
            site,
            unusual: match settings.unusual {
                Unusual::Off => UnusualAction::Off,
                Unusual::Detect => UnusualAction::Detect,
                Unusual::Block => UnusualAction::Block,
            },
            learns: true,
            opens: match settings.open {
                OpenedKinds::None => Opens::Nothing,
                OpenedKinds::Safe => Opens::Safe,
                OpenedKinds::All => Opens::All,
            },
            trusted: Arc::new(TrustedSources {
                networks: settings
                    .trusted_networks
                    .iter()
                    .map(|network| (network.address(), network.prefix()))
                    .collect(),
                answer: settings.trusted_answer.clone(),
                vouches_for_all: false,
            }),
        }
    }
}

impl Drop for Learning {
    /// Writes what was learned last.
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn limits(settings: &LearnedFields) -> Limits {
    let thresholds = Thresholds { networks: settings.networks, days: settings.days, ..Thresholds::default() };
    Limits { fields_max: settings.max, thresholds, auto: settings.auto }
}

fn work(sites: &Mutex<BTreeMap<String, Learner>>, stopped: &Receiver<()>) {
    loop {
        let ends = stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
        let mut sites = sites.lock().unwrap_or_else(PoisonError::into_inner);
        for learner in sites.values_mut() {
            learner.turn(ends);
        }
        if ends {
            return;
        }
    }
}

/// One site.
pub struct Learner {
    name: String,
    site: Arc<Site>,
    pub(super) store: Store,
    /// What happens to unusual values.
    pub(super) unusual_values: Unusual,
    data: Option<PathBuf>,
    /// Something was learned that is not written.
    is_new: bool,
    written: Instant,
    told: Option<Instant>,
    counted: Counted,
    open: Gauge,
    closed: Gauge,
    /// By state, the kinds of findings that fields carry.
    kinds: [Gauge; OpeningState::ALL.len()],
    beyond: Counter,
    dropped: Counter,
    unusual: Counter,
}

/// What the counters have had.
#[derive(Default)]
struct Counted {
    beyond: Beyond,
    unusual: u64,
}

impl Learner {
    fn open(name: &str, mut data: Option<PathBuf>, limits: Limits, registry: &Registry) -> Learner {
        let path = data.as_ref().map(|data| files::file(data, name));
        let text = path.as_ref().map(|path| files::read(path).map_err(|error| (path, error)));
        let text = text.transpose().map(Option::flatten).unwrap_or_else(|(path, error)| {
            eprintln!(
                "portcullis: site {name}: {}: {error}; learning begins anew, and nothing is written until the next \
                 start, so that the file stays as it is",
                path.display()
            );
            data = None;
            None
        });
        let store = path.as_ref().zip(text).and_then(|(path, text)| {
            Store::from_text(&text, limits)
                .inspect_err(|error| match files::set_aside(path) {
                    Ok(aside) => eprintln!(
                        "portcullis: site {name}: {}: {error}; learning begins anew, the file is {} now",
                        path.display(),
                        aside.display()
                    ),
                    Err(moving) => eprintln!(
                        "portcullis: site {name}: {}: {error}; it cannot be set aside: {moving}",
                        path.display()
                    ),
                })
                .ok()
        });
        let store = store.unwrap_or_else(|| Store::new(limits));
        let counted = Counted { beyond: store.beyond(), unusual: 0 };
        let gauge = |state| registry.gauge(&catalogue::LEARNED_FIELDS, &[name, state]);
        let mut learner = Learner {
            name: name.to_owned(),
            site: Arc::default(),
            store,
            unusual_values: Unusual::default(),
            data,
            is_new: false,
            written: Instant::now(),
            told: None,
            counted,
            open: gauge("open"),
            closed: gauge("closed"),
            kinds: OpeningState::ALL
                .map(|state| registry.gauge(&catalogue::LEARNED_KINDS, &[name, state.name()])),
            beyond: registry.counter(&catalogue::LEARNED_BEYOND_LIMIT, &[name]),
            dropped: registry.counter(&catalogue::LEARNED_DROPPED, &[name]),
            unusual: registry.counter(&catalogue::UNUSUAL_VALUES, &[name]),
        };
        learner.take_over();
        learner.publish();
        learner
    }

    /// Learns what waits; writes what is new, if it is time or the last one.
    fn turn(&mut self, is_last: bool) {
        let batch = self.site.take();
        self.dropped.add(batch.dropped);
        let has_learned = !batch.is_empty();
        self.store.learn(&batch);
        let (is_told, is_decided) = (self.take_over(), self.decide());
        if self.store.advance(files::today()) || is_told || is_decided || has_learned {
            self.is_new = true;
            self.publish();
        }
        let unusual = self.site.unusual();
        self.unusual.add(unusual - self.counted.unusual);
        self.counted.unusual = unusual;
        // Who has decided something looks at the list next.
        if self.is_new && (is_last || is_decided || self.written.elapsed() >= WRITE_EVERY) {
            self.write();
        }
    }

    /// Carries out what an operator has decided, and keeps it; returns why it is not kept, if it is not.
    pub(super) fn order(&mut self, key: &Key, order: Order) -> Result<Option<String>, OrderError> {
        self.store.order(key, order)?;
        Ok(self.keep_decision())
    }

    /// Decides about a kind of finding that a field carries, as [`order`](Self::order) does about fields.
    pub(super) fn decide_opening(&mut self, id: &str, state: OpeningState) -> Option<String> {
        match self.store.decide(id, state, files::today()) {
            true => self.keep_decision(),
            false => None,
        }
    }

    /// Has a decision count and writes it; why it is not kept, if it is not.
    fn keep_decision(&mut self) -> Option<String> {
        self.publish();
        self.is_new = true;
        self.write();
        match &self.data {
            None => Some("no file of the data folder is written for this site".to_owned()),
            Some(data) if self.is_new => Some(format!("{} cannot be written", files::folder(data).display())),
            Some(_) => None,
        }
    }

    fn publish(&mut self) {
        self.site.publish(Knowledge::of(&self.store));
        let (fields, closed) = self.store.counts();
        self.open.set((fields - closed) as i64);
        self.closed.set(closed as i64);
        let mut kinds = [0; OpeningState::ALL.len()];
        for (.., opening) in self.store.openings() {
            let number = OpeningState::ALL.iter().position(|state| *state == opening.state);
            kinds[number.unwrap_or_default()] += 1;
        }
        self.kinds.iter().zip(kinds).for_each(|(gauge, count)| gauge.set(count));
        let beyond = self.store.beyond();
        let before = std::mem::replace(&mut self.counted.beyond, beyond);
        let values = |beyond: Beyond| beyond.fields.saturating_add(beyond.long);
        self.beyond.add(values(beyond).saturating_sub(values(before)));
    }

    /// Takes over what `portcullis learn` and `portcullis learned import` offer.
    fn take_over(&mut self) -> bool {
        let Some(data) = &self.data else { return false };
        let mut is_any = false;
        for path in files::offered(data, &self.name) {
            let text = match files::read(&path) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(error) => {
                    self.report(&format!("{}: {error}; it is not taken over", path.display()));
                    continue;
                }
            };
            match Store::from_text(&text, *self.store.limits()) {
                // Removed first: what stays there would be added again at each look.
                Ok(other) => match std::fs::remove_file(&path) {
                    Ok(()) => {
                        self.store.merge(other);
                        is_any = true;
                    }
                    Err(error) => self.report(&format!(
                        "{}: it cannot be removed, so it is not taken over: {error}",
                        path.display()
                    )),
                },
                Err(error) => match files::set_aside(&path) {
                    Ok(aside) => eprintln!(
                        "portcullis: site {}: {}: {error}; it is not taken over, and is {} now",
                        self.name,
                        path.display(),
                        aside.display()
                    ),
                    Err(moving) => self.report(&format!(
                        "{}: {error}; it is not taken over, and cannot be set aside: {moving}",
                        path.display()
                    )),
                },
            }
        }
        self.is_new |= is_any;
        is_any
    }

    /// Takes over what people have decided by `portcullis learned accept` and the like.
    fn decide(&mut self) -> bool {
        let Some(data) = &self.data else { return false };
        let mut is_any = false;
        for path in files::decisions(data, &self.name) {
            let read = files::read_decision(&path);
            if let Err(error) = std::fs::remove_file(&path) {
                self.report(&format!(
                    "{}: it cannot be removed, so it is not carried out: {error}",
                    path.display()
                ));
                continue;
            }
            match read {
                Ok((id, state)) => match self.store.decide(&id, state, files::today()) {
                    true => is_any = true,
                    false => eprintln!(
                        "portcullis: site {}: {id} is {} already, or not known any more",
                        self.name,
                        state.name()
                    ),
                },
                Err(error) => eprintln!(
                    "portcullis: site {}: {}: {error}; it is not carried out",
                    self.name,
                    path.display()
                ),
            }
        }
        is_any
    }

    fn write(&mut self) {
        let Some(data) = &self.data else { return };
        self.written = Instant::now();
        match files::write(&files::file(data, &self.name), &self.store.to_text()) {
            Ok(()) => (self.is_new, self.told) = (false, None),
            Err(error) => {
                let folder = files::folder(data).display().to_string();
                self.report(&format!("what was learned cannot be written to {folder}: {error}"));
            }
        }
    }

    /// Reports trouble, not more often than [`TELL_EVERY`].
    fn report(&mut self, trouble: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            eprintln!("portcullis: site {}: {trouble}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_learn::{FieldPlace, Fields, NETWORK_SHARE, REQUESTS_MAX, Source};

    use super::*;

    /// An unreadable file is not written over, and an import that cannot be taken away is not added again and
    /// again.
    #[test]
    fn files_that_cannot_be_read_or_removed() {
        let data = tempfile::tempdir().expect("a folder");
        let kept = files::file(data.path(), "s");
        std::fs::create_dir_all(&kept).expect("a folder in place of the file");
        let import = kept.with_file_name("s.1-1.import");
        std::fs::create_dir_all(&import).expect("a folder in place of the import");
        let mut learner =
            Learner::open("s", Some(data.path().to_owned()), Limits::default(), &Registry::new());
        assert!(learner.data.is_none());
        learner.data = Some(data.path().to_owned());
        assert!(!learner.take_over() && import.is_dir() && kept.is_dir());
        std::fs::remove_dir(&import).expect("no import");
        std::fs::write(&import, Store::new(Limits::default()).to_text()).expect("an import");
        assert!(learner.take_over() && !import.exists() && !learner.take_over());
    }

    /// What does not fit in is counted.
    #[test]
    fn counters() {
        let registry = Registry::new();
        let mut learner = Learner::open("s", None, Limits::default(), &registry);
        let mut fields = Fields::default();
        fields.note(FieldPlace::Query, &[b'n'; 200], b"1");
        fields.note(FieldPlace::Query, b"id", b"1");
        let source = Source { network: 1, day: 1, ..Source::default() };
        let most = REQUESTS_MAX / NETWORK_SHARE;
        for _ in 0..most + 7 {
            learner.site.observe(source, b"GET", b"/", &fields);
        }
        learner.turn(false);
        let text = registry.render();
        for line in [
            "portcullis_learned_fields{site=\"s\",state=\"open\"} 1".to_owned(),
            format!("portcullis_learned_beyond_limit_total{{site=\"s\"}} {most}"),
            "portcullis_learned_dropped_requests_total{site=\"s\"} 7".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
    }
}
