use aho_corasick::{AhoCorasick, MatchKind};
use portcullis_types::{Place, percent_decode};

use crate::scrub::{Pairs, scrub, secret_spans};
use crate::secret_names::{Place as NamedAt, looks_secret, names};
use crate::{Event, Finding, RuleEffect, RuleMatch, limits, text::CUT_MARK};

/// Stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// A known secret shorter than this is not searched for in other texts: it would strike out half of them.
pub(crate) const KNOWN_SECRET_BYTES_MIN: usize = 4;
/// Known secrets searched for in one event; more than that are only replaced where their names stand.
pub(crate) const KNOWN_SECRETS_MAX: usize = 64;

/// Names whose values are secrets. Compared without regard to case; a `*` at the beginning or the end stands
/// for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactorNames {
    /// Request and response header names.
    pub headers: Vec<String>,
    /// Argument names, in queries and bodies. Also compared with each part of `json.user.password`,
    /// `user[password]`.
    pub args: Vec<String>,
    /// Cookie names.
    pub cookies: Vec<String>,
    /// Names of arguments and cookies that often stand for something else, such as `code`: their values are
    /// secrets if they look like keys, codes or digests.
    pub weak: Vec<String>,
}

impl Default for RedactorNames {
    /// The names of `secret_names.rs`.
    fn default() -> RedactorNames {
        RedactorNames {
            headers: names(NamedAt::Header),
            args: names(NamedAt::Arg),
            cookies: names(NamedAt::Cookie),
            weak: names(NamedAt::Weak),
        }
    }
}

impl RedactorNames {
    /// Adds a name that stands for headers, arguments and cookies alike.
    pub fn add_everywhere(&mut self, name: &str) {
        for list in [&mut self.headers, &mut self.args, &mut self.cookies] {
            list.push(name.to_owned());
        }
    }
}

/// Takes secrets out of events. Built once from names; knows no rule and no request.
///
/// A secret is the value of a header, argument or cookie whose name is listed. It is replaced
/// - where it is the value of a match on such a target, together with the `logdata` of that match,
/// - where it follows its name in any text: `name=value`, `"name": "value"`, `<name>value<`, `Name: value`,
/// - anywhere else in the event, if it is known (from such a match, from the query, or given by the caller)
///   and is at least 4 bytes long; case is ignored, for transformations change it.
///
/// Users and passwords in the authority of a URL (`http://user:password@host/`) go as well, wherever it
/// stands and however it is coded. Text that has neither a listed name nor a known value, such as a token in
/// a path segment, stays.
#[derive(Clone, Debug)]
pub struct Redactor {
    headers: Patterns,
    args: Patterns,
    cookies: Patterns,
    weak: Patterns,
    /// Nothing is hidden, whatever it is.
    shows_all: bool,
}

impl Default for Redactor {
    fn default() -> Redactor {
        Redactor::new(&RedactorNames::default())
    }
}

impl Redactor {
    /// A redactor that hides nothing: for those who have the message and may see its content.
    pub fn none() -> Redactor {
        let names = RedactorNames { headers: vec![], args: vec![], cookies: vec![], weak: vec![] };
        Redactor { shows_all: true, ..Redactor::new(&names) }
    }

    /// A redactor for these names.
    pub fn new(names: &RedactorNames) -> Redactor {
        Redactor {
            headers: Patterns::new(&names.headers),
            args: Patterns::new(&names.args),
            cookies: Patterns::new(&names.cookies),
            weak: Patterns::new(&names.weak),
            shows_all: false,
        }
    }

    /// True if nothing is to be hidden.
    pub(crate) fn shows_all(&self) -> bool {
        self.shows_all
    }

    /// True if a header of this name holds a secret.
    pub fn is_secret_header(&self, name: &[u8]) -> bool {
        self.headers.matches(name)
    }

    /// True if a cookie of this name holds a secret.
    pub fn is_secret_cookie(&self, name: &[u8]) -> bool {
        self.cookies.matches(name)
    }

    /// True if an argument of this name, or of a part of this name, holds a secret.
    pub fn is_secret_arg(&self, name: &[u8]) -> bool {
        self.args.matches_part(name)
    }

    /// True if an argument or cookie of this name holds a secret where it looks like one.
    pub(crate) fn is_weak(&self, name: &[u8]) -> bool {
        self.weak.matches_part(name)
    }

