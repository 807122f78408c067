//! Values at places of the document: what is asked for is there afterwards, and all else is as it was.

use portcullis_config::{Format, json_value};
use portcullis_revisions::{Edit, RevisionError, ValueEdit, diff, edited};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::common::DOCUMENT;

fn set(text: &str, pointer: &str, value: Option<Value>) -> Result<String, RevisionError> {
    edited(&Edit::Value(ValueEdit { pointer: pointer.to_owned(), value }), text, Format::Toml)
}

fn values(text: &str) -> Value {
    json_value(text, Format::Toml, "x.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The lines that an edit takes out and puts in.
fn changed(pointer: &str, value: Value) -> String {
    let after = set(DOCUMENT, pointer, Some(value)).unwrap();
    let diff = diff(DOCUMENT, &after, 0);
    diff.lines().filter(|line| !line.starts_with("@@")).fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn only_what_differs_is_written() {
    let site = values(DOCUMENT)["sites"][0].clone();
    assert_eq!(changed("/sites/0", site.clone()), "");
    let mut other = site.clone();
    other["engine"] = "blocking".into();
    other["routes"][1]["semantic"]["classes"]["xss"] = "off".into();
    assert_eq!(
        changed("/sites/0", other),
        "-engine = \"detection_only\"   # until Friday\n\
         +engine = \"blocking\"   # until Friday\n\
         -semantic = { classes = { xss = \"log\" }, exclude = [{ class = \"xss\", location = \"form:body\" }] }\n\
         +semantic = { classes = { xss = \"off\" }, exclude = [{ class = \"xss\", location = \"form:body\" }] }\n"
    );
    let mut fewer = site;
    fewer.as_object_mut().unwrap().remove("engine");
    fewer["routes"].as_array_mut().unwrap().remove(0);
    let text = changed("/sites/0", fewer);
    assert_eq!(
        text,
        "-engine = \"detection_only\"   # until Friday\n-\n-[[sites.routes]]\n-path = \"/api/\"\n-mode = \"off\"\n"
    );
}

#[test]
fn lists_keep_the_comments_of_their_values() {
    let networks = |list: Value| changed("/access/deny/networks", list);
    assert_eq!(networks(json!(["198.51.100.0/24", "192.0.2.1", "203.0.113.7"])), "+    \"192.0.2.1\",\n");
    assert_eq!(networks(json!(["192.0.2.1", "198.51.100.0/24", "203.0.113.7"])), "+    \"192.0.2.1\",\n");
    assert_eq!(networks(json!(["198.51.100.0/24", "203.0.113.7", "192.0.2.1"])), "+    \"192.0.2.1\",\n");
    assert_eq!(networks(json!(["203.0.113.7"])), "-    \"198.51.100.0/24\",   # scanners\n");
    let commented = "networks = [\n    \"192.0.2.1\",  # one\n    \"192.0.2.2\"  # two\n]\n";
    let after = set(commented, "/networks/-", Some("192.0.2.3".into())).unwrap();
    assert!(after.contains("\"192.0.2.2\",  # two\n"), "{after}");
    assert!(after.contains("\"192.0.2.3\""), "{after}");
}

#[test]
fn what_is_new_is_written_as_people_write_it() {
    let site = json!({"hosts": ["new.example"], "name": "new", "upstream": "app",
        "routes": [{"path": "/login", "rate_limits": [{"name": "login", "per": "1m", "rate": 5, "methods": ["POST", "PUT"]}]}]});
    assert_eq!(
        changed("/sites/-", site),
        "+[[sites]]\n+name = \"new\"\n+hosts = [\"new.example\"]\n+upstream = \"app\"\n+\n+[[sites.routes]]\n\
         +path = \"/login\"\n\
         +rate_limits = [{ name = \"login\", methods = [\"POST\", \"PUT\"], per = \"1m\", rate = 5 }]\n+\n"
    );
    assert_eq!(
        changed("/upstreams/new", json!({"endpoints": ["http://127.0.0.1:1"], "health": {"path": "/"}})),
        "+\n+[upstreams.new]\n+endpoints = [\"http://127.0.0.1:1\"]\n+health = { path = \"/\" }\n"
    );
    let rules = "SecRule ARGS \"@rx ^\\d+$\" \\\n    \"id:1,phase:2,pass\"\n";
    let after = set(DOCUMENT, "/sites/1/rules/directives", Some(rules.into())).unwrap();
    assert_eq!(values(&after)["sites"][1]["rules"]["directives"], rules);
    let after = set("", "/sites/0/rules", None).unwrap_err().to_string();
    assert!(after.contains("the document has no `/sites`"), "{after}");
    assert_eq!(
        values(&set("", "/listeners/-", Some(json!({"address": "a"}))).unwrap())["listeners"][0]["address"],
        "a"
    );
}

#[test]
fn places_that_are_not_there_are_refused() {
    for pointer in [
        "",
        "sites",
        "/sites/7",
        "/sites/7/mode",
        "/sites/x/mode",
        "/sites/0/name/x",
        "/upstreams/app/endpoints/9",
    ] {
        let error = set(DOCUMENT, pointer, Some("x".into())).map(|text| diff(DOCUMENT, &text, 0));
        assert!(matches!(error, Err(RevisionError::Unfit(_))), "{pointer}: {error:?}");
    }
    for pointer in ["/nothing", "/sites/0/level", "/sites/-", "/upstreams/app/endpoints/1"] {
        assert!(matches!(set(DOCUMENT, pointer, None), Err(RevisionError::Unfit(_))), "{pointer}");
    }
    let yaml = Edit::Value(ValueEdit { pointer: "/workers".to_owned(), value: Some(1.into()) });
    assert!(matches!(edited(&yaml, "workers: 2", Format::Yaml), Err(RevisionError::Unfit(_))));
}

/// A pointer has one spelling, and bounds: what is no place of the document changes nothing, and what is said
/// of it is short.
#[test]
fn hostile_pointers_are_refused() {
    let hosts = values(DOCUMENT)["sites"][0]["hosts"].clone();
    let deep = "/a".repeat(100_000);
    let sites_deep = format!("/sites/0{deep}");
    let long = format!("/{}", "x".repeat(100_000));
    let shapeless = "x".repeat(100_000);
    for pointer in [
        "/~",
        "/~2",
        "/~01~",
        "/sites/~00/mode",
        "/sites/00/mode",
        "/sites/+0/mode",
        "/sites/-0/mode",
        "/sites/-1/mode",
        "/sites/0x0/mode",
        "/sites/ 0/mode",
        "/sites/0 /mode",
        "/sites/\u{660}/mode",
        "/sites/18446744073709551616/mode",
        "/sites/4294967296/mode",
        "/sites/-/mode",
        "/sites//mode",
        "/sites/0/hosts/00",
        "/sites/0/hosts/0/x",
        "/sites/0/name/x/y/z",
        "#/sites/0/mode",
        &deep,
        &sites_deep,
        &long,
        &shapeless,
    ] {
        for value in [Some(Value::from("x")), Some(hosts.clone()), None] {
            let shown: String = pointer.chars().take(40).collect();
            match set(DOCUMENT, pointer, value) {
                Err(RevisionError::Unfit(why)) => assert!(why.len() < 2_000, "{shown}: {}", why.len()),
                other => panic!("{shown}: {:?}", other.map(|text| diff(DOCUMENT, &text, 0))),
            }
        }
    }
    // A comment is no place.
    assert!(set(DOCUMENT, "/# until Friday", None).is_err());
}

/// A value is written as it was sent, or refused: never another one in its place.
#[test]
fn numbers_stay_what_they_are() {
    for number in [json!(i64::MIN), json!(i64::MAX), json!(-0.0), json!(1e300), json!(0.1), json!(5e-324)] {
        let after = set("", "/x", Some(number.clone())).unwrap();
        assert_eq!(values(&after)["x"], number, "{after}");
    }
    for number in [json!(u64::MAX), json!(i64::MAX as u64 + 1)] {
        for value in [number.clone(), json!([number]), json!({ "a": [{ "b": number }] })] {
            assert!(matches!(set("", "/x", Some(value)), Err(RevisionError::Unfit(_))), "{number}");
        }
    }
}

/// Values as deep as JSON is read, in all places of a list of changes: an answer, and no end of the program.
#[test]
fn deep_values_end() {
    for depth in [40, 100, 127] {
        let (mut list, mut table) = (json!(1), json!(1));
        for _ in 0..depth {
            list = json!([list]);
            table = json!({ "a": table });
        }
        for value in [list, table] {
            for pointer in ["/x", "/sites/0/x", "/sites/-", "/a/b/c/d/e/f/g/h"] {
                if let Ok(after) = set(DOCUMENT, pointer, Some(value.clone())) {
                    // Whoever reads the document refuses what is too deep.
                    let _ = json_value(&after, Format::Toml, "x.toml");
                }
            }
        }
    }
}

/// A list as long as a document may have it, with every value another, more before them, or none left.
#[test]
fn long_lists_take_no_long_time() {
    let list = |from: usize, count: usize| {
        (from..from + count).map(|n| Value::from(format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255)))
    };
    let text = set("", "/networks", Some(list(0, 30_000).collect())).unwrap();
    let begin = std::time::Instant::now();
    for wanted in [
        list(100_000, 30_000).collect::<Value>(),
        list(100_000, 30_000).chain(list(0, 30_000)).collect(),
        list(0, 30_000).step_by(2).collect(),
        Value::Array(Vec::new()),
    ] {
        let after = set(&text, "/networks", Some(wanted.clone())).unwrap();
        assert_eq!(values(&after)["networks"], wanted);
    }
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

/// Without tables that say nothing: one without lines of its own is not written.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| (key, plain(value)));
            members.filter(|(_, value)| *value != json!({})).collect()
        }
        Value::Array(list) => list.into_iter().map(plain).collect(),
        other => other,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ -~\n\t]{0,20}", "['\"\\\\\n]{0,8}", "\\PC{0,10}"];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let table = prop::collection::btree_map("[a-e]|name|x y|~/", inner.clone(), 0..5);
        let tables = prop::collection::vec(table.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            table.prop_map(|members| members.into_iter().collect()),
            tables.prop_map(|all| all.into_iter().map(|one| one.into_iter().collect::<Value>()).collect()),
        ]
    })
}

