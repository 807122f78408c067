//! The application behind what is measured: one thread that answers every request with the same page.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use portcullis_http::h1::{BodyDecoder, Compat, Limits, Parsed, RequestParser};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::{Certificates, Error};

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Upstream {
    /// Without TLS.
    pub plain: SocketAddr,
    /// With TLS.
    pub tls: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Answers on loopback with an HTML page of about so many bytes.
    pub fn start(certificates: &Certificates, page_bytes: usize) -> Result<Upstream, Error> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::System)?;
        let bind = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (plain_address, plain) = bind().map_err(Error::System)?;
        let (tls_address, tls) = bind().map_err(Error::System)?;
        let acceptor = TlsAcceptor::from(certificates.server()?);
        let answer: Arc<[u8]> = answer(page_bytes).into();
        let (stop, stopped) = oneshot::channel();
        let work = async move {
            let (Ok(plain), Ok(tls)) = (TcpListener::from_std(plain), TcpListener::from_std(tls)) else {
                return;
            };
            let both = async {
                tokio::join!(accept(plain, None, Arc::clone(&answer)), accept(tls, Some(acceptor), answer))
            };
            tokio::select! { _ = both => {}, _ = stopped => {} }
        };
        let thread = std::thread::Builder::new()
            .name("application".into())
            .spawn(move || runtime.block_on(work))
            .map_err(Error::System)?;
        Ok(Upstream { plain: plain_address, tls: tls_address, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // Dropping the sender ends the thread.
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(page_bytes: usize) -> Vec<u8> {
    let mut page = String::from("<!doctype html>\n<html><head><title>Books</title></head><body>\n");
    while page.len() + 60 < page_bytes {
        page.push_str("<p>A short story about a library and the people in it.</p>\n");
    }
    page.push_str("</body></html>\n");
    let length = page.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.into_bytes(), page.into_bytes()].concat()
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, answer: Arc<[u8]>) {
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            // Out of file descriptors, for instance; there will be some again.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let (tls, answer) = (tls.clone(), Arc::clone(&answer));
        tokio::spawn(async move {
            tcp.set_nodelay(true)?;
            match tls {
                None => serve(tcp, &answer).await,
                Some(acceptor) => serve(acceptor.accept(tcp).await?, &answer).await,
            }
        });
    }
}

/// Until the client closes, or sends what is no request.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) -> io::Result<()> {
    let mut parser = RequestParser::new(Limits::default(), Compat::Strict);
    let mut input = Vec::with_capacity(4096);
    loop {
        let head = loop {
            match parser.parse(&input) {
                Parsed::Head(head) => break head,
                Parsed::NeedMore if stream.read_buf(&mut input).await? > 0 => {}
                Parsed::NeedMore | Parsed::Refused { .. } => return Ok(()),
            }
        };
        input.drain(..head.received_len());
        let mut body = BodyDecoder::request(head.framing(), &Limits::default());
        while !body.is_done() {
            if input.is_empty() && stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            let Ok(step) = body.decode(&input) else { return Ok(()) };
            let consumed = step.consumed;
            input.drain(..consumed);
        }
        stream.write_all(answer).await?;
        stream.flush().await?;
        if !head.keep_alive() {
            return stream.shutdown().await;
        }
    }
}
