//! `application/x-www-form-urlencoded` bodies and query strings.

use memchr::{memchr, memchr2};
use portcullis_decode::url::decode_form;
use portcullis_types::Span;

use super::readings::{Memory, WithReadings, is_read_alike, without_stray_percent};
use super::{Arg, BodyError, BodyErrorKind, BodySink, Limits, Report};

/// Parses `name=value&name=value`, as ModSecurity 2.9.7 does.
///
/// The input is split at every separator; a pair is split at its first `=`; both halves are decoded: `+` is a
/// space, `%hh` a byte, a percent sign without two hex digits stays and is counted. A pair without `=` is a
/// name with an empty value. Two separators in a row make an argument with empty name and value; after the
/// last separator nothing is made of nothing.
#[derive(Debug)]
pub struct UrlEncoded {
    limits: Limits,
    separator: u8,
    /// Bytes of the pair that is not complete yet.
    pending: Vec<u8>,
    /// Offset in the body where the current pair starts.
    pair_start: u64,
    scratch: Scratch,
    second_readings: bool,
    /// Nothing is encoded anywhere in the input.
    is_literal: bool,
    report: Report,
}

#[derive(Debug, Default)]
struct Scratch {
    name: Vec<u8>,
    value: Vec<u8>,
}

impl UrlEncoded {
    /// Bytes of memory that it holds of what it has taken.
    pub(super) fn held_bytes(&self) -> usize {
        self.pending.capacity() + self.scratch.name.capacity() + self.scratch.value.capacity()
    }

    /// A parser for pairs separated by `&`.
    pub fn new(limits: Limits) -> Self {
        UrlEncoded::with_separator(limits, b'&')
    }

    /// A parser for pairs separated by `separator` (`SecArgumentSeparator`).
    pub fn with_separator(limits: Limits, separator: u8) -> Self {
        UrlEncoded {
            limits,
            separator,
            pending: Vec::new(),
            pair_start: 0,
            scratch: Scratch::default(),
            second_readings: false,
            is_literal: false,
            report: Report::default(),
        }
    }

    /// The same, reporting pairs with a stray percent sign also as classic ASP reads them, which drops the
    /// sign.
    pub fn with_second_readings(mut self, on: bool) -> Self {
        self.second_readings = on;
        self
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        let rest = self.complete_pairs(chunk, sink);
        self.pending.extend_from_slice(rest);
    }

    /// Takes the last bytes. The last pair is not copied if it is in them as a whole.
    pub(super) fn feed_last(&mut self, chunk: &[u8], sink: &mut dyn BodySink) {
        let rest = self.complete_pairs(chunk, sink);
        match self.pending.is_empty() && !rest.is_empty() {
            true => self.pair(rest, sink),
            false => self.pending.extend_from_slice(rest),
        }
    }

