//! `portcullis migrate`: every golden configuration passes `portcullis check`, and one of nginx with
//! ModSecurity serves as it did.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use portcullis_testkit::client::exchange;
use portcullis_testkit::process::Process;

use crate::served::*;

/// The golden configurations, and what a person would name of each syntax.
const SYNTAXES: &[(&str, &str)] = &[
    ("nginx", "etc/nginx"),
    ("apache", "etc/apache2"),
    ("ingress-nginx", "manifests"),
    ("coraza-caddy", "etc/caddy"),
    ("bunkerweb", "etc/bunkerweb"),
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../portcullis-migrate/tests/golden").join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() { copy(&entry, &target) } else { fs::copy(&entry, &target).map(drop).unwrap() }
    }
}

fn migrate(root: &Path, from: &str, path: &str) -> Output {
    let crs = portcullis_testkit::crs::rules().expect("run make crs").canonicalize().unwrap();
    Command::new(program())
        .args(["migrate", from, "--root"])
        .arg(root)
        .arg("--crs")
        .arg(crs)
        .arg("--output")
        .arg(root.join("portcullis.toml"))
        .arg(root.join(path))
        .output()
        .unwrap()
}

/// The files of certificates that the document names, which no repository should have.
fn certificates(root: &Path, document: &str) {
    let pair = rcgen::generate_simple_self_signed(vec!["shop.example".to_owned()]).unwrap();
    for name in document.split('"').filter(|text| text.starts_with(root.to_str().unwrap())) {
        let is_key = name.ends_with(".key") || name.contains("privkey") || name.ends_with("-key.pem");
        let is_pem = is_key || [".pem", ".crt", ".cer"].iter().any(|end| name.ends_with(end));
        let path = Path::new(name);
        if is_pem {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let key = pair.signing_key.serialize_pem();
            // Apache takes both from one file.
            fs::write(path, if is_key { key } else { pair.cert.pem() + &key }).unwrap();
        }
    }
}

/// The document with the paths of the machine that it was written for below `root`.
fn here(root: &Path, document: &str) -> String {
    let below = |text: String, folder: &str| {
        text.replace(&format!("\"{folder}"), &format!("\"{}{folder}", root.display()))
    };
    ["/etc/", "/data/", "/var/"].iter().fold(document.to_owned(), |text, folder| below(text, folder))
}

/// Rule files name others by paths of the machine that they were written for.
fn relocate(root: &Path, folder: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            relocate(root, &path);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let text = text.replace(" /etc/", &format!(" {}/etc/", root.display()));
            fs::write(path, text.replace(" /usr/", &format!(" {}/usr/", root.display()))).unwrap();
        }
    }
}

#[test]
fn every_golden_configuration_passes_the_check() {
    let mut checked = 0;
    for (from, entry) in SYNTAXES {
        for case in fs::read_dir(golden(from)).unwrap().map(|entry| entry.unwrap().path()) {
            let expected = case.with_extension("expected");
            if !case.is_dir() || fs::read_to_string(expected).unwrap().starts_with("error:") {
                continue;
            }
            let root = tempfile::tempdir().unwrap();
            let root = root.path().canonicalize().unwrap();
            copy(&case, &root);
            let output = migrate(&root, from, entry);
            let report = String::from_utf8(output.stdout).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            // A site without an upstream is a failure, whose document is there all the same.
            assert_eq!(output.status.success(), !report.starts_with("sites without an upstream"), "{said}");
            assert!(report.contains("taken over: ") && report.contains("portcullis check "), "{report}");
            let path = root.join("portcullis.toml");
            let document = here(&root, &fs::read_to_string(&path).unwrap());
            certificates(&root, &document);
            relocate(&root, &root);
            fs::write(&path, &document).unwrap();
            let check = Command::new(program()).arg("check").arg(&path).output().unwrap();
            let said =
                String::from_utf8_lossy(&check.stdout).into_owned() + &String::from_utf8_lossy(&check.stderr);
            assert!(check.status.success(), "{}: {said}\n{document}", case.display());
            checked += 1;
        }
    }
    assert!(checked >= 3 * SYNTAXES.len(), "only {checked} configurations were checked");
}

