//! `<IfModule ...>`, `<LocationMatch ...>` and other sections of web server configurations around rules.
//!
//! Rule sets for Apache have them. A section that asks for ModSecurity is read as if it were not there. One
//! for a place of the site becomes rules: those between its lines are skipped elsewhere, and what it removes
//! is removed by `ctl` for requests to that place. Directives that cannot be expressed so are left out, with
//! a warning.

use bstr::BString;
use portcullis_types::{Phase, RuleId, Variable};

use super::Sink;
use crate::ast::{
    Action, Condition, Ctl, Directive, Document, Operator, Rule, RuleSelector, Spanned, Target, TargetKind,
};
use crate::diagnostic::Diagnostic;
use crate::lexer::{self, View};
use crate::operators::OperatorName;
use crate::settings::Setting;
use crate::source::SourceSpan;

/// Rules made of sections have ids from here on.
const FIRST_ID: u32 = 9_100_000;

/// The sections that are open in one file, innermost last.
#[derive(Default)]
pub(super) struct Sections {
    open: Vec<Section>,
}

struct Section {
    name: Vec<u8>,
    span: SourceSpan,
    reading: Reading,
}

/// The way to read the content of a section.
enum Reading {
    /// As if the section were not there.
    Plain,
    LeftOut,
    /// For requests whose path matches.
    Place(Place),
}

struct Place {
    /// A pattern for REQUEST_FILENAME.
    path: BString,
    /// The marker behind the rules of the section, once it has one.
    marker: Option<BString>,
}

impl Sections {
    /// Reads a line that opens or closes a section.
    pub(super) fn line(&mut self, view: View<'_>, document: &mut Document, sink: &mut Sink) {
        let inner = view.from(1);
        let end =
            inner.bytes.iter().position(|&b| b == b'>' || lexer::is_blank(b)).unwrap_or(inner.bytes.len());
        let name = inner.slice(0, end);
        match name.bytes.strip_prefix(b"/") {
            Some(closed) => self.close(closed, view.span(), document, sink),
            None => {
                let argument = inner.from(end).trim();
                let length = argument.bytes.len() - usize::from(argument.bytes.ends_with(b">"));
                self.open(name, argument.slice(0, length).trim(), view.span(), sink);
            }
        }
    }

    fn open(&mut self, name: View<'_>, argument: View<'_>, span: SourceSpan, sink: &mut Sink) {
        let reading =
            if self.leave_out() { Reading::LeftOut } else { self.reading(name, argument.bytes, span, sink) };
        self.open.push(Section { name: name.bytes.to_vec(), span, reading });
    }

    fn reading(&self, name: View<'_>, argument: &[u8], span: SourceSpan, sink: &mut Sink) -> Reading {
        let shown = name.show();
        let mut left_out = |why: &str, hint: &str| {
            sink.warn_hint(span, format!("<{shown}>: {why}; what is in it is left out"), hint);
            Reading::LeftOut
        };
        let route = "rules for a part of the site belong to a route of the configuration, or begin with a rule on \
                     REQUEST_FILENAME";
        let keep = "remove this line and the closing one if it applies";
        let lower = name.bytes.to_ascii_lowercase();
        match lower.as_slice() {
            b"ifmodule" => {
                let (negated, module) = match argument.strip_prefix(b"!") {
                    Some(module) => (true, module),
                    None => (false, argument),
                };
                let ours = module.to_ascii_lowercase().windows(8).any(|word| word == b"security");
                match (ours, negated) {
                    (true, true) => Reading::LeftOut,
                    (false, true) => left_out("there are no modules of a web server here", keep),
                    _ => Reading::Plain,
                }
            }
            b"ifdefine" if argument.starts_with(b"!") => Reading::Plain,
            b"ifdefine" => left_out("nothing is defined on a command line here", keep),
            b"ifversion" => Reading::Plain,
            b"location" | b"locationmatch" => {
                if self.open.iter().any(|section| matches!(section.reading, Reading::Place(_))) {
                    return left_out("a place inside a place is not read", route);
                }
                match path_pattern(lower == b"locationmatch", argument) {
                    Some(None) => Reading::Plain,
                    Some(Some(path)) => Reading::Place(Place { path, marker: None }),
                    None => left_out("this path has wildcards, or does not begin with /", route),
                }
            }
            b"directory" | b"directorymatch" | b"files" | b"filesmatch" | b"virtualhost" | b"proxy"
            | b"proxymatch" | b"limit" | b"limitexcept" | b"if" | b"elseif" | b"else" => {
                left_out("a proxy cannot tell this part of the site", route)
            }
            _ => {
                sink.error_hint(
                    span,
                    format!("sections of web server configurations such as <{shown}> are not SecLang"),
                    "remove this line and the closing one",
                );
                Reading::LeftOut
            }
        }
    }

