//! The texts of `seeds.tsv`.

use std::sync::LazyLock;

use portcullis_types::Class;

use crate::probes::Spot;

/// A text before any change.
#[derive(Debug)]
pub(crate) struct Seed {
    pub(crate) class: Class,
    pub(crate) kind: &'static str,
    pub(crate) spot: Spot,
    pub(crate) text: Vec<u8>,
}

pub(crate) static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| lines().filter_map(seed).collect());

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("seeds.tsv").lines().filter(|line| !line.starts_with('#'))
}

/// None for a line that is none; a test sees to it that there is none.
fn seed(line: &'static str) -> Option<Seed> {
    let mut columns = line.splitn(3, '\t');
    let (kind, spot, text) = (columns.next()?, columns.next()?, columns.next()?);
    let class = Class::from_name(kind.split('.').next()?)?;
    let spot = match spot {
        "value" => Spot::Value,
        "path" => Spot::Path,
        "file" => Spot::File,
        "file-name" => Spot::FileName,
        "body" => Spot::Body,
        _ => return None,
    };
    Some(Seed { class, kind, spot, text: unescaped(text)? })
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&sign, behind) = rest.split_first()?;
        rest = behind;
        match sign {
            b'\\' => out.push(b'\\'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'x' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &rest[2..];
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_seed() {
        for line in lines() {
            assert!(seed(line).is_some(), "{line}");
        }
        assert_eq!(unescaped("a\\\\b\\n\\x00"), Some(b"a\\b\n\0".to_vec()));
        assert_eq!(unescaped("\\q"), None);
    }
}
