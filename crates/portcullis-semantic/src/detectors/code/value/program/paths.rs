//! Paths of names: `a.b.c`.

use portcullis_lex::expr::{Token, TokenKind};

use super::names::is_deep_member;
use super::{Act, Path, Reader};
use crate::detectors::code::value::roots::Root;

impl Reader<'_> {
    /// A sign of `a->b` or `a::b`, or an operator behind an operand.
    pub(super) fn is_part_of_path(&self, sign: u8) -> bool {
        let continues = sign == b'>' && self.last_is(b'-') || sign == b':' && self.last_is(b':');
        self.opens_file.is_none_or(|open| self.tokens - open > 2) && (!self.operand || continues)
    }

    /// The path of names ends before `next`, or goes on.
    pub(super) fn path_done(&mut self, next: Option<Token>) {
        let Some(path) = self.path else { return };
        let first = self.bytes(path.first);
        self.names_member |= path.parts == 1 && first != b"process" && is_deep_member(first);
        self.hands_root |=
            path.parts == 2 && path.second.is_some_and(|token| self.bytes(token) == b"process");
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
            Root::Deep if path.parts == 1 => {
                let is_handed = self.depth > 0 || self.last_is(b'=');
                self.hands_root |= is_handed && !is_element && !next.is_some_and(|next| next.is(b':'));
                is_element && self.names_element(next)
            }
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
        path.second.is_some_and(|member| is_deep_member(self.bytes(member)))
    }

    /// `['env']`: the element behind the bracket `next` is named by a text.
    fn names_element(&self, next: Option<Token>) -> bool {
        let inner = next.map(|next| self.text[next.span.end as usize..].trim_ascii_start());
        matches!(inner, Some([b'\'' | b'"' | b'`', ..]))
    }

    /// After the dot a member follows: one of a path, a call's result, an element or a text.
    pub(super) fn path_goes_on(&self) -> bool {
        self.path.is_some() || self.after_call.is_some()
    }
}
