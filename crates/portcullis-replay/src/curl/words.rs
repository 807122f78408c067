//! The words of a command line, as a POSIX shell splits it, with `$'...'` of bash.

use super::CurlError;

/// The words of `line`. Nothing is expanded: `$name` stays as it is.
pub(super) fn split(line: &str) -> Result<Vec<Vec<u8>>, CurlError> {
    let mut words = Vec::new();
    // None between words.
    let mut word: Option<Vec<u8>> = None;
    let mut letters = line.trim().bytes().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            b' ' | b'\t' | b'\r' | b'\n' => words.extend(word.take()),
            b'\\' => match letters.next() {
                // A line that goes on.
                Some(b'\n') | None => {}
                Some(b'\r') if letters.peek() == Some(&b'\n') => drop(letters.next()),
                Some(other) => word.get_or_insert_default().push(other),
            },
            b'\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some(b'\'') => break,
                        Some(other) => word.push(other),
                        None => return Err(CurlError::OpenQuote('\'')),
                    }
                }
            }
            b'"' => double(word.get_or_insert_default(), &mut letters)?,
            b'$' if letters.peek() == Some(&b'\'') => {
                letters.next();
                ansi(word.get_or_insert_default(), &mut letters)?;
            }
            b'|' | b';' | b'&' | b'<' | b'>' => return Err(CurlError::Shell(char::from(letter))),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

type Letters<'l> = std::iter::Peekable<std::str::Bytes<'l>>;

/// The rest of a quotation between double marks.
fn double(word: &mut Vec<u8>, letters: &mut Letters<'_>) -> Result<(), CurlError> {
    loop {
        match letters.next() {
            Some(b'"') => return Ok(()),
            Some(b'\\') => match letters.next() {
                Some(b'\n') => {}
                Some(other @ (b'"' | b'\\' | b'$' | b'`' | b'!')) => word.push(other),
                Some(other) => word.extend_from_slice(&[b'\\', other]),
                None => return Err(CurlError::OpenQuote('"')),
            },
            Some(other) => word.push(other),
            None => return Err(CurlError::OpenQuote('"')),
        }
    }
}

/// The rest of `$'...'`.
fn ansi(word: &mut Vec<u8>, letters: &mut Letters<'_>) -> Result<(), CurlError> {
    loop {
        match letters.next().ok_or(CurlError::OpenQuote('\''))? {
            b'\'' => return Ok(()),
            b'\\' => match letters.next().ok_or(CurlError::OpenQuote('\''))? {
                b'n' => word.push(b'\n'),
                b'r' => word.push(b'\r'),
                b't' => word.push(b'\t'),
                b'a' => word.push(7),
                b'b' => word.push(8),
                b'e' | b'E' => word.push(27),
                b'f' => word.push(12),
                b'v' => word.push(11),
                b'x' => match number(letters, 16, 2) {
                    Some(code) => word.push(code as u8),
                    None => word.extend_from_slice(b"\\x"),
                },
                kind @ (b'u' | b'U') => {
                    let digits = if kind == b'u' { 4 } else { 8 };
                    let code = number(letters, 16, digits).and_then(char::from_u32);
                    word.extend_from_slice(
                        code.unwrap_or(char::REPLACEMENT_CHARACTER).to_string().as_bytes(),
                    );
                }
                digit @ b'0'..=b'7' => {
                    let mut code = u32::from(digit - b'0');
                    for _ in 0..2 {
                        let Some(more) = digit_of(letters, 8) else { break };
                        code = code * 8 + more;
                    }
                    word.push(code as u8);
                }
                other @ (b'\\' | b'\'' | b'"' | b'?') => word.push(other),
                other => word.extend_from_slice(&[b'\\', other]),
            },
            other => word.push(other),
        }
    }
}

/// A number of one digit or more.
fn number(letters: &mut Letters<'_>, base: u32, digits_max: usize) -> Option<u32> {
    let mut code = digit_of(letters, base)?;
    for _ in 1..digits_max {
        let Some(more) = digit_of(letters, base) else { break };
        code = code.wrapping_mul(base).wrapping_add(more);
    }
    Some(code)
}

fn digit_of(letters: &mut Letters<'_>, base: u32) -> Option<u32> {
    let digit = char::from(*letters.peek()?).to_digit(base)?;
    letters.next();
    Some(digit)
}
