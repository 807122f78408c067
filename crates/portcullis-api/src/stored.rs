//! Requests that are kept: with events, and as a sample of those that passed.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use portcullis_event_store::{Page, PageRequest, StoredEvent};
use portcullis_query::Filter;
use serde_json::Value;

use crate::context::Context;
use crate::problem::Problem;
use crate::queries::{ask_sample, ask_store};
use crate::supplies::ReplayRequest;

/// The client of a request that names none: an address for documentation (RFC 5737).
pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Bytes of all requests that are taken at once.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// The newest requests that are kept with events which pass a filter, `limit` at most, then as many of the
/// sample; and how many of them are left out, because all together would be too long.
pub(crate) async fn requests(
    context: &Arc<Context>,
    filter: Filter,
    limit: usize,
) -> Result<(Vec<ReplayRequest>, usize), Problem> {
    let (patience, filter) = (context.limits.query_time_max, Arc::new(filter));
    let of_events = Arc::clone(&filter);
    let page = ask_store(context, move |store| {
        store.page(&PageRequest { filter: &of_events, before: None, limit, patience })
    });
    let page: Page = page.await?.unwrap_or_default();
    let sample = ask_sample(context, move |store| {
        store.page(&PageRequest { filter: &filter, before: None, limit, patience })
    });
    let sample: Page = sample.await?.unwrap_or_default();
    let all = page.events.into_iter().chain(sample.events).filter_map(request).take(limit);
    let (mut taken, mut bytes, mut left_out) = (Vec::new(), 0, 0);
    for request in all {
        let length = request.request.len();
        if bytes + length <= BYTES_MAX {
            bytes += length;
            taken.push(request);
        } else {
            left_out += 1;
        }
    }
    Ok((taken, left_out))
}

/// The request that is kept with an event.
fn request(event: StoredEvent) -> Option<ReplayRequest> {
    let kept = event.request?;
    let event: Value = serde_json::from_str(&event.json).ok()?;
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).map(str::to_owned);
    Some(ReplayRequest {
        id: text("/request_id").unwrap_or_default(),
        request: kept.bytes,
        omitted: kept.omitted,
        site: text("/site"),
        route: text("/route"),
        client: text("/client/addr").and_then(|address| address.parse().ok()).unwrap_or(CLIENT),
    })
}
