//! One request with its response, phase by phase, as a connector shows it.

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use portcullis_config::Failure;
use portcullis_event::{
    Action, BlindSpot, FindingOutcome, Integration, IntegrationKind, LineEnd, NotInspected, RuleMatch,
    modsecurity3_line, modsecurity3_remark, semantic_match,
};
use portcullis_exchange::{Beyond, Facts, Health, Lifecycle, WorkClock, settle};
use portcullis_http::message::RequestHead;
use portcullis_inspect::{Answer, BodyLimitAction, BodyPlan, Connection, Inspection, Step};
use portcullis_types::Variable;

use crate::body::Body;
use crate::cache::Cache;
use crate::clock::epoch_millis;
use crate::head::{self, Fields, Request};
use crate::intervention::{self, Intervention, OVER_LIMIT};
use crate::ready::Ready;
use crate::rule_set::RuleSet;
use crate::{id, scratch};

/// Bytes of a body in a file that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The answer where an error keeps us from inspecting, and rules block.
const FAILED: u16 = 500;

/// The phase that has run last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Begun,
    RequestHead,
    RequestBody,
    ResponseHead,
    ResponseBody,
    Logged,
}

/// A transaction. Phases that a connector leaves out are run before the next one: rules see what there is,
/// whatever way a server goes to its answer.
#[derive(Debug)]
pub struct Transaction {
    rules: Arc<Ready>,
    log: Log,
    begun: (u64, Instant),
    utc_offset_seconds: i32,
    client: SocketAddr,
    server: SocketAddr,
    request: Request,
    response_fields: Fields,
    /// The head of the request, as rules saw it.
    head: RequestHead,
    life: Lifecycle,
    stage: Stage,
    /// Matches whose lines were made.
    told: usize,
    lines: Vec<String>,
    intervention: Option<Intervention>,
    /// It was interrupted: no more than that is asked of the server.
    is_decided: bool,
    /// A bug ended the inspection, and the server was notified.
    has_failed: bool,
    request_body: Body,
    response_body: Body,
    status: Option<u16>,
    shown_body: Vec<u8>,
}

impl Transaction {
    /// Begins a transaction under these rules; `id` is the server's, if it gives one.
    pub fn new(rules: &RuleSet, given: Option<&[u8]>, cache: &Cache) -> Result<Transaction, String> {
        let now = epoch_millis();
        let rules = rules.ready(cache)?;
        cache.begin_serving();
        Ok(Transaction {
            rules,
            log: Log { id: given.map_or_else(|| id::new(now), id::given), ..Log::default() },
            begun: (now, Instant::now()),
            utc_offset_seconds: cache.zone.utc_offset_seconds(now),
            client: address("", 0),
            server: address("", 0),
            request: Request::default(),
            response_fields: Fields::default(),
            head: RequestHead::default(),
            life: Lifecycle::default(),
            stage: Stage::Begun,
            told: 0,
            lines: Vec::new(),
            intervention: None,
            is_decided: false,
            has_failed: false,
            request_body: Body::default(),
            response_body: Body::default(),
            status: None,
            shown_body: vec![0],
        })
    }

    /// The connection. What is no IP address, such as a Unix socket, counts as 0.0.0.0.
    pub fn connection(&mut self, client: (&str, u16), server: (&str, u16)) {
        self.client = address(client.0, client.1);
        self.server = address(server.0, server.1);
        server.0.clone_into(&mut self.log.server);
    }

    /// The host that the server took the request for, for log lines.
    pub fn set_hostname(&mut self, name: &str) {
        name.clone_into(&mut self.log.hostname);
    }

    /// The request line; `version` is `1.1` or the like.
    pub fn uri(&mut self, target: &[u8], method: &[u8], version: &[u8]) {
        self.request.target = target.to_vec();
        self.request.method = method.to_vec();
        self.request.version = head::version(version);
        self.log.path = self.request.path();
    }

    /// A header field of the request.
    pub fn add_request_header(&mut self, name: &[u8], value: &[u8]) {
        self.request.fields.add(name, value);
    }

