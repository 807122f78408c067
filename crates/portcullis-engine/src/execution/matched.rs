//! The effects of a match: `MATCHED_VAR`, captures, actions, and the record of the match.

use portcullis_types::{Span, Variable};

use crate::Class;
use crate::LogText;
use crate::collect::Item;
use crate::operator::{Captures, Operator};
use crate::plan::{Link, Rule, RuleIndex};
use crate::record::{Match, escape_key, target_name};
use crate::transaction::Transaction;
use crate::tx::{TxSlot, TxValue};
use crate::work::MATCH_UNITS;
use portcullis_values::Values;

use super::{Execution, LinkAt};

/// The last match: `MATCHED_VAR`, `MATCHED_VAR_NAME`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matched {
    pub(crate) variable: Option<Variable>,
    pub(crate) count: bool,
    pub(crate) key: Span,
    pub(crate) value: Span,
}

impl Matched {
    pub(crate) fn name(&self, store: &Values) -> Vec<u8> {
        match self.variable {
            None => Vec::new(),
            // A count goes by the bare name of its collection (execute_operator).
            Some(variable) if self.count => variable.name().as_bytes().to_vec(),
            // The key of a matched variable is a name already.
            Some(Variable::MatchedVars | Variable::MatchedVarsNames) => store.text(self.key).to_vec(),
            Some(variable) => target_name(variable, false, &escape_key(store.text(self.key))),
        }
    }
}

