//! The plan: what the executor walks. Plain data, built once by the compiler, shared by all transactions.

use std::sync::Arc;

use portcullis_match::Pcre;
use portcullis_types::{Phase, RuleId, Severity, Variable};

use crate::strategy::StepKind;
use crate::template::Part;
use crate::{
    ChainId, Chains, Diversion, LinkTests, Operator, Prefilter, RuleSet, Settings, Strategies, Template,
    TxBlocks, TxIndex, TxRules, TxSlot,
};

/// Position of a rule in [`Plan::rules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleIndex(pub u32);

/// Compiled rules and settings. Immutable once built.
#[derive(Debug, Default)]
pub struct Plan {
    /// Engine settings.
    pub settings: Settings,
    /// Rules (chains as one) in load order.
    pub rules: Vec<Rule>,
    /// Links of all rules; a rule's links are consecutive.
    pub links: Vec<Link>,
    /// What each phase runs, in order, by phase number - 1.
    pub steps: [Vec<Step>; 5],
    /// Transformation chains.
    pub chains: Chains,
    /// Names of the TX keys that rules name literally, lower case, by [`TxSlot`]; the first ten are `0` to `9`.
    pub tx_names: Vec<Box<[u8]>>,
    /// Where they are found.
    pub tx_index: TxIndex,
    /// Target exclusions that `ctl:ruleRemoveTarget...` can switch on.
    pub ctl_targets: Vec<CtlTarget>,
    /// Rule sets that `ctl:ruleRemove...` can switch off.
    pub ctl_removals: Vec<RuleSet>,
    /// The text of each link, by index in [`Plan::links`], where audit records may show it; empty otherwise.
    pub rule_texts: Vec<Box<str>>,
    /// Names of rule files, as given.
    pub files: Vec<Arc<str>>,
    /// Rules that a directive took out again.
    pub removed: Vec<Removed>,
    /// Rules that no request can reach or match; they are in no phase's steps.
    pub dead: Vec<Dead>,
    /// Rules that a later directive changed, by rule.
    pub updates: Vec<Update>,
    /// Which rules need not run; made last, of all the rest.
    pub prefilter: Prefilter,
    /// By link: what decides whether it matches, if that is simple.
    pub tests: LinkTests,
    /// The rules on `TX` alone.
    pub tx_rules: TxRules,
    /// What runs of them come to where nothing is found.
    pub tx_blocks: TxBlocks,
    /// The strategies that transactions may use.
    pub strategies: Strategies,
    /// By rule: it matches each time that its turn comes.
    pub certain: Vec<bool>,
    /// True if some rule begins with the last match of another: `MATCHED_VAR`.
    pub reads_last_match: bool,
    /// True if some rule needs the bytes of uploaded files.
    pub reads_file_content: bool,
    /// True if some rule reads the response body (phase 4 has rules).
    pub reads_response_body: bool,
    /// True if some target or exclusion searches XML bodies, so that a tree is made of them.
    pub searches_xml: bool,
    /// True if `STREAM_INPUT_BODY` has a value: a rule reads it, and it is switched on.
    pub streams_request: bool,
    /// True if `STREAM_OUTPUT_BODY` has a value.
    pub streams_response: bool,
}

/// A place in a rule file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// Index in [`Plan::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// A rule that was read and taken out again.
#[derive(Clone, Debug)]
pub struct Removed {
    /// Its id.
    pub id: RuleId,
    /// When it would have run.
    pub phase: Phase,
    /// Where it stands.
    pub place: SourcePlace,
    /// The directive that took it out, such as `SecRuleRemoveById`.
    pub directive: &'static str,
    /// Where that stands.
    pub by: SourcePlace,
}

/// A directive that changed a rule.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The rule.
    pub rule: RuleIndex,
    /// The directive, such as `SecRuleUpdateTargetById`.
    pub directive: &'static str,
    /// Where it stands.
    pub by: SourcePlace,
}

/// A rule that no request can reach or match.
#[derive(Clone, Debug)]
pub struct Dead {
    /// The rule.
    pub rule: RuleIndex,
    /// Why.
    pub why: DeadCause,
}

