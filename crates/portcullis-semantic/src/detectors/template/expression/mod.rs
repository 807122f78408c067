//! The contents of a template expression: names, calls, literals.

mod names;

use portcullis_lex::expr::{Lexer, Token, TokenKind};

use self::names::Around;
use super::delimiters::Form;
use super::plain::{
    assigns_variable, is_arithmetic, is_constant_condition, is_object, is_of_go, is_of_library, is_secret,
    is_shown_whole, plain_variable,
};
use super::{
    ARITHMETIC, ASSIGNMENT, ATTRIBUTE, CODE, FILTER, LITERAL_MEMBER, OBJECT, OBJECT_CALL, SHELL_TEXT,
    Template, is_statement, kind_of,
};
use crate::KindId;
use crate::detectors::code::names::Group;
use crate::detectors::code::scan::Scan;
use crate::detectors::code::value::program::{self, Act};
use crate::detectors::purpose;

/// Tokens of a literal and its modifiers that are looked at.
const TOKENS_MAX: usize = 200;

/// The kinds of an expression, as bits.
pub(super) fn facts(detector: &Template, inner: &[u8], form: Form) -> u64 {
    let trimmed = inner.trim_ascii();
    if trimmed.is_empty() {
        return 0;
    }
    let mut facts = Facts(0);
    if form == Form::Single {
        single(detector, trimmed, &mut facts);
        return facts.0;
    }
    // A plain path of names is a variable; only names of the engine's own objects tell something.
    let trimmed = trimmed.strip_prefix(b"not ").map_or(trimmed, <[u8]>::trim_ascii);
    let variable = if is_statement(form) || is_of_library(trimmed) { None } else { plain_variable(trimmed) };
    if let Some(name) = variable {
        if form != Form::Brackets
            && is_object(name)
            && (is_secret(name, trimmed) || is_shown_whole(name, trimmed))
        {
            facts.note(OBJECT);
            if trimmed.len() > name.len() {
                facts.note(OBJECT_CALL);
            }
        } else if trimmed == b"ENV" && matches!(form, Form::Output | Form::Marked) {
            facts.note(OBJECT);
            facts.note(OBJECT_CALL);
        } else if trimmed == b"this.constructor" {
            facts.note(CODE);
        } else if has(trimmed, b"SECRET") || has(trimmed, b".signer") {
            facts.note(OBJECT);
            facts.note(OBJECT_CALL);
        }
    } else if form == Form::Marked && assigns_variable(trimmed) {
        facts.note(CODE);
    } else if form == Form::Braces && is_of_go(trimmed)
        || is_of_library(trimmed)
        || form == Form::Marked && is_special(trimmed)
    {
        facts.note(OBJECT);
        facts.note(OBJECT_CALL);
    } else {
        Walk::new(detector, trimmed, form).run(&mut facts);
    }
    if has_name_of_request(trimmed, is_statement(form)) {
        facts.note(ATTRIBUTE);
    }
    // Pages print variables of their own by any name.
    let may_reach = variable.is_none() || form == Form::Output || trimmed.starts_with(b"ENV");
    if may_reach && reaches(detector, trimmed) {
        facts.note(CODE);
    }
    let mut scan = Scan::new(trimmed, &detector.names, &detector.shell);
    while let Some((fact, _)) = scan.next_fact() {
        facts.note(kind_of(fact));
    }
    facts.0
}

/// As a program of the language below the engine it reaches files, variables of the system or the process,
/// whatever member or function does it.
fn reaches(detector: &Template, text: &[u8]) -> bool {
    // What comes before an expression, and after it the block of Ruby that it is given.
    let text = [&b"python:"[..], b"php:", b"ruby:", b"js:"]
        .iter()
        .find_map(|language| text.strip_prefix(*language))
        .unwrap_or(text);
    let text = match memchr::memmem::find(text, b" do |") {
        Some(at) if text.ends_with(b"|") => &text[..at],
        _ => text.strip_suffix(b" do").unwrap_or(text),
    };
    // What an expression costs is charged by its length.
    let reading = program::read(text, &detector.names, &detector.shell, usize::MAX);
    let Some(program) = reading.program else { return false };
    program.acts.iter().flatten().any(|act| match act {
        Act::Reaches { .. } => true,
        Act::Calls { is_known } => *is_known,
        Act::Prints => false,
    })
}

