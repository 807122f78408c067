//! Scanners: tools that say who they are, and requests for what was left behind: version control, secrets,
//! copies of scripts, dumps, consoles.
//!
//! What it does: compares the agent and the path of a request with a list of names. A name proves little
//! about intent, so a console that some publish is only context, a service that only its administrators
//! should reach blocks at `strict`; nobody publishes `.git/config`.
//!
//! Why it is dangerous: what is left behind tells passwords and source code, and a scan is the first step of
//! most attacks.
//!
//! References: <https://owasp.org/www-project-web-security-testing-guide/>, section 4.2.4.

mod names;

use memchr::memmem;
use portcullis_types::Span;

use crate::{Class, Detector, Found, Input, Place, Profile, kinds};
use names::{Group, Names};

kinds! {
    reference "https://owasp.org/www-project-web-security-testing-guide/latest/4-Web_Application_Security_Testing/02-Configuration_and_Deployment_Management_Testing/04-Review_Old_Backup_and_Unreferenced_Files_for_Sensitive_Information";
    AGENT "scanner.agent" Critical Active "a tool for attacks says its name";
    SURVEY "scanner.survey" Error Active "a tool that maps networks or tests sites says its name";
    LEFT_BEHIND "scanner.left-behind" Critical Active "asks for a file or folder that nobody publishes";
    PROBE "scanner.probe" Critical Active "asks for an address that is known for what it leaks or runs";
    EXPOSED "scanner.exposed" Error Active
        "asks for a service that only its machine and its administrators should reach";
    HIDDEN_SCRIPT "scanner.hidden-script" Critical Active
        "a script's extension, and after a sign that some servers drop another one";
    INTERNAL "scanner.internal-header" Critical Active
        "a header that the parts of an application send each other, and no client does";
    CONSOLE "scanner.console" Warning Active "asks for a console or a page of an administrator";
    ARCHIVE "scanner.archive" Critical Active "asks for an archive or a dump of the whole site";
    COPY "scanner.copy" Critical Active
        "asks for the copy of a script that an editor or an administrator left";
}

/// Bytes of a segment, and of an agent, that are looked at.
const NAME_BYTES_MAX: usize = 64;

/// Folders above an archive of a whole site; deeper ones hold downloads.
const ARCHIVE_DEPTH_MAX: usize = 2;

/// Bytes of a path that are looked at.
const PATH_BYTES_MAX: usize = 512;

/// Extensions of scripts and settings: a copy of one shows what the server would have run.
const SCRIPTS: &[&[u8]] = words!("scanner", "scripts");

/// See the module.
#[derive(Debug)]
pub struct Scanner {
    names: Names,
}

impl Scanner {
    /// The detector with its data.
    pub fn new() -> Scanner {
        Scanner { names: Names::new() }
    }

    fn agent(&self, text: &[u8], found: &mut Found<'_>) {
        for (span, is_attack) in self.names.agents(text) {
            // A name begins a word: `nuclei`, but not `pronuclei`.
            let start = span.start as usize;
            let begins = start == 0 || !text[start - 1].is_ascii_alphanumeric();
            if begins {
                found.add(if is_attack { AGENT } else { SURVEY }, span);
            }
        }
    }

    fn path(&self, path_as_sent: &[u8], found: &mut Found<'_>) {
        let mut buffer = [0; PATH_BYTES_MAX];
        let len = plain(&path_as_sent[..path_as_sent.len().min(PATH_BYTES_MAX)], &mut buffer);
        let path = &buffer[..len];
        let whole = Span::new(0, len);
        let mut segments = path
            .split(|&b| b == b'/')
            .filter(|segment| segment.len() >= 3 && segment.len() <= NAME_BYTES_MAX);
        let is_repository = is_repository(path);
        if !is_repository && segments.any(|segment| self.names.is_left_behind(segment) || is_history(segment))
        {
            found.add(LEFT_BEHIND, whole);
        }
        if self.is_copy(path) {
            found.add(COPY, whole);
        }
        if has_hidden_script(path_as_sent) {
            found.add(HIDDEN_SCRIPT, Span::new(0, path_as_sent.len()));
        }
        if self.is_archive(path) {
            found.add(ARCHIVE, whole);
        }
        match self.names.address(path) {
            // One of the files of a project.
            Some(Group::Probe) if is_repository => {}
            Some(Group::Probe) => found.add(PROBE, whole),
            Some(Group::Exposed) => found.add(EXPOSED, whole),
            Some(Group::Console) => found.add(CONSOLE, whole),
            None => {}
        }
    }

