//! A field of a request, and the request with another value in it.

use std::fmt;

use portcullis_types::Place;
use serde_json::Value;

use crate::encode::percent;
use crate::parse;

/// A field whose value can be replaced.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// A parameter of the query.
    Query(String),
    /// A field of a form (`application/x-www-form-urlencoded`).
    Form(String),
    /// A parameter of the query or the body, whichever has it: rules do not tell them apart.
    Argument(String),
    /// A scalar of a JSON body, by its path; items of a list repeat the name of the list.
    Json(String),
    /// A field of a multipart body that is not a file.
    Part(String),
    /// The content of a file in a multipart body, by the name of its field; empty: the first file.
    File(String),
    /// The name of a file in a multipart body.
    FileName,
    /// A field of the head.
    Header(String),
    /// A cookie.
    Cookie(String),
    /// The path: its last segment.
    Path,
    /// A body as a whole.
    Body,
}

/// As findings and rules name it: `query:q`, `argument:q`.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, name) = match self {
            Field::Query(name) => ("query", name.as_str()),
            Field::Form(name) => ("form", name.as_str()),
            Field::Argument(name) => ("argument", name.as_str()),
            Field::Json(name) => ("json", name.as_str()),
            Field::Part(name) => ("multipart-field", name.as_str()),
            Field::File(name) => ("file-content", name.as_str()),
            Field::FileName => ("file-name", ""),
            Field::Header(name) => ("header", name.as_str()),
            Field::Cookie(name) => ("cookie", name.as_str()),
            Field::Path => ("path", ""),
            Field::Body => ("body", ""),
        };
        match name {
            "" => f.write_str(place),
            name => write!(f, "{place}:{name}"),
        }
    }
}

impl Field {
    /// The field at a place with a name, as findings have them. None for places that repeat what others
    /// have, and for those of responses.
    pub fn at(place: Place, name: &str) -> Option<Field> {
        let name = name.to_owned();
        Some(match place {
            Place::Query => Field::Query(name),
            Place::Form => Field::Form(name),
            Place::Json => Field::Json(name),
            Place::MultipartField => Field::Part(name),
            Place::FileContent => Field::File(name),
            Place::FileName => Field::FileName,
            Place::Header => Field::Header(name),
            Place::Cookie => Field::Cookie(name),
            Place::Path | Place::PathSegment => Field::Path,
            Place::Text | Place::RawBody => Field::Body,
            Place::Method
            | Place::QueryString
            | Place::Name
            | Place::XmlText
            | Place::XmlAttribute
            | Place::XmlDoctype
            | Place::PartHeader
            | Place::HeaderName
            | Place::ResponseBody
            | Place::ResponseHeader => return None,
        })
    }

    /// The field that a rule's target names: `ARGS:q`, `REQUEST_HEADERS:Referer`.
    pub fn of_target(target: &str) -> Option<Field> {
        let (collection, name) = target.split_once(':').unwrap_or((target, ""));
        let name = name.to_owned();
        Some(match collection {
            "ARGS" if !name.is_empty() => Field::Argument(name),
            "ARGS_GET" if !name.is_empty() => Field::Query(name),
            "ARGS_POST" if !name.is_empty() => Field::Form(name),
            "REQUEST_HEADERS" if !name.is_empty() => Field::Header(name),
            "REQUEST_COOKIES" if !name.is_empty() => Field::Cookie(name),
            "REQUEST_FILENAME" | "REQUEST_BASENAME" | "REQUEST_URI" | "REQUEST_URI_RAW" => Field::Path,
            "FILES" | "FILES_NAMES" => Field::FileName,
            "REQUEST_BODY" => Field::Body,
            _ => return None,
        })
    }

