//! Operators that depend on data from outside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bstr::{BString, ByteSlice};

use crate::Reference;
use crate::operator::{Found, Test};
use crate::transaction::{Transaction, Value};

/// The result of asking an external service.
pub(crate) enum Told {
    /// The operator needs no service.
    NotAsked,
    Found(Found),
    Nothing,
    Unknown,
}

/// Follows `msre_op_rbl_execute` and `msre_op_geoLookup_execute`.
pub(crate) fn run(
    transaction: &mut Transaction<'_>,
    reference: &Reference,
    test: &Test,
    value: &Value,
) -> Told {
    let world = &transaction.request.world;
    match test {
        Test::Rbl(zone) => {
            let name = rbl_name(&value.value, zone, &reference.settings.http_bl_key);
            match world.dns.get(&name) {
                None => Told::Nothing,
                Some(None) => Told::Unknown,
                Some(Some(address)) => listed(rbl_message(&name, zone, *address, &value.name)),
            }
        }
        Test::Geo => {
            let address = value.value.to_str().ok().and_then(|text| text.trim().parse::<IpAddr>().ok());
            let place = address.and_then(|address| world.places.get(&address));
            transaction.geo = place.cloned().unwrap_or_default();
            match place {
                Some(_) => Told::Found(Found { captures: Vec::new(), unsets: false }),
                None => Told::Nothing,
            }
        }
        Test::Scan => {
            let content = match value.name.starts_with(b"FILES_TMPNAMES:") {
                true => {
                    let mut kept = transaction.files.iter().filter(|file| !file.content.is_empty());
                    let number = value.value.to_str_lossy().replace("upload-", "").parse::<usize>();
                    let file = number.ok().and_then(|number| kept.nth(number - 1));
                    file.map(|file| file.content.clone()).unwrap_or_default()
                }
                false => value.value.clone(),
            };
            match world.scans.get(&content) {
                None => Told::Nothing,
                Some(None) => Told::Unknown,
                Some(Some(name)) => listed(name.clone()),
            }
        }
        Test::Always
        | Test::Never
        | Test::Rx(_)
        | Test::RxGlobal(_)
        | Test::Verify(..)
        | Test::RxMacro(..)
        | Test::Text(..)
        | Test::StrMatch(_)
        | Test::Number(..)
        | Test::Words(_)
        | Test::Addresses(_)
        | Test::Sqli
        | Test::Xss
        | Test::Bytes(_)
        | Test::UrlEncoding
        | Test::Utf8
        | Test::Rsub(_) => Told::NotAsked,
    }
}

fn listed(message: BString) -> Told {
    Told::Found(Found { captures: vec![message], unsets: false })
}

fn rbl_name(value: &[u8], zone: &BString, key: &BString) -> BString {
    let text = value.to_str_lossy();
    let text = text.trim();
    let name = match four_numbers(text) {
        Some([a, b, c, d]) if zone.contains_str("httpbl.org") => format!("{key}.{d}.{c}.{b}.{a}.{zone}"),
        Some([a, b, c, d]) => format!("{d}.{c}.{b}.{a}.{zone}"),
        None => match text.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
            Ok(address) => {
                let digits: Vec<String> =
                    format!("{:032x}", address.to_bits()).chars().rev().map(String::from).collect();
                format!("{}.{zone}", digits.join("."))
            }
            Err(_) => format!("{}.{zone}", text.strip_suffix('.').unwrap_or(text)),
        },
    };
    name.to_ascii_lowercase().into()
}

/// Returns the numbers that `sscanf` with `%d.%d.%d.%d` finds at the beginning of a text.
fn four_numbers(text: &str) -> Option<[u8; 4]> {
    let parts: Vec<&str> = text.splitn(4, '.').collect();
    let [a, b, c, rest] = parts.as_slice() else { return None };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    Some([number(a)?, number(b)?, number(c)?, number(&rest[..end])?])
}

fn rbl_message(name: &BString, zone: &BString, address: Ipv4Addr, target: &BString) -> BString {
    let [first, days, score, last] = address.octets();
    let listed = format!("RBL lookup of {name} succeeded at {target}");
    if zone.contains_str("uribl.com") {
        let colours =
            [(2, "BLACK"), (4, "GREY"), (8, "RED"), (14, "BLACK,GREY,RED"), (255, "DNS IS BLOCKED")];
        let colour = colours.iter().find(|(number, _)| *number == last).map_or("WHITE", |(_, colour)| colour);
        return format!("{listed} ({colour}).").into();
    }
    if zone.contains_str("spamhaus.org") {
        let why = match last {
            2 | 3 => " (Static UBE sources)",
            4..=7 => " (Illegal 3rd party exploits)",
            10 | 11 => " (Delivering unauthenticated SMTP email)",
            _ => "",
        };
        return format!("{listed}{why}.").into();
    }
    if zone.contains_str("httpbl.org") {
        if first != 127 {
            return format!("RBL lookup of {name} failed: bad response").into();
        }
        let visitors = [
            "Search Engine",
            "Suspicious IP",
            "Harvester IP",
            "Suspicious harvester IP",
            "Comment spammer IP",
            "Suspicious comment spammer IP",
            "Harvester and comment spammer IP",
            "Suspicious harvester comment spammer IP",
        ];
        let visitor = visitors.get(usize::from(last)).unwrap_or(&" ");
        let activity = format!("{days} days since last activity, threat score {score}");
        return format!("{listed}. {visitor}: {activity}").into();
    }
    format!("{listed}.").into()
}
