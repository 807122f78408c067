//! `@verifyCC`, `@verifySSN`, `@verifyCPF`, `@verifySVNR`: a pattern finds candidates, a check digit decides.
//!
//! As ModSecurity 2 (`re_operators.c`; SVNR: ModSecurity 3): the pattern is searched again one byte behind
//! the beginning of a candidate that failed, empty matches count for nothing, and every capture of the
//! pattern that took part holds the whole number.

use portcullis_match::{Captures, Exhausted, Pcre};

use crate::patterns::Patterns;

/// The kind of identification number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// Payment cards.
    Card,
    /// US social security.
    Ssn,
    /// Brazilian tax payers.
    Cpf,
    /// Austrian social insurance.
    Svnr,
}

/// The first valid number that `pattern` finds; `groups` are filled.
pub(crate) fn find(
    kind: NumberKind,
    pattern: &Pcre,
    value: &[u8],
    patterns: &mut Patterns,
    groups: &mut Captures,
) -> Result<bool, Exhausted> {
    let mut from = 0;
    while from < value.len() {
        if !patterns.search_from(pattern, value, from, groups)? {
            break;
        }
        let Some(whole) = groups[0] else { break };
        let text = whole.of(value);
        // Long matches of open patterns, searched from each byte on, would take quadratic time.
        patterns.spend(text.len() as u64)?;
        if !text.is_empty() && kind.accepts(text) {
            let last = groups.iter().rposition(Option::is_some).unwrap_or(0);
            groups[..=last].fill(Some(whole));
            return Ok(true);
        }
        from = whole.start as usize + 1;
    }
    *groups = Captures::default();
    Ok(false)
}

impl NumberKind {
    /// True if the digits of `text` are a valid number; other bytes do not count.
    fn accepts(self, text: &[u8]) -> bool {
        let digits = text.iter().filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
        match self {
            NumberKind::Card => is_card(digits),
            NumberKind::Ssn => array(digits).is_some_and(is_ssn),
            // Digits beyond those that count are left alone.
            NumberKind::Cpf => array(digits.take(11)).is_some_and(is_cpf),
            NumberKind::Svnr => array(digits.take(10)).is_some_and(is_svnr),
        }
    }
}

/// Exactly N digits.
fn array<const N: usize>(mut digits: impl Iterator<Item = u32>) -> Option<[u32; N]> {
    let mut out = [0; N];
    for place in &mut out {
        *place = digits.next()?;
    }
    digits.next().is_none().then_some(out)
}

/// The Luhn check. The digits to double depend on their number, so both sums are kept.
fn is_card(digits: impl Iterator<Item = u32>) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let (mut even, mut odd, mut count) = (0u64, 0u64, 0u64);
    for digit in digits {
        let (for_even, for_odd) =
            if count.is_multiple_of(2) { (doubled(digit), digit) } else { (digit, doubled(digit)) };
        even += u64::from(for_even);
        odd += u64::from(for_odd);
        count += 1;
    }
    let sum = if count.is_multiple_of(2) { even } else { odd };
    count > 0 && sum.is_multiple_of(10)
}

/// Area, group and serial number that have been given out, and no obvious filler.
fn is_ssn(digits: [u32; 9]) -> bool {
    let number = |digits: &[u32]| digits.iter().fold(0, |number, digit| number * 10 + digit);
    let (area, group, serial) = (number(&digits[..3]), number(&digits[3..5]), number(&digits[5..]));
    let rises = digits.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let stays = digits.windows(2).all(|pair| pair[1] == pair[0]);
    !rises && !stays && area != 0 && group != 0 && serial != 0 && area < 740 && area != 666
}

fn is_filler(digits: &[u32]) -> bool {
    digits.windows(2).all(|pair| pair[1] == pair[0])
        || digits.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 10)
}

