//! Files of the console, whether it is part of this build or not.

use portcullis_api::console::{CONTENT_SECURITY_POLICY, asset, is_built};

#[test]
fn only_files_of_the_console_are_given() {
    for path in [
        "",
        "index.html",
        "/..",
        "/../Cargo.toml",
        "/assets",
        "/assets/",
        "/index.html.gz",
        "/none.js",
        "//",
        "/.",
    ] {
        assert_eq!(asset(path, true), None, "{path}");
    }
    let page = asset("/", false).unwrap();
    assert!(!page.is_immutable && !page.is_gzip);
    assert_eq!(Some(page), asset("/index.html", false));
}

/// The page names files that are there, and has nothing that its policy forbids.
#[test]
fn the_page_is_whole() {
    let page = asset("/", false).unwrap();
    let text = String::from_utf8(page.bytes.into_owned()).unwrap();
    assert!(!text.contains("style=") && !text.contains("<style") && !text.contains("onclick"), "{text}");
    assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    for tag in text.split('<').filter(|tag| tag.starts_with("script")) {
        assert!(tag.contains(" src=\"/assets/") && tag.trim_end().ends_with('>'), "{tag}");
    }
    assert!(!CONTENT_SECURITY_POLICY.contains("unsafe"));
    if is_built() {
        let named: Vec<&str> = text.split('"').filter(|part| part.starts_with("/assets/")).collect();
        assert!(named.len() >= 2, "{text}");
        for path in named {
            let (plain, packed) = (asset(path, false).unwrap(), asset(path, true).unwrap());
            assert!(plain.is_immutable && packed.is_gzip && packed.bytes.len() < plain.bytes.len(), "{path}");
        }
    }
}
