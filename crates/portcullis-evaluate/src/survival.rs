//! Survival of attacks when ordinary text is put beside them: by class, position of the text, purpose of the
//! field.
//!
//! A detection may disappear only where the added text destroys the attack. So only what survives is scored
//! by `--pad`, and what survives must stay detected (the monotone test). The table is data: [`TABLE`] has a
//! row for each class, whose cells say under which condition on the payload it survives, and why.
//! [`survives`] asks it, with what single kinds of text disturb.

use std::fmt::Write as _;

use portcullis_semantic::Class;

use crate::padding::{Kind, Position, Wrapper};

/// The purpose of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Anything but text: `q`, `id`, `host`, `file`, or a name that says nothing.
    Neutral,
    /// Text: a comment, a message, a description.
    Text,
}

/// A condition on the payload (percent escapes undone once).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whatever the payload is.
    Always,
    /// Never.
    Never,
    /// It begins by ending a string: a quote, before it at most a word.
    EndsString,
    /// It ends in a comment or a NUL, behind which nothing is read.
    EndsInComment,
    /// It has a tag, or begins by ending an attribute's or a script's string.
    HasMarkup,
    /// The same, and its last tag is closed, or a comment ends it.
    EndsMarkup,
    /// It begins with what ends a command or begins another in its place, before it at most a word.
    HasSeparator,
    /// The same, and its last command is ended or takes further arguments.
    EndsCommand,
    /// It climbs three folders or more: one may be lost to the text's own name.
    Climbs,
    /// Its address continues in a query or a fragment.
    HasQuery,
    /// It stands between delimiters of a template.
    HasDelimiters,
    /// It ends the filter's own parenthesis.
    EndsFilter,
    /// It ends in a NUL.
    EndsInNul,
    /// It has a tag of PHP, or begins by ending a string.
    HasCodeTag,
    /// It has a tag of PHP that is closed.
    EndsCodeTag,
    /// It has a line end.
    HasLineEnd,
}

/// The survival of an attack, and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Under which condition.
    pub when: When,
    /// The reason.
    pub why: &'static str,
}

/// The cells of one class.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The class.
    pub class: Class,
    /// With text before it.
    pub before: Cell,
    /// With text behind it.
    pub behind: Cell,
    /// In a field whose purpose is text, at all.
    pub in_text: Cell,
}

const fn cell(when: When, why: &'static str) -> Cell {
    Cell { when, why }
}

const fn row(class: Class, before: Cell, behind: Cell, in_text: Cell) -> Row {
    Row { class, before, behind, in_text }
}

const STORED: Cell = cell(When::Always, "the text is stored or shown with it");
const NOT_READ: Cell = cell(When::Never, "nothing reads a text so");

