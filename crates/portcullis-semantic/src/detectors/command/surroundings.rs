//! What stands around a command in a text that people write: listings and quotations.
//!
//! It decides only what a field for texts takes as a mention; elsewhere a command is one whatever stands around it.

use portcullis_lex::shell::Variables;

use super::call::Call;
use super::names::Names;
use super::positions::{Position, Sign};
use crate::detectors::quotation::Quotation;

/// How far the beginning of a line is read for a command or a prompt.
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

    /// True if `call` stands as people quote commands: on a line of its own, on one that begins with a command or a prompt, in a
    /// quotation; or if it tells nothing. Positions come in order.
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

/// `cd x`, `$ ls`, `# make`, `PS C:\> dir`, `sudo apt`, `X=1 make`: how lines of a listing begin.
fn begins_with_command(names: &Names, line: &[u8]) -> bool {
    let line = &line[..line.len().min(HEAD_BYTES_MAX)];
    let line = line[..memchr::memchr(b'\n', line).unwrap_or(line.len())].trim_ascii();
    let is_prompt = matches!(line, [b'$' | b'#' | b'>' | b'%', b' ', ..]) || line.starts_with(b"PS ");
    let head = &line[..line.iter().position(|b| b.is_ascii_whitespace()).unwrap_or(line.len())];
    let folder = match head {
        [b'/' | b'.' | b'~', ..] => head.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1),
        _ => 0,
    };
    is_prompt || names.get(&head[folder..]).is_some() || Variables::assignment(head).is_some()
}
