//! Engine against reference on generated rules and requests: same matches in the same order, same `TX`, same
//! interruption.
//!
//! The seed is printed with a difference; `PORTCULLIS_SEED=N` starts there, `PORTCULLIS_CASES=N` runs more.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use crate::support::Pair;
use portcullis_decode::Transformation;
use portcullis_engine::Stages;
use portcullis_reference::{Request, World};
use portcullis_seclang::operators::OperatorName;
use portcullis_seclang::{MemoryFiles, Root};
use portcullis_testkit::mmdb::{self, Value};
use portcullis_testkit::random::Random;

#[test]
fn generated_rules_and_requests() {
    let (first, cases) = (number("PORTCULLIS_SEED", 1), number("PORTCULLIS_CASES", 1_500));
    let stages: Vec<Stages> = Stages::each()
        .flat_map(|one| [Stages::ALL, Stages::ALL.without(one), one])
        .chain([Stages::NONE])
        .collect();
    let (mut pairs, mut matches) = (0u64, 0usize);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let text = rules(&mut random);
        let mut files = MemoryFiles::default();
        files.0.insert("geo.mmdb".into(), geography());
        let root = Root::Text { name: "generated.conf".into(), text: text.clone().into_bytes() };
        // A stage rules out only what no rule matches: without it, or with it alone, results are the same.
        let stages = stages[seed as usize % stages.len()];
        let pair = Pair::load(&[root], &files)
            .unwrap_or_else(|problem| panic!("seed {seed}: {problem}\n{text}"))
            .with_stages(stages);
        for _ in 0..6 {
            let request = request(&mut random);
            let (outcome, difference) = pair.compare(&request);
            matches += outcome.matches.len();
            pairs += 1;
            if let Some(difference) = difference {
                panic!(
                    "seed {seed}, {stages:?}: {difference}\n{text}\n{request:#?}\nreference: {:#?}",
                    outcome.matches
                );
            }
        }
    }
    assert_eq!(pairs, cases * 6);
    assert!(matches as u64 > pairs, "the rules hardly match: {matches} matches of {pairs} pairs");
}

/// The number in a variable of the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// A new operator is drawn, too, or is named here with the reason why not.
#[test]
fn every_operator_is_drawn() {
    // Data files, and what is not carried out.
    let others = [
        "fuzzyHash",
        "gsbLookup",
        "inspectFile",
        "ipMatchFromDataset",
        "ipMatchFromFile",
        "noMatch",
        "pmFromDataset",
        "pmFromFile",
        "restpath",
        "rsub",
        "validateDTD",
        "validateHash",
        "validateNid",
        "validateSchema",
        "verifyCPF",
        "verifySSN",
        "verifySVNR",
    ];
    for operator in OperatorName::ALL {
        let name = operator.name();
        let is_drawn = OPERATORS.iter().any(|text| text[1..].split(' ').next() == Some(name));
        assert_ne!(is_drawn, others.contains(&name), "@{name}");
    }
}

const XML_EXCLUSIONS: &[&str] =
    &["XML", "XML:/*", "XML://@*", "XML://b", "XML:/a", "XML://@x", "XML://b/text()", "XML:/a/*[1]"];
