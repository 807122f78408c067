//! Asks DNS servers over UDP, one socket for each question: port and number of a question are both hard to
//! guess. An answer that does not fit is asked for again over TCP.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use portcullis_inspect::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::dns::{self, Family, Reply};
use super::settings::{Ended, Settings};

/// Questions that one worker has open at one time; more wait, within their timeout.
const QUESTIONS_MAX: usize = 128;
/// A question is sent this often, to each server in turn.
const TRIES: u32 = 3;
/// After this many questions in a row without an answer ...
const FAILURES_MAX: u32 = 8;
/// ... nobody is asked for this long, so that servers that are down do not delay every request.
const REST: Duration = Duration::from_secs(5);
/// Longer messages do not come without being asked for.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The resolver of one worker.
pub(super) struct Resolver {
    cache: RefCell<Cache>,
    places: Semaphore,
    failures: Cell<u32>,
    rests_until: Cell<Option<Instant>>,
}

impl Default for Resolver {
    fn default() -> Self {
        Resolver {
            cache: RefCell::default(),
            places: Semaphore::new(QUESTIONS_MAX),
            failures: Cell::new(0),
            rests_until: Cell::new(None),
        }
    }
}

impl Resolver {
    /// The address of `name`.
    pub(super) async fn ask(&self, name: &str, settings: &Settings) -> (Answer, Ended) {
        let now = Instant::now();
        self.cache.borrow_mut().belongs_to(settings.generation);
        if let Some(known) = self.cache.borrow().find(name, now) {
            return (known.map_or(Answer::Nothing, Answer::Address), Ended::Cached);
        }
        if self.rests_until.get().is_some_and(|until| until > now) {
            return (Answer::Unknown, Ended::Resting);
        }
        let work = async {
            let _place = self.places.acquire().await;
            exchange(name, Family::V4, settings).await
        };
        let (answer, ended) = match tokio::time::timeout(settings.dns_timeout, work).await {
            Ok(Ok((addresses, seconds))) => {
                let address = addresses.into_iter().find_map(|address| match address {
                    IpAddr::V4(address) => Some(address),
                    IpAddr::V6(_) => None,
                });
                let until = Instant::now() + Duration::from_secs(seconds.into());
                let mut cache = self.cache.borrow_mut();
                cache.belongs_to(settings.generation);
                cache.keep(name, address, until, settings.dns_cache_entries_max);
                match address {
                    Some(address) => (Answer::Address(address), Ended::Found),
                    None => (Answer::Nothing, Ended::Nothing),
                }
            }
            Ok(Err(ended)) => (Answer::Unknown, ended),
            Err(_) => (Answer::Unknown, Ended::Timeout),
        };
        self.note(answer == Answer::Unknown);
        (answer, ended)
    }

    fn note(&self, failed: bool) {
        let failures = if failed { self.failures.get() + 1 } else { 0 };
        self.failures.set(failures % FAILURES_MAX);
        if failures == FAILURES_MAX {
            self.rests_until.set(Some(Instant::now() + REST));
        }
    }
}

/// Tries the servers in turn. Gives the addresses of the name, and for how many seconds.
pub(crate) async fn exchange(
    name: &str,
    family: Family,
    settings: &Settings,
) -> Result<(Vec<IpAddr>, u32), Ended> {
    let patience = settings.dns_timeout / TRIES;
    let mut ended = Ended::Failed;
    for server in settings.resolvers.iter().cycle().take(TRIES as usize) {
        match tokio::time::timeout(patience, try_server(name, family, *server)).await {
            Ok(Ok(Reply::Addresses(addresses, seconds))) => return Ok((addresses, seconds)),
            Ok(Ok(Reply::Failed | Reply::Truncated) | Err(_)) => {}
            Err(_) => ended = Ended::Timeout,
        }
    }
    Err(ended)
}

async fn try_server(name: &str, family: Family, server: SocketAddr) -> io::Result<Reply> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    // Only what comes from that server is received from here on.
    socket.connect(server).await?;
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(io::Error::other)?;
    let id = u16::from_be_bytes(id);
    let question = dns::question(id, name, family).ok_or(io::ErrorKind::InvalidInput)?;
    socket.send(&question).await?;
    let mut message = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let length = socket.recv(&mut message).await?;
        match dns::reply(&message[..length], id, name, family) {
            Some(Reply::Truncated) => break,
            Some(reply) => return Ok(reply),
            None => {}
        }
    }
    let answer = ask_over_tcp(&question, server).await?;
    dns::reply(&answer, id, name, family).ok_or(io::ErrorKind::InvalidData.into())
}

/// One message each way, its length before it (RFC 1035, 4.2.2).
async fn ask_over_tcp(question: &[u8], server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
