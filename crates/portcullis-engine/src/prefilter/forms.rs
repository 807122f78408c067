//! Request time: a value in all of its forms.

use portcullis_types::Span;

use crate::store::TRANSFORMATION_UNITS;

use super::readers::Traits;
use super::scan::{Scan, Sifted, Text, Work};
use super::{Sieve, Source, byte_classes};

/// Buffers that forms being looked at have each an upper end of.
#[derive(Debug, Default)]
pub(super) struct Forms {
    /// Nodes whose form is the text at hand.
    same: Vec<u16>,
    /// Nodes whose last transformation may act on it.
    acting: Vec<u16>,
    /// Candidates that look at it.
    candidates: Vec<u64>,
    /// Candidates that may match in what is made of it.
    alive: Vec<u64>,
    made: Vec<u8>,
}

/// What is made of longer values has too many kinds of bytes for a look at these to say no.
const NOISE_BYTES_MAX: usize = 32;

/// Where the nodes of a form begin in [`Forms::same`] and [`Forms::acting`].
#[derive(Clone, Copy, Default)]
struct Frame {
    same: usize,
    acting: usize,
}

impl Scan<'_> {
    /// Looks at a new value.
    pub(super) fn sift_value(&mut self, source: &Source, text: Text) {
        if self.is_calm(source, text) {
            let gates = self.sieve.gates(text.classes);
            let rules_out = |few: &[u16]| gates.rule_out(few, &self.sifted.settled, text.classes);
            if !source.few_calm.as_deref().is_some_and(rules_out) {
                self.sift_texts(source, &source.calm, &[text]);
            }
            self.sift_restless(source, text);
        } else {
            self.sifted.work.forms.same.push(0);
            self.sift_form(source, text, Frame::default());
            self.sifted.work.forms.same.clear();
        }
    }

    /// True if no transformation changes the value but those that change any.
    pub(super) fn is_calm(&self, source: &Source, text: Text) -> bool {
        text.classes & source.triggers == 0
            && !Traits::of(self.store.text(text.span), text.classes, source).has_marks()
    }

    /// Looks at what these make of a calm value.
    pub(super) fn sift_restless(&mut self, source: &Source, text: Text) {
        let long_enough = |node: &&u16| text.span.len() >= source.nodes[usize::from(**node)].length_min;
        if text.span.len() < source.restless_min
            || text.span.len() > NOISE_BYTES_MAX && self.makes_noise(source, text.span)
        {
            return;
        }
        let acting = &mut self.sifted.work.forms.acting;
        acting.extend(source.restless.iter().filter(long_enough));
        if text.span.len() > NOISE_BYTES_MAX || self.any_may_match(source, text.span) {
            self.sift_form(source, text, Frame::default());
        }
        self.sifted.work.forms.same.clear();
        self.sifted.work.forms.acting.clear();
    }

    /// True if nothing can match in what transformations that change any value make of this one.
    fn makes_noise(&mut self, source: &Source, text: Span) -> bool {
        let mut lasts = source.restless.iter().map(|&node| source.nodes[usize::from(node)].last);
        let Some((&first, last)) = source.restless.first().zip(lasts.next()) else { return true };
        if lasts.any(|other| other != last) {
            return false;
        }
        let mut made = std::mem::take(&mut self.sifted.work.forms.made);
        let acted = self.transform(source, first, text, &mut made);
        let is_noise = acted && self.sifted.is_noise(self.sieve, source, &source.restless, &made);
        self.sifted.work.forms.made = made;
        is_noise
    }

    /// False if a closer look at what the nodes of `acting`, of which none has an ancestor that acts, make of this text is in vain. Of most
    /// values they make noise.
    fn any_may_match(&mut self, source: &Source, text: Span) -> bool {
        let mut made = std::mem::take(&mut self.sifted.work.forms.made);
        let acting = std::mem::take(&mut self.sifted.work.forms.acting);
        // The last that was made, of what.
        let mut last = None;
        let mut may_match = false;
        for &node in &acting {
            let of = source.nodes[usize::from(node)].last;
            if last.is_none_or(|(known, _)| known != of) {
                let acted = self.transform(source, node, text, &mut made);
                last = Some((of, acted.then(|| byte_classes::of(&made))));
            }
            let classes = last.and_then(|(_, classes)| classes);
            may_match |= classes.is_none_or(|classes| {
                self.sifted.may_match(self.sieve, source, &[node], made.len(), classes)
                    && !self.sifted.is_noise(self.sieve, source, &[node], &made)
            });
        }
        (self.sifted.work.forms.made, self.sifted.work.forms.acting) = (made, acting);
        may_match
    }

    /// Looks at the form that the nodes of `same` share, from that number on, and at what the nodes of `acting` make of it. What
    /// several make of it alike is made once. Recursion follows the length of a chain, which the plan bounds.
    fn sift_form(&mut self, source: &Source, Text { span, classes }: Text, Frame { same, acting }: Frame) {
        let width = self.sieve.width;
        let traits = Traits::of(self.store.text(span), classes, source);
        let frame = self.sifted.work.forms.candidates.len();
        self.sifted.work.forms.candidates.resize(frame + width, 0);
        let mut alive: Option<usize> = None;
        let mut next = same;
        loop {
            while let Some(&node) = self.sifted.work.forms.same.get(next) {
                next += 1;
                let node = &source.nodes[usize::from(node)];
                let candidates = &mut self.sifted.work.forms.candidates[frame..];
                candidates.iter_mut().zip(&node.candidates).for_each(|(all, own)| *all |= own);
                for &child in &node.children {
                    let node = &source.nodes[usize::from(child)];
                    if span.len() < node.length_min {
                        continue;
                    }
                    if !node.may_act(traits) {
                        self.sifted.work.forms.same.push(child);
                        continue;
                    }
                    let possible = classes | source.adds;
                    let may_match = match &node.few_below {
                        _ if node.adds.is_none() => true,
                        Some(few) => {
                            !self.sieve.gates(possible).rule_out(few, &self.sifted.settled, possible)
                        }
                        None => {
                            let from = *alive
                                .get_or_insert_with(|| self.sifted.push_alive(self.sieve, source, possible));
                            let alive = &self.sifted.work.forms.alive[from..];
                            node.below.iter().zip(alive).any(|(below, alive)| below & alive != 0)
                        }
                    };
                    if may_match {
                        self.sifted.work.forms.acting.push(child);
                    }
                }
            }
            let Some(&first) = self.sifted.work.forms.acting.get(acting) else { break };
            let mut made = std::mem::take(&mut self.sifted.work.forms.made);
            let acted = self.transform(source, first, span, &mut made);
            let same = self.sifted.work.forms.take_alike(source, first, acting);
            if acted {
                let last = source.nodes[usize::from(first)].last;
                let classes = last.and_then(|last| byte_classes::after(last, classes));
                let classes = classes.unwrap_or_else(|| byte_classes::of(&made));
                let nodes = std::mem::take(&mut self.sifted.work.forms.same);
                let may_match =
                    self.sifted.may_match(self.sieve, source, &nodes[same..], made.len(), classes)
                        && !(source.nodes[usize::from(first)].acts_always()
                            && self.sifted.is_noise(self.sieve, source, &nodes[same..], &made));
                self.sifted.work.forms.same = nodes;
                if may_match {
                    let span = self.store.push(&made);
                    let acting = self.sifted.work.forms.acting.len();
                    self.sifted.work.forms.made = std::mem::take(&mut made);
                    self.sift_form(source, Text { span, classes }, Frame { same, acting });
                    made = std::mem::take(&mut self.sifted.work.forms.made);
                    self.store.bytes.truncate(span.start as usize);
                }
                self.sifted.work.forms.same.truncate(same);
            }
            self.sifted.work.forms.made = made;
        }
        if let Some(from) = alive {
            self.sifted.work.forms.alive.truncate(from);
        }
        let mut candidates = std::mem::take(&mut self.sifted.work.forms.candidates);
        if candidates[frame..].iter().any(|&word| word != 0) {
            self.sift_texts(source, &candidates[frame..], &[Text { span, classes }]);
        }
        candidates.truncate(frame);
        self.sifted.work.forms.candidates = candidates;
    }

    /// True if the last transformation of `node` changed `text`; `made` is what came out.
    fn transform(&mut self, source: &Source, node: u16, text: Span, made: &mut Vec<u8>) -> bool {
        made.clear();
        let Some(last) = source.nodes[usize::from(node)].last else { return false };
        if !self.patterns.charge(TRANSFORMATION_UNITS + text.len() as u64) {
            return false;
        }
        last.apply_with(self.store.text(text), self.chains.unicode_map.as_deref(), made)
    }
}

impl Sifted {
    /// Candidates of `source` that may match in texts of these byte classes; where they are in `alive`.
    fn push_alive(&mut self, sieve: &Sieve, source: &Source, classes: u64) -> usize {
        let Work { left, forms, .. } = &mut self.work;
        sieve.gates(classes).left(&source.nodes[0].below, &self.settled, classes, left);
        forms.alive.extend_from_slice(left);
        forms.alive.len() - left.len()
    }
}

impl Sifted {
    /// False if no candidate can match in a form of this length with these byte classes, that of these nodes, nor in what is made of it.
    fn may_match(&self, sieve: &Sieve, source: &Source, nodes: &[u16], length: usize, classes: u64) -> bool {
        let gates = sieve.gates(classes);
        nodes.iter().any(|&node| {
            let node = &source.nodes[usize::from(node)];
            node.stirs.is_none_or(|stirs| stirs & classes != 0)
                || gates.any_left(&node.below, &self.settled, length, classes)
        })
    }
}

impl Forms {
    /// Moves the nodes of `acting`, from that number on, with the last transformation of `first` to `same`; returns their place there.
    fn take_alike(&mut self, source: &Source, first: u16, acting: usize) -> usize {
        let last = |node: u16| source.nodes[usize::from(node)].last;
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