/// Why a rule is dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadCause {
    /// This rule skips it, every time.
    Skipped {
        /// The rule with the `skipAfter` or `skip`.
        by: RuleIndex,
    },
    /// Its condition on a `TX` key is always false.
    Never {
        /// The key.
        slot: TxSlot,
        /// What it always holds there; `None` if it is never set.
        value: Option<Box<[u8]>>,
    },
}

/// One entry of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule.
    pub rule: RuleIndex,
    /// `skipAfter` and `skip`: where to go on in this phase's steps when the rule matched; `u32::MAX` if it does not skip.
    pub skip_to: u32,
    /// How it runs; made last, of all the rest.
    pub(crate) kind: StepKind,
}

/// A rule: a condition of one or more links, and what follows if all of them match.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `id`, 0 if the rule has none.
    pub id: RuleId,
    /// When it runs.
    pub phase: Phase,
    /// First link in [`Plan::links`].
    pub first_link: u32,
    /// Number of links, at least 1.
    pub link_count: u32,
    /// What it asks for when it matched.
    pub disruption: Disruption,
    /// `pause`: milliseconds that the transaction is held up.
    pub pause: Option<Template>,
    /// `log`: the match is worth an event.
    pub log: bool,
    /// `auditlog`.
    pub audit_log: bool,
    /// Texts for people.
    pub metadata: Metadata,
}

/// The texts and labels of a rule.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// `msg`.
    pub msg: Option<Template>,
    /// `logdata`.
    pub log_data: Option<Template>,
    /// `tag`s in order.
    pub tags: Vec<Template>,
    /// `severity`.
    pub severity: Option<Severity>,
    /// `ver`.
    pub ver: Option<Box<str>>,
    /// `rev`.
    pub rev: Option<Box<str>>,
    /// `maturity`, 0 to 9.
    pub maturity: Option<u8>,
    /// `accuracy`, 0 to 9.
    pub accuracy: Option<u8>,
    /// Where the rule stands.
    pub place: SourcePlace,
}

/// The disruptive action of a rule, `block` already replaced by the default.
#[derive(Clone, Debug)]
pub enum Disruption {
    /// `pass`.
    Pass,
    /// `allow`.
    Allow(AllowScope),
    /// `deny`.
    Deny {
        /// HTTP status.
        status: u16,
    },
    /// `drop`: close the connection.
    Drop,
    /// `redirect`.
    Redirect {
        /// 301, 302, 303 or 307.
        status: u16,
        /// The location.
        location: Template,
    },
    /// `proxy`: the request goes to another server than the route's.
    Proxy(Diversion),
}

/// How much `allow` lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowScope {
    /// The rest of the transaction but logging.
    Transaction,
    /// The rest of the phase.
    Phase,
    /// The remaining request phases.
    Request,
}

/// One link of a rule.
#[derive(Clone, Debug)]
pub struct Link {
    /// The values it looks at. `SecAction` looks at `REMOTE_ADDR`, as in ModSecurity 2, and so always matches once.
    pub targets: TargetList,
    /// True for `SecAction`: target and operator are not the rule writer's.
    pub unconditional: bool,
    /// What is done to them first.
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
    /// What each match does.
    pub acts: Vec<Act>,
}

/// Values to look at and values to leave out.
#[derive(Clone, Debug, Default)]
pub struct TargetList {
    /// In written order.
    pub include: Vec<Target>,
    /// What `!VARIABLE:key` takes away, whether written in the rule or added by an update; by rising reach.
    pub exclude: Vec<Exclusion>,
}

/// Values that a rule leaves out.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// The variable.
    pub variable: Variable,
    /// Which keys.
    pub filter: KeyFilter,
    /// It takes away from what so many of the first targets stand for: those before it, or as in libmodsecurity all.
    pub reach: usize,
}

/// A variable with the keys wanted.
#[derive(Clone, Debug)]
pub struct Target {
    /// The variable.
    pub variable: Variable,
    /// Which keys.
    pub filter: KeyFilter,
    /// For `TX:key`: the slot of the key.
    pub slot: Option<TxSlot>,
    /// For `TX` without such a key: the slots whose names it takes.
    pub slots: Box<[TxSlot]>,
    /// `&`: how many values there are instead of the values.
    pub count: bool,
}

/// Which keys of a collection.
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

