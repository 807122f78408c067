//! Edits change what they are about, and nothing else.

use portcullis_config::{Config, Format};
use portcullis_revisions::{
    Change, ClientList, Edit, Exclusion, RevisionError, RuleExclusion, Scope, SemanticExclusion,
    SiteSettings, diff, exclusions,
};
use proptest::prelude::*;

use crate::common::{DOCUMENT, Place};

pub fn scope(site: &str, route: &str) -> Scope {
    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Scope { site: name(site), route: name(route) }
}

fn edited(document: &str, edit: Edit) -> Result<String, String> {
    let place = Place::new();
    std::fs::write(&place.path, document).unwrap();
    let revisions = place.open(false);
    let etag = place.text().etag().to_owned();
    match revisions.propose(&Change::Edit(edit), &etag, 2) {
        Ok(proposal) => Ok(proposal.after.as_str().to_owned()),
        Err(error @ RevisionError::Unfit(_)) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

/// The lines that an edit takes out and puts in.
fn changed(edit: Edit) -> String {
    let after = edited(DOCUMENT, edit).unwrap();
    let diff = diff(DOCUMENT, &after, 0);
    diff.lines().filter(|line| !line.starts_with("@@")).fold(String::new(), |text, line| text + line + "\n")
}

fn semantic(class: &str, location: &str, path: &str) -> Exclusion {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (class, location, path) = (text(class), text(location), text(path));
    let reason = Some("a \"quote\"".to_owned());
    Exclusion::Semantic(SemanticExclusion { class, location, path, reason, ..SemanticExclusion::default() })
}

/// Exclusions of a kind are told from those of the whole class, and from those of other kinds.
#[test]
fn kinds_of_findings_are_excluded_alone() {
    let of_kind = |kind: Option<&str>| {
        Exclusion::Semantic(SemanticExclusion {
            class: Some("sqli".to_owned()),
            kind: kind.map(str::to_owned),
            location: Some("query:q".to_owned()),
            ..SemanticExclusion::default()
        })
    };
    let mut text = DOCUMENT.to_owned();
    let listed =
        |text: &str| exclusions(&portcullis_revisions::Text::new(text), Format::Toml, "x.toml").unwrap();
    let before = listed(&text).len();
    for kind in [None, Some("sqli.union"), Some("sqli.tautology")] {
        text = edited(&text, Edit::AddExclusion(scope("shop", ""), of_kind(kind))).unwrap();
    }
    let all = listed(&text);
    assert_eq!(all.len(), before + 3);
    let union = all.iter().find(|each| each.kind.as_deref() == Some("sqli.union")).unwrap();
    let left = listed(&edited(&text, Edit::RemoveExclusion(union.id.clone())).unwrap());
    let expected: Vec<_> = all.iter().filter(|each| each.id != union.id).cloned().collect();
    assert_eq!(left, expected);
}

#[test]
fn exclusions_go_where_they_count() {
    let add = |site: &str, route: &str| {
        changed(Edit::AddExclusion(scope(site, route), semantic("sqli", "query:q", "/find")))
    };
    let table = "+[[sites.semantic.exclude]]\n+class = \"sqli\"\n+location = \"query:q\"\n+path = \"/find\"\n\
                 +reason = 'a \"quote\"'\n+\n";
    assert_eq!(add("blog", ""), table);
    assert_eq!(add("shop", ""), table);
    assert_eq!(
        add("shop", "editor"),
        "-semantic = { classes = { xss = \"log\" }, exclude = [{ class = \"xss\", location = \"form:body\" }] }\n\
         +semantic = { classes = { xss = \"log\" }, exclude = [{ class = \"xss\", location = \"form:body\" }, \
         { class = \"sqli\", location = \"query:q\", path = \"/find\", reason = 'a \"quote\"' }] }\n"
    );
    // It would take the exclusions of the site away.
    let error = edited(DOCUMENT, Edit::AddExclusion(scope("shop", "/api/"), semantic("sqli", "", "")));
    assert!(error.unwrap_err().contains("has no `semantic` of its own"));
    for (site, route) in [("", ""), ("none", ""), ("shop", "none")] {
        assert!(edited(DOCUMENT, Edit::AddExclusion(scope(site, route), semantic("sqli", "", ""))).is_err());
    }
}

#[test]
fn sites_in_one_line_stay_there() {
    let document = "listeners = [{ address = \"127.0.0.1:8080\" }]\n\
        sites = [{ name = \"shop\", hosts = [\"*\"], upstream = \"app\" }]\n\
        upstreams = { app = { endpoints = [\"http://127.0.0.1:9000\"] } }\n";
    let after =
        edited(document, Edit::AddExclusion(scope("shop", ""), semantic("sqli", "query:q", ""))).unwrap();
    assert!(after.contains("semantic = { exclude = [{ class = \"sqli\""), "{after}");
    let config = Config::parse(&after, Format::Toml, "x.toml").unwrap();
    assert_eq!(config.policies[0].semantic.exclude.len(), 1);
}

#[test]
fn rule_exclusions_go_to_the_rules_of_their_site() {
    let rule = |target: &str, path: Option<&str>| {
        let exclusion = RuleExclusion {
            rule_id: 942100,
            target: Some(target.to_owned()),
            path: path.map(str::to_owned),
            reason: Some("two\nlines".to_owned()),
            author: Some("alice".to_owned()),
            ..RuleExclusion::default()
        };
        Edit::AddExclusion(scope("blog", ""), Exclusion::Rule(exclusion))
    };
    let after = edited(DOCUMENT, rule("ARGS:q", Some("/find"))).unwrap();
    let config = Config::parse(&after, Format::Toml, "x.toml").unwrap();
    let policy = config.policies.iter().find(|policy| !policy.rule_exclude.is_empty()).unwrap();
    let [one] = &policy.rule_exclude[..] else { panic!("{policy:?}") };
    assert_eq!((&one.rules[..], one.terms.path.as_deref()), (&[942100][..], Some("/find")));
    assert_eq!(
        (one.terms.reason.as_deref(), one.terms.author.as_deref()),
        (Some("two\nlines"), Some("alice"))
    );
    assert!(after.contains("   # CRS\n"), "{after}");
    // The same once more is refused; elsewhere it is another one, whose id the settings that serve have, too.
    assert!(edited(&after, rule("ARGS:q", Some("/find"))).unwrap_err().contains("already"));
    let after = edited(&after, rule("ARGS:q", None)).unwrap();
    let listed = exclusions(&portcullis_revisions::Text::new(&*after), Format::Toml, "x.toml").unwrap();
    let ids: Vec<_> = listed.iter().filter(|each| !each.rules.is_empty()).map(|each| &each.id).collect();
    let config = Config::parse(&after, Format::Toml, "x.toml").unwrap();
    let policy = config.policies.iter().find(|policy| !policy.rule_exclude.is_empty()).unwrap();
    assert_eq!(policy.exclusion_ids("blog", None).1.iter().collect::<Vec<_>>(), ids);
    let left = edited(&after, Edit::RemoveExclusion(ids[0].clone())).unwrap();
    let left = exclusions(&portcullis_revisions::Text::new(&*left), Format::Toml, "x.toml").unwrap();
    assert_eq!(left.iter().filter(|each| !each.rules.is_empty()).count(), 1);
    // Whatever stands in a target, it is a text of this entry.
    for target in ["ARGS:a\" \"id:1", "ARGS:a\nSecRuleEngine Off", "ARGS:a]\n[sites]"] {
        let after = edited(DOCUMENT, rule(target, None)).unwrap();
        let config = Config::parse(&after, Format::Toml, "x.toml").unwrap();
        let excluded = config.policies.iter().flat_map(|policy| &policy.rule_exclude);
        let targets: Vec<_> = excluded.map(|each| each.target_text.as_deref()).collect();
        assert_eq!(targets, [Some(target)]);
    }
    let no_rules = Exclusion::Rule(RuleExclusion { rule_id: 1, ..RuleExclusion::default() });
    assert!(
        edited(DOCUMENT, Edit::AddExclusion(scope("shop", ""), no_rules)).unwrap_err().contains("no `rules`")
    );
}

/// The end of a trial takes out what says it, and nothing else.
#[test]
fn trials_end_in_place() {
    let on_trial =
        |at: Scope, exclusion: Exclusion| edited(DOCUMENT, Edit::AddExclusion(at, exclusion)).unwrap();
    let of_detector = SemanticExclusion {
        class: Some("sqli".to_owned()),
        reason: Some("why".to_owned()),
        trial: true,
        ..SemanticExclusion::default()
    };
    let of_rule = RuleExclusion {
        rule_id: 7,
        target: Some("ARGS:q".to_owned()),
        trial: true,
        ..RuleExclusion::default()
    };
    for (at, exclusion) in [
        (scope("shop", ""), Exclusion::Semantic(of_detector.clone())),
        (scope("shop", "editor"), Exclusion::Semantic(of_detector)),
        (scope("blog", ""), Exclusion::Rule(of_rule)),
    ] {
        let before = on_trial(at.clone(), exclusion.clone());
        let listed = exclusions(&portcullis_revisions::Text::new(&*before), Format::Toml, "x.toml").unwrap();
        let id = listed.iter().find(|each| each.trial).unwrap().id.clone();
        let after = edited(&before, Edit::EnforceExclusion(id.clone())).unwrap();
        let counting = match exclusion {
            Exclusion::Semantic(term) => Exclusion::Semantic(SemanticExclusion { trial: false, ..term }),
            Exclusion::Rule(term) => Exclusion::Rule(RuleExclusion { trial: false, ..term }),
        };
        assert_eq!(after, on_trial(at, counting));
        let again = edited(&after, Edit::EnforceExclusion(id)).unwrap_err();
        assert!(again.contains("on trial"), "{again}");
    }
}

/// An exclusion that has ended may be there a second time with another end. The one on trial is enforced,
/// wherever it stands, and the one that ends first is removed first.
#[test]
fn of_exclusions_that_differ_in_their_end_the_right_one_is_meant() {
    let listed = |text: &str| {
        let listed = exclusions(&portcullis_revisions::Text::new(text), Format::Toml, "x.toml").unwrap();
        let ours = listed.into_iter().filter(|each| each.class.as_deref() == Some("sqli"));
        ours.map(|each| (each.id, each.until, each.trial)).collect::<Vec<_>>()
    };
    for (at, end) in [("", "2031-01-31"), ("", "2020-01-31"), ("editor", "2031-01-31T18:00:00+02:00")] {
        let add = |until: Option<&str>, trial: bool| {
            let until = until.map(str::to_owned);
            let class = Some("sqli".to_owned());
            let exclusion = SemanticExclusion { class, until, trial, ..SemanticExclusion::default() };
            Edit::AddExclusion(scope("shop", at), Exclusion::Semantic(exclusion))
        };
        let two = edited(DOCUMENT, Edit::All(vec![add(None, false), add(Some(end), true)])).unwrap();
        let id = listed(&two)[0].0.clone();
        let enforced = edited(&two, Edit::EnforceExclusion(id.clone())).unwrap();
        let [endless, ending] = [None, Some(end.to_owned())].map(|until| (id.clone(), until, false));
        assert_eq!(listed(&enforced), [endless.clone(), ending]);
        assert!(edited(&enforced, Edit::EnforceExclusion(id.clone())).unwrap_err().contains("on trial"));
        let one = edited(&enforced, Edit::RemoveExclusion(id.clone())).unwrap();
        assert_eq!(listed(&one), [endless]);
        let none = edited(&one, Edit::RemoveExclusion(id.clone())).unwrap();
        assert_eq!(listed(&none), []);
        // A day is over after every time of it.
        let times = [Some("2031-01-31"), Some("2031-01-31T18:00:00Z")].map(|until| add(until, false));
        let left = edited(DOCUMENT, Edit::All(times.into())).unwrap();
        let left = edited(&left, Edit::RemoveExclusion(id.clone())).unwrap();
        assert_eq!(listed(&left), [(id, Some("2031-01-31".to_owned()), false)]);
    }
}

/// Edits that are made together leave what they leave one after the other; one that does not fit undoes all.
#[test]
fn edits_are_made_together() {
    let add = |location: &str| Edit::AddExclusion(scope("shop", ""), semantic("sqli", location, ""));
    let one = edited(DOCUMENT, add("query:a")).unwrap();
    let two = edited(&one, add("query:b")).unwrap();
    assert_eq!(edited(DOCUMENT, Edit::All(vec![add("query:a"), add("query:b")])).unwrap(), two);
    let wrong = Edit::All(vec![add("query:a"), add("query:a")]);
    assert!(edited(DOCUMENT, wrong).unwrap_err().contains("already"));
    let wrong = Edit::All(vec![add("query:a"), Edit::RemoveExclusion("none".to_owned())]);
    assert!(edited(DOCUMENT, wrong).unwrap_err().contains("no exclusion `none`"));
    assert_eq!(edited(DOCUMENT, Edit::All(Vec::new())).unwrap(), DOCUMENT);
}

#[test]
fn settings_are_set_in_place() {
    let settings = |site: &str, route: &str, settings| changed(Edit::Settings(scope(site, route), settings));
    let to = |value: &str| Some(Some(value.to_owned()));
    let blocking = SiteSettings { engine: to("blocking"), ..SiteSettings::default() };
    assert_eq!(
        settings("shop", "", blocking),
        "-engine = \"detection_only\"   # until Friday\n+engine = \"blocking\"   # until Friday\n"
    );
    let default = SiteSettings { engine: Some(None), ..SiteSettings::default() };
    assert_eq!(settings("shop", "", default), "-engine = \"detection_only\"   # until Friday\n");
    let both = SiteSettings { mode: to("semantic"), level: to("strict"), ..SiteSettings::default() };
    assert_eq!(
        settings("shop", "/api/", both),
        "-mode = \"off\"\n+mode = \"semantic\"\n+level = \"strict\"\n"
    );
    let paranoia = SiteSettings { paranoia: Some(Some(3)), ..SiteSettings::default() };
    assert!(settings("blog", "", paranoia.clone()).contains("paranoia = 3, directives"));
    assert!(edited(DOCUMENT, Edit::Settings(scope("shop", ""), paranoia)).is_err());
}

#[test]
fn clients_come_and_go() {
    let list = |site: &str, list, client: &str| Edit::AddClient(scope(site, ""), list, client.to_owned());
    assert_eq!(changed(list("", ClientList::Deny, "192.0.2.1")), "+    \"192.0.2.1\",\n",);
    assert_eq!(
        changed(list("", ClientList::Allow, "192.0.2.1")),
        "+[access]\n+allow = { networks = [\"192.0.2.1\"] }\n+\n"
    );
    assert_eq!(
        changed(Edit::RemoveClient(scope("", ""), ClientList::Deny, "203.0.113.7".to_owned())),
        "-    \"203.0.113.7\",\n",
    );
    assert_eq!(
        changed(Edit::RemoveClient(scope("", ""), ClientList::Deny, "198.51.100.0/24".to_owned())),
        "-    \"198.51.100.0/24\",   # scanners\n",
    );
    // Lists of its own would take the lists of the document away from the site.
    assert_eq!(changed(list("shop", ClientList::Deny, "192.0.2.1")), "+    \"192.0.2.1\",\n");
    let at_route =
        |client: &str| Edit::AddClient(scope("shop", "/api/"), ClientList::Deny, client.to_owned());
    assert_eq!(changed(at_route("192.0.2.1")), "+    \"192.0.2.1\",\n");
    assert_eq!(
        changed(Edit::RemoveClient(scope("shop", ""), ClientList::Deny, "203.0.113.7".to_owned())),
        "-    \"203.0.113.7\",\n",
    );
    // A document without any lists, as `portcullis init` writes it.
    let without = "[[listeners]]\naddress = \"127.0.0.1:8080\"\n\n[[sites]]\nname = \"site\"\nhosts = [\"*\"]\n\
        upstream = \"app\"\n\n[upstreams.app]\nendpoints = [\"http://127.0.0.1:3000\"]\n";
    let after = edited(without, list("site", ClientList::Deny, "192.0.2.1")).unwrap();
    assert!(after.contains("[access]\ndeny = { networks = [\"192.0.2.1\"] }"), "{after}");
    // Lists of its own are those that count.
    let own = without.replace(
        "upstream = \"app\"\n",
        "upstream = \"app\"\naccess = { deny = { networks = [\"10.0.0.1\"] } }\n",
    );
    let after = edited(&own, list("site", ClientList::Deny, "192.0.2.1")).unwrap();
    assert!(after.contains("access = { deny = { networks = [\"10.0.0.1\", \"192.0.2.1\"] } }"), "{after}");
    assert!(edited(without, list("shop", ClientList::Deny, "192.0.2.1")).unwrap_err().contains("no site"));
    assert!(edited(DOCUMENT, list("", ClientList::Deny, "203.0.113.7")).unwrap_err().contains("already"));
    assert!(
        edited(DOCUMENT, Edit::RemoveClient(scope("", ""), ClientList::Deny, "1.2.3.4".to_owned())).is_err()
    );
}

#[test]
fn what_is_no_setting_is_refused_with_its_place() {
    let place = Place::new();
    let revisions = place.open(false);
    let etag = place.text().etag().to_owned();
    let settings = SiteSettings { mode: Some(Some("loud".to_owned())), ..SiteSettings::default() };
    let edit = Change::Edit(Edit::Settings(scope("shop", ""), settings));
    match revisions.propose(&edit, &etag, 2) {
        Err(RevisionError::Invalid(error)) => assert_eq!(error.mistakes()[0].place.unwrap().1, 8, "{error}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn documents_in_yaml_are_changed_as_a_whole() {
    let place = Place::new();
    let path = place.folder.path().join("portcullis.yaml");
    std::fs::write(&path, "sites: [{name: shop}]\n").unwrap();
    let document = portcullis_revisions::Document::new(&path).unwrap();
    let live = Box::new(place.program.clone());
    let revisions =
        portcullis_revisions::Revisions::open(place.folder.path(), document, live, false).unwrap();
    let etag = revisions.current(1).unwrap().text.etag().to_owned();
    let edit = Change::Edit(Edit::RemoveExclusion("x".to_owned()));
    assert!(revisions.propose(&edit, &etag, 2).unwrap_err().to_string().contains("TOML only"));
}

proptest! {
    /// Whatever a client is called, an exclusion says this and nothing else, and goes without a trace.
    #[test]
    fn texts_of_clients_stay_texts(name in "\\PC{0,12}|.{0,12}", path in "[^{}\n]{0,12}", reason in ".{0,12}", site in 0..2_usize) {
        let site = ["shop", "blog"][site];
        let exclusion = SemanticExclusion {
            class: Some("xss".to_owned()), kind: None, location: Some(format!("form:{name}")), path: Some(format!("/{path}")),
            until: None, reason: Some(reason.clone()),
            ..SemanticExclusion::default()
        };
        let listed = |text: &str| {
            let text = portcullis_revisions::Text::new(text);
            exclusions(&text, Format::Toml, "x.toml").unwrap()
        };
        let before = listed(DOCUMENT);
        let edit = Edit::AddExclusion(scope(site, ""), Exclusion::Semantic(exclusion.clone()));
        let after = edited(DOCUMENT, edit).unwrap();
        let added: Vec<_> = listed(&after).into_iter().filter(|each| !before.contains(each)).collect();
        prop_assert_eq!(added.len(), 1);
        let added = &added[0];
        prop_assert_eq!((&added.location, &added.path, &added.reason), (&exclusion.location, &exclusion.path, &exclusion.reason));
        prop_assert_eq!(listed(&after).len(), before.len() + 1);
        let gone = edited(&after, Edit::RemoveExclusion(added.id.clone())).unwrap();
        prop_assert_eq!(listed(&gone), before);
        for line in DOCUMENT.lines() {
            prop_assert!(gone.lines().any(|there| there == line), "{}\n{}", line, gone);
        }
    }
}
