//! Programs that no table has: a name after a separator that directly follows the value, with arguments as
//! only programs take them.
//!
//! There are more programs than names in a list, and most of them read, write or run something. What tells a
//! command line here is its shape alone: no space where people put one, and an option or a path from the root
//! after the name; or that it is all there is behind one word and the separator, and takes a file.

use portcullis_lex::shell::{Lexer, Marks, TokenKind, Variables};
use portcullis_types::Span;

use super::names::Names;
use super::positions::{Position, Sign};
use super::shape::{self, Shape};

/// How far a command is read, and how many words it may have.
pub(super) const LINE_BYTES_MAX: usize = 160;
const WORDS_MAX: usize = 10;
const NAME_BYTES_MAX: usize = 40;
/// Bytes of the row of a table.
const ROW_BYTES_MAX: usize = 512;
/// Words in a row that are arguments of nothing: a sentence.
const PROSE_WORDS: usize = 3;

/// False where no command is recognised by its shape.
pub(super) fn may_follow(position: &Position) -> bool {
    takes_arguments(position.sign) || position.sign != Sign::Begin && position.start <= LEAD_BYTES_MAX
}

/// A sign behind which an option or a path makes a command of a name.
fn takes_arguments(sign: Sign) -> bool {
    matches!(sign, Sign::Semicolon | Sign::Logical | Sign::Pipe | Sign::Substitution)
}

/// Where a command stands at `position` that is one by its shape.
///
/// In a field for a `machine`, which comes with the names of commands, a separator and a name behind it are
/// enough: no name of a host has them. One word behind another may be a list of hosts, if no command is
/// called so.
pub(super) fn stranger(text: &[u8], position: &Position, machine: Option<&Names>) -> Option<Span> {
    by_arguments(text, position).or_else(|| alone(text, position, machine))
}

/// Bytes of the word before the separator.
const LEAD_BYTES_MAX: usize = 64;
/// Words of a command that is all there is behind the separator.
const ALONE_WORDS_MAX: usize = 6;
/// Signs that may stand behind it: another separator, a quote, a comment.
const END_BYTES_MAX: usize = 3;

