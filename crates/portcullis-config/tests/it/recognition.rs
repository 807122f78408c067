//! Answers of front pages, and the profiles by which they are recognised.

use std::collections::BTreeSet;

use portcullis_config::{Answer, SignKind, profiles, recognise};

const PAGES: &str = include_str!("../front-pages.txt");

/// An answer of the file.
struct Page {
    expected: BTreeSet<String>,
    host: String,
    path: String,
    status: u16,
    fields: Vec<(String, String)>,
    body: String,
}

fn pages() -> Vec<Page> {
    let page = |text: &str| {
        let (line, rest) = text.split_once('\n').unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let [expected @ .., path, status] = words.as_slice() else { panic!("{line}") };
        let (host, path) = match path.strip_prefix("//") {
            Some(address) => address.split_at(address.find('/').unwrap()),
            None => ("app.example", *path),
        };
        let (fields, body) = rest.split_once("\n\n").unwrap();
        let field =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Page {
            expected: expected.iter().filter(|name| **name != "-").map(|name| (*name).to_owned()).collect(),
            host: host.to_owned(),
            path: path.split('?').next().unwrap().to_owned(),
            status: status.parse().unwrap(),
            fields: fields.lines().filter_map(field).collect(),
            body: body.to_owned(),
        }
    };
    PAGES.split("==== ").skip(2).map(page).collect()
}

fn found(page: &Page) -> BTreeSet<String> {
    let fields: Vec<_> =
        page.fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let answer = Answer {
        host: page.host.as_bytes(),
        path: page.path.as_bytes(),
        status: page.status,
        fields: &fields,
        body: page.body.as_bytes(),
    };
    recognise(&answer).into_iter().map(|each| each.profile.name.clone()).collect()
}

