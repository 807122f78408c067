//! Load time: from a plan to its prefilter.

use std::borrow::Cow;
use std::sync::OnceLock;

use portcullis_match::{Gate, Gates};
use portcullis_types::{ByteSet, Variable};
use portcullis_values::Class;

use crate::operator::{Operator, Pattern};
use crate::plan::{KeyFilter, Link, Plan, XmlPath};
use crate::{ChainId, Template};

use super::origin::{Origin, origin, side};
use super::readers::{ClassReaders, Reader};
use super::tx_copies::TxCopies;
use super::word_lists::WordLists;
use super::{
    BLOCK_BITS, Block, Candidate, Conditions, Finder, GROUPS, Prefilter, Side, Without, byte_classes, memo,
};

impl Prefilter {
    /// For the rules of `plan`.
    pub fn new(plan: &Plan) -> Prefilter {
        let reads: Vec<(Place, Vec<Read>)> =
            steps(plan).flat_map(|place| candidate_links(plan, place)).collect();
        let blocks = reads.len().div_ceil(BLOCK_BITS);
        let not_plain = byte_classes::not_plain();
        let width = blocks * Block::default().len();
        let mut prefilter = Prefilter { not_plain, width, matched: vec![0; width], ..Prefilter::default() };
        let mut builders = [GatesBuilder::new(blocks), GatesBuilder::new(blocks)];
        for (phase, steps) in plan.steps.iter().enumerate() {
            let mut bits = vec![0u64; steps.len().div_ceil(64)];
            for step in 0..steps.len() {
                bits[step / 64] |= 1 << (step % 64);
            }
            prefilter.always[phase] = bits;
            prefilter.idle[phase] = idle(plan, phase);
        }
        let plain = byte_classes::plain_bytes();
        let derived: Vec<Cow<Gates>> =
            reads.iter().map(|(place, _)| gates_of(&plan.links[place.link as usize], &plain)).collect();
        let absent: Vec<Option<Cow<Gates>>> =
            reads.iter().map(|(place, _)| absent_words(&plan.links[place.link as usize], &plain)).collect();
        for (((place, reads), derived), absent) in reads.iter().zip(&derived).zip(&absent) {
            let of_response = reads.iter().all(|look| look.side == Side::Response);
            let of_request = reads.iter().all(|look| look.side == Side::Request);
            let link = &plan.links[place.link as usize];
            let side = match (of_request, of_response) {
                (true, _) => Some(Side::Request),
                (_, true) => Some(Side::Response),
                // Of both messages: no finder knows all of its values.
                _ => None,
            };
            let absent = absent.as_ref().map(|gates| &gates.any);
            builders[0].enter(Some(&derived.any), absent, side);
            builders[1].enter(derived.within.as_ref(), absent, side);
            prefilter.enter(plan, place, link, reads);
        }
        prefilter.gates = builders.map(GatesBuilder::finish);
        prefilter.join_links();
        let Prefilter { readers, gates, .. } = &mut prefilter;
        let digits = gates[1].finders.each_ref().map(Finder::lists_of_digits);
        readers.complete(
            plan,
            |candidate| gates[0].conditions[candidate].length_min as usize,
            |side, candidate| gates[1].digits_min(candidate, &digits[side as usize]),
        );
        prefilter
    }

    fn enter(&mut self, plan: &Plan, place: &Place, link: &Link, reads: &[Read]) {
        let at = self.candidates.len();
        let Place { link: number, phase, step } = *place;
        self.last_phase = self.last_phase.max(phase + 1);
        let rule = plan.rule(plan.steps[usize::from(phase)][step as usize].rule);
        let is_first = number == rule.first_link;
        let copies = TxCopies::of(plan, number, plan.links_of(rule)).filter(|_| is_first);
        match copies {
            Some(_) => self.copying.push(at as u32),
            None => self.always[usize::from(phase)][step as usize / 64] &= !(1 << (step % 64)),
        }
        self.candidates.push(Candidate {
            link: number,
            phase,
            step,
            is_pure: is_pure(link),
            captures_misses: captures_misses(link),
            copies,
            others: Box::default(),
            after_start: OnceLock::new(),
            residual: OnceLock::new(),
        });
        for look in reads {
            let new = || Reader::new(look.side, self.width);
            let reader = match &look.at {
                ReadFrom::Class(class, None) => {
                    self.readers.classes[*class as usize].any.get_or_insert_with(new)
                }
                ReadFrom::Class(class, Some(key)) => {
                    let ClassReaders { keyed, .. } = &mut self.readers.classes[*class as usize];
                    let known = keyed.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
                        keyed.push((key.clone(), new()));
                        keyed.len() - 1
                    });
                    &mut keyed[known].1
                }
                ReadFrom::Scalar(variable) => {
                    let scalars = &mut self.readers.scalars;
                    let known = scalars.iter().position(|(name, _)| name == variable).unwrap_or_else(|| {
                        scalars.push((*variable, new()));
                        scalars.len() - 1
                    });
                    &mut scalars[known].1
                }
            };
            for &chain in &look.chains {
                reader.add(&plan.chains, chain, at);
            }
        }
    }
}

