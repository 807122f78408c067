//! The account of one request: decision, cost, and the facts for events and metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_access::{Key, Whereabouts};
use portcullis_exchange::{Health, Lifecycle};
use portcullis_http::message::{RequestHead, Version};
use portcullis_inspect::{Connection as Inspected, Inspector, Step};

use crate::access::{ControlDecision, Entry, Visitor};
use crate::access_log::AccessLog;
use crate::agents;
use crate::beside::{Asker, LARGE_BYTES_MIN};
use crate::budget::{Full, Held};
use crate::client;
use crate::clock;
use crate::compress::{Compression, Recoded};
use crate::connection::{Began, Connection};
use crate::facts::{self, Facts};
use crate::generation::Generation;
use crate::header_changes::Changed;
use crate::https::{self, Https};
use crate::offload;
use crate::route::Route;
use crate::state::Shared;
use crate::trace::Traced;
use crate::upstream::Group;
use portcullis_tls::ClientCertificate;

/// Inspection that is on a network's account before the request has its answer.
const CHARGED_AT_ONCE: Duration = Duration::from_micros(500);

/// One request with its response, from first byte to logged event.
pub(crate) struct Transaction {
    pub(crate) request_id: String,
    pub(crate) life: Lifecycle,
    /// The memory of the inspection, as the budget sees it; none while there was no body.
    memory: Option<Held>,
    inspector: Option<Arc<Inspector>>,
    pub(crate) trace: Option<Box<Traced>>,
    /// Agents that have yet to decide.
    pub(crate) agents: Option<Box<agents::Asked>>,
    pub(crate) agent_headers: agents::Headers,
    /// One that gave no decision.
    pub(crate) failed_agent: Option<Arc<agents::Agent>>,
    /// Fields that came behind the request body. They do not go on.
    pub(crate) trailers_dropped: u32,
    /// Bytes of a response body in the coding that we gave it.
    pub(crate) coded_body_bytes: Option<u64>,
    /// The changes of the answer's headers by the route.
    pub(crate) response_headers: Option<Box<Changed>>,
    /// The compression of answers, if the route has it.
    pub(crate) compression: Option<Arc<Compression>>,
    /// The changes of the answer's head for its compression.
    pub(crate) recoded: Recoded,
    /// `Strict-Transport-Security`, if answers are to have it.
    pub(crate) hsts: Option<Arc<Https>>,
    /// `Alt-Svc`, if answers are to have it.
    pub(crate) alt_svc: Option<String>,
    /// Keeps the client at its endpoint.
    pub(crate) sticky_cookie: Option<String>,
    /// The client went away before it had the whole answer.
    pub(crate) client_aborted: bool,
    client: SocketAddr,
    /// The account of the client's network, and how much of the inspection is on it.
    pub(crate) account: Key,
    charged_time: Duration,
    /// Bytes of the request's head.
    head_bytes: u64,
    place: Whereabouts,
    /// That which the client was known by, if it has one.
    client_certificate: Option<Arc<ClientCertificate>>,
    /// The control that refused the client, or would have.
    pub(crate) decision: Option<ControlDecision>,
    /// True if the request is inspected.
    pub(crate) entry: Entry,
    /// The access log that its line goes to.
    pub(crate) access_log: Option<AccessLog>,
    /// The endpoint that was asked last.
    endpoint: Option<(Arc<Group>, usize)>,
    pub(crate) began: Began,
}

impl Transaction {
    /// The client that sent it.
    pub(crate) fn visitor(&self) -> Visitor {
        Visitor { address: self.client.ip(), place: self.place }
    }

