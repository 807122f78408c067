//! Messages of calls beside what their method takes.

use portcullis_http::body::content_type;
use portcullis_http::coding::{CodingLimits, Packing, unpack};
use portcullis_lex::protobuf::{Content, Frames, NUMBER_MAX, field, varint, web_text};
use portcullis_types::Place;

use super::{Grpc, Message, MessageField, Method, Type};
use crate::api::{Aspect, Deviation, Kind, NOT_WHOLE, OperationId, Sent, Told};
use crate::limits::{BODY_DEPTH_MAX, BODY_VALUES_MAX, UNPACKED_BYTES_MAX, UNPACKED_RATIO_MAX};

/// The frames around the messages of a body.
#[derive(Clone, Copy, PartialEq)]
enum Framing {
    /// One message, without a frame.
    None,
    Frames,
    /// Frames in Base64.
    Text,
}

/// The framing by the media type; the error is the rule that it breaks.
fn framing(media_type: &[u8]) -> Result<Framing, &'static str> {
    let lower = media_type.to_ascii_lowercase();
    let (name, format) = match lower.iter().position(|b| *b == b'+') {
        Some(at) => (&lower[..at], Some(&lower[at + 1..])),
        None => (lower.as_slice(), None),
    };
    let framing = match (name, format) {
        (b"application/grpc" | b"application/grpc-web", _) => Framing::Frames,
        (b"application/connect", Some(_)) => Framing::Frames,
        (b"application/grpc-web-text", _) => Framing::Text,
        (b"application/proto" | b"application/protobuf" | b"application/x-protobuf", None) => Framing::None,
        _ => return Err("must be application/grpc, application/grpc-web or application/proto"),
    };
    match format {
        None | Some(b"proto") => Ok(framing),
        Some(_) => Err("must have messages of Protocol Buffers"),
    }
}

impl Grpc {
    /// Compares the body of a call.
    pub fn body<'r>(
        &self,
        operation: OperationId,
        content_types: impl Iterator<Item = &'r [u8]>,
        body: Sent<'_>,
        found: &mut Told<'_>,
    ) {
        let Some(method) = self.methods.get(operation.number()) else { return };
        let types: Vec<&[u8]> = content_types.take(2).collect();
        let framing = match types.as_slice() {
            [one] => framing(content_type::media_type(one)),
            [] => Err("is required"),
            _ => Err("must be there once"),
        };
        let framing = match framing {
            Ok(framing) => framing,
            Err(rule) => {
                found.push(unread(rule, &method.name));
                return found.push(Deviation {
                    place: Place::Header,
                    name: b"content-type".to_vec(),
                    ..of_body(Kind::ContentType, rule.to_owned(), &method.name)
                });
            }
        };
        let Sent::Whole(body) = body else {
            let aspects = [Aspect::Body, Aspect::UnknownParameter];
            return found.unchecked(&aspects, Place::RawBody, NOT_WHOLE, &method.name);
        };
        let mut walk = Walk { grpc: self, method, found, values: 0, at: None };
        match framing {
            Framing::None => walk.message(body),
            Framing::Frames => walk.frames(body),
            Framing::Text => {
                let (decoded, is_sound) = web_text(body);
                if !is_sound {
                    walk.tell("the body is not Base64".to_owned());
                }
                walk.frames(&decoded);
            }
        }
    }
}

/// What is not read may have fields that are not declared.
fn unread(rule: &str, pointer: &str) -> Deviation {
    let aspect = Aspect::UnknownParameter;
    let deviation = of_body(Kind::UnknownParameter, format!("the fields cannot be read: {rule}"), pointer);
    Deviation { aspect, ..deviation }
}

fn of_body(kind: Kind, rule: String, pointer: &str) -> Deviation {
    let (aspect, place, pointer) = (Aspect::Body, Place::RawBody, pointer.to_owned());
    Deviation { aspect, kind, place, name: Vec::new(), rule, pointer }
}

