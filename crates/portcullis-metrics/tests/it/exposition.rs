//! The text form, read back by a parser that accepts nothing but the format.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_metrics::{
    DataPlane, DataPlaneNames, ExclusionTrial, ExclusionUse, Registry, RouteMetrics, RuleCounters,
    SERIES_MAX, TrialCount, catalogue,
};

/// Samples by `name{label="value",...}` with labels as written.
struct Scrape {
    types: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    fn parse(text: &str) -> Scrape {
        assert!(text.ends_with('\n'));
        let mut scrape = Scrape { types: BTreeMap::new(), samples: BTreeMap::new() };
        let mut helped = String::new();
        let mut family = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').expect("a help text").0.to_owned();
                continue;
            }
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(name, helped, "HELP comes before TYPE");
                family = name.to_owned();
                assert!(
                    scrape.types.insert(name.to_owned(), kind.to_owned()).is_none(),
                    "{name} has two heads"
                );
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let name = &series[..series.find('{').unwrap_or(series.len())];
            let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("{name} is not of {family}"));
            let allowed: &[&str] =
                if scrape.types[&family] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(allowed.contains(&suffix), "{line}");
            check_labels(&series[name.len()..]);
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(scrape.samples.insert(series.to_owned(), value).is_none(), "{series} occurs twice");
        }
        scrape
    }

    fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series} in {:#?}", self.samples.keys()))
    }
}

/// `{name="value",...}` with `\\`, `\"` and `\n` as the only escapes, or nothing.
fn check_labels(text: &str) {
    let Some(inner) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) else {
        return assert_eq!(text, "");
    };
    let mut rest = inner;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{text}");
        let mut end = None;
        let mut bytes = after.bytes().enumerate();
        while let Some((i, b)) = bytes.next() {
            match b {
                b'\\' => assert!(matches!(bytes.next(), Some((_, b'\\' | b'"' | b'n'))), "{text}"),
                b'"' => {
                    end = Some(i);
                    break;
                }
                b'\n' => panic!("{text}"),
                _ => {}
            }
        }
        rest = &after[end.unwrap_or_else(|| panic!("{text}")) + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return assert_eq!(rest, "", "{text}"),
        }
    }
}

const NAMES: DataPlaneNames<'_> = DataPlaneNames {
    verdicts: &["pass", "deny"],
    not_inspected: &["over_limit", "engine_off"],
    upstream_errors: &["connect"],
    refusals: &["bad_method"],
    ambiguities: &["charset"],
    classes: &["sqli", "xss"],
    finding_outcomes: &["blocked", "below"],
};

