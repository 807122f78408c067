//! The readers of values: which candidates read which values, and in which forms.

use std::sync::OnceLock;

use portcullis_decode::{Sign, Transformation};
use portcullis_types::{ByteSet, Variable};
use portcullis_values::{CLASS_COUNT, ChainId, Chains, Class, Fresh};

use crate::build::Origin;
use crate::byte_classes::ClassEffect;
use crate::gates::FEW;
use crate::residue::Runs;
use crate::{Stages, byte_classes};

/// By origin of a value: who looks at it.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(crate) classes: [ClassReaders; CLASS_COUNT],
    pub(crate) scalars: Vec<(Variable, Reader)>,
    /// By number of a variable: its place there, if it has one.
    scalar_places: Vec<Option<u8>>,
    /// The variables and classes with a reader.
    read: Fresh,
}

/// The message that values are in. Requests and responses have different rules, so their words are looked for
/// apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Of the request.
    Request,
    /// Of the response.
    Response,
}

/// The readers of the values of a class.
#[derive(Debug, Default)]
pub(crate) struct ClassReaders {
    /// Whatever the key.
    pub(crate) any: Option<Reader>,
    /// For keys that rules name, in lower case: those of `any` and their own. Once they are all there, by
    /// length.
    pub(crate) keyed: Vec<(Box<[u8]>, Reader)>,
    /// By length: where the keys of it begin there. At last, where those of [`KEY_BYTES_MAX`] end.
    starts: Vec<u16>,
}

/// No key is longer than this but by chance; keys that are have one place for all lengths.
const KEY_BYTES_MAX: usize = 40;

/// The candidates that look at a value, by the chain they look through.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) side: Side,
    /// From 1; 0 for those that are too many.
    pub(crate) number: u16,
    /// The transformations that lead to the chains: a tree, the value itself first.
    pub(crate) nodes: Vec<Node>,
    /// If no transformation on the way acts, only these forms may differ from the value: those of nodes that
    /// act on any value.
    pub(crate) unconditional: Vec<u16>,
    /// The smallest length of a value whose forms a candidate could match.
    pub(crate) unconditional_length_min: usize,
    /// No candidate matches fewer digits than this, nor what is made of them.
    pub(crate) digits_min: usize,
    /// The candidates that look at the value itself then.
    pub(crate) direct: Vec<u64>,
    /// The same, if they are few.
    pub(crate) few_direct: Option<Box<[u16]>>,
    /// A value with none of these byte classes is left alone by all other transformations,
    pub(crate) triggers: u64,
    /// unless it ends with a dot,
    pub(crate) final_dot: bool,
    /// or has an entity of HTML.
    pub(crate) entity: bool,
    /// Byte classes that the forms of nodes with known [`Node::adds`] may have beyond those of the value.
    pub(crate) adds: u64,
    /// The bytes of words that stand in forms of any value (`residue.rs`), built on first use.
    pub(crate) residual_runs: OnceLock<Option<Box<Runs>>>,
}

/// A form in the tree of a [`Reader`].
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) chain: ChainId,
    /// The last of the chain; `None` for the value itself.
    pub(crate) last: Option<Transformation>,
    /// Candidates that look at this form.
    pub(crate) candidates: Vec<u64>,
    pub(crate) children: Vec<u16>,
    /// Candidates that look at this form or one that is made of it.
    pub(crate) below: Vec<u64>,
    /// The same, if they are few.
    pub(crate) few_below: Option<Box<[u16]>>,
    /// Byte classes of this form without which all of those are this form; `None`: there are none such.
    pub(crate) triggers_below: Option<u64>,
    /// Byte classes that these forms may have though the parent has none of them; `None`: any.
    pub(crate) adds: Option<u64>,
    /// The effect of the last transformation on byte classes, where it is known.
    pub(crate) effect: Option<ClassEffect>,
    /// True if forms made of this form have no more than its residue.
    pub(crate) keeps_residue: bool,
    /// Byte classes of the parent that let the last transformation act; `None`: always.
    triggers: Option<u64>,
    /// A dot that ends it does, too.
    final_dot: bool,
    /// Or an entity of HTML.
    entity: bool,
    /// A shorter parent gives nothing that a candidate here or below could match.
    pub(crate) length_min: usize,
}

