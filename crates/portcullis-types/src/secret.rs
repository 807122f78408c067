/// True for names of header fields whose values may let somebody in (`Cookie`, `Authorization`, `X-Api-Key`, `X-CSRF-Token`): no
/// cache may keep them beyond their message. By the words in the name, for everybody makes up more of them.
///
/// ```
/// use portcullis_types::may_hold_secret;
///
/// assert!(may_hold_secret(b"Proxy-Authorization") && may_hold_secret(b"x-api-key"));
/// assert!(!may_hold_secret(b"User-Agent"));
/// ```
pub fn may_hold_secret(name: &[u8]) -> bool {
    const WORDS: [&[u8]; 5] = [b"cookie", b"auth", b"token", b"key", b"secret"];
    const BEGINS: [bool; 256] = {
        let mut begins = [false; 256];
        let mut at = 0;
        while at < WORDS.len() {
            begins[WORDS[at][0] as usize] = true;
            begins[WORDS[at][0].to_ascii_uppercase() as usize] = true;
            at += 1;
        }
        begins
    };
    let is_at = |at: usize| {
        let has =
            |word: &&[u8]| name[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
        WORDS.iter().any(has)
    };
    (0..name.len()).any(|at| BEGINS[usize::from(name[at])] && is_at(at))
}
