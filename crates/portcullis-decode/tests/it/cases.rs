//! Results of each transformation for given inputs.

use portcullis_decode::{Transformation, UnicodeMap};

/// An expected result equal to the input says that the transformation does not act.
#[track_caller]
fn check(name: &str, cases: &[(&[u8], &[u8])]) {
    let transformation = Transformation::from_name(name).unwrap_or_else(|| panic!("{name} is not known"));
    for (input, expected) in cases {
        let mut out = b"kept ".to_vec();
        let acted = transformation.apply(input, &mut out);
        assert_eq!(acted, input != expected, "{name} of {}", input.escape_ascii());
        let result = if acted { &out[5..] } else { *input };
        assert!(out.starts_with(b"kept ") && (acted || out.len() == 5));
        assert_eq!(
            result.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{name} of {}",
            input.escape_ascii()
        );
    }
}

#[test]
fn names() {
    assert_eq!(Transformation::ALL.len(), 35);
    for &t in Transformation::ALL {
        assert_eq!(Transformation::from_name(t.name()), Some(t));
        assert_eq!(Transformation::from_name(&t.name().to_uppercase()), Some(t));
    }
    let sorted = Transformation::ALL.is_sorted_by_key(|t| t.name().to_lowercase());
    assert!(sorted);
    assert_eq!(Transformation::from_name("normalisePathWin"), Some(Transformation::NormalizePathWin));
    assert_eq!(Transformation::from_name("none"), None);
    assert_eq!(Transformation::from_name(""), None);
}

#[test]
fn base64() {
    check(
        "base64Decode",
        &[
            (b"", b""),
            (b"aGVsbG8=", b"hello"),
            (b"aGVsbG8", b"hello"),
            (b"aGVs bG8=", b"hel"),
            (b"aGVsbG", b"hell"),
            (b"aGVsb", b"hel"),
            (b"a", b""),
            (b"=aGVs", b""),
            (b"////", b"\xff\xff\xff"),
        ],
    );
    check(
        "base64DecodeExt",
        &[
            (b"", b""),
            (b"aGVs bG8=", b"hello"),
            (b"a.G\nV<s>\0bG8", b"hello"),
            (b"aGVs=bG8=", b"hello"),
            (b"aGVsb=", b""),
            (b"aGVsb==", b""),
            (b"aGVsb==bG", b""),
            (b"aGVsbG==x", b"helll"),
            (b"%%", b""),
        ],
    );
    check(
        "base64Encode",
        &[
            (b"", b""),
            (b"f", b"Zg=="),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"foob", b"Zm9vYg=="),
            (b"\xff\x00\xfe", b"/wD+"),
        ],
    );
}

#[test]
fn cmd_line() {
    check(
        "cmdLine",
        &[
            (b"", b""),
            (b"cat /etc", b"cat/etc"),
            (b"cat\t,; /e\"t'c\\/^passwd", b"cat/etc/passwd"),
            (b"WHOAMI  ; ls", b"whoami ls"),
            (b"a ' b", b"a b"),
            (b"echo (x)", b"echo(x)"),
            (b"a/b(c", b"a/b(c"),
            (b"a\0 B", b"a\0 b"),
            (b"\x0b\xc4", b"\x0b\xc4"),
        ],
    );
}

#[test]
fn case_and_white_space() {
    check("lowercase", &[(b"aBZ[@\xc4", b"abz[@\xc4"), (b"abc", b"abc")]);
    check("uppercase", &[(b"aBz{`\xe4", b"ABZ{`\xe4"), (b"ABC", b"ABC")]);
    let long = [b"x".repeat(100), b"Y".to_vec(), b"z".repeat(100)].concat();
    check("lowercase", &[(&long, &long.to_ascii_lowercase())]);
    check(
        "compressWhitespace",
        &[(b" a\t\x0b\xa0b  ", b" a b "), (b"a\tb", b"a b"), (b"a b", b"a b"), (b"\xa0", b" ")],
    );
    check("removeWhitespace", &[(b" a\t\n\x0b\x0c\r\xa0b ", b"ab"), (b"ab", b"ab"), (b" ", b"")]);
    check("trim", &[(b"\t a b\r\n", b"a b"), (b"a b", b"a b"), (b"  ", b""), (b"\xa0a\0", b"\xa0a\0")]);
    check("trimLeft", &[(b"\x0b a ", b"a "), (b"a ", b"a ")]);
    check("trimRight", &[(b" a \x0c", b" a"), (b" a", b" a")]);
    check("removeNulls", &[(b"\0a\0\0b", b"ab"), (b"ab", b"ab")]);
    check("replaceNulls", &[(b"\0a\0\0b", b" a  b"), (b"ab", b"ab")]);
}

