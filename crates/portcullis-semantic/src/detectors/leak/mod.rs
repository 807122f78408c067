//! Leaks in responses: source code, stack traces, directory listings, messages of databases,
//! keys, the page of a web shell.
//!
//! What it does: looks for the marks that products write, most of them with a second one or a structure
//! after them, and for source code of a server's language that was sent instead of run. A page *about* them
//! quotes: in a text of many words, what stands in an element for code, in a heading or in the middle of a
//! sentence is loose.
//!
//! Why it is dangerous: it tells an attacker the next step, or is what the attacker came for.
//!
//! References: <https://owasp.org/www-community/Improper_Error_Handling>,
//! <https://cwe.mitre.org/data/definitions/200.html>.

mod page;
mod shapes;
#[cfg(test)]
mod tests;

use memchr::memmem;
use portcullis_types::Span;

use self::page::Page;
use self::shapes::{china_chopper, is_frame, is_identity, is_key, line_around, passwd_lines, source};
use super::marks::{Marks, rows};
use crate::{Class, Detector, Found, Input, KindId, Place, Profile, kinds};

kinds! {
    reference "https://cwe.mitre.org/data/definitions/200.html";
    SQL_ERROR "leak.sql-error" Error Quotable "a database's error message";
    STACK_TRACE "leak.stack-trace" Error Quotable
        "a stack trace, or an error message with paths of the server";
    LISTING "leak.listing" Error Quotable "the listing of a directory";
    SECRET "leak.secret" Critical Quotable "a private key, or a file of the system or of its settings";
    WEB_SHELL "leak.web-shell" Critical Quotable "the page of a web shell, or the output of a command in it";
    SOURCE "leak.source" Error Quotable "source code that the server should have run";
}

/// How far after a mark the second one may stand.
const PAIR_BYTES_MAX: usize = 2_048;

/// Second marks that are looked for in one body.
const PAIRS_MAX: usize = 256;

/// Bytes between two lines of a stack.
const FRAME_GAP_BYTES_MAX: usize = 64;

/// Source code is looked for where a document begins; further on it is an example in a page.
const SOURCE_BYTES_MAX: usize = 512;

/// Lines of a list of users without which it may be an example in an article.
const USERS_MIN: usize = 5;

/// The condition that makes a mark more than a word.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// Another text near after it; empty for none.
    Second(&'static [u8]),
    /// A key of some length.
    Key,
    /// A list of users.
    Users,
    /// The output of `id`.
    Identity,
    /// A line of a stack, with another one before it.
    Frame,
}

/// See the module.
#[derive(Debug)]
pub struct Leak {
    marks: Marks<(KindId, Proof)>,
}

impl Leak {
    /// The detector with its data.
    pub fn new() -> Leak {
        let about = |[mark, group, second]: [&'static str; 3]| {
            let second = Proof::Second(second.as_bytes());
            let about = match group {
                "sql" => (SQL_ERROR, second),
                "trace" => (STACK_TRACE, second),
                "frame" => (STACK_TRACE, Proof::Frame),
                "listing" => (LISTING, second),
                "secret" => (SECRET, second),
                "key" => (SECRET, Proof::Key),
                "users" => (SECRET, Proof::Users),
                "identity" => (WEB_SHELL, Proof::Identity),
                _ => (WEB_SHELL, second),
            };
            (mark, about)
        };
        Leak { marks: Marks::new(rows(include_str!("../../../data/leak-marks.tsv")).map(about), false) }
    }
}

impl Default for Leak {
    fn default() -> Self {
        Leak::new()
    }
}

static PROFILE: Profile = Profile::new(Class::Leak, KINDS).weights(include_str!("../../../weights/leak.tsv"));

impl Detector for Leak {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(place, Place::ResponseBody | Place::ResponseHeader)
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let text = input.text;
        let mut page = Page::new(text);
        let mut pairs = 0;
        let mut frame_before = None;
        for hit in self.marks.find(text) {
            let &(kind, proof) = hit.about;
            let mut is_sure = true;
            let is_proved = match proof {
                Proof::Second(b"") => true,
                Proof::Second(second) => {
                    pairs += 1;
                    let window = &text[hit.end..text.len().min(hit.end + PAIR_BYTES_MAX)];
                    pairs <= PAIRS_MAX && memmem::find(window, second).is_some()
                }
                Proof::Key => is_key(&text[hit.end..]),
                Proof::Users => {
                    let lines = passwd_lines(&text[hit.start..]);
                    is_sure = lines >= USERS_MIN || !page.is_article();
                    lines > 0
                }
                Proof::Identity => {
                    is_sure = !page.is_article();
                    is_identity(text, hit.start)
                }
                Proof::Frame => {
                    let line = line_around(text, hit.start);
                    is_frame(line.of(text)) && {
                        let end = frame_before.replace(line.end as usize);
                        end.is_some_and(|end| (line.start as usize).saturating_sub(end) < FRAME_GAP_BYTES_MAX)
                            && end != Some(line.end as usize)
                    }
                }
            };
            if !is_proved {
                continue;
            }
            let span = Span::new(hit.start, hit.end);
            match is_sure && !page.quotes(hit.start) {
                true => found.add(kind, span),
                false => found.mention(kind, span),
            }
        }
        if input.location.place == Place::ResponseBody {
            if let Some(at) = source(&text[..text.len().min(SOURCE_BYTES_MAX)]) {
                found.add(SOURCE, Span::new(at, text.len().min(at + 64)));
            }
            if china_chopper(text) {
                found.add(WEB_SHELL, Span::new(0, 3));
            }
        }
    }
}
