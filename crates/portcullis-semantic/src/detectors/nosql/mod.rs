//! Injection into queries of document databases (MongoDB and what speaks like it).
//!
//! Two ways in: an operator where the application expects a plain value (`password[$ne]=x`,
//! `{"password":{"$ne":1}}`), and JavaScript after a quote, in `$where` or a mapReduce. Operators count as
//! keys only: after a bracket, a brace, a comma or a quote, and before what ends a key. GraphQL's variables
//! look alike but are typed (`$where: Filter`).

mod orm;
mod queries;
mod said;
mod words;

#[cfg(test)]
mod tests;

use portcullis_types::Span;

pub use self::orm::Orm;
pub(crate) use self::orm::asks_in_form;

use super::document;
use super::purpose::{self, names_secret, takes_text};
use super::scan::{Nesting, is_one_of, is_word, run, skip_space, string_end};
use crate::limits::LOOK_SHARE;
use crate::{ByteGroups, Class, Detector, Found, Input, KindId, Place, Profile, kinds};
use queries::{leaves_query, local_parameters};
use said::{closes_its_own, is_said, is_statement};
use words::{HINTS, METHODS, is_credential, is_filter, is_secret, operator, speaks_of_filter};

kinds! {
    reference "https://owasp.org/www-project-web-security-testing-guide/latest/4-Web_Application_Security_Testing/07-Input_Validation_Testing/05.6-Testing_for_NoSQL_Injection";
    NAME_OPERATOR "nosql.name-operator" Critical Quotable
        "a parameter's name ends in an operator of the database";
    KEY_COMPARES "nosql.key-compares" Error Quotable "an operator that compares, as a key";
    KEY_MATCHES "nosql.key-matches" Error Quotable "an operator that takes a pattern, as a key";
    KEY_JOINS "nosql.key-joins" Warning Quotable "an operator that joins conditions, as a key";
    KEY_RUNS "nosql.key-runs" Critical Quotable "an operator that runs JavaScript, as a key";
    KEY_REACHES "nosql.key-reaches" Critical Quotable
        "a stage that reads or writes another collection, as a key";
    KEY_OTHER "nosql.key-other" Notice Quotable "another operator, as a key";
    TRUE_COMPARISON "nosql.true-comparison" Warning Quotable
        "an operator compared with nothing, which holds for every document";
    CREDENTIAL "nosql.credential" Warning Quotable "an operator where a user's name or password belongs";
    WHOLE "nosql.whole" Error Quotable "the value is nothing but an operator and its operand";
    BREAK_OUT "nosql.break-out" Error Quotable "ends a string or object and goes on with a key";
    SPLICE "nosql.splice" Error Quotable
        "closes an object of the query, and a string before it or another object after it";
    SCRIPT_CONDITION "nosql.script-condition" Critical Quotable
        "a quote or `||`, and a condition of JavaScript that is always true";
    SCRIPT_RETURN "nosql.script-return" Critical Quotable "ends the expression and returns another";
    SCRIPT_WAITS "nosql.script-waits" Critical Quotable "ends the expression and waits";
    SCRIPT_FIELD "nosql.script-field" Critical Quotable "asks for a field of the document (`this.x`)";
    QUERY_LANGUAGE "nosql.query-language" Critical Quotable
        "ends a string or a call and goes on in a query language of graphs, metrics or interfaces";
    LOCAL_PARAMETERS "nosql.local-parameters" Critical Quotable
        "parameters that have a search server read the query with another parser: {!join from=..}";
    SECRET_OPERAND "nosql.secret-operand" Critical Quotable
        "an expression of the database is given a secret of the document";
    METHOD "nosql.method" Error Quotable "calls a method of a collection";
}

/// A longer text that begins with a bracket is code.
const SPLICE_BYTES_MAX: usize = 256;

/// Bytes of the path of a field that is an operand.
const OPERAND_BYTES_MAX: usize = 64;

/// Bytes of the statement before a `return` that are looked at.
const HEAD_BYTES_MAX: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub struct NoSql;

static PROFILE: Profile = Profile::new(Class::NoSql, KINDS).needs(ByteGroups::of(b"$;|&.'}")).hints(HINTS);

