//! `@rbl`: names to ask a DNS block list for, and what its answers mean. Follows `msre_op_rbl_execute` of
//! ModSecurity 2, and RFC 5782 for IPv6, which it has not.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A DNS block list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rbl {
    zone: Box<str>,
    /// The label before the address: the access key of http:BL.
    key: Option<Box<str>>,
    kind: Kind,
}

/// Lists whose answers say more than "listed".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Uribl,
    Spamhaus,
    HttpBl,
}

/// A name in DNS has at most this many bytes.
const NAME_BYTES_MAX: usize = 253;
/// And each of its labels this many.
const LABEL_BYTES_MAX: usize = 63;

impl Rbl {
    /// A list by its zone, such as `sbl-xbl.spamhaus.org`; `key` is `SecHttpBlKey`. The error says what is
    /// wrong.
    pub fn new(zone: &str, key: Option<&str>) -> Result<Rbl, String> {
        let zone = zone.trim().trim_end_matches('.').to_ascii_lowercase();
        if !is_name(&zone) {
            return Err(format!("{zone:?} is not a DNS zone"));
        }
        let kind =
            [("uribl.com", Kind::Uribl), ("spamhaus.org", Kind::Spamhaus), ("httpbl.org", Kind::HttpBl)]
                .into_iter()
                .find(|(part, _)| zone.contains(part))
                .map_or(Kind::Plain, |(_, kind)| kind);
        let key = match (kind, key) {
            (Kind::HttpBl, None) => return Err(format!("{zone} takes an access key: set SecHttpBlKey")),
            (Kind::HttpBl, Some(key)) if !is_name(key) => {
                return Err("SecHttpBlKey is not of letters and digits".to_owned());
            }
            (Kind::HttpBl, Some(key)) => Some(key.to_ascii_lowercase().into()),
            _ => None,
        };
        Ok(Rbl { zone: zone.into(), key, kind })
    }

    /// The name to look up for `value`: an IPv4 address that it begins with, an IPv6 address, a host name.
    /// `None` for anything else, which no list can have.
    pub(crate) fn name(&self, value: &[u8]) -> Option<String> {
        let mut name = String::with_capacity(self.zone.len() + 80);
        let address = leading_ipv4(value);
        if let (Some(key), Some(_)) = (&self.key, address) {
            let _ = write!(name, "{key}.");
        }
        if let Some(address) = address {
            let [a, b, c, d] = address.octets();
            let _ = write!(name, "{d}.{c}.{b}.{a}");
        } else {
            let text = std::str::from_utf8(value).ok()?.trim();
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            match bare.parse::<Ipv6Addr>() {
                Ok(address) => {
                    for octet in address.octets().iter().rev() {
                        let _ = write!(name, "{:x}.{:x}.", octet & 15, octet >> 4);
                    }
                    name.pop();
                }
                Err(_) => name.push_str(text.strip_suffix('.').unwrap_or(text)),
            }
        }
        let _ = write!(name, ".{}", self.zone);
        name.make_ascii_lowercase();
        is_name(&name).then_some(name)
    }

    /// The text of `TX:0` for a listed name.
    pub(crate) fn message(&self, name: &str, address: Ipv4Addr, target: &[u8]) -> Vec<u8> {
        let target = String::from_utf8_lossy(target);
        let [first, days, score, last] = address.octets();
        let succeeded = format!("RBL lookup of {name} succeeded at {target}");
        let text = match self.kind {
            Kind::Plain => format!("{succeeded}."),
            Kind::Uribl => {
                let colour = match last {
                    2 => "BLACK",
                    4 => "GREY",
                    8 => "RED",
                    14 => "BLACK,GREY,RED",
                    255 => "DNS IS BLOCKED",
                    _ => "WHITE",
                };
                format!("{succeeded} ({colour}).")
            }
            Kind::Spamhaus => match last {
                2 | 3 => format!("{succeeded} (Static UBE sources)."),
                4..=7 => format!("{succeeded} (Illegal 3rd party exploits)."),
                10 | 11 => format!("{succeeded} (Delivering unauthenticated SMTP email)."),
                _ => format!("{succeeded}."),
            },
            Kind::HttpBl if first != 127 => format!("RBL lookup of {name} failed: bad response"),
            Kind::HttpBl => {
                let visitor = match last {
                    0 => "Search Engine",
                    1 => "Suspicious IP",
                    2 => "Harvester IP",
                    3 => "Suspicious harvester IP",
                    4 => "Comment spammer IP",
                    5 => "Suspicious comment spammer IP",
                    6 => "Harvester and comment spammer IP",
                    7 => "Suspicious harvester comment spammer IP",
                    _ => " ",
                };
                format!("{succeeded}. {visitor}: {days} days since last activity, threat score {score}")
            }
        };
        text.into_bytes()
    }
}

