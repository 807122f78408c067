//! `portcullis exclude REQUEST_ID`: a narrow exclusion that lets a request pass which was blocked
//! wrongly, as TOML for the document.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use portcullis_advise::{Case, narrowest};
use portcullis_revisions::Exclusion;
use serde_json::Value;

use crate::advise;
use crate::edited::Edited;
use crate::event_text::{line, location, text};
use crate::events::{Place, stored};
use crate::outcome::{Failure, print};

/// Arguments of `portcullis exclude`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The id that the block page, `X-Request-Id` and logs show
    #[arg(value_name = "REQUEST_ID")]
    request_id: String,
    #[command(flatten)]
    place: Place,
}

/// Exit code 1 if there is no such event, or nothing to exclude.
pub fn run(args: &Args) -> ExitCode {
    match answer(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn answer(args: &Args) -> Result<String, Failure> {
    if let Some((document, event, kept)) = args.place.kept(&args.request_id)? {
        let event: Value = serde_json::from_str(&event).map_err(Failure::failed)?;
        return tried(&document, &event, &kept).map_err(Failure::failed);
    }
    let event = args.place.event(&args.request_id)?;
    let event: Value = serde_json::from_str(&event).map_err(Failure::failed)?;
    exclusion(&event).map_err(Failure::failed)
}

/// Exclusions with which the request that is kept with an event passes the policy of a document.
fn tried(document: &std::path::Path, event: &Value, kept: &[u8]) -> Result<String, String> {
    let (site, route) = (text(event, "/site"), text(event, "/route"));
    let edited = Edited::of_document(document, site, route)?;
    let case = Case {
        id: text(event, "/request_id"),
        request: kept,
        client: advise::client(event),
        epoch_millis: stored::now(),
    };
    let inspector = edited.inspector()?;
    let found = narrowest(&inspector, &edited, &case).map_err(|none| none.to_string())?;
    let found = found.ok_or_else(|| {
        "no exclusion lets this request pass: `portcullis advise` shows what still stops it".to_owned()
    })?;
    let mut out = head(event);
    for exclusion in &found {
        let path = match exclusion {
            Exclusion::Semantic(term) => {
                out.push_str("\n[[sites.semantic.exclude]]\n");
                for (key, value) in
                    [("class", &term.class), ("kind", &term.kind), ("location", &term.location)]
                {
                    out.extend(value.iter().map(|value| format!("{key} = {}\n", quoted(value))));
                }
                &term.path
            }
            Exclusion::Rule(term) => {
                let _ = write!(out, "\n[[sites.rules.exclude]]\nrules = [{}]\n", term.rule_id);
                out.extend(term.target.iter().map(|target| format!("target = {}\n", quoted(target))));
                &term.path
            }
        };
        out.extend(path.iter().map(|path| format!("path = {}\n", quoted(path))));
    }
    Ok(out)
}

/// Comments before the exclusions: what they are for, and where they go.
fn head(event: &Value) -> String {
    format!(
        "# {}\n# For the site `{}`: below its keys, before the next [[sites]]{}\n",
        line(event).replace(char::is_control, " "),
        one_line(text(event, "/site")),
        route(event)
    )
}

/// Returns the text to add to the document, or the reason why there is none.
fn exclusion(event: &Value) -> Result<String, String> {
    let semantic = semantic(event);
    let rules = rules(event);
    if semantic.is_empty() && rules.is_empty() {
        let why = match (
            text(event, "/refusal"),
            text(event, "/verdict/control/by"),
            text(event, "/verdict/reason"),
        ) {
            ("", "", "") => "neither the semantic detector nor a rule stopped it".to_owned(),
            ("", "", reason) => reason.to_owned(),
            ("", control, _) => format!("{control} `{}` decided", text(event, "/verdict/control/name")),
            (refusal, _, _) => format!("it was refused as {refusal}"),
        };
        return Err(format!("there is nothing to exclude: {why}"));
    }
    let mut out = head(event);
    if text(event, "/mode") == "both" {
        out.push_str(
            "# Detector and rules both inspect this site, and one may have stopped the request before the other saw it\n\
             # all. With --config FILE the request is tried, and whatever would stop it is excluded.\n",
        );
    }
    out.push_str(&semantic);
    out.push_str(&rules);
    Ok(out)
}

/// A route with settings of its own does not look at those of its site.
fn route(event: &Value) -> String {
    match text(event, "/route") {
        "" | "/" => String::new(),
        route => format!("; if its route `{}` has a `semantic` of its own, below that", one_line(route)),
    }
}

/// An entry for each value and class that was over the threshold.
fn semantic(event: &Value) -> String {
    let scores =
        event.pointer("/scores/semantic").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let over = |score: &&Value| matches!(text(score, "/outcome"), "blocked" | "detected");
    let mut seen = BTreeSet::new();
    let mut out = String::new();
    for score in scores.iter().filter(over) {
        let (class, location) = (text(score, "/class"), location(score));
        if !seen.insert((class, location.clone())) {
            continue;
        }
        let _ = write!(
            out,
            "\n[[sites.semantic.exclude]]\nclass = {}\nlocation = {}\n",
            quoted(class),
            quoted(&location)
        );
        out.push_str(&path_line(event));
    }
    out
}

/// The line that binds an exclusion to the path of the request.
fn path_line(event: &Value) -> String {
    match path(event) {
        // A prefix of every path.
        Some("/") => "path = \"/$\"\n".to_owned(),
        Some(path) => format!("path = {}\n", quoted(path)),
        None => "# no `path`: servers could resolve that of the request to another one\n".to_owned(),
    }
}

/// The path of the request, where an exclusion may be bound to it.
fn path(event: &Value) -> Option<&str> {
    let path = text(event, "/request/target").split(['?', '#']).next().unwrap_or_default();
    let doubtful = ["..", "//", ";", "\\", "*", "%", "{", "$"].iter().any(|part| path.contains(part));
    (path.starts_with('/') && !doubtful).then_some(path)
}

/// An entry for each rule and target that counted.
fn rules(event: &Value) -> String {
    let list = |path: &str| event.pointer(path).and_then(Value::as_array).map(Vec::as_slice);
    let matches = ["/matches", "/also_matched"].into_iter().filter_map(list).flatten();
    let decided = event.pointer("/verdict/rule_id");
    let mut seen = BTreeSet::new();
    let mut out = String::new();
    for rule in matches {
        let points = rule.pointer("/points").and_then(Value::as_i64).unwrap_or(0);
        let (Some(id), target) = (rule.pointer("/rule_id").and_then(Value::as_u64), text(rule, "/target"))
        else {
            continue;
        };
        // Rules that only compare scores are left alone: what made the scores is excluded.
        let counts = points > 0 || decided == rule.pointer("/rule_id");
        if !counts || target.starts_with("TX") || target.is_empty() || !seen.insert((id, target)) {
            continue;
        }
        let _ = write!(out, "\n[[sites.rules.exclude]]\nrules = [{id}]\ntarget = {}\n", quoted(target));
        out.push_str(&path_line(event));
    }
    out
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => out.extend(['\\', sign]),
            sign if sign.is_control() => drop(write!(out, "\\u{:04X}", u32::from(sign))),
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use portcullis_config::{Config, Format};
    use serde_json::json;

    use super::*;

    fn event(target: &str, name: &str) -> Value {
        json!({
            "site": "shop", "time": "t", "request_id": "r", "verdict": { "action": "deny", "status": 403 },
            "request": { "method": "GET", "target": target },
            "scores": { "semantic": [
                { "class": "sqli", "place": "query", "name": name, "points": 5.0, "threshold": 4.0, "outcome": "blocked" },
                { "class": "xss", "place": "query", "name": "below", "points": 1.0, "threshold": 4.0, "outcome": "below" },
            ] },
        })
    }

    /// Whatever a client calls its parameters, the result is a document with one exclusion, and says nothing
    /// else.
    #[test]
    fn names_of_clients_stay_texts() {
        for name in ["q", "a\"]\nmode = \"off\"", "''' '''", "\\", "ü\u{7f}\u{85}\r\n[x]", "a:b", ""] {
            let text = exclusion(&event("/search?x=\n[[sites]]", name)).unwrap();
            let document = format!(
                "[[listeners]]\naddress = \"127.0.0.1:80\"\n[[sites]]\nname = \"shop\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
                 {text}\n[upstreams.app]\nendpoints = [\"http://127.0.0.1:1\"]\n"
            );
            let config = Config::parse(&document, Format::Toml, "x.toml")
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let [policy] = &config.policies[..] else { panic!("{config:?}") };
            let [exclude] = &policy.semantic.exclude[..] else { panic!("{policy:?}") };
            let expected = (!name.is_empty()).then_some(name);
            assert_eq!(
                (exclude.name.as_deref(), exclude.terms.path.as_deref()),
                (expected, Some("/search")),
                "{text}"
            );
        }
    }

    #[test]
    fn paths_that_servers_resolve_differently_are_left_out() {
        for target in ["/a/../b", "/a;x", "//a", "/%2e%2e/a", "*", "http://a/"] {
            let text = exclusion(&event(target, "q")).unwrap();
            assert!(!text.contains("\npath ="), "{text}");
        }
    }

    #[test]
    fn rules_lose_one_target() {
        let event = json!({
            "site": "shop", "request": { "method": "GET", "target": "/" }, "verdict": { "rule_id": 949110 },
            "matches": [
                { "rule_id": 942100, "target": "ARGS:q", "points": 5 },
                { "rule_id": 942100, "target": "ARGS:q", "points": 5 },
                { "rule_id": 941100, "target": "ARGS:a[b]", "points": 5 },
                { "rule_id": 920350, "target": "REQUEST_HEADERS:Host", "points": 0 },
                { "rule_id": 941110, "target": "ARGS:a\" \"id:1,phase:1,allow", "points": 5 },
                { "rule_id": 949110, "target": "TX:blocking_inbound_anomaly_score", "points": 0 },
            ],
        });
        let entry = |rule: u32, target: &str| {
            format!("\n[[sites.rules.exclude]]\nrules = [{rule}]\ntarget = {target}\npath = \"/$\"\n")
        };
        let expected = [
            entry(942100, "\"ARGS:q\""),
            entry(941100, "\"ARGS:a[b]\""),
            entry(941110, r#""ARGS:a\" \"id:1,phase:1,allow""#),
        ];
        assert_eq!(rules(&event), expected.concat());
    }

    #[test]
    fn what_neither_rules_nor_detector_stopped_is_said() {
        let event =
            json!({ "request": {}, "verdict": { "control": { "by": "rate_limit", "name": "login" } } });
        assert!(exclusion(&event).unwrap_err().contains("rate_limit `login`"));
    }
}
