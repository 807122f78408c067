//! Request time: from new values to the candidates that match in them.

use std::sync::Arc;

use portcullis_match::{Folded, LiteralSets};
use portcullis_types::{Sight, Span, Variable};
use portcullis_values::{Chains, Class, Fresh, Values};

use crate::gates::{Conditions, GateTable};
use crate::head_memo::BEFORE;
use crate::memo::{self, Known, Memo};
use crate::readers::{Reader, Side, bits, bits_of};
use crate::state::{Buffers, Classified, State};
use crate::{Prefilter, byte_classes};

/// Longer values are looked at alone: they have too many kinds of bytes for the company of others.
const GROUPED_BYTES_MAX: usize = 256;
/// Values that are looked at together.
const GROUP_MAX: usize = 256;
/// Names that are remembered while many are looked at; a power of two.
const NAMES: usize = 64;
/// These are many.
const REPEATS_MIN: usize = 8;
/// The cost of searching for words, for each byte; in units of about a nanosecond.
const WORD_UNITS: u64 = 3;

/// Answers for candidates that the prefilter cannot rule out, within the work that a transaction may do.
pub trait Verifier {
    /// Returns the answer of this candidate for `text`. It must depend on nothing else: answers are kept in a
    /// [`Memo`].
    fn verify(&mut self, candidate: usize, text: Text<'_>) -> Answer;

    /// Takes units of work, of about a nanosecond; false if the transaction may do no more.
    fn charge(&mut self, units: u64) -> bool;

    /// True if the transaction may do no more work: answers given from then on do not count.
    fn is_spent(&self) -> bool;
}

/// A text that a candidate may match in: a value after a transformation chain.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// It consists of [`plain_bytes`](crate::plain_bytes).
    pub is_plain: bool,
}

/// The answer of a [`Verifier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It does not match.
    NoMatch,
    /// It matches.
    Match,
    /// The rule has to run, whatever its other candidates say: all of them count as matched.
    RuleRuns,
}

/// A value is not known: true if it has come before, so that what is found of it is worth remembering.
struct HasCome(bool);

/// A scan of the values of a transaction.
#[derive(Debug)]
pub struct Scan<'a, V> {
    pub(crate) prefilter: &'a Prefilter,
    pub(crate) chains: &'a Chains,
    pub(crate) values: &'a mut Values,
    pub(crate) state: &'a mut State,
    pub(crate) verifier: V,
}