    /// Takes the pairs of `chunk` that a separator ends; what is left of it.
    fn complete_pairs<'a>(&mut self, chunk: &'a [u8], sink: &mut dyn BodySink) -> &'a [u8] {
        self.report.bytes += chunk.len() as u64;
        let mut rest = chunk;
        while let Some(end) = memchr(self.separator, rest) {
            if self.report.error.is_some() {
                // There are as many as may be; the others would only be counted.
                return &[];
            }
            if self.pending.is_empty() {
                self.pair(&rest[..end], sink);
            } else {
                self.pending.extend_from_slice(&rest[..end]);
                self.pending_pair(sink);
            }
            self.pair_start += 1;
            rest = &rest[end + 1..];
        }
        rest
    }

    /// All of the input at once: the last pair need not wait for more.
    fn whole(mut self, input: &[u8], sink: &mut dyn BodySink) -> Report {
        self.is_literal = !is_encoded(input);
        self.feed_last(input, sink);
        self.finish(sink)
    }

    /// The input is complete.
    pub fn finish(mut self, sink: &mut dyn BodySink) -> Report {
        if !self.pending.is_empty() {
            self.pending_pair(sink);
        }
        self.report.no_files_bytes = self.report.bytes;
        self.report
    }

    fn pending_pair(&mut self, sink: &mut dyn BodySink) {
        let mut pair = std::mem::take(&mut self.pending);
        self.pair(&pair, sink);
        pair.clear();
        self.pending = pair;
    }

    fn pair(&mut self, pair: &[u8], sink: &mut dyn BodySink) {
        let start = self.pair_start;
        self.pair_start += pair.len() as u64;
        if self.report.arguments >= self.limits.arguments_max {
            let kind = BodyErrorKind::ArgumentsLimit(self.limits.arguments_max);
            self.report.error.get_or_insert(BodyError { kind, position: start });
            return;
        }
        let (name, value, value_at) = match memchr(b'=', pair) {
            Some(at) => (&pair[..at], &pair[at + 1..], at + 1),
            None => (pair, &pair[pair.len()..], pair.len()),
        };
        let raw_value = Span::new(start as usize + value_at, start as usize + pair.len());
        if self.is_literal {
            self.report.arguments += 1;
            return sink.arg(Arg { name, value, raw_value });
        }
        let raw = (name, value);
        let before = self.report.invalid_encodings;
        let invalid = &mut self.report.invalid_encodings;
        let name = decode(name, &mut self.scratch.name, invalid);
        let value = decode(value, &mut self.scratch.value, invalid);
        let stray = *invalid > before;
        self.report.arguments += 1;
        sink.arg(Arg { name, value, raw_value });
        if stray && self.second_readings {
            let raw = (without_stray_percent(raw.0), without_stray_percent(raw.1));
            let mut other = Scratch::default();
            let (other_name, other_value) =
                (decode(&raw.0, &mut other.name, &mut 0), decode(&raw.1, &mut other.value, &mut 0));
            if other_value != value {
                sink.arg_reading(other_name, other_value);
            }
            if other_name != name {
                sink.name_reading(other_name);
            }
        }
    }
}

/// Parses a query string: [`UrlEncoded`] over the bytes behind the `?`.
pub fn parse_query(query: &[u8], separator: u8, limits: &Limits, sink: &mut dyn BodySink) -> Report {
    UrlEncoded::with_separator(limits.clone(), separator).whole(query, sink)
}

/// As [`parse_query`], with second readings.
pub fn parse_query_twice(query: &[u8], separator: u8, limits: &Limits, sink: &mut dyn BodySink) -> Report {
    if is_read_alike(query) {
        return parse_query(query, separator, limits, sink);
    }
    let mut sink = WithReadings { sink, memory: &mut Memory::default() };
    let parser = UrlEncoded::with_separator(limits.clone(), separator).with_second_readings(true);
    parser.whole(query, &mut sink)
}

/// The number of arguments that [`parse_query`] finds in `query`, whatever the limit on them.
pub fn count_arguments(query: &[u8], separator: u8) -> usize {
    let is_open = query.last().is_some_and(|last| *last != separator);
    memchr::memchr_iter(separator, query).count() + usize::from(is_open)
}

/// `input` decoded; borrowed if there is nothing to decode. Counts percent signs without two hex digits.
fn decode<'a>(input: &'a [u8], out: &'a mut Vec<u8>, invalid: &mut u64) -> &'a [u8] {
    if !is_encoded(input) {
        return input;
    }
    out.clear();
    *invalid += decode_form(input, out) as u64;
    out
}

