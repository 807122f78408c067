//! Operators of object-relational mappers and query builders on a secret: `{"password":{"startsWith":"a"}}`,
//! `password__startswith=a`, `resetToken[contains]=`.
//!
//! Where an application hands an object or a name of a parameter to its mapper, an operator in place of the
//! plain value asks the database about it, letter by letter. Interfaces take the same operators in filters on
//! purpose; none filters by passwords, nor shows or sorts by them (`fields=id,password`). So what is looked
//! for is the pair: a key that names a secret, and right below it a key that is an operator.

use portcullis_types::Span;

use super::words;
use crate::detectors::purpose::{self, names_secret};
use crate::detectors::scan::{has_at, is_one_of, is_word, run, skip_space, string_end};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Location, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/Injection_Flaws";
    SECRET_OPERATOR "nosql.secret-operator" Critical Quotable
        "an operator of a query builder where the value of a secret belongs";
    SECRET_COLUMN "nosql.secret-column" Critical Quotable
        "a query string asks for the column of passwords, or to sort or group by it";
}

/// See the module.
#[derive(Debug)]
pub struct Orm;

/// A longer value is no list of columns.
const COLUMNS_BYTES_MAX: usize = 256;

/// Bytes of a key that is looked at.
const KEY_BYTES_MAX: usize = 64;

/// An operator that a translation may be called by, with a text of this length, is a language.
const TEXT_BYTES_MIN: usize = 4;

static PROFILE: Profile = Profile::new(Class::NoSql, KINDS).needs(ByteGroups::ANY).hints(HINTS);

/// Part of each name of a secret, or of a letter of it that is escaped.
const HINTS: &[Hint] = hints!("nosql", "secret-parts");

impl Detector for Orm {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(
            place,
            Place::RawBody | Place::QueryString | Place::Query | Place::Form | Place::Json | Place::Name
        )
    }

    /// Names are read at once, which is less than to look for hints in a long body.
    fn reads_body(&self, body: &[u8]) -> bool {
        match is_object(body) {
            true => memchr::memchr(b':', body).is_some(),
            false => secret_name(body).is_some(),
        }
    }

    fn reads_word(&self, word: &[u8]) -> bool {
        word.len() <= KEY_BYTES_MAX / 2
    }

    fn keys(&self) -> &[&'static str] {
        &["password", "passwd", "pwd"]
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        if input.location.place == Place::Name {
            if asks_in_form(text) {
                found.add(SECRET_OPERATOR, Span::new(0, text.len()));
            }
            return;
        }
        if input.location.place == Place::Query && names_secret(input.location.name) && asks_by_prefix(text) {
            found.add(SECRET_OPERATOR, Span::new(0, text.len()));
        }
        // A form that sorts says so as a query does.
        let is_form = input.location.place == Place::Form;
        let place = if is_form { Place::Query } else { input.location.place };
        if purpose::takes_columns(Location { place, ..input.location }) && lists_password(text) {
            found.add(SECRET_COLUMN, Span::new(0, text.len()));
        }
        let is_object = is_object(text);
        let is_of_pairs = matches!(input.location.place, Place::RawBody | Place::QueryString);
        let plain;
        let text = match is_object && is_of_pairs && memchr::memmem::find(text, b"\\u00").is_some() {
            true if found.may_read(text.len()) => {
                plain = without_escapes(text);
                &plain
            }
            _ => text,
        };
        match (is_object, is_of_pairs) {
            (false, true) => {
                if let Some(name) = secret_name(text) {
                    found.add(SECRET_OPERATOR, name);
                }
            }
            // A value that is an object, and what a document of GraphQL gives to a filter.
            _ if is_object && is_of_pairs => {
                objects(text, found);
                keys(text, found);
                selections(text, found);
            }
            _ if is_object || memchr::memmem::find(text, b":{").is_some() => objects(text, found),
            _ => {}
        }
    }
}

