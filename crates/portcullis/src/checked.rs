//! All that a start would find wrong with a document, and what it would take and is hardly meant.

use std::time::{SystemTime, UNIX_EPOCH};

use portcullis_config::{Config, Mistake, Policy, Survey};
use portcullis_load::{LoadError, Loaded, check_folders, check_limits, check_servers, load};

use crate::run::{audit, oidc, sinks, traces};
use crate::{semantic, writable};

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
        let files = files.chain(oidc::check(config)).chain(traces::check(config));
        let files = files.chain(sinks::check(config)).chain(writable::check(config));
        mistakes.extend(files.map(|mistake| survey.mistake(&mistake)));
        let kinds = semantic::check(config).into_iter();
        mistakes.extend(kinds.map(|(kind, message)| survey.mistake_at(&kind, &message)));
        let certificates = portcullis_proxy::check_certificates(config, now());
        warnings.extend(certificates.iter().map(|warning| survey.mistake(&format!("warning: {warning}"))));
        let admin = config.admin.map(|admin| admin.to_string()).unwrap_or_default();
        let at = |warning: String| survey.mistake_at(&admin, &format!("warning: {warning}"));
        warnings.extend(config.warnings().into_iter().map(at));
        sites = config.sites.len();
        let policies = config.policies.iter().enumerate();
        sets = policies.map(|(index, policy)| rules(index, policy, config)).collect();
    }
    mistakes.sort_by_key(|mistake| mistake.place);
    Checked { mistakes, warnings, sites, sets }
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn rules(index: usize, policy: &Policy, config: &Config) -> Result<Loaded, LoadError> {
    let loaded = load(policy)?;
    check_servers(&loaded, &config.upstreams)?;
    check_limits(&loaded, config, index)?;
    check_folders(&loaded)?;
    let wrong = writable::check_audit(&audit::config(&loaded.plan.settings));
    if wrong.is_empty() {
        return Ok(loaded);
    }
    let report = wrong.iter().map(|line| format!("error: {line}")).collect::<Vec<_>>().join("\n");
    Err(LoadError::Rules { errors: wrong.len(), report })
}
