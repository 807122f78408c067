//! `@geoLookup`: where an address is, from a MaxMind DB that was read at load time. Fills `GEO` with the keys
//! of ModSecurity 2 (`msre_op_geoLookup_execute`); what the database does not say is empty, or 0 for a
//! number.

use std::net::IpAddr;

use portcullis_types::Span;
use serde::Deserialize;

use crate::Class;
use crate::execution::Execution;

/// A geography database, ready to be asked.
pub struct GeoDb {
    reader: maxminddb::Reader<Vec<u8>>,
}

impl std::fmt::Debug for GeoDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GeoDb").field(&self.reader.metadata().database_type).finish()
    }
}

impl GeoDb {
    /// Takes the bytes of an `.mmdb` file.
    pub fn new(bytes: Vec<u8>) -> Result<GeoDb, String> {
        match maxminddb::Reader::from_source(bytes) {
            Ok(reader) => Ok(GeoDb { reader }),
            Err(error) => Err(format!("it is not a MaxMind DB: {error}")),
        }
    }

    /// Keys and values of `GEO`; `None` for an address that the database does not know.
    pub(crate) fn place(&self, address: IpAddr) -> Option<[(&'static str, String); 11]> {
        let record: Record<'_> = self.reader.lookup(address).ok()?.decode().ok()??;
        // Some free databases have nothing but a code at the top.
        let country = record.country.or(record.registered_country).unwrap_or_default();
        let code = country.iso_code.or(record.country_code).unwrap_or_default();
        let english =
            |names: Option<Names<'_>>| names.and_then(|names| names.en).unwrap_or_default().to_owned();
        let location = record.location.unwrap_or_default();
        let region = record.subdivisions.unwrap_or_default().0.and_then(|first| first.iso_code);
        let number = |value: Option<Number>| value.map_or(0.0, |number| number.0);
        Some([
            ("COUNTRY_CODE", code.to_owned()),
            ("COUNTRY_CODE3", alpha3(code).to_owned()),
            ("COUNTRY_NAME", english(country.names)),
            (
                "COUNTRY_CONTINENT",
                record.continent.and_then(|place| place.code).unwrap_or_default().to_owned(),
            ),
            ("REGION", region.unwrap_or_default().to_owned()),
            ("CITY", english(record.city.and_then(|place| place.names))),
            ("POSTAL_CODE", record.postal.and_then(|place| place.code).unwrap_or_default().to_owned()),
            ("LATITUDE", format!("{:.6}", number(location.latitude))),
            ("LONGITUDE", format!("{:.6}", number(location.longitude))),
            ("DMA_CODE", number(location.metro_code).to_string()),
            ("AREA_CODE", "0".to_owned()),
        ])
    }
}

impl Execution<'_> {
    /// True if `database` knows the address in `form`; `GEO` says what it knows.
    pub(crate) fn geo_lookup(&mut self, database: &GeoDb, form: Span) -> bool {
        let text = std::str::from_utf8(self.message.store.text(form)).ok();
        let address = text.and_then(|text| text.trim().parse::<IpAddr>().ok());
        let place = address.and_then(|address| database.place(address.to_canonical()));
        self.message.store.clear_class(Class::Geo);
        for (key, value) in place.iter().flatten() {
            let key = self.message.store.push(key.as_bytes());
            let value = self.message.store.push(value.as_bytes());
            self.message.store.add(Class::Geo, key, value);
        }
        place.is_some()
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
    #[serde(borrow)]
    city: Option<Place<'a>>,
    #[serde(borrow)]
    postal: Option<Place<'a>>,
    #[serde(borrow)]
    subdivisions: Option<First<'a>>,
    location: Option<Location>,
    country_code: Option<&'a str>,
}

#[derive(Default, Deserialize)]
struct Place<'a> {
    iso_code: Option<&'a str>,
    code: Option<&'a str>,
    #[serde(borrow)]
    names: Option<Names<'a>>,
}

