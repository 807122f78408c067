//! ClickHouse: Debian's server, and the SQL of today's in `chdb`.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::*;

struct ClickHouse {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

const USERS: &str = "<yandex><profiles><default></default></profiles><quotas><default></default></quotas>\
<users><waf><password>hunter2</password><networks><ip>::/0</ip></networks><profile>default</profile>\
<quota>default</quota></waf><default><password></password><networks><ip>::/0</ip></networks>\
<profile>default</profile><quota>default</quota></default></users></yandex>";

impl ClickHouse {
    fn start(program: &Path) -> ClickHouse {
        let folder = tempfile::tempdir().unwrap();
        let ports: Vec<u16> = {
            let sockets: Vec<_> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
            sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
        };
        let place = folder.path().display();
        let config = format!(
            "<yandex><logger><level>warning</level><log>{place}/log</log><errorlog>{place}/errors</errorlog></logger>\
             <http_port>{}</http_port><tcp_port>{}</tcp_port><listen_host>127.0.0.1</listen_host>\
             <path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path><users_config>users.xml</users_config>\
             <default_profile>default</default_profile><default_database>default</default_database>\
             <mark_cache_size>67108864</mark_cache_size></yandex>",
            ports[0], ports[1]
        );
        fs::write(folder.path().join("config.xml"), config).unwrap();
        fs::write(folder.path().join("users.xml"), USERS).unwrap();
        let child = Command::new(program)
            .arg(format!("--config-file={place}/config.xml"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let server = ClickHouse { child, folder, port: ports[0] };
        eventually(&format!("clickhouse-server answers: {}", server.errors()), || server.ask("SELECT 1"));
        server
    }

    fn errors(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("stderr") + &read("errors")
    }

    fn ask(&self, statement: &str) -> Option<String> {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let length = statement.len();
        write!(stream, "POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{statement}").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.split_once("\r\n\r\n")?.1.to_owned())
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each column, with hostile values, and a network as a range.
const QUERY: &str = "SELECT id, time_ms, toUnixTimestamp(time), site, verdict, status, class, rule, client, country, method, \
path, user_agent, finding, location, evidence FROM default.portcullis_events WHERE id = 'r7' \
AND client_hex BETWEEN '00000000000000000000ffffc0000200' AND '00000000000000000000ffffc00002ff' FORMAT JSONCompactEachRow";

fn check_row(row: &str) {
    let row: serde_json::Value =
        serde_json::from_str(row.trim()).unwrap_or_else(|error| panic!("{error}: {row}"));
    let row: Vec<String> =
        row.as_array().unwrap().iter().map(|value| value.to_string().replace('"', "")).collect();
    assert_eq!(
        row[..9],
        ["r7", "1790000000123", "1790000000", "shop", "deny", "403", "[sqli]", "[942100]", "192.0.2.7"]
    );
    assert_eq!(row[9..12], ["DE", "POST", "/login"]);
    assert_eq!(row[13], "sqli.union UNION reads another table");
    assert_eq!(row[14], "query:q");
    let evidence = serde_json::to_string(EVIDENCE).unwrap().replace('"', "");
    assert_eq!(row[15].replace("\\/", "/"), evidence);
}

fn sink(port: u16, more: &str) -> String {
    format!(
        "[[events.sinks]]\nkind = \"clickhouse\"\nurl = \"http://127.0.0.1:{port}\"\nbatch_time = \"50ms\"\ncreate = true\n{more}\n"
    )
}

#[test]
fn rows_in_the_server_of_debian() {
    let Some(program) = need("clickhouse-server", "clickhouse-server") else { return };
    let server = ClickHouse::start(&program);
    let mut sinks = start(&sink(server.port, "user = \"waf\"\npassword = \"hunter2\""));
    eventually("the table", || {
        server.ask("EXISTS TABLE default.portcullis_events").filter(|text| text.trim() == "1")
    });
    (0..500).for_each(|number| sinks.submit(event(&format!("r{number}"))));
    assert_eq!(
        (sinks.end(PATIENCE), sinks.sent("clickhouse")),
        (0, 500),
        "{:?} {}",
        sinks.said(),
        server.errors()
    );
    let count = server.ask("SELECT uniqExact(id), count() FROM default.portcullis_events").unwrap();
    assert_eq!(count.trim(), "500\t500");
    // 18.16 has no JSONCompactEachRow.
    let row = server.ask(&QUERY.replace("JSONCompactEachRow", "JSONCompact")).unwrap();
    let whole: serde_json::Value =
        serde_json::from_str(&row).unwrap_or_else(|error| panic!("{error}: {row}"));
    check_row(&whole["data"][0].to_string());
    let event =
        server.ask("SELECT event FROM default.portcullis_events WHERE id = 'r7' FORMAT JSON").unwrap();
    let event: serde_json::Value = serde_json::from_str(&event).unwrap();
    let event: serde_json::Value = serde_json::from_str(event["data"][0]["event"].as_str().unwrap()).unwrap();
    assert_eq!(event["findings"][0]["evidence"], EVIDENCE);
    // A batch that came twice is the same rows.
    let mut again = start(&sink(server.port, ""));
    again.submit(crate::common::event("r7"));
    assert_eq!(again.end(PATIENCE), 0);
    let count = server.ask("SELECT count() FROM default.portcullis_events FINAL").unwrap();
    assert_eq!(count.trim(), "500");
}

/// A wrong password is tried again, as one may be set meanwhile, and told.
#[test]
fn a_wrong_password_costs_events_that_are_counted() {
    let Some(program) = need("clickhouse-server", "clickhouse-server") else { return };
    let server = ClickHouse::start(&program);
    let mut sinks =
        start(&sink(server.port, "user = \"waf\"\npassword = \"wrong-secret\"\nretry = \"300ms\""));
    sinks.submit(event("r1"));
    eventually("it gives up", || (sinks.dropped("clickhouse", "retry") == 1).then_some(()));
    sinks.end(PATIENCE);
    let said = sinks.said().join("\n");
    assert!(said.contains("it answers") && !said.contains("wrong-secret"), "{said}");
}

#[test]
fn rows_in_the_sql_of_today() {
    let Some(name) = python_with_chdb() else { return };
    let server = HttpServer::start(|_, _, stream| ok(stream));
    let mut sinks = start(&sink(server.port, ""));
    server.wait(1);
    (0..20).for_each(|number| sinks.submit(event(&format!("r{number}"))));
    assert_eq!(sinks.end(PATIENCE), 0);
    let requests = server.requests();
    assert_eq!(
        String::from_utf8(requests[0].body.clone()).unwrap(),
        portcullis_sinks::table_definition("default", "portcullis_events")
    );
    let rows: Vec<u8> = requests[1..].iter().flat_map(|request| request.body.clone()).collect();
    assert!(requests[1].head.contains("INSERT%20INTO%20default.portcullis_events%20FORMAT%20JSONEachRow"));
    let script = format!(
        "import sys, chdb.session, tempfile\nsession = chdb.session.Session(tempfile.mkdtemp())\n\
         ddl, rows = sys.stdin.buffer.read().decode().split('\\x00')\nsession.query(ddl)\n\
         session.query('INSERT INTO default.portcullis_events FORMAT JSONEachRow ' + rows)\n\
         print(session.query(\"\"\"{QUERY}\"\"\").bytes().decode())\n"
    );
    let input = [&requests[0].body[..], &[0], &rows].concat();
    check_row(&python(&name, &script, &input));
}

#[test]
fn the_manual_has_the_statement() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sinks.md");
    let manual = fs::read_to_string(manual).unwrap();
    assert!(manual.contains(&portcullis_sinks::table_definition("default", "portcullis_events")));
}
