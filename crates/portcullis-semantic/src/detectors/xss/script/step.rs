//! The step of a walk over one token: whether it may stand there, and what it does.

use portcullis_lex::js::{Token, TokenKind};
use portcullis_types::Span;

use super::{Bracket, Callee, Joint, Walk};
use crate::detectors::xss::effects::Effects;
use crate::detectors::xss::names::Group;

impl Walk<'_> {
    /// Takes `token`, which is `bytes`, and with `is_last` ends the text. False if it cannot stand here.
    pub(super) fn step(&mut self, token: Token, bytes: &[u8], is_last: bool) -> bool {
        use TokenKind as T;
        let kind = token.kind;
        if let T::Comment { closed, line } = kind {
            self.out.ends_in_comment = line || !closed;
            return true;
        }
        self.out.ends_in_comment = false;
        self.out.ends_in_string = false;
        self.out.tokens += 1;
        self.begin_argument(kind, bytes);
        let was_code_text = std::mem::take(&mut self.is_code_text);
        let before = self.before.replace(kind);
        let newline = token.newline || self.may_follow;
        self.may_follow = false;
        self.join_strings(kind);
        if matches!(kind, T::Name | T::Number | T::Regex) {
            self.signs_only = false;
        }
        let holds = match kind {
            T::Name => self.name(bytes, newline),
            T::Number | T::Regex => self.literal(newline),
            T::String { closed, .. } => {
                self.string_literal(bytes, closed, before);
                self.out.ends_in_string = !closed && is_last;
                self.literal(newline)
            }
            T::Template { opens, closes } => self.template(token.span, opens, closes, newline),
            T::Open => self.open(token.span, was_code_text),
            T::Close => {
                self.is_code_text = was_code_text;
                self.close(b'(')
            }
            T::OpenBracket => self.open_bracket(before),
            T::CloseBracket => {
                if before == Some(T::OpenBracket) && self.is_after_sign {
                    self.empty_arrays += 1;
                }
                self.close(b'[')
            }
            T::OpenBrace => {
                // An object, or a block after `)`, `=>`, `else`, `try`; a block cannot follow a name.
                let is_block = self.operand
                    || newline
                    || before == Some(T::Close)
                    || self.callee == Callee::Control && self.in_class;
                self.in_class = false;
                self.push(Bracket { open: b'{', ..Bracket::default() });
                is_block
            }
            T::CloseBrace => self.close(b'{'),
            // `alert?.()`, `x?.[y]`: the callee stays.
            T::Dot | T::OptionalDot => !self.operand,
            T::Step | T::Comment { .. } => true,
            T::Other => false,
            T::Semicolon
            | T::Comma
            | T::Spread
            | T::Assign
            | T::Arrow
            | T::Sign
            | T::Prefix
            | T::Binary
            | T::Question
            | T::Colon => self.operator_sign(kind, newline),
        };
        self.after_dot = matches!(kind, T::Dot | T::OptionalDot);
        holds
    }

    /// Notes what the first token after a parenthesis tells about the call.
    fn begin_argument(&mut self, kind: TokenKind, bytes: &[u8]) {
        use TokenKind as T;
        if std::mem::take(&mut self.in_make)
            && bytes.get(1..7).is_some_and(|b| b.eq_ignore_ascii_case(b"script"))
        {
            self.out.effects.insert(Effects::WRITE);
        }
        if std::mem::take(&mut self.in_timer) {
            // The page's address or name holds a text.
            let holds_text =
                || bytes == b"name" || matches!(self.names.script(bytes), Group::Location | Group::Decode);
            if matches!(kind, T::String { .. } | T::Template { .. }) || kind == T::Name && holds_text() {
                self.out.effects.insert(Effects::EXECUTE);
            }
        }
        if std::mem::take(&mut self.after_space) && kind == T::Name {
            self.out.is_worded = true;
        }
    }

    /// Keeps track of strings that a sign joins, and marks the bracket that they stand in.
    fn join_strings(&mut self, kind: TokenKind) {
        use TokenKind as T;
        let is_string = matches!(kind, T::String { .. } | T::Template { opens: true, closes: true });
        if is_string && self.joint == Joint::Sign || kind == T::Regex {
            self.joins();
        }
        self.joint = match (kind, self.joint) {
            _ if is_string => Joint::String,
            (T::Sign, Joint::String) => Joint::Sign,
            _ => Joint::None,
        };
    }

    /// The bracket holds the name of a member, put together.
    fn joins(&mut self) {
        let bracket = self.depth.checked_sub(1).and_then(|at| self.brackets.get_mut(at));
        if let Some(bracket) = bracket.filter(|bracket| bracket.open == b'[' && bracket.is_member) {
            bracket.joins = true;
        }
    }

    fn string_literal(&mut self, bytes: &[u8], closed: bool, before: Option<TokenKind>) {
        self.string(bytes, closed);
        // `(window, 'alert')`, `name == 'alert'`: the function is asked for by its name.
        if matches!(before, Some(TokenKind::Comma | TokenKind::Binary))
            && self.out.effects.any(Effects::GLOBAL)
        {
            self.named(bytes);
        }
        self.is_code_text = closed && before == Some(TokenKind::Open) && bytes.contains(&b'(');
    }

    /// A part of a template literal; one right after an operand is an argument of its function.
    fn template(&mut self, span: Span, opens: bool, closes: bool, newline: bool) -> bool {
        if opens && !self.operand && !newline {
            if self.callee == Callee::Name(Group::Timer) {
                self.out.effects.insert(Effects::EXECUTE);
            }
            self.call();
            self.out.effects.insert(Effects::TAGGED);
            self.out.is_tight |= span.start as usize == self.end;
        }
        self.operand = !closes;
        self.callee = if closes || !opens { Callee::Operand } else { Callee::None };
        true
    }

    /// A parenthesis: of a call after an operand, otherwise of an expression or a statement.
    fn open(&mut self, span: Span, was_code_text: bool) -> bool {
        let is_control = self.callee == Callee::Control;
        if !self.operand {
            if was_code_text {
                self.out.effects.insert(Effects::EXECUTE);
            }
            self.after_space = span.start as usize > self.end;
            self.in_timer = self.callee == Callee::Name(Group::Timer);
            self.in_make = self.callee == Callee::Name(Group::Make);
            self.call();
        }
        let is_member = !self.operand && !is_control;
        self.push(Bracket { open: b'(', is_control, is_member, ..Bracket::default() });
        true
    }

    fn open_bracket(&mut self, before: Option<TokenKind>) -> bool {
        let of_global = matches!(self.callee, Callee::Name(Group::Global | Group::Location));
        self.is_after_sign = matches!(before, Some(TokenKind::Sign | TokenKind::Prefix));
        self.push(Bracket {
            open: b'[',
            of_global: of_global && !self.operand,
            is_member: !self.operand,
            ..Bracket::default()
        });
        true
    }

    /// A sign before which an operand is needed, or after which one comes.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other signs have no effect of their own")]
    fn operator_sign(&mut self, kind: TokenKind, newline: bool) -> bool {
        use TokenKind as T;
        let holds = match kind {
            T::Assign | T::Binary | T::Question | T::Colon => !self.operand,
            T::Prefix => self.operand || newline,
            _ => true,
        };
        if !holds {
            return false;
        }
        match kind {
            T::Assign => self.assign(),
            T::Arrow => {
                self.out.effects.insert(Effects::FUNCTION);
                self.may_follow = true;
            }
            T::Sign | T::Prefix => self.signs += 1,
            T::Colon if self.is_telling() => self.mentions -= 1,
            _ => {}
        }
        self.operator();
        true
    }

    pub(super) fn operator(&mut self) {
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
            // `[location] = ['//host']`, `({x: location} = y)`, `(location) = name`
            _ if let Some(target) = bracket.target.filter(|_| !bracket.is_member) => Callee::Name(target),
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
