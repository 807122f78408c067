//! Injection into filters of LDAP (RFC 4515).
//!
//! A filter is parentheses all over: `(&(uid=NAME)(active=1))`. What is pasted for `NAME` breaks out by
//! closing a parenthesis that it did not open, and goes on with a filter of its own. The detector counts
//! parentheses and recognises the beginnings of filters; a star before the closing parenthesis and the usual
//! attributes make it surer.

use portcullis_types::Span;

use super::purpose;
use super::scan::{is_one_of, is_word, run, skip_space};
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-community/attacks/LDAP_Injection";
    BREAK_OUT "ldap.break-out" Critical Quotable
        "closes a parenthesis that it did not open, and begins another filter";
    BREAK_OUT_BARE "ldap.break-out-bare" Warning Quotable
        "closes a parenthesis that it did not open, and opens another";
    OPERATOR "ldap.operator" Error Quotable "a filter that joins others by `&`, `|` or `!`";
    COMPARISON "ldap.comparison" Notice Quotable "a comparison in parentheses";
    PRESENCE "ldap.presence" Warning Quotable "a filter that holds for every entry with the attribute";
    ATTRIBUTE "ldap.attribute" Warning Quotable "an attribute of directories";
    SUBSTRING "ldap.substring" Warning Quotable
        "asks whether a secret begins so, as one guesses it letter by letter";
    STAR_CLOSE "ldap.star-close" Warning Quotable "a wildcard, and the filter is closed";
    NUL "ldap.nul" Error Quotable "the filter is closed, and NUL cuts off the rest";
    RULE "ldap.rule" Error Quotable "a matching rule by its number";
    WHOLE "ldap.whole" Warning Quotable "all of the value is a filter";
    NAMED "ldap.named" Warning Quotable "the value is a comparison of an attribute that every directory has";
    SIGNS "ldap.signs" Critical Quotable
        "a list of the signs that filters are made of, to see which come through";
}

/// See the module.
#[derive(Debug)]
pub struct Ldap;

/// An attribute and the number of a rule are no longer.
const RULE_BYTES_MAX: usize = 96;

/// A longer prefix is text of its own.
const PREFIX_BYTES_MAX: usize = 64;

static PROFILE: Profile = Profile::new(Class::Ldap, KINDS)
    .needs(ByteGroups::of(b"():"))
    .hints(HINTS)
    .weights(include_str!("../../weights/ldap.tsv"));

impl Detector for Ldap {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        if input.is_json {
            return;
        }
        let text = input.text;
        let first = text.iter().position(|b| matches!(b, b'(' | b')')).unwrap_or(0);
        let prefix = text[..first].trim_ascii();
        // A name, a wildcard, nothing: what stands in the value of a comparison. Prose is not one.
        let is_value = prefix.len() <= PREFIX_BYTES_MAX && prefix.iter().filter(|b| **b == b' ').count() <= 1;
        // The settings of a login hold whole filters, and people show them as code or in a text; what breaks
        // out of one does not begin with its parenthesis.
        let is_whole = prefix.is_empty() && is_balanced(text);
        if is_signs(text) {
            found.add(SIGNS, Span::new(0, text.len()));
            return;
        }
        let is_password = purpose::takes_password(input.location);
        let mut scan = Scan { text, is_mention: !is_value || is_whole, is_password, found };
        scan.run(first);
    }
}

struct Scan<'s, 't, 'f> {
    text: &'t [u8],
    is_mention: bool,
    /// A random password may have the characters of a filter in it.
    is_password: bool,
    found: &'s mut Found<'f>,
}

