//! Path templates: which of them a path fits, those with more fixed text first.

use std::borrow::Cow;

use portcullis_types::percent_decode;

use crate::limits::SEGMENTS_MAX;

/// The templates of an API, as a tree of segments.
#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Segments of fixed text, sorted.
    fixed: Vec<(Box<[u8]>, u32)>,
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

    /// Adds the values of the parameters in the segment at `span` of `text`; false, and nothing, if it does
    /// not fit.
    fn values(&self, text: &[u8], span: Span, values: &mut Vec<Span>) -> bool {
        let before = values.len();
        let fits = self.find(text, span, values);
        if !fits {
            values.truncate(before);
        }
        fits
    }

    fn find(&self, text: &[u8], span: Span, values: &mut Vec<Span>) -> bool {
        let [first, between @ .., last] = self.texts.as_slice() else { return false };
        let (segment, start, end) = (part(text, span), span.0 as usize, span.1 as usize);
        if segment.len() < first.len() + last.len() || !segment.starts_with(first) || !segment.ends_with(last)
        {
            return false;
        }
        let (mut at, end) = (start + first.len(), end - last.len());
        for fixed in between {
            let found = text[at..end].windows(fixed.len()).position(|part| part == fixed.as_slice());
            let Some(found) = found.filter(|found| *found > 0) else { return false };
            values.push((at as u32, (at + found) as u32));
            at += found + fixed.len();
        }
        values.push((at as u32, end as u32));
        at < end
    }
}

/// Start and end of a part of a decoded path.
type Span = (u32, u32);

/// A template that a path fits, and the values of its parameters in order.
#[derive(Debug)]
pub(crate) struct Fit<'p> {
    pub template: u32,
    path: Cow<'p, [u8]>,
    values: Vec<Span>,
}

impl Fit<'_> {
    /// The value of a parameter of the template, by its number.
    pub fn value(&self, number: usize) -> Option<&[u8]> {
        self.values.get(number).map(|span| part(&self.path, *span))
    }
}

fn part(path: &[u8], (start, end): Span) -> &[u8] {
    path.get(start as usize..end as usize).unwrap_or_default()
}

/// A node on the way through the tree, and what has been tried from there.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    node: u32,
    /// The next child to try: 0 the one of fixed text, then those with parameters.
    next: u16,
    /// The number of values before it.
    values: u16,
}

impl Paths {
    pub fn new() -> Paths {
        Paths { nodes: vec![Node::default()] }
    }

    /// Adds a template. `Err` tells what is wrong: another one that no path could be distinguished from, or
    /// one that is malformed.
    pub fn insert(&mut self, template: &str, number: u32) -> Result<Vec<String>, Refused> {
        let (mut node, mut names) = (0usize, Vec::new());
        for segment in segments(template.as_bytes()) {
            let segment = std::str::from_utf8(segment).unwrap_or_default();
            let (texts, mut more) = parts(segment).ok_or(Refused::Malformed)?;
            names.append(&mut more);
            let next = self.nodes.len() as u32;
            let known = match texts.len() {
                1 => {
                    let fixed = &mut self.nodes[node].fixed;
                    match fixed.binary_search_by(|(known, _)| (**known).cmp(&texts[0])) {
                        Ok(at) => fixed[at].1,
                        Err(at) => {
                            fixed.insert(at, (texts[0].as_slice().into(), next));
                            next
                        }
                    }
                }
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

    /// The first template that a path as sent fits and `accepts` takes, the most specific first. A slash that
    /// is percent-encoded ends no segment; one slash at the end counts as none.
    pub fn first<'p>(&self, path: &'p [u8], mut accepts: impl FnMut(u32) -> bool) -> Option<Fit<'p>> {
        let mut spans = [(0, 0); SEGMENTS_MAX];
        let (path, count) = decode(path, &mut spans)?;
        let spans = &spans[..count];
        let has_dots = memchr::memchr(b'.', &path).is_some();
        if has_dots && spans.iter().any(|span| leaves(part(&path, *span))) {
            return None;
        }
        let mut values = Vec::new();
        // One way leads to each node: no more steps than the tree has nodes.
        let mut steps = [Step::default(); SEGMENTS_MAX + 1];
        let mut depth = 0;
        loop {
            let step = &mut steps[depth];
            let node = &self.nodes[step.node as usize];
            values.truncate(step.values as usize);
            let child = match spans.get(depth) {
                None => {
                    if let Some(template) = node.end.filter(|template| accepts(*template)) {
                        return Some(Fit { template, path, values });
                    }
                    None
                }
                Some(span) => node.child(&path, *span, &mut step.next, &mut values),
            };
            match child {
                Some(node) => {
                    depth += 1;
                    steps[depth] = Step { node, next: 0, values: values.len() as u16 };
                }
                None => depth = depth.checked_sub(1)?,
            }
        }
    }
}

impl Node {
    /// The next child that the segment at `span` of `path` fits.
    fn child(&self, path: &[u8], span: Span, next: &mut u16, values: &mut Vec<Span>) -> Option<u32> {
        if *next == 0 {
            *next = 1;
            let segment = part(path, span);
            if let Ok(at) = self.fixed.binary_search_by(|(known, _)| (**known).cmp(segment)) {
                return Some(self.fixed[at].1);
            }
        }
        while let Some((pattern, child)) = self.open.get(*next as usize - 1) {
            *next += 1;
            if pattern.values(path, span, values) {
                return Some(*child);
            }
        }
        None
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

/// The path with its segments decoded, and their number; none if there are too many.
fn decode<'p>(path: &'p [u8], spans: &mut [Span; SEGMENTS_MAX]) -> Option<(Cow<'p, [u8]>, usize)> {
    let mut count = 0;
    if memchr::memchr(b'%', path).is_none() {
        let mut start = usize::from(path.first() == Some(&b'/'));
        let end = path.len() - usize::from(path.len() > start && path.last() == Some(&b'/'));
        while start < end || start == end && count > 0 {
            let rest = &path[start..end];
            let length = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            *spans.get_mut(count)? = (start as u32, (start + length) as u32);
            count += 1;
            start += length + 1;
        }
        return Some((Cow::Borrowed(path), count));
    }
    let mut decoded = Vec::with_capacity(path.len());
    for segment in segments(path) {
        let start = decoded.len();
        decoded.extend_from_slice(&percent_decode(segment, false));
        *spans.get_mut(count)? = (start as u32, decoded.len() as u32);
        count += 1;
    }
    Some((Cow::Owned(decoded), count))
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
        // Two parameters without a text between them cannot be separated.
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
