//! Requests that a list names by the zones which a value goes to.

use crate::sample::{Content, Label};

/// Requests of a list of zones: `URL`, `ARGS`, `BODY`, `COOKIE`, `USER-AGENT`, `REFERER`, `HEADER`, with how
/// to encode them.
pub(crate) fn zones(payload: &serde_json::Value) -> Vec<(Label, Content)> {
    let mut out = Vec::new();
    for entry in payload.as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |key: &str| entry.get(key).and_then(serde_json::Value::as_str);
        let blocked = entry.get("BLOCKED").and_then(serde_json::Value::as_bool).unwrap_or(true);
        let label = if blocked { Label::Attack } else { Label::Benign };
        let host = ("Host".to_owned(), b"app.example.com".to_vec());
        let request =
            |method: &str, uri: Vec<u8>, more: Vec<(String, Vec<u8>)>, body: Vec<u8>| Content::Request {
                method: method.to_owned(),
                uri,
                headers: [vec![host.clone()], more].concat(),
                body,
            };
        for zone in ["URL", "ARGS", "BODY", "COOKIE", "USER-AGENT", "REFERER", "HEADER"] {
            let Some(value) = text(zone) else { continue };
            let value = value.replace("%RND%", "a1");
            let bytes = value.clone().into_bytes();
            let one = match zone {
                "URL" => {
                    let path = value.trim_start_matches('/');
                    request("GET", format!("/{path}").into_bytes(), Vec::new(), Vec::new())
                }
                "ARGS" => request("GET", [b"/?", bytes.as_slice()].concat(), Vec::new(), Vec::new()),
                "BODY" => {
                    let kind = match text("BODY-TYPE").or(text("CONTENT-TYPE")) {
                        Some(kind) => kind.to_owned(),
                        None if value.starts_with(['{', '[']) => "application/json".to_owned(),
                        None if value.starts_with("<?xml") => "application/xml".to_owned(),
                        None => "application/x-www-form-urlencoded".to_owned(),
                    };
                    request(
                        "POST",
                        b"/".to_vec(),
                        vec![("Content-Type".to_owned(), kind.into_bytes())],
                        bytes,
                    )
                }
                "COOKIE" => request("GET", b"/".to_vec(), vec![("Cookie".to_owned(), bytes)], Vec::new()),
                "USER-AGENT" => {
                    request("GET", b"/".to_vec(), vec![("User-Agent".to_owned(), bytes)], Vec::new())
                }
                "REFERER" => request("GET", b"/".to_vec(), vec![("Referer".to_owned(), bytes)], Vec::new()),
                _ => {
                    // Without a name of its own it is a value; a colon may stand in that.
                    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
                    let (name, value) = value
                        .split_once(':')
                        .filter(|(name, _)| is_name(name))
                        .unwrap_or(("X-Value", &value));
                    let field = (name.trim().to_owned(), value.trim().as_bytes().to_vec());
                    request("GET", b"/".to_vec(), vec![field], Vec::new())
                }
            };
            out.push((label, one));
        }
    }
    out
}
