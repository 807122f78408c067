//! TLS on both sides: which certificate is shown, what is asked of clients, files that change.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use crate::common::authority::*;
use crate::common::*;

fn pair(folder: &Path, name: &str) -> String {
    let path = |extension: &str| folder.join(format!("{name}.{extension}")).display().to_string();
    format!("cert = \"{}\", key = \"{}\"", path("pem"), path("key"))
}

/// A proxy with TLS; `tls` goes into its settings, `site` into the site.
fn front(backend: SocketAddr, tls: &str, site: &str) -> Front {
    Front::start(&document(backend, "", &format!("tls = {{ {tls} }}\n"), site, ""))
}

fn shown(authority: &Authority, front: &Front, name: &str) -> Vec<u8> {
    let stream = TcpStream::connect(front.address()).unwrap();
    over_tls(authority.client(), stream, name, CLOSING).unwrap().1
}

#[test]
fn the_certificate_is_selected_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    for (name, files) in [("a.example", "a"), ("*.b.example", "wild"), ("x.b.example", "x")] {
        authority.write_as(folder.path(), name, files);
    }
    let pairs = ["a", "wild", "x"].map(|files| format!("{{ {} }}", pair(folder.path(), files)));
    let settings = |pairs: &[String]| format!("certificates = [{}]", pairs.join(", "));
    let backend = Backend::start(|_| ok("through tls"));
    let front = front(backend.address, &settings(&pairs), RULES);
    let read = |files: &str| {
        use rustls::pki_types::pem::PemObject as _;
        let path = folder.path().join(format!("{files}.pem"));
        rustls::pki_types::CertificateDer::from_pem_file(path).unwrap().to_vec()
    };
    for (name, files) in
        [("a.example", "a"), ("A.EXAMPLE", "a"), ("y.b.example", "wild"), ("x.b.example", "x")]
    {
        assert_eq!(shown(&authority, &front, name), read(files), "{name}");
    }
    assert_eq!(backend.seen()[0].header("x-forwarded-proto"), Some("https"));
    // A wildcard is one label; the first certificate is for all other names, which the client does not
    // believe.
    for name in ["b.example", "z.y.b.example", "elsewhere.example"] {
        shake(authority.client(), front.address(), name).unwrap_err();
    }
    until(|| {
        front.metric("portcullis_tls_handshake_failures_total{listener=\"main\",reason=\"alert\"}") == 3.0
    });
    // HTTP in clear text gets an answer that says so.
    let answer = front.once(CLOSING);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
    until(|| {
        front.metric("portcullis_tls_handshake_failures_total{listener=\"main\",reason=\"not_tls\"}") == 1.0
    });
    front.counts("portcullis_tls_handshakes_total{listener=\"main\",kind=\"full\"}", 4.0);
    // A reload brings other certificates, for new connections.
    let listener = format!("tls = {{ {} }}\n", settings(&pairs[1..]));
    let other = parse(&document(backend.address, "", &listener, RULES, ""));
    front.proxy.reload(&other, &inspectors(&other)).unwrap();
    assert_eq!(shown(&authority, &front, "x.b.example"), read("x"));
    shake(authority.client(), front.address(), "a.example").unwrap_err();
}

