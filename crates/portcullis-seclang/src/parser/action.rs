//! One action: its argument as a type.

use std::fmt::Arguments;

use bstr::BString;
use portcullis_decode::Transformation;
use portcullis_types::{Severity, Shape, Variable};

use super::action_list::{Item, phase};
use super::{Sink, ctl, values};
use crate::actions::ActionName;
use crate::ast::{Action, AllowScope, SetVar, SetVarOperation, Spanned, VariableKey};
use crate::lexer::View;
use crate::suggest;

/// Appends what the entry says to `out`; mistakes go to `sink`. `list` is where the entry stands in.
pub(super) fn read(item: &Item, list: View<'_>, out: &mut Vec<Spanned<Action>>, sink: &mut Sink) {
    if item.action == ActionName::Ctl {
        let nodes = ctl::read(argument(item, list), sink);
        out.extend(nodes.into_iter().map(|ctl| Spanned { node: Action::Ctl(ctl), span: item.span }));
    } else if let Some(node) = one(item, list, sink) {
        out.push(Spanned { node, span: item.span });
    }
}

/// The argument; empty if there is none.
fn argument<'a>(item: &'a Item, list: View<'_>) -> View<'a> {
    let file = list.span().file;
    match &item.argument {
        Some(text) => text.view_at(file, item.span.span.end),
        None => View::empty(file, item.span.span.end),
    }
}

/// The warning for an action that ModSecurity 2.9.7 loads without a word.
const LEFT_OUT: &str = "this action is left out";

/// True for actions whose argument ModSecurity 2.9.7 does not check when it loads a rule.
fn is_unchecked(action: ActionName) -> bool {
    use ActionName::*;
    matches!(
        action,
        Accuracy | DeprecateVar | ExpireVar | InitCol | Marker | Maturity | SetVar | Severity | Skip | Status
    )
}

fn one(item: &Item, list: View<'_>, sink: &mut Sink) -> Option<Action> {
    if is_unchecked(item.action) {
        return sink.leniently(LEFT_OUT, |sink| checked(item, list, sink));
    }
    checked(item, list, sink)
}

fn checked(item: &Item, list: View<'_>, sink: &mut Sink) -> Option<Action> {
    let view = argument(item, list);
    let text = || BString::from(view.bytes);
    let name = item.action.name();
    let takes = format_args!("{name} takes");
    Some(match item.action {
        ActionName::Accuracy => Action::Accuracy(values::number(view, takes, sink)?),
        ActionName::Allow => Action::Allow(allow(item, view, sink)?),
        ActionName::Append => Action::Append(text()),
        ActionName::AuditLog => Action::AuditLog,
        ActionName::Block => Action::Block,
        ActionName::Capture => Action::Capture,
        ActionName::Chain => Action::Chain,
        ActionName::Ctl => return None,
        ActionName::Deny => Action::Deny,
        ActionName::DeprecateVar => deprecate_var(view, sink)?,
        ActionName::Drop => Action::Drop,
        ActionName::Exec => Action::Exec(text()),
        ActionName::ExpireVar => expire_var(view, sink)?,
        ActionName::Id => Action::Id(values::rule_id(view, takes, sink)?),
        ActionName::InitCol => init_col(view, sink)?,
        ActionName::Log => Action::Log,
        ActionName::LogData => Action::LogData(text()),
        ActionName::Marker => {
            sink.error_hint(
                item.span,
                "marker is not an action of rules",
                "write SecMarker NAME on a line of its own",
            );
            return None;
        }
        ActionName::Maturity => Action::Maturity(values::number(view, takes, sink)?),
        ActionName::Msg => Action::Msg(text()),
        ActionName::MultiMatch => Action::MultiMatch,
        ActionName::NoAuditLog => Action::NoAuditLog,
        ActionName::NoLog => Action::NoLog,
        ActionName::Pass => Action::Pass,
        ActionName::Pause => Action::Pause(text()),
        ActionName::Phase => Action::Phase(phase(view, sink)?),
        ActionName::Prepend => Action::Prepend(text()),
        ActionName::Proxy => Action::Proxy(text()),
        ActionName::Redirect => Action::Redirect(text()),
        ActionName::Rev => Action::Rev(text()),
        ActionName::SanitiseArg => Action::SanitiseArg(text()),
        ActionName::SanitiseMatched => Action::SanitiseMatched,
        ActionName::SanitiseMatchedBytes => Action::SanitiseMatchedBytes(text()),
        ActionName::SanitiseRequestHeader => Action::SanitiseRequestHeader(text()),
        ActionName::SanitiseResponseHeader => Action::SanitiseResponseHeader(text()),
        ActionName::SetEnv => Action::SetEnv(text()),
        ActionName::SetRsc => Action::SetRsc(text()),
        ActionName::SetSid => Action::SetSid(text()),
        ActionName::SetUid => Action::SetUid(text()),
        ActionName::SetVar => Action::SetVar(set_var(view, sink)?),
        ActionName::Severity => Action::Severity(severity(view, sink)?),
        ActionName::Skip => Action::Skip(skip(view, takes, sink)?),
        ActionName::SkipAfter => Action::SkipAfter(text()),
        ActionName::Status => Action::Status(status(view, takes, sink)?),
        ActionName::T => transformation(view, sink)?,
        ActionName::Tag => Action::Tag(text()),
        ActionName::Ver => Action::Ver(text()),
        ActionName::Xmlns => xml_ns(view, sink)?,
    })
}