/// `[request.args.a]`, `attribute=request.args.a`, `include request.args.a`: what the request holds is the
/// name of a member or a template.
fn has_name_of_request(text: &[u8], is_statement: bool) -> bool {
    const PARTS: &[&[u8]] = &[
        b"args",
        b"values",
        b"cookies",
        b"form",
        b"headers",
        b"GET",
        b"POST",
        b"query",
        b"params",
        b"mimetype",
        b"referrer",
        b"user_agent",
    ];
    const TAKERS: &[&[u8]] = &[b"[", b"attribute=", b"attr(", b"__getitem__(", b"getattr(", b"constant("];
    const STATEMENTS: &[&[u8]] = &[b"include", b"import", b"from", b"extends"];
    memchr::memmem::find_iter(text, b"request.").take(8).any(|at| {
        let rest = &text[at + 8..];
        let part = &rest[..rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()];
        let before = text[..at].trim_ascii_end();
        let is_name = TAKERS.iter().any(|taker| before.ends_with(taker))
            || is_statement && STATEMENTS.contains(&before)
            || before.ends_with(b"~");
        PARTS.contains(&part) && is_name
    })
}

/// `{system('id')}`, `{233*233}`: calls and sums only; `{name}` and JSON are everywhere.
fn single(detector: &Template, inner: &[u8], facts: &mut Facts) {
    let mut lexer = Lexer::new(inner, 0);
    if modifies_literal(detector, inner) {
        facts.note(FILTER);
    }
    let (first, second) = (lexer.next(), lexer.next());
    let (Some(first), Some(second)) = (first, second) else { return };
    if first.kind == TokenKind::Name && second.is(b'(') {
        let mut scan = Scan::new(inner, &detector.names, &detector.shell);
        while let Some((fact, _)) = scan.next_fact() {
            facts.note(kind_of(fact));
        }
    }
    let prints = matches!(first.span.of(inner), b"var_dump" | b"print_r" | b"var_export");
    if prints && second.is(b'(') && inner.contains(&b'$') {
        facts.note(CODE);
    }
    // `{0[__class__]}`: a format of Python.
    if has(inner, b"[__") && has(inner, b"__]") {
        facts.note(CODE);
    }
    if second.is(b'*') && is_arithmetic(inner) {
        facts.note(ARITHMETIC);
    }
    // `{Smarty_Internal_Write_File::writeFile(...)}`
    let third = lexer.next();
    let is_static = first.kind == TokenKind::Name && second.is(b':') && third.is_some_and(|t| t.is(b':'));
    if is_static && (inner.starts_with(b"Smarty") || inner.starts_with(b"self::")) && inner.contains(&b'(') {
        facts.note(CODE);
    }
    if third.is_some_and(|t| t.is(b'='))
        && makes_code(first.span.of(inner), second.span.of(inner), lexer, inner)
    {
        facts.note(CODE);
    }
    // `{fetch file="/etc/passwd"}`
    let is_tag = matches!(first.span.of(inner), b"fetch" | b"include" | b"include_php" | b"insert");
    let mut path = || lexer.find(|t| t.kind == TokenKind::Text).map(|t| t.inner(inner));
    let is_other = |path: &[u8]| path.starts_with(b"/") || has(path, b"://") || is_of_server(path);
    if is_tag && path().is_some_and(is_other) {
        facts.note(SHELL_TEXT);
        facts.note(super::CODE_CALL);
    }
}

