//! The semantic detector beside the rules: what it is shown, when it decides, what events say of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_engine::{BodyArguments, Interruption};
use portcullis_event::{Finding, FindingOutcome, NotInspected, SemanticScore, SuppressedBy, limits, text};
use portcullis_http::body::content_type::Processor;
use portcullis_http::message::{RequestHead, ResponseHead};
use portcullis_learn::{FieldPlace, TryResult};
use portcullis_semantic::detectors::{field, redirect};
use portcullis_semantic::{
    Analysis, Arguments, CookieCounts, Detectors, Issuer, Judge, LEARNED_ROW, Location, Memo, Parsed, Score,
    Unreadable, Upload, exceptions,
};
use portcullis_types::{ByteBuf, Class, Level, Phase, Place, Severity};

use crate::declared::{DeclaredRun, SiteApi};
use crate::evidence;
use crate::fields::{FieldsRun, SiteFields, note_unusual};
use crate::issued::{ForeignCookie, IssuedTo};
use crate::semantic_policy::{ClassAction, SemanticPolicy};
use crate::weighing::Evidence;

/// Status of a blocked request, as a `deny` without a status of its own.
const STATUS: u16 = 403;
/// A body buffer that is kept for the next exchange.
const KEPT_BODY_BYTES_MAX: usize = 64 << 10;

/// The semantic detector of a policy.
#[derive(Clone, Debug)]
pub struct Semantic {
    /// The detectors; one for the process.
    pub detectors: Arc<Detectors>,
    /// The level, which sets the thresholds.
    pub level: Level,
    /// The actions for single classes, and the exclusions.
    pub policy: Arc<SemanticPolicy>,
    /// Bodies of responses are looked at, too.
    pub response_bodies: bool,
    /// The longest time for which a body that only the detector inspects is held for its upstream in all.
    pub response_wait: Duration,
}

/// A value with findings of one class, as an explanation tells of it.
#[derive(Clone, Debug)]
pub struct ScoredValue {
    /// The location and the score.
    pub score: SemanticScore,
    /// The terms of the score, by name.
    pub terms: Vec<(String, f32)>,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl ScoredValue {
    /// The term for what rules and inspection agents added.
    pub const ADDED: &'static str = "crs and agents";
}

/// Buffers of an analysis, for the next one.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) analysis: Analysis,
    content_type: Vec<u8>,
    /// The body of the request with the frame around it that another reading has taken off.
    as_sent: ByteBuf,
    /// The body of the response that is shown, content codings undone.
    body: ByteBuf,
}

impl Buffers {
    /// New buffers of a thread whose analyses remember header fields together.
    pub(crate) fn sharing(memo: &Memo) -> Buffers {
        Buffers { analysis: Analysis::sharing(memo), ..Buffers::default() }
    }
}

/// The findings as an event tells them.
pub(crate) struct Told {
    /// Those in values whose score passed a threshold, the first of each exception that suppresses or lowers
    /// something, and the first few of the others.
    pub(crate) findings: Vec<Finding>,
    /// The number of the others.
    pub(crate) below: u32,
    /// The number of others that an exception suppresses or lowers.
    pub(crate) suppressed: u32,
    /// Findings that were dropped before.
    pub(crate) dropped: u32,
}

/// The analysis of one exchange.
#[derive(Debug)]
pub(crate) struct SemanticRun {
    pub(crate) semantic: Semantic,
    pub(crate) buffers: Box<Buffers>,
    /// Exclusions whose path is not that of the request.
    pub(crate) elsewhere: Vec<bool>,
    /// The host that is asked, without its port.
    host: Vec<u8>,
    /// The points that the rules, in mode `both`, and inspection agents add to the score of a class in a
    /// value.
    evidence: Vec<(Class, u32, f32)>,
    /// The score that passed the threshold, and when.
    verdict: Option<(Score, Phase)>,
    /// The verdict was carried out.
    blocked: bool,
    /// The answer expires the cookies that it is for.
    expires: bool,
    /// The body is a streamed upload.
    upload: Option<Box<Upload>>,
    /// The response is text, and how long it says it is.
    response: Option<(bool, u64)>,
    /// What the site has learned of its fields.
    fields: Option<Box<FieldsRun>>,
    /// The API that the site declares.
    declared: Option<Box<DeclaredRun>>,
}

impl SemanticRun {
    pub(crate) fn new(
        semantic: &Semantic,
        mut buffers: Box<Buffers>,
        fields: Option<&SiteFields>,
        api: Option<&SiteApi>,
    ) -> SemanticRun {
        buffers.analysis.clear();
        buffers.content_type.clear();
        buffers.body.clear(KEPT_BODY_BYTES_MAX);
        buffers.as_sent = ByteBuf::new();
        SemanticRun {
            semantic: semantic.clone(),
            buffers,
            elsewhere: Vec::new(),
            host: Vec::new(),
            evidence: Vec::new(),
            verdict: None,
            blocked: false,
            expires: false,
            upload: None,
            response: None,
            fields: fields.map(|fields| Box::new(FieldsRun::new(fields))),
            declared: api.map(|api| Box::new(DeclaredRun::new(api))),
        }
    }

