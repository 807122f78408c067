//! Each point of ModSecurity 2's meaning, by hand. The comment of a test names the function of its source
//! (`apache2/`).

use portcullis_reference::{Outcome, Reference, Request};
use portcullis_seclang::{MemoryFiles, Root, parse};
use portcullis_types::{Phase, RuleId};

fn files() -> MemoryFiles {
    let file = |name: &str, text: &str| (name.into(), text.as_bytes().to_vec());
    MemoryFiles(
        [file("words.data", "# words\nSleep\nbenchmark\n"), file("ips.data", "10.0.0.0/8\n192.0.2.1\n")]
            .into(),
    )
}

#[track_caller]
fn load(rules: &str) -> Reference {
    let text = format!("SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n{rules}");
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: text.into_bytes() }], &files());
    let shown: Vec<String> = parsed.diagnostics.iter().map(|d| d.render(&parsed.sources)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    match Reference::new(&parsed.document, &parsed.sources, &files()) {
        Ok(reference) => reference,
        Err(problems) => panic!("{problems:?}"),
    }
}

#[track_caller]
fn run(rules: &str, request: Request) -> Outcome {
    load(rules).run(&request)
}

/// Rules that matched as a whole, as `ID VARIABLE=VALUE`.
fn complete(outcome: &Outcome) -> Vec<String> {
    let whole = outcome.matches.iter().filter(|m| m.complete);
    whole.map(|m| format!("{} {}={}", m.rule, m.variable, m.value)).collect()
}

#[track_caller]
fn check(rules: &str, request: Request, expected: &[&str]) -> Outcome {
    let outcome = run(rules, request);
    assert_eq!(complete(&outcome), expected);
    outcome
}

fn tx<'o>(outcome: &'o Outcome, key: &str) -> Option<&'o str> {
    outcome.tx.get(key.as_bytes()).map(|value| std::str::from_utf8(value).unwrap())
}

// msre_rule_process_normal (re.c): targets in written order, each value in the order it came; setvar at each
// match.
#[test]
fn each_matching_value_runs_the_actions() {
    let outcome = check(
        r#"SecRule ARGS_NAMES|ARGS "@contains a" "id:1,phase:1,pass,setvar:tx.n=+2,setvar:tx.last=%{MATCHED_VAR_NAME}""#,
        Request::get("/?a=xa&b=y&c=a"),
        &["1 ARGS_NAMES:a=a", "1 ARGS:a=xa", "1 ARGS:c=a"],
    );
    assert_eq!(tx(&outcome, "n"), Some("6"));
    assert_eq!(tx(&outcome, "last"), Some("ARGS:c"));
}

