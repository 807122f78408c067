//! Rules with every word of the language load and run to their end, in bounded memory, whatever they say.
//!
//! `PORTCULLIS_SEED=N` starts there, `PORTCULLIS_CASES=N` runs more.

use std::sync::Arc;

use portcullis_compile::compile;
use portcullis_engine::Plan;
use portcullis_reference::Request;
use portcullis_reference::anything::settings_and_rules;
use portcullis_seclang::{MemoryFiles, Root, parse};
use portcullis_testkit::random::Random;

use crate::generated::{number, request};
use crate::support::survive;

/// The plan, if the rules load.
fn load(rules: &str) -> Option<Plan> {
    let mut files = MemoryFiles::default();
    files.0.insert("words.txt".into(), b"a\nab\n10.0.0.1\n".to_vec());
    let parsed = parse(&[Root::Text { name: "r.conf".into(), text: rules.as_bytes().to_vec() }], &files);
    // Loads go on behind mistakes, and so does the compiler.
    let plan = compile(&parsed.document, &parsed.sources, &files).plan?;
    (!parsed.has_errors()).then_some(plan)
}

#[test]
fn no_text_of_a_rule_ends_the_process() {
    let (first, cases) = (number("PORTCULLIS_SEED", 1), number("PORTCULLIS_CASES", 300));
    let (mut written, mut loaded, mut matches) = (0, 0, 0);
    for seed in first..first + cases {
        for modsecurity3 in [false, true] {
            let mut random = Random::new(seed);
            let (settings, rules) = settings_and_rules(modsecurity3, &mut |count| random.below(count));
            written += rules.len();
            let mut text = settings;
            for rule in rules {
                // Those with a mistake are left out.
                let longer = format!("{text}{rule}");
                if load(&longer).is_some() {
                    text = longer;
                    loaded += 1;
                }
            }
            let Some(plan) = load(&text).map(Arc::new) else { panic!("seed {seed}\n{text}") };
            let mut requests = vec![request(&mut random), request(&mut random)];
            let many = vec!["a=ab"; 60].join("&");
            let form = "application/x-www-form-urlencoded";
            let post = Request::post(&format!("/a?{many}"), form, many.as_str());
            requests.push(post.answered(200, "text/html", "<p>ab</p>"));
            println!("seed {seed}\n{text}");
            for request in &requests {
                matches += survive(&plan, request);
            }
        }
    }
    println!("{loaded} of {written} rules load, {matches} matches");
    assert!(2 * loaded > written, "the rules hardly load: {loaded} of {written}");
    assert!(matches as u64 > cases, "the rules hardly match: {matches}");
}

/// Texts that hold themselves, directly, crosswise, and through a variable.
#[test]
fn a_text_cannot_hold_itself() {
    for rule in [
        "msg:'m',logdata:'%{rule.logdata}'",
        "msg:'%{rule.msg}'",
        "msg:'%{RULE.logdata}',logdata:'%{RULE:msg}'",
        "msg:'a %{rule.msg} b',setvar:'tx.m=%{rule.msg}',setenv:'m=%{rule.msg}',tag:'%{rule.msg}'",
        "msg:'%{tx.m}',setvar:'tx.m=%{rule.msg}%{rule.logdata}',logdata:'%{tx.m}%{rule.logdata}'",
    ] {
        for modsecurity3 in ["", "SecCompatibility ModSecurity3\n"] {
            let text = format!(
                "SecRuleEngine On\n{modsecurity3}SecRule ARGS|RULE:msg|RULE:logdata \"@rx .\" \"id:1,phase:1,log,{rule}\"\n"
            );
            let plan = Arc::new(load(&text).expect(&text));
            assert!(survive(&plan, &Request::get("/?a=1&b=2")) > 0, "{text}");
        }
    }
}

/// What grows with each of many matches stops at the limits, and the transaction says so.
#[test]
fn texts_that_grow_are_cut() {
    for grows in [
        "setvar:'tx.a=%{tx.a}%{tx.a}x'",
        "setvar:'tx.%{tx.b}=1',setvar:'tx.b=%{tx.b}%{tx.b}x'",
        "setenv:'e=%{ENV.e}%{ENV.e}x'",
        "initcol:ip=a,setvar:'ip.a=%{ip.a}%{ip.a}x'",
        "setvar:'tx.a=%{tx.a}%{tx.a}x',append:'%{tx.a}%{tx.a}%{tx.a}'",
        "setvar:'tx.a=%{tx.a}%{tx.a}x',setsid:'%{tx.a}%{tx.a}'",
        "setvar:'tx.a=%{tx.a}%{tx.a}x',msg:'%{tx.a}%{tx.a}%{tx.a}%{tx.a}',logdata:'%{tx.a}%{tx.a}%{tx.a}'",
    ] {
        for targets in ["ARGS", "ARGS|REQUEST_HEADERS|TX:/./"] {
            let text = format!(
                "SecRuleEngine On\nSecRule {targets} \"@rx .\" \"id:1,phase:1,pass,t:none,nolog,{grows}\"\n\
                 SecRule TX:MSC_PCRE_LIMITS_EXCEEDED \"@eq 1\" \"id:2,phase:1,pass,log\"\n"
            );
            let plan = Arc::new(load(&text).expect(&text));
            let query = vec!["a=ab"; 600].join("&");
            assert!(survive(&plan, &Request::get(&format!("/?{query}"))) > 0, "{text}");
        }
    }
    // Rules of which the outcome is known at load time.
    let doubles: String = (2..200)
        .map(|id| format!("SecAction \"id:{id},phase:1,pass,nolog,setvar:'tx.a=%{{tx.a}}%{{tx.a}}x'\"\n"))
        .collect();
    let text = format!(
        "SecRuleEngine On\n{doubles}SecRule TX:a \"@streq %{{tx.a}}%{{tx.a}}\" \"id:200,phase:1,pass,nolog\"\n\
         SecRule TX:MSC_PCRE_LIMITS_EXCEEDED \"@eq 1\" \"id:201,phase:1,pass,log\"\n"
    );
    let plan = Arc::new(load(&text).expect("loads"));
    assert!(survive(&plan, &Request::get("/")) > 0);
}
