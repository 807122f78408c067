//! Server-side includes (Apache, nginx, IIS) and edge-side includes (Varnish, Squid, Akamai).
//!
//! Both are elements with a vocabulary of their own that no other text has; in the middle of prose they are
//! the same danger, since the server reads the whole page.

use portcullis_types::Span;

use super::scan::{has_at, is_one_of, is_word, run, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/Server-Side_Includes_%28SSI%29_Injection";
    RUNS "ssi.runs" Critical Active "a server-side include that runs a command";
    READS "ssi.reads" Critical Active "a server-side include that inserts a file or a variable";
    SETS "ssi.sets" Error Active "a server-side include that sets or tests something";
    EDGE "ssi.edge" Critical Active "an edge-side include";
    WITH_VALUE "ssi.with-value" Warning Active "the include has an attribute with a value";
}

/// See the module.
#[derive(Debug)]
pub struct Ssi;

static PROFILE: Profile = Profile::new(Class::Ssi, KINDS).needs(ByteGroups::of(b"<")).hints(HINTS);

impl Detector for Ssi {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() || place == Place::RawBody
    }

    fn reads_body(&self, body: &[u8]) -> bool {
        memchr::memchr(b'<', body).is_some()
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let mut add = |kind, from: usize, to: usize| found.add(kind, Span::new(from, to.min(text.len())));
        for at in memchr::memchr_iter(b'<', text) {
            if has_at(text, at, b"<esi:") || has_at(text, at, b"<!--esi") {
                let end = run(text, at + 1, 16, |b| is_word(b) || matches!(b, b':' | b'!' | b'-'));
                add(EDGE, at, end);
                continue;
            }
            // `<!--#exec`, `<! --# exec`
            let mut next = skip_space(text, at + 1);
            if text.get(next) != Some(&b'!') {
                continue;
            }
            next = skip_space(text, next + 1);
            let dashes = run(text, next, 4, |b| b == b'-');
            let hash = skip_space(text, dashes);
            if dashes == next || text.get(hash) != Some(&b'#') {
                continue;
            }
            let word = skip_space(text, hash + 1);
            let end = run(text, word, 16, is_word);
            let kind = match &text[word..end] {
                name if name.eq_ignore_ascii_case(b"exec") => RUNS,
                name if is_one_of(
                    name,
                    &[b"include", b"echo", b"printenv", b"flastmod", b"fsize", b"odbc", b"email"],
                ) =>
                {
                    READS
                }
                name if is_one_of(
                    name,
                    &[
                        b"config", b"set", b"if", b"elif", b"else", b"endif", b"goto", b"label", b"break",
                        b"block",
                    ],
                ) =>
                {
                    SETS
                }
                _ => continue,
            };
            add(kind, at, end);
            let name = skip_space(text, end);
            if text.get(run(text, name, 16, is_word)) == Some(&b'=') {
                add(WITH_VALUE, at, end);
            }
        }
    }
}

const HINTS: &[Hint] = hints!("ssi", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::Ssi;
    use crate::detectors::testing::{blocks, passes};

    #[test]
    fn includes() {
        blocks(Ssi, "<!--#exec cmd=\"ls\" -->", "runs with-value");
        blocks(Ssi, "x<!-- #include virtual=\"/x\"-->", "reads");
        blocks(Ssi, "<!--#printenv -->", "reads");
        blocks(Ssi, "<!--#config timefmt=\"%A\"-->", "sets with-value");
        blocks(Ssi, "<esi:include src=\"http://a.example/\"/>", "edge");
    }

    #[test]
    fn ordinary() {
        passes(Ssi, "#include <stdio.h>\nint main(void) {}");
        passes(Ssi, "<!-- a comment -->");
        passes(Ssi, "<!--[if lt IE 9]><script></script><![endif]-->");
    }
}
