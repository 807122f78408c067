use std::borrow::Cow;

use portcullis_types::{Phase, Severity, Shape, Span, Variable};

use crate::{ChainId, Plan, RuleIndex, Transaction, TxSlot};

/// One rule that matched one value. Texts are spans into the transaction; see [`Transaction::view`].
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// The rule.
    pub rule: RuleIndex,
    /// The phase it ran in.
    pub phase: Phase,
    /// Variable of the value that completed the match; `None` for `SecAction`, which looks at nothing.
    pub variable: Option<Variable>,
    /// `&`.
    pub count: bool,
    /// Key of the value; empty for scalars.
    pub key: Span,
    /// The value as it came, before transformations.
    pub raw: Span,
    /// The value that the operator saw.
    pub value: Span,
    /// The part of `value` that the operator matched, if the operator reports it.
    pub found: Option<Span>,
    /// Transformations applied.
    pub chain: ChainId,
    /// Link of the rule's chain that completed the match, from 0.
    pub link: u32,
    /// Expanded `msg`.
    pub msg: Option<Span>,
    /// Expanded `logdata`.
    pub log_data: Option<Span>,
    /// The match is worth an event (`log`).
    pub log: bool,
    /// The match is worth an audit record (`auditlog`).
    pub audit_log: bool,
    /// The match interrupted the transaction, or would have but for detection-only mode.
    pub disruptive: bool,
    /// First of its entries in the transaction's score changes.
    pub first_change: u32,
    /// Number of its score changes.
    pub change_count: u32,
}

/// A numeric change that `setvar:tx.key=+N` made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScoreChange {
    /// The key.
    pub slot: TxSlot,
    /// The amount that was added.
    pub delta: i64,
}

/// A [`Match`] with its texts.
#[derive(Debug)]
pub struct MatchView<'a> {
    /// The match.
    pub record: &'a Match,
    /// The rule.
    pub rule: &'a crate::Rule,
    /// `ARGS:q`, `REQUEST_URI`, `&ARGS`; empty for `SecAction`.
    pub target: Vec<u8>,
    /// The value as it came.
    pub raw: &'a [u8],
    /// The value that the operator saw.
    pub value: &'a [u8],
    /// Expanded `msg`.
    pub msg: &'a [u8],
    /// Expanded `logdata`.
    pub log_data: &'a [u8],
    /// Names of the transformations applied.
    pub transformations: Vec<&'static str>,
    /// Severity of the rule.
    pub severity: Option<Severity>,
    /// Operator of the link that completed the match, as written.
    pub operator: &'a str,
    /// TX keys and what was added to them.
    pub changes: Vec<(&'a [u8], i64)>,
}

impl Transaction {
    /// The texts of a match of this transaction.
    pub fn view<'a>(&'a self, record: &'a Match) -> MatchView<'a> {
        let plan: &'a Plan = self.plan();
        let rule = plan.rule(record.rule);
        let changes = &self.changes()[record.first_change as usize..][..record.change_count as usize];
        MatchView {
            record,
            rule,
            target: record
                .variable
                .map_or_else(Vec::new, |variable| target_name(variable, record.count, self.text(record.key))),
            raw: self.text(record.raw),
            value: self.text(record.value),
            msg: record.msg.map_or(b"".as_slice(), |span| self.text(span)),
            log_data: record.log_data.map_or(b"".as_slice(), |span| self.text(span)),
            transformations: plan.chains.transformations(record.chain).iter().map(|t| t.name()).collect(),
            severity: rule.metadata.severity,
            operator: &plan.links_of(rule)[record.link as usize].operator_text,
            changes: changes.iter().map(|c| (&*plan.tx_names[c.slot.0 as usize], c.delta)).collect(),
        }
    }
}

/// The name of a value as SecLang writes it.
pub(crate) fn target_name(variable: Variable, count: bool, key: &[u8]) -> Vec<u8> {
    // A matched variable keeps the name it was matched under (var_matched_vars_generate).
    if matches!(variable, Variable::MatchedVars | Variable::MatchedVarsNames) && !count && !key.is_empty() {
        return key.to_vec();
    }
    // What a rule asks of itself goes by the bare name (var_rule_generate).
    if variable == Variable::Rule && !count {
        return variable.name().as_bytes().to_vec();
    }
    let mut name = Vec::with_capacity(variable.name().len() + key.len() + 2);
    if count {
        name.push(b'&');
    }
    name.extend_from_slice(variable.name().as_bytes());
    // An argument may have the empty name: `ARGS:`.
    let keyed = !count
        && matches!(variable.shape(), Shape::Collection | Shape::Persistent)
        && variable != Variable::Rule;
    if keyed || !key.is_empty() {
        name.push(b':');
        name.extend_from_slice(key);
    }
    name
}

/// A key as ModSecurity writes it into a variable's name: control bytes, backslashes and bytes above 126 as
/// escapes.
pub(crate) fn escape_key(key: &[u8]) -> Cow<'_, [u8]> {
    let plain = |b: &u8| (0x20..0x7f).contains(b) && *b != b'\\';
    if key.iter().all(plain) {
        return Cow::Borrowed(key);
    }
    let mut out = Vec::with_capacity(key.len() + 8);
    for &byte in key {
        match byte {
            0x08 => out.extend_from_slice(br"\b"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            0x0b => out.extend_from_slice(br"\v"),
            b'\\' => out.extend_from_slice(br"\\"),
            0x20..0x7f => out.push(byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    Cow::Owned(out)
}
