//! Servers that answer what no Redis does.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use portcullis_resp::{Client, Command, Limits, Reply};

const LIMITS: Limits = Limits { bytes_max: 1 << 20, values_max: 10_000 };
const PATIENCE: Duration = Duration::from_millis(300);
/// For what ends before any deadline, and for what a busy machine does after one.
const LONG: Duration = Duration::from_secs(30);

/// The URL of a server that does this with each connection once it has been sent something.
fn server(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            answer(&mut stream);
        }
    });
    format!("redis://{address}")
}

/// Returns the result of one command, and the time that it took.
fn ask(url: &str, patience: Duration) -> (std::io::Result<Reply>, Duration) {
    let mut connection = Client::new(url).unwrap().connect(LONG, LIMITS).unwrap();
    let began = Instant::now();
    (connection.ask(&Command::new("GET").arg(b"a"), patience), began.elapsed())
}

#[test]
fn an_answer_without_end_ends() {
    // Twelve million numbers, a text of a gigabyte, lists in lists, a status without an end.
    let endless: [(&[u8], &[u8]); 4] =
        [(b"*12000000\r\n", b":1\r\n"), (b"$1073741824\r\n", b"x"), (b"", b"*1\r\n"), (b"+", b"x")];
    for (begin, piece) in endless {
        let url = server(move |stream| {
            let _ = stream.write_all(begin);
            let many = piece.repeat(10_000);
            while stream.write_all(&many).is_ok() {}
        });
        let error = ask(&url, LONG).0.unwrap_err();
        assert!(error.to_string().contains("too many"), "{error}");
    }
    // What is allowed alone, again and again: all answers of an exchange count.
    let url = server(|stream| {
        while stream
            .write_all(b"$100000\r\n")
            .and_then(|()| stream.write_all(&[b'x'; 100_000]))
            .and_then(|()| stream.write_all(b"\r\n"))
            .is_ok()
        {}
    });
    let mut connection = Client::new(&url).unwrap().connect(LONG, LIMITS).unwrap();
    let many = vec![Command::new("GET").arg(b"a"); 100];
    assert!(connection.exchange(&many, LONG).unwrap_err().to_string().contains("too many"));
}

#[test]
fn a_drip_does_not_move_the_deadline() {
    for drip in [b":1\r\n".as_slice(), b""] {
        let url = server(move |stream| {
            let _ = stream.write_all(b"*1000\r\n");
            while stream.write_all(drip).is_ok() && stream.take_error().is_ok_and(|error| error.is_none()) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (answer, took) = ask(&url, PATIENCE);
        assert_eq!(answer.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert!(took >= PATIENCE && took < LONG, "{took:?}");
    }
}

#[test]
fn a_server_that_reads_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let mut connection = Client::new(&url).unwrap().connect(LONG, LIMITS).unwrap();
    let began = Instant::now();
    let large = Command::new("SET").arg(b"a").arg(&vec![b'x'; 64 << 20]);
    assert!(connection.ask(&large, PATIENCE).is_err());
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    drop(listener);
}

#[test]
fn what_is_no_answer_is_an_error() {
    for bytes in ["HTTP/1.1 200 OK\r\n\r\n", "$5\r\nab", "*3\r\n:1\r\n", "-ERR no\r\n", "\r\n"] {
        let (answer, _) = ask(&server(move |stream| drop(stream.write_all(bytes.as_bytes()))), LONG);
        assert!(answer.is_err(), "{bytes:?}: {answer:?}");
    }
}
