//! Mode `both`: what the scores of the CRS add to those of the semantic detector.
//!
//! The CRS flags many honest requests, so its anomaly score decides nothing there; but where the semantic detector has a
//! suspicion of its own, rules of the CRS about the same kind of attack make it stronger.
//!
//! The two numbers are measured: with more, honest requests that speak of attacks pass the threshold (all points of a request
//! count, also those for other values); with less, nothing is gained.

use portcullis_types::Class;

/// What one critical rule of the CRS (5 points) about the same kind of attack adds to a score.
const WEIGHT: f32 = 0.5;
/// The most that the CRS adds, less than one finding of middling weight does.
const MOST: f32 = 1.0;

/// The score of the CRS that is about `class`.
fn crs_score(class: Class) -> Option<&'static [u8]> {
    Some(match class {
        Class::Sqli => b"sql_injection_score",
        Class::Xss => b"xss_score",
        Class::Path => b"lfi_score",
        Class::RemoteFile | Class::Ssrf => b"rfi_score",
        Class::Code => b"php_injection_score",
        Class::Command
        | Class::Template
        | Class::Deserialization
        | Class::NoSql
        | Class::Log4j
        | Class::Prototype => b"rce_score",
        Class::Crlf => b"http_violation_score",
        _ => return None,
    })
}

/// What the CRS and inspection agents add to a score of `class`; `number` reads a variable of the collection `TX`. The points
/// of agents are of no class.
pub(crate) fn evidence(class: Class, number: impl Fn(&[u8]) -> Option<i64>, agents: u32) -> f32 {
    let points =
        crs_score(class).and_then(number).unwrap_or(0).saturating_add(i64::from(agents)).clamp(0, 1_000);
    (points as f32 / 5.0 * WEIGHT).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_kind_of_attack_counts_and_only_so_far() {
        let sqli = |points: i64| move |name: &[u8]| (name == b"sql_injection_score").then_some(points);
        assert_eq!(evidence(Class::Sqli, sqli(0), 0), 0.0);
        assert_eq!(evidence(Class::Sqli, sqli(5), 0), WEIGHT);
        assert_eq!(evidence(Class::Sqli, sqli(500), 0), MOST);
        assert_eq!(evidence(Class::Xss, sqli(5), 0), 0.0);
        assert_eq!(evidence(Class::Xss, sqli(5), 5), WEIGHT, "of agents all count");
        assert_eq!(evidence(Class::Sqli, sqli(5), 5), MOST);
        assert_eq!(evidence(Class::Protocol, sqli(5), 0), 0.0);
    }
}
