//! Reads a PCRE pattern into a tree.
//!
//! One pass, with an explicit stack of open groups: no recursion. The first construct that needs backtracking
//! is noted with its place; what no engine here can do is refused where it stands, so that a rule author
//! learns about it at load time.

use super::cursor::{Cursor, error, number, unsupported};
use super::escape::{self, Escape, looks_like_count, looks_like_count_tail};
use super::node::{Condition, Greed, Node};
use super::{RegexError, RegexFlags, class};
use regex_syntax::hir::{ClassBytes, Look};

/// Groups may nest this deep, as PCRE's own default.
const NESTING_MAX: usize = 250;
/// PCRE's bound for `{n,m}`.
const REPEAT_MAX: u32 = 65_535;
/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) node: Node,
    /// Capture groups.
    pub(super) groups: u32,
    /// The first construct that automata cannot run: its place and what it is.
    pub(super) backtracks: Option<(usize, &'static str)>,
}

pub(super) fn parse(pattern: &[u8], flags: RegexFlags) -> Result<Parsed, RegexError> {
    let modifiers = Modifiers {
        fold: flags.case_insensitive,
        multi_line: flags.multi_line,
        dot_all: flags.dot_all,
        extended: false,
        extended_classes: false,
        ungreedy: false,
        no_capture: false,
    };
    let parser = Parser {
        cursor: Cursor::new(pattern),
        modifiers,
        groups: 0,
        highest: 0,
        names: Vec::new(),
        references: Vec::new(),
        numbers: Vec::new(),
        backtracks: None,
        frame: Frame::new(Group::Plain, 0, modifiers),
        stack: Vec::new(),
    };
    parser.run()
}

/// The modifiers that `(?imsxnU)` switch.
#[derive(Clone, Copy)]
struct Modifiers {
    fold: bool,
    multi_line: bool,
    dot_all: bool,
    extended: bool,
    /// `(?xx)`: blanks in classes are ignored too.
    extended_classes: bool,
    ungreedy: bool,
    no_capture: bool,
}

enum Group {
    Plain,
    Capture(u32),
    /// `(?|a(b)|c(d))`: every alternative numbers its groups from `first` on; `highest` is the most any
    /// reached.
    BranchReset {
        first: u32,
        highest: u32,
    },
    /// `(?>...)`.
    Atomic,
    /// `(?=`, `(?!`, `(?<=`, `(?<!`.
    LookAround {
        behind: bool,
        negated: bool,
    },
    /// `(?(1)...)`: the group it asks about.
    OnCapture(u32),
    /// `(?(?=...)...)`: the assertion is the first item.
    OnLook,
}

/// One open group, and what was read of it.
struct Frame {
    group: Group,
    /// The offset of its parenthesis.
    open: usize,
    /// The modifiers that hold again behind it.
    outer: Modifiers,
    alternatives: Vec<Node>,
    concat: Vec<Node>,
}

impl Frame {
    fn new(group: Group, open: usize, outer: Modifiers) -> Self {
        Frame { group, open, outer, alternatives: Vec::new(), concat: Vec::new() }
    }

    fn end_alternative(&mut self) {
        self.alternatives.push(Node::concat(std::mem::take(&mut self.concat)));
    }
}