struct Walk<'g, 'w, 'f> {
    grpc: &'g Grpc,
    method: &'g Method,
    found: &'w mut Told<'f>,
    /// Fields that were read, of all messages.
    values: usize,
    /// The number of the message in a stream of them.
    at: Option<usize>,
}

/// A message that is open.
#[derive(Clone, Copy)]
struct Open<'g> {
    message: &'g Message,
    /// Where it begins and ends.
    start: usize,
    end: usize,
    /// The field of the message around it that it is the content of, and where that field begins.
    of: Option<(u64, usize)>,
}

/// A field of the innermost message, where it is.
#[derive(Clone, Copy)]
struct FieldAt<'s, 'g> {
    number: u64,
    /// Where it begins.
    at: usize,
    declared: &'s MessageField,
    bytes: &'s [u8],
    open: &'s [Open<'g>],
}

/// A body that does not have the form that is declared.
const BODY: (Aspect, Kind) = (Aspect::Body, Kind::Body);
/// Something that is not declared.
const UNKNOWN: (Aspect, Kind) = (Aspect::UnknownParameter, Kind::UnknownParameter);

impl<'g> Walk<'g, '_, '_> {
    /// Tells something of the body as a whole.
    fn tell(&mut self, rule: String) {
        self.found.push(of_body(Kind::Body, rule, &self.method.name));
    }

    /// The same of what keeps fields from being read.
    fn tell_unread(&mut self, rule: &str) {
        self.found.push(unread(rule, &self.method.name));
        self.tell(rule.to_owned());
    }

    fn frames(&mut self, body: &[u8]) {
        let (mut frames, mut count, mut room) = (Frames::new(body), 0, UNPACKED_BYTES_MAX);
        for frame in frames.by_ref() {
            if !self.wants_more() {
                return;
            }
            self.at = self.method.streams.then_some(count);
            count += 1;
            if !frame.is_whole {
                self.tell("the body ends inside a message".to_owned());
            }
            match frame.flags {
                0 => self.message(frame.message),
                1 => {
                    let packing = match frame.message {
                        [] => None,
                        [0x1F, 0x8B, ..] => Some(Packing::Gzip),
                        // Its first two bytes are a multiple of 31.
                        [a, b, ..] if a & 15 == 8 && (u32::from(*a) << 8 | u32::from(*b)) % 31 == 0 => {
                            Some(Packing::Zlib)
                        }
                        _ => None,
                    };
                    let limits =
                        CodingLimits { bytes_max: room, ratio_max: UNPACKED_RATIO_MAX, free_bytes: 64 << 10 };
                    let unpacked = packing.map(|packing| unpack(packing, frame.message, limits));
                    let Some((message, true)) = unpacked else {
                        // Clients choose how they compress: what cannot be compared is no message that fits.
                        self.tell_unread("a message is compressed in a way that is not undone");
                        continue;
                    };
                    room -= (message.len() as u64).min(room);
                    self.message(&message);
                }
                _ => self.tell_unread("a message has flags that requests do not have"),
            }
        }
        if !frames.rest().is_empty() {
            self.tell("the body ends inside a message".to_owned());
        }
        if !self.method.streams && count != 1 {
            let kind = if count == 0 { Kind::Missing } else { Kind::Body };
            let rule = format!("must have one message, has {count}");
            self.found.push(of_body(kind, rule, &self.method.name));
        }
    }

    fn wants_more(&self) -> bool {
        self.found.has_room(Aspect::Body) || self.found.has_room(Aspect::UnknownParameter)
    }