#[test]
fn nginx_with_modsecurity_serves_as_before() {
    let application = application(|request| says(request.path().to_owned()));
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    copy(&golden("nginx/shop"), &root);
    let listen = free_address();
    // The same servers, at addresses of this test and without TLS.
    let edit = |file: &str, edits: &[(&str, &str)]| {
        let path = root.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let text = edits.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        fs::write(path, text).unwrap();
    };
    let upstream = application.address().to_string();
    edit(
        "etc/nginx/nginx.conf",
        &[
            ("10.0.0.11:8080", &upstream),
            ("server 10.0.0.12:8080;", ""),
            ("server 10.0.0.13:8080 backup;", ""),
        ],
    );
    edit(
        "etc/nginx/conf.d/shop.conf",
        &[
            ("listen 443 ssl http2;", &format!("listen {listen};")),
            ("listen [::]:443 ssl http2;", ""),
            ("listen 80;", &format!("listen {};", free_address())),
            ("listen [::]:80;", ""),
            ("ssl_certificate     /etc/nginx/tls/shop.pem;", ""),
            ("ssl_certificate_key /etc/nginx/tls/shop.key;", ""),
            ("allow 192.0.2.0/24;", "allow 192.0.2.0/24; allow 127.0.0.9;"),
        ],
    );
    let output = migrate(&root, "nginx", "etc/nginx/nginx.conf");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = root.join("portcullis.toml");
    fs::write(&path, here(&root, &fs::read_to_string(&path).unwrap())).unwrap();

    let run: [OsString; 3] = ["run".into(), "--config".into(), path.into()];
    let output = root.join("output");
    let mut process = Process::start(&program(), &run, &output).unwrap();
    if let Err(error) = process.wait_for(listen, PATIENCE) {
        panic!("{error:?}: {}", fs::read_to_string(output).unwrap_or_default());
    }
    let ask = |method: &str, target: &str| {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let answer = exchange(listen, None, request.as_bytes(), PATIENCE).unwrap();
        (answer.status, String::from_utf8_lossy(&answer.raw).into_owned())
    };
    let attack = "/search?q=1%27%20OR%20%271%27=%271";
    assert_eq!(ask("GET", "/search?q=shoes").0, 200);
    assert_eq!(ask("GET", attack).0, 403);
    // Where the location has no inspection.
    assert_eq!(ask("GET", "/static/x?q=1%27%20OR%20%271%27=%271").0, 200);
    // The path is rewritten, and a rule added there. The one that the location removes is of phase 1 and
    // stands
    // before the section, so it is still met: what nginx has is not reached here yet.
    let (status, answer) = ask("GET", "/api/v1/orders");
    assert!(status == 200 && answer.ends_with("/api/orders"), "{answer}");
    assert_eq!(ask("PUT", "/api/v1/orders").0, 405);
    assert_eq!(ask("GET", "/api/v1/orders?debug=1").0, 403);
    assert_eq!(ask("GET", "/orders?debug=1").0, 200);
    // Patterns, lists of clients, rate limits.
    assert_eq!(ask("GET", "/dump.SQL").0, 403);
    assert_eq!(ask("GET", "/admin/").0, 403);
    // One and five more at once; then one in each minute.
    let admitted = (0..30).take_while(|_| ask("GET", "/login").0 == 200).count();
    assert!((6..30).contains(&admitted), "{admitted}");
    assert_eq!(ask("GET", "/login").0, 429);
    assert!(process.stop(PATIENCE).unwrap().success());
}

#[test]
fn nothing_is_written_where_something_is_wrong() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    copy(&golden("nginx/unclosed"), &root);
    let output = migrate(&root, "nginx", "etc/nginx/nginx.conf");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("/etc/nginx/nginx.conf:2: the block of `server` is not closed"), "{said}");
    assert!(!root.join("portcullis.toml").exists());

    copy(&golden("nginx/static"), &root);
    fs::write(root.join("portcullis.toml"), "mine").unwrap();
    let output = migrate(&root, "nginx", "etc/nginx/nginx.conf");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is there already"));
    assert_eq!(fs::read_to_string(root.join("portcullis.toml")).unwrap(), "mine");
}
