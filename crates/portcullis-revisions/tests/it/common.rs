//! A document in a folder of its own, and a program that only pretends to serve by it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use portcullis_revisions::{Author, Document, Live, LiveResult, Revisions, Text};

/// A document with what people write: comments, orders, tables in lines and of their own.
pub const DOCUMENT: &str = r#"# The shop. Keep in step with the wiki.
listeners = [{ address = "127.0.0.1:8080" }]   # behind the balancer

[access.deny]
networks = [
    "198.51.100.0/24",   # scanners
    "203.0.113.7",
]

[[sites]]
name = "shop"          # as in metrics
hosts = ["shop.example"]
upstream = "app"
engine = "detection_only"   # until Friday

[[sites.routes]]
path = "/api/"
mode = "off"

[[sites.routes]]
name = "editor"
path = "/edit/"
semantic = { classes = { xss = "log" }, exclude = [{ class = "xss", location = "form:body" }] }

[[sites]]
name = "blog"
hosts = ["blog.example"]
upstream = "app"
mode = "both"
rules = { crs = "crs", paranoia = 2, directives = "SecRuleRemoveById 920350" }   # CRS

[sites.semantic]
classes = { ssrf = "off" }

# The editor sends HTML.
[[sites.semantic.exclude]]
class = "xss"
location = "form:text"
path = "/posts/"

# The one application.
[upstreams.app]
endpoints = ["http://127.0.0.1:9000"]
"#;

/// A program that loads what it is told, or not.
#[derive(Clone, Default)]
pub struct Program {
    pub loaded: Arc<Mutex<Vec<String>>>,
    pub fails: Arc<Mutex<Option<String>>>,
}

impl Live for Program {
    fn load(&self, text: &str, write: Box<dyn FnOnce() -> Result<(), String> + Send>) -> LiveResult {
        if let Some(why) = self.fails.lock().unwrap().clone() {
            return Some(Err(why));
        }
        if let Err(error) = write() {
            return Some(Err(error));
        }
        self.loaded.lock().unwrap().push(text.to_owned());
        Some(Ok("reloaded".to_owned()))
    }
}

pub struct Place {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
    pub program: Program,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("portcullis.toml");
        fs::write(&path, DOCUMENT).unwrap();
        Place { folder, path, program: Program::default() }
    }

    pub fn open(&self, read_only: bool) -> Revisions {
        let document = Document::new(&self.path).unwrap();
        let live = Box::new(self.program.clone());
        let revisions = Revisions::open(self.folder.path(), document, live, read_only).unwrap();
        revisions.serves(&self.text(), 1).unwrap();
        revisions
    }

    pub fn text(&self) -> Text {
        Document::new(&self.path).unwrap().read().unwrap()
    }
}

pub fn author() -> Author {
    Author { name: "user:anna".to_owned(), reason: "because".to_owned() }
}
