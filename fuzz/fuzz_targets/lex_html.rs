//! The HTML tokenizer, from every start state, plain and seeing through. The first byte chooses the start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_lex::html::{Lexer, Raw, Start};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else { return };
    let start = match choice % 8 {
        0 => Start::Data,
        1 => Start::Tag,
        2 => Start::Quoted(b'"'),
        3 => Start::Quoted(b'\''),
        4 => Start::Unquoted,
        5 => Start::Raw(Raw::Title),
        6 => Start::Raw(Raw::Script),
        _ => Start::Comment,
    };
    for lexer in [Lexer::new(text, start, 0), Lexer::new(text, start, 0).seeing_through()] {
        let mut begin = 0;
        for (count, token) in lexer.enumerate() {
            assert!(token.span.start >= begin, "tokens rise");
            assert!(token.span.end as usize <= text.len(), "tokens stay inside");
            begin = token.span.start;
            assert!(count <= 2 * text.len() + 2, "tokens are bounded by the text");
        }
    }
});