    pub(crate) fn into_buffers(self) -> Box<Buffers> {
        let mut buffers = self.buffers;
        buffers.body.clear(KEPT_BODY_BYTES_MAX);
        buffers.analysis.shrink();
        buffers
    }

    /// `arguments` are those of the query that the engine found, if nothing else is in it.
    pub(crate) fn request_head(
        &mut self,
        head: &RequestHead,
        (client, epoch_millis): (IpAddr, u64),
        issued: Option<&Arc<IssuedTo>>,
        arguments: Option<&mut Arguments<'_>>,
    ) {
        self.elsewhere = self.semantic.policy.elsewhere(head.path(), epoch_millis);
        let host = head.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"host")).map(|(_, value)| value);
        let host = host.unwrap_or_default();
        let is_v6 = host.starts_with(b"[");
        let port = host.iter().rposition(|b| *b == b':').filter(|at| !is_v6 || host[..*at].ends_with(b"]"));
        self.host.clear();
        self.host.extend_from_slice(&host[..port.unwrap_or(host.len())]);
        if !self.semantic.policy.exclusions.is_empty() {
            let (policy, elsewhere) = (Arc::clone(&self.semantic.policy), self.elsewhere.clone());
            self.buffers.analysis.judge_by(Arc::new(Actions { policy, elsewhere }));
        }
        let Buffers { analysis, content_type, .. } = &mut *self.buffers;
        if let Some(issued) = issued {
            analysis.set_issuer(Arc::clone(issued) as Arc<dyn Issuer>);
        }
        if let Some(fields) = &mut self.fields {
            fields.request_head(head, client, issued, analysis);
        }
        if let Some(declared) = &mut self.declared {
            declared.request_head(head);
            if let Some(names) = declared.message_names() {
                analysis.name_messages(names);
            }
            if let Some(known) = declared.fields()
                && (self.fields.is_some() || declared.may_be_unusual())
            {
                analysis.note_fields();
                analysis.fields().declare(Arc::clone(known));
            }
        }
        let (method, target) = (head.method(), head.target());
        analysis.parsed_request_head(&self.semantic.detectors, method, target, arguments, head.fields());
        if let Some(fields) = &self.fields {
            fields.note_head(head, issued, analysis);
        }
        if let Some(declared) = &mut self.declared {
            declared.note_head(analysis, &self.semantic.detectors);
        }
        content_type.extend_from_slice(head.header("content-type").next().unwrap_or_default());
    }

    /// Notes cookies that were removed from the request.
    pub(crate) fn note_foreign_cookies(&mut self, cookies: &[ForeignCookie]) {
        let (analysis, detectors) = (&mut self.buffers.analysis, &*self.semantic.detectors);
        for cookie in cookies {
            let location = Location::new(Place::Cookie, &cookie.name);
            let evidence = cookie.check.explanation().as_bytes();
            analysis.note(detectors, location, field::KINDS, field::FOREIGN_COOKIE, evidence);
        }
    }

    /// The request's cookies with findings.
    pub(crate) fn cookie_counts(&self) -> CookieCounts {
        self.buffers.analysis.cookie_counts()
    }

    /// Fields behind the body of the request.
    pub(crate) fn request_trailers<'h>(&mut self, fields: impl Iterator<Item = (&'h [u8], &'h [u8])>) {
        self.buffers.analysis.request_fields(&self.semantic.detectors, fields);
    }

    /// A piece of the body of the response.
    pub(crate) fn response_body(&mut self, chunk: &[u8]) {
        self.buffers.body.extend_from_slice(chunk);
    }

    /// A piece of the body as it came, with the frame that is not in the one that the engine keeps.
    pub(crate) fn body_as_sent(&mut self, chunk: &[u8]) {
        let content_type = &self.buffers.content_type;
        // Behind the size of its first chunk a body is neither JSON nor XML, and what is no text has no
        // values.
        let is_read = match Processor::by_media_type(content_type) {
            Some(Processor::Json | Processor::Xml) => false,
            Some(Processor::UrlEncoded | Processor::Multipart) => true,
            None => content_type.get(..5).is_none_or(|kind| kind.eq_ignore_ascii_case(b"text/")),
        };
        if is_read {
            self.buffers.as_sent.extend_from_slice(chunk);
        }
    }

    /// Declares `body`, the bytes shown so far, the beginning of a streamed upload.
    pub(crate) fn begin_upload(&mut self, body: &[u8], held: u64) {
        self.upload = Some(Box::new(Upload::new(&self.buffers.content_type, body, held)));
    }

    /// Drops what has come of the request body.
    pub(crate) fn forget_request_body(&mut self) {
        self.buffers.as_sent = ByteBuf::new();
    }

    /// The body is a streamed upload.
    pub(crate) fn is_upload(&self) -> bool {
        self.upload.is_some()
    }

    /// The next piece of it.
    pub(crate) fn upload(&mut self, piece: &[u8]) {
        if let Some(upload) = &mut self.upload {
            upload.feed(&mut self.buffers.analysis, &self.semantic.detectors, piece);
        }
    }

    /// It has come to its end.
    pub(crate) fn end_upload(&mut self) -> Result<(), Unreadable> {
        match self.upload.take() {
            Some(upload) => upload.end(&mut self.buffers.analysis, &self.semantic.detectors),
            None => Ok(()),
        }
    }

    /// Bytes of memory for the body of the response, and for what decoding makes of both bodies.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffers.body.held_bytes()
            + self.buffers.as_sent.held_bytes()
            + self.buffers.analysis.held_bytes()
    }

    /// The request body, `body`, has been shown. `truncated`: there is more of it. `arguments` are those that
    /// the engine found, if nothing else is in it.
    pub(crate) fn request_end(
        &mut self,
        body: &[u8],
        truncated: bool,
        wire_bytes: u64,
        arguments: Option<BodyArguments<'_>>,
    ) {
        let Buffers { analysis, content_type, as_sent, .. } = &mut *self.buffers;
        let detectors = &self.semantic.detectors;
        let as_sent = std::mem::take(as_sent);
        if let Some(upload) = &mut self.upload {
            upload.feed(analysis, detectors, body);
            return analysis.request_body_beginning(detectors, content_type, &as_sent);
        }
        analysis.set_wire_bytes(usize::try_from(wire_bytes).unwrap_or(usize::MAX));
        match truncated {
            false => match arguments {
                Some(found) => {
                    let mut arguments = found.iter();
                    let parsed = Parsed { processor: found.processor, arguments: &mut arguments };
                    analysis.parsed_request_body(detectors, content_type, body, parsed);
                }
                None => analysis.request_body(detectors, content_type, body),
            },
            true => analysis.request_body_beginning(detectors, content_type, body),
        }
        if !as_sent.is_empty() {
            analysis.set_wire_bytes(as_sent.len());
            match truncated {
                false => analysis.request_body(detectors, content_type, &as_sent),
                true => analysis.request_body_beginning(detectors, content_type, &as_sent),
            }
        }
        // The upstream may take long; what was found has its own copy.
        analysis.shrink();
    }

    /// Compares the body of the request with what the API declares: all of it, or none where it is not there
    /// as a whole.
    pub(crate) fn declared_body(&mut self, body: Option<&[u8]>) {
        if let Some(declared) = &mut self.declared {
            declared.request_end(body, &mut self.buffers.analysis, &self.semantic.detectors);
        }
    }

    pub(crate) fn response_head(&mut self, head: &ResponseHead) {
        if let Some(fields) = &mut self.fields {
            fields.response_head(head);
        }
        let Buffers { analysis, .. } = &mut *self.buffers;
        if let Some(declared) = &mut self.declared {
            declared.response_head(head, analysis, &self.semantic.detectors);
        }
        if self.semantic.policy.is_off(Class::Leak) {
            return;
        }
        analysis.response_head(&self.semantic.detectors, head.fields());
        let media_type = head.header("content-type").next().unwrap_or_default();
        self.response = Some((is_text(media_type), head.content_length().unwrap_or(0)));
    }

    /// Decides whether the body of the response is to be shown; the error is the reason why not.
    pub(crate) fn wants_response_body(&self, limit_bytes: u64) -> Result<(), NotInspected> {
        if self.declared.as_ref().is_some_and(|declared| declared.wants_answer()) {
            return Ok(());
        }
        self.looks_at_response(limit_bytes)
    }

    /// The same for the detectors alone.
    fn looks_at_response(&self, limit_bytes: u64) -> Result<(), NotInspected> {
        match self.response {
            _ if !self.semantic.response_bodies => Err(NotInspected::BodyAccessOff),
            None => Err(NotInspected::BodyAccessOff),
            Some((false, _)) => Err(NotInspected::MediaType),
            Some((true, length)) if length > limit_bytes => Err(NotInspected::OverLimit),
            Some((true, _)) => Ok(()),
        }
    }

    /// The body of the response, as far as it was shown.
    pub(crate) fn response_shown(&self) -> &[u8] {
        &self.buffers.body
    }

    pub(crate) fn response_wait(&self) -> Duration {
        self.semantic.response_wait
    }

    /// The response body has been shown, all of it if it `is_whole`.
    pub(crate) fn response_end(&mut self, is_whole: bool, limit_bytes: u64) {
        let is_looked_at = self.looks_at_response(limit_bytes).is_ok();
        let Buffers { analysis, body, .. } = &mut *self.buffers;
        if is_looked_at {
            analysis.value(&self.semantic.detectors, Location::of(Place::ResponseBody), body);
        }
        if let Some(declared) = &mut self.declared {
            let shown: &[u8] = body;
            declared.response_end(is_whole.then_some(shown), analysis, &self.semantic.detectors);
        }
    }

    /// Looks for values that are unlike their fields, once the request is there as a whole.
    pub(crate) fn judge_fields(&mut self, rules: impl FnOnce() -> Vec<Evidence>) {
        let SemanticRun { semantic, buffers, host, fields, declared, .. } = self;
        let (analysis, detectors) = (&mut buffers.analysis, &*semantic.detectors);
        let is_own = |name: &[u8]| name.eq_ignore_ascii_case(host) || semantic.policy.is_own_host(name);
        if let Some(fields) = fields {
            fields.judge(analysis, detectors, rules, is_own);
        } else if let Some(declared) = declared
            && declared.judges()
        {
            note_unusual(analysis, detectors, rules);
        }
    }

    /// Has the fields learned of a request that was answered well, unless the detector or, if it is not
    /// `is_clean`, a rule would have refused it. The kinds of findings that they carried are learned anyway.
    /// What would have had it refused is noted with the field, if it was all in one.
    pub(crate) fn learn_fields(
        &self,
        is_clean: bool,
        rules: impl FnOnce() -> Vec<Evidence>,
        client: IpAddr,
        epoch_millis: u64,
    ) {
        let Some(fields) = &self.fields else { return };
        if fields.teach(true, &self.buffers.analysis, client, epoch_millis) {
            return;
        }
        if is_clean && !self.has_verdict() {
            fields.learn(&self.buffers.analysis, client, epoch_millis);
        } else {
            self.learn_refusal(rules, client, epoch_millis);
        }
        if self.has_findings() {
            fields.learn_kinds(true, &self.buffers.analysis, client, epoch_millis);
        }
    }

    /// Has the kinds learned for which a request was refused, if its source is trusted; and of one that the
    /// detector or, if it is not `is_clean`, a rule has refused, the field if it was all in one.
    pub(crate) fn learn_refused(
        &self,
        is_clean: bool,
        rules: impl FnOnce() -> Vec<Evidence>,
        client: IpAddr,
        epoch_millis: u64,
    ) {
        let Some(fields) = &self.fields else { return };
        if fields.teach(false, &self.buffers.analysis, client, epoch_millis) {
            return;
        }
        if !is_clean || self.has_verdict() {
            self.learn_refusal(rules, client, epoch_millis);
        }
        if self.blocked && self.has_findings() {
            fields.learn_kinds(false, &self.buffers.analysis, client, epoch_millis);
        }
    }

    /// The detector would have the request refused, for what it would be in any other site.
    fn has_verdict(&self) -> bool {
        let is_own = |score: &Score| matches!(score.class, Class::Field | Class::Api);
        self.verdict.as_ref().is_some_and(|(score, _)| !is_own(score))
    }

    fn learn_refusal(&self, rules: impl FnOnce() -> Vec<Evidence>, client: IpAddr, epoch_millis: u64) {
        let Some(fields) = &self.fields else { return };
        let analysis = &self.buffers.analysis;
        if let Some(lone) = self.lone_field(&rules()) {
            fields.learn_refused(lone, analysis, client, epoch_millis);
        }
    }

    /// The only field of the request in which the detector or `rules` found anything that counts.
    fn lone_field(&self, rules: &[Evidence]) -> Option<(FieldPlace, &[u8])> {
        let analysis = &self.buffers.analysis;
        let counting = analysis.findings().iter().filter(|found| !found.excluded && !found.is_suppressed());
        let mut lone = None;
        for found in counting {
            let value = analysis.values().get(found.value as usize)?;
            // The whole query and the whole body have what their fields have; the answer is none of the
            // request's doing.
            if matches!(value.place, Place::QueryString | Place::RawBody) || value.place.is_response() {
                continue;
            }
            let here = self.noted(value)?;
            if *lone.get_or_insert(here) != here {
                return None;
            }
        }
        for rule in rules.iter().filter(|rule| rule.weight > 0.0 && !rule.spot.is_of_many()) {
            let has = |(place, name): (FieldPlace, &[u8])| rule.spot.has(place.place(), name);
            match lone {
                Some(here) if has(here) => {}
                Some(_) => return None,
                None => {
                    let fields = analysis.noted_fields();
                    lone = fields.iter().map(|(field, name)| (field.place, name)).find(|here| has(*here));
                    lone?;
                }
            }
        }
        lone
    }

    /// The field of the request that this value is of.
    fn noted<'a>(&'a self, value: &'a portcullis_semantic::Value) -> Option<(FieldPlace, &'a [u8])> {
        if let Some(place) = FieldPlace::of(value.place) {
            return Some((place, &value.name));
        }
        let mut noted = self.buffers.analysis.noted_fields().iter();
        let (field, name) = if let Place::Header | Place::Cookie = value.place {
            noted.find(|(field, name)| {
                field.place.place() == value.place && name.eq_ignore_ascii_case(&value.name)
            })?
        } else if let Place::Path | Place::PathSegment = value.place {
            let has_code = |field: &portcullis_learn::Field| !field.carried.shape.syntax.is_empty();
            let mut segments =
                noted.filter(|(field, _)| field.place == FieldPlace::PathSegment && has_code(field));
            let first = segments.next()?;
            segments.next().is_none().then_some(first)?
        } else {
            return None;
        };
        Some((field.place, name))
    }

    /// Notes what would have become of the request, which was stopped or would have been, if the kinds on
    /// trial had counted for nothing; `is_matched` if rules object to it, too. To be called last: they count
    /// for nothing from now on.
    pub(crate) fn try_openings(&mut self, is_matched: bool, client: IpAddr, epoch_millis: u64) {
        let stops = |(score, phase): &(Score, Phase)| {
            *phase <= Phase::RequestBody && self.action(score) == ClassAction::Block
        };
        let is_tried = self.fields.as_ref().is_some_and(|fields| fields.tries());
        if !is_tried || !self.verdict.as_ref().is_some_and(stops) {
            return;
        }
        let opened = self.buffers.analysis.open_on_trial();
        if opened.is_empty() {
            return;
        }
        let analysis = &self.buffers.analysis;
        let counts = |found: &&portcullis_semantic::Finding| !found.excluded && !found.is_suppressed();
        // What nothing is left of, the rules add to no more.
        self.evidence.retain(|(class, value, _)| {
            let mut left = analysis.findings().iter().filter(counts);
            left.any(|found| found.class == *class && found.value == *value)
        });
        let scores = analysis.scores(&self.semantic.detectors);
        let mut of_request = scores.filter(|score| !self.place(score).is_response());
        let is_stopped =
            of_request.any(|score| self.over(&score) >= 0.0 && self.action(&score) == ClassAction::Block);
        let is_request = |found: &portcullis_semantic::Finding| {
            let value = analysis.values().get(found.value as usize);
            value.is_some_and(|value| !value.place.is_response())
        };
        let result = match () {
            () if is_stopped => TryResult::Stopped,
            () if is_matched || analysis.findings().iter().filter(counts).any(is_request) => TryResult::Lost,
            () => TryResult::Passes,
        };
        if let Some(fields) = &self.fields {
            fields.note_trial(&opened, result, &self.buffers.analysis, (client, epoch_millis));
        }
    }

    /// True if there is anything that others could add to.
    pub(crate) fn has_findings(&self) -> bool {
        !self.buffers.analysis.findings().is_empty()
    }

    /// Takes what the rules found and the points of inspection agents as evidence.
    pub(crate) fn weigh_others(&mut self, rules: &[Evidence], agents: u32) {
        self.evidence.clear();
        let analysis = &self.buffers.analysis;
        // Where nothing weighs anything the rules add to nothing.
        for finding in analysis.findings().iter().filter(|finding| !finding.is_suppressed()) {
            let is_known =
                |(class, value, _): &(Class, u32, f32)| *class == finding.class && *value == finding.value;
            let Some(value) = analysis.values().get(finding.value as usize) else { continue };
            if !self.evidence.iter().any(is_known) {
                let about = |rule: &&Evidence| {
                    rule.is_about(finding.class) && rule.spot.has(value.place, &value.name)
                };
                let weight = rules.iter().filter(about).map(|rule| rule.weight).sum();
                self.evidence.push((finding.class, finding.value, evidence::points(weight, agents)));
            }
        }
    }

    /// The action for the findings up to `phase`, if they pass the threshold.
    pub(crate) fn decide(&mut self, phase: Phase, is_blocking: bool) -> Option<Interruption> {
        let analysis = &self.buffers.analysis;
        if analysis.findings().is_empty() {
            return None;
        }
        // Findings in a request were decided on before its response came.
        let is_response = phase > Phase::RequestBody;
        let passing = || {
            let scores = analysis.scores(&self.semantic.detectors).filter(|score| self.over(score) >= 0.0);
            scores.filter(|score| self.place(score).is_response() == is_response)
        };
        let worst = |action| {
            let of_action = passing().filter(|score| self.action(score) == action);
            of_action.max_by(|a, b| self.over(a).total_cmp(&self.over(b)))
        };
        let (score, blocks) = match worst(ClassAction::Block) {
            Some(score) => (score, is_blocking),
            None => (worst(ClassAction::Log)?, false),
        };
        // A detector that only detects continues; what the body has may be worse. An attack tells more than
        // what it leads to.
        if blocks || !is_response || self.verdict.is_none() {
            self.verdict = Some((score, phase));
        }
        self.blocked = blocks;
        blocks.then_some(Interruption::Deny { status: STATUS })
    }

    /// The class that passed the threshold, and the phase.
    pub(crate) fn decision(&self) -> Option<(Class, Phase)> {
        self.verdict.map(|(score, phase)| (score.class, phase))
    }

    /// All that passed a threshold is only reported, and no attack: the request is not as the site's API
    /// declares it, or a field carries another type than before.
    pub(crate) fn has_deviations_alone(&self) -> bool {
        let mut passing = self
            .buffers
            .analysis
            .scores(&self.semantic.detectors)
            .filter(|score| self.over(score) >= 0.0 && self.action(score) != ClassAction::Off);
        passing.all(|score| {
            let is_deviation =
                score.class == Class::Api || score.class == Class::Field && !self.is_severe(&score);
            is_deviation && self.action(&score) == ClassAction::Log
        })
    }

    /// The request was blocked for what was found.
    pub(crate) fn has_blocked(&self) -> bool {
        self.blocked
    }

    /// The cookies that alone had the request blocked: the names of what was found in them, such as `prefs`
    /// or `prefs.next`. Empty: something else was found, too, or nothing was blocked.
    pub(crate) fn blocked_cookies(&self) -> Vec<&[u8]> {
        let analysis = &self.buffers.analysis;
        let blocks = |score: &Score| self.over(score) >= 0.0 && self.action(score) == ClassAction::Block;
        let mut names: Vec<&[u8]> = Vec::new();
        for score in analysis.scores(&self.semantic.detectors).filter(|score| self.blocked && blocks(score)) {
            let value = &analysis.values()[score.value as usize];
            if value.place == Place::Cookie {
                // Without a name it is of the whole header, and of one of those with a name, too.
                if !value.name.is_empty() && !names.contains(&&*value.name) {
                    names.push(&value.name);
                }
            } else if !value.place.is_response() {
                return Vec::new();
            }
        }
        names
    }

    /// The answer expires cookies, which the reason is to say.
    pub(crate) fn note_expired(&mut self) {
        self.expires = true;
    }

    /// The verdict in a sentence: `SQL injection in query:id: a condition that is always true`.
    pub(crate) fn reason(&self) -> Option<String> {
        let (score, _) = self.verdict?;
        let analysis = &self.buffers.analysis;
        let value = analysis.values().get(score.value as usize)?;
        let detectors = &self.semantic.detectors;
        let telling = analysis
            .findings_of(detectors, &score)
            .filter(|finding| !finding.excluded)
            .max_by(|a, b| detectors.points(a).total_cmp(&detectors.points(b)));
        let why = telling.map_or(String::new(), |finding| format!(": {}", finding.kind.reason));
        let expires = if self.expires { "; refused again and again, the cookie is expired" } else { "" };
        Some(format!("{} in {value}{why}{expires}", score.class.title()))
    }

    /// Bytes of uploaded texts that were searched for code only.
    pub(crate) fn bytes_left_out(&self) -> u64 {
        self.buffers.analysis.bytes_left_out()
    }

    /// Bytes of bodies that are files, and were searched for code only.
    pub(crate) fn bytes_of_files(&self) -> u64 {
        self.buffers.analysis.bytes_of_files()
    }

    /// Bytes of messages of gRPC whose coding is not undone.
    pub(crate) fn bytes_of_codings(&self) -> u64 {
        self.buffers.analysis.bytes_of_codings()
    }

    /// The work that the detectors did, and how much is allowed.
    pub(crate) fn work(&self) -> (u64, u64) {
        self.buffers.analysis.work()
    }

    /// Bytes of values for which the allowance of work did not suffice.
    pub(crate) fn bytes_cut(&self) -> u64 {
        self.buffers.analysis.bytes_cut()
    }

    /// The findings that an event tells, those of values over their threshold told apart from others.
    pub(crate) fn findings(&self) -> Told {
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        let mut deciding = Vec::new();
        for score in analysis.scores(detectors).filter(|score| self.outcome(score).passes()) {
            deciding.extend(analysis.findings_of(detectors, &score).map(std::ptr::from_ref));
        }
        deciding.sort();
        let is_deciding =
            |found: &portcullis_semantic::Finding| deciding.binary_search(&std::ptr::from_ref(found)).is_ok();
        let is_excused = |found: &portcullis_semantic::Finding| {
            found.suppressed_by.is_some() && (found.is_suppressed() || !is_deciding(found))
        };
        let (mut few, mut rows) = (0, Vec::new());
        let (mut findings, left): (Vec<_>, Vec<_>) = analysis.findings().iter().partition(|found| {
            if is_excused(found) {
                // One of each exception tells what it is; many of one would leave no room for others.
                let is_new = !rows.contains(&found.suppressed_by);
                rows.extend(is_new.then_some(found.suppressed_by));
                return is_new && rows.len() <= limits::FINDINGS_SUPPRESSED_MAX;
            }
            is_deciding(found) || {
                few += 1;
                few <= limits::FINDINGS_BELOW_MAX
            }
        });
        let suppressed = left.iter().filter(|found| is_excused(found)).count();
        if findings.len() > limits::FINDINGS_MAX {
            // An event holds so many: those that tell most, and what counts before what does not.
            findings.sort_by(|a, b| {
                let by_points = detectors.points(b).total_cmp(&detectors.points(a));
                is_excused(a).cmp(&is_excused(b)).then(by_points)
            });
        }
        Told {
            findings: findings
                .into_iter()
                .map(|found| Finding { below: !is_deciding(found), ..self.describe(found) })
                .collect(),
            below: u32::try_from(left.len() - suppressed).unwrap_or(u32::MAX),
            suppressed: u32::try_from(suppressed).unwrap_or(u32::MAX),
            dropped: analysis.findings_dropped(),
        }
    }

    /// The scores of all values, highest over the threshold first.
    pub(crate) fn scores(&self) -> Vec<SemanticScore> {
        self.sorted_scores()
            .iter()
            .take(limits::SEMANTIC_SCORES_MAX)
            .map(|score| self.describe_score(score))
            .collect()
    }

    /// The classes with findings, each once, with what came of the worst of them.
    pub(crate) fn outcomes(&self) -> Vec<(Class, FindingOutcome)> {
        let mut outcomes: Vec<(Class, FindingOutcome)> = Vec::new();
        for score in self.buffers.analysis.scores(&self.semantic.detectors) {
            let outcome = self.outcome(&score);
            match outcomes.iter_mut().find(|(class, _)| *class == score.class) {
                Some((_, known)) => *known = (*known).min(outcome),
                None => outcomes.push((score.class, outcome)),
            }
        }
        outcomes
    }

    /// The explanation of each value with findings, for each class, the worst first.
    pub(crate) fn explain(&self) -> Vec<ScoredValue> {
        let (analysis, detectors) = (&self.buffers.analysis, &self.semantic.detectors);
        let terms = |score: &Score| {
            let mut terms = analysis.terms(detectors, score);
            let rules = self.added(score);
            if rules > 0.0 {
                terms.push((ScoredValue::ADDED.to_owned(), rules));
            }
            terms
        };
        let explain = |score: Score| ScoredValue {
            score: self.describe_score(&score),
            terms: terms(&score),
            findings: analysis.findings_of(detectors, &score).map(|found| self.describe(found)).collect(),
        };
        self.sorted_scores().into_iter().map(explain).collect()
    }

    fn describe(&self, found: &portcullis_semantic::Finding) -> Finding {
        let value = &self.buffers.analysis.values()[found.value as usize];
        Finding {
            class: found.class,
            kind: found.kind.id.into(),
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            decoded: found.layers.iter().map(|layer| layer.name().into()).collect(),
            span: Some(found.span),
            evidence: text(&found.evidence, limits::VALUE_BYTES_MAX),
            count: 1,
            below: false,
            mentioned: found.mentioned,
            suppressed_by: found.suppressed_by.and_then(exceptions::find).map(|row| SuppressedBy {
                exception: row.id.into(),
                reason: match row.id {
                    LEARNED_ROW => self.carried_by(value, found.kind.id).into(),
                    _ => row.why.into(),
                },
            }),
            points: self.semantic.detectors.points(found),
            reason: found.kind.reason.into(),
            reference: found.kind.reference.into(),
        }
    }

    /// Who has shown that a field carries findings of this kind.
    fn carried_by(&self, value: &portcullis_semantic::Value, kind: &str) -> String {
        let place = FieldPlace::of(value.place);
        let opened =
            place.and_then(|place| self.buffers.analysis.noted_fields().opened(place, &value.name, kind));
        let evidence = opened.map_or("", |opened| &opened.evidence);
        format!("the field carries it: {evidence}")
    }

    fn describe_score(&self, score: &Score) -> SemanticScore {
        let value = &self.buffers.analysis.values()[score.value as usize];
        SemanticScore {
            class: score.class,
            place: value.place,
            name: text(&value.name, limits::TARGET_NAME_BYTES_MAX),
            points: score.points + self.added(score),
            threshold: self.semantic.detectors.model(score.detector).threshold(self.semantic.level),
            outcome: self.outcome(score),
        }
    }

    fn sorted_scores(&self) -> Vec<Score> {
        let mut scores: Vec<Score> = self.buffers.analysis.scores(&self.semantic.detectors).collect();
        scores.sort_by(|a, b| self.over(b).total_cmp(&self.over(a)));
        scores
    }

    /// The points that rules and agents add to a score.
    fn added(&self, score: &Score) -> f32 {
        let mut evidence = self.evidence.iter();
        let found = evidence.find(|(class, value, _)| *class == score.class && *value == score.value);
        found.map_or(0.0, |(.., added)| *added)
    }

    /// The score less the threshold, with what the rules add.
    fn over(&self, score: &Score) -> f32 {
        score.over(self.semantic.level) + self.added(score)
    }

    pub(crate) fn outcome(&self, score: &Score) -> FindingOutcome {
        let over = self.over(score);
        if over < 0.0 {
            return match over + score.excluded < 0.0 {
                true => FindingOutcome::Below,
                false => FindingOutcome::Excluded,
            };
        }
        match self.action(score) {
            ClassAction::Off => FindingOutcome::Excluded,
            ClassAction::Block if self.blocked => FindingOutcome::Blocked,
            ClassAction::Block | ClassAction::Log => FindingOutcome::Detected,
        }
    }

    /// The action for `score` if it passes the threshold.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a class without a row of its own blocks")]
    fn action(&self, score: &Score) -> ClassAction {
        let value = &self.buffers.analysis.values()[score.value as usize];
        let said = self.semantic.policy.action(score.class, value.place, &value.name, &self.elsewhere);
        if score.class == Class::Redirect && !self.leads_elsewhere(score) {
            return ClassAction::Off;
        }
        said.unwrap_or_else(|| match score.class {
            // A page that is not shown costs more than an error message that is; a key or a web shell costs
            // everything.
            Class::Leak if !self.is_severe(score) => ClassAction::Log,
            // Letters where numbers were are no attack.
            Class::Field if !self.blocks_unusual() || !self.is_severe(score) => ClassAction::Log,
            Class::Api if !self.blocks_deviation(score) => ClassAction::Log,
            // Many sites redirect elsewhere on purpose, and none writes such an address so that only browsers
            // see its host. A list of the hosts that are allowed excludes all others.
            Class::Redirect if self.semantic.policy.hosts.is_empty() && !self.is_disguised(score) => {
                ClassAction::Log
            }
            _ => ClassAction::Block,
        })
    }

    fn blocks_unusual(&self) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.blocks())
    }

    fn blocks_deviation(&self, score: &Score) -> bool {
        let Some(declared) = &self.declared else { return false };
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let place = self.place(score);
        let counts = |found: &portcullis_semantic::Finding| !found.excluded && !found.is_suppressed();
        findings.any(|found| counts(found) && declared.blocks(found.kind.id, place))
    }

    /// The host that a redirect names, the finding's evidence, is neither the one that is asked nor one to
    /// which pages may lead.
    fn leads_elsewhere(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let is_own =
            |host: &[u8]| host.eq_ignore_ascii_case(&self.host) || self.semantic.policy.is_own_host(host);
        findings.any(|found| !found.excluded && !found.is_suppressed() && !is_own(&found.evidence))
    }

    /// The address is written so that who checks it sees no other host.
    fn is_disguised(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        findings.any(|found| !found.excluded && redirect::is_disguised(found.kind))
    }

    fn is_severe(&self, score: &Score) -> bool {
        let mut findings = self.buffers.analysis.findings_of(&self.semantic.detectors, score);
        let counts = |found: &portcullis_semantic::Finding| {
            !found.mentioned && !found.excluded && !found.is_suppressed()
        };
        findings.any(|found| counts(found) && found.kind.severity == Severity::Critical)
    }

    fn place(&self, score: &Score) -> Place {
        self.buffers.analysis.values()[score.value as usize].place
    }
}

