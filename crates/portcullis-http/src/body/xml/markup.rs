//! The inside of tags, references and declarations.

use memchr::{memchr, memchr3, memmem};

use super::Doctype;
use crate::body::{BodySink, Limits, XmlError as Error};

/// The kind of markup that starts with `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    End,
    Comment,
    Instruction,
    Doctype,
}

/// The kind of a piece of markup by its first bytes; `Ok(None)` if more are needed. A CDATA section is
/// `Ok(Some(Err(())))`: it has no end to look for, its content is text.
pub(super) fn kind(markup: &[u8], doctype: Doctype) -> Result<Option<Result<Kind, ()>>, Error> {
    let known = match markup {
        [b'<', b'/', ..] => Kind::End,
        [b'<', b'?', ..] => Kind::Instruction,
        [b'<', b'!', ..] if markup.starts_with(b"<!--") => Kind::Comment,
        [b'<', b'!', ..] if markup.starts_with(b"<![CDATA[") => return Ok(Some(Err(()))),
        [b'<', b'!', ..] if markup.starts_with(b"<!DOCTYPE") => match doctype {
            Doctype::Refuse => return Err(Error::DocumentType),
            Doctype::SkipExternal | Doctype::Skip => Kind::Doctype,
        },
        [b'<', b'!', ..] => {
            let starts: [&[u8]; 3] = [b"<!--", b"<![CDATA[", b"<!DOCTYPE"];
            return if starts.iter().any(|s| s.starts_with(markup)) { Ok(None) } else { Err(Error::Markup) };
        }
        [b'<', first, ..] if is_name_start(*first) => Kind::Start,
        [b'<', _, ..] => return Err(Error::Markup),
        _ => return Ok(None),
    };
    Ok(Some(Ok(known)))
}

/// The search for the end of a piece of markup, which continues where it stopped when more bytes have come.
#[derive(Debug, Default)]
pub(super) struct EndSearch {
    at: usize,
    /// Inside this quote.
    quote: Option<u8>,
    /// In a document type declaration: inside its `[...]`.
    subset: bool,
    /// In a document type declaration: inside a comment or processing instruction that ends so.
    inside: Option<&'static [u8]>,
}

impl EndSearch {
    /// The length of the markup, if it is complete. `markup` is the same bytes as before and more.
    pub(super) fn find(&mut self, kind: Kind, markup: &[u8]) -> Option<usize> {
        match kind {
            Kind::Start => self.tag_end(markup),
            Kind::End => self.plain_end(markup, b">", 2),
            Kind::Instruction => self.plain_end(markup, b"?>", 2),
            Kind::Comment => self.plain_end(markup, b"-->", 4),
            Kind::Doctype => self.doctype_end(markup),
        }
    }

    fn plain_end(&mut self, markup: &[u8], end: &[u8], start_len: usize) -> Option<usize> {
        let from = self.at.max(start_len);
        let found = memmem::find(markup.get(from..)?, end).map(|at| from + at + end.len());
        self.at = markup.len().saturating_sub(end.len() - 1);
        found
    }

    fn tag_end(&mut self, markup: &[u8]) -> Option<usize> {
        self.at = self.at.max(1);
        while self.at < markup.len() {
            let rest = &markup[self.at..];
            let found = match self.quote {
                Some(quote) => memchr(quote, rest),
                None => memchr3(b'>', b'"', b'\'', rest),
            };
            let Some(found) = found else {
                self.at = markup.len();
                return None;
            };
            self.at += found + 1;
            self.quote = match (self.quote, rest[found]) {
                (Some(_), _) => None,
                (None, b'>') => return Some(self.at),
                (None, quote) => Some(quote),
            };
        }
        None
    }