    /// Phase 1.
    pub fn request_headers(&mut self) {
        if self.stage >= Stage::RequestHead {
            return;
        }
        self.stage = Stage::RequestHead;
        let connection = Connection {
            client: self.client,
            server: self.server,
            request_id: self.log.id.clone(),
            epoch_millis: self.begun.0,
            utc_offset_seconds: self.utc_offset_seconds,
            tls: false,
            environment: Vec::new(),
            keep_request_bytes: 0,
            capture_share: 0.0,
        };
        let rules = &self.rules;
        self.life = Lifecycle::begin(Failure::default(), WorkClock::WALL, || {
            let mut inspection = rules.inspector.begin(&rules.names, connection, scratch::take());
            inspection.name_files(id::secret);
            inspection
        });
        self.life.outcome.no_event = rules.outlet.is_none();
        self.head = self.request.head();
        let step = self.life.request_head(&self.head, None);
        self.settle(step);
        if self.request.fields.is_over() {
            self.refuse(431, "The request has more header fields than can be inspected.");
        }
    }

    /// A piece of the request body. One that comes behind phase 2 cannot be inspected any more: the request
    /// is refused where bodies are to be inspected.
    pub fn append_request_body(&mut self, piece: &[u8]) {
        self.request_headers();
        if self.stage > Stage::RequestHead {
            return self.late_body(piece);
        }
        if self.life.health() != Health::Well {
            return;
        }
        let (shown, beyond) = self.request_body.take(piece, self.life.request_body_plan());
        self.life.request_body(&piece[..shown]);
        self.note_bug();
        match beyond {
            Some(Beyond { over_limit: BodyLimitAction::Reject, .. }) => {
                self.refuse(OVER_LIMIT, "Request body limit is marked to reject the request");
            }
            Some(Beyond { is_first: true, .. }) => {
                let text = "Request body is longer than its limit: the rest is not inspected.";
                self.lines.push(modsecurity3_remark(text, None, self.log.end()));
            }
            Some(_) | None => {}
        }
    }

    fn late_body(&mut self, piece: &[u8]) {
        let is_first = self.request_body.late == 0;
        self.request_body.late += piece.len() as u64;
        let is_wanted = self.life.request_body_plan() != BodyPlan::Skip;
        if is_first && !piece.is_empty() && is_wanted {
            self.refuse(FAILED, "The request body came behind its phase: it is not inspected.");
        }
    }

