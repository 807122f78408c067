//! Audit settings and state of a transaction: whether it is recorded, which parts its record has, and which
//! values are masked in it.

use portcullis_types::{Span, Variable};

use crate::execution::Execution;
use crate::operator::Captures;
use crate::plan::{Act, Link};
use crate::transaction::Transaction;

/// `SecAuditEngine`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditEngine {
    /// Every transaction is recorded.
    On,
    /// None is.
    #[default]
    Off,
    /// Those that a rule with `auditlog` matched, or whose status is relevant.
    RelevantOnly,
}

/// `SecAuditLogType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLogType {
    /// One file for all records.
    #[default]
    Serial,
    /// A file for each record, and an index.
    Concurrent,
}

/// `SecAuditLogFormat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditLogFormat {
    /// Parts between boundaries.
    #[default]
    Native,
    /// JSON with the names that the compatibility mode asks for.
    Json,
    /// JSON with the names of ModSecurity 2, whatever the mode.
    JsonLegacy,
}

/// `SecAuditLogParts`: a set of letters from A to K; Z, the end of a record, is always there and not in the
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditParts(u16);

impl AuditParts {
    /// The parts that `letters` name; others than A to K are passed over.
    pub fn from_letters(letters: &[u8]) -> AuditParts {
        let bit = |letter: &u8| match letter.to_ascii_uppercase() {
            letter @ b'A'..=b'K' => 1 << (letter - b'A'),
            _ => 0,
        };
        AuditParts(letters.iter().fold(0, |bits, letter| bits | bit(letter)))
    }

    /// True if the part of this upper-case letter is wanted.
    pub fn has(self, letter: u8) -> bool {
        self.0 & AuditParts::from_letters(&[letter]).0 != 0
    }

    /// Both sets.
    pub fn with(self, other: AuditParts) -> AuditParts {
        AuditParts(self.0 | other.0)
    }

    /// This set without `other`.
    pub fn without(self, other: AuditParts) -> AuditParts {
        AuditParts(self.0 & !other.0)
    }
}

impl Default for AuditParts {
    fn default() -> AuditParts {
        AuditParts::from_letters(b"ABCFH")
    }
}

/// `SecAuditLogRelevantStatus`, tried out beforehand on every status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusSet([u64; 16]);

impl StatusSet {
    /// The statuses from 0 to 999 that `wanted` accepts as text.
    pub fn of(wanted: impl Fn(&[u8]) -> bool) -> StatusSet {
        let mut set = StatusSet::default();
        for status in 0..1000u16 {
            if wanted(status.to_string().as_bytes()) {
                set.0[usize::from(status / 64)] |= 1 << (status % 64);
            }
        }
        set
    }

    /// True if `status` is in it.
    pub fn has(&self, status: u16) -> bool {
        self.0.get(usize::from(status / 64)).is_some_and(|bits| bits & (1 << (status % 64)) != 0)
    }
}

/// The `SecAudit...` and `SecDebug...` directives. Paths are as written; the writer of the files resolves
/// them.
#[derive(Clone, Debug, Default)]
pub struct AuditSettings {
    /// `SecAuditEngine`.
    pub engine: AuditEngine,
    /// `SecAuditLogRelevantStatus`.
    pub relevant_status: StatusSet,
    /// `SecAuditLogParts`; default `ABCFHZ`.
    pub parts: AuditParts,
    /// `SecAuditLogType`.
    pub log_type: AuditLogType,
    /// `SecAuditLogFormat`.
    pub format: AuditLogFormat,
    /// `SecAuditLog`.
    pub log: Option<Vec<u8>>,
    /// `SecAuditLog2`.
    pub log2: Option<Vec<u8>>,
    /// `SecAuditLogStorageDir`.
    pub storage_dir: Option<Vec<u8>>,
    /// `SecAuditLogDirMode`; `None` for the default, 0750.
    pub dir_mode: Option<u32>,
    /// `SecAuditLogFileMode`; `None` for the default, 0640.
    pub file_mode: Option<u32>,
    /// `SecSensorId`.
    pub sensor_id: Option<Vec<u8>>,
    /// `SecDebugLog`.
    pub debug_log: Option<Vec<u8>>,
    /// `SecDebugLogLevel`.
    pub debug_level: u8,
    /// Parts that some record may have: those set, and those that a `ctl:auditLogParts` can add. None while
    /// the engine is off and no `ctl:auditEngine` can switch it on. Bodies are kept for these only.
    pub reachable: ReachableParts,
}