/// `;fmt config.php`, `x|pr *`, `$(iconv config.php)`, `;"$SHELL" config.php`: no more than one word stands
/// before the separator, and a command with a file, a pattern or a redirection is all there is behind it.
/// A sentence has words on both sides, and a list has no space within its items.
fn alone(text: &[u8], position: &Position, machine: Option<&Names>) -> Option<Span> {
    let names_machine = machine.is_some();
    let before = text[..position.start].trim_ascii();
    let is_word = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'=' | b'<' | b'>' | b'{' | b'(' | b'#');
    let is_reference = position.sign == Sign::Semicolon && ends_reference(&text[..position.start]);
    if position.start > LEAD_BYTES_MAX || position.sign == Sign::Begin || is_reference {
        return None;
    }
    let line = &text[..text.len().min(position.at + LINE_BYTES_MAX)];
    let is_parted = line.get(position.at).is_none_or(u8::is_ascii_whitespace);
    // An ampersand without a space joins what an address asks: `a.example/?x&date`.
    let may_be_known = position.sign != Sign::Ampersand || is_parted;
    let is_known = |name: &[u8]| may_be_known && machine.is_some_and(|names| names.get(name).is_some());
    // `a & dir`
    let begins_known = || {
        let rest = line.get(position.at..).unwrap_or_default().trim_ascii_start();
        is_known(&rest[..rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count()])
    };
    let may_part = position.sign != Sign::Newline
        && (before.iter().all(|b| matches!(b, b'\'' | b'"' | b')')) || names_machine && begins_known());
    if !before.iter().all(is_word) || is_parted && !may_part {
        return None;
    }
    let mut lexer = Lexer::new(line, position.at, Variables::default());
    if position.sign == Sign::Backtick {
        lexer = lexer.in_backticks();
    }
    let first = lexer.next()?;
    let TokenKind::Word(marks) = first.kind else {
        // `;>out`, `;</tmp/x`
        let is_redirect = first.kind == TokenKind::Redirect && position.sign == Sign::Semicolon;
        let target = lexer.next().filter(|_| is_redirect)?.span.of(line);
        let is_one =
            is_file_name(target) && !target.contains(&b'>') && ends(text, position, lexer.position());
        return is_one.then(|| Span::new(position.start, lexer.position()));
    };
    let name = Name::of(lexer.text(), marks, first.span.of(line))?;
    let arguments = Arguments::read(lexer, line, name, names_machine)?;
    let is_end =
        ends(text, position, arguments.end) || names_machine && goes_on(text, position, arguments.end);
    // `;tmux new`: a value that begins with a separator, and no space behind it.
    let begins =
        position.start == 0 && matches!(position.sign, Sign::Semicolon | Sign::Logical) && !is_parted;
    let Arguments { files, words, count, .. } = arguments;
    let is_substituted = matches!(position.sign, Sign::Substitution | Sign::Backtick);
    let is_one = match name {
        _ if names_machine
            && (count > 0
                || before.is_empty()
                || is_substituted
                || name == Name::Hidden
                || is_known(first.span.of(line))) =>
        {
            true
        }
        Name::Pattern => false,
        Name::Dot => count == 1,
        Name::Test => count > 1 && files > 0,
        Name::Plain if begins => files > 0 || (1..=2).contains(&words),
        // `';backup;'`: quotes and signs around one name, which no text has.
        Name::Plain if count == 0 && is_between_quotes(text, position, arguments.end) => true,
        // `"; touch x #`
        Name::Plain if is_parted && cuts(text, arguments.end) => files > 0 || (1..=2).contains(&words),
        Name::Plain | Name::Hidden | Name::Shell | Name::Variable => files > 0 && words <= 2,
    };
    (is_end && is_one).then(|| Span::new(position.start, arguments.end))
}

/// How the name of the command is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Plain,
    /// Quotes, backslashes, carets or braces stand in it.
    Hidden,
    /// `.`, which runs a file.
    Dot,
    /// `[`, `[[`
    Test,
    /// `$0`, `"$SHELL"`: the shell itself.
    Shell,
    /// Another variable.
    Variable,
    /// `pa*te`
    Pattern,
}

impl Name {
    /// The name that `raw` is, which expands to `text`.
    fn of(text: &[u8], marks: Marks, raw: &[u8]) -> Option<Name> {
        const SHELLS: &[&[u8]] = &[b"$0", b"${0}", b"$SHELL", b"${SHELL}", b"$BASH", b"${BASH}"];
        const HIDING: Marks = Marks::QUOTED.with(Marks::SPLIT).with(Marks::ESCAPED).with(Marks::CARET);
        let is_plain_byte = |b: &u8| b.is_ascii_alphanumeric() || b"._/~+-".contains(b);
        let has_variable = marks.has(Marks::VARIABLE.with(Marks::EMPTY));
        match text {
            b"." => Some(Name::Dot),
            b"[" | b"[[" => Some(Name::Test),
            _ if has_variable && SHELLS.contains(&trim_quotes(raw)) => Some(Name::Shell),
            [] | [b'$', ..] if has_variable => Some(Name::Variable),
            _ if marks.has(Marks::GLOB) && text.iter().any(u8::is_ascii_lowercase) => Some(Name::Pattern),
            _ if !is_name(text) => None,
            _ if raw.iter().all(is_plain_byte) => Some(Name::Plain),
            _ if marks.has(HIDING.with(Marks::BRACE)) => Some(Name::Hidden),
            _ => None,
        }
    }
}

