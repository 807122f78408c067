//! Links whose answer needs no list of values: one number decides, or nothing does.
//!
//! Most rules that run for every request are of this kind: the settings of the CRS in `TX`, `SecAction`. They are told apart at
//! load time; what a match then does is the same as for all others.

use std::cmp::Ordering;

use portcullis_types::{ByteSet, Span, Variable};
use portcullis_values::ValueId;

use crate::collect::Item;
use crate::execute::Matched;
use crate::operator::{Captures, Number, Operator};
use crate::plan::{Act, Disruption, KeyFilter, Link, Plan, Rule, RuleIndex, SetVarOperation};
use crate::prefilter::{is_pure, is_switch};
use crate::processors::Processors;
use crate::slot_acts::SlotAct;
use crate::template::{Part, Template};
use crate::transaction::Transaction;
use crate::tx_store::{TxSlot, TxValue, to_int};
use crate::{ChainId, Chains};

/// What is known of a plan's links and rules that makes them short.
#[derive(Debug, Default)]
pub struct Shortcuts {
    /// By link: what decides whether it matches.
    links: Vec<Shortcut>,
    rules: Vec<OfRule>,
    /// Of plain rules, one behind the other.
    acts: Vec<SlotAct>,
}

/// What is known of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfRule {
    /// What decides whether its first link matches.
    pub(crate) first: Shortcut,
    /// It has one such link, and a match does no more than be noted and set `TX` keys to what is at hand, or switch something.
    pub(crate) is_plain: bool,
    /// Plain, and it matches each time.
    pub(crate) is_certain: bool,
    /// The same, and it does not even set anything.
    pub(crate) is_idle: bool,
    /// Plain: the first of its acts that set numbers, and how many they are; others are behind them.
    acts: (u32, u32),
    /// There are none behind them.
    pub(crate) is_all_numbers: bool,
}

impl Shortcuts {
    /// For the rules of a plan.
    pub(crate) fn new(plan: &Plan) -> Shortcuts {
        let of_link = |(at, link)| Shortcut::new(link, at, plan);
        let links: Vec<_> = (0..).zip(&plan.links).map(of_link).collect();
        let is_plain = |rule: &Rule| {
            let first = rule.first_link as usize;
            links[first].can_say_yes()
                && rule.link_count == 1
                && !rule.log
                && !rule.audit_log
                && rule.pause.is_none()
                && rule.metadata.severity.is_none()
                && matches!(rule.disruption, Disruption::Pass)
                && plan.links[first].acts.iter().all(|act| {
                    is_at_hand(act) || matches!(links[first], Shortcut::Processor(_)) && is_switch(act)
                })
        };
        let certain = plan.certain.iter().copied().chain(std::iter::repeat(false));
        let mut acts = Vec::new();
        let of_rule = |(rule, certain): (&Rule, bool)| {
            let (first, is_plain) = (rule.first_link as usize, is_plain(rule));
            let all = &plan.links[first].acts;
            let from = acts.len();
            if is_plain {
                acts.extend(all.iter().map_while(SlotAct::new));
            }
            let is_certain = is_plain && certain;
            let count = acts.len() - from;
            OfRule {
                first: links[first],
                is_plain,
                is_certain,
                is_idle: is_certain && all.is_empty(),
                acts: (from as u32, count as u32),
                is_all_numbers: count == all.len(),
            }
        };
        let rules = plan.rules.iter().zip(certain).map(of_rule).collect();
        Shortcuts { links, rules, acts }
    }

    #[inline]
    pub(crate) fn of(&self, rule: RuleIndex) -> Option<&OfRule> {
        self.rules.get(rule.0 as usize)
    }

    /// The acts of a plain rule that set numbers.
    #[inline]
    pub(crate) fn acts_of(&self, rule: &OfRule) -> &[SlotAct] {
        let (from, count) = (rule.acts.0 as usize, rule.acts.1 as usize);
        self.acts.get(from..from + count).unwrap_or_default()
    }

    /// True if nothing is different when the rule does not run, but that its match is not remembered.
    pub(crate) fn is_idle(&self, rule: RuleIndex) -> bool {
        self.of(rule).is_some_and(|rule| rule.is_idle)
    }