impl Scan<'_, '_, '_> {
    fn add(&mut self, kind: KindId, from: usize, to: usize) {
        let span = Span::new(from, to.min(self.text.len()));
        match self.is_mention {
            true => self.found.mention(kind, span),
            false => self.found.add(kind, span),
        }
    }

    fn run(&mut self, first: usize) {
        let text = self.text;
        let (mut depth, mut closed_foreign) = (0u32, false);
        let (mut filters, mut comparisons, mut foreign) = (0u32, 0u32, 0u32);
        for at in memchr::memchr2_iter(b'(', b')', &text[first..]).map(|at| first + at) {
            match text[at] {
                b')' if depth == 0 => {
                    closed_foreign = true;
                    foreign += 1;
                    if at > 0 && text[at - 1] == b'*' {
                        self.add(STAR_CLOSE, at - 1, at + 1);
                    }
                    let next = run(text, at, 16, |b| b == b')');
                    if text.get(next) == Some(&0)
                        || text[next.min(text.len())..].starts_with(b"\\x00")
                        || text[next.min(text.len())..].starts_with(b"%00")
                    {
                        self.add(NUL, at, next + 1);
                    }
                }
                b')' => depth -= 1,
                b'(' => {
                    depth += 1;
                    let inner = skip_space(text, at + 1);
                    let filter = self.filter(inner);
                    filters += u32::from(filter == Some(Filter::Operator));
                    comparisons += u32::from(filter == Some(Filter::Comparison));
                    let follows_close = text[..at].trim_ascii_end().ends_with(b")");
                    if closed_foreign && follows_close {
                        match filter {
                            Some(_) => self.add(BREAK_OUT, at - 1, at + 40),
                            None => self.add(BREAK_OUT_BARE, at - 1, at + 20),
                        }
                        closed_foreign = false;
                    }
                }
                _ => {}
            }
        }
        self.rules();
        // A filter needs no white space: code and prose have it.
        let trimmed = text.trim_ascii();
        let is_bracketed = trimmed.first() == Some(&b'(') && trimmed.last() == Some(&b')');
        if is_bracketed
            && foreign == 0
            && comparisons > 0
            && (filters > 0 || comparisons == 1 && trimmed.len() < 80)
        {
            self.add(WHOLE, 0, text.len());
            let name = &trimmed[1..1 + run(trimmed, 1, 40, is_word).saturating_sub(1)];
            if comparisons == 1
                && filters == 0
                && !trimmed.contains(&b'*')
                && is_one_of(name, DIRECTORY_ATTRIBUTES)
            {
                self.add(NAMED, 0, text.len());
            }
        }
    }

    /// `userPassword:2.5.13.18:=...`: a matching rule by its number, also where the application has the
    /// parenthesis.
    fn rules(&mut self) {
        let text = self.text;
        for sign in memchr::memmem::find_iter(text, b":=") {
            let from = sign.saturating_sub(RULE_BYTES_MAX);
            let head = &text[from..sign];
            let Some(colon) = memchr::memrchr(b':', head) else { continue };
            let rule = &head[colon + 1..];
            let name = &head[..colon];
            let name = name.strip_suffix(b":dn").unwrap_or(name);
            let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(**b, b'-' | b';');
            let name = &name[name.len() - name.iter().rev().take_while(is_part).count()..];
            let is_number = rule.iter().filter(|b| **b == b'.').count() >= 3
                && rule.first().is_some_and(u8::is_ascii_digit)
                && rule.iter().all(|b| b.is_ascii_digit() || *b == b'.');
            if !is_number || name.is_empty() {
                continue;
            }
            self.add(RULE, from + colon, sign + 2);
            if is_one_of(name, ATTRIBUTES) {
                self.add(ATTRIBUTE, from + colon - name.len(), from + colon);
            }
        }
    }

    /// What a parenthesis opens whose content begins at `at`.
    fn filter(&mut self, at: usize) -> Option<Filter> {
        let text = self.text;
        if let Some(b'&' | b'|' | b'!') = text.get(at) {
            let next = skip_space(text, at + 1);
            // `(&)` and `(|)` are true and false (RFC 4526).
            // `*)(&`: the application's own filters are what it joins.
            let is_open_end =
                next >= text.len() && text[..at.saturating_sub(1)].trim_ascii_end().ends_with(b")");
            let is_filter =
                is_open_end || matches!(text.get(next), Some(b'(' | b')')) || self.comparison(next, false);
            if is_filter {
                self.add(OPERATOR, at.saturating_sub(1), next + 1);
                return Some(Filter::Operator);
            }
            return None;
        }
        if text.get(at) == Some(&b'(') && matches!(text.get(at + 1), Some(b'|' | b'&' | b'!')) {
            return Some(Filter::Operator);
        }
        self.comparison(at, true).then_some(Filter::Comparison)
    }

    fn comparison(&mut self, at: usize, notes: bool) -> bool {
        let text = self.text;
        let end =
            run(text, at, 64, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b';' | b'.' | b':' | b'_'));
        let name = &text[at.min(text.len())..end];
        let rest = &text[end..];
        let sign = match rest {
            [b'~' | b'<' | b'>', b'=', ..] => 2,
            // `==` and `=>` are signs of programs.
            [b'=', b'=' | b'>', ..] => return false,
            [b'=', ..] => 1,
            _ => return false,
        };
        if name.is_empty() || !name[0].is_ascii_alphanumeric() {
            return false;
        }
        let plain = &name[..name.iter().position(|b| matches!(b, b';' | b':')).unwrap_or(name.len())];
        if self.is_password && !is_one_of(plain, ATTRIBUTES) {
            if notes {
                self.found.suppress(COMPARISON, Span::new(at, end + sign), "password-signs");
            }
            return false;
        }
        if notes {
            self.add(COMPARISON, at, end + sign);
        }
        if name.contains(&b':') && name.iter().filter(|b| **b == b'.').count() >= 2 {
            self.add(RULE, at, end + sign);
        }
        if is_one_of(plain, ATTRIBUTES) {
            self.add(ATTRIBUTE, at, end);
        }
        if rest.get(sign) == Some(&b'*') && matches!(rest.get(sign + 1), Some(b')') | None) {
            self.add(PRESENCE, at, end + sign + 1);
        } else if let Some(close) = memchr::memmem::find(&rest[..rest.len().min(64)], b"*)")
            && rest[sign..close].iter().all(|b| is_word(*b))
            && is_one_of(
                plain,
                &[b"password", b"userpassword", b"unicodepwd", b"sambantpassword", b"pass", b"pwd"],
            )
        {
            self.add(SUBSTRING, at, end + close + 1);
        }
        true
    }
}

