//! Semantics of each PCRE construct: the matches, the captures, or the reason of its refusal.

use portcullis_match::{Regex, RegexFlags};

/// Compares verdict and text of the match; an expected text of none means no match.
#[track_caller]
fn check(pattern: &str, cases: &[(&[u8], Option<&[u8]>)]) {
    check_with(pattern, RegexFlags::default(), cases);
}

#[track_caller]
fn check_with(pattern: &str, flags: RegexFlags, cases: &[(&[u8], Option<&[u8]>)]) {
    let regex = Regex::new(pattern.as_bytes(), flags).unwrap_or_else(|e| panic!("{pattern}: {e}"));
    let mut cache = regex.cache();
    for (hay, expected) in cases {
        let mut groups = [None; 10];
        let found = regex.captures(hay, &mut groups);
        let text = groups[0].map(|span| span.of(hay));
        assert_eq!(text, *expected, "{pattern} on {}", hay.escape_ascii());
        assert_eq!(found, expected.is_some());
        assert_eq!(regex.is_match(hay), found, "{pattern} on {}", hay.escape_ascii());
        assert_eq!(regex.is_match_with(&mut cache, hay), found);
        let mut again = [None; 10];
        assert_eq!(regex.captures_with(&mut cache, hay, &mut again), found);
        assert_eq!(again, groups);
    }
}

#[track_caller]
fn groups(pattern: &str, hay: &str, expected: &[Option<&str>]) {
    let regex =
        Regex::new(pattern.as_bytes(), RegexFlags::default()).unwrap_or_else(|e| panic!("{pattern}: {e}"));
    let mut found = [None; 10];
    assert!(regex.captures(hay.as_bytes(), &mut found), "{pattern} does not match {hay}");
    let texts: Vec<_> = found.iter().map(|s| s.map(|s| &hay[s.range()])).collect();
    assert_eq!(&texts[..expected.len()], expected, "{pattern} on {hay}");
    assert!(texts[expected.len()..].iter().all(Option::is_none), "{pattern} on {hay}");
}

#[track_caller]
fn refused(pattern: &str, offset: usize, message: &str) {
    match Regex::new(pattern.as_bytes(), RegexFlags::default()) {
        Ok(_) => panic!("{pattern} compiles"),
        Err(error) => {
            assert!(error.message.contains(message), "{pattern}: {error}");
            assert_eq!(error.offset, offset, "{pattern}: {error}");
        }
    }
}

#[test]
fn dot_and_anchors() {
    check("a.c", &[(b"a\nc", Some(b"a\nc")), (b"a\xffc", Some(b"a\xffc")), (b"ac", None)]);
    check("(?-s)a.c", &[(b"a\nc", None), (b"a\rc", Some(b"a\rc"))]);
    check(r"a\Nc", &[(b"a\nc", None), (b"a\x00c", Some(b"a\x00c"))]);
    check(r"a\Cc", &[(b"a\nc", Some(b"a\nc"))]);
    check("^a$", &[(b"a", Some(b"a")), (b"a\n", None), (b"\na", None)]);
    check(r"\Aa\z", &[(b"a", Some(b"a")), (b"a\n", None), (b"\na", None)]);
    check(r"\Ga", &[(b"a", Some(b"a")), (b"ba", None)]);
    check(r"a\Z", &[(b"a", Some(b"a")), (b"a\n", Some(b"a\n")), (b"a\n\n", None), (b"a\nb", None)]);
    check(r"(?:a|b\Z)$", &[(b"b\n", Some(b"b\n")), (b"b", Some(b"b"))]);
    check("(?m)^a$", &[(b"b\na\nc", Some(b"a")), (b"ba", None)]);
    check("$", &[(b"", Some(b"")), (b"a", Some(b""))]);
    check(r"\bcat\b", &[(b"a cat!", Some(b"cat")), (b"cats", None), (b"\xffcat\xff", Some(b"cat"))]);
    check(r"a\Bb", &[(b"ab", Some(b"ab"))]);
    check("[[:<:]]a[[:>:]]", &[(b"a", Some(b"a")), (b"ab", None)]);
}

