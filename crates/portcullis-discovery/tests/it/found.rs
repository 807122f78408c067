//! What becomes an endpoint, and what is known of it.

use portcullis_discovery::{
    Authentication, Details, FAMILIAR_MIN, FAMILIAR_SHARE, Limits, Observation, ParameterPlace, Sensitive,
    Site, openapi,
};

use crate::{START_S, Visited};

/// Values in paths are placeholders whatever their number; a name that is known beside them stays one.
#[test]
fn values_in_paths_are_placeholders() {
    let mut visited = Visited::new();
    for (number, line) in [
        "GET /users/1",
        "GET /users/22",
        "GET /users/me",
        "GET /Users/333/",
        "GET //users/./4",
        "HEAD /users/5",
        "GET /users/8f14e45f-ceea-467f-9575-7f8d1c8b5b1a",
        "GET /orders/2026-11-29",
        "GET /blobs/da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "GET /charges/ch_1NirD82eZvKYlo2CIvbtLWuY",
        "GET /tracks/NLPeXoVYZVklppec2JUfnm",
        "GET /getUserProfilePictureForEveryAccount",
        "GET /mail/a.b@shop.example",
        "GET /v1/oauth2/token",
        "POST /items:search",
        "GET /badges/7.json",
        "GET /badges/12345.json",
        "GET /archive/v1.2",
    ]
    .into_iter()
    .enumerate()
    {
        visited.answered(number as u32, 0, line, 200);
    }
    let expected = [
        "GET /archive/v1.2",
        "GET /badges/{number}.json",
        "GET /blobs/{hash}",
        "GET /charges/{token}",
        "GET /getUserProfilePictureForEveryAccount",
        "POST /items:search",
        "GET /mail/{email}",
        "GET /orders/{date}",
        "GET /tracks/{token}",
        "GET /users/me",
        "GET /users/{number}",
        "GET /users/{uuid}",
        "GET /v1/oauth2/token",
    ];
    assert_eq!(visited.list(), expected);
}

/// Names that multiply become one placeholder; others beside them, and those that are known for long, stay.
#[test]
fn names_that_multiply_are_one() {
    let mut visited = Visited::new();
    for day in 0..4 {
        for network in 0..20 {
            visited.answered(network, day, "GET /articles/the-best-of-all", 200);
        }
    }
    visited.with(7, 4, "GET /articles/search?q=x", 200, |details| {
        details.response_type = Some("application/json".to_owned());
    });
    visited.answered(7, 4, "POST /articles/search", 200);
    for number in 0..200 {
        visited.answered(number, 5, &format!("GET /articles/{number}-ways-to-do-it"), 200);
    }
    let expected = [
        "GET /articles/search",
        "POST /articles/search",
        "GET /articles/the-best-of-all",
        "GET /articles/{name}",
    ];
    assert_eq!(visited.list(), expected);
}

/// Words that are alike in all that is known of them are values, also those that many ask for: tags, users.
/// Those that differ in their parameters, pages of a program, and what stands first in a path are names.
#[test]
fn words_that_are_alike_are_one() {
    let words = "amber basil cedar delta ember fjord glade hazel indigo jasper karst lotus maple nimbus ochre pearl \
                 quartz raven sable tulip umber velvet willow xenon yarrow zephyr acorn birch";
    let mut visited = Visited::new();
    for (number, word) in words.split_whitespace().enumerate() {
        for network in 0..20 {
            let day = u64::from(network % 4);
            visited.answered(network, day, &format!("GET /tag/{word}?page={network}"), 200);
        }
        for line in [
            format!("GET /user/{word}"),
            format!("GET /api/{word}?{}=1", &word[..3]),
            format!("GET /admin/{word}.php"),
            format!("GET /{word}"),
        ] {
            visited.answered(number as u32, 0, &line, 200);
        }
    }
    let list = visited.list();
    let count = |start: &str| list.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("GET /tag/"), count("GET /user/")), (1, 1), "{list:?}");
    assert_eq!((count("GET /api/"), count("GET /admin/"), list.len()), (28, 28, 2 + 3 * 28));
}

/// Names of an interface are found soon; where alike ones keep coming for days, they are values.
#[test]
fn names_that_keep_coming_are_one() {
    let mut visited = Visited::new();
    for day in 0..20u64 {
        let name = format!(
            "{}{}",
            ["red", "blue", "green", "grey"][day as usize % 4],
            "abcdefghijklmnopqrst".split_at(day as usize).1
        );
        for network in [day as u32, day as u32 + 1] {
            visited.answered(network, day, &format!("GET /{name}"), 200);
        }
    }
    assert_eq!(
        visited.list().iter().filter(|line| line.contains("{name}")).count(),
        1,
        "{:?}",
        visited.list()
    );
    assert!(visited.list().len() <= 3, "{:?}", visited.list());
}

