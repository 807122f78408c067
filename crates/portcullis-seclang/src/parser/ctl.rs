//! `ctl:option=value`.

use bstr::BString;

use super::{Sink, targets, values};
use crate::actions::CtlOption;
use crate::ast::{Ctl, Target, TargetKind};
use crate::lexer::View;
use crate::settings::{AuditEngine, BodyProcessor, RuleEngine, XmlArgs};
use crate::standing::{self, Standing};
use crate::suggest;

/// Parses the argument of one `ctl`: more than one entry if it takes several targets away. Empty if it is
/// wrong.
pub(super) fn read(view: View<'_>, sink: &mut Sink) -> Vec<Ctl> {
    let Some((name, value)) = view.split_once(b'=') else {
        sink.error_hint(view.span(), "ctl takes OPTION=VALUE", "for example ctl:ruleEngine=Off");
        return Vec::new();
    };
    let Some(option) = name.trim().str().and_then(CtlOption::from_name) else {
        let near = suggest::hint(&name.show(), CtlOption::ALL.iter().map(|o| o.name()));
        sink.error_maybe(name.span(), format!("unknown ctl option {}", name.show()), near);
        return Vec::new();
    };
    let value = value.trim();
    if value.bytes.is_empty() {
        let hint = format!("{}: {}", option.name(), option.meaning());
        sink.error_hint(view.span(), format!("ctl:{} needs a value", option.name()), hint);
        return Vec::new();
    }
    // The tree has no place for these; what else is refused is the compiler's work.
    if let (
        CtlOption::ResponseBodyProcessor | CtlOption::ForceResponseBodyVariable,
        Standing::Refused(refusal),
    ) = (option, standing::ctl(option))
    {
        let message = format!("ctl:{} is refused: {}", option.name(), refusal.why);
        sink.error_hint(view.span(), message, refusal.instead);
        return Vec::new();
    }
    // ModSecurity 2.9.7 takes any text for these when it loads them.
    let unchecked = matches!(
        option,
        CtlOption::DebugLogLevel
            | CtlOption::RequestBodyProcessor
            | CtlOption::RuleRemoveById
            | CtlOption::RuleRemoveTargetById
            | CtlOption::RuleRemoveTargetByMsg
            | CtlOption::RuleRemoveTargetByTag
    );
    if unchecked {
        return sink.leniently("this action is left out", |sink| checked(option, value, sink));
    }
    checked(option, value, sink)
}

fn checked(option: CtlOption, value: View<'_>, sink: &mut Sink) -> Vec<Ctl> {
    match option {
        CtlOption::RuleRemoveTargetById => {
            let takes = "ctl:ruleRemoveTargetById takes";
            removal(
                value,
                option,
                sink,
                |rules, sink| values::id_ranges(rules, takes, sink),
                |ids, target| Ctl::RuleRemoveTargetById { ids, target },
            )
        }
        CtlOption::RuleRemoveTargetByTag => {
            removal(value, option, sink, text, |tag, target| Ctl::RuleRemoveTargetByTag { tag, target })
        }
        CtlOption::RuleRemoveTargetByMsg => {
            removal(value, option, sink, text, |msg, target| Ctl::RuleRemoveTargetByMsg { msg, target })
        }
        CtlOption::AuditEngine
        | CtlOption::AuditLogParts
        | CtlOption::DebugLogLevel
        | CtlOption::ForceRequestBodyVariable
        | CtlOption::ForceResponseBodyVariable
        | CtlOption::HashEnforcement
        | CtlOption::HashEngine
        | CtlOption::ParseXmlIntoArgs
        | CtlOption::RateLimit
        | CtlOption::RequestBodyAccess
        | CtlOption::RequestBodyLimit
        | CtlOption::RequestBodyProcessor
        | CtlOption::ResponseBodyAccess
        | CtlOption::ResponseBodyLimit
        | CtlOption::ResponseBodyProcessor
        | CtlOption::RuleEngine
        | CtlOption::RuleRemoveById
        | CtlOption::RuleRemoveByMsg
        | CtlOption::RuleRemoveByTag => one(option, value, sink).into_iter().collect(),
    }
}

fn text(view: View<'_>, _: &mut Sink) -> Option<BString> {
    Some(view.bytes.into())
}

