//! Services of the process that the proxy uses: metrics, events, logs, traces.

use std::path::PathBuf;
use std::sync::Arc;

use portcullis_event::Event;
use portcullis_exchange::{Capture, OnRequest};
use portcullis_inspect::{IssuedCookies, KeptFile};
use portcullis_metrics::{DataPlane, Registry};

/// Finds the cookies that the upstreams of a site have set.
pub type FindCookies = Arc<dyn Fn(&str) -> Arc<IssuedCookies> + Send + Sync>;

/// Services of the process that the proxy uses. Two proxies in one process share nothing through them unless
/// their handles do.
#[derive(Clone)]
pub struct Services {
    /// The registry of metrics for routes.
    pub registry: Arc<Registry>,
    /// Counters without regard to the route.
    pub metrics: DataPlane,
    /// Takes a finished event. Called on the worker, so it must not wait. None: no events are made.
    pub on_event: Option<Arc<dyn Fn(Event) + Send + Sync>>,
    /// Events a second of one kind and client that a worker makes one by one; further ones become one event
    /// with a count. 0: all are made.
    pub coalesce_above: u32,
    /// Requests are kept with their events, and of their bodies so many bytes; 0: they are not.
    pub keep_request_bytes: usize,
    /// Takes a sample of the requests that pass without an event. Called on the worker, so it must not wait.
    pub capture: Option<Capture>,
    /// Takes the record of each request, whatever its outcome. Called on the worker, so it must not wait.
    pub on_request: Option<OnRequest>,
    /// Takes an uploaded file that is to be kept. Called on the worker, so it must not wait.
    pub on_file: Arc<dyn Fn(KeptFile) + Send + Sync>,
    /// The files of access logs that are open.
    pub access_logs: Vec<PathBuf>,
    /// Takes a line for one of them, by index. Called on the worker, so it must not wait.
    pub on_access: Arc<dyn Fn(usize, Vec<u8>) + Send + Sync>,
    /// The cookies that the upstreams of a site have set, by its name: the same ones while they are in use.
    pub issued_cookies: FindCookies,
    /// The sender of traces, if there are any.
    pub traces: Option<portcullis_trace::Sender>,
    /// Takes a line for the operator, without a line break: an endpoint is down, or back. These are rare.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}
