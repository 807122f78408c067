//! Times and sizes as other servers write them.

/// A time of nginx: a number, seconds unless a unit says otherwise, or several (`1m30s`), as we write it.
pub(crate) fn time(text: &str) -> Option<String> {
    let mut milliseconds: u64 = 0;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match rest[..letters].trim() {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            _ => return None,
        };
        rest = &rest[letters..];
        milliseconds = milliseconds.checked_add(number.checked_mul(unit)?)?;
    }
    shown(milliseconds)
}

/// So many milliseconds, of a day at most and not nothing, as we write them.
pub(crate) fn shown(milliseconds: u64) -> Option<String> {
    match milliseconds {
        1..=86_400_000 if milliseconds.is_multiple_of(1000) => Some(format!("{}s", milliseconds / 1000)),
        1..=86_400_000 => Some(format!("{milliseconds}ms")),
        _ => None,
    }
}

/// A size: a number of bytes, or with `k`, `m`, `g`.
fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("ib").or(text.strip_suffix('b')).unwrap_or(&text);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Up to so many bytes of a body are held for inspection unless rules say otherwise.
const HELD_BYTES: u64 = 12_800 << 10;

/// What is said of a limit of bodies that is more.
pub(crate) const LONGER_BODIES: &str = "bodies are held to be inspected, up to what the rules say (SecRequestBodyLimit; 12.5 MiB unless they do), and \
     longer ones are refused; set request_body.limit for more. Without inspection there is no limit";

/// A limit of bodies that is not more than what is held for inspection anyway.
pub(crate) fn body_limit(text: &str) -> Option<u64> {
    size(text).filter(|size| (1..=HELD_BYTES).contains(size))
}
