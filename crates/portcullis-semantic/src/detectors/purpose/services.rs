//! Fields that hold an address: of a service of the installation, a database, a host, or the page to go to
//! next.
//!
//! Addresses of the internal network are usual in settings, and an attack where the server loads what a
//! client names.

use super::name::{NAME_BYTES_MAX, above, has_word, innermost, is_of_body, is_plain_name, last_part};
use crate::{Location, Place};

/// The field is for the address of a service: `url`, `server_url`, `endpoint`, `http_proxy`, `healthcheck`.
/// Fields of what a server is to load and show (`image_url`, `import_url`, `avatar`) are none.
pub(in crate::detectors) fn names_address(location: Location<'_>) -> bool {
    const ADDRESSES: &[&[u8]] = words!("purpose", "addresses");
    const LOADED: &[&[u8]] = words!("purpose", "loaded");
    let last = last_part(location.name);
    is_of_body(location.place) && has_word(last, ADDRESSES) && !has_word(last, LOADED)
}

/// The parameter of a page says which server the page is about: a database's console has it in its addresses.
pub(in crate::detectors) fn names_server(location: Location<'_>) -> bool {
    const SERVERS: &[&[u8]] =
        &[b"server", b"dbhost", b"db_host", b"dbserver", b"pgsql", b"mssql", b"mongo", b"sqlite"];
    location.place == Place::Query && SERVERS.contains(&location.name)
}

/// The field says where an installation stands or what belongs to it: `baseUrl`, `webhook_url`, `redis_url`.
pub(in crate::detectors) fn names_own_service(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    // `servers.url`, `bugs.url`, `remote.host`: the word stands before it.
    let above = above(location.name).strip_suffix(b".");
    let above = above.filter(|_| has_word(last, &[b"url", b"uri", b"host", b"hosts", b"address"]));
    is_of_body(location.place)
        && (has_word(last, SERVICE_WORDS) || above.is_some_and(|above| has_word(last_part(above), OWNERS)))
}

/// The field says where a database, a cache or a queue is, whose ports are not those of the web.
pub(in crate::detectors) fn names_database(location: Location<'_>) -> bool {
    const STORES: &[&[u8]] = words!("purpose", "stores");
    let last = last_part(location.name);
    let above = above(location.name).strip_suffix(b".").unwrap_or_default();
    is_of_body(location.place) && (has_word(last, STORES) || has_word(last_part(above), STORES))
}

/// The field is for an address of a machine, with its port as people write it and no scheme.
pub(in crate::detectors) fn takes_host(location: Location<'_>) -> bool {
    const HOSTS: &[&[u8]] = words!("purpose", "hosts");
    is_of_body(location.place) && has_word(last_part(location.name), HOSTS)
}

/// The name says that the field may be for an address, or for what a server is to load, wherever the field
/// stands: `url`, `target_host`, `image`, `feed.source`.
pub(in crate::detectors) fn may_name_host(location: Location<'_>) -> bool {
    const LISTS: [&[&[u8]]; 6] = [
        words!("purpose", "addresses"),
        words!("purpose", "loaded"),
        words!("purpose", "hosts"),
        words!("purpose", "machines"),
        words!("purpose", "leads"),
        SERVICE_WORDS,
    ];
    LISTS.iter().any(|list| has_word(location.name, list))
}

/// The field says where a login leads back to: programs for a desk or a terminal wait on the machine itself
/// (RFC 8252).
pub fn names_redirect(name: &[u8]) -> bool {
    let last = last_part(name);
    name.len() <= NAME_BYTES_MAX
        && is_plain_name(name)
        && has_word(last, &[b"redirect"])
        && has_word(last, &[b"uri", b"uris", b"url", b"urls"])
}

/// The parameter says where a page leads: back, on, or out.
pub(in crate::detectors) fn leads_elsewhere(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] = words!("purpose", "leads");
    // Written in one.
    const WHOLE: &[&[u8]] = words!("purpose", "leads-whole");
    let last = innermost(location.name);
    has_word(last, WORDS) || WHOLE.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// The same, where the page is one of the site's own: `next`, `return_to`, `redirect`.
pub(in crate::detectors) fn leads_back(location: Location<'_>) -> bool {
    const WORDS: &[&[u8]] =
        &[b"next", b"return", b"redirect", b"redir", b"continue", b"goto", b"back", b"xredirect"];
    const WHOLE: &[&[u8]] = &[
        b"returnto",
        b"returnurl",
        b"redirecturl",
        b"redirecturi",
        b"redirectto",
        b"backurl",
        b"nexturl",
        b"relaystate",
        b"gotourl",
        b"continueurl",
    ];
    let last = innermost(location.name);
    has_word(last, WORDS) || WHOLE.iter().any(|known| last.eq_ignore_ascii_case(known))
}

const SERVICE_WORDS: &[&[u8]] = words!("purpose", "services");

/// Objects with a `url` of their own in a document that describes a package or an interface, or that
/// configures a service.
const OWNERS: &[&[u8]] = words!("purpose", "url-owners");

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn own_services() {
        assert!(names_own_service(at(Place::Json, "json.settings.webhookUrl")));
        assert!(
            !names_own_service(at(Place::Json, "imageUrl"))
                && !names_own_service(at(Place::Query, "webhook"))
        );
        assert!(names_own_service(at(Place::Json, "homepage")));
        assert!(names_own_service(at(Place::Json, "servers.servers.url")));
        assert!(
            !names_own_service(at(Place::Json, "image.url")) && !names_own_service(at(Place::Json, "url"))
        );
    }

    #[test]
    fn redirects() {
        for name in ["uri", "redirect", "next", "return_url", "image_redirect"] {
            assert!(!names_redirect(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn addresses() {
        for name in ["url", "server_url", "settings.endpoint", "http_proxy", "hostUrl", "health_check_url"] {
            assert!(names_address(at(Place::Json, name)), "{name}");
            assert!(!names_address(at(Place::Query, name)), "{name}");
        }
        for name in [
            "imageUrl",
            "avatar_url",
            "import_url",
            "source_url",
            "q",
            "urls_total",
            "redirect_url",
            "ids[url]",
        ] {
            assert!(!names_address(at(Place::Json, name)), "{name}");
        }
    }
}
