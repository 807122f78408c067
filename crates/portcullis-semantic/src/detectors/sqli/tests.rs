mod statements;
mod texts;

use crate::detectors::testing::{self, passes_at};
use crate::{Analysis, Class, Detectors, Level, Location, Place};

/// The kinds found in `text`, mentioned ones with `~`, sorted by nothing: in the order of the list.
fn kinds(text: &str) -> String {
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    analysis.value(&detectors, Location::new(Place::Query, b"q"), text.as_bytes());
    let names: Vec<String> = analysis
        .findings()
        .iter()
        .map(|f| format!("{}{}", f.kind.id.trim_start_matches("sqli."), if f.mentioned { "~" } else { "" }))
        .collect();
    names.join(" ")
}

/// `text` has all of `wanted`.
#[track_caller]
fn check(text: &str, wanted: &str) {
    let have = kinds(text);
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
}

/// `text` is let through at both levels.
#[track_caller]
fn passes(text: &str) {
    let detectors = Detectors::new();
    let mut analysis = Analysis::new();
    analysis.value(&detectors, Location::new(Place::Form, b"text"), text.as_bytes());
    let worst = analysis.worst(&detectors, Level::Strict);
    assert!(!worst.is_some_and(|w| w.blocks(Level::Strict)), "{text}: {}", kinds(text));
}

/// PostgreSQL alone has dollar quotes, and ends no statement without a semicolon.
#[test]
fn no_statement_follows_a_dollar_quote_directly() {
    for body in ["begin new.at := now(); return new; end", "select count(*) from orders", "(select 1)"] {
        let text = format!("create function f() returns trigger as $$ {body} $$ language plpgsql");
        let have = kinds(&text);
        assert!(!have.split_whitespace().any(|kind| kind == "juxtaposed"), "{text}: {have}");
    }
    check("x$$; select pg_sleep(5)--", "stacked after-quote time-function");
    check("x' select name, pw from users where id = 1", "juxtaposed after-quote");
}

/// A constant behind a number that is written as only programs write one is part of no sentence.
#[test]
fn constants_that_nobody_says() {
    let blocks = |text: &str| {
        let (detectors, mut analysis) = (Detectors::new(), Analysis::new());
        analysis.value(&detectors, Location::new(Place::Query, b"q"), text.as_bytes());
        let worst = analysis.worst(&detectors, Level::Balanced);
        worst.is_some_and(|worst| worst.blocks(Level::Balanced))
    };
    for number in ["1", "12.5"] {
        for joint in ["or", "and", "xor", "OR"] {
            for constant in ["!0", "~1", "! 0", "0x1", "0XfF", "b'1'", "n'a'", "x'31'"] {
                let text = format!("{number} {joint} {constant}");
                assert!(blocks(&text), "{text}: {}", kinds(&text));
            }
        }
    }
    for text in ["1 or 2", "0x00 or 0x01", "2 and 3", "3 or 'a'", "1 or 2!", "7 and more", "5 or 0.5"] {
        assert!(!blocks(text), "{text}: {}", kinds(text));
    }
}

#[test]
fn contexts() {
    check("1 or 1=1", "tautology after-number whole");
    check("' or '1'='1", "tautology after-quote");
    check("\" or \"1\"=\"1", "tautology after-quote");
    check("1) or (1=1", "tautology unbalanced");
    check("x' or 1=1 -- -", "tautology comment-end after-quote");
    check("admin'--", "quote-comment after-quote");
    check("admin') #", "quote-comment");
    check("or 1=1", "tautology bare-tail");
    check("a`=1 or 1=1 -- ", "tautology after-backtick");
}

#[test]
fn what_lists_of_attacks_were_missed_for() {
    check("-12 union select 1,,3,4,5", "union-columns");
    check("-9_99 union select 1,2,3,version()", "union-select union-columns info-function");
    check("xxx union (select id from users limit 1,1)", "union-select");
    check("1 or 1=system_user", "condition info-function");
    check("' or email is not null", "null-test");
    check(
        "'goto label; label: declare @s varchar(80);set @s = cast(0x657865 as varchar)",
        "declare-variable stacked",
    );
    check("'begin declare @s varchar(80)", "declare-variable juxtaposed");
    check("2';use master exec xp_cmdshell 'ping 127.0.0.1'--", "stacked execute-function");
    check("';if 1=1 drop table users-- -a", "stacked");
    check("1 or '{\"a\":1}'::jsonb @> '{\"a\":1}'", "json-operator condition");
    passes("the trade union (select members only) met; or was it 1_000 people?");
    passes("label: declare your goods; goto the next desk");
    passes("begin with the basics, use master copies or goto page 5");
}

