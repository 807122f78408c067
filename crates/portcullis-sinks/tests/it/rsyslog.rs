//! Syslog to rsyslogd: TCP, TLS, UDP and a Unix socket. What it wrote is what was sent, one record for each
//! event.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::*;

/// A running rsyslogd with a folder of its own.
struct Rsyslog {
    child: Child,
    folder: tempfile::TempDir,
}

impl Rsyslog {
    fn start(program: &Path) -> Rsyslog {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let names = vec!["localhost".to_owned()];
        let issued = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(place("cert.pem"), issued.cert.pem()).unwrap();
        fs::write(place("key.pem"), issued.signing_key.serialize_pem()).unwrap();
        let config = format!(
            r#"global(workDirectory="{folder}" maxMessageSize="64k"
  defaultNetstreamDriverCAFile="{folder}/cert.pem" defaultNetstreamDriverCertFile="{folder}/cert.pem"
  defaultNetstreamDriverKeyFile="{folder}/key.pem")
module(load="imtcp")
module(load="imudp")
module(load="imuxsock" sysSock.use="off")
input(type="imtcp" port="0" address="127.0.0.1" listenPortFileName="{folder}/tcp.port")
input(type="imtcp" port="0" address="127.0.0.1" listenPortFileName="{folder}/tls.port" streamDriver.name="ossl"
  streamDriver.mode="1" streamDriver.authMode="anon")
input(type="imuxsock" socket="{folder}/log.sock" useSpecialParser="off")
template(name="fields" type="list") {{
  constant(value="{{") property(name="msg" outname="msg" format="jsonf") constant(value=",")
  property(name="structured-data" outname="sd" format="jsonf") constant(value=",")
  property(name="syslogseverity" outname="severity" format="jsonf") constant(value=",")
  property(name="syslogfacility" outname="facility" format="jsonf") constant(value=",")
  property(name="app-name" outname="app" format="jsonf") constant(value=",")
  property(name="msgid" outname="msgid" format="jsonf") constant(value="}}\n") }}
action(type="omfile" file="{folder}/out" template="fields" flushInterval="1" asyncWriting="off")
"#,
            folder = folder.path().display()
        );
        fs::write(place("rsyslog.conf"), config).unwrap();
        let child = Command::new(program)
            .args(["-n", "-f", &place("rsyslog.conf"), "-i", &place("pid")])
            .stdout(Stdio::null())
            .stderr(fs::File::create(place("stderr")).unwrap())
            .spawn()
            .unwrap();
        let rsyslog = Rsyslog { child, folder };
        for name in ["tcp.port", "tls.port", "log.sock"] {
            eventually(&format!("rsyslogd makes {name}: {}", rsyslog.stderr()), || {
                let path = rsyslog.path(name);
                path.exists()
                    .then_some(())
                    .filter(|()| name == "log.sock" || fs::metadata(path).unwrap().len() > 0)
            });
        }
        rsyslog
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    fn port(&self, name: &str) -> u16 {
        fs::read_to_string(self.path(name)).unwrap().trim().parse().unwrap()
    }

