//! `proxy` of a rule: a request that goes to another server than its route's.
//!
//! Only endpoints of the configured upstreams can be such servers, so rules cannot reach what the operator did not name.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_config::{Config, Upstream};
use portcullis_event::Action;
use portcullis_http::message::{RequestHead, TargetForm};
use portcullis_inspect::{Inspector, Interruption, Origin};

use crate::connection::Connection;
use crate::exchange::{self, Destination, Next};
use crate::generation::Generation;
use crate::request_body::{self, Body};
use crate::state::Services;
use crate::transaction::Transaction;
use crate::upstream::{Origin as GroupOrigin, Slot};
use crate::{StartError, answer};

/// A group of one endpoint for each server that rules name. `groups` are those of the upstreams, by index.
pub(crate) fn groups(
    config: &Config,
    inspectors: &[Arc<Inspector>],
    groups: &[Arc<Slot>],
    services: &Services,
    origin: &GroupOrigin,
) -> Result<HashMap<Origin, Arc<Slot>>, StartError> {
    let mut found = HashMap::new();
    for (rule, server) in inspectors.iter().flat_map(|inspector| inspector.plan().diversions()) {
        if found.contains_key(&**server) {
            continue;
        }
        let place = config.upstreams.iter().zip(groups).find_map(|(upstream, group)| {
            let at = upstream.endpoint_at(server.https, &server.host, server.port)?;
            Some((upstream, group, at))
        });
        let Some((upstream, group, at)) = place else {
            return Err(StartError::new(format!(
                "rule {} sends requests to {server}, which is not an endpoint of an upstream",
                rule.id
            )));
        };
        let group = match upstream.endpoints.len() {
            1 => Arc::clone(group),
            _ => {
                let one = Upstream { endpoints: vec![upstream.endpoints[at].clone()], ..upstream.clone() };
                Slot::build(&one, services, origin, groups)?
            }
        };
        found.insert(Origin::clone(server), group);
    }
    Ok(found)
}

/// Sends the request where the rule says. `body` is what has been taken of it, nothing in phase 1.
pub(crate) async fn run(
    connection: &mut Connection,
    generation: &Arc<Generation>,
    head: &RequestHead,
    transaction: &mut Transaction,
    (origin, target): (Arc<Origin>, Vec<u8>),
    body: Option<Body>,
) -> Next {
    let group = generation.diverted.get(&*origin).filter(|_| head.target_form() != TargetForm::Authority);
    let Some(group) = group else {
        // No tunnel goes there, and nothing that was not looked up when the settings were loaded.
        let what = Interruption::Deny { status: 500 };
        return answer::interruption(connection, generation, head, transaction, what, false).await;
    };
    transaction.action = Action::Proxy;
    let body = match body {
        Some(body) => body,
        None => match request_body::take(connection, generation, head, transaction, &[]).await {
            Ok(body) => body,
            Err(obstacle) => {
                return exchange::obstructed(connection, generation, head, transaction, obstacle).await;
            }
        },
    };
    let to = Destination { group: &group.group(), idempotent: false, target: Some(&target), headers: None };
    exchange::send(connection, generation, head, transaction, to, body).await
}
