//! Events that only repeat an attack: the browser of a visitor sends the address of the page with each
//! picture and style of it.

use portcullis_types::Place;

use crate::Event;

impl Event {
    /// True if everything that was found stands in the Referer, and nothing of it was left out. A rule tells
    /// of one place where it matched: with matches, `target`, the target of the request, shows no sign of
    /// being an attack itself.
    pub fn is_only_in_referer(&self, target: &[u8]) -> bool {
        let of_referer = |target: &str| {
            let name = target.split_once(':').filter(|(of, _)| of.eq_ignore_ascii_case("REQUEST_HEADERS"));
            name.is_some_and(|(_, name)| name.eq_ignore_ascii_case("referer"))
        };
        let mut findings = self.findings.iter();
        let mut matches = self.matches.iter().filter(|rule| !rule.target.starts_with("TX:"));
        (self.matches.is_empty() || is_plain(target))
            && !(self.findings.is_empty() && self.matches.is_empty())
            && findings
                .all(|found| found.place == Place::Header && found.name.eq_ignore_ascii_case("referer"))
            && matches.all(|rule| of_referer(&rule.target))
            && self.findings_omitted + self.findings_below + self.matches_omitted == 0
    }
}

/// Such a target has a picture or style, with a version behind it.
fn is_plain(target: &[u8]) -> bool {
    target.iter().all(|b| b.is_ascii_alphanumeric() || b"/_.-~?=&".contains(b))
        && !target.windows(2).any(|two| two == b"..")
}
