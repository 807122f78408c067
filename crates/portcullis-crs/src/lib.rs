//! Releases of the OWASP CRS: fetched, checked, unpacked within limits, compiled, and only then put in place.
//!
//! ```text
//!  URL or file ──read──> archive ──unpack──> Release ──verify──> staged folder ──compile──> DIR/VERSION
//!               bounded    │       bounded,            content                    the real   DIR/current
//!                       SHA-256    in memory           digest                     loader
//! ```
//!
//! - An archive is a peer: its size, its entries, what they unpack to, and their names are bounded. Nothing
//!   of it reaches the disk before it is verified, and only files that have a fixed place are kept.
//! - A release that the program knows ([`known`]) is recognised by the digest of its rules, whatever way they
//!   were packed. Any other needs the SHA-256 of its archive, or the caller's word that it needs no check.
//! - Rules that do not compile are not installed. A failure leaves nothing behind.
//!
//! It fetches nothing by itself, and does not know which rules run.
//!
//! ```
//! use portcullis_crs::{Origin, Version};
//!
//! let version: Version = "4.25.0".parse().unwrap();
//! assert!(matches!(Origin::of(None, version), Origin::Url(url) if url.starts_with("https://")));
//! assert!("../4.25.0".parse::<Version>().is_err());
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod archive;
mod error;
mod fetch;
mod install;
pub mod known;
pub mod limits;
mod release;
mod version;

pub use archive::unpack;
pub use error::Error;
pub use fetch::Origin;
pub use install::{CURRENT, Installed, Outcome, installed, stage};
pub use release::{Check, Release, sha256_hex};
pub use version::Version;
