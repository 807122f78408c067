//! Request smuggling: every way to say where a request ends, through us to other people's servers.
//!
//! A smuggled request is one that a back end sees and the proxy did not. So each variant goes to each back
//! end on a connection of its own, with a second request behind it; then the requests that the back end says
//! it saw are compared with those that we passed on (`portcullis_upstream_requests_total`). Nothing inspects
//! here (`mode = "off"`): only the HTTP codec stands between.

mod areas;
mod paths;
mod servers;
mod variants;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use portcullis_testkit::TestkitError;
use portcullis_testkit::client::connect;
use portcullis_testkit::proxy::{Folder, Proxy};

use crate::metric;
use servers::Server;

/// What to do.
#[derive(Debug, clap::Parser)]
pub struct Options {
    /// Generated variants beside those of the corpus
    #[arg(long, default_value_t = 2000)]
    pub count: usize,
    /// Of the generated ones
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Paths that servers read differently, in place of framings: which route they take, and what is served
    #[arg(long)]
    pub paths: bool,
    /// Back ends that must be there; the run fails with fewer
    #[arg(long, default_value_t = 6)]
    pub servers: usize,
    /// Folder for configurations and logs; by default a temporary one
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// For one connection, until the other side is done.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs it; true if no back end saw another number of requests than we passed on.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    if options.paths {
        return paths::run(options);
    }
    let variants = variants::all(options.count, options.seed)?;
    let folder = Folder::create(options.keep.as_deref())?;
    let (servers, missing) = servers::start(&folder)?;
    if servers.len() < options.servers {
        return Err(TestkitError::Run(format!("not installed: {}", missing.join(", "))));
    }
    let proxy = Proxy::configured(
        folder,
        |address, admin| {
            let mut text = format!(
                "workers = 1\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\" }}\n\n[timeouts]\nheader = \
                 \"1s\"\nbody = \"1s\"\n\n[[listeners]]\nname = \"http\"\naddress = \"{address}\"\nhttp = {{ \
                 half_close = true }}\n"
            );
            for Server { name, address, .. } in &servers {
                text += &format!(
                    "\n[[sites]]\nname = \"{name}\"\nhosts = [\"{name}.test\"]\nupstream = \"{name}\"\nmode = \
                     \"off\"\n\n[upstreams.{name}]\nendpoints = [\"http://{address}\"]\nejection = {{ failures = 0 }}\n"
                );
            }
            text
        },
        &[],
    )?;
    let (mut good, mut passed_on, mut refused) = (true, 0, 0);
    for server in &servers {
        let (mut wrong, mut seen, mut ours) = (0, server.seen()?, passed(&proxy, server)?);
        let (seen_first, ours_first) = (seen, ours);
        for variant in &variants {
            let bytes = replace(&variant.bytes, b"HOST", format!("{}.test", server.name).as_bytes());
            let answers = send(proxy.address(), &bytes)?;
            let ours_now = passed(&proxy, server)?;
            let seen_now = settled(server, seen + (ours_now - ours))?;
            if seen_now - seen != ours_now - ours {
                wrong += 1;
                println!(
                    "{}: saw {} requests, we passed on {}: {}\n    {}",
                    server.name,
                    seen_now - seen,
                    ours_now - ours,
                    variant.name,
                    String::from_utf8_lossy(&bytes).escape_debug()
                );
            }
            refused += usize::from(ours_now == ours && answers > 0);
            (seen, ours) = (seen_now, ours_now);
        }
        // Late arrivals.
        std::thread::sleep(Duration::from_millis(300));
        let (all_seen, all_ours) = (server.seen()? - seen_first, passed(&proxy, server)? - ours_first);
        println!(
            "{:<8} {} variants: {all_ours} requests passed on, {all_seen} seen, {wrong} disagreements",
            server.name,
            variants.len()
        );
        good &= wrong == 0 && all_seen == all_ours;
        passed_on += all_ours;
    }
    let panics = proxy.folder().panics().len();
    proxy.stop()?;
    println!(
        "{} variants to {} back ends; {passed_on} requests passed on, {refused} connections refused whole; {panics} panics; {}",
        variants.len(),
        servers.len(),
        if good { "0 disagreements" } else { "DISAGREEMENTS" }
    );
    // Variants that all are refused would prove nothing.
    Ok(good && panics == 0 && passed_on > variants.len() / 4)
}

/// Requests that we passed on to it and got an answer for, or not.
fn passed(proxy: &Proxy, server: &Server) -> Result<usize, TestkitError> {
    let begin = format!("portcullis_upstream_requests_total{{upstream=\"{}\"", server.name);
    Ok(metric(proxy, &begin)? as usize)
}

/// The number of requests it saw, once it is `wanted` or does not become so within half a second.
fn settled(server: &Server, wanted: usize) -> Result<usize, TestkitError> {
    let end = Instant::now() + Duration::from_millis(500);
    loop {
        let seen = server.seen()?;
        if seen == wanted || Instant::now() > end {
            return Ok(seen);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends all of it and reads what comes until the other side closes; the number of answers.
fn send(address: SocketAddr, bytes: &[u8]) -> Result<usize, TestkitError> {
    let mut stream =
        connect(address, None, PATIENCE).map_err(|failure| TestkitError::Run(failure.to_string()))?;
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    Ok(answer.windows(9).filter(|part| part.starts_with(b"HTTP/1.1 ")).count())
}

fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(from) {
            out.extend_from_slice(to);
            at += from.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}
