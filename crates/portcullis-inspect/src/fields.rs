//! Learned fields of a site, applied to one exchange: values are judged before the verdict on
//! the request, and learned once it has been answered well.

use std::net::IpAddr;
use std::sync::Arc;

use portcullis_http::message::{BodyFraming, RequestHead, ResponseHead};
use portcullis_learn::{FieldPlace, KindIn, KindNews, Site, Source, Standing, TryResult, Unusual, is_within};
use portcullis_semantic::detectors::field::{self, Opens};
use portcullis_semantic::limits::NAME_BYTES_MAX;
use portcullis_semantic::{Analysis, Detectors, Issuer, KindId, LEARNED_ROW, Location, Value};
use portcullis_types::{Class, Place};

use crate::issued::IssuedTo;
use crate::own_fields;
use crate::pattern::{glob, is_plain};
use crate::weighing::Evidence;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;

/// Treatment of values that are unlike their field.
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
    /// Knowledge, and what waits to be learned.
    pub site: Arc<Site>,
    /// Treatment of values that are unlike their field.
    pub unusual: UnusualAction,
    /// Requests that are answered well are learned.
    pub learns: bool,
    /// The kinds of findings that fields may be opened for.
    pub opens: Opens,
    /// Those whose work teaches at once.
    pub trusted: Arc<TrustedSources>,
}

/// Clients whose work teaches at once, as the operator vouches for it.
#[derive(Clone, Debug, Default)]
pub struct TrustedSources {
    /// Networks: an address and the bits of its prefix.
    pub networks: Vec<(IpAddr, u8)>,
    /// A field of the answers that they get, and a pattern of its value. The upstream writes it: no client
    /// can.
    pub answer: Option<(String, String)>,
    /// All of them, for findings that their requests carry: an operator has named the requests one by one.
    pub vouches_for_all: bool,
}

impl TrustedSources {
    fn has(&self, client: IpAddr) -> bool {
        self.networks.iter().any(|network| is_within(client, *network))
    }
}

/// The fields of one request.
#[derive(Debug)]
pub(crate) struct FieldsRun {
    policy: SiteFields,
    session: Option<u32>,
    standing: Standing,
    /// The request has a body.
    has_body: bool,
    is_judged: bool,
}

impl FieldsRun {
    pub(crate) fn new(policy: &SiteFields) -> FieldsRun {
        FieldsRun {
            policy: policy.clone(),
            session: None,
            standing: Standing::Anybody,
            has_body: false,
            is_judged: false,
        }
    }

    pub(crate) fn request_head(
        &mut self,
        head: &RequestHead,
        client: IpAddr,
        issued: Option<&Arc<IssuedTo>>,
        analysis: &mut Analysis,
    ) {
        self.has_body = head.framing() != BodyFraming::None;
        let shown = Session::of(head, issued);
        self.session = shown.as_ref().map(|shown| portcullis_learn::session(shown.text));
        self.standing = match shown {
            _ if self.policy.trusted.has(client) => Standing::Trusted,
            Some(shown) if shown.is_of_site(issued) => Standing::LoggedIn,
            _ => Standing::Anybody,
        };
        analysis.note_fields();
        let knowledge = self.policy.site.knowledge();
        // As for other exclusions: not where servers may disagree on the path.
        if knowledge.has_openings() && is_plain(head.path()) {
            analysis.open_fields(self.policy.opens);
        }
        // What is learned is asked, too: whether there is anything new in what is sent.
        let is_asked = self.policy.unusual != UnusualAction::Off || knowledge.has_openings();
        if self.policy.learns || is_asked && !knowledge.is_empty() {
            analysis.fields().judge_by(knowledge, head.method(), head.path());
        }
    }

    /// Notes what an application sends in fields of the head, behind the parameters of the query: these stand
    /// in the same order in most requests, whatever the client.
    pub(crate) fn note_head(
        &self,
        head: &RequestHead,
        issued: Option<&Arc<IssuedTo>>,
        analysis: &mut Analysis,
    ) {
        let issuer = issued.map(|issued| &**issued as &dyn Issuer);
        own_fields::note(head, issuer, analysis.fields());
    }

    pub(crate) fn response_head(&mut self, head: &ResponseHead) {
        if let Some((name, pattern)) = &self.policy.trusted.answer
            && head.header(name).any(|value| glob(pattern.as_bytes(), value, false))
        {
            self.standing = Standing::Trusted;
        }
    }

