//! `portcullis crs install|list` as a person calls it, and the release in front of an application.

use std::path::Path;
use std::process::{Command, Output};

use flate2::{Compression, write::GzEncoder};

use crate::served::*;

fn portcullis(arguments: &[&str]) -> Output {
    Command::new(program()).arg("crs").args(arguments).output().unwrap()
}

fn texts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Packs the pinned CRS as its project does. With `more` in one file it is not that release any more.
fn archive(at: &Path, more: &str) -> String {
    let folder = portcullis_testkit::crs::rules().expect("run make crs");
    let mut tar = tar::Builder::new(GzEncoder::new(std::fs::File::create(at).unwrap(), Compression::fast()));
    let setup = std::fs::read(folder.join("crs-setup.conf")).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_size((setup.len() + more.len()) as u64);
    header.set_mode(0o644);
    let setup = [&setup, more.as_bytes()].concat();
    tar.append_data(&mut header, "coreruleset-4.25.0/crs-setup.conf.example", &setup[..]).unwrap();
    tar.append_dir_all("coreruleset-4.25.0/rules", folder.join("rules")).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
    at.to_str().unwrap().to_owned()
}

#[test]
fn a_release_is_installed_named_and_serves() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (archive(&place.path().join("crs.tar.gz"), ""), place.path().join("crs"));
    let to = to.to_str().unwrap();
    let (code, out, err) = texts(&portcullis(&["install", "--from", &from, "--to", to]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let current = format!("{to}/current");
    assert!(out.contains("CRS 4.25.0 installed") && out.contains(&format!("--crs {current}")), "{out}");
    let (code, out, _) = texts(&portcullis(&["install", "4.25.0", "--from", &from, "--to", to]));
    assert!(code == Some(0) && out.contains("was there already"), "{out}");
    let (_, out, _) = texts(&portcullis(&["list", "--to", to]));
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["4.25.0", "installed", "current", &format!("{to}/4.25.0")]);
    assert_eq!(lines[1][..2], ["4.22.0", "known"]);

    let application = application(|_| says("shop"));
    let served =
        Served::start_site(&application, &format!("mode = \"crs\"\nrules = {{ crs = \"{current}\" }}"), "");
    let get = |target: &str| {
        served.raw(format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: t\r\nAccept: */*\r\nConnection: close\r\n\r\n"))
    };
    assert_eq!(get("/search?q=iron+and+oak").status(), 200);
    assert_eq!(get("/search?q=1%27+UNION+SELECT+name,password+FROM+users--+").status(), 403);
}

#[test]
fn what_is_not_genuine_is_not_installed_unless_told_so() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (archive(&place.path().join("crs.tar.gz"), "# changed\n"), place.path().join("crs"));
    let to = to.to_str().unwrap();
    let install =
        |more: &[&str]| texts(&portcullis(&[&["install", "--from", &from, "--to", to], more].concat()));
    let (code, out, err) = install(&[]);
    assert!(
        code == Some(1) && out.is_empty() && err.contains("are not those of the CRS release 4.25.0"),
        "{err}"
    );
    let (code, _, err) = install(&["--sha256", &"0".repeat(64)]);
    assert!(code == Some(1) && err.contains("nothing was installed"), "{err}");
    for wrong in ["abc", &"g".repeat(64)] {
        let (code, _, err) = install(&["--sha256", wrong]);
        assert!(code == Some(2) && err.contains("64 hexadecimal digits"), "{err}");
    }
    assert!(!Path::new(to).exists());
    let (code, _, err) = install(&["--insecure-no-check"]);
    assert!(code == Some(0) && err.contains("warning: nothing says that CRS 4.25.0"), "{err}");
}

#[test]
fn versions_are_checked_before_anything_is_fetched() {
    for (arguments, part) in [
        (&["install", "4.99.0"][..], "does not know CRS 4.99.0"),
        (&["install", "latest"], "write it like 4.25.0"),
        (&["install", "../../etc"], "write it like 4.25.0"),
        (&["install", "4.025.0"], "write it like 4.25.0"),
    ] {
        let (code, _, err) = texts(&portcullis(arguments));
        assert!(code == Some(2) && err.contains(part), "{arguments:?}: {err}");
    }
}
