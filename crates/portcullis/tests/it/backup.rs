//! `portcullis backup` and `portcullis restore`: all of an instance, and archives that are damaged or
//! hostile.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

use crate::first_hour::{ATTACK, Started};
use crate::served::*;

fn run(command: &str, arguments: &[&str]) -> Output {
    Command::new(program()).arg(command).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn restore(archive: &Path, data: &Path) -> Output {
    run("restore", &[text(archive), "--data", text(data)])
}

/// Restores what must be refused: nothing is there afterwards, not even beside it. Gives the message.
#[track_caller]
fn refused(archive: &Path, folder: &Path) -> String {
    let output = restore(archive, &folder.join("data"));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{message}");
    message
}

/// The error names the folder that is missing, not the temporary one that was to stand in it.
#[test]
fn a_place_in_a_missing_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("backup.tar");
    fs::write(&archive, packed(&manifest("portcullis-backup", 1, "0.1.0", &list(&[])), &|_| {})).unwrap();
    let missing = folder.path().join("missing");
    let output = restore(&archive, &missing.join("data"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains(&format!("there is no folder {}; create it first", text(&missing))),
        "{message}"
    );
    assert!(!message.contains(".portcullis"), "{message}");
    assert_eq!(names(folder.path()), ["backup.tar"]);
}

/// An instance that runs is copied; another one with the copy has its events, its tokens and its settings.
#[test]
fn a_running_instance_is_restored_with_all_that_it_kept() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let application = application(|_| says("shop"));
    let started = Started::start(place.path(), application.address(), &[]);
    let token = started.token();
    let exclusion = json!({ "site": "default", "class": "sqli", "location": "query:q" });
    let (status, answer) = started.change("POST", "/exclusions", &exclusion);
    assert!((200..300).contains(&status), "{answer}");
    let attack = ATTACK.replace("q=", "r=");
    assert_eq!((started.get(ATTACK), started.get(&attack)), (200, 403));
    let stored = |data: &Path| {
        let output = run("events", &["--json", "--data", text(data), "verdict = deny"]);
        String::from_utf8_lossy(&output.stdout).matches("\"request_id\"").count()
    };
    until(|| stored(&started.data) == 1);

    let archive = place.path().join("backup.tar");
    let output = run("backup", &[text(&archive), "--data", text(&started.data)]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("secrets") && said.contains("not encrypted"), "{said}");
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    // Never over another file, and nothing is left beside it.
    assert_eq!(run("backup", &[text(&archive), "--data", text(&started.data)]).status.code(), Some(1));
    assert!(names(place.path()).iter().all(|name| !name.contains("portcullis-backup")));
    // A folder in use is left alone.
    assert_eq!(restore(&archive, &started.data).status.code(), Some(1));
    started.stop();

    let data = other.path().join("data");
    let output = restore(&archive, &data);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(other.path()), ["data"]);
    for path in files(&data) {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
    }
    assert_eq!(stored(&data), 1);
    let restored = Started::start(other.path(), application.address(), &[]);
    assert_eq!((restored.get(ATTACK), restored.get(&attack)), (200, 403));
    let (status, answer) = restored.ask(&token, "GET", "/revisions", &Value::Null);
    assert_eq!(status, 200, "{answer}");
    // The text that the flags made, that with the exclusion, and that of the other addresses of this start.
    assert!(answer.matches("\"etag\"").count() >= 3 || answer.matches("\"id\"").count() >= 3, "{answer}");
    restored.stop();
}

