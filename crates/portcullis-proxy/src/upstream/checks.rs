//! Active health checks: one task for each endpoint, on the keeper's thread.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use portcullis_balance::{Checks, Random, next_check};
use portcullis_config::{Health, Probe};
use portcullis_http::h1::{Limits, ResponseParser};
use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use super::connect::{open, speaks_http2};
use super::{Failed, Group, ask, session};
use crate::buffer::{Buffer, Spares};
use crate::stream::Stream;

/// The checks that run, by group and endpoint.
#[derive(Default)]
pub(super) struct Checkers {
    running: HashMap<(u64, usize), AbortHandle>,
    seed: u64,
}

impl Checkers {
    /// Starts and stops checks, so that those of `groups` run.
    pub(super) fn follow(&mut self, groups: &[Arc<Group>]) {
        self.running.retain(|(id, _), task| {
            let stays = groups.iter().any(|group| group.id == *id);
            if !stays {
                task.abort();
            }
            stays
        });
        for group in groups {
            for (index, member) in group.endpoints.members().iter().enumerate() {
                if group.settings.health.is_none() {
                    // Nobody looks any longer, so nothing speaks against it.
                    member.endpoint.set_healthy(true, group.moment(Instant::now()));
                    continue;
                }
                self.seed += 1;
                let random = Random::new(self.seed);
                let start = || {
                    let task = tokio::task::spawn_local(check_for_ever(Arc::clone(group), index, random));
                    task.abort_handle()
                };
                self.running.entry((group.id, index)).or_insert_with(start);
            }
        }
    }
}

async fn check_for_ever(group: Arc<Group>, index: usize, mut random: Random) {
    let Some(health) = &group.settings.health else { return };
    let endpoint = &group.endpoints.members()[index].endpoint;
    let mut checks = match group.was_checked[index] {
        true => Checks::known(endpoint.is_healthy()),
        false => Checks::default(),
    };
    loop {
        let checked = tokio::time::timeout(health.timeout, check(&group, index, health)).await;
        let result = checked.unwrap_or_else(|_| Err(format!("no answer in {:?}", health.timeout)));
        group.report.checked(index, result.is_ok());
        if let Err(why) = &result {
            group.report.failed(index, why);
        }
        if let Some(healthy) = checks.record(result.is_ok(), health.thresholds) {
            endpoint.set_healthy(healthy, group.moment(Instant::now()));
            match result {
                Ok(()) => group.report.line(index, "healthy"),
                Err(why) => group.report.line(index, format_args!("unhealthy: {why}")),
            }
        }
        tokio::time::sleep(next_check(health.interval, &mut random)).await;
    }
}

/// Asks once; the error says what is wrong.
async fn check(group: &Arc<Group>, index: usize, health: &Health) -> Result<(), String> {
    let connected = open(group, index).await;
    let failed = |failed: Failed| failed.to_string();
    let mut stream = connected.map_err(failed)?;
    let name = &group.settings.endpoints[index].to_string();
    let scheme = if group.tls.is_some() { "https" } else { "http" };
    let http2 = speaks_http2(group, &stream).map_err(failed)?;
    let (path, host, statuses) = match &health.probe {
        Probe::Tcp => return Ok(()),
        Probe::Grpc(service) => {
            return ask::health(session::alone(stream).await.map_err(failed)?, scheme, name, service).await;
        }
        Probe::Http { path, host, statuses } => (path, host.as_ref().unwrap_or(name), statuses),
    };
    let judge = |status: u16| match statuses.iter().any(|range| range.contains(&status)) {
        true => Ok(()),
        false => Err(format!("answered {status}")),
    };
    if http2 {
        let send = session::alone(stream).await.map_err(failed)?;
        return judge(ask::status(send, scheme, host, path).await?);
    }
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: portcullis-health\r\nAccept: */*\r\n\
         Connection: close\r\n\r\n"
    );
    let sent = async {
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await
    };
    sent.await.map_err(|error| error.to_string())?;
    judge(status(&mut stream).await?)
}

/// Reads the status of the answer; of its body nobody wants to know.
async fn status(stream: &mut Stream) -> Result<u16, String> {
    let mut input = Buffer::new(Rc::new(Spares::default()));
    let mut parser = ResponseParser::new(Limits::default());
    loop {
        if !input.unread().is_empty()
            && let Some(head) = parser.parse(input.unread()).map_err(|_| "the answer is not HTTP")?
        {
            if !head.is_interim() {
                return Ok(head.status());
            }
            input.consume(head.received_len());
            continue;
        }
        if input.fill(stream).await.map_err(|error| error.to_string())? == 0 {
            return Err("closed without an answer".to_string());
        }
    }
}
