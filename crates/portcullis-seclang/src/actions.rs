//! The one table of actions, and the one table of `ctl:` options.

use portcullis_types::NameTable;

/// The group of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionGroup {
    /// Describes the rule.
    Metadata,
    /// Decides what happens to the transaction; the last one of a rule counts.
    Disruptive,
    /// Belongs to another action of the rule.
    Data,
    /// Changes which rule comes next.
    Flow,
    /// Does something at each match and lets the next rules run.
    NonDisruptive,
    /// A step between the value and the operator.
    Transformation,
}

/// The use of an argument after a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentUse {
    /// Never.
    No,
    /// It may.
    Optional,
    /// Always.
    Required,
}

macro_rules! actions {
    ($($variant:ident $name:literal $([$($alias:literal),*])? $group:ident $argument:ident $meaning:literal,)*) => {
        /// Every action of the ModSecurity 2.9 and 3 references.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum ActionName { $(#[doc = $meaning] $variant,)* }

        impl ActionName {
            /// All actions in name order.
            pub const ALL: &'static [ActionName] = &[$(ActionName::$variant,)*];
            const NAMES: &'static [&'static str] = &[$($name,)*];
            const TABLE: &'static [ActionRow] = &[$(($name, &[$($($alias,)*)?], ActionGroup::$group, ArgumentUse::$argument, $meaning),)*];
        }
    };
}

type ActionRow = (&'static str, &'static [&'static str], ActionGroup, ArgumentUse, &'static str);

actions! {
    Accuracy "accuracy" Metadata Required "How rarely the rule is wrong, 1 to 9.",
    Allow "allow" Disruptive Optional "Lets the transaction, this phase or the request phases pass.",
    Append "append" NonDisruptive Required "Adds text at the end of the response body.",
    AuditLog "auditlog" NonDisruptive No "Marks the transaction for the audit log.",
    Block "block" Disruptive No "Does what the default action of the phase says.",
    Capture "capture" NonDisruptive No "Keeps what the operator found in TX:0 to TX:9.",
    Chain "chain" Flow No "Makes the next rule a further condition of this one.",
    Ctl "ctl" NonDisruptive Required "Changes a setting for this transaction.",
    Deny "deny" Disruptive No "Answers with an error status.",
    DeprecateVar "deprecatevar" NonDisruptive Required "Lowers a persistent counter as time goes by.",
    Drop "drop" Disruptive No "Closes the connection without an answer.",
    Exec "exec" NonDisruptive Required "Runs a program or Lua script.",
    ExpireVar "expirevar" NonDisruptive Required "Lets a persistent variable vanish after some seconds.",
    Id "id" Metadata Required "The number of the rule.",
    InitCol "initcol" NonDisruptive Required "Opens a persistent collection under a key.",
    Log "log" NonDisruptive No "Writes a match to the logs.",
    LogData "logdata" Metadata Required "Text about the match, for the logs.",
    Marker "marker" Metadata Required "What SecMarker becomes inside ModSecurity 2; not for rules.",
    Maturity "maturity" Metadata Required "How well tested the rule is, 1 to 9.",
    Msg "msg" Metadata Required "What the rule found, for people.",
    MultiMatch "multiMatch" NonDisruptive No "Runs the operator before and after each transformation that changes the value.",
    NoAuditLog "noauditlog" NonDisruptive No "Does not mark the transaction for the audit log.",
    NoLog "nolog" NonDisruptive No "Does not log a match.",
    Pass "pass" Disruptive No "Goes on with the next rule.",
    Pause "pause" Disruptive Required "Waits some milliseconds.",
    Phase "phase" Metadata Required "When the rule runs: 1 to 5, request, response or logging.",
    Prepend "prepend" NonDisruptive Required "Adds text at the start of the response body.",
    Proxy "proxy" Disruptive Required "Forwards the request to another server.",
    Redirect "redirect" Disruptive Required "Answers with a redirection.",
    Rev "rev" Metadata Required "Revision of the rule.",
    SanitiseArg "sanitiseArg" ["sanitizeArg"] NonDisruptive Required "Hides an argument in the audit log.",
    SanitiseMatched "sanitiseMatched" ["sanitizeMatched"] NonDisruptive No "Hides the matched value in the audit log.",
    SanitiseMatchedBytes "sanitiseMatchedBytes" ["sanitizeMatchedBytes"] NonDisruptive Optional "Hides the matched bytes in the audit log.",
    SanitiseRequestHeader "sanitiseRequestHeader" ["sanitizeRequestHeader"] NonDisruptive Required "Hides a request header in the audit log.",
    SanitiseResponseHeader "sanitiseResponseHeader" ["sanitizeResponseHeader"] NonDisruptive Required "Hides a response header in the audit log.",
    SetEnv "setenv" NonDisruptive Required "Sets, changes or removes an environment variable.",
    SetRsc "setrsc" NonDisruptive Required "Opens the RESOURCE collection under a key.",
    SetSid "setsid" NonDisruptive Required "Opens the SESSION collection under a key.",
    SetUid "setuid" NonDisruptive Required "Opens the USER collection under a key.",
    SetVar "setvar" NonDisruptive Required "Sets, changes or removes a variable.",
    Severity "severity" Metadata Required "How bad a match is, 0 (worst) to 7 or a name.",
    Skip "skip" Flow Required "Leaves out the next rules, so many.",
    SkipAfter "skipAfter" Flow Required "Goes on after the marker or rule of that name.",
    Status "status" Data Required "Status code of deny and redirect.",
    T "t" Transformation Required "A transformation, or none.",
    Tag "tag" Metadata Required "A label of the rule.",
    Ver "ver" Metadata Required "The rule set and version that the rule belongs to.",
    Xmlns "xmlns" Data Required "A namespace for the XPath expressions of the rule.",
}

static NAME_TABLE: NameTable<128> = NameTable::new(ActionName::NAMES);

impl ActionName {
    /// The name as the references spell it.
    pub fn name(self) -> &'static str {
        ActionName::TABLE[self as usize].0
    }

    /// Other spellings.
    pub fn aliases(self) -> &'static [&'static str] {
        ActionName::TABLE[self as usize].1
    }

    /// Returns its group.
    pub fn group(self) -> ActionGroup {
        ActionName::TABLE[self as usize].2
    }

    /// Returns whether it takes an argument.
    pub fn argument(self) -> ArgumentUse {
        ActionName::TABLE[self as usize].3
    }

    /// Returns its effect, one sentence.
    pub fn meaning(self) -> &'static str {
        ActionName::TABLE[self as usize].4
    }

    /// From a name or other spelling, in any case.
    pub fn from_name(name: &str) -> Option<ActionName> {
        let is = |alias: &&str| alias.eq_ignore_ascii_case(name);
        let by_alias = || ActionName::ALL.iter().copied().find(|a| a.aliases().iter().any(is));
        let known = NAME_TABLE.find(ActionName::NAMES, name);
        known.map(|at| ActionName::ALL[at]).or_else(by_alias)
    }
}

