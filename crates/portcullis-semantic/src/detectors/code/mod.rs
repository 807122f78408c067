//! Code injection.
//!
//! What it does: reads a value as an expression of PHP, JavaScript, Java (and OGNL, SpEL, EL, MVEL, Groovy),
//! Python, Ruby, Perl, Lua or VBScript, and asks what is called on what: a function that runs commands or
//! code with a text or a variable, reflection, what a language keeps below its objects. A name without its
//! shape is nothing: `system of a down`.
//!
//! Why it is dangerous: the code runs with the application's rights.
//!
//! References: <https://owasp.org/www-community/attacks/Code_Injection>,
//! <https://capec.mitre.org/data/definitions/242.html>.

mod argument;
mod calls;
mod marks;
pub(super) mod names;
mod php;
pub(super) mod scan;
#[cfg(test)]
mod tests;
pub(super) mod value;

use std::cell::OnceCell;

use portcullis_types::Span;

use self::names::{Group, Names};
use self::php::takes_input;
pub(super) use self::php::{is_harmless, runs_input};
use self::scan::{Fact, Scan};
pub use self::value::CodeValue;
use super::scan::is_one_of;
use super::shown::Shown;
use super::{command, purpose};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Code_Injection";
    EXECUTE "code.execute" Error Active "calls a function that runs commands of the system";
    SHELL_ARGUMENT "code.shell-argument" Error Active "the argument of a call is a command line";
    EVAL "code.eval" Error Active "calls a function that runs code from text";
    INFO "code.info" Critical Quotable "calls a function that tells about the system";
    DECODE "code.decode" Warning Active "calls a function that takes encoded texts apart";
    CALLBACK "code.callback" Warning Quotable "calls a function that calls what it is given";
    FILE "code.file" Warning Active "calls a function that reads or writes files";
    FILE_ARGUMENT "code.file-argument" Error Active "the file is another server's, or tells about the system";
    PROBE "code.probe" Critical Quotable "prints a number or hash that tells the sender that code runs";
    SLEEP "code.sleep" Warning Quotable "waits";
    REFLECTION "code.reflection" Error Active "reflection of Java";
    LOADED "code.loaded" Critical Active
        "a type that commands, files or code are reached by is loaded by its name";
    TYPE "code.type" Error Active "names a type of Java that commands, files or code are reached by";
    MADE "code.made" Error Active "makes an object of such a type, or calls a member of it";
    STATIC "code.static" Critical Active "a static member of a type in an expression language: T(..), @..@";
    OGNL "code.ognl" Critical Active "what OGNL keeps its rules in";
    OGNL_ASSIGN "code.ognl-assign" Error Active "an assignment as OGNL writes it: (#x=..)";
    INTERNAL "code.internal" Critical Active "what Python keeps below its objects";
    DUNDER "code.dunder" Notice Quotable "a special attribute of Python";
    IMPORT "code.import" Critical Active "imports a module by a call";
    MODULE "code.module" Critical Active "loads a module that runs commands";
    NODE "code.node" Error Active "what Node keeps below its objects";
    OBJECT "code.object" Critical Active "makes an object of the system by its name";
    INPUT "code.input" Error Active "reads a parameter of the request by PHP's or ASP's means";
    NESTED "code.nested" Error Active
        "a function that runs code or commands is given another call or a parameter";
    VARIABLE_CALL "code.variable-call" Warning Active "calls what a variable names";
    TEXT_CALL "code.text-call" Critical Active "calls a function by a text that is put together";
    PHP_TAG "code.php-tag" Error Quotable "begins PHP";
    PHP_BLOCK "code.php-block" Warning Quotable "a statement or an end stands after the beginning of PHP";
    SCRIPT_TAG "code.script-tag" Critical Active "begins a script that runs on the server";
    CLASS_PATH "code.class-path" Critical Active "a property path from an object to its class loader";
    WHOLE "code.whole" Warning Quotable "all of the value is one expression";
    RENDER_ARRAY "code.render-array" Critical Quotable
        "a property of Drupal's render arrays that names a function";
    LOOKUP "code.lookup" Critical Active
        "a lookup of Apache Commons Text that runs a script or asks another server";
    BACKDOOR "code.backdoor" Critical Quotable "code for the backdoor that once was in PHP's source";
    MAGIC "code.magic" Critical Quotable "the name of a method that PHP calls by itself, as a value";
    FUNCTION_NAME "code.function-name" Critical Quotable
        "the name of a function that runs commands or what it is given, in a field for a function's name";
    ENDLESS "code.endless" Critical Quotable "a loop that never ends and does nothing is all of the value";
    CONCATENATED "code.concatenated" Critical Quotable
        "a call between quotes and dots is all of the value: it breaks out of a text of PHP";
    BACKTICK "code.backtick" Warning Active "prints what a command in back-ticks writes";
}

