//! Interfaces to the program that the API runs in.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use portcullis_config::{Format, Mistake};

/// A banned client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banned {
    /// Scope of the ban: `all`, a site, or SITE/ROUTE.
    pub ban: String,
    /// Its address or network.
    pub client: String,
    /// Until when, in milliseconds since 1970.
    pub until: u64,
    /// Number of its bans so far.
    pub count: u32,
}

/// The banned clients.
pub trait Bans: Send + Sync {
    /// All of them.
    fn list(&self) -> Vec<Banned>;
    /// Bans a client at one ban or everywhere, for so long at least: the bans that this makes or extends.
    fn impose(&self, ban: Option<&str>, client: IpAddr, length: Duration) -> Vec<Banned>;
    /// Lets a client in again, at one ban or everywhere: how many bans that ends.
    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize;
}

/// Result of a reload: what serves now, or why the old settings stay in use. None if the program is ending.
pub type ReloadResult = Option<Result<String, String>>;

/// Loads settings, rules and certificates again.
pub trait Reload: Send + Sync {
    /// Begins a reload and waits for its end.
    fn reload(&self) -> Pin<Box<dyn Future<Output = ReloadResult> + Send + '_>>;
}

/// The state of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It serves.
    Ready,
    /// It is ending.
    Draining,
}

/// A message that is inspected and not served.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The site; none: the one that serves the request's host.
    pub site: Option<String>,
    /// The route of the site; none: the one that takes the request.
    pub route: Option<String>,
    /// The request as it would be sent.
    pub request: Vec<u8>,
    /// Remarks on how it was read.
    pub notes: Vec<String>,
    /// The response, if it is inspected, too.
    pub response: Option<Vec<u8>>,
    /// The client's address.
    pub client: IpAddr,
    /// Also matches of rules that only keep the books of their set.
    pub all: bool,
    /// The rule of which every test is reported.
    pub rule: Option<u32>,
}

/// The result of a trial.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The site.
    pub site: String,
    /// The route.
    pub route: String,
    /// The number of the settings.
    pub generation: u64,
    /// The explanation, as JSON.
    pub explanation: String,
}

/// The reason why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialError {
    /// There is no such site, or none that serves the host.
    NoSite,
    /// The site has no such route, or none that takes the request.
    NoRoute,
    /// The path as written and as servers resolve it lead to different routes: the proxy refuses it.
    Ambiguous,
    /// The route's requests are not inspected.
    NotInspected {
        /// The site.
        site: String,
        /// The route.
        route: String,
    },
    /// The rules of the route have no rule of this id.
    NoRule(u32),
    /// The response is not one of HTTP/1.
    Response(String),
    /// The explanation cannot be written.
    Failed(String),
}

/// A request of the event store.
#[derive(Clone, Debug)]
pub struct StoredRequest {
    /// Its id.
    pub id: String,
    /// The request as it would be sent.
    pub request: Vec<u8>,
    /// The client's address.
    pub client: IpAddr,
}

/// A request that was stopped wrongly, and the document that an exclusion would be added to.
#[derive(Clone, Debug)]
pub struct AdviceOrder {
    /// The text of the document.
    pub text: String,
    /// Its form.
    pub format: Format,
    /// Its file.
    pub file: String,
    /// The site.
    pub site: String,
    /// The route.
    pub route: String,
    /// The request.
    pub request: StoredRequest,
    /// Others of the same site, to see which of them an exclusion would let through.
    pub others: Vec<StoredRequest>,
}

/// A request that another document is tried on.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// Its id, or its number.
    pub id: String,
    /// The request as it would be sent.
    pub request: Vec<u8>,
    /// Bytes of the body that are missing.
    pub omitted: u64,
    /// The site and the route, where they are known.
    pub site: Option<String>,
    /// The route of the site.
    pub route: Option<String>,
    /// The client's address.
    pub client: IpAddr,
}

