//! `data/scanner-names.tsv` and `data/probe-paths.tsv`, ready to be asked.

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use portcullis_types::Span;

/// What an address is to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Console,
    Exposed,
    Probe,
}

#[derive(Debug)]
pub(super) struct Names {
    leaves: HashSet<&'static [u8]>,
    /// Leaves that end with `*`.
    beginnings: Vec<&'static [u8]>,
    suffixes: Vec<&'static [u8]>,
    stores: HashSet<&'static [u8]>,
    archives: HashSet<&'static [u8]>,
    /// Agents, and whether each is a tool for attacks.
    agents: AhoCorasick,
    is_attack: Vec<bool>,
    addresses: AhoCorasick,
    about: Vec<Address>,
}

#[derive(Clone, Copy, Debug)]
struct Address {
    group: Group,
    /// It stands at the root of the site.
    is_first: bool,
    /// Something may follow.
    is_folder: bool,
}

fn lines(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('\t'))
}

impl Names {
    pub fn new() -> Names {
        let (mut leaves, mut beginnings, mut suffixes) = (HashSet::new(), Vec::new(), Vec::new());
        let (mut stores, mut archives) = (HashSet::new(), HashSet::new());
        let (mut agents, mut is_attack) = (Vec::new(), Vec::new());
        for (name, group) in lines(include_str!("../../../data/scanner-names.tsv")) {
            let bytes = name.as_bytes();
            match (group, name.strip_suffix('*')) {
                ("leaf", Some(beginning)) => beginnings.push(beginning.as_bytes()),
                ("leaf", None) => drop(leaves.insert(bytes)),
                ("suffix", _) => suffixes.push(bytes),
                ("store", _) => drop(stores.insert(bytes)),
                ("archive", _) => drop(archives.insert(bytes)),
                (group, _) => {
                    agents.push(name);
                    is_attack.push(group == "agent");
                }
            }
        }
        let (mut paths, mut about) = (Vec::new(), Vec::new());
        for (path, rest) in lines(include_str!("../../../data/probe-paths.tsv")) {
            let group = match rest.split('\t').next() {
                Some("probe") => Group::Probe,
                Some("exposed") => Group::Exposed,
                _ => Group::Console,
            };
            let bare = path.strip_prefix('^').unwrap_or(path);
            paths.push(bare);
            about.push(Address { group, is_first: bare != path, is_folder: bare.ends_with('/') });
        }
        let automaton = |words: Vec<&str>, kind| {
            AhoCorasick::builder()
                .kind(Some(kind))
                .match_kind(MatchKind::Standard)
                .ascii_case_insensitive(true)
                .build(words)
                .expect("the names are few")
        };
        // Agents stand in every request; addresses are many, and paths are short.
        let agents = automaton(agents, AhoCorasickKind::DFA);
        let addresses = automaton(paths, AhoCorasickKind::ContiguousNFA);
        Names { leaves, beginnings, suffixes, stores, archives, agents, is_attack, addresses, about }
    }

    /// Names of tools in `text`, and whether each is a tool for attacks.
    pub fn agents(&self, text: &[u8]) -> impl Iterator<Item = (Span, bool)> {
        self.agents
            .find_overlapping_iter(text)
            .map(|hit| (Span::new(hit.start(), hit.end()), self.is_attack[hit.pattern().as_usize()]))
    }

    /// One segment of a path is what nobody publishes.
    pub fn is_left_behind(&self, segment: &[u8]) -> bool {
        let begins = |beginning: &&[u8]| segment.starts_with(beginning) && segment.len() > beginning.len();
        self.leaves.contains(segment) || self.beginnings.iter().any(begins)
    }

    /// `path` without the end that makes a file a copy.
    pub fn without_suffix<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        self.suffixes.iter().find_map(|suffix| path.strip_suffix(*suffix))
    }

    /// A name for the whole of a site or a database.
    pub fn is_store(&self, stem: &[u8]) -> bool {
        // `db_backup`, `backup-2024-05-01`
        const COPIES: [&[u8]; 7] =
            [b"backup", b"backups", b"bak", b"dump", b"sqldump", b"dbdump", b"mysqldump"];
        let mut parts = stem.split(|b| matches!(b, b'-' | b'_'));
        let is_part = |part: &[u8]| self.stores.contains(part) || part.iter().all(u8::is_ascii_digit);
        self.stores.contains(stem) || parts.clone().any(|part| COPIES.contains(&part)) && parts.all(is_part)
    }

    /// An extension of archives and dumps.
    pub fn is_archive(&self, extension: &[u8]) -> bool {
        self.archives.contains(extension)
    }

    /// What is known of an address, the worst if there are several.
    pub fn address(&self, path: &[u8]) -> Option<Group> {
        let end = path.len() - usize::from(path.len() > 1 && path.ends_with(b"/"));
        let fits = |start: usize, stop: usize, about: &Address| {
            (!about.is_first || start == 0) && (about.is_folder || stop == end)
        };
        let hits = self.addresses.find_overlapping_iter(path);
        hits.map(|hit| (hit, self.about[hit.pattern().as_usize()]))
            .filter(|(hit, about)| fits(hit.start(), hit.end(), about))
            .map(|(_, about)| about.group)
            .max()
    }
}
