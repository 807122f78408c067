//! Names of types.

use std::collections::HashSet;

use portcullis_types::Span;

use super::{ANY_TYPE, GADGET_TYPE, GADGET_VALUE};
use crate::{Found, Input, Place};

/// `data/serial-types.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Types {
    whole: HashSet<(Language, &'static [u8])>,
    beginnings: Vec<(Language, &'static [u8])>,
    ends: Vec<(Language, &'static [u8])>,
}

/// Whose types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Language {
    Java,
    DotNet,
    Python,
    Ruby,
}

/// The longest name of a type.
const NAME_BYTES_MAX: usize = 160;

impl Types {
    pub fn new() -> Types {
        let mut types = Types { whole: HashSet::new(), beginnings: Vec::new(), ends: Vec::new() };
        let text = include_str!("../../../data/serial-types.tsv");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, language)) = line.split_once('\t') else { continue };
            let language = match language {
                "java" => Language::Java,
                "dotnet" => Language::DotNet,
                "python" => Language::Python,
                _ => Language::Ruby,
            };
            match name.strip_suffix('*') {
                Some(beginning) => types.beginnings.push((language, beginning.as_bytes())),
                None if name.starts_with('.') => types.ends.push((language, name.as_bytes())),
                None => {
                    types.whole.insert((language, name.as_bytes()));
                }
            }
        }
        types
    }

    /// True if gadgets begin with the type called `name`.
    pub fn has(&self, language: Language, name: &[u8]) -> bool {
        self.whole.contains(&(language, name))
            || self.beginnings.iter().any(|(of, beginning)| *of == language && name.starts_with(beginning))
            || self.ends.iter().any(|(of, end)| *of == language && name.ends_with(end))
    }

    /// True for the name of a Java class or a .NET type that gadgets begin with.
    pub fn is_gadget(&self, name: &[u8]) -> bool {
        self.has(Language::Java, name) || self.has(Language::DotNet, name)
    }
}

/// `"@type":"..."`, `'$type':'...'`, `"@class":"..."` in a text that is JSON or a piece of it.
pub(super) fn names_in_json(types: &Types, text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memmem::find_iter(text, b"\"py/") {
        let rest = &text[at + 4..];
        if [&b"object\""[..], b"reduce\"", b"type\"", b"function\""].iter().any(|key| rest.starts_with(key)) {
            found.add(GADGET_TYPE, Span::new(at, at + 10));
        }
    }
    for at in memchr::memmem::find_iter(text, b"type") {
        let is_key = text[..at].ends_with(b"\"__") && text[at + 4..].first() == Some(&b'"');
        let window = &text[at + 4..text.len().min(at + 4 + PAIR_BYTES_MAX)];
        let value = window.splitn(4, |b| *b == b'"').nth(2).filter(|_| is_key);
        if let Some(value) = value.filter(|value| class_name(value).is_some_and(|name| types.is_gadget(name)))
        {
            found.add(GADGET_TYPE, Span::new(at, text.len().min(at + 4 + value.len())));
        }
    }
    directory_in_json(types, text, found);
    for at in memchr::memchr2_iter(b'@', b'$', text) {
        if !at.checked_sub(1).is_some_and(|before| matches!(text[before], b'"' | b'\'')) {
            continue;
        }
        let rest = &text[at + 1..];
        let Some(rest) = [&b"type"[..], b"class"].iter().find_map(|key| rest.strip_prefix(*key)) else {
            continue;
        };
        let Some((b'"' | b'\'', rest)) = rest.split_first() else { continue };
        let Some(rest) = rest.trim_ascii_start().strip_prefix(b":") else { continue };
        let rest = rest.trim_ascii_start();
        let Some((b'"' | b'\'', rest)) = rest.split_first() else { continue };
        let end =
            rest.iter().take(256).position(|b| matches!(b, b'"' | b'\'')).unwrap_or(rest.len().min(256));
        note(types, &rest[..end], Span::new(at - 1, text.len() - rest.len() + end), found);
    }
}

/// Classes of PHP that gadgets begin with, as a value by itself.
pub(super) fn class_of_php(text: &[u8], found: &mut Found<'_>) {
    const CLASSES: &[&[u8]] = &[
        b"GuzzleHttp\\Psr7\\FnStream",
        b"Illuminate\\Broadcasting\\PendingBroadcast",
        b"Monolog\\Handler\\SyslogUdpHandler",
        b"Monolog\\Handler\\BufferHandler",
    ];
    let name = text.trim_ascii();
    let name = name.strip_prefix(b"\\").unwrap_or(name);
    if CLASSES.contains(&name) {
        found.add(GADGET_TYPE, Span::new(0, text.len()));
    }
}

