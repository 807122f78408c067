use crate::detectors::testing;
use crate::{Class, Place};

fn look(place: Place, text: &[u8]) -> (String, bool) {
    testing::look(Class::Path, place, "q", text)
}

#[track_caller]
fn check(text: &str, wanted: &str) {
    let (have, blocks) = look(Place::Query, text.as_bytes());
    for kind in wanted.split_whitespace() {
        assert!(have.split_whitespace().any(|k| k == kind), "{text}\n  wanted {kind}\n  have   {have}");
    }
    assert!(blocks, "{text} is not blocked: {have}");
}

#[track_caller]
fn passes(text: &str) {
    let (have, blocks) = look(Place::Form, text.as_bytes());
    assert!(!blocks, "{text}: {have}");
}

/// `text` passes where the site made the field for text, and nowhere else.
#[track_caller]
fn passes_in_texts(text: &str) {
    let at = |place, name| testing::look(Class::Path, place, name, text.as_bytes());
    let (have, blocks) = at(Place::Form, "comment");
    assert!(!blocks, "{text}: {have}");
    let (have, blocks) = at(Place::Query, "q");
    assert!(blocks, "{text}: {have}");
}

#[test]
fn traversal() {
    check("../../../../etc/passwd", "climb target-system file");
    check("../../etc/passwd", "climb-two file");
    check("..\\..\\..\\boot.ini", "climb climb-backslash file");
    check("%2e%2e%2f%2e%2e%2fx", "climb-encoded climb-two");
    check("%252e%252e/x", "climb-odd");
    check("..%c0%af..%c0%afx", "climb-odd");
    check("..;/..;/manager/html", "climb-broken");
    check("....//....//....//etc/passwd", "climb-restored file");
    check("images/../../../../app/secret", "climb");
}

/// By all detectors, so that the gate lets it through.
#[test]
fn settings_that_a_parameter_for_a_file_asks_for() {
    let finds = |name: &str, text: &str| {
        let (detectors, mut analysis) = (crate::Detectors::new(), crate::Analysis::new());
        analysis.value(&detectors, crate::Location::new(Place::Query, name.as_bytes()), text.as_bytes());
        analysis
            .worst(&detectors, crate::Level::Balanced)
            .is_some_and(|worst| worst.blocks(crate::Level::Balanced))
    };
    for text in [
        ".env",
        ".env.production",
        ".htpasswd",
        ".netrc",
        ".npmrc",
        ".git-credentials",
        "/app/config.py",
        "/srv/app/settings.yml",
        "/app/secrets.json",
        "/opt/x/credentials.xml",
        "/app/database.yml",
        "/srv/application.properties",
        "/x/appsettings.json",
    ] {
        assert!(finds("file", text) && finds("template", text), "{text}");
    }
    for text in [
        "config.py",
        "report.env.pdf",
        "environment.html",
        "/docs/configuration.html",
        "settings",
        "a.conf.pdf",
    ] {
        assert!(!finds("file", text), "{text}");
    }
    assert!(!finds("q", ".env") && !finds("version", "config.py"));
}

#[test]
fn files() {
    check("/etc/passwd", "file");
    check("/etc//./passwd", "file");
    check("/e'tc'/pas\"sw\"d", "file");
    check("/e??/pa??wd", "file");
    check("C:\\Windows\\win.ini", "file");
    check("c:/windows/system32/drivers/etc/hosts", "file");
    check("/proc/self/fd/7", "file");
    check("/WEB-INF/web.xml", "file");
    check("/home/me/.ssh/id_rsa", "file");
    check("/etc/passwd%00.jpg", "file nul");
    check("shell.php\0.jpg", "nul");
    // A message in a binary format, and what is left of it where something reads it as a form.
    assert!(!look(Place::Text, b"\x01\x02\0\0click\0\xB2a/b\0").1);
    assert!(!look(Place::Text, b"a\0\xA1\xCB\0\x88D").1);
    assert!(look(Place::FileName, b"x.php\0\xFF.jpg").1);
}