#[test]
fn flags() {
    let fold = RegexFlags { case_insensitive: true, ..RegexFlags::default() };
    check_with("selEct[k-m]", fold, &[(b"SELECTL", Some(b"SELECTL"))]);
    check_with("[^a]", fold, &[(b"A", None), (b"b", Some(b"b"))]);
    check_with(r"\xe9", fold, &[(b"\xc9", None), (b"\xe9", Some(b"\xe9"))]);
    let lines = RegexFlags { multi_line: true, dot_all: false, ..RegexFlags::default() };
    check_with("^b.$", lines, &[(b"a\nbc\n", Some(b"bc")), (b"b\n", None)]);

    check("a(?i)b|c", &[(b"aB", Some(b"aB")), (b"C", Some(b"C")), (b"Ab", None)]);
    check("(?:a(?i)b)c", &[(b"aBc", Some(b"aBc")), (b"aBC", None)]);
    check("(?i:a)b", &[(b"Ab", Some(b"Ab")), (b"AB", None)]);
    check("(?i)a(?-i)b", &[(b"Ab", Some(b"Ab")), (b"AB", None)]);
    check("(?)a", &[(b"a", Some(b"a"))]);
    check("(?x) a b # comment\n +c", &[(b"abbc", Some(b"abbc"))]);
    check(r"(?x)a\ b[ c]", &[(b"a b ", Some(b"a b "))]);
    check("(?xx)[a b]", &[(b" ", None), (b"b", Some(b"b"))]);
    check("(?U)a+", &[(b"aaa", Some(b"a"))]);
    check("(?U)a+?", &[(b"aaa", Some(b"aaa"))]);
    check("(?^)A.", &[(b"a.", None), (b"A\n", None)]);
}

#[test]
fn bytes_and_escapes() {
    check(r"\x41\x{42}\103\o{104}\x{00045}", &[(b"ABCDE", Some(b"ABCDE"))]);
    check(r"\xbc|\x{bd}", &[(b"\xbd", Some(b"\xbd")), ("½".as_bytes(), Some(b"\xbd"))]);
    check(r"\x4g", &[(b"\x04g", Some(b"\x04g"))]);
    check(r"a\x", &[(b"a\0", Some(b"a\0"))]);
    check(r"\0\00\011", &[(b"\0\0\t", Some(b"\0\0\t"))]);
    check(r"\a\e\f\n\r\t\cA\c[", &[(b"\x07\x1b\x0c\n\r\t\x01\x1b", Some(b"\x07\x1b\x0c\n\r\t\x01\x1b"))]);
    check(r"\.\/\-\_\@\é", &[("./-_@é".as_bytes(), Some("./-_@é".as_bytes()))]);
    check(r"\Qa.b*\E+c", &[(b"a.b**c", Some(b"a.b**c"))]);
    check(r"\Qa.b", &[(b"a.b", Some(b"a.b")), (b"axb", None)]);
    check(r"a\Eb", &[(b"ab", Some(b"ab"))]);
    check(r"a\Q\E{2}b", &[(b"aab", Some(b"aab"))]);
    check("é", &[("é".as_bytes(), Some("é".as_bytes()))]);
    check(r"\81", &[(b"81", Some(b"81"))]);
    check(r"\12", &[(b"\n", Some(b"\n"))]);
}

