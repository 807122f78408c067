//! Patterns that need backtracking: what they match, and what they may cost.

use portcullis_match::{Budget, Exhausted, Pcre, RegexFlags};

fn compile(pattern: &str) -> Pcre {
    Pcre::new(pattern.as_bytes(), RegexFlags::default()).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Whole match and groups, as text.
#[track_caller]
fn check(pattern: &str, hay: &str, expected: Option<&[Option<&str>]>) {
    let pattern = compile(pattern);
    let mut groups = [None; 10];
    let found =
        pattern.search(hay.as_bytes(), 0, &mut Budget::default(), &mut groups).expect("within the budget");
    let texts: Vec<_> = groups.iter().map(|span| span.map(|span| &hay[span.range()])).collect();
    let expected = expected.unwrap_or_default();
    assert_eq!(found, !expected.is_empty(), "{pattern:?} on {hay:?}: {texts:?}");
    assert_eq!(&texts[..expected.len()], expected, "{pattern:?} on {hay:?}");
    assert!(texts[expected.len()..].iter().all(Option::is_none), "{pattern:?} on {hay:?}: {texts:?}");
    assert_eq!(pattern.is_match(hay.as_bytes()), found);
}

#[track_caller]
fn refused(pattern: &str, offset: usize, message: &str) {
    let error = Pcre::new(pattern.as_bytes(), RegexFlags::default()).expect_err(pattern);
    assert!(error.message.contains(message), "{pattern}: {error}");
    assert_eq!(error.offset, offset, "{pattern}: {error}");
}

#[test]
fn lookaround() {
    check("a(?=b)", "acab", Some(&[Some("a")]));
    check("a(?!b)", "abac", Some(&[Some("a")]));
    check("(?=(a+))a*b\\1", "baaabac", Some(&[Some("aba"), Some("a")]));
    check("(?<=a)b", "bab", Some(&[Some("b")]));
    check("(?<!a)b", "ab", None);
    check("(?<=a|bc)d", "bcd", Some(&[Some("d")]));
    check("(?<!^)a", "aa", Some(&[Some("a")]));
    check("(?<=\\d{3})x", "12x123x", Some(&[Some("x")]));
    check("^(?!.*admin).+$", "user", Some(&[Some("user")]));
    check("^(?!.*admin).+$", "xadminy", None);
    check("(?!(a)b)a(\\1)?c", "ac", Some(&[Some("ac")]));
    check("^(?=.*\\d)(?=.*[a-z]).{4,8}$", "ab1c", Some(&[Some("ab1c")]));
    check("(?i)select(?!ed)", "SELECTED SELECT", Some(&[Some("SELECT")]));
}

#[test]
fn references() {
    check("(a|b)\\1", "abba", Some(&[Some("bb"), Some("b")]));
    check("(?<q>['\"]).*?\\k<q>", "x 'a\"b' c", Some(&[Some("'a\"b'"), Some("'")]));
    check("(?P<q>a)(?P=q)", "aa", Some(&[Some("aa"), Some("a")]));
    check("(a)(b)\\g{-1}\\g1\\g{2}", "abbab", Some(&[Some("abbab"), Some("a"), Some("b")]));
    check("(?i)(a)\\1", "aA", Some(&[Some("aA"), Some("a")]));
    check("(a)\\1", "aA", None);
    check("(a)?\\1b", "b", None);
    check("(\\w+) \\1", "the cat cat", Some(&[Some("cat cat"), Some("cat")]));
    check("(?:(a)|b)*\\1", "abba", Some(&[Some("abba"), Some("a")]));
    // A group that comes later has matched nothing yet.
    check("\\1(a)", "aa", None);
    refused("\\2(a)", 0, "no group 2");
    refused("\\k<n>", 0, "name");
    refused("(a)\\g{-2}", 3, "not that many");
}

#[test]
fn groups_that_give_nothing_back() {
    check("(?>a+)ab", "aaab", None);
    check("(?>a+)b", "aaab", Some(&[Some("aaab")]));
    check("(?>a|ab)c", "abc", None);
    check("(?>(a+)|b)*c", "aabac", Some(&[Some("aabac"), Some("a")]));
    check("a++ab", "aaab", None);
    check("(?:ab)*+a", "ababa", Some(&[Some("ababa")]));
    check("^(?:ab|a)*+b", "abab", None);
    check("a{1,2}+a", "aaa", Some(&[Some("aaa")]));
    check("\"[^\"]*+\"", "x\"y\"", Some(&[Some("\"y\"")]));
    // Written possessively, run by automata.
    for linear in ["\"[^\"]*+\"", "\\d++", "\\w++$", "a++(?:b|c)"] {
        assert!(!compile(linear).backtracks(), "{linear}");
    }
    for other in ["a++[ab]", "a*+b*c", "(?:ab)++c", "(a++|b)a", "x(a*+)b"] {
        assert!(compile(other).backtracks(), "{other}");
    }
}

#[test]
fn conditions_and_match_starts() {
    check("(<)?a(?(1)>|!)", "<a>", Some(&[Some("<a>"), Some("<")]));
    check("(<)?a(?(1)>|!)", "<a!", Some(&[Some("a!")]));
    check("(?<n>x)?(?(<n>)y|z)", "xy", Some(&[Some("xy"), Some("x")]));
    check("(?<n>x)?(?(n)y)$", "xz", Some(&[Some("")]));
    check("(?(?=a)ab|cd)", "cdab", Some(&[Some("cd")]));
    check("(?(?!a)cd|ab)", "ab", Some(&[Some("ab")]));
    check("foo\\Kbar", "foobar", Some(&[Some("bar")]));
    check("(foo\\Kbar|f)", "foobar", Some(&[Some("bar"), Some("foobar")]));
    refused("(?(1)a)", 0, "condition");
    refused("(a)(?(1)a|b|c)", 3, "two alternatives");
    refused("(?(R)a)", 0, "condition");
}

#[test]
fn repetition_under_the_machine() {
    check("(?=)(a|ab)(c|bcd)(d*)", "abcd", Some(&[Some("abcd"), Some("a"), Some("bcd"), Some("")]));
    check("(?=)(?:a?)*?b", "aab", Some(&[Some("aab")]));
    check("(?=)(?:a*)*b", "aab", Some(&[Some("aab")]));
    check("(?=)(?:a|(b)){2,3}?c", "abac", Some(&[Some("abac"), Some("b")]));
    check("(?=)(?:ab){2}", "aabab", Some(&[Some("abab")]));
    check("(?=)x{2,3}?", "xxxx", Some(&[Some("xx")]));
    check("(?=)(?U)a+", "aaa", Some(&[Some("a")]));
    check("(?=)\\R\\n", "\r\n", None);
    check("a\\Zb?", "a\n", Some(&[Some("a")]));
    check("(?m)(?=)^$", "a\n", None);
    check("(?=)\\bcat\\b", "a cat!", Some(&[Some("cat")]));
    check("(?=)a||b", "b", Some(&[Some("")]));
}

#[test]
fn what_stays_refused() {
    refused("(?R)", 0, "recursion");
    refused("(a)(?1)", 3, "recursion");
    refused("(?&n)", 0, "subroutine");
    refused("(?P>n)", 0, "subroutine");
    refused("(*ACCEPT)", 0, "verbs");
    refused("(?<=a+)b", 0, "lookbehind");
    refused("(?<=a(?:b|cd))b", 0, "lookbehind");
    refused("\\p{L}", 0, "bytes");
}

#[test]
fn searches_go_on_from_a_place() {
    let check = |pattern: &str, from: usize, expected: Option<usize>| {
        let mut groups = [None; 10];
        let pattern = compile(pattern);
        let found = pattern.search(b"aab aab", from, &mut Budget::default(), &mut groups).unwrap();
        assert_eq!(
            groups[0].map(|span| span.range().start).filter(|_| found),
            expected,
            "{pattern:?} from {from}"
        );
    };
    check("a+b", 1, Some(1));
    check("a+b(?!c)", 3, Some(4));
    check("(?<=a)a", 1, Some(1));
    check("(?<=b)\\W", 3, Some(3));
    check("^a", 4, None);
    check("^a(?=a)", 4, None);
    check("\\baab", 1, Some(4));
}

/// A search that takes a plain backtracker hours is given up after a moment.
#[test]
fn a_search_has_a_budget() {
    let a = vec![b'a'; 50_000];
    for (pattern, hay) in [
        ("(?=)(a+)+$b", a.as_slice()),
        ("^(?:a*)*\\1(x)?$".trim_start_matches('^'), &a),
        ("(?=)(?:a|aa)+$b", &a),
        (
            "(.*)(.*)(.*)(.*)\\1x\\1",
            b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaxxxxxxxxxxxxxxxxxxxxxxxxxxaaa",
        ),
    ] {
        let Ok(pattern) = Pcre::new(pattern.as_bytes(), RegexFlags::default()) else { continue };
        let mut budget = Budget::default();
        let began = std::time::Instant::now();
        let result = pattern.test(hay, &mut budget);
        assert!(began.elapsed().as_secs() < 20, "{pattern:?}");
        assert!(u64::MAX - budget.steps <= Budget::SEARCH_STEPS_MAX);
        assert!(matches!(result, Ok(false) | Err(Exhausted)), "{pattern:?}");
    }
    let nested = compile("^(?=(a+)+$)b|^(\\w+\\s?)*\\3?$(?<=!)(x)?".split('|').next().unwrap());
    assert_eq!(nested.test(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", &mut Budget::default()), Ok(false));
    let hostile = compile("^(?:(a+)+)(?=!)b?");
    let mut budget = Budget { choices_max: 100, ..Budget::default() };
    let hay = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa?";
    assert_eq!(hostile.test(hay.as_bytes(), &mut budget), Err(Exhausted));
    let mut spent = Budget { steps: 10, ..Budget::default() };
    assert_eq!(hostile.test(hay.as_bytes(), &mut spent), Err(Exhausted));
    assert_eq!(spent.steps, 0);
}
