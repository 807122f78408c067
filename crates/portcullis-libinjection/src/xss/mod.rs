//! The XSS detector.
//!
//! An input is read as HTML in up to five [`HtmlContext`]s: as text, in a tag, and inside each kind of quoted
//! value. It is an attack if the [`HtmlTokenizer`] finds a tag, attribute, URL or comment that can make a
//! browser run a script.

mod html;
mod names;
mod url;

pub use html::{HtmlContext, HtmlToken, HtmlTokenKind, HtmlTokenizer};

use memchr::{memchr, memchr2};
use names::Attribute;

pub(crate) fn detect(input: &[u8]) -> bool {
    // Tags, comments and declarations begin with `<`, and a value that counts follows a name and `=`.
    if memchr2(b'<', b'=', input).is_none() {
        return false;
    }
    let has = |byte| memchr(byte, input).is_some();
    let tags = has(b'<');
    // Without its end, a quoted value is all there is, and it belongs to no attribute.
    (tags && runs_script(input, HtmlContext::Text))
        || runs_script(input, HtmlContext::Tag)
        || (has(b'\'') && runs_script(input, HtmlContext::SingleQuotedValue))
        || (has(b'"') && runs_script(input, HtmlContext::DoubleQuotedValue))
        || (has(b'`') && runs_script(input, HtmlContext::TickQuotedValue))
}

fn runs_script(input: &[u8], context: HtmlContext) -> bool {
    let mut attribute = None;
    HtmlTokenizer::new(input, context).any(|HtmlToken { kind, text }| {
        let attribute_before = attribute.take();
        match kind {
            HtmlTokenKind::Doctype => true,
            HtmlTokenKind::TagName => names::is_script_tag(text),
            HtmlTokenKind::AttributeName => {
                attribute = names::attribute(text);
                false
            }
            HtmlTokenKind::AttributeValue => match attribute_before {
                None => false,
                Some(Attribute::Script | Attribute::Style) => true,
                Some(Attribute::Url) => url::is_script_url(text),
                Some(Attribute::Name) => names::attribute(text).is_some(),
            },
            HtmlTokenKind::Comment => is_script_comment(text),
            HtmlTokenKind::Text
            | HtmlTokenKind::TagEnd
            | HtmlTokenKind::TagSelfClose
            | HtmlTokenKind::CloseTag => false,
        }
    })
}

/// Comments that Internet Explorer reads otherwise: ended by a back-tick, conditional, or XML.
fn is_script_comment(comment: &[u8]) -> bool {
    let begins_with =
        |head: &[u8]| comment.get(..head.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(head));
    memchr(b'`', comment).is_some()
        || (comment.len() > 3 && (begins_with(b"[IF") || begins_with(b"XML")))
        || begins_with(b"IMPORT")
        || begins_with(b"ENTITY")
}
