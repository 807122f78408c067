//! Many reloads under load: nothing may be dropped, and memory must not grow.
//!
//! Each reload brings a rule that was not there before and takes one away, so that patterns have to be made
//! and forgotten. Clients on connections that stay open send benign requests and attacks all the time; each
//! must get the answer that it deserves.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::TestkitError;
use crate::client::Connection;
use crate::proxy::{Folder, Proxy};

/// For one request or one reload.
const PATIENCE: Duration = Duration::from_secs(60);
/// Reloads between two lines of the report.
const LINES: usize = 20;
/// Every so many requests are an attack.
const ATTACK_EVERY: u64 = 16;

/// What to do.
#[derive(Debug, clap::Parser)]
pub struct Options {
    /// Reloads, one after the other as fast as they go
    #[arg(long, default_value_t = 1000)]
    pub reloads: usize,
    /// Clients that send requests meanwhile
    #[arg(long, default_value_t = 4)]
    pub clients: usize,
    /// Milliseconds that a client waits between two requests: 0 for as many as go
    #[arg(long, default_value_t = 2)]
    pub pause: u64,
    /// Growth that is an error, in KiB for each reload, over the second half
    #[arg(long, default_value_t = 4.0)]
    pub growth_max: f64,
    /// Folder of the CRS; by default the one that `make crs` fetched
    #[arg(long)]
    pub crs: Option<PathBuf>,
    /// Folder for logs and rules; by default a temporary one
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// Runs it; true if nothing was lost and memory stayed.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    let rules = match &options.crs {
        Some(path) => crate::crs::rules_in(path.clone())?,
        None => crate::crs::rules()?,
    };
    let folder = Folder::create(options.keep.as_deref())?;
    let own = folder.file("own.conf");
    write_rule(&own, 0)?;
    let mut proxy = Proxy::start(folder, rules, vec!["--rules".into(), own.clone().into()])?;
    static STOP: AtomicBool = AtomicBool::new(false);
    let pause = Duration::from_millis(options.pause);
    let address = proxy.address();
    let clients: Vec<JoinHandle<Seen>> =
        (0..options.clients).map(|_| thread::spawn(move || client(address, pause, &STOP))).collect();

    let started = Instant::now();
    let mut memory = Vec::with_capacity(options.reloads);
    println!("{:>8} {:>10} {:>10}", "reloads", "seconds", "RSS MiB");
    for reload in 1..=options.reloads {
        write_rule(&own, reload)?;
        proxy.reload()?;
        wait_for_generation(&mut proxy, reload + 1)?;
        memory.push(proxy.memory_kib()?);
        if reload % options.reloads.div_ceil(LINES) == 0 || reload == options.reloads {
            let (seconds, mib) = (started.elapsed().as_secs_f64(), memory[reload - 1] / 1024.0);
            println!("{reload:>8} {seconds:>10.1} {mib:>10.1}");
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    STOP.store(true, Ordering::Relaxed);
    let mut seen = Seen::default();
    for client in clients {
        seen += client.join().map_err(|_| TestkitError::Run("a client panicked".to_owned()))?;
    }
    let panics = proxy.folder().panics().len();
    proxy.stop()?;

    let growth = crate::trend::trend(&memory[memory.len() / 2..]).slope;
    println!(
        "{} reloads in {seconds:.0} s, {:.0} ms each; {} requests, {} of them attacks refused; {} failed, {} with another \
         answer; {panics} panics; RSS grew by {growth:.2} KiB for each reload in the second half (Theil-Sen)",
        options.reloads,
        seconds * 1e3 / options.reloads as f64,
        seen.requests,
        seen.refused,
        seen.failed,
        seen.wrong,
    );
    Ok(seen.requests > 0 && seen.failed + seen.wrong == 0 && panics == 0 && growth <= options.growth_max)
}

/// The answers that clients saw.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    refused: u64,
    /// No answer, or no connection.
    failed: u64,
    /// Another status than the request deserves.
    wrong: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.failed += other.failed;
        self.wrong += other.wrong;
    }
}

fn client(address: SocketAddr, pause: Duration, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut connection: Option<Connection> = None;
    while !stop.load(Ordering::Relaxed) {
        let is_attack = seen.requests % ATTACK_EVERY == 0;
        let query = if is_attack { "1%27%20OR%20%271%27%3D%271%27%20--%20" } else { "garden" };
        let request = format!(
            "GET /search?q={query}&n={} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: soak\r\nAccept: */*\r\n\r\n",
            seen.requests
        );
        seen.requests += 1;
        let open = match connection.take().filter(Connection::reusable) {
            Some(open) => Ok(open),
            None => Connection::open(address, None, PATIENCE),
        };
        let answer = open.and_then(|mut open| {
            let answer = open.exchange(request.as_bytes(), PATIENCE)?;
            connection = Some(open);
            Ok(answer.status)
        });
        match (answer, is_attack) {
            (Ok(403), true) => seen.refused += 1,
            (Ok(200), false) => {}
            (Ok(_), _) => seen.wrong += 1,
            (Err(_), _) => seen.failed += 1,
        }
        thread::sleep(pause);
    }
    seen
}

/// A pattern that no other generation has.
fn write_rule(path: &std::path::Path, generation: usize) -> Result<(), TestkitError> {
    let rule = format!(
        "SecRule ARGS \"@rx soak{generation}[a-z]+\\d{{2,4}}\" \"id:9000001,phase:2,deny,status:403,log\"\n"
    );
    std::fs::write(path, rule).map_err(|source| TestkitError::io(path, source))
}

fn wait_for_generation(proxy: &mut Proxy, generation: usize) -> Result<(), TestkitError> {
    let line = format!("portcullis_policy_generation {generation}");
    let end = Instant::now() + PATIENCE;
    while !proxy.metrics()?.lines().any(|found| found == line) {
        proxy.check_alive()?;
        if Instant::now() > end {
            return Err(TestkitError::Run(format!("no generation {generation} after {PATIENCE:?}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