macro_rules! ctl_options {
    ($($variant:ident $name:literal $meaning:literal,)*) => {
        /// Every option of `ctl:` of the ModSecurity 2.9 and 3 references, and what Coraza has beyond them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum CtlOption { $(#[doc = $meaning] $variant,)* }

        impl CtlOption {
            /// All options in name order.
            pub const ALL: &'static [CtlOption] = &[$(CtlOption::$variant,)*];
            const TABLE: &'static [(&'static str, &'static str)] = &[$(($name, $meaning),)*];
        }
    };
}

ctl_options! {
    AuditEngine "auditEngine" "On, Off or RelevantOnly.",
    AuditLogParts "auditLogParts" "The parts of the audit log; with + or - in front, parts to add or leave out.",
    DebugLogLevel "debugLogLevel" "0 to 9.",
    ForceRequestBodyVariable "forceRequestBodyVariable" "Fills REQUEST_BODY where no body processor is set.",
    ForceResponseBodyVariable "forceResponseBodyVariable" "Coraza: fills RESPONSE_BODY where no body processor is set.",
    HashEnforcement "hashEnforcement" "On or Off.",
    HashEngine "hashEngine" "On or Off.",
    ParseXmlIntoArgs "parseXmlIntoArgs" "On, Off or OnlyArgs: makes arguments of an XML body.",
    RateLimit "rateLimit" "NAME;KEY: counts the request in the rate limit NAME of the configuration, under KEY.",
    RequestBodyAccess "requestBodyAccess" "On or Off.",
    RequestBodyLimit "requestBodyLimit" "Bytes.",
    RequestBodyProcessor "requestBodyProcessor" "URLENCODED, MULTIPART, XML or JSON.",
    ResponseBodyAccess "responseBodyAccess" "On or Off.",
    ResponseBodyLimit "responseBodyLimit" "Bytes.",
    ResponseBodyProcessor "responseBodyProcessor" "Coraza: JSON or XML.",
    RuleEngine "ruleEngine" "On, Off or DetectionOnly.",
    RuleRemoveById "ruleRemoveById" "Leaves out rules by id or range of ids.",
    RuleRemoveByMsg "ruleRemoveByMsg" "Leaves out rules whose message matches.",
    RuleRemoveByTag "ruleRemoveByTag" "Leaves out rules that have a tag that matches.",
    RuleRemoveTargetById "ruleRemoveTargetById" "Takes a target from rules by id.",
    RuleRemoveTargetByMsg "ruleRemoveTargetByMsg" "Takes a target from rules by message.",
    RuleRemoveTargetByTag "ruleRemoveTargetByTag" "Takes a target from rules by tag.",
}

impl CtlOption {
    /// The name as the references spell it.
    pub fn name(self) -> &'static str {
        CtlOption::TABLE[self as usize].0
    }

    /// Returns the setting that it changes.
    pub fn meaning(self) -> &'static str {
        CtlOption::TABLE[self as usize].1
    }

    /// From a name in any case.
    pub fn from_name(name: &str) -> Option<CtlOption> {
        CtlOption::ALL.iter().copied().find(|o| o.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found_in_any_case() {
        let mut seen = std::collections::HashSet::new();
        for &action in ActionName::ALL {
            for name in action.aliases().iter().copied().chain([action.name()]) {
                assert!(seen.insert(name.to_lowercase()), "{name} twice");
                assert_eq!(ActionName::from_name(&name.to_uppercase()), Some(action));
            }
        }
        for &option in CtlOption::ALL {
            assert_eq!(CtlOption::from_name(&option.name().to_lowercase()), Some(option));
        }
    }
}
