//! The JavaScript tokenizer, from an operand and from behind one. The first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::js::Lexer;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else { return };
    let lexer = match choice % 2 {
        0 => Lexer::new(text, 0),
        _ => Lexer::behind_operand(text, 0),
    };
    let mut end = 0;
    for token in lexer {
        assert!(token.span.start >= end && token.span.end > token.span.start, "tokens rise");
        end = token.span.end;
    }
    assert!(end as usize <= text.len(), "tokens stay inside");
});
