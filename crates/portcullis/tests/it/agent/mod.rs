//! Inspection agents as processes of their own, so that a test can stop and kill them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use portcullis_testkit::agent::{Address, Options};
use portcullis_testkit::process::{Signal, signal};

use crate::served::{PATIENCE, free_address};

const ARGUMENTS: &str = "PORTCULLIS_TEST_AGENT";

/// The ways to an agent, each for a test of its own.
pub fn addresses(folder: &Path) -> [Address; 2] {
    [unix(folder), grpc()]
}

pub fn unix(folder: &Path) -> Address {
    Address::Unix(folder.join("echo.sock"))
}

pub fn grpc() -> Address {
    Address::Grpc(free_address())
}

/// A running agent; killed when dropped.
pub struct Agent {
    child: Child,
}

impl Agent {
    /// The echo agent of the testkit: this very program, told to run [`the_agent_of_the_other_tests`].
    pub fn echo(address: &Address) -> Agent {
        Agent::echo_with(address, &[])
    }

    /// The same with more arguments.
    pub fn echo_with(address: &Address, more: &[&str]) -> Agent {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let arguments = format!("echo-agent\n{address}\n{}", more.join("\n"));
        command
            .args(["--ignored", "--exact", "agent::the_agent_of_the_other_tests"])
            .env(ARGUMENTS, arguments.trim_end());
        Agent::start(command, address)
    }

    /// The example in Python.
    pub fn python(socket: &Path) -> Agent {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents/agent.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(socket);
        Agent::start(command, &Address::Unix(socket.to_path_buf()))
    }

    fn start(mut command: Command, address: &Address) -> Agent {
        if let Address::Unix(socket) = address {
            let _ = std::fs::remove_file(socket);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut agent = Agent { child: child.expect("the agent starts (python3 is needed for the example)") };
        let begin = Instant::now();
        while !address.listens() {
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

#[test]
#[ignore = "run by the other tests as a process of its own"]
fn the_agent_of_the_other_tests() {
    if let Ok(arguments) = std::env::var(ARGUMENTS) {
        portcullis_testkit::agent::serve(&Options::parse_from(arguments.lines())).unwrap();
    }
}

/// The table of an agent.
pub fn table(name: &str, address: &Address, more: &str) -> String {
    format!("[agents.{name}]\naddress = \"{address}\"\n{more}\n")
}