/// See [`AuditSettings::reachable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReachableParts {
    /// The request body, as it came.
    pub request_body: bool,
    /// The response body.
    pub response_body: bool,
    /// The texts of matched rules.
    pub rule_text: bool,
    /// Matches of rules that neither log nor ask for a record: these parts, or debug lines, name them.
    pub quiet_matches: bool,
}

/// Actions that steer the audit log and the debug log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditAct {
    /// `ctl:auditEngine`.
    Engine(AuditEngine),
    /// `ctl:auditLogParts=ABC`.
    SetParts(AuditParts),
    /// `ctl:auditLogParts=+E`.
    AddParts(AuditParts),
    /// `ctl:auditLogParts=-E`.
    RemoveParts(AuditParts),
    /// `ctl:debugLogLevel`.
    DebugLevel(u8),
    /// `sanitiseArg`.
    SanitiseArg(Box<[u8]>),
    /// `sanitiseRequestHeader`.
    SanitiseRequestHeader(Box<[u8]>),
    /// `sanitiseResponseHeader`.
    SanitiseResponseHeader(Box<[u8]>),
    /// `sanitiseMatched`.
    SanitiseMatched,
    /// `sanitiseMatchedBytes`: the first and last bytes of a match that stay.
    SanitiseMatchedBytes {
        /// At its beginning.
        keep_first: u8,
        /// At its end.
        keep_last: u8,
    },
}

/// The kind of value that is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HiddenIn {
    /// An argument, of query or body.
    Arg,
    /// A request header.
    RequestHeader,
    /// A response header.
    ResponseHeader,
}

/// A value that must not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The part of the message that holds it.
    pub place: HiddenIn,
    /// Name of the argument or header; its case does not matter.
    pub name: Vec<u8>,
    /// Only these bytes of the value, wherever they occur in it; `None` for all of it.
    pub bytes: Option<HiddenBytes>,
}

/// The part of a value that must not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenBytes {
    /// The bytes.
    pub text: Vec<u8>,
    /// Number of leading bytes that stay visible.
    pub keep_first: u8,
    /// Number of trailing bytes that stay visible.
    pub keep_last: u8,
}

/// The audit settings of one transaction, as its rules have changed them so far.
#[derive(Debug)]
pub struct AuditState {
    /// The audit engine's mode for this transaction.
    pub engine: AuditEngine,
    /// Parts of its record.
    pub parts: AuditParts,
    /// A rule with `auditlog` matched.
    pub relevant: bool,
    /// Level of the debug log.
    pub debug_level: u8,
    /// The masked values, without duplicates.
    pub hidden: Vec<Hidden>,
    /// More had to be hidden than is remembered: all values are.
    pub hide_all: bool,
    /// The bytes that the newest match found, where an action asked for them.
    matched_bytes: Option<Span>,
}

impl AuditState {
    /// Hidden values remembered for one transaction.
    pub const HIDDEN_MAX: usize = 256;

    pub(crate) fn new(settings: &AuditSettings) -> AuditState {
        AuditState {
            engine: settings.engine,
            parts: settings.parts,
            relevant: false,
            debug_level: settings.debug_level,
            hidden: Vec::new(),
            hide_all: false,
            matched_bytes: None,
        }
    }

    fn hide(&mut self, hidden: Hidden) {
        if self.hidden.contains(&hidden) {
            return;
        }
        if self.hidden.len() < AuditState::HIDDEN_MAX {
            self.hidden.push(hidden);
        } else {
            self.hide_all = true;
        }
    }
}

impl Transaction {
    /// The audit settings of this transaction, as far as the rules have set them.
    pub fn audit(&self) -> &AuditState {
        &self.journal.audit
    }

    /// Values of a class with their names, in order of arrival.
    pub fn values_of(&self, class: crate::Class) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.message.store.class(class).map(|id| {
            (
                self.message.store.text(self.message.store.key(id)),
                self.message.store.text(self.message.store.data(id)),
            )
        })
    }

    /// The value of a variable that is no collection.
    pub fn scalar_text(&self, variable: Variable) -> Option<&[u8]> {
        self.message.store.scalar(variable).map(|id| self.message.store.text(self.message.store.data(id)))
    }

    /// The request body as it came, where the audit log may want it.
    pub fn audited_request_body(&self) -> Option<&[u8]> {
        self.message.body.kept()
    }

    /// The key under which a persistent collection was opened.
    pub fn opened(&self, collection: Variable) -> Option<&[u8]> {
        let open = self.vars.open_collections.iter().find(|open| open.collection == collection)?;
        Some(self.message.store.text(open.key))
    }

    /// The `Content-Type` of the request.
    pub fn request_content_type(&self) -> &[u8] {
        self.message.body.content_type()
    }

    /// The parser of the request body.
    pub fn request_body_processor(&self) -> Option<crate::BodyProcessor> {
        self.message.body.processor()
    }
}

