//! The learning of what the fields of a site carry.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mistakes::Mistakes;
use crate::spanned::Spanned;
use crate::values::number;

/// What parameters, fields of forms and values of JSON carry is learned from requests that were answered
/// well.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// What happens to a value of another type than all that a well-known field has carried. Default:
    /// `detect`.
    pub unusual: Option<Unusual>,
    /// Fields that are learned; more are counted. Each takes up to 9 KiB of memory, most take 1 KiB. Default:
    /// 2000.
    #[schemars(range(min = 100, max = 50_000))]
    pub max: Option<Spanned<u32>>,
    /// Networks of clients from which a field must have been sent before it counts as well known. With fewer
    /// than eleven, a sender with ten networks can teach. Default: 30.
    #[schemars(range(min = 2, max = 10_000))]
    pub networks: Option<Spanned<u32>>,
    /// Days on which it must have been sent. Default: 7.
    #[schemars(range(min = 1, max = 60))]
    pub days: Option<Spanned<u32>>,
}

/// What happens to values that are unlike their field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unusual {
    /// They are not looked for.
    Off,
    /// An event reports them.
    #[default]
    Detect,
    /// Those with signs of code that the field never had, and those in which something else was found, are
    /// refused. All others are reported.
    Block,
}

/// The learning of what the fields of a site carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LearnedFields {
    /// The name of the site.
    pub site: String,
    /// What happens to values that are unlike their field.
    pub unusual: Unusual,
    /// Fields that are learned.
    pub max: usize,
    /// Networks from which a well-known field has been sent.
    pub networks: u64,
    /// Days on which it has been.
    pub days: u32,
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, site: &str, raw: &Raw) -> LearnedFields {
    let mut within = |raw: &Option<Spanned<u32>>, range, name, default| {
        number(mistakes, raw.clone(), range, name, default)
    };
    LearnedFields {
        site: site.to_owned(),
        unusual: raw.unusual.unwrap_or_default(),
        max: within(&raw.max, 100..=50_000, "max", 2_000) as usize,
        networks: within(&raw.networks, 2..=10_000, "networks", 30).into(),
        days: within(&raw.days, 1..=60, "days", 7),
    }
}
