//! Sockets that were passed to us: by systemd (socket activation, sd_listen_fds(3)), or by the process that
//! we take over from, which adds a line on which we say that we serve.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixDatagram;

use listenfd::ListenFd;

use crate::outcome::Failure;

/// The sockets that `LISTEN_FDS` announced.
#[derive(Default)]
pub struct Inherited {
    pub listeners: Vec<TcpListener>,
    pub predecessor: Option<UnixDatagram>,
}

impl Inherited {
    /// Takes everything that was passed.
    pub fn take() -> Result<Inherited, Failure> {
        let mut passed = ListenFd::from_env();
        let mut inherited = Inherited::default();
        for index in 0..passed.len() {
            if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                inherited.listeners.push(listener);
            } else if let Ok(Some(line)) = passed.take_unix_datagram(index) {
                inherited.predecessor = Some(line);
            } else {
                let message = "the passed socket {} (LISTEN_FDS) is not a TCP listener";
                return Err(Failure::failed(message.replace("{}", &(index + 1).to_string())));
            }
        }
        Ok(inherited)
    }

    /// The listener on `address`: one that was passed, or a new one.
    pub fn listen(&mut self, address: SocketAddr) -> std::io::Result<TcpListener> {
        let is_it = |socket: &TcpListener| socket.local_addr().is_ok_and(|own| own == address);
        let listener = match self.listeners.iter().position(is_it) {
            Some(index) => self.listeners.swap_remove(index),
            None => TcpListener::bind(address)?,
        };
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}
