//! Signed cookies of a site, with their metrics.

use portcullis_config::Cookies;
use portcullis_http::message::RequestHead;
use portcullis_inspect::{CheckedCookies, CookieCheck, CookieSigner, ForeignCookie, IssuedCookies};
use portcullis_metrics::{EnumCounters, Registry, catalogue};

/// Label values of cookies that were signed.
const SIGNED: [&str; 2] = ["signed", "too_long"];

/// The signed cookies of a site.
pub(crate) struct Signing {
    signer: CookieSigner,
    signed: EnumCounters,
    checked: EnumCounters,
}

impl Signing {
    /// With the secret of the site's issued cookies.
    pub(crate) fn new(registry: &Registry, cookies: &Cookies, issued: &IssuedCookies) -> Signing {
        let site = issued.site();
        Signing {
            signer: issued.signer(&cookies.sign, cookies.accept_unsigned),
            signed: registry.enum_counters(&catalogue::SIGNED_COOKIES, &[site], &SIGNED),
            checked: registry.enum_counters(&catalogue::CHECKED_COOKIES, &[site], &CookieCheck::NAMES),
        }
    }

    /// Takes signatures off the cookies of a request, and removes those that should have one and do not:
    /// these are returned. `now` is in milliseconds since 1970.
    pub(crate) fn check(&self, head: &mut RequestHead, now: u64) -> Vec<ForeignCookie> {
        let mut checked = CheckedCookies::default();
        head.change_header("cookie", |field| self.signer.cookies(field, now, &mut checked));
        for (result, count) in checked.counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.checked.add(result, count.into());
        }
        checked.foreign
    }

    /// A `Set-Cookie` field of an upstream with a signature; none if its cookie is not signed.
    pub(crate) fn sign(&self, field: &[u8], now: u64) -> Option<Vec<u8>> {
        let signed = self.signer.set_cookie(field, now)?;
        self.signed.inc(usize::from(signed.is_too_long));
        Some(signed.field)
    }
}
