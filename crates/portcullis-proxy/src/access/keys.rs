//! Buckets of a rate limit that a request belongs to.

use std::borrow::Cow;
use std::net::IpAddr;

use portcullis_access::{Code, Keying};
use portcullis_config::{KeyPart, RateLimit};
use portcullis_http::cookie::{self, CookieFormat};
use portcullis_http::message::RequestHead;

use super::Visitor;
use crate::path;

/// Buckets that one request is counted in. Who sends so many different values that there would be more shares
/// a bucket with all others who do.
const BUCKETS_MAX: usize = 4;

/// The buckets of a request. There are several where a header or cookie has several values, for nobody knows
/// which of them the application goes by.
pub(super) struct Keys {
    first: Keying,
    others: Vec<Keying>,
}

impl Keys {
    /// None if the request lacks what the key is made of. `empty` is a key without parts, `rule` what a rule
    /// says.
    pub(super) fn of(
        settings: &RateLimit,
        empty: Keying,
        client: Visitor,
        head: &RequestHead,
        rule: Option<&[u8]>,
    ) -> Option<Keys> {
        let mut keys = Keys { first: empty, others: Vec::new() };
        for part in &settings.key {
            match part {
                KeyPart::Client => match settings.prefixes.network(client.address) {
                    IpAddr::V4(v4) => keys.add(&v4.octets()),
                    IpAddr::V6(v6) => keys.add(&v6.octets()),
                },
                KeyPart::Rule => keys.add(rule?),
                KeyPart::Path => keys.add(&path::as_servers_see(head.path())),
                KeyPart::Country => keys.add(text(&client.place.country)),
                KeyPart::Continent => keys.add(text(&client.place.continent)),
                // Clients of which nothing is known are counted together.
                KeyPart::Asn => keys.add(&client.place.asn.unwrap_or(0).to_le_bytes()),
                KeyPart::Header(name) => keys.add_all(head.header(name).map(Cow::Borrowed))?,
                KeyPart::Cookie(name) => keys.add_all(cookies(head, name.as_bytes()))?,
            }
        }
        Some(keys)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = Keying> {
        std::iter::once(self.first).chain(self.others)
    }

    fn add(&mut self, value: &[u8]) {
        for key in std::iter::once(&mut self.first).chain(&mut self.others) {
            *key = key.clone().part(value);
        }
    }

    fn add_all<'h>(&mut self, mut values: impl Iterator<Item = Cow<'h, [u8]>>) -> Option<()> {
        let first = values.next()?;
        let mut more: Vec<Cow<'h, [u8]>> = Vec::new();
        for value in values {
            if value != first && !more.contains(&value) {
                more.push(value);
            }
            if (1 + self.others.len()) * (1 + more.len()) > BUCKETS_MAX {
                // One part more than a value has: no value is counted there.
                self.add(b"");
                self.add(b"many");
                return Some(());
            }
        }
        let mut others = Vec::new();
        for value in &more {
            let each = std::iter::once(&self.first).chain(&self.others);
            others.extend(each.map(|key| key.clone().part(value)));
        }
        self.add(&first);
        self.others.append(&mut others);
        Some(())
    }
}

fn text(code: &Option<Code>) -> &[u8] {
    code.as_ref().map_or(b"", |code| code.as_str().as_bytes())
}

/// The values of all cookies with a name.
fn cookies<'h>(head: &'h RequestHead, name: &[u8]) -> impl Iterator<Item = Cow<'h, [u8]>> {
    head.header("cookie").flat_map(move |header| {
        let cookies = cookie::parse(header, CookieFormat::V0, Some(b';')).cookies;
        let named = cookies.into_iter().filter(|cookie| cookie.full_name(header).as_ref() == name);
        named.map(|cookie| Cow::Borrowed(cookie.value(header))).collect::<Vec<_>>()
    })
}
