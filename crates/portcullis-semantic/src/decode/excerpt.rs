//! Excerpts around the places that a decoder changes, of a long text whose other parts were inspected
//! already.

use std::ops::Range;

/// A piece of the text: whole words, so many bytes and somewhat more.
const PIECE_BYTES: usize = 256;
/// A word is cut where it is longer than this beyond [`PIECE_BYTES`].
const WORD_BYTES_MAX: usize = 128;
/// The longest sign that a decoder may find across the end of a piece.
const SIGN_BYTES: usize = 12;
/// Pieces that are kept before and after one that changes.
const CONTEXT_PIECES: usize = 2;

/// The pieces of `text` that `decode` changes, each with those around it.
pub fn excerpt(text: &[u8], decode: fn(&[u8], &mut Vec<u8>) -> bool) -> Vec<u8> {
    let (mut out, mut decoded) = (Vec::new(), Vec::new());
    // Where the last pieces begin, and how far the text is kept already.
    let (mut begins, mut kept, mut trailing) = ([0; CONTEXT_PIECES + 1], 0, 0);
    let mut at = 0;
    while at < text.len() {
        let Range { start, end } = piece(text, at);
        begins.rotate_left(1);
        begins[CONTEXT_PIECES] = start;
        let shown = &text[start..(end + SIGN_BYTES).min(text.len())];
        decoded.clear();
        if decode(shown, &mut decoded) && decoded != shown {
            let from = begins[0].max(kept);
            out.extend_from_slice(&text[from..end]);
            (kept, trailing) = (end, CONTEXT_PIECES);
        } else if trailing > 0 {
            out.extend_from_slice(&text[start..end]);
            (kept, trailing) = (end, trailing - 1);
        }
        at = end;
    }
    out
}

/// The piece that begins at `start`.
fn piece(text: &[u8], start: usize) -> Range<usize> {
    let least = (start + PIECE_BYTES).min(text.len());
    let most = (least + WORD_BYTES_MAX).min(text.len());
    let word = text[least..most].iter().position(u8::is_ascii_whitespace);
    start..word.map_or(most, |word| least + word + 1)
}

#[cfg(test)]
mod tests {
    use super::super::signs;
    use super::*;

    #[test]
    fn what_changes_is_kept_with_its_context() {
        let plain = "nothing to be seen here ".repeat(200);
        let text = format!("{plain}before &lt;script&gt; after {plain}");
        let kept = excerpt(text.as_bytes(), signs::entities);
        let kept = String::from_utf8(kept).unwrap();
        assert!(kept.contains("before &lt;script&gt; after"), "{kept}");
        let (before, after) = kept.split_once("&lt;").unwrap();
        assert!(before.len() >= 2 * PIECE_BYTES && after.len() >= 2 * PIECE_BYTES, "{kept}");
        assert!(kept.len() < 2_000, "{}", kept.len());
        assert!(excerpt(plain.as_bytes(), signs::entities).is_empty());
    }

    /// A sign may stand across the end of a piece, and pieces that touch are kept once.
    #[test]
    fn a_sign_is_kept_wherever_it_stands() {
        for lead in 0..2 * PIECE_BYTES + WORD_BYTES_MAX {
            let text = format!("{}&#x3c;{}", "a".repeat(lead), "b".repeat(2_000));
            let kept = excerpt(text.as_bytes(), signs::entities);
            assert!(text.as_bytes().starts_with(&kept) && kept.len() > lead + 6, "{lead}");
        }
        let text = "word &lt; ".repeat(500);
        assert_eq!(excerpt(text.as_bytes(), signs::entities), text.as_bytes());
    }
}
