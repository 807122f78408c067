//! YAML to tests.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{Input, Output, Stage, Test, TestFile, template};
use crate::{TestkitError, base64};

/// All test files of a folder.
#[derive(Debug, Default)]
pub struct Suite {
    /// Files with tests, by path.
    pub files: Vec<TestFile>,
    /// Files without a test; the runner names them.
    pub empty: Vec<PathBuf>,
    /// Files that are no test files, with what is wrong with them.
    pub unreadable: Vec<TestkitError>,
}

impl Suite {
    /// All tests in order.
    pub fn tests(&self) -> impl Iterator<Item = (&TestFile, &Test)> {
        self.files.iter().flat_map(|file| file.tests.iter().map(move |test| (file, test)))
    }

    /// Number of tests and of stages.
    pub fn counts(&self) -> (usize, usize) {
        self.tests().fold((0, 0), |(tests, stages), (_, test)| (tests + 1, stages + test.stages.len()))
    }
}

/// Reads every `*.yaml` and `*.yml` below `folder`, in path order.
pub fn read_folder(folder: &Path) -> Result<Suite, TestkitError> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|source| TestkitError::io(&folder, source))? {
            let path = entry.map_err(|source| TestkitError::io(&folder, source))?.path();
            match path.extension().and_then(|name| name.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("yaml" | "yml") => paths.push(path),
                _ => {}
            }
        }
    }
    paths.sort();
    let mut suite = Suite::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|source| TestkitError::io(&path, source))?;
        match parse(&text, &path) {
            Ok(file) if file.tests.is_empty() => suite.empty.push(path),
            Ok(file) => suite.files.push(file),
            Err(error) => suite.unreadable.push(error),
        }
    }
    Ok(suite)
}

/// Reads one file's text. `path` names it in errors, and gives the rule id if the file does not.
pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<TestFile, TestkitError> {
    let path = path.as_ref();
    let wrong = |message: String| TestkitError::parse(path, None, message);
    let raw: RawFile = serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let rule_id = match raw.rule_id {
        Some(id) if id > 0 => id,
        _ => first_number(&name)
            .ok_or_else(|| wrong("neither `rule_id` nor the file's name tells the rule".into()))?,
    };
    let family = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let mut tests = Vec::with_capacity(raw.tests.len());
    for (index, test) in raw.tests.into_iter().enumerate() {
        let test_id = test.test_id.filter(|&id| id > 0).unwrap_or(index as u32 + 1);
        let stages = test.stages.into_iter().map(stage).collect::<Result<Vec<_>, _>>();
        let stages = stages.map_err(|message| wrong(format!("test {test_id}: {message}")))?;
        if stages.is_empty() {
            return Err(wrong(format!("test {test_id} has no stage")));
        }
        let description = test.desc.or(test.description).or(test.test_title).unwrap_or_default();
        tests.push(Test { rule_id, test_id, description, stages });
    }
    Ok(TestFile { family, rule_id, tests })
}

fn stage(raw: RawStage) -> Result<Stage, String> {
    let (input, output) = match raw {
        RawStage { input: Some(input), output: Some(output), stage: None } => (input, output),
        RawStage { stage: Some(stage), input: None, output: None } => (stage.input, stage.output),
        _ => return Err("a stage needs `input` and `output`".into()),
    };
    let data = match (input.data, input.encoded_data) {
        (Some(text), _) => Some(template::expand(&text)?.into_bytes()),
        (None, Some(text)) => Some(base64::decode(&text).ok_or("`encoded_data` is not Base64")?),
        (None, None) => None,
    };
    let encoded_request = match input.encoded_request.filter(|text| !text.is_empty()) {
        Some(text) => Some(base64::decode(&text).ok_or("`encoded_request` is not Base64")?),
        None => None,
    };
    if encoded_request.is_some() && data.as_ref().is_some_and(|data| !data.is_empty()) {
        return Err("`data` and `encoded_request` exclude each other".into());
    }
    let mut headers = input.headers.unwrap_or_default().0;
    headers.sort_by(|a, b| a.0.cmp(&b.0)); // go-ftw: a map, sent in the order of its names
    if let Some(ordered) = input.ordered_headers {
        headers = ordered.into_iter().map(|field| (field.name, field.value.unwrap_or_default())).collect();
    }
    if output.log.expect_ids.len() != 1 && output.isolated {
        return Err("`isolated` needs exactly one id in `expect_ids`".into());
    }
    let log = output.log;
    let match_regex = log.match_regex.filter(|text| !text.is_empty());
    let no_match_regex = log.no_match_regex.filter(|text| !text.is_empty());
    Ok(Stage {
        input: Input {
            uri: input.uri.unwrap_or_else(|| "/".into()),
            method: input.method.unwrap_or_else(|| "GET".into()),
            version: input.version.unwrap_or_else(|| "HTTP/1.1".into()),
            headers,
            data,
            encoded_request,
            autocomplete_headers: input.autocomplete_headers.unwrap_or(!input.stop_magic.unwrap_or(false)),
            follow_redirect: input.follow_redirect.unwrap_or(false),
        },
        output: Output {
            status: output.status.unwrap_or(0),
            response_contains: output.response_contains.filter(|text| !text.is_empty()),
            match_regex: match match_regex {
                None if log.expect_ids.is_empty() => output.log_contains.filter(|text| !text.is_empty()),
                given => given,
            },
            no_match_regex: match no_match_regex {
                None if log.no_expect_ids.is_empty() => {
                    output.no_log_contains.filter(|text| !text.is_empty())
                }
                given => given,
            },
            expect_ids: log.expect_ids,
            no_expect_ids: log.no_expect_ids,
            expect_error: output.expect_error.unwrap_or(false),
            isolated: output.isolated,
        },
    })
}

