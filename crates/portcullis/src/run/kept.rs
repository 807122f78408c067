//! What is known of sites, kept for the next process: a file of each in the data folder, and the thread that
//! looks after all of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::learned_files;

/// Between two looks at what has come.
const TICK: Duration = Duration::from_secs(2);
/// Between two times that a file is written.
pub const WRITE_EVERY: Duration = Duration::from_secs(60);
/// Between two reports of the same trouble.
const TELL_EVERY: Duration = Duration::from_secs(3_600);

/// A thread that looks every two seconds. Dropped, it looks a last time and ends.
pub struct Ticker(Option<(Sender<()>, JoinHandle<()>)>);

impl Ticker {
    /// `look` gets whether it is the last time.
    pub fn start(name: &str, mut look: impl FnMut(bool) + Send + 'static) -> io::Result<Ticker> {
        let (stop, stopped) = channel::<()>();
        let work = move || {
            loop {
                let is_last = stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout);
                look(is_last);
                if is_last {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Ticker(Some((stop, thread))))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// One site of those that are looked after.
pub trait Tended: Send + 'static {
    /// The name of the thread.
    const THREAD: &str;
    /// What there is without it.
    const WITHOUT: &str;

    /// Takes in what has come, and writes what is new if it is time or the last time.
    fn turn(&mut self, is_last: bool);
}

/// Sites that are looked after, by their names. Kept over reloads.
pub struct Sites<S> {
    all: Arc<Mutex<BTreeMap<String, S>>>,
    ticker: Option<Ticker>,
}

impl<S: Tended> Sites<S> {
    /// None yet.
    pub fn new() -> Sites<S> {
        Sites { all: Arc::default(), ticker: None }
    }

    /// What other threads see of them.
    pub fn shared(&self) -> Arc<Mutex<BTreeMap<String, S>>> {
        Arc::clone(&self.all)
    }

    /// Has something done with a site, which is opened if it is new.
    pub fn with<R>(&mut self, name: &str, open: impl FnOnce() -> S, work: impl FnOnce(&mut S) -> R) -> R {
        let answer = work(lock(&self.all).entry(name.to_owned()).or_insert_with(open));
        if self.ticker.is_none() {
            let all = Arc::clone(&self.all);
            let turn = move |is_last| lock(&all).values_mut().for_each(|site| site.turn(is_last));
            match Ticker::start(S::THREAD, turn) {
                Ok(ticker) => self.ticker = Some(ticker),
                Err(error) => eprintln!("portcullis: {}: no thread could be started: {error}", S::WITHOUT),
            }
        }
        answer
    }
}

/// What is guarded, for this thread alone.
pub fn lock<T>(all: &Mutex<T>) -> MutexGuard<'_, T> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a file has.
pub struct Content {
    /// What goes on, or begins anew.
    pub work: &'static str,
    /// What is written.
    pub title: &'static str,
    /// The file of a site in a data folder.
    pub file: fn(&Path, &str) -> PathBuf,
}

/// The file of one site.
pub struct Kept {
    site: String,
    content: &'static Content,
    /// The data folder; none: nothing is kept.
    pub data: Option<PathBuf>,
    /// There is something that is not written.
    pub is_new: bool,
    written: Instant,
    told: Option<Instant>,
}

impl Kept {
    /// The file in a data folder, and what is in it. A damaged one is set aside; one that cannot be read
    /// stays as it is.
    pub fn open<T, E: Display>(
        content: &'static Content,
        site: &str,
        data: Option<PathBuf>,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> (Kept, Option<T>) {
        let (written, site) = (Instant::now(), site.to_owned());
        let mut kept = Kept { site, content, data, is_new: false, written, told: None };
        let Some(path) = kept.path() else { return (kept, None) };
        let Content { work, .. } = content;
        let (site, shown) = (&kept.site, path.display());
        let text = match learned_files::read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => return (kept, None),
            Err(error) => {
                eprintln!(
                    "portcullis: site {site}: {shown}: {error}; {work} begins anew, and nothing is written until the next \
                     start, so that the file stays as it is"
                );
                kept.data = None;
                return (kept, None);
            }
        };
        let known = parse(&text).inspect_err(|error| match learned_files::set_aside(&path) {
            Ok(aside) => eprintln!(
                "portcullis: site {site}: {shown}: {error}; {work} begins anew, the file is {} now",
                aside.display()
            ),
            Err(moving) => {
                eprintln!("portcullis: site {site}: {shown}: {error}; it cannot be set aside: {moving}")
            }
        });
        let known = known.ok();
        (kept, known)
    }

    fn path(&self) -> Option<PathBuf> {
        self.data.as_ref().map(|data| (self.content.file)(data, &self.site))
    }

    /// Its folder, as it is shown.
    pub fn folder(&self) -> Option<String> {
        self.path().and_then(|path| path.parent().map(|folder| folder.display().to_string()))
    }

    /// True if it is time to write again.
    pub fn is_due(&self) -> bool {
        self.written.elapsed() >= WRITE_EVERY
    }

    /// Writes what there is now, in one step.
    pub fn write(&mut self, text: impl FnOnce() -> String) {
        self.written = Instant::now();
        let Some(path) = self.path() else { return };
        match learned_files::write(&path, &text()) {
            Ok(()) => (self.is_new, self.told) = (false, None),
            Err(error) => {
                let folder = self.folder().unwrap_or_default();
                self.report(&format!("{} cannot be written to {folder}: {error}", self.content.title));
            }
        }
    }

    /// Reports trouble, not more often than once an hour.
    pub fn report(&mut self, trouble: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            eprintln!("portcullis: site {}: {trouble}", self.site);
        }
    }
}
