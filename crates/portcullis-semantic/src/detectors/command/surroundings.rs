//! The surroundings of a command in prose: listings and quotations.
//!
//! It decides only what a field for texts takes as a mention; elsewhere a command is one whatever stands
//! around it.

use portcullis_lex::shell::Variables;

use super::call::Call;
use super::names::Names;
use super::positions::{Position, Sign, schedule};
use crate::detectors::quotation::Quotation;

/// Bytes of the beginning of a line that are read for a command or a prompt.
const HEAD_BYTES_MAX: usize = 64;

/// The lines and quotations of a text, up to where somebody last asked.
#[derive(Debug)]
pub(super) struct Surroundings<'n, 't> {
    text: &'t [u8],
    names: &'n Names,
    quotation: Quotation<'t>,
    at: usize,
    /// The line begins as those of a listing do.
    is_command_line: bool,
}

impl<'n, 't> Surroundings<'n, 't> {
    pub fn new(text: &'t [u8], names: &'n Names) -> Surroundings<'n, 't> {
        let is_command_line = begins_with_command(names, text);
        Surroundings { text, names, quotation: Quotation::new(text), at: 0, is_command_line }
    }

    /// True if `call` stands as people quote commands: on a line of its own, on one that begins with a
    /// command or a prompt, in a quotation; or if it tells nothing. Positions come in order.
    pub fn mention(&mut self, position: &Position, call: &Call) -> bool {
        let line = memchr::memrchr(b'\n', &self.text[self.at.min(position.start)..position.start]);
        if let Some(line) = line.map(|line| self.at + line + 1) {
            self.is_command_line = begins_with_command(self.names, &self.text[line..]);
        }
        self.at = position.start;
        match position.sign {
            Sign::Begin | Sign::Newline | Sign::Backtick => true,
            _ => self.is_command_line || !call.is_telling() || self.quotation.holds(position.start),
        }
    }
}

impl Surroundings<'_, '_> {
    /// True if `call` stands as the commands of a script do: on a line of its own, or after a sign that a
    /// space parts from it. What is glued after a sign on a line, or hidden there, is none.
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

    /// True if `call` stands as the commands of a set-up do, in a field for one: on a line that begins as
    /// those of its documents, or with a command, and after a sign that a space parts from it. What is glued
    /// after a sign, or hidden, is none.
    pub fn configures(&self, position: &Position, call: &Call, is_step: bool) -> bool {
        let text = self.text;
        let mut from = match position.sign {
            Sign::Newline => position.at,
            _ => memchr::memrchr(b'\n', &text[..position.start]).map_or(0, |at| at + 1),
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
            && (begins_with_setting(line) || begins_with_command(self.names, line) || schedule(line) > 0)
    }
}

/// Lines that may go on with one another, of which the first says what they are.
const CONTINUED_LINES_MAX: usize = 64;

/// The beginning of the last line of `text`, if a backslash before its end says that it goes on.
fn continued(text: &[u8]) -> Option<usize> {
    let line = text.strip_suffix(b"\n")?.trim_ascii_end();
    line.ends_with(b"\\").then(|| memchr::memrchr(b'\n', line).map_or(0, |at| at + 1))
}

/// `RUN x`, `command: x`, `- x`, `ExecStart=x`, `@daily x`, `proxy_pass x`: how lines of a set-up begin that
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

/// `cd x`, `$ ls`, `# make`, `PS C:\> dir`, `sudo apt`, `X=1 make`: how lines of a listing begin.
fn begins_with_command(names: &Names, line: &[u8]) -> bool {
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
    let is_prompt = matches!(line, [b'$' | b'#' | b'>' | b'%', b' ', ..]) || line.starts_with(b"PS ");
    let head = &line[..line.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(line.len())];
    let folder = match head {
        [b'/' | b'.' | b'~', ..] => head.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1),
        _ => 0,
    };
    // `find the words`, `time and again`: a sentence begins so, too.
    let is_line = names.get(&head[folder..]).is_some_and(|command| {
        let next = line[head.len()..].trim_ascii_start().first();
        !command.is_word || next.is_some_and(|b| b"-/.~$\"'".contains(b))
    });
    is_prompt || is_line || Variables::assignment(head).is_some()
}