/// Names with the same names below are values: owners and their projects.
#[test]
fn names_with_the_same_names_below_are_one() {
    let mut visited = Visited::new();
    let owners =
        ["ada", "bob", "cleo", "dan", "eve", "fay", "gus", "hal", "ida", "jon", "kim", "leo", "mia", "ned"];
    for (number, owner) in owners.into_iter().enumerate() {
        for project in ["alpha", "beta"] {
            for below in ["issues", "pulls/7", "branches", "settings/keys"] {
                visited.answered(
                    number as u32,
                    0,
                    &format!("GET /repos/{owner}{project}/{project}{owner}/{below}"),
                    200,
                );
            }
        }
    }
    let expected = [
        "GET /repos/{name}/{name}/branches",
        "GET /repos/{name}/{name}/issues",
        "GET /repos/{name}/{name}/pulls/{number}",
        "GET /repos/{name}/{name}/settings/keys",
    ];
    assert_eq!(visited.list(), expected);
}

/// Names that are asked once and never again are values, whatever they look like; those beside them that are
/// asked again are not.
#[test]
fn names_that_nobody_asks_again_are_one() {
    let mut visited = Visited::new();
    let (first, last) = ("abcdefghij", "klmnopqrst");
    let names = first.chars().flat_map(|one| last.chars().map(move |other| format!("{one}{other}")));
    for (number, name) in names.enumerate().take(50) {
        // By one method or the other, so that they are not alike.
        let method = ["GET", "PUT", "DELETE"][number % 3];
        visited.answered(number as u32, 0, &format!("{method} /keys/{name}"), 200);
        visited.answered(number as u32, 0, "GET /keys/all", 200);
    }
    assert_eq!(visited.list().len(), 51);
    visited.answered(1, 1, "GET /keys/new", 200);
    let expected =
        ["GET /keys/all", "GET /keys/new", "DELETE /keys/{name}", "GET /keys/{name}", "PUT /keys/{name}"];
    assert_eq!(visited.list(), expected);
}

/// Files that pages load are one endpoint of their folder, by what the site says that they are.
#[test]
fn files_are_one() {
    let mut visited = Visited::new();
    for number in 0..9 {
        for (name, kind) in [("app", "text/javascript"), ("logo", "image/png")] {
            let line = format!("GET /assets/{name}{number}.x");
            visited.with(1, 0, &line, 200, |details| details.response_type = Some(kind.to_owned()));
        }
    }
    visited.with(1, 0, "GET /users/7/avatar", 200, |details| {
        details.response_type = Some("image/png".to_owned());
    });
    visited.answered(1, 0, "GET /feed.json", 200);
    assert_eq!(visited.list(), ["GET /assets/{file}", "GET /feed.json", "GET /users/{number}/avatar"]);
}

/// A program beside the files that it serves stays apart, also where nobody has looked at what it answers.
#[test]
fn programs_beside_files() {
    let mut visited = Visited::new();
    visited.with(1, 0, "GET /lib/css.php?t=dark", 200, |details| {
        details.response_type = Some("text/css".to_owned())
    });
    visited.answered(1, 0, "POST /lib/ajax.php?1796002340", 200);
    for (method, path) in [("POST", "/lib/ajax.php"), ("GET", "/lib/css.php")] {
        let (method, path) = (method.as_bytes(), path.as_bytes());
        let seen =
            Observation { network: 2, at_s: START_S, method, path, status: 200, ..Observation::default() };
        visited.site.observe(&seen, None);
        visited.inventory.learn(&visited.site.take());
    }
    assert_eq!(visited.list(), ["POST /lib/ajax.php", "GET /lib/{file}"]);
    let found: Vec<_> = visited.inventory.endpoints().collect();
    assert_eq!(found.iter().map(|found| found.endpoint.requests).collect::<Vec<_>>(), [2, 2]);
    // A number against caches is no parameter.
    assert_eq!(found[0].endpoint.parameters().count(), 0);
}

/// What is not answered well makes no endpoint; a method that a known path denies does once it is repeated.
#[test]
fn what_is_not_there_makes_no_endpoint() {
    let mut visited = Visited::new();
    for status in [400, 401, 403, 404, 405, 429, 500, 502] {
        visited.answered(1, 0, "GET /wp-admin/setup.php", status);
    }
    visited.answered(1, 0, "GET /orders/1", 200);
    visited.answered(1, 0, "GET /orders/2", 404);
    for network in [1, 1, 2] {
        visited.answered(network, 0, "DELETE /orders/3", 403);
        visited.answered(network, 0, "DELETE /admin", 403);
    }
    let refused = Observation {
        network: 3,
        at_s: START_S,
        method: b"GET",
        path: b"/orders/4",
        status: 403,
        is_refused: true,
        ..Observation::default()
    };
    visited.site.observe(&refused, None);
    visited.site.observe(&Observation { path: b"/other", ..refused }, None);
    visited.inventory.learn(&visited.site.take());
    assert_eq!(visited.list(), ["DELETE /orders/{number}", "GET /orders/{number}"]);
    let found: Vec<_> = visited.inventory.endpoints().collect();
    let get = found[1].endpoint;
    assert_eq!((get.requests, get.refused, get.statuses[&200], get.statuses[&404]), (2, 1, 1, 1));
    assert_eq!(found[0].endpoint.statuses.get(&403), Some(&1));
}

