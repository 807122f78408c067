//! Reading a text as a program: operands with operators between them, brackets that close, nothing else.
//!
//! No language's grammar is kept to; what all of them share is enough to tell a program from a sentence. Two
//! operands never stand side by side, but for a keyword, a word that is an operator, and the argument of a
//! known call without parentheses (`IO.read "x"`).

use portcullis_lex::expr::{Lexer, Token, TokenKind};

use super::roots::{
    Root, is_of_styles, is_operator, is_statement, is_superglobal, names_file, prints, root, tells_names,
};
use crate::detectors::code::names::{Group, Names};
use crate::detectors::command;

/// Tokens of a program that are read.
const TOKENS_MAX: usize = 160;
/// Brackets in one another.
const DEPTH_MAX: usize = 24;

/// What a program does that tells something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::detectors) enum Act {
    /// It reaches what its language keeps of the machine. `is_bare`: by a call without arguments, or as all
    /// there is.
    Reaches { is_bare: bool },
    /// It calls something with a file or an address as a constant, or goes on with what such a call gives.
    /// `is_known`: something that is known to reach files, variables of the system or programs.
    Calls { is_known: bool },
    /// It prints what a call gives.
    Prints,
}

/// A text that is a program from its first byte to its last.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::detectors) struct Program {
    /// What it does, each thing once.
    pub acts: [Option<Act>; 4],
    /// It calls something with constants only.
    pub has_constant_call: bool,
    /// Outside of brackets something is compared, as in a condition.
    pub compares: bool,
    pub tokens: usize,
}

impl Program {
    fn note(&mut self, act: Act) {
        if !self.acts.contains(&Some(act))
            && let Some(place) = self.acts.iter_mut().find(|place| place.is_none())
        {
            *place = Some(act);
        }
    }
}

/// Reads all of `text`; `None` if it is no program.
pub(in crate::detectors) fn read(text: &[u8], names: &Names, shell: &command::Names) -> Option<Program> {
    let mut reader = Reader {
        text,
        names,
        shell,
        program: Program::default(),
        operand: true,
        last: None,
        path: None,
        after_call: None,
        frames: [Frame::default(); DEPTH_MAX],
        depth: 0,
        statement: None,
        assigns_variable: false,
        has_shape: false,
        opens_file: None,
    };
    let mut lexer = Lexer::new(text, 0);
    while let Some(token) = lexer.next() {
        reader.program.tokens += 1;
        if reader.program.tokens > TOKENS_MAX {
            return None;
        }
        let next = lexer.clone().next();
        if reader.begins_comment(token, next) {
            break;
        }
        reader.token(token, next)?;
        reader.last = Some(token);
    }
    let ends = reader.depth == 0 && (!reader.operand || reader.is_ended());
    (ends && reader.has_shape).then_some(reader.program)
}

/// An open bracket.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    close: u8,
    /// The name that it calls, if it does.
    callee: Option<Callee>,
    /// Nothing but constants stood in it so far.
    has_variable: bool,
    texts: u8,
    items: u8,
    /// One of the constants is a file, an address, a command.
    names_file: bool,
    /// A call stood in it that was given constants, or nothing.
    has_call: bool,
    /// A statement stands behind it: `foreach(..)`.
    is_control: bool,
}

/// What a parenthesis calls.
#[derive(Clone, Copy, Debug)]
struct Callee {
    name: Token,
    is_member: bool,
    root: Option<Root>,
    is_new: bool,
}

/// The path of names that was read last: `a.b.c`.
#[derive(Clone, Copy, Debug)]
struct Path {
    first: Token,
    last: Token,
    parts: usize,
    root: Option<Root>,
    is_new: bool,
    /// It goes on from a call's result or an element.
    is_of_result: bool,
}

