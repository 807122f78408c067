//! The argument of `@rsub`: `s/find/replacement/flags`.

use std::sync::Arc;

use bstr::ByteSlice;
use portcullis_engine::{Find, Substitution};
use portcullis_match::{Regex, RegexFlags};

use crate::names::Names;
use crate::template::template;

/// Message and hint.
type Error = (String, Option<String>);

const FORM: &str =
    "write @rsub s/regex/replacement/ with flags i (any case) or d (literal, for macros) behind it";

/// Compiles the argument. Any byte may stand for the slash; behind a backslash it is no delimiter.
pub(crate) fn parse(argument: &[u8], names: &mut Names) -> Result<Substitution, Error> {
    let error = |message: &str| Err((format!("@rsub: {message}"), Some(FORM.to_owned())));
    let [b's' | b'S', delimiter, rest @ ..] = argument else {
        return error("the argument does not begin with s/");
    };
    let (find, rest) = part(rest, *delimiter);
    let Some(rest) = rest else { return error("the regular expression is not ended by the delimiter") };
    let (replacement, rest) = part(rest, *delimiter);
    let Some(flags) = rest else { return error("the replacement is not ended by the delimiter") };
    let (mut ignore_case, mut literal) = (false, false);
    for flag in flags.trim_ascii() {
        match flag.to_ascii_lowercase() {
            b'i' => ignore_case = true,
            b'd' => literal = true,
            _ => return error(&format!("{:?} is no flag", char::from(*flag))),
        }
    }
    if find.is_empty() {
        return error("there is nothing to look for");
    }
    let find = find.replace(r"\/", "/");
    let find = match (find.contains_str("%{"), literal) {
        (true, false) => {
            return error("a macro in the regular expression needs the flag d: its value is taken literally");
        }
        (true, true) if ignore_case => return error("the flags i and d exclude each other"),
        (true, true) => Find::Literal(template(&find, names)),
        (false, _) => {
            let flags = RegexFlags { case_insensitive: ignore_case, ..RegexFlags::default() };
            match Regex::new(&find, flags) {
                Ok(regex) => Find::Regex(Arc::new(regex)),
                Err(error) => return Err((format!("@rsub: {error}"), None)),
            }
        }
    };
    let replacement =
        unescape(replacement).map_err(|message| (format!("@rsub: {message}"), Some(FORM.to_owned())))?;
    Ok(Substitution { find, replacement: template(&replacement, names) })
}

/// The bytes before the delimiter, and what follows it; nothing follows if it is missing.
fn part(bytes: &[u8], delimiter: u8) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b if b == delimiter => return (&bytes[..at], Some(&bytes[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (bytes, None)
}

/// As `parse_pm_content`: blanks at the start go, quotes around the whole go, `|41 42|` are bytes in hex, and
/// a backslash takes the meaning from the next byte. Before a digit it stays: that is a group.
fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(text);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'|' => {
                let Some(length) = text[at..].find_byte(b'|') else {
                    return Err("a | opens bytes in hex, and no | closes them".to_owned());
                };
                let digits: Vec<u8> = text[at..at + length].iter().copied().filter(|b| *b != b' ').collect();
                let pairs = digits.chunks(2).map(|pair| {
                    std::str::from_utf8(pair)
                        .ok()
                        .filter(|p| p.len() == 2)
                        .and_then(|p| u8::from_str_radix(p, 16).ok())
                });
                let bytes: Option<Vec<u8>> = pairs.collect();
                out.extend(bytes.ok_or("between | and | stand bytes in hex, such as |0d 0a|")?);
                at += length + 1;
            }
            b'\\' => match text.get(at) {
                Some(&digit @ b'1'..=b'9') => {
                    out.extend_from_slice(&[b'\\', digit]);
                    at += 1;
                }
                Some(&plain @ (b':' | b';' | b'\\' | b'"' | b'/' | b'|')) => {
                    out.push(plain);
                    at += 1;
                }
                Some(&other) => {
                    return Err(format!("\\{} means nothing in a replacement", char::from(other)));
                }
                None => return Err("a backslash stands at the end of the replacement".to_owned()),
            },
            byte => out.push(byte),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements() {
        for (text, expected) in
            [("  x y", "x y"), ("\"x\"", "x"), (r"a\/b\:\\1", r"a/b:\1"), (r"\2|41 4a|", r"\2AJ"), ("", "")]
        {
            assert_eq!(unescape(text.as_bytes()).unwrap().as_bstr(), expected, "{text}");
        }
        for text in [r"\n", "\\", "|4", "|4x|", "|414|"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn forms() {
        let parse = |text: &str| parse(text.as_bytes(), &mut Names::new());
        for good in ["s/a/b/", "S#a/#b#i", r"s/a\/b/c/", "s/%{tx.a}./x/d", "s/a//", "s/a/%{tx.b}/ID"] {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good).err());
        }
        for bad in [
            "",
            "s",
            "a/b/c/",
            "s//b/",
            "s/a",
            "s/a/b",
            "s/a/b/g",
            "s/(/b/",
            "s/%{tx.a}/b/",
            "s/%{tx.a}/b/id",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
