//! Questions about stored events, on threads that may block, so many at a time.

use std::io;
use std::sync::Arc;

use portcullis_event_store::{EventSource, QueryError, Store};
use tokio::sync::Semaphore;

use crate::context::{Context, blocking, lock};
use crate::problem::{Kind, Problem};

/// Between two lines for the operator about a database that does not answer, in milliseconds.
const COMPLAINT_PAUSE_MS: u64 = 60_000;

/// Asks for events: the database, if there is one, otherwise the store of this process. None if there is
/// neither, or not yet.
pub(crate) async fn ask<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&dyn EventSource) -> Result<T, QueryError> + Send + 'static,
) -> Result<Option<T>, Problem> {
    match context.supplies.database.clone() {
        // Permits of its own: one that is down does not hold up questions to the store.
        Some(database) => run(context, &context.database_queries, move || work(&*database)).await,
        None => ask_store(context, |store| work(store)).await,
    }
}

/// Asks the store of this process.
pub(crate) async fn ask_store<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Store) -> Result<T, QueryError> + Send + 'static,
) -> Result<Option<T>, Problem> {
    ask_store_with(context, &context.queries, work).await
}

/// The same with a permit of these.
pub(crate) async fn ask_store_with<T: Send + 'static>(
    context: &Context,
    permits: &Arc<Semaphore>,
    work: impl FnOnce(&Store) -> Result<T, QueryError> + Send + 'static,
) -> Result<Option<T>, Problem> {
    let Some(store) = context.supplies.events.clone() else { return Ok(None) };
    run(context, permits, move || work(&store)).await
}

/// Asks the sample of requests that passed. None if there is none, or not yet.
pub(crate) async fn ask_sample<T: Send + 'static>(
    context: &Context,
    work: impl FnOnce(&Store) -> Result<T, QueryError> + Send + 'static,
) -> Result<Option<T>, Problem> {
    let Some(sample) = context.supplies.sample.clone() else { return Ok(None) };
    run(context, &context.queries, move || work(&sample)).await
}

async fn run<T: Send + 'static>(
    context: &Context,
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, QueryError> + Send + 'static,
) -> Result<Option<T>, Problem> {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.map_err(|_| Problem::of(Kind::Draining))?;
    let result = blocking(move || {
        // Held until the work ends, even if the client has gone.
        let _permit = permit;
        work()
    });
    match result.await? {
        Ok(found) => Ok(Some(found)),
        Err(QueryError::Cursor(_)) => Err(Problem::of(Kind::Cursor)),
        Err(QueryError::Folder(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error @ QueryError::Folder(_)) => {
            context.say(&format!("admin API: {error}"));
            Err(Problem::of(Kind::Internal))
        }
        Err(error @ QueryError::Unavailable(_)) => {
            // Not for the client: it may name hosts and users of the network inside.
            complain(context, &error);
            Err(Problem::of(Kind::EventsUnavailable))
        }
        Err(error @ QueryError::Late(_)) => {
            complain(context, &error);
            Err(Problem::with(Kind::EventsLate, "ask for a shorter time, such as `time >= -1h`"))
        }
    }
}

/// Tells the operator, once a minute at most: each question is counted as well.
fn complain(context: &Context, error: &QueryError) {
    let now = context.now_ms();
    let mut complained = lock(&context.database_complained_ms);
    if complained.is_none_or(|at| now.saturating_sub(at) >= COMPLAINT_PAUSE_MS) {
        *complained = Some(now);
        drop(complained);
        context.say(&format!("admin API: {error}"));
    }
}
