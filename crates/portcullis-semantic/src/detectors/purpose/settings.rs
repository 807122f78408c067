//! Fields of set-ups: configuration documents, commands of steps, lists of blocked words.
//!
//! Administrators and developers fill them in. What stands in them is judged by its structure, too: each
//! caller says which.

use super::name::{has_word, is_of_body, last_part, words};
use crate::Location;

/// The field takes a document by which a machine or a service is set up: `compose`, `dockerfile`,
/// `nginx_config`, `user_data`.
pub(in crate::detectors) fn takes_configuration(location: Location<'_>) -> bool {
    const DOCUMENTS: &[&[u8]] = &[
        b"compose",
        b"dockerfile",
        b"containerfile",
        b"yaml",
        b"yml",
        b"toml",
        b"ini",
        b"conf",
        b"cfg",
        b"config",
        b"configuration",
        b"manifest",
        b"manifests",
        b"playbook",
        b"pipeline",
        b"workflow",
        b"jenkinsfile",
        b"makefile",
        b"nginx",
        b"apache",
        b"htaccess",
        b"caddyfile",
        b"caddy",
        b"haproxy",
        b"traefik",
        b"vhost",
        b"unit",
        b"systemd",
        b"supervisor",
        b"crontab",
        b"cloudinit",
        b"dotenv",
        b"env",
        b"environment",
        b"helm",
        b"terraform",
        b"hcl",
        b"kustomization",
        b"procfile",
        b"vagrantfile",
        b"ansible",
        b"script",
        b"userdata",
    ];
    let last = last_part(location.name);
    let is_user_data = || {
        let mut parts = words(last);
        parts.any(|word| word.eq_ignore_ascii_case(b"user"))
            && parts.next().is_some_and(|word| word.eq_ignore_ascii_case(b"data"))
    };
    is_of_body(location.place) && (has_word(last, DOCUMENTS) || is_user_data())
}

/// The field holds the command line of a step of a project, a job or a check: `build_command`, `cron`,
/// `healthcheck_cmd`. One that is called `command` and no more is none: whoever attacks a site that runs
/// commands calls it so.
pub(in crate::detectors) fn takes_step(location: Location<'_>) -> bool {
    const LINES: &[&[u8]] = &[b"command", b"cmd", b"commands", b"hook", b"script", b"args"];
    const STEPS: &[&[u8]] = &[
        b"build",
        b"start",
        b"startup",
        b"install",
        b"pre",
        b"post",
        b"run",
        b"deploy",
        b"update",
        b"health",
        b"healthcheck",
        b"test",
        b"release",
        b"init",
        b"migrate",
        b"lint",
        b"reload",
        b"restart",
        b"stop",
        b"dev",
        b"before",
        b"after",
        b"backup",
        b"worker",
        b"job",
        b"container",
        b"docker",
        b"check",
    ];
    let last = last_part(location.name);
    is_of_body(location.place)
        && (has_word(last, LINES) && has_word(last, STEPS)
            || has_word(last, &[b"cron", b"cronjob", b"crontab"]))
}

/// The field lists words that texts may not have: `disallowed_keys`, `blocked_words`.
pub(in crate::detectors) fn lists_words(location: Location<'_>) -> bool {
    const LISTS: &[&[u8]] = &[
        b"disallowed",
        b"blocked",
        b"blocklist",
        b"blacklist",
        b"denylist",
        b"banned",
        b"forbidden",
        b"bad",
        b"spam",
        b"moderation",
        b"stopwords",
        b"censored",
        b"filtered",
    ];
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
