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
    // Asked for each field of each message, so two bytes rule out nearly all places.
    name.windows(2).enumerate().any(|(at, pair)| {
        let word: &[u8] = match [pair[0] | 0x20, pair[1] | 0x20] {
            [b'c', b'o'] => b"cookie",
            [b'a', b'u'] => b"auth",
            [b't', b'o'] => b"token",
            [b'k', b'e'] => b"key",
            [b's', b'e'] => b"secret",
            _ => return false,
        };
        name[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
    })
}
