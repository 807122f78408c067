use std::path::Path;
use std::sync::Arc;

use portcullis_advise::{Case, Policies};
use portcullis_config::{Engine, Mode, Policy, PolicyFlags};
use portcullis_event::{DetectionMode, Redactor};
use portcullis_inspect::{self as inspect, Inspector, Semantic, SemanticPolicy};
use portcullis_revisions::Exclusion;
use portcullis_semantic::Detectors;
use portcullis_store::Store;
use portcullis_types::{Class, Place, Variable};

/// A policy, and how others are made of it.
pub struct Bench {
    policy: Policy,
    detectors: Arc<Detectors>,
}

impl Bench {
    /// Of a mode, with these directives.
    pub fn new(mode: Mode, directives: &str) -> Bench {
        let flags = PolicyFlags {
            mode: Some("semantic".to_owned()),
            level: None,
            setup: Vec::new(),
            crs: None,
            paranoia: None,
            include: Vec::new(),
            detect_only: false,
        };
        let mut policy = flags.policy().unwrap().unwrap();
        policy.mode = mode;
        policy.directives = Some(directives.to_owned()).filter(|text| !text.is_empty());
        Bench { policy, detectors: Arc::new(Detectors::new()) }
    }

    /// The same, which only reports.
    pub fn observing(mut self) -> Bench {
        self.policy.engine = Some(Engine::DetectionOnly);
        self
    }

    /// Of a mode, with a CRS.
    pub fn with_crs(mode: Mode, folder: &Path, paranoia: u8) -> Bench {
        let mut bench = Bench::new(mode, "");
        bench.policy.crs = Some(folder.to_owned());
        bench.policy.paranoia = Some(paranoia);
        bench
    }

    pub fn inspector(&self) -> Arc<Inspector> {
        self.with(&[]).unwrap()
    }
}

impl Policies for Bench {
    fn with(&self, exclusions: &[Exclusion]) -> Result<Arc<Inspector>, String> {
        let policy = self.policy.clone();
        let (mut semantic, mut rules) = (SemanticPolicy::default(), Vec::new());
        for exclusion in exclusions {
            match exclusion {
                Exclusion::Semantic(term) => {
                    let location = term.location.as_deref().unwrap_or_default();
                    let (place, name) = location.split_once(':').unwrap_or((location, ""));
                    semantic.exclusions.push(inspect::Exclusion {
                        class: term.class.as_deref().and_then(Class::from_name),
                        kind: term.kind.clone(),
                        place: Place::from_name(place),
                        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
                        path: term.path.clone(),
                        until: None,
                        trial: false,
                    });
                }
                Exclusion::Rule(term) => {
                    let target = term.target.as_deref().and_then(|target| target.split_once(':'));
                    rules.push(inspect::RuleExclusion {
                        rules: vec![term.rule_id],
                        variable: target.and_then(|(variable, _)| Variable::from_name(variable)),
                        name: target.map(|(_, name)| name.to_owned()),
                        path: term.path.clone(),
                        until: None,
                        trial: false,
                        of_profile: false,
                    });
                }
            }
        }
        let plan = portcullis_load::load(&policy).map_err(|error| error.to_string())?.plan;
        let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Store::default()));
        let inspector = inspector.with_rule_exclusions(rules);
        let mode = match policy.mode {
            Mode::Crs => return Ok(Arc::new(inspector)),
            Mode::Semantic => DetectionMode::Semantic,
            Mode::Both => DetectionMode::Both,
        };
        let semantic = Semantic {
            detectors: Arc::clone(&self.detectors),
            level: policy.level,
            policy: Arc::new(semantic),
            response_bodies: true,
            response_wait: policy.semantic.response_wait,
        };
        Ok(Arc::new(inspector.with_semantic(mode, semantic)))
    }
}

pub fn case(request: &str) -> Case<'_> {
    Case {
        id: "r1",
        request: request.as_bytes(),
        client: "192.0.2.1:50000".parse().unwrap(),
        epoch_millis: 1_767_225_600_000,
    }
}
