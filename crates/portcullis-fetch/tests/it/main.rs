//! Peers that redirect, send too much, hang up or say nothing; and a proxy that the environment names.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use http::Request;
use portcullis_fetch::{Authorities, Client, Connections, Error};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Part of each URL.
const SECRET: &str = "T0PSECRET";

/// A server that answers every connection with these bytes, and the first line of each request.
fn server(answer: Vec<u8>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            // No head of a request comes from a client that speaks TLS.
            while !head.ends_with(b"\r\n\r\n") && head.first() != Some(&0x16) {
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => break,
                }
            }
            let line = String::from_utf8_lossy(&head).lines().next().unwrap_or("").to_owned();
            let _ = send.send(line);
            // The client hangs up when it has seen enough; bytes that are not read would break the
            // connection.
            let _ = stream.write_all(&answer);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    (address, lines)
}

fn direct() -> Client {
    Client::direct(None, TIMEOUT, Connections::Closed)
}

fn of(body_bytes: usize) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    answer.resize(answer.len() + body_bytes, b'a');
    answer
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/{SECRET}")
}

#[test]
fn an_answer_may_be_as_long_as_the_limit() {
    let bytes_of = |sent, bytes_max| {
        let answer = direct().get(&url(server(of(sent)).0)).unwrap();
        answer.into_body().read(bytes_max).map(|body| body.len())
    };
    assert_eq!(bytes_of(1_000, 1_000), Ok(1_000));
    assert_eq!(bytes_of(0, 0), Ok(0));
    assert_eq!(bytes_of(1_001, 1_000), Err(Error::TooLong(1_000)));
    assert_eq!(bytes_of(8 << 20, 1_000), Err(Error::TooLong(1_000)));
}

#[test]
fn a_redirect_is_an_answer() {
    let (elsewhere, visits) = server(of(1));
    let head = format!("HTTP/1.1 307 Moved\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n");
    let (address, _) = server(head.into_bytes());
    for body in [None, Some(&b"secret"[..])] {
        let request = Request::builder().method(if body.is_some() { "POST" } else { "GET" });
        assert_eq!(direct().send(request.uri(url(address)).body(body).unwrap()).unwrap().status(), 307);
    }
    assert!(visits.try_recv().is_err(), "nobody was sent on");
}

/// No request leaves over a scheme that the client is not for, and no error shows the URL.
#[test]
fn errors_without_urls() {
    let (address, visits) = server(of(1));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.cert.pem()).unwrap();
    let authorities = Authorities::of_file(file.path()).unwrap();
    let tls = Client::direct(Some(&authorities), TIMEOUT, Connections::Kept);
    let download = Client::download(&authorities, TIMEOUT, 5);
    let is_final = |error: &Error| matches!(error, Error::Final(_));
    for client in [&tls, &download] {
        let error = client.get(&url(address)).unwrap_err();
        assert!(is_final(&error) && !error.to_string().contains(SECRET), "{error}");
    }
    let of_tls = format!("https://{address}/{SECRET}");
    for text in
        [&of_tls, &format!("ftp://{address}/{SECRET}"), &format!("/{SECRET}"), &format!("http://{SECRET} ")]
    {
        let error = direct().get(text).unwrap_err();
        assert!(is_final(&error) && !error.to_string().contains(SECRET), "{text}: {error}");
    }
    assert!(visits.try_recv().is_err(), "nothing was sent");
    let not_http = server(b"SSH-2.0-OpenSSH\r\n".to_vec()).0;
    for (address, client) in [(closed, &tls), (address, &tls), (not_http, &direct()), (closed, &direct())] {
        let scheme = if std::ptr::eq(client, &tls) { "https" } else { "http" };
        let error = client.get(&format!("{scheme}://{address}/{SECRET}")).unwrap_err();
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
}

#[test]
fn silence_ends_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let before = Instant::now();
    let request = Request::get(url(address)).body(None).unwrap();
    let error = direct().send_within(request, Duration::from_millis(200)).unwrap_err();
    assert_eq!(error, Error::Late);
    assert!(before.elapsed() < TIMEOUT / 2);
}

/// Peers that the configuration names are asked by us, whatever the environment says; downloads go through
/// its proxy.
#[test]
fn the_proxy_of_the_environment() {
    let (proxy, asked) = server(b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n".to_vec());
    let (address, visits) = server(of(1));
    let certificate = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), certificate.cert.pem()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "with_a_proxy", "--ignored"]).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "http_proxy", "https_proxy"] {
        child.env(name, format!("http://{proxy}"));
    }
    child.env("PEER", url(address)).env("CA", file.path());
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(visits.try_recv().unwrap(), format!("GET /{SECRET} HTTP/1.1"));
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["CONNECT files.example:443 HTTP/1.1"]);
}

/// A part of [`the_proxy_of_the_environment`], in a process of its own.
#[test]
#[ignore = "another test runs it"]
fn with_a_proxy() {
    let variable = |name| std::env::var(name).unwrap();
    assert_eq!(direct().get(&variable("PEER")).unwrap().status(), 200);
    let authorities = Authorities::of_file(variable("CA").as_ref()).unwrap();
    let error = Client::download(&authorities, TIMEOUT, 0).get("https://files.example/a").unwrap_err();
    assert!(!matches!(error, Error::Late), "{error}");
}
