//! The choice of one policy of a document, for what inspects without listeners and upstreams.

use std::fmt;

use crate::checked::{Config, Failure};

/// An inspected route of a document, and the index of its policy.
#[derive(Clone, Copy, Debug)]
pub struct InspectedRoute<'c> {
    /// Index of the policy.
    pub policy: usize,
    /// The site.
    pub site: &'c str,
    /// The route.
    pub route: &'c str,
    /// Its policy where inspection cannot be done.
    pub failure: Failure,
}

/// The reason why no route is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// There are several policies and no site was named.
    Several {
        /// How many.
        policies: usize,
        /// The sites to choose from.
        sites: Vec<String>,
    },
    /// The site has no such inspected route.
    NotThere {
        /// The site that was named.
        site: String,
        /// The sites to choose from.
        sites: Vec<String>,
    },
    /// No site has a policy.
    NothingInspected,
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoute::Several { policies, sites } => {
                write!(f, "the document has {policies} policies; name one of its sites: {}", sites.join(", "))
            }
            NoRoute::NotThere { site, sites } => {
                let sites = sites.join(", ");
                write!(f, "there is no inspected route in a site `{site}`; the sites are {sites}")
            }
            NoRoute::NothingInspected => f.write_str("no site of the document has a policy"),
        }
    }
}

impl std::error::Error for NoRoute {}

impl Config {
    /// The inspected route of that site and name; by default the first one, if there is one policy only.
    pub fn inspected_route(
        &self,
        site: Option<&str>,
        route: Option<&str>,
    ) -> Result<InspectedRoute<'_>, NoRoute> {
        let names = || self.sites.iter().map(|site| site.name.clone()).collect::<Vec<_>>();
        if site.is_none() && self.policies.len() > 1 {
            return Err(NoRoute::Several { policies: self.policies.len(), sites: names() });
        }
        let sites = self.sites.iter().filter(|each| site.is_none_or(|wanted| each.name == wanted));
        let mut routes = sites.flat_map(|site| site.routes.iter().map(move |route| (site, route)));
        let found = routes.find_map(|(in_site, each)| {
            let policy = each.policy.filter(|_| route.is_none_or(|wanted| each.name == wanted))?;
            let (site, route) = (in_site.name.as_str(), each.name.as_str());
            Some(InspectedRoute { policy, site, route, failure: each.failure })
        });
        found.ok_or_else(|| match site {
            Some(site) => NoRoute::NotThere { site: site.to_owned(), sites: names() },
            None => NoRoute::NothingInspected,
        })
    }
}
