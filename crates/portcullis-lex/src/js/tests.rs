use super::*;

#[track_caller]
fn check(text: &str, want: &str) {
    let mut have = String::new();
    for token in Lexer::new(text.as_bytes(), 0) {
        let name = match token.kind {
            TokenKind::Name => "w",
            TokenKind::Number => "n",
            TokenKind::String { closed: true, .. } => "s",
            TokenKind::String { closed: false, .. } => "s~",
            TokenKind::Template { .. } => "t",
            TokenKind::Regex => "r",
            TokenKind::Comment { closed: true, .. } => "c",
            TokenKind::Comment { closed: false, .. } => "c~",
            TokenKind::Assign => "=",
            TokenKind::Binary => "b",
            TokenKind::Sign => "+",
            TokenKind::Prefix => "p",
            TokenKind::Step => "++",
            TokenKind::Other => "?",
            _ => "",
        };
        let bytes = String::from_utf8_lossy(token.span.of(text.as_bytes())).into_owned();
        match name {
            "" => have.push_str(&format!("{bytes} ")),
            _ => have.push_str(&format!("{name}<{bytes}> ")),
        }
    }
    assert_eq!(have.trim_end(), want, "{text}");
}

#[test]
fn strings_and_templates() {
    check("'a\\'b' \"c", "s<'a\\'b'> s~<\"c>");
    check("'a\nb'", "s~<'a> w<b> s~<'>");
    check("`a${b+`c`}d`", "t<`a${> w<b> +<+> t<`c`> t<}d`>");
    check("`a${{b:1}}c`", "t<`a${> { w<b> : n<1> } t<}c`>");
    check("alert`1`", "w<alert> t<`1`>");
}

#[test]
fn slashes() {
    check("a/b/c", "w<a> b</> w<b> b</> w<c>");
    check("/b/g.c", "r</b/g> . w<c>");
    check("x=/[/]'/i;'y'", "w<x> =<=> r</[/]'/i> ; s<'y'>");
    check("return /a/", "w<return> r</a/>");
    check("a/*b*/c//d", "w<a> c</*b*/> w<c> c<//d>");
    check("a/*b", "w<a> c~</*b>");
    check("a<!--b\n-->c\nd-->e", "w<a> c<<!--b> c<-->c> w<d> ++<--> b<>> w<e>");
}

#[test]
fn signs() {
    check("a?.b??c?d:e", "w<a> ?. w<b> b<??> w<c> ? w<d> : w<e>");
    check("a=>b==c===d>>>=e", "w<a> => w<b> b<==> w<c> b<===> w<d> =<>>>=> w<e>");
    check("!~-a--+b", "p<!> p<~> +<-> w<a> ++<--> +<+> w<b>");
    check("[...a,1e3.5]", "[ ... w<a> , n<1e3> n<.5> ]");
}

#[test]
fn names() {
    check("\\u0061lert al\\u{65}rt $_ \u{e9}", "w<\\u0061lert> w<al\\u{65}rt> w<$_> w<\u{e9}>");
    check("a\u{a0}b\u{2028}c", "w<a> w<b> w<c>");
    check("#0=@a", "?<#> n<0> =<=> ?<@> w<a>");
}

#[test]
fn line_ends_are_known() {
    let newlines: Vec<bool> = Lexer::new(b" a b\nc\xE2\x80\xA8d", 0).map(|token| token.newline).collect();
    assert_eq!(newlines, [true, false, true, true]);
}

/// Tokens rise and stay inside the text, whatever the bytes.
#[test]
fn any_short_text() {
    let alphabet = b"a/`'${}*\\\n[<";
    let mut text = [0u8; 5];
    for number in 0..(alphabet.len() as u32).pow(5) {
        let mut rest = number;
        for byte in &mut text {
            *byte = alphabet[(rest % alphabet.len() as u32) as usize];
            rest /= alphabet.len() as u32;
        }
        let mut last = 0;
        for token in Lexer::new(&text, 0) {
            assert!(token.span.start >= last && token.span.end > token.span.start, "{}", text.escape_ascii());
            last = token.span.end;
        }
        assert!(last as usize <= text.len());
    }
}