    /// Begins the account of a request that `route` serves; without a route, or if it is not to, nothing
    /// inspects it.
    pub(crate) fn begin(
        connection: &Connection,
        generation: &Generation,
        head: &RequestHead,
        route: Option<&Route>,
        (client, place): (SocketAddr, Whereabouts),
        (entry, account): (Entry, Key),
    ) -> Self {
        let (began, services) = (connection.began, &connection.worker.shared.services);
        let request_id = client::request_id(&generation.client_address, connection.peer, head)
            .unwrap_or_else(|| connection.worker.request_ids.borrow_mut().make(began.time));
        let about = || Inspected {
            client,
            server: connection.local,
            request_id: request_id.clone(),
            epoch_millis: began.epoch_millis(),
            utc_offset_seconds: generation
                .local_time
                .utc_offset_seconds((began.epoch_millis() / 1000) as i64),
            tls: connection.tls,
            environment: match &connection.client_certificate {
                Some(certificate) => ClientCertificate::environment(certificate.as_deref()),
                None => Vec::new(),
            },
            keep_request_bytes: services.keep_request_bytes,
            capture_share: services.capture.as_ref().map_or(0.0, |capture| capture.share),
        };
        let worker = &connection.worker;
        let inspected = route.filter(|_| entry == Entry::Inspected);
        let mut life = match inspected.and_then(|route| route.inspector.as_ref().zip(Some(route))) {
            Some((inspector, route)) => Lifecycle::begin(route.failure, clock::WORK, || {
                let mut inspection = inspector.begin(&route.names, about(), worker.take_scratch());
                inspection.name_files(|| worker.request_ids.borrow_mut().secret());
                if let Some(cookies) = &route.cookies {
                    inspection.know_cookies(&cookies.issued);
                }
                inspection
            }),
            None => Lifecycle::default(),
        };
        life.outcome.no_event = services.on_event.is_none();
        let trace = Traced::begin(connection, generation, head);
        if trace.as_ref().is_some_and(|trace| trace.is_sampled()) {
            life.keep_phases();
        }
        Transaction {
            request_id,
            life,
            memory: None,
            inspector: route.and_then(|route| route.inspector.clone()),
            trace,
            agents: None,
            agent_headers: agents::Headers::default(),
            failed_agent: None,
            trailers_dropped: 0,
            coded_body_bytes: None,
            response_headers: None,
            compression: route.and_then(|route| route.compression.clone()),
            recoded: Recoded::default(),
            hsts: {
                let https = route.map(|route| &route.https).filter(|https| https.field().is_some());
                let peer = connection.peer.ip();
                https
                    .filter(|_| facts::is_secure(connection.tls, peer, &generation.client_address, head))
                    .cloned()
            },
            alt_svc: {
                let offered = generation.listeners[connection.listener].http3;
                (offered && head.version() < Version::Http3).then(|| https::alt_svc(head))
            },
            sticky_cookie: None,
            client_aborted: false,
            client,
            account,
            charged_time: Duration::ZERO,
            head_bytes: head.received_len() as u64,
            place,
            client_certificate: connection.client_certificate.clone().flatten(),
            decision: None,
            entry,
            access_log: route.map_or(generation.access_log, |route| route.access_log),
            endpoint: None,
            began,
        }
    }

    /// The facts of the request that were known before its inspection.
    pub(crate) fn facts<'a>(&'a self, head: &'a RequestHead) -> Facts<'a> {
        Facts {
            head,
            request_id: &self.request_id,
            client: self.client,
            place: &self.place,
            certificate: self.client_certificate.as_deref(),
        }
    }

    /// The address of the client, as trusted proxies have it.
    pub(crate) fn client(&self) -> SocketAddr {
        self.client
    }

    /// Charges what the inspection holds of bodies.
    pub(crate) fn charge(&mut self, connection: &mut Connection) {
        let bytes = self.life.held_bytes();
        self.memory.get_or_insert_with(|| connection.memory(self.client.ip())).set(bytes);
    }

    /// Phase 2; an error where the client's network has too much to inspect, or there is no memory for the
    /// values of the body. `held` is charged for the body beside the inspection.
    pub(crate) async fn request_end(
        &mut self,
        shared: &Shared,
        truncated: bool,
        held: u64,
    ) -> Result<Step, Full> {
        self.life.set_elapsed(self.began.instant.elapsed());
        let values = self.life.request_end_bytes();
        if values > 0
            && let Some(memory) = &mut self.memory
        {
            memory.wait_to_reserve(values, held).await?;
        }
        let step = match &self.memory {
            Some(memory) => {
                let by = asker(shared, memory, self.account);
                offload::request_end(&mut self.life, truncated, by).await
            }
            None => Ok(self.life.request_end(truncated)),
        };
        // The answer may be long in coming.
        let now = Instant::now();
        self.charge_time(shared, now);
        let bytes = self.head_bytes + self.life.request_body_shown();
        shared.overload.note_request(self.account, bytes, self.life.cost(), shared.clock(now));
        step
    }

