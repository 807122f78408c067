//! Lines of the access log: one for each request, whatever its outcome.

use std::io::Write as _;
use std::net::IpAddr;

use serde::Serialize;

use crate::{Action, Control, Redactor, Timestamp, limits, text};

/// The record of a request in an access log. The bytes are the client's; what is secret in them goes as in
/// events.
#[derive(Clone, Debug)]
pub struct AccessRecord<'a> {
    /// The arrival of its first byte.
    pub time: Timestamp,
    /// The transaction id.
    pub request_id: &'a str,
    /// The address of the client.
    pub client: IpAddr,
    /// Its country, where that is known.
    pub country: Option<&'a str>,
    /// The number of its autonomous system, where that is known.
    pub asn: Option<u32>,
    /// The name of the site; empty if none serves it.
    pub site: &'a str,
    /// The name of the route; empty if none serves it.
    pub route: &'a str,
    /// Method.
    pub method: &'a [u8],
    /// The host that the client named.
    pub host: &'a [u8],
    /// Request target.
    pub target: &'a [u8],
    /// `HTTP/1.1` and the like.
    pub protocol: &'a [u8],
    /// Status sent; none if there was no answer.
    pub status: Option<u16>,
    /// Bytes of the request body.
    pub request_body_bytes: u64,
    /// Bytes of the response body.
    pub body_bytes: u64,
    /// From first byte to last, in microseconds.
    pub duration_us: u64,
    /// The endpoint that was asked last.
    pub upstream: Option<&'a str>,
    /// The trace that the request belongs to.
    pub trace_id: Option<&'a str>,
    /// The verdict.
    pub verdict: Action,
    /// The control that decided on the client before inspection.
    pub control: Option<&'a Control>,
    /// The `Referer` header.
    pub referer: Option<&'a [u8]>,
    /// The `User-Agent` header.
    pub user_agent: Option<&'a [u8]>,
}

/// The JSON form.
#[derive(Serialize)]
struct Json<'a> {
    time: Timestamp,
    request_id: &'a str,
    client: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asn: Option<u32>,
    site: &'a str,
    route: &'a str,
    method: String,
    host: String,
    path: String,
    protocol: String,
    status: Option<u16>,
    request_bytes: u64,
    bytes: u64,
    duration_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    verdict: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<&'a Control>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<String>,
}

impl AccessRecord<'_> {
    /// One JSON object and a newline.
    pub fn json_line(&self, redactor: &Redactor) -> Vec<u8> {
        let token = |bytes: &[u8]| text(bytes, limits::REQUEST_TOKEN_BYTES_MAX);
        let json = Json {
            time: self.time,
            request_id: self.request_id,
            client: self.client,
            country: self.country,
            asn: self.asn,
            site: self.site,
            route: self.route,
            method: token(self.method),
            host: self.clean(self.host, redactor),
            path: self.clean(self.target, redactor),
            protocol: token(self.protocol),
            status: self.status,
            request_bytes: self.request_body_bytes,
            bytes: self.body_bytes,
            duration_us: self.duration_us,
            upstream: self.upstream,
            trace_id: self.trace_id,
            verdict: self.verdict,
            control: self.control,
            referer: self.referer.map(|bytes| self.clean(bytes, redactor)),
            user_agent: self.user_agent.map(|bytes| self.clean_token(bytes, redactor)),
        };
        let mut line = Vec::with_capacity(512);
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut line, &json);
        line.push(b'\n');
        line
    }

    /// As Apache's and nginx's `combined`, in UTC:
    /// `192.0.2.1 - - [21/Sep/2026:14:13:20 +0000] "GET / HTTP/1.1" 200 512 "-" "curl/8"`.
    pub fn combined_line(&self, redactor: &Redactor) -> Vec<u8> {
        let mut line = Vec::with_capacity(256);
        let time = self.time.common_log();
        // Without the fraction of the second, which no reader of this form expects.
        let second = time.split('.').next().unwrap_or_default();
        let _ = write!(line, "{} - - [{second} +0000] \"", self.client);
        quoted(self.method, &mut line);
        line.push(b' ');
        quoted(self.clean(self.target, redactor).as_bytes(), &mut line);
        line.push(b' ');
        quoted(self.protocol, &mut line);
        // Where there was no answer, what nginx logs: we closed the connection without one, or the client
        // did.
        let unanswered = if self.verdict == Action::Drop { 444 } else { 499 };
        let _ = write!(line, "\" {:03} {} \"", self.status.unwrap_or(unanswered), self.body_bytes);
        let referer = self.referer.map_or("-".to_string(), |bytes| self.clean(bytes, redactor));
        quoted(referer.as_bytes(), &mut line);
        line.extend_from_slice(b"\" \"");
        let user_agent = self.user_agent.map_or("-".to_string(), |bytes| self.clean_token(bytes, redactor));
        quoted(user_agent.as_bytes(), &mut line);
        line.extend_from_slice(b"\"\n");
        line
    }

    fn clean(&self, target: &[u8], redactor: &Redactor) -> String {
        let mut target = text(target, limits::REQUEST_TARGET_BYTES_MAX);
        redactor.redact_text(&mut target);
        target
    }

    fn clean_token(&self, bytes: &[u8], redactor: &Redactor) -> String {
        let mut value = text(bytes, limits::REQUEST_TOKEN_BYTES_MAX);
        redactor.redact_text(&mut value);
        value
    }
}

