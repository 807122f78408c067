//! The message: its bytes as values, its bodies, and the connection. Heads become values here, bodies in
//! [`body`](crate::body).

use std::net::{IpAddr, SocketAddr};

use portcullis_http::body::{count_arguments, overrides_url};
use portcullis_http::cookie::{self, CookieFormat};
use portcullis_types::{Decimal, Span, Variable, percent_decode, reason_phrase};

use crate::body::{RequestBody, parse_query, read_elsewhere};
use crate::plan::{HeadParts, Plan};
use crate::settings::Settings;
use crate::transaction::{Connection, RequestLine};
use crate::{Class, login};
use portcullis_values::Values;

/// The request and the response of a transaction. Rules read it; they change it only through `ctl` and
/// `@rsub`.
#[derive(Debug)]
pub(crate) struct Message {
    /// Every value, and every text that rules make of them.
    pub(crate) store: Box<Values>,
    pub(crate) body: RequestBody,
    pub(crate) response_body: Vec<u8>,
    /// Its media type is one of `SecResponseBodyMimeType`.
    pub(crate) response_inspectable: bool,
    pub(crate) client_port: u16,
    pub(crate) server: SocketAddr,
    pub(crate) epoch_seconds: i64,
    pub(crate) utc_offset_seconds: i32,
    pub(crate) elapsed_us: u64,
    path_unescaped: bool,
    /// Parts of the heads that become values.
    pub(crate) keeps: HeadParts,
    /// The arguments of the query are those that any parser with second readings finds.
    pub(crate) is_query_plain: bool,
}

impl Message {
    /// An empty message on `connection`.
    pub(crate) fn new(plan: &Plan, store: Box<Values>, connection: &Connection) -> Message {
        let mut message = Message {
            store,
            body: RequestBody::new(plan.settings.audit.reachable.request_body),
            response_body: Vec::new(),
            response_inspectable: false,
            client_port: connection.client.port(),
            server: connection.server,
            epoch_seconds: connection.epoch_seconds,
            utc_offset_seconds: connection.utc_offset_seconds,
            elapsed_us: 0,
            path_unescaped: false,
            keeps: HeadParts::ALL,
            is_query_plain: false,
        };
        if plan.searches_xml {
            message.body.make_tree();
        }
        message.ingest_connection(plan, connection);
        message
    }

