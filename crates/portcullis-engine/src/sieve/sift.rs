//! Request time: from values to the rules that have to run.

use std::sync::Arc;

use portcullis_types::{Phase, Span};

use crate::Plan;
use crate::operator::Captures;
use crate::store::{CLASS_COUNT, Class};
use crate::transaction::Transaction;

use super::lanes::bits;
use super::memo::{self, Known};
use super::{Block, Sieve, Source, classes};

/// Forms of values longer than this are not kept side by side: memory stays near the value's size.
const KEPT_FORM_BYTES_MAX: usize = 64 * 1024;

/// What a transaction knows so far.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// Steps to run, by phase.
    run: [Vec<u64>; 5],
    /// Candidates that need not be looked at any more: their rules run.
    settled: Vec<u64>,
    /// Values of each class that have been looked at.
    classes_seen: Vec<u32>,
    /// Of each scalar lane, the value that has been looked at; of those without one, what stands for it.
    scalars_seen: Vec<Option<Option<u32>>>,
    /// [`Store::news`](crate::store::Store::news) of the last time.
    news: Option<u32>,
    work: Work,
}

/// Buffers.
#[derive(Debug, Default)]
struct Work {
    left: Vec<u64>,
    open: Vec<u32>,
    lists: Vec<u64>,
    forms: Vec<Form>,
    region: Vec<u16>,
    candidates: Vec<u64>,
    made: Vec<u8>,
    captures: Captures,
}

/// A form that is yet to be looked at.
#[derive(Clone, Copy, Debug)]
struct Form {
    node: u16,
    text: Span,
    /// Not made yet: `text` is its parent's.
    of_parent: bool,
}

impl Sifted {
    pub(crate) fn reset(&mut self, sieve: &Sieve) {
        for (run, always) in self.run.iter_mut().zip(&sieve.always) {
            run.clone_from(always);
        }
        self.news = None;
        self.settled.clear();
        self.settled.resize(sieve.width, 0);
        self.classes_seen.clear();
        self.classes_seen.resize(CLASS_COUNT, 0);
        self.scalars_seen.clear();
        self.scalars_seen.resize(sieve.lanes.scalars.len(), None);
    }

    /// The first step of `phase` at `from` or behind it that has to run.
    pub(crate) fn next(&self, phase: Phase, from: usize) -> Option<usize> {
        let steps = &self.run[usize::from(phase.number()) - 1];
        let first = steps.get(from / 64)? & (u64::MAX << (from % 64));
        let mut at = from / 64;
        let mut word = first;
        while word == 0 {
            at += 1;
            word = *steps.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }
}

impl Transaction {
    /// Looks at the values that are new since the last call.
    pub(crate) fn sift(&mut self, plan: &Arc<Plan>) {
        let news = Some(self.store.news());
        if self.phase.number() > plan.sieve.last_phase || self.sifted.news == news {
            return;
        }
        self.sifted.news = news;
        let memo = self.memo.take().unwrap_or_default();
        let mut sifted = std::mem::take(&mut self.sifted);
        memo.with(plan, |known| self.sift_new(plan, &mut sifted, known));
        self.sifted = sifted;
        self.memo = Some(memo);
    }

    fn sift_new(&mut self, plan: &Plan, sifted: &mut Sifted, mut known: Option<&mut Known>) {
        let sieve = &plan.sieve;
        for (at, (variable, source)) in sieve.lanes.scalars.iter().enumerate() {
            // What stands for one that has no value is always the same.
            let value = Some(self.store.scalar(*variable).map(|value| value.0));
            if sifted.scalars_seen[at] == value {
                continue;
            }
            sifted.scalars_seen[at] = value;
            if let Some(value) = self.scalar(*variable) {
                let text = self.store.data(value);
                let known = known.as_deref_mut().filter(|_| memo::repeats(*variable));
                self.sift_known(plan, sifted, known, source, text);
            }
        }
        for (class, lanes) in Class::ALL.into_iter().zip(&sieve.lanes.classes) {
            let seen = &mut sifted.classes_seen[class as usize];
            let from = std::mem::replace(seen, self.store.class_len(class) as u32);
            if lanes.any.is_none() && lanes.keyed.is_empty() {
                continue;
            }
            for at in from as usize..self.store.class_len(class) {
                let value = self.store.class_value(class, at);
                let key = self.store.text(self.store.key(value));
                if let Some(source) = lanes.source(key) {
                    let known = known.as_deref_mut().filter(|_| memo::repeats_in(class, key));
                    let text = self.store.data(value);
                    self.sift_known(plan, sifted, known, source, text);
                }
            }
        }
    }