#[test]
fn everything_that_moves_is_exposed() {
    let registry = Registry::new();
    let plane = DataPlane::new(&registry, "1.2.3", NAMES);
    plane.connections_active.add(3);
    plane.connections_active.add(-1);
    plane.refused_requests.inc(0);
    plane.ambiguous_bodies.inc(0);
    plane.bytes_inspected.add(1000);
    plane.bytes_not_inspected.add(1, 7);
    plane.upstream_errors.inc(9);
    plane.policy_generation.set(4);
    plane.reloads_failed.inc();
    let route = RouteMetrics::new(&registry, "shop", "a\\b\"c\nd", NAMES.verdicts);
    route.requests.inc(403, 1);
    route.requests.inc(299, 0);
    route.request_duration.observe(Duration::from_micros(1500));
    route.request_duration.observe(Duration::from_secs(100));
    let rules = RuleCounters::new(&registry, [942100, 920350]);
    rules.inc(942100);
    rules.inc(1);

    let text = registry.render();
    let scrape = Scrape::parse(&text);
    let route = r#"site="shop",route="a\\b\"c\nd""#;
    let cases = [
        ("portcullis_build_info{version=\"1.2.3\"}".to_owned(), 1.0),
        ("portcullis_connections_active".to_owned(), 2.0),
        ("portcullis_refused_requests_total{reason=\"bad_method\"}".to_owned(), 1.0),
        ("portcullis_ambiguous_bodies_total{kind=\"charset\"}".to_owned(), 1.0),
        ("portcullis_bytes_inspected_total".to_owned(), 1000.0),
        ("portcullis_bytes_not_inspected_total{reason=\"engine_off\"}".to_owned(), 7.0),
        ("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}".to_owned(), 0.0),
        ("portcullis_upstream_errors_total{kind=\"other\"}".to_owned(), 1.0),
        ("portcullis_policy_generation".to_owned(), 4.0),
        ("portcullis_reloads_total{result=\"ok\"}".to_owned(), 0.0),
        ("portcullis_reloads_total{result=\"failed\"}".to_owned(), 1.0),
        (format!("portcullis_requests_total{{{route},status=\"403\",verdict=\"deny\"}}"), 1.0),
        (format!("portcullis_requests_total{{{route},status=\"2xx\",verdict=\"pass\"}}"), 1.0),
        (format!("portcullis_request_duration_seconds_bucket{{{route},le=\"0.001\"}}"), 0.0),
        (format!("portcullis_request_duration_seconds_bucket{{{route},le=\"0.0025\"}}"), 1.0),
        (format!("portcullis_request_duration_seconds_bucket{{{route},le=\"60\"}}"), 1.0),
        (format!("portcullis_request_duration_seconds_bucket{{{route},le=\"+Inf\"}}"), 2.0),
        (format!("portcullis_request_duration_seconds_sum{{{route}}}"), 100.0015),
        (format!("portcullis_request_duration_seconds_count{{{route}}}"), 2.0),
        (format!("portcullis_inspection_duration_seconds_count{{{route}}}"), 0.0),
        ("portcullis_rule_matches_total{rule_id=\"942100\"}".to_owned(), 1.0),
        ("portcullis_rule_matches_total{rule_id=\"920350\"}".to_owned(), 0.0),
        ("portcullis_rule_matches_total{rule_id=\"other\"}".to_owned(), 1.0),
    ];
    for (series, expected) in cases {
        assert_eq!(scrape.value(&series), expected, "{series}");
    }
    for (name, kind) in &scrape.types {
        let metric = catalogue::ALL.iter().find(|metric| metric.name == name).expect("only listed names");
        assert_eq!(metric.kind.name(), kind);
    }
}

#[test]
fn a_fresh_registry_shows_what_has_no_labels() {
    let scrape = Scrape::parse(&Registry::new().render());
    let unlabelled = catalogue::ALL.iter().filter(|metric| metric.labels.is_empty()).count();
    assert_eq!(scrape.types.len(), unlabelled);
    assert!(scrape.samples.values().all(|&value| value == 0.0));
}

#[test]
fn asking_again_gives_the_same_cells() {
    let registry = Registry::new();
    RuleCounters::new(&registry, [1, 2]).inc(1);
    RuleCounters::new(&registry, [1, 3]).inc(1);
    RouteMetrics::new(&registry, "s", "r", NAMES.verdicts).requests.inc(200, 0);
    RouteMetrics::new(&registry, "s", "r", NAMES.verdicts).requests.inc(200, 0);
    let scrape = Scrape::parse(&registry.render());
    assert_eq!(scrape.value("portcullis_rule_matches_total{rule_id=\"1\"}"), 2.0);
    let requests = "portcullis_requests_total{site=\"s\",route=\"r\",status=\"200\",verdict=\"pass\"}";
    assert_eq!(scrape.value(requests), 2.0);
}

/// Counts of an exclusion go on over a reload, and its trial is as old as the first settings that have it.
#[test]
fn exclusions_keep_their_counts() {
    let registry = Registry::new();
    let used = || ExclusionUse::of(&registry, "s", "01ab");
    assert_eq!(used().read(), (0, None));
    used().hit(1000);
    used().hit(1001);
    assert_eq!(used().read(), (2, Some(1001)));
    let trial = || ExclusionTrial::of(&registry, "s", "01ab");
    assert_eq!(trial().since(), None);
    trial().begin(1000);
    trial().begin(2000);
    trial().inc(TrialCount::Seen);
    trial().inc(TrialCount::Lost);
    assert_eq!((trial().since(), trial().count(TrialCount::Lost)), (Some(1000), 1));
    let scrape = Scrape::parse(&registry.render());
    let labels = "{site=\"s\",exclusion=\"01ab\"}";
    for (name, value) in [
        ("portcullis_exclusion_hits_total", 2.0),
        ("portcullis_exclusion_last_hit_timestamp_seconds", 1001.0),
        ("portcullis_exclusion_trial_start_timestamp_seconds", 1000.0),
    ] {
        assert_eq!(scrape.value(&format!("{name}{labels}")), value, "{name}");
    }
    let counts = "portcullis_exclusion_trials_total{site=\"s\",exclusion=\"01ab\",result=\"seen\"}";
    assert_eq!(scrape.value(counts), 1.0);
}

