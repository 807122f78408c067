//! One exchange, as another server shows it: head in, body in, response in, verdict out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_event::{Action, BlindSpot, ExceptionCause, ExceptionPolicy};
use portcullis_http::h1::Parsed;
use portcullis_http::message::{BodyFraming, Refusal, RequestHead, ResponseHead};
use portcullis_inspect::{BodyLimitAction, BodyPlan, Connection};

use crate::decide::Block;
use crate::finish;
use crate::lifecycle::{Beyond, Lifecycle, NO_MEMORY, Shown, TOO_LARGE, WorkClock};
use crate::metrics::Unanswered;
use crate::service::Service;
use crate::settings::Settings;

/// The origin of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The client of the server that asks.
    pub client: SocketAddr,
    /// The server that asks.
    pub peer: SocketAddr,
    /// The address that the client reached.
    pub server: SocketAddr,
    /// The client came by TLS.
    pub tls: bool,
}

/// A body that was longer than what was shown of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    /// Bytes that were not sent, at least.
    pub missing_bytes: u64,
}

/// The findings in an exchange so far.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Anomaly scores of the CRS, inbound and outbound together.
    pub anomaly_score: i64,
    /// Ids of the rules that matched and log.
    pub rules: Vec<u32>,
}

/// One exchange. Dropped, it ends, whatever has been shown: its event is written and it is counted.
#[derive(Debug)]
pub struct Conversation {
    pub(crate) service: Arc<Service>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) life: Lifecycle,
    pub(crate) head: RequestHead,
    pub(crate) arrival: Arrival,
    pub(crate) request_id: String,
    pub(crate) began: Instant,
    pub(crate) epoch_millis: u64,
    pub(crate) block: Option<Block>,
    pub(crate) blind_spots: Vec<BlindSpot>,
    /// Bytes that the asking server did not send, of both bodies.
    pub(crate) missing_bytes: u64,
    held_bytes: usize,
    /// Bytes that the caller holds of the bodies, beside what the inspection does.
    kept_bytes: usize,
    /// The body that is being shown.
    shown: Shown,
    is_request_over: bool,
}

impl Conversation {
    /// Begins an exchange: phase 1.
    pub fn begin(service: &Arc<Service>, arrival: Arrival, parsed: Parsed) -> Conversation {
        let (head, refusal) = match parsed {
            Parsed::Head(head) => (head, None),
            Parsed::Refused { partial, refusal } => (partial, Some(refusal)),
            Parsed::NeedMore => (RequestHead::default(), Some(Refusal::Incomplete)),
        };
        let (began, time) = (Instant::now(), SystemTime::now());
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let (settings, request_id) = (service.settings(), service.request_id(time));
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let connection = Connection {
            client: arrival.client,
            server: arrival.server,
            request_id: request_id.clone(),
            epoch_millis,
            utc_offset_seconds: service.local_time.utc_offset_seconds(seconds),
            tls: arrival.tls,
            environment: Vec::new(),
            keep_request_bytes: service.outputs.keep_request_bytes,
            capture_share: service.outputs.capture.as_ref().map_or(0.0, |capture| capture.share),
        };
        let mut life = Lifecycle::begin(settings.failure, WorkClock::WALL, || {
            let mut inspection =
                settings.inspector.begin(&settings.names, connection, service.take_scratch());
            inspection.name_files(|| service.secret());
            inspection
        });
        life.refusal = refusal;
        life.outcome.no_event = service.outputs.on_event.is_none();
        let mut conversation = Conversation {
            service: Arc::clone(service),
            settings,
            life,
            head,
            arrival,
            request_id,
            began,
            epoch_millis,
            block: None,
            blind_spots: Vec::new(),
            missing_bytes: 0,
            held_bytes: 0,
            kept_bytes: 0,
            shown: Shown::default(),
            is_request_over: false,
        };
        conversation.phase_1();
        conversation
    }

    fn phase_1(&mut self) {
        let refusal = self.life.refusal;
        let step = self.life.request_head(&self.head, refusal);
        self.carry_out(step);
        if let (Some(refusal), None) = (refusal, &self.block) {
            self.block = Some(self.answer(Action::Refuse, refusal.status(), refusal.explanation()));
        }
    }

    /// The answer that the client is to get, once there is one.
    pub fn block(&self) -> Option<&Block> {
        self.block.as_ref()
    }

