//! The exclusions of a document: those from the semantic detector, those from rules, directives that are
//! written as one line in the document itself, and those of the profiles that it names.

use portcullis_config::{
    ConfigError, ExclusionIdentity, Format, Width, exclusion_id, exclusion_width, is_of_field, profile,
};
use serde_json::Value;

use crate::document::Text;
use crate::edit::Scope;

/// Directives that remove a rule, or a target of it; they are listed and can be removed.
const DIRECTIVES: [&str; 6] = [
    "SecRuleRemoveById",
    "SecRuleUpdateTargetById",
    "SecRuleRemoveByTag",
    "SecRuleRemoveByMsg",
    "SecRuleUpdateTargetByTag",
    "SecRuleUpdateTargetByMsg",
];

/// An exclusion of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its id: the same as long as it says the same at the same place.
    pub id: String,
    /// The part of the document that it is in.
    pub scope: Scope,
    /// The class of attacks; of the semantic detector only.
    pub class: Option<String>,
    /// The kind of finding; of the semantic detector only.
    pub kind: Option<String>,
    /// Place and name of the value; of the semantic detector only.
    pub location: Option<String>,
    /// The rules; empty if it is not one of rules.
    pub rules: Vec<u32>,
    /// The value that the rules look at; of rules only.
    pub target: Option<String>,
    /// The path; none for a directive.
    pub path: Option<String>,
    /// Its end; none for a directive.
    pub until: Option<String>,
    /// The reason for it.
    pub reason: Option<String>,
    /// Who added it.
    pub author: Option<String>,
    /// The directive, if it is one.
    pub directive: Option<String>,
    /// It is only tried.
    pub trial: bool,
    /// The profile that it is of; none: the document says it itself.
    pub profile: Option<String>,
    /// What no longer stops a request; of a profile only.
    pub opens: Option<String>,
}

impl Listed {
    /// The reason why it is more than the answer to a false positive; none if it names what was found and
    /// where.
    /// `decides`: the rule of this id blocks by what other rules have found.
    pub fn width(&self, decides: impl Fn(u32) -> bool) -> Option<Width> {
        exclusion_width(&self.identity(), decides)
    }

    /// True if it is of one field: the others of the same path are inspected as before.
    pub fn is_of_field(&self) -> bool {
        is_of_field(&self.identity())
    }

    fn identity(&self) -> ExclusionIdentity<'_> {
        let [class, kind, location] = [&self.class, &self.kind, &self.location].map(Option::as_deref);
        let [target, path, directive] = [&self.target, &self.path, &self.directive].map(Option::as_deref);
        match (&self.profile, directive) {
            (Some(name), _) if self.rules.is_empty() => {
                ExclusionIdentity::Profile(name, [class, kind, location, path])
            }
            (Some(name), _) => ExclusionIdentity::ProfileRule(name, &self.rules, [target, path]),
            (None, Some(line)) => ExclusionIdentity::Directive(line),
            (None, None) if self.rules.is_empty() => {
                ExclusionIdentity::Semantic([class, location, path, kind])
            }
            (None, None) => ExclusionIdentity::Rule(&self.rules, [target, path]),
        }
    }
}

/// The exclusions that a text has and the one before it did not have, or had on trial only, or until another
/// time.
pub fn added_exclusions(
    before: &Text,
    after: &Text,
    format: Format,
    name: &str,
) -> Result<Vec<Listed>, ConfigError> {
    let mut had = exclusions(before, format, name)?;
    let mut has = exclusions(after, format, name)?;
    has.retain(|each| {
        let is_it =
            |other: &Listed| (&other.id, &other.until, other.trial) == (&each.id, &each.until, each.trial);
        match had.iter().position(is_it) {
            Some(at) => {
                had.swap_remove(at);
                false
            }
            None => true,
        }
    });
    Ok(has)
}

/// The id of an exclusion of this part of the document.
pub(crate) fn id_of(scope: &Scope, identity: &ExclusionIdentity<'_>) -> String {
    exclusion_id(scope.site.as_deref(), scope.route.as_deref(), identity)
}

/// True for a line that is a directive which excludes something.
pub(crate) fn is_rule_exclusion(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    let mut known = DIRECTIVES.iter();
    // A directive that goes on in the next line cannot be taken out by its line.
    known.any(|known| known.eq_ignore_ascii_case(name)) && !line.trim_end().ends_with('\\')
}

