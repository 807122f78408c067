//! Debian's libmodsecurity 3 in a child process; see `peer/modsecurity3.c` for the frames.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bstr::BString;
use portcullis_reference::Request;
use portcullis_testkit::workspace_root;

use crate::rule_set::RuleSet;
use crate::seen::{Interruption, Seen, read_dump};

/// A child that evaluates.
pub struct ModSecurity3 {
    driver: PathBuf,
    pipe: Option<Pipe>,
    rules: Option<RuleSet>,
    /// Number of times that the child ended by itself.
    pub crashes: u64,
}

struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// The result of loading a rule set.
pub enum Loaded {
    /// It is in force.
    Yes,
    /// The library refused it, and said why.
    Refused(String),
    /// The child ended.
    Crashed,
}

impl ModSecurity3 {
    /// Compiles the driver if need be. The error is for people.
    pub fn new() -> Result<ModSecurity3, String> {
        Ok(ModSecurity3 { driver: build_driver()?, pipe: None, rules: None, crashes: 0 })
    }

    /// Puts a rule set in force.
    pub fn load(&mut self, rules: &RuleSet) -> Loaded {
        self.rules = Some(rules.clone());
        match self.try_load(rules) {
            Ok(None) => Loaded::Yes,
            Ok(Some(why)) => Loaded::Refused(why),
            Err(_) => {
                self.crashed();
                Loaded::Crashed
            }
        }
    }

    /// Runs a request; `None` if the child ended.
    pub fn run(&mut self, request: &Request) -> Option<Seen> {
        if self.pipe.is_none() {
            let rules = self.rules.take()?;
            let Loaded::Yes = self.load(&rules) else { return None };
        }
        match self.try_run(request) {
            Ok(seen) => Some(seen),
            Err(_) => {
                self.crashed();
                None
            }
        }
    }

    fn crashed(&mut self) {
        self.crashes += 1;
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.child.kill();
            let _ = pipe.child.wait();
        }
    }

    fn pipe(&mut self) -> io::Result<&mut Pipe> {
        if self.pipe.is_none() {
            let mut child = Command::new(&self.driver)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(io::Error::other("no pipes"));
            };
            self.pipe = Some(Pipe { child, input, output: BufReader::new(output) });
        }
        self.pipe.as_mut().ok_or_else(|| io::Error::other("no child"))
    }

    fn try_load(&mut self, rules: &RuleSet) -> io::Result<Option<String>> {
        let mut frame = vec![b'R'];
        text(&mut frame, rules.text_with_dump().as_bytes());
        let pipe = self.pipe()?;
        pipe.input.write_all(&frame)?;
        pipe.input.flush()?;
        let mut kind = [0];
        pipe.output.read_exact(&mut kind)?;
        match kind[0] {
            b'O' => Ok(None),
            _ => Ok(Some(pipe.text()?.to_string())),
        }
    }

    fn try_run(&mut self, request: &Request) -> io::Result<Seen> {
        let frame = frame(request);
        let pipe = self.pipe()?;
        pipe.input.write_all(&frame)?;
        pipe.input.flush()?;
        let mut kind = [0];
        pipe.output.read_exact(&mut kind)?;
        let phase = pipe.number()?;
        let status = pipe.number()?;
        pipe.text()?;
        let dump = pipe.text()?;
        for _ in 0..pipe.number()? {
            pipe.text()?;
        }
        let interruption = (phase != 0).then(|| Interruption::Status(u16::try_from(status).unwrap_or(0)));
        // An empty dump is a `TX` without anything, which the first rules do not leave behind.
        let tx = if dump.is_empty() { None } else { read_dump(&dump) };
        Ok(Seen::new(tx, interruption))
    }
}

impl Drop for ModSecurity3 {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.child.kill();
            let _ = pipe.child.wait();
        }
    }
}

impl Pipe {
    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.output.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> io::Result<BString> {
        let length = self.number()? as usize;
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

fn frame(request: &Request) -> Vec<u8> {
    let mut out = vec![b'X'];
    text(&mut out, request.client.to_string().as_bytes());
    number(&mut out, u32::from(request.client_port));
    text(&mut out, request.server.to_string().as_bytes());
    number(&mut out, u32::from(request.server_port));
    text(&mut out, &request.uri);
    text(&mut out, &request.method);
    text(&mut out, request.protocol.strip_prefix(b"HTTP/").unwrap_or(&request.protocol));
    headers(&mut out, &request.headers);
    text(&mut out, request.body.as_ref().map_or(b"".as_slice(), |body| body.as_slice()));
    match &request.response {
        None => number(&mut out, 0),
        Some(response) => {
            number(&mut out, 1);
            number(&mut out, u32::from(response.status));
            text(&mut out, &response.protocol);
            headers(&mut out, &response.headers);
            text(&mut out, &response.body);
        }
    }
    out
}

fn headers(out: &mut Vec<u8>, headers: &[(BString, BString)]) {
    number(out, headers.len() as u32);
    for (name, value) in headers {
        text(out, name);
        text(out, value);
    }
}

fn number(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    number(out, text.len() as u32);
    out.extend_from_slice(text);
}

fn build_driver() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peer/modsecurity3.c");
    let folder = workspace_root().join("target/differential");
    let driver = folder.join("modsecurity3");
    let time = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    if time(&driver).is_some_and(|built| time(&source).is_some_and(|changed| changed <= built)) {
        return Ok(driver);
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let out = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-o"])
        .args([&driver, &source])
        .arg("-lmodsecurity")
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    match out.status.success() {
        true => Ok(driver),
        false => Err(format!(
            "the driver of libmodsecurity 3 does not compile; is libmodsecurity-dev installed?\n{}",
            String::from_utf8_lossy(&out.stderr)
        )),
    }
}
