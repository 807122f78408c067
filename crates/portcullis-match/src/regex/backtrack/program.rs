//! The tree of a pattern to instructions.

use portcullis_types::ByteSet;
use regex_syntax::hir::{ClassBytes, Look};

use super::super::RegexError;
use super::super::class;
use super::super::cursor::{error, unsupported};
use super::super::node::{Condition, Greed, Node};
use super::super::parser::Parsed;

/// Instructions of a program at most.
const OPS_MAX: usize = 1 << 20;

/// One instruction. Targets are positions in [`Program::ops`].
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// A byte of the set.
    Set(u32),
    Look(Look),
    EndOrNewline,
    /// Tries `first`, and `second` if that fails.
    Split {
        first: u32,
        second: u32,
    },
    Jump(u32),
    /// A group begins (even) or ends (odd) here.
    Save(u32),
    /// `\K`.
    Keep,
    /// Bytes of a set, `min` to `max` of them.
    Run {
        set: u32,
        min: u32,
        max: u32,
        greed: Greed,
    },
    /// A loop begins: no round yet.
    LoopInit(u32),
    /// Another round, or on to `exit`.
    Loop {
        counter: u32,
        min: u32,
        max: u32,
        greed: Greed,
        exit: u32,
    },
    /// A round begins.
    LoopEnter(u32),
    /// An atomic group or a lookaround begins.
    Mark(u32),
    /// The choices made since the mark are final.
    Cut(u32),
    /// As `Cut`, and back to where the mark was made.
    CutBack(u32),
    /// The body of a negative lookaround has matched: back to the mark, and fail.
    Refuse(u32),
    /// Goes back so many bytes.
    Back(u32),
    BackReference {
        group: u32,
        fold: bool,
    },
    /// Goes to `no` unless the group took part.
    IfGroup {
        group: u32,
        no: u32,
    },
    Fail,
    Match,
}

/// Instructions and what they refer to.
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) sets: Vec<ByteSet>,
    pub(super) groups: u32,
    pub(super) counters: u32,
    pub(super) marks: u32,
    /// A match can only begin with one of these.
    pub(super) first: Option<ByteSet>,
    /// A match can only begin at the start of the value.
    pub(super) anchored: bool,
}

impl Program {
    pub(super) fn new(parsed: &Parsed) -> Result<Program, RegexError> {
        let mut program = Program {
            ops: Vec::new(),
            sets: Vec::new(),
            groups: parsed.groups,
            counters: 0,
            marks: 0,
            first: first(&parsed.node),
            anchored: anchored(&parsed.node),
        };
        program.node(&parsed.node)?;
        program.op(Op::Match)?;
        Ok(program)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.ops.capacity() * size_of::<Op>() + self.sets.capacity() * size_of::<ByteSet>()
    }

    fn op(&mut self, op: Op) -> Result<u32, RegexError> {
        if self.ops.len() >= OPS_MAX {
            return unsupported(0, format!("the pattern compiles to more than {OPS_MAX} instructions"));
        }
        self.ops.push(op);
        Ok(self.ops.len() as u32 - 1)
    }

    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    fn set(&mut self, set: &ClassBytes) -> u32 {
        let set = byte_set(set);
        match self.sets.iter().position(|known| *known == set) {
            Some(at) => at as u32,
            None => {
                self.sets.push(set);
                self.sets.len() as u32 - 1
            }
        }
    }

    fn mark(&mut self) -> u32 {
        self.marks += 1;
        self.marks - 1
    }

    /// Recursion is as deep as groups nest, which the parser bounds.
    fn node(&mut self, node: &Node) -> Result<(), RegexError> {
        match node {
            Node::Byte(byte) => {
                let set = self.set(&class::only(*byte));
                self.op(Op::Set(set))?;
            }
            Node::Set(class) => {
                let set = self.set(class);
                self.op(Op::Set(set))?;
            }
            Node::Look(look) => {
                self.op(Op::Look(*look))?;
            }
            Node::EndOrNewline(_) => {
                self.op(Op::EndOrNewline)?;
            }
            Node::Keep => {
                self.op(Op::Keep)?;
            }
            Node::LineEnding => {
                let both = Node::Concat(vec![Node::Byte(b'\r'), Node::Byte(b'\n')]);
                let single = Node::Set(class::vertical_space());
                self.node(&Node::Atomic(Box::new(Node::Alternate(vec![both, single]))))?;
            }
            Node::Capture(index, inner) => {
                self.op(Op::Save(index * 2))?;
                self.node(inner)?;
                self.op(Op::Save(index * 2 + 1))?;
            }
            Node::Concat(nodes) => nodes.iter().try_for_each(|node| self.node(node))?,
            Node::Alternate(nodes) => self.alternate(nodes, |program, node| program.node(node))?,
            Node::Repeat { node, min, max, greed, .. } => self.repeat(node, *min, *max, *greed)?,
            Node::Atomic(inner) => self.atomic(|program| program.node(inner))?,
            Node::LookAround { behind, negated, node, offset } => {
                self.look_around(*behind, *negated, node, *offset)?;
            }
            Node::BackReference { group, fold } => {
                self.op(Op::BackReference { group: *group, fold: *fold })?;
            }
            Node::Conditional { condition, yes, no } => self.conditional(condition, yes, no)?,
        }
        Ok(())
    }

