//! Reads archives: a file of this machine, or a download.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use portcullis_fetch::Authorities;

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
        let read = match self {
            Origin::File(path) => File::open(path).map_err(Into::into).and_then(bounded),
            Origin::Url(url) => download(url),
        };
        let bytes = read.map_err(|why| Error::Fetch { from: self.to_string(), why: why.to_string() })?;
        if bytes.len() as u64 > limits::ARCHIVE_BYTES_MAX {
            return Err(Error::TooLong(self.to_string()));
        }
        Ok(bytes)
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

type Whatever = Box<dyn std::error::Error>;

/// The limit and one byte more, which tells that there is more.
fn bounded(from: impl Read) -> Result<Vec<u8>, Whatever> {
    let mut bytes = Vec::new();
    from.take(limits::ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// By HTTPS, redirects to HTTPS only; or by HTTP from this machine, without redirects.
fn download(url: &str) -> Result<Vec<u8>, Whatever> {
    let settings = ureq::Agent::config_builder()
        .timeout_global(Some(limits::DOWNLOAD_TIME_MAX))
        .http_status_as_error(false);
    let settings = if url.starts_with("https://") {
        let tls = Authorities::of_system()?.https();
        settings.https_only(true).max_redirects(limits::REDIRECTS_MAX).tls_config(tls)
    } else if is_loopback(url) {
        settings.max_redirects(0).proxy(None)
    } else {
        return Err("only https:// URLs are downloaded from other machines".into());
    };
    let agent: ureq::Agent = settings.build().into();
    let response = agent.get(url).call()?;
    match response.status().as_u16() {
        200 => bounded(response.into_body().into_reader()),
        404 => Err("the server has no such file (404)".into()),
        status @ 300..=399 => {
            Err(format!("the server answers {status}, a redirect, which is not followed").into())
        }
        status => Err(format!("the server answers {status}").into()),
    }
}

/// Whether it is plain HTTP to a literal loopback address: a name could be any machine's.
fn is_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.parse().map(|address: std::net::SocketAddr| address.ip());
    address.or_else(|_| authority.parse()).is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
