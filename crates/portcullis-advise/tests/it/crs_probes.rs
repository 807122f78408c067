//! The probes are attacks for the rules, too: every rule of the CRS at paranoia level 1 that looks at values
//! of requests stops one.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_config::Mode;
use portcullis_probes::probes;
use portcullis_replay::Trial;
use portcullis_testkit::crs;
use portcullis_types::Phase;

use crate::common::{Bench, case};
use crate::probes::places;

/// Rules that no value of a field matches, and why.
const ELSEWHERE: [(u32, u32, &str); 13] = [
    (911100, 911100, "is about the method"),
    (920100, 920250, "are about the request line, framing and header fields"),
    (920260, 920260, "is about the coding of the target or body as they were sent"),
    (920280, 920660, "are about header fields, the number and length of arguments and files"),
    (921150, 921150, "is about names of arguments"),
    (921240, 921240, "is about the target as it was sent"),
    (921250, 921250, "is about the name of a cookie"),
    (921421, 921421, "is about Content-Type"),
    (922100, 922120, "are about header fields of the parts of a body"),
    (943110, 943110, "is about names of arguments"),
    (943120, 943120, "is about names of arguments"),
    (949110, 949111, "compare the score"),
    (980099, 980170, "report"),
];
/// Rules of responses there are at least.
const OF_RESPONSES_MIN: usize = 40;
/// Rules that a probe has to be stopped by, at least.
const OF_REQUESTS_MIN: usize = 100;

#[test]
fn every_rule_of_the_first_level_has_probes_that_are_stopped() {
    let folder = match crs::rules() {
        Ok(folder) => folder,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            return eprintln!("left out: {why}");
        }
    };
    let bench = Bench::with_crs(Mode::Crs, &folder, 1);
    let inspector = bench.inspector();
    let plan = inspector.plan();
    let mut wanted: BTreeMap<u32, bool> = BTreeMap::new();
    for rule in plan.rules.iter().filter(|rule| rule.log) {
        let tags = rule.metadata.tags.iter().filter_map(|tag| tag.as_literal());
        if tags.into_iter().any(|tag| *tag == b"paranoia-level/1"[..]) {
            wanted.insert(rule.id.0, rule.phase <= Phase::RequestBody);
        }
    }
    let of_responses = wanted.values().filter(|of_requests| !**of_requests).count();
    assert!(of_responses >= OF_RESPONSES_MIN, "{of_responses}");
    let is_elsewhere = |rule: u32| ELSEWHERE.iter().any(|(first, last, _)| (*first..=*last).contains(&rule));
    let mut missing: BTreeSet<u32> = wanted
        .iter()
        .filter(|(rule, of_requests)| **of_requests && !is_elsewhere(**rule))
        .map(|(rule, _)| *rule)
        .collect();
    assert!(missing.len() >= OF_REQUESTS_MIN, "{}", missing.len());
    let mut trial = Trial::new(inspector);
    // As they are first: most rules are found by then, and changes of all texts take long.
    for is_changed in [false, true] {
        for (spot, message, field) in places() {
            for probe in probes(spot) {
                if missing.is_empty() || probe.change.is_empty() == is_changed {
                    continue;
                }
                let Some(message) = field.replaced(message.as_bytes(), &probe.text) else { continue };
                let case = case("");
                let tried = trial.ask(&message, case.client, case.epoch_millis);
                let Some(event) = tried.event.filter(|_| tried.stopped) else { continue };
                for found in &event.matches {
                    missing.remove(&found.rule.rule_id.0);
                }
            }
        }
    }
    assert_eq!(missing, BTreeSet::new(), "no probe is stopped by these rules");
}