    /// The time, as far as the caller has told it: seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.epoch_seconds.saturating_add_unsigned(self.elapsed_us / 1_000_000)
    }

    /// Bytes of memory for values, forms and bodies, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.store.held_bytes() + self.body.held_bytes() + self.response_body.capacity()
    }

    fn ingest_connection(&mut self, plan: &Plan, connection: &Connection) {
        let store = &mut self.store;
        let client = push_address(store, connection.client.ip());
        for variable in [Variable::RemoteAddr, Variable::RemoteHost, Variable::UseragentIp] {
            store.set_scalar_span(variable, client);
        }
        store.set_scalar(Variable::UniqueId, connection.unique_id.as_bytes());
        // Few rules look at these; where none does that the prefilter asks beforehand, they are worked out
        // when they are asked for.
        let candidates = &plan.candidates;
        if candidates.reads(Variable::ServerAddr) {
            let server = push_address(store, connection.server.ip());
            store.set_scalar_span(Variable::ServerAddr, server);
        }
        for (variable, address) in
            [(Variable::RemotePort, connection.client), (Variable::ServerPort, connection.server)]
        {
            if candidates.reads(variable) {
                store.set_scalar(variable, &Decimal::new(address.port().into()));
            }
        }
    }

    pub(crate) fn ingest_request_head<'a>(
        &mut self,
        plan: &Plan,
        line: RequestLine<'_>,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let settings = &plan.settings;
        let parts = split_target(line.target, line.method);
        if self.keeps.has(HeadParts::LINE) {
            self.ingest_request_line(settings, line, &parts);
        }
        if let Some(query) = parts.query {
            self.ingest_query(settings, query.of(line.target));
        }
        let mut urls = Vec::new();
        for (name, value) in headers {
            self.ingest_request_field(plan, name, value);
            if name.eq_ignore_ascii_case(b"cookie") {
                self.ingest_cookies(settings, value);
            } else if name.eq_ignore_ascii_case(b"content-type") {
                self.body.set_content_type(value);
            } else if overrides_url(name) {
                urls.push(value);
            } else if name.eq_ignore_ascii_case(b"authorization") {
                if self.keeps.has(HeadParts::LOGIN) && self.store.scalar(Variable::AuthType).is_none() {
                    login::ingest(value, &mut self.store);
                }
            } else if name.eq_ignore_ascii_case(b"content-length")
                || name.eq_ignore_ascii_case(b"transfer-encoding")
            {
                self.body.announce();
            } else if name.eq_ignore_ascii_case(b"host")
                && self.keeps.has(HeadParts::HOST)
                && self.store.scalar(Variable::ServerName).is_none()
            {
                self.store.set_scalar(Variable::ServerName, host_name(value));
            }
        }
        if settings.second_readings && self.keeps.has(HeadParts::QUERY) {
            read_elsewhere(parts.path.of(line.target), &urls, settings, &mut self.store);
        }
        self.body.choose_processor();
    }

    /// A header field of the request, or one behind its body.
    pub(crate) fn ingest_request_field(&mut self, plan: &Plan, name: &[u8], value: &[u8]) {
        if self.keeps.has(HeadParts::FIELDS) || plan.head_reads.names_field(name) {
            self.store.add_pair(Class::RequestHeaders, Class::RequestHeadersNames, name, value);
        }
    }

    fn ingest_cookies(&mut self, settings: &Settings, value: &[u8]) {
        if !self.keeps.has(HeadParts::COOKIES) {
            return;
        }
        // libmodsecurity knows one format and one separator.
        let (format, separator) = match settings {
            _ if settings.modsecurity3 => (CookieFormat::V0, Some(b';')),
            _ if settings.cookie_v1 => (CookieFormat::V1, settings.cookie_separator),
            _ => (CookieFormat::V0, settings.cookie_separator),
        };
        for cookie in cookie::parse(value, format, separator).cookies {
            let (name, value) = (cookie.full_name(value), cookie.value(value));
            self.store.add_pair(Class::RequestCookies, Class::RequestCookiesNames, &name, value);
        }
    }

    fn ingest_request_line(&mut self, settings: &Settings, line: RequestLine<'_>, parts: &TargetParts) {
        let store = &mut self.store;
        // As a rule the rest is part of the line, one blank between, and need not be kept again.
        let whole = store.push(line.line);
        let part = |from: usize, to: usize| Span::new(whole.start as usize + from, whole.start as usize + to);
        let (behind_method, length) = (line.method.len() + 1, line.line.len());
        store.set_scalar_span(Variable::RequestLine, whole);
        let method = store.push_at(line.method, part(0, line.method.len()));
        store.set_scalar_span(Variable::RequestMethod, method);
        let protocol = store.push_at(line.protocol, part(length.saturating_sub(line.protocol.len()), length));
        store.set_scalar_span(Variable::RequestProtocol, protocol);
        let target = store.push_at(line.target, part(behind_method, behind_method + line.target.len()));
        store.set_scalar_span(Variable::RequestUriRaw, target);
        let within = |span: Span| Span { start: target.start + span.start, end: target.start + span.end };
        store.set_scalar_span(Variable::RequestUri, within(parts.uri));
        store.set_scalar_span(Variable::RequestFilename, within(parts.path));
        store.set_scalar_span(Variable::RequestBasename, within(parts.basename));
        store.set_scalar_span(Variable::PathInfo, within(parts.path));
        if let Some(query) = parts.query {
            store.set_scalar_span(Variable::QueryString, within(query));
        }
        if settings.modsecurity3 {
            self.unescape_target(line.target, parts.uri);
        }
    }

    /// The arguments of the query. Those that no rule reads are only counted: those of the body are so many
    /// fewer. Too many are an error, which rules may read.
    fn ingest_query(&mut self, settings: &Settings, query: &[u8]) {
        if !self.keeps.has(HeadParts::QUERY) {
            let count = count_arguments(query, settings.argument_separator);
            if count <= settings.arguments_max() {
                return self.body.count_arguments(count);
            }
        }
        let kept = self.store.scalar(Variable::QueryString).map(|value| self.store.data(value));
        let at = kept.unwrap_or_else(|| self.store.push(query));
        self.is_query_plain = parse_query(query, at, settings, &mut self.store);
    }

    /// As libmodsecurity does, from phase 1 on; the file name is what stands before the first question mark,
    /// scheme and authority included. It ends there before it is unescaped, as from 3.0.12 on: an escaped
    /// question mark hides nothing behind it (CVE-2024-1019).
    fn unescape_target(&mut self, target: &[u8], uri: Span) {
        self.path_unescaped = true;
        self.store.set_scalar(Variable::RequestUri, &percent_decode(uri.of(target), false));
        let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
        let path = percent_decode(path, false);
        self.store.set_scalar(Variable::RequestFilename, &path);
        self.store.set_scalar(Variable::PathInfo, &path);
        self.store.set_scalar(Variable::RequestBasename, &path[basename(&path)..]);
    }

    /// From phase 2 on, the path in `REQUEST_URI`, `REQUEST_FILENAME` and `REQUEST_BASENAME` has its
    /// percent-encoding undone: Apache unescapes it between the two phases, and rules are written for that.
    /// Apache also merges slashes and resolves `..`; we do not, since the upstream gets them as they came.
    pub(crate) fn unescape_path(&mut self) {
        if std::mem::replace(&mut self.path_unescaped, true) {
            return;
        }
        let Some(path) = self.store.scalar(Variable::RequestFilename).map(|value| self.store.data(value))
        else {
            return;
        };
        if memchr::memchr(b'%', self.store.text(path)).is_none() {
            return;
        }
        let mut uri = percent_decode(self.store.text(path), false);
        let (path_length, base) = (uri.len(), basename(&uri));
        if let Some(query) = self.store.scalar(Variable::QueryString) {
            uri.push(b'?');
            uri.extend_from_slice(self.store.text(self.store.data(query)));
        }
        let uri = self.store.push(&uri);
        let part =
            |from: usize, to: usize| Span { start: uri.start + from as u32, end: uri.start + to as u32 };
        self.store.set_scalar_span(Variable::RequestUri, uri);
        self.store.set_scalar_span(Variable::RequestFilename, part(0, path_length));
        self.store.set_scalar_span(Variable::PathInfo, part(0, path_length));
        self.store.set_scalar_span(Variable::RequestBasename, part(base, path_length));
    }

    /// The status of our own answer, which takes the place of what the response had.
    pub(crate) fn answer(&mut self, settings: &Settings, status: u16) {
        if !self.keeps.has(HeadParts::RESPONSE) {
            return;
        }
        if self.store.scalar(Variable::ResponseProtocol).is_none()
            && let Some(of_request) = self.store.scalar(Variable::RequestProtocol)
        {
            let text = self.store.data(of_request);
            self.store.set_scalar_span(Variable::ResponseProtocol, text);
        }
        set_status(&mut self.store, settings, status);
    }

    pub(crate) fn ingest_response_head<'a>(
        &mut self,
        settings: &Settings,
        protocol: &[u8],
        status: u16,
        headers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let (store, is_kept) = (&mut self.store, self.keeps.has(HeadParts::RESPONSE));
        if is_kept {
            store.set_scalar(Variable::ResponseProtocol, protocol);
            set_status(store, settings, status);
        }
        let inspected = &settings.response_body_mime_types;
        self.response_inspectable = inspected.iter().any(|mime| mime == b"null" || mime == b"(null)");
        for (name, value) in headers {
            let is_type = name.eq_ignore_ascii_case(b"content-type");
            if is_type {
                let mime = value.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
                // Those of the settings are in lower case.
                self.response_inspectable = inspected.iter().any(|known| known.eq_ignore_ascii_case(mime));
            }
            if !is_kept {
                continue;
            }
            store.add_pair(Class::ResponseHeaders, Class::ResponseHeadersNames, name, value);
            if is_type {
                store.set_scalar(Variable::ResponseContentType, value);
            } else if name.eq_ignore_ascii_case(b"content-length") {
                store.set_scalar(Variable::ResponseContentLength, value);
            }
        }
    }
}