struct Parser<'p> {
    cursor: Cursor<'p>,
    modifiers: Modifiers,
    /// Capture groups opened so far.
    groups: u32,
    /// The highest number that a group has.
    highest: u32,
    names: Vec<(Vec<u8>, u32)>,
    /// Names that back references use, and where: a group may have its name further on.
    references: Vec<(usize, Vec<u8>)>,
    /// Numbers that back references use, likewise.
    numbers: Vec<(usize, u32)>,
    backtracks: Option<(usize, &'static str)>,
    frame: Frame,
    stack: Vec<Frame>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Parsed, RegexError> {
        loop {
            self.skip_ignored()?;
            let start = self.cursor.offset();
            let Some(byte) = self.cursor.next() else { break };
            match byte {
                b'\\' => self.escape(start)?,
                b'[' => self.class(start)?,
                b'(' => self.open(start)?,
                b')' => self.close(start)?,
                b'|' => self.alternate(),
                b'^' if self.modifiers.multi_line => self.push(Node::Look(Look::StartLF)),
                b'^' => self.push(Node::Look(Look::Start)),
                b'$' if self.modifiers.multi_line => self.push(Node::Look(Look::EndLF)),
                b'$' => self.push(Node::Look(Look::End)),
                b'.' if self.modifiers.dot_all => self.set(class::any())?,
                b'.' => self.set(class::not_newline())?,
                b'*' | b'+' | b'?' => return error(start, NOTHING_TO_REPEAT),
                b'{' if looks_like_count_tail(self.cursor.rest()) => return error(start, NOTHING_TO_REPEAT),
                byte => self.literal(byte)?,
            }
        }
        if !self.stack.is_empty() {
            return error(self.frame.open, "this group is not closed");
        }
        self.frame.end_alternative();
        let mut node = Node::alternate(std::mem::take(&mut self.frame.alternatives));
        self.resolve(&mut node)?;
        Ok(Parsed { node, groups: self.highest, backtracks: self.backtracks })
    }

    /// Gives back references by name their numbers, and checks that every group that is referred to exists.
    fn resolve(&self, node: &mut Node) -> Result<(), RegexError> {
        if let Some((start, number)) = self.numbers.iter().find(|(_, number)| *number > self.highest) {
            return error(*start, format!("there is no group {number}"));
        }
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if let Node::BackReference { group, .. } = node
                && *group >= NAMED
                && let Some((offset, name)) = self.references.get((*group - NAMED) as usize)
            {
                let known = self.names.iter().find(|(known, _)| known == name);
                let Some((_, number)) = known else {
                    return error(*offset, "there is no group of this name");
                };
                *group = *number;
            }
            open.extend(node.children_mut());
        }
        Ok(())
    }

    fn backtracks(&mut self, offset: usize, what: &'static str) {
        self.backtracks.get_or_insert((offset, what));
    }

    fn escape(&mut self, start: usize) -> Result<(), RegexError> {
        match escape::outside_class(&mut self.cursor, start, self.groups)? {
            Escape::Byte(byte) => self.literal(byte),
            Escape::Class(class) => self.set(class),
            Escape::Look(look) => {
                self.push(Node::Look(look));
                Ok(())
            }
            Escape::LineEnding => self.atom(Node::LineEnding),
            Escape::EndOrNewline => {
                self.push(Node::EndOrNewline(start));
                Ok(())
            }
            Escape::Keep => {
                self.backtracks(start, "`\\K` (reset of the match start)");
                self.push(Node::Keep);
                Ok(())
            }
            Escape::BackReference(number) => {
                // The group may come further on: until it takes part, the reference matches nothing.
                self.numbers.push((start, number));
                self.back_reference(start, number)
            }
            Escape::RelativeReference(back) => match (self.groups + 1).checked_sub(back) {
                Some(number) if number > 0 && back > 0 => self.back_reference(start, number),
                _ => error(start, "there are not that many groups before this"),
            },
            Escape::NamedReference(name) => self.named_reference(start, name),
            Escape::QuoteStart => self.quoted(),
            Escape::QuoteEnd => Ok(()),
        }
    }

    fn back_reference(&mut self, start: usize, group: u32) -> Result<(), RegexError> {
        self.backtracks(start, "a back reference");
        self.atom(Node::BackReference { group, fold: self.modifiers.fold })
    }

    fn named_reference(&mut self, start: usize, name: Vec<u8>) -> Result<(), RegexError> {
        self.references.push((start, name));
        self.back_reference(start, NAMED + self.references.len() as u32 - 1)
    }

    /// `\Q...\E`; a quantifier behind it belongs to the last byte. Without `\E` it lasts to the pattern's
    /// end.
    fn quoted(&mut self) -> Result<(), RegexError> {
        let mut any = false;
        while !self.cursor.eat(b"\\E") {
            let Some(byte) = self.cursor.next() else { return Ok(()) };
            self.push(self.literal_node(byte));
            any = true;
        }
        if any { self.quantify() } else { Ok(()) }
    }

    fn class(&mut self, start: usize) -> Result<(), RegexError> {
        if self.cursor.eat(b"[:<:]]") {
            return self.atom(Node::Look(Look::WordStartAscii));
        }
        if self.cursor.eat(b"[:>:]]") {
            return self.atom(Node::Look(Look::WordEndAscii));
        }
        let Modifiers { fold, extended_classes, .. } = self.modifiers;
        let class = class::bracketed(&mut self.cursor, start, class::Options { fold, extended_classes })?;
        self.set(class)
    }

    fn literal(&mut self, byte: u8) -> Result<(), RegexError> {
        self.atom(self.literal_node(byte))
    }

    fn literal_node(&self, byte: u8) -> Node {
        if self.modifiers.fold && byte.is_ascii_alphabetic() {
            Node::Set(class::both_cases(byte))
        } else {
            Node::Byte(byte)
        }
    }

    fn set(&mut self, class: ClassBytes) -> Result<(), RegexError> {
        self.atom(Node::Set(class))
    }

    fn atom(&mut self, node: Node) -> Result<(), RegexError> {
        self.push(node);
        self.quantify()
    }

    fn push(&mut self, node: Node) {
        self.frame.concat.push(node);
    }

    /// Applies the quantifier that follows to the last item. What is repeated is no item for another one.
    fn quantify(&mut self) -> Result<(), RegexError> {
        self.skip_ignored()?;
        let start = self.cursor.offset();
        let (min, max) = match self.cursor.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') if looks_like_count(self.cursor.rest()) => self.counts(start)?,
            _ => return Ok(()),
        };
        self.cursor.skip(usize::from(self.cursor.offset() == start));
        let greed = if self.cursor.eat(b"+") {
            Greed::Possessive
        } else if self.cursor.eat(b"?") == self.modifiers.ungreedy {
            Greed::Greedy
        } else {
            Greed::Lazy
        };
        let Some(item) = self.frame.concat.pop() else {
            return error(start, NOTHING_TO_REPEAT);
        };
        if greed == Greed::Possessive {
            self.backtracks(start, "a possessive quantifier");
        }
        self.push(Node::Repeat { node: Box::new(item), min, max, greed, offset: start });
        Ok(())
    }

    /// Reads `{n}`, `{n,}`, `{n,m}`.
    fn counts(&mut self, start: usize) -> Result<(u32, Option<u32>), RegexError> {
        self.cursor.skip(1);
        let min = self.count(start)?;
        let max = match (self.cursor.eat(b","), self.cursor.peek()) {
            (false, _) => Some(min),
            (true, Some(b'}')) => None,
            (true, _) => Some(self.count(start)?),
        };
        self.cursor.skip(1);
        if max.is_some_and(|max| max < min) {
            return error(start, "the numbers of this quantifier are out of order");
        }
        Ok((min, max))
    }

    fn count(&mut self, start: usize) -> Result<u32, RegexError> {
        match number(self.cursor.take_while(usize::MAX, |b| b.is_ascii_digit()), 10) {
            Some(count) if count <= REPEAT_MAX => Ok(count),
            _ => error(start, format!("a repeat count may not exceed {REPEAT_MAX}")),
        }
    }

    fn alternate(&mut self) {
        self.frame.end_alternative();
        if let Group::BranchReset { first, highest } = &mut self.frame.group {
            *highest = self.groups.max(*highest);
            self.groups = *first;
        }
    }

    fn open(&mut self, start: usize) -> Result<(), RegexError> {
        if self.cursor.peek() == Some(b'*') {
            return unsupported(start, "verbs and options written `(*...)` are not supported");
        }
        if !self.cursor.eat(b"?") {
            let group = if self.modifiers.no_capture { Group::Plain } else { self.capture() };
            return self.enter(group, start, self.modifiers);
        }
        if self.cursor.eat(b":") {
            return self.enter(Group::Plain, start, self.modifiers);
        }
        if self.cursor.eat(b"|") {
            let group = Group::BranchReset { first: self.groups, highest: self.groups };
            return self.enter(group, start, self.modifiers);
        }
        if calls_a_group(self.cursor.rest()) {
            return unsupported(start, "recursion is not supported");
        }
        for (prefix, reason) in REFUSED_GROUPS {
            if self.cursor.rest().starts_with(prefix) {
                return unsupported(start, format!("{reason} is not supported"));
            }
        }
        for (prefix, behind, negated) in
            [(&b"="[..], false, false), (b"!", false, true), (b"<=", true, false), (b"<!", true, true)]
        {
            if self.cursor.eat(prefix) {
                self.backtracks(start, if behind { "a lookbehind" } else { "a lookahead" });
                return self.enter(Group::LookAround { behind, negated }, start, self.modifiers);
            }
        }
        if self.cursor.eat(b">") {
            self.backtracks(start, "an atomic group");
            return self.enter(Group::Atomic, start, self.modifiers);
        }
        if self.cursor.eat(b"P=") {
            let name = self.cursor.take_while(32, |b| b.is_ascii_alphanumeric() || b == b'_').to_vec();
            if !self.cursor.eat(b")") {
                return error(start, "this reference is not closed");
            }
            return self.named_reference(start, name);
        }
        if self.cursor.peek() == Some(b'(') {
            return self.conditional(start);
        }
        if self.cursor.rest().first() == Some(&b'C') {
            return unsupported(start, "callouts are not supported");
        }
        for (prefix, terminator) in [(&b"P<"[..], b'>'), (b"<", b'>'), (b"'", b'\'')] {
            if self.cursor.eat(prefix) {
                let name = self.cursor.take_while(32, |b| b.is_ascii_alphanumeric() || b == b'_');
                if name.first().is_none_or(u8::is_ascii_digit) || self.cursor.next() != Some(terminator) {
                    return error(start, "the group's name is empty, too long or malformed");
                }
                let group = self.capture();
                self.names.push((name.to_vec(), self.groups));
                return self.enter(group, start, self.modifiers);
            }
        }
        self.modifiers(start)
    }

    /// `(?(1)`, `(?(<name>)`, `(?('name')`, `(?(?=`; the cursor is at the second parenthesis.
    fn conditional(&mut self, start: usize) -> Result<(), RegexError> {
        self.backtracks(start, "a conditional group");
        if self.cursor.rest().starts_with(b"(?=")
            || self.cursor.rest().starts_with(b"(?!")
            || self.cursor.rest().starts_with(b"(?<")
        {
            return self.enter(Group::OnLook, start, self.modifiers);
        }
        self.cursor.skip(1);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let quote = self.cursor.eat(b"<") || self.cursor.eat(b"'");
        let name = self.cursor.take_while(32, is_name).to_vec();
        let _ = quote && (self.cursor.eat(b">") || self.cursor.eat(b"'"));
        let known = self.names.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        let number = number(&name, 10).filter(|&number| number > 0 && number <= self.highest).or(known);
        match number {
            Some(group) if self.cursor.eat(b")") => {
                self.enter(Group::OnCapture(group), start, self.modifiers)
            }
            _ => error(start, "a condition names a group before it, or is a lookahead or lookbehind"),
        }
    }

    fn capture(&mut self) -> Group {
        self.groups += 1;
        self.highest = self.highest.max(self.groups);
        Group::Capture(self.groups)
    }

    fn enter(&mut self, group: Group, start: usize, outer: Modifiers) -> Result<(), RegexError> {
        if self.stack.len() >= NESTING_MAX {
            return error(start, format!("groups are nested more than {NESTING_MAX} deep"));
        }
        let outer_frame = std::mem::replace(&mut self.frame, Frame::new(group, start, outer));
        self.stack.push(outer_frame);
        Ok(())
    }

    /// Reads `(?i)`, `(?i-s:...`, behind the question mark.
    fn modifiers(&mut self, start: usize) -> Result<(), RegexError> {
        let outer = self.modifiers;
        let mut new = outer;
        let mut on = !self.cursor.eat(b"^");
        if !on {
            on = true;
            let Modifiers { fold, multi_line, dot_all, extended, extended_classes, no_capture, .. } =
                &mut new;
            for modifier in [fold, multi_line, dot_all, extended, extended_classes, no_capture] {
                *modifier = false;
            }
        }
        loop {
            let at = self.cursor.offset();
            match self.cursor.next() {
                Some(b'i') => new.fold = on,
                Some(b'm') => new.multi_line = on,
                Some(b's') => new.dot_all = on,
                Some(b'n') => new.no_capture = on,
                Some(b'U') => new.ungreedy = on,
                Some(b'x') => {
                    new.extended = on;
                    new.extended_classes = on && self.cursor.eat(b"x");
                }
                // Duplicate names: names are not kept here.
                Some(b'J') => {}
                Some(b'-') if on => on = false,
                Some(b')') => {
                    self.modifiers = new;
                    return Ok(());
                }
                Some(b':') => {
                    self.enter(Group::Plain, start, outer)?;
                    self.modifiers = new;
                    return Ok(());
                }
                None => return error(start, "this group is not closed"),
                Some(_) => return error(at, "unknown group kind or option behind `(?`"),
            }
        }
    }

    fn close(&mut self, start: usize) -> Result<(), RegexError> {
        let Some(outer) = self.stack.pop() else {
            return error(start, "this parenthesis closes no group");
        };
        let mut frame = std::mem::replace(&mut self.frame, outer);
        frame.end_alternative();
        self.modifiers = frame.outer;
        let offset = frame.open;
        let node = match frame.group {
            Group::Capture(index) => Node::Capture(index, Box::new(Node::alternate(frame.alternatives))),
            Group::Plain => Node::alternate(frame.alternatives),
            Group::BranchReset { highest, .. } => {
                self.groups = self.groups.max(highest);
                Node::alternate(frame.alternatives)
            }
            Group::Atomic => Node::Atomic(Box::new(Node::alternate(frame.alternatives))),
            Group::LookAround { behind, negated } => {
                let node = Box::new(Node::alternate(frame.alternatives));
                Node::LookAround { behind, negated, node, offset }
            }
            Group::OnCapture(group) => choice(Condition::Group(group), frame.alternatives, offset)?,
            Group::OnLook => {
                let mut alternatives = frame.alternatives;
                let look = match alternatives.first_mut() {
                    Some(Node::Concat(nodes)) if matches!(nodes.first(), Some(Node::LookAround { .. })) => {
                        nodes.remove(0)
                    }
                    Some(first @ Node::LookAround { .. }) => {
                        std::mem::replace(first, Node::Concat(Vec::new()))
                    }
                    _ => return error(offset, "a condition must be a lookahead or lookbehind"),
                };
                choice(Condition::Look(Box::new(look)), alternatives, offset)?
            }
        };
        self.push(node);
        self.quantify()
    }

    /// Skips comments and, in extended mode, blanks: they may stand between an item and its quantifier.
    fn skip_ignored(&mut self) -> Result<(), RegexError> {
        loop {
            let start = self.cursor.offset();
            if self.cursor.eat(b"(?#") {
                self.cursor.take_while(usize::MAX, |b| b != b')');
                if self.cursor.next().is_none() {
                    return error(start, "this comment is not closed");
                }
            } else if self.modifiers.extended && self.cursor.eat(b"#") {
                self.cursor.take_while(usize::MAX, |b| b != b'\n');
            } else if self.modifiers.extended {
                self.cursor.take_while(usize::MAX, |b| matches!(b, 0x09..=0x0d | b' '));
            }
            if !self.cursor.eat(b"\\E") && !self.cursor.eat(b"\\Q\\E") && self.cursor.offset() == start {
                return Ok(());
            }
        }
    }
}

