//! Line ends in a value that go on as a mail's header or as commands of SMTP, IMAP or POP3.
//!
//! A web form that mails, or a web mailer, puts values between lines of those protocols. What gives an
//! injection away is the shape: a first line such as the field is for (an address, a subject, the name of a
//! mailbox), and after it a line that only a mail server would read. The same lines in the middle of a
//! longer text, a quoted mail, are loose.

use portcullis_types::Span;

use super::purpose;
use crate::{ByteGroups, Class, Detector, Found, Hint, Input, KindId, Layer, Place, Profile, kinds};

kinds! {
    reference "https://owasp.org/www-project-web-security-testing-guide/stable/4-Web_Application_Security_Testing/07-Input_Validation_Testing/10-Testing_for_IMAP_SMTP_Injection";
    ENVELOPE "mail.envelope" Critical Quotable
        "a line that names a sender or recipient to a mail server (MAIL FROM, RCPT TO)";
    SMTP "mail.smtp" Error Quotable "a line that is a command of SMTP";
    DATA "mail.data" Warning Quotable "the command after which a mail begins, or the dot that ends one";
    TAGGED "mail.tagged" Critical Quotable "a line that is a command of IMAP with its tag";
    RETRIEVE "mail.retrieve" Error Quotable "a line that is a command of POP3";
    SESSION "mail.session" Critical Quotable "several lines that are commands of a mail server";
    HEADER "mail.header" Critical Quotable "a line that adds a header field to a mail";
    HEADER_LINE "mail.header-line" Notice Quotable
        "a line like a header field of a mail, in a field that is for none";
    FIELD "mail.field" Warning Quotable "the value is for a mail: an address, or a field named so";
}

/// What is longer in Base64 is a document, or a whole mail.
const PACKED_BYTES_MAX: usize = 160;
/// Lines of a value that is not yet a quoted letter.
const SHORT_LINES: usize = 14;
/// A first line that is longer is a text's.
const FIRST_LINE_BYTES_MAX: usize = 120;

const HINTS: &[Hint] = hints!("mail", "gate");

/// RFC 5321, section 4.1.1: commands that are a whole line, or take a word.
const SMTP_COMMANDS: &[(&[u8], bool)] = &[
    (b"helo", true),
    (b"ehlo", true),
    (b"vrfy", true),
    (b"expn", true),
    (b"quit", false),
    (b"rset", false),
    (b"noop", false),
    (b"starttls", false),
    (b"auth", true),
];

/// RFC 9051, section 6, and what RFC 3501 had.
const IMAP_COMMANDS: &[&[u8]] = words!("mail", "imap-commands");

/// RFC 1939, section 5: commands whose argument is a message's number.
const POP_COMMANDS: &[&[u8]] = &[b"retr", b"dele", b"top"];

/// RFC 5322, section 3.6, and RFC 2045: fields that change where a mail goes or what is in it.
const FIELDS: &[&[u8]] = &[
    b"to",
    b"cc",
    b"bcc",
    b"from",
    b"sender",
    b"reply-to",
    b"subject",
    b"content-type",
    b"mime-version",
    b"content-transfer-encoding",
    b"return-path",
    b"disposition-notification-to",
];

/// Names of form fields that go into a mail's header.
const MAIL_NAMES: &[&[u8]] = words!("mail", "fields");

/// See the module.
#[derive(Debug)]
pub struct Mail;

static PROFILE: Profile = Profile::new(Class::Mail, KINDS).needs(ByteGroups::of(b"\n")).hints(HINTS);

