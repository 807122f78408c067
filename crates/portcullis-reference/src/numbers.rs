//! Numbers with check digits, as `re_operators.c` checks them; SVNR as ModSecurity 3.

fn digits(text: &[u8]) -> Vec<i32> {
    text.iter().filter(|b| b.is_ascii_digit()).map(|b| i32::from(b - b'0')).collect()
}

/// `luhn_verify`.
pub(crate) fn is_card(text: &[u8]) -> bool {
    let digits = digits(text);
    let mut sum = 0;
    for (at, digit) in digits.iter().rev().enumerate() {
        let doubled = digit * 2;
        sum += if at % 2 == 0 { *digit } else { doubled / 10 + doubled % 10 };
    }
    !digits.is_empty() && sum % 10 == 0
}

/// `ssn_verify`.
pub(crate) fn is_ssn(text: &[u8]) -> bool {
    let n = digits(text);
    if n.len() != 9 || n.windows(2).all(|p| p[0] == p[1]) || n.windows(2).all(|p| p[0] + 1 == p[1]) {
        return false;
    }
    let area = n[0] * 100 + n[1] * 10 + n[2];
    let group = n[3] * 10 + n[4];
    let serial = n[5] * 1000 + n[6] * 100 + n[7] * 10 + n[8];
    area != 0 && group != 0 && serial != 0 && area < 740 && area != 666
}

/// `cpf_verify`: only the first eleven digits count.
pub(crate) fn is_cpf(text: &[u8]) -> bool {
    let n: Vec<i32> = digits(text).into_iter().take(11).collect();
    if n.len() != 11 || n.windows(2).all(|p| p[0] == p[1]) || n == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0] {
        return false;
    }
    let check = |count: usize| {
        let mut sum = 0;
        for (at, digit) in n[..count].iter().enumerate() {
            sum += digit * (count + 1 - at) as i32;
        }
        if sum % 11 < 2 { 0 } else { 11 - sum % 11 }
    };
    n[9] == check(9) && n[10] == check(10)
}

/// `VerifySVNR::verify`: only the first ten digits count.
pub(crate) fn is_svnr(text: &[u8]) -> bool {
    let n: Vec<i32> = digits(text).into_iter().take(10).collect();
    if n.len() != 10
        || n.windows(2).all(|p| p[0] == p[1])
        || n == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
        || n == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    {
        return false;
    }
    let sum = n[0] * 3 + n[1] * 7 + n[2] * 9 + n[4] * 5 + n[5] * 8 + n[6] * 4 + n[7] * 2 + n[8] + n[9] * 6;
    n[3] == if sum % 11 == 10 { 0 } else { sum % 11 }
}
