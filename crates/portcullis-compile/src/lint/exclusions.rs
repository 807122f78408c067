//! Removals and exclusions of what is not there, and of the rule that makes the decision.

use portcullis_seclang::ast::{
    Action, Ctl, IdRange, RuleSelector, Selector, SetVarOperation, Spanned, Target, TargetKind,
};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::{Diagnostic, SourceSpan};
use portcullis_types::Variable;

use super::{Grouped, Rules, actions, warning};
use crate::draft::{Draft, DraftLink, Matcher};

pub(super) fn look(rules: &Rules<'_, '_>, found: &mut Vec<Diagnostic>) {
    let mut grouped = Grouped::default();
    for (_, draft, link) in rules.links() {
        for action in actions(draft, link) {
            if let Action::Ctl(option) = &action.node {
                at_run_time(rules, option, action.span).into_iter().for_each(|one| grouped.add(one));
            }
        }
    }
    found.extend(grouped.into_diagnostics());
    let mut told: Vec<SourceSpan> = Vec::new();
    for draft in rules.removed.iter().rev().filter(|draft| decides(draft, rules)) {
        let Some((directive, span)) = draft.removed.filter(|(_, span)| !told.contains(span)) else {
            continue;
        };
        if is_last_decision(draft, rules, |_| false) {
            told.push(span);
            found.push(undecided(directive, draft, span));
        }
    }
}

/// True if points are still counted and nothing decides by them once `draft` and what else is `gone` do not
/// run. A decision in an earlier phase is made before all points are counted.
fn is_last_decision(draft: &Draft<'_>, rules: &Rules<'_, '_>, gone: impl Fn(&Draft<'_>) -> bool) -> bool {
    let key = decisive_key(draft, rules);
    let decides_later =
        |other: &Draft<'_>| !gone(other) && other.phase >= draft.phase && decisive_key(other, rules) == key;
    !rules.running.iter().any(|(_, other)| decides_later(other)) && counts_go_on(rules, gone)
}

/// Targets that `ctl` removes for the requests that its rule matches.
fn at_run_time(rules: &Rules<'_, '_>, option: &Ctl, span: SourceSpan) -> Option<Diagnostic> {
    let (name, selector, target) = match option {
        Ctl::RuleRemoveById(ids) => ("ctl:ruleRemoveById", RuleSelector::Ids(ids.clone()), None),
        Ctl::RuleRemoveByTag(tag) => ("ctl:ruleRemoveByTag", RuleSelector::Tag(tag.clone()), None),
        Ctl::RuleRemoveByMsg(msg) => ("ctl:ruleRemoveByMsg", RuleSelector::Msg(msg.clone()), None),
        Ctl::RuleRemoveTargetById { ids, target } => {
            ("ctl:ruleRemoveTargetById", RuleSelector::Ids(ids.clone()), Some(target))
        }
        Ctl::RuleRemoveTargetByTag { tag, target } => {
            ("ctl:ruleRemoveTargetByTag", RuleSelector::Tag(tag.clone()), Some(target))
        }
        Ctl::RuleRemoveTargetByMsg { msg, target } => {
            ("ctl:ruleRemoveTargetByMsg", RuleSelector::Msg(msg.clone()), Some(target))
        }
        Ctl::AuditEngine(_)
        | Ctl::AuditLogParts(_)
        | Ctl::DebugLogLevel(_)
        | Ctl::ForceRequestBodyVariable(_)
        | Ctl::RateLimit { .. }
        | Ctl::RequestBodyAccess(_)
        | Ctl::RequestBodyLimit(_)
        | Ctl::RequestBodyProcessor(_)
        | Ctl::ResponseBodyAccess(_)
        | Ctl::ResponseBodyLimit(_)
        | Ctl::RuleEngine(_)
        | Ctl::HashEngine(_)
        | Ctl::HashEnforcement(_)
        | Ctl::ParseXmlIntoArgs(_) => return None,
    };
    // A pattern that is none is an error of its own.
    let matcher = Matcher::new(&selector).ok()?;
    let selected = || rules.running.iter().map(|(_, draft)| *draft).filter(|draft| matcher.selects(draft));
    if selected().next().is_none() {
        let message = format!("{name}: no rule is loaded {}", described(&selector));
        return Some(warning(span, message, "it changes nothing: mend it, or remove it".to_owned()));
    }
    match target {
        Some(target) => useless_exclusion(name, target, span, selected().map(|draft| &draft.links[..1])),
        None => {
            let decision = selected().filter(|draft| decides(draft, rules)).last()?;
            let is_last = is_last_decision(decision, rules, |other| matcher.selects(other));
            is_last.then(|| undecided(name, decision, span))
        }
    }
}

/// The ids and ranges that none of `rules` has.
pub(crate) fn missing_ids(ids: &[IdRange], rules: &[&mut Draft<'_>]) -> Vec<IdRange> {
    let is_there = |range: &IdRange| rules.iter().any(|rule| (range.first..=range.last).contains(&rule.id.0));
    ids.iter().filter(|range| !is_there(range)).copied().collect()
}

/// A warning for each of `targets` that is taken from `rules` and that none of them has.
pub(crate) fn useless_exclusions(
    directive: &str,
    targets: &[Spanned<Target>],
    rules: &[&mut Draft<'_>],
) -> Vec<Diagnostic> {
    let exclusions = targets.iter().filter(|target| target.node.kind == TargetKind::Exclude);
    let links = || rules.iter().map(|draft| draft.links.as_slice());
    exclusions.filter_map(|target| useless_exclusion(directive, &target.node, target.span, links())).collect()
}

/// A warning if none of the links of rules looks at anything that `target` could take away.
fn useless_exclusion<'l, 'a: 'l>(
    directive: &str,
    target: &Target,
    span: SourceSpan,
    mut rules: impl Iterator<Item = &'l [DraftLink<'a>]>,
) -> Option<Diagnostic> {
    let is_met = |link: &DraftLink<'_>| match &link.condition {
        Some(condition) => condition.targets.iter().any(|own| may_name(target, &own.node)),
        None => target.variable == Variable::RemoteAddr,
    };
    if rules.any(|links| links.iter().any(is_met)) {
        return None;
    }
    let name = match &target.selector {
        Some(Selector::Key(key)) => format!("{}:{}", target.variable.name(), key.escape_ascii()),
        _ => target.variable.name().to_owned(),
    };
    let message =
        format!("{directive}: the rules that it names do not look at {name}: this excludes nothing");
    let hint =
        "name the rules that found something there: events and the error log have their ids".to_owned();
    Some(warning(span, message, hint))
}