/// Oj and the json gem of Ruby make objects of the class that these keys name.
pub(super) fn keys_of_ruby(text: &[u8], found: &mut Found<'_>) {
    // jsonrpclib of Python: a class and what it is made with.
    if let Some(at) = memchr::memmem::find(text, b"\"__jsonclass__\"") {
        let rest = text[at + 15..].trim_ascii_start();
        if rest.strip_prefix(b":").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"[\"")) {
            found.add(GADGET_TYPE, Span::new(at, at + 15));
        }
    }
    for key in [&b"\"^o\""[..], b"\"json_class\""] {
        for at in memchr::memmem::find_iter(text, key) {
            let rest = text[at + key.len()..].trim_ascii_start().strip_prefix(b":").unwrap_or_default();
            let name = rest.trim_ascii_start().strip_prefix(b"\"").unwrap_or_default();
            let len = name.iter().take(NAME_BYTES_MAX).take_while(|b| is_of_ruby(b)).count();
            if name.first().is_some_and(u8::is_ascii_uppercase)
                && name.get(len) == Some(&b'"')
                && memchr::memmem::find(&name[..len], b"::").is_some()
            {
                found.add(GADGET_TYPE, Span::new(at, at + key.len()));
            }
        }
    }
}

/// Where a text of JSON is the address of a directory that hands out objects.
pub(super) fn asks_directory(text: &[u8]) -> Option<usize> {
    const SCHEMES: &[&[u8]] = &[b"ldap://", b"ldaps://", b"rmi://", b"iiop://"];
    memchr::memmem::find_iter(text, b"://").find_map(|at| {
        let start = text[..at].iter().rev().take(6).position(|b| *b == b'"').map(|len| at - len)?;
        SCHEMES.iter().any(|scheme| text[start..].starts_with(scheme)).then_some(start)
    })
}

/// `{"type":"a.b.JndiConverter","asText":"ldap://.."}`: beside such an address stands the name of a class
/// that gadgets begin with, whatever the keys are.
pub(super) fn directory_in_json(types: &Types, text: &[u8], found: &mut Found<'_>) {
    let Some(address) = asks_directory(text) else { return };
    let window = &text[address.saturating_sub(OBJECT_BYTES_MAX)..text.len().min(address + OBJECT_BYTES_MAX)];
    let mut values = window.split(|b| *b == b'"').skip(1);
    if values.any(|value| class_name(value).is_some_and(|name| types.is_gadget(name))) {
        found.add(GADGET_TYPE, Span::new(address, text.len().min(address + 16)));
    }
}

/// Bytes around the address in which the class is looked for.
const OBJECT_BYTES_MAX: usize = 512;

/// False if [`pairs_in_json`] would find nothing: no array begins with a text that has a dot.
pub(super) fn may_have_pairs(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"[\"").any(|at| {
        let window = &text[at + 2..text.len().min(at + 2 + PAIR_BYTES_MAX)];
        memchr::memchr2(b'"', b'.', window).is_some_and(|found| window[found] == b'.')
    })
}

/// Bytes within which the end of a name is looked for.
const PAIR_BYTES_MAX: usize = 200;

/// Jackson's `["a.b.Class", {...}]` or `["a.b.Class", "http://..."]`: a class and what it is made of.
pub(super) fn pairs_in_json(types: &Types, text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memmem::find_iter(text, b"[\"") {
        let rest = &text[at + 2..];
        let Some(end) = memchr::memchr(b'"', &rest[..rest.len().min(PAIR_BYTES_MAX)]) else { continue };
        let Some(after) = rest[end + 1..].trim_ascii_start().strip_prefix(b",") else { continue };
        let after = after.trim_ascii_start();
        let is_made = match after {
            [b'{' | b'[', ..] => true,
            [b'"', text @ ..] => memchr::memmem::find(&text[..text.len().min(16)], b"://").is_some(),
            _ => false,
        };
        if is_made && class_name(&rest[..end]).is_some_and(|name| types.is_gadget(name)) {
            found.add(GADGET_TYPE, Span::new(at, at + 2 + end));
        }
    }
}

fn note(types: &Types, value: &[u8], span: Span, found: &mut Found<'_>) {
    if let Some(name) = class_name(value) {
        found.add(if types.is_gadget(name) { GADGET_TYPE } else { ANY_TYPE }, span);
    }
}

/// Keys of JSON whose values name what is made.
pub(super) const KEYS: &[&str] = names!("deserialization", "type-keys");

/// A value in JSON under a key of Ruby's Oj or json gem, or of Python's jsonrpclib: it names the class.
pub(super) fn named(input: &Input<'_>, found: &mut Found<'_>) {
    let (text, key) = (input.text.trim_ascii(), last_key(input.location.name));
    if input.location.place != Place::Json || text.len() > NAME_BYTES_MAX {
        return;
    }
    let makes = match key {
        b"^o" | b"^O" | b"json_class" => {
            let is_class = text.first().is_some_and(u8::is_ascii_uppercase) && text.iter().all(is_of_ruby);
            is_class && memchr::memmem::find(text, b"::").is_some()
        }
        b"__jsonclass__" => memchr::memchr(b'.', text).is_some() && class_or_function(text),
        _ => false,
    };
    if makes {
        found.add(GADGET_TYPE, Span::new(0, input.text.len()));
    }
}

