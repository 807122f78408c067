//! Reads archives: a file of this machine, or a download.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use portcullis_fetch::{self as fetch, Authorities, Client, Connections};

use crate::{Error, Version, known, limits};

/// The place that an archive comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A download.
    Url(String),
    /// A file of this machine.
    File(PathBuf),
}

impl Origin {
    /// The place that `from` names, or the one where the CRS project offers `version`.
    pub fn of(from: Option<&str>, version: Version) -> Origin {
        match from {
            None => Origin::Url(known::url(version)),
            Some(text) if text.contains("://") => Origin::Url(text.to_owned()),
            Some(text) => Origin::File(PathBuf::from(text)),
        }
    }

    /// The archive.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        match self {
            Origin::File(path) => {
                let bytes = File::open(path).and_then(bounded).map_err(|why| self.failed(why))?;
                if bytes.len() as u64 > limits::ARCHIVE_BYTES_MAX {
                    return Err(Error::TooLong(self.to_string()));
                }
                Ok(bytes)
            }
            Origin::Url(url) => self.download(url),
        }
    }

    fn failed(&self, why: impl std::fmt::Display) -> Error {
        Error::Fetch { from: self.to_string(), why: why.to_string() }
    }

    /// By HTTPS, redirects to HTTPS only; or by HTTP from this machine, without redirects.
    fn download(&self, url: &str) -> Result<Vec<u8>, Error> {
        let timeout = limits::DOWNLOAD_TIME_MAX;
        let client = if url.starts_with("https://") {
            let authorities = Authorities::of_system().map_err(|why| self.failed(why))?;
            Client::download(&authorities, timeout, limits::REDIRECTS_MAX)
        } else if is_loopback(url) {
            Client::direct(None, timeout, Connections::Closed)
        } else {
            return Err(self.failed("only https:// URLs are downloaded from other machines"));
        };
        let answer = client.get(url).map_err(|why| self.failed(why))?;
        match answer.status().as_u16() {
            200 => answer.into_body().read(limits::ARCHIVE_BYTES_MAX).map_err(|error| match error {
                fetch::Error::TooLong(_) => Error::TooLong(self.to_string()),
                fetch::Error::Connection(_) | fetch::Error::Late | fetch::Error::Final(_) => {
                    self.failed(error)
                }
            }),
            404 => Err(self.failed("the server has no such file (404)")),
            status @ 300..=399 => {
                Err(self
                    .failed(format_args!("the server answers {status}, a redirect, which is not followed")))
            }
            status => Err(self.failed(format_args!("the server answers {status}"))),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Url(url) => f.write_str(url),
            Origin::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The limit and one byte more, which tells that there is more.
fn bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limits::ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether it is plain HTTP to a literal loopback address: a name could be any machine's.
fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.parse().map(|address: std::net::SocketAddr| address.ip());
    address.or_else(|_| authority.parse()).is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
