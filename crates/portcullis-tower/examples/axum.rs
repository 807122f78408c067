//! An axum application behind the layer: `cargo run -p portcullis-tower --example axum [ADDRESS]`.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Query};
use axum::routing::{get, post};
use axum::{Json, Router};
use portcullis_tower::WafLayer;
use portcullis_tower::embed::Builder;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let waf =
        Builder::semantic().site("example").on_event(|event| println!("{}", event.json_line())).build()?;
    let layer = WafLayer::new(waf).client(|parts| {
        let at = parts.extensions.get::<ConnectInfo<SocketAddr>>()?;
        Some(at.0.into())
    });
    let app = Router::new()
        .route("/", get(|Query(query): Query<Value>| async move { Json(query) }))
        .route("/notes", post(|Json(note): Json<Value>| async move { Json(note) }))
        .layer(layer);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on {}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
