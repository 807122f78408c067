//! A password from the terminal, without showing it, or from standard input. Never from an argument: others
//! can see the arguments of a process.

use std::io::{self, BufRead as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// Bytes of a line that are read at most.
const LINE_BYTES_MAX: u64 = 8 << 10;

/// Asks for a new password twice on a terminal; otherwise reads the first line of standard input.
pub fn read_password() -> io::Result<String> {
    let input = io::stdin();
    if !isatty(&input) {
        return line();
    }
    let silence = Silence::begin()?;
    let first = ask("new password: ")?;
    let again = ask("the same again: ")?;
    drop(silence);
    if first != again {
        return Err(io::Error::other("the passwords differ"));
    }
    Ok(first)
}

fn ask(prompt: &str) -> io::Result<String> {
    let mut out = io::stderr().lock();
    out.write_all(prompt.as_bytes()).and_then(|()| out.flush())?;
    let line = line();
    // The line break that was typed is not shown either.
    out.write_all(b"\n")?;
    line
}

fn line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(LINE_BYTES_MAX).read_line(&mut line)?;
    Ok(line.strip_suffix('\n').map_or(&*line, |rest| rest.strip_suffix('\r').unwrap_or(rest)).to_owned())
}

/// The terminal shows nothing that is typed until this ends.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Silence> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Silence(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
