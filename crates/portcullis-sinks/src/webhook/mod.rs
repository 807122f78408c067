//! Webhooks: a POST request with a JSON body for each event, up to so many in a minute.
//!
//! Of the events beyond them the newest is kept and sent as soon as a message may go again, with the number
//! of the others: so the end of a flood is reported, though no event follows it.

mod fill;
mod rate;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_config::{JsonTemplate, Webhook};
use portcullis_event::Event;
use portcullis_fetch::{NotTaken, Receiver, Settings};

use crate::metrics::{RATE_LIMIT, REFUSED};
use crate::otlp::exposed;
use crate::output::{Batches, Outcome};
use rate::Rate;

/// Events that are looked at between two looks at the queue.
const BATCH_EVENTS: usize = 64;
/// Says how many events were kept back, whatever the template.
const SUPPRESSED_HEADER: &str = "X-Portcullis-Suppressed";

pub(crate) struct Output {
    receiver: Receiver,
    template: JsonTemplate,
    rate: Rate,
    /// The newest event that had to wait.
    held: Option<Arc<Event>>,
    /// Events that were dropped since the last message.
    suppressed: u64,
    complaint: Option<String>,
}

/// Result of one message.
enum Sent {
    Yes,
    Refused,
    NotNow(String, Option<Duration>),
}

impl Output {
    pub(crate) fn new(settings: &Webhook, timeout: Duration, name: &str) -> io::Result<Output> {
        let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        headers.extend(exposed(&settings.headers));
        let post =
            Settings { url: settings.url.expose().to_owned(), ca: settings.ca.clone(), headers, timeout };
        Ok(Output {
            receiver: Receiver::new(post, &format!("ca of the sink {name}"))?,
            template: settings.template.clone(),
            rate: Rate::new(settings.per_minute, Instant::now()),
            held: None,
            suppressed: 0,
            complaint: None,
        })
    }

    fn send(&mut self, event: &Event) -> Sent {
        let body = fill::body(&self.template, event, self.suppressed).to_string();
        let headers = [(SUPPRESSED_HEADER, self.suppressed.to_string())];
        let headers = if self.suppressed > 0 { &headers[..] } else { &[] };
        let answer = self.receiver.send_with(body.as_bytes(), headers);
        let may_pass = |status| matches!(status, 408 | 425 | 429 | 500..=599);
        match answer.and_then(|answer| answer.accepted(may_pass)) {
            Ok(_) => {
                self.rate.take(Instant::now());
                self.suppressed = 0;
                Sent::Yes
            }
            Err(NotTaken::ForGood(why)) => {
                // A receiver that refuses is not asked more often than one that accepts.
                self.rate.take(Instant::now());
                self.complaint = Some(format!("{why}; an event is lost"));
                Sent::Refused
            }
            Err(NotTaken::ForNow { why, after }) => Sent::NotNow(why, after),
            // It may have the message: people read it twice rather than never.
            Err(NotTaken::Perhaps(why)) => Sent::NotNow(why, None),
        }
    }

    /// Keeps an event that has to wait; drops the one that waited.
    fn hold(&mut self, event: &Arc<Event>, outcome: &mut Outcome) {
        if self.held.replace(Arc::clone(event)).is_some() {
            self.suppressed += 1;
            outcome.dropped.push((RATE_LIMIT, 1));
        }
    }
}

impl crate::output::Output for Output {
    fn batches(&self) -> Batches {
        Batches { events_max: BATCH_EVENTS, time: Duration::ZERO }
    }

    fn deliver(&mut self, events: &[Arc<Event>]) -> Outcome {
        let mut outcome = Outcome::default();
        for event in events {
            if self.rate.next() > Instant::now() {
                self.hold(event, &mut outcome);
                outcome.settled += 1;
                continue;
            }
            // The one that waited is older, and among those that this message tells of.
            if self.held.take().is_some() {
                self.suppressed += 1;
                outcome.dropped.push((RATE_LIMIT, 1));
            }
            match self.send(event) {
                Sent::Yes => outcome.sent += 1,
                Sent::Refused => outcome.dropped.push((REFUSED, 1)),
                Sent::NotNow(why, after) => {
                    let Outcome { failure, .. } = Outcome::failed(why, after);
                    outcome.failure = failure;
                    return outcome;
                }
            }
            outcome.settled += 1;
        }
        outcome
    }

    fn next_tick(&self) -> Option<Instant> {
        self.held.as_ref().map(|_| self.rate.next())
    }

    fn tick(&mut self, ends: bool) -> Outcome {
        let Some(event) = self.held.take() else { return Outcome::default() };
        let mut outcome = Outcome::default();
        if !ends && self.rate.next() > Instant::now() {
            self.held = Some(event);
            return outcome;
        }
        match self.send(&event) {
            Sent::Yes => outcome.sent = 1,
            Sent::Refused => outcome.dropped.push((REFUSED, 1)),
            Sent::NotNow(why, after) if ends => {
                outcome.dropped.push((crate::metrics::SHUTDOWN, 1));
                outcome.failure = Outcome::failed(why, after).failure;
            }
            Sent::NotNow(why, after) => {
                // Tried again as if a message had gone.
                self.rate.take(Instant::now());
                self.held = Some(event);
                outcome.failure = Outcome::failed(why, after).failure;
            }
        }
        outcome
    }

    fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}
