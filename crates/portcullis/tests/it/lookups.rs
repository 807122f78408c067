//! Rules that ask the outside, in the real program: block lists of a DNS server, a virus scanner, a geography
//! database.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_testkit::answers::{Clamd, DnsReply, DnsServer};
use portcullis_testkit::client::exchange;
use portcullis_testkit::mmdb::{self, Value};
use portcullis_testkit::process::Process;
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::{Response, Server};
use portcullis_testkit::wait::PATIENCE;

/// Longer than what one lookup takes without an answer, shorter than twenty.
const LONG: Duration = Duration::from_secs(30);

struct Running {
    _process: Process,
    _upstream: Server,
    address: SocketAddr,
    admin: SocketAddr,
    folder: tempfile::TempDir,
}

impl Running {
    /// One worker with these rules; `more` are lines of the document before its tables, `failure` is the
    /// site's.
    fn start(rules: &str, lookups: &str, failure: &str) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let upstream =
            Server::start("127.0.0.1:0", |_| Response { status: 200, ..Response::default() }).unwrap();
        let (address, admin) = (free_address().unwrap(), free_address().unwrap());
        std::fs::write(folder.path().join("rules.conf"), rules).unwrap();
        let united = Value::Map(vec![("country", Value::Map(vec![("iso_code", Value::Text("US"))]))]);
        let database = mmdb::write(&[("127.0.0.0".parse().unwrap(), 8, united)]);
        std::fs::write(folder.path().join("geo.mmdb"), database).unwrap();
        let document = format!(
            "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n\
             lookups = {{ {lookups} }}\n\
             [[listeners]]\naddress = \"{address}\"\n\
             [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\nrules = {{ include = [\"rules.conf\"] }}\n\
             failure = {{ {failure} }}\n\
             [upstreams.app]\nendpoints = [\"http://{}\"]\n",
            upstream.address()
        );
        let config = folder.path().join("portcullis.toml");
        std::fs::write(&config, document).unwrap();
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), config.into()];
        let program = PathBuf::from(env!("CARGO_BIN_EXE_portcullis"));
        let mut process = Process::start(&program, &arguments, &folder.path().join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Running { _process: process, _upstream: upstream, address, admin, folder }
    }

    fn get(&self, target: &str) -> u16 {
        self.send(&format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    }

    fn upload(&self, content: &str) -> u16 {
        let body = format!(
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n{content}\r\n--B--\r\n"
        );
        self.send(&format!(
            "POST /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=B\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    fn send(&self, request: &str) -> u16 {
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    /// Waits until a series has this value: what happens after an answer is counted after it.
    fn wait_for_metric(&self, line: &str) {
        let begin = Instant::now();
        loop {
            let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            let answer = exchange(self.admin, None, request, PATIENCE).unwrap();
            let text = String::from_utf8_lossy(answer.after_head()).into_owned();
            if text.lines().any(|found| found == line) {
                return;
            }
            let shown: Vec<_> = text.lines().filter(|line| line.contains("lookup")).collect();
            assert!(begin.elapsed() < PATIENCE, "no {line:?} in\n{}", shown.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until an event holds `text`.
    fn wait_for_event(&self, text: &str) {
        let begin = Instant::now();
        loop {
            let events = std::fs::read_to_string(self.folder.path().join("events.jsonl")).unwrap_or_default();
            if events.contains(text) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "no {text:?} in\n{events}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn lookups(result: &str, kind: &str, count: u32) -> String {
    format!("portcullis_lookups_total{{kind=\"{kind}\",result=\"{result}\"}} {count}")
}

fn dns(server: &DnsServer, timeout: &str) -> String {
    format!("resolvers = [\"{}\"], dns_timeout = \"{timeout}\"", server.address)
}

#[test]
fn a_block_list_decides() {
    let server = DnsServer::start(|name| match name {
        "1.0.0.127.zen.spamhaus.org" => DnsReply::NoSuchName,
        "4.3.2.1.zen.spamhaus.org" => DnsReply::Address(Ipv4Addr::new(127, 0, 0, 4), 300),
        "bad.example.multi.uribl.com" => DnsReply::Address(Ipv4Addr::new(127, 0, 0, 2), 300),
        "key.9.9.9.9.dnsbl.httpbl.org" => DnsReply::Address(Ipv4Addr::new(127, 3, 25, 4), 300),
        _ => DnsReply::NoSuchName,
    })
    .unwrap();
    let rules = r#"
SecHttpBlKey key
SecRule REMOTE_ADDR "@rbl zen.spamhaus.org" "id:1,phase:1,deny,status:402,log"
SecRule ARGS:ip "@rbl zen.spamhaus.org" "id:2,phase:1,deny,status:403,log,capture,logdata:'%{TX.0}',chain"
    SecRule ARGS:also "@rbl multi.uribl.com" "t:none,capture,setvar:'tx.n=%{TX.0}'"
SecRule ARGS:visitor "@rbl dnsbl.httpbl.org" "id:3,phase:2,deny,status:404,log,capture,logdata:'%{TX.0}'"
SecRule RESPONSE_STATUS "@eq 200" "id:4,phase:3,deny,status:405,chain"
    SecRule ARGS:late "@rbl zen.spamhaus.org"
SecRule ARGS:log "@rbl zen.spamhaus.org" "id:5,phase:5,pass,log,msg:'seen in phase 5'"
"#;
    let proxy = Running::start(rules, &dns(&server, "20s"), "");
    assert_eq!(proxy.get("/"), 200);
    assert_eq!(proxy.get("/?ip=1.2.3.4&also=good.example"), 200);
    assert_eq!(proxy.get("/?ip=1.2.3.4&also=Bad.Example."), 403);
    assert_eq!(proxy.get("/?ip=1.2.3.5&also=bad.example"), 200);
    assert_eq!(proxy.get("/?visitor=9.9.9.9"), 404);
    assert_eq!(proxy.get("/?late=1.2.3.4"), 405);
    assert_eq!(proxy.get("/?log=1.2.3.4"), 200);
    proxy.wait_for_event("Comment spammer IP: 3 days since last activity, threat score 25");
    proxy.wait_for_event("seen in phase 5");
    // Each name was asked for once, then remembered.
    let mut asked = server.asked();
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), count, "{asked:?}");
    proxy.wait_for_metric(&lookups("found", "dns", 3));
    proxy.wait_for_metric(&lookups("nothing", "dns", 3));
    // The client's address in six requests, 1.2.3.4 in three, and the bad name is asked for by no other.
    proxy.wait_for_metric(&lookups("cached", "dns", 9));
    proxy.wait_for_metric("portcullis_lookup_duration_seconds_count{kind=\"dns\"} 6");
}

#[test]
fn a_server_without_an_answer_is_open_or_closed() {
    let silent = DnsServer::start(|_| DnsReply::Silence).unwrap();
    let rules = r#"
SecRule REQUEST_URI "!@contains free" "id:1,phase:1,deny,status:402,chain"
    SecRule REMOTE_ADDR "@rbl list.example"
SecRule REQUEST_URI "!@contains free" "id:2,phase:1,deny,status:403,chain"
    SecRule REMOTE_ADDR "!@rbl list.example"
"#;
    let begin = Instant::now();
    let open = Running::start(rules, &dns(&silent, "600ms"), "");
    assert_eq!(open.get("/"), 200, "neither listed nor known not to be");
    open.wait_for_metric(&lookups("timeout", "dns", 1));
    open.wait_for_metric("portcullis_exceptions_total{cause=\"lookup_failed\",policy=\"open\"} 1");
    open.wait_for_event("\"cause\":\"lookup_failed\",\"policy\":\"open\"");
    assert_eq!(silent.asked().len(), 3, "three tries");

    let closed = Running::start(rules, &dns(&silent, "600ms"), "lookup = \"closed\"");
    assert_eq!(closed.get("/"), 503);
    assert_eq!(closed.get("/free"), 200, "nothing was asked");
    closed.wait_for_metric("portcullis_exceptions_total{cause=\"lookup_failed\",policy=\"closed\"} 1");
    closed.wait_for_event("A lookup that the rules ask for failed.");
    assert!(begin.elapsed() < LONG);

    // After eight of them in a row, no question is sent for a while.
    let failing = DnsServer::start(|_| DnsReply::Failure).unwrap();
    let proxy = Running::start(rules, &dns(&failing, "20s"), "");
    for _ in 0..10 {
        assert_eq!(proxy.get("/"), 200);
    }
    proxy.wait_for_metric(&lookups("failed", "dns", 8));
    proxy.wait_for_metric(&lookups("resting", "dns", 2));
    assert_eq!(failing.asked().len(), 24);
}

#[test]
fn many_values_are_asked_for_at_once() {
    let server = DnsServer::start(|name| match name.starts_with("n") {
        true => DnsReply::Silence,
        false => DnsReply::Address(Ipv4Addr::new(127, 0, 0, 2), 60),
    })
    .unwrap();
    let rules = r#"SecRule ARGS "@rbl list.example" "id:1,phase:1,deny,status:403""#;
    let proxy = Running::start(rules, &dns(&server, "3s"), "");
    let begin = Instant::now();
    let target: String = (0..20).map(|n| format!("&a=n{n}")).collect();
    assert_eq!(proxy.get(&format!("/?{target}&a=x")), 403);
    assert!(begin.elapsed() < LONG, "one after the other they take a minute");
    proxy.wait_for_metric(&lookups("timeout", "dns", 20));
    proxy.wait_for_metric(&lookups("found", "dns", 1));
}

#[test]
fn a_scanner_decides() {
    let scanner = Clamd::start(|content| match content {
        b"silence" => None,
        b"size" => Some("INSTREAM size limit exceeded. ERROR".to_owned()),
        content if content.starts_with(b"evil") => Some("stream: Evil-Test-1 FOUND".to_owned()),
        _ => Some("stream: OK".to_owned()),
    })
    .unwrap();
    let rules = format!(
        "SecRule FILES_TMPNAMES \"@inspectFile clamd:{}\" \"id:1,phase:2,deny,status:403,log,capture,msg:'upload: %{{TX.0}}'\"",
        scanner.address
    );
    let proxy = Running::start(&rules, "scan_timeout = \"3s\"", "");
    assert_eq!(proxy.upload("good"), 200);
    assert_eq!(proxy.upload("evil"), 403);
    let large = format!("evil{}", "x".repeat(300_000));
    assert_eq!(proxy.upload(&large), 403);
    assert_eq!(proxy.upload("size"), 200);
    assert_eq!(proxy.upload("silence"), 200);
    assert_eq!(proxy.upload(""), 200, "an empty file is shown to nobody");
    assert_eq!(proxy.get("/"), 200);
    proxy.wait_for_event("upload: Evil-Test-1");
    for (result, count) in [("found", 2), ("nothing", 1), ("failed", 1), ("timeout", 1)] {
        proxy.wait_for_metric(&lookups(result, "scan", count));
    }
    let seen = scanner.seen();
    assert_eq!(seen.len(), 5);
    assert_eq!((seen[0].as_slice(), seen[2].len()), (b"good".as_slice(), large.len()));

    // No scanner at all, on a socket of the file system.
    let rules = r#"SecRule FILES_TMP_CONTENT "@inspectFile clamd:/no/such/socket" "id:1,phase:2,deny""#;
    let closed = Running::start(rules, "", "lookup = \"closed\"");
    assert_eq!(closed.upload("good"), 503);
    closed.wait_for_metric(&lookups("failed", "scan", 1));
}

#[test]
fn geography_decides() {
    let rules = r#"
SecGeoLookupDb geo.mmdb
SecRule REMOTE_ADDR "@geoLookup" "id:1,phase:1,pass,nolog"
SecRule GEO:COUNTRY_CODE3 "@streq USA" "id:2,phase:1,deny,status:451,log,msg:'from %{GEO.COUNTRY_CODE}'"
"#;
    let proxy = Running::start(rules, "", "");
    assert_eq!(proxy.get("/"), 451);
    proxy.wait_for_event("from US");
}
