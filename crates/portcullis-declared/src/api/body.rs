//! Bodies of requests beside the description.

use portcullis_http::body::content_type::{self, Processor};
use portcullis_http::body::{Arg, BodyParser, BodySink, Options};
use portcullis_types::Place;
use serde_json::{Map, Value};

use super::deviation::{Aspect, Aspects, Deviation, Kind, Told, json_name, shown};
use super::plan::{Fields, MediaKind};
use super::{Api, OperationId};
use crate::json;
use crate::limits::PARTS_MAX;
use crate::parameter::{decoded, guess, pairs, text};
use crate::rpc;
use crate::schema::{Types, Violation};

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<'r> {
    /// All of it, content codings undone; empty if there is none.
    Whole(&'r [u8]),
    /// There is one, and it cannot be seen as a whole.
    Unseen,
}

/// A body that is not compared, though it should be.
pub(crate) const NOT_WHOLE: &str = "the body was not compared with its schema: it was not held as a whole";

impl Api {
    /// Compares the body of a request with what its operation declares, as far as it is asked about.
    pub fn body<'r>(
        &self,
        operation: OperationId,
        content_types: impl Iterator<Item = &'r [u8]>,
        body: Sent<'_>,
        asked: Aspects,
        found: &mut Vec<Deviation>,
    ) {
        let found = &mut Told::new(asked, found);
        if let Some(rpc) = &self.rpc {
            return rpc::sent(rpc, content_types, body, found);
        }
        if let Some(graphql) = &self.graphql {
            return graphql.body(content_types, body, found);
        }
        if let Some(grpc) = &self.grpc {
            return grpc.body(operation, content_types, body, found);
        }
        if !asked.body {
            return;
        }
        let operation = &self.operations[operation.0];
        let tell = |kind, place, rule: String, pointer: &str| Deviation {
            aspect: Aspect::Body,
            kind,
            place,
            name: if kind == Kind::ContentType { b"content-type".to_vec() } else { Vec::new() },
            rule,
            pointer: pointer.to_owned(),
        };
        let is_empty = body == Sent::Whole(b"");
        let Some(declared) = &operation.body else {
            if !is_empty {
                let rule = "must have no body".to_owned();
                found.push(tell(Kind::Body, Place::RawBody, rule, &operation.pointer));
            }
            return;
        };
        if is_empty {
            if declared.required {
                let rule = "the body is required".to_owned();
                found.push(tell(Kind::Missing, Place::RawBody, rule, &declared.pointer));
            }
            return;
        }
        let content_types: Vec<&[u8]> = content_types.take(2).collect();
        let (content_type, rule) = match content_types.as_slice() {
            [] if declared.media.is_empty() => return,
            [] => (&b""[..], Some(format!("is required, and must be {}", declared.types()))),
            [one] => (*one, None),
            _ => (content_types[0], Some("must be there once".to_owned())),
        };
        if let Some(rule) = rule {
            found.push(tell(Kind::ContentType, Place::Header, rule, &declared.pointer));
            return;
        }
        let media_type = content_type::media_type(content_type).to_ascii_lowercase();
        let Some(media) = declared.media(&media_type) else {
            let rule = format!("must be {}", declared.types());
            found.push(tell(Kind::ContentType, Place::Header, rule, &declared.pointer));
            return;
        };
        let (Some(schema), false) = (&media.schema, matches!(media.reading, MediaKind::Unread)) else {
            return;
        };
        if content_type::is_foreign(content_type, false) {
            let rule = "must name no character set but UTF-8".to_owned();
            found.push(tell(Kind::ContentType, Place::Header, rule, &schema.pointer));
            return;
        }
        // A range is of any type: what is no JSON is not compared.
        if media.subtype == "*" && Processor::by_media_type(content_type) != Some(Processor::Json) {
            return;
        }
        let Sent::Whole(body) = body else {
            let rule = NOT_WHOLE.to_owned();
            found.push(tell(Kind::Unchecked, Place::RawBody, rule, &schema.pointer));
            return;
        };
        let too_many = || {
            let rule = format!("the body has more than {PARTS_MAX} fields");
            tell(Kind::Body, Place::RawBody, rule, &schema.pointer)
        };
        let (value, place, files) = match &media.reading {
            MediaKind::Json => match json::read(body) {
                Ok(value) => (value, Place::Json, Vec::new()),
                Err(rule) => {
                    found.push(tell(Kind::Body, Place::RawBody, rule, &schema.pointer));
                    return;
                }
            },
            MediaKind::Form(fields) => {
                let mut form = Form { fields, values: Map::new(), files: Vec::new(), parts: 0 };
                for pair in pairs(body) {
                    form.add(&decoded(pair.name), &decoded(pair.value));
                }
                if form.parts > PARTS_MAX {
                    found.push(too_many());
                    return;
                }
                (Value::Object(form.values), Place::Form, Vec::new())
            }
            MediaKind::Multipart(fields) => {
                let mut form = Form { fields, values: Map::new(), files: Vec::new(), parts: 0 };
                let parser = BodyParser::new(Processor::Multipart, content_type, &Options::default());
                let report = parser.whole(body, &mut form);
                if report.error.is_some() {
                    let rule = "the body is not multipart/form-data".to_owned();
                    found.push(tell(Kind::Body, Place::RawBody, rule, &schema.pointer));
                    return;
                }
                if form.parts > PARTS_MAX {
                    found.push(too_many());
                    return;
                }
                let is_declared = |file: &String| fields.members.iter().any(|(member, _)| member == file);
                form.files.retain(is_declared);
                (Value::Object(form.values), Place::MultipartField, form.files)
            }
            MediaKind::Unread => return,
        };
        for violation in schema.violations(&value, found.room(Aspect::Body)) {
            // The schema of a file that is declared is about a text that it is not.
            if violation.path.first().is_some_and(|name| files.contains(name)) {
                continue;
            }
            let Violation { path, rule, pointer, is_hidden } = violation;
            let (shown, name) = if place == Place::Json {
                (shown(&path), json_name(&path))
            } else {
                (path.join("."), path.first().cloned().unwrap_or_default())
            };
            let shown = if shown.is_empty() { "the body".to_owned() } else { format!("`{shown}`") };
            let kind = if is_hidden { Kind::ReadOnly } else { Kind::Body };
            let name = name.into_bytes();
            let rule = format!("{shown} {rule}");
            found.push(Deviation { aspect: Aspect::Body, kind, place, name, rule, pointer });
        }
    }
}

/// The fields of a form, as an object.
struct Form<'f> {
    fields: &'f Fields,
    values: Map<String, Value>,
    files: Vec<String>,
    parts: usize,
}

impl Form<'_> {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return;
        }
        let name = text(name);
        let list = self.fields.lists.iter().find(|(list, _)| *list == name);
        let types = match list {
            Some((_, items)) => *items,
            None => {
                let member = self.fields.members.iter().find(|(member, _)| *member == name);
                member.map_or(Types { string: true, ..Types::default() }, |(_, types)| *types)
            }
        };
        let value = guess(types, &text(value));
        match self.values.get_mut(&name) {
            Some(Value::Array(items)) => items.push(value),
            // What is there twice and is no list does not fit its schema.
            Some(known) => *known = Value::Array(vec![known.take(), value]),
            None if list.is_some() => {
                self.values.insert(name, Value::Array(vec![value]));
            }
            None => {
                self.values.insert(name, value);
            }
        }
    }
}

impl BodySink for Form<'_> {
    fn arg(&mut self, arg: Arg<'_>) {
        self.add(arg.name, arg.value);
    }

    fn file_begin(&mut self, field_name: &[u8], _: &[u8]) {
        self.files.push(text(field_name));
        self.add(field_name, b"");
    }
}
