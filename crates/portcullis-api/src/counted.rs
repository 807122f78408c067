//! Requests by route and class of status.

use std::collections::HashMap;

use http::StatusCode;
use portcullis_metrics::{EnumCounters, OTHER, Registry, catalogue};

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// A counter for each route of the API, and one for all other paths.
pub(crate) struct RequestCounts {
    routes: HashMap<String, EnumCounters>,
    other: EnumCounters,
}

impl RequestCounts {
    pub(crate) fn new(registry: &Registry, routes: impl Iterator<Item = String>) -> RequestCounts {
        let counters = |route: &str| registry.enum_counters(&catalogue::API_REQUESTS, &[route], &CLASSES);
        let other = counters(OTHER);
        RequestCounts { routes: routes.map(|route| (route.clone(), counters(&route))).collect(), other }
    }

    /// Counts a request to the route that matched, if one did.
    pub(crate) fn add(&self, route: Option<&str>, status: StatusCode) {
        let counters = route.and_then(|route| self.routes.get(route)).unwrap_or(&self.other);
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len());
        counters.inc(class - 1);
    }
}