/// The table. Classes that are not in it survive nowhere.
pub const TABLE: &[Row] = &[
    row(
        Class::Sqli,
        cell(When::EndsString, "the text is the string that the quote ends"),
        cell(When::EndsInComment, "the text stands in the comment; elsewhere it is an error of syntax"),
        cell(When::EndsString, "texts are stored by statements, in strings"),
    ),
    row(
        Class::Xss,
        cell(
            When::HasMarkup,
            "a page is text with markup in it; an address or a statement must begin its value",
        ),
        cell(When::EndsMarkup, "text behind a closed tag is text"),
        cell(When::HasMarkup, "texts are shown in pages"),
    ),
    row(
        Class::Command,
        cell(When::HasSeparator, "the text is the argument of the command before the separator"),
        cell(When::EndsCommand, "the text is a further argument, or another command"),
        cell(When::HasSeparator, "a text may be a program's argument"),
    ),
    row(
        Class::Code,
        cell(
            When::HasCodeTag,
            "what stands outside of the tag is printed; a quote ends the string the text is in",
        ),
        cell(When::EndsCodeTag, "what stands behind the closing tag is printed"),
        cell(When::HasCodeTag, "texts are written into files that are run"),
    ),
    row(
        Class::Template,
        cell(When::HasDelimiters, "a template is text with expressions in it"),
        cell(When::HasDelimiters, "a template is text with expressions in it"),
        cell(When::HasDelimiters, "texts are rendered"),
    ),
    row(
        Class::Log4j,
        cell(When::Always, "lookups are replaced wherever they stand in a line"),
        cell(When::Always, "lookups are replaced wherever they stand in a line"),
        STORED,
    ),
    row(
        Class::Ssi,
        cell(When::Always, "directives are replaced wherever they stand in a page"),
        cell(When::EndsMarkup, "the directive is closed"),
        STORED,
    ),
    row(
        Class::Path,
        cell(When::Climbs, "climbing leaves the folder that the text names"),
        cell(When::EndsInNul, "text behind a path changes the file, but behind a NUL"),
        NOT_READ,
    ),
    row(
        Class::RemoteFile,
        cell(When::Never, "an address begins its value"),
        cell(When::HasQuery, "the text belongs to the query"),
        NOT_READ,
    ),
    row(
        Class::Ssrf,
        cell(When::Never, "text before an address ends it"),
        cell(When::HasQuery, "the text belongs to the query"),
        NOT_READ,
    ),
    row(
        Class::NoSql,
        cell(When::EndsString, "the text is the string that the quote ends"),
        cell(When::EndsInComment, "the text stands in the comment"),
        cell(When::EndsString, "texts are stored by statements, in strings"),
    ),
    row(
        Class::Xpath,
        cell(When::EndsString, "the text is the string that the quote ends"),
        cell(When::Never, "the expression has no comment that is left open"),
        NOT_READ,
    ),
    row(
        Class::Ldap,
        cell(When::EndsFilter, "the text is the value that the parenthesis ends"),
        cell(When::EndsInNul, "text behind it changes the last comparison, but behind a NUL"),
        NOT_READ,
    ),
    row(
        Class::Crlf,
        cell(When::HasLineEnd, "the text is the header field that the line end ends"),
        cell(When::HasLineEnd, "the text is the rest of the field that was added"),
        cell(When::Never, "texts have lines, and stand in no header"),
    ),
];

/// True if `payload` of `class` is still an attack with text of `kind` at `position` in such a field.
pub fn survives(class: Class, payload: &[u8], position: Position, kind: Kind, purpose: Purpose) -> bool {
    let Some(row) = TABLE.iter().find(|row| row.class == class) else { return false };
    let payload = unescape(payload);
    let needs: &[Cell] = match position {
        Position::Before => &[row.before],
        Position::Behind => &[row.behind],
        Position::Around => &[row.before, row.behind],
    };
    needs.iter().all(|cell| cell.when.holds(&payload))
        && (purpose == Purpose::Neutral || row.in_text.when.holds(&payload))
        && !disturbs(class, &payload, position, kind)
}

/// True if `payload` of `class` is still an attack with these marks around it in such a field.
pub fn survives_in(class: Class, payload: &[u8], wrapper: Wrapper, purpose: Purpose) -> bool {
    use Wrapper::{Code, Indented, OpenFence, Pre, PreCode, Quote, QuotedFence};
    // A mark before each line is one before the header field.
    if class == Class::Crlf && matches!(wrapper, Quote | Indented | QuotedFence) {
        return false;
    }
    let position =
        if let OpenFence | Quote | Indented = wrapper { Position::Before } else { Position::Around };
    // Redirections without a file are errors of syntax.
    let redirects = matches!(wrapper, Pre | Code | PreCode | Quote | QuotedFence);
    survives(class, payload, position, Kind::Letter, purpose) && !(class == Class::Command && redirects)
}

