//! Pollution: keys that reach the prototype of all objects of JavaScript, or what Python keeps below an
//! object: its class, the variables of its module.

use portcullis_types::Span;

use super::scan::{is_word, run, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://cheatsheetseries.owasp.org/cheatsheets/Prototype_Pollution_Prevention_Cheat_Sheet.html";
    PROTO "prototype.proto" Critical Quotable "the key `__proto__`";
    CONSTRUCTOR "prototype.constructor" Critical Quotable "the key `constructor.prototype`";
    INTERNALS "prototype.internals" Critical Quotable
        "a key that leads to what Python keeps below its objects: `__class__`, `__globals__`";
    MENTION "prototype.mention" Warning Quotable "names the prototype, but not as a key";
}

/// See the module.
#[derive(Debug)]
pub struct Prototype;

const HINTS: &[Hint] = &[
    Hint::text("__proto__"),
    Hint::text("constructor"),
    Hint::text("__pro__proto__to__"),
    Hint::text("__class__"),
    Hint::text("__globals__"),
    Hint::text("__base__"),
    Hint::text("__bases__"),
    Hint::text("__kwdefaults__"),
    Hint::text("__subclasses__"),
];

/// What Python keeps below an object and its methods. `__init__` and `__dict__` stand in names of files and
/// in what some write of an object, and lead to the others.
const PYTHON: &[&[u8]] =
    &[b"__class__", b"__globals__", b"__base__", b"__bases__", b"__kwdefaults__", b"__subclasses__"];

static PROFILE: Profile = Profile::new(Class::Prototype, KINDS).needs(ByteGroups::of(b"_.[:{/")).hints(HINTS);

/// A longer text is no path that is assigned to.
const PATH_BYTES_MAX: usize = 160;

impl Detector for Prototype {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    /// JSON is looked at as a whole, too: arrays tell.
    fn reads(&self, place: Place) -> bool {
        place.is_value() || place == Place::RawBody
    }

    fn reads_body(&self, body: &[u8]) -> bool {
        matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
            && (memchr::memmem::find(body, b"__\"").is_some()
                || memchr::memmem::find(body, b"\"constructor\"").is_some())
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        internals(input, found);
        if input.location.place == Place::RawBody {
            return steps_of_array(text, found);
        }
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
            if !is_name && is_whole_path(text, at, end) {
                found.mention(PROTO, Span::new(at, end));
                continue;
            }
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
            if !is_name && matches!(joint, b"." | b"/" | b"][") && is_whole_path(text, at, next + 9) {
                found.mention(CONSTRUCTOR, Span::new(at, next + 9));
                continue;
            }
            let is_path = matches!(joint, b"." | b"[" | b"][" | b"['" | b"[\"" | b"%5B" | b"']['");
            let kind = if is_key || (is_step || is_assigned) && is_path { CONSTRUCTOR } else { MENTION };
            found.add(kind, Span::new(at, next + 9));
        }
    }
}

/// `/__proto__/admin`, `a.__proto__.b`: all of the value is a path of words, and a step of it stands at `at`
/// to `end`, with one after it. A sentence, and an object with its prototype alone, is none.
fn is_whole_path(text: &[u8], at: usize, end: usize) -> bool {
    let is_joint = |b: u8| matches!(b, b'.' | b'/' | b'[' | b']' | b'\'' | b'"');
    let is_part = |b: &u8| is_word(*b) || is_joint(*b) || *b == b'-';
    let rest = &text[end..];
    let joints = rest.iter().take(4).take_while(|b| is_joint(**b)).count();
    text.len() <= PATH_BYTES_MAX
        && at.checked_sub(1).is_some_and(|before| is_joint(text[before]))
        && joints > 0
        && rest.get(joints).is_some_and(|b| is_word(*b))
        && text.trim_ascii().iter().all(is_part)
}

