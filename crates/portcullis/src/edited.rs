//! Policies of a document with more exclusions than it has.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_advise::Policies;
use portcullis_config::{Config, Format, Policy};
use portcullis_engine::Plan;
use portcullis_event::Redactor;
use portcullis_inspect::Inspector;
use portcullis_revisions::{Document, Edit, Exclusion, Scope, edited};
use portcullis_store::Store;

use portcullis_load::SharedDetectors;

/// A document, and the place in it that exclusions are for.
pub struct Edited {
    text: String,
    format: Format,
    file: String,
    site: String,
    route: String,
    policy: Policy,
    /// Rules that are loaded already, by the directives that differ.
    plans: Mutex<HashMap<Option<String>, Arc<Plan>>>,
    detectors: Mutex<SharedDetectors>,
}

impl Edited {
    /// Of this text, which belongs to this file; for a route of a site. The reason in words if it is not
    /// inspected.
    pub fn new(
        text: String,
        format: Format,
        file: String,
        site: &str,
        route: &str,
    ) -> Result<Edited, String> {
        let config = Config::parse(&text, format, &file).map_err(|error| error.to_string())?;
        let policy = policy(&config, site, route)?;
        let (site, route) = (site.to_owned(), route.to_owned());
        let (plans, detectors) = (Mutex::default(), Mutex::default());
        Ok(Edited { text, format, file, site, route, policy, plans, detectors })
    }

    /// Of the document in a file.
    pub fn of_document(path: &Path, site: &str, route: &str) -> Result<Edited, String> {
        let named = |what: &dyn Display| format!("{}: {what}", path.display());
        let document = Document::new(path).ok_or_else(|| named(&"no .toml, .yaml or .yml file"))?;
        let text = document.read().map_err(|error| named(&error))?;
        Edited::new(text.as_str().to_owned(), document.format(), document.name(), site, route)
    }

    /// The policy as it is.
    pub fn inspector(&self) -> Result<Arc<Inspector>, String> {
        self.attach(self.plan(&self.policy)?, &self.policy)
    }

    /// The rules of a policy that differs from the document's in directives and semantic exclusions only.
    fn plan(&self, policy: &Policy) -> Result<Arc<Plan>, String> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&policy.directives) {
            return Ok(Arc::clone(plan));
        }
        let plan = portcullis_load::load(policy).map_err(|error| error.to_string())?.plan;
        plans.insert(policy.directives.clone(), Arc::clone(&plan));
        Ok(plan)
    }

    /// True if exclusions of the route are those of its site.
    fn is_of_site(&self, exclusion: &Exclusion) -> Result<bool, String> {
        if matches!(exclusion, Exclusion::Rule(_)) {
            return Ok(true);
        }
        let policy = self.policy_with(&self.edit(&self.text, None, exclusion)?)?;
        Ok(policy != self.policy)
    }

    fn edit(&self, text: &str, route: Option<String>, exclusion: &Exclusion) -> Result<String, String> {
        let scope = Scope { site: Some(self.site.clone()), route };
        let edit = Edit::AddExclusion(scope, exclusion.clone());
        edited(&edit, text, self.format).map_err(|error| error.to_string())
    }

    fn policy_with(&self, text: &str) -> Result<Policy, String> {
        let config = Config::parse(text, self.format, &self.file).map_err(|error| error.to_string())?;
        policy(&config, &self.site, &self.route)
    }

    fn attach(&self, plan: Arc<Plan>, policy: &Policy) -> Result<Arc<Inspector>, String> {
        let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Store::default()));
        let mut detectors = self.detectors.lock().unwrap_or_else(PoisonError::into_inner);
        detectors.attach(inspector, policy).map(Arc::new).map_err(|error| error.to_string())
    }
}

impl Policies for Edited {
    fn with(&self, exclusions: &[Exclusion]) -> Result<Arc<Inspector>, String> {
        let mut text = self.text.clone();
        for exclusion in exclusions {
            let route = if self.is_of_site(exclusion)? { None } else { Some(self.route.clone()) };
            text = self.edit(&text, route, exclusion)?;
        }
        let policy = self.policy_with(&text)?;
        self.attach(self.plan(&policy)?, &policy)
    }
}

/// The policy of a route.
fn policy(config: &Config, site: &str, route: &str) -> Result<Policy, String> {
    let found = config.sites.iter().find(|known| known.name == site);
    let found = found.ok_or_else(|| format!("the document has no site `{site}`"))?;
    let route = found.routes.iter().find(|known| known.name == route);
    let route = route.ok_or_else(|| format!("the site `{site}` has no such route any more"))?;
    let policy = route.policy.and_then(|policy| config.policies.get(policy));
    policy.cloned().ok_or_else(|| format!("requests of this route of `{site}` are not inspected"))
}
