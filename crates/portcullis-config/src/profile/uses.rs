//! The profiles that a site names.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::{PROFILES, profile};
use crate::checked::Policy;
use crate::hint;
use crate::mistakes::Mistakes;
use crate::spanned::Spanned;

/// A profile that a site takes: its name, or a table.
#[derive(Clone, Debug)]
pub(crate) struct ProfileUse {
    pub name: String,
    pub path: Option<String>,
}

/// A profile of an application that is not at the root of the site.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProfileTable {
    /// The name of the profile.
    name: String,
    /// The path of the application: `/blog`. Default: the root of the site.
    path: Option<String>,
}

impl<'de> Deserialize<'de> for ProfileUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UseVisitor)
    }
}

struct UseVisitor;

impl<'de> Visitor<'de> for UseVisitor {
    type Value = ProfileUse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile, or a table with `name`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ProfileUse, E> {
        Ok(ProfileUse { name: name.to_string(), path: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ProfileUse, A::Error> {
        let ProfileTable { name, path } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ProfileUse { name, path })
    }
}

impl JsonSchema for ProfileUse {
    fn schema_name() -> Cow<'static, str> {
        "ProfileUse".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [{ "type": "string" }, generator.subschema_for::<ProfileTable>()],
            "description": "A profile that a site takes: its name, or a table with `name`."
        })
    }
}

/// Adds the exclusions of the profiles that a site names to its policy.
pub(crate) fn apply(mistakes: &mut Mistakes<'_>, uses: &[Spanned<ProfileUse>], policy: &mut Policy) {
    for (at, each) in uses.iter().enumerate() {
        let ProfileUse { name, path } = &each.value;
        let Some(profile) = profile(name) else {
            let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name.as_str()).collect();
            let message = format!("there is no profile `{name}`");
            let hint =
                format!("{}; `portcullis profiles` tells what each opens", hint::suggest(name, &known));
            mistakes.wrong_with_hint(each.span.clone(), message, hint);
            continue;
        };
        let path = path.as_deref().unwrap_or_default();
        if !path.is_empty() && !is_folder(path) {
            let message =
                "the path of a profile begins with `/`, does not end with it, and has no `*`, `{}`, `$`";
            let hint = "write it as the application has it: `/blog`".to_string();
            mistakes.wrong_with_hint(each.span.clone(), message.to_string(), hint);
            continue;
        }
        let is_same = |other: &&Spanned<ProfileUse>| {
            other.name == *name && other.path.as_deref().unwrap_or_default() == path
        };
        if uses[..at].iter().any(|before| is_same(&before)) {
            mistakes.wrong(each.span.clone(), format!("the profile `{name}` is named twice"));
            continue;
        }
        profile.apply(path, policy);
    }
}

/// A path of fixed segments: `/blog`.
fn is_folder(path: &str) -> bool {
    let is_fixed = |segment: &str| !matches!(segment, "" | "." | "..");
    path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_fixed))
        && !path
            .contains(|sign: char| "*{}$?#%\\".contains(sign) || sign.is_whitespace() || sign.is_control())
}