/// Two texts for the document, and the requests that they are compared on.
#[derive(Clone, Debug)]
pub struct ReplayOrder {
    /// The text that is tried.
    pub text: String,
    /// The text that it is compared with.
    pub against: String,
    /// The form of both.
    pub format: Format,
    /// The file that they belong to.
    pub file: String,
    /// The site of requests of which it is not known.
    pub site: Option<String>,
    /// The requests.
    pub requests: Vec<ReplayRequest>,
    /// Changes that are reported, at most.
    pub changes_max: usize,
    /// After this time no further request is tried.
    pub patience: Duration,
}

/// A request on which two documents differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayChange {
    /// It was stopped and would pass; otherwise it passed and would be stopped.
    pub is_lost: bool,
    /// Its id.
    pub id: String,
    /// Its site, where that is known.
    pub site: Option<String>,
    /// The client's address.
    pub client: IpAddr,
    /// Method and target.
    pub line: String,
    /// Why it was stopped, or would be.
    pub reason: String,
}

/// Decisions of two configurations on requests.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Requests that were tried.
    pub requests: usize,
    /// Requests that the text would stop.
    pub stopped: usize,
    /// Requests that were stopped and would pass.
    pub lost: usize,
    /// Requests that passed and would be stopped.
    pub new: usize,
    /// Requests that no route which is inspected takes.
    pub not_inspected: usize,
    /// Requests of which the end of the body is missing.
    pub incomplete: usize,
    /// Requests for which there was no time.
    pub untried: usize,
    /// The first of those that differ.
    pub changes: Vec<ReplayChange>,
}

/// The reason why nothing was replayed.
#[derive(Clone, Debug)]
pub enum ReplayError {
    /// A text has mistakes.
    Document(Vec<Mistake>),
    /// Its rules cannot be loaded, or it has no such site.
    Unfit(String),
}

/// All that a start would find wrong with a document.
#[derive(Clone, Debug, Default)]
pub struct CheckedDocument {
    /// Mistakes, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// Settings that are hardly meant.
    pub warnings: Vec<Mistake>,
    /// The rules of each policy, in the order of the document.
    pub rules: Vec<CheckedRules>,
}

/// The rules of a policy.
#[derive(Clone, Debug, Default)]
pub struct CheckedRules {
    /// Rules that would be loaded; 0 if they have a mistake.
    pub rules: usize,
    /// Mistakes, each a text of several lines with its place.
    pub errors: Vec<String>,
    /// Directives that are hardly meant, likewise.
    pub warnings: Vec<String>,
}

/// A test event for a sink of a text for the document.
#[derive(Clone, Debug)]
pub struct SinkOrder {
    /// The text.
    pub text: String,
    /// Its form.
    pub format: Format,
    /// Its file.
    pub file: String,
    /// The name of the sink.
    pub sink: String,
    /// Who asks.
    pub by: String,
}

/// Result of a test event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkTested {
    /// The time that it took.
    pub time: Duration,
    /// The reason why the receiver does not have it; none: it was sent.
    pub error: Option<String>,
    /// The receiver has said that it has it.
    pub is_confirmed: bool,
}

/// The reason why no test event was sent.
#[derive(Clone, Debug)]
pub enum SinkTestError {
    /// The text has mistakes.
    Document(Vec<Mistake>),
    /// It has no such sink; those that it has.
    NoSink(Vec<String>),
}

/// Messages and documents tried, without serving by them. It may take as long as inspecting rule by rule or
/// loading all rules does.
pub trait Trials: Send + Sync {
    /// Explains what would happen to a message.
    fn explain(&self, trial: Trial) -> Result<Explained, TrialError>;

    /// Measures the exclusions that come into question: JSON, or the reason why there are none. Takes a few
    /// seconds.
    fn advise(&self, order: AdviceOrder) -> Result<String, String>;

    /// Compares what two texts for the document decide on requests.
    fn replay(&self, order: ReplayOrder) -> Result<Replayed, ReplayError>;

    /// Sends a test event through a sink, beside those that run. It takes as long as the time limits of the
    /// sink allow.
    fn test_sink(&self, order: SinkOrder) -> Result<SinkTested, SinkTestError>;

    /// Checks a text for the document that is in this file, with the rules that it names.
    fn check(&self, text: String, format: Format, file: String) -> CheckedDocument;
}
