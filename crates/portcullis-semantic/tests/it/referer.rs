//! The Referer: what a visitor typed stands in it again, but no part of it is left out.

use portcullis_semantic::{Analysis, Detectors, Level};

/// The class that a request with this Referer is blocked for.
fn class(detectors: &Detectors, referer: &str) -> &'static str {
    let fields: [(&[u8], &[u8]); 2] = [(b"Host", b"shop.example"), (b"Referer", referer.as_bytes())];
    let mut analysis = Analysis::new();
    analysis.request_head(detectors, b"GET", b"/", fields.into_iter());
    let worst = analysis.worst(detectors, Level::Balanced).filter(|worst| worst.blocks(Level::Balanced));
    worst.map_or("", |worst| worst.class.name())
}

/// Browsers leave fragments out, so nobody's typing stands there.
#[test]
fn every_part_is_inspected() {
    let detectors = Detectors::new();
    let pages = ["https://shop.example/", "https://www.google.com/search", "https://other.example/"];
    let attacks = [
        ("${jndi:ldap://a.example/x}", "log4j"),
        ("<script>alert(document.cookie)</script>", "xss"),
        ("1' UNION SELECT password FROM users-- -", "sqli"),
    ];
    for page in pages {
        for (attack, class_of) in attacks {
            for between in ["?", "?x=", "?comment", "?q=books#", "?#", "#", "#?", "?a&b=c#d&e=", "#?q=x#"] {
                let referer = format!("{page}{between}{attack}");
                assert_eq!(class(&detectors, &referer), class_of, "{referer}");
            }
        }
        for honest in ["?q=select a book from the list#top", "?q=1' OR 1=1 --", "#/orders/7?tab=open", ""] {
            // Another site's search is none that its visitor may quote here.
            if page.contains("other") && honest.contains("OR") {
                continue;
            }
            assert_eq!(class(&detectors, &format!("{page}{honest}")), "", "{page}{honest}");
        }
    }
}
