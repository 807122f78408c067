//! Logins that belong to a connection instead of a request: NTLM and related schemes.
//!
//! The application knows the user of such a connection for all requests that follow on it, without
//! credentials in them. So a connection on which a user may have logged in is never put into the pool: it
//! belongs to the client connection of the login, which sends its further requests to that application on it
//! and closes it at its own end; or it is closed at once.
//!
//! ```text
//! request uses  answer                      then the connection
//! no            no such scheme              goes to the pool
//! no            offers one                  is closed: nobody has logged in, but the server may still count
//! yes           continues or keeps a login  belongs to the client connection
//! yes           anything else               is closed: the login held for one request, or failed
//! ```

use std::net::IpAddr;

use portcullis_http::message::{Fields, RequestHead, ResponseHead};

use super::{Group, UpstreamConnection};
use crate::header_changes::Changed;
use crate::http2::Active;

/// Authentication schemes whose logins belong to the connection: RFC 4559 (section 6: "sessions"), MS-NTHT,
/// MS-N2HT (`Nego2`), and `Kerberos` as Squid's `connection-auth` has it.
const SCHEMES: [&[u8]; 4] = [b"ntlm", b"negotiate", b"nego2", b"kerberos"];

/// Applications of one client connection in which a user is logged in at the same time; beyond it the login
/// that is unused for longest is closed.
const LOGINS_MAX: usize = 4;

/// The fate of a connection after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Any client may have it.
    Shared,
    /// It belongs to its client connection.
    Bound,
    /// Nobody may have it.
    Closed,
}

/// The upstream connections that belong to a client connection, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct Logins(Vec<Login>);

struct Login {
    /// The endpoint of the connection, as [`Group::connections`] numbers it.
    to: u64,
    /// A proxy before us may send requests of several clients on one connection.
    client: IpAddr,
    connection: Box<UpstreamConnection>,
}

impl Logins {
    /// The connection on which `client` is logged in at an endpoint of the group, and that endpoint. A login
    /// of another user, or one that can no longer be used, is closed.
    pub(crate) fn take(
        &mut self,
        group: &Group,
        client: IpAddr,
        certain: bool,
    ) -> Option<(usize, Box<UpstreamConnection>)> {
        let endpoint_of = |login: &Login| group.connections.iter().position(|to| *to == login.to);
        let (index, endpoint) =
            self.0.iter().enumerate().find_map(|(index, login)| Some((index, endpoint_of(login)?)))?;
        let login = self.0.remove(index);
        (login.client == client && login.connection.is_usable(certain))
            .then_some((endpoint, login.connection))
    }

    /// Keeps a connection for the next request of the client to the endpoint.
    pub(crate) fn keep(
        &mut self,
        group: &Group,
        endpoint: usize,
        client: IpAddr,
        mut connection: Box<UpstreamConnection>,
    ) {
        if connection.login.is_none() {
            connection.login = Some(Active::new(group.report.logins(endpoint)));
        }
        if self.0.len() >= LOGINS_MAX {
            self.0.remove(0);
        }
        self.0.push(Login { to: group.connections[endpoint], client, connection });
    }
}

/// True if the request, with the changes of its route, uses such a scheme.
pub(crate) fn is_used(head: &RequestHead, changed: Option<&Changed>) -> bool {
    let of_route = changed.into_iter().flat_map(|changed| changed.set.iter().chain(&changed.add));
    let of_route = of_route.map(|(name, value)| (name.as_bytes(), &value[..]));
    head.fields().chain(of_route).any(|(name, value)| is_credentials(name) && !challenges(value).is_empty())
}

/// True if an answer to a request that used such a scheme asks for more on the same connection, or says that
/// the login stays: then a challenge has data, or there is a `Persistent-Auth` (MS-N2HT).
pub(crate) fn is_continued(head: &ResponseHead) -> bool {
    shown(head.fields()).contains(Shown::CONTINUED)
}

/// The fate of a connection with this answer. `used`: the request used such a scheme; `bound`: the connection
/// belongs to a client connection already.
pub(crate) fn fate(head: &ResponseHead, used: bool, bound: bool) -> Fate {
    if bound {
        return Fate::Bound;
    }
    let shown = shown(head.fields());
    match used {
        true if shown.contains(Shown::CONTINUED) => Fate::Bound,
        false if shown.is_empty() => Fate::Shared,
        _ => Fate::Closed,
    }
}

