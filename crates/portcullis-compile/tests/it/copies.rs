//! Rules that copy values into `TX`, and rules that look at all copies.

use std::sync::Arc;

use portcullis_engine::{
    Exempt, NoCollections, Plan, RequestLine, RuleIndex, Scratch, Strategies, Transaction,
};
use portcullis_types::Variable;

use crate::common::{self, Message};

const TRANSFORMATIONS: [&str; 12] = [
    "lowercase",
    "htmlEntityDecode",
    "jsDecode",
    "cssDecode",
    "removeNulls",
    "replaceNulls",
    "hexDecode",
    "trim",
    "removeWhitespace",
    "compressWhitespace",
    "removeCommentsChar",
    "urlDecodeUni",
];

/// Each of the transformations puts its form of each argument into `TX`, and `looking` rules look at all of
/// them.
fn rules(looking: usize) -> String {
    let mut rules = "SecRuleEngine On\n".to_owned();
    for (at, name) in TRANSFORMATIONS.iter().enumerate() {
        rules += &format!(
            "SecRule ARGS \"!@streq %{{ARGS}}\" \"id:{},phase:2,pass,nolog,t:none,t:{name},\
             setvar:'tx.copy_{name}_%{{MATCHED_VAR_NAME}}=%{{MATCHED_VAR}}'\"\n",
            100 + at
        );
    }
    for at in 0..looking {
        let (operator, more) = [
            ("@rx needle([0-9])", "capture,t:lowercase"),
            ("@contains needle", "setvar:tx.count=+1"),
            ("!@rx [a-z]", "t:removeWhitespace"),
            ("@pm needle hay", "multiMatch,t:lowercase,t:htmlEntityDecode"),
            ("@streq %{TX.count}", "setvar:tx.count=+1"),
            ("@detectSQLi", "t:urlDecodeUni,capture"),
        ][at % 6];
        rules += &format!(
            "SecRule TX:/^copy_/|TX:7 \"{operator}\" \"id:{},phase:2,pass,log,msg:'%{{TX.1}} %{{TX.count}}',{more}\"\n",
            1000 + at
        );
    }
    rules
}

/// Looking once at copies that are the same text changes nothing that a transaction shows.
#[test]
fn copies_of_one_text_have_one_answer() {
    let plan = common::plan(&rules(12));
    let mut scratch = Scratch::default();
    let mut matched = 0;
    for target in [
        "/?first=1&a=plain&b=plain&c=needle7&d=NEEDLE8&e=%26lt%3Bneedle9",
        "/?first=1&a=1%27%20or%201%3D1--&b=1%27%20or%201%3D1--&c=2",
        "/?first=1&a=&b=%00&c=%20%20needle%0a&c=needle",
        "/?a=needle",
        "/",
    ] {
        let line = format!("GET {target} HTTP/1.1");
        let headers: [(&[u8], &[u8]); 1] = [(b"Host", b"h")];
        let message = Message { line: &line, headers: &headers, ..Message::default() };
        matched += common::assert_equivalent(&plan, &mut scratch, &message).matches.len();
    }
    assert!(matched > 100, "{matched}");
}

