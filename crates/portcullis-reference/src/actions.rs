//! Macros, and what non-disruptive actions do.

use bstr::{BString, ByteSlice};
use portcullis_http::body::content_type::Processor;
use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast::{Action, Ctl, SetVar, SetVarOperation, Target};
use portcullis_types::Variable;

use crate::load::{load_target, xml_args};
use crate::rules::{Chain, Select};
use crate::text::{atoi, escape_key, find};
use crate::transaction::{Chosen, Transaction, get, set, unset};
use crate::variables::values;

/// `text` with every `%{NAME}` and `%{NAME.key}` replaced by the first value of the variable, or by nothing.
/// Follows `expand_macros`.
pub(crate) fn expand(transaction: &Transaction<'_>, chain: &Chain, text: &[u8]) -> BString {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.iter().position(|&b| b == b'%') {
        let macro_end = rest[start..].starts_with(b"%{").then(|| find(&rest[start..], b"}")).flatten();
        let Some(end) = macro_end else {
            out.extend_from_slice(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        };
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(&macro_value(transaction, chain, &rest[start + 2..start + end]));
        rest = &rest[start + end + 1..];
    }
    out.extend_from_slice(rest);
    out.into()
}

fn macro_value(transaction: &Transaction<'_>, chain: &Chain, name: &[u8]) -> BString {
    let (name, select) = match name.find_byteset(b".:") {
        Some(at) => (&name[..at], Select::Key(name[at + 1..].into())),
        None => (name, Select::All),
    };
    let variable = name.to_str().ok().and_then(Variable::from_name);
    let Some(variable) = variable else { return BString::default() };
    use portcullis_types::Shape;
    let fits = match variable.shape() {
        Shape::Scalar => matches!(select, Select::All),
        Shape::Persistent => matches!(select, Select::Key(_)),
        Shape::Collection => {
            matches!(select, Select::Key(_)) || !matches!(variable, Variable::Tx | Variable::Rule)
        }
        Shape::Xpath => matches!(select, Select::All),
    };
    let all = if fits { values(transaction, variable, &select, chain) } else { None };
    all.and_then(|all| all.into_iter().next()).map(|value| value.value).unwrap_or_default()
}

/// Does what one action of a matching link does, if it is a non-disruptive one.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "metadata, flow and disruptive actions are read elsewhere"
)]
pub(crate) fn perform(transaction: &mut Transaction<'_>, chain: &Chain, action: &Action) {
    let expanded = |transaction: &Transaction<'_>, text: &[u8]| expand(transaction, chain, text);
    match action {
        Action::Prepend(text) => transaction.around_response.0 = expanded(transaction, text),
        Action::Append(text) => transaction.around_response.1 = expanded(transaction, text),
        Action::SetVar(set) => set_var(transaction, chain, set),
        Action::ExpireVar { variable, seconds } => {
            let key = escape_key(&expanded(transaction, &variable.key));
            let at = transaction.now().saturating_add(atoi(&expanded(transaction, seconds)));
            // TX has no such note: it ends with the transaction.
            if variable.collection != Variable::Tx
                && let Some(pairs) = transaction.collection_mut(variable.collection)
            {
                set(pairs, [b"__expire_", key.as_slice()].concat().into(), at.to_string().into());
            }
        }
        Action::DeprecateVar { variable, amount, seconds } => {
            let key = escape_key(&expanded(transaction, &variable.key));
            let amount = atoi(&expanded(transaction, amount));
            let seconds = atoi(&expanded(transaction, seconds));
            deprecate(transaction, variable.collection, &key, amount, seconds);
        }
        Action::SetEnv(text) => {
            let (name, value) = text.split_once_str(b"=").unwrap_or((text, b"1"));
            let name = escape_key(&expanded(transaction, name));
            let value = expanded(transaction, value);
            match name.strip_prefix(b"!") {
                Some(name) => unset(&mut transaction.env, name),
                None => set(&mut transaction.env, name, value),
            }
        }
        Action::InitCol { collection, key } => {
            let key = if transaction.modsecurity3 { key.clone() } else { outside_macros_lowercase(key) };
            let key = expanded(transaction, &key);
            transaction.open_collection(*collection, key, false);
        }
        Action::SetSid(key) => {
            let key = expanded(transaction, key);
            transaction.session_id = Some(key.clone());
            transaction.open_collection(Variable::Session, key, true);
        }
        Action::SetUid(key) => {
            let key = expanded(transaction, key);
            transaction.user_id = Some(key.clone());
            transaction.open_collection(Variable::User, key, true);
        }
        Action::SetRsc(key) => {
            let key = expanded(transaction, key);
            transaction.open_collection(Variable::Resource, key, true);
        }
        Action::Ctl(ctl) => control(transaction, ctl),
        _ => {}
    }
}

