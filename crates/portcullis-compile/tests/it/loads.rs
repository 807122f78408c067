//! Rules that ModSecurity 2.9.7 loads load here, too; those that cannot work get a warning.
//! `portcullis-differential` shows the same list to Apache.

use std::sync::Arc;

use crate::common;
use portcullis_compile::compile;
use portcullis_engine::{NoCollections, RequestLine, Scratch, Transaction};
use portcullis_seclang::{Level, MemoryFiles, Root, parse};

const LIST: &str = include_str!("../loads/modsecurity2.txt");
const FOLDER: &str = "folder";

/// The sets of the list: whether there must be a warning, and the rules.
fn sets() -> impl Iterator<Item = (bool, String)> {
    LIST.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (mark, rules) = line.split_at(2);
        (mark == "w ", rules.replace(" ++ ", "\n").replace("FOLDER", FOLDER) + "\n")
    })
}

fn files() -> MemoryFiles {
    let mut files = MemoryFiles::default();
    files.0.insert(format!("{FOLDER}/empty.txt").into(), Vec::new());
    files
}

#[test]
fn what_modsecurity_2_loads_is_loaded_with_a_warning_where_it_cannot_work() {
    let files = files();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (must_warn, rules) in sets() {
        count += 1;
        let parsed =
            parse(&[Root::Text { name: "test.conf".into(), text: rules.clone().into_bytes() }], &files);
        let compiled = compile(&parsed.document, &parsed.sources, &files);
        let all: Vec<_> = parsed.diagnostics.iter().chain(&compiled.diagnostics).collect();
        let failed = all.iter().any(|diagnostic| diagnostic.severity == Level::Error);
        let warns = all.iter().any(|diagnostic| diagnostic.severity >= Level::Warning);
        if failed || compiled.plan.is_none() || must_warn != warns {
            let said: Vec<String> = all.iter().map(|diagnostic| diagnostic.render(&parsed.sources)).collect();
            wrong.push(format!("{rules}{}", said.concat()));
        }
    }
    assert!(count > 260, "{count}");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Ids of the rules that a GET of `target` matches.
fn matched(rules: &str, target: &str) -> Vec<u32> {
    let plan = common::plan(rules);
    let scratch = Scratch::default();
    let mut transaction =
        Transaction::new(Arc::clone(&plan), Arc::new(NoCollections), scratch, &common::connection());
    let line = format!("GET {target} HTTP/1.1");
    let line = RequestLine {
        line: line.as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let headers: [(&[u8], &[u8]); 1] = [(b"Host", b"h")];
    let _ = transaction.request_head(line, headers);
    let _ = transaction.request_end(false);
    transaction.finish();
    transaction.matches().iter().filter(|found| found.log).map(|found| plan.rule(found.rule).id.0).collect()
}

/// Rules that cannot work match neither as they are nor negated; the other rules are unaffected.
#[test]
fn what_cannot_work_is_silent_either_way() {
    let vain = [
        "REMOTE_ADDR|@inspectFile /bin/missing",
        "ARGS|@validateHash x",
        "ARGS|@gsbLookup x",
        "ARGS|@rx \\p{L}",
        "ARGS|@rx (?R)?",
        "ARGS|@rx (*UTF8)a",
        "WEBSERVER_ERROR_LOG|@rx .",
        "SCRIPT_FILENAME|@rx .",
        "XML:/a/following::b|@rx .",
    ];
    for (targets, operator) in vain.iter().filter_map(|rule| rule.split_once('|')) {
        for sign in ["", "!"] {
            let rules = format!(
                "SecRuleEngine On\nSecRule {targets} \"{sign}{operator}\" id:1,phase:2,deny\n\
                 SecRule ARGS \"@streq b\" id:2,phase:2,pass,log\n"
            );
            assert_eq!(matched(&rules, "/?a=b"), [2], "{rules}");
        }
    }
    // An empty list is known to be empty.
    let rules = "SecRuleEngine On\nSecRule ARGS \"!@ipMatch\" id:1,phase:2,pass,log\n";
    assert_eq!(matched(rules, "/?a=b"), [1]);
}

#[test]
fn arguments_of_no_number_compare_as_in_modsecurity_2() {
    for (argument, value, expected) in
        [("xxx", "0", true), ("1.5", "1", true), ("", "0", true), ("2x", "1", false)]
    {
        let rules = format!("SecRuleEngine On\nSecRule ARGS \"@eq {argument}\" id:1,phase:2,pass,log\n");
        assert_eq!(!matched(&rules, &format!("/?a={value}")).is_empty(), expected, "{argument} {value}");
    }
    let twice = "SecRuleEngine On\nSecRule ARGS b id:1,phase:5,id:2,phase:1,pass,log\n";
    assert_eq!(matched(twice, "/?a=b"), [2]);
}

const RULE: &str = "SecRule ARGS \"@streq b\" id:7,phase:2,pass,log\n";

/// A rule or a removal in a section is for its path; a path that only decodes to it is another one.
#[test]
fn sections_are_for_their_path() {
    let inside = |section: &str, close: &str| format!("SecRuleEngine On\n<{section}>\n{RULE}</{close}>\n");
    let removed = |section: &str, close: &str| {
        format!("SecRuleEngine On\n{RULE}<{section}>\nSecRuleRemoveById 7\n</{close}>\n")
    };
    let paths = [
        ("Location /admin", "Location", "/admin", true),
        ("Location /admin", "Location", "/admin/x", true),
        ("Location /admin/", "Location", "/administrator", false),
        ("Location \"/a.c\"", "Location", "/abc", false),
        ("Location ~ \"^/a.c$\"", "Location", "/abc", true),
        ("LocationMatch /sql\\.php", "LocationMatch", "/db/sql.php", true),
        ("LocationMatch /sql\\.php", "LocationMatch", "/db/sqlxphp", false),
        ("LocationMatch .*", "locationmatch", "/any", true),
    ];
    for (section, close, path, applies) in paths {
        let target = format!("{path}?a=b");
        assert_eq!(!matched(&inside(section, close), &target).is_empty(), applies, "{section} {path}");
        assert_eq!(matched(&removed(section, close), &target).is_empty(), applies, "{section} {path}");
    }
    let removal = removed("Location /admin", "Location");
    for other in ["/%61dmin?a=b", "/x/../admin?a=b", "//admin?a=b", "/other?a=b&p=/admin"] {
        assert_eq!(matched(&removal, other), [7], "{other}");
    }
    let off = format!("SecRuleEngine On\n<Location /off>\nSecRuleEngine Off\n</Location>\n{RULE}");
    assert!(matched(&off, "/off?a=b").is_empty());
    assert_eq!(matched(&off, "/on?a=b"), [7]);
    // Rules behind a section are for all paths again, chains and markers inside it or not.
    let chain = format!(
        "SecRuleEngine On\n<Location /x>\nSecRule ARGS b id:1,phase:2,pass,log,chain\nSecRule ARGS a\n</Location>\n{RULE}"
    );
    assert_eq!(matched(&chain, "/y?a=b"), [7]);
}

/// Targets that an update takes away in a section are gone for its path alone, however it names the rules.
#[test]
fn targets_are_taken_away_for_a_path() {
    let rule = "SecRule ARGS \"@streq b\" \"id:7,phase:2,pass,log,tag:'t/x',msg:'m x'\"\n";
    for update in [
        "SecRuleUpdateTargetById 7 !ARGS:a",
        "SecRuleUpdateTargetById 5-9 \"!ARGS:a,!ARGS:z\"",
        "SecRuleUpdateTargetByTag t/x \"!ARGS:/^a$/\"",
        "SecRuleUpdateTargetByMsg \"m x\" \"!ARGS:a\"",
    ] {
        for section in ["LocationMatch \"^/edit\"", "Location /edit"] {
            let name = section.split(' ').next().unwrap();
            let rules = format!("SecRuleEngine On\n{rule}<{section}>\n{update}\n</{name}>\n");
            assert!(matched(&rules, "/edit?a=b").is_empty(), "{rules}");
            assert_eq!(matched(&rules, "/edit?c=b"), [7], "{rules}");
            assert_eq!(matched(&rules, "/other?a=b"), [7], "{rules}");
        }
    }
    // Targets that an update adds or replaces cannot be limited to a path: the update is left out.
    for update in
        ["SecRuleUpdateTargetById 7 \"!ARGS:a,REQUEST_METHOD\"", "SecRuleUpdateTargetById 7 !ARGS:a ARGS"]
    {
        let rules = format!("SecRuleEngine On\n{rule}<Location /edit>\n{update}\n</Location>\n");
        assert_eq!(matched(&rules, "/edit?a=b"), [7], "{rules}");
    }
}

#[test]
fn sections_that_ask_for_modsecurity_are_read() {
    let read = |open: &str, close: &str| {
        !matched(&format!("SecRuleEngine On\n{open}\n{RULE}{close}\n"), "/?a=b").is_empty()
    };
    assert!(read("<IfModule mod_security2.c>", "</IfModule>"));
    assert!(read("<IfModule security2_module>", "</IfModule>"));
    assert!(read("<IfModule mod_headers.c>", "</IfModule>"));
    assert!(read("<IfDefine !X>", "</IfDefine>"));
    assert!(!read("<IfModule !mod_security2.c>", "</IfModule>"));
    assert!(!read("<IfDefine X>", "</IfDefine>"));
    assert!(!read("<Files x>", "</Files>"));
    assert!(!read("<Files x>\n<IfModule mod_security2.c>", "</IfModule>\n</Files>"));
}