impl Link {
    /// True if what it looks at, or its argument, is the last match.
    fn reads_last_match(&self) -> bool {
        let is_match =
            |variable: Variable| matches!(variable, Variable::MatchedVar | Variable::MatchedVarName);
        let in_argument = |argument: &Template| {
            let names = |part: &Part| matches!(part, Part::Variable { variable, .. } if is_match(*variable));
            argument.parts.iter().any(names)
        };
        self.targets.include.iter().any(|target| is_match(target.variable))
            || self.operator.argument().is_some_and(in_argument)
    }

    /// True if a match of it, as long as its rule does not match as a whole, changes nothing that other rules see but the last match.
    pub(crate) fn is_quiet(&self) -> bool {
        self.operator.answers_only() && self.acts.is_empty() && !self.capture
    }
}

impl Act {
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

/// A target taken from some rules by `ctl` for the rest of a transaction.
#[derive(Clone, Debug)]
pub struct CtlTarget {
    /// The rules.
    pub rules: RuleSet,
    /// The variable.
    pub variable: Variable,
    /// Which keys of it.
    pub filter: KeyFilter,
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
    /// What happens to it.
    pub operation: SetVarOperation,
}

/// What `setvar` does.
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
    /// Switches off the rules of [`Plan::ctl_removals`] at this index.
    RemoveRules(u32),
    /// Switches on the exclusion of [`Plan::ctl_targets`] at this index.
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
    /// How the transaction is logged.
    Audit(crate::AuditAct),
}

/// What a whole rule did, as the executor's answer to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not all links matched.
    NoMatch,
    /// All links matched.
    Match,
    /// It waits for answers.
    Ask {
        /// The link that asks.
        link: u32,
    },
}

impl Step {
    /// A step that runs `rule` and does not skip.
    pub fn new(rule: RuleIndex) -> Step {
        Step { rule, skip_to: u32::MAX, kind: StepKind::General }
    }
}

impl Plan {
    /// The rule at `index`.
    pub fn rule(&self, index: RuleIndex) -> &Rule {
        &self.rules[index.0 as usize]
    }

    /// The links of `rule`.
    pub fn links_of(&self, rule: &Rule) -> &[Link] {
        let first = rule.first_link as usize;
        &self.links[first..first + rule.link_count as usize]
    }

    /// The name of the file that `place` is in.
    pub fn file(&self, place: SourcePlace) -> &Arc<str> {
        static NONE: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| Arc::from(""));
        self.files.get(place.file as usize).unwrap_or(&NONE)
    }

    /// The slot of a literal `TX` key.
    pub fn tx_slot(&self, key: &[u8]) -> Option<TxSlot> {
        self.tx_index.find(key)
    }

    /// The last step of making a plan: what is looked up in it is put in order.
    pub fn finish(&mut self) {
        self.tx_index = TxIndex::new(&self.tx_names);
        for target in self.links.iter_mut().flat_map(|link| &mut link.targets.include) {
            if target.variable == Variable::Tx && target.slot.is_none() {
                let accepted =
                    (0..).map(TxSlot).zip(&self.tx_names).filter(|(_, name)| target.filter.accepts(name));
                target.slots = accepted.map(|(slot, _)| slot).collect();
            }
        }
        self.reads_last_match = self.rules.iter().any(|rule| self.links_of(rule)[0].reads_last_match());
        self.tests = LinkTests::new(self);
        self.tx_rules = TxRules::new(self, &self.tests);
        self.prefilter = Prefilter::new(self);
        self.scan_unset();
        self.choose_kinds();
    }

    /// How each step runs.
    fn choose_kinds(&mut self) {
        let mut kinds: [Vec<StepKind>; 5] = std::array::from_fn(|phase| {
            let steps = self.steps[phase].iter().enumerate();
            steps.map(|(at, step)| StepKind::of(self, (phase, at), step)).collect()
        });
        let (blocks, begins) = TxBlocks::new(self, &self.prefilter.always_run());
        for (phase, step, block) in begins {
            kinds[phase][step] = StepKind::TxBlock(block);
        }
        self.tx_blocks = blocks;
        for (steps, kinds) in self.steps.iter_mut().zip(kinds) {
            steps.iter_mut().zip(kinds).for_each(|(step, kind)| step.kind = kind);
        }
    }
}
