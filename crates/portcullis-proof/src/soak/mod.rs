//! Hours of load: rules, semantic detector, TLS, a mix of connections, attacks, large bodies and reloads; and
//! whether anything drifts.
//!
//! Memory, descriptors, threads and latency are sampled all the time. The first tenth is warm-up and counts
//! for nothing. Of the rest the slope is taken with its confidence bounds (Theil-Sen), so that neither noise
//! nor a single peak decides.

mod client;
mod large;
mod report;
mod sample;
mod tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use portcullis_testkit::proxy::{Folder, Proxy};
use portcullis_testkit::{TestkitError, crs};

use crate::backend::Backend;
use client::{Board, Client};
use report::Report;
use sample::Sampler;

/// What to do.
#[derive(Debug, clap::Parser)]
pub struct Options {
    /// How long
    #[arg(long, default_value_t = 1.0)]
    pub hours: f64,
    /// Requests in each second, all clients together
    #[arg(long, default_value_t = 200)]
    pub rate: u32,
    /// Seconds between two samples
    #[arg(long, default_value_t = 10.0)]
    pub every: f64,
    /// Seconds between two reloads with another rule
    #[arg(long, default_value_t = 60.0)]
    pub reload_every: f64,
    /// MiB in an hour that memory may grow
    #[arg(long, default_value_t = 1.0)]
    pub growth_max: f64,
    /// Clients that send bodies of 1 to 100 MB beside the others, one after the other
    #[arg(long, default_value_t = 0)]
    pub large: usize,
    /// Folder of the CRS; by default the one that `make crs` fetched
    #[arg(long)]
    pub crs: Option<PathBuf>,
    /// Where to write the report, in Markdown
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// Folder for configuration and logs; by default a temporary one
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// Clients, of the kinds in [`client::Habit`] in turn.
const CLIENTS: usize = 16;

/// Runs it; true if nothing was lost and nothing drifts.
pub fn run(options: &Options) -> Result<bool, TestkitError> {
    if !(options.hours > 0.0 && options.every > 0.0 && options.reload_every > 0.0 && options.rate > 0) {
        return Err(TestkitError::Run(
            "--hours, --rate, --every and --reload-every are more than 0".to_owned(),
        ));
    }
    let rules = match &options.crs {
        Some(path) => crs::rules_in(path.clone())?,
        None => crs::rules()?,
    };
    let folder = Folder::create(options.keep.as_deref())?;
    let backends = [Backend::start()?, Backend::start()?];
    let keys = tls::Keys::create(&folder)?;
    let own = folder.file("own.conf");
    write_rule(&own, 0)?;
    let secure = portcullis_testkit::proxy::free_address()?;
    let proxy = Proxy::configured(
        folder,
        |address, admin| {
            format!(
                "workers = 2\nadmin = {{ listen = \"{admin}\" }}\nevents = {{ file = \"events.jsonl\", rotate_at = \
                 \"64MiB\" }}\naccess_log = {{ file = \"/dev/null\" }}\n\n[[listeners]]\nname = \"http\"\naddress = \
                 \"{address}\"\nhttp2 = {{ cleartext = true }}\n[[listeners]]\nname = \"https\"\naddress = \"{secure}\"\ntls = {{ certificates = [{{ cert = \
                 \"soak.pem\", key = \"soak.key\" }}] }}\n\n[[sites]]\nname = \"soak\"\nhosts = [\"*\"]\nupstream = \
                 \"app\"\nmode = \"both\"\nrules = {{ crs = \"{}\", include = [\"own.conf\"] }}\n[[sites.rate_limits]]\nname \
                 = \"clients\"\nrate = 1000000\n\n[[sites]]\nname = \"files\"\nhosts = [\"files.test\"]\nupstream = \"app\"\n\n[upstreams.app]\nendpoints = [\"http://{}\", \"http://{}\"]\nhealth = {{ \
                 path = \"/healthz\" }}\n",
                rules.display(),
                backends[0].address(),
                backends[1].address(),
            )
        },
        &[],
    )?;
    let board = Arc::new(Board::default());
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(options.hours * 3600.0);
    let interval = Duration::from_secs_f64(CLIENTS as f64 / f64::from(options.rate));
    let large: Vec<_> = (0..options.large)
        .map(|number| {
            let (address, board) = (proxy.address(), Arc::clone(&board));
            thread::spawn(move || large::run(number, address, end, &board))
        })
        .collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let client = Client::new(number, proxy.address(), secure, keys.client(), interval);
            let board = Arc::clone(&board);
            thread::spawn(move || client.run(end, &board))
        })
        .collect();

    let mut sampler = Sampler::new(proxy.id());
    let (mut next_sample, mut next_reload) = (options.every, options.reload_every);
    let mut reloads = 0;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(100).min(end.saturating_duration_since(Instant::now())));
        let now = began.elapsed().as_secs_f64();
        if now >= next_sample {
            next_sample += options.every;
            let line = sampler.take(now, board.window())?;
            if sampler.samples().len() % 30 == 1 {
                println!("{line}");
            }
        }
        // One in the last seconds would not be done when generations are counted.
        if now >= next_reload && end.saturating_duration_since(Instant::now()) > Duration::from_secs(5) {
            next_reload += options.reload_every;
            reloads += 1;
            write_rule(&own, reloads)?;
            proxy.reload()?;
        }
    }
    for client in clients.into_iter().chain(large) {
        client.join().map_err(|_| TestkitError::Run("a client panicked".to_owned()))?;
    }
    let generation = crate::metric(&proxy, "portcullis_policy_generation")?;
    let panics = proxy.folder().panics().len();
    let stopped = proxy.stop();
    let report = Report {
        options,
        seconds: began.elapsed().as_secs_f64(),
        samples: sampler.samples(),
        totals: board.totals(),
        reloads: (reloads, generation as usize),
        panics,
        stopped: stopped.is_ok(),
    };
    let (text, good) = report.write();
    println!("{text}");
    if let Some(path) = &options.report {
        std::fs::write(path, &text)
            .map_err(|error| TestkitError::Run(format!("{}: {error}", path.display())))?;
    }
    stopped.map(|_| good)
}

/// A pattern that no other generation has.
fn write_rule(path: &std::path::Path, number: usize) -> Result<(), TestkitError> {
    let rule = format!("SecRule ARGS \"@rx never{number}[a-z]+seen\" \"id:77,phase:2,deny,status:403\"\n");
    std::fs::write(path, rule).map_err(|error| TestkitError::Run(format!("{}: {error}", path.display())))
}
