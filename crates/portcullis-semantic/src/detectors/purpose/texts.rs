//! Fields for prose: posts, comments, messages, logs, titles.
//!
//! People quote in them what they saw, attacks included.

use super::commands::{COMMAND_OF_CALL, is_call, is_command};
use super::name::{NAME_BYTES_MAX, has_last_word, has_word, is_key_of_list, is_of_body, is_plain_name};
use super::name::{key_of_record, last_part, words};
use super::reports::quotes_lines;
use crate::Location;

/// The field takes texts of people, in which they quote what they saw: its innermost name that says something
/// ends in a word for text (`post_content`, `bodyHtml`, `posts[0].content.rendered`, `cells.source`), and is
/// not for a search or a replacement.
pub(crate) fn takes_text(location: Location<'_>) -> bool {
    is_of_body(location.place) && (is_text_name(location.name) || quotes_lines(location))
}

/// A document of JSON in a string: what editors, chats and queues send. Who reads it reads nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    /// Its texts are named as fields for texts are.
    Texts,
    /// The arguments of a tool that a language model calls.
    Call,
}

impl Document {
    /// The document that the field is for.
    pub(crate) fn of(location: Location<'_>) -> Option<Document> {
        const DOCUMENTS: &[&[u8]] = &[
            b"blocks",
            b"attachments",
            b"variables",
            b"lexical",
            b"mobiledoc",
            b"richtext",
            b"json",
            b"arguments",
            b"payload",
            b"editorstate",
            b"delta",
            // The frames that SockJS sends, all of a body.
            b"array",
        ];
        if !is_of_body(location.place) || !has_last_word(location.name, DOCUMENTS) {
            return None;
        }
        Some(if is_call(location) { Document::Call } else { Document::Texts })
    }

    /// The name of a field for what the scalar at `path` of the document is.
    pub(crate) fn field(self, path: &[u8]) -> Option<&'static [u8]> {
        if path.len() > NAME_BYTES_MAX || !is_plain_name(path) || is_key_of_list(path) {
            None
        } else if is_text_name(path) {
            Some(b"text")
        } else if self == Document::Call && is_command(path) {
            Some(COMMAND_OF_CALL)
        } else {
            None
        }
    }
}

fn is_text_name(name: &[u8]) -> bool {
    const PARTS_MAX: usize = 4;
    match key_of_record(name) {
        // A post as its author wrote it, and the lines of a file that a tool replaces.
        Some(b"raw" | b"old_string" | b"new_string" | b"old_str" | b"new_str") => return true,
        Some(_) => {}
        None => return false,
    }
    let parts = name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/'));
    let telling = parts.filter(|part| part.iter().any(|b| b.is_ascii_alphabetic()));
    for part in telling.take(PARTS_MAX) {
        let (mut last, mut is_of_search) = (None, false);
        for word in words(part) {
            let is_one_of = |list: &[&[u8]]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
            is_of_search |= is_one_of(SEARCH_WORDS);
            // `message_2`, `content_html`, `textEn`
            let is_form = word.iter().all(u8::is_ascii_digit) || is_one_of(FORM_WORDS);
            if !is_form || is_one_of(TEXT_WORDS) {
                last = Some(is_one_of(TEXT_WORDS));
            }
        }
        match last {
            _ if is_of_search => return false,
            Some(is_text) => return is_text,
            // It says in which form something is: what it is stands above.
            None => {}
        }
    }
    false
}

/// The field is a line that people write over a text: `title`, `subject`.
pub(in crate::detectors) fn takes_title(location: Location<'_>) -> bool {
    const TITLES: &[&[u8]] = &[b"title", b"subject", b"headline", b"heading", b"caption"];
    is_of_body(location.place) && has_word(last_part(location.name), TITLES)
}

const TEXT_WORDS: &[&[u8]] = words!("purpose", "texts");

/// Words that say in which form, language or version something is, not what it is.
const FORM_WORDS: &[&[u8]] = words!("purpose", "forms");

/// Words of a search or a replacement, which is no text of its own.
const SEARCH_WORDS: &[&[u8]] =
    &[b"search", b"find", b"replace", b"replacement", b"pattern", b"query", b"regex"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn documents() {
        let of = |place, name| Document::of(at(place, name));
        for name in ["blocks", "variables", "richtext_json", "tool_calls.function.arguments", "array"] {
            assert!(of(Place::Json, name).is_some(), "{name}");
            assert_eq!(of(Place::Query, name), None, "{name}");
        }
        for name in ["data", "host", "id", "blocks.id", "", "json_id"] {
            assert_eq!(of(Place::Json, name), None, "{name}");
        }
        let is_text = |path: &[u8]| Document::Texts.field(path) == Some(b"text");
        assert!(is_text(b"array.elements.text") && !is_text(b"hosts.text"));
        assert!(!is_text(b"id") && !is_text(b"id\0text"));
        let calls = of(Place::Json, "messages.tool_calls.function.arguments").unwrap();
        assert_eq!(calls.field(b"cmd"), Some(COMMAND_OF_CALL));
        assert_eq!(calls.field(b"host"), None);
        assert_eq!(of(Place::Json, "arguments").unwrap().field(b"cmd"), None);
    }

    #[test]
    fn fields_for_text() {
        for name in [
            "comment",
            "message",
            "post_content",
            "bodyHtml",
            "posts[0].content.rendered",
            "variables.input.description",
            "blocks.text",
            "messages.content",
            "content.cells.cells.source.source",
            "outputs.data.text/plain",
            "user[bio]",
            "message_2",
            "release_notes",
            "html",
            "description_en",
            "body.storage.value",
            "message.content.parts",
            "delta.ops.insert",
            "Internal_Notes__c",
            "Item.text.S",
            "jform[articletext]",
            "nachricht",
            "raw",
            "page.raw",
        ] {
            assert!(takes_text(at(Place::Json, name)) && takes_text(at(Place::Form, name)), "{name}");
            assert!(!takes_text(at(Place::Query, name)) && !takes_text(at(Place::Header, name)), "{name}");
        }
        for name in [
            "id",
            "q",
            "host",
            "url",
            "file",
            "name",
            "page",
            "",
            "content_type",
            "messageId",
            "comment_post_ID",
            "textColor",
            "replaceText",
            "search_text",
            "body_class",
            "posts[0].id",
            "context",
            "value",
            "data.value",
            "0",
            "a.b.c",
            "log_level",
            "glueSource",
            "source",
            "commentator",
            "notebook",
            "ops.insert",
            "s",
            "c",
        ] {
            assert!(!takes_text(at(Place::Json, name)), "{name}");
        }
    }
}
