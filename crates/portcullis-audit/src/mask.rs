//! Hides values: each of their bytes becomes a `*`, so that lengths and places stay, as in ModSecurity's
//! audit log.
//!
//! Values that cannot be hidden exactly are hidden whole: a value whose bytes were not found, a body in which
//! a value is written in another way than the rules saw it.

use portcullis_types::percent_decode;

use crate::Record;

/// Values looked for in one body; with more of them it is hidden whole.
const VALUES_MAX: usize = 32;

/// The part of a message that a hidden value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An argument, of query or body.
    Arg,
    /// A request header.
    RequestHeader,
    /// A response header.
    ResponseHeader,
}

/// A value to hide.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The part of the message that it belongs to.
    pub place: Place,
    /// Name of the argument or header, in any case.
    pub name: Vec<u8>,
    /// Only these bytes of it, and how many of the first and of the last of them stay. `None`: all of it.
    pub bytes: Option<(Vec<u8>, usize, usize)>,
}

/// All values to hide in a record.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// One by one.
    pub list: Vec<Secret>,
    /// Whatever the list says: all values of headers and arguments.
    pub all: bool,
    /// The byte between arguments.
    pub separator: u8,
}

impl Secrets {
    /// True if there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.all
    }

    /// True if something of the argument is hidden.
    pub fn hides_arg(&self, name: &[u8]) -> bool {
        self.hides(Place::Arg, name)
    }

    fn hides(&self, place: Place, name: &[u8]) -> bool {
        self.all || self.of(place, name).next().is_some()
    }

    fn of<'a>(&'a self, place: Place, name: &'a [u8]) -> impl Iterator<Item = &'a Secret> {
        self.list.iter().filter(move |secret| secret.place == place && secret.name.eq_ignore_ascii_case(name))
    }

    /// Hides in `value` what is to be hidden of the value of this name.
    pub fn mask(&self, place: Place, name: &[u8], value: &mut [u8]) {
        if !self.hides(place, name) {
            return;
        }
        // A value that is hidden whole is so whatever else is said of it.
        let whole = self.all || self.of(place, name).any(|secret| secret.bytes.is_none());
        let found = !whole
            && self.of(place, name).filter_map(|secret| secret.bytes.as_ref()).fold(true, |found, bytes| {
                let (text, first, last) = bytes;
                mask_text(value, text, *first, *last) && found
            });
        if !found {
            value.fill(b'*');
        }
    }

    /// Hides what is to be hidden in the parts B, C and F of `record`. `body_args` are the arguments that
    /// were read from the body; `form` says that the body is a form, not JSON or the like.
    pub fn hide(&self, record: &mut Record, body_args: &[(&[u8], &[u8])], form: bool) {
        if self.is_empty() {
            return;
        }
        let request = &mut record.request;
        for (name, value) in &mut request.headers {
            self.mask(Place::RequestHeader, name, value);
        }
        if let Some(query) = query_of(&request.line) {
            self.mask_form(&mut request.line[query]);
        }
        if let Some(at) = request.target.iter().position(|&byte| byte == b'?') {
            self.mask_form(&mut request.target[at + 1..]);
        }
        if let Some(body) = &mut request.body {
            match form {
                true => self.mask_form(body),
                false => self.mask_body(body, body_args),
            }
        }
        for (name, value) in record.response.iter_mut().flat_map(|response| &mut response.headers) {
            self.mask(Place::ResponseHeader, name, value);
        }
    }

    /// `a=b&c=d`, names percent-encoded.
    fn mask_form(&self, text: &mut [u8]) {
        for pair in text.split_mut(|byte| *byte == self.separator) {
            let Some(equals) = pair.iter().position(|&byte| byte == b'=') else { continue };
            let (name, value) = pair.split_at_mut(equals);
            self.mask(Place::Arg, &percent_decode(name, true), &mut value[1..]);
        }
    }

    /// A body of any other kind: the values are looked for.
    fn mask_body(&self, body: &mut [u8], args: &[(&[u8], &[u8])]) {
        let hidden = args.iter().filter(|(name, value)| !value.is_empty() && self.hides_arg(name));
        let hidden: std::collections::BTreeSet<_> = hidden.collect();
        let mut whole = self.all || hidden.len() > VALUES_MAX;
        for (name, value) in hidden.into_iter().take(VALUES_MAX) {
            let mut masked = value.to_vec();
            self.mask(Place::Arg, name, &mut masked);
            whole |= !replace(body, value, &masked);
        }
        if whole {
            body.fill(b'*');
        }
    }
}