impl Detector for Mail {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        place.is_value() && !matches!(place, Place::FileContent | Place::Text)
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        // Line ends that JSON or an escape made are as good as those that came; those of a whole document are
        // not.
        let is_document =
            text.len() > PACKED_BYTES_MAX && input.layers.iter().any(|layer| layer == Layer::Base64);
        if input.is_json || is_document {
            return;
        }
        let mut lines = Lines { text, at: 0 };
        let Some((_, first)) = lines.next() else { return };
        let first = first.trim_ascii();
        let is_address = is_address(first);
        // `mail.body`: what a mail says, or the form of it, goes into no header.
        let is_named = is_mail_name(input.location.name);
        let is_text = !is_address && is_named && purpose::takes_text(input.location);
        let is_field = is_address || is_named && !is_text;
        let lines_after = memchr::memchr_iter(b'\n', text).count();
        let fits = lines_after <= SHORT_LINES && first.len() <= FIRST_LINE_BYTES_MAX;
        let (mut commands, mut headers, mut last) = (0, 0, Span::new(0, 0));
        for (start, line) in lines {
            let Some(what) = classify(line) else { continue };
            let span = Span::new(start, start + line.len());
            // A header field counts where the value is for a mail; elsewhere many texts have lines like it.
            match what {
                HEADER => headers += 1,
                _ => (commands, last) = (commands + 1, span),
            }
            if what == HEADER && is_text {
                found.suppress(HEADER, span, "mail-texts");
            }
            match what {
                HEADER if !is_field => found.add(HEADER_LINE, span),
                _ if fits => found.add(what, span),
                _ => found.mention(what, span),
            }
        }
        if commands > 1 {
            match fits {
                true => found.add(SESSION, last),
                false => found.mention(SESSION, last),
            }
        }
        if fits && is_field && commands > 0 && headers == 0 {
            found.add(FIELD, Span::new(0, first.len()));
        }
    }
}

/// Lines with their offsets, whatever ends them: CR LF, LF or CR.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at > self.text.len() {
            return None;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let len = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let pair = rest[len..].starts_with(b"\r\n") || rest[len..].starts_with(b"\n\r");
        self.at = start + len + 1 + usize::from(pair);
        Some((start, &rest[..len]))
    }
}

/// The role of a line for a mail server.
fn classify(line: &[u8]) -> Option<KindId> {
    // All of these begin with a letter, but for the dot that ends a mail.
    if !line.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'.') {
        return None;
    }
    let line = line.trim_ascii_end();
    if line == b"." || line.eq_ignore_ascii_case(b"data") {
        return Some(DATA);
    }
    if has_address_after(line, b"mail from:") || has_address_after(line, b"rcpt to:") {
        return Some(ENVELOPE);
    }
    let colon = memchr::memchr(b':', line);
    if let Some(colon) = colon
        && FIELDS.iter().any(|field| line[..colon].eq_ignore_ascii_case(field))
    {
        return is_field_body(&line[..colon], line[colon + 1..].trim_ascii()).then_some(HEADER);
    }
    let mut words = line.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let first = words.next()?;
    let second = words.next();
    let count = || 1 + usize::from(second.is_some()) + words.clone().count();
    let upper = |word: &[u8]| !word.iter().any(u8::is_ascii_lowercase);
    if POP_COMMANDS.iter().any(|known| first.eq_ignore_ascii_case(known)) {
        let numbers = line[first.len()..].split(|b| *b == b' ').filter(|word| !word.is_empty());
        return (count() <= 3 && second.is_some() && numbers.into_iter().all(is_number)).then_some(RETRIEVE);
    }
    for (known, takes_word) in SMTP_COMMANDS {
        if first.eq_ignore_ascii_case(known) {
            let fits = if *takes_word { (2..=3).contains(&count()) } else { count() == 1 };
            return (fits && (upper(first) || !takes_word)).then_some(SMTP);
        }
    }
    // A tag may be any word, but clients make it of a letter and a number; a number alone counts the lines of
    // a list.
    let is_tag = (2..=12).contains(&first.len())
        && first[0].is_ascii_alphabetic()
        && first.iter().all(u8::is_ascii_alphanumeric)
        && first[first.len() - 1].is_ascii_digit();
    let command = second?;
    (is_tag && IMAP_COMMANDS.iter().any(|known| command.eq_ignore_ascii_case(known)) && count() <= 6)
        .then_some(TAGGED)
}

fn is_number(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit)
}

fn has_address_after(line: &[u8], command: &[u8]) -> bool {
    let Some((head, tail)) = line.split_at_checked(command.len()) else { return false };
    let tail = tail.trim_ascii();
    head.eq_ignore_ascii_case(command) && (tail.starts_with(b"<") || is_address(tail))
}

