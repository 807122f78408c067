//! A child process with a port: started, waited for, stopped by its own id.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

use crate::TestkitError;

pub use rustix::process::Signal;

/// A running child. Dropped, it is killed.
pub struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; what it prints goes to the file `log`.
    pub fn start(program: &Path, arguments: &[OsString], log: &Path) -> Result<Self, TestkitError> {
        Process::start_with(program, arguments, log, &[])
    }

    /// The same with more variables in its environment.
    pub fn start_with(
        program: &Path,
        arguments: &[OsString],
        log: &Path,
        environment: &[(String, String)],
    ) -> Result<Self, TestkitError> {
        let out = std::fs::File::create(log).map_err(|source| TestkitError::io(log, source))?;
        let error = out.try_clone().map_err(|source| TestkitError::io(log, source))?;
        let child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(error)
            .spawn()
            .map_err(|source| TestkitError::io(program, source))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Process { child, name, log: log.to_path_buf() })
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it accepts connections.
    pub fn wait_for(&mut self, address: SocketAddr, limit: Duration) -> Result<(), TestkitError> {
        let end = Instant::now() + limit;
        loop {
            // On loopback a socket can connect to itself while no server listens on its port yet.
            let is_other = |stream: TcpStream| stream.local_addr().is_ok_and(|own| own != address);
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok_and(is_other) {
                return Ok(());
            }
            if let Some(status) = self.exited()? {
                return Err(self.trouble(&format!("stopped at once ({status})")));
            }
            if Instant::now() > end {
                return Err(self.trouble(&format!("does not listen on {address} after {limit:?}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns its exit status, if it has ended.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>, TestkitError> {
        self.child.try_wait().map_err(|error| TestkitError::Run(format!("{}: {error}", self.name)))
    }

    /// Sends it a signal.
    pub fn signal(&self, what: Signal) -> Result<(), TestkitError> {
        signal(self.id(), what)
    }

    /// Sends SIGTERM and waits; after `limit` it is killed, which is an error.
    pub fn stop(mut self, limit: Duration) -> Result<ExitStatus, TestkitError> {
        let _ = self.signal(Signal::TERM);
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if let Some(status) = self.exited()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(self.trouble(&format!("does not stop within {limit:?} of SIGTERM")))
    }

    fn trouble(&self, what: &str) -> TestkitError {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(4000)..]).into_owned();
        TestkitError::Run(format!("{} {what}; its last output ({}):\n{tail}", self.name, self.log.display()))
    }
}

/// Sends a signal to a process by its id. Asking a child `kill` to do so would disturb those who wait: the
/// SIGCHLD of one child while the next is started goes to any thread, whose read with a time limit then fails
/// as interrupted (signal(7)).
pub fn signal(id: u32, what: Signal) -> Result<(), TestkitError> {
    let process = i32::try_from(id).ok().and_then(Pid::from_raw);
    let sent = process.ok_or(rustix::io::Errno::SRCH).and_then(|process| kill_process(process, what));
    sent.map_err(|error| TestkitError::Run(format!("{what:?} to process {id}: {error}")))
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
