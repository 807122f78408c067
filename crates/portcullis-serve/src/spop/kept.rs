//! Exchanges whose requests passed and whose responses are still to come.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use portcullis_exchange::Conversation;

/// Exchanges that wait at one time; the oldest is dropped.
const KEPT_MAX: usize = 10_000;
/// The longest wait for a response. Later ones are refused by the example configuration.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Exchanges by their id; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    exchanges: HashMap<Vec<u8>, Conversation>,
    /// In the order in which they came; those that went are still named.
    order: VecDeque<(Instant, Vec<u8>)>,
}

impl Kept {
    /// Keeps an exchange until its response comes.
    pub(crate) fn keep(&self, id: &str, conversation: Conversation) {
        let mut ended = Vec::new();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        waiting.exchanges.insert(id.as_bytes().to_vec(), conversation);
        waiting.order.push_back((now, id.as_bytes().to_vec()));
        while let Some((since, id)) = waiting.order.front() {
            let is_old = now.duration_since(*since) > WAIT_MAX || waiting.order.len() > KEPT_MAX;
            if waiting.exchanges.contains_key(id) && !is_old {
                break;
            }
            if let Some((_, id)) = waiting.order.pop_front() {
                ended.extend(waiting.exchanges.remove(&id));
            }
        }
        drop(waiting);
        // Their events are written outside of the lock.
        for mut conversation in ended {
            conversation.blind(portcullis_event::BlindSpot::Response);
        }
    }

    /// The exchange of this id. It is given out once.
    pub(crate) fn take(&self, id: &[u8]) -> Option<Conversation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).exchanges.remove(id)
    }
}
