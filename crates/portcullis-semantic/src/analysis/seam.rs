//! A backslash at the end of a field escapes the quote after it, so that the string goes on to the quote of
//! the next field, and what stands there is read as SQL: `name=\` and `password= or id-- -`. Neither of the
//! two fields shows that by itself.

use super::Analysis;
use crate::detectors::protocol::{self, WORK_LIMIT};
use crate::{ByteGroups, Class, Detectors, Location, Place};

/// Fields of a message that may join with the next one.
#[derive(Debug, Default)]
pub(super) struct Seam {
    /// A field ends in a backslash.
    is_open: bool,
    /// Fields before it that may go on after a string.
    tails: Vec<Tail>,
    /// Bytes of their values.
    bytes: usize,
    /// There were more of them.
    is_full: bool,
}

/// A field's place, name and value.
type Tail = (Place, Box<[u8]>, Box<[u8]>);

/// Bytes of such fields that are kept. Where there are more and a backslash follows, the message is as one
/// for which the allowance of work does not suffice.
const TAIL_BYTES_MAX: usize = 64 << 10;

impl Seam {
    pub fn clear(&mut self) {
        self.is_open = false;
        self.tails.clear();
        self.bytes = 0;
        self.is_full = false;
    }
}

impl Analysis {
    /// Looks at `bytes` as they are read where another field of the message ends in a backslash.
    pub(super) fn across(
        &mut self,
        detectors: &Detectors,
        location: Location<'_>,
        bytes: &[u8],
        groups: ByteGroups,
    ) {
        // Without a backslash, and without a byte of a comment or a NUL after a semicolon, a value is
        // neither side of a seam.
        const TELLING: ByteGroups = ByteGroups::of(b"\\#-/;");
        let is_field = matches!(
            location.place,
            Place::Query | Place::Form | Place::MultipartField | Place::Json | Place::XmlText | Place::Cookie
        );
        if !is_field || !groups.intersects(TELLING) {
            return;
        }
        if ends_in_backslash(bytes) && !std::mem::replace(&mut self.seam.is_open, true) {
            for (place, name, tail) in std::mem::take(&mut self.seam.tails) {
                self.after_string(detectors, Location::new(place, &name), &tail);
            }
            if self.seam.is_full {
                self.note(detectors, location, protocol::KINDS, WORK_LIMIT, bytes);
            }
        }
        if !is_tail(bytes) {
            return;
        }
        if self.seam.is_open {
            self.after_string(detectors, location, bytes);
        } else if self.seam.bytes + bytes.len() <= TAIL_BYTES_MAX {
            self.seam.bytes += bytes.len() + location.name.len();
            self.seam.tails.push((location.place, location.name.into(), bytes.into()));
        } else {
            self.seam.is_full = true;
        }
    }

    fn after_string(&mut self, detectors: &Detectors, location: Location<'_>, tail: &[u8]) {
        // What stands before the quote is the string.
        let text = [b"x'", tail].concat();
        let before = self.values_len();
        self.look_alone(detectors, location, &text, ByteGroups::of(&text));
        let others: Vec<Class> = Class::ALL.iter().copied().filter(|class| *class != Class::Sqli).collect();
        self.excuse_from(before, &others, "found-in-part");
    }
}

/// An odd number of them: the last one escapes what follows.
fn ends_in_backslash(bytes: &[u8]) -> bool {
    bytes.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
}

/// An operator or a word begins it, and a comment cuts off what the statement has after it.
fn is_tail(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let begins = match text {
        [b'-', b'-', ..] | [] => false,
        [
            b'|' | b'&' | b'=' | b'<' | b'>' | b'^' | b'%' | b'+' | b'-' | b'*' | b'/' | b')' | b',' | b';',
            ..,
        ] => true,
        [b, ..] => b.is_ascii_alphabetic(),
    };
    let rest = text.get(1..).unwrap_or_default();
    begins
        && (memchr::memchr(b'#', rest).is_some()
            || memchr::memmem::find(rest, b"--").is_some()
            || memchr::memmem::find(rest, b"/*").is_some()
            || memchr::memmem::find(rest, b";\0").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    fn blocks(target: &str, form: &str) -> bool {
        let detectors = Detectors::new();
        let mut analysis = Analysis::new();
        analysis.request_head(&detectors, b"POST", target.as_bytes(), std::iter::empty());
        analysis.request_body(&detectors, b"application/x-www-form-urlencoded", form.as_bytes());
        let worst = analysis.worst(&detectors, Level::Balanced);
        worst.is_some_and(|worst| worst.blocks(Level::Balanced))
    }

    /// In whatever order the fields stand, with others between them and before them.
    #[test]
    fn a_backslash_and_the_rest() {
        for tail in ["-0%23", "+is+not+null%23", "*1%23", "%3Cname--+-"] {
            assert!(!blocks("/", &format!("user=x&key={tail}")), "{tail}");
            let others = (0..200).map(|n| format!("a{n}=b&")).collect::<String>();
            assert!(blocks("/", &format!("user=x\\&key={tail}")), "{tail}");
            assert!(blocks("/", &format!("key={tail}&user=\\")), "{tail}");
            assert!(blocks(&format!("/?key={tail}"), &format!("{others}user=x%5c")), "{tail}");
            assert!(blocks("/", &format!("user=\\\\\\&{others}key={tail}")), "{tail}");
            for decoy in ["a=b--c&".repeat(400), format!("a=b--{}&", "c".repeat(70_000))] {
                assert!(!blocks("/", &format!("{decoy}key={tail}")), "{tail}");
                assert!(blocks("/", &format!("{decoy}key={tail}&user=\\")), "{tail}");
            }
        }
        for form in [
            "user=x\\\\&key=-0%23",
            "dir=C:\\data\\&note=see+also+the+manual+--+and+the+list",
            "dir=C:\\data\\&title=Issue+%23+5",
            "dir=C:\\data\\&text=-+one+--+or+two%0A-+three",
            "path=\\\\srv\\share\\&comment=and+then+%23hashtag",
        ] {
            assert!(!blocks("/", form), "{form}");
        }
    }
}
