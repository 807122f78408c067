//! The memory of the process against what it may have: the limit of its cgroup, or that of the machine.
//!
//! The budget of bodies is what we know that we take. Whatever it does not know of, the kernel does, and it
//! kills a process that reaches the limit. So from a part of it on bodies find no room.

use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use portcullis_config::Limits;
use portcullis_metrics::{Gauge, Registry, catalogue};

/// There is no limit.
const NONE: u64 = u64::MAX;
/// Between two looks at what is resident, whichever worker takes them.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The limit is read again after so many of them: a container may be resized.
const LOOKS: u32 = 500;

/// Bytes of free room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// Enough.
    None,
    /// Too little for networks that hold much.
    Some,
    /// Too little for any body.
    Full,
}

/// The memory that is resident, and the limit.
pub(crate) struct Memory {
    limit: AtomicU64,
    /// The part of the limit from which bodies find no room, in thousandths.
    part: AtomicU32,
    resident: AtomicU64,
    /// What was charged for bodies when that was seen: what is more by now is not in it yet.
    charged: AtomicU64,
    looks: AtomicU32,
    status: Mutex<Status>,
    limit_gauge: Gauge,
    resident_gauge: Gauge,
}

/// `/proc/self/status`, and when it was read last.
struct Status {
    file: Option<fs::File>,
    read: Option<Instant>,
}

impl Memory {
    pub(crate) fn new(limits: &Limits, registry: &Registry) -> Memory {
        let memory = Memory {
            limit: AtomicU64::new(NONE),
            part: AtomicU32::new(limits.memory_part_thousandths),
            resident: AtomicU64::new(0),
            charged: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            status: Mutex::new(Status { file: fs::File::open("/proc/self/status").ok(), read: None }),
            limit_gauge: registry.gauge(&catalogue::MEMORY_LIMIT_BYTES, &[]),
            resident_gauge: registry.gauge(&catalogue::MEMORY_RESIDENT_BYTES, &[]),
        };
        memory.look(Instant::now(), 0);
        memory
    }

    /// Takes another setting.
    pub(crate) fn resize(&self, limits: &Limits) {
        self.part.store(limits.memory_part_thousandths, Relaxed);
    }

