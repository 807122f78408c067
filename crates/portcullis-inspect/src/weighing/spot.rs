//! The place of a match in the message, the same for all variables that show it, and for the semantic detector.

use portcullis_types::{Place, Variable};

/// A value of the message that rules and the semantic detector speak of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    kind: Kind,
    name: Box<[u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
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
    /// Where the rule's variable does not say what value it is.
    Other(Variable),
}

impl Spot {
    /// The spot of a match of a rule: its variable and the key in it. Nothing if the rule looked at nothing (`SecAction`).
    pub fn of_match(variable: Option<Variable>, key: &[u8]) -> Spot {
        use Variable as V;
        // What a chain found before goes by the name of the value.
        if let Some(V::MatchedVars | V::MatchedVarsNames) = variable {
            let (name, key) = match memchr(b':', key) {
                Some(colon) => (&key[..colon], &key[colon + 1..]),
                None => (key, b"".as_slice()),
            };
            let named = std::str::from_utf8(name).ok().and_then(V::from_name);
            if let Some(named) = named.filter(|named| !matches!(named, V::MatchedVars | V::MatchedVarsNames))
            {
                return Spot::of_match(Some(named), key);
            }
        }
        let kind = match variable.unwrap_or(V::RemoteAddr) {
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
            _ => key,
        };
        Spot { kind, name: name.to_ascii_lowercase().into() }
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
            _ => false,
        }
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
