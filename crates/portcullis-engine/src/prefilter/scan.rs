//! Request time: from values to the rules that have to run.

use std::sync::Arc;

use portcullis_match::FewWords;
use portcullis_types::{Phase, Span, Variable};
use portcullis_values::{CLASS_COUNT, Class, Fresh, Values};

use crate::operator::Captures;
use crate::patterns::Patterns;
use crate::plan::Link;
use crate::{Chains, Plan};

use super::forms::Forms;
use super::head_memo::BEFORE;
use super::memo::{self, Found, Known, Memo};
use super::readers::{bits, bits_of};
use super::residue::ResidueBuffers;
use super::{Conditions, Prefilter, Reader, byte_classes};

/// Longer values are looked at alone: they have too many kinds of bytes for the company of others.
const GROUPED_BYTES_MAX: usize = 256;
/// Values that are looked at together.
const GROUP_MAX: usize = 256;
/// Names that are remembered while many are looked at; a power of two.
const NAMES: usize = 64;
/// These are many.
const REPEATS_MIN: usize = 8;
/// What looking for words costs for each byte; see [`crate::work`].
const WORD_UNITS: u64 = 3;
/// So many candidates' words are looked for one list after the other before all words are looked for at once,
const FEW_LISTS_MAX: usize = 4;
/// in texts that are not too short for it to matter.
const FEW_BYTES_MIN: usize = 32;

/// What a transaction knows so far.
#[derive(Debug, Default)]
pub(crate) struct PrefilterState {
    /// Steps to run, by phase.
    pub(super) run: [Vec<u64>; 5],
    /// Candidates that need not be looked at any more: their rules run.
    pub(super) matched: Vec<u64>,
    /// Values of each class that have been looked at.
    classes_seen: [u32; CLASS_COUNT],
    pub(super) work: Buffers,
}

/// Buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    pub(super) left: Vec<u64>,
    open: Vec<u32>,
    /// By text: the word lists of which it has a word.
    lists: Vec<u64>,
    /// The word lists of which one of the texts has a word.
    any_list: Vec<u64>,
    /// Texts, one behind the other.
    joined: Vec<u8>,
    /// The same for [`FewWords`].
    folded: Vec<u8>,
    /// Where each of them ends there.
    ends: Vec<u32>,
    group: Vec<Text>,
    /// A head as it is remembered.
    pub(super) head: Vec<u8>,
    captures: Captures,
    pub(super) forms: Forms,
    pub(super) residue: ResidueBuffers,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub(super) span: Span,
    /// Those of its bytes.
    pub(super) classes: u64,
}

impl PrefilterState {
    /// `all`: also steps that do nothing but match.
    pub(crate) fn reset(&mut self, prefilter: &Prefilter, all: bool) {
        for (run, (always, idle)) in self.run.iter_mut().zip(prefilter.always.iter().zip(&prefilter.idle)) {
            run.clone_from(always);
            if !all {
                run.iter_mut().zip(idle).for_each(|(run, idle)| *run &= !idle);
            }
        }
        self.matched.clone_from(&prefilter.matched);
        self.classes_seen = [0; CLASS_COUNT];
    }

    /// How many values of this class have been looked at.
    pub(super) fn seen(&self, class: Class) -> usize {
        self.classes_seen[class as usize] as usize
    }

    pub(super) fn see(&mut self, class: Class, count: usize) {
        self.classes_seen[class as usize] = count as u32;
    }

    /// True if this candidate matches some value.
    pub(crate) fn has_matched(&self, candidate: u32) -> bool {
        self.matched.get(candidate as usize / 64).is_some_and(|word| word >> (candidate % 64) & 1 == 1)
    }

    pub(super) fn set_matched(&mut self, prefilter: &Prefilter, at: usize) {
        set_matched(&mut self.run, &mut self.matched, prefilter, at);
    }

    /// Begins with no candidate matched; returns those that were.
    pub(super) fn take_matched(&mut self, prefilter: &Prefilter) -> Vec<u64> {
        std::mem::replace(&mut self.matched, vec![0; prefilter.width])
    }

