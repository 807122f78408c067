//! The tree of a SecLang document. Everything carries the span of its text; nothing is resolved yet:
//! default actions, chains, macros and exclusions are the compiler's work.

use bstr::BString;
use portcullis_decode::Transformation;
use portcullis_types::{Phase, RuleId, Severity, Variable};

use crate::source::SourceSpan;
use crate::{actions::ActionName, operators::OperatorName, settings::Setting};

/// A node and where it stands in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The node.
    pub node: T,
    /// Its text.
    pub span: SourceSpan,
}

/// Rule files in load order, `Include`s already replaced by what they include.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Directives in the order in which they take effect.
    pub directives: Vec<Spanned<Directive>>,
    /// Rules that were left out for a mistake, in order: what belongs to the same chain is not to blame.
    pub refused: Vec<RefusedRule>,
}

/// A rule that was left out of a document for a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedRule {
    /// So many directives of the document stand before it.
    pub before: usize,
    /// The next rule is a link of its chain.
    pub chain: bool,
}

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `SecRule TARGETS OPERATOR [ACTIONS]`; `SecAction ACTIONS` has no condition.
    Rule(Rule),
    /// `SecRuleScript PATH [ACTIONS]`: a rule or link that never matches, since scripts are not run.
    Script {
        /// The script.
        path: BString,
        /// The actions, which are never carried out.
        actions: Vec<Spanned<Action>>,
    },
    /// `SecMarker LABEL`.
    Marker(BString),
    /// `SecDefaultAction ACTIONS`.
    DefaultAction(Vec<Spanned<Action>>),
    /// `SecRuleRemoveById 1 "5-9"`.
    RemoveById(Vec<IdRange>),
    /// `SecRuleRemoveByTag REGEX`.
    RemoveByTag(BString),
    /// `SecRuleRemoveByMsg REGEX`.
    RemoveByMsg(BString),
    /// `SecRuleUpdateTargetById`, `...ByTag`, `...ByMsg`.
    UpdateTarget {
        /// The rules to change.
        rules: RuleSelector,
        /// Targets that are added, or taken away with `!`.
        targets: Vec<Spanned<Target>>,
        /// The third argument: a target of the rule that `targets` replaces.
        replaced: Option<Vec<Spanned<Target>>>,
    },
    /// `SecRuleUpdateActionById ID[:OFFSET] ACTIONS`.
    UpdateAction {
        /// The rule.
        id: RuleId,
        /// The link of its chain, 0 for the first.
        link: u32,
        /// The actions that replace or add to its own.
        actions: Vec<Spanned<Action>>,
    },
    /// Any other directive: a setting of the engine.
    Setting(Setting),
}

/// The rules that an update speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSelector {
    /// By id or range of ids.
    Ids(Vec<IdRange>),
    /// Tag matches this regex.
    Tag(BString),
    /// Message matches this regex.
    Msg(BString),
}

/// Rule ids `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// Lowest id.
    pub first: u32,
    /// Highest id.
    pub last: u32,
}

/// One `SecRule` or `SecAction`; a link of a chain if the rule before it has [`Action::Chain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The test; `None` for `SecAction`, which always matches.
    pub condition: Option<Condition>,
    /// Its own actions in written order, defaults not merged.
    pub actions: Vec<Spanned<Action>>,
}

/// The condition of a `SecRule`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Targets and exclusions in written order.
    pub targets: Vec<Spanned<Target>>,
    /// The operator.
    pub operator: Spanned<Operator>,
}

/// `[&|!]VARIABLE[:SELECTOR]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Plain, counted or taken away.
    pub kind: TargetKind,
    /// The variable.
    pub variable: Variable,
    /// The selector; `None` for all keys.
    pub selector: Option<Selector>,
}

/// The kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// The values.
    Values,
    /// `&`: how many values there are.
    Count,
    /// `!`: an exclusion from the targets before it.
    Exclude,
}

/// The part after the colon of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// A key, compared without regard to ASCII case.
    Key(BString),
    /// `/regex/`: every key that matches.
    Regex(BString),
    /// An XPath expression (`XML` only).
    XPath(BString),
}

/// `[!]@name argument`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// `!` was written.
    pub negated: bool,
    /// The operator's name; a bare argument means `@rx`.
    pub name: OperatorName,
    /// The text after the name, quoting undone, macros and data files not yet resolved.
    pub argument: BString,
}

/// One action. Texts may hold `%{macros}`; the compiler resolves them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    // Metadata
    Id(RuleId),
    Phase(Phase),
    Msg(BString),
    LogData(BString),
    Tag(BString),
    Severity(Severity),
    Ver(BString),
    Rev(BString),
    Maturity(u8),
    Accuracy(u8),
    // Disruptive
    Block,
    Deny,
    Drop,
    Pass,
    Allow(AllowScope),
    Redirect(BString),
    Proxy(BString),
    /// Milliseconds; a text because it may be a macro.
    Pause(BString),
    // Data of disruptive actions
    /// `status:403`.
    Status(u16),
    XmlNs {
        prefix: BString,
        uri: BString,
    },
    // Flow
    Chain,
    Skip(u32),
    SkipAfter(BString),
    // Non-disruptive
    Log,
    NoLog,
    AuditLog,
    NoAuditLog,
    Capture,
    MultiMatch,
    SetVar(SetVar),
    SetEnv(BString),
    InitCol {
        collection: Variable,
        key: BString,
    },
    SetSid(BString),
    SetUid(BString),
    SetRsc(BString),
    /// `expirevar:tx.key=seconds`.
    ExpireVar {
        variable: VariableKey,
        seconds: BString,
    },
    /// `deprecatevar:session.score=amount/seconds`.
    DeprecateVar {
        variable: VariableKey,
        amount: BString,
        seconds: BString,
    },
    Exec(BString),
    Append(BString),
    Prepend(BString),
    SanitiseArg(BString),
    SanitiseMatched,
    SanitiseMatchedBytes(BString),
    SanitiseRequestHeader(BString),
    SanitiseResponseHeader(BString),
    Ctl(Ctl),
    /// `t:none`: forget the transformations before it, the defaults included.
    TransformNone,
    /// `t:name`.
    Transform(Transformation),
}

