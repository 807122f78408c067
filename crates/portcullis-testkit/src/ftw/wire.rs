//! Tests to request bytes.

use super::Input;

impl Input {
    /// The bytes go-ftw would write for this input.
    pub fn wire(&self) -> Vec<u8> {
        if let Some(request) = &self.encoded_request {
            return request.clone();
        }
        let mut headers = self.headers.clone();
        let mut data = self.data.clone().unwrap_or_default();
        if self.autocomplete_headers && !data.is_empty() {
            if !has(&headers, "Content-Type") {
                headers.push(("Content-Type".into(), FORM.into()));
            }
            if values(&headers, "Content-Type").any(|value| value.eq_ignore_ascii_case(FORM)) {
                data = encode_form(data);
            }
        }
        if values(&headers, "Content-Type").any(|value| value.to_lowercase().contains("multipart/form-data;"))
        {
            data = with_crlf(&data);
        }
        if self.autocomplete_headers {
            if !has(&headers, "Connection") {
                headers.push(("Connection".into(), "close".into()));
            }
            if !has(&headers, "Content-Length") && (!data.is_empty() || wants_length(&self.method)) {
                headers.push(("Content-Length".into(), data.len().to_string()));
            }
        }
        let mut out = format!("{} {} {}\r\n", self.method, self.uri, self.version).into_bytes();
        for (name, value) in &headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&data);
        out
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn values<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    headers.iter().filter(move |(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    values(headers, name).next().is_some()
}

/// go-ftw matches `^POST|PUT|PATCH|DELETE$`, whose anchors bind only the outer two.
fn wants_length(method: &str) -> bool {
    method.starts_with("POST")
        || method.contains("PUT")
        || method.contains("PATCH")
        || method.ends_with("DELETE")
}

/// Every line feed becomes CRLF, also one that has its CR already.
fn with_crlf(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + data.len() / 16);
    for &byte in data {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

/// Percent-encodes names and values of a form, unless it looks encoded already (`%` or `+` anywhere).
/// A last `&` is lost on the way.
fn encode_form(data: Vec<u8>) -> Vec<u8> {
    if data.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return data;
    }
    let mut tokens: Vec<&[u8]> = data.split(|&byte| byte == b'&').collect();
    if tokens.last().is_some_and(|token| token.is_empty()) {
        tokens.pop();
    }
    let mut out = Vec::with_capacity(data.len());
    for (index, token) in tokens.iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        match token.iter().position(|&byte| byte == b'=') {
            None => escape(token, &mut out),
            Some(at) => {
                escape(&token[..at], &mut out);
                out.push(b'=');
                escape(&token[at + 1..], &mut out);
            }
        }
    }
    out
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ftw::parse;

    /// Input fields in YAML flow form, and the bytes sent.
    #[track_caller]
    fn check(input: &str, want: &str) {
        let text = format!("rule_id: 1\ntests:\n- stages: [{{input: {{{input}}}, output: {{}}}}]\n");
        let file = parse(&text, "x.yaml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(String::from_utf8_lossy(&file.tests[0].stages[0].input.wire()), want, "{input}");
    }

    #[test]
    fn request_line_is_sent_as_it_is() {
        check(
            r#"method: "\tGET", uri: '\i', version: 'HTTP\1.0', autocomplete_headers: false"#,
            "\tGET \\i HTTP\\1.0\r\n\r\n",
        );
        check("stop_magic: true", "GET / HTTP/1.1\r\n\r\n");
    }

    #[test]
    fn headers_are_completed() {
        check("method: POST", "POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        check("method: XPUTX", "XPUTX / HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        check(
            "data: 'a=1', headers: {connection: x, content-length: 9}",
            "GET / HTTP/1.1\r\nconnection: x\r\ncontent-length: 9\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\na=1",
        );
    }

    #[test]
    fn forms_are_encoded_unless_they_look_encoded() {
        let head = "GET / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nConnection: close\r\nContent-Length:";
        check("data: \"a=<b> c&d&=é&\"", &format!("{head} 21\r\n\r\na=%3Cb%3E+c&d&=%C3%A9"));
        check("data: 'a=<b>%'", &format!("{head} 6\r\n\r\na=<b>%"));
        check("data: 'a=< +'", &format!("{head} 5\r\n\r\na=< +"));
        check(
            "data: 'a=<', headers: {Content-Type: application/x-www-form-urlencoded; charset=utf-8}, autocomplete_headers: false",
            "GET / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\n\r\na=<",
        );
    }

    #[test]
    fn multipart_lines_end_in_crlf() {
        check(
            "data: \"a\\nb\\r\\n\", autocomplete_headers: false, headers: {Content-Type: 'Multipart/form-data; boundary=b'}",
            "GET / HTTP/1.1\r\nContent-Type: Multipart/form-data; boundary=b\r\n\r\na\r\nb\r\r\n",
        );
    }

    #[test]
    fn an_encoded_request_replaces_all() {
        check("encoded_request: R0VUIC8NCg==, uri: /x", "GET /\r\n");
    }
}
