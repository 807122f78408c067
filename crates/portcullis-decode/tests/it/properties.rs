//! Properties that hold for every transformation and any bytes.

use portcullis_decode::{Transformation, is_escaped, residue};
use portcullis_types::ByteSet;
use proptest::collection::vec;
use proptest::prelude::*;

/// Pieces that transformations look for, between arbitrary bytes.
const PIECES: &[&[u8]] = &[
    b"%41",
    b"%u0041",
    b"%uff1c",
    b"+",
    b"\\x41",
    b"\\u0041",
    b"\\101",
    b"\\",
    b"0x41",
    b"&lt;",
    b"&#60",
    b"&#x3c;",
    b"/*",
    b"*/",
    b"<!--",
    b"-->",
    b"--",
    b"#",
    b"/",
    b"../",
    b"./",
    b"//",
    b"\\..\\",
    b" ",
    b"\t",
    b"\0",
    b"\xa0",
    b"QQ==",
    b"\xc3\xa9",
    b"\xc0\xaf",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x82",
    b"\"",
    b"^",
    b",",
    b"(",
    b"Ab",
];

fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..8),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn result(transformation: Transformation, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if transformation.apply(input, &mut out) { out } else { input.to_vec() }
}

/// Every byte, every pair of bytes and every piece, each of them alone and many times over, after a text of
/// up to three letters.
#[test]
fn no_result_is_longer_than_its_bound() {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let pairs = (0..=u16::MAX).map(|pair| pair.to_be_bytes().to_vec());
    let pieces = PIECES.iter().map(|piece| piece.to_vec());
    let (mut out, mut input) = (Vec::new(), Vec::new());
    for piece in bytes.chain(pairs).chain(pieces) {
        for (before, count) in [(0, 1), (1, 1), (0, 3), (2, 3), (3, 40)] {
            input.clear();
            input.extend_from_slice(&b"aaa"[..before]);
            (0..count).for_each(|_| input.extend_from_slice(&piece));
            for &t in Transformation::ALL {
                out.clear();
                let length = if t.apply(&input, &mut out) { out.len() } else { input.len() };
                assert!(length <= t.length_max(input.len()), "{t} of {}: {length}", input.escape_ascii());
                assert!(t.input_length_min(length) <= input.len(), "{t} of {}", input.escape_ascii());
                let most = input.len() * t.growth() as usize + 20;
                assert!(length <= most, "{t} grows more");
            }
        }
    }
}

/// A bound that no input reaches lets the prefilter look at values that cannot match.
#[test]
fn bounds_are_reached() {
    for &t in Transformation::ALL {
        let reached = [&b"QUJD"[..], b"a", b"\xff", b"\xc0\x80"].iter().any(|piece| {
            let input = piece.repeat(12);
            result(t, &input).len() == t.length_max(input.len())
        });
        // Twenty digits are those of lengths that no memory holds.
        assert!(reached || t == Transformation::Length, "{t}");
    }
}

const IDEMPOTENT: &[Transformation] = &[
    Transformation::CompressWhitespace,
    Transformation::Lowercase,
    Transformation::ParityZero7bit,
    Transformation::RemoveNulls,
    Transformation::RemoveWhitespace,
    Transformation::ReplaceNulls,
    Transformation::Trim,
    Transformation::TrimLeft,
    Transformation::TrimRight,
    Transformation::Uppercase,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apply_keeps_its_promises(input in any_input()) {
        for &t in Transformation::ALL {
            let mut out = b"before".to_vec();
            let acted = t.apply(&input, &mut out);
            prop_assert!(out.starts_with(b"before"));
            if acted {
                prop_assert_ne!(&out[6..], &input[..], "{} is true without a change", t);
                prop_assert!(out.len() - 6 <= t.length_max(input.len()), "{} is too long", t);
            } else {
                prop_assert_eq!(out.len(), 6, "{} is false and wrote", t);
            }
            if !input.iter().any(|&b| t.triggers().contains(b)) && !input.is_empty() {
                prop_assert!(!acted, "{} acts without a trigger", t);
            }
            let may_have = input.iter().fold(t.adds(), |set, byte| {
                set.with(*byte).with(byte.to_ascii_lowercase()).with(byte.to_ascii_uppercase())
            });
            prop_assert!(out[6..].iter().all(|&byte| may_have.contains(byte)), "{} adds other bytes", t);
        }
    }

    #[test]
    fn residues_outlive_what_keeps_them(input in any_input(), chain in vec(prop::sample::select(Transformation::ALL), 1..6)) {
        let (mut left, mut later) = (Vec::new(), Vec::new());
        let mut text = input;
        residue(&text, &mut left);
        if !is_escaped(&text) {
            for t in chain.into_iter().filter(|t| t.keeps_residue()) {
                text = result(t, &text);
                prop_assert!(!is_escaped(&text), "{} makes more", t);
                residue(&text, &mut later);
                prop_assert!(later.eq_ignore_ascii_case(&left), "{} makes another", t);
            }
        }
    }

    #[test]
    fn idempotent_where_documented(input in any_input()) {
        for &t in IDEMPOTENT {
            let once = result(t, &input);
            prop_assert_eq!(&result(t, &once), &once, "{}", t);
        }
    }

    #[test]
    fn effects_are_what_they_are_said_to_be(input in any_input()) {
        for &t in Transformation::ALL {
            let made = result(t, &input);
            let bytes = ByteSet::of(&input);
            if let Some(effect) = t.effect() {
                prop_assert!(!ByteSet::of(&made).intersects(&effect.removes), "{t}");
                let may_replace = bytes.intersects(&effect.replaces);
                let is_known = |byte: &u8| {
                    bytes.contains(*byte)
                        || bytes.contains(byte.to_ascii_uppercase())
                        || may_replace && *byte == effect.by
                };
                prop_assert!(made.iter().all(is_known), "{t}");
            }
            if let Some((in_doubt, sign)) = t.sign() {
                let acting = t.triggers().intersection(in_doubt.complement());
                prop_assert!(bytes.intersects(&acting) || sign.is_in(&input) || made == input, "{t}");
            }
        }
    }

    #[test]
    fn decoding_undoes_encoding(input in vec(any::<u8>(), 0..200)) {
        use Transformation::*;
        for (encode, decode) in
            [(Base64Encode, Base64Decode), (Base64Encode, Base64DecodeExt), (HexEncode, HexDecode), (UrlEncode, UrlDecode)]
        {
            prop_assert_eq!(&result(decode, &result(encode, &input)), &input, "{}", encode);
        }
    }
}

#[test]
fn a_transformation_without_triggers_leaves_every_such_byte_alone() {
    for &t in Transformation::ALL {
        let harmless: Vec<u8> = t.triggers().complement().iter().collect();
        let mut out = Vec::new();
        assert!(harmless.is_empty() || !t.apply(&harmless, &mut out), "{t}");
    }
}

#[test]
fn large_inputs_take_linear_time() {
    // Quadratic work on 4 MB would take minutes.
    for pattern in
        [&b"/../"[..], b"a/", b"../", b"&#x", b"%u00", b"\\", b"/*", b"<!--", b"-", b"0x", b"\xe2\x82"]
    {
        let input = pattern.repeat((4 << 20) / pattern.len());
        for &t in Transformation::ALL {
            let mut out = Vec::new();
            t.apply(&input, &mut out);
        }
    }
}
