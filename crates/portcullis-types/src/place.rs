macro_rules! places {
    ($($(#[$doc:meta])* $variant:ident $name:literal $group:literal)*) => {
        /// The part of a message in which a value stands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Place { $($(#[$doc])* $variant,)* }

        impl Place {
            /// All places.
            pub const ALL: &'static [Place] = &[$(Place::$variant,)*];

            /// The name in events and explanations.
            pub fn name(self) -> &'static str {
                match self { $(Place::$variant => $name,)* }
            }

            /// The place of that name.
            pub fn from_name(name: &str) -> Option<Place> {
                Place::ALL.iter().copied().find(|place| place.name() == name)
            }

            /// The coarser name that weights know (`at:` features).
            pub fn group(self) -> &'static str {
                match self { $(Place::$variant => $group,)* }
            }
        }
    };
}

places! {
    /// The method.
    Method "method" "line"
    /// The whole path as sent.
    Path "path" "path"
    /// One segment of the path, decoded.
    PathSegment "path-segment" "path"
    /// The whole query string as sent.
    QueryString "query-string" "raw"
    /// A query parameter's value, decoded.
    Query "query" "query"
    /// A parameter's, field's or key's name.
    Name "name" "name"
    /// A form field's value, decoded.
    Form "form" "form"
    /// A scalar of a JSON body; the name is its path.
    Json "json" "json"
    /// Text of an XML element.
    XmlText "xml-text" "xml"
    /// An attribute's value.
    XmlAttribute "xml-attribute" "xml"
    /// A document type declaration.
    XmlDoctype "xml-doctype" "xml"
    /// A multipart field that is not a file.
    MultipartField "multipart-field" "form"
    /// A file's name.
    FileName "file-name" "filename"
    /// A file's content, or its beginning.
    FileContent "file-content" "file"
    /// A header line of a multipart part.
    PartHeader "part-header" "header"
    /// A header field's value.
    Header "header" "header"
    /// A header field's name.
    HeaderName "header-name" "name"
    /// A cookie's value.
    Cookie "cookie" "cookie"
    /// A body that is not of a kind that is taken apart.
    Text "text" "text"
    /// The whole body as sent, whether or not it was taken apart.
    RawBody "raw-body" "raw"
    /// A response's body.
    ResponseBody "response-body" "response"
    /// A response's header field.
    ResponseHeader "response-header" "response"
}

impl Place {
    /// It stands in a response.
    pub fn is_response(self) -> bool {
        matches!(self, Place::ResponseBody | Place::ResponseHeader)
    }

    /// A value that an application would read as such. The raw forms beside them repeat what values have.
    pub fn is_value(self) -> bool {
        !matches!(
            self,
            Place::Method
                | Place::Path
                | Place::QueryString
                | Place::RawBody
                | Place::XmlDoctype
                | Place::PartHeader
                | Place::ResponseBody
                | Place::ResponseHeader
        )
    }
}
