//! The arguments by which `check`, `explain`, `evaluate` and `rules` are told which rules to load.

use std::path::PathBuf;

use portcullis_config::{Config, Policy, PolicyFlags};
use portcullis_load::{Loaded, load};

use crate::cli::Failure;

/// Where the rules come from: a configuration document, or the same flags that `run` has.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    /// Take a policy of this configuration document
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["mode", "level", "crs", "paranoia", "detect_only", "setup", "rules"],
    )]
    config: Option<PathBuf>,
    /// The site whose policy it is; needed if the document has several policies
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,
    /// The route of that site; by default the first one with a policy
    #[arg(long, value_name = "NAME", requires = "site")]
    route: Option<String>,
    /// semantic, crs or both; by default crs if rules are given, semantic if not
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// How sure the semantic detector must be: balanced (the default) or strict
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Folder of the CRS
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
    /// Paranoia level
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: Option<u8>,
    /// Detection only: report what would be blocked, block nothing
    #[arg(long)]
    detect_only: bool,
    /// Rule file read before the CRS; may be given several times
    #[arg(long, value_name = "FILE")]
    setup: Vec<PathBuf>,
    /// Rule file read after the CRS; may be given several times
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
}

impl PolicyArgs {
    /// The rules of the policy, ready to run. A mistake in them is a failure with all of them in its message.
    pub fn load(&self) -> Result<Loaded, Failure> {
        load(&self.policy()?).map_err(Failure::failed)
    }

    /// The policy meant.
    pub fn policy(&self) -> Result<Policy, Failure> {
        match &self.config {
            Some(path) => {
                let config = Config::from_file(path).map_err(Failure::failed)?;
                self.policy_of(&config)
            }
            None => {
                let flags = PolicyFlags {
                    mode: self.mode.clone(),
                    level: self.level.clone(),
                    setup: self.setup.clone(),
                    crs: self.crs.clone(),
                    paranoia: self.paranoia,
                    include: self.rules.clone(),
                    detect_only: self.detect_only,
                };
                let policy = flags.policy().map_err(Failure::usage)?;
                policy.ok_or_else(|| Failure::usage("mode off inspects nothing"))
            }
        }
    }

    fn policy_of(&self, config: &Config) -> Result<Policy, Failure> {
        let names = || config.sites.iter().map(|site| site.name.as_str()).collect::<Vec<_>>().join(", ");
        let Some(wanted) = &self.site else {
            return match config.policies.as_slice() {
                [] => Err(Failure::failed("no site of the document inspects anything")),
                [only] => Ok(only.clone()),
                more => Err(Failure::usage(format!(
                    "the document has {} policies; choose one with --site NAME out of {}",
                    more.len(),
                    names()
                ))),
            };
        };
        let site = config.sites.iter().find(|site| site.name == *wanted);
        let site = site.ok_or_else(|| Failure::usage(format!("no site {wanted}; there are {}", names())))?;
        let fits = |name: &str| self.route.as_ref().is_none_or(|wanted| wanted == name);
        let policy = site.routes.iter().filter(|route| fits(&route.name)).find_map(|route| route.policy);
        match policy {
            Some(policy) => Ok(config.policies[policy].clone()),
            None => Err(Failure::usage(format!("site {wanted} has no such route that is inspected"))),
        }
    }
}
