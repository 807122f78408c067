//! Heads of requests beside the description.

use std::borrow::Cow;

use portcullis_http::cookie::{self, CookieFormat};
use portcullis_types::Place;

use super::deviation::{Aspect, Aspects, Deviation, Kind, Told, of_path, shown};
use super::plan::Credential;
use super::{Api, OperationId};
use crate::parameter::Parameter;
use crate::path::Fit;
use crate::rpc;
use crate::schema::Violation;

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

impl Api {
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
        let found = &mut Told::new(asked, found);
        if let Some(rpc) = &self.rpc {
            return rpc::operation(rpc, head.method, found);
        }
        if let Some(graphql) = &self.graphql {
            return graphql.head(head, found);
        }
        if let Some(grpc) = &self.grpc {
            return grpc.head(head, found);
        }
        let (number, fit) = self.operation(head.method, head.path, found)?;
        let operation = &self.operations[number];
        let names = &self.templates[fit.template as usize].names;
        let query = head.query.unwrap_or_default();
        let looked = operation.look(query);
        if asked.parameters {
            for (number, parameter) in operation.parameters.iter().enumerate() {
                if !found.has_room(Aspect::Parameters) {
                    break;
                }
                let violations = if parameter.place == Place::Query {
                    if looked.is_right(number) {
                        continue;
                    }
                    parameter.of_query(query)
                } else if parameter.place == Place::PathSegment {
                    let at = names.iter().position(|name| *name == parameter.name);
                    at.and_then(|at| fit.value(at)).map(|value| parameter.of_value(value))
                } else if parameter.place == Place::Cookie {
                    cookie(&head.fields, &parameter.name).map(|value| parameter.of_value(&value))
                } else {
                    let mut values = fields(&head.fields, &parameter.name);
                    values.next().map(|value| parameter.of_value(value))
                };
                parameter.tell(violations, found);
            }
        }
        if asked.unknown_parameter && !looked.knows_names {
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
    fn operation<'r>(&self, method: &[u8], path: &'r [u8], found: &mut Told<'_>) -> Option<(usize, Fit<'r>)> {
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
            if found.has_room(Aspect::UnknownPath)
                && let Some(rule) = self.other_reading(path, fit.template)
            {
                found.push(of_path(Kind::UnknownPath, rule.to_owned(), self.pointer_of(&fit)));
            }
            return Some((number, fit));
        }
        if !found.has_room(Aspect::UnknownPath) {
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
}

impl Parameter {
    fn tell(&self, violations: Option<Vec<Violation>>, found: &mut Told<'_>) {
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

pub(super) fn fields<'r, F>(fields: &F, name: &str) -> impl Iterator<Item = &'r [u8]>
where
    F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
{
    let name = name.as_bytes();
    fields.clone().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub(super) fn cookie<'r, F>(all: &F, name: &str) -> Option<Cow<'r, [u8]>>
where
    F: Iterator<Item = (&'r [u8], &'r [u8])> + Clone,
{
    fields(all, "cookie").find_map(|header| {
        let cookies = cookie::parse(header, CookieFormat::V0, Some(b';')).cookies;
        let found = cookies.iter().find(|each| &*each.full_name(header) == name.as_bytes())?;
        Some(Cow::Borrowed(found.value(header)))
    })
}
