//! CPU time of other processes, as Linux accounts it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The CPU time that processes have used so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime(Duration);

impl CpuTime {
    /// Of these processes together, all threads; `None` if that cannot be known.
    pub fn of(processes: &[u32]) -> Option<CpuTime> {
        let mut sum = 0;
        for process in processes {
            sum += nanoseconds(&Path::new("/proc").join(process.to_string()))?;
        }
        (!processes.is_empty()).then(|| CpuTime(Duration::from_nanos(sum)))
    }

    /// Returns the CPU time used since.
    pub fn since(self, earlier: CpuTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The sum of `schedstat` over the threads: nanoseconds, where `stat` counts in hundredths of a second.
fn nanoseconds(process: &Path) -> Option<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(process.join("task")).ok()? {
        // A thread that has just ended has no file.
        let Ok(text) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(sum)
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
}
