//! What one site has learned of its fields: here, from other nodes and from who teaches it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use portcullis_api::fields::{DecidedSession, SessionError, SessionOrder, Teacher, TeachingSession};
use portcullis_config::Unusual;
use portcullis_learn::{Beyond, Key, Knowledge, Limits, OpeningState, Order, OrderError, Site, Store};
use portcullis_metrics::{Counter, Gauge, Registry, catalogue};

use crate::events::stored::now;
use crate::learned_files as files;
use crate::run::kept::{Content, Kept, Tended};
use crate::run::teaching::Teaching;

const LEARNED: Content = Content { work: "learning", title: "what was learned", file: files::file };
/// Nodes that are listened to: those that have told something last.
pub const NODES_MAX: usize = 16;
/// A node that has told nothing for so long is not listened to any more.
pub const KEPT: Duration = Duration::from_secs(30 * 86_400);

/// One site.
pub struct Learner {
    name: String,
    site: Arc<Site>,
    /// What was learned here.
    store: Store,
    /// What an operator teaches by hand. It ends with the process.
    teaching: Teaching,
    /// What other nodes have learned, those that told last behind the others.
    peers: Vec<(String, Store)>,
    /// All of it, if there are others.
    together: Option<Store>,
    /// Rises with what was learned here.
    state: u64,
    /// What happens to unusual values.
    unusual_values: Unusual,
    kept: Kept,
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

impl Tended for Learner {
    const THREAD: &str = "learn";
    const WITHOUT: &str = "fields are not learned";

    /// Learns what waits; writes what is new, if it is time or the last one.
    fn turn(&mut self, is_last: bool) {
        self.teaching.tend(now());
        let batch = self.site.take();
        self.dropped.add(batch.dropped);
        let has_learned = !batch.is_empty();
        self.store.learn(&batch);
        let (is_told, is_decided) = (self.take_over(), self.decide());
        if self.store.advance(files::today()) || is_told || is_decided || has_learned {
            self.kept.is_new = true;
            self.state += 1;
            self.publish();
        }
        let unusual = self.site.unusual();
        self.unusual.add(unusual - self.counted.unusual);
        self.counted.unusual = unusual;
        // Who has decided something looks at the list next.
        if self.kept.is_new && (is_last || is_decided || self.kept.is_due()) {
            self.write();
        }
    }
}

impl Learner {
    /// With what the data folder has kept of it.
    pub fn open(name: &str, data: Option<PathBuf>, limits: Limits, registry: &Registry) -> Learner {
        let (kept, store) = Kept::open(&LEARNED, name, data, |text| Store::from_text(text, limits));
        let store = store.unwrap_or_else(|| Store::new(limits));
        let counted = Counted { beyond: store.beyond(), unusual: 0 };
        let gauge = |state| registry.gauge(&catalogue::LEARNED_FIELDS, &[name, state]);
        let site = Arc::<Site>::default();
        let mut learner = Learner {
            name: name.to_owned(),
            teaching: Teaching::new(name, Arc::clone(&site), registry),
            site,
            state: 0,
            store,
            peers: Vec::new(),
            together: None,
            unusual_values: Unusual::default(),
            kept,
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
        learner.state = u64::from(learner.store.counts().0 > 0);
        learner.publish();
        learner
    }

    /// Takes over settings that a reload may have changed.
    pub fn set(&mut self, limits: Limits, unusual: Unusual, has_trusted: bool) {
        self.store.set_limits(limits);
        self.unusual_values = unusual;
        self.teaching.has_trusted = has_trusted;
    }

    /// What the workers share of it.
    pub fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site)
    }

    /// What happens to unusual values.
    pub fn unusual_values(&self) -> Unusual {
        self.unusual_values
    }

    /// Carries out what an operator has decided, and keeps it; returns why it is not kept, if it is not.
    pub fn order(&mut self, key: &Key, order: Order) -> Result<Option<String>, OrderError> {
        self.store.order(key, order)?;
        Ok(self.keep_decision())
    }

