//! The file: opened for its owner alone, with a version and migrations.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::IdentityError;

/// The file's name in the data folder.
pub const FILE: &str = "identities.db";
/// Longest wait for a lock of another process.
const BUSY: Duration = Duration::from_secs(5);

/// Statements that lead from each version to the next. What is listed is never changed, only added to.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE tokens (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        digest BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER,
        last_used INTEGER,
        revoked INTEGER
    ) STRICT;
    CREATE TABLE users (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        password TEXT NOT NULL,
        created INTEGER NOT NULL,
        disabled INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT 1,
        totp BLOB,
        -- A secret that no code has confirmed yet.
        totp_offered BLOB,
        -- The time step of the last code, which is not accepted again.
        totp_step INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE sessions (
        digest BLOB PRIMARY KEY,
        user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        created INTEGER NOT NULL,
        last_used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions (user, created);
    -- Networks from which a user has logged in: a lock-out does not apply to them.
    CREATE TABLE known_networks (
        user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        network TEXT NOT NULL,
        last_used INTEGER NOT NULL,
        PRIMARY KEY (user, network)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        actor TEXT NOT NULL,
        address TEXT,
        action TEXT NOT NULL,
        object TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
    CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
    CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
",
    "
    -- Users of a provider: its name, and the user's name there. Their password is empty, which none matches.
    ALTER TABLE users ADD COLUMN issuer TEXT;
    ALTER TABLE users ADD COLUMN subject TEXT;
    CREATE UNIQUE INDEX users_of_provider ON users (issuer, subject) WHERE issuer IS NOT NULL;
",
    "
    -- Sessions have a number, by which they are listed and ended, and say where they were begun and last used.
    CREATE TABLE numbered_sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        digest BLOB NOT NULL UNIQUE,
        user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        created INTEGER NOT NULL,
        last_used INTEGER NOT NULL,
        address TEXT,
        last_address TEXT,
        agent TEXT NOT NULL DEFAULT ''
    ) STRICT;
    INSERT INTO numbered_sessions (digest, user, created, last_used)
        SELECT digest, user, created, last_used FROM sessions ORDER BY created;
    DROP TABLE sessions;
    ALTER TABLE numbered_sessions RENAME TO sessions;
    CREATE INDEX sessions_of_user ON sessions (user, created);
    ALTER TABLE tokens ADD COLUMN last_address TEXT;
",
    "
    -- The difference that a change made, where there is one.
    ALTER TABLE audit ADD COLUMN change TEXT NOT NULL DEFAULT '';
",
    "
    -- Places in the console.
    CREATE TABLE views (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        place TEXT NOT NULL,
        saved INTEGER NOT NULL,
        UNIQUE (user, name)
    ) STRICT;
",
    "
    -- Names of the sites that an identity is limited to, one in each line; null: all sites.
    ALTER TABLE users ADD COLUMN sites TEXT;
    ALTER TABLE tokens ADD COLUMN sites TEXT;
",
];

/// The identities of one data folder.
#[derive(Debug)]
pub struct Identities {
    connection: Mutex<Connection>,
}

impl Identities {
    /// Opens the file in a data folder; makes both if need be.
    pub fn open(folder: &Path) -> Result<Identities, IdentityError> {
        make_folder(folder)?;
        let folder =
            &fs::canonicalize(folder).map_err(|error| IdentityError::File(folder.to_owned(), error))?;
        let path = folder.join(FILE);
        make_file(folder, &path)?;
        // Root may work in a folder of the service, whose user must not be able to turn it elsewhere by a
        // link.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let mut connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // Few writes, none of which a power failure may undo: a revoked token must stay revoked.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "secure_delete", true)?;
        // The file may have been put there by others: no function of its schema may have an effect.
        connection.pragma_update(None, "trusted_schema", false)?;
        migrate(&mut connection)?;
        Ok(Identities { connection: Mutex::new(connection) })
    }

    /// The connection. A panic while it was held left no transaction open: they roll back when dropped.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in a transaction that excludes other writers from its beginning.
    pub(crate) fn change<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, IdentityError>,
    ) -> Result<T, IdentityError> {
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// True if there is neither a user nor a token, as before the first start.
    pub fn is_empty(&self) -> Result<bool, IdentityError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM users) AND NOT EXISTS (SELECT 1 FROM tokens)";
        Ok(self.connection().query_row(sql, (), |row| row.get(0))?)
    }
}

fn migrate(connection: &mut Connection) -> Result<(), IdentityError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = MIGRATIONS.len() as i64;
    if version > known {
        return Err(IdentityError::TooNew(version));
    }
    for statements in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(statements)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// Makes the folder for its owner alone. One that is there is left as it is, but nobody else may write to it:
/// who can replace the file is administrator.
fn make_folder(folder: &Path) -> Result<(), IdentityError> {
    let failed = |error| IdentityError::File(folder.to_owned(), error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let found = std::fs::metadata(folder).map_err(failed)?;
    if found.mode() & 0o022 != 0 {
        return Err(IdentityError::Open(folder.to_owned()));
    }
    Ok(())
}

/// Makes the file before SQLite does, so that it never has another mode. What SQLite keeps beside it gets the
/// same.
fn make_file(folder: &Path, path: &Path) -> Result<(), IdentityError> {
    let failed = |error| IdentityError::File(path.to_owned(), error);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            // Root may make it for the service, which owns the folder. The open file gets the owner, not the
            // path: what is there now may be a link that the service's user put in its place.
            let owner = std::fs::metadata(folder).map_err(failed)?;
            let own = file.metadata().map_err(failed)?;
            if owner.uid() != own.uid() {
                std::os::unix::fs::fchown(&file, Some(owner.uid()), Some(owner.gid())).map_err(failed)?;
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(path).map_err(failed)?;
            if !found.is_file() || found.mode() & 0o077 != 0 {
                let message = "it must be a file that only its owner may open (mode 0600)";
                return Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, message)));
            }
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}