#[test]
fn comments() {
    check(
        "removeComments",
        &[
            (b"a/*b*/c", b"ac"),
            (b"a/*b", b"a "),
            (b"a/*b*/", b"a\0"),
            (b"a/*b*//*c*/d", b"a/*c*/d"),
            (b"a<!--b-->c", b"ac"),
            (b"a<!--b*/c", b"ac"),
            (b"a/*b-->c", b"ac"),
            (b"a--b", b"a"),
            (b"a#b", b"a"),
            (b"a<!-b", b"a<!-b"),
            (b"a*/b", b"a*/b"),
            (b"x=1/2-3", b"x=1/2-3"),
            (b"1/*x*/+<!--", b"1+ "),
        ],
    );
    check(
        "removeCommentsChar",
        &[
            (b"a/*b*/c", b"abc"),
            (b"a<!--b-->c", b"abc"),
            (b"a--b#c", b"abc"),
            (b"--->", b"->"),
            (b"<!-->", b">"),
            (b"*/*", b"*"),
            (b"/*/", b"/"),
            (b"a-b/c<!-d", b"a-b/c<!-d"),
        ],
    );
    check(
        "replaceComments",
        &[
            (b"a/*b*/c", b"a c"),
            (b"a/*b", b"a "),
            (b"a/*/b*/c", b"a c"),
            (b"/**//**/", b"  "),
            (b"a*/b", b"a*/b"),
            (b"2*3", b"2*3"),
        ],
    );
}

#[test]
fn css() {
    check(
        "cssDecode",
        &[
            (br"\61", b"a"),
            (br"\061 b", b"ab"),
            (br"\000061b", b"ab"),
            (br"ja\76 as", b"javas"),
            (br"\6z", b"\x06z"),
            (br"\ff1c", b"<"),
            (br"\0FF1c", b"<"),
            (br"\00ff1c", b"<"),
            (br"\1ff1c", b"\x1c"),
            (br"\ffff", b"\xff"),
            (br"\ff00", b"\x00"),
            (b"a\\\nb\\-\\", b"ab-"),
            (b"\\41\x0b\x0b", b"A\x0b"),
            (b"none", b"none"),
        ],
    );
}