/// Bytes between quotes, so that nothing of a client ends them or its line.
fn quoted(bytes: &[u8], line: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => drop(write!(line, "\\x{byte:02x}")),
            _ => line.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ControlKind;

    fn record<'a>(control: Option<&'a Control>) -> AccessRecord<'a> {
        AccessRecord {
            time: Timestamp::from_epoch_millis(1_790_000_000_123),
            request_id: "r1",
            client: "2001:db8::1".parse().unwrap(),
            country: Some("DE"),
            asn: Some(64496),
            site: "shop",
            route: "/",
            method: b"GET",
            host: b"shop.example",
            target: b"/a\"b?token=abcdef&q=\xff\n",
            protocol: b"HTTP/1.1",
            status: None,
            request_body_bytes: 3,
            body_bytes: 512,
            duration_us: 1234,
            upstream: Some("10.0.0.5:9000"),
            trace_id: None,
            verdict: Action::Deny,
            control,
            referer: Some(b"http://a/?password=secret"),
            user_agent: Some(b"x\" - \\ \x01"),
        }
    }

    #[test]
    fn lines_hold_what_clients_send_without_breaking() {
        let line = record(None).combined_line(&Redactor::default());
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "2001:db8::1 - - [21/Sep/2026:14:13:20 +0000] \"GET /a\\x22b?token=[redacted]&q=\\x5cxff\\x0a HTTP/1.1\" \
             499 512 \"http://a/?password=[redacted]\" \"x\\x22 - \\x5c \\x01\"\n"
        );
        let line = AccessRecord { verdict: Action::Drop, ..record(None) }.combined_line(&Redactor::default());
        assert!(String::from_utf8(line).unwrap().contains(" HTTP/1.1\" 444 512 "));
        let control = Control { by: ControlKind::RateLimit, name: "login".into() };
        let line = record(Some(&control)).json_line(&Redactor::default());
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(value["path"], "/a\"b?token=[redacted]&q=\\xff\n");
        assert_eq!((&value["bytes"], &value["status"]), (&512.into(), &serde_json::Value::Null));
        assert_eq!((&value["control"]["name"], &value["verdict"]), (&"login".into(), &"deny".into()));
        assert_eq!(value["upstream"], "10.0.0.5:9000");
        assert_eq!((&value["country"], &value["asn"]), (&"DE".into(), &64496.into()));
    }
}
