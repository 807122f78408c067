//! Health checks over HTTP/2: a plain request, or the health service of gRPC.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};

/// Bytes of an answer that are read: that of the health service has two or three.
const ANSWER_BYTES_MAX: usize = 1024;
/// `SERVING` of `grpc.health.v1.HealthCheckResponse`.
const SERVING: u8 = 1;

/// The status of the answer to a GET request.
pub(super) async fn status(
    send: SendRequest<Bytes>,
    scheme: &str,
    host: &str,
    path: &str,
) -> Result<u16, String> {
    let request = Request::get(format!("{scheme}://{host}{path}")).header("accept", "*/*");
    Ok(ask(send, request, Bytes::new()).await?.status)
}

/// Asks the health service for a service (the whole server, if empty). The error says what is wrong.
pub(super) async fn health(
    send: SendRequest<Bytes>,
    scheme: &str,
    host: &str,
    service: &str,
) -> Result<(), String> {
    let request = Request::post(format!("{scheme}://{host}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let answer = ask(send, request, message(service)).await?;
    if answer.status != 200 {
        return Err(format!("answered {}", answer.status));
    }
    let said = |fields: &HeaderMap| fields.get("grpc-status").map(|value| value.as_bytes().to_vec());
    match said(&answer.trailers).or_else(|| said(&answer.headers)) {
        Some(status) if status == b"0" => {}
        Some(status) => return Err(format!("gRPC status {}", String::from_utf8_lossy(&status))),
        None => return Err("no gRPC status".to_string()),
    }
    match serving(&answer.body) {
        Some(SERVING) => Ok(()),
        Some(status) => Err(format!("serving status {status}")),
        None => Err("the answer is not of the health service".to_string()),
    }
}

/// A gRPC message with a `HealthCheckRequest`: field 1, a string.
fn message(service: &str) -> Bytes {
    let mut request = Vec::new();
    if !service.is_empty() {
        request.push(0x0a);
        let mut length = service.len();
        while length >= 128 {
            request.push(length as u8 | 128);
            length >>= 7;
        }
        request.push(length as u8);
        request.extend_from_slice(service.as_bytes());
    }
    let mut message = vec![0];
    message.extend_from_slice(&(request.len() as u32).to_be_bytes());
    message.extend_from_slice(&request);
    message.into()
}

/// Field 1 of the `HealthCheckResponse` in a gRPC message, which is not compressed; 0 if it is left out.
fn serving(message: &[u8]) -> Option<u8> {
    let (prefix, response) = message.split_at_checked(5)?;
    let length = u32::from_be_bytes(prefix[1..].try_into().ok()?) as usize;
    match (prefix[0], response) {
        (0, []) if length == 0 => Some(0),
        (0, [0x08, status @ 0..128]) if length == 2 => Some(*status),
        _ => None,
    }
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
}

async fn ask(
    send: SendRequest<Bytes>,
    request: http::request::Builder,
    body: Bytes,
) -> Result<Answer, String> {
    let wrong = |error: h2::Error| error.to_string();
    let request = request.header("user-agent", "portcullis-health").body(());
    let request = request.map_err(|error| error.to_string())?;
    let mut send = send.ready().await.map_err(wrong)?;
    let (answer, mut stream) = send.send_request(request, body.is_empty()).map_err(wrong)?;
    if !body.is_empty() {
        stream.send_data(body, true).map_err(wrong)?;
    }
    let (head, mut receive) = answer.await.map_err(wrong)?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = receive.data().await {
        body.extend_from_slice(&data.map_err(wrong)?);
        if body.len() > ANSWER_BYTES_MAX {
            // The rest is not waited for; the status is known.
            break;
        }
    }
    let trailers = match body.len() > ANSWER_BYTES_MAX {
        true => None,
        false => receive.trailers().await.map_err(wrong)?,
    };
    let trailers = trailers.unwrap_or_default();
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, trailers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_health_service() {
        assert_eq!(&message("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&message("a.B")[..], [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
        let long = "x".repeat(200);
        assert_eq!(message(&long)[..8], [0, 0, 0, 0, 203, 0x0a, 200, 1]);
        assert_eq!(serving(&[0, 0, 0, 0, 2, 8, 1]), Some(SERVING));
        assert_eq!(serving(&[0, 0, 0, 0, 2, 8, 2]), Some(2));
        assert_eq!(serving(&[0, 0, 0, 0, 0]), Some(0));
        for wrong in
            [&b""[..], &[0, 0, 0, 0, 2, 8], &[1, 0, 0, 0, 2, 8, 1], &[0, 0, 0, 0, 3, 8, 1], b"<html>"]
        {
            assert_eq!(serving(wrong), None, "{wrong:?}");
        }
    }
}