    /// Decides about a kind of finding that a field carries, as [`order`](Self::order) does about fields.
    pub fn decide_opening(&mut self, id: &str, state: OpeningState) -> Option<String> {
        match self.decide_kind(id, state) {
            true => self.keep_decision(),
            false => None,
        }
    }

    /// Has a kind in a field be in this state, also if other nodes alone have seen it. False if nobody knows
    /// it, or if it already is so.
    fn decide_kind(&mut self, id: &str, state: OpeningState) -> bool {
        let today = files::today();
        if self.store.decide(id, state, today) {
            return true;
        }
        let mut known = self.known().openings();
        let is_of_others = known.any(|(called, .., opening)| called == id && opening.state != state);
        drop(known);
        if is_of_others {
            self.store.decide_for_others(id, state, today);
        }
        is_of_others
    }

    /// Has a decision count and writes it; why it is not kept, if it is not.
    fn keep_decision(&mut self) -> Option<String> {
        self.state += 1;
        self.publish();
        self.kept.is_new = true;
        self.write();
        match self.kept.folder() {
            None => Some("no file of the data folder is written for this site".to_owned()),
            Some(folder) if self.kept.is_new => Some(format!("{folder} cannot be written")),
            Some(_) => None,
        }
    }

    /// The session in which an operator teaches the site, if there is one.
    pub fn session(&mut self) -> Option<TeachingSession> {
        let known = self.together.as_ref().unwrap_or(&self.store);
        self.teaching.session(known)
    }

    /// Begins a session.
    pub fn start_session(
        &mut self,
        teacher: Teacher,
        seconds: u64,
        by: &str,
    ) -> Result<TeachingSession, SessionError> {
        let known = self.together.as_ref().unwrap_or(&self.store);
        self.teaching.start(known, teacher, seconds, by)
    }

    /// Ends the session, or decides about what it has learned, which was shown with so many requests.
    pub fn order_session(
        &mut self,
        order: SessionOrder,
        requests: Option<u64>,
    ) -> Result<DecidedSession, SessionError> {
        let known = self.together.as_ref().unwrap_or(&self.store);
        let (session, accepted) = self.teaching.order(known, order, requests)?;
        let not_kept = accepted.and_then(|taught| {
            self.store.confirm(&taught, files::today());
            self.keep_decision()
        });
        Ok(DecidedSession { session, not_kept })
    }

    /// What is known, here and of other nodes.
    pub fn known(&self) -> &Store {
        self.together.as_ref().unwrap_or(&self.store)
    }

    /// The limits of what is learned.
    pub fn limits(&self) -> &Limits {
        self.store.limits()
    }

    /// A number that changes with what was learned here; 0 while that is nothing.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// What was learned here, as text.
    pub fn own_text(&self) -> String {
        self.store.to_text()
    }

    /// Takes over what another node has learned, in place of what it had before, and keeps it for the next
    /// start; `text` is the same as text.
    pub fn told_by(&mut self, node: &str, store: Store, text: &[u8]) {
        if self.store.take_decisions(&store, files::today()) {
            self.kept.is_new = true;
            self.state += 1;
        }
        self.peers.retain(|(known, _)| known != node);
        self.peers.push((node.to_owned(), store));
        let over = self.peers.len().saturating_sub(NODES_MAX);
        let dropped: Vec<String> = self.peers.drain(..over).map(|(node, _)| node).collect();
        self.publish();
        let Some(data) = &self.kept.data else { return };
        let file = |node: &str| files::peer(data, &self.name, node);
        let written = files::write(&file(node), &String::from_utf8_lossy(text));
        // Gone is gone.
        dropped.iter().for_each(|node| drop(std::fs::remove_file(file(node))));
        if let Err(error) = written {
            self.kept.report(&format!("what node {node} has learned is not kept: {error}"));
        }
    }

