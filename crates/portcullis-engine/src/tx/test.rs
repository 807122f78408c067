//! Links whose answer needs no list of values: one number decides, or nothing does.
//!
//! Most rules that run for every request begin with one: settings in `TX`, `SecAction`. They are
//! distinguished at load time.

use std::cmp::Ordering;

use portcullis_types::{ByteSet, Variable};

use crate::candidates::is_pure;
use crate::operator::{Number, Operator};
use crate::plan::{Link, Plan};
use crate::processors::Processors;
use crate::template::{Part, Template};
use crate::{ChainId, Chains};

use super::TxSlot;

/// By link: what decides whether it matches.
#[derive(Debug, Default)]
pub struct LinkTests(Vec<LinkTest>);

/// The source that decides whether a link matches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkTest {
    /// Values have to be looked at.
    Values,
    /// The value in `TX`.
    Tx(TxTest),
    /// `REQBODY_PROCESSOR`, whatever else there is.
    Processor(Processors),
    /// A number of the message, `REQUEST_BODY_LENGTH`. This and the next two can only say no.
    Length(Variable, Compared),
    /// The number of values that the link's target counts: `&REQUEST_HEADERS:Host`.
    Count(Compared),
    /// The existence of any value: `TX:/pattern/`.
    AnyKey,
}

/// A condition on `TX`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TxTest {
    /// `SecAction`: none.
    Always,
    /// The number in a key.
    Number(Comparison),
    /// The same behind a chain that leaves numbers as they are, but not all texts.
    WholeNumber(Comparison),
    /// The existence of a key: `&TX:key`.
    Count(Comparison),
}

/// The number in a `TX` key, or whether it is set, compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) slot: TxSlot,
    pub(crate) with: Compared,
}

/// The number to compare with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// The set of results that match: less (1), equal (2) and greater (4).
    wanted: u8,
    pub(crate) than: Than,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Than {
    Constant(i64),
    Slot(TxSlot),
}

impl Compared {
    #[inline]
    pub(crate) fn holds(&self, number: i64, than: i64) -> bool {
        let bit = match number.cmp(&than) {
            Ordering::Less => 1,
            Ordering::Equal => 2,
            Ordering::Greater => 4,
        };
        self.wanted & bit != 0
    }
}

impl LinkTests {
    /// For the links of `plan`.
    pub(crate) fn new(plan: &Plan) -> LinkTests {
        LinkTests(plan.links.iter().map(|link| LinkTest::of(link, plan)).collect())
    }

    /// The test of the link with this number.
    #[inline]
    pub(crate) fn of(&self, link: usize) -> LinkTest {
        self.0.get(link).copied().unwrap_or(LinkTest::Values)
    }
}

impl LinkTest {
    fn of(link: &Link, plan: &Plan) -> LinkTest {
        let [target] = link.targets.include.as_slice() else { return LinkTest::Values };
        if !link.targets.exclude.is_empty() || link.multi_match {
            return LinkTest::Values;
        }
        let is_transformed = link.chain != ChainId::IDENTITY;
        if link.unconditional {
            let is_action = target.variable == Variable::RemoteAddr
                && !target.count
                && matches!(link.operator, Operator::UnconditionalMatch)
                && !is_transformed
                && !link.negated;
            return if is_action { LinkTest::Tx(TxTest::Always) } else { LinkTest::Values };
        }
        if target.variable == Variable::ReqbodyProcessor && !is_transformed && !link.capture && is_pure(link)
        {
            return LinkTest::Processor(Processors::of(link, &plan.settings));
        }
        let of_tx = target.variable == Variable::Tx;
        if of_tx && target.slot.is_none() && !target.count {
            return LinkTest::AnyKey;
        }
        let Some((wanted, number)) = link.operator.comparison() else { return LinkTest::Values };
        let than = match number {
            Number::Constant(number) => Than::Constant(*number),
            Number::Computed(Template { parts }) => match parts.as_slice() {
                [Part::Tx(slot)] => Than::Slot(*slot),
                _ => return LinkTest::Values,
            },
        };
        let wanted = if link.negated { !wanted & 7 } else { wanted };
        let with = Compared { wanted, than };
        let Some(slot) = target.slot else {
            return match target.count {
                _ if is_transformed || of_tx => LinkTest::Values,
                true => LinkTest::Count(with),
                false => LinkTest::Length(target.variable, with),
            };
        };
        let comparison = Comparison { slot, with };
        LinkTest::Tx(match (target.count, is_transformed) {
            (true, false) => TxTest::Count(comparison),
            (false, false) => TxTest::Number(comparison),
            (false, true) if leaves_numbers(link.chain, &plan.chains) => TxTest::WholeNumber(comparison),
            (_, true) => return LinkTest::Values,
        })
    }
}

impl TxTest {
    /// The keys that the answer depends on.
    pub(crate) fn reads(&self) -> impl Iterator<Item = TxSlot> {
        let comparison = match self {
            TxTest::Always => None,
            TxTest::Number(comparison) | TxTest::WholeNumber(comparison) | TxTest::Count(comparison) => {
                Some(comparison)
            }
        };
        let than = comparison.and_then(|comparison| match comparison.with.than {
            Than::Slot(slot) => Some(slot),
            Than::Constant(_) => None,
        });
        comparison.map(|comparison| comparison.slot).into_iter().chain(than)
    }
}

/// True if `chain` gives back every number that it gets, in decimal digits.
fn leaves_numbers(chain: ChainId, chains: &Chains) -> bool {
    let digits = ByteSet::range(b'0', b'9').with(b'-');
    let mut at = chain;
    while let Some(node) = chains.node(at) {
        if node.triggers.intersects(&digits) {
            return false;
        }
        at = node.parent;
    }
    true
}
