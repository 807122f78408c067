//! Events that only repeat an attack: the browser of a visitor sends the address of the page, and its
//! cookies, with each picture and style.

use portcullis_types::Place;

use crate::{AgentWord, Event, Finding};

impl Event {
    /// True if everything that was found stands in the Referer, and nothing of it was left out: no finding of
    /// an agent, and no refusal of the request as HTTP. A rule tells of one place where it matched: with
    /// matches, `target`, the target of the request, shows no sign of being an attack itself.
    pub fn is_only_in_referer(&self, target: &[u8]) -> bool {
        self.is_only_in(
            target,
            |found| found.place == Place::Header && found.name.eq_ignore_ascii_case("referer"),
            |collection, name| is_header(collection, name, "referer"),
        )
    }

    /// The same of cookies.
    pub fn is_only_in_cookies(&self, target: &[u8]) -> bool {
        let is_of_cookies = |found: &Finding| {
            found.place == Place::Cookie
                || found.place == Place::Header && found.name.eq_ignore_ascii_case("cookie")
        };
        self.is_only_in(target, is_of_cookies, |collection, name| {
            collection.eq_ignore_ascii_case("REQUEST_COOKIES") || is_header(collection, name, "cookie")
        })
    }

    /// True if something was found, all of it in one place, and nothing of it was left out. `is_there` tells
    /// so of the collection and the name that a rule matched in.
    fn is_only_in(
        &self,
        target: &[u8],
        is_found_there: impl Fn(&Finding) -> bool,
        is_there: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let mut matches = self.matches.iter().filter(|rule| !rule.target.starts_with("TX:"));
        (self.matches.is_empty() || is_plain(target))
            && !(self.findings.is_empty() && self.matches.is_empty())
            && self.findings.iter().all(is_found_there)
            && matches.all(|rule| rule.target.split_once(':').is_some_and(|(of, name)| is_there(of, name)))
            && [self.findings_omitted, self.findings_below, self.findings_suppressed, self.matches_omitted]
                == [0; 4]
            && self.refusal.is_none()
            && !self.agents.iter().any(AgentWord::is_finding)
    }
}

fn is_header(collection: &str, name: &str, wanted: &str) -> bool {
    collection.eq_ignore_ascii_case("REQUEST_HEADERS") && name.eq_ignore_ascii_case(wanted)
}

/// Such a target has a picture or style, with a version behind it.
fn is_plain(target: &[u8]) -> bool {
    target.iter().all(|b| b.is_ascii_alphanumeric() || b"/_.-~?=&".contains(b))
        && !target.windows(2).any(|two| two == b"..")
}