    /// Takes over what other nodes had told before the start.
    pub fn remember_peers(&mut self) {
        let Some(data) = self.kept.data.clone() else { return };
        for (node, path, age) in files::peers(&data, &self.name) {
            if age >= KEPT {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            let text = files::read(&path).map_err(|error| error.to_string());
            let store = text.and_then(|text| {
                Store::from_text(&text.unwrap_or_default(), *self.store.limits())
                    .map_err(|error| error.to_string())
            });
            match store {
                Ok(store) => self.peers.push((node, store)),
                // It is reported again.
                Err(error) => self.kept.report(&format!("{}: {error}", path.display())),
            }
        }
        self.publish();
    }

    /// Reports trouble, not more often than once an hour.
    pub fn report(&mut self, trouble: &str) {
        self.kept.report(trouble);
    }

    /// Has what is known now count.
    fn publish(&mut self) {
        self.together = (!self.peers.is_empty()).then(|| {
            let mut all = self.store.clone();
            self.peers.iter().for_each(|(_, store)| all.merge(store.clone()));
            all
        });
        self.site.publish(Knowledge::of(self.known()));
        let (fields, closed) = self.known().counts();
        self.open.set((fields - closed) as i64);
        self.closed.set(closed as i64);
        let mut kinds = [0; OpeningState::ALL.len()];
        for (.., opening) in self.known().openings() {
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
        let Some(data) = self.kept.data.clone() else { return false };
        let mut is_any = false;
        for path in files::offered(&data, &self.name) {
            let text = match files::read(&path) {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(error) => {
                    self.kept.report(&format!("{}: {error}; it is not taken over", path.display()));
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
                    Err(error) => self.kept.report(&format!(
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
                    Err(moving) => self.kept.report(&format!(
                        "{}: {error}; it is not taken over, and cannot be set aside: {moving}",
                        path.display()
                    )),
                },
            }
        }
        self.kept.is_new |= is_any;
        is_any
    }

    /// Takes over what people have decided by `portcullis learned accept` and the like.
    fn decide(&mut self) -> bool {
        let Some(data) = self.kept.data.clone() else { return false };
        let mut is_any = false;
        for path in files::decisions(&data, &self.name) {
            let read = files::read_decision(&path);
            if let Err(error) = std::fs::remove_file(&path) {
                self.kept.report(&format!(
                    "{}: it cannot be removed, so it is not carried out: {error}",
                    path.display()
                ));
                continue;
            }
            match read {
                Ok((id, state)) => match self.decide_kind(&id, state) {
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
        self.kept.write(|| self.store.to_text());
    }
}

#[cfg(test)]
mod tests {
    use portcullis_learn::{
        FieldPlace, Fields, KindIn, KindNews, NETWORK_SHARE, REQUESTS_MAX, Source, Standing,
    };

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
        assert!(learner.kept.data.is_none());
        learner.kept.data = Some(data.path().to_owned());
        assert!(!learner.take_over() && import.is_dir() && kept.is_dir());
        std::fs::remove_dir(&import).expect("no import");
        std::fs::write(&import, Store::new(Limits::default()).to_text()).expect("an import");
        assert!(learner.take_over() && !import.exists() && !learner.take_over());
    }

    /// Each node alone knows too little. What a node tells again takes the place of what it told before, and
    /// is not handed on as if it were learned here.
    #[test]
    fn what_other_nodes_tell() {
        let learned = |first: u32| {
            let (site, mut store) = (Site::default(), Store::new(Limits::default()));
            for number in 0..200 {
                let mut fields = Fields::default();
                fields.note(FieldPlace::Query, b"id", number.to_string().as_bytes());
                let source = Source { network: first + number % 20, day: number % 8, ..Source::default() };
                site.observe(source, b"GET", b"/item", &fields);
            }
            store.learn(&site.take());
            store
        };
        let mut learner = Learner::open("s", None, Limits::default(), &Registry::new());
        learner.store = learned(0);
        learner.publish();
        assert_eq!(learner.known().counts(), (1, 0));
        let own = learner.own_text();
        for _ in 0..3 {
            learner.told_by("a", learned(100), b"");
        }
        let (_, profile) = learner.known().fields().next().expect("a field");
        assert_eq!((profile.all.values, profile.closed.is_some()), (400, true));
        // About forty: they are estimated.
        assert!((34..=46).contains(&profile.all.networks.count()), "{}", profile.evidence());
        assert_eq!(learner.own_text(), own);
        let names: Vec<String> = (0..NODES_MAX).map(|node| format!("n{node}")).collect();
        for node in &names {
            learner.told_by(node, Store::new(Limits::default()), b"");
        }
        assert_eq!(learner.peers.iter().map(|(node, _)| node.clone()).collect::<Vec<_>>(), names);
    }

    /// What other nodes have told is known after a restart, before they tell it again; what one has told too
    /// long ago, or is damaged, is not.
    #[test]
    fn what_was_told_outlasts_a_restart() {
        let data = tempfile::tempdir().expect("a folder");
        let open = || Learner::open("a.b", Some(data.path().to_owned()), Limits::default(), &Registry::new());
        let of_node = |name: &str| {
            let (site, mut store) = (Site::default(), Store::new(Limits::default()));
            let mut fields = Fields::default();
            fields.note(FieldPlace::Query, name.as_bytes(), b"1");
            site.observe(Source { network: 1, day: 1, ..Source::default() }, b"GET", b"/", &fields);
            store.learn(&site.take());
            store
        };
        let mut learner = open();
        for node in ["0123456789abcdef", "00000000000000aa"] {
            let store = of_node(node);
            let text = store.to_text();
            learner.told_by(node, store, text.as_bytes());
        }
        let mut again = open();
        assert_eq!(again.known().counts().0, 0, "nothing is shared");
        again.remember_peers();
        assert_eq!(again.known().counts().0, 2);
        assert_eq!(again.own_text(), Store::new(Limits::default()).to_text(), "none of it is its own");
        let file = |node| files::peer(data.path(), "a.b", node);
        std::fs::write(file("0123456789abcdef"), "{").expect("damage");
        let old = std::fs::File::options().write(true).open(file("00000000000000aa")).expect("a file");
        old.set_modified(std::time::SystemTime::now() - KEPT).expect("a time");
        let mut later = open();
        later.remember_peers();
        assert_eq!((later.known().counts().0, file("00000000000000aa").exists()), (0, false));
    }

    /// A person decides at a node that has not seen the field; it holds there, and at the node that has.
    #[test]
    fn decisions_about_what_others_have_seen() {
        let day = files::today();
        let (site, mut seen) = (Site::default(), Store::new(Limits::default()));
        let found = [KindIn { place: FieldPlace::Query, name: b"q", kind: "sqli.union-select" }];
        let source = Source { network: 1, session: None, day, standing: Standing::Trusted };
        site.observe_kinds(source, b"GET", b"/", &found, KindNews::Carried);
        seen.learn(&site.take());
        let id = seen.openings().next().expect("a kind").0;
        let state = |store: &Store| store.openings().next().map(|(.., opening)| opening.state);
        let mut here = Learner::open("s", None, Limits::default(), &Registry::new());
        assert!(!here.decide_kind(&id, OpeningState::Live), "nobody knows it");
        here.told_by("a", seen.clone(), b"");
        assert!(here.decide_kind(&id, OpeningState::Live) && !here.decide_kind("1", OpeningState::Live));
        here.publish();
        assert_eq!(state(here.known()), Some(OpeningState::Live));
        // The node that has seen it.
        let mut there = Learner::open("s", None, Limits::default(), &Registry::new());
        there.store = seen;
        let before = there.state();
        there.told_by("b", here.store.clone(), b"");
        assert_eq!((state(&there.store), there.state()), (Some(OpeningState::Live), before + 1));
        there.told_by("b", here.store.clone(), b"");
        assert_eq!(there.state(), before + 1, "nothing new");
        // The later decision counts on both.
        assert!(there.decide_kind(&id, OpeningState::Dismissed));
        here.told_by("a", there.store.clone(), b"");
        assert_eq!(state(here.known()), Some(OpeningState::Dismissed));
        assert!(here.decide_kind(&id, OpeningState::Live));
        here.publish();
        assert_eq!(state(here.known()), Some(OpeningState::Live));
        there.told_by("b", here.store.clone(), b"");
        assert_eq!(state(&there.store), Some(OpeningState::Live));
        // It appears here, too.
        site.observe_kinds(source, b"GET", b"/", &found, KindNews::Carried);
        here.store.learn(&site.take());
        assert_eq!(state(&here.store), Some(OpeningState::Live));
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