impl Detector for NoSql {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() || place == Place::RawBody
    }

    fn reads_body(&self, body: &[u8]) -> bool {
        memchr::memchr(b'$', body).is_some()
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let first = skip_space(text, 0);
        if input.location.place == Place::RawBody {
            let is_json = matches!(text.get(first), Some(b'{' | b'['));
            let mut scan = Scan { is_mention: !is_json, ..Scan::new(text, found) };
            scan.empty_operands();
            scan.secret_operands();
            return;
        }
        let opens = matches!(text.get(first), Some(b'{' | b'[' | b'$' | b'\'' | b'"' | b',' | b'}' | b']'));
        // A sentence about operators has them in it; what ends a string or an object of the query is live in
        // the middle of it, too.
        let is_mention = input.document.is_file || !opens && (takes_text(input.location) || is_said(text));
        let is_file = input.location.place == Place::FileContent;
        let has_return = || memchr::memmem::find(text, b"return").is_some();
        let strings = match input.document.is_file
            && input.groups.has(b';')
            && has_return()
            && found.may_read(text.len() / LOOK_SHARE)
        {
            true => document::quotes(text),
            false => Vec::new(),
        };
        let mut scan = Scan { is_mention, is_file, strings, ..Scan::new(text, found) };
        if input.location.place == Place::Name {
            scan.name();
        }
        if input.groups.has(b'$') && (input.location.place != Place::Name || input.groups.has(b':')) {
            scan.keys(first);
            scan.secret_operands();
        }
        if !input.is_json {
            scan.splice(first);
            scan.script(first);
            scan.methods();
            if let Some(span) = local_parameters(text).filter(|_| !purpose::takes_parser(input.location)) {
                scan.add(LOCAL_PARAMETERS, span.start as usize, span.end as usize);
            }
            if let Some(span) = leaves_query(text) {
                scan.add(QUERY_LANGUAGE, span.start as usize, span.end as usize);
            }
        }
    }
}

struct Scan<'s, 't, 'f> {
    text: &'t [u8],
    /// What stands in the text without breaking out of anything is named, not sent.
    is_mention: bool,
    is_file: bool,
    /// Where the quotes of a program's strings stand, in a field for files.
    strings: Vec<usize>,
    found: &'s mut Found<'f>,
}

