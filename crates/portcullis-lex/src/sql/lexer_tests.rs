//! Tests of the tokenizer.

use super::*;

#[track_caller]
fn check(text: &str, want: &str) {
    let mut have = String::new();
    for token in Lexer::new(text.as_bytes(), 0) {
        let name = match token.kind {
            TokenKind::Number => "n",
            TokenKind::String { closed: true, .. } => "s",
            TokenKind::String { closed: false, .. } => "s~",
            TokenKind::Word(Word::Name) => "w",
            TokenKind::Word(_) => "k",
            TokenKind::QuotedName(true) => "q",
            TokenKind::QuotedName(false) => "q~",
            TokenKind::Variable => "v",
            TokenKind::Operator(_) => "o",
            TokenKind::Open => "(",
            TokenKind::Close => ")",
            TokenKind::Comma => ",",
            TokenKind::Semicolon => ";",
            TokenKind::Dot => ".",
            TokenKind::OpenBrace => "{",
            TokenKind::CloseBrace => "}",
            TokenKind::Comment(Comment::VersionOpen) => "c!",
            TokenKind::Comment(Comment::Block(false)) => "c~",
            TokenKind::Comment(_) => "c",
            TokenKind::Other => "?",
        };
        let text = String::from_utf8_lossy(token.span.of(text.as_bytes())).into_owned();
        have.push_str(&format!("{name}<{text}> "));
    }
    assert_eq!(have.trim_end(), want, "{text}");
}

#[test]
fn numbers() {
    check("1 2.5 .5 1e3 1E-3 0x1F 0b01 1.", "n<1> n<2.5> n<.5> n<1e3> n<1E-3> n<0x1F> n<0b01> n<1.>");
    check("1union 1e0union 1.union 0xg", "n<1> k<union> n<1e0> k<union> n<1.> k<union> n<0> w<xg>");
    check("1.e(2) 1fUnion", "c<1.e> (<(> n<2> )<)> n<1f> k<Union>");
    check("1e+x", "n<1> w<e> o<+> w<x>");
}

#[test]
fn strings() {
    check("'a''b' 'a\\'b' \"c\" 'd", "s<'a''b'> s<'a\\'b'> s<\"c\"> s~<'d>");
    check(
        "N'a' _utf8'b' x'41' q'[it's]' $$z$$ $t$y$t$",
        "s<N'a'> s<_utf8'b'> s<x'41'> s<q'[it's]'> s<$$z$$> s<$t$y$t$>",
    );
    check("'a\\", "s~<'a\\>");
    check("o'x", "w<o> s~<'x>");
}

#[test]
fn names_and_variables() {
    check("`a b` [c d] `e", "q<`a b`> q<[c d]> q~<`e>");
    check("@a @@b :c $1 ? @`d` a.b", "v<@a> v<@@b> v<:c> v<$1> v<?> v<@`d`> w<a> .<.> w<b>");
    check("[]", "?<[> ?<]>");
    check("caf\u{e9} \u{e0} x", "w<caf\u{e9}> w<\u{e0}> w<x>");
}

#[test]
fn comments() {
    check("1--x\n2#y\n3/*z*/4", "n<1> c<--x> n<2> c<#y> n<3> c</*z*/> n<4>");
    check("/*!50000union*/ /*!select*/", "c!</*!50000> k<union> c<*/> c!</*!> k<select> c<*/>");
    check("1 /* x", "n<1> c~</* x>");
    check("*/ or", "c<*/> k<or>");
}

#[test]
fn operators() {
    check("a<=>b!=c||d&&e", "w<a> o<<=>> w<b> o<!=> w<c> o<||> w<d> o<&&> w<e>");
    check(
        "a->>'$.b' a@>b a#>c a::int",
        "w<a> o<->>> s<'$.b'> w<a> o<@>> w<b> w<a> o<#>> w<c> w<a> o<::> w<int>",
    );
}

#[test]
fn any_white_space() {
    let text = b"1\x0bor\xa01\x00=\xc2\xa01\x01";
    assert_eq!(Lexer::new(text, 0).count(), 5);
}
