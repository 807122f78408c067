//! Reads what the proxy wrote, by client address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;

use super::target::Traces;
use crate::TestkitError;
use crate::ftw::LogLine;

/// Everything that was logged.
#[derive(Debug, Default)]
pub(super) struct Log {
    clients: BTreeMap<IpAddr, Client>,
    /// Reasons to doubt the run itself.
    pub troubles: Vec<String>,
}

/// The log entries of one client.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub lines: Vec<LogLine>,
    pub ids: BTreeSet<u32>,
}

impl Log {
    pub fn client(&self, address: IpAddr) -> Option<&Client> {
        self.clients.get(&address)
    }
}

pub(super) fn read(traces: &Traces) -> Result<Log, TestkitError> {
    let path = match traces {
        Traces::Own { folder, .. } => folder.log(),
        Traces::Given { log } => log.clone(),
    };
    let text = std::fs::read(&path).map_err(|source| TestkitError::io(&path, source))?;
    let mut log = Log::default();
    for line in text.split(|&byte| byte == b'\n') {
        if let Some(address) = client_of(line) {
            let client = log.clients.entry(address).or_default();
            client.ids.extend(ids_of(line));
            client.lines.push(line.to_vec());
        }
    }
    if let Traces::Own { folder, metrics } = traces {
        let path = folder.events();
        let text = std::fs::read_to_string(&path).map_err(|source| TestkitError::io(&path, source))?;
        compare(&text, &mut log);
        log.troubles.extend(folder.panics());
        log.troubles.extend(dropped(metrics));
    }
    Ok(log)
}

/// Returns the metrics of dropped events that are not zero.
fn dropped(metrics: &str) -> Vec<String> {
    const NAME: &str = "portcullis_events_dropped_total";
    if !metrics.contains(NAME) {
        return vec![format!("the metrics page has no {NAME}")];
    }
    let lines = metrics.lines().filter(|line| line.starts_with(NAME) && !line.ends_with(" 0"));
    lines.map(|line| format!("events were dropped: {line}")).collect()
}

/// The address in the first `[client ...]`, with or without a port; in lines of nginx, which has none there,
/// that in the last `, client: ...`, which nginx itself writes.
fn client_of(line: &[u8]) -> Option<IpAddr> {
    let (text, end) = match after(line, b"[client ") {
        Some(text) => (text, b']'),
        None => (after_last(line, b", client: ")?, b','),
    };
    let text = &text[..text.iter().position(|&byte| byte == end)?];
    let text = std::str::from_utf8(text).ok()?;
    text.parse().ok().or_else(|| text.rsplit_once(':')?.0.parse().ok())
}

/// The numbers in each `[id "..."]`, quotes escaped or not.
fn ids_of(line: &[u8]) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut rest = line;
    while let Some(tail) = after(rest, b"[id ") {
        let digits = tail.strip_prefix(b"\\\"").or(tail.strip_prefix(b"\"")).unwrap_or_default();
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let closed = digits[end..].starts_with(b"\"]") || digits[end..].starts_with(b"\\\"]");
        if closed
            && let Some(id) = std::str::from_utf8(&digits[..end]).ok().and_then(|text| text.parse().ok())
        {
            ids.push(id);
        }
        rest = tail;
    }
    ids
}

fn after<'a>(line: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    line.windows(mark.len()).position(|window| window == mark).map(|at| &line[at + mark.len()..])
}

fn after_last<'a>(line: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    line.windows(mark.len()).rposition(|window| window == mark).map(|at| &line[at + mark.len()..])
}

/// Event file against log: the same clients, the same rules.
fn compare(events: &str, log: &mut Log) {
    #[derive(Deserialize)]
    struct Event {
        client: EventClient,
        #[serde(default)]
        matches: Vec<Match>,
        #[serde(default)]
        also_matched: Vec<Match>,
    }
    #[derive(Deserialize)]
    struct EventClient {
        addr: IpAddr,
    }
    #[derive(Deserialize)]
    struct Match {
        rule_id: u32,
    }
    let mut seen: BTreeMap<IpAddr, BTreeSet<u32>> = BTreeMap::new();
    for (index, line) in events.lines().enumerate() {
        match serde_json::from_str::<Event>(line) {
            Ok(event) => {
                let matches = event.matches.iter().chain(&event.also_matched);
                let ids = matches.map(|rule_match| rule_match.rule_id);
                seen.entry(event.client.addr).or_default().extend(ids);
            }
            Err(error) => log.troubles.push(format!("event file, line {}: {error}", index + 1)),
        }
    }
    seen.retain(|_, ids| !ids.is_empty());
    let logged = log.clients.iter().map(|(address, client)| (*address, client.ids.clone()));
    let logged: BTreeMap<_, _> = logged.filter(|(_, ids)| !ids.is_empty()).collect();
    let addresses: BTreeSet<_> = seen.keys().chain(logged.keys()).collect();
    let differ = addresses.into_iter().filter(|address| seen.get(address) != logged.get(address));
    let differ: Vec<_> = differ.map(IpAddr::to_string).collect();
    if let Some(first) = differ.first() {
        log.troubles.push(format!(
            "event file and error log name different rules for {} clients, {first} among them",
            differ.len()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_kinds() {
        let line = br#"[x] [client 127.1.0.7:4711] [client 127.1.0.7] ModSecurity: Warning. "[id \"5\"]" [id "942100"] [id "x"]"#;
        assert_eq!(client_of(line), "127.1.0.7".parse().ok());
        assert_eq!(ids_of(line), [5, 942100]);
        assert_eq!(client_of(b"[client ::1] x"), "::1".parse().ok());
        assert_eq!(client_of(b"[client x] y"), None);
        let nginx =
            b"1#1: *2 ModSecurity: Warning. , client: 9.9.9.9, x [ref \"\"], client: 127.1.0.9, server: a";
        assert_eq!(client_of(nginx), "127.1.0.9".parse().ok());
    }

    #[test]
    fn events_must_tell_the_same() {
        let log = || {
            let mut log = Log::default();
            let client = log.clients.entry("127.1.0.1".parse().unwrap()).or_default();
            client.ids.insert(7);
            log
        };
        for (events, troubles) in [
            (r#"{"client":{"addr":"127.1.0.1"},"matches":[{"rule_id":7}]}"#, 0),
            (r#"{"client":{"addr":"127.1.0.1"},"matches":[{"rule_id":8}]}"#, 1),
            (r#"{"client":{"addr":"127.1.0.2"},"matches":[{"rule_id":7}]}"#, 1),
            ("", 1),
            ("{}", 2),
        ] {
            let mut log = log();
            compare(events, &mut log);
            assert_eq!(log.troubles.len(), troubles, "{events}: {:?}", log.troubles);
        }
    }
}
