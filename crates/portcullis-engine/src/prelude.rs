//! What the first rules of every request come to, worked out at load time.
//!
//! A rule set begins with settings: rules that look at `TX` only and set `TX` only ([plain](crate::Shortcuts) ones). They find the
//! same and do the same each time, so they are run once, when the plan is made, and a transaction takes over what they left.

use std::net::SocketAddr;
use std::sync::Arc;

use portcullis_types::{Phase, Span, Variable};

use crate::collections::NoCollections;
use crate::execute::Matched;
use crate::plan::{Act, Plan, RuleIndex, Step};
use crate::record::{Match, ScoreChange};
use crate::transaction::{Connection, Scratch, Transaction};
use crate::tx_store::TxStore;

/// The outcome of some steps of phase 1.
#[derive(Debug, Default)]
pub struct Prelude {
    /// The first of these steps, and the one behind them.
    begin: usize,
    end: usize,
    /// The texts that the rest speaks of. All transactions begin with them, so that their places are the same.
    bytes: Vec<u8>,
    tx: TxStore,
    matched: Matched,
    matches: Vec<Match>,
    changes: Vec<ScoreChange>,
}

impl Prelude {
    /// Fewer steps are not worth it.
    const STEPS_MIN: usize = 3;

    /// Of a plan that has all the rest.
    pub(crate) fn new(plan: &Plan) -> Prelude {
        let steps = &plan.steps[0];
        let is_plain = |step: &Step| plan.shortcuts.is_setting(step.rule) && can_be_known(plan, step.rule);
        let Some(begin) = steps.iter().position(is_plain) else { return Prelude::default() };
        let end = steps[begin..].iter().position(|step| !is_plain(step)).map_or(steps.len(), |n| begin + n);
        if end - begin < Self::STEPS_MIN || !steps[..begin].iter().all(|step| leaves_tx(plan, step.rule)) {
            return Prelude::default();
        }
        let mut run = Transaction::of_nobody();
        run.store.set_scalar_span(Variable::RemoteAddr, Span::default());
        run.tx.reset(plan.tx_names.len());
        run.phase = Phase::RequestHeaders;
        run.keeps_quiet = true;
        let mut at = begin;
        while let Some(step) = steps[..end].get(at) {
            at += 1;
            match run.run_short(plan, step.rule) {
                None => return Prelude::default(),
                Some(true) if step.skip_to != u32::MAX => at = step.skip_to as usize,
                Some(_) => {}
            }
        }
        let Transaction { store, mut tx, matched, matches, changes, matches_dropped, .. } = *run;
        if matches_dropped > 0 {
            return Prelude::default();
        }
        tx.forget_shown();
        Prelude { begin, end: at, bytes: store.into_bytes(), tx, matched, matches, changes }
    }

    /// The first step of phase 1 that it stands for.
    pub(crate) fn begin(&self) -> usize {
        self.begin
    }

    /// The step of phase 1 behind those.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// What a transaction's bytes begin with.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// False for rules from which a `ctl` could take the very value that they look at.
fn can_be_known(plan: &Plan, rule: RuleIndex) -> bool {
    let narrowed = |target: &crate::CtlTarget| {
        matches!(target.variable, Variable::Tx | Variable::RemoteAddr) && target.rules.contains(rule.0)
    };
    !plan.ctl_targets.iter().any(narrowed)
}

/// True for rules that change nothing in `TX`.
fn leaves_tx(plan: &Plan, rule: RuleIndex) -> bool {
    plan.links_of(plan.rule(rule)).iter().all(|link| {
        let sets = |act: &Act| matches!(act, Act::SetVar(set) if set.collection == Variable::Tx);
        !link.capture && !link.acts.iter().any(sets)
    })
}

impl Transaction {
    /// Without a message and without values, to work out what is the same in all transactions.
    pub(crate) fn of_nobody() -> Box<Transaction> {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let connection = Connection {
            client: nowhere,
            server: nowhere,
            unique_id: String::new(),
            epoch_seconds: 0,
            utc_offset_seconds: 0,
        };
        let collections = Arc::new(NoCollections);
        let mut run = Transaction::new(Arc::default(), collections, Scratch::default(), &connection);
        run.store.reset(&[]);
        run
    }

    /// Takes over what the steps from `at` on come to, if they are those of the prelude and it holds here; says where to go on.
    pub(crate) fn take_prelude(&mut self, plan: &Plan, at: usize) -> Option<usize> {
        let prelude = &plan.prelude;
        if at != prelude.begin
            || prelude.end == 0
            || self.phase != Phase::RequestHeaders
            || self.trace.is_some()
            || !self.tx.is_untouched()
            || !self.changes.is_empty()
            || self.keeps_quiet && self.matches.len() + prelude.matches.len() > Transaction::MATCHES_MAX
            || !self.removed_rules.is_empty()
        {
            return None;
        }
        self.tx.clone_from(&prelude.tx);
        self.changes.extend_from_slice(&prelude.changes);
        // Plain rules are quiet.
        if self.keeps_quiet {
            self.matches.extend_from_slice(&prelude.matches);
        }
        if prelude.matched.variable.is_some() {
            self.matched = prelude.matched;
        }
        if prelude.matched.variable == Some(Variable::RemoteAddr) {
            self.matched.value = self.store.data(self.store.scalar(Variable::RemoteAddr)?);
        }
        Some(prelude.end)
    }
}
