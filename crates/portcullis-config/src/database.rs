//! `events.read_from`: a database of events that many nodes write to.

use std::path::PathBuf;
use std::time::Duration;

use crate::mistakes::Mistakes;
use crate::raw::ReadFrom;
use crate::receiver;
use crate::sinks::{Secret, check};

const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// A table of events in ClickHouse, to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDatabase {
    /// `http://host:port`, or the same with https.
    pub url: String,
    /// PEM file of the only authorities to trust.
    pub ca: Option<PathBuf>,
    /// User and password, without a colon in the former.
    pub login: Option<(String, Password)>,
    /// The database: letters, digits and `_`.
    pub database: String,
    /// The table: letters, digits and `_`.
    pub table: String,
    /// Longest time of a question.
    pub timeout: Duration,
}

/// A password, or where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// The password.
    Text(Secret),
    /// The file that has it.
    File(PathBuf),
}

pub(crate) fn check(mistakes: &mut Mistakes<'_>, raw: Option<ReadFrom>) -> Option<EventDatabase> {
    let raw = raw?;
    // Mistakes show a line: never that of a secret.
    let span = raw.kind.span.clone();
    let password = match (raw.password, raw.password_file) {
        (Some(_), Some(_)) => {
            let message = "there is both a `password` and a `password_file`".to_string();
            mistakes.wrong_with_hint(span.clone(), message, "keep one of them".to_string());
            None
        }
        (Some(text), None) => Some(Password::Text(Secret::new(text.value))),
        (None, Some(file)) => Some(Password::File(mistakes.path(&file))),
        (None, None) => None,
    };
    let login = match (&raw.user, password) {
        (Some(user), password) => {
            check::user(mistakes, user);
            Some((user.value.clone(), password.unwrap_or_else(|| Password::Text(Secret::new(String::new())))))
        }
        (None, Some(_)) => {
            mistakes.wrong_with_hint(
                span.clone(),
                "a password needs a `user`".to_string(),
                "add `user`".to_string(),
            );
            None
        }
        (None, None) => None,
    };
    let timeout = match raw.timeout {
        Some(time) if !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&time.0) => {
            mistakes.wrong(time.span, "timeout must be 100ms to 10m".to_string());
            TIMEOUT
        }
        Some(time) => time.value.0,
        None => TIMEOUT,
    };
    let database = check::identifier(mistakes, raw.database.as_ref(), "database", "default");
    let table = check::identifier(mistakes, raw.table.as_ref(), "table", "portcullis_events");
    let url = receiver::receiver(mistakes, &span, raw.url.as_ref(), raw.ca.as_ref(), false)?;
    let ca = raw.ca.as_ref().map(|ca| mistakes.path(ca));
    Some(EventDatabase { url: url.origin(), ca, login, database, table, timeout })
}
