//! Weighted scoring: rules that honest traffic triggers do not decide by their points alone, all others do as
//! ever; what matched in a value is evidence for the semantic detector there.

use std::sync::Arc;

use crate::common::{begin, inspector, plan, request_head, semantic, semantic_inspector};
use portcullis_event::{Action, DetectionMode, FindingOutcome};
use portcullis_inspect::{
    ClassAction, Exclusion, Field, Outcome, Report, SemanticPolicy, Weights, fingerprint,
};
use portcullis_semantic::{Class, Detector, Detectors, Found, Hint, Input, Profile, kinds};
use portcullis_types::Span;

kinds! {
    reference "https://example.org/";
    SUSPICION "test.suspicion" Error Quotable "what is not enough by itself";
}

/// Finds the word `suspicion`: a tenth of a point below the threshold.
#[derive(Debug)]
struct Suspicious;

static PROFILE: Profile =
    Profile::new(Class::Sqli, KINDS).hints(&[Hint::text("suspicion")]).weights("bias\t-2.6\n");

impl Detector for Suspicious {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        found.add(SUSPICION, Span::new(0, input.text.len()));
    }
}

/// Rules in the way of the CRS: each adds 5 points to the score of its paranoia level, and 949110 denies at
/// 5. Of the weights below the noisy ones are 101 (0.4), 102 (0.6), 103 (0.5) and 107 (0.9), all nothing in
/// fields for documents; 101 is sharp in fields for plain values, 103 in other parameters of the query, 104
/// everywhere; 110 looks for addresses, and 109 is not in the table.
const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecAction "id:1,phase:1,pass,nolog,setvar:tx.inbound_anomaly_score_threshold=5,setvar:tx.blocking_paranoia_level=1,setvar:tx.blocking_inbound_anomaly_score=0,setvar:tx.inbound_anomaly_score_pl1=0,setvar:tx.inbound_anomaly_score_pl2=0"
SecRule ARGS|REQUEST_COOKIES|REQUEST_HEADERS:X-A "@contains one" "id:101,phase:2,block,log,tag:'attack-sqli',msg:'One',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS|REQUEST_COOKIES|REQUEST_HEADERS:X-A "@contains two" "id:102,phase:2,block,log,tag:'attack-sqli',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS "@contains three" "id:103,phase:2,block,log,tag:'attack-xss',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS "@contains sharp" "id:104,phase:2,block,log,tag:'attack-sqli',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS "@contains half" "id:105,phase:2,block,log,tag:'attack-sqli',setvar:tx.inbound_anomaly_score_pl1=+3"
SecRule ARGS "@contains second" "id:106,phase:2,block,log,tag:'attack-sqli',setvar:tx.inbound_anomaly_score_pl2=+5"
SecRule ARGS "@contains strong" "id:107,phase:2,block,log,tag:'attack-sqli',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS "@contains address" "id:110,phase:2,block,log,tag:'attack-ssrf',setvar:tx.inbound_anomaly_score_pl1=+5"
SecRule ARGS "@contains own" "id:109,phase:2,block,log,setvar:tx.inbound_anomaly_score_pl1=+5"
"#;
const GATE: &str = r#"
SecAction "id:949060,phase:2,pass,nolog,setvar:tx.blocking_inbound_anomaly_score=+%{tx.inbound_anomaly_score_pl1}"
SecRule TX:BLOCKING_INBOUND_ANOMALY_SCORE "@ge %{tx.inbound_anomaly_score_threshold}" "id:949110,phase:2,deny,t:none,msg:'Inbound Anomaly Score Exceeded'"
"#;
/// As CRS 3 writes it.
const GATE_3: &str = r#"
SecAction "id:949060,phase:2,pass,nolog,setvar:tx.anomaly_score=+%{tx.anomaly_score_pl1}"
SecRule TX:ANOMALY_SCORE "@ge %{tx.inbound_anomaly_score_threshold}" "id:949110,phase:2,deny,t:none,msg:'Inbound Anomaly Score Exceeded'"
"#;

