//! The probes are attacks for the rules, too: every rule of the CRS at paranoia level 1 that looks at values
//! of requests stops one.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_advise::probes::{Probe, probes};
use portcullis_config::Mode;
use portcullis_replay::Trial;
use portcullis_testkit::crs;
use portcullis_types::Phase;

use crate::common::{Bench, case};
use crate::probes::places;

/// Rules of requests that no value of a field matches, by reason. A rule that a probe is stopped by may not
/// be listed.
const ELSEWHERE: [(&str, &[u32]); 9] = [
    ("is about the method", &[911100]),
    (
        "is about the request line, version or framing",
        &[920100, 920160, 920170, 920171, 920180, 920181, 920430, 920640],
    ),
    (
        "is about fields of the head that steer the protocol, or that are missing or empty",
        &[
            920190, 920210, 920280, 920290, 920310, 920311, 920330, 920340, 920350, 920420, 920450, 920470,
            920480, 920520, 920530, 920600, 920620, 920660, 921421,
        ],
    ),
    (
        "counts or measures, and is off unless limits are set",
        &[920360, 920370, 920380, 920390, 920400, 920410],
    ),
    ("is off unless the application is said to use UTF-8", &[920250]),
    ("is about the target as it was sent, with signs that a value has coded", &[920610, 921240]),
    ("is about the head of a part of a body", &[922100, 922110, 922120]),
    ("is about the name of an argument or cookie", &[921250, 943110, 943120]),
    ("compares the score that others made", &[949110, 949111]),
];
/// Rules of responses there are at least: what they look at, no request has.
const OF_RESPONSES_MIN: usize = 50;
/// Rules that a probe has to be stopped by, at least.
const OF_REQUESTS_MIN: usize = 90;

#[test]
fn every_rule_of_the_first_level_has_probes_that_are_stopped() {
    let folder = match crs::rules() {
        Ok(folder) => folder,
        Err(missing) if std::env::var_os("CI").is_none() => return eprintln!("left out: {missing}"),
        Err(missing) => panic!("{missing}"),
    };
    let inspector = Bench::with_crs(Mode::Crs, &folder, 1).inspector();
    let plan = inspector.plan();
    let mut wanted: BTreeMap<u32, bool> = BTreeMap::new();
    for rule in plan.rules.iter().filter(|rule| rule.log) {
        let mut tags = rule.metadata.tags.iter().filter_map(|tag| tag.as_literal());
        if tags.any(|tag| *tag == b"paranoia-level/1"[..]) {
            wanted.insert(rule.id.0, rule.phase <= Phase::RequestBody);
        }
    }
    let of_responses = wanted.values().filter(|of_requests| !**of_requests).count();
    assert!(of_responses >= OF_RESPONSES_MIN, "{of_responses}");
    let elsewhere: BTreeSet<u32> = ELSEWHERE.iter().flat_map(|(_, rules)| *rules).copied().collect();
    let mut missing: BTreeSet<u32> = wanted
        .iter()
        .filter(|(rule, of_requests)| **of_requests && !elsewhere.contains(rule))
        .map(|(rule, _)| *rule)
        .collect();
    assert!(missing.len() >= OF_REQUESTS_MIN, "{}", missing.len());
    let mut listed_and_stopped = BTreeSet::new();
    let mut trial = Trial::new(inspector);
    for (spot, message, field) in places() {
        // As they are: their changes stop no rule that these do not.
        for Probe { text, .. } in probes(spot).filter(|probe| probe.change.is_empty()) {
            if missing.is_empty() {
                break;
            }
            let Some(message) = field.replaced(message.as_bytes(), &text) else { continue };
            let case = case("");
            let tried = trial.ask(&message, case.client, case.epoch_millis);
            let Some(event) = tried.event.filter(|_| tried.stopped) else { continue };
            for rule in event.matches.iter().map(|found| found.rule.rule_id.0) {
                missing.remove(&rule);
                // Every stopped request reaches the threshold.
                if elsewhere.contains(&rule) && rule != 949110 {
                    listed_and_stopped.insert(rule);
                }
            }
        }
    }
    assert_eq!(missing, BTreeSet::new(), "no probe is stopped by these rules");
    assert_eq!(
        listed_and_stopped,
        BTreeSet::new(),
        "a probe is stopped by these, so they need not be listed"
    );
}
