//! Values that are a program, all of it.
//!
//! What it does: reads a value from its first byte to its last as statements of PHP, Python, Ruby, Perl,
//! JavaScript, Lua or Groovy, or as the rest of one behind a quote and brackets that it ends, and
//! asks what it reaches: what the language keeps of the machine, a file or address as a constant, the result
//! of a call that it prints. Functions need not be known for that. In a sentence two words stand side by side
//! without an operator between them, in a program never: so no sentence is read as one.
//!
//! How long the value is does not matter, nor what comments and terms without effect are in it: a reading
//! ends where the text is no program, and the message's work allowance bounds all of them.

mod breakout;
pub(in crate::detectors) mod program;
mod roots;
#[cfg(test)]
mod tests;

use portcullis_types::Span;

use self::program::{Act, Program, Reading};
use super::names::Names;
use crate::detectors::{command, purpose};
use crate::limits::TOKEN_BYTES;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Code_Injection";
    REACHES "code.value-reaches" Critical Quotable
        "all of the value is a program that reaches what its language keeps of the machine";
    CALLS "code.value-calls" Critical Quotable
        "all of the value is a program that calls something with a file, an address or a setting by its name";
    PRINTS "code.value-prints" Critical Quotable
        "all of the value is a program that prints what a call gives";
    HANGS "code.value-hangs" Critical Quotable
        "all of the value is a loop or a power that no machine finishes";
    BREAKS_OUT "code.value-breaks-out" Critical Quotable
        "ends a string or a call of a program and goes on with a call of its own";
}

/// See the module.
#[derive(Debug)]
pub struct CodeValue {
    names: Names,
    shell: command::Names,
}

impl CodeValue {
    /// The detector with its data.
    pub fn new() -> CodeValue {
        CodeValue { names: Names::new(), shell: command::Names::new() }
    }
}

impl Default for CodeValue {
    fn default() -> Self {
        CodeValue::new()
    }
}

/// Bytes of a value that are shown as what was found in it.
const SHOWN_BYTES_MAX: usize = 400;

static PROFILE: Profile = Profile::new(Class::Code, KINDS).needs(ByteGroups::of(b"(.[`$*{@'\"")).hints(HINTS);

impl Detector for CodeValue {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    /// Files have programs of their own.
    fn reads(&self, place: Place) -> bool {
        matches!(
            place,
            Place::Query
                | Place::Form
                | Place::MultipartField
                | Place::Json
                | Place::XmlText
                | Place::Cookie
                | Place::Header
                | Place::PathSegment
                | Place::Name
        )
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let location = input.location;
        if input.is_json {
            return;
        }
        // Who writes to others may write a line of code; what breaks out of a program's string is none.
        let is_shown = purpose::takes_code(location) || purpose::takes_text(location);
        let add = |found: &mut Found<'_>, kind: KindId, span: Span| match is_shown {
            true => found.mention(kind, span),
            false => found.add(kind, span),
        };
        // A word between back-ticks is not part of a program.
        if input.text.first() == Some(&b'`') && !input.text.contains(&b' ') {
            return;
        }
        let whole = Span::new(0, input.text.len());
        // Spaces around a program make it no longer.
        let text = input.text.trim_ascii();
        if hangs(text) {
            add(found, HANGS, whole);
            return;
        }
        for (inner, quote) in breakout::statements(input.text) {
            let Ok(program) = self.read_fragment(inner, quote, found) else { return };
            let does =
                |program: Program| program.acts.iter().any(Option::is_some) || program.has_constant_call;
            if program.is_some_and(does) {
                let span = Span::new(0, input.text.len().min(SHOWN_BYTES_MAX));
                return match purpose::takes_code(location) {
                    true => found.mention(BREAKS_OUT, span),
                    false => found.add(BREAKS_OUT, span),
                };
            }
        }
        let Ok(Some(program)) = self.read(without_marks(text), found) else { return };
        // Conditions of rules, formulas of sheets and filters are calls with constants, too.
        let is_of_language = purpose::takes_formula(location)
            || text.starts_with(b"=") && purpose::takes_cells(location)
            || purpose::takes_conditions(location)
            || purpose::takes_filters(location)
            || purpose::takes_pattern(location)
            || purpose::takes_statements(location);
        // People look for functions by their names.
        let is_looked_for = location.place == Place::Query && purpose::is_search(location);
        for act in program.acts.iter().flatten() {
            let (kind, row) = match act {
                Act::Reaches { is_bare: true } => (REACHES, is_looked_for.then_some("function-said")),
                Act::Reaches { is_bare: false } => (REACHES, None),
                Act::Calls { is_known: false } if program.compares => continue,
                Act::Calls { .. } => (CALLS, is_of_language.then_some("language-calls")),
                Act::Prints => (PRINTS, is_of_language.then_some("language-calls")),
            };
            match row {
                Some(row) => found.suppress(kind, whole, row),
                None => add(found, kind, whole),
            }
        }
    }
}

/// The message's allowance is used up.
struct Spent;