/// The weights of the rules above, by what they say there.
fn weights() -> Weights {
    let plan = plan(&format!("{RULES}{GATE}"));
    let mut table = String::new();
    let of_rules =
        [(101, 0.4), (102, 0.6), (103, 0.5), (104, 1.0), (105, 0.0), (106, 0.0), (107, 0.9), (110, 1.0)];
    for (id, weight) in of_rules {
        let rule = plan.rules.iter().find(|rule| rule.id.0 == id).unwrap();
        let in_documents = if id == 104 { weight } else { 0.0 };
        let in_plain_fields = if id == 101 { 1.0 } else { weight };
        let in_query = if id == 103 { 1.0 } else { weight };
        let in_fields = Field::ALL.map(|field| match field {
            Field::Document => in_documents,
            Field::Query => in_query,
            Field::Plain => in_plain_fields,
            _ => weight,
        });
        let weights = in_fields.map(|weight| format!("\t{weight}")).concat();
        table.push_str(&format!("{id}\t{:016x}{weights}\n", fingerprint(&plan, rule)));
    }
    Weights::parse(&table).unwrap()
}

fn run_rules(rules: &str, mode: DetectionMode, policy: SemanticPolicy, head: &str) -> Report {
    let detectors = Detectors::of(vec![Box::new(Suspicious)]).expect("weights");
    let plain = inspector(plan(rules));
    let weighted = if mode == DetectionMode::Both { plain.with_weights(&weights()) } else { plain };
    let inspector = Arc::new(match mode {
        DetectionMode::Crs => weighted,
        _ => weighted.with_semantic(mode, semantic(&Arc::new(detectors), policy)),
    });
    let mut inspection = begin(&inspector);
    let parsed = request_head(head);
    let body = &head.as_bytes()[parsed.received_len()..];
    inspection.request_head(&parsed, None);
    if !body.is_empty() {
        inspection.request_body(body);
    }
    inspection.request_end(false);
    inspection.finish(&Outcome::default())
}

