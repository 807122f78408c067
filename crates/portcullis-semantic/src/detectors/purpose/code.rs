//! Fields for source code: snippets, scripts and styles of pages, templates, markup, files of an editor.
//!
//! Code is what the site asks for there, so that only what runs elsewhere is an attack.

use super::name::{
    NAME_BYTES_MAX, has_last_word, has_word, is_key_of_list, is_of_body, is_plain_name, last_part, parts,
    words,
};
use crate::Location;

/// The field takes code: snippets of an editor, scripts of a page.
pub(in crate::detectors) fn takes_code(location: Location<'_>) -> bool {
    const CODE: &[&[u8]] = &[
        b"snippet",
        b"script",
        b"js",
        b"javascript",
        b"groovy",
        b"lua",
        b"powershell",
        b"func",
        b"newcontent",
    ];
    let last = last_part(location.name);
    is_of_body(location.place)
        && (has_word(last, CODE) || has_word(last, SOURCES) && names_source(location.name))
        && !is_key_of_list(location.name)
}

/// Words for code that are words for much else, too: a coupon's, a country's, where a visitor came from.
const SOURCES: &[&[u8]] = &[b"code", b"source", b"sources"];

/// `code`, `source_code`, `custom_code`, `pageSource`: all other words of the innermost name say what code it
/// is or where it stands, and the name above does not say that it is the code of a coupon or the like.
fn names_source(name: &[u8]) -> bool {
    const QUALIFIERS: &[&[u8]] = words!("purpose", "code-qualifiers");
    const OTHERS: &[&[u8]] = words!("purpose", "other-codes");
    let mut parts = parts(name);
    let (last, above) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_known = |word: &[u8]| {
        word.iter().all(u8::is_ascii_digit) || QUALIFIERS.iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    words(last).all(is_known) && !has_word(above, OTHERS)
}

/// The field takes what the site's pages are to have in them: a tag manager's snippet, a counter's, styles
/// and scripts of a theme.
pub(in crate::detectors) fn takes_scripts(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] = &[
        b"js",
        b"javascript",
        b"tracking",
        b"analytics",
        b"gtm",
        b"gtag",
        b"pixel",
        b"embed",
        b"injection",
        b"newcontent",
    ];
    const CODE: &[&[u8]] = &[b"code", b"html", b"tags", b"markup", b"content"];
    const PARTS: &[&[u8]] = &[b"head", b"header", b"footer", b"custom", b"body", b"theme", b"inject"];
    let last = last_part(location.name);
    is_of_body(location.place) && (has_word(last, WORDS) || has_word(last, CODE) && has_word(last, PARTS))
}

/// The field takes templates: of pages, mails and reports.
pub(in crate::detectors) fn takes_templates(location: Location<'_>) -> bool {
    const TEMPLATES: &[&[u8]] = &[
        b"template",
        b"templates",
        b"layout",
        b"theme",
        b"partial",
        b"liquid",
        b"jinja",
        b"twig",
        b"handlebars",
        b"mustache",
        b"newcontent",
        b"tpl",
    ];
    takes_code(location) || is_of_body(location.place) && has_word(last_part(location.name), TEMPLATES)
}

/// The field is for markup that the site's pages show as it is: `html`, `custom_markup`, `body_html`,
/// `template`.
pub(in crate::detectors) fn takes_markup(location: Location<'_>) -> bool {
    is_of_body(location.place)
        && has_word(last_part(location.name), &[b"html", b"markup", b"embed", b"template", b"tpl"])
}

/// The field is for a document of XML: `xml`, `bpmn`, `plist`.
pub(super) fn takes_xml(location: Location<'_>) -> bool {
    has_last_word(location.name, &[b"xml", b"bpmn", b"wsdl", b"xsd", b"plist"])
}

/// The field is for a file that an editor, a wiki or an interface to a repository keeps as it is: `content`,
/// `source_code`, `wpTextbox1`, `file.data`, `asset.value`.
pub(in crate::detectors) fn takes_file(location: Location<'_>) -> bool {
    takes_page(location)
        || is_of_body(location.place) && has_last_word(location.name, &[b"text", b"plaintext"])
}

/// The field is for a file, and that file may be a page.
pub(in crate::detectors) fn takes_page(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = words!("purpose", "pages");
    const OWNERS: &[&[u8]] = &[
        b"file",
        b"files",
        b"asset",
        b"assets",
        b"blob",
        b"document",
        b"template",
        b"script",
        b"snippet",
        b"content",
        b"source",
    ];
    let name = location.name;
    if !is_of_body(location.place) || name.len() > NAME_BYTES_MAX || !is_plain_name(name) {
        return false;
    }
    let mut parts = parts(name);
    let (last, above) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_part = || [&b"data"[..], b"value", b"text"].contains(&last) && has_word(above, OWNERS);
    let is_file = has_last_word(name, FILES) && (!has_last_word(name, SOURCES) || names_source(name));
    is_file || is_part()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn fields_for_files() {
        for name in [
            "content",
            "files.contents",
            "source_code",
            "wpTextbox1",
            "file.data",
            "asset.value",
            "body_html",
        ] {
            assert!(takes_page(at(Place::Json, name)) && takes_page(at(Place::Form, name)), "{name}");
            assert!(!takes_page(at(Place::Query, name)) && !takes_file(at(Place::Header, name)), "{name}");
        }
        assert!(takes_file(at(Place::Json, "text")) && !takes_page(at(Place::Json, "text")));
        for name in [
            "content_type",
            "code_id",
            "id",
            "q",
            "data",
            "value",
            "comment",
            "message",
            "description",
            "filename",
            "bodyClass",
            "url",
        ] {
            assert!(!takes_file(at(Place::Json, name)), "{name}");
        }
        assert!(!takes_page(at(Place::Form, "id[]content")) && !takes_page(at(Place::Form, "id\0content")));
    }

    #[test]
    fn fields_for_code() {
        assert!(takes_code(at(Place::Form, "page_script")) && !takes_code(at(Place::Query, "code")));
        for name in [
            "code",
            "source",
            "source_code",
            "sourceCode",
            "custom_code",
            "embed_code",
            "head_code",
            "footer-code",
            "cells.0.source",
            "files.0.code",
            "code2",
            "js_code",
            "newcontent",
            "code_1",
        ] {
            assert!(takes_code(at(Place::Json, name)) != (name == "code2"), "{name}");
        }
        for name in [
            "coupon_code",
            "zip_code",
            "postalCode",
            "address[country_code]",
            "lead_source",
            "utm_source",
            "traffic_source",
            "verification_code",
            "coupon.code",
            "address[zip][code]",
            "source_id",
            "promo-code",
            "items[code]",
            "files[0][code]",
        ] {
            for place in [Place::Json, Place::Form, Place::MultipartField] {
                assert!(!takes_code(at(place, name)) && !takes_page(at(place, name)), "{name}");
                assert!(!takes_templates(at(place, name)), "{name}");
            }
        }
    }
}