/// `password=neq.x`, `password=not.like.a*`: the operators of PostgREST begin a value.
fn asks_by_prefix(text: &[u8]) -> bool {
    const PREFIXES: &[&[u8]] = &[
        b"neq",
        b"gt",
        b"gte",
        b"lt",
        b"lte",
        b"like",
        b"ilike",
        b"match",
        b"imatch",
        b"is",
        b"isdistinct",
        b"fts",
    ];
    let text = text.strip_prefix(b"not.").unwrap_or(text);
    let len = text.iter().take_while(|b| b.is_ascii_lowercase()).count();
    text.get(len) == Some(&b'.') && text.len() > len + 1 && is_one_of(&text[..len], PREFIXES)
}

/// `password_changed_at` is about the password; the name of its column ends with what is kept of it.
fn is_password(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let stem = ["_hash", "hash", "_digest", "digest", "_salt"]
        .iter()
        .find_map(|end| name.strip_suffix(end.as_bytes()))
        .unwrap_or(&name);
    let is_kept = [&b"password"[..], b"passwd", b"pwd"].iter().any(|end| stem.ends_with(end));
    is_kept || [&b"resettoken"[..], b"reset_token", b"passwordtoken"].contains(&name.as_slice())
}

/// A list of names of columns, one of which is that of passwords.
fn lists_password(text: &[u8]) -> bool {
    let is_part = |b: &u8| is_word(*b) || b" ,.+-:()[]$/".contains(b);
    let mut names = text.split(|b| !is_word(*b)).filter(|name| !name.is_empty());
    text.len() <= COLUMNS_BYTES_MAX && text.iter().all(is_part) && names.any(is_password)
}

/// `"password":{"startsWith":`, `password:{contains:`
fn objects(text: &[u8], found: &mut Found<'_>) {
    for open in memchr::memchr_iter(b'{', text) {
        let before = text[..open].trim_ascii_end();
        let Some(before) = before.strip_suffix(b":").map(<[u8]>::trim_ascii_end) else { continue };
        let before = before.strip_suffix(b"\"").or(before.strip_suffix(b"'")).unwrap_or(before);
        let len = before.iter().rev().take(KEY_BYTES_MAX).take_while(|b| is_word(**b) || **b == b'-').count();
        let key = &before[before.len() - len..];
        if len == 0 || !names_secret(key) {
            continue;
        }
        let at = skip_space(text, open + 1);
        let (start, end, rest) = match text.get(at) {
            Some(b'"' | b'\'') => {
                let (end, is_closed) = string_end(text, at);
                (at + 1, end - usize::from(is_closed), end)
            }
            Some(_) => {
                let end = run(text, at, KEY_BYTES_MAX, is_word);
                (at, end, end)
            }
            None => continue,
        };
        let colon = skip_space(text, rest);
        let operator = &text[start..end.min(start + KEY_BYTES_MAX)];
        // `{"password":{"password":1}}`: a driver takes the object for a comparison of columns.
        let is_itself =
            || operator == key && matches!(text.get(skip_space(text, colon + 1)), Some(b'0'..=b'9' | b't'));
        if text.get(colon) != Some(&b':') || !(is_operator_on(key, operator) || is_itself()) {
            continue;
        }
        if is_language(operator) && is_text(text, skip_space(text, colon + 1)) {
            continue;
        }
        found.add(SECRET_OPERATOR, Span::new(before.len() - len, end));
        return;
    }
}

/// `"select":{"password":true}`, `"attributes":["id","password"]`, `"include":{"author":{"select":..}}`: an
/// interface of a query builder is asked for the column of passwords. Below such a key everything up to the
/// bracket that closes it is a selection.
fn selections(text: &[u8], found: &mut Found<'_>) {
    const KEYS: &[&[u8]] =
        &[b"\"select\"", b"\"attributes\"", b"\"fields\"", b"\"columns\"", b"\"include\"", b"\"projection\""];
    let mut read = 0;
    for key in memchr::memchr_iter(b':', text) {
        let before = text[..key].trim_ascii_end();
        if key < read || !KEYS.iter().any(|known| before.ends_with(known)) {
            continue;
        }
        let open = skip_space(text, key + 1);
        let is_list = match text.get(open) {
            Some(b'{') => false,
            Some(b'[') => true,
            _ => continue,
        };
        read = closing(text, open);
        if let Some(at) = password_key(text, open, read, is_list) {
            found.add(SECRET_COLUMN, at);
            return;
        }
    }
}

