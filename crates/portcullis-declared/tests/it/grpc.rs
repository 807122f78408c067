//! Calls of gRPC beside a set of file descriptors.

use std::io::Write as _;
use std::time::{Duration, Instant};

use portcullis_declared::{Api, Aspect, Deviation, FieldType, Kind, Sent, Settings, limits};

use crate::descriptors::{
    bytes, file, fixed32, fixed64, inner, member, message, of_enum, service, set, shop, varint, whole,
};
use crate::{deviations, told};

const NONE: [&str; 0] = [];
const ORDER: &str = "POST /shop.v1.Orders/Place";

fn compile(content: &[u8]) -> Result<Api, Vec<String>> {
    Api::compile_file(content, &Settings::default())
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn api(content: &[u8]) -> Api {
    compile(content).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

fn of_type(api: &Api, line: &str, content_type: &str, body: &[u8]) -> Vec<Deviation> {
    deviations(api, line, &[("Content-Type", content_type)], Sent::Whole(body))
}

fn of_message(api: &Api, line: &str, message: &[u8]) -> Vec<String> {
    told(&of_type(api, line, "application/grpc", &frame(message)))
}

#[test]
fn services_and_methods() {
    let api = api(&shop());
    assert_eq!(api.summary(), "1 service with 3 methods");
    assert_eq!(api.warnings(), []);
    let of = |line: &str| told(&of_type(&api, line, "application/grpc", &frame(b"")));
    assert_eq!(of(ORDER), NONE);
    for line in [
        "POST /shop.v1.Admin/Place",
        "POST /shop.v1.Orders/place",
        "POST /shop.v1.Orders/Delete",
        "POST /shop.v1.Orders/Place/",
        "POST /shop.v1.Orders/%50lace",
        "POST //shop.v1.Orders/Place",
        "POST /",
        "GET /health",
    ] {
        let found = of_type(&api, line, "application/grpc", &frame(b""));
        assert_eq!(found.len(), 1, "{line}: {:?}", told(&found));
        assert_eq!((found[0].kind, found[0].aspect), (Kind::UnknownPath, Aspect::UnknownPath), "{line}");
    }
    assert_eq!(of("GET /shop.v1.Orders/Place"), ["method: must be POST"]);
    assert_eq!(of("OPTIONS /shop.v1.Orders/Place"), NONE, "browsers ask before calls");
    assert_eq!(
        of("POST /shop.v1.Orders/Place?debug=1"),
        ["query:debug is not declared: calls of gRPC have no query"]
    );
}

#[test]
fn values_of_fields() {
    let api = api(&shop());
    let item = [bytes(1, "pen"), whole(2, 3), bytes(3, "red")].concat();
    let right = [
        bytes(1, "Ann"),
        bytes(2, &item),
        bytes(2, b""),
        whole(3, 7),
        bytes(4, [bytes(1, "k"), bytes(2, &item)].concat()),
        whole(5, 1),
        bytes(5, [varint(1), varint(u64::MAX), varint(300)].concat()),
        whole(6, 1),
        fixed64(7, 1),
        bytes(8, b"\xFF\x00"),
        whole(9, 5),
        bytes(10, bytes(10, bytes(1, "deep"))),
        fixed32(11, 9),
        bytes(11, [1, 0, 0, 0, 2, 0, 0, 0]),
        bytes(12, [varint(0), varint(99)].concat()),
    ];
    assert_eq!(of_message(&api, ORDER, &right.concat()), NONE);
    for (message, expected) in [
        (whole(13, 1), "json:13 the message has the field 13, which is not declared"),
        (whole(1, 1), "json:customer `customer` must be a text, is sent as a variable-length number"),
        (bytes(1, b"\xFF"), "json:customer `customer` must be text in UTF-8"),
        (
            [bytes(2, b""), bytes(2, b""), bytes(2, b""), bytes(2, bytes(3, b"\xC0\xAF"))].concat(),
            "json:items.note `items[3].note` must be text in UTF-8",
        ),
        (
            [bytes(2, b""), bytes(2, whole(9, 1))].concat(),
            "json:items.9 `items[1]` has the field 9, which is not declared",
        ),
        (
            whole(2, 1),
            "json:items `items[0]` must be a message `shop.v1.Item`, is sent as a variable-length number",
        ),
        (bytes(2, b"\x0A\x05ab"), "json:items `items[0]` is no message of Protocol Buffers"),
        (
            bytes(3, b"1"),
            "json:status `status` must be a value of `shop.v1.Status`, is sent as bytes with their length",
        ),
        (
            bytes(4, bytes(2, whole(1, 1))),
            "json:labels.value.sku `labels[0].value.sku` must be a text, is sent as a variable-length number",
        ),
        (bytes(4, bytes(3, "x")), "json:labels.3 `labels[0]` has the field 3, which is not declared"),
        (bytes(5, b"\x01\x80"), "json:sizes `sizes[0]` must be several numbers, and ends inside one"),
        (whole(5, 1 << 40), "json:sizes `sizes[0]` must be a number of 32 bits, and is longer"),
        (bytes(5, varint(1 << 40)), "json:sizes `sizes[0]` must be a number of 32 bits, and is longer"),
        (whole(6, 2), "json:gift `gift` must be true or false, is another number"),
        (bytes(6, b"\x01"), "json:gift `gift` must be true or false, is sent as bytes with their length"),
        (fixed32(7, 1), "json:price `price` must be a number with a fraction, is sent as four bytes"),
        (whole(9, u64::MAX), "json:delta `delta` must be a number of 32 bits, and is longer"),
        (bytes(11, b"\x01\x00\x00"), "json:marks `marks[0]` must be several numbers, and ends inside one"),
        (
            bytes(10, bytes(10, bytes(2, whole(1, 1)))),
            "json:parent.parent.items.sku `parent.parent.items[0].sku` must be a text, is sent as a variable-length number",
        ),
    ] {
        let found: Vec<String> = of_message(&api, ORDER, &message);
        assert_eq!(found.first().map(String::as_str), Some(expected), "{message:x?}");
    }
    // A group, and what is no field, keep what follows from being read.
    for (message, rule) in [
        (vec![0x6B, 0x6C], "has a group"),
        (vec![0x00, 0x01], "has a field whose number no message declares"),
        (vec![0x0E], "is no message of Protocol Buffers"),
    ] {
        let expected = [
            format!("json: the message {rule}"),
            format!("json: the message {rule}: its fields cannot be read"),
        ];
        assert_eq!(of_message(&api, ORDER, &message), expected);
    }
}

/// Declared with the older syntax: enums are closed, fields may be required, and others may be added.
#[test]
fn older_syntax() {
    let api = api(&shop());
    let line = "POST /shop.v1.Orders/Old";
    let name = bytes(1, "x");
    let of = |more: Vec<u8>| of_message(&api, line, &[name.clone(), more].concat());
    assert_eq!(
        of([whole(2, -1i64 as u64), bytes(3, [varint(2), varint(2)].concat()), whole(100, 5)].concat()),
        NONE
    );
    let unknown = "has a value that the enum does not declare";
    assert_eq!(of(whole(2, 5)), [format!("json:color `color` {unknown}")]);
    assert_eq!(of(bytes(3, [varint(2), varint(5)].concat())), [format!("json:colors `colors[0]` {unknown}")]);
    assert_eq!(
        of(bytes(100, "x")),
        [
            "json:[shop.old.extra] `[shop.old.extra]` must be a whole number, is sent as bytes with their length"
        ]
    );
    assert_eq!(of_message(&api, line, &whole(2, 2)), ["json:name `name` is required"]);
    let found = of_type(&api, line, "application/grpc", &frame(&whole(2, 5)));
    let aspects: Vec<Aspect> = found.iter().map(|each| each.aspect).collect();
    assert_eq!(aspects, [Aspect::UnknownParameter, Aspect::Body]);
    assert_eq!(found[0].pointer, "shop.old.Legacy.color");
}

/// The frames around messages, in the forms in which clients send them.
#[test]
fn frames() {
    let api = api(&shop());
    let wrong = whole(1, 1);
    let (right, rule) = (bytes(1, "Ann"), "`customer` must be a text, is sent as a variable-length number");
    let gzip = |message: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(message).unwrap();
        let packed = packer.finish().unwrap();
        [&[1][..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
    };
    let text = |body: &[u8]| data_encoding::BASE64.encode(body).into_bytes();
    for (content_type, wrap) in [
        ("application/grpc", &(|message: &[u8]| frame(message)) as &dyn Fn(&[u8]) -> Vec<u8>),
        ("Application/gRPC+proto; x=y", &|message| frame(message)),
        ("application/grpc-web", &|message| frame(message)),
        ("application/grpc-web+proto", &|message| frame(message)),
        ("application/grpc-web-text", &|message| text(&frame(message))),
        ("application/grpc-web-text+proto", &|message| {
            [text(&frame(message)[..4]), text(&frame(message)[4..])].concat()
        }),
        ("application/connect+proto", &|message| frame(message)),
        ("application/proto", &|message| message.to_vec()),
        ("application/x-protobuf", &|message| message.to_vec()),
        ("application/grpc", &|message| gzip(message)),
        ("application/grpc-web-text", &|message| text(&gzip(message))),
    ] {
        assert_eq!(told(&of_type(&api, ORDER, content_type, &wrap(&right))), NONE, "{content_type}");
        let found = of_type(&api, ORDER, content_type, &wrap(&wrong));
        assert_eq!(found.iter().map(|each| each.rule.as_str()).collect::<Vec<_>>(), [rule], "{content_type}");
    }
    for content_type in [
        "application/json",
        "application/grpc+json",
        "application/grpcx",
        "text/plain",
        "application/connect",
    ] {
        let found = of_type(&api, ORDER, content_type, &frame(&right));
        let kinds: Vec<Kind> = found.iter().map(|each| each.kind).collect();
        assert_eq!(kinds, [Kind::UnknownParameter, Kind::ContentType], "{content_type}");
    }
    let unread = |body: &[u8]| {
        let found = of_type(&api, ORDER, "application/grpc", body);
        let mut aspects: Vec<Aspect> = found.iter().map(|each| each.aspect).collect();
        aspects.sort_by_key(|aspect| *aspect == Aspect::Body);
        aspects.dedup();
        aspects
    };
    let snappy = [&[1, 0, 0, 0, 3][..], b"\x01\x00a"].concat();
    let cut = {
        let body = gzip(&right);
        [&body[..4], &[body[4] - 6], &body[5..body.len() - 6]].concat()
    };
    let both = [Aspect::UnknownParameter, Aspect::Body];
    assert_eq!(unread(&snappy), both, "not undone");
    assert_eq!(unread(&cut), both, "not whole");
    assert_eq!(unread(&[&[2, 0, 0, 0, 0][..]].concat()), both, "flags");
    assert_eq!(unread(&frame(&right)[..6]), both, "the message ends inside a field");
    let rules = |line: &str, body: &[u8]| -> Vec<String> {
        of_type(&api, line, "application/grpc", body).into_iter().map(|each| each.rule).collect()
    };
    assert_eq!(rules(ORDER, &[frame(&right), vec![0, 0]].concat()), ["the body ends inside a message"]);
    assert_eq!(rules(ORDER, &[frame(&right), frame(&right)].concat()), ["must have one message, has 2"]);
    assert_eq!(rules(ORDER, b""), ["must have one message, has 0"]);
    // A stream has any number of messages, and each is compared.
    let upload = "POST /shop.v1.Orders/Upload";
    assert_eq!(rules(upload, b""), NONE);
    let stream: Vec<u8> = (0..40).flat_map(|_| frame(&bytes(1, "pen"))).collect();
    assert_eq!(rules(upload, &stream), NONE);
    assert_eq!(
        rules(upload, &[stream, frame(&bytes(1, b"\xFF"))].concat()),
        ["`sku` of message 40 must be text in UTF-8"]
    );
    let unseen = deviations(&api, ORDER, &[("Content-Type", "application/grpc")], Sent::Unseen);
    assert_eq!((unseen.len(), unseen[0].kind), (1, Kind::Unchecked));
}

/// Fields that are known by their types, and the names by which numbers lead to them.
#[test]
fn names_and_types_of_fields() {
    let api = api(&shop());
    let fields = api.fields().next().unwrap();
    let form = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.form.clone());
    assert_eq!(form("items.quantity").unwrap().types, [FieldType::Whole]);
    assert_eq!(form("price").unwrap().types, [FieldType::Number]);
    assert_eq!(form("gift").unwrap().types, [FieldType::Boolean]);
    assert!(form("items.note").unwrap().is_text && form("parent.customer").unwrap().is_text);
    assert_eq!(form("blob"), None);
    let head = portcullis_declared::Head {
        method: b"POST",
        path: b"/shop.v1.Orders/Place",
        query: None,
        fields: std::iter::empty(),
    };
    let place = api.head(&head, portcullis_declared::Aspects::ALL, &mut Vec::new()).unwrap();
    let name = |path: &[u64]| api.message_field(place, path);
    for (path, expected) in [
        (&[1u64][..], Some("customer")),
        (&[2, 3], Some("items.note")),
        (&[4, 2, 1], Some("labels.value.sku")),
        (&[10, 10, 1], Some("parent.parent.customer")),
        // Inside of a text, or of a field that is not declared.
        (&[1, 5, 6], Some("customer")),
        (&[2, 99], Some("items")),
        (&[99], None),
        (&[], None),
    ] {
        assert_eq!(name(path).as_deref(), expected, "{path:?}");
    }
    for (path, expected) in
        [(&[2u64][..], true), (&[10, 4, 2], true), (&[1], false), (&[2, 3], false), (&[99], false)]
    {
        assert_eq!(api.is_message_field(place, path), expected, "{path:?}");
    }
}

#[test]
fn mistakes() {
    let of = |declared: &[Vec<u8>]| {
        let files = [file("a.proto", "a", "proto3", declared)];
        compile(&set(&files)).err().map(|problems| problems[0].clone()).unwrap_or_default()
    };
    let one = |field: Vec<u8>| of(&[message("M", &[field])]);
    assert_eq!(of(&[message("M", &[])]), "the set declares no method of a service");
    assert_eq!(
        of(&[service("S", &[("Get", ".a.M", false)])]),
        "a.S.Get: the type `.a.M` is not in the set: write it with its imports (`--include_imports`)"
    );
    assert_eq!(
        one(member("time", 1, 1, 11, ".google.protobuf.Timestamp")),
        "a.M.time: the type `.google.protobuf.Timestamp` is not in the set: write it with its imports \
         (`--include_imports`)"
    );
    assert_eq!(one(member("f", 0, 1, 9, "")), "a.M.f: a field has a number from 1 to 536870911");
    assert_eq!(one(member("f", 1, 1, 99, "")), "a.M.f: the field has no type that is known");
    assert_eq!(one(member("f f", 1, 1, 9, "")), "a.M: `f f` is no name");
    assert_eq!(
        of(&[message("M", &[member("f", 1, 1, 9, ""), member("g", 1, 1, 9, "")])]),
        "a.M.g: the number 1 is that of `f`, too"
    );
    assert_eq!(of(&[message("M", &[]), of_enum("M", &[0])]), "a.M: the name is declared twice");
    let twice = [service("S", &[]), service("S", &[])];
    assert_eq!(of(&twice), "a.S: the service is declared twice");
    let calls = [message("M", &[]), service("S", &[("Get", ".a.M", false), ("Get", ".a.M", true)])];
    assert_eq!(of(&calls), "a.S.Get: the method is declared twice");
    let same = file("a.proto", "", "proto3", &[]);
    assert!(
        compile(&set(&[same.clone(), same])).unwrap_err()[0].starts_with("a.proto: the file is there twice")
    );
    assert_eq!(
        compile(&set(&[file("a.proto", "", "proto9", &[])])).unwrap_err(),
        ["a.proto: the syntax `proto9` is unknown"]
    );
    // Groups load, and are told.
    let group = api(&set(&[file(
        "a.proto",
        "a",
        "",
        &[message("M", &[member("g", 1, 1, 10, "")]), service("S", &[("Get", ".a.M", false)])],
    )]));
    assert_eq!(
        group.warnings()[0].to_string(),
        "a.M.g: groups are not read: a request with this field is reported"
    );
    // Neither a text nor a set.
    for content in [&b"\x0A\xFF\xFF"[..], b"\xFF\xFE", &shop()[..shop().len() - 1]] {
        let problems = compile(content).err().unwrap();
        assert!(problems[0].contains("nor a set of file descriptors"), "{problems:?}");
    }
    // A text may begin with a line end, as a set does.
    assert_eq!(api_of_text("\nopenapi: 3.1.0\npaths: {}\n"), "0 paths with 0 operations");
    assert_eq!(compile(b"").err().unwrap().len(), 1);
}

fn api_of_text(text: &str) -> String {
    api(text.as_bytes()).summary()
}

/// Messages that hold themselves, in any number, and deep or wide sets end in time, or are refused with the
/// place.
#[test]
fn hostile_sets() {
    // Each of these holds each of them.
    let all: Vec<Vec<u8>> = (0..40)
        .map(|n| {
            let fields: Vec<Vec<u8>> =
                (0..40).map(|m| member(&format!("f{m}"), m + 1, 3, 11, &format!(".a.M{m}"))).collect();
            message(&format!("M{n}"), &fields)
        })
        .chain([service("S", &[("Get", ".a.M0", false)])])
        .collect();
    let started = Instant::now();
    let round = api(&set(&[file("a.proto", "a", "proto3", &all)]));
    assert_eq!(round.fields().next().map(<[_]>::len), Some(0));
    assert!(started.elapsed() < Duration::from_secs(10));
    let deep = |levels: usize| {
        let mut nested = inner("M", &[]);
        for _ in 1..levels {
            nested = inner("M", &[bytes(3, nested)]);
        }
        let declared = [bytes(4, nested), service("S", &[("Get", ".M", false)])];
        compile(&set(&[file("a.proto", "", "proto3", &declared)]))
    };
    assert!(deep(limits::DOCUMENT_DEPTH_MAX - 1).is_ok());
    let problems = deep(limits::DOCUMENT_DEPTH_MAX + 5).err().unwrap();
    assert!(
        problems[0].contains("64 messages inside each other") && problems[0].starts_with("M.M."),
        "{problems:?}"
    );
    assert!(deep(20_000).is_err());
    let many: Vec<Vec<u8>> = (0..limits::DESCRIPTOR_PARTS_MAX + 1).map(|_| bytes(2, b"")).collect();
    let wide = set(&[file("a.proto", "a", "proto3", &[bytes(5, [bytes(1, "E"), many.concat()].concat())])]);
    assert!(compile(&wide).err().unwrap()[0].starts_with("a.E: the set has more than 200000"));
    let tiny = [bytes(1, "a.proto"), whole(99, 1).repeat(limits::DOCUMENT_VALUES_MAX)].concat();
    assert!(compile(&set(&[tiny])).err().unwrap()[0].contains("1,000,000 fields"));
    // Each of many names would have the long one before it.
    let small: Vec<Vec<u8>> = (0..2_500).map(|n| message(&format!("M{n}"), &[])).collect();
    let named = set(&[file("a.proto", &"p".repeat(500_000), "proto3", &small)]);
    assert!(compile(&named).err().unwrap()[0].contains("more than 1024 bytes"));
    let large = bytes(1, [bytes(1, "a.proto"), bytes(99, vec![0; limits::DOCUMENT_BYTES_MAX])].concat());
    assert!(compile(&large).err().unwrap()[0].contains("16 MiB"));
}

/// Whatever is changed in a set, reading it ends with an API or with problems; the same of bodies.
#[test]
fn any_change() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let changed = |content: &[u8], random: &mut dyn FnMut(usize) -> usize| {
        let mut content = content.to_vec();
        for _ in 0..=random(4) {
            let at = random(content.len());
            match random(4) {
                0 => content[at] = random(256) as u8,
                1 => content.truncate(at.max(1)),
                2 => content.insert(at, random(256) as u8),
                _ => {
                    let piece = content[at..(at + random(40)).min(content.len())].to_vec();
                    let to = random(content.len());
                    content.splice(to..to, piece);
                }
            }
        }
        content
    };
    let (content, mut read) = (shop(), 0);
    // Inside of the envelope of a file, so that what is changed is read.
    let whole_file = file(
        "a.proto",
        "a",
        "proto3",
        &[message("M", &[member("f", 1, 1, 9, "")]), service("S", &[("Get", ".a.M", false)])],
    );
    for _ in 0..2_000 {
        let _ = compile(&changed(&content, &mut random));
        read += usize::from(compile(&set(&[changed(&whole_file, &mut random)])).is_ok());
    }
    assert!(read > 50, "of changed files only {read} were read");
    let api = api(&content);
    let item = [bytes(1, "pen"), whole(2, 3)].concat();
    let body =
        frame(&[bytes(1, "Ann"), bytes(2, &item), bytes(4, bytes(2, &item)), bytes(5, [1, 2, 3])].concat());
    let mut fitting = 0;
    for _ in 0..4_000 {
        let body = changed(&body, &mut random);
        for content_type in ["application/grpc", "application/grpc-web-text", "application/proto"] {
            let found = of_type(&api, ORDER, content_type, &body);
            fitting += usize::from(found.is_empty());
            let of = |aspect| found.iter().filter(|each| each.aspect == aspect).count();
            assert!(
                of(Aspect::Body) <= limits::DEVIATIONS_MAX
                    && of(Aspect::UnknownParameter) <= limits::DEVIATIONS_MAX
            );
        }
    }
    assert!(fitting > 20, "of changed bodies only {fitting} fitted");
}

/// Bodies that are made to exhaust who compares them end in time, and what is beyond a limit is told.
#[test]
fn hostile_bodies() {
    let api = api(&shop());
    let started = Instant::now();
    let mut deep = bytes(1, "x");
    for _ in 0..limits::BODY_DEPTH_MAX - 1 {
        deep = bytes(10, deep);
    }
    assert_eq!(of_message(&api, ORDER, &deep), NONE);
    let found = of_message(&api, ORDER, &bytes(10, &deep));
    assert!(found[0].contains("too many messages inside each other"), "{found:?}");
    for _ in 0..2_000 {
        deep = bytes(10, deep);
    }
    assert!(!of_message(&api, ORDER, &deep).is_empty());
    let wide: Vec<u8> = bytes(2, b"").repeat(limits::BODY_VALUES_MAX + 1);
    assert!(of_message(&api, ORDER, &wide)[0].contains("too many fields"));
    let several: Vec<u8> = bytes(5, vec![1; limits::BODY_VALUES_MAX + 1]);
    assert!(of_message(&api, ORDER, &several)[0].contains("too many fields"));
    let stream: Vec<u8> = frame(&bytes(1, "pen")).repeat(limits::BODY_VALUES_MAX + 1);
    let found = told(&of_type(&api, "POST /shop.v1.Orders/Upload", "application/grpc", &stream));
    assert!(found[0].contains("too many fields"), "{found:?}");
    // The last ones of many are wrong, each with an index that is counted.
    let mut late: Vec<u8> = bytes(2, b"").repeat(limits::BODY_VALUES_MAX / 2);
    for _ in 0..100 {
        late.extend(bytes(2, [whole(1, 1), whole(9, 1)].concat()));
    }
    let found = of_message(&api, ORDER, &late);
    assert_eq!(found.len(), 2 * limits::DEVIATIONS_MAX);
    assert!(found[0].contains("`items[100000].sku`"), "{found:?}");
    // What unpacks to more than it may.
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&bytes(8, vec![0; 20 << 20])).unwrap();
    let packed = packer.finish().unwrap();
    let body = [&[1][..], &(packed.len() as u32).to_be_bytes(), &packed].concat();
    assert!(told(&of_type(&api, ORDER, "application/grpc", &body))[0].contains("compressed in a way"));
    assert!(started.elapsed() < Duration::from_secs(20));
}