impl Prefilter {
    /// Tells candidates of the same rule, which stand side by side, of each other.
    fn join_links(&mut self) {
        let mut from = 0;
        while let Some(Candidate { phase, step, .. }) = self.candidates.get(from) {
            let (phase, step) = (*phase, *step);
            let same = self.candidates[from..].iter();
            let to = from + same.take_while(|other| (other.phase, other.step) == (phase, step)).count();
            for at in from..to {
                let others = (from..to).filter(|&other| other != at).map(|other| other as u32);
                self.candidates[at].others = others.collect();
            }
            from = to;
        }
    }
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

/// The links of the rule at `place` whose answers are worth knowing beforehand: the first, and those behind it of which a look at a few
/// values says all. Whatever stands before such a link must change nothing if the rule does not run.
fn candidate_links(plan: &Plan, place: Place) -> Vec<(Place, Vec<Read>)> {
    let rule = plan.rule(plan.steps[usize::from(place.phase)][place.step as usize].rule);
    let mut known = Vec::new();
    for (number, link) in (place.link..).zip(plan.links_of(rule)) {
        let is_first = number == place.link;
        let reads = reads(plan, link).filter(|reads| is_first || reads.iter().all(Read::is_cheap));
        known.extend(reads.map(|reads| (Place { link: number, ..place }, reads)));
        if !(link.is_quiet() || captures_misses(link)) || plan.reads_last_match {
            break;
        }
    }
    known
}

impl super::Readers {
    /// Who looks at any key looks at those that others name, too.
    fn complete(
        &mut self,
        plan: &Plan,
        length_min: impl Fn(usize) -> usize,
        digits_min: impl Fn(Side, usize) -> Option<usize>,
    ) {
        for ClassReaders { any, keyed, .. } in &mut self.classes {
            for (_, reader) in keyed.iter_mut() {
                if let Some(any) = any {
                    reader.extend(&plan.chains, any);
                }
            }
            let sources = keyed.iter_mut().map(|(_, reader)| reader).chain(any);
            sources.for_each(|reader| reader.finish(&length_min, &digits_min));
        }
        for (_, reader) in &mut self.scalars {
            reader.finish(&length_min, &digits_min);
        }
        self.finish();
    }
}

/// A link of a rule, at first the first one, and where the rule runs.
#[derive(Clone, Copy)]
struct Place {
    link: u32,
    phase: u8,
    step: u32,
}

fn steps(plan: &Plan) -> impl Iterator<Item = Place> + '_ {
    (0..).zip(&plan.steps).flat_map(move |(phase, steps)| {
        (0..).zip(steps).map(move |(step, at)| Place { link: plan.rule(at.rule).first_link, phase, step })
    })
}

/// Values that a link looks at, in these forms.
struct Read {
    side: Side,
    at: ReadFrom,
    chains: Vec<ChainId>,
}

impl Read {
    /// True for single headers and the like, for what is remembered from one request to the next, and for the body that all of a phase
    /// look at.
    fn is_cheap(&self) -> bool {
        match &self.at {
            ReadFrom::Class(_, key) => key.is_some(),
            ReadFrom::Scalar(variable) => memo::repeats(*variable) || *variable == Variable::ResponseBody,
        }
    }
}

enum ReadFrom {
    Class(Class, Option<Box<[u8]>>),
    Scalar(Variable),
}