const TARGETS: &[&str] = &[
    "ARGS",
    "ARGS:a",
    "ARGS:/^[ab]/",
    "ARGS_NAMES",
    "ARGS_GET",
    "ARGS_POST",
    "ARGS_POST_NAMES",
    "ARGS_COMBINED_SIZE",
    "REQUEST_HEADERS",
    "REQUEST_HEADERS:x-a",
    "REQUEST_HEADERS_NAMES",
    "REQUEST_COOKIES",
    "REQUEST_COOKIES:a",
    "REQUEST_COOKIES_NAMES",
    "REQUEST_URI",
    "REQUEST_URI_RAW",
    "REQUEST_FILENAME",
    "REQUEST_BASENAME",
    "REQUEST_LINE",
    "REQUEST_METHOD",
    "REQUEST_PROTOCOL",
    "QUERY_STRING",
    "REQUEST_BODY",
    "REQBODY_PROCESSOR",
    "REMOTE_ADDR",
    "RESPONSE_STATUS",
    "STATUS_LINE",
    "RULE:msg",
    "RULE:logdata",
    "TX:10",
    "TX:Spelled",
    "UNIQUE_ID",
    "TX:n",
    "TX:s",
    "TX:1",
    "TX:/^k_/",
    "MATCHED_VAR",
    "MATCHED_VAR_NAME",
    "MATCHED_VARS",
    "HIGHEST_SEVERITY",
    "ENV:e",
    "USERID",
    "PATH_INFO",
    "FULL_REQUEST_LENGTH",
    "RULE:id",
    "RULE:severity",
    "REQBODY_AMBIGUITY",
    "FILES",
    "FILES_NAMES",
    "XML:/*",
    "XML://@*",
    "XML",
    "XML:/a/b",
    "XML://b",
    "XML://*",
    "XML://b[2]",
    "XML://*[last()]/@x",
    "XML://b[@x='1']/text()",
    "XML:/*/*[b]",
    "XML://*[text()='22']",
    "XML://*[.='ab']",
    "XML:'/a/b|//@x|//c'",
    "XML://xml:*",
    "GEO",
    "GEO:COUNTRY_CODE",
];
const WORDS: &[&str] = &[
    "a",
    "b",
    "ab",
    "1",
    "22",
    "x y",
    "Sel",
    "union",
    "../",
    "%41",
    "0",
    "10.2.3.4",
    "",
    "s%el",
    "%c0%bca",
    "%2541b",
    "process.env",
    "/etc/passwd",
    "cHJvY2Vzcy5lbnY=",
    "p r%4fcess.env",
    "c^at /et'c/pa\\sswd",
];
/// Lengths around those at which the engine changes its way of looking.
const LENGTHS: &[usize] = &[30, 31, 32, 33, 63, 64, 65, 126, 127, 128, 129, 254, 255, 256, 257, 300, 1_100];
/// Numbers of values, likewise.
const COUNTS: &[usize] = &[7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 300];
const OPERATORS: &[&str] = &[
    "@rx a",
    "@rx (?i)^(s)el|(u)n",
    "@rx ^.*$",
    "@rx (a)(b)?",
    "@rx \\d+",
    "@rx (?<!a)b(?=.)",
    "@rx (.)\\1",
    "@rx ^%{tx.s}",
    "@rx ^(a|%{tx.s}).*$",
    "@rx ^%{ARGS.a}$",
    "@rx %{nothing}a?b",
    "@rx \\1(a)",
    "@rx (?:\\2b|(a)(b))+",
    "@rxGlobal ([a-z])(\\d)?",
    "@verifyCC \\d{1,4}",
    "@strmatch a|62|",
    "@pm union ab",
    "@pm process.env etc/passwd",
    "@rx (?i)process\\.env|etc/passwd",
    "@rx (?i)(?:^|union )(?:ab|process\\.env)",
    "@rx p['^]*r['^]*ocess",
    "@rx ^[a-z ]{100,}$",
    "@rx =$",
    "@contains passwd",
    "@contains a",
    "@contains %{tx.s}",
    "@containsWord ab",
    "@within ab 22 %{tx.s}",
    "@streq ab",
    "@streq %{MATCHED_VAR}",
    "@beginsWith a",
    "@endsWith b",
    "@eq 1",
    "@ge %{tx.n}",
    "@gt 0",
    "@lt 22",
    "@le 0",
    "@detectSQLi",
    "@detectXSS",
    "@validateByteRange 32-96",
    "@validateByteRange",
    "@validateByteRange x,48-57",
    "@validateUrlEncoding",
    "@validateUtf8Encoding",
    "@ipMatch 127.0.0.0/8",
    "@rbl l.example",
    "@rbl zen.spamhaus.org",
    "@geoLookup",
    "@unconditionalMatch",
];
const MACROS: &[&str] = &["rule.logdata", "rule.msg", "rule.id", "tx.0", "MATCHED_VAR_NAME", "ARGS"];
const SUBSTITUTIONS: &[&str] = &[
    "s/a/<&>/",
    "s/(a)(b)?/\\2-\\1/",
    "s/^./x/",
    "s/x*/_/i",
    "s#s#%{tx.s}#i",
    "s/%{tx.s}/%{ARGS.a}/d",
    "s/\\/a//",
];
const DEFAULTS: &[&str] =
    &["pass", "deny", "pass,setvar:tx.d=+1", "pass,capture", "deny,pause:3", "pass,append:'%{MATCHED_VAR}'"];
