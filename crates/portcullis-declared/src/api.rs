//! A compiled description, and requests beside it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use portcullis_http::body::content_type::{self, Processor};
use portcullis_http::body::{Arg, BodyParser, BodySink, Options};
use portcullis_http::cookie::{self, CookieFormat};
use portcullis_types::Place;
use serde_json::{Map, Value};

use crate::field::Field;
use crate::graphql::{Graphql, GraphqlLimits};
use crate::json;
use crate::limits::{DEVIATIONS_MAX, PARTS_MAX};
use crate::openapi;
use crate::parameter::{Parameter, decoded, guess, pairs, text};
use crate::path::{Fit, Paths};
use crate::problem::Problem;
use crate::rpc::Rpc;
use crate::schema::{Schema, Types, Violation};

/// An API as it is declared.
#[derive(Debug)]
pub struct Api {
    pub(crate) paths: Paths,
    pub(crate) templates: Vec<Template>,
    pub(crate) operations: Vec<Operation>,
    /// It is one of JSON-RPC, and has no paths.
    pub(crate) rpc: Option<Rpc>,
    /// It is one of GraphQL, and has no paths.
    pub(crate) graphql: Option<Graphql>,
    pub(crate) warnings: Vec<Problem>,
}

/// A path, for one base path of a server.
#[derive(Debug)]
pub(crate) struct Template {
    pub pointer: String,
    /// The parameters, in order.
    pub names: Vec<String>,
    /// The operations by method.
    pub methods: Vec<(String, usize)>,
}

/// What a method does at a path.
#[derive(Debug)]
pub(crate) struct Operation {
    pub pointer: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    /// Alternatives of credentials; none: no credentials.
    pub security: Vec<Vec<Credential>>,
    /// What is known of its fields by their types.
    pub fields: Vec<Field>,
    /// Its answers, the most specific ones first; none where they are not compared.
    pub answers: Vec<Answer>,
}

/// An answer: its status, and what its body is.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: Status,
    pub body: Body,
}

/// The statuses of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Status {
    One(u16),
    /// By the first digit.
    Class(u16),
    Any,
}

#[derive(Debug)]
pub(crate) struct Body {
    pub pointer: String,
    pub required: bool,
    pub media: Vec<Media>,
}

/// A media type or range of them, and what bodies of it are.
#[derive(Debug)]
pub(crate) struct Media {
    pub kind: String,
    pub subtype: String,
    pub reading: MediaKind,
    pub schema: Option<Arc<Schema>>,
}

#[derive(Debug)]
pub(crate) enum MediaKind {
    Json,
    Form(Fields),
    Multipart(Fields),
    /// Not compared.
    Unread,
}

/// The fields of a form.
#[derive(Debug)]
pub(crate) struct Fields {
    pub members: Vec<(String, Types)>,
    /// Those that may come several times, with the types of each.
    pub lists: Vec<(String, Types)>,
}

/// Credentials whose presence shows.
#[derive(Debug)]
pub(crate) enum Credential {
    Header(String),
    Query(String),
    Cookie(String),
    /// By scheme, in lower case.
    Authorization(String),
    /// Certificates of clients and the like: taken as there.
    Unseen,
}

/// What a deviation is about: what a site may switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aspect {
    /// The path or the method.
    UnknownPath,
    /// The name of a parameter of the query.
    UnknownParameter,
    /// The value of a declared parameter.
    Parameters,
    /// The body and its media type.
    Body,
    /// The credentials.
    Security,
    /// The answer.
    Responses,
}

/// The kind of a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No such path.
    UnknownPath,
    /// The path has no such method.
    Method,
    /// No such parameter.
    UnknownParameter,
    /// A parameter is not as it is declared.
    Parameter,
    /// A parameter or body is not there.
    Missing,
    /// No body of this media type.
    ContentType,
    /// The body is not as it is declared.
    Body,
    /// The request asks for more than the site allows.
    Limit,
    /// A property that is read-only was sent.
    ReadOnly,
    /// No credentials.
    Security,
    /// The answer has a status that is not declared.
    Status,
    /// The answer is not as it is declared.
    Response,
    /// The answer has a property that is write-only.
    WriteOnly,
    /// The body could not be compared.
    Unchecked,
}

