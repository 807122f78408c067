//! Unsafe deserialisation.
//!
//! What it does: reads the beginnings of serialised streams (Java, .NET, pickle, Marshal; as bytes,
//! hexadecimal or Base64), the grammar of PHP's `serialize`, tags of YAML that make objects, and names of
//! types in JSON and XML, and asks what types would be made.
//!
//! Why it is dangerous: making an object runs code of its class; classes that run commands so are in most
//! applications.
//!
//! References: <https://cheatsheetseries.owasp.org/cheatsheets/Deserialization_Cheat_Sheet.html>.

mod binary;
mod connection;
mod markup;
mod php;
mod pickle;
#[cfg(test)]
mod tests;
mod types;

use portcullis_types::Span;

use self::types::Types;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://cheatsheetseries.owasp.org/cheatsheets/Deserialization_Cheat_Sheet.html";
    JAVA_STREAM "deserialization.java-stream" Critical Quotable "a stream of serialised Java objects";
    DOTNET_STREAM "deserialization.dotnet-stream" Critical Quotable
        "a stream of .NET's BinaryFormatter or LosFormatter";
    PICKLE "deserialization.pickle" Critical Quotable
        "a pickle of Python that calls a function of the system";
    PICKLE_PLAIN "deserialization.pickle-plain" Warning Quotable "a pickle of Python";
    MARSHAL_OBJECT "deserialization.marshal-object" Error Quotable
        "a stream of Ruby's Marshal that makes an object";
    MARSHAL_GADGET "deserialization.marshal-gadget" Error Quotable
        "the object is of a class that gadgets begin with";
    PHP_OBJECT "deserialization.php-object" Critical Quotable "an object of PHP's serialize";
    PHP_PLAIN "deserialization.php-plain" Notice Quotable "an array of PHP's serialize";
    YAML_OBJECT "deserialization.yaml-object" Critical Quotable
        "a YAML tag that makes an object or names a function";
    YAML_PLAIN "deserialization.yaml-plain" Warning Quotable "a YAML tag of a programming language";
    NODE_FUNCTION "deserialization.node-function" Critical Quotable "a function of node-serialize";
    GADGET_TYPE "deserialization.gadget-type" Critical Quotable
        "a type name in JSON asks for a class that gadgets begin with";
    GADGET_VALUE "deserialization.gadget-value" Error Quotable
        "the value is the name of a class that gadgets begin with";
    ANY_TYPE "deserialization.any-type" Notice Quotable "a type name in JSON asks for a class";
    XML_GADGET "deserialization.xml-gadget" Critical Quotable
        "an XML element makes an object of a class that gadgets begin with";
    CONNECTION "deserialization.connection" Critical Quotable
        "a connection string of JDBC that makes a driver load or run something";
    CONSTRUCTOR_KEY "deserialization.constructor-key" Critical Quotable
        "a key that asks an object container of PHP to call a constructor";
    XML_PROXY "deserialization.xml-proxy" Error Quotable "an XML element makes a proxy, as XStream writes it";
    XML_CLASS "deserialization.xml-class" Warning Quotable
        "an XML element is named like a class, or as XStream writes objects";
}

/// See the module.
#[derive(Debug)]
pub struct Deserialization {
    types: Types,
}

impl Deserialization {
    /// The detector with its data.
    pub fn new() -> Deserialization {
        Deserialization { types: Types::new() }
    }
}

impl Default for Deserialization {
    fn default() -> Self {
        Deserialization::new()
    }
}

/// Each form has a digit or one of the signs.
static PROFILE: Profile = Profile::new(Class::Deserialization, KINDS)
    .needs(ByteGroups::of(b"0:!$@<.\n(\\\0\x01"))
    .hints(HINTS)
    .weights(include_str!("../../../weights/deserialization.tsv"));

impl Detector for Deserialization {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn keys(&self) -> &[&'static str] {
        types::KEYS
    }

    /// XML and JSON are looked at as a whole too: names of elements and the order of values tell.
    fn reads(&self, place: Place) -> bool {
        place.is_value() || place == Place::RawBody
    }

    fn reads_body(&self, body: &[u8]) -> bool {
        match body.trim_ascii_start().first() {
            Some(b'<') => true,
            Some(b'{' | b'[') => {
                memchr::memchr(b'.', body).is_some()
                    && (types::may_have_pairs(body) || types::asks_directory(body).is_some())
            }
            _ => false,
        }
    }