impl CodeValue {
    fn read(&self, text: &[u8], found: &mut Found<'_>) -> Result<Option<Program>, Spent> {
        charged(program::read(text, &self.names, &self.shell, found.left() / TOKEN_BYTES), found)
    }

    fn read_fragment(
        &self,
        text: &[u8],
        quote: Option<u8>,
        found: &mut Found<'_>,
    ) -> Result<Option<Program>, Spent> {
        let tokens_max = found.left() / TOKEN_BYTES;
        charged(program::read_fragment(text, quote, &self.names, &self.shell, tokens_max), found)
    }
}

/// What a reading found, if the message may cost that much.
fn charged(reading: Reading, found: &mut Found<'_>) -> Result<Option<Program>, Spent> {
    found.may_walk(reading.bytes, reading.tokens).then_some(reading.program).ok_or(Spent)
}

/// `9**9**9`: a power of a power of numbers; `do{}while(1)`: a loop with nothing in it.
fn hangs(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let is_of_numbers = text.iter().all(|b| b.is_ascii_digit() || matches!(b, b'*' | b'^' | b' '));
    let powers = memchr::memmem::find_iter(text, b"**").count();
    let is_power = is_of_numbers && powers >= 2 && text.first().is_some_and(u8::is_ascii_digit);
    let body = text.strip_prefix(b"do").map(<[u8]>::trim_ascii_start);
    let rest = body.and_then(|body| body.strip_prefix(b"{}").or_else(|| body.strip_prefix(b";")));
    let rest = rest.map(<[u8]>::trim_ascii).and_then(|rest| rest.strip_prefix(b"while"));
    let condition = rest.map(|rest| rest.strip_suffix(b";").unwrap_or(rest).trim_ascii());
    let is_loop = matches!(text, b"while true do end" | b"loop{}" | b"loop do end" | b"while True: pass");
    is_power || is_loop || matches!(condition, Some(b"(1)" | b"(true)" | b"(!0)"))
}

/// `#fileRead("x")#`, `!= f(process.env)`: an expression of ColdFusion, or a line of Pug, without its marks.
fn without_marks(text: &[u8]) -> &[u8] {
    let trimmed = text.trim_ascii();
    let line = [&b"!="[..], b"=", b"-"].iter().find_map(|mark| trimmed.strip_prefix(*mark));
    trimmed.strip_prefix(b"#").and_then(|inner| inner.strip_suffix(b"#")).or(line).unwrap_or(text)
}

/// What a call with a constant, a call without arguments, or a name that a language keeps something of the
/// machine under is written with.
const HINTS: &[Hint] = &[
    Hint::text("`"),
    Hint::text("(\""),
    Hint::text("0**"),
    Hint::text("1**"),
    Hint::text("2**"),
    Hint::text("3**"),
    Hint::text("4**"),
    Hint::text("5**"),
    Hint::text("6**"),
    Hint::text("7**"),
    Hint::text("8**"),
    Hint::text("9**"),
    Hint::text("while("),
    Hint::text("while ("),
    Hint::text("('"),
    Hint::text("(`"),
    Hint::text("()"),
    Hint::text("(*"),
    Hint::text("(@"),
    Hint::text("(new "),
    Hint::text("[\""),
    Hint::text("['"),
    Hint::text("(:"),
    Hint::text("process?"),
    Hint::text("process ."),
    Hint::text("'process'"),
    Hint::text("\"process\""),
    Hint::text("=open"),
    Hint::text("(open"),
    Hint::text("(process"),
    Hint::text("=process"),
    Hint::text("process."),
    Hint::text("global"),
    Hint::text("environ"),
    Hint::text("deno."),
    Hint::text("bun."),
    Hint::text("env."),
    Hint::text("env["),
    Hint::text("$env"),
    Hint::text("$_"),
    Hint::text("argv"),
    Hint::text("dir."),
    Hint::text("file."),
    Hint::text("io."),
    Hint::text("os."),
    Hint::text("sys."),
    Hint::text("rails."),
    Hint::text("kernel."),
    Hint::text("objectspace."),
    Hint::text("fileutils."),
    Hint::text("pathname."),
    Hint::text("open3."),
    Hint::text("marshal."),
    Hint::text(")(\""),
    Hint::text(")('"),
    Hint::text("argf."),
    Hint::text("subprocess."),
    Hint::text("shutil."),
    Hint::text("pathlib."),
    Hint::text("importlib."),
    Hint::text("runtime."),
    Hint::text("while true"),
    Hint::text("loop{}"),
    Hint::text("exit(1)"),
    Hint::text("exit(0)"),
    Hint::text("include '"),
    Hint::text("include \""),
    Hint::text("include'"),
    Hint::text("include\""),
    Hint::text("require '"),
    Hint::text("require \""),
    Hint::text("exec \""),
    Hint::text("system \""),
    Hint::text("exec '"),
    Hint::text("system '"),
    Hint::text(" :system"),
    Hint::text("echo `"),
    Hint::text("print `"),
    Hint::text("puts `"),
    Hint::text("print <"),
];
