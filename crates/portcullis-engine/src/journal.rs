//! The output of a transaction: what rules did and asked for, in order.

use portcullis_types::Phase;

use crate::audit::{AuditSettings, AuditState};
use crate::charges::Pending;
use crate::plan::RuleIndex;
use crate::record::{Match, ScoreChange};
use crate::rewrite::Rewrites;
use crate::trace::Trace;
use crate::transaction::Interruption;

/// The record of a transaction.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) matches: Vec<Match>,
    /// Matches that are not logged are remembered, too.
    pub(crate) keeps_quiet: bool,
    /// Matches beyond the limit, not remembered.
    pub(crate) matches_dropped: u64,
    pub(crate) changes: Vec<ScoreChange>,
    /// The first of the changes that belong to the rule that runs.
    pub(crate) rule_changes: u32,
    pub(crate) audit: AuditState,
    pub(crate) interruption: Option<Interruption>,
    pub(crate) interrupted_by: Option<(RuleIndex, Phase)>,
    /// The last rule whose disruptive action the judge withheld.
    pub(crate) withheld: Option<RuleIndex>,
    /// The exclusions that fitted a match.
    pub(crate) exempted: Vec<u32>,
    pub(crate) rewrites: Rewrites,
    pub(crate) charges: Vec<Pending>,
    pub(crate) pause_ms: u64,
    pub(crate) paused_by: Option<RuleIndex>,
    /// Kept for explanations only.
    pub(crate) trace: Option<Box<Trace>>,
}

impl Journal {
    /// An empty one in these buffers.
    pub(crate) fn new(settings: &AuditSettings, matches: Vec<Match>, changes: Vec<ScoreChange>) -> Journal {
        Journal {
            matches,
            keeps_quiet: settings.reachable.quiet_matches,
            matches_dropped: 0,
            changes,
            rule_changes: 0,
            audit: AuditState::new(settings),
            interruption: None,
            interrupted_by: None,
            withheld: None,
            exempted: Vec::new(),
            rewrites: Rewrites::default(),
            charges: Vec::new(),
            pause_ms: 0,
            paused_by: None,
            trace: None,
        }
    }

    /// The numeric changes of `TX` keys that a match made.
    pub(crate) fn changes_of(&self, found: &Match) -> &[ScoreChange] {
        let first = found.first_change as usize;
        self.changes.get(first..first + found.change_count as usize).unwrap_or_default()
    }
}
