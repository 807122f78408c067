//! `portcullis bench`: what inspection costs on this machine, measured on loopback and bounded in time.
//!
//! ```text
//!  this process                                    children of it
//!      load generator (one thread) ─────────────> portcullis run, mode off | semantic | crs ...
//!      application    (one thread) <──────────────────┘
//! ```

mod proxy;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use portcullis_loadgen::{Certificates, Report, Role, Study, Subject, Traffic, Transport, Upstream};
use tokio::signal::unix::{SignalKind, signal};

use crate::outcome::{FAILED, Failure, print};
use proxy::{Proxy, Settings};
use target::Target;

/// Arguments of `portcullis bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Folder of the CRS: measure mode crs, too
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
    /// Paranoia level of the CRS, 1 to 4
    #[arg(long, value_name = "N", requires = "crs", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: Option<u8>,
    /// Modes to compare with off: semantic, crs, both; by default semantic, and crs if there are rules
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    modes: Option<Vec<Mode>>,
    /// Something that is served on loopback already, to be measured in the same run; may be given several
    /// times. NAME=http://127.0.0.1:PORT or the address alone
    #[arg(long, value_name = "[NAME=]URL")]
    target: Vec<Target>,
    /// The application on loopback that all send requests to, in place of a page of our own: for a fair
    /// comparison with targets. Without TLS
    #[arg(long, value_name = "URL")]
    upstream: Option<Target>,
    /// plain, tls, or both: TLS to the client and to the application
    #[arg(long, value_name = "WHICH", default_value = "both")]
    transport: Transports,
    /// get, browser, json, form, attack or mixed
    #[arg(long, value_name = "KIND", default_value = "browser", value_parser = traffic)]
    traffic: Traffic,
    /// Seconds that measuring takes in all
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Client connections
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    connections: u32,
    /// Percent of the slowest one's capacity that is offered to all
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    load: u8,
    /// Requests a second that are offered to all, in place of --load
    #[arg(long, value_name = "N", conflicts_with = "load", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Worker threads of each proxy; by default one for each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    /// Bytes of the page that the application answers with
    #[arg(long, value_name = "N", default_value_t = 1024, conflicts_with = "upstream")]
    page: usize,
    /// Measure the targets only
    #[arg(long, requires = "target", conflicts_with_all = ["crs", "modes", "workers"])]
    targets_only: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The inspection mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// The detector that parses
    Semantic,
    /// The rules
    Crs,
    /// Both
    Both,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Semantic => "semantic",
            Mode::Crs => "crs",
            Mode::Both => "both",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Transports {
    /// HTTP/1.1 in clear text
    Plain,
    /// HTTP/1.1 over TLS on both sides
    Tls,
    /// One after the other
    Both,
}

fn traffic(name: &str) -> Result<Traffic, String> {
    let names = Traffic::ALL.map(Traffic::name).join(", ");
    Traffic::of(name).ok_or_else(|| format!("one of {names}"))
}

/// Exit code 0 if every request got the answer that it should; 1 if not, or if nothing could be measured.
pub fn run(args: &Args) -> ExitCode {
    let report = match measure(args) {
        Ok(report) => report,
        Err(failure) => return failure.exit(),
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&report).map(|text| text + "\n"),
        false => Ok(report.to_string()),
    };
    let printed = match text {
        Ok(text) => print(&text),
        Err(error) => Failure::failed(error).exit(),
    };
    if report.is_sound() { printed } else { ExitCode::from(FAILED) }
}

/// Measures on a thread of its own, so that a signal ends everything that was started.
fn measure(args: &Args) -> Result<Report, Failure> {
    let modes = args.modes()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let measured = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
        let bench = Bench::start(args, &modes)?;
        let study = bench.study(args)?;
        let work = tokio::task::spawn_blocking(move || {
            let mut say = |line: &str| eprintln!("portcullis bench: {line}");
            study.run(env!("CARGO_PKG_VERSION"), &mut say)
        });
        tokio::select! {
            done = work => done.map_err(Failure::failed)?.map_err(Failure::failed),
            _ = terminate.recv() => Err(Failure::failed("ended by a signal")),
            _ = interrupt.recv() => Err(Failure::failed("ended by a signal")),
        }
    });
    // Everything that was started has ended with `bench`. A study that a signal cut short does not hold the
    // program up.
    runtime.shutdown_background();
    measured
}

