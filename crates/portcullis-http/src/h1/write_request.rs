use super::hop::{Named, is_framing, is_hop_by_hop};
use super::identity::is_identity;
use super::semantics::reads_as;
use super::write::{FieldWriter, write_framing};
use crate::message::{BodyFraming, RequestHead, TargetForm};
use std::io::Write;
use std::net::IpAddr;

/// The changes to a request on its way to the upstream. Anything not named here is sent as received.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestRewrite<'a> {
    /// Framing of the body as sent. Always stated anew; what was received about framing is dropped.
    pub framing: BodyFraming,
    /// Replaces path and query.
    pub target: Option<&'a [u8]>,
    /// Replaces `Host`.
    pub host: Option<&'a [u8]>,
    /// Ask the upstream to close after this request.
    pub close: bool,
    /// Pass `Upgrade` on. Without it the header is dropped.
    pub upgrade: bool,
    /// The client, for the `X-Forwarded-*` fields. `None` leaves those as received.
    pub forwarded: Option<ForwardedBy<'a>>,
    /// Fields to add at the end, each replacing those that [read as](super::reads_as) the same name, so that
    /// a client cannot have `X_Real_IP` or `X.Real.IP` taken for our field.
    pub set: &'a [(&'a str, &'a [u8])],
    /// Fields to add at the end, beside those of the same name.
    pub add: &'a [(&'a str, &'a [u8])],
    /// Names of fields to drop, with all that [read as](super::reads_as) one of them.
    pub remove: &'a [&'a str],
    /// Appended to `Via`, for example `1.1 portcullis`.
    pub via: Option<&'a str>,
}

/// The values of `X-Forwarded-For`, `-Proto` and `-Host`.
#[derive(Clone, Copy, Debug)]
pub struct ForwardedBy<'a> {
    /// The peer of the connection the request came on.
    pub peer: IpAddr,
    /// `http` or `https`.
    pub proto: &'a str,
    /// The peer is trusted: its own `X-Forwarded-*` and `Forwarded` stay, and the peer is added to
    /// `X-Forwarded-For`. Otherwise all of them are replaced.
    pub trusted: bool,
    /// Of a peer that is not trusted, other fields that only a proxy may send are dropped, too:
    /// `True-Client-IP`, `X-Original-URL`, `Proxy` and the like.
    pub drops_identity: bool,
}

/// The fields that tell who asked, in lower case.
const FORWARDING: [&[u8]; 6] = [
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"x-forwarded-host",
    b"x-forwarded-port",
    b"x-real-ip",
    b"forwarded",
];

/// Appends the head as it goes upstream to `out`: HTTP/1.1, order and case of the fields kept, one blank
/// behind each colon, CRLF line ends, fields of one connection only left out, framing made anew.
///
/// The target is written in origin form (RFC 9112, section 3.2.1) from the very bytes that were inspected.
pub fn write_request(head: &RequestHead, how: &RequestRewrite<'_>, out: &mut Vec<u8>) {
    out.reserve(head.received_len() + 256);
    out.extend_from_slice(head.method());
    out.push(b' ');
    write_target(head, how, out);
    out.extend_from_slice(b" HTTP/1.1\r\n");

    let mut fields = FieldWriter::new(out);
    let host = how.host.unwrap_or_else(|| head.host());
    if head.header("host").next().is_none() {
        fields.field(b"Host", host);
    }
    let named = if head.connection.other { Named::of(head.fields()) } else { Named::default() };
    let mut framing_written = false;
    let mut first_host = true;
    for field in head.field_spans() {
        let name = field.name.of(head.bytes());
        if is_framing(name) {
            if !framing_written {
                framing_written = true;
                write_framing(how.framing, &mut fields);
            }
        } else if name.eq_ignore_ascii_case(b"host") {
            if std::mem::take(&mut first_host) {
                fields.field(name, host);
            }
        } else if !is_hop_by_hop(name) && !named.contains(name) && !is_replaced(name, how) {
            fields.received(head.bytes(), field);
        }
    }
    if !framing_written {
        write_framing(how.framing, &mut fields);
    }
    if let Some(by) = &how.forwarded {
        write_forwarded(head, by, &mut fields);
    }
    for (name, value) in how.set.iter().chain(how.add) {
        fields.field(name.as_bytes(), value);
    }
    if let Some(via) = how.via {
        let before = head.header("via");
        fields.list(b"Via", before.chain([via.as_bytes()]));
    }
    match head.upgrade() {
        Some(protocols) if how.upgrade => {
            fields.field(b"Upgrade", protocols);
            fields.field(b"Connection", b"upgrade");
        }
        _ if how.close => fields.field(b"Connection", b"close"),
        _ => {}
    }
    fields.end();
}