/// Work done for a request with a benign value of so many bytes, and, if there is a limit, allowed, and
/// whether it was used up.
fn work(plan: &Arc<Plan>, bytes: usize, strategies: Strategies, is_limited: bool) -> (u64, u64, u64) {
    let value = "Senior+end+local+pretty+reference+ledger+".repeat(bytes / 41 + 1);
    let line = format!("GET /?first=1&a={} HTTP/1.1", &value[..bytes]);
    let target = line.split(' ').nth(1).unwrap_or_default();
    let mut transaction = Transaction::new(
        Arc::clone(plan),
        Arc::new(NoCollections),
        Scratch::default(),
        &common::connection(),
    );
    transaction.limit_strategies(strategies);
    if is_limited {
        transaction.limit_work();
        transaction.allow_work(line.len() as u64, line.len() as u64);
    }
    let line = RequestLine {
        line: line.as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let headers: [(&[u8], &[u8]); 1] = [(b"Host", b"h")];
    let _ = transaction.request_head(line, headers);
    let _ = transaction.request_end(false);
    let (done, allowed) = transaction.work_done();
    (done, allowed, transaction.patterns_exhausted())
}

/// A benign value may be copied twelve times and looked at by 140 rules: the allowance grows with the looks
/// at copies that the rules ask for, and copies that are the same text take the work of one.
#[test]
fn the_allowance_suffices_for_copies_of_benign_values() {
    let plan = common::plan(&rules(140));
    let copies = plan.copies().expect("there are some");
    assert_eq!((copies.copying, copies.looking, copies.looks()), (12, 140, 1_680));
    assert_eq!(plan.work_links, plan.links.len() + 1_680);
    for bytes in [100, 600, 3_000] {
        let (done, allowed, exhausted) = work(&plan, bytes, Strategies::ALL, true);
        assert!(exhausted == 0 && done < allowed, "{bytes} bytes: {done} of {allowed}");
        let (each, ..) = work(&plan, bytes, Strategies::ALL.without(Strategies::SAME_TEXTS), false);
        assert!(2 * done < each, "{bytes} bytes: {done}, and {each} where each copy is looked at");
    }
    // Rules without copies, or whose copies nobody looks at, bring no more than before.
    for rules in [
        "SecRule ARGS \"@rx a\" \"id:1,phase:2,pass,setvar:'tx.a=%{MATCHED_VAR}'\"\nSecRule TX:/a/ \"@rx b\" \"id:2,phase:2,pass\"\n",
        "SecRule ARGS \"@rx a\" \"id:1,phase:2,pass,setvar:'tx.a_%{MATCHED_VAR}=+1'\"\nSecRule TX:/a/ \"@gt 3\" \"id:2,phase:2,pass\"\n",
        "SecRule ARGS \"@rx a\" \"id:1,phase:2,pass,setvar:'tx.a_%{MATCHED_VAR_NAME}=%{MATCHED_VAR}'\"\n",
    ] {
        let plan = common::plan(rules);
        assert_eq!((plan.copies(), plan.work_links), (None, plan.links.len()), "{rules}");
    }
}

/// Matches under one name do not count.
#[derive(Debug)]
struct OneName(&'static [u8]);

impl Exempt for OneName {
    fn concerns(&self, _: RuleIndex) -> bool {
        true
    }

    fn reaches_tx(&self) -> bool {
        true
    }

    fn exempts(&self, _: RuleIndex, _: Option<Variable>, key: &[u8], _: &[u8], _: &mut Vec<u32>) -> bool {
        key.eq_ignore_ascii_case(self.0)
    }
}

/// What is excused under one name is not excused under another that has the same text.
#[test]
fn an_exclusion_of_one_copy_is_of_no_other() {
    let rules = "SecRuleEngine On\n\
        SecRule ARGS \"@rx ^needle\" \"id:1,phase:2,pass,nolog,setvar:'tx.copy_%{MATCHED_VAR_NAME}=%{MATCHED_VAR}'\"\n\
        SecRule TX:/^copy_/ \"@rx needle\" \"id:2,phase:2,pass,log\"\n";
    let plan = common::plan(rules);
    for (name, expected) in [(&b"copy_ARGS:a"[..], 2), (b"copy_ARGS:b", 2), (b"copy_ARGS:x", 3)] {
        for strategies in [Strategies::ALL, Strategies::NONE] {
            let mut transaction = Transaction::new(
                Arc::clone(&plan),
                Arc::new(NoCollections),
                Scratch::default(),
                &common::connection(),
            );
            transaction.limit_strategies(strategies);
            transaction.set_exempt(Arc::new(OneName(name)));
            let target = b"/?a=needle&b=needle&c=needle";
            let line = RequestLine { line: b"GET / HTTP/1.1", method: b"GET", target, protocol: b"HTTP/1.1" };
            let headers: [(&[u8], &[u8]); 1] = [(b"Host", b"h")];
            let _ = transaction.request_head(line, headers);
            let _ = transaction.request_end(false);
            let found = transaction.matches().iter().filter(|found| found.log).count();
            assert_eq!(found, expected, "{} {strategies:?}", name.escape_ascii());
        }
    }
}
