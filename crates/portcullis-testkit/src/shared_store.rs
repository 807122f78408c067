//! The servers that nodes share limits and records through: a Redis or a Memcached of our own, without files
//! that stay.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::TestkitError;
use crate::process::{Process, Signal};
use crate::proxy::{Folder, free_address};

/// For a server to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `redis-server`
    Redis,
    /// `memcached`
    Memcached,
}

/// A running server on loopback. Dropped, it is killed as by a crash.
pub struct SharedStore {
    process: Process,
    kind: Kind,
    address: SocketAddr,
    _folder: Folder,
}

impl SharedStore {
    /// Starts it on `address`, or on a free port.
    pub fn start(kind: Kind, address: Option<SocketAddr>) -> Result<Self, TestkitError> {
        let address = address.map_or_else(free_address, Ok)?;
        let port = match kind {
            Kind::Redis => "--port",
            Kind::Memcached => "-p",
        };
        SharedStore::start_with(kind, address, &[port, &address.port().to_string()])
    }

    /// The same with arguments that make it listen on `address`.
    pub fn start_with(kind: Kind, address: SocketAddr, listen: &[&str]) -> Result<Self, TestkitError> {
        let folder = Folder::create(None)?;
        let place = folder.file(".").to_string_lossy().into_owned();
        let (program, common): (_, &[&str]) = match kind {
            Kind::Redis => (
                "redis-server",
                &["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", &place],
            ),
            Kind::Memcached => ("memcached", &["-l", "127.0.0.1", "-U", "0", "-u", "nobody"]),
        };
        let arguments: Vec<OsString> = listen.iter().chain(common).map(OsString::from).collect();
        let mut process =
            Process::start(Path::new(program), &arguments, &folder.output()).map_err(|error| {
                TestkitError::Run(format!("{program} is needed (apt-get install {program}): {error}"))
            })?;
        process.wait_for(address, PATIENCE)?;
        Ok(SharedStore { process, kind, address, _folder: folder })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// As configurations name it, without a path.
    pub fn url(&self) -> String {
        match self.kind {
            Kind::Redis => format!("redis://{}", self.address),
            Kind::Memcached => format!("memcached://{}", self.address),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, what: Signal) -> Result<(), TestkitError> {
        self.process.signal(what)
    }
}