impl Execution<'_> {
    /// Remembers which bytes of `form` matched, if an action of `link` wants to hide them.
    pub(crate) fn note_matched_bytes(
        &mut self,
        link: &Link,
        form: Span,
        argument: &[u8],
        captures: &Captures,
    ) {
        let wants = |act: &Act| matches!(act, Act::Audit(AuditAct::SanitiseMatchedBytes { .. }));
        if !link.acts.iter().any(wants) {
            return;
        }
        let located = || {
            let text = self.message.store.text(form);
            (!link.negated).then(|| link.operator.locate(text, argument)).flatten()
        };
        self.journal.audit.matched_bytes = captures.groups[0]
            .or_else(located)
            .map(|found| Span { start: form.start + found.start, end: form.start + found.end });
    }

    /// Carries out `act`; the match it belongs to is `self.vars.matched`.
    pub(crate) fn run_audit_act(&mut self, act: &AuditAct) {
        let named = |place, name: &[u8]| Hidden { place, name: name.to_vec(), bytes: None };
        match act {
            AuditAct::Engine(engine) => self.journal.audit.engine = *engine,
            AuditAct::SetParts(parts) => self.journal.audit.parts = *parts,
            AuditAct::AddParts(parts) => self.journal.audit.parts = self.journal.audit.parts.with(*parts),
            AuditAct::RemoveParts(parts) => {
                self.journal.audit.parts = self.journal.audit.parts.without(*parts)
            }
            AuditAct::DebugLevel(level) => self.journal.audit.debug_level = *level,
            AuditAct::SanitiseArg(name) => self.journal.audit.hide(named(HiddenIn::Arg, name)),
            AuditAct::SanitiseRequestHeader(name) => {
                self.journal.audit.hide(named(HiddenIn::RequestHeader, name))
            }
            AuditAct::SanitiseResponseHeader(name) => {
                self.journal.audit.hide(named(HiddenIn::ResponseHeader, name))
            }
            AuditAct::SanitiseMatched => self.hide_matched(None),
            AuditAct::SanitiseMatchedBytes { keep_first, keep_last } => {
                let bytes = self.journal.audit.matched_bytes.filter(|found| !found.is_empty()).map(|found| {
                    HiddenBytes {
                        text: self.message.store.text(found).to_vec(),
                        keep_first: *keep_first,
                        keep_last: *keep_last,
                    }
                });
                self.hide_matched(bytes);
            }
        }
    }

    fn hide_matched(&mut self, bytes: Option<HiddenBytes>) {
        let Some(variable) = self.vars.matched.variable else { return };
        let Some(place) = hidden_in(variable) else { return };
        if self.vars.matched.count {
            return;
        }
        let cookie = matches!(variable, Variable::RequestCookies | Variable::RequestCookiesNames);
        let name = if cookie { b"Cookie" } else { self.message.store.text(self.vars.matched.key) };
        self.journal.audit.hide(Hidden { place, name: name.to_vec(), bytes: bytes.filter(|_| !cookie) });
    }
}

/// The place where audit records hide the matched value of a variable; `None` for those that no record shows.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "records have the names and values of arguments and headers alone"
)]
fn hidden_in(variable: Variable) -> Option<HiddenIn> {
    match variable {
        Variable::Args
        | Variable::ArgsNames
        | Variable::ArgsGet
        | Variable::ArgsGetNames
        | Variable::ArgsPost
        | Variable::ArgsPostNames => Some(HiddenIn::Arg),
        Variable::RequestHeaders | Variable::RequestHeadersNames => Some(HiddenIn::RequestHeader),
        // Cookies are hidden together, with their header.
        Variable::RequestCookies | Variable::RequestCookiesNames => Some(HiddenIn::RequestHeader),
        Variable::ResponseHeaders | Variable::ResponseHeadersNames => Some(HiddenIn::ResponseHeader),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_a_set_of_letters() {
        let parts = AuditParts::from_letters(b"abZ?");
        assert!(parts.has(b'A') && parts.has(b'B') && !parts.has(b'C') && !parts.has(b'Z'));
        let more = parts.with(AuditParts::from_letters(b"E"));
        assert!(more.has(b'E') && !more.without(parts).has(b'A'));
        assert_eq!(AuditParts::default(), AuditParts::from_letters(b"ABCFHZ"));
    }

    #[test]
    fn statuses_are_tried_out() {
        let set = StatusSet::of(|status| status.starts_with(b"5") || status == b"404");
        assert!(set.has(500) && set.has(599) && set.has(404) && !set.has(403) && !set.has(1000));
    }
}
