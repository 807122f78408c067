//! The variables that rules set: `TX`, the persistent collections, `ENV`, the last match, and the switches of
//! `ctl`.

use std::sync::Arc;

use portcullis_types::{Phase, Span};

use crate::RuleSet;
use crate::collections::Collections;
use crate::execution::Matched;
use crate::open::OpenCollection;
use crate::plan::AllowScope;
use crate::settings::{RuleEngine, Settings};
use crate::tx::TxStore;

/// The variables that rules change.
#[derive(Debug)]
pub(crate) struct Vars {
    pub(crate) collections: Arc<dyn Collections>,
    pub(crate) tx: TxStore,
    /// `ENV`: what `setenv` set.
    pub(crate) env: Vec<(Span, Span)>,
    /// `USERID`: the key of `setuid`.
    pub(crate) user_id: Option<Span>,
    /// `SESSIONID`: the key of `setsid`.
    pub(crate) session_id: Option<Span>,
    pub(crate) open_collections: Vec<OpenCollection>,
    pub(crate) highest_severity: u8,
    pub(crate) matched: Matched,
    pub(crate) ctl: Controls,
}

/// The state that `ctl` and `allow` can change.
#[derive(Debug)]
pub(crate) struct Controls {
    pub(crate) rule_engine: RuleEngine,
    pub(crate) request_body_access: bool,
    pub(crate) request_body_limit: u64,
    pub(crate) response_body_access: bool,
    pub(crate) response_body_limit: u64,
    /// Rules that `ctl:ruleRemove...` took out.
    pub(crate) removed_rules: RuleSet,
    /// The targets that `ctl:ruleRemoveTarget...` removed from rules: in
    /// [`Plan::ctl_targets`](crate::Plan::ctl_targets).
    pub(crate) removed_targets: Vec<u32>,
    pub(crate) allow: Option<(AllowScope, Phase)>,
}

impl Vars {
    /// `HIGHEST_SEVERITY` when nothing matched.
    const NO_SEVERITY: u8 = 255;

    pub(crate) fn new(settings: &Settings, collections: Arc<dyn Collections>, tx: TxStore) -> Vars {
        Vars {
            collections,
            tx,
            env: Vec::new(),
            user_id: None,
            session_id: None,
            open_collections: Vec::new(),
            highest_severity: Self::NO_SEVERITY,
            matched: Matched::default(),
            ctl: Controls::new(settings),
        }
    }
}

impl Controls {
    fn new(settings: &Settings) -> Controls {
        Controls {
            rule_engine: settings.rule_engine,
            request_body_access: settings.request_body_access,
            request_body_limit: settings.request_body_limit,
            response_body_access: settings.response_body_access,
            response_body_limit: settings.response_body_limit,
            removed_rules: RuleSet::new(),
            removed_targets: Vec::new(),
            allow: None,
        }
    }

    /// True if an `allow` lets the rest of `phase` through.
    pub(crate) fn is_allowed(&self, phase: Phase) -> bool {
        match self.allow {
            None => false,
            Some((AllowScope::Transaction, _)) => phase != Phase::Logging,
            Some((AllowScope::Phase, at)) => phase == at,
            Some((AllowScope::Request, _)) => phase <= Phase::RequestBody,
        }
    }
}
