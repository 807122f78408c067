//! Identities as the server and the command line see them: two handles on one folder.
#![allow(clippy::unwrap_used, reason = "tests")]

mod audit;
mod file;
mod provided;
mod sessions;
mod tokens;
mod users;
mod views;

use portcullis_identity::{Actor, Identities, NewUser, Role, Sites};
use tempfile::TempDir;

/// A moment.
const NOW: u64 = 1_790_000_000;
const PASSWORD: &str = "correct horse battery";

struct Place {
    folder: TempDir,
    server: Identities,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let server = Identities::open(folder.path()).unwrap();
        Place { folder, server }
    }

    /// Another handle, as another process has it.
    fn command_line(&self) -> Identities {
        Identities::open(self.folder.path()).unwrap()
    }

    fn user(&self, name: &str, role: Role) -> portcullis_identity::User {
        let new = NewUser { name: name.to_owned(), role, sites: Sites::All, password: PASSWORD.to_owned() };
        self.server.create_user(&new, &me(), NOW).unwrap()
    }

    /// Actions of the audit trail, oldest first.
    fn actions(&self) -> Vec<String> {
        let mut entries = self.server.audit(None, 1000).unwrap();
        entries.reverse();
        entries.into_iter().map(|entry| entry.action).collect()
    }
}

fn me() -> Actor {
    Actor { name: "user:me".to_owned(), address: Some("192.0.2.1".to_owned()) }
}