/// Signs of the text itself destroy the attack.
#[expect(clippy::wildcard_enum_match_arm, reason = "the signs of a text destroy no other class")]
fn disturbs(class: Class, payload: &[u8], position: Position, kind: Kind) -> bool {
    let has_markup = kind == Kind::Html;
    let has_quotes = matches!(kind, Kind::Html | Kind::Json);
    let has_slashes = matches!(kind, Kind::Html | Kind::Base64);
    let has_spaces = !matches!(kind, Kind::Base64 | Kind::Letter);
    match class {
        // Redirections without a file are errors of syntax, and so are quotes that do not pair.
        Class::Command => has_markup || kind == Kind::Json && position != Position::Before,
        Class::Path => has_slashes,
        Class::Ssrf | Class::RemoteFile => has_spaces,
        // Its quote would pair with one of the text's.
        Class::Sqli | Class::NoSql | Class::Xpath | Class::Code | Class::Xss => {
            has_quotes && first_quote(payload) == Some(b'"') && !has_tag(payload)
        }
        // A line of the text is no header field, and the reader stops there.
        Class::Crlf => has_markup,
        // A filter has neither.
        Class::Ldap => has_quotes,
        _ => false,
    }
}

impl When {
    /// The text for the documentation.
    pub fn says(self) -> &'static str {
        match self {
            When::Always => "yes",
            When::Never => "no",
            When::EndsString => "if it begins by ending a string",
            When::EndsInComment => "if it ends in a comment or a NUL",
            When::HasMarkup => "if it has a tag or begins by ending a string",
            When::EndsMarkup => "if its last tag or comment is closed",
            When::HasSeparator => "if it begins with a separator",
            When::EndsCommand => "if its last command is ended or has arguments",
            When::Climbs => "if it climbs three folders or more",
            When::HasQuery => "if its address has a query",
            When::HasDelimiters => "if it has delimiters",
            When::EndsFilter => "if it ends the filter's parenthesis",
            When::EndsInNul => "if it ends in a NUL",
            When::HasCodeTag => "if it has a tag of PHP or begins by ending a string",
            When::EndsCodeTag => "if its tag is closed",
            When::HasLineEnd => "if it has a line end",
        }
    }

    fn holds(self, payload: &[u8]) -> bool {
        let trimmed = payload.trim_ascii();
        let ends = |ends: &[&[u8]]| ends.iter().any(|end| trimmed.ends_with(end));
        match self {
            When::Always => true,
            When::Never => false,
            When::EndsString => first_quote(payload).is_some(),
            When::EndsInComment => ends(&[b"--", b"-- -", b"--+", b"#", b"/*", b"//", b"\0", b";%00"]),
            When::HasMarkup => has_tag(payload) || first_quote(payload).is_some(),
            When::EndsMarkup => has_tag(payload) && ends(&[b">", b"<!--", b"//"]),
            When::HasSeparator => separator(payload).is_some(),
            When::EndsCommand => {
                separator(payload).is_some_and(|at| payload[at..].trim_ascii().contains(&b' '))
                    || separator(payload).is_some() && ends(&[b";", b"|", b"&", b"#", b"`", b")"])
            }
            When::Climbs => climbs(payload) >= 3,
            When::HasQuery => payload.iter().any(|b| matches!(b, b'?' | b'#')),
            When::HasDelimiters => {
                const OPEN: [&[u8]; 9] = [b"{{", b"${", b"#{", b"*{", b"<%", b"{%", b"@{", b"@(", b"[["];
                let has = |word: &[u8]| payload.windows(word.len()).any(|part| part == word);
                OPEN.iter().any(|open| has(open)) && ends(&[b"}", b"%>", b")", b"]]"])
            }
            When::EndsFilter => {
                let first = payload.iter().position(|b| matches!(b, b'(' | b')'));
                first.is_some_and(|at| payload[at] == b')' && !payload[..at].contains(&b' '))
            }
            When::EndsInNul => ends(&[b"\0", b"%00"]),
            When::HasCodeTag => {
                payload.windows(2).any(|pair| pair == b"<?") || first_quote(payload).is_some()
            }
            When::EndsCodeTag => payload.windows(2).any(|pair| pair == b"<?") && ends(&[b"?>"]),
            When::HasLineEnd => payload.iter().any(|b| matches!(b, b'\r' | b'\n')),
        }
    }
}

/// The quote that ends the string the payload stands in: before it is at most a word.
fn first_quote(payload: &[u8]) -> Option<u8> {
    let at = payload.iter().position(|b| matches!(b, b'\'' | b'"'))?;
    let is_word = payload[..at].iter().all(|b| b.is_ascii_alphanumeric() || b"-_.@*%\\".contains(b));
    is_word.then(|| payload[at])
}

