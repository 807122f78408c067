//! Rule sets: what is added, how they are merged, what is shared, and what a mistake says.

use std::fs;

use modsecurity::{Cache, RuleSet, Transaction};

/// The ids of the lines that a request for `target` makes under `rules`, in order; the last is that of the
/// intervention, if there is one.
pub fn ids(rules: &RuleSet, cache: &Cache, target: &str) -> Vec<u32> {
    let mut transaction = Transaction::new(rules, None, cache).unwrap();
    transaction.connection(("192.0.2.7", 4711), ("127.0.0.1", 80));
    transaction.uri(target.as_bytes(), b"GET", b"1.1");
    transaction.add_request_header(b"Host", b"a.example");
    transaction.request_headers();
    transaction.request_body();
    let mut lines = transaction.take_lines();
    lines.extend(transaction.take_intervention().map(|asked| asked.log));
    let id = |line: &String| line.split("[id \"").nth(1)?.split('"').next()?.parse().ok();
    lines.iter().filter_map(id).collect()
}

fn set(text: &str, cache: &Cache) -> RuleSet {
    let mut rules = RuleSet::default();
    rules.add_text(text.as_bytes(), cache).unwrap();
    rules
}

#[test]
fn rules_of_an_inner_scope_run_first_and_its_settings_hold() {
    let cache = Cache::default();
    let http = set("SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:1,phase:1,deny,log\"\n", &cache);
    let mut server = set("SecRule ARGS \"@contains evil\" \"id:2,phase:1,pass,log\"\n", &cache);
    server.merge(&http, &cache).unwrap();
    assert_eq!(ids(&server, &cache, "/?q=evil"), [2, 1]);
    let mut location = set("SecRuleEngine DetectionOnly\nSecAction \"id:3,phase:1,pass,log\"\n", &cache);
    assert_eq!(location.merge(&server, &cache).unwrap(), 2, "rules that came");
    assert_eq!(ids(&location, &cache, "/?q=evil"), [3, 2, 1]);
    let mut transaction = Transaction::new(&location, None, &cache).unwrap();
    transaction.uri(b"/?q=evil", b"GET", b"1.1");
    transaction.request_headers();
    assert_eq!(transaction.take_intervention(), None, "the location only detects");
    assert_eq!(ids(&http, &cache, "/?q=evil"), [1], "what is merged stays as it is");
}

#[test]
fn removals_of_an_inner_scope_hold_for_the_rules_around_it() {
    let cache = Cache::default();
    let http = set("SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:1,phase:1,deny,log\"\n", &cache);
    let mut location = set("SecRuleRemoveById 1\n", &cache);
    location.merge(&http, &cache).unwrap();
    assert_eq!(ids(&location, &cache, "/?q=evil"), [0; 0]);
    let mut location = set("SecRuleUpdateTargetById 1 \"!ARGS:q\"\n", &cache);
    location.merge(&http, &cache).unwrap();
    assert_eq!(ids(&location, &cache, "/?q=evil"), [0; 0]);
    assert_eq!(ids(&location, &cache, "/?r=evil"), [1]);
    // By an action of an inner rule, which runs first.
    let mut location = set("SecAction \"id:9,phase:1,pass,nolog,ctl:ruleRemoveById=1\"\n", &cache);
    location.merge(&http, &cache).unwrap();
    assert_eq!(ids(&location, &cache, "/?q=evil"), [0; 0]);
    // A removal counts wherever it stands, as in libmodsecurity.
    let early = set("SecRuleEngine On\nSecRuleRemoveById 5\nSecAction \"id:5,phase:1,deny\"\n", &cache);
    assert_eq!(ids(&early, &cache, "/"), [0; 0]);
}

#[test]
fn the_same_content_is_loaded_once() {
    let cache = Cache::default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("main.conf");
    let write = |id: u32| {
        fs::write(&file, format!("SecRuleEngine On\nSecAction \"id:{id},phase:1,deny\"\n")).unwrap()
    };
    write(1);
    let from_file = || {
        let mut rules = RuleSet::default();
        rules.add_file(file.clone(), &cache).unwrap();
        rules
    };
    let http = from_file();
    let servers: Vec<RuleSet> = (0..100)
        .map(|_| {
            let mut server = RuleSet::default();
            server.merge(&http, &cache).unwrap();
            server
        })
        .collect();
    let again: Vec<RuleSet> = (0..100).map(|_| from_file()).collect();
    assert_eq!(cache.loaded(), 1);
    write(2);
    let changed = from_file();
    assert_eq!(cache.loaded(), 2, "a file that changed is read anew");
    assert_eq!((ids(&servers[99], &cache, "/"), ids(&changed, &cache, "/")), (vec![1], vec![2]));
    drop((http, servers, again));
    assert_eq!(cache.loaded(), 1, "rules go with their last rule set");
}