    /// The request with `value` in this field, coded as the field asks for it. None if the request has no
    /// such field, or the field cannot carry the value.
    pub fn replaced(&self, request: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let (head, refusal) = parse(request);
        if refusal.is_some() {
            return None;
        }
        let (head_bytes, body) = request.split_at_checked(head.received_len())?;
        let kind = head.header("content-type").next().unwrap_or_default().to_ascii_lowercase();
        match self {
            Field::Query(name) => with_target(request, |target| in_query(target, name, value)),
            Field::Path => with_target(request, |target| in_path(target, value)),
            Field::Header(name) => in_header(head_bytes, name, value).map(|head| [&head, body].concat()),
            Field::Cookie(name) => {
                let held = head.header("cookie").next()?;
                let cookies = in_pairs(held, b';', name, &in_cookie(value)?)?;
                in_header(head_bytes, "cookie", &cookies).map(|head| [&head, body].concat())
            }
            Field::Form(name) => {
                let is_form = kind.starts_with(b"application/x-www-form-urlencoded");
                let body = is_form.then(|| in_pairs(body, b'&', name, &percent(value, b"")))??;
                Some(with_body(head_bytes, &body))
            }
            Field::Json(name) => {
                let mut document: Value = serde_json::from_slice(body).ok()?;
                let value = String::from_utf8(value.to_vec()).ok()?;
                let name = name.strip_prefix("json.").unwrap_or(name);
                in_json(&mut document, "", "", name, &value).then_some(())?;
                Some(with_body(head_bytes, &serde_json::to_vec(&document).ok()?))
            }
            Field::Argument(name) => [
                Field::Query(name.clone()),
                Field::Form(name.clone()),
                Field::Json(name.clone()),
                Field::Part(name.clone()),
            ]
            .iter()
            .find_map(|field| field.replaced(request, value)),
            Field::Part(_) | Field::File(_) | Field::FileName => {
                let kind = head.header("content-type").next().unwrap_or_default();
                Some(with_body(head_bytes, &self.in_multipart(kind, body, value)?))
            }
            Field::Body => (!body.is_empty()).then(|| with_body(head_bytes, value)),
        }
    }

    /// The body with `value` in the part of this field.
    fn in_multipart(&self, content_type: &[u8], body: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let boundary = [b"--", boundary(content_type)?].concat();
        if find(value, &boundary).is_some() {
            return None;
        }
        let mut at = find(body, &boundary)? + boundary.len();
        loop {
            let rest = &body[at..];
            let head_len = find(rest, b"\r\n\r\n")? + 4;
            let head = &rest[..head_len];
            let end = find(&rest[head_len..], &boundary).map_or(rest.len(), |len| head_len + len);
            let text = String::from_utf8_lossy(head);
            let has_name = |name: &str| {
                text.contains(&format!("; name=\"{name}\"")) || text.contains(&format!("; name={name}\r"))
            };
            let file = text.find("filename=\"").map(|place| place + "filename=\"".len());
            match (self, file) {
                (Field::Part(name), None) if has_name(name) => {}
                (Field::File(name), Some(_)) if name.is_empty() || has_name(name) => {}
                (Field::FileName, Some(from)) => {
                    if value.iter().any(|byte| matches!(byte, b'"' | b'\r' | b'\n' | 0)) {
                        return None;
                    }
                    let from = at + from;
                    let to = from + body[from..].iter().position(|&byte| byte == b'"')?;
                    return Some([&body[..from], value, &body[to..]].concat());
                }
                _ => {
                    at += end;
                    at += if body[at..].starts_with(&boundary) { boundary.len() } else { return None };
                    continue;
                }
            }
            return Some([&body[..at + head_len], value, b"\r\n", &body[at + end..]].concat());
        }
    }
}

/// The request with the target that `change` makes of its own.
fn with_target(request: &[u8], change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let from = request.iter().position(|&byte| byte == b' ')? + 1;
    let to = from + request[from..].iter().position(|&byte| byte == b' ')?;
    let target = change(&request[from..to])?;
    Some([&request[..from], &target, &request[to..]].concat())
}

fn in_query(target: &[u8], name: &str, value: &[u8]) -> Option<Vec<u8>> {
    let at = target.iter().position(|&byte| byte == b'?')? + 1;
    let query = in_pairs(&target[at..], b'&', name, &percent(value, b""))?;
    Some([&target[..at], &query].concat())
}

fn in_path(target: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let at = target[..end].iter().rposition(|&byte| byte == b'/')? + 1;
    // Coded signs stay as they are: in a path, how something is coded is the attack.
    Some([&target[..at], &percent(value, b"/%;:@!$&'()*+,="), &target[end..]].concat())
}

