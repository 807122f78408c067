//! The surroundings of a command in prose: listings and quotations.
//!
//! It decides only what a field for texts takes as a mention; elsewhere a command is one whatever stands
//! around it. There, too, what breaks out of something is none: a sign with a command behind it, where no
//! command line begins before the sign.

use std::cell::OnceCell;

use portcullis_lex::shell::Variables;

use super::call::Call;
use super::names::Names;
use super::positions::{Position, Sign, schedule};
use super::{HOST, PATH, SENSITIVE_FILE};
use crate::detectors::shown::Shown;

/// Back-ticks in a row that quote.
const TICKS_MAX: usize = 8;

/// Bytes of what ends or cuts off a command that is all of a text.
const BREAK_OUT_END_BYTES_MAX: usize = 4;

/// Bytes of the beginning of a line that are read for a command or a prompt.
const HEAD_BYTES_MAX: usize = 64;

/// The lines and quotations of a text, up to the last query.
#[derive(Debug)]
pub(super) struct Surroundings<'n, 't> {
    text: &'t [u8],
    names: &'n Names,
    shown: OnceCell<Shown>,
    at: usize,
    /// Where the line begins.
    line: usize,
}

impl<'n, 't> Surroundings<'n, 't> {
    pub fn new(text: &'t [u8], names: &'n Names) -> Surroundings<'n, 't> {
        Surroundings { text, names, shown: OnceCell::new(), at: 0, line: 0 }
    }

    /// True if `call` stands as people quote commands: on a line of its own, in back-ticks of a sentence, or
    /// on a line or in a quotation that begins with a command; or if it tells nothing. Positions come in
    /// order.
    pub fn mention(&mut self, position: &Position, call: &Call) -> bool {
        match position.sign {
            Sign::Begin | Sign::Newline => true,
            Sign::Backtick => {
                (!call.is_disguised() || call.is_mere_word()) && self.is_in_sentence(position.start)
                    || !call.is_hidden() && !call.has_host() && self.marks_fence(position.start)
            }
            Sign::Substitution => !call.is_hidden() && !call.has_host() && self.is_command_line(position),
            Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical => {
                if self.is_break_out(position, call) {
                    return false;
                }
                let is_said = || !call.has(SENSITIVE_FILE) || !self.is_all(position, call);
                !call.is_telling() || !call.is_disguised() && is_said() && self.is_command_line(position)
            }
        }
    }

    /// `ls; cat /etc/passwd`: two commands are all of the text, and no sentence speaks of them.
    fn is_all(&self, position: &Position, call: &Call) -> bool {
        let before = self.text[..position.start].trim_ascii();
        let is_first = before.iter().all(|b| b.is_ascii_alphanumeric() || b"_-./ ".contains(b));
        let rest = &self.text[call.end.min(self.text.len())..];
        is_first && rest.iter().all(|b| b.is_ascii_whitespace() || b";#&".contains(b))
    }

    /// `';cat x;'`, `"|tac x #`, `;cat x`: a quote at most stands before the sign, and a command with a
    /// file or a host right behind it is all of the text. Nobody writes to others so.
    fn is_break_out(&self, position: &Position, call: &Call) -> bool {
        let before = self.text[..position.start].trim_ascii();
        let is_glued = self.text.get(position.at).is_some_and(|b| !b.is_ascii_whitespace());
        let rest = &self.text[call.end.min(self.text.len())..];
        before.len() <= 1
            && before.iter().all(|b| matches!(b, b'\'' | b'"'))
            && (!before.is_empty() || position.sign == Sign::Semicolon)
            && is_glued
            && [PATH, HOST, SENSITIVE_FILE].iter().any(|kind| call.has(*kind))
            && rest.len() <= BREAK_OUT_END_BYTES_MAX
            && rest.iter().all(|b| b" ;|&#'\"".contains(b))
    }

    /// A command begins the line or the quotation that `position` stands in. Positions come in order.
    pub fn is_command_line(&mut self, position: &Position) -> bool {
        let from = self.at.min(position.start);
        let ends = memchr::memrchr_iter(b'\n', &self.text[from..position.start]);
        // A backslash at its end continues a line.
        let is_end = |at: &usize| !self.text[..from + at].ends_with(b"\\");
        if let Some(line) = ends.take(CONTINUED_LINES_MAX).find(is_end) {
            self.line = from + line + 1;
        }
        self.at = position.start;
        let shown = self.shown().begin(position.start).filter(|begin| *begin <= position.start);
        // A line that the one before goes on with is set off by that, and begins nothing.
        let shown = shown.filter(|begin| !goes_on(&self.text[..*begin]));
        let begin = shown.unwrap_or(0).max(self.line);
        let (line, after) = (&self.text[begin..position.start], &self.text[position.start..]);
        let behind_colon = || after_colon(line).filter(|_| is_parted(after));
        begins_with_command(self.names, line, after, shown.is_some())
            || behind_colon().is_some_and(|line| begins_with_command(self.names, line, after, false))
    }

