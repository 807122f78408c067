//! `listeners` as written in the document.

use schemars::JsonSchema;
use serde::Deserialize;

use super::tls::ListenerTls;
use crate::spanned::Spanned;

/// One address to serve.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listener {
    /// A name for sites to refer to; default: the address.
    pub name: Option<Spanned<String>>,
    /// Address and port, for example `0.0.0.0:8080` or `[::]:8080`.
    pub address: Spanned<String>,
    /// Serve TLS.
    pub tls: Option<ListenerTls>,
    /// Expect a PROXY protocol header, version 1 or 2, from the trusted proxies of `client_address`.
    #[serde(default)]
    pub proxy_protocol: Option<Spanned<bool>>,
    /// Strictness of the HTTP parser.
    #[serde(default)]
    pub http: Http,
    /// HTTP/2 to clients.
    #[serde(default)]
    pub http2: crate::http2::Raw,
    /// Serve HTTP/3, too, over UDP on the same port, and say so in `Alt-Svc`. Needs `tls` and a build with
    /// the feature `http3`. Default: `false`.
    pub http3: Option<Spanned<bool>>,
}

/// Strictness of the HTTP parser.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Http {
    /// `strict` refuses everything two readers could read differently; `apache` answers as Apache httpd does
    /// where that is safe, which is what the CRS regression suite expects.
    pub compat: Option<Compat>,
    /// A client that ends what it sends while it waits for an answer still gets it. Default: `false`; it has
    /// gone away then, and what is done for it is given up.
    pub half_close: Option<bool>,
}

/// HTTP profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compat {
    /// The default.
    Strict,
    /// As Apache httpd.
    Apache,
}
