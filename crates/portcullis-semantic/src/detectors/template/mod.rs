//! Template injection.
//!
//! What it does: finds expressions of template engines by their delimiters (Jinja, Twig, Freemarker,
//! Velocity, Smarty, Mako, ERB, Handlebars, Pug, Tornado, Razor, Thymeleaf, EL), and asks what stands in
//! them. A variable with filters is what mail and web templates are made of: `{{ user.name | upper }}`.
//! Constants that are computed, members of literals, reflection, and objects that hold the engine's inside
//! are what an attacker tries.
//!
//! Why it is dangerous: engines reach the language they are written in, and with it commands of the system.
//!
//! References: <https://portswigger.net/research/server-side-template-injection>.

mod delimiters;
mod expression;
mod flood;
mod other;
mod plain;
#[cfg(test)]
mod tests;

use self::delimiters::{Delimiters, Form};
use super::code::names::Names;
use super::code::scan::Fact;
use super::scan::is_body_of_class;
use super::{command, purpose};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-project-web-security-testing-guide/latest/4-Web_Application_Security_Testing/07-Input_Validation_Testing/18-Testing_for_Server-side_Template_Injection";
    ARITHMETIC "template.arithmetic" Critical Quotable "an expression computes with constants: a probe";
    LITERAL_MEMBER "template.literal-member" Error Quotable "a member of a literal: ''.x, [].x, 'a'.f()";
    OBJECT "template.object" Warning Active "an object that engines keep their inside in (config, self, ...)";
    OBJECT_CALL "template.object-call" Error Active
        "calls a method of such an object, or reaches far into it";
    CODE "template.code" Critical Active
        "code in an expression: reflection, commands, what a language keeps below its objects";
    CALL "template.call" Notice Quotable "a function or method is called";
    CODE_CALL "template.code-call" Warning Quotable "a function of files, texts or time is called";
    DUNDER "template.dunder" Error Active "a special attribute of Python in an expression";
    FILTER "template.filter" Critical Active
        "a filter is given the name of a function that runs commands or code";
    ATTRIBUTE "template.attribute" Error Quotable
        "an attribute is reached by a text: |attr(..), lookup, ['..']";
    BUILTIN "template.builtin" Critical Active
        "a built-in of Freemarker that makes objects or evaluates text";
    DIRECTIVE "template.directive" Warning Quotable "a directive that sets a variable";
    VELOCITY_SET "template.velocity-set" Error Quotable "Velocity's #set";
    NEW "template.new" Error Quotable "an object is made, or a number cast to a letter";
    IMPORT "template.import" Error Active "a directive that imports a module of the system";
    DEBUG "template.debug" Error Quotable "a directive or call that shows all variables";
    PREPROCESSING "template.preprocessing" Critical Active
        "an expression that Thymeleaf evaluates before the others: __${..}__";
    PHP_BLOCK "template.php-block" Critical Active "a block of PHP in a template";
    SMARTY "template.smarty" Error Quotable "Smarty's variable about itself";
    ASSIGNMENT "template.assignment" Warning Quotable "an expression assigns";
    SHELL_TEXT "template.shell-text" Error Active
        "a text in an expression is a command line or a file that tells about the system";
    COMMENT_PROBE "template.comment-probe" Critical Quotable
        "a comment of a template engine stands inside a word";
    POLYGLOT "template.polyglot" Critical Active "delimiters of several engines, one in the other";
    METHOD "template.method" Error Quotable
        "a method of a variable, or a function of numbers, is called, and the value is that expression";
    TEX_FILE "template.tex-file" Critical Active
        "TeX reads or writes a file of the machine, or takes in what a command writes: \\input{/etc/..}";
    FLOOD "template.flood" Critical Active "an expression makes millions of elements or letters";
    WHOLE "template.whole" Notice Quotable "the value is one expression, or a few, or a parameter of a page";
}

