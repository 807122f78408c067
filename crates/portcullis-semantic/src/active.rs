//! Kinds that are active: what they name happens wherever the text stands, whatever its sender wrote around
//! it.
//!
//! A text that shows code, or a field whose name stands for code, may quiet what harms nobody who stores and
//! shows the text, or only computes. It quiets none of these: the sender writes the quotation marks, and a
//! name of a field is public.

/// The list, by what makes them active.
const ACTIVE: &[&str] = &[
    // Markup that runs scripts, loads what runs, or sends the visitor or what they type elsewhere.
    "xss.script-sink",
    "xss.script-source",
    "xss.event-sink",
    "xss.event-attribute",
    "xss.script-url",
    "xss.script-url-call",
    "xss.hidden-scheme",
    "xss.data-url",
    "xss.srcdoc",
    "xss.style-runs",
    "xss.style-hidden",
    "xss.plugin",
    "xss.data-binding",
    "xss.charset",
    "xss.base",
    "xss.refresh",
    "xss.form-asks",
    "xss.sends",
    "xss.shows-input",
    "xss.bound-handler",
    "xss.hidden-markup",
    "xss.unquoted-address",
    "xss.spaced-tag",
    "xss.js-break-out",
    "xss.js-break-out-call",
    "xss.js-entity",
    "xss.client-template",
    // Code that runs, loads, decodes or reaches what it is given, or takes a value of the request.
    "code.execute",
    "code.shell-argument",
    "code.eval",
    "code.decode",
    "code.file",
    "code.file-argument",
    "code.reflection",
    "code.loaded",
    "code.type",
    "code.made",
    "code.static",
    "code.ognl",
    "code.ognl-assign",
    "code.internal",
    "code.import",
    "code.module",
    "code.node",
    "code.object",
    "code.input",
    "code.nested",
    "code.variable-call",
    "code.text-call",
    "code.script-tag",
    "code.backtick",
    "code.class-path",
    "code.lookup",
    // Expressions that reach the language below an engine, or what the engine keeps.
    "template.code",
    "template.object",
    "template.object-call",
    "template.dunder",
    "template.filter",
    "template.builtin",
    "template.import",
    "template.preprocessing",
    "template.php-block",
    "template.shell-text",
    "template.flood",
    "template.polyglot",
];

/// True if the kind with this id is active.
pub const fn is_active(id: &str) -> bool {
    let mut number = 0;
    while number < ACTIVE.len() {
        if is_same(ACTIVE[number].as_bytes(), id.as_bytes()) {
            return true;
        }
        number += 1;
    }
    false
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // Ids of a class differ at their ends.
    let mut left = a.len();
    while left > 0 {
        left -= 1;
        if a[left] != b[left] {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detectors;

    #[test]
    fn the_list_names_kinds() {
        let detectors = Detectors::new();
        for id in ACTIVE {
            assert!(detectors.kinds().any(|(_, _, kind)| kind.id == *id && kind.is_active), "{id}");
        }
        assert!(!is_active("xss.link") && !is_active("xss.script-sin"));
    }
}
