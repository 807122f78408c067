//! What a command comes to: its exit code, what it prints, why it failed.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a command whose work found mistakes or failed.
pub const FAILED: u8 = 1;
/// The exit code of a command line that cannot be followed; clap uses the same.
pub const USAGE: u8 = 2;

/// The reason why a command ends early.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line cannot be followed.
    pub fn usage(message: impl Display) -> Failure {
        Failure { code: USAGE, message: message.to_string() }
    }

    /// The work failed.
    pub fn failed(message: impl Display) -> Failure {
        Failure { code: FAILED, message: message.to_string() }
    }

    /// Tells why and gives the exit code.
    pub fn exit(self) -> ExitCode {
        complain(self.message);
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writes the result of a command to standard output. A closed pipe is a reader who has seen enough.
pub fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::failed(format_args!("cannot write to standard output: {error}")).exit()
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Tells why the command line cannot be followed.
pub fn usage_error(message: impl Display) -> ExitCode {
    Failure::usage(message).exit()
}

/// Writes a warning to standard error.
pub fn warn(message: impl Display) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}

/// Writes an error message to standard error. Diagnostics of rules and descriptions begin with their
/// severity.
fn complain(message: impl Display) {
    let message = message.to_string();
    let severity = if message.starts_with("error") { "" } else { "error: " };
    // If standard error is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "{severity}{message}");
}
