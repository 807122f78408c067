//! An inspection agent for tests and demos: what it decides stands in the request.
//!
//! The header `X-Agent` has commands with `;` between them: `block 451`, `redirect /there`, `score 5`,
//! `tag bot`, `reason TEXT`, `set NAME VALUE`, `add NAME VALUE`, `remove NAME` (of the request),
//! `set-response NAME VALUE`, `done`, `silent` (no decision at all), `garbage`, `nonsense` (a decision that
//! cannot be carried out), `close`, `status 14 TEXT` (the call of gRPC ends with it), `go-away` (the
//! connection takes no new calls), `stall` (nothing is read for a second). Bodies with `block-body` are
//! blocked, on the way up and down; a response that has the header `X-Agent` is treated in the same way.

mod decide;
mod grpc;
mod unix;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::TestkitError;
use crate::process::Process;

/// The configured behaviour of the agent.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "echo-agent", about = "The inspection agent of the tests.")]
pub struct Options {
    /// Where it listens: `unix:PATH` or `grpc://ADDRESS:PORT`.
    pub address: Address,
    /// The version of the protocol that it says it speaks.
    #[arg(long, default_value_t = 1)]
    pub version: u32,
    /// Bytes of a body that it wants before it gives credit: few, so that tests see back-pressure.
    #[arg(long, default_value_t = 8 << 10)]
    pub window: u64,
    /// PEM files of a certificate and its key: gRPC goes over TLS.
    #[arg(long, num_args = 2, value_names = ["CERT", "KEY"])]
    pub tls: Vec<PathBuf>,
}

/// The address of the agent, as in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// gRPC.
    Grpc(SocketAddr),
}

impl Address {
    /// Returns true if a process listens there.
    pub fn listens(&self) -> bool {
        match self {
            Address::Unix(socket) => UnixStream::connect(socket).is_ok(),
            // On loopback a socket can connect to itself while no server listens on its port yet.
            Address::Grpc(address) => TcpStream::connect(address)
                .is_ok_and(|stream| stream.local_addr().is_ok_and(|own| own != *address)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(socket) => write!(f, "unix:{}", socket.display()),
            Address::Grpc(address) => write!(f, "grpc://{address}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let grpc = text.strip_prefix("grpc://").and_then(|address| address.parse().ok());
        match (text.strip_prefix("unix:"), grpc) {
            (Some(socket), _) => Ok(Address::Unix(socket.into())),
            (None, Some(address)) => Ok(Address::Grpc(address)),
            (None, None) => Err("neither unix:PATH nor grpc://ADDRESS:PORT".to_string()),
        }
    }
}

/// Listens, in place of an earlier process, and serves until the process ends.
pub fn serve(options: &Options) -> io::Result<()> {
    match &options.address {
        Address::Unix(socket) => unix::serve(socket, options),
        Address::Grpc(address) => grpc::serve(*address, options),
    }
}

/// Starts `echo-agent`, which is beside this program, and waits until it listens. Its output goes to the
/// file `log`.
pub fn start(address: &Address, log: &Path) -> Result<Process, TestkitError> {
    let here = std::env::current_exe().map_err(|source| TestkitError::io("current program", source))?;
    let program = here.parent().unwrap_or(Path::new(".")).join("echo-agent");
    if let Address::Unix(socket) = address {
        let _ = std::fs::remove_file(socket);
    }
    let agent = Process::start(&program, &[address.to_string().into()], log)?;
    let end = Instant::now() + Duration::from_secs(20);
    while !address.listens() {
        if Instant::now() > end {
            return Err(TestkitError::Run("the agent does not listen".to_string()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(agent)
}
