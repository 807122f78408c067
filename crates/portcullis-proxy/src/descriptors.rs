//! Lines for the operator when the system has no descriptors or memory left for connections.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis_metrics::{EnumCounters, Registry, catalogue};
use rustix::io::Errno;

/// Between two lines of it.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// Open files of this process.
    OfProcess,
    /// Open files of the system.
    OfSystem,
    /// Memory of the kernel.
    Memory,
    Other,
}

impl Lack {
    /// Label values of `portcullis_accept_errors_total`.
    const NAMES: [&'static str; 4] = ["process_files", "system_files", "memory", "other"];

    fn of(error: &io::Error) -> Lack {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => Lack::OfProcess,
            Some(Errno::NFILE) => Lack::OfSystem,
            Some(Errno::NOBUFS | Errno::NOMEM) => Lack::Memory,
            _ => Lack::Other,
        }
    }

    fn way_out(self) -> &'static str {
        match self {
            Lack::OfProcess => {
                "this process may not open more files: raise LimitNOFILE= of the service (ulimit -n), or lower \
                 limits.connections"
            }
            Lack::OfSystem => "the system has too many open files: raise fs.file-max (sysctl)",
            Lack::Memory => "the system has no memory for more connections",
            Lack::Other => "the system does not give it to us",
        }
    }
}

/// Counts connections that cannot be accepted, and says so now and then.
pub(crate) struct Descriptors {
    counters: EnumCounters,
    started: Instant,
    /// Seconds after the start at which the next line may be said.
    next: AtomicU64,
}

impl Descriptors {
    pub(crate) fn new(registry: &Registry) -> Self {
        Descriptors {
            counters: registry.enum_counters(&catalogue::ACCEPT_ERRORS, &[], &Lack::NAMES),
            started: Instant::now(),
            next: AtomicU64::new(0),
        }
    }

    /// A connection waits, and `error` is why it cannot be accepted.
    pub(crate) fn lack(&self, error: &io::Error, say: &dyn Fn(&str)) {
        let lack = Lack::of(error);
        self.counters.inc(lack as usize);
        let now = self.started.elapsed().as_secs();
        let next = self.next.load(Ordering::Relaxed);
        let said = now >= next
            && self
                .next
                .compare_exchange(next, now + SAY_EVERY.as_secs(), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if said {
            let seconds = SAY_EVERY.as_secs();
            say(&format!(
                "cannot accept connections: {error}; {}. Clients wait. This message is not repeated for {seconds} s",
                lack.way_out()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn said_once_and_counted_each_time() {
        let registry = Registry::new();
        let descriptors = Descriptors::new(&registry);
        let lines = RefCell::new(Vec::new());
        let say = |line: &str| lines.borrow_mut().push(line.to_string());
        for _ in 0..3 {
            descriptors.lack(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()), &say);
        }
        let lines = lines.borrow();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("LimitNOFILE"), "{}", lines[0]);
        let text = registry.render();
        assert!(text.contains("portcullis_accept_errors_total{reason=\"process_files\"} 3"), "{text}");
    }
}
