//! Rules that run in a few steps, or were run at load time, do what they do on the way of all others: a transaction that
//! keeps a trace takes that way for every rule.

use std::sync::Arc;

use portcullis_compile::compile;
use portcullis_engine::{Connection, NoCollections, Plan, Progress, RequestLine, Scratch, Transaction};
use portcullis_seclang::{MemoryFiles, Root, parse};

fn plan(rules: &str) -> Arc<Plan> {
    let files = MemoryFiles::default();
    let parsed = parse(&[Root::Text { name: "test.conf".into(), text: rules.into() }], &files);
    let compiled = compile(&parsed.document, &parsed.sources, &files);
    Arc::new(compiled.plan.unwrap_or_else(|| panic!("{:?}\n{rules}", compiled.diagnostics)))
}

/// Keys and values.
type Tx = Vec<(Vec<u8>, Vec<u8>)>;

/// All that a transaction shows of its matches, and `TX`.
fn run(plan: &Arc<Plan>, target: &str, trace: bool) -> (Vec<String>, Tx) {
    let connection = Connection {
        client: "192.0.2.7:4711".parse().unwrap(),
        server: "192.0.2.1:80".parse().unwrap(),
        unique_id: "id".to_owned(),
        epoch_seconds: 0,
        utc_offset_seconds: 0,
    };
    let collections = Arc::new(NoCollections);
    let mut transaction = Transaction::new(Arc::clone(plan), collections, Scratch::default(), &connection);
    if trace {
        transaction.keep_trace(None);
    }
    let line = format!("GET {target} HTTP/1.1");
    let line = RequestLine {
        line: line.as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    assert_eq!(transaction.request_head(line, [(&b"Host"[..], &b"h"[..])]), Progress::Done(None));
    assert_eq!(transaction.request_end(false), Progress::Done(None));
    transaction.finish();
    let matches = transaction.matches().iter().map(|found| {
        let view = transaction.view(found);
        format!(
            "{} {:?} {} = {} raw {} msg {} {:?} {} {:?}",
            view.rule.id,
            found.phase,
            view.target.escape_ascii(),
            view.value.escape_ascii(),
            view.raw.escape_ascii(),
            view.msg.escape_ascii(),
            view.changes.iter().map(|(key, by)| format!("{}+{by}", key.escape_ascii())).collect::<Vec<_>>(),
            found.link,
            found.found,
        )
    });
    (matches.collect(), transaction.tx_values())
}

/// With and without a trace, and this many matches.
#[track_caller]
fn check(rules: &str, matches: usize) {
    let plan = plan(rules);
    for target in ["/", "/?off=1", "/?x=2&a=b"] {
        let short = run(&plan, target, false);
        assert_eq!(short, run(&plan, target, true), "{target}\n{rules}");
        if target == "/" {
            assert_eq!(short.0.len(), matches, "{short:#?}\n{rules}");
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