/// Sets the status and its line: `200 OK`, as Apache has it, or `200`, as in libmodsecurity.
fn set_status(store: &mut Values, settings: &Settings, status: u16) {
    let digits = Decimal::new(status.into());
    store.set_scalar(Variable::ResponseStatus, &digits);
    match settings.modsecurity3 {
        true => store.set_scalar(Variable::StatusLine, &digits),
        false => {
            let line = [&digits, reason_phrase(status).as_bytes()].join(&b' ');
            store.set_scalar(Variable::StatusLine, &line);
        }
    }
}

/// As the standard library writes it, in a fiftieth of the time.
fn push_address(store: &mut Values, address: IpAddr) -> Span {
    let IpAddr::V4(address) = address else { return store.push(address.to_string().as_bytes()) };
    let (mut text, mut length) = ([0; 16], 0);
    let mut put = |byte: u8| (text[length], length) = (byte, length + 1);
    for octet in address.octets() {
        if octet >= 100 {
            put(b'0' + octet / 100);
        }
        if octet >= 10 {
            put(b'0' + octet / 10 % 10);
        }
        put(b'0' + octet % 10);
        put(b'.');
    }
    store.push(&text[..length - 1])
}

/// `Host` without its port.
fn host_name(host: &[u8]) -> &[u8] {
    if host.starts_with(b"[") {
        let end = memchr::memchr(b']', host).map_or(host.len(), |at| at + 1);
        return &host[..end];
    }
    host.split(|&b| b == b':').next().unwrap_or_default()
}

