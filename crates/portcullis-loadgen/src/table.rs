//! A report as text.

use std::fmt::{self, Display, Formatter};

use crate::report::{Added, Group, Latency, Report, Row};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cpu = self.machine.cpu.as_deref().unwrap_or("unknown processor");
        write!(f, "portcullis {}, {} cores, {cpu}", self.version, self.machine.cores)?;
        if let Some(load) = self.machine.load_average {
            write!(f, ", load average {load:.1} at the end")?;
        }
        writeln!(
            f,
            "\nrequests: {}, {} connections, {} rounds, {:.0} s in all",
            self.traffic, self.connections, self.rounds, self.seconds
        )?;
        for group in &self.groups {
            writeln!(f)?;
            write_group(f, group, self.load)?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "\nnotes")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

fn write_group(f: &mut Formatter<'_>, group: &Group, load: Option<f64>) -> fmt::Result {
    let transport = match group.transport {
        "tls" => "HTTP/1.1 over TLS, on both sides",
        _ => "HTTP/1.1",
    };
    let why = load.map_or_else(
        || "as told".to_owned(),
        |load| format!("{:.0} % of what the slowest can do", load * 100.0),
    );
    writeln!(f, "{transport}: {:.0} requests/s offered to each, {why}", group.rate)?;
    let width = group.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(10) + 2;
    writeln!(
        f,
        "  {:width$}{:>9}{:>9}{:>9}{:>9}{:>11}{:>13}{:>13}{:>11}",
        "latency, us", "p50", "p95", "p99", "p99.9", "usual p99", "CPU us/req", "requests/s", "CPU us/req"
    )?;
    writeln!(f, "  {:width$}{:>47}{:>13}{:>13}{:>11}", "", "", "at this rate", "at most", "then")?;
    for row in &group.rows {
        write!(f, "  {:width$}", row.name)?;
        write_latency(f, &row.latency)?;
        writeln!(f, "{:>13}{:>13.0}{:>11}", tenths(row.cpu_us), row.capacity, tenths(row.capacity_cpu_us))?;
    }
    write_added(f, "added by inspection", width, group, |row| row.added_by_inspection.as_ref())?;
    write_added(f, "added by the proxy", width, group, |row| row.added_by_proxy.as_ref())
}

fn write_added(
    f: &mut Formatter<'_>,
    title: &str,
    width: usize,
    group: &Group,
    of: impl Fn(&Row) -> Option<&Added>,
) -> fmt::Result {
    let mut rows = group.rows.iter().filter_map(|row| Some((row, of(row)?))).peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    writeln!(f, "  {title}, us")?;
    for (row, added) in rows {
        write!(f, "  {:width$}", row.name)?;
        write_latency(f, &added.all)?;
        let [least, most] = added.p99_rounds_us;
        writeln!(f, "   p99 of rounds {least:.0} to {most:.0}, median {:.0}", added.p99_median_us)?;
    }
    Ok(())
}

fn write_latency(f: &mut Formatter<'_>, latency: &Latency) -> fmt::Result {
    for value in [latency.p50_us, latency.p95_us, latency.p99_us, latency.p999_us] {
        write!(f, "{value:>9.0}")?;
    }
    let usual = latency.p99_usual_us.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
    write!(f, "{usual:>11}")
}

fn tenths(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}
