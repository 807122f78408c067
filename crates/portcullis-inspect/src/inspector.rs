use std::sync::Arc;

use portcullis_engine::{Collections, Plan, RuleEngine};
use portcullis_event::{DetectionMode, EngineMode, Redactor, RuleInfo};
use portcullis_types::{Level, RuleId};

use crate::audit::{AuditNames, AuditSink};
use crate::coded::CodingPolicy;
use crate::declared::SiteApi;
use crate::exchange::Connection;
use crate::fields::SiteFields;
use crate::inspection::Inspection;
use crate::rule_exclusions::{RuleExclusion, RuleExclusions};
use crate::semantic::{Buffers, Semantic};
use crate::weighing::{Weighing, Weights};

/// The names in events that identify the policy.
#[derive(Clone, Debug)]
pub struct PolicyNames {
    /// Site.
    pub site: Arc<str>,
    /// Route.
    pub route: Arc<str>,
    /// Number of the loaded configuration, from 1.
    pub generation: u64,
}

/// The memo that the inspections of one thread share; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    engine: portcullis_engine::Memo,
    semantic: portcullis_semantic::Memo,
}

/// Buffers of a finished inspection, for the next one of the same thread.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) engine: portcullis_engine::Scratch,
    /// Boxed, so that they go from inspection to inspection without being copied.
    pub(crate) semantic: Box<Buffers>,
    /// Of what an event may tell.
    pub(crate) seen: Vec<u8>,
    /// Of the body that an event may keep.
    pub(crate) kept: Vec<u8>,
}

impl Scratch {
    /// New buffers of a thread whose inspections remember values together.
    pub fn sharing(memo: &Memo) -> Scratch {
        Scratch {
            engine: portcullis_engine::Scratch::sharing(&memo.engine),
            semantic: Box::new(Buffers::sharing(&memo.semantic)),
            seen: Vec::new(),
            kept: Vec::new(),
        }
    }
}

/// A policy ready to inspect: a plan, and what events need beside it. Shared by all workers, never changed.
#[derive(Debug)]
pub struct Inspector {
    pub(crate) plan: Arc<Plan>,
    pub(crate) rules: Vec<Arc<RuleInfo>>,
    pub(crate) mode: DetectionMode,
    pub(crate) semantic: Option<Semantic>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) collections: Arc<dyn Collections>,
    pub(crate) audit: Option<AuditNames>,
    /// The anomaly score is weighted.
    pub(crate) weighing: Option<Arc<Weighing>>,
    /// Matches of rules that do not count.
    pub(crate) rule_exclusions: Option<Arc<RuleExclusions>>,
    /// The policy that its exclusions on trial would make.
    pub(crate) second: Option<Arc<Inspector>>,
    pub(crate) codings: Arc<CodingPolicy>,
    /// Bytes of a streamed upload; by default ten times what is held.
    pub(crate) upload_limit: Option<u64>,
    /// Learned fields of the site.
    pub(crate) fields: Option<SiteFields>,
    /// The API that the site declares.
    pub(crate) api: Option<SiteApi>,
    /// Receiver of finished exchanges, if the site's interfaces are discovered.
    pub(crate) discovery: Option<Arc<portcullis_discovery::Site>>,
}

/// Bytes that may come out of a request body in a content coding for each that goes in, unless told
/// otherwise.
pub const DECODED_RATIO_MAX: u64 = 20;

impl Inspector {
    /// An inspector that runs SecLang rules.
    pub fn new(plan: Arc<Plan>, redactor: Arc<Redactor>, collections: Arc<dyn Collections>) -> Inspector {
        let rules = plan.rules.iter().map(|rule| Arc::new(rule_info(&plan, rule))).collect();
        Inspector {
            plan,
            rules,
            mode: DetectionMode::Crs,
            semantic: None,
            redactor,
            collections,
            audit: None,
            weighing: None,
            rule_exclusions: None,
            second: None,
            codings: Arc::new(CodingPolicy { ratio_max: DECODED_RATIO_MAX, uninspected: Vec::new() }),
            upload_limit: None,
            fields: None,
            api: None,
            discovery: None,
        }
    }

    /// The same with the API that the site declares. Where the semantic detector does not run, one that only
    /// knows the class `api` must be there in its place.
    pub fn with_api(mut self, api: SiteApi) -> Inspector {
        self.api = Some(api);
        self
    }

    /// The same with what the site has learned of its fields. The semantic detector judges them, so that
    /// nothing comes of it where it does not run.
    pub fn with_fields(mut self, fields: SiteFields) -> Inspector {
        self.fields = Some(fields);
        self
    }

    /// The same, and finished exchanges are shown to `discovery`.
    pub fn with_discovery(mut self, discovery: Arc<portcullis_discovery::Site>) -> Inspector {
        self.discovery = Some(discovery);
        self
    }

    /// The same with other settings for content codings of request bodies: `ratio_max` bytes may come out for
    /// each that goes in, and bodies in a coding named in `uninspected` pass as they are.
    pub fn with_codings(mut self, ratio_max: Option<u64>, uninspected: &[String]) -> Inspector {
        let uninspected = uninspected.iter().map(|name| name.to_ascii_lowercase()).collect();
        let ratio_max = ratio_max.unwrap_or(DECODED_RATIO_MAX);
        self.codings = Arc::new(CodingPolicy { ratio_max, uninspected });
        self
    }

