//! The policy for findings: actions for single classes of attacks, and exclusions.

use portcullis_types::{Class, Place};

use crate::pattern::{glob, is_for_path};

/// The action for findings of a class that pass the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassAction {
    /// The request is blocked.
    Block,
    /// The message passes, with an event.
    Log,
    /// Nothing.
    Off,
}

/// Findings that do not count: those to which all that is said here applies.
#[derive(Clone, Debug, Default)]
pub struct Exclusion {
    /// The class.
    pub class: Option<Class>,
    /// The kind of finding: others in the same value count.
    pub kind: Option<String>,
    /// The place of the value.
    pub place: Option<Place>,
    /// The name of the value; `*` stands for any text. Names of headers are compared without regard to case.
    pub name: Option<String>,
    /// A prefix of the path; with `*`, which stands for any text, or `{id}`, which stands for one segment,
    /// the whole path.
    pub path: Option<String>,
    /// From then on they count again; milliseconds since 1970.
    pub until: Option<u64>,
    /// It is only tried: what it names counts.
    pub trial: bool,
}

impl Exclusion {
    /// It is for this path and not over.
    fn holds(&self, path: &[u8], epoch_millis: u64) -> bool {
        self.path.as_deref().is_none_or(|pattern| is_for_path(pattern, path))
            && self.until.is_none_or(|until| epoch_millis < until)
    }

    /// It is for this value, if it is for the path.
    fn fits(&self, class: Class, place: Place, name: &[u8]) -> bool {
        let is_header = matches!(place, Place::Header | Place::ResponseHeader);
        self.class.is_none_or(|wanted| wanted == class)
            && self.place.is_none_or(|wanted| wanted == place)
            && self.name.as_deref().is_none_or(|pattern| glob(pattern.as_bytes(), name, is_header))
    }
}

/// A policy for classes, locations and paths. Where it says nothing, findings block; those of [`Class::Leak`]
/// that are not critical are logged, and those of [`Class::Redirect`] where no hosts are listed.
#[derive(Clone, Debug, Default)]
pub struct SemanticPolicy {
    /// Classes for which something else is done than to block.
    pub classes: Vec<(Class, ClassAction)>,
    /// Hosts to which pages may lead, in lower case; `*.` stands before those below which all are meant.
    pub hosts: Vec<String>,
    /// Findings that do not count.
    pub exclusions: Vec<Exclusion>,
}

impl SemanticPolicy {
    /// For each exclusion, whether it is for other paths than this one, or over at this time in milliseconds
    /// since 1970.
    pub(crate) fn elsewhere(&self, path: &[u8], epoch_millis: u64) -> Vec<bool> {
        if self.exclusions.iter().all(|exclusion| exclusion.path.is_none() && exclusion.until.is_none()) {
            return Vec::new();
        }
        self.exclusions.iter().map(|each| !each.holds(path, epoch_millis)).collect()
    }

    /// Returns the action that the policy sets for findings of `class` in this value, if it sets one.
    pub(crate) fn action(
        &self,
        class: Class,
        place: Place,
        name: &[u8],
        elsewhere: &[bool],
    ) -> Option<ClassAction> {
        match self.here(elsewhere).any(|each| each.kind.is_none() && each.fits(class, place, name)) {
            true => Some(ClassAction::Off),
            false => self.said(class),
        }
    }

    /// True if findings of this kind do not count in this value, although others of their class may.
    pub(crate) fn excludes(
        &self,
        class: Class,
        kind: &str,
        place: Place,
        name: &[u8],
        elsewhere: &[bool],
    ) -> bool {
        self.here(elsewhere).any(|each| each.kind.as_deref() == Some(kind) && each.fits(class, place, name))
    }

    /// Adds the numbers of the exclusions that name findings of `class` in this value, each once; `kinds` are
    /// those that were found. Either of those that count or of those on trial. Nothing where the policy
    /// leaves the class out anyhow.
    pub(crate) fn fitting(
        &self,
        on_trial: bool,
        (class, kinds): (Class, &[&str]),
        (place, name): (Place, &[u8]),
        elsewhere: &[bool],
        fitting: &mut Vec<u32>,
    ) {
        if self.is_off(class) {
            return;
        }
        for (number, each) in self.of_path(elsewhere).filter(|(_, each)| each.trial == on_trial) {
            let is_found = each.kind.as_deref().is_none_or(|kind| kinds.contains(&kind));
            if is_found && each.fits(class, place, name) && !fitting.contains(&(number as u32)) {
                fitting.push(number as u32);
            }
        }
    }

    /// True if there are exclusions on trial.
    pub(crate) fn has_trials(&self) -> bool {
        self.exclusions.iter().any(|each| each.trial)
    }

    pub(crate) fn is_on_trial(&self, number: u32) -> bool {
        self.exclusions.get(number as usize).is_some_and(|each| each.trial)
    }

    /// The same with the exclusions on trial counting.
    pub(crate) fn enforced(&self) -> SemanticPolicy {
        let mut policy = self.clone();
        policy.exclusions.iter_mut().for_each(|each| each.trial = false);
        policy
    }

    /// The exclusions on trial that hold for this path at this time: numbers, places and names.
    pub(crate) fn trials(
        &self,
        path: &[u8],
        epoch_millis: u64,
    ) -> impl Iterator<Item = (u32, Option<Place>, Option<&str>)> {
        let on_trial = (0u32..).zip(&self.exclusions).filter(|(_, each)| each.trial);
        let here = on_trial.filter(move |(_, each)| each.holds(path, epoch_millis));
        here.map(|(number, each)| (number, each.place, each.name.as_deref()))
    }

