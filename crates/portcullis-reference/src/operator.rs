//! Operators, each in its plainest form.

use std::net::IpAddr;
use std::path::Path;

use bstr::{BString, ByteSlice};
use portcullis_match::{Budget, Captures, Pcre, RegexFlags, parse_pm_words, parse_text, parse_word_file};
use portcullis_seclang::Files;
use portcullis_seclang::operators::OperatorName;
use portcullis_types::Span;

use crate::numbers;
use crate::rsub::Rsub;
use crate::text::{atoi, find};

/// An operator and its argument.
pub(crate) enum Test {
    Always,
    Never,
    Rx(Pcre),
    /// `@rxGlobal`.
    RxGlobal(Pcre),
    Verify(fn(&[u8]) -> bool, Pcre),
    /// A regex with macros in it: built anew each time, with these flags. True: all of it is escaped then, as
    /// in version 2.
    RxMacro(BString, RegexFlags, bool),
    Text(TextTest, BString),
    /// As `contains`, without macros.
    StrMatch(BString),
    Number(NumberTest, BString),
    Words(Vec<Vec<u8>>),
    Addresses(Vec<(IpAddr, u32)>),
    Sqli,
    Xss,
    /// The allowed byte values.
    Bytes(Vec<u8>),
    UrlEncoding,
    Utf8,
    /// Matches always; what it does is done where the match is known.
    Rsub(Rsub),
    /// The zone.
    Rbl(BString),
    Geo,
    Scan,
}

#[derive(Clone, Copy)]
pub(crate) enum TextTest {
    BeginsWith,
    Contains,
    ContainsWord,
    EndsWith,
    Streq,
    Within,
}

#[derive(Clone, Copy)]
pub(crate) enum NumberTest {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

/// The result of an operator that matched: `captures` go to `TX:0` and on; `unsets` says whether the others
/// up to 9 vanish.
pub(crate) struct Found {
    pub(crate) captures: Vec<BString>,
    pub(crate) unsets: bool,
}

impl Found {
    const NOTHING_CAPTURED: Found = Found { captures: Vec::new(), unsets: false };
}

impl Test {
    /// Builds an operator. `folder` is where its data files are; the error says what is wrong. `multi_line`:
    /// `^` and `$` of `@rx` match at line ends, too.
    pub(crate) fn new(
        name: OperatorName,
        argument: &BString,
        folder: &Path,
        files: &dyn Files,
        multi_line: bool,
    ) -> Result<Test, String> {
        let flags = RegexFlags { multi_line, ..RegexFlags::default() };
        let text = |test| Ok(Test::Text(test, argument.clone()));
        let number = |test| Ok(Test::Number(test, argument.clone()));
        match name {
            OperatorName::BeginsWith => text(TextTest::BeginsWith),
            OperatorName::Contains => text(TextTest::Contains),
            OperatorName::ContainsWord => text(TextTest::ContainsWord),
            OperatorName::EndsWith => text(TextTest::EndsWith),
            OperatorName::Streq => text(TextTest::Streq),
            OperatorName::Within => text(TextTest::Within),
            OperatorName::StrMatch => Ok(Test::StrMatch(parse_text(argument).into())),
            OperatorName::Eq => number(NumberTest::Eq),
            OperatorName::Ge => number(NumberTest::Ge),
            OperatorName::Gt => number(NumberTest::Gt),
            OperatorName::Le => number(NumberTest::Le),
            OperatorName::Lt => number(NumberTest::Lt),
            OperatorName::DetectSqli => Ok(Test::Sqli),
            OperatorName::DetectXss => Ok(Test::Xss),
            OperatorName::UnconditionalMatch => Ok(Test::Always),
            OperatorName::NoMatch => Ok(Test::Never),
            OperatorName::ValidateUrlEncoding => Ok(Test::UrlEncoding),
            OperatorName::ValidateUtf8Encoding => Ok(Test::Utf8),
            OperatorName::ValidateByteRange => byte_ranges(argument).map(Test::Bytes),
            OperatorName::IpMatch => addresses(argument, b',').map(Test::Addresses),
            OperatorName::IpMatchFromFile => {
                let text = read_all(argument, folder, files)?;
                addresses(&text, b'\n').map(Test::Addresses)
            }
            OperatorName::Rsub => Rsub::new(argument).map(Test::Rsub),
            OperatorName::Pm => Ok(Test::Words(parse_pm_words(argument))),
            OperatorName::PmFromFile => Ok(Test::Words(parse_word_file(&read_all(argument, folder, files)?))),
            OperatorName::Rx if has_macro(argument) => {
                Ok(Test::RxMacro(argument.clone(), flags, !multi_line))
            }
            OperatorName::Rx => regex(argument, multi_line).map(Test::Rx),
            OperatorName::RxGlobal => regex(argument, multi_line).map(Test::RxGlobal),
            OperatorName::VerifyCc => {
                regex(argument, true).map(|regex| Test::Verify(numbers::is_card, regex))
            }
            OperatorName::VerifySsn => {
                regex(argument, true).map(|regex| Test::Verify(numbers::is_ssn, regex))
            }
            OperatorName::VerifyCpf => {
                regex(argument, true).map(|regex| Test::Verify(numbers::is_cpf, regex))
            }
            OperatorName::VerifySvnr => {
                regex(argument, true).map(|regex| Test::Verify(numbers::is_svnr, regex))
            }
            OperatorName::Rbl => Ok(Test::Rbl(argument.trim_ascii().to_ascii_lowercase().into())),
            OperatorName::GeoLookup => Ok(Test::Geo),
            OperatorName::InspectFile if argument.starts_with(b"clamd:") => Ok(Test::Scan),
            other @ (OperatorName::FuzzyHash
            | OperatorName::GsbLookup
            | OperatorName::InspectFile
            | OperatorName::IpMatchFromDataset
            | OperatorName::PmFromDataset
            | OperatorName::RestPath
            | OperatorName::ValidateDtd
            | OperatorName::ValidateHash
            | OperatorName::ValidateNid
            | OperatorName::ValidateSchema) => Err(format!("{other}")),
        }
    }