    fn close(&mut self, closed: &[u8], span: SourceSpan, document: &mut Document, sink: &mut Sink) {
        let shown = String::from_utf8_lossy(closed);
        let Some(section) = self.open.pop() else {
            return sink.error(span, format!("</{shown}> without its opening"));
        };
        if !section.name.eq_ignore_ascii_case(closed) {
            let open = String::from_utf8_lossy(&section.name);
            let message = format!("</{shown}> closes <{open}>");
            sink.push(Diagnostic::error(span, message).with_related(section.span, "opened here"));
        }
        if let Reading::Place(Place { marker: Some(marker), .. }) = section.reading {
            document.directives.push(Spanned { node: Directive::Marker(marker), span });
        }
    }

    /// The file ends here.
    pub(super) fn end(self, sink: &mut Sink) {
        for Section { name, span, .. } in self.open {
            let name = String::from_utf8_lossy(&name).into_owned();
            sink.error(span, format!("section <{name}> is not closed"));
        }
    }

    /// True if the next directive is in a section that is left out.
    pub(super) fn leave_out(&self) -> bool {
        self.open.iter().any(|section| matches!(section.reading, Reading::LeftOut))
    }

    /// Gives the directives from `before` on their place, if they are in a section for one.
    pub(super) fn place(&mut self, before: usize, document: &mut Document, sink: &mut Sink) {
        let place = self.open.iter_mut().rev().find_map(|section| match &mut section.reading {
            Reading::Place(place) => Some(place),
            Reading::Plain | Reading::LeftOut => None,
        });
        let Some(place) = place else { return };
        if document.directives.len() <= before {
            return;
        }
        for directive in document.directives.split_off(before) {
            let Spanned { node, span } = directive;
            match in_a_place(&node) {
                Some(Placed::Rule) => {
                    place.guard(document, span);
                    document.directives.push(Spanned { node, span });
                }
                Some(Placed::Ctl(acts)) => {
                    for act in acts {
                        let rule = place.rule(document, Phase::RequestHeaders, false, Action::Ctl(act), span);
                        document.directives.push(rule);
                    }
                }
                None => sink.warn_hint(
                    span,
                    "this cannot be said of a part of the site: it is left out",
                    "move it out of the section, or into a policy of a route",
                ),
            }
        }
    }
}

/// Conversion of a directive in a section for a place.
enum Placed {
    /// A rule, which is skipped elsewhere.
    Rule,
    /// Actions of rules for requests to that place.
    Ctl(Vec<Ctl>),
}

/// True if a section for a place of the site (`<Location>`) can have this directive. Others are left out,
/// with a warning.
pub fn fits_a_place(directive: &Directive) -> bool {
    in_a_place(directive).is_some()
}

fn in_a_place(directive: &Directive) -> Option<Placed> {
    let act = match directive {
        Directive::RemoveById(ids) => Ctl::RuleRemoveById(ids.clone()),
        Directive::RemoveByTag(tag) => Ctl::RuleRemoveByTag(tag.clone()),
        Directive::RemoveByMsg(msg) => Ctl::RuleRemoveByMsg(msg.clone()),
        Directive::Setting(Setting::RuleEngine(engine)) => Ctl::RuleEngine(*engine),
        Directive::Setting(Setting::RequestBodyAccess(on)) => Ctl::RequestBodyAccess(*on),
        Directive::Setting(Setting::ResponseBodyAccess(on)) => Ctl::ResponseBodyAccess(*on),
        Directive::Setting(Setting::RequestBodyLimit(bytes)) => Ctl::RequestBodyLimit(*bytes),
        Directive::Setting(Setting::ResponseBodyLimit(bytes)) => Ctl::ResponseBodyLimit(*bytes),
        Directive::Setting(Setting::AuditEngine(engine)) => Ctl::AuditEngine(*engine),
        Directive::Rule(_) | Directive::Script { .. } | Directive::Marker(_) => return Some(Placed::Rule),
        Directive::UpdateTarget { rules, targets, replaced: None } => {
            return targets
                .iter()
                .map(|target| removal(rules, &target.node))
                .collect::<Option<_>>()
                .map(Placed::Ctl);
        }
        Directive::Setting(_)
        | Directive::DefaultAction(_)
        | Directive::UpdateTarget { .. }
        | Directive::UpdateAction { .. } => return None,
    };
    Some(Placed::Ctl(vec![act]))
}

