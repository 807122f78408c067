//! The trees of single pieces of text.

use portcullis_seclang::ast::*;
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::settings::{BodyProcessor, RuleEngine, Setting};
use portcullis_seclang::{MemoryFiles, Parsed, Root, argument_span, parse};
use portcullis_types::{Phase, RuleId, Variable};

fn read(text: &str) -> Parsed {
    parse(&[Root::Text { name: "test.conf".into(), text: text.into() }], &MemoryFiles::default())
}

#[track_caller]
fn directives(text: &str) -> Vec<Directive> {
    let parsed = read(text);
    let shown: Vec<String> = parsed.diagnostics.iter().map(|d| d.render(&parsed.sources)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    parsed.document.directives.into_iter().map(|d| d.node).collect()
}

#[track_caller]
fn rule(text: &str) -> (Vec<Target>, Option<Operator>, Vec<Action>) {
    match directives(text).remove(0) {
        Directive::Rule(Rule { condition, actions }) => {
            let actions = actions.into_iter().map(|a| a.node).collect();
            match condition {
                None => (Vec::new(), None, actions),
                Some(Condition { targets, operator }) => {
                    (targets.into_iter().map(|t| t.node).collect(), Some(operator.node), actions)
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

fn target(kind: TargetKind, variable: Variable, selector: Option<Selector>) -> Target {
    Target { kind, variable, selector }
}

#[test]
fn targets_with_signs_keys_regexes_and_paths() {
    use TargetKind::*;
    let text = r#"SecRule "ARGS|!ARGS:a b" "@rx x" "id:1""#;
    assert!(read(text).has_errors(), "a blank ends a target");
    let (targets, ..) = rule(
        r#"SecRule "&REQUEST_HEADERS:Host | ARGS:/^(?:a|b):c,d e/,!args:'/x\'y\\w/'|XML:/*|XML://@*|TX:'a|b'|HTTP_X-A|ARGS:'/k'" "@rx x" "id:1""#,
    );
    assert_eq!(
        targets,
        [
            target(Count, Variable::RequestHeaders, Some(Selector::Key("Host".into()))),
            target(Values, Variable::Args, Some(Selector::Regex("^(?:a|b):c,d e".into()))),
            target(Exclude, Variable::Args, Some(Selector::Regex(r"x'y\w".into()))),
            target(Values, Variable::Xml, Some(Selector::XPath("/*".into()))),
            target(Values, Variable::Xml, Some(Selector::XPath("//@*".into()))),
            target(Values, Variable::Tx, Some(Selector::Key("a|b".into()))),
            target(Values, Variable::RequestHeaders, Some(Selector::Key("X-A".into()))),
            target(Values, Variable::Args, Some(Selector::Key("/k".into()))),
        ]
    );
}

#[test]
fn operators_negated_bare_and_named() {
    let operator = |text: &str| rule(&format!("SecRule ARGS {text} \"id:1\"")).1.unwrap();
    let expect = |negated, name, argument: &str| Operator { negated, name, argument: argument.into() };
    assert_eq!(operator(r#""^a b$""#), expect(false, OperatorName::Rx, "^a b$"));
    assert_eq!(operator(r#""!^a""#), expect(true, OperatorName::Rx, "^a"));
    assert_eq!(operator(r#""! @WITHIN  a b ""#), expect(true, OperatorName::Within, "a b "));
    assert_eq!(operator(r#""@rx a\"b\\c\d""#), expect(false, OperatorName::Rx, r#"a"b\c\d"#));
    assert_eq!(operator(r#""""#), expect(false, OperatorName::Rx, ""));
    assert_eq!(operator("@detectSQLi"), expect(false, OperatorName::DetectSqli, ""));
    assert_eq!(operator(r#""@pmf a.data b.data""#), expect(false, OperatorName::PmFromFile, "a.data b.data"));
}

#[test]
fn actions_with_blanks_quotes_and_continuations() {
    let (.., actions) = rule(
        "SecAction \"id:'200000', phase:2 ,\\\r\n    msg:'a, \\\\'b\\\\' \\\nc',\\\n  t:NONE,setvar:'tx.a.b=%{tx.c},d',setvar:!tx.e,setvar:tx.f,\\\n  setvar:tx.g=+1,setvar:tx.h=-%{tx.i},,setvar:'tx.j=  +2'\"",
    );
    let set = |key: &str, operation| {
        let variable = VariableKey { collection: Variable::Tx, key: key.into() };
        Action::SetVar(SetVar { variable, operation })
    };
    assert_eq!(
        actions,
        [
            Action::Id(RuleId(200_000)),
            Action::Phase(Phase::RequestBody),
            Action::Msg("a, 'b' c".into()),
            Action::TransformNone,
            set("a.b", SetVarOperation::Set("%{tx.c},d".into())),
            set("e", SetVarOperation::Unset),
            set("f", SetVarOperation::Set("1".into())),
            set("g", SetVarOperation::Add("1".into())),
            set("h", SetVarOperation::Subtract("%{tx.i}".into())),
            set("j", SetVarOperation::Add("2".into())),
        ]
    );
}

#[test]
fn ctl_options_are_typed() {
    let (.., actions) = rule(
        "SecAction \"id:1,phase:1,ctl:ruleEngine=detectiononly,ctl:requestBodyProcessor=xml,ctl:'ruleRemoveById=1 5-9',\\\n ctl:'ruleRemoveTargetById=1-2;ARGS:a,REQUEST_COOKIES:/^b/',ctl:ruleRemoveTargetByTag=x/y;ARGS\"",
    );
    let args = |key: &str| Target {
        kind: TargetKind::Values,
        variable: Variable::Args,
        selector: Some(Selector::Key(key.into())),
    };
    let cookies = Target {
        kind: TargetKind::Values,
        variable: Variable::RequestCookies,
        selector: Some(Selector::Regex("^b".into())),
    };
    let ids = vec![IdRange { first: 1, last: 2 }];
    assert_eq!(
        actions[2..],
        [
            Action::Ctl(Ctl::RuleEngine(RuleEngine::DetectionOnly)),
            Action::Ctl(Ctl::RequestBodyProcessor(BodyProcessor::Xml)),
            Action::Ctl(Ctl::RuleRemoveById(vec![
                IdRange { first: 1, last: 1 },
                IdRange { first: 5, last: 9 }
            ])),
            Action::Ctl(Ctl::RuleRemoveTargetById { ids: ids.clone(), target: args("a") }),
            Action::Ctl(Ctl::RuleRemoveTargetById { ids, target: cookies }),
            Action::Ctl(Ctl::RuleRemoveTargetByTag {
                tag: "x/y".into(),
                target: Target { kind: TargetKind::Values, variable: Variable::Args, selector: None }
            }),
        ]
    );
}

/// Rule files without comments and blank lines have a rule right after a chained one that has no actions.
#[test]
fn a_chain_link_may_have_no_actions() {
    let all = directives("SecRule ARGS a \"id:1,chain\"\nSecRule ARGS b\nSecRule ARGS c \"id:2\"\n");
    let actions: Vec<usize> =
        all.iter().map(|d| if let Directive::Rule(r) = d { r.actions.len() } else { 99 }).collect();
    assert_eq!(actions, [2, 0, 1]);
}

#[test]
fn includes_are_relative_sorted_and_take_their_place() {
    let file = |path: &str, text: &str| (path.into(), text.as_bytes().to_vec());
    let files = MemoryFiles(
        [
            file("etc/main.conf", "Include rules/*.conf\nSecRuleEngine Off\n"),
            file("etc/rules/20.conf", "SecMarker b\n"),
            file("etc/rules/10.conf", "SecMarker a\nIncludeOptional ../extra/*.conf\n"),
            file("etc/rules/readme.txt", "no directive\n"),
            file("etc/extra/x.conf", "SecMarker x\n"),
        ]
        .into_iter()
        .collect(),
    );
    let parsed = parse(&[Root::File("etc/main.conf".into())], &files);
    assert!(!parsed.has_errors());
    let nodes: Vec<Directive> = parsed.document.directives.into_iter().map(|d| d.node).collect();
    assert_eq!(
        nodes,
        [
            Directive::Marker("a".into()),
            Directive::Marker("x".into()),
            Directive::Marker("b".into()),
            Directive::Setting(Setting::RuleEngine(RuleEngine::Off)),
        ]
    );
    assert_eq!(parsed.sources.files().count(), 4);
}

#[test]
fn a_place_in_an_operators_argument_is_found_through_quotes_and_continuations() {
    let text = "SecRule ARGS \"!@rx a\\\"b\\\n[c\" \"id:1\"\n";
    let parsed = read(text);
    let Directive::Rule(Rule { condition: Some(condition), .. }) = &parsed.document.directives[0].node else {
        panic!();
    };
    let argument = &condition.operator.node.argument;
    let at = argument.iter().position(|&b| b == b'[').unwrap();
    let span = argument_span(&parsed.sources, &condition.operator, at);
    assert_eq!(parsed.sources.slice(span), b"[");
    assert_eq!(parsed.sources.position(span).line, 2);
    let end = argument_span(&parsed.sources, &condition.operator, argument.len());
    assert_eq!(end.span.len(), 0);
}

#[test]
fn several_patterns_of_one_removal_become_one_directive_each() {
    assert_eq!(
        directives("SecRuleRemoveByTag a b\nSecRuleRemoveById 1 \"5-9\"\n"),
        [
            Directive::RemoveByTag("a".into()),
            Directive::RemoveByTag("b".into()),
            Directive::RemoveById(vec![IdRange { first: 1, last: 1 }, IdRange { first: 5, last: 9 }]),
        ]
    );
}

#[test]
fn limits_are_errors() {
    let many = "t:none,".repeat(2000);
    assert!(read(&format!("SecAction \"id:1,{many}\"\n")).has_errors());
    let many = "ARGS|".repeat(2000);
    assert!(read(&format!("SecRule {many}ARGS a \"id:1\"\n")).has_errors());
    let parsed = read(&"Sec\n".repeat(5000));
    assert_eq!(parsed.diagnostics.len(), portcullis_seclang::limits::DIAGNOSTICS_MAX + 1);
    let long = format!("SecMarker {}\n", "a".repeat(portcullis_seclang::limits::DIRECTIVE_BYTES_MAX));
    assert!(read(&long).has_errors());
}
