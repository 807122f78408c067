//! libinjection's own tests: an input and the tokens, the folded tokens, the fingerprint or the HTML tokens
//! expected.

use crate::support;
use portcullis_libinjection::sqli::{self, Context, Token, TokenKind, Tokenizer, fold};
use portcullis_libinjection::xss::{HtmlContext, HtmlToken, HtmlTokenKind, HtmlTokenizer};

#[test]
fn all_pass() {
    let Some(corpora) = support::corpora_folder::for_test() else { return };
    let path = corpora.join("libinjection-tests/tests.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut ran = [0; 4];
    let mut failures = Vec::new();
    for line in text.lines() {
        let test: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let field = |name: &str| latin1(test[name].as_str().expect(name));
        let name = test["name"].as_str().expect("a name");
        // The original's driver trims as well.
        let (input, expected) = (field("input").trim_ascii_end().to_vec(), field("expected"));
        let (kind, actual) = if name.starts_with("test-tokens-") {
            (0, print_all(Tokenizer::new(&input, Context::default()), print_token))
        } else if name.starts_with("test-folding-") {
            (1, print_all(fold(&input, Context::default()).tokens().iter().copied(), print_token))
        } else if name.starts_with("test-sqli-") {
            (
                2,
                portcullis_libinjection::sqli(&input)
                    .map(|found| found.as_bytes().to_vec())
                    .unwrap_or_default(),
            )
        } else if name.starts_with("test-html5-") {
            (3, print_all(HtmlTokenizer::new(&input, HtmlContext::Text), print_html_token))
        } else {
            panic!("no such kind of test: {name}");
        };
        ran[kind] += 1;
        // A phrase has the table's spelling here, the input's in the original.
        let same = |a: &[u8], b: &[u8]| if kind == 1 { a.eq_ignore_ascii_case(b) } else { a == b };
        if !same(actual.trim_ascii_end(), expected.trim_ascii_end()) {
            failures.push(format!("{name}: {}\n got {}\n", expected.escape_ascii(), actual.escape_ascii()));
        }
    }
    assert_eq!(ran, [249, 118, 50, 63], "tokens, folding, sqli, html5");
    assert!(failures.is_empty(), "{} of 480 failed:\n{}", failures.len(), failures.concat());
}

/// The files are Latin-1.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).expect("Latin-1")).collect()
}

fn print_all<T>(tokens: impl Iterator<Item = T>, print: impl Fn(&mut Vec<u8>, T)) -> Vec<u8> {
    let mut printed = Vec::new();
    for token in tokens {
        print(&mut printed, token);
        printed.push(b'\n');
    }
    printed
}

fn print_token(printed: &mut Vec<u8>, token: Token<'_>) {
    printed.extend([token.kind.letter(), b' ']);
    let quoted = matches!(token.kind, TokenKind::String | TokenKind::Variable);
    printed.extend(std::iter::repeat_n(b'@', usize::from(token.at_signs)));
    printed.extend(token.open.filter(|_| quoted));
    printed.extend(token.value);
    printed.extend(token.close.filter(|_| quoted));
}

fn print_html_token(printed: &mut Vec<u8>, token: HtmlToken<'_>) {
    let kind = match token.kind {
        HtmlTokenKind::Text => "DATA_TEXT",
        HtmlTokenKind::TagName => "TAG_NAME_OPEN",
        HtmlTokenKind::TagEnd => "TAG_NAME_CLOSE",
        HtmlTokenKind::TagSelfClose => "TAG_NAME_SELFCLOSE",
        HtmlTokenKind::CloseTag => "TAG_CLOSE",
        HtmlTokenKind::AttributeName => "ATTR_NAME",
        HtmlTokenKind::AttributeValue => "ATTR_VALUE",
        HtmlTokenKind::Comment => "TAG_COMMENT",
        HtmlTokenKind::Doctype => "DOCTYPE",
    };
    printed.extend(format!("{kind},{},", token.text.len()).bytes());
    printed.extend(token.text);
}

#[test]
fn values_are_cut() {
    let input = [b'a'; 100];
    let mut tokens = Tokenizer::new(&input, Context::default());
    assert_eq!(tokens.next().map(|token| token.value.len()), Some(sqli::VALUE_BYTES_MAX));
    assert_eq!(tokens.next(), None);
}
