//! # `trim`, `trimLeft`, `trimRight`
//!
//! Drops white space (blank, tab, line feed, vertical tab, form feed, carriage return) at both ends, at the
//! start, or at the end.
//!
//! Result: at most as long as the input. Idempotent.
//! Example: `\t a b\n` becomes `a b`.

use crate::scan::{Table, is_space};
use portcullis_types::ByteSet;

pub(crate) static TRIGGERS: Table = Table::of(ByteSet::range(b'\t', b'\r').with(b' '));

pub(crate) fn trim(input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(without_tail(without_head(input)));
}

pub(crate) fn trim_left(input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(without_head(input));
}

pub(crate) fn trim_right(input: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(without_tail(input));
}

fn without_head(mut text: &[u8]) -> &[u8] {
    while let [first, tail @ ..] = text
        && is_space(*first)
    {
        text = tail;
    }
    text
}

fn without_tail(mut text: &[u8]) -> &[u8] {
    while let [head @ .., last] = text
        && is_space(*last)
    {
        text = head;
    }
    text
}
