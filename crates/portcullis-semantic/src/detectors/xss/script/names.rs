//! Names and strings in a script: keywords, what a name is known for, and what is done with it.

use super::{Callee, Walk};
use crate::detectors::xss::effects::Effects;
use crate::detectors::xss::names::Group;

impl Walk<'_> {
    pub(super) fn is_telling(&self) -> bool {
        matches!(self.callee, Callee::Name(Group::Dialog | Group::Execute | Group::Timer))
    }

    /// A string in brackets is a member's name.
    pub(super) fn string(&mut self, bytes: &[u8], closed: bool) {
        let inner = bytes.get(1..bytes.len() - usize::from(closed)).unwrap_or_default();
        let in_brackets = self.depth > 0 && self.brackets.get(self.depth - 1).is_some_and(|b| b.open == b'[');
        let group = self.names.script(inner);
        if (in_brackets && group == Group::Reflect) || group == Group::Constructor {
            self.out.effects.insert(Effects::REFLECT);
        }
        if group == Group::Constructor
            && in_brackets
            && let Some(bracket) = self.brackets.get_mut(self.depth - 1)
        {
            bracket.is_constructor = true;
        }
        if in_brackets && self.names.script(inner) == Group::Data {
            self.out.effects.insert(Effects::DATA);
        }
    }

    /// A string that is the name of a function which shows or runs something: who asks a global object for it
    /// calls it.
    pub(super) fn named(&mut self, string: &[u8]) {
        let inner = string.get(1..string.len().saturating_sub(1)).unwrap_or_default();
        self.mentions += i32::from(matches!(self.names.script(inner), Group::Dialog | Group::Execute));
    }

    pub(super) fn name(&mut self, name: &[u8], newline: bool) -> bool {
        if self.after_dot {
            self.after_dot = false;
            self.member(name);
            return true;
        }
        let follows = self.operand || newline;
        match name {
            b"typeof" | b"new" | b"delete" | b"await" | b"yield" | b"case" | b"return" => {
                self.operator();
                return follows;
            }
            b"void" => {
                self.operator();
                return follows;
            }
            b"throw" => {
                self.out.effects.insert(Effects::THROW);
                self.operator();
                return follows;
            }
            b"in" | b"of" | b"instanceof" => {
                let holds = !self.operand;
                // `for (location of [name])`
                let is_loop = self.depth.checked_sub(1).and_then(|at| self.brackets.get(at));
                if name != b"instanceof" && is_loop.is_some_and(|bracket| bracket.is_control) {
                    self.assign();
                }
                self.operator();
                return holds;
            }
            b"var" | b"let" | b"const" | b"else" | b"do" | b"try" | b"finally" | b"async" | b"static"
            | b"get" | b"set" | b"default" | b"export" | b"catch"
                if follows =>
            {
                self.operator();
                self.may_follow = true;
                return true;
            }
            b"function" | b"class" | b"extends" => {
                self.out.effects.insert(Effects::FUNCTION);
                self.operator();
                self.callee = Callee::Control;
                self.may_follow = true;
                self.in_class = name != b"function";
                return follows || name == b"extends";
            }
            b"if" | b"for" | b"while" | b"with" | b"switch" => {
                self.operand = false;
                self.callee = Callee::Control;
                return follows;
            }
            _ => {}
        }
        // The name of a function that is defined.
        let is_declared = self.callee == Callee::Control;
        let group = self.names.script(name);
        self.operand = false;
        self.callee = match (is_declared, group) {
            (true, _) => Callee::Control,
            // A class's own, where it is not something's member.
            (_, Group::Constructor) => Callee::Operand,
            _ => Callee::Name(group),
        };
        self.is_target(group);
        self.note(group);
        follows
    }

    /// The bracket that is open may be a pattern to which something is assigned.
    fn is_target(&mut self, group: Group) {
        if matches!(group, Group::Location | Group::Markup)
            && let Some(bracket) = self.depth.checked_sub(1).and_then(|at| self.brackets.get_mut(at))
        {
            bracket.target = Some(group);
        }
    }

    fn member(&mut self, name: &[u8]) {
        let group = self.names.script(name);
        self.is_target(group);
        let of = self.callee;
        self.operand = false;
        self.callee = Callee::Name(group);
        self.note(group);
        if group == Group::Data && matches!(of, Callee::Name(Group::Global | Group::Location)) {
            self.out.effects.insert(Effects::DATA);
        }
        if group == Group::Location {
            self.out.effects.insert(Effects::GLOBAL);
        }
    }

    fn note(&mut self, group: Group) {
        self.out.is_demo &= matches!(group, Group::Demo | Group::Dialog);
        self.mentions += i32::from(matches!(group, Group::Dialog | Group::Execute | Group::Timer));
        self.out.effects.insert(match group {
            Group::Reflect | Group::Constructor => Effects::REFLECT,
            Group::Global | Group::Location => Effects::GLOBAL,
            Group::Dialog
            | Group::Execute
            | Group::Timer
            | Group::WriteCall
            | Group::Send
            | Group::Decode
            | Group::Data
            | Group::Markup
            | Group::Target
            | Group::Navigate
            | Group::Indirect
            | Group::Make
            | Group::Demo
            | Group::Any => Effects::default(),
        });
    }

    /// A call of what stands before.
    pub(super) fn call(&mut self) {
        if self.callee == Callee::Control {
            return;
        }
        if self.is_telling() {
            self.mentions -= 1;
        }
        let effects = match self.callee {
            Callee::Name(Group::Dialog) => Effects::DIALOG,
            Callee::Name(Group::Execute) => Effects::EXECUTE,
            Callee::Name(Group::WriteCall) => Effects::WRITE,
            Callee::Name(Group::Send) => Effects::SEND,
            Callee::Name(Group::Decode) => Effects::DECODE,
            Callee::Name(Group::Navigate) => Effects::NAVIGATE,
            Callee::Name(Group::Indirect) if self.mentions > 0 => Effects::INDIRECT,
            // What a function's constructor is given is code.
            Callee::Name(Group::Constructor) => Effects::EXECUTE,
            Callee::Computed => Effects::COMPUTED,
            Callee::None | Callee::Name(_) | Callee::Control | Callee::Operand => Effects::default(),
        };
        self.out.effects.insert(effects);
        self.out.effects.insert(Effects::CALL);
    }

    pub(super) fn assign(&mut self) {
        let effects = match self.callee {
            Callee::Name(Group::Location) => Effects::NAVIGATE,
            Callee::Name(Group::Target) if self.out.effects.any(Effects::GLOBAL) => Effects::NAVIGATE,
            Callee::Name(Group::Markup) => Effects::WRITE,
            Callee::Name(Group::Data) if self.out.effects.any(Effects::DATA) => Effects::DATA,
            Callee::Computed => Effects::COMPUTED,
            Callee::None | Callee::Name(_) | Callee::Control | Callee::Operand => Effects::default(),
        };
        self.out.effects.insert(effects);
        self.out.effects.insert(Effects::ASSIGN);
    }
}
