//! Load time: from a plan to its candidates.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_match::{Gate, Gates};
use portcullis_prefilter::{Origin, Prefilter, Read, plain_bytes, repeats};
use portcullis_types::{ByteSet, Variable};
use portcullis_values::Class;

use crate::operator::{Operator, Pattern};
use crate::plan::{KeyFilter, Link, Plan, RuleIndex, XmlPath};
use crate::{ChainId, Template};

use super::origin::{Stored, side, stored};
use super::tx_copies::TxCopies;
use super::{Ask, Candidate, Candidates};

impl Candidates {
    /// For the rules of `plan`.
    pub fn new(plan: &Plan) -> Candidates {
        let found: Vec<(Place, Vec<Read>)> =
            steps(plan).flat_map(|place| candidate_links(plan, place)).collect();
        let plain = plain_bytes();
        let of_prefilter: Vec<portcullis_prefilter::Candidate<'_>> = found
            .iter()
            .map(|(place, reads)| {
                let link = &plan.links[place.link as usize];
                portcullis_prefilter::Candidate {
                    reads: reads.clone(),
                    gates: gates_of(link, &plain),
                    absent_words: absent_words(link, &plain),
                    rule: place.rule(plan).0,
                }
            })
            .collect();
        let mut candidates = Candidates {
            prefilter: Arc::new(Prefilter::new(&plan.chains, &of_prefilter, plan.prefilter_stages)),
            always: plan.steps.each_ref().map(|steps| all(steps.len())),
            idle: std::array::from_fn(|phase| idle(plan, phase)),
            ..Candidates::default()
        };
        found.iter().for_each(|(place, _)| candidates.enter(plan, *place));
        candidates.join_links();
        candidates.find_unset(plan);
        candidates
    }

    fn enter(&mut self, plan: &Plan, place: Place) {
        let Place { link: number, phase, step } = place;
        self.last_phase = self.last_phase.max(phase + 1);
        let (rule, link) = (plan.rule(place.rule(plan)), &plan.links[number as usize]);
        let is_first = number == rule.first_link;
        let copies = TxCopies::of(plan, number, plan.links_of(rule)).filter(|_| is_first);
        match copies {
            Some(_) => self.copying.push(self.list.len() as u32),
            None => self.always[usize::from(phase)][step as usize / 64] &= !(1 << (step % 64)),
        }
        let ask = match copies {
            Some(copies) => Ask::TxCopies(copies),
            None if is_pure(link) => Ask::Operator,
            None if captures_misses(link) => Ask::CapturesMisses,
            None => Ask::Nothing,
        };
        self.list.push(Candidate { link: number, phase, step, of_rule: 0..0, ask });
    }

    /// Tells candidates of the same rule, which stand side by side, of each other.
    fn join_links(&mut self) {
        let mut from = 0;
        for rule in self.list.chunk_by_mut(|a, b| (a.phase, a.step) == (b.phase, b.step)) {
            let of_rule = from..from + rule.len() as u32;
            from = of_rule.end;
            rule.iter_mut().for_each(|candidate| candidate.of_rule = of_rule.clone());
        }
    }
}

/// So many steps, all of them.
fn all(count: usize) -> Vec<u64> {
    let mut bits = vec![0; count.div_ceil(64)];
    (0..count).for_each(|step| bits[step / 64] |= 1 << (step % 64));
    bits
}

/// The steps of this phase whose rules do nothing but match, and whose skips lead to the next step.
fn idle(plan: &Plan, phase: usize) -> Vec<u64> {
    let steps = &plan.steps[phase];
    let mut idle = vec![0u64; steps.len().div_ceil(64)];
    for (at, step) in steps.iter().enumerate() {
        let goes_on = step.skip_to == u32::MAX || step.skip_to as usize == at + 1;
        if goes_on && !plan.reads_last_match && plan.tx_rules.is_idle(step.rule) {
            idle[at / 64] |= 1 << (at % 64);
        }
    }
    idle
}