    fn shown(&self) -> &Shown {
        self.shown.get_or_init(|| Shown::of(self.text))
    }

    /// The back-tick at `at` is one of those that open a quotation that touches no word before it and is not
    /// all of the text, or that end one that touches none behind it.
    pub fn is_in_sentence(&self, at: usize) -> bool {
        let is_tick = |b: &&u8| **b == b'`';
        let at = at - self.text[..at].iter().rev().take(TICKS_MAX).take_while(is_tick).count();
        let (before, after) = self.text.split_at(at);
        let after = &after[after.iter().take(TICKS_MAX).take_while(is_tick).count()..];
        let touches = |b: &u8| b.is_ascii_alphanumeric() || b"$=;|&`'\"\\-".contains(b);
        match self.shown().opens(at) {
            Some(end) => {
                let rest = self.text[end..].trim_ascii();
                let is_all = before.trim_ascii().is_empty() && rest.is_empty();
                !is_all && !before.last().is_some_and(touches)
            }
            None => self.shown().has(at) && !after.first().is_some_and(touches),
        }
    }

    /// The back-tick at `at` is one of a fence that is closed.
    fn marks_fence(&self, at: usize) -> bool {
        let line = memchr::memrchr(b'\n', &self.text[..at]).map_or(0, |line| line + 1);
        self.text[line..at].iter().all(|b| b" >`".contains(b)) && self.shown().opens(line).is_some()
    }
}

impl Surroundings<'_, '_> {
    /// True if `call` stands as the commands of a script do: on a line of its own, or after a sign that a
    /// space parts from it. What directly follows a separator on a line, or is hidden there, does not count.
    pub fn is_of_script(&self, position: &Position, call: &Call) -> bool {
        match position.sign {
            Sign::Begin | Sign::Newline => true,
            Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical => {
                // Another command stands before it on its line.
                let before = &self.text[..position.start];
                let line = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
                let line = line.trim_ascii();
                self.text.get(position.at).is_some_and(u8::is_ascii_whitespace)
                    && !call.is_hidden()
                    && !line.is_empty()
                    && !line.starts_with(b"()")
            }
            Sign::Substitution | Sign::Backtick => !call.is_hidden() && !call.has_host(),
        }
    }

    /// True if `call` stands as the commands of a setup do, in a field for one: on a line that begins as
    /// those of its documents, or with a command, and after a sign that a space parts from it. What directly
    /// follows a separator, or is hidden, does not count.
    pub fn configures(&self, position: &Position, call: &Call, is_step: bool) -> bool {
        let text = self.text;
        let mut from = if position.sign == Sign::Newline {
            position.at
        } else {
            memchr::memrchr(b'\n', &text[..position.start]).map_or(0, |at| at + 1)
        };
        for _ in 0..CONTINUED_LINES_MAX {
            let Some(before) = continued(&text[..from]) else { break };
            from = before;
        }
        let line = text[from..].trim_ascii_start();
        // An item of a list of YAML.
        let line = line.strip_prefix(b"- ").unwrap_or(line).trim_ascii_start();
        let is_parted = match position.sign {
            Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical => {
                text.get(position.at).is_some_and(u8::is_ascii_whitespace)
            }
            // What it writes becomes part of a setting.
            Sign::Substitution | Sign::Backtick => !call.has_host(),
            Sign::Begin => is_step || memchr::memchr(b'\n', text).is_some(),
            Sign::Newline => true,
        };
        is_parted
            && !call.is_hidden()
            && (begins_with_setting(line)
                || begins_with_command(self.names, line, b"", false)
                || is_step && begins_with_program(line)
                || schedule(line) > 0)
    }
}

/// The last line of `text` is the rest of one that a backslash continues.
fn goes_on(text: &[u8]) -> bool {
    memchr::memrchr(b'\n', text).is_some_and(|end| text[..end].ends_with(b"\\"))
}

/// A space stands behind the sign that `text` begins with, as people write programs, or it is a substitution.
fn is_parted(text: &[u8]) -> bool {
    let signs = text.iter().take_while(|b| b";|&".contains(b)).count();
    signs == 0 || text.get(signs).is_some_and(u8::is_ascii_whitespace)
}