#[test]
fn js() {
    check(
        "jsDecode",
        &[
            (br"\u0061\x62\143", b"abc"),
            (br"\uff1c\uFF5E\uff5f", b"<~\x5f"),
            (br"\0\08\12\377\400", b"\0\x008\n\xff\x200"),
            (br"\a\b\f\n\r\t\v\?\'\\", b"\x07\x08\x0c\n\r\t\x0b?'\\"),
            (br"\u00\xg1\z", b"u00xg1z"),
            (br"\U0061", b"U0061"),
            (br"end\", br"end\"),
            (br"\u0061\", br"a\"),
        ],
    );
    check(
        "escapeSeqDecode",
        &[
            (br"\a\b\f\n\r\t\v\?\'\\", b"\x07\x08\x0c\n\r\t\x0b?'\\"),
            (br#"\""#, b"\""),
            (br"\x41\X42\xg\x4", b"ABxgx4"),
            (br"\101\0\08\777", b"A\0\x008\xff"),
            (br"\u0061\8", b"u00618"),
            (br"end\", br"end\"),
        ],
    );
}

#[test]
fn hex() {
    check(
        "hexDecode",
        &[(b"414a6B", b"AJk"), (b"4", b""), (b"414", b"A"), (b"zz", b"\x53"), (b"", b""), (b"\0\0", b"\xd0")],
    );
    check("hexEncode", &[(b"", b""), (b"\x00a\xff", b"0061ff")]);
    check(
        "sqlHexDecode",
        &[
            (b"0x414243", b"ABC"),
            (b"a=0X4a4b4 c", b"a=JK4 c"),
            (b"0x41 0x420x43", b"A BC"),
            (b"0x4", b"0x4"),
            (b"x41", b"x41"),
            (b"00x41", b"0A"),
            (b"0x4100x42", b"A\x00x42"),
            (b"\x000x00b", b"\0\0b"),
            (b"0x0x41", b"0xA"),
        ],
    );
}

#[test]
fn html() {
    check(
        "htmlEntityDecode",
        &[
            (b"&lt;&gt;&amp;&quot;&nbsp;", b"<>&\"\xa0"),
            (b"&LT&Gt &aMp=", b"<> &="),
            (b"&ltx;&l;&;&", b"&ltx;&l;&;&"),
            (b"&#60;&#x3c;&#X3C&#0060", b"<<<<"),
            (b"&#316;&#x13c", b"<<"),
            (b"&#;&#x;&#xg;&#", b"&#;&#x;&#xg;&#"),
            (b"&#&lt;&#x&gt;", b"&#<&#x>"),
            (b"&amp;lt;", b"&lt;"),
            (b"&#99999999999999999999999;", b"\xff"),
            (b"&eacute;", b"&eacute;"),
        ],
    );
}

#[test]
fn length_and_digests() {
    check("length", &[(b"", b"0"), (b"0123456789", b"10")]);
    check("md5", &[(b"", b"\xd4\x1d\x8c\xd9\x8f\x00\xb2\x04\xe9\x80\x09\x98\xec\xf8\x42\x7e")]);
    check(
        "sha1",
        &[(b"abc", b"\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d")],
    );
}

#[test]
fn paths() {
    let both: &[(&[u8], &[u8])] = &[
        (b"", b""),
        (b"/", b"/"),
        (b"a/b", b"a/b"),
        (b"/a//b///c", b"/a/b/c"),
        (b"/a/./b/.", b"/a/b"),
        (b"./a", b"a"),
        (b".", b""),
        (b"..", b".."),
        (b"/..", b""),
        (b"/../../a", b"/a"),
        (b"../../a", b"../../a"),
        (b"a/..", b""),
        (b"a/../b", b"b"),
        (b"a/b/../../../c", b"../c"),
        (b"/a/b/../c/", b"/a/c/"),
        (b"/a/b/..", b"/a"),
        (b"/ab../c", b"/c"),
        (b"/a.b/c.", b"/a.b/c."),
    ];
    check("normalizePath", both);
    check("normalizePathWin", both);
    check("normalisePath", &[(br"\a\..\b", br"\a\..\b")]);
    check(
        "normalizePathWin",
        &[
            (br"\a\..\b", b"/b"),
            (br"c:\x\.\y", b"c:/x/y"),
            (br"a/\/\b", b"a/b"),
            (br"..\..\etc", b"../../etc"),
            (br"\\\\x", b"/x"),
        ],
    );
}

#[test]
fn parity() {
    check("parityEven7bit", &[(b"ab\xe1", b"\xe1\xe2\x61"), (b"\x00\x03", b"\x00\x03")]);
    check("parityOdd7bit", &[(b"a\x00\xe1", b"a\x80\xe1"), (b"ab", b"ab")]);
    check("parityZero7bit", &[(b"\xe1b", b"ab"), (b"ab", b"ab")]);
}

#[test]
fn url() {
    check(
        "urlDecode",
        &[
            (b"a%20b+c", b"a b c"),
            (b"%4a%4A%00%ff", b"JJ\0\xff"),
            (b"%%41%4%", b"%A%4%"),
            (b"%u0041", b"%u0041"),
            (b"%2", b"%2"),
        ],
    );
    check(
        "urlDecodeUni",
        &[
            (b"a%20b+c", b"a b c"),
            (b"%u0041%U0142%uff1c%uFF5E%uff00", b"AB<~\0"),
            (b"%u004%41", b"%u004A"),
            (b"%u00zz+", b"%u00zz "),
            (b"%u", b"%u"),
            (b"%%u0041", b"%A"),
            (b"%u%41", b"%uA"),
        ],
    );
    check("urlEncode", &[(b"a B*9", b"a+B*9"), (b"/\xff\0~", b"%2f%ff%00%7e"), (b"aZ9*", b"aZ9*")]);

    let mut out = Vec::new();
    assert_eq!(portcullis_decode::url::decode_form(b"a+%41%4%zz%", &mut out), 3);
    assert_eq!(out, b"a A%4%zz%");
}

#[test]
fn url_decode_uni_with_a_map() {
    let map = UnicodeMap::parse("20127 (US-ASCII)\n2032:27 ff1c:28 0141:4c", 20127).unwrap();
    let mut out = Vec::new();
    let input = b"%u2032%uff1c%uff1e%u0141%u0042%u3002";
    assert!(Transformation::UrlDecodeUni.apply_with(input, Some(&map), &mut out));
    assert_eq!(out, b"'(>LB.");
    out.clear();
    assert!(Transformation::UrlDecode.apply_with(b"+", Some(&map), &mut out));
    assert_eq!(out, b" ");
}

#[test]
fn utf8() {
    check(
        "utf8toUnicode",
        &[
            ("aé€😀".as_bytes(), b"a%u00e9%u20ac%u1f600"),
            (b"plain", b"plain"),
            (b"a\0b", b"ab"),
            (b"\x80\xbf\xff", b"\x80\xbf\xff"),
            (b"\xc0\xaf", b"%u002f\xc0"),
            (b"\xe0\x80\xaf", b"%u002f\xe0"),
            (b"\xf0\x80\x80\xaf", b"%u002f\xf0"),
            (b"\xed\xa0\x80", b"%ud800\xed"),
            (b"\xc3(", b"("),
            (b"x\xe2\x82", b"x\x82"),
            (b"\xf5a", b"\xf5a"),
            (b"\xf5\x80\x80\x80", b"\xf5%u140000"),
        ],
    );
}
