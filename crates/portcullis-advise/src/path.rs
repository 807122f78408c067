//! Paths that exclusions are for.

/// The path of a request's target with what looks like an id as `{id}`: numbers, UUIDs, long codes with a
/// digit. The root is `/$`, for `/` begins every path. None where a server may take the path for another one:
/// no exclusion may be for it.
pub fn template(target: &str) -> Option<String> {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let doubtful = ["..", "//", ";", "\\", "*", "%", "{", "}", "$"];
    if !path.starts_with('/') || doubtful.iter().any(|part| path.contains(part)) {
        return None;
    }
    if path == "/" {
        return Some("/$".to_owned());
    }
    let segment = |part: &str| if is_id(part) { "{id}".to_owned() } else { part.to_owned() };
    Some(path.split('/').map(segment).collect::<Vec<_>>().join("/"))
}

fn is_id(part: &str) -> bool {
    let all = |takes: fn(u8) -> bool| !part.is_empty() && part.bytes().all(takes);
    let is_number = all(|byte| byte.is_ascii_digit());
    let is_hex = part.len() >= 16 && all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_code = part.len() >= 20
        && all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && part.bytes().any(|byte| byte.is_ascii_digit());
    is_number || is_hex || is_code
}

#[cfg(test)]
mod tests {
    use super::template;

    #[test]
    fn ids_are_left_out() {
        for (target, expected) in [
            ("/posts/17/edit?x=1", Some("/posts/{id}/edit")),
            ("/", Some("/$")),
            ("/?q=1", Some("/$")),
            ("/a/6f1c2f5e-9d0a-4c55-8d1d-1f2e3a4b5c6d", Some("/a/{id}")),
            ("/a/index-of-all-things-there-are", Some("/a/index-of-all-things-there-are")),
            ("/a/dQw4w9WgXcQ-dQw4w9WgXcQ", Some("/a/{id}")),
            ("/v2/users", Some("/v2/users")),
            ("/a/../b", None),
            ("/a;x", None),
            ("/%2e%2e/a", None),
            ("http://h/a", None),
            ("*", None),
        ] {
            assert_eq!(template(target).as_deref(), expected, "{target}");
        }
    }
}
