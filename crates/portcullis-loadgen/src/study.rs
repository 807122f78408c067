//! Several subjects under the same load, in turn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::client::Peer;
use crate::cpu::CpuTime;
use crate::load::{Load, Measured, Pace, drive};
use crate::message::{Traffic, messages};
use crate::report::{Added, Group, Latency, Machine, Report, Row};
use crate::{Error, NAME};

/// Different messages of one run.
const MESSAGES: usize = 1024;
/// Shares of a subject's time: caches and lazily built automata; then capacity, twice; the rest is measured.
const WARM_UP: f64 = 0.08;
const CAPACITY: f64 = 0.1;
const CAPACITY_PASSES: u32 = 2;
/// Nothing shorter says anything.
const CELL_MIN: Duration = Duration::from_millis(100);
/// Fewer answers than this do not show what one in a thousand takes.
const ANSWERS_FOR_P999: u64 = 10_000;

/// The protocol to a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP/1.1 in clear text.
    Plain,
    /// HTTP/1.1 over TLS, on both sides of a proxy.
    Tls,
}

impl Transport {
    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Plain => "plain",
            Transport::Tls => "tls",
        }
    }
}

/// The role of a subject, which sets what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The application itself: what the machine and the generator take.
    Direct,
    /// Our proxy without inspection.
    Off,
    /// Our proxy with inspection.
    Inspecting,
    /// Something else that is served already.
    Target,
}

impl Role {
    /// True if attacks are to be answered 403; `None` if that is not known.
    pub(crate) fn refuses_attacks(self) -> Option<bool> {
        match self {
            Role::Direct | Role::Off => Some(false),
            Role::Inspecting => Some(true),
            Role::Target => None,
        }
    }
}

/// The subject of a measurement.
#[derive(Clone, Debug)]
pub struct Subject {
    /// In the report.
    pub name: String,
    /// The protocol.
    pub transport: Transport,
    /// The role.
    pub role: Role,
    /// The address that it listens on; on loopback.
    pub address: SocketAddr,
    /// Whom clients trust; needed for [`Transport::Tls`], where the certificate is for [`NAME`].
    pub tls: Option<Arc<ClientConfig>>,
    /// The processes whose CPU time is reported; none: nothing is reported.
    pub processes: Vec<u32>,
}

impl Subject {
    pub(crate) fn peer(&self) -> Peer {
        let name = || ServerName::try_from(NAME).expect("a host name");
        Peer { address: self.address, tls: self.tls.clone().map(|config| (config, name())) }
    }
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Study {
    /// In the order of the report.
    pub subjects: Vec<Subject>,
    /// The traffic to send.
    pub traffic: Traffic,
    /// Client connections.
    pub connections: usize,
    /// Time for all of it.
    pub duration: Duration,
    /// The part of the slowest subject's capacity that is offered to all of its transport, 0 to 1.
    pub load: f64,
    /// Requests a second instead.
    pub rate: Option<f64>,
}

impl Study {
    /// Measures. `say` gets messages on the progress.
    pub fn run(&self, version: &str, say: &mut dyn FnMut(&str)) -> Result<Report, Error> {
        let each = self.duration.div_f64(self.subjects.len().max(1) as f64);
        let messages = messages(self.traffic, MESSAGES).into();
        let load = |pace, duration: Duration| Load {
            messages: Arc::clone(&messages),
            connections: self.connections,
            pace,
            duration: duration.max(CELL_MIN),
        };
        let mut subjects: Vec<Account<'_>> = self.subjects.iter().map(Account::new).collect();
        say("warming up");
        for account in &mut subjects {
            account.warm_up(&load(Pace::Closed, each.mul_f64(WARM_UP)))?;
        }
        say("finding capacities");
        for _ in 0..CAPACITY_PASSES {
            for account in &mut subjects {
                account.find_capacity(&load(Pace::Closed, each.mul_f64(CAPACITY)))?;
            }
        }
        let left = each.mul_f64(1.0 - WARM_UP - CAPACITY * f64::from(CAPACITY_PASSES));
        let rounds = rounds(left);
        for round in 0..rounds {
            say(&format!("measuring, round {} of {rounds}", round + 1));
            let mut order: Vec<usize> = (0..subjects.len()).collect();
            if round % 2 == 1 {
                // So a drift over time does not favour the first.
                order.reverse();
            }
            for index in order {
                let rate = self.rate(&subjects, subjects[index].subject.transport);
                subjects[index].measure(&load(Pace::Open(rate), left / rounds))?;
            }
        }
        Ok(self.report(version, &subjects, rounds))
    }

