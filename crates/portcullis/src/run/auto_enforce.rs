//! The end of trials without a person: exclusions with `auto_enforce` count once their conditions hold.

use std::sync::Arc;
use std::time::Duration;

use portcullis_config::{AutoEnforce, Config, Terms};
use portcullis_metrics::{ExclusionTrial, Registry, TrialCount};
use portcullis_revisions::{Author, Change, Edit, Revisions};

/// Between two looks at the trials.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The author of the revisions.
const AUTHOR: &str = "auto_enforce";

/// True if an exclusion is to end its trial by itself.
pub fn is_asked_for(config: &Config) -> bool {
    let semantic = config.policies.iter().flat_map(|policy| &policy.semantic.exclude).map(|each| &each.terms);
    let rules = config.policies.iter().flat_map(|policy| &policy.rule_exclude).map(|each| &each.terms);
    semantic.chain(rules).any(|terms| terms.auto_enforce.is_some())
}

/// Looks at the trials of the document for ever; on a runtime that may block.
pub async fn watch(revisions: Arc<Revisions>, registry: Arc<Registry>, now_ms: fn() -> u64) {
    let mut told: Vec<String> = Vec::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (revisions, registry) = (Arc::clone(&revisions), Arc::clone(&registry));
        let look = move || look(&revisions, &registry, now_ms());
        let Ok(result) = tokio::task::spawn_blocking(look).await else { return };
        if let Err(error) = result {
            // The same complaint once: a document that cannot be changed stays so.
            if !told.contains(&error) {
                eprintln!("portcullis: auto_enforce: {error}");
                told.truncate(9);
                told.insert(0, error);
            }
        }
    }
}

/// Enforces one exclusion whose conditions hold, if there is one.
fn look(revisions: &Revisions, registry: &Registry, now_ms: u64) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let current = revisions.current(now_ms).map_err(|error| failed(&error))?;
    // Counts are those of the settings that serve.
    if !current.is_live || !current.text.as_str().contains("auto_enforce") {
        return Ok(());
    }
    let document = revisions.document();
    let config = Config::parse(current.text.as_str(), document.format(), &document.name());
    let config = config.map_err(|error| failed(&error))?;
    let Some((id, seen)) = ready(&config, registry, now_ms / 1000) else { return Ok(()) };
    let reason = format!("the exclusion {id} was on trial for {seen} requests, and none of them was lost");
    let author = Author { name: AUTHOR.to_owned(), reason: reason.clone() };
    let change = Change::Edit(Edit::EnforceExclusion(id));
    let applied = revisions.apply(&change, current.text.etag(), &author, now_ms);
    applied.map_err(|error| failed(&error))?;
    eprintln!("portcullis: auto_enforce: {reason}; it counts from now on");
    Ok(())
}

/// The first exclusion whose conditions hold: its id, and the requests that had its field.
fn ready(config: &Config, registry: &Registry, now: u64) -> Option<(String, u64)> {
    let routes = config.sites.iter().flat_map(|site| site.routes.iter().map(move |route| (site, route)));
    let all = routes.filter_map(|(site, route)| {
        let policy = &config.policies[route.policy?];
        let (semantic, rules) = policy.exclusion_ids(&site.name, route.semantic_of.as_deref());
        let semantic = semantic.into_iter().zip(policy.semantic.exclude.iter().map(|each| &each.terms));
        let rules = rules.into_iter().zip(policy.rule_exclude.iter().map(|each| &each.terms));
        Some(semantic.chain(rules).map(move |(id, terms)| (&site.name, id, terms)))
    });
    all.flatten().find_map(|(site, id, terms): (&String, String, &Terms)| {
        let auto = terms.auto_enforce.filter(|_| terms.trial)?;
        let trial = ExclusionTrial::of(registry, site, &id);
        holds(&trial, auto, now).then(|| (id, trial.count(TrialCount::Seen)))
    })
}

/// What was not seen to its end may have been an attack, too.
fn holds(trial: &ExclusionTrial, auto: AutoEnforce, now: u64) -> bool {
    let is_over = |since: u64| now.saturating_sub(since) >= auto.after.as_secs();
    trial.since().is_some_and(is_over)
        && trial.count(TrialCount::Seen) >= auto.requests
        && trial.count(TrialCount::Lost) + trial.count(TrialCount::Unknown) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_conditions_have_to_hold() {
        let registry = Registry::new();
        let trial = ExclusionTrial::of(&registry, "shop", "0123");
        let auto = AutoEnforce { after: Duration::from_secs(60), requests: 2 };
        assert!(!holds(&trial, auto, 1_000_000), "it is not loaded");
        trial.begin(1000);
        trial.begin(2000);
        assert!(!holds(&trial, auto, 1060), "no traffic");
        trial.inc(TrialCount::Seen);
        trial.inc(TrialCount::Seen);
        trial.inc(TrialCount::Passes);
        trial.inc(TrialCount::Stopped);
        assert!(!holds(&trial, auto, 1059) && holds(&trial, auto, 1060));
        trial.inc(TrialCount::Unknown);
        assert!(!holds(&trial, auto, 1060), "a request that nobody saw as a whole");
        let other = ExclusionTrial::of(&registry, "shop", "4567");
        other.begin(1000);
        [TrialCount::Seen, TrialCount::Seen, TrialCount::Lost].into_iter().for_each(|count| other.inc(count));
        assert!(!holds(&other, auto, 2000), "an attack would have been lost");
    }

    /// An exclusion that was enforced and is on trial again, because it has proven bad, has to prove itself
    /// anew; and what an earlier trial lost does not stop a later one for ever.
    #[test]
    fn each_trial_is_judged_by_its_own_counts() {
        let registry = Registry::new();
        let trial = ExclusionTrial::of(&registry, "shop", "0123");
        let auto = AutoEnforce { after: Duration::from_secs(60), requests: 2 };
        let count = |counts: &[TrialCount]| counts.iter().for_each(|count| trial.inc(*count));
        ExclusionTrial::turn(None, [&trial], 1000);
        count(&[TrialCount::Seen, TrialCount::Seen]);
        assert!(holds(&trial, auto, 1060));
        ExclusionTrial::turn([&trial], None, 1070);
        assert!(!holds(&trial, auto, 1080), "it counts");
        ExclusionTrial::turn(None, [&trial], 2000);
        assert!(!holds(&trial, auto, 2005) && !holds(&trial, auto, 3000), "nothing was seen since");
        count(&[TrialCount::Seen, TrialCount::Seen, TrialCount::Unknown]);
        assert!(!holds(&trial, auto, 3000), "a request that nobody saw as a whole");
        ExclusionTrial::turn([&trial], None, 3100);
        ExclusionTrial::turn(None, [&trial], 3200);
        count(&[TrialCount::Seen, TrialCount::Seen]);
        assert!(!holds(&trial, auto, 3259) && holds(&trial, auto, 3260));
    }
}