fn run(mode: DetectionMode, policy: SemanticPolicy, query: &str) -> Report {
    let head = format!("GET /?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
    run_rules(&format!("{RULES}{GATE}"), mode, policy, &head)
}

#[track_caller]
fn check(mode: DetectionMode, query: &str, action: Action) {
    assert_eq!(run(mode, SemanticPolicy::default(), query).action, action, "{query}");
}

#[track_caller]
fn both(rules: &str, query: &str, action: Action) {
    message(rules, &format!("GET /?{query} HTTP/1.1\r\nHost: h\r\n\r\n"), action);
}

#[track_caller]
fn message(rules: &str, message: &str, action: Action) {
    let report = run_rules(rules, DetectionMode::Both, SemanticPolicy::default(), message);
    assert_eq!(report.action, action, "{message}");
}

#[test]
fn noisy_rules_decide_where_they_agree_on_a_value() {
    // The CRS alone denies each of these.
    for (query, action) in [
        ("q=one", Action::Detect),
        ("q=two", Action::Detect),
        ("q=one+two", Action::Deny),
        ("q=two+three", Action::Deny),
        ("q=one+three", Action::Detect),
        // The same rule twice is no second opinion, and neither is one about another value.
        ("q=one&q=one", Action::Detect),
        ("q=one&p=two", Action::Detect),
        ("q=one&p=one&r=one&s=one&t=two", Action::Detect),
        // Two values of one name are one place: no application splits an attack that way.
        ("q=one&q=two", Action::Deny),
        ("q=sharp", Action::Deny),
        ("q=one&p=sharp", Action::Deny),
        ("q=own", Action::Deny),
    ] {
        check(DetectionMode::Both, query, action);
        check(DetectionMode::Crs, query, Action::Deny);
    }
    check(DetectionMode::Both, "q=nothing", Action::Pass);
}

/// A field has the kind that its own name says, wherever it stands.
#[test]
fn a_rule_weighs_by_the_kind_of_field() {
    for (query, action) in [
        ("user_id=one", Action::Deny),
        ("id=one&q=one", Action::Deny),
        ("id=two", Action::Detect),
        ("identity=one", Action::Detect),
        ("id.name=one", Action::Detect),
        // The sender chooses the keys of an array.
        ("filter[page]=one", Action::Detect),
        ("lines=three", Action::Deny),
        ("q=three", Action::Detect),
    ] {
        check(DetectionMode::Both, query, action);
    }
    let post = |query: &str, action: Action| {
        let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 11";
        let head = format!("POST /?{query} HTTP/1.1\r\nHost: h\r\n{form}\r\n\r\nlines=three");
        message(&format!("{RULES}{GATE}"), &head, action);
    };
    post("", Action::Detect);
    post("lines=x", Action::Deny);
    post("Lines=x", Action::Deny);
}

/// A browser follows where a login leads back to; a server loads what other parameters name.
#[test]
fn addresses_that_a_login_leads_back_to() {
    for (query, action) in [
        ("redirect_uri=address", Action::Detect),
        ("post_logout_redirect_uri=address", Action::Detect),
        ("uri=address", Action::Deny),
        ("redirect=address", Action::Deny),
        ("redirect_uri=sharp", Action::Deny),
        ("redirect_uri=own", Action::Deny),
        ("id[]redirect_uri=address", Action::Deny),
        ("redirect_uri=address&uri=address", Action::Deny),
    ] {
        check(DetectionMode::Both, query, action);
    }
}

#[test]
fn adding_to_a_request_never_lets_it_through() {
    for attack in ["q=one+two", "q=sharp", "q=own", "q=a+suspicion+strong"] {
        check(DetectionMode::Both, attack, Action::Deny);
        for more in ["p=one", "p=two", "q=three", "p=half&r=half&s=half", "z=nothing"] {
            check(DetectionMode::Both, &format!("{attack}&{more}"), Action::Deny);
            check(DetectionMode::Both, &format!("{more}&{attack}"), Action::Deny);
        }
        // More matches than are remembered count in full.
        let many: String = (0..900).map(|at| format!("n{at}=one+three&")).collect();
        check(DetectionMode::Both, &format!("{attack}&{many}z=one"), Action::Deny);
    }
}

#[test]
fn a_withheld_score_is_seen_in_logs_as_it_is() {
    let report = run(DetectionMode::Both, SemanticPolicy::default(), "q=one");
    assert!(report.score_withheld);
    let event = report.event.unwrap();
    assert_eq!(event.verdict.rule_id, None);
    assert_eq!((event.scores.inbound_blocking, event.matches.len()), (Some(5), 2));
    assert_eq!(event.matches[1].rule.rule_id.0, 949110);
    let report = run(DetectionMode::Both, SemanticPolicy::default(), "q=one+two");
    assert!(!report.score_withheld);
    let verdict = report.event.unwrap().verdict;
    assert_eq!((verdict.rule_id.map(|id| id.0), verdict.status), (Some(949110), Some(403)));
    assert_eq!(verdict.reason, "Inbound Anomaly Score Exceeded");
}

/// Where the engine only reports, an event names the rule that would have stopped the request, and none where
/// none would have: below the threshold, or where the score is withheld.
#[test]
fn what_would_have_been_stopped_is_told_from_what_only_matched() {
    let rules = format!("{RULES}{GATE}").replace("SecRuleEngine On", "SecRuleEngine DetectionOnly");
    let verdict = |mode, query: &str| {
        let head = format!("GET /?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
        let event = run_rules(&rules, mode, SemanticPolicy::default(), &head).event.unwrap();
        assert_eq!((event.verdict.action, event.verdict.status), (Action::Detect, None), "{query}");
        (event.verdict.rule_id.map(|id| id.0), event.verdict.reason)
    };
    let would = (Some(949110), "Inbound Anomaly Score Exceeded".to_owned());
    assert_eq!(verdict(DetectionMode::Crs, "q=one"), would);
    assert_eq!(verdict(DetectionMode::Crs, "q=half"), (None, String::new()));
    assert_eq!(verdict(DetectionMode::Both, "q=one+two"), would);
    assert_eq!(verdict(DetectionMode::Both, "q=one"), (None, String::new()), "withheld");
}

#[test]
fn what_an_operator_wrote_counts_in_full() {
    let rules = |change: &str| format!("{RULES}{GATE}{change}\n");
    both(&rules(""), "q=one", Action::Detect);
    // Rules of their own, with an id of the CRS, with its tags, in its score.
    let same_id = RULES.replace("@contains one", "@contains mine");
    both(&format!("{same_id}{GATE}"), "q=mine", Action::Deny);
    let own_score = "SecAction \"id:7,phase:2,pass,nolog,setvar:tx.inbound_anomaly_score_pl1=+5\"";
    both(&format!("{RULES}{own_score}\n{GATE}"), "q=x", Action::Deny);
    // Changes of a rule that make it another one: targets, actions.
    both(&rules("SecRuleUpdateTargetById 101 \"REQUEST_HEADERS\""), "q=one", Action::Deny);
    both(&rules("SecRuleUpdateActionById 101 \"severity:CRITICAL\""), "q=one", Action::Deny);
    // The threshold is theirs, and so are points that are not those of one rule.
    let higher = RULES.replace("score_threshold=5", "score_threshold=10");
    both(&format!("{higher}{GATE}"), "q=sharp", Action::Detect);
    both(&format!("{higher}{GATE}"), "q=one+two", Action::Deny);
    // A gate that they changed is a rule of their own.
    both(&rules("SecRuleUpdateActionById 949110 \"deny,status:406\""), "q=one", Action::Deny);
    both(&rules("SecRuleUpdateActionById 949110 \"pass\""), "q=sharp", Action::Detect);
    let own_gate = GATE.replace("@ge %{", "@gt %{");
    both(&format!("{RULES}{own_gate}"), "q=own", Action::Detect);
}

#[test]
fn an_exclusion_of_the_operator_leaves_a_rule_what_it_was() {
    let update = |change: &str| format!("{RULES}{GATE}{change}\n");
    for change in ["SecRuleUpdateTargetById 101 \"!ARGS:p\"", "SecRuleUpdateTargetById 101-104 \"!ARGS:p\""] {
        both(&update(change), "q=one", Action::Detect);
        both(&update(change), "q=one+two", Action::Deny);
    }
    both(&update("SecRuleUpdateTargetById 101-104 \"!ARGS:p\""), "p=one+two+sharp", Action::Pass);
    both(&update("SecRuleRemoveById 104"), "q=sharp", Action::Pass);
    // At run time.
    let ctl = |what: &str| {
        format!("SecRule ARGS:key \"@streq x\" \"id:2,phase:1,pass,nolog,ctl:{what}\"\n{RULES}{GATE}")
    };
    both(&ctl("ruleRemoveTargetById=102;ARGS:q"), "q=one+two", Action::Deny);
    both(&ctl("ruleRemoveTargetById=102;ARGS:q"), "q=one+two&key=x", Action::Detect);
    both(&ctl("ruleRemoveById=104"), "q=sharp&key=x", Action::Pass);
    both(&ctl("ruleEngine=DetectionOnly"), "q=one+two&key=x", Action::Detect);
}

#[test]
fn only_what_the_gate_adds_up_is_weighed() {
    // Points of a paranoia level above the blocking one are in no score that blocks.
    check(DetectionMode::Both, "q=second", Action::Detect);
    check(DetectionMode::Both, "q=second+one", Action::Detect);
    // Points below the threshold add up across values where they count.
    check(DetectionMode::Both, "q=half&p=half", Action::Detect);
    let gate_3 = format!("{RULES}{GATE_3}")
        .replace("inbound_anomaly_score_pl", "anomaly_score_pl")
        .replace("blocking_paranoia_level", "paranoia_level");
    both(&gate_3, "q=one", Action::Detect);
    both(&gate_3, "q=one+two", Action::Deny);
    both(&gate_3, "q=sharp", Action::Deny);
    // Without a level up to which points count, all do.
    let without = format!("{RULES}{GATE}").replace("setvar:tx.blocking_paranoia_level=1,", "");
    both(&without, "q=one", Action::Deny);
}

#[test]
fn a_value_is_one_place_in_all_parts_of_the_message() {
    let head = |fields: &str| format!("GET /?q=one HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let action = |head: &str| {
        let rules = format!("{RULES}{GATE}");
        run_rules(&rules, DetectionMode::Both, SemanticPolicy::default(), head).action
    };
    assert_eq!(action(&head("Cookie: q=two\r\n")), Action::Detect, "another place of the same name");
    assert_eq!(action(&head("Cookie: c=one two\r\n")), Action::Deny);
    assert_eq!(action(&head("X-A: two one\r\n")), Action::Deny);
}

/// In a field that the site made for statements, rules about SQL words have no weight, and the detector
/// judges by structure; rules about something else, rules that the table does not know, and query parameters
/// count there as anywhere.
#[test]
fn rules_about_what_a_field_is_for_do_not_decide() {
    let action = |mode: DetectionMode, query: &str, body: &str| {
        let head = format!(
            "POST /?{query} HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        run_rules(&format!("{RULES}{GATE}"), mode, SemanticPolicy::default(), &head).action
    };
    assert_ne!(action(DetectionMode::Both, "", "report_sql=sharp"), Action::Deny);
    assert_ne!(action(DetectionMode::Both, "", "report_sql=strong+one"), Action::Deny);
    assert_ne!(action(DetectionMode::Both, "", "user[password]=sharp"), Action::Deny);
    for (query, body) in [
        ("password=sharp", ""),
        ("", "comment=sharp"),
        ("", "id=sharp"),
        ("report_sql=sharp", ""),
        ("report_sql=x", "report_sql=sharp"),
        ("", "report_sql=own"),
        ("", "report_sql=sharp&id=sharp"),
        ("", "id%00report_sql=sharp"),
    ] {
        assert_eq!(action(DetectionMode::Both, query, body), Action::Deny, "{query} {body}");
    }
    assert_eq!(action(DetectionMode::Crs, "", "report_sql=sharp"), Action::Deny);
    // A rule of that class that the table does not know, or that an operator has changed.
    let changed = [
        format!("{RULES}{GATE}").replace("@contains sharp", "@contains shar"),
        format!("{RULES}{GATE}SecRuleUpdateActionById 104 \"block,severity:2\"\n"),
    ];
    for rules in changed {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 16\r\n\r\nreport_sql=sharp";
        assert_eq!(
            run_rules(&rules, DetectionMode::Both, SemanticPolicy::default(), head).action,
            Action::Deny
        );
    }
}

#[test]
fn noisy_rules_say_nothing_in_a_field_that_the_site_made_for_documents() {
    let post = |target: &str, body: &str, action: Action| {
        let form = "Content-Type: application/x-www-form-urlencoded";
        let length = body.len();
        let head =
            format!("POST {target} HTTP/1.1\r\nHost: h\r\n{form}\r\nContent-Length: {length}\r\n\r\n{body}");
        message(&format!("{RULES}{GATE}"), &head, action);
    };
    post("/", "comment=one+two", Action::Detect);
    post("/", "post[bodyHtml]=one+two+three", Action::Detect);
    post("/", "comment=sharp", Action::Deny);
    post("/", "comment=own", Action::Deny);
    // Choices of the sender make no field one for documents: another place, a name that PHP reads as `q`,
    // further fields.
    post("/", "q=one+two", Action::Deny);
    post("/", "q=one+two&comment=one", Action::Deny);
    post("/?comment=one+two", "q=nothing", Action::Deny);
    post("/?comment=nothing", "comment=one+two", Action::Deny);
    post("/?COMMENT=nothing", "comment=one+two", Action::Deny);
    post("/", "q[]comment=one+two", Action::Deny);
    post("/", "q%00comment=one+two", Action::Deny);
    // Names that differ in case only are one place: `postCode` is a field for code, `postcode` is none.
    post("/", "postCode=one+two", Action::Detect);
    for body in ["postcode=one+two", "postCode=one+two&postcode=one+two", "postcode=one+two&postCode=one+two"]
    {
        post("/", body, Action::Deny);
    }
}

#[test]
fn a_suspicion_and_rules_about_the_same_value_make_an_attack() {
    let (both, semantic) = (DetectionMode::Both, DetectionMode::Semantic);
    check(both, "q=a+suspicion+strong", Action::Deny);
    // Neither alone, nor rules of another kind or about another value, nor where rules are not evidence.
    check(both, "q=a+suspicion+here", Action::Pass);
    check(both, "q=nothing+strong", Action::Detect);
    check(both, "q=a+suspicion+three", Action::Detect);
    check(both, "q=a+suspicion+here&p=strong", Action::Detect);
    check(semantic, "q=a+suspicion+here", Action::Pass);
}

#[test]
fn the_score_says_what_rules_added() {
    let report = run(DetectionMode::Both, SemanticPolicy::default(), "q=a+suspicion+strong");
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Blocked)]);
    let event = report.event.unwrap();
    let score = &event.scores.semantic[0];
    assert!(score.points >= score.threshold && score.outcome == FindingOutcome::Blocked, "{score:?}");
    assert_eq!((event.verdict.class, event.verdict.rule_id), (Some(Class::Sqli), None));
}

