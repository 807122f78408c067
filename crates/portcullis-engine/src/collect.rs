//! The values that a target stands for.

use portcullis_types::{Decimal, Span, Variable};

use crate::Class;
use crate::execution::{Execution, LinkAt};
use crate::plan::{Exclusion, KeyFilter, Link, RuleIndex, Target, XmlPath};
use crate::template::LogText;
use crate::tx::{TxSlot, TxValue};
use crate::xml::XmlOrigin;
use portcullis_values::{ValueId, classes_of, readings_of};

/// A value that a link looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) variable: Variable,
    pub(crate) count: bool,
    pub(crate) key: Span,
    pub(crate) value: ValueId,
    /// Of `XML` targets with a path: the node.
    pub(crate) node: XmlOrigin,
}

impl Item {
    /// A value that is no count, of anything but a node of an XML body.
    pub(crate) fn new(variable: Variable, key: Span, value: ValueId) -> Item {
        Item { variable, count: false, key, value, node: XmlOrigin::None }
    }
}

impl Execution<'_> {
    /// Adds what a link looks at: the values of its targets, without those that its exclusions take away.
    pub(crate) fn collect_link(&mut self, at: LinkAt<'_>, items: &mut Vec<Item>) {
        let LinkAt { rule, number, link, .. } = at;
        let mut exclusions = link.targets.exclude.iter().peekable();
        for (place, target) in link.targets.include.iter().enumerate() {
            while let Some(exclusion) = exclusions.next_if(|exclusion| exclusion.reach <= place) {
                self.take_away(rule, number, exclusion, items);
            }
            self.collect_tested(target, items);
        }
        for exclusion in exclusions {
            self.take_away(rule, number, exclusion, items);
        }
        if number == 0 && !self.vars.ctl.removed_targets.is_empty() {
            self.take_away_removed_nodes(rule, items);
        }
    }

    /// The last value that a link looks at, if it looks at all of one collection and leaves nothing out.
    pub(crate) fn last_of_class(&self, link: &Link) -> Option<Item> {
        let [target] = link.targets.include.as_slice() else { return None };
        if target.count || !link.targets.exclude.is_empty() || !matches!(target.filter, KeyFilter::All) {
            return None;
        }
        let variable = target.variable;
        let classes = classes_of(variable).iter().chain(readings_of(variable)).rev();
        let value = classes.filter_map(|&class| self.message.store.class(class).next_back()).next()?;
        Some(Item::new(variable, self.message.store.key(value), value))
    }

    /// Removes the values that an exclusion of the rule names; counts stay.
    fn take_away(&mut self, rule: RuleIndex, at: u32, exclusion: &Exclusion, items: &mut Vec<Item>) {
        if let KeyFilter::Xml(path) = &exclusion.filter {
            return self.take_away_nodes(rule, at, path, items);
        }
        items.retain(|item| {
            let gone = !item.count && self.is_named(item, exclusion.variable, &exclusion.filter);
            if gone {
                self.trace_excluded(rule, at, item);
            }
            !gone
        });
    }

    /// True if an exclusion of `variable` and `filter` means `item`. One with an XML path is not asked here:
    /// it takes away nodes, when a link begins (`take_away_nodes`).
    pub(crate) fn is_named(&self, item: &Item, variable: Variable, filter: &KeyFilter) -> bool {
        let key = self.message.store.text(item.key);
        // Exclusions go by name, and a matched variable has the name it was matched under.
        let (name, key) = if matches!(item.variable, Variable::MatchedVars | Variable::MatchedVarsNames) {
            match memchr::memchr(b':', key) {
                Some(colon) => (&key[..colon], &key[colon + 1..]),
                None => (key, b"".as_slice()),
            }
        } else {
            (item.variable.name().as_bytes(), key)
        };
        variable.name().as_bytes() == name
            && match filter {
                KeyFilter::All => true,
                KeyFilter::Xml(_) => false,
                // A count goes by the bare name.
                KeyFilter::Key(_) | KeyFilter::Regex(_) => !item.count && filter.accepts(key),
            }
    }

    /// Adds the values of `target` to `items`.
    pub(crate) fn collect(&mut self, target: &Target, items: &mut Vec<Item>) {
        let before = items.len();
        let variable = target.variable;
        if variable == Variable::Tx {
            self.collect_tx(target, items);
        } else if variable == Variable::Xml {
            self.collect_xml(&target.filter, items);
        } else if variable == Variable::Rule {
            self.collect_rule(&target.filter, items);
        } else if variable == Variable::Env {
            self.collect_env(&target.filter, items);
        } else if !classes_of(variable).is_empty() {
            self.collect_classes(variable, classes_of(variable), &target.filter, items);
        } else if self.is_open(variable) {
            self.collect_open(variable, &target.filter, items);
        } else if let Some(value) = self.scalar(variable) {
            items.push(Item::new(variable, Span::default(), value));
        }
        if target.count {
            let count = items.len() - before;
            items.truncate(before);
            let key = if let KeyFilter::Key(key) = &target.filter {
                self.message.store.push(key)
            } else {
                Span::default()
            };
            let data = self.message.store.push(&Decimal::new(count as i64));
            let value = self.message.store.temporary(key, data);
            let item = Item::new(target.variable, key, value);
            items.push(Item { count: true, ..item });
        }
    }

    /// The number that `&COLLECTION` or `&COLLECTION:key` stands for; `None` for what is not a collection of
    /// the message.
    pub(crate) fn count(&self, target: &Target) -> Option<i64> {
        let classes = classes_of(target.variable);
        if !target.count || classes.is_empty() {
            return None;
        }
        let count = |class: &Class| match &target.filter {
            KeyFilter::All => self.message.store.class_len(*class),
            filter @ (KeyFilter::Key(_) | KeyFilter::Regex(_) | KeyFilter::Xml(_)) => {
                let keys = self
                    .message
                    .store
                    .class(*class)
                    .map(|value| self.message.store.text(self.message.store.key(value)));
                keys.filter(|key| filter.accepts(key)).count()
            }
        };
        Some(classes.iter().map(count).sum::<usize>() as i64)
    }

    /// As [`collect`](Self::collect), with second readings: what a rule tests.
    fn collect_tested(&mut self, target: &Target, items: &mut Vec<Item>) {
        self.collect(target, items);
        if target.count {
            return;
        }
        self.collect_classes(target.variable, readings_of(target.variable), &target.filter, items);
        if matches!(target.filter, KeyFilter::Xml(XmlPath::Text)) {
            self.collect_xml_readings(items);
        }
    }

    fn collect_classes(
        &self,
        variable: Variable,
        classes: &[Class],
        filter: &KeyFilter,
        items: &mut Vec<Item>,
    ) {
        for &class in classes {
            for value in self.message.store.class(class) {
                let key = self.message.store.key(value);
                if matches!(filter, KeyFilter::All) || filter.accepts(self.message.store.text(key)) {
                    items.push(Item::new(variable, key, value));
                }
            }
        }
    }

    fn collect_tx(&mut self, target: &Target, items: &mut Vec<Item>) {
        if let Some(slot) = target.slot {
            if self.vars.tx.slot(slot) != TxValue::Unset {
                let (key, data) = self.tx_shown(slot);
                let value = self.message.store.temporary(key, data);
                items.push(Item::new(Variable::Tx, key, value));
            }
            return;
        }
        // In the order in which the keys came to be there.
        let mut found = Vec::new();
        for &slot in &target.slots {
            let value = self.vars.tx.slot(slot);
            if value != TxValue::Unset {
                let (key, data) = self.tx_shown(slot);
                found.push((self.vars.tx.since(slot), key, data, value));
            }
        }
        for at in 0..self.vars.tx.dynamic().len() {
            let (key, value, since) = self.vars.tx.dynamic()[at];
            if value != TxValue::Unset && target.filter.accepts(self.message.store.text(key)) {
                found.push((since, key, self.tx_text(value), value));
            }
        }
        found.sort_unstable_by_key(|entry| entry.0);
        for (_, key, data, value) in found {
            let value = match value {
                // Rules copy one value under many names, and other rules look at all of them.
                TxValue::Text(_) => self.message.store.made(key, data),
                TxValue::Unset | TxValue::Int(_) => self.message.store.temporary(key, data),
            };
            items.push(Item::new(Variable::Tx, key, value));
        }
    }

    /// Name and value of a `TX` key as texts.
    pub(crate) fn tx_shown(&mut self, slot: TxSlot) -> (Span, Span) {
        self.vars.tx.shown(slot, self.plan.tx_spelling(slot), |text| self.message.store.push(text))
    }

    pub(crate) fn tx_text(&mut self, value: TxValue) -> Span {
        match value {
            TxValue::Unset => Span::default(),
            TxValue::Text(span) => span,
            TxValue::Int(number) => self.message.store.push(&Decimal::new(number)),
        }
    }

    fn collect_rule(&mut self, filter: &KeyFilter, items: &mut Vec<Item>) {
        let (Some(index), KeyFilter::Key(key)) = (self.run.current_rule, filter) else { return };
        let rule = self.plan.rule(index);
        let metadata = &rule.metadata;
        let number = |number: u8| Some(number.to_string().into_bytes());
        // As written: what their macros stand for may be the text itself.
        let written = |text: Option<&LogText>| text.map(|text| text.written().to_vec());
        let text = match key.to_ascii_lowercase().as_slice() {
            b"id" => Some(rule.id.to_string().into_bytes()),
            b"severity" => metadata.severity.and_then(|severity| number(severity.number())),
            b"maturity" => metadata.maturity.and_then(number),
            b"accuracy" => metadata.accuracy.and_then(number),
            b"rev" => metadata.rev.as_ref().map(|rev| rev.as_bytes().to_vec()),
            b"ver" => metadata.ver.as_ref().map(|ver| ver.as_bytes().to_vec()),
            b"msg" => written(metadata.msg.as_ref()),
            b"logdata" => written(metadata.log_data.as_ref()),
            _ => None,
        };
        if let Some(text) = text {
            // Under the bare name, as ModSecurity 2 has it.
            let data = self.message.store.push(&text);
            let value = self.message.store.temporary(Span::default(), data);
            items.push(Item::new(Variable::Rule, Span::default(), value));
        }
    }

    fn collect_env(&mut self, filter: &KeyFilter, items: &mut Vec<Item>) {
        for at in 0..self.vars.env.len() {
            let (key, data) = self.vars.env[at];
            if filter.accepts(self.message.store.text(key)) {
                let value = self.message.store.temporary(key, data);
                items.push(Item::new(Variable::Env, key, value));
            }
        }
    }
}
