//! Fields of setups: configuration documents, commands of steps, lists of blocked words.
//!
//! Administrators and developers fill them in. What stands in them is judged by its structure, too: each
//! caller says which.

use super::name::{has_word, is_of_body, last_part, words};
use crate::Location;

/// The field takes a document by which a machine or a service is set up: `compose`, `dockerfile`,
/// `nginx_config`, `user_data`.
pub(in crate::detectors) fn takes_configuration(location: Location<'_>) -> bool {
    const DOCUMENTS: &[&[u8]] = words!("purpose", "set-ups");
    let last = last_part(location.name);
    let is_user_data = || {
        let mut parts = words(last);
        parts.any(|word| word.eq_ignore_ascii_case(b"user"))
            && parts.next().is_some_and(|word| word.eq_ignore_ascii_case(b"data"))
    };
    is_of_body(location.place) && (has_word(last, DOCUMENTS) || is_user_data())
}

/// The field holds the command line of a step of a project, a job or a check: `build_command`, `cron`,
/// `healthcheck_cmd`. One that is called `command` and no more does not count: an attacker of a site that
/// runs commands would call it so.
pub(in crate::detectors) fn takes_step(location: Location<'_>) -> bool {
    const LINES: &[&[u8]] = &[b"command", b"cmd", b"commands", b"hook", b"script", b"args"];
    const STEPS: &[&[u8]] = words!("purpose", "steps");
    let last = last_part(location.name);
    is_of_body(location.place)
        && (has_word(last, LINES) && has_word(last, STEPS)
            || has_word(last, &[b"cron", b"cronjob", b"crontab"]))
}

/// The field lists words that texts may not have: `disallowed_keys`, `blocked_words`.
pub(in crate::detectors) fn lists_words(location: Location<'_>) -> bool {
    const LISTS: &[&[u8]] = words!("purpose", "word-lists");
    const WORDS: &[&[u8]] = &[
        b"keys",
        b"words",
        b"list",
        b"terms",
        b"patterns",
        b"phrases",
        b"blocklist",
        b"blacklist",
        b"denylist",
        b"stopwords",
    ];
    let last = last_part(location.name);
    is_of_body(location.place) && has_word(last, LISTS) && has_word(last, WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn at(name: &str) -> Location<'_> {
        Location::new(Place::Json, name.as_bytes())
    }

    #[test]
    fn names() {
        for name in
            ["compose", "docker_compose_raw", "nginx_config", "user_data", "spec.manifest", "startup_script"]
        {
            assert!(takes_configuration(at(name)), "{name}");
        }
        for name in ["id", "file", "username", "data", "configured_by", "host"] {
            assert!(!takes_configuration(at(name)), "{name}");
        }
        assert!(
            takes_step(at("build_command")) && takes_step(at("cron")) && takes_step(at("healthcheckCmd"))
        );
        assert!(!takes_step(at("command")) && !takes_step(at("cmd")) && !takes_step(at("build")));
        assert!(
            lists_words(at("disallowed_keys")) && !lists_words(at("keys")) && !lists_words(at("disallowed"))
        );
    }
}
