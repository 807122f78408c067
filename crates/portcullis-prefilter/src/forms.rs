//! Request time: a value in all of its forms.

use portcullis_types::Span;
use portcullis_values::TRANSFORMATION_UNITS;

use crate::readers::{Reader, Traits};
use crate::scan::{Scan, Verifier};
use crate::state::{Buffers, Classified, State};
use crate::{Prefilter, byte_classes};

/// Buffers that forms being looked at have each an upper end of.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// Nodes whose form is the text at hand.
    same: Vec<u16>,
    /// Nodes whose last transformation may act on it.
    acting: Vec<u16>,
    /// Candidates that look at it.
    candidates: Vec<u64>,
    /// Candidates that may match in what is made of it.
    possible_here: Vec<u64>,
    made: Vec<u8>,
}

/// Length of the longest value whose forms are tested by their byte classes; those of longer values have too
/// many kinds of bytes for that to rule out a match.
const CLASSES_BYTES_MAX: usize = 32;

/// The start of a form's nodes in [`Forms::same`] and [`Forms::acting`].
#[derive(Clone, Copy, Default)]
struct Frame {
    same: usize,
    acting: usize,
}

impl<V: Verifier> Scan<'_, V> {
    /// Looks at a new value.
    pub(crate) fn scan_value(&mut self, reader: &Reader, text: Classified) {
        if self.is_untransformed(reader, text) {
            let gates = self.prefilter.gates(text.classes);
            let rules_out = |few: &[u16]| gates.rule_out(few, &self.state.matched, text.classes);
            if !reader.few_direct.as_deref().is_some_and(rules_out) {
                self.scan_texts(reader, &reader.direct, &[text]);
            }
            self.scan_unconditional(reader, text);
        } else {
            self.state.buffers.forms.same.push(0);
            self.scan_form(reader, text, Frame::default());
            self.state.buffers.forms.same.clear();
        }
    }

    /// True if no transformation changes the value but those that change any.
    pub(crate) fn is_untransformed(&self, reader: &Reader, text: Classified) -> bool {
        text.classes & reader.triggers == 0
            && !Traits::of(self.values.text(text.span), text.classes, reader).has_marks()
    }

    /// Scans what transformations that change any text make of a value that the others leave alone.
    pub(crate) fn scan_unconditional(&mut self, reader: &Reader, text: Classified) {
        let long_enough = |node: &&u16| text.span.len() >= reader.nodes[usize::from(**node)].length_min;
        if text.span.len() < reader.unconditional_length_min
            || text.span.len() > CLASSES_BYTES_MAX && self.residue_rules_out_value(reader, text.span)
        {
            return;
        }
        let acting = &mut self.state.buffers.forms.acting;
        acting.extend(reader.unconditional.iter().filter(long_enough));
        if text.span.len() > CLASSES_BYTES_MAX || self.any_may_match(reader, text.span) {
            self.scan_form(reader, text, Frame::default());
        }
        self.state.buffers.forms.same.clear();
        self.state.buffers.forms.acting.clear();
    }

    /// True if nothing can match in what transformations that change any value make of this one.
    fn residue_rules_out_value(&mut self, reader: &Reader, text: Span) -> bool {
        let mut lasts = reader.unconditional.iter().map(|&node| reader.nodes[usize::from(node)].last);
        let Some((&first, last)) = reader.unconditional.first().zip(lasts.next()) else { return true };
        if lasts.any(|other| other != last) {
            return false;
        }
        let mut made = std::mem::take(&mut self.state.buffers.forms.made);
        let acted = self.transform(reader, first, text, &mut made);
        let residue_rules_out =
            acted && self.state.residue_rules_out(self.prefilter, reader, &reader.unconditional, &made);
        self.state.buffers.forms.made = made;
        residue_rules_out
    }

    /// False if a closer look at what the nodes of `acting`, of which none has an ancestor that acts, make of
    /// this text cannot find anything. Of most values they make bytes without meaning.
    fn any_may_match(&mut self, reader: &Reader, text: Span) -> bool {
        let mut made = std::mem::take(&mut self.state.buffers.forms.made);
        let acting = std::mem::take(&mut self.state.buffers.forms.acting);
        // The last that was made, of what.
        let mut last = None;
        let mut may_match = false;
        for &node in &acting {
            let of = reader.nodes[usize::from(node)].last;
            if last.is_none_or(|(known, _)| known != of) {
                let acted = self.transform(reader, node, text, &mut made);
                last = Some((of, acted.then(|| byte_classes::of(&made))));
            }
            let classes = last.and_then(|(_, classes)| classes);
            may_match |= classes.is_none_or(|classes| {
                self.state.may_match(self.prefilter, reader, &[node], made.len(), classes)
                    && !self.state.residue_rules_out(self.prefilter, reader, &[node], &made)
            });
        }
        (self.state.buffers.forms.made, self.state.buffers.forms.acting) = (made, acting);
        may_match
    }

    /// Looks at the form that the nodes of `same` share, from that number on, and at what the nodes of
    /// `acting` make of it. A form that several make alike is made once. Recursion follows the length of a
    /// chain, which the plan bounds.
    fn scan_form(
        &mut self,
        reader: &Reader,
        Classified { span, classes }: Classified,
        Frame { same, acting }: Frame,
    ) {
        let width = self.prefilter.width;
        let traits = Traits::of(self.values.text(span), classes, reader);
        let frame = self.state.buffers.forms.candidates.len();
        self.state.buffers.forms.candidates.resize(frame + width, 0);
        let mut possible_here: Option<usize> = None;
        let mut next = same;
        loop {
            while let Some(&node) = self.state.buffers.forms.same.get(next) {
                next += 1;
                let node = &reader.nodes[usize::from(node)];
                let candidates = &mut self.state.buffers.forms.candidates[frame..];
                candidates.iter_mut().zip(&node.candidates).for_each(|(all, own)| *all |= own);
                for &child in &node.children {
                    let node = &reader.nodes[usize::from(child)];
                    if span.len() < node.length_min {
                        continue;
                    }
                    if !node.may_act(traits) {
                        self.state.buffers.forms.same.push(child);
                        continue;
                    }
                    let possible = classes | reader.adds;
                    let may_match = match &node.few_below {
                        _ if node.adds.is_none() => true,
                        Some(few) => {
                            !self.prefilter.gates(possible).rule_out(few, &self.state.matched, possible)
                        }
                        None => {
                            let from = *possible_here.get_or_insert_with(|| {
                                self.state.push_possible(self.prefilter, reader, possible)
                            });
                            let possible_here = &self.state.buffers.forms.possible_here[from..];
                            node.below
                                .iter()
                                .zip(possible_here)
                                .any(|(below, possible_here)| below & possible_here != 0)
                        }
                    };
                    if may_match {
                        self.state.buffers.forms.acting.push(child);
                    }
                }
            }
            let Some(&first) = self.state.buffers.forms.acting.get(acting) else { break };
            let mut made = std::mem::take(&mut self.state.buffers.forms.made);
            let acted = self.transform(reader, first, span, &mut made);
            let same = self.state.buffers.forms.take_alike(reader, first, acting);
            if acted {
                let effect = reader.nodes[usize::from(first)].effect;
                let classes = effect.and_then(|effect| effect.after(classes));
                let classes = classes.unwrap_or_else(|| byte_classes::of(&made));
                let nodes = std::mem::take(&mut self.state.buffers.forms.same);
                let may_match =
                    self.state.may_match(self.prefilter, reader, &nodes[same..], made.len(), classes)
                        && !(reader.nodes[usize::from(first)].acts_always()
                            && self.state.residue_rules_out(self.prefilter, reader, &nodes[same..], &made));
                self.state.buffers.forms.same = nodes;
                if may_match {
                    let span = self.values.push(&made);
                    let acting = self.state.buffers.forms.acting.len();
                    self.state.buffers.forms.made = std::mem::take(&mut made);
                    self.scan_form(reader, Classified { span, classes }, Frame { same, acting });
                    made = std::mem::take(&mut self.state.buffers.forms.made);
                    self.values.pop(span);
                }
                self.state.buffers.forms.same.truncate(same);
            }
            self.state.buffers.forms.made = made;
        }
        if let Some(from) = possible_here {
            self.state.buffers.forms.possible_here.truncate(from);
        }
        let mut candidates = std::mem::take(&mut self.state.buffers.forms.candidates);
        if candidates[frame..].iter().any(|&word| word != 0) {
            self.scan_texts(reader, &candidates[frame..], &[Classified { span, classes }]);
        }
        candidates.truncate(frame);
        self.state.buffers.forms.candidates = candidates;
    }

    /// True if the last transformation of `node` changed `text`; `made` is what came out.
    fn transform(&mut self, reader: &Reader, node: u16, text: Span, made: &mut Vec<u8>) -> bool {
        made.clear();
        let Some(last) = reader.nodes[usize::from(node)].last else { return false };
        if !self.verifier.charge(TRANSFORMATION_UNITS + text.len() as u64) {
            return false;
        }
        last.apply_with(self.values.text(text), self.chains.unicode_map.as_deref(), made)
    }
}

