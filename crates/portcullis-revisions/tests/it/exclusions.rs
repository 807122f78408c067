//! The list of exclusions.

use portcullis_config::Format;
use portcullis_revisions::{Change, Edit, Text, exclusions};

use crate::common::{DOCUMENT, Place};
use crate::edits::scope;

#[test]
fn all_exclusions_are_listed_with_their_places() {
    let listed = exclusions(&Text::new(DOCUMENT), Format::Toml, "x.toml").unwrap();
    let shown: Vec<_> = listed
        .iter()
        .map(|each| (each.scope.clone(), each.location.as_deref(), each.directive.as_deref()))
        .collect();
    let expected = [
        (scope("shop", "editor"), Some("form:body"), None),
        (scope("blog", ""), Some("form:text"), None),
        (scope("blog", ""), None, Some("SecRuleRemoveById 920350")),
    ];
    assert_eq!(shown, expected);
    let mut ids: Vec<_> = listed.iter().map(|each| each.id.as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[test]
fn yaml_is_listed_too() {
    let yaml = "sites:\n- name: shop\n  semantic: {exclude: [{class: xss, reason: why}]}\n  rules:\n    directives: |\n      # known\n      SecRuleUpdateTargetByTag a \"!ARGS\"\n      SecRuleRemoveById 1 \\\n        2\n";
    let listed = exclusions(&Text::new(yaml), Format::Yaml, "x.yaml").unwrap();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(listed[0].reason.as_deref(), Some("why"));
    assert_eq!(listed[1].reason.as_deref(), Some("known"));
}

#[test]
fn each_can_be_removed_by_its_id() {
    let listed = exclusions(&Text::new(DOCUMENT), Format::Toml, "x.toml").unwrap();
    for each in &listed {
        let place = Place::new();
        let revisions = place.open(false);
        let edit = Change::Edit(Edit::RemoveExclusion(each.id.clone()));
        let proposal = revisions.propose(&edit, place.text().etag(), 2).unwrap();
        let mut left = exclusions(&proposal.after, Format::Toml, "x.toml").unwrap();
        left.push(each.clone());
        assert!(left.len() == listed.len() && listed.iter().all(|each| left.contains(each)));
    }
    let place = Place::new();
    let edit = Change::Edit(Edit::RemoveExclusion("0123456789abcdef".to_owned()));
    let error = place.open(false).propose(&edit, place.text().etag(), 2).unwrap_err();
    assert!(error.to_string().contains("no exclusion"), "{error}");
}
