//! Paths of properties and lookups: a name or a key that reaches into the application.

use memchr::memmem;
use portcullis_types::Span;

use super::{Marks, starts};
use crate::detectors::code::{CLASS_PATH, LOOKUP, OGNL, RENDER_ARRAY};
use crate::{Found, Input, Place};

impl Marks<'_> {
    /// The name of a parameter may be the attack: `class.module.classLoader.resources...`.
    pub(super) fn class_path(&self, found: &mut Found<'_>) {
        let text = self.text;
        if let Some(at) = memmem::find(text, b"lass.module.classLoader")
            .or_else(|| memmem::find(text, b"lass.classLoader."))
        {
            found.add(CLASS_PATH, Span::new(at, text.len().min(at + 60)));
        }
    }

    /// `(#context["xwork.MethodAccessor.denyMethodExecution"]=false)`
    pub(super) fn ognl_context(&self, found: &mut Found<'_>) {
        if let Some(at) = memmem::find(self.text, b"#context[") {
            found.add(OGNL, Span::new(at, at + 9));
        }
    }

    /// `a[#post_render][]`: the name of a parameter, or a path of keys in JSON.
    pub(super) fn render_array(&self, found: &mut Found<'_>) {
        const PROPERTIES: &[&[u8]] = &[
            b"post_render",
            b"pre_render",
            b"lazy_builder",
            b"access_callback",
            b"value_callback",
            b"after_build",
            b"process",
            b"submit",
            b"validate",
            b"element_validate",
            b"markup",
        ];
        let input = self.input;
        if input.location.place != Place::Name {
            return;
        }
        for at in memchr::memchr_iter(b'#', input.text) {
            let begins =
                at.checked_sub(1).is_none_or(|before| matches!(input.text[before], b'[' | b'.' | b'/'));
            let name = &input.text[at + 1..];
            let end = name.iter().position(|b| !b.is_ascii_lowercase() && *b != b'_').unwrap_or(name.len());
            if begins && PROPERTIES.contains(&&name[..end]) {
                found.add(RENDER_ARRAY, Span::new(at, at + 1 + end));
            }
        }
    }

    /// `${script:javascript:...}`, `${dns:address|host}`, `${url:UTF-8:http://...}`
    pub(super) fn lookups(&self, found: &mut Found<'_>) {
        let text = self.text;
        for at in memmem::find_iter(text, b"${") {
            let rest = &text[at + 2..];
            let inner =
                &rest[..memchr::memchr(b'}', &rest[..rest.len().min(400)]).unwrap_or(rest.len().min(400))];
            let is_one = starts(inner, b"script:") && inner[7..].contains(&b':')
                || starts(inner, b"dns:") && inner.contains(&b'|')
                || starts(inner, b"url:") && memmem::find(inner, b"://").is_some()
                || [
                    &b"base64Decoder:"[..],
                    b"base64Encoder:",
                    b"urlDecoder:",
                    b"urlEncoder:",
                    b"resourceBundle:",
                ]
                .iter()
                .any(|name| starts(inner, name) && inner.len() > name.len());
            if is_one {
                found.add(LOOKUP, Span::new(at, at + 2 + inner.len()));
            }
        }
    }
}

/// `{"#post_render":["exec"]}`: such a property is a key of JSON in a value.
pub(in crate::detectors::code) fn render_keys(input: &Input<'_>, found: &mut Found<'_>) {
    const PROPERTIES: &[&[u8]] = &[
        b"post_render",
        b"pre_render",
        b"lazy_builder",
        b"access_callback",
        b"value_callback",
        b"after_build",
    ];
    for at in memchr::memmem::find_iter(input.text, b"\"#") {
        let name = &input.text[at + 2..];
        let name = &name[..name.iter().take(24).position(|b| *b == b'"').unwrap_or(0)];
        if PROPERTIES.contains(&name)
            && input.text[at + 3 + name.len()..].trim_ascii_start().starts_with(b":")
        {
            found.add(RENDER_ARRAY, Span::new(at + 1, at + 2 + name.len()));
        }
    }
}
