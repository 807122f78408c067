//! Envoy's external authorization and external processing, over gRPC.
//!
//! A call that cannot be read, or breaks a limit, ends with an error of gRPC, and Envoy does what
//! `failure_mode_allow` says: it refuses, unless told otherwise.

mod ext_authz;
mod ext_proc;
mod grpc;
mod reply;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::service::Service;
use grpc::{Call, Code};

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const PROCESS: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";

/// Serves external authorization on one connection.
pub(crate) async fn serve_authz(
    stream: TcpStream,
    peer: SocketAddr,
    service: &Arc<Service>,
    stopped: watch::Receiver<bool>,
) {
    grpc::serve(stream, service, stopped, move |mut call| async move {
        let end = match is_for(&call, CHECK) {
            Ok(()) => ext_authz::check(&mut call, peer).await.err().unwrap_or((Code::Ok, "")),
            Err(end) => end,
        };
        call.end(end);
    })
    .await;
}

/// Serves external processing on one connection.
pub(crate) async fn serve_proc(
    stream: TcpStream,
    peer: SocketAddr,
    service: &Arc<Service>,
    stopped: watch::Receiver<bool>,
) {
    grpc::serve(stream, service, stopped, move |mut call| async move {
        let end = match is_for(&call, PROCESS) {
            Ok(()) => ext_proc::process(&mut call, peer).await.err().unwrap_or((Code::Ok, "")),
            Err(end) => end,
        };
        call.end(end);
    })
    .await;
}

fn is_for(call: &Call, path: &str) -> Result<(), grpc::End> {
    match call.path == path {
        true => Ok(()),
        false => {
            call.service.unanswered(portcullis_exchange::Unanswered::Malformed);
            Err((Code::Unimplemented, "this service is not served here"))
        }
    }
}
