//! Reads a PCRE pattern into the intermediate form that the linear-time engines compile.
//!
//! One pass, with an explicit stack of open groups: no recursion. Whatever needs backtracking is refused where it
//! stands, so that a rule author learns about it at load time.

use super::cursor::{Cursor, error, number};
use super::escape::{self, Escape, looks_like_count, looks_like_count_tail};
use super::{RegexError, RegexFlags, class};
use regex_syntax::hir::{Capture, Class, ClassBytes, Hir, Look, Repetition};

/// Groups may nest this deep, as PCRE's own default.
const NESTING_MAX: usize = 250;
/// PCRE's bound for `{n,m}`.
const REPEAT_MAX: u32 = 65_535;
/// Groups above this number are matched but not captured: `TX:0` to `TX:9` is all SecLang can hold.
const CAPTURES_MAX: u32 = 9;

pub(super) fn parse(pattern: &[u8], flags: RegexFlags) -> Result<Hir, RegexError> {
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
        frame: Frame::new(Group::Plain, 0, modifiers),
        stack: Vec::new(),
    };
    parser.run()
}

/// What `(?imsxnU)` switch.
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
    /// `(?|a(b)|c(d))`: every alternative numbers its groups from `first` on; `highest` is the most any reached.
    BranchReset {
        first: u32,
        highest: u32,
    },
}

/// One open group, and what was read of it.
struct Frame {
    group: Group,
    /// Where its parenthesis is.
    open: usize,
    /// What holds again behind it.
    outer: Modifiers,
    alternatives: Vec<Hir>,
    concat: Vec<Hir>,
    /// Offset of a `\Z` that ends the current alternative so far.
    end_z: Option<usize>,
    /// Offset of a `\Z` that ended an earlier alternative.
    earlier_z: Option<usize>,
}

impl Frame {
    fn new(group: Group, open: usize, outer: Modifiers) -> Self {
        Frame {
            group,
            open,
            outer,
            alternatives: Vec::new(),
            concat: Vec::new(),
            end_z: None,
            earlier_z: None,
        }
    }

    fn end_alternative(&mut self) {
        self.alternatives.push(Hir::concat(std::mem::take(&mut self.concat)));
        self.earlier_z = self.earlier_z.or(self.end_z.take());
    }
}

