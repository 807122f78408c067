//! The names of an expression, and what stands around them.

use portcullis_lex::expr::{Token, TokenKind};

use super::{Facts, Walk};
use crate::detectors::code::names::Group;
use crate::detectors::template::delimiters::Form;
use crate::detectors::template::plain::is_arithmetic;
use crate::detectors::template::{
    ARITHMETIC, ATTRIBUTE, BUILTIN, CALL, CODE, CODE_CALL, DEBUG, DIRECTIVE, FILTER, IMPORT, NEW, OBJECT,
    OBJECT_CALL, VELOCITY_SET, is_statement,
};

/// Where a name stands.
pub(super) struct Around {
    pub(super) last: Option<Token>,
    pub(super) before_last: Option<Token>,
    pub(super) next: Option<Token>,
    /// It belongs to an object of the engine.
    pub(super) in_object: bool,
    /// How many tokens there have been, with it.
    pub(super) count: usize,
}

impl Around {
    fn last_is(&self, sign: u8) -> bool {
        self.last.is_some_and(|token| token.is(sign))
    }

    fn next_is(&self, sign: u8) -> bool {
        self.next.is_some_and(|token| token.is(sign))
    }
}

/// What FreeMarker does to values: `name?new()`.
const BUILTINS: [&[u8]; 7] =
    [b"new", b"eval", b"api", b"interpret", b"lower_abc", b"upper_abc", b"eval_json"];

/// Members that lead from a value to the internals of the language or the engine. `.class.base`, `.mro()`:
/// Python's, where engines add the underscores.
const INTERNALS: [&[u8]; 12] = [
    b"mro",
    b"subclasses",
    b"classLoader",
    b"protectionDomain",
    b"popen",
    b"registerUndefinedFilterCallback",
    b"registerUndefinedFunctionCallback",
    b"getFilter",
    b"loadTemplate",
    b"setCache",
    b"signer",
    b"from_pyfile",
];

/// A name behind a dot.
fn member(name: &[u8], facts: &mut Facts, at: &Around) {
    let leads_on = at.next_is(b'(') || at.next_is(b'.') || at.next_is(b'[');
    if name == b"constructor" && leads_on || INTERNALS.contains(&name) {
        facts.note(CODE);
    }
}

impl Walk<'_> {
    /// What a name tells where it stands.
    pub(super) fn name(&self, name: &[u8], facts: &mut Facts, at: &Around) {
        let is_call = at.next_is(b'(');
        if is_call {
            self.call(name, facts, at);
        }
        match at.last {
            Some(last) if last.is(b'.') => member(name, facts, at),
            Some(last) if last.is(b'|') => self.filter(name, facts, at),
            Some(last) if last.is(b'?') && BUILTINS.contains(&name) => facts.note(BUILTIN),
            _ => {}
        }
        if at.count == 1 {
            self.first(name, facts, at);
        }
        // `(char)105`
        if matches!(name, b"char" | b"byte") && at.last_is(b'(') && at.next_is(b')') {
            facts.note(NEW);
        }
        // `id~passthru~_context`: the name of a function as a text.
        let joined = at.last_is(b'~') || at.next_is(b'~');
        if joined && matches!(self.detector.names.get(name), Some(Group::Execute)) {
            facts.note(FILTER);
        }
    }

    /// A name that is called.
    fn call(&self, name: &[u8], facts: &mut Facts, at: &Around) {
        facts.note(CALL);
        if at.in_object && at.last_is(b'.') {
            facts.note(OBJECT_CALL);
        }
        // `new File(..)`
        if at.last.is_some_and(|t| t.span.of(self.text) == b"new") {
            facts.note(NEW);
        }
        // `'calc'.execute()`
        let runs =
            matches!(self.detector.names.get(name), Some(Group::Execute | Group::Eval)) || name == b"toURL";
        let is_of_text = || at.before_last.is_some_and(|t| t.kind == TokenKind::Text || t.is(b')'));
        if at.last_is(b'.') && runs && is_of_text() {
            facts.note(CODE);
        }
        if matches!(name, b"dump" | b"var_dump") && at.before_last.is_none() {
            facts.note(DEBUG);
            if self.text.contains(&b'_') || self.text.windows(4).any(|w| w == b"(app" || w == b"(_co") {
                facts.note(OBJECT);
            }
        }
        // No page defines a function in the middle of a text.
        if name == b"function" && !is_statement(self.form) {
            facts.note(CODE);
        }
        if name == b"include" && at.count == 1 {
            facts.note(CODE_CALL);
        }
    }

    /// A name behind `|`.
    fn filter(&self, name: &[u8], facts: &mut Facts, at: &Around) {
        if name == b"attr" && at.next_is(b'(') {
            facts.note(ATTRIBUTE);
        }
        let group = self.detector.names.get(name);
        // `'/etc/passwd'|file_get_contents`: a function of PHP, no filter of an engine.
        let is_file = group == Some(Group::File) && name.contains(&b'_');
        if is_file || matches!(group, Some(Group::Execute | Group::Eval)) {
            facts.note(FILTER);
        }
        if name == b"file_excerpt" {
            facts.note(CODE);
        }
    }

    /// The first name of an expression.
    fn first(&self, name: &[u8], facts: &mut Facts, at: &Around) {
        if self.form == Form::Directive && name.starts_with(b"$") {
            facts.note(VELOCITY_SET);
        }
        if !is_statement(self.form) {
            return;
        }
        match name {
            b"set" | b"assign" => facts.note(DIRECTIVE),
            b"debug" | b"get_admin_log" => facts.note(DEBUG),
            b"print" if is_arithmetic(self.text[5..].trim_ascii()) => facts.note(ARITHMETIC),
            b"import" | b"from" | b"require" => {
                let module = at.next.map(|t| t.inner(self.text)).unwrap_or_default();
                if matches!(module, b"os" | b"sys" | b"subprocess" | b"open3" | b"open4" | b"pty" | b"socket")
                {
                    facts.note(IMPORT);
                }
            }
            _ => {}
        }
    }
}