#[derive(Deserialize)]
struct Names<'a> {
    en: Option<&'a str>,
}

#[derive(Default, Deserialize)]
struct Location {
    latitude: Option<Number>,
    longitude: Option<Number>,
    metro_code: Option<Number>,
}

/// A number of any of the format's types: databases differ.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Number;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number")
            }
            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The first of a list: the largest subdivision.
#[derive(Default)]
struct First<'a>(Option<Place<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for First<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> serde::de::Visitor<'de> for Visitor<'a> {
            type Value = First<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of subdivisions")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<First<'a>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_seq(Visitor(std::marker::PhantomData))
    }
}

/// ISO 3166-1: the three letters of a country by its two; empty if there is no such country.
fn alpha3(code: &str) -> &'static str {
    let found = COUNTRIES.split(' ').find(|pair| code.len() == 2 && pair.starts_with(code));
    found.map_or("", |pair| &pair[2..])
}

/// Two letters, then three.
const COUNTRIES: &str = "\
    ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW AXALA AZAZE BABIH BBBRB \
    BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN BOBOL BQBES BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR \
    BZBLZ CACAN CCCCK CDCOD CFCAF CGCOG CHCHE CICIV CKCOK CLCHL CMCMR CNCHN COCOL CRCRI CUCUB CVCPV CWCUW CXCXR \
    CYCYP CZCZE DEDEU DJDJI DKDNK DMDMA DODOM DZDZA ECECU EEEST EGEGY EHESH ERERI ESESP ETETH FIFIN FJFJI FKFLK \
    FMFSM FOFRO FRFRA GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL GMGMB GNGIN GPGLP GQGNQ GRGRC GSSGS \
    GTGTM GUGUM GWGNB GYGUY HKHKG HMHMD HNHND HRHRV HTHTI HUHUN IDIDN IEIRL ILISR IMIMN ININD IOIOT IQIRQ IRIRN \
    ISISL ITITA JEJEY JMJAM JOJOR JPJPN KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA KPPRK KRKOR KWKWT KYCYM KZKAZ LALAO \
    LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA LYLBY MAMAR MCMCO MDMDA MEMNE MFMAF MGMDG MHMHL MKMKD \
    MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ MRMRT MSMSR MTMLT MUMUS MVMDV MWMWI MXMEX MYMYS MZMOZ NANAM NCNCL NENER \
    NFNFK NGNGA NINIC NLNLD NONOR NPNPL NRNRU NUNIU NZNZL OMOMN PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM \
    PNPCN PRPRI PSPSE PTPRT PWPLW PYPRY QAQAT REREU ROROU RSSRB RURUS RWRWA SASAU SBSLB SCSYC SDSDN SESWE SGSGP \
    SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM SRSUR SSSSD STSTP SVSLV SXSXM SYSYR SZSWZ TCTCA TDTCD TFATF \
    TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON TRTUR TTTTO TVTUV TWTWN TZTZA UAUKR UGUGA UMUMI USUSA UYURY \
    UZUZB VAVAT VCVCT VEVEN VGVGB VIVIR VNVNM VUVUT WFWLF WSWSM YEYEM YTMYT ZAZAF ZMZMB ZWZWE";

#[cfg(test)]
mod tests {
    use super::{COUNTRIES, GeoDb, alpha3};

    #[test]
    fn three_letters_by_two() {
        assert_eq!(COUNTRIES.split(' ').filter(|pair| pair.len() == 5).count(), 249);
        assert_eq!((alpha3("DE"), alpha3("ZW"), alpha3("AD")), ("DEU", "ZWE", "AND"));
        assert_eq!((alpha3("XX"), alpha3("D"), alpha3("")), ("", "", ""));
    }

    #[test]
    fn what_is_no_database() {
        assert!(GeoDb::new(b"\x00\x01old GeoIP".to_vec()).unwrap_err().contains("not a MaxMind DB"));
    }
}
