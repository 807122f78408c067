//! Documents of GraphQL beside their schema.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use portcullis_declared::{Api, GraphqlLimits, Sent, Settings, limits};

use crate::{deviations, of_line, told};

const SCHEMA: &str = r#"
"The shop."
schema @link(url: "x") { query: Root, mutation: Change }
directive @link(url: String) on SCHEMA
directive @cost(weight: Int = 1) repeatable on | FIELD_DEFINITION | OBJECT

"""
A node
"""
interface Node { id: ID! }
type Root {
  "One of them"
  user(id: ID!, at: Moment): User @cost(weight: 2)
  find(filter: Filter = { name: "a", tags: ["b"] }): [Found!]!
}
type Change { rename(id: ID!, name: String!): User }
type User implements Node & Named @cost { id: ID! name: String friends(first: Int): [User!] role: Role }
interface Named { name: String }
union Found = | User | Order
type Order { id: ID! total: Float }
enum Role { "all" ADMIN USER @deprecated }
input Filter { name: String = "x", tags: [String!] }
scalar Moment @specifiedBy(url: "y")
extend type User { age: Int }
"#;

fn with(limits: GraphqlLimits) -> Api {
    let settings = Settings { graphql: Some(limits), ..Settings::default() };
    Api::compile_with(SCHEMA, &settings).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// What is told of a body, but that no operation of it can be read.
fn of_body(api: &Api, content_type: &str, body: &str) -> Vec<String> {
    let types = [("Content-Type", content_type)];
    let mut found = deviations(api, "POST /graphql", &types, Sent::Whole(body.as_bytes()));
    found.retain(|each| !each.rule.starts_with("no operation can be read"));
    told(&found)
}

fn of_document(api: &Api, document: &str) -> Vec<String> {
    of_body(api, "application/json", &serde_json::json!({ "query": document }).to_string())
}

#[test]
fn fields_types_arguments_and_directives() {
    let api = with(GraphqlLimits::default());
    assert_eq!(api.counts(), (15, 12));
    for (document, expected) in [
        ("{ user(id: 1) { id name age role __typename } }", None),
        (
            "query Q($id: ID!, $r: Role = ADMIN) { u: user(id: $id) { ...F } } fragment F on User { friends(first: 2) { name } }",
            None,
        ),
        (
            "{ find { ... on Order { total } ... on User @include(if: true) { name } ...{ __typename } } }",
            None,
        ),
        ("mutation { rename(id: 1, name: \"x\") { id } }", None),
        ("{ user(id: 1) { pasword } }", Some("json:query `pasword` is not declared in `User`")),
        ("{ admin { id } }", Some("json:query `admin` is not declared in `Root`")),
        ("{ user(id: 1) { role { id } } }", Some("json:query `id` is not declared in `Role`")),
        ("{ find { id } }", Some("json:query `id` is not declared in `Found`")),
        ("{ user(id: 1, debug: true) { id } }", Some("json:query the argument `debug` is not declared")),
        ("{ user(id: 1) { ... on Admin { id } } }", Some("json:query the type `Admin` is not declared")),
        ("query($f: Secret) { user(id: 1) { id } }", Some("json:query the type `Secret` is not declared")),
        ("{ user(id: 1) @defer { id } }", Some("json:query the directive `@defer` is not declared")),
        ("{ user(id: 1) { ...F } }", Some("json:query the fragment `F` is not declared")),
        (
            "fragment F on User { secret } { user(id: 1) { ...F } }",
            Some("json:query `secret` is not declared in `User`"),
        ),
        (
            "subscription { user(id: 1) { id } }",
            Some("json:query `query` has subscriptions, and the schema has none"),
        ),
        ("{ __schema { types { name } } }", Some("json:query `query` must not ask for the schema")),
        (
            "{ user(id: 1) { id }",
            Some("json:query `query` is no document of GraphQL from line 1, column 21 on"),
        ),
        (
            "{ user(id: 1) { id } } type A { b: C }",
            Some("json:query `query` is no document of GraphQL from line 1, column 29 on"),
        ),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(of_document(&api, document), expected, "{document}");
    }
    let found = deviations(
        &api,
        "POST /",
        &[("Content-Type", "application/graphql")],
        Sent::Whole(b"{ user(id: 1) { pasword } }"),
    );
    assert_eq!(found[0].to_string(), "`pasword` is not declared in `User` (User)");
}

#[test]
fn costs() {
    let api = with(GraphqlLimits { depth: 3, fields: 10, aliases: 2, batch: 2, ..GraphqlLimits::default() });
    for (document, expected) in [
        ("{ user(id: 1) { friends { id } } }", None),
        (
            "{ user(id: 1) { friends { friends { id } } } }",
            Some("json:query `query` must have at most 3 levels, has 4"),
        ),
        // Levels and fields count where fragments repeat them.
        (
            "{ user(id: 1) { friends { ...F } } } fragment F on User { friends { id } }",
            Some("json:query `query` must have at most 3 levels, has 4"),
        ),
        (
            "{ a: user(id: 1) { ...F ...F ...F } } fragment F on User { id name age role }",
            Some("json:query `query` must have at most 10 fields, has 13"),
        ),
        (
            "{ a: user(id: 1) { id } b: user(id: 2) { id } c: user(id: 3) { id } }",
            Some("json:query `query` must have at most 2 aliases, has 3"),
        ),
        (
            "{ user(id: 1) { ...F } } fragment F on User { friends { ...G } } fragment G on User { ...F }",
            Some("json:query `query` has fragments that lead in a circle"),
        ),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(of_document(&api, document), expected, "{document}");
    }
    let one = r#"{"query": "{ user(id: 1) { id } }"}"#;
    assert_eq!(of_body(&api, "application/json", &format!("[{one}, {one}]")), [""; 0]);
    assert_eq!(
        of_body(&api, "application/json", &format!("[{one}, {one}, {one}]")),
        ["json: must have at most 2 requests, has 3"]
    );
}

#[test]
fn ways_of_sending() {
    let api = with(GraphqlLimits::default());
    assert_eq!(of_line(&api, "GET /graphql?query=%7Buser(id:1)%7Bid%7D%7D"), [""; 0]);
    assert_eq!(
        of_line(&api, "GET /graphql?query=%7Buser(id:1)%7Bpasword%7D%7D"),
        ["query:query `pasword` is not declared in `User`"]
    );
    assert_eq!(
        of_line(&api, "GET /graphql?query=mutation%7Brename(id:1,name:%22x%22)%7Bid%7D%7D"),
        ["query:query `query` must be sent by POST: it has mutations"]
    );
    assert_eq!(of_line(&api, "GET /graphql"), [""; 0]);
    assert_eq!(of_line(&api, "DELETE /graphql"), ["method: must be POST or GET"]);
    let twice = "GET /graphql?query=%7Buser(id:1)%7Bid%7D%7D&query=%7B__schema%7Bx%7D%7D";
    assert_eq!(of_line(&api, twice), ["query:query `query` is there more than once"]);
    let form = of_body(&api, "application/x-www-form-urlencoded", "query={x}");
    assert_eq!(form, ["header:content-type must be application/json or application/graphql"]);
    for (body, expected) in [
        ("{}", "json:query `query` is required"),
        ("[]", ""),
        ("7", "json:query `query` is required"),
        (r#"{"query": ["{ a }"]}"#, "json:query `query` must be a text"),
        (r#"{"query": "{ user(id: 1) { id } }", "query": "{ x }"}"#, "raw-body: the body has a member twice"),
        (r#"{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "ab"}}}"#, ""),
    ] {
        let found = of_body(&api, "application/json", body);
        assert_eq!(found.first().map_or("", String::as_str), expected, "{body}");
    }
    let api = with(GraphqlLimits { persisted_only: true, introspection: true, ..GraphqlLimits::default() });
    assert_eq!(
        of_document(&api, "{ user(id: 1) { id } }"),
        ["json:query `query` must not be there: only persisted queries are accepted"]
    );
    assert_eq!(of_body(&api, "application/json", r#"{"documentId": "ab"}"#), [""; 0]);
}

/// A schema as an introspection answers it is the same schema.
#[test]
fn introspected() {
    let of = |kind: &str, name: Option<&str>, inner: serde_json::Value| serde_json::json!({"kind": kind, "name": name, "ofType": inner});
    let user = of("NON_NULL", None, of("LIST", None, of("OBJECT", Some("User"), serde_json::Value::Null)));
    let text = serde_json::json!({"data": {"__schema": {
        "queryType": {"name": "Query"}, "mutationType": null, "subscriptionType": null,
        "types": [
            {"kind": "OBJECT", "name": "Query", "fields": [{"name": "users", "args": [{"name": "first"}], "type": user}]},
            {"kind": "OBJECT", "name": "User", "fields": [{"name": "id", "args": [], "type": {"kind": "SCALAR", "name": "ID"}}]}],
        "directives": [{"name": "live"}]}}});
    let api = Api::compile(&text.to_string()).unwrap();
    assert_eq!(of_document(&api, "{ users(first: 3) @live { id } }"), [""; 0]);
    assert_eq!(
        of_document(&api, "{ users(last: 3) { mail } }"),
        ["json:query the argument `last` is not declared", "json:query `mail` is not declared in `User`"]
    );
    let broken = text.to_string().replace("\"User\",\"ofType\"", "\"Gone\",\"ofType\"");
    let problems = Api::compile(&broken).unwrap_err();
    assert_eq!(problems[0].to_string().split(": ").last().unwrap(), "there is no type `Gone`");
}

#[test]
fn schemas_with_mistakes() {
    for (text, expected) in [
        ("type Query { a: B }", "line 1: Query.a: there is no type `B`"),
        ("type Query { a: Int }\ntype Query { b: Int }", "line 1: Query: the type is there twice"),
        ("type A { b: Int }", "the schema has no type of queries"),
        ("schema { query: Q }\n", "Q: the schema has no such type"),
        (
            "type Query {\n  a: Int\n  b Int\n}",
            "line 3: this is no schema of GraphQL: column 5 is not as its language says",
        ),
        (
            "type Query { a: Int } \"open",
            "line 1: this is no schema of GraphQL: column 23 is not as its language says",
        ),
    ] {
        let problems = Api::compile(text).unwrap_err();
        assert_eq!(problems[0].to_string(), expected, "{text}");
    }
    // YAML whose first key is a word of the language.
    assert!(Api::compile("type: object\n").unwrap_err()[0].message.contains("describes no API"));
}

/// Settings that a description has no use for are reported.
#[test]
fn settings_without_effect() {
    let settings = Settings { answers: true, graphql: Some(GraphqlLimits::default()) };
    let unused = |text: &str| Api::compile_with(text, &settings).unwrap().unused(&settings).len();
    assert_eq!(unused(SCHEMA), 1);
    assert_eq!(unused(r#"{"openapi": "3.1.0", "paths": {}}"#), 1);
    assert_eq!(unused(r#"{"tools": []}"#), 2);
}

/// However a document is made, it is compared in a time that grows with its length alone.
#[test]
fn hostile_documents() {
    let api = with(GraphqlLimits::default());
    let mut doubling = String::from("{ user(id: 1) { ...F0 } }");
    for n in 0..150 {
        let _ = write!(doubling, " fragment F{n} on User {{ ...F{} ...F{} }}", n + 1, n + 1);
    }
    doubling.push_str(" fragment F150 on User { id }");
    let mut many = String::from("{ user(id: 1) { id } }");
    for n in 0..=limits::GRAPHQL_FRAGMENTS_MAX {
        let _ = write!(many, " fragment F{n} on User {{ id }}");
    }
    let deep =
        |open: &str, count: usize, close: &str| format!("{}{}", open.repeat(count), close.repeat(count));
    let list = |count: usize| format!("{{ user(id: {}) {{ id }} }}", deep("[", count, "]"));
    let wide = format!("{{ {} }}", "x ".repeat(200_000));
    let quotes = format!("{{ a(b: {}", "\"\"\"".repeat(100_000));
    for (what, document, expected) in [
        ("doubling", doubling, "must have at most 1000 fields"),
        ("many fragments", many, "must have at most 200 fragments"),
        ("selections", deep("{a", 50_000, "}"), "is no document"),
        ("lists", list(50_000), "is no document"),
        ("wide", wide, "must have at most 20000 parts"),
        ("quotes", quotes, "is no document"),
        (
            "unknown names",
            format!("{{ {} }}", (0..5_000).fold(String::new(), |all, n| all + &format!("x{n} "))),
            "is not declared",
        ),
    ] {
        let begin = Instant::now();
        let found = of_document(&api, &document);
        assert!(found.iter().any(|each| each.contains(expected)), "{what}: {found:?}");
        assert!(found.len() <= limits::DEVIATIONS_MAX, "{what}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{what}: {:?}", begin.elapsed());
    }
    let deep_schema = format!("type Query {{ a: {}Int{} }}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Api::compile(&deep_schema).is_ok());
    let deep_default = format!("input I {{ a: Int = {} }} type Query {{ a: Int }}", "[".repeat(100_000));
    assert!(Api::compile(&deep_default).is_err());
}
