//! Weighted scoring of the CRS: rules that benign traffic triggers do not decide by their anomaly points
//! alone.
//!
//! ```text
//! matches of rules, each with its points and its spot ──> weights of the spot's rules, added up
//!       1 or more: the points of the spot count        less: they are withheld from the score that the gate compares
//!                                                       ...and the weights are evidence for the semantic detector there
//! ```
//!
//! A *gate* is the rule of the CRS that denies by the inbound anomaly score (949110, 949111). It runs as it
//! is: its match, and all scores in `TX`, are those of the rules. Only whether it interrupts is asked here.
//! Points count in full that come from a rule which the table does not know by its contents, from an
//! operator's rule, or from a `setvar` that is no match of a rule; and an operator who changes the gate's
//! actions (`SecRuleUpdateActionById`) has made it a rule of their own.

mod fields;
mod fingerprint;
mod spot;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use portcullis_engine::{
    Disruption, Judge, KeyFilter, Match, Number, Operator, Plan, Rule, RuleIndex, TransactionView, TxSlot,
};
use portcullis_semantic::{ISSUED_COOKIES_MAX, Issuer as _};
use portcullis_types::{Class, RuleId, Variable};

use crate::issued::IssuedTo;

pub use fields::Field;
use fields::Fields;
pub use fingerprint::fingerprint;
use spot::Kind;
pub use spot::Spot;
pub use table::{Weight, Weights, WeightsError};

/// The gates of the CRS: at the end of phase 2, and of phase 1 where it blocks early.
const GATES: [RuleId; 2] = [RuleId(949110), RuleId(949111)];
/// Names of the score that a gate compares, of those that rules add to (a digit follows), and of the paranoia
/// level up to which these are added up: of CRS 4, of CRS 3.
const SCORES: [(&[u8], &[u8], &[u8]); 2] = [
    (b"blocking_inbound_anomaly_score", b"inbound_anomaly_score_pl", b"blocking_paranoia_level"),
    (b"anomaly_score", b"anomaly_score_pl", b"paranoia_level"),
];
const LEVELS: usize = 4;

/// The weights of a plan's rules.
#[derive(Clone, Debug)]
pub(crate) struct Weighing {
    /// By rule index.
    rules: Vec<OfRule>,
    gates: Vec<Gate>,
    /// The semantic detector judges the values, too: where the site made a field for what a rule looks for,
    /// it decides alone.
    reads_purpose: bool,
}

#[derive(Clone, Debug)]
struct OfRule {
    id: RuleId,
    fingerprint: u64,
    weight: Weight,
    /// It is in the table, and no operator has changed it.
    is_known: bool,
    /// The classes that it is about, as bits.
    classes: u64,
}

#[derive(Clone, Debug)]
struct Gate {
    rule: RuleIndex,
    score: TxSlot,
    threshold: Threshold,
    /// The scores of the paranoia levels 1 to 4, and the key that says up to which they count.
    levels: [Option<TxSlot>; LEVELS],
    level: Option<TxSlot>,
}

#[derive(Clone, Copy, Debug)]
enum Threshold {
    Fixed(i64),
    Slot(TxSlot),
}

/// The rules that matched in one spot.
#[derive(Clone, Debug, Default)]
struct InSpot {
    /// Each rule once, with the most that it weighs in any field of that name: case parts the words of a
    /// name, so a field may be one for documents (`postCode`) where the same letters are none (`postcode`).
    rules: Vec<(RuleIndex, f32)>,
    /// Points that the gate compares.
    points: i64,
}

impl InSpot {
    fn add(&mut self, rule: RuleIndex, weight: f32, points: i64) {
        self.points = self.points.saturating_add(points);
        match self.rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, most)) => *most = most.max(weight),
            None => self.rules.push((rule, weight)),
        }
    }

    fn weight(&self) -> f32 {
        self.rules.iter().map(|(_, weight)| weight).sum()
    }
}

/// The evidence of rules about a value, for some classes.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) spot: Spot,
    classes: u64,
    pub(crate) weight: f32,
}

impl Evidence {
    pub(crate) fn is_about(&self, class: Class) -> bool {
        self.classes & bit(class) != 0
    }
}