    fn alternate(
        &mut self,
        nodes: &[Node],
        each: impl Fn(&mut Self, &Node) -> Result<(), RegexError>,
    ) -> Result<(), RegexError> {
        let mut jumps = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            if at + 1 == nodes.len() {
                each(self, node)?;
                break;
            }
            let split = self.op(Op::Fail)?;
            each(self, node)?;
            jumps.push(self.op(Op::Fail)?);
            self.ops[split as usize] = Op::Split { first: split + 1, second: self.here() };
        }
        for jump in jumps {
            self.ops[jump as usize] = Op::Jump(self.here());
        }
        Ok(())
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, greed: Greed) -> Result<(), RegexError> {
        let most = max.unwrap_or(u32::MAX);
        if let Some(class) = node.single_byte() {
            let set = self.set(&class);
            self.op(Op::Run { set, min, max: most, greed })?;
            return Ok(());
        }
        if greed == Greed::Possessive {
            return self.atomic(|program| program.repeat(node, min, max, Greed::Greedy));
        }
        let counter = self.counters;
        self.counters += 1;
        self.op(Op::LoopInit(counter))?;
        let head = self.op(Op::Fail)?;
        self.op(Op::LoopEnter(counter))?;
        self.node(node)?;
        self.op(Op::Jump(head))?;
        self.ops[head as usize] = Op::Loop { counter, min, max: most, greed, exit: self.here() };
        Ok(())
    }

    fn atomic(&mut self, inner: impl FnOnce(&mut Self) -> Result<(), RegexError>) -> Result<(), RegexError> {
        let mark = self.mark();
        self.op(Op::Mark(mark))?;
        inner(self)?;
        self.op(Op::Cut(mark))?;
        Ok(())
    }

    fn look_around(
        &mut self,
        behind: bool,
        negated: bool,
        node: &Node,
        offset: usize,
    ) -> Result<(), RegexError> {
        let mark = self.mark();
        self.op(Op::Mark(mark))?;
        let split = if negated { Some(self.op(Op::Fail)?) } else { None };
        if behind {
            // Each alternative goes back by a length of its own.
            let alternatives =
                if let Node::Alternate(nodes) = node { nodes.as_slice() } else { std::slice::from_ref(node) };
            self.alternate(alternatives, |program, node| {
                let Some(length) = node.fixed_length().and_then(|length| u32::try_from(length).ok()) else {
                    return error(
                        offset,
                        "each alternative of a lookbehind must match a fixed number of bytes",
                    );
                };
                program.op(Op::Back(length))?;
                program.node(node)
            })?;
        } else {
            self.node(node)?;
        }
        match split {
            None => {
                self.op(Op::CutBack(mark))?;
            }
            Some(split) => {
                self.op(Op::Refuse(mark))?;
                self.ops[split as usize] = Op::Split { first: split + 1, second: self.here() };
            }
        }
        Ok(())
    }

    fn conditional(&mut self, condition: &Condition, yes: &Node, no: &Node) -> Result<(), RegexError> {
        match condition {
            Condition::Group(group) => {
                let test = self.op(Op::Fail)?;
                self.node(yes)?;
                let jump = self.op(Op::Fail)?;
                self.ops[test as usize] = Op::IfGroup { group: *group, no: self.here() };
                self.node(no)?;
                self.ops[jump as usize] = Op::Jump(self.here());
                Ok(())
            }
            Condition::Look(look) => {
                let Node::LookAround { behind, negated, node, offset } = look.as_ref() else {
                    return error(0, "a condition must be a lookahead or lookbehind");
                };
                // `(?:(?=x)yes|(?!x)no)`: an assertion takes the same time twice, and is decided the same
                // both times.
                let with = |negated: bool| Node::LookAround {
                    behind: *behind,
                    negated,
                    node: node.clone(),
                    offset: *offset,
                };
                let branches = [
                    Node::Concat(vec![with(*negated), yes.clone()]),
                    Node::Concat(vec![with(!*negated), no.clone()]),
                ];
                self.alternate(&branches, |program, node| program.node(node))
            }
        }
    }
}

fn byte_set(class: &ClassBytes) -> ByteSet {
    class
        .ranges()
        .iter()
        .fold(ByteSet::EMPTY, |set, range| set.union(ByteSet::range(range.start(), range.end())))
}

/// The bytes that a match begins with; `None` if it may be empty or that is not known.
fn first(node: &Node) -> Option<ByteSet> {
    match node {
        Node::Byte(byte) => Some(ByteSet::EMPTY.with(*byte)),
        Node::Set(class) => Some(byte_set(class)),
        Node::LineEnding => Some(byte_set(&class::vertical_space())),
        Node::Repeat { node, min, .. } if *min > 0 => first(node),
        Node::Capture(_, node) | Node::Atomic(node) => first(node),
        // Nodes that take no bytes may stand in front.
        Node::Concat(nodes) => {
            let is_assertion = |node: &&Node| matches!(node, Node::Look(_) | Node::LookAround { .. });
            nodes.iter().find(|node| !is_assertion(node)).and_then(first)
        }
        Node::Alternate(nodes) => {
            nodes.iter().try_fold(ByteSet::EMPTY, |set, node| Some(set.union(first(node)?)))
        }
        Node::Look(_)
        | Node::EndOrNewline(_)
        | Node::Keep
        | Node::Repeat { .. }
        | Node::LookAround { .. }
        | Node::BackReference { .. }
        | Node::Conditional { .. } => None,
    }
}

/// True if a match can only begin at the start of the value.
fn anchored(node: &Node) -> bool {
    match node {
        Node::Look(Look::Start) => true,
        Node::Capture(_, node) | Node::Atomic(node) => anchored(node),
        Node::Concat(nodes) => nodes.first().is_some_and(anchored),
        Node::Alternate(nodes) => nodes.iter().all(anchored),
        Node::Byte(_)
        | Node::Set(_)
        | Node::Look(_)
        | Node::EndOrNewline(_)
        | Node::LineEnding
        | Node::Keep
        | Node::Repeat { .. }
        | Node::LookAround { .. }
        | Node::BackReference { .. }
        | Node::Conditional { .. } => false,
    }
}
