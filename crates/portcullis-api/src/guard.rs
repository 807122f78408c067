//! Checks of every request: the name it asks under, the page it comes from, its time, the headers of its
//! response, and that it is counted.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Uri};
use portcullis_http::is_own_name;
use tokio::time::timeout;

use crate::context::Context;
use crate::counted::RequestCounts;
use crate::problem::{Kind, Problem};
use crate::settings::Peer;
use crate::turn::Turn;

/// Headers of every response that does not say otherwise: nothing but the console is a page, and nothing but
/// its files is for caches.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    ),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Stands in front of all routes.
pub(crate) async fn guard(
    State((context, counts)): State<(Arc<Context>, Arc<RequestCounts>)>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = match admit(&context, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    counts.add(route.as_ref().map(MatchedPath::as_str), response.status());
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

async fn admit(context: &Context, mut request: Request, next: Next) -> Result<Response, Problem> {
    let peer = request.extensions().get::<Peer>().copied().ok_or_else(|| Problem::of(Kind::Internal))?;
    let host = check_host(request.uri(), request.headers(), &context.supplies.hosts)?;
    check_origin(request.headers(), &host, peer)?;
    let turn = Turn::take(&context.requests)?;
    request.extensions_mut().insert(turn.clone());
    let answered = timeout(context.limits.request_time_max, next.run(request)).await;
    turn.leave();
    answered.map_err(|_| Problem::with(Kind::Busy, "the request took too long"))
}

/// The name that a request asks under; it must be one of our names.
fn check_host(uri: &Uri, headers: &HeaderMap, names: &[String]) -> Result<String, Problem> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
    let Some(host) = host else { return Err(Problem::with(Kind::Malformed, "send one header `Host`")) };
    // A target in absolute form has a name, too.
    let is_same = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(host));
    if !is_same || !is_own_name(host.as_bytes(), names) {
        return Err(Problem::with(
            Kind::OtherName,
            "ask by address, as localhost, or under a name of `admin.hosts`",
        ));
    }
    Ok(host.to_owned())
}

/// A page of another origin may not ask anything. Clients that are no browsers send no `Origin`.
fn check_origin(headers: &HeaderMap, host: &str, peer: Peer) -> Result<(), Problem> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let authority = origin.to_str().ok().and_then(|origin| match origin.split_once("://")? {
        ("https", authority) => Some(authority),
        // Behind a proxy that ends TLS the page's scheme is not ours.
        ("http", authority) if !peer.is_tls => Some(authority),
        _ => None,
    });
    let is_own = authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host));
    match is_own && origins.next().is_none() {
        true => Ok(()),
        false => Err(Problem::of(Kind::OtherOrigin)),
    }
}

/// There is no such route.
pub(crate) async fn no_route() -> Problem {
    Problem::with(Kind::NotFound, "there is no such route; `/api/v1/openapi.json` lists them")
}

/// There is, but not with this method; the router adds `Allow`.
pub(crate) async fn no_method() -> Problem {
    Problem::of(Kind::MethodNotAllowed)
}
