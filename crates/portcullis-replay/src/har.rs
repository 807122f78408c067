//! Requests of an HTTP archive (HAR 1.2), as browsers and proxies save what they sent.

use std::fmt;

use serde::Deserialize;

/// Requests of one archive.
const REQUESTS_MAX: usize = 100_000;

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Field>,
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: String,
}

/// The reason why a text is no archive.
#[derive(Debug)]
pub struct HarError(String);

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HarError {}

/// The requests of an archive, each as it goes over HTTP/1.1. Those whose parts would end a line of the head
/// are errors.
pub fn read_har(text: &[u8]) -> Result<Vec<Vec<u8>>, HarError> {
    let archive: Archive = serde_json::from_slice(text).map_err(|error| HarError(error.to_string()))?;
    if archive.log.entries.len() > REQUESTS_MAX {
        return Err(HarError(format!("more than {REQUESTS_MAX} requests")));
    }
    let each = archive.log.entries.into_iter().enumerate();
    each.map(|(number, entry)| {
        message(entry.request).map_err(|why| HarError(format!("entry {}: {why}", number + 1)))
    })
    .collect()
}

fn message(request: Request) -> Result<Vec<u8>, String> {
    let Request { method, url, headers, post_data } = request;
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let start = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(start);
    let target = target.split('#').next().unwrap_or_default();
    let slash = if target.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{target} HTTP/1.1\r\n");
    if [&method, &url].into_iter().any(|part| part.contains(|sign: char| sign.is_control() || sign == ' ')) {
        return Err("its method or address has a space or a control character".to_owned());
    }
    // Pseudo fields of HTTP/2 and what frames the body are made anew.
    let is_own = |name: &str| {
        name.starts_with(':')
            || ["host", "content-length", "transfer-encoding", "content-encoding"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
    };
    let named = headers.iter().find(|field| field.name.eq_ignore_ascii_case("host"));
    head.push_str(&format!("Host: {}\r\n", named.map_or(host, |field| field.value.as_str())));
    for Field { name, value } in headers.iter().filter(|field| !is_own(&field.name)) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = post_data.unwrap_or(PostData { mime_type: String::new(), text: String::new() });
    let has_type = headers.iter().any(|field| field.name.eq_ignore_ascii_case("content-type"));
    if !body.mime_type.is_empty() && !has_type {
        head.push_str(&format!("Content-Type: {}\r\n", body.mime_type));
    }
    if !body.text.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.text.len()));
    }
    let lines = 2 + headers.iter().filter(|field| !is_own(&field.name)).count();
    let lines =
        lines + usize::from(!body.mime_type.is_empty() && !has_type) + usize::from(!body.text.is_empty());
    if head.matches(['\r', '\n']).count() != 2 * lines {
        return Err("a field has a line break".to_owned());
    }
    Ok([head.as_bytes(), b"\r\n", body.text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::read_har;

    #[test]
    fn requests_of_a_browser() {
        let har = r#"{"log": {"version": "1.2", "entries": [
            {"request": {"method": "GET", "url": "https://shop.example/a?q=%27#top", "httpVersion": "http/2.0",
                "headers": [{"name": ":authority", "value": "shop.example"}, {"name": "Accept", "value": "*/*"}]}},
            {"request": {"method": "POST", "url": "http://shop.example", "headers": [{"name": "host", "value": "h"},
                {"name": "content-length", "value": "9"}], "postData": {"mimeType": "text/plain", "text": "a=1"}}}
        ]}}"#;
        let messages = read_har(har.as_bytes()).unwrap();
        let texts: Vec<_> = messages.iter().map(|message| String::from_utf8_lossy(message)).collect();
        assert_eq!(
            texts,
            [
                "GET /a?q=%27 HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\na=1",
            ]
        );
    }

    #[test]
    fn lines_cannot_be_smuggled() {
        for (name, value, url) in [
            ("a", "x\\r\\nb: c", "http://h/"),
            ("a\\n", "x", "http://h/"),
            ("a", "x", "http://h/ HTTP/1.1\\r\\nb:"),
        ] {
            let har = format!(
                r#"{{"log": {{"entries": [{{"request": {{"method": "GET", "url": "{url}",
                    "headers": [{{"name": "{name}", "value": "{value}"}}]}}}}]}}}}"#
            );
            assert!(read_har(har.as_bytes()).is_err(), "{har}");
        }
        assert!(read_har(b"{}").is_err());
    }
}
