//! The judgement of a call: a command with arguments that it takes.

use super::{Arguments, Call, Reader};
use crate::detectors::command::names::{Command, Group, NAME_BYTES_MAX};
use crate::detectors::command::positions::Sign;
use crate::detectors::command::shape::Shape;
use crate::detectors::command::*;

impl Reader<'_, '_> {
    /// Whether the arguments are such as the command takes.
    pub(super) fn judge(&self, command: &Command, mut call: Call, seen: &Arguments) -> Option<Call> {
        if is_compared(&self.text[call.start..], self.sign) || self.is_said(command, &call, seen) {
            return None;
        }
        let takes = |letter: u8| command.takes.contains(&letter);
        let mut fits = self.by_variable;
        // `&set`: the name of a word and a sign are all there is.
        let is_alone =
            || self.sign != Sign::Begin && !self.text[..self.start].iter().any(u8::is_ascii_alphanumeric);
        // `cat<flag`: the file follows the name without a space, and is all of the rest.
        fits |= takes(b'r') && seen.redirects_in && seen.count == 1 && is_fed(&self.text[call.start..]);
        let takes_nothing = takes(b'.')
            || takes(b'a') && is_alone()
            || self.after_pipe && (takes(b'x') || takes(b'r'))
            || takes(b'r') && seen.redirects_in;
        fits |= self.after_pipe && takes(b'r');
        if command.group == Group::Shell && (seen.redirects_in || seen.redirects_out) {
            // A shell whose input or output is connected to something.
            fits = true;
        } else if seen.count == 0 && takes_nothing {
            call.note(if command.is_word && !self.after_pipe { BARE_WORD } else { BARE });
            fits = true;
        }
        if command.group == Group::Print {
            // What is written tells nothing.
            // `he said; 'echo' is nice`
            let is_quotation =
                matches!(self.text.get(call.start), Some(b'\'' | b'"')) && !call.has(SPLIT_NAME);
            // `tee time 7:30`: what writes to files has one, or a pipe before it.
            let has_file = || {
                [Shape::Path, Shape::Sensitive, Shape::Expansion, Shape::Option, Shape::Glob]
                    .iter()
                    .any(|shape| seen.has(*shape))
                    || seen.redirects_in
                    || self.sign == Sign::Pipe
                    || self.sign == Sign::Substitution
            };
            fits |= seen.count > 0 && !is_quotation && (!takes(b'p') || has_file());
            call.note(ARGUMENT);
            // `tee /var/www/x.php`, `echo x > /var/www/x.php`
            let writes = takes(b'p') || seen.redirects_out;
            if writes && (call.reaches_out || seen.has(Shape::Sensitive)) {
                call.note(PATH);
            }
        } else if seen.count > 0 {
            fits |= takes_arguments(command, &mut call, seen);
        }
        // What tells about the system is called so by nobody who means something else.
        let is_no_word = command.group == Group::Recon
            && command.is_distinctive
            && !command.is_word
            && takes(b'.')
            && self.sign != Sign::Begin;
        // `&& pwd` in the middle of a text: after two signs stands no name of a field.
        // Nor does a text begin with one.
        let follows_logical = (self.sign == Sign::Logical || self.sign != Sign::Begin && is_alone())
            && matches!(command.group, Group::Recon | Group::List)
            && !command.is_word
            && takes(b'.');
        let is_no_word = is_no_word || follows_logical;
        call.is_prose &= !(follows_logical || command.is_distinctive && seen.named_subcommand);
        fits |= is_no_word;
        // Words that the command does not take make it prose: `find / replace all of them`.
        let wordy = if command.is_word { 1 } else { 2 };
        let is_sure = [SENSITIVE_FILE, CODE_ARGUMENT, HOST, EXEC_ARGUMENT].iter().any(|kind| call.has(*kind))
            || self.sign != Sign::Begin
                && (call.reaches_out || command.group == Group::Delay && seen.first == Some(Shape::Number));
        let takes_words =
            takes(b'w') || takes(b'c') || takes(b's') || matches!(command.group, Group::Code | Group::Shell);
        if seen.plain_words > wordy && !takes_words && !is_sure && !is_no_word {
            return None;
        }
        // `sleep 8 hours`
        if takes(b'n') && command.group == Group::Delay && seen.second_is_unit {
            return None;
        }
        if !fits {
            return None;
        }
        note_uses(command, &mut call, seen);
        Some(call)
    }
}