/// The properties of a text on which transformations may act.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    classes: u64,
    ends_with_dot: bool,
    has_entity: bool,
}

impl Traits {
    /// Of a text with these byte classes, before `reader`.
    pub(crate) fn of(text: &[u8], classes: u64, reader: &Reader) -> Traits {
        Traits {
            classes,
            ends_with_dot: reader.final_dot && Sign::FinalDot.is_in(text),
            has_entity: reader.entity
                && classes & byte_classes::AMPERSAND != 0
                && Sign::HtmlEntity.is_in(text),
        }
    }
}

impl Traits {
    /// True if one of those that are not byte classes is there.
    pub(crate) fn has_marks(self) -> bool {
        self.ends_with_dot || self.has_entity
    }
}

impl Node {
    /// True if the last transformation acts on any text, as those do that decode values which may not be
    /// encoded.
    pub(crate) fn acts_always(&self) -> bool {
        self.triggers.is_none()
    }

    /// False if the last transformation gives back what it gets, a text with these traits.
    pub(crate) fn may_act(&self, text: Traits) -> bool {
        self.triggers.is_none_or(|set| set & text.classes != 0)
            || self.final_dot && text.ends_with_dot
            || self.entity && text.has_entity
    }
}

impl Default for Readers {
    fn default() -> Self {
        Readers {
            classes: std::array::from_fn(|_| ClassReaders::default()),
            scalars: Vec::new(),
            scalar_places: Vec::new(),
            read: Fresh::default(),
        }
    }
}

impl Readers {
    /// Returns the part of `fresh` that has a reader.
    pub(crate) fn read_of(&self, fresh: Fresh) -> Fresh {
        let Fresh { scalars, classes } = self.read;
        Fresh {
            scalars: std::array::from_fn(|at| fresh.scalars[at] & scalars[at]),
            classes: fresh.classes & classes,
        }
    }

    pub(crate) fn of_class(&self, class: Class) -> &ClassReaders {
        &self.classes[class as usize]
    }

    /// Returns the reader of the variable with this number.
    pub(crate) fn scalar(&self, number: usize) -> Option<(Variable, &Reader)> {
        let place = self.scalar_places.get(number).copied().flatten()?;
        let (variable, reader) = self.scalars.get(usize::from(place))?;
        Some((*variable, reader))
    }

    /// The reader of the values at `origin`; a `new` one, if there is none.
    pub(crate) fn of(&mut self, origin: &Origin, new: impl FnOnce() -> Reader) -> &mut Reader {
        match origin {
            Origin::Class(class) => self.classes[*class as usize].any.get_or_insert_with(new),
            Origin::Key(class, key) => of(&mut self.classes[*class as usize].keyed, key, new),
            Origin::Scalar(variable) => of(&mut self.scalars, variable, new),
        }
    }

    /// Once all candidates are in. `length_min` says what each needs, `digits_min` how many digits, if digits
    /// may be all.
    pub(crate) fn finish(
        &mut self,
        chains: &Chains,
        stages: Stages,
        length_min: impl Fn(usize) -> usize,
        digits_min: impl Fn(Side, usize) -> Option<usize>,
    ) {
        for ClassReaders { any, keyed, .. } in &mut self.classes {
            // A candidate that reads any key reads those that others name, too.
            if let Some(any) = any {
                keyed.iter_mut().for_each(|(_, reader)| reader.extend(chains, any, stages));
            }
            let readers = keyed.iter_mut().map(|(_, reader)| reader).chain(any);
            readers.for_each(|reader| reader.finish(stages, &length_min, &digits_min));
        }
        for (_, reader) in &mut self.scalars {
            reader.finish(stages, &length_min, &digits_min);
        }
        self.index();
    }

    /// Puts what is looked up in order, and gives each reader its number.
    fn index(&mut self) {
        self.scalar_places = vec![None; Variable::ALL.len()];
        for (place, (variable, _)) in (0..).zip(&self.scalars) {
            let number = *variable as usize;
            self.scalar_places[number] = Some(place);
            self.read.scalars[number / 64] |= 1 << (number % 64);
        }
        for (number, readers) in self.classes.iter_mut().enumerate() {
            readers.order();
            let is_looked_at = readers.any.is_some() || !readers.keyed.is_empty();
            self.read.classes |= u64::from(is_looked_at) << number;
        }
        self.number();
    }

