//! Escapes of `$'..'`.

/// The byte that an escape of `$'..'` stands for, and how many bytes behind the backslash it takes.
pub(super) fn ansi_escape(text: &[u8]) -> (u8, usize) {
    let digits = |from: usize, max: usize, radix: u32| {
        let digits = text.get(from..).unwrap_or_default();
        let count = digits.iter().take(max).take_while(|b| (**b as char).is_digit(radix)).count();
        let value = digits[..count]
            .iter()
            .fold(0u32, |all, b| all * radix + (*b as char).to_digit(radix).unwrap_or(0));
        (value as u8, from + count)
    };
    match text.first() {
        None => (b'\\', 0),
        Some(b'x') => digits(1, 2, 16),
        Some(b'u' | b'U') => digits(1, 8, 16),
        Some(b'0'..=b'7') => digits(0, 3, 8),
        Some(b'n') => (b'\n', 1),
        Some(b't') => (b'\t', 1),
        Some(b'r') => (b'\r', 1),
        Some(&b) => (b, 1),
    }
}
