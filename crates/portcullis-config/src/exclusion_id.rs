//! The ids of exclusions, by which counts, events and the admin API know them.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::checked::{Exclusion, Policy, RuleExclusion};

/// Bytes of the digest that an id shows.
const ID_BYTES: usize = 8;

/// The parts that tell an exclusion from others, as they are written.
#[derive(Clone, Copy, Debug)]
pub enum ExclusionIdentity<'a> {
    /// Class, location, path and kind, of one from the semantic detector.
    Semantic([Option<&'a str>; 4]),
    /// Rules, target and path.
    Rule(&'a [u32], [Option<&'a str>; 2]),
    /// The line of a directive.
    Directive(&'a str),
    /// The name of a profile; class, kind, location and path of one from it.
    Profile(&'a str, [Option<&'a str>; 4]),
    /// The name of a profile; rules, target and path of one from it.
    ProfileRule(&'a str, &'a [u32], [Option<&'a str>; 2]),
}

/// The id of an exclusion of this site, or of a route of it with settings of its own: the same as long as it
/// says the same at the same place.
pub fn exclusion_id(site: Option<&str>, route: Option<&str>, identity: &ExclusionIdentity<'_>) -> String {
    let mut digest = Sha256::new();
    let mut add = |part: Option<&str>| {
        digest.update(part.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
        digest.update(part.unwrap_or_default());
    };
    add(site);
    add(route);
    match identity {
        ExclusionIdentity::Semantic([class, location, path, kind]) => {
            [class, location, path].into_iter().for_each(|part| add(*part));
            // Those without a kind keep the ids that they had before there were kinds.
            if kind.is_some() {
                add(*kind);
            }
        }
        ExclusionIdentity::Rule(rules, parts) => {
            add(Some("rules"));
            rules.iter().for_each(|rule| add(Some(&rule.to_string())));
            parts.iter().for_each(|part| add(*part));
        }
        ExclusionIdentity::Directive(line) => add(Some(line.trim())),
        ExclusionIdentity::Profile(name, parts) => {
            add(Some("profile"));
            add(Some(name));
            parts.iter().for_each(|part| add(*part));
        }
        ExclusionIdentity::ProfileRule(name, rules, parts) => {
            add(Some("profile rules"));
            add(Some(name));
            rules.iter().for_each(|rule| add(Some(&rule.to_string())));
            parts.iter().for_each(|part| add(*part));
        }
    }
    HEXLOWER.encode(&digest.finalize()[..ID_BYTES])
}

impl Policy {
    /// The ids of its exclusions from the semantic detector and from rules, in their order, at a site;
    /// `semantic_of` is the route whose `semantic` it has, if that is not the site's.
    pub fn exclusion_ids(&self, site: &str, semantic_of: Option<&str>) -> (Vec<String>, Vec<String>) {
        let semantic = |each: &Exclusion| {
            let Exclusion { class, location, kind, profile, terms, .. } = each;
            let class = class.map(|class| class.name());
            if let Some(profile) = profile {
                // Whatever route it counts on.
                let parts = [class, kind.as_deref(), location.as_deref(), terms.path.as_deref()];
                return exclusion_id(Some(site), None, &ExclusionIdentity::Profile(profile, parts));
            }
            let parts = [class, location.as_deref(), terms.path.as_deref(), kind.as_deref()];
            exclusion_id(Some(site), semantic_of, &ExclusionIdentity::Semantic(parts))
        };
        let rule = |each: &RuleExclusion| {
            let parts = [each.target_text.as_deref(), each.terms.path.as_deref()];
            let identity = match &each.profile {
                Some(profile) => ExclusionIdentity::ProfileRule(profile, &each.rules, parts),
                None => ExclusionIdentity::Rule(&each.rules, parts),
            };
            exclusion_id(Some(site), None, &identity)
        };
        let semantic = self.semantic.exclude.iter().map(semantic).collect();
        (semantic, self.rule_exclude.iter().map(rule).collect())
    }
}