impl<'a, V: Verifier> Scan<'a, V> {
    /// `chains`: those that the prefilter was made with.
    pub fn new(
        prefilter: &'a Prefilter,
        chains: &'a Chains,
        values: &'a mut Values,
        state: &'a mut State,
        verifier: V,
    ) -> Scan<'a, V> {
        Scan { prefilter, chains, values, state, verifier }
    }

    /// Scans the values that are new since the last call. `memo`: what was found in other transactions, and
    /// the prefilter that [`new`](Self::new) was given.
    pub fn run(&mut self, memo: Option<(&Memo, &Arc<Prefilter>)>) {
        let fresh = self.prefilter.readers.read_of(self.values.take_fresh());
        if fresh == Fresh::default() {
            return;
        }
        match memo {
            Some((memo, prefilter)) => memo.with(prefilter, |known| self.scan_new(known, fresh)),
            None => self.scan_new(None, fresh),
        }
    }

    /// Scans `value` as if it was that of `variable`.
    pub fn scan_as(&mut self, variable: Variable, value: Span) {
        if let Some((_, reader)) = self.prefilter.readers.scalar(variable as usize) {
            self.scan_value(reader, self.classify(value));
        }
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
            let count = self.values.class_len(class);
            let new = self.state.see(class, count)..count;
            let too_many = new.len() > memo::VALUES_MAX;
            let mut names = (new.len() > REPEATS_MIN).then(|| [Span::default(); NAMES]);
            for at in new {
                let value = self.values.class_value(class, at);
                let (key, text) = (self.values.key(value), self.values.data(value));
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
                let key = self.values.text(key);
                let Some(reader) = readers.reader(key) else { continue };
                let mut known = known.as_deref_mut().filter(|_| memo::repeats_in(class, key));
                let is_any = readers.any.as_ref().is_some_and(|any| std::ptr::eq(any, reader));
                if too_many
                    && is_any
                    && let Some(known) = known.take()
                    && self.take_known(known, reader, text).is_ok()
                {
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
                    true => self.state.buffers.group.push(text),
                    false => self.scan_value(reader, text),
                }
            }
            if let Some(any) = &readers.any {
                self.scan_group(any);
            }
        }
    }

    pub(crate) fn scan_scalar(&mut self, known: Option<&mut Known>, (variable, reader): (Variable, &Reader)) {
        let Some(value) = self.values.scalar(variable) else { return };
        let text = self.values.data(value);
        let known = known.filter(|_| memo::repeats_as(variable, self.values.text(text)));
        self.scan_remembered(known, reader, text);
    }

    /// As [`scan_value`](Self::scan_value), with the answer in `known` if it is there, or afterwards.
    pub(crate) fn scan_remembered(&mut self, known: Option<&mut Known>, reader: &Reader, value: Span) {
        let Some(known) = known.filter(|_| reader.number != 0 && value.len() <= memo::TEXT_BYTES_MAX) else {
            return self.scan_value(reader, self.classify(value));
        };
        let Err(HasCome(remember)) = self.take_known(known, reader, value) else { return };
        // All that match it, not only those that did not match others before.
        let before = self.state.take_matched();
        self.scan_value(reader, self.classify(value));
        // A result of an unfinished look is not remembered: the next message would be taken for harmless.
        if remember && !self.verifier.is_spent() {
            known.enter(reader.number, self.values.text(value), bits(self.state.matched()));
        }
        self.state.add_matched(before);
    }

    /// Counts what is known to match this value as matched. Otherwise, whether the value has come before.
    fn take_known(&mut self, known: &mut Known, reader: &Reader, value: Span) -> Result<(), HasCome> {
        match known.find(reader.number, self.values.text(value)) {
            Sight::Known(found) => found.iter().for_each(|at| self.state.set_matched(at)),
            Sight::Again => return Err(HasCome(true)),
            Sight::New => return Err(HasCome(false)),
        }
        Ok(())
    }

    pub(crate) fn classify(&self, span: Span) -> Classified {
        Classified { span, classes: byte_classes::of(self.values.text(span)) }
    }

    /// True for short values of plain bytes that transformations leave alone: of most bodies, nearly all of
    /// them.
    fn may_be_grouped(&self, reader: &Reader, text: Classified) -> bool {
        text.span.len() <= GROUPED_BYTES_MAX
            && text.classes & self.prefilter.not_plain == 0
            && self.is_untransformed(reader, text)
    }

    /// Looks at the values of the group together: what none of them can match is found out once.
    fn scan_group(&mut self, reader: &Reader) {
        let mut group = std::mem::take(&mut self.state.buffers.group);
        for texts in group.chunks(GROUP_MAX) {
            self.scan_texts(reader, &reader.direct, texts);
            for &text in texts.iter().filter(|text| text.span.len() >= reader.unconditional_length_min) {
                self.scan_unconditional(reader, text);
            }
        }
        group.clear();
        self.state.buffers.group = group;
    }

    /// Looks for the candidates that match in one of these texts.
    pub(crate) fn scan_texts(&mut self, reader: &Reader, candidates: &[u64], texts: &[Classified]) {
        if self.verifier.is_spent() {
            return;
        }
        let texts = Texts {
            list: texts,
            side: reader.side,
            classes: texts.iter().fold(0, |all, text| all | text.classes),
            common: texts.iter().fold(u64::MAX, |all, text| all & text.classes),
        };
        let gates = self.prefilter.gates(texts.classes);
        let wordful = self.admit_by_classes(gates, candidates, &texts);
        let has_words = wordful > 0 && self.look_for_words(gates, &texts, wordful);
        self.verify_open(gates, &texts, has_words);
    }

    /// Opens the candidates that these byte classes and lengths let through; returns how many of them need
    /// words.
    fn admit_by_classes(&mut self, gates: &GateTable, candidates: &[u64], texts: &Texts<'_>) -> usize {
        let State { matched, buffers: Buffers { left, open, .. }, .. } = &mut *self.state;
        let length_max = texts.list.iter().map(|text| text.span.len()).max().unwrap_or(0);
        gates.left(candidates, matched, texts.classes, left);
        open.clear();
        let mut wordful = 0;
        for (at, &word) in left.iter().enumerate() {
            for bit in bits_of(word) {
                let Some(gate) = gates.conditions.get(at * 64 + bit) else { continue };
                if gate.may_admit(length_max, texts.classes) {
                    wordful += usize::from(gate.needs_words(texts.common));
                    open.push((at * 64 + bit) as u32);
                }
            }
        }
        wordful
    }

    /// Looks for the words of candidates: `wordful` of those that are open need some. False if none does that
    /// is left open.
    fn look_for_words(&mut self, gates: &GateTable, texts: &Texts<'_>, wordful: usize) -> bool {
        let literals = &gates.literals[texts.side as usize];
        let Buffers { open, lists, any_list, joined, folded, ends, .. } = &mut self.state.buffers;
        let all = match texts.list {
            [text] => self.values.text(text.span),
            list => join(self.values, list, joined, ends),
        };
        if LiteralSets::prefers_alone(wordful, all.len())
            && !retain_with_words(gates, literals, texts, Folded::of(all, folded), open)
        {
            return false;
        }
        let stride = literals.len().div_ceil(64);
        lists.clear();
        lists.resize(stride * texts.list.len(), 0);
        any_list.clear();
        any_list.resize(stride, 0);
        let mut at = 0;
        self.verifier.charge(WORD_UNITS * all.len() as u64);
        literals.find(all, |sets, place| {
            if texts.list.len() > 1 {
                at += ends[at..].iter().take_while(|&&end| end as usize <= place).count();
            }
            for &list in sets {
                let (word, bit) = (usize::from(list) / 64, 1 << (list % 64));
                lists[at * stride + word] |= bit;
                any_list[word] |= bit;
            }
        });
        true
    }

    /// Asks about the candidates that are open; `has_words`: their words have been looked for.
    fn verify_open(&mut self, gates: &GateTable, texts: &Texts<'_>, has_words: bool) {
        let stride = gates.literals[texts.side as usize].len().div_ceil(64);
        let is_plain = texts.classes & self.prefilter.not_plain == 0;
        let State { matched, buffers: Buffers { open, lists, any_list, .. }, .. } = &mut *self.state;
        for &at in open.iter() {
            if self.verifier.is_spent() {
                return;
            }
            let gate = &gates.conditions[at as usize];
            // Words that none of many texts has need not be searched in each.
            if has_words && !gate.has_words(texts.classes, any_list) {
                continue;
            }
            let mut answer = Answer::NoMatch;
            for (number, text) in texts.list.iter().enumerate() {
                let found = lists.get(number * stride..).unwrap_or_default();
                if !gate.admits(text, found) {
                    continue;
                }
                answer = match if has_words { gate.has_none(found) } else { None } {
                    Some(true) => Answer::Match,
                    Some(false) => Answer::NoMatch,
                    None => {
                        let bytes = self.values.text(text.span);
                        self.verifier.verify(at as usize, Text { bytes, is_plain })
                    }
                };
                if answer != Answer::NoMatch {
                    break;
                }
            }
            let rule = match answer {
                _ if self.verifier.is_spent() => return,
                Answer::NoMatch => continue,
                Answer::Match => at..at + 1,
                Answer::RuleRuns => self.prefilter.entries[at as usize].rule.clone(),
            };
            rule.for_each(|at| matched[at as usize / 64] |= 1 << (at % 64));
        }
    }
}

