//! Disruptive actions of a matching rule: interrupt the transaction, allow it, redirect it, proxy it, delay
//! it. The transaction only reports the decision; the caller answers, forwards and waits.

use std::fmt;
use std::sync::Arc;

use portcullis_types::Phase;

use crate::execution::Execution;
use crate::plan::{Disruption, Plan, Rule, RuleIndex};
use crate::template::Template;
use crate::transaction::{Interruption, Transaction};
use crate::tx::to_int;
use crate::{Match, RuleEngine};

/// A server that `proxy` sends requests to. Known at load time, so that no request can choose it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// `https` instead of `http`.
    pub https: bool,
    /// Host name or address, lower case, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

/// The target of `proxy:URL`.
#[derive(Clone, Debug)]
pub struct Diversion {
    /// The server.
    pub origin: Arc<Origin>,
    /// Path, and query if it has a `?`; otherwise the query of the request goes with it.
    pub target: Template,
}

impl Transaction {
    /// Milliseconds that `pause` asked for since the last call; the caller waits before it proceeds, and
    /// decides how long at most.
    pub fn take_pause_ms(&mut self) -> u64 {
        std::mem::take(&mut self.journal.pause_ms)
    }
}

impl Execution<'_> {
    pub(crate) fn disrupt(&mut self, index: RuleIndex) {
        if self.run.phase == Phase::Logging || self.vars.ctl.rule_engine != RuleEngine::On {
            return;
        }
        self.hold_up(index);
        let interruption = match &self.plan.rule(index).disruption {
            Disruption::Pass => return,
            Disruption::Allow(scope) => {
                self.run.rule_ended = true;
                self.vars.ctl.allow = Some((*scope, self.run.phase));
                return;
            }
            Disruption::Deny { status } => Interruption::Deny { status: *status },
            Disruption::Drop => Interruption::Drop,
            Disruption::Redirect { status, location } => {
                let mut target = Vec::new();
                self.expand(location, &mut target);
                Interruption::Redirect { status: *status, location: target }
            }
            Disruption::Proxy(diversion) => {
                let target = self.diverted_target(&diversion.target);
                Interruption::Proxy { origin: Arc::clone(&diversion.origin), target }
            }
        };
        self.run.rule_ended = true;
        self.journal.interruption = Some(interruption);
        self.journal.interrupted_by = Some((index, self.run.phase));
    }

    /// A rule holds the transaction up once, however many values it matches.
    fn hold_up(&mut self, index: RuleIndex) {
        let Some(template) =
            self.plan.rule(index).pause.as_ref().filter(|_| self.journal.paused_by != Some(index))
        else {
            return;
        };
        self.journal.paused_by = Some(index);
        let mut text = Vec::new();
        self.expand(template, &mut text);
        self.journal.pause_ms =
            self.journal.pause_ms.saturating_add(u64::try_from(to_int(&text)).unwrap_or(0));
    }

    /// The request target for the other server: as Apache makes it of a `proxy:` file name.
    fn diverted_target(&mut self, template: &Template) -> Vec<u8> {
        let mut written = Vec::new();
        self.expand(template, &mut written);
        let mut target = Vec::with_capacity(written.len() + 16);
        if written.first() != Some(&b'/') {
            target.push(b'/');
        }
        for byte in written {
            match byte {
                // Characters allowed in a request line; a macro can bring anything.
                0x21..=0x7e if byte != b'#' => target.push(byte),
                _ => target.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            }
        }
        let query = self
            .message
            .store
            .scalar(portcullis_types::Variable::QueryString)
            .map(|id| self.message.store.data(id));
        if let Some(query) = query.filter(|_| !target.contains(&b'?')) {
            target.push(b'?');
            target.extend_from_slice(self.message.store.text(query));
        }
        target
    }
}

impl Match {
    /// True for the action of `rule` that ends a transaction.
    pub(crate) fn is_disruptive(disruption: &Disruption) -> bool {
        !matches!(disruption, Disruption::Pass | Disruption::Allow(_))
    }
}

impl Plan {
    /// The rules that send requests to a server of their own, and where.
    pub fn diversions(&self) -> impl Iterator<Item = (&Rule, &Arc<Origin>)> {
        self.rules.iter().filter_map(|rule| {
            if let Disruption::Proxy(diversion) = &rule.disruption {
                Some((rule, &diversion.origin))
            } else {
                None
            }
        })
    }
}
