//! Exclusions on trial change no verdict; what they would change is told.

use std::sync::Arc;

use portcullis_event::{Action, DetectionMode};
use portcullis_inspect::{
    Excluded, Exclusion, Inspector, Outcome, Report, RuleExclusion, SemanticPolicy, Trial, TrialResult,
};
use portcullis_types::Class;

use crate::common::{DETECTORS, begin, inspector, plan, request_head, semantic};

const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecRule ARGS:q "@contains union" "id:1,phase:2,deny,t:lowercase"
SecRule ARGS:p "@contains odd" "id:2,phase:2,pass,log"
"#;
const UNION: &str = "1%27+UNION+SELECT+password+FROM+users--+";

fn policy(trial: bool) -> SemanticPolicy {
    let exclusion = Exclusion {
        class: Some(Class::Sqli),
        name: Some("q".to_owned()),
        path: Some("/find".to_owned()),
        trial,
        ..Exclusion::default()
    };
    SemanticPolicy { exclusions: vec![exclusion], ..SemanticPolicy::default() }
}

fn rule(trial: bool) -> RuleExclusion {
    RuleExclusion { rules: vec![1], path: Some("/find".to_owned()), trial, ..RuleExclusion::default() }
}

fn both(of_detector: bool, of_rule: bool) -> Arc<Inspector> {
    let inspector = inspector(plan(RULES)).with_rule_exclusions(vec![rule(of_rule)]);
    let semantic = semantic(&DETECTORS, policy(of_detector));
    Arc::new(inspector.with_semantic(DetectionMode::Both, semantic).with_trials())
}

fn get(inspector: &Arc<Inspector>, target: &str) -> Report {
    let mut inspection = begin(inspector);
    let text = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    if inspection.request_head(&request_head(&text), None) == portcullis_inspect::Step::Continue {
        inspection.request_end(false);
    }
    inspection.finish(&Outcome::default())
}

fn tried(semantic: &[u32], rules: &[u32], result: TrialResult) -> Option<(Excluded, TrialResult)> {
    Some((Excluded { semantic: semantic.to_vec(), rules: rules.to_vec() }, result))
}

#[test]
fn a_policy_without_trials_has_none() {
    let report = get(&both(false, false), &format!("/find?q={UNION}"));
    assert_eq!((report.action, report.trial), (Action::Pass, None));
}

/// The same verdicts as without the exclusions, whatever the request.
#[test]
fn a_trial_decides_nothing() {
    let plain = Arc::new(
        inspector(plan(RULES))
            .with_semantic(DetectionMode::Both, semantic(&DETECTORS, SemanticPolicy::default()))
            .with_trials(),
    );
    let on_trial = both(true, true);
    for target in [
        format!("/find?q={UNION}"),
        format!("/other?q={UNION}"),
        format!("/find?p={UNION}"),
        "/find?q=union".to_owned(),
        "/find?q=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(),
        "/find?p=odd".to_owned(),
        "/find?q=hello".to_owned(),
    ] {
        let (before, after) = (get(&plain, &target), get(&on_trial, &target));
        assert_eq!((before.action, &before.findings), (after.action, &after.findings), "{target}");
        assert_eq!(before.matched_rules, after.matched_rules, "{target}");
        assert_eq!(after.excluded, Excluded::default(), "{target}");
    }
}

#[test]
fn what_would_have_become_of_a_request_is_told() {
    let inspector = both(true, true);
    let of = |target: &str| get(&inspector, target).trial.unwrap();
    let union = format!("/find?q={UNION}");
    let passes = of(&union);
    assert_eq!(passes.seen, Excluded { semantic: vec![0], rules: vec![0] });
    // What the detector stopped first, the rule would have stopped next.
    assert_eq!(passes.tried, tried(&[0], &[0], TrialResult::Passes));
    // A rule that only logs finds something else: perhaps an attack.
    let lost = of(&format!("{union}&p=odd"));
    assert!(matches!(lost.tried, Some((_, TrialResult::Lost))), "{lost:?}");
    // Another field objects, too.
    let stopped = of(&format!("{union}&r=%3Cscript%3Ealert(1)%3C/script%3E"));
    assert!(matches!(stopped.tried, None | Some((_, TrialResult::Stopped))), "{stopped:?}");
    // Nothing that they name; the field alone is seen.
    for (target, semantic) in
        [("/find?q=hello", vec![0]), ("/find?p=odd", vec![]), ("/other?q=union", vec![])]
    {
        let trial = of(target);
        assert_eq!((trial.seen.semantic, trial.tried), (semantic, None), "{target}");
    }
    // Where the other counts already, one is enough.
    let one = get(&both(false, true), &union).trial.unwrap();
    assert_eq!(one.tried, tried(&[], &[0], TrialResult::Passes));
}

/// A client cannot make an unread body pass for a trial without a loss.
#[test]
fn what_was_not_seen_is_unknown() {
    let inspector = both(true, true);
    let head = |target: &str| {
        request_head(&format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        ))
    };
    let mut inspection = begin(&inspector);
    inspection.request_head(&head("/find"), None);
    inspection.request_body(format!("q={UNION}").as_bytes());
    inspection.request_end(false);
    let report = inspection.finish(&Outcome::default());
    assert_eq!(report.action, Action::Deny);
    assert!(matches!(report.trial, Some(Trial { tried: Some((_, TrialResult::Passes)), .. })), "{report:?}");
    // It is stopped for its head, and nobody reads on.
    let mut inspection = begin(&inspector);
    inspection.request_head(&head(&format!("/find?q={UNION}")), None);
    let report = inspection.finish(&Outcome::default());
    assert_eq!(report.action, Action::Deny);
    assert!(matches!(report.trial, Some(Trial { tried: Some((_, TrialResult::Unknown)), .. })), "{report:?}");
}
