//! The way to the database: a statement there, a bounded answer back, counted by how it ended.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use portcullis_config::{EventDatabase, Password};
use portcullis_event_store::QueryError;
use portcullis_fetch::{NotTaken, Receiver, Settings, basic_login};
use portcullis_metrics::{EnumCounters, Registry, catalogue};

/// Bytes of an answer.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Bytes of the file with the password.
const PASSWORD_BYTES_MAX: u64 = 4096;
/// Time for an answer beyond that of the query itself, in which the database says that it was too late.
const SLACK: Duration = Duration::from_secs(1);
/// Characters of an error of the database that are reported.
const ERROR_CHARS_MAX: usize = 300;
/// Results of questions, as they are counted.
const RESULTS: &[&str] = &["answered", "unavailable", "late"];

#[derive(Debug)]
pub(crate) struct Link {
    receiver: Receiver,
    results: EnumCounters,
    /// Longest time of a question.
    timeout: Duration,
}

/// The end of the time that a question has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Link {
    pub(crate) fn new(settings: &EventDatabase, registry: &Registry) -> io::Result<Link> {
        let mut headers = vec![("Content-Type".to_owned(), "text/plain; charset=utf-8".to_owned())];
        match &settings.login {
            Some((user, Password::Text(password))) => headers.push(basic_login(user, password.expose())),
            Some((user, Password::File(path))) => headers.push(basic_login(user, &read_password(path)?)),
            None => {}
        }
        // Whatever the user may do, this may only read and choose settings. Answers are buffered there, so
        // that an error that comes late does not end an answer of status 200.
        let url = format!("{}/?readonly=2&wait_end_of_query=1", settings.url);
        let post = Settings { url, ca: settings.ca.clone(), headers, timeout: settings.timeout };
        let receiver = Receiver::new(post, "events.read_from.ca")?;
        let results = registry.enum_counters(&catalogue::EVENT_DATABASE_QUERIES, &[], RESULTS);
        Ok(Link { receiver, results, timeout: settings.timeout })
    }

    /// The end of a question that may take so long.
    pub(crate) fn deadline(&self, patience: Duration) -> Deadline {
        Deadline(Instant::now() + patience.min(self.timeout))
    }

    /// The answer to a `SELECT`, as a JSON object a line. `more`: settings of it, each with `, ` before it.
    pub(crate) fn ask(&self, select: &str, more: &str, deadline: Deadline) -> Result<Vec<u8>, QueryError> {
        let answer = self.try_ask(select, more, deadline);
        self.results.inc(match &answer {
            Ok(_) => 0,
            Err(QueryError::Late(_)) => 2,
            Err(_) => 1,
        });
        answer
    }

    fn try_ask(&self, select: &str, more: &str, deadline: Deadline) -> Result<Vec<u8>, QueryError> {
        let left = deadline.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(QueryError::Late("the time was up before all of it was asked".to_owned()));
        }
        let seconds = left.as_secs() + 1;
        // A profile may say `break`, which cuts answers short without a word.
        let statement = format!(
            "{select} SETTINGS max_execution_time = {seconds}, timeout_overflow_mode = 'throw', \
             read_overflow_mode = 'throw', sort_overflow_mode = 'throw', result_overflow_mode = 'throw'{more} \
             FORMAT JSONEachRow"
        );
        let answer = self.receiver.ask(statement.as_bytes(), ANSWER_BYTES_MAX, left + SLACK);
        let answer = answer.map_err(|error| match error {
            NotTaken::Perhaps(why) => QueryError::Late(why),
            NotTaken::ForNow { why, .. } | NotTaken::ForGood(why) => QueryError::Unavailable(why),
        })?;
        match answer.status {
            200 => Ok(answer.body),
            status => Err(refusal(status, &String::from_utf8_lossy(&answer.body))),
        }
    }
}

/// The error that an answer without rows tells, by the number of ClickHouse's error.
fn refusal(status: u16, text: &str) -> QueryError {
    let line = text.lines().next().unwrap_or_default();
    let said: String = line.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect();
    let digits = said.split_once("Code: ").map_or("", |(_, rest)| rest);
    let code = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let hint = match code {
        // TIMEOUT_EXCEEDED, TOO_SLOW.
        "159" | "160" => return QueryError::Late(format!("it answers {status}: {said}")),
        // NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_IDENTIFIER.
        "16" | "47" => "; the table is older than the column: docs/sinks.md has the statement that adds it",
        // UNKNOWN_TABLE, UNKNOWN_DATABASE.
        "60" | "81" => "; a sink of kind `clickhouse` with `create = true` makes the table",
        // READONLY.
        "164" => "; the user of `events.read_from` needs `readonly` 0 or 2: questions set their limits",
        _ => "",
    };
    QueryError::Unavailable(format!("it answers {status}: {said}{hint}"))
}

/// The text of a file, without the line end behind it.
fn read_password(path: &Path) -> io::Result<String> {
    let explain =
        |why: String| io::Error::other(format!("events.read_from.password_file {}: {why}", path.display()));
    let text = portcullis_files::read_text(path, PASSWORD_BYTES_MAX).map_err(|error| {
        let hint = if error.kind() == io::ErrorKind::FileTooLarge { ", which is no password" } else { "" };
        explain(format!("{error}{hint}"))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_database_are_told_apart() {
        let late = "Code: 159, e.displayText() = DB::Exception: Timeout exceeded: elapsed 1 seconds";
        assert!(matches!(refusal(500, late), QueryError::Late(_)));
        let late = r#"{"exception": "Code: 159. DB::Exception: Timeout exceeded"}"#;
        assert!(matches!(refusal(500, late), QueryError::Late(_)));
        for (text, hint) in [
            ("Code: 60. DB::Exception: Table default.x does not exist", "create = true"),
            ("Code: 47, e.displayText() = DB::Exception: Unknown identifier: node", "docs/sinks.md"),
            ("Code: 164. DB::Exception: Cannot modify 'readonly' setting", "needs `readonly` 0 or 2"),
            ("<html>\u{1b}[31m 159", "it answers 502: <html>[31m 159"),
            ("", "it answers 502: "),
        ] {
            let QueryError::Unavailable(why) = refusal(502, text) else { panic!("{text}") };
            assert!(why.contains(hint), "{why}");
        }
        let QueryError::Unavailable(why) = refusal(500, &"a".repeat(10_000)) else { panic!() };
        assert!(why.len() < 400);
    }

    #[test]
    fn a_password_is_the_text_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (text, expected) in [("hunter2\n", "hunter2"), ("a b \r\n", "a b "), ("", "")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read_password(&path).unwrap(), expected);
        }
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(read_password(&path).unwrap_err().to_string().contains("more than 4096 bytes"));
        let error = read_password(&folder.path().join("none")).unwrap_err().to_string();
        assert!(
            error.starts_with("events.read_from.password_file ") && error.contains("No such file"),
            "{error}"
        );
    }
}
