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
    /// A client that is refused for the third time within an hour for nothing but the same cookie is asked to
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
    /// Names of cookies that go out with a signature when upstreams set them, and that are removed from
    /// requests where they do not have it. Default: none.
    #[serde(default)]
    pub sign: Vec<Spanned<String>>,
    /// Cookies of these names without any signature: `remove`, or `accept` for the time after `sign` was
    /// switched on, in which clients still have unsigned cookies. Default: `remove`.
    pub unsigned: Option<Spanned<Unsigned>>,
}

/// What becomes of cookies without a signature.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unsigned {
    /// They are removed from requests.
    Remove,
    /// They are forwarded.
    Accept,
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
    /// Names of those that are signed.
    pub sign: Vec<String>,
    /// Those without a signature are accepted.
    pub accept_unsigned: bool,
}

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies {
            provenance: true,
            expire_refused: true,
            flags: CookieFlags::default(),
            sign: Vec::new(),
            accept_unsigned: false,
        }
    }
}

/// `sticky` are the cookies that upstreams keep clients at an endpoint by, with the names of the upstreams.
pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: &Raw, sticky: &[(&str, &str)]) -> Cookies {
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
    let sign = signed(mistakes, &raw.sign, sticky);
    if let Some(unsigned) = raw.unsigned.as_ref().filter(|_| raw.sign.is_empty()) {
        let message = "`unsigned` has no effect without `sign`, the names of cookies that are signed";
        mistakes.wrong(unsigned.span.clone(), message.to_owned());
    }
    let flags = CookieFlags { secure: raw.secure, http_only: raw.http_only.clone(), same_site };
    Cookies {
        provenance,
        flags,
        sign,
        accept_unsigned: raw.unsigned.as_ref().is_some_and(|unsigned| **unsigned == Unsigned::Accept),
        expire_refused: raw.expire_refused.as_ref().map_or(provenance, |expire| **expire),
    }
}

/// The names of cookies that are signed.
fn signed(mistakes: &mut Mistakes<'_>, raw: &[Spanned<String>], sticky: &[(&str, &str)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // Some servers read a period as an underscore.
    let is_same = |a: &str, b: &str| a.replace('.', "_").eq_ignore_ascii_case(&b.replace('.', "_"));
    for name in raw {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'+-.^_`|~".contains(&b);
        let is_name = name.bytes().all(is_token) && name.bytes().any(|b| b.is_ascii_alphanumeric());
        if !is_name {
            let hint = "cookies that scripts write have no signature, so each name that is signed is listed";
            let message = format!("`{}` is not the name of a cookie", name.value);
            mistakes.wrong_with_hint(name.span.clone(), message, hint.to_owned());
        } else if names.iter().any(|other| is_same(other, name)) {
            mistakes.wrong(name.span.clone(), format!("`{}` is there twice, whatever its case", name.value));
        } else if let Some((_, upstream)) = sticky.iter().find(|(own, _)| is_same(own, name)) {
            let message = format!(
                "`{}` is the `sticky_cookie` of the upstream `{upstream}`: no upstream sets it, so it would be removed",
                name.value
            );
            mistakes.wrong(name.span.clone(), message);
        } else {
            names.push(name.value.clone());
        }
    }
    names
}
