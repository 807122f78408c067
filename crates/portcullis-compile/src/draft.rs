//! Rules on their way: chains closed, defaults merged, removals and updates applied, nothing compiled yet.

use std::borrow::Cow;

use portcullis_match::{Pcre, RegexFlags};
use portcullis_seclang::ast::{
    Action, Condition, Directive, Document, IdRange, Operator, Rule, RuleSelector, Spanned, Target,
    TargetKind,
};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::{Diagnostic, SourceSpan};
use portcullis_types::{Phase, RuleId, Variable};

use crate::lint::{described, missing_ids, useless_exclusions};

/// A rule or chain.
pub(crate) struct Draft<'a> {
    pub(crate) links: Vec<DraftLink<'a>>,
    /// The actions of the last `SecDefaultAction` before the rule.
    pub(crate) defaults: &'a [Spanned<Action>],
    pub(crate) phase: Phase,
    pub(crate) id: RuleId,
    /// The directive that took the rule out.
    pub(crate) removed: Option<(&'static str, SourceSpan)>,
    /// Directives that changed it.
    pub(crate) updates: Vec<(&'static str, SourceSpan)>,
    /// The places in the actions of the first link at which those of a `SecRuleUpdateActionById` begin.
    pub(crate) update_starts: Vec<usize>,
    pub(crate) span: SourceSpan,
}

/// As written, but where a directive changed it.
pub(crate) struct DraftLink<'a> {
    pub(crate) condition: Option<Cow<'a, Condition>>,
    pub(crate) actions: Cow<'a, [Spanned<Action>]>,
    pub(crate) span: SourceSpan,
}

/// Rules and markers in load order.
pub(crate) enum Entry<'a> {
    Rule(Draft<'a>),
    Marker(&'a [u8]),
}

/// Reads the directives of `document`; settings are left to the caller.
///
/// `modsecurity3`: as in libmodsecurity, a `SecDefaultAction` counts for rules of the phase it names only,
/// some ids may be missing or superfluous, and directives that change rules may stand before them.
pub(crate) fn drafts<'a>(
    document: &'a Document,
    modsecurity3: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Entry<'a>> {
    let mut reader = Reader {
        entries: Vec::new(),
        defaults: Default::default(),
        modsecurity3,
        chain_open: false,
        chain_refused: false,
        diagnostics,
    };
    let mut refused = document.refused.iter().peekable();
    for (at, directive) in document.directives.iter().enumerate() {
        while let Some(rule) = refused.next_if(|rule| rule.before <= at) {
            reader.refused(rule.chain);
        }
        if modsecurity3 && changes_rules(&directive.node) {
            reader.close_chain();
            reader.chain_refused = false;
        } else {
            reader.directive(&directive.node, directive.span);
        }
    }
    refused.for_each(|rule| reader.refused(rule.chain));
    reader.close_chain();
    for directive in document.directives.iter().filter(|one| modsecurity3 && changes_rules(&one.node)) {
        reader.directive(&directive.node, directive.span);
    }
    reader.check_duplicates();
    reader.entries
}

/// True for directives that remove rules or change them.
fn changes_rules(directive: &Directive) -> bool {
    matches!(
        directive,
        Directive::RemoveById(_)
            | Directive::RemoveByTag(_)
            | Directive::RemoveByMsg(_)
            | Directive::UpdateTarget { .. }
            | Directive::UpdateAction { .. }
    )
}

