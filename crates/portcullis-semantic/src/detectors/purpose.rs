//! The purpose of a field, as its name tells: `rawSql`, `settings[webhook_url]`, `user.password`.
//!
//! The same text is an attack in one field and the purpose of another. A name proves nothing, so that these
//! are the few cases that matter. Only bodies count where a form or an API edits settings; a query string
//! belongs to the page.
//!
//! This file holds the decisions by class; the modules hold the names, by what they are for.

mod code;
mod commands;
mod files;
mod name;
mod plain;
mod queries;
mod reports;
mod secrets;
mod services;
mod settings;
mod texts;

pub(super) use self::code::{
    takes_code, takes_file, takes_markup, takes_page, takes_scripts, takes_templates,
};
pub(super) use self::commands::{
    MACHINES, names_command, names_function, names_machine, runs_commands, takes_arguments,
    takes_command_lines, takes_container_command, takes_single_name, takes_tool_call,
};
pub(super) use self::files::{
    asks_for_file, is_bare_path, names_edited_file, names_own_file, names_own_folder,
};
pub use self::plain::{takes_plain_value, takes_search};
pub(super) use self::queries::{
    is_attribute, takes_cells, takes_columns, takes_conditions, takes_filters, takes_formula, takes_number,
    takes_parser, takes_pattern,
};
pub(crate) use self::queries::{is_search, takes_statements};
pub(super) use self::reports::{is_of_report, quotes_code, takes_headers};
pub(super) use self::secrets::{names_secret, takes_password};
pub use self::services::names_redirect;
pub(super) use self::services::{
    leads_back, leads_elsewhere, may_name_host, names_address, names_database, names_own_service,
    names_server, takes_host,
};
pub(super) use self::settings::{lists_words, takes_configuration, takes_step};
pub(super) use self::texts::takes_title;
pub(crate) use self::texts::{Document, takes_text};

use self::code::takes_xml;
use self::name::{NAME_BYTES_MAX, is_of_body, is_plain_name};
use super::exceptions;
use crate::{Class, Location, Place};

/// What is quoted or named there is no attack of `class`: an [exception](exceptions::mention) lowers it.
pub(crate) fn may_mention(class: Class, location: Location<'_>) -> bool {
    exceptions::mention(class, location, false).is_some()
}

/// Every application takes all of the name for the name.
pub(super) fn has_plain_name(location: Location<'_>) -> bool {
    location.name.len() <= NAME_BYTES_MAX && is_plain_name(location.name)
}

/// The field takes texts, templates, code, scripts of pages or whole statements.
pub(crate) fn takes_documents(location: Location<'_>) -> bool {
    is_of_body(location.place)
        && has_plain_name(location)
        && (takes_text(location)
            || takes_templates(location)
            || takes_scripts(location)
            || takes_statements(location))
}

/// The site made the field of a body called `name` for what `class` looks for: addresses of services,
/// documents of setups, statements, code, markup; or for passwords, in which any signs stand. Rules that
/// match words say nothing there. Fields for text are not among these.
pub fn is_made_for(class: Class, name: &[u8]) -> bool {
    let location = Location::new(Place::Json, name);
    has_plain_name(location)
        && match class {
            Class::Sqli | Class::Xss | Class::Code | Class::Command if takes_password(location) => true,
            Class::Sqli => takes_statements(location),
            Class::Xss => {
                takes_scripts(location)
                    || takes_markup(location)
                    || takes_code(location)
                    || takes_xml(location)
            }
            Class::Code => takes_code(location),
            Class::Command => {
                takes_code(location)
                    || takes_command_lines(location)
                    || takes_configuration(location)
                    || takes_step(location)
            }
            Class::Path => {
                takes_configuration(location)
                    || takes_step(location)
                    || names_own_file(location)
                    || names_own_folder(location)
            }
            Class::Ssrf | Class::RemoteFile => {
                names_address(location)
                    || names_own_service(location)
                    || takes_configuration(location)
                    || names_redirect(name)
            }
            Class::Crlf => takes_scripts(location) || takes_markup(location) || takes_headers(location),
            Class::Xxe
            | Class::Template
            | Class::Deserialization
            | Class::NoSql
            | Class::Ldap
            | Class::Xpath
            | Class::Ssi
            | Class::Mail
            | Class::Log4j
            | Class::Prototype
            | Class::Graphql
            | Class::Upload
            | Class::Scanner
            | Class::Redirect
            | Class::Protocol
            | Class::Leak
            | Class::Field
            | Class::Api => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: Place, name: &str) -> Location<'_> {
        Location::new(place, name.as_bytes())
    }

    /// No name that another reader takes for another field.
    #[test]
    fn names_that_end_early() {
        let may = |name: &str| may_mention(Class::Command, at(Place::Form, name));
        assert!(may("comment") && may("user[comment]") && may("posts[0].content") && may("a[][comment]"));
        assert!(!may("ids[comment]") && !may("host[comment]") && !may("posts[0][ids][comment]"));
        for name in ["id\0comment", "id[]comment", "id[x]message", "id comment", "id\tcomment", "id\rcomment"]
        {
            assert!(!may(name), "{name:?}");
        }
    }

    #[test]
    fn fields_that_rules_leave_out() {
        for name in ["redirect_uri", "redirectUris", "oauth.redirect_uri", "post_logout_redirect_uri"] {
            assert!(is_made_for(Class::Ssrf, name.as_bytes()), "{name}");
        }
        assert!(is_made_for(Class::Xss, b"bpmn_xml") && !is_made_for(Class::Xss, b"xml_id"));
        assert!(!is_made_for(Class::Sqli, b"redirect_uri") && !is_made_for(Class::Sqli, b"xml"));
    }
}
