//! Addresses and URLs of sinks. No message shows a URL: it may be a secret, or have one.

use super::SyslogAddress;
use crate::mistakes::Mistakes;
use crate::raw::Sink;
use crate::receiver::{self, Url, without_tls};
use crate::spanned::Spanned;
use crate::upstream::{Endpoint, host_and_port};

/// The URL of a sink; `with_path`: it may have a path.
pub(super) fn url(mistakes: &mut Mistakes<'_>, raw: &Sink, with_path: bool) -> Option<Url> {
    receiver::receiver(mistakes, &raw.kind.span, raw.url.as_ref(), raw.ca.as_ref(), with_path)
}

const FORMS: &str =
    "write `tcp://host:port`, `tls://host:port`, `udp://host:port`, `unix:/path` or `unix-stream:/path`";

/// The address of a receiver of syslog.
pub(super) fn address(mistakes: &mut Mistakes<'_>, raw: &Sink) -> Option<SyslogAddress> {
    let Some(text) = &raw.address else {
        mistakes.wrong_with_hint(
            raw.kind.span.clone(),
            "this sink has no `address`".to_string(),
            FORMS.to_string(),
        );
        return None;
    };
    let address = parse_address(mistakes, text, raw.ca.as_ref());
    match address {
        Ok(address) => {
            if let Some(ca) = raw.ca.as_ref().filter(|_| !matches!(address, SyslogAddress::Tls(..))) {
                without_tls(mistakes, ca, "write `tls://` in `address` or drop `ca`");
            }
            Some(address)
        }
        Err(message) => {
            mistakes.wrong_with_hint(text.span.clone(), message, FORMS.to_string());
            None
        }
    }
}

fn parse_address(
    mistakes: &Mistakes<'_>,
    text: &str,
    ca: Option<&Spanned<String>>,
) -> Result<SyslogAddress, String> {
    if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
        return Ok(SyslogAddress::Unix(mistakes.path(path)));
    }
    if let Some(path) = text.strip_prefix("unix-stream:").filter(|path| !path.is_empty()) {
        return Ok(SyslogAddress::UnixStream(mistakes.path(path)));
    }
    let (scheme, rest) =
        text.split_once("://").ok_or_else(|| format!("`{text}` is not an address of syslog"))?;
    let port = match scheme {
        "tcp" => 601,
        "tls" => 6514,
        "udp" => 514,
        _ => return Err(format!("`{scheme}` is not a transport of syslog")),
    };
    let (host, named) = host_and_port(text, rest.strip_suffix('/').unwrap_or(rest))?;
    let endpoint = Endpoint::new(host, named.unwrap_or(port));
    Ok(match scheme {
        "tcp" => SyslogAddress::Tcp(endpoint),
        "tls" => SyslogAddress::Tls(endpoint, ca.map(|ca| mistakes.path(ca))),
        _ => SyslogAddress::Udp(endpoint),
    })
}
