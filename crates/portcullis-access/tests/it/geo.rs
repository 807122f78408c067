//! Look-ups in databases of different makers, in their formats.

use std::net::IpAddr;

use portcullis_access::{Code, GeoData, Whereabouts};
use portcullis_testkit::mmdb::{self, Value};

fn at(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn find(data: &GeoData, address: &str) -> String {
    let Whereabouts { country, continent, asn } = data.find(at(address));
    format!("{country:?} {continent:?} {asn:?}")
}

#[test]
fn what_databases_say() {
    let code = |key, code| Value::Map(vec![(key, Value::Text(code))]);
    let data = mmdb::write(&[
        (
            at("192.0.2.0"),
            24,
            Value::Map(vec![("country", code("iso_code", "DE")), ("continent", code("code", "EU"))]),
        ),
        (at("198.51.100.0"), 24, Value::Map(vec![("registered_country", code("iso_code", "us"))])),
        (at("203.0.113.0"), 25, Value::Map(vec![("country_code", Value::Text("JP"))])),
        (at("203.0.113.128"), 25, Value::Map(vec![("autonomous_system_number", Value::Number(64496))])),
        (at("2001:db8::"), 32, Value::Map(vec![("country_code", Value::Text("??"))])),
    ]);
    let data = GeoData::new(data).unwrap();
    for (address, expected) in [
        ("192.0.2.7", "Some(DE) Some(EU) None"),
        ("::ffff:192.0.2.7", "Some(DE) Some(EU) None"),
        ("198.51.100.1", "Some(US) Some(NA) None"),
        ("203.0.113.1", "Some(JP) Some(AS) None"),
        ("203.0.113.200", "None None Some(64496)"),
        ("2001:db8::1", "None None None"),
        ("2001:db9::1", "None None None"),
    ] {
        assert_eq!(find(&data, address), expected, "{address}");
    }
    let known = data.find(at("203.0.113.200")).or(data.find(at("192.0.2.1")));
    assert_eq!((known.country, known.asn), (Code::new("DE"), Some(64496)), "one database adds to the other");
    assert!(GeoData::new(b"no database".to_vec()).unwrap_err().contains("not a MaxMind DB"));
}