impl Execution<'_> {
    /// The operator of a link has found what it looks for in `form`, what the transformations made of `item`.
    pub(super) fn on_match(
        &mut self,
        at: LinkAt<'_>,
        item: &Item,
        form: Span,
        argument: &[u8],
        captures: &Captures,
    ) {
        let LinkAt { link, .. } = at;
        let rule = self.plan.rule(at.rule);
        self.run.patterns.charge(MATCH_UNITS);
        let form = if let Operator::Rsub(substitution) = &link.operator {
            self.substitute(substitution, item, form, argument)
        } else {
            form
        };
        self.vars.matched =
            Matched { variable: Some(item.variable), count: item.count, key: item.key, value: form };
        if rule.link_count > 1 || self.plan.macros_list_matches {
            let name = self.vars.matched.name(&self.message.store);
            let name = self.message.store.push(&name);
            self.message.store.add(Class::MatchedVars, name, form);
            self.message.store.add(Class::MatchedVarsNames, name, name);
        }
        let severity = rule.metadata.severity.map(|severity| severity.number());
        if let Some(severity) = severity.filter(|&s| at.is_last && s > 0 && s < self.vars.highest_severity) {
            self.vars.highest_severity = severity;
        }
        self.note_matched_bytes(link, form, argument, captures);
        self.run_acts(&link.acts);
        if at.is_last {
            let found = captures.groups[0].or_else(|| {
                let wanted = rule.log && !link.negated;
                wanted.then(|| link.operator.locate(self.message.store.text(form), argument)).flatten()
            });
            self.complete(at, item, form, found);
        }
    }

    /// `TX:0` to `TX:9`. Groups before the last one that took part are set, if only to the empty text; those
    /// behind it vanish.
    pub(super) fn set_captures(&mut self, form: Span, captures: &Captures) {
        let first = match &captures.text {
            Some(text) => Some(self.message.store.push(text)),
            None => captures.groups[0].map(|group| within(form, group)),
        };
        let Some(first) = first else { return };
        self.vars.tx.renew_slot(TxSlot(0), TxValue::Text(first));
        if captures.keeps_others {
            return;
        }
        let last = captures.groups.iter().rposition(Option::is_some).unwrap_or(0);
        for (at, group) in captures.groups.iter().enumerate().skip(1) {
            let value = match group {
                Some(group) => TxValue::Text(within(form, *group)),
                None if at < last => TxValue::Text(Span::default()),
                None => TxValue::Unset,
            };
            self.vars.tx.renew_slot(TxSlot(at as u32), value);
        }
        for (at, group) in (10..).zip(&captures.more) {
            self.set_tx(at.to_string().as_bytes(), TxValue::Text(within(form, *group)));
        }
    }

    /// A match of the last link: the rule as a whole matched.
    fn complete(&mut self, at: LinkAt<'_>, item: &Item, form: Span, found: Option<Span>) {
        let rule = self.plan.rule(at.rule);
        self.journal.audit.relevant |= rule.audit_log;
        let shown = rule.log || rule.audit_log;
        let mut expanded = |text: Option<&LogText>| {
            let text = text.filter(|_| shown && self.journal.matches.len() < Transaction::MATCHES_MAX)?;
            Some(self.expand_log_text(&text.template))
        };
        let texts = (expanded(rule.metadata.msg.as_ref()), expanded(rule.metadata.log_data.as_ref()));
        let raw = self.message.store.data(item.value);
        self.remember(at, (item, raw, form, found), texts);
        if !self.is_withheld(at.rule) {
            self.disrupt(at.rule);
        }
    }

    /// Notes that a rule matched: the item with its value as it came, as the operator saw it and what that
    /// found there; `msg` and `logdata`.
    fn remember(
        &mut self,
        at: LinkAt<'_>,
        (item, raw, value, found): (&Item, Span, Span, Option<Span>),
        (msg, log_data): (Option<Span>, Option<Span>),
    ) {
        let first_change = self.journal.rule_changes;
        self.journal.rule_changes = self.journal.changes.len() as u32;
        let Rule { log, audit_log, disruption, .. } = self.plan.rule(at.rule);
        let is_quiet = !log && !audit_log && !Match::is_disruptive(disruption);
        if is_quiet && !self.journal.keeps_quiet {
            return;
        }
        if self.journal.matches.len() >= Transaction::MATCHES_MAX {
            self.journal.matches_dropped += 1;
            return;
        }
        // `SecAction` looks at nothing that is worth showing.
        let is_shown = !at.link.unconditional;
        let shown = |span: Span| if is_shown { span } else { Span::default() };
        self.journal.matches.push(Match {
            rule: at.rule,
            phase: self.run.phase,
            variable: is_shown.then_some(item.variable),
            count: is_shown && item.count,
            key: shown(item.key),
            raw: shown(raw),
            value: shown(value),
            found: found.filter(|_| is_shown),
            chain: at.link.chain,
            link: at.number,
            msg,
            log_data,
            log: *log,
            audit_log: *audit_log,
            disruptive: Match::is_disruptive(disruption),
            first_change,
            change_count: self.journal.changes.len() as u32 - first_change,
        });
    }

    /// All that is left of a rule whose first link matches without effect.
    pub(super) fn capture_last(&mut self, rule: RuleIndex) {
        let link = &self.plan.links_of(self.plan.rule(rule))[0];
        let at = LinkAt { rule, number: 0, link, is_last: false };
        if self.last_of_class(link).is_some_and(|item| self.capture(rule, link, &item)) {
            return;
        }
        let mut items = std::mem::take(&mut self.run.items);
        items.clear();
        self.collect_link(at, &mut items);
        items.iter().rev().find(|item| self.capture(rule, link, item));
        self.run.items = items;
    }

    /// True if the first link of the rule matches the value; its captures are left behind then.
    fn capture(&mut self, rule: RuleIndex, link: &Link, item: &Item) -> bool {
        let form = self.message.store.form(&self.plan.chains, item.value, link.chain);
        let mut captures = Captures::default();
        let is_match = !self.is_taken_away(rule, 0, item)
            && self.test_form(link, item, form, b"", &mut captures) == Some(true);
        if is_match {
            self.set_captures(form, &captures);
        }
        is_match
    }
}

/// `part` of `whole`, in the transaction's bytes.
fn within(whole: Span, part: Span) -> Span {
    Span { start: whole.start + part.start, end: whole.start + part.end }
}
