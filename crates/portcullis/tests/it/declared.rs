//! Declared APIs in the real program: what differs is refused or told, in every mode.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::descriptors::{self, bytes, whole};
use crate::served::{Served, application, program, says};

const DESCRIPTION: &str = "openapi: 3.0.3
servers: [{ url: 'https://shop.example/v1' }]
security: [{ token: [] }]
components:
  securitySchemes: { token: { type: http, scheme: bearer } }
  schemas:
    Order:
      type: object
      required: [item]
      properties:
        item: { type: string, pattern: '^[a-z]+$' }
        quantity: { type: integer, maximum: 100 }
        password: { type: integer }
        id: { type: integer, readOnly: true }
paths:
  /orders:
    get:
      security: []
      parameters: [{ name: limit, in: query, schema: { type: integer } }]
    post:
      requestBody:
        content: { application/json: { schema: { $ref: '#/components/schemas/Order' } } }
";

fn describe(folder: &Path) -> String {
    let file = folder.join("openapi.yaml");
    std::fs::write(&file, DESCRIPTION).unwrap();
    file.display().to_string()
}

fn events(served: &Served, count: usize) -> Vec<Value> {
    served.events(count).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The body of an order with its credentials.
fn order(served: &Served, body: &str) -> u16 {
    let length = body.len();
    served
        .raw(format!(
            "POST /v1/orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer abc\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
        .status()
}

#[test]
fn deviations_in_every_mode() {
    let application = application(|_| says("hello"));
    for mode in [
        "mode = \"semantic\"",
        "mode = \"both\"\nrules = { directives = \"SecRuleEngine On\\nSecRequestBodyAccess On\" }",
        "mode = \"crs\"\nrules = { directives = \"SecRuleEngine On\\nSecRequestBodyAccess On\" }",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let site = format!(
            "{mode}\napi = {{ schema = \"{}\", unknown_path = \"block\", parameters = \"block\", body = \"block\" }}",
            describe(folder.path())
        );
        let served = Served::start_site(&application, &site, "");
        for (target, status) in [
            ("/v1/orders?limit=5", 200),
            ("/v1/orders?limit=five", 403),
            ("/v1/orders?debug=1", 200),
            ("/v1/admin", 403),
            ("/orders", 403),
        ] {
            assert_eq!(served.get(target).status(), status, "{mode}: {target}");
        }
        assert_eq!(order(&served, r#"{"item": "pen", "quantity": 3}"#), 200, "{mode}");
        assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 403, "{mode}");
        assert_eq!(order(&served, r#"{"item": "pen", "password": "hunter2"}"#), 403, "{mode}");
        let events = events(&served, 6);
        let of = |kind: &str| {
            let of_kind = |event: &&Value| event["findings"][0]["kind"] == kind;
            events.iter().find(of_kind).unwrap_or_else(|| panic!("{mode}: {kind}: {events:#?}"))
        };
        let quantity = of("api.body");
        assert_eq!(quantity["verdict"]["class"], "api");
        assert_eq!(quantity["findings"][0]["name"], "quantity");
        assert_eq!(
            quantity["findings"][0]["evidence"],
            "`quantity` must be at most 100, is 5,000 (/components/schemas/Order/properties/quantity/maximum)"
        );
        let unknown = of("api.unknown-parameter");
        assert_eq!(
            (&unknown["verdict"]["action"], &unknown["findings"][0]["name"]),
            (&"detect".into(), &"debug".into())
        );
        let shown = format!("{events:?}");
        assert!(!shown.contains("hunter2") && shown.contains("[redacted]"), "{shown}");
        served.counts("portcullis_semantic_findings_total{class=\"api\",outcome=\"blocked\"}", 5.0);
    }
}

/// Classes, exclusions and routes have the last word.
#[test]
fn switched_off() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = describe(folder.path());
    let site = format!(
        "mode = \"semantic\"\napi = {{ schema = \"{schema}\", unknown_path = \"block\", body = \"block\" }}\n\
         semantic = {{ exclude = [{{ kind = \"api.unknown-path\", path = \"/health\" }}, {{ location = \"json:quantity\" }}] }}\n\
         [[sites.routes]]\npath = \"/free/\"\napi = {{ unknown_path = \"off\" }}\n\
         [[sites.routes]]\npath = \"/out/\"\nsemantic = {{ classes = {{ api = \"off\" }} }}\n"
    );
    let served = Served::start_site(&application, &site, "");
    for (target, status) in [("/health", 200), ("/free/x", 200), ("/out/x", 200), ("/other", 403)] {
        assert_eq!(served.get(target).status(), status, "{target}");
    }
    assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 200);
    assert_eq!(order(&served, r#"{"item": "Pen"}"#), 403);
}

/// A body that is larger than what is held is told, and counted as not inspected.
#[test]
fn bodies_beyond_the_limit() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let site = format!(
        "mode = \"semantic\"\nrequest_body = {{ limit = 1000, over_limit = \"pass_uninspected\" }}\n\
         api = {{ schema = \"{}\", body = \"block\" }}",
        describe(folder.path())
    );
    let served = Served::start_site(&application, &site, "");
    let long = format!("{{\"item\": \"{}\"}}", "A".repeat(2_000));
    assert_eq!(order(&served, &long), 200);
    let event = &events(&served, 1)[0];
    assert_eq!(
        (&event["verdict"]["action"], &event["findings"][0]["kind"]),
        (&"detect".into(), &"api.unchecked".into())
    );
    assert!(served.metric("portcullis_bytes_not_inspected_total{reason=\"over_limit\"}") > 900.0);
}

/// Where bodies are not shown at all, requests without one are as declared, and those with one are told.
#[test]
fn bodies_that_are_not_shown() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = describe(folder.path());
    let site = format!(
        "mode = \"semantic\"\nrequest_body = {{ inspect = false }}\napi = {{ schema = \"{schema}\", body = \"block\" }}"
    );
    let served = Served::start_site(&application, &site, "");
    assert_eq!(served.get("/v1/orders").status(), 200);
    assert_eq!(order(&served, r#"{"item": "pen", "quantity": 5000}"#), 200);
    let events = events(&served, 1);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!(events[0]["findings"][0]["kind"], "api.unchecked");
}

/// A description with a mistake stops the load, with its file, line and pointer.
#[test]
fn mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("openapi.yaml");
    std::fs::write(&schema, "openapi: 3.1.0\npaths:\n  /a:\n    $ref: 'b.yaml'\n").unwrap();
    let config = folder.path().join("portcullis.toml");
    let text = "listeners = [{ address = \"127.0.0.1:0\" }]\nupstreams = { u = { endpoints = [\"http://127.0.0.1:1\"] } }\n\
        [[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"u\"\napi = { schema = \"openapi.yaml\" }\n";
    std::fs::write(&config, text).unwrap();
    for arguments in [vec!["check"], vec!["run", "--config"]] {
        let output = Command::new(program()).args(&arguments).arg(&config).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("`$ref` leads to another document") && said.contains("/paths/~1a"), "{said}");
        assert!(said.contains(&format!("{}:", schema.display())), "{said}");
        assert!(!said.contains("error: error"), "{said}");
    }
}

const FIELDS: &str = "openapi: 3.1.0
paths:
  /item:
    get:
      parameters:
        - { name: id, in: query, schema: { type: string } }
        - { name: page, in: query, schema: { type: integer } }
    post:
      requestBody:
        content:
          application/json:
            schema: { properties: { day: { type: string, format: date }, note: { type: string } } }
";
/// Signs of code, and no attack that the detector knows.
const SIGNS: &str = "7';%3D)(";

/// What is declared is known on the first day: a value of another type is one unlike its field, and free text
/// is not, whatever the field has carried so far.
#[test]
fn declared_types_are_known_types() {
    let application = application(|_| says("hello"));
    let data = tempfile::tempdir().unwrap();
    let schema = data.path().join("fields.yaml");
    std::fs::write(&schema, FIELDS).unwrap();
    let api = format!("api = {{ schema = \"{}\" }}", schema.display());
    let requests: String = (0..30)
        .map(|number| {
            let request = format!("GET /item?id={number} HTTP/1.1\r\nHost: a\r\n\r\n");
            format!("{}\n", serde_json::json!({ "request": request }))
        })
        .collect();
    let file = data.path().join("requests.jsonl");
    std::fs::write(&file, requests).unwrap();
    let learned = Command::new(program())
        .args(["learn", &file.display().to_string(), "--site", "site", "--values", "20", "--data"])
        .arg(data.path())
        .output()
        .unwrap();
    assert!(learned.status.success(), "{}", String::from_utf8_lossy(&learned.stderr));
    let folder = format!("[data]\nfolder = \"{}\"\n", data.path().display());
    let learns = "mode = \"semantic\"\nfields = { unusual = \"block\" }";
    let served = Served::start_site(&application, learns, &folder);
    assert_eq!(served.get(&format!("/item?id={SIGNS}")).status(), 403, "the field is closed");
    served.stop();

    let served = Served::start_site(&application, &format!("{learns}\n{api}"), &folder);
    assert_eq!(served.get(&format!("/item?id={SIGNS}")).status(), 200, "it is declared as free text");
    assert_eq!(served.get("/item?page=7").status(), 200);
    assert_eq!(served.get(&format!("/item?page={SIGNS}")).status(), 403);
    assert_eq!(served.get(&format!("/item?PAGE%5B0%5D={SIGNS}")).status(), 403);
    let post = |body: &str| served.post("/item", "application/json", body).status();
    assert_eq!(post(r#"{"day": "2026-11-30", "note": "7'; =)("}"#), 200);
    assert_eq!(post(r#"{"day": "2026-11-30'; =)("}"#), 403);
    let events = events(&served, 3);
    let of = |target: &str| {
        let of_target = |event: &&Value| event["request"]["target"] == *target;
        let event = events.iter().find(of_target).unwrap_or_else(|| panic!("{target}: {events:#?}"));
        let findings = event["findings"].as_array().unwrap();
        findings.iter().find(|each| each["class"] == "field").unwrap().clone()
    };
    let finding = of(&format!("/item?page={SIGNS}"));
    assert_eq!(finding["kind"], "field.unusual-syntax");
    let evidence = finding["evidence"].as_str().unwrap();
    let known = "declared as whole numbers (/paths/~1item/get/parameters/1/schema); this is one of";
    assert!(evidence.starts_with(known), "{evidence}");
    served.stop();

    // A site that learns nothing reports them.
    let served = Served::start_site(&application, &format!("mode = \"semantic\"\n{api}"), "");
    assert_eq!(served.get(&format!("/item?page={SIGNS}")).status(), 200);
    let event = &self::events(&served, 1)[0];
    let kinds: Vec<&Value> =
        event["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]).collect();
    assert_eq!(kinds, ["api.parameter", "field.unusual-syntax"]);
    served.counts("portcullis_semantic_findings_total{class=\"field\",outcome=\"detected\"}", 1.0);
}

const ANSWERS: &str = "openapi: 3.1.0
paths:
  /user:
    get:
      responses:
        '200':
          content:
            application/json:
              schema:
                properties:
                  id: { type: integer }
                  hash: { type: string, writeOnly: true }
        '404': {}
";

/// Answers that are not as declared are refused or reported, in every mode.
#[test]
fn answers() {
    let application = application(|request| {
        let (status, kind, body) = match request.target.rsplit('?').next().unwrap_or_default() {
            "good" => (200, "application/json", r#"{"id": 7}"#.to_owned()),
            "type" => (200, "application/json", r#"{"id": "seven"}"#.to_owned()),
            "secret" => (200, "application/json", r#"{"id": 7, "hash": "s3cret"}"#.to_owned()),
            "page" => (200, "text/html", "<p>".to_owned()),
            "long" => {
                (200, "application/json", format!("{{\"id\": 7, \"x\": \"{}\"}}", "a".repeat(3_000_000)))
            }
            _ => (500, "text/plain", "oops".to_owned()),
        };
        let mut response = says(body);
        response.status = status;
        response.headers = vec![("Content-Type".to_owned(), kind.to_owned())];
        response
    });
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("answers.yaml");
    std::fs::write(&schema, ANSWERS).unwrap();
    let schema = schema.display();
    for (mode, responses) in [
        ("mode = \"semantic\"", "block"),
        ("mode = \"semantic\"", "log"),
        ("mode = \"semantic\"\nresponse_body = { inspect = false }", "block"),
        ("mode = \"crs\"\nrules = { directives = \"SecRuleEngine On\" }", "block"),
    ] {
        let site = format!(
            "{mode}\napi = {{ schema = \"{schema}\", unknown_parameter = \"off\", responses = \"{responses}\" }}"
        );
        let served = Served::start_site(&application, &site, "");
        assert_eq!(served.get("/user?good").status(), 200, "{mode}");
        for (what, passing) in [("type", 200), ("secret", 200), ("page", 200), ("fails", 500)] {
            let expected = if responses == "block" { 403 } else { passing };
            assert_eq!(served.get(&format!("/user?{what}")).status(), expected, "{mode} {responses} {what}");
        }
        assert_eq!(served.get("/user?long").status(), 200, "{mode}: it is not held as a whole");
        let events = events(&served, 5);
        let kinds: Vec<&str> =
            events.iter().map(|event| event["findings"][0]["kind"].as_str().unwrap_or_default()).collect();
        assert_eq!(
            kinds,
            ["api.response", "api.write-only", "api.response", "api.status", "api.unchecked"],
            "{mode}"
        );
        assert_eq!(events[0]["findings"][0]["place"], "response-body");
        assert!(!format!("{events:?}").contains("s3cret"), "{events:#?}");
    }
}

/// Documents of GraphQL beside a schema in its language.
#[test]
fn graphql() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("schema.graphql");
    std::fs::write(&schema, "type Query { user(id: ID!): User }\ntype User { id: ID! friends: [User!] }\n")
        .unwrap();
    let site = format!(
        "mode = \"semantic\"\n[[sites.routes]]\npath = \"/graphql\"\n\
         api = {{ schema = \"{}\", body = \"block\", graphql = {{ depth = 3 }} }}\n",
        schema.display()
    );
    let served = Served::start_site(&application, &site, "");
    let post = |document: &str| {
        let body = serde_json::json!({ "query": document }).to_string();
        served.post("/graphql", "application/json", body).status()
    };
    assert_eq!(post("{ user(id: 1) { id } }"), 200);
    assert_eq!(post("{ user(id: 1) { password } }"), 403);
    assert_eq!(post("{ user(id: 1) { friends { friends { id } } } }"), 403);
    assert_eq!(served.get("/graphql?query=%7Buser(id:1)%7Bpassword%7D%7D").status(), 403);
    assert_eq!(served.get("/graphql?query=%7Buser(id:1)%7Bid%7D%7D").status(), 200);
    let events = events(&served, 3);
    assert_eq!(events[0]["findings"][0]["evidence"], "`password` is not declared in `User` (User)");
    assert_eq!(events[1]["findings"][0]["kind"], "api.limit");
    assert_eq!(events[1]["findings"][0]["evidence"], "`query` must have at most 3 levels, has 4");
    served.counts("portcullis_semantic_findings_total{class=\"api\",outcome=\"blocked\"}", 3.0);
}

/// A frame of gRPC around a message.
fn frame(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

/// Calls of gRPC beside the file descriptors of their service, in every mode that reads bodies.
#[test]
fn grpc() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("shop.binpb");
    std::fs::write(&schema, descriptors::shop()).unwrap();
    let schema = schema.display();
    for mode in [
        "mode = \"semantic\"",
        "mode = \"crs\"\nrules = { directives = \"SecRuleEngine On\\nSecRequestBodyAccess On\" }",
    ] {
        let site = format!(
            "{mode}\napi = {{ schema = \"{schema}\", unknown_path = \"block\", unknown_parameter = \"block\", body = \"block\" }}"
        );
        let served = Served::start_site(&application, &site, "");
        let call = |path: &str, content_type: &str, body: &[u8]| {
            let answer = served.post(path, content_type, body);
            answer.header("grpc-status").unwrap_or_else(|| answer.status().to_string())
        };
        let place = "/shop.v1.Orders/Place";
        let item = bytes(2, [bytes(1, "pen"), whole(2, 3)].concat());
        let right = frame(&[bytes(1, "Ann"), item.clone()].concat());
        assert_eq!(call(place, "application/grpc", &right), "200", "{mode}");
        assert_eq!(
            call("/shop.v1.Orders/Upload", "application/grpc", &frame(&bytes(1, "pen")).repeat(3)),
            "200"
        );
        for (path, content_type, body) in [
            ("/shop.v1.Admin/Drop", "application/grpc", frame(b"")),
            (place, "application/grpc+proto", frame(&whole(77, 1))),
            (place, "application/grpc", frame(&[item.clone(), item, bytes(2, bytes(3, b"\xFF"))].concat())),
            (place, "application/grpc", frame(b"").repeat(2)),
            (place, "application/grpc-web", [&[1, 0, 0, 0, 3][..], b"\x01\x00a"].concat()),
        ] {
            assert_eq!(call(path, content_type, &body), "7", "{mode}: {path} {body:x?}");
        }
        // PERMISSION_DENIED is of calls; who sends something else gets a page.
        assert_eq!(call(place, "application/json", b"{}"), "403", "{mode}");
        let events = events(&served, 6);
        let findings: Vec<&Value> = events.iter().map(|event| &event["findings"][0]).collect();
        let kinds: Vec<&Value> = findings.iter().map(|finding| &finding["kind"]).collect();
        let expected =
            ["api.unknown-path", "api.unknown-parameter", "api.body", "api.body", "api.unknown-parameter"];
        assert_eq!(kinds[..5], expected, "{mode}: {events:#?}");
        assert_eq!(findings[2]["name"], "items.note");
        assert_eq!(findings[2]["evidence"], "`items[2].note` must be text in UTF-8 (shop.v1.Item.note)");
        if mode.contains("semantic") {
            served.counts("portcullis_bytes_not_inspected_total{reason=\"content_coding\"}", 3.0);
        }
    }
}

/// Attacks in messages are found in fields that have names, which exclusions take, and fields of other types
/// than text are closed.
#[test]
fn named_fields_of_messages() {
    let application = application(|_| says("hello"));
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("shop.binpb");
    std::fs::write(&schema, descriptors::shop()).unwrap();
    let api = format!("api = {{ schema = \"{}\" }}", schema.display());
    let attack = "1' union select password from users -- -";
    let order = |note: &str| frame(&[bytes(1, "Ann"), bytes(2, b""), bytes(2, bytes(3, note))].concat());
    let call = |served: &Served, body: &[u8]| {
        let answer = served.post("/shop.v1.Orders/Place", "application/grpc", body);
        answer.header("grpc-status").unwrap_or_else(|| answer.status().to_string())
    };
    for (site, name) in [(String::new(), ""), (api.clone(), "items.note")] {
        let served = Served::start_site(&application, &format!("mode = \"semantic\"\n{site}"), "");
        assert_eq!(call(&served, &order("red")), "200");
        assert_eq!(call(&served, &order(attack)), "7");
        let finding = &events(&served, 1)[0]["findings"][0];
        let (place, named) = (&finding["place"], finding["name"].as_str().unwrap_or_default());
        assert_eq!((place, named), (&if name.is_empty() { "text" } else { "json" }.into(), name));
    }
    let excluded = format!(
        "mode = \"semantic\"\n{api}\nsemantic = {{ exclude = [{{ class = \"sqli\", location = \"json:items.note\" }}] }}\n\
         fields = {{ unusual = \"block\" }}"
    );
    let data = format!("[data]\nfolder = \"{}\"\n", folder.path().display());
    let served = Served::start_site(&application, &excluded, &data);
    assert_eq!(call(&served, &order(attack)), "200");
    assert_eq!(call(&served, &frame(&bytes(1, attack))), "7", "another field");
    // A text where a number is declared, and no attack that the detector knows.
    assert_eq!(call(&served, &frame(&bytes(2, bytes(2, "7'; =)(")))), "7");
    let events = events(&served, 2);
    let kinds = |event: &Value| -> Vec<String> {
        let findings = event["findings"].as_array().unwrap().iter();
        findings.map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
    };
    let last = events.iter().map(kinds).find(|kinds| kinds.iter().any(|kind| kind == "field.unusual-syntax"));
    assert!(last.is_some_and(|kinds| kinds.iter().any(|kind| kind == "api.body")), "{events:#?}");
}

/// `portcullis api check` says what is wrong with a description, and what of it is not enforced.
#[test]
fn checked_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let output = Command::new(program()).args(["api", "check"]).arg(&file).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).replace(&file.display().to_string(), name);
        (output.status.code(), said)
    };
    assert_eq!(
        check("answers.yaml", ANSWERS.as_bytes()),
        (Some(0), "answers.yaml: 1 path with 1 operation, all of it is enforced\n".to_owned())
    );
    let (code, said) = check(
        "pattern.yaml",
        b"openapi: 3.1.0\npaths:\n  /a:\n    get:\n      parameters:\n        - name: b\n          in: query\n          \
         schema: { type: string, pattern: '(a)\\1' }\n",
    );
    assert_eq!(code, Some(0));
    let warning = "warning: the pattern is not enforced, as it does not run in linear time";
    assert!(said.starts_with(warning), "{said}");
    let rest = " at /paths/~1a/get/parameters/0/schema/pattern\n  --> pattern.yaml:8\n\
                pattern.yaml: 1 path with 1 operation, 1 part is not enforced\n";
    assert!(said.ends_with(rest), "{said}");
    let (code, said) = check("wrong.graphql", b"type Query {\n  a: B\n}\n");
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "error: there is no type `B` at Query.a\n  --> wrong.graphql:1\n")
    );
    assert_eq!(
        check("tools.json", br#"{"tools": [{"name": "a"}]}"#).1,
        "tools.json: 1 tool, all of it is enforced\n"
    );
    assert_eq!(check("none.yaml", b"a: 1\n").0, Some(1));
    assert_eq!(
        check("shop.binpb", &descriptors::shop()),
        (Some(0), "shop.binpb: 1 service with 3 methods, all of it is enforced\n".to_owned())
    );
    let alone = descriptors::service("Orders", &[("Place", ".shop.v1.Order", false)]);
    let (code, said) = check(
        "alone.binpb",
        &descriptors::set(&[descriptors::file("orders.proto", "shop.v1", "proto3", &[alone])]),
    );
    let expected = "error: the type `.shop.v1.Order` is not in the set: write it with its imports \
                    (`--include_imports`) at shop.v1.Orders.Place\n  --> alone.binpb\n";
    assert_eq!((code, said.as_str()), (Some(1), expected));
}
