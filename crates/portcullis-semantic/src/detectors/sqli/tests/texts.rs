//! Texts that look like SQL.

use super::*;

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
    // Nothing is selected, nothing waits, and what ends in a question mark is not SQL.
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

/// Words that are selected from nothing, in parentheses behind a word and a space, are an instruction.
#[test]
fn instructions_that_select() {
    for text in [
        "Toppings: ham or cheese (select all that apply)",
        "plan A and plan B (select one or more)",
        "Days and times (select up to 3) for the course",
    ] {
        passes(text);
        passes_at(Class::Sqli, Place::Query, "q", text);
    }
    for text in [
        "1 and exists (select password from users)",
        "1 or a in (select b c from users)",
        "1 or ascii((select password))>1",
        "x' and user() like (select secret from users)--",
        "1 and length (select pw from users)>1",
        "1 and array (select password limit 1)>'{a'",
        "1 and ARRAY  (select password p) between '{a}' and '{b}'",
        "1 and json_array (select password limit 1) is not null",
    ] {
        check(text, "subselect");
    }
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
