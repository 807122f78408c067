//! Reading a text as a program: operands with operators between them, brackets that close, nothing else.
//!
//! No language's grammar is kept to; what all of them share is enough to tell a program from a sentence. Two
//! operands never stand side by side, but for a keyword, a word that is an operator, and the argument of a
//! known call without parentheses (`IO.read "x"`).

mod calls;
mod names;
mod paths;

use portcullis_lex::expr::{Lexer, Token, TokenKind};

use self::names::{is_constant, is_deep_member, is_internal, is_neighbour, loads};
use super::roots::{Root, is_operator, is_statement, is_superglobal, names_file, prints, root};
use crate::detectors::code::names::{Group, Names};
use crate::detectors::command;

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
}

/// What a reading found, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(in crate::detectors) struct Reading {
    /// Nothing if the text is no program.
    pub program: Option<Program>,
    /// Bytes and tokens that were read.
    pub bytes: usize,
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

/// Reads all of `text`, which holds no more than `tokens_max` tokens.
pub(in crate::detectors) fn read(
    text: &[u8],
    names: &Names,
    shell: &command::Names,
    tokens_max: usize,
) -> Reading {
    Reader::new(text, names, shell).run(None, tokens_max)
}

/// Reads what stands behind a quote that ended a string of a program: up to the end, a comment that takes the
/// rest away, or another quote of the kind, in which the rest is text.
pub(super) fn read_fragment(
    text: &[u8],
    quote: Option<u8>,
    names: &Names,
    shell: &command::Names,
    tokens_max: usize,
) -> Reading {
    Reader::new(text, names, shell).run(Some(quote), tokens_max)
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
    /// It calls what another call gave, or a function without a name.
    calls_result: bool,
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
    /// The name behind the first.
    second: Option<Token>,
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
    tokens: usize,
    /// No comment ends behind here, and no line: neither is looked for again.
    without_end: [bool; 2],
    /// A member with two underscores at both ends: what Python keeps below its objects.
    has_internal: bool,
    /// Some call, of a member too, is given a text.
    gives_text: bool,
    /// The text is a file or an address.
    gives_file: bool,
    /// A function that runs commands or code, or reads files, has another name; one that opens files.
    renames: bool,
    renames_open: bool,
    /// An object that everything of the machine stands below is handed on as it is: `f(process)`, `=process`.
    hands_root: bool,
    /// A member of such an object is named somewhere: `env`.
    names_member: bool,
}

