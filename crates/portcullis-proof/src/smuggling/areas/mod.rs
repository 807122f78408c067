//! Real servers with three areas: `/static/` answers 410, `/admin` 451, all else 409. Which of them a server
//! takes a path to is so to be seen from its status.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::process::Process;
use portcullis_testkit::proxy::{Folder, free_address};

use super::servers::{Stopping, find, on_path, trouble};

/// Names of the servers that are tried, where they are installed.
const NAMES: [&str; 15] = [
    "nginx",
    "nginx-unmerged",
    "apache",
    "apache-encoded",
    "apache-nodecode",
    "haproxy",
    "node-url",
    "node-file",
    "go-mux",
    "python-files",
    "gunicorn",
    "php",
    "php-parse-url",
    "tomcat",
    "tomcat-lenient",
];

/// A running server.
pub(super) struct AreaServer {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    _process: Stopping,
}

/// Starts all that are installed; the names of those that are not.
pub(super) fn start(folder: &Folder) -> Result<(Vec<AreaServer>, Vec<&'static str>), TestkitError> {
    let (mut servers, mut missing) = (Vec::new(), Vec::new());
    for name in NAMES {
        match one(name, folder)? {
            Some(server) => servers.push(server),
            None => missing.push(name),
        }
    }
    Ok((servers, missing))
}

/// A program with its arguments; none if it is not installed.
type Launch = Option<(PathBuf, Vec<OsString>)>;

fn one(name: &'static str, folder: &Folder) -> Result<Option<AreaServer>, TestkitError> {
    let address = free_address()?;
    let home = folder.file(&format!("areas-{name}"));
    std::fs::create_dir_all(&home).map_err(|error| trouble(name, &error))?;
    let Some((program, arguments)) = launch(name, &home, address)? else { return Ok(None) };
    let mut process = Process::start(&program, &arguments, &home.join("output.txt"))?;
    process.wait_for(address, Duration::from_secs(60))?;
    Ok(Some(AreaServer { name, address, _process: Stopping(process) }))
}

fn launch(name: &'static str, home: &Path, address: SocketAddr) -> Result<Launch, TestkitError> {
    let write = |file: &str, text: &str| {
        let path = home.join(file);
        let text = text.replace("PORT", &address.port().to_string());
        std::fs::write(&path, text).map(|()| path).map_err(|error| trouble(name, &error))
    };
    let with = |program: Option<PathBuf>, arguments: &[&dyn AsRef<std::ffi::OsStr>]| {
        program.map(|program| (program, arguments.iter().map(|one| one.as_ref().to_owned()).collect()))
    };
    Ok(match name {
        "nginx" | "nginx-unmerged" => {
            let merge = if name == "nginx" { "on" } else { "off" };
            let path = write("nginx.conf", &nginx(home, address, merge))?;
            with(find(&["/usr/sbin/nginx"]), &[&"-e", &home.join("error.log"), &"-c", &path])
        }
        "apache" | "apache-encoded" | "apache-nodecode" => {
            let slashes = match name {
                "apache" => "Off",
                "apache-encoded" => "On",
                _ => "NoDecode",
            };
            let path = write("apache.conf", &apache(home, address, slashes))?;
            with(find(&["/usr/sbin/apache2"]), &[&"-DFOREGROUND", &"-f", &path])
        }
        "haproxy" => {
            let path = write("haproxy.cfg", &haproxy(address))?;
            with(find(&["/usr/sbin/haproxy"]), &[&"-db", &"-f", &path])
        }
        "node-url" | "node-file" => {
            let path = write("url.js", include_str!("url.js"))?;
            with(on_path("node"), &[&path, &name.trim_start_matches("node-")])
        }
        "go-mux" => {
            let (path, built) = (write("mux.go", include_str!("mux.go.txt"))?, home.join("server"));
            let Some(go) = on_path("go") else { return Ok(None) };
            compile(name, Command::new(go).arg("build").arg("-o").arg(&built).arg(&path))?;
            with(Some(built), &[])
        }
        "python-files" => {
            let path = write("files.py", include_str!("files.py"))?;
            with(on_path("python3"), &[&path])
        }
        "gunicorn" => {
            write("wsgi.py", include_str!("wsgi.py"))?;
            let bind = address.to_string();
            with(on_path("gunicorn"), &[&"--chdir", &home, &"--bind", &bind, &"--threads", &"4", &"wsgi"])
        }
        "php" => {
            for (folder, status) in [("static", 410), ("admin", 451), (".", 409)] {
                let folder = home.join("root").join(folder);
                std::fs::create_dir_all(&folder).map_err(|error| trouble(name, &error))?;
                let text = format!("<?php http_response_code({status});");
                std::fs::write(folder.join("index.php"), text).map_err(|error| trouble(name, &error))?;
            }
            with(on_path("php"), &[&"-S", &address.to_string(), &"-t", &home.join("root")])
        }
        "php-parse-url" => {
            let path = write("router.php", include_str!("parse-url.php"))?;
            with(on_path("php"), &[&"-S", &address.to_string(), &path])
        }
        _ => {
            let jars = ["tomcat10-embed-core", "jakarta-annotation-api"]
                .map(|jar| format!("/usr/share/java/{jar}.jar"));
            let are_there = jars.iter().all(|jar| Path::new(jar).is_file());
            let (Some(java), Some(javac), true) = (on_path("java"), on_path("javac"), are_there) else {
                return Ok(None);
            };
            let jars = jars.join(":");
            let path = write("Areas.java", include_str!("Areas.java"))?;
            compile(name, Command::new(javac).args(["-cp", &jars, "-d"]).arg(home).arg(&path))?;
            let classes = format!("{}:{jars}", home.display());
            let lenient: &[&dyn AsRef<std::ffi::OsStr>] = if name == "tomcat" { &[] } else { &[&"lenient"] };
            let first: [&dyn AsRef<std::ffi::OsStr>; 5] = [&"-Xmx128m", &"-cp", &classes, &"Areas", &home];
            with(Some(java), &[&first[..], lenient].concat())
        }
    })
}