/// Pairs with the value of the first one of this name replaced.
fn in_pairs(pairs: &[u8], separator: u8, name: &str, coded: &[u8]) -> Option<Vec<u8>> {
    let mut from = 0;
    for pair in pairs.split(|&byte| byte == separator) {
        let equals = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        if decoded(pair[..equals].trim_ascii_start()) == name.as_bytes() {
            let key = &pairs[..from + equals];
            return Some([key, b"=", coded, &pairs[from + pair.len()..]].concat());
        }
        from += pair.len() + 1;
    }
    None
}

/// A name of a form as an application reads it.
fn decoded(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, code.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &behind[2..];
            }
            (b'+', _) => {
                out.push(b' ');
                rest = behind;
            }
            _ => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    out
}

/// A value as a cookie may carry it.
fn in_cookie(value: &[u8]) -> Option<Vec<u8>> {
    let takes = |byte: u8| byte >= 0x20 && byte != b';' && byte != 0x7f;
    Some(if value.iter().all(|&byte| takes(byte)) { value.to_vec() } else { percent(value, b"") })
}

/// The head with the first field of this name replaced.
fn in_header(head: &[u8], name: &str, value: &[u8]) -> Option<Vec<u8>> {
    if value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return None;
    }
    let mut out = Vec::with_capacity(head.len() + value.len());
    let mut is_done = false;
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        let is_field =
            line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        if is_field && !is_done {
            is_done = true;
            out.extend_from_slice(&line[..=name.len()]);
            out.push(b' ');
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        } else {
            out.extend_from_slice(line);
        }
    }
    is_done.then_some(out)
}

/// A head with another body behind it, framed by its length and in no content coding.
fn with_body(head: &[u8], body: &[u8]) -> Vec<u8> {
    let of_body: [&[u8]; 3] = [b"content-length:", b"transfer-encoding:", b"content-encoding:"];
    let mut out = Vec::with_capacity(head.len() + body.len());
    for line in head.split_inclusive(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let is_of_body =
            |name: &[u8]| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if !of_body.into_iter().any(is_of_body) {
            out.extend_from_slice(line);
        }
    }
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body);
    out
}

/// Puts `value` in the place of the first scalar with this path; true if there was one.
fn in_json(node: &mut Value, path: &str, key: &str, wanted: &str, value: &str) -> bool {
    match node {
        Value::Object(fields) => {
            let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            fields.iter_mut().any(|(name, node)| in_json(node, &below(name), name, wanted, value))
        }
        Value::Array(items) => {
            let path = if key.is_empty() { path.to_owned() } else { format!("{path}.{key}") };
            items.iter_mut().any(|node| in_json(node, &path, key, wanted, value))
        }
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            let is_wanted = path == wanted;
            if is_wanted {
                *scalar = Value::String(value.to_owned());
            }
            is_wanted
        }
    }
}