impl Action {
    /// Returns the name of the action.
    pub fn name(&self) -> ActionName {
        match self {
            Action::Id(_) => ActionName::Id,
            Action::Phase(_) => ActionName::Phase,
            Action::Msg(_) => ActionName::Msg,
            Action::LogData(_) => ActionName::LogData,
            Action::Tag(_) => ActionName::Tag,
            Action::Severity(_) => ActionName::Severity,
            Action::Ver(_) => ActionName::Ver,
            Action::Rev(_) => ActionName::Rev,
            Action::Maturity(_) => ActionName::Maturity,
            Action::Accuracy(_) => ActionName::Accuracy,
            Action::Block => ActionName::Block,
            Action::Deny => ActionName::Deny,
            Action::Drop => ActionName::Drop,
            Action::Pass => ActionName::Pass,
            Action::Allow(_) => ActionName::Allow,
            Action::Redirect(_) => ActionName::Redirect,
            Action::Proxy(_) => ActionName::Proxy,
            Action::Pause(_) => ActionName::Pause,
            Action::Status(_) => ActionName::Status,
            Action::XmlNs { .. } => ActionName::Xmlns,
            Action::Chain => ActionName::Chain,
            Action::Skip(_) => ActionName::Skip,
            Action::SkipAfter(_) => ActionName::SkipAfter,
            Action::Log => ActionName::Log,
            Action::NoLog => ActionName::NoLog,
            Action::AuditLog => ActionName::AuditLog,
            Action::NoAuditLog => ActionName::NoAuditLog,
            Action::Capture => ActionName::Capture,
            Action::MultiMatch => ActionName::MultiMatch,
            Action::SetVar(_) => ActionName::SetVar,
            Action::SetEnv(_) => ActionName::SetEnv,
            Action::InitCol { .. } => ActionName::InitCol,
            Action::SetSid(_) => ActionName::SetSid,
            Action::SetUid(_) => ActionName::SetUid,
            Action::SetRsc(_) => ActionName::SetRsc,
            Action::ExpireVar { .. } => ActionName::ExpireVar,
            Action::DeprecateVar { .. } => ActionName::DeprecateVar,
            Action::Exec(_) => ActionName::Exec,
            Action::Append(_) => ActionName::Append,
            Action::Prepend(_) => ActionName::Prepend,
            Action::SanitiseArg(_) => ActionName::SanitiseArg,
            Action::SanitiseMatched => ActionName::SanitiseMatched,
            Action::SanitiseMatchedBytes(_) => ActionName::SanitiseMatchedBytes,
            Action::SanitiseRequestHeader(_) => ActionName::SanitiseRequestHeader,
            Action::SanitiseResponseHeader(_) => ActionName::SanitiseResponseHeader,
            Action::Ctl(_) => ActionName::Ctl,
            Action::TransformNone | Action::Transform(_) => ActionName::T,
        }
    }
}

impl Ctl {
    /// Returns the option.
    pub fn option(&self) -> Option<crate::actions::CtlOption> {
        let text = crate::printer::action::ctl(self);
        let name = text.split(|&b| b == b'=').next().unwrap_or_default();
        std::str::from_utf8(name).ok().and_then(crate::actions::CtlOption::from_name)
    }
}

/// The scope of `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowScope {
    /// The rest of the transaction (logging still runs).
    Transaction,
    /// The rest of this phase.
    Phase,
    /// The remaining request phases.
    Request,
}

/// `collection.key`; the key may hold macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableKey {
    /// `TX`, `IP`, ...
    pub collection: Variable,
    /// The key.
    pub key: BString,
}

/// `setvar:collection.key=...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVar {
    /// The variable to set.
    pub variable: VariableKey,
    /// The operation on it.
    pub operation: SetVarOperation,
}

/// The right-hand side of `setvar`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetVarOperation {
    /// `=value`; without `=`, the value is `1`.
    Set(BString),
    /// `=+value`.
    Add(BString),
    /// `=-value`.
    Subtract(BString),
    /// `!collection.key`.
    Unset,
}

/// `ctl:option=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Ctl {
    AuditEngine(crate::settings::AuditEngine),
    AuditLogParts(BString),
    DebugLogLevel(u8),
    ForceRequestBodyVariable(bool),
    RateLimit { limit: BString, key: BString },
    RequestBodyAccess(bool),
    RequestBodyLimit(u64),
    RequestBodyProcessor(crate::settings::BodyProcessor),
    ResponseBodyAccess(bool),
    ResponseBodyLimit(u64),
    RuleEngine(crate::settings::RuleEngine),
    RuleRemoveById(Vec<IdRange>),
    RuleRemoveByTag(BString),
    RuleRemoveByMsg(BString),
    RuleRemoveTargetById { ids: Vec<IdRange>, target: Target },
    RuleRemoveTargetByTag { tag: BString, target: Target },
    RuleRemoveTargetByMsg { msg: BString, target: Target },
    HashEngine(bool),
    HashEnforcement(bool),
    ParseXmlIntoArgs(crate::settings::XmlArgs),
}
