//! What answers at an address.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use portcullis_config::{Answer, Recognised, recognise};
use portcullis_http::h1::{Limits, ResponseParser};

/// For the name look-up and for connecting, each, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// For all of it.
const TIMEOUT_OF_ALL: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read at most.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Answers that are read: a front page may be behind a redirect or two.
const ANSWERS_MAX: usize = 3;

/// Connects. The error is for people.
fn connect(host: &str, port: u16, until: Instant) -> Result<TcpStream, String> {
    let late = || "it takes too long".to_owned();
    let (sender, receiver) = mpsc::channel();
    let host = host.to_owned();
    // The system's resolver has no time limit; a thread that is late is left behind.
    std::thread::spawn(move || sender.send((host.as_str(), port).to_socket_addrs()));
    let found = receiver.recv_timeout(left(until).ok_or_else(late)?);
    let unresolved = |_| "its name is not resolved in time".to_owned();
    let found = found.map_err(unresolved)?.map_err(|error| error.to_string())?;
    let mut why = "its name has no address".to_owned();
    for address in found.take(4) {
        match TcpStream::connect_timeout(&address, left(until).ok_or_else(late)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// The time for a step: what is left of all, at most that of one.
fn left(until: Instant) -> Option<Duration> {
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.map(|left| left.min(TIMEOUT))
}

/// The applications that the front page of a server without TLS looks like; `site` is the host that it is
/// asked for. The error says why nothing can be reached there.
pub fn recognised(host: &str, port: u16, site: &str) -> Result<Vec<Recognised>, String> {
    let until = Instant::now() + TIMEOUT_OF_ALL;
    let mut next = Some(connect(host, port, until)?);
    let mut path = "/".to_owned();
    for _ in 0..ANSWERS_MAX {
        let stream = next.take().or_else(|| connect(host, port, until).ok());
        let Some(bytes) = stream.and_then(|stream| answer(stream, site, &path, until)) else { break };
        let Ok(Some(head)) = ResponseParser::new(Limits::default()).parse(&bytes) else { break };
        let body = bytes.get(head.received_len()..).unwrap_or_default();
        let fields: Vec<_> = head.fields().collect();
        let only_path = path.split('?').next().unwrap_or_default().as_bytes();
        let found = recognise(&Answer {
            host: site.as_bytes(),
            path: only_path,
            status: head.status(),
            fields: &fields,
            body,
        });
        if !found.is_empty() {
            return Ok(found);
        }
        let to = head.header("location").next().map(String::from_utf8_lossy);
        // To another host nobody follows.
        let to = to.filter(|_| (300..400).contains(&head.status())).and_then(|to| below(&path, &to));
        match to {
            Some(to) if to != path => path = to,
            _ => break,
        }
    }
    Ok(Vec::new())
}

/// The path that a redirect from this one leads to, on the same host.
fn below(from: &str, to: &str) -> Option<String> {
    let plain = |to: &str| to.bytes().all(|byte| byte.is_ascii_graphic()) && to.len() < 1000;
    let path = match to.strip_prefix("http://").or_else(|| to.strip_prefix("https://")) {
        // The application knows itself by another name.
        Some(rest) => format!("/{}", rest.split_once('/')?.1),
        None if to.starts_with("//") => return None,
        None if to.starts_with('/') => to.to_owned(),
        None => format!("{}/{}", from.rsplit_once('/')?.0, to.trim_start_matches("./")),
    };
    plain(&path).then_some(path)
}

/// The first bytes of an answer.
fn answer(mut stream: TcpStream, site: &str, path: &str, until: Instant) -> Option<Vec<u8>> {
    let until = until.min(Instant::now() + TIMEOUT);
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {site}\r\nUser-Agent: portcullis-init\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    let mut room = [0; 8 << 10];
    while bytes.len() < ANSWER_BYTES_MAX {
        let Some(left) = left(until) else { break };
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut room) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&room[..count]),
            _ => break,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn redirects_stay_on_the_host() {
        assert_eq!(below("/", "/login?next=%2F").as_deref(), Some("/login?next=%2F"));
        assert_eq!(below("/a/b", "./c").as_deref(), Some("/a/c"));
        assert_eq!(below("/", "https://shop.example/admin").as_deref(), Some("/admin"));
        for to in ["//a.example/x", "https://shop.example", "/a b", "/a\r\nx: y"] {
            assert_eq!(below("/", to), None, "{to}");
        }
    }
}
