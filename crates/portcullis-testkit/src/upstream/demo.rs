//! The demo application behind `make run`: a small bookshop that shows what reached it.
//!
//! It is deliberately safe in itself (everything it prints is escaped): what the WAF blocks is seen by its
//! absence here.

use super::{Request, Response};

const BOOKS: [(&str, &str, u32); 8] = [
    ("The Gatekeeper's Handbook", "A. Ward", 1890),
    ("Castles of the Coast", "M. Keep", 2450),
    ("Iron and Oak", "J. Smithson", 1575),
    ("A History of Locks", "R. Tumbler", 3120),
    ("Selected Unions of Tables", "Q. Joiner", 2200),
    ("The Night Watch", "S. Sentry", 995),
    ("Moats, Ditches and Drains", "P. Digger", 1340),
    ("Letters to a Young Porter", "A. Ward", 1180),
];

/// Answers one request.
pub fn answer(request: &Request) -> Response {
    match (request.method.as_str(), request.path()) {
        ("GET" | "HEAD", "/") => page("Books", &front()),
        ("GET" | "HEAD", "/search") => {
            page("Search", &search(&field(request.query(), "q").unwrap_or_default()))
        }
        ("GET" | "HEAD", "/login") => page("Sign in", LOGIN),
        ("POST", "/login") => page("Welcome", &welcome(&String::from_utf8_lossy(&request.body))),
        (_, "/api") => api(request),
        ("GET" | "HEAD", "/healthz") => kind(200, "text/plain; charset=utf-8", "ok\n".into()),
        (_, "/" | "/search" | "/login") => {
            kind(405, "text/plain; charset=utf-8", "method not allowed\n".into())
        }
        _ => Response {
            status: 404,
            ..page("Nothing here", "<p>There is no such page. <a href=\"/\">Home</a></p>")
        },
    }
}

fn front() -> String {
    let mut out = String::from(SEARCH);
    out.push_str(&table(BOOKS.iter()));
    out.push_str("<p><a href=\"/login\">Sign in</a> · <a href=\"/api?page=1\">JSON</a></p>");
    out
}

const SEARCH: &str = "<form action=\"/search\"><input name=\"q\" placeholder=\"Title or author\"> <button>Search</button></form>";

const LOGIN: &str = "<form method=\"post\" action=\"/login\"><p><input name=\"user\" placeholder=\"Name\"></p><p><input name=\"password\" type=\"password\" placeholder=\"Password\"></p><button>Sign in</button></form>";

fn search(wanted: &str) -> String {
    let low = wanted.to_lowercase();
    let hits: Vec<_> = BOOKS
        .iter()
        .filter(|(title, author, _)| {
            title.to_lowercase().contains(&low) || author.to_lowercase().contains(&low)
        })
        .collect();
    let count = hits.len();
    format!("{SEARCH}<p>{count} found for <b>{}</b></p>{}", escape(wanted), table(hits.into_iter()))
}

fn table<'a>(books: impl Iterator<Item = &'a (&'static str, &'static str, u32)>) -> String {
    let rows: String = books
        .map(|(title, author, cents)| {
            let (whole, part) = (cents / 100, cents % 100);
            format!(
                "<tr><td>{}</td><td>{}</td><td>{whole}.{part:02}</td></tr>",
                escape(title),
                escape(author)
            )
        })
        .collect();
    format!("<table>{rows}</table>")
}

fn welcome(form: &str) -> String {
    let user = field(form, "user").unwrap_or_default();
    format!(
        "<p>Hello, <b>{}</b>. This shop lets everyone in and remembers nobody.</p><p><a href=\"/\">Home</a></p>",
        escape(&user)
    )
}

/// Says what it received.
fn api(request: &Request) -> Response {
    let headers: Vec<_> =
        request.header_lines().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    let document = serde_json::json!({
        "method": request.method,
        "target": request.target,
        "headers": headers,
        "body": String::from_utf8_lossy(&request.body),
        "body_bytes": request.body.len(),
    });
    kind(200, "application/json", format!("{document:#}\n"))
}

fn page(title: &str, content: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>\
         body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#234}}\
         table{{border-collapse:collapse}}td{{padding:.2rem 1rem .2rem 0}}</style></head>\
         <body><h1>{title}</h1>{content}</body></html>\n"
    );
    kind(200, "text/html; charset=utf-8", html)
}

fn kind(status: u16, kind: &str, body: String) -> Response {
    Response { status, headers: vec![("Content-Type".into(), kind.into())], body: body.into() }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// One field of a query string or form, decoded.
fn field(form: &str, name: &str) -> Option<String> {
    form.split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(have, _)| *have == name)
        .map(|(_, value)| decode(value))
}

fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        let hex = match (byte, tail) {
            (b'%', [a, b, ..]) => digit(*a).zip(digit(*b)).map(|(a, b)| a << 4 | b),
            _ => None,
        };
        rest = if hex.is_some() { &tail[2..] } else { tail };
        out.push(hex.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::answer;
    use crate::client;
    use crate::upstream::Server;

    /// A request, the status, and words its answer has.
    #[test]
    fn pages() {
        let server = Server::start("127.0.0.1:0", answer).unwrap();
        let check = |method: &str, target: &str, body: &str, status: u16, words: &str| {
            let length = body.len();
            let request = format!(
                "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            let have =
                client::exchange(server.address(), None, request.as_bytes(), Duration::from_secs(5)).unwrap();
            let text = String::from_utf8_lossy(&have.raw).into_owned();
            assert_eq!(have.status, status, "{method} {target}");
            assert!(text.contains(words), "{method} {target}: {text}");
        };
        check("GET", "/", "", 200, "Iron and Oak");
        check("GET", "/search?q=ward", "", 200, "2 found for <b>ward</b>");
        check("GET", "/search?a=1&q=%3Cscript%3E+%zz", "", 200, "<b>&lt;script&gt; %zz</b>");
        check("GET", "/login", "", 200, "method=\"post\"");
        check("POST", "/login", "user=Ann%26Bob&password=x", 200, "Hello, <b>Ann&amp;Bob</b>");
        check("PUT", "/api?x=1", "{\"a\":\"<\"}", 200, "\"target\": \"/api?x=1\"");
        check("DELETE", "/login", "", 405, "not allowed");
        check("GET", "/nope", "", 404, "no such page");
    }
}
