//! Links: targets, transformations, an operator, and what a match does.

use std::sync::Arc;

use portcullis_match::Pcre;
use portcullis_types::Variable;

use crate::template::Part;
use crate::{ChainId, Operator, RuleSet, Template, TxSlot};

use super::Act;

/// One link of a rule.
#[derive(Clone, Debug)]
pub struct Link {
    /// The values it looks at. `SecAction` looks at `REMOTE_ADDR`, as in ModSecurity 2, and so always matches
    /// once.
    pub targets: TargetList,
    /// True for `SecAction`: target and operator are not the rule writer's.
    pub unconditional: bool,
    /// The transformations that are applied to them first.
    pub chain: ChainId,
    /// `multiMatch`: the operator sees every intermediate form.
    pub multi_match: bool,
    /// The test.
    pub operator: Operator,
    /// `!`.
    pub negated: bool,
    /// The operator as text, for explanations.
    pub operator_text: Box<str>,
    /// `capture`.
    pub capture: bool,
    /// The actions of each match.
    pub acts: Vec<Act>,
}

impl Link {
    /// True if what it looks at, or its argument, is the last match.
    pub(super) fn reads_last_match(&self) -> bool {
        let is_match =
            |variable: Variable| matches!(variable, Variable::MatchedVar | Variable::MatchedVarName);
        let in_argument = |argument: &Template| {
            let names = |part: &Part| matches!(part, Part::Variable { variable, .. } if is_match(*variable));
            argument.parts.iter().any(names)
        };
        self.targets.include.iter().any(|target| is_match(target.variable))
            || self.operator.argument().is_some_and(in_argument)
    }

    /// True if it looks at the texts of all keys of `TX` that have some form.
    pub(super) fn looks_at_copies(&self) -> bool {
        let is_open =
            |target: &Target| target.variable == Variable::Tx && target.slot.is_none() && !target.count;
        !self.operator.is_numeric() && self.targets.include.iter().any(is_open)
    }

    /// True if a match of it, as long as its rule does not match as a whole, changes nothing that other rules
    /// see but the last match.
    pub(crate) fn is_quiet(&self) -> bool {
        self.operator.answers_only() && self.acts.is_empty() && !self.capture
    }
}

/// Values to look at and values to leave out.
#[derive(Clone, Debug, Default)]
pub struct TargetList {
    /// In written order.
    pub include: Vec<Target>,
    /// The targets that `!VARIABLE:key` excludes, whether written in the rule or added by an update; by
    /// rising reach.
    pub exclude: Vec<Exclusion>,
}

/// A variable with the keys wanted.
#[derive(Clone, Debug)]
pub struct Target {
    /// The variable.
    pub variable: Variable,
    /// The selector.
    pub filter: KeyFilter,
    /// For `TX:key`: the slot of the key.
    pub slot: Option<TxSlot>,
    /// For `TX` without such a key: the slots whose names it takes.
    pub slots: Box<[TxSlot]>,
    /// `&`: how many values there are instead of the values.
    pub count: bool,
}

/// Values that a rule leaves out.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// The variable.
    pub variable: Variable,
    /// The selector.
    pub filter: KeyFilter,
    /// It takes away from what so many of the first targets stand for: those before it, or as in
    /// libmodsecurity all.
    pub reach: usize,
}

/// A selector: the keys of a collection that are meant.
#[derive(Clone, Debug)]
pub enum KeyFilter {
    /// All.
    All,
    /// This one, whatever its ASCII case.
    Key(Box<[u8]>),
    /// Those that match.
    Regex(Arc<Pcre>),
    /// `XML` only.
    Xml(XmlPath),
}

impl KeyFilter {
    /// True if `key` is wanted.
    pub fn accepts(&self, key: &[u8]) -> bool {
        match self {
            KeyFilter::All | KeyFilter::Xml(_) => true,
            KeyFilter::Key(wanted) => wanted.eq_ignore_ascii_case(key),
            KeyFilter::Regex(regex) => regex.is_match(key),
        }
    }
}

/// XPath expressions. Two are so frequent that they have values of their own and need no tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XmlPath {
    /// `/*`: all text of the document in one value.
    Text,
    /// `//@*`: each attribute value.
    Attributes,
    /// Any other.
    Search(Arc<crate::XPath>),
}

/// A target taken from some rules by `ctl` for the rest of a transaction.
#[derive(Clone, Debug)]
pub struct CtlTarget {
    /// The rules.
    pub rules: RuleSet,
    /// The variable.
    pub variable: Variable,
    /// The selector.
    pub filter: KeyFilter,
}
