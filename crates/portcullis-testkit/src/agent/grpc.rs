//! The echo agent as a gRPC server over HTTP/2, in clear text or over TLS: one thread, a task for each
//! connection and call.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use portcullis_agent::{Framing, GRPC_PATH};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::Options;
use super::decide::{Next, Talk};

pub(super) fn serve(address: SocketAddr, options: &Options) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tls = match &options.tls[..] {
        [cert, key] => Some(acceptor(cert, key).map_err(io::Error::other)?),
        _ => None,
    };
    let options = Arc::new(options.clone());
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (tcp, _) = listener.accept().await?;
            tcp.set_nodelay(true)?;
            let (tls, options) = (tls.clone(), Arc::clone(&options));
            tokio::spawn(async move {
                match tls {
                    None => connection(tcp, options).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(tcp).await {
                            connection(stream, options).await;
                        }
                    }
                }
            });
        }
    })
}

fn acceptor(
    cert: &std::path::Path,
    key: &std::path::Path,
) -> Result<TlsAcceptor, Box<dyn std::error::Error + Send + Sync>> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config).into())
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, options: Arc<Options>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let leaving = Arc::new(Notify::new());
    loop {
        tokio::select! {
            call = connection.accept() => match call {
                Some(Ok((request, respond))) => {
                    let (options, leaving) = (Arc::clone(&options), Arc::clone(&leaving));
                    tokio::spawn(async move { converse(request, respond, &options, &leaving).await });
                }
                Some(Err(_)) | None => return,
            },
            () = leaving.notified() => connection.graceful_shutdown(),
        }
    }
}

async fn converse(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    options: &Options,
    leaving: &Notify,
) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    if request.uri().path() != GRPC_PATH {
        head.headers_mut().extend(status("12", "no such call"));
        return respond.send_response(head, true).map(|_| ());
    }
    let mut send = respond.send_response(head, false)?;
    let mut receive = request.into_body();
    let mut talk = Talk::new(options, Framing::Grpc);
    while let Some(data) = receive.data().await {
        let data = data?;
        let next = talk.take(&data);
        let _ = receive.flow_control().release_capacity(data.len());
        if !talk.out.is_empty() {
            send.send_data(std::mem::take(&mut talk.out).into(), false)?;
        }
        match next {
            Next::Read => {}
            Next::GoAway => leaving.notify_one(),
            Next::Close => {
                send.send_reset(Reason::CANCEL);
                return Ok(());
            }
            Next::Status(code, message) => return send.send_trailers(status(&code, &message)),
        }
    }
    send.send_trailers(status("0", ""))
}

fn status(code: &str, message: &str) -> HeaderMap {
    let fields = [("grpc-status", code), ("grpc-message", message)];
    let fields = fields.iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
    fields.collect()
}
