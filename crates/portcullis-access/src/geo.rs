//! GeoIP: country, continent and autonomous system of an address, from databases in MaxMind's format.

use std::net::IpAddr;

use serde::Deserialize;

use crate::country::Code;

/// The location of an address, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// ISO 3166-1.
    pub country: Option<Code>,
    /// `AF`, `AN`, `AS`, `EU`, `NA`, `OC`, `SA`.
    pub continent: Option<Code>,
    /// Number of the autonomous system.
    pub asn: Option<u32>,
}

impl Whereabouts {
    /// Fills fields that are unknown here from the other.
    pub fn or(self, other: Whereabouts) -> Whereabouts {
        Whereabouts {
            country: self.country.or(other.country),
            continent: self.continent.or(other.continent),
            asn: self.asn.or(other.asn),
        }
    }
}

/// A database of countries, autonomous systems or both.
pub struct GeoData {
    reader: maxminddb::Reader<Vec<u8>>,
}

impl std::fmt::Debug for GeoData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GeoData").field(&self.reader.metadata().database_type).finish()
    }
}

impl GeoData {
    /// Takes the bytes of an `.mmdb` file.
    pub fn new(bytes: Vec<u8>) -> Result<GeoData, String> {
        match maxminddb::Reader::from_source(bytes) {
            Ok(reader) => Ok(GeoData { reader }),
            Err(error) => Err(format!("it is not a MaxMind DB: {error}")),
        }
    }

    /// Looks up an address. The country is where the address is used, or where it is registered if that is
    /// unknown.
    pub fn find(&self, address: IpAddr) -> Whereabouts {
        let found = self.reader.lookup(address.to_canonical()).ok().and_then(|found| found.decode().ok()?);
        let Some(record): Option<Record<'_>> = found else { return Whereabouts::default() };
        let named = record.country.or(record.registered_country).and_then(|place| place.iso_code);
        // Some free databases have nothing but a code at the top.
        let country = named.or(record.country_code).and_then(Code::new);
        let continent = record.continent.and_then(|place| place.code).and_then(Code::new);
        Whereabouts {
            country,
            continent: continent.or_else(|| country?.continent()),
            asn: record.autonomous_system_number,
        }
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    country: Option<Place<'a>>,
    #[serde(borrow)]
    registered_country: Option<Place<'a>>,
    #[serde(borrow)]
    continent: Option<Place<'a>>,
    country_code: Option<&'a str>,
    autonomous_system_number: Option<u32>,
}

#[derive(Deserialize)]
struct Place<'a> {
    iso_code: Option<&'a str>,
    code: Option<&'a str>,
}