const DISRUPTIVE: &[&str] = &[
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "pass",
    "block",
    "deny",
    "deny,status:406",
    "drop",
    "allow:phase",
    "allow:request",
    "redirect:http://h/",
    "redirect:http://h/,status:308",
];

fn rules(random: &mut Random) -> String {
    let mut text =
        String::from("SecRequestBodyAccess On\nSecResponseBodyAccess On\nSecGeoLookupDb geo.mmdb\n");
    let _ = writeln!(text, "SecRuleEngine {}", if random.chance(40) { "On" } else { "DetectionOnly" });
    if random.chance(30) {
        text.push_str("SecCompatibility ModSecurity3\n");
    }
    if random.chance(40) {
        text.push_str("SecSecondReadings On\n");
    }
    if random.chance(30) {
        let _ = writeln!(
            text,
            "SecDefaultAction \"phase:{},log,auditlog,{}\"",
            1 + random.below(4),
            random.pick(DEFAULTS)
        );
    }
    if random.chance(30) {
        let processor = random.pick(&["XML", "JSON", "URLENCODED", "MULTIPART"]);
        let _ =
            writeln!(text, "SecAction \"id:900,phase:1,pass,nolog,ctl:requestBodyProcessor={processor}\"");
    } else if random.chance(40) {
        text.push_str("SecAction \"id:901,phase:1,pass,nolog,ctl:forceRequestBodyVariable=On\"\n");
    }
    for (chance, directive) in
        [(50, "SecContentInjection"), (50, "SecStreamInBodyInspection"), (50, "SecStreamOutBodyInspection")]
    {
        let _ = writeln!(text, "{directive} {}", if random.chance(chance) { "On" } else { "Off" });
    }
    if random.chance(40) {
        let (phase, target) =
            if random.chance(50) { (2, "STREAM_INPUT_BODY") } else { (4, "STREAM_OUTPUT_BODY") };
        let argument = random.pick(SUBSTITUTIONS);
        let transformation = if random.chance(30) { "t:lowercase," } else { "" };
        let _ = writeln!(
            text,
            "SecRule {target} \"@rsub {argument}\" \"id:903,phase:{phase},pass,{transformation}setvar:'tx.r=%{{MATCHED_VAR}}'\""
        );
    }
    text.push_str("SecAction \"id:902,phase:1,pass,nolog,setvar:tx.n=1,setvar:tx.s=ab\"\n");
    // At times more than one block of candidates has room for.
    let count = if random.chance(1) { 270 } else { 3 + random.below(9) };
    for id in 1..=count {
        if random.chance(15) {
            let _ = writeln!(text, "SecMarker M{id}");
        }
        rule(random, &mut text, id, count);
    }
    text.push_str("SecMarker END\n");
    for _ in 0..random.below(3) {
        update(random, &mut text, count);
    }
    text
}

fn update(random: &mut Random, text: &mut String, count: usize) {
    let id = 1 + random.below(count);
    let _ = match random.below(12) {
        7 => writeln!(text, "SecRuleUpdateActionById {id} \"block\""),
        8 => writeln!(text, "SecRuleUpdateActionById {id} \"{}\"", random.pick(DISRUPTIVE)),
        9 => writeln!(
            text,
            "SecRuleUpdateActionById {id} \"{},block,{}\"",
            random.pick(DISRUPTIVE),
            random.pick(&["setvar:tx.n=+3", "status:409", "deny", "nolog"])
        ),
        10 => writeln!(text, "SecRuleUpdateTargetById {id}:{} \"!ARGS:b\"", random.below(3)),
        11 => writeln!(text, "SecRuleUpdateActionById {id}-{} \"deny\"", id + 1),
        5 => writeln!(text, "SecRuleUpdateTargetById {id} \"!{}\"", random.pick(XML_EXCLUSIONS)),
        6 => writeln!(
            text,
            "SecRuleUpdateTargetByTag t{} \"!{}\"",
            random.below(3),
            random.pick(XML_EXCLUSIONS)
        ),
        0 => writeln!(text, "SecRuleRemoveById {id}"),
        1 => writeln!(text, "SecRuleRemoveByTag t{}", random.below(3)),
        2 => writeln!(text, "SecRuleUpdateTargetById {id} \"!ARGS:a\""),
        3 => writeln!(text, "SecRuleUpdateTargetByTag t{} \"!REQUEST_COOKIES\"", random.below(3)),
        _ => writeln!(text, "SecRuleRemoveByMsg m{}", random.below(3)),
    };
}

