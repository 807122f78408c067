//! Lengths of time in arguments.

/// A number with a unit, in seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a time; write 30d, 12h, 90m or 45s");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3600,
        'm' => 60,
        's' => 1,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_have_a_unit() {
        for (text, expected) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5400), ("45s", 45)] {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in
            ["", "d", "30", "0d", "-1d", "1.5h", "30 d", "99999999999999999999d", "1é", "300000000000000d"]
        {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
