//! What a site has learned of its fields, at work on one exchange: values are judged before the verdict on
//! the request, and learned once it has been answered well.

use std::net::IpAddr;
use std::sync::Arc;

use portcullis_http::message::RequestHead;
use portcullis_learn::{FieldPlace, Site, Source, Unusual};
use portcullis_semantic::detectors::field;
use portcullis_semantic::limits::NAME_BYTES_MAX;
use portcullis_semantic::{Analysis, Detectors, KindId, Location, Value};

use crate::weighing::Evidence;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;

/// What happens to values that are unlike their field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnusualAction {
    /// They are not looked for.
    Off,
    /// They are found, and refuse nothing.
    #[default]
    Detect,
    /// Those with signs of code that the field never had, and those in which something else was found, are
    /// refused.
    Block,
}

/// The fields of a site.
#[derive(Clone, Debug)]
pub struct SiteFields {
    /// What is known, and what waits to be learned.
    pub site: Arc<Site>,
    /// What happens to values that are unlike their field.
    pub unusual: UnusualAction,
    /// Requests that are answered well are learned.
    pub learns: bool,
}

/// The fields of one request.
#[derive(Debug)]
pub(crate) struct FieldsRun {
    policy: SiteFields,
    method: Vec<u8>,
    path: Vec<u8>,
    session: Option<u32>,
    is_judged: bool,
}

impl FieldsRun {
    pub(crate) fn new(policy: &SiteFields) -> FieldsRun {
        FieldsRun {
            policy: policy.clone(),
            method: Vec::new(),
            path: Vec::new(),
            session: None,
            is_judged: false,
        }
    }

    pub(crate) fn request_head(&mut self, head: &RequestHead, analysis: &mut Analysis) {
        self.method.extend_from_slice(head.method());
        self.path.extend_from_slice(head.path());
        self.session = session(head);
        analysis.note_fields();
        if self.policy.unusual != UnusualAction::Off {
            let knowledge = self.policy.site.knowledge();
            if !knowledge.is_empty() {
                analysis.fields().judge_by(knowledge, head.method(), head.path());
            }
        }
    }

    /// Whether what is unlike its field may be refused.
    pub(crate) fn blocks(&self) -> bool {
        self.policy.unusual == UnusualAction::Block
    }

    /// Notes the values that are unlike their fields. `rules` tells the matches of rules in the request.
    pub(crate) fn judge(
        &mut self,
        analysis: &mut Analysis,
        detectors: &Detectors,
        rules: impl FnOnce() -> Vec<Evidence>,
        is_own_host: impl Fn(&[u8]) -> bool,
    ) {
        if std::mem::replace(&mut self.is_judged, true) {
            return;
        }
        analysis.fields().set_own_hosts(is_own_host);
        let found = analysis.fields().unusual();
        if found.is_empty() {
            return;
        }
        if self.policy.learns {
            self.policy.site.count_unusual(found.len() as u64);
        }
        let rules = rules();
        let of_kind = |(place, mut name, unusual): (FieldPlace, Vec<u8>, Unusual)| {
            name.truncate(NAME_BYTES_MAX);
            let is_it = |value: &Value| FieldPlace::of(value.place) == Some(place) && *value.name == *name;
            let kind = kind_of(&unusual, || {
                let is_counted = analysis.findings().iter().any(|found| {
                    let is_there = analysis.values().get(found.value as usize).is_some_and(is_it);
                    is_there && !found.excluded && !found.is_suppressed()
                });
                is_counted || rules.iter().any(|rule| rule.spot.has(place.place(), &name))
            });
            (kind, place, name, unusual)
        };
        let mut found: Vec<_> = found.into_iter().map(of_kind).collect();
        // Those that only log push none out that block.
        found.sort_by_key(|(kind, ..)| *kind == field::UNUSUAL);
        for (kind, place, name, unusual) in found.iter().take(UNUSUAL_MAX) {
            let mut evidence = format!("{}; this is one of {}", unusual.evidence, unusual.kind.title());
            if !unusual.syntax.is_empty() {
                evidence.push_str(&format!(" with {}", unusual.syntax));
            }
            let location = Location::new(place.place(), name);
            analysis.note(detectors, location, field::KINDS, *kind, evidence.as_bytes());
        }
    }

    /// Has the fields learned of a request that was answered well.
    pub(crate) fn learn(&self, analysis: &mut Analysis, client: IpAddr, epoch_millis: u64) {
        if !self.policy.learns || !self.is_judged {
            return;
        }
        let day = u32::try_from(epoch_millis / DAY_MILLIS).unwrap_or(u32::MAX);
        let source = Source { network: portcullis_learn::network(client), session: self.session, day };
        self.policy.site.observe(source, &self.method, &self.path, analysis.fields());
    }
}

/// Values of one request that are noted as unlike their fields.
const UNUSUAL_MAX: usize = 32;

fn kind_of(unusual: &Unusual, is_suspicious: impl FnOnce() -> bool) -> KindId {
    match () {
        () if !unusual.syntax.is_empty() => field::SYNTAX,
        () if is_suspicious() => field::SUSPICIOUS,
        () => field::UNUSUAL,
    }
}

/// A hash of what a request shows as its session: credentials, and cookies that are called so.
fn session(head: &RequestHead) -> Option<u32> {
    let is_session = |pair: &[u8]| {
        let name = pair.split(|b| *b == b'=').next().unwrap_or_default().to_ascii_lowercase();
        let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
        has(b"sess") || has(b"sid") || has(b"auth") || has(b"token")
    };
    let cookies = head.header("cookie").flat_map(|cookies| cookies.split(|b| *b == b';'));
    let found = head.header("authorization").chain(cookies.filter(|pair| is_session(pair))).next()?;
    Some(portcullis_learn::session(found.trim_ascii()))
}
