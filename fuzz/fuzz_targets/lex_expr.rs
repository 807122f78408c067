//! A text for the tokenizer of expressions. Tokens rise and stay inside, and a text's inside is the text
//! without its quotes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::expr::{Lexer, TokenKind};

fuzz_target!(|data: &[u8]| {
    let mut end = 0;
    for token in Lexer::new(data, 0) {
        assert!(end <= token.span.start && token.span.start < token.span.end);
        end = token.span.end;
        if token.kind == TokenKind::Text {
            assert_eq!(token.inner(data).len() + 2, token.span.len());
        }
    }
    assert!(end as usize <= data.len());
});
