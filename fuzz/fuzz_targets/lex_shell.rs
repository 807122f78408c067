//! Byte 0: how the text is read; the rest: a text for the shell's tokenizer. Tokens rise and stay inside, and
//! what a word expands to is bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::shell::{Lexer, TokenKind, Variables, WORD_BYTES_MAX};

fuzz_target!(|data: &[u8]| {
    let [options, text @ ..] = data else { return };
    let mut variables = Variables::default();
    variables.set(b"a", b"cat");
    variables.set(b"b", b"$'\\x2fetc'");
    let lexer = Lexer::new(text, usize::from(options >> 2), variables).with_plus(options & 1 != 0);
    let mut lexer = if options & 2 != 0 { lexer.in_backticks() } else { lexer };
    let mut end = 0;
    while let Some(token) = lexer.next() {
        assert!(end <= token.span.start && token.span.start < token.span.end);
        assert!(token.span.end as usize <= text.len());
        end = token.span.end;
        match token.kind {
            TokenKind::Word(_) => assert!(lexer.text().len() <= WORD_BYTES_MAX),
            _ => assert!(lexer.text().is_empty()),
        }
        if let Some((name, value)) = Variables::assignment(token.span.of(text)) {
            lexer.variables().set(name, value);
        }
    }
});
