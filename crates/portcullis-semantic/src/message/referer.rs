//! Parameters of a Referer that carry text typed by its visitor.

use crate::detectors::purpose;
use crate::{Location, Place};

/// The parts of a Referer.
pub(crate) struct Parts<'r> {
    /// All before the query, with its mark.
    pub(crate) page: &'r [u8],
    pub(crate) query: &'r [u8],
    /// With its mark. Browsers send none.
    pub(crate) fragment: &'r [u8],
}

/// The parts of a Referer with a query. `None` if the page is neither of `host`, the site that is asked, nor
/// the results of a search engine.
pub(crate) fn text_query<'r>(host: &[u8], referer: &'r [u8]) -> Option<Parts<'r>> {
    let page = host_of(referer)?;
    let is_own = !host.is_empty() && page.eq_ignore_ascii_case(host);
    if !is_own && !is_engine(page) {
        return None;
    }
    let mark = memchr::memchr(b'?', referer)?;
    let (page, query) = referer.split_at(mark + 1);
    let (query, fragment) = query.split_at(memchr::memchr(b'#', query).unwrap_or(query.len()));
    Some(Parts { page, query, fragment })
}

/// The parameter `name` of that page is for text: a search of the site, a text field, or an engine's
/// question.
pub(crate) fn takes_text(host: &[u8], referer: &[u8], name: &[u8]) -> bool {
    const QUESTIONS: &[&[u8]] =
        &[b"q", b"query", b"p", b"text", b"wd", b"word", b"search_query", b"search", b"oq"];
    let is_own = host_of(referer).is_some_and(|page| page.eq_ignore_ascii_case(host));
    // The names that take text in a form take it in the query that the form makes.
    let location = Location::new(Place::Form, name);
    match is_own {
        // A database's tool has the statement that it ran in its address.
        true => {
            purpose::is_search(location)
                || purpose::takes_text(location)
                || purpose::takes_statements(location)
        }
        false => QUESTIONS.contains(&name),
    }
}

/// The same site is meant that `host` names, and nothing is hidden in the authority.
fn host_of(referer: &[u8]) -> Option<&[u8]> {
    let rest = referer.strip_prefix(b"https://").or_else(|| referer.strip_prefix(b"http://"))?;
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = &rest[..end];
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']');
    (!host.is_empty() && host.iter().all(is_plain)).then_some(host)
}

/// The host of a search engine, in whatever country: `www.google.co.uk`, `duckduckgo.com`.
fn is_engine(host: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[
        b"google",
        b"bing",
        b"duckduckgo",
        b"yahoo",
        b"yandex",
        b"baidu",
        b"ecosia",
        b"startpage",
        b"qwant",
        b"naver",
        b"seznam",
        b"sogou",
        b"daum",
        b"kagi",
        b"mojeek",
        b"ask",
        b"aol",
        b"swisscows",
    ];
    let mut labels = host.split(|b| *b == b'.').rev();
    let top = labels.next().unwrap_or_default();
    let second = labels.next().unwrap_or_default();
    let third = labels.next();
    let is_one = |label: &[u8]| NAMES.iter().any(|name| label.eq_ignore_ascii_case(name));
    // `google.co.uk`: a country's domains begin one label earlier.
    let of_country = top.len() == 2 && matches!(second, b"co" | b"com" | b"ne" | b"or");
    (2..=3).contains(&top.len())
        && (is_one(second) || of_country && third.is_some_and(is_one) || host == b"search.brave.com")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let of = |host: &str, referer: &str| text_query(host.as_bytes(), referer.as_bytes()).is_some();
        assert!(
            of("a.example", "https://a.example/search?q=x")
                && of("A.example:8443", "https://a.example:8443/?q=x")
        );
        assert!(
            of("a.example", "https://www.google.co.uk/search?q=x") && of("", "https://duckduckgo.com/?q=x")
        );
        for other in [
            "https://b.example/?q=x",
            "https://a.example@b.example/?q=x",
            "https://google.evil.example/?q=x",
            "https://notgoogle.com/?q=x",
            "javascript:1?q=x",
            "https://a.example/",
        ] {
            assert!(!of("a.example", other), "{other}");
        }
    }

    #[test]
    fn parameters() {
        let takes = |referer: &str, name: &str| takes_text(b"a.example", referer.as_bytes(), name.as_bytes());
        assert!(takes("https://a.example/?x", "q") && takes("https://a.example/?x", "comment"));
        assert!(takes("https://a.example/?x", "sql") && !takes("https://b.example/?x", "sql"));
        assert!(!takes("https://a.example/?x", "id") && !takes("https://www.bing.com/?x", "comment"));
    }
}