#[test]
fn front_pages_are_recognised_and_no_others() {
    let pages = pages();
    let mut wrong = Vec::new();
    for page in &pages {
        let found = found(page);
        if found != page.expected {
            wrong.push(format!("{} {}: {found:?}, expected {:?}", page.path, page.body, page.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each profile that can be recognised is, and other pages are many.
    let seen: BTreeSet<&String> = pages.iter().flat_map(|page| &page.expected).collect();
    for profile in profiles().iter().filter(|profile| !profile.signs.is_empty()) {
        assert!(seen.contains(&profile.name), "{} has no front page", profile.name);
    }
    assert!(pages.iter().filter(|page| page.expected.is_empty()).count() >= 50);
}

/// One borrowed word is not enough, whichever it is: a page that shows one sign of each profile is none.
#[test]
fn one_sign_recognises_nothing() {
    for profile in profiles() {
        for sign in &profile.signs {
            let mut page = Page {
                expected: BTreeSet::new(),
                host: "app.example".to_owned(),
                path: "/".to_owned(),
                status: 200,
                fields: vec![("content-type".to_owned(), "text/html".to_owned())],
                body: "<html><head><title>Shop</title></head>".to_owned(),
            };
            match &sign.kind {
                SignKind::Header(name, value) => {
                    page.fields.push((name.clone(), value.clone().unwrap_or_else(|| "1".to_owned())));
                }
                SignKind::Cookie(name) => page.fields.push(("set-cookie".to_owned(), format!("{name}=1"))),
                SignKind::Generator(text) => {
                    page.body += &format!("<meta name=\"generator\" content=\"{text}\">");
                }
                SignKind::Title(text) => page.body = format!("<title>{text}</title>"),
                SignKind::Asset(text) => page.body += &format!("<script src=\"{text}\"></script>"),
                SignKind::Text(text) => page.body += text,
                SignKind::Path(path) => page.path.clone_from(path),
            }
            assert!(!found(&page).contains(&profile.name), "{}: {:?}", profile.name, sign.kind);
        }
    }
}

/// What a page says of an application in its text is no address of it and no generator.
#[test]
fn quoted_markup_is_no_sign() {
    let quoted = "<html><head><title>How to</title></head><p>&lt;meta name=\"generator\" content=\"WordPress 6\"&gt; and \
                  the path /wp-content/ beside /wp-includes/, in \"wp-content/themes\"</p>";
    let body = quoted.to_owned();
    assert_eq!(found(&shown(body)), BTreeSet::new());
}

/// A page at the root that says nothing in its head.
fn shown(body: String) -> Page {
    let (host, path) = ("app.example".to_owned(), "/".to_owned());
    Page { expected: BTreeSet::new(), host, path, status: 200, fields: Vec::new(), body }
}

/// Whatever a page quotes of an application, links to or embeds from it, it is another one: all signs of each
/// profile at once, in all the places where pages have what others wrote.
#[test]
fn a_page_about_an_application_is_none() {
    for profile in profiles() {
        let (mut quoted, mut elsewhere, mut titles) = (String::new(), String::new(), Vec::new());
        for sign in &profile.signs {
            match &sign.kind {
                SignKind::Generator(text) => {
                    quoted += &format!("<meta name=\"generator\" content=\"{text}\">");
                }
                SignKind::Asset(text) => {
                    quoted += &format!("<script src=\"{text}\"></script>");
                    elsewhere += &format!(
                        "<a href=\"https://other.example{text}\">x</a><img src='//other.example:8080{text}'><link rel=icon \
                         href=http://other.example/{text}>"
                    );
                }
                SignKind::Text(text) => quoted += text,
                SignKind::Title(text) => titles.push(text.clone()),
                SignKind::Header(..) | SignKind::Cookie(_) | SignKind::Path(_) => {}
            }
        }
        let escaped = quoted.replace('<', "&lt;").replace('>', "&gt;");
        let script = quoted.replace("</", "<\\/").replace('"', "\\\"");
        let article = "a long article about what is found in the head of a page ".repeat(2);
        titles.push("Things".to_owned());
        for title in &titles {
            let title = format!("How to run {title} at home");
            for part in [
                format!("<pre>{escaped}</pre>"),
                format!("<p>{quoted}</p>").replace('<', "&lt;"),
                format!("<!-- {quoted} -->"),
                format!("<!-- {quoted}"),
                format!("<textarea name=a>{quoted}</textarea>"),
                format!("<xmp>{quoted}</xmp>").replace("<script", "<scr").replace("</script", "</scr"),
                format!("<script id=data type=\"application/json\">{{\"body\":\"{script}\"}}</script>"),
                format!("<script>self.__next_f.push([1,\"{article}{script}\"])</script>"),
                format!("<script>const page = '{article}{}'</script>", script.replace('\'', "\\'")),
                elsewhere.clone(),
            ] {
                let page = shown(format!(
                    "<!DOCTYPE html><html><head><title>{title}</title></head><body>{part}</body>"
                ));
                assert!(!found(&page).contains(&profile.name), "{}: {}", profile.name, page.body);
            }
        }
    }
}

/// What an application has from its own host counts, however the address is written.
#[test]
fn own_addresses_are_signs() {
    for address in
        ["", "http://app.example", "https://www.app.example", "//app.example:8443", "HTTPS://APP.example:443"]
    {
        let page = shown(format!(
            "<!DOCTYPE html><html><head><link href={address}/wp-includes/a.css><img src='{address}/wp-content/b.png'></head>"
        ));
        assert!(found(&page).contains("wordpress"), "{address}");
    }
    for address in [
        "http://app.example.org",
        "https://xapp.example",
        "//app.example@other.example",
        "//other.example/app.example",
    ] {
        let page = shown(format!(
            "<!DOCTYPE html><html><head><link href={address}/wp-includes/a.css><img src='{address}/wp-content/b.png'></head>"
        ));
        assert!(found(&page).is_empty(), "{address}");
    }
}

/// However large and strange an answer is, looking at it ends soon and finds nothing by accident.
#[test]
fn hostile_answers_cost_little() {
    let mut bodies = vec![vec![0xff; 1 << 20], b"<title".repeat(1 << 17), b"<meta name=".repeat(1 << 16)];
    bodies.push(b"\"/wp-content/".repeat(1 << 16));
    bodies.push(b"src=\"".repeat(1 << 17));
    bodies.push("\u{130}".repeat(1 << 18).into_bytes());
    for part in [
        "<a b='",
        "<!--",
        "<script>",
        "<script>'",
        "<textarea>",
        "<a =\"",
        "<html><script>`\\",
        "</",
        "<\u{e9}",
    ] {
        bodies.push(format!("<html>{}", part.repeat(1 << 14)).into_bytes());
    }
    for body in bodies {
        let begun = std::time::Instant::now();
        let answer = Answer { host: b"", path: b"/", status: 200, fields: &[], body: &body };
        assert!(recognise(&answer).is_empty());
        // Milliseconds, as a rule, and hours if it were of the square of the length.
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}", &body[..20]);
    }
}

/// Where a profile says how answers show the version of the application, one of its front pages does, and is
/// of a version that it knows; a later one is not.
#[test]
fn versions_are_read_and_unknown_ones_told_apart() {
    let pages = pages();
    let mut checked = 0;
    for profile in profiles().iter().filter(|profile| !profile.releases.is_empty()) {
        let versions = |change: &dyn Fn(&str) -> String| {
            let of_profile = pages.iter().filter(|page| page.expected.contains(&profile.name));
            let found: Vec<_> = of_profile
                .filter_map(|page| {
                    let fields: Vec<(String, String)> =
                        page.fields.iter().map(|(name, value)| (name.clone(), change(value))).collect();
                    let fields: Vec<_> =
                        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
                    let body = change(&page.body);
                    let (path, status) = (page.path.as_bytes(), page.status);
                    let (host, body) = (page.host.as_bytes(), body.as_bytes());
                    profile.version_in(&Answer { host, path, status, fields: &fields, body })
                })
                .collect();
            found
        };
        let shown = versions(&str::to_owned);
        assert!(!shown.is_empty(), "{}: no front page shows its version", profile.name);
        for version in &shown {
            assert!(version.is_known, "{}: {version:?}", profile.name);
            let later = versions(&|text| text.replace(&version.text, "99.1"));
            let is_later = |found: &portcullis_config::Version| found.text == "99.1" && !found.is_known;
            assert!(later.iter().any(is_later), "{}: {later:?}", profile.name);
            // 60 is not 6.
            let longer = versions(&|text| text.replace(&version.text, &format!("{}9", profile.knows[0])));
            assert!(longer.iter().any(|found| !found.is_known), "{}: {longer:?}", profile.name);
            checked += 1;
        }
    }
    assert!(checked >= 13, "{checked}");
}