/// The innermost name of a path.
fn last_key(path: &[u8]) -> &[u8] {
    &path[memchr::memrchr(b'.', path).map_or(0, |at| at + 1)..]
}

/// A value that is a type's name: of a key that names the type, or by itself.
pub(super) fn value(types: &Types, input: &Input<'_>, found: &mut Found<'_>) {
    let span = Span::new(0, input.text.len().min(120));
    if input.location.place == Place::Json && is_of_pickle(types, input) {
        found.add(GADGET_TYPE, span);
        return;
    }
    let key = last_key(input.location.name);
    let asks = input.location.place == Place::Json
        && matches!(key, b"@type" | b"$type" | b"@class" | b"__type" | b"@c" | b"javaClass" | b"__class");
    let bare = input.text.trim_ascii();
    // `solr.RunExecutableListener`: a name that is too short for a class anywhere else.
    let named = class_name(input.text).or_else(|| (asks && types.is_gadget(bare)).then_some(bare));
    let Some(name) = named else { return };
    if input.location.place == Place::Json
        && matches!(key, b"py/object" | b"py/reduce" | b"py/type" | b"py/function")
    {
        found.add(GADGET_TYPE, span);
    } else if asks {
        found.add(if types.is_gadget(name) { GADGET_TYPE } else { ANY_TYPE }, span);
    } else if name.starts_with(b"javax.naming.") && is_for_class(key) {
        // `driver=javax.naming.InitialContext`: what is asked for by the address beside it.
        found.add(GADGET_TYPE, span);
    } else if types.is_gadget(name) {
        // Jackson's form is an array: the class, then what it is made of.
        if input.location.place == Place::Json {
            found.add(GADGET_VALUE, span)
        } else {
            found.mention(GADGET_VALUE, span)
        }
    }
}

/// The field says which class is made.
fn is_for_class(key: &[u8]) -> bool {
    let mut lower = [0; 32];
    let Some(lower) = lower.get_mut(..key.len()) else { return false };
    lower.copy_from_slice(key);
    lower.make_ascii_lowercase();
    [&b"driver"[..], b"class", b"factory", b"type"].iter().any(|word| lower.ends_with(word))
}

/// jsonpickle: what `py/reduce` calls, and types and functions of modules that reach the system.
fn is_of_pickle(types: &Types, input: &Input<'_>) -> bool {
    let (path, text) = (input.location.name, input.text.trim_ascii());
    let named = |key: &[u8]| memchr::memmem::find(path, key).is_some();
    if !named(b"py/") {
        return false;
    }
    let text = &text[..text.len().min(NAME_BYTES_MAX)];
    let name = &text[..memchr::memchr(b' ', text).unwrap_or(text.len())];
    // `os`, `numpy.testing`
    let mut ends = memchr::memchr_iter(b'.', name).chain([name.len()]).take(2);
    let is_type = named(b"py/type") || named(b"py/function") || named(b"py/object") || named(b"py/repr");
    named(b"py/reduce") && memchr::memchr(b'.', text).is_some() && class_or_function(text)
        || is_type && ends.any(|end| types.has(Language::Python, &name[..end]))
}

/// `os.system`, `a.b.C`
fn class_or_function(text: &[u8]) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.split(|b| *b == b'.').all(|part| {
            part.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
                && part.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        })
}

fn is_of_ruby(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b':')
}

/// The name in `a.b.Class`, `La.b.Class;`, `[a.b.Class`, `A.B.Type, Assembly, Version=...`: at least two
/// dots, or one in .NET's form.
fn class_name(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    let (name, assembly) = match memchr::memchr(b',', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    let name = match name.strip_prefix(b"L") {
        Some(inner) if inner.ends_with(b";") => inner.trim_ascii_end(),
        _ => name,
    };
    let name = name.strip_prefix(b"[").unwrap_or(name);
    let name = &name[name.iter().take_while(|b| **b == b'L' && name.ends_with(b";")).count()..];
    let name = name.strip_suffix(b";").unwrap_or(name);
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let is_part = |part: &[u8]| {
        part.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
            && part.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'`' | b'[' | b']'))
    };
    let parts = name.split(|&b| b == b'.').count();
    let last = name.rsplit(|&b| b == b'.').next()?;
    let is_class = parts >= 2 + usize::from(assembly.is_empty())
        && last.first().is_some_and(u8::is_ascii_uppercase)
        && name.split(|&b| b == b'.').all(is_part);
    is_class.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, want) in [
            ("com.sun.rowset.JdbcRowSetImpl", Some("com.sun.rowset.JdbcRowSetImpl")),
            ("Lcom.sun.rowset.JdbcRowSetImpl;", Some("com.sun.rowset.JdbcRowSetImpl")),
            ("System.Diagnostics.Process, System, Version=4.0.0.0", Some("System.Diagnostics.Process")),
            ("www.example.com", None),
            ("Product", None),
            ("schema.org/Product", None),
            ("a.b", None),
        ] {
            assert_eq!(class_name(text.as_bytes()), want.map(str::as_bytes), "{text}");
        }
    }
}