/// `RULES;TARGET,TARGET`.
fn removal<'a, R: Clone>(
    value: View<'a>,
    option: CtlOption,
    sink: &mut Sink,
    rules: impl Fn(View<'a>, &mut Sink) -> Option<R>,
    ctl: impl Fn(R, Target) -> Ctl,
) -> Vec<Ctl> {
    // A regex of tags may hold a semicolon, a target hardly does: the last one separates.
    let at = value.bytes.iter().rposition(|&b| b == b';');
    let Some(at) = at else {
        let message = format!("ctl:{} takes RULES;TARGET; the semicolon is missing", option.name());
        sink.error(value.span(), message);
        return Vec::new();
    };
    let Some(rules) = rules(value.slice(0, at).trim(), sink) else { return Vec::new() };
    let mut out = Vec::new();
    for target in targets::list(value.from(at + 1), sink) {
        match target.node.kind {
            TargetKind::Values => out.push(ctl(rules.clone(), target.node)),
            TargetKind::Exclude | TargetKind::Count => {
                let message = format!("ctl:{} takes the target without ! or &", option.name());
                sink.error_hint(target.span, message, "remove the sign");
            }
        }
    }
    out
}

/// `NAME;KEY`. A key may hold a semicolon, so the first one separates.
fn rate_limit(value: View<'_>, sink: &mut Sink) -> Option<Ctl> {
    let at = value.bytes.iter().position(|&b| b == b';');
    let parts = at.map(|at| (value.slice(0, at).trim(), value.from(at + 1).trim()));
    match parts {
        Some((limit, key)) if !limit.bytes.is_empty() && !key.bytes.is_empty() => {
            Some(Ctl::RateLimit { limit: limit.bytes.into(), key: key.bytes.into() })
        }
        _ => {
            let hint = "for example ctl:rateLimit=logins;%{ARGS.user}";
            sink.error_hint(value.span(), "ctl:rateLimit takes NAME;KEY", hint);
            None
        }
    }
}

fn one(option: CtlOption, value: View<'_>, sink: &mut Sink) -> Option<Ctl> {
    let takes = &format!("ctl:{} takes", option.name());
    Some(match option {
        CtlOption::AuditEngine => Ctl::AuditEngine(values::word(
            value,
            takes,
            AuditEngine::ALL,
            AuditEngine::word,
            AuditEngine::from_word,
            sink,
        )?),
        CtlOption::AuditLogParts => Ctl::AuditLogParts(value.bytes.into()),
        CtlOption::DebugLogLevel => Ctl::DebugLogLevel(values::level(value, takes, sink)?),
        CtlOption::ForceRequestBodyVariable => {
            Ctl::ForceRequestBodyVariable(values::switch(value, takes, sink)?)
        }
        CtlOption::HashEnforcement => Ctl::HashEnforcement(values::switch(value, takes, sink)?),
        CtlOption::HashEngine => Ctl::HashEngine(values::switch(value, takes, sink)?),
        CtlOption::ParseXmlIntoArgs => Ctl::ParseXmlIntoArgs(values::word(
            value,
            takes,
            XmlArgs::ALL,
            XmlArgs::word,
            XmlArgs::from_word,
            sink,
        )?),
        CtlOption::RateLimit => rate_limit(value, sink)?,
        CtlOption::RequestBodyAccess => Ctl::RequestBodyAccess(values::switch(value, takes, sink)?),
        CtlOption::RequestBodyLimit => Ctl::RequestBodyLimit(values::body_bytes(value, takes, sink)?),
        CtlOption::RequestBodyProcessor => Ctl::RequestBodyProcessor(values::word(
            value,
            takes,
            BodyProcessor::ALL,
            BodyProcessor::word,
            BodyProcessor::from_word,
            sink,
        )?),
        CtlOption::ResponseBodyAccess => Ctl::ResponseBodyAccess(values::switch(value, takes, sink)?),
        CtlOption::ResponseBodyLimit => Ctl::ResponseBodyLimit(values::body_bytes(value, takes, sink)?),
        CtlOption::RuleEngine => Ctl::RuleEngine(values::word(
            value,
            takes,
            RuleEngine::ALL,
            RuleEngine::word,
            RuleEngine::from_word,
            sink,
        )?),
        CtlOption::RuleRemoveById => Ctl::RuleRemoveById(values::id_ranges(value, takes, sink)?),
        CtlOption::RuleRemoveByMsg => Ctl::RuleRemoveByMsg(value.bytes.into()),
        CtlOption::RuleRemoveByTag => Ctl::RuleRemoveByTag(value.bytes.into()),
        CtlOption::RuleRemoveTargetById
        | CtlOption::RuleRemoveTargetByMsg
        | CtlOption::RuleRemoveTargetByTag
        // Refused before this.
        | CtlOption::ResponseBodyProcessor
        | CtlOption::ForceResponseBodyVariable => return None,
    })
}
