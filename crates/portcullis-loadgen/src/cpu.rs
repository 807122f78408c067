//! CPU time of other processes, as Linux accounts it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

/// The CPU time that processes have used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime(Duration);

impl CpuTime {
    /// Of these processes together, all threads, those that have ended included; `None` if that cannot be
    /// known.
    pub fn of(processes: &[u32]) -> Option<CpuTime> {
        let mut sum = Duration::ZERO;
        for process in processes {
            sum += of_process(*process)?;
        }
        (!processes.is_empty()).then_some(CpuTime(sum))
    }

    /// Returns the CPU time used since.
    pub fn since(self, earlier: CpuTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The clock of a process. The sum of `schedstat` over its threads would lose a thread that ends between two
/// readings, with all that it had used before; `stat` counts in hundredths of a second.
#[cfg(target_os = "linux")]
fn of_process(process: u32) -> Option<Duration> {
    let process = nix::unistd::Pid::from_raw(i32::try_from(process).ok()?);
    Some(nix::time::clock_getcpuclockid(process).ok()?.now().ok()?.into())
}

#[cfg(not(target_os = "linux"))]
fn of_process(_: u32) -> Option<Duration> {
    None
}

/// The processes that listen on an address, workers that share the socket among them. Empty if none can be
/// seen: other systems than Linux, or processes of other users.
pub fn listening(address: SocketAddr) -> Vec<u32> {
    let mut sockets = HashSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = std::fs::read_to_string(table).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // local address, state (0A: listening), inode
            let (Some(local), Some(&"0A"), Some(inode)) = (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            let port = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            if port == Some(address.port()) {
                sockets.insert(format!("socket:[{inode}]"));
            }
        }
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.filter(|process| holds(*process, &sockets)).collect()
}

fn holds(process: u32, sockets: &HashSet<String>) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .any(|target| target.to_str().is_some_and(|target| sockets.contains(target)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::time::ClockId;

    use super::*;

    #[test]
    fn the_listener_of_an_address_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(listening(listener.local_addr().unwrap()), [std::process::id()]);
    }

    #[test]
    fn work_takes_cpu_time() {
        let own = [std::process::id()];
        let before = CpuTime::of(&own).unwrap();
        let mut sum = 0u64;
        while CpuTime::of(&own).unwrap().since(before) < Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert_eq!(CpuTime::of(&[]), None);
        assert_eq!(CpuTime::of(&[u32::MAX]), None);
    }

    #[test]
    fn threads_that_have_ended_count() {
        let own = [std::process::id()];
        let before = CpuTime::of(&own).unwrap();
        let work = std::thread::spawn(|| {
            let (begin, mut sum) = (rustix::time::clock_gettime(ClockId::ThreadCPUTime), 0u64);
            while took(begin) < Duration::from_millis(50) {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
            }
        });
        work.join().unwrap();
        assert!(CpuTime::of(&own).unwrap().since(before) >= Duration::from_millis(50));
    }

    fn took(begin: rustix::time::Timespec) -> Duration {
        let now = rustix::time::clock_gettime(ClockId::ThreadCPUTime) - begin;
        Duration::try_from(now).unwrap()
    }
}
