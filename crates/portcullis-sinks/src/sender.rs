//! The sinks of a process, and the workers' end of them.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_config::{EventSink, SinkTarget};
use portcullis_event::Event;
use portcullis_log::QueueLimits;
use portcullis_metrics::Registry;
use portcullis_query::{Field, Filter};

use crate::metrics::{Metrics, REASONS};
use crate::output_of;
use crate::worker::{Worker, WorkerSettings, WorkerThread, printable};

/// Takes a line for the operator.
pub(crate) type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// The running sinks.
pub struct Sinks {
    sender: Sender,
    threads: Vec<WorkerThread>,
}

/// The workers' end. Cheap to clone.
#[derive(Clone)]
pub struct Sender(Arc<[Inlet]>);

/// The queue of one sink.
struct Inlet {
    filter: Option<Filter>,
    queue: portcullis_log::Sender<Arc<Event>>,
}

/// What became of an event that was sent once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The time that it took.
    pub time: Duration,
    /// The reason why the receiver does not have it, without secrets; none: it was sent.
    pub error: Option<String>,
    /// The receiver has said that it has it. Receivers of syslog say nothing.
    pub is_confirmed: bool,
}

impl Sender {
    /// False if there is no sink.
    pub fn is_enabled(&self) -> bool {
        !self.0.is_empty()
    }

    /// Leaves an event to each sink whose filter it passes, or drops and counts it there. Never waits.
    pub fn submit(&self, event: &Arc<Event>) {
        for inlet in &*self.0 {
            if inlet.filter.as_ref().is_none_or(|filter| filter.matches(event)) {
                inlet.queue.submit(Arc::clone(event));
            }
        }
    }
}

impl Sinks {
    /// Returns the error that would prevent a start: authorities that cannot be read.
    pub fn check(settings: &[EventSink]) -> io::Result<()> {
        settings.iter().try_for_each(|sink| output_of(sink).map(drop))
    }

    /// Sends an event to the receiver of a sink, whatever its filter: once, on a connection of its own,
    /// beside the sinks that run and without their queues and counters. It takes as long as the time limits
    /// of the sink allow.
    pub fn send_once(sink: &EventSink, event: Event) -> Delivery {
        let begin = Instant::now();
        let result = output_of(sink).map_err(|error| error.to_string()).and_then(|mut output| {
            let outcome = output.deliver(&[Arc::new(event)]);
            match outcome.failure {
                _ if outcome.sent > 0 => Ok(()),
                Some(failure) => Err(failure.why),
                None => Err(output.complaint().unwrap_or_else(|| {
                    let reasons = outcome.dropped.iter().filter_map(|(why, _)| REASONS.get(*why).copied());
                    reasons.collect::<Vec<_>>().join(", ")
                })),
            }
        });
        let is_confirmed = result.is_ok() && !matches!(sink.to, SinkTarget::Syslog(_));
        let error = result.err().map(|why| printable(&why));
        Delivery { time: begin.elapsed(), error, is_confirmed }
    }

    /// Starts a thread for each sink; none connects before there is an event, but where a table is to be
    /// created. `say` takes a line for the operator. Errors: authorities that cannot be read, no thread.
    pub fn start(
        settings: &[EventSink],
        registry: &Registry,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Sinks> {
        let say: Say = Arc::new(say);
        let (mut inlets, mut threads) = (Vec::new(), Vec::new());
        for sink in settings {
            let metrics = Metrics::new(registry, &sink.name);
            let limits = QueueLimits {
                events_max: sink.queue_events_max,
                bytes_max: usize::try_from(sink.queue_bytes_max).unwrap_or(usize::MAX),
            };
            let (queue, receiver) =
                portcullis_log::queue(limits, metrics.queued.clone(), metrics.dropped.clone());
            // A filter that asks for any text of the event needs its JSON, which is not made in the worker of
            // a request. All others are: the queue holds what the receiver wants, and nothing pushes it out.
            let (before, behind) = match &sink.filter {
                Some(filter) if filter.asks_for(Field::Text) => (None, sink.filter.clone()),
                filter => (filter.clone(), None),
            };
            inlets.push(Inlet { filter: before, queue });
            let settings = WorkerSettings { name: sink.name.clone(), filter: behind, retry: sink.retry };
            let worker = Worker::new(settings, receiver, output_of(sink)?, metrics, Arc::clone(&say));
            threads.push(worker.start()?);
        }
        Ok(Sinks { sender: Sender(inlets.into()), threads })
    }

    /// A handle for workers.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Delivers what waits and ends, but waits no longer than `deadline` for all sinks together. Returns how
    /// many events were lost by that, which are counted under `shutdown`, as is what is submitted from now
    /// on.
    pub fn shutdown(self, deadline: Duration) -> u64 {
        let end = Instant::now() + deadline;
        self.threads.iter().for_each(WorkerThread::stop);
        self.threads.into_iter().map(|thread| thread.join(end)).sum()
    }
}