/// `:scheme` says what the connection is; a proxy in front that is trusted may hand on what its client wrote.
#[test]
fn the_scheme_of_http2_is_that_of_the_connection() {
    use std::io::{Read as _, Write as _};

    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    let backend = Backend::start(|_| ok("through tls"));
    let tls = format!("certificates = [{{ {} }}]", pair(folder.path(), "a.example"));
    // The first byte of the head of an answer: an index of `:status`.
    let status_for = |front: &Front, scheme: &[u8]| {
        let mut config = (*authority.client()).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = "a.example".try_into().unwrap();
        let client = rustls::ClientConnection::new(config.into(), name).unwrap();
        let stream = TcpStream::connect(front.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = rustls::StreamOwned::new(client, stream);
        let fields = [http2::GET[0], (b":scheme", scheme), http2::GET[2], http2::GET[3]];
        let head =
            http2::frame(http2::HEADERS, http2::END_STREAM | http2::END_HEADERS, 1, &http2::block(&fields));
        let settings = http2::frame(http2::SETTINGS, 0, 0, b"");
        stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &head].concat()).unwrap();
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stream.read_exact(&mut payload).unwrap();
            match head[3] {
                http2::HEADERS => return payload[0],
                http2::RST_STREAM | http2::GOAWAY => panic!("no answer: {payload:?}"),
                _ => {}
            }
        }
    };
    const OK: u8 = 0x88;
    const BAD_REQUEST: u8 = 0x8c;
    let own = front(backend.address, &tls, RULES);
    for (scheme, expected) in
        [("https", OK), ("http", BAD_REQUEST), ("HTTP", BAD_REQUEST), ("ftp", BAD_REQUEST)]
    {
        assert_eq!(status_for(&own, scheme.as_bytes()), expected, "{scheme}");
    }
    own.counts("portcullis_refused_requests_total{reason=\"invalid-scheme\"}", 3.0);
    assert_eq!(backend.seen().len(), 1);
    assert_eq!(backend.seen()[0].header("x-forwarded-proto"), Some("https"));
    let trusts = "client_address = { trusted_proxies = [\"127.0.0.0/8\"], header = \"x-forwarded-for\" }";
    let behind = Front::start(&document(backend.address, trusts, &format!("tls = {{ {tls} }}\n"), RULES, ""));
    assert_eq!(status_for(&behind, b"http"), OK);
    assert_eq!(backend.seen()[1].header("x-forwarded-proto"), Some("https"));
}

#[test]
fn changed_files_are_served_without_a_reload_and_bad_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    authority.write(folder.path(), "b.example");
    let staple = folder.path().join("staple.der");
    let response = |byte| vec![0x30, 6, 0x0a, 1, 0, 0xa0, 1, byte];
    std::fs::write(&staple, response(1)).unwrap();
    let settings = format!(
        "certificates = [{{ {}, ocsp = \"{}\" }}, {{ {} }}]",
        pair(folder.path(), "a.example"),
        staple.display(),
        pair(folder.path(), "b.example")
    );
    let backend = Backend::start(|_| ok("ok"));
    let front = front(backend.address, &settings, "mode = \"off\"");
    assert_eq!(authority.stapled(front.address(), "a.example"), response(1));
    let before = shown(&authority, &front, "a.example");
    let expiry = front.metric("portcullis_tls_certificate_expiry_timestamp_seconds{certificate=");
    assert!(expiry > 2.0 * 4_000_000_000.0, "rcgen's certificates are good until 4096: {expiry}");

    let reloads = |result| front.metric(&format!("portcullis_tls_reloads_total{{result=\"{result}\"}}"));
    std::fs::write(folder.path().join("a.example.pem"), "junk").unwrap();
    authority.write(folder.path(), "b.example");
    until(|| reloads("failed") == 1.0 && reloads("ok") == 1.0);
    assert_eq!(shown(&authority, &front, "a.example"), before, "one bad file keeps its own certificate only");
    assert!(
        front
            .lines()
            .iter()
            .any(|line| line.contains("a.example.pem") && line.contains("keeping the previous certificate"))
    );

    authority.write(folder.path(), "a.example");
    std::fs::write(&staple, response(2)).unwrap();
    until(|| authority.stapled(front.address(), "a.example") == response(2));
    assert_ne!(shown(&authority, &front, "a.example"), before);
    front.counts("portcullis_policy_generation", 1.0);
}

