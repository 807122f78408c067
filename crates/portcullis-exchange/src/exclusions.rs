//! The exclusions of a route: their uses and trials are counted, and events name those on trial.

use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_config::{Config, Policy};
use portcullis_event::Event;
use portcullis_inspect::{Excluded, Report, TrialResult};
use portcullis_metrics::{ExclusionTrial, ExclusionUse, Registry, TrialCount};

/// An exclusion of a policy, at one site.
#[derive(Clone, Debug)]
struct One {
    id: String,
    used: ExclusionUse,
    /// None: it is not on trial.
    trial: Option<ExclusionTrial>,
}

/// The exclusions of a policy, by their numbers in it.
#[derive(Clone, Debug)]
pub struct Exclusions {
    semantic: Box<[One]>,
    rules: Box<[One]>,
}

impl Exclusions {
    /// Those of `policy` at a site; `semantic_of` is the route whose `semantic` it has, if that is not the
    /// site's.
    pub fn new(
        registry: &Registry,
        policy: &Policy,
        (site, semantic_of): (&str, Option<&str>),
    ) -> Exclusions {
        let (semantic, rules) = policy.exclusion_ids(site, semantic_of);
        let one = |(id, is_trial): (String, bool)| {
            let used = ExclusionUse::of(registry, site, &id);
            let trial = is_trial.then(|| ExclusionTrial::of(registry, site, &id));
            One { id, used, trial }
        };
        let on_trial = policy.semantic.exclude.iter().map(|each| each.terms.trial);
        let rules_on_trial = policy.rule_exclude.iter().map(|each| each.terms.trial);
        Exclusions {
            semantic: semantic.into_iter().zip(on_trial).map(one).collect(),
            rules: rules.into_iter().zip(rules_on_trial).map(one).collect(),
        }
    }

    /// Those of a route of `config`, whose policy has the index `policy`.
    pub fn of_route(
        registry: &Registry,
        config: &Config,
        policy: usize,
        (site, route): (&str, &str),
    ) -> Self {
        let of_site = config.sites.iter().filter(|known| known.name == site).flat_map(|site| &site.routes);
        let mut of_name = of_site.filter(|known| known.name == route);
        let semantic_of = of_name.find_map(|route| route.semantic_of.as_deref());
        Exclusions::new(registry, &config.policies[policy], (site, semantic_of))
    }

    /// Settings with `serving` take the place of those with `before`: trials that are new begin, those that
    /// only the settings before had end. Not before they serve: a reload that is refused changes no trial.
    pub fn turn_trials<'e>(
        before: impl IntoIterator<Item = &'e Exclusions>,
        serving: impl IntoIterator<Item = &'e Exclusions>,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let trials = Exclusions::trials;
        ExclusionTrial::turn(before.into_iter().flat_map(trials), serving.into_iter().flat_map(trials), now);
    }

    fn trials(&self) -> impl Iterator<Item = &ExclusionTrial> {
        self.semantic.iter().chain(&self.rules).filter_map(|each| each.trial.as_ref())
    }

    /// Counts what a report says of them, and names in its event those with which the request would have
    /// passed. The time is in seconds since 1970.
    pub fn note(&self, report: &mut Report, now: u64) {
        self.of(&report.excluded).for_each(|each| each.used.hit(now));
        let Some(trial) = &report.trial else { return };
        let trials = |numbers| self.of(numbers).filter_map(|each| each.trial.as_ref());
        trials(&trial.seen).for_each(|each| each.inc(TrialCount::Seen));
        let Some((touched, result)) = &trial.tried else { return };
        let count = match result {
            TrialResult::Passes => TrialCount::Passes,
            TrialResult::Lost => TrialCount::Lost,
            TrialResult::Stopped => TrialCount::Stopped,
            TrialResult::Unknown => TrialCount::Unknown,
        };
        trials(touched).for_each(|each| each.inc(count));
        if let (Some(event), TrialResult::Passes | TrialResult::Lost) = (&mut report.event, result) {
            let event: &mut Event = event;
            event.trials = self.of(touched).map(|each| each.id.clone()).collect();
        }
    }

    fn of<'n>(&'n self, numbers: &'n Excluded) -> impl Iterator<Item = &'n One> {
        let find = |list: &'n [One], number: &u32| list.get(*number as usize);
        let semantic = numbers.semantic.iter().filter_map(move |number| find(&self.semantic, number));
        semantic.chain(numbers.rules.iter().filter_map(move |number| find(&self.rules, number)))
    }
}
