//! The place of a match in the message, the same for all variables that show it, and for the semantic
//! detector.

use std::fmt;

use portcullis_types::{Place, Variable};

/// A value of the message that rules and the semantic detector speak of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    kind: Kind,
    name: Box<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A parameter of the query or the body.
    Argument,
    /// The name of one, a field or a cookie.
    Name,
    Cookie,
    Header,
    /// The path, in any of its forms.
    Path,
    /// Path and query as one.
    Target,
    Query,
    /// The body as one.
    Body,
    Xml,
    /// An uploaded file: its name, field or header.
    File,
    /// A value that the rule's variable does not identify.
    Other(Variable),
}

impl Spot {
    /// The spot of a match of a rule: its variable and the key in it. Nothing if the rule looked at nothing
    /// (`SecAction`).
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other variable is a spot of its own")]
    pub fn of_match(variable: Option<Variable>, key: &[u8]) -> Spot {
        use Variable as V;
        let (variable, key) = named(variable.unwrap_or(V::RemoteAddr), key);
        let kind = match variable {
            V::Args | V::ArgsGet | V::ArgsPost => Kind::Argument,
            V::ArgsNames
            | V::ArgsGetNames
            | V::ArgsPostNames
            | V::RequestHeadersNames
            | V::RequestCookiesNames => Kind::Name,
            V::RequestCookies => Kind::Cookie,
            V::RequestHeaders => Kind::Header,
            V::RequestFilename | V::RequestBasename | V::PathInfo => Kind::Path,
            V::RequestUri | V::RequestUriRaw | V::RequestLine => Kind::Target,
            V::QueryString => Kind::Query,
            V::RequestBody => Kind::Body,
            V::Xml => Kind::Xml,
            V::Files | V::FilesNames | V::MultipartPartHeaders | V::MultipartFilename => Kind::File,
            other => Kind::Other(other),
        };
        let name = match kind {
            Kind::Path | Kind::Target | Kind::Query | Kind::Body | Kind::Xml => b"".as_slice(),
            Kind::Argument | Kind::Name | Kind::Cookie | Kind::Header | Kind::File | Kind::Other(_) => key,
        };
        Spot { kind, name: name.to_ascii_lowercase().into() }
    }

    /// It is a part of the message that has several fields, the query or the body as one.
    pub(crate) fn is_of_many(&self) -> bool {
        matches!(self.kind, Kind::Target | Kind::Query | Kind::Body)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The name, as sent, of the parameter of the query or the body that a rule matched; nothing if it
    /// matched another value.
    pub(crate) fn argument(variable: Option<Variable>, key: &[u8]) -> Option<&[u8]> {
        let (variable, key) = named(variable?, key);
        matches!(variable, Variable::Args | Variable::ArgsGet | Variable::ArgsPost).then_some(key)
    }

    /// The name, as sent, of the cookie that a rule matched; nothing if it matched another value.
    pub(crate) fn cookie(variable: Option<Variable>, key: &[u8]) -> Option<&[u8]> {
        let (variable, key) = named(variable?, key);
        (variable == Variable::RequestCookies).then_some(key)
    }

    /// True if the semantic detector's value called `name` at `place` is, or is in, this spot.
    pub fn has(&self, place: Place, name: &[u8]) -> bool {
        let named = || self.name.eq_ignore_ascii_case(name);
        match place {
            Place::Query | Place::Form | Place::Json | Place::MultipartField => {
                self.kind == Kind::Argument && named()
            }
            Place::Name | Place::HeaderName => self.kind == Kind::Name && named(),
            Place::Cookie => self.kind == Kind::Cookie && named(),
            Place::Header => self.kind == Kind::Header && named(),
            Place::Path | Place::PathSegment => matches!(self.kind, Kind::Path | Kind::Target),
            Place::QueryString => matches!(self.kind, Kind::Query | Kind::Target),
            Place::RawBody => self.kind == Kind::Body,
            Place::XmlText | Place::XmlAttribute | Place::XmlDoctype => self.kind == Kind::Xml,
            Place::FileName | Place::PartHeader => self.kind == Kind::File,
            Place::Method
            | Place::FileContent
            | Place::Text
            | Place::ResponseBody
            | Place::ResponseHeader => false,
        }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{}", self.kind, self.name.escape_ascii())
    }
}

/// The variable and key of a match. Earlier matches of a chain go by the name of the value.
fn named(variable: Variable, key: &[u8]) -> (Variable, &[u8]) {
    use Variable::{MatchedVars, MatchedVarsNames};
    if !matches!(variable, MatchedVars | MatchedVarsNames) {
        return (variable, key);
    }
    let (name, rest) = match memchr(b':', key) {
        Some(colon) => (&key[..colon], &key[colon + 1..]),
        None => (key, b"".as_slice()),
    };
    let named = std::str::from_utf8(name).ok().and_then(Variable::from_name);
    match named.filter(|named| !matches!(named, MatchedVars | MatchedVarsNames)) {
        Some(named) => (named, rest),
        None => (variable, key),
    }
}

fn memchr(byte: u8, text: &[u8]) -> Option<usize> {
    text.iter().position(|&b| b == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_spot_whatever_shows_it() {
        let spot = Spot::of_match(Some(Variable::Args), b"Q");
        assert_eq!(spot, Spot::of_match(Some(Variable::ArgsGet), b"q"));
        assert_eq!(spot, Spot::of_match(Some(Variable::MatchedVars), b"ARGS:q"));
        assert_ne!(spot, Spot::of_match(Some(Variable::ArgsNames), b"q"));
        assert_ne!(spot, Spot::of_match(Some(Variable::RequestCookies), b"q"));
        assert!(
            spot.has(Place::Json, b"q") && !spot.has(Place::Json, b"p") && !spot.has(Place::Cookie, b"q")
        );
        let path = Spot::of_match(Some(Variable::RequestUriRaw), b"");
        assert!(
            path.has(Place::Path, b"") && path.has(Place::QueryString, b"") && !path.has(Place::Query, b"q")
        );
        // A name with a colon in it stays whole.
        let odd = Spot::of_match(Some(Variable::MatchedVars), b"ARGS:a:b");
        assert_eq!(odd, Spot::of_match(Some(Variable::Args), b"a:b"));
    }
}