    /// True if this value of a target such as `ARGS:password` is a secret.
    pub fn is_secret_target(&self, target: &str, value: &[u8]) -> bool {
        let Some((collection, key)) = target.split_once(':') else { return false };
        let key = key.as_bytes();
        let is_weak = || self.is_weak(key) && looks_secret(value);
        match collection {
            "ARGS" | "ARGS_GET" | "ARGS_POST" | "FILES_TMP_CONTENT" => self.is_secret_arg(key) || is_weak(),
            "REQUEST_HEADERS" | "RESPONSE_HEADERS" => self.is_secret_header(key),
            "REQUEST_COOKIES" => self.is_secret_cookie(key) || is_weak(),
            _ => false,
        }
    }

    /// Takes the secrets out of `event`.
    pub fn redact(&self, event: &mut Event) {
        self.redact_known(event, &[]);
    }

    /// Takes the secrets out of a text of a request: its target, another URL, a header's value.
    pub fn redact_text(&self, text: &mut String) {
        self.clean(text, Pairs::Form, &Known::new(Vec::new()));
    }

    /// Writes `*` over the secrets of a text of a message, so that lengths and places stay: a request line, a
    /// body.
    pub fn hide_in(&self, text: &mut [u8]) {
        self.hide_pairs(text, Pairs::Form);
    }

    /// The same in the value of a header.
    pub fn hide_in_header(&self, name: &[u8], value: &mut [u8]) {
        match name.eq_ignore_ascii_case(b"cookie") {
            _ if self.is_secret_header(name) => value.fill(b'*'),
            true => self.hide_pairs(value, Pairs::Cookie),
            false => self.hide_pairs(value, Pairs::Form),
        }
    }

    fn hide_pairs(&self, text: &mut [u8], pairs: Pairs) {
        for span in secret_spans(text, self, pairs) {
            // The span of a part's value begins with the end of its head.
            text[span].iter_mut().filter(|byte| !matches!(byte, b'\r' | b'\n')).for_each(|byte| *byte = b'*');
        }
    }

    /// As [`Redactor::redact`], and takes out `secrets` wherever they occur: values that the caller knows to
    /// be secret by their names, whether they matched or not.
    pub fn redact_known(&self, event: &mut Event, secrets: &[&[u8]]) {
        let known = Known::new(self.known_secrets(event, secrets));
        let request = &mut event.request;
        self.clean(&mut request.target, Pairs::Form, &known);
        for header in &mut request.headers {
            let name = header.name.as_bytes();
            if self.is_secret_header(name) {
                REDACTED.clone_into(&mut header.value);
            } else {
                let is_cookie = name.eq_ignore_ascii_case(b"cookie");
                self.clean(&mut header.value, if is_cookie { Pairs::Cookie } else { Pairs::Form }, &known);
            }
        }
        self.clean(&mut event.verdict.reason, Pairs::Form, &known);
        for word in &mut event.agents {
            self.clean(&mut word.reason, Pairs::Form, &known);
        }
        for rule_match in &mut event.matches {
            self.redact_match(rule_match, &known);
        }
        for finding in &mut event.findings {
            self.redact_finding(finding, &known);
        }
    }

    /// True if this value at `place` under `name` is a secret.
    fn is_secret_place(&self, place: Place, name: &[u8], value: &[u8]) -> bool {
        let is_weak = || self.is_weak(name) && looks_secret(value);
        if matches!(place, Place::Header | Place::ResponseHeader) {
            self.is_secret_header(name)
        } else if place == Place::Cookie {
            self.is_secret_cookie(name) || is_weak()
        } else {
            self.is_secret_arg(name) || is_weak()
        }
    }

    fn redact_finding(&self, finding: &mut Finding, known: &Known) {
        // Evidence is a part of its value: where the raw text around a secret was looked at, it may be a part
        // of that.
        let evidence = finding.evidence.as_bytes();
        let is_secret = self.is_secret_place(finding.place, finding.name.as_bytes(), evidence)
            || known.has_part(&finding.evidence);
        let pairs = if finding.place == Place::Cookie { Pairs::Cookie } else { Pairs::Form };
        if is_secret {
            REDACTED.clone_into(&mut finding.evidence);
            finding.span = None;
        } else if self.clean(&mut finding.evidence, pairs, known) {
            finding.span = None;
        }
    }

    fn redact_match(&self, m: &mut RuleMatch, known: &Known) {
        if let RuleEffect::Redirected(location) = &mut m.effect {
            self.clean(location, Pairs::Form, known);
        }
        let pairs = pairs_of(&m.target);
        if self.is_secret_target(&m.target, m.value.as_bytes()) {
            REDACTED.clone_into(&mut m.value);
            m.span = None;
            if !m.data.is_empty() {
                REDACTED.clone_into(&mut m.data);
            }
        } else if self.clean(&mut m.value, pairs, known) {
            // The bytes moved, and where they were hints at the secret's length.
            m.span = None;
        }
        if self.mentions_secret_target(&m.data) {
            // CRS writes "Matched Data: PART found within ARGS:password: VALUE": both sides are the secret.
            REDACTED.clone_into(&mut m.data);
        } else {
            self.clean(&mut m.data, pairs, known);
        }
        self.clean(&mut m.message, pairs, known);
    }

