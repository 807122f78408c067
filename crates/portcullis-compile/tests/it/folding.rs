//! Tests of folding: which rules are dead, and which must not be taken for dead. The comparison with the
//! reference evaluator, which does not fold, tests that folding never changes the outcome of a request.

use crate::common::plan;

/// `id: why` of each dead rule; no step may hold one of them.
#[track_caller]
fn check(rules: &str, dead: &[&str]) {
    let plan = plan(rules);
    let found: Vec<String> = plan
        .dead
        .iter()
        .map(|dead| format!("{}: {}", plan.rule(dead.rule).id, plan.dead_cause(&dead.why)))
        .collect();
    assert_eq!(found, dead, "{rules}");
    let running = plan.steps.iter().flatten().map(|step| step.rule);
    assert_eq!(running.filter(|rule| plan.dead.iter().any(|dead| dead.rule == *rule)).count(), 0);
    assert_eq!(plan.steps.iter().flatten().count() + plan.dead.len(), plan.rules.len());
}

const LEVEL_1: &str = "SecAction \"id:1,phase:1,pass,nolog,setvar:tx.level=1\"\n";

#[track_caller]
fn check_level_1(rules: &str, dead: &[&str]) {
    check(&format!("{LEVEL_1}{rules}"), dead);
}

#[test]
fn rules_behind_a_skip_that_is_always_taken() {
    check_level_1(
        "SecRule TX:LEVEL \"@lt 2\" \"id:2,phase:1,pass,nolog,skipAfter:END\"
         SecRule ARGS \"@rx a\" \"id:3,phase:1,pass\"
         SecRule ARGS \"@rx a\" \"id:4,phase:2,pass\"
         SecMarker END
         SecRule ARGS \"@rx a\" \"id:5,phase:1,pass\"",
        &["3: rule 2 always skips it"],
    );
    check_level_1(
        "SecRule TX:LEVEL \"@eq 1\" \"id:2,phase:1,pass,skip:1\"
         SecRule ARGS \"@rx a\" \"id:3,phase:1,pass\"
         SecRule ARGS \"@rx a\" \"id:4,phase:1,pass\"",
        &["3: rule 2 always skips it"],
    );
    // A rule that jumps over the skip lands behind it.
    check_level_1(
        "SecRule ARGS \"@rx b\" \"id:6,phase:1,pass,skipAfter:MIDDLE\"
         SecRule TX:LEVEL \"@lt 2\" \"id:2,phase:1,pass,nolog,skipAfter:END\"
         SecMarker MIDDLE
         SecRule ARGS \"@rx a\" \"id:3,phase:1,pass\"
         SecMarker END",
        &[],
    );
}

#[test]
fn skips_still_lead_where_they_led() {
    let plan = plan(&format!(
        "{LEVEL_1}SecRule ARGS \"@rx b\" \"id:2,phase:1,pass,skipAfter:END\"
         SecRule TX:LEVEL \"@gt 1\" \"id:3,phase:1,pass\"
         SecRule ARGS \"@rx a\" \"id:4,phase:1,pass,skip:2\"
         SecRule TX:LEVEL \"@gt 2\" \"id:5,phase:1,pass\"
         SecRule ARGS \"@rx a\" \"id:6,phase:1,pass\"
         SecMarker END
         SecRule ARGS \"@rx a\" \"id:7,phase:1,pass\""
    ));
    let steps: Vec<(u32, u32)> =
        plan.steps[0].iter().map(|step| (plan.rule(step.rule).id.0, step.skip_to)).collect();
    assert_eq!(steps, [(1, u32::MAX), (2, 4), (4, 4), (6, u32::MAX), (7, u32::MAX)]);
}