    /// As [`sift_value`](Self::sift_value), with the answer in `known` if it is there, or afterwards.
    fn sift_known(
        &mut self,
        plan: &Plan,
        sifted: &mut Sifted,
        known: Option<&mut Known>,
        source: &Source,
        value: Span,
    ) {
        let Some(known) = known.filter(|_| source.number != 0 && value.len() <= memo::TEXT_BYTES_MAX) else {
            return self.sift_value(plan, sifted, source, value);
        };
        if let Some(found) = known.find(source.number, self.store.text(value)) {
            for candidate in found.iter() {
                settle(&mut sifted.run, &mut sifted.settled, &plan.sieve, candidate);
            }
            return;
        }
        // All that match it, not only those that did not match others before.
        let mut settled = std::mem::take(&mut sifted.settled);
        sifted.settled.resize(plan.sieve.width, 0);
        self.sift_value(plan, sifted, source, value);
        known.enter(source.number, self.store.text(value), bits(&sifted.settled));
        settled.iter_mut().zip(&sifted.settled).for_each(|(all, new)| *all |= new);
        sifted.settled = settled;
    }

    fn sift_value(&mut self, plan: &Plan, sifted: &mut Sifted, source: &Source, value: Span) {
        let classes = classes::of(self.store.text(value));
        let ends_with_dot = self.store.text(value).last() == Some(&b'.');
        let is_calm = classes & source.triggers == 0 && !(source.final_dot && ends_with_dot);
        if is_calm {
            self.sift_text(plan, sifted, source, &source.calm, value, classes);
            let too_short = |&node: &u16| value.len() < source.nodes[usize::from(node)].length_min;
            if source.restless.iter().all(too_short) {
                return;
            }
        }
        let end = self.store.bytes.len();
        let is_long = value.len() > KEPT_FORM_BYTES_MAX;
        let mut made = std::mem::take(&mut sifted.work.made);
        let mut candidates = std::mem::take(&mut sifted.work.candidates);
        if is_calm {
            for &node in &source.restless {
                if value.len() >= source.nodes[usize::from(node)].length_min {
                    sifted.work.forms.push(Form { node, text: value, of_parent: true });
                }
            }
        } else {
            sifted.work.forms.push(Form { node: 0, text: value, of_parent: false });
        }
        while let Some(Form { node, mut text, of_parent }) = sifted.work.forms.pop() {
            if of_parent {
                // What was made of the forms between has been looked at.
                self.store.bytes.truncate(end.max(text.end as usize));
                if self.transform(plan, source, node, text, &mut made) {
                    text = self.store.push(&made);
                }
            }
            let classes = classes::of(self.store.text(text));
            let ends_with_dot = self.store.text(text).last() == Some(&b'.');
            candidates.clear();
            candidates.resize(plan.sieve.width, 0);
            // All chains that give this very form.
            sifted.work.region.push(node);
            while let Some(at) = sifted.work.region.pop() {
                let at = &source.nodes[usize::from(at)];
                for (all, own) in candidates.iter_mut().zip(&at.candidates) {
                    *all |= own;
                }
                for &child in &at.children {
                    let node = &source.nodes[usize::from(child)];
                    if text.len() < node.length_min {
                        continue;
                    }
                    if !node.may_act(classes, ends_with_dot)
                        || !self.transform(plan, source, child, text, &mut made)
                    {
                        sifted.work.region.push(child);
                    } else if is_long {
                        sifted.work.forms.push(Form { node: child, text, of_parent: true });
                    } else {
                        let text = self.store.push(&made);
                        sifted.work.forms.push(Form { node: child, text, of_parent: false });
                    }
                }
            }
            self.sift_text(plan, sifted, source, &candidates, text, classes);
        }
        self.store.bytes.truncate(end);
        sifted.work.made = made;
        sifted.work.candidates = candidates;
    }

