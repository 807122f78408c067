use crate::Class::NoSql;
use crate::Place;
use crate::detectors::testing::{blocks, blocks_at, look, passes, passes_at};

#[test]
fn operators() {
    blocks_at(NoSql, Place::Name, "user[$ne]", "name-operator");
    blocks_at(NoSql, Place::Name, "login[$nin][]", "name-operator");
    blocks_at(NoSql, Place::Name, "filter.$where", "key-runs");
    blocks(NoSql, "{\"$gt\": \"\"}", "key-compares true-comparison whole");
    blocks(NoSql, "{\"user\": {\"$ne\": null}, \"pass\": {\"$regex\": \"^a\"}}", "key-compares key-matches");
    blocks(NoSql, "', $or: [ {}, { 'a':'a", "key-joins break-out");
    blocks(NoSql, "1, $where: '1 == 1'", "key-runs");
}

#[test]
fn operators_of_a_body() {
    blocks_at(
        NoSql,
        Place::RawBody,
        "{\"user\":\"a\",\"password\": {\"$nin\": [] }}",
        "key-compares credential",
    );
    blocks_at(NoSql, Place::Name, "filter.$or.1.password.$exists", "key-compares credential");
    blocks(NoSql, "' } ], $comment:'x'", "splice break-out");
    blocks(NoSql, "}, { password : /.*/ }", "splice key-matches");
    blocks_at(NoSql, Place::RawBody, "{\"p\":{\"$ne\":null}}", "key-compares true-comparison");
    passes_at(NoSql, Place::RawBody, "", "{\"where\":{\"p\":{\"$ne\":null}}}");
    passes_at(NoSql, Place::RawBody, "", "{\"tags\": {\"$in\": []}, \"schema\": {\"$type\": {}}}");
    passes_at(NoSql, Place::Name, "", "filters[$or][0][a][$eq]");
    passes_at(NoSql, Place::Name, "", "$or][0][a][$eq");
    passes(NoSql, "}, { a: 1 }");
    passes(NoSql, "], b: 2");
}

/// A filter of an interface asks for users by name and address as for anything else; never for a secret.
#[test]
fn filters_ask_for_users_and_not_for_secrets() {
    for filter in ["filter", "where", "query"] {
        for field in ["email", "username", "account"] {
            passes_at(NoSql, Place::Name, "", &format!("{filter}.{field}.$in"));
            passes_at(NoSql, Place::Name, "", &format!("{filter}.$or.0.{field}.$exists"));
            // Where nothing says that it is a filter, it is a login's.
            blocks_at(NoSql, Place::Name, &format!("form.{field}.$ne"), "key-compares credential");
        }
        for secret in ["password", "resetToken", "apiKey", "code", "session"] {
            blocks_at(NoSql, Place::Name, &format!("{filter}.{secret}.$gte"), "key-compares credential");
        }
    }
}

#[test]
fn scripts() {
    blocks(NoSql, "' || 'a'=='a", "script-condition");
    blocks(NoSql, "'; return true; var x='", "script-return");
    blocks(NoSql, "0;return true", "script-return");
    blocks(NoSql, "';sleep(5000);'", "script-waits");
    blocks(NoSql, "' && this.password.match(/.*/)//", "script-field");
    blocks(NoSql, "db.users.find({$where: function() { return true }})", "method key-runs");
}

#[test]
fn ordinary() {
    passes(NoSql, "costs $5 or $10, in all $15");
    passes(NoSql, "query Q($where: Filter, $in: [Int]) { a(where: $where, in: $in) { id } }");
    passes_at(NoSql, Place::Json, "json.$set", "a");
    passes(NoSql, "{\"event\": \"x\", \"properties\": {\"$browser\": \"Firefox\", \"$os\": \"Linux\"}}");
    passes(NoSql, "if (a == 1 || b == 2) { return x; }");
    passes(NoSql, "echo $and $or");
}

#[test]
fn said_and_whole() {
    passes(NoSql, "MongoDB: db.users.find({age: {$gt: 18}}).sort({name: 1})");
    passes(NoSql, "console.log('done'); return true;");
    blocks(NoSql, "$regex", "key-matches whole");
    blocks(NoSql, "db.injection.insert({success:1});return 1;", "method script-return");
    passes_at(NoSql, Place::Query, "op", "$gt");
}

