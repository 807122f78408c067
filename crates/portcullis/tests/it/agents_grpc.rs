//! Inspection agents over gRPC: what HTTP/2 and gRPC add to the other tests of agents, which run over both.

use crate::agent::{Agent, grpc, table};
use crate::served::*;
use portcullis_testkit::agent::Address;

const SITE: &str = "mode = \"off\"\nagents = [\"echo\"]";

fn ask(served: &Served, commands: &str) -> u16 {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Agent: {commands}\r\nConnection: close\r\n\r\n");
    served.raw(head).status()
}

fn failures(served: &Served, reason: &str) -> f64 {
    served.metric(&format!("portcullis_agent_failures_total{{agent=\"echo\",reason=\"{reason}\"}}"))
}

/// Returns the standard error of the program.
fn output(served: &Served) -> String {
    std::fs::read_to_string(served.folder.path().join("output")).unwrap()
}

/// A program that asks the echo agent, which is told `more`, and the answer to a plain request.
fn answered_before(address: &Address, settings: &str) -> (Server, Served, u16) {
    let application = application(|_| says("hello"));
    let served = Served::start_site(
        &application,
        SITE,
        &table("echo", address, &format!("timeout = \"10s\"\n{settings}")),
    );
    let status = ask(&served, "block 418");
    (application, served, status)
}

#[test]
fn a_version_that_nobody_speaks_is_no_handshake() {
    let address = grpc();
    let _agent = Agent::echo_with(&address, &["--version", "2"]);
    let (_application, served, status) = answered_before(&address, "");
    assert_eq!((status, failures(&served, "handshake")), (503, 1.0));
    let said = output(&served);
    assert!(
        said.contains("agent `echo`: the connection is given up: it chose version 2 of the protocol"),
        "{said}"
    );
    served.stop();
}

#[test]
fn a_status_ends_the_call_and_is_told() {
    let address = grpc();
    let _agent = Agent::echo(&address);
    let (_application, served, status) = answered_before(&address, "");
    assert_eq!((status, failures(&served, "status")), (418, 0.0));
    assert_eq!(ask(&served, "status 14 going%20away"), 503);
    until(|| failures(&served, "status") == 1.0);
    let said = output(&served);
    assert!(said.contains("agent `echo`: gRPC status 14 (UNAVAILABLE): going away"), "{said}");
    // Ending the call in good order is no decision either.
    assert_eq!((ask(&served, "status 0"), failures(&served, "closed")), (503, 1.0));
    assert_eq!(ask(&served, "block 418"), 418, "the next one has a new call");
    served.stop();
}

#[test]
fn what_is_not_grpc_is_no_agent() {
    // Neither HTTP/2 nor a service of that name.
    let elsewhere = application(|_| says("hello"));
    let address = Address::Grpc(elsewhere.address());
    let (_application, served, status) = answered_before(&address, "");
    assert_eq!((status, failures(&served, "handshake")), (503, 1.0));
    served.stop();

    // HTTP/2, but an answer of another kind: our own, with prior knowledge.
    let (address, admin) = (free_address(), free_address());
    let folder = tempfile::tempdir().unwrap();
    let site = "mode = \"off\"\nroutes = [{ path = \"/\", respond = { status = 200 } }]";
    let config = document(folder.path(), address, admin, elsewhere.address(), site, "");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[[sites]]", "http2 = { cleartext = true }\n[[sites]]")).unwrap();
    let arguments = ["run".into(), "--config".into(), config.into_os_string()];
    let output_file = folder.path().join("output");
    let mut other =
        portcullis_testkit::process::Process::start(&program(), &arguments, &output_file).unwrap();
    other.wait_for(address, PATIENCE).unwrap();
    let (_application, served, status) = answered_before(&Address::Grpc(address), "");
    assert_eq!((status, failures(&served, "handshake")), (503, 1.0));
    let said = output(&served);
    assert!(said.contains("agent `echo`: it answers HTTP 200, which is not gRPC"), "{said}");
    served.stop();
}

#[test]
fn bodies_wait_while_an_agent_with_endless_credit_does_not_read() {
    let address = grpc();
    let _agent = Agent::echo_with(&address, &["--window", "1000000000"]);
    let application = application(|_| says("hello"));
    let settings = "timeout = \"20s\"\nrequest_body = true\nbody_limit = \"16MiB\"";
    let more = table("echo", &address, settings);
    let served = Served::start_site(&application, SITE, &more);
    // More than may ever wait for an agent; it comes while the agent sleeps.
    let body = [&vec![b'a'; 12 << 20][..], b"block-body"].concat();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nX-Agent: stall\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    assert_eq!(served.raw([head.as_bytes(), &body].concat()).status(), 403, "{}", output(&served));
    let told = served.events(1).remove(0);
    assert!(told.contains(&format!("found in {} bytes", body.len())), "{told}");
    served.stop();
}

#[test]
fn an_agent_that_goes_away_in_good_order_costs_no_request() {
    let address = grpc();
    let _agent = Agent::echo(&address);
    let (_application, served, status) = answered_before(&address, "");
    assert_eq!(status, 418);
    let connections = || served.metric("portcullis_agent_connections{agent=\"echo\"}");
    for _ in 0..20 {
        assert_eq!(ask(&served, "go-away; block 418"), 418);
    }
    let said = output(&served);
    assert!(!said.contains("agent `echo`"), "{said}");
    until(|| connections() == 1.0);
    served.stop();
}

#[test]
fn over_tls_the_certificate_counts() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["agent.test".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("agent.pem"), folder.path().join("agent.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let address = free_address();
    let files = ["--tls", cert.to_str().unwrap(), key.to_str().unwrap()];
    let _agent = Agent::echo_with(&Address::Grpc(address), &files);
    let application = application(|_| says("hello"));
    for (name, expected) in [("agent.test", 418), ("other.test", 503)] {
        let tls = format!("tls = {{ ca = \"{}\", name = \"{name}\" }}", cert.display());
        let more = format!("[agents.echo]\naddress = \"grpcs://{address}\"\ntimeout = \"10s\"\n{tls}\n");
        let served = Served::start_site(&application, SITE, &more);
        assert_eq!(ask(&served, "block 418"), expected, "{name}: {}", output(&served));
        if expected == 503 {
            until(|| failures(&served, "connect") == 1.0);
            let line = format!("agent `echo`: no connection to {address}: tls");
            assert!(output(&served).contains(&line), "{}", output(&served));
        }
        served.stop();
    }
}