    /// True if it is plain and looks at nothing but `TX`.
    pub(crate) fn is_setting(&self, rule: RuleIndex) -> bool {
        self.of(rule).is_some_and(|rule| rule.is_plain && !matches!(rule.first, Shortcut::Processor(_)))
    }
}

/// True for `setvar` of `TX` keys that looks at nothing but `TX`.
fn is_at_hand(act: &Act) -> bool {
    let Act::SetVar(set) = act else { return false };
    let of_tx = |template: &Template| {
        template.parts.iter().all(|part| matches!(part, Part::Literal(_) | Part::Tx(_)))
    };
    let operand = match &set.operation {
        SetVarOperation::Set(text) | SetVarOperation::Add(text) | SetVarOperation::Subtract(text) => {
            of_tx(text)
        }
        SetVarOperation::SetNumber(_) | SetVarOperation::AddNumber(_) | SetVarOperation::Unset => true,
    };
    set.collection == Variable::Tx && set.slot.is_some() && operand
}

/// What decides whether a link matches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shortcut {
    /// Values have to be looked at.
    None,
    /// `SecAction`: nothing.
    Always,
    /// The number in a `TX` key.
    Number(Comparison),
    /// The same behind a chain that leaves numbers as they are, but not all texts.
    WholeNumber(Comparison),
    /// Whether a `TX` key is set: `&TX:key`.
    Count(Comparison),
    /// A number of the message, `REQUEST_BODY_LENGTH`. This and the next two can only say no.
    Length(Variable, Compared),
    /// How many values there are: `&REQUEST_HEADERS:Host`. In [`Plan::links`].
    Values(u32, Compared),
    /// Whether there is a value at all: `TX:/pattern/`. In [`Plan::links`].
    AnyKey(u32),
    /// `REQBODY_PROCESSOR`.
    Processor(Processors),
}

/// The number in a `TX` key, or whether it is set, compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    slot: TxSlot,
    with: Compared,
}

/// What a number is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// Which of less (1), equal (2) and greater (4) are a match.
    wanted: u8,
    than: Than,
}

#[derive(Clone, Copy, Debug)]
enum Than {
    Constant(i64),
    Slot(TxSlot),
}

impl Compared {
    fn holds(&self, number: i64, than: i64) -> bool {
        let bit = match number.cmp(&than) {
            Ordering::Less => 1,
            Ordering::Equal => 2,
            Ordering::Greater => 4,
        };
        self.wanted & bit != 0
    }
}

impl Shortcut {
    /// For `link`, which has this number.
    fn new(link: &Link, at: u32, plan: &Plan) -> Shortcut {
        let [target] = link.targets.include.as_slice() else { return Shortcut::None };
        if !link.targets.exclude.is_empty() || link.multi_match {
            return Shortcut::None;
        }
        let is_transformed = link.chain != ChainId::IDENTITY;
        if link.unconditional {
            let known = target.variable == Variable::RemoteAddr
                && !target.count
                && matches!(link.operator, Operator::UnconditionalMatch)
                && !is_transformed
                && !link.negated;
            return if known { Shortcut::Always } else { Shortcut::None };
        }
        if target.variable == Variable::ReqbodyProcessor && !is_transformed && !link.capture && is_pure(link)
        {
            return Shortcut::Processor(Processors::of(link, &plan.settings));
        }
        let of_tx = target.variable == Variable::Tx;
        if of_tx && target.slot.is_none() && !target.count {
            return Shortcut::AnyKey(at);
        }
        let Some((wanted, number)) = comparison(&link.operator) else { return Shortcut::None };
        let than = match number {
            Number::Constant(number) => Than::Constant(*number),
            Number::Computed(Template { parts }) => match parts.as_slice() {
                [Part::Tx(slot)] => Than::Slot(*slot),
                _ => return Shortcut::None,
            },
        };
        let wanted = if link.negated { !wanted & 7 } else { wanted };
        let with = Compared { wanted, than };
        let Some(slot) = target.slot else {
            return match target.count {
                _ if is_transformed || of_tx => Shortcut::None,
                true => Shortcut::Values(at, with),
                false => Shortcut::Length(target.variable, with),
            };
        };
        let comparison = Comparison { slot, with };
        match (target.count, is_transformed) {
            (true, false) => Shortcut::Count(comparison),
            (false, false) => Shortcut::Number(comparison),
            (false, true) if leaves_numbers(link.chain, &plan.chains) => Shortcut::WholeNumber(comparison),
            (_, true) => Shortcut::None,
        }
    }
}

