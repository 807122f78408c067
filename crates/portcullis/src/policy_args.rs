//! The arguments by which `explain` and `rules` are told which rules to load.

use std::path::PathBuf;

use portcullis_config::{Config, Engine, Policy};
use portcullis_load::{Loaded, load};

use crate::cli::Failure;

/// Where the rules come from: a configuration document, or the same flags that `run` has.
#[derive(Debug, clap::Args)]
pub struct PolicyArgs {
    /// Take a policy of this configuration document
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["crs", "paranoia", "detect_only", "setup", "rules"],
        required_unless_present_any = ["crs", "setup", "rules"],
    )]
    config: Option<PathBuf>,
    /// The site whose policy it is; needed if the document has several policies
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,
    /// The route of that site; by default the first one with a policy
    #[arg(long, value_name = "NAME", requires = "site")]
    route: Option<String>,
    /// Folder of the CRS
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
    /// Paranoia level
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    paranoia: Option<u8>,
    /// Report what would be blocked, block nothing
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
    /// The rules, ready to run. A mistake in them is a failure with all of them in its message.
    pub fn load(&self) -> Result<Loaded, Failure> {
        load(&self.policy()?).map_err(Failure::failed)
    }

    /// The policy meant.
    fn policy(&self) -> Result<Policy, Failure> {
        match &self.config {
            Some(path) => {
                let config = Config::from_file(path).map_err(Failure::failed)?;
                self.policy_of(&config)
            }
            None => Ok(Policy {
                setup: self.setup.clone(),
                crs: self.crs.clone(),
                paranoia: self.paranoia,
                include: self.rules.clone(),
                engine: self.detect_only.then_some(Engine::DetectionOnly),
                ..Policy::default()
            }),
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
            None => Err(Failure::usage(format!("site {wanted} has no such route with rules"))),
        }
    }
}