/// Returns the range of the query in a request line.
fn query_of(line: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = line.iter().position(|&byte| byte == b'?')? + 1;
    let end = line.iter().rposition(|&byte| byte == b' ').filter(|&end| end >= start);
    Some(start..end.unwrap_or(line.len()))
}

/// Hides every occurrence of `text` but for its first and last bytes. False if there is none.
fn mask_text(value: &mut [u8], text: &[u8], first: usize, last: usize) -> bool {
    if text.is_empty() {
        return false;
    }
    let mut masked = text.to_vec();
    let end = masked.len().saturating_sub(last);
    if first < end {
        masked[first..end].fill(b'*');
    }
    replace(value, text, &masked)
}

/// Writes `new`, which is as long, over every occurrence of `old`. False if there is none.
fn replace(text: &mut [u8], old: &[u8], new: &[u8]) -> bool {
    let places: Vec<usize> = memchr::memmem::find_iter(text, old).collect();
    for &at in &places {
        text[at..at + old.len()].copy_from_slice(new);
    }
    !places.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(place: Place, name: &str, bytes: Option<(&str, usize, usize)>) -> Secret {
        let bytes = bytes.map(|(text, first, last)| (text.as_bytes().to_vec(), first, last));
        Secret { place, name: name.as_bytes().to_vec(), bytes }
    }

    fn secrets(list: Vec<Secret>) -> Secrets {
        Secrets { list, all: false, separator: b'&' }
    }

    fn masked(secrets: &Secrets, text: &str) -> String {
        let mut text = text.as_bytes().to_vec();
        secrets.mask_form(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn forms_lose_values_by_name() {
        let secrets = secrets(vec![secret(Place::Arg, "Password", None)]);
        assert_eq!(masked(&secrets, "a=1&password=s3cret&b=2"), "a=1&password=******&b=2");
        assert_eq!(
            masked(&secrets, "p%61ssword=%41b&password&password="),
            "p%61ssword=****&password&password="
        );
    }

    #[test]
    fn parts_of_values() {
        let secrets = secrets(vec![secret(Place::Arg, "card", Some(("4111111111111111", 1, 4)))]);
        assert_eq!(masked(&secrets, "card=4111111111111111"), "card=4***********1111");
        // Written in another way than the rules saw it: hidden whole.
        assert_eq!(masked(&secrets, "card=%34%3111111111111111"), "card=********************");
    }

    #[test]
    fn other_bodies_lose_values_where_they_stand() {
        let secrets = secrets(vec![secret(Place::Arg, "a.pin", None)]);
        let args: [(&[u8], &[u8]); 2] = [(b"a.pin", b"1234"), (b"b", b"x")];
        let mut body = br#"{"a":{"pin":"1234"},"b":"x"}"#.to_vec();
        secrets.mask_body(&mut body, &args);
        assert_eq!(body, br#"{"a":{"pin":"****"},"b":"x"}"#);
        let mut body = br#"{"a":{"pin":"\u0031\u0032\u0033\u0034"},"b":"x"}"#.to_vec();
        secrets.mask_body(&mut body, &args);
        assert!(body.iter().all(|&byte| byte == b'*'));
    }

    #[test]
    fn all_is_all() {
        let secrets = Secrets { all: true, separator: b'&', ..Secrets::default() };
        assert_eq!(masked(&secrets, "a=1&b=2"), "a=*&b=*");
    }

    #[test]
    fn the_query_of_a_line_ends_before_the_protocol() {
        assert_eq!(query_of(b"GET /?a=b HTTP/1.1"), Some(6..9));
        assert_eq!(query_of(b"GET /?a=b"), Some(6..9));
        assert_eq!(query_of(b"GET / HTTP/1.1"), None);
    }
}