/// Something in a request that the description does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// What it is about.
    pub aspect: Aspect,
    /// Its kind.
    pub kind: Kind,
    /// The place in the request.
    pub place: Place,
    /// The name of the value there, as events name it.
    pub name: Vec<u8>,
    /// The rule in words: `must be at most 100, is 5,000`.
    pub rule: String,
    /// JSON pointer into the description.
    pub pointer: String,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rule)?;
        if !self.pointer.is_empty() {
            write!(f, " ({})", self.pointer)?;
        }
        Ok(())
    }
}

/// The aspects that are asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aspects {
    /// See [`Aspect::UnknownPath`].
    pub unknown_path: bool,
    /// See [`Aspect::UnknownParameter`].
    pub unknown_parameter: bool,
    /// See [`Aspect::Parameters`].
    pub parameters: bool,
    /// See [`Aspect::Body`].
    pub body: bool,
    /// See [`Aspect::Security`].
    pub security: bool,
}

impl Aspects {
    /// All of them.
    pub const ALL: Aspects =
        Aspects { unknown_path: true, unknown_parameter: true, parameters: true, body: true, security: true };
}

/// The head of a request.
#[derive(Clone, Debug)]
pub struct Head<'r, F> {
    /// The method.
    pub method: &'r [u8],
    /// The path as sent.
    pub path: &'r [u8],
    /// The query as sent, without its question mark.
    pub query: Option<&'r [u8]>,
    /// The header fields.
    pub fields: F,
}

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent<'r> {
    /// All of it, content codings undone; empty if there is none.
    Whole(&'r [u8]),
    /// There is one, and it cannot be seen as a whole.
    Unseen,
}

/// What is compared beside requests, and how far requests may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings {
    /// Answers are compared, too.
    pub answers: bool,
    /// What documents of GraphQL may ask for.
    pub graphql: Option<GraphqlLimits>,
}

/// The operation that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationId(usize);

impl OperationId {
    /// The only one of an API that has one.
    pub(crate) fn first() -> OperationId {
        OperationId(0)
    }

    /// The number of the operation.
    pub fn number(self) -> usize {
        self.0
    }
}

impl Api {
    /// Compiles the text of a document, JSON or YAML: OpenAPI, OpenRPC, or the tools of a server of the Model
    /// Context Protocol.
    pub fn compile(text: &str) -> Result<Api, Vec<Problem>> {
        Api::compile_with(text, &Settings::default())
    }

    /// The same with settings.
    pub fn compile_with(text: &str, settings: &Settings) -> Result<Api, Vec<Problem>> {
        openapi::compile(text, settings)
    }

    /// What the description says and is not enforced.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The numbers of path templates and of operations: methods or tools where it is one of JSON-RPC, types
    /// and their fields where it is one of GraphQL.
    pub fn counts(&self) -> (usize, usize) {
        match (&self.rpc, &self.graphql) {
            (Some(rpc), _) => (0, rpc.count()),
            (None, Some(graphql)) => graphql.counts(),
            (None, None) => (self.templates.len(), self.operations.len()),
        }
    }

