//! Sticky sessions: a cookie that names the endpoint a client was at.

use portcullis_balance::hash;
use portcullis_http::message::RequestHead;

use super::key::cookie;

/// The cookie of a group.
pub(crate) struct Sticky {
    name: String,
    /// By endpoint. Hashes, so that the cookie does not tell addresses; the same on every node.
    ids: Vec<String>,
}

impl Sticky {
    /// A cookie of this name for endpoints of these names.
    pub(super) fn new(name: &str, group: &str, endpoints: &[&str]) -> Self {
        let id = |endpoint: &&str| format!("{:016x}", hash(format!("{group} {endpoint}").as_bytes()));
        Sticky { name: name.to_string(), ids: endpoints.iter().map(id).collect() }
    }

    /// The endpoint that the request's cookie names.
    pub(super) fn endpoint(&self, head: &RequestHead) -> Option<usize> {
        let value = cookie(head, self.name.as_bytes())?;
        self.ids.iter().position(|id| id.as_bytes() == value)
    }

    /// The `Set-Cookie` for an answer of this endpoint; none if the client has it.
    pub(super) fn set(&self, head: &RequestHead, endpoint: usize, tls: bool) -> Option<String> {
        if self.endpoint(head) == Some(endpoint) {
            return None;
        }
        let secure = if tls { "; Secure" } else { "" };
        Some(format!("{}={}; Path=/; HttpOnly; SameSite=Lax{secure}", self.name, self.ids[endpoint]))
    }
}
