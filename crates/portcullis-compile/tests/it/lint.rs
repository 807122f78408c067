//! Warnings about rules that are right as text and cannot do what they were written for.

use portcullis_seclang::MemoryFiles;
use portcullis_seclang::availability::availability;
use portcullis_types::{Phase, Shape, Variable};

use crate::common::{self, Message, Response};

/// What is said about rules that load: place and message of each diagnostic, without excerpt and hint.
#[track_caller]
fn said(rules: &str) -> Vec<String> {
    let (plan, said) = common::plan_and_said(rules, &MemoryFiles::default());
    assert!(plan.is_some(), "{said}");
    said.lines().filter_map(|line| Some(line.strip_prefix("test.conf:")?.to_owned())).collect()
}

/// The rules are fine.
#[track_caller]
fn silent(rules: &str) {
    assert_eq!(said(rules), Vec::<String>::new(), "{rules}");
}

/// There is one diagnostic, with this place and text in it, and a hint.
#[track_caller]
fn warned(rules: &str, place: &str, message: &str) {
    let found = said(rules);
    assert!(
        found.len() == 1 && found[0].starts_with(place) && found[0].contains(message),
        "{rules}\nexpected {place} ... {message}, found {found:#?}"
    );
    let shown = common::plan_and_said(rules, &MemoryFiles::default()).1;
    assert!(shown.contains("= hint: "), "{shown}");
}

const ON: &str = "SecRuleEngine On\nSecRequestBodyAccess On\nSecResponseBodyAccess On\n";