/// `["constructor","prototype","a"]`: a path as its steps.
fn steps_of_array(text: &[u8], found: &mut Found<'_>) {
    for at in memchr::memmem::find_iter(text, b"\"constructor\"").take(16) {
        let comma = skip_space(text, at + 13);
        let next = skip_space(text, (comma + 1).min(text.len()));
        let is_next = text.get(comma) == Some(&b',') && text[next..].starts_with(b"\"prototype\"");
        let goes_on = is_next && text.get(skip_space(text, next + 11)) == Some(&b',');
        if goes_on && text[..at].trim_ascii_end().ends_with(b"[") {
            found.add(CONSTRUCTOR, Span::new(at, next + 11));
        }
    }
}

/// `{"__class__":{"__init__":{"__globals__":{..}}}}`, `__class__.__init__.__globals__.x`: keys below which a
/// further one stands. `{"__class__":"User"}` is how some write the type of an object.
fn internals(input: &Input<'_>, found: &mut Found<'_>) {
    let text = input.text;
    let is_name = input.location.place == Place::Name;
    if !is_name && input.location.place != Place::RawBody {
        return;
    }
    for at in memchr::memmem::find_iter(text, b"__").take(64) {
        let Some(key) = PYTHON.iter().find(|key| text[at..].starts_with(key)) else { continue };
        let end = at + key.len();
        let before = at.checked_sub(1).map(|before| text[before]);
        let leads_on = match is_name {
            true => {
                before.is_none_or(|b| matches!(b, b'.' | b'[' | b']' | b'/'))
                    && matches!(text.get(end), Some(b'.' | b'[' | b']' | b'/'))
                    && text[end..].iter().any(|b| is_word(*b))
            }
            false => {
                let colon = skip_space(text, (end + 1).min(text.len()));
                let value = skip_space(text, (colon + 1).min(text.len()));
                before == Some(b'"')
                    && text.get(end) == Some(&b'"')
                    && text.get(colon) == Some(&b':')
                    && text.get(value) == Some(&b'{')
            }
        };
        if leads_on {
            found.add(INTERNALS, Span::new(at, end));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Class::Prototype;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, passes, passes_at};

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
    fn paths_as_values() {
        for text in ["/__proto__/admin", "a.__proto__.b", "a[__proto__][b]", "x['__proto__'].y"] {
            blocks_at(Prototype, Place::Json, text, "proto");
        }
        for text in ["/constructor/prototype/admin", "a.constructor.prototype.b"] {
            blocks_at(Prototype, Place::Json, text, "constructor");
        }
        for text in [
            "/a/b",
            "obj.__proto__",
            "see a.__proto__.b there",
            "/docs/Object/__proto__",
            "constructor/prototype",
        ] {
            passes_at(Prototype, Place::Json, "path", text);
        }
    }

    #[test]
    fn keys_of_python() {
        for text in [
            "{\"__class__\":{\"__init__\":{\"__globals__\":{\"SECRET_KEY\":\"x\"}}}}",
            "{\"__class__\" : {\"is_admin\":true}}",
        ] {
            blocks_at(Prototype, Place::RawBody, text, "internals");
        }
        blocks_at(Prototype, Place::Name, "__class__.__init__.__globals__.x", "internals");
        blocks_at(
            Prototype,
            Place::RawBody,
            "{\"path\":[\"constructor\", \"prototype\", \"a\"]}",
            "constructor",
        );
        for text in [
            "{\"__typename\":\"A\",\"class\":\"x\"}",
            "{\"__class__\":\"User\",\"id\":1}",
            "{\"text\":\"the method __init__ of {a}\"}",
            "{\"words\":[\"class\",\"constructor\",\"prototype\",\"new\"]}",
        ] {
            passes_at(Prototype, Place::RawBody, "", text);
        }
        passes_at(Prototype, Place::Name, "", "__init__.py");
    }

    #[test]
    fn ordinary() {
        passes(Prototype, "What does obj.__proto__ mean in JavaScript?");
        passes(Prototype, "the constructor of the prototype");
        passes(Prototype, "class A { constructor() { super() } }");
    }
}
