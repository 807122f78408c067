//! What is said of a request that differs.

use std::fmt;

use portcullis_types::Place;

use crate::limits::DEVIATIONS_MAX;

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

    /// True if it is asked about. Of answers nobody asks who does not want to know.
    pub fn has(self, aspect: Aspect) -> bool {
        match aspect {
            Aspect::UnknownPath => self.unknown_path,
            Aspect::UnknownParameter => self.unknown_parameter,
            Aspect::Parameters => self.parameters,
            Aspect::Body => self.body,
            Aspect::Security => self.security,
            Aspect::Responses => true,
        }
    }
}

/// Takes the deviations of the aspects that are asked about. Each aspect has room of its own: a client that
/// adds deviations of one that is only logged must not push out those of one that is refused.
pub(crate) struct Told<'f> {
    asked: Aspects,
    found: &'f mut Vec<Deviation>,
}

impl<'f> Told<'f> {
    pub fn new(asked: Aspects, found: &'f mut Vec<Deviation>) -> Told<'f> {
        Told { asked, found }
    }

    /// How many more deviations of an aspect are taken: none if nobody asks about it.
    pub fn room(&self, aspect: Aspect) -> usize {
        let taken = || self.found.iter().filter(|each| each.aspect == aspect).count();
        if self.asked.has(aspect) { DEVIATIONS_MAX.saturating_sub(taken()) } else { 0 }
    }

    pub fn has_room(&self, aspect: Aspect) -> bool {
        self.room(aspect) > 0
    }

    pub fn push(&mut self, deviation: Deviation) {
        if self.has_room(deviation.aspect) {
            self.found.push(deviation);
        }
    }

    /// Tells that a body was not compared, once, where any of these aspects asks for the comparison.
    pub fn unchecked(&mut self, aspects: &[Aspect], place: Place, rule: &str, pointer: &str) {
        if let Some(aspect) = aspects.iter().find(|aspect| self.has_room(**aspect)) {
            let (rule, pointer) = (rule.to_owned(), pointer.to_owned());
            let (aspect, kind, name) = (*aspect, Kind::Unchecked, Vec::new());
            self.push(Deviation { aspect, kind, place, name, rule, pointer });
        }
    }
}

pub(crate) fn of_path(kind: Kind, rule: String, pointer: String) -> Deviation {
    Deviation { aspect: Aspect::UnknownPath, kind, place: Place::Path, name: Vec::new(), rule, pointer }
}

pub(super) fn of_answer(kind: Kind, place: Place, name: &str, rule: String, pointer: String) -> Deviation {
    Deviation { aspect: Aspect::Responses, kind, place, name: name.as_bytes().to_vec(), rule, pointer }
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
