//! The turn of a request among those that are answered at a time.
//!
//! A turn is held while the program works for the request, not while it waits for the client: otherwise
//! clients that send their bodies slowly would keep all others waiting.

use std::future::Future;
use std::sync::{Arc, Mutex};

use http::Extensions;
use portcullis_admin::Activity;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::context::lock;
use crate::problem::{Kind, Problem};

/// The turn of one request.
#[derive(Clone)]
pub(crate) struct Turn {
    requests: Arc<Semaphore>,
    held: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Turn {
    /// A turn that is taken; a problem if too many requests are being answered.
    pub(crate) fn take(requests: &Arc<Semaphore>) -> Result<Turn, Problem> {
        let turn = Turn { requests: Arc::clone(requests), held: Arc::default() };
        turn.resume()?;
        Ok(turn)
    }

    fn resume(&self) -> Result<(), Problem> {
        let permit = Arc::clone(&self.requests).try_acquire_owned();
        *lock(&self.held) = Some(permit.map_err(|_| Problem::of(Kind::Busy))?);
        Ok(())
    }

    /// Others may be answered.
    pub(crate) fn leave(&self) {
        lock(&self.held).take();
    }
}

/// Waits for the client of a request with these extensions, and leaves the turn to others meanwhile.
pub(crate) async fn wait_for_client<T>(
    extensions: &Extensions,
    work: impl Future<Output = T>,
) -> Result<T, Problem> {
    let turn = extensions.get::<Turn>();
    let waiting = extensions.get::<Arc<Activity>>().map(Activity::wait);
    if let Some(turn) = turn {
        turn.leave();
    }
    let result = work.await;
    drop(waiting);
    turn.map_or(Ok(()), Turn::resume)?;
    Ok(result)
}
