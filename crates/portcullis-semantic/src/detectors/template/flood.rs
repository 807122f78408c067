//! Expressions whose only purpose is to take long: ranges, repetitions and paddings of millions.

/// From so many rounds on nothing of a page is made.
pub(super) const TIMES_MIN: u64 = 1_000_000;

/// Digits of a number that counts; a longer one is as large.
const DIGITS_MAX: usize = 15;

/// How often something is done in `inner`, if it says that as a number: `range(99999)`, `1..99999`,
/// `'x'|center(99999)`, `lipsum(n=99999)`. An identifier in the arguments of another function says nothing.
pub(super) fn times(inner: &[u8]) -> Option<u64> {
    const CALLS: &[&[u8]] = &[b"range(", b"center(", b"ljust(", b"rjust(", b"repeat(", b"lipsum(", b"zfill("];
    let calls = CALLS.iter().filter_map(|call| {
        let at = memchr::memmem::find(inner, call)? + call.len();
        let arguments = &inner[at..];
        let arguments = &arguments[..memchr::memchr(b')', arguments).unwrap_or(arguments.len())];
        let times = arguments.split(|b| matches!(b, b',' | b'=')).filter_map(number).max()?;
        // Each is a paragraph.
        Some(if *call == b"lipsum(" { times * 100 } else { times })
    });
    let ranges = memchr::memmem::find_iter(inner, b"..").take(4).filter_map(|at| {
        let rest = inner[at + 2..].trim_ascii_start();
        number(&rest[..rest.iter().take_while(|b| b.is_ascii_digit()).count()])
    });
    calls.chain(ranges).max().filter(|times| *times > 1)
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = text.trim_ascii();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = &digits[..digits.len().min(DIGITS_MAX)];
    is_number.then(|| digits.iter().fold(0, |all, b| all * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (inner, wanted) in [
            ("range(99999999)|list", Some(99_999_999)),
            ("for i in 1..500", Some(500)),
            ("'x'|center(7000000)", Some(7_000_000)),
            ("lipsum(n=99999)", Some(9_999_900)),
            ("range(1, 4)", Some(4)),
            ("article(12345678)", None),
            ("version 1..", None),
            ("range(n)", None),
        ] {
            assert_eq!(times(inner.as_bytes()), wanted, "{inner}");
        }
    }
}