    /// Values of this event that are secret by their names, and `given`; without doubles, of useful length.
    fn known_secrets(&self, event: &Event, given: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut known: Vec<Vec<u8>> = given.iter().map(|s| s.to_vec()).collect();
        for m in &event.matches {
            if self.is_secret_target(&m.target, m.value.as_bytes()) && !m.value.contains(CUT_MARK) {
                known.push(m.value.clone().into_bytes());
            }
        }
        let target = event.request.target.as_bytes();
        for span in secret_spans(target, self, Pairs::Form) {
            let raw = &target[span];
            known.push(raw.to_vec());
            known.push(percent_decode(raw, true));
        }
        known.retain(|secret| secret.len() >= KNOWN_SECRET_BYTES_MIN);
        known.sort();
        known.dedup();
        known.truncate(KNOWN_SECRETS_MAX);
        known
    }

    /// Takes named and known secrets out of one text. True if it changed.
    fn clean(&self, text: &mut String, pairs: Pairs, known: &Known) -> bool {
        let by_name = scrub(text, self, pairs);
        let by_value = known.strike(by_name.as_deref().unwrap_or(text));
        match by_value.or(by_name) {
            Some(clean) => *text = clean,
            None => return false,
        }
        true
    }

    /// True if `text` names a target that holds a secret, as in `... found within ARGS:password: ...`.
    fn mentions_secret_target(&self, text: &str) -> bool {
        const COLLECTIONS: [&str; 6] =
            ["ARGS", "ARGS_GET", "ARGS_POST", "REQUEST_HEADERS", "RESPONSE_HEADERS", "REQUEST_COOKIES"];
        let bytes = text.as_bytes();
        memchr::memchr_iter(b':', bytes).any(|colon| {
            let before = &bytes[..colon];
            let word =
                before.iter().rev().take(20).take_while(|b| b.is_ascii_uppercase() || **b == b'_').count();
            let collection = &before[colon - word..];
            if !COLLECTIONS.iter().any(|c| c.as_bytes() == collection) {
                return false;
            }
            let rest = &bytes[colon + 1..];
            let rest = &rest[..rest.len().min(limits::TARGET_NAME_BYTES_MAX)];
            let end = rest.windows(2).position(|w| w == b": ").unwrap_or(rest.len());
            let key = rest[..end].trim_ascii_end();
            let is_weak = || self.is_weak(key) && looks_secret(rest.get(end + 2..).unwrap_or_default());
            match collection {
                b"REQUEST_HEADERS" | b"RESPONSE_HEADERS" => self.is_secret_header(key),
                b"REQUEST_COOKIES" => self.is_secret_cookie(key) || is_weak(),
                _ => self.is_secret_arg(key) || is_weak(),
            }
        })
    }
}

fn pairs_of(target: &str) -> Pairs {
    let is_cookie_header =
        target.strip_prefix("REQUEST_HEADERS:").is_some_and(|name| name.eq_ignore_ascii_case("cookie"));
    if is_cookie_header { Pairs::Cookie } else { Pairs::Form }
}

/// Values to strike out wherever they stand.
struct Known(Option<(AhoCorasick, Vec<Vec<u8>>)>);

impl Known {
    fn new(secrets: Vec<Vec<u8>>) -> Known {
        if secrets.is_empty() {
            return Known(None);
        }
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(&secrets)
            .ok();
        Known(search.map(|search| (search, secrets)))
    }

    /// True if `text`, of useful length, is within a secret.
    fn has_part(&self, text: &str) -> bool {
        let Some((_, secrets)) = &self.0 else { return false };
        let part = text.as_bytes();
        part.len() >= KNOWN_SECRET_BYTES_MIN
            && secrets
                .iter()
                .any(|secret| secret.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part)))
    }

    fn strike(&self, text: &str) -> Option<String> {
        let (search, secrets) = self.0.as_ref()?;
        let mut out = String::new();
        let mut from = 0;
        for found in search.find_iter(text) {
            // A secret of bytes that are not UTF-8 cannot be found in text; one that is begins and ends a
            // character.
            out.push_str(text.get(from..found.start())?);
            out.push_str(REDACTED);
            from = found.end();
        }
        let rest = text.get(from..)?;
        let keep = cut_secret(rest, secrets).unwrap_or(rest.len());
        if from == 0 && keep == rest.len() {
            return None;
        }
        out.push_str(rest.get(..keep)?);
        if keep < rest.len() {
            out.push_str(REDACTED);
        }
        Some(out)
    }
}

