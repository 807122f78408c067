//! Clients that send large bodies, over HTTP/1 and HTTP/2, attacks among them.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portcullis_testkit::client::Connection;
use portcullis_testkit::random::Random;

use super::client::Board;

/// For one body.
const PATIENCE: Duration = Duration::from_secs(120);
/// Every so many bodies of a client are an attack.
const ATTACK_EVERY: usize = 4;
/// In turn, in bytes.
const SIZES: [usize; 7] = [1_000_000, 30_000_000, 3_000_000, 100_000_000, 10_000_000, 1_000_000, 60_000_000];
/// An attack may not be longer: its client sends all of it before it looks for an answer, and lingering has
/// an end.
const ATTACK_BYTES_MAX: usize = 10_000_000;
/// Held as a whole, decoded and inspected.
const HELD_BYTES_MAX: usize = 3_000_000;
const SHELL: &[u8] = b"<?php system($_GET['c']); ?>";

/// A request without what its version says of it, and the status that it deserves.
struct Upload {
    method: &'static str,
    fields: Vec<(&'static str, String)>,
    body: Vec<u8>,
    wanted: u16,
}

/// Sends one body after the other until `end`; every second client over HTTP/2.
pub(super) fn run(number: usize, address: SocketAddr, end: Instant, board: &Board) {
    let mut turn = number;
    while Instant::now() < end {
        let upload = upload(turn);
        turn += 1;
        let wanted = upload.wanted;
        let answer = if number.is_multiple_of(2) { http1(address, &upload) } else { http2(address, upload) };
        board.note(None, true, answer, wanted);
    }
}

fn upload(turn: usize) -> Upload {
    let is_attack = turn.is_multiple_of(ATTACK_EVERY);
    let most = if is_attack { ATTACK_BYTES_MAX } else { usize::MAX };
    let size = SIZES[turn % SIZES.len()].min(most);
    let mut body = noise(size, turn as u64);
    if is_attack {
        body.truncate(size / 2);
        body.extend_from_slice(SHELL);
        body.extend_from_slice(&noise(size / 2, turn as u64 + 1));
    }
    let wanted = if is_attack { 403 } else { 200 };
    let field = |name, value: &str| (name, value.to_owned());
    match turn / SIZES.len() % 3 {
        0 => Upload {
            method: "PUT",
            fields: vec![field("content-type", "application/octet-stream")],
            body,
            wanted,
        },
        1 => {
            let head = b"--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\r\n";
            let tail = b"\r\n--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na holiday in May\r\n--B--\r\n";
            let body = [&head[..], &body, tail].concat();
            let fields = vec![field("content-type", "multipart/form-data; boundary=B")];
            Upload { method: "POST", fields, body, wanted }
        }
        _ => {
            let attack = if is_attack { "x' UNION SELECT user,password FROM users-- -" } else { "the end" };
            let plain = format!(
                "{{\"text\":\"{}\",\"last\":\"{attack}\"}}",
                words(size.min(HELD_BYTES_MAX), turn as u64)
            );
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let packed = writer.write_all(plain.as_bytes()).and_then(|()| writer.finish());
            Upload {
                method: "POST",
                fields: vec![field("content-type", "application/json"), field("content-encoding", "gzip")],
                body: packed.unwrap_or_default(),
                wanted,
            }
        }
    }
}

fn http1(address: SocketAddr, upload: &Upload) -> Result<(u16, bool), String> {
    let mut request = format!(
        "{} /file HTTP/1.1\r\nHost: files.test\r\nConnection: close\r\nContent-Length: {}\r\n",
        upload.method,
        upload.body.len()
    );
    for (name, value) in &upload.fields {
        request += &format!("{name}: {value}\r\n");
    }
    let request = [request.as_bytes(), b"\r\n", &upload.body].concat();
    let mut connection = Connection::open(address, None, PATIENCE).map_err(|why| why.to_string())?;
    let answer = connection.exchange(&request, PATIENCE).map_err(|why| why.to_string())?;
    Ok((answer.status, answer.whole))
}

fn http2(address: SocketAddr, upload: Upload) -> Result<(u16, bool), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|why| why.to_string())?;
    let answer =
        runtime.block_on(async { tokio::time::timeout(PATIENCE, over_http2(address, upload)).await });
    answer.map_err(|_| "no answer over HTTP/2 in time".to_owned())?
}

async fn over_http2(address: SocketAddr, upload: Upload) -> Result<(u16, bool), String> {
    let failed = |why: &dyn std::fmt::Display| format!("HTTP/2: {why}");
    let stream = tokio::net::TcpStream::connect(address).await.map_err(|why| failed(&why))?;
    let (mut client, connection) = h2::client::handshake(stream).await.map_err(|why| failed(&why))?;
    let driver = tokio::spawn(connection);
    let mut head = http::Request::builder().method(upload.method).uri("http://files.test/file");
    for (name, value) in upload.fields {
        head = head.header(name, value);
    }
    let head = head.header("content-length", upload.body.len()).body(()).map_err(|why| failed(&why))?;
    let (answer, mut body) = client.send_request(head, false).map_err(|why| failed(&why))?;
    let mut left = Bytes::from(upload.body);
    let send = async {
        while !left.is_empty() {
            body.reserve_capacity(left.len().min(1 << 20));
            // A stream that is refused takes no more.
            let Some(Ok(room)) = std::future::poll_fn(|context| body.poll_capacity(context)).await else {
                return;
            };
            let piece = left.split_to(room.min(left.len()));
            let is_last = left.is_empty();
            if body.send_data(piece, is_last).is_err() {
                return;
            }
        }
    };
    let (answer, ()) = tokio::join!(answer, send);
    let mut answer = answer.map_err(|why| failed(&why))?;
    let mut whole = true;
    while let Some(data) = answer.body_mut().data().await {
        whole &= data.is_ok();
        let count = data.as_ref().map_or(0, Bytes::len);
        let _ = answer.body_mut().flow_control().release_capacity(count);
    }
    drop(client);
    driver.abort();
    Ok((answer.status().as_u16(), whole))
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    Random::new(seed).bytes(length)
}

/// Words of a few letters, which gzip makes a third of.
fn words(length: usize, seed: u64) -> String {
    const WORDS: [&str; 16] = [
        "garden", "history", "of", "locks", "the", "iron", "oak", "and", "window", "river", "a", "stone",
        "letter", "in", "winter", "bread",
    ];
    let noise = noise(length / 4 + 8, seed);
    let mut out = String::with_capacity(length + 8);
    for byte in noise {
        if out.len() >= length {
            break;
        }
        out.push_str(WORDS[usize::from(byte & 15)]);
        out.push_str(if byte < 16 { ". " } else { " " });
    }
    out
}