    /// The settings that it has no use for, and why.
    pub fn unused(&self, settings: &Settings) -> Vec<&'static str> {
        let mut unused = Vec::new();
        if settings.graphql.is_some() && self.graphql.is_none() {
            unused.push("`graphql` has no effect: this is no schema of GraphQL");
        }
        if settings.answers && (self.rpc.is_some() || self.graphql.is_some()) {
            unused.push("`responses` has no effect: only answers of OpenAPI documents are compared");
        }
        unused
    }

    /// What it describes, in words: `12 paths with 30 operations`.
    pub fn summary(&self) -> String {
        let (outer, inner) = self.counts();
        let plural =
            |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match (&self.rpc, &self.graphql) {
            (Some(rpc), _) => plural(inner, rpc.of()),
            (None, Some(_)) => format!("{} with {}", plural(outer, "type"), plural(inner, "field")),
            (None, None) => format!("{} with {}", plural(outer, "path"), plural(inner, "operation")),
        }
    }

    /// The fields of each operation that are known by their types, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = &[Field]> {
        self.operations.iter().map(|operation| operation.fields.as_slice())
    }

    /// Compares the head of a request with the description. Returns the operation that it asks for, if there
    /// is one.
    pub fn head<'r, F>(
        &self,
        head: &Head<'r, F>,
        asked: Aspects,
        found: &mut Vec<Deviation>,
    ) -> Option<OperationId>
    where
        F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    {
        if let Some(rpc) = &self.rpc {
            return rpc_operation(rpc, head.method, asked, found);
        }
        if let Some(graphql) = &self.graphql {
            return graphql.head(head, asked, found);
        }
        let (number, fit) = self.operation(head.method, head.path, asked, found)?;
        let operation = &self.operations[number];
        let names = &self.templates[fit.template as usize].names;
        let query = head.query.unwrap_or_default();
        let is_right = operation.is_right(query);
        if asked.parameters {
            for parameter in &operation.parameters {
                if found.len() >= DEVIATIONS_MAX {
                    break;
                }
                let violations = match parameter.place {
                    Place::Query if is_right => continue,
                    Place::Query => parameter.of_query(query),
                    Place::PathSegment => {
                        let at = names.iter().position(|name| *name == parameter.name);
                        at.and_then(|at| fit.value(at)).map(|value| parameter.of_value(value))
                    }
                    Place::Cookie => {
                        cookie(&head.fields, &parameter.name).map(|value| parameter.of_value(&value))
                    }
                    _ => {
                        let mut values = fields(&head.fields, &parameter.name);
                        values.next().map(|value| parameter.of_value(value))
                    }
                };
                parameter.tell(violations, found);
            }
        }
        if asked.unknown_parameter && !is_right {
            operation.unknown_parameters(query, found);
        }
        if asked.security && !operation.security.is_empty() {
            let has = |credential: &Credential| credential.is_in(head);
            if !operation.security.iter().any(|all| all.iter().all(has)) {
                found.push(Deviation {
                    aspect: Aspect::Security,
                    kind: Kind::Security,
                    place: Place::Header,
                    name: b"authorization".to_vec(),
                    rule: format!("needs {}", operation.credentials()),
                    pointer: format!("{}/security", operation.pointer),
                });
            }
        }
        Some(OperationId(number))
    }

    /// The operation for a path and method, with what the path has for its template.
    fn operation<'r>(
        &self,
        method: &[u8],
        path: &'r [u8],
        asked: Aspects,
        found: &mut Vec<Deviation>,
    ) -> Option<(usize, Fit<'r>)> {
        let mut number = None;
        let mut by = |method: &[u8]| {
            self.paths.first(path, |template| {
                let methods = &self.templates[template as usize].methods;
                let of_method = methods.iter().find(|(known, _)| known.as_bytes() == method);
                number = of_method.map(|(_, number)| *number);
                number.is_some()
            })
        };
        let fit = by(method).or_else(|| if method == b"HEAD" { by(b"GET") } else { None });
        if let (Some(fit), Some(number)) = (fit, number) {
            if asked.unknown_path
                && let Some(rule) = self.other_reading(path, fit.template)
            {
                found.push(of_path(Kind::UnknownPath, rule.to_owned(), self.pointer_of(&fit)));
            }
            return Some((number, fit));
        }
        if !asked.unknown_path {
            return None;
        }
        match self.paths.first(path, |_| true) {
            None => found.push(of_path(Kind::UnknownPath, "is not declared".to_owned(), "/paths".to_owned())),
            // What browsers ask before requests to other origins is no operation of the API.
            Some(_) if method == b"OPTIONS" => {}
            Some(fit) => {
                let methods: Vec<&str> = self.templates[fit.template as usize]
                    .methods
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect();
                let rule = match methods.is_empty() {
                    true => "has no methods".to_owned(),
                    false => format!("must be {}", methods.join(", ")),
                };
                let mut deviation = of_path(Kind::Method, rule, self.pointer_of(&fit));
                deviation.place = Place::Method;
                found.push(deviation);
            }
        }
        None
    }

    fn pointer_of(&self, fit: &Fit<'_>) -> String {
        self.templates[fit.template as usize].pointer.clone()
    }

    /// How who reads the path in another way asks for something else: another template, or none.
    fn other_reading(&self, path: &[u8], template: u32) -> Option<&'static str> {
        memchr::memchr2(b'%', b';', path)?;
        let differs =
            |other: &[u8]| self.paths.first(other, |_| true).is_some_and(|fit| fit.template != template);
        let is_slash = |part: &[u8]| part.eq_ignore_ascii_case(b"%2f") || part.eq_ignore_ascii_case(b"%5c");
        if path.contains(&b'%') && path.windows(3).any(is_slash) {
            let decoded = portcullis_types::percent_decode(path, false);
            if differs(&decoded) {
                return Some("is another path where encoded slashes are decoded first");
            }
        }
        let is_semicolon = |part: &[u8]| part.eq_ignore_ascii_case(b"%3b");
        if path.contains(&b';') || path.contains(&b'%') && path.windows(3).any(is_semicolon) {
            let decoded = portcullis_types::percent_decode(path, false);
            let names = decoded.split(|b| *b == b'/').map(|part| part.split(|b| *b == b';').next());
            let names: Vec<&[u8]> = names.map(Option::unwrap_or_default).collect();
            if differs(&names.join(&b'/')) {
                return Some("is another path where parameters of its segments are left out");
            }
        }
        None
    }

    /// Compares the body of a request with what its operation declares.
    pub fn body<'r>(
        &self,
        operation: OperationId,
        content_types: impl Iterator<Item = &'r [u8]>,
        body: Sent<'_>,
        found: &mut Vec<Deviation>,
    ) {
        if let Some(rpc) = &self.rpc {
            return rpc_body(rpc, content_types, body, found);
        }
        if let Some(graphql) = &self.graphql {
            return graphql.body(content_types, body, found);
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
        let left = DEVIATIONS_MAX.saturating_sub(found.len());
        for violation in schema.violations(&value, left) {
            // The schema of a file that is declared is about a text that it is not.
            if violation.path.first().is_some_and(|name| files.contains(name)) {
                continue;
            }
            let Violation { path, rule, pointer, is_hidden } = violation;
            let (shown, name) = match place {
                Place::Json => (shown(&path), json_name(&path)),
                _ => (path.join("."), path.first().cloned().unwrap_or_default()),
            };
            let shown = if shown.is_empty() { "the body".to_owned() } else { format!("`{shown}`") };
            let kind = if is_hidden { Kind::ReadOnly } else { Kind::Body };
            let name = name.into_bytes();
            let rule = format!("{shown} {rule}");
            found.push(Deviation { aspect: Aspect::Body, kind, place, name, rule, pointer });
        }
    }
}

