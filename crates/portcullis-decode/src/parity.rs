//! # `parityEven7bit`, `parityOdd7bit`, `parityZero7bit`
//!
//! Sets the high bit of every byte as a parity bit (even or odd), or clears it. As in ModSecurity the parity
//! is that of all eight bits of the input byte: where the high bit was set, the result's parity is not what
//! the name says.
//!
//! Result: as long as the input. `parityZero7bit` is idempotent.
//! Example: `parityEven7bit` turns `a` (61) into `E1`.

use crate::scan::Table;
use portcullis_types::ByteSet;

pub(crate) static EVEN_TRIGGERS: Table = Table::of(changed_by(true));
pub(crate) static ODD_TRIGGERS: Table = Table::of(changed_by(false));

pub(crate) fn even(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(|&b| with_parity(b, true)));
}

pub(crate) fn odd(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(|&b| with_parity(b, false)));
}

pub(crate) fn zero(clean: &[u8], rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(clean);
    out.extend(rest.iter().map(|&b| b & 0x7f));
}

const fn with_parity(byte: u8, even: bool) -> u8 {
    let ones_are_odd = byte.count_ones() % 2 == 1;
    if ones_are_odd == even { byte | 0x80 } else { byte & 0x7f }
}

const fn changed_by(even: bool) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    let mut i = 0;
    while i < 256 {
        if with_parity(i as u8, even) != i as u8 {
            set = set.with(i as u8);
        }
        i += 1;
    }
    set
}
