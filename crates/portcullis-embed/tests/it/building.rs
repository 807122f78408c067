//! Policies from code and from documents, their mistakes, and reloads.

use std::fs;

use http::Request;
use portcullis_embed::{Builder, Client, Mode};

const DOCUMENT: &str = r#"
[[listeners]]
address = "127.0.0.1:8080"
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"
mode = "crs"
[sites.rules]
directives = '''
SecRule ARGS:q "@streq bad" "id:1,phase:2,deny,status:418"
'''
[upstreams.app]
endpoints = ["http://127.0.0.1:9000"]
"#;

fn status(waf: &portcullis_embed::Waf, target: &str) -> Option<u16> {
    let request = Request::get(target).header("host", "a").body("").unwrap();
    let verdict = waf.inspect(&request, Client::at([127, 0, 0, 1], 1));
    verdict.answer.map(|answer| answer.status().as_u16())
}

#[test]
fn a_document_is_served_and_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portcullis.toml");
    fs::write(&path, DOCUMENT).unwrap();
    let waf = Builder::document(&path).build().unwrap();
    assert_eq!((status(&waf, "/?q=bad"), status(&waf, "/?q=worse")), (Some(418), None));

    fs::write(&path, DOCUMENT.replace("streq bad", "streq worse")).unwrap();
    assert_eq!(waf.reload().unwrap(), 2);
    assert_eq!((status(&waf, "/?q=bad"), status(&waf, "/?q=worse")), (None, Some(418)));

    // A mistake leaves the old settings serving, and is counted.
    fs::write(&path, DOCUMENT.replace("@streq bad", "@streqq bad")).unwrap();
    let error = waf.reload().unwrap_err().to_string();
    assert!(error.contains("streqq"), "{error}");
    assert_eq!(status(&waf, "/?q=worse"), Some(418));
    let metrics = waf.metrics();
    assert!(metrics.contains("portcullis_reloads_total{result=\"failed\"} 1"), "{metrics}");
}

/// As in two processes of an application: each has loaded the rules for itself.
#[test]
fn a_folder_makes_processes_count_together_over_reloads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("portcullis.toml");
    let rule = "SecRule ARGS:q \"@streq bad\" \"id:1,phase:2,deny,status:418\"";
    let counting = |data: &str| {
        let counter = format!(
            "SecDataDir {data}\nSecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{{REMOTE_ADDR}},setvar:ip.n=+1\"\n\
             SecRule IP:n \"@gt 3\" \"id:2,phase:1,deny,status:429\""
        );
        fs::write(&path, DOCUMENT.replace(rule, &counter)).unwrap();
    };
    counting(folder.path().to_str().unwrap());
    let (one, two) = (Builder::document(&path).build().unwrap(), Builder::document(&path).build().unwrap());
    assert_eq!(
        [status(&one, "/"), status(&two, "/"), status(&one, "/"), status(&two, "/")],
        [None, None, None, Some(429)]
    );
    one.reload().unwrap();
    assert_eq!(status(&one, "/"), Some(429));
    counting("/nonexistent/data");
    let error = one.reload().unwrap_err().to_string();
    assert!(error.contains("SecDataDir: /nonexistent/data: ") && error.contains("make it"), "{error}");
}

#[test]
fn mistakes_say_what_to_do() {
    let error = |builder: Builder| builder.build().unwrap_err().to_string();
    let missing = error(Builder::document("/nonexistent/portcullis.toml"));
    assert!(missing.contains("there is no such file"), "{missing}");
    assert!(error(Builder::crs("/nonexistent/crs")).contains("there is no such folder"));
    assert!(error(Builder::semantic().mode(Mode::Both)).contains("needs rules"));
    assert!(error(Builder::semantic().paranoia(2)).contains("mode both"));
    assert!(error(Builder::document("a.toml").paranoia(2)).starts_with("paranoia: the policy comes from"));
    let text = error(Builder::semantic().mode(Mode::Both).directives("SecRule ARGS \"@rx (\" \"id:1\""));
    assert!(text.contains("<directives>:1:"), "{text}");
    // Nothing here can send a request to another server.
    let text =
        error(Builder::semantic().mode(Mode::Both).directives("SecAction \"id:1,proxy:http://10.0.0.1/\""));
    assert!(text.contains("10.0.0.1"), "{text}");
}

#[test]
fn files_are_kept_within_the_limit_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let path = folder.path().join("portcullis.toml");
    let rules = format!("SecUploadDir {}\nSecUploadKeepFiles On", kept.display());
    let rule = "SecRule ARGS:q \"@streq bad\" \"id:1,phase:2,deny,status:418\"";
    let document = format!("uploads = {{ folder_limit = \"1KiB\" }}\n{}", DOCUMENT.replace(rule, &rules));
    fs::write(&path, document).unwrap();
    let error = Builder::document(&path).build().unwrap_err().to_string();
    assert!(error.contains("is not a folder"), "{error}");
    fs::create_dir(&kept).unwrap();
    let waf = Builder::document(&path).build().unwrap();
    for content in ["first", &"y".repeat(2000), "second"] {
        let body = format!(
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n{content}\r\n--B--\r\n"
        );
        let request = Request::post("/").header("host", "a");
        let request = request.header("content-type", "multipart/form-data; boundary=B").body(body).unwrap();
        assert!(waf.inspect(&request, Client::at([127, 0, 0, 1], 1)).answer.is_none());
    }
    let files = fs::read_dir(&kept).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert_eq!(files, ["first", "second"]);
    let metrics = waf.metrics();
    for line in
        ["portcullis_uploads_kept_total 2", "portcullis_uploads_dropped_total{reason=\"folder_full\"} 1"]
    {
        assert!(metrics.contains(line), "{line} is missing:\n{metrics}");
    }
}
