//! The arguments that name rules, in every subcommand that has some, and the choice of one policy of a
//! configuration file.

use std::path::PathBuf;

use portcullis_config::{Config, InspectedRoute, NoRoute, Policy, PolicyFlags};
use portcullis_load::{Loaded, load};

use crate::outcome::Failure;

/// The flags that say what inspects, in place of a configuration file.
#[derive(Clone, Debug, clap::Args)]
pub struct RuleFlags {
    /// semantic (parser-based detector), crs (SecLang rules), both, or off; by default crs if rules are
    /// given, semantic if not
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// How sure the semantic detector must be: balanced (the default) or strict
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Folder of the CRS: crs-setup.conf (or its .example) and rules/*.conf
    #[arg(long, value_name = "DIR")]
    crs: Option<PathBuf>,
    /// Paranoia level of the CRS, 1 to 4
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

impl RuleFlags {
    /// The same, as the configuration reads them.
    pub fn policy(&self) -> PolicyFlags {
        PolicyFlags {
            mode: self.mode.clone(),
            level: self.level.clone(),
            setup: self.setup.clone(),
            crs: self.crs.clone(),
            paranoia: self.paranoia,
            include: self.rules.clone(),
            detect_only: self.detect_only,
        }
    }
}

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
    #[command(flatten)]
    flags: RuleFlags,
}

impl PolicyArgs {
    /// The rules of the policy, ready to run. A mistake in them is a failure with all of them in its message.
    pub fn load(&self) -> Result<Loaded, Failure> {
        load(&self.policy()?).map_err(Failure::failed)
    }

    /// The policy meant.
    pub fn policy(&self) -> Result<Policy, Failure> {
        let Some(path) = &self.config else {
            let policy = self.flags.policy().policy().map_err(Failure::usage)?;
            return policy.ok_or_else(|| Failure::usage("mode off inspects nothing"));
        };
        let config = Config::from_file(path).map_err(Failure::failed)?;
        let found = inspected_route(&config, self.site.as_deref(), self.route.as_deref())?;
        Ok(config.policies[found.policy].clone())
    }
}

/// The route that `--site` and `--route` name, or the only one that is inspected.
pub fn inspected_route<'c>(
    config: &'c Config,
    site: Option<&str>,
    route: Option<&str>,
) -> Result<InspectedRoute<'c>, Failure> {
    config.inspected_route(site, route).map_err(|why| match why {
        NoRoute::Several { policies, sites } => Failure::usage(format!(
            "the document has {policies} policies; choose one with --site NAME out of {}",
            sites.join(", ")
        )),
        NoRoute::NotThere { .. } => Failure::usage(why),
        NoRoute::NothingInspected => {
            Failure::usage("nothing is inspected: mode `off`, or no site of the document has a policy")
        }
    })
}
