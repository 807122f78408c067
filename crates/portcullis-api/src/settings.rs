use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis_event_store::{EventSource, Store};
use portcullis_identity::Identities;
use portcullis_metrics::Registry;
use portcullis_revisions::Revisions;

use crate::fields::LearnedFields;
use crate::interfaces::Interfaces;
use crate::live::LiveState;
use crate::oidc::OidcLogin;
use crate::setup::SetupCode;
use crate::supplies::{Bans, Health, Reload, Trials};

/// Parts that the running program supplies.
pub struct Supplies {
    /// Users, tokens, sessions and the audit trail.
    pub identities: Arc<Identities>,
    /// The event store of this process; none: there are no events.
    pub events: Option<Store>,
    /// The sample of requests that passed; none: there is none.
    pub sample: Option<Store>,
    /// The database of events that is listed, searched and counted in place of the store; none: the store.
    pub database: Option<Arc<dyn EventSource>>,
    /// The banned clients; none: there are no bans.
    pub bans: Option<Arc<dyn Bans>>,
    /// Interface to reload; none: there is nothing to reload.
    pub reload: Option<Arc<dyn Reload>>,
    /// The settings that serve now.
    pub live: Arc<dyn LiveState>,
    /// The interfaces that were discovered; none: nothing is.
    pub interfaces: Option<Arc<dyn Interfaces>>,
    /// Learned fields of sites.
    pub fields: Arc<dyn LearnedFields>,
    /// The policies that serve, for messages that are not served.
    pub trials: Arc<dyn Trials>,
    /// The document and its revisions; none: the settings come from elsewhere.
    pub revisions: Option<Arc<Revisions>>,
    /// For `/health`; it has to answer at once.
    pub health: Arc<dyn Fn() -> Health + Send + Sync>,
    /// Registry in which requests and failed logins are counted.
    pub registry: Arc<Registry>,
    /// The program's version.
    pub version: &'static str,
    /// Names, in lower case and without ports, under which the API may be asked, beside addresses and
    /// `localhost`.
    pub hosts: Vec<String>,
    /// Login at a provider; none: only with passwords.
    pub oidc: Option<OidcLogin>,
    /// The code with which the first administrator is created; none: there is one, or a token.
    pub setup: Option<SetupCode>,
    /// A line for the operator.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
    /// The time in milliseconds since 1970.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// Bounds of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. When they are used up, one that waits for its client is closed: of one without
    /// credentials first, and the oldest of the network with the most; if all are being answered, more wait
    /// in the listen queue. Default 128.
    pub connections_max: usize,
    /// Connections of one client (an IPv6 network of 64 bits is one). Beyond them one of the client's own
    /// that waits for it is closed; if all are being answered, the new one. Default 32.
    pub client_connections_max: usize,
    /// From opening a connection, or from the last answer, to the end of the next head; then the connection
    /// closes. Also for a TLS handshake. Default 15 s.
    pub head_time_max: Duration,
    /// For the body of a request; then 408. Default 10 s.
    pub body_time_max: Duration,
    /// Bytes of a request's body; beyond them 413. Default 64 KiB.
    pub body_bytes_max: usize,
    /// For the body of a request without credentials, such as a login; then 408. Default 5 s.
    pub public_body_time_max: Duration,
    /// Bytes of such a body; beyond them 413. Default 16 KiB.
    pub public_body_bytes_max: usize,
    /// Bytes of a request's body that carries a whole document, as JSON. Default: 2 MiB and a bit.
    pub document_bytes_max: usize,
    /// Such bodies at a time; further ones get 503. Default 8.
    pub document_bodies_max: usize,
    /// The time that a client may take to read what was written; then the connection closes. Default 30 s.
    pub write_time_max: Duration,
    /// Requests that are answered at a time; further ones get 503. One whose body is not there yet does not
    /// count. Default 64.
    pub requests_max: usize,
    /// The time that a request may take; then 503. Default 30 s.
    pub request_time_max: Duration,
    /// Queries of the event store at a time, and of the database of events; further ones wait within their
    /// request's time. Default 2.
    pub queries_max: usize,
    /// The time that a query may look for events; then the page ends early and says so. Default 5 s.
    pub query_time_max: Duration,
    /// Changes of the document at a time: one is made, the others wait; further ones get 503. Default 4.
    pub changes_max: usize,
    /// Streams of events; further ones get 503. Default 16.
    pub streams_max: usize,
    /// Streams of one identity; further ones get 503. Default 4.
    pub identity_streams_max: usize,
    /// Between two looks for new events. Default 1 s.
    pub stream_every: Duration,
    /// A stream ends after this time; clients connect again by themselves. Default 1 hour.
    pub stream_time_max: Duration,
    /// Logins that wait for the computation of a password; further ones get 503. Default 8.
    pub logins_waiting_max: usize,
    /// Logins that ask the provider at a time; further ones get 503. Default 4.
    pub provider_logins_max: usize,
    /// A login from where the user has not logged in before takes at least this time, and one is handled at a
    /// time: so guessing costs the proxy at most a share of one core. Default 200 ms.
    pub stranger_login_time: Duration,
    /// The time that open connections get to finish after shutdown. Default 1 s.
    pub drain_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 128,
            client_connections_max: 32,
            head_time_max: Duration::from_secs(15),
            body_time_max: Duration::from_secs(10),
            body_bytes_max: 64 << 10,
            public_body_time_max: Duration::from_secs(5),
            // The longest password in JSON, each character escaped.
            public_body_bytes_max: 16 << 10,
            // Each line end of a document is two bytes in JSON.
            document_bytes_max: 2 * portcullis_revisions::DOCUMENT_BYTES_MAX + (64 << 10),
            document_bodies_max: 8,
            write_time_max: Duration::from_secs(30),
            requests_max: 64,
            request_time_max: Duration::from_secs(30),
            queries_max: 2,
            query_time_max: Duration::from_secs(5),
            changes_max: 4,
            streams_max: 16,
            identity_streams_max: 4,
            stream_every: Duration::from_secs(1),
            stream_time_max: Duration::from_secs(3600),
            logins_waiting_max: 8,
            provider_logins_max: 4,
            stranger_login_time: Duration::from_millis(200),
            drain_time_max: Duration::from_secs(1),
        }
    }
}

/// Origin of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The client's address.
    pub(crate) address: IpAddr,
    /// Over TLS.
    pub(crate) is_tls: bool,
}
