//! `If-Match` of changes of the document (RFC 9110, section 13.1.1): nobody changes what they have not read.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::header::IF_MATCH;
use http::request::Parts;
use utoipa::{IntoParams, IntoResponses};

use crate::context::Context;
use crate::problem::{Kind, Problem};

/// The document that a change is meant for.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct IfMatch {
    /// The `ETag` of the document as it was read, or `*`.
    #[param(rename = "If-Match", value_type = String, required, pattern = r#"^(\*|"[0-9a-f]{32}")$"#)]
    pub(crate) etag: Option<String>,
}

/// What is answered where it does not fit; the description in OpenAPI.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "the document describes it, `Problem` is what is answered")]
pub(crate) enum NotThatDocument {
    /// The document was changed since it was read.
    #[response(status = 412, content_type = "application/problem+json")]
    Changed(Problem),
    /// `If-Match` is missing.
    #[response(status = 428, content_type = "application/problem+json")]
    Missing(Problem),
}

impl FromRequestParts<Arc<Context>> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Context>) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(IF_MATCH) else {
            return Err(Problem::with(
                Kind::PreconditionRequired,
                "send the `ETag` of the document, as you read it, in `If-Match`",
            ));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(IfMatch { etag: None });
        }
        let tag = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let is_tag = |tag: &&str| tag.len() == 32 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
        match tag.filter(is_tag) {
            Some(tag) => Ok(IfMatch { etag: Some(tag.to_ascii_lowercase()) }),
            None => Err(Problem::with(Kind::Malformed, "`If-Match` is no `ETag` of the document")),
        }
    }
}
