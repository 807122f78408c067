//! Arguments that some applications find outside the query and the body. Second readings only.

use memchr::memchr;
use portcullis_decode::url::decode_form;

use super::undeclared::Second;
use super::{BodySink, Limits, parse_query_twice};

/// Parameters of path segments, `/shop;item=1/list;page=2`, as servlet containers and Rails read them.
pub fn path_parameters(path: &[u8], limits: &Limits, sink: &mut dyn BodySink) {
    if memchr(b';', path).is_none() {
        return;
    }
    let parameters = path.split(|&b| b == b'/').flat_map(|segment| segment.split(|&b| b == b';').skip(1));
    let mut decoded = (Vec::new(), Vec::new());
    for parameter in parameters.filter(|p| !p.is_empty()).take(limits.arguments_max) {
        let (name, value) = match memchr(b'=', parameter) {
            Some(at) => (&parameter[..at], &parameter[at + 1..]),
            None => (&b""[..], parameter),
        };
        decoded.0.clear();
        decoded.1.clear();
        decode_form(name, &mut decoded.0);
        decode_form(value, &mut decoded.1);
        sink.arg_reading(&decoded.0, &decoded.1);
    }
}

/// True for request headers from which IIS, Symfony and others take the URL instead of the request line.
pub fn overrides_url(header: &[u8]) -> bool {
    [b"x-original-url".as_slice(), b"x-rewrite-url"].iter().any(|name| name.eq_ignore_ascii_case(header))
}

/// The query of such a header's URL.
pub fn overriding_query(url: &[u8], separator: u8, limits: &Limits, sink: &mut dyn BodySink) {
    if let Some(at) = memchr(b'?', url) {
        parse_query_twice(&url[at + 1..], separator, limits, &mut Second::new(sink, &mut Default::default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Arg;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl BodySink for Seen {
        fn arg(&mut self, arg: Arg<'_>) {
            self.0.push(format!("arg {}", arg.name.escape_ascii()));
        }
        fn arg_reading(&mut self, name: &[u8], value: &[u8]) {
            self.0.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        }
    }

    #[test]
    fn segments_have_parameters() {
        let check = |path: &str, want: &[&str]| {
            let mut seen = Seen::default();
            path_parameters(path.as_bytes(), &Limits::default(), &mut seen);
            assert_eq!(seen.0, want, "{path}");
        };
        check("/a/b", &[]);
        check("/a;x=1;y=%31/b;z", &["x=1", "y=1", "=z"]);
        check("/a;/b;=", &["="]);
    }

    #[test]
    fn urls_in_headers() {
        assert!(
            overrides_url(b"X-Original-URL") && overrides_url(b"x-rewrite-url") && !overrides_url(b"x-url")
        );
        let mut seen = Seen::default();
        overriding_query(b"/a?b=%3C&c", b'&', &Limits::default(), &mut seen);
        overriding_query(b"/a", b'&', &Limits::default(), &mut seen);
        assert_eq!(seen.0, ["b=<", "c="]);
    }
}
