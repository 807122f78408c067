//! Interfaces to the program that the API runs in.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

/// A banned client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banned {
    /// Scope of the ban: `all`, a site, or SITE/ROUTE.
    pub ban: String,
    /// Its address or network.
    pub client: String,
    /// Until when, in milliseconds since 1970.
    pub until: u64,
    /// Number of its bans so far.
    pub count: u32,
}

/// The banned clients.
pub trait Bans: Send + Sync {
    /// All of them.
    fn list(&self) -> Vec<Banned>;
    /// Lets a client in again, at one ban or everywhere: how many bans that ends.
    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize;
}

/// Result of a reload: what serves now, or why the old settings stay in use. None if the program is ending.
pub type ReloadResult = Option<Result<String, String>>;

/// Loads settings, rules and certificates again.
pub trait Reload: Send + Sync {
    /// Begins a reload and waits for its end.
    fn reload(&self) -> Pin<Box<dyn Future<Output = ReloadResult> + Send + '_>>;
}

/// The state of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It serves.
    Ready,
    /// It is ending.
    Draining,
}
