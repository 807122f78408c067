//! What is advised, and what it is said to cost, against verdicts.

use std::collections::BTreeSet;

use portcullis_advise::{Measured, NoAdvice, Policies, Reach, advise};
use portcullis_config::Mode;
use portcullis_replay::Trial;
use portcullis_revisions::{Exclusion, RuleExclusion};

use crate::common::{Bench, case};

/// Both parts of what a person writes about SQL.
const QUESTION: &str = "GET /posts/17?text=1%20union%20select%20password%20from%20users&page=2 HTTP/1.1\r\n\
                        Host: example.com\r\nUser-Agent: Mozilla/5.0\r\n\r\n";

/// Whatever is excluded, nothing but this field on this path gets wider.
fn assert_narrow(measured: &Measured) {
    for exclusion in &measured.exclusions {
        let Exclusion::Semantic(term) = exclusion else { panic!("{measured:?}") };
        assert_eq!(term.location.as_deref(), Some("query:text"), "{measured:?}");
        let on_path = term.path.as_deref() == Some("/posts/{id}");
        assert_eq!(on_path, measured.reach != Reach::Field, "{measured:?}");
    }
}

#[test]
fn kinds_first_and_what_each_candidate_costs() {
    let bench = Bench::new(Mode::Semantic, "");
    let policy = bench.inspector();
    let alarm = case(QUESTION);
    let advice = advise(&policy, &bench, &alarm, &[]).unwrap();
    assert_eq!(advice.fields, ["query:text"]);
    assert!(advice.probes > 3000, "{}", advice.probes);
    let reaches: Vec<Reach> = advice.candidates.iter().map(|one| one.reach).collect();
    assert_eq!(reaches.last(), Some(&Reach::Field));
    assert!(reaches.is_sorted());
    for one in &advice.candidates {
        assert_narrow(one);
        assert!(one.clears, "{one:?}");
        assert!(one.probed.own.stopped > 0 && one.probed.own.lost > 0, "{one:?}");
        assert_eq!(one.probed.own.stopped + one.probed.others.stopped, advice.probes);
    }
    let (narrow, wide) = (&advice.candidates[0], advice.candidates.last().unwrap());
    assert_eq!(narrow.reach, Reach::Kinds);
    assert!(narrow.recommended && narrow.probed.others.lost == 0, "{narrow:?}");
    // A class has kinds that the alarm has not: to lose them is no part of what is asked for.
    assert!(!wide.recommended && wide.probed.others.lost > 100, "{wide:?}");
    assert_eq!(wide.probed.lost.len(), 20);
}

/// A stored request is let through by the first candidate exactly if the engine says so.
#[test]
fn stored_requests_are_counted_as_they_would_be_decided() {
    let bench = Bench::new(Mode::Semantic, "");
    let alarm = case(QUESTION);
    let other_path = QUESTION.replace("/posts/17", "/admin/17");
    let other_attack = QUESTION.replace("1%20union%20select%20password%20from%20users", "%27%20or%201=1--");
    let honest = QUESTION.replace("1%20union%20select%20password%20from%20users", "hello");
    let same = QUESTION.replace("/posts/17", "/posts/18");
    let texts = [&other_path, &other_attack, &honest, &same];
    let others: Vec<_> = texts.iter().map(|text| case(text)).collect();
    let advice = advise(&bench.inspector(), &bench, &alarm, &others).unwrap();
    let first = &advice.candidates[0].stored;
    assert_eq!((first.requests, first.stopped, first.let_through, first.clients), (4, 3, 1, 1));
    assert_eq!(first.ids, ["r1"]);
    let widest = &advice.candidates.last().unwrap().stored;
    assert_eq!(widest.let_through, 3);
}

/// A rule of one's own on one parameter: without it everything that no other rule stops gets through.
#[test]
fn rules_are_excluded_in_their_target() {
    let rules = "SecRule ARGS \"@rx select\" \"id:1,phase:2,deny,t:lowercase,msg:'select'\"\n\
                 SecRule ARGS \"@rx <script\" \"id:2,phase:2,deny,t:lowercase,msg:'script'\"\n";
    let bench = Bench::new(Mode::Crs, rules);
    let advice = advise(&bench.inspector(), &bench, &case(QUESTION), &[]).unwrap();
    // On the path of the alarm first, then on every path.
    let [one, everywhere] = &advice.candidates[..] else { panic!("{advice:?}") };
    let target = Some("ARGS:text".to_owned());
    let excluded = |path: Option<&str>| {
        let (target, path) = (target.clone(), path.map(str::to_owned));
        [Exclusion::Rule(RuleExclusion { rule_id: 1, target, path, ..RuleExclusion::default() })]
    };
    assert_eq!((one.reach, &one.exclusions[..]), (Reach::Rules, &excluded(Some("/posts/{id}"))[..]));
    assert_eq!((everywhere.reach, &everywhere.exclusions[..]), (Reach::RulesEverywhere, &excluded(None)[..]));
    // What this rule alone stops is its own; what the other stops, too, is still stopped.
    let (own, others) = (one.probed.own, one.probed.others);
    assert!(one.clears && own.lost == own.stopped && own.lost > 100, "{one:?}");
    assert!(others.lost == 0 && others.stopped > 50, "{one:?}");
}