fn allow(item: &Item, view: View<'_>, sink: &mut Sink) -> Option<AllowScope> {
    if item.argument.is_none() {
        return Some(AllowScope::Transaction);
    }
    match view.bytes.to_ascii_lowercase().as_slice() {
        b"phase" => Some(AllowScope::Phase),
        b"request" => Some(AllowScope::Request),
        _ => {
            let near = suggest::hint(&view.show(), ["phase", "request"]);
            sink.error_maybe(
                view.span(),
                format!("allow takes phase, request or nothing, not {:?}", view.show()),
                near,
            );
            None
        }
    }
}

fn severity(view: View<'_>, sink: &mut Sink) -> Option<Severity> {
    let severity = view.str().and_then(Severity::parse);
    if severity.is_none() {
        let names: Vec<&str> =
            (0..8).filter_map(|n: u8| Severity::parse(&n.to_string())).map(Severity::name).collect();
        let near = suggest::hint(&view.show(), names.iter().copied());
        let message = format!("severity takes 0 to 7 or one of {}, not {:?}", names.join(", "), view.show());
        sink.error_maybe(view.span(), message, near);
    }
    severity
}

fn skip(view: View<'_>, takes: Arguments<'_>, sink: &mut Sink) -> Option<u32> {
    match values::number(view, takes, sink)? {
        0 => {
            sink.error_hint(
                view.span(),
                "skip takes a number of rules from 1",
                "remove the action to skip nothing",
            );
            None
        }
        count => Some(count),
    }
}

fn status(view: View<'_>, takes: Arguments<'_>, sink: &mut Sink) -> Option<u16> {
    let status = values::number(view, takes, sink)?;
    if !(100..=599).contains(&status) {
        sink.error(view.span(), format!("{status} is not a status code; they are 100 to 599"));
        return None;
    }
    Some(status)
}

fn transformation(view: View<'_>, sink: &mut Sink) -> Option<Action> {
    if view.bytes.eq_ignore_ascii_case(b"none") {
        return Some(Action::TransformNone);
    }
    let transformation = view.str().and_then(Transformation::from_name);
    if transformation.is_none() {
        let names = Transformation::ALL.iter().map(|t| t.name()).chain(["none"]);
        let near = suggest::hint(&view.show(), names);
        sink.error_maybe(view.span(), format!("unknown transformation {}", view.show()), near);
    }
    transformation.map(Action::Transform)
}

fn xml_ns(view: View<'_>, sink: &mut Sink) -> Option<Action> {
    match view.split_once(b'=') {
        Some((prefix, uri)) if !prefix.bytes.is_empty() && !uri.bytes.is_empty() => {
            Some(Action::XmlNs { prefix: prefix.bytes.into(), uri: uri.bytes.into() })
        }
        Some((prefix, _)) if !prefix.bytes.is_empty() => {
            sink.warn_hint(
                view.span(),
                "xmlns has no URI; this action is left out",
                "write xmlns:PREFIX=URI",
            );
            None
        }
        _ => {
            sink.error(view.span(), "xmlns takes PREFIX=URI");
            None
        }
    }
}

