//! The detectors. Adding one: a file (or folder) here with a type that is a [`Detector`], and its line in
//! [`all`].

#[macro_use]
mod words;

#[cfg(test)]
mod allowances;
pub mod api;
pub mod code;
pub mod command;
pub mod crlf;
pub mod deserialization;
pub(crate) mod document;
pub mod exceptions;
pub mod field;
mod formula;
pub mod graphql;
pub mod ldap;
pub mod leak;
mod linked;
pub mod log4j;
pub mod mail;
mod marks;
#[cfg(test)]
mod mutations;
mod name_filter;
pub mod nosql;
pub mod path;
pub mod protocol;
pub mod prototype;
pub(crate) mod purpose;
pub mod redirect;
pub mod remote_file;
mod scan;
pub mod scanner;
mod shown;
pub mod sqli;
pub mod ssi;
pub mod ssrf;
#[cfg(test)]
mod survival;
pub mod template;
#[cfg(test)]
pub(crate) mod testing;
pub mod upload;
mod word_table;
pub mod xpath;
pub mod xss;
pub mod xxe;

use crate::Detector;

/// All detectors. One line each; the order is the order of explanations.
pub fn all() -> Vec<Box<dyn Detector>> {
    vec![
        Box::new(protocol::Protocol),
        Box::new(sqli::Sqli::new()),
        Box::new(xss::Xss::new()),
        Box::new(upload::Upload::new()),
        Box::new(scanner::Scanner::new()),
        Box::new(command::Command::new()),
        Box::new(command::CommandField::new()),
        Box::new(code::Code::new()),
        Box::new(code::CodeValue::new()),
        Box::new(template::Template::new()),
        Box::new(deserialization::Deserialization::new()),
        Box::new(log4j::Log4j),
        Box::new(path::PathTraversal::new()),
        Box::new(mail::Mail),
        Box::new(ssrf::Ssrf::new()),
        Box::new(remote_file::RemoteFile),
        Box::new(xxe::Xxe),
        Box::new(nosql::NoSql),
        Box::new(nosql::Orm),
        Box::new(ldap::Ldap),
        Box::new(xpath::Xpath),
        Box::new(ssi::Ssi),
        Box::new(crlf::Crlf),
        Box::new(prototype::Prototype),
        Box::new(graphql::GraphQl),
        Box::new(redirect::Redirect),
        Box::new(leak::Leak::new()),
        Box::new(field::Field),
        Box::new(api::Api),
    ]
}