/// An expression is read as one of a template, each token with the next one, for numbers, and as code; a
/// token may be one byte.
const READINGS: usize = 6;
/// What stands in single braces and calls nothing is not read as one of a template.
const SINGLE_READINGS: usize = 3;

/// See the module.
#[derive(Debug)]
pub struct Template {
    names: Names,
    shell: command::Names,
}

impl Template {
    /// The detector with its data.
    pub fn new() -> Template {
        Template { names: Names::new(), shell: command::Names::new() }
    }
}

impl Default for Template {
    fn default() -> Self {
        Template::new()
    }
}

const HINTS: &[Hint] = &[
    Hint::text("{{"),
    Hint::text("{%"),
    Hint::text("${"),
    Hint::text("#{"),
    Hint::text("*{"),
    Hint::text("%{"),
    Hint::text("@("),
    Hint::text("@{"),
    Hint::text("~{"),
    Hint::text("<%"),
    Hint::text("<#"),
    Hint::text("[#"),
    Hint::text("[["),
    Hint::text("[="),
    Hint::text("{!!"),
    Hint::text("#foreach"),
    Hint::text("\\write18"),
    Hint::text("\\input"),
    Hint::text("\\include"),
    Hint::text("\\openin"),
    Hint::text("\\openout"),
    Hint::text("\\lstinputlisting"),
    Hint::text("\\verbatiminput"),
    Hint::text("tal:"),
    Hint::text("%import "),
    Hint::text("% import "),
    Hint::text("#set"),
    Hint::text("#parse"),
    Hint::text("#include"),
    Hint::text("#evaluate"),
    Hint::text("[%"),
    Hint::text("\"|"),
    Hint::text("'|"),
    Hint::text("]|"),
    Hint::text("{.exec|"),
    Hint::text("{.save|"),
    Hint::text("{.load|"),
    Hint::text("{.cmd|"),
    Hint::text("{.add|"),
    Hint::text("{.append|"),
    Hint::text("{math"),
    Hint::text("{function"),
    Hint::text("{="),
    Hint::text("{smarty"),
    Hint::text("{self:"),
    Hint::text("{include"),
    Hint::text("{insert"),
    Hint::text("{php"),
    Hint::text("{$"),
    Hint::text("{*"),
    Hint::text("{0"),
    Hint::text("{1"),
    Hint::text("{2"),
    Hint::text("{3"),
    Hint::text("{4"),
    Hint::text("{5"),
    Hint::text("{6"),
    Hint::text("{7"),
    Hint::text("{8"),
    Hint::text("{9"),
    Hint::text("{system"),
    Hint::text("{var_"),
    Hint::text("{print_r"),
    Hint::text("{if"),
    Hint::text("{fetch"),
    Hint::text("$class"),
    Hint::text("@system."),
];