/// Notes the shapes of the arguments. True if the command takes them.
fn takes_arguments(command: &Command, call: &mut Call, seen: &Arguments) -> bool {
    let takes = |letter: u8| command.takes.contains(&letter);
    let mut fits = false;
    for (letter, shapes, kind) in [
        (b'p', &[Shape::Sensitive][..], SENSITIVE_FILE),
        (b'p', &[Shape::Path][..], PATH),
        (b'h', &[Shape::Host][..], HOST),
        (b'o', &[Shape::Option][..], OPTION),
        (b'/', &[Shape::Option][..], OPTION),
        (b'n', &[Shape::Number, Shape::Expansion][..], NUMBER),
        (b's', &[Shape::Text][..], TEXT),
        (b'g', &[Shape::Glob][..], PATH),
        (b'w', &[Shape::Word][..], ARGUMENT),
        (b'c', &[Shape::Word][..], ARGUMENT),
    ] {
        let present = shapes.iter().any(|shape| seen.has(*shape));
        let strong = matches!(kind, SENSITIVE_FILE | HOST) && present;
        let by_rule = present
            && takes(letter)
            && match letter {
                b'n' => {
                    matches!(seen.first, Some(Shape::Number | Shape::Expansion))
                        || takes(b'h') && seen.has(Shape::Host)
                }
                b'w' if command.subcommands.is_empty() => !command.is_word,
                b'w' => seen.named_subcommand,
                b'c' => seen.named_command && seen.count <= 3,
                b'/' => seen.has_slash_option,
                _ => true,
            };
        if by_rule || strong {
            call.note(kind);
            fits |= by_rule || command.group != Group::Tool && kind == SENSITIVE_FILE;
        }
    }
    if seen.has(Shape::Expansion) && !takes(b'n') && command.subcommands.is_empty() {
        call.note(EXPANSION);
        fits |= !command.is_word || seen.plain_words == 0;
    }
    fits |= call.has(CODE_ARGUMENT)
        || call.has(EXEC_ARGUMENT)
        || call.has(REVERSE_SHELL)
        || call.has(ENCODED_POWERSHELL);
    fits
}

/// Notes the kind of the command, and uses of it that its arguments show.
fn note_uses(command: &Command, call: &mut Call, seen: &Arguments) {
    let kind = match command.group {
        Group::Recon => RECON,
        Group::List => LISTING,
        Group::Read => READING,
        Group::Net => NETWORK,
        Group::Shell | Group::Code => INTERPRETER,
        Group::Delay => DELAY,
        Group::System => SYSTEM,
        Group::Print => OUTPUT,
        Group::PowerShell => CMDLET,
        Group::Prefix | Group::Tool => TOOL,
    };
    if !call.has(BARE_WORD) {
        call.note(kind);
    }
    if command.group == Group::Net
        && command.is_distinctive
        && seen.has_url
        && seen.first == Some(Shape::Host)
    {
        call.note(FETCH);
    }
    if command.group == Group::Tool && seen.installs && seen.has_url {
        call.note(INSTALL);
        call.note(HOST);
    }
    if command.group == Group::Shell && seen.reads_text {
        call.note(PIPED_TO_SHELL);
    }
    if command.group == Group::Shell && seen.interactive && (seen.redirects_in || seen.redirects_out) {
        call.note(REVERSE_SHELL);
    }
}