/// A match as the weighted score takes it, for those who learn weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    /// The rule.
    pub rule: RuleId,
    /// The fingerprint of its targets and operator.
    pub fingerprint: u64,
    /// The value that it matched.
    pub spot: Spot,
    /// The kind of field that it is in.
    pub field: Field,
    /// The site made the field for what the rule looks for: it weighs nothing there.
    pub is_excused: bool,
    /// The points that it added to the score that the gate compares.
    pub points: i64,
}

/// The gate's result for the weighed score, for explanations.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighed {
    /// The gate.
    pub gate: RuleId,
    /// The score that it compares, and with what.
    pub score: i64,
    /// The threshold.
    pub threshold: i64,
    /// Points that are withheld, as spots did not come to a weight of 1.
    pub withheld: i64,
}

impl Weighing {
    /// The weights of the rules of `plan`. Nothing if it has no gate.
    pub(crate) fn new(plan: &Plan, weights: &Weights) -> Option<Weighing> {
        let is_updated = |index: RuleIndex| {
            let mut updates = plan.updates.iter();
            updates.any(|update| update.rule == index && update.directive == "SecRuleUpdateActionById")
        };
        let indices = || (0..).map(RuleIndex).zip(&plan.rules);
        let gates: Vec<Gate> = indices()
            .filter(|(index, rule)| GATES.contains(&rule.id) && !is_updated(*index))
            .filter_map(|(index, rule)| Gate::of(plan, index, rule))
            .collect();
        if gates.is_empty() {
            return None;
        }
        let rules = indices().map(|(index, rule)| {
            let fingerprint = fingerprint(plan, rule);
            let weight = match is_updated(index) {
                true => Weight::DECISIVE,
                false => weights.of(rule.id, fingerprint),
            };
            let is_known = !is_updated(index) && weights.has(rule.id, fingerprint);
            OfRule { id: rule.id, fingerprint, weight, is_known, classes: classes(rule) }
        });
        let rules = rules.collect();
        Some(Weighing { rules, gates, reads_purpose: false })
    }

    /// The same beside the semantic detector.
    pub(crate) fn beside_semantic(self: Arc<Self>) -> Arc<Self> {
        Arc::new(Weighing { reads_purpose: true, ..Arc::unwrap_or_clone(self) })
    }

    /// The weight of a match's rule where it matched: zero where the site made the field for what the rule
    /// looks for.
    fn weight_in(&self, fields: &Fields<'_>, record: &Match, spot: &Spot) -> f32 {
        let rule = &self.rules[record.rule.0 as usize];
        let weight = rule.weight.in_field(fields.kind(record, spot));
        let is_excused =
            self.reads_purpose && rule.is_known && weight > 0.0 && is_made_for(rule, fields, record);
        if is_excused { 0.0 } else { weight }
    }

    /// The matches that add to the score of `gate`, by the value in which they are. In cookies that were
    /// issued rules weigh nothing.
    fn by_spot(
        &self,
        gate: &Gate,
        transaction: TransactionView<'_>,
        issued: Option<&IssuedTo>,
    ) -> BTreeMap<Spot, InSpot> {
        let fields = Fields::new(transaction);
        let is_issued = |record: &Match| {
            let is_known = self.rules[record.rule.0 as usize].is_known;
            is_known && issued.is_some_and(|issued| is_issued(issued, transaction, record))
        };
        let mut spots: BTreeMap<Spot, InSpot> = BTreeMap::new();
        for record in transaction.matches() {
            let points = gate.points(transaction, record);
            if points > 0 {
                let spot = spot(transaction, record);
                let weight = match spot.kind() == Kind::Cookie && is_issued(record) {
                    true => 0.0,
                    false => self.weight_in(&fields, record, &spot),
                };
                spots.entry(spot).or_default().add(record.rule, weight, points);
            }
        }
        spots
    }