/// Signs of such schemes in a message.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Shown(u8);

impl Shown {
    const OFFERED: Shown = Shown(1);
    /// With data of the scheme.
    const CONTINUED: Shown = Shown(2);

    fn contains(self, other: Shown) -> bool {
        self.0 & other.0 == other.0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn and(self, other: Shown) -> Shown {
        Shown(self.0 | other.0)
    }
}

fn is_credentials(name: &[u8]) -> bool {
    match name.len() {
        13 => name.eq_ignore_ascii_case(b"authorization"),
        19 => name.eq_ignore_ascii_case(b"proxy-authorization"),
        _ => false,
    }
}

fn shown(fields: Fields<'_>) -> Shown {
    let of_field = |(name, value): (&[u8], &[u8])| match name.len() {
        15 if name.eq_ignore_ascii_case(b"persistent-auth") => {
            match value.trim_ascii().eq_ignore_ascii_case(b"true") {
                true => Shown::CONTINUED,
                false => Shown::default(),
            }
        }
        16 if name.eq_ignore_ascii_case(b"www-authenticate") => challenges(value),
        18 if name.eq_ignore_ascii_case(b"proxy-authenticate") => challenges(value),
        _ => Shown::default(),
    };
    fields.map(of_field).fold(Shown::default(), Shown::and)
}

/// The challenges or credentials of such schemes in a field's value: `Negotiate, NTLM` or `NTLM TlRMTVNT...`.
/// Commas divide it wherever they stand: a quoted text that reads like a scheme costs no more than a
/// connection.
fn challenges(value: &[u8]) -> Shown {
    let of_item = |item: &[u8]| {
        let item = item.trim_ascii();
        let end = item.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(item.len());
        let (scheme, data) = item.split_at(end);
        match SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            false => Shown::default(),
            true if data.trim_ascii().is_empty() => Shown::OFFERED,
            true => Shown::CONTINUED,
        }
    };
    value.split(|byte| *byte == b',').map(of_item).fold(Shown::default(), Shown::and)
}

#[cfg(test)]
mod tests {
    use portcullis_http::h1::{Limits, ResponseParser};

    use super::*;

    fn answer(fields: &str) -> ResponseHead {
        let text = format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n{fields}\r\n");
        ResponseParser::new(Limits::default()).parse(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn the_fate_of_a_connection() {
        use Fate::{Bound, Closed, Shared};
        for (fields, unused, used) in [
            ("", Shared, Closed),
            ("WWW-Authenticate: Basic realm=\"NTLM\"\r\n", Shared, Closed),
            ("WWW-Authenticate: Bearer, Basic\r\n", Shared, Closed),
            ("WWW-Authenticate: NTLM\r\n", Closed, Closed),
            ("WWW-Authenticate: Basic realm=\"a\", negotiate\r\n", Closed, Closed),
            ("www-authenticate: Basic\r\nWWW-AUTHENTICATE:nego2\r\n", Closed, Closed),
            ("WWW-Authenticate: NTLM TlRMTVNTUAACAAAA\r\n", Closed, Bound),
            ("WWW-Authenticate: Negotiate\toYG2MIGzoAMK\r\n", Closed, Bound),
            ("Proxy-Authenticate: KERBEROS YII=\r\n", Closed, Bound),
            ("Persistent-Auth: true\r\n", Closed, Bound),
            ("Persistent-Auth: false\r\n", Shared, Closed),
        ] {
            let head = answer(fields);
            assert_eq!((fate(&head, false, false), fate(&head, true, false)), (unused, used), "{fields}");
            assert_eq!((fate(&head, false, true), fate(&head, true, true)), (Bound, Bound), "{fields}");
        }
    }

    #[test]
    fn credentials_are_known_however_they_are_written() {
        for (value, is) in [
            ("NTLM TlRMTVNTUAAB", true),
            ("ntlm", true),
            (" nTlM\tTlRM", true),
            ("Negotiate=x", true),
            ("Basic YTpi, Negotiate YII", true),
            ("Basic TlRM", false),
            ("NTLMv3 x", false),
            ("Bearer negotiate", false),
            ("", false),
        ] {
            assert_eq!(!challenges(value.as_bytes()).is_empty(), is, "{value}");
        }
    }
}
