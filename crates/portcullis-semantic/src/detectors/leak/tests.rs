use crate::detectors::testing::{blocks_at, look, passes_at};
use crate::{Class, Place};

#[track_caller]
fn tells(text: &str, wanted: &str) {
    blocks_at(Class::Leak, Place::ResponseBody, text, wanted);
}

#[track_caller]
fn tells_nothing(text: &str) {
    passes_at(Class::Leak, Place::ResponseBody, "", text);
}

/// Characters as a key of 2,048 bits has them.
fn key_lines() -> String {
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(20)
}

/// A page of documentation with `example` in it, as it stands in an element for code.
fn documentation(example: &str) -> String {
    let prose = "<p>When the application sends a statement that the server cannot read, the driver raises an \
                 exception. The message tells where the parser stopped, which is seldom where the mistake is. Look \
                 at the words before that place: a quote that was not closed, a comma too many, or a name that is \
                 a word of the language. Most libraries let you pass the values beside the statement, and then \
                 nothing that a user writes is ever read as a part of it, which is also what keeps an attacker out.</p>\n";
    format!(
        "<!doctype html><html><head><title>Troubleshooting - The Manual</title></head><body><h1>Errors</h1>{prose}\
         <pre><code>{example}</code></pre>{prose}</body></html>"
    )
}

#[test]
fn databases() {
    tells(
        "<p>You have an error in your SQL syntax; check the manual that corresponds to your MySQL server",
        "sql-error",
    );
    tells("SQLSTATE[42000]: Syntax error or access violation", "sql-error");
    tells("ORA-01756: quoted string not properly terminated", "sql-error");
    tells("{\"error\":\"ERROR:  syntax error at or near \\\"1\\\"\",\"code\":500}", "sql-error");
}

#[test]
fn traces() {
    tells("Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in <module>", "stack-trace");
    tells(
        "{\"detail\":\"Traceback (most recent call last):\\n  File \\\"/srv/app.py\\\", line 3, in f\"}",
        "stack-trace",
    );
    tells("<b>Fatal error</b>:  Uncaught Error in <b>/var/www/x.php</b> on line <b>3</b>", "stack-trace");
    tells("x\n\tat a.b.C.d(C.java:10)\n\tat a.b.E.f(E.java:20)\n", "stack-trace");
    tells("Error: x\n    at f (/srv/app.js:1:2)\n    at g (/srv/app.js:3:4)\n", "stack-trace");
    tells(
        "<pre>Error: x<br> &nbsp; &nbsp;at f (/srv/app.js:1:2)<br> &nbsp; &nbsp;at g (/srv/app.js:3:4)</pre>",
        "stack-trace",
    );
    tells(
        "{\"stack\":\"Error: x\\n    at f (/srv/app.js:1:2)\\n    at g (/srv/app.js:3:4)\"}",
        "stack-trace",
    );
    tells("  at A.B.C() in C:\\x\\D.cs:line 5\r\n  at A.B.E() in C:\\x\\D.cs:line 9\r\n", "stack-trace");
}

#[test]
fn pages() {
    tells("<html><head><title>Index of /backup</title></head><a href=\"/\">Parent Directory</a>", "listing");
    tells("root:x:0:0:root:/root:/bin/bash\n", "secret");
    tells("<pre>uid=0(root) gid=0(root) groups=0(root)</pre>", "web-shell");
    tells("uid=33(www-data) gid=33(www-data) groups=33(www-data)\n", "web-shell");
    tells("->|/var/www/html\tLinux\twww-data|<-", "web-shell");
    tells("<?php\n$db = 'x';", "source");
    tells("\n<%@ page language=\"java\" %>", "source");
}

