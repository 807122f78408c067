//! The other parts of a policy than its rules: the semantic detector, weights, exclusions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use portcullis_config::{Config, DeclaredApi, Mode, Policy, Terms};
use portcullis_declared::{Api, Settings};
use portcullis_event::DetectionMode;
use portcullis_inspect::{
    ClassAction, DeviationActions, Exclusion, Inspector, RuleExclusion, Semantic, SemanticPolicy, SiteApi,
    Weights,
};
use portcullis_semantic::{Detectors, detectors};

use crate::LoadError;
use crate::declared::{self, LoadedApi};

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

/// Shared parts of policies other than rules: the detectors, and the descriptions of APIs. Each is built for
/// the first policy that asks for it.
#[derive(Debug, Default)]
pub struct SharedDetectors {
    all: Option<Arc<Detectors>>,
    /// Only that for deviations from declared APIs, where the semantic detector does not run.
    declared: Option<Arc<Detectors>>,
    /// By file and settings, with its content.
    apis: BTreeMap<(PathBuf, Settings), (Vec<u8>, LoadedApi)>,
    /// Their problems that have not been reported.
    warnings: Vec<String>,
}

impl SharedDetectors {
    /// `inspector` with the semantic detector, weights for the rules of the CRS, exclusions and the API that
    /// is declared, as far as `policy` asks for them. Fails if the description of the API has a mistake.
    pub fn attach(&mut self, inspector: Inspector, policy: &Policy) -> Result<Inspector, LoadError> {
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
        let inspector = match &policy.api {
            Some(declared) => {
                let api = self.api(declared)?;
                let api = SiteApi::new(api, deviation_actions(declared));
                // Where the semantic detector does not run, nobody judges fields.
                inspector.with_api(if policy.mode == Mode::Crs { api.without_fields() } else { api })
            }
            None => inspector,
        };
        let mode = match policy.mode {
            Mode::Crs if policy.api.is_none() => return Ok(inspector.with_trials()),
            Mode::Crs => DetectionMode::Crs,
            Mode::Semantic => DetectionMode::Semantic,
            Mode::Both => DetectionMode::Both,
        };
        let detectors = match policy.mode {
            Mode::Crs => self.declared.get_or_insert_with(|| {
                // Its table of weights is part of the program, and tested to be one.
                let list: Vec<Box<dyn portcullis_semantic::Detector>> = vec![Box::new(detectors::api::Api)];
                Arc::new(Detectors::of(list).unwrap_or_default())
            }),
            Mode::Semantic | Mode::Both => self.all.get_or_insert_with(|| Arc::new(Detectors::new())),
        };
        let detectors = Arc::clone(detectors);
        let inspector = inspector.with_semantic(
            mode,
            Semantic {
                detectors,
                level: policy.level,
                policy: Arc::new(class_policy(policy)),
                response_bodies: policy.mode != Mode::Crs && policy.response_body.inspect != Some(false),
                response_wait: policy.semantic.response_wait,
            },
        );
        Ok(inspector.with_trials())
    }

    /// Declarations without enforcement in the descriptions that were compiled since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn api(&mut self, settings: &DeclaredApi) -> Result<Arc<Api>, LoadError> {
        let content = declared::read(settings)?;
        let key = (settings.schema.clone(), declared::settings(settings));
        if let Some((_, known)) = self.apis.get(&key).filter(|(known, _)| *known == content) {
            return Ok(Arc::clone(&known.api));
        }
        let loaded = declared::compile(settings, &content)?;
        self.warnings.extend(loaded.warnings.iter().cloned());
        let api = Arc::clone(&loaded.api);
        self.apis.insert(key, (content, loaded));
        Ok(api)
    }
}

fn deviation_actions(settings: &DeclaredApi) -> DeviationActions {
    DeviationActions {
        unknown_path: action(settings.unknown_path),
        unknown_parameter: action(settings.unknown_parameter),
        parameters: action(settings.parameters),
        body: action(settings.body),
        security: action(settings.security),
        responses: action(settings.responses),
    }
}

fn action(action: portcullis_config::ClassAction) -> ClassAction {
    match action {
        portcullis_config::ClassAction::Block => ClassAction::Block,
        portcullis_config::ClassAction::Log => ClassAction::Log,
        portcullis_config::ClassAction::Off => ClassAction::Off,
    }
}

fn of_rules(raw: &portcullis_config::RuleExclusion) -> RuleExclusion {
    let portcullis_config::RuleExclusion { rules, target, terms, target_text: _, profile } = raw.clone();
    let (variable, name) = target.map_or((None, None), |target| (Some(target.variable), target.name));
    let Terms { path, until, trial, .. } = terms;
    RuleExclusion { rules, variable, name, path, until, trial, of_profile: profile.is_some() }
}

fn class_policy(policy: &Policy) -> SemanticPolicy {
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
