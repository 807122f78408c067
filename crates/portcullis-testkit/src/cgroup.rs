//! A group of processes that may have so much memory, and no more: the kernel kills what reaches it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A cgroup of version 1 or 2, removed when it is dropped; its processes must have ended.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// A group with a limit, beside or in that of this process. The error says why there can be none here: no
    /// rights, or no controller of memory.
    pub fn with_memory(bytes: u64) -> Result<Cgroup, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mut why = "no cgroup controls memory".to_owned();
        for line in own.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let is_v1 = controllers.split(',').any(|name| name == "memory");
            if !is_v1 && !controllers.is_empty() {
                continue;
            }
            let top = Path::new(if is_v1 { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" });
            // In a container the path may be that of another view; then the top is ours.
            for parent in [top.join(path.trim_start_matches('/')), top.to_path_buf()] {
                match Cgroup::below(&parent, is_v1, bytes) {
                    Ok(group) => return Ok(group),
                    Err(error) => why = format!("{}: {error}", parent.display()),
                }
            }
        }
        Err(why)
    }

    fn below(parent: &Path, is_v1: bool, bytes: u64) -> std::io::Result<Cgroup> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if !is_v1 {
            fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let group = Cgroup { folder: parent.join(format!("portcullis-{}-{number}", std::process::id())) };
        fs::create_dir(&group.folder)?;
        let file = if is_v1 { "memory.limit_in_bytes" } else { "memory.max" };
        // An error drops the group, which removes it.
        fs::write(group.folder.join(file), bytes.to_string())?;
        Ok(group)
    }

    /// The file that a process joins by writing its id to it.
    pub fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The last process may still be leaving.
        let began = Instant::now();
        while fs::remove_dir(&self.folder).is_err() && began.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