/// The links of the rule at `place` whose answers are worth knowing beforehand: the first, and those behind
/// it of which a look at a few values says all. Whatever stands before such a link must change nothing if the
/// rule does not run.
fn candidate_links(plan: &Plan, place: Place) -> Vec<(Place, Vec<Read>)> {
    let rule = plan.rule(place.rule(plan));
    let mut known = Vec::new();
    for (number, link) in (place.link..).zip(plan.links_of(rule)) {
        let is_first = number == place.link;
        let reads = reads(plan, link).filter(|reads| is_first || reads.iter().all(is_cheap));
        known.extend(reads.map(|reads| (Place { link: number, ..place }, reads)));
        if !(link.is_quiet() || captures_misses(link)) || plan.reads_last_match {
            break;
        }
    }
    known
}

/// A link of a rule, at first the first one, and where the rule runs.
#[derive(Clone, Copy)]
struct Place {
    link: u32,
    phase: u8,
    step: u32,
}

impl Place {
    fn rule(self, plan: &Plan) -> RuleIndex {
        plan.steps[usize::from(self.phase)][self.step as usize].rule
    }
}

fn steps(plan: &Plan) -> impl Iterator<Item = Place> + '_ {
    (0..).zip(&plan.steps).flat_map(move |(phase, steps)| {
        (0..).zip(steps).map(move |(step, at)| Place { link: plan.rule(at.rule).first_link, phase, step })
    })
}

/// True for single headers and the like, for what is remembered from one request to the next, and for the
/// body that all of a phase look at.
fn is_cheap(read: &Read) -> bool {
    match &read.origin {
        Origin::Class(_) => false,
        Origin::Key(..) => true,
        Origin::Scalar(variable) => repeats(*variable) || *variable == Variable::ResponseBody,
    }
}

/// The values that `link` reads; `None` if part of them cannot be known before it runs.
fn reads(plan: &Plan, link: &Link) -> Option<Vec<Read>> {
    if link.unconditional {
        return None;
    }
    let mut chains = vec![link.chain];
    if link.multi_match {
        while let Some(node) = chains.last().and_then(|&chain| plan.chains.node(chain)) {
            chains.push(node.parent);
        }
    }
    let mut reads = Vec::new();
    for target in &link.targets.include {
        let variable = target.variable;
        if target.count && (!needs_one(link) || !matches!(stored(variable), Stored::Classes(_))) {
            return None;
        }
        let mut read = |origin| reads.push(Read { side: side(variable), origin, chains: chains.clone() });
        match (variable, &target.filter) {
            (Variable::Xml, KeyFilter::Xml(XmlPath::Text)) => {
                read(Origin::Class(Class::XmlText));
                read(Origin::Class(Class::XmlReadings));
            }
            (Variable::Xml, KeyFilter::Xml(XmlPath::Attributes)) => read(Origin::Class(Class::XmlAttributes)),
            (Variable::Xml, _) => return None,
            (_, filter) => match stored(variable) {
                Stored::Classes(classes) => {
                    classes.into_iter().for_each(|class| {
                        if let KeyFilter::Key(key) = filter {
                            read(Origin::Key(class, key.to_ascii_lowercase().into_boxed_slice()))
                        } else {
                            read(Origin::Class(class))
                        }
                    });
                }
                Stored::Scalar => read(Origin::Scalar(variable)),
                Stored::Unsteady => return None,
            },
        }
    }
    Some(reads)
}

/// The conditions that a value must meet for the operator of `link` to match: any value, and one of plain
/// bytes.
fn gates_of<'a>(link: &'a Link, plain: &ByteSet) -> Cow<'a, Gates> {
    match &link.operator {
        _ if link.negated => Cow::Owned(Gates::open()),
        Operator::Rx(Pattern::Fixed(regex))
        | Operator::RxGlobal(Pattern::Fixed(regex))
        | Operator::Verify(_, regex) => regex.gates(plain),
        Operator::Pm(words) => words.gates(plain),
        operator @ (Operator::Rx(Pattern::Computed(_))
        | Operator::RxGlobal(Pattern::Computed(_))
        | Operator::Contains(_)
        | Operator::ContainsWord(_)
        | Operator::Within(_)
        | Operator::Rsub(_)
        | Operator::StrEq(_)
        | Operator::StrMatch(_)
        | Operator::BeginsWith(_)
        | Operator::EndsWith(_)
        | Operator::Eq(_)
        | Operator::Ge(_)
        | Operator::Gt(_)
        | Operator::Le(_)
        | Operator::Lt(_)
        | Operator::IpMatch(_)
        | Operator::DetectSqli
        | Operator::DetectXss
        | Operator::ValidateByteRange(_)
        | Operator::ValidateUrlEncoding
        | Operator::ValidateUtf8Encoding
        | Operator::UnconditionalMatch
        | Operator::NoMatch
        | Operator::GeoLookup(_)
        | Operator::Rbl(_)
        | Operator::InspectFile(_)) => Cow::Owned(Gates::of_gate(gate(operator), plain)),
    }
}

