//! Non-disruptive actions of a link.

use portcullis_types::Variable;

use crate::template::Part;
use crate::{Template, TxSlot};

/// A non-disruptive action, run at each match of its link.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Act {
    SetVar(SetVar),
    /// `initcol`, `setsid`, `setuid`, `setrsc`: opens a persistent collection.
    Open(Open),
    /// `expirevar`.
    Expire {
        collection: Variable,
        key: Template,
        seconds: Template,
    },
    /// `deprecatevar`.
    Deprecate {
        collection: Variable,
        key: Template,
        amount: Template,
        seconds: Template,
    },
    /// `setenv`. A name that begins with `!` once its macros are replaced is removed.
    SetEnv {
        name: Template,
        value: Template,
    },
    /// Switches off the rules of [`Plan::ctl_removals`](crate::Plan::ctl_removals) at this index.
    RemoveRules(u32),
    /// Switches on the exclusion of [`Plan::ctl_targets`](crate::Plan::ctl_targets) at this index.
    RemoveTarget(u32),
    RuleEngine(crate::RuleEngine),
    BodyProcessor(crate::BodyProcessor),
    ForceRequestBodyVariable(bool),
    XmlArgs(crate::XmlArgs),
    /// Counts the request in a rate limit.
    RateLimit(crate::RateLimit),
    RequestBodyAccess(bool),
    RequestBodyLimit(u64),
    ResponseBodyAccess(bool),
    ResponseBodyLimit(u64),
    /// Sent behind the response body.
    Append(Template),
    /// Sent before the response body.
    Prepend(Template),
    /// Changes how the transaction is logged.
    Audit(crate::AuditAct),
}

impl Act {
    /// True if it puts a text of the message into `TX`, under a name that is made at run time.
    pub(super) fn copies_value(&self) -> bool {
        let Act::SetVar(SetVar { collection: Variable::Tx, slot: None, operation, .. }) = self else {
            return false;
        };
        let SetVarOperation::Set(value) = operation else { return false };
        value.parts.iter().any(|part| matches!(part, Part::Variable { .. }))
    }

    /// True for what neither looks at the match nor ends the phase.
    pub(crate) fn is_switch(&self) -> bool {
        matches!(
            self,
            Act::RemoveRules(_)
                | Act::RemoveTarget(_)
                | Act::BodyProcessor(_)
                | Act::ForceRequestBodyVariable(_)
        )
    }
}

/// `setvar`.
#[derive(Clone, Debug)]
pub struct SetVar {
    /// The collection: `TX` or a persistent one.
    pub collection: Variable,
    /// The slot, if the key is a plain `TX` key.
    pub slot: Option<TxSlot>,
    /// The key.
    pub key: Template,
    /// The operation on it.
    pub operation: SetVarOperation,
}

/// The operation of a `setvar`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum SetVarOperation {
    Set(Template),
    SetNumber(i64),
    Add(Template),
    Subtract(Template),
    /// Negative to subtract.
    AddNumber(i64),
    Unset,
}

/// Opens a record of a persistent collection.
#[derive(Clone, Debug)]
pub struct Open {
    /// The collection as rules name it.
    pub collection: Variable,
    /// Its name in storage; `setsid`, `setuid` and `setrsc` put the application in front.
    pub name: Box<[u8]>,
    /// The record.
    pub key: Template,
    /// The variable that takes the key: `SESSIONID` for `setsid`, `USERID` for `setuid`.
    pub identity: Option<Variable>,
}