/// The collection called `name` if it can be written to.
fn collection(name: View<'_>, action: &str, persistent_only: bool, sink: &mut Sink) -> Option<Variable> {
    let variable = name.str().and_then(Variable::from_name);
    let fits = |v: Variable| v.shape() == Shape::Persistent || (v == Variable::Tx && !persistent_only);
    if let Some(variable) = variable.filter(|&v| fits(v)) {
        return Some(variable);
    }
    let names: Vec<&str> = Variable::ALL.iter().copied().filter(|&v| fits(v)).map(Variable::name).collect();
    let message = match variable {
        Some(variable) => format!("{action} does not work on {}", variable.name()),
        None => format!("unknown collection {}", name.show()),
    };
    let hint = suggest::hint(&name.show(), names.iter().copied())
        .unwrap_or_else(|| format!("{action} works on {}", names.join(", ")));
    sink.error_hint(name.span(), message, hint);
    None
}

/// `collection.key`; the key may hold macros and dots.
fn variable_key(view: View<'_>, action: &str, persistent_only: bool, sink: &mut Sink) -> Option<VariableKey> {
    let Some((name, key)) = view.split_once(b'.') else {
        sink.error_hint(
            view.span(),
            format!("{action} takes COLLECTION.NAME; the dot is missing"),
            format!("write tx.{} for a variable of this transaction", view.show()),
        );
        return None;
    };
    let collection = collection(name, action, persistent_only, sink)?;
    if key.bytes.is_empty() {
        sink.error(view.span(), format!("{action}: a name is missing after the dot"));
        return None;
    }
    Some(VariableKey { collection, key: key.bytes.into() })
}

fn set_var(view: View<'_>, sink: &mut Sink) -> Option<SetVar> {
    let (left, value) = match view.split_once(b'=') {
        // ModSecurity 2 takes blanks off the start of the value before it looks for a sign.
        Some((left, value)) => (left, Some(value.trim_start())),
        None => (view, None),
    };
    let unset = left.bytes.first() == Some(&b'!');
    let left = if unset { left.from(1) } else { left };
    let variable = variable_key(left, "setvar", false, sink)?;
    if unset && value.is_some() {
        sink.warn_hint(
            view.span(),
            "setvar with ! removes the variable; the value is ignored",
            "remove the ! or the =",
        );
    }
    if let Some(value) = value.filter(|v| v.bytes.starts_with(b"'")) {
        let hint = format!("quote the whole argument: setvar:'{}=...'", left.show());
        sink.warn_hint(value.span(), "this quote becomes part of the value", hint);
    }
    let operation = match value.map(|value| value.bytes) {
        _ if unset => SetVarOperation::Unset,
        None => SetVarOperation::Set("1".into()),
        Some([b'+', amount @ ..]) => SetVarOperation::Add(amount.into()),
        Some([b'-', amount @ ..]) => SetVarOperation::Subtract(amount.into()),
        Some(value) => SetVarOperation::Set(value.into()),
    };
    Some(SetVar { variable, operation })
}

fn expire_var(view: View<'_>, sink: &mut Sink) -> Option<Action> {
    let (left, seconds) = match view.split_once(b'=') {
        Some((left, seconds)) => (left, seconds.bytes.into()),
        None => (view, BString::from("1")),
    };
    // ModSecurity ignores expirevar on TX, which ends with the transaction anyway; rules in the wild have it.
    let persistent_only = false;
    Some(Action::ExpireVar { variable: variable_key(left, "expirevar", persistent_only, sink)?, seconds })
}

fn deprecate_var(view: View<'_>, sink: &mut Sink) -> Option<Action> {
    let parts = view.split_once(b'=').and_then(|(left, value)| Some((left, value.split_once(b'/')?)));
    let Some((left, (amount, seconds))) = parts else {
        sink.error(view.span(), "deprecatevar takes COLLECTION.NAME=AMOUNT/SECONDS");
        return None;
    };
    let variable = variable_key(left, "deprecatevar", false, sink)?;
    Some(Action::DeprecateVar { variable, amount: amount.bytes.into(), seconds: seconds.bytes.into() })
}

fn init_col(view: View<'_>, sink: &mut Sink) -> Option<Action> {
    match view.split_once(b'=') {
        Some((name, key)) if !key.bytes.is_empty() => {
            let collection = collection(name, "initcol", true, sink)?;
            Some(Action::InitCol { collection, key: key.bytes.into() })
        }
        _ => {
            sink.error_hint(
                view.span(),
                "initcol takes COLLECTION=KEY",
                "for example initcol:ip=%{REMOTE_ADDR}",
            );
            None
        }
    }
}