/// The gates of the words whose absence is all that `link` asks for, if they can be looked for.
fn absent_words<'a>(link: &'a Link, plain: &ByteSet) -> Option<Cow<'a, Gates>> {
    let Operator::Pm(words) = &link.operator else { return None };
    let gates = Some(words.gates(plain)).filter(|_| link.negated && !link.capture)?;
    let is_exact = |list: &Vec<Vec<u8>>| list.iter().all(|word| word.len() > 1);
    (gates.any.words.len() == 1 && gates.any.words.iter().all(is_exact)).then_some(gates)
}

/// For operators that are neither patterns nor word lists.
fn gate(operator: &Operator) -> Gate {
    let literal = |template: &Template| template.as_literal().map_or_else(Gate::open, Gate::of_text);
    match operator {
        Operator::Contains(text) | Operator::ContainsWord(text) | Operator::StrMatch(text) => literal(text),
        // To compare is cheaper than to look for words.
        Operator::StrEq(text) | Operator::BeginsWith(text) | Operator::EndsWith(text) => {
            Gate { words: Vec::new(), ..literal(text) }
        }
        Operator::DetectSqli => Gate::of_byte(portcullis_libinjection::sqli_needs()),
        Operator::DetectXss => Gate::of_byte(portcullis_libinjection::xss_needs()),
        Operator::ValidateByteRange(allowed) => Gate::of_byte(allowed.complement()),
        Operator::ValidateUrlEncoding => Gate::of_byte(ByteSet::EMPTY.with(b'%')),
        Operator::ValidateUtf8Encoding => Gate::of_byte(ByteSet::range(0x80, 0xff)),
        // They may match any value, or their text is known only when the rule runs.
        Operator::Rx(_)
        | Operator::RxGlobal(_)
        | Operator::Verify(..)
        | Operator::Pm(_)
        | Operator::Within(_)
        | Operator::Rsub(_)
        | Operator::Eq(_)
        | Operator::Ge(_)
        | Operator::Gt(_)
        | Operator::Le(_)
        | Operator::Lt(_)
        | Operator::IpMatch(_)
        | Operator::UnconditionalMatch
        | Operator::NoMatch
        | Operator::GeoLookup(_)
        | Operator::Rbl(_)
        | Operator::InspectFile(_) => Gate::open(),
    }
}

/// True for a link on the number of values, `&REQUEST_HEADERS:x`, that does not match where there is none.
fn needs_one(link: &Link) -> bool {
    link.chain == ChainId::IDENTITY
        && link.operator.is_numeric()
        && link.operator.argument().is_none()
        && link.operator.test_number(0, b"") == link.negated
}

/// True for a link on one value that never changes, `RESPONSE_STATUS "!@rx ^404$" "capture,..."`, which
/// changes something only where it does not match: what it finds is captured then.
fn captures_misses(link: &Link) -> bool {
    let [target] = link.targets.include.as_slice() else { return false };
    let is_steady = matches!(
        target.variable,
        Variable::RequestMethod
            | Variable::RequestProtocol
            | Variable::ResponseProtocol
            | Variable::ResponseStatus
    );
    is_steady
        && !target.count
        && link.negated
        && link.capture
        && link.acts.is_empty()
        && matches!(link.operator, Operator::Rx(Pattern::Fixed(_)))
        && link.operator.answers_only()
}

/// True if the answer depends on nothing but the value, and giving it changes nothing.
pub(crate) fn is_pure(link: &Link) -> bool {
    // What a negated link finds is captured, match or not; and a number is not one of the values that are
    // shown.
    if link.negated && link.capture || link.targets.include.iter().any(|target| target.count) {
        return false;
    }
    let is_known = |argument: &Template| argument.as_literal().is_some();
    link.operator.answers_only() && link.operator.argument().is_none_or(is_known)
}
