//! The table of readings of a path.
//!
//! A route is chosen by the path as it is written. A server behind us may decode it first, cut parts of it,
//! or merge slashes, once or twice and in any order, and so serve another place than the one whose route was
//! taken. Which server it is cannot be seen from here, so a site takes the route of each reading, and refuses
//! a request for which these differ in more than their names.
//!
//! Two things are not in the table. Case: each reading counts as it is and, for servers that ignore case
//! (IIS, Express, ASP.NET, file systems of Windows and macOS), without it. Parents: servers differ too much
//! in how far `..` climbs, and benign clients resolve it themselves, so a path that climbs for any server has
//! no reading at all ([`climbs`]).
//!
//! `smuggling --paths` of `portcullis-proof` compares all of this with real servers.
//!
//! [`climbs`]: super::climbs

use std::borrow::Cow;

use super::steps::Step::{self, *};

/// A way to read a path.
struct Reading {
    /// The servers that read so, and their setting.
    #[cfg_attr(not(test), expect(dead_code, reason = "for people and for failures of tests"))]
    server: &'static str,
    /// Their steps, in this order.
    steps: &'static [Step],
}

macro_rules! table {
    ($($server:literal $steps:tt)*) => { &[$(Reading { server: $server, steps: &$steps },)*] };
}

/// A row for each way that is known of some server.
const TABLE: &[Reading] = table! {
    "HAProxy; Express; applications that look at the request line" []
    "gunicorn, uvicorn, Go without ServeMux, Puma" [Decode]
    "Spring" [Params, Decode, Merge]
    "Spring before 5.3" [Decode, Params, Merge]
    "Envoy with normalize_path; HAProxy with normalize-uri" [Unreserved, Dots]
    "the same with merge_slashes, path-merge-slashes" [Unreserved, Dots, Merge]
    "java.net.URI; Vert.x" [Dots, Decode]
    "nginx; php -S; lighttpd; Go with ServeMux" [Decode, Merge, Dots]
    "http.server of Python; path.normalize of Node.js" [Decode, Merge, Normpath]
    "nginx with merge_slashes off" [Decode, Dots]
    "Apache httpd" [Unreserved, Merge, Dots, Decode]
    "Apache httpd with AllowEncodedSlashes On" [Unreserved, Merge, Dots, Decode, Merge, Dots]
    "Apache httpd with AllowEncodedSlashes NoDecode" [Unreserved, Merge, Dots, DecodeAllButSlash]
    "Tomcat" [Params, Decode, Merge, Dots]
    "Tomcat with ALLOW_BACKSLASH" [Params, Decode, Backslash, Merge, Dots]
    "Tomcat with encodedSolidusHandling passthrough" [Params, DecodeAllButSlash, Merge, Dots]
    "Jetty" [Params, Decode, Dots]
    "Undertow" [Params, Dots, Decode]
    "URL of Node.js, Deno, workers" [Fragment, Backslash, Authority, Unreserved, Dots]
    "the same, decoded" [Fragment, Backslash, Authority, Unreserved, Dots, Decode]
    "the same, as the name of a file" [Fragment, Backslash, Authority, Unreserved, Dots, Decode, Merge, Dots]
    "parse_url of PHP; urlsplit of Python" [Fragment, Authority]
    "the same, decoded" [Fragment, Authority, Decode]
    "the same, as the name of a file" [Fragment, Authority, Decode, Merge, Dots]
    "the same behind a gateway that decodes" [Fragment, Authority, Decode, Decode, Params, Merge, Dots]
    "a gateway that decodes, before parse_url" [Decode, Backslash, Authority, Params, Decode, Merge, Dots]
    "IIS" [DecodeLeniently, Backslash, Merge, Trim, Dots]
    "IIS with a rewritten URL" [DecodeLeniently, End, Backslash, Merge, Trim, Dots]
    "mod_rewrite to a proxy; names that end at a NUL" [Decode, End, Merge, Dots]
    "the same, slashes kept" [Decode, End]
    "a gateway that decodes, before gunicorn" [Decode, Decode]
    "a gateway that decodes, before nginx" [Decode, Merge, Dots, Decode, Merge, Dots]
    "a gateway that decodes, before Tomcat" [Decode, Params, Decode, Merge, Dots]
    "Java before 2008, on Windows" [DecodeLeniently, Backslash, Params, Trim, Merge, Dots]
    "the same behind a gateway that decodes" SHORTEST
};

/// The steps that leave least of a path.
pub(super) const SHORTEST: [Step; 7] =
    [DecodeLeniently, DecodeLeniently, Backslash, Params, Trim, Merge, Dots];

