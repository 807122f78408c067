//! What a field is for, as its name tells: `rawSql`, `settings[webhook_url]`, `user.password`.
//!
//! A name proves nothing: these are the few cases in which the same text is an attack in one field and the reason for
//! another. Only bodies count where a form or an API edits settings; what comes in a query string is for the page.

use crate::{Location, Place};

/// The field takes whole SQL statements: the editor of a database, a report or an alert.
pub(super) fn takes_statements(location: Location<'_>) -> bool {
    let part = last_part(location.name);
    is_of_field(location.place) && has_word(part, STATEMENT_WORDS)
        || is_of_body(location.place) && has_word(part, &[b"query", b"queries", b"statement", b"stmt"])
}

/// The field takes filters of a directory: the settings of a login by LDAP.
pub(super) fn takes_filters(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), &[b"filter", b"ldap"])
}

/// The field says where an installation stands or what belongs to it: `baseUrl`, `webhook_url`, `redis_url`.
pub(super) fn names_own_service(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), SERVICE_WORDS)
}

/// The field is for a password: any signs may stand in it.
pub(super) fn takes_password(location: Location<'_>) -> bool {
    has_word(last_part(location.name), &[b"password", b"passwd", b"passwort", b"passphrase", b"pwd", b"pass"])
}

const STATEMENT_WORDS: &[&[u8]] = &[b"sql", b"soql", b"hql", b"jpql", b"cql", b"ksql", b"tsql", b"plsql"];

const SERVICE_WORDS: &[&[u8]] = &[
    b"webhook",
    b"webhooks",
    b"hook",
    b"hooks",
    b"site",
    b"base",
    b"public",
    b"external",
    b"app",
    b"database",
    b"db",
    b"datasource",
    b"redis",
    b"broker",
    b"registry",
    b"ldap",
    b"smtp",
    b"prometheus",
    b"grafana",
    b"elasticsearch",
    b"origins",
];

fn is_of_body(place: Place) -> bool {
    matches!(place, Place::Form | Place::Json | Place::MultipartField | Place::XmlText | Place::XmlAttribute)
}

fn is_of_field(place: Place) -> bool {
    is_of_body(place) || place == Place::Query
}

/// The innermost name of a path of names that is no number: `sql` of `panels.0.sql`, `url` of `hook[url]`.
fn last_part(name: &[u8]) -> &[u8] {
    let mut parts = name.rsplit(|b| matches!(b, b'.' | b'[' | b']' | b'/'));
    parts.find(|part| part.iter().any(|b| !b.is_ascii_digit())).unwrap_or_default()
}

/// One of the words of `name` is in `list`, in any case. Signs part words, and so do capitals behind small letters.
fn has_word(name: &[u8], list: &[&[u8]]) -> bool {
    let mut start = 0;
    let mut ends = |end: usize| {
        let word = &name[start..end];
        start = end;
        let word = word.strip_prefix(b"_").or(word.strip_prefix(b"-")).unwrap_or(word);
        list.iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    let is_end = |pair: &[u8]| {
        !pair[1].is_ascii_alphanumeric() || pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
    };
    name.windows(2).enumerate().any(|(at, pair)| is_end(pair) && ends(at + 1)) || ends(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn fields_for_statements() {
        for name in ["sql", "rawSql", "json.panels.0.raw_sql", "report[sql][0]", "SQL", "sql-text"] {
            assert!(
                takes_statements(at(Place::Json, name)) && takes_statements(at(Place::Query, name)),
                "{name}"
            );
        }
        assert!(takes_statements(at(Place::Form, "query")) && !takes_statements(at(Place::Query, "query")));
        for name in ["q", "sqlite", "text", "id", "", "sql.x", "nosql"] {
            assert!(!takes_statements(at(Place::Form, name)), "{name}");
        }
        assert!(!takes_statements(at(Place::Cookie, "sql")) && !takes_statements(at(Place::Header, "X-Sql")));
    }

    #[test]
    fn other_fields() {
        assert!(names_own_service(at(Place::Json, "json.settings.webhookUrl")));
        assert!(
            !names_own_service(at(Place::Json, "imageUrl"))
                && !names_own_service(at(Place::Query, "webhook"))
        );
        assert!(
            takes_filters(at(Place::Form, "ldap_user_filter")) && !takes_filters(at(Place::Form, "filtered"))
        );
        assert!(
            takes_password(at(Place::Form, "user[newPassword]"))
                && !takes_password(at(Place::Form, "passenger"))
        );
    }
}