impl<'s, 't, 'f> Scan<'s, 't, 'f> {
    fn new(text: &'t [u8], found: &'s mut Found<'f>) -> Scan<'s, 't, 'f> {
        Scan { text, is_mention: false, is_file: false, strings: Vec::new(), found }
    }

    fn add(&mut self, kind: KindId, from: usize, to: usize) {
        let span = Span::new(from, to.min(self.text.len()));
        match self.is_mention || self.is_file {
            true => self.found.mention(kind, span),
            false => self.found.add(kind, span),
        }
    }

    /// What breaks out: nothing around it makes it a mention.
    fn add_live(&mut self, kind: KindId, from: usize, to: usize) {
        let span = Span::new(from, to.min(self.text.len()));
        match self.is_file {
            true => self.found.mention(kind, span),
            false => self.found.add(kind, span),
        }
    }

    /// `user[$ne]`, `json.user.$ne`, `user.$gt`
    fn name(&mut self) {
        let text = self.text;
        // The keys of `a[$x][0]` without their first bracket: the whole name is looked at, too.
        let close = memchr::memchr(b']', text);
        if close.is_some_and(|close| memchr::memchr(b'[', text).is_none_or(|open| close < open)) {
            return;
        }
        for at in memchr::memchr_iter(b'$', text) {
            let begins = at == 0 || matches!(text[at - 1], b'[' | b'.' | b'"' | b'\'' | b'{' | b' ' | b',');
            let end = run(text, at + 1, 24, is_word);
            let ends = matches!(text.get(end), None | Some(b']' | b'.' | b'[' | b'"' | b'\'' | b':'));
            if !begins || !ends {
                continue;
            }
            match operator(&text[at + 1..end]) {
                // `password[$exists]`: whatever it asks of a password, no form does.
                Some(KEY_OTHER) if is_secret(&text[..at]) => {
                    self.add(KEY_COMPARES, at, end);
                    self.add(CREDENTIAL, 0, end);
                }
                Some(KEY_OTHER) | None => {}
                Some(KEY_REACHES) => self.add(KEY_REACHES, at, end),
                Some(KEY_RUNS) => self.add(KEY_RUNS, at, end),
                // A filter in a JSON body may be the interface; in a form or query it is none.
                Some(kind) if text[at - at.min(1)] == b'.' || is_filter(text) => {
                    // An interface's own filter asks for users as for anything else, but for no secret.
                    let is_secret =
                        if is_filter(text) { is_secret(&text[..at]) } else { is_credential(&text[..at]) };
                    // `filters[$or][0][price][$gt]`: the interface has all of them; one says as much as two.
                    self.add(if is_filter(text) && !is_secret { KEY_OTHER } else { kind }, at, end);
                    if is_secret {
                        self.add(CREDENTIAL, 0, end);
                    }
                }
                Some(_) => self.add(NAME_OPERATOR, at.saturating_sub(1), end + 1),
            }
        }
    }

    /// Operators as keys in JSON, or in what is nearly JSON.
    fn keys(&mut self, first: usize) {
        let text = self.text;
        let mut nesting = Nesting::new(text);
        let mut of_graphql = None;
        for at in memchr::memchr_iter(b'$', text) {
            let end = run(text, at + 1, 24, is_word);
            let Some(kind) = operator(&text[at + 1..end]) else { continue };
            let before = text[..at].trim_ascii_end().last().copied();
            let is_quoted = matches!(before, Some(b'"' | b'\''));
            let begins = matches!(before, None | Some(b'{' | b',' | b'[' | b'"' | b'\'' | b'&'));
            let mut next = end;
            if matches!(text.get(next), Some(b'"' | b'\'')) {
                next += 1;
            }
            let is_bracketed = before == Some(b'[') && text.get(next) == Some(&b']');
            let next = skip_space(text, next + usize::from(is_bracketed));
            let sign = text.get(next).copied();
            // JavaScript for the database, whatever stands before it.
            let begins = begins
                || kind == KEY_RUNS
                    && sign == Some(b':')
                    && matches!(text.get(skip_space(text, next + 1)), Some(b'\'' | b'"' | b'f' | b'{'));
            if !begins || !(sign == Some(b':') || is_bracketed) {
                // A bare name of an operator that has no other use.
                if at == first && end == text.trim_ascii_end().len() && kind != KEY_OTHER {
                    self.add(kind, at, end);
                    // `op=$gt` is an interface's; what takes a pattern or code is none.
                    if matches!(kind, KEY_MATCHES | KEY_RUNS) {
                        self.add(WHOLE, at, end);
                    }
                }
                continue;
            }
            let operand = skip_space(text, next + 1);
            // A GraphQL variable's type.
            let is_typed = sign == Some(b':')
                && !is_quoted
                && text.get(operand).is_some_and(|b| b.is_ascii_uppercase() || *b == b'[')
                && *of_graphql.get_or_insert_with(|| {
                    memchr::memmem::find(text, b"query").or(memchr::memmem::find(text, b"mutation")).is_some()
                });
            if is_typed {
                continue;
            }
            let head = text[first..at].trim_ascii();
            let breaks = matches!(head.first(), Some(b'\'' | b'"' | b'}' | b']' | b','))
                || head.first().is_some_and(u8::is_ascii_alphanumeric)
                    && head.ends_with(b",")
                    && head.len() < 40;
            // In the middle of a text: a quote or bracket that the text did not open, a comma, and the key.
            let head_end = text[..at].trim_ascii_end();
            let closer = head_end.strip_suffix(b",").map(|before| before.trim_ascii_end());
            let breaks_out =
                closer.is_some_and(|head| !head.is_empty() && nesting.closes_foreign(head.len() - 1));
            if breaks_out {
                self.add_live(kind, at, operand + 1);
                self.add_live(BREAK_OUT, at, operand + 1);
                let mut inner = closer.unwrap_or_default();
                let len = inner.len();
                while let Some(rest) = inner.strip_suffix(b"}").or_else(|| inner.strip_suffix(b"]")) {
                    inner = rest.trim_ascii_end();
                }
                if inner.len() < len && matches!(inner.last(), Some(b'\'' | b'"')) {
                    self.add_live(SPLICE, at, operand + 1);
                }
            }
            self.add(kind, at, operand + 1);
            if is_credential(&text[..at]) {
                self.add(CREDENTIAL, at, operand + 1);
            }
            let rest = &text[operand.min(text.len())..];
            let is_nothing =
                [&b"\"\""[..], b"''", b"null", b"0", b"1", b"-1", b"undefined", b"true", b"\".*\"", b"/.*/"];
            let is_alone =
                |nothing: &[u8]| rest.get(nothing.len()).is_none_or(|b| !is_word(*b) && *b != b'.');
            if kind == KEY_COMPARES
                && is_nothing.iter().any(|nothing| rest.starts_with(nothing) && is_alone(nothing))
            {
                self.add(TRUE_COMPARISON, at, operand + 2);
            }
            if first < at
                && text[first] == b'{'
                && text[first + 1..at].iter().all(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\''))
                || is_bracketed
            {
                self.add(WHOLE, first, operand + 1);
            }
            if breaks && !matches!(head, b"\"" | b"'") {
                self.add(BREAK_OUT, first, operand + 1);
            }
        }
    }