/// True if a target of a rule could be one that `exclusion` takes away. Exclusions go by name: `ARGS` is not
/// `ARGS_GET`.
fn may_name(exclusion: &Target, own: &Target) -> bool {
    // What was matched before has the name it was matched under.
    let by_name = matches!(own.variable, Variable::MatchedVars | Variable::MatchedVarsNames);
    own.kind == TargetKind::Values
        && (by_name || own.variable == exclusion.variable && may_be_same(&exclusion.selector, &own.selector))
}

fn may_be_same(exclusion: &Option<Selector>, own: &Option<Selector>) -> bool {
    match (exclusion, own) {
        (Some(Selector::Key(one)), Some(Selector::Key(other))) => one.eq_ignore_ascii_case(other),
        _ => true,
    }
}

/// True for a rule that denies because a sum in `TX` has reached some number: the one that makes the decision
/// where rules only count points.
fn decides(draft: &Draft<'_>, rules: &Rules<'_, '_>) -> bool {
    decisive_key(draft, rules).is_some()
}

/// The key of that sum, in lower case.
fn decisive_key(draft: &Draft<'_>, rules: &Rules<'_, '_>) -> Option<Vec<u8>> {
    let condition = draft.links.first().filter(|_| denies(draft))?.condition.as_ref()?;
    if !matches!(condition.operator.node.name, OperatorName::Ge | OperatorName::Gt) {
        return None;
    }
    let sum = condition.targets.iter().find(|target| is_sum(&target.node, rules))?;
    match &sum.node.selector {
        Some(Selector::Key(key)) => Some(key.to_ascii_lowercase()),
        _ => None,
    }
}

/// True for a key of `TX` that some rule adds to.
fn is_sum(target: &Target, rules: &Rules<'_, '_>) -> bool {
    let (Variable::Tx, TargetKind::Values, Some(Selector::Key(key))) =
        (target.variable, target.kind, &target.selector)
    else {
        return false;
    };
    rules.links().flat_map(|(_, draft, link)| actions(draft, link)).any(|action| {
        if let Action::SetVar(set) = &action.node {
            is_addition(action) && set.variable.key.eq_ignore_ascii_case(key)
        } else {
            false
        }
    })
}

fn is_addition(action: &Spanned<Action>) -> bool {
    matches!(&action.node, Action::SetVar(set)
        if set.variable.collection == Variable::Tx && matches!(set.operation, SetVarOperation::Add(_)))
}

/// True if most rules that add points, and leave the decision to another rule, are not `gone`.
fn counts_go_on(rules: &Rules<'_, '_>, gone: impl Fn(&Draft<'_>) -> bool) -> bool {
    let adds = |draft: &Draft<'_>| draft.links.iter().any(|link| link.actions.iter().any(is_addition));
    let running = rules.running.iter().map(|&(_, draft)| (draft, gone(draft)));
    let all = running.chain(rules.removed.iter().map(|&draft| (draft, true)));
    let (mut counting, mut others) = (0, 0);
    for (draft, is_gone) in all.filter(|(draft, _)| adds(draft)) {
        match is_gone || denies(draft) {
            true => others += 1,
            false => counting += 1,
        }
    }
    counting > others
}

/// True if the rule refuses what it matches.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other actions decide nothing")]
fn denies(draft: &Draft<'_>) -> bool {
    let last = |actions: &[Spanned<Action>]| {
        actions.iter().rev().find_map(|action| match &action.node {
            Action::Deny | Action::Drop | Action::Redirect(_) | Action::Proxy(_) => Some(Some(true)),
            Action::Pass | Action::Allow(_) => Some(Some(false)),
            Action::Block => Some(None),
            _ => None,
        })
    };
    let own = draft.links.first().and_then(|link| last(&link.actions));
    own.flatten().or_else(|| last(draft.defaults).flatten()).unwrap_or(false)
}

fn undecided(directive: &str, draft: &Draft<'_>, span: SourceSpan) -> Diagnostic {
    let id = draft.id;
    let message = format!(
        "{directive}: rule {id} is the one that denies when rules have counted enough points: without it nothing is blocked"
    );
    let hint = "exclude the rules that count the points (events and the error log have their ids); to block nothing on \
                purpose write SecRuleEngine DetectionOnly, or ctl:ruleEngine=DetectionOnly for some requests";
    warning(span, message, hint.to_owned())
}

/// The rules of a selector in words.
pub(crate) fn described(selector: &RuleSelector) -> String {
    match selector {
        RuleSelector::Ids(ids) => {
            let shown = ids.iter().map(|range| match range.first == range.last {
                true => range.first.to_string(),
                false => format!("{}-{}", range.first, range.last),
            });
            format!("with the id {}", shown.collect::<Vec<_>>().join(" "))
        }
        RuleSelector::Tag(tag) => format!("with a tag that matches {tag:?}"),
        RuleSelector::Msg(msg) => format!("with a message that matches {msg:?}"),
    }
}
