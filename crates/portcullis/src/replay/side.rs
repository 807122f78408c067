//! A document, and its verdicts on requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use portcullis_config::Config;
use portcullis_event::Redactor;
use portcullis_inspect::Inspector;
use portcullis_replay::Trial;
use portcullis_store::Store;

use super::requests::Request;
use crate::events::stored;
use crate::outcome::Failure;
use portcullis_load::SharedDetectors;

/// The verdict of a document on a request.
#[derive(Debug)]
pub enum Verdict {
    /// It would not get to the application, if the policy is enforced; why.
    Stopped(String),
    /// It would.
    Passed,
    /// No route that is inspected takes it.
    NotInspected,
}

impl Verdict {
    pub fn is_stopped(&self) -> bool {
        matches!(self, Verdict::Stopped(_))
    }

    /// In words.
    pub fn reason(&self) -> &str {
        match self {
            Verdict::Stopped(reason) => reason,
            Verdict::Passed => "",
            Verdict::NotInspected => "no route that is inspected takes it",
        }
    }
}

/// A document with its policies, as far as they were asked for.
pub struct Side {
    config: Config,
    file: String,
    site: Option<String>,
    detectors: SharedDetectors,
    trials: BTreeMap<usize, Trial>,
    now: u64,
}

impl Side {
    /// Of the document in this file; `site` is that of requests of which it is not known.
    pub fn new(path: &Path, site: Option<&str>) -> Result<Side, Failure> {
        let config = Config::from_file(path).map_err(Failure::usage)?;
        Side::of(config, path.display().to_string(), site)
    }

    /// Of the document in this file, which has been read.
    pub fn of(config: Config, file: String, site: Option<&str>) -> Result<Side, Failure> {
        let names: Vec<&str> = config.sites.iter().map(|site| site.name.as_str()).collect();
        if let Some(unknown) = site.filter(|site| !names.contains(site)) {
            let names = names.join(", ");
            return Err(Failure::usage(format_args!("{file} has no site {unknown}; there are {names}")));
        }
        let site = site.map(str::to_owned).or_else(|| match names.as_slice() {
            [only] => Some((*only).to_owned()),
            _ => None,
        });
        let (detectors, trials) = (SharedDetectors::default(), BTreeMap::new());
        Ok(Side { config, file, site, detectors, trials, now: stored::now() })
    }

    /// What it decides on a request.
    pub fn verdict(&mut self, request: &Request) -> Result<Verdict, Failure> {
        let Some(policy) = self.policy(request)? else { return Ok(Verdict::NotInspected) };
        if !self.trials.contains_key(&policy) {
            let Some(settings) = self.config.policies.get(policy) else { return Ok(Verdict::NotInspected) };
            let loaded = portcullis_load::load(settings);
            let plan = loaded.map_err(|error| Failure::usage(format_args!("{}: {error}", self.file)))?.plan;
            let inspector = Inspector::new(plan, Arc::new(Redactor::none()), Arc::new(Store::default()));
            let inspector = self.detectors.attach(inspector, settings);
            let inspector =
                inspector.map_err(|error| Failure::usage(format_args!("{}: {error}", self.file)))?;
            self.trials.insert(policy, Trial::new(Arc::new(inspector)));
        }
        let Some(trial) = self.trials.get_mut(&policy) else { return Ok(Verdict::NotInspected) };
        let tried = trial.ask(&request.bytes, request.client, self.now);
        Ok(match tried.stopped {
            true => Verdict::Stopped(tried.event.map_or_else(
                || "it is no acceptable HTTP".to_owned(),
                |event| event.verdict.reason.replace(char::is_control, " "),
            )),
            false => Verdict::Passed,
        })
    }

    /// The policy of a request's route: the first one that is inspected, where the route is not known.
    fn policy(&self, request: &Request) -> Result<Option<usize>, Failure> {
        let name = request.site.as_ref().or(self.site.as_ref()).ok_or_else(|| {
            Failure::usage(format_args!(
                "{} has several sites: name that of requests of which it is not known (`--site NAME`, or `site` of a request)",
                self.file
            ))
        })?;
        let site = self.config.sites.iter().find(|site| site.name == *name);
        let routes = site.map_or(&[][..], |site| &site.routes);
        let mut routes =
            routes.iter().filter(|route| request.route.as_ref().is_none_or(|name| route.name == *name));
        Ok(routes.find_map(|route| route.policy))
    }
}