struct Reader<'a, 'd> {
    entries: Vec<Entry<'a>>,
    /// The last `SecDefaultAction`. In ModSecurity 2 there is one, whatever phase it names, and it is the
    /// first here; in libmodsecurity there is one for each phase.
    defaults: [&'a [Spanned<Action>]; 5],
    modsecurity3: bool,
    /// The newest rule waits for its next link.
    chain_open: bool,
    /// The next rule is a link of a chain whose first rule was refused.
    chain_refused: bool,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'a> Reader<'a, '_> {
    fn directive(&mut self, directive: &'a Directive, span: SourceSpan) {
        if !matches!(directive, Directive::Rule(_) | Directive::Script { .. } | Directive::Setting(_)) {
            self.close_chain();
            self.chain_refused = false;
        }
        match directive {
            Directive::Rule(rule) => self.rule(rule, span),
            Directive::Script { actions, .. } => self.script(actions, span),
            Directive::Marker(label) => self.entries.push(Entry::Marker(label)),
            Directive::DefaultAction(actions) => self.default_action(actions, span),
            Directive::RemoveById(ids) => {
                self.remove(&RuleSelector::Ids(ids.clone()), "SecRuleRemoveById", span)
            }
            Directive::RemoveByTag(tag) => {
                self.remove(&RuleSelector::Tag(tag.clone()), "SecRuleRemoveByTag", span)
            }
            Directive::RemoveByMsg(msg) => {
                self.remove(&RuleSelector::Msg(msg.clone()), "SecRuleRemoveByMsg", span)
            }
            Directive::UpdateTarget { rules, targets, replaced } => {
                self.update_target(rules, targets, replaced.as_deref(), span);
            }
            Directive::UpdateAction { id, link, actions } => self.update_action(*id, *link, actions, span),
            Directive::Setting(_) => {}
        }
    }

    fn rule(&mut self, rule: &'a Rule, span: SourceSpan) {
        self.add(rule.condition.as_ref().map(Cow::Borrowed), &rule.actions, span);
    }

    /// `SecRuleScript`: a rule that never matches. ModSecurity 2 wants no id of it; without one it
    /// cannot be named.
    fn script(&mut self, actions: &'a [Spanned<Action>], span: SourceSpan) {
        let is_rule = has(actions, |action| matches!(action, Action::Id(_)));
        if is_rule || self.chain_open || self.chain_refused {
            self.add(Some(Cow::Owned(never(span))), actions, span);
        } else {
            self.chain_refused = has(actions, |action| matches!(action, Action::Chain));
        }
    }

    /// A rule, or the next link of one.
    fn add(
        &mut self,
        condition: Option<Cow<'a, Condition>>,
        actions: &'a [Spanned<Action>],
        span: SourceSpan,
    ) {
        let condition_is_none = condition.is_none();
        let link = DraftLink { condition, actions: Cow::Borrowed(actions), span };
        let chained = has(actions, |action| matches!(action, Action::Chain));
        if self.chain_refused {
            self.chain_refused = chained;
            return;
        }
        if self.chain_open {
            self.check_link(actions);
            if let Some(Entry::Rule(draft)) = self.entries.last_mut() {
                draft.links.push(link);
            }
        } else {
            let phase = phase_of(actions);
            let default_phase = if self.modsecurity3 { None } else { phase_of(self.defaults[0]) };
            let phase = phase.or(default_phase).unwrap_or(Phase::RequestBody);
            let id = actions
                .iter()
                .rev()
                .find_map(|action| if let Action::Id(id) = action.node { Some(id) } else { None });
            // libmodsecurity wants an id of each SecRule, and none of a SecAction.
            if id.is_none() && !(self.modsecurity3 && condition_is_none) {
                let error = Diagnostic::error(span, "the rule has no id");
                self.diagnostics.push(error.with_hint("add an id that no other rule has, such as id:1000"));
            }
            self.entries.push(Entry::Rule(Draft {
                links: vec![link],
                defaults: self.defaults[self.default_slot(phase)],
                phase,
                id: id.unwrap_or(RuleId(0)),
                removed: None,
                updates: Vec::new(),
                update_starts: Vec::new(),
                span,
            }));
        }
        self.chain_open = chained;
    }

    /// A rule was left out for a mistake, which has been reported; `chain`: the next one is a link of the
    /// same chain.
    fn refused(&mut self, chain: bool) {
        match self.chain_open {
            true => self.chain_open = chain,
            false => self.chain_refused = chain,
        }
    }

    /// Actions that only the first link of a chain may have.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions may stand in any link")]
    fn check_link(&mut self, actions: &[Spanned<Action>]) {
        for action in actions {
            let what = match action.node {
                Action::Id(_) if self.modsecurity3 => {
                    let message = "the id of a later link of a chain has no effect";
                    let warning = Diagnostic::warning(action.span, message);
                    self.diagnostics
                        .push(warning.with_hint("remove it: the rule has the id of its first link"));
                    continue;
                }
                Action::Id(_) => "id",
                Action::Phase(_) => "phase",
                Action::Skip(_) | Action::SkipAfter(_) => "skip",
                Action::Deny
                | Action::Drop
                | Action::Allow(_)
                | Action::Redirect(_)
                | Action::Proxy(_)
                | Action::Pause(_) => "a disruptive action",
                Action::Block => {
                    let message = "block has no effect in a later link of a chain";
                    let warning = Diagnostic::warning(action.span, message);
                    self.diagnostics.push(warning.with_hint("move it to the first rule of the chain"));
                    continue;
                }
                _ => continue,
            };
            let error = Diagnostic::error(action.span, format!("a later link of a chain cannot have {what}"));
            self.diagnostics.push(error.with_hint("move it to the first rule of the chain"));
        }
    }

    fn close_chain(&mut self) {
        if !std::mem::take(&mut self.chain_open) {
            return;
        }
        if let Some(Entry::Rule(draft)) = self.entries.last_mut() {
            let span = draft.links.last().map_or(draft.span, |link| link.span);
            // ModSecurity 2.9.7 loads it; its last link never comes, so that the rule never completes.
            draft.links.push(DraftLink {
                condition: Some(Cow::Owned(never(span))),
                actions: Cow::Owned(Vec::new()),
                span,
            });
            let warning =
                Diagnostic::warning(span, "chain without a following rule: this rule never matches");
            self.diagnostics.push(
                warning.with_hint("remove the chain action, or add the rule that the chain goes on with"),
            );
        }
    }

    fn default_action(&mut self, actions: &'a [Spanned<Action>], span: SourceSpan) {
        let disruptive = |action: &Action| {
            matches!(
                action,
                Action::Pass
                    | Action::Deny
                    | Action::Drop
                    | Action::Allow(_)
                    | Action::Redirect(_)
                    | Action::Proxy(_)
            )
        };
        if !has(actions, disruptive) {
            let error = Diagnostic::error(span, "SecDefaultAction needs a disruptive action");
            self.diagnostics.push(error.with_hint("add pass, deny, drop, allow, redirect or proxy"));
        }
        self.check_default(actions);
        let slot = self.default_slot(phase_of(actions).unwrap_or(Phase::RequestBody));
        self.defaults[slot] = actions;
    }

    /// Reports the actions that ModSecurity 2 does not accept there (`cmd_default_action`).
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other actions may be defaults")]
    fn check_default(&mut self, actions: &[Spanned<Action>]) {
        for action in actions {
            let what = match action.node {
                Action::Id(_) => "id",
                Action::Rev(_) => "rev",
                Action::Msg(_) => "msg",
                Action::Ver(_) => "ver",
                Action::Accuracy(_) => "accuracy",
                Action::Maturity(_) => "maturity",
                Action::Chain => "chain",
                Action::Skip(_) => "skip",
                Action::SkipAfter(_) => "skipAfter",
                _ => continue,
            };
            let error = Diagnostic::error(action.span, format!("SecDefaultAction cannot have {what}"));
            self.diagnostics.push(error.with_hint("it belongs to one rule: write it there"));
        }
    }

    /// A directive that changes rules and finds none: rules have to stand before it.
    fn warn_of_none(&mut self, directive: &str, selector: &RuleSelector, span: SourceSpan) {
        let what = described(selector);
        let (scope, hint) = match self.modsecurity3 {
            true => ("no rule is loaded", "it changes nothing: mend it, or remove it"),
            false => (
                "no rule before this line",
                "it changes nothing; put it behind the rules that it is about, or remove it",
            ),
        };
        let warning = Diagnostic::warning(span, format!("{directive}: {scope} {what}"));
        self.diagnostics.push(warning.with_hint(hint));
    }

    fn default_slot(&self, phase: Phase) -> usize {
        if self.modsecurity3 { usize::from(phase.number()) - 1 } else { 0 }
    }

    fn remove(&mut self, selector: &RuleSelector, directive: &'static str, span: SourceSpan) {
        let mut selected = self.selected(selector, span);
        for draft in &mut selected {
            draft.removed.get_or_insert((directive, span));
        }
        let absent = absent(selector, &selected);
        absent.into_iter().for_each(|absent| self.warn_of_none(directive, &absent, span));
    }

    fn update_target(
        &mut self,
        selector: &RuleSelector,
        targets: &[Spanned<Target>],
        replaced: Option<&[Spanned<Target>]>,
        span: SourceSpan,
    ) {
        let directive = match selector {
            RuleSelector::Ids(_) => "SecRuleUpdateTargetById",
            RuleSelector::Tag(_) => "SecRuleUpdateTargetByTag",
            RuleSelector::Msg(_) => "SecRuleUpdateTargetByMsg",
        };
        let mut selected = self.selected(selector, span);
        let absent = absent(selector, &selected);
        let useless =
            if selected.is_empty() { Vec::new() } else { useless_exclusions(directive, targets, &selected) };
        for draft in &mut selected {
            draft.updates.push((directive, span));
            // Every link of a chain is updated (msre_ruleset_phase_rule_update_target_matching_exception).
            for link in &mut draft.links {
                match &mut link.condition {
                    Some(condition) => update_condition(condition.to_mut(), targets, replaced),
                    None if replaced.is_none() => {
                        link.condition = action_condition(targets, link.span).map(Cow::Owned);
                    }
                    None => {}
                }
            }
        }
        absent.into_iter().for_each(|absent| self.warn_of_none(directive, &absent, span));
        self.diagnostics.extend(useless);
    }

    fn update_action(&mut self, id: RuleId, link: u32, actions: &[Spanned<Action>], span: SourceSpan) {
        let ids = RuleSelector::Ids(vec![IdRange { first: id.0, last: id.0 }]);
        let (mut missing, mut found) = (false, false);
        for draft in self.selected(&ids, span) {
            found = true;
            draft.updates.push(("SecRuleUpdateActionById", span));
            if link == 0 {
                draft.update_starts.push(draft.links[0].actions.len());
            }
            match draft.links.get_mut(link as usize) {
                Some(link) => link.actions.to_mut().extend(actions.iter().cloned()),
                None => missing = true,
            }
        }
        if !found {
            self.warn_of_none("SecRuleUpdateActionById", &ids, span);
        }
        if missing {
            let message = format!("the chain of rule {id} has no link {link}: this changes nothing");
            self.diagnostics.push(Diagnostic::warning(span, message));
        }
    }

    /// Rules so far that `selector` speaks of.
    fn selected(&mut self, selector: &RuleSelector, span: SourceSpan) -> Vec<&mut Draft<'a>> {
        let matcher = match Matcher::new(selector) {
            Ok(matcher) => matcher,
            Err(message) => {
                self.diagnostics.push(Diagnostic::error(span, message));
                return Vec::new();
            }
        };
        let drafts = self.entries.iter_mut().filter_map(|entry| match entry {
            Entry::Rule(draft) => Some(draft),
            Entry::Marker(_) => None,
        });
        drafts.filter(|draft| matcher.selects(draft)).collect()
    }