static PROFILE: Profile = Profile::new(Class::Template, KINDS)
    .needs(ByteGroups::of(b"{[<#@\\"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/template.tsv"));

impl Detector for Template {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        if input.is_json {
            return;
        }
        other::detect(self, input, found);
        // A page's query has no templates; elsewhere a value that is more than an expression may be one.
        let is_parameter = matches!(
            input.location.place,
            Place::Query | Place::Name | Place::Header | Place::Cookie | Place::PathSegment
        );
        let is_editor = purpose::takes_templates(input.location);
        // Loops in one another: what each does is done by all around it.
        let mut rounds = 1u64;
        for expression in Delimiters::new(text) {
            let inner = expression.inner.of(text);
            if expression.form == Form::Brackets && is_table(inner) {
                continue;
            }
            if is_body_of_class(text, expression.span.start as usize + 1) {
                continue;
            }
            // Of braces that hold no call the beginning is read.
            let cost = if expression.form != Form::Single {
                inner.len() * READINGS
            } else if memchr::memchr3(b'(', b'*', b'|', inner).is_none() {
                inner.len() / 8
            } else {
                inner.len() * SINGLE_READINGS
            };
            // Without an end the search for it found nothing.
            let search = match expression.inner.end == expression.span.end {
                true => expression.form.search_cost(),
                false => 0,
            };
            if !found.may_walk(cost + search, 0) {
                return;
            }
            let mut facts = expression::facts(self, inner, expression.form);
            if let Some(times) = flood::times(inner) {
                let is_loop = is_statement(expression.form);
                let all = rounds.saturating_mul(times);
                rounds = if is_loop { all } else { rounds };
                if all >= flood::TIMES_MIN {
                    facts |= 1 << FLOOD.0;
                }
            }
            // What prints one object tells nothing where placeholders of one word are usual.
            if facts == 0 {
                continue;
            }
            let kinds = || (0..KINDS.len() as u16).map(KindId).filter(|kind| facts >> kind.0 & 1 == 1);
            if !is_parameter && plain::is_placeholder(inner) {
                kinds().for_each(|kind| found.suppress(kind, expression.span, "placeholders"));
                continue;
            }
            // An engine renders the text whatever quotation marks are in it.
            for kind in kinds() {
                match is_editor {
                    true => found.shown(kind, expression.span),
                    false => found.add(kind, expression.span),
                }
            }
            let rest = text.len() - expression.span.len();
            let calls = facts >> CALL.0 & 1 == 1 && input.location.place != Place::Json;
            if calls && (is_parameter || rest == 0) && (is_method(inner) || is_constant_call(inner)) {
                found.add(METHOD, expression.span);
            }
            if is_parameter || rest <= 24 && text.len() <= 512 {
                found.add(WHOLE, expression.span);
            }
        }
    }
}

/// `[[int], str]`: the inner bracket closes first. `[[1, 2], [3, 4]]`: values with commas between them, and
/// nothing called.
fn is_table(inner: &[u8]) -> bool {
    let closes_first = memchr::memchr2(b'[', b']', inner).is_some_and(|at| inner[at] == b']');
    closes_first
        || memchr::memchr2(b',', b'(', inner).is_some_and(|at| inner[at] == b',')
            && memchr::memchr(b'(', inner).is_none()
}

/// `name.method()`: no filter, no argument of words.
fn is_method(inner: &[u8]) -> bool {
    let inner = inner.trim_ascii();
    let name = inner.strip_suffix(b"()").unwrap_or_default();
    name.contains(&b'.') && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
}

/// `sum(1024, 123)`: a call of numbers, as who asks whether an engine is there writes it. A filter may
/// follow.
fn is_constant_call(inner: &[u8]) -> bool {
    let inner = inner.trim_ascii();
    let name = inner.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let Some(rest) = inner[name..].strip_prefix(b"(").filter(|_| name > 0) else { return false };
    let Some(end) = memchr::memchr(b')', rest) else { return false };
    let numbers = rest[..end].split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let is_number = |number: &[u8]| !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    numbers.clone().filter(|number| number.len() > 1).count() > 1 && numbers.clone().all(is_number)
}

/// The kind that a fact of a language means in an expression.
fn kind_of(fact: Fact) -> KindId {
    match fact {
        Fact::Execute
        | Fact::Made
        | Fact::Eval
        | Fact::Info
        | Fact::Reflection
        | Fact::Static
        | Fact::Type
        | Fact::Loaded
        | Fact::Ognl => CODE,
        Fact::OgnlAssign
        | Fact::Internal
        | Fact::Import
        | Fact::Module
        | Fact::Node
        | Fact::Object
        | Fact::Nested => CODE,
        Fact::Input | Fact::TextCall | Fact::VariableCall | Fact::Probe | Fact::Backtick => CODE,
        Fact::ShellArgument | Fact::FileArgument => SHELL_TEXT,
        Fact::Dunder => DUNDER,
        Fact::Decode | Fact::Callback | Fact::File | Fact::Sleep => CODE_CALL,
    }
}

/// The form of an expression whose content alone is looked at.
fn is_statement(form: Form) -> bool {
    matches!(form, Form::Statement | Form::Script | Form::Directive)
}
