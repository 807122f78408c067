//! All that a start would find wrong with a document, and what it would take and is hardly meant.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_config::{Class, Config, Mistake, Policy, Survey, Terms, Width};
use portcullis_event::Timestamp;
use portcullis_load::{LoadError, Loaded, check_folders, check_kinds, check_limits, check_servers, load};
use portcullis_log::AuditConfig;

use crate::decision::decides;
use crate::run::{oidc, sinks, traces};
use crate::{event_database, writable};

/// The mistakes of a document.
pub struct Checked {
    /// Mistakes, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// Settings that are hardly meant.
    pub warnings: Vec<Mistake>,
    /// The number of sites.
    pub sites: usize,
    /// The rules of each policy.
    pub sets: Vec<Result<Loaded, LoadError>>,
}

/// Checks a document, the files that it names, and the rules of its policies.
pub fn document(survey: &Survey) -> Checked {
    let mut mistakes = survey.mistakes.clone();
    let mut warnings: Vec<Mistake> = Vec::new();
    let (mut sites, mut sets) = (0, Vec::new());
    if let Some(config) = &survey.config {
        let files = portcullis_proxy::check_files(config).into_iter();
        let files = files.chain(oidc::check(config)).chain(traces::check(config)).chain(sinks::check(config));
        let files = files.chain(event_database::check(config)).chain(writable::check(config));
        mistakes.extend(files.map(|mistake| survey.mistake(&mistake)));
        let kinds = check_kinds(config).into_iter();
        mistakes.extend(kinds.map(|(kind, message)| survey.mistake_at(&kind, &message)));
        let certificates = portcullis_proxy::check_certificates(config, now());
        warnings.extend(certificates.iter().map(|warning| survey.mistake(&format!("warning: {warning}"))));
        warnings.extend(over(config).iter().map(|warning| survey.mistake(&format!("warning: {warning}"))));
        let at = |(key, warning): (&str, String)| survey.mistake_at_key(key, &format!("warning: {warning}"));
        warnings.extend(config.placed_warnings().into_iter().map(at));
        let limits = config.limits_out_of_reach().into_iter();
        warnings
            .extend(limits.map(|(text, warning)| survey.mistake_at(&text, &format!("warning: {warning}"))));
        sites = config.sites.len();
        let policies = config.policies.iter().enumerate();
        sets = policies.map(|(index, policy)| rules(index, policy, config)).collect();
        let wide =
            config.policies.iter().zip(&sets).flat_map(|(policy, set)| wide(policy, set.as_ref().ok()));
        let wide: BTreeSet<String> = wide.collect();
        warnings.extend(wide.iter().map(|warning| survey.mistake(&format!("warning: {warning}"))));
        let loaded = config.policies.iter().zip(&sets);
        let loaded = loaded.filter_map(|(policy, set)| Some((policy, set.as_ref().ok()?)));
        let missing = loaded.flat_map(|(policy, loaded)| without_rule(policy, loaded));
        warnings.extend(missing.map(|warning| survey.mistake(&format!("warning: {warning}"))));
    }
    mistakes.sort_by_key(|mistake| mistake.place);
    Checked { mistakes, warnings, sites, sets }
}

/// Exclusions that have ended.
fn over(config: &Config) -> Vec<String> {
    let mut told: Vec<String> = config.policies.iter().flat_map(exclusions).filter_map(ended).collect();
    told.sort_unstable();
    told.dedup();
    told
}

/// The exclusions of a policy in words, with what those of both sorts say.
fn exclusions(policy: &Policy) -> impl Iterator<Item = (String, &Terms)> {
    let words = |parts: &[Option<&str>]| parts.iter().flatten().copied().collect::<Vec<_>>().join(" ");
    let semantic = policy.semantic.exclude.iter().map(move |each| {
        let class = each.class.map(Class::name);
        let parts = [class, each.kind.as_deref(), each.location.as_deref(), each.terms.path.as_deref()];
        (words(&parts), &each.terms)
    });
    let rules = policy.rule_exclude.iter().map(move |each| {
        let ids: Vec<String> = each.rules.iter().map(u32::to_string).collect();
        let parts = [Some(&*ids.join(" ")), each.target_text.as_deref(), each.terms.path.as_deref()];
        (words(&parts), &each.terms)
    });
    semantic.chain(rules)
}

fn ended((what, terms): (String, &Terms)) -> Option<String> {
    let until = terms.until.filter(|until| i64::try_from(until / 1000).is_ok_and(|until| until <= now()))?;
    let until = Timestamp::from_epoch_millis(until).rfc3339();
    Some(format!("the exclusion `{what}` ended at {until}: what it excluded counts again; remove it"))
}

/// Exclusions that end blocking as a whole, once they count.
fn wide(policy: &Policy, loaded: Option<&Loaded>) -> Vec<String> {
    let decides = |rule| loaded.is_some_and(|loaded| decides(&loaded.plan, rule));
    let widths = policy.exclusion_widths(decides).zip(exclusions(policy));
    let told = widths.filter_map(|(width, (what, _))| {
        let width = width.filter(Width::ends_blocking)?;
        Some(format!("the exclusion `{what}` ends blocking: {width}"))
    });
    told.collect()
}

/// Exclusions of rules that the policy does not have.
fn without_rule(policy: &Policy, loaded: &Loaded) -> Vec<String> {
    let is_there = |id: &u32| loaded.plan.rules.iter().any(|rule| rule.id.0 == *id);
    // A profile names rules of several releases of the CRS.
    let own = policy.rule_exclude.iter().filter(|each| each.profile.is_none());
    let missing = own.flat_map(|each| &each.rules).filter(|id| !is_there(id));
    let told = missing.map(|id| format!("an exclusion names the rule {id}, which is not loaded"));
    told.collect()
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn rules(index: usize, policy: &Policy, config: &Config) -> Result<Loaded, LoadError> {
    let mut loaded = load(policy)?;
    let api = portcullis_load::load_api(policy)?;
    loaded.warnings.extend(api.into_iter().flat_map(|api| api.warnings));
    check_servers(&loaded, &config.upstreams)?;
    check_limits(&loaded, config, index)?;
    check_folders(&loaded)?;
    let wrong = writable::check_audit(&AuditConfig::of_rules(&loaded.plan.settings));
    if wrong.is_empty() {
        return Ok(loaded);
    }
    let report = wrong.iter().map(|line| format!("error: {line}")).collect::<Vec<_>>().join("\n");
    Err(LoadError::Rules { errors: wrong.len(), report })
}
