//! Bodies, queries and paths into types. What does not fit is a problem that says where.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use tokio::time::timeout;

use crate::access::Principal;
use crate::context::Context;
use crate::problem::{Kind, Problem};
use crate::turn::wait_for_client;

/// A JSON body.
pub(crate) struct Body<T>(pub(crate) T);

/// A JSON body that carries a whole document.
pub(crate) struct DocumentBody<T>(pub(crate) T);

/// The parameters of a query.
pub(crate) struct Params<T>(pub(crate) T);

/// The parts of a path.
pub(crate) struct Parameter<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Context>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<Self, Problem> {
        read(request, context, context.limits.body_bytes_max).await.map(Body)
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<Context>> for DocumentBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, context: &Arc<Context>) -> Result<Self, Problem> {
        // What each of them holds is large.
        let place = context.document_bodies.try_acquire();
        let _place = place.map_err(|_| Problem::with(Kind::Busy, "other documents are being read"))?;
        read(request, context, context.limits.document_bytes_max).await.map(DocumentBody)
    }
}

async fn read<T: DeserializeOwned>(
    request: Request,
    context: &Context,
    bytes_max: usize,
) -> Result<T, Problem> {
    let limits = &context.limits;
    // Who has not shown who they are sends a name and a password, and no more.
    let (bytes_max, time_max) = match request.extensions().get::<Principal>() {
        Some(_) => (bytes_max, limits.body_time_max),
        None => (
            bytes_max.min(limits.public_body_bytes_max),
            limits.body_time_max.min(limits.public_body_time_max),
        ),
    };
    let media_type = request.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    if !is_json(media_type) {
        return Err(Problem::with(Kind::MediaType, "send `Content-Type: application/json`"));
    }
    let too_large = || Problem::with(Kind::BodyTooLarge, format!("a body has at most {bytes_max} bytes"));
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > bytes_max as u64) {
        return Err(too_large());
    }
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, bytes_max);
    let read = wait_for_client(&parts.extensions, timeout(time_max, body.collect())).await?;
    let bytes = match read.map_err(|_| Problem::of(Kind::BodyTimeout))? {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Err(too_large()),
        Err(_) => return Err(Problem::with(Kind::Malformed, "the body cannot be read")),
    };
    // serde would take the members of a struct from an array, too.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::with(Kind::Invalid, "the body: it must be an object"));
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        let kind = if error.is_data() { Kind::Invalid } else { Kind::Malformed };
        Problem::with(kind, format!("the body: {error}"))
    })
}

/// A whole number in a range, however it is written: `60.0` is one in JSON.
pub(crate) fn whole<'de, D: Deserializer<'de>>(
    deserializer: D,
    range: RangeInclusive<u64>,
    name: &str,
) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let (first, last) = (*range.start(), *range.end());
    if number.fract() != 0.0 || !(first as f64..=last as f64).contains(&number) {
        let message = format!("{name} must be a whole number from {first} to {last}");
        return Err(serde::de::Error::custom(message));
    }
    Ok(Some(number as u64))
}

/// `application/json`, with parameters or without.
fn is_json(media_type: &[u8]) -> bool {
    let end = media_type.iter().position(|byte| *byte == b';').unwrap_or(media_type.len());
    media_type[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
}

impl<T: DeserializeOwned> FromRequestParts<Arc<Context>> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<Context>) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, context).await;
        read.map(|Query(value)| Params(value))
            .map_err(|error| Problem::with(Kind::Malformed, format!("the query: {}", cause(&error))))
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Context>> for Parameter<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &Arc<Context>) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(parts, context).await;
        // What cannot be the name of an object names none.
        read.map(|Path(value)| Parameter(value)).map_err(|_| Problem::of(Kind::NotFound))
    }
}

/// The innermost cause: the layers above it repeat each other.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