/// A rule that scores by what its first link has put into `TX` is known by no value: it is excluded on the
/// path, and the rule that compares the score stays.
#[test]
fn a_rule_that_scores_by_tx_is_excluded_on_the_path() {
    let rules = "SecRule REQUEST_HEADERS_NAMES \"@rx ^x-\" \"id:1,phase:1,pass,log,msg:'odd',\
                 t:lowercase,chain,setvar:'tx.odd_%{MATCHED_VAR}=1'\"\n\
                 SecRule TX:/^odd_/ \"@eq 1\" \"setvar:'tx.inbound_anomaly_score_pl1=+5'\"\n\
                 SecRule TX:inbound_anomaly_score_pl1 \"@ge 5\" \"id:2,phase:2,deny,msg:'score'\"\n";
    let bench = Bench::new(Mode::Crs, rules);
    let request = "GET /posts/17 HTTP/1.1\r\nHost: a\r\nX-Method: PUT\r\n\r\n";
    let advice = advise(&bench.inspector(), &bench, &case(request), &[]).unwrap();
    let excluded: Vec<_> = advice.candidates.iter().map(|one| (one.clears, &one.exclusions[..])).collect();
    let rule = |path: Option<&str>| {
        let path = path.map(str::to_owned);
        [Exclusion::Rule(RuleExclusion { rule_id: 1, path, ..RuleExclusion::default() })]
    };
    assert_eq!(excluded, [(true, &rule(Some("/posts/{id}"))[..]), (true, &rule(None)[..])]);
    // No attack can be put into its field, so nothing is recommended.
    assert!(advice.probes == 0 && advice.candidates.iter().all(|one| !one.recommended), "{advice:?}");
}

/// Rules that score as those of the CRS do: a probe that one of them alone stops is its own, whichever rule
/// compares the score. What the policy only reports is advised on as if it were enforced.
#[test]
fn probes_of_a_rule_that_scores_are_its_own() {
    let score = "phase:2,pass,log,t:lowercase,setvar:'tx.inbound_anomaly_score_pl1=+5'";
    let rules = format!(
        "SecRule ARGS \"@rx select\" \"id:1,msg:'select',{score}\"\n\
         SecRule ARGS \"@rx <script\" \"id:2,msg:'script',{score}\"\n\
         SecRule TX:inbound_anomaly_score_pl1 \"@ge 5\" \"id:3,phase:2,deny,msg:'score'\"\n"
    );
    let bench = Bench::new(Mode::Crs, &rules);
    let enforced = advise(&bench.inspector(), &bench, &case(QUESTION), &[]).unwrap();
    let observing = bench.observing();
    let observed = advise(&observing.inspector(), &observing, &case(QUESTION), &[]).unwrap();
    for advice in [enforced, observed] {
        let first = &advice.candidates[0];
        let (own, others) = (first.probed.own, first.probed.others);
        assert!(first.recommended && own.lost == own.stopped && own.lost > 100, "{first:?}");
        assert!(others.lost == 0 && others.stopped > 50, "{first:?}");
    }
}

/// Of several fields, each has the kinds excluded that it needs, and no more.
#[test]
fn kinds_that_are_not_needed_are_left_out() {
    let bench = Bench::new(Mode::Semantic, "");
    let honest = "GET /posts/17?text=1%20union%20select%20password%20from%20users&\
                  shell=cat%20/etc/hostname%3B%20uname%20-a HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Mozilla/5.0\r\n\r\n";
    let advice = advise(&bench.inspector(), &bench, &case(honest), &[]).unwrap();
    let first = &advice.candidates[0];
    assert!(first.clears && first.reach == Reach::Kinds, "{first:?}");
    let fields = |exclusions: &[Exclusion]| -> BTreeSet<Option<String>> {
        let location = |each: &Exclusion| match each {
            Exclusion::Semantic(term) => term.location.clone(),
            Exclusion::Rule(_) => None,
        };
        exclusions.iter().map(location).collect()
    };
    assert!(fields(&first.exclusions).len() > 1, "{first:?}");
    for at in 0..first.exclusions.len() {
        let mut fewer = first.exclusions.clone();
        fewer.remove(at);
        let policy = bench.with(&fewer).unwrap();
        let tried = Trial::new(policy).ask(honest.as_bytes(), case(honest).client, case(honest).epoch_millis);
        assert!(tried.stopped, "without {at} of {first:?}");
    }
}

/// Where the rules object to the same value, what the detector alone forgives is not enough.
#[test]
fn both_sides_are_excluded_where_both_object() {
    let rules = "SecRule ARGS:text \"@rx select\" \"id:1,phase:2,deny,t:lowercase,msg:'select'\"\n";
    let bench = Bench::new(Mode::Both, rules);
    let advice = advise(&bench.inspector(), &bench, &case(QUESTION), &[]).unwrap();
    assert!(!advice.candidates.is_empty());
    for one in &advice.candidates {
        assert!(one.clears, "{one:?}");
        assert!(one.exclusions.iter().any(|each| matches!(each, Exclusion::Rule(_))), "{one:?}");
        assert!(one.exclusions.iter().any(|each| matches!(each, Exclusion::Semantic(_))), "{one:?}");
    }
}

#[test]
fn what_no_exclusion_is_for_is_said() {
    let bench = Bench::new(Mode::Semantic, "SecAction \"id:1,phase:1,deny,nolog,pass\"\n");
    let policy = bench.inspector();
    let honest = case("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(advise(&policy, &bench, &honest, &[]).unwrap_err(), NoAdvice::Passes);
    let broken = case("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    let error = advise(&policy, &bench, &broken, &[]).unwrap_err();
    assert!(matches!(error, NoAdvice::NothingToExclude(_)), "{error:?}");
}