    /// `/backup.zip`, `/db/dump.sql.gz`: a name for all there is, and near the root.
    fn is_archive(&self, path: &[u8]) -> bool {
        let name = memchr::memrchr(b'/', path).map_or(path, |at| &path[at + 1..]);
        let depth = path.iter().filter(|b| **b == b'/').count();
        let Some(dot) = memchr::memchr(b'.', name) else { return false };
        if depth > ARCHIVE_DEPTH_MAX {
            return false;
        }
        // `/a.example.com.zip`: the site's own name.
        let of_site = || {
            let ending = name.iter().rposition(|b| *b == b'.').filter(|last| *last > dot)?;
            let domain = &name[..ending];
            let last = &domain[domain.iter().rposition(|b| *b == b'.')? + 1..];
            Some(DOMAINS.contains(&last) && self.names.is_archive(&name[ending + 1..]))
        };
        self.names.is_store(&name[..dot]) && self.names.is_archive(&name[dot + 1..])
            || of_site().unwrap_or(false)
    }

    /// `index.php.bak`, `.index.php.swp`, `config.yml~`: a script's name with a suffix.
    fn is_copy(&self, path: &[u8]) -> bool {
        // What PHP shows as its source.
        if path.ends_with(b".phps") {
            return true;
        }
        let Some(rest) = self.names.without_suffix(path) else {
            return false;
        };
        if self.names.is_left_behind(&rest[memchr::memrchr(b'/', rest).map_or(0, |at| at + 1)..]) {
            return true;
        }
        let Some(dot) = rest.iter().rposition(|&b| b == b'.') else { return false };
        SCRIPTS.contains(&&rest[dot + 1..])
    }
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner::new()
    }
}

static PROFILE: Profile = Profile::new(Class::Scanner, KINDS);

impl Detector for Scanner {
    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn reads(&self, place: Place) -> bool {
        matches!(place, Place::Path | Place::Header)
    }

    fn detect(&self, input: &Input<'_>, found: &mut Found<'_>) {
        let name = input.location.name;
        if input.location.place == Place::Path {
            self.path(input.text, found);
        } else if name.eq_ignore_ascii_case(b"user-agent") && input.layers.is_empty() {
            self.agent(&input.text[..input.text.len().min(256)], found);
        } else if name.eq_ignore_ascii_case(b"x-middleware-subrequest") {
            // Next.js takes it as a sign that its checks were done (CVE-2025-29927).
            found.add(INTERNAL, Span::new(0, input.text.len()));
        }
    }
}

/// Top-level domains that no archive's name has before its ending by chance.
const DOMAINS: [&[u8]; 8] = [b"com", b"net", b"org", b"info", b"biz", b"edu", b"gov", b"example"];

/// `.bash_history`, `.rails_console_history`: what shells and consoles keep of what was typed.
fn is_history(segment: &[u8]) -> bool {
    segment.starts_with(b".") && segment.ends_with(b"_history")
}

