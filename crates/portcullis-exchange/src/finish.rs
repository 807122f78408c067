//! The end of a conversation: its lifecycle ends, and metrics, the record of requests and the event are made.

use std::time::Instant;

use portcullis_event::{Action, Event, Integration, NotInspected};

use crate::conversation::Conversation;
use crate::counters::Counters;
use crate::lifecycle::Facts;

/// Closes the account of an exchange.
pub(crate) fn finish(conversation: &mut Conversation) {
    let now = Instant::now();
    let step = conversation.life.logging(now, now.saturating_duration_since(conversation.began));
    conversation.settle(step);
    let mut life = std::mem::take(&mut conversation.life);
    if let Some(block) = &conversation.block {
        let own = Some(block).filter(|block| block.action != Action::Drop);
        life.outcome.own_body_bytes = own.map_or(0, |block| block.page.body.len() as u64);
        life.outcome.status = own.map(|block| block.status);
    }
    let conversation = &*conversation;
    let facts = facts(conversation);
    let mut finished = life.finish(&facts);
    let (settings, service) = (&conversation.settings, &conversation.service);
    let (metrics, outputs) = (&service.metrics, &service.outputs);
    let counters = Counters {
        data_plane: &metrics.data_plane,
        exceptions: &metrics.exceptions,
        route: settings.route(),
        rules: settings.rule_matches(),
    };
    if let Some(report) = finished.report {
        counters.count_report(&report);
        report.kept_files.into_iter().for_each(|file| (outputs.on_file)(file));
        service.keep_scratch(report.scratch);
    }
    finished.coverage.not_inspected(NotInspected::NotSent, conversation.missing_bytes);
    let (action, coverage) = (finished.action, &finished.coverage);
    if let Some(event) = &mut finished.event {
        event.coverage.clone_from(coverage);
    }
    counters.count(&life, facts.head, (action, coverage), true);
    metrics.verdicts.inc(action as usize);
    for spot in &conversation.blind_spots {
        metrics.blind_spots.inc(*spot as usize);
    }
    if let Some(on_request) = &outputs.on_request {
        on_request(&life.record(&facts, action), coverage, Some(life.spent()));
    }
    match (finished.event, finished.captured) {
        (Some(event), _) => {
            if let Some(on_event) = &outputs.on_event {
                on_event(completed(conversation, event));
            }
        }
        (None, Some(captured)) => {
            if let Some(capture) = &outputs.capture {
                (capture.take)(completed(conversation, captured));
            }
        }
        (None, None) => {}
    }
}

fn facts(conversation: &Conversation) -> Facts<'_> {
    let Conversation { settings, head, arrival, request_id, epoch_millis, .. } = conversation;
    Facts {
        head,
        names: &settings.names,
        generation: settings.names.generation,
        inspector: Some(&settings.inspector),
        exclusions: Some(&settings.exclusions),
        redactor: &settings.redactor,
        request_id,
        epoch_millis: *epoch_millis,
        client: arrival.client,
        server: arrival.server,
        tls: arrival.tls,
        // Each is inspected, unless a bug ends that.
        uninspected: NotInspected::EngineError,
    }
}

/// An event, with what only the asking server's protocol tells.
fn completed(conversation: &Conversation, mut event: Box<Event>) -> Event {
    let Conversation { service, arrival, .. } = conversation;
    if arrival.client.ip() != arrival.peer.ip() {
        event.client.peer = Some(arrival.peer.ip().to_string());
    }
    let mut blind_spots = conversation.blind_spots.clone();
    blind_spots.sort_unstable();
    event.integration = Some(Integration { kind: service.kind, blind_spots });
    *event
}
