//! Command injection.
//!
//! What it does: looks for the places of a value where a shell would begin a command (after `;`, `|`, `&`
//! and line ends, in `$(..)` and back-ticks, at its beginning), reads the word there as the shell would
//! expand it, and asks whether it is a known command with arguments of the shape that command takes.
//! `; cat /etc/passwd` is a call, `; cat food` is not.
//!
//! Why it is dangerous: the command runs with the application's rights.
//!
//! References: <https://owasp.org/www-community/attacks/Command_Injection>,
//! <https://capec.mitre.org/data/definitions/88.html>.

mod arguments;
mod blocks;
mod call;
mod calls;
mod field;
mod names;
mod options;
mod positions;
mod shape;
mod special;
mod stranger;
mod surroundings;
#[cfg(test)]
mod tests;

use self::calls::Calls;
pub use self::field::CommandField;
pub(super) use self::names::Names;
use super::formula;
use super::purpose::MACHINES;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Command_Injection";
    SEMICOLON "command.semicolon" Warning Quotable "a command follows a semicolon";
    PIPE "command.pipe" Warning Quotable "a command follows a pipe sign";
    AMPERSAND "command.ampersand" Warning Quotable "a command follows an ampersand";
    LOGICAL "command.logical" Warning Quotable "a command follows && or ||";
    NEWLINE "command.newline" Warning Quotable "a command follows a line end";
    SUBSTITUTION "command.substitution" Error Quotable "a command stands in $(..), back-ticks or <(..)";
    WHOLE "command.whole" Notice Quotable "the value begins with a command";
    RECON "command.recon" Error Quotable "a command that tells about the system";
    LISTING "command.listing" Warning Quotable "a command that lists files";
    READING "command.reading" Warning Quotable "a command that reads files";
    NETWORK "command.network" Warning Quotable "a command that talks to other machines";
    INTERPRETER "command.interpreter" Warning Quotable "a shell or an interpreter is started";
    DELAY "command.delay" Error Quotable "a command that waits";
    SYSTEM "command.system" Warning Quotable "a command that changes files or the system";
    OUTPUT "command.output" Notice Quotable "a command that writes a text";
    TOOL "command.tool" Notice Quotable "a tool of developers";
    CMDLET "command.cmdlet" Error Quotable "a command of PowerShell";
    UNKNOWN "command.unknown" Error Quotable
        "a program with an option or a path, by its shape, directly after a separator";
    BARE "command.bare" Warning Quotable "the command takes no argument, and none follows";
    BARE_WORD "command.bare-word" Notice Quotable "the command's name is also a word, and nothing follows";
    SENSITIVE_FILE "command.sensitive-file" Error Quotable
        "its argument is a file that tells about the system";
    PATH "command.path" Warning Quotable "its argument is a path";
    HOST "command.host" Warning Quotable "its argument is a host or URL";
    FETCH "command.fetch" Notice Quotable "loads from a URL";
    INSTALL "command.install" Error Quotable "a package manager installs what a URL names";
    OPTION "command.option" Notice Quotable "its argument is an option";
    NUMBER "command.number" Notice Quotable "its argument is a number";
    TEXT "command.text" Warning Quotable "its argument is a quoted text with signs in it";
    EXPANSION "command.expansion" Warning Quotable "its argument is a variable or another command's output";
    ARGUMENT "command.argument" Notice Quotable "its argument is a word that it takes";
    PATHED "command.pathed" Warning Quotable "the command is called by its path";
    PREFIXED "command.prefixed" Notice Quotable "another command (sudo, env, ...) runs it";
    SPLIT_NAME "command.split-name" Critical Quotable "quotes or backslashes split the command's name";
    GLOB_NAME "command.glob-name" Error Quotable "a pattern stands for the command's name";
    ASSEMBLED_NAME "command.assembled-name" Error Quotable
        "variables or empty expansions make up the command's name";
    BRACE_LIST "command.brace-list" Error Quotable "the command is written as a list in braces";
    IFS "command.ifs" Error Quotable "$IFS stands where spaces would";
    CARETS "command.carets" Error Quotable "carets split the command's name";
    QUOTE_BREAK "command.quote-break" Warning Quotable "a quote ends the literal before the command";
    PIPED_TO_SHELL "command.piped-to-shell" Critical Quotable
        "a shell or interpreter runs what another command writes";
    CODE_ARGUMENT "command.code-argument" Error Quotable
        "code or a command line is given to an interpreter as an argument";
    EXEC_ARGUMENT "command.exec-argument" Error Quotable "an option makes the command run another one";
    REVERSE_SHELL "command.reverse-shell" Critical Quotable "a shell is connected to another machine";
    SHELLSHOCK "command.shellshock" Critical Quotable
        "a function definition for bash as the environment passes it, with commands after it";
    ENCODED_POWERSHELL "command.encoded-powershell" Critical Quotable
        "PowerShell is given an encoded command";
    POWERSHELL_DOWNLOAD "command.powershell-download" Critical Quotable
        "PowerShell loads code from another machine or from text";
    LOOP "command.loop" Critical Quotable "a loop of cmd over what a command writes: for /f .. in ('..') do";
    TERMINAL "command.terminal" Critical Quotable "a control sequence that moves the cursor of a terminal";
    COMPUTED "command.computed" Critical Quotable
        "the shell computes with numbers alone, as who asks whether one is there does: `$((71*13))`";
    VARIABLE "command.variable" Critical Quotable
        "a variable of the system is all of the value, after a sign of PowerShell: `;$env:USERNAME`";
    DOTNET "command.dotnet" Critical Quotable
        "PowerShell calls a type of .NET that reaches processes, files, other machines or code";
    CMD_VARIABLE "command.cmd-variable" Critical Quotable
        "cmd or a shell puts a part of a variable into a word: `who%x:~0,1%ami`";
    HERE_STRING "command.here-string" Critical Quotable
        "a substitution is given a text, so that what it writes is a command: `$(rev<<<'di')`";
    SPREADSHEET "command.spreadsheet" Critical Quotable
        "a formula that starts a program by DDE: `=cmd|'/C calc'!A0`";
    FORMULA "command.formula" Critical Quotable
        "a formula of a spreadsheet that starts a program, or loads from another machine and so tells it of the sheet";
    HOST_ASKED "command.host-asked" Critical Quotable
        "a parameter of the query is a command line that reaches another machine";
    SCRIPT "command.script" Critical Quotable
        "a script for a shell that loads from another machine, as all of a value";
    OPTION_INJECTION "command.option-injection" Critical Quotable
        "the value is an option that makes a program run commands or write files";
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
        let glued = (0..GLUED.len() / 2).map(|pair| Hint::text(&GLUED[2 * pair..2 * pair + 2]));
        let options = (0..OPTIONS.len() / 3).map(|one| Hint::text(&OPTIONS[3 * one..3 * one + 3]));
        let logical =
            (0..LOGICAL_PAIRS.len() / 3).map(|one| Hint::text(&LOGICAL_PAIRS[3 * one..3 * one + 3]));
        let formulas = formula::LOADING.iter().chain(formula::STARTING);
        let formulas = formulas.filter_map(|name| Some(Hint::text(str::from_utf8(name).ok()?)));
        let glued = glued.chain(options).chain(logical).chain(formulas);
        let hints = names::hint_words().map(Hint::word).chain(HINTS.iter().copied()).chain(glued).collect();
        Command { names: Names::new(), hints }
    }
}

