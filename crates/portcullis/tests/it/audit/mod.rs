//! The audit log and the debug log of `portcullis run`: every form, read by strict readers.

mod parse;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use parse::{headers, index_line, native, natives};
use portcullis_testkit::client::exchange;
use portcullis_testkit::process::{Process, Signal};
use portcullis_testkit::proxy::free_address;
use portcullis_testkit::upstream::{Server, reflector::Reflector};
use portcullis_testkit::wait::{PATIENCE, until};
use serde_json::Value;

/// Rules that every case below has.
const RULES: &str = r#"
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain
SecAuditEngine RelevantOnly
SecAuditLogRelevantStatus "^(?:5|4(?!04))"
SecAuditLogParts ABCDEFGHIJKZ
SecComponentSignature "TEST_RULES/1.0"
SecSensorId sensor-7
SecWebAppId shop
SecServerSignature "Shop/2"
SecRule ARGS "@rx attack" "id:10,phase:2,deny,status:403,log,capture,msg:'Attack found',\
  logdata:'Matched %{TX.0} in %{MATCHED_VAR_NAME}',severity:CRITICAL,tag:'attack-test',ver:'T/1.0',rev:'2',maturity:3,accuracy:4"
SecRule ARGS:watch "@streq yes" "id:11,phase:2,pass,log,msg:'Watched',severity:NOTICE,chain"
  SecRule REQUEST_METHOD "@streq POST" "t:none"
SecAction "id:12,phase:2,pass,nolog,sanitiseArg:password,sanitiseRequestHeader:Authorization,sanitiseResponseHeader:X-Secret"
SecRule ARGS:card "@rx \d{12,16}" "id:13,phase:2,pass,log,capture,msg:'Card',sanitiseMatchedBytes:1/4"
SecRule ARGS:quiet "@streq yes" "id:14,phase:2,pass,nolog,auditlog,msg:'Quiet'"
SecRule ARGS:loud "@streq yes" "id:15,phase:2,pass,log,noauditlog,msg:'Loud'"
SecRule REQUEST_HEADERS:X-Ctl "@streq on" "id:16,phase:1,pass,nolog,ctl:auditEngine=On"
SecRule REQUEST_HEADERS:X-Ctl "@streq parts" "id:17,phase:1,pass,nolog,ctl:auditEngine=On,ctl:auditLogParts=-EK"
SecRule REQUEST_HEADERS:X-Ctl "@streq debug" "id:18,phase:1,pass,nolog,ctl:debugLogLevel=9"
SecRule ARGS:token "@rx ^opensesam" "id:19,phase:2,pass,log,msg:'Token',sanitiseMatched"
"#;

struct Running {
    process: Process,
    _upstream: Server,
    address: SocketAddr,
    admin: SocketAddr,
    folder: tempfile::TempDir,
}

impl Running {
    /// Starts with [`RULES`] and `more`, in which FOLDER stands for a folder of the test's own.
    fn start(more: &str, configuration: &str) -> Running {
        Running::start_in("crs", more, configuration)
    }

    /// The same in this mode.
    fn start_in(mode: &str, more: &str, configuration: &str) -> Running {
        let folder = tempfile::tempdir().unwrap();
        let reflector = Reflector::default();
        let server = Server::start("127.0.0.1:0", move |request| reflector.answer(request)).unwrap();
        let (address, admin, upstream) = (free_address().unwrap(), free_address().unwrap(), server.address());
        let more = more.replace("FOLDER", folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("rules.conf"), format!("{RULES}{more}\n")).unwrap();
        let config = folder.path().join("portcullis.toml");
        let document = format!(
            "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n{configuration}\n\
             [[listeners]]\naddress = \"{address}\"\n\
             [[sites]]\nname = \"site\"\nhosts = [\"*\"]\nupstream = \"app\"\nmode = \"{mode}\"\n\
             rules = {{ include = [\"rules.conf\"] }}\n\
             [upstreams.app]\nendpoints = [\"http://{upstream}\"]\n"
        );
        std::fs::write(&config, document).unwrap();
        let arguments: [OsString; 3] = ["run".into(), "--config".into(), config.into()];
        let program = PathBuf::from(env!("CARGO_BIN_EXE_portcullis"));
        let mut process = Process::start(&program, &arguments, &folder.path().join("output")).unwrap();
        process.wait_for(address, PATIENCE).unwrap();
        Running { process, _upstream: server, address, admin, folder }
    }