    /// True if a value unlike its field may be refused.
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
        if self.policy.unusual == UnusualAction::Off {
            // What is learned is to know whether it is anything new.
            analysis.fields().unusual();
            return;
        }
        let count = note_unusual(analysis, detectors, rules);
        if self.policy.learns && count > 0 {
            self.policy.site.count_unusual(count as u64);
        }
    }

    /// Has the fields learned of a request that was answered well.
    pub(crate) fn learn(&self, analysis: &Analysis, client: IpAddr, epoch_millis: u64) {
        if self.policy.learns && self.is_judged {
            let source = self.source(client, epoch_millis);
            let fields = analysis.noted_fields();
            let (method, path) = fields.request();
            self.policy.site.observe(source, method, path, fields);
        }
    }

    fn source(&self, client: IpAddr, epoch_millis: u64) -> Source {
        Source {
            network: portcullis_learn::network(client),
            session: self.session,
            day: u32::try_from(epoch_millis / DAY_MILLIS).unwrap_or(u32::MAX),
            standing: self.standing,
        }
    }

    /// The same for what was found in its fields, for which an operator may vouch.
    fn source_of_findings(&self, client: IpAddr, epoch_millis: u64) -> Source {
        let source = self.source(client, epoch_millis);
        match self.policy.trusted.vouches_for_all {
            true => Source { standing: Standing::Trusted, ..source },
            false => source,
        }
    }

    /// Notes that a request was refused, or would be, for what one field carried and nothing else.
    pub(crate) fn learn_refused(
        &self,
        (place, name): (FieldPlace, &[u8]),
        analysis: &Analysis,
        client: IpAddr,
        epoch_millis: u64,
    ) {
        if self.policy.learns {
            let source = self.source_of_findings(client, epoch_millis);
            let (method, path) = analysis.noted_fields().request();
            let found = [KindIn { place, name, kind: "" }];
            self.policy.site.observe_kinds(source, method, path, &found, KindNews::Refused);
        }
    }

    /// Has the kinds of findings learned that the fields of a request carried. It `passed`, or was refused:
    /// then it teaches only if its source is trusted.
    pub(crate) fn learn_kinds(&self, passed: bool, analysis: &Analysis, client: IpAddr, epoch_millis: u64) {
        let source = self.source_of_findings(client, epoch_millis);
        let teaches = match passed {
            true => source.standing != Standing::Anybody,
            false => source.standing == Standing::Trusted,
        };
        if !self.policy.learns || !teaches {
            return;
        }
        let (method, path) = analysis.noted_fields().request();
        let found = self.kinds(analysis);
        self.policy.site.observe_kinds(source, method, path, &found, KindNews::Carried);
    }

    /// The kinds of findings in fields that these may be opened for.
    fn kinds<'a>(&self, analysis: &'a Analysis) -> Vec<KindIn<'a>> {
        let counts = |found: &&portcullis_semantic::Finding| {
            let is_learned = found.suppressed_by == Some(LEARNED_ROW);
            (is_learned || !found.is_suppressed()) && self.policy.opens.allows(found.class, found.kind)
        };
        let mut found: Vec<KindIn<'_>> = Vec::new();
        for finding in analysis.findings().iter().filter(counts) {
            let Some(value) = analysis.values().get(finding.value as usize) else { continue };
            let Some(place) = FieldPlace::of(value.place) else { continue };
            let kind = KindIn { place, name: &value.name, kind: finding.kind.id };
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        found
    }

    /// Hands a request over to the session that its client teaches, if there is one: then it teaches nothing
    /// else. One that was refused only counts.
    pub(crate) fn teach(&self, passed: bool, analysis: &Analysis, client: IpAddr, epoch_millis: u64) -> bool {
        let FieldsRun { policy, standing, .. } = self;
        let session = policy.learns.then(|| policy.site.session(client, *standing, epoch_millis)).flatten();
        let Some(session) = session else { return false };
        if !passed {
            session.count_refused();
        } else if self.is_judged {
            let fields = analysis.noted_fields();
            let source = self.source(client, epoch_millis);
            session.observe(source, fields.request(), fields, &self.kinds(analysis));
        }
        true
    }

    /// True if requests that are stopped are to tell what would have become of them.
    pub(crate) fn tries(&self) -> bool {
        self.policy.learns && (self.is_judged || !self.has_body)
    }

    /// Notes what would have become of a request, had these kinds counted for nothing.
    pub(crate) fn note_trial(
        &self,
        found: &[(FieldPlace, Box<[u8]>, &'static str)],
        result: TryResult,
        analysis: &Analysis,
        (client, epoch_millis): (IpAddr, u64),
    ) {
        let found: Vec<_> =
            found.iter().map(|(place, name, kind)| KindIn { place: *place, name, kind }).collect();
        let source = self.source(client, epoch_millis);
        let news = KindNews::Tried(result);
        let (method, path) = analysis.noted_fields().request();
        self.policy.site.observe_kinds(source, method, path, &found, news);
    }
}

/// Notes the values that are unlike their fields; their number.
pub(crate) fn note_unusual(
    analysis: &mut Analysis,
    detectors: &Detectors,
    rules: impl FnOnce() -> Vec<Evidence>,
) -> usize {
    let found = analysis.fields().unusual();
    if found.is_empty() {
        return 0;
    }
    let rules = rules();
    let of_kind = |(place, mut name, unusual): (FieldPlace, Vec<u8>, Unusual)| {
        name.truncate(NAME_BYTES_MAX);
        let is_it = |value: &Value| {
            if let FieldPlace::PathSegment = place {
                matches!(value.place, Place::Path | Place::PathSegment)
            } else if let FieldPlace::Header | FieldPlace::Cookie = place {
                value.place == place.place() && value.name.eq_ignore_ascii_case(&name)
            } else {
                FieldPlace::of(value.place) == Some(place) && *value.name == *name
            }
        };
        let kind = kind_of(place, &unusual, || {
            let is_counted = analysis.findings().iter().any(|found| {
                let is_there = analysis.values().get(found.value as usize).is_some_and(is_it);
                is_there && found.class != Class::Api && !found.excluded && !found.is_suppressed()
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
    found.len()
}

/// Values of one request that are noted as unlike their fields.
const UNUSUAL_MAX: usize = 32;

/// Which finding it is. Bytes of code alone say little where every request to the site has the field:
/// otherwise a change of a script, which may be another party's, would have all visitors refused.
fn kind_of(place: FieldPlace, unusual: &Unusual, is_suspicious: impl FnOnce() -> bool) -> KindId {
    match () {
        () if !unusual.syntax.is_empty() && !place.is_of_site() => field::SYNTAX,
        () if is_suspicious() => field::SUSPICIOUS,
        () => field::UNUSUAL,
    }
}

/// A value of a cookie that nobody guesses has so many bytes.
const UNGUESSABLE_BYTES_MIN: usize = 20;

/// Signs of a session in a request: credentials, and cookies that are called so. Where the site keeps
/// what it issues, also a cookie of another name, if the site has issued it and nobody could guess it.
struct Session<'h> {
    text: &'h [u8],
    /// Name and value, if it is a cookie.
    cookie: Option<(&'h [u8], &'h [u8])>,
}

impl Session<'_> {
    fn of<'h>(head: &'h RequestHead, issued: Option<&Arc<IssuedTo>>) -> Option<Session<'h>> {
        if let Some(text) = head.header("authorization").next() {
            return Some(Session { text: text.trim_ascii(), cookie: None });
        }
        let cookies = || {
            let fields = head.header("cookie").flat_map(|cookies| cookies.split(|b| *b == b';'));
            fields.map(<[u8]>::trim_ascii).map(|text| {
                let at = text.iter().position(|b| *b == b'=').unwrap_or(text.len());
                Session { text, cookie: Some((&text[..at], text.get(at + 1..).unwrap_or_default())) }
            })
        };
        let is_called_so = |session: &Session<'_>| {
            let (name, value) = session.cookie.unwrap_or_default();
            has_word(name, &SESSION_WORDS)
                || value.len() >= UNGUESSABLE_BYTES_MIN && has_word(name, &LOGIN_WORDS)
        };
        let is_issued = |session: &Session<'_>| {
            let (name, value) = session.cookie.unwrap_or_default();
            let is_unguessable = value.len() >= UNGUESSABLE_BYTES_MIN && value.iter().any(u8::is_ascii_digit);
            is_unguessable && issued.is_some_and(|issued| issued.has_issued(name, value))
        };
        cookies().find(is_called_so).or_else(|| cookies().find(is_issued))
    }

    /// False if the site keeps what it issues, and has not issued this.
    fn is_of_site(&self, issued: Option<&Arc<IssuedTo>>) -> bool {
        match (issued, self.cookie) {
            (Some(issued), Some((name, value))) => issued.has_issued(name, value),
            _ => true,
        }
    }
}

/// In names of cookies that are sessions.
const SESSION_WORDS: [&[u8]; 4] = [b"sess", b"sid", b"auth", b"token"];
/// In names of cookies that say who has logged in, or, with short values, whether anybody has.
const LOGIN_WORDS: [&[u8]; 2] = [b"login", b"logged"];

fn has_word(name: &[u8], words: &[&[u8]]) -> bool {
    (0..name.len()).any(|at| {
        let here = &name[at..];
        let begins =
            |word: &&[u8]| here.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
        words.iter().any(begins)
    })
}
