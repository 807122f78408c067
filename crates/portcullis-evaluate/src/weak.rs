//! Weak labels: entries of a list of attacks that are no attack by themselves, told by general criteria. They
//! are shown, but neither scored nor trained on.

use std::path::Path;

use serde::Deserialize;

use crate::EvaluateError;
use crate::sample::{Label, Sample};

/// The rules of one file.
#[derive(Debug, Default)]
pub(crate) struct WeakLabels(Vec<Rule>);

/// Criteria for entries: those of `sets` and `sources` (parts of their names; without `sources` all) that
/// have one of the texts in `with`, or none of those in `without`, or are short, or `bare`: a request with a
/// plain path, no query and no body; or `stores`: the same with a document of plain words and numbers as its
/// body; without any of these all. Letters count in any case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    sets: Vec<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    shorter_than: usize,
    #[serde(default)]
    bare: bool,
    #[serde(default)]
    stores: bool,
    why: String,
}

impl WeakLabels {
    /// The rules of the file at `path`.
    pub fn read(path: &Path) -> Result<WeakLabels, EvaluateError> {
        let io = |source| EvaluateError::Io { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(io)?;
        WeakLabels::parse(&text).map_err(|error| EvaluateError::Line {
            path: path.to_owned(),
            line: error.line(),
            message: error.to_string(),
        })
    }

    fn parse(text: &str) -> Result<WeakLabels, serde_json::Error> {
        serde_json::from_str(text).map(WeakLabels)
    }

    /// Returns the reason why an attack of `set` is not to be scored, if there is one.
    pub fn why(&self, set: &str, sample: &Sample) -> Option<&str> {
        if sample.label != Label::Attack {
            return None;
        }
        let of = |name: &str, parts: &[String]| parts.iter().any(|part| name.contains(part.as_str()));
        let mut rules = self
            .0
            .iter()
            .filter(|rule| {
                of(set, &rule.sets) && (rule.sources.is_empty() || of(&sample.source, &rule.sources))
            })
            .peekable();
        rules.peek()?;
        let text = sample.content.text().to_ascii_lowercase();
        let has = |parts: &[String]| parts.iter().any(|part| text.contains(&part.to_ascii_lowercase()));
        let rule = rules.find(|rule| {
            let has_form = rule.bare || rule.stores;
            let is_all =
                rule.with.is_empty() && rule.without.is_empty() && rule.shorter_than == 0 && !has_form;
            is_all
                || has(&rule.with)
                || !rule.without.is_empty() && !has(&rule.without)
                || text.trim().len() < rule.shorter_than
                || rule.bare && is_plain(&text).is_some_and(|body| body.is_empty())
                || rule.stores && is_plain(&text).is_some_and(is_document)
        });
        rule.map(|rule| rule.why.as_str())
    }
}

/// The body of a raw request for an address of letters, digits and the signs of names, with no header that is
/// not one of a client's own.
fn is_plain(request: &str) -> Option<&str> {
    let (line, rest) = request.split_once('\n')?;
    let target = line.split(' ').nth(1).unwrap_or_default();
    let is_named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_');
    let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
    const OF_CLIENTS: [&str; 12] = [
        "host",
        "accept",
        "user-agent",
        "connection",
        "upgrade",
        "cache-control",
        "content-length",
        "content-type",
        "authorization",
        "sec-",
        "pragma",
        "origin",
    ];
    let is_of_client = |field: &str| OF_CLIENTS.iter().any(|name| field.starts_with(name));
    let is_plain = target.bytes().all(is_named)
        && !target.contains("..")
        && head.lines().filter(|field| !field.trim().is_empty()).all(is_of_client);
    is_plain.then_some(body.trim())
}

/// JSON of plain words and numbers: what it stores is for a later request.
fn is_document(body: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b.is_ascii_whitespace() || b"_-.,:\"{}[]".contains(&b);
    body.starts_with(['{', '[']) && body.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;
    use portcullis_semantic::Place;

    fn sample(label: Label, source: &str, text: &str) -> Sample {
        let bytes = text.as_bytes().to_vec();
        Sample {
            label,
            source: source.to_owned(),
            content: Content::Value { place: Place::Query, name: "q", bytes },
        }
    }

    #[test]
    fn criteria() {
        let rules = r#"[
            {"sets": ["wordlist"], "why": "all"},
            {"sets": ["ldap"], "without": ["(", ")"], "why": "no parenthesis"},
            {"sets": ["ldap"], "sources": ["README"], "with": ["PRINT("], "why": "a script"},
            {"sets": ["xpath"], "shorter_than": 4, "why": "signs"}
        ]"#;
        let rules = WeakLabels::parse(rules).unwrap();
        let covers = |set: &str, source: &str, text: &str| {
            rules.why(set, &sample(Label::Attack, source, text)).is_some()
        };
        assert!(covers("wordlist.jsonl", "", "anything"));
        assert!(covers("ldap.jsonl", "", "admin*") && !covers("ldap.jsonl", "", "*)(uid=*"));
        assert!(covers("ldap.jsonl", "a README.md", "print(x)") && !covers("ldap.jsonl", "b", "print(x)"));
        assert!(covers("xpath.jsonl", "", " //*") && !covers("xpath.jsonl", "", "count(/*)"));
        let is_bare = |request: &str| is_plain(request).is_some_and(str::is_empty);
        assert!(is_bare("get /graphs http/1.1\nhost: a\nauthorization: bearer x\n\n"));
        let stores =
            |body: &str| is_plain(&format!("post /a http/1.1\nhost: a\n\n{body}")).is_some_and(is_document);
        assert!(stores("[{\"id\": \"test\"}]") && !stores("{\"id\": \"$(id)\"}") && !stores("a=b"));
        for request in [
            "get /a?b=1 http/1.1\nhost: a\n\n",
            "post /a http/1.1\nhost: a\n\n{}",
            "get /a http/1.1\ncmd: id\n\n",
        ] {
            assert!(!is_bare(request), "{request}");
        }
        assert!(!covers("sqli.jsonl", "", "1"));
        assert!(rules.why("wordlist.jsonl", &sample(Label::Benign, "", "anything")).is_none());
    }

    /// The project's own file is read, and says something of sets that exist.
    #[test]
    fn the_file_of_the_project() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/semantic/weak-labels.json");
        let rules = WeakLabels::read(&path).unwrap();
        assert!(rules.0.len() >= 8 && rules.0.iter().all(|rule| rule.why.len() > 20));
    }
}