impl State {
    /// Candidates of `reader` that may match in texts of these byte classes; where they are in
    /// `possible_here`.
    fn push_possible(&mut self, prefilter: &Prefilter, reader: &Reader, classes: u64) -> usize {
        let Buffers { left, forms, .. } = &mut self.buffers;
        prefilter.gates(classes).left(&reader.nodes[0].below, &self.matched, classes, left);
        forms.possible_here.extend_from_slice(left);
        forms.possible_here.len() - left.len()
    }
}

impl State {
    /// False if no candidate can match in a form of this length with these byte classes, that of these nodes,
    /// nor in what is made of it.
    fn may_match(
        &self,
        prefilter: &Prefilter,
        reader: &Reader,
        nodes: &[u16],
        length: usize,
        classes: u64,
    ) -> bool {
        let gates = prefilter.gates(classes);
        nodes.iter().any(|&node| {
            let node = &reader.nodes[usize::from(node)];
            node.triggers_below.is_none_or(|triggers_below| triggers_below & classes != 0)
                || gates.any_left(&node.below, &self.matched, length, classes)
        })
    }
}

impl Forms {
    /// Moves the nodes of `acting`, from that number on, with the last transformation of `first` to `same`;
    /// returns their place there.
    fn take_alike(&mut self, reader: &Reader, first: u16, acting: usize) -> usize {
        let last = |node: u16| reader.nodes[usize::from(node)].last;
        let place = self.same.len();
        let (same, mut at) = (&mut self.same, 0);
        self.acting.retain(|&node| {
            at += 1;
            let is_alike = at > acting && last(node) == last(first);
            if is_alike {
                same.push(node);
            }
            !is_alike
        });
        place
    }
}
