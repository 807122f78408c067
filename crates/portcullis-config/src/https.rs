//! `sites.https`: that clients should come by TLS.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::units::Time;

/// That clients should come by TLS.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// `true` answers requests in clear text with a redirect (308) to `https`. Default: `false`.
    pub redirect: Option<bool>,
    /// The port that the redirect names. Default: 443.
    #[schemars(range(min = 1))]
    pub port: Option<Spanned<u16>>,
    /// Tells browsers to come by TLS only (RFC 6797), in answers that go over TLS. Default: none.
    pub hsts: Option<Hsts>,
}

/// `Strict-Transport-Security`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hsts {
    /// How long browsers remember it. Default: 8760h, a year.
    pub max_age: Option<Time>,
    /// It holds for all names below that of the site, too. Default: `false`.
    pub include_subdomains: Option<bool>,
    /// It may be built into browsers. Needs `include_subdomains` and a year. Default: `false`.
    pub preload: Option<Spanned<bool>>,
}

/// That clients should come by TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Https {
    /// Requests in clear text are redirected to this port.
    pub redirect: Option<u16>,
    /// The value of `Strict-Transport-Security` in answers over TLS.
    pub hsts: Option<String>,
}

const YEAR_SECONDS: u64 = 365 * 24 * 3600;

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: &Raw) -> Https {
    let redirects = raw.redirect == Some(true);
    let port = match &raw.port {
        Some(port) if port.value == 0 => {
            mistakes.wrong(port.span.clone(), "port must be 1 to 65535".to_string());
            443
        }
        Some(port) if !redirects => {
            let hint = "add `redirect = true` or drop it".to_string();
            mistakes.wrong_with_hint(
                port.span.clone(),
                "`port` requires `redirect = true`".to_string(),
                hint,
            );
            443
        }
        Some(port) => port.value,
        None => 443,
    };
    let hsts = raw.hsts.as_ref().map(|hsts| {
        let seconds = hsts.max_age.map_or(YEAR_SECONDS, |time| time.0.as_secs());
        let below = hsts.include_subdomains == Some(true);
        let preload = hsts.preload.as_ref().is_some_and(|preload| preload.value);
        if let (Some(preload), true) = (&hsts.preload, preload && (!below || seconds < YEAR_SECONDS)) {
            let message = "preload needs `include_subdomains = true` and a max_age of a year".to_string();
            mistakes.wrong(preload.span.clone(), message);
        }
        let below = if below { "; includeSubDomains" } else { "" };
        format!("max-age={seconds}{below}{}", if preload { "; preload" } else { "" })
    });
    Https { redirect: redirects.then_some(port), hsts }
}
