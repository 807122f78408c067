//! The APIs that a site declares, and which of its endpoints each of them is for: discovery compares both.

use portcullis_config::{Config, PathMatch, Route, Site};
use portcullis_discovery::{Deviation, Interface, Inventory, deviations, openapi};
use portcullis_match::{Regex, RegexFlags};

use crate::api;

/// The OpenAPI documents of a site, and the routes in the order in which they are tried.
#[derive(Default)]
pub struct DeclaredApis {
    documents: Vec<Interface>,
    scopes: Vec<Scope>,
}

/// A route, as far as an endpoint shows whether it is one of its own.
struct Scope {
    path: Paths,
    methods: Vec<String>,
    /// Index into the documents.
    document: Option<usize>,
}

enum Paths {
    Exact(String),
    Prefix(String),
    Pattern(Box<Regex>),
}

impl DeclaredApis {
    /// Those of a site. Documents that are not OpenAPI describe one endpoint, and are left out; so are routes
    /// that ask for headers, since other requests to their paths take another route.
    pub fn of(config: &Config, site: &Site) -> DeclaredApis {
        let mut declared = DeclaredApis::default();
        let mut files = Vec::new();
        for route in site.routes.iter().filter(|route| route.headers.is_empty()) {
            let policy = route.policy.and_then(|policy| config.policies.get(policy));
            let file = policy.and_then(|policy| policy.api.as_ref()).map(|api| &api.schema);
            let known = file.and_then(|file| files.iter().position(|(known, _)| *known == file));
            let document = match (known, file) {
                (Some(known), _) => files.get(known).and_then(|(_, document)| *document),
                (None, Some(file)) => {
                    // It was just loaded to compare requests with: what is wrong with it was reported there.
                    let interface = api::read(file).ok().and_then(|text| Interface::of(&text).ok());
                    let document = interface.map(|interface| {
                        declared.documents.push(interface);
                        declared.documents.len() - 1
                    });
                    files.push((file, document));
                    document
                }
                (None, None) => None,
            };
            declared.scopes.extend(Scope::of(route, document));
        }
        declared
    }

    /// The endpoints of a site that deviate; none if no document is declared.
    pub fn deviations(&self, inventory: &Inventory, site: &str) -> Option<Vec<Deviation>> {
        if self.documents.is_empty() {
            return None;
        }
        let seen = Interface::of(&openapi(inventory, site)).unwrap_or_default();
        let mut found = Vec::new();
        for (index, document) in self.documents.iter().enumerate() {
            let of_document = |interface: &Interface| {
                let mut own = interface.clone();
                own.retain(|method, path| self.document_of(method, path) == Some(index));
                own
            };
            found.extend(deviations(&of_document(document), &of_document(&seen)));
        }
        Some(found)
    }

    /// The document that is for an endpoint.
    fn document_of(&self, method: &str, path: &str) -> Option<usize> {
        let sample = sample(path);
        self.scopes.iter().find(|scope| scope.fits(method, &sample)).and_then(|scope| scope.document)
    }
}

impl Scope {
    /// None: the pattern does not compile, and the load has failed for it.
    fn of(route: &Route, document: Option<usize>) -> Option<Scope> {
        let path = match &route.path {
            PathMatch::Exact(path) => Paths::Exact(path.clone()),
            PathMatch::Prefix(path) => Paths::Prefix(path.clone()),
            PathMatch::Pattern(pattern) => {
                Paths::Pattern(Box::new(Regex::new(pattern.as_bytes(), RegexFlags::default()).ok()?))
            }
        };
        Some(Scope { path, methods: route.methods.clone(), document })
    }

    fn fits(&self, method: &str, path: &str) -> bool {
        let is_method = self.methods.is_empty() || self.methods.iter().any(|own| own == method);
        is_method
            && match &self.path {
                Paths::Exact(exact) => exact == path,
                Paths::Prefix(prefix) => path.starts_with(prefix.as_str()),
                Paths::Pattern(regex) => regex.is_match(path.as_bytes()),
            }
    }
}

/// A path that the template stands for: patterns of routes match values.
fn sample(template: &str) -> String {
    let value = |part: &str| match (part.find('{'), part.rfind('}')) {
        (Some(open), Some(close)) if open < close => {
            let text =
                if part[open..].starts_with("{uuid") { "00000000-0000-4000-8000-000000000000" } else { "1" };
            format!("{}{text}{}", &part[..open], &part[close + 1..])
        }
        _ => part.to_owned(),
    };
    template.split('/').map(value).collect::<Vec<_>>().join("/")
}