/// Parts of a request target, as offsets into it.
#[derive(Debug, PartialEq, Eq)]
struct TargetParts {
    /// Path and query.
    uri: Span,
    path: Span,
    /// The path after its last `/` or `\`.
    basename: Span,
    query: Option<Span>,
}

/// A fragment, which no client may send, stays where it is: it is evidence. The target of CONNECT has no
/// path.
fn split_target(target: &[u8], method: &[u8]) -> TargetParts {
    let start = if method == b"CONNECT" { target.len() } else { authority_end(target) };
    let question = memchr::memchr(b'?', &target[start..]).map(|at| start + at);
    let path = Span::new(start, question.unwrap_or(target.len()));
    let base =
        memchr::memrchr2(b'/', b'\\', path.of(target)).map_or(path.start as usize, |at| start + at + 1);
    TargetParts {
        uri: Span::new(start, target.len()),
        path,
        basename: Span::new(base, path.end as usize),
        query: question.map(|at| Span::new(at + 1, target.len())),
    }
}

/// The start of the last segment of a path: behind the last `/` or `\`.
fn basename(path: &[u8]) -> usize {
    memchr::memrchr2(b'/', b'\\', path).map_or(0, |at| at + 1)
}

/// The offset of the path in an absolute-form target; 0 for the other forms.
fn authority_end(target: &[u8]) -> usize {
    let scheme =
        target.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')).count();
    if scheme == 0 || !target[scheme..].starts_with(b"://") {
        return 0;
    }
    let authority = scheme + 3;
    memchr::memchr3(b'/', b'?', b'#', &target[authority..]).map_or(target.len(), |at| authority + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_apart() {
        for (target, uri, path, basename, query) in [
            ("/a/b.php?x=1&y", "/a/b.php?x=1&y", "/a/b.php", "b.php", Some("x=1&y")),
            ("/a?x?y#z", "/a?x?y#z", "/a", "a", Some("x?y#z")),
            ("http://h:80/p/q?r", "/p/q?r", "/p/q", "q", Some("r")),
            ("http://h", "", "", "", None),
            ("*", "*", "*", "*", None),
            ("/a\\b?", "/a\\b?", "/a\\b", "b", Some("")),
        ] {
            let parts = split_target(target.as_bytes(), b"GET");
            let text = |span: Span| std::str::from_utf8(span.of(target.as_bytes())).unwrap();
            assert_eq!(
                (text(parts.uri), text(parts.path), text(parts.basename)),
                (uri, path, basename),
                "{target}"
            );
            assert_eq!(parts.query.map(text), query, "{target}");
        }
    }

    #[test]
    fn paths_lose_their_percent_signs() {
        for (path, want) in
            [("/a%20b", "/a b"), ("/%2", "/%2"), ("/%zz+", "/%zz+"), ("%41%42", "AB"), ("%%41", "%A")]
        {
            assert_eq!(percent_decode(path.as_bytes(), false), want.as_bytes());
        }
    }

    #[test]
    fn addresses_are_written_as_usual() {
        for text in ["192.0.2.7", "0.0.0.0", "255.255.255.255", "10.20.100.1", "::1", "2001:db8::7"] {
            let mut store = Values::default();
            let span = push_address(&mut store, text.parse().unwrap());
            assert_eq!(store.text(span), text.as_bytes());
        }
    }

    #[test]
    fn host_names_lose_their_port() {
        for (host, name) in [("h", "h"), ("h:80", "h"), ("[::1]:80", "[::1]"), ("[::1", "[::1"), ("", "")] {
            assert_eq!(host_name(host.as_bytes()), name.as_bytes());
        }
    }
}
