use std::collections::HashMap;

/// `data/sensitive-paths.tsv`, ready to be asked.
#[derive(Debug)]
pub(super) struct Names {
    files: HashMap<&'static [u8], Group>,
    /// The same as a list, for patterns.
    list: Vec<(&'static [u8], Group)>,
    systems: Vec<&'static [u8]>,
    places: Vec<&'static [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    File,
    Name,
}

impl Names {
    pub fn new() -> Names {
        let mut names =
            Names { files: HashMap::new(), list: Vec::new(), systems: Vec::new(), places: Vec::new() };
        let table = include_str!("../../../data/sensitive-paths.tsv");
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once('\t') {
                Some((name, "file")) => drop(names.files.insert(name.as_bytes(), Group::File)),
                Some((name, "name")) => drop(names.files.insert(name.as_bytes(), Group::Name)),
                Some((name, "system")) => names.systems.push(name.as_bytes()),
                Some((name, "place")) => names.places.push(name.as_bytes()),
                _ => debug_assert!(false, "{line}"),
            }
        }
        names.list = names.files.iter().map(|(name, group)| (*name, *group)).collect();
        // The more telling group first, and the same order in each process.
        names.list.sort_unstable_by_key(|(name, group)| (*group != Group::File, *name));
        names
    }

    /// The group of `target`, by its last names, the most telling first. A wildcard stands for what it could
    /// match.
    pub fn file(&self, target: &[u8]) -> Option<Group> {
        let target = strip_tail(target);
        let begin = target.iter().position(|b| !matches!(b, b'?' | b'*' | b'.' | b'/')).unwrap_or(0);
        // Leading wildcards are steps up to some file systems; a name may begin with a dot.
        let has_wildcard = memchr::memchr2(b'?', b'*', &target[..begin]).is_some();
        let target = &target[if has_wildcard { begin } else { 0 }..];
        let is_pattern = target.iter().any(|b| matches!(b, b'?' | b'*' | b'['));
        if is_pattern {
            let letters = target.iter().filter(|b| b.is_ascii_alphanumeric()).count();
            let first = target.first().copied().filter(|b| !matches!(b, b'?' | b'*' | b'['));
            let hits = |name: &[u8]| {
                name.len() > 6
                    && letters * 2 >= name.len()
                    && first.is_none_or(|first| name[0] == first)
                    && matches(target, name)
            };
            return self.list.iter().find(|(name, _)| hits(name)).map(|(_, group)| *group);
        }
        let mut found = None;
        let mut starts = memchr::memrchr_iter(b'/', target);
        for _ in 0..5 {
            let start = starts.next();
            let tail = &target[start.map_or(0, |at| at + 1)..];
            match self.files.get(tail) {
                Some(Group::File) => return Some(Group::File),
                Some(Group::Name) if found.is_none() => found = Some(Group::Name),
                _ => {}
            }
            if start.is_none() {
                break;
            }
        }
        // Any process and any of its descriptors.
        let is_process = target
            .strip_prefix(b"proc/")
            .is_some_and(|rest| rest.starts_with(b"self") || rest.first().is_some_and(u8::is_ascii_digit));
        if is_process { Some(Group::File) } else { found }
    }

    /// True if `target` begins in a folder of the machine.
    pub fn is_system(&self, target: &[u8]) -> bool {
        begins_in(&self.systems, target)
    }

    /// True if `target` begins in a folder that machines have, and sites may have too.
    pub fn is_place(&self, target: &[u8]) -> bool {
        begins_in(&self.places, target)
    }
}

fn begins_in(folders: &[&[u8]], target: &[u8]) -> bool {
    folders.iter().any(|folder| target.starts_with(folder) || folder.strip_suffix(b"/") == Some(target))
}

/// Without what a server or a filter adds: `?x`, `::$DATA`, `.html` after NUL is gone already.
fn strip_tail(target: &[u8]) -> &[u8] {
    let query = memchr::memchr2(b'?', b'&', target).filter(|&at| {
        let rest = &target[at + 1..];
        rest.is_empty() || rest.starts_with(b"/") || memchr::memchr(b'=', rest).is_some()
    });
    let target = &target[..query.unwrap_or(target.len())];
    let target = target.strip_suffix(b"::data").unwrap_or(target);
    let end = target.iter().rposition(|b| !matches!(b, b'.' | b' ' | b'/')).map_or(0, |at| at + 1);
    &target[..end]
}

/// `pattern` with `?`, `*` and `[...]`, none of which stands for a slash. Linear: a star goes back to the
/// last one only.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some(b'?') if name[n] != b'/' => Some(1),
            Some(b'[') => {
                let class = &pattern[p + 1..];
                let end = memchr::memchr(b']', class);
                end.filter(|&end| class[..end].contains(&name[n])).map(|end| end + 2)
            }
            Some(&b) if b == name[n] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(used), _) => {
                p += used;
                n += 1;
            }
            (None, Some((at, from))) if name[from] != b'/' => {
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
            _ => return false,
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, name) in [
            ("etc/pa??wd", "etc/passwd"),
            ("e*c/p*d", "etc/passwd"),
            ("etc/p[a]ss[w]d", "etc/passwd"),
            ("etc/passwd*", "etc/passwd"),
        ] {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern}");
        }
        for (pattern, name) in
            [("etc?passwd", "etc/passwd"), ("e*d", "etc/passwd"), ("etc/[b]asswd", "etc/passwd")]
        {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern}");
        }
    }

    #[test]
    fn every_line_is_a_name() {
        let names = Names::new();
        assert!(names.files.len() > 100 && names.systems.len() > 20 && names.places.len() > 10);
        assert!(names.files.keys().all(|name| name.len() < 96 && !name.iter().any(u8::is_ascii_uppercase)));
    }
}
