//! Fields for queries: SQL statements, conditions of other query languages, LDAP filters, formulas, search
//! terms.
//!
//! An editor of reports or dashboards sends whole statements, and a search box sends names of functions: they
//! are what the field is for.

use super::name::{has_last_word, has_word, innermost, is_key_of_list, is_of_body, is_of_field, last_part};
use crate::{Location, Place};

/// The field takes whole SQL statements: the editor of a database, a report or an alert.
pub(crate) fn takes_statements(location: Location<'_>) -> bool {
    let part = last_part(location.name);
    is_of_field(location.place) && has_word(part, STATEMENT_WORDS)
        || is_of_body(location.place) && (has_word(part, EDITOR_WORDS) || is_attribute(location))
        // S3 Select.
        || location.place == Place::XmlText && location.name == b"Expression"
}

/// The value of an attribute of a span or log record of OpenTelemetry, which tells what a service asked its
/// database, and which command line started it.
pub(in crate::detectors) fn is_attribute(location: Location<'_>) -> bool {
    const VALUES: [&[u8]; 2] = [b"value.stringValue", b"value.string_value"];
    let above = VALUES.iter().find_map(|end| location.name.strip_suffix(*end));
    location.place == Place::Json && above.is_some_and(|above| above.ends_with(b"attributes."))
}

/// The field takes conditions of a query language that is not that of a database (JQL, KQL, OData, ...): they
/// look like SQL's.
pub(in crate::detectors) fn takes_conditions(location: Location<'_>) -> bool {
    const LANGUAGES: &[&[u8]] = &[
        b"jql", b"kql", b"wiql", b"aql", b"nrql", b"spl", b"promql", b"logql", b"lucene", b"soql", b"cql",
        b"odata",
    ];
    let part = last_part(location.name);
    // What map and data services ask for: `where=NAME LIKE '%x%' AND POP > 100`.
    const NAMES: &[&[u8]] = &[b"$filter", b"$search", b"where"];
    // What a saved search, an alert or a rule of a settings page asks for.
    const SAVED: &[&[u8]] =
        &[b"filter", b"filters", b"condition", b"conditions", b"criteria", b"rule", b"clause"];
    is_of_field(location.place) && (has_word(part, LANGUAGES) || NAMES.contains(&part))
        || is_of_body(location.place) && has_word(part, SAVED) && !is_key_of_list(location.name)
}

/// The field takes filters of a directory: the settings of a login by LDAP.
pub(in crate::detectors) fn takes_filters(location: Location<'_>) -> bool {
    let last = last_part(location.name);
    // `user_search`, `group_search_base`
    let is_search = || {
        has_word(last, &[b"search"])
            && has_word(last, &[b"user", b"users", b"group", b"groups", b"member", b"account"])
    };
    is_of_body(location.place) && (has_word(last, &[b"filter", b"ldap"]) || is_search())
}

/// The field holds the number of a record or a page, and nothing that people write: `id`, `user_id`, `page`.
pub(in crate::detectors) fn takes_number(location: Location<'_>) -> bool {
    const NUMBERS: &[&[u8]] = &[b"id", b"pid", b"uid", b"cid", b"gid", b"page", b"limit", b"offset"];
    let is_of_field = is_of_field(location.place) || location.place == Place::Cookie;
    is_of_field && has_last_word(innermost(location.name), NUMBERS)
}

/// The field is one of Solr's own, whose value may choose its parser: `fq`, `facet.query`, `bf`.
pub(in crate::detectors) fn takes_parser(location: Location<'_>) -> bool {
    const NAMES: &[&[u8]] = words!("purpose", "solr-parameters");
    let first = location.name.split(|b| matches!(b, b'.' | b'[')).next().unwrap_or_default();
    is_of_field(location.place) && NAMES.contains(&first)
}

