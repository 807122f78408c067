//! Constant folding: rules that no request can reach or match leave the steps of the plan.
//!
//! Rule sets are full of rules on settings: `SecRule TX:PARANOIA_LEVEL "@lt 2" "...,skipAfter:END"`. What
//! those `TX` keys hold is known at load time wherever only unconditional rules have set them. This module
//! follows the rules in the order in which they run and keeps, for every `TX` key, the one value that it can
//! have there, or that there are several. A rule behind a skip that is always taken, or whose condition is
//! always false, is *dead*; one whose condition is always true is *certain*. Where an operator's argument has
//! macros, `@within %{tx.allowed_methods}`, and they stand for one text only, that text takes their place.
//!
//! Rules that keep the result conservative:
//! * After a conditional rule a key may have its old or its new value; after additions, any.
//! * A later phase may begin after any earlier one, and after any rule that can interrupt or allow; the
//!   logging phase also without any other.
//! * `ctl:ruleRemove...` can take the rules away that set a key or that skip. A rule counts as dead only if
//!   it is dead even when every such set that it is not in itself is in force from its first possible moment
//!   on.

use std::collections::HashMap;
use std::rc::Rc;

use portcullis_engine::{
    Act, ChainId, Dead, DeadCause, Disruption, Link, Part, Plan, RuleIndex, SetVar, SetVarOperation, Step,
    Template, addend, canonical_int, is_set_by_engine, to_int,
};
use portcullis_types::Variable;

/// Bytes of a text that is known: rules may double it again and again.
const KNOWN_BYTES_MAX: usize = 8 << 10;

/// Position of the logging phase in [`Plan::steps`].
const LOGGING: usize = 4;

/// Takes dead rules out of the steps of `plan` and notes them in `plan.dead`; puts known texts in the place
/// of macros.
pub(crate) fn fold(plan: &mut Plan) {
    let activations = activations(plan);
    let mut scenarios: HashMap<Vec<u32>, Findings> = HashMap::new();
    let mut dead = Vec::new();
    let mut certain = vec![false; plan.rules.len()];
    let mut arguments = Vec::new();
    for steps in &plan.steps {
        for step in steps {
            // The sets that can be in force while this rule runs are those that it is not in.
            let holds = |set: &&u32| plan.ctl_removals[**set as usize].contains(step.rule.0);
            let own: Vec<u32> = (0..plan.ctl_removals.len() as u32).filter(|set| holds(&set)).collect();
            let findings =
                scenarios.entry(own).or_insert_with_key(|own| Flow::new(plan, &activations, own).run());
            if let Some(why) = &findings.dead[step.rule.0 as usize] {
                dead.push(Dead { rule: step.rule, why: why.clone() });
            }
            certain[step.rule.0 as usize] = findings.certain[step.rule.0 as usize];
            let first = plan.rule(step.rule).first_link;
            let links = first..first + plan.rule(step.rule).link_count;
            let known =
                links.filter_map(|link| Some((link as usize, findings.arguments.get(&link)?.clone())));
            arguments.extend(known);
        }
    }
    let mut gone = vec![false; plan.rules.len()];
    for found in &dead {
        gone[found.rule.0 as usize] = true;
    }
    for steps in &mut plan.steps {
        *steps = without(steps, &gone);
    }
    (plan.dead, plan.certain) = (dead, certain);
    for (link, text) in arguments {
        plan.links[link].operator.set_argument(&text);
    }
}

/// The steps that stay, their skips turned to where their targets are now.
fn without(steps: &[Step], gone: &[bool]) -> Vec<Step> {
    let is_gone = |step: &Step| gone[step.rule.0 as usize];
    let mut place = Vec::with_capacity(steps.len() + 1);
    let mut kept = 0;
    for step in steps {
        place.push(kept);
        kept += u32::from(!is_gone(step));
    }
    place.push(kept);
    let turned = |step: &Step| {
        let skip_to = if step.skip_to == u32::MAX { u32::MAX } else { place[step.skip_to as usize] };
        let mut step = *step;
        step.skip_to = skip_to;
        step
    };
    steps.iter().filter(|step| !is_gone(step)).map(turned).collect()
}

