//! Command injection.
//!
//! What it does: looks for the places of a value where a shell would begin a command (behind `;`, `|`, `&`
//! and line ends, in `$(..)` and back-ticks, at its beginning), reads the word there as the shell would
//! expand it, and asks whether it is a known command with arguments of the shape that command takes.
//! `; cat /etc/passwd` is a call, `; cat food` is not.
//!
//! Why it is dangerous: the command runs with the application's rights.
//!
//! References: <https://owasp.org/www-community/attacks/Command_Injection>,
//! <https://capec.mitre.org/data/definitions/88.html>.

mod arguments;
mod call;
mod field;
mod names;
mod positions;
mod shape;
mod special;
mod stranger;
mod surroundings;
#[cfg(test)]
mod tests;

use portcullis_lex::shell::Variables;
use portcullis_types::Span;

use self::call::Reader;
pub use self::field::CommandField;
use self::names::Group;
pub(super) use self::names::Names;
use self::positions::{Positions, Sign};
use self::stranger::{is_glued, stranger};
use self::surroundings::Surroundings;
use super::purpose;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Command_Injection";
    SEMICOLON "command.semicolon" Warning "a command follows a semicolon";
    PIPE "command.pipe" Warning "a command follows a pipe sign";
    AMPERSAND "command.ampersand" Warning "a command follows an ampersand";
    LOGICAL "command.logical" Warning "a command follows && or ||";
    NEWLINE "command.newline" Warning "a command follows a line end";
    SUBSTITUTION "command.substitution" Error "a command stands in $(..), back-ticks or <(..)";
    WHOLE "command.whole" Notice "the value begins with a command";
    RECON "command.recon" Error "a command that tells about the system";
    LISTING "command.listing" Warning "a command that lists files";
    READING "command.reading" Warning "a command that reads files";
    NETWORK "command.network" Warning "a command that talks to other machines";
    INTERPRETER "command.interpreter" Warning "a shell or an interpreter is started";
    DELAY "command.delay" Error "a command that waits";
    SYSTEM "command.system" Warning "a command that changes files or the system";
    OUTPUT "command.output" Notice "a command that writes a text";
    TOOL "command.tool" Notice "a tool of developers";
    CMDLET "command.cmdlet" Error "a command of PowerShell";
    UNKNOWN "command.unknown" Error "a program with an option or a path, by its shape, glued behind a separator";
    BARE "command.bare" Warning "the command takes no argument, and none follows";
    BARE_WORD "command.bare-word" Notice "the command's name is also a word, and nothing follows";
    SENSITIVE_FILE "command.sensitive-file" Error "its argument is a file that tells about the system";
    PATH "command.path" Warning "its argument is a path";
    HOST "command.host" Warning "its argument is a host or URL";
    FETCH "command.fetch" Notice "loads from a URL";
    INSTALL "command.install" Error "a package manager installs what a URL names";
    OPTION "command.option" Notice "its argument is an option";
    NUMBER "command.number" Notice "its argument is a number";
    TEXT "command.text" Warning "its argument is a quoted text with signs in it";
    EXPANSION "command.expansion" Warning "its argument is a variable or another command's output";
    ARGUMENT "command.argument" Notice "its argument is a word that it takes";
    PATHED "command.pathed" Warning "the command is called by its path";
    PREFIXED "command.prefixed" Notice "another command (sudo, env, ...) runs it";
    SPLIT_NAME "command.split-name" Critical "quotes or backslashes split the command's name";
    GLOB_NAME "command.glob-name" Error "a pattern stands for the command's name";
    ASSEMBLED_NAME "command.assembled-name" Error "variables or empty expansions make up the command's name";
    BRACE_LIST "command.brace-list" Error "the command is written as a list in braces";
    IFS "command.ifs" Error "$IFS stands where spaces would";
    CARETS "command.carets" Error "carets split the command's name";
    QUOTE_BREAK "command.quote-break" Warning "a quote ends the literal before the command";
    PIPED_TO_SHELL "command.piped-to-shell" Critical "a shell or interpreter runs what another command writes";
    CODE_ARGUMENT "command.code-argument" Error "code or a command line is given to an interpreter as an argument";
    EXEC_ARGUMENT "command.exec-argument" Error "an option makes the command run another one";
    REVERSE_SHELL "command.reverse-shell" Critical "a shell is connected to another machine";
    SHELLSHOCK "command.shellshock" Critical "a function definition for bash as the environment passes it, with commands behind it";
    ENCODED_POWERSHELL "command.encoded-powershell" Critical "PowerShell is given an encoded command";
    POWERSHELL_DOWNLOAD "command.powershell-download" Critical "PowerShell loads code from another machine or from text";
    LOOP "command.loop" Critical "a loop of cmd over what a command writes: for /f .. in ('..') do";
    TERMINAL "command.terminal" Critical "a control sequence that moves the cursor of a terminal";
    COMPUTED "command.computed" Critical "the shell computes with numbers alone, as who asks whether one is there does: `$((71*13))`";
    VARIABLE "command.variable" Critical "a variable of the system is all of the value, behind a sign of PowerShell: `;$env:USERNAME`";
    DOTNET "command.dotnet" Critical "PowerShell calls a type of .NET that reaches processes, files, other machines or code";
    CMD_VARIABLE "command.cmd-variable" Critical "cmd or a shell puts a part of a variable into a word: `who%x:~0,1%ami`";
    HERE_STRING "command.here-string" Critical "a substitution is given a text, so that what it writes is a command: `$(rev<<<'di')`";
    SPREADSHEET "command.spreadsheet" Critical "a formula that starts a program by DDE: `=cmd|'/C calc'!A0`";
    OPTION_INJECTION "command.option-injection" Critical "the value is an option that makes a program run commands or write files";
}