/// The field of a query string lists columns: to show, to sort or to group by.
pub(in crate::detectors) fn takes_columns(location: Location<'_>) -> bool {
    const LISTS: &[&[u8]] = words!("purpose", "columns");
    let last = innermost(location.name);
    let last = last.strip_prefix(b"$").unwrap_or(last);
    location.place == Place::Query && LISTS.iter().any(|known| last.eq_ignore_ascii_case(known))
}

/// The field is for a formula of a sheet: `formula`.
pub(in crate::detectors) fn takes_formula(location: Location<'_>) -> bool {
    is_of_body(location.place) && has_word(last_part(location.name), &[b"formula", b"formulas", b"formulae"])
}

/// The field is for formulas or for cells of a sheet, which may be some: `formula`, `expression`, `cells`,
/// `values`.
pub(in crate::detectors) fn takes_cells(location: Location<'_>) -> bool {
    const CELLS: &[&[u8]] = &[b"expression", b"cell", b"cells", b"values"];
    takes_formula(location) || is_of_body(location.place) && has_word(last_part(location.name), CELLS)
}

/// The field is for a pattern: `pattern`, `regex`.
pub(in crate::detectors) fn takes_pattern(location: Location<'_>) -> bool {
    const PATTERNS: &[&[u8]] = &[b"pattern", b"patterns", b"regex", b"regexp", b"regexes"];
    is_of_body(location.place) && has_word(last_part(location.name), PATTERNS)
}

/// The field is for what people look for: they look for names of functions, too.
pub(crate) fn is_search(location: Location<'_>) -> bool {
    const SEARCHES: &[&[u8]] =
        &[b"q", b"query", b"search", b"s", b"k", b"keyword", b"keywords", b"term", b"terms", b"find"];
    has_word(last_part(location.name), SEARCHES)
}

/// `tq` is for queries of charts over sheets.
const STATEMENT_WORDS: &[&[u8]] =
    &[b"sql", b"soql", b"hql", b"jpql", b"cql", b"ksql", b"tsql", b"plsql", b"tq"];

const EDITOR_WORDS: &[&[u8]] = &[
    b"query",
    b"queries",
    b"statement",
    b"stmt",
    b"code",
    b"snippet",
    b"script",
    b"source",
    // The editor of a view.
    b"select",
    b"definition",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    #[test]
    fn fields_for_statements() {
        for name in ["sql", "rawSql", "json.panels.0.raw_sql", "sql[0]", "SQL", "sql-text"] {
            assert!(
                takes_statements(at(Place::Json, name)) && takes_statements(at(Place::Query, name)),
                "{name}"
            );
        }
        assert!(takes_statements(at(Place::Form, "query")) && !takes_statements(at(Place::Query, "query")));
        let attribute = "resourceSpans.scopeSpans.spans.attributes.attributes.value.stringValue";
        assert!(takes_statements(at(Place::Json, attribute)));
        assert!(!takes_statements(at(Place::Json, "value.stringValue")));
        assert!(takes_statements(at(Place::XmlText, "Expression")));
        assert!(!takes_statements(at(Place::Json, "Expression")));
        for name in ["q", "sqlite", "text", "id", "", "sql.x", "nosql", "report[sql]", "ids[0][sql]"] {
            assert!(!takes_statements(at(Place::Form, name)), "{name}");
        }
        assert!(!takes_statements(at(Place::Cookie, "sql")) && !takes_statements(at(Place::Header, "X-Sql")));
    }

    #[test]
    fn fields_for_numbers() {
        for name in ["id", "user_id", "postId", "filter[id]", "page"] {
            assert!(takes_number(at(Place::Query, name)), "{name}");
        }
        for name in ["ids", "android", "identity", "page_title", "paid", "q"] {
            assert!(!takes_number(at(Place::Query, name)), "{name}");
        }
    }

    #[test]
    fn fields_for_filters() {
        assert!(
            takes_filters(at(Place::Form, "ldap_user_filter")) && !takes_filters(at(Place::Form, "filtered"))
        );
    }
}