    /// The request body, from a file that the server keeps it in. An error is logged, and refuses
    /// the request, which is not inspected.
    pub fn request_body_from_file(&mut self, path: &Path) -> bool {
        let read = File::open(path).and_then(|mut file| {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match file.read(&mut piece)? {
                    0 => return Ok(()),
                    length => self.append_request_body(piece.get(..length).unwrap_or_default()),
                }
            }
        });
        if let Err(error) = &read {
            self.request_headers();
            self.refuse(
                FAILED,
                &format!("The request body cannot be read from {}: {error}.", path.display()),
            );
        }
        read.is_ok()
    }

    /// Phase 2.
    pub fn request_body(&mut self) {
        self.request_headers();
        if self.stage >= Stage::RequestBody {
            return;
        }
        self.stage = Stage::RequestBody;
        if !self.goes_on() {
            return;
        }
        let step = self.life.request_end(self.request_body.shown.is_truncated);
        self.settle(step);
        if self.life.call(|inspection| inspection.refuses_request_body()).unwrap_or(false) {
            self.refuse(OVER_LIMIT, "Request body without its files is larger than the limit");
        }
    }

    /// Bytes of the request body that came.
    pub fn request_body_length(&self) -> u64 {
        self.request_body.seen
    }

    /// A header field of the response.
    pub fn add_response_header(&mut self, name: &[u8], value: &[u8]) {
        self.response_fields.add(name, value);
    }

    /// Phase 3.
    pub fn response_headers(&mut self, status: u16, protocol: &[u8]) {
        self.request_body();
        if self.stage >= Stage::ResponseHead {
            return;
        }
        self.stage = Stage::ResponseHead;
        self.status = Some(status);
        if !self.goes_on() {
            return;
        }
        let step = self.life.response_head(&head::response(status, protocol, &self.response_fields));
        self.settle(step);
        if self.response_fields.is_over() {
            self.refuse(FAILED, "The response has more header fields than can be inspected.");
        }
    }

    /// A piece of the response body.
    pub fn append_response_body(&mut self, piece: &[u8]) {
        if self.life.health() != Health::Well || self.stage != Stage::ResponseHead {
            return;
        }
        let (shown, beyond) = self.response_body.take(piece, self.life.response_body_plan());
        self.life.response_body(&piece[..shown]);
        self.note_bug();
        if let Some(Beyond { over_limit: BodyLimitAction::Reject, .. }) = beyond {
            self.refuse(OVER_LIMIT, "Response body limit is marked to reject the request");
        }
    }

    /// Phase 4.
    pub fn response_body(&mut self) {
        if self.stage != Stage::ResponseHead {
            return;
        }
        self.stage = Stage::ResponseBody;
        if !self.goes_on() {
            return;
        }
        let step = self.life.response_end(self.response_body.shown.is_truncated);
        self.settle(step);
    }

    /// True if a phase is to run; it counts from the time that has passed.
    fn goes_on(&mut self) -> bool {
        self.life.set_elapsed(self.begun.1.elapsed());
        !self.is_decided && self.life.health() == Health::Well
    }

    /// The response body as far as it was inspected; it ends with a NUL that is not part of it.
    pub fn shown_response_body(&mut self) -> &[u8] {
        let body = self.life.running().and_then(|inspection| {
            inspection.transaction().scalar_text(Variable::ResponseBody).map(<[u8]>::to_vec)
        });
        if let Some(mut body) = body {
            body.push(0);
            // What was shown before stays where it is as long as it is the same.
            if body != self.shown_body {
                self.shown_body = body;
            }
        }
        &self.shown_body
    }

    /// The status that the server answers with.
    pub fn set_status(&mut self, status: u16) {
        self.status = Some(status);
    }

    /// Phase 5: the end of the transaction. The audit log has it afterwards.
    pub fn logging(&mut self) {
        if self.stage >= Stage::Logged {
            return;
        }
        // A request that never got to its body has been seen as far as its head.
        self.request_headers();
        let last = std::mem::replace(&mut self.stage, Stage::Logged);
        let now = Instant::now();
        let step = self.life.logging(now, now.saturating_duration_since(self.begun.1));
        let found = self.life.running().map(|inspection| detected(inspection, FindingOutcome::Detected));
        let found = found.into_iter().flatten();
        self.lines.extend(found.map(|found| modsecurity3_line(&found, None, self.log.end())));
        self.settle(step);
        self.life.outcome.status = self.status;
        self.life.outcome.request_body_bytes = self.request_body.seen;
        self.life.outcome.response_body_bytes = self.response_body.seen;
        let rules = &self.rules;
        let finished = self.life.finish(&Facts {
            head: &self.head,
            names: &rules.names,
            generation: rules.names.generation,
            inspector: Some(&rules.inspector),
            exclusions: None,
            redactor: &rules.redactor,
            request_id: &self.log.id,
            epoch_millis: self.begun.0,
            client: self.client,
            server: self.server,
            tls: false,
            // Each is inspected, unless a bug ends that.
            uninspected: NotInspected::EngineError,
        });
        self.note_bug();
        if let Some(report) = finished.report {
            scratch::give(report.scratch);
            for file in report.kept_files {
                let name = file.name.clone();
                if let Err(error) = self.rules.keep(file) {
                    let text = format!("SecUploadKeepFiles: {name} was not kept: {error}.");
                    self.lines.push(modsecurity3_remark(&text, None, self.log.end()));
                }
            }
        }
        if let (Some(outlet), Some(mut event)) = (&self.rules.outlet, finished.event) {
            let (kind, blind_spots) = (IntegrationKind::Libmodsecurity, self.blind_spots(last));
            event.integration = Some(Integration { kind, blind_spots });
            outlet.submit(*event);
        }
    }

    /// What the server did not show, or did not wait with, if this phase was its last. A request that was
    /// refused has no response.
    fn blind_spots(&self, last: Stage) -> Vec<BlindSpot> {
        let mut spots = Vec::new();
        let is_unseen = self.request.fields.announce_body() && self.request_body.seen == 0;
        if self.request_body.late > 0 || is_unseen && !self.is_decided {
            spots.push(BlindSpot::RequestBody);
        }
        let is_wanted = self.rules.inspector.plan().settings.response_body_access;
        let has_body = self.request.method != b"HEAD" && !matches!(self.status, Some(204 | 304));
        match last {
            Stage::Begun | Stage::RequestHead | Stage::RequestBody if !self.is_decided => {
                spots.push(BlindSpot::Response);
            }
            Stage::ResponseHead if is_wanted && has_body && !self.is_decided => {
                spots.push(BlindSpot::ResponseBody);
            }
            // Servers send it piece by piece.
            Stage::ResponseBody if is_wanted && self.response_body.seen > 0 => {
                spots.push(BlindSpot::ResponseBodyStreamed);
            }
            Stage::Begun
            | Stage::RequestHead
            | Stage::RequestBody
            | Stage::ResponseHead
            | Stage::ResponseBody
            | Stage::Logged => {}
        }
        spots
    }

    /// What the server has to do now, if anything; asked once, it is not told again.
    pub fn take_intervention(&mut self) -> Option<Intervention> {
        self.intervention.take()
    }

    /// The lines for the server's log that were made since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// An error in our code ended the inspection: the request is refused where rules block, and the error is
    /// logged.
    pub fn fail(&mut self) {
        self.life.abandon();
        self.note_bug();
    }

    fn note_bug(&mut self) {
        if self.life.health() == Health::Broken && !std::mem::replace(&mut self.has_failed, true) {
            self.refuse(FAILED, "The inspection failed by an error of its own.");
        }
    }

    fn settle(&mut self, mut step: Step) {
        let phase = self.phase();
        if step == Step::Ask {
            // Nobody here looks names up or scans files: such rules do not match.
            step = self.life.step(|inspection| settle(inspection, step, |_| Answer::Unknown));
        }
        self.note_bug();
        let Some(inspection) = self.life.running() else { return };
        let mut logged = inspection.logged_since(self.told);
        self.told = inspection.match_count();
        let Step::Interrupt(interruption) = step else {
            self.lines.extend(logged.iter().map(|each| modsecurity3_line(&each.found, None, self.log.end())));
            return;
        };
        let (status, url) = intervention::answer(&interruption);
        let by = logged.iter().rposition(|each| each.is_disruptive).map(|at| logged.remove(at));
        self.lines.extend(logged.iter().map(|each| modsecurity3_line(&each.found, None, self.log.end())));
        let by = by.map(|by| by.found).or_else(|| detected(inspection, FindingOutcome::Blocked).next());
        let line = match by {
            Some(found) => modsecurity3_line(&found, Some(status), self.log.end()),
            None => modsecurity3_remark("A rule without log decided.", Some((status, phase)), self.log.end()),
        };
        self.intervene(status, url, line);
    }

    /// Refuses the request by a limit or an error, if rules block; told in the log either way.
    fn refuse(&mut self, status: u16, text: &str) {
        if self.is_decided {
            return;
        }
        let is_blocking = match self.life.running() {
            Some(inspection) => inspection.is_blocking(),
            None => self.rules.is_blocking(),
        };
        if is_blocking {
            let line = modsecurity3_remark(text, Some((status, self.phase())), self.log.end());
            self.life.reject(status, text, Action::Deny);
            self.intervene(status, None, line);
        } else {
            self.lines.push(modsecurity3_remark(text, None, self.log.end()));
        }
    }

    fn intervene(&mut self, status: u16, url: Option<Vec<u8>>, line: String) {
        self.is_decided = true;
        self.status = Some(status);
        let log = format!("[client {}] {line}", self.client.ip());
        self.intervention = Some(Intervention { status, url, log });
    }

    fn phase(&self) -> u8 {
        match self.stage {
            Stage::Begun | Stage::RequestHead => 1,
            Stage::RequestBody => 2,
            Stage::ResponseHead => 3,
            Stage::ResponseBody => 4,
            Stage::Logged => 5,
        }
    }
}

/// What the semantic detector found and did with it, as matches of our own rule: the worst first.
fn detected(inspection: &Inspection, outcome: FindingOutcome) -> impl Iterator<Item = RuleMatch> + use<> {
    let values = inspection.semantic_values().unwrap_or_default();
    let values = values.into_iter().filter(move |value| value.score.outcome == outcome);
    values.map(|value| semantic_match(&value.score, None, value.findings.iter()))
}

/// What every log line of the transaction says.
#[derive(Debug, Default)]
struct Log {
    id: String,
    server: String,
    hostname: String,
    path: String,
}

impl Log {
    fn end(&self) -> LineEnd<'_> {
        let hostname = if self.hostname.is_empty() { &self.server } else { &self.hostname };
        LineEnd { hostname, path: &self.path, unique_id: &self.id }
    }
}

fn address(text: &str, port: u16) -> SocketAddr {
    let ip = text.trim_start_matches('[').trim_end_matches(']').parse();
    SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port)
}
