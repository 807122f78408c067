//! Rules that run in a few steps, or were run at load time, do what they do on the way of all others: a
//! transaction that keeps a trace takes that way for every rule.

use crate::common::{Message, assert_equivalent, plan};
use portcullis_engine::{Progress, Scratch};
use portcullis_testkit::random::Random;

/// Alike however it is run, never interrupted, and this many matches.
#[track_caller]
fn check(rules: &str, matches: usize) {
    let plan = plan(rules);
    for target in ["/", "/?off=1", "/?x=2&a=b"] {
        let line = format!("GET {target} HTTP/1.1");
        let message = Message { line: &line, headers: &[(b"Host", b"h")], ..Message::default() };
        let seen = assert_equivalent(&plan, &mut Scratch::default(), &message);
        assert_eq!(seen.progress, [Progress::Done(None), Progress::Done(None)], "{target}\n{rules}");
        if target == "/" {
            assert_eq!(seen.matches.len(), matches, "{seen:#?}\n{rules}");
        }
    }
}

const SETTINGS: &str = r#"SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,setvar:tx.Level=1,setvar:'tx.list=|a| |b|',setvar:tx.score=0"
SecRule &TX:level "@eq 0" "id:2,phase:1,pass,nolog,setvar:tx.level=4"
SecRule &TX:Limit "@eq 0" "id:3,phase:1,pass,nolog,setvar:tx.limit=5"
SecRule TX:LEVEL "@lt 2" "id:4,phase:1,pass,nolog,setvar:tx.copy=%{tx.limit},setvar:tx.both=%{tx.level}/%{tx.list}"
SecRule TX:limit "!@gt %{tx.level}" "id:5,phase:1,pass,nolog,setvar:tx.never=1"
SecRule TX:list "@eq 0" "id:6,phase:1,pass,nolog,setvar:tx.score=+%{tx.limit},setvar:tx.score=-2,setvar:!tx.copy"
SecRule TX:score "@eq 3" "id:7,phase:1,pass,nolog,skipAfter:END"
SecAction "id:8,phase:1,pass,nolog,setvar:tx.skipped=1"
SecMarker END
SecRule TX:score "@ge 3" "id:9,phase:1,pass,nolog,t:lowercase,setvar:tx.score=+1"
SecRule TX:score "@eq 4" "id:10,phase:2,pass,log,msg:'%{tx.score} %{MATCHED_VAR_NAME}'"
SecRule MATCHED_VAR_NAME "@rx ." "id:11,phase:1,pass,nolog,setvar:'tx.seen=%{MATCHED_VAR}'"
SecRule TX:/./ "@rx ." "id:12,phase:2,pass,nolog"
"#;

#[test]
fn settings() {
    check(SETTINGS, 14);
}

#[test]
fn what_may_come_before_them() {
    let off = |acts: &str| {
        format!("SecRule ARGS_GET:off \"@eq 1\" \"id:90,phase:1,pass,nolog,{acts}\"\n{SETTINGS}")
    };
    check(&off("ctl:ruleRemoveById=3"), 14);
    check(&off("ctl:ruleRemoveTargetById=4;TX"), 14);
    check(&off("ctl:ruleRemoveTargetById=1;REMOTE_ADDR"), 14);
    check(&off("setvar:tx.limit=7"), 14);
    check(&off("skip:2"), 14);
    check(&off("ctl:ruleEngine=DetectionOnly"), 14);
    check(&off("allow:phase"), 14);
    check(&format!("SecRule ARGS \"@rx (.)\" \"id:90,phase:1,pass,nolog,capture\"\n{SETTINGS}"), 14);
    check(&format!("SecRuleUpdateTargetById 4 \"!TX:level\"\n{SETTINGS}"), 14);
    check(&format!("{SETTINGS}\nSecRuleUpdateTargetById 4 \"!TX:level\""), 12);
}

