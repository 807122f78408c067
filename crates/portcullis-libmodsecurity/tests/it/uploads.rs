//! Uploaded files that are kept.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use modsecurity::{Cache, RuleSet, Transaction};

const FORM: &[u8] =
    b"--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"../../x.php\"\r\n\r\nfirst\r\n\
    --B\r\nContent-Disposition: form-data; name=\"g\"; filename=\"b\"\r\n\r\nsecond\r\n\
    --B\r\nContent-Disposition: form-data; name=\"h\"; filename=\"empty\"\r\n\r\n\r\n--B--\r\n";

/// The lines of the server's log after a form was uploaded under this id.
fn upload(rules: &str, id: &str) -> Vec<String> {
    let cache = Cache::default();
    let mut set = RuleSet::default();
    set.add_text(rules.as_bytes(), &cache).unwrap();
    let mut transaction = Transaction::new(&set, Some(id.as_bytes()), &cache).unwrap();
    transaction.connection(("192.0.2.7", 4711), ("127.0.0.1", 80));
    transaction.uri(b"/upload", b"POST", b"1.1");
    transaction.add_request_header(b"Host", b"a.example");
    transaction.add_request_header(b"Content-Type", b"multipart/form-data; boundary=B");
    transaction.request_headers();
    transaction.append_request_body(FORM);
    transaction.request_body();
    transaction.logging();
    transaction.take_lines()
}

fn rules(folder: &Path, keep: &str) -> String {
    format!(
        "SecRuleEngine On\nSecRequestBodyAccess On\nSecUploadDir {}\nSecUploadKeepFiles {keep}\nSecUploadFileMode 0755\n",
        folder.display()
    )
}

fn kept(folder: &Path) -> Vec<(String, String, u32)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        (fs::read_to_string(&path).unwrap(), path.file_name().unwrap().to_string_lossy().into_owned(), mode)
    });
    let mut files: Vec<_> = entries.collect();
    files.sort();
    files
}

#[test]
fn files_are_kept_behind_the_last_phase() {
    let folder = tempfile::tempdir().unwrap();
    assert!(upload(&rules(folder.path(), "On"), "the-id").is_empty());
    let files = kept(folder.path());
    assert_eq!(files.iter().map(|(content, ..)| content.as_str()).collect::<Vec<_>>(), ["first", "second"]);
    for (_, name, mode) in &files {
        assert_eq!(*mode, 0o644, "never executable");
        assert!(name.contains("-the-id-file-") && !name.contains("php"), "{name}");
    }
}

#[test]
fn relevant_files_are_those_of_matches() {
    let folder = tempfile::tempdir().unwrap();
    let rules = rules(folder.path(), "RelevantOnly");
    upload(&rules, "the-id");
    assert!(kept(folder.path()).is_empty());
    let found = format!("{rules}SecRule FILES_TMPNAMES \"!@contains -file-\" \"id:1,phase:2,deny\"\n");
    upload(&found, "the-id");
    assert!(kept(folder.path()).is_empty(), "files have their names in phase 2");
    upload(&found.replace('!', ""), "the-id");
    assert_eq!(kept(folder.path()).len(), 2);
}

/// Servers take ids from header fields where they are told to.
#[test]
fn an_id_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let long = "x".repeat(5000);
    for id in ["../../../../tmp/x", "/etc/cron.d/x", ".", "a\nb c\u{1}", &long] {
        assert!(upload(&rules(&inner, "On"), id).is_empty(), "{id}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let files = kept(&inner);
    assert_eq!(files.len(), 10);
    assert!(
        files.iter().all(|(_, name, _)| name.is_ascii() && name.contains("-file-") && !name.contains(' '))
    );
}

#[test]
fn a_file_that_is_not_kept_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let rules = rules(&inner, "On");
    let cache = Cache::default();
    let mut set = RuleSet::default();
    set.add_text(rules.as_bytes(), &cache).unwrap();
    fs::remove_dir(&inner).unwrap();
    let mut transaction = Transaction::new(&set, Some(b"the-id"), &cache).unwrap();
    transaction.uri(b"/upload", b"POST", b"1.1");
    transaction.add_request_header(b"Content-Type", b"multipart/form-data; boundary=B");
    transaction.request_headers();
    transaction.append_request_body(FORM);
    transaction.request_body();
    transaction.logging();
    let lines = transaction.take_lines();
    let told: Vec<_> = lines.iter().filter(|line| line.contains("was not kept: No such file")).collect();
    assert_eq!(told.len(), 2, "{lines:?}");
    let refused = RuleSet::default().add_text(rules.as_bytes(), &Cache::default());
    assert!(
        refused.is_err_and(|error| error.contains("is not a folder")),
        "a folder that is not there is refused"
    );
}
