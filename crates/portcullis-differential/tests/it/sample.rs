//! A sample of the differential run: every difference has a class. `make differential` runs as many as one
//! likes.
//!
//! Fails, not skips, where one of the ModSecuritys is not installed: `CI` without them would say nothing.
//! Outside CI the test is left out there, with a line that says so.

use portcullis_differential::classes::Peer;
use portcullis_differential::{Options, run};

const PAIRS: u64 = 3_000;

#[test]
fn every_difference_has_a_class() {
    let Some(_) = portcullis_testkit::corpora::for_test() else { return };
    let options = Options { pairs: PAIRS, seed: 1, requests: 20, ..Options::default() };
    let summary = match run(&options) {
        Ok(summary) => summary,
        Err(missing) if std::env::var_os("CI").is_none() => return eprintln!("skipped: {missing}"),
        Err(missing) => panic!("{missing}"),
    };
    println!("{}", summary.table());
    assert!(summary.problems.is_empty(), "{}", summary.problems.join("\n"));
    let reference = summary.peers[&Peer::Reference];
    // The plain evaluator knows no body limits.
    assert_eq!(reference.pairs + reference.lost, PAIRS);
    assert!(reference.lost * 10 < PAIRS, "too many bodies are over a limit: {reference:?}");
    for peer in [Peer::ModSecurity2, Peer::ModSecurity3] {
        let count = summary.peers[&peer];
        // Version 3 refuses deprecatevar, quoted XPath, paths of XML in `ctl` and more.
        assert!(count.pairs > PAIRS * 3 / 4, "{peer:?} took too few rule sets: {count:?}");
        assert!(count.lost * 200 < PAIRS, "{peer:?} gave no result too often: {count:?}");
        assert!(count.matches > count.pairs, "the rules hardly match: {count:?}");
    }
}
