//! `portcullis evaluate PATH...`: labelled requests and responses through a policy, in process: what is
//! caught, what is flagged wrongly, why.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use portcullis_config::{Class, Policy};
use portcullis_evaluate::{Content, Engine, Outcome, RuleHit};
use portcullis_event::{Action, FindingOutcome, Redactor};
use portcullis_inspect::{Inspector, PolicyNames, ScoredValue, Scratch, Step, fingerprint};
use portcullis_store::Store;

use crate::learned;
use crate::outcome::{Failure, print};
use crate::policy_args::PolicyArgs;
use portcullis_load::SharedDetectors;

/// Requests come from there, at the beginning of 2026.
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000);
const EPOCH_MILLIS: u64 = 1_767_225_600_000;

/// Arguments of `portcullis evaluate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    evaluation: portcullis_evaluate::Args,
    #[command(flatten)]
    policy: PolicyArgs,
    /// What a site has learned of its fields, as `portcullis learned export` writes it: values unlike them
    /// are refused as with `unusual = "block"`
    #[arg(long, value_name = "FILE")]
    learned: Option<PathBuf>,
}

/// Prints the report. Exit code 1 if the rules do not load or a file cannot be read.
pub fn run(args: &Args) -> ExitCode {
    match evaluate(args) {
        Ok(text) => print(&text),
        Err(failure) => failure.exit(),
    }
}

fn evaluate(args: &Args) -> Result<String, Failure> {
    let policy = args.policy.policy()?;
    let plan = portcullis_load::load(&policy).map_err(Failure::failed)?.plan;
    let rules = plan.rules.iter().map(|rule| (rule.id.0, fingerprint(&plan, rule))).collect();
    let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Store::default()));
    let inspector = SharedDetectors::default().attach(inspector, &policy).map_err(Failure::failed)?;
    let inspector = match &args.learned {
        Some(file) => inspector.with_fields(learned::fields_of(file)?),
        None => inspector,
    };
    let inspector = Arc::new(inspector);
    let names = PolicyNames { site: "evaluate".into(), route: "/".into(), generation: 0 };
    let mut engine = Inspected { rules, inspector, names, policy, scratch: Some(Scratch::default()) };
    portcullis_evaluate::run(&args.evaluation, &mut engine).map_err(Failure::failed)
}

/// The inspection of a policy.
struct Inspected {
    rules: Vec<(u32, u64)>,
    inspector: Arc<Inspector>,
    names: PolicyNames,
    policy: Policy,
    /// Of the rules, by id.
    scratch: Option<Scratch>,
}

impl Engine for Inspected {
    fn describe(&self) -> String {
        let level = match self.policy.mode.has_semantic() {
            true => format!(", level {}", self.policy.level.name()),
            false => String::new(),
        };
        format!("mode {}{level}", self.inspector.mode())
    }

    fn rules(&self) -> Vec<(u32, u64)> {
        self.rules.clone()
    }

    fn run(&mut self, content: &Content, class: Option<Class>) -> Outcome {
        let bytes = content.to_wire();
        let response = content.response_to_wire();
        let scratch = self.scratch.take().unwrap_or_default();
        let connection = portcullis_replay::connection(CLIENT, EPOCH_MILLIS, 0);
        let started = Instant::now();
        let (head, refusal) = portcullis_replay::parse(&bytes);
        let inspection = self.inspector.begin(&self.names, connection, scratch);
        let mut run = portcullis_replay::Run::new(inspection, &[]);
        let step = run.phases(&head, refusal, bytes.get(head.received_len()..).unwrap_or_default());
        let mut is_unreadable_response = false;
        if let Some(response) = response.as_deref().filter(|_| step == Step::Continue) {
            match portcullis_replay::parse_response(response) {
                Ok(answer) => {
                    let body = response.get(answer.received_len()..).unwrap_or_default();
                    run.response_phases(head.method(), &answer, body);
                }
                Err(_) => is_unreadable_response = true,
            }
        }
        let duration = started.elapsed();
        let values = run.inspection.semantic_values().unwrap_or_default();
        let votes = run.inspection.votes();
        // The proxy refuses it then, unless `failure.pattern_limit` is open.
        let is_given_up = run.inspection.given_up().is_some();
        let report = run.inspection.finish(&Default::default());
        self.scratch = Some(report.scratch);
        let verdict = report.event.as_ref().map(|event| &event.verdict);
        let stopped = matches!(report.action, Action::Deny | Action::Drop | Action::Redirect);
        let is_of = |value: &&ScoredValue| class.is_none_or(|wanted| value.score.class == wanted);
        let worst = values.iter().find(is_of);
        let passes = worst.is_some_and(|value| value.score.outcome != FindingOutcome::Below);
        // Our own rules refuse bodies that cannot be read; that is no finding of an attack.
        let unreadable = stopped && verdict.is_some_and(|verdict| verdict.status == Some(400));
        // Most of what responses tell is logged, not blocked.
        let blocked = match response {
            None if class.is_none() => stopped && !unreadable,
            _ => passes || response.is_some() && stopped,
        };
        let by_rule = verdict.and_then(|verdict| verdict.rule_id).is_some();
        let matches = report.event.iter().flat_map(|event| &event.matches);
        let matches: Vec<(String, f32)> =
            matches.map(|found| (found.rule.rule_id.to_string(), found.points as f32)).collect();
        let rules = votes.into_iter().map(|vote| RuleHit {
            id: vote.rule.0,
            fingerprint: vote.fingerprint,
            points: vote.points,
            field: vote.field.name(),
            is_excused: vote.is_excused,
            spot: vote.spot.to_string(),
        });
        let rules = rules.collect();
        let at = |value: &ScoredValue| format!("{}:{}", value.score.place.name(), value.score.name);
        let scores = values.iter().map(|value| {
            let added = value.terms.iter().find(|(name, _)| name == ScoredValue::ADDED);
            let own = value.score.points - added.map_or(0.0, |(_, points)| *points);
            (value.score.class, at(value), own - value.score.threshold)
        });
        let scores = scores.collect();
        Outcome {
            blocked,
            refused: refusal
                .map(|refusal| refusal.name())
                .or(unreadable.then_some("unreadable body"))
                .or(is_given_up.then_some("pattern limit"))
                .or(is_unreadable_response.then_some("unreadable response")),
            class: worst.filter(|_| !by_rule).map(|value| value.score.class),
            duration,
            points: worst.map_or(0.0, |value| value.score.points),
            at: worst.map(at).unwrap_or_default(),
            terms: worst
                .map(|value| value.terms.clone())
                .unwrap_or_default()
                .into_iter()
                .chain(matches)
                .collect(),
            rows: values.iter().map(row).collect(),
            scores,
            rules,
        }
    }
}

fn row(value: &ScoredValue) -> (Class, Vec<String>) {
    let names = value.terms.iter().map(|(name, _)| name.clone());
    (value.score.class, names.filter(|name| name != "bias").collect())
}