    fn doctype_end(&mut self, markup: &[u8]) -> Option<usize> {
        self.at = self.at.max(b"<!DOCTYPE".len());
        while self.at < markup.len() {
            let rest = &markup[self.at..];
            if let Some(end) = self.inside {
                let found = memmem::find(rest, end);
                match found {
                    Some(at) => self.at += at + end.len(),
                    None => {
                        self.at = markup.len().saturating_sub(end.len() - 1).max(self.at);
                        return None;
                    }
                }
                self.inside = None;
                continue;
            }
            if let Some(quote) = self.quote {
                let found = memchr(quote, rest);
                self.at += found.map_or(rest.len(), |at| at + 1);
                self.quote = self.quote.filter(|_| found.is_none());
                continue;
            }
            let starts: [(&[u8], &'static [u8]); 2] = [(b"<!--", b"-->"), (b"<?", b"?>")];
            if rest[0] == b'<'
                && starts.iter().any(|(start, _)| rest.len() < start.len() && start.starts_with(rest))
            {
                return None;
            }
            if let Some((start, end)) = starts.iter().find(|(start, _)| rest.starts_with(start)) {
                self.inside = Some(end);
                self.at += start.len();
                continue;
            }
            self.at += 1;
            match rest[0] {
                b'>' if !self.subset => return Some(self.at),
                b'[' => self.subset = true,
                b']' => self.subset = false,
                quote @ (b'"' | b'\'') => self.quote = Some(quote),
                _ => {}
            }
        }
        None
    }
}

/// A start tag from `<` to `>`: tells the sink its attributes. Returns its name and whether it ends in `/>`.
pub(super) fn start_tag<'a>(
    tag: &'a [u8],
    limits: &Limits,
    scratch: &mut Vec<u8>,
    sink: &mut dyn BodySink,
) -> Result<(&'a [u8], bool), Error> {
    let inner = &tag[1..tag.len() - 1];
    let (inner, empty) = match inner.strip_suffix(b"/") {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    let name = &inner[..name_len(inner)];
    let mut rest = &inner[name.len()..];
    if name.is_empty() || rest.first().is_some_and(|b| !is_space(*b)) {
        return Err(Error::Markup);
    }
    sink.xml_start(name);
    let mut names = Vec::new();
    while let Some((name, value, after)) = attribute(rest)? {
        if names.len() == limits.xml_attributes_max {
            return Err(Error::Attributes(limits.xml_attributes_max));
        }
        names.push(name);
        sink.xml_attribute(name, attribute_value(value, scratch)?);
        rest = after;
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::DuplicateAttribute);
    }
    Ok((name, empty))
}

/// The name of an end tag, from `</` to `>`.
pub(super) fn end_tag(tag: &[u8]) -> Result<&[u8], Error> {
    let inner = &tag[2..tag.len() - 1];
    let (name, rest) = inner.split_at(name_len(inner));
    if name.is_empty() || !rest.iter().all(|&b| is_space(b)) { Err(Error::Markup) } else { Ok(name) }
}

/// A processing instruction's target and data, from `<?` to `?>`.
pub(super) fn instruction(markup: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let inner = &markup[2..markup.len() - 2];
    let (target, rest) = inner.split_at(name_len(inner));
    if target.is_empty() || rest.first().is_some_and(|b| !is_space(*b)) {
        return Err(Error::Markup);
    }
    Ok((target, rest.trim_ascii_start()))
}

/// Checks the data of an XML declaration: version, encoding and standalone, in this order.
pub(super) fn check_declaration(data: &[u8]) -> Result<(), Error> {
    // The data of an instruction has lost its leading space; attributes want one.
    let spaced = [b" ", data].concat();
    let mut rest = spaced.as_slice();
    let expected: [&[u8]; 3] = [b"version", b"encoding", b"standalone"];
    let mut next = 0;
    while let Some((name, value, after)) = attribute(rest)? {
        let index = expected[next..].iter().position(|e| *e == name).ok_or(Error::Markup)? + next;
        let good = match index {
            0 => value
                .strip_prefix(b"1.")
                .is_some_and(|minor| !minor.is_empty() && minor.iter().all(u8::is_ascii_digit)),
            1 => value.first().is_some_and(u8::is_ascii_alphabetic),
            _ => matches!(value, b"yes" | b"no"),
        };
        if !good || next == 0 && index != 0 {
            return Err(Error::Markup);
        }
        next = index + 1;
        rest = after;
    }
    if next == 0 { Err(Error::Markup) } else { Ok(()) }
}

/// An attribute's name and raw value, and what follows it.
type Attribute<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// The next attribute with the white space before it; `None` if there is only white space.
fn attribute(rest: &[u8]) -> Result<Option<Attribute<'_>>, Error> {
    let trimmed = skip_space(rest);
    if trimmed.is_empty() {
        return Ok(None);
    }
    if trimmed.len() == rest.len() {
        return Err(Error::Attribute);
    }
    let (name, rest) = trimmed.split_at(name_len(trimmed));
    let rest = skip_space(rest).strip_prefix(b"=").filter(|_| !name.is_empty()).ok_or(Error::Attribute)?;
    match skip_space(rest) {
        [quote @ (b'"' | b'\''), rest @ ..] => {
            let end = memchr(*quote, rest).ok_or(Error::Attribute)?;
            Ok(Some((name, &rest[..end], &rest[end + 1..])))
        }
        _ => Err(Error::Attribute),
    }
}

