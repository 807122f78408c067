//! One exchange through the facade that the proxy uses, without the proxy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_config::{Mode, Policy};
use portcullis_engine::NoCollections;
use portcullis_event::{Action, DetectionMode, Redactor};
use portcullis_http::h1::{Compat, Limits, Parsed, RequestParser, ResponseParser};
use portcullis_http::message::{RequestHead, ResponseHead};
use portcullis_inspect::{
    Connection, Inspector, Outcome, PolicyNames, Scratch, Semantic, SemanticPolicy, Step,
};
use portcullis_learn::Site;
use portcullis_semantic::{Analysis, Detectors};
use portcullis_types::RuleId;

use crate::cases::Message;
use crate::site::{self, Knows};

/// A message with its heads parsed, which is not measured here.
pub struct Prepared {
    head: RequestHead,
    body: Vec<u8>,
    response: Option<(ResponseHead, Vec<u8>)>,
}

impl Prepared {
    /// # Panics
    ///
    /// If a head is none.
    pub fn new(message: Message) -> Prepared {
        let head = String::from_utf8_lossy(&message.head).into_owned();
        Prepared::try_new(message).unwrap_or_else(|| panic!("heads that cannot be read: {head}"))
    }

    /// `None` if a head cannot be read.
    pub fn try_new(message: Message) -> Option<Prepared> {
        let Parsed::Head(head) = RequestParser::new(Limits::default(), Compat::Strict).parse(&message.head)
        else {
            return None;
        };
        let response = match message.response {
            None => None,
            Some(body) => {
                let text = Message::response_head(&body);
                let parsed = ResponseParser::new(Limits::default()).parse(text.as_bytes());
                Some((parsed.ok().flatten()?, body))
            }
        };
        Some(Prepared { head, body: message.body, response })
    }

    /// Shows the request to the detectors alone.
    pub(crate) fn analyse(&self, detectors: &Detectors, analysis: &mut Analysis) {
        analysis.clear();
        analysis.request_head(detectors, self.head.method(), self.head.target(), self.head.fields());
        let content_type = self.head.header("content-type").next().unwrap_or_default();
        analysis.request_body(detectors, content_type, &self.body);
    }

    /// Of the whole exchange.
    pub fn bytes(&self) -> usize {
        self.head.received_len() + self.body.len() + self.response.as_ref().map_or(0, |(_, body)| body.len())
    }
}

/// The engine with its rules, and buffers that exchanges share.
pub struct Engine {
    inspector: Arc<Inspector>,
    names: PolicyNames,
    connection: Connection,
    /// None before the first exchange.
    scratch: Option<Scratch>,
    /// The line of the last event, if lines are written.
    line: Option<Vec<u8>>,
    /// What is learned of fields, if anything is.
    fields: Option<Arc<Site>>,
}

/// What became of an exchange.
#[derive(Debug)]
pub struct Verdict {
    /// What was done.
    pub action: Action,
    /// Rules with a logged match.
    pub rules: Vec<RuleId>,
    /// The work that the rules did, and how much was allowed.
    pub work: (u64, u64),
    /// The same of the detectors.
    pub detector_work: (u64, u64),
    /// The body grows beyond what its content coding may, so that the proxy refuses it.
    pub is_over_limit: bool,
}

/// The policy that is measured: the CRS as it is installed, and response bodies read, too; or the detector
/// alone.
pub fn policy(mode: crate::Mode, crs: &Path, paranoia: u8) -> Policy {
    let mode = match mode {
        crate::Mode::Semantic => return Policy { mode: Mode::Semantic, ..Policy::default() },
        crate::Mode::Both => Mode::Both,
        crate::Mode::Crs => Mode::Crs,
    };
    Policy {
        mode,
        crs: Some(crs.to_owned()),
        paranoia: Some(paranoia),
        directives: Some("SecResponseBodyAccess On\n".to_owned()),
        ..Policy::default()
    }
}

impl Engine {
    /// Loads the rules, for a site that knows nothing of its requests.
    pub fn new(policy: &Policy) -> Result<Engine, portcullis_load::LoadError> {
        Engine::of_site(policy, Knows::Nothing)
    }

