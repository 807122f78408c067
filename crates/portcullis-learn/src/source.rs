//! Who has sent something, and how much of it must have come.

/// What a field must have shown before it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Values.
    pub values: u64,
    /// Networks of clients, and sessions where most of the values came with one.
    pub networks: u64,
    /// Days.
    pub days: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { values: 200, networks: 30, days: 7 }
    }
}

/// Days on which a field must have seen something before it counts.
pub const OPENING_DAYS_MIN: u32 = 3;

/// What is known of a client, beside where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing.
    #[default]
    Anybody,
    /// It has logged in, as far as that can be known.
    LoggedIn,
    /// The operator vouches for it.
    Trusted,
}

/// Where it came from, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The network of the client, see [`network`](crate::network).
    pub network: u32,
    /// A hash of the session that it belonged to, if it had one.
    pub session: Option<u32>,
    /// Days since 1970.
    pub day: u32,
    /// What is known of the client.
    pub standing: Standing,
}