/// What comes again and again is looked at closely now and then, whatever its numbers; what is new beside it,
/// at once.
#[test]
fn familiar_requests_are_looked_at_rarely() {
    let site = Site::default();
    let wanted = |path: &dyn Fn(u32) -> String, requests: u32| {
        let wants = |number: &u32| site.wants_details(b"GET", path(*number).as_bytes());
        // Each in a time of its own.
        (0..requests).filter(|number| wants(number) | !site.take().is_empty()).count() as u32
    };
    let item = |number: u32| format!("/items/{number}/a-{number}");
    assert_eq!(wanted(&item, FAMILIAR_MIN), FAMILIAR_MIN);
    assert_eq!(wanted(&item, 100 * FAMILIAR_SHARE), 100);
    for (method, path) in
        [("GET", "/items/7"), ("POST", "/items/7/a-7"), ("GET", "/items/7/b"), ("GET", "/other/7/a-7")]
    {
        assert!(site.wants_details(method.as_bytes(), path.as_bytes()), "{method} {path}");
    }
}

/// An answer that waits is looked at when it is learned, and counts like one that was.
#[test]
fn answers_are_looked_at_when_they_are_learned() {
    let mut visited = Visited::new();
    for body in ["{\"mail\":\"ada@shop.example\"}", "{}", ""] {
        visited.with(1, 0, "GET /users/7", 200, |details| details.note_answer(body.as_bytes()));
    }
    let found: Vec<_> = visited.inventory.endpoints().collect();
    let endpoint = found[0].endpoint;
    assert_eq!((endpoint.answers, endpoint.sensitive.get(&Sensitive::Email)), (2, Some(&1)));
}

/// Parameters have a type, a range, and are required or not; what one network alone makes up is left out.
#[test]
fn parameters() {
    let mut visited = Visited::new();
    for number in 0..100u32 {
        let page = if number.is_multiple_of(2) { "&page=2" } else { "" };
        let line = format!("GET /items?id={}&tag[0]=a&tag[1]=b{page}", number + 5);
        visited.answered(number, 0, &line, 200);
    }
    visited.answered(1, 0, "GET /items?id=1&madeup=1", 200);
    let found: Vec<_> = visited.inventory.endpoints().collect();
    let endpoint = found[0].endpoint;
    let told: Vec<_> = endpoint
        .parameters()
        .map(|own| (&*own.name, own.requests, endpoint.is_required(own), own.numbers))
        .collect();
    let expected =
        [("id", 101, true, Some((1, 104))), ("page", 50, false, Some((2, 2))), ("tag[]", 100, true, None)];
    assert_eq!(told, expected);
    assert_eq!((endpoint.latency_ms(50), endpoint.latency_ms(95)), (Some(10), Some(10)));
}

#[test]
fn credentials() {
    let of = |fields: &[(&str, &str)]| {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Authentication::of(fields, false)
    };
    assert_eq!(of(&[("Accept", "*/*"), ("Cookie", "theme=dark")]), [Authentication::None]);
    assert_eq!(of(&[("authorization", "bearer x")]), [Authentication::Bearer]);
    assert_eq!(of(&[("Authorization", "Digest a=b")]), [Authentication::Other]);
    let both = of(&[("X-Api-Key", "k"), ("Cookie", "a=b; PHPSESSID=1")]);
    assert_eq!(both, [Authentication::SessionCookie, Authentication::ApiKey]);
    assert_eq!(Authentication::of(std::iter::empty(), true), [Authentication::ClientCertificate]);
}

#[test]
fn sensitive_data() {
    for (body, expected) in [
        ("{\"card\":\"4111 1111 1111 1111\"}", &[Sensitive::Card][..]),
        ("4111-1111-1111-1111.", &[Sensitive::Card]),
        ("4111 1111 1111 1112", &[]),
        ("0000000000000000 1111111111111111 20261129120000", &[]),
        ("x4111111111111111", &[]),
        ("to ada@shop.example, or not", &[Sensitive::Email]),
        ("icon@2x.png a@b @media", &[]),
        ("key=AKIAIOSFODNN7EXAMPLE", &[Sensitive::Key]),
        ("AKIA and ghp_short", &[]),
        ("{\"clientSecret\": \"x\"}", &[Sensitive::Secret]),
        ("{\"password\": null, \"password\": \"\", \"secret\": \"***\"}", &[]),
    ] {
        assert_eq!(Sensitive::of(body.as_bytes()), expected, "{body}");
    }
    // Nothing behind the bound is looked at, and a text that looks for trouble takes no longer.
    let mut long = vec![b'"'; portcullis_discovery::SCANNED_BYTES_MAX];
    long.extend_from_slice(b"ada@shop.example");
    assert!(Sensitive::of(&long).is_empty());
}

