//! The policy for findings: actions for single classes of attacks, and exclusions.

use portcullis_types::{Class, Place};

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
}

impl Exclusion {
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
    ///
    /// A path that a server may resolve to another one (dot segments, empty segments, parameters, coded
    /// separators) is none that a path pattern fits: no client shall carry an exclusion to a path that it is
    /// not for.
    pub(crate) fn elsewhere(&self, path: &[u8], epoch_millis: u64) -> Vec<bool> {
        if self.exclusions.iter().all(|exclusion| exclusion.path.is_none() && exclusion.until.is_none()) {
            return Vec::new();
        }
        let is_plain = is_plain(path);
        let fits = |pattern: &str| match pattern.contains(['*', '{']) {
            true => is_plain && template(pattern.as_bytes(), path),
            false => is_plain && path.starts_with(pattern.as_bytes()),
        };
        self.exclusions
            .iter()
            .map(|each| {
                each.path.as_deref().is_some_and(|pattern| !fits(pattern))
                    || each.until.is_some_and(|until| until <= epoch_millis)
            })
            .collect()
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

    /// The exclusions whose path is that of the request.
    fn here<'p>(&'p self, elsewhere: &'p [bool]) -> impl Iterator<Item = &'p Exclusion> {
        let is_here = |(at, _): &(usize, &Exclusion)| !elsewhere.get(*at).copied().unwrap_or(false);
        self.exclusions.iter().enumerate().filter(is_here).map(|(_, each)| each)
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

fn is_plain(path: &[u8]) -> bool {
    let has = |word: &[u8]| path.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let odd: [&[u8]; 9] = [b"/./", b"/../", b"//", b"\\", b";", b"%2e", b"%2f", b"%5c", b"%25"];
    !odd.into_iter().any(has) && !path.ends_with(b"/..") && !path.ends_with(b"/.")
}

/// True if a pattern of paths is for all of `path`: `*` stands for any text, `{name}` for one segment or part
/// of a segment, which is not empty.
///
/// Takes no memory, and at most the product of both lengths in steps. It is enough to try again at the last
/// braces, since what they leave within the segment those before could not leave better, and then at the last
/// star.
fn template(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at, mut rest) = (0, pattern);
    // The pattern behind the last star or braces, and up to where they reach.
    let mut star: Option<(&[u8], usize)> = None;
    let mut braces: Option<(&[u8], usize)> = None;
    loop {
        let close = if rest.first() == Some(&b'{') { rest.iter().position(|&b| b == b'}') } else { None };
        match (rest.first(), close) {
            (Some(b'*'), _) => {
                rest = &rest[1..];
                (star, braces) = (Some((rest, at)), None);
                continue;
            }
            (Some(_), Some(close)) => {
                if path.get(at).is_some_and(|&letter| letter != b'/') {
                    rest = &rest[close + 1..];
                    at += 1;
                    braces = Some((rest, at));
                    continue;
                }
            }
            (Some(letter), None) => {
                if path.get(at) == Some(letter) {
                    (at, rest) = (at + 1, &rest[1..]);
                    continue;
                }
            }
            (None, _) => {
                if at == path.len() {
                    return true;
                }
            }
        }
        // The braces take one letter more of their segment, or the star one more of the path.
        match (&mut braces, &mut star) {
            (Some((behind, reach)), _) if path.get(*reach).is_some_and(|&letter| letter != b'/') => {
                *reach += 1;
                (at, rest) = (*reach, *behind);
            }
            (_, Some((behind, reach))) if *reach < path.len() => {
                *reach += 1;
                (at, rest) = (*reach, *behind);
                braces = None;
            }
            _ => return false,
        }
    }
}

/// True if `pattern`, in which `*` stands for any text, is for all of `text`.
fn glob(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let same = |a: &[u8], b: &[u8]| if ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
    let mut parts = pattern.split(|&b| b == b'*');
    let first = parts.next().unwrap_or_default();
    let Some((head, mut rest)) = text.split_at_checked(first.len()) else { return false };
    if !same(first, head) {
        return false;
    }
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.len() >= part.len() && same(part, &rest[rest.len() - part.len()..]);
        }
        if part.is_empty() {
            continue;
        }
        // The first place that fits leaves the most for the parts behind it.
        match rest.windows(part.len()).position(|window| same(part, window)) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("q", "q", true),
            ("q", "qq", false),
            ("q*", "query", true),
            ("*ry", "query", true),
            ("*", "", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*ba", "aba", false),
            ("*.html", "json.body.html", true),
            ("/a/*/c", "/a/b/c", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes(), false), fits, "{pattern} {text}");
        }
        assert!(glob(b"x-*", b"X-Forwarded-Host", true));
        assert!(!glob(b"x-*", b"X-Forwarded-Host", false));
    }

    #[test]
    fn templates_of_paths() {
        for (pattern, path, fits) in [
            ("/posts/{id}", "/posts/7", true),
            ("/posts/{id}", "/posts/7/edit", false),
            ("/posts/{id}", "/posts/", false),
            ("/posts/{id}/edit", "/posts/7/edit", true),
            ("/{a}/{b}", "/x/y", true),
            ("/{a}/{b}", "/x", false),
            ("/f-{id}.html", "/f-12.html", true),
            ("/f-{id}.html", "/f-.html", false),
            ("/{a}/*", "/x/y/z", true),
            ("/{a}/*", "//y", false),
            ("/*/{id}", "/a/b/c", true),
            ("/{open", "/{open", true),
            ("/{open", "/x", false),
            ("/a*a", "/aa", true),
            ("/a*a", "/a", false),
        ] {
            assert_eq!(template(pattern.as_bytes(), path.as_bytes()), fits, "{pattern} {path}");
        }
    }

    /// The same by all places up to which the pattern fits, letter by letter.
    fn plainly(pattern: &[u8], path: &[u8]) -> bool {
        // The places in `path` up to which the pattern fits so far.
        let mut places = vec![false; path.len() + 1];
        places[0] = true;
        let mut rest = pattern;
        while let Some(sign) = rest.first() {
            let close = rest.iter().position(|&b| b == b'}').filter(|_| *sign == b'{');
            let mut next = vec![false; path.len() + 1];
            match (*sign, close) {
                (b'*', _) => {
                    let first = places.iter().position(|fits| *fits).unwrap_or(next.len());
                    next[first..].fill(true);
                }
                (b'{', Some(_)) => {
                    for at in 0..path.len() {
                        next[at + 1] = path[at] != b'/' && (places[at] || next[at]);
                    }
                }
                (letter, _) => {
                    for at in 0..path.len() {
                        next[at + 1] = places[at] && path[at] == letter;
                    }
                }
            }
            places = next;
            rest = &rest[close.map_or(1, |close| close + 1)..];
        }
        places[path.len()]
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]
        #[test]
        fn templates_fit_as_they_plainly_do(pattern in "(/|a|b|\\*|\\{x\\}|\\{){0,9}", path in "[/ab{]{0,10}") {
            let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
            proptest::prop_assert_eq!(template(pattern, path), plainly(pattern, path));
        }
    }

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
