//! The console's files, at every path that is not the API's.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::console::{self, Asset};
use crate::guard::no_route;
use crate::problem::{Kind, Problem};

/// The file that is asked for, or the answer that there is no such route.
pub(crate) async fn page(request: Request) -> Response {
    let gzip = takes_gzip(request.headers());
    let Some(asset) = console::asset(request.uri().path(), gzip) else {
        return no_route().await.into_response();
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Problem::of(Kind::MethodNotAllowed).into_response();
    }
    let Asset { bytes, media_type, is_gzip, is_immutable } = asset;
    let kept = if is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let fields = [
        (CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (CACHE_CONTROL, HeaderValue::from_static(kept)),
        (VARY, HeaderValue::from_static("Accept-Encoding")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(console::CONTENT_SECURITY_POLICY)),
    ];
    let mut response = (fields, bytes.into_owned()).into_response();
    if is_gzip {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// True if the client names gzip and does not refuse it (RFC 9110, 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}