    /// The id of the exchange, as on the block page.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The head of the request.
    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// Bytes of the request body that came.
    pub fn request_bytes(&self) -> u64 {
        self.life.outcome.request_body_bytes
    }

    /// Counts bytes of a body that are not shown.
    pub fn not_shown(&mut self, bytes: u64) {
        self.missing_bytes += bytes;
    }

    /// The findings so far.
    pub fn told(&mut self) -> Told {
        let told = self.life.call(|inspection| {
            let transaction = inspection.transaction();
            let number = |key: &[u8]| transaction.tx_number(key).unwrap_or(0);
            let plan = self.settings.inspector.plan();
            let logged = transaction.matches().iter().filter(|found| found.log);
            Told {
                anomaly_score: number(b"blocking_inbound_anomaly_score")
                    + number(b"blocking_outbound_anomaly_score"),
                rules: logged.map(|found| plan.rule(found.rule).id.0).collect(),
            }
        });
        told.unwrap_or_default()
    }

    /// Notes a part of the exchange that is not shown.
    pub fn blind(&mut self, spot: BlindSpot) {
        if !self.blind_spots.contains(&spot) {
            self.blind_spots.push(spot);
        }
    }

    /// The body that the head announces is not shown at all.
    pub fn no_request_body(&mut self) {
        match self.head.framing() {
            BodyFraming::None | BodyFraming::Length(0) => return,
            BodyFraming::Length(length) => self.missing_bytes += length,
            // Its length is not known; that there is a body is.
            BodyFraming::Chunked | BodyFraming::UntilClose => self.missing_bytes += 1,
        }
        self.blind(BlindSpot::RequestBody);
    }

    /// True if the request body is wanted, and to be held back until phase 2 has run.
    pub fn wants_request_body(&mut self) -> bool {
        self.block.is_none() && self.life.request_body_plan() != BodyPlan::Skip
    }

    /// True if the body that is being shown is longer than what is inspected of it.
    pub fn is_over_limit(&self) -> bool {
        self.shown.is_truncated
    }

    /// Counts so many bytes more, or none of those before, that the caller holds of a body until the verdict.
    /// They count when the next piece of a body is shown.
    pub fn keep(&mut self, bytes: Option<usize>) {
        self.kept_bytes = bytes.map_or(0, |bytes| self.kept_bytes + bytes);
    }

    /// Counts bytes of the bodies that went on without being shown.
    pub fn passed(&mut self, request_bytes: u64, response_bytes: u64) {
        self.life.outcome.request_body_bytes += request_bytes;
        self.life.outcome.response_body_bytes += response_bytes;
    }

    /// Refuses the exchange, since something did not come as it should.
    pub fn give_up(&mut self, why: Unanswered, status: u16, reason: &'static str) {
        self.service.unanswered(why);
        self.reject(status, reason);
    }

    /// The rest of the response body goes on without being shown.
    pub fn response_released(&mut self) {
        self.shown.is_truncated = true;
    }

    /// The longest wait for a response body; none: as long as the application takes.
    pub fn response_wait_max(&mut self) -> Option<Duration> {
        self.life.response_wait_max()
    }

    /// A piece of the request body.
    pub fn request_body(&mut self, piece: &[u8]) {
        if self.block.is_some() {
            return;
        }
        self.life.outcome.request_body_bytes += piece.len() as u64;
        let plan = self.life.request_body_plan();
        let Some(beyond) = self.show(plan, piece, Lifecycle::request_body) else { return };
        match beyond.over_limit {
            BodyLimitAction::Reject => {
                self.life.exception_once(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed);
                self.end_obstructed();
                self.reject(TOO_LARGE.0, TOO_LARGE.1);
            }
            BodyLimitAction::ProcessPartial => {
                self.life.exception_once(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Open);
            }
        }
    }

    /// Shows as much of a piece as the plan lets; the limit, if it does not fit for the first time.
    fn show(
        &mut self,
        plan: BodyPlan,
        piece: &[u8],
        take: impl FnOnce(&mut Lifecycle, &[u8]),
    ) -> Option<Beyond> {
        if plan == BodyPlan::Skip {
            return None;
        }
        let (fits, beyond) = self.shown.take(piece.len(), plan);
        take(&mut self.life, &piece[..fits]);
        let held = self.life.held_bytes() + self.kept_bytes;
        if !self.service.hold(self.held_bytes, held) {
            self.service.metrics.unanswered(Unanswered::Memory);
            self.life.exception_once(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed);
            self.reject(NO_MEMORY.0, NO_MEMORY.1);
            return None;
        }
        self.held_bytes = held;
        beyond.filter(|beyond| beyond.is_first)
    }

