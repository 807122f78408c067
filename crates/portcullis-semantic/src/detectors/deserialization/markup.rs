//! Types named in YAML and XML.

use portcullis_types::Span;

use super::types::{Language, Types};
use super::{XML_CLASS, XML_GADGET, XML_PROXY, YAML_OBJECT, YAML_PLAIN};
use crate::Found;

/// `!!python/object/apply:os.system`, `!ruby/object:Gem::Installer`, `!!javax.script.ScriptEngineManager [`,
/// the long form `!<tag:yaml.org,2002:...>`, and what handles of `%TAG` stand for.
pub(super) fn yaml(types: &Types, text: &[u8], found: &mut Found<'_>) {
    let handles = Handles::of(text);
    for at in memchr::memchr_iter(b'!', text) {
        let rest = &text[at..];
        if let Some(tag) = handles.expanded(rest) {
            if let Some(kind) = yaml_tag(types, &tag) {
                found.add(kind, Span::new(at, at + tag_len(rest, 1)));
            }
            continue;
        }
        let rest = &rest[1..];
        let tag = rest
            .strip_prefix(b"!")
            .or_else(|| rest.strip_prefix(b"<tag:yaml.org,2002:"))
            .or_else(|| (rest.starts_with(b"ruby/") || rest.starts_with(b"php/")).then_some(rest));
        // A tag has no exclamation mark in it, so that no byte is read for two of them.
        let Some(tag) = tag.filter(|tag| tag.first().is_some_and(u8::is_ascii_alphabetic)) else { continue };
        let tag = &tag[..tag_len(tag, 0)];
        let span = Span::new(at, text.len().min(at + 4 + tag.len()));
        if let Some(kind) = yaml_tag(types, tag) {
            found.add(kind, span);
        }
    }
}

/// Bytes of a tag that are read.
const TAG_BYTES_MAX: usize = 160;

/// The length of the tag that `text` begins with, of which the first `from` bytes are.
fn tag_len(text: &[u8], from: usize) -> usize {
    let text = &text[..text.len().min(TAG_BYTES_MAX)];
    let ends = |b: &u8| {
        b.is_ascii_whitespace() || matches!(b, b'[' | b'{' | b'>' | b'"' | b'\'' | b',' | b']' | b'!')
    };
    text[from..].iter().position(ends).map_or(text.len(), |len| from + len)
}

/// Handles of tags that a document declares: `%TAG !p! tag:yaml.org,2002:python/`.
#[derive(Debug, Default)]
struct Handles<'t> {
    list: Vec<(&'t [u8], &'t [u8])>,
}

/// Bytes of a handle.
const HANDLE_BYTES_MAX: usize = 32;

/// Handles of a document that are looked at.
const HANDLES_MAX: usize = 16;

impl<'t> Handles<'t> {
    fn of(text: &'t [u8]) -> Handles<'t> {
        let mut handles = Handles::default();
        for at in memchr::memmem::find_iter(text, b"%TAG").take(HANDLES_MAX) {
            let line = &text[at + 4..];
            let line = &line[..memchr::memchr2(b'\n', b'\r', line).unwrap_or(line.len())];
            let begins = at.checked_sub(1).is_none_or(|before| matches!(text[before], b'\n' | b'\r'));
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let (Some(handle), Some(prefix)) = (words.next(), words.next()) else { continue };
            let is_handle =
                handle.len() <= HANDLE_BYTES_MAX && handle.starts_with(b"!") && handle.ends_with(b"!");
            if begins && is_handle && prefix.len() <= TAG_BYTES_MAX {
                handles.list.push((handle, prefix));
            }
        }
        handles
    }

    /// The tag at the beginning of `text` without the prefix of YAML's own tags, if its handle is declared.
    fn expanded(&self, text: &[u8]) -> Option<Vec<u8>> {
        let known = self.list.iter().filter(|(handle, _)| text.starts_with(handle));
        let (handle, prefix) = known.max_by_key(|(handle, _)| handle.len())?;
        let suffix = &text[handle.len()..tag_len(text, handle.len()).max(handle.len())];
        if suffix.is_empty() || suffix.starts_with(b"<") {
            return None;
        }
        let whole = [*prefix, suffix].concat();
        Some(whole.strip_prefix(b"tag:yaml.org,2002:").map_or_else(|| whole.clone(), <[u8]>::to_vec))
    }
}

fn yaml_tag(types: &Types, tag: &[u8]) -> Option<crate::KindId> {
    let starts = |starts: &[&[u8]]| starts.iter().any(|start| tag.starts_with(start));
    if starts(&[
        b"python/",
        b"python/name:",
        b"python/module:",
        b"ruby/object:",
        b"ruby/hash:",
        b"ruby/struct:",
        b"ruby/class",
        b"ruby/module",
        b"ruby/exception",
        b"ruby/array:",
        b"php/object",
        b"js/function",
    ]) {
        return Some(YAML_OBJECT);
    }
    if starts(&[b"python/", b"ruby/", b"js/", b"perl/"]) {
        return Some(YAML_PLAIN);
    }
    let dots = tag.iter().filter(|&&b| b == b'.').count();
    let is_class =
        dots >= 1 && tag.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'$'));
    match is_class {
        true if types.has(Language::Java, tag) => Some(YAML_OBJECT),
        true if dots >= 2 => Some(YAML_PLAIN),
        _ => None,
    }
}

