//! Path templates: which of them a path fits, those with more fixed text first.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use portcullis_types::percent_decode;

use crate::limits::SEGMENTS_MAX;

/// The templates of an API, as a tree of segments.
#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    fixed: HashMap<Vec<u8>, u32>,
    /// Segments with parameters, those with more fixed text first.
    open: Vec<(Pattern, u32)>,
    /// The template that ends here.
    end: Option<u32>,
}

/// A segment with parameters: texts around them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// One text more than parameters.
    texts: Vec<Vec<u8>>,
}

impl Pattern {
    fn fixed_bytes(&self) -> usize {
        self.texts.iter().map(Vec::len).sum()
    }

    /// The values of the parameters in a decoded segment.
    fn values(&self, segment: &[u8]) -> Option<Vec<Range<usize>>> {
        let (first, last) = (self.texts.first()?, self.texts.last()?);
        if segment.len() < first.len() + last.len() || !segment.starts_with(first) || !segment.ends_with(last)
        {
            return None;
        }
        let end = segment.len() - last.len();
        let (mut at, mut values) = (first.len(), Vec::with_capacity(self.texts.len() - 1));
        for text in &self.texts[1..self.texts.len() - 1] {
            let found = segment[at..end].windows(text.len()).position(|part| part == text.as_slice())?;
            values.push(at..at + found);
            at += found + text.len();
        }
        values.push(at..end);
        values.iter().all(|value| !value.is_empty()).then_some(values)
    }
}

/// A node that the segments so far lead to, and the values on the way: number and part of their segment.
type Active = (usize, Vec<(usize, Range<usize>)>);

/// A template that a path fits, and the values of its parameters in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fit<'p> {
    pub template: u32,
    pub values: Vec<Cow<'p, [u8]>>,
}

impl Paths {
    pub fn new() -> Paths {
        Paths { nodes: vec![Node::default()] }
    }

    /// Adds a template. `Err` tells what is wrong: another one that no path could be told apart from, or one
    /// that is malformed.
    pub fn insert(&mut self, template: &str, number: u32) -> Result<Vec<String>, Refused> {
        let (mut node, mut names) = (0usize, Vec::new());
        for segment in segments(template.as_bytes()) {
            let segment = std::str::from_utf8(segment).unwrap_or_default();
            let (texts, mut more) = parts(segment).ok_or(Refused::Malformed)?;
            names.append(&mut more);
            let next = self.nodes.len() as u32;
            let known = match texts.len() {
                1 => *self.nodes[node].fixed.entry(texts[0].clone()).or_insert(next),
                _ => {
                    let pattern = Pattern { texts };
                    let open = &mut self.nodes[node].open;
                    match open.iter().find(|(known, _)| *known == pattern) {
                        Some((_, known)) => *known,
                        None => {
                            let at = open
                                .partition_point(|(known, _)| known.fixed_bytes() >= pattern.fixed_bytes());
                            open.insert(at, (pattern, next));
                            next
                        }
                    }
                }
            };
            if known == next {
                self.nodes.push(Node::default());
            }
            node = known as usize;
        }
        match self.nodes[node].end {
            Some(known) => Err(Refused::Same(known)),
            None => {
                self.nodes[node].end = Some(number);
                Ok(names)
            }
        }
    }

    /// The templates that a path as sent fits, the most specific first. A slash that is percent-encoded ends
    /// no segment; one slash at the end counts as none.
    pub fn fits<'p>(&self, path: &'p [u8]) -> Vec<Fit<'p>> {
        let decoded: Vec<Cow<'p, [u8]>> = segments(path).take(SEGMENTS_MAX + 1).map(decode).collect();
        if decoded.len() > SEGMENTS_MAX || decoded.iter().any(|segment| leaves(segment)) {
            return Vec::new();
        }
        // Each node is reached on one way only: so many at once as there are nodes at most.
        let mut active: Vec<Active> = vec![(0, Vec::new())];
        for (number, segment) in decoded.iter().enumerate() {
            let mut next = Vec::new();
            for (node, values) in active {
                let Node { fixed, open, .. } = &self.nodes[node];
                if let Some(child) = fixed.get(&**segment) {
                    next.push((*child as usize, values.clone()));
                }
                for (pattern, child) in open {
                    if let Some(found) = pattern.values(segment) {
                        let more = found.into_iter().map(|range| (number, range));
                        next.push((*child as usize, values.iter().cloned().chain(more).collect()));
                    }
                }
            }
            active = next;
        }
        let fit = |(node, values): Active| {
            let template = self.nodes[node].end?;
            let value = |(segment, range): (usize, Range<usize>)| match &decoded[segment] {
                Cow::Borrowed(whole) => Cow::Borrowed(&whole[range]),
                Cow::Owned(whole) => Cow::Owned(whole[range].to_vec()),
            };
            Some(Fit { template, values: values.into_iter().map(value).collect() })
        };
        active.into_iter().filter_map(fit).collect()
    }
}

/// Why a template is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Every path that fits it fits this one.
    Same(u32),
    /// Braces do not match.
    Malformed,
}

/// The segments of a path behind its first slash, without an empty one at the end.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    path.split(|b| *b == b'/').filter(move |_| !path.is_empty())
}

fn decode(segment: &[u8]) -> Cow<'_, [u8]> {
    match segment.contains(&b'%') {
        true => Cow::Owned(percent_decode(segment, false)),
        false => Cow::Borrowed(segment),
    }
}

/// True for segments by which a path leads elsewhere once more is decoded.
fn leaves(segment: &[u8]) -> bool {
    let is_dots = |part: &[u8]| part == b"." || part == b"..";
    segment.split(|b| matches!(b, b'/' | b'\\')).any(is_dots)
}

/// A segment's texts and the names of the parameters between them.
fn parts(segment: &str) -> Option<(Vec<Vec<u8>>, Vec<String>)> {
    let (mut texts, mut names, mut rest) = (Vec::new(), Vec::new(), segment);
    while let Some((text, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        // Two parameters without a text between them cannot be told apart.
        if name.is_empty() || name.contains('{') || text.is_empty() && !texts.is_empty() {
            return None;
        }
        texts.push(percent_decode(text.as_bytes(), false));
        names.push(name.to_owned());
        rest = behind;
    }
    if rest.contains('}') {
        return None;
    }
    texts.push(percent_decode(rest.as_bytes(), false));
    Some((texts, names))
}