/// The declared answer that a response is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerId {
    operation: usize,
    answer: usize,
    media: usize,
}

impl Api {
    /// Compares status and media type of an answer to a request for `operation`. Returns what its body is to
    /// be compared with, if it has a schema. Without `has_body` there is none, as in answers to `HEAD`.
    pub fn answer<'r>(
        &self,
        operation: OperationId,
        status: u16,
        has_body: bool,
        content_types: impl Iterator<Item = &'r [u8]>,
        found: &mut Vec<Deviation>,
    ) -> Option<AnswerId> {
        let number = operation.0;
        let operation = self.operations.get(number)?;
        // Parts of an answer, and one that has not changed, are the client's wish.
        if operation.answers.is_empty() || matches!(status, 100..=199 | 206 | 304) {
            return None;
        }
        let fits = |answer: &Answer| match answer.status {
            Status::One(code) => code == status,
            Status::Class(class) => class == status / 100,
            Status::Any => true,
        };
        let Some((at, answer)) = operation.answers.iter().enumerate().find(|(_, answer)| fits(answer)) else {
            let rule = format!("the status {status} is not declared");
            let pointer = format!("{}/responses", operation.pointer);
            found.push(of_answer(Kind::Status, Place::ResponseHeader, "", rule, pointer));
            return None;
        };
        if !has_body || answer.body.media.is_empty() {
            return None;
        }
        let types: Vec<&[u8]> = content_types.take(2).collect();
        let media = match types.as_slice() {
            [one] => answer.body.media_at(&content_type::media_type(one).to_ascii_lowercase()),
            _ => None,
        };
        let Some(media) = media else {
            let rule = format!("must be {}", answer.body.types());
            let pointer = format!("{}/content", answer.body.pointer);
            found.push(of_answer(Kind::Response, Place::ResponseHeader, "content-type", rule, pointer));
            return None;
        };
        let media_type = types.first().copied().unwrap_or_default();
        let is_compared = answer.body.media[media].schema.is_some()
            && Processor::by_media_type(media_type) == Some(Processor::Json);
        is_compared.then_some(AnswerId { operation: number, answer: at, media })
    }

    /// Compares the body of an answer.
    pub fn answer_body(&self, answer: AnswerId, body: Sent<'_>, found: &mut Vec<Deviation>) {
        let media = self.operations.get(answer.operation).and_then(|operation| {
            let declared = operation.answers.get(answer.answer)?;
            declared.body.media.get(answer.media)
        });
        let Some(schema) = media.and_then(|media| media.schema.as_ref()) else { return };
        let of_body =
            |kind, rule: String| of_answer(kind, Place::ResponseBody, "", rule, schema.pointer.clone());
        let Sent::Whole(body) = body else {
            return found.push(of_body(Kind::Unchecked, NOT_WHOLE.to_owned()));
        };
        let value = match json::read(body) {
            Ok(value) => value,
            Err(rule) => return found.push(of_body(Kind::Response, rule)),
        };
        for violation in schema.violations(&value, DEVIATIONS_MAX.saturating_sub(found.len())) {
            let Violation { path, rule, pointer, is_hidden } = violation;
            let shown = shown(&path);
            let shown = if shown.is_empty() { "the body".to_owned() } else { format!("`{shown}`") };
            let kind = if is_hidden { Kind::WriteOnly } else { Kind::Response };
            let (name, rule) = (json_name(&path), format!("{shown} {rule}"));
            found.push(of_answer(kind, Place::ResponseBody, &name, rule, pointer));
        }
    }
}