    fn rate(&self, subjects: &[Account<'_>], transport: Transport) -> f64 {
        let of_transport = subjects.iter().filter(|account| account.subject.transport == transport);
        let slowest = of_transport.map(|account| account.capacity).fold(f64::INFINITY, f64::min);
        self.rate.unwrap_or(slowest * self.load).max(1.0)
    }

    fn report(&self, version: &str, subjects: &[Account<'_>], rounds: u32) -> Report {
        let mut groups = Vec::new();
        for transport in [Transport::Plain, Transport::Tls] {
            let of_group: Vec<&Account<'_>> =
                subjects.iter().filter(|account| account.subject.transport == transport).collect();
            if of_group.is_empty() {
                continue;
            }
            let with = |role| of_group.iter().find(|account| account.subject.role == role).copied();
            let (direct, off) = (with(Role::Direct), with(Role::Off));
            let rows = of_group.iter().map(|account| account.row(direct, off)).collect();
            groups.push(Group { transport: transport.name(), rate: self.rate(subjects, transport), rows });
        }
        let mut report = Report {
            schema: crate::SCHEMA_VERSION,
            version: version.to_owned(),
            machine: Machine::here(),
            traffic: self.traffic.name(),
            connections: self.connections,
            seconds: self.duration.as_secs_f64(),
            rounds,
            load: self.rate.is_none().then_some(self.load),
            groups,
            notes: Vec::new(),
        };
        report.notes = notes(&report);
        report
    }
}

/// The measurements of a subject so far.
struct Account<'s> {
    subject: &'s Subject,
    /// Answers a second, the best pass.
    capacity: f64,
    /// CPU microseconds per answer under full load, the best pass.
    full_cpu_us: Option<f64>,
    rounds: Vec<Measured>,
    cpu: Option<Duration>,
    /// Mistakes before the rounds count, too.
    early: Measured,
}

impl<'s> Account<'s> {
    fn new(subject: &'s Subject) -> Account<'s> {
        Account {
            subject,
            capacity: 0.0,
            full_cpu_us: None,
            rounds: Vec::new(),
            cpu: Some(Duration::ZERO),
            early: Measured::new(),
        }
    }

    fn warm_up(&mut self, load: &Load) -> Result<(), Error> {
        self.early.add(&drive(self.subject, load)?);
        Ok(())
    }

    fn find_capacity(&mut self, load: &Load) -> Result<(), Error> {
        let (measured, cpu) = self.drive(load)?;
        self.early.add(&measured);
        if measured.throughput() > self.capacity {
            self.capacity = measured.throughput();
            self.full_cpu_us = cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / measured.answered as f64);
        }
        Ok(())
    }

    fn measure(&mut self, load: &Load) -> Result<(), Error> {
        let (measured, cpu) = self.drive(load)?;
        self.cpu = self.cpu.zip(cpu).map(|(sum, cpu)| sum + cpu);
        self.rounds.push(measured);
        Ok(())
    }

    fn drive(&self, load: &Load) -> Result<(Measured, Option<Duration>), Error> {
        let before = CpuTime::of(&self.subject.processes);
        let measured = drive(self.subject, load)?;
        let after = CpuTime::of(&self.subject.processes);
        Ok((measured, after.zip(before).map(|(after, before)| after.since(before))))
    }

    fn all(&self) -> Measured {
        let mut all = Measured::new();
        self.rounds.iter().for_each(|round| all.add(round));
        all
    }