/// The exclusions of a document, in its order.
pub fn exclusions(text: &Text, format: Format, name: &str) -> Result<Vec<Listed>, ConfigError> {
    let document = portcullis_config::json_value(text.as_str(), format, name)?;
    let mut found = Vec::new();
    for site in list(&document, "sites") {
        let mut scope = Scope { site: string(site, "name"), route: None };
        collect(site, &scope, &mut found);
        for taken in list(site, "profiles") {
            let name = taken.as_str().or_else(|| taken.get("name")?.as_str()).unwrap_or_default();
            let path = taken.get("path").and_then(Value::as_str).unwrap_or_default();
            found.extend(of_profile(name, path, &scope));
        }
        for route in list(site, "routes") {
            let keys = ["name", "path", "path_exact", "path_pattern"];
            scope.route = keys.iter().find_map(|key| string(route, key));
            collect(route, &scope, &mut found);
        }
    }
    Ok(found)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn collect(place: &Value, scope: &Scope, found: &mut Vec<Listed>) {
    let below = |key: &str| place.get(key).map_or(&[][..], |table| list(table, "exclude"));
    found.extend(below("semantic").iter().map(|each| semantic(each, scope)));
    found.extend(below("rules").iter().map(|each| rule(each, scope)));
    let directives = place.get("rules").and_then(|rules| string(rules, "directives")).unwrap_or_default();
    let mut comment = None;
    for line in directives.lines().map(str::trim) {
        if is_rule_exclusion(line) {
            found.push(Listed {
                id: id_of(scope, &ExclusionIdentity::Directive(line)),
                scope: scope.clone(),
                reason: comment.take(),
                directive: Some(line.to_owned()),
                ..Listed::default()
            });
        }
        comment = line.strip_prefix('#').map(|text| text.trim().to_owned());
    }
}

/// The exclusions of a profile at a site, for the application at `path`.
pub(crate) fn of_profile<'s>(
    name: &str,
    path: &str,
    scope: &'s Scope,
) -> impl Iterator<Item = Listed> + use<'s> {
    let (site, path) = (scope.site.as_deref(), path.to_owned());
    profile(name).into_iter().flat_map(move |profile| {
        profile.exclusions(&path).map(move |each| Listed {
            id: each.id(site, &profile.name),
            scope: scope.clone(),
            class: each.class.map(|class| class.name().to_owned()),
            kind: each.kind.map(str::to_owned),
            location: each.location.map(str::to_owned),
            rules: each.rules.to_vec(),
            target: each.target.map(str::to_owned),
            reason: Some(each.reason.to_owned()),
            profile: Some(profile.name.clone()),
            opens: Some(each.opens.to_owned()),
            path: Some(each.path),
            ..Listed::default()
        })
    })
}

/// An entry of `semantic.exclude`.
fn semantic(each: &Value, scope: &Scope) -> Listed {
    let [class, location, kind] = ["class", "location", "kind"].map(|key| string(each, key));
    let terms = terms(each, scope);
    let parts = [&class, &location, &terms.path, &kind].map(Option::as_deref);
    let id = id_of(scope, &ExclusionIdentity::Semantic(parts));
    Listed { id, class, location, kind, ..terms }
}

/// An entry of `rules.exclude`.
fn rule(each: &Value, scope: &Scope) -> Listed {
    let rules = list(each, "rules").iter();
    let rules: Vec<u32> = rules.filter_map(|id| u32::try_from(id.as_u64()?).ok()).collect();
    let (target, terms) = (string(each, "target"), terms(each, scope));
    let parts = [target.as_deref(), terms.path.as_deref()];
    let id = id_of(scope, &ExclusionIdentity::Rule(&rules, parts));
    Listed { id, rules, target, ..terms }
}

/// What exclusions of both sorts say.
fn terms(each: &Value, scope: &Scope) -> Listed {
    let [path, until, reason, author] = ["path", "until", "reason", "author"].map(|key| string(each, key));
    let trial = each.get("trial").and_then(Value::as_bool).unwrap_or(false);
    Listed { scope: scope.clone(), path, until, reason, author, trial, ..Listed::default() }
}
