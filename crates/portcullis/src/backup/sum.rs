//! The SHA-256 of a file, computed as it is written or read.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The bytes of a file, and their SHA-256.
pub fn sum(path: &Path) -> io::Result<(u64, String)> {
    let mut digest = Summed::new(io::sink());
    let bytes = io::copy(&mut File::open(path)?, &mut digest)?;
    Ok((bytes, digest.sha256()))
}

/// Passes bytes on and sums them up.
pub struct Summed<W> {
    pub inner: W,
    digest: Sha256,
}

impl<W> Summed<W> {
    pub fn new(inner: W) -> Summed<W> {
        Summed { inner, digest: Sha256::new() }
    }

    /// The SHA-256 of all that was written, in hexadecimal digits.
    pub fn sha256(self) -> String {
        HEXLOWER.encode(&self.digest.finalize())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
