//! Findings from the arguments of a command.

use portcullis_lex::shell::Marks;

use super::call::Call;
use super::names::{Command, Group};
use super::shape::Shape;
use super::{
    ASSEMBLED_NAME, BRACE_LIST, CARETS, CODE_ARGUMENT, ENCODED_POWERSHELL, EXEC_ARGUMENT, GLOB_NAME,
    REVERSE_SHELL, SPLIT_NAME,
};

/// The arguments of a command, as counts and shapes.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub count: usize,
    shapes: u16,
    pub first: Option<Shape>,
    /// The second argument is a word for a time.
    pub second_is_unit: bool,
    pub plain_words: usize,
    /// `install`, `add`
    pub installs: bool,
    pub named_subcommand: bool,
    /// A URL of the web.
    pub has_url: bool,
    pub named_command: bool,
    pub interactive: bool,
    /// `/a`
    pub has_slash_option: bool,
    pub redirects_in: bool,
    /// `<<`, `<<<`
    pub reads_text: bool,
    pub redirects_out: bool,
    pub last_option: Option<[u8; 4]>,
}

impl Arguments {
    pub fn add(&mut self, shape: Shape, word: &[u8], command: &Command) {
        if self.count == 0 {
            self.first = Some(shape);
            self.named_subcommand = command
                .subcommands
                .split(',')
                .any(|known| !known.is_empty() && word.eq_ignore_ascii_case(known.as_bytes()));
        }
        if self.count == 1 {
            self.second_is_unit = shape == Shape::Word && is_unit(word);
        }
        self.count += 1;
        self.installs |= matches!(word, b"install" | b"i" | b"add" | b"download" | b"exec" | b"dlx");
        let word = word.strip_prefix(b"git+").unwrap_or(word);
        self.has_url |= shape == Shape::Host
            && (word.starts_with(b"http://") || word.starts_with(b"https://") || word.starts_with(b"ftp://"));
        self.shapes |= 1 << shape as u16;
        // What follows an option may be its value.
        self.plain_words += usize::from(shape == Shape::Word && self.last_option.is_none());
        self.has_slash_option |= shape == Shape::Option && word.starts_with(b"/");
        self.interactive |= shape == Shape::Option && word.contains(&b'i') && word.len() <= 4;
        self.last_option = None;
        if shape == Shape::Option {
            let mut option = [0; 4];
            let len = word.len().min(4);
            option[..len].copy_from_slice(&word[..len]);
            self.last_option = Some(option);
        }
    }

    pub fn has(&self, shape: Shape) -> bool {
        self.shapes >> shape as u16 & 1 == 1
    }
}

/// `hours`, `min`, `nights`
fn is_unit(word: &[u8]) -> bool {
    const UNITS: &[&[u8]] = words!("command", "units");
    let word = &word[..word.iter().take_while(|b| b.is_ascii_alphabetic()).count()];
    UNITS.iter().any(|unit| {
        word.get(..unit.len()).is_some_and(|head| head.eq_ignore_ascii_case(unit))
            && matches!(&word[unit.len()..], b"" | b"s" | b"S")
    })
}

/// Notes what a single argument tells.
pub(super) fn note_argument(
    call: &mut Call,
    command: &Command,
    word: &[u8],
    raw: &[u8],
    shape: Shape,
    before: Option<[u8; 4]>,
) {
    let lower_starts =
        |start: &[u8]| word.len() >= start.len() && word[..start.len()].eq_ignore_ascii_case(start);
    let contains = |part: &[u8]| memchr::memmem::find(word, part).is_some();
    if contains(b"/dev/tcp/") || contains(b"/dev/udp/") {
        call.note(REVERSE_SHELL);
    }
    // `-c CODE`, `-e CODE`, `/c LINE`, `-Command LINE`
    let after_code_option = before.is_some_and(|option| match command.group {
        Group::Shell if command.is_windows => matches!(option, [b'/' | b'-', b'c' | b'C' | b'k' | b'K', ..]),
        // `-jar` names a file.
        Group::Code if command.name == "java" => false,
        Group::Shell | Group::Code => {
            let short = option[1..].iter().take_while(|b| **b != 0);
            option[0] == b'-'
                && option[1] != b'-'
                && short.clone().any(|b| matches!(b, b'c' | b'e' | b'r' | b'n'))
        }
        Group::Recon
        | Group::List
        | Group::Read
        | Group::Net
        | Group::Delay
        | Group::System
        | Group::Print
        | Group::Prefix
        | Group::PowerShell
        | Group::Tool => false,
    });
    if after_code_option && shape != Shape::Option {
        call.note(CODE_ARGUMENT);
    }
    let executes = matches!(word, b"-exec" | b"-execdir" | b"-ok" | b"--exec" | b"--checkpoint-action")
        || contains(b"-action=exec")
        || contains(b"ProxyCommand=")
        || contains(b"--to-command")
        || contains(b"system(")
        || word.starts_with(b":!")
        || lower_starts(b"exec:")
        || lower_starts(b"--use-compress-program")
        || lower_starts(b"javascript:")
        || lower_starts(b"-urlcache")
        || lower_starts(b"/transfer");
    if executes {
        call.note(EXEC_ARGUMENT);
    }
    let is_netcat =
        command.group == Group::Net && command.name.starts_with('n') && command.name != "nslookup";
    if is_netcat && shape == Shape::Option && raw.len() <= 6 && (word.contains(&b'e') || word.contains(&b'c'))
    {
        call.note(REVERSE_SHELL);
    }
    if command.group == Group::Shell && command.is_windows && command.name != "cmd" {
        let name = word.strip_prefix(b"-").or(word.strip_prefix(b"/")).unwrap_or(b"");
        let is_encoded = !name.is_empty()
            && name.len() <= 14
            && b"encodedcommand".get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
            || name.eq_ignore_ascii_case(b"enc")
            || name.eq_ignore_ascii_case(b"ec");
        if is_encoded {
            call.note(ENCODED_POWERSHELL);
        }
    }
}

pub(super) fn note_marks(call: &mut Call, marks: Marks) {
    if marks.has(Marks::SPLIT.with(Marks::ESCAPED).with(Marks::ANSI)) {
        call.note(SPLIT_NAME);
    }
    if marks.has(Marks::GLOB.with(Marks::SLICE)) {
        call.note(GLOB_NAME);
    }
    if marks.has(Marks::VARIABLE.with(Marks::EMPTY)) {
        call.note(ASSEMBLED_NAME);
    }
    if marks.has(Marks::BRACE) {
        call.note(BRACE_LIST);
    }
    if marks.has(Marks::CARET) {
        call.note(CARETS);
    }
    if marks.has(Marks::PERCENT) {
        call.note(ASSEMBLED_NAME);
    }
}