struct Reader<'r> {
    text: &'r [u8],
    names: &'r Names,
    shell: &'r command::Names,
    program: Program,
    /// An operand may begin.
    operand: bool,
    last: Option<Token>,
    path: Option<Path>,
    /// The call that ended just now was of a bare name with constants, one of them a text.
    after_call: Option<bool>,
    frames: [Frame; DEPTH_MAX],
    depth: usize,
    /// The word that begins the statement, if it is one that prints.
    statement: Option<Token>,
    /// A variable of PHP was given a value.
    assigns_variable: bool,
    /// It has a call, an element, a member or a text in back-ticks: a word alone is no program.
    has_shape: bool,
    /// The token that opened a file of Perl: `<`.
    opens_file: Option<usize>,
}

impl<'r> Reader<'r> {
    fn bytes(&self, token: Token) -> &'r [u8] {
        token.span.of(self.text)
    }

    fn last_is(&self, sign: u8) -> bool {
        self.last.is_some_and(|token| token.is(sign))
    }

    /// Nothing stands between the last token and this one.
    fn is_adjacent(&self, token: Token) -> bool {
        self.last.is_some_and(|last| last.span.end == token.span.start)
    }

    fn is_ended(&self) -> bool {
        self.last.is_some_and(|last| last.is(b';') || last.is(b'}'))
    }

    fn begins_comment(&self, token: Token, next: Option<Token>) -> bool {
        let follows = |sign: u8| next.is_some_and(|next| next.is(sign) && next.span.start == token.span.end);
        let may_end = self.depth == 0 && (!self.operand || self.is_ended());
        may_end && (token.is(b'#') || token.is(b'/') && follows(b'/'))
    }

    fn token(&mut self, token: Token, next: Option<Token>) -> Option<()> {
        match token.kind {
            TokenKind::Name => self.name(token, next),
            TokenKind::Number => {
                self.operand.then_some(())?;
                self.item();
                self.ends_operand();
                Some(())
            }
            TokenKind::Text => self.quoted(token),
            TokenKind::Sign(sign) => self.sign(sign, token, next),
        }
    }

    /// A value stands in the bracket that is open.
    fn item(&mut self) {
        if let Some(frame) = self.depth.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
            frame.items = frame.items.saturating_add(1);
        }
    }

    fn variable(&mut self) {
        if let Some(frame) = self.depth.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
            frame.has_variable = true;
        }
    }

    fn ends_operand(&mut self) {
        self.operand = false;
        self.path = None;
        self.after_call = None;
    }

    fn name(&mut self, token: Token, next: Option<Token>) -> Option<()> {
        let name = self.bytes(token);
        let is_called = next.is_some_and(|next| next.is(b'(') && next.span.start == token.span.end);
        let is_member = self.last_is(b'.') && self.path_goes_on()
            || self.is_arrow()
            || self.last_is(b':') && self.path.is_some() && self.is_static();
        if is_member {
            let path = self.path.get_or_insert(Path {
                first: token,
                last: token,
                parts: 0,
                root: None,
                is_new: false,
                is_of_result: true,
            });
            path.parts += 1;
            path.last = token;
            self.operand = false;
            self.has_shape = true;
            if self.after_call.take() == Some(true) {
                self.program.note(Act::Calls { is_known: false });
            }
            self.path_done(next);
            return Some(());
        }
        if !self.operand {
            // A word that is an operator; or the argument of a call without parentheses.
            // `foreach(f()as$x)`
            if name.starts_with(b"as$") {
                return Some(());
            }
            if is_operator(name) && !self.is_adjacent(token) {
                self.program.compares |= self.depth == 0 && matches!(name, b"and" | b"or" | b"is" | b"xor");
                self.operator();
                return Some(());
            }
            return None;
        }
        if is_statement(name) && !(is_called && (prints(name) || loads(name))) {
            if prints(name) && self.depth == 0 {
                self.statement = Some(token);
            }
            // The operand behind it may be missing: `exit`.
            let is_new = name == b"new";
            self.path = is_new.then_some(Path {
                first: token,
                last: token,
                parts: 0,
                root: None,
                is_new,
                is_of_result: false,
            });
            return Some(());
        }
        let is_new = self.path.is_some_and(|path| path.is_new && path.parts == 0);
        let is_symbol = self.last_is(b':');
        let path =
            Path { first: token, last: token, parts: 1, root: root(name), is_new, is_of_result: false };
        self.item();
        if !is_called && !is_constant(name) {
            self.variable();
        }
        if is_symbol && matches!(self.names.get(name), Some(Group::Execute | Group::Eval)) {
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
        }
        let prints_it = self.depth > 0 || self.statement.is_some() || next.is_some_and(|t| t.is(b'['));
        if is_superglobal(name) && prints_it || name == b"ARGV" && self.last_is(b'@') {
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
        }
        self.assigns_variable |= name[0] == b'$' && next.is_some_and(|next| next.is(b'='));
        self.operand = false;
        self.after_call = None;
        self.path = Some(path);
        self.path_done(next);
        Some(())
    }

    /// A sign of `a->b` or `a::b`, or an operator behind an operand.
    fn is_part_of_path(&self, sign: u8) -> bool {
        let continues = sign == b'>' && self.last_is(b'-') || sign == b':' && self.last_is(b':');
        self.opens_file.is_none_or(|open| self.program.tokens - open > 2) && (!self.operand || continues)
    }

    /// The path of names ends before `next`, or goes on.
    fn path_done(&mut self, next: Option<Token>) {
        let Some(path) = self.path else { return };
        let Some(of) = path.root else { return };
        let goes_on = next.is_some_and(|next| next.is(b'.') || next.is(b'-') || next.is(b':'));
        let is_called = next.is_some_and(|next| next.is(b'('));
        let is_element = next.is_some_and(|next| next.is(b'['));
        let is_given = next.is_some_and(|next| next.kind == TokenKind::Text);
        let is_inside = self.depth > 0 || self.statement.is_some() || self.last.is_some_and(|t| t.is(b'+'));
        let counts = match of {
            _ if goes_on && !is_called => false,
            // A call is noted with its arguments.
            _ if is_called => false,
            Root::Any => path.parts > 1 || is_element,
            Root::Deep => self.is_deep(path) && (path.parts > 2 || is_inside || is_element),
            // `print(os.environ)`
            Root::Called => {
                is_element
                    || is_given && path.parts > 1
                    || is_inside && path.parts == 2 && self.bytes(path.last) == b"environ"
            }
        };
        if counts {
            self.program.note(Act::Reaches { is_bare: false });
        }
    }

    /// `process.env`, `global.process`: hosts and packages are called `global.shop.example`, too.
    fn is_deep(&self, path: Path) -> bool {
        let rest = &self.text[path.first.span.end as usize..path.last.span.end as usize];
        let member = rest.strip_prefix(b".").unwrap_or_default();
        let len = member.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        matches!(&member[..len], b"env" | b"process" | b"mainModule" | b"application" | b"report")
    }

    /// After the dot a member follows: one of a path, a call's result, an element or a text.
    fn path_goes_on(&self) -> bool {
        self.path.is_some() || self.after_call.is_some()
    }

    fn is_arrow(&self) -> bool {
        let Some(last) = self.last.filter(|last| last.is(b'>')) else { return false };
        self.text[..last.span.start as usize].ends_with(b"-")
    }

    fn is_static(&self) -> bool {
        let Some(last) = self.last else { return false };
        self.text[..last.span.start as usize].ends_with(b":")
    }

    fn quoted(&mut self, token: Token) -> Option<()> {
        let inner = token.inner(self.text);
        let is_backtick = self.bytes(token).first() == Some(&b'`');
        if !self.operand {
            // `IO.read "x"`, `exec "pr x"`
            let is_known = self.path.is_some_and(|path| {
                let group = self.names.get(self.bytes(path.last));
                path.root.is_some() && path.parts > 1
                    || path.parts == 1 && matches!(group, Some(Group::Execute | Group::Eval))
            });
            if !is_known || self.depth > 0 || is_backtick {
                return None;
            }
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
            self.ends_operand();
            return Some(());
        }
        self.item();
        let of_file = names_file(inner);
        // `include "x.php"`
        if of_file
            && !is_neighbour(inner)
            && self.last.is_some_and(|last| last.kind == TokenKind::Name && loads(self.bytes(last)))
        {
            self.has_shape = true;
            self.program.note(Act::Calls { is_known: false });
        }
        if let Some(frame) = self.depth.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
            frame.texts = frame.texts.saturating_add(1);
            frame.names_file |= of_file || self.shell.is_command_line(inner) && inner.contains(&b' ');
        }
        if is_backtick && self.is_command(inner) {
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
        }
        self.ends_operand();
        // `"x".toURL()`
        self.after_call = Some(false);
        Some(())
    }

    /// A text in back-ticks is a command where something prints it or takes it; as all there is, people mark
    /// words so.
    fn is_command(&self, inner: &[u8]) -> bool {
        let mut words = inner.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let is_name = words.next().is_some_and(|word| {
            word.len() > 1
                && word.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-./".contains(b))
        });
        let of_shell =
            |name: Token| matches!(self.bytes(name), b"echo" | b"print" | b"puts" | b"say" | b"die");
        let is_printed = self.statement.is_some_and(of_shell)
            || self.depth > 0
                && self.frames[self.depth - 1].callee.is_some_and(|callee| of_shell(callee.name));
        let is_all = self.depth == 0 && self.last.is_none();
        is_name
            && (is_printed
                || is_all
                    && (self.shell.is_command_line(inner) && self.shell.asks_system(inner)
                        || words.any(|word| names_file(word) || word.starts_with(b"-"))))
    }

    fn operator(&mut self) {
        self.operand = true;
        self.path = None;
        self.after_call = None;
    }

    fn sign(&mut self, sign: u8, token: Token, next: Option<Token>) -> Option<()> {
        match sign {
            b'(' | b'[' | b'{' => return self.open(sign, token),
            b')' | b']' | b'}' => return self.close(sign, next),
            b';' => {
                if self.operand && !self.is_ended() && self.last.is_some_and(|last| !last.is(b'{')) {
                    // `exit;`
                    self.last.filter(|last| last.kind == TokenKind::Name)?;
                }
                let in_block = self.depth.checked_sub(1).is_none_or(|at| {
                    self.frames[at].close == b'}'
                        || self.frames[at].close == b')' && self.frames[at].callee.is_none()
                });
                in_block.then_some(())?;
                self.statement = None;
                self.operator();
            }
            b',' => {
                (!self.operand).then_some(())?;
                self.operator();
            }
            b'.' => {
                // `...$_GET`
                if self.operand {
                    let is_spread = self.last_is(b'.') || next.is_some_and(|next| next.is(b'.'));
                    return is_spread.then_some(());
                }
                // A member of a path, or what joins texts in PHP: the path stays for the name that follows.
                self.operand = true;
            }
            b'?' if next.is_some_and(|next| next.is(b'.')) && !self.operand => {}
            b'!' if !self.operand && next.is_none_or(|next| next.is(b';')) => {}
            b'-' | b'>' | b':' if self.is_part_of_path(sign) => {
                // `a->b`, `a::b`; or an operator.
                let is_path = sign == b'-' && next.is_some_and(|next| next.is(b'>'))
                    || sign == b'>' && self.last_is(b'-')
                    || sign == b':' && (self.last_is(b':') || next.is_some_and(|next| next.is(b':')));
                self.operand = true;
                if !is_path {
                    self.program.compares |= sign == b'>' && self.depth == 0 && !self.last_is(b'=');
                    self.path = None;
                    self.after_call = None;
                }
            }
            b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'~' | b'!'
            | b'@' | b':' | b'?' | b'$' | b'\\' => {
                // `<>`, `<F>` of Perl: a line of a file.
                if sign == b'>' && self.opens_file.take_if(|open| self.program.tokens - *open <= 2).is_some()
                {
                    self.ends_operand();
                    return Some(());
                }
                let is_prefix = matches!(
                    sign,
                    b'+' | b'-' | b'*' | b'&' | b'~' | b'!' | b'@' | b':' | b'%' | b'$' | b'\\' | b'<'
                ) || sign == b'|' && self.last_is(b'{');
                let continues = self.is_adjacent(token)
                    && self.last.is_some_and(
                        |last| matches!(last.kind, TokenKind::Sign(sign) if b"=<>!*&|?+-/~.".contains(&sign)),
                    );
                if self.operand && !is_prefix && !continues {
                    return None;
                }
                if sign == b'<' && self.operand {
                    self.opens_file = Some(self.program.tokens);
                }
                let is_second = self.last_is(b'=') && sign == b'=' && self.is_adjacent(token);
                self.program.compares |= self.depth == 0 && (is_second || sign == b'<' && !self.operand);
                self.operator();
            }
            _ => return None,
        }
        Some(())
    }

    fn open(&mut self, sign: u8, token: Token) -> Option<()> {
        let close = match sign {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        let is_control = self.operand
            && self
                .last
                .is_some_and(|last| matches!(self.bytes(last), b"foreach" | b"for" | b"while" | b"if"));
        let mut frame = Frame { close, is_control, ..Frame::default() };
        if self.operand {
            self.item();
        } else if sign == b'{' {
            // A block behind a call or a condition.
            if self.after_call == Some(true) {
                self.program.note(Act::Calls { is_known: false });
            }
            self.last.filter(|last| last.is(b')') || last.kind == TokenKind::Name)?;
        } else {
            // A sentence has a space before its brackets.
            self.is_adjacent(token).then_some(())?;
            self.has_shape = true;
            if sign == b'(' {
                frame.callee = self.path.map(|path| Callee {
                    name: path.last,
                    is_member: (path.parts > 1 || path.is_of_result) && !path.is_new,
                    root: path.root.filter(|root| path.parts > 1 || *root == Root::Called && path.is_new),
                    is_new: path.is_new,
                });
            } else if self.depth > 0 {
                self.frames[self.depth - 1].has_variable = true;
            }
        }
        *self.frames.get_mut(self.depth)? = frame;
        self.depth += 1;
        self.operator();
        Some(())
    }

    fn close(&mut self, sign: u8, next: Option<Token>) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        let frame = self.frames[self.depth];
        let is_empty = matches!(
            self.last,
            Some(Token { kind: TokenKind::Sign(b'(' | b'[' | b'{' | b';' | b',' | b'}'), .. })
        );
        if frame.close != sign || self.operand && !is_empty {
            return None;
        }
        self.ends_operand();
        if sign == b'}' {
            // Another statement may follow.
            self.operand = next.is_some_and(|next| {
                !matches!(next.kind, TokenKind::Sign(b')' | b']' | b',' | b'.' | b';' | b'}'))
            });
            return Some(());
        }
        if frame.is_control {
            self.operand = next.is_some();
            return Some(());
        }
        let is_constant = !frame.has_variable && !frame.has_call;
        self.after_call = Some(false);
        let Some(callee) = frame.callee else {
            if let Some(outer) = self.depth.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
                outer.has_variable |= frame.has_variable;
                outer.has_call |= frame.has_call;
                outer.names_file |= frame.names_file;
                outer.texts = outer.texts.saturating_add(frame.texts);
            }
            return Some(());
        };
        self.called(callee, &frame, is_constant);
        let is_bare = !callee.is_member && !callee.is_new;
        let is_word = self.bytes(callee.name).len() > 2 && !is_of_styles(self.bytes(callee.name));
        let has_word = self.has_word(callee, &frame);
        self.after_call = Some(is_bare && is_word && is_constant && frame.texts > 0 && has_word);
        let gives = is_constant && (frame.items == 0 || frame.texts > 0 && has_word);
        let outer = self.depth.checked_sub(1).map(|at| self.frames[at]);
        let is_printed = match outer.and_then(|outer| outer.callee) {
            Some(outer) => prints(self.bytes(outer.name)),
            None => self.statement.is_some_and(|name| prints(self.bytes(name))),
        };
        if gives && is_printed && !prints(self.bytes(callee.name)) {
            self.program.note(Act::Prints);
        }
        if let Some(outer) = self.depth.checked_sub(1).and_then(|at| self.frames.get_mut(at)) {
            outer.has_call = true;
            outer.has_variable |= frame.has_variable;
        }
        Some(())
    }

    /// What a call that ended tells.
    fn called(&mut self, callee: Callee, frame: &Frame, is_constant: bool) {
        let name = self.bytes(callee.name);
        let has_texts = frame.texts > 0;
        self.program.has_constant_call |=
            is_constant && name.len() > 2 && (has_texts || frame.items == 0) && !callee.is_member;
        if callee.root.is_some() {
            let is_bare = frame.items == 0;
            // `System.out.println("x")` prints.
            if !matches!(name, b"print" | b"println" | b"printf" | b"log") {
                self.program.note(Act::Reaches { is_bare });
            }
        }
        if callee.is_member {
            return;
        }
        if frame.items == 0 && tells_names(name) {
            self.program.note(Act::Reaches { is_bare: true });
        }
        let is_word = name.len() > 2 && !is_of_styles(name);
        let of_variables = is_variable_of_system(name) && has_texts;
        let of_variable = name[0] == b'$' && name.len() > 1 && has_texts && self.assigns_variable;
        let of_known = has_texts
            && match self.names.get(name) {
                Some(Group::File | Group::Execute | Group::Eval | Group::Info | Group::Object) => true,
                // `open("x","w")`, `list(open("x"))`
                Some(Group::Open) => frame.texts > 1 || !loads(name) && (frame.names_file || self.depth > 0),
                _ => false,
            };
        let argument = &self.text[callee.name.span.end as usize..];
        let loads_neighbour = loads(name) && argument.get(2..).is_some_and(is_neighbour);
        let of_file = frame.names_file && is_word && !loads_neighbour;
        let is_known = of_known || of_variables || of_variable;
        if is_constant && !prints(name) && (of_file || is_known) || of_variable {
            self.program.note(Act::Calls { is_known });
        }
    }

    /// One of the texts has a letter, so that it is no date or number.
    fn has_word(&self, callee: Callee, frame: &Frame) -> bool {
        let from = callee.name.span.end as usize;
        let to = self.last.map_or(from, |last| last.span.end as usize);
        let has_letter = || self.text[from..to.max(from)].iter().any(u8::is_ascii_alphabetic);
        frame.texts > 0 && (frame.names_file || has_letter())
    }
}

/// A constant by its name.
fn is_constant(name: &[u8]) -> bool {
    matches!(
        name,
        b"null"
            | b"NULL"
            | b"None"
            | b"nil"
            | b"true"
            | b"false"
            | b"True"
            | b"False"
            | b"TRUE"
            | b"FALSE"
            | b"PHP_EOL"
            | b"undefined"
    )
}

/// `getenv`, `env`, `environ`: a function that gives a variable of the system.
fn is_variable_of_system(name: &[u8]) -> bool {
    matches!(
        name,
        b"getenv"
            | b"env"
            | b"environ"
            | b"get_env"
            | b"ini_get"
            | b"get_cfg_var"
            | b"constant"
            | b"setenv"
            | b"putenv"
    )
}

/// `./config.json`: a module of a program, from where it stands in its folders.
fn is_neighbour(name: &[u8]) -> bool {
    name.starts_with(b"./") || name.starts_with(b"../")
}

/// Loads what it is given, as a statement or as a function.
fn loads(name: &[u8]) -> bool {
    matches!(name, b"include" | b"include_once" | b"require" | b"require_once" | b"import")
}