    fn number(&mut self) {
        let of_classes = self
            .classes
            .iter_mut()
            .flat_map(|readers| readers.keyed.iter_mut().map(|(_, reader)| reader).chain(&mut readers.any));
        let all = of_classes.chain(self.scalars.iter_mut().map(|(_, reader)| reader));
        for (number, reader) in (1..=u16::MAX).zip(all) {
            reader.number = number;
        }
    }
}

/// The reader of `wanted`; a `new` one, if there is none.
fn of<'a, K: PartialEq + Clone>(
    readers: &'a mut Vec<(K, Reader)>,
    wanted: &K,
    new: impl FnOnce() -> Reader,
) -> &'a mut Reader {
    let at = readers.iter().position(|(key, _)| key == wanted).unwrap_or_else(|| {
        readers.push((wanted.clone(), new()));
        readers.len() - 1
    });
    &mut readers[at].1
}

impl ClassReaders {
    /// Returns the reader of the value under `key`.
    pub(crate) fn reader(&self, key: &[u8]) -> Option<&Reader> {
        let length = key.len().min(KEY_BYTES_MAX);
        let range = self.starts.get(length).zip(self.starts.get(length + 1));
        let same = range.map_or(&[][..], |(&from, &to)| &self.keyed[from.into()..to.into()]);
        let named = same.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        named.map(|(_, reader)| reader).or(self.any.as_ref())
    }

    fn order(&mut self) {
        let length = |(name, _): &(Box<[u8]>, Reader)| name.len().min(KEY_BYTES_MAX);
        self.keyed.sort_by_key(length);
        let start = |wanted| self.keyed.partition_point(|entry| length(entry) < wanted) as u16;
        self.starts = (0..=KEY_BYTES_MAX + 1).map(start).collect();
    }
}

impl Reader {
    pub(crate) fn new(side: Side, width: usize) -> Reader {
        let root = Node {
            chain: ChainId::IDENTITY,
            last: None,
            candidates: vec![0; width],
            children: Vec::new(),
            below: Vec::new(),
            few_below: None,
            triggers_below: None,
            adds: None,
            effect: None,
            keeps_residue: false,
            triggers: Some(0),
            final_dot: false,
            entity: false,
            length_min: 0,
        };
        let (nodes, direct) = (vec![root], vec![0; width]);
        Reader {
            side,
            number: 0,
            nodes,
            unconditional: Vec::new(),
            unconditional_length_min: usize::MAX,
            digits_min: 0,
            direct,
            few_direct: None,
            triggers: 0,
            final_dot: false,
            entity: false,
            adds: 0,
            residual_runs: OnceLock::new(),
        }
    }

    /// `candidate` looks through `chain`.
    pub(crate) fn add(&mut self, chains: &Chains, chain: ChainId, candidate: usize, stages: Stages) {
        let at = self.node(chains, chain, stages);
        self.nodes[at].candidates[candidate / 64] |= 1 << (candidate % 64);
    }

    /// Recursion depth is the length of the chain, which the plan bounds.
    fn node(&mut self, chains: &Chains, chain: ChainId, stages: Stages) -> usize {
        if let Some(at) = self.nodes.iter().position(|node| node.chain == chain) {
            return at;
        }
        let Some(step) = chains.node(chain) else { return 0 };
        let parent = self.node(chains, step.parent, stages);
        let (in_doubt, sign) = step.last.sign().unzip();
        let (final_dot, entity) = (sign == Some(Sign::FinalDot), sign == Some(Sign::HtmlEntity));
        let acting = step.triggers.intersection(in_doubt.unwrap_or(ByteSet::EMPTY).complement());
        let may_rest = acting != ByteSet::FULL && stages.has(Stages::TRIGGERS);
        let triggers = may_rest.then(|| byte_classes::touching(&acting));
        self.final_dot |= final_dot;
        self.entity |= entity;
        self.triggers |= triggers.unwrap_or(0);
        let at = self.nodes.len();
        let candidates = vec![0; self.direct.len()];
        self.nodes.push(Node {
            chain,
            last: Some(step.last),
            candidates,
            children: Vec::new(),
            below: Vec::new(),
            few_below: None,
            triggers_below: None,
            adds: None,
            effect: ClassEffect::of(step.last),
            keeps_residue: false,
            triggers,
            final_dot,
            entity,
            length_min: 0,
        });
        self.nodes[parent].children.push(at as u16);
        at
    }

