//! One link: the values of its targets, their forms, the operator.

use portcullis_types::{Span, Variable};

use crate::ChainId;
use crate::collect::Item;
use crate::operator::Captures;
use crate::patterns::PatternError;
use crate::plan::{Link, RuleIndex};
use crate::strategy::Strategies;
use crate::tx::TxValue;
use portcullis_values::ValueId;

use super::Execution;

/// Forms of values longer than this are not kept once an operator has said no: memory stays near the body's
/// size.
const KEPT_FORM_BYTES_MAX: usize = 64 * 1024;

/// A link at its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkAt<'p> {
    pub(crate) rule: RuleIndex,
    /// Position in the rule's chain, from 0.
    pub(crate) number: u32,
    pub(crate) link: &'p Link,
    /// No other link follows.
    pub(crate) is_last: bool,
}

impl Execution<'_> {
    /// True if at least one value matched. Every match runs the link's actions; those of the last link
    /// complete the rule, each of them.
    pub(super) fn run_link(&mut self, at: LinkAt<'_>) -> bool {
        if let Some(matched) = self.run_tested(at) {
            return matched;
        }
        let mut argument = std::mem::take(&mut self.run.argument);
        self.expand_argument(at.link, &mut argument);
        let is_ruled_out =
            self.run.strategies.has(Strategies::LINK_TESTS) && self.cannot_match(at.link, &argument);
        let matched = !is_ruled_out && self.test_items(at, &mut argument);
        self.run.argument = argument;
        matched
    }

    fn expand_argument(&mut self, link: &Link, argument: &mut Vec<u8>) {
        if let Some(template) = link.operator.argument() {
            argument.clear();
            self.expand(template, argument);
        }
    }

    /// The quick no: a number of values compared with another number.
    fn cannot_match(&self, link: &Link, argument: &[u8]) -> bool {
        let [target] = link.targets.include.as_slice() else { return false };
        link.chain == ChainId::IDENTITY
            && link.operator.is_numeric()
            && self
                .count(target)
                .is_some_and(|count| link.operator.test_number(count, argument) == link.negated)
    }

    fn test_items(&mut self, at: LinkAt<'_>, argument: &mut Vec<u8>) -> bool {
        let LinkAt { rule, number, link, .. } = at;
        let mut items = std::mem::take(&mut self.run.items);
        items.clear();
        self.collect_link(at, &mut items);
        let mut captures = Captures::default();
        let mut any = false;
        let mut refused = Refused::new(self.run.strategies, link);
        'items: for item in &items {
            if self.is_taken_away(rule, number, item) {
                self.trace_excluded(rule, number, item);
                continue;
            }
            if refused.has(item) {
                continue;
            }
            let (mark, news) = (self.message.store.mark(item.value), self.message.store.news());
            let forms = self.forms_to_test(link, item.value);
            let (mut hit, mut captured, mut is_exempt) = (false, false, false);
            for form in forms.iter() {
                captures.clear();
                let Some(found) = self.test_form(link, item, form, argument, &mut captures) else { continue };
                let data = self.message.store.data(item.value);
                if found != link.negated && self.is_exempt(rule, number, item, data) {
                    self.trace_excluded(rule, number, item);
                    is_exempt = true;
                    break;
                }
                if found && link.capture {
                    // Also where the operator is negated and the link does not match.
                    self.set_captures(form, &captures);
                    captured = true;
                }
                self.trace_test(rule, number, item, form, found != link.negated);
                if found == link.negated {
                    continue;
                }
                (hit, any) = (true, true);
                self.on_match(at, item, form, argument, &captures);
                if self.run.rule_ended {
                    break 'items;
                }
                // Only a match can change what the macros of the argument stand for.
                self.expand_argument(link, argument);
                // Or exclude the very value: its other forms are not looked at then.
                if self.is_taken_away(rule, number, item) {
                    break;
                }
            }
            // Captures point into the form, and the evidence of a pattern's failure lies behind it.
            let is_done = !hit && !captured && self.message.store.news() == news;
            // Another name of the same text may not be exempt.
            refused.note(item, is_done && !is_exempt);
            if is_done && self.message.store.data(item.value).len() > KEPT_FORM_BYTES_MAX {
                self.message.store.rewind(mark);
            }
        }
        self.run.items = items;
        any
    }

    /// True if the operator finds something; `None` if it had to ask and there was no answer, or the
    /// transaction may do no more work.
    pub(super) fn test_form(
        &mut self,
        link: &Link,
        item: &Item,
        form: Span,
        argument: &[u8],
        captures: &mut Captures,
    ) -> Option<bool> {
        if link.operator.asks() {
            return self.test_answer(link, item, form, captures);
        }
        if let crate::Operator::GeoLookup(database) = &link.operator {
            return Some(self.geo_lookup(database, form));
        }
        self.run.patterns.charge(self.message.store.take_transformed());
        let text = self.message.store.text(form);
        let found = link.operator.test(text, argument, link.capture, captures, &mut self.run.patterns);
        if let Some(error) = self.run.patterns.take_error() {
            self.note_pattern_error(error);
        }
        (!self.run.patterns.is_spent() || link.operator.is_numeric()).then_some(found)
    }

    pub(crate) fn forms_to_test(&mut self, link: &Link, value: ValueId) -> Forms {
        if !link.multi_match {
            return Forms::One(self.message.store.form(&self.plan.chains, value, link.chain));
        }
        // The value itself, then each form that a transformation changed.
        let mut forms = vec![self.message.store.data(value)];
        let mut path = Vec::new();
        let mut at = link.chain;
        while let Some(node) = self.plan.chains.node(at) {
            path.push(at);
            at = node.parent;
        }
        for &chain in path.iter().rev() {
            let form = self.message.store.form(&self.plan.chains, value, chain);
            if forms
                .last()
                .is_none_or(|&before| self.message.store.text(before) != self.message.store.text(form))
            {
                forms.push(form);
            }
        }
        Forms::Many(forms)
    }

    /// True if `ctl:ruleRemoveTarget...` keeps the value from the rule.
    pub(crate) fn is_taken_away(&self, rule: RuleIndex, at: u32, item: &Item) -> bool {
        // Only the link that has the id, tags and message (msre_ruleset_rule_matches_exception).
        at == 0
            && self.vars.ctl.removed_targets.iter().any(|&index| {
                let removal = &self.plan.ctl_targets[index as usize];
                removal.rules.contains(rule.0) && self.is_named(item, removal.variable, &removal.filter)
            })
    }

    /// Sets the variables that report a pattern which was given up or could not be used, by the names of
    /// ModSecurity 2 and 3.
    pub(crate) fn note_pattern_error(&mut self, error: PatternError) {
        self.message.store.set_scalar(Variable::MscPcreError, b"1");
        if error == PatternError::Exhausted {
            self.message.store.set_scalar(Variable::MscPcreLimitsExceeded, b"1");
            self.set_tx(b"MSC_PCRE_LIMITS_EXCEEDED", TxValue::Int(1));
        }
    }
}