fn of_answer(kind: Kind, place: Place, name: &str, rule: String, pointer: String) -> Deviation {
    Deviation { aspect: Aspect::Responses, kind, place, name: name.as_bytes().to_vec(), rule, pointer }
}

/// A body that is not compared, though it should be.
pub(crate) const NOT_WHOLE: &str = "the body was not compared with its schema: it was not held as a whole";

/// The operation of a request to an endpoint of JSON-RPC: only those that post have messages.
fn rpc_operation(
    rpc: &Rpc,
    method: &[u8],
    asked: Aspects,
    found: &mut Vec<Deviation>,
) -> Option<OperationId> {
    let is_known = rpc.http.iter().any(|known| known.as_bytes() == method) || method == b"OPTIONS";
    if !is_known && asked.unknown_path {
        let rule = format!("must be {}", rpc.http.join(", "));
        let mut deviation = of_path(Kind::Method, rule, rpc.pointer().to_owned());
        deviation.place = Place::Method;
        found.push(deviation);
    }
    (method == b"POST").then_some(OperationId(0))
}

fn rpc_body<'r>(
    rpc: &Rpc,
    content_types: impl Iterator<Item = &'r [u8]>,
    body: Sent<'_>,
    found: &mut Vec<Deviation>,
) {
    let tell = |kind, place, rule: &str| Deviation {
        aspect: Aspect::Body,
        kind,
        place,
        name: if kind == Kind::ContentType { b"content-type".to_vec() } else { Vec::new() },
        rule: rule.to_owned(),
        pointer: rpc.pointer().to_owned(),
    };
    let types: Vec<&[u8]> = content_types.take(2).collect();
    let is_json = |value: &&[u8]| Processor::by_media_type(value) == Some(Processor::Json);
    let is_right = types.len() == 1 && types.iter().all(is_json);
    match body {
        Sent::Whole(b"") => found.push(tell(Kind::Missing, Place::RawBody, "the body is required")),
        _ if !is_right => found.push(tell(Kind::ContentType, Place::Header, "must be application/json")),
        _ if types.iter().any(|value| content_type::is_foreign(value, false)) => {
            found.push(tell(Kind::ContentType, Place::Header, "must name no character set but UTF-8"));
        }
        Sent::Unseen => {
            found.push(tell(Kind::Unchecked, Place::RawBody, NOT_WHOLE));
        }
        Sent::Whole(body) => match json::read(body) {
            Ok(value) => rpc.body(&value, found),
            Err(rule) => found.push(tell(Kind::Body, Place::RawBody, &rule)),
        },
    }
}