    /// The evidence of the matches so far about values: each rule once for each value.
    pub(crate) fn evidence(
        &self,
        transaction: TransactionView<'_>,
        issued: Option<&IssuedTo>,
    ) -> Vec<Evidence> {
        let Some(gate) = self.gates.first() else { return Vec::new() };
        let spots = self.by_spot(gate, transaction, issued).into_iter();
        let evidence = spots.flat_map(|(spot, in_spot)| {
            in_spot.rules.into_iter().map(move |(rule, weight)| (spot.clone(), rule, weight))
        });
        let evidence = evidence.map(|(spot, rule, weight)| {
            let classes = self.rules[rule.0 as usize].classes;
            Evidence { spot, classes, weight }
        });
        evidence.filter(|evidence| evidence.classes != 0).collect()
    }

    /// The matches that add to the score of a gate.
    pub(crate) fn votes(&self, transaction: TransactionView<'_>) -> Vec<Vote> {
        let Some(gate) = self.gates.first() else { return Vec::new() };
        let fields = Fields::new(transaction);
        let votes = transaction.matches().iter().map(|record| {
            let rule = &self.rules[record.rule.0 as usize];
            let spot = spot(transaction, record);
            Vote {
                rule: rule.id,
                fingerprint: rule.fingerprint,
                field: fields.kind(record, &spot),
                spot,
                is_excused: self.reads_purpose && is_made_for(rule, &fields, record),
                points: gate.points(transaction, record),
            }
        });
        votes.filter(|vote| vote.points > 0).collect()
    }

    /// The weighed score at the gate with this index in the plan; `None` for other rules, and where a score
    /// is not as the CRS has it.
    pub(crate) fn weigh(
        &self,
        transaction: TransactionView<'_>,
        rule: RuleIndex,
        issued: Option<&IssuedTo>,
    ) -> Option<Weighed> {
        let gate = self.gates.iter().find(|gate| gate.rule == rule)?;
        let score = transaction.tx_slot_number(gate.score)?;
        let threshold = match gate.threshold {
            Threshold::Fixed(number) => number,
            Threshold::Slot(slot) => transaction.tx_slot_number(slot)?,
        };
        let spots = self.by_spot(gate, transaction, issued);
        let withheld = spots.values().filter(|spot| spot.weight() < Weights::DECISIVE - ROUNDING);
        let withheld = withheld.fold(0i64, |sum, spot| sum.saturating_add(spot.points));
        Some(Weighed { gate: transaction.plan().rule(rule).id, score, threshold, withheld })
    }

    fn is_below(&self, transaction: TransactionView<'_>, rule: RuleIndex, issued: Option<&IssuedTo>) -> bool {
        self.weigh(transaction, rule, issued)
            .is_some_and(|weighed| weighed.score.saturating_sub(weighed.withheld) < weighed.threshold)
    }
}

/// Classes of what fields are made for.
const MADE_FOR: [Class; 8] = [
    Class::Sqli,
    Class::Xss,
    Class::Code,
    Class::Command,
    Class::Path,
    Class::Ssrf,
    Class::RemoteFile,
    Class::Crlf,
];

/// Classes of addresses that a server loads.
const LOADED: [Class; 2] = [Class::Ssrf, Class::RemoteFile];

/// Weights have two digits; sums of them are as good as that.
const ROUNDING: f32 = 0.001;

impl Judge for Weighing {
    fn withholds(&self, transaction: TransactionView<'_>, rule: RuleIndex) -> bool {
        self.is_below(transaction, rule, None)
    }
}

/// The weighing of an exchange whose request may have cookies that its site has issued.
#[derive(Debug)]
pub(crate) struct WeighingHere {
    pub(crate) weighing: Arc<Weighing>,
    pub(crate) issued: Arc<IssuedTo>,
}

impl Judge for WeighingHere {
    fn withholds(&self, transaction: TransactionView<'_>, rule: RuleIndex) -> bool {
        self.weighing.is_below(transaction, rule, Some(&self.issued))
    }
}