/// Rules that do not run where a later link cannot match, and those that must.
#[test]
fn chains_and_counts() {
    let rules = r#"SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,setvar:tx.level=1"
SecRule REQUEST_METHOD "@rx ^(?:GET|HEAD)$" "id:2,phase:1,pass,log,chain"
SecRule REQUEST_HEADERS:Content-Length "!@rx ^0?$" "setvar:tx.a=1"
SecRule REQUEST_METHOD "@rx ^(?:GET|HEAD)$" "id:3,phase:1,pass,log,chain"
SecRule REQUEST_HEADERS:Host "!@rx ^0?$" "setvar:tx.b=1,chain"
SecRule &REQUEST_HEADERS:Host "@lt 2" "setvar:tx.b=+1"
SecRule &REQUEST_HEADERS:Range "@gt 0" "id:4,phase:1,pass,log"
SecRule &REQUEST_HEADERS:Host "@eq 1" "id:5,phase:1,pass,log"
SecRule &REQUEST_HEADERS:Range "@eq 0" "id:6,phase:1,pass,log"
SecRule &ARGS "!@eq 0" "id:7,phase:1,pass,log,chain"
SecRule ARGS:x "@streq 2" "setvar:tx.c=1"
SecRule REQUEST_METHOD "@streq GET" "id:8,phase:2,pass,log,setvar:tx.d=+1,chain"
SecRule ARGS:x "@streq 3"
SecRule REQUEST_METHOD "@rx (G)" "id:9,phase:2,pass,log,capture,chain"
SecRule ARGS:x "@streq 3"
SecRule TX:d "@ge 1" "id:10,phase:2,pass,log,chain"
SecRule ARGS:a "@rx b" "setvar:tx.e=%{MATCHED_VAR}"
SecRule TX:level "@lt 2" "id:11,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@rx ." "id:12,phase:2,pass,log"
SecMarker END
SecRule TX:level "@lt 2" "id:13,phase:2,pass,nolog"
SecRule REQUEST_METHOD "@rx ^(?=G)" "id:14,phase:2,pass,log,chain"
SecRule REQUEST_METHOD "@streq POST"
"#;
    check(rules, 6);
    check(&format!("{rules}SecRule MATCHED_VAR \"@rx ^(.*)$\" \"id:15,phase:2,pass,log,capture\"\n"), 7);
}