fn of_path(kind: Kind, rule: String, pointer: String) -> Deviation {
    Deviation { aspect: Aspect::UnknownPath, kind, place: Place::Path, name: Vec::new(), rule, pointer }
}

impl Parameter {
    fn tell(&self, violations: Option<Vec<Violation>>, found: &mut Vec<Deviation>) {
        let deviation = |kind, rule: String, pointer: String| Deviation {
            aspect: Aspect::Parameters,
            kind,
            place: self.place,
            name: self.name.clone().into_bytes(),
            rule,
            pointer,
        };
        match violations {
            None if self.required => {
                let rule = format!("`{}` is required", self.name);
                found.push(deviation(Kind::Missing, rule, self.pointer.clone()));
            }
            None => {}
            Some(violations) => {
                for violation in violations {
                    let path = shown(&violation.path);
                    let name =
                        if path.is_empty() { self.name.clone() } else { format!("{}.{path}", self.name) };
                    let pointer =
                        if violation.pointer.is_empty() { &self.pointer } else { &violation.pointer };
                    let rule = format!("`{name}` {}", violation.rule);
                    found.push(deviation(Kind::Parameter, rule, pointer.clone()));
                }
            }
        }
    }
}

impl Operation {
    /// True if the query is surely right: each pair is one of a parameter that is there once, and a fast test
    /// accepts its text; and all that are required are there. Most queries are.
    fn is_right(&self, query: &[u8]) -> bool {
        let mut seen = 0u64;
        let is_plain = memchr::memchr2(b'%', b'+', query).is_none();
        let read = |text| if is_plain { Cow::Borrowed(text) } else { decoded(text) };
        for pair in pairs(query) {
            let name = read(pair.name);
            let is_it = |parameter: &&Parameter| {
                parameter.place == Place::Query && parameter.name.as_bytes() == &*name
            };
            let mut known = self.parameters.iter().take(u64::BITS as usize).enumerate();
            let Some((number, parameter)) = known.find(|(_, parameter)| is_it(parameter)) else {
                return false;
            };
            if seen >> number & 1 == 1 || !parameter.is_right(&read(pair.value)) {
                return false;
            }
            seen |= 1 << number;
        }
        let is_there = |(number, parameter): (usize, &Parameter)| {
            parameter.place != Place::Query
                || !parameter.required && !parameter.is_object()
                || number < u64::BITS as usize && seen >> number & 1 == 1
        };
        self.parameters.iter().enumerate().all(is_there)
    }

    fn unknown_parameters(&self, query: &[u8], found: &mut Vec<Deviation>) {
        for pair in pairs(query) {
            let name = decoded(pair.name);
            let is_key = |credential: &Credential| matches!(credential, Credential::Query(key) if key.as_bytes() == &*name);
            let is_known =
                self.parameters.iter().any(|each| each.place == Place::Query && each.has_name(&name))
                    || self.security.iter().flatten().any(is_key);
            if is_known {
                continue;
            }
            if found.len() >= DEVIATIONS_MAX {
                return;
            }
            found.push(Deviation {
                aspect: Aspect::UnknownParameter,
                kind: Kind::UnknownParameter,
                place: Place::Query,
                name: name.into_owned(),
                rule: "is not declared".to_owned(),
                pointer: format!("{}/parameters", self.pointer),
            });
        }
    }