#[test]
fn conditions_that_are_always_false() {
    check_level_1(
        "SecRule TX:LEVEL \"@gt 1\" \"id:2,phase:1,deny\"
         SecRule &TX:LEVEL \"@eq 0\" \"id:3,phase:1,pass,setvar:tx.level=4\"
         SecRule TX:OTHER \"@ge 0\" \"id:4,phase:2,deny\"
         SecRule TX:LEVEL \"!@eq 1\" \"id:5,phase:4,pass\"
         SecRule TX:LEVEL \"@ge %{tx.level}\" \"id:6,phase:2,pass\"
         SecRule TX:LEVEL \"@gt %{tx.level}\" \"id:7,phase:2,pass\"",
        &[
            "2: TX:level is always 1 here",
            "3: TX:level is always 1 here",
            "4: TX:other is never set here",
            "7: TX:level is always 1 here",
            "5: TX:level is always 1 here",
        ],
    );
    check(
        "SecAction \"id:1,phase:1,pass,setvar:tx.a=2,setvar:tx.a=+3,setvar:tx.b=%{tx.a}\"
         SecRule TX:B \"!@eq 5\" \"id:2,phase:1,pass\"",
        &["2: TX:b is always 5 here"],
    );
}

#[test]
fn what_a_request_can_change_is_not_constant() {
    for rules in [
        // Set by a rule with a condition.
        "SecRule ARGS \"@rx a\" \"id:2,phase:1,pass,setvar:tx.level=2\"",
        // Or by a link of a chain that does not match as a whole.
        "SecRule ARGS \"@rx a\" \"id:2,phase:1,pass,chain,setvar:tx.level=2\"\nSecRule TX:OTHER \"@eq 9\"",
        // Under a name made at run time.
        "SecRule ARGS_NAMES \"@rx a\" \"id:2,phase:1,pass,setvar:tx.%{MATCHED_VAR}=2\"",
        "SecRule ARGS_NAMES \"@rx a\" \"id:2,phase:1,pass,setvar:tx.l%{MATCHED_VAR}=2\"",
        // From a text of the request.
        "SecAction \"id:2,phase:1,pass,setvar:tx.level=%{ARGS.a}\"",
        // Taken back.
        "SecRule ARGS \"@rx a\" \"id:2,phase:1,pass,setvar:!tx.level\"",
    ] {
        check_level_1(&format!("{rules}\nSecRule TX:LEVEL \"@gt 1\" \"id:3,phase:2,deny\""), &[]);
    }
    // A name that cannot become the key's does no harm.
    check_level_1(
        "SecRule ARGS_NAMES \"@rx a\" \"id:2,phase:1,pass,setvar:tx.count_%{MATCHED_VAR}=2\"
         SecRule TX:LEVEL \"@gt 1\" \"id:3,phase:2,deny\"",
        &["3: TX:level is always 1 here"],
    );
    // The captures are the engine's.
    check("SecAction \"id:1,phase:1,pass,setvar:tx.1=5\"\nSecRule TX:1 \"@lt 5\" \"id:2,phase:1,pass\"", &[]);
}

#[test]
fn a_phase_that_may_end_early_may_leave_a_key_unset() {
    for action in ["allow:phase", "deny", "allow"] {
        check(
            &format!(
                "SecRule ARGS \"@rx a\" \"id:2,phase:1,{action}\"
                 {LEVEL_1}
                 SecRule TX:LEVEL \"@gt 1\" \"id:3,phase:1,pass\"
                 SecRule &TX:LEVEL \"@eq 0\" \"id:4,phase:5,pass\""
            ),
            &["3: TX:level is always 1 here"],
        );
    }
}

