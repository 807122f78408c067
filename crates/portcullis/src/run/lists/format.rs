//! Reads the addresses in what a server answers. It may answer anything.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portcullis_config::ListFormat;
use portcullis_match::IpSet;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The share of all IPv4 addresses, and of the public IPv6 ones, that a list may have: one that has more is
/// a mistake, or is meant to open or close the site for everybody.
const SHARE_MAX: f64 = 0.25;
const ALL: [(IpAddr, u8); 2] =
    [(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), (IpAddr::V6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0)), 3)];

/// The addresses in `answer`, one network or range in each line.
pub fn addresses(answer: &[u8], format: &ListFormat) -> Result<String, String> {
    let text = std::str::from_utf8(answer).map_err(|_| "it is not text in UTF-8".to_owned())?;
    // Files of some servers begin with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let found = match format {
        ListFormat::Text => text.to_owned(),
        ListFormat::Json(pointers) => in_json(text, pointers).map_err(|error| error.to_string())?,
        ListFormat::JsonLines(pointers) => {
            let mut found = String::new();
            for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let of_line = in_json(line, pointers);
                found += &of_line.map_err(|error| format!("line {}: {error}", index + 1))?;
            }
            found
        }
    };
    check(&found)?;
    Ok(found)
}

/// Checks the text of a list.
pub fn check(text: &str) -> Result<IpSet, String> {
    let set = IpSet::parse_file(text).map_err(|error| {
        let line =
            1 + text.as_bytes()[..error.offset.min(text.len())].iter().filter(|b| **b == b'\n').count();
        format!("address {line}: {}", shortened(&error.message))
    })?;
    if set.is_empty() {
        return Err("it has no addresses".to_owned());
    }
    let share = ALL.iter().map(|(network, prefix)| set.share_of(*network, *prefix)).fold(0.0, f64::max);
    if share > SHARE_MAX {
        return Err("it has more than a quarter of all addresses".to_owned());
    }
    Ok(set)
}

/// What a server wrote may be long, and have anything in it.
fn shortened(message: &str) -> String {
    const SHOWN_MAX: usize = 120;
    let shown: String = message.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if message.chars().count() > SHOWN_MAX { format!("{shown}...") } else { shown }
}

fn in_json(text: &str, pointers: &[Vec<String>]) -> Result<String, serde_json::Error> {
    let mut found = String::new();
    for pointer in pointers {
        let mut json = serde_json::Deserializer::from_str(text);
        Place { path: pointer, found: &mut found }.deserialize(&mut json)?;
        json.end()?;
    }
    Ok(found)
}

/// Takes the texts at a place of a document and skips the others, which need no memory.
struct Place<'a> {
    path: &'a [String],
    found: &'a mut String,
}

