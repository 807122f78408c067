//! `portcullis check` as a person calls it.

use std::path::Path;
use std::process::{Command, Output};

fn portcullis(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portcullis")).args(args).output().expect("the program runs")
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("writing");
    }
    dir
}

fn check(path: &Path) -> (Option<i32>, String) {
    let output = portcullis(&["check", path.to_str().expect("UTF-8")]);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
}

const GOOD: &str = "SecRule ARGS \"@rx a\" \"id:1,phase:2,deny\"\n";
const BAD: &str =
    "SecRule ARGZ \"@rx a\" \"id:1,phase:2,deny\"\nSecRule ARGS \"@rxx a\" \"id:2,phase:2,deny\"\n";

#[test]
fn good_rules() {
    let dir = folder(&[("a.conf", GOOD)]);
    let (code, text) = check(&dir.path().join("a.conf"));
    assert_eq!((code, text.as_str()), (Some(0), "1 file, 1 rule, 0 errors, 0 warnings\n"));
}

/// Warnings about rules that find nothing count and make `--strict` fail; notes are only shown.
#[test]
fn rules_that_find_nothing_are_shown_with_their_place() {
    let vain = "SecRule GEO:COUNTRY_CODE \"@pm CN RU\" \"id:1,phase:1,deny\"\n\
                SecRule IP:blocked \"@eq 1\" \"id:2,phase:2,deny\"\n\
                SecRule ARGS_POST:user \"@streq evil\" \"id:3,phase:1,deny\"\n\
                SecRule RESPONSE_STATUS \"@streq 404\" \"id:4,phase:2,deny\"\n\
                SecRule TX:never_set \"@eq 1\" \"id:5,phase:2,deny\"\n\
                SecRule REQUEST_URI \"@streq /login\" \"id:6,phase:1,pass,nolog,ctl:ruleRemoveById=9\"\n\
                SecRuleRemoveById 10\n";
    let noted = "SecRule RESPONSE_BODY \"@contains x\" \"id:1,phase:4,deny\"\n";
    let dir = folder(&[("vain.conf", vain), ("noted.conf", noted)]);
    let (code, text) = check(&dir.path().join("vain.conf"));
    assert_eq!(code, Some(0), "{text}");
    for place in ["1:9", "2:9", "3:9", "4:9", "5:9", "6:9", "6:62", "7:1"] {
        assert!(text.contains(&format!("vain.conf:{place}: warning: ")), "{place} in:\n{text}");
    }
    assert!(text.ends_with("6 rules, 0 errors, 8 warnings\n"), "{text}");
    for (file, expected) in [("vain.conf", Some(1)), ("noted.conf", Some(0))] {
        let path = dir.path().join(file);
        let output = portcullis(&["check", "--strict", path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), expected, "{file}");
    }
    let (_, text) = check(&dir.path().join("noted.conf"));
    assert!(
        text.contains("1:9: note: RESPONSE_BODY has no value") && text.ends_with("0 warnings\n"),
        "{text}"
    );
}