fn is_encoded(input: &[u8]) -> bool {
    memchr2(b'%', b'+', input).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::test_sink::{Recorder, assert_chunking_is_irrelevant};
    use proptest::prelude::*;

    fn check(input: &[u8], expected: &[(&str, &str)]) {
        let mut sink = Recorder::default();
        parse_query(input, b'&', &Limits::default(), &mut sink);
        let expected: Vec<_> =
            expected.iter().map(|&(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
        assert_eq!(sink.args(), expected, "{}", input.escape_ascii());
    }

    #[test]
    fn splitting() {
        check(b"", &[]);
        check(b"a", &[("a", "")]);
        check(b"a=", &[("a", "")]);
        check(b"=a", &[("", "a")]);
        check(b"=", &[("", "")]);
        check(b"a=b", &[("a", "b")]);
        check(b"a=b&c", &[("a", "b"), ("c", "")]);
        check(b"a=b&", &[("a", "b")]);
        check(b"&", &[("", "")]);
        check(b"&&a=1", &[("", ""), ("", ""), ("a", "1")]);
        check(b"a=b=c", &[("a", "b=c")]);
        check(b"a;b=c", &[("a;b", "c")]);
        check(b"a=1?b=2", &[("a", "1?b=2")]);
        check(b"a[]=1&a[]=2", &[("a[]", "1"), ("a[]", "2")]);
    }

    #[test]
    fn decoding() {
        check(b"a+b=c+d", &[("a b", "c d")]);
        check(b"%61%3d=%26", &[("a=", "&")]);
        check(b"a=%4", &[("a", "%4")]);
        check(b"a=%", &[("a", "%")]);
        check(b"a=%zz%%41", &[("a", "%zz%A")]);
        check(b"a=%u0041", &[("a", "%u0041")]);
        check(b"a=%00b", &[("a", "\0b")]);
    }

    #[test]
    fn invalid_encodings_are_counted() {
        for (input, count) in [(&b"a=%41"[..], 0), (b"a=%", 1), (b"%g=%%41", 2), (b"a=%4&b=1", 1)] {
            let report = parse_query(input, b'&', &Limits::default(), &mut Recorder::default());
            assert_eq!(report.invalid_encodings, count, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn arguments_limit() {
        let limits = Limits { arguments_max: 2, ..Limits::default() };
        let mut sink = Recorder::default();
        let report = parse_query(b"a=1&b=2&c=3&d=4", b'&', &limits, &mut sink);
        assert_eq!(sink.args().len(), 2);
        assert_eq!(report.error, Some(BodyError { kind: BodyErrorKind::ArgumentsLimit(2), position: 8 }));
        let report = parse_query(b"a=1&b=2&", b'&', &limits, &mut Recorder::default());
        assert_eq!(report.error, None);
    }

    #[test]
    fn raw_spans() {
        let body = b"&x=%41&name&y=+";
        let mut sink = Recorder::default();
        parse_query(body, b'&', &Limits::default(), &mut sink);
        let raw: Vec<_> = sink.raw_values.iter().map(|span| span.of(body)).collect();
        assert_eq!(raw, [&b""[..], b"%41", b"", b"+"]);
    }

    #[test]
    fn separator() {
        let mut sink = Recorder::default();
        parse_query(b"a=1;b=2&c", b';', &Limits::default(), &mut sink);
        assert_eq!(sink.args(), [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2&c".to_vec())]);
    }

    proptest! {
        /// The short ways for a query in which nothing is encoded find what the long one does.
        #[test]
        fn queries_twice(query in "(_charset_=(utf-16|utf-7|shift_jis)&)?[ab%3C4=&+~\u{1b}é＜]{0,80}") {
            let (mut short, mut long) = (Recorder::default(), Recorder::default());
            let report = parse_query_twice(query.as_bytes(), b'&', &Limits::default(), &mut short);
            let mut sink = WithReadings { sink: &mut long, memory: &mut Memory::default() };
            let mut parser = UrlEncoded::new(Limits::default()).with_second_readings(true);
            for piece in query.as_bytes().chunks(3) {
                parser.feed(piece, &mut sink);
            }
            prop_assert_eq!(report.arguments, count_arguments(query.as_bytes(), b'&'));
            prop_assert_eq!(report, parser.finish(&mut sink));
            prop_assert_eq!(short.events, long.events);
            prop_assert_eq!(short.raw_values, long.raw_values);
        }

        #[test]
        fn any_chunking(body in "[a%4=&+]{0,24}", cuts in proptest::collection::vec(1usize..6, 0..8)) {
            assert_chunking_is_irrelevant(
                body.as_bytes(), &cuts, || UrlEncoded::new(Limits::default()), UrlEncoded::feed, UrlEncoded::finish,
            );
        }
    }
}
