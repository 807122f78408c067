//! Sets of file descriptors, built as the compiler of Protocol Buffers writes them.

/// A field of a whole number.
pub fn whole(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// A field of bytes: a text, a message, several numbers.
pub fn bytes(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A field of four bytes.
pub fn fixed32(number: u64, value: u32) -> Vec<u8> {
    [varint(number << 3 | 5), value.to_le_bytes().to_vec()].concat()
}

/// A field of eight bytes.
pub fn fixed64(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// The set of these files.
pub fn set(files: &[Vec<u8>]) -> Vec<u8> {
    files.iter().flat_map(|file| bytes(1, file)).collect()
}

/// A file with its name, package and syntax, and what is declared in it.
pub fn file(name: &str, package: &str, syntax: &str, declared: &[Vec<u8>]) -> Vec<u8> {
    [bytes(1, name), bytes(2, package), declared.concat(), bytes(12, syntax)].concat()
}

/// A message in a file. In a message it has the number 3.
pub fn message(name: &str, declared: &[Vec<u8>]) -> Vec<u8> {
    bytes(4, inner(name, declared))
}

pub fn inner(name: &str, declared: &[Vec<u8>]) -> Vec<u8> {
    [bytes(1, name), declared.concat()].concat()
}

/// A field: label (1 optional, 2 required, 3 repeated), type by its number, and the name of that type.
pub fn member(name: &str, number: u64, label: u64, kind: u64, type_name: &str) -> Vec<u8> {
    let named = if type_name.is_empty() { Vec::new() } else { bytes(6, type_name) };
    bytes(2, [bytes(1, name), whole(3, number), whole(4, label), whole(5, kind), named].concat())
}

/// An enum in a file.
pub fn of_enum(name: &str, values: &[i32]) -> Vec<u8> {
    let value =
        |value: &i32| bytes(2, [bytes(1, format!("V{value}")), whole(2, *value as i64 as u64)].concat());
    bytes(5, [bytes(1, name), values.iter().flat_map(value).collect()].concat())
}

/// A service, with the names of its methods, what they take, and whether they take a stream.
pub fn service(name: &str, methods: &[(&str, &str, bool)]) -> Vec<u8> {
    let method = |(name, input, streams): &(&str, &str, bool)| {
        bytes(
            2,
            [bytes(1, name), bytes(2, input), bytes(3, ".shop.v1.Reply"), whole(5, u64::from(*streams))]
                .concat(),
        )
    };
    bytes(6, [bytes(1, name), methods.iter().flat_map(method).collect()].concat())
}

/// What this declares:
///
/// ```proto
/// syntax = "proto3";
/// package shop.v1;
/// message Reply {}
/// message Item { string sku = 1; uint32 quantity = 2; string note = 3; }
/// enum Status { V0 = 0; V1 = 1; }
/// message Order {
///   string customer = 1;
///   repeated Item items = 2;
///   Status status = 3;
///   map<string, Item> labels = 4;
///   repeated int32 sizes = 5;
///   bool gift = 6;
///   double price = 7;
///   bytes blob = 8;
///   sint32 delta = 9;
///   Order parent = 10;
///   repeated fixed32 marks = 11;
///   repeated Status history = 12;
/// }
/// service Orders {
///   rpc Place(Order) returns (Reply);
///   rpc Upload(stream Item) returns (Reply);
///   rpc Old(shop.old.Legacy) returns (Reply);
/// }
/// ```
///
/// ```proto
/// syntax = "proto2";
/// package shop.old;
/// enum Color { V-1 = -1; V2 = 2; }
/// message Legacy {
///   required string name = 1;
///   optional Color color = 2;
///   repeated Color colors = 3 [packed = true];
///   extensions 100 to 200;
/// }
/// extend Legacy { optional int64 extra = 100; }
/// ```
pub fn shop() -> Vec<u8> {
    let entry = inner(
        "LabelsEntry",
        &[member("key", 1, 1, 9, ""), member("value", 2, 1, 11, ".shop.v1.Item"), bytes(7, whole(7, 1))],
    );
    let order = message(
        "Order",
        &[
            member("customer", 1, 1, 9, ""),
            member("items", 2, 3, 11, ".shop.v1.Item"),
            member("status", 3, 1, 14, ".shop.v1.Status"),
            member("labels", 4, 3, 11, ".shop.v1.Order.LabelsEntry"),
            member("sizes", 5, 3, 5, ""),
            member("gift", 6, 1, 8, ""),
            member("price", 7, 1, 1, ""),
            member("blob", 8, 1, 12, ""),
            member("delta", 9, 1, 17, ""),
            member("parent", 10, 1, 11, ".shop.v1.Order"),
            member("marks", 11, 3, 7, ""),
            member("history", 12, 3, 14, ".shop.v1.Status"),
            bytes(3, entry),
        ],
    );
    let item = message(
        "Item",
        &[member("sku", 1, 1, 9, ""), member("quantity", 2, 1, 13, ""), member("note", 3, 1, 9, "")],
    );
    let methods = [
        ("Place", ".shop.v1.Order", false),
        ("Upload", ".shop.v1.Item", true),
        ("Old", ".shop.old.Legacy", false),
    ];
    let new = [message("Reply", &[]), item, of_enum("Status", &[0, 1]), order, service("Orders", &methods)];
    let legacy = message(
        "Legacy",
        &[
            member("name", 1, 2, 9, ""),
            member("color", 2, 1, 14, ".shop.old.Color"),
            member("colors", 3, 3, 14, ".shop.old.Color"),
            bytes(5, [whole(1, 100), whole(2, 201)].concat()),
        ],
    );
    let extension =
        [bytes(1, "extra"), bytes(2, ".shop.old.Legacy"), whole(3, 100), whole(4, 1), whole(5, 3)];
    let old = [of_enum("Color", &[-1, 2]), legacy, bytes(7, extension.concat())];
    set(&[file("old.proto", "shop.old", "", &old), file("shop.proto", "shop.v1", "proto3", &new)])
}