fn rule(random: &mut Random, text: &mut String, id: usize, count: usize) {
    let phase = 1 + random.below(5);
    let links = if random.chance(25) { 2 + random.below(2) } else { 1 };
    for link in 0..links {
        let mut actions = Vec::new();
        if link == 0 {
            let disruptive = match random.chance(5) && phase < 3 {
                true => "proxy:http://h/%{tx.s}",
                false => random.pick(DISRUPTIVE),
            };
            actions.push(format!("id:{id},phase:{phase},{disruptive}"));
            if random.chance(10) {
                actions.push(format!("pause:{}", random.pick(&["20", "0", "%{tx.n}", "%{ARGS.a}"])));
            }
            actions.push(format!("tag:'t{}',msg:'m{} %{{MATCHED_VAR}}'", random.below(3), random.below(3)));
            if random.chance(30) {
                actions.push(format!("logdata:'%{{{}}}'", random.pick(MACROS)));
            }
            if random.chance(40) {
                actions.push(format!("severity:{}", 1 + random.below(6)));
            }
            if random.chance(15) && links == 1 {
                actions.push(format!(
                    "skipAfter:{}",
                    match random.below(4) {
                        0 | 1 => "END".into(),
                        2 => format!("M{}", id + 1),
                        _ => (id + 1 + random.below(3)).to_string(),
                    }
                ));
            } else if random.chance(10) {
                actions.push(format!("skip:{}", 1 + random.below(2)));
            }
        }
        for _ in 0..random.below(4) {
            let transformation = match random.chance(6) {
                true => "none",
                false => Transformation::ALL[random.below(Transformation::ALL.len())].name(),
            };
            actions.push(format!("t:{transformation}"));
        }
        acts(random, &mut actions, count);
        if link + 1 < links {
            actions.push("chain".into());
        }
        if random.chance(5) {
            // The one operator that is about files only, as they came.
            actions.push("t:none".to_owned());
            let not = if random.chance(30) { "!" } else { "" };
            let target =
                random.pick(&["FILES_TMPNAMES", "FILES_TMP_CONTENT", "FILES_TMPNAMES|FILES_TMP_CONTENT:f"]);
            let actions = actions.join(",");
            let _ = writeln!(text, "SecRule {target} \"{not}@inspectFile clamd:/c\" \"{actions}\"");
            continue;
        }
        let actions = actions.join(",");
        if random.chance(8) && link == 0 {
            let _ = writeln!(text, "SecAction \"{actions}\"");
        } else {
            let not = if random.chance(15) { "!" } else { "" };
            let _ = writeln!(
                text,
                "SecRule {} \"{not}{}\" \"{actions}\"",
                targets(random),
                random.pick(OPERATORS)
            );
        }
    }
}

fn targets(random: &mut Random) -> String {
    let mut list = Vec::new();
    for _ in 0..1 + random.below(3) {
        let target = random.pick(TARGETS);
        // Only collections can be counted.
        let collection = ["ARGS", "REQUEST_HEADERS", "REQUEST_COOKIES", "TX", "FILES"]
            .iter()
            .any(|name| target.starts_with(name) && target != "ARGS_COMBINED_SIZE");
        let counted = if collection && random.chance(15) { "&" } else { "" };
        list.push(format!("{counted}{target}"));
    }
    if random.chance(20) {
        let exclusion = random.pick(&["ARGS:a", "REQUEST_HEADERS:Host", "REQUEST_COOKIES", "ARGS:/b/"]);
        list.insert(random.below(list.len() + 1), format!("!{exclusion}"));
    }
    list.join("|")
}