/// `"id"|system`, `['id']|@array_map:'system'`: Smarty's modifiers are functions of PHP, and this one runs a
/// literal, or has another function run it.
fn modifies_literal(detector: &Template, inner: &[u8]) -> bool {
    if !matches!(inner.first(), Some(b'"' | b'\'' | b'[')) || memchr::memchr(b'|', inner).is_none() {
        return false;
    }
    let mut tokens = Lexer::new(inner, 0).take(TOKENS_MAX).skip_while(|t| !t.is(b'|')).skip(1);
    let mut next = tokens.next();
    if next.is_some_and(|t| t.is(b'@')) {
        next = tokens.next();
    }
    let group = |t: Token| detector.names.get(t.inner(inner));
    let Some(name) = next.filter(|t| t.kind == TokenKind::Name) else { return false };
    match group(name) {
        Some(Group::Execute | Group::Eval) => true,
        Some(Group::Callback) => {
            let runs = |t: Token| matches!(group(t), Some(Group::Execute | Group::Eval | Group::Callback));
            tokens.next().is_some_and(|t| t.is(b':'))
                && tokens.next().is_some_and(|t| t.kind == TokenKind::Text && runs(t))
        }
        _ => false,
    }
}

/// `{math equation='("\163..")("id")'}`, `{function name='x(){};system("id");function '}`: Smarty makes code
/// of the text. A formula has no quotes, and a name no signs.
fn makes_code(tag: &[u8], attribute: &[u8], mut rest: Lexer<'_>, inner: &[u8]) -> bool {
    let Some(text) = rest.next().filter(|t| t.kind == TokenKind::Text) else { return false };
    let text = text.inner(inner);
    match (tag, attribute) {
        (b"math", b"equation") => memchr::memchr3(b'"', b'\'', b'`', text).is_some(),
        (b"function", b"name") => memchr::memchr3(b'(', b';', b'{', text).is_some(),
        _ => false,
    }
}

/// `assign x=7*7`, `set x = 7*7`: what the variable is set to.
fn assigned(text: &[u8]) -> Option<&[u8]> {
    let rest =
        [&b"assign "[..], b"set ", b"local ", b"global "].iter().find_map(|word| text.strip_prefix(*word))?;
    let at = memchr::memchr(b'=', rest)?;
    rest[..at].trim_ascii().iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_').then(|| &rest[at + 1..])
}

/// `config.php`, `.env`: a program or the settings of one by the file's end, which no engine has as a
/// template.
fn is_of_server(path: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[
        b".php",
        b".py",
        b".rb",
        b".jsp",
        b".env",
        b".ini",
        b".conf",
        b".properties",
        b".key",
        b".pem",
        b"passwd",
        b".htaccess",
    ];
    ENDS.iter().any(|end| path.ends_with(end))
}

/// Freemarker's variables about itself that pages do not show.
fn is_special(text: &[u8]) -> bool {
    let names =
        [&b".version"[..], b".data_model", b".globals", b".locals", b".main", b".template_name", b".vars"];
    names.iter().any(|name| {
        text.strip_prefix(*name).is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphabetic))
    })
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

#[derive(Debug)]
struct Facts(u64);

impl Facts {
    fn note(&mut self, kind: KindId) {
        self.0 |= 1 << kind.0;
    }
}

/// A walk over an expression that is more than a variable.
struct Walk<'w> {
    detector: &'w Template,
    text: &'w [u8],
    form: Form,
}