fn first_number(name: &str) -> Option<u32> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}

#[derive(Deserialize)]
struct RawFile {
    rule_id: Option<u32>,
    #[serde(default)]
    tests: Vec<RawTest>,
}

#[derive(Deserialize)]
struct RawTest {
    test_id: Option<u32>,
    test_title: Option<String>,
    desc: Option<String>,
    description: Option<String>,
    stages: Vec<RawStage>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStage {
    input: Option<RawInput>,
    output: Option<RawOutput>,
    /// Before CRS 4.1 a stage was wrapped once more.
    stage: Option<RawWrapped>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWrapped {
    input: RawInput,
    output: RawOutput,
}

/// Every field of the test schema. The `IgnoredAny` ones have no effect in go-ftw, or none under a runner
/// that sets destination and protocol itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInput {
    #[serde(rename = "dest_addr")]
    _dest_addr: Option<IgnoredAny>,
    #[serde(rename = "port")]
    _port: Option<IgnoredAny>,
    #[serde(rename = "protocol")]
    _protocol: Option<IgnoredAny>,
    #[serde(rename = "save_cookie")]
    _save_cookie: Option<IgnoredAny>,
    #[serde(rename = "raw_request")]
    _raw_request: Option<IgnoredAny>,
    #[serde(rename = "virtual_host_mode")]
    _virtual_host_mode: Option<IgnoredAny>,
    uri: Option<String>,
    version: Option<String>,
    method: Option<String>,
    headers: Option<Pairs>,
    ordered_headers: Option<Vec<RawField>>,
    data: Option<String>,
    encoded_data: Option<String>,
    encoded_request: Option<String>,
    autocomplete_headers: Option<bool>,
    stop_magic: Option<bool>,
    follow_redirect: Option<bool>,
}

#[derive(Deserialize)]
struct RawField {
    name: String,
    value: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutput {
    status: Option<u16>,
    response_contains: Option<String>,
    log_contains: Option<String>,
    no_log_contains: Option<String>,
    #[serde(default)]
    log: RawLog,
    expect_error: Option<bool>,
    /// For a race between phase 5 and reading the log; here the log is read after the proxy has written it.
    #[serde(rename = "retry_once")]
    _retry_once: Option<bool>,
    #[serde(default)]
    isolated: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLog {
    #[serde(default)]
    expect_ids: Vec<u32>,
    #[serde(default)]
    no_expect_ids: Vec<u32>,
    match_regex: Option<String>,
    no_match_regex: Option<String>,
}

/// A mapping of scalars with its order kept; a number's text stays as written.
#[derive(Default)]
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a mapping of header names to values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Option<String>>()? {
                    pairs.push((name, value.unwrap_or_default()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(stage: &str) -> Stage {
        let text = format!("rule_id: 7\ntests:\n  - stages:\n{stage}");
        parse(&text, "x.yaml").unwrap_or_else(|error| panic!("{error}")).tests.remove(0).stages.remove(0)
    }

    #[test]
    fn defaults() {
        let stage = one("      - input: {}\n        output: {}\n");
        let Input { uri, method, version, headers, data, autocomplete_headers, .. } = stage.input;
        assert_eq!((uri.as_str(), method.as_str(), version.as_str()), ("/", "GET", "HTTP/1.1"));
        assert!(headers.is_empty() && data.is_none() && autocomplete_headers);
        assert_eq!(stage.output.status, 0);
    }

    #[test]
    fn header_values_keep_their_text_and_names_are_sorted() {
        let stage = one(
            "      - input:\n          headers:\n            b: 0300\n            Zed: yes\n            a: ~\n            C: 1.50\n        output: {}\n",
        );
        let have: Vec<_> = stage.input.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(have, [("C", "1.50"), ("Zed", "yes"), ("a", ""), ("b", "0300")]);
    }

    #[test]
    fn ids_come_from_the_file() {
        let file = parse(
            "tests:\n- stages: [{input: {}, output: {}}]\n- stages: [{input: {}, output: {}}]\n",
            "d/941100.yaml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(file.family, "d");
        assert_eq!(file.tests.iter().map(Test::name).collect::<Vec<_>>(), ["941100-1", "941100-2"]);
    }

    #[test]
    fn a_mistyped_field_is_an_error() {
        for stage in ["{input: {urI: /}, output: {}}", "{input: {}, output: {log: {expect_id: [1]}}}"] {
            let text = format!("rule_id: 1\ntests:\n- stages: [{stage}]\n");
            assert!(parse(&text, "x.yaml").is_err(), "{stage}");
        }
    }

    #[test]
    fn stages_as_older_releases_wrap_them() {
        let stage = one("      - stage:\n          input: {uri: /x}\n          output: {status: 400}\n");
        assert_eq!((stage.input.uri.as_str(), stage.output.status), ("/x", 400));
        for wrong in ["{input: {}}", "{stage: {input: {}, output: {}}, output: {}}"] {
            assert!(
                parse(&format!("rule_id: 1\ntests:\n- stages: [{wrong}]\n"), "x.yaml").is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn log_contains_gives_way_to_ids() {
        let stage =
            one("      - input: {}\n        output: {log_contains: 'id \"1\"', no_log_contains: b}\n");
        assert_eq!(stage.output.match_regex.as_deref(), Some("id \"1\""));
        assert_eq!(stage.output.no_match_regex.as_deref(), Some("b"));
        let stage = one("      - input: {}\n        output: {log_contains: x, log: {expect_ids: [5]}}\n");
        assert_eq!((stage.output.match_regex, stage.output.expect_ids), (None, vec![5]));
    }
}
