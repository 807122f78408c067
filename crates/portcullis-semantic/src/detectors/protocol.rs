//! Messages that two readers read differently. Most of what is found here is noted while a body is taken
//! apart; of texts only the heads of tokens are looked at.

use portcullis_types::Span;

use super::scan::skip_space;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Layer, Profile, kinds};

kinds! {
    reference "https://www.rfc-editor.org/rfc/rfc9110#name-content-type";
    UNREADABLE_BODY "protocol.unreadable-body" Warning Active
        "the body is not what its type says, or breaks its rules";
    HIDDEN_CHARSET "protocol.hidden-charset" Critical Active
        "the body says it is in a character set in which ASCII has other bytes (EBCDIC, UTF-7)";
    WORK_LIMIT "protocol.work-limit" Critical Active
        "inspecting the message would take more work than benign ones need; the rest of this value was not inspected";
    UNSIGNED_TOKEN "protocol.unsigned-token" Critical Active
        "a token (JWT) says that it has no signature: libraries differ in whether they take it";
    AMBIGUOUS_BODY "protocol.ambiguous-body" Warning Active
        "another reader could take other values from the body";
}

/// See the module.
#[derive(Debug)]
pub struct Protocol;

static PROFILE: Profile =
    Profile::new(Class::Protocol, KINDS).needs(ByteGroups::of(b"{")).hints(&[Hint::text("\"alg\"")]);

impl Detector for Protocol {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let is_encoded = input.layers.iter().last() == Some(Layer::Base64);
        if is_encoded && is_unsigned(input.text) {
            found.add(UNSIGNED_TOKEN, Span::new(0, input.text.len()));
        }
    }
}

/// `{"alg":"none","typ":"JWT"}`, in any case.
fn is_unsigned(text: &[u8]) -> bool {
    const KEY: &[u8] = b"\"alg\"";
    if text.len() > HEAD_BYTES_MAX || text.first() != Some(&b'{') {
        return false;
    }
    let Some(at) = memchr::memmem::find(text, KEY) else { return false };
    let colon = skip_space(text, at + KEY.len());
    let value = skip_space(text, colon + 1);
    text.get(colon) == Some(&b':')
        && text.get(value..value + 6).is_some_and(|value| value.eq_ignore_ascii_case(b"\"none\""))
}

/// The head of a token is short.
const HEAD_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use crate::detectors::testing::{blocks_at, passes_at};
    use crate::{Class, Place};

    #[test]
    fn tokens_without_a_signature() {
        // {"alg":"none","typ":"JWT"} and {"alg": "nOnE"}
        for text in [
            "Bearer eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiJhZG1pbiJ9.",
            "eyJhbGciOiAibk9uRSJ9.eyJzdWIiOiJhZG1pbiJ9.c2ln",
        ] {
            blocks_at(Class::Protocol, Place::Header, text, "unsigned-token");
            blocks_at(Class::Protocol, Place::Cookie, text, "unsigned-token");
        }
        // {"alg":"HS256"}, and what a text says of it.
        passes_at(
            Class::Protocol,
            Place::Header,
            "authorization",
            "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        );
        passes_at(Class::Protocol, Place::Form, "text", "{\"alg\":\"none\"}");
    }
}
