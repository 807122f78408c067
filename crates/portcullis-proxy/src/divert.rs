//! `proxy` of a rule: a request that goes to another server than its route's.
//!
//! Only endpoints of the configured upstreams can be such servers, so rules cannot reach what the operator
//! did not name.

use std::collections::HashMap;
use std::sync::Arc;

use portcullis_config::{Config, Upstream};
use portcullis_inspect::{Inspector, Origin};

use crate::StartError;
use crate::services::Services;
use crate::upstream::{Origin as GroupOrigin, Slot};

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