/// See the module.
#[derive(Debug)]
pub struct Command {
    names: Names,
    hints: Vec<Hint>,
}

impl Command {
    /// The detector with its data.
    pub fn new() -> Command {
        let hints = names::hint_words().map(Hint::word).chain(HINTS.iter().copied()).collect();
        Command { names: Names::new(), hints }
    }
}

impl Default for Command {
    fn default() -> Self {
        Command::new()
    }
}

/// A file that is no longer than this may be a field to the application.
const FIELD_BYTES_MAX: usize = 96;

/// A command has an argument or a sign around it.
static PROFILE: Profile = Profile::new(Class::Command, KINDS)
    .needs(ByteGroups::of(b" \n;|&`$<>(^\\+%={"))
    .weights(include_str!("../../../weights/command.tsv"));

impl Detector for Command {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn hints(&self) -> &[Hint] {
        &self.hints
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        special::detect(input, found);
        self.calls(input, found);
    }
}

impl Command {
    fn calls(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        // A form's spaces, which nobody has decoded; one behind the sign before the command may be there.
        let parts_words = |at: usize| {
            at > 0 && !matches!(text[at - 1], b';' | b'|' | b'&' | b' ' | b'`' | b'(') && at + 1 < text.len()
        };
        let plus = input.groups.has(b'+')
            && (!memchr::memchr_iter(b' ', text).any(parts_words)
                || memchr::memmem::find(text, b"|+").is_some());
        let mut variables = Variables::default();
        let is_whole_body = input.location.place == Place::Text;
        let takes_password = purpose::takes_password(input.location);
        let is_file = input.location.place == Place::FileContent;
        let may_quote = input.document.is_file || purpose::may_mention(Class::Command, input.location);
        let is_script = input.document.is_script;
        let is_step = purpose::takes_step(input.location);
        let sets_up = is_step || purpose::takes_configuration(input.location);
        let takes_code = purpose::takes_code(input.location) || purpose::takes_command_lines(input.location);
        let mut surroundings = Surroundings::new(text, &self.names);
        let mut pipe: Option<Span> = None;
        let mut was_mentioned = false;
        // Where the commands end with which the value begins, if none of them tells anything.
        let mut plain_until = None;
        for position in Positions::new(text, input.groups) {
            if !found.may_read(POSITION_BYTES) {
                return;
            }
            let line = &text[position.at..];
            let by_shape = |found: &mut Found<'_>| {
                if stranger::may_stand_behind(position.sign) {
                    found.may_read(stranger::LINE_BYTES_MAX.min(line.len()) / 2);
                }
                let Some(span) =
                    stranger(text, &position).filter(|_| !is_whole_body && !takes_password && !is_file)
                else {
                    return;
                };
                for kind in [position.sign.kind(), UNKNOWN] {
                    match takes_code || may_quote {
                        true => found.mention(kind, span),
                        false => found.add(kind, span),
                    }
                }
            };
            if !input.groups.has(b'$') && is_pair(line) {
                continue;
            }
            if !self.names.may_begin(line) {
                by_shape(found);
                continue;
            }
            // What has line ends is no form that nobody has decoded, but lines of Base64, say.
            let plus = (plus || text.get(position.at) == Some(&b'+')) && position.sign != Sign::Newline;
            let mut reader = Reader::new(text, &position, &self.names, &mut variables, plus);
            reader.after_pipe =
                position.sign == Sign::Pipe && pipe.is_some_and(|call| call.end as usize == position.start);
            let after_pipe = reader.after_pipe;
            reader.may_read(found.left());
            let call = reader.read();
            if !found.may_walk(reader.bytes_read(), reader.words_read()) {
                return;
            }
            let Some(call) = call else {
                by_shape(found);
                continue;
            };
            let is_begin = position.sign == Sign::Begin;
            // `more and more of it`, `ping a.example`: what people write, and no more than that.
            let is_said = is_begin && call.group == Group::Net && !call.is_distinctive() && !call.has(OPTION);
            // What developers run is no attack where it is all of a value: `node server.js`.
            let goes_on = plain_until == Some(position.start);
            let is_plain = !call.is_telling() && (call.is_prose || is_begin || goes_on);
            if is_plain && (is_begin || goes_on) {
                plain_until = Some(call.end);
            }
            if is_said || is_plain || is_begin && !call.stands_alone() {
                continue;
            }
            let is_sure = position.is_sure(text, &call)
                || call.group == Group::Recon
                    && position.follows_word(text, call.end)
                    && purpose::takes_single_name(input.location);
            // A body that nobody took apart, or a password, has names and signs by chance.
            let is_by_chance = is_whole_body && (call.has(BARE) || call.has(BARE_WORD))
                || takes_password && !call.parts_words(text);
            if call.is_bare_name() && !is_sure || is_by_chance {
                by_shape(found);
                continue;
            }
            let start = pipe.filter(|_| after_pipe).map_or(position.start, |call| call.start as usize);
            // A call in another's arguments does not end that one.
            if pipe.is_none_or(|call| call.end as usize <= position.start) {
                pipe = Some(Span::new(start, call.end));
            }
            // A pipe goes on as the command before it began.
            let is_mentioned = takes_code
                || may_quote
                    && match (after_pipe, sets_up) {
                        (true, false) => was_mentioned,
                        (true, true) => was_mentioned && surroundings.configures(&position, &call, is_step),
                        (false, true) => surroundings.configures(&position, &call, is_step),
                        (false, false) => {
                            is_script && surroundings.is_of_script(&position, &call)
                                || surroundings.mention(&position, &call)
                        }
                    };
            was_mentioned = is_mentioned;
            // A file is given to no shell as a piece of a command line; what is called one may be a field.
            if is_file && (is_mentioned || text.len() > FIELD_BYTES_MAX) {
                continue;
            }
            let mut add = |kind: KindId, span: Span| {
                if is_mentioned { found.mention(kind, span) } else { found.add(kind, span) }
            };
            if call.group == Group::Tool && !call.has(INSTALL) {
                // What developers paste: it says nothing by itself.
                add(TOOL, call.span());
                // Behind a separator that touches the value and the tool nobody pasted a line.
                let is_part = matches!(position.sign, Sign::Semicolon | Sign::Pipe | Sign::Logical);
                if is_part && is_glued(text, &position) && call.arguments > 1 {
                    add(position.sign.kind(), call.span());
                    add(UNKNOWN, call.span());
                }
                continue;
            }
            add(position.sign.kind(), Span::new(position.start, call.end));
            for kind in call.kinds() {
                add(kind, call.span());
            }
            let runs_input = matches!(call.group, Group::Shell | Group::Code) && reader_takes_pipe(&call);
            if after_pipe && runs_input {
                add(PIPED_TO_SHELL, Span::new(start, call.end));
            }
            if position.may_break_quote(text) && found.may_read(position.start) && position.breaks_quote(text)
            {
                let span = Span::new(0, position.start);
                if is_mentioned { found.mention(QUOTE_BREAK, span) } else { found.add(QUOTE_BREAK, span) }
            }
        }
    }
}