impl<'w> Walk<'w> {
    fn new(detector: &'w Template, text: &'w [u8], form: Form) -> Walk<'w> {
        Walk { detector, text, form }
    }

    fn run(&self, facts: &mut Facts) {
        let is_constant = match is_statement(self.form) {
            true => {
                self.text.strip_prefix(b"if ").is_some_and(is_constant_condition)
                    || assigned(self.text).is_some_and(is_arithmetic)
            }
            false => is_arithmetic(self.text),
        };
        if is_constant {
            facts.note(ARITHMETIC);
            return;
        }
        let mut lexer = Lexer::new(self.text, 0);
        let (mut last, mut before_last): (Option<Token>, Option<Token>) = (None, None);
        let mut count = 0;
        let mut in_object = false;
        // Where the first parenthesis and the first space stand.
        let first = memchr::memchr2(b'(', b' ', self.text).unwrap_or(self.text.len());
        while let Some(token) = lexer.next() {
            count += 1;
            let next = lexer.clone().next();
            let last_is = |sign: u8| last.is_some_and(|t: Token| t.is(sign));
            let next_is = |sign: u8| next.is_some_and(|t| t.is(sign));
            match token.kind {
                TokenKind::Name => {
                    let name = token.span.of(self.text);
                    if last.is_none() || !last_is(b'.') && !last_is(b'|') {
                        in_object = is_object(name) && next_is(b'.') | next_is(b'[') | next_is(b'|');
                        // `[[doku>config]]` is a wiki's link.
                        let is_link = self.form == Form::Brackets && last_is(b'>');
                        if is_object(name)
                            && !is_link
                            && !is_statement(self.form)
                            && count <= 3
                            && (in_object || next.is_none())
                        {
                            facts.note(OBJECT);
                        }
                    }
                    if is_statement(self.form) && name == b"config" && is_secret_member(lexer, self.text) {
                        facts.note(OBJECT);
                        facts.note(OBJECT_CALL);
                    }
                    let is_given = next_is(b'.')
                        || next_is(b'[')
                        || next_is(b'(')
                        || next_is(b'=')
                        || next_is(b'?')
                        || last_is(b'.');
                    if !is_given && self.shows_inside(name, last, count) {
                        facts.note(OBJECT);
                        facts.note(OBJECT_CALL);
                    }
                    let at = Around { last, before_last, next, in_object, count };
                    self.name(name, facts, &at);
                }
                TokenKind::Text => self.quoted(&token, facts, last, next, count),
                TokenKind::Sign(b'.') => {
                    let of_literal = match last {
                        Some(t) if t.kind == TokenKind::Text => !is_joined(before_last),
                        // `[].x`, `().x`, `(1).x`
                        Some(t) if t.is(b']') || t.is(b')') => {
                            before_last.is_some_and(|t| {
                                t.is(b'[') || t.is(b'(') || t.kind == TokenKind::Number && count <= 4
                            }) && count <= 4
                        }
                        _ => false,
                    };
                    // `default "x" .Values.name`: an argument after another one in Go's templates.
                    let is_argument = || {
                        let at = token.span.start as usize;
                        self.text[..at].ends_with(b" ") && is_call_of_words(self.text)
                    };
                    if of_literal
                        && !is_argument()
                        && next.is_some_and(|t| t.kind == TokenKind::Name)
                        && (!is_statement(self.form)
                            || before_last.is_some_and(|t| t.kind == TokenKind::Number))
                    {
                        facts.note(LITERAL_MEMBER);
                    }
                }
                TokenKind::Sign(b'=') if !is_statement(self.form) => {
                    let is_assignment = last.is_some_and(|t| t.kind == TokenKind::Name)
                        && !next_is(b'=')
                        && !next_is(b'>')
                        && count > 1;
                    // `key=value` in a call's arguments and in a helper's is usual.
                    if is_assignment && first >= token.span.start as usize {
                        facts.note(ASSIGNMENT);
                    }
                }
                TokenKind::Number | TokenKind::Sign(_) => {}
            }
            before_last = last;
            last = Some(token);
        }
    }

    fn quoted(
        &self,
        token: &Token,
        facts: &mut Facts,
        last: Option<Token>,
        next: Option<Token>,
        count: usize,
    ) {
        let inner = token.inner(self.text);
        let last_is = |sign: u8| last.is_some_and(|t| t.is(sign));
        if last_is(b'(') || last_is(b',') || last_is(b':') || last_is(b'{') || last_is(b'[') || last_is(b'=')
        {
            // The name of a function that runs commands, as a text: `|map('system')`, `{'options':'system'}`.
            let group = (inner.len() <= 24).then(|| self.detector.names.get(inner)).flatten();
            let is_function = matches!(group, Some(Group::Execute | Group::Eval | Group::Callback))
                || inner == b"ini_set"
                || inner == b"error_reporting";
            if is_function && inner != b"compile" && inner != b"execute" || self.maps_literal(token, inner) {
                facts.note(FILTER);
            }
            // `source('config.php')`: the text of a program.
            if is_of_server(inner) && last_is(b'(') && self.text.starts_with(b"source") {
                facts.note(SHELL_TEXT);
            }
            let is_path = inner.starts_with(b"/etc/")
                || inner.starts_with(b"/proc/")
                || inner.starts_with(b"/bin/")
                || inner.ends_with(b"wp-config.php");
            let is_line =
                inner.contains(&b' ') && self.detector.shell.is_command_line(inner) && last_is(b'(');
            if is_path || is_line {
                facts.note(SHELL_TEXT);
            }
        }
        // `{% set cmd = 'id' %}`
        if is_statement(self.form) && last_is(b'=') && self.detector.shell.is_recon(inner) {
            facts.note(SHELL_TEXT);
        }
        // `{% include '/etc/passwd' %}`, `<#include "/etc/passwd">`
        if is_statement(self.form) && (inner.starts_with(b"/etc/") || inner.starts_with(b"/proc/")) {
            facts.note(SHELL_TEXT);
        }
        // `{% include 'config.php' %}`, `<%include file="config.php"/>`: what is no template is taken in.
        if is_statement(self.form) && self.text.starts_with(b"include") && count <= 4 && is_of_server(inner) {
            facts.note(SHELL_TEXT);
        }
        self.argument_of_name(token, inner, facts);
        // Code in a text: `{{this.push "return require('child_process')"}}`.
        if inner.len() >= 8 && inner.contains(&b'(') {
            let mut scan = Scan::new(inner, &self.detector.names, &self.detector.shell);
            while let Some((fact, _)) = scan.next_fact() {
                facts.note(kind_of(fact));
            }
        }
        // `{{#with "s" as |string|}}`
        if self.form == Form::Braces && count == 3 && self.text.starts_with(b"#") && self.text.ends_with(b"|")
        {
            facts.note(ATTRIBUTE);
        }
        if inner == b"constructor" || inner.starts_with(b"__") && inner.ends_with(b"__") && inner.len() > 4 {
            facts.note(ATTRIBUTE);
        }
        // `['__cl','ass__']|join`, `"_"*2`
        if inner.len() <= 3
            && inner.starts_with(b"_")
            && next.is_some_and(|t| t.is(b',') || t.is(b'*') || t.is(b'~') || t.is(b'+'))
            && count > 2
        {
            facts.note(ATTRIBUTE);
        }
        if self.form == Form::Output
            && token.span.of(self.text).first() == Some(&b'`')
            && self.detector.shell.is_command_line(inner)
        {
            facts.note(CODE);
        }
    }
}

