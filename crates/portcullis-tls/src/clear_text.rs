//! A request in clear text at a listener with TLS. It gets an answer that says so: a connection that is
//! closed without a word looks like a fault of the server.

use tokio::net::TcpStream;

const TEXT: &str = "This port speaks HTTPS, and the request came in clear text (HTTP).\n\
                    Ask again with https:// in place of http://.\n";

/// True if the client begins with a method, not a TLS record, which begins with 22. Nothing is taken from the
/// stream.
pub(crate) async fn is_http(tcp: &TcpStream) -> bool {
    let mut first = [0; 1];
    matches!(tcp.peek(&mut first).await, Ok(1) if first[0].is_ascii_alphabetic())
}

/// The whole answer.
pub(crate) fn answer() -> String {
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{TEXT}",
        TEXT.len()
    )
}