impl Place<'_> {
    /// Where it goes on below the member or element `name`.
    fn below(&mut self, name: &str) -> Option<Place<'_>> {
        let (first, path) = self.path.split_first()?;
        (first == "*" || first == name).then_some(Place { path, found: self.found })
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if self.path.is_empty() {
            if text.contains('\n') {
                return Err(E::custom("an address has a line break"));
            }
            self.found.push_str(text);
            self.found.push('\n');
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        if self.path.is_empty() {
            return Err(A::Error::custom("there is an object in place of an address"));
        }
        while let Some(name) = members.next_key::<String>()? {
            match self.below(&name) {
                Some(place) => members.next_value_seed(place)?,
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    /// A list of texts stands for its elements.
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let next = match self.path.is_empty() {
                true => elements.next_element_seed(Place { path: &[], found: self.found })?,
                false => match self.below(&index.to_string()) {
                    Some(place) => elements.next_element_seed(place)?,
                    None => elements.next_element::<IgnoredAny>()?.map(drop),
                },
            };
            if next.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.other("a truth value")
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.other("a number")
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.other("a number")
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.other("a number")
    }
}

impl Place<'_> {
    /// What is no text matters only where an address belongs.
    fn other<E: serde::de::Error>(self, what: &str) -> Result<(), E> {
        match self.path.is_empty() {
            true => Err(E::custom(format_args!("there is {what} in place of an address"))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(texts: &[&str]) -> Vec<Vec<String>> {
        texts.iter().map(|text| text.split('/').skip(1).map(str::to_owned).collect()).collect()
    }

    #[test]
    fn places_of_json() {
        let found = |json: &str, at: &[&str]| addresses(json.as_bytes(), &ListFormat::Json(pointers(at)));
        let cloud = r#"{"sync": 1, "prefixes": [{"ip": "192.0.2.0/24", "n": [1, {"ip": "x"}]}, {"other": null},
                       {"ip": "198.51.100.7"}], "v6": {"a": ["2001:db8::/32"], "b": []}}"#;
        assert_eq!(found(cloud, &["/prefixes/*/ip"]).unwrap(), "192.0.2.0/24\n198.51.100.7\n");
        assert_eq!(found(cloud, &["/prefixes/0/ip", "/v6/*"]).unwrap(), "192.0.2.0/24\n2001:db8::/32\n");
        assert_eq!(found(r#"["192.0.2.1", "192.0.2.3-192.0.2.4"]"#, &[""]).unwrap().lines().count(), 2);
        assert_eq!(found(cloud, &["/nothing"]).unwrap_err(), "it has no addresses");
        for (at, why) in [("/sync", "a number"), ("/prefixes/*", "an object"), ("/prefixes/0/n", "a number")]
        {
            let error = found(cloud, &[at]).unwrap_err();
            assert!(error.contains(&format!("there is {why} in place of an address")), "{at}: {error}");
        }
        assert!(found(r#"["192.0.2.1\n192.0.2.2"]"#, &["/*"]).unwrap_err().contains("line break"));
        assert!(found(r#"["192.0.2.1"] ["192.0.2.2"]"#, &["/*"]).is_err());
        assert!(found(&"[".repeat(100_000), &["/*"]).unwrap_err().contains("recursion"));
    }

    #[test]
    fn lines() {
        let drop = ListFormat::JsonLines(pointers(&["/cidr"]));
        let text = "{\"cidr\":\"192.0.2.0/24\",\"sblid\":\"S\"}\r\n\n{\"type\":\"metadata\"}\n";
        assert_eq!(addresses(text.as_bytes(), &drop).unwrap(), "192.0.2.0/24\n");
        assert!(addresses(b"{\"cidr\":\"192.0.2.1\"}\n{", &drop).unwrap_err().starts_with("line 2: EOF"));
        let plain = |text: &[u8]| addresses(text, &ListFormat::Text);
        assert!(plain(b"\xef\xbb\xbf# comment\r\n192.0.2.1\r\n").is_ok());
        assert_eq!(plain(b"\xff").unwrap_err(), "it is not text in UTF-8");
        assert_eq!(plain(b"# nothing\n").unwrap_err(), "it has no addresses");
        let page = plain(b"192.0.2.1\n<!DOCTYPE html>\x1b[31m").unwrap_err();
        assert_eq!(page, "address 2: `<!DOCTYPE html>\\u{1b}[31m` is not an IP address");
        assert!(plain("x".repeat(1_000_000).as_bytes()).unwrap_err().len() < 200);
    }

    #[test]
    fn too_many_addresses() {
        let plain = |text: &str| addresses(text.as_bytes(), &ListFormat::Text).map(drop);
        let quarter = Err("it has more than a quarter of all addresses".to_owned());
        assert_eq!(plain("0.0.0.0/0"), quarter);
        assert_eq!(plain("0.0.0.0-127.255.255.255"), quarter);
        assert_eq!(plain("::/0"), quarter);
        assert_eq!(plain("2000::/4"), quarter);
        assert_eq!(plain("1.0.0.0/8\n224.0.0.0/3\n10.0.0.0/8\nfe80::/10\n8000::/1\n2001:db8::/32"), Ok(()));
    }
}
