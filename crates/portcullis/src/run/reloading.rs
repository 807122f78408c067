//! A reload beside the loop of the main thread, which goes on hearing signals.
//!
//! ```text
//!  loading: document, rules, files ──> committing: the proxy takes them into use ──> ended
//!      └── late ──> abandoned: whoever asked is answered; what comes of it is not taken into use
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use portcullis_admin::Reload;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// For a reload; one that takes longer is reported, and what comes of it is not taken into use.
pub const RELOAD_TIME_MAX: Duration = Duration::from_secs(60);

/// The state of a reload: either it is committed or it is abandoned.
#[derive(Debug, Default)]
pub struct Stage(AtomicU8);

const LOADING: u8 = 0;
const COMMITTING: u8 = 1;
const ABANDONED: u8 = 2;

impl Stage {
    /// What was loaded is taken into use from now on; false if nobody waits for it any more.
    pub fn commit(&self) -> bool {
        self.end(COMMITTING)
    }

    /// Nothing of it is taken into use; false if it is being done already.
    fn abandon(&self) -> bool {
        self.end(ABANDONED)
    }

    fn end(&self, as_what: u8) -> bool {
        let was = self.0.compare_exchange(LOADING, as_what, Ordering::AcqRel, Ordering::Acquire);
        was.is_ok() || was == Err(as_what)
    }
}

/// A reload on a thread of its own, which leaves a `T` when it ends.
pub struct Reloading<T> {
    ended: oneshot::Receiver<T>,
    stage: Arc<Stage>,
    /// The request to reload, while its answer is due.
    asked: Option<Reload>,
    since: Instant,
    patience: Duration,
    is_late: bool,
}

/// What became of a reload.
pub enum Step<T> {
    /// It has ended, and left this; none if its thread has panicked. The request is answered by the caller.
    Ended(Option<T>, Option<Reload>),
    /// It has not ended in time.
    Late,
}

impl<T: Send + 'static> Reloading<T> {
    /// Begins a reload, which should end within `patience`.
    pub fn begin(
        asked: Option<Reload>,
        patience: Duration,
        work: impl FnOnce(&Stage) -> T + Send + 'static,
    ) -> io::Result<Reloading<T>> {
        let stage = Arc::new(Stage::default());
        let shared = Arc::clone(&stage);
        let ended = beside("reload", move || work(&shared))?;
        Ok(Reloading { ended, stage, asked, since: Instant::now(), patience, is_late: false })
    }

    /// Waits for its next step; for ever if there is no reload.
    pub async fn next(reloading: &mut Option<Reloading<T>>) -> Step<T> {
        let Some(reload) = reloading else { return std::future::pending().await };
        let late = reload.since + reload.patience;
        let ended = tokio::select! {
            ended = &mut reload.ended => ended.ok(),
            () = sleep_until(late), if !reload.is_late => {
                reload.is_late = true;
                return Step::Late;
            }
        };
        let asked = reload.asked.take();
        *reloading = None;
        Step::Ended(ended, asked)
    }

    /// True if it has not ended in time.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// Cancels it, and answers the caller; false if it is being taken into use
    /// already.
    pub fn abandon(&mut self) -> bool {
        let abandoned = self.stage.abandon();
        if abandoned && let Some(asked) = self.asked.take() {
            asked.answer(Err(self.why_not()));
        }
        abandoned
    }

    /// The reason why no other reload can begin, in words.
    pub fn why_not(&self) -> String {
        format!(
            "the reload that began {} s ago has not ended: a file or a server that the settings name may not \
             answer; the old settings stay in use",
            self.since.elapsed().as_secs()
        )
    }
}

/// Does `work` on a thread that nobody has to wait for: at the end of the process it just ends.
pub fn beside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<oneshot::Receiver<T>> {
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let _ = sender.send(work());
    };
    thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const NEVER: Duration = Duration::from_secs(600);

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_reload_ends_and_leaves_its_result() {
        run(async {
            let mut reloading = Some(Reloading::begin(None, NEVER, |stage| stage.commit()).unwrap());
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Ended(Some(true), None)));
            assert!(reloading.is_none());
        });
    }

    /// One that hangs is late once, then abandoned; when it ends after all, it may not commit.
    #[test]
    fn a_reload_that_hangs_is_abandoned() {
        run(async {
            let (release, held) = mpsc::channel::<()>();
            let work = move |stage: &Stage| {
                let _ = held.recv();
                stage.commit()
            };
            let mut reloading = Some(Reloading::begin(None, SOON, work).unwrap());
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Late));
            let late = reloading.as_mut().unwrap();
            assert!(late.is_late() && late.abandon() && late.why_not().contains("has not ended"));
            drop(release);
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Ended(Some(false), None)));
        });
    }

    /// What is being taken into use is not abandoned any more.
    #[test]
    fn a_reload_that_commits_is_not_abandoned() {
        run(async {
            let (release, held) = mpsc::channel::<()>();
            let work = move |stage: &Stage| {
                let committed = stage.commit();
                let _ = held.recv();
                committed
            };
            let mut reloading = Some(Reloading::begin(None, SOON, work).unwrap());
            while reloading.as_ref().unwrap().stage.0.load(Ordering::Acquire) != COMMITTING {
                thread::yield_now();
            }
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Late));
            assert!(!reloading.as_mut().unwrap().abandon());
            drop(release);
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Ended(Some(true), None)));
        });
    }

    #[test]
    fn a_reload_that_panics_ends() {
        run(async {
            let work = |_: &Stage| -> bool { panic!("as a test") };
            let mut reloading = Some(Reloading::begin(None, NEVER, work).unwrap());
            assert!(matches!(Reloading::next(&mut reloading).await, Step::Ended(None, None)));
        });
    }
}
