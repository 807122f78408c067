//! Actions.

use portcullis_types::Variable;

use super::{id_ranges, quote, target};
use crate::actions::{ActionName as Name, CtlOption};
use crate::ast::{Action, AllowScope, Ctl, IdRange, SetVarOperation, Spanned, Target, VariableKey};

/// A list of actions, separated by commas.
pub(super) fn list(actions: &[Spanned<Action>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, action) in actions.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        print(&action.node, &mut out);
    }
    out
}

pub(crate) fn print(action: &Action, out: &mut Vec<u8>) {
    let name = action.name();
    match action {
        Action::Id(id) => plain(out, name, id),
        Action::Phase(phase) => plain(out, name, &phase.number()),
        Action::Severity(severity) => plain(out, name, &severity.name()),
        Action::Maturity(n) => plain(out, name, n),
        Action::Accuracy(n) => plain(out, name, n),
        Action::Allow(AllowScope::Phase) => plain(out, name, &"phase"),
        Action::Allow(AllowScope::Request) => plain(out, name, &"request"),
        Action::Status(status) => plain(out, name, status),
        Action::XmlNs { prefix, uri } => quoted(out, name, &[prefix, "=".as_bytes(), uri].concat()),
        Action::Skip(count) => plain(out, name, count),
        Action::SetVar(set) => {
            let key = variable_key(&set.variable);
            let text = match &set.operation {
                SetVarOperation::Set(value) => [key.as_slice(), b"=", value].concat(),
                SetVarOperation::Add(amount) => [key.as_slice(), b"=+", amount].concat(),
                SetVarOperation::Subtract(amount) => [key.as_slice(), b"=-", amount].concat(),
                SetVarOperation::Unset => [b"!", key.as_slice()].concat(),
            };
            quoted(out, name, &text);
        }
        Action::InitCol { collection, key } => {
            quoted(out, name, &[collection_name(*collection).as_bytes(), b"=", key].concat());
        }
        Action::ExpireVar { variable, seconds } => {
            quoted(out, name, &[variable_key(variable).as_slice(), b"=", seconds].concat());
        }
        Action::DeprecateVar { variable, amount, seconds } => {
            let text = [variable_key(variable).as_slice(), b"=", amount, b"/", seconds].concat();
            quoted(out, name, &text);
        }
        Action::SanitiseMatchedBytes(text) if text.is_empty() => bare(out, name),
        Action::Ctl(option) => quoted(out, name, &ctl(option)),
        Action::TransformNone => plain(out, name, &"none"),
        Action::Transform(transformation) => plain(out, name, &transformation.name()),
        Action::Msg(text)
        | Action::LogData(text)
        | Action::Tag(text)
        | Action::Ver(text)
        | Action::Rev(text)
        | Action::Redirect(text)
        | Action::Proxy(text)
        | Action::Pause(text)
        | Action::SkipAfter(text)
        | Action::SetEnv(text)
        | Action::SetSid(text)
        | Action::SetUid(text)
        | Action::SetRsc(text)
        | Action::Exec(text)
        | Action::Append(text)
        | Action::Prepend(text)
        | Action::SanitiseArg(text)
        | Action::SanitiseMatchedBytes(text)
        | Action::SanitiseRequestHeader(text)
        | Action::SanitiseResponseHeader(text) => quoted(out, name, text),
        Action::Block
        | Action::Deny
        | Action::Drop
        | Action::Pass
        | Action::Allow(AllowScope::Transaction)
        | Action::Chain
        | Action::Log
        | Action::NoLog
        | Action::AuditLog
        | Action::NoAuditLog
        | Action::Capture
        | Action::MultiMatch
        | Action::SanitiseMatched => bare(out, name),
    }
}

fn bare(out: &mut Vec<u8>, name: Name) {
    out.extend_from_slice(name.name().as_bytes());
}

fn plain(out: &mut Vec<u8>, name: Name, value: &dyn std::fmt::Display) {
    out.extend_from_slice(format!("{}:{value}", name.name()).as_bytes());
}

/// `name:text`, quoted unless every byte of it is harmless.
fn quoted(out: &mut Vec<u8>, name: Name, text: &[u8]) {
    bare(out, name);
    out.push(b':');
    let harmless = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b'=');
    if !text.is_empty() && text.iter().all(harmless) {
        out.extend_from_slice(text);
    } else {
        quote(out, text, b'\'');
    }
}

fn collection_name(variable: Variable) -> String {
    variable.name().to_ascii_lowercase()
}

fn variable_key(variable: &VariableKey) -> Vec<u8> {
    [collection_name(variable.collection).as_bytes(), b".", &variable.key].concat()
}

/// `option=value`.
pub(crate) fn ctl(ctl: &Ctl) -> Vec<u8> {
    let switch = |on: &bool| if *on { "On" } else { "Off" }.as_bytes().to_vec();
    let (option, value) = match ctl {
        Ctl::AuditEngine(value) => (CtlOption::AuditEngine, value.word().into()),
        Ctl::AuditLogParts(parts) => (CtlOption::AuditLogParts, parts.to_vec()),
        Ctl::DebugLogLevel(level) => (CtlOption::DebugLogLevel, level.to_string().into()),
        Ctl::ForceRequestBodyVariable(on) => (CtlOption::ForceRequestBodyVariable, switch(on)),
        Ctl::RateLimit { limit, key } => (CtlOption::RateLimit, [limit.as_slice(), b";", key].concat()),
        Ctl::RequestBodyAccess(on) => (CtlOption::RequestBodyAccess, switch(on)),
        Ctl::RequestBodyLimit(limit) => (CtlOption::RequestBodyLimit, limit.to_string().into()),
        Ctl::RequestBodyProcessor(value) => (CtlOption::RequestBodyProcessor, value.word().into()),
        Ctl::ResponseBodyAccess(on) => (CtlOption::ResponseBodyAccess, switch(on)),
        Ctl::ResponseBodyLimit(limit) => (CtlOption::ResponseBodyLimit, limit.to_string().into()),
        Ctl::RuleEngine(value) => (CtlOption::RuleEngine, value.word().into()),
        Ctl::RuleRemoveById(ids) => (CtlOption::RuleRemoveById, id_ranges(ids)),
        Ctl::RuleRemoveByTag(tag) => (CtlOption::RuleRemoveByTag, tag.to_vec()),
        Ctl::RuleRemoveByMsg(msg) => (CtlOption::RuleRemoveByMsg, msg.to_vec()),
        Ctl::RuleRemoveTargetById { ids, target } => {
            (CtlOption::RuleRemoveTargetById, removal_by_id(ids, target))
        }
        Ctl::RuleRemoveTargetByTag { tag, target } => {
            (CtlOption::RuleRemoveTargetByTag, removal(tag, target))
        }
        Ctl::RuleRemoveTargetByMsg { msg, target } => {
            (CtlOption::RuleRemoveTargetByMsg, removal(msg, target))
        }
        Ctl::HashEngine(on) => (CtlOption::HashEngine, switch(on)),
        Ctl::HashEnforcement(on) => (CtlOption::HashEnforcement, switch(on)),
        Ctl::ParseXmlIntoArgs(value) => (CtlOption::ParseXmlIntoArgs, value.word().into()),
    };
    [option.name().as_bytes(), b"=", &value].concat()
}

fn removal(rules: &[u8], taken: &Target) -> Vec<u8> {
    let mut out = [rules, b";"].concat();
    target(taken, &mut out);
    out
}

fn removal_by_id(ids: &[IdRange], taken: &Target) -> Vec<u8> {
    removal(&id_ranges(ids), taken)
}