/// `cat<flag`, and nothing after the file but a sign.
fn is_fed(call: &[u8]) -> bool {
    let name = call.iter().take(NAME_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric()).count();
    let Some(file) = call[name..].strip_prefix(b"<") else { return false };
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"._-/*?".contains(b);
    let len = file.iter().take(FILE_BYTES_MAX).take_while(|b| is_part(b)).count();
    len > 0 && file[len..].trim_ascii().len() <= 1
}

/// Bytes of a file's name.
const FILE_BYTES_MAX: usize = 128;

/// Bytes of a user's name that are looked up.
const USER_BYTES_MAX: usize = 32;

impl Reader<'_, '_> {
    /// `Stage || env is prod`, `at 5 && id required`: after a space stands a word of a sentence that none of
    /// the two takes: no option, assignment, command, path or user of a system.
    fn is_said(&self, command: &Command, call: &Call, seen: &Arguments) -> bool {
        const USERS: &[&[u8]] = words!("command", "users");
        let rest = self.text[call.start..].get(command.name.len()..).unwrap_or_default().trim_ascii_start();
        let end = rest.iter().take(USER_BYTES_MAX).position(|b| !b.is_ascii_alphabetic());
        let word = &rest[..end.unwrap_or(rest.len().min(USER_BYTES_MAX))];
        let ends = rest.get(word.len()).is_none_or(|b| b.is_ascii_whitespace() || b",.;:!?&|".contains(b));
        matches!(command.name, "id" | "env")
            && self.sign != Sign::Begin
            && !self.is_glued
            && !word.is_empty()
            && ends
            && !call.has(PREFIXED)
            && !seen.named_command
            && !seen.redirects_out
            && seen.count > 0
            && seen.plain_words == seen.count
            && !USERS.contains(&word)
    }
}

/// `== 'dev'`: after the signs stands a text in quotes, and then the end or another condition.
fn is_one_string(operand: &[u8]) -> bool {
    let signs = operand.iter().take_while(|b| matches!(b, b'!' | b'=')).count();
    let text = operand[signs..].trim_ascii_start();
    let Some(quote) = text.first().filter(|b| matches!(b, b'\'' | b'"')) else { return false };
    let Some(end) = memchr::memchr(*quote, &text[1..]) else { return false };
    let after = text[end + 2..].trim_ascii_start();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    text[1..=end].iter().all(is_name)
        && (after.is_empty()
            || matches!(after[0], b')' | b'}' | b']')
            || after.starts_with(b"&&")
            || after.starts_with(b"||"))
}

/// `id !== undefined`, `users == 1`, `env = 'dev'`, `&& id > 5`: a variable of a program or a filter. The
/// commands of these names fail with such an operand, or write to a file that is called like a number, and
/// tell nothing.
fn is_compared(call: &[u8], sign: Sign) -> bool {
    [&b"id"[..], b"whoami", b"uname", b"hostname", b"users", b"env"].iter().any(|name| {
        call.strip_prefix(*name).is_some_and(|rest| {
            let operand = rest.trim_ascii_start();
            let is_order = || {
                let number = operand.strip_prefix(b">").or_else(|| operand.strip_prefix(b"<"));
                let number = number.map(|rest| rest.strip_prefix(b"=").unwrap_or(rest).trim_ascii_start());
                number.is_some_and(|rest| {
                    let digits = rest.iter().take(12).take_while(|b| b.is_ascii_digit()).count();
                    digits > 0 && !rest.get(digits).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'/')
                })
            };
            // `hostname = x` sets the name, and `=x` is none.
            let is_assigned = matches!(*name, b"id" | b"env") && operand.starts_with(b"= ");
            let is_equal = operand.starts_with(b"!=") || operand.starts_with(b"==") || is_assigned;
            // `env != id` sets a variable and runs `id`.
            let is_value = || *name != b"env" || is_one_string(operand);
            let is_number = *name == b"id" && sign == Sign::Logical && is_order();
            operand.len() < rest.len() && (is_equal && is_value() || is_number)
        })
    })
}
