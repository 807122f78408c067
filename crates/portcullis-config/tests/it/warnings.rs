//! Settings that are valid and hardly meant.

use portcullis_config::{Config, Format};

/// The warnings of a document with these top-level keys and these keys of its listener.
fn warnings(top: &str, listener: &str) -> Vec<String> {
    let text = format!(
        "{top}\n[[listeners]]\naddress = \"127.0.0.1:8080\"\n{listener}\n\
         [[sites]]\nname = \"a\"\nhosts = [\"*\"]\nupstream = \"app\"\n\
         [upstreams.app]\nendpoints = [\"http://127.0.0.1:9000\"]\n"
    );
    Config::parse(&text, Format::Toml, "a.toml").unwrap_or_else(|error| panic!("{error}")).warnings()
}

/// Where a proxy in front is trusted, something tells its clients apart, or there is a warning: bans and
/// limits would meet the proxy.
#[test]
fn trusted_proxies_name_their_clients() {
    let proxies = "trusted_proxies = [\"10.0.0.0/8\"]";
    let named = |keys: &str| format!("client_address = {{ {proxies}{keys} }}");
    for (top, listener, is_warned) in [
        (String::new(), "", false),
        (named(""), "", true),
        (named(", identity_headers = \"pass\""), "", true),
        (named(", request_id = \"trusted\""), "", true),
        (named(", header = \"x-forwarded-for\""), "", false),
        (named(", header = \"forwarded\""), "", false),
        (named(""), "proxy_protocol = true", false),
        // One listener without it is enough.
        (named(""), "proxy_protocol = true\n[[listeners]]\nname = \"b\"\naddress = \"127.0.0.1:8081\"", true),
    ] {
        let said = warnings(&top, listener);
        let about = said.iter().filter(|line| line.contains("nothing tells their clients apart"));
        assert_eq!(about.count(), usize::from(is_warned), "{top} {listener}: {said:?}");
    }
}