    fn send(&self, request: &str) -> u16 {
        exchange(self.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }

    fn get(&self, target: &str, header: &str) -> u16 {
        self.send(&format!(
            "GET {target} HTTP/1.1\r\nHost: shop.example:8080\r\n{header}Connection: close\r\n\r\n"
        ))
    }

    fn post(&self, target: &str, header: &str, body: &str) -> u16 {
        let length = body.len();
        self.send(&format!(
            "POST {target} HTTP/1.1\r\nHost: shop.example\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn metrics(&self) -> String {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = exchange(self.admin, None, request, PATIENCE).unwrap();
        String::from_utf8_lossy(answer.after_head()).into_owned()
    }

    fn signal(&self, what: Signal) {
        self.process.signal(what).unwrap();
    }

    /// Stops it; all records are written then.
    fn stop(self) -> tempfile::TempDir {
        assert!(self.process.stop(PATIENCE).unwrap().success());
        self.folder
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const MULTIPART: &str = "--b\r\nContent-Disposition: form-data; name=\"watch\"\r\n\r\nyes\r\n\
    --b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\ns3cret!\r\n\
    --b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"h.txt\"\r\nContent-Type: text/plain\r\n\r\nvm\n\r\n--b--\r\n";

/// Sends the requests that the cases below look for; in this order they are recorded.
fn traffic(running: &Running) {
    assert_eq!(running.get("/get?q=attack+one&x=%31", "User-Agent: tester \"x\"\r\n"), 403);
    let secret = format!("{FORM}Authorization: Basic abcdef\r\n");
    assert_eq!(running.post("/post?password=querypw", &secret, "watch=yes&password=s3cret&b=%C3%A4"), 200);
    let kind = "Content-Type: multipart/form-data; boundary=b\r\n";
    assert_eq!(running.post("/post", kind, MULTIPART), 200);
    let answer =
        r#"{"status":503,"headers":{"X-Secret":"hidden","Content-Type":"text/plain"},"body":"broken"}"#;
    assert_eq!(running.post("/reflect", "Content-Type: application/json\r\n", answer), 503);
    assert_eq!(running.get("/get?card=4111111111111111", ""), 200);
    assert_eq!(running.get("/get?quiet=yes", ""), 200);
    assert_eq!(running.get("/get?loud=yes", ""), 200); // not recorded
    assert_eq!(running.get("/get?nothing=1", ""), 200); // not recorded
    assert_eq!(running.get("/get?nothing=1", "X-Ctl: on\r\n"), 200);
    assert_eq!(running.get("/get?nothing=1", "X-Ctl: parts\r\n"), 200);
    let gone = r#"{"status":404,"body":"gone"}"#;
    assert_eq!(running.post("/reflect", "Content-Type: application/json\r\n", gone), 404); // not recorded
}

#[test]
fn serial_native() {
    let running = Running::start("SecAuditLog FOLDER/audit.log", "");
    traffic(&running);
    let folder = running.stop();
    let path = folder.path().join("audit.log");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777 & !0o640, 0);
    let text = read(&path);
    let records = natives(&text);
    let letters: Vec<String> = records.iter().map(|record| record.letters()).collect();
    assert_eq!(
        letters,
        ["ABFHKZ", "ABCFHKZ", "ABCIFHJKZ", "ABCFEHKZ", "ABFHKZ", "ABFHKZ", "ABFHKZ", "ABFHZ"]
    );

    let blocked = &records[0];
    let about: Vec<&str> = blocked.part('A').split(' ').collect();
    assert_eq!((about.len(), about[1], about[2].len(), about[3]), (7, "+0000]", 32, "127.0.0.1"));
    assert!(blocked.part('B').starts_with("GET /get?q=attack+one&x=%31 HTTP/1.1\nHost: shop.example:8080\n"));
    assert!(blocked.part('F').starts_with("HTTP/1.1 403 Forbidden\n"), "{}", blocked.part('F'));
    assert!(headers(blocked.part('F')).contains_key("Content-Length"));
    let rules = folder.path().join("rules.conf");
    let [message] = blocked.trailer("Message")[..] else {
        panic!("messages {:?}", blocked.trailer("Message"))
    };
    assert_eq!(
        message,
        format!(
            "Access denied with code 403 (phase 2). Pattern match \"attack\" at ARGS:q. [file \"{}\"] [line \"13\"] [id \"10\"] \
             [rev \"2\"] [msg \"Attack found\"] [data \"Matched attack in ARGS:q\"] [severity \"CRITICAL\"] [ver \"T/1.0\"] \
             [maturity \"3\"] [accuracy \"4\"] [tag \"attack-test\"]",
            rules.display()
        )
    );
    assert_eq!(blocked.trailer("Action"), ["Intercepted (phase 2)"]);
    assert_eq!(
        blocked.trailer("Producer"),
        [concat!("Portcullis/", env!("CARGO_PKG_VERSION"), "; TEST_RULES/1.0.")]
    );
    assert_eq!(blocked.trailer("Server"), ["Shop/2"]);
    assert_eq!(blocked.trailer("WebApp-Info"), ["\"shop\" \"-\" \"-\""]);
    assert_eq!(blocked.trailer("Sensor-Id"), ["\"sensor-7\""]);
    assert_eq!(blocked.trailer("Engine-Mode"), ["\"ENABLED\""]);
    assert!(blocked.trailer("Stopwatch")[0].ends_with(" (- - -)"));
    assert!(blocked.part('K').starts_with("SecRule ARGS \"@rx attack\" \"id:10,phase:2,deny,status:403,"));

    let form = &records[1];
    assert!(form.part('B').starts_with("POST /post?password=******* HTTP/1.1\n"), "{}", form.part('B'));
    assert_eq!(headers(form.part('B'))["Authorization"], "************");
    assert_eq!(form.part('C'), "watch=yes&password=******&b=%C3%A4");
    assert_eq!(form.trailer("Sanitised-Args"), ["\"password\"."]);
    assert_eq!(form.trailer("Sanitised-Request-Headers"), ["\"Authorization\"."]);
    assert!(form.trailer("Message")[0].starts_with("Warning. String match \"POST\" at REQUEST_METHOD."));
    assert_eq!(form.part('K').lines().count(), 5, "{}", form.part('K'));

    let multipart = &records[2];
    assert!(
        multipart.part('C').contains("\r\n\r\n*******\r\n--b") && !multipart.part('C').contains("s3cret")
    );
    assert_eq!(multipart.part('I'), "watch=yes&password=*******");
    assert_eq!(multipart.part('J'), "3,3,\"h.txt\",\"text/plain\"\nTotal,3\n");

    let broken = &records[3];
    assert!(broken.part('F').starts_with("HTTP/1.1 503 Service Unavailable\n"));
    assert_eq!(headers(broken.part('F'))["X-Secret"], "******");
    assert_eq!(broken.part('E'), "broken");

    assert!(records[4].part('B').starts_with("GET /get?card=4***********1111 HTTP/1.1\n"));
    assert!(records[5].trailer("Message")[0].starts_with("String match \"yes\" at ARGS:quiet. "));
    assert!(!text.contains("s3cret") && !text.contains("querypw") && !text.contains("4111111"));
    let events = read(&folder.path().join("events.jsonl"));
    assert!(!events.contains("4111111") && !events.contains("querypw"), "{events}");
}

#[test]
fn what_the_semantic_detector_found_is_recorded_as_a_rule_would_be() {
    let attack = "/get?id=1%27%20union%20select%20user,password%20from%20users--%20-&password=s3cret";
    let found = "Semantic detector found sqli at query:id. [file \"semantic\"] [line \"0\"] [id \"9000200\"] \
                 [msg \"SQL injection\"] [data \"sqli.";
    let native = {
        let running = Running::start_in("both", "SecAuditLog FOLDER/audit.log", "");
        assert_eq!(running.get(attack, ""), 403);
        assert_eq!(running.get("/get?id=1", ""), 200); // not recorded
        read(&running.stop().path().join("audit.log"))
    };
    let records = natives(&native);
    assert_eq!(records.len(), 1);
    let [message] = records[0].trailer("Message")[..] else { panic!("{:?}", records[0].part('H')) };
    assert!(message.starts_with(&format!("Access denied with code 403 (phase 1). {found}")), "{message}");
    assert!(message.ends_with("[severity \"CRITICAL\"] [tag \"attack-sqli\"]"), "{message}");
    assert_eq!(records[0].trailer("Action"), ["Intercepted (phase 1)"]);
    assert!(!native.contains("union select") && !records[0].part('H').contains("s3cret"), "{native}");

    let more = "SecAuditLogFormat JSON\nSecAuditLog FOLDER/audit.log\nSecRuleEngine DetectionOnly";
    let json = |more: &str| {
        let running = Running::start_in("both", more, "");
        assert_eq!(running.get(attack, ""), 200);
        serde_json::from_str::<Value>(&read(&running.stop().path().join("audit.log"))).unwrap()
    };
    let data = &json(more)["audit_data"];
    assert!(data["messages"][0].as_str().unwrap().starts_with(&format!("Warning. {found}")), "{data}");
    assert!(data.get("action").is_none(), "{data}");
    let record = json(&format!("{more}\nSecCompatibility ModSecurity3"));
    let details = &record["transaction"]["messages"][0]["details"];
    assert_eq!(
        (&details["ruleId"], &details["tags"][0]),
        (&"9000200".into(), &"attack-sqli".into()),
        "{record}"
    );
}

#[test]
fn sanitised_matches_leave_events_and_error_log() {
    let running = Running::start("SecAuditLog FOLDER/audit.log", "error_log = { file = \"error.log\" }");
    // Names that the built-in redaction knows nothing of.
    running.get("/get?token=opensesame", "");
    running.get("/get?card=4111111111111111&shown=4111", "");
    let folder = running.stop();
    for name in ["audit.log", "events.jsonl", "error.log"] {
        let text = read(&folder.path().join(name));
        assert!(text.contains("Card") && !text.contains("4111111"), "{name}: {text}");
        assert!(text.contains("Token") && !text.contains("opensesame"), "{name}: {text}");
    }
}

/// In whatever form and part, the values of secret names are in no record, and all else is; unless they are
/// to be shown, as ModSecurity shows them.
#[test]
fn secrets_are_in_no_record() {
    let rule = "SecRule ARGS|!ARGS:body|!ARGS:headers.Set-Cookie|REQUEST_HEADERS|REQUEST_COOKIES \
                \"@rx (?i)un[s]aid\" \"id:50,phase:2,pass,log,auditlog,\
                msg:'Found %{MATCHED_VAR}',logdata:'%{MATCHED_VAR_NAME}=%{MATCHED_VAR}'\"";
    for (form, configuration, shown) in [
        ("Native", "", false),
        ("JSON", "", false),
        ("Native", "audit_log = { secrets = \"hidden\" }", false),
        ("Native", "audit_log = { secrets = \"shown\" }", true),
    ] {
        let more = format!(
            "SecAuditEngine On\nSecAuditLog FOLDER/audit.log\nSecAuditLogFormat {form}\n{rule}\n\
             SecAction \"id:51,phase:1,pass,nolog,setsid:%{{REQUEST_COOKIES.PHPSESSID}}\""
        );
        let running = Running::start(&more, configuration);
        let head = "Authorization: Bearer Unsaid2\r\nCookie: seen=1; PHPSESSID=Unsaid3\r\n\
                    Referer: http://bob:Unsaid4@host.example/?api_key=Unsaid5&seen=2\r\nX-Api-Key: Unsaid6\r\n";
        let json = "Content-Type: application/json\r\n";
        let part = MULTIPART.replace("s3cret!", "Unsaid7");
        // The request that has the application answer with secrets spells them in another way.
        let answer = r#"{"status":200,"headers":{"Set-Cookie":"id=\u0055nsaid8","Content-Type":"text/plain"},
            "body":"{\"access_token\": \"\u0055nsaid9\", \"seen\": 3}"}"#;
        assert_eq!(running.get("/get?x=4&access_token=Unsaid1&y=5", head), 200);
        assert_eq!(running.post("/post", FORM, "x=6&client_secret=Unsaid1&y=7"), 200);
        assert_eq!(running.post("/post", json, "{\"x\": 8, \"api_key\": \"Unsaid1\", \"y\": 9}"), 200);
        assert_eq!(running.post("/post", "Content-Type: multipart/form-data; boundary=b\r\n", &part), 200);
        assert_eq!(running.post("/reflect", json, answer), 200);
        let text = read(&running.stop().path().join("audit.log"));
        assert_eq!(text.to_lowercase().contains("unsaid"), shown, "{form} {configuration}:\n{text}");
        for seen in ["seen=1", "seen=2", "x=4", "y=5", "x=6&", "&y=7", "watch"] {
            assert!(text.contains(seen), "no {seen} in {form} {configuration}:\n{text}");
        }
    }
}

#[test]
fn json_has_the_names_of_version_3_where_its_reading_is_chosen() {
    let more = "SecCompatibility ModSecurity3\nSecAuditLogFormat JSON\nSecAuditLog FOLDER/audit.json";
    let running = Running::start(more, "");
    assert_eq!(running.get("/get?q=attack+one&x=%31", ""), 403);
    let folder = running.stop();
    let record: Value = serde_json::from_str(&read(&folder.path().join("audit.json"))).unwrap();
    let transaction = &record["transaction"];
    assert_eq!(transaction["client_ip"], "127.0.0.1");
    assert_eq!(transaction["request"]["uri"], "/get?q=attack+one&x=%31");
    assert_eq!(transaction["response"]["http_code"], 403);
    assert_eq!(transaction["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn serial_json() {
    let more = "SecAuditLogFormat JSON\nSecAuditLog FOLDER/audit.json";
    let running = Running::start(more, "");
    traffic(&running);
    let folder = running.stop();
    let text = read(&folder.path().join("audit.json"));
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 8);
    let blocked = &records[0];
    assert_eq!(blocked["transaction"]["remote_address"], "127.0.0.1");
    assert!(blocked["transaction"]["local_port"].is_u64() && blocked["transaction"]["time"].is_string());
    assert_eq!(blocked["request"]["request_line"], "GET /get?q=attack+one&x=%31 HTTP/1.1");
    assert_eq!(blocked["request"]["headers"]["User-Agent"], "tester \"x\"");
    assert_eq!(blocked["response"]["protocol"], "HTTP/1.1");
    assert_eq!(blocked["response"]["status"], 403);
    let data = &blocked["audit_data"];
    assert!(
        data["messages"][0]
            .as_str()
            .unwrap()
            .starts_with("Access denied with code 403 (phase 2). Pattern match")
    );
    assert_eq!(data["action"]["intercepted"], true);
    assert_eq!(data["action"]["phase"], 2);
    assert_eq!(data["action"]["message"], "Pattern match \"attack\" at ARGS:q.");
    assert_eq!(data["producer"][1], "TEST_RULES/1.0");
    assert_eq!((&data["sensor_id"], &data["engine_mode"]), (&"sensor-7".into(), &"ENABLED".into()));
    let rule = &blocked["matched_rules"][0]["rules"][0];
    assert_eq!((&rule["actionset"]["id"], &rule["actionset"]["severity"]), (&"10".into(), &2.into()));
    assert_eq!((&rule["operator"]["operator"], &rule["operator"]["target"]), (&"rx".into(), &"ARGS".into()));
    assert_eq!(records[1]["request"]["body"][0], "watch=yes&password=******&b=%C3%A4");
    assert_eq!(records[1]["audit_data"]["sanitized"]["request_headers"][0], "Authorization");
    let chain = &records[1]["matched_rules"][0];
    assert_eq!((&chain["chain"], &chain["full_chain_match"]), (&true.into(), &true.into()));
    assert_eq!(chain["rules"][1]["operator"]["target"], "REQUEST_METHOD");
    assert_eq!(records[2]["request"]["fake_body"], "watch=yes&password=*******");
    assert_eq!(records[2]["uploads"]["info"][0]["file_name"], "h.txt");
    assert_eq!(records[2]["uploads"]["total"], 3);
    assert_eq!(records[3]["response"]["body"], "broken");
    assert!(records[7].get("matched_rules").is_none());
}

#[test]
fn concurrent_records_and_their_index() {
    let more = "SecAuditLogType Concurrent\nSecAuditLog FOLDER/index.log\nSecAuditLog2 FOLDER/index2.log\n\
                SecAuditLogStorageDir FOLDER/store\nSecAuditLogDirMode 0700\nSecAuditLogFileMode 0600";
    let running = Running::start(more, "[audit_log]\nfiles = 5");
    traffic(&running);
    let metrics = {
        until(|| running.metrics().contains("portcullis_audit_written_total{log=\"audit\"} 8"));
        running.metrics()
    };
    let folder = running.stop();
    let index = read(&folder.path().join("index.log"));
    assert_eq!(index, read(&folder.path().join("index2.log")));
    let lines: Vec<_> = index.lines().map(index_line).collect();
    assert_eq!(lines.len(), 8);
    assert_eq!((&*lines[0].host, &*lines[0].client, &*lines[0].status), ("shop.example", "127.0.0.1", "403"));
    assert_eq!(lines[0].request_line, "GET /get?q=attack+one&x=%31 HTTP/1.1");
    // The bound of five took the oldest.
    assert!(!metrics.contains("portcullis_audit_files_removed_total 0"), "{metrics}");
    let present = |line: &&parse::IndexLine| folder.path().join("store").join(&line.file[1..]).exists();
    let present: Vec<_> = lines.iter().filter(present).collect();
    assert!((2..=5).contains(&present.len()), "{} files", present.len());
    for line in present {
        let path = folder.path().join("store").join(&line.file[1..]);
        let text = read(&path);
        assert_eq!(text.len(), line.size);
        let sum = Command::new("md5sum").arg(&path).output().unwrap();
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&line.md5));
        let (record, after) = native(&text);
        assert!(after.is_empty() && record.part('A').contains(&line.id));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        // /20260921/20260921-1413/20260921-141320-ID
        let parts: Vec<&str> = line.file.split('/').collect();
        assert!(
            parts[2].starts_with(parts[1]) && parts[3].starts_with(parts[2]) && parts[3].ends_with(&line.id)
        );
    }
}

#[test]
fn logs_are_opened_again_after_a_signal() {
    let running = Running::start("SecAuditLog FOLDER/audit.log", "");
    let path = running.file("audit.log");
    for (signal, moved) in [(Signal::USR1, "first"), (Signal::HUP, "second")] {
        running.get("/get?q=attack", "");
        until(|| read(&path).contains("-Z--"));
        std::fs::rename(&path, running.file(moved)).unwrap();
        running.signal(signal);
        until(|| path.exists());
    }
    running.get("/get?q=attack", "");
    let folder = running.stop();
    for name in ["first", "second", "audit.log"] {
        assert_eq!(natives(&read(&folder.path().join(name))).len(), 1, "{name}");
    }
}

#[test]
fn a_full_disk_costs_records_and_no_request() {
    let running = Running::start("SecAuditLog /dev/full", "");
    for _ in 0..10 {
        assert_eq!(running.get("/get?q=attack", ""), 403);
    }
    let dropped = "portcullis_audit_dropped_total{log=\"audit\",reason=\"disk_full\"} 10";
    until(|| running.metrics().contains(dropped));
    let folder = running.stop();
    let output = read(&folder.path().join("output"));
    assert_eq!(output.matches("the audit log fails").count(), 1, "{output}");
}

#[test]
fn the_debug_log_tells_as_much_as_its_level() {
    let running = Running::start("SecDebugLog FOLDER/debug.log\nSecDebugLogLevel 3", "");
    running.get("/get?watch=no&password=hunter2", "");
    running.get("/get?q=attack", "");
    let path = running.file("debug.log");
    until(|| path.exists() && read(&path).contains("Interrupted"));
    let text = read(&path);
    assert!(text.lines().all(|line| line.contains("[1] ") || line.contains("[2] ")), "{text}");
    assert!(
        text.contains("][2] Access denied with code 403")
            && text.contains("Interrupted by rule 10 in phase 2")
    );
    running.get("/get?watch=no&password=hunter2", "X-Ctl: debug\r\n");
    let folder = running.stop();
    let text = read(&folder.path().join("debug.log"));
    assert!(
        text.contains("[9] ARGS_GET:watch = no") && text.contains("[4] Rule 18 matched in phase 1"),
        "{text}"
    );
    assert!(text.contains("Audit record not written") && !text.contains("hunter2"), "{text}");
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Where ModSecurity 2 loads it there is a warning, which `--strict` refuses.
    for (line, reason, is_warning) in [
        ("SecAuditLogType HTTPS", "not posted", false),
        ("SecAuditLogFormat OCSF", "OCSF", false),
        ("SecAuditLog \"|/usr/bin/mlogc /etc/mlogc.conf\"", "this log is not written", true),
        ("SecAuditLogRelevantStatus \"(\"", "SecAuditLogRelevantStatus", false),
        ("SecAction \"id:1,sanitiseMatchedBytes:x\"", "1/4", true),
    ] {
        let rules = folder.path().join("rules.conf");
        std::fs::write(&rules, format!("{line}\n")).unwrap();
        for arguments in [&["check"][..], &["check", "--strict"]] {
            let program = env!("CARGO_BIN_EXE_portcullis");
            let output = Command::new(program).args(arguments).arg(&rules).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned()
                + &String::from_utf8_lossy(&output.stdout);
            let loads = is_warning && arguments.len() == 1;
            assert!(output.status.success() == loads && text.contains(reason), "{line}: {text}");
        }
    }
}

#[test]
fn a_log_that_cannot_be_opened_keeps_the_policy_from_loading() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.conf");
    std::fs::write(&rules, "SecAuditEngine On\nSecAuditLog /nonexistent/audit.log\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            "http://127.0.0.1:1",
            "--mode",
            "crs",
            "--rules",
        ])
        .arg(&rules)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("/nonexistent/audit.log"), "{text}");
}