/// Two check digits, each a weighted sum modulo 11.
fn is_cpf(digits: [u32; 11]) -> bool {
    let check = |count: usize| {
        let weights = (2..=count as u32 + 1).rev();
        let sum: u32 = digits[..count].iter().zip(weights).map(|(digit, weight)| digit * weight).sum();
        match sum % 11 {
            rest @ 2.. => 11 - rest,
            _ => 0,
        }
    };
    let obvious =
        digits.windows(2).all(|pair| pair[1] == pair[0]) || digits == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0];
    !obvious && digits[9] == check(9) && digits[10] == check(10)
}

/// The check digit is the fourth one.
fn is_svnr(digits: [u32; 10]) -> bool {
    const WEIGHTS: [u32; 10] = [3, 7, 9, 0, 5, 8, 4, 2, 1, 6];
    let sum: u32 = digits.iter().zip(WEIGHTS).map(|(digit, weight)| digit * weight).sum();
    // ModSecurity 3 takes a rest of 10, which no number has, for 0.
    let check = if sum % 11 == 10 { 0 } else { sum % 11 };
    !is_filler(&digits) && check == digits[3]
}

#[cfg(test)]
mod tests {
    use portcullis_match::RegexFlags;

    use super::*;

    #[track_caller]
    fn check(kind: NumberKind, pattern: &str, value: &str, found: Option<&str>) {
        let pattern = Pcre::new(pattern.as_bytes(), RegexFlags::default()).unwrap();
        let mut groups = Captures::default();
        let result = super::find(kind, &pattern, value.as_bytes(), &mut Patterns::default(), &mut groups);
        assert_eq!(result, Ok(found.is_some()), "{value}");
        assert_eq!(groups[0].map(|span| span.of(value.as_bytes())), found.map(str::as_bytes), "{value}");
    }

    #[test]
    fn cards() {
        let card = |value, found| check(NumberKind::Card, r"\d{13,16}", value, found);
        card("card 4929 5484389", None);
        card("no=5484605089158216&", Some("5484605089158216"));
        card("no=4929548438910013&", None);
        card("00054846050891582160", Some("5484605089158216"));
        card("378282246310005", Some("378282246310005"));
        check(
            NumberKind::Card,
            r"(?:^|[^\d])(?<!google_ad_client = \Wpub-)(\d{4}\-?\d{4}\-?\d{2}\-?\d{2}\-?\d{1,4})(?:[^\d]|$)",
            "a 5484-6050-8915-8216 b",
            Some(" 5484-6050-8915-8216 "),
        );
        check(NumberKind::Card, ".*", "abc", None);
    }

    #[test]
    fn ssns() {
        let ssn = |value, found| check(NumberKind::Ssn, r"\d{3}-?\d{2}-?\d{4}", value, found);
        ssn("x 123-45-6787 y", Some("123-45-6787"));
        ssn("123456789", None);
        ssn("111-11-1111", None);
        ssn("000-12-3456", None);
        ssn("666-12-3456", None);
        ssn("740-12-3456", None);
        ssn("739-12-3456", Some("739-12-3456"));
        ssn("123-00-4567", None);
    }

    #[test]
    fn cpfs() {
        let cpf = |value, found| check(NumberKind::Cpf, r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", value, found);
        cpf("cpf=529.982.247-25", Some("529.982.247-25"));
        cpf("cpf=529.982.247-26", None);
        cpf("11111111111", None);
        cpf("01234567890", None);
        cpf("12345678909", Some("12345678909"));
    }

    #[test]
    fn svnrs() {
        let svnr = |value, found| check(NumberKind::Svnr, r"\d{4} ?\d{6}", value, found);
        svnr("nr 1237 010180", Some("1237 010180"));
        svnr("nr 1238 010180", None);
        svnr("0000000000", None);
    }

    /// A pattern that matches long runs from every byte on is given up, not followed for hours.
    #[test]
    fn long_runs_of_digits_are_bounded() {
        let pattern = Pcre::new(br"\d+", RegexFlags::default()).unwrap();
        let mut digits = b"1".repeat(1 << 20);
        digits.push(b'0');
        let mut patterns = Patterns::default();
        let result = super::find(NumberKind::Ssn, &pattern, &digits, &mut patterns, &mut Captures::default());
        assert_eq!(result, Err(Exhausted));
    }
}
