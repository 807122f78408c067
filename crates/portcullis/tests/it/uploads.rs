//! Uploaded files that are kept, in the real program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::served::{self, Served, application, document, free_address, program, says};

const MULTIPART: &str = "multipart/form-data; boundary=B";

fn multipart(files: &[(&str, &str)]) -> String {
    let part = |(name, content): &(&str, &str)| {
        format!("--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{content}\r\n")
    };
    files.iter().map(part).collect::<String>() + "--B--\r\n"
}

/// Names and contents of the files in a folder, sorted by content.
fn kept(folder: &Path) -> Vec<(String, String, u32)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).unwrap(), mode)
    });
    let mut files: Vec<_> = entries.collect();
    files.sort_by(|a, b| a.1.cmp(&b.1));
    files
}

#[test]
fn files_are_kept_under_names_that_nobody_can_guess() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let rules = format!(
        "SecUploadDir {}\nSecUploadKeepFiles On\nSecUploadFileMode 0755\n\
         SecRule FILES_TMP_CONTENT \"@contains attack\" \"id:1,phase:2,deny\"\n\
         SecRule REQUEST_URI \"@contains names\" \"id:2,phase:2,redirect:'http://h/?%{{FILES_TMPNAMES.f}}',nolog\"\n",
        folder.path().display()
    );
    let served = Served::start(&app, &rules, "");
    let both = multipart(&[("../../etc/cron.d/x.php", "first"), ("b", "second"), ("empty", "")]);
    assert_eq!(served.post("/", MULTIPART, &both).status(), 200);
    let denied = served.post("/", MULTIPART, multipart(&[("c", "third attack")]));
    let id = denied.header("x-request-id").unwrap();
    let location =
        served.post("/names", MULTIPART, multipart(&[("d", "x fourth")])).header("location").unwrap();
    assert_eq!(served.post("/", "text/plain", "no file").status(), 200);
    served.stop();
    let files = kept(folder.path());
    let contents: Vec<_> = files.iter().map(|(_, content, _)| content.as_str()).collect();
    assert_eq!(
        contents,
        ["first", "second", "third attack", "x fourth"],
        "blocked or not, and none that is empty"
    );
    for (name, _, mode) in &files {
        assert_eq!(*mode, 0o644, "never executable");
        assert!(!name.contains("php") && !name.starts_with('.') && name.len() > 80, "{name}");
    }
    assert!(files[2].0.contains(&id), "the id of the event: {}", files[2].0);
    assert!(
        location.ends_with(&files[3].0) && location.contains(&*folder.path().to_string_lossy()),
        "{location}"
    );
    assert_ne!(files[0].0[54..86], files[2].0[54..86], "the secret is made anew");
}

#[test]
fn relevant_files_only_and_not_more_than_the_folder_may_hold() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let rules = format!(
        "SecUploadDir {}\nSecUploadKeepFiles RelevantOnly\n\
         SecRule FILES \"@contains bad\" \"id:1,phase:2,pass,auditlog\"\n\
         SecRule FILES \"@contains seen\" \"id:2,phase:2,pass,noauditlog\"\n",
        folder.path().display()
    );
    let served = Served::start(&app, &rules, "[uploads]\nfolder_limit = \"1KiB\"");
    let long = "y".repeat(2000);
    for (name, content) in [("good", "1"), ("seen", "2"), ("bad", "3"), ("bad", long.as_str()), ("bad", "4")]
    {
        assert_eq!(served.post("/", MULTIPART, multipart(&[(name, content)])).status(), 200);
    }
    served.counts("portcullis_uploads_kept_total", 2.0);
    served.counts("portcullis_uploads_dropped_total{reason=\"folder_full\"}", 1.0);
    let files = kept(folder.path());
    assert_eq!(files.iter().map(|(_, content, _)| content.as_str()).collect::<Vec<_>>(), ["3", "4"]);
    assert_eq!(files[0].2, 0o600, "the default mode");
}

#[test]
fn nothing_is_kept_unless_asked() {
    let app = application(|_| says("app"));
    let folder = tempfile::tempdir().unwrap();
    let rules = format!(
        "SecUploadDir {}\nSecRule FILES_TMPNAMES \"!@streq upload-1\" \"id:1,phase:2,deny\"\n\
         SecRule FILES_SIZES|FILES_COMBINED_SIZE \"!@eq 4\" \"id:2,phase:2,deny\"\n\
         SecRule MULTIPART_FILENAME|FILES \"!@streq a\" \"id:3,phase:2,deny\"\n\
         SecRule MULTIPART_NAME|FILES_NAMES \"!@streq f\" \"id:4,phase:2,deny\"\n",
        folder.path().display()
    );
    let served = Served::start(&app, &rules, "");
    assert_eq!(served.post("/", MULTIPART, multipart(&[("a", "1234")])).status(), 200);
    served.stop();
    assert!(kept(folder.path()).is_empty());
}

/// ModSecurity loads files to keep without a folder and keeps none; a folder that is not there is a mistake.
#[test]
fn folders_that_are_missing() {
    for (rules, command, code, words) in [
        ("SecUploadKeepFiles On", &["check", "--config"][..], 0, "has no folder: no file is kept"),
        ("SecUploadKeepFiles On", &["check", "--strict", "--config"], 1, "has no folder"),
        (
            "SecUploadKeepFiles On\nSecUploadDir /nonexistent/uploads",
            &["run", "--config"],
            1,
            "is not a folder",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = document(
            folder.path(),
            free_address(),
            free_address(),
            free_address(),
            &served::rules(rules),
            "",
        );
        let output = Command::new(program()).args(command).arg(&config).output().unwrap();
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(code) && text.contains(words), "{command:?}: {text}");
    }
}