impl Shortcut {
    /// The `TX` keys that the answer depends on; `None` if it depends on other things, too.
    pub(crate) fn slots(&self) -> Option<impl Iterator<Item = TxSlot>> {
        let comparison = match self {
            Shortcut::Always => None,
            Shortcut::Number(comparison)
            | Shortcut::WholeNumber(comparison)
            | Shortcut::Count(comparison) => Some(comparison),
            _ => return None,
        };
        let than = comparison.and_then(|comparison| match comparison.with.than {
            Than::Slot(slot) => Some(slot),
            Than::Constant(_) => None,
        });
        Some(comparison.map(|comparison| comparison.slot).into_iter().chain(than))
    }

    fn can_say_yes(&self) -> bool {
        match self {
            Shortcut::None | Shortcut::Length(..) | Shortcut::Values(..) | Shortcut::AnyKey(_) => false,
            Shortcut::Always
            | Shortcut::Number(_)
            | Shortcut::WholeNumber(_)
            | Shortcut::Count(_)
            | Shortcut::Processor(_) => true,
        }
    }
}

/// True if `chain` gives back every number that it gets, in decimal digits.
fn leaves_numbers(chain: ChainId, chains: &Chains) -> bool {
    let digits = ByteSet::range(b'0', b'9').with(b'-');
    let mut at = chain;
    while let Some(node) = chains.node(at) {
        if node.triggers.intersects(&digits) {
            return false;
        }
        at = node.parent;
    }
    true
}

fn comparison(operator: &Operator) -> Option<(u8, &Number)> {
    Some(match operator {
        Operator::Lt(number) => (1, number),
        Operator::Eq(number) => (2, number),
        Operator::Le(number) => (3, number),
        Operator::Gt(number) => (4, number),
        Operator::Ge(number) => (6, number),
        _ => return None,
    })
}

impl Transaction {
    /// Whether `link` matches, with all that follows from it; `None` if that takes looking at values.
    pub(crate) fn run_shortcut(
        &mut self,
        plan: &Plan,
        rule: RuleIndex,
        link: &Link,
        at: u32,
        last: bool,
    ) -> Option<bool> {
        let first = plan.rule(rule).first_link;
        let shortcut = plan.shortcuts.links.get((first + at) as usize)?;
        if !self.decide(plan, shortcut)? {
            return Some(false);
        }
        let (mut item, data) = self.only_value(plan, link, shortcut)?;
        // A `ctl` may keep the one value from the rule.
        if self.is_taken_away(plan, rule, at, &item) {
            return Some(false);
        }
        item.value = self.store.temporary(item.key, data);
        self.on_match(plan, rule, link, at, last, &item, data, b"", &Captures::default());
        Some(true)
    }

    /// Runs a rule whose first link one number decides, if that does not match or the rule is plain: whether it matches. `None` if it
    /// has to go the way of all others.
    pub(crate) fn run_short(&mut self, plan: &Plan, index: RuleIndex) -> Option<bool> {
        let rule = plan.shortcuts.of(index)?;
        let matches = self.decide(plan, &rule.first)?;
        match matches {
            true if rule.is_plain => self.match_plain(plan, index, rule),
            true => None,
            false => Some(false),
        }
    }