/// See the module.
#[derive(Debug)]
pub struct Code {
    names: Names,
    shell: command::Names,
}

impl Code {
    /// The detector with its data.
    pub fn new() -> Code {
        Code { names: Names::new(), shell: command::Names::new() }
    }
}

impl Default for Code {
    fn default() -> Self {
        Code::new()
    }
}

/// A call, a member, or a tag.
static PROFILE: Profile = Profile::new(Class::Code, KINDS)
    .needs(ByteGroups::of(b"(.[<_$`\"%#*"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/code.tsv"));

impl Detector for Code {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            if input.groups.has(b'#') {
                marks::render_keys(input, found);
            }
            return;
        }
        // Of a source of PHP it counts what it does with a request.
        let is_shown = input.document.is_php
            && input.layers.is_empty()
            && found.may_read(PHP_READINGS * input.text.len())
            && !runs_input(input.text, &self.shell);
        let shown = OnceCell::new();
        marks::detect(&self.names, &self.shell, input, is_shown, &shown, found);
        self.names_alone(input, found);
        self.walk(input, is_shown, &shown, found);
    }
}

impl Code {
    /// `_method=__construct`, `function=call_user_func_array`: the value is a name, and an application calls
    /// what it names.
    fn names_alone(&self, input: &Input<'_>, found: &mut Found<'_>) {
        const MAGIC_METHODS: &[&[u8]] = &[
            b"__construct",
            b"__destruct",
            b"__wakeup",
            b"__invoke",
            b"__tostring",
            b"__callstatic",
            b"__call",
        ];
        let name = input.text.trim_ascii();
        if name.len() > NAME_BYTES_MAX || !matches!(input.location.place, Place::Query | Place::Form) {
            return;
        }
        let span = Span::new(0, input.text.len());
        if name.starts_with(b"__") && is_one_of(name, MAGIC_METHODS) {
            found.add(MAGIC, span);
        }
        let runs = matches!(self.names.get(name), Some(Group::Execute | Group::Eval | Group::Callback));
        if runs && name.contains(&b'_') && purpose::names_function(input.location) {
            found.add(FUNCTION_NAME, span);
        }
    }

    /// Reads the text.
    fn walk(&self, input: &Input<'_>, is_all_shown: bool, shown: &OnceCell<Shown>, found: &mut Found<'_>) {
        let (text, location) = (input.text, input.location);
        let (takes_code, takes_text) =
            (purpose::takes_code(location), purpose::may_mention(Class::Code, location));
        let has_tag =
            memchr::memmem::find(text, b"<?").is_some() || memchr::memmem::find(text, b"<%").is_some();
        let mut is_first = true;
        let mut scan = Scan::new(text, &self.names, &self.shell);
        while let Some((fact, span)) = scan.next_fact() {
            let kind = kind_of(fact);
            // Sentences name commands in back-ticks after the words that PHP prints with.
            // Lines of a source are indented, too.
            let is_shown = || {
                let end = (span.end as usize).saturating_sub(1);
                let quotes = || shown.get_or_init(|| Shown::of(text)).has(end);
                takes_text && (kind == BACKTICK || !input.document.is_php && quotes())
            };
            let is_own =
                input.document.has_lines && !has_tag && is_of_program(input, fact, span, &self.shell);
            match is_all_shown || is_own {
                true => found.mention(kind, span),
                false if takes_code || is_spoken(text, span) || is_shown() => found.shown(kind, span),
                false => found.add(kind, span),
            }
            if std::mem::take(&mut is_first) && !takes_code && is_whole(text, span) {
                found.add(WHOLE, Span::new(0, text.len()));
            }
        }
        found.may_walk(scan.bytes_read(), scan.tokens());
    }
}

