use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use portcullis_identity::{
    Change, FILE, Identities, IdentityError, NewToken, Origin, Role, Sites, digest, random_secret,
};
use rusqlite::{Connection, params};

use crate::{NOW, PASSWORD, Place, me};

#[test]
fn only_its_owner_may_open_it() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a/b");
    let identities = Identities::open(&folder).unwrap();
    assert!(identities.is_empty().unwrap());
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    for name in [FILE.to_owned(), format!("{FILE}-wal"), format!("{FILE}-shm")] {
        assert_eq!(fs::metadata(folder.join(&name)).unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_place_that_others_can_write_to_is_refused() {
    let place = tempfile::tempdir().unwrap();
    drop(Identities::open(place.path()).unwrap());
    for (mode, fits) in [(0o755, true), (0o750, true), (0o770, false), (0o777, false), (0o1777, false)] {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(Identities::open(place.path()).is_ok(), fits, "{mode:o}");
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let file = place.path().join(FILE);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let error = Identities::open(place.path()).unwrap_err();
    assert!(error.to_string().contains("mode 0600"), "{error}");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/null", &file).unwrap();
    assert!(matches!(Identities::open(place.path()), Err(IdentityError::File(..))));
}

#[test]
fn a_newer_file_is_left_alone() {
    let place = Place::new();
    Connection::open(place.folder.path().join(FILE))
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    assert!(matches!(Identities::open(place.folder.path()), Err(IdentityError::TooNew(99))));
}

/// A file of the first version, from before users of providers and saved views.
#[test]
fn an_older_file_gets_what_is_new() {
    let place = Place::new();
    place.user("anna", Role::Admin);
    let older = "DROP TABLE views; DROP INDEX users_of_provider; ALTER TABLE users DROP COLUMN issuer;
        ALTER TABLE users DROP COLUMN subject; ALTER TABLE tokens DROP COLUMN last_address;
        ALTER TABLE audit DROP COLUMN change;
        ALTER TABLE users DROP COLUMN sites; ALTER TABLE tokens DROP COLUMN sites;
        DROP TABLE sessions;
        CREATE TABLE sessions (
            digest BLOB PRIMARY KEY,
            user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
            created INTEGER NOT NULL,
            last_used INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        PRAGMA user_version = 1;";
    let connection = Connection::open(place.folder.path().join(FILE)).unwrap();
    connection.execute_batch(older).unwrap();
    // A session that is open stays open.
    let (secret, now) = (random_secret("").unwrap(), NOW as i64);
    let sql = "INSERT INTO sessions (digest, user, created, last_used) VALUES (?, 1, ?, ?)";
    connection.execute(sql, params![digest(&secret), now, now]).unwrap();
    let opened = place.command_line();
    assert_eq!(opened.user("anna").unwrap().unwrap().origin, Origin::Local);
    let session = opened.session_of(&secret, "192.0.2.1", NOW).unwrap().unwrap();
    assert_eq!((session.number, session.user.name.as_str()), (1, "anna"));
    opened.save_view(session.user.id, None, "all", "#/events", NOW).unwrap();
}

#[test]
fn what_is_no_database_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join(FILE);
    fs::write(&file, "no database at all, but long enough to look at".repeat(100)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(Identities::open(place.path()), Err(IdentityError::Sqlite(_))));
}

#[test]
fn the_audit_trail_is_append_only() {
    let place = Place::new();
    place.user("anna", Role::Admin);
    let connection = Connection::open(place.folder.path().join(FILE)).unwrap();
    for sql in ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "DELETE FROM audit WHERE number = 1"] {
        let error = connection.execute(sql, ()).unwrap_err().to_string();
        assert!(error.contains("append-only"), "{error}");
    }
    assert_eq!(place.actions(), ["user.create"]);
}

/// A copy of the folder gives nobody access.
#[test]
fn no_secret_is_in_the_files() {
    let place = Place::new();
    let user = place.user("anna", Role::Admin);
    let new = NewToken { name: "ci".to_owned(), role: Role::Admin, sites: Sites::All, expires: None };
    let (_, token) = place.server.create_token(&new, &me(), NOW).unwrap();
    let session = place.server.start_session(&user, "192.0.2.1", "Firefox", &me(), NOW).unwrap();
    let change = Change { password: Some("another fine password".to_owned()), ..Change::default() };
    place.server.change_user("anna", None, &change, &me(), NOW).unwrap();
    let mut all = Vec::new();
    for entry in fs::read_dir(place.folder.path()).unwrap() {
        all.extend(fs::read(entry.unwrap().path()).unwrap());
    }
    assert!(all.len() > 10_000);
    for secret in [&token, &token[4..], &session, PASSWORD, "another fine password"] {
        assert!(!all.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
}

/// The data folder itself may be a link, as on systems that keep `/var` elsewhere; the file may not.
#[test]
fn links_lead_to_the_folder_only() {
    let place = tempfile::tempdir().unwrap();
    let (folder, link) = (place.path().join("data"), place.path().join("link"));
    drop(Identities::open(&folder).unwrap());
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    assert!(Identities::open(&link).is_ok());
    let elsewhere = place.path().join("elsewhere.db");
    fs::rename(folder.join(FILE), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.join(FILE)).unwrap();
    assert!(Identities::open(&folder).is_err());
    assert!(Identities::open(&link).is_err());
}