impl Default for Command {
    fn default() -> Self {
        Command::new()
    }
}

/// A command has an argument or a sign around it.
static PROFILE: Profile = Profile::new(Class::Command, KINDS)
    .needs(ByteGroups::of(b" \n;|&`$<>(^\\+%={-"))
    .weights(include_str!("../../../weights/command.tsv"));

impl Detector for Command {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// There a separator is enough, whatever the program is called.
    fn keys(&self) -> &[&'static str] {
        MACHINES
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        special::detect(input, found);
        Calls::new(&self.names, input).read(found);
    }
}

/// A separator and the first letter of a name, with no space between: a command that no table has. An
/// ampersand stands so in every address.
const GLUED: &str = ";a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q;r;s;t;u;v;w;x;y;z\
                     |a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z;>;<;[;.;(";

/// Two ampersands stand in none.
const LOGICAL_PAIRS: &str = "&&a&&b&&c&&d&&e&&f&&g&&h&&i&&j&&k&&l&&m&&n&&o&&p&&q&&r&&s&&t&&u&&v&&w&&x&&y&&z";

/// Options of one letter with something behind them.
const OPTIONS: &str = "-a -b -c -d -e -f -g -h -i -j -k -l -m -n -o -p -q -r -s -t -u -v -w -x -y -z ";

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
    Hint::text("/tmp"),
    Hint::text("/var/"),
    Hint::text("/home"),
    Hint::text("/root"),
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
    Hint::text("./"),
    // What an unknown program reads.
    Hint::text(".php"),
    Hint::text(".conf"),
    Hint::text(".txt"),
    Hint::text(".ini"),
    Hint::text(".log"),
    Hint::text(".env"),
    Hint::text(".yml"),
    Hint::text(".json"),
];
