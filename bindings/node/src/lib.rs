//! The engine as a Node.js addon. Phase 2 over large bodies runs on libuv's threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Task};
use napi_derive::napi;
use portcullis_binding::{Answer, Broken, Events, Exchange as Shown, Head, Settings, Waf as Engine};

/// Settings; `index.d.ts` documents them.
#[napi(object)]
#[derive(Default)]
pub struct Options {
    /// Path of a configuration document.
    pub document: Option<String>,
    /// The site of the document, or the name of the site in events.
    pub site: Option<String>,
    /// The route of the document's site.
    pub route: Option<String>,
    /// `semantic`, `crs` or `both`.
    pub mode: Option<String>,
    /// `balanced` or `strict`.
    pub level: Option<String>,
    /// Folder of the CRS.
    pub crs: Option<String>,
    /// Paranoia level.
    pub paranoia: Option<f64>,
    /// Files of rules.
    pub rules: Option<Vec<String>>,
    /// SecLang directives.
    pub directives: Option<String>,
    /// Report what would be blocked, block nothing.
    pub detect_only: Option<bool>,
    /// Bytes of a request body that are inspected.
    pub request_body_limit: Option<f64>,
    /// Inspect bodies of responses.
    pub response_bodies: Option<bool>,
    /// Let pass what cannot be inspected.
    pub fail_open: Option<bool>,
    /// File of the block page.
    pub block_page: Option<String>,
    /// Bytes of memory for all bodies.
    pub held_bytes_max: Option<f64>,
}

impl Options {
    fn settings(self) -> Result<Settings> {
        Ok(Settings {
            document: self.document.map(PathBuf::from),
            site: self.site,
            route: self.route,
            mode: self.mode,
            level: self.level,
            crs: self.crs.map(PathBuf::from),
            paranoia: number("paranoia", self.paranoia)?,
            rules: self.rules.unwrap_or_default().into_iter().map(PathBuf::from).collect(),
            directives: self.directives,
            detect_only: self.detect_only.unwrap_or(false),
            request_body_limit: number("requestBodyLimit", self.request_body_limit)?,
            response_bodies: self.response_bodies,
            fail_open: self.fail_open.unwrap_or(false),
            block_page: self.block_page.map(PathBuf::from),
            held_bytes_max: number("heldBytesMax", self.held_bytes_max)?,
        })
    }
}

/// A whole number that fits; JavaScript would cut any other one to something that does.
fn number<T: TryFrom<u64>>(name: &str, value: Option<f64>) -> Result<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let is_whole = value.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&value);
    let whole = if is_whole { T::try_from(value as u64).ok() } else { None };
    let whole =
        whole.ok_or_else(|| Error::from_reason(format!("{name}: {value} is not a number it can be")))?;
    Ok(Some(whole))
}

/// The head of a request. Texts are bytes as Latin-1, as Node.js passes them.
#[napi(object)]
pub struct RequestHead {
    /// The method.
    pub method: String,
    /// The target as it came.
    pub target: String,
    /// `1.1`, for instance.
    pub version: String,
    /// Names and values in turn.
    pub fields: Vec<String>,
    /// Address of the client.
    pub client: String,
    /// Its port.
    pub port: u16,
    /// True if the request came over TLS.
    pub tls: bool,
    /// True if there may be a body without a field that announces it.
    pub may_have_body: bool,
}

/// An answer in place of the application's.
#[napi(object)]
pub struct BlockAnswer {
    /// The status.
    pub status: u16,
    /// Names and values in turn.
    pub fields: Vec<String>,
    /// The body.
    pub body: Buffer,
}

/// A policy at work.
#[napi]
pub struct Waf {
    engine: Engine,
    events: Events,
}

#[napi]
impl Waf {
    /// Reads, checks and compiles everything.
    #[napi(constructor)]
    pub fn new(options: Option<Options>) -> Result<Waf> {
        let settings = options.unwrap_or_default().settings()?;
        let (engine, events) = settings.open().map_err(Error::from_reason)?;
        Ok(Waf { engine, events })
    }

    /// Begins an exchange.
    #[napi]
    pub fn begin(&self, head: RequestHead) -> Exchange {
        let head = Head {
            method: latin1(&head.method),
            target: latin1(&head.target),
            version: head.version,
            fields: pairs(&head.fields),
            client: head.client,
            port: head.port,
            tls: head.tls,
            may_have_body: head.may_have_body,
        };
        Exchange(Arc::new(Mutex::new(Some(head.begin(&self.engine)))))
    }

    /// Reads the document or the rule files again; returns the number of the new settings.
    #[napi]
    pub fn reload(&self) -> Result<u32> {
        let generation = self.engine.reload().map_err(|error| Error::from_reason(error.to_string()))?;
        Ok(u32::try_from(generation).unwrap_or(u32::MAX))
    }

    /// Metrics in the text form of Prometheus.
    #[napi]
    pub fn metrics(&self) -> String {
        self.engine.metrics()
    }

    /// Warnings about the rules.
    #[napi]
    pub fn warnings(&self) -> Vec<String> {
        self.engine.warnings().to_vec()
    }

