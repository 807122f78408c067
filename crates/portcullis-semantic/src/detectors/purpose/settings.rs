//! Fields of settings: what administrators and developers enter where an application is set up.
//!
//! All of them are fields of bodies. What stands in them is judged by its structure, too: each reader of
//! these names says which.

use super::{has_word, is_of_body, last_part, words};
use crate::{Location, Place};

/// The field is for the address of a service: `url`, `server_url`, `endpoint`, `http_proxy`, `healthcheck`.
/// Fields of what a server is to load and show (`image_url`, `import_url`, `avatar`) are none.
pub(in crate::detectors) fn names_address(location: Location<'_>) -> bool {
    const ADDRESSES: &[&[u8]] = &[
        b"url",
        b"uri",
        b"endpoint",
        b"endpoints",
        b"address",
        b"proxy",
        b"healthcheck",
        b"health",
        b"link",
        b"href",
        b"target",
        b"targets",
        b"upstream",
        b"instance",
        b"baseurl",
        b"apiurl",
    ];
    const LOADED: &[&[u8]] = &[
        b"image",
        b"img",
        b"images",
        b"avatar",
        b"logo",
        b"icon",
        b"picture",
        b"photo",
        b"thumbnail",
        b"cover",
        b"file",
        b"download",
        b"import",
        b"fetch",
        b"src",
        b"source",
        b"preview",
        b"pdf",
        b"screenshot",
        b"document",
        b"feed",
        b"remote",
        b"load",
        b"media",
        b"video",
        b"stock",
        b"redirect",
        b"attachment",
        b"profile",
        b"export",
        b"template",
        b"xml",
        b"json",
        b"rss",
    ];
    let last = last_part(location.name);
    is_of_body(location.place) && has_word(last, ADDRESSES) && !has_word(last, LOADED)
}

/// The parameter of a page says which server the page is about: a database's console has it in its addresses.
pub(in crate::detectors) fn names_server(location: Location<'_>) -> bool {
    const SERVERS: &[&[u8]] =
        &[b"server", b"dbhost", b"db_host", b"dbserver", b"pgsql", b"mssql", b"mongo", b"sqlite"];
    location.place == Place::Query && SERVERS.contains(&location.name)
}

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

/// The field says where a file of an installation lies: `config_path`, `log_file`, `ssl_cert`, `volumes`.
pub(in crate::detectors) fn names_own_file(location: Location<'_>) -> bool {
    const FILES: &[&[u8]] = &[b"path", b"file", b"filename", b"location"];
    const OWNERS: &[&[u8]] = &[
        b"config",
        b"conf",
        b"cfg",
        b"configuration",
        b"log",
        b"logs",
        b"cert",
        b"certificate",
        b"ca",
        b"key",
        b"ssl",
        b"tls",
        b"socket",
        b"sock",
        b"pid",
        b"data",
        b"backup",
        b"storage",
        b"install",
        b"binary",
        b"bin",
        b"env",
        b"output",
        b"export",
        b"db",
        b"database",
        b"repo",
        b"repository",
        b"upload",
        b"uploads",
        b"cache",
        b"temp",
        b"tmp",
        b"server",
        b"web",
        b"document",
        b"media",
        b"library",
        b"mount",
        b"host",
        b"container",
        b"local",
    ];
    const WHOLE: &[&[u8]] = &[
        b"logfile",
        b"pidfile",
        b"volume",
        b"volumes",
        b"mount",
        b"mounts",
        b"bind",
        b"binds",
        b"socket",
        b"cert",
        b"certificate",
        b"keyfile",
        b"certfile",
        b"dir",
        b"directory",
        b"folder",
        b"root",
        b"workdir",
    ];
    let last = last_part(location.name);
    // `log.file.path`, as collectors of logs write it.
    let above = location.name[..location.name.len() - last.len()].strip_suffix(b".file.");
    let is_of_file = || last == b"path" && above.is_some_and(|above| has_word(last_part(above), OWNERS));
    is_of_body(location.place)
        && (has_word(last, WHOLE) || has_word(last, FILES) && has_word(last, OWNERS) || is_of_file())
}

/// The field is called `path` and no more: where something lies on the machine, or below a folder of the
/// site.
pub(in crate::detectors) fn is_bare_path(location: Location<'_>) -> bool {
    is_of_body(location.place) && last_part(location.name).eq_ignore_ascii_case(b"path")
}

/// The field is a line that people write over a text: `title`, `subject`.
pub(in crate::detectors) fn takes_title(location: Location<'_>) -> bool {
    const TITLES: &[&[u8]] = &[b"title", b"subject", b"headline", b"heading", b"caption"];
    is_of_body(location.place) && has_word(last_part(location.name), TITLES)
}

/// The field is for markup that the site's pages show as it is: `html`, `custom_markup`, `body_html`,
/// `template`.
pub(in crate::detectors) fn takes_markup(location: Location<'_>) -> bool {
    is_of_body(location.place)
        && has_word(last_part(location.name), &[b"html", b"markup", b"embed", b"template", b"tpl"])
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

/// The field is for a secret that nobody types: a token, a key, a signature. Any signs may stand in it.
pub(super) fn takes_secret(location: Location<'_>) -> bool {
    const SECRETS: &[&[u8]] = &[
        b"secret",
        b"secrets",
        b"token",
        b"nonce",
        b"salt",
        b"signature",
        b"credential",
        b"credentials",
        b"apikey",
        b"passcode",
        b"passkey",
        b"hmac",
    ];
    const KEYS: &[&[u8]] =
        &[b"api", b"access", b"private", b"app", b"auth", b"license", b"encryption", b"signing", b"master"];
    let last = last_part(location.name);
    is_of_body(location.place)
        && (has_word(last, SECRETS) || has_word(last, &[b"key"]) && has_word(last, KEYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Location<'_> {
        Location::new(Place::Json, name.as_bytes())
    }

    #[test]
    fn names() {
        for name in [
            "url",
            "server_url",
            "settings.endpoint",
            "http_proxy",
            "hostUrl",
            "health_check_url",
            "hooks[url]",
        ] {
            assert!(names_address(at(name)), "{name}");
            assert!(!names_address(Location::new(Place::Query, name.as_bytes())), "{name}");
        }
        for name in
            ["imageUrl", "avatar_url", "import_url", "source_url", "q", "urls_total", "redirect_url", "page"]
        {
            assert!(!names_address(at(name)), "{name}");
        }
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
            names_own_file(at("config_path"))
                && names_own_file(at("log_file"))
                && names_own_file(at("volumes"))
        );
        assert!(
            names_own_file(at("log.file.path"))
                && !names_own_file(at("x.file.path"))
                && !names_own_file(at("path"))
                && !names_own_file(at("file"))
                && !names_own_file(at("filename"))
        );
        assert!(
            lists_words(at("disallowed_keys")) && !lists_words(at("keys")) && !lists_words(at("disallowed"))
        );
        assert!(takes_secret(at("api_secret")) && takes_secret(at("apiKey")) && !takes_secret(at("key")));
    }
}
