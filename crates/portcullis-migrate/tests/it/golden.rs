//! Configurations in `tests/golden`, each with the document and the report that it comes to, or the mistake.
//! `UPDATE_GOLDEN=1 cargo test -p portcullis-migrate --test it golden` writes what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use portcullis_config::{Config, Format};
use portcullis_migrate::{Fate, From, Options, migrate};

/// The number of cases; one that is missing would pass unseen.
const CASES: usize = 40;

/// The folder of all cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The syntaxes, and the file or folder that a person would name.
pub const SYNTAXES: [(From, &str); 5] = [
    (From::Nginx, "etc/nginx"),
    (From::Apache, "etc/apache2"),
    (From::IngressNginx, "manifests"),
    (From::CorazaCaddy, "etc/caddy"),
    (From::BunkerWeb, "etc/bunkerweb"),
];

/// The folders of a syntax.
pub fn cases(from: From) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder().join(from.name())).unwrap();
    let mut cases: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

#[test]
fn documents_and_reports_are_as_expected() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (from, entry) in SYNTAXES {
        for case in cases(from) {
            seen += 1;
            let options = Options { root: case.clone(), ..Options::default() };
            let root = case.canonicalize().unwrap().display().to_string();
            let text = match migrate(from, &[case.join(entry)], &options) {
                Ok(migrated) => {
                    Config::parse(&migrated.document, Format::Toml, "portcullis.toml").unwrap();
                    assert!(migrated.report.count(Fate::Taken) > 0, "{}", case.display());
                    format!("{}\n==== report\n{}", migrated.document, migrated.report.text())
                }
                Err(error) => format!("error: {error}\n"),
            };
            let text = text.replace(&root, "ROOT");
            let expected = case.with_extension("expected");
            if update {
                fs::write(&expected, &text).unwrap();
            } else if fs::read_to_string(&expected).unwrap_or_default() != text {
                wrong.push(format!("{}:\n{text}", expected.display()));
            }
        }
    }
    assert_eq!(seen, CASES, "cases came or went");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Two files of variables of one folder have the same rules beside them; each of their lines is read.
#[test]
fn files_of_one_folder_are_read_once() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let first =
        write("variables.env", "SERVER_NAME=a.example\nUSE_REVERSE_PROXY=yes\nX_FRAME_OPTIONS=DENY\n");
    let second = write(
        "more.env",
        "REVERSE_PROXY_HOST=http://app:80\nUSE_REVERSE_PROXY=yes\nX_FRAME_OPTIONS=SAMEORIGIN\n",
    );
    write("configs/modsec/own.conf", "SecRuleRemoveById 1\n");
    let options = Options { root: root.path().to_owned(), ..Options::default() };
    let migrated = migrate(From::BunkerWeb, &[first, second], &options).unwrap();
    assert!(migrated.document.contains("SAMEORIGIN"), "{}", migrated.document);
    let text = migrated.report.text();
    assert_eq!((migrated.report.items.len(), text.matches("own.conf").count()), (7, 1), "{text}");
    assert!(text.contains("`X_FRAME_OPTIONS=DENY`: the setting has another value below"), "{text}");
}