    /// Loads the rules, for a site that knows this of its requests. Fields are to be [taught](Self::teach).
    pub fn of_site(policy: &Policy, knows: Knows) -> Result<Engine, portcullis_load::LoadError> {
        let plan = portcullis_load::load(policy)?.plan;
        let mut inspector = Inspector::new(plan, Arc::new(Redactor::default()), Arc::new(NoCollections));
        if policy.mode.has_semantic() {
            let mode =
                if let Mode::Both = policy.mode { DetectionMode::Both } else { DetectionMode::Semantic };
            inspector = inspector.with_semantic(
                mode,
                Semantic {
                    detectors: Arc::new(Detectors::new()),
                    level: policy.level,
                    policy: Arc::new(SemanticPolicy::default()),
                    response_bodies: true,
                    response_wait: Duration::MAX,
                },
            );
        }
        let (inspector, fields) = match knows {
            Knows::Nothing => (inspector, None),
            Knows::Api => (site::with_api(inspector), None),
            Knows::Fields => {
                let (inspector, fields) = site::with_fields(inspector);
                (inspector, Some(fields))
            }
        };
        let client = "192.0.2.7:4711".parse().unwrap_or_else(|error| panic!("{error}"));
        let connection = Connection {
            client,
            server: client,
            request_id: "9tGzRkqYp3hW".to_owned(),
            epoch_millis: 1_760_000_000_123,
            utc_offset_seconds: 0,
            tls: false,
            environment: Vec::new(),
            keep_request_bytes: 0,
            capture_share: 0.0,
        };
        let names = PolicyNames { site: "bench".into(), route: "/".into(), generation: 1 };
        Ok(Engine { inspector: Arc::new(inspector), names, connection, scratch: None, line: None, fields })
    }

    /// From now on the event of an exchange is also written, as files and the store have it.
    pub fn write_events(&mut self) {
        self.line = Some(Vec::new());
    }

    /// Has the fields of these messages learned, as if many clients had sent them for days.
    pub fn teach(&mut self, messages: &[Prepared]) {
        let Some(fields) = self.fields.clone() else { return };
        let usual = self.connection.clone();
        for (at, message) in (0..site::DAYS * u64::from(site::NETWORKS)).zip(messages.iter().cycle()) {
            let network = (at % u64::from(site::NETWORKS)) as u8;
            self.connection.client.set_ip([192, 0, network, 7].into());
            self.connection.epoch_millis = usual.epoch_millis + at % site::DAYS * 86_400_000;
            self.exchange(message);
        }
        site::learn(&fields);
        self.connection = usual;
    }

    /// Drops what waits to be learned, which a thread of its own would have done.
    pub fn forget_taught(&self) {
        if let Some(fields) = &self.fields {
            fields.take();
        }
    }

    /// Inspects all of it.
    #[inline(never)]
    pub fn exchange(&mut self, message: &Prepared) -> Verdict {
        let scratch = self.scratch.take().unwrap_or_default();
        let mut inspection = self.inspector.begin(&self.names, self.connection.clone(), scratch);
        let mut step = inspection.request_head(&message.head, None);
        let mut is_over_limit = false;
        if step == Step::Continue {
            inspection.request_body(&message.body);
            is_over_limit = inspection.request_coding_error(true).is_some();
            step = inspection.request_end(false);
        }
        let (work, detector_work) = (inspection.work_done(), inspection.detector_work().unwrap_or_default());
        let mut outcome = Outcome { request_body_bytes: message.body.len() as u64, ..Outcome::default() };
        if let (Step::Continue, Some((head, body))) = (&step, &message.response) {
            step = inspection.response_head(head);
            if step == Step::Continue && inspection.response_body_plan() != portcullis_inspect::BodyPlan::Skip
            {
                inspection.response_body(body);
                step = inspection.response_end(false);
            }
            outcome.response_body_bytes = body.len() as u64;
        }
        outcome.status = Some(if step == Step::Continue { 200 } else { 403 });
        let report = inspection.finish(&outcome);
        self.scratch = Some(report.scratch);
        if let (Some(line), Some(event)) = (&mut self.line, &report.event) {
            line.clear();
            event.write_json_line(line);
        }
        Verdict { action: report.action, rules: report.matched_rules, work, detector_work, is_over_limit }
    }
}