    /// Events since the last call, as JSON.
    #[napi]
    pub fn take_events(&self) -> Vec<String> {
        self.events.take()
    }

    /// The number of events that were dropped because nobody took them.
    #[napi]
    pub fn events_dropped(&self) -> u32 {
        u32::try_from(self.events.dropped()).unwrap_or(u32::MAX)
    }
}

/// The state of an exchange; none once it has ended.
type State = Arc<Mutex<Option<Shown>>>;

fn locked(state: &State) -> MutexGuard<'_, Option<Shown>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One exchange of the application with a client. After `end` nothing has an effect.
#[napi]
pub struct Exchange(State);

impl Exchange {
    fn with<T: Default>(&self, work: impl FnOnce(&mut Shown) -> T) -> T {
        locked(&self.0).as_mut().map(work).unwrap_or_default()
    }
}

#[napi]
impl Exchange {
    /// True if the request body is to be shown, and held back until `requestEnd`.
    #[napi]
    pub fn wants_request_body(&self) -> bool {
        self.with(|shown| shown.wants_request_body())
    }

    /// A piece of the request body; false if no more of it is wanted.
    #[napi]
    pub fn request_body(&self, piece: Buffer) -> bool {
        self.with(|shown| shown.request_body(&piece))
    }

    /// The rest of the request body does not come: too late, or unreadable.
    #[napi]
    pub fn request_broken(&self, late: bool) {
        self.with(|shown| shown.request_broken(if late { Broken::Late } else { Broken::Unreadable }));
    }

    /// The end of what is shown of the request.
    #[napi]
    pub fn request_end(&self) {
        self.with(|shown| shown.request_end());
    }

    /// The same on another thread.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn request_end_beside(&self) -> AsyncTask<Phase> {
        AsyncTask::new(Phase(Arc::clone(&self.0), |shown| shown.request_end()))
    }

    /// The head of the response; names and values by turns.
    #[napi]
    pub fn response_head(&self, status: u16, fields: Vec<String>, ended: bool) {
        let fields = pairs(&fields);
        self.with(|shown| {
            shown.response_head(status, fields.iter().map(|(name, value)| (&name[..], &value[..])), ended);
        });
    }

    /// True if the response body is to be shown, and held back until `responseEnd`.
    #[napi]
    pub fn wants_response_body(&self) -> bool {
        self.with(|shown| shown.wants_response_body())
    }

    /// The longest time in milliseconds for which a response body is held; none: without a limit.
    #[napi]
    pub fn response_wait_max(&self) -> Option<u32> {
        let wait = self.with(|shown| shown.response_wait_max());
        wait.map(|wait| u32::try_from(wait.as_millis()).unwrap_or(u32::MAX))
    }

    /// A piece of the response body; false if no more of it is wanted.
    #[napi]
    pub fn response_body(&self, piece: Buffer) -> bool {
        self.with(|shown| shown.response_body(&piece))
    }

    /// The end of what is shown of the response.
    #[napi]
    pub fn response_end(&self, is_whole: bool) {
        self.with(|shown| shown.response_end(is_whole));
    }

    /// Counts bytes of the bodies that went on without being shown.
    #[napi]
    pub fn passed(&self, request_bytes: u32, response_bytes: u32) {
        self.with(|shown| {
            shown.request_passed().add(request_bytes as usize);
            shown.response_passed().add(response_bytes as usize);
        });
    }

    /// The answer in place of the application's, if there is one.
    #[napi]
    pub fn answer(&self) -> Option<BlockAnswer> {
        let answer = locked(&self.0).as_ref().and_then(Answer::of)?;
        let fields = answer.fields.into_iter().flat_map(|(name, value)| [name, value]);
        Some(BlockAnswer { status: answer.status, fields: fields.collect(), body: answer.body.into() })
    }

    /// The id of the exchange.
    #[napi]
    pub fn request_id(&self) -> String {
        self.with(|shown| shown.request_id().to_owned())
    }

    /// Ends the exchange; its event is queued.
    #[napi]
    pub fn end(&self) {
        drop(locked(&self.0).take());
    }
}

/// A phase on one of libuv's threads.
pub struct Phase(State, fn(&mut Shown));

impl Task for Phase {
    type Output = ();
    type JsValue = ();

    fn compute(&mut self) -> Result<()> {
        if let Some(shown) = locked(&self.0).as_mut() {
            (self.1)(shown);
        }
        Ok(())
    }

    fn resolve(&mut self, _: Env, (): ()) -> Result<()> {
        Ok(())
    }
}

/// The bytes of a Latin-1 text; a text with other characters as UTF-8.
fn latin1(text: &str) -> Vec<u8> {
    let bytes = text.chars().map(|sign| u8::try_from(u32::from(sign)));
    bytes.collect::<std::result::Result<_, _>>().unwrap_or_else(|_| text.as_bytes().to_vec())
}

fn pairs(fields: &[String]) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields.as_chunks::<2>().0.iter().map(|[name, value]| (latin1(name), latin1(value))).collect()
}