impl Walk<'_> {
    /// The engine's own object is an operand by itself: it is printed, kept, looped over or handed on as a
    /// whole. `{% if config %}` only asks for it.
    fn shows_inside(&self, name: &[u8], last: Option<Token>, count: usize) -> bool {
        const INSIDE: &[&[u8]] =
            &[b"config", b"self", b"lipsum", b"cycler", b"joiner", b"_self", b"_context"];
        const ASKS: &[&[u8]] =
            &[b"if ", b"elif ", b"elsif ", b"unless ", b"import ", b"include ", b"from ", b"block "];
        let takes = |sign: u8| self.text.contains(&sign);
        // `{{#if config}}`: a block of Handlebars asks, too.
        let is_block = matches!(self.text.first(), Some(b'#' | b'/' | b'^' | b'>'))
            || [&b"if "[..], b"with "]
                .iter()
                .any(|word| self.text.starts_with(word) && !is_statement(self.form));
        let is_declared =
            last.is_some_and(|t| matches!(t.span.of(self.text), b"set" | b"with" | b"for" | b"as"));
        INSIDE.contains(&name)
            && self.form != Form::Brackets
            && self.form != Form::Directive
            && !is_declared
            && !is_block
            && (count > 1 || takes(b',') || takes(b'|') || takes(b' '))
            && !last.is_some_and(|t| {
                t.is(b'|') || t.is(b'>') || t.is(b'-') || t.is(b'/') || t.is(b'#') || t.is(b'@')
            })
            && !(is_statement(self.form) && ASKS.iter().any(|word| self.text.starts_with(word)))
            && (is_statement(self.form) || !is_call_of_words(self.text))
    }

    /// `['x']|map('readfile')`: each element of a literal is given to the function that the text names. Pages
    /// map what they were given.
    fn maps_literal(&self, token: &Token, inner: &[u8]) -> bool {
        const TAKERS: &[&[u8]] = &[b"map(", b"filter(", b"reduce(", b"sort(", b"find("];
        let before = self.text[..token.span.start as usize].trim_ascii_end();
        let is_name = inner.len() > 2 && inner.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        self.text.starts_with(b"[")
            && is_name
            && TAKERS.iter().any(|taker| {
                before.strip_suffix(*taker).is_some_and(|rest| rest.trim_ascii_end().ends_with(b"|"))
            })
    }

    /// A text that is a certain argument: `map(attribute='__globals__.os')` of Jinja reaches what Python
    /// keeps below an object, and `lookup('pipe', 'id')` of Ansible runs a command.
    fn argument_of_name(&self, token: &Token, inner: &[u8], facts: &mut Facts) {
        const PIPES: &[&[u8]] = &[b"pipe", b"lines", b"ansible.builtin.pipe", b"ansible.builtin.lines"];
        let before = self.text[..token.span.start as usize].trim_ascii_end();
        if before.ends_with(b"attribute=") && inner.starts_with(b"__") {
            facts.note(CODE);
        }
        let calls = [&b"lookup("[..], b"query("].iter().any(|call| before.ends_with(call));
        if calls && PIPES.contains(&inner) {
            facts.note(CODE);
        }
    }
}