    /// Its marks stand at the beginning, or after another sign.
    fn reads_word(&self, word: &[u8]) -> bool {
        binary::begins_stream(word)
    }

    fn reads_bytes(&self) -> bool {
        true
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        if input.location.place == Place::RawBody {
            match text.trim_ascii_start().first() {
                Some(b'<') => markup::xml(&self.types, text, input.document.is_settings, found),
                Some(b'{' | b'[') => {
                    types::pairs_in_json(&self.types, text, found);
                    types::directory_in_json(&self.types, text, found);
                }
                _ => {}
            }
            return;
        }
        binary::detect(&self.types, text, found);
        if input.groups.has(b':') && input.groups.has(b'{') {
            php::detect(text, found);
            types::keys_of_ruby(text, found);
        }
        if input.groups.has(b'!') || input.groups.has(b'<') {
            markup::yaml(&self.types, text, found);
        }
        if input.groups.has(b'<') {
            markup::xml(&self.types, text, input.document.is_settings, found);
        }
        if input.groups.has(b'$')
            && let Some(at) = memchr::memmem::find(text, b"_$$ND_FUNC$$_")
        {
            found.add(NODE_FUNCTION, Span::new(at, at + 13));
        }
        types::named(input, found);
        if input.groups.has(b'.') || input.groups.has(b'/') {
            types::names_in_json(&self.types, text, found);
            types::pairs_in_json(&self.types, text, found);
            types::value(&self.types, input, found);
        }
        if input.groups.has(b'\\') {
            types::class_of_php(text, found);
        }
        if input.groups.has(b':') {
            connection::detect(text, found);
        }
        // Yii makes an object of `{"class": ..., "__construct()": [...]}`.
        if let Some(at) = memchr::memmem::find(text, b"__construct()") {
            let is_key = at > 0 && text[at - 1] == b'"' && text[at + 13..].starts_with(b"\":");
            if input.location.place == Place::Name || is_key {
                found.add(CONSTRUCTOR_KEY, Span::new(at, at + 13));
            }
        }
        if input.groups.has(b'\n') || input.groups.has(0x80) {
            pickle::detect(&self.types, text, found);
        }
    }
}

const HINTS: &[Hint] = &[
    Hint::text("jdbc:"),
    Hint::text("ro0ab"),
    Hint::text("aced0005"),
    Hint::text("\u{ac}\u{ed}"),
    Hint::text("\0\u{5}"),
    Hint::text("aaeaaad/"),
    Hint::text("\0\u{1}\0\0\0"),
    Hint::text("/wey"),
    Hint::text("bah"),
    Hint::text("\u{4}\u{8}"),
    Hint::text("o:"),
    Hint::text("c:"),
    Hint::text("a:"),
    Hint::text("!!"),
    Hint::text("!ruby/"),
    Hint::text("!php/"),
    Hint::text("yaml.org,2002:"),
    Hint::text("nd_func"),
    Hint::text("type\""),
    Hint::text("type'"),
    Hint::text("@class"),
    Hint::text("com."),
    Hint::text("java"),
    Hint::text("org."),
    Hint::text("system."),
    Hint::text("jdk."),
    Hint::text("xstream"),
    Hint::text("sorted-set"),
    Hint::text("<sun."),
    Hint::text("groovy."),
    Hint::text("__jsonclass__"),
    Hint::text("fnstream"),
    Hint::text("pendingbroadcast"),
    Hint::text("monolog\\handler"),
    Hint::text("serialization="),
    Hint::text("\"^o\""),
    Hint::text("json_class"),
    Hint::text("ldap"),
    Hint::text("rmi:"),
    Hint::text("__construct()"),
    Hint::text("py/"),
    Hint::text("clr-namespace"),
    Hint::text("wddxpacket"),
    Hint::text("__type"),
    Hint::text("dynamic-proxy"),
    Hint::text("objectdataprovider"),
    Hint::text("%tag"),
    // Serialised objects have control bytes, as no text has.
    Hint::text("\0"),
    Hint::text("\u{1}"),
    // A pickle of protocol 0 keeps what it has named, or opens a tuple behind it.
    Hint::text("p0\n"),
    Hint::text("\n)r"),
    Hint::text("\ns'"),
    Hint::text("\n(s'"),
    Hint::text("\n(s\""),
    Hint::text("\n(v"),
    Hint::text("\n(l"),
    Hint::text("\n(d"),
    Hint::text("\n(c"),
    Hint::text("\n(("),
    Hint::text("(i"),
];
