//! Names of uploaded files.

use std::collections::HashMap;

use portcullis_types::Span;

use super::{DISGUISED_NAME, OBEYED_NAME, PROGRAM_NAME, SERVER_NAME, SERVER_NAME_WEAK};
use crate::Found;

/// `data/upload-names.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Names(HashMap<&'static str, Group>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// A web server runs it.
    Server,
    /// Some web servers run it, and people have such files.
    Weak,
    /// Windows runs it.
    Program,
    /// A server does what it says.
    Obeyed,
}

/// Bytes of a name that are looked at, from its end.
const NAME_BYTES_MAX: usize = 128;

/// Endings in front of which an extension has no meaning: archives, patches and text, which no server runs.
const HARMLESS: [&str; 12] =
    ["zip", "gz", "tgz", "bz2", "xz", "7z", "rar", "tar", "patch", "diff", "md", "map"];

impl Names {
    pub fn new() -> Names {
        let lines =
            include_str!("../../../data/upload-names.tsv").lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once('\t'));
        let group = |name| match name {
            "server" => Group::Server,
            "program" => Group::Program,
            "obeyed" => Group::Obeyed,
            _ => Group::Weak,
        };
        Names(pairs.map(|(name, of)| (name, group(of))).collect())
    }

    fn get(&self, name: &str) -> Option<Group> {
        self.0.get(name).copied()
    }

    /// Notes what is telling about `name`.
    pub fn look(&self, name: &[u8], found: &mut Found<'_>) {
        let base = name.iter().rposition(|&b| matches!(b, b'/' | b'\\')).map_or(0, |at| at + 1);
        // A separator at the end is a disguise of its own.
        let base = if base == name.len() { name.len().saturating_sub(NAME_BYTES_MAX) } else { base };
        let text = &name[base.max(name.len().saturating_sub(NAME_BYTES_MAX))..];
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = &mut lower[..text.len()];
        lower.copy_from_slice(text);
        lower.make_ascii_lowercase();
        let span = Span::new(name.len() - text.len(), name.len());
        let clean = lower.trim_ascii();
        if std::str::from_utf8(clean).ok().and_then(|whole| self.get(whole)) == Some(Group::Obeyed) {
            return found.add(OBEYED_NAME, span);
        }
        // `x.png::$DATA`: a stream of NTFS, by which a server gets another file than its name says.
        let is_stream = memchr::memmem::find(lower, b"::$")
            .is_some_and(|at| lower[at + 3..].first().is_some_and(u8::is_ascii_alphabetic));
        if is_stream {
            return found.add(DISGUISED_NAME, span);
        }
        // Each extension, with what stands after it: the next dot, or something that a server may cut off.
        let mut rest = &*lower;
        while let Some(dot) = memchr::memchr(b'.', rest) {
            rest = &rest[dot + 1..];
            let len = rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            let Some(group) =
                std::str::from_utf8(&rest[..len]).ok().and_then(|extension| self.get(extension))
            else {
                continue;
            };
            match (group, &rest[len..]) {
                (Group::Server, []) => found.add(SERVER_NAME, span),
                (Group::Weak, []) => found.add(SERVER_NAME_WEAK, span),
                (Group::Program, []) => found.add(PROGRAM_NAME, span),
                (Group::Server, [b'.', ends @ ..]) if is_harmless(ends) => {}
                (Group::Server, _) => found.add(DISGUISED_NAME, span),
                (Group::Weak, [0, ..]) => found.add(DISGUISED_NAME, span),
                (Group::Program, [b'.', ends @ ..]) if !ends.contains(&b'.') && !is_harmless(ends) => {
                    found.add(PROGRAM_NAME, span);
                }
                _ => {}
            }
        }
    }
}

fn is_harmless(ending: &[u8]) -> bool {
    let last = ending.rsplit(|&b| b == b'.').next().unwrap_or_default();
    HARMLESS.iter().any(|harmless| harmless.as_bytes() == last)
}