#[test]
fn what_is_closed_was_opened() {
    passes(NoSql, "#include <stdio.h>\nint main(void) { printf(\"hi\\n\"); return 0; }");
    passes(
        NoSql,
        "    });\n    get x() {\n        return this.y.z();\n    }\n    a() {\n        b(1);\n        return 5;\n    }",
    );
    blocks(NoSql, "});\nreturn true;", "script-return");
    blocks(NoSql, "'});\na(1);\nreturn true; var x=('", "script-return");
    blocks(NoSql, "'); return true; var x=('", "script-return");
    blocks(NoSql, "1); return true", "script-return");
    blocks(NoSql, "{};return true", "script-return");
    passes(NoSql, "{\"name\":{\"$regex\":\"^bob\"}}");
    blocks(NoSql, "{\"username\":{\"$regex\":\"^a\"}}", "key-matches credential");
}

/// Text before a piece that breaks out takes nothing from it.
#[test]
fn text_before() {
    let words = "we didn't see it, and walked along the river {to} \"old\" houses; ".repeat(30);
    for attack in ["', $or: [ {}, { 'a':'a", "' } ], $where: '1 == 1'", "';sleep(5000);'", "'||'1'=='1"] {
        let (have, is_blocked) = look(NoSql, Place::Query, "q", format!("{words}{attack}").as_bytes());
        assert!(is_blocked, "{attack}: {have}");
    }
}

/// In a field for text as well, in a quotation or not, however long the text is.
#[test]
fn text_before_in_texts() {
    let attacks = [
        "', $where: '1 == 1'",
        "', $or: [ {}, { 'a':'a",
        "' } ], $comment:'successful'",
        "' && this.password.match(/.*/)//",
        "\";return(true);var xyz=\"a",
        "';it=new Date();do{pt=new Date();}while(pt-it<5000);",
    ];
    for words in [String::new(), "we walked along the river ".repeat(4), "and saw {old} houses; ".repeat(60)]
    {
        for attack in attacks {
            for name in ["comment", "q"] {
                let (have, is_blocked) =
                    look(NoSql, Place::Form, name, format!("{words}{attack}").as_bytes());
                assert!(is_blocked, "{name}: {} bytes and {attack}: {have}", words.len());
            }
            let fence = format!("see\n```\nb{attack}\n```\nand so on");
            let (have, is_blocked) = look(NoSql, Place::Form, "comment", fence.as_bytes());
            assert!(is_blocked, "{fence}: {have}");
        }
    }
}