    /// True if the last transformation of `node` changed `text`; `made` is what came out.
    fn transform(&self, plan: &Plan, source: &Source, node: u16, text: Span, made: &mut Vec<u8>) -> bool {
        made.clear();
        let Some(chain) = plan.chains.node(source.nodes[usize::from(node)].chain) else { return false };
        chain.last.apply_with(self.store.text(text), plan.chains.unicode_map.as_deref(), made)
    }

    fn sift_text(
        &mut self,
        plan: &Plan,
        sifted: &mut Sifted,
        source: &Source,
        candidates: &[u64],
        text: Span,
        classes: u64,
    ) {
        let sieve = &plan.sieve;
        let is_plain = classes & sieve.not_plain == 0;
        let gates = &sieve.gates[usize::from(is_plain)];
        let Work { left, open, lists, captures, .. } = &mut sifted.work;
        left.clear();
        let blocks = candidates.as_chunks().0.iter().zip(sifted.settled.as_chunks().0);
        let tables = gates.possible.iter().zip(&gates.without);
        for ((candidates, settled), (possible, without)) in blocks.zip(tables) {
            left.extend(without_absent(candidates, settled, possible, without, classes));
        }
        open.clear();
        let mut needs_words = false;
        for (at, word) in left.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                let candidate = at * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                let Some(gate) = gates.further.get(candidate) else { continue };
                if text.len() >= gate.length_min as usize && gate.classes.iter().all(|set| set & classes != 0)
                {
                    needs_words |= !gate.lists.is_empty();
                    open.push(candidate as u32);
                }
            }
        }
        let bytes = text.of(&self.store.bytes);
        if needs_words {
            let finder = &gates.finders[source.side as usize];
            lists.clear();
            lists.resize(finder.list_count.div_ceil(64), 0);
            finder.words.find(bytes, |word| {
                for &list in &finder.lists_of[word as usize] {
                    lists[usize::from(list) / 64] |= 1 << (list % 64);
                }
            });
        }
        for &at in open.iter() {
            let candidate = &sieve.candidates[at as usize];
            let needed = &gates.further[at as usize].lists;
            if !needed.iter().all(|&list| lists[usize::from(list) / 64] >> (list % 64) & 1 == 1) {
                continue;
            }
            let link = &plan.links[candidate.link as usize];
            let matches = || {
                let argument = link.operator.argument().and_then(|argument| argument.as_literal());
                let argument = argument.unwrap_or_default();
                link.operator.test(bytes, argument, false, captures, &mut self.patterns) != link.negated
            };
            if candidate.is_pure && !{ matches }() {
                continue;
            }
            settle(&mut sifted.run, &mut sifted.settled, sieve, at as usize);
        }
    }
}

/// The rule of this candidate runs.
fn settle(run: &mut [Vec<u64>; 5], settled: &mut [u64], sieve: &Sieve, at: usize) {
    let candidate = &sieve.candidates[at];
    settled[at / 64] |= 1 << (at % 64);
    run[usize::from(candidate.phase)][candidate.step as usize / 64] |= 1 << (candidate.step % 64);
}

/// Those of `candidates` that are not settled and may match in a text with these byte classes only.
fn without_absent(
    candidates: &Block,
    settled: &Block,
    possible: &Block,
    without: &[Block; 64],
    classes: u64,
) -> Block {
    let mut left: Block = std::array::from_fn(|at| candidates[at] & !settled[at] & possible[at]);
    if left == Block::default() {
        return left;
    }
    let mut absent = !classes;
    while absent != 0 {
        let class = absent.trailing_zeros() as usize;
        absent &= absent - 1;
        left.iter_mut().zip(&without[class]).for_each(|(left, without)| *left &= without);
    }
    left
}