    /// Compares one message, and those in it.
    fn message(&mut self, bytes: &[u8]) {
        let grpc = self.grpc;
        let root = &grpc.messages[self.method.input];
        let mut open = vec![Open { message: root, start: 0, end: bytes.len(), of: None }];
        let mut at = 0;
        while let Some(&Open { message, end, .. }) = open.last() {
            if at >= end {
                self.required(bytes, &open);
                open.pop();
                continue;
            }
            self.values += 1;
            if self.values > BODY_VALUES_MAX {
                return self.tell_unread("the body has too many fields to be compared");
            }
            if !self.wants_more() {
                return;
            }
            let Some((found, next)) = field(&bytes[..end], at) else {
                self.unread(bytes, &open, "is no message of Protocol Buffers");
                at = end;
                continue;
            };
            if found.number == 0 || found.number > NUMBER_MAX {
                self.unread(bytes, &open, "has a field whose number no message declares");
                at = next;
                continue;
            }
            if found.content == Content::Group {
                // Its contents show where it ends.
                self.unread(bytes, &open, "has a group");
                at = end;
                continue;
            }
            let Some(declared) = message.fields.get(&found.number) else {
                let rule = format!("has the field {}, which is not declared", found.number);
                self.unknown(bytes, &open, Some(&found.number.to_string()), rule);
                at = next;
                continue;
            };
            if let (Type::Message(inner), Content::Bytes(content)) = (declared.of, found.content) {
                if open.len() == BODY_DEPTH_MAX {
                    self.unread(bytes, &open, "has too many messages inside each other to be compared");
                    at = next;
                    continue;
                }
                let (start, of) = (next - content.len(), Some((found.number, at)));
                open.push(Open { message: &grpc.messages[inner], start, end: next, of });
                at = start;
                continue;
            }
            let sent = FieldAt { number: found.number, at, declared, bytes, open: &open };
            self.value(sent, found.content);
            at = next;
        }
    }

    /// Compares the content of a field that is no message.
    fn value(&mut self, sent: FieldAt<'_, 'g>, content: Content<'_>) {
        match (sent.declared.of, content) {
            (Type::Text, Content::Bytes(text)) => {
                if std::str::from_utf8(text).is_err() {
                    self.report_field(sent, BODY, "must be text in UTF-8".to_owned());
                }
            }
            (Type::Bytes, Content::Bytes(_)) => {}
            // Several numbers at once, as they are written by default.
            (kind, Content::Bytes(several)) if sent.declared.is_repeated && kind.is_packable() => {
                self.several(sent, several);
            }
            (_, content) => {
                self.fits(sent, content);
            }
        }
    }

    /// True if the content is of the type of the field; else it is reported.
    fn fits(&mut self, sent: FieldAt<'_, 'g>, content: Content<'_>) -> bool {
        match self.grpc.fits(sent.declared.of, content) {
            Fit::Fits => return true,
            Fit::UnknownValue => {
                let rule = "has a value that the enum does not declare".to_owned();
                self.report_field(sent, UNKNOWN, rule);
            }
            Fit::Wrong(rule) => self.report_field(sent, BODY, rule),
        }
        false
    }

    fn several(&mut self, sent: FieldAt<'_, 'g>, several: &[u8]) {
        let mut at = 0;
        while at < several.len() {
            self.values += 1;
            if self.values > BODY_VALUES_MAX {
                return self.tell_unread("the body has too many fields to be compared");
            }
            if !self.wants_more() {
                return;
            }
            let rest = &several[at..];
            let read = match sent.declared.of {
                Type::Double | Type::Fixed64 => {
                    rest.first_chunk().map(|n| (Content::Fixed64(u64::from_le_bytes(*n)), 8))
                }
                Type::Float | Type::Fixed32 => {
                    rest.first_chunk().map(|n| (Content::Fixed32(u32::from_le_bytes(*n)), 4))
                }
                Type::Whole
                | Type::Whole32
                | Type::Signed32
                | Type::Boolean
                | Type::Text
                | Type::Bytes
                | Type::Message(_)
                | Type::Enum(_)
                | Type::Group => varint(rest, 0).map(|(value, length)| (Content::Varint(value), length)),
            };
            let Some((content, length)) = read else {
                let rule = "must be several numbers, and ends inside one".to_owned();
                return self.report_field(sent, BODY, rule);
            };
            at += length;
            if !self.fits(sent, content) {
                return;
            }
        }
    }

