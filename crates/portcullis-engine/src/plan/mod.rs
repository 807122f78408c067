//! The plan: what the executor walks. Plain data, built once by the compiler, shared by all transactions.

mod act;
mod link;
mod reads;
mod rule;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_prefilter::Stages;
use portcullis_types::Variable;

use crate::strategy::StepKind;
use crate::tx::macros_list_matches;
use crate::{
    Candidates, Chains, LinkTests, RuleSet, Settings, Strategies, TxBlocks, TxIndex, TxRules, TxSlot,
};

pub use act::{Act, Open, SetVar, SetVarOperation};
pub use link::{CtlTarget, Exclusion, KeyFilter, Link, Target, TargetList, XmlPath};
pub use reads::{HeadParts, HeadReads};
pub use rule::{
    AllowScope, Dead, DeadCause, Disruption, Metadata, Outcome, Removed, Rule, RuleIndex, SourcePlace, Step,
    Update,
};

/// Compiled rules and settings. Immutable once built.
#[derive(Debug, Default)]
pub struct Plan {
    /// Engine settings.
    pub settings: Settings,
    /// Rules (chains as one) in load order.
    pub rules: Vec<Rule>,
    /// Links of all rules; a rule's links are consecutive.
    pub links: Vec<Link>,
    /// The steps of each phase, in order, by phase number - 1.
    pub steps: [Vec<Step>; 5],
    /// Transformation chains.
    pub chains: Chains,
    /// Names of the TX keys that rules name literally, lower case, by [`TxSlot`]; the first ten are `0` to
    /// `9`.
    pub tx_names: Vec<Box<[u8]>>,
    /// Of the keys that a `setvar` spells with capitals: the spelling of the first one, which
    /// `MATCHED_VAR_NAME` has.
    pub tx_spellings: BTreeMap<TxSlot, Box<[u8]>>,
    /// The index of the slots by key.
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
    /// The candidates, by which rules need not run; made last, of all the rest.
    pub candidates: Candidates,
    /// The prefilter stages that are used: all of them, except in tests.
    pub prefilter_stages: Stages,
    /// By link: what decides whether it matches, if that is simple.
    pub tests: LinkTests,
    /// The rules on `TX` alone.
    pub tx_rules: TxRules,
    /// The known effects of runs of those rules where no rule on the message matches.
    pub tx_blocks: TxBlocks,
    /// The strategies that transactions may use.
    pub strategies: Strategies,
    /// By rule: it matches each time that its turn comes.
    pub certain: Vec<bool>,
    /// True if some rule begins with the last match of another: `MATCHED_VAR`.
    pub reads_last_match: bool,
    /// True if a macro stands for the list of matches: `MATCHED_VARS`.
    pub macros_list_matches: bool,
    /// Parts of the heads of a message that rules read.
    pub head_reads: HeadReads,
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
    /// Links as the allowance of work counts them; see [`Copies`].
    pub work_links: usize,
}

/// Rules that copy values of messages into `TX`, under names made of them, and links that look at all copies:
/// each of these looks at a value once for each of those. The CRS's plugin for double encoding is of this
/// kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// Links that copy.
    pub copying: usize,
    /// Links that look at copies.
    pub looking: usize,
    /// The first rule that copies.
    pub first: RuleIndex,
}

impl Copies {
    /// Looks at copies that a value of a message may cause.
    pub fn looks(&self) -> usize {
        self.copying.saturating_mul(self.looking)
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

    /// The copies that rules make; `None` if they make none, or no rule looks at them.
    pub fn copies(&self) -> Option<Copies> {
        let copies = |link: &Link| link.acts.iter().any(Act::copies_value);
        let (mut copying, mut first) = (0, None);
        for (index, rule) in (0..).map(RuleIndex).zip(&self.rules) {
            let count = self.links_of(rule).iter().filter(|link| copies(link)).count();
            copying += count;
            first = first.or((count > 0).then_some(index));
        }
        let looking = self.links.iter().filter(|link| link.looks_at_copies()).count();
        first.filter(|_| looking > 0).map(|first| Copies { copying, looking, first })
    }

    /// The name of a `TX` key as rules see it.
    pub fn tx_spelling(&self, slot: TxSlot) -> &[u8] {
        self.tx_spellings.get(&slot).unwrap_or_else(|| &self.tx_names[slot.0 as usize])
    }

    /// The last step of making a plan: what is looked up in it is put in order.
    pub fn finish(&mut self) {
        self.work_links = self.links.len() + self.copies().map_or(0, |copies| copies.looks());
        self.tx_index = TxIndex::new(&self.tx_names);
        for target in self.links.iter_mut().flat_map(|link| &mut link.targets.include) {
            if target.variable == Variable::Tx && target.slot.is_none() {
                let accepted =
                    (0..).map(TxSlot).zip(&self.tx_names).filter(|(_, name)| target.filter.accepts(name));
                target.slots = accepted.map(|(slot, _)| slot).collect();
            }
        }
        self.reads_last_match = self.rules.iter().any(|rule| self.links_of(rule)[0].reads_last_match());
        self.macros_list_matches = macros_list_matches(self);
        self.head_reads = HeadReads::new(self);
        self.tests = LinkTests::new(self);
        self.tx_rules = TxRules::new(self, &self.tests);
        self.candidates = Candidates::new(self);
        self.choose_kinds();
    }

    /// Chooses for each step the way to run it.
    fn choose_kinds(&mut self) {
        let mut kinds: [Vec<StepKind>; 5] = std::array::from_fn(|phase| {
            let steps = self.steps[phase].iter().enumerate();
            steps.map(|(at, step)| StepKind::of(self, (phase, at), step)).collect()
        });
        let (blocks, begins) = TxBlocks::new(self, &self.candidates.always_run());
        for (phase, step, block) in begins {
            kinds[phase][step] = StepKind::TxBlock(block);
        }
        self.tx_blocks = blocks;
        for (steps, kinds) in self.steps.iter_mut().zip(kinds) {
            steps.iter_mut().zip(kinds).for_each(|(step, kind)| step.kind = kind);
        }
    }
}