/// What a sentence or a step names behind the last colon: `try: sudo x`.
fn after_colon(line: &[u8]) -> Option<&[u8]> {
    memchr::memmem::rfind(line, b": ").map(|at| &line[at + 2..])
}

/// Lines that may go on with one another, of which the first says what they are.
const CONTINUED_LINES_MAX: usize = 64;

/// The beginning of the last line of `text`, if a backslash before its end says that it goes on.
fn continued(text: &[u8]) -> Option<usize> {
    let line = text.strip_suffix(b"\n")?.trim_ascii_end();
    line.ends_with(b"\\").then(|| memchr::memrchr(b'\n', line).map_or(0, |at| at + 1))
}

/// `RUN x`, `command: x`, `- x`, `ExecStart=x`, `@daily x`, `proxy_pass x`: how lines of a setup begin that
/// hold commands.
fn begins_with_setting(line: &[u8]) -> bool {
    let line = &line[..line.len().min(HEAD_BYTES_MAX)];
    let line = line[..memchr::memchr(b'\n', line).unwrap_or(line.len())].trim_ascii();
    const INSTRUCTIONS: &[&[u8]] = &[b"RUN ", b"CMD ", b"ENTRYPOINT ", b"HEALTHCHECK ", b"SHELL ", b"#!"];
    let name = line.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-.\"'".contains(b)).count();
    let is_key = name > 0
        && (matches!(line.get(name..name + 2), Some(b": " | b":\"" | b" =" | b"=\"" | b"=["))
            || line.get(name) == Some(&b'=')
                && line.get(name + 1).is_some_and(|b| *b == b'/' || b.is_ascii_alphanumeric() || *b == b'$')
            || line.get(name) == Some(&b':') && line.len() == name + 1);
    let is_list = line.starts_with(b"[\"") || line.starts_with(b"['");
    is_key
        || is_list
        || INSTRUCTIONS.iter().any(|known| line.starts_with(known))
        || line.starts_with(b"@daily ")
}

/// `tsc -p .`: what a step begins with is a program, whatever its name.
fn begins_with_program(line: &[u8]) -> bool {
    let head = &line[..line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len())];
    !head.is_empty() && head.iter().all(|b| b.is_ascii_alphanumeric() || b"_-./@".contains(b))
}

/// True if the line up to a sign is one of a listing or a program: `cd x`, `$ ls`, `# make`, `!pip install`,
/// `PS C:\> dir`, `sudo apt`, `X=1 make`, `./x`, `x --y z`, `if [ -f x ]`, `v=`. `after` is the text from
/// the sign on. What a text shows as code is no sentence.
fn begins_with_command(names: &Names, line: &[u8], after: &[u8], is_shown: bool) -> bool {
    let line = &line[..line.len().min(HEAD_BYTES_MAX)];
    let line = line[..memchr::memchr(b'\n', line).unwrap_or(line.len())].trim_ascii();
    // A step of a list: `2. sudo systemctl stop app; ...`
    let digits = line.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
    let line = match &line[digits..] {
        [b'.' | b')', b' ', rest @ ..] if digits > 0 => rest.trim_ascii_start(),
        _ => line,
    };
    // A step of a Dockerfile shows its command as a prompt does.
    let line = [&b"RUN "[..], b"CMD "].iter().find_map(|step| line.strip_prefix(*step)).unwrap_or(line);
    // An item of a list of YAML or Markdown.
    let line = line.strip_prefix(b"- ").unwrap_or(line).trim_ascii_start();
    // Behind a prompt stands a program, whatever its name.
    let (line, is_prompted) = match line {
        [b'$' | b'%', b' ', rest @ ..] => (rest.trim_ascii_start(), true),
        [b'#' | b'>', b' ', rest @ ..] | [b'!', rest @ ..] => (rest.trim_ascii_start(), false),
        [b'P', b'S', b' ', ..] => match memchr::memchr(b'>', line) {
            Some(end) => (line[end + 1..].trim_ascii_start(), true),
            None => (line, false),
        },
        _ => (line, false),
    };
    // `(Get-Content x) -replace ...`: what a command of PowerShell writes is an operand there.
    let line = line.strip_prefix(b"(").filter(|inner| begins_with_cmdlet(inner)).unwrap_or(line);
    let is_parted = is_parted(after);
    let is_set = || matches!(after.first(), Some(b'$' | b'`')) && sets_variable(line);
    if is_set() || is_parted && begins_with_keyword(names, line) {
        return true;
    }
    let mut line = line;
    let head = loop {
        let head = &line[..line.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(line.len())];
        // `ExecStart=/bin/sh -c`: a setting that is a command line.
        if is_parted && is_line_of_setting(names, head, &line[head.len()..]) {
            return true;
        }
        // `X=1 make`; `x=1;id` is left open.
        if Variables::assignment(head).is_none() || head.iter().any(|b| b";|&`$(".contains(b)) {
            break head;
        }
        line = line[head.len()..].trim_ascii_start();
    };
    // `ls;id`
    let head = &head[..head.iter().position(|b| b";|&".contains(b)).unwrap_or(head.len())];
    let folder = match head {
        [b'/' | b'.' | b'~', ..] => head.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1),
        _ => 0,
    };
    let rest = line[head.len()..].trim_ascii_start();
    // `find the words`, `time and again`: a sentence begins so, too.
    let is_line = names.get(&head[folder..]).is_some_and(|command| {
        let next = rest.first().or(after.first());
        !(command.is_word || KEYWORDS.contains(&head))
            || is_shown
            || next.is_some_and(|b| b"-/.~$\"'".contains(b))
    });
    is_line || head.starts_with(b"./") || is_parted && is_program(head) && (is_prompted || has_option(rest))
}