#[test]
fn links_of_pages() {
    passes("Redirecting to ../../../../core/arch/x86/fn.a.html...");
    passes("../../../../../../../static.files/favicon-044be391.svg");
}

#[test]
fn shares() {
    check("\\\\192.0.2.7\\a\\x.dll", "share share-program");
    check("\\\\files.example.net\\pub\\run.ps1", "share-program");
    passes("\\\\fs01\\apps\\setup.exe");
    passes("\\\\fs01.corp.example\\scans\\report.pdf");
}

#[test]
fn names_of_uploads() {
    let (have, blocks) = look(Place::FileName, b"../shell.jsp");
    assert!(blocks, "{have}");
    let (have, blocks) = look(Place::FileName, b"C:\\Users\\Ann\\holiday 1.jpg");
    assert!(!blocks, "{have}");
}

#[test]
fn wrappers() {
    check("php://filter/convert.base64-encode/resource=index.php", "wrapper filters");
    check("phar:///tmp/x.jpg", "wrapper");
    check("expect://id", "wrapper");
    check("file:///etc/passwd", "file-url file");
    check("data://text/plain;base64,SGVsbG8=", "wrapper");
}

#[test]
fn ordinary() {
    passes("../img/logo.png");
    passes("./a/b.js");
    passes("webpack:///./src/index.js");
    passes("../../node_modules/react/index.js");
    passes_in_texts("Open ../README.md, then edit /etc/hosts on your machine.");
    passes("Home / Products / Shoes");
    passes("C:\\Users\\Ann\\Documents\\report.docx would not open");
    passes("https://a.example/x/../y/z.html?q=a%2fb");
    passes("and/or ... yes");
    passes("data:image/png;base64,iVBORw0KGgo=");
}

/// What stands after a NUL hides nothing, however long it is.
#[test]
fn text_after_a_nul() {
    for rest in ["x".repeat(100), "x".repeat(600), "a, b, c ".repeat(90)] {
        for nul in ["%00", "\0"] {
            let text = format!("/Program Files\\Apache Group\\Apache\\logs\\access.log{nul}{rest}");
            let (have, blocks) = look(Place::Query, text.as_bytes());
            assert!(blocks, "{text}: {have}");
        }
    }
}

/// However its signs are written, a climb to a file stays one.
#[test]
fn writing_does_not_hide() {
    let dots = [".", "%2e", "%252e", "%c0%ae", "%uff0e", "0x2e", "%%32%65", "%e0%80%ae"];
    let slashes = ["/", "\\", "%2f", "%5c", "%252f", "%c0%af", "%u2215", "%%35%63", "//", "\\/"];
    for dot in dots {
        for slash in slashes {
            for file in [["etc", "passwd"], ["windows", "win.ini"]] {
                let text = format!("{}{}{}", format!("{dot}{dot}{slash}").repeat(4), file.join(slash), "");
                let (have, blocks) = look(Place::Query, text.as_bytes());
                assert!(blocks, "{text}: {have}");
            }
        }
    }
}

/// Paths of files as applications name them do not block, whatever their names.
#[test]
fn grammar_of_ordinary_paths() {
    let folders = ["src", "img", "a b", "v1.2", "node_modules", "@scope", "2024-05", "über", "x;v=1"];
    let files = ["index.js", "photo 1.jpeg", "README", "a.tar.gz", ".gitignore", "data.json?x=1"];
    for start in ["", "/", "./", "../", "https://cdn.example/"] {
        for one in folders {
            for two in folders {
                for file in files {
                    let text = format!("{start}{one}/{two}/{file}");
                    let (have, blocks) = look(Place::Query, text.as_bytes());
                    assert!(!blocks, "{text}: {have}");
                }
            }
        }
    }
}

#[test]
fn prose_that_begins_with_a_path() {
    passes("/etc/ is a directory");
    passes("/etc/ and /var/ belong to root");
    passes_in_texts("/etc/hosts file");
    let (have, blocks) = look(Place::Query, b"/etc/init.d/some file.conf/x");
    assert!(blocks, "{have}");
}

