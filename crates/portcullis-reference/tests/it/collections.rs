//! Engine with the real store against the reference with its plain one: generated rules over persistent
//! collections, and requests one after the other while time passes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use crate::support::Pair;
use portcullis_reference::{Database, Request};
use portcullis_seclang::{MemoryFiles, Root};
use portcullis_store::Store;
use portcullis_testkit::random::Random;

const CASES: u64 = 400;
const REQUESTS: u64 = 12;

#[test]
fn generated_sequences() {
    let mut matches = 0;
    for seed in 1..=CASES {
        let mut random = Random::new(seed);
        let text = rules(&mut random);
        let files = MemoryFiles::default();
        let root = Root::Text { name: "generated.conf".into(), text: text.clone().into_bytes() };
        let pair =
            Pair::load(&[root], &files).unwrap_or_else(|problem| panic!("seed {seed}: {problem}\n{text}"));
        let store = Arc::new(Store::default());
        let (mut database, mut clock) = (Database::default(), 1_700_000_000);
        for number in 1..=REQUESTS {
            clock += random.below(40) as u64;
            let request = Request {
                time: UNIX_EPOCH + Duration::from_secs(clock),
                ..Request::get(&format!("/?k={}&v={}", random.below(2), random.pick(VALUES)))
            };
            let (outcome, difference) = pair.compare_after(&request, &mut database, store.clone());
            matches += outcome.matches.len() as u64;
            if let Some(difference) = difference {
                panic!("seed {seed}, request {number}: {difference}\n{text}\n{request:#?}\n{database:#?}");
            }
        }
    }
    assert!(matches > CASES * REQUESTS * 4, "the rules hardly match: {matches}");
}

const VALUES: &[&str] = &["0", "1", "5", "05", "-3", "x", "", "99999", "3x", "a%20b", "%01", "%5c"];
const COLLECTIONS: &[&str] = &["ip", "IP", "global", "session", "user", "resource"];
const OPENING: &[&str] = &[
    "initcol:ip=%{ARGS.k}",
    "initcol:ip=192.0.2.1_%{ARGS.k}",
    "initcol:global=global",
    "initcol:resource=%{REQUEST_FILENAME}",
    "initcol:session=%{ARGS.k}",
    "initcol:user=u",
    "setsid:%{ARGS.k}",
    "setuid:u%{ARGS.k}",
    "setrsc:/r",
];
const KEYS: &[&str] = &[
    "n",
    "N",
    "m",
    "n_%{ARGS.k}",
    "%{ARGS.v}",
    "TIMEOUT",
    "timeout",
    "KEY",
    "UPDATE_COUNTER",
    "LAST_UPDATE_TIME",
    "IS_NEW",
    "UPDATE_RATE",
    "CREATE_TIME",
    "__expire_n",
    "__expire_KEY",
    "__name",
];
const PLAIN: &[&str] = &["n", "N", "m", "n_%{ARGS.k}"];
const AMOUNTS: &[&str] = &[
    "+1",
    "+5",
    "-2",
    "=+1",
    "=3",
    "=%{ARGS.v}",
    "=+%{ARGS.v}",
    "=-%{ARGS.v}",
    "=%{ip.n}",
    "=+%{session.m}",
    "=abc",
    "=",
];

fn change(random: &mut Random) -> String {
    // Mostly variables of one's own: with KEY gone nothing lasts.
    let keys = if random.below(6) == 0 { KEYS } else { PLAIN };
    let (collection, key) = (random.pick(COLLECTIONS), random.pick(keys));
    match random.below(8) {
        0 => format!("setvar:!{collection}.{key}"),
        // A note about a note has no meaning.
        1 if !key.starts_with("__") => {
            format!("expirevar:'{collection}.{key}={}'", random.pick(&["1", "30", "%{ARGS.v}", "60", "0"]))
        }
        2 => format!(
            "deprecatevar:'{collection}.{key}={}/{}'",
            random.pick(&["1", "5", "%{ARGS.v}"]),
            random.pick(&["1", "7", "20"])
        ),
        _ => {
            let amount = random.pick(AMOUNTS);
            let sign = if amount.starts_with('=') { "" } else { "=" };
            format!("setvar:'{collection}.{key}{sign}{amount}'")
        }
    }
}

fn rules(random: &mut Random) -> String {
    let mut text = String::from("SecRuleEngine On\n");
    if random.below(3) == 0 {
        let _ = writeln!(text, "SecCollectionTimeout {}", 10 + random.below(60));
    }
    if random.below(3) == 0 {
        text.push_str("SecWebAppId shop\n");
    }
    for id in 1..=3 {
        let _ = writeln!(text, "SecAction \"id:{id},phase:1,pass,nolog,{}\"", random.pick(OPENING));
    }
    for id in 10..14 + random.below(5) {
        let phase = random.pick(&["1", "1", "2", "5"]);
        let mut actions = format!("id:{id},phase:{phase},pass");
        for _ in 0..1 + random.below(3) {
            let _ = write!(actions, ",{}", change(random));
        }
        let collection = random.pick(COLLECTIONS).to_uppercase();
        let target = match random.below(6) {
            0 => format!("&{collection}:n"),
            1 => format!("{collection}:/./"),
            2 => format!("{collection}:/^n/"),
            3 => format!(
                "{collection}:{}",
                random.pick(KEYS).replace("%{ARGS.k}", "0").replace("%{ARGS.v}", "5")
            ),
            4 => "SESSIONID|USERID|WEBAPPID".into(),
            _ => "ARGS:v".into(),
        };
        let operator = random.pick(&["@rx .", "@unconditionalMatch", "@gt 2", "@eq %{ip.n}", "@lt 4"]);
        let _ = writeln!(text, "SecRule {target} \"{operator}\" \"{actions}\"");
    }
    for id in 30..35 {
        // The whole collection, in order.
        let collection = COLLECTIONS[id - 29].to_uppercase();
        let _ = writeln!(
            text,
            "SecRule {collection}:/./ \"@unconditionalMatch\" \"id:{id},phase:5,pass,nolog,setvar:'tx.m_%{{MATCHED_VAR_NAME}}=%{{MATCHED_VAR}}'\""
        );
    }
    text.push_str(
        "SecAction \"id:40,phase:5,pass,nolog,setvar:'tx.n=%{ip.n}-%{session.n}-%{SESSIONID}-%{USERID}'\"\n",
    );
    text
}