/// An IPv4 address at the beginning, whatever follows it: `192.0.2.1, 192.0.2.2` and `192.0.2.1:80` are read
/// as their first address.
fn leading_ipv4(value: &[u8]) -> Option<Ipv4Addr> {
    let mut rest = value.trim_ascii_start();
    let mut octets = [0u8; 4];
    for (at, octet) in octets.iter_mut().enumerate() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *octet = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        rest = &rest[digits..];
        if at < 3 {
            rest = rest.strip_prefix(b".")?;
        }
    }
    Some(Ipv4Addr::from(octets))
}

fn is_name(text: &str) -> bool {
    let fits = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= NAME_BYTES_MAX && text.split('.').all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_to_ask_for() {
        let list = Rbl::new("List.Example.", None).unwrap();
        let v6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.list.example";
        for (value, name) in [
            ("192.0.2.7", Some("7.2.0.192.list.example")),
            (" 192.0.2.7, 198.51.100.1", Some("7.2.0.192.list.example")),
            ("192.0.2.7:80", Some("7.2.0.192.list.example")),
            ("2001:db8::1", Some(v6)),
            ("[2001:db8::1]", Some(v6)),
            ("Mail.Example.ORG", Some("mail.example.org.list.example")),
            ("mail.example.org.", Some("mail.example.org.list.example")),
            // What is no address may still be a name.
            ("300.0.2.7", Some("300.0.2.7.list.example")),
            ("", None),
            ("a..b", None),
            ("a b", None),
            ("a/b", None),
            ("\u{e9}.example", None),
        ] {
            assert_eq!(list.name(value.as_bytes()).as_deref(), name, "{value}");
        }
        assert_eq!(list.name(&[0xff; 4]), None);
        assert_eq!(list.name("a".repeat(64).as_bytes()), None);
        assert_eq!(list.name("abc.".repeat(62).as_bytes()), None);
    }

    #[test]
    fn an_access_key_comes_before_an_address() {
        let list = Rbl::new("dnsbl.httpbl.org", Some("abcDEF")).unwrap();
        assert_eq!(list.name(b"127.1.2.3").as_deref(), Some("abcdef.3.2.1.127.dnsbl.httpbl.org"));
        assert_eq!(list.name(b"a.example").as_deref(), Some("a.example.dnsbl.httpbl.org"));
        assert!(Rbl::new("dnsbl.httpbl.org", None).unwrap_err().contains("SecHttpBlKey"));
        assert!(Rbl::new("dnsbl.httpbl.org", Some("a b")).is_err());
        for zone in ["", ".", "a b", "a..b", "%{tx.zone}"] {
            assert!(Rbl::new(zone, None).is_err(), "{zone}");
        }
    }

    #[test]
    fn answers_have_meanings() {
        let says = |zone: &str, address: [u8; 4]| {
            let list = Rbl::new(zone, Some("key")).unwrap();
            String::from_utf8(list.message("n", address.into(), b"REMOTE_ADDR")).unwrap()
        };
        let listed = "RBL lookup of n succeeded at REMOTE_ADDR";
        assert_eq!(says("list.example", [127, 0, 0, 2]), format!("{listed}."));
        for (last, meaning) in [(2, "BLACK"), (14, "BLACK,GREY,RED"), (255, "DNS IS BLOCKED"), (1, "WHITE")] {
            assert_eq!(says("multi.uribl.com", [127, 0, 0, last]), format!("{listed} ({meaning})."));
        }
        assert_eq!(
            says("zen.spamhaus.org", [127, 0, 0, 4]),
            format!("{listed} (Illegal 3rd party exploits).")
        );
        assert_eq!(says("zen.spamhaus.org", [127, 0, 0, 9]), format!("{listed}."));
        assert_eq!(
            says("dnsbl.httpbl.org", [127, 3, 25, 4]),
            format!("{listed}. Comment spammer IP: 3 days since last activity, threat score 25")
        );
        assert_eq!(says("dnsbl.httpbl.org", [10, 3, 25, 4]), "RBL lookup of n failed: bad response");
    }
}
