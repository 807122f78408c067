use portcullis_http::h1::RequestHead;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// The channel for requests to reload. The receiver of a [`Reload`] carries it out and reports the result.
pub type Reloads = mpsc::Sender<Reload>;

/// A request to reload; the sender waits for the result.
pub struct Reload {
    answer: oneshot::Sender<Result<String, String>>,
    candidate: Option<Candidate>,
}

/// A text to load in place of the document.
pub struct Candidate {
    /// The text.
    pub text: String,
    /// Puts the text into the file of the document. It is called when the settings of the text are in use; if
    /// it fails, the old ones have to be brought back.
    pub write: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

impl Reload {
    /// The text to load; none: the document as it is in its file.
    pub fn take_candidate(&mut self) -> Option<Candidate> {
        self.candidate.take()
    }

    /// Reports the result: what serves now, or why the old settings stay in use.
    pub fn answer(self, result: Result<String, String>) {
        // The requester may have left.
        let _ = self.answer.send(result);
    }
}

/// Asks for a reload and waits for its result. None if the program ends before.
pub async fn ask_to_reload(reloads: &Reloads) -> Option<Result<String, String>> {
    let (answer, answered) = oneshot::channel();
    match reloads.try_send(Reload { answer, candidate: None }) {
        Ok(()) => answered.await.ok(),
        Err(error) => refused(&error),
    }
}

/// The result of a reload for which there is no room.
fn refused(error: &TrySendError<Reload>) -> Option<Result<String, String>> {
    match error {
        TrySendError::Full(_) => Some(Err("too many reloads wait already; try again later".to_owned())),
        TrySendError::Closed(_) => None,
    }
}

/// Asks for a text to be loaded and waits for the result, on a thread that may block. None if the program
/// ends before.
pub fn ask_to_load(reloads: &Reloads, candidate: Candidate) -> Option<Result<String, String>> {
    let (answer, answered) = oneshot::channel();
    match reloads.try_send(Reload { answer, candidate: Some(candidate) }) {
        Ok(()) => answered.blocking_recv().ok(),
        Err(error) => refused(&error),
    }
}

/// The status and text for a `POST /reload`.
pub(crate) async fn reload(head: &RequestHead, reloads: Option<&Reloads>) -> (u16, String) {
    // A page of another site may send a POST, but browsers say where it comes from.
    if head.header("origin").next().is_some() || head.header("sec-fetch-site").next().is_some() {
        return (403, "requests from browsers are refused\n".to_string());
    }
    let Some(reloads) = reloads else { return (501, "there is nothing to reload\n".to_string()) };
    match ask_to_reload(reloads).await {
        Some(Ok(text)) => (200, format!("{text}\n")),
        Some(Err(text)) => (422, format!("{}\n", text.trim_end())),
        None => (503, "draining\n".to_string()),
    }
}