    /// What a plain rule does that matches but for values taken away from it.
    fn match_plain(&mut self, plan: &Plan, index: RuleIndex, known: &OfRule) -> Option<bool> {
        if !self.keeps_quiet && !plan.reads_last_match && !self.may_be_taken_away(plan) {
            self.run_plain_acts(plan, index, known);
            return Some(true);
        }
        let link = &plan.links[plan.rule(index).first_link as usize];
        let (item, data) = self.only_value(plan, link, &known.first)?;
        if self.is_taken_away(plan, index, 0, &item) {
            return Some(false);
        }
        self.matched =
            Matched { variable: Some(item.variable), count: item.count, key: item.key, value: data };
        self.rule_changes = self.changes.len() as u32;
        self.run_acts(plan, &link.acts);
        self.remember(plan, index, link, 0, (&item, data, data, None), (None, None));
        Some(true)
    }

    #[inline]
    pub(crate) fn decide(&self, plan: &Plan, shortcut: &Shortcut) -> Option<bool> {
        Some(match shortcut {
            Shortcut::None => return None,
            Shortcut::Always => true,
            Shortcut::WholeNumber(comparison)
                if matches!(self.tx.slot(comparison.slot), TxValue::Text(_)) =>
            {
                return None;
            }
            Shortcut::Number(comparison) | Shortcut::WholeNumber(comparison) => {
                self.tx_int(comparison.slot).is_some_and(|number| self.holds(&comparison.with, number))
            }
            Shortcut::Count(comparison) => {
                let number = i64::from(self.tx.slot(comparison.slot) != TxValue::Unset);
                self.holds(&comparison.with, number)
            }
            Shortcut::Length(variable, with) => {
                let number = i64::try_from(self.scalar_number(*variable)?).ok()?;
                return (!self.holds(with, number)).then_some(false);
            }
            Shortcut::Values(link, with) => {
                let number = self.count(&plan.links[*link as usize].targets.include[0])?;
                return (!self.holds(with, number)).then_some(false);
            }
            Shortcut::AnyKey(link) => {
                let slots = &plan.links[*link as usize].targets.include[0].slots;
                let is_set = |&slot: &TxSlot| self.tx.slot(slot) != TxValue::Unset;
                let none = self.tx.dynamic().is_empty() && !slots.iter().any(is_set);
                return none.then_some(false);
            }
            Shortcut::Processor(matching) => matching.has(self.body.processor()),
        })
    }

    fn holds(&self, with: &Compared, number: i64) -> bool {
        with.holds(number, self.than(with))
    }

    /// What the link looks at, and its text. The item is one in all but its value.
    fn only_value(&mut self, plan: &Plan, link: &Link, shortcut: &Shortcut) -> Option<(Item, Span)> {
        let value = ValueId::NONE;
        Some(match shortcut {
            Shortcut::Length(..) | Shortcut::Values(..) | Shortcut::AnyKey(_) | Shortcut::Processor(_) => {
                return None;
            }
            Shortcut::None | Shortcut::Always => {
                let data = self.store.data(self.store.scalar(Variable::RemoteAddr)?);
                (Item::new(Variable::RemoteAddr, Span::default(), value), data)
            }
            Shortcut::Number(comparison) | Shortcut::WholeNumber(comparison) => {
                let (key, data) = self.tx_shown(plan, comparison.slot);
                (Item::new(Variable::Tx, key, value), data)
            }
            Shortcut::Count(comparison) => {
                let KeyFilter::Key(name) = &link.targets.include.first()?.filter else { return None };
                let is_set = self.tx.slot(comparison.slot) != TxValue::Unset;
                let key = self.store.push(name);
                let data = self.store.push(if is_set { b"1" } else { b"0" });
                (Item { count: true, ..Item::new(Variable::Tx, key, value) }, data)
            }
        })
    }

    fn than(&self, with: &Compared) -> i64 {
        match with.than {
            Than::Constant(number) => number,
            Than::Slot(slot) => self.tx_int(slot).unwrap_or(0),
        }
    }

    /// What `atoi` makes of a `TX` key; `None` if it is not set.
    pub(crate) fn tx_int(&self, slot: TxSlot) -> Option<i64> {
        match self.tx.slot(slot) {
            TxValue::Unset => None,
            TxValue::Int(number) => Some(number),
            TxValue::Text(span) => Some(to_int(self.store.text(span))),
        }
    }
}
