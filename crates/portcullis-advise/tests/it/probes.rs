//! The probes are attacks: the detector stops one for every kind of finding, and many of each class.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_advise::probes::{Probe, Spot, probes};
use portcullis_config::Mode;
use portcullis_event::FindingOutcome;
use portcullis_replay::{Field, Trial};
use portcullis_semantic::Detectors;

use crate::common::{Bench, case};

/// Kinds that no value of a field is blocked for, and why.
const ELSEWHERE: [(&str, &str); 17] = [
    ("api.", "needs the description of an API"),
    ("code.function-name", "a name that counts beside other findings only"),
    ("command.install", "a word that counts beside other findings only"),
    ("deserialization.any-type", "counts beside other findings only"),
    ("deserialization.pickle-plain", "counts beside other findings only"),
    ("deserialization.yaml-plain", "counts beside other findings only"),
    ("field.", "needs what a site has learned"),
    ("graphql.batch", "a body with many queries"),
    ("graphql.directives", "a body with many directives"),
    ("graphql.repeated", "a body that repeats a field"),
    ("leak.", "stands in responses"),
    ("nosql.secret-column", "stands in a field that lists columns"),
    ("path.host-step", "is about how the path begins"),
    ("protocol.", "is about the message, not a value"),
    ("redirect.", "needs the hosts of a site"),
    ("scanner.", "is about the request line and fields of the head"),
    ("upload.", "weighs the name of a file and its content together"),
];
/// Kinds that have none yet.
const NONE_YET: [&str; 7] = [
    "path.padded",
    "path.query-path",
    "path.target-name",
    "ssrf.embedding",
    "template.new",
    "xpath.path",
    "xxe.stylesheet-link",
];
/// Probes of a class at least that are stopped in a field of the sort that is for it.
const OF_CLASS_MIN: usize = 150;
/// Classes of which there are fewer sorts.
const FEWER: [(&str, usize); 8] = [
    ("api", 0),
    ("field", 0),
    ("graphql", 0),
    ("leak", 0),
    ("protocol", 0),
    ("redirect", 0),
    ("remote-file", 70),
    ("scanner", 25),
];

const GET: &str = "GET /a/b?q=1&url=2&file=3&cmd=4 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Mozilla/5.0\r\n\
                   Referer: https://example.com/\r\nAccept: */*\r\nCookie: s=1\r\n\r\n";
const UPLOAD: &str = "POST /a HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Mozilla/5.0\r\n\
                      Content-Type: multipart/form-data; boundary=xxyyzz\r\nContent-Length: 129\r\n\r\n\
                      --xxyyzz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.NAME\"\r\n\
                      Content-Type: text/plain\r\n\r\nold\r\n--xxyyzz--\r\n";

fn body(kind: &str) -> String {
    format!(
        "POST /graphql HTTP/1.1\r\nHost: example.com\r\nUser-Agent: Mozilla/5.0\r\nContent-Type: {kind}\r\n\
         Content-Length: 13\r\n\r\n{{\"query\":\"a\"}}"
    )
}

/// Messages and their fields that texts are put into.
pub fn places() -> Vec<(Spot, String, Field)> {
    let mut places = vec![
        (Spot::Path, GET.to_owned(), Field::Path),
        (Spot::Value, GET.to_owned(), Field::Header("referer".to_owned())),
        (Spot::Value, GET.to_owned(), Field::Header("user-agent".to_owned())),
        (Spot::Value, GET.to_owned(), Field::Cookie("s".to_owned())),
        (Spot::FileName, UPLOAD.replace("NAME", "txt"), Field::FileName),
    ];
    for name in ["q", "url", "file", "cmd"] {
        places.push((Spot::Value, GET.to_owned(), Field::Query(name.to_owned())));
    }
    for end in ["txt", "jpg", "php", "svg"] {
        places.push((Spot::File, UPLOAD.replace("NAME", end), Field::File(String::new())));
    }
    for kind in ["application/json", "application/xml", "application/x-www-form-urlencoded"] {
        places.push((Spot::Body, body(kind), Field::Body));
    }
    places.push((Spot::Value, body("application/json"), Field::Json("query".to_owned())));
    places
}

#[test]
fn every_kind_of_finding_has_probes_that_are_stopped() {
    let mut trial = Trial::new(Bench::new(Mode::Semantic, "").inspector());
    let (mut kinds, mut classes) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<Vec<u8>>>::new());
    let mut cases = 0;
    for (spot, message, field) in places() {
        for Probe { class, text, .. } in probes(spot) {
            let Some(message) = field.replaced(message.as_bytes(), &text) else { continue };
            cases += 1;
            let case = case("");
            let tried = trial.ask(&message, case.client, case.epoch_millis);
            let Some(event) = tried.event.filter(|_| tried.stopped) else { continue };
            let over = |class| {
                event
                    .scores
                    .semantic
                    .iter()
                    .any(|score| score.class == class && score.outcome != FindingOutcome::Below)
            };
            kinds.extend(
                event.findings.iter().filter(|found| over(found.class)).map(|found| found.kind.clone()),
            );
            if over(class) {
                classes.entry(class.name()).or_default().insert(text);
            }
        }
    }
    assert!(cases > 50_000, "{cases}");
    let elsewhere = |kind: &str| ELSEWHERE.iter().any(|(known, _)| kind.starts_with(known));
    let detectors = Detectors::new();
    let missing: BTreeSet<&str> = detectors
        .kinds()
        .map(|(_, _, kind)| kind.id)
        .filter(|kind| !kinds.contains(*kind) && !elsewhere(kind))
        .collect();
    assert_eq!(missing, BTreeSet::from(NONE_YET), "no probe is stopped for these kinds");
    for (_, class, _) in detectors.kinds() {
        let least =
            FEWER.iter().find(|(known, _)| *known == class.name()).map_or(OF_CLASS_MIN, |(_, least)| *least);
        let have = classes.get(class.name()).map_or(0, BTreeSet::len);
        assert!(have >= least, "{have} probes of {} are stopped, of at least {least}", class.name());
    }
}
