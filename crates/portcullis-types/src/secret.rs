/// True for names of header fields whose values may grant access (`Cookie`, `Authorization`, `X-Api-Key`,
/// `X-CSRF-Token`): no cache may keep them beyond their message. Decided by the words in the name, as
/// applications invent further names.
///
/// ```
/// use portcullis_types::may_hold_secret;
///
/// assert!(may_hold_secret(b"Proxy-Authorization") && may_hold_secret(b"x-api-key"));
/// assert!(!may_hold_secret(b"User-Agent"));
/// ```
pub fn may_hold_secret(name: &[u8]) -> bool {
    // Asked for each field of each message. Few names have the letters of one of the words.
    let letters = name.iter().fold(0u32, |letters, byte| letters | 1 << (byte & 31));
    let may = letters & K != 0 || letters & AUTH == AUTH || letters & SECRET == SECRET;
    may && has_word(name)
}

/// Letters as bits, by the five low bits of their bytes: `cookie`, `token` and `key` have this one.
const K: u32 = letters(b"k");
const AUTH: u32 = letters(b"auth");
const SECRET: u32 = letters(b"secret");

const fn letters(word: &[u8]) -> u32 {
    let (mut letters, mut at) = (0, 0);
    while at < word.len() {
        letters |= 1 << (word[at] & 31);
        at += 1;
    }
    letters
}

#[cold]
fn has_word(name: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_case_and_place() {
        for word in ["cookie", "auth", "token", "key", "secret"] {
            for name in [
                word.to_owned(),
                format!("x-{word}"),
                format!("{word}s"),
                format!("a{word}-b").to_uppercase(),
            ] {
                assert!(may_hold_secret(name.as_bytes()), "{name}");
            }
        }
        for name in ["", "k", "Keep-Alive", "Host", "Upgrade-Insecure-Requests", "X-Touch-Area", "Cooking"] {
            assert!(!may_hold_secret(name.as_bytes()), "{name}");
        }
    }
}
