//! Variables that have no value where a rule reads them: too early, or without what they need.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, HashMap};

use portcullis_engine::is_set_by_engine;
use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast::{Action, Ctl, Directive, Selector, SetVarOperation, Target, TargetKind};
use portcullis_seclang::availability::{Need, availability};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::settings::Setting;
use portcullis_seclang::{Diagnostic, SourceSpan, Sources};
use portcullis_types::{Phase, Variable, nearest};

use super::{Grouped, Position, Rules, actions, warning};

pub(super) fn look(rules: &Rules<'_, '_>, found: &mut Vec<Diagnostic>) {
    let made = Made::by(rules);
    let mut grouped = Grouped::default();
    for (position, draft, link) in rules.links() {
        let Some(condition) = &link.condition else { continue };
        let targets = condition.targets.iter().filter(|target| target.node.kind != TargetKind::Exclude);
        for target in targets {
            let available = availability(target.node.variable);
            if draft.phase < available.from {
                found.push(too_early(target.node.variable, draft.phase, available.from, target.span));
            } else if let Some(need) = available.needs {
                let lack = made.lack(need, &target.node, position, target.span);
                lack.into_iter().for_each(|one| grouped.add(one));
            }
        }
        let operator = &condition.operator;
        for key in tx_macros(&operator.node.argument) {
            let lack = made.lack_of_key(&key, position, operator.span);
            lack.into_iter().for_each(|one| grouped.add(one));
        }
    }
    found.extend(grouped.into_diagnostics());
}

fn too_early(variable: Variable, phase: Phase, from: Phase, span: SourceSpan) -> Diagnostic {
    let (name, at, from) = (variable.name(), phase.number(), from.number());
    let instead = if let Variable::ArgsPost = variable {
        ", or read ARGS_GET, the arguments of the query"
    } else if let Variable::ArgsPostNames = variable {
        ", or read ARGS_GET_NAMES, the names in the query"
    } else {
        ""
    };
    let message = format!("{name} has no value in phase {at}: it gets one in phase {from}");
    warning(span, message, format!("write phase:{from}{instead}"))
}

/// Data that rules and settings provide for other rules.
struct Made<'r> {
    /// The first place at which something comes to be there; `TX` keys are in `keys`.
    first: HashMap<Need, Position>,
    /// The `TX` keys that rules set, in lower case, and the first place of each.
    keys: BTreeMap<Vec<u8>, Position>,
    /// The same for keys with macros.
    patterns: Vec<(KeyPattern, Position)>,
    /// `TX` keys that rules count: options that may be set or not.
    counted: Vec<Vec<u8>>,
    capture: Option<Position>,
    request_body: bool,
    response_body: bool,
    sources: &'r Sources,
    /// All comments of the rules, in lower case, once they are asked for.
    comments: OnceCell<Vec<u8>>,
    /// Names that were looked for as what is meant by another: a search goes over all of them.
    suggested: Cell<usize>,
}

impl<'r> Made<'r> {
    /// Keys that a similar one is looked for.
    const SUGGESTED_MAX: usize = 50;