    /// `"$expr": {"$lt": ["$password", "x"]}`: a secret of the document as the operand of an expression, by
    /// which one asks for it letter by letter. Elsewhere `$password` is a variable of settings.
    fn secret_operands(&mut self) {
        let text = self.text;
        if memchr::memmem::find(text, b"$expr").is_none() {
            return;
        }
        for at in memchr::memchr_iter(b'$', text).filter(|at| *at > 0) {
            let quote = text[at - 1];
            let end = run(text, at + 1, OPERAND_BYTES_MAX, |b| is_word(b) || b == b'.');
            let path = &text[at + 1..end];
            let is_value = text.get(end) == Some(&quote)
                && matches!(quote, b'"' | b'\'')
                && text.get(skip_space(text, end + 1)) != Some(&b':');
            if is_value && path.rsplit(|b| *b == b'.').next().is_some_and(names_secret) {
                self.add(SECRET_OPERAND, at - 1, end + 1);
                return;
            }
        }
    }

    /// `"password": {"$nin": []}`: nothing below the operator, so that no value of the body shows it.
    fn empty_operands(&mut self) {
        let text = self.text;
        let mut for_filters = None;
        for at in memchr::memchr_iter(b'$', text) {
            let end = run(text, at + 1, 24, is_word);
            let is_key = at > 0 && text[at - 1] == b'"' && text.get(end) == Some(&b'"');
            let colon = skip_space(text, end + 1);
            let operand = skip_space(text, colon + 1);
            let is_empty = match text.get(operand) {
                Some(b'[') => text.get(skip_space(text, operand + 1)) == Some(&b']'),
                Some(b'{') => text.get(skip_space(text, operand + 1)) == Some(&b'}'),
                _ => false,
            };
            let kind = operator(&text[at + 1..end]);
            let is_operator = kind.is_some();
            // `{"name":{"$ne":null}}`: all that have one. An interface's own filters say that they are.
            let rest = text.get(operand..).unwrap_or_default();
            let is_nothing =
                [&b"null"[..], b"\"\"", b"undefined"].iter().any(|nothing| rest.starts_with(nothing));
            if is_key
                && kind == Some(KEY_COMPARES)
                && text.get(colon) == Some(&b':')
                && is_nothing
                && !*for_filters.get_or_insert_with(|| speaks_of_filter(text))
            {
                self.add(KEY_COMPARES, at, operand + 1);
                self.add(TRUE_COMPARISON, at, operand + 1);
            }
            if is_key
                && is_operator
                && text.get(colon) == Some(&b':')
                && is_empty
                && is_credential(&text[..at])
            {
                self.add(KEY_COMPARES, at, operand + 1);
                self.add(CREDENTIAL, at, operand + 1);
            }
        }
    }