    /// Phase 1; an error where the client's network has too much to inspect.
    pub(crate) async fn request_head(
        &mut self,
        connection: &mut Connection,
        head: &RequestHead,
    ) -> Result<Step, Full> {
        let shared = Arc::clone(&connection.worker.shared);
        let large_from = shared.overload.large_from(self.account, shared.clock(self.began.instant));
        if self.head_bytes < large_from || self.life.health() != Health::Well {
            return Ok(self.life.request_head(head, None));
        }
        let memory = self.memory.get_or_insert_with(|| connection.memory(self.client.ip()));
        let by = asker(&shared, memory, self.account);
        offload::request_head(&mut self.life, head, by).await
    }

    /// A piece of an upload behind phase 2, the last one or not.
    pub(crate) async fn upload(&mut self, piece: &[u8], is_last: bool, shared: &Shared) -> Step {
        let step = match &self.memory {
            Some(memory) => {
                let by = asker(shared, memory, self.account);
                offload::upload_piece(&mut self.life, piece, is_last, by).await
            }
            None => self.life.upload(piece, is_last),
        };
        self.charge_time(shared, Instant::now());
        step
    }

    /// Phase 4.
    pub(crate) async fn response_end(&mut self, shared: &Shared, truncated: bool) -> Step {
        self.life.set_elapsed(self.began.instant.elapsed());
        match &self.memory {
            Some(memory) => {
                let by = asker(shared, memory, self.account);
                // What is long here is the application's answer.
                let by = Asker { large_from: by.large_from.max(LARGE_BYTES_MIN), ..by };
                offload::response_end(&mut self.life, truncated, by).await
            }
            None => self.life.response_end(truncated),
        }
    }

    /// Puts the inspection, as far as it has come, on the account of the client's network.
    pub(crate) fn charge_time(&mut self, shared: &Shared, now: Instant) {
        let more = self.uncharged_time();
        // What is little comes with the request, at its end.
        if more >= CHARGED_AT_ONCE {
            self.charged_time += more;
            shared.overload.charge_inspection(self.account, more, shared.clock(now));
        }
    }

    /// Processor time that is not on it.
    pub(crate) fn uncharged_time(&self) -> Duration {
        self.life.cost().saturating_sub(self.charged_time)
    }

    /// The same after a phase, if there was a body.
    pub(crate) fn recharge(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.set(self.life.held_bytes());
        }
    }

    /// Bytes that are charged for the inspection.
    pub(crate) fn charged(&self) -> u64 {
        self.memory.as_ref().map_or(0, Held::bytes)
    }

    /// The place of the client.
    pub(crate) fn place(&self) -> &Whereabouts {
        &self.place
    }

    /// Records of transactions are kept, which show the headers of answers.
    pub(crate) fn is_recorded(&self) -> bool {
        self.inspector.as_ref().is_some_and(|inspector| inspector.keeps_records())
    }

    /// The `Server` header of answers, if the rules set it; empty if there shall be none.
    pub(crate) fn server_signature(&self) -> Option<&[u8]> {
        self.inspector.as_ref()?.server_signature()
    }

    /// Counts bytes of a body that were sent in a coding that we applied.
    pub(crate) fn coded(&mut self, bytes: usize) {
        *self.coded_body_bytes.get_or_insert(0) += bytes as u64;
    }

    /// Notes which endpoint of a group is asked.
    pub(crate) fn asks(&mut self, group: &Arc<Group>, endpoint: usize) {
        self.endpoint = Some((Arc::clone(group), endpoint));
        if let Some(trace) = &mut self.trace {
            trace.asks(group, endpoint);
        }
    }

    /// The name of the endpoint that was asked last.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        let (group, endpoint) = self.endpoint.as_ref()?;
        group.endpoints.members().get(*endpoint).map(|member| member.name.as_str())
    }

    /// Why the endpoint that was asked last could not be connected to, in words, where there are any.
    pub(crate) fn upstream_reason(&self) -> Option<String> {
        let (group, endpoint) = self.endpoint.as_ref()?;
        group.report.why_not_connected(*endpoint)
    }

    /// The client is one of those whose requests are not inspected.
    pub(crate) fn is_bypassed(&self) -> bool {
        self.entry == Entry::Bypassed
    }
}

/// The request for an inspection beside the workers.
fn asker<'a>(shared: &'a Shared, memory: &'a Held, account: Key) -> Asker<'a> {
    let now = shared.clock(Instant::now());
    Asker {
        pool: &shared.beside,
        member: memory.member(),
        account: shared.overload.account(account, now),
        large_from: shared.overload.large_from(account, now),
    }
}
