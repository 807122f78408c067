//! `sites.cookies`: the cookies of a site.

use schemars::JsonSchema;
use serde::Deserialize;

/// The cookies of a site.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// Keeps hashes of the cookies that upstreams set: what the semantic detector finds in one that comes
    /// back unchanged is reported and does not count. Default: `true`.
    pub provenance: Option<bool>,
}

/// The cookies of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookies {
    /// Cookies that upstreams set are known when they come back.
    pub provenance: bool,
}

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies { provenance: true }
    }
}

pub(crate) fn check(raw: &Raw) -> Cookies {
    Cookies { provenance: raw.provenance.unwrap_or(Cookies::default().provenance) }
}