/// The document is OpenAPI 3.1: parameters of a path are declared, names are unique, one path is there once.
#[test]
fn openapi_document() {
    let mut visited = Visited::within(Limits { endpoints_max: 100, ..Limits::default() });
    for network in 0..10 {
        visited.with(network, 0, "POST /users/7/posts/9?draft=true", 201, |details| {
            details.note(ParameterPlace::Json, b"title", b"a title of words");
            details.note(ParameterPlace::Json, b"author.id", b"7");
            details.note(ParameterPlace::Json, b"tags.tags", b"x");
            details.note(ParameterPlace::Json, b"parts.parts.size", b"3");
            details.request_type = Some("application/json".to_owned());
            details.response_type = Some("application/json".to_owned());
            details.authentication = vec![Authentication::Bearer];
            details.sensitive = Some(vec![Sensitive::Email]);
        });
        visited.answered(network, 0, "GET /users/da39a3ee5e6b4b0d3255bfef95601890afd80709", 200);
        visited.answered(network, 0, "GET /users/7", 200);
    }
    let document = openapi(&visited.inventory, "shop");
    let paths = document["paths"].as_object().expect("paths");
    let names: Vec<_> = paths.keys().collect();
    assert_eq!(names, ["/users/{number}/posts/{number2}", "/users/{value}"]);
    let post = &paths["/users/{number}/posts/{number2}"]["post"];
    assert_eq!(post["parameters"][0]["schema"]["type"], "boolean");
    let schema = &post["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["required"], serde_json::json!(["author", "parts", "tags", "title"]));
    assert_eq!(schema["properties"]["author"]["properties"]["id"]["type"][0], "integer");
    assert_eq!(schema["properties"]["tags"]["items"]["type"], "string");
    assert_eq!(schema["properties"]["parts"]["items"]["properties"]["size"]["type"][0], "integer");
    assert_eq!(post["security"], serde_json::json!([{ "bearer": [] }]));
    assert_eq!(post["responses"]["201"]["description"], "Created");
    assert_eq!(post["x-seen"]["sensitive"]["email"], 10);
    assert_eq!(paths["/users/{value}"]["get"]["x-seen"]["requests"], 20);
    for (path, item) in paths {
        let declared = item["parameters"].as_array().map_or(0, Vec::len);
        assert_eq!(path.matches('{').count(), declared, "{path}");
    }
}

/// New and gone endpoints are told once, and not before the site is known.
#[test]
fn news() {
    let mut visited = Visited::new();
    let at = |day: u64| START_S + day * crate::DAY_S;
    for network in [1, 2] {
        visited.answered(network, 0, "GET /old", 200);
    }
    assert!(visited.inventory.news(at(0)).is_empty());
    visited.answered(1, 9, "GET /new", 200);
    assert!(visited.inventory.news(at(9)).is_empty());
    visited.answered(2, 9, "GET /new", 200);
    let news = visited.inventory.news(at(9));
    assert_eq!(news.iter().map(|each| (&*each.path, each.is_new)).collect::<Vec<_>>(), [("/new", true)]);
    assert!(visited.inventory.news(at(10)).is_empty());
    let news = visited.inventory.news(at(31));
    assert_eq!(news.iter().map(|each| (&*each.path, each.is_new)).collect::<Vec<_>>(), [("/old", false)]);
    assert!(visited.inventory.news(at(32)).is_empty());
    // It may come back, and go again.
    visited.answered(1, 32, "GET /old", 200);
    assert_eq!(visited.inventory.news(at(80)).len(), 2);
}

/// Without a close look an exchange is counted all the same.
#[test]
fn exchanges_without_details() {
    let mut visited = Visited::new();
    let seen = Observation {
        network: 1,
        at_s: START_S,
        method: b"GET",
        path: b"/a",
        status: 200,
        ..Observation::default()
    };
    visited.site.observe(&seen, None);
    visited.site.observe(&Observation { network: 2, ..seen }, Some(Details::default()));
    visited.inventory.learn(&visited.site.take());
    let found: Vec<_> = visited.inventory.endpoints().collect();
    assert_eq!((found[0].endpoint.requests, found[0].endpoint.detailed), (2, 1));
}