#[test]
fn an_exclusion_of_the_detector_holds_for_what_noisy_rules_add() {
    let exclusion = Exclusion { name: Some("q".to_owned()), ..Exclusion::default() };
    let policy = SemanticPolicy { exclusions: vec![exclusion], ..SemanticPolicy::default() };
    let report = run(DetectionMode::Both, policy, "q=a+suspicion+strong");
    assert_eq!(report.action, Action::Detect);
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Excluded)]);
    let policy =
        SemanticPolicy { classes: vec![(Class::Sqli, ClassAction::Log)], ..SemanticPolicy::default() };
    let report = run(DetectionMode::Both, policy, "q=a+suspicion+strong");
    assert_eq!(report.findings, [(Class::Sqli, FindingOutcome::Detected)]);
}

/// The fingerprint is that of what a rule says, not of how it is called or what it does.
#[test]
fn fingerprints_are_of_contents() {
    let of = |rules: &str| {
        let plan = plan(rules);
        fingerprint(&plan, &plan.rules[0])
    };
    let rule = r#"SecRule ARGS|XML:/* "@rx a+b" "id:1,phase:2,t:none,t:lowercase,pass,msg:'m'""#;
    let base = of(rule);
    for same in [
        r#"SecRule XML:/*|ARGS "@rx a+b" "id:7,phase:2,pass,t:lowercase,msg:'other',tag:'x',severity:2,setvar:tx.a=+5""#.to_owned(),
        r#"SecRule ARGS|XML:/*|!ARGS:p "a+b" "id:1,phase:2,t:lowercase,deny""#.to_owned(),
        format!("{rule}\nSecRuleUpdateTargetById 1 \"!ARGS:/^x/\"\n"),
    ] {
        assert_eq!(of(&same), base, "{same}");
    }
    for other in [
        rule.replace("a+b", "a+c"),
        rule.replace("@rx a", "!@rx a"),
        rule.replace("ARGS|", "ARGS:q|"),
        rule.replace("ARGS|", "&ARGS|"),
        rule.replace("XML:/*", "XML://@*"),
        rule.replace("t:lowercase", "t:uppercase"),
        rule.replace("pass", "pass,multiMatch"),
        rule.replace("pass", "pass,chain") + "\nSecRule ARGS \"@rx z\" \"t:none\"",
        format!("{rule}\nSecRuleUpdateTargetById 1 \"REQUEST_HEADERS\"\n"),
    ] {
        assert_ne!(of(&other), base, "{other}");
    }
    let words = |words: &str| of(&format!("SecRule ARGS \"@pm {words}\" \"id:1,phase:2,pass\""));
    assert_ne!(words("a b"), words("a b c"));
}