struct Parser<'p> {
    cursor: Cursor<'p>,
    modifiers: Modifiers,
    /// Capture groups opened so far.
    groups: u32,
    frame: Frame,
    stack: Vec<Frame>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Hir, RegexError> {
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
                b'^' => {
                    self.atom(Hir::look(if self.modifiers.multi_line { Look::StartLF } else { Look::Start }))?
                }
                b'$' => {
                    self.atom(Hir::look(if self.modifiers.multi_line { Look::EndLF } else { Look::End }))?
                }
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
        Ok(Hir::alternation(self.frame.alternatives))
    }

    fn escape(&mut self, start: usize) -> Result<(), RegexError> {
        match escape::outside_class(&mut self.cursor, start, self.groups)? {
            Escape::Byte(byte) => self.literal(byte),
            Escape::Class(class) => self.set(class),
            Escape::Look(look) => self.atom(Hir::look(look)),
            Escape::LineEnding => {
                let single = class::vertical_space();
                self.atom(Hir::alternation(vec![Hir::literal(*b"\r\n"), Hir::class(Class::Bytes(single))]))
            }
            Escape::EndOrNewline => {
                let newline = Hir::concat(vec![Hir::literal(*b"\n"), Hir::look(Look::End)]);
                self.push(Hir::alternation(vec![Hir::look(Look::End), newline]))?;
                self.frame.end_z = Some(start);
                self.quantify()
            }
            Escape::QuoteStart => self.quoted(),
            Escape::QuoteEnd => Ok(()),
        }
    }

    /// `\Q...\E`; a quantifier behind it belongs to the last byte. Without `\E` it lasts to the pattern's end.
    fn quoted(&mut self) -> Result<(), RegexError> {
        let mut any = false;
        while !self.cursor.eat(b"\\E") {
            let Some(byte) = self.cursor.next() else { return Ok(()) };
            self.push(self.literal_hir(byte))?;
            any = true;
        }
        if any { self.quantify() } else { Ok(()) }
    }

    fn class(&mut self, start: usize) -> Result<(), RegexError> {
        if self.cursor.eat(b"[:<:]]") {
            return self.atom(Hir::look(Look::WordStartAscii));
        }
        if self.cursor.eat(b"[:>:]]") {
            return self.atom(Hir::look(Look::WordEndAscii));
        }
        let Modifiers { fold, extended_classes, .. } = self.modifiers;
        let class = class::bracketed(&mut self.cursor, start, class::Options { fold, extended_classes })?;
        self.set(class)
    }

    fn literal(&mut self, byte: u8) -> Result<(), RegexError> {
        self.atom(self.literal_hir(byte))
    }

    fn literal_hir(&self, byte: u8) -> Hir {
        if self.modifiers.fold && byte.is_ascii_alphabetic() {
            Hir::class(Class::Bytes(class::both_cases(byte)))
        } else {
            Hir::literal([byte])
        }
    }

    fn set(&mut self, class: ClassBytes) -> Result<(), RegexError> {
        self.atom(Hir::class(Class::Bytes(class)))
    }

    fn atom(&mut self, hir: Hir) -> Result<(), RegexError> {
        self.push(hir)?;
        self.quantify()
    }

    fn push(&mut self, hir: Hir) -> Result<(), RegexError> {
        // `\Z` is rendered as "the end, or one newline and the end", which consumes what PCRE only looks at: the
        // same verdict as long as nothing behind it wants that newline.
        if let Some(offset) = self.frame.end_z
            && hir.properties().maximum_len() != Some(0)
        {
            return error(offset, "`\\Z` is only supported at the end of the pattern; use `\\z` or `$`");
        }
        self.frame.concat.push(hir);
        Ok(())
    }

    /// Applies the quantifiers that follow to the last item.
    fn quantify(&mut self) -> Result<(), RegexError> {
        loop {
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
            if self.cursor.eat(b"+") {
                return error(start, "a possessive quantifier cannot be matched in linear time");
            }
            let greedy = self.cursor.eat(b"?") == self.modifiers.ungreedy;
            let Some(item) = self.frame.concat.pop() else {
                return error(start, NOTHING_TO_REPEAT);
            };
            if self.frame.end_z.is_some() && max.is_none_or(|max| max > 1) {
                return error(start, "what ends with `\\Z` cannot be repeated");
            }
            self.frame.concat.push(Hir::repetition(Repetition { min, max, greedy, sub: Box::new(item) }));
        }
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
            return error(start, "verbs and options written `(*...)` are not supported");
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
            return error(start, "recursion cannot be matched in linear time");
        }
        for (prefix, reason) in REFUSED_GROUPS {
            if self.cursor.rest().starts_with(prefix) {
                return error(start, format!("{reason} cannot be matched in linear time"));
            }
        }
        if self.cursor.rest().first() == Some(&b'C') {
            return error(start, "callouts are not supported");
        }
        for (prefix, terminator) in [(&b"P<"[..], b'>'), (b"<", b'>'), (b"'", b'\'')] {
            if self.cursor.eat(prefix) {
                let name = self.cursor.take_while(32, |b| b.is_ascii_alphanumeric() || b == b'_');
                if name.first().is_none_or(u8::is_ascii_digit) || self.cursor.next() != Some(terminator) {
                    return error(start, "the group's name is empty, too long or malformed");
                }
                let group = self.capture();
                return self.enter(group, start, self.modifiers);
            }
        }
        self.modifiers(start)
    }

    fn capture(&mut self) -> Group {
        self.groups += 1;
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
        let body = Hir::alternation(frame.alternatives);
        let hir = match frame.group {
            Group::Capture(index) if index <= CAPTURES_MAX => {
                Hir::capture(Capture { index, name: None, sub: Box::new(body) })
            }
            Group::Plain | Group::Capture(_) => body,
            Group::BranchReset { highest, .. } => {
                self.groups = self.groups.max(highest);
                body
            }
        };
        self.push(hir)?;
        self.frame.end_z = self.frame.end_z.or(frame.earlier_z);
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

const NOTHING_TO_REPEAT: &str = "this quantifier has nothing to repeat";

/// What may follow `(?` in PCRE and needs backtracking or a stack.
const REFUSED_GROUPS: &[(&[u8], &str)] = &[
    (b"=", "a lookahead"),
    (b"!", "a lookahead"),
    (b"<=", "a lookbehind"),
    (b"<!", "a lookbehind"),
    (b">", "an atomic group"),
    (b"(", "a conditional group"),
    (b"P=", "a back reference"),
    (b"P>", "a call of a group as a subroutine"),
    (b"&", "a call of a group as a subroutine"),
    (b"R", "recursion"),
    (b"+", "recursion"),
];

/// True behind `(?` in `(?1)` and `(?-1)`, but not in `(?-i)`.
fn calls_a_group(rest: &[u8]) -> bool {
    rest.strip_prefix(b"-").unwrap_or(rest).first().is_some_and(u8::is_ascii_digit)
}