#[test]
fn classes() {
    check(r"\d\D\s\S\w\W", &[(b"1a\x0bx_-", Some(b"1a\x0bx_-")), (b"1a\x85x_-", None)]);
    check(r"\h\H\v\V", &[(b"\xa0\n\x85 ", Some(b"\xa0\n\x85 "))]);
    check(r"\R", &[(b"\r\n", Some(b"\r\n")), (b"\x85", Some(b"\x85")), (b"a", None)]);
    check("[]a]+", &[(b"]a]", Some(b"]a]"))]);
    check("[^]a]+", &[(b"]b", Some(b"b"))]);
    check("[a&&b]+", &[(b"a&b", Some(b"a&b"))]);
    check("[a-z--b~~c]+", &[(b"-~", Some(b"-~")), (b"|", None)]);
    check("[[a]+", &[(b"[a[", Some(b"[a["))]);
    check("[a[b]c]", &[(b"bc]", Some(b"bc]")), (b"b", None)]);
    check(r"[\w-.]+", &[(b"a-.", Some(b"a-.")), (b",", None)]);
    check("[a-]+[-a]+", &[(b"--", Some(b"--"))]);
    check(r"[\x80-\xff]", &[(b"\x80", Some(b"\x80")), (b"\x7f", None)]);
    check(r"[\b\]\\]+", &[(b"\x08]\\", Some(b"\x08]\\"))]);
    check(r"[\Qa-z\E]+", &[(b"b", None), (b"-", Some(b"-"))]);
    check(r"[\Qa\E-c]", &[(b"b", Some(b"b"))]);
    check(r"[\D]", &[(b"1", None), (b"a", Some(b"a"))]);
    check("[[:alpha:]_]+", &[(b"aZ_1", Some(b"aZ_"))]);
    check("[[:^digit:]]", &[(b"1", None), (b"a", Some(b"a"))]);
    check("[[:punct:]]+", &[(b"!/:@[`{~", Some(b"!/:@[`{~"))]);
    check("[[:x]", &[(b":", Some(b":"))]);
    check("[:alpha:]", &[(b":", Some(b":")), (b"b", None)]);
    check(r"[^\x00-\xff]", &[(b"a", None)]);
    check(r"[\1\08]", &[(b"\x01", Some(b"\x01")), (b"8", Some(b"8"))]);
}

#[test]
fn quantifiers() {
    check("a{2}", &[(b"aaa", Some(b"aa"))]);
    check("a{2,}", &[(b"aaa", Some(b"aaa")), (b"a", None)]);
    check("a{1,2}?", &[(b"aaa", Some(b"a"))]);
    check("a{,2}", &[(b"a{,2}", Some(b"a{,2}")), (b"aa", None)]);
    check("a{x}{", &[(b"a{x}{", Some(b"a{x}{"))]);
    check("{", &[(b"{", Some(b"{"))]);
    check("{a", &[(b"{a", Some(b"{a"))]);
    check("a{0}b", &[(b"ab", Some(b"b"))]);
    check("a(?#why)*b", &[(b"aab", Some(b"aab"))]);
    check("(a|ab)(c|bcd)(d*)", &[(b"abcd", Some(b"abcd"))]);
    check("", &[(b"", Some(b"")), (b"x", Some(b""))]);
    check("a||b", &[(b"b", Some(b""))]);
}

/// What PCRE2 takes for an item, and what not.
#[test]
fn what_a_quantifier_may_follow() {
    let nothing = [
        "x**y",
        "x{2}*y",
        "x*{2}y",
        "x{2}{3}y",
        "x+{2}y",
        "x?*y",
        "x???y",
        "x+++y",
        "x{2}?{3}y",
        "x{1,2}{1}y",
        r"\Qab\E**",
        "(?x)x* *y",
        "(?x)x{2} {3}y",
        "x*(?#c)*y",
        "^*x",
        "$*",
        r"\b*x",
        r"\b{2}x",
        r"\B*x",
        r"\A*x",
        r"\z*",
        r"\Z*x",
        r"\E*x",
        r"\Q\E*x",
        "(?i)*x",
        "a|*b",
        "(?#c)*a",
    ];
    for pattern in nothing {
        let error = Regex::new(pattern.as_bytes(), RegexFlags::default()).unwrap_err();
        assert!(error.to_string().contains("nothing to repeat"), "{pattern}: {error}");
    }
    check(r"x\Q\E*y", &[(b"xxy", Some(b"xxy"))]);
    check("x(?#c)*y", &[(b"xxy", Some(b"xxy"))]);
    check("[[:<:]]*x", &[(b"x", Some(b"x"))]);
    check("()*x", &[(b"x", Some(b"x"))]);
    let looks = portcullis_match::Pcre::new(b"(?=x){2}(?<=a)*(?!y)+x", RegexFlags::default());
    assert!(looks.is_ok(), "{looks:?}");
}