/// Finds a secret that is cut off at the end of a text cut to its limit: the offset of its beginning.
fn cut_secret(text: &str, secrets: &[Vec<u8>]) -> Option<usize> {
    let mark = text.rfind(CUT_MARK)?;
    let kept = &text.as_bytes()[..mark];
    secrets
        .iter()
        .filter_map(|secret| {
            (KNOWN_SECRET_BYTES_MIN..secret.len().min(mark + 1))
                .rev()
                .find(|&n| kept[mark - n..].eq_ignore_ascii_case(&secret[..n]))
        })
        .max()
        .map(|n| mark - n)
}

/// Name patterns, lower case.
#[derive(Clone, Debug)]
struct Patterns {
    all: Vec<Pattern>,
    /// [`letters`] of each: a name that lacks one of them cannot match.
    letters: Vec<u32>,
    /// The least number of bits of one of them: most operands that look like a name have fewer.
    distinct_min: u32,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: Vec<u8>,
    open_start: bool,
    open_end: bool,
}

impl Patterns {
    fn new(names: &[String]) -> Patterns {
        let pattern = |name: &String| {
            let text = name.trim_matches('*').to_ascii_lowercase().into_bytes();
            let (open_start, open_end) = (name.starts_with('*'), name.ends_with('*'));
            Pattern { text, open_start, open_end }
        };
        let all: Vec<Pattern> = names.iter().map(pattern).collect();
        let letters: Vec<u32> = all.iter().map(|pattern| letters(&pattern.text)).collect();
        let distinct_min = letters.iter().map(|letters| letters.count_ones()).min().unwrap_or(u32::MAX);
        Patterns { all, letters, distinct_min }
    }

    /// True if one matches the name, or a part of `user[password]`, `user.password`.
    fn matches_part(&self, name: &[u8]) -> bool {
        let mut parts = name.split(|b| matches!(b, b'.' | b'[' | b']'));
        self.matches(name)
            || parts.any(|part| part.len() < name.len() && !part.is_empty() && self.matches(part))
    }

    fn matches(&self, name: &[u8]) -> bool {
        let letters_of_name = letters(name);
        if letters_of_name.count_ones() < self.distinct_min {
            return false;
        }
        let missing = !letters_of_name;
        // Nearly every name lacks a letter of every pattern: a loop without branches tells so.
        self.letters.iter().fold(false, |any, letters| any | (letters & missing == 0))
            && self
                .letters
                .iter()
                .zip(&self.all)
                .any(|(letters, p)| letters & missing == 0 && p.matches(name))
    }
}

/// A bit for each byte's lower five bits: letters have one each, whatever their case.
fn letters(text: &[u8]) -> u32 {
    text.iter().fold(0, |bits, byte| bits | 1 << (byte & 31))
}

impl Pattern {
    fn matches(&self, name: &[u8]) -> bool {
        let n = self.text.len();
        let Some(spare) = name.len().checked_sub(n) else { return false };
        match (self.open_start, self.open_end) {
            (false, false) => spare == 0 && name.eq_ignore_ascii_case(&self.text),
            (true, false) => name[spare..].eq_ignore_ascii_case(&self.text),
            (false, true) => name[..n].eq_ignore_ascii_case(&self.text),
            (true, true) => n == 0 || name.windows(n).any(|w| w.eq_ignore_ascii_case(&self.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_rule_out_only_names_that_no_pattern_matches() {
        let redactor = Redactor::default();
        for patterns in [&redactor.headers, &redactor.args, &redactor.cookies, &redactor.weak] {
            let mut matched = 0;
            for pattern in &patterns.all {
                let text = &pattern.text[..];
                let upper = text.to_ascii_uppercase();
                let names = [
                    &[],
                    text,
                    &upper,
                    &text[1..],
                    &[b"my-", text].concat(),
                    &[text, b"_2"].concat(),
                    &[b"A", &upper[..], b"\xff9"].concat(),
                ];
                for name in names {
                    let expected = patterns.all.iter().any(|pattern| pattern.matches(name));
                    assert_eq!(patterns.matches(name), expected, "{}", String::from_utf8_lossy(name));
                    matched += usize::from(expected);
                }
            }
            assert!(matched >= 2 * patterns.all.len(), "{matched}");
        }
    }
}