#[test]
fn every_mistake_is_shown_with_its_place_and_a_hint() {
    let dir = folder(&[("bad.conf", BAD)]);
    let path = dir.path().join("bad.conf");
    let (code, text) = check(&path);
    assert_eq!(code, Some(1));
    let place = path.display();
    for part in [
        &format!("{place}:1:9: error: unknown variable ARGZ"),
        "SecRule ARGZ",
        "did you mean ARGS?",
        &format!("{place}:2:"),
        "2 errors",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn folders_are_read_in_order_and_a_crs_folder_with_its_setup() {
    let plain = folder(&[("b.conf", BAD), ("a.conf", GOOD), ("notes.txt", "not rules")]);
    let (code, text) = check(plain.path());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.ends_with("2 errors\n"), "{text}");

    let crs = folder(&[
        ("crs-setup.conf.example", "SecAction \"id:900000,phase:1,pass,nolog\"\n"),
        ("rules/RULES-1.conf", GOOD),
        ("rules/words.data", "x\n"),
    ]);
    let (code, text) = check(crs.path());
    assert_eq!((code, text.as_str()), (Some(0), "2 files, 2 rules, 0 errors, 0 warnings\n"));
}

#[test]
fn a_policy_is_checked_by_the_flags_of_run() {
    let dir = folder(&[("good.conf", GOOD), ("bad.conf", BAD)]);
    let file = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    for (args, code, part) in [
        (&["--mode", "semantic", "--level", "strict"][..], 0, "mode semantic, level strict: "),
        (&["--mode", "both", "--rules", &file("good.conf")], 0, "mode both, level balanced: "),
        (&["--rules", &file("bad.conf")], 1, "mode crs: 2 errors"),
        (&["--level", "strict", "--rules", &file("good.conf")], 2, "add `--mode semantic`"),
        (&["--mode", "semantic", "--rules", &file("good.conf")], 2, "does not read rules"),
        (&["--mode", "both"], 2, "needs --crs"),
        (&["--level", "strickt"], 2, "strict"),
        (&["--mode", "semantic", &file("good.conf")], 2, "cannot be used with"),
        (&[], 2, "required"),
    ] {
        let output = portcullis(&[&["check"], args].concat());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    }
}

const DOCUMENT: &str = r#"
[[listeners]]
address = "127.0.0.1:8080"
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"
[sites.rules]
include = ["RULES"]
[upstreams.app]
endpoints = ["http://127.0.0.1:9000"]
"#;

#[test]
fn documents_are_checked_with_their_rules() {
    let dir = folder(&[("bad.conf", BAD), ("a.toml", "listener = 1\n")]);
    let (code, text) = check(&dir.path().join("a.toml"));
    assert_eq!(code, Some(1));
    assert!(text.contains("a.toml:1:1: unknown key `listener`"), "{text}");

    let rules = dir.path().join("bad.conf");
    let path = dir.path().join("b.toml");
    std::fs::write(&path, DOCUMENT.replace("RULES", rules.to_str().expect("UTF-8"))).expect("writing");
    let (code, text) = check(&path);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("unknown variable ARGZ") && text.contains("rules 1: "), "{text}");
}

#[test]
fn a_missing_crs_says_how_to_get_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.toml");
    let text = DOCUMENT.replace("include = [\"RULES\"]", "crs = \"/nonexistent/crs\"");
    std::fs::write(&path, text).expect("writing");
    let (code, text) = check(&path);
    assert_eq!(code, Some(1));
    assert!(text.contains("no CRS in /nonexistent/crs") && text.contains("portcullis crs install"), "{text}");
}

#[test]
fn what_cannot_be_followed_is_exit_code_2_on_standard_error() {
    for (args, part) in [
        (&["check", "/nonexistent/a.conf"][..], "cannot read /nonexistent/a.conf: "),
        (&["check", "/nonexistent/a.toml"], "there is no file /nonexistent/a.toml"),
        (&["check"], "required arguments were not provided"),
        (&["check", "--strikt", "a.conf"], "--strict"),
        (&["chek"], "check"),
    ] {
        let output = portcullis(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(part) && output.stdout.is_empty(), "{args:?}: {text}");
    }
}

#[test]
fn address_lists_are_read() {
    let document = "[[listeners]]\naddress = \"127.0.0.1:8080\"\n[[sites]]\nname = \"a\"\nhosts = [\"*\"]\n\
         upstream = \"app\"\naccess = { deny = { files = [\"good.txt\", \"bad.txt\", \"none.txt\"] } }\n\
         [upstreams.app]\nendpoints = [\"http://127.0.0.1:9000\"]\n";
    let lists = [("good.txt", "192.0.2.0/24 # a\n"), ("bad.txt", "# b\n192.0.2.1\n192.0.2.300\n")];
    let dir = folder(&[("a.toml", document), lists[0], lists[1]]);
    let (code, text) = check(&dir.path().join("a.toml"));
    assert_eq!(code, Some(1));
    let bad = dir.path().join("bad.txt");
    assert!(text.contains(&format!("{}:3: `192.0.2.300` is not an IP address", bad.display())), "{text}");
    assert!(text.contains("none.txt: No such file") && text.contains(", 2 errors, 0 warnings\n"), "{text}");
}

