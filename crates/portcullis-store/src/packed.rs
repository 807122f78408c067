//! Storage format of a record: its variables one behind the other, in order, in one piece of memory.
//!
//! ```text
//! variable = name value
//! name     = 0 to 7: one of `BUILT_IN` | 64, length, bytes
//! value    = 0, number | 1, length, bytes | 2: the record's key | 3: the record's name
//! ```
//!
//! Numbers and lengths are variable-length: seven bits a byte, the lowest first; signs go into the lowest
//! bit.

use portcullis_engine::{RecordId, Value};

/// Names that nearly every record has.
const BUILT_IN: [&[u8]; 8] = [
    b"__expire_KEY",
    b"KEY",
    b"TIMEOUT",
    b"__key",
    b"__name",
    b"CREATE_TIME",
    b"UPDATE_COUNTER",
    b"LAST_UPDATE_TIME",
];
const OWN_NAME: u8 = 64;

/// Appends a variable.
pub(crate) fn push(out: &mut Vec<u8>, id: RecordId<'_>, name: &[u8], value: Value<'_>) {
    match BUILT_IN.iter().position(|known| *known == name) {
        Some(at) => out.push(at as u8),
        None => {
            out.push(OWN_NAME);
            push_bytes(out, name);
        }
    }
    match value {
        Value::Int(number) => {
            out.push(0);
            push_number(out, ((number << 1) ^ (number >> 63)) as u64);
        }
        Value::Text(text) if text == id.key => out.push(2),
        Value::Text(text) if text == id.name => out.push(3),
        Value::Text(text) => {
            out.push(1);
            push_bytes(out, text);
        }
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The variables of a record in their order. Ends early at bytes that make no sense.
#[derive(Clone, Copy)]
pub(crate) struct Variables<'a> {
    id: RecordId<'a>,
    rest: &'a [u8],
}

impl<'a> Variables<'a> {
    pub(crate) fn new(id: RecordId<'a>, packed: &'a [u8]) -> Variables<'a> {
        Variables { id, rest: packed }
    }

    fn read(&mut self) -> Option<(&'a [u8], Value<'a>)> {
        let name = match take_byte(&mut self.rest)? {
            OWN_NAME => take_bytes(&mut self.rest)?,
            known => *BUILT_IN.get(usize::from(known))?,
        };
        let value = match take_byte(&mut self.rest)? {
            0 => {
                let number = take_number(&mut self.rest)?;
                Value::Int((number >> 1) as i64 ^ -((number & 1) as i64))
            }
            1 => Value::Text(take_bytes(&mut self.rest)?),
            2 => Value::Text(self.id.key),
            3 => Value::Text(self.id.name),
            _ => return None,
        };
        Some((name, value))
    }
}

impl<'a> Iterator for Variables<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_none() {
            self.rest = &[];
        }
        read
    }
}

/// True if `packed` can be read to its end.
pub(crate) fn is_whole(id: RecordId<'_>, packed: &[u8]) -> bool {
    let mut variables = Variables::new(id, packed);
    while !variables.rest.is_empty() {
        if variables.read().is_none() {
            return false;
        }
    }
    true
}

pub(crate) fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    Some(*first)
}

pub(crate) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

pub(crate) fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(rest)?).ok()?;
    let (bytes, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: RecordId<'_> = RecordId { name: b"ip", key: b"192.0.2.1" };

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            variables in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..20), any::<Option<i64>>(), ".{0,200}"), 0..20)
        ) {
            let value = |(_, number, text): &'_ (Vec<u8>, Option<i64>, String)| (*number, text.clone());
            let mut packed = Vec::new();
            for (name, number, text) in &variables {
                push(&mut packed, ID, name, number.map_or(Value::Text(text.as_bytes()), Value::Int));
            }
            prop_assert!(is_whole(ID, &packed));
            let read: Vec<_> = Variables::new(ID, &packed).collect();
            prop_assert_eq!(read.len(), variables.len());
            for (read, written) in read.iter().zip(&variables) {
                let (number, text) = value(written);
                prop_assert_eq!(read.0, written.0.as_slice());
                prop_assert_eq!(read.1, number.map_or(Value::Text(text.as_bytes()), Value::Int));
            }
        }

        #[test]
        fn any_bytes_can_be_read(packed in prop::collection::vec(any::<u8>(), 0..100)) {
            let read = Variables::new(ID, &packed).count();
            prop_assert!(read <= packed.len());
        }
    }

    #[test]
    fn usual_variables_are_small() {
        let mut packed = Vec::new();
        for (name, value) in portcullis_engine::new_record(ID, 3600, 1_700_000_000) {
            push(&mut packed, ID, name, value);
        }
        assert!(packed.len() < 45, "{}", packed.len());
    }
}