/// How often a source is read for what it does with a request.
pub(super) const PHP_READINGS: usize = 4;

/// The longest name of a function that is looked up.
const NAME_BYTES_MAX: usize = 32;

/// A longer text is more than one expression.
const WHOLE_BYTES_MAX: usize = 512;

/// Nothing but a keyword, a sign or a number before what stands at `span`, and the end of a call or statement
/// at the text's end.
fn is_whole(text: &[u8], span: Span) -> bool {
    const LEADS: &[&[u8]] = &[
        b"echo", b"print", b"return", b"new", b"import", b"die", b"exit", b"var", b"def", b"println", b"eval",
    ];
    let before = &text[..span.start as usize];
    let mut words = before.split(|b| !b.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let begins = before.len() <= 24 && words.all(|word| LEADS.contains(&word));
    let ends = text.trim_ascii_end().last().is_some_and(|b| b");}]'\"`/#->%".contains(b));
    let has_call = memchr::memchr3(b'(', b'`', b'[', &text[span.start as usize..]).is_some();
    begins && ends && has_call && text.len() <= WHOLE_BYTES_MAX && !text.trim_ascii().contains(&b'\n')
}

/// Bytes of two words.
const SPOKEN_BYTES_MAX: usize = 64;

/// Prose mentions what stands at `span`: two words before it, one after its parentheses.
fn is_spoken(text: &[u8], span: Span) -> bool {
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_alphabetic);
    let before = &text[..span.start as usize];
    let before = before.strip_suffix(b"T(").unwrap_or(before);
    // Words are short: without a bound a text without spaces would be read anew for each call in it.
    let before = &before[before.len().saturating_sub(SPOKEN_BYTES_MAX)..];
    let mut before = before.rsplit(|b| *b == b' ');
    let follows_words =
        before.next() == Some(b"") && before.by_ref().take(2).filter(|word| is_word(word)).count() == 2;
    if !follows_words {
        return false;
    }
    let rest = &text[span.end as usize..];
    let Some(close) = memchr::memchr(b')', &rest[..rest.len().min(80)]) else { return false };
    let after = &rest[close + 1..];
    let word = after
        .strip_prefix(b" ")
        .map(|after| &after[..after.iter().take_while(|b| b.is_ascii_alphabetic()).count()]);
    word.is_some_and(is_word) || matches!(after, [] | [b'?' | b'.' | b'!'])
}

/// In a program of several lines a call at `span` is its own: a name that says something in PHP only, of
/// which there is none, or a module that it keeps; in a file one that runs something other than what attacks
/// run, and nothing of a request.
fn is_of_program(input: &Input<'_>, fact: Fact, span: Span, shell: &command::Names) -> bool {
    const REQUESTS: &[&[u8]] = &[
        b"request", b"req.", b"params", b"query", b"input", b"argv", b"environ", b"cookie", b"header",
        b"socket", b"recv", b"decode", b"$_",
    ];
    let text = input.text;
    let rest = &text[span.end as usize..];
    let arguments = &rest[..rest.len().min(ARGUMENTS_BYTES_MAX)];
    let arguments = &arguments[..memchr::memchr(b'\n', arguments).unwrap_or(arguments.len())];
    let inner =
        arguments.iter().position(|b| matches!(b, b'\'' | b'"' | b'`')).map(|at| &arguments[at + 1..]);
    match fact {
        Fact::Info => true,
        Fact::Execute | Fact::ShellArgument | Fact::Eval => {
            input.location.place == Place::FileContent
                && !inner.is_some_and(|inner| shell.asks_system(inner))
                && !REQUESTS.iter().any(|known| memchr::memmem::find(arguments, known).is_some())
        }
        Fact::Module => is_kept(text, span),
        Fact::File | Fact::FileArgument => span.of(text) == b"require" && inner.is_some_and(loads_neighbour),
        Fact::Decode
        | Fact::Callback
        | Fact::Probe
        | Fact::Sleep
        | Fact::Reflection
        | Fact::Loaded
        | Fact::Type
        | Fact::Made
        | Fact::Static
        | Fact::Ognl
        | Fact::OgnlAssign
        | Fact::Internal
        | Fact::Dunder
        | Fact::Import
        | Fact::Node
        | Fact::Object
        | Fact::Input
        | Fact::Nested
        | Fact::VariableCall
        | Fact::TextCall
        | Fact::Backtick => false,
    }
}

