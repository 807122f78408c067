//! Man pages and completions, as packages make them.

use std::process::Command;

use crate::served::program;

#[test]
fn every_command_has_a_man_page_and_is_completed() {
    let place = tempfile::tempdir().unwrap();
    let make = |what: &str| {
        let folder = place.path().join(what);
        let status = Command::new(program()).args(["generate", what]).arg(&folder).status().unwrap();
        assert!(status.success(), "{what}");
        folder
    };
    let (man, completions) = (make("man"), make("completions"));
    let read = |path| std::fs::read_to_string(path).unwrap();
    let scripts =
        ["portcullis.bash", "_portcullis", "portcullis.fish"].map(|name| read(completions.join(name)));
    for command in ["run", "check", "crs", "init", "events", "token"] {
        let page = read(man.join(format!("portcullis-{command}.1")));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(command), "{command}");
        assert!(scripts.iter().all(|script| script.contains(command)), "{command}");
    }
    assert!(read(man.join("portcullis.1")).contains("portcullis\\-run(1)"));
    assert!(read(man.join("portcullis-crs-install.1")).contains("insecure\\-no\\-check"));
    assert!(man.join("portcullis-generate.1").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let output = Command::new(program()).args(["generate", "man", "/proc/none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to /proc/none"));
}