/// The results of folding.
#[derive(Default)]
struct Findings {
    /// By rule: why it is dead, if it is.
    dead: Vec<Option<DeadCause>>,
    /// By rule: it matches each time that its turn comes.
    certain: Vec<bool>,
    /// By link: what its operator's argument always is, where that has macros.
    arguments: HashMap<u32, Vec<u8>>,
}

/// For each set of [`Plan::ctl_removals`]: phase and step of the first rule that can put it into force.
fn activations(plan: &Plan) -> Vec<Option<(usize, usize)>> {
    let mut first = vec![None; plan.ctl_removals.len()];
    for (phase, steps) in plan.steps.iter().enumerate() {
        for (at, step) in steps.iter().enumerate() {
            for act in plan.links_of(plan.rule(step.rule)).iter().flat_map(|link| &link.acts) {
                if let Act::RemoveRules(set) = act {
                    first[*set as usize].get_or_insert((phase, at));
                }
            }
        }
    }
    first
}

/// The possible values of a `TX` key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    Unset,
    Int(i64),
    Text(Rc<[u8]>),
    /// Several values are possible.
    Any,
}

impl Fact {
    fn of_text(text: &[u8]) -> Fact {
        canonical_int(text).map_or_else(|| Fact::Text(text.into()), Fact::Int)
    }

    fn join(&mut self, other: &Fact) {
        if self != other {
            *self = Fact::Any;
        }
    }
}

type State = Vec<Fact>;

/// Joins `more` into `state`; nothing stands for a place that is never reached.
fn join(state: &mut Option<State>, more: &State) {
    match state {
        None => *state = Some(more.clone()),
        Some(state) => state.iter_mut().zip(more).for_each(|(fact, other)| fact.join(other)),
    }
}

/// The truth value of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Never,
    Maybe,
    Always,
}

struct Flow<'a> {
    plan: &'a Plan,
    /// Sets of `ctl:ruleRemove...` that may be in force, with phase and step from which on.
    sets: Vec<(u32, (usize, usize))>,
    /// The state in which a later phase may begin: joined over all rules that can end a phase early.
    left: Option<State>,
    findings: Findings,
}

impl<'a> Flow<'a> {
    fn new(plan: &'a Plan, activations: &[Option<(usize, usize)>], own: &[u32]) -> Self {
        let sets = (0..).zip(activations).filter(|(set, _)| !own.contains(set));
        let sets = sets.filter_map(|(set, place)| Some((set, (*place)?))).collect();
        Flow {
            plan,
            sets,
            left: None,
            findings: Findings {
                dead: vec![None; plan.rules.len()],
                certain: vec![false; plan.rules.len()],
                ..Findings::default()
            },
        }
    }

    fn run(mut self) -> Findings {
        let mut state: State = vec![Fact::Unset; self.plan.tx_names.len()];
        for (fact, name) in state.iter_mut().zip(&self.plan.tx_names) {
            if is_set_by_engine(name) {
                *fact = Fact::Any;
            }
        }
        let begin = state;
        let mut before = None;
        for phase in 0..self.plan.steps.len() {
            // Logging may be all that happens to a request that is not served.
            if phase == 0 || phase == LOGGING {
                join(&mut before, &begin);
            }
            let entry = before.clone().unwrap_or_else(|| begin.clone());
            let exit = self.phase(phase, entry);
            if phase == 0 {
                before = None;
            }
            for state in [exit, self.left.clone()].into_iter().flatten() {
                join(&mut before, &state);
            }
        }
        self.findings
    }