/// An attribute's value with references resolved and white space made spaces.
fn attribute_value<'a>(raw: &'a [u8], scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
    if memchr(b'<', raw).is_some() {
        return Err(Error::Attribute);
    }
    if memchr(b'&', raw).is_none() && memchr3(b'\t', b'\n', b'\r', raw).is_none() {
        return Ok(raw);
    }
    scratch.clear();
    let mut rest = raw;
    while let [byte, after @ ..] = rest {
        rest = match byte {
            b'&' => {
                let end = memchr(b';', rest).ok_or(Error::Reference)?;
                push_reference(&rest[..=end], scratch)?;
                &rest[end + 1..]
            }
            b'\t' | b'\n' | b'\r' => {
                scratch.push(b' ');
                if *byte == b'\r' { after.strip_prefix(b"\n").unwrap_or(after) } else { after }
            }
            _ => {
                let special = rest.iter().position(|b| matches!(b, b'&' | b'\t' | b'\n' | b'\r'));
                let end = special.unwrap_or(rest.len());
                scratch.extend_from_slice(&rest[..end]);
                &rest[end..]
            }
        };
    }
    Ok(scratch)
}

/// Longest reference that is looked at; longer ones are malformed or undefined.
pub(super) const REFERENCE_BYTES_MAX: usize = 64;

/// Appends the character of `&name;`, `&#1;` or `&#x1;`.
pub(super) fn push_reference(reference: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let name = &reference[1..reference.len() - 1];
    let character = match name {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', number @ ..] => {
            let (digits, radix) = match number {
                [b'x', digits @ ..] => (digits, 16),
                _ => (number, 10),
            };
            let parsed = digits.iter().try_fold(0u32, |n, &digit| {
                Some(n.saturating_mul(radix).saturating_add((digit as char).to_digit(radix)?))
            });
            let code = parsed.filter(|_| !digits.is_empty()).ok_or(Error::Reference)?;
            char::from_u32(code).filter(|&c| is_allowed(c)).ok_or(Error::Character)?
        }
        _ if !name.is_empty() && name_len(name) == name.len() => return Err(Error::Entity),
        _ => return Err(Error::Reference),
    };
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

/// XML 1.0, production 2.
fn is_allowed(character: char) -> bool {
    !matches!(character, '\0'..'\t' | '\u{b}' | '\u{c}' | '\u{e}'..' ' | '\u{fffe}' | '\u{ffff}')
}

/// Length of the name that `text` starts with. Above ASCII every character counts as part of a name.
fn name_len(text: &[u8]) -> usize {
    match text.first() {
        Some(&first) if is_name_start(first) => text.iter().take_while(|&&b| is_name(b)).count(),
        _ => 0,
    }
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

fn is_name(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'.' || byte == b'-'
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn skip_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| !is_space(b)).unwrap_or(text.len());
    &text[start..]
}
