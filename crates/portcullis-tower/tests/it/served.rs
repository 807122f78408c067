//! A real axum server behind the layer, and a client that writes bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use portcullis_tower::WafLayer;
use portcullis_tower::embed::{Builder, Waf};
use tokio::sync::oneshot;

/// Waits end after this time, with a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// The events that were told so far.
#[derive(Clone, Default)]
pub struct Events(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Events {
    fn push(&self, event: String) {
        self.0.0.lock().unwrap().push(event);
        self.0.1.notify_all();
    }

    /// The events, once there are so many.
    pub fn wait(&self, count: usize) -> Vec<String> {
        let events = self.0.0.lock().unwrap();
        let enough = |events: &mut Vec<String>| events.len() < count;
        let (events, waited) = self.0.1.wait_timeout_while(events, PATIENCE, enough).unwrap();
        assert!(!waited.timed_out(), "{} events of {count}", events.len());
        events.clone()
    }
}

/// A server, until it is dropped.
pub struct Served {
    pub address: SocketAddr,
    pub waf: Waf,
    pub events: Events,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves `app` behind a layer that `change` may change.
pub fn serve_with(builder: Builder, app: Router, change: impl FnOnce(WafLayer) -> WafLayer) -> Served {
    let events = Events::default();
    let sink = events.clone();
    let waf = builder.on_event(move |event| sink.push(event.json_line())).build().unwrap();
    let layer = WafLayer::new(waf.clone()).client(|parts| {
        let at = parts.extensions.get::<ConnectInfo<SocketAddr>>()?;
        Some(at.0.into())
    });
    let app = app.layer(change(layer));
    let (stop, stopped) = oneshot::channel::<()>();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let service = app.into_make_service_with_connect_info::<SocketAddr>();
            tokio::select! {
                result = axum::serve(listener, service) => result.unwrap(),
                _ = stopped => {}
            }
        });
    });
    Served { address, waf, events, stop: Some(stop), thread: Some(thread) }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves `app` behind the layer.
pub fn serve(builder: Builder, app: Router) -> Served {
    serve_with(builder, app, |layer| layer)
}

impl Served {
    /// A connection on which these bytes have been sent.
    pub fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// The answer to a request that asks for the end of its connection.
    pub fn ask(&self, bytes: &[u8]) -> String {
        answer(self.send(bytes))
    }

    /// The answer to a GET.
    pub fn get(&self, target: &str) -> String {
        self.ask(
            format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n").as_bytes(),
        )
    }

    /// The answer to a POST.
    pub fn post(&self, media_type: &str, body: &[u8]) -> String {
        let length = body.len();
        let mut bytes = format!(
            "POST /echo HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nContent-Type: {media_type}\r\n\
             Content-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        self.ask(&bytes)
    }
}

/// All that comes until the connection ends; one that is reset has ended, too.
pub fn answer(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {}", String::from_utf8_lossy(&bytes)),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The status of an answer.
#[track_caller]
pub fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}