/// Where the bracket at `open` closes, outside of strings.
fn closing(text: &[u8], open: usize) -> usize {
    let (mut depth, mut at) = (0usize, open);
    while at < text.len() {
        match text[at] {
            b'"' => {
                at = string_end(text, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// A string from `from` to `to` that is the name of a column of passwords: one of a list, or a key whose
/// value is true.
fn password_key(text: &[u8], from: usize, to: usize, is_list: bool) -> Option<Span> {
    let mut at = from;
    while let Some(quote) = memchr::memchr(b'"', text.get(at..to)?).map(|len| at + len) {
        let (end, is_closed) = string_end(text, quote);
        let next = skip_space(text, end);
        let is_chosen = match text.get(next) {
            Some(b':') => {
                let value = &text[skip_space(text, next + 1)..];
                value.starts_with(b"true") || value.starts_with(b"1,") || value.starts_with(b"1}")
            }
            _ => is_list,
        };
        if is_closed && is_chosen && is_password(&text[quote + 1..end - 1]) {
            return Some(Span::new(quote, end));
        }
        at = end;
    }
    None
}

/// `"password__startswith":`: the operator is a part of the key.
fn keys(text: &[u8], found: &mut Found<'_>) {
    for joint in memchr::memmem::find_iter(text, b"__") {
        let before = &text[joint - joint.min(KEY_BYTES_MAX)..joint];
        let len = before.iter().rev().take_while(|b| is_word(**b)).count();
        let end = run(text, joint + 2, KEY_BYTES_MAX, is_word);
        let is_key = matches!(text[end..], [b'"' | b'\'', b':', ..]);
        if is_key && asks_secret(&text[joint - len..end]) {
            found.add(SECRET_OPERATOR, Span::new(joint - len, end));
            return;
        }
    }
}

/// A string with a word in it stands at `at`.
fn is_text(text: &[u8], at: usize) -> bool {
    matches!(text.get(at), Some(b'"' | b'\'')) && string_end(text, at).0 - at >= TEXT_BYTES_MIN + 2
}

fn is_object(text: &[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// The same JSON with the letters that escapes in its strings stand for, so that keys can be compared. Spaces
/// behind a string keep all that follows where it is.
fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    while let Some(open) = memchr::memchr(b'"', &text[plain.len()..]).map(|len| plain.len() + len) {
        let (end, _) = string_end(text, open);
        plain.extend_from_slice(&text[plain.len()..=open]);
        let mut at = open + 1;
        while at < end {
            let letter = match text[at..end] {
                [b'\\', b'u', b'0', b'0', high, low, ..] => byte_of(high, low).filter(|b| is_word(*b)),
                _ => None,
            };
            plain.push(letter.unwrap_or(text[at]));
            at += match (letter, text[at]) {
                (Some(_), _) => 6,
                // What is escaped begins no escape.
                (None, b'\\') if at + 1 < end => {
                    plain.push(text[at + 1]);
                    2
                }
                _ => 1,
            };
        }
        plain.resize(end, b' ');
    }
    plain.extend_from_slice(&text[plain.len()..]);
    plain
}

/// The byte that two hex digits stand for.
fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// The first name such as `password__startswith=`, `user[password][not]=`, `q[reset_password_token_start]=`.
fn secret_name(text: &[u8]) -> Option<Span> {
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'&', text).map(|at| at + 1));
    let name = |start: usize| {
        let near = &text[start..text.len().min(start + 2 * KEY_BYTES_MAX)];
        let len = near.iter().position(|b| matches!(b, b'=' | b'&')).filter(|at| near[*at] == b'=')?;
        let (plain, plain_len) = without_percent(&near[..len]);
        asks_secret(&plain[..plain_len]).then(|| Span::new(start, start + len))
    };
    starts.into_iter().find_map(name)
}

/// The name without the percent signs of an encoder.
fn without_percent(name: &[u8]) -> ([u8; 2 * KEY_BYTES_MAX], usize) {
    let (mut plain, mut len, mut at) = ([0; 2 * KEY_BYTES_MAX], 0, 0);
    while at < name.len() {
        let escaped = match name[at..] {
            [b'%', high, low, ..] => byte_of(high, low),
            _ => None,
        };
        plain[len] = escaped.unwrap_or(name[at]);
        at += if escaped.is_some() { 3 } else { 1 };
        len += 1;
    }
    (plain, len)
}

/// The name of a field of a form, as frameworks take it apart: `user__password__regex`,
/// `filter[password][not]`. Dots stand in names of JSON, which is read as a whole.
pub(crate) fn asks_in_form(name: &[u8]) -> bool {
    let is_joined = memchr::memchr(b'[', name).is_some() || memchr::memmem::find(name, b"__").is_some();
    name.len() <= 2 * KEY_BYTES_MAX && is_joined && memchr::memchr(b'.', name).is_none() && asks_secret(name)
}

fn asks_secret(name: &[u8]) -> bool {
    let mut rest = name;
    let mut before: &[u8] = b"";
    while !rest.is_empty() {
        let len = part_len(rest);
        let part = &rest[..len];
        if !part.is_empty() {
            if names_secret(before) && is_operator_on(before, part) && !matches!(part, b"is" | b"in") {
                return true;
            }
            before = part;
        }
        rest = &rest[(len + 1).min(rest.len())..];
    }
    // `q[password_start]`: the predicates of Ransack are the end of a name.
    let is_ransack = has_at(name, 0, b"q[");
    let is_asked = |end: &&[u8]| {
        before.strip_suffix(*end).is_some_and(|column| is_word_of_column(column) && names_secret(column))
    };
    is_ransack && PREDICATES.iter().any(is_asked)
}

fn is_word_of_column(column: &[u8]) -> bool {
    !column.is_empty() && column.iter().all(|b| is_word(*b))
}

/// The length of the first part of a name: up to a bracket, a dot, or two underscores.
fn part_len(name: &[u8]) -> usize {
    let is_end = |at: &usize| match name[*at] {
        b'[' | b']' | b'.' | b':' => true,
        b'_' => name.get(at + 1) == Some(&b'_') && *at > 0,
        _ => false,
    };
    (0..name.len()).find(is_end).unwrap_or(name.len())
}

const PREDICATES: &[&[u8]] = words!("nosql", "predicates");

/// The operator compares, matches or negates, and who has `key` is not asked by it in public. What a token
/// equals is: ledgers are filtered by tokens and hashes.
fn is_operator_on(key: &[u8], operator: &[u8]) -> bool {
    const EQUALS: &[&[u8]] = &[b"eq", b"equals", b"in", b"exact", b"iexact"];
    const OTHERS: &[&[u8]] = words!("nosql", "operators");
    let name = operator.strip_prefix(b"[Op.").and_then(|name| name.strip_suffix(b"]")).unwrap_or(operator);
    let name = name.strip_prefix(b"_").or(name.strip_prefix(b"$")).unwrap_or(name);
    let is_public = [&b"token"[..], b"hash", b"key", b"pin"]
        .iter()
        .any(|word| key.len() >= word.len() && key[key.len() - word.len()..].eq_ignore_ascii_case(word));
    // Schemas of JSON refer to others by such a key: `"password":{"$ref":"#/$defs/password"}`.
    let is_of_mongo = operator.strip_prefix(b"$").is_some_and(|name| words::operator(name).is_some());
    is_of_mongo || is_one_of(name, OTHERS) || is_one_of(name, EQUALS) && !is_public
}

/// Also the code of a language: a translation of the word `password` has it.
fn is_language(operator: &[u8]) -> bool {
    matches!(operator, b"is" | b"in" | b"ne" | b"lt" | b"le")
}

#[cfg(test)]
mod tests {
    use crate::{Analysis, Detectors, Level};

    fn is_blocked(target: &str, content_type: &str, body: &str) -> bool {
        let detectors = Detectors::new();
        let mut analysis = Analysis::new();
        analysis.target(&detectors, target.as_bytes());
        if !body.is_empty() {
            analysis.request_body(&detectors, content_type.as_bytes(), body.as_bytes());
        }
        analysis.worst(&detectors, Level::Balanced).is_some_and(|worst| worst.blocks(Level::Balanced))
    }

    #[test]
    fn operators_on_secrets() {
        for body in [
            r#"{"login":"a","password":{"not":""}}"#,
            r#"{"where":{"resetToken": {"startsWith":"a"}}}"#,
            r#"{"otp":{"_gt":null}}"#,
            r#"{"password":{"[Op.like]":"a%"}}"#,
            r#"{"OR":[{"user_password":{"lte":"zz"}}]}"#,
            r#"{"query":"{user(filter:{password:{startsWith:\"a\"}}){id}}"}"#,
            r#"{"select":{"author":{"select":{"password":true}}}}"#,
            r#"{"attributes": ["id", "password_hash"]}"#,
            r#"{"include":[{"model":"User","attributes":["pwd"]}]}"#,
            r#"{"select":{"\u0070assword":true}}"#,
            r#"{"include":{"author":{"select":{"p\u0061ssw\u006Frd" : true}}}}"#,
            r#"{"where":{"a\\":1,"passw\u006frd":{"st\u0061rtsWith":"a"}}}"#,
        ] {
            assert!(is_blocked("/", "application/json", body), "{body}");
        }
        for target in [
            "/u?password__startswith=a",
            "/u?user__password__regex=a",
            "/u?filter[password][not]=x",
            "/u?resetToken%5Bcontains%5D=",
            "/u?q[reset_password_token_start]=a",
            "/search?password%5Blike%5D=a%25&page=1",
            "/u?fields=id,password",
            "/u?password%3Alike=a&x=1",
            "/u?password%5B%24like%5D=a",
            "/u?password=not.like.a*",
            "/u?populate[user][fields][0]=passwordHash",
            "/u?$orderby=Password",
            "/u?where=%7B%22password%22:%7B%22_like%22:%22a%25%22%7D%7D",
        ] {
            assert!(is_blocked(target, "", ""), "{target}");
        }
    }

    /// A name of a field asks in a form of whatever type.
    #[test]
    fn names_of_multipart_forms() {
        let body = |name: &str| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nx\r\n--b--\r\n")
        };
        let is_refused = |name: &str| is_blocked("/", "multipart/form-data; boundary=b", &body(name));
        for name in ["user__password__startswith", "where[password][startsWith]", "q[password_start]"] {
            assert!(is_refused(name), "{name}");
        }
        for name in ["password[confirm]", "filter[name][contains]", "user[password]", "price__gte"] {
            assert!(!is_refused(name), "{name}");
        }
    }

    /// What escapes stand for is no escape, and nothing else moves.
    #[test]
    fn escapes() {
        let read = |text: &str| String::from_utf8(super::without_escapes(text.as_bytes())).unwrap();
        assert_eq!(read(r#"{"\u0070w":1}"#), r#"{"pw"     :1}"#);
        assert_eq!(read(r#"{"\\u0070w":1}"#), r#"{"\\u0070w":1}"#);
        for text in [r#"{"a\u0022":"\u00""#, r#""\"#, "\"", r#"{"a":"\""#] {
            assert_eq!(read(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn filters_and_other_objects() {
        for body in [
            r#"{"where":{"name":{"contains":"tea"}}}"#,
            r#"{"password":{"current":"x","new":"y"}}"#,
            r#"{"password":{"in":"Kata sandi","is":"Lykilord"}}"#,
            r#"{"password":{"type":"string","minLength":8}}"#,
            r##"{"properties":{"password":{"$ref":"#/$defs/password"},"token":{"$id":"x"}}}"##,
            r#"{"query":"{pools(where:{token:{eq:\"0x1\"}}){id}}"}"#,
            r#"{"keyboard":{"not":"x"},"compass":{"gt":1}}"#,
            r#"{"select":{"id":true,"password":false},"password":"x"}"#,
            r#"{"fields":{"password":{"label":"Password","required":true}},"touched":{"password":true}}"#,
            r#"{"fields":["name","passwordChangedAt"]}"#,
            r#"{"select":["a","b"],"label":"password"}"#,
        ] {
            assert!(!is_blocked("/", "application/json", body), "{body}");
        }
        for target in [
            "/u?price__gte=5",
            "/u?filter[name][contains]=a",
            "/u?password[confirm]=x",
            "/u?token[eq]=x",
            "/u?field=password",
            "/u?fields=access_token,name",
            "/u?fields=id,password_changed_at",
            "/u?sort=-passwordExpires",
        ] {
            assert!(!is_blocked(target, "", ""), "{target}");
        }
    }
}