    /// Tests a value. `expand` replaces the macros of an argument.
    pub(crate) fn run(&self, value: &[u8], expand: &dyn Fn(&[u8]) -> BString) -> Option<Found> {
        let plain = |matched: bool| matched.then_some(Found::NOTHING_CAPTURED);
        match self {
            Test::Always | Test::Rsub(_) => plain(true),
            Test::Never => plain(false),
            Test::Rx(regex) => run_regex(regex, value),
            Test::RxMacro(pattern, flags, escapes) => {
                let text = expand(pattern);
                let text = if *escapes { escape_regex(&text) } else { text };
                let regex = Pcre::new(&text, *flags).ok()?;
                run_regex(&regex, value)
            }
            Test::RxGlobal(regex) => {
                let (mut captures, mut from) = (Vec::new(), 0);
                while let Some(groups) = search(regex, value, from).filter(|_| from <= value.len()) {
                    let whole = groups.first().copied().flatten()?;
                    captures.extend(groups.iter().map(|g| g.map_or(&b""[..], |span| span.of(value)).into()));
                    from = whole.end as usize + usize::from(whole.is_empty());
                }
                // The engine's limit (docs/seclang-reference.md).
                captures.truncate(100);
                (!captures.is_empty()).then_some(Found { captures, unsets: true })
            }
            Test::Verify(is_valid, regex) => (0..value.len()).find_map(|from| {
                let groups = search(regex, value, from)?;
                let whole = groups.first().copied().flatten()?;
                let text = whole.of(value);
                // Every group holds the whole number.
                let captures = vec![text.into(); groups.len()];
                (whole.start as usize == from && !text.is_empty() && is_valid(text))
                    .then_some(Found { captures, unsets: true })
            }),
            Test::Text(test, argument) => plain(test.run(value, &expand(argument))),
            Test::StrMatch(argument) => plain(find(value, argument).is_some()),
            Test::Number(test, argument) => plain(test.run(atoi(value), atoi(&expand(argument)))),
            Test::Words(words) => {
                let word = first_word(words, value)?;
                Some(Found { captures: vec![word.into()], unsets: true })
            }
            Test::Addresses(networks) => {
                let address = value.to_str().ok()?.parse().ok()?;
                plain(networks.iter().any(|&network| is_inside(address, network)))
            }
            Test::Sqli => {
                let fingerprint = portcullis_libinjection::sqli(value)?;
                Some(Found { captures: vec![fingerprint.as_str().into()], unsets: false })
            }
            Test::Xss => {
                let capture = value.split(|&b| b == 0).next().unwrap_or_default();
                portcullis_libinjection::xss(value)
                    .then(|| Found { captures: vec![capture.into()], unsets: false })
            }
            // Their answers are not in the value: see outside.rs.
            Test::Rbl(_) | Test::Geo | Test::Scan => None,
            Test::Bytes(allowed) => plain(value.iter().any(|byte| !allowed.contains(byte))),
            Test::UrlEncoding => plain(has_broken_percent(value)),
            Test::Utf8 => plain(value.to_str().is_err()),
        }
    }
}

fn regex(pattern: &[u8], multi_line: bool) -> Result<Pcre, String> {
    let flags = RegexFlags { multi_line, ..RegexFlags::default() };
    Pcre::new(pattern, flags).map_err(|error| format!("regex: {} at {}", error.message, error.offset))
}

/// The groups of the first match from `from` on, up to the last one that took part: as PCRE reports them.
fn search(regex: &Pcre, value: &[u8], from: usize) -> Option<Vec<Option<Span>>> {
    let mut groups: Captures = Captures::default();
    if from > value.len() || regex.search(value, from, &mut Budget::default(), &mut groups) != Ok(true) {
        return None;
    }
    let count = groups.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    Some(groups[..count].to_vec())
}

/// Groups before the last one that took part are empty if they did not.
fn run_regex(regex: &Pcre, value: &[u8]) -> Option<Found> {
    let groups = search(regex, value, 0)?;
    let texts = groups.iter().map(|group| group.map_or(&b""[..], |span| span.of(value)).into());
    Some(Found { captures: texts.collect(), unsets: true })
}

impl TextTest {
    fn run(self, value: &[u8], text: &[u8]) -> bool {
        match self {
            TextTest::BeginsWith => value.starts_with(text),
            TextTest::Contains => find(value, text).is_some(),
            TextTest::ContainsWord => contains_word(value, text),
            TextTest::EndsWith => value.ends_with(text),
            TextTest::Streq => value == text,
            TextTest::Within => find(text, value).is_some(),
        }
    }
}

fn contains_word(value: &[u8], word: &[u8]) -> bool {
    let is_word_byte = |b: Option<&u8>| b.is_some_and(|&b| b.is_ascii_alphanumeric() || b == b'_');
    if word.is_empty() {
        return true;
    }
    (0..value.len()).any(|at| {
        value[at..].starts_with(word)
            && !(at > 0 && is_word_byte(value.get(at - 1)))
            && !is_word_byte(value.get(at + word.len()))
    })
}

impl NumberTest {
    fn run(self, value: i64, argument: i64) -> bool {
        match self {
            NumberTest::Eq => value == argument,
            NumberTest::Ge => value >= argument,
            NumberTest::Gt => value > argument,
            NumberTest::Le => value <= argument,
            NumberTest::Lt => value < argument,
        }
    }
}

/// The word that ends first in the value; the longest of several that end there.
fn first_word<'w>(words: &'w [Vec<u8>], value: &[u8]) -> Option<&'w [u8]> {
    let ends_here = |word: &&Vec<u8>, end: usize| {
        !word.is_empty() && word.len() <= end && value[end - word.len()..end].eq_ignore_ascii_case(word)
    };
    (1..=value.len()).find_map(|end| {
        let here = words.iter().filter(|word| ends_here(word, end));
        // Of equally long ones, the first written.
        here.fold(None, |best: Option<&Vec<u8>>, word| match best {
            Some(best) if best.len() >= word.len() => Some(best),
            _ => Some(word),
        })
        .map(Vec::as_slice)
    })
}