/// A conditional group of one or two alternatives.
fn choice(condition: Condition, alternatives: Vec<Node>, offset: usize) -> Result<Node, RegexError> {
    let mut alternatives = alternatives.into_iter();
    let mut next = || alternatives.next().unwrap_or(Node::Concat(Vec::new()));
    let (yes, no) = (Box::new(next()), Box::new(next()));
    if alternatives.next().is_some() {
        return error(offset, "a conditional group has at most two alternatives");
    }
    Ok(Node::Conditional { condition, yes, no })
}

const NOTHING_TO_REPEAT: &str = "this quantifier has nothing to repeat";

/// References from this number on stand for a name until it is known.
const NAMED: u32 = 1 << 30;

/// Constructs after `(?` in PCRE that need a stack of calls.
const REFUSED_GROUPS: &[(&[u8], &str)] = &[
    (b"P>", "a call of a group as a subroutine"),
    (b"&", "a call of a group as a subroutine"),
    (b"R", "recursion"),
    (b"+", "recursion"),
];

/// True behind `(?` in `(?1)` and `(?-1)`, but not in `(?-i)`.
fn calls_a_group(rest: &[u8]) -> bool {
    rest.strip_prefix(b"-").unwrap_or(rest).first().is_some_and(u8::is_ascii_digit)
}
