//! Writes small MaxMind DB files, by the published format: a tree of address bits, values, metadata.

use std::net::IpAddr;

/// A value of a database.
#[derive(Clone, Debug)]
pub enum Value {
    /// Keys and values.
    Map(Vec<(&'static str, Value)>),
    /// A list.
    List(Vec<Value>),
    /// A text.
    Text(&'static str),
    /// A floating-point number.
    Double(f64),
    /// A whole number of 16 bits.
    Short(u16),
    /// A whole number of 32 bits.
    Number(u32),
    /// A whole number of 64 bits.
    Long(u64),
}

/// A database of these networks: address, number of leading bits, value. IPv4 and IPv6 may be mixed.
pub fn write(networks: &[(IpAddr, u8, Value)]) -> Vec<u8> {
    let mut tree = Tree { nodes: vec![[Child::Nothing; 2]] };
    let mut data = Vec::new();
    for (address, bits, value) in networks {
        let (address, bits) = match address {
            // IPv4 is the first part of the IPv6 tree.
            IpAddr::V4(v4) => (u128::from(v4.to_bits()), bits + 96),
            IpAddr::V6(v6) => (v6.to_bits(), *bits),
        };
        tree.insert(address, bits, data.len());
        encode(value, &mut data);
    }
    let count = tree.nodes.len();
    let mut out = Vec::new();
    for child in tree.nodes.iter().flatten() {
        let record = match child {
            Child::Nothing => count,
            Child::Node(node) => *node,
            Child::Data(offset) => count + 16 + offset,
        };
        out.extend_from_slice(&(record as u32).to_be_bytes()[1..]);
    }
    out.extend_from_slice(&[0; 16]);
    out.extend_from_slice(&data);
    out.extend_from_slice(b"\xab\xcd\xefMaxMind.com");
    let metadata = Value::Map(vec![
        ("node_count", Value::Number(count as u32)),
        ("record_size", Value::Short(24)),
        ("ip_version", Value::Short(6)),
        ("database_type", Value::Text("Test-City")),
        ("languages", Value::List(vec![Value::Text("en")])),
        ("binary_format_major_version", Value::Short(2)),
        ("binary_format_minor_version", Value::Short(0)),
        ("build_epoch", Value::Long(1_700_000_000)),
        ("description", Value::Map(vec![("en", Value::Text("a test"))])),
    ]);
    encode(&metadata, &mut out);
    out
}

#[derive(Clone, Copy)]
enum Child {
    Nothing,
    Node(usize),
    Data(usize),
}

struct Tree {
    nodes: Vec<[Child; 2]>,
}

impl Tree {
    fn insert(&mut self, address: u128, bits: u8, data: usize) {
        let mut at = 0;
        for depth in 0..bits {
            let side = (address >> (127 - depth) & 1) as usize;
            if depth + 1 == bits {
                self.nodes[at][side] = Child::Data(data);
                return;
            }
            at = if let Child::Node(next) = self.nodes[at][side] {
                next
            } else {
                self.nodes.push([Child::Nothing; 2]);
                let next = self.nodes.len() - 1;
                self.nodes[at][side] = Child::Node(next);
                next
            };
        }
    }
}

/// As many bytes as the number needs.
fn whole(kind: u8, number: u64, head: &dyn Fn(u8, usize, &mut Vec<u8>), out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let bytes = &bytes[number.leading_zeros() as usize / 8..];
    head(kind, bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    // Type and length; types from 8 on stand in a byte of their own.
    let head = |kind: u8, length: usize, out: &mut Vec<u8>| {
        let (first, rest) = if length < 29 { (length as u8, None) } else { (29, Some((length - 29) as u8)) };
        let (kind, extended) = if kind < 8 { (kind, None) } else { (0, Some(kind - 7)) };
        out.push(kind << 5 | first);
        out.extend(extended);
        out.extend(rest);
    };
    match value {
        Value::Text(text) => {
            head(2, text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Double(number) => {
            head(3, 8, out);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Short(number) => whole(5, u64::from(*number), &head, out),
        Value::Number(number) => whole(6, u64::from(*number), &head, out),
        Value::Long(number) => whole(9, *number, &head, out),
        Value::Map(entries) => {
            head(7, entries.len(), out);
            for (key, value) in entries {
                encode(&Value::Text(key), out);
                encode(value, out);
            }
        }
        Value::List(values) => {
            head(11, values.len(), out);
            for value in values {
                encode(value, out);
            }
        }
    }
}