fn acts(random: &mut Random, actions: &mut Vec<String>, count: usize) {
    const ACTS: &[&str] = &[
        "setvar:tx.n=+1",
        "setvar:tx.n=-2",
        "setvar:tx.n=%{tx.m}",
        "setvar:tx.m=+%{tx.n}",
        "setenv:e=%{tx.s}",
        "setenv:!e",
        "setvar:'tx.s=%{MATCHED_VAR}'",
        "setvar:!tx.s",
        "append:'<%{tx.n}>'",
        "prepend:'%{MATCHED_VAR}'",
        "setvar:'tx.k_%{MATCHED_VAR_NAME}=+1'",
        "setvar:'tx.c=%{tx.1}-%{tx.2}'",
        "setvar:'tx.u=%{REQUEST_METHOD} %{ARGS.a} %{rule.id}'",
        "setvar:'tx.r=%{rule.msg}%{rule.logdata}%{RULE.severity}'",
        "setvar:'tx.Spelled=%{tx.spelled}+'",
        "setvar:'tx.%{ARGS.a}=%{MATCHED_VARS}'",
        "initcol:ip=Kx_%{ARGS.a}_%{tx.Spelled}",
        "setvar:'tx.i=%{IP.KEY}'",
        "setvar:ip.n=+1",
        "capture",
        "multiMatch",
        "nolog",
        "noauditlog",
    ];
    for _ in 0..random.below(4) {
        actions.push(random.pick(ACTS).to_owned());
    }
    if random.chance(10) {
        let id = 1 + random.below(count);
        let ctl = match random.below(7) {
            5 => format!("ruleRemoveTargetById={id};{}", random.pick(XML_EXCLUSIONS)),
            6 => format!("ruleRemoveTargetByTag=t{};{}", random.below(3), random.pick(XML_EXCLUSIONS)),
            0 => format!("ruleRemoveById={id}"),
            1 => format!("ruleRemoveTargetById={id};ARGS:a"),
            2 => format!("ruleRemoveTargetById={id};REQUEST_COOKIES"),
            3 => format!("ruleRemoveByTag=t{}", random.below(3)),
            _ => "ruleEngine=DetectionOnly".to_owned(),
        };
        actions.push(format!("ctl:{ctl}"));
    }
}

/// Both addresses that can be met: as the database of the engine has them.
fn geography() -> Vec<u8> {
    let country = |code| Value::Map(vec![("country", Value::Map(vec![("iso_code", Value::Text(code))]))]);
    mmdb::write(&[
        ("192.0.2.1".parse().unwrap(), 32, country("DE")),
        ("10.2.3.4".parse().unwrap(), 32, country("US")),
    ])
}

fn world(random: &mut Random) -> World {
    let mut world = World::default();
    for name in ["1.2.0.192", "4.3.2.10", "a", "ab", "b", "1", "2", "22", "0", "union", "get"] {
        for zone in ["l.example", "zen.spamhaus.org"] {
            let answer = match random.below(5) {
                0 => continue,
                1 => None,
                n => Some(Ipv4Addr::new(127, 0, 0, n as u8 * 2)),
            };
            world.dns.insert(format!("{name}.{zone}").into(), answer);
        }
    }
    match random.below(3) {
        0 => drop(world.scans.insert("1".into(), Some("Evil-1".into()))),
        1 => drop(world.scans.insert("1".into(), None)),
        _ => {}
    }
    for (address, code, code3) in [("192.0.2.1", "DE", "DEU"), ("10.2.3.4", "US", "USA")] {
        let known = [
            ("COUNTRY_CODE", code),
            ("COUNTRY_CODE3", code3),
            ("COUNTRY_NAME", ""),
            ("COUNTRY_CONTINENT", ""),
            ("REGION", ""),
            ("CITY", ""),
            ("POSTAL_CODE", ""),
            ("LATITUDE", "0.000000"),
            ("LONGITUDE", "0.000000"),
            ("DMA_CODE", "0"),
            ("AREA_CODE", "0"),
        ];
        let place = known.map(|(key, value)| (key.into(), value.into()));
        world.places.insert(address.parse().unwrap(), place.to_vec());
    }
    world
}

