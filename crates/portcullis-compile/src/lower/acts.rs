//! Non-disruptive actions.

use portcullis_engine::{Act, SetVar, SetVarOperation, Template};
use portcullis_seclang::ast::{self, Action, Spanned};
use portcullis_seclang::standing::{self, Standing};
use portcullis_seclang::{Diagnostic, SourceSpan};
use portcullis_types::{Shape, Variable};

use super::Lowering;
use crate::draft::Draft;
use crate::{audit, collections, ctl};

impl Lowering<'_> {
    /// The non-disruptive act of an action; `None` for metadata, flow and disruptive actions.
    pub(super) fn act(&mut self, action: &Spanned<Action>, running: &[&Draft<'_>]) -> Option<Act> {
        if let Action::SanitiseMatchedBytes(text) = &action.node
            && audit::kept_bytes(text).is_none()
        {
            let message =
                format!("sanitiseMatchedBytes: {text:?} is no pair of numbers; all of the value is masked");
            let hint = "write the first and last bytes to keep, up to 255, such as 1/4";
            self.warn(action.span, message, Some(hint.to_owned()));
        }
        let result = match audit::act(&action.node) {
            Some(act) => act,
            None => match &action.node {
                Action::SetVar(set) => self.set_var(set).map(Act::SetVar),
                Action::InitCol { collection, key } => collections::init(self, *collection, key),
                Action::SetSid(key) => collections::of_application(self, Variable::Session, key),
                Action::SetUid(key) => collections::of_application(self, Variable::User, key),
                Action::SetRsc(key) => collections::of_application(self, Variable::Resource, key),
                Action::Append(text) => Ok(Act::Append(self.injection("append", text, action.span))),
                Action::Prepend(text) => Ok(Act::Prepend(self.injection("prepend", text, action.span))),
                Action::SetEnv(text) => self.set_env(text),
                Action::ExpireVar { variable, .. } if variable.collection == Variable::Tx => {
                    let message = "expirevar has no effect on TX, which ends with the transaction";
                    self.diagnostics.push(Diagnostic::warning(action.span, message.to_owned()));
                    return None;
                }
                Action::ExpireVar { variable, seconds } => collections::expire(self, variable, seconds),
                Action::DeprecateVar { variable, amount, seconds } => {
                    collections::deprecate(self, variable, amount, seconds)
                }
                // The hash engine is never on, so it is off already.
                Action::Ctl(ast::Ctl::HashEngine(false) | ast::Ctl::HashEnforcement(false)) => return None,
                Action::Ctl(option) if ctl::without_effect(option).is_some() => {
                    let (message, hint) = ctl::without_effect(option)?;
                    self.warn(action.span, message, Some(hint));
                    return None;
                }
                Action::Ctl(ast::Ctl::RateLimit { limit, key }) => self.rate_limit(limit, key),
                Action::Ctl(option) => ctl::act(option, running, &mut self.plan),
                other @ (Action::Id(_)
                | Action::Phase(_)
                | Action::Msg(_)
                | Action::LogData(_)
                | Action::Tag(_)
                | Action::Severity(_)
                | Action::Ver(_)
                | Action::Rev(_)
                | Action::Maturity(_)
                | Action::Accuracy(_)
                | Action::Block
                | Action::Deny
                | Action::Drop
                | Action::Pass
                | Action::Allow(_)
                | Action::Redirect(_)
                | Action::Proxy(_)
                | Action::Pause(_)
                | Action::Status(_)
                | Action::XmlNs { .. }
                | Action::Chain
                | Action::Skip(_)
                | Action::SkipAfter(_)
                | Action::Log
                | Action::NoLog
                | Action::AuditLog
                | Action::NoAuditLog
                | Action::Capture
                | Action::MultiMatch
                | Action::Exec(_)
                | Action::SanitiseArg(_)
                | Action::SanitiseMatched
                | Action::SanitiseMatchedBytes(_)
                | Action::SanitiseRequestHeader(_)
                | Action::SanitiseResponseHeader(_)
                | Action::TransformNone
                | Action::Transform(_)) => return self.no_act(other, action.span),
            },
        };
        self.tell_of_macros(action.span);
        match result {
            Ok(act) => Some(act),
            Err(message) => {
                self.error(action.span, message, None);
                None
            }
        }
    }

    /// Metadata, flow and disruptive actions are no acts; what else comes here is not carried out.
    fn no_act(&mut self, action: &Action, span: SourceSpan) -> Option<Act> {
        let name = action.name();
        if let Standing::Vain(refusal) = standing::action(name) {
            let message = format!("{} is not carried out: {}", name.name(), refusal.why);
            self.warn(span, message, Some(refusal.instead.to_owned()));
        }
        None
    }

    /// `name=value`, `name`, `!name`.
    fn set_env(&mut self, text: &[u8]) -> Result<Act, String> {
        let (name, value) = match text.iter().position(|&b| b == b'=') {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &b"1"[..]),
        };
        if name.is_empty() {
            return Err("setenv takes NAME=VALUE, NAME or !NAME".to_owned());
        }
        Ok(Act::SetEnv { name: self.text(name), value: self.text(value) })
    }

    fn set_var(&mut self, set: &ast::SetVar) -> Result<SetVar, String> {
        let collection = set.variable.collection;
        if collection != Variable::Tx && collection.shape() != Shape::Persistent {
            return Err(format!("setvar cannot change {}", collection.name()));
        }
        let key = self.text(&set.variable.key);
        let slot = match key.as_literal() {
            Some(name) if collection == Variable::Tx => Some(self.names.set_tx(name)),
            _ => None,
        };
        let number = |template: &Template| template.as_literal().map(portcullis_engine::addend);
        let operation = match &set.operation {
            ast::SetVarOperation::Unset => SetVarOperation::Unset,
            ast::SetVarOperation::Set(value) => {
                let value = self.text(value);
                match value.as_literal().and_then(portcullis_engine::canonical_int) {
                    Some(number) => SetVarOperation::SetNumber(number),
                    None => SetVarOperation::Set(value),
                }
            }
            ast::SetVarOperation::Add(value) => {
                let value = self.text(value);
                number(&value).map_or_else(|| SetVarOperation::Add(value.clone()), SetVarOperation::AddNumber)
            }
            ast::SetVarOperation::Subtract(value) => {
                let value = self.text(value);
                match number(&value) {
                    Some(number) => SetVarOperation::AddNumber(number.saturating_neg()),
                    None => SetVarOperation::Subtract(value),
                }
            }
        };
        Ok(SetVar { collection, slot, key, operation })
    }
}