/// The values of `TX` that a link has said no to. Rules copy one value under many names; the copies that are
/// the same text are one value, and have the same answer.
struct Refused {
    values: Vec<ValueId>,
    is_on: bool,
}

impl Refused {
    /// More are looked at again.
    const MAX: usize = 32;

    fn new(strategies: Strategies, link: &Link) -> Refused {
        let is_on = strategies.has(Strategies::SAME_TEXTS) && link.operator.answers_only();
        Refused { values: Vec::new(), is_on }
    }

    fn has(&self, item: &Item) -> bool {
        item.variable == Variable::Tx && self.values.contains(&item.value)
    }

    /// `without_effect`: the link did not match, and had no other effect. A match may change the argument
    /// of the operator, and with it the answers.
    fn note(&mut self, item: &Item, without_effect: bool) {
        if !without_effect {
            self.values.clear();
        } else if self.is_on && item.variable == Variable::Tx && self.values.len() < Refused::MAX {
            self.values.push(item.value);
        }
    }
}

/// The forms of one value that a link tests.
pub(crate) enum Forms {
    One(Span),
    Many(Vec<Span>),
}

impl Forms {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        match self {
            Forms::One(form) => std::slice::from_ref(form).iter().copied(),
            Forms::Many(forms) => forms.iter().copied(),
        }
    }
}