/// The table of availability is that of the engine: with all there is in a message, a variable has no value
/// before its phase and, if the message can give it one, has a value in it.
#[test]
fn the_table_of_availability_is_true() {
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; \
                     name=\"f\"; filename=\"n.txt\"\r\n\r\nx\r\n--b--\r\n";
    let bodies: [(&str, &str); 3] = [
        ("application/x-www-form-urlencoded", "a=1&b=2"),
        ("multipart/form-data; boundary=b", multipart),
        ("text/xml", "<a><b>c</b></a>"),
    ];
    let mut with_values = 0;
    for &variable in Variable::ALL {
        let available = availability(variable);
        if available.from == Phase::RequestHeaders || !is_read_here(variable) {
            continue;
        }
        let selector = if variable.shape() == Shape::Xpath { ":/*" } else { "" };
        let rules: String = Phase::ALL
            .map(|phase| {
                let id = phase.number();
                // Flags are 0 until something sets them, and texts empty.
                format!(
                    "SecRule {}{selector} \"!@rx ^0?$\" \"id:{id},phase:{id},pass,log,t:none\"\n",
                    variable.name()
                )
            })
            .concat();
        let plan = common::plan_and_said(
            &format!("{ON}SecStreamInBodyInspection On\nSecStreamOutBodyInspection On\nSecRule REQUEST_HEADERS:Content-Type \"@contains xml\" \
                      \"id:9,phase:1,pass,nolog,ctl:requestBodyProcessor=XML\"\nSecAction \"id:8,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"\n{rules}"),
            &MemoryFiles::default(),
        )
        .0
        .expect("it loads");
        let plan = std::sync::Arc::new(plan);
        let mut phases = Vec::new();
        for (kind, body) in bodies {
            let headers: [(&[u8], &[u8]); 3] =
                [(b"Host", b"h"), (b"Content-Type", kind.as_bytes()), (b"Content-Length", b"1")];
            let response: [(&[u8], &[u8]); 2] = [(b"Content-Type", b"text/html"), (b"Content-Length", b"3")];
            let message = Message {
                line: "POST /a?q=1 HTTP/1.1",
                headers: &headers,
                body: body.as_bytes(),
                response: Some(Response { status: 200, headers: &response, body: b"<p>" }),
            };
            let seen = common::assert_equivalent(&plan, &mut Default::default(), &message);
            phases.extend(seen.logged());
        }
        let first = phases.iter().min().copied();
        assert!(
            first.is_none_or(|first| first >= u32::from(available.from.number())),
            "{variable:?} {first:?}"
        );
        with_values += usize::from(first == Some(u32::from(available.from.number())));
    }
    assert!(with_values >= 20, "only {with_values} variables were seen with a value");
}

fn is_read_here(variable: Variable) -> bool {
    use portcullis_seclang::standing::{self, Standing};
    matches!(standing::variable(variable), Standing::Works | Standing::Differs(_))
}

#[test]
fn what_is_read_too_early_is_named_with_the_phase_that_has_it() {
    warned(
        "SecRule ARGS_POST:user \"@streq evil\" \"id:1,phase:1,deny\"",
        "1:9: warning",
        "ARGS_POST has no value in phase 1: it gets one in phase 2",
    );
    for (variable, phase, from) in [
        ("REQUEST_BODY", 1, 2),
        ("FILES", 1, 2),
        ("MULTIPART_STRICT_ERROR", 1, 2),
        ("XML:/*", 1, 2),
        ("RESPONSE_STATUS", 2, 3),
        ("RESPONSE_HEADERS:Server", 1, 3),
    ] {
        let rules = format!("{ON}SecRule ARGS|{variable} \"@rx x\" \"id:1,phase:{phase},pass\"");
        warned(
            &rules,
            "4:14: warning",
            &format!("has no value in phase {phase}: it gets one in phase {from}"),
        );
        silent(&rules.replace(&format!("phase:{phase}"), &format!("phase:{from}")));
    }
    let rules = format!("{ON}SecRule RESPONSE_BODY \"@rx x\" \"id:1,phase:3,pass\"");
    warned(&rules, "4:9", "gets one in phase 4");
    // A link of a chain runs in the phase of its first rule; exclusions read nothing.
    warned(
        "SecRule ARGS \"@rx x\" \"id:1,phase:1,pass,chain\"\nSecRule &FILES \"@gt 0\"\n",
        "2:9",
        "FILES has no value in phase 1",
    );
    silent("SecRule ARGS|!ARGS_POST:a \"@rx x\" \"id:1,phase:1,pass\"");
}

/// One note for all rules; whether bodies of requests are looked at may be said in another file.
#[test]
fn bodies_that_are_not_looked_at_are_noted_once() {
    let rules = "SecRule RESPONSE_BODY \"@rx x\" \"id:1,phase:4,pass\"\nSecRule RESPONSE_BODY \"@rx y\" \"id:2,phase:4,pass\"\n";
    warned(rules, "1:9: note", "SecResponseBodyAccess is not On (and 1 more place)");
    silent(&format!("{ON}{rules}"));
    silent(&format!("SecAction \"id:3,phase:1,pass,nolog,ctl:responseBodyAccess=On\"\n{rules}"));
    let rules = "SecRule REQUEST_BODY \"@rx x\" \"id:1,phase:2,pass\"\n";
    silent(rules);
    warned(&format!("SecRequestBodyAccess Off\n{rules}"), "2:9: note", "SecRequestBodyAccess is Off");
}

#[test]
fn collections_and_lookups_come_before_who_reads_them() {
    for (target, open, phase) in [
        ("IP:blocked", "initcol:ip=%{REMOTE_ADDR}", 1),
        ("SESSION:attempts", "setsid:%{REQUEST_COOKIES.id}", 2),
        ("USER:a", "setuid:%{REMOTE_USER}", 2),
        ("GLOBAL:a", "initcol:global=global", 5),
        ("RESOURCE:a", "initcol:resource=%{REQUEST_FILENAME}", 2),
        ("SESSIONID", "setsid:%{REQUEST_COOKIES.id}", 2),
    ] {
        let reader = format!("SecRule {target} \"@rx 1\" \"id:1,phase:{phase},pass\"\n");
        let opens = |phase| format!("SecAction \"id:2,phase:{phase},pass,nolog,{open}\"\n");
        warned(&reader, "1:9: warning", "has no value: no rule opens a record of it");
        silent(&format!("{}{reader}", opens(1)));
        let later = "no rule before this one opens a record of it, a later one does";
        if phase == 1 {
            warned(&format!("{reader}{}", opens(1)), "1:9", later);
            warned(&format!("{}{reader}", opens(2)), "2:9", later);
        } else {
            silent(&format!("{reader}{}", opens(1)));
        }
        // Its own chain may open it.
        let chain = format!(
            "SecRule ARGS \"@rx a\" \"id:1,phase:1,pass,{open},chain\"\nSecRule {target} \"@rx 1\"\n"
        );
        silent(&chain);
    }
    let reader = "SecRule GEO:COUNTRY_CODE \"@pm CN RU\" \"id:1,phase:1,deny\"\n";
    warned(reader, "1:9: warning", "GEO has no value: no rule looks an address up");
    // Without a database that warning is about the lookup.
    warned(
        &format!("SecRule REMOTE_ADDR \"@geoLookup\" \"id:2,phase:1,pass,nolog\"\n{reader}"),
        "1:21",
        "@geoLookup",
    );
}

#[test]
fn a_key_of_tx_has_someone_who_sets_it() {
    let reader = "SecRule TX:blocked \"@eq 1\" \"id:1,phase:2,deny\"\n";
    let set = |key: &str| format!("SecAction \"id:2,phase:1,pass,nolog,setvar:tx.{key}=1\"\n{reader}");
    warned(reader, "1:9: warning", "TX:blocked has no value: no rule sets it");
    silent(&set("BLOCKED"));
    silent(&set("%{REMOTE_ADDR}ed"));
    let (_, said) = common::plan_and_said(&set("blokced"), &MemoryFiles::default());
    assert!(said.contains("did you mean TX:blokced?"), "{said}");
    warned(&set("!blocked"), "2:9", "no rule sets it");
    warned(
        &format!("{reader}SecAction \"id:2,phase:5,pass,nolog,setvar:tx.blocked=1\"\n"),
        "1:9",
        "no rule before this one sets it, a later one does",
    );
    // Whether a key is set is a question of its own; a rule that was removed set it once; a comment names
    // options.
    silent(&format!("{reader}SecRule &TX:blocked \"@eq 0\" \"id:3,phase:2,pass\"\n"));
    silent(&format!("{}SecRuleRemoveById 2\n", set("blocked")));
    silent(&format!("{reader}# SecAction \"id:3,phase:1,pass,setvar:'tx.blocked=1'\"\n"));
    // Captures, and what the engine sets itself.
    let capture = "SecRule TX:1 \"@eq 1\" \"id:1,phase:2,deny\"\n";
    warned(capture, "1:9", "TX:1 has no value: no rule captures");
    silent(&format!("SecRule ARGS \"@rx (a)\" \"id:2,phase:2,pass,capture\"\n{capture}"));
    silent("SecRule TX:MSC_PCRE_LIMITS_EXCEEDED \"@eq 1\" \"id:1,phase:2,deny\"\n");
    // Patterns, and macros of operators.
    warned("SecRule TX:/^x_/ \"@rx a\" \"id:1,phase:2,deny\"\n", "1:9", "no rule sets such a key");
    silent(
        "SecAction \"id:2,phase:1,pass,nolog,setvar:tx.X_1=a\"\nSecRule TX:/^x_/ \"@rx a\" \"id:1,phase:2,deny\"\n",
    );
    warned("SecRule &ARGS \"@gt %{tx.max}\" \"id:1,phase:2,deny\"\n", "1:15", "TX:max has no value");
    // The same key in many rules is one thing to mend.
    let twice = format!("{reader}{}", reader.replace("id:1", "id:3"));
    warned(&twice, "1:9", "no rule sets it (and 1 more place)");
}

/// Rules that a program made, each with a mistake of its own: similar names are looked for a few times only.
#[test]
fn many_mistakes_are_all_found() {
    let rule = |id: u32| {
        format!(
            "SecRule TX:read_{id} \"@eq 1\" \"id:{id},phase:2,pass,nolog,setvar:tx.set_{id}=+1\"\n# a comment\n"
        )
    };
    let rules: String = (1..=8_000).map(rule).collect();
    assert_eq!(said(&rules).len(), 8_000);
}

#[test]
fn a_path_is_not_compared_with_the_target_of_the_request() {
    for operator in ["@streq /login", "!@streq /", "@endsWith .php", "@within /a /b /c", "@rx ^/login\\.php$"]
    {
        for variable in ["REQUEST_URI", "REQUEST_URI_RAW"] {
            let rules = format!("SecRule {variable} \"{operator}\" \"id:1,phase:1,pass\"\n");
            warned(&rules, "1:9: warning", &format!("{variable} has the query, too"));
            silent(&rules.replace(variable, "REQUEST_FILENAME"));
            silent(&rules.replace(variable, &format!("REQUEST_FILENAME|{variable}")));
        }
    }
    for operator in [
        "@streq /login?a=b",
        "@beginsWith /login",
        "@contains /login",
        "@endsWith =1",
        "@rx ^/login",
        "@rx ^/a(?:\\\\?.*)?$",
        "@streq http://a/b",
        "@streq %{ENV.path}",
        "@within GET POST",
        "@rx /(?:a|b)$",
    ] {
        silent(&format!("SecRule REQUEST_URI \"{operator}\" \"id:1,phase:1,pass\"\n"));
    }
}

#[test]
fn arguments_of_json_have_the_names_of_the_version() {
    let rule = "SecRule ARGS \"@rx x\" \"id:1,phase:2,deny,tag:t\"\n";
    let update = |name: &str| format!("{rule}SecRuleUpdateTargetById 1 \"!ARGS:{name}\"\n");
    warned(&update("json.user.name"), "2:28: note", "arguments of JSON bodies have no `json.`");
    for (name, expected) in [
        ("json.user.name", "ARGS:user.name"),
        ("JSON.list.array_3.a", "ARGS:list.list.a"),
        ("json.array_0", "ARGS:array.array"),
    ] {
        let (_, said) = common::plan_and_said(&update(name), &MemoryFiles::default());
        assert!(said.contains(&format!("write {expected}, or SecCompatibility ModSecurity3")), "{said}");
        silent(&format!("SecCompatibility ModSecurity3\n{}", update(name)));
    }
    silent(&update("user.name"));
    silent(&update("json"));
    // Both names beside each other are for both versions.
    silent(&format!("{rule}SecRuleUpdateTargetById 1 \"!ARGS:json.a,!ARGS:a\"\n"));
    let ctl = |more: &str| {
        format!("{rule}SecAction \"id:2,phase:1,pass,nolog,ctl:ruleRemoveTargetById=1;ARGS:json.a{more}\"\n")
    };
    warned(&ctl(""), "2:36: note", "arguments of JSON bodies");
    silent(&ctl(",ctl:ruleRemoveTargetByTag=t;ARGS:a"));
    // A rule that finds nothing is worse than an exclusion that takes nothing away.
    warned(
        "SecRule ARGS:json.a \"@rx x\" \"id:1,phase:2,deny\"\n",
        "1:9: warning",
        "arguments of JSON bodies",
    );
}

const RULES: &str = "SecRule ARGS|REQUEST_HEADERS:User-Agent \"@rx x\" \"id:10,phase:2,pass,msg:'found',tag:'attack',chain\"\n\
                     SecRule REQUEST_COOKIES \"@rx y\"\n";

#[test]
fn removals_and_exclusions_name_what_is_loaded() {
    for (directive, what) in [
        ("SecRuleRemoveById 11", "no rule before this line with the id 11"),
        ("SecRuleRemoveById 10 20-30 40", "with the id 20-30 40"),
        ("SecRuleRemoveByTag none", "with a tag that matches"),
        ("SecRuleRemoveByMsg none", "with a message that matches"),
        ("SecRuleUpdateTargetById 11 !ARGS:a", "with the id 11"),
        ("SecRuleUpdateTargetById 10 !ARGS_GET:a", "do not look at ARGS_GET:a"),
        ("SecRuleUpdateTargetById 10 !REQUEST_HEADERS:Referer", "do not look at REQUEST_HEADERS:Referer"),
        ("SecRuleUpdateTargetByTag attack !TX", "do not look at TX"),
    ] {
        warned(&format!("{RULES}{directive}\n"), "3:", what);
        warned(&format!("{directive}\n").replace("10", "11"), "1:", "no rule before this line");
    }
    for directive in [
        "SecRuleRemoveById 10",
        "SecRuleRemoveByTag attack",
        "SecRuleUpdateTargetById 10 !ARGS:a",
        "SecRuleUpdateTargetById 10 !ARGS",
        "SecRuleUpdateTargetById 10 !REQUEST_HEADERS:user-agent",
        "SecRuleUpdateTargetById 10 !REQUEST_COOKIES:a",
        "SecRuleUpdateTargetById 10 TX:/^a/",
        "SecRuleRemoveById 1-20",
    ] {
        silent(&format!("SecAction \"id:1,phase:1,pass,nolog,setvar:tx.a=1\"\n{RULES}{directive}\n"));
    }
    for (ctl, what) in [
        ("ruleRemoveById=11", "no rule is loaded with the id 11"),
        ("ruleRemoveByTag=none", "no rule is loaded with a tag"),
        ("ruleRemoveTargetById=11;ARGS:a", "no rule is loaded with the id 11"),
        ("ruleRemoveTargetById=10;TX:a", "do not look at TX:a"),
        // Only the link with the id, as in ModSecurity.
        ("ruleRemoveTargetById=10;REQUEST_COOKIES:a", "do not look at REQUEST_COOKIES:a"),
    ] {
        let rules = format!("SecAction \"id:1,phase:1,pass,nolog,ctl:{ctl}\"\n{RULES}");
        warned(&rules, "1:36: warning", what);
    }
    for ctl in [
        "ruleRemoveById=10",
        "ruleRemoveByTag=att",
        "ruleRemoveTargetById=10;ARGS:a",
        "ruleRemoveTargetByTag=attack;ARGS",
    ] {
        silent(&format!("SecAction \"id:1,phase:1,pass,nolog,ctl:{ctl}\"\n{RULES}"));
    }
}

/// libmodsecurity looks up what was changed when a rule runs, wherever the change stands.
#[test]
fn changes_may_stand_before_the_rules_in_modsecurity_3() {
    let mode = "SecCompatibility ModSecurity3\n";
    for change in [
        "SecRuleRemoveById 10",
        "SecRuleRemoveByTag attack",
        "SecRuleUpdateTargetById 10 !ARGS:a",
        "SecRuleUpdateActionById 10 log",
    ] {
        silent(&format!("{mode}{change}\n{RULES}"));
        warned(&format!("{change}\n{RULES}"), "1:1: warning", "no rule before this line");
    }
    warned(
        &format!("{mode}SecRuleRemoveById 11\n{RULES}"),
        "2:1: warning",
        "no rule is loaded with the id 11",
    );
    let rules = format!(
        "{mode}SecRuleEngine On\nSecRuleRemoveById 1\nSecRule ARGS \"@rx x\" \"id:1,phase:1,deny\"\n"
    );
    assert!(common::plan(&rules).rules.is_empty());
}

const SCORING: &str = "SecAction \"id:8,phase:1,pass,nolog,setvar:tx.points=0\"\nSecDefaultAction \"phase:2,pass,log\"\n\
     SecRule ARGS \"@rx x\" \"id:1,phase:2,block,setvar:tx.points=+5\"\n\
     SecRule ARGS \"@rx y\" \"id:2,phase:2,block,setvar:tx.points=+5\"\n\
     SecRule TX:POINTS \"@ge 5\" \"id:3,phase:1,deny,chain\"\nSecRule &TX:early \"@eq 1\"\n\
     SecRule TX:POINTS \"@ge 5\" \"id:4,phase:2,deny\"\n\
     SecRule TX:OUT \"@ge 5\" \"id:6,phase:4,deny\"\nSecAction \"id:7,phase:3,pass,nolog,setvar:tx.out=+1\"\n";

/// Whatever its id is: the rule that compares the points and denies.
#[test]
fn the_rule_that_makes_the_decision_is_not_removed_by_mistake() {
    let denies = "rule 4 is the one that denies";
    warned(&format!("{SCORING}SecRuleRemoveById 4\n"), "10:", denies);
    warned(&format!("{SCORING}SecRuleRemoveById 3-4\n"), "10:", denies);
    let by_path = "SecRule REQUEST_FILENAME \"@streq /a\" \"id:9,phase:1,pass,nolog,ctl:ruleRemoveById=4\"\n";
    warned(&format!("{SCORING}{by_path}"), "10:", denies);
    warned(&format!("{SCORING}SecRuleUpdateTargetById 4 !ARGS:x\n"), "10:", "do not look at ARGS:x");
    // Not the last of its kind, not the decision, or the points are gone, too.
    let own = "SecRule TX:POINTS \"@ge 7\" \"id:5,phase:2,deny\"\n";
    silent(&format!("{SCORING}{own}SecRuleRemoveById 4\n"));
    silent(&format!("{SCORING}SecRuleRemoveById 1\n"));
    silent(&format!("{SCORING}SecRuleRemoveById 3\n"));
    silent(&format!("{SCORING}SecRuleRemoveById 1-4\n"));
    silent(&format!("{SCORING}{}", by_path.replace("=4", "=1-4")));
    silent(&format!("{SCORING}{}", by_path.replace("=4", "=3")));
    // Where each rule denies by itself, no other makes the decision.
    let deny = SCORING.replace("phase:2,pass,log", "phase:2,deny,log");
    silent(&format!("{deny}SecRuleRemoveById 4\n"));
}

/// What is said about a release of the CRS with these files around it.
fn said_of_crs(folder: &std::path::Path, before: &str, plugins: &[std::path::PathBuf]) -> Vec<String> {
    use portcullis_seclang::{DiskFiles, Root, parse};
    let plugin = |suffix: &str| {
        let files = plugins.iter().map(move |plugin| Root::Optional(plugin.join(suffix)));
        files.collect::<Vec<_>>()
    };
    let roots = [
        vec![Root::Text { name: "before.conf".into(), text: before.into() }],
        ["crs-setup.conf", "crs-setup.conf.example"].map(|name| Root::Optional(folder.join(name))).to_vec(),
        plugin("*-config.conf"),
        plugin("*-before.conf"),
        vec![Root::File(folder.join("rules/*.conf"))],
        plugin("*-after.conf"),
    ]
    .concat();
    let parsed = parse(&roots, &DiskFiles);
    let compiled = portcullis_compile::compile(&parsed.document, &parsed.sources, &DiskFiles);
    let all = parsed.diagnostics.iter().chain(&compiled.diagnostics);
    all.map(|diagnostic| diagnostic.render(&parsed.sources)).collect()
}

/// Nothing is said about the CRS but what is true: that it reads response bodies where none are shown to it,
/// and that one of its exclusions has a name of ModSecurity 3.
#[test]
fn the_crs_is_fine() {
    let newest = portcullis_testkit::crs::rules().unwrap_or_else(|missing| panic!("{missing}"));
    let older = newest.with_file_name("crs-4.22.0");
    for folder in [newest, older].iter().filter(|folder| folder.join("rules").is_dir()) {
        let mut said = said_of_crs(folder, ON, &[]);
        said.retain(|said| !said.contains("note: ARGS_NAMES: arguments of JSON bodies"));
        assert!(said.is_empty(), "{}:\n{}", folder.display(), said.concat());
        let said = said_of_crs(
            folder,
            "SecCompatibility ModSecurity3\nSecRuleEngine On\nSecRequestBodyAccess On\n",
            &[],
        );
        assert!(said.len() == 1 && said[0].contains("note: RESPONSE_BODY has no value"), "{}", said.concat());
    }
}

/// Plugins of the CRS, each by itself, in folders below `PORTCULLIS_CRS_PLUGINS`: shows what is said about
/// them.
#[test]
#[ignore = "needs plugins of the CRS: PORTCULLIS_CRS_PLUGINS=FOLDER cargo test -p portcullis-compile --test it -- --ignored plugins"]
fn plugins_of_the_crs() {
    let folder = std::env::var_os("PORTCULLIS_CRS_PLUGINS").expect("PORTCULLIS_CRS_PLUGINS names a folder");
    let crs = portcullis_testkit::crs::rules().unwrap_or_else(|missing| panic!("{missing}"));
    let mut plugins: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("plugins")).collect();
    plugins.sort();
    for plugin in plugins {
        let said = said_of_crs(&crs, ON, std::slice::from_ref(&plugin));
        println!("{}: {}\n{}", plugin.display(), said.len(), said.concat());
    }
}
