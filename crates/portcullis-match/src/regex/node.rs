//! A pattern as a tree: what it says, before an engine is chosen for it.

use regex_syntax::hir::{Class, ClassBytes, Hir, HirKind, Look, Repetition};

use super::class;

/// The order in which a repetition tries counts: greedy, lazy or possessive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    /// As much as possible first, then less.
    Greedy,
    /// As little as possible first, then more.
    Lazy,
    /// As much as possible, and never less.
    Possessive,
}

/// The condition of a conditional group.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// The group took part.
    Group(u32),
    /// The assertion holds.
    Look(Box<Node>),
}

/// A part of a pattern.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Byte(u8),
    Set(ClassBytes),
    Look(Look),
    /// `\Z`; where it stands in the pattern.
    EndOrNewline(usize),
    /// `\R`.
    LineEnding,
    /// `\K`.
    Keep,
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        offset: usize,
    },
    Capture(u32, Box<Node>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    /// `(?>...)`.
    Atomic(Box<Node>),
    LookAround {
        behind: bool,
        negated: bool,
        node: Box<Node>,
        offset: usize,
    },
    BackReference {
        group: u32,
        fold: bool,
    },
    Conditional {
        condition: Condition,
        yes: Box<Node>,
        no: Box<Node>,
    },
}

impl Node {
    pub(super) fn concat(mut nodes: Vec<Node>) -> Node {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            Some(last) => {
                nodes.push(last);
                Node::Concat(nodes)
            }
            None => Node::Concat(nodes),
        }
    }

    pub(super) fn alternate(mut nodes: Vec<Node>) -> Node {
        match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            Some(last) => {
                nodes.push(last);
                Node::Alternate(nodes)
            }
            None => Node::Concat(nodes),
        }
    }

    /// The bytes that it matches one of, if it matches exactly one byte.
    pub(super) fn single_byte(&self) -> Option<ClassBytes> {
        if let Node::Byte(byte) = self {
            Some(class::only(*byte))
        } else if let Node::Set(set) = self {
            Some(set.clone())
        } else {
            None
        }
    }

    /// The nodes directly below it, in the order of the pattern.
    pub(super) fn children_mut(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Repeat { node, .. }
            | Node::Capture(_, node)
            | Node::Atomic(node)
            | Node::LookAround { node, .. } => vec![&mut **node],
            Node::Concat(nodes) | Node::Alternate(nodes) => nodes.iter_mut().collect(),
            Node::Conditional { condition: Condition::Look(look), yes, no } => {
                vec![&mut **look, &mut **yes, &mut **no]
            }
            Node::Conditional { condition: _, yes, no } => vec![&mut **yes, &mut **no],
            Node::Byte(_)
            | Node::Set(_)
            | Node::Look(_)
            | Node::EndOrNewline(_)
            | Node::LineEnding
            | Node::Keep
            | Node::BackReference { .. } => Vec::new(),
        }
    }

    /// Returns the number of bytes it takes, if that is always the same number.
    pub(super) fn fixed_length(&self) -> Option<usize> {
        match self {
            Node::Byte(_) | Node::Set(_) => Some(1),
            Node::Look(_) | Node::EndOrNewline(_) | Node::Keep | Node::LookAround { .. } => Some(0),
            Node::LineEnding | Node::BackReference { .. } => None,
            Node::Repeat { node, min, max, .. } if *max == Some(*min) => {
                node.fixed_length()?.checked_mul(*min as usize)
            }
            Node::Repeat { .. } => None,
            Node::Capture(_, node) | Node::Atomic(node) => node.fixed_length(),
            Node::Concat(nodes) => {
                nodes.iter().try_fold(0, |sum: usize, node| sum.checked_add(node.fixed_length()?))
            }
            Node::Alternate(nodes) => {
                let first = nodes.first()?.fixed_length()?;
                nodes.iter().all(|node| node.fixed_length() == Some(first)).then_some(first)
            }
            Node::Conditional { yes, no, .. } => {
                let length = yes.fixed_length()?;
                (no.fixed_length() == Some(length)).then_some(length)
            }
        }
    }

    /// A form that automata can run and that matches wherever this one does, and elsewhere too.
    pub(super) fn superset(&self) -> Hir {
        match self {
            Node::Byte(byte) => Hir::literal([*byte]),
            Node::Set(set) => Hir::class(Class::Bytes(set.clone())),
            Node::Look(look) => Hir::look(*look),
            Node::EndOrNewline(_) | Node::Keep | Node::LookAround { .. } => Hir::empty(),
            Node::LineEnding => line_ending(),
            Node::Repeat { node, min, max, .. } => Hir::repetition(Repetition {
                min: *min,
                max: *max,
                greedy: true,
                sub: Box::new(node.superset()),
            }),
            Node::Capture(_, node) | Node::Atomic(node) => node.superset(),
            Node::Concat(nodes) => Hir::concat(nodes.iter().map(Node::superset).collect()),
            Node::Alternate(nodes) => Hir::alternation(nodes.iter().map(Node::superset).collect()),
            Node::BackReference { .. } => Hir::repetition(Repetition {
                min: 0,
                max: None,
                greedy: true,
                sub: Box::new(Hir::class(Class::Bytes(class::any()))),
            }),
            Node::Conditional { yes, no, .. } => Hir::alternation(vec![yes.superset(), no.superset()]),
        }
    }
}

/// `\R` for automata: not atomic.
pub(super) fn line_ending() -> Hir {
    let single = class::vertical_space();
    Hir::alternation(vec![Hir::literal(*b"\r\n"), Hir::class(Class::Bytes(single))])
}

/// True if `hir` matches only the empty text.
pub(super) fn is_empty(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Empty) || hir.properties().maximum_len() == Some(0)
}