impl Args {
    fn modes(&self) -> Result<Vec<Mode>, Failure> {
        let needs_rules = |mode: &Mode| *mode != Mode::Semantic;
        match &self.modes {
            Some(modes) if self.crs.is_none() && modes.iter().any(needs_rules) => {
                Err(Failure::usage("the modes crs and both need --crs DIR"))
            }
            Some(modes) => Ok(modes.clone()),
            None if self.crs.is_some() => Ok(vec![Mode::Semantic, Mode::Crs]),
            None => Ok(vec![Mode::Semantic]),
        }
    }

    fn transports(&self) -> Vec<Transport> {
        match self.transport {
            Transports::Plain => vec![Transport::Plain],
            Transports::Tls => vec![Transport::Tls],
            Transports::Both if self.upstream.is_some() || self.targets_only => vec![Transport::Plain],
            Transports::Both => vec![Transport::Plain, Transport::Tls],
        }
    }
}

/// Everything that was started, and ends with it.
struct Bench {
    certificates: Certificates,
    application: Option<Upstream>,
    proxies: Vec<Proxy>,
}

impl Bench {
    fn start(args: &Args, modes: &[Mode]) -> Result<Bench, Failure> {
        if args.upstream.is_some() && args.transports().contains(&Transport::Tls) {
            return Err(Failure::usage(
                "--upstream is without TLS, so --transport plain is all there can be",
            ));
        }
        let certificates = Certificates::new().map_err(Failure::failed)?;
        let own_application = args.upstream.is_none() && !args.targets_only;
        let application = own_application.then(|| Upstream::start(&certificates, args.page)).transpose();
        let mut bench =
            Bench { certificates, application: application.map_err(Failure::failed)?, proxies: Vec::new() };
        if !args.targets_only {
            let (plain, tls) = bench.applications(args);
            let modes = std::iter::once(None).chain(modes.iter().copied().map(Some));
            for mode in modes {
                let settings = Settings {
                    mode,
                    crs: args.crs.as_deref(),
                    paranoia: args.paranoia,
                    workers: args.workers,
                    plain,
                    tls,
                };
                bench.proxies.push(Proxy::start(&settings, &bench.certificates)?);
            }
        }
        Ok(bench)
    }

    /// Returns the addresses of the application, without and with TLS.
    fn applications(&self, args: &Args) -> (Option<SocketAddr>, Option<SocketAddr>) {
        match (&self.application, &args.upstream) {
            (Some(application), _) => (Some(application.plain), Some(application.tls)),
            (None, Some(upstream)) => (Some(upstream.address), None),
            (None, None) => (None, None),
        }
    }

    fn study(&self, args: &Args) -> Result<Study, Failure> {
        let mut subjects = Vec::new();
        let (plain, tls) = self.applications(args);
        for transport in args.transports() {
            let trust = match transport {
                Transport::Tls => Some(self.certificates.client().map_err(Failure::failed)?),
                Transport::Plain => None,
            };
            let subject = |name: &str, role, address, processes| Subject {
                name: name.to_owned(),
                transport,
                role,
                address,
                tls: trust.clone(),
                processes,
            };
            let direct = if transport == Transport::Tls { tls } else { plain };
            if let Some(address) = direct {
                subjects.push(subject("no proxy", Role::Direct, address, Vec::new()));
            }
            for proxy in &self.proxies {
                let role = if proxy.mode.is_some() { Role::Inspecting } else { Role::Off };
                let address = if transport == Transport::Tls { proxy.tls } else { Some(proxy.plain) };
                let Some(address) = address else { continue };
                let name = proxy.mode.map_or("off", Mode::name);
                subjects.push(subject(name, role, address, vec![proxy.id()]));
            }
            if transport == Transport::Plain {
                for target in &args.target {
                    let processes = portcullis_loadgen::listening(target.address);
                    subjects.push(subject(&target.name, Role::Target, target.address, processes));
                }
            }
        }
        Ok(Study {
            subjects,
            traffic: args.traffic,
            connections: args.connections as usize,
            duration: Duration::from_secs(args.seconds),
            load: f64::from(args.load) / 100.0,
            rate: args.rate.map(f64::from),
        })
    }
}