    /// The exclusions that count whose path is that of the request.
    fn here<'p>(&'p self, elsewhere: &'p [bool]) -> impl Iterator<Item = &'p Exclusion> {
        self.of_path(elsewhere).map(|(_, each)| each).filter(|each| !each.trial)
    }

    /// The exclusions whose path is that of the request, with their numbers.
    fn of_path<'p>(&'p self, elsewhere: &'p [bool]) -> impl Iterator<Item = (usize, &'p Exclusion)> {
        let is_here = |(at, _): &(usize, &Exclusion)| !elsewhere.get(*at).copied().unwrap_or(false);
        self.exclusions.iter().enumerate().filter(is_here)
    }

    /// True if `host` is one to which pages may lead.
    pub(crate) fn is_own_host(&self, host: &[u8]) -> bool {
        let host = host.strip_suffix(b".").unwrap_or(host);
        self.hosts.iter().any(|known| match known.strip_prefix('*') {
            // With its dot.
            Some(domain) => host
                .len()
                .checked_sub(domain.len())
                .is_some_and(|at| at > 0 && host[at..].eq_ignore_ascii_case(domain.as_bytes())),
            None => host.eq_ignore_ascii_case(known.as_bytes()),
        })
    }

    /// True if findings of `class` never count.
    pub(crate) fn is_off(&self, class: Class) -> bool {
        self.said(class) == Some(ClassAction::Off)
    }

    fn said(&self, class: Class) -> Option<ClassAction> {
        self.classes.iter().find(|(known, _)| *known == class).map(|(_, action)| *action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is excluded by its kind is so in the value and on the path that are named, and nothing else is.
    #[test]
    fn exclusions_of_kinds() {
        let kind = |path: Option<&str>| Exclusion {
            kind: Some("sqli.union".to_owned()),
            name: Some("q".to_owned()),
            path: path.map(str::to_owned),
            ..Exclusion::default()
        };
        let policy = SemanticPolicy { exclusions: vec![kind(Some("/a/"))], ..Default::default() };
        let excludes = |kind, name: &[u8], path: &[u8]| {
            policy.excludes(Class::Sqli, kind, Place::Query, name, &policy.elsewhere(path, 0))
        };
        assert!(excludes("sqli.union", b"q", b"/a/b"));
        assert!(!excludes("sqli.tautology", b"q", b"/a/b"));
        assert!(!excludes("sqli.union", b"p", b"/a/b"));
        assert!(!excludes("sqli.union", b"q", b"/b"));
        assert_eq!(policy.action(Class::Sqli, Place::Query, b"q", &policy.elsewhere(b"/a/b", 0)), None);
    }

    #[test]
    fn an_exclusion_ends() {
        let until = Some(1000);
        let exclusions = vec![Exclusion { class: Some(Class::Sqli), until, ..Exclusion::default() }];
        let policy = SemanticPolicy { exclusions, ..Default::default() };
        for (now, expected) in [(999, Some(ClassAction::Off)), (1000, None), (1001, None)] {
            let action = policy.action(Class::Sqli, Place::Query, b"q", &policy.elsewhere(b"/", now));
            assert_eq!(action, expected, "{now}");
        }
    }

    #[test]
    fn hosts_of_a_site() {
        let hosts = vec!["shop.example.com".to_owned(), "*.example.org".to_owned()];
        let policy = SemanticPolicy { hosts, ..Default::default() };
        for host in ["shop.example.com", "SHOP.example.com.", "a.example.org", "a.b.example.org"] {
            assert!(policy.is_own_host(host.as_bytes()), "{host}");
        }
        for host in [
            "example.com",
            "shop.example.com.evil.example",
            "example.org",
            "evilexample.org",
            ".example.org",
            "",
        ] {
            assert!(!policy.is_own_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn an_exclusion_stays_on_its_path() {
        let exclusion = |path: &str| Exclusion { path: Some(path.to_owned()), ..Exclusion::default() };
        let policy = SemanticPolicy {
            exclusions: vec![exclusion("/wiki/"), exclusion("/a/*/edit"), exclusion("/p/{id}")],
            ..Default::default()
        };
        for (path, elsewhere) in [
            ("/wiki/Page", [false, true, true]),
            ("/a/b/edit", [true, false, true]),
            ("/a/b/c/edit", [true, false, true]),
            ("/p/7", [true, true, false]),
            ("/p/", [true, true, true]),
            ("/p/7/8", [true, true, true]),
            ("/admin", [true, true, true]),
            ("/wiki/../admin", [true, true, true]),
            ("/wiki/%2e%2E/admin", [true, true, true]),
            ("/wiki/..;/admin", [true, true, true]),
            ("/wiki\\..\\admin", [true, true, true]),
            ("/wiki/..", [true, true, true]),
        ] {
            assert_eq!(policy.elsewhere(path.as_bytes(), 0), elsewhere, "{path}");
            let off = elsewhere.contains(&false);
            let action = policy.action(Class::Sqli, Place::Query, b"q", &elsewhere);
            assert_eq!(action, off.then_some(ClassAction::Off), "{path}");
        }
    }
}