fn write_target(head: &RequestHead, how: &RequestRewrite<'_>, out: &mut Vec<u8>) {
    if let Some(target) = how.target {
        return out.extend_from_slice(target);
    }
    match head.target_form() {
        TargetForm::Authority => out.extend_from_slice(head.target()),
        TargetForm::Absolute
            if head.path().is_empty() && head.query().is_none() && head.method() == b"OPTIONS" =>
        {
            out.push(b'*');
        }
        TargetForm::Origin | TargetForm::Absolute | TargetForm::Asterisk | TargetForm::Invalid => {
            if head.path().is_empty() {
                out.push(b'/');
            }
            out.extend_from_slice(head.path_and_query());
        }
    }
}

/// True if a received field is replaced by our own.
fn is_replaced(name: &[u8], how: &RequestRewrite<'_>) -> bool {
    if let Some(by) = &how.forwarded {
        let ours = match by.trusted {
            true => &FORWARDING[..1],
            false => &FORWARDING[..],
        };
        if matches!(name.first(), Some(b'x' | b'X' | b'f' | b'F'))
            && ours.iter().any(|other| reads_as(name, other))
        {
            return true;
        }
        if by.drops_identity && !by.trusted && is_identity(name) {
            return true;
        }
    }
    how.via.is_some() && name.eq_ignore_ascii_case(b"via")
        || how.remove.iter().any(|other| reads_as(name, other.as_bytes()))
        || how.set.iter().any(|(other, _)| reads_as(name, other.as_bytes()))
}

/// The text of an address. For the usual kind without the formatting machinery, which takes twenty times as
/// long.
fn address(address: IpAddr, room: &mut [u8; 46]) -> &[u8] {
    let mut length = 0;
    match address {
        IpAddr::V4(address) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                let digits = [octet / 100, octet / 10 % 10, octet % 10];
                let skip = if octet >= 100 { 0 } else { 1 + usize::from(octet < 10) };
                let dot = (at > 0).then_some(b'.');
                for byte in dot.into_iter().chain(digits[skip..].iter().map(|digit| b'0' + digit)) {
                    room[length] = byte;
                    length += 1;
                }
            }
        }
        IpAddr::V6(address) => {
            let mut rest = &mut room[..];
            let _ = write!(rest, "{address}"); // 46 bytes hold the longest address
            length = 46 - rest.len();
        }
    }
    &room[..length]
}

