//! Input that is no configuration, or means harm: each ends soon, with an error that says where.

use std::fs;
use std::path::Path;

use portcullis_migrate::{FILE_BYTES_MAX, FILES_MAX, From, Options, migrate};

/// The error of a configuration of these files below a root.
fn error(files: &[(&str, &[u8])], prepare: impl Fn(&Path)) -> String {
    let root = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    prepare(root.path());
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    let error = migrate(From::Nginx, &[root.path().join("nginx.conf")], &options).unwrap_err();
    error.to_string()
}

/// Document and report of a site beside an include that cannot be read.
fn with_include(name: &str, prepare: impl Fn(&Path)) -> String {
    let root = tempfile::tempdir().unwrap();
    let text = format!("include {name};\nserver {{ listen 80; location / {{ proxy_pass http://own; }} }}");
    fs::write(root.path().join("nginx.conf"), text).unwrap();
    prepare(root.path());
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    match migrate(From::Nginx, &[root.path().join("nginx.conf")], &options) {
        Ok(migrated) => {
            assert!(!migrated.document.contains("stolen"), "{}", migrated.document);
            migrated.report.text()
        }
        Err(error) => error.to_string(),
    }
}

fn nothing(_: &Path) {}

#[test]
fn a_file_of_a_hundred_megabytes_is_not_read() {
    let said = error(&[("nginx.conf", b"")], |root| {
        fs::File::create(root.join("nginx.conf")).unwrap().set_len(100 << 20).unwrap();
    });
    assert!(
        said.starts_with(&format!("/nginx.conf: the file has more than {FILE_BYTES_MAX} bytes")),
        "{said}"
    );
}

#[test]
fn bytes_that_are_no_text_are_told_with_their_line() {
    assert!(error(&[("nginx.conf", b"http {\n\0\0ELF")], nothing).starts_with("/nginx.conf:2: a NUL byte"));
    let latin = error(&[("nginx.conf", b"# ok\n# \xe4\n")], nothing);
    assert!(latin.starts_with("/nginx.conf:2: this line is not UTF-8") && latin.contains("iconv"), "{latin}");
}

#[test]
fn a_device_is_no_file() {
    let error = migrate(From::Nginx, &["/dev/zero".into()], &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "/dev/zero: this is not a file");
}

#[test]
fn links_never_lead_out_of_the_root() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "server { listen 80; location / { proxy_pass http://stolen; } }").unwrap();
    let link = |target: &Path| {
        let target = target.to_owned();
        with_include("/link", move |root| {
            std::os::unix::fs::symlink(&target, root.join("link")).unwrap();
        })
    };
    assert!(link(&secret).contains("/link is not there"));
    assert!(
        link(&Path::new("../../../../../../..").join(secret.strip_prefix("/").unwrap()))
            .contains("is not there")
    );
    assert!(link(Path::new("/link")).contains("/link is not there"));
    // Where it would lead on the other machine.
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("available")).unwrap();
    fs::write(root.path().join("available/site"), fs::read(&secret).unwrap()).unwrap();
    fs::write(root.path().join("nginx.conf"), "http { include /enabled; }").unwrap();
    std::os::unix::fs::symlink("/available/site", root.path().join("enabled")).unwrap();
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    let migrated = migrate(From::Nginx, &[root.path().join("nginx.conf")], &options).unwrap();
    assert!(migrated.document.contains("http://stolen"), "{}", migrated.document);
}

#[test]
fn files_that_include_each_other_a_thousandfold_end() {
    // Twelve files, each of which includes the next ten times: 10^11 directives.
    let mut files: Vec<(String, Vec<u8>)> = vec![("nginx.conf".to_owned(), b"include /0;".to_vec())];
    for number in 0..12 {
        files.push((number.to_string(), format!("include /{};", number + 1).repeat(10).into_bytes()));
    }
    files.push(("12".to_owned(), b"user x;".to_vec()));
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let said = error(&files, nothing);
    assert!(said.contains("more than 200000 directives"), "{said}");
}

#[test]
fn a_chain_of_files_has_an_end() {
    let files: Vec<(String, Vec<u8>)> = (0..40)
        .map(|number| (number.to_string(), format!("include /{};", number + 1).into_bytes()))
        .collect();
    let mut files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    files.push(("nginx.conf", b"include /0;"));
    let said = error(&files, nothing);
    assert!(said.contains("more than 16 files that include each other"), "{said}");
}

#[test]
fn a_folder_of_very_many_files_is_refused() {
    let said = error(&[("nginx.conf", b"include /many/*;")], |root| {
        fs::create_dir(root.join("many")).unwrap();
        for number in 0..FILES_MAX + 1 {
            fs::write(root.join("many").join(number.to_string()), b"").unwrap();
        }
    });
    assert!(said.contains(&format!("more than {FILES_MAX} files")), "{said}");
}