/// Attributes whose names are no words of a language.
const DIRECTORY_ATTRIBUTES: &[&[u8]] = words!("ldap", "directory-attributes");

/// `*()|&'`: at least the star, both parentheses and two operators, and nothing that has a meaning.
fn is_signs(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let has = |b: u8| text.contains(&b);
    (5..=16).contains(&text.len())
        && text.iter().all(|b| b"*()|&!='\"\\/#;-".contains(b))
        && has(b'*')
        && has(b'(')
        && has(b')')
        && has(b'|')
        && has(b'&')
}

/// Each parenthesis that closes was opened before, and none stays open.
fn is_balanced(text: &[u8]) -> bool {
    let step = |depth: u32, at: usize| match text[at] {
        b'(' => Some(depth + 1),
        _ => depth.checked_sub(1),
    };
    memchr::memchr2_iter(b'(', b')', text).try_fold(0, step) == Some(0)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Filter {
    Operator,
    Comparison,
}

/// Attributes of RFC 4519, RFC 2798, RFC 2307 and Active Directory that logins and searches use.
const ATTRIBUTES: &[&[u8]] = words!("ldap", "attributes");

const HINTS: &[Hint] = hints!("ldap", "gate");

#[cfg(test)]
mod tests {
    use crate::Class::Ldap;
    use crate::Place;
    use crate::detectors::testing::{blocks, blocks_at, look, passes, passes_at};

    #[test]
    fn break_outs() {
        blocks(Ldap, "*)(uid=*))(|(uid=*", "break-out star-close presence");
        blocks(Ldap, "admin)(&(1=1", "break-out");
        blocks(Ldap, "x)(cn=))\0", "break-out");
        blocks(Ldap, "admin*)((|userPassword=*)", "break-out star-close");
        blocks(Ldap, "a)(!(&(b=c)", "break-out operator");
        blocks(Ldap, "*))%00", "star-close nul");
        blocks(Ldap, "(&(objectClass=user)(uid=*))", "operator whole attribute");
        blocks(Ldap, "(password=X*)", "substring attribute whole");
        blocks(Ldap, "*(|(mail=*))", "operator attribute presence");
    }

    #[test]
    fn matching_rules() {
        blocks(Ldap, "userPassword:2.5.13.18:=\\41", "rule attribute");
        blocks(Ldap, "uid:dn:2.5.13.5:=admin", "rule attribute");
        blocks(Ldap, "the words before userPassword:2.5.13.18:=x", "rule");
        passes(Ldap, "ratio:1.2.3:=x");
        passes(Ldap, "let x:10.0.0.1:=y");
    }

    #[test]
    fn signs_and_names() {
        blocks(Ldap, "*()|&'", "signs");
        blocks(Ldap, "(sn=administrator)", "named");
        passes_at(Ldap, Place::Query, "q", "(cn=John*)");
        passes(Ldap, "(*) & (|)");
    }

    #[test]
    fn filters_in_settings() {
        passes_at(Ldap, Place::Form, "ldap_filter", "(cn=*)");
        passes_at(Ldap, Place::Json, "login.userFilter", "(&(objectClass=person)(sAMAccountName={0}))");
        blocks_at(Ldap, Place::Form, "*)(uid=*))(|(uid=*", "break-out");
    }

    /// A whole filter breaks out of none: in fields for texts and code it is shown.
    #[test]
    fn filters_that_are_shown() {
        let filter = "(&(objectClass=person)(|(uid=jdoe)(mail=*@a.example)(userAccountControl:1.2.840.113556.1.4.803:=2)))";
        for name in ["code", "snippet", "comment", "text"] {
            passes_at(Ldap, Place::Json, name, filter);
        }
        for name in ["user", "q", "id", "name"] {
            let (have, is_blocked) = look(Ldap, Place::Json, name, filter.as_bytes());
            assert!(is_blocked, "{name}: {have}");
        }
        for name in ["code", "comment"] {
            for text in
                ["*)(uid=*))(|(uid=*", "(cn=x))(|(uid=*)", "x))(|(objectClass=*)(uid=x", "admin)(!(&(1=0"]
            {
                let (have, is_blocked) = look(Ldap, Place::Json, name, text.as_bytes());
                assert!(is_blocked, "{name}={text}: {have}");
            }
        }
    }

    #[test]
    fn ordinary() {
        passes(Ldap, "a smile :) (and another one)");
        passes(Ldap, "f(x)(y) = g(h(z))");
        passes(Ldap, "call(me)(maybe=1)");
        passes(Ldap, "if ((a & b) | (c = d)) return (x);");
        passes(Ldap, "1) apples 2) pears (green) 3) plums");
        blocks(Ldap, "*)(&", "star-close operator break-out");
        passes(Ldap, "(a) (&");
        passes(Ldap, "(555) 123-4567");
        passes(Ldap, "(*) required field");
        passes(Ldap, "(cn=John*)");
        passes(Ldap, "Smith (cn=common name) and others");
    }
}