/// An event tells all of what decided, and of the rest how much there was.
#[test]
fn findings_below_the_threshold_are_few_and_counted() {
    let suspicions: String = (0..10).map(|number| format!("p{number}=a+suspicion+here&")).collect();
    let report =
        run(DetectionMode::Both, SemanticPolicy::default(), &format!("{suspicions}q=a+suspicion+strong"));
    let event = report.event.unwrap();
    assert_eq!(event.verdict.class, Some(Class::Sqli));
    let names: Vec<&str> = event.findings.iter().map(|found| found.name.as_str()).collect();
    assert_eq!((names, event.findings_below, event.findings_omitted), (vec!["p0", "p1", "p2", "q"], 7, 0));
}

/// One suppressed finding of each exception is told, however many one of them suppresses.
#[test]
fn each_exception_is_told() {
    let inspector = semantic_inspector("SecRuleEngine On\n", SemanticPolicy::default());
    let mut inspection = begin(&inspector);
    let names = ["q", "query", "search", "s", "k", "keyword", "keywords", "term", "terms"];
    let said: String = names.iter().map(|name| format!("{name}=current_user()&")).collect();
    let target = format!("/?{said}find=localhost:8080&id=1+union+select+user,password+from+users");
    let head = request_head(&format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"));
    inspection.request_head(&head, None);
    inspection.request_end(false);
    let event = inspection.finish(&Outcome::default()).event.unwrap();
    let rows = event.findings.iter().filter_map(|found| found.suppressed_by.as_ref());
    let rows: Vec<&str> = rows.map(|row| &*row.exception).collect();
    assert_eq!(rows, ["function-said", "address-said"]);
    assert_eq!(event.findings_suppressed, 8);
}
