//! Whatever a client sends, the answer is none of 5xx, and errors are problem documents.

use std::sync::LazyLock;

use portcullis_identity::Role;
use proptest::prelude::*;

use crate::openapi::{filled, operations};
use crate::server::Server;

struct Target {
    server: Server,
    token: String,
    operations: Vec<(String, String, String)>,
}

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let server = Server::start();
    let token = server.token(Role::Admin);
    let operations = operations(&server.document);
    Target { server, token, operations }
});

/// JSON of any form, and such as the routes take.
fn json() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        "name",
        "role",
        "password",
        "code",
        "expires_in_seconds",
        "new_password",
        "totp",
        ".{0,5}"
    ];
    let value = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "\\PC{0,20}".prop_map(|text| serde_json::json!(text).to_string()),
        Just("\"viewer\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("\"\\ud800\"".to_owned()),
    ];
    let object = prop::collection::vec((key, value), 0..5).prop_map(|members| {
        let members: Vec<String> =
            members.iter().map(|(k, v)| format!("{}:{v}", serde_json::json!(k))).collect();
        format!("{{{}}}", members.join(","))
    });
    prop_oneof![4 => object, 1 => "\\PC{0,60}"]
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bodies(which in any::<prop::sample::Index>(), body in json()) {
        let (path, method, _) = which.get(&TARGET.operations);
        // A stream has no end, and a session none to end.
        prop_assume!(!path.ends_with("/stream"));
        let ask = TARGET.server.ask(method, &filled(path)).bearer(&TARGET.token).header("If-Match", "*");
        let answer = ask.json(body).send();
        prop_assert!(answer.status < 500, "{} {}: {}", method, path, answer.text());
    }

    #[test]
    fn paths_and_queries(
        which in any::<prop::sample::Index>(), part in "\\PC{0,20}|[0-9]{1,22}",
        names in prop::collection::vec(("filter|limit|before|cursor|ban|\\PC{0,6}", "\\PC{0,30}"), 0..4),
    ) {
        let (path, method, _) = which.get(&TARGET.operations);
        prop_assume!(!path.ends_with("/stream") && method != "DELETE");
        let parts: Vec<String> = path.split('/').map(|own| if own.starts_with('{') { encoded(&part) } else { own.to_owned() }).collect();
        let pairs: Vec<String> = names.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let target = format!("{}?{}", parts.join("/"), pairs.join("&"));
        let answer = TARGET.server.ask(method, &target).bearer(&TARGET.token).send();
        prop_assert!(answer.status < 500, "{} {}: {}", method, target, answer.text());
    }
}
