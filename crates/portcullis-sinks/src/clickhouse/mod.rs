//! ClickHouse over HTTP: batches of rows in one table.

mod table;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_config::ClickHouse;
use portcullis_event::Event;
use portcullis_fetch::{Answer, NotTaken, Receiver, Settings, basic_login};

use crate::metrics::REFUSED;
use crate::otlp::fitting;
use crate::output::{Batches, Failure, Outcome};
pub use table::table_definition;

/// Bytes of the events of one request, roughly, as they are in memory.
const REQUEST_BYTES: usize = 8 << 20;
/// Between two tries to make the table while no event waits.
const CREATE_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct Output {
    insert: Receiver,
    /// Where statements go, until the table is made.
    create: Option<(Receiver, String)>,
    create_at: Instant,
    batches: Batches,
    /// The name of this host.
    node: String,
    complaint: Option<String>,
}

impl Output {
    pub(crate) fn new(settings: &ClickHouse, timeout: Duration, name: &str) -> io::Result<Output> {
        let ClickHouse { url, database, table, .. } = settings;
        let mut headers = vec![("Content-Type".to_owned(), "application/octet-stream".to_owned())];
        if let Some((user, password)) = &settings.login {
            headers.push(basic_login(user, password.expose()));
        }
        let key = format!("ca of the sink {name}");
        let to = |url: String| {
            let post = Settings { url, ca: settings.ca.clone(), headers: headers.clone(), timeout };
            Receiver::new(post, &key)
        };
        // Names are letters, digits and `_`. A table of another version may lack a column.
        let insert = format!(
            "{url}/?input_format_skip_unknown_fields=1&query=INSERT%20INTO%20{database}.{table}%20FORMAT%20JSONEachRow"
        );
        let create = settings
            .create
            .then(|| Ok::<_, io::Error>((to(format!("{url}/"))?, table_definition(database, table))));
        Ok(Output {
            insert: to(insert)?,
            create: create.transpose()?,
            create_at: Instant::now(),
            node: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            batches: Batches { events_max: settings.batch.events_max, time: settings.batch.time },
            complaint: None,
        })
    }

    /// Makes the table, if that is still to be done.
    fn create(&mut self) -> Result<(), NotTaken> {
        if let Some((receiver, statement)) = &self.create {
            accepted(receiver.send(statement.as_bytes())?)?;
            self.create = None;
        }
        Ok(())
    }

    fn insert(&mut self, events: &[Arc<Event>]) -> Result<(), NotTaken> {
        self.create()?;
        let mut body = Vec::with_capacity(4096 * events.len());
        events.iter().for_each(|event| table::write_row(event, &self.node, &mut body));
        accepted(self.insert.send(&body)?)
    }
}

impl crate::output::Output for Output {
    fn batches(&self) -> Batches {
        self.batches
    }

    fn deliver(&mut self, events: &[Arc<Event>]) -> Outcome {
        let count = fitting(events, REQUEST_BYTES);
        match self.insert(&events[..count]) {
            Ok(()) => Outcome::all(count),
            Err(NotTaken::ForNow { why, after }) => Outcome::failed(why, after),
            Err(NotTaken::Perhaps(why)) => Outcome::failed(why, None),
            Err(NotTaken::ForGood(why)) => {
                self.complaint = Some(format!("{why}; {count} events are lost"));
                Outcome::none(count, REFUSED)
            }
        }
    }

    fn next_tick(&self) -> Option<Instant> {
        self.create.as_ref().map(|_| self.create_at)
    }

    /// Makes the table at the start, before there is an event.
    fn tick(&mut self, ends: bool) -> Outcome {
        if ends {
            return Outcome::default();
        }
        self.create_at = Instant::now() + CREATE_PAUSE;
        let failure = self.create().err().map(|why| Failure { why: why.to_string(), after: None });
        Outcome { failure, ..Outcome::default() }
    }

    fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}

/// An error says its kind in the first line of the answer. Old servers answer 500 to all of them, whether
/// they pass or not: they are tried again, as a table may be made or a password set meanwhile.
fn accepted(answer: Answer) -> Result<(), NotTaken> {
    let text = String::from_utf8_lossy(&answer.body).lines().next().unwrap_or_default().to_owned();
    let may_pass = |status| matches!(status, 401 | 403 | 404 | 408 | 429 | 500..=599);
    let with_text = |why: String| if text.is_empty() { why } else { format!("{why}: {text}") };
    match answer.accepted(may_pass) {
        Ok(_) => Ok(()),
        Err(NotTaken::ForNow { why, after }) => Err(NotTaken::ForNow { why: with_text(why), after }),
        Err(NotTaken::ForGood(why)) => Err(NotTaken::ForGood(with_text(why))),
        Err(perhaps) => Err(perhaps),
    }
}