    /// Fields behind the request body.
    pub fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        if self.block.is_none() {
            self.life.request_trailers(fields);
        }
    }

    /// The end of the request: phase 2. `cut`: the body is longer than what was shown.
    pub fn request_end(&mut self, cut: Option<Cut>) {
        if self.block.is_some() || std::mem::replace(&mut self.is_request_over, true) {
            return;
        }
        if let Some(Cut { missing_bytes }) = cut {
            self.missing_bytes += missing_bytes;
            self.blind(BlindSpot::RequestBodyCut);
            let refuses = self.service.limits.refuses_cut_bodies;
            let policy = if refuses { ExceptionPolicy::Closed } else { ExceptionPolicy::Open };
            let shown_bytes = self.life.outcome.request_body_bytes;
            self.life.exception_at(ExceptionCause::RequestBodyOverLimit, policy, shown_bytes);
            if refuses {
                self.end_obstructed();
                return self.reject(413, "The request body is larger than what can be inspected.");
            }
        }
        let truncated = self.shown.is_truncated || cut.is_some();
        let hidden = self.life.undecodable(!truncated);
        self.life.set_elapsed(self.began.elapsed());
        let step = self.life.request_end(truncated);
        self.carry_out(step);
        if self.block.is_some() {
            return;
        }
        let refused = self.life.oversized().or(hidden).or_else(|| self.life.exhausted());
        if let Some((status, text)) = refused {
            self.reject(status, text);
        }
        self.shown = Shown::default();
    }

    /// Phase 2 over what there is of a body that is refused.
    fn end_obstructed(&mut self) {
        self.life.set_elapsed(self.began.elapsed());
        let step = self.life.request_end(true);
        self.carry_out(step);
    }

    /// The head of the response: phase 3.
    pub fn response_head(&mut self, head: &ResponseHead) {
        if self.block.is_some() {
            return;
        }
        self.life.outcome.status = Some(head.status());
        self.life.set_elapsed(self.began.elapsed());
        let step = self.life.response_head(head);
        self.carry_out(step);
    }

    /// True if the body of the response is wanted. To be asked once its head has been shown.
    pub fn wants_response_body(&mut self) -> bool {
        self.block.is_none() && self.life.response_body_plan() != BodyPlan::Skip
    }

    /// A piece of the response body.
    pub fn response_body(&mut self, piece: &[u8]) {
        if self.block.is_some() {
            return;
        }
        self.life.outcome.response_body_bytes += piece.len() as u64;
        let plan = self.life.response_body_plan();
        let Some(beyond) = self.show(plan, piece, Lifecycle::response_body) else { return };
        let (cause, limit) = (ExceptionCause::ResponseBodyOverLimit, beyond.limit_bytes);
        match beyond.over_limit {
            BodyLimitAction::Reject => {
                self.life.exception_at(cause, ExceptionPolicy::Closed, limit);
                self.reject(500, "The response is larger than what this site inspects.");
            }
            // Held for the semantic detector alone, its rest may go on.
            BodyLimitAction::ProcessPartial if self.life.response_wait_max().is_some() => {}
            BodyLimitAction::ProcessPartial => self.life.exception_at(cause, ExceptionPolicy::Open, limit),
        }
    }

    /// The end of the response: phase 4. `cut`: the body is longer than what was shown.
    pub fn response_end(&mut self, cut: Option<Cut>) {
        if self.block.is_some() {
            return;
        }
        if let Some(Cut { missing_bytes }) = cut {
            self.missing_bytes += missing_bytes;
            self.blind(BlindSpot::ResponseBodyCut);
        }
        let truncated = self.shown.is_truncated || cut.is_some();
        self.life.set_elapsed(self.began.elapsed());
        let step = self.life.response_end(truncated);
        self.carry_out(step);
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        finish::finish(self);
        self.service.hold(self.held_bytes, 0);
    }
}