/// What takes a target away from rules, as `!TARGET` of an update does; `None` for one that is added.
fn removal(rules: &RuleSelector, target: &Target) -> Option<Ctl> {
    if target.kind != TargetKind::Exclude {
        return None;
    }
    let target = Target { kind: TargetKind::Values, ..target.clone() };
    Some(match rules {
        RuleSelector::Ids(ids) => Ctl::RuleRemoveTargetById { ids: ids.clone(), target },
        RuleSelector::Tag(tag) => Ctl::RuleRemoveTargetByTag { tag: tag.clone(), target },
        RuleSelector::Msg(msg) => Ctl::RuleRemoveTargetByMsg { msg: msg.clone(), target },
    })
}

impl Place {
    /// Has the rules of the section skipped elsewhere, in each phase.
    fn guard(&mut self, document: &mut Document, span: SourceSpan) {
        if self.marker.is_some() {
            return;
        }
        let marker = BString::from(format!("END-SECTION-{}", document.directives.len()));
        for number in 1..=5 {
            let Some(phase) = Phase::from_number(number) else { continue };
            let rule = self.rule(document, phase, true, Action::SkipAfter(marker.clone()), span);
            document.directives.push(rule);
        }
        self.marker = Some(marker);
    }

    /// A rule that does `action` for requests to this place, or for all others.
    fn rule(
        &self,
        document: &Document,
        phase: Phase,
        elsewhere: bool,
        action: Action,
        span: SourceSpan,
    ) -> Spanned<Directive> {
        // The number of directives grows with each, so that no two get the same.
        let id =
            RuleId(FIRST_ID.saturating_add(u32::try_from(document.directives.len()).unwrap_or(u32::MAX)));
        let spanned = |node| Spanned { node, span };
        let target = Target { kind: TargetKind::Values, variable: Variable::RequestFilename, selector: None };
        let operator = Operator { negated: elsewhere, name: OperatorName::Rx, argument: self.path.clone() };
        let actions = [
            Action::Id(id),
            Action::Phase(phase),
            Action::TransformNone,
            Action::Pass,
            Action::NoLog,
            action,
        ];
        let condition = Condition {
            targets: vec![Spanned { node: target, span }],
            operator: Spanned { node: operator, span },
        };
        Spanned {
            node: Directive::Rule(Rule {
                condition: Some(condition),
                actions: actions.into_iter().map(spanned).collect(),
            }),
            span,
        }
    }
}

/// The pattern of a path: `Some(None)` if it is any path, `None` if it cannot be said.
fn path_pattern(is_regex: bool, argument: &[u8]) -> Option<Option<BString>> {
    let tilde = argument.strip_prefix(b"~").map(<[u8]>::trim_ascii);
    let text = tilde.unwrap_or(argument);
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text);
    if is_regex || tilde.is_some() {
        let any = matches!(text, b"" | b".*" | b"." | b"/" | b"^/" | b"^/.*" | b"/.*" | b"^.*$" | b"^.*");
        return Some((!any).then(|| text.into()));
    }
    if !text.starts_with(b"/") || text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
        return None;
    }
    let path = text.strip_suffix(b"/").unwrap_or(text);
    if path.is_empty() {
        return Some(None);
    }
    let mut pattern = b"^".to_vec();
    for &byte in path {
        if !byte.is_ascii_alphanumeric() && byte.is_ascii() {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern.extend_from_slice(b"(?:/|$)");
    Some(Some(pattern.into()))
}