/// The document and the state of ACME have places of their own, and are not forgotten in silence.
#[test]
fn the_document_and_the_state_of_acme_go_where_they_are_sent() {
    let place = tempfile::tempdir().unwrap();
    let document = instance(place.path());
    let archive = place.path().join("backup.tar");
    let output = run("backup", &[text(&archive), "--config", text(&document)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = restore(&archive, &place.path().join("one"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("--config") && said.contains("--acme"), "{said}");
    let (data, config, acme) =
        (place.path().join("two"), place.path().join("new.toml"), place.path().join("certificates"));
    let arguments = [text(&archive), "--data", text(&data), "--config", text(&config), "--acme", text(&acme)];
    let output = run("restore", &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(&config).unwrap(), fs::read(&document).unwrap());
    assert_eq!(fs::read_to_string(acme.join("ca/account.json")).unwrap(), "{}");
    assert_eq!(fs::read_to_string(data.join("learned/shop.json")).unwrap(), "learned");
    assert!(!data.join("link").exists() && !data.join(".new").exists());
    // Nothing of a second attempt is written, since one of its places is taken.
    let three = place.path().join("three");
    let again = [text(&archive), "--data", text(&three), "--config", text(&config)];
    assert_eq!(run("restore", &again).status.code(), Some(1));
    assert!(!three.exists());
    // A folder that is none of ours has nothing to back up.
    let none = run("backup", &[text(&place.path().join("none.tar")), "--data", text(&acme)]);
    assert_eq!(none.status.code(), Some(1));
    assert!(!place.path().join("none.tar").exists());
}

/// Whatever byte of an archive is another one, and wherever it ends: it is refused, or all is restored as it
/// was.
#[test]
fn damage_is_found_or_does_no_harm() {
    let place = tempfile::tempdir().unwrap();
    let content = "the state of a site ".repeat(60);
    let archive = archive(&[("data", "events/note", &content), ("data", "learned/shop.json", "learned")]);
    let (file, folder) = (place.path().join("damaged.tar"), place.path().join("to"));
    fs::create_dir(&folder).unwrap();
    let data = folder.join("data");
    let mut refusals = 0;
    let mut attempt = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        if restore(&file, &data).status.success() {
            assert_eq!(fs::read_to_string(data.join("events/note")).unwrap(), content);
            assert_eq!(fs::read_to_string(data.join("learned/shop.json")).unwrap(), "learned");
            fs::remove_dir_all(&data).unwrap();
        } else {
            refusals += 1;
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    };
    attempt(&archive);
    let end = archive.len() - 1024;
    for at in (0..end).step_by(37) {
        let mut other = archive.clone();
        other[at] ^= 0x11;
        attempt(&other);
    }
    for length in (0..end).step_by(256) {
        attempt(&archive[..length]);
    }
    assert!(refusals > 100, "{refusals}");
}

#[test]
fn hostile_archives_leave_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (file, folder) = (place.path().join("hostile.tar"), place.path().join("to"));
    fs::create_dir(&folder).unwrap();
    let attempt = |bytes: Vec<u8>, wanted: &str| {
        fs::write(&file, bytes).unwrap();
        let message = refused(&file, &folder);
        assert!(message.contains(wanted), "{wanted}: {message}");
    };
    for path in ["../out", "/tmp/out", "a/../../out", "a//b", "", ".", "a\u{0}b"] {
        attempt(archive(&[("data", path, "x")]), "leaves its folder");
    }
    attempt(archive(&[("data", "a", "x"), ("data", "a", "y")]), "twice");
    attempt(archive(&[("document", "a", "x"), ("document", "b", "y")]), "two documents");
    attempt(archive(&[("data", "a", "x"), ("data", "a/b", "y")]), "cannot write `a/b`");
    attempt(archive(&[("root", "a", "x")]), "damaged");
    // What the tar says, against its manifest.
    let list = list(&[("data", "a", "x"), ("data", "b", "y")]);
    let head = manifest("portcullis-backup", 1, env!("CARGO_PKG_VERSION"), &list);
    let with = |entries: &dyn Fn(&mut Builder<Vec<u8>>)| packed(&head, entries);
    let links =
        [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::GNULongName, EntryType::GNUSparse];
    for kind in links {
        let link = |tar: &mut Builder<Vec<u8>>| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_path("files/000000").unwrap();
            header.set_link_name("/etc/passwd").unwrap();
            header.set_cksum();
            tar.append(&header, &b""[..]).unwrap();
            put(tar, "files/000001", b"y");
        };
        attempt(with(&link), "no plain file");
    }
    attempt(with(&|tar| put(tar, "files/000000", b"x")), "cut off");
    attempt(with(&|tar| put(tar, "../../files/000000", b"x")), "no plain file");
    let more = |tar: &mut Builder<Vec<u8>>| {
        [("files/000000", b"x"), ("files/000001", b"y"), ("files/000002", b"z")]
            .into_iter()
            .for_each(|(name, text)| put(tar, name, text));
    };
    attempt(with(&more), "more files");
    // A length of terabytes, with nothing behind it.
    let huge = json!([{ "part": "data", "path": "a", "bytes": 1_u64 << 42, "sha256": "" }]);
    let head = manifest("portcullis-backup", 1, env!("CARGO_PKG_VERSION"), &huge);
    let long = |tar: &mut Builder<Vec<u8>>| {
        let mut header = Header::new_gnu();
        header.set_path("files/000000").unwrap();
        header.set_size(1 << 42);
        header.set_cksum();
        tar.get_mut().extend_from_slice(header.as_bytes());
    };
    attempt(packed(&head, &long), "damaged");
    // Others' archives, other versions.
    attempt(packed(&manifest("backup", 1, "0.0.1", &json!([])), &|_| ()), "no backup of Portcullis");
    attempt(packed(&manifest("portcullis-backup", 2, "0.0.1", &json!([])), &|_| ()), "newer version");
    attempt(packed(&manifest("portcullis-backup", 1, "99.0.0", &json!([])), &|_| ()), "newer version");
    let mut tar = Builder::new(Vec::new());
    put(&mut tar, "letter.txt", b"dear");
    attempt(tar.into_inner().unwrap(), "no backup of Portcullis");
    attempt(b"not a tar".repeat(1000), "no backup of Portcullis");
    attempt(Vec::new(), "no backup of Portcullis");
}

/// What an earlier version wrote is taken.
#[test]
fn a_backup_of_an_earlier_version_is_restored() {
    let place = tempfile::tempdir().unwrap();
    let (file, data) = (place.path().join("earlier.tar"), place.path().join("data"));
    let list = list(&[("data", "learned/shop.json", "learned")]);
    let head = manifest("portcullis-backup", 1, "0.0.1", &list);
    fs::write(&file, packed(&head, &|tar| put(tar, "files/000000", b"learned"))).unwrap();
    // An empty folder is as good as none.
    fs::create_dir(&data).unwrap();
    assert!(restore(&file, &data).status.success());
    assert_eq!(fs::read_to_string(data.join("learned/shop.json")).unwrap(), "learned");
}

/// A stopped instance with a document, some files that are no part of it, and the state of ACME.
fn instance(folder: &Path) -> PathBuf {
    let document = folder.join("portcullis.toml");
    let text = "data = { folder = \"data\" }\n[acme]\nstate = \"acme\"\nterms_agreed = true\n\
                [[listeners]]\naddress = \"127.0.0.1:8080\"\n[[sites]]\nname = \"s\"\nhosts = [\"s.example\"]\n\
                upstream = \"a\"\n[upstreams.a]\nendpoints = [\"http://127.0.0.1:9\"]\n";
    fs::write(&document, text).unwrap();
    for (path, text) in
        [("data/learned/shop.json", "learned"), ("data/.new", "half"), ("acme/ca/account.json", "{}")]
    {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", folder.join("data/link")).unwrap();
    document
}

fn manifest(format: &str, version: u32, program: &str, files: &Value) -> String {
    json!({ "format": format, "version": version, "program": program, "created": "then", "files": files })
        .to_string()
}

fn list(files: &[(&str, &str, &str)]) -> Value {
    let item = |(part, path, content): &(&str, &str, &str)| json!({ "part": part, "path": path, "bytes": content.len(), "sha256": sum(content.as_bytes()) });
    files.iter().map(item).collect()
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn archive(files: &[(&str, &str, &str)]) -> Vec<u8> {
    let head = manifest("portcullis-backup", 1, env!("CARGO_PKG_VERSION"), &list(files));
    packed(&head, &|tar| {
        for (index, (_, _, content)) in files.iter().enumerate() {
            put(tar, &format!("files/{index:06}"), content.as_bytes());
        }
    })
}

/// An archive whose manifest has its right sum.
fn packed(manifest: &str, entries: &dyn Fn(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    put(&mut tar, "manifest.json", manifest.as_bytes());
    put(&mut tar, "manifest.sha256", sum(manifest.as_bytes()).as_bytes());
    entries(&mut tar);
    tar.into_inner().unwrap()
}

/// Adds a plain file, with whatever name.
fn put(tar: &mut Builder<Vec<u8>>, name: &str, content: &[u8]) {
    let mut header = Header::new_ustar();
    header.set_size(content.len() as u64);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// All files and folders below a folder, and itself.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = BTreeMap::from([(folder.to_owned(), ())]);
    for name in names(folder) {
        let path = folder.join(name);
        match path.is_dir() {
            true => all.extend(files(&path).into_iter().map(|path| (path, ()))),
            false => drop(all.insert(path, ())),
        }
    }
    all.into_keys().collect()
}
