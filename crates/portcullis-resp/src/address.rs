use std::io;
use std::sync::Arc;
use std::time::Duration;

use portcullis_fetch::Authorities;
use portcullis_types::percent_decode;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::{Command, Connection, Limits};

const PORT: u16 = 6379;

/// The address of a server, and the credentials there.
#[derive(Clone)]
pub struct Client {
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    user: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    database: u32,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Client { host, port, database, .. } = self;
        f.debug_struct("Client")
            .field("host", host)
            .field("port", port)
            .field("database", database)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS, with the authorities of
    /// the system. Errors show nothing of a password.
    pub fn new(url: &str) -> Result<Client, String> {
        let (rest, secure) = match (url.strip_prefix("redis://"), url.strip_prefix("rediss://")) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            _ => return Err("it begins with `redis://`, or with `rediss://` for TLS".to_owned()),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match path {
            "" => 0,
            path => path.parse().map_err(|_| format!("the database is a number, not `{path}`"))?,
        };
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':')) {
            None => (None, None),
            Some(Some((user, password))) => (Some(user).filter(|user| !user.is_empty()), Some(password)),
            Some(None) => return Err("before the `@` stands `user:password`, or `:password`".to_owned()),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or("a port stands behind a `:`")?)),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let is_odd = |byte: u8| byte.is_ascii_whitespace() || b"?#/@\\".contains(&byte);
        if host.is_empty() || host.bytes().any(is_odd) {
            return Err("there is no host".to_owned());
        }
        let port = match port {
            None => PORT,
            Some(port) => port.parse().map_err(|_| format!("`{port}` is no port"))?,
        };
        let decoded = |text: &str| percent_decode(text.as_bytes(), false);
        Ok(Client {
            host: host.to_owned(),
            port,
            tls: secure.then(|| tls(host)).transpose()?,
            user: user.map(decoded),
            password: password.map(decoded),
            database,
        })
    }

    /// Connects and logs in within `patience`. `limits` bounds an exchange.
    pub fn connect(&self, patience: Duration, limits: Limits) -> io::Result<Connection> {
        let mut connection = Connection::open((&self.host, self.port), self.tls.as_ref(), patience, limits)?;
        if let Some(password) = &self.password {
            let mut login = Command::new("AUTH");
            self.user.iter().for_each(|user| login.push(user));
            connection.ask(&login.arg(password), patience)?;
        }
        if self.database != 0 {
            connection.ask(&Command::new("SELECT").number(self.database), patience)?;
        }
        Ok(connection)
    }
}

fn tls(host: &str) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
    let roots = Authorities::of_system()?.store();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config =
        config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is no name of a host"))?;
    Ok((Arc::new(config), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_all_it_needs() {
        let parts = |url: &str| {
            let Client { host, port, user, password, database, .. } = Client::new(url).unwrap();
            let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8(bytes).unwrap());
            (host, port, text(user), text(password), database)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("redis://a"), ("a".into(), 6379, None, None, 0));
        assert_eq!(parts("redis://a:1/"), ("a".into(), 1, None, None, 0));
        assert_eq!(parts("redis://[::1]:7/2"), ("::1".into(), 7, None, None, 2));
        assert_eq!(parts("redis://:p%40@[::1]"), ("::1".into(), 6379, None, some("p@"), 0));
        assert_eq!(parts("redis://u:a@b@c:1/0"), ("c".into(), 1, some("u"), some("a@b"), 0));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for url in [
            "http://a",
            "redis://",
            "redis://:secret@",
            "redis://secret@a",
            "redis://a:x",
            "redis://a:1:2",
            "redis://[::1]7",
            "redis://:secret@a/x",
            "redis://:secret@a:99999",
            "redis://a?db=1",
            "redis://a/1?protocol=resp3",
        ] {
            let wrong = Client::new(url);
            let Err(text) = &wrong else { panic!("{url}: {wrong:?}") };
            assert!(!text.contains("secret"), "{text}");
        }
    }
}