#[test]
fn files_of_tls_are_read() {
    let document = "[[listeners]]\nname = \"https\"\naddress = \"127.0.0.1:8443\"\n\
        tls = { certificates = [{ cert = \"no.pem\", key = \"no.key\" }], client_auth = { ca = \"empty.pem\" } }\n\
        [[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
        [upstreams.app]\ntls = { ca = \"broken.pem\" }\nendpoints = [\"https://192.0.2.1\"]\n\
        [tracing]\notlp = \"https://192.0.2.2:4318\"\nca = \"empty.pem\"\n";
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let dir = folder(&[("a.toml", document), ("empty.pem", ""), ("broken.pem", broken)]);
    let (code, text) = check(&dir.path().join("a.toml"));
    let file = |name: &str| dir.path().join(name).display().to_string();
    let document = file("a.toml");
    for part in [
        format!("{document}:4:34: listener `https`: {}: ", file("no.pem")),
        format!("{document}:4:84: listener `https`: {}: it has no certificate", file("empty.pem")),
        format!("{document}:10:14: upstream `app`: `tls.ca`: {}: ", file("broken.pem")),
        format!("{document}:14:6: `tracing.ca`: {}: it has no certificate", file("empty.pem")),
    ] {
        assert!(text.contains(&part), "no {part:?} in: {text}");
    }
    assert!(text.contains("of rules, 4 errors, 0 warnings\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn certificates_by_acme_take_a_listener_in_clear_text() {
    let document = |listener: &str| {
        format!(
            "[acme]\nstate = \"acme\"\nterms_agreed = true\n\
             [[listeners]]\nname = \"https\"\naddress = \"0.0.0.0:443\"\ntls = {{ acme = {{}} }}\n{listener}\
             [[sites]]\nname = \"a\"\nhosts = [\"a.example\"]\nupstream = \"app\"\nmode = \"off\"\n\
             [upstreams.app]\nendpoints = [\"http://127.0.0.1:9000\"]\n"
        )
    };
    let dir = folder(&[
        ("bad.toml", &document("")),
        ("good.toml", &document("[[listeners]]\naddress = \"0.0.0.0:80\"\n")),
    ]);
    let (code, text) = check(&dir.path().join("bad.toml"));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains(
            "warning: the listener `https` has certificates by ACME, and there is no listener without TLS"
        ),
        "{text}"
    );
    assert!(text.ends_with(", 0 errors, 1 warning\n"), "{text}");
    let (_, text) = check(&dir.path().join("good.toml"));
    assert!(text.ends_with(", 0 errors, 0 warnings\n"), "{text}");
    assert!(!dir.path().join("acme").exists(), "a check makes nothing");
}

#[test]
fn rules_that_count_in_a_rate_limit_need_it() {
    let rules = "SecAction \"id:7,phase:1,pass,nolog,ctl:rateLimit=logins;%{REMOTE_ADDR}\"\n";
    let document = |limits: &str| {
        format!(
            "listeners = [{{ address = \"127.0.0.1:0\" }}]\n[[sites]]\nname = \"shop\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
             rules = {{ include = [\"a.conf\"] }}\n{limits}\n[upstreams.app]\nendpoints = [\"http://127.0.0.1:9\"]\n"
        )
    };
    let with = |limits: &str| {
        let dir = folder(&[("a.conf", rules), ("p.toml", &document(limits))]);
        check(&dir.path().join("p.toml"))
    };
    let (code, text) = with("rate_limits = [{ name = \"logins\", key = [\"rule\"], rate = 5 }]");
    assert_eq!(code, Some(0), "{text}");
    // One that counts every request is not meant for rules.
    for limits in ["", "rate_limits = [{ name = \"logins\", rate = 5 }]"] {
        let (code, text) = with(limits);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("rule 7: ctl:rateLimit names `logins`") && text.contains("a.conf:1"), "{text}");
    }
}

/// A certificate of its own in `NAME.pem`, with its key in `NAME.key`, valid from and until these years.
fn certificate(folder: &Path, name: &str, from: i32, until: i32) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).expect("parameters");
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("writing");
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).expect("writing");
}

/// Whatever kind of mistake it is, the others are found in the same pass, each with its line.
#[test]
fn all_mistakes_are_found_in_one_pass() {
    let document = "workerz = 2
[admin]
listen = \"0.0.0.0:9090\"
[[listeners]]
name = \"https\"
address = \"127.0.0.1:8443\"
tls = { certificates = [{ cert = \"one.pem\", key = \"two.key\" }, { cert = \"old.pem\", key = \"old.key\" }] }
[[listeners]]
address = \"here\"
[timeouts]
idle = 5
[events]
file = \"none/events.jsonl\"
[store]
folder = \"a.toml/data\"
[block_page]
file = \"missing.html\"
[[sites]]
name = \"a\"
hosts = [\"*\"]
upstream = \"ap\"
upsteam = \"app\"
rules = { directives = \"SecRule ARGZ x id:1\" }
[upstreams.app]
endpoints = [\"http://127.0.0.1:9000\"]
";
    let dir = folder(&[("a.toml", document)]);
    certificate(dir.path(), "one", 2020, 2090);
    certificate(dir.path(), "two", 2020, 2090);
    certificate(dir.path(), "old", 2020, 2021);
    let (code, text) = check(&dir.path().join("a.toml"));
    let name = dir.path().join("a.toml").display().to_string();
    for (place, part) in [
        ("1:1", "unknown key `workerz`"),
        ("3:10", "warning: the admin listener 0.0.0.0:9090 can be reached from other networks"),
        ("7:", "this key does not belong to the certificate in"),
        ("7:", "old.pem: the certificate expired"),
        ("9:11", "`here` is not an address"),
        ("11:8", "`5`"),
        ("13:8", "does not exist"),
        ("15:10", "is not a folder"),
        ("17:8", "missing.html"),
        ("21:12", "`ap`"),
        ("22:1", "unknown key `upsteam`"),
    ] {
        let place = format!("{name}:{place}");
        let found = text.lines().any(|line| line.starts_with(&place) && line.contains(part));
        assert!(found, "no {part:?} at {place} in:\n{text}");
    }
    assert!(text.contains("unknown variable ARGZ"), "{text}");
    assert_eq!(code, Some(1));
}

/// `run` opens them before it serves.
#[test]
fn logs_that_rules_ask_for_are_looked_at() {
    let document = |directives: &str| {
        format!(
            "[[listeners]]\naddress = \"127.0.0.1:8080\"\n[[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
             rules = {{ directives = \"\"\"\n{directives}\n\"\"\" }}\n\
             [upstreams.app]\nendpoints = [\"http://127.0.0.1:9000\"]\n"
        )
    };
    let dir = folder(&[("plain", "")]);
    let place = dir.path().display();
    let wrong = format!(
        "SecAuditLogType Concurrent\nSecAuditLog {place}/plain/audit.log\nSecAuditLog2 {place}/none/audit.log\n\
         SecAuditLogStorageDir {place}/plain/store\nSecDebugLog {place}/none/debug.log"
    );
    let path = dir.path().join("a.toml");
    std::fs::write(&path, document(&wrong)).expect("writing");
    let (code, text) = check(&path);
    for part in [
        format!("error: SecAuditLog {place}/plain/audit.log: the file cannot be"),
        format!(
            "error: SecAuditLog2 {place}/none/audit.log: the file cannot be made: the folder {place}/none does not exist"
        ),
        format!(
            "error: SecAuditLogStorageDir {place}/plain/store: the folder cannot be used: {place}/plain is not a folder"
        ),
        format!("error: SecDebugLog {place}/none/debug.log: the file cannot be made"),
    ] {
        assert!(text.contains(&part), "no {part:?} in:\n{text}");
    }
    assert!(text.contains("4 errors"), "{text}");
    assert_eq!(code, Some(1));
    let right = format!(
        "SecAuditLogType Concurrent\nSecAuditLog {place}/audit.log\nSecAuditLogStorageDir {place}/new/store"
    );
    std::fs::write(&path, document(&right)).expect("writing");
    assert_eq!(check(&path).0, Some(0));
    assert!(!dir.path().join("new").exists() && !dir.path().join("audit.log").exists(), "it only looks");
}

/// As another user, where the test runs as root.
#[test]
fn what_may_not_be_read_is_there() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    let dir =
        folder(&[("closed/a.toml", DOCUMENT), ("closed/a.conf", GOOD), ("closed/crs/rules/a.conf", GOOD)]);
    let program = dir.path().join("portcullis");
    std::fs::copy(env!("CARGO_BIN_EXE_portcullis"), &program).expect("a copy that others can run");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    mode(dir.path(), 0o755);
    mode(&program, 0o755);
    mode(&dir.path().join("closed"), 0o000);
    for name in ["closed/a.toml", "closed/a.conf"] {
        let mut command = Command::new(&program);
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let output = command.arg("check").arg(dir.path().join(name)).output().expect("the program runs");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(
            text.to_lowercase().contains("permission denied") && !text.contains("no file"),
            "{name}: {text}"
        );
    }
    mode(&dir.path().join("closed"), 0o755);
}
