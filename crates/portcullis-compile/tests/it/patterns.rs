//! Patterns of rules beyond what automata match: what they find, what they cost, and what a rule sees of it.

use std::sync::Arc;

use crate::common::{connection, plan};
use portcullis_engine::{NoCollections, RequestLine, Scratch, Transaction};

/// Runs phases 1 and 2 over `GET /?query`.
fn run(rules: &str, query: &str) -> Box<Transaction> {
    let plan = plan(&format!("SecRuleEngine On\n{rules}\n"));
    let mut transaction = Transaction::new(plan, Arc::new(NoCollections), Scratch::default(), &connection());
    let target = format!("/?{query}");
    let line = format!("GET {target} HTTP/1.1");
    let request = RequestLine {
        line: line.as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let progress = transaction.request_head(request, std::iter::empty());
    assert_eq!(transaction.unanswered(progress), None);
    let progress = transaction.request_end(false);
    assert_eq!(transaction.unanswered(progress), None);
    transaction
}

/// `id target=value` of each match.
fn matches(transaction: &Transaction) -> Vec<String> {
    let line = |found| {
        let view = transaction.view(found);
        format!("{} {}={}", view.rule.id, view.target.escape_ascii(), view.value.escape_ascii())
    };
    transaction.matches().iter().filter(|found| found.log).map(line).collect()
}

#[track_caller]
fn check(rules: &str, query: &str, expected: &[&str]) {
    assert_eq!(matches(&run(rules, query)), expected, "{rules}");
}

fn tx(transaction: &Transaction, key: &str) -> Option<String> {
    let found = transaction.tx_values().into_iter().find(|(name, _)| name == key.to_lowercase().as_bytes());
    found.map(|(_, value)| String::from_utf8(value).unwrap())
}

#[test]
fn rules_may_look_around_and_refer_back() {
    check(
        r#"SecRule ARGS "@rx ^(?!https?://)\w+:" "id:1,phase:2,pass""#,
        "a=http://x&b=file:x",
        &["1 ARGS:b=file:x"],
    );
    check(r#"SecRule ARGS "@rx (['\"])\w+\1" "id:1,phase:2,pass""#, "a='x'&b='x\"", &["1 ARGS:a=\\'x\\'"]);
    check(r#"SecRule ARGS "!@rx ^(?>a+)b" "id:1,phase:2,pass""#, "a=aab&b=b", &["1 ARGS:b=b"]);
    check(r#"SecRule ARGS:/^(?!safe_)/ "@rx ." "id:1,phase:2,pass""#, "safe_x=1&y=2", &["1 ARGS:y=2"]);
    let seen =
        run(r#"SecRule ARGS:a "@rx (?<=x)(\d)(\w)?\K(z)" "id:1,phase:2,pass,nolog,capture""#, "a=ax1z");
    assert_eq!(["0", "1", "2", "3"].map(|key| tx(&seen, key).unwrap()), ["z", "1", "", "z"]);
}

#[test]
fn a_pattern_that_takes_too_long_is_no_match_and_says_so() {
    let rules = r#"SecPcreMatchLimit 100
SecRule ARGS:a "@rx ^(?:(\w+)+)(?=!)\1?" "id:1,phase:2,pass"
SecRule TX:MSC_PCRE_LIMITS_EXCEEDED "@eq 1" "id:2,phase:2,pass"
SecRule MSC_PCRE_LIMITS_EXCEEDED|MSC_PCRE_ERROR "@eq 1" "id:3,phase:2,pass"
SecRule TX:/^MSC_/ "!@streq 0" "id:4,phase:2,pass""#;
    let seen = run(rules, "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!aaaa");
    assert_eq!(matches(&seen)[0], "1 ARGS:a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!aaaa");
    assert_eq!(seen.patterns_exhausted(), 0);

    // The exclamation mark is there, so the automaton lets the value through, but where no match of the rest
    // ends.
    let seen = run(rules, "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-!");
    assert_eq!(
        matches(&seen),
        [
            "2 TX:msc_pcre_limits_exceeded=1",
            "3 MSC_PCRE_LIMITS_EXCEEDED=1",
            "3 MSC_PCRE_ERROR=1",
            "4 TX:msc_pcre_limits_exceeded=1"
        ]
    );
    assert_eq!(seen.patterns_exhausted(), 1);
    // As in ModSecurity 2 a negated operator takes it for no match, too.
    let seen = run(&rules.replace("@rx", "!@rx"), "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-!");
    assert!(matches(&seen)[0].starts_with("1 ARGS:a="));
}

/// The forms of long values are given back once an operator has said no; what else came meanwhile stays.
#[test]
fn what_a_long_value_left_outlives_its_forms() {
    let long = "A".repeat(100_000);
    let rules = r#"SecRule ARGS:a "!@rx ^(a{4})(a)" "id:1,phase:2,pass,nolog,capture,t:lowercase"
SecRule ARGS:b "@rx B" "id:2,phase:2,pass,nolog,t:uppercase""#;
    let seen = run(rules, &format!("a={long}&b={}", "b".repeat(200_000)));
    assert_eq!(["0", "1", "2"].map(|key| tx(&seen, key).unwrap()), ["aaaaa", "aaaa", "a"]);

    let rules = r#"SecPcreMatchLimit 100
SecRule ARGS:a "@rx ^(?:(\w+)+)(?=!)\1?" "id:1,phase:2,pass,t:lowercase"
SecRule ARGS:b "@rx B" "id:2,phase:2,pass,nolog,t:uppercase"
SecRule TX:MSC_PCRE_LIMITS_EXCEEDED|MSC_PCRE_ERROR "@eq 1" "id:3,phase:2,pass""#;
    let seen = run(rules, &format!("a={long}-!&b={}", "b".repeat(200_000)));
    assert_eq!(matches(&seen), ["3 TX:msc_pcre_limits_exceeded=1", "3 MSC_PCRE_ERROR=1"]);
}

/// Every value may cost as much as a search may, but all together no more than a transaction may.
#[test]
fn a_transaction_has_a_budget_for_all_its_patterns() {
    let rules = r#"SecPcreMatchLimit 1000000000
SecRule ARGS "@rx ^(?:(\w+)+)(?=!)\1?" "id:1,phase:2,pass""#;
    let query: Vec<String> =
        (0..200).map(|n| format!("a{n}=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{n}-!")).collect();
    let began = std::time::Instant::now();
    let seen = run(rules, &query.join("&"));
    assert_eq!(seen.patterns_exhausted(), 200);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

/// As ModSecurity 2 does (`log_escape_re`), all of the pattern is escaped once its macros are replaced.
#[test]
fn patterns_with_macros_are_escaped() {
    let rules = r#"SecAction "id:1,phase:1,pass,nolog,setvar:'tx.types=application/soap+xml|text/xml'"
SecRule ARGS:type "!@rx ^%{tx.types}$" "id:2,phase:2,pass"
SecRule ARGS:a "@rx ^%{ARGS.b}$" "id:3,phase:2,pass"
SecRule ARGS:a "@rx ^(%{ARGS.b})$" "id:4,phase:2,pass"
SecRule ARGS:a "@rx %{nothing}a(b)" "id:5,phase:2,pass""#;
    for (query, want) in [
        ("type=application/soap%2Bxml", vec![]),
        ("type=application/soapxml", vec!["2 ARGS:type=application/soapxml"]),
        ("a=abc&b=.*", vec![]),
        ("a=.*&b=.*", vec![]),
        ("a=...&b=.*", vec!["3 ARGS:a=..."]),
        ("a=a|b&b=b|a|b", vec!["3 ARGS:a=a|b", "4 ARGS:a=a|b"]),
        ("a=(x)&b=x", vec!["4 ARGS:a=(x)"]),
        ("a=ab&b=x", vec![]),
        ("a=a(b)&b=x", vec!["5 ARGS:a=a(b)"]),
    ] {
        let seen = run(rules, query);
        assert_eq!(matches(&seen), want, "{query}");
    }
    let bytes = "%0a%0d%0b%09%07%ff%22:%5c[]";
    let found = matches(&run(rules, &format!("a={bytes}&b={bytes}")));
    assert!(matches!(&*found, [only] if only.starts_with("3 ")), "{found:?}");
}

#[test]
fn macros_in_patterns_are_replaced_raw_as_in_libmodsecurity() {
    let rules = r#"SecCompatibility ModSecurity3
SecAction "id:1,phase:1,pass,nolog,setvar:tx.p=[ab]+,setvar:tx.bad=(a"
SecRule ARGS:a "@rx ^x%{tx.p}$" "id:2,phase:2,pass"
SecRule ARGS:a "@rx %{tx.bad}" "id:3,phase:2,pass"
SecRule ARGS:a "!@rx %{tx.none}" "id:4,phase:2,pass"
SecRule MSC_PCRE_ERROR "@eq 1" "id:5,phase:2,pass"
SecRule ARGS:b "@rx ^(?!%{ARGS.a})" "id:6,phase:2,pass""#;
    let seen = run(rules, "a=xab&b=xa");
    assert_eq!(matches(&seen), ["2 ARGS:a=xab", "5 MSC_PCRE_ERROR=1", "6 ARGS:b=xa"]);
    assert_eq!((seen.patterns_unusable(), seen.patterns_exhausted()), (1, 0));
}

/// A client that may choose patterns may not have many of them built, nor large ones.
#[test]
fn patterns_made_at_run_time_are_bounded() {
    // Each value that does not match becomes part of the next pattern.
    let rules = r#"SecCompatibility ModSecurity3
SecRule ARGS "!@rx ^%{MATCHED_VAR}(x)$" "id:1,phase:2,pass,nolog""#;
    let query: Vec<String> = (0..300).map(|n| format!("a{n}=v{n}")).collect();
    let seen = run(rules, &query.join("&"));
    assert_eq!(seen.patterns_unusable(), 300 - 64);

    let rules = "SecCompatibility ModSecurity3\nSecRule ARGS:b \"@rx %{ARGS.a}\" \"id:1,phase:2,pass\"";
    let seen = run(rules, &format!("a={}&b=x", "y".repeat(9_000)));
    assert_eq!(seen.patterns_unusable(), 1);
    let seen = run(rules, "a=((a{900}){900}){900}&b=x");
    assert_eq!(seen.patterns_unusable(), 1);
}

#[test]
fn every_match_is_captured() {
    let rules = r#"SecRule ARGS:a "@rxGlobal (\w)=(\d)?" "id:1,phase:2,pass,nolog,capture""#;
    let seen = run(rules, "a=a%3D1b%3Dc%3D3d%3D4");
    let all: Vec<_> = (0..12).map(|n| tx(&seen, &n.to_string()).unwrap_or_default()).collect();
    assert_eq!(all[..9], ["a=1", "a", "1", "b=", "b", "c=3", "c", "3", "d=4"]);
    assert_eq!(all[9..], ["d", "4", ""]);
    check(r#"SecRule ARGS:a "@rxGlobal \d" "id:1,phase:2,pass""#, "a=12", &["1 ARGS:a=12"]);
    check(r#"SecRule ARGS:a "@rxGlobal \d" "id:1,phase:2,pass""#, "a=x", &[]);
}

#[test]
fn numbers_are_verified() {
    let card = r#"SecRule ARGS "@verifyCC \d{13,16}" "id:1,phase:2,pass,capture,setvar:tx.card=%{TX.0}""#;
    check(card, "a=5484605089158216&b=4929548438910013", &["1 ARGS:a=5484605089158216"]);
    assert_eq!(tx(&run(card, "a=nr+5484605089158216."), "card").as_deref(), Some("5484605089158216"));
    check(
        r#"SecRule ARGS "@verifySSN \d{3}-?\d{2}-?\d{4}" "id:1,phase:2,pass""#,
        "a=123-45-6787&b=666-45-6787",
        &["1 ARGS:a=123-45-6787"],
    );
    check(
        r#"SecRule ARGS "@verifyCPF ([0-9]{3}\.){2}[0-9]{3}-[0-9]{2}" "id:1,phase:2,pass""#,
        "a=529.982.247-25&b=529.982.247-26",
        &["1 ARGS:a=529.982.247-25"],
    );
    check(
        r#"SecRule ARGS "@verifySVNR \d{4} ?\d{6}" "id:1,phase:2,pass""#,
        "a=1237010180&b=1238010180",
        &["1 ARGS:a=1237010180"],
    );
    // Every group that took part holds the number, as in ModSecurity 2.
    let groups = r#"SecRule ARGS "@verifyCC (\d{4})(\d+)" "id:1,phase:2,pass,nolog,capture""#;
    assert_eq!(tx(&run(groups, "a=5484605089158216"), "1").as_deref(), Some("5484605089158216"));
}

#[test]
fn strmatch_takes_escapes_and_no_macros() {
    check(r#"SecRule ARGS "@strmatch a|62 63|" "id:1,phase:2,pass""#, "a=xabc&b=ABC", &["1 ARGS:a=xabc"]);
    check(
        r#"SecRule ARGS "@strmatch %{tx.x}" "id:1,phase:2,pass""#,
        "a=%25{tx.x}&b=b",
        &["1 ARGS:a=%{tx.x}"],
    );
}

/// If a text has none of the words that such a match needs, only its beginning is looked at.
#[test]
fn matches_that_begin_with_long_texts_or_with_words() {
    let rules = "SecRule ARGS \"@rx (?:^|busybox|time |=)q[a-z0-9]\\.\" \"id:1,phase:2,pass,log\"";
    let prose = "we+go+there,+and+then+home+".repeat(6);
    let text = prose.replace('+', " ");
    for (value, is_found) in [
        (format!("qa.{prose}"), true),
        (format!("{prose}qa."), false),
        (format!("{prose}busyboxqa.{prose}"), true),
        (format!("{prose}time+qa."), true),
        (format!("{prose}%3Dqa."), true),
        (format!("{prose}time+and+qa."), false),
        (format!("it's+{prose}qa."), false),
        (format!("it's+{prose}time+qa."), true),
        (format!("qa.'{prose}"), true),
        (format!("Qa.{prose}"), false),
        (format!("{prose}BUSYBOXqa."), false),
    ] {
        let shown = value.replace('+', " ").replace("%3D", "=");
        assert!(shown.contains(&text));
        let found = matches(&run(rules, &format!("x={value}")));
        assert_eq!(found.len(), usize::from(is_found), "{shown}: {found:?}");
    }
}

/// Patterns that look at every byte and find nothing.
fn heavy(target: &str, count: usize) -> String {
    let rule =
        |n: usize| format!("SecRule {target} \"@rx [a-z]{{{}}}0$\" \"id:{n},phase:1,pass\"\n", n % 50 + 2);
    (1..=count).map(rule).collect()
}

/// As [`run`] with phase 1 only, under the limit of work that any message has.
fn run_within_limits(rules: &str, query: &str, agent: &str, scratch: Scratch) -> Box<Transaction> {
    let plan = plan(&format!("SecRuleEngine On\n{rules}\n"));
    run_plan(plan, query, agent, scratch)
}

fn run_plan(
    plan: Arc<portcullis_engine::Plan>,
    query: &str,
    agent: &str,
    scratch: Scratch,
) -> Box<Transaction> {
    let mut transaction = Transaction::new(plan, Arc::new(NoCollections), scratch, &connection());
    transaction.limit_work();
    let target = format!("/?{query}");
    let line = format!("GET {target} HTTP/1.1");
    let request = RequestLine {
        line: line.as_bytes(),
        method: b"GET",
        target: target.as_bytes(),
        protocol: b"HTTP/1.1",
    };
    let headers = [(&b"User-Agent"[..], agent.as_bytes()), (b"Accept", b"*/*")];
    let progress = transaction.request_head(request, headers);
    assert_eq!(transaction.unanswered(progress), None);
    transaction
}

/// Once the budget is spent, operators do not match, negated ones neither; numbers are still compared, so
/// that points already counted take effect.
#[test]
fn the_rules_may_do_so_much_work_for_a_message() {
    let rules = format!(
        "SecRule ARGS:first \"@rx ^attack\" \"id:1001,phase:1,pass,setvar:tx.score=+5\"\n\
         {}\
         SecRule ARGS:last \"@rx ^attack\" \"id:1002,phase:1,pass\"\n\
         SecRule ARGS:last \"!@rx ^harmless\" \"id:1003,phase:1,pass\"\n\
         SecRule TX:score \"@ge 5\" \"id:1004,phase:1,pass\"\n\
         SecRule TX:MSC_PCRE_LIMITS_EXCEEDED \"@eq 1\" \"id:1005,phase:1,pass\"",
        heavy("ARGS:much", 90)
    );
    let of = |bytes: usize| {
        let query = format!("first=attack&much={}&last=attack", "abcdefgh01".repeat(bytes / 10));
        run_within_limits(&rules, &query, "agent", Scratch::default())
    };
    let short = of(100);
    let told = ["1001", "1002", "1003", "1004"];
    let ids = |seen: &Transaction| -> Vec<String> {
        matches(seen).iter().map(|line| line[..4].to_owned()).collect()
    };
    assert_eq!((ids(&short), short.patterns_exhausted()), (told.map(str::to_owned).to_vec(), 0));
    let long = of(20_000);
    assert_eq!(ids(&long).join(" "), "1001 1004 1005");
    assert!(long.patterns_exhausted() > 0);
}

/// A message that is not looked at to its end leaves nothing behind that would let the next one pass.
#[test]
fn what_was_not_looked_at_is_not_remembered_as_harmless() {
    let rules = format!(
        "{}SecRule REQUEST_HEADERS:User-Agent \"@rx evil[0-9]\" \"id:1001,phase:1,pass\"",
        heavy("REQUEST_URI", 90)
    );
    let plan = plan(&format!("SecRuleEngine On\n{rules}\n"));
    let memo = portcullis_engine::Memo::default();
    let of = |bytes: usize| {
        let query = "abcdefgh01".repeat(bytes / 10);
        run_plan(Arc::clone(&plan), &query, "an evil1 agent", Scratch::sharing(&memo))
    };
    for round in 0..4 {
        let spent = of(20_000);
        assert!(spent.patterns_exhausted() > 0, "{round}");
    }
    for _ in 0..2 {
        let seen = of(10);
        assert_eq!(matches(&seen), ["1001 REQUEST_HEADERS:User-Agent=an evil1 agent"]);
    }
}