/// `/a.php%0A.png`, `/a.asp;.jpg`, `/a.php%00.gif`: one part of a server takes the first extension, another
/// one the last.
fn has_hidden_script(path: &[u8]) -> bool {
    const SIGNS: [&[u8]; 11] = [
        b"%00", b"%0a", b"%0d", b"%20", b"%23", b"%3b", b";", b"\\u000a", b"\\u0000", b"\\u003b", b"\\u0023",
    ];
    memchr::memchr_iter(b'.', path).any(|dot| {
        let rest = &path[dot + 1..];
        let len = rest.iter().take(8).take_while(|b| b.is_ascii_alphanumeric()).count();
        let (extension, rest) = rest.split_at(len);
        let is_script = SERVED.iter().any(|script| extension.eq_ignore_ascii_case(script));
        let after_sign = SIGNS.iter().find_map(|sign| {
            let (head, tail) = rest.split_at_checked(sign.len())?;
            head.eq_ignore_ascii_case(sign).then_some(tail)
        });
        is_script
            && after_sign.is_some_and(|tail| {
                matches!(tail, [b'.', ending @ ..] if (2..=5).contains(&ending.len()) && ending.iter().all(u8::is_ascii_alphanumeric))
            })
    })
}

/// Extensions that a server runs.
const SERVED: [&[u8]; 9] = [b"php", b"php5", b"phtml", b"asp", b"aspx", b"jsp", b"jspx", b"cfm", b"cgi"];

/// A page of a server for repositories shows files of whatever name: `/team/project/blob/main/.gitignore`,
/// `/team/project/src/branch/main/web.config`; its interface reads and writes them:
/// `/api/v4/projects/7/repository/files/.gitlab-ci.yml`, `/repos/team/project/contents/.gitignore`.
pub(super) fn is_repository(path: &[u8]) -> bool {
    let segments = || path.split(|&b| b == b'/').skip(3).take(3);
    let is_ref = |pair: (&[u8], &[u8])| pair.0 == b"src" && matches!(pair.1, b"branch" | b"commit" | b"tag");
    segments().any(|segment| matches!(segment, b"blob" | b"raw" | b"tree" | b"blame" | b"browse"))
        || segments().zip(segments().skip(1)).any(is_ref)
        || memmem::find(path, b"/repository/files/").is_some()
        || path.starts_with(b"/repos/") && memmem::find(path, b"/contents/").is_some()
        || path.starts_with(b"/api/")
            && memmem::find(path, b"/repos/")
                .is_some_and(|at| memmem::find(&path[at..], b"/contents/").is_some())
}

