//! What a description declares of paths and operations.

use std::borrow::Cow;
use std::sync::Arc;

use portcullis_types::Place;

use super::deviation::{Aspect, Deviation, Kind, Told};
use super::head::{Head, cookie, fields};
use crate::field::Field;
use crate::parameter::{Parameter, decoded, pairs};
use crate::schema::{Schema, Types};

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

/// What is known of the parameters of a query at first sight.
pub(super) struct Looked {
    /// By number, those that are there once and that a fast test accepts, and those that may be away and are.
    right: u64,
    /// All names are of parameters that are no objects.
    pub knows_names: bool,
}

impl Looked {
    /// True if the parameter of the query with this number is surely right.
    pub fn is_right(&self, number: usize) -> bool {
        number < u64::BITS as usize && self.right >> number & 1 == 1
    }
}

impl Operation {
    /// What one pass over the query tells without schemas, which is all that most queries need.
    pub(super) fn look(&self, query: &[u8]) -> Looked {
        let (mut seen, mut other, mut knows_names) = (0u64, 0u64, true);
        let is_plain = memchr::memchr2(b'%', b'+', query).is_none();
        let read = |text| if is_plain { Cow::Borrowed(text) } else { decoded(text) };
        for pair in pairs(query) {
            let name = read(pair.name);
            let is_it = |parameter: &&Parameter| {
                parameter.place == Place::Query && parameter.name.as_bytes() == &*name
            };
            let mut known = self.parameters.iter().take(u64::BITS as usize).enumerate();
            let found = known.find(|(_, parameter)| is_it(parameter));
            // The names that an object has in the query are those of its members.
            let Some((number, parameter)) = found.filter(|(_, parameter)| !parameter.is_object()) else {
                knows_names = false;
                continue;
            };
            let bit = 1 << number;
            if seen & bit != 0 || !parameter.is_right(&read(pair.value)) {
                other |= bit;
            }
            seen |= bit;
        }
        let mut right = seen & !other;
        if knows_names {
            for (number, parameter) in self.parameters.iter().take(u64::BITS as usize).enumerate() {
                let may_be_away = !parameter.required && !parameter.is_object();
                right |= u64::from(may_be_away && seen >> number & 1 == 0) << number;
            }
        }
        Looked { right, knows_names }
    }

    pub(super) fn unknown_parameters(&self, query: &[u8], found: &mut Told<'_>) {
        for pair in pairs(query) {
            let name = decoded(pair.name);
            let is_key = |credential: &Credential| matches!(credential, Credential::Query(key) if key.as_bytes() == &*name);
            let is_known =
                self.parameters.iter().any(|each| each.place == Place::Query && each.has_name(&name))
                    || self.security.iter().flatten().any(is_key);
            if is_known {
                continue;
            }
            if !found.has_room(Aspect::UnknownParameter) {
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

    pub(super) fn credentials(&self) -> String {
        let all = |all: &Vec<Credential>| all.iter().map(Credential::title).collect::<Vec<_>>().join(" and ");
        self.security.iter().map(all).collect::<Vec<_>>().join(", or ")
    }
}

impl Credential {
    pub(super) fn is_in<'r, F>(&self, head: &Head<'r, F>) -> bool
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
    pub(super) fn media(&self, media_type: &[u8]) -> Option<&Media> {
        self.media_at(media_type).and_then(|at| self.media.get(at))
    }

    pub(super) fn media_at(&self, media_type: &[u8]) -> Option<usize> {
        let text = std::str::from_utf8(media_type).ok()?;
        let (kind, subtype) = text.split_once('/')?;
        let fits = |media: &&Media| {
            (media.kind == kind || media.kind == "*") && (media.subtype == subtype || media.subtype == "*")
        };
        let exactness = |media: &&Media| (media.kind != "*", media.subtype != "*");
        let fitting = self.media.iter().enumerate().filter(|(_, media)| fits(media));
        fitting.max_by_key(|(_, media)| exactness(media)).map(|(at, _)| at)
    }

    pub(super) fn types(&self) -> String {
        let each = self.media.iter().map(|media| format!("{}/{}", media.kind, media.subtype));
        each.collect::<Vec<_>>().join(" or ")
    }
}
