//! Profiles: exclusions for known applications, which a site takes by name.
//!
//! Each is a file of `profiles/`. Its exclusions are checked as those of documents are, and join those of the
//! site. They are for paths below the root of the site: with any text before the path, a script of another
//! application could be asked with a path of this one behind it.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::checked::policy::Exclusion;
use crate::exclusion;
use crate::exclusion_id::{ExclusionIdentity, exclusion_id};
use crate::hint;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

/// The exclusions for an application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name in `profiles`.
    pub name: String,
    /// The application, and the version that the exclusions were made with.
    pub application: String,
    /// The exclusions.
    pub exclude: Vec<ProfileExclusion>,
}

/// An exclusion of a profile, as its file says it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileExclusion {
    /// The class of findings; none: `kind` says it.
    pub class: Option<String>,
    /// The kind of finding; none: every kind of the class.
    pub kind: Option<String>,
    /// Place and name of the value.
    pub location: String,
    /// The path of requests.
    pub path: String,
    /// The reason why the detector cannot be right there.
    pub reason: String,
    /// What no longer stops a request there.
    pub opens: String,
}

impl ProfileExclusion {
    /// Its id at a site that takes this profile.
    pub fn id(&self, site: Option<&str>, profile: &str) -> String {
        let Self { class, kind, location, path, .. } = self;
        let parts = [class.as_deref(), kind.as_deref(), Some(location), Some(path)];
        exclusion_id(site, None, &ExclusionIdentity::Profile(profile, parts))
    }
}

/// All profiles, by name. A test reads each file.
static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let files = [
        include_str!("profiles/nodered.toml"),
        include_str!("profiles/wordpress.toml"),
        include_str!("profiles/wordpress-plain-permalinks.toml"),
    ];
    files.iter().filter_map(|text| toml::from_str(text).ok()).collect()
});

/// All profiles, in the order of their names.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// The exclusions of the profiles that a site names.
pub(crate) fn exclusions(mistakes: &mut Mistakes<'_>, names: &[Spanned<String>]) -> Vec<Exclusion> {
    let mut found = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let Some(profile) = profile(name) else {
            let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name.as_str()).collect();
            let message = format!("there is no profile `{}`", name.value);
            let hint =
                format!("{}; `portcullis profiles` tells what each opens", hint::suggest(name, &known));
            mistakes.wrong_with_hint(name.span.clone(), message, hint);
            continue;
        };
        if names[..at].iter().any(|before| before.value == name.value) {
            mistakes.wrong(name.span.clone(), format!("the profile `{}` is named twice", name.value));
            continue;
        }
        found.extend(profile.exclude.iter().map(|each| {
            let spanned = |text: &String| Spanned { value: text.clone(), span: name.span.clone() };
            let raw = raw::Exclude {
                class: each.class.as_ref().map(spanned),
                kind: each.kind.as_ref().map(spanned),
                location: Some(spanned(&each.location)),
                path: Some(spanned(&each.path)),
                reason: Some(each.reason.clone()),
                ..raw::Exclude::default()
            };
            let raw = Spanned { value: raw, span: name.span.clone() };
            let mut exclusion = exclusion::semantic(mistakes, &raw);
            exclusion.profile = Some(profile.name.as_str());
            exclusion
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_is_a_profile_of_narrow_exclusions() {
        let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/profiles")).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().path().file_stem().unwrap().display().to_string()).collect();
        names.sort();
        let known: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(known, names);
        for profile in profiles() {
            let mut mistakes = Mistakes::new(Path::new(""));
            let name = Spanned { value: profile.name.clone(), span: 0..0 };
            let found = exclusions(&mut mistakes, &[name]);
            assert_eq!(mistakes.into_found(), []);
            assert!(!found.is_empty());
            for (each, said) in found.iter().zip(&profile.exclude) {
                assert!(each.place.is_some() && each.name.is_some(), "{said:?}");
                assert!(said.class.is_some() != said.kind.is_some(), "{said:?}");
                assert!(said.path.starts_with('/') && said.path.len() > 1, "{said:?}");
                assert!(said.reason.len() > 20 && said.opens.len() > 20, "{said:?}");
            }
        }
    }
}