/// Values for which the policy says the same: those that are excluded push no other ones out of the findings.
#[derive(Debug)]
struct Actions {
    policy: Arc<SemanticPolicy>,
    elsewhere: Vec<bool>,
}

impl Judge for Actions {
    fn group(&self, class: Class, place: Place, name: &[u8]) -> u8 {
        match self.policy.action(class, place, name, &self.elsewhere) {
            None => 0,
            Some(ClassAction::Block) => 1,
            Some(ClassAction::Log) => 2,
            Some(ClassAction::Off) => 3,
        }
    }

    fn excludes(&self, class: Class, kind: &str, place: Place, name: &[u8]) -> bool {
        self.policy.excludes(class, kind, place, name, &self.elsewhere)
    }
}

/// True for media types of documents and data that an application writes; nothing said is as good as text.
fn is_text(media_type: &[u8]) -> bool {
    let name = media_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let is_quiet =
        [&b"text/css"[..], b"text/javascript", b"text/event-stream", b"text/vcard", b"text/calendar"];
    let is_data = [
        &b"application/json"[..],
        b"application/xml",
        b"application/x-httpd-php",
        b"application/x-php",
        b"application/x-sh",
        b"application/x-pem-file",
        b"application/pkcs8",
        b"application/sql",
        b"application/yaml",
    ];
    let is_format = |end: &[u8]| name.starts_with(b"application/") && name.ends_with(end);
    name.is_empty()
        || name.starts_with(b"text/") && !is_quiet.contains(&name.as_slice())
        || is_data.contains(&name.as_slice())
        || is_format(b"+json")
        || is_format(b"+xml")
}
