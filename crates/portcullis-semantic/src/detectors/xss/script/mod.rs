//! A piece of JavaScript: does it hold as code, and what would it do?
//!
//! The walk keeps to the alternation of operands and operators and to what may stand beside what; two
//! operands side by side without a line end, as in any sentence, end it. Brackets are counted, with a mark
//! for those that matter; no tree.

mod names;

use portcullis_lex::js::{Lexer, TokenKind};
use portcullis_types::Span;

use crate::detectors::xss::effects::{Effects, Outcome};
use crate::detectors::xss::names::{Group, Names};

/// Open brackets that are remembered; deeper ones only count.
const BRACKETS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bracket {
    open: u8,
    /// Of a global object: `window[`.
    of_global: bool,
    /// It names the constructor: `x['constructor']`.
    is_constructor: bool,
    /// Behind `if`, `for`, `while`: a statement may follow it.
    is_control: bool,
    /// Strings are joined in it that could be one, or a pattern's text is taken: `['ale'+'rt']`.
    joins: bool,
    /// It stands behind an operand.
    is_member: bool,
}

/// What stands before the token that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callee {
    None,
    Name(Group),
    /// A member of a global object that is computed.
    Computed,
    /// `if`, `while` and the like.
    Control,
    /// Any other operand.
    Operand,
}

struct Walk<'a> {
    names: &'a Names,
    out: Outcome,
    operand: bool,
    callee: Callee,
    after_dot: bool,
    /// The operand before may be followed by another one: `)` of `if`, `}`, a keyword.
    may_follow: bool,
    brackets: [Bracket; BRACKETS_MAX],
    depth: usize,
    /// Brackets, signs and quotes only.
    signs_only: bool,
    signs: u32,
    /// Empty arrays behind a sign: `![]`, `+[]`.
    empty_arrays: u32,
    is_behind_sign: bool,
    before: Option<TokenKind>,
    /// A string stands before, or a string and a sign behind it.
    joint: Joint,
    /// Names of functions that show or run something, less the calls of them.
    mentions: i32,
    /// A call of a timer began: what the next token is tells whether it runs text.
    in_timer: bool,
    /// A call that makes an element began.
    in_make: bool,
    /// A string with code in it, or the parenthesis behind it, is what was read last.
    is_code_text: bool,
    /// A call of a telling function began behind white space, as a word in parentheses does.
    behind_space: bool,
    end: usize,
}

/// What stands before a string that may be joined to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    None,
    String,
    Sign,
}

/// What a walk does where the text stops being code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It ends.
    End,
    /// It goes on with the next statement.
    Statement,
    /// It goes on with the next token.
    Token,
}

/// Walks `text` from `from`, where an operand may begin.
pub(in crate::detectors::xss) fn walk(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::End, names)
}

/// The same for the body of a script element, which a browser's parser may take where this one does not.
pub(in crate::detectors::xss) fn walk_script(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::Statement, names)
}

/// The same where nothing but code can stand: in an event handler, or behind `javascript:`.
pub(in crate::detectors::xss) fn walk_code(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::new(text, from), true, After::Token, names)
}

/// Walks `text` from `from`, which stands behind an operand: behind a quote that it closed.
pub(in crate::detectors::xss) fn walk_behind(text: &[u8], from: usize, names: &Names) -> Outcome {
    run(text, from, Lexer::behind_operand(text, from), false, After::End, names)
}

fn run(text: &[u8], from: usize, lexer: Lexer<'_>, operand: bool, after: After, names: &Names) -> Outcome {
    let mut walk = Walk {
        names,
        out: Outcome { holds: true, is_demo: true, ..Outcome::default() },
        operand,
        callee: if operand { Callee::None } else { Callee::Operand },
        after_dot: false,
        may_follow: false,
        brackets: [Bracket::default(); BRACKETS_MAX],
        depth: 0,
        signs_only: true,
        signs: 0,
        empty_arrays: 0,
        is_behind_sign: false,
        before: None,
        joint: Joint::None,
        mentions: 0,
        in_timer: false,
        in_make: false,
        is_code_text: false,
        behind_space: false,
        end: from,
    };
    let mut skips = false;
    for token in lexer {
        let bytes = token.span.of(text);
        walk.out.bytes_read = token.span.end as usize - from;
        if skips && !token.newline && !matches!(token.kind, TokenKind::Semicolon | TokenKind::CloseBrace) {
            continue;
        }
        skips = false;
        let ends_tag = bytes[0] == b'>' || text[token.span.start as usize..].starts_with(b"</");
        let is_end = (token.kind == TokenKind::Binary && ends_tag)
            || (token.kind == TokenKind::Other && bytes[0] == b'#');
        if is_end && walk.ends_before_markup() {
            walk.out.ends_in_markup = true;
            break;
        }
        if !walk.step(token.kind, bytes, token.newline, token.span, text.len()) {
            walk.out.holds = false;
            walk.operator();
            walk.after_dot = false;
            match after {
                After::End => break,
                After::Statement => skips = true,
                After::Token => {}
            }
            continue;
        }
        walk.out.end = token.span.end as usize;
        walk.end = walk.out.end;
    }
    walk.finish()
}

