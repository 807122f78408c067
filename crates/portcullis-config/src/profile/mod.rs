//! Profiles: exclusions for known applications, which a site takes by name, and the signs by which answers
//! of an application are recognised.
//!
//! Each is a file of `profiles/`, in the format of [`file`]. Its exclusions are checked as those of
//! documents are, and join those of the site. They are for paths below the root of the site, or below the
//! path that the site names: with any text before the path, a script of another application could be asked
//! with a path of this one behind it.

mod file;
mod languages;
mod markup;
mod recognition;
mod uses;

use std::path::Path;
use std::sync::LazyLock;

pub use file::{
    Profile, ProfileChange, ProfileExclusion, ProfileField, ProfileRequest, Release, Sign, SignKind,
};
pub use recognition::{Answer, Recognised, Version, recognise};
pub(crate) use uses::{ProfileUse, apply};

use crate::checked::Policy;
use crate::exclusion;
use crate::mistakes::Mistakes;
use crate::raw;
use crate::spanned::Spanned;

macro_rules! files {
    ($($name:literal)*) => { [$(include_str!(concat!("../profiles/", $name, ".toml"))),*] };
}

/// All profiles, by name. A test reads each file.
static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let files = files! {
        "adminer" "airflow" "directus" "dokuwiki" "drupal" "elasticsearch" "elementor" "ghost" "gitea"
        "gitlab" "grafana" "home-assistant" "jenkins" "joomla" "jupyter" "keycloak" "loki" "mcp" "mediawiki"
        "metabase" "n8n" "nextcloud" "nodered" "ollama" "openai" "opensearch-dashboards" "otlp" "pgadmin"
        "phpmyadmin" "portainer" "prometheus" "registry" "roundcube" "s3" "sentry" "splunk-hec" "strapi"
        "superset" "woocommerce" "wordpress" "wordpress-plain-permalinks"
    };
    files.iter().filter_map(|text| Profile::from_toml(text).ok()).collect()
});

/// All profiles, in the order of their names.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Adds its exclusions to a policy, for the application at this path; `""` is the root of the site. The
    /// mode of the policy decides which of them it has: those of the detector, those of rules, or both.
    pub fn apply(&self, at: &str, policy: &mut Policy) {
        // They have been checked, as part of the file.
        let mut mistakes = Mistakes::new(Path::new(""));
        self.add(at, &mut mistakes, policy);
    }

    fn add(&self, at: &str, mistakes: &mut Mistakes<'_>, policy: &mut Policy) {
        let spanned = |value: String| Spanned { value, span: 0..0 };
        for each in self.exclusions(at) {
            let ProfileExclusion { class, kind, location, rules, target, path, reason, .. } = each;
            let (path, reason) = (Some(spanned(path)), Some(reason.to_owned()));
            if rules.is_empty() {
                let raw = raw::Exclude {
                    class: class.map(|class| spanned(class.name().to_owned())),
                    kind: kind.map(|kind| spanned(kind.to_owned())),
                    location: location.map(|location| spanned(location.to_owned())),
                    path,
                    reason,
                    ..raw::Exclude::default()
                };
                let mut exclusion = exclusion::semantic(mistakes, &Spanned { value: raw, span: 0..0 });
                exclusion.profile = Some(self.name.clone());
                policy.semantic.exclude.push(exclusion);
            } else {
                let target = target.map(|target| spanned(target.to_owned()));
                let rules = rules.to_vec();
                let raw = raw::ExcludeRule { rules, target, path, reason, ..raw::ExcludeRule::default() };
                let mut exclusion = exclusion::rule(mistakes, &Spanned { value: raw, span: 0..0 });
                exclusion.profile = Some(self.name.clone());
                policy.rule_exclude.push(exclusion);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_profile() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/profiles");
        let mut names = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let profile = Profile::from_toml(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            assert_eq!(path.file_stem().unwrap().to_str(), Some(profile.name.as_str()));
            names.push(profile.name);
        }
        names.sort();
        let known: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(known, names, "each file stands in the list of `profile/mod.rs`, by name");
    }

    #[test]
    fn exclusions_name_the_profile_and_its_path() {
        let mut policy = Policy::default();
        profile("wordpress").unwrap().apply("/blog", &mut policy);
        assert!(!policy.semantic.exclude.is_empty());
        for each in &policy.semantic.exclude {
            assert_eq!(each.profile.as_deref(), Some("wordpress"));
            assert!(each.terms.path.as_ref().is_some_and(|path| path.starts_with("/blog/wp-")), "{each:?}");
        }
    }
}