    /// `' } ], $comment: 'x'`, `}, { password: /.*/ }`: out of an object that the value did not open, into
    /// another key.
    fn splice(&mut self, first: usize) {
        let text = self.text;
        let mut at = skip_space(text, first + usize::from(matches!(text.get(first), Some(b'\'' | b'"'))));
        let mut closed = 0;
        while matches!(text.get(at), Some(b'}' | b']')) {
            closed += 1;
            at = skip_space(text, at + 1);
        }
        if closed == 0 || text.get(at) != Some(&b',') || text.len() > SPLICE_BYTES_MAX {
            return;
        }
        let mut key = skip_space(text, at + 1);
        let opens = text.get(key) == Some(&b'{');
        key = skip_space(text, key + usize::from(opens));
        let is_quoted = matches!(text.get(key), Some(b'\'' | b'"'));
        let end = run(text, key + usize::from(is_quoted), 40, |b| is_word(b) || matches!(b, b'$' | b'.'));
        let colon = skip_space(text, end + usize::from(is_quoted));
        if end == key || text.get(colon) != Some(&b':') {
            return;
        }
        let was_quoted = matches!(text.get(first), Some(b'\'' | b'"'));
        if was_quoted || opens {
            self.add(SPLICE, first, colon + 1);
        }
        if text.get(skip_space(text, colon + 1)) == Some(&b'/') && opens {
            self.add(KEY_MATCHES, key, colon + 1);
        }
    }

    /// JavaScript after a quote, a number, or nothing.
    fn script(&mut self, first: usize) {
        let text = self.text;
        // `'; return ...`, `0;return true`, `';sleep(5000)`, `'});db...`
        let mut nesting = Nesting::new(text);
        for semicolon in memchr::memchr_iter(b';', text) {
            let next = skip_space(text, semicolon + 1);
            let end = run(text, next, 24, is_word);
            let word = &text[next..end];
            let after = skip_space(text, end);
            let returns = word.eq_ignore_ascii_case(b"return") && after > end && after < text.len()
                || word == b"return" && matches!(text.get(end), Some(b'\'' | b'"' | b'(' | b'!'));
            let waits = word == b"sleep" && text.get(end) == Some(&b'(');
            if !returns && !waits {
                continue;
            }
            let first = first.max(semicolon.saturating_sub(HEAD_BYTES_MAX));
            let head = text[first..semicolon].trim_ascii();
            let is_break = match head.last() {
                Some(b')' | b'}') => !closes_its_own(head, &text[first..next]),
                Some(b'\'' | b'"') => true,
                _ => head.iter().all(u8::is_ascii_digit) || head.len() < 12,
            };
            if !is_break || is_statement(head) {
                continue;
            }
            let before = text[..semicolon].trim_ascii_end();
            let closes = before.len().checked_sub(1).is_some_and(|at| nesting.closes_foreign(at));
            let is_string = || self.strings.binary_search(&(before.len() - 1)).is_ok();
            let is_live = closes && matches!(before.last(), Some(b'\'' | b'"')) && !is_string();
            if returns && is_live {
                self.add_live(SCRIPT_RETURN, semicolon, after + 8);
            } else if returns {
                self.add(SCRIPT_RETURN, semicolon, after + 8);
            }
            let quoted = head.first().is_some_and(|b| matches!(b, b'\'' | b'"'))
                || closes
                || head.iter().all(u8::is_ascii_digit) && !head.is_empty();
            if waits && is_live {
                self.add_live(SCRIPT_WAITS, semicolon, end + 1);
            } else if quoted && waits {
                self.add(SCRIPT_WAITS, semicolon, end + 1);
            }
        }
        let has = |word: &[u8]| memchr::memmem::find(text, word);
        let waits = || has(b"new Date").is_some() || has(b"Date.now").is_some();
        if has(b"while").is_some()
            && waits()
            && let Some(at) = has(b"do{").or(has(b"do {")).or(has(b"while(")).or(has(b"while ("))
        {
            match ends_string(text, at) {
                true => self.add_live(SCRIPT_WAITS, at, at + 40),
                false => self.add(SCRIPT_WAITS, at, at + 40),
            }
        }
        self.conditions(first);
    }

