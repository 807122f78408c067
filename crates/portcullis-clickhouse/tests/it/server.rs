//! Debian's ClickHouse on loopback, with little memory, ended with the test; and events in it, by the sink.
//! The tests of the program use it, too.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_clickhouse::Database;
use portcullis_config::{Config, Format};
use portcullis_event::Event;
use portcullis_metrics::Registry;
use portcullis_sinks::Sinks;

const PATIENCE: Duration = Duration::from_secs(60);

/// `waf` writes, `console` reads.
const USERS: &str = "<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage><max_threads>1</max_threads></default>\
<reading><readonly>2</readonly><max_threads>1</max_threads><timeout_overflow_mode>break</timeout_overflow_mode></reading></profiles>\
<quotas><default></default></quotas><users>\
<waf><password>hunter2</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></waf>\
<console><password>r'e:ader</password><networks><ip>::/0</ip></networks><profile>reading</profile><quota>default</quota></console>\
<default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default>\
</users></yandex>";

pub struct ClickHouse {
    /// None: it is another one's.
    child: Option<Child>,
    folder: tempfile::TempDir,
    pub port: u16,
}

/// A server, or none where there is no program: then the test is left out, and fails in CI. One that listens
/// at `PORTCULLIS_CLICKHOUSE_PORT` is used in its place, by one test at a time: its table is dropped.
pub fn start() -> Option<ClickHouse> {
    if let Ok(port) = std::env::var("PORTCULLIS_CLICKHOUSE_PORT") {
        let (folder, port) = (tempfile::tempdir().unwrap(), port.parse().unwrap());
        let server = ClickHouse { child: None, folder, port };
        server.ask("DROP TABLE IF EXISTS default.portcullis_events").unwrap();
        return Some(server);
    }
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
    let mut programs = folders.iter().map(|folder| Path::new(folder).join("clickhouse-server"));
    let Some(program) = programs.find(|path| path.exists()) else {
        let why = "clickhouse-server is needed (apt-get install clickhouse-server)";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("left out: {why}");
        return None;
    };
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
    let server = ClickHouse { child: Some(child), folder, port: ports[0] };
    let begin = Instant::now();
    while server.ask("SELECT 1").is_none() {
        assert!(begin.elapsed() < PATIENCE, "clickhouse-server answers: {}", server.errors());
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(server)
}

impl ClickHouse {
    fn errors(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("stderr") + &read("errors")
    }

    /// The answer to a statement of the user `default`.
    pub fn ask(&self, statement: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let length = statement.len();
        write!(stream, "POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{statement}").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// Writes events by a sink, which makes the table.
    pub fn write(&self, events: &[Event]) {
        let sink = format!(
            "[[events.sinks]]\nkind = \"clickhouse\"\nurl = \"http://127.0.0.1:{}\"\nuser = \"waf\"\n\
             password = \"hunter2\"\nbatch_time = \"50ms\"\ncreate = true\nqueue = 1000000\n",
            self.port
        );
        let config = config(&sink, self.folder.path());
        let registry = Registry::new();
        let say = |line: &str| panic!("{line}");
        let sinks = Sinks::start(&config.event_sinks, &registry, say).unwrap();
        events.iter().for_each(|event| sinks.sender().submit(&Arc::new(event.clone())));
        assert_eq!(sinks.shutdown(PATIENCE), 0, "{}", self.errors());
        let sent = format!("portcullis_sink_events_sent_total{{sink=\"clickhouse\"}} {}", events.len());
        assert!(registry.render().contains(&sent), "{}", registry.render());
    }

    /// The table as the user `console` reads it.
    pub fn database(&self, registry: &Registry) -> Database {
        let user = format!(
            "user = \"console\"\npassword_file = \"{}\"\ntimeout = \"60s\"\n",
            self.password_file().display()
        );
        let config = config(&read_from(self.port, &user), self.folder.path());
        Database::new(&config.event_database.unwrap(), registry).unwrap()
    }

    /// The password of the user `console`.
    pub fn password_file(&self) -> PathBuf {
        let file = self.folder.path().join("password");
        fs::write(&file, "r'e:ader\n").unwrap();
        file
    }

    /// Ends it.
    pub fn end(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn process(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        self.end();
    }
}

/// The table of a document.
pub fn read_from(port: u16, more: &str) -> String {
    format!("[events.read_from]\nkind = \"clickhouse\"\nurl = \"http://127.0.0.1:{port}\"\n{more}")
}

/// The settings of a document with these tables.
pub fn config(tables: &str, folder: &Path) -> Config {
    let document = format!(
        "listeners = [{{ address = \"127.0.0.1:0\" }}]\nsites = [{{ name = \"s\", hosts = [\"*\"], upstream = \"u\" }}]\n\
         upstreams = {{ u = {{ endpoints = [\"http://127.0.0.1:1\"] }} }}\n{tables}"
    );
    let file: PathBuf = folder.join("test.toml");
    Config::parse(&document, Format::Toml, file.to_str().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// The questions that ended so.
pub fn asked(registry: &Registry, result: &str) -> u64 {
    let name = format!("portcullis_event_database_queries_total{{result=\"{result}\"}} ");
    let text = registry.render();
    text.lines()
        .find_map(|line| line.strip_prefix(&name))
        .unwrap_or_else(|| panic!("{name}: {text}"))
        .parse()
        .unwrap()
}
