//! A certificate for the run, and clients that believe in it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use portcullis_testkit::TestkitError;
use portcullis_testkit::client::{Failure, Wire, connect};
use portcullis_testkit::proxy::Folder;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A self-signed certificate for `localhost`, written as `soak.pem` and `soak.key`.
pub(super) struct Keys(Arc<ClientConfig>);

impl Keys {
    pub(super) fn create(folder: &Folder) -> Result<Keys, TestkitError> {
        let trouble = |error: &dyn std::fmt::Display| TestkitError::Run(format!("certificate: {error}"));
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| trouble(&error))?;
        let write = |name: &str, text: String| std::fs::write(folder.file(name), text);
        write("soak.pem", made.cert.pem()).map_err(|error| trouble(&error))?;
        write("soak.key", made.signing_key.serialize_pem()).map_err(|error| trouble(&error))?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).map_err(|error| trouble(&error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| trouble(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Keys(Arc::new(config)))
    }

    pub(super) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0)
    }
}

/// TLS over TCP.
struct Secure(StreamOwned<ClientConnection, TcpStream>);

impl Read for Secure {
    fn read(&mut self, part: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(part)
    }
}

impl Write for Secure {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Wire for Secure {
    fn set_read_timeout(&self, limit: Duration) -> std::io::Result<()> {
        self.0.sock.set_read_timeout(Some(limit))
    }
}

/// A connection to `target`; the handshake comes with the first request.
pub(super) fn open(
    target: SocketAddr,
    config: &Arc<ClientConfig>,
    limit: Duration,
) -> Result<Box<dyn Wire>, Failure> {
    let stream = connect(target, None, limit)?;
    let name = ServerName::try_from("localhost").map_err(|error| Failure::Connect(error.to_string()))?;
    let tls = ClientConnection::new(Arc::clone(config), name)
        .map_err(|error| Failure::Connect(error.to_string()))?;
    Ok(Box::new(Secure(StreamOwned::new(tls, stream))))
}
