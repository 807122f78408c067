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
use portcullis_fetch::Connections;

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
    client: portcullis_fetch::Client,
    retry_after: RetryAfter,
}

impl Client {
    pub(super) fn new(settings: &Settings, retry_after: &RetryAfter) -> Self {
        let authorities = Some(&settings.authorities);
        let client = portcullis_fetch::Client::direct(authorities, TIMEOUT, Connections::Kept);
        Client { client, retry_after: retry_after.clone() }
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (client, retry_after) = (self.client.clone(), self.retry_after.clone());
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let body = body.to_bytes();
            let asked = tokio::task::spawn_blocking(move || ask(&client, parts, &body));
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
    client: &portcullis_fetch::Client,
    parts: http::request::Parts,
    body: &[u8],
) -> Result<Response<Bytes>, portcullis_fetch::Error> {
    let body = Some(body).filter(|body| !body.is_empty());
    let (parts, body) = client.send(Request::from_parts(parts, body))?.into_parts();
    Ok(Response::from_parts(parts, body.read(ANSWER_BYTES_MAX)?.into()))
}