/// `path` decoded once, in lower case, with single slashes and without what `;` begins; how long it is.
fn plain(path: &[u8], out: &mut [u8; PATH_BYTES_MAX]) -> usize {
    let digit = |b: u8| (b as char).to_digit(16);
    let (mut at, mut len) = (0, 0);
    let mut in_parameter = false;
    while at < path.len() {
        let mut byte = path[at];
        at += 1;
        if byte == b'%'
            && let [a, b, ..] = path[at..]
            && let (Some(a), Some(b)) = (digit(a), digit(b))
        {
            byte = (a << 4 | b) as u8;
            at += 2;
        }
        let byte = if byte == b'\\' { b'/' } else { byte.to_ascii_lowercase() };
        in_parameter = byte == b';' || (in_parameter && byte != b'/');
        let doubled = byte == b'/' && len > 0 && out[len - 1] == b'/';
        if !in_parameter && !doubled {
            out[len] = byte;
            len += 1;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detectors::testing::{blocks_at, look, passes_at};

    #[track_caller]
    fn path(text: &str, wanted: &str) {
        blocks_at(Class::Scanner, Place::Path, text, wanted);
    }

    #[track_caller]
    fn path_passes(text: &str) {
        passes_at(Class::Scanner, Place::Path, "", text);
    }

    #[test]
    fn left_behind() {
        path("/.git/config", "left-behind");
        path("/app/.GIT/HEAD", "left-behind");
        path("/%2eenv", "left-behind");
        path("//.env.production", "left-behind");
        path("/x;a=b/.svn/entries", "left-behind");
        path("/WEB-INF/web.xml", "left-behind");
        path("/wp-config.php.txt", "left-behind");
        path("/index.php.bak", "copy");
        path("/.index.php.swp", "copy");
        path("/inc/db.inc~", "copy");
        path("/config/database.yml", "left-behind");
        path("/old/_phpinfo.php", "left-behind");
        path("/backup.zip", "archive");
        path("/db/dump.sql.gz", "archive");
        path("/actuator/heapdump", "probe");
        path("/app/actuator/gateway/routes/x", "probe");
        path("/do.php%0A.png", "hidden-script");
        path("/up/a.asp;.jpg", "hidden-script");
        path("/HNAP1/", "probe");
        path("/server-status", "probe");
        path("/debug/pprof/heap", "probe");
        path("/web.config", "probe");
        path("/src/branch/web.config", "probe");
        path("/src/main/.gitignore", "left-behind");
        path("/index.phps", "copy");
        path("/.gitignore~", "copy");
        path("/configuration.php-dist", "copy");
        path("/api/swagger.json.bak", "copy");
        path("/a.example.com.zip", "archive");
        path("/db_backup.sql", "archive");
        path("/backup-2024-05-01.tar.gz", "archive");
        path("/.rails_console_history", "left-behind");
        path("/adminer-4.8.1.php", "left-behind");
        path("/.dockerenv", "left-behind");
        path("/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php", "probe");
    }

    #[test]
    fn paths_that_pass() {
        for text in [
            "/user/repo.git/info/refs",
            "/user/repo/raw/refs/heads/main/.gitignore",
            "/group/project/-/blob/main/.gitlab-ci.yml",
            "/group/project/src/branch/main/.gitignore",
            "/group/project/src/tag/v1.0/web.config",
            "/group/project/raw/branch/main/docker-compose.yml",
            "/group/project/-/raw/main/docker-compose.yml",
            "/projects/A/repos/b/browse/.gitlab-ci.yml",
            "/environment",
            "/docs/.well-known/security.txt",
            "/actuator/health",
            "/blog/phpinfo-explained",
            "/img/logo.old.png",
            "/jquery-3.7.1.min.js",
            "/phpmyadmin",
            "/v1.0/users/~me",
            "/archive.1",
            "/index.php;jsessionid=1.png",
            "/blog/php.%20.html",
            "/downloads/files/2024/release.zip",
            "/app-1.2.tar.gz",
            "/docs/server-status",
            "/admin/config.yml",
            "/config.json",
            "/manager/html",
            "/solr/admin/cores",
            "/.well-known/acme-challenge/abc",
            "/data/package.json.1.js",
            "/dist/app.com",
            "/backup-tool-2.zip",
            "/html-5.zip",
            "/cgi-bin/koha/opac-search.pl",
        ] {
            path_passes(text);
        }
    }

    #[test]
    fn strict_closes_services() {
        let detectors = crate::Detectors::new();
        for (text, is_blocked) in
            [("/manager/html", true), ("/solr/admin/cores", true), ("/phpmyadmin", false)]
        {
            let mut analysis = crate::Analysis::new();
            analysis.value(&detectors, crate::Location::of(Place::Path), text.as_bytes());
            let worst = analysis.worst(&detectors, crate::Level::Strict).unwrap();
            assert_eq!(worst.blocks(crate::Level::Strict), is_blocked, "{text}");
        }
    }

    #[test]
    fn agents() {
        let agent = |text: &str| look(Class::Scanner, Place::Header, "User-Agent", text.as_bytes());
        assert_eq!(agent("sqlmap/1.7 (https://sqlmap.org)"), ("agent".to_owned(), true));
        assert_eq!(agent("Fuzz Faster U Fool v2"), ("agent".to_owned(), true));
        assert_eq!(agent("WPScan v3.8.22 (https://wpscan.com/)"), ("agent".to_owned(), true));
        assert_eq!(agent("Mozilla/5.0 zgrab/0.x"), ("survey".to_owned(), false));
        assert_eq!(agent("Mozilla/5.0 (Linux; Android 10; Hydra) AppleWebKit/537.36").0, "");
        assert_eq!(agent("Mozilla/4.0 (Hydra)").0, "agent");
        assert_eq!(agent("Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0").0, "");
        let internal =
            look(Class::Scanner, Place::Header, "x-middleware-subrequest", b"middleware:middleware");
        assert_eq!(internal, ("internal-header".to_owned(), true));
        assert_eq!(look(Class::Scanner, Place::Header, "Referer", b"https://a.example/sqlmap").0, "");
    }
}