#[test]
fn captures() {
    groups("(a)(b)?(c)", "ac", &[Some("ac"), Some("a"), None, Some("c")]);
    groups("(?<n>a)(?P<m>b)(?'o'c)", "abc", &[Some("abc"), Some("a"), Some("b"), Some("c")]);
    groups("(?|(a)x|(b)y)(z)", "byz", &[Some("byz"), Some("b"), Some("z")]);
    groups("(?|a|(b)(c))(d)", "ad", &[Some("ad"), None, None, Some("d")]);
    groups("(?n)(a)(?<x>b)", "ab", &[Some("ab"), Some("b")]);
    groups("((a)|b)+", "ab", &[Some("ab"), Some("b"), Some("a")]);
    groups("(a){0}(b)", "b", &[Some("b"), None, Some("b")]);
    groups(r"^[a-f]*([0-9])[a-f]*([0-9])", "ab1c2", &[Some("ab1c2"), Some("1"), Some("2")]);
    let eleven = "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)";
    let regex = Regex::new(eleven.as_bytes(), RegexFlags::default()).unwrap();
    assert_eq!(regex.group_count(), 9);
    let mut found = [None; 10];
    assert!(regex.captures(b"abcdefghijk", &mut found));
    assert_eq!(found[0].unwrap().range(), 0..11);
    assert_eq!(found[9].unwrap().range(), 8..9);
    assert!(!regex.captures(b"", &mut found));
    assert_eq!(found, [None; 10]);
}

#[test]
fn what_cannot_be_linear_is_refused() {
    refused("a(?=b)", 1, "lookahead");
    refused("(?!b)", 0, "lookahead");
    refused("x(?<=b)", 1, "lookbehind");
    refused("(?<!b)", 0, "lookbehind");
    refused("(?>a)", 0, "atomic");
    refused("ab++", 2, "possessive");
    refused("ab*+c", 2, "possessive");
    refused("a?+", 1, "possessive");
    refused("a{2,3}+", 1, "possessive");
    refused(r"(a)\1", 3, "back reference");
    refused(r"(a)\g{1}", 3, "back reference");
    refused(r"(?<n>a)\k<n>", 7, "back reference");
    refused("(?<n>a)(?P=n)", 7, "back reference");
    refused(r"(a)\g<1>", 3, "subroutine");
    refused("(?P>n)", 0, "subroutine");
    refused("(?&n)", 0, "subroutine");
    refused("(?R)", 0, "recursion");
    refused("(?1)", 0, "recursion");
    refused("(a)(?-1)", 3, "recursion");
    refused("(a)(?(1)a|b)", 3, "conditional");
    refused("(*UTF8)a", 0, "verbs");
    refused("(?C1)", 0, "callouts");
    refused(r"a\Kb", 1, r"\K");
    refused(r"\X", 0, "bytes");
    refused(r"\p{L}", 0, "bytes");
    refused(r"[a\pL]", 2, "bytes");
}

#[test]
fn mistakes_are_refused_where_they_are() {
    refused("(a", 0, "not closed");
    refused("a(b(c)", 1, "not closed");
    refused("a)", 1, "closes no group");
    refused("x[a", 1, "not closed");
    refused("[]", 0, "not closed");
    refused(r"[\Qa]", 0, "not closed");
    refused("(?i", 0, "not closed");
    refused("a(?#b", 1, "not closed");
    refused("*a", 0, "nothing to repeat");
    refused("a|+", 2, "nothing to repeat");
    refused("(?:)(?i)*", 8, "nothing to repeat");
    refused("{1}", 0, "nothing to repeat");
    refused("a{3,2}", 1, "out of order");
    refused("a{70000}", 1, "65535");
    refused("[z-a]", 1, "below");
    refused("[[:nope:]]", 1, "POSIX");
    refused("[[.a.]]", 1, "collating");
    refused("a\\", 1, "backslash");
    refused("[\\", 1, "backslash");
    refused(r"\x{100}", 0, "255");
    refused(r"\x{}", 0, "digits");
    refused(r"\777", 0, "255");
    refused(r"\o17", 0, "braces");
    refused(r"\c", 0, "printable");
    refused(r"a\y", 1, "known escape");
    refused(r"[\R]", 1, "inside a class");
    refused("(?<1a>b)", 0, "name");
    refused("(?<>b)", 0, "name");
    refused("(?z)", 2, "unknown");
    refused(r"a\Zb", 1, r"\Z");
    refused(r"(a\Z)\n", 2, r"\Z");
    refused(r"(?:a\Z)+", 7, "repeated");
    refused(&"(".repeat(300), 250, "nested");
    refused("((a{1000}){1000}){1000}", 0, "compiles to more than");
}
