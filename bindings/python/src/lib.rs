//! The engine as a Python module, `portcullis._native`. Phases run without the interpreter's lock.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portcullis_binding::{Answer, Broken, Events, Exchange as Shown, Head, Settings, Waf as Engine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A policy at work. Threads share it.
#[pyclass(frozen, module = "portcullis._native")]
struct Waf {
    engine: Engine,
    events: Events,
}

/// Status, fields and body of an answer.
type Parts<'py> = (u16, Vec<(String, String)>, Bound<'py, PyBytes>);

#[pymethods]
impl Waf {
    #[new]
    #[pyo3(signature = (
        document = None, *, site = None, route = None, mode = None, level = None, crs = None, paranoia = None,
        rules = Vec::new(), directives = None, detect_only = false, request_body_limit = None,
        response_bodies = None, fail_open = false, block_page = None, held_bytes_max = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        document: Option<PathBuf>,
        site: Option<String>,
        route: Option<String>,
        mode: Option<String>,
        level: Option<String>,
        crs: Option<PathBuf>,
        paranoia: Option<u8>,
        rules: Vec<PathBuf>,
        directives: Option<String>,
        detect_only: bool,
        request_body_limit: Option<u64>,
        response_bodies: Option<bool>,
        fail_open: bool,
        block_page: Option<PathBuf>,
        held_bytes_max: Option<usize>,
    ) -> PyResult<Waf> {
        let settings = Settings {
            document,
            site,
            route,
            mode,
            level,
            crs,
            paranoia,
            rules,
            directives,
            detect_only,
            request_body_limit,
            response_bodies,
            fail_open,
            block_page,
            held_bytes_max,
        };
        let (engine, events) = py.detach(|| settings.open()).map_err(PyValueError::new_err)?;
        Ok(Waf { engine, events })
    }

    /// Begins an exchange by the head of its request.
    #[expect(clippy::too_many_arguments, reason = "the parts of a head")]
    fn begin(
        &self,
        py: Python<'_>,
        method: Vec<u8>,
        target: Vec<u8>,
        version: String,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
        client: String,
        port: u16,
        tls: bool,
        may_have_body: bool,
    ) -> Exchange {
        let head = Head { method, target, version, fields, client, port, tls, may_have_body };
        Exchange(Mutex::new(Some(py.detach(|| head.begin(&self.engine)))))
    }

    /// Reads the document or the rule files again; returns the number of the new settings.
    fn reload(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.engine.reload().map_err(|error| error.to_string())).map_err(PyValueError::new_err)
    }

    /// Metrics in the text form of Prometheus.
    fn metrics(&self) -> String {
        self.engine.metrics()
    }

    /// Warnings about the rules.
    fn warnings(&self) -> Vec<String> {
        self.engine.warnings().to_vec()
    }

    /// Events since the last call, as JSON.
    fn take_events(&self) -> Vec<String> {
        self.events.take()
    }

    /// The number of events that were dropped because nobody took them.
    fn events_dropped(&self) -> u64 {
        self.events.dropped()
    }
}

/// One exchange of the application with a client. After `end` nothing has an effect.
#[pyclass(frozen, module = "portcullis._native")]
struct Exchange(Mutex<Option<Shown>>);

impl Exchange {
    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the exchange without the interpreter's lock.
    fn detached<T: Send + Default>(&self, py: Python<'_>, work: impl FnOnce(&mut Shown) -> T + Send) -> T {
        py.detach(|| self.shown().as_mut().map(work).unwrap_or_default())
    }
}

#[pymethods]
impl Exchange {
    /// True if the request body is to be shown, and held back until `request_end`.
    fn wants_request_body(&self, py: Python<'_>) -> bool {
        self.detached(py, |shown| shown.wants_request_body())
    }

    /// A piece of the request body; false if no more of it is wanted.
    fn request_body(&self, py: Python<'_>, piece: &[u8]) -> bool {
        self.detached(py, |shown| shown.request_body(piece))
    }

    /// The rest of the request body does not come: too late, or unreadable.
    fn request_broken(&self, py: Python<'_>, late: bool) {
        let why = if late { Broken::Late } else { Broken::Unreadable };
        self.detached(py, |shown| shown.request_broken(why));
    }

    /// The end of what is shown of the request.
    fn request_end(&self, py: Python<'_>) {
        self.detached(py, |shown| shown.request_end());
    }

    /// The head of the response.
    fn response_head(&self, py: Python<'_>, status: u16, fields: Vec<(Vec<u8>, Vec<u8>)>, ended: bool) {
        self.detached(py, |shown| {
            let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
            shown.response_head(status, fields, ended);
        });
    }

    /// True if the response body is to be shown, and held back until `response_end`.
    fn wants_response_body(&self, py: Python<'_>) -> bool {
        self.detached(py, |shown| shown.wants_response_body())
    }

    /// The longest time in seconds for which a response body is held; none: without a limit.
    fn response_wait_max(&self, py: Python<'_>) -> Option<f64> {
        self.detached(py, |shown| shown.response_wait_max().map(|wait| wait.as_secs_f64()))
    }

    /// A piece of the response body; false if no more of it is wanted.
    fn response_body(&self, py: Python<'_>, piece: &[u8]) -> bool {
        self.detached(py, |shown| shown.response_body(piece))
    }

    /// The end of what is shown of the response.
    fn response_end(&self, py: Python<'_>, is_whole: bool) {
        self.detached(py, |shown| shown.response_end(is_whole));
    }

    /// Counts bytes of the bodies that went on without being shown.
    fn passed(&self, request_bytes: usize, response_bytes: usize) {
        if let Some(shown) = self.shown().as_ref() {
            shown.request_passed().add(request_bytes);
            shown.response_passed().add(response_bytes);
        }
    }

    /// Status, fields and body of the answer in place of the application's, if there is one.
    fn answer<'py>(&self, py: Python<'py>) -> Option<Parts<'py>> {
        let answer = self.shown().as_ref().and_then(Answer::of)?;
        Some((answer.status, answer.fields, PyBytes::new(py, &answer.body)))
    }

    /// The id of the exchange.
    fn request_id(&self) -> String {
        self.shown().as_ref().map(|shown| shown.request_id().to_owned()).unwrap_or_default()
    }

    /// Ends the exchange; its event is queued.
    fn end(&self, py: Python<'_>) {
        py.detach(|| drop(self.shown().take()));
    }
}

/// The classes that the Python part of the package uses.
#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Waf>()?;
    module.add_class::<Exchange>()
}