    /// Goes back to the candidates that matched `before`, with those found since.
    pub(super) fn add_matched(&mut self, prefilter: &Prefilter, before: Vec<u64>) {
        let found = std::mem::replace(&mut self.matched, before);
        bits(&found).for_each(|candidate| self.set_matched(prefilter, candidate));
    }

    /// Which of 64 steps have to run.
    pub(crate) fn runs(&self, phase: Phase, word: usize) -> u64 {
        self.run[usize::from(phase.number()) - 1].get(word).copied().unwrap_or_default()
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

/// A look at values, with what it borrows of the plan and of the transaction.
pub(crate) struct Scan<'a> {
    pub(super) prefilter: &'a Prefilter,
    pub(super) chains: &'a Chains,
    pub(super) links: &'a [Link],
    pub(super) store: &'a mut Values,
    pub(super) patterns: &'a mut Patterns,
    pub(super) state: &'a mut PrefilterState,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        store: &'a mut Values,
        patterns: &'a mut Patterns,
        state: &'a mut PrefilterState,
    ) -> Scan<'a> {
        Scan { prefilter: &plan.prefilter, chains: &plan.chains, links: &plan.links, store, patterns, state }
    }

    /// Looks at the values that are new since the last call, before the rules of `phase`. `memo`: what was found before, and
    /// the plan that [`new`](Self::new) was given.
    pub(crate) fn run(&mut self, phase: Phase, memo: Option<(&Memo, &Arc<Plan>)>) {
        if phase.number() > self.prefilter.last_phase {
            return;
        }
        let fresh = self.prefilter.readers.read_of(self.store.take_fresh());
        if fresh == Fresh::default() {
            return;
        }
        match memo {
            Some((memo, plan)) => memo.with(plan, |known| self.scan_new(known, fresh)),
            None => self.scan_new(None, fresh),
        }
    }

    /// Looks at one value.
    pub(crate) fn look(&mut self, reader: &Reader, value: Span) {
        self.scan_value(reader, self.classify(value));
    }

    fn scan_new(&mut self, mut known: Option<&mut Known>, fresh: Fresh) {
        let readers = &self.prefilter.readers;
        let has_head = known.is_some() && self.has_new_head();
        for (variable, reader) in bits(&fresh.scalars).filter_map(|number| readers.scalar(number)) {
            if !has_head || !BEFORE.contains(&variable) {
                self.scan_scalar(known.as_deref_mut(), (variable, reader));
            }
        }
        if let Some(known) = known.as_deref_mut() {
            self.scan_heads(known, has_head);
        }
        for number in bits_of(fresh.classes) {
            let (class, readers) = (Class::ALL[number], &readers.classes[number]);
            let seen = &mut self.state.classes_seen[number];
            let from = std::mem::replace(seen, self.store.class_len(class) as u32);
            let new = from as usize..self.store.class_len(class);
            let too_many = new.len() > memo::VALUES_MAX;
            let mut names = (new.len() > REPEATS_MIN).then(|| [Span::default(); NAMES]);
            for at in new {
                let value = self.store.class_value(class, at);
                let (key, text) = (self.store.key(value), self.store.data(value));
                if key == text
                    && let Some(names) = &mut names
                {
                    // The same bytes again, before the same rules.
                    let place =
                        &mut names[(key.start as usize).wrapping_mul(0x9e37_79b1) >> 16 & (NAMES - 1)];
                    if std::mem::replace(place, key) == key && !key.is_empty() {
                        continue;
                    }
                }
                let key = self.store.text(key);
                let Some(reader) = readers.reader(key) else { continue };
                let mut known = known.as_deref_mut().filter(|_| memo::repeats_in(class, key));
                let is_any = readers.any.as_ref().is_some_and(|any| std::ptr::eq(any, reader));
                if too_many && is_any && self.is_known(known.take().as_deref(), reader, text) {
                    continue;
                }
                if known.is_some() || !is_any {
                    self.scan_remembered(known, reader, text);
                    continue;
                }
                let text = self.classify(text);
                if text.classes & !byte_classes::DIGIT == 0 && text.span.len() < reader.digits_min {
                    continue;
                }
                match self.may_be_grouped(reader, text) {
                    true => self.state.work.group.push(text),
                    false => self.scan_value(reader, text),
                }
            }
            if let Some(any) = &readers.any {
                self.scan_group(any);
            }
        }
    }

    pub(super) fn scan_scalar(&mut self, known: Option<&mut Known>, (variable, reader): (Variable, &Reader)) {
        let Some(value) = self.store.scalar(variable) else { return };
        let text = self.store.data(value);
        let known = known.filter(|_| memo::repeats_as(variable, self.store.text(text)));
        self.scan_remembered(known, reader, text);
    }

    /// As [`scan_value`](Self::scan_value), with the answer in `known` if it is there, or afterwards.
    pub(super) fn scan_remembered(&mut self, known: Option<&mut Known>, reader: &Reader, value: Span) {
        let Some(known) = known.filter(|_| reader.number != 0 && value.len() <= memo::TEXT_BYTES_MAX) else {
            return self.scan_value(reader, self.classify(value));
        };
        if self.is_known(Some(&*known), reader, value) {
            return;
        }
        // All that match it, not only those that did not match others before.
        let before = self.state.take_matched(self.prefilter);
        self.scan_value(reader, self.classify(value));
        // What was not looked at to the end is not remembered: the next message would be taken for harmless.
        if !self.patterns.is_spent() {
            known.enter(reader.number, self.store.text(value), bits(&self.state.matched));
        }
        self.state.add_matched(self.prefilter, before);
    }

    /// True if what matches this value is known; it counts as matched then.
    fn is_known(&mut self, known: Option<&Known>, reader: &Reader, value: Span) -> bool {
        let found = known.and_then(|known| known.find(reader.number, self.store.text(value)));
        let candidates = found.iter().flat_map(Found::iter);
        candidates.for_each(|at| self.state.set_matched(self.prefilter, at));
        found.is_some()
    }

    pub(super) fn classify(&self, span: Span) -> Text {
        Text { span, classes: byte_classes::of(self.store.text(span)) }
    }

    /// True for short values of plain bytes that transformations leave alone: of most bodies, nearly all of them.
    fn may_be_grouped(&self, reader: &Reader, text: Text) -> bool {
        text.span.len() <= GROUPED_BYTES_MAX
            && text.classes & self.prefilter.not_plain == 0
            && self.is_untransformed(reader, text)
    }

    /// Looks at the values of the group together: what none of them can match is found out once.
    fn scan_group(&mut self, reader: &Reader) {
        let mut group = std::mem::take(&mut self.state.work.group);
        for texts in group.chunks(GROUP_MAX) {
            self.scan_texts(reader, &reader.direct, texts);
            for &text in texts.iter().filter(|text| text.span.len() >= reader.unconditional_length_min) {
                self.scan_unconditional(reader, text);
            }
        }
        group.clear();
        self.state.work.group = group;
    }

    /// Looks for the candidates that match in one of these texts.
    pub(super) fn scan_texts(&mut self, reader: &Reader, candidates: &[u64], texts: &[Text]) {
        if self.patterns.is_spent() {
            return;
        }
        let prefilter = self.prefilter;
        let classes = texts.iter().fold(0, |all, text| all | text.classes);
        let common = texts.iter().fold(u64::MAX, |all, text| all & text.classes);
        let length_max = texts.iter().map(|text| text.span.len()).max().unwrap_or(0);
        let gates = prefilter.gates(classes);
        let PrefilterState { run, matched, work, .. } = &mut *self.state;
        let Buffers { left, open, lists, any_list, joined, folded, ends, captures, .. } = work;
        gates.left(candidates, matched, classes, left);
        open.clear();
        let mut wordful = 0;
        for (at, &word) in left.iter().enumerate() {
            for bit in bits_of(word) {
                let Some(gate) = gates.conditions.get(at * 64 + bit) else { continue };
                if gate.may_admit(length_max, classes) {
                    wordful += usize::from(gate.needs_words(common));
                    open.push((at * 64 + bit) as u32);
                }
            }
        }
        let finder = &gates.finders[reader.side as usize];
        let stride = finder.list_count.div_ceil(64);
        let mut needs_words = wordful > 0;
        let all = match texts {
            _ if !needs_words => &[],
            [text] => self.store.text(text.span),
            texts => join(self.store, texts, joined, ends),
        };
        if (1..=FEW_LISTS_MAX).contains(&wordful) && all.len() >= FEW_BYTES_MIN {
            let wordful = open.iter().map(|&at| &gates.conditions[at as usize]);
            let wordful = wordful.filter(|gate| gate.needs_words(common));
            if wordful.clone().all(|gate| gate.few(finder, classes).next().is_some()) {
                FewWords::fold(all, folded);
                let is_none =
                    |gate: &Conditions| gate.few(finder, classes).any(|few| !few.may_stand_in(all, folded));
                needs_words = false;
                open.retain(|&at| {
                    let gate = &gates.conditions[at as usize];
                    let stays = !gate.needs_words(common) || !is_none(gate);
                    needs_words |= stays && gate.needs_words(common);
                    stays
                });
            }
        }
        if needs_words {
            lists.clear();
            lists.resize(stride * texts.len(), 0);
            any_list.clear();
            any_list.resize(stride, 0);
            let mut at = 0;
            self.patterns.charge(WORD_UNITS * all.len() as u64);
            finder.words.find(all, |word, place| {
                if texts.len() > 1 {
                    at += ends[at..].iter().take_while(|&&end| end as usize <= place).count();
                }
                for &list in finder.lists_of(word) {
                    let (word, bit) = (usize::from(list) / 64, 1 << (list % 64));
                    lists[at * stride + word] |= bit;
                    any_list[word] |= bit;
                }
            });
        }
        for &at in open.iter() {
            if self.patterns.is_spent() {
                break;
            }
            let candidate = &prefilter.candidates[at as usize];
            let gate = &gates.conditions[at as usize];
            // What no text of many has need not be asked of each.
            if needs_words && !gate.has_words(classes, any_list) {
                continue;
            }
            let link = &self.links[candidate.link as usize];
            let argument = link.operator.argument().and_then(|argument| argument.as_literal());
            let argument = argument.unwrap_or_default();
            let mut must_run = false;
            let matches = texts.iter().enumerate().any(|(number, text)| {
                let found = lists.get(number * stride..).unwrap_or_default();
                if !gate.admits(text, found) {
                    return false;
                }
                let bytes = self.store.text(text.span);
                if let Some(copies) = &candidate.copies {
                    return copies.passes(self.links, link, bytes, captures, self.patterns);
                }
                // Words that every match has have been looked for.
                let is_open =
                    candidate.is_pure && gate.lists.is_empty() && classes & prefilter.not_plain == 0;
                if is_open && let Some(decided) = candidate.decided_at_start(link, text, bytes, folded) {
                    return decided;
                }
                if candidate.is_pure
                    && needs_words
                    && let Some(has_none) = gate.has_none(found)
                {
                    return has_none;
                }
                if candidate.captures_misses {
                    must_run = link.operator.test(bytes, argument, false, captures, self.patterns);
                    return true;
                }
                !candidate.is_pure
                    || link.operator.test(bytes, argument, false, captures, self.patterns) != link.negated
            });
            if must_run && !self.patterns.is_spent() {
                for &other in &candidate.others {
                    set_matched(run, matched, prefilter, other as usize);
                }
            }
            if matches && !self.patterns.is_spent() {
                set_matched(run, matched, prefilter, at as usize);
            }
        }
    }
}

/// The texts with a NUL between them.
fn join<'a>(store: &Values, texts: &[Text], joined: &'a mut Vec<u8>, ends: &mut Vec<u32>) -> &'a [u8] {
    joined.clear();
    ends.clear();
    for text in texts {
        joined.extend_from_slice(store.text(text.span));
        joined.push(0);
        ends.push(joined.len() as u32);
    }
    joined
}

/// The rule of this candidate runs, if nothing is known against its other links.
fn set_matched(run: &mut [Vec<u64>; 5], matched: &mut [u64], prefilter: &Prefilter, at: usize) {
    let candidate = &prefilter.candidates[at];
    matched[at / 64] |= 1 << (at % 64);
    if candidate.others.iter().all(|&other| matched[other as usize / 64] >> (other % 64) & 1 == 1) {
        run[usize::from(candidate.phase)][candidate.step as usize / 64] |= 1 << (candidate.step % 64);
    }
}