impl<'r> Reader<'r> {
    fn new(text: &'r [u8], names: &'r Names, shell: &'r command::Names) -> Reader<'r> {
        Reader {
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
            tokens: 0,
            without_end: [false; 2],
            has_internal: false,
            gives_text: false,
            gives_file: false,
            renames: false,
            renames_open: false,
            hands_root: false,
            names_member: false,
        }
    }

    /// Reads the text; a `fragment` ends before the quote that opens a string again, too.
    fn run(mut self, fragment: Option<Option<u8>>, tokens_max: usize) -> Reading {
        let mut lexer = Lexer::new(self.text, 0);
        let (mut is_program, mut is_cut) = (true, false);
        while let Some(token) = lexer.next() {
            self.tokens += 1;
            is_program = self.tokens <= tokens_max;
            is_cut = fragment.is_some_and(|quote| self.ends_fragment(token, quote));
            if !is_program || is_cut {
                break;
            }
            let next = lexer.clone().next();
            if let Some(end) = self.comment_end(token, next) {
                lexer = lexer.go_on_at(end);
                continue;
            }
            is_program = self.token(token, next).is_some();
            if !is_program {
                break;
            }
            self.last = Some(token);
        }
        let is_complete = is_cut || self.depth == 0 && (!self.operand || self.is_ended());
        if self.has_internal && self.gives_text || self.hands_root && self.names_member {
            self.program.note(Act::Reaches { is_bare: false });
        }
        if self.renames && self.gives_text || self.renames_open && self.gives_file {
            self.program.note(Act::Calls { is_known: true });
        }
        Reading {
            program: (is_program && is_complete && self.has_shape).then_some(self.program),
            bytes: lexer.position(),
            tokens: self.tokens,
        }
    }

    /// The `quote` that ended a string opens one again, also as the first argument of a call that the text
    /// leaves open; or a comment follows.
    fn ends_fragment(&self, token: Token, quote: Option<u8>) -> bool {
        let is_quote = quote.is_some() && self.bytes(token).first().copied() == quote;
        let is_left_open = self.depth == 1 && self.last_is(b'(') && token.kind != TokenKind::Text;
        let reopens = is_quote && self.operand && (self.depth == 0 || is_left_open);
        let rest = &self.text[token.span.start as usize..];
        // What stands in the lines behind a comment is read where nothing was found so far.
        let does = || self.program.has_constant_call || self.program.acts.iter().any(Option::is_some);
        let cuts = || [&b"--"[..], b"/*", b"//", b"#"].iter().any(|mark| rest.starts_with(mark));
        reopens || self.depth == 0 && (!self.operand || self.is_ended()) && does() && cuts()
    }

    /// Where the comment ends that `token` begins, if one does: `#` and `//` up to the line's end, or the
    /// text's where something may end; `/*`, which the lexer reads itself where it is short.
    fn comment_end(&mut self, token: Token, next: Option<Token>) -> Option<usize> {
        let follows = |sign: u8| next.is_some_and(|next| next.is(sign) && next.span.start == token.span.end);
        let from = token.span.end as usize;
        if token.is(b'/') && follows(b'*') {
            let rest = self.text.get(from + 1..).filter(|_| !self.without_end[0])?;
            let end = memchr::memmem::find(rest, b"*/").map(|len| from + len + 3);
            self.without_end[0] = end.is_none();
            return end;
        }
        if !(token.is(b'#') || token.is(b'/') && follows(b'/')) {
            return None;
        }
        let may_end = self.depth == 0 && (!self.operand || self.is_ended());
        let line_end = match self.without_end[1] {
            false => memchr::memchr(b'\n', &self.text[from..]).map(|len| from + len + 1),
            true => None,
        };
        self.without_end[1] = line_end.is_none();
        line_end.or(may_end.then_some(self.text.len()))
    }

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

    fn token(&mut self, token: Token, next: Option<Token>) -> Option<()> {
        let is_operand = !matches!(token.kind, TokenKind::Sign(_));
        if is_operand && !self.operand && self.begins_line(token) {
            self.end_statement();
        }
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
                second: None,
                parts: 0,
                root: None,
                is_new: false,
                is_of_result: true,
            });
            path.parts += 1;
            path.last = token;
            if path.parts == 2 {
                path.second = Some(token);
            }
            self.has_internal |= is_internal(name);
            self.names_member |= name != b"process" && is_deep_member(name);
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
            // `{|f|IO.read f}`
            let is_given =
                self.depth > 0 && self.path.is_some_and(|path| path.root.is_some() && path.parts > 1);
            if is_given && self.frames[self.depth - 1].close == b'}' {
                self.program.note(Act::Reaches { is_bare: false });
                self.ends_operand();
                return Some(());
            }
            return None;
        }
        // `p=x`, `p=>x`, `p.x`: a variable that is called like one.
        let is_variable = next.is_some_and(|next| next.is(b'=') || next.is(b'.'));
        if is_statement(name) && !is_variable && !(is_called && (prints(name) || loads(name))) {
            if prints(name) && self.depth == 0 {
                self.statement = Some(token);
            }
            // The operand behind it may be missing: `exit`.
            let is_new = name == b"new";
            self.path = is_new.then_some(Path {
                first: token,
                last: token,
                second: None,
                parts: 0,
                root: None,
                is_new,
                is_of_result: false,
            });
            return Some(());
        }
        let is_new = self.path.is_some_and(|path| path.is_new && path.parts == 0);
        let is_symbol = self.last_is(b':');
        let path = Path {
            first: token,
            last: token,
            second: None,
            parts: 1,
            root: root(name),
            is_new,
            is_of_result: false,
        };
        self.item();
        if !is_called && !is_constant(name) {
            self.variable();
        }
        let is_argument = is_symbol && self.is_first_argument();
        let group = if is_symbol { self.names.get(name) } else { None };
        if matches!(group, Some(Group::Execute | Group::Eval))
            || is_argument && matches!(group, Some(Group::File | Group::Open))
        {
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
        }
        let is_element = next.is_some_and(|t| t.is(b'[') || t.is(b'{') && name == b"$ENV");
        let prints_it = self.depth > 0 || self.statement.is_some() || is_element;
        let is_all = name == b"ENV" && self.last_is(b'%') && next.is_none();
        if is_superglobal(name) && prints_it || is_all || name == b"ARGV" && self.last_is(b'@') {
            self.has_shape = true;
            self.program.note(Act::Reaches { is_bare: false });
        }
        // `f=open;f('x')`, `(lambda o:o('x'))(open)`: another name for it.
        let is_kept = self.last_is(b'=') || self.last_is(b'(') && next.is_some_and(|next| next.is(b')'));
        if is_kept && !is_called {
            match self.names.get(name) {
                Some(Group::File | Group::Execute | Group::Eval) => self.renames = true,
                Some(Group::Open) => self.renames_open = true,
                _ => {}
            }
        }
        self.assigns_variable |= name[0] == b'$' && next.is_some_and(|next| next.is(b'='));
        self.operand = false;
        self.after_call = None;
        self.path = Some(path);
        self.path_done(next);
        Some(())
    }

    /// A line begins with `token` where one statement may follow another.
    fn begins_line(&self, token: Token) -> bool {
        let in_block = self.depth.checked_sub(1).is_none_or(|at| self.frames[at].close == b'}');
        let is_next = |last: Token| {
            let space = &self.text[last.span.end as usize..token.span.start as usize];
            memchr::memchr(b'\n', space).is_some()
        };
        in_block && self.last.is_some_and(is_next)
    }

    fn end_statement(&mut self) {
        self.statement = None;
        self.operator();
    }

    /// The symbol that was read last is the first argument of a call or a later one.
    fn is_first_argument(&self) -> bool {
        let before = self.last.map_or(0, |colon| colon.span.start as usize);
        self.depth > 0 && matches!(self.text[..before].trim_ascii_end().last(), Some(b'(' | b','))
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
        self.names_member |= inner != b"process" && is_deep_member(inner);
        self.hands_root |= inner == b"process" && self.last_is(b'[');
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
                self.end_statement();
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
                if sign == b'>' && self.opens_file.take_if(|open| self.tokens - *open <= 2).is_some() {
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
                    self.opens_file = Some(self.tokens);
                }
                let is_second = self.last_is(b'=') && sign == b'=' && self.is_adjacent(token);
                self.program.compares |= self.depth == 0 && (is_second || sign == b'<' && !self.operand);
                self.operator();
            }
            _ => return None,
        }
        Some(())
    }
}