#[test]
fn what_own_attacks_were_missed_for() {
    check("\\Nunion(select 1,2)", "union-select union-columns");
    check("';rename tables `words` to `w1`;alter table `w1` change `a` `b` varchar(9);#", "stacked");
    check("(SELECT password FROM users WHERE username='admin')", "subselect select-from whole");
    passes("(select the size from the table where it is shown)");
}

#[test]
fn conditions_that_are_none_of_sql() {
    passes(
        "firstch = w.substr(0,1);\n    if (firstch == \"y\")\n      w = firstch.toUpperCase() + w.substr(1);",
    );
    passes("if (x == 5) return \"\"");
    passes("if 5 > 3 then 3 < 5, so 1 = 1 holds");
    passes("and(equals(status,'open'),greaterThan(total,'100'))");
    passes("or(contains(name,'x'),any(tag,'a','b'))");
    passes("@app/*");
    passes("src/**/*");
    check("1;if(1=1) waitfor delay '0:0:5'", "stacked time-function");
    check("if 1=1 then select 1", "statement");
    check("and(1,2)=(select 1,2)", "bare-tail");
    check("and(select 1)", "bare-tail");
    check("1 or 1=1/*", "tautology comment-end");
    check("admin'/*", "quote-comment");
}

#[test]
fn calls_and_nothing_else() {
    let at = |name: &str, text: &str| testing::look(Class::Sqli, Place::Query, name, text.as_bytes()).0;
    for text in ["sleep(5)", "pg_sleep(10)", "benchmark(4000000,md5(1))", "version()", "user()", "@@version"]
    {
        assert!(at("id", text).contains("call-alone"), "{text}");
        // A user searches for it.
        assert!(at("q", text).contains("call-alone!function-said"), "{text}");
    }
    for text in
        ["sleep (8)", "time.sleep(5)", "sleep()", "sleep(ms)", "asleep(5)", "user(1)", "version", "@@x"]
    {
        assert!(!at("id", text).contains("call-alone"), "{text}");
    }
}

/// What escapes stand for in a document does not end its strings: each of them is looked at by itself.
#[test]
fn json_in_json() {
    passes("{\"id\":\"5\",\"more\":\"{\\\"q\\\":\\\"it's = 5\\\",\\\"n\\\":\\\"men's - 5\\\"}\"}");
    check("{\"id\":\"5\",\"more\":\"{\\\"q\\\":\\\"x' or 1=1#\\\"}\"}", "tautology after-quote");
    check("{\"id\":\"x\\u0027 or 1=1#\"}", "tautology after-quote");
    check("{\"a\":1,\"x' or 1=1-- \":{\"b\":1}}", "tautology after-quote");
}

/// Text of several kinds around a piece takes nothing from it, in a field that is not for text.
#[test]
fn text_around_a_piece() {
    let words = "the weather was nice and we walked along the river, or so they said ".repeat(40);
    let list = "- apples 3\n- pears (green) 4\n".repeat(60);
    let json = format!("{{{}\"z\": 1}}", "\"a\": \"b c\", ".repeat(100));
    let html = "<p class=\"x\">It was a day</p>\n".repeat(60);
    let letter = "A".repeat(5_000);
    let quotes = "it''s a 'word' and another ".repeat(80);
    for attack in [
        "x' or 1=1-- ",
        "x' or 'a'='a",
        "x') union select password from users-- ",
        "x'; drop table users-- ",
        "x' and sleep(5) and 'a'='a",
        "admin'-- ",
        "x' or id-- ",
        "x'||(select version())||'",
    ] {
        for (kind, pad) in
            [("words", &words), ("list", &list), ("json", &json), ("html", &html), ("letter", &letter)]
        {
            for text in [format!("{pad} {attack}"), format!("{attack}{pad}"), format!("{pad}{attack}{pad}")] {
                let (have, is_blocked) = testing::look(Class::Sqli, Place::Query, "q", text.as_bytes());
                assert!(is_blocked, "{attack} in {kind}: {have}");
            }
        }
        let text = format!("{quotes}{attack}");
        assert!(testing::look(Class::Sqli, Place::Query, "q", text.as_bytes()).1, "{attack} after quotes");
    }
    for pad in [words, list, json, html, letter, quotes] {
        passes(&pad);
        testing::passes_at(Class::Sqli, Place::Query, "q", &pad);
    }
}