    /// The same with a limit for streamed uploads in place of ten times what is held of a body.
    pub fn with_upload_limit(mut self, bytes: u64) -> Inspector {
        self.upload_limit = Some(bytes);
        self
    }

    /// The same with the semantic detector beside the rules (`Both`) or, where the plan has only the
    /// product's own, in their place (`Semantic`); `mode` is what events say.
    pub fn with_semantic(mut self, mode: DetectionMode, semantic: Semantic) -> Inspector {
        (self.mode, self.semantic) = (mode, Some(semantic));
        self.weighing = self.weighing.map(Weighing::beside_semantic);
        self
    }

    /// The same with weights for the rules of the CRS: those that benign traffic triggers do not decide by
    /// their points alone.
    pub fn with_weights(mut self, weights: &Weights) -> Inspector {
        let weighing = Weighing::new(&self.plan, weights).map(Arc::new);
        self.weighing = match self.semantic {
            Some(_) => weighing.map(Weighing::beside_semantic),
            None => weighing,
        };
        self
    }

    /// The same with matches of rules that do not count.
    pub fn with_rule_exclusions(mut self, exclusions: Vec<RuleExclusion>) -> Inspector {
        let is_any = !exclusions.is_empty();
        self.rule_exclusions = is_any.then(|| Arc::new(RuleExclusions::new(&self.plan, exclusions)));
        self
    }

    /// The same, with audit records and debug lines going to `sink`. `shows_secrets`: records have the values
    /// of names that events redact.
    pub fn with_audit(mut self, sink: Arc<dyn AuditSink>, shows_secrets: bool) -> Inspector {
        self.audit = Some(AuditNames::new(&self.plan, sink, shows_secrets));
        self
    }

    /// The same policy for messages that are not served: with these collections in place of those of traffic,
    /// this redactor, and no audit records.
    pub fn aside(&self, redactor: Arc<Redactor>, collections: Arc<dyn Collections>) -> Inspector {
        Inspector {
            plan: Arc::clone(&self.plan),
            rules: self.rules.clone(),
            mode: self.mode,
            semantic: self.semantic.clone(),
            redactor,
            collections,
            audit: None,
            weighing: self.weighing.clone(),
            rule_exclusions: self.rule_exclusions.clone(),
            second: None,
            codings: Arc::clone(&self.codings),
            upload_limit: self.upload_limit,
            fields: self.fields.clone().map(|fields| SiteFields { learns: false, ..fields }),
            api: self.api.clone(),
            discovery: None,
        }
    }

    /// Begins an exchange. `scratch` may come from an earlier [`Report`](crate::Report) of the same thread.
    pub fn begin(
        self: &Arc<Self>,
        names: &PolicyNames,
        connection: Connection,
        scratch: Scratch,
    ) -> Box<Inspection> {
        Inspection::new(Arc::clone(self), names.clone(), connection, scratch)
    }

    /// True if audit records may be made of exchanges.
    pub fn keeps_records(&self) -> bool {
        self.audit.is_some()
    }

    /// The detection mode.
    pub fn mode(&self) -> DetectionMode {
        self.mode
    }

    /// The level of the semantic detector; none if it does not run.
    pub fn level(&self) -> Option<Level> {
        self.semantic.as_ref().map(|semantic| semantic.level)
    }

    /// The engine mode: whether verdicts are enforced, unless a rule says otherwise for a transaction.
    pub fn engine_mode(&self) -> EngineMode {
        engine_mode(self.plan.settings.rule_engine)
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// `SecServerSignature`: what the `Server` header of answers is to say; empty if there shall be none.
    pub fn server_signature(&self) -> Option<&[u8]> {
        self.plan.settings.server_signature.as_deref()
    }

    /// Ids of all rules that can log a match, in load order: for metrics that want to know them beforehand.
    pub fn rule_ids(&self) -> impl Iterator<Item = RuleId> + '_ {
        self.plan.rules.iter().filter(|rule| rule.log).map(|rule| rule.id)
    }
}

pub(crate) fn engine_mode(engine: RuleEngine) -> EngineMode {
    match engine {
        RuleEngine::On => EngineMode::Blocking,
        RuleEngine::DetectionOnly => EngineMode::DetectionOnly,
        RuleEngine::Off => EngineMode::Off,
    }
}

fn rule_info(plan: &Plan, rule: &portcullis_engine::Rule) -> RuleInfo {
    let links = plan.links_of(rule);
    let last = &links[links.len() - 1];
    let text = last.operator_text.trim_start_matches('@');
    let (operator, argument) = text.split_once(' ').unwrap_or((text, ""));
    let not = if last.negated { "!" } else { "" };
    let literal = |template: &portcullis_engine::Template| -> Option<Box<str>> {
        template.as_literal().map(|text| String::from_utf8_lossy(text).into())
    };
    RuleInfo {
        rule_id: rule.id,
        phase: rule.phase,
        severity: rule.metadata.severity,
        operator: format!("{not}{operator}").into(),
        argument: argument.into(),
        transformations: plan.chains.transformations(last.chain).iter().map(|t| t.name().into()).collect(),
        tags: rule.metadata.tags.iter().filter_map(literal).collect(),
        ver: rule.metadata.ver.clone(),
        rev: rule.metadata.rev.clone(),
        maturity: rule.metadata.maturity,
        accuracy: rule.metadata.accuracy,
        file: Arc::clone(plan.file(rule.metadata.place)),
        line: rule.metadata.place.line,
    }
}
