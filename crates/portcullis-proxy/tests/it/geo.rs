//! Clients by country, continent and autonomous system: who is let in, who is counted, what is told and
//! passed on.

use std::path::Path;

use crate::common::*;
use portcullis_testkit::mmdb::{self, Value};

const TRUSTED: &str = "client_address = { trusted_proxies = [\"127.0.0.1\"], header = \"x-forwarded-for\" }";

/// 192.0.2.0/24 is in Germany, 198.51.100.0/24 in `second`.
fn write_countries(path: &Path, second: &'static str) {
    let country = |code| Value::Map(vec![("country_code", Value::Text(code))]);
    let networks = [
        ("192.0.2.0".parse().unwrap(), 24, country("DE")),
        ("198.51.100.0".parse().unwrap(), 24, country(second)),
    ];
    replace(path, &mmdb::write(&networks));
}

/// Another file in its place, as tools do that bring new ones.
fn replace(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, bytes).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// AS 64496 has 192.0.2.128/25 and 203.0.113.0/24.
fn write_systems(path: &Path) {
    let system = || Value::Map(vec![("autonomous_system_number", Value::Number(64496))]);
    let networks =
        [("192.0.2.128".parse().unwrap(), 25, system()), ("203.0.113.0".parse().unwrap(), 24, system())];
    std::fs::write(path, mmdb::write(&networks)).unwrap();
}

fn front(backend: &Backend, folder: &Path, site: &str) -> Front {
    let (countries, systems) = (folder.join("country.mmdb"), folder.join("asn.mmdb"));
    write_countries(&countries, "JP");
    write_systems(&systems);
    let geo = format!("geo = {{ files = ['{}', '{}'] }}", countries.display(), systems.display());
    Front::start(&document(backend.address, &format!("{TRUSTED}\n{geo}"), "", &format!("{RULES}{site}"), ""))
}

fn statuses(front: &Front, target: &str, clients: &[&str]) -> Vec<u16> {
    let mut connection = front.client();
    let one = |client: &&str| {
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n"));
        status(&connection.response().0)
    };
    clients.iter().map(one).collect()
}

#[test]
fn lists_name_countries_continents_and_systems() {
    let backend = Backend::start(|_| ok("ok"));
    let folder = tempfile::tempdir().unwrap();
    let site = "access = { deny = { continents = [\"eu\"], countries = [\"FR\"] }, allow = { asns = [64496] }, \
                bypass = { countries = [\"JP\"] } }";
    let front = front(&backend, folder.path(), site);
    let clients = ["192.0.2.1", "192.0.2.200", "198.51.100.1", "203.0.113.1", "10.0.0.1"];
    assert_eq!(statuses(&front, "/", &clients), [403, 200, 200, 200, 200]);
    assert_eq!(statuses(&front, "/attack", &clients), [403, 403, 200, 403, 403], "Japan is not inspected");
    let events = front.events(5);
    let control = events[0].verdict.control.as_ref().unwrap();
    assert_eq!((&*control.name, events[0].client.country.as_deref()), ("continent EU", Some("DE")));
    assert_eq!(events[0].verdict.reason, "The client is denied by `continent EU`");
    let system = events.iter().find(|event| event.client.addr == "203.0.113.1").unwrap();
    assert_eq!((system.client.asn, system.client.country.as_deref()), (Some(64496), None));
    let looked_up =
        |result: &str| front.metric(&format!("portcullis_geo_lookups_total{{result=\"{result}\"}}"));
    until(|| (looked_up("known"), looked_up("unknown")) == (8.0, 2.0));
}

#[test]
fn limits_count_by_place_and_headers_tell_it() {
    let backend = Backend::start(|_| ok("ok"));
    let folder = tempfile::tempdir().unwrap();
    let site = "request_headers = { set = { X-Place = \"{continent}/{country}/{asn}\" } }\n\
        rate_limits = [{ name = \"country\", rate = 2, per = \"1h\", key = [\"country\"], only = { continents = [\"AS\"] } },\n\
        { name = \"system\", rate = 1, per = \"1h\", key = [\"asn\"], only = { asns = [64496] } }]";
    let front = front(&backend, folder.path(), site);
    let japan = ["198.51.100.1", "198.51.100.2", "198.51.100.3"];
    assert_eq!(statuses(&front, "/", &japan), [200, 200, 429]);
    assert_eq!(
        statuses(&front, "/", &["192.0.2.200", "203.0.113.1", "192.0.2.1", "10.0.0.1"]),
        [200, 429, 200, 200]
    );
    let places: Vec<_> =
        backend.seen().iter().map(|seen| seen.header("x-place").unwrap().to_string()).collect();
    assert_eq!(places, ["AS/JP/", "AS/JP/", "EU/DE/64496", "EU/DE/", "//"]);
}

#[test]
fn a_database_is_read_again_when_it_changes() {
    let backend = Backend::start(|_| ok("ok"));
    let folder = tempfile::tempdir().unwrap();
    let front = front(&backend, folder.path(), "access = { deny = { countries = [\"KP\"] } }");
    let file = folder.path().join("country.mmdb");
    assert_eq!(statuses(&front, "/", &["198.51.100.1"]), [200]);
    replace(&file, b"no database");
    let failed = "portcullis_geo_reloads_total{result=\"failed\"}";
    until(|| front.metric(failed) == 1.0);
    assert!(
        front.lines().iter().any(|line| line.ends_with("keeping the previous database")),
        "{:?}",
        front.lines()
    );
    write_countries(&file, "KP");
    until(|| statuses(&front, "/", &["198.51.100.1"]) == [403]);
    front.counts("portcullis_geo_reloads_total{result=\"ok\"}", 1.0);
}
