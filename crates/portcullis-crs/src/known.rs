//! The releases that this program knows by the digest of their rules.
//!
//! A digest does not depend on how the rules were packed. It can be made without us, in the folder of a
//! release:
//!
//! ```sh
//! export LC_ALL=C
//! sha256sum crs-setup.conf.example rules/*.conf rules/*.conf.example rules/*.data | sort -k2 | sha256sum
//! ```

use crate::Version;

/// The release that is installed unless another is named; our tests run on it.
pub const PINNED: Version = Version::new(4, 25, 0);

/// A release that is known.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its version.
    pub version: Version,
    /// The digests of its rules: as the CRS project releases them, and as the Go module of the Coraza project
    /// holds them, which has the same rules without comments.
    pub digests: [&'static str; 2],
}

/// All of them, oldest first.
pub const RELEASES: &[Known] = &[
    Known {
        version: Version::new(4, 22, 0),
        digests: [
            "2c80414789bed93b3a74023b99f82fe76fefa346b87172190d59d2f4599c7bfc",
            "f3fbd749b842e96c831fd713c5797ca2990042301f8f22652c922e88488ec861",
        ],
    },
    Known {
        version: PINNED,
        digests: [
            "4918b7b16ea89b0b2848bd66b69e242ca900329629f80c0c3abe66f8c346d9a6",
            "079054026679fd286f2d3de050ba3ffcd8b63a1da018b8f69e5aabfc6451205c",
        ],
    },
];

/// The known release of this version.
pub fn release(version: Version) -> Option<&'static Known> {
    RELEASES.iter().find(|known| known.version == version)
}

/// Where the CRS project offers the release of this version.
pub fn url(version: Version) -> String {
    format!(
        "https://github.com/coreruleset/coreruleset/releases/download/v{version}/coreruleset-{version}-minimal.tar.gz"
    )
}
