//! The layer and its service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, request};
use http_body::Body;
use portcullis_embed::{Client, Waf};
use tower_layer::Layer;
use tower_service::Service;

use crate::flow;
use crate::replay::Replay;
use crate::response_body::ResponseBody;

/// Tells the client of a request.
type ClientOf = Arc<dyn Fn(&request::Parts) -> Option<Client> + Send + Sync>;

/// State that all calls share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) waf: Waf,
    client_of: ClientOf,
    pub(crate) idle_timeout: Duration,
    pub(crate) body_timeout: Duration,
}

impl Shared {
    /// The client; one at an unspecified address where nobody knows.
    pub(crate) fn client(&self, parts: &request::Parts) -> Client {
        (self.client_of)(parts).unwrap_or(Client::at([0, 0, 0, 0], 0))
    }
}

/// Inspects the requests and responses of a service.
#[derive(Clone)]
pub struct WafLayer(Shared);

impl fmt::Debug for WafLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WafLayer").finish_non_exhaustive()
    }
}

impl WafLayer {
    /// A layer by this policy. The client is the [`Client`] among the request's extensions, unless
    /// [`client`](WafLayer::client) says otherwise.
    pub fn new(waf: Waf) -> WafLayer {
        WafLayer(Shared {
            waf,
            client_of: Arc::new(|parts| parts.extensions.get::<Client>().copied()),
            idle_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(300),
        })
    }

    /// Tells the client of a request. Addresses from headers are what clients write, unless a proxy of yours
    /// sets them. Without an answer rules see `0.0.0.0`.
    pub fn client(
        mut self,
        of: impl Fn(&request::Parts) -> Option<Client> + Send + Sync + 'static,
    ) -> WafLayer {
        self.0.client_of = Arc::new(of);
        self
    }

    /// The longest wait for the next piece of a request body, 30 seconds by default; then 408.
    pub fn idle_timeout(mut self, time: Duration) -> WafLayer {
        self.0.idle_timeout = time;
        self
    }

    /// The longest wait for the whole of a request body, 5 minutes by default; then 408.
    pub fn body_timeout(mut self, time: Duration) -> WafLayer {
        self.0.body_timeout = time;
        self
    }
}

impl<S> Layer<S> for WafLayer {
    type Service = WafService<S>;

    fn layer(&self, inner: S) -> WafService<S> {
        WafService { inner, shared: self.0.clone() }
    }
}

/// A service whose requests and responses are inspected.
#[derive(Clone)]
pub struct WafService<S> {
    inner: S,
    shared: Shared,
}

impl<S: fmt::Debug> fmt::Debug for WafService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WafService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for WafService<S>
where
    S: Service<Request<Replay<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Body + Send + 'static,
    B::Error: Send,
    R: Body + Send + 'static,
    R::Error: Send,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that is ready serves this call; its copy is asked before the next.
        let copy = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, copy);
        Box::pin(flow::serve(self.shared.clone(), inner, request))
    }
}