/// `v=`, `export V="a-`, `VERSION := `: the line sets a variable to what the sign behind it begins.
fn sets_variable(line: &[u8]) -> bool {
    const BEFORE: &[&[u8]] = &[b"export ", b"local ", b"readonly ", b"declare "];
    let line = BEFORE.iter().find_map(|word| line.strip_prefix(*word)).unwrap_or(line).trim_ascii_start();
    let name = line.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let is_name = line.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    let rest = line[name..].trim_ascii_start();
    // Of a makefile.
    let rest = rest.strip_prefix(b":").or(rest.strip_prefix(b"?")).unwrap_or(rest);
    let Some(value) = rest.strip_prefix(b"=").filter(|_| is_name) else { return false };
    let value = value.trim_ascii_start();
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    value.iter().all(|b| b.is_ascii_alphanumeric() || b"_-./:".contains(b))
}

/// `Get-Content `: a verb and a noun.
fn begins_with_cmdlet(line: &[u8]) -> bool {
    let name = line.iter().take_while(|b| b.is_ascii_alphabetic() || **b == b'-').count();
    let mut words = line[..name].split(|b| *b == b'-');
    let is_word = |word: &[u8]| word.first().is_some_and(u8::is_ascii_uppercase);
    line.get(name) == Some(&b' ') && words.clone().count() == 2 && words.all(is_word)
}

/// `head` sets something to the path of a known program, and an option follows.
fn is_line_of_setting(names: &Names, head: &[u8], rest: &[u8]) -> bool {
    let Some(equals) = memchr::memchr(b'=', head) else { return false };
    let (name, path) = (&head[..equals], &head[equals + 1..]);
    let program = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
    !name.is_empty()
        && name.iter().all(u8::is_ascii_alphanumeric)
        && path.starts_with(b"/")
        && path.iter().all(|b| b.is_ascii_alphanumeric() || b"/-_.".contains(b))
        && names.get(program).is_some()
        && rest.trim_ascii_start().starts_with(b"-")
}

/// Words of a shell before a command, and of sentences.
const KEYWORDS: &[&[u8]] = &[b"if", b"elif", b"while", b"until", b"then", b"do", b"else"];

/// `if [ .. ]`, `for x in ..`, `while read ..`, `then make`, `case x in`: a statement of a shell.
fn begins_with_keyword(names: &Names, line: &[u8]) -> bool {
    const TESTS: &[&[u8]] = &[b"[", b"[[", b"!", b"test", b"read", b"true"];
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || words.next().unwrap_or_default();
    match word() {
        first if KEYWORDS.contains(&first) => {
            let next = word();
            TESTS.contains(&next) || names.get(next).is_some_and(|command| !command.is_word)
        }
        b"for" | b"case" => !word().is_empty() && word() == b"in",
        b"[" | b"[[" => true,
        _ => false,
    }
}

/// The name of a program, as most are written.
fn is_program(word: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(b);
    word.len() > 1 && word[0].is_ascii_lowercase() && word.iter().all(is_part)
}

/// `--x`, `-x`: an option as a word.
fn has_option(words: &[u8]) -> bool {
    words.split(u8::is_ascii_whitespace).any(|word| match word {
        [b'-', b'-', first, ..] => first.is_ascii_lowercase(),
        [b'-', letter] => letter.is_ascii_alphabetic(),
        _ => false,
    })
}