#[test]
fn paths_of_the_machine_in_a_request_path() {
    for text in [
        "/app//etc/init.d/apache",
        "/a/%2Fproc/self/fd/5",
        "/app/C%3A%5Cxampp%5Capache%5Cconf",
        "/x/c:/windows/temp/a",
    ] {
        let (have, blocks) = look(Place::Path, text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
    for text in [
        "/etc/designs/site/a.css",
        "//etc/clientlibs/site.js",
        "//favicon.ico",
        "/a//b/c",
        "/docs/etc/x",
        "/wiki/C:/x",
        "/users/a:b",
    ] {
        let (have, blocks) = look(Place::Path, text.as_bytes());
        assert!(!blocks, "{text}: {have}");
    }
}

#[test]
fn files_in_odd_places() {
    let (have, blocks) = look(Place::Path, b"/file=/tmp/app/0123/passwd.txt");
    assert!(blocks, "{have}");
    let at = |name: &str, text: &str| {
        crate::detectors::testing::look(crate::Class::Path, Place::Query, name, text.as_bytes())
    };
    for (name, text) in
        [("fileName", "config/internal.properties"), ("q", ". /web.xml"), ("x", "file:///etc/motd")]
    {
        assert!(at(name, text).1, "{text}: {}", at(name, text).0);
    }
    for (name, text) in
        [("q", "config/internal.properties"), ("file", "reports/q1.pdf"), ("q", "wait. / then go")]
    {
        assert!(!at(name, text).1, "{text}: {}", at(name, text).0);
    }
    passes_in_texts("file:///home not opening");
}

#[test]
fn what_programs_and_pages_name() {
    passes("import { a } from '../../../lib/a'; // TODO: fix");
    passes("jest.mock('../../../api/client')");
    check("x '../../../../etc/passwd'", "climb file");
    passes("/usr/local/bin");
    let (have, blocks) = testing::look(Class::Path, Place::Query, "filename", b"../images/logo.png");
    assert!(!blocks, "{have}");
    for (place, text) in
        [(Place::FileName, "../a.png"), (Place::Query, "../a.php"), (Place::Query, "../../a.png")]
    {
        let (have, blocks) = testing::look(Class::Path, place, "filename", text.as_bytes());
        assert!(blocks, "{text}: {have}");
    }
}

#[test]
fn shares_elsewhere() {
    let (have, blocks) = testing::look(Class::Path, Place::Json, "file", b"\\\\?\\C:\\Windows\\win.ini");
    assert!(blocks, "{have}");
    let share = b"\\\\a.example\\s\\a.txt";
    assert!(testing::look(Class::Path, Place::Query, "file", share).1);
    // Settings of an office.
    assert!(!testing::look(Class::Path, Place::Form, "file", share).1);
    assert!(!testing::look(Class::Path, Place::Query, "file", b"\\\\nas\\s\\a.txt").1);
}

/// Browsers and clients take steps up out of an address before they send it, so that one in plain letters was
/// written on purpose; a picture or style of a page next to it may come from a crawler that does not.
#[test]
fn steps_in_the_path_of_a_request() {
    let blocks = |path: &str| testing::look(Class::Path, Place::Path, "", path.as_bytes()).1;
    for path in [
        "/assets/../package.json",
        "/../conf/config.properties",
        "/a/b/../../.HTTP/HTTP.db",
        "/OA_HTML/help/../ieshostedsurvey.jsp",
        "/_next/../app.py",
        "/api/v1/totp/x/../../license/keys",
    ] {
        assert!(blocks(path), "{path}");
    }
    for path in [
        "/wiki/../wiki/Main_Page",
        "/a/b/c.html",
        "/blog/../img/logo.png",
        "/a/./b",
        "/v1..2/x",
        "/compare/a...b",
    ] {
        assert!(!blocks(path), "{path}");
    }
}

/// What the parameter is for decides about steps that pages have elsewhere.
#[test]
fn steps_in_fields_for_files() {
    let look = |place, name: &str, text: &str| testing::look(Class::Path, place, name, text.as_bytes());
    for (name, text) in [
        ("file", "../../application/database"),
        ("template", "../../x"),
        ("filePath", "../conf/datasource.properties"),
        ("lang", "../../lib/boot.inc"),
        ("page", "../includes/db.inc.php"),
        ("view", "../WEB-INF/applicationContext.xml"),
        ("opts[dir]", "..\\..\\data"),
    ] {
        for place in [Place::Query, Place::Form] {
            let (have, blocks) = look(place, name, text);
            assert!(blocks, "{name}={text}: {have}");
        }
    }
    for (place, name, text) in [
        (Place::Json, "path", "../../packages/core"),
        (Place::Query, "q", "../../config"),
        (Place::Query, "file", "../img/logo.png"),
        (Place::Form, "template", "../newsletter"),
        (Place::Form, "profile", "../../x"),
        (Place::Form, "comment", "see ../../docs/setup"),
    ] {
        let (have, blocks) = look(place, name, text);
        assert!(!blocks, "{name}={text}: {have}");
    }
    for text in ["id_rsa", "appsettings.json", "application.properties", "wp-config.php"] {
        assert!(look(Place::Query, "file", text).1, "{text}");
        assert!(!look(Place::Query, "q", text).1, "{text}");
    }
    for text in ["report.pdf", "index.php", "data.json", "settings.png"] {
        assert!(!look(Place::Query, "file", text).1, "{text}");
    }
}

/// A folder of the system as all of a parameter for one; elsewhere people name it.
#[test]
fn folders_of_the_system() {
    for name in ["dir", "path", "folder"] {
        for text in ["/etc/", "/proc/", "/etc/./"] {
            let (have, is_blocked) = testing::look(Class::Path, Place::Form, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {have}");
        }
        testing::passes_at(Class::Path, Place::Form, name, "/home/");
    }
    testing::passes_at(Class::Path, Place::Query, "q", "/etc/");
}

/// A field for a path that holds nothing but the folder above lists it; a link beside others does not.
#[test]
fn the_folder_above() {
    let is_blocked =
        |name: &str, text: &str| testing::look(Class::Path, Place::Query, name, text.as_bytes()).1;
    for name in ["path", "filePath", "dir"] {
        for text in ["../", "..\\", " ../ "] {
            assert!(is_blocked(name, text), "{name}={text}");
        }
    }
    for (name, text) in
        [("path", "./"), ("path", "../a.png"), ("q", "../"), ("text", ".."), ("version", "..")]
    {
        assert!(!is_blocked(name, text), "{name}={text}");
    }
}

/// One step up to a script, and names of files with secrets, whatever the parameter is called, but for those
/// that lead to a page or that people search with.
#[test]
fn what_a_parameter_asks_for() {
    let blocks = |place, name, text: &str| testing::look(Class::Path, place, name, text.as_bytes()).1;
    for (name, text) in
        [("report", "../x.jsp"), ("media", "wp-config.php"), ("obj_name", "win.ini"), ("x", ".env")]
    {
        assert!(blocks(Place::Query, name, text), "{name}={text}");
    }
    assert!(blocks(Place::XmlText, "picPath", "/../x.jsp") && blocks(Place::Json, "a", "\\..\\x.aspx"));
    for (name, text) in
        [("next", "../cart.php"), ("q", "wp-config.php"), ("report", "../x.html"), ("media", "index.php")]
    {
        assert!(!blocks(Place::Query, name, text), "{name}={text}");
    }
    assert!(!blocks(Place::Json, "link", "../x.php"));
}

/// An editor says which file it has open, a page of settings which program it starts. Neither reads a file of
/// the system by it.
#[test]
fn files_of_editors_and_programs() {
    for name in ["params.textDocument.uri", "params.rootUri", "params.workspaceFolders.uri"] {
        for text in [
            "file:///home/a/app/main.go",
            "file:///Users/a/My%20app/b.ts",
            "file:///c%3A/src/a.cs",
            "file:///srv/app",
        ] {
            let (have, is_blocked) = testing::look(Class::Path, Place::Json, name, text.as_bytes());
            assert!(!is_blocked && have.contains("!edited-file"), "{name}={text}: {have}");
            let (have, is_blocked) = testing::look(Class::Path, Place::Query, name, text.as_bytes());
            assert!(is_blocked, "{name}={text} in a query: {have}");
        }
        for text in [
            "file:///etc/passwd",
            "file:///etc/nginx/nginx.conf",
            "file:///home/a/.ssh/id_rsa",
            "file:///home/a/app/.env",
            "file:///home/a/../../etc/shadow",
            "file:///home/a/%2e%2e/%2e%2e/etc/passwd",
            "file:///proc/self/environ",
            "file:///C%3A/Windows/System32/config/SAM",
            "file:////evil.example/share/x",
            "file://evil.example/home/a/x",
            "file:///home/a/app/%00.go",
            "file:///home/a/x php://filter/resource=x",
            "php://filter/resource=/home/a/app/main.php",
        ] {
            let (have, is_blocked) = testing::look(Class::Path, Place::Json, name, text.as_bytes());
            assert!(is_blocked, "{name}={text}: {have}");
        }
    }
    for name in ["uri", "params.uri", "url", "textDocument", "textDocument[uri]"] {
        let (have, is_blocked) = testing::look(Class::Path, Place::Json, name, b"file:///home/a/app/main.go");
        assert!(is_blocked, "{name}: {have}");
    }
    for text in ["/usr/sbin/sendmail -t -i", "/usr/local/bin/magick", "/usr/bin/php8.2"] {
        testing::passes_at(Class::Path, Place::Form, "mta", text);
    }
    for text in [
        "/usr/sbin/../../etc/passwd",
        "/usr/bin/../../etc/shadow",
        "/usr/sbin/x/y",
        "/usr/sbin/sendmail /etc/shadow",
        "/usr/local/lib/php/pearcmd.php",
        "/usr/local/bin/../etc/php.ini",
        "/etc/passwd -t",
    ] {
        let (have, is_blocked) = testing::look(Class::Path, Place::Form, "mta", text.as_bytes());
        assert!(is_blocked, "{text}: {have}");
    }
}

/// Who makes a document of a text loads the files that its elements name.
#[test]
fn files_that_a_text_loads() {
    let at = |text: &str| testing::look(Class::Path, Place::Json, "description", text.as_bytes());
    for text in [
        "<link rel=attachment href=\"file:///etc/passwd\">",
        "Notes: <iframe src=\"file:///etc/passwd\"></iframe> and more",
        "![x](file:///proc/self/environ)",
        "<img src='file:///etc/shadow'>",
    ] {
        let (have, blocks) = at(text);
        assert!(blocks, "{text}: {have}");
    }
    for text in [
        "Open file:///etc/passwd in your browser to see it.",
        "`<iframe src=\"file:///etc/passwd\">` is what it tried",
        "<img src=\"file:///C:/Users/ann/AppData/Local/Temp/msohtmlclip1/01/clip_image002.png\">",
        "<a href=\"file:///srv/share/plan.pdf\">plan</a>",
        "[plan](file:///srv/share/plan.pdf)",
        "![a](images/a.png)",
    ] {
        let (have, blocks) = at(text);
        assert!(!blocks, "{text}: {have}");
    }
}

/// Braces around a path are a command's of TeX, a list's or a template's: the path stands between them.
#[test]
fn braces_are_no_part_of_a_path() {
    for path in ["../common/header.tex", "../../figures/plot-1.pdf"] {
        passes(&format!("\\input{{{path}}}"));
        passes(&format!("\\includegraphics[width=0.5\\textwidth]{{{path}}} in the text"));
    }
    for path in ["../../../../etc/passwd", "..\\..\\..\\boot.ini", "..%2f..%2f..%2fx", "../../etc/shadow"] {
        check(&format!("\\input{{{path}}}"), "");
        check(&format!("a{{b}}{{{path}}} c"), "");
        check(&format!("a b{{x}}/{path} c"), "");
        check(&format!("{path}{{}}"), "");
    }
    check("/etc/passwd%00{}", "file");
    check("../../app config/../../secret/db.yml?{}", "");
}
