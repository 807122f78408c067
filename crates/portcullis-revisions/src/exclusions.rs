//! The exclusions of a document: those of the semantic detector, and those of rules that are written as one
//! line in the document itself.

use data_encoding::HEXLOWER;
use portcullis_config::{ConfigError, Format};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::document::Text;
use crate::edit::Scope;

/// Directives that remove a rule, or a target of it, by its id.
pub(crate) const RULE_DIRECTIVES: [&str; 2] = ["SecRuleRemoveById", "SecRuleUpdateTargetById"];
/// Directives that do so by other properties; they are listed and can be removed.
const OTHER_DIRECTIVES: [&str; 4] =
    ["SecRuleRemoveByTag", "SecRuleRemoveByMsg", "SecRuleUpdateTargetByTag", "SecRuleUpdateTargetByMsg"];
/// Bytes of the digest that an id shows.
const ID_BYTES: usize = 8;

/// An exclusion of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The path; of the semantic detector only.
    pub path: Option<String>,
    /// Its end; of the semantic detector only.
    pub until: Option<String>,
    /// The reason for it.
    pub reason: Option<String>,
    /// The directive, if it is one of rules.
    pub directive: Option<String>,
}

/// The parts that tell an exclusion from others.
pub(crate) enum Identity<'a> {
    /// Class, location, path and kind.
    Semantic([Option<&'a str>; 4]),
    /// The line.
    Rule(&'a str),
}

impl Identity<'_> {
    /// The id of an exclusion of this part of the document.
    pub(crate) fn id(&self, scope: &Scope) -> String {
        let mut digest = Sha256::new();
        let mut add = |part: Option<&str>| {
            digest.update(part.map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
            digest.update(part.unwrap_or_default());
        };
        add(scope.site.as_deref());
        add(scope.route.as_deref());
        match self {
            Identity::Semantic([class, location, path, kind]) => {
                [class, location, path].into_iter().for_each(|part| add(*part));
                // Those without a kind keep the ids that they had before there were kinds.
                if kind.is_some() {
                    add(*kind);
                }
            }
            Identity::Rule(line) => add(Some(line.trim())),
        }
        HEXLOWER.encode(&digest.finalize()[..ID_BYTES])
    }
}

/// True for a line that is a directive which excludes something.
pub(crate) fn is_rule_exclusion(line: &str) -> bool {
    let name = line.split_whitespace().next().unwrap_or_default();
    let mut known = RULE_DIRECTIVES.iter().chain(&OTHER_DIRECTIVES);
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
    for each in place.get("semantic").map_or(&[][..], |semantic| list(semantic, "exclude")) {
        let [class, location, path, kind, until, reason] =
            ["class", "location", "path", "kind", "until", "reason"].map(|key| string(each, key));
        let parts = [&class, &location, &path, &kind].map(Option::as_deref);
        let id = Identity::Semantic(parts).id(scope);
        let (scope, directive) = (scope.clone(), None);
        found.push(Listed { id, scope, class, kind, location, path, until, reason, directive });
    }
    let directives = place.get("rules").and_then(|rules| string(rules, "directives")).unwrap_or_default();
    let mut comment = None;
    for line in directives.lines().map(str::trim) {
        if is_rule_exclusion(line) {
            found.push(Listed {
                id: Identity::Rule(line).id(scope),
                scope: scope.clone(),
                class: None,
                until: None,
                kind: None,
                location: None,
                path: None,
                reason: comment.take(),
                directive: Some(line.to_owned()),
            });
        }
        comment = line.strip_prefix('#').map(|text| text.trim().to_owned());
    }
}
