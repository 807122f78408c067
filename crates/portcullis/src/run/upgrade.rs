//! Binary upgrade: the program is started anew, gets our listening sockets, and we end once it serves. If it
//! does not come to that, this process continues to serve.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use tokio::time::{Instant, sleep};

/// The longest time that the new process may take until it serves.
const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The first descriptor of sd_listen_fds(3).
const FIRST: i32 = 3;

/// The program and arguments that this process was started with. Taken at the start: later its file may be
/// another one.
pub struct Program {
    path: std::io::Result<PathBuf>,
    arguments: Vec<OsString>,
}

impl Program {
    pub fn of_process() -> Program {
        Program { path: std::env::current_exe(), arguments: std::env::args_os().skip(1).collect() }
    }

    /// Starts it with `sockets`, and waits until it serves. Gives its id.
    pub async fn start(&self, sockets: Vec<TcpListener>) -> Result<u32, String> {
        let path = self.path.as_ref().map_err(|error| format!("cannot find the program file: {error}"))?;
        let (ours, theirs) = UnixDatagram::pair().map_err(|error| error.to_string())?;
        ours.set_nonblocking(true).map_err(|error| error.to_string())?;
        let sockets = sockets.into_iter().map(OwnedFd::from).chain([OwnedFd::from(theirs)]);
        let mappings: Vec<FdMapping> =
            (FIRST..).zip(sockets).map(|(child_fd, parent_fd)| FdMapping { parent_fd, child_fd }).collect();
        let mut command = Command::new(path);
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .env("LISTEN_FDS", mappings.len().to_string())
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDNAMES")
            .env_remove("WATCHDOG_PID");
        command.fd_mappings(mappings).map_err(|error| error.to_string())?;
        let child = command.spawn().map_err(|error| format!("{}: {error}", path.display()))?;
        // Closes our copies of what was passed.
        drop(command);
        let mut child = Started(Some(child));
        let deadline = Instant::now() + DEADLINE;
        let mut word = [0; 64];
        loop {
            if matches!(ours.recv(&mut word), Ok(length) if word[..length] == *b"READY=1") {
                return Ok(child.keep());
            }
            if let Some(status) = child.ended()? {
                return Err(format!("the new process ended at once ({status})"));
            }
            if Instant::now() > deadline {
                return Err(format!("the new process did not start serving within {} s", DEADLINE.as_secs()));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// The new process. Dropped, it is ended: what it was started for did not come to pass.
struct Started(Option<Child>);

impl Started {
    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, String> {
        let Some(child) = &mut self.0 else { return Ok(None) };
        child.try_wait().map_err(|error| error.to_string())
    }

    fn keep(mut self) -> u32 {
        self.0.take().map_or(0, |child| child.id())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