impl Gate {
    /// The gate that `rule` is: one link, which compares a known score with a number or a `TX` key.
    fn of(plan: &Plan, index: RuleIndex, rule: &Rule) -> Option<Gate> {
        let [link] = plan.links_of(rule) else { return None };
        let [target] = link.targets.include.as_slice() else { return None };
        let score = target.slot.filter(|_| target.variable == Variable::Tx && !target.count)?;
        let is_key = matches!(target.filter, KeyFilter::Key(_));
        let ends = !matches!(rule.disruption, Disruption::Pass | Disruption::Allow(_));
        if !is_key || !ends || link.negated || !link.targets.exclude.is_empty() {
            return None;
        }
        let threshold = if let Operator::Ge(Number::Constant(number)) = &link.operator {
            Threshold::Fixed(*number)
        } else if let Operator::Ge(Number::Computed(template)) = &link.operator {
            match template.parts.as_slice() {
                [portcullis_engine::Part::Tx(slot)] => Threshold::Slot(*slot),
                _ => return None,
            }
        } else {
            return None;
        };
        let name = &*plan.tx_names[score.0 as usize];
        let (_, prefix, level) = SCORES.iter().find(|(known, ..)| *known == name)?;
        let numbered = |number: usize| [prefix, number.to_string().as_bytes()].concat();
        let levels = std::array::from_fn(|at| plan.tx_slot(&numbered(at + 1)));
        Some(Gate { rule: index, score, threshold, levels, level: plan.tx_slot(level) })
    }

    /// The points of a match that are in the score of the gate.
    fn points(&self, transaction: TransactionView<'_>, record: &Match) -> i64 {
        let changes = transaction.score_changes(record);
        if changes.is_empty() {
            return 0;
        }
        let level = self.level.and_then(|slot| transaction.tx_slot_number(slot)).unwrap_or(0);
        let counted = usize::try_from(level).unwrap_or(0).min(LEVELS);
        let is_counted = |slot: TxSlot| self.levels[..counted].contains(&Some(slot));
        let points = changes.iter().filter(|change| is_counted(change.slot)).map(|change| change.delta);
        points.fold(0i64, i64::saturating_add)
    }
}

/// True if the match is in a cookie that was issued, whose name no other cookie has.
fn is_issued(issued: &IssuedTo, transaction: TransactionView<'_>, record: &Match) -> bool {
    let Some(name) = Spot::cookie(record.variable, transaction.matched_key(record)) else { return false };
    let cookies = transaction.cookies();
    if cookies.len() > ISSUED_COOKIES_MAX {
        return false;
    }
    let mut of_name = cookies.filter(|(other, _)| other.eq_ignore_ascii_case(name));
    match (of_name.next(), of_name.next()) {
        (Some((name, value)), None) => issued.has_issued(name, value),
        _ => false,
    }
}

fn spot(transaction: TransactionView<'_>, record: &Match) -> Spot {
    Spot::of_match(record.variable, transaction.matched_key(record))
}

/// True if the rule matched in a field of the body that the site made for what the rule looks for, or looks
/// for addresses that a server loads and matched in the one that a login leads back to: a browser follows it.
fn is_made_for(rule: &OfRule, fields: &Fields<'_>, record: &Match) -> bool {
    let is_about = |class: &&Class| rule.classes & bit(**class) != 0;
    let mut classes = MADE_FOR.iter().filter(is_about);
    fields.of_body(record, |name| classes.any(|class| portcullis_semantic::is_made_for(*class, name)))
        || LOADED.iter().any(|class| is_about(&class)) && fields.names_redirect(record)
}

fn bit(class: Class) -> u64 {
    1 << (class as u32 % 64)
}

/// The classes that a rule of the CRS is about, by its tags.
fn classes(rule: &Rule) -> u64 {
    let tags = rule.metadata.tags.iter().filter_map(|tag| tag.as_literal());
    tags.flat_map(classes_of_tag).fold(0, |bits, &class| bits | bit(class))
}

fn classes_of_tag(tag: &[u8]) -> &'static [Class] {
    use Class::*;
    match tag {
        b"attack-sqli" => &[Sqli],
        b"attack-xss" => &[Xss],
        b"attack-lfi" => &[Path],
        b"attack-rfi" => &[RemoteFile, Ssrf],
        b"attack-ssrf" => &[Ssrf],
        b"attack-injection-php" => &[Code],
        b"attack-ssti" => &[Template],
        b"attack-injection-generic" | b"attack-generic" => &[NoSql, Prototype, Template, Code],
        b"attack-injection-java" => &[Code, Template, Deserialization],
        b"attack-rce" => &[Command, Template, Deserialization, NoSql, Log4j, Prototype, Code],
        b"attack-protocol" => &[Crlf],
        _ => &[],
    }
}
