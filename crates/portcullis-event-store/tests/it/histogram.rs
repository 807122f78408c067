use std::collections::BTreeMap;
use std::time::Duration;

use portcullis_event::Event;
use portcullis_event_store::{Histogram, HistogramRequest, OutcomeCounts, Store, Writer};
use portcullis_query::{Outcome, parse};

use crate::common::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn histogram(store: &Store, filter: &str, steps: usize, patience: Duration) -> Histogram {
    let filter = parse(filter, NOW).unwrap();
    let request = HistogramRequest { filter: &filter, steps, now_ms: NOW + 30_000, patience };
    store.histogram(&request).unwrap()
}

/// Steps count what a look at every event would count, within the edges that the filter names.
#[test]
fn steps_are_those_of_all_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(settings(folder.path()), false).unwrap();
    write(&mut writer, 0..3000, 700);
    let store = Store::new(folder.path());
    for (text, from_s, to_s) in [
        ("", 0, 31),
        ("verdict = deny", 0, 31),
        ("site = shop and path ^= /a", 0, 31),
        ("time >= 2026-11-25T23:59:50Z", -10, 31),
        ("status = 500 and time < 2026-11-26T00:00:10Z", 0, 10),
        ("time >= 2026-11-26T00:00:05Z and time < 2026-11-26T00:00:12Z and client in 192.0.2.0/24", 5, 12),
        // Up to now, whatever comes later.
        ("time < 2100-01-01", 0, 31),
    ] {
        let filter = parse(text, NOW).unwrap();
        let passing: Vec<Event> = (0..3000).map(event).filter(|event| filter.matches(event)).collect();
        for steps in [50, 7] {
            let found = histogram(&store, text, steps, PATIENCE);
            let mut expected = BTreeMap::<u64, OutcomeCounts>::new();
            for event in &passing {
                let place = Outcome::of(event).map_or(Outcome::NAMES.len(), |outcome| outcome as usize);
                let start = event.time.epoch_millis() / found.step_ms * found.step_ms;
                expected.entry(start).or_default()[place] += 1;
            }
            let counted = found.steps.iter().map(|step| (step.start_ms, step.counts)).collect();
            assert_eq!(expected, counted, "{text}");
            assert!(found.complete && found.skipped.is_empty());
            let round = |seconds: i64| NOW.strict_add_signed(seconds * 1000) / found.step_ms * found.step_ms;
            assert_eq!(found.from_ms, round(from_s), "{text}");
            assert_eq!(found.to_ms, round(to_s).max(round(to_s - 1) + found.step_ms), "{text}");
            assert!((found.to_ms - found.from_ms) / found.step_ms <= steps as u64, "{text}: {found:?}");
        }
    }
    assert_eq!(histogram(&store, "id = nothing", 50, PATIENCE).steps, []);
    assert!(!histogram(&store, "", 50, Duration::ZERO).complete);
}