    /// Adds what `other` has.
    pub(crate) fn extend(&mut self, chains: &Chains, other: &Reader, stages: Stages) {
        for node in &other.nodes {
            let at = self.node(chains, node.chain, stages);
            for (mine, theirs) in self.nodes[at].candidates.iter_mut().zip(&node.candidates) {
                *mine |= theirs;
            }
        }
    }

    /// Once all candidates are in; `length_min` says what each needs, `digits_min` how many digits, if digits
    /// may be all.
    pub(crate) fn finish(
        &mut self,
        stages: Stages,
        length_min: impl Fn(usize) -> usize,
        digits_min: impl Fn(Side, usize) -> Option<usize>,
    ) {
        let mut direct = vec![true; self.nodes.len()];
        for at in 0..self.nodes.len() {
            if at > 0 && self.nodes[at].triggers.is_none() {
                if direct[at] {
                    self.unconditional.push(at as u16);
                }
                direct[at] = false;
            }
            for child in self.nodes[at].children.clone() {
                direct[usize::from(child)] = direct[at];
            }
            if direct[at] {
                for (all, own) in self.direct.iter_mut().zip(&self.nodes[at].candidates) {
                    *all |= own;
                }
            }
        }
        self.few_direct = few(&self.direct);
        // Children stand behind their parents.
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let own = bits(&node.candidates).map(&length_min);
            let below = node.children.iter().map(|&child| self.nodes[usize::from(child)].length_min);
            let needed = own.chain(below).min().unwrap_or(usize::MAX);
            let adds = node.last.map(Transformation::adds).filter(|adds| *adds != ByteSet::FULL);
            let mut adds = adds.map(|adds| byte_classes::touching(&adds) | byte_classes::UPPER);
            let mut triggers_below = Some(0);
            let mut keeps = stages.has(Stages::RESIDUE);
            let mut all = node.candidates.clone();
            for child in node.children.iter().map(|&child| &self.nodes[usize::from(child)]) {
                all.iter_mut().zip(&child.below).for_each(|(all, below)| *all |= below);
                keeps &= child.keeps_residue && child.last.is_some_and(Transformation::keeps_residue);
                let triggers = child.triggers.zip(child.triggers_below).filter(|_| !child.final_dot);
                let entity = if child.entity { byte_classes::AMPERSAND } else { 0 };
                triggers_below =
                    triggers_below.zip(triggers).map(|(all, (own, below))| all | own | entity | below);
                adds = adds.zip(child.adds).map(|(own, below)| own | below);
            }
            let length_min = node.last.map_or(needed, |last| last.input_length_min(needed));
            self.adds |= adds.unwrap_or(0);
            let node = &mut self.nodes[at];
            (node.triggers_below, node.adds, node.length_min) = (triggers_below, adds, length_min);
            (node.few_below, node.below, node.keeps_residue) = (few(&all), all, keeps);
        }
        let least = self.unconditional.iter().map(|&node| self.nodes[usize::from(node)].length_min).min();
        self.unconditional_length_min = least.unwrap_or(usize::MAX);
        if self.triggers & byte_classes::DIGIT == 0 {
            let least = bits(&self.direct).filter_map(|candidate| digits_min(self.side, candidate)).min();
            self.digits_min = self.unconditional_length_min.min(least.unwrap_or(usize::MAX));
        }
    }
}

/// These candidates, if they are so few that they are better asked one by one.
fn few(candidates: &[u64]) -> Option<Box<[u16]>> {
    let few: Option<Vec<u16>> = bits(candidates).take(FEW + 1).map(|at| at.try_into().ok()).collect();
    few.filter(|few| few.len() <= FEW).map(Vec::into_boxed_slice)
}

/// The numbers of the bits that are set.
pub(crate) fn bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| bits_of(word).map(move |bit| at * 64 + bit))
}

/// The same for one word.
pub(crate) fn bits_of(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}