/// Bytes of a word that is distinguished from others.
const WORD_BYTES_MAX: usize = 64;

/// The text before is one of a sum: `'a' + 'b'.x`. `printf "%s" .x`, `if eq .x "y"`, `range printf "..."`: a
/// word, and after it another one, a text or a dot, as Go's and Handlebars' calls are written. In the
/// languages that have members of literals nothing can be read so.
fn is_call_of_words(text: &[u8]) -> bool {
    // Signs of one operand, and what joins two.
    const OPERATORS: &[&[u8]] = &[b"not", b"empty", b"new", b"set", b"if", b"elif", b"for", b"do", b"print"];
    const JOINTS: &[&[u8]] = words!("template", "joining-words");
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"-").unwrap_or(text).trim_ascii_start();
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
    let len = text.iter().take(WORD_BYTES_MAX).take_while(is_part).count();
    let (word, rest) = text.split_at(len);
    let following = rest.trim_ascii_start();
    let next = following.iter().take(WORD_BYTES_MAX).take_while(is_part).count();
    let is_word = word.first().is_some_and(u8::is_ascii_alphabetic) && !OPERATORS.contains(&word);
    is_word
        && following.len() < rest.len()
        && match following.first() {
            Some(b'"' | b'.') => true,
            Some(b) => b.is_ascii_alphabetic() && !JOINTS.contains(&&following[..next]),
            None => false,
        }
}

/// `.SECRET_KEY`, `['SECRET_KEY']`: the member at the lexer is a secret by its name.
fn is_secret_member(mut lexer: Lexer<'_>, text: &[u8]) -> bool {
    let opens = lexer.next().is_some_and(|token| token.is(b'.') || token.is(b'['));
    opens && lexer.next().is_some_and(|member| purpose::names_secret(member.inner(text)))
}

fn is_joined(before: Option<Token>) -> bool {
    before.is_some_and(|t| t.is(b'+') || t.is(b'~') || t.is(b','))
}
