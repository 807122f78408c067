//! Changes that leave an attack one, for most readers.

use data_encoding::BASE64;

/// A change of a text.
pub(crate) struct Change {
    pub(crate) name: &'static str,
    /// None where it would change nothing.
    pub(crate) make: fn(&[u8]) -> Option<Vec<u8>>,
}

pub(crate) const CHANGES: &[Change] = &[
    Change { name: "", make: |text| Some(text.to_vec()) },
    Change { name: "other case", make: |text| changed(text, swap_case(text)) },
    Change { name: "tabs for spaces", make: |text| spaces(text, b"\t") },
    Change { name: "line ends for spaces", make: |text| spaces(text, b"\n") },
    Change { name: "comments for spaces", make: |text| spaces(text, b"/**/") },
    Change { name: "percent-encoded once more", make: |text| Some(percent(text)) },
    Change { name: "base64", make: |text| Some(BASE64.encode(text).into_bytes()) },
    Change { name: "words before it", make: |text| Some([b"see the notes: ", text].concat()) },
    Change { name: "words after it", make: |text| Some([text, b" and so on"].concat()) },
    Change { name: "a quote before it", make: |text| Some([b"x' ", text].concat()) },
    Change { name: "a number before it", make: |text| Some([b"1 ", text].concat()) },
];

fn changed(from: &[u8], to: Vec<u8>) -> Option<Vec<u8>> {
    (from != to).then_some(to)
}

/// Every other letter in the other case.
fn swap_case(text: &[u8]) -> Vec<u8> {
    let swap = |(at, byte): (usize, &u8)| match at % 2 {
        0 if byte.is_ascii_alphabetic() => byte ^ 0x20,
        _ => *byte,
    };
    text.iter().enumerate().map(swap).collect()
}

fn spaces(text: &[u8], by: &[u8]) -> Option<Vec<u8>> {
    text.contains(&b' ').then(|| text.split(|&byte| byte == b' ').collect::<Vec<_>>().join(by))
}

fn percent(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|&byte| match byte.is_ascii_alphanumeric() {
            true => vec![byte],
            false => format!("%{byte:02x}").into_bytes(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change() {
        let made: Vec<String> = CHANGES
            .iter()
            .filter_map(|change| (change.make)(b"or a"))
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        let expected = [
            "or a",
            "Or a",
            "or\ta",
            "or\na",
            "or/**/a",
            "or%20a",
            "b3IgYQ==",
            "see the notes: or a",
            "or a and so on",
            "x' or a",
            "1 or a",
        ];
        assert_eq!(made, expected);
        assert_eq!((CHANGES[1].make)(b"-"), None);
        assert_eq!((CHANGES[2].make)(b"a"), None);
    }
}
