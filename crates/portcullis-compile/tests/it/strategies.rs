//! Strategies change no verdict: any set of them gives the same interruption, logged matches and `TX`, in the
//! same order.

use std::sync::Arc;

use portcullis_engine::{NoCollections, Plan, Progress, RequestLine, Scratch, Strategies, Transaction};

use crate::common::{connection, plan};

/// The observable result of a transaction: its end, its logged matches, `TX`.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    ends: Vec<Progress>,
    matches: Vec<String>,
    tx: Vec<(Vec<u8>, Vec<u8>)>,
}

fn run(plan: &Arc<Plan>, request: (&str, &str), strategies: Strategies, quiet: bool) -> Shown {
    let (target, body) = request;
    let collections = Arc::new(NoCollections);
    let mut transaction = Transaction::new(Arc::clone(plan), collections, Scratch::default(), &connection());
    transaction.limit_strategies(strategies);
    if quiet {
        transaction.keep_quiet_matches();
    }
    let line = format!("POST {target} HTTP/1.1");
    let line = RequestLine {
        line: line.as_bytes(),
        method: b"POST",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let length = body.len().to_string();
    let headers = [
        (&b"Host"[..], &b"h"[..]),
        (b"Content-Type", b"application/x-www-form-urlencoded"),
        (b"Content-Length", length.as_bytes()),
    ];
    let mut ends = vec![transaction.request_head(line, headers)];
    if ends[0] == Progress::Done(None) {
        transaction.request_body(body.as_bytes());
        ends.push(transaction.request_end(false));
    }
    transaction.finish();
    let logged = transaction.matches().iter().filter(|found| found.log);
    let matches = logged.map(|found| {
        let view = transaction.view(found);
        let changes = view.changes.iter().map(|(key, by)| format!("{}+{by}", key.escape_ascii()));
        format!(
            "{} {:?} {} = {} msg {} {:?}",
            view.rule.id,
            found.phase,
            view.target.escape_ascii(),
            view.value.escape_ascii(),
            view.msg.escape_ascii(),
            changes.collect::<Vec<_>>(),
        )
    });
    Shown { ends, matches: matches.collect(), tx: transaction.tx_values() }
}

/// Numbers in which each bit is as good as any.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// A condition: on `TX` with numbers, texts, counts and transformations; on the message; on neither.
fn condition(random: &mut Random) -> String {
    let [key, other, number] = [random.below(6), random.below(6), random.below(4)];
    let than = if random.below(2) == 0 { number.to_string() } else { format!("%{{tx.k{other}}}") };
    let not = random.one(&["", "", "", "!"]);
    match random.below(16) {
        0 => "SecAction".to_owned(),
        1 => format!("SecRule &TX:k{key} \"{not}@eq {}\"", number % 2),
        2 => format!("SecRule ARGS:a \"{not}@eq {number}\""),
        3 => format!("SecRule ARGS \"{not}@rx ^([{number}x])(y)?\""),
        4 => "SecRule REQBODY_PROCESSOR \"@streq URLENCODED\"".to_owned(),
        5 => format!("SecRule REQUEST_METHOD \"{not}@streq POST\""),
        6 => format!("SecRule TX:/^k[{key}{other}]/ \"{not}@eq {number}\""),
        7 => format!("SecRule &ARGS \"{not}@eq {number}\""),
        8 => format!("SecRule ARGS_COMBINED_SIZE \"@gt {}\"", number * 3),
        9 => format!("SecRule TX:k{key}|TX:k{other} \"{not}@ge {number}\""),
        10 => format!("SecRule TX:k{key} \"@streq {number}\""),
        _ => format!("SecRule TX:k{key} \"{not}@{} {than}\"", random.one(&["eq", "lt", "le", "gt", "ge"])),
    }
}

/// Returns random actions for the rule with this id.
fn action(random: &mut Random, id: u64) -> String {
    let [key, other, number, rule] =
        [random.below(6), random.below(6), random.below(4), id + 1 + random.below(8)];
    match random.below(22) {
        0 => format!(",setvar:tx.k{key}={number}"),
        1 | 2 => format!(",setvar:tx.k{key}=+{number}"),
        3 => format!(",setvar:tx.k{key}=-{number}"),
        4 => format!(",setvar:tx.k{key}=%{{tx.k{other}}}"),
        5 => format!(",setvar:tx.k{key}=+%{{tx.k{other}}},setvar:tx.k{other}=0"),
        6 => format!(",setvar:tx.k{key}=-%{{tx.k{other}}}"),
        7 => format!(",setvar:!tx.k{key}"),
        8 => format!(",setvar:!tx.k{key},setvar:tx.k{key}={number}"),
        9 => format!(",setvar:'tx.k{key}= {number}'"),
        10 => format!(",setvar:'tx.k{key}=%{{tx.k{other}}}%{{tx.k{key}}}'"),
        11 => format!(",setvar:'tx.k{key}=0{number}',setvar:tx.k{other}=%{{tx.k{key}}}"),
        12 => format!(",skip:{}", 1 + number),
        13 => format!(",skipAfter:M{number}"),
        14 => format!(",ctl:ruleRemoveById={rule}"),
        15 => format!(
            ",ctl:ruleRemoveTargetById={rule};{}",
            random.one(&["TX:k1", "TX", "ARGS", "REMOTE_ADDR"])
        ),
        16 => ",capture".to_owned(),
        17 => format!(
            ",setvar:'tx.seen=%{{MATCHED_VAR_NAME}}=%{{MATCHED_VAR}}/%{{tx.1}}'{}",
            random.one(&["", ",t:lowercase"])
        ),
        18 => random
            .one(&[",ctl:ruleEngine=DetectionOnly", ",ctl:forceRequestBodyVariable=On", ",allow:phase"])
            .to_owned(),
        _ => String::new(),
    }
}

/// Rules of all kinds side by side; settings in front, as rule sets have them.
fn rules(seed: u64) -> String {
    let mut random = Random(seed);
    let mut rules = "SecRuleEngine On\nSecRequestBodyAccess On\n".to_owned();
    for key in 0..random.below(5) {
        rules += &format!(
            "SecRule &TX:k{key} \"@eq 0\" \"id:{},phase:1,pass,nolog,setvar:tx.k{key}={key}\"\n",
            1 + key
        );
    }
    let mut id = 10;
    let mut phase = 1;
    while id < 70 {
        phase = if random.below(6) == 0 { [1, 2, 2, 5][random.below(4) as usize] } else { phase };
        let log = random.one(&["nolog", "nolog", "nolog", "nolog", "log,msg:'%{tx.k1} %{MATCHED_VAR}'"]);
        let end = if random.below(40) == 0 { "deny,status:403" } else { "pass" };
        let transformed = random.one(&["", "", "", ",t:lowercase", ",t:none,t:length"]);
        let (what, act) = (condition(&mut random), action(&mut random, id));
        let more = if random.below(3) == 0 { action(&mut random, id) } else { String::new() };
        let chained = what != "SecAction" && random.below(8) == 0;
        let chain = if chained { ",chain" } else { "" };
        let transformed = if what == "SecAction" { "" } else { transformed };
        rules += &format!("{what} \"id:{id},phase:{phase},{end},{log}{transformed}{act}{more}{chain}\"\n");
        if chained {
            let more = match action(&mut random, id) {
                more if more.starts_with(",skip") || more.starts_with(",allow") => String::new(),
                more => more,
            };
            rules += &format!(
                "{} \"t:none{more}\"\n",
                condition(&mut random).replace("SecAction", "SecRule TX:k0 \"@ge 0\"")
            );
        }
        if random.below(8) == 0 {
            rules += &format!("SecMarker M{}\n", random.below(4));
        }
        id += 1;
    }
    // In the order in which the keys came to be there.
    rules
        + "SecRule TX:/^k/ \"@rx .*\" \"id:99,phase:5,pass,nolog,capture,setvar:'tx.order=%{tx.order}|%{tx.0}'\"\n"
}

#[test]
fn any_set_of_strategies_gives_the_same() {
    let requests = [("/", ""), ("/?a=1", "a=2"), ("/?a=0&b=xy", "c=3"), ("/?a=3&a=2&x=0y", "x=1&y=%78&z=0")];
    let (mut blocks, mut matches, mut denied) = (0, 0, 0);
    for seed in 0..250u64 {
        let rules = rules(seed);
        let plan = plan(&rules);
        blocks += plan.tx_blocks.len();
        let mut random = Random(seed ^ 0x5eed);
        for request in requests {
            let plain = run(&plan, request, Strategies::NONE, false);
            matches += plain.matches.len();
            denied += usize::from(plain.ends.last() != Some(&Progress::Done(None)));
            let mut sets = vec![Strategies::ALL];
            sets.extend((0..6).map(|_| {
                let kept = Strategies::EACH.iter().filter(|_| random.below(2) == 0);
                kept.fold(Strategies::NONE, |set, (_, one)| set | *one)
            }));
            for set in sets {
                for quiet in [false, true] {
                    assert_eq!(
                        run(&plan, request, set, quiet),
                        plain,
                        "{set:?} {quiet} {request:?}\n{rules}"
                    );
                }
            }
        }
    }
    // Rules that do something, and blocks that are there to be tried.
    assert!(blocks > 250 && matches > 2_000 && denied > 20, "{blocks} {matches} {denied}");
}

/// A rule that a `ctl` took out before its block, or a target that one took from it.
#[test]
fn what_ctl_takes_out_is_not_in_what_a_block_comes_to() {
    for act in
        ["ctl:ruleRemoveById=21", "ctl:ruleRemoveTargetById=21;TX", "ctl:ruleRemoveTargetById=20;REMOTE_ADDR"]
    {
        let rules = format!(
            r#"SecRuleEngine On
SecRule ARGS:off "@eq 1" "id:10,phase:1,pass,nolog,{act}"
SecAction "id:20,phase:1,pass,nolog,setvar:tx.a=1"
SecRule TX:a "@ge 0" "id:21,phase:1,pass,nolog,setvar:tx.b=1"
SecRule &TX:b "@eq 0" "id:22,phase:1,pass,nolog,setvar:tx.c=1"
"#
        );
        let plan = plan(&rules);
        assert_eq!(plan.tx_blocks.len(), 1, "{rules}");
        let [with, without] = ["/?off=1", "/"].map(|target| {
            let all = run(&plan, (target, ""), Strategies::ALL, false);
            assert_eq!(all, run(&plan, (target, ""), Strategies::NONE, false), "{target} {rules}");
            all.tx
        });
        assert_ne!(with, without, "{rules}");
    }
}