    fn credentials(&self) -> String {
        let all = |all: &Vec<Credential>| all.iter().map(Credential::title).collect::<Vec<_>>().join(" and ");
        self.security.iter().map(all).collect::<Vec<_>>().join(", or ")
    }
}

impl Credential {
    fn is_in<'r, F>(&self, head: &Head<'r, F>) -> bool
    where
        F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
    {
        match self {
            Credential::Unseen => true,
            Credential::Header(name) => fields(&head.fields, name).any(|value| !value.is_empty()),
            Credential::Cookie(name) => cookie(&head.fields, name).is_some_and(|value| !value.is_empty()),
            Credential::Query(name) => pairs(head.query.unwrap_or_default())
                .any(|pair| *decoded(pair.name) == *name.as_bytes() && !pair.value.is_empty()),
            Credential::Authorization(scheme) => fields(&head.fields, "authorization").any(|value| {
                let (own, rest) = value.split_at(value.len().min(scheme.len()));
                own.eq_ignore_ascii_case(scheme.as_bytes()) && rest.first() == Some(&b' ')
            }),
        }
    }

    fn title(&self) -> String {
        match self {
            Credential::Header(name) => format!("the header field `{name}`"),
            Credential::Query(name) => format!("the parameter `{name}`"),
            Credential::Cookie(name) => format!("the cookie `{name}`"),
            Credential::Authorization(scheme) => format!("`Authorization: {scheme}`"),
            Credential::Unseen => "a certificate".to_owned(),
        }
    }
}

impl Body {
    /// The media type's declaration, the most specific one.
    fn media(&self, media_type: &[u8]) -> Option<&Media> {
        self.media_at(media_type).and_then(|at| self.media.get(at))
    }

    fn media_at(&self, media_type: &[u8]) -> Option<usize> {
        let text = std::str::from_utf8(media_type).ok()?;
        let (kind, subtype) = text.split_once('/')?;
        let fits = |media: &&Media| {
            (media.kind == kind || media.kind == "*") && (media.subtype == subtype || media.subtype == "*")
        };
        let exactness = |media: &&Media| (media.kind != "*", media.subtype != "*");
        let fitting = self.media.iter().enumerate().filter(|(_, media)| fits(media));
        fitting.max_by_key(|(_, media)| exactness(media)).map(|(at, _)| at)
    }

    fn types(&self) -> String {
        let each = self.media.iter().map(|media| format!("{}/{}", media.kind, media.subtype));
        each.collect::<Vec<_>>().join(" or ")
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

fn fields<'r, F>(fields: &F, name: &str) -> impl Iterator<Item = &'r [u8]>
where
    F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
{
    let name = name.as_bytes();
    fields.clone().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn cookie<'r, F>(all: &F, name: &str) -> Option<Cow<'r, [u8]>>
where
    F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
{
    fields(all, "cookie").find_map(|header| {
        let cookies = cookie::parse(header, CookieFormat::V0, Some(b';')).cookies;
        let found = cookies.iter().find(|each| &*each.full_name(header) == name.as_bytes())?;
        Some(Cow::Borrowed(found.value(header)))
    })
}

/// A path in a value, for people.
pub(crate) fn shown(path: &[String]) -> String {
    path.join(".")
}

/// The name that events have for a value of JSON: elements of a list have its name once more.
pub(crate) fn json_name(path: &[String]) -> String {
    let mut name: Vec<&str> = Vec::new();
    for step in path {
        let is_index = step.bytes().all(|b| b.is_ascii_digit()) && !step.is_empty();
        match (is_index, name.last()) {
            (true, Some(last)) => name.push(last),
            (true, None) => name.extend(["array", "array"]),
            (false, _) => name.push(step),
        }
    }
    name.join(".")
}