/// `const { spawn } = require('child_process')`: a program keeps a module. What it does with it is found
/// where it does it.
fn is_kept(text: &[u8], span: Span) -> bool {
    let before = text[..span.start as usize].trim_ascii_end();
    let after = text[span.end as usize..].trim_ascii_start();
    // `{ exec: e }`, `{ exec as e }`: nothing finds it by its name any more.
    let line = &before[before.iter().rposition(|b| matches!(b, b'\n' | b';')).map_or(0, |at| at + 1)..];
    if memchr::memchr2(b':', b'[', line).is_some() || memchr::memmem::find(line, b" as ").is_some() {
        return false;
    }
    let is_import = before.ends_with(b" from") && !after.starts_with(b")");
    let kept = before.strip_suffix(b"require(").map(|before| before.trim_ascii_end());
    let is_assigned = kept.is_some_and(|before| {
        before.strip_suffix(b"=").is_some_and(|name| {
            name.trim_ascii_end().last().is_some_and(|b| b.is_ascii_alphanumeric() || b"_$}".contains(b))
        })
    });
    let rest = after.strip_prefix(b")").unwrap_or(b".").trim_ascii_start();
    is_import || is_assigned && !matches!(rest.first(), Some(b'.' | b'[' | b'(' | b'?'))
}

/// `../../core/util')`: a module from where a program stands in its folders, and none of the folders that
/// every system has.
fn loads_neighbour(inner: &[u8]) -> bool {
    const SYSTEM: &[&[u8]] = &[
        b"bin", b"boot", b"dev", b"etc", b"home", b"mnt", b"opt", b"proc", b"root", b"run", b"srv", b"sys",
        b"tmp", b"usr", b"var",
    ];
    let Some(end) = inner.iter().position(|b| matches!(b, b'\'' | b'"' | b'`')) else { return false };
    let path = &inner[..end];
    let mut up = path.split(|b| *b == b'/').skip_while(|part| *part == b"..").peekable();
    let is_part = |part: &[u8]| {
        part.first().is_some_and(u8::is_ascii_alphanumeric)
            && part.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
    };
    path.starts_with(b"../") && !up.peek().is_some_and(|first| SYSTEM.contains(first)) && up.all(is_part)
}

/// Bytes of a call's arguments that are read for what it runs.
const ARGUMENTS_BYTES_MAX: usize = 200;

fn kind_of(fact: Fact) -> KindId {
    match fact {
        Fact::Execute => EXECUTE,
        Fact::ShellArgument => SHELL_ARGUMENT,
        Fact::Eval => EVAL,
        Fact::Info => INFO,
        Fact::Decode => DECODE,
        Fact::Callback => CALLBACK,
        Fact::File => FILE,
        Fact::FileArgument => FILE_ARGUMENT,
        Fact::Probe => PROBE,
        Fact::Sleep => SLEEP,
        Fact::Reflection => REFLECTION,
        Fact::Loaded => LOADED,
        Fact::Type => TYPE,
        Fact::Made => MADE,
        Fact::Static => STATIC,
        Fact::Ognl => OGNL,
        Fact::OgnlAssign => OGNL_ASSIGN,
        Fact::Internal => INTERNAL,
        Fact::Dunder => DUNDER,
        Fact::Import => IMPORT,
        Fact::Module => MODULE,
        Fact::Node => NODE,
        Fact::Object => OBJECT,
        Fact::Input => INPUT,
        Fact::Nested => NESTED,
        Fact::VariableCall => VARIABLE_CALL,
        Fact::TextCall => TEXT_CALL,
        Fact::Backtick => BACKTICK,
    }
}

