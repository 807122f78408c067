//! The interfaces of sites as the API shows them: plain data that the program fills in.

use serde::Serialize;
use utoipa::ToSchema;

use crate::live::Keyed;

/// The interfaces that were discovered.
pub trait Interfaces: Send + Sync {
    /// The endpoints of a site, or of all, whose method and path have a text in them, whatever its case.
    fn list(&self, site: Option<&str>, text: &str) -> InterfaceList;
    /// One endpoint, by its id.
    fn one(&self, id: &str) -> Option<Interface>;
    /// The endpoints of a site, or of all, that deviate from a declared API, in any order.
    fn deviations(&self, site: Option<&str>) -> Vec<InterfaceDeviation>;
    /// The OpenAPI document of a site; none: nothing is discovered there.
    fn document(&self, site: &str) -> Option<String>;
}

/// Endpoints, and the sites that they are looked for at.
#[derive(Clone, Debug, Default)]
pub struct InterfaceList {
    /// The endpoints, in any order.
    pub items: Vec<InterfaceItem>,
    /// The sites.
    pub sites: Vec<InterfaceSite>,
}

/// A site whose interfaces are discovered.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceSite {
    /// Its name.
    pub site: String,
    /// Endpoints that are known.
    pub endpoints: usize,
    /// The limit.
    pub max: usize,
    /// Requests of endpoints that were beyond a limit.
    pub beyond: u64,
    /// When the first request was seen (RFC 3339); null: none was.
    pub since: Option<String>,
    /// Endpoints that deviate from the declared API, by kind; null: no OpenAPI document is declared.
    pub deviations: Option<DeviationCounts>,
}

/// Endpoints that deviate from a declared API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeviationCounts {
    /// They answer, and are not declared.
    pub shadow: usize,
    /// They answer requests that their declaration does not allow.
    pub drifted: usize,
    /// They are declared as deprecated, and answer.
    pub zombie: usize,
    /// They are declared, and were not seen to answer.
    pub unseen: usize,
}

/// An endpoint that deviates from a declared API.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceDeviation {
    /// The site.
    pub site: String,
    /// `shadow`, `drifted`, `zombie` or `unseen`.
    pub kind: &'static str,
    /// The method.
    pub method: String,
    /// The path: as it was discovered of shadow and drifted endpoints, as it is declared of others.
    pub path: String,
    /// Differences, of drifted ones.
    pub differences: Vec<InterfaceDifference>,
}

impl Keyed for InterfaceDeviation {
    fn key(&self) -> String {
        format!("{} {} {} {}", self.site, self.path, self.method, self.kind)
    }
}

/// A difference at an endpoint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceDifference {
    /// Place and name of a parameter (`query:id`, `json:items[].id`), or `body` for a media type.
    pub what: String,
    /// Its types, as they are declared; null: it is not declared.
    pub declared: Option<String>,
    /// Its types, as they were seen; null: it was not seen.
    pub seen: Option<String>,
}

/// Requests by the class of the answer's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct StatusClasses {
    /// 200 to 299.
    #[serde(rename = "2xx")]
    pub success: u64,
    /// 300 to 399, and 100 to 199.
    #[serde(rename = "3xx")]
    pub redirection: u64,
    /// 400 to 499.
    #[serde(rename = "4xx")]
    pub client_error: u64,
    /// 500 and more.
    #[serde(rename = "5xx")]
    pub server_error: u64,
}

/// An endpoint of a site.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceItem {
    /// Its id.
    pub id: String,
    /// The site.
    pub site: String,
    /// The method.
    pub method: String,
    /// The path, with placeholders for values: `/users/{number}`.
    pub path: String,
    /// When it was first seen (RFC 3339).
    pub first_seen: String,
    /// When it was last seen (RFC 3339).
    pub last_seen: String,
    /// It came after the learning period, and not long ago.
    pub is_new: bool,
    /// Nobody has asked it for long.
    pub is_idle: bool,
    /// More than one network has asked it.
    pub is_confirmed: bool,
    /// Requests that the site has answered.
    pub requests: u64,
    /// Requests that were refused, or would be.
    pub refused: u64,
    /// Networks of clients, about.
    pub networks: u64,
    /// Days on which it was asked.
    pub days: u32,
    /// Answers by the class of their status.
    pub statuses: StatusClasses,
    /// Kinds of credentials: `bearer`, `basic`, `other`, `session-cookie`, `api-key`, `client-certificate`,
    /// `none`.
    pub authentication: Vec<&'static str>,
    /// Kinds of sensitive data in answers: `card`, `key`, `email`, `secret`.
    pub sensitive: Vec<&'static str>,
    /// The number of parameters.
    pub parameters: usize,
    /// Half of the answers took no longer, in milliseconds, rounded up to a bucket; null: they took longer
    /// than the last one.
    pub p50_ms: Option<u32>,
    /// 95 of a hundred answers took no longer.
    pub p95_ms: Option<u32>,
}

impl Keyed for InterfaceItem {
    fn key(&self) -> String {
        format!("{} {} {}", self.site, self.path, self.method)
    }
}

/// Number of times that something was seen.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceCount {
    /// What.
    pub name: String,
    /// Requests, or answers, that had it.
    pub requests: u64,
}

/// Number of values of a parameter that had a type.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceType {
    /// The type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Values.
    pub values: u64,
}

/// Answers of a range of time.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceLatency {
    /// They took no longer than this, and longer than the range before; null: longer than all ranges.
    pub up_to_ms: Option<u32>,
    /// Answers.
    pub requests: u64,
}

/// A parameter of an endpoint.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InterfaceParameter {
    /// `query`, `form` or `json`.
    pub place: &'static str,
    /// The name: `id`, `items[].id`.
    pub name: String,
    /// Requests without it are the exception.
    pub required: bool,
    /// Requests that had it, of those that were looked at closely.
    pub requests: u64,
    /// Values by type.
    pub types: Vec<InterfaceType>,
    /// The shortest value.
    pub bytes_min: u32,
    /// The longest value.
    pub bytes_max: u32,
    /// The least value, if all are whole numbers.
    pub number_min: Option<i64>,
    /// The greatest value, if all are whole numbers.
    pub number_max: Option<i64>,
}

/// An endpoint with all that is known of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Interface {
    /// The endpoint.
    pub endpoint: InterfaceItem,
    /// Its parameters.
    pub parameters: Vec<InterfaceParameter>,
    /// Kinds of credentials.
    pub authentication: Vec<InterfaceCount>,
    /// Kinds of sensitive data in answers.
    pub sensitive: Vec<InterfaceCount>,
    /// Answers in which they were looked for.
    pub answers_inspected: u64,
    /// Media types of request bodies.
    pub request_types: Vec<InterfaceCount>,
    /// Media types of answers.
    pub response_types: Vec<InterfaceCount>,
    /// Answers by status.
    pub status_codes: Vec<InterfaceCount>,
    /// Answers by the time that they took.
    pub latency: Vec<InterfaceLatency>,
}
