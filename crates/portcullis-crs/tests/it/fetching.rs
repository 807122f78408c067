//! Downloads from servers that are good, gone, lying or far too generous.

use std::io::{Read, Write};
use std::net::TcpListener;

use portcullis_crs::{Error, Origin, known, limits};

/// The URL of a server that gives this answer once, then closes.
fn server(head: &'static str, body: impl Iterator<Item = Vec<u8>> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(head.as_bytes());
        for part in body {
            // The client hangs up when it has seen enough.
            if stream.write_all(&part).is_err() {
                return;
            }
        }
    });
    format!("http://{address}/crs.tar.gz")
}

fn read(url: &str) -> Result<Vec<u8>, Error> {
    Origin::of(Some(url), known::PINNED).read()
}

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

#[test]
fn a_download_is_what_the_server_sent() {
    assert_eq!(read(&server(OK, [b"abc".to_vec(), b"def".to_vec()].into_iter())).unwrap(), b"abcdef");
}

#[test]
fn an_endless_download_ends_at_the_limit() {
    let url = server(OK, std::iter::repeat_with(|| vec![0; 1 << 16]));
    assert!(matches!(read(&url), Err(Error::TooLong(_))));
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(limits::ARCHIVE_BYTES_MAX + 1).unwrap();
    assert!(matches!(read(file.path().to_str().unwrap()), Err(Error::TooLong(_))));
}

#[test]
fn what_is_no_file_says_why() {
    let none = || std::iter::empty::<Vec<u8>>();
    let short = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n";
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n";
    for (url, part) in [
        (server("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", none()), "404"),
        (server("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", none()), "500"),
        (server(moved, none()), "redirect"),
        (server(short, std::iter::once(b"abc".to_vec())), "cannot get"),
        (server("SSH-2.0-OpenSSH\r\n", none()), "cannot get"),
        ("http://127.0.0.1:1/".to_owned(), "cannot get"),
        // Plain HTTP to another machine, or to a name that may be one.
        ("http://192.0.2.1/crs.tar.gz".to_owned(), "only https://"),
        ("http://localhost/crs.tar.gz".to_owned(), "only https://"),
        ("http://127.0.0.1.example.com/crs.tar.gz".to_owned(), "only https://"),
        ("http://127.0.0.1@192.0.2.1/crs.tar.gz".to_owned(), "only https://"),
        ("ftp://127.0.0.1/crs.tar.gz".to_owned(), "only https://"),
        ("file:///etc/passwd".to_owned(), "only https://"),
        ("/no/such/file".to_owned(), "No such file"),
    ] {
        let text = read(&url).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains("--from FILE"), "{url}: {text}");
    }
}
