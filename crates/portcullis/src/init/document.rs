//! The document that `init` writes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use portcullis_config::{Profile, profile, profiles};
use portcullis_types::nearest;

use crate::crs;

/// Folders in which packages and `portcullis crs install` put the CRS, in the order in which they are tried.
const CRS_FOLDERS: [&str; 2] = ["/var/lib/portcullis/crs/current", "/usr/share/portcullis/crs"];

/// What a document is made of; the defaults are those that a person is shown.
#[derive(Clone, Debug)]
pub struct Answers {
    /// URL of the application.
    pub upstream: String,
    /// Host names with commas between them.
    pub hosts: String,
    /// Address to serve.
    pub listen: String,
    /// The detection mode.
    pub mode: String,
    /// Folder of the CRS, if one is known.
    pub crs: Option<PathBuf>,
    /// The data folder, as the document names it.
    pub data: String,
    /// The application: the name of a profile, [`PROBE`] or [`UNKNOWN`].
    pub application: String,
    /// The profiles of the applications that it looks like, each with what was seen of it.
    pub looks_like: Vec<(&'static Profile, Vec<String>)>,
}

/// The front page is asked for, and says which application it is.
pub const PROBE: &str = "probe";
/// Nobody says which application it is.
pub const UNKNOWN: &str = "unknown";

impl Default for Answers {
    fn default() -> Answers {
        Answers {
            upstream: "http://127.0.0.1:8000".to_owned(),
            hosts: "*".to_owned(),
            listen: portcullis_config::LISTEN.to_string(),
            mode: "semantic".to_owned(),
            crs: None,
            data: "portcullis-data".to_owned(),
            application: UNKNOWN.to_owned(),
            looks_like: Vec::new(),
        }
    }
}

/// A CRS that is installed.
pub fn crs_on_this_machine() -> Option<PathBuf> {
    CRS_FOLDERS.iter().map(PathBuf::from).find(|folder| folder.join("rules").is_dir())
}

/// The reason why the mode has no rules.
pub fn rules_missing(answers: &Answers) -> Option<String> {
    let needs_rules = ["crs", "both"].contains(&answers.mode.as_str());
    (needs_rules && answers.crs.is_none()).then(|| {
        format!(
            "mode {} needs the CRS, and none is installed; `portcullis crs install` brings it, or name its folder with \
             --crs DIR",
            answers.mode
        )
    })
}

/// The reason why the application is none.
pub fn application_unknown(answers: &Answers) -> Option<String> {
    let name = answers.application.as_str();
    if [PROBE, UNKNOWN].contains(&name) || profile(name).is_some() {
        return None;
    }
    let names = profiles().iter().map(|profile| profile.name.as_str());
    let near = nearest(name, names.chain([PROBE, UNKNOWN]));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(format!(
        "there is no profile `{name}`{near} `portcullis profiles` lists them; {PROBE} asks the front page, {UNKNOWN} asks \
         nothing"
    ))
}

/// The data folder, seen from where `init` runs: relative ones start at the document.
pub fn data_folder(output: &Path, answers: &Answers) -> PathBuf {
    output.parent().unwrap_or(Path::new("")).join(&answers.data)
}

/// The address at which this machine reaches a listener.
pub fn local(listen: &str) -> String {
    match listen.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => format!("127.0.0.1:{}", address.port()),
        _ => listen.to_owned(),
    }
}

/// The document.
pub fn text(answers: &Answers) -> String {
    let hosts: Vec<String> = answers.hosts.split(',').map(|host| quoted(host.trim())).collect();
    let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    let rules = match &answers.crs {
        Some(folder) if answers.mode != "semantic" => {
            format!("rules = {{ crs = {} }}\n", quoted(&absolute(folder).display().to_string()))
        }
        _ => format!(
            "# With the OWASP CRS, too, after `portcullis crs install`: mode = \"both\", and\n# rules = {{ crs = \
             \"{}/current\" }}\n",
            crs::FOLDER
        ),
    };
    let profiles = profile_lines(answers);
    format!(
        r#"# Portcullis in front of one application; written by `portcullis init`.
# After a change: `portcullis check FILE`, then SIGHUP (`systemctl reload portcullis`).

# Events are kept here: `portcullis events --data DIR`.
data = {{ folder = {data} }}

[admin]
listen = "127.0.0.1:9090"                     # /metrics, /healthz, /readyz
console = "127.0.0.1:9443"                    # the console and the admin API; `run` prints a link for the first start

[[listeners]]
name = "http"
address = {listen}
# tls = {{ certificates = [{{ cert = "site.pem", key = "site.key" }}] }}

# Behind a load balancer or a CDN, all clients have its address unless you name it:
# [client_address]
# trusted_proxies = ["10.0.0.0/8"]
# header = "x-forwarded-for"

[[sites]]
name = "site"
hosts = [{hosts}]
upstream = "app"
{mode:<46}# semantic, crs or both
{rules}{profiles}engine = "detection_only"                     # reports attacks, blocks nothing; remove this line to block

[upstreams.app]
endpoints = [{upstream}]
"#,
        data = quoted(&answers.data),
        listen = quoted(&answers.listen),
        hosts = hosts.join(", "),
        mode = format!("mode = {}", quoted(&answers.mode)),
        upstream = quoted(&answers.upstream),
    )
}

/// The line of profiles: one that a person names counts, one that was recognised waits for a person. What was
/// seen is reported in the words of the profile, never in those of the answer.
fn profile_lines(answers: &Answers) -> String {
    if let Some(named) = profile(&answers.application) {
        return format!(
            "profiles = [{}]{}# `portcullis profiles {}` shows what it excludes and opens\n",
            quoted(&named.name),
            " ".repeat(32usize.saturating_sub(named.name.len())),
            named.name
        );
    }
    if answers.looks_like.is_empty() {
        return String::new();
    }
    let seen = answers.looks_like.iter();
    let seen = seen.map(|(profile, signs)| {
        format!("# Its front page looks like {}: {}.\n", profile.application, signs.join(", "))
    });
    let names: Vec<String> = answers.looks_like.iter().map(|(profile, _)| quoted(&profile.name)).collect();
    format!(
        "{}# `portcullis profiles` shows what the profile excludes and opens:\n# profiles = [{}]\n",
        seen.collect::<String>(),
        names.join(", ")
    )
}

/// A string of TOML. Its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