fn compile(name: &str, command: &mut Command) -> Result<(), TestkitError> {
    let output = command.output().map_err(|error| trouble(name, &error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(trouble(name, &String::from_utf8_lossy(&output.stderr))),
    }
}

fn nginx(home: &Path, address: SocketAddr, merge: &str) -> String {
    let home = home.display();
    format!(
        "daemon off;\nmaster_process off;\npid {home}/pid;\nevents {{ worker_connections 1000; }}\nhttp {{\n\
         client_body_temp_path {home}/a; proxy_temp_path {home}/b; fastcgi_temp_path {home}/c; uwsgi_temp_path {home}/d; \
         scgi_temp_path {home}/e;\naccess_log off;\nmerge_slashes {merge};\nserver {{ listen {address};\n\
         location /static/ {{ return 410; }} location /admin {{ return 451; }} location / {{ return 409; }} }}\n}}\n"
    )
}

fn apache(home: &Path, address: SocketAddr, slashes: &str) -> String {
    let home = home.display();
    let module = |name: &str| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n");
    let modules: String = ["mpm_event", "authz_core", "rewrite"].map(module).concat();
    format!(
        "{modules}ServerRoot {home}\nServerName localhost\nPidFile {home}/pid\nDefaultRuntimeDir {home}\nMutex file:{home}\nListen {address}\n\
         ErrorLog {home}/error.log\nKeepAliveTimeout 30\nAllowEncodedSlashes {slashes}\nRewriteEngine On\n\
         RewriteRule ^/static/ - [R=410,L]\nRewriteRule ^/admin - [R=451,L]\nRewriteRule ^ - [R=409,L]\n"
    )
}

fn haproxy(address: SocketAddr) -> String {
    format!(
        "global\n  maxconn 1000\n  expose-experimental-directives\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n\
         \x20 timeout connect 5s\n\
         frontend front\n  bind {address}\n  http-request normalize-uri percent-decode-unreserved\n\
         \x20 http-request normalize-uri path-merge-slashes\n  http-request normalize-uri path-strip-dotdot full\n\
         \x20 http-request return status 410 if {{ path_beg /static/ }}\n  http-request return status 451 if {{ path_beg /admin }}\n\
         \x20 http-request return status 409\n"
    )
}
