//! Logs of OpenTelemetry: batches of protocol buffers over HTTP.
//!
//! A batch whose answer did not come in time is sent again: a record may then be there twice, with the same
//! `portcullis.request_id`.

mod proto;
mod record;

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_config::{EventForm, OtlpLogs, Secret};
use portcullis_event::Event;
use portcullis_fetch::{NotTaken, Receiver, Settings, is_retryable_in_otlp};
use prost::Message as _;

use crate::metrics::REFUSED;
use crate::output::{Batches, Outcome};
use proto::ExportLogsServiceResponse;

/// Bytes of the events of one request, roughly, as they are in memory: collectors take 20 MiB unless told
/// otherwise, gateways in front of them often less.
const REQUEST_BYTES: usize = 4 << 20;

pub(crate) struct Output {
    receiver: Receiver,
    service: String,
    form: EventForm,
    batches: Batches,
    complaint: Option<String>,
}

impl Output {
    pub(crate) fn new(settings: &OtlpLogs, timeout: Duration, name: &str) -> io::Result<Output> {
        let mut headers = vec![("Content-Type".to_owned(), "application/x-protobuf".to_owned())];
        headers.extend(exposed(&settings.headers));
        let post = Settings { url: settings.url.clone(), ca: settings.ca.clone(), headers, timeout };
        Ok(Output {
            receiver: Receiver::new(post, &format!("ca of the sink {name}"))?,
            service: settings.service.clone(),
            form: settings.form,
            batches: Batches { events_max: settings.batch.events_max, time: settings.batch.time },
            complaint: None,
        })
    }
}

impl crate::output::Output for Output {
    fn batches(&self) -> Batches {
        self.batches
    }

    fn deliver(&mut self, events: &[Arc<Event>]) -> Outcome {
        let count = fitting(events, REQUEST_BYTES);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let request =
            record::request(&self.service, self.form, now, events[..count].iter().map(|event| &**event));
        let answer = self.receiver.send(&request.encode_to_vec());
        match answer.and_then(|answer| answer.accepted(is_retryable_in_otlp)) {
            Ok(body) => {
                let rejected = rejected(&body).min(count as u64);
                if rejected > 0 {
                    self.complaint = Some(format!("the collector rejected {rejected} of {count} events"));
                }
                let dropped = if rejected > 0 { vec![(REFUSED, rejected)] } else { Vec::new() };
                Outcome { settled: count, sent: count as u64 - rejected, dropped, failure: None }
            }
            Err(NotTaken::ForNow { why, after }) => Outcome::failed(why, after),
            Err(NotTaken::Perhaps(why)) => Outcome::failed(why, None),
            Err(NotTaken::ForGood(why)) => {
                self.complaint = Some(format!("{why}; {count} events are lost"));
                Outcome::none(count, REFUSED)
            }
        }
    }

    fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }
}

/// The first events that have so many bytes together, one at least.
pub(crate) fn fitting(events: &[Arc<Event>], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let count = events.iter().take_while(|event| {
        bytes += event.size_estimate();
        bytes <= bytes_max
    });
    count.count().max(1).min(events.len())
}

pub(crate) fn exposed(headers: &[(String, Secret)]) -> impl Iterator<Item = (String, String)> + '_ {
    headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()))
}

/// The number of records that an answer reports as not taken.
fn rejected(body: &[u8]) -> u64 {
    let answer = ExportLogsServiceResponse::decode(body).unwrap_or_default();
    let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_log_records);
    u64::try_from(rejected).unwrap_or(0)
}