    /// Looks at what is resident while `charged` bytes are charged for bodies, and now and then at the limit;
    /// for each tick. Nothing happens if another thread looks, or has just done so.
    pub(crate) fn look(&self, now: Instant, charged: u64) {
        let Ok(mut status) = self.status.try_lock() else { return };
        if status.read.is_some_and(|read| now.saturating_duration_since(read) < LOOK_EVERY) {
            return;
        }
        status.read = Some(now);
        if self.looks.fetch_add(1, Relaxed).is_multiple_of(LOOKS) {
            let limit = limit_of(Path::new("/")).unwrap_or(NONE);
            self.limit.store(limit, Relaxed);
            self.limit_gauge.set(if limit == NONE { 0 } else { i64::try_from(limit).unwrap_or(i64::MAX) });
        }
        if let Some(bytes) = status.file.as_mut().and_then(resident) {
            self.resident.store(bytes, Relaxed);
            self.charged.store(charged, Relaxed);
            self.resident_gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Bytes of free room where `charged` bytes are charged for bodies.
    pub(crate) fn pressure(&self, charged: u64) -> Pressure {
        let (limit, part) = (self.limit.load(Relaxed), u64::from(self.part.load(Relaxed)));
        if limit == NONE {
            return Pressure::None;
        }
        pressure_at(self.resident_with(charged), limit, part)
    }

    /// Resident bytes, and bytes charged since they were read.
    fn resident_with(&self, charged: u64) -> u64 {
        let since = charged.saturating_sub(self.charged.load(Relaxed));
        self.resident.load(Relaxed).saturating_add(since)
    }

    /// Bytes beyond those from which bodies find no room.
    pub(crate) fn excess(&self, charged: u64) -> u64 {
        let (limit, part) = (self.limit.load(Relaxed), u64::from(self.part.load(Relaxed)));
        self.resident_with(charged).saturating_sub(share(limit, part))
    }
}

#[cfg(test)]
impl Memory {
    /// So much of the limit is resident.
    pub(crate) fn pretend(&self, percent: u64) {
        self.limit.store(100_000, Relaxed);
        self.resident.store(percent * 1_000, Relaxed);
        self.charged.store(u64::MAX, Relaxed);
    }
}

fn share(limit: u64, part: u64) -> u64 {
    limit / 1_000 * part
}

/// The last part before the limit is left to networks that hold little; half of what is left to none.
fn pressure_at(resident: u64, limit: u64, part: u64) -> Pressure {
    if resident < share(limit, part) {
        Pressure::None
    } else if resident < share(limit, part.midpoint(1_000)) || part == 1_000 {
        Pressure::Some
    } else {
        Pressure::Full
    }
}

/// `VmRSS` of `/proc/self/status`, in bytes.
fn resident(status: &mut fs::File) -> Option<u64> {
    let mut text = [0; 4096];
    status.rewind().ok()?;
    let length = status.read(&mut text).ok()?;
    kib(&String::from_utf8_lossy(&text[..length]), "VmRSS:")
}

/// The value behind `name` in lines of `name   123 kB`, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of memory of this process: those of its cgroup and the ones above it, of version 1 or
/// 2, and that of the machine. `root` is `/`.
fn limit_of(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_groups = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let path = parts.next().unwrap_or_default().trim_start_matches('/');
        if number == "0" && controllers.is_empty() {
            limits_above(&root.join("sys/fs/cgroup"), path, "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            limits_above(&root.join("sys/fs/cgroup/memory"), path, "memory.limit_in_bytes")
        } else {
            Vec::new()
        }
    });
    of_groups.chain(machine(root)).min()
}

/// The limits in the file `name` of the group at `path` and of those above it. In a container the path may be
/// that of another view; then the group at the top is ours.
fn limits_above(top: &Path, path: &str, name: &str) -> Vec<u64> {
    let mut folder: PathBuf = top.join(path);
    let mut limits = Vec::new();
    while folder.starts_with(top) {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        limits.extend(text.trim().parse::<u64>());
        if !folder.pop() {
            break;
        }
    }
    limits
}

/// The memory of the machine.
fn machine(root: &Path) -> Option<u64> {
    kib(&fs::read_to_string(root.join("proc/meminfo")).ok()?, "MemTotal:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], want: Option<u64>) {
        let root = root(files);
        assert_eq!(limit_of(root.path()), want);
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:       2048 kB\nMemFree:  1 kB\n");

    #[test]
    fn the_limit_is_the_smallest_one() {
        check(&[], None);
        check(&[MACHINE], Some(2 << 20));
        let v2 = ("proc/self/cgroup", "0::/pods/app\n");
        let app = ("sys/fs/cgroup/pods/app/memory.max", "max\n");
        check(&[MACHINE, v2, app], Some(2 << 20));
        check(&[MACHINE, v2, app, ("sys/fs/cgroup/pods/memory.max", "1000000\n")], Some(1_000_000));
        // A container sees its own group as the top, by whatever path others see it.
        check(&[MACHINE, v2, ("sys/fs/cgroup/memory.max", "9000\n")], Some(9_000));
        let v1 = ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/7\n0::/elsewhere\n");
        let of_7 = ("sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes", "4000\n");
        // No limit in version 1.
        let top = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        check(&[MACHINE, v1, of_7, top], Some(4_000));
        check(&[MACHINE, v1, top], Some(2 << 20));
    }

    #[test]
    fn the_last_part_is_for_those_that_hold_little() {
        let at = |percent: u64, part| pressure_at(percent * 10, 1_000, part);
        assert_eq!([79, 80, 89, 90, 99].map(|percent| at(percent, 800)), {
            use Pressure::{Full, None, Some};
            [None, Some, Some, Full, Full]
        });
        assert_eq!([99, 100, 120].map(|percent| at(percent, 1_000)), {
            use Pressure::{None, Some};
            [None, Some, Some]
        });
    }

    #[test]
    fn metrics_say_what_is_looked_at() {
        let registry = Registry::new();
        let memory = Memory::new(&Limits::default(), &registry);
        memory.look(Instant::now() + Duration::from_secs(1), 0);
        let text = registry.render();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<f64>().ok())
        };
        assert!(value("portcullis_memory_resident_bytes ").is_some_and(|bytes| bytes > 0.0), "{text}");
        // 0 where nothing limits it.
        assert!(value("portcullis_memory_limit_bytes ").is_some_and(|bytes| bytes >= 0.0), "{text}");
    }

    #[test]
    fn what_is_charged_since_counts_before_it_is_seen() {
        let memory = Memory::new(&Limits::default(), &Registry::new());
        memory.pretend(80);
        memory.charged.store(1_000, Relaxed);
        let at = |charged| (memory.pressure(charged), memory.excess(charged));
        assert_eq!(at(0), (Pressure::None, 0));
        assert_eq!(at(5_999), (Pressure::None, 0));
        assert_eq!(at(6_100), (Pressure::Some, 100));
    }

    #[test]
    fn what_is_resident_is_seen() {
        let memory = Memory::new(&Limits::default(), &Registry::new());
        let before = memory.resident.load(Relaxed);
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        memory.look(Instant::now() + LOOK_EVERY, 0);
        let grown = memory.resident.load(Relaxed).saturating_sub(before);
        assert!(before > 0 && grown >= (block.len() as u64) / 2, "{before} and {grown}");
    }
}
