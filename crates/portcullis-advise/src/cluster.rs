//! Events that look like one false positive: the same objection to the same field, from many clients that do
//! nothing else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::path::template;

/// Clients of a cluster that are counted.
const CLIENTS_MAX: usize = 10_000;
/// Clusters that are kept apart; later ones are left out.
const CLUSTERS_MAX: usize = 10_000;

/// Events with the same objection to the same field on the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The site.
    pub site: String,
    /// The objection: a class of attacks or a rule.
    pub objection: String,
    /// Place and name of the value.
    pub location: String,
    /// The path, ids left out; empty where servers may take it for another one.
    pub path: String,
    /// Events.
    pub events: u64,
    /// Clients.
    pub clients: usize,
    /// Clients of which there are no events but these.
    pub clients_with_nothing_else: usize,
    /// The id of the newest event that a request is kept with; empty: none.
    pub newest: String,
}

/// The clusters of events, newest first: those of the most clients with nothing else come first. For each
/// event, its JSON, the number of requests that it stands for, and whether a request is kept with it.
pub fn clusters<'e>(events: impl Iterator<Item = (&'e Value, u64, bool)>) -> Vec<Cluster> {
    let mut found: BTreeMap<[String; 4], (Cluster, BTreeSet<String>)> = BTreeMap::new();
    let mut clusters_of: BTreeMap<String, usize> = BTreeMap::new();
    for (event, count, is_kept) in events {
        let client = text(event, "/client/addr");
        for key in keys(event) {
            if found.len() == CLUSTERS_MAX && !found.contains_key(&key) {
                continue;
            }
            let (cluster, clients) =
                found.entry(key).or_insert_with_key(|[site, objection, location, path]| {
                    let cluster = Cluster {
                        site: site.clone(),
                        objection: objection.clone(),
                        location: location.clone(),
                        path: path.clone(),
                        events: 0,
                        clients: 0,
                        clients_with_nothing_else: 0,
                        newest: String::new(),
                    };
                    (cluster, BTreeSet::new())
                });
            cluster.events += count;
            if cluster.newest.is_empty() && is_kept {
                cluster.newest = text(event, "/request_id").to_owned();
            }
            if clients.len() < CLIENTS_MAX && clients.insert(client.to_owned()) {
                *clusters_of.entry(client.to_owned()).or_default() += 1;
            }
        }
    }
    let mut clusters: Vec<Cluster> = found
        .into_values()
        .map(|(mut cluster, clients)| {
            cluster.clients = clients.len();
            let only = |client: &&String| clusters_of.get(*client) == Some(&1);
            cluster.clients_with_nothing_else = clients.iter().filter(only).count();
            cluster
        })
        .collect();
    clusters.sort_by_key(|cluster| {
        std::cmp::Reverse((cluster.clients_with_nothing_else, cluster.clients, cluster.events))
    });
    clusters
}

/// Site, objection, location and path of everything that an event objects to.
fn keys(event: &Value) -> Vec<[String; 4]> {
    let list = |path: &str| event.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let path = template(text(event, "/request/target")).unwrap_or_default();
    let site = text(event, "/site");
    let key = |objection: String, location: String| [site.to_owned(), objection, location, path.clone()];
    let over =
        list("/scores/semantic").filter(|score| matches!(text(score, "/outcome"), "blocked" | "detected"));
    let mut keys: Vec<[String; 4]> = over
        .map(|score| {
            let location = match text(score, "/name") {
                "" => text(score, "/place").to_owned(),
                name => format!("{}:{name}", text(score, "/place")),
            };
            key(text(score, "/class").to_owned(), location)
        })
        .collect();
    for rule in list("/matches").chain(list("/also_matched")) {
        let (id, target) = (rule.pointer("/rule_id").and_then(Value::as_u64), text(rule, "/target"));
        let scores = rule.pointer("/points").and_then(Value::as_i64).is_some_and(|points| points > 0);
        if let Some(id) = id.filter(|_| scores && !target.starts_with("TX")) {
            keys.push(key(format!("rule {id}"), target.to_owned()));
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(id: &str, client: &str, target: &str, class: &str) -> Value {
        json!({
            "request_id": id, "site": "shop", "client": { "addr": client }, "request": { "target": target },
            "scores": { "semantic": [{ "class": class, "place": "query", "name": "q", "outcome": "blocked" }] },
        })
    }

    #[test]
    fn an_alarm_of_many_comes_before_an_attack_of_one() {
        let mut events = Vec::new();
        for number in 0..50 {
            events.push(event(&format!("a{number}"), "192.0.2.9", &format!("/search/{number}"), "sqli"));
            events.push(event(&format!("b{number}"), "192.0.2.9", "/search/1", "xss"));
        }
        for number in 0..5 {
            events.push(event(&format!("c{number}"), &format!("192.0.2.{number}"), "/posts/7?q=1", "sqli"));
        }
        let found = clusters(events.iter().map(|event| (event, 2, true)));
        assert_eq!(found.len(), 3);
        let expected = Cluster {
            site: "shop".to_owned(),
            objection: "sqli".to_owned(),
            location: "query:q".to_owned(),
            path: "/posts/{id}".to_owned(),
            events: 10,
            clients: 5,
            clients_with_nothing_else: 5,
            newest: "c0".to_owned(),
        };
        assert_eq!(found[0], expected);
        assert_eq!((found[1].events, found[1].clients, found[1].clients_with_nothing_else), (100, 1, 0));
    }
}