/// A value: a word, at times in a text that is long.
fn value(random: &mut Random) -> String {
    let word = random.pick(WORDS);
    if !random.chance(12) {
        return word.to_owned();
    }
    const FILLERS: &[&str] =
        &["lorem ipsum ", "a", "7", "x=y+", "Some (text); 'quoted' ", "%20", "\u{e9}t\u{e9} ", "&lt; "];
    let length = LENGTHS[random.below(LENGTHS.len())];
    let filler = random.pick(FILLERS);
    let mut text = filler.repeat(length / filler.len() + 1);
    while text.len() + word.len() > length && !text.is_empty() {
        text.pop();
    }
    let at = if random.chance(50) { 0 } else { text.len() };
    text.insert_str(at, word);
    text
}

pub(crate) fn request(random: &mut Random) -> Request {
    let mut pairs = Vec::new();
    let count = if random.chance(3) { COUNTS[random.below(COUNTS.len())] } else { random.below(4) };
    for number in 0..count {
        let name = match random.pick(&["a", "b", "A", "c", "", "n"]) {
            "n" => format!("n{}", number / 2),
            name => name.to_owned(),
        };
        pairs.push(format!("{name}={}", value(random).replace(' ', "+").replace(['&', '#'], "")));
    }
    let query = pairs.join("&");
    let path = random.pick(&["/", "/a/b.php", "/%41b/..%2fc", "http://h/a", "/a?x", "/a;b=ab/;x%3fy"]);
    let uri =
        if pairs.is_empty() || path.contains('?') { path.to_owned() } else { format!("{path}?{query}") };
    let mut request = match random.below(7) {
        0 => Request::post(&uri, "application/x-www-form-urlencoded", query),
        1 => Request::post(
            &uri,
            "application/json",
            random.pick(&[r#"{"a":"ab","b":[1,{"c":null}]}"#, "{", "[22]", r#"{"s%el":"\u0000%2541"}"#]),
        ),
        2 => Request::post(&uri, "text/xml", random.pick(&[
            "<a b='ab'>22<c/>x</a>",
            "<a>",
            "<a>&lt;</a>",
            "<a><b x='1'>a<b x='22'>22</b>b</b><b>ab</b><c><b x='1'>1<!--x-->2<?p x?></b></c></a>",
            "<a xmlns='u'><b/></a>",
            "<?p ab?><a/>",
            "<a><p:b xmlns:p='u'>ab</p:b><b xmlns=''>22</b><b xmlns='u'>1</b><xml:b/><q:b x='1'>a<![CDATA[b]]></q:b></a>",
        ])),
        3 => {
            let body = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nab\r\n--B\r\nContent-Disposition: \
                        form-data; name=\"f\"; filename=\"x.php\"\r\n\r\n1\r\n--B--\r\n";
            Request::post(&uri, "multipart/form-data; boundary=B", body)
        }
        4 => {
            let body = random.pick(&["a=ab&b=x", r#"{"a":["ab",22]}"#, "<a b='ab'>22</a>", "ab"]);
            Request::post(&uri, random.pick(&["text/plain", "", "application/x-www-form-urlencoded"]), body)
        }
        5 => {
            let kind = random.pick(&["", "; charset=utf-7", "; charset=shift_jis"]);
            let part = "--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"\"\r\nContent-Type: text/plain; \
                        charset=big5\r\n\r\nab\r\n--x\r\n--B--\r\n";
            Request::post(&uri, &format!("multipart/form-data; boundary=B{kind}"), part)
        }
        _ => Request::get(&uri),
    };
    if random.chance(10) {
        request = request.header("X-Original-URL", "/y?a=ab&b=%c0%bca");
    }
    for _ in 0..random.below(3) {
        let name = random.pick(&["X-A", "x-a", "Host", "User-Agent"]);
        request = request.header(name, value(random));
    }
    if random.chance(40) {
        request = request
            .header("Cookie", random.pick(&["a=1; b=ab", "a", "=x; a=22", "a=1, b=ab", "a=1' or '1'='1"]));
    }
    request.world = world(random);
    if random.chance(60) {
        request = request.answered(200, random.pick(&["text/html", "image/png"]), value(random));
    }
    request
}