    /// Tells which fields that are required the innermost message does not have.
    fn required(&mut self, bytes: &[u8], open: &[Open<'g>]) {
        let Some(&Open { message, start, end, .. }) = open.last() else { return };
        if message.required.is_empty() || !self.found.has_room(Aspect::Body) {
            return;
        }
        let mut sent = std::collections::BTreeSet::new();
        let mut at = start;
        while let Some((found, next)) = field(&bytes[..end], at) {
            sent.insert(found.number);
            at = next;
        }
        for number in message.required.iter().filter(|number| !sent.contains(number)) {
            let Some(declared) = message.fields.get(number) else { continue };
            if !self.found.has_room(Aspect::Body) {
                return;
            }
            let shown = self.shown(bytes, open, Some(&declared.name));
            let name = name_of(open, Some(&declared.name));
            let pointer = format!("{}.{}", message.name, declared.name);
            let deviation = of_body(Kind::Missing, format!("{shown} is required"), &pointer);
            self.found.push(Deviation { place: Place::Json, name, ..deviation });
        }
    }

    /// Tells what keeps the innermost message from being read.
    fn unread(&mut self, bytes: &[u8], open: &[Open<'g>], rule: &str) {
        self.report(bytes, open, None, BODY, rule.to_owned());
        self.report(bytes, open, None, UNKNOWN, format!("{rule}: its fields cannot be read"));
    }

    /// Tells what is wrong with a field.
    fn report_field(&mut self, sent: FieldAt<'_, 'g>, what: (Aspect, Kind), rule: String) {
        self.report(sent.bytes, sent.open, Some(sent), what, rule);
    }

    fn report(
        &mut self,
        bytes: &[u8],
        open: &[Open<'g>],
        field: Option<FieldAt<'_, 'g>>,
        (aspect, kind): (Aspect, Kind),
        rule: String,
    ) {
        if !self.found.has_room(aspect) {
            return;
        }
        let Some(Open { message, start, .. }) = open.last() else { return };
        let last = field.map(|FieldAt { number, at, declared, .. }| {
            let index = declared.is_repeated.then(|| index(bytes, *start, at, number));
            step(&declared.name, index)
        });
        let shown = self.shown(bytes, open, last.as_deref());
        let name = name_of(open, field.map(|sent| sent.declared.name.as_str()));
        let pointer = match field {
            Some(sent) => format!("{}.{}", message.name, sent.declared.name),
            None => message.name.clone(),
        };
        let deviation = of_body(kind, format!("{shown} {rule}"), &pointer);
        self.found.push(Deviation { aspect, place: Place::Json, name, ..deviation });
    }

    /// Tells of a field that the innermost message does not declare.
    fn unknown(&mut self, bytes: &[u8], open: &[Open<'g>], step: Option<&str>, rule: String) {
        let aspect = Aspect::UnknownParameter;
        if !self.found.has_room(aspect) {
            return;
        }
        let Some(Open { message, .. }) = open.last() else { return };
        let shown = self.shown(bytes, open, None);
        let deviation = of_body(Kind::UnknownParameter, format!("{shown} {rule}"), &message.name);
        self.found.push(Deviation { aspect, place: Place::Json, name: name_of(open, step), ..deviation });
    }

    /// The way to the innermost message, or to a field of it, for people: `` `order.items[3].note` ``.
    fn shown(&self, bytes: &[u8], open: &[Open<'g>], last: Option<&str>) -> String {
        let mut steps = Vec::new();
        for pair in open.windows(2) {
            let [around, inner] = pair else { continue };
            let Some((number, at)) = inner.of else { continue };
            let Some(declared) = around.message.fields.get(&number) else { continue };
            let index = declared.is_repeated.then(|| index(bytes, around.start, at, number));
            steps.push(step(&declared.name, index));
        }
        steps.extend(last.map(str::to_owned));
        let of_stream = self.at.map(|at| format!(" of message {at}")).unwrap_or_default();
        match steps.is_empty() {
            true if of_stream.is_empty() => "the message".to_owned(),
            true => format!("the message {}", self.at.unwrap_or_default()),
            false => format!("`{}`{of_stream}", steps.join(".")),
        }
    }
}

fn step(name: &str, index: Option<usize>) -> String {
    match index {
        Some(index) => format!("{name}[{index}]"),
        None => name.to_owned(),
    }
}

/// How many fields of this number the message that begins at `start` has before `at`. It is computed only
/// where something is reported: those before a field, and before the ones around it, are read once more then.
fn index(bytes: &[u8], start: usize, at: usize, number: u64) -> usize {
    let (mut from, mut count) = (start, 0);
    while from < at {
        let Some((found, next)) = field(bytes, from) else { break };
        count += usize::from(found.number == number);
        from = next;
    }
    count
}

/// The name that events have for a field.
fn name_of(open: &[Open<'_>], last: Option<&str>) -> Vec<u8> {
    let mut steps: Vec<&str> = Vec::new();
    for pair in open.windows(2) {
        let [around, inner] = pair else { continue };
        let declared = inner.of.and_then(|(number, _)| around.message.fields.get(&number));
        steps.extend(declared.map(|declared| declared.name.as_str()));
    }
    steps.extend(last);
    steps.join(".").into_bytes()
}

/// Whether the content of a field is of its type.
enum Fit {
    Fits,
    /// A closed enum does not have it.
    UnknownValue,
    Wrong(String),
}

impl Grpc {
    fn fits(&self, kind: Type, content: Content<'_>) -> Fit {
        let is_32 = |value: u64| u32::try_from(value).is_ok() || i32::try_from(value as i64).is_ok();
        match (kind, content) {
            (Type::Whole, Content::Varint(_)) => Fit::Fits,
            (Type::Double | Type::Fixed64, Content::Fixed64(_)) => Fit::Fits,
            (Type::Float | Type::Fixed32, Content::Fixed32(_)) => Fit::Fits,
            (Type::Whole32, Content::Varint(value)) if is_32(value) => Fit::Fits,
            (Type::Signed32, Content::Varint(value)) if u32::try_from(value).is_ok() => Fit::Fits,
            (Type::Whole32 | Type::Signed32, Content::Varint(_)) => {
                Fit::Wrong("must be a number of 32 bits, and is longer".to_owned())
            }
            (Type::Boolean, Content::Varint(0 | 1)) => Fit::Fits,
            (Type::Boolean, Content::Varint(_)) => {
                Fit::Wrong("must be true or false, is another number".to_owned())
            }
            (Type::Enum(number), Content::Varint(value)) => {
                let declared = &self.enums[number];
                if !is_32(value) {
                    return Fit::Wrong("must be a number of 32 bits, and is longer".to_owned());
                }
                let is_known = declared.values.binary_search(&(value as u32 as i32)).is_ok();
                if is_known || !declared.is_closed { Fit::Fits } else { Fit::UnknownValue }
            }
            (kind, content) => {
                Fit::Wrong(format!("must be {}, is sent as {}", self.title(kind), content.title()))
            }
        }
    }

    fn title(&self, kind: Type) -> String {
        match kind {
            Type::Double | Type::Float => "a number with a fraction".to_owned(),
            Type::Whole | Type::Whole32 | Type::Signed32 => "a whole number".to_owned(),
            Type::Fixed64 => "a whole number of eight bytes".to_owned(),
            Type::Fixed32 => "a whole number of four bytes".to_owned(),
            Type::Boolean => "true or false".to_owned(),
            Type::Text => "a text".to_owned(),
            Type::Bytes => "bytes".to_owned(),
            Type::Message(number) => format!("a message `{}`", self.messages[number].name),
            Type::Enum(number) => format!("a value of `{}`", self.enums[number].name),
            Type::Group => "a group".to_owned(),
        }
    }
}

impl Type {
    /// Several of it may be written as one field.
    fn is_packable(self) -> bool {
        !matches!(self, Type::Text | Type::Bytes | Type::Message(_) | Type::Group)
    }
}
