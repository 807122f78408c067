//! The statement behind what ends a string or a call of a program.

/// Bytes of a space and signs behind a quote before the statement that they join.
const JOINT_BYTES_MAX: usize = 400;

/// `');unlink('x');//`, `'.getenv('X').'`, `"+process.env.X+"`: where the statement begins behind the quote,
/// at the beginning of `text` or behind each quote in it that ends no string of the text itself, and which
/// quote it is: what stands before is in the string of the program that the quote ends.
pub(super) fn statements(text: &[u8]) -> impl Iterator<Item = (&[u8], Option<u8>)> {
    let start = text.len() - text.trim_ascii_start().len();
    let bracket =
        matches!(text.get(start), Some(b')' | b']' | b'}')).then(|| (statement(&text[start..]), None));
    // Of each kind: how many there were, and how many without those behind a backslash.
    let mut count = [[0u32; 2]; 3];
    let quotes = memchr::memchr3_iter(b'\'', b'"', b'`', text).filter(move |at| {
        let is_letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        // `it's`
        if is_letter(before) && is_letter(text.get(at + 1)) {
            return false;
        }
        let of_kind = &mut count[usize::from(text[*at] == b'"') + 2 * usize::from(text[*at] == b'`')];
        let is_escaped = before == Some(&b'\\');
        of_kind[0] += 1;
        of_kind[1] += u32::from(!is_escaped);
        of_kind[0] % 2 == 1 || !is_escaped && of_kind[1] % 2 == 1
    });
    bracket
        .into_iter()
        .chain(quotes.map(|at| (statement(&text[at + 1..]), Some(text[at]))))
        .filter_map(|(inner, quote)| Some((inner?, quote)))
}

/// What `rest` goes on with behind brackets and what joins or ends.
fn statement(rest: &[u8]) -> Option<&[u8]> {
    let near = &rest[..rest.len().min(JOINT_BYTES_MAX)];
    let closes = |b: &&u8| matches!(b, b')' | b']' | b'}') || b.is_ascii_whitespace();
    let closed = near.iter().take_while(closes).count();
    let joined = near[closed..].iter().take_while(|b| is_joint(b)).count();
    let inner = &rest[closed + joined..];
    // A sentence goes on behind its comma, too, and a list with its next word.
    let is_tight = near[closed..closed + joined].iter().any(|b| !b.is_ascii_whitespace());
    (is_tight && !inner.is_empty()).then_some(inner)
}

fn is_joint(b: &u8) -> bool {
    matches!(b, b';' | b'.' | b'+' | b',' | b'|' | b'&' | b'~') || b.is_ascii_whitespace()
}
