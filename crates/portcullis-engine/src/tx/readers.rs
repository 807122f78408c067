//! Analysis of which rules write and read which keys of `TX`: keys that no other rule reads need not be
//! written.

use portcullis_types::Variable;

use crate::plan::{Act, Disruption, KeyFilter, Link, Plan, Rule, SetVar, SetVarOperation};
use crate::template::{Part, Template};

/// If keys that begin with `prefix` are written by the link with the number `writer` only, and read by
/// `reader` only, of all that run: the words that a key must have, in any case, so that others see it all the
/// same.
pub(crate) fn private(plan: &Plan, prefix: &[u8], writer: usize, reader: usize) -> Option<Vec<Vec<u8>>> {
    if plan.tx_names.iter().any(|name| starts_with(name, prefix)) {
        return None;
    }
    let mut words = Vec::new();
    for rule in plan.steps.iter().flatten().map(|step| plan.rule(step.rule)) {
        let mut texts: Vec<&Template> = texts_of_rule(rule).collect();
        for (at, link) in (rule.first_link as usize..).zip(plan.links_of(rule)) {
            texts.extend(link.operator.argument().into_iter().chain(link.acts.iter().flat_map(texts_of_act)));
            if at != writer && link.acts.iter().any(|act| may_write(act, prefix)) {
                return None;
            }
            if at != reader {
                words.extend(words_read(link, prefix)?);
            }
        }
        if texts.iter().any(|text| names(text, prefix)) {
            return None;
        }
    }
    Some(words)
}

/// True if a macro stands for `MATCHED_VARS` or the names of them.
pub(crate) fn macros_list_matches(plan: &Plan) -> bool {
    texts_of(plan).any(|text| {
        text.parts.iter().any(|part| {
            matches!(
                part,
                Part::Variable { variable: Variable::MatchedVars | Variable::MatchedVarsNames, .. }
            )
        })
    })
}

/// All texts of a plan that macros are replaced in.
pub(crate) fn texts_of(plan: &Plan) -> impl Iterator<Item = &Template> {
    let of_links = plan
        .links
        .iter()
        .flat_map(|link| link.operator.argument().into_iter().chain(link.acts.iter().flat_map(texts_of_act)));
    plan.rules.iter().flat_map(texts_of_rule).chain(of_links)
}

/// True if a macro of `text` may stand for such a key.
fn names(text: &Template, prefix: &[u8]) -> bool {
    text.parts.iter().any(|part| {
        if let Part::Variable { variable: Variable::Tx, key } = part {
            key.as_ref().is_none_or(|key| starts_with(key, prefix))
        } else {
            false
        }
    })
}

/// Words that keys with `prefix` must have so that `link` reads them; `None` if it may read any.
fn words_read(link: &Link, prefix: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    for target in link.targets.include.iter().filter(|target| target.variable == Variable::Tx) {
        match &target.filter {
            KeyFilter::Key(key) if !starts_with(key, prefix) => {}
            KeyFilter::Regex(regex) => match regex.pattern().strip_prefix(b"^") {
                Some(rest) if !may_meet(beginning(rest), prefix) => {}
                Some(_) => return None,
                None => match beginning(regex.pattern()) {
                    word if word.len() >= WORD_BYTES_MIN => words.push(word.to_ascii_lowercase()),
                    _ => return None,
                },
            },
            KeyFilter::Key(_) | KeyFilter::All | KeyFilter::Xml(_) => return None,
        }
    }
    Some(words)
}

/// Shorter words are in too many keys.
const WORD_BYTES_MIN: usize = 4;

fn may_write(act: &Act, prefix: &[u8]) -> bool {
    if let Act::SetVar(SetVar { collection: Variable::Tx, slot: None, key, .. }) = act {
        match key.parts.first() {
            Some(Part::Literal(text)) => may_meet(text, prefix),
            _ => true,
        }
    } else {
        false
    }
}

/// The prefix of every text that `pattern` finds; empty if the pattern does not show one.
fn beginning(pattern: &[u8]) -> &[u8] {
    if pattern.contains(&b'|') {
        return b"";
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let end = pattern.iter().position(|byte| !is_plain(byte)).unwrap_or(pattern.len());
    match pattern.get(end) {
        // A quantifier may take the last byte back.
        Some(b'*' | b'?' | b'{') => &pattern[..end.saturating_sub(1)],
        _ => &pattern[..end],
    }
}

/// True if a key may begin with both.
fn may_meet(one: &[u8], other: &[u8]) -> bool {
    starts_with(one, other) || starts_with(other, one)
}

fn starts_with(text: &[u8], prefix: &[u8]) -> bool {
    text.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

/// The texts of a rule as a whole.
fn texts_of_rule(rule: &Rule) -> impl Iterator<Item = &Template> {
    let metadata = &rule.metadata;
    let of_disruption = match &rule.disruption {
        Disruption::Redirect { location, .. } => Some(location),
        Disruption::Proxy(diversion) => Some(&diversion.target),
        Disruption::Pass | Disruption::Allow(_) | Disruption::Deny { .. } | Disruption::Drop => None,
    };
    let logged = metadata.msg.iter().chain(&metadata.log_data).map(|text| &text.template);
    logged.chain(&metadata.tags).chain(&rule.pause).chain(of_disruption)
}

/// The texts that an action replaces macros in.
fn texts_of_act(act: &Act) -> impl Iterator<Item = &Template> {
    let texts: [Option<&Template>; 3] = match act {
        Act::SetVar(SetVar { key, operation, .. }) => {
            let text = match operation {
                SetVarOperation::Set(text) | SetVarOperation::Add(text) | SetVarOperation::Subtract(text) => {
                    Some(text)
                }
                SetVarOperation::SetNumber(_) | SetVarOperation::AddNumber(_) | SetVarOperation::Unset => {
                    None
                }
            };
            [Some(key), text, None]
        }
        Act::Open(open) => [Some(&open.key), None, None],
        Act::Expire { key, seconds, .. } => [Some(key), Some(seconds), None],
        Act::Deprecate { key, amount, seconds, .. } => [Some(key), Some(amount), Some(seconds)],
        Act::SetEnv { name, value } => [Some(name), Some(value), None],
        Act::Append(text) | Act::Prepend(text) => [Some(text), None, None],
        Act::RateLimit(limit) => [Some(&limit.key), None, None],
        Act::RemoveRules(_)
        | Act::RemoveTarget(_)
        | Act::RuleEngine(_)
        | Act::BodyProcessor(_)
        | Act::ForceRequestBodyVariable(_)
        | Act::XmlArgs(_)
        | Act::RequestBodyAccess(_)
        | Act::RequestBodyLimit(_)
        | Act::ResponseBodyAccess(_)
        | Act::ResponseBodyLimit(_)
        | Act::Audit(_) => [None; 3],
    };
    texts.into_iter().flatten()
}