/// `name=value` up to the next sign: it sets what nothing asks for.
fn is_pair(line: &[u8]) -> bool {
    let window = &line[..line.len().min(PAIR_BYTES_MAX)];
    let name = window.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let end = window.iter().position(|b| b.is_ascii_whitespace() || b";|&+`'\"{".contains(b));
    name > 0
        && window.get(name) == Some(&b'=')
        && end.map_or(line.len() == window.len(), |end| matches!(window[end], b';' | b'|' | b'&' | b'\n'))
}

/// What a place costs where a command may begin: what stands there is looked at whatever it is.
const POSITION_BYTES: usize = 8;

/// How far the value of a pair is read.
const PAIR_BYTES_MAX: usize = 96;

/// A shell that is given no file reads its commands from the pipe.
fn reader_takes_pipe(call: &call::Call) -> bool {
    call.has(BARE) || call.has(BARE_WORD) || call.has(OPTION) && !call.has(CODE_ARGUMENT)
}

/// Signs that stand in commands whose name cannot be read without a shell.
const HINTS: &[Hint] = &[
    Hint::text(" -"),
    Hint::text(" /"),
    Hint::text(">/"),
    Hint::text("</"),
    Hint::text("$"),
    Hint::text("`"),
    Hint::text("''"),
    Hint::text("\"\""),
    Hint::text("'"),
    Hint::text("\""),
    Hint::text("\\"),
    Hint::text("^"),
    Hint::text("\x1b["),
    Hint::text("??"),
    Hint::text("/?"),
    Hint::text("<("),
    Hint::text("/dev/"),
    Hint::text("/etc/"),
    Hint::text("/bin"),
    Hint::text("%comspec"),
    Hint::text(":~"),
    Hint::text("()"),
    Hint::text("webclient"),
    Hint::text("new-object"),
    Hint::text("]::"),
    Hint::text(";git "),
    Hint::text(";docker "),
    Hint::text(";kubectl "),
    Hint::text(";aws "),
    Hint::text(";az "),
    Hint::text(";gcloud "),
    Hint::text(";helm "),
    Hint::text(";pip "),
    Hint::text(";pip3 "),
    Hint::text("&&git "),
    Hint::text("&&docker "),
    Hint::text("&&kubectl "),
    Hint::text("&&aws "),
    Hint::text("&&pip "),
    Hint::text(":~"),
    Hint::text("-exec"),
    Hint::text("=@/"),
    Hint::text("-ok "),
    Hint::text("downloadstring"),
    Hint::text("frombase64string"),
    Hint::text("--"),
    Hint::text("-oproxy"),
    Hint::text("-oqueue"),
    Hint::text(".exe"),
    Hint::text("for /f"),
    Hint::text("|'"),
    Hint::word("npm"),
    Hint::word("yarn"),
    Hint::word("pnpm"),
    Hint::text("ext::"),
];
