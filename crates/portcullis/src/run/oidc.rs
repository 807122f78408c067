//! Login at an OpenID Connect provider, by the settings of the document.

use std::time::Duration;

use portcullis_api::OidcLogin;
use portcullis_config::{Config, Oidc};
use portcullis_identity::Role;
use portcullis_oidc::{Provider, Settings};

use crate::outcome::Failure;

/// For one request to the provider; a login makes four at most.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the files that the settings name. The provider is asked at the first login, not at the start.
pub fn login(oidc: &Oidc) -> Result<OidcLogin, Failure> {
    Ok(OidcLogin {
        provider: provider(oidc).map_err(Failure::failed)?,
        name: oidc.name.clone(),
        redirect: oidc.redirect.clone(),
        roles: vec![
            (Role::Viewer, oidc.roles.viewer.clone()),
            (Role::Analyst, oidc.roles.analyst.clone()),
            (Role::Admin, oidc.roles.admin.clone()),
        ],
        sites: oidc.sites.clone().map(|sites| sites.into_iter().collect()),
    })
}

/// Returns the error that would prevent a start.
pub fn check(config: &Config) -> Option<String> {
    config.oidc.as_ref().and_then(|oidc| provider(oidc).err())
}

fn provider(oidc: &Oidc) -> Result<Provider, String> {
    Provider::new(Settings {
        issuer: oidc.issuer.clone(),
        client_id: oidc.client_id.clone(),
        client_secret_file: oidc.client_secret_file.clone(),
        scopes: oidc.scopes.clone(),
        ca: oidc.ca.clone(),
        groups_claim: oidc.role_claim.clone(),
        timeout: TIMEOUT,
    })
}