/// The arguments of a command that is all there is.
#[derive(Clone, Copy, Debug, Default)]
struct Arguments {
    /// Files, patterns and targets of redirections.
    files: usize,
    /// Other words that are no options.
    words: usize,
    count: usize,
    end: usize,
}

impl Arguments {
    /// Reads them. Nothing if one is no argument as commands take them; `takes_any` word is one in a field
    /// where none belongs.
    fn read(mut lexer: Lexer<'_>, line: &[u8], name: Name, takes_any: bool) -> Option<Arguments> {
        let is_shell = name == Name::Shell;
        let mut seen =
            Arguments { files: usize::from(is_shell), end: lexer.position(), ..Arguments::default() };
        let mut is_target = false;
        while let Some(token) = lexer.next() {
            let TokenKind::Word(marks) = token.kind else {
                if token.kind != TokenKind::Redirect {
                    break;
                }
                is_target = true;
                seen.end = lexer.position();
                continue;
            };
            let raw = token.span.of(line);
            let shape = shape::of(lexer.text(), marks, false);
            let is_file = match shape {
                Shape::Path | Shape::Sensitive => !raw.ends_with(b",") && !raw.ends_with(b"."),
                Shape::Glob => is_pattern(raw),
                Shape::Option => false,
                // `<<<"id"`: what a shell is given to run.
                Shape::Host | Shape::Number | Shape::Text | Shape::Expansion | Shape::Word => {
                    is_target && (is_file_name(raw) || is_shell)
                }
            };
            is_target = false;
            let is_word = match shape {
                Shape::Option | Shape::Number => true,
                Shape::Word => raw.iter().all(u8::is_ascii_lowercase),
                Shape::Sensitive
                | Shape::Path
                | Shape::Host
                | Shape::Text
                | Shape::Expansion
                | Shape::Glob => false,
            };
            // `.` is this folder, or all of a document to `jq`.
            let is_other = raw == b"." || name == Name::Test && matches!(raw, b"]" | b"]]");
            if !(is_file || is_word || is_other || takes_any || name == Name::Dot) {
                return None;
            }
            seen.count += 1;
            seen.files += usize::from(is_file);
            seen.words += usize::from(!is_file && shape != Shape::Option);
            seen.end = token.span.end as usize;
            if seen.count > ALONE_WORDS_MAX {
                return None;
            }
        }
        Some(seen)
    }
}

/// Another command follows.
fn goes_on(text: &[u8], position: &Position, end: usize) -> bool {
    let rest = &text[end.min(text.len())..];
    match position.sign {
        Sign::Substitution | Sign::Backtick => rest.iter().any(|b| matches!(b, b')' | b'`')),
        Sign::Begin | Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical | Sign::Newline => {
            rest.trim_ascii_start().first().is_some_and(|b| b";|&\n#".contains(b))
        }
    }
}

/// `';x;'`: all of the value stands between two quotes, with a separator inside of each.
fn is_between_quotes(text: &[u8], position: &Position, end: usize) -> bool {
    let after = &text[end.min(text.len())..];
    matches!(position.sign, Sign::Semicolon)
        && match (&text[..position.start], after) {
            ([quote @ (b'\'' | b'"')] | [quote @ (b'\'' | b'"'), b';'], [b';', last]) => quote == last,
            _ => false,
        }
}

/// A comment of the shell is all that stands behind `end`.
fn cuts(text: &[u8], end: usize) -> bool {
    text[end.min(text.len())..].trim_ascii() == b"#" && text.starts_with(b"\"") | text.starts_with(b"'")
}

fn trim_quotes(word: &[u8]) -> &[u8] {
    match word {
        [b'"', inner @ .., b'"'] => inner,
        _ => word,
    }
}