#[test]
fn a_mistake_says_where_it_is_and_leaves_the_rules_as_they_were() {
    let cache = Cache::default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.conf");
    fs::write(&file, "SecRuleEngine On\nSecRule ARGZ \"@rx a\" \"id:2\"\n").unwrap();
    let mut rules = set("SecRuleEngine On\nSecAction \"id:1,phase:1,deny\"\n", &cache);
    let error = rules.add_file(file.clone(), &cache).unwrap_err();
    let place = format!("Rules error. File: {}. Line: 2. Column: 9. unknown variable ARGZ", file.display());
    assert!(error.starts_with(&place) && error.contains("Hint: did you mean ARGS?"), "{error}");
    assert_eq!(ids(&rules, &cache, "/"), [1]);
    let error = rules.add_text(b"SecAction \"id:1,phase:1,pass\"", &cache).unwrap_err();
    assert!(error.contains("Line: 1.") && error.contains('1'), "{error}");
    let error = rules.add_file("/nonexistent/x.conf".into(), &cache).unwrap_err();
    assert!(error.contains("/nonexistent/x.conf"), "{error}");
    let error = rules.add_text(b"SecAuditLog /nonexistent/a.log\nSecAuditEngine On", &cache).unwrap_err();
    assert!(error.contains("/nonexistent/a.log"), "{error}");
    let error = rules.add_text(b"SecAction \"id:8,phase:1,proxy:http://127.0.0.1:1/\"", &cache).unwrap_err();
    assert!(error.contains("rule 8") && error.contains("Hint: use deny"), "{error}");
    let mut inner = set("SecAction \"id:1,phase:1,pass\"\n", &cache);
    let error = inner.merge(&rules, &cache).unwrap_err();
    assert!(error.contains("Line: 2.") && error.contains("first used here: <inline rules>:1"), "{error}");
}

#[test]
fn remote_rules_need_a_checksum() {
    let cache = Cache::default();
    let mut rules = RuleSet::default();
    let error = rules.add_remote("key", "https://rules.example/a", &cache).unwrap_err();
    assert!(error.contains("https://rules.example/a#sha256:CHECKSUM"), "{error}");
    let error = rules.add_remote("key", "https://a/\"x#sha256:0", &cache).unwrap_err();
    assert!(error.contains("must not hold"), "{error}");
}

#[test]
fn what_is_merged_between_transactions_is_kept_until_rules_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.conf");
    std::fs::write(&file, "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog\"\n").unwrap();
    let cache = Cache::default();
    let (mut outer, mut inner) = (RuleSet::default(), RuleSet::default());
    outer.add_file(file.clone(), &cache).unwrap();
    inner.add_text(b"SecAction \"id:2,phase:1,pass,nolog\"\n", &cache).unwrap();
    let merge = || {
        let mut merged = RuleSet::default();
        merged.merge(&inner, &cache).unwrap();
        merged.merge(&outer, &cache).unwrap()
    };
    assert_eq!((merge(), cache.loaded()), (1, 2), "nobody has it any more");
    drop(Transaction::new(&outer, None, &cache).unwrap());
    merge();
    // As in a process without the rights to read it.
    std::fs::remove_file(&file).unwrap();
    assert_eq!((merge(), cache.loaded()), (1, 3));
    let many: Vec<RuleSet> = (10..60)
        .map(|id| {
            let mut one = RuleSet::default();
            let file = folder.path().join(format!("{id}.conf"));
            std::fs::write(&file, format!("SecAction \"id:{id},phase:1,pass,nolog\"\n")).unwrap();
            one.add_file(file, &cache).unwrap();
            one
        })
        .collect();
    assert_eq!(cache.loaded(), 2 + many.len(), "reading forgets what was kept");
    drop(Transaction::new(&outer, None, &cache).unwrap());
    for one in &many {
        let mut merged = RuleSet::default();
        merged.merge(&inner, &cache).unwrap();
        merged.merge(one, &cache).unwrap();
    }
    assert_eq!(cache.loaded(), 2 + many.len() + 16, "the latest are kept");
}