const BY_CERTIFICATE: &str = r#"rules = { directives = '''
SecRule ENV:SSL_CLIENT_S_DN "@streq CN=mallory,O=Shop" "id:1,phase:1,deny,status:403,log"
SecRule ENV:SSL_CLIENT_VERIFY "@streq NONE" "id:2,phase:1,chain,deny,status:401,log"
SecRule REQUEST_URI "@beginsWith /admin" "t:none"
''' }
request_headers = { set = { X-Client-Cert-Subject = "{client_cert_subject}", X-Serial = "{client_cert_serial}" } }
"#;

#[test]
fn certificates_of_clients_are_verified_and_shown_to_rules_and_upstreams() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, clients) = (Authority::new(), Authority::new());
    authority.write(folder.path(), "a.example");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let ca = write("clients.pem", &clients.certificate.pem());
    let crl = write("clients.crl", &clients.revoke(&[3]));
    let backend = Backend::start(|_| ok("ok"));
    let settings = |mode: &str| {
        format!(
            "certificates = [{{ {} }}], client_auth = {{ ca = \"{ca}\", crl = \"{crl}\", mode = \"{mode}\" }}",
            pair(folder.path(), "a.example")
        )
    };
    let all = rustls::ALL_VERSIONS;
    let with = |signed: &Signed| authority.client_with(Some(signed), all);
    let (ann, mallory) = (clients.sign_client("ann", 1), clients.sign_client("mallory", 2));
    let (revoked, stranger) = (clients.sign_client("eve", 3), Authority::new().sign_client("ann", 1));

    let required = front(backend.address, &settings("required"), BY_CERTIFICATE);
    let status_of = |front: &Front, config| {
        shake(config, front.address(), "a.example").map(|answer| status(&answer)).ok()
    };
    assert_eq!(status_of(&required, with(&ann)), Some(200));
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-client-cert-subject"), Some("CN=ann,O=Shop"));
    assert_eq!(seen.header("x-serial"), Some("01"));
    assert_eq!(status_of(&required, with(&mallory)), Some(403), "by a rule");
    for (config, reason) in [
        (authority.client(), "certificate_missing"),
        (with(&revoked), "certificate_revoked"),
        (with(&stranger), "certificate_invalid"),
    ] {
        assert_eq!(status_of(&required, config), None, "{reason}");
        let name =
            format!("portcullis_tls_handshake_failures_total{{listener=\"main\",reason=\"{reason}\"}}");
        until(|| required.metric(&name) == 1.0);
    }

    let optional = front(backend.address, &settings("optional"), BY_CERTIFICATE);
    let request = CLOSING.replace("\r\nConn", "\r\nX-Client-Cert-Subject: CN=ann,O=Shop\r\nConn");
    let ask = |request: &str| {
        let stream = TcpStream::connect(optional.address()).unwrap();
        over_tls(authority.client(), stream, "a.example", request).unwrap().0
    };
    assert_eq!(status(&ask(&request)), 200);
    let seen = backend.seen().pop().unwrap();
    assert_eq!(
        seen.header("x-client-cert-subject"),
        Some(""),
        "what the client says of itself does not count"
    );
    assert_eq!(status(&ask(&request.replace("/x", "/admin"))), 401);
    assert_eq!(status_of(&optional, with(&stranger)), None);

    // A session that began before its certificate was revoked is not resumed.
    let config = with(&ann);
    for _ in 0..2 {
        assert_eq!(status_of(&optional, config.clone()), Some(200));
    }
    optional.counts("portcullis_tls_handshakes_total{listener=\"main\",kind=\"resumed\"}", 1.0);
    write("clients.crl", &clients.revoke(&[1, 3]));
    until(|| optional.metric("portcullis_tls_reloads_total{result=\"ok\"}") == 1.0);
    assert_eq!(status_of(&optional, config), None);
    // A list that cannot be read changes nothing.
    write("clients.crl", "junk");
    until(|| optional.metric("portcullis_tls_reloads_total{result=\"failed\"}") == 1.0);
    assert_eq!(status_of(&optional, with(&ann)), None);
    assert_eq!(status_of(&optional, with(&mallory)), Some(403));
}

#[test]
fn sessions_are_resumed_by_all_workers_and_over_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    let listener = format!(
        "tls = {{ certificates = [{{ {} }}], ticket_key_life = \"1h\" }}\n",
        pair(folder.path(), "a.example")
    );
    let backend = Backend::start(|_| ok("ok"));
    let text = document(backend.address, "", &listener, "mode = \"off\"", "");
    let text = text.replace("workers = 1", "workers = 4");
    let front = Front::start(&text);
    for versions in [rustls::ALL_VERSIONS, &[&rustls::version::TLS12]] {
        let before = front.metric("portcullis_tls_handshakes_total{listener=\"main\",kind=\"resumed\"}");
        let config = authority.client_with(None, versions);
        for round in 0..12 {
            if round == 6 {
                let config = parse(&text);
                front.proxy.reload(&config, &inspectors(&config)).unwrap();
            }
            assert!(shake(config.clone(), front.address(), "a.example").unwrap().ends_with("ok"));
        }
        front.counts("portcullis_tls_handshakes_total{listener=\"main\",kind=\"resumed\"}", before + 11.0);
    }
}

#[test]
fn old_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    let settings =
        format!("certificates = [{{ {} }}], min_version = \"1.3\"", pair(folder.path(), "a.example"));
    let backend = Backend::start(|_| ok("ok"));
    let front = front(backend.address, &settings, "mode = \"off\"");
    let old = authority.client_with(None, &[&rustls::version::TLS12]);
    shake(old, front.address(), "a.example").unwrap_err();
    until(|| {
        front.metric("portcullis_tls_handshake_failures_total{listener=\"main\",reason=\"version\"}") == 1.0
    });
    shake(authority.client(), front.address(), "a.example").unwrap();
}

#[test]
fn tls_to_the_upstream_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let address = tls_backend(&authority, "app.internal", None);
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.certificate.pem()).unwrap();
    let other = folder.path().join("other.pem");
    std::fs::write(&other, Authority::new().certificate.pem()).unwrap();
    for (ca, name, expected) in
        [(&ca, "app.internal", 200), (&ca, "wrong.internal", 502), (&other, "app.internal", 502)]
    {
        let group = format!("tls = {{ ca = \"{}\", name = \"{name}\" }}\n", ca.display());
        let text = document(address, "", "", RULES, &group).replace("http://", "https://");
        let text = text.replace("https://elsewhere", "http://elsewhere");
        let front = Front::start(&text);
        let mut client = front.client();
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(status(&client.response().0), expected, "{name}");
        }
        if expected == 502 {
            let event = front.events(2).remove(1);
            assert_eq!(event.upstream_error, Some(portcullis_event::UpstreamError::Tls));
            let words = if name == "wrong.internal" { "`tls.name`" } else { "unknown issuer" };
            let reason = event.upstream_reason.expect("words");
            assert!(reason.contains(words), "{reason}");
            // Once for the endpoint and the cause, however many requests fail.
            let lines: Vec<String> = front.lines().into_iter().filter(|line| line.contains(words)).collect();
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(
                lines[0].starts_with(&format!("upstream `app`: {address}: tls: its certificate")),
                "{lines:?}"
            );
        }
    }
}

/// Servers that make their certificate themselves: it may be named, or its SHA-256.
#[test]
fn an_upstream_may_have_made_its_certificate_itself() {
    let folder = tempfile::tempdir().unwrap();
    let as_authority = Authority::own("app.internal", true);
    let as_leaf = Authority::own("app.internal", false);
    let hex = |bytes: &[u8], between: &str| {
        sha256(bytes).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(between)
    };
    let of_key = |key: &rcgen::KeyPair| rcgen::PublicKeyData::subject_public_key_info(key);
    for (number, own) in [as_authority, as_leaf].iter().enumerate() {
        let address = tls_server(own, None);
        let ca = folder.path().join(format!("{number}.pem"));
        std::fs::write(&ca, own.0.pem()).unwrap();
        let other = folder.path().join("other.pem");
        std::fs::write(&other, Authority::own("app.internal", true).0.pem()).unwrap();
        let (ca, other) = (ca.display(), other.display());
        let (pin, key_pin) = (hex(own.0.der(), ":"), hex(&of_key(&own.1), ""));
        let wrong = hex(b"something else", "");
        for (settings, expected) in [
            (format!("ca = \"{ca}\", name = \"app.internal\""), 200),
            (format!("ca = \"{ca}\", name = \"other.internal\""), 502),
            (format!("ca = \"{other}\", name = \"app.internal\""), 502),
            (format!("pin = [\"{pin}\"]"), 200),
            (format!("pin = [\"{wrong}\", \"sha256:{}\"]", key_pin.to_lowercase()), 200),
            (format!("pin = [\"{wrong}\"]"), 502),
            (format!("pin = [\"{pin}\"], ca = \"{ca}\", name = \"app.internal\""), 200),
            (format!("pin = [\"{pin}\"], ca = \"{other}\", name = \"app.internal\""), 502),
            (format!("pin = [\"{wrong}\"], ca = \"{ca}\", name = \"app.internal\""), 502),
        ] {
            let group = format!("tls = {{ {settings} }}\n");
            let text = document(address, "", "", "mode = \"off\"", &group).replace("http://", "https://");
            let front = Front::start(&text);
            let answer = front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let reason = match expected {
                502 => front.events(1)[0].upstream_reason.clone(),
                _ => None,
            };
            assert_eq!(status(&answer), expected, "{settings}: {reason:?}");
        }
    }
}

/// A connection for one site is not one for another, unless its certificate is for both.
#[test]
fn a_connection_for_another_site_is_misdirected() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    for (name, files) in [("open.example", "open"), ("closed.example", "closed"), ("*.both.example", "both")]
    {
        authority.write_as(folder.path(), name, files);
    }
    let pairs = ["open", "closed", "both"].map(|files| format!("{{ {} }}", pair(folder.path(), files)));
    let backend = Backend::start(|_| ok("ok"));
    let front = |more: &str| {
        let listener = format!("tls = {{ certificates = [{}] }}\n", pairs.join(", "));
        let text = document(backend.address, more, &listener, "mode = \"off\"", "");
        let text = text.replace("hosts = [\"*\"]", "hosts = [\"open.example\", \"x.both.example\"]");
        let second = "[[sites]]\nname = \"second\"\nhosts = [\"closed.example\", \"y.both.example\"]\nupstream = \"app\"\nmode = \"off\"\n[upstreams.app]";
        Front::start(&text.replace("[upstreams.app]", second))
    };
    let ask = |front: &Front, sni: &str, host: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let stream = TcpStream::connect(front.address()).unwrap();
        status(&over_tls(authority.client(), stream, sni, &request).unwrap().0)
    };
    let plain = front("");
    for (sni, host, expected) in [
        ("open.example", "open.example", 200),
        ("open.example", "OPEN.example:443", 200),
        ("open.example", "closed.example", 421),
        ("closed.example", "open.example", 421),
        // The same site, and a certificate for both sites, as browsers use a connection again.
        ("open.example", "x.both.example", 200),
        ("x.both.example", "y.both.example", 200),
        ("x.both.example", "closed.example", 421),
        ("open.example", "elsewhere.example", 404),
        // A name of no site, under the first certificate, is that of somebody in front.
        ("internal.both.example", "closed.example", 200),
    ] {
        assert_eq!(ask(&plain, sni, host), expected, "{sni} {host}");
    }
    let event = plain.events(1).remove(0);
    assert!(event.verdict.reason.contains("another site"), "{:?}", event.verdict);
    // A proxy in front connects as it likes.
    let trusted = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";
    assert_eq!(ask(&front(trusted), "open.example", "closed.example"), 200);
}

#[test]
fn an_upstream_that_asks_gets_our_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, clients) = (Authority::new(), Authority::new());
    let address = tls_backend(&authority, "app.internal", Some(&clients));
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let ca = write("ca.pem", &authority.certificate.pem());
    let signed = |(certificate, key): Signed| {
        write("own.key", &key.serialize_pem());
        write("own.pem", &certificate.pem());
    };
    signed(Authority::new().sign_client("proxy", 1));
    let group = |own: &str| format!("tls = {{ ca = \"{ca}\", name = \"app.internal\"{own} }}\n");
    let start = |own: &str| {
        let text = document(address, "", "", "mode = \"off\"", &group(own));
        Front::start(&text.replace("http://", "https://"))
    };
    let ask = |front: &Front| status(&front.once("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert_eq!(ask(&start("")), 502, "it wants one");
    let front = start(&format!(", {}", pair(folder.path(), "own")));
    assert_eq!(ask(&front), 502, "nobody there knows who signed it");
    // The files change, and new connections show what is in them.
    signed(clients.sign_client("proxy", 1));
    until(|| front.metric("portcullis_tls_reloads_total{result=\"ok\"}") == 1.0);
    assert_eq!(ask(&front), 200);
}

#[test]
fn clear_text_is_redirected_and_browsers_are_told_to_come_by_tls() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write(folder.path(), "a.example");
    let backend = Backend::start(|_| {
        Reply::Bytes(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nStrict-Transport-Security: max-age=1\r\n\r\nok"
                .to_vec(),
        )
    });
    let more = "client_address = { trusted_proxies = [\"127.0.0.0/8\"] }\n";
    let site = format!(
        "{RULES}https = {{ redirect = true, port = 8443, hsts = {{ max_age = \"24h\", include_subdomains = true }} }}\n"
    );
    let plain = "GET /a/b?c=d HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n";
    let front = Front::start(&document(backend.address, more, "", &site, ""));
    let answer = front.once(plain);
    assert_eq!(status(&answer), 308);
    assert_eq!(header(&answer, "location"), Some("https://a.example:8443/a/b?c=d"));
    assert_eq!(header(&answer, "strict-transport-security"), None, "only over TLS");
    front.counts("portcullis_https_redirects_total{site=\"site\"}", 1.0);
    assert_eq!(status(&front.once(plain.replace("/a/b", "/attack"))), 403, "inspected all the same");
    // A proxy in front may have done the TLS.
    let answer = front.once(plain.replace("Conn", "X-Forwarded-Proto: https\r\nConn"));
    assert_eq!(status(&answer), 200);
    assert_eq!(header(&answer, "strict-transport-security"), Some("max-age=86400; includeSubDomains"));

    let listener = format!("tls = {{ certificates = [{{ {} }}] }}\n", pair(folder.path(), "a.example"));
    let secure = Front::start(&document(backend.address, "", &listener, &site, ""));
    for (path, expected) in [("/x", 200), ("/attack", 403)] {
        let stream = TcpStream::connect(secure.address()).unwrap();
        let request = CLOSING.replace("/x", path);
        let (answer, _) = over_tls(authority.client(), stream, "a.example", &request).unwrap();
        assert_eq!(status(&answer), expected);
        assert_eq!(answer.to_lowercase().matches("strict-transport-security").count(), 1, "{answer}");
        assert_eq!(header(&answer, "strict-transport-security"), Some("max-age=86400; includeSubDomains"));
    }
    // Strangers may claim what they like.
    let front = Front::start(&document(backend.address, "", "", &site, ""));
    assert_eq!(status(&front.once(plain.replace("Conn", "X-Forwarded-Proto: https\r\nConn"))), 308);
}

/// Whatever begins like a method is answered, however little or much of it comes; what begins like TLS is
/// left to TLS.
#[test]
fn clear_text_is_answered_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    authority.write_as(folder.path(), "a.example", "a");
    let backend = Backend::start(|_| ok("through tls"));
    let certificates = format!("certificates = [{{ {} }}]", pair(folder.path(), "a"));
    let front = front(backend.address, &certificates, RULES);
    let upload =
        [b"POST / HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n".to_vec(), vec![b'x'; 4_000_000]].concat();
    for first in [&b"G"[..], b"get / http/0.9\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &upload] {
        let mut client = front.client();
        client.send(first);
        let answer = client.rest();
        let shown = String::from_utf8_lossy(&first[..first.len().min(20)]);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{shown:?}: {answer:?}");
        assert_eq!(header(&answer, "connection"), Some("close"));
    }
    for (first, starts) in
        [(&b"\x16"[..], ""), (b"\0\0", "\x15"), (b"\x80\x2e\x01", "\x15"), (b" GET", "\x15")]
    {
        let mut client = front.client();
        client.send(first);
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = client.rest();
        assert!(answer.starts_with(starts) && !answer.contains("HTTP"), "{first:?}: {answer:?}");
    }
    assert!(!shown(&authority, &front, "a.example").is_empty());
    assert_eq!(backend.seen().len(), 1);
}