/// Nothing but signs stands behind `end`.
fn ends(text: &[u8], position: &Position, end: usize) -> bool {
    let rest = text[end.min(text.len())..].trim_ascii();
    let rest = match position.sign {
        Sign::Substitution => match rest.strip_prefix(b")") {
            Some(rest) => rest,
            None => return false,
        },
        Sign::Backtick => match rest.strip_prefix(b"`") {
            Some(rest) => rest,
            None => return false,
        },
        Sign::Begin | Sign::Semicolon | Sign::Pipe | Sign::Ampersand | Sign::Logical | Sign::Newline => rest,
    };
    rest.len() <= END_BYTES_MAX && rest.iter().all(|b| b";|&'\"#)} ".contains(b))
}

/// `out.txt`, `pwned`: a name of a file as people write it.
fn is_file_name(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"&").unwrap_or(word);
    word.len() > 1
        && word.iter().all(|b| b.is_ascii_alphanumeric() || b"._-/~".contains(b))
        && word.iter().any(u8::is_ascii_lowercase)
}

/// `*`, `c*`, `????????hp`: what a shell puts names of files in place of.
fn is_pattern(word: &[u8]) -> bool {
    let asks = word.iter().filter(|b| **b == b'?').count();
    word.contains(&b'*') || asks > 1 && !word.ends_with(b"?")
}

