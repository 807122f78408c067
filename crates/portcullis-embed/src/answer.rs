//! The block page as a response.

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use portcullis_event::Action;
use portcullis_exchange::Block;

/// The answer that the client is to get in place of the application's. `request_id` is the id of the
/// exchange, as its event has it.
pub(crate) fn answer(block: &Block, request_id: &str) -> Response<Vec<u8>> {
    let mut response = Response::new(block.page.body.clone().into_bytes());
    *response.status_mut() = StatusCode::from_u16(block.status).unwrap_or(StatusCode::FORBIDDEN);
    put(&mut response, "content-type", block.page.media_type.as_bytes());
    put(&mut response, "cache-control", b"no-store");
    put(&mut response, "x-request-id", request_id.as_bytes());
    for (name, value) in &block.page.fields {
        put(&mut response, name, value.as_bytes());
    }
    if let (Some(location), Action::Redirect) = (&block.location, block.action) {
        put(&mut response, "location", location);
    }
    response
}

/// Adds a field; one that cannot be one is left out.
fn put(response: &mut Response<Vec<u8>>, name: &str, value: &[u8]) {
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
        response.headers_mut().insert(name, value);
    }
}