fn read_all(names: &[u8], folder: &Path, files: &dyn Files) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for name in names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()) {
        let path = folder.join(name.to_str_lossy().as_ref());
        let text = files.read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        out.extend_from_slice(&text);
        out.push(b'\n');
    }
    Ok(out)
}

fn addresses(text: &[u8], separator: u8) -> Result<Vec<(IpAddr, u32)>, String> {
    let mut out = Vec::new();
    for part in text.split(|&b| b == separator).map(<[u8]>::trim_ascii) {
        if part.is_empty() || part.starts_with(b"#") {
            continue;
        }
        let part = part.to_str_lossy();
        let (address, bits) = part.split_once('/').map_or((&*part, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| format!("address {part}"))?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(bits) => bits.parse().ok().filter(|&bits| bits <= width).ok_or(format!("network {part}"))?,
        };
        out.push((address, bits));
    }
    Ok(out)
}

fn is_inside(address: IpAddr, (network, bits): (IpAddr, u32)) -> bool {
    let (a, b, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    bits == 0 || a >> (width - bits) == b >> (width - bits)
}

/// A `%{` with its `}`.
fn has_macro(text: &[u8]) -> bool {
    find(text, b"%{").is_some_and(|at| find(&text[at..], b"}").is_some())
}

/// Follows `log_escape_re`.
fn escape_regex(text: &[u8]) -> BString {
    let mut out = Vec::new();
    for &byte in text {
        match byte {
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            11 => out.extend_from_slice(b"\\v"),
            13 => out.extend_from_slice(b"\\r"),
            b'"' | b':' | b'+' | b'.' | b'?' | b'/' | b'(' | b')' | b'[' | b']' | b'\\' => {
                out.extend_from_slice(&[b'\\', byte]);
            }
            0..=0x1f | 0x7f.. => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.into()
}

/// As `atoi` reads the numbers: a word is 0.
fn byte_ranges(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for part in text.split(|&b| b == b',').filter(|part| !part.trim_ascii().is_empty()) {
        let (low, high) = part.split_once_str(b"-").unwrap_or((part, part));
        let number =
            |text: &[u8]| u8::try_from(atoi(text)).map_err(|_| format!("byte range {}", part.as_bstr()));
        out.extend(number(low)?..=number(high)?);
    }
    Ok(out)
}

fn has_broken_percent(value: &[u8]) -> bool {
    (0..value.len()).any(|at| {
        let is_hex = |at: usize| value.get(at).is_some_and(u8::is_ascii_hexdigit);
        value[at] == b'%' && !(is_hex(at + 1) && is_hex(at + 2))
    })
}