/// What `link` looks at; `None` if part of it cannot be known before it runs.
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
        if target.count && (!needs_one(link) || !matches!(origin(variable), Origin::Classes(_))) {
            return None;
        }
        let mut look = |at| reads.push(Read { side: side(variable), at, chains: chains.clone() });
        match (variable, &target.filter) {
            (Variable::Xml, KeyFilter::Xml(XmlPath::Text)) => {
                look(ReadFrom::Class(Class::XmlText, None));
                look(ReadFrom::Class(Class::XmlReadings, None));
            }
            (Variable::Xml, KeyFilter::Xml(XmlPath::Attributes)) => {
                look(ReadFrom::Class(Class::XmlAttributes, None))
            }
            (Variable::Xml, _) => return None,
            (_, filter) => match origin(variable) {
                Origin::Classes(classes) => {
                    let key = match filter {
                        KeyFilter::Key(key) => Some(key.to_ascii_lowercase().into_boxed_slice()),
                        _ => None,
                    };
                    classes.into_iter().for_each(|class| look(ReadFrom::Class(class, key.clone())));
                }
                Origin::Scalar => look(ReadFrom::Scalar(variable)),
                Origin::Unsteady => return None,
            },
        }
    }
    Some(reads)
}

/// What a value must have for the operator of `link` to match: any value, and one of plain bytes.
fn gates_of<'a>(link: &'a Link, plain: &ByteSet) -> Cow<'a, Gates> {
    match &link.operator {
        _ if link.negated => Cow::Owned(Gates::open()),
        Operator::Rx(Pattern::Fixed(regex))
        | Operator::RxGlobal(Pattern::Fixed(regex))
        | Operator::Verify(_, regex) => regex.gates(plain),
        Operator::Pm(words) => words.gates(plain),
        operator => Cow::Owned(Gates::of_gate(gate(operator), plain)),
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
        _ => Gate::open(),
    }
}

/// True for a link on the number of values, `&REQUEST_HEADERS:x`, that does not match where there is none.
fn needs_one(link: &Link) -> bool {
    link.chain == ChainId::IDENTITY
        && link.operator.is_numeric()
        && link.operator.argument().is_none()
        && link.operator.test_number(0, b"") == link.negated
}

/// True for a link on one value that never changes, `RESPONSE_STATUS "!@rx ^404$" "capture,..."`, which changes something only where it does
/// not match: what it finds is captured then.
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
    // What a negated link finds is captured, match or not; and a number is not one of the values that are shown.
    if link.negated && link.capture || link.targets.include.iter().any(|target| target.count) {
        return false;
    }
    let is_known = |argument: &Template| argument.as_literal().is_some();
    link.operator.answers_only() && link.operator.argument().is_none_or(is_known)
}

/// [`Gates`] in the making.
struct GatesBuilder<'a> {
    gates: super::Gates,
    words: [WordLists<'a>; 2],
}

impl<'a> GatesBuilder<'a> {
    fn new(blocks: usize) -> GatesBuilder<'a> {
        let possible = vec![Block::default(); blocks];
        let without = vec![Without::default(); blocks];
        let gates = super::Gates { possible, without, ..super::Gates::default() };
        GatesBuilder { gates, words: Default::default() }
    }

    /// The next candidate. `None`: it matches in none of these texts. `absent`: what the words have in common whose absence it means.
    fn enter(&mut self, gate: Option<&'a Gate>, absent: Option<&'a Gate>, side: Option<Side>) {
        let at = self.gates.conditions.len();
        let Some(gate) = gate else { return self.gates.conditions.push(Conditions::default()) };
        let (block, word, bit) = (at / BLOCK_BITS, at % BLOCK_BITS / 64, 1 << (at % 64));
        self.gates.possible[block][word] |= bit;
        let mut several = Vec::new();
        let mut needed = 0;
        for set in &gate.bytes {
            let touching = byte_classes::touching(set);
            match touching.count_ones() {
                1 => {
                    let without = &mut self.gates.without[block];
                    without.classes[touching.trailing_zeros() as usize][word] &= !bit;
                    for (group, without) in GROUPS.iter().zip(&mut without.groups) {
                        if group & touching != 0 {
                            without[word] &= !bit;
                        }
                    }
                    needed |= touching;
                }
                _ => several.push(touching),
            }
        }
        several.sort_by_key(|set: &u64| std::cmp::Reverse(set.count_ones()));
        let mut list_of =
            |words: &'a Vec<Vec<Vec<u8>>>| self.words[side? as usize].enter(words).first().copied();
        let none_of = absent.and_then(|gate| list_of(&gate.words)).map(|list| list.number);
        self.gates.conditions.push(Conditions {
            length_min: gate.length_min.try_into().unwrap_or(u32::MAX),
            needed,
            first: several.pop().unwrap_or(0),
            classes: several.into(),
            lists: side.map(|side| self.words[side as usize].enter(&gate.words)).unwrap_or_default(),
            none_of,
        });
    }

    fn finish(self) -> super::Gates {
        super::Gates { finders: self.words.map(WordLists::finish), ..self.gates }
    }
}