#[test]
fn what_lies_outside_of_the_root_is_not_reached() {
    let said = with_include("/../../../../../etc/hostname", nothing);
    assert!(said.contains("/etc/hostname is not there"), "{said}");
}

#[test]
fn nothing_to_serve_is_an_error() {
    let said = error(&[("nginx.conf", b"events {}\nhttp { sendfile on; }\n")], nothing);
    assert!(said.contains("no site was found"), "{said}");
    let said = error(&[("nginx.conf", b"")], nothing);
    assert!(said.contains("no site was found"), "{said}");
}

#[test]
fn very_many_directives_are_refused() {
    let said = error(&[("nginx.conf", "a;".repeat(150_000).as_bytes())], nothing);
    assert!(said.contains("more than 100000 directives"), "{said}");
    let many = "server { listen 80; server_name a; location / { proxy_pass http://a; } }\n";
    let said = error(&[("nginx.conf", many.repeat(24_000).as_bytes())], nothing);
    assert!(said.contains("more than 100000 directives"), "{said}");
}

#[test]
fn yaml_that_multiplies_itself_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", ")));
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("all.yaml");
    fs::write(&path, text).unwrap();
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    let said = migrate(From::IngressNginx, &[path], &options).unwrap_err().to_string();
    assert!(said.contains("this is not YAML: "), "{said}");
}

/// Mistakes in macros say file, line and name, and what multiplies itself ends.
#[test]
fn macros_are_bounded_and_their_mistakes_have_places() {
    let said = |text: &str| {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("apache2.conf");
        fs::write(&path, text).unwrap();
        let options = Options { root: root.path().to_owned(), ..Options::default() };
        migrate(From::Apache, &[path], &options).unwrap_err().to_string()
    };
    for (text, expected) in [
        ("Listen 80\nUse Nobody a", "/apache2.conf:2: Use of the macro `Nobody`, which is not defined"),
        (
            "<Macro One $a>\n</Macro>\nUse One",
            "/apache2.conf:3: the macro `One` of /apache2.conf:1 has 1 parameters",
        ),
        (
            "<Macro One $a $a>\n</Macro>",
            "/apache2.conf:1: macro `One`: the parameter `$a` is empty or stands twice",
        ),
        ("<Macro>\n</Macro>", "/apache2.conf:1: <Macro> without a name"),
        ("<Macro A>\n</Macro>\nUndefMacro A\nUse A", "/apache2.conf:4: Use of the macro `A`"),
        ("UndefMacro A", "/apache2.conf:1: macro `A` is not defined"),
        (
            "<Macro A>\nUse B\n</Macro>\n<Macro B>\nUse a\n</Macro>\nUse A",
            "/apache2.conf:5: the macro `a` is used in itself",
        ),
        (
            "<Macro A $x>\n$x\n</Macro>\nUse A <Location",
            "/apache2.conf:4: the line /apache2.conf:2 of the macro `A`",
        ),
    ] {
        let said = said(text);
        assert!(said.starts_with(expected), "{said}");
    }
    // A chain of macros; a tree of them with 10^11 leaves; values that grow tenfold with each; one long line.
    let chain: String = (0..40).map(|n| format!("<Macro M{n}>\nUse M{}\n</Macro>\n", n + 1)).collect();
    assert!(said(&format!("{chain}Use M0")).contains("below more than 16 files and macros"));
    let tree: String = (0..11)
        .map(|n| format!("<Macro M{n}>\n{}</Macro>\n", format!("Use M{}\n", n + 1).repeat(10)))
        .collect();
    let leaf = "<Macro M11>\nUser x\n</Macro>\n";
    assert!(said(&format!("{tree}{leaf}Use M0")).contains("more than 200000 directives"));
    let grows: String = (0..12)
        .map(|n| format!("<Macro M{n} $x>\nUse M{} \"{}\"\n</Macro>\n", n + 1, "$x".repeat(10)))
        .collect();
    let said_of_growth = said(&format!("{grows}Use M0 0123456789"));
    assert!(said_of_growth.contains("has more than 65536 bytes"), "{said_of_growth}");
    let wide = format!("<Macro W $x>\n{}</Macro>\n", "User $x\n".repeat(200));
    let uses = format!("Use W {}\n", "y".repeat(60_000)).repeat(4);
    assert!(said(&(wide + &uses)).contains("makes all macros more than 33554432 bytes"));
}

#[test]
fn every_syntax_bounds_what_is_inside_each_other() {
    for (from, name, text) in [
        (From::Apache, "apache2.conf", "<Location /a>\n".repeat(1000)),
        (From::CorazaCaddy, "Caddyfile", "handle {\n".repeat(1000)),
        (From::IngressNginx, "a.yaml", "[".repeat(1000)),
    ] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(name);
        fs::write(&path, text).unwrap();
        let options = Options { root: root.path().to_owned(), ..Options::default() };
        let said = migrate(from, &[path], &options).unwrap_err().to_string();
        assert!(said.starts_with(&format!("/{name}:")), "{said}");
    }
}
