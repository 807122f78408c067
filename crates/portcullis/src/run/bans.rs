//! Bans of the proxy, as the admin listener shows them.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis_admin::Bans;
use portcullis_event::Timestamp;
use portcullis_proxy::BanList;
use serde::Serialize;

pub struct Desk(pub BanList);

#[derive(Serialize)]
struct Page<'a> {
    bans: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    ban: &'a str,
    client: &'a str,
    until: Timestamp,
    seconds_left: u64,
    count: u32,
}

impl Bans for Desk {
    fn list(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let banned = self.0.list();
        let entries = banned.iter().map(|banned| Entry {
            ban: &banned.ban,
            client: &banned.client,
            until: Timestamp::from_epoch_millis(millis(now + banned.left)),
            seconds_left: banned.left.as_secs(),
            count: banned.count,
        });
        let page = Page { bans: entries.collect() };
        let mut text = serde_json::to_string(&page).unwrap_or_default();
        text.push('\n');
        text
    }

    fn impose(&self, ban: Option<&str>, client: IpAddr, length: Duration) -> usize {
        self.0.impose(ban, client, length).len()
    }

    fn lift(&self, ban: Option<&str>, client: IpAddr) -> usize {
        self.0.lift(ban, client)
    }
}
