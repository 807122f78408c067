//! Prototype pollution: keys that reach the prototype of all objects of JavaScript.

use portcullis_types::Span;

use super::scan::{is_word, run, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://cheatsheetseries.owasp.org/cheatsheets/Prototype_Pollution_Prevention_Cheat_Sheet.html";
    PROTO "prototype.proto" Critical "the key `__proto__`";
    CONSTRUCTOR "prototype.constructor" Critical "the key `constructor.prototype`";
    MENTION "prototype.mention" Warning "names the prototype, but not as a key";
}

/// See the module.
#[derive(Debug)]
pub struct Prototype;

const HINTS: &[Hint] =
    &[Hint::text("__proto__"), Hint::text("constructor"), Hint::text("__pro__proto__to__")];

static PROFILE: Profile = Profile::new(Class::Prototype, KINDS).needs(ByteGroups::of(b"_.[:{")).hints(HINTS);

/// A longer text is no path that is assigned to.
const PATH_BYTES_MAX: usize = 160;

impl Detector for Prototype {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let first = skip_space(text, 0);
        let is_name = input.location.place == Place::Name;
        let is_structure = matches!(text.get(first), Some(b'{' | b'['));
        for at in memchr::memmem::find_iter(text, b"__proto__").take(16) {
            let end = at + 9;
            // A key of JSON, or a step of a name at the value's beginning.
            let is_key = is_structure
                && matches!(text[skip_space(text, end).min(text.len())..], [b'"' | b'\'', ..] | [b':', ..]);
            let is_step =
                at == first || at == first + 1 && matches!(text[first], b'[' | b'.' | b'"' | b'#' | b'?');
            let goes_on = matches!(text.get(end), None | Some(b'[' | b'.' | b'=' | b']' | b'"' | b':'));
            // What is left when a filter takes the name out once is the name.
            let is_filtered = text[..at].ends_with(b"__pro") && text[end..].starts_with(b"to__");
            // `a.__proto__.b=1`, `a[__proto__][b]=1`: a path from the beginning that is assigned to.
            let is_path = |b: &u8| is_word(*b) || b".[]'\"".contains(b);
            let step = end + text[end..].iter().take(80).take_while(|b| is_path(b)).count();
            let is_assigned = text.len() <= PATH_BYTES_MAX
                && text[first..at].iter().all(is_path)
                && matches!(text.get(end), Some(b'.' | b'[' | b']'))
                && text.get(step) == Some(&b'=')
                && text.get(step + 1) != Some(&b'=');
            let is_proto = is_name || is_key || is_step && goes_on || is_filtered || is_assigned;
            let kind = if is_proto { PROTO } else { MENTION };
            found.add(kind, Span::new(at, end));
        }
        for at in memchr::memmem::find_iter(text, b"constructor").take(16) {
            let after = at + 11;
            let next = run(text, after, 6, |b| !is_word(b));
            if !text[next..].starts_with(b"prototype") {
                continue;
            }
            let joint = &text[after..next];
            let is_key = is_structure && joint.contains(&b'{');
            let is_step = is_name || at == first || at == first + 1 && !is_word(text[first]);
            let is_part = |b: &u8| is_word(*b) || b".[]'\"".contains(b);
            let end = next + 9 + text[next + 9..].iter().take(80).take_while(|b| is_part(b)).count();
            let is_assigned = text.len() <= PATH_BYTES_MAX
                && text[first..next].iter().all(is_part)
                && text.get(end) == Some(&b'=')
                && text.get(end + 1) != Some(&b'=');
            let is_path = matches!(joint, b"." | b"[" | b"][" | b"['" | b"[\"" | b"%5B" | b"']['");
            let kind = if is_key || (is_step || is_assigned) && is_path { CONSTRUCTOR } else { MENTION };
            found.add(kind, Span::new(at, next + 9));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Class::Prototype;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, passes};

    #[test]
    fn keys() {
        blocks_at(Prototype, Place::Name, "__proto__[admin]", "proto");
        blocks_at(Prototype, Place::Name, "json.a.__proto__.admin", "proto");
        blocks_at(Prototype, Place::Name, "constructor[prototype][admin]", "constructor");
        blocks(Prototype, "{\"__proto__\": {\"admin\": true}}", "proto");
        blocks(Prototype, "{\"constructor\": {\"prototype\": {\"admin\": true}}}", "constructor");
        blocks(Prototype, "__proto__.admin=1", "proto");
        blocks(Prototype, "a.__proto__.b=1", "proto");
        blocks(Prototype, "a[__proto__][b]=1", "proto");
        blocks(Prototype, "a[constructor][prototype][b]=1", "constructor");
    }

    #[test]
    fn ordinary() {
        passes(Prototype, "What does obj.__proto__ mean in JavaScript?");
        passes(Prototype, "the constructor of the prototype");
        passes(Prototype, "class A { constructor() { super() } }");
    }
}
