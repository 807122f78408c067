use super::*;

fn show(lexer: Lexer<'_>, text: &str) -> String {
    let mut have = String::new();
    for token in lexer {
        let name = match token.kind {
            TokenKind::Text => "t",
            TokenKind::StartTag => "+",
            TokenKind::EndTag => "-",
            TokenKind::AttributeName => "n",
            TokenKind::AttributeValue { closed: true, .. } => "v",
            TokenKind::AttributeValue { closed: false, .. } => "v~",
            TokenKind::Slash => "/",
            TokenKind::TagEnd { closed: true } => ".",
            TokenKind::TagEnd { closed: false } => ".~",
            TokenKind::RawText(_) => "r",
            TokenKind::Comment(true) => "c",
            TokenKind::Comment(false) => "c~",
            TokenKind::Declaration => "d",
        };
        let bytes = token.span.of(text.as_bytes());
        match token.kind {
            TokenKind::TagEnd { .. } | TokenKind::Slash => have.push_str(&format!("{name} ")),
            _ => have.push_str(&format!("{name}[{}] ", String::from_utf8_lossy(bytes))),
        }
    }
    have.trim_end().to_owned()
}

#[track_caller]
fn check(text: &str, want: &str) {
    assert_eq!(show(Lexer::new(text.as_bytes(), Start::Data, 0), text), want, "{text}");
}

#[track_caller]
fn check_from(start: Start, text: &str, want: &str) {
    assert_eq!(show(Lexer::new(text.as_bytes(), start, 0), text), want, "{text}");
}

#[test]
fn tags() {
    check("a<b>c</b>", "t[a] +[b] . t[c] -[b] .");
    check("<<script>x", "t[<] +[script] . r[x]");
    check("a < b <3 <", "t[a < b <3 <]");
    check("<br/><p/ x>", "+[br] . +[p] / n[x] .");
    check("<\0scr\0ipt>1</script>", "+[scr\0ipt] . r[1] -[script] .");
}

#[test]
fn attributes() {
    check("<a b=c d='e' f=\"g\" h>", "+[a] n[b] v[c] n[d] v[e] n[f] v[g] n[h] .");
    check("<svg/onload=alert(1)//", "+[svg] / n[onload] v[alert(1)//] .~");
    check("<img\x0bsrc = x\tonerror\n=\n'y'z=1>", "+[img] n[src] v[x] n[onerror] v[y] n[z] v[1] .");
    check("<a b=`c d` e=`f>", "+[a] n[b] v[c d] n[e] v[`f] .");
    check("<a =b c==d \"e=f>", "+[a] n[=b] n[c] v[=d] n[\"e] v[f] .");
    check("<a b='c", "+[a] n[b] v~[c] .~");
    check("<a b=", "+[a] n[b] v[] .~");
    check("<a \"'>b", "+[a] n[\"'] . t[b]");
}

#[test]
fn raw_text() {
    check("<script>a<b></b></script >c", "+[script] . r[a<b></b>] -[script] . t[c]");
    check("<TITLE><a></TiTlE><a>", "+[TITLE] . r[<a>] -[TiTlE] . +[a] .");
    check("<style></styles></style/>", "+[style] . r[</styles>] -[style] .");
    check("<plaintext></plaintext>", "+[plaintext] . r[</plaintext>]");
}

#[test]
fn comments() {
    check("<!--a--b-->c", "c[a--b] t[c]");
    check("<!--><a>", "c[] +[a] .");
    check("<!---><a>", "c[] +[a] .");
    check("<!--a--!><b>", "c[a] +[b] .");
    check("<!--a", "c~[a]");
    check("<!x y><?z?></ w>", "d[x y] d[z?] d[ w]");
}

#[test]
fn starts() {
    check_from(Start::Quoted(b'"'), "x\" onload=\"y", "v[x] n[onload] v~[y] .~");
    check_from(Start::Quoted(b'\''), "x' y><b>", "v[x] n[y] . +[b] .");
    check_from(Start::Unquoted, "x onload=y", "v[x] n[onload] v[y] .~");
    check_from(Start::Tag, "onload=y/>z", "n[onload] v[y/] . t[z]");
    check_from(Start::Raw(Raw::Title), "a<b></title><b>", "r[a<b>] -[title] . +[b] .");
    check_from(Start::Raw(Raw::Script), "';</script><b>", "r[';] -[script] . +[b] .");
    check_from(Start::Comment, "a--><b>", "c[a] +[b] .");
}

#[test]
fn seeing_through() {
    let through = |text: &str| show(Lexer::new(text.as_bytes(), Start::Data, 0).seeing_through(), text);
    assert_eq!(through("<!--<a b>-->"), "c~[] +[a] n[b] . t[-->]");
    assert_eq!(through("<p t=\"</p><a b>\">"), "+[p] n[t] v~[] .~ -[p] . +[a] n[b] . t[\">]");
    assert_eq!(through("<title><a></title>"), "+[title] . r[] +[a] . -[title] .");
}

/// Tokens rise, stay inside the text, and are bounded by its length, whatever the bytes.
#[test]
fn any_short_text() {
    let alphabet = b"<>/!-='\"`a \0";
    let mut text = [0u8; 5];
    for number in 0..(alphabet.len() as u32).pow(5) {
        let mut rest = number;
        for byte in &mut text {
            *byte = alphabet[(rest % alphabet.len() as u32) as usize];
            rest /= alphabet.len() as u32;
        }
        for start in [Start::Data, Start::Tag, Start::Quoted(b'"'), Start::Comment] {
            for lexer in [Lexer::new(&text, start, 0), Lexer::new(&text, start, 0).seeing_through()] {
                let (mut last, mut count) = (0, 0);
                for token in lexer {
                    count += 1;
                    let shown = text.escape_ascii();
                    assert!(count <= 2 * text.len() + 2, "too many tokens: {shown}");
                    assert!(token.span.start >= last && token.span.end as usize <= text.len(), "{shown}");
                    last = token.span.start;
                }
            }
        }
    }
}
