//! Clients that are slow on purpose keep nobody out, however many networks they come from.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use portcullis_api::Limits;
use portcullis_identity::Role;
use proptest::prelude::*;

use crate::client::{connect_from, exchange};
use crate::server::Server;

/// So long that no test waits for the end of it.
const LONG: Duration = Duration::from_secs(600);

/// Beginnings of requests that then stay as they are. Answers of the last are not read.
const BEGINNINGS: [&str; 6] = [
    "",
    "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: ",
    "POST /api/v1/setup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
    "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
     Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
     Content-Length: 900\r\n\r\n{",
    "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
];

fn limits() -> Limits {
    Limits {
        connections_max: 12,
        client_connections_max: 5,
        requests_max: 3,
        head_time_max: LONG,
        body_time_max: LONG,
        public_body_time_max: LONG,
        write_time_max: LONG,
        request_time_max: LONG,
        stranger_login_time: Duration::ZERO,
        ..Limits::default()
    }
}

fn slow(server: &Server, client: Ipv4Addr, kind: usize) -> TcpStream {
    let mut stream = connect_from(client, server.address);
    // As many answers as fit nowhere.
    let times = if kind + 1 == BEGINNINGS.len() { 200 } else { 1 };
    stream.set_nonblocking(true).unwrap();
    let _ = stream.write_all(BEGINNINGS[kind].repeat(times).as_bytes());
    stream
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn slow_clients_of_any_networks_keep_nobody_out(
        // The network, the host in it, and what it sends.
        clients in proptest::collection::vec((0_u8..20, 1_u8..4, 0..BEGINNINGS.len()), 1..40),
        neighbour in any::<bool>(),
    ) {
        let server = Server::with(limits());
        let token = server.token(Role::Viewer);
        let held: Vec<TcpStream> = clients
            .iter()
            .map(|&(network, host, kind)| slow(&server, Ipv4Addr::new(127, 1, network, host), kind))
            .collect();
        // In a network of its own, or beside them.
        let (network, host, _) = clients[0];
        let own = if neighbour { Ipv4Addr::new(127, 1, network, host) } else { Ipv4Addr::new(127, 9, 9, 9) };
        for request in [
            "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_owned(),
            format!("GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
                     Connection: close\r\n\r\n"),
        ] {
            for _ in 0..3 {
                let answer = exchange(connect_from(own, server.address), request.as_bytes());
                prop_assert_eq!(answer.map(|answer| answer.status), Some(200), "{}", request);
            }
        }
        drop(held);
    }
}

/// What has not shown who it is sends small bodies.
#[test]
fn bodies_without_credentials_are_small() {
    let server = Server::start();
    let token = server.token(Role::Admin);
    let body = format!("{{\"text\": \"{}\"}}", "a".repeat(20 << 10));
    assert_eq!(server.ask("POST", "/login").json(&body).send().status, 413);
    assert_eq!(server.ask("POST", "/setup").json(&body).send().status, 413);
    assert_eq!(server.ask("POST", "/check").bearer(&token).json(&body).send().status, 200);
}
