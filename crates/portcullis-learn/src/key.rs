//! Where a field stands.

use portcullis_types::Place;
use serde::{Deserialize, Serialize};

/// The name of the segment of a path that stands below a template.
pub(crate) const SEGMENT: &str = "{segment}";
/// The template and the method of fields that are the same on all pages of a site. No path has it: `*` is no
/// name.
pub(crate) const SITE: &str = "*";

/// Where a field stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The path, with placeholders for the segments that are values: `/users/{number}`.
    pub template: String,
    /// The name of the field, in lower case.
    pub name: String,
    /// The method; GET stands for HEAD, too.
    pub method: String,
    /// The place.
    pub place: FieldPlace,
}

impl Key {
    /// That of the field `name`, in the one form of names.
    pub(crate) fn new(template: &str, name: &[u8], method: &[u8], place: FieldPlace) -> Key {
        let (template, method) =
            if place.is_of_site() { (SITE, SITE.as_bytes()) } else { (template, method) };
        Key {
            template: template.to_owned(),
            name: String::from_utf8_lossy(name).into_owned(),
            method: String::from_utf8_lossy(method).into_owned(),
            place,
        }
    }
}

/// The places of fields that are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldPlace {
    /// Parameters of the query string.
    Query,
    /// Fields of a form, whatever its coding.
    Form,
    /// Values of JSON.
    Json,
    /// Segments of paths that are values. Their name is the path above.
    PathSegment,
    /// Header fields of an application's own, the same on all pages of a site.
    Header,
    /// Cookies, the same on all pages of a site.
    Cookie,
}

impl FieldPlace {
    /// All of them.
    pub const ALL: [FieldPlace; 6] = [
        FieldPlace::Query,
        FieldPlace::Form,
        FieldPlace::Json,
        FieldPlace::PathSegment,
        FieldPlace::Header,
        FieldPlace::Cookie,
    ];

    /// That of a value's place, if it is one of parameters.
    pub fn of(place: Place) -> Option<FieldPlace> {
        match place {
            Place::Query => Some(FieldPlace::Query),
            Place::Form | Place::MultipartField => Some(FieldPlace::Form),
            Place::Json => Some(FieldPlace::Json),
            Place::Method
            | Place::Path
            | Place::PathSegment
            | Place::QueryString
            | Place::Name
            | Place::XmlText
            | Place::XmlAttribute
            | Place::XmlDoctype
            | Place::FileName
            | Place::FileContent
            | Place::PartHeader
            | Place::Header
            | Place::HeaderName
            | Place::Cookie
            | Place::Text
            | Place::RawBody
            | Place::ResponseBody
            | Place::ResponseHeader => None,
        }
    }

    /// The name in lists and state files.
    pub fn name(self) -> &'static str {
        match self {
            FieldPlace::Query => "query",
            FieldPlace::Form => "form",
            FieldPlace::Json => "json",
            FieldPlace::PathSegment => "path-segment",
            FieldPlace::Header => "header",
            FieldPlace::Cookie => "cookie",
        }
    }

    /// The place of values, or the most usual one of them.
    pub fn place(self) -> Place {
        match self {
            FieldPlace::Query => Place::Query,
            FieldPlace::Form => Place::Form,
            FieldPlace::Json => Place::Json,
            FieldPlace::PathSegment => Place::PathSegment,
            FieldPlace::Header => Place::Header,
            FieldPlace::Cookie => Place::Cookie,
        }
    }

    /// It is one of parameters: applications take these from wherever they come, and their values may be a
    /// list.
    pub fn is_of_parameters(self) -> bool {
        matches!(self, FieldPlace::Query | FieldPlace::Form | FieldPlace::Json)
    }

    /// A field that was never sent in one of them is judged as one of the same name in the other. Below a
    /// page that is known, JSON is none: programs that take what follows their name for data read parameters.
    pub(crate) fn is_like(self, other: FieldPlace, is_whole: bool) -> bool {
        let is_json = |place| place == FieldPlace::Json;
        let is_read = is_whole || is_json(self) == is_json(other);
        self == other || self.is_of_parameters() && other.is_of_parameters() && is_read
    }

    /// Clients send its fields with every request to the site, whatever the page.
    pub fn is_of_site(self) -> bool {
        matches!(self, FieldPlace::Header | FieldPlace::Cookie)
    }
}

/// A key in front of those of all fields of a page.
pub(crate) fn first_of_page(template: &str) -> Key {
    Key {
        template: template.to_owned(),
        name: String::new(),
        method: String::new(),
        place: FieldPlace::Query,
    }
}
