//! The HTTP that an account speaks with its authority.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

use super::Settings;

/// For a request with its answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Chains of certificates are the longest.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The wait that the authority asked for when it refused something last.
#[derive(Clone, Debug, Default)]
pub(super) struct RetryAfter(Arc<AtomicU64>);

impl RetryAfter {
    pub(super) fn take(&self) -> Duration {
        Duration::from_secs(self.0.swap(0, Ordering::Relaxed))
    }
}

/// Asks on threads of its own, since it blocks.
pub(super) struct Client {
    agent: ureq::Agent,
    retry_after: RetryAfter,
}

impl Client {
    pub(super) fn new(settings: &Settings, retry_after: &RetryAfter) -> Self {
        // No proxy that the environment names: the authority is the one that the configuration names.
        let agent = ureq::Agent::config_builder()
            .https_only(true)
            .max_redirects(0)
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .tls_config(settings.authorities.https())
            .build()
            .into();
        Client { agent, retry_after: retry_after.clone() }
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (agent, retry_after) = (self.agent.clone(), self.retry_after.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let body = body.to_bytes();
            let asked = tokio::task::spawn_blocking(move || ask(&agent, parts, &body));
            let answer = asked.await.map_err(|error| Error::Other(Box::new(error)))?;
            let (parts, body) = answer.map_err(|error| Error::Other(Box::new(error)))?.into_parts();
            if !parts.status.is_success() {
                let seconds =
                    parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                retry_after.0.store(seconds.unwrap_or(0), Ordering::Relaxed);
            }
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

fn ask(
    agent: &ureq::Agent,
    parts: http::request::Parts,
    body: &[u8],
) -> Result<Response<Bytes>, ureq::Error> {
    let answer = match body {
        [] => agent.run(Request::from_parts(parts, ()))?,
        body => agent.run(Request::from_parts(parts, body))?,
    };
    let (parts, mut body) = answer.into_parts();
    let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
    Ok(Response::from_parts(parts, body.into()))
}