impl Walk<'_> {
    fn finish(mut self) -> Outcome {
        let effects = self.out.effects;
        if self.mentions > 0 && effects.any(Effects::RUNS) {
            self.out.effects.insert(Effects::INDIRECT);
        }
        if self.signs_only && self.signs >= 12 && self.empty_arrays >= 2 {
            self.out.effects.insert(Effects::OBFUSCATED);
        }
        self.out.holds &= self.out.tokens > 0;
        self.out
    }

    /// False if the token cannot stand here.
    fn step(&mut self, kind: TokenKind, bytes: &[u8], newline: bool, span: Span, len: usize) -> bool {
        use TokenKind as T;
        if let T::Comment { closed, line } = kind {
            self.out.ends_in_comment = line || !closed;
            return true;
        }
        self.out.ends_in_comment = false;
        self.out.ends_in_string = false;
        self.out.tokens += 1;
        if std::mem::take(&mut self.in_make)
            && bytes.get(1..7).is_some_and(|b| b.eq_ignore_ascii_case(b"script"))
        {
            self.out.effects.insert(Effects::WRITE);
        }
        if std::mem::take(&mut self.in_timer) {
            let is_text = match kind {
                T::String { .. } | T::Template { .. } => true,
                // What the page's address or name holds is a text.
                T::Name => {
                    bytes == b"name" || matches!(self.names.script(bytes), Group::Location | Group::Decode)
                }
                _ => false,
            };
            if is_text {
                self.out.effects.insert(Effects::EXECUTE);
            }
        }
        if std::mem::take(&mut self.behind_space) && kind == T::Name {
            self.out.is_worded = true;
        }
        let was_code_text = std::mem::take(&mut self.is_code_text);
        let before = self.before.replace(kind);
        let newline = newline || self.may_follow;
        self.may_follow = false;
        let is_string = matches!(kind, T::String { .. } | T::Template { opens: true, closes: true });
        if is_string && self.joint == Joint::Sign || kind == T::Regex {
            self.joins();
        }
        self.joint = match (kind, self.joint) {
            _ if is_string => Joint::String,
            (T::Sign, Joint::String) => Joint::Sign,
            _ => Joint::None,
        };
        match kind {
            T::Name => {
                self.signs_only = false;
                return self.name(bytes, newline);
            }
            T::Number | T::Regex => {
                self.signs_only = false;
                return self.literal(newline);
            }
            T::String { closed, .. } => {
                self.string(bytes, closed);
                // `(window, 'alert')`, `name == 'alert'`: the function is asked for by its name.
                if matches!(before, Some(T::Comma | T::Binary)) && self.out.effects.any(Effects::GLOBAL) {
                    self.named(bytes);
                }
                self.is_code_text = closed && before == Some(T::Open) && bytes.contains(&b'(');
                self.out.ends_in_string = !closed && span.end as usize == len;
                return self.literal(newline);
            }
            T::Template { opens: true, closes } => {
                let tags = !self.operand && !newline;
                if tags {
                    if self.callee == Callee::Name(Group::Timer) {
                        self.out.effects.insert(Effects::EXECUTE);
                    }
                    self.call();
                    self.out.effects.insert(Effects::TAGGED);
                    self.out.is_tight |= span.start as usize == self.end;
                }
                self.operand = !closes;
                self.callee = if closes { Callee::Operand } else { Callee::None };
            }
            T::Template { opens: false, closes } => {
                self.operand = !closes;
                self.callee = Callee::Operand;
            }
            T::Open => {
                let is_control = self.callee == Callee::Control;
                if !self.operand {
                    if was_code_text {
                        self.out.effects.insert(Effects::EXECUTE);
                    }
                    self.behind_space = span.start as usize > self.end;
                    self.in_timer = self.callee == Callee::Name(Group::Timer);
                    self.in_make = self.callee == Callee::Name(Group::Make);
                    self.call();
                }
                self.push(Bracket { open: b'(', is_control, ..Bracket::default() });
            }
            T::Close => {
                self.is_code_text = was_code_text;
                return self.close(b'(');
            }
            T::OpenBracket => {
                let of_global = matches!(self.callee, Callee::Name(Group::Global | Group::Location));
                self.is_behind_sign = matches!(before, Some(T::Sign | T::Prefix));
                self.push(Bracket {
                    open: b'[',
                    of_global: of_global && !self.operand,
                    is_member: !self.operand,
                    ..Bracket::default()
                });
            }
            T::CloseBracket => {
                if before == Some(T::OpenBracket) && self.is_behind_sign {
                    self.empty_arrays += 1;
                }
                return self.close(b'[');
            }
            T::OpenBrace => {
                // An object, or a block behind `)`, `=>`, `else`, `try`: what cannot be is a block behind a
                // name.
                let is_block = self.operand || newline || before == Some(T::Close);
                self.push(Bracket { open: b'{', ..Bracket::default() });
                return is_block;
            }
            T::CloseBrace => return self.close(b'{'),
            T::Semicolon => {
                self.operator();
            }
            T::Comma | T::Spread => self.operator(),
            T::Dot | T::OptionalDot => {
                if self.operand {
                    return false;
                }
                // `alert?.()`, `x?.[y]`: the callee stays.
                self.after_dot = true;
                return true;
            }
            T::Assign => {
                if self.operand {
                    return false;
                }
                self.assign();
                self.operator();
            }
            T::Arrow => {
                self.out.effects.insert(Effects::FUNCTION);
                self.operator();
                self.may_follow = true;
            }
            T::Step => {}
            T::Sign => {
                self.signs += 1;
                self.operator();
            }
            T::Prefix => {
                if !self.operand && !newline {
                    return false;
                }
                self.signs += 1;
                self.operator();
            }
            T::Binary | T::Question | T::Colon => {
                if self.operand {
                    return false;
                }
                if kind == T::Colon && self.is_telling() {
                    self.mentions -= 1;
                }
                self.operator();
            }
            T::Other => return false,
            T::Comment { .. } => {}
        }
        self.after_dot = false;
        true
    }

    /// What stands in the bracket is the name of a member, put together.
    fn joins(&mut self) {
        let bracket = self.depth.checked_sub(1).and_then(|at| self.brackets.get_mut(at));
        if let Some(bracket) = bracket.filter(|bracket| bracket.open == b'[' && bracket.is_member) {
            bracket.joins = true;
        }
    }

    /// A whole statement, or a call, which a `>` ends as it does the tag of a page.
    fn ends_before_markup(&self) -> bool {
        let ends = matches!(self.before, Some(TokenKind::Semicolon | TokenKind::Close));
        self.depth == 0 && ends && self.out.effects.any(Effects::SINKS)
    }

    fn operator(&mut self) {
        self.operand = true;
        self.callee = Callee::None;
    }

    fn push(&mut self, bracket: Bracket) {
        self.signs += 1;
        if let Some(place) = self.brackets.get_mut(self.depth) {
            *place = bracket;
        }
        self.depth += 1;
        self.operator();
        self.after_dot = false;
    }

    fn close(&mut self, open: u8) -> bool {
        self.signs += 1;
        self.after_dot = false;
        let bracket = match self.depth {
            0 => {
                // A break-out may close what the page opened, and go on with another statement.
                self.out.closes = true;
                self.operand = false;
                self.callee = Callee::Operand;
                self.may_follow = open == b'{' || open == b'(';
                return true;
            }
            depth => {
                self.depth = depth - 1;
                self.brackets.get(depth - 1).copied()
            }
        };
        let Some(bracket) = bracket else { return true };
        if bracket.open != open {
            return false;
        }
        self.operand = false;
        self.may_follow = open == b'{' || bracket.is_control;
        self.callee = match (bracket.of_global || bracket.joins, bracket.is_constructor) {
            (true, _) => Callee::Computed,
            (_, true) => Callee::Name(Group::Constructor),
            _ => Callee::Operand,
        };
        true
    }

    fn literal(&mut self, newline: bool) -> bool {
        if !self.operand && !newline {
            return false;
        }
        self.operand = false;
        self.callee = Callee::Operand;
        self.after_dot = false;
        true
    }
}