/// Pointers to all values of a document.
fn pointers(value: &Value, above: &str, all: &mut Vec<String>) {
    let mut below = |key: String, value: &Value| {
        let pointer = format!("{above}/{}", key.replace('~', "~0").replace('/', "~1"));
        pointers(value, &pointer, all);
        all.push(pointer);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is put anywhere, one after the other, is there afterwards; what is elsewhere is as it was.
    #[test]
    fn what_is_put_is_there(edits in prop::collection::vec((any::<Index>(), any_value()), 1..5)) {
        let mut text = DOCUMENT.to_owned();
        for (index, value) in edits {
            let before = values(&text);
            let mut all = Vec::new();
            pointers(&before, "", &mut all);
            let pointer = index.get(&all);
            let mut wanted = before.clone();
            *wanted.pointer_mut(pointer).unwrap() = value.clone();
            let after = match set(&text, pointer, Some(value)) {
                Ok(after) => after,
                // An entry that is a table of its own stays one.
                Err(RevisionError::Unfit(why)) => {
                    prop_assert!(why.contains("stays a table"), "{}", why);
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let is = plain(values(&after));
            prop_assert_eq!(is, plain(wanted), "{}\n{}\n{}", pointer, text, after);
            text = after;
        }
    }

    /// A new key is exactly the key that was named, whatever characters it has; nothing else comes with it.
    #[test]
    fn any_key_is_one_key(
        key in prop_oneof![any::<String>(), "[]\\[\"'.#=\n\r\t\\\\ {}~/-]{0,6}", Just("__proto__".to_owned())],
        value in any_value(), at in prop_oneof![Just(""), Just("/sites/0"), Just("/upstreams/app"), Just("/new")],
    ) {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        let mut wanted = values(DOCUMENT);
        if at == "/new" {
            wanted["new"] = json!({});
        }
        match set(DOCUMENT, &pointer, Some(value.clone())) {
            Ok(after) => {
                let place = wanted.pointer_mut(at).unwrap().as_object_mut().unwrap();
                place.insert(key, value);
                prop_assert_eq!(plain(values(&after)), plain(wanted), "{}", after);
            }
            Err(RevisionError::Unfit(why)) => prop_assert!(pointer.len() > 1_000 || why.contains("stays a table"), "{}", why),
            Err(error) => panic!("{error}"),
        }
    }

    /// A value that is put in place of itself changes nothing; one that goes and comes back is what it was.
    #[test]
    fn what_is_equal_stays_as_it_is_written(index in any::<Index>(), value in any_value()) {
        let before = values(DOCUMENT);
        let mut all = Vec::new();
        pointers(&before, "", &mut all);
        let pointer = index.get(&all);
        let there = before.pointer(pointer).unwrap();
        prop_assert_eq!(set(DOCUMENT, pointer, Some(there.clone())).unwrap(), DOCUMENT);
        if let Ok(other) = set(DOCUMENT, pointer, Some(value))
            && let Ok(back) = set(&other, pointer, Some(there.clone()))
        {
            prop_assert_eq!(plain(values(&back)), plain(before));
        }
    }
}