#[test]
fn text_around_a_piece_without_a_quote() {
    for attack in ["1 or 1=1", "1 union select 1,2,3", "1 and sleep(5)"] {
        let text = format!("{} {attack}", "we saw a house and a tree".repeat(30));
        let (have, is_blocked) = testing::look(Class::Sqli, Place::Query, "q", text.as_bytes());
        assert!(is_blocked, "{attack}: {have}");
        // Such a piece ends the statement of nobody: a field for text may have it.
        testing::passes_at(Class::Sqli, Place::Form, "text", &format!("so we wrote {attack} there"));
    }
}

/// Long lists of strings are read once.
#[test]
fn lists_are_read_once() {
    for unit in ["'a','b',", "\"x\",\"or\",", "('a','b'),", "''", "'='", "' or '", "';select 1;'", "`a` "] {
        let mut analysis = Analysis::new();
        let text = unit.repeat(100_000 / unit.len());
        analysis.value(&Detectors::new(), Location::new(Place::Form, b"x"), text.as_bytes());
        let (done, allowed) = analysis.work();
        assert!(done <= allowed + 8 * text.len() as u64, "{unit}: {done} of {allowed}");
    }
}

#[test]
fn more_evidence() {
    for (text, kind) in [
        ("1;COPY t FROM PROGRAM 'id'", "execute-function"),
        ("copy (select '') to program 'sh -c id'", "execute-function"),
        ("'; grant dba to scott--", "stacked"),
        ("' or id-- ", "boolean-name"),
        ("or id-- -", "boolean-name"),
        ("'or username like'%", "condition"),
        ("1 and password like 'a%'", "number-condition"),
        ("2-(password like 'a%')", "number-condition"),
        ("-1 or pw regexp '^a'", "number-condition"),
        ("1 or true", "number-condition"),
        ("1 limit 1,1", "number-clause"),
        ("'LIKE'%", "reopened"),
        ("'^'", "reopened"),
        ("'='", "reopened"),
        ("'||(select 1 from dual)||'", "subselect"),
    ] {
        check(text, kind);
        assert!(testing::look(Class::Sqli, Place::Query, "q", text.as_bytes()).1, "{text}: {}", kinds(text));
    }
}

/// Cookies, headers and paths are looked at as they came, too: what an encoder of addresses left is no quote
/// with an operator behind it. The decoded value decides.
#[test]
fn encoded_values() {
    let places = [Place::Cookie, Place::Header, Place::PathSegment, Place::Query, Place::Json];
    for place in places {
        for text in [
            "She%20said%20'yes'%20--%20twice!",
            "Levi's%20'Slim'%20--%20blue",
            "What's%20the%20diff%20between%20'AND'%20and%20'OR'",
            "L'%C3%A9t%C3%A9%20'indien'%2C%20ou%20'or'",
        ] {
            testing::passes_at(Class::Sqli, place, "x", text);
        }
        for text in [
            "x'--",
            "x'or'1'='1",
            "1%20or%201=1",
            "a'%20or%20'1'='1",
            "a'%20or%20'1'='1'--%20",
            "x'%20union%20select%201%2C2%20--%20",
            "x'/**/or/**/5%25=5#",
            "a%27%20or%20%271%27%3D%271",
        ] {
            let (have, is_blocked) = testing::look(Class::Sqli, place, "x", text.as_bytes());
            assert!(is_blocked, "{text} at {place:?}: {have}");
        }
    }
}

/// `text` in the field `name` of a query string is blocked, or not.
#[track_caller]
fn blocks_in(name: &str, text: &str, wanted: bool) {
    let (kinds, is_blocked) = testing::look(Class::Sqli, Place::Query, name, text.as_bytes());
    assert_eq!(is_blocked, wanted, "{name}={text}: {kinds}");
}

/// A condition behind the number in a field that takes a number, over whatever column.
#[test]
fn conditions_in_fields_for_numbers() {
    for text in [
        "1 or rowid",
        "1 or name~''",
        "1e0or 2",
        "(1)or(id)",
        "1 or not mail",
        "3 xor login",
        "8 div(stock)",
        "0 in(id>99)",
        "1||mail",
    ] {
        blocks_in("user_id", text, true);
    }
    for (name, text) in
        [("age", "1 or more"), ("q", "1 or 2"), ("id", "1"), ("id", "1,2"), ("id", "1-2"), ("id", "a or b")]
    {
        blocks_in(name, text, false);
    }
}
