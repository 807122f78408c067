//! One exchange of the application with a client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Response};
use portcullis_event::{Action, BlindSpot};
use portcullis_exchange::{Conversation, Told, Unanswered};
use portcullis_http::h1::{Limits, assemble_response};

use crate::answer::answer;

/// Bytes of a body that were forwarded without being inspected, counted by the caller that forwards them.
#[derive(Clone, Debug, Default)]
pub struct Passed(Arc<AtomicU64>);

impl Passed {
    /// Counts so many bytes more.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The reason why a request body has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The rest did not come in time: 408.
    Late,
    /// It could not be read: 400.
    Unreadable,
}

/// One exchange: request and response are shown to it in order. Dropped, it ends: the part of the request
/// that has arrived is judged, the event is reported, and it names the parts that have not come.
///
/// Methods may be called after a verdict: they have no effect then.
#[derive(Debug)]
pub struct Exchange {
    conversation: Conversation,
    passed: [Passed; 2],
    is_request_over: bool,
    has_response: bool,
    is_response_over: bool,
}

impl Exchange {
    pub(crate) fn new(conversation: Conversation) -> Exchange {
        Exchange {
            conversation,
            passed: Default::default(),
            is_request_over: false,
            has_response: false,
            is_response_over: false,
        }
    }

    /// The answer that the client is to get in place of the application's, once there is one.
    pub fn answer(&self) -> Option<Response<Vec<u8>>> {
        let block = self.conversation.block()?;
        Some(answer(block, self.conversation.request_id()))
    }

    /// True if there is such an answer.
    pub fn is_blocked(&self) -> bool {
        self.conversation.block().is_some()
    }

    /// The action so far: [`Action::Pass`] unless it is blocked.
    pub fn action(&self) -> Action {
        self.conversation.block().map_or(Action::Pass, |block| block.action)
    }

    /// The id of the exchange, as on the block page and in the event.
    pub fn request_id(&self) -> &str {
        self.conversation.request_id()
    }

    /// The findings so far.
    pub fn told(&mut self) -> Told {
        self.conversation.told()
    }

    /// True if the request body is to be shown, and held back until [`request_end`](Exchange::request_end).
    pub fn wants_request_body(&mut self) -> bool {
        !self.is_request_over && self.conversation.wants_request_body()
    }

    /// A piece of the request body, which the caller holds. False if no more of it is wanted: there is an
    /// answer, or the rest may go on without being shown. Behind the end of the request it is only counted.
    pub fn request_body(&mut self, piece: &[u8]) -> bool {
        if self.is_request_over {
            self.passed[0].add(piece.len());
            return false;
        }
        self.conversation.keep(Some(piece.len()));
        self.conversation.request_body(piece);
        !self.conversation.is_over_limit() && !self.is_blocked()
    }

    /// Fields behind the request body.
    pub fn request_trailers(&mut self, trailers: &HeaderMap) {
        let fields = trailers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        let fields: Vec<_> = fields.collect();
        self.conversation.request_trailers(fields.into_iter());
    }

    /// The rest of the request body does not come: the request is refused, and counted.
    pub fn request_broken(&mut self, why: Broken) {
        let (counted, status, text) = match why {
            Broken::Late => (Unanswered::Timeout, 408, "The request body did not come in time."),
            Broken::Unreadable => (Unanswered::Malformed, 400, "The request body could not be read."),
        };
        self.conversation.give_up(counted, status, text);
    }

    /// The end of what is shown of the request: phase 2.
    pub fn request_end(&mut self) {
        if !std::mem::replace(&mut self.is_request_over, true) {
            self.conversation.request_end(None);
        }
    }

    /// The counter for bytes of the request body that go on without being shown.
    pub fn request_passed(&self) -> Passed {
        self.passed[0].clone()
    }

    /// The head of the response: phase 3. `ended`: it has no body.
    pub fn response_head<'f>(
        &mut self,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        ended: bool,
    ) {
        self.request_end();
        self.has_response = true;
        // What was held of the request is the application's now.
        self.conversation.keep(None);
        let of_connection: [&[u8]; 4] = [b"transfer-encoding", b"connection", b"upgrade", b"keep-alive"];
        let is_of_connection =
            |name: &[u8]| of_connection.iter().any(|known| name.eq_ignore_ascii_case(known));
        let fields: Vec<_> = fields.filter(|(name, _)| !is_of_connection(name)).collect();
        match assemble_response(status, &fields, ended, &Limits::default()) {
            Ok(head) => self.conversation.response_head(&head),
            Err(_) => self.conversation.reject(502, "The application's answer is not valid."),
        }
    }

    /// True if the body of the response is to be shown, and held back until
    /// [`response_end`](Exchange::response_end). To be asked once its head has been shown.
    pub fn wants_response_body(&mut self) -> bool {
        self.has_response && !self.is_response_over && self.conversation.wants_response_body()
    }

    /// The longest time for which a response body is held in all; none: as long as the application takes.
    pub fn response_wait_max(&mut self) -> Option<Duration> {
        self.conversation.response_wait_max()
    }

    /// A piece of the response body, which the caller holds. False if no more of it is wanted. Before its
    /// head and behind its end it is only counted.
    pub fn response_body(&mut self, piece: &[u8]) -> bool {
        if !self.has_response || self.is_response_over {
            self.passed[1].add(piece.len());
            return false;
        }
        self.conversation.keep(Some(piece.len()));
        self.conversation.response_body(piece);
        !self.conversation.is_over_limit() && !self.is_blocked()
    }

    /// The end of what is shown of the response: phase 4. `is_whole`: nothing more of it comes.
    pub fn response_end(&mut self, is_whole: bool) {
        if self.has_response && !std::mem::replace(&mut self.is_response_over, true) {
            if !is_whole {
                self.conversation.response_released();
            }
            self.conversation.response_end(None);
        }
    }

    /// The counter for bytes of the response body that go on without being shown.
    pub fn response_passed(&self) -> Passed {
        self.passed[1].clone()
    }

    /// The response is not seen.
    pub(crate) fn no_response(&mut self) {
        self.conversation.blind(BlindSpot::Response);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let [request, response] = &self.passed;
        self.conversation.passed(request.get(), response.get());
        if !self.is_request_over {
            if !self.is_blocked() {
                self.conversation.blind(BlindSpot::RequestBodyCut);
            }
            self.request_end();
        }
        if !self.is_blocked() {
            match (self.has_response, self.is_response_over) {
                (false, _) => self.conversation.blind(BlindSpot::Response),
                (true, false) => self.conversation.blind(BlindSpot::ResponseBodyCut),
                (true, true) => {}
            }
        }
    }
}
