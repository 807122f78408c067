//! The target of the requests: a Portcullis of our own, or a server that runs already.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Options, replay};
use crate::proxy::{Folder, Proxy, tail};
use crate::{TestkitError, client};

/// HTTP profile of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Profile {
    /// The product's default.
    Strict,
    /// As the reference server of the suite behaves.
    Apache,
}

/// The suite's own setup, as rules before `crs-setup.conf`.
const SETUP: &str = include_str!("../../../../tests/crs-suite-setup.conf");

/// The running target.
pub(super) enum Target {
    Own(Box<Proxy>),
    Given { address: SocketAddr, log: PathBuf },
}

/// The files a run leaves.
pub(super) enum Traces {
    Own { folder: Folder, metrics: String },
    Given { log: PathBuf },
}

impl Target {
    pub fn start(options: &Options) -> Result<Self, TestkitError> {
        if let (Some(address), Some(log)) = (options.target, options.log.clone()) {
            return Ok(Target::Given { address, log });
        }
        let folder = Folder::create(options.keep.as_deref())?;
        let setup = folder.file("suite-setup.conf");
        std::fs::write(&setup, SETUP).map_err(|source| TestkitError::io(&setup, source))?;
        let profile = match options.profile {
            Profile::Strict => "strict",
            Profile::Apache => "apache",
        };
        let workers = options.workers.to_string();
        let flags = ["--paranoia", "4", "--detect-only", "--http-compat", profile, "--workers", &workers];
        let flags = flags.map(OsString::from).into_iter().chain(["--setup".into(), setup.into()]);
        Ok(Target::Own(Box::new(Proxy::start(folder, options.rules()?, flags.collect())?)))
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Target::Own(proxy) => proxy.address(),
            Target::Given { address, .. } => *address,
        }
    }

    /// Waits until everything has been written, and stops what was started.
    pub fn finish(self) -> Result<Traces, TestkitError> {
        match self {
            Target::Given { address, log } => {
                mark(address, &log)?;
                std::thread::sleep(Duration::from_secs(1)); // other workers of a foreign server may still write
                Ok(Traces::Given { log })
            }
            Target::Own(mut proxy) => {
                proxy.check_alive()?;
                mark(proxy.address(), &proxy.folder().log())?;
                let metrics = proxy.metrics()?;
                Ok(Traces::Own { folder: proxy.stop()?, metrics })
            }
        }
    }
}

/// Sends a request that every setup of the CRS logs, until its line is in the log.
fn mark(address: SocketAddr, log: &Path) -> Result<(), TestkitError> {
    let request = b"GET /?end-of-run=%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1\r\nHost: localhost\r\nUser-Agent: crs-suite\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    let want = [format!("[client {}", replay::MARKER), format!(", client: {},", replay::MARKER)];
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        let answer = client::exchange(address, Some(replay::MARKER), request, Duration::from_secs(5));
        answer.map_err(|failure| TestkitError::Run(format!("the marker request at the end: {failure}")))?;
        for _ in 0..10 {
            let written = tail(log);
            if want.iter().any(|mark| written.contains(mark)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Err(TestkitError::Run(format!("the marker request does not show up in {}", log.display())))
}