/// What a field of that name has after its colon.
fn is_field_body(name: &[u8], body: &[u8]) -> bool {
    // Of the fields, those without an address: Subject, Content-*, MIME-Version.
    let is_text = name.eq_ignore_ascii_case(b"subject")
        || memchr::memchr2(b'c', b'C', &name[..1]).is_some() && name.len() > 2;
    if is_text || name.eq_ignore_ascii_case(b"mime-version") {
        return !body.is_empty();
    }
    memchr::memchr(b'@', body).is_some()
}

/// One address of a mail, with a name before it or not: `a@b.example`, `A B <a@b.example>`.
fn is_address(text: &[u8]) -> bool {
    let text = text.trim_ascii().trim_ascii_end();
    // `From: Ann <a@b.example>` is a line of a whole mail.
    if memchr::memchr(b':', text).is_some() {
        return false;
    }
    let text = text.strip_suffix(b">").and_then(|inner| inner.rsplit(|b| *b == b'<').next()).unwrap_or(text);
    let Some(at) = memchr::memchr(b'@', text) else { return false };
    let (local, domain) = (&text[..at], &text[at + 1..]);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+');
    !local.is_empty() && !domain.is_empty() && local.iter().all(plain) && domain.iter().all(plain)
}

fn is_mail_name(name: &[u8]) -> bool {
    let mut words = name.split(|b| !b.is_ascii_alphabetic());
    words.any(|word| {
        MAIL_NAMES.iter().any(|known| word.eq_ignore_ascii_case(known))
            || word.to_ascii_lowercase().ends_with(b"mail")
    })
}

#[cfg(test)]
mod tests {
    use crate::{Analysis, Detectors, Level, Location, Place};

    fn blocks(name: &str, text: &str, level: Level) -> bool {
        let detectors = Detectors::of(vec![Box::new(super::Mail)]).unwrap();
        let mut analysis = Analysis::new();
        analysis.value(&detectors, Location::new(Place::Form, name.as_bytes()), text.as_bytes());
        analysis.worst(&detectors, level).is_some_and(|worst| worst.blocks(level))
    }

    #[test]
    fn injections() {
        for (name, text) in [
            ("email", "joe@a.example\r\nBcc: all@b.example"),
            ("q", "joe@a.example%0ACc:list@b.example%0ASubject:hi"),
            ("subject", "Hello\nContent-Type: text/html\n\n<b>x</b>"),
            ("q", "4791 BODY[HEADER]\r\nV100 CAPABILITY\r\nV101 FETCH 4791"),
            ("q", "am9lQGEuZXhhbXBsZQ0KQmNjOiBhbGxAYi5leGFtcGxl"),
            ("mail[reply_to]", "joe@a.example\r\nBcc: all@b.example"),
            ("mailbox", "INBOX\"\r\nZ900 RENAME INBOX ALL_YOUR\r\n"),
            ("q", "hi\r\n.\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA"),
            ("user", "joe\r\nquit\r\nrset"),
            ("id", "1\r\nDELE 1\r\nDELE 2\r\nquit"),
        ] {
            assert!(blocks(name, text, Level::Balanced), "{name}: {text}");
        }
    }

    #[test]
    fn ordinary_texts() {
        for (name, text) in [
            ("comment", "Hello,\nplease list the data.\nfrom: Berlin\nto: Paris\nThanks"),
            ("body", "On Monday you wrote:\n> From: joe@a.example\n> To: ann@b.example\nI agree."),
            ("text", "Forwarded mail\nFrom: joe@a.example\nTo: ann@b.example\nSubject: the plan\n\nHi Ann"),
            (
                "message",
                "From: Ann <ann@a.example>\r\nTo: Bob <bob@a.example>\r\nSubject: Re: order\r\n\r\n> text",
            ),
            ("emails", "joe@a.example\nann@b.example\n"),
            ("yaml", "to: prod\nfrom: stage\nsubject: none\n"),
            ("notes", "1 select a seat\n2 check the list\n3 store the data"),
            ("query", "status\nlist\n"),
            ("mail.body", "From: [name] <[email]>\nSubject: [subject]\n\n[message]"),
        ] {
            assert!(!blocks(name, text, Level::Strict), "{name}: {text}");
        }
    }
}