/// See the module.
fn by_arguments(text: &[u8], position: &Position) -> Option<Span> {
    if !takes_arguments(position.sign) {
        return None;
    }
    let lead = text[position.at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let is_glued = is_glued(text, position);
    // With a space before it the first argument has to be an option of one letter with something after it.
    if position.sign == Sign::Pipe && (!is_glued || is_row(&text[..position.at])) {
        return None;
    }
    let start = position.at + lead;
    let line = &text[start..text.len().min(start + LINE_BYTES_MAX)];
    let end = line.iter().position(|b| b";|&\n\r`)".contains(b)).unwrap_or(line.len());
    let line = &line[..end];
    // What tells is an option or a path.
    memchr::memchr2(b'-', b'/', line)?;
    let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let name = words.next()?;
    let writes = name.iter().position(|b| matches!(b, b'>' | b'<'));
    let (name, target) = name.split_at(writes.unwrap_or(name.len()));
    if !is_name(name) {
        return None;
    }
    let (mut count, mut in_row, mut evidence) = (0, 0, 0);
    let mut is_first_option = false;
    evidence += usize::from(is_redirection(target));
    // `;extension_dir = /usr/lib`: a setting that is switched off.
    if words.clone().next().is_some_and(|word| word.starts_with(b"=") || word.starts_with(b":")) {
        return None;
    }
    for word in words.clone().take(WORDS_MAX) {
        count += 1;
        if is_short_option(word) || is_long_option(word) {
            is_first_option |= count == 1 && is_short_option(word);
            evidence += 1;
            in_row = 0;
        } else if is_redirection(word) || is_from_root(word) {
            evidence += 1;
            in_row = 0;
        } else if word.iter().all(u8::is_ascii_alphabetic) {
            in_row += 1;
            if in_row >= PROSE_WORDS {
                return None;
            }
        } else {
            in_row = 0;
        }
    }
    let is_one = match is_glued {
        true => evidence > 0,
        false => is_first_option && count > 1 && evidence > 1,
    };
    is_one.then(|| Span::new(start, start + end))
}

/// The last line of `text`, which ends with a pipe, is the row of a table. A longer line is none.
fn is_row(text: &[u8]) -> bool {
    let near = &text[text.len().saturating_sub(ROW_BYTES_MAX)..];
    let line = match memchr::memrchr(b'\n', near) {
        Some(end) => &near[end + 1..],
        None if near.len() == text.len() => near,
        None => return false,
    };
    line.trim_ascii_start().starts_with(b"|")
}

/// No space stands after the separator, and before it none or one as nobody puts it (`a ;b`), or nothing at
/// all; and it ends no reference of HTML.
pub(super) fn is_glued(text: &[u8], position: &Position) -> bool {
    let before = &text[..position.start];
    let is_odd =
        matches!(position.sign, Sign::Semicolon | Sign::Logical) && before.last().is_none_or(|b| *b == b' ');
    let is_joined = position.sign == Sign::Substitution
        || is_odd
        || before.last().is_some_and(|b| !b.is_ascii_whitespace());
    let is_reference = || ends_reference(before);
    is_joined
        && text.get(position.at).is_some_and(|b| !b.is_ascii_whitespace())
        && !(position.sign == Sign::Semicolon && is_reference())
}

/// `&gt`, whose semicolon comes next.
fn ends_reference(before: &[u8]) -> bool {
    let name = before.iter().rev().take(12).take_while(|b| b.is_ascii_alphanumeric() || **b == b'#').count();
    name > 1 && before[..before.len() - name].ends_with(b"&")
}

/// `make`, `./x`, `/opt/a/b`, `.` and `:`: what a shell takes for a command.
fn is_name(name: &[u8]) -> bool {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"_./~+-".contains(b);
    matches!(name, b"." | b":")
        || (2..=NAME_BYTES_MAX).contains(&name.len())
            && matches!(name[0], b'a'..=b'z' | b'/' | b'.' | b'~')
            && name.iter().all(is_part)
            && name.iter().any(u8::is_ascii_lowercase)
}

/// `-f`
fn is_short_option(word: &[u8]) -> bool {
    matches!(word, [b'-', letter] if letter.is_ascii_alphabetic())
}

/// `--file=x`
fn is_long_option(word: &[u8]) -> bool {
    matches!(word, [b'-', b'-', first, second, ..] if first.is_ascii_lowercase() && second.is_ascii_lowercase())
}

/// `/tmp/x`
fn is_from_root(word: &[u8]) -> bool {
    let is_path = matches!(shape::of(word, Marks::NONE, false), Shape::Path | Shape::Sensitive);
    is_path && matches!(word, [b'/', first, ..] if first.is_ascii_lowercase())
}

/// `>/tmp/x`, `</etc/passwd`, `2>/dev/null`
fn is_redirection(word: &[u8]) -> bool {
    let Some(at) = memchr::memchr2(b'<', b'>', word) else { return false };
    let target = word[at + 1..].strip_prefix(b">").unwrap_or(&word[at + 1..]);
    // `</b>` ends an element.
    target.starts_with(b"/") && target.len() > 2 && !target.contains(&b'>')
}

#[cfg(test)]
mod tests {
    use crate::detectors::testing::{blocks, passes_at};
    use crate::{Class, Place};

    #[test]
    fn by_shape() {
        for text in [
            "x;make -f /tmp/m",
            "x; frobnicate -f /tmp/m",
            "1|unheardof --config=/tmp/x",
            "a&&./payload -x",
            "a;/opt/x/tool -v",
            "$(quux -c a)",
            "x;:>/var/www/html/index.php",
            "x;id>/tmp/o",
            "x;quux a</etc/passwd",
            ";quux -x",
            "more words ;quux -x /tmp/a",
            ";kubectl get secrets",
            ";declare -x",
        ] {
            blocks(Class::Command, text, "unknown");
        }
        blocks(Class::Command, "x;. /tmp/x", "semicolon");
    }

    #[test]
    fn other_lists() {
        for text in [
            "text/html;charset=utf-8",
            "cats; dogs -birds",
            "a;b;c -- d",
            "color:red;margin: -1px",
            "vim;git;docker",
            "fish &amp;chips -x",
            "R&D;see the -v option of it",
            "|name -n|value -v|",
            "Linux; see /etc",
            "a;b/c;d/e",
            "ul li;ul ol > li",
            "path=/a/b;c=/d/e",
            "$(this)",
            "docs;aws s3;kubectl",
            "npm ci;npm start",
            ";extension_dir = /usr/lib",
            "see a ;b and ;c",
        ] {
            passes_at(Class::Command, Place::Query, "q", text);
        }
    }
}
