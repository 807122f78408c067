//! Numbers, strings and typed values as HAProxy's SPOP writes them (`doc/SPOE.txt` of HAProxy, section 3.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes that a number takes at most.
const NUMBER_BYTES_MAX: usize = 10;

/// The input ends early, or is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

/// A value with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// Signed and unsigned, of 32 and 64 bits.
    Number(u64),
    Address(IpAddr),
    /// A string, or bytes.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes of a string; empty for what is none.
    pub(super) fn bytes(self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Address(_) => b"",
        }
    }

    pub(super) fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Null | Value::Bool(_) | Value::Address(_) | Value::Bytes(_) => None,
        }
    }

    pub(super) fn address(self) -> Option<IpAddr> {
        match self {
            Value::Address(address) => Some(address.to_canonical()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Bytes(_) => None,
        }
    }
}

/// Reads values one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Invalid> {
        let (first, rest) = self.0.split_first().ok_or(Invalid)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Invalid> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Invalid)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Four bits in the first byte, then seven in each.
    pub(super) fn number(&mut self) -> Result<u64, Invalid> {
        let first = u64::from(self.byte()?);
        if first < 240 {
            return Ok(first);
        }
        let (mut number, mut shift) = (first, 4);
        for _ in 1..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            let part = u64::from(byte).checked_shl(shift).ok_or(Invalid)?;
            if part >> shift != u64::from(byte) {
                return Err(Invalid);
            }
            number = number.checked_add(part).ok_or(Invalid)?;
            shift += 7;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(Invalid)
    }

    /// A length, and so many bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Invalid> {
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| Invalid)?)
    }

    pub(super) fn value(&mut self) -> Result<Value<'a>, Invalid> {
        let kind = self.byte()?;
        Ok(match kind & 0x0f {
            0 => Value::Null,
            1 => Value::Bool(kind & 0x10 != 0),
            2..=5 => Value::Number(self.number()?),
            6 => {
                let bytes: [u8; 4] = self.take(4)?.try_into().map_err(|_| Invalid)?;
                Value::Address(IpAddr::V4(Ipv4Addr::from(bytes)))
            }
            7 => {
                let bytes: [u8; 16] = self.take(16)?.try_into().map_err(|_| Invalid)?;
                Value::Address(IpAddr::V6(Ipv6Addr::from(bytes)))
            }
            8 | 9 => Value::Bytes(self.string()?),
            _ => return Err(Invalid),
        })
    }
}

/// Appends a number.
pub(super) fn write_number(number: u64, out: &mut Vec<u8>) {
    if number < 240 {
        return out.push(number as u8);
    }
    out.push(number as u8 | 0xf0);
    let mut rest = (number - 240) >> 4;
    while rest >= 128 {
        out.push(rest as u8 | 0x80);
        rest = (rest - 128) >> 7;
    }
    out.push(rest as u8);
}

/// Appends a string without its type.
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_number(text.len() as u64, out);
    out.extend_from_slice(text);
}

/// Appends a string with its type.
pub(super) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(8);
    write_string(text, out);
}

/// Appends an unsigned number of 32 bits with its type.
pub(super) fn write_u32(number: u32, out: &mut Vec<u8>) {
    out.push(3);
    write_number(number.into(), out);
}

/// Appends a signed number of 64 bits with its type.
pub(super) fn write_i64(number: i64, out: &mut Vec<u8>) {
    out.push(4);
    write_number(number as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        let edges = [0, 1, 239, 240, 241, 2287, 2288, 264_431, 264_432, u64::from(u32::MAX), u64::MAX];
        for number in edges {
            let mut out = Vec::new();
            write_number(number, &mut out);
            let mut reader = Reader(&out);
            assert_eq!((reader.number(), reader.is_empty()), (Ok(number), true), "{out:x?}");
        }
        // The examples of the specification.
        let written = |number| {
            let mut out = Vec::new();
            write_number(number, &mut out);
            out
        };
        assert_eq!(written(2287), [0xff, 0x7f]);
        assert_eq!(written(2288), [0xf0, 0x80, 0x00]);
    }

    #[test]
    fn hostile_numbers_and_lengths() {
        for bytes in [&[0xff; 11][..], &[0xf0], &[0xf0, 0x80], b""] {
            assert_eq!(Reader(bytes).number(), Err(Invalid), "{bytes:x?}");
        }
        // A string that is longer than what there is, up to what no machine has.
        let mut long = Vec::new();
        write_number(u64::MAX, &mut long);
        assert_eq!(Reader(&long).string(), Err(Invalid));
        assert_eq!(Reader(&[5, b'a']).string(), Err(Invalid));
        assert_eq!(Reader(&[0x0a]).value(), Err(Invalid));
        assert_eq!(Reader(&[6, 1, 2]).value(), Err(Invalid));
    }
}
