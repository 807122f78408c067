//! Options of programs as all of a value: `--file=config.php`, `-T config.php`, `-O./x`, `-d @x`.
//!
//! A value that an application gives to a program as one of its arguments is an option to it if it begins
//! with a hyphen. Options that read, write, load or connect name a file, a machine or a setting; a value that
//! people write and that begins so (a dash, a number, a word to leave out of a search) does not.

use portcullis_lex::shell::Marks;

use super::shape::{self, Shape};

/// A longer value is a text.
const BYTES_MAX: usize = 160;

/// Words of the value.
const WORDS_MAX: usize = 4;

/// All of `text` is an option with what it names.
pub(super) fn is_option_alone(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    if text.len() > BYTES_MAX || !text.starts_with(b"-") || text.contains(&b'\n') {
        return false;
    }
    let mut words = text.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    let rest = words.clone().count();
    if rest >= WORDS_MAX {
        return false;
    }
    let is_rest = |word: &[u8]| word.starts_with(b"-") || names_thing(word);
    match option(first) {
        Some(Form::Given) => words.all(is_rest),
        Some(Form::Plain) => rest > 0 && words.clone().any(names_thing) && words.all(is_rest),
        None => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// What it names is a part of the word.
    Given,
    /// The next word may be what it names.
    Plain,
}

fn option(word: &[u8]) -> Option<Form> {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
    if let Some(long) = word.strip_prefix(b"--") {
        let len = long.iter().take_while(|b| is_name(b)).count();
        let (name, value) = long.split_at(len);
        let is_long = len >= 2 && name[0].is_ascii_lowercase() && !name.ends_with(b"-");
        return match value {
            [] if is_long => Some(Form::Plain),
            // `--flag=1` names nothing.
            [b'=', value @ ..]
                if is_long && value.iter().any(|b| b.is_ascii_graphic() && !b.is_ascii_digit()) =>
            {
                Some(Form::Given)
            }
            _ => None,
        };
    }
    let name = word.strip_prefix(b"-")?;
    if !name.first()?.is_ascii_alphabetic() {
        return None;
    }
    if name.iter().all(u8::is_ascii_alphanumeric) {
        return Some(Form::Plain);
    }
    // `-O./x`, `-K/etc/x`, `-Fx=@y`, `-oProxyCommand=x`, `-Dx.y=z`
    let rest = &name[1..];
    let is_path = |path: &[u8]| matches!(path, [b'.', b'/', ..] | [b'.', b'.', b'/', ..] | [b'~', b'/', ..]);
    let is_system =
        matches!(rest, [b'/', first, ..] if first.is_ascii_lowercase()) && rest[1..].contains(&b'/');
    let file = rest.iter().position(|b| *b == b'=').map(|at| &rest[at + 1..]);
    let is_setting = matches!(name[0], b'o' | b'D' | b'F' | b'X')
        && file.is_some_and(|value| !value.is_empty())
        && rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'@');
    (is_path(rest) || is_system || is_setting).then_some(Form::Given)
}

/// A file, a machine, or a list of settings: `config.php`, `./x`, `@x`, `evil.example`, `concat:x.php`,
/// `type=bind,source=/`.
fn names_thing(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"@").unwrap_or(word);
    let value = word.iter().rposition(|b| matches!(b, b'=' | b':' | b'@')).map_or(word, |at| &word[at + 1..]);
    let is_thing = |text: &[u8]| {
        matches!(shape::of(text, Marks::NONE, false), Shape::Path | Shape::Sensitive | Shape::Host)
            && !text.ends_with(b",")
            && !text.ends_with(b".")
    };
    is_thing(word) || is_thing(value) || sets_key(word)
}

/// `protocol.ext.allow=always`: a key of settings, of names that dots join, and its value.
fn sets_key(word: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', word).filter(|at| at + 1 < word.len()) else { return false };
    let mut names = word[..at].split(|b| *b == b'.');
    let is_name = |name: &[u8]| {
        name.first().is_some_and(u8::is_ascii_lowercase) && name.iter().all(u8::is_ascii_alphabetic)
    };
    names.clone().count() > 1 && names.all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::testing::{look, passes_at};
    use crate::{Class, Place};

    #[test]
    fn options_of_programs() {
        for text in [
            "--file=config.php",
            "-T config.php",
            "-d @config.php",
            "-F f=@config.php",
            "--proxy evil.example",
            "--upload-file config.php",
            "-exec ./x",
            "-O./x",
            "--require=./x",
            "-u./x",
            "-x evil.example",
            "-i concat:config.php",
            "-v /:/h",
            "--unix-socket /x",
            "-oProxyCommand=x",
            "-c protocol.ext.allow=always",
            "-c core.pager=x",
        ] {
            assert!(is_option_alone(text.as_bytes()), "{text}");
            let (kinds, is_blocked) = look(Class::Command, Place::Form, "name", text.as_bytes());
            assert!(is_blocked, "{text}: {kinds}");
        }
    }

    #[test]
    fn other_hyphens() {
        for text in [
            "-",
            "--",
            "-5",
            "-5 degrees",
            "-created_at",
            "-price,name",
            "--verbose",
            "--flag=1",
            "-la",
            "-v",
            "-- John",
            "--- a/x.c",
            "-> next",
            "-50%",
            "-foo bar",
            "--see the notes",
            "-1/2",
            "-x^2/(a+b)",
            "-John Smith, Inc.",
            "- item one",
            "-and/or",
        ] {
            assert!(!is_option_alone(text.as_bytes()), "{text}");
        }
        for name in ["q", "args", "message", "extra_options"] {
            passes_at(Class::Command, Place::Form, name, "--file=config.php");
        }
    }
}
