//! Events per second from `submit` to a file, with one worker that submits as fast as it can:
//! `cargo run --release -p portcullis-log --example throughput [EVENTS]`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use portcullis_event::{Event, RuleEffect, RuleInfo, RuleMatch, Timestamp};
use portcullis_log::{EventLog, Format, QueueLimits, SinkConfig};
use portcullis_metrics::Registry;
use portcullis_types::{Phase, RuleId, Severity};

/// An event as a blocked request makes it: three matches, 1.9 KB of JSON.
fn event(id: usize, rule: &Arc<RuleInfo>) -> Event {
    let mut event = Event::new(format!("r{id}"), Timestamp::from_epoch_millis(1_790_000_000_000 + id as u64));
    event.request.method = "GET".into();
    event.request.target = "/search?q=1%27+union+select+1,2,3+--+".into();
    event.request.protocol = "HTTP/1.1".into();
    event.server.host = "shop.example".into();
    for _ in 0..3 {
        event.push_match(RuleMatch {
            rule: rule.clone(),
            message: "SQL injection attempt found".into(),
            data: "Matched Data: union select found within ARGS:q: 1' union select 1,2,3 -- ".into(),
            target: "ARGS:q".into(),
            value: "1' union select 1,2,3 -- ".into(),
            span: None,
            points: 5,
            effect: RuleEffect::None,
        });
    }
    event
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events = std::env::args().nth(1).map_or(Ok(500_000), |n| n.parse())?;
    let text = |list: &[&str]| list.iter().map(|&s| s.into()).collect();
    let rule = Arc::new(RuleInfo {
        rule_id: RuleId(942100),
        phase: Phase::RequestBody,
        severity: Some(Severity::Critical),
        operator: "rx".into(),
        argument: "(?i)union".into(),
        transformations: text(&["utf8toUnicode", "urlDecodeUni", "removeNulls"]),
        tags: text(&[
            "application-multi",
            "language-multi",
            "platform-multi",
            "attack-sqli",
            "paranoia-level/1",
        ]),
        ver: Some("RULES/4.0".into()),
        rev: None,
        maturity: None,
        accuracy: None,
        file: "/etc/portcullis/rules/sqli.conf".into(),
        line: 66,
    });
    let path = std::env::temp_dir().join(format!("portcullis-throughput-{}.jsonl", std::process::id()));
    let registry = Registry::new();
    let sinks = vec![SinkConfig::file("json", Format::JsonLines, &path)];
    let log = EventLog::new(sinks, QueueLimits::default(), &registry)?;
    let sender = log.sender();

    let start = Instant::now();
    let mut in_submit = Duration::ZERO;
    for id in 0..events {
        let event = event(id, &rule);
        let before = Instant::now();
        sender.submit(event);
        in_submit += before.elapsed();
    }
    while registry.render().lines().any(|l| l.starts_with("portcullis_events_queued ") && !l.ends_with(" 0"))
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let writer_cpu = writer_cpu();
    log.shutdown(Duration::from_secs(60));
    let elapsed = start.elapsed();

    let bytes = std::fs::metadata(&path)?.len();
    std::fs::remove_file(&path)?;
    println!(
        "{events} submitted in {elapsed:.2?}; submit takes {:.0?} on average",
        in_submit / events as u32
    );
    let written = registry.counter(&portcullis_metrics::catalogue::EVENTS_WRITTEN, &["json"]).value();
    if let Some(cpu) = writer_cpu {
        println!(
            "writer: {:.2?} of CPU per event, {:.0}/s",
            cpu / written as u32,
            written as f64 / cpu.as_secs_f64()
        );
    }
    println!("{:.0} MB/s to the file", bytes as f64 / elapsed.as_secs_f64() / 1e6);
    for line in
        registry.render().lines().filter(|l| l.starts_with("portcullis_events_") && !l.ends_with(" 0"))
    {
        println!("{line}");
    }
    Ok(())
}

/// CPU time of the writer thread, where the system tells (Linux).
fn writer_cpu() -> Option<Duration> {
    std::fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let times = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = times.split(' ').next()?.parse().ok()?;
        (name.trim() == "events").then_some(Duration::from_nanos(nanos))
    })
}
