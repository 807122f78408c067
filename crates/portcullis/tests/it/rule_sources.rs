//! Rules from a server (`SecRemoteRules`) and from CRS plugins.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};

const RULES: &str = "SecRule ARGS \"@rx remote\" \"id:77,phase:2,deny\"\n";

/// An HTTPS server that gives `RULES` to clients that send the key, `times` times; its port and the PEM of
/// its authority.
fn server(times: usize) -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a server configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(times) {
            let Ok(socket) = stream else { return };
            let Ok(tls) = rustls::ServerConnection::new(Arc::clone(&config)) else { return };
            let mut stream = rustls::StreamOwned::new(tls, socket);
            let mut head = Vec::new();
            let mut buffer = [0; 1024];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => head.extend_from_slice(&buffer[..n]),
                }
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let (status, body) = match (head.contains("modsec-key: secret"), head.starts_with("get /moved "))
            {
                (true, false) => ("200 OK", RULES),
                (true, true) => ("302 Found\r\nLocation: https://localhost/rules", ""),
                (false, _) => ("403 Forbidden", ""),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.flush();
        }
    });
    (port, made.cert.pem())
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exit code and all output of `portcullis rules --rules main.conf` with `pem` as the only authority.
fn rules(folder: &Path, text: &str, pem: &str) -> (Option<i32>, String) {
    std::fs::write(folder.join("main.conf"), text).expect("writing");
    std::fs::write(folder.join("ca.pem"), pem).expect("writing");
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["rules", "--rules", "main.conf"])
        .current_dir(folder)
        .env("SSL_CERT_FILE", folder.join("ca.pem"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .expect("the program runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn remote_rules_are_loaded_if_the_server_and_the_checksum_are_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, pem) = server(6);
    let url = format!("https://localhost:{port}/rules");
    let (good, wrong) = (sha256(RULES), sha256("other"));
    let (code, text) = rules(folder.path(), &format!("SecRemoteRules secret {url} sha256:{good}\n"), &pem);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("77       phase 2 active"), "{text}");

    let (_, other) = server(0);
    for (directive, pem, part) in [
        (
            format!("SecRemoteRules secret {url} sha256:{wrong}"),
            &pem,
            format!("another checksum, sha256:{good}"),
        ),
        (format!("SecRemoteRules guess {url} sha256:{good}"), &pem, "403".to_owned()),
        (
            format!("SecRemoteRules secret {}/moved sha256:{good}", url.replace("/rules", "")),
            &pem,
            "302".to_owned(),
        ),
        (format!("SecRemoteRules secret {url} sha256:{good}"), &other, "certificate".to_owned()),
        (format!("SecRemoteRules secret {url}"), &pem, "checksum of the remote rules is missing".to_owned()),
        (format!("SecRemoteRules secret {url} sha256:12"), &pem, "64 hex digits".to_owned()),
        (
            format!("SecRemoteRules secret http{} sha256:{good}", &url[5..]),
            &pem,
            "https URLs only".to_owned(),
        ),
        (
            format!("SecRemoteRulesFailAction Perhaps\nSecRemoteRules secret {url} sha256:{wrong}"),
            &pem,
            "Abort or Warn".to_owned(),
        ),
    ] {
        let (code, text) = rules(folder.path(), &directive, pem);
        assert_eq!(code, Some(1), "{directive}\n{text}");
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "{directive}\nno {part:?} in\n{text}");
    }
}

#[test]
fn the_fail_action_may_be_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, pem) = server(0);
    let free = portcullis_testkit::proxy::free_address().expect("a port").port();
    let text = format!(
        "SecRemoteRulesFailAction Warn\nSecRemoteRules key https://localhost:{free}/ sha256:{}\nSecAction id:5,pass\n",
        sha256("")
    );
    let (code, text) = rules(folder.path(), &text, &pem);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("5        phase 2 active"), "{text}");
}

#[test]
fn plugins_of_the_crs_folder_are_read_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("writing");
    };
    let rule = |id: u32| format!("SecAction \"id:{id},phase:1,pass\"\n");
    write("crs-setup.conf", &rule(1));
    write("rules/REQUEST-901-INITIALIZATION.conf", &rule(4));
    write("plugins/a-after.conf", &rule(5));
    write("plugins/a-before.conf", &rule(3));
    write("plugins/a-config.conf", &rule(2));
    write("plugins/README.md", "no rules");
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("a run");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = run(&["rules", "--crs", "."]);
    let lines = text.lines().filter(|line| line.contains(" phase "));
    let ids: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).filter(|id| id.len() == 1).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5"], "{text}");
    assert!(run(&["check", "."]).contains("5 files, 5 rules, 0 errors"));
}