/// Texts that are scanned together.
struct Texts<'a> {
    list: &'a [Classified],
    side: Side,
    /// Byte classes that one of them has,
    classes: u64,
    /// and that all have.
    common: u64,
}

/// Closes candidates none of whose words is in `all`, these texts, where that is known without looking for
/// all words at once. False if none is left open that needs words.
fn retain_with_words(
    gates: &GateTable,
    literals: &LiteralSets,
    texts: &Texts<'_>,
    all: Folded<'_>,
    open: &mut Vec<u32>,
) -> bool {
    let wordful = open.iter().map(|&at| &gates.conditions[at as usize]);
    let mut wordful = wordful.filter(|gate| gate.needs_words(texts.common));
    if !wordful.all(|gate| gate.alone(literals, texts.classes).next().is_some()) {
        return true;
    }
    let has_none = |gate: &Conditions| gate.alone(literals, texts.classes).any(|set| !set.may_be_in(all));
    let mut needs_words = false;
    open.retain(|&at| {
        let gate = &gates.conditions[at as usize];
        let needs = gate.needs_words(texts.common);
        let stays = !needs || !has_none(gate);
        needs_words |= stays && needs;
        stays
    });
    needs_words
}

/// The texts with a NUL between them.
fn join<'t>(values: &Values, texts: &[Classified], joined: &'t mut Vec<u8>, ends: &mut Vec<u32>) -> &'t [u8] {
    joined.clear();
    ends.clear();
    for text in texts {
        joined.extend_from_slice(values.text(text.span));
        joined.push(0);
        ends.push(joined.len() as u32);
    }
    joined
}