    /// `'||'1'=='1`, `|| 1==1`, `' && this.password.match(/.*/)//`
    fn conditions(&mut self, first: usize) {
        let text = self.text;
        let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
        if text[first..].starts_with(b"this.")
            && (has(b"==") || has(b".match(") || compares_secret(&text[first + 5..]))
        {
            self.add(SCRIPT_FIELD, first, first + 5);
        }
        let is_pair = |at: &usize| text.get(at + 1) == Some(&text[*at]);
        let mut nesting = Nesting::new(text);
        for at in memchr::memchr2_iter(b'|', b'&', text).filter(is_pair) {
            let head = text[first..at].trim_ascii();
            let after_quote = matches!(head.last(), Some(b'\'' | b'"'));
            let is_live = after_quote && nesting.closes_foreign(text[..at].trim_ascii_end().len() - 1);
            let begins =
                head.is_empty() || head.len() < 24 && after_quote || head.iter().all(u8::is_ascii_digit);
            let mut next = skip_space(text, at + 2);
            while matches!(text.get(next), Some(b'(' | b'!')) {
                next += 1;
            }
            if text[next..].starts_with(b"this.") && (begins || after_quote) {
                match is_live {
                    true => self.add_live(SCRIPT_FIELD, at, next + 5),
                    false => self.add(SCRIPT_FIELD, at, next + 5),
                }
                continue;
            }
            let Some(left) = constant_end(text, next) else { continue };
            let sign = skip_space(text, left);
            let equals = if text[sign..].starts_with(b"===") {
                3
            } else if text[sign..].starts_with(b"==") {
                2
            } else {
                0
            };
            if equals == 0 {
                continue;
            }
            let right = skip_space(text, sign + equals);
            if right >= text.len() || constant_end(text, right).is_some() {
                if is_live {
                    self.add_live(SCRIPT_CONDITION, at, right + 1);
                } else if begins {
                    self.add(SCRIPT_CONDITION, at, right + 1);
                } else {
                    self.found.mention(SCRIPT_CONDITION, Span::new(at, right));
                }
            }
        }
    }

    /// `db.users.find(`, `db.getCollection("x").drop(`
    fn methods(&mut self) {
        let text = self.text;
        for at in memchr::memmem::find_iter(text, b"db.") {
            if at > 0 && is_word(text[at - 1]) {
                continue;
            }
            let end = run(text, at + 3, 80, |b| is_word(b) || matches!(b, b'.' | b'"' | b'\'' | b'-'));
            let call = &text[at + 3..end];
            let method = call.rsplit(|&b| b == b'.').next().unwrap_or_default();
            if text.get(end) == Some(&b'(') && (is_one_of(method, METHODS)) {
                self.add(METHOD, at, end + 1);
                if text[..at].trim_ascii().is_empty() && matches!(text.trim_ascii().last(), Some(b')' | b';'))
                {
                    self.add(WHOLE, at, text.len());
                }
            }
        }
    }
}

/// `password < 'i'`, `pin[0]>'4'`: a secret is compared by an order, or a letter of it by any sign.
fn compares_secret(text: &[u8]) -> bool {
    let end = run(text, 0, OPERAND_BYTES_MAX, is_word);
    let sign = skip_space(text, end);
    let is_order = matches!(text.get(sign), Some(b'<' | b'>'))
        && matches!(text.get(skip_space(text, sign + 1)), Some(b'\'' | b'"' | b'=' | b'0'..=b'9'));
    names_secret(&text[..end]) && (is_order || text.get(end) == Some(&b'['))
}

/// A quote that the text did not open and a semicolon after it stand before `to`.
fn ends_string(text: &[u8], to: usize) -> bool {
    let mut nesting = Nesting::new(text);
    memchr::memchr_iter(b';', &text[..to]).any(|semicolon| {
        let before = text[..semicolon].trim_ascii_end();
        matches!(before.last(), Some(b'\'' | b'"')) && nesting.closes_foreign(before.len() - 1)
    })
}

/// The end of a number or string at `at`; a string may be open.
fn constant_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'\'' | b'"' => Some(string_end(text, at).0),
        b'0'..=b'9' => Some(run(text, at, 20, |b| b.is_ascii_digit())),
        b't' | b'f' if text[at..].starts_with(b"true") || text[at..].starts_with(b"false") => {
            Some(run(text, at, 5, is_word))
        }
        _ => None,
    }
}
