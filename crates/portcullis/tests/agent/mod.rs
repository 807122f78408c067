//! Inspection agents as processes of their own, so that a test can stop and kill them.
#![allow(dead_code)] // each test file uses its part

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::served::PATIENCE;
use portcullis_testkit::process::{Signal, signal};

const SOCKET: &str = "PORTCULLIS_TEST_AGENT";

/// A running agent; killed when dropped.
pub struct Agent {
    child: Child,
}

impl Agent {
    /// The echo agent of the testkit: this very program, told to run [`serve_if_told`].
    pub fn echo(socket: &Path) -> Agent {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "the_agent_of_the_other_tests"]).env(SOCKET, socket);
        Agent::start(command, socket)
    }

    /// The example in Python.
    pub fn python(socket: &Path) -> Agent {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/agent.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(socket);
        Agent::start(command, socket)
    }

    fn start(mut command: Command, socket: &Path) -> Agent {
        let _ = std::fs::remove_file(socket);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut agent = Agent { child: child.expect("the agent starts (python3 is needed for the example)") };
        let begin = Instant::now();
        while UnixStream::connect(socket).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the agent does not listen");
            assert!(agent.child.try_wait().unwrap().is_none(), "the agent has ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        agent
    }

    /// Stops it as a debugger would: its connections stay, and nothing is said any more.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// A crash.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, what: Signal) {
        signal(self.child.id(), what).unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of the test that [`Agent::echo`] runs.
pub fn serve_if_told() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        portcullis_testkit::agent::serve(&PathBuf::from(socket)).unwrap();
    }
}

/// The table of an agent.
pub fn table(name: &str, socket: &Path, more: &str) -> String {
    format!("[agents.{name}]\naddress = \"unix:{}\"\n{more}\n", socket.display())
}

/// Waits for a condition.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
