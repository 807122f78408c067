//! Patterns of paths and names in exclusions.

/// True if an exclusion with this pattern of paths is for `path`: a prefix, or the whole path if there is a
/// `*`, which stands for any text, or something in braces, which stands for one segment, in it, or a `$` at
/// its end, where the path ends, too.
///
/// A path that a server may resolve to another one (dot segments, empty segments, parameters, coded
/// separators) is none that a pattern fits: no client shall carry an exclusion to a path that it is not for.
pub(crate) fn is_for_path(pattern: &str, path: &[u8]) -> bool {
    is_plain(path)
        && match pattern.strip_suffix('$') {
            Some(whole) => template(whole.as_bytes(), path),
            None if pattern.contains(['*', '{']) => template(pattern.as_bytes(), path),
            None => path.starts_with(pattern.as_bytes()),
        }
}

/// False for a path that a server may resolve to another one.
pub(crate) fn is_plain(path: &[u8]) -> bool {
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
pub(crate) fn glob(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
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
}