fn boundary(content_type: &[u8]) -> Option<&[u8]> {
    let at = find(&content_type.to_ascii_lowercase(), b"boundary=")? + b"boundary=".len();
    let rest = &content_type[at..];
    match rest.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|&byte| byte == b'"').next(),
        None => rest.split(|&byte| byte == b';').next().map(<[u8]>::trim_ascii),
    }
    .filter(|boundary| !boundary.is_empty())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: Field, request: &str, value: &str, expected: &str) {
        let replaced = field.replaced(request.as_bytes(), value.as_bytes());
        let replaced = replaced.unwrap_or_else(|| panic!("{field:?} has no place in {request}"));
        assert_eq!(String::from_utf8_lossy(&replaced), expected);
    }

    fn q(name: &str) -> Field {
        Field::Query(name.to_owned())
    }

    #[test]
    fn values_are_coded_as_their_field_asks() {
        let get = "GET /a/b?x=1&q%5B%5D=2&q=3 HTTP/1.1\r\nHost: h\r\nCookie: a=1; b=2\r\n\r\n";
        check(q("q"), get, "a&b=c d", &get.replace("q=3", "q=a%26b%3Dc%20d"));
        check(q("q[]"), get, "'", &get.replace("q%5B%5D=2", "q%5B%5D=%27"));
        check(Field::Path, get, "../%2e", &get.replace("/a/b?", "/a/../%2e?"));
        check(Field::Cookie("b".to_owned()), get, "x;y", &get.replace("b=2", "b=x%3By"));
        check(Field::Header("host".to_owned()), get, "x", &get.replace("Host: h", "Host: x"));
        let post = "POST / HTTP/1.1\r\nContent-Length: 7\r\nHost: h\r\n\
                    Content-Type: application/x-www-form-urlencoded\r\n\r\na=1&b=2";
        let expected = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                        Content-Length: 9\r\n\r\na=%27&b=2";
        check(Field::Form("a".to_owned()), post, "'", expected);
        check(Field::Argument("a".to_owned()), post, "'", expected);
        let json = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 33\r\n\r\n\
                    {\"u\":{\"n\":[1,\"x\"]},\"v\":[{\"w\":2}]}";
        let expected = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n\
                        {\"u\":{\"n\":[1,\"x\"]},\"v\":[{\"w\":\"\\\"\"}]}";
        check(Field::Json("v.v.w".to_owned()), json, "\"", expected);
        check(Field::Json("json.v.v.w".to_owned()), json, "\"", expected);
    }

    #[test]
    fn parts_of_multipart_bodies() {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=xx\r\n";
        let body = "--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xx\r\n\
                    Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\n\r\nold\r\n--xx--\r\n";
        let whole = |body: &str| format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        check(
            Field::Part("a".to_owned()),
            &whole(body),
            "<b>",
            &whole(&body.replace("\r\n1\r\n", "\r\n<b>\r\n")),
        );
        check(Field::File(String::new()), &whole(body), "new", &whole(&body.replace("old", "new")));
        check(Field::FileName, &whole(body), "x.php", &whole(&body.replace("x.txt", "x.php")));
        assert_eq!(Field::Part("f".to_owned()).replaced(whole(body).as_bytes(), b""), None);
        assert_eq!(Field::Part("a".to_owned()).replaced(whole(body).as_bytes(), b"--xx"), None);
    }

    #[test]
    fn a_field_that_is_not_there_has_no_place() {
        let get = b"GET /?a=1 HTTP/1.1\r\nHost: h\r\n\r\n";
        for field in ["ARGS:b", "REQUEST_HEADERS:Referer", "REQUEST_COOKIES:a", "REQUEST_BODY", "FILES"] {
            assert_eq!(Field::of_target(field).unwrap().replaced(get, b"x"), None, "{field}");
        }
        assert_eq!(Field::of_target("TX:a"), None);
        assert_eq!(Field::Header("host".to_owned()).replaced(get, b"a\r\nb"), None);
    }

    proptest::proptest! {
        /// Nothing of a message or a value makes it panic, and what is put in is what an application reads.
        #[test]
        fn any_message(message: Vec<u8>, value: Vec<u8>, name in "[a-z]{0,2}") {
            for field in [Field::Query(name.clone()), Field::Argument(name.clone()), Field::Path, Field::FileName,
                Field::File(name.clone()), Field::Cookie(name.clone()), Field::Body] {
                let _ = field.replaced(&message, &value);
            }
            let request = [b"GET /?a=1 HTTP/1.1\r\nHost: h\r\n\r\n".as_slice(), &message].concat();
            let replaced = q("a").replaced(&request, &value).unwrap();
            let target = parse(&replaced).0.target().to_vec();
            proptest::prop_assert_eq!(decoded(&target[4..]), value);
        }

        #[test]
        fn any_multipart_body(body in "(--x|\r\n|Content-Disposition: form-data; name=\"a\"|; filename=\"f\"|\r\n\r\n|v){0,12}",
            value: Vec<u8>) {
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 9\r\n\r\n";
            let request = format!("{head}{body}");
            for field in [Field::Part("a".to_owned()), Field::FileName, Field::File(String::new())] {
                let _ = field.replaced(request.as_bytes(), &value);
            }
        }
    }
}