const HINTS: &[Hint] = &[
    Hint::text("system"),
    Hint::text("exec"),
    Hint::text("popen"),
    Hint::text("passthru"),
    Hint::text("proc_open"),
    Hint::text("spawn"),
    Hint::text("eval"),
    Hint::text("assert"),
    Hint::text("create_function"),
    Hint::text("function("),
    Hint::text("compile("),
    Hint::text("loadstring"),
    Hint::text("phpinfo"),
    Hint::text("php_uname"),
    Hint::text("phpversion"),
    Hint::text("phpcredits"),
    Hint::text("base64_decode"),
    Hint::text("gzinflate"),
    Hint::text("str_rot13"),
    Hint::text("strrev"),
    Hint::text("hex2bin"),
    Hint::text("call_user_func"),
    Hint::text("array_map"),
    Hint::text("array_filter"),
    Hint::text("array_walk"),
    Hint::text("usort"),
    Hint::text("register_"),
    Hint::text("preg_replace"),
    Hint::text("file_get"),
    Hint::text("file_put"),
    Hint::text("readfile"),
    Hint::text("show_source"),
    Hint::text("highlight_file"),
    Hint::text("fopen"),
    Hint::text("scandir"),
    Hint::text("md5("),
    Hint::text("var_dump"),
    Hint::text("print_r"),
    Hint::text("print("),
    Hint::text("echo"),
    Hint::text("die("),
    Hint::text("response.write"),
    Hint::text("sleep("),
    Hint::text("processbuilder"),
    Hint::text("process.start"),
    Hint::text("getclass"),
    Hint::text("forname"),
    Hint::text("getruntime"),
    Hint::text("newinstance"),
    Hint::text("getmethod"),
    Hint::text("classloader"),
    Hint::text("java."),
    Hint::text("javax."),
    Hint::text("springframework"),
    Hint::text("apache.commons"),
    Hint::text("apache.struts"),
    Hint::text("xwork"),
    Hint::text("webwork"),
    Hint::text("ognl"),
    Hint::text("freemarker."),
    Hint::text("groovy."),
    Hint::text("_memberaccess"),
    Hint::text("(#"),
    Hint::text("__"),
    Hint::text("f_globals"),
    Hint::text("gi_frame"),
    Hint::text("child_process"),
    Hint::text("require('"),
    Hint::text("require(\""),
    Hint::text("while(1"),
    Hint::text("while(true"),
    Hint::text("for(;;"),
    Hint::text("mainmodule"),
    Hint::text("global.process"),
    Hint::text("globalthis"),
    Hint::text("process.binding"),
    Hint::text("constructor"),
    Hint::text("createobject"),
    Hint::text("getobject"),
    Hint::text("execute("),
    Hint::text("os.execute"),
    Hint::text("subprocess"),
    Hint::text("open3"),
    Hint::text("file."),
    Hint::text("file("),
    Hint::text("dir."),
    Hint::text("$_"),
    Hint::text(".`"),
    Hint::text("$globals"),
    Hint::text("<?"),
    Hint::text("<%"),
    Hint::text("language="),
    Hint::text(")("),
    Hint::text("'("),
    Hint::text("\"("),
    Hint::text("]("),
    Hint::text("(~"),
    Hint::text("'.'"),
    Hint::text("\".\""),
    Hint::text("include"),
    Hint::text("require"),
    Hint::text("open("),
    Hint::text("open ("),
    Hint::text("print ("),
    Hint::text("md5 ("),
    Hint::text("${@"),
    Hint::text("{$"),
    Hint::text("%x"),
    Hint::text("class.module"),
    Hint::text("runat="),
    Hint::text("qx"),
    Hint::text("send(:"),
    Hint::text("jsp:"),
    Hint::text("cfexecute"),
    Hint::text("[#"),
    Hint::text("#post_render"),
    Hint::text("#pre_render"),
    Hint::text("#lazy_builder"),
    Hint::text("${script:"),
    Hint::text("${dns:"),
    Hint::text("${url:"),
    Hint::text("@grab"),
    Hint::text("@asttest"),
    Hint::text("@annotationcollector"),
    Hint::text("${base64"),
    Hint::text("${urldecoder"),
    Hint::text("${urlencoder"),
    Hint::text("${resourcebundle"),
    Hint::text("process.env"),
    Hint::text("zerodium"),
];