    fn by(rules: &Rules<'r, '_>) -> Made<'r> {
        let explicit_off = rules.document.directives.iter().rev().find_map(|directive| {
            if let Directive::Setting(Setting::RequestBodyAccess(on)) = directive.node {
                Some(!on)
            } else {
                None
            }
        });
        let mut made = Made {
            first: HashMap::new(),
            keys: BTreeMap::new(),
            patterns: Vec::new(),
            counted: Vec::new(),
            capture: None,
            // Rule files are often checked without the file that has the setting.
            request_body: explicit_off != Some(true),
            response_body: rules.settings.response_body_access,
            sources: rules.sources,
            comments: OnceCell::new(),
            suggested: Cell::new(0),
        };
        for (position, draft, link) in rules.links() {
            for action in actions(draft, link) {
                made.action(&action.node, position);
            }
            for target in link.condition.iter().flat_map(|condition| &condition.targets) {
                if let (Variable::Tx, TargetKind::Count, Some(Selector::Key(key))) =
                    (target.node.variable, target.node.kind, &target.node.selector)
                {
                    made.counted.push(key.to_ascii_lowercase());
                }
            }
            let operator = link.condition.as_ref().map(|condition| condition.operator.node.name);
            if operator == Some(OperatorName::GeoLookup) {
                made.provide(Need::GeoLookup, position);
            }
        }
        // A rule that someone removed shows that the key is one of the rule set.
        for draft in &rules.removed {
            for link in &draft.links {
                let sets = actions(draft, link).filter(|action| matches!(action.node, Action::SetVar(_)));
                sets.for_each(|action| made.action(&action.node, (Phase::RequestHeaders, 0)));
            }
        }
        made
    }

    fn provide(&mut self, need: Need, position: Position) {
        let first = self.first.entry(need).or_insert(position);
        *first = (*first).min(position);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions provide nothing")]
    fn action(&mut self, action: &Action, position: Position) {
        match action {
            Action::InitCol { collection, .. } => self.provide(Need::Opened(*collection), position),
            Action::SetSid(_) => self.provide(Need::Opened(Variable::Session), position),
            Action::SetUid(_) => self.provide(Need::Opened(Variable::User), position),
            Action::SetRsc(_) => self.provide(Need::Opened(Variable::Resource), position),
            Action::Ctl(Ctl::RequestBodyAccess(true)) => self.request_body = true,
            Action::Ctl(Ctl::ResponseBodyAccess(true)) => self.response_body = true,
            Action::Capture => {
                self.capture = Some(self.capture.map_or(position, |first| first.min(position)))
            }
            Action::SetVar(set) if set.variable.collection == Variable::Tx => {
                if set.operation == SetVarOperation::Unset {
                    return;
                }
                let key = set.variable.key.to_ascii_lowercase();
                match KeyPattern::of(&key) {
                    Some(pattern) => self.patterns.push((pattern, position)),
                    None => {
                        let first = self.keys.entry(key).or_insert(position);
                        *first = (*first).min(position);
                    }
                }
            }
            _ => {}
        }
    }

    /// What `target` of a rule at `position` lacks of what its variable needs.
    fn lack(&self, need: Need, target: &Target, position: Position, span: SourceSpan) -> Option<Diagnostic> {
        let name = target.variable.name();
        match need {
            Need::RequestBody if !self.request_body => Some(
                Diagnostic::note(span, format!("{name} has no value: SecRequestBodyAccess is Off"))
                    .with_hint("write SecRequestBodyAccess On, or remove the rule"),
            ),
            Need::ResponseBody if !self.response_body => Some(
                Diagnostic::note(span, format!("{name} has no value: SecResponseBodyAccess is not On"))
                    .with_hint(
                        "write SecResponseBodyAccess On; in the configuration, response_body.inspect = true",
                    ),
            ),
            Need::RequestBody | Need::ResponseBody => None,
            Need::Opened(collection) => {
                let why = self.not_before(need, position, "opens a record of it")?;
                let collection = collection.name();
                let hint = match collection {
                    "SESSION" => "setsid:%{REQUEST_COOKIES.session}".to_owned(),
                    "USER" => "setuid:%{REMOTE_USER}".to_owned(),
                    "GLOBAL" => "initcol:global=global".to_owned(),
                    "RESOURCE" => "setrsc:%{REQUEST_FILENAME}".to_owned(),
                    other => format!("initcol:{}=%{{REMOTE_ADDR}}", other.to_ascii_lowercase()),
                };
                let hint = format!("put SecAction \"id:...,phase:1,pass,nolog,{hint}\" before it");
                Some(warning(span, format!("{name} has no value: {why}"), hint))
            }
            Need::GeoLookup => {
                let why = self.not_before(need, position, "looks an address up")?;
                let hint = "put SecRule REMOTE_ADDR \"@geoLookup\" \"id:...,phase:1,pass,nolog\" before it, and name a \
                            database with SecGeoLookupDb";
                Some(warning(span, format!("{name} has no value: {why}"), hint.to_owned()))
            }
            Need::Set => match (&target.selector, target.kind) {
                (Some(Selector::Key(key)), TargetKind::Values) => self.lack_of_key(key, position, span),
                (Some(Selector::Regex(pattern)), TargetKind::Values) => self.lack_of_keys(pattern, span),
                _ => None,
            },
        }
    }

    fn not_before(&self, need: Need, position: Position, what: &str) -> Option<String> {
        match self.first.get(&need) {
            None => Some(format!("no rule {what}")),
            Some(first) if *first > position => {
                Some(format!("no rule before this one {what}, a later one does"))
            }
            Some(_) => None,
        }
    }

    /// `TX:key` that nothing sets before `position`.
    fn lack_of_key(&self, key: &[u8], position: Position, span: SourceSpan) -> Option<Diagnostic> {
        let key = key.to_ascii_lowercase();
        let shown = key.escape_ascii();
        let is_capture = key.iter().all(u8::is_ascii_digit);
        if is_capture {
            let why = match self.capture {
                None => "no rule captures",
                Some(first) if first > position => "no rule before this one captures",
                Some(_) => return None,
            };
            let hint = "add the action capture to the rule whose match it is to have".to_owned();
            return Some(warning(span, format!("TX:{shown} has no value: {why}"), hint));
        }
        let exact = self.keys.get(&key).copied();
        let similar = self.patterns.iter().filter(|(pattern, _)| pattern.matches(&key)).map(|&(_, at)| at);
        let why = match exact.into_iter().chain(similar).min() {
            Some(first) if first <= position => return None,
            Some(_) => "no rule before this one sets it, a later one does",
            None => "no rule sets it",
        };
        if is_set_by_engine(&key) || self.is_option(&key) {
            return None;
        }
        let wanted = std::str::from_utf8(&key).ok().filter(|_| self.suggested.get() < Made::SUGGESTED_MAX);
        self.suggested.set(self.suggested.get() + 1);
        let near = wanted.and_then(|key| {
            nearest(key, self.keys.keys().filter_map(|known| std::str::from_utf8(known).ok()))
        });
        let hint = match near.filter(|_| exact.is_none()) {
            Some(near) => format!("did you mean TX:{near}?"),
            None => format!("put SecAction \"id:...,phase:1,pass,nolog,setvar:tx.{shown}=...\" before it"),
        };
        Some(warning(span, format!("TX:{shown} has no value: {why}"), hint))
    }

    /// `TX:/regex/` that no key matches which rules set.
    fn lack_of_keys(&self, pattern: &[u8], span: SourceSpan) -> Option<Diagnostic> {
        let flags = RegexFlags { case_insensitive: true, ..RegexFlags::default() };
        let regex = Pcre::new(pattern, flags).ok()?;
        let is_met = !self.patterns.is_empty()
            || self.keys.keys().any(|key| regex.is_match(key))
            || self.capture.is_some();
        let message = format!("TX:/{}/ has no value: no rule sets such a key", pattern.escape_ascii());
        let hint = "mend the pattern, or set the keys with setvar before this rule".to_owned();
        (!is_met).then(|| warning(span, message, hint))
    }

    /// True for a key that may be set or not: rules ask whether it is, or a comment of them shows how to set
    /// it.
    fn is_option(&self, key: &[u8]) -> bool {
        if self.counted.iter().any(|counted| counted == key) {
            return true;
        }
        let comments = self.comments.get_or_init(|| {
            let texts = self.sources.files().map(|file| self.sources.text(file));
            let lines = texts.flat_map(|text| text.split(|&byte| byte == b'\n'));
            let comments = lines.filter(|line| line.trim_ascii_start().starts_with(b"#"));
            comments.collect::<Vec<_>>().join(&b'\n').to_ascii_lowercase()
        });
        memchr::memmem::find(comments, &[b"tx.", key, b"="].concat()).is_some()
    }
}

/// A `TX` key with macros: the texts before the first and behind the last.
struct KeyPattern {
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl KeyPattern {
    /// `None` if the key has no macro.
    fn of(key: &[u8]) -> Option<KeyPattern> {
        let first = memchr::memmem::find(key, b"%{")?;
        let last = key.iter().rposition(|&byte| byte == b'}')?;
        Some(KeyPattern { before: key[..first].to_vec(), behind: key.get(last + 1..)?.to_vec() })
    }

    fn matches(&self, key: &[u8]) -> bool {
        key.starts_with(&self.before) && key.ends_with(&self.behind)
    }
}

/// The keys of the macros `%{tx.key}` in a text.
fn tx_macros(text: &[u8]) -> Vec<Vec<u8>> {
    let lower = text.to_ascii_lowercase();
    let starts =
        memchr::memmem::find_iter(&lower, b"%{tx.").chain(memchr::memmem::find_iter(&lower, b"%{tx:"));
    let keys = starts.filter_map(|at| {
        let rest = &lower[at + b"%{tx.".len()..];
        Some(rest[..memchr::memchr(b'}', rest)?].to_vec())
    });
    keys.collect()
}
