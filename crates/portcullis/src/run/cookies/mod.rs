//! The cookies that the upstreams of sites have set: kept in the data folder, and shared through Redis.

mod files;
mod link;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_inspect::IssuedSites;
use portcullis_metrics::Registry;
use portcullis_proxy::FindCookies;

use crate::run::kept::Ticker;
use crate::run::redis::Link;
use files::Files;

/// Keeps the cookies of all sites. Dropped, it writes what is new.
pub struct Keeper {
    sites: Arc<IssuedSites>,
    files: Arc<Mutex<Files>>,
    link: Option<Link>,
    ticker: Option<Ticker>,
}

impl Keeper {
    /// With what is in the data folder, and with the other nodes of this Redis.
    pub fn open(
        (data, bytes_max): (Option<PathBuf>, usize),
        redis: Option<&portcullis_config::Redis>,
        registry: &Registry,
    ) -> std::io::Result<Keeper> {
        let (files, key) = Files::open(data)?;
        let sites = Arc::new(IssuedSites::new(key, bytes_max));
        let files = Arc::new(Mutex::new(files));
        let link = redis.and_then(|redis| link::start(redis, &sites, &files, registry));
        let mut keeper = Keeper { sites, files, link, ticker: None };
        if lock(&keeper.files).are_kept() {
            let files = Arc::clone(&keeper.files);
            let turn = move |is_last| lock(&files).turn(is_last);
            keeper.ticker = Some(Ticker::start("cookies", turn)?);
        }
        Ok(keeper)
    }

    /// The cookies of a site, by its name; at first those that are kept.
    pub fn finder(&self) -> FindCookies {
        let (sites, files) = (Arc::clone(&self.sites), Arc::clone(&self.files));
        Arc::new(move |name| {
            let cookies = sites.site(name);
            lock(&files).add(&cookies);
            cookies
        })
    }

    /// Writes what is new, now.
    pub fn writer(&self) -> impl FnOnce() + Send + 'static {
        let files = Arc::clone(&self.files);
        move || lock(&files).turn(true)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // What it still has to tell comes from the sites.
        drop(self.link.take());
        drop(self.ticker.take());
    }
}

fn lock(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
