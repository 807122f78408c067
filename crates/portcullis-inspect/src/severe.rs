//! Values for which no profile excludes a rule: what is in them acts wherever it is read.
//!
//! A rule of the CRS looks for many things at once: the one that finds addresses of the machine itself also
//! finds the services that hand out a cloud's credentials. Who excludes it for the former, in a field that is
//! made for them, would open the field for the latter where rules alone run.

use std::sync::{LazyLock, Mutex, PoisonError};

use portcullis_semantic::{Analysis, Class, Detectors, Level, Location, Place, detectors};

/// Lookups of log4j, serialised objects, addresses, those in entities of XML, too.
static DETECTORS: LazyLock<Detectors> = LazyLock::new(|| {
    let list: Vec<Box<dyn portcullis_semantic::Detector>> = vec![
        Box::new(detectors::log4j::Log4j),
        Box::new(detectors::deserialization::Deserialization::new()),
        Box::new(detectors::ssrf::Ssrf::new()),
        Box::new(detectors::xxe::Xxe),
    ];
    // Their tables of weights are part of the program, and tested to be some.
    Detectors::of(list).unwrap_or_else(|(class, error)| unreachable!("{class:?}: {}", error.message))
});

/// Kinds of addresses that a field for other services of one's own may be opened for. What hides an address,
/// or has a service speak for another one, is none.
const PLAIN_ADDRESSES: [&str; 7] = [
    "ssrf.internal-name",
    "ssrf.local-page",
    "ssrf.loopback",
    "ssrf.port",
    "ssrf.private",
    "ssrf.service-port",
    "ssrf.short-name",
];

/// True if the value, as it is or in a form that decoding makes of it, has something in it that no profile
/// opens a field for.
fn is_severe(name: &[u8], value: &[u8]) -> bool {
    let mut analysis = Analysis::new();
    analysis.value(&DETECTORS, Location::new(Place::Form, name), value);
    let is_plain = |value: u32| {
        let mut found = analysis.findings().iter().filter(|found| found.value == value);
        found.all(|found| found.is_suppressed() || PLAIN_ADDRESSES.contains(&found.kind.id))
    };
    analysis
        .scores(&DETECTORS)
        .filter(|score| score.blocks(Level::Balanced))
        .any(|score| score.class != Class::Ssrf || !is_plain(score.value))
}

/// The answers for the values of a request: many rules match in the same one.
#[derive(Debug, Default)]
pub(crate) struct Severity {
    last: Mutex<Option<(Box<[u8]>, bool)>>,
}

impl Severity {
    /// See [`is_severe`]; by the text of the last value, so that the work is done once for all rules.
    pub(crate) fn is_severe(&self, name: &[u8], value: &[u8]) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((text, is_severe)) if **text == *value => *is_severe,
            _ => {
                let found = is_severe(name, value);
                *last = Some((value.into(), found));
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_wherever_it_is_read_is_severe() {
        for value in [
            "http://169.254.169.254/latest/meta-data/",
            "http://2852039166/latest/meta-data/iam/",
            "http://0x7f000001/",
            "gopher://127.0.0.1:6379/_INFO",
            "http://metadata.google.internal/computeMetadata/v1/",
            "see http://[::ffff:a9fe:a9fe]/latest/ and http://localhost/",
            "http%3A%2F%2F169.254.169.254%2Flatest%2F",
            "<!DOCTYPE a PUBLIC \"-//A//B//C\" \"http://169.254.169.254/\"><a/>",
            "${jndi:ldap://a.example/x}",
            "O:8:\"Evil\\Obj\":1:{s:1:\"a\";s:2:\"id\";}",
        ] {
            assert!(is_severe(b"url", value.as_bytes()), "{value}");
        }
        for value in [
            "http://localhost:9090",
            "http://127.0.0.1:3000/x",
            "http://192.168.1.20:8123/hook",
            "cat /etc/passwd; id",
            "SELECT 1 UNION SELECT 2",
            "<script>alert(1)</script>",
            "",
        ] {
            assert!(!is_severe(b"url", value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn an_answer_is_for_its_value_only() {
        let all = Severity::default();
        for _ in 0..2 {
            assert!(all.is_severe(b"url", b"http://169.254.169.254/latest/meta-data/"));
            assert!(!all.is_severe(b"url", b"http://127.0.0.1/"));
        }
    }
}