    fn row(&self, direct: Option<&Account<'_>>, off: Option<&Account<'_>>) -> Row {
        let all = self.all();
        let mut wrong = all.unexpected.clone();
        for (status, count) in &self.early.unexpected {
            *wrong.entry(*status).or_default() += count;
        }
        let by_proxy = (self.subject.role != Role::Direct).then_some(direct).flatten();
        let by_inspection = (self.subject.role == Role::Inspecting).then_some(off).flatten();
        Row {
            name: self.subject.name.clone(),
            role: match self.subject.role {
                Role::Direct => "direct",
                Role::Off => "off",
                Role::Inspecting => "inspecting",
                Role::Target => "target",
            },
            capacity: self.capacity,
            capacity_cpu_us: self.full_cpu_us,
            answered: all.answered,
            achieved: all.throughput(),
            latency: Latency::of(&all),
            generator_lag_p99_us: all.lag.value_at_quantile(0.99) as f64 / 1e3,
            cpu_us: self.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / all.answered.max(1) as f64),
            added_by_proxy: by_proxy.map(|base| self.added(base)),
            added_by_inspection: by_inspection.map(|base| self.added(base)),
            unexpected: wrong,
            broken: all.broken + self.early.broken,
            unsent: all.unsent,
        }
    }

    /// Returns the time that this subject takes longer than another. The spread is that of the rounds.
    fn added(&self, base: &Account<'_>) -> Added {
        let rounds = self.rounds.iter().zip(&base.rounds);
        let mut p99: Vec<f64> =
            rounds.map(|(own, base)| Latency::of(own).minus(Latency::of(base)).p99_us).collect();
        p99.sort_by(f64::total_cmp);
        let at = |place: usize| p99.get(place).copied().unwrap_or_default();
        let all = Latency::of(&self.all()).minus(Latency::of(&base.all()));
        Added {
            all,
            p99_rounds_us: [at(0), at(p99.len().saturating_sub(1))],
            p99_median_us: at(p99.len() / 2),
        }
    }
}

/// Returns the number of rounds that `left` allows for each subject: of about a second or longer, if there is
/// time for three. An odd number, which has a median.
fn rounds(left: Duration) -> u32 {
    (left.as_secs_f64() as u32).clamp(3, 25) | 1
}

/// Returns the caveats that a reader must know before relying on the figures.
fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    for group in &report.groups {
        for row in &group.rows {
            let who = format!("{} ({})", row.name, group.transport);
            if !row.unexpected.is_empty() {
                let statuses: Vec<String> =
                    row.unexpected.iter().map(|(status, count)| format!("{count} times {status}")).collect();
                notes.push(format!(
                    "{who}: answers that are wrong for what was sent: {}",
                    statuses.join(", ")
                ));
            }
            if row.broken > 0 {
                notes.push(format!(
                    "{who}: {} requests whose connection broke or could not be made",
                    row.broken
                ));
            }
            if row.unsent > 0 {
                notes.push(format!(
                    "{who}: {} requests could not be sent or were not answered in time, so its latencies are too low",
                    row.unsent
                ));
            }
            if row.generator_lag_p99_us > (row.latency.p99_us / 4.0).max(50.0) {
                notes.push(format!(
                    "{who}: the generator itself was late, by {:.0} us at p99: the machine is too busy for these percentiles",
                    row.generator_lag_p99_us
                ));
            }
            if row.answered < ANSWERS_FOR_P999 {
                notes.push(format!(
                    "{who}: p99.9 rests on {} answers; a higher --seconds gives more",
                    row.answered
                ));
            }
            if let Some(added) = &row.added_by_inspection {
                let [least, most] = added.p99_rounds_us;
                if most - least > added.all.p99_us.abs().max(50.0) {
                    notes.push(format!(
                        "{who}: rounds differ by more than what is measured, p99 added {least:.0} to {most:.0} us"
                    ));
                }
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_median_round() {
        for (seconds, expected) in [(0.5, 3), (3.9, 3), (4.2, 5), (9.0, 9), (600.0, 25)] {
            assert_eq!(rounds(Duration::from_secs_f64(seconds)), expected, "{seconds}");
        }
    }
}