    fn check_duplicates(&mut self) {
        let mut seen: std::collections::HashMap<RuleId, SourceSpan> = std::collections::HashMap::new();
        for entry in &self.entries {
            let Entry::Rule(draft) = entry else { continue };
            if draft.id == RuleId(0) || draft.removed.is_some() {
                continue;
            }
            if let Some(first) = seen.insert(draft.id, draft.span) {
                let error = Diagnostic::error(draft.span, format!("rule id {} is used twice", draft.id));
                self.diagnostics.push(error.with_related(first, "first used here"));
            }
        }
    }
}

/// The names in `selector` that match no rule.
fn absent(selector: &RuleSelector, selected: &[&mut Draft<'_>]) -> Option<RuleSelector> {
    match selector {
        RuleSelector::Ids(ids) => {
            let missing = missing_ids(ids, selected);
            (!missing.is_empty()).then_some(RuleSelector::Ids(missing))
        }
        RuleSelector::Tag(_) | RuleSelector::Msg(_) => selected.is_empty().then(|| selector.clone()),
    }
}

/// A condition that never matches.
fn never(span: SourceSpan) -> Condition {
    let target = Target { kind: TargetKind::Values, variable: Variable::RemoteAddr, selector: None };
    let operator = Operator { negated: false, name: OperatorName::NoMatch, argument: Default::default() };
    Condition { targets: vec![Spanned { node: target, span }], operator: Spanned { node: operator, span } }
}

/// A `SecAction` always matches one value, the client's address; with more targets it matches as many more.
fn action_condition(targets: &[Spanned<Target>], span: SourceSpan) -> Option<Condition> {
    targets.iter().find(|target| target.node.kind != TargetKind::Exclude)?;
    let own = Target { kind: TargetKind::Values, variable: Variable::RemoteAddr, selector: None };
    let always =
        Operator { negated: false, name: OperatorName::UnconditionalMatch, argument: Default::default() };
    let targets = [Spanned { node: own, span }].into_iter().chain(targets.iter().cloned()).collect();
    Some(Condition { targets, operator: Spanned { node: always, span } })
}

/// Follows `update_rule_target_ex`: with `replaced`, the targets take the place of one that is there;
/// without, those that are not there yet are added.
fn update_condition(
    condition: &mut Condition,
    targets: &[Spanned<Target>],
    replaced: Option<&[Spanned<Target>]>,
) {
    if let Some(replaced) = replaced {
        let before = condition.targets.len();
        condition.targets.retain(|own| !replaced.iter().any(|gone| gone.node == own.node));
        if condition.targets.len() < before {
            condition.targets.extend(targets.iter().cloned());
        }
        return;
    }
    for target in targets {
        if !condition.targets.iter().any(|own| own.node == target.node) {
            condition.targets.push(target.clone());
        }
    }
}

/// Decides which rules an id list, tag or message expression means.
pub(crate) enum Matcher {
    Ids(Vec<IdRange>),
    Tag(Pcre),
    Msg(Pcre),
}

impl Matcher {
    pub(crate) fn new(selector: &RuleSelector) -> Result<Matcher, String> {
        let regex =
            |pattern: &[u8]| Pcre::new(pattern, RegexFlags::default()).map_err(|error| error.to_string());
        match selector {
            RuleSelector::Ids(ids) => Ok(Matcher::Ids(ids.clone())),
            RuleSelector::Tag(tag) => Ok(Matcher::Tag(regex(tag)?)),
            RuleSelector::Msg(msg) => Ok(Matcher::Msg(regex(msg)?)),
        }
    }

    pub(crate) fn selects(&self, draft: &Draft<'_>) -> bool {
        let mut actions = draft.links[0].actions.iter().map(|action| &action.node);
        match self {
            Matcher::Ids(ids) => ids.iter().any(|range| (range.first..=range.last).contains(&draft.id.0)),
            Matcher::Tag(regex) => {
                actions.any(|action| matches!(action, Action::Tag(tag) if regex.is_match(tag)))
            }
            Matcher::Msg(regex) => {
                actions.any(|action| matches!(action, Action::Msg(msg) if regex.is_match(msg)))
            }
        }
    }
}

pub(crate) fn has(actions: &[Spanned<Action>], wanted: impl Fn(&Action) -> bool) -> bool {
    actions.iter().any(|action| wanted(&action.node))
}

/// The last `phase` among `actions`.
fn phase_of(actions: &[Spanned<Action>]) -> Option<Phase> {
    actions
        .iter()
        .rev()
        .find_map(|action| if let Action::Phase(phase) = action.node { Some(phase) } else { None })
}

/// True for `!` targets.
pub(crate) fn is_exclusion(target: &Target) -> bool {
    target.kind == TargetKind::Exclude
}
