//! The content coding that a client prefers (RFC 9110, section 12.5.3).

use portcullis_config::Coding;

/// Weights in thousandths.
const FULL: u16 = 1000;

/// The coding of `offered`, best first, that a client prefers; none if it wants the body as it is. `fields`
/// are its `Accept-Encoding` fields: without one nobody can say that it knows a coding.
pub(crate) fn choose<'h>(offered: &[Coding], fields: impl Iterator<Item = &'h [u8]>) -> Option<Coding> {
    let mut weights: [Option<u16>; 3] = [None; 3];
    let (mut any, mut identity) = (None, None);
    for item in fields.flat_map(|field| field.split(|byte| *byte == b',')) {
        let Some((name, weight)) = item_of(item) else { continue };
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        let place = if is(b"gzip") || is(b"x-gzip") {
            &mut weights[Coding::Gzip as usize]
        } else if is(b"br") {
            &mut weights[Coding::Br as usize]
        } else if is(b"zstd") {
            &mut weights[Coding::Zstd as usize]
        } else if is(b"identity") {
            &mut identity
        } else if name == b"*" {
            &mut any
        } else {
            continue;
        };
        // Said twice, the stricter word counts.
        *place = Some(place.map_or(weight, |before: u16| before.min(weight)));
    }
    let of = |coding: &Coding| weights[*coding as usize].or(any).unwrap_or(0);
    let mut best = None;
    for coding in offered {
        let weight = of(coding);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((*coding, weight));
        }
    }
    // Without its name `identity` is acceptable, and nobody prefers it.
    best.filter(|(_, weight)| *weight >= identity.unwrap_or(0)).map(|(coding, _)| coding)
}

/// A coding and its weight; none for what cannot be read, which asks for nothing.
fn item_of(item: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let mut weight = FULL;
    for parameter in parts {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        if parameter[..at].trim_ascii().eq_ignore_ascii_case(b"q") {
            weight = qvalue(parameter[at + 1..].trim_ascii())?;
        }
    }
    Some((name, weight))
}

/// `0`, `0.5`, `1.000` in thousandths.
fn qvalue(text: &[u8]) -> Option<u16> {
    let (whole, rest) = text.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    let mut value = u16::from(whole.checked_sub(b'0').filter(|digit| *digit <= 1)?) * FULL;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        value += u16::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?) * unit;
    }
    (value <= FULL).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_rfc_9110_has_it() {
        use Coding::{Br, Gzip, Zstd};
        let all = [Zstd, Br, Gzip];
        for (fields, expected) in [
            (vec![], None),
            (vec![""], None),
            (vec!["gzip"], Some(Gzip)),
            (vec!["gzip, deflate, br, zstd"], Some(Zstd)),
            (vec!["gzip, deflate", "br"], Some(Br)),
            (vec!["GZIP;Q=1.0, br;q=0.999"], Some(Gzip)),
            (vec!["x-gzip"], Some(Gzip)),
            (vec!["gzip;q=0"], None),
            (vec!["gzip;q=0.001"], Some(Gzip)),
            (vec!["*"], Some(Zstd)),
            (vec!["zstd;q=0, *;q=0.5"], Some(Br)),
            (vec!["*;q=0, gzip"], Some(Gzip)),
            (vec!["identity, gzip;q=0.5"], None),
            (vec!["identity;q=0.5, gzip;q=0.5"], Some(Gzip)),
            (vec!["identity;q=0, gzip;q=0.1"], Some(Gzip)),
            (vec!["deflate, compress, gzipx"], None),
            (vec!["gzip;q=2"], None),
            (vec!["gzip;q=0.1234"], None),
            (vec!["gzip;q=-1"], None),
            (vec!["gzip;q"], None),
            (vec!["gzip;level=1"], Some(Gzip)),
            (vec!["gzip, gzip;q=0"], None),
            (vec![" ,, br ; q = 0.4 ,gzip;q=0.2"], Some(Br)),
        ] {
            let given = fields.iter().map(|field| field.as_bytes());
            assert_eq!(choose(&all, given), expected, "{fields:?}");
        }
        assert_eq!(choose(&[Gzip], [b"br, gzip;q=0.2".as_slice()].into_iter()), Some(Gzip));
    }
}
