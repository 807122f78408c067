//! A service of hyper's own behind the layer: `cargo run -p portcullis-tower --example hyper [ADDRESS]`.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use portcullis_tower::embed::{Builder, Client};
use portcullis_tower::{Replay, WafLayer};
use tower_layer::Layer;

/// The application: it answers with the body that it was sent.
#[derive(Clone)]
struct Echo;

impl tower_service::Service<Request<Replay<Incoming>>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Replay<Incoming>>) -> Self::Future {
        Box::pin(async move {
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            Ok(Response::new(Full::new(body)))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let waf = Builder::semantic().on_event(|event| println!("{}", event.json_line())).build()?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, peer) = listener.accept().await?;
        let layer = WafLayer::new(waf.clone()).client(move |_| Some(Client::from(peer)));
        let service = TowerToHyperService::new(layer.layer(Echo));
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}