/// `text` in lower case, but for keys of macros, whose case may show in what they stand for.
fn outside_macros_lowercase(text: &[u8]) -> BString {
    let mut out = text.to_vec();
    let mut at = 0;
    while at < out.len() {
        let length = out[at..].starts_with(b"%{").then(|| find(&out[at..], b"}")).flatten();
        out[at].make_ascii_lowercase();
        at += length.unwrap_or(0) + 1;
    }
    out.into()
}

/// Follows `msre_action_deprecatevar_execute`.
fn deprecate(transaction: &mut Transaction<'_>, collection: Variable, key: &[u8], amount: i64, seconds: i64) {
    let now = transaction.now();
    let Some((_, open)) = transaction.collections.iter_mut().find(|(v, _)| *v == collection) else { return };
    let Some(before) = get(&open.pairs, key).map(|value| atoi(value)) else { return };
    let Some(last) = get(&open.pairs, b"LAST_UPDATE_TIME").map(|value| atoi(value)) else { return };
    if seconds == 0 {
        return;
    }
    let after = (before - amount * ((now - last) / seconds)).max(0);
    if after != before {
        let mut pairs = open.pairs.iter_mut();
        if let Some(pair) = pairs.find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            pair.1 = after.to_string().into();
        }
        open.changed = true;
    }
}

/// Follows `msre_action_setvar_execute`.
fn set_var(transaction: &mut Transaction<'_>, chain: &Chain, action: &SetVar) {
    let key = escape_key(&expand(transaction, chain, &action.variable.key));
    let (sign, amount) = match &action.operation {
        SetVarOperation::Set(value) => {
            let value = expand(transaction, chain, value);
            if let Some(pairs) = transaction.collection_mut(action.variable.collection) {
                set(pairs, key, value);
            }
            return;
        }
        SetVarOperation::Unset => {
            if let Some(pairs) = transaction.collection_mut(action.variable.collection) {
                unset(pairs, &key);
            }
            return;
        }
        SetVarOperation::Add(amount) => (b"+", expand(transaction, chain, amount)),
        SetVarOperation::Subtract(amount) => (b"-", expand(transaction, chain, amount)),
    };
    // The sign is part of the number that atoi reads, so "=+-5" adds nothing.
    let change = atoi(&[sign, amount.as_slice()].concat());
    let Some(pairs) = transaction.collection_mut(action.variable.collection) else { return };
    let before = get(pairs, &key).map_or(0, |value| atoi(value));
    let after = before.saturating_add(change).max(0);
    // A variable that is there keeps the spelling of its name.
    let name =
        pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case(&key)).map_or(key, |(name, _)| name.clone());
    set(pairs, name, after.to_string().into());
}

/// Follows `msre_action_ctl_execute`.
fn control(transaction: &mut Transaction<'_>, ctl: &Ctl) {
    let regex = |pattern: &[u8]| Pcre::new(pattern, RegexFlags::default()).ok();
    match ctl {
        Ctl::RuleEngine(engine) => transaction.engine = *engine,
        Ctl::RequestBodyAccess(on) => transaction.request_body_access = *on,
        Ctl::ResponseBodyAccess(on) => transaction.response_body_access = *on,
        Ctl::ForceRequestBodyVariable(on) => transaction.force_request_body = *on,
        Ctl::ParseXmlIntoArgs(args) => transaction.xml_args = Some(xml_args(*args)),
        Ctl::RequestBodyProcessor(processor) => {
            transaction.processor = Processor::from_name(processor.word());
        }
        Ctl::RuleRemoveById(ids) => transaction.removed.push(Chosen::Ids(ids.clone())),
        Ctl::RuleRemoveByTag(tag) => transaction.removed.extend(regex(tag).map(Chosen::Tag)),
        Ctl::RuleRemoveByMsg(msg) => transaction.removed.extend(regex(msg).map(Chosen::Msg)),
        Ctl::RuleRemoveTargetById { ids, target } => {
            remove_target(transaction, Some(Chosen::Ids(ids.clone())), target);
        }
        Ctl::RuleRemoveTargetByTag { tag, target } => {
            remove_target(transaction, regex(tag).map(Chosen::Tag), target);
        }
        Ctl::RuleRemoveTargetByMsg { msg, target } => {
            remove_target(transaction, regex(msg).map(Chosen::Msg), target);
        }
        // Logs and limits.
        Ctl::AuditEngine(_)
        | Ctl::AuditLogParts(_)
        | Ctl::DebugLogLevel(_)
        | Ctl::RateLimit { .. }
        | Ctl::RequestBodyLimit(_)
        | Ctl::ResponseBodyLimit(_)
        | Ctl::HashEngine(_)
        | Ctl::HashEnforcement(_) => {}
    }
}

fn remove_target(transaction: &mut Transaction<'_>, chosen: Option<Chosen>, target: &Target) {
    if let (Some(chosen), Ok(target)) = (chosen, load_target(target, &[])) {
        transaction.removed_targets.push((chosen, target));
    }
}