/// Chains whose first link only hands texts to the second one: what they leave behind is as if they had run.
#[test]
fn links_that_hand_on() {
    let chain = |list: &str, more: &str| {
        format!(
            r#"SecRuleEngine On
SecRule REQUEST_HEADERS_NAMES "@rx ^(.).*$" "id:1,phase:1,pass,log,capture,t:lowercase,msg:'%{{MATCHED_VAR}}',setvar:'tx.name_%{{tx.0}}=/%{{tx.0}}/',chain"
SecRule TX:/^name_/ "@within {list}" "setvar:tx.score=+5"
SecRule REQUEST_METHOD "@rx GET" "id:2,phase:1,pass,log,msg:'left %{{tx.0}} %{{tx.1}} %{{tx.2}}'"
SecRule TX:0 "@rx ^(?:host|o)$" "id:3,phase:1,pass,log"
{more}
"#
        )
    };
    let same = |rules: &str, matches: usize| {
        let message =
            Message { line: "GET /?name=x HTTP/1.1", headers: &[(b"Host", b"h")], ..Message::default() };
        let seen = assert_equivalent(&plan(rules), &mut Scratch::default(), &message);
        assert_eq!(seen.logged().len(), matches, "{seen:#?}\n{rules}");
    };
    same(&chain("/proxy/ /x-secret/", ""), 2);
    same(&chain("/proxy/ /host/", ""), 3);
    // Another rule reads what was written: all of it, by a pattern, by a part of a name, by number.
    same(&chain("/proxy/", r#"SecRule TX:/./ "@contains /host/" "id:4,phase:2,pass,log""#), 3);
    same(&chain("/proxy/", r#"SecRule TX:/^name/ "@contains /host/" "id:4,phase:2,pass,log""#), 3);
    same(&chain("/proxy/", r#"SecRule TX:/e_hos.*/ "@contains /host/" "id:4,phase:2,pass,log""#), 3);
    same(&chain("/proxy/", r#"SecRule TX:/_cookie.*/ "@contains /" "id:4,phase:2,pass,log""#), 2);
    same(&chain("/proxy/", r#"SecRule &TX "@gt 1" "id:4,phase:2,pass,log""#), 3);
    same(&chain("/proxy/", r#"SecRule TX:name_host "@contains host" "id:4,phase:2,pass,log""#), 3);
    same(&chain("/proxy/", r#"SecAction "id:4,phase:2,pass,log,msg:'%{tx.name_host}'""#), 3);
    // Or writes to the same keys; or the header is kept from the rule, so that nothing is captured.
    same(
        &format!(
            "SecAction \"id:9,phase:1,pass,nolog,setvar:'tx.name_a=/proxy/'\"\n{}",
            chain("/proxy/", "")
        ),
        3,
    );
    same(&chain("/proxy/", r#"SecRuleUpdateTargetById 1 "!REQUEST_HEADERS_NAMES:Host""#), 1);
    let switched =
        "SecAction \"id:9,phase:1,pass,nolog,ctl:ruleRemoveTargetById=1;REQUEST_HEADERS_NAMES:Host\"";
    same(&format!("{switched}\n{}", chain("/proxy/ /host/", "")), 1);
    same(&format!("SecAction \"id:9,phase:1,pass,nolog,ctl:ruleRemoveById=1\"\n{}", chain("/host/", "")), 1);
}

/// The result for a variable without a value is known at load time; a value that arrives later is still
/// looked at.
#[test]
fn variables_without_values() {
    let rules = r#"SecRuleEngine On
SecRule REQBODY_ERROR "@eq 0" "id:1,phase:1,pass,log"
SecRule REQBODY_ERROR "!@eq 0" "id:2,phase:2,pass,log"
SecRule URLENCODED_ERROR "@streq 0" "id:3,phase:2,pass,log"
SecRule RESPONSE_STATUS "@streq 0" "id:4,phase:2,pass,log"
SecRule REQBODY_ERROR_MSG "@rx ^$" "id:5,phase:1,pass,log,chain"
SecRule MULTIPART_STRICT_ERROR "@eq 0" "setvar:tx.a=+1"
SecRule MULTIPART_STRICT_ERROR|QUERY_STRING "@rx ^(?:1|x=2)" "id:6,phase:2,pass,log"
SecRule MULTIPART_CRLF_LINE "@streq 0" "id:7,phase:1,pass,log"
SecRule MULTIPART_CRLF_LINE "@streq 0" "id:8,phase:2,pass,log"
SecRule PATH_INFO|REQBODY_PROCESSOR "@rx ^$" "id:9,phase:2,pass,log"
SecRule REQUEST_BODY_LENGTH "@gt 0" "id:10,phase:2,pass,log"
SecRule REQUEST_BODY_LENGTH "@lt 1" "id:11,phase:2,pass,log,chain"
SecRule TX:/^nothing/ "!@rx ^x" "t:lowercase"
SecRule ARGS_COMBINED_SIZE "@gt 2" "id:12,phase:1,pass,log,msg:'%{MATCHED_VAR}'"
SecRule TX:/^a$/ "@eq 1" "id:13,phase:1,pass,log"
"#;
    check(rules, 7);
}

/// Rules of one value that the prefilter has seen match, and those that it cannot be sure of.
#[test]
fn switches_on_one_value() {
    let rules = r#"SecRuleEngine On
SecRule REQUEST_METHOD "!@streq POST" "id:1,phase:1,pass,nolog,ctl:ruleRemoveById=2"
SecRule ARGS|REQUEST_METHOD "@rx ." "id:2,phase:1,pass,log"
SecRule REQUEST_FILENAME "@beginsWith /" "id:3,phase:1,pass,nolog,t:lowercase,skipAfter:A"
SecRule REQUEST_METHOD "@rx ." "id:4,phase:1,pass,log"
SecMarker A
SecRule REQUEST_URI "@contains x=2" "id:5,phase:1,pass,nolog,ctl:ruleRemoveTargetById=6;REQUEST_METHOD"
SecRule REQUEST_METHOD "@streq GET" "id:6,phase:1,pass,nolog,ctl:ruleRemoveById=7"
SecRule REQUEST_METHOD "@rx ." "id:7,phase:1,pass,log"
SecRule REQUEST_PROTOCOL "@rx 1.1" "id:8,phase:2,pass,nolog,ctl:ruleRemoveById=9"
SecRule REQUEST_METHOD "@rx G" "id:9,phase:2,pass,log"
SecRule REQUEST_LINE "@rx T" "id:10,phase:1,pass,log"
"#;
    check(rules, 5);
    check(&format!("{rules}SecRuleUpdateTargetById 1 \"!REQUEST_METHOD\""), 5);
    check(&format!("{rules}SecRule MATCHED_VAR \"@rx ^(.*)$\" \"id:11,phase:1,pass,log,capture\"\n"), 6);
}

/// Rules on `TX` numbers, made at random, between rules that look at the message: what they come to is known
/// beforehand as long as no key holds anything unforeseen.
fn scores(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut random = |below: usize| random.below(below);
    let mut rules = "SecRuleEngine On\nSecAction \"id:1,phase:1,pass,nolog,setvar:tx.k0=2\"\n".to_owned();
    for id in 10..60 {
        let [key, other, number, phase] = [random(5), random(5), random(4), [1, 1, 2, 5][random(4)]];
        let than = if random(2) == 0 { number.to_string() } else { format!("%{{tx.k{other}}}") };
        let compare = ["eq", "lt", "ge"][random(3)];
        let set = match random(7) {
            0 => format!(",setvar:tx.k{key}={number}"),
            1 => format!(",setvar:tx.k{key}=+{number}"),
            2 => format!(",setvar:tx.k{key}=%{{tx.k{other}}}"),
            3 => format!(",setvar:tx.k{key}=+%{{tx.k{other}}},setvar:tx.k{other}=0"),
            4 => format!(",setvar:tx.k{key}=-%{{tx.k{other}}}"),
            5 => format!(",skip:{}", 1 + number),
            _ => String::new(),
        };
        let what = match random(9) {
            0 => format!("SecRule ARGS:a \"@eq {number}\""),
            1 => "SecAction".to_owned(),
            2 => format!("SecRule &TX:k{other} \"@eq {}\"", number % 2),
            _ => format!("SecRule TX:k{other} \"@{compare} {than}\""),
        };
        let text =
            if random(12) == 0 { format!(",setvar:'tx.k{key}=%{{tx.k{other}}} '") } else { String::new() };
        rules += &format!("{what} \"id:{id},phase:{phase},pass,nolog{set}{text}\"\n");
    }
    // In the order in which the keys came to be there.
    rules
        + "SecRule TX:/^k/ \"@rx .*\" \"id:99,phase:5,pass,nolog,capture,setvar:'tx.order=%{tx.order}|%{tx.0}'\"\n"
}

#[test]
fn scores_that_are_known_beforehand() {
    let mut known = 0;
    for seed in 0..300 {
        let rules = scores(seed);
        let plan = plan(&rules);
        known += plan.tx_blocks.len();
        for target in ["/", "/?a=0", "/?a=1", "/?a=2&a=3"] {
            let line = format!("GET {target} HTTP/1.1");
            let message = Message { line: &line, headers: &[(b"Host", b"h")], ..Message::default() };
            assert_equivalent(&plan, &mut Scratch::default(), &message);
        }
    }
    assert!(known > 300, "{known}");
}
