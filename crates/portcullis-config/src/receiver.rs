//! URLs of servers that we ask, with the authorities to trust. No message shows a URL: it may be a secret, or
//! have one.

use std::ops::Range;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::upstream::{Endpoint, host_and_port};

/// A URL in its parts.
pub(crate) struct Url {
    pub(crate) is_tls: bool,
    pub(crate) endpoint: Endpoint,
    path: String,
}

impl Url {
    /// `https://host:port`.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.endpoint)
    }

    /// Path and query; empty, or from the `/` on.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Errors name no part of the text.
    fn parse(text: &str) -> Result<Url, &'static str> {
        let (rest, is_tls) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            _ => return Err("`url` does not begin with http:// or https://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("`url` has a user or a password");
        }
        let is_odd =
            |byte: u8| byte.is_ascii_control() || matches!(byte, b' ' | b'#' | b'"' | b'<' | b'>' | b'\\');
        if path.bytes().any(is_odd) || !path.is_ascii() || !(path.is_empty() || path.starts_with('/')) {
            return Err("the path of `url` cannot be sent as it is");
        }
        let (host, port) =
            host_and_port("", authority).map_err(|_| "`url` names no host, or its port is not a number")?;
        let endpoint = Endpoint::new(host, port.unwrap_or(80 + 363 * u16::from(is_tls)));
        Ok(Url { is_tls, endpoint, path: path.to_string() })
    }
}

/// A URL with the authorities to trust. Mistakes are at `span`, which is not that of the URL: they show its
/// line.
pub(crate) fn receiver(
    mistakes: &mut Mistakes<'_>,
    span: &Range<usize>,
    url: Option<&Spanned<String>>,
    ca: Option<&Spanned<String>>,
    with_path: bool,
) -> Option<Url> {
    let span = span.clone();
    let Some(text) = url else {
        let hint = "add `url = \"https://host:port\"`".to_string();
        mistakes.wrong_with_hint(span, "there is no `url`".to_string(), hint);
        return None;
    };
    match Url::parse(text) {
        Ok(url) if !with_path && !matches!(&*url.path, "" | "/") => {
            mistakes.wrong(span, "`url` has more than a host and a port".to_string());
            None
        }
        Ok(url) => {
            if let Some(ca) = ca.filter(|_| !url.is_tls) {
                without_tls(mistakes, ca, "write `https://` in `url` or drop `ca`");
            }
            Some(url)
        }
        Err(message) => {
            let hint = "write `user` and `password`, or a header in `headers`".to_string();
            match message.contains("password") {
                true => mistakes.wrong_with_hint(span, message.to_string(), hint),
                false => mistakes.wrong(span, message.to_string()),
            }
            None
        }
    }
}

pub(crate) fn without_tls(mistakes: &mut Mistakes<'_>, ca: &Spanned<String>, hint: &str) {
    mistakes.wrong_with_hint(
        ca.span.clone(),
        "`ca` requires a receiver with TLS".to_string(),
        hint.to_string(),
    );
}
