//! Expressions that are a variable, and such that compute with constants.

use portcullis_lex::expr::{Lexer, Token, TokenKind};

/// A name under which engines and frameworks hand their inside to templates.
pub(super) fn is_object(name: &[u8]) -> bool {
    matches!(
        name,
        b"config"
            | b"self"
            | b"settings"
            | b"_self"
            | b"_context"
            | b"app"
            | b"lipsum"
            | b"cycler"
            | b"joiner"
            | b"namespace"
            | b"handler"
            | b"application"
            | b"pageContext"
            | b"applicationScope"
            | b"sessionScope"
            | b"requestScope"
            | b"class"
            | b"root"
            | b"range"
            | b"request"
            | b"this"
            | b"session"
            | b"get_flashed_messages"
            | b"url_for"
            | b"context"
            | b"messages"
            | b"_charset"
            | b"facesContext"
            | b"servletContext"
            | b"springMacroRequestContext"
            | b"execution"
            | b"beans"
            | b"process"
            | b"global"
            | b"globalThis"
    )
}

/// `{{ request.path }}` and `{{ this.name }}` are usual; `{{ config }}`, `{{ self }}` and `{{ request }}`
/// alone are not.
pub(super) fn is_secret(name: &[u8], whole: &[u8]) -> bool {
    let is_usual = matches!(
        name,
        b"request"
            | b"session"
            | b"app"
            | b"root"
            | b"context"
            | b"messages"
            | b"settings"
            | b"config"
            | b"range"
    );
    // A block of Handlebars shows its element so.
    name != b"this" && (!is_usual || name.len() == whole.len() || is_below(whole))
}

/// `config|pprint`, `request|string`: a filter shows all of an object of the engine.
pub(super) fn is_shown_whole(name: &[u8], text: &[u8]) -> bool {
    const FILTERS: &[&[u8]] = words!("template", "filters");
    let rest = text[name.len()..].trim_ascii_start();
    // `config or 1`
    if name == b"config" && [&b"or "[..], b"and ", b"if "].iter().any(|word| rest.starts_with(word)) {
        return true;
    }
    let Some(filter) = rest.strip_prefix(b"|").map(<[u8]>::trim_ascii_start) else { return false };
    let filter = &filter[..filter.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()];
    name == b"config"
        || matches!(name, b"request" | b"session" | b"self" | b"app") && FILTERS.contains(&filter)
}

/// `context`, `request`, `application.name`: a placeholder of one word, as mails, prompts and markup have it,
/// which prints one object where it is the engine's own.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[
        b"context",
        b"request",
        b"session",
        b"application",
        b"class",
        b"settings",
        b"messages",
        b"root",
        b"this",
        b"process",
    ];
    let text = text.trim_ascii();
    let member = text.strip_prefix(b"application.").unwrap_or_default();
    NAMES.contains(&text) || matches!(member, b"name" | b"title" | b"version" | b"label" | b"url")
}

/// What frameworks keep below the request: `request.environ`, `request.application`.
fn is_below(path: &[u8]) -> bool {
    let last = path.rsplit(|&b| b == b'.').next().unwrap_or_default();
    matches!(last, b"environ" | b"application" | b"__dict__" | b"settings" | b"SECRET_KEY")
}

/// The first name of `a.b.c`, perhaps with filters without arguments after it.
pub(super) fn plain_variable(text: &[u8]) -> Option<&[u8]> {
    let is_part = |b: &u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'_' | b'.' | b'-' | b' ' | b'|' | b'$' | b'@' | b'/')
            || *b >= 0x80
    };
    if !text.iter().all(is_part) || text.windows(2).any(|pair| pair == b"__") {
        return None;
    }
    let end = text.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_')).unwrap_or(text.len());
    text[0]
        .is_ascii_alphabetic()
        .then_some(&text[..end])
        .or_else(|| (text[0] == b'_').then_some(&text[..end]))
}

