use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_event::{Action, Event, KeptRequest, Timestamp};
use portcullis_event_store::{Page, PageRequest, Store, StoreSettings, Writer};
use portcullis_query::parse;

/// 2026-11-26T00:00:00Z.
pub const NOW: u64 = 1_795_651_200_000;

/// The event with this number: what it has depends on it alone.
pub fn event(number: u64) -> Event {
    let mut event = Event::new(format!("r{number}"), Timestamp::from_epoch_millis(NOW + number * 10));
    event.site = Arc::from(["shop", "blog", "api"][number as usize % 3]);
    event.client.addr = match number % 4 {
        0 => format!("2001:db8:{:x}::{:x}", number % 7, number),
        _ => format!("192.0.{}.{}", number % 5, number % 251),
    };
    event.request.method = ["GET", "POST"][number as usize % 2].to_owned();
    event.request.target = format!("/{}/{}/item?x={number}", ["a", "b"][number as usize % 2], number % 11);
    event.response.status = (number % 10 != 9).then_some([200, 403, 500][number as usize % 3]);
    event.verdict.action = [Action::Pass, Action::Deny, Action::Detect][number as usize / 3 % 3];
    event.verdict.reason =
        format!("Because \"{}\" was said", ["Union Select", "alert(1)"][number as usize / 5 % 2]);
    event
}

pub fn settings(folder: &Path) -> StoreSettings {
    StoreSettings::new(folder)
}

/// Writes events, with a commit after each `every`.
pub fn write(writer: &mut Writer, numbers: std::ops::Range<u64>, every: u64) {
    for number in numbers {
        let full = writer.add(&event(number), Some(&kept(number)));
        if full || number % every == 0 {
            writer.commit(NOW).unwrap();
        }
    }
    writer.commit(NOW).unwrap();
}

pub fn page(store: &Store, filter: &str, before: Option<&str>, limit: usize) -> Page {
    let filter = parse(filter, NOW).unwrap();
    let request = PageRequest { filter: &filter, before, limit, patience: Duration::from_secs(30) };
    store.page(&request).unwrap()
}

/// The ids of all events that pass, by pages of this size.
pub fn ids(store: &Store, filter: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page = page(store, filter, before.as_deref(), limit);
        assert_eq!(page.skipped, Vec::<String>::new());
        ids.extend(page.events.iter().map(|event| id(&event.json)));
        match page.next {
            Some(next) => before = Some(next),
            None => return ids,
        }
    }
}

pub fn id(json: &str) -> String {
    let event: serde_json::Value = serde_json::from_str(json).unwrap();
    event["request_id"].as_str().unwrap().to_owned()
}

/// The request that is kept of an event.
pub fn kept(number: u64) -> KeptRequest {
    KeptRequest { bytes: format!("request {number}").into_bytes(), omitted: number }
}
