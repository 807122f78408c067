//! `sites.cookies`: the cookies of a site.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// The cookies of a site.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// Keeps hashes of the cookies that upstreams set: what the semantic detector finds in one that comes
    /// back unchanged is reported and does not count. Default: `true`.
    pub provenance: Option<bool>,
    /// A client that is refused for the third time within an hour for nothing but the same cookie is told to
    /// drop it (`Set-Cookie` with `Max-Age=0`), once. Default: as `provenance`.
    pub expire_refused: Option<Spanned<bool>>,
    /// Cookies that upstreams set for clients that come by TLS become `Secure`. Default: `false`.
    #[serde(default)]
    pub secure: bool,
    /// Names of cookies that become `HttpOnly` when upstreams set them; `*` for all. Default: none.
    #[serde(default)]
    pub http_only: Vec<String>,
    /// `lax`, `strict` or `none` for the cookies of upstreams that say nothing of `SameSite`; `none` needs
    /// `secure`. Default: they stay as they are.
    pub same_site: Option<Spanned<String>>,
}

/// The attributes that cookies of upstreams are given, where they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieFlags {
    /// `Secure`, for clients that come by TLS.
    pub secure: bool,
    /// `HttpOnly`, for cookies of these names; `*` for all.
    pub http_only: Vec<String>,
    /// `SameSite`, with this value.
    pub same_site: Option<&'static str>,
}

/// The cookies of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// Cookies that upstreams set are known when they come back.
    pub provenance: bool,
    /// Cookies for which a client is refused again and again are expired.
    pub expire_refused: bool,
    /// Attributes that they are given.
    pub flags: CookieFlags,
}

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies { provenance: true, expire_refused: true, flags: CookieFlags::default() }
    }
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: &Raw) -> Cookies {
    let provenance = raw.provenance.unwrap_or(Cookies::default().provenance);
    if let Some(expire) = raw.expire_refused.as_ref().filter(|expire| ***expire && !provenance) {
        let message =
            "`expire_refused` needs `provenance`: cookies that the site has issued would be expired, too";
        mistakes.wrong(expire.span.clone(), message.to_owned());
    }
    let same_site = raw.same_site.as_ref().and_then(|site| match (site.as_str(), raw.secure) {
        ("lax", _) => Some("Lax"),
        ("strict", _) => Some("Strict"),
        ("none", true) => Some("None"),
        (text, _) => {
            let message = match text {
                "none" => "`same_site = \"none\"` needs `secure = true`: browsers drop such cookies without `Secure`",
                _ => "same_site is `lax`, `strict` or `none`",
            };
            mistakes.wrong(site.span.clone(), message.to_owned());
            None
        }
    });
    let flags = CookieFlags { secure: raw.secure, http_only: raw.http_only.clone(), same_site };
    Cookies {
        provenance,
        flags,
        expire_refused: raw.expire_refused.as_ref().map_or(provenance, |expire| **expire),
    }
}
