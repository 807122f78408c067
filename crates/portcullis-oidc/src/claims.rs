//! What is read of the claims about a user.

use serde_json::{Map, Value};

use crate::error::OidcError;

/// Claims with a name for people, the best first.
const NAMES: [&str; 3] = ["preferred_username", "email", "sub"];

/// A user of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The provider.
    pub issuer: String,
    /// The user's name there, never given to another one: 1 to 255 bytes.
    pub subject: String,
    /// A name for people, which the user may have chosen: nothing follows from it.
    pub name: String,
    /// The user's groups at the provider.
    pub groups: Vec<String>,
}

/// The claim of this name, or, with dots, the member of a member. A name with dots may be the claim's own, as
/// that of a URL is.
pub(crate) fn find<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let mut parts = name.split('.');
    let first = claims.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// The groups that a claim names: a text, or a list of texts.
pub(crate) fn groups(value: &Value, name: &str) -> Result<Vec<String>, OidcError> {
    let groups = if let Value::String(group) = value {
        Some(vec![group.clone()])
    } else if let Value::Array(all) = value {
        all.iter().map(|group| group.as_str().map(str::to_owned)).collect()
    } else {
        None
    };
    groups.ok_or_else(|| OidcError::token(format!("`{name}` is neither a text nor a list of texts")))
}

/// The text of a claim.
pub(crate) fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> &'c str {
    claims.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A name for people, of the first set of claims that has one.
pub(crate) fn name(sets: [&Map<String, Value>; 2]) -> String {
    let all = NAMES.into_iter().flat_map(|name| sets.map(|claims| text(claims, name)));
    all.into_iter().find(|name| !name.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_may_be_deep_or_have_dots() {
        let value = json!({"a": {"b": {"c": ["deep"]}}, "a.b": "flat", "https://x.example/groups": ["url"]});
        let claims = value.as_object().unwrap();
        let found = |name: &str| find(claims, name).map(|value| groups(value, name));
        assert_eq!(found("a.b.c"), Some(Ok(vec!["deep".to_owned()])));
        assert_eq!(found("a.b"), Some(Ok(vec!["flat".to_owned()])));
        assert_eq!(found("https://x.example/groups"), Some(Ok(vec!["url".to_owned()])));
        for missing in ["", ".", "a.", "a.c", "a.b.c.d", "b"] {
            assert_eq!(found(missing), None, "{missing}");
        }
        assert!(matches!(found("a"), Some(Err(OidcError::Token(_)))));
        assert!(groups(&json!(["a", 1]), "g").is_err());
    }
}
