//! Filters as tokens.

use crate::error::Mistake;
use crate::filter::Operator;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word without quotes: a field, a keyword, a value.
    Word(String),
    /// A text in quotes.
    Quoted(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    End,
}

/// A token and the byte at which it begins.
pub(crate) type Placed = (usize, Token);

/// The tokens of a filter, `End` last.
pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, Mistake> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        at += c.len_utf8();
        let token = match c {
            c if c.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '"' | '\'' => {
                let (value, length) = quoted(&text[at..], c).ok_or_else(|| {
                    Mistake::new(text, start, "the text that begins here has no closing quote")
                })?;
                at += length;
                Token::Quoted(value)
            }
            '=' | '!' | '<' | '>' | '~' | '^' => {
                let (operator, length) = operator(&text[start..]).ok_or_else(|| {
                    let message =
                        format!("`{c}` alone is no comparison; there are = != < <= > >= ^= (begins with) ~ (contains) and in");
                    Mistake::new(text, start, message)
                })?;
                at = start + length;
                Token::Operator(operator)
            }
            _ => {
                let rest = &text[start..];
                // A path has signs of comparisons and quotes in it.
                let signs = if c == '/' { "()," } else { "(),\"'=!<>~^" };
                let ends = |c: char| c.is_whitespace() || signs.contains(c);
                let length = rest.find(ends).unwrap_or(rest.len());
                at = start + length;
                Token::Word(rest[..length].to_owned())
            }
        };
        tokens.push((start, token));
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// The text up to the closing quote, and the bytes that it takes with it.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            c if c == quote => return Some((value, at + 1)),
            c => value.push(c),
        }
    }
    None
}

fn operator(text: &str) -> Option<(Operator, usize)> {
    use Operator::*;
    const SIGNS: [(&str, Operator); 9] = [
        ("==", Equal),
        ("!=", NotEqual),
        ("<=", LessOrEqual),
        (">=", GreaterOrEqual),
        ("^=", Prefix),
        ("=", Equal),
        ("<", Less),
        (">", Greater),
        ("~", Contains),
    ];
    let (sign, operator) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign))?;
    Some((*operator, sign.len()))
}
