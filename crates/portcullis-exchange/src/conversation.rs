//! One exchange, as another server shows it: head in, body in, response in, verdict out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use portcullis_event::{Action, BlindSpot, Exception, ExceptionCause, ExceptionPolicy};
use portcullis_http::h1::Parsed;
use portcullis_http::message::{BodyFraming, Refusal, RequestHead, ResponseHead};
use portcullis_inspect::{BodyLimitAction, BodyPlan, Connection, Inspection, Rejection, Step};

use crate::decide::Block;
use crate::finish;
use crate::inspected::Inspected;
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
    pub(crate) inspected: Inspected,
    pub(crate) head: RequestHead,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) arrival: Arrival,
    pub(crate) request_id: String,
    pub(crate) began: Instant,
    pub(crate) epoch_millis: u64,
    pub(crate) block: Option<Block>,
    pub(crate) rejection: Option<Rejection>,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) blind_spots: Vec<BlindSpot>,
    /// Bytes that the asking server did not send, of both bodies.
    pub(crate) missing_bytes: u64,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) response_status: Option<u16>,
    held_bytes: usize,
    /// Bytes that the caller holds of the bodies, beside what the inspection does.
    kept_bytes: usize,
    /// Bytes of the body that were shown, and whether more came than may be.
    shown_bytes: u64,
    is_over: bool,
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
        let inspected = Inspected::begin(service, &settings, connection);
        let mut conversation = Conversation {
            service: Arc::clone(service),
            settings,
            inspected,
            head,
            refusal,
            arrival,
            request_id,
            began,
            epoch_millis,
            block: None,
            rejection: None,
            exceptions: Vec::new(),
            blind_spots: Vec::new(),
            missing_bytes: 0,
            request_bytes: 0,
            response_bytes: 0,
            response_status: None,
            held_bytes: 0,
            kept_bytes: 0,
            shown_bytes: 0,
            is_over: false,
            is_request_over: false,
        };
        conversation.phase_1();
        conversation
    }

    fn phase_1(&mut self) {
        let Conversation { inspected, head, refusal, .. } = self;
        let step = inspected.step(|inspection| inspection.request_head(head, *refusal));
        self.carry_out(step);
        if let (Some(refusal), None) = (self.refusal, &self.block) {
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
        self.request_bytes
    }

    /// Counts bytes of a body that are not shown.
    pub fn not_shown(&mut self, bytes: u64) {
        self.missing_bytes += bytes;
    }

    /// The findings so far.
    pub fn told(&mut self) -> Told {
        let told = self.inspected.call(|inspection| {
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
        let plan = self.inspected.call(|inspection| inspection.request_body_plan());
        self.block.is_none() && plan.is_some_and(|plan| plan != BodyPlan::Skip)
    }

    /// True if the body that is being shown is longer than what is inspected of it.
    pub fn is_over_limit(&self) -> bool {
        self.is_over
    }

    /// Counts so many bytes more, or none of those before, that the caller holds of a body until the verdict.
    /// They count when the next piece of a body is shown.
    pub fn keep(&mut self, bytes: Option<usize>) {
        self.kept_bytes = bytes.map_or(0, |bytes| self.kept_bytes + bytes);
    }

    /// Counts bytes of the bodies that went on without being shown.
    pub fn passed(&mut self, request_bytes: u64, response_bytes: u64) {
        self.request_bytes += request_bytes;
        self.response_bytes += response_bytes;
    }

    /// Refuses the exchange, since something did not come as it should.
    pub fn give_up(&mut self, why: Unanswered, status: u16, reason: &'static str) {
        self.service.unanswered(why);
        self.reject(status, reason);
    }

    /// The rest of the response body goes on without being shown.
    pub fn response_released(&mut self) {
        self.is_over = true;
    }

    /// The longest wait for a response body; none: as long as the application takes.
    pub fn response_wait_max(&mut self) -> Option<Duration> {
        self.inspected.call(|inspection| inspection.response_wait_max()).flatten()
    }

    /// A piece of the request body.
    pub fn request_body(&mut self, piece: &[u8]) {
        if self.block.is_some() {
            return;
        }
        self.request_bytes += piece.len() as u64;
        let plan = self.inspected.call(|inspection| inspection.request_body_plan());
        let Some(over) = self.show(plan, piece, Inspection::request_body) else { return };
        match over {
            (_, BodyLimitAction::Reject) => {
                self.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed, Some(over.0));
                self.end_obstructed();
                self.reject(413, "The request body is larger than this site accepts.");
            }
            (limit, BodyLimitAction::ProcessPartial) => {
                self.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Open, Some(limit));
            }
        }
    }

    /// Shows as much of a piece as the plan lets; the limit and what to do if it does not fit for the first
    /// time.
    fn show(
        &mut self,
        plan: Option<BodyPlan>,
        piece: &[u8],
        take: impl FnOnce(&mut Inspection, &[u8]),
    ) -> Option<(u64, BodyLimitAction)> {
        let Some(BodyPlan::Hold { limit_bytes, over_limit }) = plan else { return None };
        let room = limit_bytes.saturating_sub(self.shown_bytes);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
        self.inspected.call(|inspection| take(inspection, &piece[..fits]));
        self.shown_bytes += fits as u64;
        let held = self.inspected.held_bytes() + self.kept_bytes;
        if !self.service.hold(self.held_bytes, held) {
            self.service.metrics.unanswered(Unanswered::Memory);
            self.exception(ExceptionCause::BudgetSpent, ExceptionPolicy::Closed, None);
            self.reject(503, "Too many large bodies at this moment.");
            return None;
        }
        self.held_bytes = held;
        let is_first = fits < piece.len() && !std::mem::replace(&mut self.is_over, fits < piece.len());
        is_first.then_some((limit_bytes, over_limit))
    }

    /// Fields behind the request body.
    pub fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])> + Clone) {
        if self.block.is_none() {
            self.inspected.call(|inspection| inspection.request_trailers(fields));
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
            self.exception(ExceptionCause::RequestBodyOverLimit, policy, Some(self.request_bytes));
            if refuses {
                self.end_obstructed();
                return self.reject(413, "The request body is larger than what can be inspected.");
            }
        }
        let truncated = self.is_over || cut.is_some();
        let hidden = self.undecodable(!truncated);
        let step = self.timely(|inspection| inspection.request_end(truncated));
        self.carry_out(step);
        if self.block.is_some() {
            return;
        }
        if self.inspected.call(|inspection| inspection.refuses_request_body()).unwrap_or(false) {
            self.exception(ExceptionCause::RequestBodyOverLimit, ExceptionPolicy::Closed, None);
            return self.reject(413, "The request body is larger than this site accepts.");
        }
        match hidden {
            Some((status, text)) => self.reject(status, text),
            None => self.exhausted(),
        }
        (self.shown_bytes, self.is_over) = (0, false);
    }

    /// A phase that had to wait for what it is about.
    fn timely(&mut self, phase: impl FnOnce(&mut Inspection) -> Step) -> Step {
        let elapsed = self.began.elapsed();
        self.inspected.step(|inspection| {
            inspection.set_elapsed(elapsed);
            phase(inspection)
        })
    }

    /// Phase 2 over what there is of a body that is refused.
    fn end_obstructed(&mut self) {
        let step = self.timely(|inspection| inspection.request_end(true));
        self.carry_out(step);
    }

    /// The head of the response: phase 3.
    pub fn response_head(&mut self, head: &ResponseHead) {
        if self.block.is_some() {
            return;
        }
        self.response_status = Some(head.status());
        let step = self.timely(|inspection| inspection.response_head(head));
        self.carry_out(step);
    }

    /// True if the body of the response is wanted. To be asked once its head has been shown.
    pub fn wants_response_body(&mut self) -> bool {
        let plan = self.inspected.call(|inspection| inspection.response_body_plan());
        self.block.is_none() && plan.is_some_and(|plan| plan != BodyPlan::Skip)
    }

    /// A piece of the response body.
    pub fn response_body(&mut self, piece: &[u8]) {
        if self.block.is_some() {
            return;
        }
        self.response_bytes += piece.len() as u64;
        let plan = self.inspected.call(|inspection| inspection.response_body_plan());
        match self.show(plan, piece, Inspection::response_body) {
            Some((limit, BodyLimitAction::Reject)) => {
                self.exception(ExceptionCause::ResponseBodyOverLimit, ExceptionPolicy::Closed, Some(limit));
                self.reject(500, "The response is larger than what this site inspects.");
            }
            // Held for the semantic detector alone, its rest may go on.
            Some((_, BodyLimitAction::ProcessPartial)) if self.response_wait_max().is_some() => {}
            Some((limit, BodyLimitAction::ProcessPartial)) => {
                self.exception(ExceptionCause::ResponseBodyOverLimit, ExceptionPolicy::Open, Some(limit));
            }
            None => {}
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
        let truncated = self.is_over || cut.is_some();
        let step = self.timely(|inspection| inspection.response_end(truncated));
        self.carry_out(step);
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        finish::finish(self);
        self.service.hold(self.held_bytes, 0);
    }
}