    /// Its records, once there are so many.
    fn records(&self, count: usize) -> Vec<Value> {
        let lines = eventually(&format!("{count} records: {}", self.stderr()), || {
            let text = fs::read_to_string(self.path("out")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (lines.len() >= count && text.ends_with('\n')).then_some(lines)
        });
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sink(address: &str, more: &str) -> String {
    format!("[[events.sinks]]\nkind = \"syslog\"\naddress = \"{address}\"\n{more}\n")
}

fn check_record(record: &Value, id: &str) {
    assert_eq!((&record["app"], &record["msgid"]), (&"portcullis".into(), &"deny".into()), "{record:#}");
    assert_eq!((&record["severity"], &record["facility"]), (&"4".into(), &"16".into()));
    let data = record["sd"].as_str().unwrap();
    assert!(
        data.starts_with(&format!("[portcullis@32473 request_id=\"{id}\" site=\"shop\" route=\"api\"")),
        "{data}"
    );
    for part in [
        " client=\"192.0.2.7\" verdict=\"deny\" status=\"403\" class=\"sqli\" kind=\"sqli.union\"",
        " location=\"query:q\"",
        " evidence=\"1' union select a|b=c\\\\d,\\\"e\\\"\\]\\\\x0d\\\\x0a<134>1 CEF:0|x} -- é\"]",
    ] {
        assert!(data.contains(part), "{part} in {data}");
    }
}

#[test]
fn json_over_each_transport() {
    let Some(program) = need("rsyslogd", "rsyslog rsyslog-openssl") else { return };
    let rsyslog = Rsyslog::start(&program);
    let (tcp, tls) = (rsyslog.port("tcp.port"), rsyslog.port("tls.port"));
    let ca = rsyslog.path("cert.pem");
    let tables = [
        sink(&format!("tcp://127.0.0.1:{tcp}"), ""),
        sink(&format!("tls://localhost:{tls}"), &format!("ca = \"{}\"", ca.display())),
        sink(&format!("unix:{}", rsyslog.path("log.sock").display()), ""),
        sink(&format!("tcp://127.0.0.1:{tcp}"), "framing = \"newline\""),
    ];
    let mut sinks = start(&tables.concat());
    for number in 0..50 {
        sinks.submit(event(&format!("r{number}")));
    }
    assert_eq!(sinks.end(PATIENCE), 0, "{:?}", sinks.said());
    let records = rsyslog.records(200);
    assert_eq!(records.len(), 200);
    for (number, name) in ["syslog", "syslog-2", "syslog-3", "syslog-4"].iter().enumerate() {
        assert_eq!(sinks.sent(name), 50, "{number}");
    }
    let mut seen = std::collections::BTreeMap::new();
    for record in &records {
        let message: Value = serde_json::from_str(record["msg"].as_str().unwrap().trim_start()).unwrap();
        let id = message["request_id"].as_str().unwrap();
        check_record(record, id);
        assert_eq!(message["findings"][0]["evidence"], EVIDENCE);
        *seen.entry(id.to_owned()).or_insert(0) += 1;
    }
    assert_eq!((seen.len(), seen.values().all(|count| *count == 4)), (50, true), "{seen:?}");
}

#[test]
fn cef_and_ocsf_and_a_filter() {
    let Some(program) = need("rsyslogd", "rsyslog rsyslog-openssl") else { return };
    let rsyslog = Rsyslog::start(&program);
    let address = format!("tcp://127.0.0.1:{}", rsyslog.port("tcp.port"));
    let tables = sink(&address, "format = \"cef\"\nfilter = \"id = r1 or text ~ nowhere\"")
        + &sink(&address, "format = \"ocsf\"\nfilter = \"id = r2\"");
    let mut sinks = start(&tables);
    for id in ["r0", "r1", "r2", "r3"] {
        sinks.submit(event(id));
    }
    assert_eq!(sinks.end(PATIENCE), 0);
    let records = rsyslog.records(2);
    assert_eq!(records.len(), 2);
    for record in records {
        let message = record["msg"].as_str().unwrap().trim_start();
        if message.starts_with("CEF:") {
            check_record(&record, "r1");
            assert!(message.starts_with("CEF:0|Portcullis|Portcullis WAF|"), "{message}");
            assert!(message.contains(r"cs2=1' union select a|b\=c\\d,"), "{message}");
            assert!(message.contains("cs3=query:q cs3Label=location"), "{message}");
        } else {
            check_record(&record, "r2");
            let message: Value = serde_json::from_str(message).unwrap();
            assert_eq!((&message["class_uid"], &message["metadata"]["uid"]), (&2004.into(), &"r2".into()));
            assert_eq!(message["evidences"][0]["data"]["evidence"], EVIDENCE);
        }
    }
}

/// Events that rsyslog had not got while it was away are there when it is back, each once.
#[test]
fn a_receiver_that_comes_back_gets_what_waited() {
    let Some(program) = need("rsyslogd", "rsyslog rsyslog-openssl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("log.sock");
    let mut sinks = start(&sink(&format!("unix:{}", link.display()), ""));
    for number in 0..100 {
        sinks.submit(event(&format!("r{number}")));
    }
    eventually("a failed attempt", || {
        (sinks.metric("portcullis_sink_failures_total{sink=\"syslog\"}") > 0).then_some(())
    });
    assert_eq!((sinks.sent("syslog"), sinks.metric("portcullis_sink_up{sink=\"syslog\"}")), (0, 0));
    let rsyslog = Rsyslog::start(&program);
    std::os::unix::fs::symlink(rsyslog.path("log.sock"), &link).unwrap();
    let records = rsyslog.records(100);
    assert_eq!(sinks.end(PATIENCE), 0);
    assert_eq!((records.len(), sinks.sent("syslog")), (100, 100));
    assert_eq!(sinks.metric("portcullis_sink_up{sink=\"syslog\"}"), 1);
    let said = sinks.said();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("sink syslog: unix:/") && said[1].ends_with("events are taken again"),
        "{said:?}"
    );
}