/// A tag begins, or a comment or directive.
fn has_tag(payload: &[u8]) -> bool {
    payload
        .windows(2)
        .any(|pair| pair[0] == b'<' && (pair[1].is_ascii_alphabetic() || b"/!?%".contains(&pair[1])))
}

/// Returns the end of a command, with at most a word and quotes before.
fn separator(payload: &[u8]) -> Option<usize> {
    let at = payload.iter().position(|b| !(b.is_ascii_alphanumeric() || b".-_'\" ".contains(b)))?;
    let is_plain = !payload[..at].contains(&b' ') || payload[..at].iter().all(|b| b" '\"".contains(b));
    let is_separator = match payload[at] {
        b';' | b'|' | b'&' | b'\n' | b'`' => true,
        b'$' => payload.get(at + 1) == Some(&b'('),
        _ => false,
    };
    (is_separator && is_plain).then_some(at)
}

/// Folders that a path leaves.
fn climbs(payload: &[u8]) -> usize {
    payload.windows(3).filter(|part| matches!(**part, [b'.', b'.', b'/' | b'\\'])).count()
}

/// Percent escapes undone.
fn unescape(text: &[u8]) -> Vec<u8> {
    let digit = |b: Option<&u8>| b.and_then(|&b| char::from(b).to_digit(16)).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(text.get(at + 1)), digit(text.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// The table as Markdown, as it stands in the documentation.
pub fn markdown() -> String {
    let mut out =
        "| class | text before | text behind | in a field for text | why |\n|---|---|---|---|---|\n"
            .to_owned();
    for row in TABLE {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | before: {}; behind: {}; in texts: {} |",
            row.class.name(),
            row.before.when.says(),
            row.behind.when.says(),
            row.in_text.when.says(),
            row.before.why,
            row.behind.why,
            row.in_text.why,
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(class: Class, payload: &str) -> bool {
        survives(class, payload.as_bytes(), Position::Before, Kind::Words, Purpose::Neutral)
    }

    fn behind(class: Class, payload: &str) -> bool {
        survives(class, payload.as_bytes(), Position::Behind, Kind::Words, Purpose::Neutral)
    }

    #[test]
    fn cells() {
        assert!(before(Class::Sqli, "1' or 1=1-- -") && !before(Class::Sqli, "1 or 1=1"));
        assert!(behind(Class::Sqli, "1 or 1=1-- ") && !behind(Class::Sqli, "' or 'a'='a"));
        assert!(before(Class::Xss, "<svg onload=alert(1)>") && !before(Class::Xss, "javascript:alert(1)"));
        assert!(!behind(Class::Xss, "<svg onload=alert(1)"));
        assert!(before(Class::Command, ";cat /etc/passwd") && !before(Class::Command, "cat /etc/passwd"));
        assert!(behind(Class::Command, "1;cat /etc/passwd") && !behind(Class::Command, ";id"));
        assert!(!before(Class::Ssrf, "http://127.0.0.1/?a") && !behind(Class::Path, "../../../etc/passwd"));
        assert!(before(Class::Path, "..%2f..%2f..%2fetc/passwd") && !before(Class::Path, "/etc/passwd"));
        assert!(before(Class::Ldap, "*)(uid=*") && !before(Class::Ldap, "(uid=*)"));
        let in_text = |class, payload: &str| {
            survives(class, payload.as_bytes(), Position::Before, Kind::Words, Purpose::Text)
        };
        assert!(in_text(Class::Log4j, "${jndi:ldap://a/b}") && !in_text(Class::Path, "/../../../etc/passwd"));
        // A class without a row survives nowhere.
        assert!(!before(Class::Prototype, "__proto__"));
    }

    /// The documentation has the table as it is.
    #[test]
    fn the_documentation_has_it() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/semantic.md");
        let docs = std::fs::read_to_string(path).unwrap();
        assert!(docs.contains(&markdown()), "docs/semantic.md lacks this table:\n{}", markdown());
    }
}
