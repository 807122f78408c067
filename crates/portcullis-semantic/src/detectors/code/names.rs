use portcullis_types::ByteSet;

use crate::detectors::word_table::WordTable;

/// The longest name that is looked up.
const NAME_BYTES_MAX: usize = 48;

/// The group of a name: the effect of calling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::detectors) enum Group {
    /// Runs a command of the system.
    Execute,
    /// Runs code from text.
    Eval,
    /// Tells about the system.
    Info,
    /// Makes texts out of others.
    Decode,
    /// Calls what it is given.
    Callback,
    File,
    /// Opens or includes what may be a file of benign code.
    Open,
    Print,
    Hash,
    Sleep,
    /// Reflection of Java.
    Reflect,
    /// A type of Java.
    Type,
    Ognl,
    /// What Python keeps below its objects.
    Internal,
    /// A special method or attribute of Python that benign code has too.
    Dunder,
    /// A module of Node.
    Module,
    /// What Node keeps below its objects.
    Node,
    /// Makes objects of the system (ASP).
    Object,
    Superglobal,
}

/// `data/code-names.tsv`, ready to be asked.
#[derive(Debug)]
pub(in crate::detectors) struct Names {
    exact: WordTable<Group>,
    any_case: WordTable<Group>,
    paths: Vec<(&'static [u8], Group)>,
    /// By their first byte.
    types: Vec<Vec<&'static [u8]>>,
    /// The last names of the paths.
    ends: WordTable<()>,
    /// First bytes of the paths.
    paths_first: ByteSet,
}

impl Names {
    pub fn new() -> Names {
        let (mut exact, mut any_case) = (Vec::new(), Vec::new());
        let (mut paths, mut types): (Vec<(&[u8], Group)>, _) = (Vec::new(), vec![Vec::new(); 256]);
        for (name, group, flags) in lines() {
            let (name, group) = (name.as_bytes(), group_of(group));
            if group == Group::Type {
                types[usize::from(name[0])].push(name);
            } else if flags.contains('p') {
                paths.push((name, group));
            } else if flags.contains('i') && name.iter().all(|b| !b.is_ascii_uppercase()) {
                any_case.push((name, group));
            } else {
                exact.push((name, group));
            }
        }
        let last =
            |(path, _): &(&'static [u8], Group)| path.rsplit(|&b| b == b'.').next().unwrap_or_default();
        let ends = WordTable::new(paths.iter().map(|path| (last(path), ())));
        let first = |all: ByteSet, name: &&'static [u8]| all.union(ByteSet::of(&name[..1]));
        let paths_first = paths.iter().map(|(path, _)| path).fold(ByteSet::EMPTY, first);
        let (exact, any_case) = (WordTable::new(exact), WordTable::new(any_case));
        Names { exact, any_case, paths, types, ends, paths_first }
    }

    /// False if `name` is not one of the single names.
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.exact.may_have(name) || self.any_case.may_have(name)
    }

    /// What a single name is.
    pub fn get(&self, name: &[u8]) -> Option<Group> {
        if let Some(group) = self.exact.get(name) {
            return Some(group);
        }
        if !self.any_case.may_have(name) {
            return None;
        }
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.any_case.get(lower)
    }

    /// What a path of names (`a.b.c`) is: a type of Java or one that begins so, or a path that ends as a
    /// known one.
    pub fn path(&self, path: &[u8]) -> Option<Group> {
        let path = path.strip_prefix(b"Packages.").unwrap_or(path);
        let first = *path.first()?;
        let is_type = |known: &&[u8]| {
            path.strip_prefix(*known).is_some_and(|rest| rest.first().is_none_or(|b| *b == b'.'))
        };
        if self.types[usize::from(first)].iter().any(is_type) {
            return Some(Group::Type);
        }
        let last = path.rsplit(|&b| b == b'.').next().unwrap_or_default();
        let may_end = self.ends.get(last).is_some();
        if !may_end && !self.paths_first.contains(first) {
            return None;
        }
        let ends_so = |known: &[u8]| {
            path.strip_suffix(known).is_some_and(|before| before.last().is_none_or(|b| *b == b'.'))
        };
        let begins_so = |known: &[u8]| path.starts_with(known) && path.get(known.len()) == Some(&b'.');
        let known = self.paths.iter().find(|(known, _)| may_end && ends_so(known) || begins_so(known));
        known.map(|(_, group)| *group)
    }
}

fn group_of(text: &str) -> Group {
    match text {
        "execute" => Group::Execute,
        "eval" => Group::Eval,
        "info" => Group::Info,
        "decode" => Group::Decode,
        "callback" => Group::Callback,
        "file" => Group::File,
        "open" => Group::Open,
        "print" => Group::Print,
        "hash" => Group::Hash,
        "sleep" => Group::Sleep,
        "reflect" => Group::Reflect,
        "type" => Group::Type,
        "ognl" => Group::Ognl,
        "internal" => Group::Internal,
        "dunder" => Group::Dunder,
        "module" => Group::Module,
        "node" => Group::Node,
        "object" => Group::Object,
        _ => Group::Superglobal,
    }
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    include_str!("../../../data/code-names.tsv").lines().filter(|line| !line.starts_with('#')).filter_map(
        |line| {
            let mut fields = line.split('\t');
            Some((fields.next()?, fields.next()?, fields.next().unwrap_or_default()))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let names = Names::new();
        assert_eq!(names.get(b"SYSTEM"), Some(Group::Execute));
        assert_eq!(names.get(b"__globals__"), Some(Group::Internal));
        assert_eq!(names.get(b"Getclass"), None);
        assert_eq!(names.path(b"java.lang.Runtime.getRuntime"), Some(Group::Type));
        assert_eq!(names.path(b"java.lang.RuntimeException"), None);
        assert_eq!(names.path(b"util.os.system"), Some(Group::Execute));
        assert_eq!(names.path(b"pros.system"), None);
    }
}