fn write_forwarded(head: &RequestHead, by: &ForwardedBy<'_>, fields: &mut FieldWriter<'_>) {
    let mut room = [0; 46];
    let peer = address(by.peer.to_canonical(), &mut room);
    let before = head.header("x-forwarded-for").filter(|value| by.trusted && !value.is_empty());
    fields.list(b"X-Forwarded-For", before.chain([peer]));
    let keeps = |name: &'static str| by.trusted && head.header(name).next().is_some();
    if !keeps("x-forwarded-proto") {
        fields.field(b"X-Forwarded-Proto", by.proto.as_bytes());
    }
    if !keeps("x-forwarded-host") && !head.host().is_empty() {
        fields.field(b"X-Forwarded-Host", head.host());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compat, Limits, Parsed, RequestParser};
    use super::*;

    fn head(text: &str) -> RequestHead {
        match RequestParser::new(Limits::default(), Compat::Strict).parse(text.as_bytes()) {
            Parsed::Head(head) => head,
            other => panic!("{other:?}"),
        }
    }

    fn check(input: &str, how: RequestRewrite<'_>, expected: &str) {
        let mut out = Vec::new();
        write_request(&head(input), &how, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{input:?}");
    }

    #[test]
    fn addresses_are_written_as_they_are_shown() {
        let texts = [
            "0.0.0.0",
            "10.0.100.9",
            "127.0.0.1",
            "203.0.113.255",
            "255.255.255.255",
            "::1",
            "2001:db8::a:b",
        ];
        for text in texts {
            assert_eq!(address(text.parse().unwrap(), &mut [0; 46]), text.as_bytes());
        }
        for octet in 0..=255 {
            let shown = IpAddr::from([octet, octet, 0, octet]);
            assert_eq!(address(shown, &mut [0; 46]), shown.to_string().as_bytes());
        }
    }

    #[test]
    fn plain_heads_go_as_they_came() {
        let text = "GET /a?<b>=\u{e9} HTTP/1.1\r\nHost: a.example\r\nuSer-agent: x\r\nX: 1\r\nX: 2\r\n\r\n";
        check(text, RequestRewrite::default(), text);
    }

    #[test]
    fn framing_is_made_anew_in_its_place() {
        let how = RequestRewrite { framing: BodyFraming::Length(7), ..RequestRewrite::default() };
        check(
            "POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding:  CHUNKED \r\nA: b\r\n\r\n",
            how,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nA: b\r\n\r\n",
        );
        check(
            "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
            how,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n",
        );
        let how = RequestRewrite { framing: BodyFraming::Chunked, close: true, ..RequestRewrite::default() };
        check(
            "POST / HTTP/1.0\nContent-Length: 007\n\n",
            how,
            "POST / HTTP/1.1\r\nHost: \r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        );
    }

    #[test]
    fn fields_of_one_connection_stay_behind() {
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x-one, Cookie, content_type\r\nX-One: 1\r\nCookie: c\r\n\
             Content-Type: t\r\nTE: trailers\r\nKeep-Alive: 3\r\nUpgrade: x\r\nExpect: 100-continue\r\n\r\n",
            RequestRewrite::default(),
            "GET / HTTP/1.1\r\nHost: a\r\nCookie: c\r\nContent-Type: t\r\n\r\n",
        );
    }

    #[test]
    fn upgrades() {
        let text = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let how = RequestRewrite { upgrade: true, ..RequestRewrite::default() };
        check(text, how, "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
        check(text, RequestRewrite::default(), "GET /ws HTTP/1.1\r\nHost: a\r\n\r\n");
        let h2c = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\nUpgrade: h2c\r\n\r\n";
        check(h2c, how, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }

    #[test]
    fn targets_go_in_origin_form() {
        let how = RequestRewrite::default();
        check(
            "GET http://a/x?y HTTP/1.1\r\nHost: A:80\r\n\r\n",
            how,
            "GET /x?y HTTP/1.1\r\nHost: A:80\r\n\r\n",
        );
        check("GET http://a?y HTTP/1.1\r\nHost: a\r\n\r\n", how, "GET /?y HTTP/1.1\r\nHost: a\r\n\r\n");
        check("GET https://a HTTP/1.1\r\nHost: a:443\r\n\r\n", how, "GET / HTTP/1.1\r\nHost: a:443\r\n\r\n");
        check("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", how, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
        check("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", how, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
        let how = RequestRewrite { target: Some(b"/t"), host: Some(b"h:1"), ..how };
        check(
            "GET /x HTTP/1.1\r\nA: b\r\nhost: a\r\n\r\n",
            how,
            "GET /t HTTP/1.1\r\nA: b\r\nhost: h:1\r\n\r\n",
        );
    }

    #[test]
    fn who_asked() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\nX_Forwarded_For: 6.6.6.6\r\nx-forwarded-for: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\n\
                    X-Forwarded-Host: z\r\nForwarded: for=9\r\n\r\n";
        let mut by = ForwardedBy {
            peer: "::ffff:10.0.0.1".parse().unwrap(),
            proto: "https",
            trusted: false,
            drops_identity: false,
        };
        let how = RequestRewrite { forwarded: Some(by), ..RequestRewrite::default() };
        check(
            text,
            how,
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n\r\n",
        );
        let claims = "GET / HTTP/1.1\r\nHost: a\r\nTrue_Client_IP: 1\r\nRemote.User: admin\r\nProxy: p\r\nX-Original-URL: /admin\r\nX-Own: 1\r\n\r\n";
        let ours = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\n\r\n";
        let strict = ForwardedBy { drops_identity: true, ..by };
        let how = RequestRewrite { forwarded: Some(strict), ..RequestRewrite::default() };
        check(claims, how, &format!("GET / HTTP/1.1\r\nHost: a\r\nX-Own: 1\r\n{ours}"));
        let kept = claims.trim_end_matches("\r\n");
        let how = RequestRewrite { forwarded: Some(by), ..RequestRewrite::default() };
        check(claims, how, &format!("{kept}\r\n{ours}"));
        by.trusted = true;
        let how = RequestRewrite { forwarded: Some(by), ..RequestRewrite::default() };
        check(
            text,
            how,
            "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: z\r\nForwarded: for=9\r\n\
             X-Forwarded-For: 1.1.1.1, 2.2.2.2, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\r\n",
        );
    }

    #[test]
    fn set_remove_and_via() {
        let how = RequestRewrite {
            set: &[("X-Request-Id", b"7\r\nEvil: 1")],
            remove: &["proxy", "x_own"],
            via: Some("1.1 portcullis"),
            ..RequestRewrite::default()
        };
        check(
            "GET / HTTP/1.1\r\nHost: a\r\nx_request_id: 1\r\nX.Request.Id: 2\r\nX-Own: a\r\nx.own: a\r\nPROXY: p\r\nVia: 1.0 x\r\n\r\n",
            how,
            "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: 7  Evil: 1\r\nVia: 1.0 x, 1.1 portcullis\r\n\r\n",
        );
    }
}
