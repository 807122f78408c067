//! What a policy has beside its rules: the semantic detector, weights, exclusions.

use std::sync::Arc;

use portcullis_config::{Config, Mode, Policy, Terms};
use portcullis_event::DetectionMode;
use portcullis_inspect::{
    ClassAction, Exclusion, Inspector, RuleExclusion, Semantic, SemanticPolicy, Weights,
};
use portcullis_semantic::Detectors;

/// Kinds of findings that exclusions name and no detector has: the kind, and what is wrong.
pub fn check_kinds(config: &Config) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let named = config.policies.iter().flat_map(|policy| &policy.semantic.exclude);
    let mut named: Vec<&str> = named.filter_map(|exclusion| exclusion.kind.as_deref()).collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return wrong;
    }
    let detectors = Detectors::new();
    let known: Vec<&str> = detectors.kinds().map(|(_, _, kind)| kind.id).collect();
    for kind in named.into_iter().filter(|kind| !known.contains(kind)) {
        let class = kind.split('.').next().unwrap_or_default();
        let others = known.iter().filter(|known| known.split('.').next() == Some(class));
        let others: Vec<&str> = others.copied().collect();
        let message =
            format!("there is no kind of finding `{kind}`; those of its class are {}", others.join(", "));
        wrong.push((kind.to_owned(), message));
    }
    wrong
}

/// The detectors of the process, built for the first policy that asks for them.
#[derive(Debug, Default)]
pub struct SharedDetectors(Option<Arc<Detectors>>);

impl SharedDetectors {
    /// `inspector` with the semantic detector, weights for the rules of the CRS and exclusions, as far as
    /// `policy` asks for them.
    pub fn attach(&mut self, inspector: Inspector, policy: &Policy) -> Inspector {
        let inspector = match policy.is_weighted() {
            // The table is part of the program, and tested to be one; without it all rules count in full.
            true => inspector.with_weights(&Weights::shipped().unwrap_or_default()),
            false => inspector,
        };
        let inspector = inspector.with_rule_exclusions(policy.rule_exclude.iter().map(of_rules).collect());
        let body = &policy.request_body;
        let inspector = inspector.with_codings(body.decoded_ratio.map(u64::from), &body.uninspected_codings);
        let inspector = match policy.request_body.upload_limit_bytes {
            Some(bytes) => inspector.with_upload_limit(bytes),
            None => inspector,
        };
        let mode = match policy.mode {
            Mode::Crs => return inspector.with_trials(),
            Mode::Semantic => DetectionMode::Semantic,
            Mode::Both => DetectionMode::Both,
        };
        let detectors = Arc::clone(self.0.get_or_insert_with(|| Arc::new(Detectors::new())));
        let inspector = inspector.with_semantic(
            mode,
            Semantic {
                detectors,
                level: policy.level,
                policy: Arc::new(class_policy(policy)),
                response_bodies: policy.response_body.inspect != Some(false),
                response_wait: policy.semantic.response_wait,
            },
        );
        inspector.with_trials()
    }
}

fn of_rules(raw: &portcullis_config::RuleExclusion) -> RuleExclusion {
    let portcullis_config::RuleExclusion { rules, target, terms, target_text: _ } = raw.clone();
    let (variable, name) = target.map_or((None, None), |target| (Some(target.variable), target.name));
    let Terms { path, until, trial, .. } = terms;
    RuleExclusion { rules, variable, name, path, until, trial }
}

fn class_policy(policy: &Policy) -> SemanticPolicy {
    let action = |action| match action {
        portcullis_config::ClassAction::Block => ClassAction::Block,
        portcullis_config::ClassAction::Log => ClassAction::Log,
        portcullis_config::ClassAction::Off => ClassAction::Off,
    };
    let exclusion = |raw: &portcullis_config::Exclusion| {
        let portcullis_config::Exclusion { class, kind, place, name, terms, location: _, profile: _ } =
            raw.clone();
        let Terms { path, until, trial, .. } = terms;
        Exclusion { class, kind, place, name, path, until, trial }
    };
    SemanticPolicy {
        classes: policy.semantic.classes.iter().map(|(class, given)| (*class, action(*given))).collect(),
        hosts: policy.semantic.hosts.clone(),
        exclusions: policy.semantic.exclude.iter().map(exclusion).collect(),
    }
}