#[test]
fn ctl_may_take_away_what_the_proof_needs() {
    // Before the key is set.
    check(
        &format!(
            "SecRule ARGS \"@rx a\" \"id:9,phase:1,pass,ctl:ruleRemoveById=1\"
             {LEVEL_1}
             SecRule &TX:LEVEL \"@eq 0\" \"id:2,phase:1,pass\""
        ),
        &[],
    );
    // Afterwards it is too late.
    check_level_1(
        "SecRule ARGS \"@rx a\" \"id:9,phase:1,pass,ctl:ruleRemoveById=1\"
         SecRule &TX:LEVEL \"@eq 0\" \"id:2,phase:1,pass\"",
        &["2: TX:level is always 1 here"],
    );
    let gate = "SecRule TX:LEVEL \"@lt 2\" \"id:2,phase:1,pass,nolog,tag:t,skipAfter:END\"
         SecRule ARGS \"@rx a\" \"id:3,phase:1,pass,tag:t\"
         SecMarker END";
    // The skip can be switched off without the rule behind it.
    check_level_1(&format!("SecRule ARGS \"@rx a\" \"id:9,phase:1,pass,ctl:ruleRemoveById=2\"\n{gate}"), &[]);
    // Both go, or none.
    check_level_1(
        &format!("SecRule ARGS \"@rx a\" \"id:9,phase:1,pass,ctl:ruleRemoveByTag=t\"\n{gate}"),
        &["3: rule 2 always skips it"],
    );
    // The target can be taken from the skip.
    check_level_1(
        &format!("SecRule ARGS \"@rx a\" \"id:9,phase:1,pass,ctl:ruleRemoveTargetById=2;TX:level\"\n{gate}"),
        &[],
    );
}

/// Checks the argument of the operator of rule 9, if it is known at load time.
#[track_caller]
fn check_argument(rules: &str, argument: Option<&str>) {
    let plan = plan(&format!("{rules}\nSecRule ARGS \"@within %{{tx.a}} %{{tx.b}}\" \"id:9,phase:2,pass\""));
    let rule = plan.rules.iter().find(|rule| rule.id.0 == 9).unwrap();
    let text = plan.links_of(rule)[0].operator.argument().and_then(|text| text.as_literal());
    assert_eq!(text.map(|text| String::from_utf8_lossy(text)).as_deref(), argument, "{rules}");
}

#[test]
fn macros_that_stand_for_one_text_are_replaced() {
    let set = "SecAction \"id:1,phase:1,pass,setvar:'tx.a=GET POST',setvar:tx.b=7\"\n";
    check_argument(set, Some("GET POST 7"));
    check_argument("", Some(" "));
    let unset_only = "SecRule &TX:b \"@eq 0\" \"id:2,phase:1,pass,setvar:tx.b=8\"";
    check_argument(&format!("{set}{unset_only}"), Some("GET POST 7"));
    // Values that depend on the request are not known.
    for more in [
        "SecRule ARGS:x \"@eq 1\" \"id:2,phase:1,pass,setvar:tx.a=PUT\"",
        "SecAction \"id:2,phase:1,pass,setvar:'tx.a=%{ARGS.x}'\"",
        "SecAction \"id:2,phase:1,pass,setvar:'tx.%{ARGS.x}=1'\"",
        "SecRule ARGS \"@rx .\" \"id:2,phase:1,pass,setvar:tx.b=+1\"",
        "SecRule ARGS:x \"@eq 1\" \"id:2,phase:1,pass,allow:phase\"\nSecAction \"id:3,phase:1,pass,setvar:tx.b=8\"",
        "SecRule ARGS:x \"@eq 1\" \"id:2,phase:1,pass,ctl:ruleRemoveById=3\"\nSecAction \"id:3,phase:1,pass,setvar:tx.b=8\"",
    ] {
        check_argument(&format!("{set}{more}"), None);
    }
    // Nor is what the rule itself changes between two of its values.
    let plan = plan(&format!(
        "{set}SecRule ARGS \"@within %{{tx.a}}\" \"id:9,phase:2,pass,setvar:tx.a=PUT\"\n\
         SecRule ARGS \"@within %{{tx.b}}\" \"id:10,phase:2,pass,setvar:tx.c=1\""
    ));
    let literal = plan.links.iter().map(|link| link.operator.argument().and_then(|text| text.as_literal()));
    let literal: Vec<_> = literal.flatten().collect();
    assert_eq!(literal, [b"7"]);
}