/// The path in each of the readings that change it.
pub(crate) fn readings(path: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let readings = TABLE.iter().map(|reading| Step::run_all(reading.steps, path));
    readings.filter(|reading| matches!(reading, Cow::Owned(_)))
}

#[cfg(test)]
mod tests {
    use super::super::{climbs, is_plain};
    use super::*;

    /// Pieces of paths that some server or other takes for something else.
    const PIECES: &[&str] = &[
        "static",
        "admin",
        "x",
        "y",
        "..",
        ".",
        "",
        "..;",
        "..;a=b",
        ";x",
        "%2e%2e",
        "%2e.",
        ".%2e",
        "%252e%252e",
        "..%2f",
        "..%5c",
        "..%252f",
        "%2e%2e%2f",
        "..%00",
        "admin%3f",
        "admin;x",
        "admin%00",
        "..%20",
        "%u002e%u002e",
        "%c0%ae%c0%ae",
        "static;x",
        "admin%2f..",
        "x%2f..",
        "%3b",
        "..%3b",
        "%3f",
        "%23",
        "%61dmin",
        "%2561dmin",
        "admin.",
        "static%20",
        "%2e",
        "ADMIN",
    ];
    const SEPARATORS: &[&str] =
        &["/", "/", "/", "/", "/", "//", "\\", "%2f", "%5c", "%252f", "%u2215", "%c0%af"];

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) % sides as u64) as usize
        }

        fn one<T: Copy>(&mut self, of: &[T]) -> T {
            of[self.below(of.len())]
        }

        fn path(&mut self) -> String {
            let mut path = self.one(&["", "/static", "/static", "/admin"]).to_string();
            for _ in 0..1 + self.below(6) {
                path += if path.is_empty() { "/" } else { self.one(SEPARATORS) };
                path += self.one(PIECES);
            }
            path + self.one(&["", "", "/static/y"])
        }

        /// What a server could do, whether or not there is one that does.
        fn server(&mut self) -> Vec<Step> {
            let before: &[&[Step]] = &[&[], &[Dots], &[Unreserved, Dots]];
            let decoders: &[&[Step]] =
                &[&[], &[Decode], &[DecodeAllButSlash], &[Decode, Decode], &[DecodeLeniently]];
            let mut steps = Vec::new();
            for step in [Backslash, Authority, Params, Merge] {
                steps.extend((self.below(2) == 0).then_some(step));
            }
            steps.extend(self.one(before));
            steps.extend(self.one(decoders));
            for step in [End, Backslash, Params, Trim, Merge, Dots] {
                steps.extend((self.below(2) == 0).then_some(step));
            }
            steps
        }
    }

    fn area(path: &[u8]) -> &'static str {
        match () {
            () if path.starts_with(b"/static/") => "static",
            () if path.starts_with(b"/admin") => "admin",
            () => "other",
        }
    }

    /// Where all readings agree, a server with any other mixture of what servers do agrees, too.
    #[test]
    fn no_mixture_of_readings_leads_elsewhere() {
        let (mut dice, mut agreed) = (Dice(0x2545_f491_4f6c_dd1d), 0);
        for _ in 0..40_000 {
            let path = dice.path();
            let written = area(path.as_bytes());
            if climbs(path.as_bytes()) || readings(path.as_bytes()).any(|reading| area(&reading) != written) {
                continue;
            }
            agreed += 1;
            for _ in 0..40 {
                let server = dice.server();
                let served = Step::run_all(&server, path.as_bytes());
                let shown = String::from_utf8_lossy(&served);
                assert_eq!(area(&served), written, "{path} is {shown} to {server:?}");
            }
        }
        assert!(agreed > 2_000, "{agreed} paths were let through");
    }

    /// A path that is said to be plain is the same in all readings.
    #[test]
    fn plain_paths_have_one_reading() {
        let (mut dice, mut plain) = (Dice(7), 0);
        for _ in 0..20_000 {
            let words =
                ["static", "a.b", "A-z_~", ".", "..", "", "x;", "%41", ".a", "b.", "c%", "\u{e9}", "+&=@:$"];
            let path: String = (0..1 + dice.below(4)).map(|_| format!("/{}", dice.one(&words))).collect();
            if !is_plain(path.as_bytes()) {
                continue;
            }
            plain += 1;
            assert!(!climbs(path.as_bytes()), "{path}");
            let other =
                TABLE.iter().find(|row| *Step::run_all(row.steps, path.as_bytes()) != *path.as_bytes());
            assert_eq!(other.map(|row| row.server), None, "{path}");
        }
        assert!(plain > 1_000, "{plain}");
    }
}
