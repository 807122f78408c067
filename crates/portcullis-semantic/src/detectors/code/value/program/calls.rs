//! Brackets, and what the calls tell that end with them.

use portcullis_lex::expr::{Token, TokenKind};

use super::names::{begins_with_module, is_neighbour, is_variable_of_system, loads};
use super::{Act, Callee, Frame, Path, Reader};
use crate::detectors::code::names::Group;
use crate::detectors::code::value::roots::{Root, is_of_styles, prints, tells_names};

impl Reader<'_> {
    pub(super) fn open(&mut self, sign: u8, token: Token) -> Option<()> {
        let close = match sign {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        let is_control = self.operand
            && self.last.is_some_and(|last| {
                matches!(self.bytes(last), b"foreach" | b"for" | b"while" | b"if" | b"with")
            });
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
                    is_member: (path.parts > 1 || path.is_of_result)
                        && !path.is_new
                        && !self.joins_call(path),
                    root: path.root.filter(|root| path.parts > 1 || *root == Root::Called && path.is_new),
                    is_new: path.is_new,
                });
                frame.calls_result = self.last_is(b')') && self.path.is_none();
            } else if self.depth > 0 {
                self.frames[self.depth - 1].has_variable = true;
            }
        }
        *self.frames.get_mut(self.depth)? = frame;
        self.depth += 1;
        self.operator();
        Some(())
    }

    pub(super) fn close(&mut self, sign: u8, next: Option<Token>) -> Option<()> {
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
                !matches!(next.kind, TokenKind::Sign(b')' | b']' | b',' | b'.' | b';' | b'}' | b'='))
            });
            return Some(());
        }
        if frame.is_control {
            self.operand = next.is_some();
            return Some(());
        }
        let is_constant = !frame.has_variable && !frame.has_call;
        self.after_call = Some(false);
        // `strrev('..')('/etc/x')`, `(fn($x)=>f($x))('/etc/x')`
        if frame.calls_result && is_constant && frame.names_file && self.depth == 0 {
            self.program.note(Act::Calls { is_known: false });
        }
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

    /// `''.readfile(..)`, `f(1).file_get_contents(..)`: in PHP the dot joins texts, and no text or result of
    /// another language has a member that is called so.
    fn joins_call(&self, path: Path) -> bool {
        let name = self.bytes(path.last);
        let before = self.text[..path.last.span.start as usize].trim_ascii_end();
        let Some(before) = before.strip_suffix(b".").map(<[u8]>::trim_ascii_end) else { return false };
        let is_of_text = matches!(before.last(), Some(b'\'' | b'"'));
        let is_known = match self.names.get(name) {
            Some(Group::Execute | Group::Eval | Group::File) => {
                is_of_text || name == b"readfile" || name.contains(&b'_')
            }
            _ => is_variable_of_system(name),
        };
        path.is_of_result && path.parts == 1 && is_known
    }

    /// What a call that ended tells.
    fn called(&mut self, callee: Callee, frame: &Frame, is_constant: bool) {
        let name = self.bytes(callee.name);
        let has_texts = frame.texts > 0;
        self.gives_text |= has_texts;
        self.gives_file |= has_texts && frame.names_file;
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
        // `require('fs')` as the first thing; what a program keeps of it stands behind a name.
        let is_first = self.text.trim_ascii_start().starts_with(name) && loads(name);
        if is_first && argument.get(2..).is_some_and(begins_with_module) {
            self.program.note(Act::Reaches { is_bare: true });
        }
        let is_known = of_known || of_variables || of_variable;
        // `show_source(end(scandir(pos(localeconv()))))`: the file comes out of calls that need no argument.
        let gives_result = frame.has_call
            && !frame.has_variable
            && matches!(self.names.get(name), Some(Group::File | Group::Execute | Group::Eval | Group::Info));
        let is_known = is_known || gives_result;
        if (is_constant && !prints(name) && (of_file || is_known)) || of_variable || gives_result {
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