#[test]
fn other_query_languages() {
    for text in [
        "x'}) DETACH DELETE n//",
        "x' RETURN n UNION MATCH (n) RETURN n//",
        "' CALL apoc.load.json('http://a.example') YIELD value RETURN 1//",
        "x\"}) return n //",
        "1).drop().V(",
        "x').valueMap().by('",
        "x' or 1 eq 1 or 'a' eq 'b",
        "x') or startswith(Name,'a') eq true or ('a' eq 'a",
        "' or Password ne null",
        "x\"} or {a=~\".+",
        "x\"} unless secret:metric{a=\"",
        "\") |> yield() //",
        "x\") |> sql.to(",
    ] {
        let (have, is_blocked) = look(NoSql, Place::Query, "id", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
    for text in [
        "MATCH (n) RETURN n",
        "x.find(\"a\").map(b)",
        "up{job=\"a\"} or up{job=\"b\"}",
        "$filter=Name eq 'O''Brien' or Age eq 5",
        "Category eq 'Books' or Name ne null",
        "the boys' return home // see you",
        "from(bucket: \"a\") |> range(start: -1h) |> yield()",
        "g.V().has('name','a').out()",
        "(see below).drop by (",
        "https://a.example/x.V(",
        "Enum.map([1], fn x -> \"a\" end) |> IO.inspect()",
        "the dogs' or cats' eq uipment",
        "O'Brien set a match // and left",
    ] {
        passes(NoSql, text);
    }
}

/// A query of CouchDB stands in a member of its own.
#[test]
fn selectors() {
    let blocks = |body: &str| {
        let detectors = crate::Detectors::new();
        let mut analysis = crate::Analysis::new();
        analysis.request_body(&detectors, b"application/json", body.as_bytes());
        let worst = analysis.worst(&detectors, crate::Level::Balanced);
        worst.is_some_and(|worst| worst.blocks(crate::Level::Balanced))
    };
    let query = r#"{"year":{"$gt":2010},"$or":[{"a":1},{"b":{"$exists":true}}]}"#;
    assert!(!blocks(&format!("{{\"selector\":{query},\"limit\":5}}")));
    assert!(blocks(r#"{"selector":{"user":"a","password":{"$ne":"x"}}}"#));
    assert!(blocks(r#"{"username":{"$gt":""},"password":{"$gt":""}}"#));
}

/// What chooses the parser of a query, where the query is the visitor's.
#[test]
fn parsers_of_search_servers() {
    for text in [
        "{!join from=id to=x}secret:*",
        "{!func}if(exists(query({!v='password:a*'})),1,0)",
        "{!parent which='*:*'}",
        " {!xmlparser v='<x/>'}",
        "{!type=graph from=a to=b}x",
        "*:* OR _query_:\"{!xmlparser v='<a/>'}\"",
        "lamp +{!frange l=0}price",
        "{!lucene q.op=AND}a b",
        "{!join\tfrom=a to=b}x",
        "{! join from=a to=b}x",
        "x\n{!join 'from'=a to=b}x",
    ] {
        for (place, name) in [(Place::Query, "q"), (Place::Form, "search"), (Place::Json, "term")] {
            let (have, is_blocked) = look(NoSql, place, name, text.as_bytes());
            assert!(is_blocked && have.contains("local-parameters"), "{name}={text}: {have}");
        }
    }
    for text in [
        "Dear {!Contact.FirstName}, thank you",
        "{!Account.Name}",
        "{!IF(a = b, 1, 2)}",
        "{!$User.Id}",
        "{!v.items}",
        "if (a) {!b}",
        "class A{!term}",
        "what does {! mean in Solr",
        "{ !term }",
        "{{!-- a comment --}}",
        "{{! comment }}",
        "{!important rule=1}",
    ] {
        passes_at(NoSql, Place::Form, "text", text);
    }
    for (name, text) in [
        ("fq", "{!geofilt sfield=store pt=45.1,-93.8 d=5}"),
        ("facet.query", "{!term f=cat}x"),
        ("fq", "{!tag=c}a:b"),
    ] {
        passes_at(NoSql, Place::Query, name, text);
    }
}

/// Whatever the expression computes, and whatever the field is for: nobody asks for the order of passwords.
#[test]
fn secrets_of_a_document() {
    for text in [
        "{\"user\":\"a\",\"$expr\":{\"$lt\":[\"$password\",\"i\"]}}",
        "{\"$expr\":{\"$eq\":[{\"$strLenCP\":\"$password\"},14]}}",
        "{'$expr': {'$gt': [{'$substr': ['$user.reset_token', 0, 1]}, 'a']}}",
    ] {
        for name in ["filter", "id", "q"] {
            let (have, is_blocked) = look(NoSql, Place::Form, name, text.as_bytes());
            assert!(is_blocked && have.contains("secret-operand"), "{name}={text}: {have}");
        }
        blocks_at(NoSql, Place::RawBody, text, "secret-operand");
    }
    for text in ["this.password < 'i'", "this.pin[0] == 3", "this.password>='a'"] {
        blocks_at(NoSql, Place::Query, text, "script-field");
    }
    for text in [
        "{\"$expr\": {\"$gt\": [\"$spent\", \"$budget\"]}}",
        "{\"password\": \"$password\", \"host\": \"$host\"}",
        "{\"$group\": {\"_id\": \"$token\"}}",
        "{\"$expr\": {\"$eq\": [\"$a.b\", \"$$password\"]}}",
        "set \"$password\" before you start",
        "this.password = value",
        "this.items < 3",
        "this.password is too short",
        "this.title<b>",
    ] {
        for place in [Place::Json, Place::RawBody] {
            let (have, _) = look(NoSql, place, "filter", text.as_bytes());
            assert!(!have.contains("secret-operand") && !have.contains("script-field"), "{text}: {have}");
        }
    }
}