#[test]
fn keys() {
    for label in ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        let key = format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", key_lines());
        tells(&key, "secret");
        tells(&format!("{{\"key\":\"{}\"}}", key.replace('\n', "\\n")), "secret");
    }
    let old = format!(
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8F3A\n\n{}",
        key_lines()
    );
    tells(&old, "secret");
    // What may be shown, and what shows none.
    tells_nothing(&format!("-----BEGIN CERTIFICATE-----\n{}", key_lines()));
    tells_nothing(&format!("-----BEGIN PUBLIC KEY-----\n{}", key_lines()));
    tells_nothing("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA...\n-----END RSA PRIVATE KEY-----\n");
    tells_nothing(
        "The file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
    );
}

#[test]
fn pages_that_pass() {
    tells_nothing("<html><body>Look at the index of the book at page 5.</body></html>");
    tells_nothing("<p>A Python traceback begins with <code>Traceback (most recent call last):</code></p>");
    tells_nothing("<p>Write <code>&lt;?php echo 1; ?&gt;</code> in your template.</p>");
    tells_nothing("{\"error\":\"not found\",\"at\":\"2026-01-01\"}");
    tells_nothing("Meet me at home.\nat noon\nat (a:1)\n");
    tells_nothing("<a href=\"/cgi?uid=5(x) gid=3\">x</a>");
}

#[test]
fn documentation_passes() {
    for example in [
        "ERROR 1064 (42000): You have an error in your SQL syntax; check the manual that corresponds to your MySQL",
        "SQLSTATE[42000]: Syntax error or access violation: 1064",
        "ERROR:  syntax error at or near \"FROM\"\nLINE 1: SELECT FROM users",
        "ORA-00933: SQL command not properly ended",
        "Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in &lt;module&gt;\nValueError: x",
        "java.lang.NullPointerException\n\tat a.b.C.d(C.java:10)\n\tat a.b.E.f(E.java:20)",
        "$ id\nuid=0(root) gid=0(root) groups=0(root)",
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
        "[core]\n\trepositoryformatversion = 0",
        "DB_PASSWORD=secret\nAPP_KEY=base64:xxx",
    ] {
        tells_nothing(&documentation(example));
        // The same in Markdown, and as a forum's data of a page.
        let words = documentation("");
        let prose = words.split("<p>").nth(1).unwrap_or_default().replace("</p>", "");
        tells_nothing(&format!("# Errors\n\n{prose}\n```\n{example}\n```\n\n{prose}"));
        tells_nothing(&format!("{prose}\n    {}\n{prose}", example.replace('\n', "\n    ")));
    }
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----", key_lines());
    tells_nothing(&documentation(&key));
}

/// A forum: the message in the title, the question's text and the links to others like it.
#[test]
fn a_question_about_an_error_passes() {
    let message = "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version";
    let page = documentation("SELECT * FROM users WHERE id = ").replace("Troubleshooting", message).replace(
        "</body>",
        &format!("<p>What I get from the server is {message} for the right syntax</p><a href=\"/q/1\">{message}</a></body>"),
    );
    tells_nothing(&page);
}

/// A page of many words does not hide what really went wrong in it.
#[test]
fn a_failure_in_an_article_is_told() {
    let broken = documentation("x").replace(
        "</body>",
        "<br />\n<b>Warning</b>:  mysqli_query(): in <b>/var/www/html/view.php</b> on line <b>31</b><br />",
    );
    tells(&broken, "stack-trace");
    let users: String = (1..8).map(|n| format!("user{n}:x:{n}:{n}::/home/user{n}:/bin/sh\n")).collect();
    let included =
        documentation("x").replace("</h1>", &format!("</h1>root:x:0:0:root:/root:/bin/bash\n{users}"));
    tells(&included, "secret");
}

#[test]
fn heads() {
    let head = |text: &str| look(Class::Leak, Place::ResponseHeader, "X-Error", text.as_bytes());
    assert_eq!(head("SQLSTATE[42000]: Syntax error"), ("sql-error".to_owned(), true));
    assert_eq!(head("<?php"), (String::new(), false));
}
