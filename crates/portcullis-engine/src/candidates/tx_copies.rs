//! Links that only hand on what they find:
//! `SecRule A "@rx ^.*$" "capture,setvar:'tx.x_%{tx.0}=/%{tx.0}/',chain"`, then
//! `SecRule TX:/^x_/ "@within ..."`.
//!
//! If no other rule reads what the first link writes, the rule has an effect only if the second link matches
//! one of these texts. That can be tested for each value of the first link beforehand. Only the captures of
//! the last match then remain to be set, which other rules may read.

use portcullis_types::Variable;

use crate::operator::{Captures, Operator, Pattern};
use crate::patterns::Patterns;
use crate::plan::{Act, KeyFilter, Link, Plan, SetVar, SetVarOperation};
use crate::template::{Part, Template};
use crate::{ChainId, TxSlot, tx};

/// Pieces of a key and its text: each may be as long as the value.
const PARTS_MAX: usize = 8;

/// The texts that the first link of a rule writes to `TX` for the second.
#[derive(Debug)]
pub(super) struct TxCopies {
    /// The key, of literals and captures.
    key: Template,
    /// The text, of the same.
    text: Template,
    /// Others read keys with one of these words, which are in lower case.
    words: Vec<Vec<u8>>,
    /// The second link, in [`Plan::links`].
    to: u32,
}

impl TxCopies {
    /// Of the link with this number, the first one of `links`.
    pub(super) fn of(plan: &Plan, number: u32, links: &[Link]) -> Option<TxCopies> {
        let [from, to, ..] = links else { return None };
        let [Act::SetVar(set)] = from.acts.as_slice() else { return None };
        let SetVar { collection: Variable::Tx, slot: None, key, operation: SetVarOperation::Set(text) } = set
        else {
            return None;
        };
        let [Part::Literal(prefix), ..] = key.parts.as_slice() else { return None };
        let is_capture = |part: &Part| matches!(part, Part::Literal(_) | Part::Tx(TxSlot(0..10)));
        let hands_on = from.capture
            && !from.negated
            && !from.multi_match
            && matches!(from.operator, Operator::Rx(Pattern::Fixed(_)))
            && from.operator.answers_only()
            && text.parts.len() + key.parts.len() <= PARTS_MAX
            && text.parts.iter().chain(&key.parts).all(is_capture);
        let [target] = to.targets.include.as_slice() else { return None };
        let takes = target.variable == Variable::Tx
            && matches!(target.filter, KeyFilter::Regex(_))
            && !target.count
            && to.chain == ChainId::IDENTITY
            && !to.multi_match
            && !(to.negated && to.capture)
            && to.operator.answers_only()
            && to.operator.argument().is_none_or(|argument| argument.as_literal().is_some());
        if !hands_on || !takes || plan.reads_last_match {
            return None;
        }
        let words = tx::private(plan, prefix, number as usize, number as usize + 1)?;
        Some(TxCopies { key: key.clone(), text: text.clone(), words, to: number + 1 })
    }

    /// The prefix that all these keys share.
    pub(super) fn prefix(&self) -> &[u8] {
        match self.key.parts.first() {
            Some(Part::Literal(text)) => text,
            _ => b"",
        }
    }

    /// True if `from` matches `value` and the link behind it what it makes of it, or others may see that.
    pub(super) fn passes(
        &self,
        links: &[Link],
        from: &Link,
        value: &[u8],
        captures: &mut Captures,
        patterns: &mut Patterns,
    ) -> bool {
        captures.clear();
        if !from.operator.test(value, b"", true, captures, patterns) {
            return false;
        }
        let key = expand(&self.key, value, captures).to_ascii_lowercase();
        if self.words.iter().any(|word| memchr::memmem::find(&key, word).is_some()) {
            return true;
        }
        let text = expand(&self.text, value, captures);
        let to = &links[self.to as usize];
        let argument = to.operator.argument().and_then(Template::as_literal).unwrap_or_default();
        to.operator.test(&text, argument, false, captures, patterns) != to.negated
    }
}

fn expand(template: &Template, value: &[u8], captures: &Captures) -> Vec<u8> {
    let mut text = Vec::new();
    for part in &template.parts {
        match part {
            Part::Literal(literal) => text.extend_from_slice(literal),
            Part::Tx(slot) => {
                let group = captures.groups.get(slot.0 as usize).copied().flatten();
                text.extend_from_slice(group.map(|group| group.of(value)).unwrap_or_default());
            }
            // There are none: see `TxCopies::of`.
            Part::Variable { .. } => {}
        }
    }
    text
}