// msre_rule_process_normal: an exclusion removes what targets before it added, by the name of the variable.
#[test]
fn exclusions_take_away_what_stands_before_them() {
    let request = || Request::get("/?a=1&A=2&b=3&xb=4");
    check(r#"SecRule ARGS|!ARGS:a "@rx ." "id:1,phase:1""#, request(), &["1 ARGS:b=3", "1 ARGS:xb=4"]);
    check(r#"SecRule !ARGS:a|ARGS:a "@rx ." "id:1,phase:1""#, request(), &["1 ARGS:a=1", "1 ARGS:A=2"]);
    check(r#"SecRule ARGS:a|!ARGS|ARGS:b|!ARGS:a "@rx ." "id:1,phase:1""#, request(), &["1 ARGS:b=3"]);
    check(r#"SecRule ARGS|!ARGS:/b$/ "@rx ." "id:1,phase:1""#, request(), &["1 ARGS:a=1", "1 ARGS:A=2"]);
    check(
        r#"SecRule ARGS:b|ARGS:b|!ARGS_GET:b "@rx ." "id:1,phase:1""#,
        request(),
        &["1 ARGS:b=3", "1 ARGS:b=3"],
    );
}

// msre_rule_process_normal: & counts values. MATCHED_VAR_NAME then is the bare variable.
#[test]
fn counts() {
    let outcome = check(
        r#"SecRule &ARGS:a|&ARGS|&REQUEST_HEADERS:X "@ge 0" "id:1,phase:1,pass,setvar:tx.name_%{MATCHED_VAR}=%{MATCHED_VAR_NAME}""#,
        Request::get("/?a=1&a=2&b=3"),
        &["1 &ARGS:a=2", "1 &ARGS=3", "1 &REQUEST_HEADERS:X=0"],
    );
    assert_eq!(tx(&outcome, "name_2"), Some("ARGS"));
}

// execute_operator (re.c): a negated operator matches each value that does not fit; no value, no match.
#[test]
fn negation_is_by_value() {
    check(r#"SecRule ARGS "!@streq 1" "id:1,phase:1""#, Request::get("/?a=1&b=2"), &["1 ARGS:b=2"]);
    check(r#"SecRule REQUEST_HEADERS:X "!@streq 1" "id:1,phase:1""#, Request::get("/"), &[]);
}

// msre_rule_process_normal, msre_actionset_merge: t:none forgets the transformations before it, defaults
// included.
#[test]
fn transformations() {
    let request = || Request::get("/?a=%2541B");
    let default = r#"SecDefaultAction "phase:2,log,pass,t:lowercase""#;
    check(
        &format!("{default}\nSecRule ARGS \"@rx .\" \"id:1,phase:1,t:urlDecode\""),
        request(),
        &["1 ARGS:a=Ab"],
    );
    check(
        &format!("{default}\nSecRule ARGS \"@rx .\" \"id:1,phase:1,t:none,t:urlDecode\""),
        request(),
        &["1 ARGS:a=AB"],
    );
    check(r#"SecRule ARGS "@rx ." "id:1,phase:1,t:urlDecode,t:none""#, request(), &["1 ARGS:a=%41B"]);
}

// msre_rule_process_normal: with multiMatch the operator sees the value first as it is, then after each
// change.
#[test]
fn multi_match() {
    check(
        r#"SecRule ARGS "@rx ." "id:1,phase:1,multiMatch,t:lowercase,t:urlDecode,t:trim""#,
        Request::get("/?a=%2541X"),
        &["1 ARGS:a=%41X", "1 ARGS:a=%41x", "1 ARGS:a=Ax"],
    );
    check(r#"SecRule ARGS "@rx ." "id:1,phase:1,multiMatch""#, Request::get("/?a=1"), &["1 ARGS:a=1"]);
}

// msre_ruleset_process_phase, execute_operator: each link's setvars run at its own matches, whether or not
// the chain continues to match; disruption and metadata are the starter's.
#[test]
fn chains() {
    let rules = r#"
SecRule ARGS "@contains a" "id:1,phase:1,deny,status:418,chain,setvar:tx.first=+1"
SecRule ARGS "@contains b" "chain,setvar:tx.second=+1"
SecRule ARGS "@contains c" "setvar:tx.third=+1"
"#;
    let outcome = check(rules, Request::get("/?x=a&y=aa&z=b"), &[]);
    assert_eq!(
        (tx(&outcome, "first"), tx(&outcome, "second"), tx(&outcome, "third")),
        (Some("2"), Some("1"), None)
    );
    assert!(outcome.interruption.is_none());
    let outcome = check(rules, Request::get("/?x=a&y=b&z=c&w=c"), &["1 ARGS:z=c"]);
    let interruption = outcome.interruption.clone().unwrap();
    assert_eq!(
        (interruption.status, interruption.rule, interruption.phase),
        (418, RuleId(1), Phase::RequestHeaders)
    );
    assert_eq!(tx(&outcome, "third"), Some("1"), "the first match of the last link ends the phase");
}

// msre_ruleset_process_phase: MATCHED_VARS collects over the links of a chain and is empty for the next rule;
// MATCHED_VAR stays.
#[test]
fn matched_vars() {
    check(
        r#"
SecRule ARGS "@rx ^[ab]$" "id:1,phase:1,chain,pass"
SecRule MATCHED_VARS "@streq b" "t:none,chain"
SecRule MATCHED_VARS_NAMES "@rx z$"
SecRule &MATCHED_VARS "@eq 0" "id:2,phase:1,pass"
SecRule MATCHED_VAR "@streq 0" "id:3,phase:1,pass"
"#,
        Request::get("/?x=a&y=b&z=b"),
        &["1 ARGS:z=ARGS:z", "1 ARGS:z=ARGS:z", "2 &MATCHED_VARS=0", "3 MATCHED_VAR=0"],
    );
}

// msre_op_rx_execute (re_operators.c): captures are set only with capture, groups that took no part are
// empty, and those of a former match vanish.
#[test]
fn captures() {
    let outcome = run(
        r#"
SecRule ARGS:a "@rx (x)(y)(z)" "id:1,phase:1,pass,capture"
SecRule ARGS:a "@rx (n)?(x)" "id:2,phase:1,pass,capture,setvar:tx.copy=%{tx.0}-%{tx.1}-%{tx.2}-%{tx.3}"
SecRule ARGS:a "@rx (xyz)" "id:3,phase:1,pass"
SecRule ARGS:a "@rx (q)" "id:4,phase:1,pass,capture"
"#,
        Request::get("/?a=xyz"),
    );
    assert_eq!(tx(&outcome, "copy"), Some("x--x-"));
    assert_eq!((tx(&outcome, "0"), tx(&outcome, "2"), tx(&outcome, "3")), (Some("x"), Some("x"), None));
}

// msre_op_rx_execute, execute_operator: a negated operator that finds something captures it, and does not
// match.
#[test]
fn a_negated_operator_captures_what_it_finds() {
    let outcome = check(r#"SecRule ARGS "!@rx (a)" "id:1,phase:1,pass,capture""#, Request::get("/?x=a"), &[]);
    assert_eq!(tx(&outcome, "1"), Some("a"));
}

// msre_op_pm_execute: the word as the rule spells it becomes TX:0; words match in any case. An empty value is
// no match.
#[test]
fn word_lists() {
    let outcome = check(
        r#"SecRule ARGS "@pmFromFile words.data" "id:1,phase:1,pass,capture"
SecRule ARGS "@pm bench enchmark b" "id:2,phase:1,pass,capture,setvar:tx.word=%{tx.0}""#,
        Request::get("/?a=xBENCHMARK&b=sLEEP"),
        &["1 ARGS:a=xBENCHMARK", "1 ARGS:b=sLEEP", "2 ARGS:a=xBENCHMARK"],
    );
    assert_eq!(tx(&outcome, "word"), Some("b"), "the word that ends first");
}

// expand_macros (re_actions.c): names in any case, first value of several, nothing for what is unknown.
#[test]
fn macros() {
    let outcome = run(
        r#"SecAction "id:7,phase:1,pass,nolog,msg:'m',setvar:'tx.a=%{args.q}|%{REQUEST_headers.HOST}|%{rule.id}|%{rule.msg}|%{nope}|%{tx.nope}|%{tx}|100%|%{open'""#,
        Request::get("/?q=1&q=2"),
    );
    assert_eq!(tx(&outcome, "a"), Some("1|a.example|7|m||||100%|%{open"));
    assert!(!outcome.matches[0].logged);
}

// msre_action_setvar_execute: counters never go below zero; a text counts as its leading number; a sign in
// front of a macro with a sign adds nothing; names keep their first spelling; ! removes.
#[test]
fn setvar() {
    let outcome = run(
        r#"
SecAction "id:1,phase:1,pass,setvar:tx.a=5x,setvar:tx.b=1,setvar:tx.neg=-,setvar:tx.c=7,setvar:tx.d"
SecAction "id:2,phase:1,pass,setvar:TX.A=+3,setvar:tx.b=-5,setvar:tx.e=+%{tx.f},setvar:!tx.C,setvar:ip.x=1"
SecAction "id:3,phase:1,pass,setvar:tx.minus='-5'"
SecAction "id:4,phase:1,pass,setvar:tx.sum=+%{args.n}"
"#
        .replace("setvar:tx.minus='-5'", "setvar:tx.minus=x")
        .as_str(),
        Request::get("/?n=-5"),
    );
    assert_eq!(tx(&outcome, "a"), Some("8"));
    assert_eq!(tx(&outcome, "b"), Some("0"));
    assert_eq!(tx(&outcome, "c"), None);
    assert_eq!(tx(&outcome, "d"), Some("1"));
    assert_eq!(tx(&outcome, "e"), Some("0"));
    assert_eq!(tx(&outcome, "sum"), Some("0"));
}

// msre_action_setvar_execute, init_collection: a persistent collection must be opened before it can be
// written to.
#[test]
fn persistent_collections_need_initcol() {
    check(
        r#"
SecAction "id:1,phase:1,pass,setvar:ip.early=1"
SecAction "id:2,phase:1,pass,initcol:ip=%{REMOTE_ADDR}"
SecAction "id:3,phase:1,pass,setvar:ip.late=1"
SecRule IP:early|IP:late|IP:KEY "@rx ." "id:4,phase:1,pass"
"#,
        Request::get("/"),
        &[
            "1 REMOTE_ADDR=192.0.2.1",
            "2 REMOTE_ADDR=192.0.2.1",
            "3 REMOTE_ADDR=192.0.2.1",
            "4 IP:late=1",
            "4 IP:KEY=192.0.2.1",
        ],
    );
}

// add_rule, msre_actionset_merge, cmd_default_action (apache2_config.c): block is the default's action; a
// disruptive action of the rule's own wins over block; the last SecDefaultAction counts, whatever its phase.
#[test]
fn default_actions_and_block() {
    let deny = "SecDefaultAction \"phase:2,log,auditlog,deny,status:406\"\n";
    let status = |rules: &str| run(rules, Request::get("/")).interruption.map(|i| i.status);
    assert_eq!(status(&format!("{deny}SecAction \"id:1,phase:1,block\"")), Some(406));
    assert_eq!(status(&format!("{deny}SecAction \"id:1,phase:1\"")), Some(406));
    assert_eq!(status(&format!("{deny}SecAction \"id:1,phase:1,pass\"")), None);
    assert_eq!(status(&format!("{deny}SecAction \"id:1,phase:1,pass,block\"")), None);
    assert_eq!(status("SecAction \"id:1,phase:1,block\""), None, "without a default, block passes");
    assert_eq!(status("SecAction \"id:1,phase:1,deny,block\""), Some(403));
    let pass = "SecDefaultAction \"phase:1,pass\"\n";
    assert_eq!(status(&format!("{deny}{pass}SecAction \"id:1,phase:2,block\"")), None);
    assert_eq!(
        status(&format!("{deny}SecAction \"id:1,phase:1,block\"\n{pass}")),
        Some(406),
        "only later rules"
    );
}

// msre_actionset_set_defaults, msre_action_phase_init: a rule without a phase is in that of the default
// action.
#[test]
fn the_phase_comes_from_the_default_action() {
    let phase = |rules: &str| run(rules, Request::get("/")).matches[0].phase;
    assert_eq!(phase("SecAction \"id:1,pass\""), Phase::RequestBody);
    assert_eq!(phase("SecDefaultAction \"phase:1,pass\"\nSecAction \"id:1,pass\""), Phase::RequestHeaders);
    assert_eq!(phase("SecAction \"id:1,phase:logging\""), Phase::Logging);
}

// msre_ruleset_process_phase: skip counts rules, a chain as one, markers not at all; it does not leave the
// phase.
#[test]
fn skip() {
    check(
        r#"
SecAction "id:1,phase:1,pass,skip:2"
SecMarker here
SecRule ARGS "@rx ." "id:2,phase:1,pass,chain"
SecRule ARGS "@rx ."
SecAction "id:3,phase:2,pass"
SecAction "id:4,phase:1,pass"
SecAction "id:5,phase:1,pass"
"#,
        Request::get("/?a=1"),
        &["1 REMOTE_ADDR=192.0.2.1", "5 REMOTE_ADDR=192.0.2.1", "3 REMOTE_ADDR=192.0.2.1"],
    );
    check(
        r#"
SecRule ARGS "@rx ." "id:1,phase:1,pass,skip:1,chain"
SecRule ARGS "@rx 1"
SecAction "id:2,phase:1,pass"
SecAction "id:3,phase:1,pass"
"#,
        Request::get("/?a=1"),
        &["1 ARGS:a=1", "3 REMOTE_ADDR=192.0.2.1"],
    );
}

// msre_ruleset_process_phase: skipAfter of a chain works only when the whole chain matched; without its
// marker the rest of the phase is left out; other phases are not touched.
#[test]
fn skip_after() {
    let rules = r#"
SecRule ARGS "@rx ." "id:1,phase:1,pass,skipAfter:END,chain"
SecRule ARGS "@rx 1"
SecAction "id:2,phase:1,pass"
SecAction "id:3,phase:2,pass"
SecMarker END
SecAction "id:4,phase:1,pass"
"#;
    let ids = |rules: &str, uri: &str| {
        run(rules, Request::get(uri)).rule_ids().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids(rules, "/?a=1"), [1, 4, 3]);
    assert_eq!(ids(rules, "/?a=2"), [2, 4, 3]);
    assert_eq!(ids(&rules.replace("SecMarker END", ""), "/?a=1"), [1, 3]);
    assert_eq!(ids(&rules.replace("skipAfter:END", "skipAfter:2"), "/?a=1"), [1, 4, 3]);
}

// msre_ruleset_rule_remove_with_exception: removals know only the rules before them, and take whole chains.
#[test]
fn removals() {
    let rules = r#"
SecAction "id:1,phase:1,pass,tag:'a/b',msg:'one two'"
SecRule ARGS "@rx ." "id:2,phase:1,pass,chain"
SecRule ARGS "@rx ." "tag:'a/b'"
SecAction "id:3,phase:1,pass,msg:'three'"
REMOVAL
SecAction "id:4,phase:1,pass,tag:'a/b'"
"#;
    let ids = |removal: &str| {
        let outcome = run(&rules.replace("REMOVAL", removal), Request::get("/?a=1"));
        outcome.rule_ids().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), [1, 2, 3, 4]);
    assert_eq!(ids("SecRuleRemoveById 1-2 4"), [3, 4]);
    assert_eq!(ids("SecRuleRemoveByTag ^a/"), [2, 3, 4], "only the tags of the first link");
    assert_eq!(ids("SecRuleRemoveByMsg two$"), [2, 3, 4]);
}

// msre_ruleset_phase_rule_update_target_matching_exception, update_rule_target_ex: all links of the chain are
// changed.
#[test]
fn target_updates() {
    let rules = |update: &str| {
        format!(
            "SecRule ARGS|REQUEST_COOKIES \"@rx 1\" \"id:1,phase:1,pass,tag:t,chain\"\nSecRule ARGS \"@rx .\"\n{update}\n"
        )
    };
    let request = || Request::get("/?a=1&b=2").header("Cookie", "c=1");
    check(&rules(""), request(), &["1 ARGS:a=1", "1 ARGS:b=2"]);
    check(&rules("SecRuleUpdateTargetById 1 !ARGS:a"), request(), &["1 ARGS:b=2"]);
    check(&rules("SecRuleUpdateTargetByTag ^t$ \"!ARGS:/^b/\""), request(), &["1 ARGS:a=1"]);
    check(
        &rules("SecRuleUpdateTargetById 1 ARGS_NAMES ARGS"),
        request(),
        &["1 ARGS_NAMES:a=a", "1 ARGS_NAMES:b=b"],
    );
    check(&rules("SecRuleUpdateTargetById 2-9 !ARGS"), request(), &["1 ARGS:a=1", "1 ARGS:b=2"]);
    // A target that is there already is not added again.
    check(&rules("SecRuleUpdateTargetById 1 args"), request(), &["1 ARGS:a=1", "1 ARGS:b=2"]);
}

// cmd_rule_update_action_by_id, msre_actionset_merge.
#[test]
fn action_updates() {
    let outcome = check(
        r#"
SecRule ARGS "@rx x" "id:1,phase:1,pass,t:none"
SecRuleUpdateActionById 1 "deny,status:409,t:lowercase"
SecRuleUpdateActionById 1 "setvar:tx.a=1"
"#,
        Request::get("/?a=X"),
        &["1 ARGS:a=x"],
    );
    assert_eq!(outcome.interruption.as_ref().unwrap().status, 409);
    assert_eq!(tx(&outcome, "a"), Some("1"));
}

// msre_action_ctl_execute, msre_ruleset_process_phase: rules can be removed while they run.
#[test]
fn ctl_rule_removal() {
    let ids = |ctl: &str| {
        let rules = format!(
            r#"
SecAction "id:1,phase:1,pass,setvar:tx.name=b"
SecAction "id:2,phase:1,pass,ctl:{ctl}"
SecAction "id:3,phase:1,pass,tag:a,msg:'x'"
SecAction "id:4,phase:1,pass,tag:%{{tx.name}}"
SecRule ARGS "@rx ." "id:5,phase:1,pass,chain"
SecRule ARGS "@rx ." "tag:b"
SecAction "id:6,phase:1,pass"
"#
        );
        run(&rules, Request::get("/?a=1")).rule_ids().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids("ruleRemoveById=3-4"), [1, 2, 5, 6]);
    assert_eq!(ids("ruleRemoveById=5"), [1, 2, 3, 4, 6]);
    assert_eq!(
        ids("ruleRemoveByTag=b"),
        [1, 2, 3, 6],
        "macros in tags are replaced; links have tags of their own"
    );
    assert_eq!(ids("ruleRemoveByMsg=x"), [1, 2, 4, 5, 6]);
    assert_eq!(ids("ruleEngine=Off"), [1, 2]);
}

// fetch_target_exception, execute_operator (re.c): the target is taken from the link that has the id or tag,
// not from the rest of its chain; a bare variable takes all its keys.
#[test]
fn ctl_target_removal() {
    let rules = |ctl: &str| {
        format!(
            r#"
SecAction "id:1,phase:1,pass,nolog,ctl:{ctl}"
SecRule ARGS "@rx ." "id:2,phase:1,pass,tag:t,chain"
SecRule ARGS "@rx ."
SecRule ARGS|&ARGS:a "@rx ." "id:3,phase:1,pass"
"#
        )
    };
    let rest = ["3 ARGS:a=1", "3 ARGS:b=2", "3 &ARGS:a=1"];
    let check = |ctl: &str, expected: &[&str]| {
        let found = complete(&run(&rules(ctl), Request::get("/?a=1&b=2")));
        assert_eq!(found[1..], *expected, "{ctl}");
    };
    check("ruleRemoveTargetById=2;ARGS:a", &[&["2 ARGS:a=1", "2 ARGS:b=2"], &rest[..]].concat());
    check("ruleRemoveTargetByTag=t;ARGS", &rest);
    check("ruleRemoveTargetById=3;args:A", &["2 ARGS:a=1", "2 ARGS:b=2", "3 ARGS:b=2", "3 &ARGS:a=1"]);
    check("ruleRemoveTargetById=3;ARGS:/^b/", &["2 ARGS:a=1", "2 ARGS:b=2", "3 ARGS:a=1", "3 &ARGS:a=1"]);
    check("ruleRemoveTargetById=3;ARGS", &["2 ARGS:a=1", "2 ARGS:b=2"]);
}

// msre_perform_disruptive_actions: in DetectionOnly nothing interrupts, not even allow; every target is
// looked at.
#[test]
fn detection_only() {
    let outcome = check(
        r#"
SecRuleEngine DetectionOnly
SecRule ARGS "@rx ." "id:1,phase:1,deny"
SecAction "id:2,phase:1,allow"
SecAction "id:3,phase:1,drop"
"#,
        Request::get("/?a=1&b=2"),
        &["1 ARGS:a=1", "1 ARGS:b=2", "2 REMOTE_ADDR=192.0.2.1", "3 REMOTE_ADDR=192.0.2.1"],
    );
    assert!(outcome.interruption.is_none());
}

// msre_rule_process_normal, modsecurity_process_phase: an interruption ends the rule and the phase; then only
// phase 5.
#[test]
fn interruptions() {
    let outcome = check(
        r#"
SecRule ARGS "@rx ." "id:1,phase:1,deny,status:451"
SecAction "id:2,phase:1,pass"
SecAction "id:3,phase:2,pass"
SecAction "id:4,phase:5,pass"
"#,
        Request::get("/?a=1&b=2"),
        &["1 ARGS:a=1", "4 REMOTE_ADDR=192.0.2.1"],
    );
    assert_eq!(outcome.interruption.unwrap().status, 451);
    let redirect = |extra: &str| {
        let rules = format!("SecAction \"id:1,phase:1,redirect:'/x?%{{REQUEST_METHOD}}'{extra}\"");
        let interruption = run(&rules, Request::get("/")).interruption.unwrap();
        (interruption.status, interruption.location.unwrap().to_string())
    };
    assert_eq!(redirect(""), (302, "/x?GET".into()));
    assert_eq!(redirect(",status:307"), (307, "/x?GET".into()));
    assert_eq!(redirect(",status:403"), (302, "/x?GET".into()));
    assert!(run("SecAction \"id:1,phase:2,drop\"", Request::get("/")).interruption.unwrap().drop);
}

// perform_interception (mod_security2.c), modsecurity_process_phase_...: how far each allow reaches.
#[test]
fn allow() {
    let ids = |allow: &str| {
        let rules = format!(
            r#"
SecAction "id:1,phase:1,{allow}"
SecAction "id:2,phase:1,pass"
SecAction "id:3,phase:2,pass"
SecAction "id:4,phase:3,pass"
SecAction "id:5,phase:4,pass"
SecAction "id:6,phase:5,pass"
"#
        );
        let request = Request::get("/").answered(200, "text/html", "x");
        run(&rules, request).rule_ids().iter().map(|id| id.0).collect::<Vec<_>>()
    };
    assert_eq!(ids("pass"), [1, 2, 3, 4, 5, 6]);
    assert_eq!(ids("allow"), [1, 6]);
    assert_eq!(ids("allow:phase"), [1, 3, 4, 5, 6]);
    assert_eq!(ids("allow:request"), [1, 4, 5, 6]);
}

// execute_operator: the worst severity so far; EMERGENCY, being 0, does not count; 255 stands for none.
#[test]
fn highest_severity() {
    check(
        r#"
SecRule HIGHEST_SEVERITY "@eq 255" "id:1,phase:1,pass,severity:WARNING"
SecRule HIGHEST_SEVERITY "@eq 4" "id:2,phase:1,pass,severity:CRITICAL"
SecRule HIGHEST_SEVERITY "@eq 2" "id:3,phase:1,pass,severity:EMERGENCY"
SecRule HIGHEST_SEVERITY "@eq 2" "id:4,phase:1,pass,severity:ERROR"
SecRule HIGHEST_SEVERITY "@eq 2" "id:5,phase:1,pass"
"#,
        Request::get("/"),
        &[
            "1 HIGHEST_SEVERITY=255",
            "2 HIGHEST_SEVERITY=4",
            "3 HIGHEST_SEVERITY=2",
            "4 HIGHEST_SEVERITY=2",
            "5 HIGHEST_SEVERITY=2",
        ],
    );
}

// modsecurity_request_body_start, ..._end (msc_reqbody.c): only forms, and bodies without a processor that
// are asked for, become REQUEST_BODY; arguments of the body come after those of the query, in phase 2.
#[test]
fn request_bodies() {
    let rules = "SecRule ARGS|REQUEST_BODY \"@rx .\" \"id:1,phase:2,pass\"\n";
    let form = || Request::post("/?q=1", "application/x-www-form-urlencoded; charset=utf-8", "a=%31&b");
    check(rules, form(), &["1 ARGS:q=1", "1 ARGS:a=1", "1 REQUEST_BODY=a=%31&b"]);
    let early = "SecRule ARGS|ARGS_POST \"@rx .\" \"id:2,phase:1,pass\"\n";
    check(early, form(), &["2 ARGS:q=1"]);
    let json = "SecAction \"id:3,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON\"\n";
    let body = || Request::post("/", "application/json", r#"{"a":{"b":"x"},"c":[1]}"#);
    check(
        &format!("{json}SecRule ARGS|REQUEST_BODY|REQBODY_PROCESSOR \"@rx .\" \"id:1,phase:2,pass\"\n"),
        body(),
        &["3 REMOTE_ADDR=192.0.2.1", "1 ARGS:a.b=x", "1 ARGS:c.c=1", "1 REQBODY_PROCESSOR=JSON"],
    );
    let force = "SecAction \"id:4,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"\n";
    check(rules, body(), &[]);
    let whole = "1 REQUEST_BODY={\"a\":{\"b\":\"x\"},\"c\":[1]}";
    check(&format!("{force}{rules}"), body(), &["4 REMOTE_ADDR=192.0.2.1", whole]);
    check(&format!("SecRequestBodyAccess Off\n{rules}"), form(), &["1 ARGS:q=1"]);
    check(
        &format!("{json}SecRule REQBODY_ERROR \"!@eq 0\" \"id:1,phase:2,pass\"\n"),
        Request::post("/", "application/json", "{"),
        &["3 REMOTE_ADDR=192.0.2.1", "1 REQBODY_ERROR=1"],
    );
}

// var_files_generate and its kin (re_variables.c).
#[test]
fn multipart() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nX: y\r\n\r\nhello\r\n--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nv\r\n--b--\r\n";
    check(
        "SecRule ARGS|FILES|FILES_NAMES|FILES_SIZES|FILES_COMBINED_SIZE|MULTIPART_PART_HEADERS:f \"@rx .\" \"id:1,phase:2,pass\"\nSecRule MULTIPART_STRICT_ERROR \"@eq 0\" \"id:2,phase:2,pass\"",
        Request::post("/", "multipart/form-data; boundary=b", body),
        &[
            "1 ARGS:n=v",
            "1 FILES:f=a.txt",
            "1 FILES_NAMES:f=f",
            "1 FILES_SIZES:f=5",
            "1 FILES_COMBINED_SIZE=5",
            "1 MULTIPART_PART_HEADERS:f=Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"",
            "1 MULTIPART_PART_HEADERS:f=X: y",
            "2 MULTIPART_STRICT_ERROR=0",
        ],
    );
}

// var_xml_generate.
#[test]
fn xml() {
    let processor = "SecAction \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\n";
    check(
        &format!("{processor}SecRule XML:/*|XML://@*|XML \"@rx .\" \"id:1,phase:2,pass\""),
        Request::post("/", "text/xml", "<a x='1'>t<b y='2'><![CDATA[<]]></b></a>"),
        &["9 REMOTE_ADDR=192.0.2.1", "1 XML=t<", "1 XML=1", "1 XML=2", "1 XML=[XML document tree]"],
    );
    check("SecRule &XML:/* \"@eq 0\" \"id:1,phase:2,pass\"", Request::get("/"), &["1 &XML=0"]);
}

// output_filter_should_run (apache2_io.c), var_response_..._generate.
#[test]
fn responses() {
    let rules = "SecRule RESPONSE_STATUS|RESPONSE_HEADERS:content-type \"@rx .\" \"id:1,phase:3,pass\"\nSecRule RESPONSE_BODY \"@rx .\" \"id:2,phase:4,deny\"\n";
    let answered = |content_type: &str| Request::get("/").answered(404, content_type, "oops");
    let outcome = check(
        rules,
        answered("Text/HTML; charset=x"),
        &[
            "1 RESPONSE_STATUS=404",
            "1 RESPONSE_HEADERS:Content-Type=Text/HTML; charset=x",
            "2 RESPONSE_BODY=oops",
        ],
    );
    assert_eq!(outcome.interruption.unwrap().phase, Phase::ResponseBody);
    let head = ["1 RESPONSE_STATUS=404", "1 RESPONSE_HEADERS:Content-Type=application/json"];
    check(rules, answered("application/json"), &head);
    let all = format!("SecResponseBodyMimeType application/json\n{rules}");
    check(&all, answered("application/json"), &[&head[..], &["2 RESPONSE_BODY=oops"]].concat());
    check(rules, Request::get("/"), &[]);
}

// var_request_uri_generate and its kin; query strings as parse_arguments, cookies as parse_cookies_v0.
#[test]
fn request_variables() {
    check(
        r#"SecRule REQUEST_URI|REQUEST_URI_RAW|REQUEST_FILENAME|REQUEST_BASENAME|QUERY_STRING|ARGS|ARGS_COMBINED_SIZE|REQUEST_COOKIES|REQUEST_COOKIES_NAMES|REQUEST_LINE "@rx ." "id:1,phase:1,pass""#,
        Request::get("http://h/a/b%20c.php?x=%41+1&y").header("Cookie", "s=%31; t"),
        &[
            "1 REQUEST_URI=/a/b%20c.php?x=%41+1&y",
            "1 REQUEST_URI_RAW=http://h/a/b%20c.php?x=%41+1&y",
            "1 REQUEST_FILENAME=/a/b%20c.php",
            "1 REQUEST_BASENAME=b%20c.php",
            "1 QUERY_STRING=x=%41+1&y",
            "1 ARGS:x=A 1",
            "1 ARGS_COMBINED_SIZE=5",
            "1 REQUEST_COOKIES:s=%31",
            "1 REQUEST_COOKIES_NAMES:s=s",
            "1 REQUEST_COOKIES_NAMES:t=t",
            "1 REQUEST_LINE=GET http://h/a/b%20c.php?x=%41+1&y HTTP/1.1",
        ],
    );
}

// ap_process_request_internal (httpd, server/request.c): from phase 2 on, the path is decoded; the query
// never is.
#[test]
fn the_path_is_decoded_after_phase_1() {
    let rules = |phase: u8| {
        format!(
            "SecRule REQUEST_URI|REQUEST_URI_RAW|REQUEST_FILENAME|REQUEST_BASENAME \"@rx .\" \"id:1,phase:{phase},pass\""
        )
    };
    let request = || Request::get("/a%20b/c+%41%zz?%41");
    check(
        &rules(1),
        request(),
        &[
            "1 REQUEST_URI=/a%20b/c+%41%zz?%41",
            "1 REQUEST_URI_RAW=/a%20b/c+%41%zz?%41",
            "1 REQUEST_FILENAME=/a%20b/c+%41%zz",
            "1 REQUEST_BASENAME=c+%41%zz",
        ],
    );
    check(
        &rules(2),
        request(),
        &[
            "1 REQUEST_URI=/a b/c+A%zz?%41",
            "1 REQUEST_URI_RAW=/a%20b/c+%41%zz?%41",
            "1 REQUEST_FILENAME=/a b/c+A%zz",
            "1 REQUEST_BASENAME=c+A%zz",
        ],
    );
}

// log_escape_nq_ex (msc_util.c): keys in names are escaped.
#[test]
fn keys_are_escaped_in_names() {
    check(
        r#"SecRule ARGS "@rx ." "id:1,phase:1,pass""#,
        Request::get("/?a%0a%5c%ff%22=1"),
        &["1 ARGS:a\\n\\\\\\xff\"=1"],
    );
}

// The msre_op_..._execute functions (re_operators.c).
#[test]
fn operators() {
    for (operator, value, matches) in [
        ("@rx ^a.b$", "a%0ab", true),
        ("@rx b$", "ab%0a", false),
        ("@rx %{request_method}", "xGETx", true),
        ("@rx", "", true),
        ("@streq a", "A", false),
        ("@beginsWith ab", "abc", true),
        ("@beginsWith", "abc", true),
        ("@endsWith bc", "abc", true),
        ("@contains bb", "abc", false),
        ("@containsWord bc", "a bc,d", true),
        ("@containsWord bc", "abc d", false),
        ("@containsWord bc", "bcd bc", true),
        ("@within GET,POST", "POST", true),
        ("@within GET,POST", "", true),
        ("@within GET,POST", "POST,", false),
        ("@strmatch b", "abc", true),
        ("@eq 0", "x", true),
        ("@eq 12", " 12x", true),
        ("@lt 5", "-1", true),
        ("@ge %{tx.none}", "0", true),
        ("@gt 1", "9999999999", true),
        ("@pm |62 63| x", "abcd", true),
        ("@pm |62 64| x", "abcd", false),
        ("@pm a", "", false),
        ("@ipMatch 10.0.0.0/8,2001:db8::/32", "10.1.2.3", true),
        ("@ipMatch 10.0.0.0/8,2001:db8::/32", "2001:db8::1", true),
        ("@ipMatch 10.0.0.0/8", "11.0.0.1", false),
        ("@ipMatchFromFile ips.data", "192.0.2.1", true),
        ("@validateByteRange 32-126", "abc", false),
        ("@validateByteRange 32-126", "a%01", true),
        ("@validateUrlEncoding", "%25%34%31", false),
        ("@validateUrlEncoding", "%254", true),
        ("@validateUtf8Encoding", "%c3%a4", false),
        ("@validateUtf8Encoding", "%c0%af", true),
        ("@unconditionalMatch", "x", true),
        ("@noMatch", "x", false),
    ] {
        let reference = load(&format!("SecRule ARGS:a \"{operator}\" \"id:1,phase:1,pass\""));
        let outcome = reference.run(&Request::get(&format!("/?a={value}")));
        assert_eq!(!outcome.matches.is_empty(), matches, "{operator} on {value:?}");
    }
}

#[test]
fn what_is_not_evaluated_is_an_error() {
    for rules in [
        "SecRule ARGS \"@fuzzyHash a 1\" \"id:1\"",
        "SecRule FILES_TMPNAMES \"@inspectFile /bin/true\" \"id:1\"",
        "SecRule XML://x:a \"@rx a\" \"id:1\"",
        "SecRule ARGS \"@rx (?R)\" \"id:1\"",
        "SecRule ARGS \"@pmFromFile missing.data\" \"id:1\"",
        "SecAction \"id:1,phase:1,exec:/bin/true\"",
        "SecAction \"phase:1,pass\"",
    ] {
        let parsed = parse(&[Root::Text { name: "test.conf".into(), text: rules.into() }], &files());
        assert!(!parsed.has_errors(), "{rules}");
        assert!(Reference::new(&parsed.document, &parsed.sources, &files()).is_err(), "{rules}");
    }
}

/// The folder of the CRS (`make crs`). Where it is missing, the test is left out, except in CI.
fn crs_rules() -> Option<std::path::PathBuf> {
    match portcullis_testkit::crs::rules() {
        Ok(folder) => Some(folder.join("rules/*.conf")),
        Err(missing) if std::env::var_os("CI").is_some() => panic!("{missing}"),
        Err(missing) => {
            eprintln!("skipped: {missing}");
            None
        }
    }
}

/// The whole CRS loads, and a plain attack scores.
#[test]
fn the_core_rule_set_loads_and_scores() {
    let Some(pattern) = crs_rules() else { return };
    let setup = "SecRuleEngine On\nSecRequestBodyAccess On\nSecDefaultAction \"phase:1,log,pass\"\nSecDefaultAction \"phase:2,log,pass\"\nSecAction \"id:900990,phase:1,pass,nolog,setvar:tx.crs_setup_version=4250\"\n";
    let roots = [Root::Text { name: "setup.conf".into(), text: setup.into() }, Root::File(pattern)];
    let disk = portcullis_seclang::DiskFiles;
    let parsed = parse(&roots, &disk);
    assert!(!parsed.has_errors());
    let reference = match Reference::new(&parsed.document, &parsed.sources, &disk) {
        Ok(reference) => reference,
        Err(problems) => panic!("{problems:?}"),
    };
    let browser = |request: Request| request.header("User-Agent", "Mozilla/5.0").header("Accept", "*/*");
    let attack = reference.run(&browser(Request::get("/?q=%3Cscript%3Ealert(1)%3C/script%3E")));
    assert!(attack.rule_ids().contains(&RuleId(941110)), "{:?}", attack.rule_ids());
    assert_eq!(attack.interruption.map(|i| (i.status, i.rule)), Some((403, RuleId(949110))));
    let benign = reference.run(&browser(Request::get("/?q=hello")));
    let scored: Vec<_> = benign.matches.iter().filter(|m| m.complete && m.logged).collect();
    assert!(scored.is_empty(), "{scored:?}");
}

// var_matched_vars_names_generate, var_rule_generate: what MATCHED_VAR_NAME says of variables that have no
// name of their own.
#[test]
fn names_of_matched_variables() {
    let name = "setvar:tx.last=%{MATCHED_VAR_NAME}";
    let rules = format!(
        r#"SecRule ARGS "@rx ." "id:1,phase:1,pass,chain"
        SecRule MATCHED_VARS_NAMES "@rx ." "{name}""#
    );
    assert_eq!(tx(&run(&rules, Request::get("/?a=1")), "last"), Some("ARGS:a"));
    let rules = format!(r#"SecRule RULE:id "@eq 1" "id:1,phase:1,pass,{name}""#);
    assert_eq!(tx(&run(&rules, Request::get("/")), "last"), Some("RULE"));
}

// modsecurity_request_body_end: a body that its parser cannot read is REQUEST_BODY, by force.
#[test]
fn an_unreadable_body_is_shown_by_force() {
    let rules = r#"SecAction "id:1,phase:1,nolog,pass,ctl:requestBodyProcessor=JSON,ctl:forceRequestBodyVariable=On"
        SecRule REQUEST_BODY "@rx ." "id:2,phase:2""#;
    check(
        rules,
        Request::post("/", "application/json", "nojson"),
        &["1 REMOTE_ADDR=192.0.2.1", "2 REQUEST_BODY=nojson"],
    );
    check(rules, Request::post("/", "application/json", "[]"), &["1 REMOTE_ADDR=192.0.2.1"]);
}

// flatten_response_body: a body that is not looked at is empty.
#[test]
fn a_response_body_of_another_type_is_empty() {
    let request = Request::get("/").answered(200, "image/png", "x");
    check(r#"SecRule RESPONSE_BODY "@rx ^$" "id:1,phase:4""#, request, &["1 RESPONSE_BODY="]);
}
