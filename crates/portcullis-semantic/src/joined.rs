//! Parameters of one name, as ASP and others join them: with commas. A payload may be parted over several of
//! them, with a comment around each comma.

use std::collections::BTreeMap;

use memchr::memmem;
use portcullis_http::body::{Arg, BodySink, Limits, parse_query};

use crate::{Analysis, Detectors, Location, Place};

/// By name in lower case: the values, joined, and how many there are.
#[derive(Default)]
struct Joined(BTreeMap<Vec<u8>, (Vec<u8>, usize)>);

impl BodySink for Joined {
    fn arg(&mut self, arg: Arg<'_>) {
        let (value, count) = self.0.entry(arg.name.to_ascii_lowercase()).or_default();
        if *count > 0 {
            value.push(b',');
        }
        value.extend_from_slice(arg.value);
        *count += 1;
    }
}

/// As many arguments as there are: the length of what has them bounds them, and each costs work.
pub(crate) fn all_arguments() -> Limits {
    Limits { arguments_max: usize::MAX, ..Limits::default() }
}

impl Analysis {
    /// Looks at parameters that come several times in `pairs`, a query or a form, as one value.
    pub(crate) fn joined(&mut self, detectors: &Detectors, place: Place, pairs: &[u8]) {
        // Without a comment the comma is one of the statement's, and each value tells what it is.
        let is_star = |at: usize| pairs[at] == b'*' || matches!(pairs[at + 1..], [b'2', b'a' | b'A', ..]);
        let has_comment = || memchr::memchr2_iter(b'*', b'%', pairs).any(is_star);
        if memchr::memchr(b'&', pairs).is_none() || !has_comment() || !self.work.charge(pairs.len()) {
            return;
        }
        let mut joined = Joined::default();
        parse_query(pairs, b'&', &all_arguments(), &mut joined);
        for (name, (value, count)) in &joined.0 {
            if *count > 1 && memmem::find(value, b"*").is_some() {
                self.look(detectors, Location::new(place, name), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn parts_of_a_payload() {
        let detectors = Detectors::new();
        let blocks = |pairs: &str| {
            let mut analysis = Analysis::new();
            let target = format!("/?{pairs}");
            analysis.request_head(&detectors, b"GET", target.as_bytes(), std::iter::empty());
            let query = analysis
                .worst(&detectors, Level::Balanced)
                .is_some_and(|worst| worst.blocks(Level::Balanced));
            analysis.clear();
            analysis.request_body(&detectors, b"application/x-www-form-urlencoded", pairs.as_bytes());
            let form = analysis
                .worst(&detectors, Level::Balanced)
                .is_some_and(|worst| worst.blocks(Level::Balanced));
            (query, form)
        };
        let parted = "id=1/*&id=*/union/*&ID=*/select/*&id=*/password/*&id=*/from/*&id=*/users";
        assert_eq!(blocks(parted), (true, true));
        assert_eq!(blocks(&parted.replace('*', "%2a")), (true, true));
        let late = "a=&".repeat(5_000) + "b=x'+UNION+SELECT+user,password+FROM+users--+-";
        assert_eq!(blocks(&late), (true, true));
        for honest in ["tag=a*&tag=b*&q=c", "type=*&type=image/*&type=video/*", "id=1&id=2&id=3"] {
            assert_eq!(blocks(honest), (false, false), "{honest}");
        }
    }
}
