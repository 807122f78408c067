//! Every transformation on any bytes: no panic, and the promises of `Transformation::apply`.
//!
//! The first byte picks the transformation, or, from 128 on, a chain of three as rules have them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis_decode::Transformation;

fuzz_target!(|data: &[u8]| {
    let Some((&selector, input)) = data.split_first() else { return };
    let pick = |n: usize| Transformation::ALL[n % Transformation::ALL.len()];
    if selector < 128 {
        check(pick(selector.into()), input);
    } else if let [second, third, input @ ..] = input {
        let mut value = input.to_vec();
        for n in [selector, *second, *third] {
            value = check(pick(n.into()), &value);
        }
    }
});

fn check(transformation: Transformation, input: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let acted = transformation.apply(input, &mut out);
    assert!(out.starts_with(b"before"));
    let result = out.split_off(6);
    if !acted {
        assert!(result.is_empty(), "{transformation} wrote and returned false");
        return input.to_vec();
    }
    assert_ne!(result, input, "{transformation} returned true without a change");
    assert!(result.len() <= transformation.length_max(input.len()), "{transformation} is out of bounds");
    assert!(
        input.is_empty() || input.iter().any(|&b| transformation.triggers().contains(b)),
        "{transformation} acted without a trigger"
    );
    result
}