/// A trial begins with counts of its own, whatever an earlier one of the same exclusion came to; the metrics
/// only rise.
#[test]
fn each_trial_counts_from_its_beginning() {
    let registry = Registry::new();
    let trial = |id: &str| ExclusionTrial::of(&registry, "s", id);
    let (one, other) = (trial("01ab"), trial("23cd"));
    ExclusionTrial::turn([], [&one, &other], 1000);
    [&one, &other].into_iter().for_each(|each| each.inc(TrialCount::Seen));
    one.inc(TrialCount::Unknown);
    // A reload that has both ends none.
    ExclusionTrial::turn([&one, &other], [&trial("01ab"), &trial("23cd")], 1500);
    assert_eq!((one.since(), one.count(TrialCount::Seen)), (Some(1000), 1));
    // One is enforced; requests that began before still count.
    ExclusionTrial::turn([&one, &other], [&other], 2000);
    one.inc(TrialCount::Seen);
    assert_eq!((one.since(), one.count(TrialCount::Seen), one.count(TrialCount::Unknown)), (None, 0, 0));
    let start = "portcullis_exclusion_trial_start_timestamp_seconds{site=\"s\",exclusion=\"01ab\"}";
    assert_eq!(Scrape::parse(&registry.render()).value(start), 0.0);
    // On trial again.
    ExclusionTrial::turn([&other], [&trial("01ab"), &other], 3000);
    trial("01ab").inc(TrialCount::Lost);
    let counts = |each: &ExclusionTrial| {
        [TrialCount::Seen, TrialCount::Lost, TrialCount::Unknown].map(|what| each.count(what))
    };
    assert_eq!((one.since(), counts(&one)), (Some(3000), [0, 1, 0]));
    assert_eq!((other.since(), counts(&other)), (Some(1000), [1, 0, 0]));
    let scrape = Scrape::parse(&registry.render());
    assert_eq!(scrape.value(start), 3000.0);
    for (result, value) in [("seen", 2.0), ("lost", 1.0), ("unknown", 1.0)] {
        let labels = format!("{{site=\"s\",exclusion=\"01ab\",result=\"{result}\"}}");
        assert_eq!(scrape.value(&format!("portcullis_exclusion_trials_total{labels}")), value, "{result}");
    }
}

#[test]
fn registries_do_not_notice_each_other() {
    let (one, two) = (Registry::new(), Registry::new());
    one.counter(&catalogue::BYTES_INSPECTED, &[]).inc();
    assert_eq!(two.counter(&catalogue::BYTES_INSPECTED, &[]).value(), 0);
}

#[test]
fn families_are_bounded_and_say_so() {
    let registry = Registry::new();
    let rules = RuleCounters::new(&registry, 1..=u32::try_from(SERIES_MAX).expect("small") + 50);
    rules.inc(u32::try_from(SERIES_MAX).expect("small") + 50);
    let scrape = Scrape::parse(&registry.render());
    // 50 ids too many, and "other" itself, which then has a place of its own.
    assert_eq!(scrape.value("portcullis_series_overflow_total"), 50.0);
    assert_eq!(scrape.value("portcullis_rule_matches_total{rule_id=\"other\"}"), 1.0);
    assert_eq!(scrape.samples.keys().filter(|k| k.contains("rule_id")).count(), SERIES_MAX + 1);
}

#[test]
fn series_of_a_site_appear_with_its_traffic() {
    let registry = Registry::new();
    let verdicts = ["pass", "deny"];
    let sites: Vec<RouteMetrics> =
        (0..1000).map(|site| RouteMetrics::new(&registry, &format!("site-{site}"), "/", &verdicts)).collect();
    let idle = registry.render();
    assert!(!idle.contains("site-7") && idle.len() < 100_000, "{}", idle.len());
    sites[7].requests.inc(200, 0);
    let text = registry.render();
    Scrape::parse(&text);
    let samples = text.lines().filter(|line| line.contains("\"site-")).collect::<Vec<_>>();
    assert!(samples.iter().all(|line| line.contains("site=\"site-7\"")), "{samples:?}");
    // What it has not counted yet stands there as 0.
    assert!(samples.iter().any(|line| line.starts_with("portcullis_request_duration_seconds_count") && line.ends_with(" 0")));
}