/// `.Env`, `.Env.PATH`, `env "PATH"`: what templates of Go tell of the system.
pub(super) fn is_of_go(text: &[u8]) -> bool {
    let path = text.strip_prefix(b".").unwrap_or_default();
    let name = &path[..path.iter().take_while(|b| b.is_ascii_alphanumeric()).count()];
    let calls = [&b"env "[..], b"expandenv "].iter().find_map(|call| text.strip_prefix(*call));
    matches!(name, b"Env" | b"Environ" | b"Environment")
        || calls.is_some_and(|argument| matches!(argument.trim_ascii_start().first(), Some(b'"' | b'`')))
}

/// `#x=..`: OGNL sets a variable, as no page does.
pub(super) fn assigns_variable(text: &[u8]) -> bool {
    let Some(name) = text.strip_prefix(b"#") else { return false };
    let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let rest = name[len..].trim_ascii_start();
    len > 0 && rest.starts_with(b"=") && !rest.starts_with(b"==")
}

/// The object of Lodash and Underscore, with what it tells of itself: `_.VERSION`,
/// `= _.templateSettings.evaluate`.
pub(super) fn is_of_library(text: &[u8]) -> bool {
    let name = text.strip_prefix(b"=").unwrap_or(text).trim_ascii();
    name.strip_prefix(b"_.")
        .is_some_and(|member| member.starts_with(b"VERSION") || member.starts_with(b"templateSettings"))
}

/// Numbers (and a text) joined by operators, and nothing else: `7*7`, `7*'7'`, `364|add:733`.
pub(super) fn is_arithmetic(text: &[u8]) -> bool {
    let (mut numbers, mut signs) = (0, 0);
    let mut last: Option<Token> = None;
    for token in Lexer::new(text, 0) {
        match token.kind {
            TokenKind::Number => numbers += 1,
            TokenKind::Text if numbers > 0 && last.is_some_and(|t| t.is(b'*')) => numbers += 1,
            // `'a'*5`
            TokenKind::Text if last.is_none() => numbers += 1,
            TokenKind::Sign(b'*' | b'+' | b'-' | b'/' | b'%' | b'^') => {
                signs +=
                    usize::from(last.is_some_and(|t| {
                        matches!(t.kind, TokenKind::Number | TokenKind::Text) || t.is(b')')
                    }));
            }
            TokenKind::Sign(b'|' | b':' | b'(' | b')' | b'[' | b']' | b',' | b'?' | b'@' | b'=' | b';') => {}
            // `(7*7)?c`: how FreeMarker writes a number.
            TokenKind::Name if last.is_some_and(|t| t.is(b'?')) => {}
            TokenKind::Name if is_sum(token.span.of(text)) && last.is_some_and(|t| t.is(b'|')) => signs += 1,
            TokenKind::Name | TokenKind::Text | TokenKind::Sign(_) => return false,
        }
        last = Some(token);
    }
    // `2024-05-01` and `1/2` are dates and fractions, in whatever they stand.
    let is_date = text.iter().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'/' | b'.'));
    numbers >= 2 && signs >= 1 && !(is_date && numbers == 3)
}

/// A filter that computes: of Django, Liquid and others.
fn is_sum(filter: &[u8]) -> bool {
    matches!(
        filter,
        b"add"
            | b"plus"
            | b"minus"
            | b"times"
            | b"multiply"
            | b"divided_by"
            | b"divide"
            | b"modulo"
            | b"sub"
            | b"mul"
            | b"sum"
    )
}

/// `1 == 1`, `'a' != 'b'`: constants are compared, as who asks whether an engine is there writes it.
pub(super) fn is_constant_condition(text: &[u8]) -> bool {
    let mut tokens = Lexer::new(text, 0);
    let is_constant =
        |token: Option<Token>| token.is_some_and(|t| matches!(t.kind, TokenKind::Number | TokenKind::Text));
    let first = is_constant(tokens.next());
    let mut signs = 0;
    let second = tokens.by_ref().find(|token| {
        let is_sign = matches!(token.kind, TokenKind::Sign(b'=' | b'!' | b'<' | b'>'));
        signs += usize::from(is_sign);
        !is_sign
    });
    first && (1..=3).contains(&signs) && is_constant(second) && tokens.next().is_none()
}