/// Elements called like classes, `class="..."` and `type="..."` of classes, and the elements that XStream and
/// XMLDecoder write. Settings in a file name the classes of libraries; there only those count that run
/// something or reach other machines by themselves.
pub(super) fn xml(types: &Types, text: &[u8], is_settings: bool, found: &mut Found<'_>) {
    let mut has_packet = None;
    for at in memchr::memchr_iter(b'<', text) {
        let rest = &text[at + 1..];
        let rest = &rest[..rest.len().min(400)];
        let end = rest
            .iter()
            .position(|b| b.is_ascii_whitespace() || matches!(b, b'>' | b'/' | b'<'))
            .unwrap_or(rest.len());
        let (name, attributes) = rest.split_at(end);
        let attributes = &attributes[..memchr::memchr(b'>', attributes).unwrap_or(attributes.len())];
        if !found.may_read(end + attributes.len()) {
            return;
        }
        let span = Span::new(at, at + 1 + end);
        let local = name.rsplit(|&b| b == b':').next().unwrap_or(name);
        let is_made = || memchr::memmem::find(attributes, b"serialization=").is_some();
        if matches!(local, b"ObjectDataProvider" | b"ExpandedWrapper")
            || types.has(Language::Java, name) && is_class_name(name)
            || is_class_name(name) && is_made()
        {
            found.add(XML_GADGET, span);
        } else if name == b"dynamic-proxy" {
            found.add(XML_PROXY, span);
        } else if matches!(
            name,
            b"sorted-set" | b"tree-map" | b"linked-hash-set" | b"unserializable-parents" | b"java-class"
        ) {
            found.add(XML_CLASS, span);
        }
        // XAML that reaches types of the system.
        let has = |part: &[u8]| memchr::memmem::find(attributes, part).is_some();
        if has(b"clr-namespace:System") && has(b"assembly=") {
            found.add(XML_GADGET, span);
        }
        // WDDX of ColdFusion writes a class between two letters.
        let is_struct = name == b"struct"
            && *has_packet.get_or_insert_with(|| memchr::memmem::find(text, b"wddxPacket").is_some());
        for key in [&b"class="[..], b"type=", b"Type="] {
            let Some(found_at) = memchr::memmem::find(attributes, key) else { continue };
            let value = &attributes[found_at + key.len()..];
            let Some((quote @ (b'"' | b'\''), value)) = value.split_first() else { continue };
            let value = &value[..memchr::memchr(*quote, value).unwrap_or(value.len())];
            // `A.B.Wrapper`2[[..]], Assembly`: arguments of the type and its assembly stand after the name.
            let class = &value[..memchr::memchr2(b',', b'`', value).unwrap_or(value.len())];
            // Documents name classes of their own; an element that makes one of these makes a gadget.
            let inner = class.get(1..class.len().saturating_sub(1)).unwrap_or_default();
            let is_listed = is_settings && !SHARP.iter().any(|sharp| class.starts_with(sharp));
            if is_class_name(class) && (types.is_gadget(class) || is_struct && types.is_gadget(inner)) {
                found.add_unless(XML_GADGET, span, is_listed.then_some("settings-classes"));
            }
        }
    }
}

/// Classes that settings of applications do not list, or that do harm as soon as they are made.
const SHARP: &[&[u8]] = words!("deserialization", "sharp-packages");

/// Two dots or more, and nothing but names between.
fn is_class_name(name: &[u8]) -> bool {
    name.iter().filter(|&&b| b == b'.').count() >= 2
        && name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'$' | b'-'))
}