    /// Follows one phase; returns what is known at its end, if the end can be reached.
    fn phase(&mut self, phase: usize, entry: State) -> Option<State> {
        let steps = &self.plan.steps[phase];
        let mut landings: Vec<Option<State>> = vec![None; steps.len() + 1];
        let mut state = Some(entry);
        let mut skipper = None;
        for (at, step) in steps.iter().enumerate() {
            if let Some(landing) = landings[at].take() {
                join(&mut state, &landing);
            }
            let Some(here) = &mut state else {
                self.findings.dead[step.rule.0 as usize] = skipper.map(|by| DeadCause::Skipped { by });
                continue;
            };
            let removable = self.removable(step.rule, (phase, at));
            let before = removable.then(|| here.clone());
            let (mut truth, cause) = self.rule(step.rule, here);
            if let Some(before) = before {
                here.iter_mut().zip(&before).for_each(|(fact, other)| fact.join(other));
                truth = if truth == Truth::Always { Truth::Maybe } else { truth };
            }
            self.findings.certain[step.rule.0 as usize] = truth == Truth::Always;
            if truth == Truth::Never {
                self.findings.dead[step.rule.0 as usize] = cause;
                continue;
            }
            if !matches!(self.plan.rule(step.rule).disruption, Disruption::Pass) {
                join(&mut self.left, here);
            }
            if step.skip_to != u32::MAX {
                join(&mut landings[step.skip_to as usize], here);
                if truth == Truth::Always {
                    (state, skipper) = (None, Some(step.rule));
                }
            }
        }
        if let Some(landing) = landings[steps.len()].take() {
            join(&mut state, &landing);
        }
        state
    }

    /// True if a `ctl:` may have taken the rule away before its turn.
    fn removable(&self, rule: RuleIndex, place: (usize, usize)) -> bool {
        let sets = self.sets.iter().filter(|(_, from)| *from < place);
        sets.into_iter().any(|(set, _)| self.plan.ctl_removals[*set as usize].contains(rule.0))
    }

    /// Evaluates a rule: its truth value, its cause if it is dead, and the effect of its acts on `state`.
    fn rule(&mut self, index: RuleIndex, state: &mut State) -> (Truth, Option<DeadCause>) {
        let mut so_far = Truth::Always;
        let plan = self.plan;
        for (at, link) in plan.links_of(plan.rule(index)).iter().enumerate() {
            let argument = link.operator.argument().filter(|text| text.as_literal().is_none());
            let known = argument.and_then(|text| expand(text, state));
            match self.link(index, link, state) {
                // The links before it still act.
                Truth::Never if at > 0 => return (Truth::Never, None),
                Truth::Never => return (Truth::Never, self.cause(link, state)),
                Truth::Maybe => so_far = Truth::Maybe,
                Truth::Always => {}
            }
            for act in &link.acts {
                if let Act::SetVar(set) = act
                    && set.collection == Variable::Tx
                {
                    self.set(set, so_far == Truth::Always, state);
                }
            }
            // The operator is asked again after each match, with what the acts have made of the macros.
            if let Some(text) = known
                && argument.and_then(|text| expand(text, state)).as_ref() == Some(&text)
            {
                self.findings.arguments.insert(plan.rule(index).first_link + at as u32, text);
            }
        }
        (so_far, None)
    }

    /// Follows `cannot_match` of the executor.
    fn link(&self, rule: RuleIndex, link: &Link, state: &State) -> Truth {
        if link.unconditional {
            return Truth::Always;
        }
        let Some(slot) = link.targets.include.first().and_then(|target| target.slot) else {
            return Truth::Maybe;
        };
        let narrowed = |target: &portcullis_engine::CtlTarget| {
            target.variable == Variable::Tx && target.rules.contains(rule.0)
        };
        if link.targets.include.len() > 1
            || !link.targets.exclude.is_empty()
            || link.chain != ChainId::IDENTITY
            || !link.operator.is_numeric()
            || self.plan.ctl_targets.iter().any(narrowed)
        {
            return Truth::Maybe;
        }
        let count = link.targets.include[0].count;
        let number = match &state[slot.0 as usize] {
            Fact::Any => return Truth::Maybe,
            Fact::Unset if !count => return Truth::Never,
            Fact::Unset => 0,
            _ if count => 1,
            Fact::Int(number) => *number,
            Fact::Text(text) => to_int(text),
        };
        let Some(argument) = link.operator.argument().map_or(Some(Vec::new()), |text| expand(text, state))
        else {
            return Truth::Maybe;
        };
        match link.operator.test_number(number, &argument) != link.negated {
            true => Truth::Always,
            false => Truth::Never,
        }
    }

