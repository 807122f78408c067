//! File name patterns: `*`, `?` and `[...]`, as in `Include rules/*.conf`.

/// True if `pattern` has a byte that makes it more than a name.
pub fn is_pattern(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// True if `name` (one part of a path) fits `pattern`. A leading dot is only matched by a dot. Time is at
/// most the product of both lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The position to return to when a later part does not fit: the last star, and the first character it
    // does not take.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => class(&pattern, p, name[n]),
            Some(&literal) if literal == name[n] => Some(p + 1),
            _ => None,
        };
        match (step, retry) {
            (Some(next), _) => (p, n) = (next, n + 1),
            (None, Some((star, taken))) => {
                retry = Some((star, taken + 1));
                (p, n) = (star, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// If the class that starts at `at` has `c`, the index after it. An unclosed bracket is a literal one.
fn class(pattern: &[char], at: usize, c: char) -> Option<usize> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let first = at + 1 + usize::from(negated);
    let Some(end) = (first + 1..pattern.len()).find(|&i| pattern[i] == ']') else {
        return (c == '[').then_some(at + 1);
    };
    let mut found = false;
    let mut i = first;
    while i < end {
        if i + 2 < end && pattern[i + 1] == '-' {
            found |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= pattern[i] == c;
            i += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".hidden.conf", false),
            (".*", ".hidden", true),
            ("*.conf", "a.conf.bak", false),
            ("REQUEST-9[0-4]?-*.conf", "REQUEST-932-APPLICATION-ATTACK-RCE.conf", true),
            ("REQUEST-9[!0-4]?-*.conf", "REQUEST-932-APPLICATION-ATTACK-RCE.conf", false),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXbYbd", false),
            ("[", "[", true),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(2000).replace("aaaa", "aaab").replace('a', "c")));
    }
}
