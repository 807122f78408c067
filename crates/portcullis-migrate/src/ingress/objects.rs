//! An Ingress as it is written: every line of it is an entry of the report.

use std::collections::BTreeMap;

use super::Context;
use crate::error::Error;
use crate::report::Entry;
use crate::sources::Place;
use crate::yaml::Node;

/// Before the names of annotations.
const PREFIX: &str = "nginx.ingress.kubernetes.io/";

/// An Ingress.
#[derive(Debug)]
pub(crate) struct Ingress {
    pub namespace: String,
    pub entry: Entry,
    /// Those of ingress-nginx, without their prefix.
    pub annotations: BTreeMap<String, (String, Entry)>,
    pub rules: Vec<Rule>,
    pub tls: Vec<Tls>,
}

/// A host.
#[derive(Debug)]
pub(crate) struct Rule {
    pub host: String,
    pub entry: Entry,
    pub paths: Vec<Path>,
}

/// A path of a host.
#[derive(Debug)]
pub(crate) struct Path {
    pub path: String,
    pub kind: String,
    pub service: String,
    pub port: String,
    pub entry: Entry,
}

/// A secret with a certificate.
#[derive(Debug)]
pub(crate) struct Tls {
    pub hosts: Vec<String>,
    pub secret: String,
    pub entry: Entry,
}

/// Reads an Ingress.
pub(crate) fn ingress(object: &Node, place: Place, cx: &mut Context<'_>) -> Result<Ingress, Error> {
    let line = |line: usize| Place { line, ..place };
    let name = object.text_at(&["metadata", "name"]).unwrap_or_default();
    let entry = cx.enter(place, &format!("Ingress {name}"))?;
    let mut ingress = Ingress {
        namespace: object.text_at(&["metadata", "namespace"]).unwrap_or("default").to_owned(),
        entry,
        annotations: BTreeMap::new(),
        rules: Vec::new(),
        tls: Vec::new(),
    };
    for (key, at, value) in object.at(&["metadata", "annotations"]).map_or(&[][..], Node::members) {
        let text = value.text().unwrap_or_default();
        let entry = cx.enter(line(*at), &format!("{key}: {text}"))?;
        match key.strip_prefix(PREFIX) {
            Some(name) => {
                ingress.annotations.insert(name.to_owned(), (text.to_owned(), entry));
            }
            None if key.contains("cert-manager.io/") => {
                cx.ledger.left(
                    entry,
                    "it goes on keeping the secret, which is mounted; or order certificates with `acme`",
                );
            }
            None => cx.ledger.left(entry, "not of ingress-nginx"),
        }
    }
    for (key, at, value) in object.get("spec").map_or(&[][..], Node::members) {
        match key.as_str() {
            "rules" => {
                for rule in value.items() {
                    ingress.rules.push(self::rule(rule, place, cx)?);
                }
            }
            "tls" => {
                for tls in value.items() {
                    let hosts = tls.get("hosts").map_or(&[][..], Node::items);
                    let hosts: Vec<String> =
                        hosts.iter().filter_map(|host| host.text().map(str::to_owned)).collect();
                    let secret = tls.text_at(&["secretName"]).unwrap_or_default().to_owned();
                    let entry =
                        cx.enter(line(tls.line), &format!("tls {secret} for {}", hosts.join(", ")))?;
                    ingress.tls.push(Tls { hosts, secret, entry });
                }
            }
            "defaultBackend" | "backend" => {
                let entry = cx.enter(line(*at), key)?;
                let path = backend(value, "/", "Prefix", entry);
                ingress.rules.push(Rule { host: String::new(), entry, paths: vec![path] });
            }
            "ingressClassName" => {
                let entry = cx.enter(line(*at), &format!("{key}: {}", value.text().unwrap_or_default()))?;
                cx.ledger.taken(entry, "all Ingresses that are named are read");
            }
            _ => {
                cx.enter(line(*at), key)?;
            }
        }
    }
    Ok(ingress)
}

fn rule(node: &Node, place: Place, cx: &mut Context<'_>) -> Result<Rule, Error> {
    let host = node.text_at(&["host"]).unwrap_or_default().to_ascii_lowercase();
    let entry = cx.enter(Place { line: node.line, ..place }, &format!("host {host}"))?;
    let mut paths = Vec::new();
    for path in node.at(&["http", "paths"]).map_or(&[][..], Node::items) {
        let text = path.text_at(&["path"]).unwrap_or("/");
        let kind = path.text_at(&["pathType"]).unwrap_or("ImplementationSpecific");
        let entry = cx.enter(Place { line: path.line, ..place }, &format!("{kind} {text}"))?;
        if let Some(backend) = path.get("backend") {
            paths.push(self::backend(backend, text, kind, entry));
        }
    }
    Ok(Rule { host, entry, paths })
}

/// A backend, also in the form of older versions.
fn backend(node: &Node, path: &str, kind: &str, entry: Entry) -> Path {
    let first =
        |paths: &[&[&str]]| paths.iter().find_map(|path| node.text_at(path)).unwrap_or_default().to_owned();
    Path {
        path: path.to_owned(),
        kind: kind.to_owned(),
        service: first(&[&["service", "name"], &["serviceName"]]),
        port: first(&[&["service", "port", "number"], &["service", "port", "name"], &["servicePort"]]),
        entry,
    }
}