    fn cause(&self, link: &Link, state: &State) -> Option<DeadCause> {
        let slot = link.targets.include.first()?.slot?;
        let value: Box<[u8]> = match &state[slot.0 as usize] {
            Fact::Any => return None,
            Fact::Unset => return Some(DeadCause::Never { slot, value: None }),
            Fact::Int(number) => number.to_string().into_bytes().into(),
            Fact::Text(text) => (&**text).into(),
        };
        Some(DeadCause::Never { slot, value: Some(value) })
    }

    /// `setvar`. `once`: it happens exactly once whenever the rule runs.
    fn set(&self, set: &SetVar, once: bool, state: &mut State) {
        let Some(slot) = set.slot else { return self.set_some(&set.key, state) };
        let fact = &state[slot.0 as usize];
        let new = match &set.operation {
            SetVarOperation::Unset => Fact::Unset,
            SetVarOperation::SetNumber(number) => Fact::Int(*number),
            SetVarOperation::Set(text) if once || text.as_literal().is_some() => {
                expand(text, state).map_or(Fact::Any, |text| Fact::of_text(&text))
            }
            SetVarOperation::AddNumber(delta) if once => sum(fact, *delta),
            SetVarOperation::Add(text) if once => {
                expand(text, state).map_or(Fact::Any, |text| sum(fact, addend(&text)))
            }
            SetVarOperation::Subtract(text) if once => {
                expand(text, state).map_or(Fact::Any, |text| sum(fact, addend(&text).saturating_neg()))
            }
            // As often as the link has values that match.
            SetVarOperation::Set(_)
            | SetVarOperation::Add(_)
            | SetVarOperation::Subtract(_)
            | SetVarOperation::AddNumber(_) => Fact::Any,
        };
        let captured = is_set_by_engine(&self.plan.tx_names[slot.0 as usize]);
        let place = &mut state[slot.0 as usize];
        match once && !captured {
            true => *place = new,
            false => place.join(&new),
        }
    }

    /// A key made at run time: every key that it can turn out to be.
    fn set_some(&self, key: &Template, state: &mut State) {
        let literal = |part: Option<&Part>| match part {
            Some(Part::Literal(text)) if text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') => {
                text.to_ascii_lowercase()
            }
            _ => Vec::new(),
        };
        let (first, last) = (literal(key.parts.first()), literal(key.parts.last()));
        for (fact, name) in state.iter_mut().zip(&self.plan.tx_names) {
            if name.starts_with(&first) && name.ends_with(&last) {
                *fact = Fact::Any;
            }
        }
    }
}

/// The text, if every macro in it is known.
fn expand(template: &Template, state: &State) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text),
            Part::Tx(slot) => match &state[slot.0 as usize] {
                Fact::Any => return None,
                Fact::Unset => {}
                Fact::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
                Fact::Text(text) => out.extend_from_slice(text),
            },
            Part::Variable { .. } => return None,
        }
        if out.len() > KNOWN_BYTES_MAX {
            return None;
        }
    }
    Some(out)
}

fn sum(fact: &Fact, delta: i64) -> Fact {
    let number = match fact {
        Fact::Any => return Fact::Any,
        Fact::Unset => 0,
        Fact::Int(number) => *number,
        Fact::Text(text) => to_int(text),
    };
    Fact::Int(number.saturating_add(delta).max(0))
}
