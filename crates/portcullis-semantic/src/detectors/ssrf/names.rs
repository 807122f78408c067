use std::collections::HashMap;

/// `data/hosts.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Names {
    whole: HashMap<&'static [u8], Group>,
    below: HashMap<&'static [u8], Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Local,
    Metadata,
    Internal,
    Embedding,
    Collector,
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = include_str!("../../../data/hosts.tsv");
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

impl Names {
    pub fn new() -> Names {
        let mut names = Names { whole: HashMap::new(), below: HashMap::new() };
        for (name, group) in lines() {
            let group = match group {
                "local" => Group::Local,
                "metadata" => Group::Metadata,
                "internal" => Group::Internal,
                "embedding" => Group::Embedding,
                _ => Group::Collector,
            };
            let bare = name.strip_prefix('.').unwrap_or(name);
            names.whole.insert(bare.as_bytes(), group);
            if bare != name {
                names.below.insert(bare.as_bytes(), group);
            }
        }
        names
    }

    /// What the host called `name` is.
    pub fn get(&self, name: &[u8]) -> Option<Group> {
        if let Some(group) = self.whole.get(name) {
            return Some(*group);
        }
        memchr::memchr_iter(b'.', name).take(12).find_map(|dot| self.below.get(&name[dot + 1..])).copied()
    }
}

/// The names as words of the gate.
pub(super) fn hints() -> impl Iterator<Item = &'static str> {
    lines().map(|(name, _)| name.strip_prefix('.').unwrap_or(name))
}
