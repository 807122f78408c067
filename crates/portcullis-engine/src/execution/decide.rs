//! Links whose answer needs no list of values.

use portcullis_types::{Span, Variable};

use crate::collect::Item;
use crate::operator::Captures;
use crate::plan::{KeyFilter, Link};
use crate::strategy::Strategies;
use crate::tx::{Compared, Comparison, LinkTest, TxTest, TxValue};
use portcullis_values::ValueId;

use super::{Execution, LinkAt};

impl Execution<'_> {
    /// True if it is plain to see that the link with this number cannot match: nothing has to be prepared for
    /// it.
    pub(super) fn is_ruled_out(&self, link: usize) -> bool {
        self.run.strategies.has(Strategies::LINK_TESTS) && self.tested(link) == Some(false)
    }

    /// Tests the link and runs everything that follows a match; `None` if the values must be looked at.
    pub(super) fn run_tested(&mut self, at: LinkAt<'_>) -> Option<bool> {
        if !self.run.strategies.has(Strategies::LINK_TESTS) {
            return None;
        }
        let link = (self.plan.rule(at.rule).first_link + at.number) as usize;
        if !self.tested(link)? {
            return Some(false);
        }
        let (mut item, data) = self.only_value(at.link, self.plan.tests.of(link))?;
        // A `ctl` may keep the one value from the rule.
        if self.is_taken_away(at.rule, at.number, &item) || self.is_exempt(at.rule, at.number, &item, data) {
            return Some(false);
        }
        item.value = self.message.store.temporary(item.key, data);
        self.on_match(at, &item, data, b"", &Captures::default());
        Some(true)
    }

    /// Returns true if the link with this number matches; `None` if the values must be looked at.
    #[inline]
    fn tested(&self, link: usize) -> Option<bool> {
        let bytes = self.message.store.bytes();
        let tx = &self.vars.tx;
        let is_not = |with: &Compared, number: i64| (!tx.compares(with, number, bytes)).then_some(false);
        match self.plan.tests.of(link) {
            LinkTest::Values => None,
            LinkTest::Tx(test) => tx.holds(&test, bytes),
            LinkTest::Processor(processors) => Some(processors.has(self.message.body.processor())),
            LinkTest::Length(variable, with) => {
                is_not(&with, i64::try_from(self.scalar_number(variable)?).ok()?)
            }
            LinkTest::Count(with) => {
                is_not(&with, self.count(self.plan.links[link].targets.include.first()?)?)
            }
            LinkTest::AnyKey => {
                let slots = &self.plan.links[link].targets.include.first()?.slots;
                let is_set = |&slot: &crate::TxSlot| tx.slot(slot) != TxValue::Unset;
                let none = tx.dynamic().is_empty() && !slots.iter().any(is_set);
                none.then_some(false)
            }
        }
    }

    /// The one value that the link looks at, and its text. The item is one in all but its value.
    fn only_value(&mut self, link: &Link, test: LinkTest) -> Option<(Item, Span)> {
        let value = ValueId::NONE;
        let LinkTest::Tx(test) = test else { return None };
        let store = &mut self.message.store;
        Some(match test {
            TxTest::Always => {
                let data = store.data(store.scalar(Variable::RemoteAddr)?);
                (Item::new(Variable::RemoteAddr, Span::default(), value), data)
            }
            TxTest::Number(Comparison { slot, .. }) | TxTest::WholeNumber(Comparison { slot, .. }) => {
                let (key, data) = self.tx_shown(slot);
                (Item::new(Variable::Tx, key, value), data)
            }
            TxTest::Count(Comparison { slot, .. }) => {
                let KeyFilter::Key(name) = &link.targets.include.first()?.filter else { return None };
                let is_set = self.vars.tx.slot(slot) != TxValue::Unset;
                let key = store.push(name);
                let data = store.push(if is_set { b"1" } else { b"0" });
                (Item { count: true, ..Item::new(Variable::Tx, key, value) }, data)
            }
        })
    }
}
