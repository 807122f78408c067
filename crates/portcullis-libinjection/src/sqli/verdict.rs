//! The verdict on a folded input: attack or not.

use super::fingerprint::Fingerprint;
use super::fold::Folded;
use super::token::{Token, TokenKind::*};

/// The fingerprint, if it is one of an attack and nothing speaks against it.
pub(super) fn verdict(input: &[u8], folded: &mut Folded<'_>) -> Option<Fingerprint> {
    // PHP's MySQL takes an unclosed, empty back-tick at the end for a comment.
    if folded.tokens().len() > 2
        && let Some(last) = folded.last_mut()
        && last.kind == Bareword
        && last.value.is_empty()
        && (last.open, last.close) == (Some(b'`'), None)
    {
        last.kind = Comment;
    }
    let fingerprint = Fingerprint::of(folded.tokens());
    (fingerprint.is_suspicious() && !is_harmless(input, &fingerprint, folded)).then_some(fingerprint)
}

/// Short fingerprints also come from prose and numbers: a closer look.
fn is_harmless(input: &[u8], fingerprint: &Fingerprint, folded: &Folded<'_>) -> bool {
    let letters = fingerprint.as_bytes();
    // SQL Server does not log a statement with this word in it.
    if letters.len() > 1 && letters.ends_with(b"c") && memchr::memmem::find(input, b"sp_password").is_some() {
        return false;
    }
    match (letters, folded.tokens()) {
        ([_, _], [first, second]) => is_harmless_pair(input, first, second, folded.tokens_read()),
        (b"sos" | b"s&s", [first, _, last]) => {
            // An attack if both strings are open outwards, by the same quote: ...a' + 'b...
            !(first.open.is_none() && last.close.is_none() && first.close == last.open)
        }
        // 'a and 1' is prose, 'a and 1<2' is not.
        (b"s&n" | b"n&1" | b"1&1" | b"1&v" | b"1&s", _) => folded.tokens_read() == 3,
        // Of keywords only INTO OUTFILE and INTO DUMPFILE matter here.
        ([_, b'k', _], [_, keyword, _]) => {
            keyword.value.len() < 5 || !keyword.value[..4].eq_ignore_ascii_case(b"INTO")
        }
        _ => false,
    }
}

fn is_harmless_pair(input: &[u8], first: &Token<'_>, second: &Token<'_>, tokens_read: usize) -> bool {
    match (first.kind, second.kind, second.first_byte()) {
        // Folded or commented, it is more than a number and a word.
        (_, Union, _) => tokens_read == 2,
        (_, _, Some(b'#')) => true,
        (Bareword, Comment, begin) if begin != Some(b'/') => true,
        (Number, Comment, Some(b'/')) => false,
        (Number, Comment, _) => tokens_read <= 2 && !comment_follows(input, first.value.len()),
        // Many write `--` in prose; as an attack it comes last.
        (_, _, Some(b'-')) => second.value.len() > 2,
        _ => false,
    }
}

/// Returns true if a number of this length at the start of the input goes over into a comment, so that it is
/// a number and not the first digits of some base64 text such as `1234-ABCD--`.
///
/// The original compares a signed character with the blank, so bytes from 0x80 on count as blanks.
fn comment_follows(input: &[u8], number_len: usize) -> bool {
    match input.get(number_len..) {
        Some([b'/', b'*', ..] | [b'-', b'-', ..]) => true,
        Some([next, ..]) => *next <= b' ' || *next >= 0x80,
        _ => true,
    }
}
